"""Gemma 4."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from omnidata.adapters.tiny.vocabulary import SPREAD, WIDTH, tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedModel, ProcessorMixin

_TEMPLATE = """\
{{ bos_token }}\
{% for message in messages %}
{% set said = message.content %}
{% set parts = [{"type": "text", "text": said}] if said is string else said %}
<|turn>{{ "model" if message.role == "assistant" else message.role }}
{% if message.role == "assistant" %}
{% generation %}{% for part in parts %}{{ part.text }}{% endfor %}<turn|>
{% endgeneration %}
{% else %}
{% for part in parts %}
{% if part.type == "text" %}{{ part.text }}{% else %}<|{{ part.type }}|>{% endif %}
{% endfor %}<turn|>
{% endif %}
{% endfor %}
{% if add_generation_prompt %}<|turn>model
{% endif %}
"""
_NAMES = {
    "bos_token": "<bos>",
    "image_token": "<|image|>",
    "boi_token": "<|image>",
    "eoi_token": "<image|>",
    "audio_token": "<|audio|>",
    "boa_token": "<|audio>",
    "eoa_token": "<audio|>",
    "video_token": "<|video|>",
}
_SOFT_TOKENS = 70
"""Of a picture; the least that Gemma 4 knows."""


def gemma4(texts: Iterable[str] = ()) -> tuple[PreTrainedModel, ProcessorMixin]:
    """A Gemma 4 with both towers and per-layer embeddings, and its processor."""
    from transformers import (
        Gemma4AudioFeatureExtractor,
        Gemma4Config,
        Gemma4ForConditionalGeneration,
        Gemma4ImageProcessor,
        Gemma4Processor,
        Gemma4VideoProcessor,
    )

    words = tokenizer("<|turn>", "<turn|>", "<pad>", _NAMES, texts)
    ids = words.get_vocab()
    config = Gemma4Config(
        audio_config={
            "hidden_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "subsampling_conv_channels": [128, 8],
            "output_proj_dims": WIDTH,
            "initializer_range": SPREAD,
        },
        vision_config={
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 4,
            "head_dim": 16,
            "position_embedding_size": 1024,
            "initializer_range": SPREAD,
        },
        text_config={
            "vocab_size": len(words),
            "hidden_size": WIDTH,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "layer_types": ["sliding_attention", "full_attention"],
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "global_head_dim": 32,
            "vocab_size_per_layer_input": len(words),
            "hidden_size_per_layer_input": 16,
            "pad_token_id": words.pad_token_id,
            "eos_token_id": words.eos_token_id,
            "bos_token_id": words.bos_token_id,
            "initializer_range": SPREAD,
        },
        image_token_id=ids["<|image|>"],
        boi_token_id=ids["<|image>"],
        eoi_token_id=ids["<image|>"],
        audio_token_id=ids["<|audio|>"],
        boa_token_id=ids["<|audio>"],
        eoa_token_index=ids["<audio|>"],
        video_token_id=ids["<|video|>"],
        initializer_range=SPREAD,
    )
    processor = Gemma4Processor(
        feature_extractor=Gemma4AudioFeatureExtractor(),
        image_processor=Gemma4ImageProcessor(max_soft_tokens=_SOFT_TOKENS),
        video_processor=Gemma4VideoProcessor(max_soft_tokens=_SOFT_TOKENS),
        tokenizer=words,
        chat_template=_TEMPLATE,
        image_seq_length=_SOFT_TOKENS,
    )
    return Gemma4ForConditionalGeneration(config), processor
