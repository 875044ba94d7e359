"""Similarity of texts."""

from __future__ import annotations


def token_f1(said: str, wanted: str) -> float:
    """Return the F1 of two texts as sets of words, as GUI-R1's `guir1/eval/eval_omni.py` does.

    Square brackets and case are ignored. A single word also matches a single word that contains it.

    Examples:
        >>> token_f1("Buy milk", "buy some milk")
        0.8
        >>> token_f1("down", "scrolldown")
        1.0
    """
    one, other = (
        {*text.replace("[", "").replace("]", "").lower().split()} for text in (said, wanted)
    )
    if len(one) == len(other) == 1:
        (word,), (right,) = one, other
        if word in right or right in word:
            return 1.0
    common = len(one & other)
    return 2 * common / (len(one) + len(other)) if common else 0.0
