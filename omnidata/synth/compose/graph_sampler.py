"""One attempt at a task: a graph that grows from below, towards what was asked for."""

from __future__ import annotations

import random
from dataclasses import dataclass

from omnidata.metrics.graph_complexity import Dimension
from omnidata.synth.compose.levels import LEAST, Aim
from omnidata.synth.compose.partial_plan import EdgeRule, Serial
from omnidata.synth.compose.pool_index import Group, Stock

_TRIED = 6
"""Candidates of which the best is taken."""

_MAKE = 0.6
"""How often a file that may exist initially is made by a subtask, where one can."""


@dataclass(frozen=True, slots=True)
class _Taste:
    """What one attempt prefers, each in [-1, 1].

    Attributes:
        deep: longer chains.
        wide: more subtasks of one depth.
        mixed: more categories of applications.
        dense: more edges.
    """

    deep: float
    wide: float
    mixed: float
    dense: float


def grow(stock: Stock, group: Group, aim: Aim, rule: EdgeRule, rng: random.Random) -> Serial | None:
    """Compose one graph of a group's instances.

    Args:
        stock: the pool.
        group: of the intent.
        aim: what it is to be like; it need not be when it comes back, but for its parts where they
            must be connected.
        rule: which edges there are.
        rng: decides.

    Returns:
        None where the attempt came to nothing.
    """
    size = aim.spans["instruction"]
    wanted = rng.randint(size.low, size.high)
    if "hard" in (aim.levels.get("branch"), aim.levels.get("hierarchy")):
        wanted = max(wanted, rng.randint(size.low, size.high))
    taste = _Taste(
        deep=_lean(aim, "hierarchy", rng),
        wide=_lean(aim, "branch", rng),
        mixed=_lean(aim, "knowledge", rng),
        dense=_lean(aim, "dependency", rng),
    )
    serial = Serial(stock, rule)
    while len(serial.instances) < wanted:
        following = _best(serial, stock, group, aim, taste, wanted, rng)
        if following is None:
            break
        serial = following
    if len(serial.instances) < LEAST:
        return None
    return None if aim.connected and not serial.connected else serial


def _lean(aim: Aim, name: Dimension, rng: random.Random) -> float:
    by_chance = rng.uniform(-1, 1)
    return {"easy": -1.0, "medium": 0.0, "hard": 1.0}.get(aim.levels.get(name, ""), by_chance)


def _best(
    serial: Serial,
    stock: Stock,
    group: Group,
    aim: Aim,
    taste: _Taste,
    wanted: int,
    rng: random.Random,
) -> Serial | None:
    best, score = None, float("-inf")
    for _ in range(_TRIED):
        instance = _candidate(serial, group, aim, rng)
        tried = serial.copy()
        if instance is None or not _reach(tried, instance, stock, group, wanted, rng):
            continue
        found = _score(serial, tried, stock, aim, taste)
        if found is not None and (found := found + rng.random()) > score:
            best, score = tried, found
    return best


def _candidate(serial: Serial, group: Group, aim: Aim, rng: random.Random) -> int | None:
    """Any instance; one that uses what is there, where all parts are to be connected."""
    if not aim.connected or not serial.instances:
        return rng.choice(group.instances)
    users = group.users.get(rng.choice(serial.made), ()) if serial.made else ()
    return rng.choice(users) if users else None


def _reach(
    serial: Serial, instance: int, stock: Stock, group: Group, wanted: int, rng: random.Random
) -> bool:
    """Add an instance, and before it what provides its inputs; False if that cannot be done."""
    for needed in stock.inputs[instance]:
        if serial.has(needed):
            continue
        makers = group.makers.get(needed, ())
        exists = needed in stock.initial
        if exists and (not makers or serial.needs(needed) or rng.random() >= _MAKE):
            continue
        if not makers or len(serial.instances) + 2 > wanted:
            if exists:
                continue
            return False
        if not _reach(serial, rng.choice(makers), stock, group, wanted - 1, rng):
            return False
    if len(serial.instances) >= wanted or serial.refuses(instance):
        return False
    serial.add(instance)
    return True


def _score(before: Serial, after: Serial, stock: Stock, aim: Aim, taste: _Taste) -> float | None:
    """How well a continuation fits; None if it exceeds what may be."""
    depth, edges = max(after.depths), len(after.edges)
    kinds = len({stock.categories[one] for one in after.instances})
    spans = aim.spans
    if depth > spans["hierarchy"].high or edges > spans["dependency"].high:
        return None
    if kinds > spans["knowledge"].high:
        return None
    if not before.instances:
        return 0.0
    added = len(after.instances) - len(before.instances)
    joined = (edges - len(before.edges)) / added
    deeper = (depth - max(before.depths)) / added
    kinds_before = len({stock.categories[one] for one in before.instances})
    more = (kinds - kinds_before) / added
    wider = (_widest(after) - _widest(before)) / added
    return (
        2 * taste.deep * deeper + 2 * taste.wide * wider + 2 * taste.mixed * more
    ) + taste.dense * joined


def _widest(serial: Serial) -> int:
    """The most subtasks of one depth: at most the width, and fast to see."""
    return max(map(serial.depths.count, serial.depths))
