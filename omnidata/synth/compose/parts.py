"""A part of the tasks, written by one process."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from omnidata.errors import OmnidataError
from omnidata.graphs import Graph
from omnidata.jsontext import encode
from omnidata.metrics.graph_complexity import DIMENSIONS, LEVELS, complexity
from omnidata.metrics.graphs import coherence
from omnidata.storage import atomic_write, write_json
from omnidata.synth.compose.graph_sampler import node_names
from omnidata.synth.compose.instructions import instruct
from omnidata.synth.compose.pool import Card
from omnidata.synth.compose.search import Sketch
from omnidata.synth.compose.settings import Settings
from omnidata.synth.compose.trajectories import Orders, orders_of, stitch
from omnidata.synth.folder import Failure, add_tallies
from omnidata.tasks.statistics import words

# What was composed, counted as OmniBench's figure 3 does.

_AXES = ("intents", "apps", "categories", "apps_per_task", "repeated_subtasks")
"""Counts over tasks, in addition to the levels and the values of each dimension."""

_BY_DIMENSION = tuple((axis, name) for axis in ("levels", "values") for name in DIMENSIONS)
_TALLY = ("sums", *_AXES, *map("/".join, _BY_DIMENSION))


def total(jobs: Iterable[Job]) -> dict[str, Any]:
    """Return the counts of all parts as JSON values, in the order of their names."""
    tally = add_tallies(_TALLY, (job.file("tally.json") for job in jobs))
    counts = {axis: dict(sorted(tally[axis].items())) for axis in ("sums", *_AXES)}
    levels = {
        name: {level: tally[f"levels/{name}"][level] for level in LEVELS} for name in DIMENSIONS
    }
    values = {
        name: {
            value: tally[f"values/{name}"][value]
            for value in sorted(tally[f"values/{name}"], key=int)
        }
        for name in DIMENSIONS
    }
    return {"sums": counts.pop("sums"), "levels": levels, "values": values, **counts}


SIZE = 256
"""Tasks of a part: so much is lost where a process is killed."""


class Text(NamedTuple):
    """A task's instruction by a model, and what its row says about that; empty = by template."""

    task: int
    instruction: str = ""
    written_by: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A part to be written; picklable.

    Attributes:
        folder: of all parts.
        number: of the part, from 0 on.
        settings: of the composition.
        sketches, texts: the tasks and their instructions.
        cards: the instances that they use, by number.
        intents: of the groups.
        initial: resources that exist initially, by number: category and value.
        known: ids of all subtasks of the pool.
    """

    folder: Path
    number: int
    settings: Settings
    sketches: Sequence[Sketch]
    texts: Sequence[Text]
    cards: Mapping[int, Card]
    intents: Sequence[str]
    initial: Mapping[int, tuple[str, str | None]]
    known: frozenset[str]

    @property
    def path(self) -> Path:
        """The prefix of the part's files."""
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
    tally = {axis: Counter[str]() for axis in _TALLY}
    try:
        with (
            atomic_write(job.file("tasks.jsonl")) as tasks,
            atomic_write(job.file("trajectories.jsonl")) as trajectories,
        ):
            for sketch, text in zip(job.sketches, job.texts, strict=True):
                row, done = _task(job, sketch, text, tally)
                tasks.write(encode(row) + b"\n")
                trajectories.writelines(encode(one) + b"\n" for one in done)
        write_json(job.file("tally.json"), tally)
    except (OSError, OmnidataError) as error:
        return Failure(str(error))
    return None


def _task(
    job: Job, sketch: Sketch, text: Text, tally: Mapping[str, Counter[str]]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    cards = [job.cards[number] for number in sketch.instances]
    names = node_names([card.subtask for card in cards], job.known)
    graph = Graph(names, tuple((names[first], names[second]) for first, second in sketch.edges))
    by_name = dict(zip(names, cards, strict=True))
    apps = {name: card.application for name, card in by_name.items()}
    categories = {card.application: card.category for card in cards}
    rng = random.Random(f"{job.settings.seed}/orders/{sketch.attempt}")
    orders = orders_of(graph, most=job.settings.orders, rng=rng)
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
    tally["sums"].update(
        tasks=1,
        edges=measured.dependency,
        subtasks=measured.instruction,
        words=words(instruction),
        trajectories=len(done),
        steps=sum(len(one["actions"]) for one in done),
        orders_listed=len(orders.listed),
        tasks_with_more_orders=int(orders.sampled),
    )
    for name, level in measured.levels().items():
        tally[f"levels/{name}"][level] += 1
        tally[f"values/{name}"][str(getattr(measured, name))] += 1
    tally["intents"][intent if job.intents[sketch.group] else ""] += 1
    tally["apps"].update(set(apps.values()))
    tally["categories"].update(set(categories.values()))
    tally["apps_per_task"][str(len(set(apps.values())))] += 1
    tally["repeated_subtasks"][str(sum(count > 1 for count in counts.values()))] += 1
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
    chosen = sorted(number for _, _, number in sorted(ranked)[: job.settings.trajectories])
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
