"""How subtasks are done: the pool's trajectories, each with the binding that it belongs to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from omnidata.desktop import Finish
from omnidata.errors import Finding, MediaError
from omnidata.loaders.omnibench_library import Library, Subtask, Trajectory
from omnidata.loaders.omnibench_rows import call_of
from omnidata.media import resolve
from omnidata.synth.templates import filled
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
    """The trajectories of a pool by subtask and number of the binding.

    A trajectory belongs to the binding that makes its instruction out of the template; failing
    that, to the only one whose values its instruction all contains.

    Args:
        library: the pool.
        note: takes the findings: what cannot be used.
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
        for number, trajectory in _matched(library.subtasks[name], trajectories):
            recorded = None if (name, number) in found else _usable(trajectory, library, note)
            if recorded is not None:
                found[name, number] = recorded
    return found


def _matched(subtask: Subtask, trajectories: list[Trajectory]) -> Iterator[tuple[int, Trajectory]]:
    """Trajectories with the binding that each belongs to, those with equal instructions first."""
    bindings = subtask.parameters or ({},)
    wanted = [" ".join(filled(subtask.template, binding).split()) for binding in bindings]
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
    """The trajectory, if every action has its picture."""
    pictures, actions = trajectory.observations, trajectory.actions
    why = ""
    if not actions or len(pictures) - len(actions) not in (0, 1) or not all(pictures):
        why = f"it has {len(actions)} actions and {len(list(filter(None, pictures)))} pictures"
    elif any(call_of(action) is None for action in actions):
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
                "mend it; it is not used until then",
            )
        )
        return None
    return _without_end(pictures, actions)


def _without_end(pictures: tuple[str, ...], actions: tuple[Mapping[str, Any], ...]) -> Recorded:
    if isinstance(call_of(actions[-1]), Finish):
        size = len(actions) - 1
        return Recorded(pictures[:size], actions[:-1], pictures[size], actions[-1])
    size = len(actions)
    end = pictures[size] if len(pictures) > size else ""
    return Recorded(pictures[:size], actions, end)
