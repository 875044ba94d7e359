"""Tiny random models of the true architectures: for tests, and to see a model in the loop."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, Literal, get_args

from omnidata.actions import NUMBERS
from omnidata.errors import PlatformError, UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast, ProcessorMixin


Family = Literal["qwen2.5-omni", "qwen3-omni", "gemma4"]


def make_tiny(family: Family, folder: Path, *, seed: int = 0, texts: Iterable[str] = ()) -> Path:
    """Write a checkpoint of less than a million random weights, with all that belongs to one.

    `AutoProcessor` and `AutoModelForMultimodalLM` load it like a real one: the classes, the towers
    for media, the special tokens and the placeholders are the family's own, only narrow and
    shallow. It takes text, pictures, clips and sound, and each changes what it finds likely to come
    next; what it says means nothing. The Qwen families are the thinkers, without the talker. The
    chat template marks what the assistant says, as training needs (`return_assistant_tokens_mask`).
    Nothing is downloaded; the same seed gives the same files.

    Args:
        family: the architecture: Qwen2.5-Omni (arXiv:2503.20215), Qwen3-Omni (arXiv:2509.17765) or
            Gemma 4.
        folder: where to write; must not exist.
        seed: of the weights.
        texts: what the model will read: with a vocabulary made from prompts, whose lines become a
            token each, a step of OmniGUI has 200 tokens instead of 1,300, and is trained on in a
            fifth of the time. Any other text still has tokens, but more of them.

    Returns:
        The folder.

    Raises:
        UsageError: there is no such family, or the folder exists.
        PlatformError: the libraries of the extra `local` are not installed, or do not load.
    """
    if family not in get_args(Family):
        names = ", ".join(get_args(Family))
        raise UsageError(f'there is no tiny model "{family}"', expected=f"one of {names}")
    if folder.exists():
        raise UsageError("the folder exists", where=str(folder), remedy="choose another name")
    from omnidata.adapters.hf.checkpoint import prepare_imports

    try:
        import torch

        prepare_imports()
        import torchvision  # noqa: F401  # the processors of clips need it
        import transformers  # noqa: F401  # whether it loads is the question
    except (ImportError, OSError, RuntimeError) as error:
        raise PlatformError(
            f"a library cannot be loaded ({type(error).__name__}: {error})",
            expected="torch, torchvision and transformers",
            remedy="pip install 'omnidata[local]'",
        ) from error

    builders = {
        "qwen2.5-omni": qwen2_5_omni,
        "qwen3-omni": qwen3_omni,
        "gemma4": gemma4,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model, processor = builders[family](texts)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}.") as unfinished,
        _silent(),
    ):
        made = Path(unfinished) / folder.name
        model.save_pretrained(made)
        processor.save_pretrained(made)
        made.rename(folder)
    return folder


@contextmanager
def _silent() -> Iterator[None]:
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


# What tiny models share: their width, and a tokenizer that takes any text and needs few tokens.

WIDTH = 64
"""Of the text model, and of what the towers for media give to it."""

SPREAD = 0.2
"""Standard deviation of the weights: wide enough for one medium to change what is answered."""

_SIZE = 640
_SIZE_OF_LINES = 2048
_OFTEN = 10
"""Rarer pairs stay apart: what comes in a few prompts alone says nothing about others."""
_LINE = r"[^\n]*\n|[^\n]+"
_WORDS = """\
You are an Android GUI Agent. You are given a task and your action history, with screenshots, audio
and video. You need to perform the next action to complete the task. Output a single valid JSON
object and nothing else. Range: 0-1000, normalized. Goal: Step: Action History: The current
screenshot is the last image in your input. Tap, double tap, long press, swipe up, down, left,
right, input text, back, home, task complete, task impossible. Analyze the current screenshot and
output the next action as JSON. Open the song, the button, the message and the list.
"""


def tokenizer(
    begin: str, end: str, pad: str, names: Mapping[str, str], texts: Iterable[str] = ()
) -> PreTrainedTokenizerFast:
    """Return a small byte-pair tokenizer, trained on GUI prompts and on actions as JSON.

    Args:
        begin: the token that begins a turn.
        end: the token that ends a turn and an answer.
        pad: the padding token; batches are padded on the left.
        names: other special tokens by their name in transformers, e.g.
            {"image_token": "<|image_pad|>"}.
        texts: train on these instead; pairs are merged across the words of a line, so a frequent
            line becomes one token.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    given = list(texts)
    learned = Tokenizer(models.BPE())
    learned.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if given:
        learned.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(_LINE), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
    learned.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=_SIZE_OF_LINES if given else _SIZE,
        min_frequency=_OFTEN if given else 0,
        special_tokens=[pad, end, begin, *names.values()],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    learned.train_from_iterator(given or _corpus(), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=learned,
        eos_token=end,
        pad_token=pad,
        padding_side="left",
        extra_special_tokens=dict(names),
    )


def _corpus() -> Iterator[str]:
    yield from _WORDS.splitlines()
    for action in NUMBERS.values():
        yield f'{{"action_type": {action}, "text": "hello"}}'
        for x in range(0, 1000, 50):
            yield f'{{"action_type": {action}, "coordinate": [{x}, {999 - x}]}}'
            yield f'"start_coordinate": [500, {x}], "end_coordinate": [500, {999 - x}]'


# The thinkers of Qwen2.5-Omni and Qwen3-Omni.

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
    """Return a thinker of Qwen2.5-Omni and its processor; weights by torch's seed."""
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
    processor = Qwen2_5OmniProcessor(
        **_readers(patch_size=14), tokenizer=words, chat_template=_TEMPLATE.substitute(names)
    )
    return Qwen2_5OmniThinkerForConditionalGeneration(config), processor


def qwen3_omni(texts: Iterable[str] = ()) -> tuple[PreTrainedModel, ProcessorMixin]:
    """Return a thinker of Qwen3-Omni, with two of four experts per token, and its processor."""
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
    processor = Qwen3OmniMoeProcessor(
        **_readers(patch_size=16), tokenizer=words, chat_template=_TEMPLATE.substitute(names)
    )
    return Qwen3OmniMoeThinkerForConditionalGeneration(config), processor


def _names(tokens: tuple[str, ...]) -> dict[str, str]:
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
    from transformers import Qwen2VLImageProcessor, Qwen2VLVideoProcessor, WhisperFeatureExtractor

    token = (2 * patch_size) ** 2  # pixels
    sizes: dict[str, Any] = {
        "size": {"shortest_edge": 4 * token, "longest_edge": 64 * token},
        "patch_size": patch_size,
        "merge_size": 2,
        "temporal_patch_size": 2,
    }
    sound = WhisperFeatureExtractor(feature_size=128, padding_side="right")
    return {
        "image_processor": Qwen2VLImageProcessor(**sizes),
        "video_processor": Qwen2VLVideoProcessor(**sizes, cap_pixels_per_frame=False),
        "feature_extractor": sound,
    }


# Gemma 4.

_GEMMA_TEMPLATE = """\
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
_GEMMA_NAMES = {
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
    """Return a Gemma 4 with both towers and per-layer embeddings, and its processor."""
    from transformers import (
        Gemma4AudioFeatureExtractor,
        Gemma4Config,
        Gemma4ForConditionalGeneration,
        Gemma4ImageProcessor,
        Gemma4Processor,
        Gemma4VideoProcessor,
    )

    words = tokenizer("<|turn>", "<turn|>", "<pad>", _GEMMA_NAMES, texts)
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
        chat_template=_GEMMA_TEMPLATE,
        image_seq_length=_SOFT_TOKENS,
    )
    return Gemma4ForConditionalGeneration(config), processor
