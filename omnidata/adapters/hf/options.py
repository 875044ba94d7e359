"""What can be said about a local model with `-M key=value`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal, get_type_hints

import msgspec

from omnidata.adapters.presets import Rate, convert
from omnidata.errors import UsageError
from omnidata.types import GenerationParams, Modality

_Positive = Annotated[int, msgspec.Meta(ge=1)]


class LocalOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a local model.

    Attributes:
        dtype: of the weights; "auto" takes the checkpoint's.
        device_map: where the weights lie, e.g. "auto", "cuda:0", "cpu"; None is "auto" on a machine
            with a GPU.
        attention: the implementation, e.g. "sdpa" or "flash_attention_2"; None leaves it to
            transformers.
        quantization: "8bit" or "4bit" by bitsandbytes; None loads the weights as they are.
        trust_remote_code: whether Python code of the checkpoint may run on this machine.
        batch_size: how many steps one `generate` takes.
        fps: frames per second that are read of a clip, where the model takes video.
        video: "frames" sends clips as pictures also where the model takes video.
        frames, frame_times, max_images, image_size, audio_rate, degrade: as `Capabilities`; what
            is left of a track at that rate is brought to the model's own.
        min_video_pixels, max_video_pixels: of one frame, as the processor scales it; None leaves
            them to the checkpoint's processor.
        audio_in_video: interleave a step's sound with its clip instead of sending it beside it.
        temperature, max_new_tokens, seed: as `GenerationParams`.
    """

    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    device_map: str | None = None
    attention: str | None = None
    quantization: Literal["8bit", "4bit"] | None = None
    trust_remote_code: bool = False
    batch_size: _Positive = 1
    fps: Annotated[float, msgspec.Meta(gt=0, le=240)] = 2.0
    video: Literal["native", "frames"] = "native"
    frames: _Positive = 4
    frame_times: bool = True
    max_images: _Positive | None = None
    image_size: _Positive | None = None
    audio_rate: Rate | None = None
    min_video_pixels: _Positive | None = None
    max_video_pixels: _Positive | None = None
    audio_in_video: bool = False
    degrade: bool = False
    temperature: Annotated[float, msgspec.Meta(ge=0, le=100)] = 0.0
    max_new_tokens: _Positive = 4096
    seed: int | None = None

    @property
    def params(self) -> GenerationParams:
        """How to decode."""
        return GenerationParams(self.temperature, self.max_new_tokens, self.seed)


_TYPES = get_type_hints(LocalOptions, include_extras=True)


def parse(options: Mapping[str, str]) -> LocalOptions:
    """Return the options given as `-M key=value`; `none` is no value.

    Raises:
        UsageError: an option or a value that does not exist.

    Examples:
        >>> parse({"batch_size": "8", "dtype": "bfloat16"}).batch_size
        8
    """
    defaults = msgspec.structs.asdict(LocalOptions())
    return LocalOptions(**convert(options, _TYPES, "a local model", defaults))


# Which models of transformers are known, and what each can take.

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
# Those that neither hear nor speak.
_QWEN_VL = Family(
    accepts=frozenset({"image", "video"}),
    video_pixels=True,
    tokens=(
        *("<|image_pad|>", "<|video_pad|>"),
        *("<|vision_start|>", "<|vision_end|>", "<|vision_pad|>"),
    ),
    controls=_QWEN2_5.controls,
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
    "qwen2_vl": _QWEN_VL,
    "qwen2_5_vl": _QWEN_VL,
    "qwen3_vl": replace(_QWEN_VL, controls=_QWEN3.controls),
    "qwen3_vl_moe": replace(_QWEN_VL, controls=_QWEN3.controls),
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
    """Return the family of a checkpoint.

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
