"""Whose sound or clip an episode gets: that of another one, whose answer differs where known.

Every episode's media are used about once, so the sounds of a control are those of the data; only
which step they belong to is wrong.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Mapping, Sequence

from omnidata.types import Step

Episodes = Mapping[str, Sequence[Step]]
"""The steps that have the medium, by episode."""
Tells = Callable[[Step, Step], bool]
"""Whether the medium of two steps differs."""


def partners(
    episodes: Episodes, *, seed: int = 0, tells: Tells = lambda own, other: True
) -> dict[str, str | None]:
    """For each episode another one; never itself.

    Of twins, episodes that a medium alone tells apart, it is one whose answers differ, if this is
    the medium. Others get an episode of their app, else of their language, else any, but none of
    their own group of twins, whose answers or whose medium may be the same.

    Args:
        episodes: those that have the medium.
        seed: of the order in which they follow each other.
        tells: asked of steps of twins with different answers.

    Returns:
        Episode -> the other one; None where there is none.
    """
    order = list(episodes)
    random.Random(seed).shuffle(order)
    groups = {key: steps[0].group for key, steps in episodes.items()}
    found: dict[str, str | None] = {}
    for ring in _rings(order, lambda key: groups[key]):
        for key in ring:
            if twin := _twin(key, ring, episodes, tells):
                found[key] = twin
    tiers: Sequence[Callable[[str], Hashable]] = (
        lambda key: episodes[key][0].tags.get("app"),
        lambda key: episodes[key][0].tags.get("language"),
        lambda key: None,
    )
    for tier in tiers:
        for ring in _rings(order, tier):
            for place, key in enumerate(ring):
                if key not in found:
                    following = (*ring[place + 1 :], *ring[:place])
                    other = next((o for o in following if groups[o] != groups[key]), None)
                    if other:
                        found[key] = other
    return {key: found.get(key) for key in episodes}


def _rings(order: Sequence[str], of: Callable[[str], Hashable]) -> list[list[str]]:
    """The episodes by what they have in common, each part in the given order."""
    rings: dict[Hashable, list[str]] = {}
    for key in order:
        rings.setdefault(of(key), []).append(key)
    return list(rings.values())


def _twin(key: str, ring: Sequence[str], episodes: Episodes, tells: Tells) -> str | None:
    """The next of its group with other answers, at as many steps as any has; None without one."""
    place = ring.index(key)
    following = [*ring[place + 1 :], *ring[:place]]
    if not following:
        return None
    counts = [_differing(episodes[key], episodes[other], tells) for other in following]
    most = max(counts)
    return following[counts.index(most)] if most else None


def _differing(own: Sequence[Step], other: Sequence[Step], tells: Tells) -> int:
    """At how many steps the answers of two episodes are known to differ, and the medium does."""
    others = {step.step_index: step for step in other}
    pairs = [(step, others[step.step_index]) for step in own if step.step_index in others]
    return sum(
        a.action is not None and b.action is not None and a.action != b.action and tells(a, b)
        for a, b in pairs
    )
