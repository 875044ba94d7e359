"""The pool's trajectories, each with its binding: they show how subtasks are done."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omnidata.errors import Finding, MediaError
from omnidata.graphs import Graph, places
from omnidata.loaders.task_library import Library, Subtask, Trajectory, fill
from omnidata.media import resolve
from omnidata.types import MediaRef


@dataclass(frozen=True, slots=True)
class Recorded:
    """A trajectory that can be put after another one.

    Attributes:
        observations: pictures, one before each action, by relative path.
        actions: as the pool has them, without the one that says that the subtask is done.
        end: the picture after the last action; empty where there is none.
        last: the action that says that all is done; None where the pool has none.
    """

    observations: tuple[str, ...]
    actions: tuple[Mapping[str, Any], ...]
    end: str = ""
    last: Mapping[str, Any] | None = None


def recordings(
    library: Library, note: Callable[[Finding], None]
) -> dict[tuple[str, int], Recorded]:
    """Return the trajectories of a pool by subtask and index of the binding.

    A trajectory belongs to the binding that makes its instruction out of the template; failing
    that, to the only one whose values its instruction all contains. Unusable ones are findings.
    """
    by_subtask: dict[str, list[Trajectory]] = defaultdict(list)
    for trajectory in library.trajectories:
        if trajectory.task_id:
            continue
        if trajectory.subtask_id in library.subtasks:
            by_subtask[trajectory.subtask_id].append(trajectory)
        else:
            note(
                Finding(
                    "subtask-missing",
                    "warning",
                    f"trajectory {trajectory.id}",
                    f"the pool has no subtask {trajectory.subtask_id!r:.80}",
                    "the id of a subtask",
                    "add the subtask; the trajectory is not used until then",
                )
            )
    found: dict[tuple[str, int], Recorded] = {}
    for name, trajectories in by_subtask.items():
        for number, trajectory in _match(library.subtasks[name], trajectories):
            recorded = None if (name, number) in found else _usable(trajectory, library, note)
            if recorded is not None:
                found[name, number] = recorded
    return found


def _match(subtask: Subtask, trajectories: list[Trajectory]) -> Iterator[tuple[int, Trajectory]]:
    bindings = subtask.parameters or ({},)
    wanted = [" ".join(fill(subtask.template, binding).split()) for binding in bindings]
    values = [[str(value) for value in binding.values()] for binding in bindings]
    rest = []
    for trajectory in trajectories:
        said = " ".join(trajectory.instruction.split())
        equal = [number for number, text in enumerate(wanted) if text == said]
        yield from ((number, trajectory) for number in equal)
        if not equal:
            rest.append(trajectory)
    for trajectory in rest:
        said = trajectory.instruction
        like = [
            number for number, texts in enumerate(values) if all(text in said for text in texts)
        ]
        if len(like) == 1:
            yield like[0], trajectory


def _usable(
    trajectory: Trajectory, library: Library, note: Callable[[Finding], None]
) -> Recorded | None:
    pictures, actions = trajectory.observations, trajectory.actions
    why = ""
    if not actions or len(pictures) - len(actions) not in (0, 1) or not all(pictures):
        why = f"it has {len(actions)} actions and {len(list(filter(None, pictures)))} pictures"
    elif None in trajectory.read_actions:
        why = "an action cannot be read"
    else:
        try:
            for name in dict.fromkeys(pictures):
                resolve(MediaRef("image", library.root, name))
        except MediaError as error:
            why = error.what
    if why:
        note(
            Finding(
                "trajectory-unusable",
                "warning",
                f"trajectory {trajectory.id}",
                why,
                "actions that can be read, a picture before each, and perhaps one after the last",
                "correct it; until then it is not used",
            )
        )
        return None
    return _without_end(trajectory)


def _without_end(trajectory: Trajectory) -> Recorded:
    pictures, actions = trajectory.observations, trajectory.actions
    last = trajectory.read_actions[-1]
    if last is not None and last.kind == "done":
        size = len(actions) - 1
        return Recorded(pictures[:size], actions[:-1], pictures[size], actions[-1])
    size = len(actions)
    return Recorded(pictures[:size], actions, pictures[size] if len(pictures) > size else "")


# A task's trajectory: those of its subtasks, one after another (OmniBench, appendix C.5).

_STATUS = {"status", "Status"}
_END: Mapping[str, Any] = {"function": "", "args": {}, "status": "FINISH"}


def stitch(recorded: Sequence[Recorded]) -> tuple[list[str], list[Mapping[str, Any]]]:
    """Return observations and actions of a whole task, as many of both.

    The end of a subtask (the action without a function, the picture after the last action) is kept
    of the last one only; a status other than CONTINUE, of the very last action only. If a picture
    follows the last subtask's actions and none of them ends it, such an action is added, so that a
    model trained on the task learns to end it. The number `step` of an action and its `history` of
    earlier ones are written anew for the task.

    Args:
        recorded: of the subtasks, in the order in which they are done; not empty.
    """
    observations = [picture for part in recorded for picture in part.observations]
    done = [action for part in recorded for action in part.actions]
    final = recorded[-1]
    if final.end:
        observations.append(final.end)
        done.append(final.last or _END)
    actions: list[Mapping[str, Any]] = []
    for place, action in enumerate(done):
        changed: dict[str, Any] = {}
        if "step" in action:
            changed["step"] = place
        if isinstance(action.get("history"), list):
            changed["history"] = [
                {name: value for name, value in earlier.items() if name != "history"}
                for earlier in actions
            ]
        if place < len(done) - 1:
            changed |= dict.fromkeys(_STATUS & action.keys(), "CONTINUE")
        actions.append({**action, **changed})
    return observations, actions


# Topological orders of a task: all of them where they are few, else a fair sample.


@dataclass(frozen=True, slots=True)
class Orders:
    """Valid orders of a task.

    Attributes:
        listed: some or all of them, sorted by the places of their nodes in the graph.
        total: number of all orders.
    """

    listed: tuple[tuple[str, ...], ...]
    total: int

    @property
    def sampled(self) -> bool:
        """Whether some orders are not listed."""
        return len(self.listed) < self.total


def orders_of(graph: Graph, *, most: int, rng: random.Random) -> Orders:
    """Return the orders of a graph; of more than `most` a uniform sample.

    The number of orders from each set of done nodes on is counted first, so the cost is the number
    of such sets: at most two to the number of nodes.

    Examples:
        >>> graph = Graph(("a", "b", "c"), (("a", "c"),))
        >>> orders_of(graph, most=9, rng=random.Random(0)).listed
        (('a', 'b', 'c'), ('a', 'c', 'b'), ('b', 'a', 'c'))
        >>> found = orders_of(graph, most=2, rng=random.Random(0))
        >>> len(found.listed), found.total, found.sampled
        (2, 3, True)
    """
    whole = (1 << len(graph.nodes)) - 1
    choices: dict[int, list[tuple[int, int]]] = {}  # done -> a node as a bit, the ways from there

    def ways(done: int) -> int:
        if done == whole:
            return 1
        if done not in choices:
            bits = (1 << place for place in places(graph.available(done)))
            choices[done] = [(bit, ways(done | bit)) for bit in bits]
        return sum(count for _, count in choices[done])

    total = ways(0)
    if total <= most:
        return Orders(tuple(graph.orders()), total)
    drawn: set[tuple[int, ...]] = set()
    while len(drawn) < most:
        drawn.add(tuple(_order_of(choices, whole, rng.randrange(total))))
    listed = (tuple(graph.nodes[place] for place in order) for order in sorted(drawn))
    return Orders(tuple(listed), total)


def _order_of(
    choices: Mapping[int, list[tuple[int, int]]], whole: int, number: int
) -> Iterator[int]:
    done = 0
    while done != whole:
        steps = iter(choices[done])
        bit, count = next(steps)
        while number >= count:
            number -= count
            bit, count = next(steps)
        done |= bit
        yield bit.bit_length() - 1
