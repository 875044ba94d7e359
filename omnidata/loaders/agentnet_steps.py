"""Trajectories of AgentNet -> steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from omnidata.actions import Action, Screen
from omnidata.agentnet import Deed
from omnidata.errors import MediaError
from omnidata.loaders.agentnet_files import STEPS, Trajectory, images
from omnidata.loaders.agentnet_recording import Timeline, timeline
from omnidata.loaders.agentnet_rows import (
    action_of,
    broken_alternatives,
    recorded_otherwise,
    truths_of,
)
from omnidata.loaders.place import Note, Place, short
from omnidata.media import image_size, unsafe
from omnidata.types import MediaRef, Modality, Step

TAGS: Final = ("form", "part", "completed")
"""The tags of a step: the form of its data (agentnet, agentnetbench), the file that it lies in
where that is one of many trajectories, and whether the task was completed, as the row says."""

ROLES: Final[Mapping[str, Modality]] = {"screenshot": "image", "video": "video"}
"""`screenshot` is what was seen before the action; `video` what the recording shows up to it, where
there is one."""

UNKNOWN: Final[Screen] = (0, 0)
MAX_STEPS: Final = 1000
"""Of one trajectory; every step holds the history before it, so length costs its square."""

_INSTRUCTIONS: Final = ("instruction", "high_level_task_description", "user_task_description")


@dataclass(slots=True)
class StepReader:
    """Turns trajectories into steps.

    Attributes:
        root: the dataset's folder.
        note: takes the findings.
        skipped: trajectories and steps that became none.
    """

    root: Path
    note: Note
    skipped: int = 0
    _seen: set[str] = field(default_factory=set)
    _folders: dict[Path, Path] = field(default_factory=dict)

    def steps(self, found: Trajectory) -> Iterator[Step]:
        """The steps of a trajectory, in order; none where it cannot be used."""
        place = Place(found.where, self.note)
        own = self._identity(found.row, place)
        rows = self._rows(found, place) if own is not None else []
        if own is None or not rows:
            self.skipped += 1
            return
        self._seen.add(own)
        told = {key: value for key, value in found.row.items() if key != STEPS[found.form]}
        sources: list[dict[str, Any]] = [
            {"form": found.form, "task": told, "step": row} for row in rows
        ]
        names = [f"{own}/{number}" for number in range(len(rows))]
        done = [self._truth(source, name) for source, name in zip(sources, names, strict=True)]
        line = self._timeline(found, done, own)
        instruction = self._instruction(found.row, place)
        tags = _tags(found)
        history: list[Action | None] = []
        screens: list[Screen] = []
        for number, (name, source) in enumerate(zip(names, sources, strict=True)):
            shot, screen = self._picture(found, source["step"], name)
            action = self._action(source, name) if done[number] else None
            yield Step(
                sample_id=name,
                episode_id=own,
                step_index=number,
                num_steps=len(rows),
                instruction=instruction,
                screen=screen,
                media={"screenshot": shot, "video": line.clip(number) if line else None},
                history=tuple(history),
                history_screens=tuple(screens),
                action=action,
                tags=tags,
                source=source,
            )
            history.append(action)
            screens.append(screen)

    def _identity(self, row: Mapping[str, Any], place: Place) -> str | None:
        own = row.get("task_id")
        if not isinstance(own, str) or not own.strip():
            place.refuse("id-missing", f"task_id is {short(own)}", "a text")
            return None
        if own in self._seen:
            place.refuse("id-repeated", f"there is a trajectory {short(own)} already", "its own id")
            return None
        return own

    def _rows(self, found: Trajectory, place: Place) -> list[Mapping[str, Any]]:
        rows = found.row[STEPS[found.form]]
        what = ""
        if not 0 < len(rows) <= MAX_STEPS:
            what = f"it has {len(rows)} steps"
        elif not all(isinstance(row, dict) for row in rows):
            what = "a step is no object"
        if not what:
            return list(rows)
        place.refuse("steps-unusable", what, f"1 to {MAX_STEPS} JSON objects")
        return []

    def _truth(self, source: Mapping[str, Any], name: str) -> Sequence[Deed]:
        """What a step does; empty with a finding where nobody can tell."""
        place = Place(name, self.note)
        try:
            truth = truths_of(source)[0]
        except ValueError as error:
            place.refuse(
                "action-unusable",
                str(error),
                "calls of pyautogui or computer, or ground truth actions with types and parameters",
                "mend the row; the step is not judged until then, and its text is never run",
            )
            return ()
        if reason := broken_alternatives(source):
            place.warn(
                "alternative-unusable",
                reason,
                "lists of actions like the ground truth",
                "mend the row; the alternative is left out until then",
            )
        if reason := recorded_otherwise(source):
            place.warn(
                "recorded-differs",
                reason,
                "the recorded action, or an alternative that is one with it",
                "mend the row; the ground truth is judged by, and histories show what was recorded",
            )
        return truth

    def _action(self, source: Mapping[str, Any], name: str) -> Action | None:
        found = action_of(source)
        if found is None:
            Place(name, self.note).warn(
                "action-inexpressible",
                "no single primitive comes near to the step",
                "a click, a drag, a scroll, typed text, or the end",
                "the step has no action; it is judged all the same",
            )
        return found

    def _timeline(
        self, found: Trajectory, done: Sequence[Sequence[Deed]], own: str
    ) -> Timeline | None:
        line = timeline(self.root, found.path.parent, done)
        if not isinstance(line, str):
            return line
        Place(own, self.note).warn(
            "recording-unmatched",
            f"the recording beside it: {line}",
            "the recording that the trajectory was made of",
            "the steps have no clips",
        )
        return None

    def _instruction(self, row: Mapping[str, Any], place: Place) -> str:
        for name in _INSTRUCTIONS:
            value = row.get(name)
            if isinstance(value, str) and value:
                return value
        place.warn("instruction-missing", "nobody says the task", " or ".join(_INSTRUCTIONS))
        return ""

    def _picture(
        self, found: Trajectory, row: Mapping[str, Any], name: str
    ) -> tuple[MediaRef | None, Screen]:
        value = row.get("image")
        if not isinstance(value, str) or not value:
            return None, UNKNOWN
        if reason := unsafe(value):
            Place(name, self.note).refuse(
                "path-unsafe",
                f"image: {reason}",
                "a path below the folder of pictures",
                "mend the name; the step lacks the picture until then",
            )
            return MediaRef("image", self.root, value), UNKNOWN  # which nobody opens
        folder = self._folders.setdefault(found.path, images(found.path))
        ref = MediaRef("image", folder, value)
        try:
            return ref, image_size(ref)
        except MediaError:
            return ref, UNKNOWN


def _tags(found: Trajectory) -> dict[str, str]:
    completed = found.row.get("task_completed")
    tags = {
        "form": found.form,
        "part": found.path.stem if found.form == "agentnet" else "",
        "completed": str(completed).lower() if isinstance(completed, bool) else "",
    }
    return {tag: value for tag, value in tags.items() if value}
