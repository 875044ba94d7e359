"""A part of the tasks, written by a process from beginning to end."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnidata.errors import OmnidataError
from omnidata.graphs import Graph
from omnidata.jsontext import encode
from omnidata.metrics.graph_coherence import coherence
from omnidata.metrics.graph_complexity import complexity
from omnidata.storage import atomic_write
from omnidata.synth.compose.cards import Card
from omnidata.synth.compose.naming import node_names
from omnidata.synth.compose.orders import Orders, orders_of
from omnidata.synth.compose.search import Sketch
from omnidata.synth.compose.stitching import stitch
from omnidata.synth.compose.tally import Tally
from omnidata.synth.compose.wording import instruct

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

    def path(self, kind: str) -> Path:
        """One of the part's files; the tally is the last to appear."""
        return self.folder / f"{self.number:07d}.{kind}"

    @property
    def whole(self) -> bool:
        """Whether the part has been written."""
        return self.path("tally.json").is_file()


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a part was not written."""

    why: str


def write(job: Job) -> int | Failure:
    """Write a part; the number of its tasks, or why there are none."""
    tally = Tally()
    try:
        with (
            atomic_write(job.path("tasks.jsonl")) as tasks,
            atomic_write(job.path("trajectories.jsonl")) as trajectories,
        ):
            for sketch, text in zip(job.sketches, job.texts, strict=True):
                row, done = _task(job, sketch, text, tally)
                tasks.write(encode(row) + b"\n")
                trajectories.writelines(encode(one) + b"\n" for one in done)
        with atomic_write(job.path("tally.json")) as file:
            file.write(json.dumps(tally.as_dict()).encode())
    except (OSError, OmnidataError) as error:
        return Failure(str(error))
    return len(job.sketches)


def _task(
    job: Job, sketch: Sketch, text: Text, tally: Tally
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The row of a task and those of its trajectories."""
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
            "words": len(instruction.split()),
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
    """Along the orders in which people would do it: those that change applications least."""
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
