"""The thinkers of Qwen2.5-Omni and Qwen3-Omni."""

from __future__ import annotations

from collections.abc import Iterable
from string import Template
from typing import TYPE_CHECKING, Any

from omnidata.adapters.tiny.vocabulary import SPREAD, WIDTH, tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast, ProcessorMixin

_TEMPLATE = Template(
    """\
{% for message in messages %}
{% set said = message.content %}
{% set parts = [{"type": "text", "text": said}] if said is string else said %}
<|im_start|>{{ message.role }}
{% if message.role == "assistant" %}
{% generation %}{% for part in parts %}{{ part.text }}{% endfor %}<|im_end|>
{% endgeneration %}
{% else %}
{% for part in parts %}
{% if part.type == "image" %}$vision_bos_token$image_token$vision_eos_token\
{% elif part.type == "video" %}$vision_bos_token$video_token$vision_eos_token\
{% elif part.type == "audio" %}$audio_bos_token$audio_token$audio_eos_token\
{% else %}{{ part.text }}{% endif %}
{% endfor %}<|im_end|>
{% endif %}
{% endfor %}
{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}
"""
)
_NAMES = ("image", "video", "audio", "vision_bos", "vision_eos", "audio_bos", "audio_eos")
_TOKENS_2_5 = ("IMAGE", "VIDEO", "AUDIO", "vision_bos", "vision_eos", "audio_bos", "audio_eos")
_TOKENS_3 = (
    *("image_pad", "video_pad", "audio_pad"),
    *("vision_start", "vision_end", "audio_start", "audio_end"),
)
_SOUND: dict[str, Any] = {
    "num_mel_bins": 128,
    "encoder_layers": 2,
    "encoder_attention_heads": 4,
    "encoder_ffn_dim": 128,
    "d_model": 64,
    "output_dim": WIDTH,
    "initializer_range": SPREAD,
}
_SIGHT: dict[str, Any] = {
    "depth": 2,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_heads": 4,
    "out_hidden_size": WIDTH,
    "initializer_range": SPREAD,
}
_TEXT: dict[str, Any] = {
    "hidden_size": WIDTH,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "initializer_range": SPREAD,
}
_ROPE: dict[str, Any] = {"rope_type": "default", "rope_theta": 1e6}
"""Its sections (time, height, width) share half of a head's 16 numbers."""


def qwen2_5_omni(texts: Iterable[str] = ()) -> tuple[PreTrainedModel, ProcessorMixin]:
    """A thinker of Qwen2.5-Omni and its processor; weights by torch's seed."""
    from transformers import (
        Qwen2_5OmniProcessor,
        Qwen2_5OmniThinkerConfig,
        Qwen2_5OmniThinkerForConditionalGeneration,
    )

    names = _names(_TOKENS_2_5)
    words = tokenizer("<|im_start|>", "<|im_end|>", "<|endoftext|>", names, texts)
    ids = words.get_vocab()
    config = Qwen2_5OmniThinkerConfig(
        audio_config=_SOUND | {"n_window": 100},
        vision_config=_SIGHT | {"patch_size": 14, "window_size": 112, "fullatt_block_indexes": [1]},
        text_config=_TEXT
        | _ends(words)
        | {"rope_parameters": _ROPE | {"mrope_section": [2, 3, 3]}},
        image_token_index=ids[names["image_token"]],
        video_token_index=ids[names["video_token"]],
        audio_token_index=ids[names["audio_token"]],
        **_around(words, names),
    )
    processor = Qwen2_5OmniProcessor(  # type: ignore[no-untyped-call]  # theirs has no types
        **_readers(patch_size=14), tokenizer=words, chat_template=_TEMPLATE.substitute(names)
    )
    return Qwen2_5OmniThinkerForConditionalGeneration(config), processor


def qwen3_omni(texts: Iterable[str] = ()) -> tuple[PreTrainedModel, ProcessorMixin]:
    """A thinker of Qwen3-Omni, with two of four experts per token, and its processor."""
    from transformers import (
        Qwen3OmniMoeProcessor,
        Qwen3OmniMoeThinkerConfig,
        Qwen3OmniMoeThinkerForConditionalGeneration,
    )

    names = _names(_TOKENS_3)
    words = tokenizer("<|im_start|>", "<|im_end|>", "<|endoftext|>", names, texts)
    ids = words.get_vocab()
    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64}
    sections = {"mrope_section": [4, 2, 2], "interleaved": True}
    config = Qwen3OmniMoeThinkerConfig(
        audio_config=_SOUND | {"downsample_hidden_size": 32},
        vision_config=_SIGHT | {"patch_size": 16, "deepstack_visual_indexes": [0, 1]},
        text_config=_TEXT
        | _ends(words)
        | experts
        | {"head_dim": 16, "rope_parameters": _ROPE | sections},
        image_token_id=ids[names["image_token"]],
        video_token_id=ids[names["video_token"]],
        audio_token_id=ids[names["audio_token"]],
        **_around(words, names),
    )
    processor = Qwen3OmniMoeProcessor(  # type: ignore[no-untyped-call]  # theirs has no types
        **_readers(patch_size=16), tokenizer=words, chat_template=_TEMPLATE.substitute(names)
    )
    return Qwen3OmniMoeThinkerForConditionalGeneration(config), processor


def _names(tokens: tuple[str, ...]) -> dict[str, str]:
    """What transformers calls the tokens that stand for media and around them."""
    return {f"{name}_token": f"<|{token}|>" for name, token in zip(_NAMES, tokens, strict=True)}


def _ends(words: PreTrainedTokenizerFast) -> dict[str, Any]:
    return {
        "vocab_size": len(words),
        "pad_token_id": words.pad_token_id,
        "eos_token_id": words.eos_token_id,
    }


def _around(words: PreTrainedTokenizerFast, names: dict[str, str]) -> dict[str, Any]:
    ids = words.get_vocab()
    return {
        "vision_start_token_id": ids[names["vision_bos_token"]],
        "vision_end_token_id": ids[names["vision_eos_token"]],
        "audio_start_token_id": ids[names["audio_bos_token"]],
        "audio_end_token_id": ids[names["audio_eos_token"]],
        "initializer_range": SPREAD,
    }


def _readers(*, patch_size: int) -> dict[str, Any]:
    """The parts of a processor that read media; a picture gets 4 to 64 tokens."""
    from transformers import Qwen2VLImageProcessor, Qwen2VLVideoProcessor, WhisperFeatureExtractor

    token = (2 * patch_size) ** 2  # pixels
    sizes: dict[str, Any] = {
        "size": {"shortest_edge": 4 * token, "longest_edge": 64 * token},
        "patch_size": patch_size,
        "merge_size": 2,
        "temporal_patch_size": 2,
    }
    sound = WhisperFeatureExtractor(feature_size=128, padding_side="right")  # type: ignore[no-untyped-call]  # theirs has no types
    return {
        "image_processor": Qwen2VLImageProcessor(**sizes),
        "video_processor": Qwen2VLVideoProcessor(**sizes, cap_pixels_per_frame=False),
        "feature_extractor": sound,
    }
