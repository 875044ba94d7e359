"""The thinkers of Qwen2.5-Omni and Qwen3-Omni."""

from __future__ import annotations

from string import Template
from typing import Any

from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerFast,
    ProcessorMixin,
    Qwen2_5OmniProcessor,
    Qwen2_5OmniThinkerConfig,
    Qwen2_5OmniThinkerForConditionalGeneration,
    Qwen2VLImageProcessor,
    Qwen2VLVideoProcessor,
    Qwen3OmniMoeProcessor,
    Qwen3OmniMoeThinkerConfig,
    Qwen3OmniMoeThinkerForConditionalGeneration,
    WhisperFeatureExtractor,
)

from omnidata.adapters.tiny.vocabulary import SPREAD, WIDTH, tokenizer

_END, _PAD = "<|im_end|>", "<|endoftext|>"
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
{% if part.type == "image" %}${vision_bos_token}${image_token}${vision_eos_token}\
{% elif part.type == "video" %}${vision_bos_token}${video_token}${vision_eos_token}\
{% elif part.type == "audio" %}${audio_bos_token}${audio_token}${audio_eos_token}\
{% else %}{{ part.text }}{% endif %}
{% endfor %}<|im_end|>
{% endif %}
{% endfor %}
{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}
"""
)
_MARKS = ("image", "video", "audio", "vision_bos", "vision_eos", "audio_bos", "audio_eos")
_OF_2_5 = ("IMAGE", "VIDEO", "AUDIO", "vision_bos", "vision_eos", "audio_bos", "audio_eos")
_OF_3 = (
    *("image_pad", "video_pad", "audio_pad"),
    *("vision_start", "vision_end", "audio_start", "audio_end"),
)


def qwen2_5_omni() -> tuple[PreTrainedModel, ProcessorMixin]:
    """A thinker of Qwen2.5-Omni and its processor; weights by torch's seed."""
    names = _names(_OF_2_5)
    words = tokenizer(["<|im_start|>"], names, end=_END, pad=_PAD)
    number = words.convert_tokens_to_ids
    config = Qwen2_5OmniThinkerConfig(
        audio_config={
            "num_mel_bins": 128,
            "encoder_layers": 2,
            "encoder_attention_heads": 4,
            "encoder_ffn_dim": 128,
            "d_model": 64,
            "n_window": 100,
            "output_dim": WIDTH,
            "init_std": SPREAD,
            "initializer_range": SPREAD,
        },
        vision_config={
            "depth": 2,
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_heads": 4,
            "patch_size": 14,
            "window_size": 112,
            "out_hidden_size": WIDTH,
            "fullatt_block_indexes": [1],
            "initializer_range": SPREAD,
        },
        text_config=_text(words)
        | {
            # three parts of each head's 16 numbers turn by time, height and width
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 1e6,
                "mrope_section": [2, 3, 3],
            },
        },
        audio_token_index=number(names["audio_token"]),
        image_token_index=number(names["image_token"]),
        video_token_index=number(names["video_token"]),
        audio_start_token_id=number(names["audio_bos_token"]),
        audio_end_token_id=number(names["audio_eos_token"]),
        vision_start_token_id=number(names["vision_bos_token"]),
        vision_end_token_id=number(names["vision_eos_token"]),
        initializer_range=SPREAD,
    )
    processor = Qwen2_5OmniProcessor(
        **_readers(patch_size=14), tokenizer=words, chat_template=_TEMPLATE.substitute(names)
    )
    return Qwen2_5OmniThinkerForConditionalGeneration(config), processor


def qwen3_omni() -> tuple[PreTrainedModel, ProcessorMixin]:
    """A thinker of Qwen3-Omni, with four experts of which two are asked, and its processor."""
    names = _names(_OF_3)
    words = tokenizer(["<|im_start|>"], names, end=_END, pad=_PAD)
    number = words.convert_tokens_to_ids
    config = Qwen3OmniMoeThinkerConfig(
        audio_config={
            "num_mel_bins": 128,
            "encoder_layers": 2,
            "encoder_attention_heads": 4,
            "encoder_ffn_dim": 128,
            "d_model": 64,
            "output_dim": WIDTH,
            "downsample_hidden_size": 32,
            "initializer_range": SPREAD,
        },
        vision_config={
            "depth": 2,
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_heads": 4,
            "patch_size": 16,
            "out_hidden_size": WIDTH,
            "num_position_embeddings": 2304,
            "deepstack_visual_indexes": [0, 1],
            "initializer_range": SPREAD,
        },
        text_config=_text(words)
        | {
            "head_dim": 16,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 64,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 1e6,
                "mrope_section": [4, 2, 2],
                "interleaved": True,
            },
        },
        audio_token_id=number(names["audio_token"]),
        image_token_id=number(names["image_token"]),
        video_token_id=number(names["video_token"]),
        audio_start_token_id=number(names["audio_bos_token"]),
        audio_end_token_id=number(names["audio_eos_token"]),
        vision_start_token_id=number(names["vision_bos_token"]),
        vision_end_token_id=number(names["vision_eos_token"]),
        initializer_range=SPREAD,
    )
    processor = Qwen3OmniMoeProcessor(
        **_readers(patch_size=16), tokenizer=words, chat_template=_TEMPLATE.substitute(names)
    )
    return Qwen3OmniMoeThinkerForConditionalGeneration(config), processor


def _names(marks: tuple[str, ...]) -> dict[str, str]:
    """What transformers calls the tokens that stand for media and around them."""
    return {f"{ours}_token": f"<|{mark}|>" for ours, mark in zip(_MARKS, marks, strict=True)}


def _text(words: PreTrainedTokenizerFast) -> dict[str, Any]:
    return {
        "vocab_size": len(words),
        "hidden_size": WIDTH,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "pad_token_id": words.pad_token_id,
        "eos_token_id": words.eos_token_id,
        "initializer_range": SPREAD,
    }


def _readers(*, patch_size: int) -> dict[str, Any]:
    """The parts of a processor that read media; at most 64 tokens a picture."""
    token = (2 * patch_size) ** 2
    sizes: dict[str, Any] = {
        "size": {"shortest_edge": 4 * token, "longest_edge": 64 * token},
        "patch_size": patch_size,
        "merge_size": 2,
        "temporal_patch_size": 2,
    }
    return {
        "image_processor": Qwen2VLImageProcessor(**sizes),
        "video_processor": Qwen2VLVideoProcessor(**sizes, cap_pixels_per_frame=False),
        "feature_extractor": WhisperFeatureExtractor(feature_size=128, padding_side="right"),
    }
