"""A part of the tasks, written by a process from beginning to end."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnidata.errors import OmnidataError
from omnidata.figures import save, spellings
from omnidata.graphs import Graph
from omnidata.jsontext import encode
from omnidata.metrics.graph_complexity import DIMENSIONS, LEVELS, Complexity, complexity
from omnidata.metrics.graphs import coherence
from omnidata.storage import atomic_write
from omnidata.synth.compose.graph_sampler import node_names
from omnidata.synth.compose.instructions import instruct
from omnidata.synth.compose.pool import Card
from omnidata.synth.compose.search import Sketch
from omnidata.synth.compose.trajectories import Orders, orders_of, stitch
from omnidata.synth.folder import Failure
from omnidata.tasks.statistics import words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# What was composed, counted as OmniBench's figure 3 does; counts of parts add up.

AXES = ("intents", "apps", "categories", "apps_per_task", "repeated_subtasks")
"""What is counted by tasks, beside the levels and the values of each dimension."""


class Tally:
    """Counts of tasks."""

    def __init__(self) -> None:
        self._sums: Counter[str] = Counter()
        self._axes: dict[str, Counter[str]] = {axis: Counter() for axis in AXES}
        self._values: dict[str, Counter[int]] = {name: Counter() for name in DIMENSIONS}
        self._levels: dict[str, Counter[str]] = {name: Counter() for name in DIMENSIONS}

    def add(
        self,
        measured: Complexity,
        *,
        intent: str,
        apps: Sequence[str],
        categories: Iterable[str],
        repeated: int,
        sums: Mapping[str, int],
    ) -> None:
        """Count a task.

        Args:
            measured: its complexity.
            intent: what it is for.
            apps: of its nodes.
            categories: of its applications.
            repeated: subtasks that it has more than once.
            sums: whatever is added up.
        """
        self._sums.update(tasks=1, edges=measured.dependency, subtasks=measured.instruction, **sums)
        for name, level in measured.levels().items():
            self._levels[name][level] += 1
            self._values[name][getattr(measured, name)] += 1
        self._axes["intents"][intent] += 1
        self._axes["apps"].update(set(apps))
        self._axes["categories"].update(set(categories))
        self._axes["apps_per_task"][str(len(set(apps)))] += 1
        self._axes["repeated_subtasks"][str(repeated)] += 1

    def merge(self, other: Mapping[str, Any]) -> None:
        """Add what `as_dict` gave of another one."""
        self._sums.update(other["sums"])
        for axis in AXES:
            self._axes[axis].update(other[axis])
        for name in DIMENSIONS:
            self._levels[name].update(other["levels"][name])
            self._values[name].update({int(k): n for k, n in other["values"][name].items()})

    def as_dict(self) -> dict[str, Any]:
        """Return the counts as JSON values, in the order of their names."""
        return {
            "sums": dict(sorted(self._sums.items())),
            "levels": {
                name: {level: self._levels[name][level] for level in LEVELS} for name in DIMENSIONS
            },
            "values": {
                name: {
                    str(value): self._values[name][value] for value in sorted(self._values[name])
                }
                for name in DIMENSIONS
            },
            **{axis: dict(sorted(counts.items())) for axis, counts in self._axes.items()},
        }


SIZE = 256
"""Tasks of a part: so much is lost where a process is killed."""


@dataclass(frozen=True, slots=True)
class Text:
    """A task's instruction.

    Attributes:
        task: number of the task.
        instruction: by a model; empty = by template.
        written_by: what goes into the task's row about it.
    """

    task: int
    instruction: str = ""
    written_by: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A part to be written; picklable.

    Attributes:
        folder: of all parts.
        number: of the part, from 0 on.
        seed: of the composition.
        sketches: the tasks.
        texts: their instructions, in the same order.
        cards: the instances that they use, by number.
        intents: of the groups.
        initial: resources that exist initially, by number: category and value.
        known: ids of all subtasks of the pool.
        orders, trajectories: see `Settings`.
    """

    folder: Path
    number: int
    seed: int
    sketches: Sequence[Sketch]
    texts: Sequence[Text]
    cards: Mapping[int, Card]
    intents: Sequence[str]
    initial: Mapping[int, tuple[str, str | None]]
    known: frozenset[str]
    orders: int
    trajectories: int

    @property
    def path(self) -> Path:
        """What the names of the part's files begin with."""
        return self.folder / f"{self.number:07d}"

    def file(self, kind: str) -> Path:
        """Return one of the part's files; the tally appears last."""
        return self.path.with_suffix(f".{kind}")

    @property
    def size(self) -> int:
        """Tasks of the part."""
        return len(self.sketches)

    @property
    def whole(self) -> bool:
        """Whether the part has been written."""
        return self.file("tally.json").is_file()


def write(job: Job) -> Failure | None:
    """Write a part."""
    tally = Tally()
    try:
        with (
            atomic_write(job.file("tasks.jsonl")) as tasks,
            atomic_write(job.file("trajectories.jsonl")) as trajectories,
        ):
            for sketch, text in zip(job.sketches, job.texts, strict=True):
                row, done = _task(job, sketch, text, tally)
                tasks.write(encode(row) + b"\n")
                trajectories.writelines(encode(one) + b"\n" for one in done)
        with atomic_write(job.file("tally.json")) as file:
            file.write(json.dumps(tally.as_dict()).encode())
    except (OSError, OmnidataError) as error:
        return Failure(str(error))
    return None


def _task(
    job: Job, sketch: Sketch, text: Text, tally: Tally
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    cards = [job.cards[number] for number in sketch.instances]
    names = node_names([card.subtask for card in cards], job.known)
    graph = Graph(names, tuple((names[first], names[second]) for first, second in sketch.edges))
    by_name = dict(zip(names, cards, strict=True))
    apps = {name: card.application for name, card in by_name.items()}
    categories = {card.application: card.category for card in cards}
    rng = random.Random(f"{job.seed}/orders/{sketch.attempt}")
    orders = orders_of(graph, most=job.orders, rng=rng)
    intent = job.intents[sketch.group] or cards[-1].instruction
    instruction = text.instruction or instruct(
        intent, [(card.application, card.instruction) for card in cards], sketch.edges
    )
    measured = complexity(graph, apps, categories)
    row = {
        "task_id": str(text.task),
        "task_instruction": instruction,
        "dag": graph.as_json(),
        "task_intent": intent,
        "successful_topo": [list(order) for order in orders.listed],
        "application": apps,
        "category": categories,
        "subtasks": {name: card.subtask for name, card in by_name.items()},
        "parameters": {name: card.binding for name, card in by_name.items()},
        "initial_resources": [list(job.initial[number]) for number in sketch.initial],
        "orders_total": orders.total,
        "levels": measured.levels(),
    }
    if text.written_by:
        row["instruction_by"] = dict(text.written_by)
    done = _trajectories(job, orders, apps, by_name, rng, row)
    counts = Counter(card.subtask for card in cards)
    tally.add(
        measured,
        intent=intent if job.intents[sketch.group] else "",
        apps=list(apps.values()),
        categories=categories.values(),
        repeated=sum(count > 1 for count in counts.values()),
        sums={
            "words": words(instruction),
            "trajectories": len(done),
            "steps": sum(len(one["actions"]) for one in done),
            "orders_listed": len(orders.listed),
            "tasks_with_more_orders": int(orders.sampled),
        },
    )
    return row, done


def _trajectories(
    job: Job,
    orders: Orders,
    apps: Mapping[str, str],
    cards: Mapping[str, Card],
    rng: random.Random,
    row: Mapping[str, Any],
) -> list[dict[str, Any]]:
    ranked = [
        (-coherence(order, apps), rng.random(), number)
        for number, order in enumerate(orders.listed)
    ]
    chosen = sorted(number for _, _, number in sorted(ranked)[: job.trajectories])
    rows = []
    for number in chosen:
        order = orders.listed[number]
        recorded = [cards[node].recorded for node in order]
        observations, actions = stitch([one for one in recorded if one])
        rows.append(
            {
                "trajectory_id": f"{row['task_id']}({number})",
                "task_id": row["task_id"],
                "topological_order": list(order),
                "instruction": row["task_instruction"],
                "intent": row["task_intent"],
                "observations": observations,
                "actions": actions,
            }
        )
    return rows


# The distribution of composed tasks as a figure (OmniBench, figure 3).

_COLOURS = {"easy": "#a9c6e2", "medium": "#5f93c4", "hard": "#2b5c8a"}
_GREY = "#8a8a8a"
_MOST_BARS = 20
_LONGEST = 52


def draw(made: Mapping[str, Any], path: Path) -> None:
    """Write the figure in one move.

    Args:
        made: of a report.
        path: see `omnidata.figures.check`.
    """
    save(lambda: figure(made), path)


def figure(made: Mapping[str, Any]) -> Figure:
    """Four panels: levels of each dimension, subtasks of a task, intents, apps.

    Args:
        made: of a report.
    """
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(12, 8), layout="constrained")
    panels = drawn.subplot_mosaic([["a", "b"], ["c", "d"]], width_ratios=(1.2, 1))
    total = made["sums"]["tasks"]
    _levels(panels["a"], made["levels"], total)
    axes = panels["b"]
    values = made["values"]["instruction"]
    numbers = sorted(map(int, values))
    axes.bar(numbers, [values[str(number)] for number in numbers], color=_GREY)
    axes.set_xticks(numbers)
    _finish(axes, "(b) Subtasks of a task")
    _draw_bars(panels["c"], "(c) Intents", made["intents"])
    _draw_bars(panels["d"], "(d) Apps", made["apps"])
    return drawn


def _levels(axes: Axes, levels: Mapping[str, Mapping[str, int]], total: int) -> None:
    starts = [0] * len(DIMENSIONS)
    for level in LEVELS:
        counts = [levels[name][level] for name in DIMENSIONS]
        bars = axes.barh(DIMENSIONS, counts, left=starts, color=_COLOURS[level], label=level)
        shares = [f"{100 * count / total:.0f} %" if count else "" for count in counts]
        ink = "white" if level == "hard" else "black"
        axes.bar_label(bars, shares, label_type="center", fontsize=8, color=ink)
        starts = [start + count for start, count in zip(starts, counts, strict=True)]
    axes.invert_yaxis()
    axes.legend(ncols=3, frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1, 1))
    _finish(axes, f"(a) {total:,} tasks by complexity")


def _draw_bars(axes: Axes, title: str, counts: Mapping[str, int]) -> None:
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:_MOST_BARS]
    families, written = spellings(name for name, _ in ranked)
    places: Sequence[int] = range(len(ranked))
    axes.barh(places, [count for _, count in ranked], color=_GREY)
    axes.set_yticks(
        places,
        [written[name][:_LONGEST] or "-" for name, _ in ranked],
        fontfamily=families,
        fontsize=8,
        parse_math=False,
    )
    axes.invert_yaxis()
    more = f", the {_MOST_BARS} most frequent of {len(counts)}" if len(counts) > _MOST_BARS else ""
    _finish(axes, title + more)


def _finish(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
