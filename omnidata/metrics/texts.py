"""How alike two texts are."""

from __future__ import annotations


def token_f1(said: str, wanted: str) -> float:
    """F1 of two texts as sets of words, as GUI-R1 computes it (`guir1/eval/eval_omni.py`).

    Square brackets are left out, and case does not count. Of two single words one may be a part of
    the other.

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
