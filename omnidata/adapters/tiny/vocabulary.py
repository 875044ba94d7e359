"""What tiny models share: their width, and a tokenizer that takes any text and needs few tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from omnidata.actions import Primitive

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

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
    """Byte pairs learned from the words of GUI prompts and from OmniGUI's actions.

    Args:
        begin: the token that begins a turn.
        end: the token that ends it, and an answer.
        pad: the token that fills a batch, on the left.
        names: what transformers calls other special tokens: {"image_token": "<|image_pad|>"}.
        texts: learn from these instead, and merge over the words of a line: a line that comes often
            becomes one token.
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
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]  # theirs has no types
        tokenizer_object=learned,
        eos_token=end,
        pad_token=pad,
        padding_side="left",
        extra_special_tokens=dict(names),
    )


def _corpus() -> Iterator[str]:
    yield from _WORDS.splitlines()
    for action in Primitive:
        yield f'{{"action_type": {action}, "text": "hello"}}'
        for x in range(0, 1000, 50):
            yield f'{{"action_type": {action}, "coordinate": [{x}, {999 - x}]}}'
            yield f'"start_coordinate": [500, {x}], "end_coordinate": [500, {999 - x}]'
