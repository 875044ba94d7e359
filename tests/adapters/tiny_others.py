"""Tiny random checkpoints of families that take no clips: Gemma 3n and Phi-4-multimodal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omnidata.adapters.tiny import tokenizer

_TEMPLATE = """\
{% for message in messages %}
<|{{ message.role }}|>\
{% for part in message.content %}\
{% if part.type == "text" %}{{ part.text }}{% else %}<|{{ part.type }}|>{% endif %}\
{% endfor %}<|end|>
{% endfor %}
{% if add_generation_prompt %}<|assistant|>{% endif %}
"""
_NAMES = {
    "bos_token": "<bos>",
    "image_token": "<|image|>",
    "boi_token": "<|boi|>",
    "eoi_token": "<|eoi|>",
    "audio_token": "<|audio|>",
    "boa_token": "<|boa|>",
    "eoa_token": "<|eoa|>",
}
_SPREAD = 0.2


def gemma3n(folder: Path) -> None:
    """A Gemma 3n whose sight is a small residual network of timm."""
    from transformers import (
        Gemma3nAudioFeatureExtractor,
        Gemma3nConfig,
        Gemma3nForConditionalGeneration,
        Gemma3nProcessor,
        SiglipImageProcessor,
    )

    words = tokenizer("<|user|>", "<|end|>", "<pad>", _NAMES)
    ids = words.get_vocab()
    size = len(words)
    config = Gemma3nConfig(
        text_config={
            "vocab_size": size + 16,  # sight and sound have eight each behind the words
            "vocab_size_per_layer_input": size,
            "hidden_size": 64,
            "hidden_size_per_layer_input": 16,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "layer_types": ["sliding_attention", "full_attention"],
            "activation_sparsity_pattern": [0.0, 0.0],
            "num_kv_shared_layers": 0,
            "altup_num_inputs": 2,
            "laurel_rank": 8,
            "pad_token_id": words.pad_token_id,
            "eos_token_id": words.eos_token_id,
            "bos_token_id": ids["<bos>"],
            "initializer_range": _SPREAD,
        },
        vision_config={
            "architecture": "test_resnet",
            "hidden_size": 96,
            "vocab_size": 8,
            "vocab_offset": size,
            "initializer_range": _SPREAD,
        },
        audio_config={
            "hidden_size": 64,
            "conf_num_hidden_layers": 1,
            "conf_num_attention_heads": 4,
            "sscp_conv_channel_size": [16, 8],
            "vocab_size": 8,
            "vocab_offset": size + 8,
            "initializer_range": _SPREAD,
        },
        image_token_id=ids["<|image|>"],
        boi_token_id=ids["<|boi|>"],
        eoi_token_id=ids["<|eoi|>"],
        audio_token_id=ids["<|audio|>"],
        boa_token_id=ids["<|boa|>"],
        eoa_token_id=ids["<|eoa|>"],
        vision_soft_tokens_per_image=16,
        initializer_range=_SPREAD,
    )
    processor = Gemma3nProcessor(
        feature_extractor=Gemma3nAudioFeatureExtractor(),
        image_processor=SiglipImageProcessor(size={"height": 128, "width": 128}),
        tokenizer=words,
        chat_template=_TEMPLATE,
        image_seq_length=16,
    )
    _save(Gemma3nForConditionalGeneration(config), processor, folder)


def phi4(folder: Path) -> None:
    """A Phi-4-multimodal."""
    from transformers import (
        Phi4MultimodalConfig,
        Phi4MultimodalFeatureExtractor,
        Phi4MultimodalForCausalLM,
        Phi4MultimodalImageProcessor,
        Phi4MultimodalProcessor,
    )

    words = tokenizer("<|user|>", "<|end|>", "<pad>", _NAMES)
    ids = words.get_vocab()
    config = Phi4MultimodalConfig(
        vocab_size=len(words),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        pad_token_id=words.pad_token_id,
        bos_token_id=ids["<bos>"],
        eos_token_id=[words.eos_token_id],
        initializer_range=_SPREAD,
        vision_config={
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "image_token_id": ids["<|image|>"],
        },
        audio_config={
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_blocks": 1,
            "num_attention_heads": 4,
            "ext_pw_out_channel": 64,
            "depthwise_separable_out_channel": 64,
            "nemo_conv_channels": 64,
            "audio_token_id": ids["<|audio|>"],
            "initializer_range": _SPREAD,
        },
    )
    processor = Phi4MultimodalProcessor(
        image_processor=Phi4MultimodalImageProcessor(),
        audio_processor=Phi4MultimodalFeatureExtractor(),
        tokenizer=words,
        chat_template=_TEMPLATE,
    )
    _save(Phi4MultimodalForCausalLM(config), processor, folder)


def _save(model: Any, processor: Any, folder: Path) -> None:
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
