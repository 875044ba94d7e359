"""Agreement of several answers to one question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

_T = TypeVar("_T")


def alike(answers: Sequence[_T], same: Callable[[_T, _T], bool]) -> list[int]:
    """Return for each answer the number of equal answers, including itself.

    Args:
        answers: to one question.
        same: whether two are equal; symmetric, but not necessarily transitive, like nearness.

    Examples:
        >>> alike([1, 2, 9], lambda a, b: abs(a - b) <= 1)
        [2, 2, 1]
    """
    return [
        1 + sum(same(a, b) for m, b in enumerate(answers) if m != n) for n, a in enumerate(answers)
    ]


def plurality(votes: Sequence[int]) -> int:
    """Return the index of the answer with the most votes, the first one on a tie.

    X. Wang et al., Self-Consistency Improves Chain of Thought Reasoning in Language Models (2023),
    section 2, takes the answer of most reasoning paths.

    Args:
        votes: as `alike` returns them, not empty.

    Examples:
        >>> plurality([1, 2, 2])
        1
    """
    return max(range(len(votes)), key=lambda number: (votes[number], -number))


def agreement(votes: Sequence[int]) -> float | None:
    """Return the share of equal pairs of answers; None for fewer than two answers.

    Args:
        votes: as `alike` returns them.

    Examples:
        >>> agreement([2, 2, 1]), agreement([1])
        (0.3333333333333333, None)
    """
    n = len(votes)
    return (sum(votes) - n) / (n * (n - 1)) if n > 1 else None
