"""OmniBench's trajectories -> steps, one for each action."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from omnidata.actions import Action, Screen
from omnidata.desktop import nearest, words
from omnidata.errors import Finding, MediaError
from omnidata.loaders.grouping import tag_of
from omnidata.loaders.omnibench_apps import categories_of
from omnidata.loaders.omnibench_graphs import said_categories, subtasks_of
from omnidata.loaders.omnibench_library import Library, Subtask, Trajectory
from omnidata.loaders.omnibench_rows import call_of, control_of, rect_of
from omnidata.loaders.place import Note, Place
from omnidata.media import image_size, unsafe
from omnidata.types import MediaRef, Modality, Step

TAGS = ("kind", "app", "category", "platform", "intent")
"""The tags of a step: subtask or task, its application and that one's category, the operating
system, the task's intent. A task of several applications has `SEVERAL` for a name."""

ROLES: Mapping[str, Modality] = {"screenshot": "image"}
SEVERAL = "several"

UNKNOWN: Screen = (0, 0)
"""The screen of a step whose screenshot is no file that can be read."""


@dataclass(slots=True)
class StepReader:
    """Turns the trajectories of a library into steps.

    Attributes:
        library: what there is.
        note: takes the findings.
    """

    library: Library
    note: Note
    _sizes: dict[str, Screen] = field(default_factory=dict)

    def steps(self) -> Iterator[Step]:
        """All steps, in the order of the trajectories."""
        for trajectory in self.library.trajectories:
            if not trajectory.actions:
                Place(trajectory.id, self.note).warn(
                    "trajectory-empty", "the trajectory has no action", "one action at least"
                )
            yield from self._steps(trajectory)

    def _steps(self, trajectory: Trajectory) -> Iterator[Step]:
        tags = self._tags(trajectory)
        owner = _owner(trajectory)
        history: list[Action | None] = []
        screens: list[Screen] = []
        for number, row in enumerate(trajectory.actions):
            sample_id = f"{trajectory.id}/{number}"
            names = trajectory.observations[number : number + 1]
            shot = self._picture(names[0], sample_id) if names and names[0] else None
            screen = self._size(shot)
            action = _action(row)
            self._check_rect(row, screen, sample_id)
            step = Step(
                sample_id=sample_id,
                episode_id=trajectory.id,
                step_index=number,
                num_steps=len(trajectory.actions),
                instruction=trajectory.instruction,
                screen=screen,
                media={"screenshot": shot},
                history=tuple(history),
                history_screens=tuple(screens),
                action=action,
                tags=tags,
                source={**row, **owner},
            )
            yield named(step)
            history.append(action)
            screens.append(screen)

    def _tags(self, trajectory: Trajectory) -> dict[str, str]:
        nodes = trajectory.order or (trajectory.subtask_id,)
        task = self.library.tasks.get(trajectory.task_id)
        known = subtasks_of(nodes, task.source if task else {}, self.library.subtasks)
        subtasks: list[Subtask] = [subtask for subtask in known.values() if subtask]
        apps = [subtask.application for subtask in subtasks if subtask.application]
        categories = categories_of(apps, said_categories(subtasks))
        if task:
            apps, categories = list(task.applications.values()), dict(task.categories)
        found = {
            "kind": "task" if trajectory.task_id else "subtask",
            "app": _one(apps),
            "category": _one(categories.values()),
            "platform": _one(subtask.os for subtask in subtasks),
            "intent": trajectory.intent or (task.intent if task else ""),
        }
        return {tag: value for tag, value in found.items() if value}

    def _picture(self, name: str, sample_id: str) -> MediaRef:
        """A reference; whoever opens it checks the path."""
        if reason := unsafe(name):
            self.note(
                Finding(
                    "path-unsafe",
                    "error",
                    sample_id,
                    f"screenshot: {reason}",
                    f"a path relative to {self.library.root}",
                    "mend the path; the step lacks the picture until then",
                )
            )
        return MediaRef("image", self.library.root, name)

    def _size(self, shot: MediaRef | None) -> Screen:
        """Width and height of a picture; composed tasks show many a picture more than once."""
        if shot is None:
            return UNKNOWN
        if shot.path not in self._sizes:
            try:
                self._sizes[shot.path] = image_size(shot)
            except MediaError:
                self._sizes[shot.path] = UNKNOWN
        return self._sizes[shot.path]

    def _check_rect(self, row: Mapping[str, Any], screen: Screen, sample_id: str) -> None:
        box = rect_of(row)
        if box is None or screen == UNKNOWN:
            return
        if min(box.left, box.top) < 0 or box.right > screen[0] or box.bottom > screen[1]:
            Place(sample_id, self.note).warn(
                "rect-outside",
                f"the rect [{box.left}, {box.top}, {box.right}, {box.bottom}] leaves the screen of "
                f"{screen[0]} x {screen[1]}",
                "a rect inside the screen",
            )


def named(step: Step) -> Step:
    """The step with its episode, and its group: all trajectories of one task or subtask."""
    kind = tag_of(step, "kind")
    episode, owner = f"{kind}/{step.episode_id}", step.source.get(f"{kind}_id")
    return replace(step, episode=episode, group=f"{kind}/{owner}" if owner else episode)


def _owner(trajectory: Trajectory) -> dict[str, str]:
    """Whose a trajectory is, which no action says: what is split goes by it."""
    given = {"task_id": trajectory.task_id, "subtask_id": trajectory.subtask_id}
    return {key: own for key, own in given.items() if own}


def _action(row: Mapping[str, Any]) -> Action | None:
    """What comes nearest to the row's call, in its own words; None for one that cannot be read."""
    call = call_of(row)
    if call is None:
        return None
    control = control_of(row)
    return nearest(call, rect_of(row), said=words(call, f'"{control}"' if control else ""))


def _one(values: Iterable[str]) -> str:
    """The one value, `SEVERAL`, or none."""
    found = list(dict.fromkeys(filter(None, values)))
    return found[0] if len(found) == 1 else SEVERAL if found else ""


def picture_root(data: Path) -> Path:
    """The folder that the pictures of a dataset lie below."""
    return data if data.is_dir() else data.parent
