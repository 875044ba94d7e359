"""A part of a run: `--shard i/n`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from omnidata.errors import UsageError
from omnidata.types import Step

Shard = tuple[int, int]
"""Which part, counted from 1, of how many."""


def parse_shard(text: str) -> Shard:
    """Read `i/n`.

    Raises:
        UsageError: it is not of that form, or i is not one of 1 to n.

    Examples:
        >>> parse_shard("2/8")
        (2, 8)
    """
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    if match:
        number, count = int(match[1]), int(match[2])
        if 1 <= number <= count:
            return number, count
    raise UsageError(
        "this names no part of a run",
        where=f"--shard {text}",
        expected="i/n with i from 1 to n, e.g. 1/4",
    )


def shard(steps: Sequence[Step], number: int, count: int) -> list[Step]:
    """The steps of one part: every `count`-th episode, whole, in order.

    All parts together are the steps, each once, whatever machine cuts them.

    Args:
        steps: of the run, as chosen.
        number: which part, from 1.
        count: how many parts there are.

    Raises:
        UsageError: there are fewer episodes than parts.
    """
    episodes: dict[str, int] = {}
    for step in steps:
        episodes.setdefault(step.episode, len(episodes))
    if not 1 <= number <= count or count > len(episodes):
        raise UsageError(
            f"the steps are of {len(episodes)} episodes",
            where=f"--shard {number}/{count}",
            expected=f"at most {len(episodes)} parts: an episode is never cut",
        )
    return [step for step in steps if episodes[step.episode] % count == number - 1]
