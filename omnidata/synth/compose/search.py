"""Attempts in numbered lots: what a lot finds follows from the settings and its number alone."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from omnidata.graphs import Graph
from omnidata.metrics.graph_complexity import Complexity, complexity
from omnidata.synth.compose.growth import grow
from omnidata.synth.compose.identity import identity
from omnidata.synth.compose.levels import Aim
from omnidata.synth.compose.order import EdgeRule, Serial
from omnidata.synth.compose.stock import Stock

LOT = 512
"""Attempts of a lot."""


@dataclass(frozen=True, slots=True)
class Search:
    """What all lots have in common.

    Attributes:
        seed: decides.
        aim: what tasks are to be like.
        rule: which edges there are.
    """

    seed: int
    aim: Aim
    rule: EdgeRule


class Sketch(msgspec.Struct, frozen=True, array_like=True):
    """A task that has been found.

    Attributes:
        attempt: its number.
        group: of the stock.
        instances: in an order in which they can be done.
        edges: between places in that order.
        initial: resources that must exist before it begins.
        key: equal for equal tasks, see `identity`.
        measured: dependency, instruction, knowledge, hierarchy, branch.
    """

    attempt: int
    group: int
    instances: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]
    initial: tuple[int, ...]
    key: bytes
    measured: tuple[int, int, int, int, int]


class Near(msgspec.Struct, frozen=True, array_like=True):
    """The graph that came nearest to the levels without having them.

    Attributes:
        gap: how far it is from them.
        measured: as in `Sketch`.
    """

    gap: int
    measured: tuple[int, int, int, int, int]


class Lot(msgspec.Struct, frozen=True, array_like=True):
    """What a lot came to.

    Attributes:
        number: of the lot.
        found: each task once.
        missed: numbers of the attempts that came to a graph of other levels.
        failed: numbers of those that came to no graph.
        nearest: of the missed ones; None if there are none.
    """

    number: int
    found: list[Sketch]
    missed: list[int]
    failed: list[int]
    nearest: Near | None


class Job(NamedTuple):
    """A lot to be tried; picklable."""

    stock: Stock
    search: Search
    number: int


def try_lot(job: Job) -> Lot:
    """Make the attempts of a lot."""
    stock, search, number = job
    found: dict[bytes, Sketch] = {}
    missed: list[int] = []
    failed: list[int] = []
    nearest: Near | None = None
    for attempt in range(number * LOT, (number + 1) * LOT):
        rng = random.Random(f"{search.seed}/compose/{attempt}")
        place = rng.randrange(len(stock.groups))
        serial = grow(stock, stock.groups[place], search.aim, search.rule, rng)
        if serial is None:
            failed.append(attempt)
            continue
        measured = measure(stock, serial)
        gap = search.aim.gap(measured)
        if gap:
            missed.append(attempt)
            if nearest is None or gap < nearest.gap:
                nearest = Near(gap, _values(measured))
            continue
        sketch = _sketch(attempt, place, serial, measured)
        found.setdefault(sketch.key, sketch)
    return Lot(number, list(found.values()), missed, failed, nearest)


def measure(stock: Stock, serial: Serial) -> Complexity:
    """The complexity of a graph in the making."""
    names = [str(place) for place in range(len(serial.instances))]
    kinds = {
        name: str(stock.categories[one]) for name, one in zip(names, serial.instances, strict=True)
    }
    graph = Graph(tuple(names), tuple((names[a], names[b]) for a, b in serial.edges))
    return complexity(graph, kinds, {})


def _sketch(attempt: int, group: int, serial: Serial, measured: Complexity) -> Sketch:
    return Sketch(
        attempt,
        group,
        tuple(serial.instances),
        tuple(serial.edges),
        tuple(serial.opened),
        identity(serial.instances, serial.edges),
        _values(measured),
    )


def _values(measured: Complexity) -> tuple[int, int, int, int, int]:
    return (
        measured.dependency,
        measured.instruction,
        measured.knowledge,
        measured.hierarchy,
        measured.branch,
    )


def distinct(lot: Lot, *, known: set[bytes], wanted: int) -> list[Sketch]:
    """The tasks of a lot that are not known yet, at most so many.

    Args:
        lot: the next one.
        known: keys of earlier ones; those of the new ones are added.
        wanted: at most.
    """
    new: list[Sketch] = []
    for sketch in lot.found:
        if len(new) == wanted:
            break
        if sketch.key not in known:
            known.add(sketch.key)
            new.append(sketch)
    return new
