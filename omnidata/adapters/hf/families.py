"""Which models of transformers are known, and what each can take."""

from __future__ import annotations

from dataclasses import dataclass, replace

from omnidata.errors import UsageError
from omnidata.types import Modality

_ALL: frozenset[Modality] = frozenset({"image", "video", "audio"})
_STILL: frozenset[Modality] = frozenset({"image", "audio"})


@dataclass(frozen=True, slots=True)
class Family:
    """A model type of transformers.

    Attributes:
        accepts: what its processor takes; clips go as pictures where it takes no video.
        architecture: the class that generates text; empty for the one that
            `AutoModelForMultimodalLM` chooses.
        audio_window: samples after which its feature extractor cuts a track, whatever it is told;
            None for one that keeps tracks whole when asked to.
        audio_in_video: whether sound can be interleaved with the clip that it belongs to.
        video_pixels: whether the size of a clip's frames can be limited in pixels.
        adapter: the folder of the checkpoint with weights that are added for steps with pictures,
            which every step has; empty for none.
        tokens: what stands for media in its texts, and before and behind them.
        controls: what begins and ends its turns, thoughts and texts.
    """

    accepts: frozenset[Modality] = _ALL
    architecture: str = ""
    audio_window: int | None = None
    audio_in_video: bool = False
    video_pixels: bool = False
    adapter: str = ""
    tokens: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()


# A full Qwen checkpoint also speaks; its own class then asks for voices and cannot do without them
# (transformers 5.23), while the thinker's class takes its part of the weights out of the folder.
_QWEN2_5 = Family(
    architecture="Qwen2_5OmniThinkerForConditionalGeneration",
    audio_in_video=True,
    video_pixels=True,
    tokens=(
        *("<|IMAGE|>", "<|VIDEO|>", "<|AUDIO|>"),
        *("<|vision_bos|>", "<|vision_eos|>", "<|audio_bos|>", "<|audio_eos|>"),
    ),
    controls=("<|im_start|>", "<|im_end|>", "<|endoftext|>"),
)
_QWEN3 = replace(
    _QWEN2_5,
    architecture="Qwen3OmniMoeThinkerForConditionalGeneration",
    tokens=(
        *("<|image_pad|>", "<|video_pad|>", "<|audio_pad|>"),
        *("<|vision_start|>", "<|vision_end|>", "<|audio_start|>", "<|audio_end|>"),
    ),
    controls=(*_QWEN2_5.controls, "<think>", "</think>"),
)
_GEMMA4 = Family(
    tokens=(
        *("<|image|>", "<|image>", "<image|>", "<|video|>"),
        *("<|audio|>", "<|audio>", "<audio|>"),
    ),
    controls=(
        *("<bos>", "<eos>", "<pad>", "<|turn>", "<turn|>"),
        *("<|think|>", "<|channel>", "<channel|>"),
    ),
)

FAMILIES = {
    "qwen2_5_omni": _QWEN2_5,
    "qwen2_5_omni_thinker": _QWEN2_5,
    "qwen3_omni_moe": _QWEN3,
    "qwen3_omni_moe_thinker": _QWEN3,
    "gemma3n": Family(
        accepts=_STILL,
        audio_window=480_000,
        tokens=(
            *("<image_soft_token>", "<start_of_image>", "<end_of_image>"),
            *("<audio_soft_token>", "<start_of_audio>", "<end_of_audio>"),
        ),
        controls=("<bos>", "<eos>", "<pad>", "<start_of_turn>", "<end_of_turn>"),
    ),
    "gemma4": _GEMMA4,
    "gemma4_unified": _GEMMA4,
    "phi4_multimodal": Family(
        accepts=_STILL,
        adapter="vision-lora",
        tokens=("<|endoftext10|>", "<|endoftext11|>"),
        controls=("<|system|>", "<|user|>", "<|assistant|>", "<|end|>", "<|endoftext|>"),
    ),
}
"""By `model_type` of the checkpoint's `config.json` (transformers 5.23)."""

TOKENS = frozenset(token for known in FAMILIES.values() for token in known.tokens)
"""Of all families: in a text, some model takes them for media."""

CONTROLS = frozenset(token for known in FAMILIES.values() for token in known.controls)
"""Of all families: in a text, some model takes them for the end of it, or of the turn."""


def family(model_type: str, where: str) -> Family:
    """The family of a checkpoint.

    Args:
        model_type: of its `config.json`.
        where: the checkpoint, for the message.

    Raises:
        UsageError: nobody has tried that type.
    """
    if model_type not in FAMILIES:
        raise UsageError(
            f'the checkpoint is of type "{model_type}"',
            where=where,
            expected=f"one of {', '.join(FAMILIES)}",
            remedy="serve it with vLLM or `transformers serve` and use openai:, or add a plugin "
            "(docs/models.md)",
        )
    return FAMILIES[model_type]
