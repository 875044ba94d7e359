"""What several answers to one question say together: which one most agree on, and how much."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

_T = TypeVar("_T")


def alike(answers: Sequence[_T], same: Callable[[_T, _T], bool]) -> list[int]:
    """For each answer how many are the same as it, itself included.

    Args:
        answers: to one question.
        same: whether two are the same; symmetric, and need not be transitive, as nearness is not.

    Examples:
        >>> alike([1, 2, 9], lambda a, b: abs(a - b) <= 1)
        [2, 2, 1]
    """
    return [
        1 + sum(same(a, b) for m, b in enumerate(answers) if m != n) for n, a in enumerate(answers)
    ]


def plurality(votes: Sequence[int]) -> int:
    """The number of the answer that most are the same as; the first of equals.

    X. Wang et al., Self-Consistency Improves Chain of Thought Reasoning in Language Models (2023),
    section 2, takes the answer that most reasoning paths end in.

    Args:
        votes: what `alike` gives, not empty.

    Examples:
        >>> plurality([1, 2, 2])
        1
    """
    return max(range(len(votes)), key=lambda number: (votes[number], -number))


def agreement(votes: Sequence[int]) -> float | None:
    """The share of the pairs of answers that are the same; None of fewer than two.

    Args:
        votes: what `alike` gives.

    Examples:
        >>> agreement([2, 2, 1]), agreement([1])
        (0.3333333333333333, None)
    """
    n = len(votes)
    return (sum(votes) - n) / (n * (n - 1)) if n > 1 else None
