"""Settings of composed tasks: equal settings and an equal pool make equal bytes.

The levels are those of OmniBench, section 3.1, Table 2. Levels that no graph can have are reported
before anything is tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any, Literal, NamedTuple

from omnidata.errors import UsageError
from omnidata.metrics.graph_complexity import (
    DIMENSIONS,
    LEVELS,
    LIMITS,
    Complexity,
    Dimension,
    Level,
)

EdgeRule = Literal["latest", "every"]
Levels = Mapping[Dimension, Level]
LEAST = 2
"""Subtasks of a task: one alone is no composition."""

MOST = 16
"""Subtasks of a task at most: the cost of counting orders doubles with each."""

_WHAT: Mapping[Dimension, str] = {
    "dependency": "edges",
    "instruction": "subtasks",
    "knowledge": "categories of applications",
    "hierarchy": "subtasks one after another",
    "branch": "subtasks side by side",
}


class Span(NamedTuple):
    """The range of a value, both ends included."""

    low: int
    high: int

    def gap(self, value: int) -> int:
        """Return the distance of a value from the range; 0 inside."""
        return max(self.low - value, value - self.high, 0)


@dataclass(frozen=True, slots=True)
class ComplexityTarget:
    """The wanted complexity of a task.

    Attributes:
        levels: as asked for.
        most: subtasks.
        connected: whether the graph must be.
        spans: of the values of all dimensions.
    """

    levels: Levels
    most: int
    connected: bool
    spans: Mapping[Dimension, Span]

    def gap(self, found: Complexity) -> int:
        """Return the distance of a graph from the target, summed over the dimensions."""
        return sum(span.gap(getattr(found, name)) for name, span in self.spans.items())


def parse_levels(items: Iterable[str]) -> dict[Dimension, Level]:
    """Return levels from the command line.

    Raises:
        UsageError: an unknown dimension or level, or a dimension twice.

    Examples:
        >>> parse_levels(["dependency=hard", "branch=easy"])
        {'dependency': 'hard', 'branch': 'easy'}
    """
    found: dict[Dimension, Level] = {}
    for item in items:
        name, _, value = item.partition("=")
        dimension = next((known for known in DIMENSIONS if known == name.strip()), None)
        level = next((known for known in LEVELS if known == value.strip()), None)
        if dimension is None or level is None or dimension in found:
            raise UsageError(
                "this is not a level, or the dimension is given twice",
                where=f"--level {item}",
                expected=f"one of {', '.join(DIMENSIONS)}, and one of {', '.join(LEVELS)}",
                remedy="e.g. --level dependency=hard --level branch=medium",
            )
        found[dimension] = level
    return found


def complexity_target(levels: Levels, *, most: int) -> ComplexityTarget:
    """Return the target of some levels; it is connected if a connected graph can have them.

    Args:
        levels: of the task.
        most: subtasks of the task.

    Raises:
        UsageError: no graph can have these levels; the message names those that exclude each other.

    Examples:
        >>> complexity_target({"hierarchy": "hard"}, most=10).spans["instruction"]
        Span(low=5, high=10)
        >>> complexity_target({"dependency": "easy", "instruction": "hard"}, most=10).connected
        False
    """
    if not LEAST <= most <= MOST:
        raise UsageError(
            f"{most} subtasks are asked for", where="--most", expected=f"{LEAST} to {MOST}"
        )
    for connected in (True, False):
        found = _tighten(levels, most, connected)
        if found is not None:
            return ComplexityTarget(levels, most, connected, found)
    raise UsageError(
        f"no graph of at most {most} subtasks has {_describe(_culprits(levels, most))}",
        where=" ".join(f"--level {name}={level}" for name, level in levels.items()),
        expected="levels that one graph can have: n subtasks with a longest chain of d and w side "
        "by side have n >= w + d - 1, and at least d - 1 and at least n - w edges",
        remedy="ask for other levels, or for more subtasks with --most",
    )


def _culprits(levels: Levels, most: int) -> Levels:
    for size in range(1, len(levels)):
        for names in combinations(levels, size):
            some = {name: levels[name] for name in names}
            if _tighten(some, most, False) is None:
                return some
    return levels


def _describe(levels: Levels) -> str:
    spans = _level_spans(levels, MOST)
    parts = []
    for name, level in levels.items():
        low, high = spans[name].low, spans[name].high
        size = f"at least {low}" if level == "hard" else f"{low} to {high}"
        parts.append(f"{name}={level} ({size} {_WHAT[name]})")
    return " and ".join(parts)


def _level_spans(levels: Levels, most: int) -> dict[Dimension, Span]:
    """Return the values of the wanted levels (Table 2), and all values of other dimensions."""
    spans = {}
    for name in DIMENSIONS:
        easy, medium = LIMITS[name]
        low, high = int(name != "dependency"), most
        if name == "dependency":
            high = most * (most - 1) // 2
        spans[name] = {
            "easy": Span(low, easy),
            "medium": Span(easy + 1, medium),
            "hard": Span(medium + 1, high),
        }.get(levels.get(name, ""), Span(low, high))
    return spans


def _tighten(levels: Levels, most: int, connected: bool) -> dict[Dimension, Span] | None:
    """Return the values that occur together in a graph; None if there are none.

    These are the laws of every graph (Mirsky, Dilworth); a pool may lack such a graph.
    """
    spans = _level_spans(levels, most)
    possible = [
        found
        for found in _shapes(spans, connected)
        if all(spans[name].gap(value) == 0 for name, value in found.items())
    ]
    if not possible:
        return None
    return {
        name: Span(min(shape[name] for shape in possible), max(shape[name] for shape in possible))
        for name in DIMENSIONS
    }


def _shapes(spans: Mapping[Dimension, Span], connected: bool) -> Iterator[dict[Dimension, int]]:
    sizes = spans["instruction"]
    for nodes in range(max(LEAST, sizes.low), sizes.high + 1):
        for depth in _within(spans["hierarchy"], nodes):
            for width in _within(spans["branch"], nodes):
                if not width + depth - 1 <= nodes <= width * depth:
                    continue
                fewest = max(nodes - width, depth - 1, nodes - 1 if connected else 0)
                levels = [nodes // depth + (place < nodes % depth) for place in range(depth)]
                highest = (nodes**2 - sum(size**2 for size in levels)) // 2  # Turan
                for edges in _ends(spans["dependency"], fewest, highest):
                    for kinds in _ends(spans["knowledge"], 1, nodes):
                        values = (edges, nodes, kinds, depth, width)
                        yield dict(zip(DIMENSIONS, values, strict=True))


def _within(span: Span, most: int) -> Sequence[int]:
    return range(span.low, min(span.high, most) + 1)


def _ends(span: Span, low: int, high: int) -> list[int]:
    low, high = max(span.low, low), min(span.high, high)
    return sorted({low, high}) if low <= high else []


MOST_TASKS = 10_000_000


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings.

    Attributes:
        seed: of all random choices.
        levels: of Table 2, for every task.
        intents: an intent must contain one of these texts, in any case; empty = all.
        edges: see `omnidata.synth.compose.graph_sampler`.
        most: subtasks of a task.
        orders: topological orders that a task lists at most.
        trajectories: of a task, each along another order; 0 = graphs alone.
        initial: categories of resources that exist before a task begins; None = files, whose names
            end with `_path`.
    """

    seed: int = 0
    levels: Levels = field(default_factory=dict)
    intents: tuple[str, ...] = ()
    edges: EdgeRule = "latest"
    most: int = 10
    orders: int = 20
    trajectories: int = 1
    initial: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name, low in (("orders", 1), ("trajectories", 0)):
            if (value := getattr(self, name)) < low:
                raise UsageError(
                    f"{value} {name} are asked for", where=f"--{name}", expected=f"{low} or more"
                )
        if self.trajectories > self.orders:
            raise UsageError(
                f"{self.trajectories} trajectories are asked for, and {self.orders} orders",
                where="--trajectories",
                expected="at most as many as orders: each follows another order",
            )
        self.target()

    def target(self) -> ComplexityTarget:
        """Return the complexity that tasks are to have.

        Raises:
            UsageError: no graph can have the levels.
        """
        return complexity_target(self.levels, most=self.most)

    def as_dict(self) -> Mapping[str, Any]:
        """Return the settings as JSON values."""
        return {**asdict(self), "levels": dict(self.levels)}
