"""A tokenizer for tiny models: any text, few tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from omnidata.actions import Primitive

_SIZE = 640
_WORDS = """
You are an Android GUI Agent. You are given a task and your action history, with screenshots, audio
and video. You need to perform the next action to complete the task. Output a single valid JSON
object and nothing else. Range: 0-1000, normalized. Goal: Step: Action History: The current
screenshot is the last image. Tap, double tap, long press, swipe up, down, left, right, input text,
back, home, task complete, task impossible. Analyze the current screenshot and output the next
action as JSON. Frame of the clip at second. Open the song, the button, the message and the list.
"""


def tokenizer(special: Sequence[str], names: Mapping[str, str], *, end: str, pad: str) -> PreTrainedTokenizerFast:
    """Byte-pair encoding learned from the words of GUI prompts and the actions of OmniGUI.

    Args:
        special: the family's special tokens; they get the first numbers.
        names: what transformers calls some of them, e.g. {"image_token": "<|image_pad|>"}.
        end: the token that ends a turn.
        pad: the token that fills a batch.
    """
    learned = Tokenizer(models.BPE())
    learned.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    learned.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=_SIZE,
        special_tokens=list(special),
        initial_alphabet=sorted(alphabet),
        show_progress=False,
    )
    learned.train_from_iterator(_corpus(), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=learned,
        eos_token=end,
        pad_token=pad,
        padding_side="left",
        extra_special_tokens=dict(names),
    )


def _corpus() -> Iterator[str]:
    yield from _WORDS.splitlines()
    for action in Primitive:
        for x in range(0, 1000, 50):
            yield f'{{"action_type": {action}, "coordinate": [{x}, {999 - x}]}}'
            yield f'{{"action_type": {action}, "start_coordinate": [{x}, 500], "end_coordinate": '
        yield f'{{"action_type": {action}, "text": "hello"}}'
