"""AgentNet's trajectories on desktops as steps, and AgentNetBench's (OpenCUA).

They are one benchmark here: places are shares of the screen, and the picture of a step is what was
seen before it. AgentNet says in code what was done; AgentNetBench in objects, with what else is
right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any, Final

from omnidata.actions import Action, Screen
from omnidata.errors import DataError, Finding, MediaError
from omnidata.loaders.files import check_media_files
from omnidata.loaders.jsonl import decoded, values
from omnidata.loaders.load import Note, Place, about, opened, short
from omnidata.media import Budget, image_size, resolve, unsafe
from omnidata.media.segments import recorded_seconds
from omnidata.tasks.agentnet import rows as agentnet_files
from omnidata.tasks.agentnet.actions import type_of
from omnidata.tasks.agentnet.rows import (
    RECORDED,
    STEPS,
    Trajectory,
    action_of,
    broken_alternatives,
    images,
    recorded_otherwise,
    truths_of,
)
from omnidata.types import LoadedDataset, MediaRef, Modality, Step, VideoSegment

# The recording of a trajectory by AgentNet's tool, and the part of it that leads to each step.
#
# `metadata.json` has the moment at which the video began, `reduced_events_vis.jsonl` the actions
# that became steps, by the same clock; it agrees with the video to a few tenths of a second.

FOLDER: Final = "recording"
VIDEO: Final = "recording.mp4"
METADATA: Final = "metadata.json"
_BUDGET: Final = Budget(max_bytes=1024**3)
_SHORTEST_S: Final = 1 / 60
LONGEST_S: Final = 10.0
"""Of a clip, as `omnidata segment` cuts: of a longer wait its end is kept."""
_VERBS: Final = ("drag", "scroll", "click")
"""What the tool's description of an action tells of it: "Single left Click", "Drag from ..."."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """A recording, and when each action was made in it.

    Attributes:
        ref: the video.
        seconds: how long it is by its header.
        spans: begin and end of each action, in seconds after the first frame.
    """

    ref: MediaRef
    seconds: float
    spans: Sequence[tuple[float, float]]

    def clip(self, number: int) -> MediaRef | None:
        """What was seen between an action and the one before it, or since the beginning.

        Args:
            number: of the step, 0-based; one more than there are actions for the end, whose clip
                goes from the last action to the end of the recording.

        Returns:
            None for less than a frame, or for what lies outside the recording.
        """
        begin = self.spans[number - 1][1] if number else 0.0
        until = self.spans[number][0] if number < len(self.spans) else self.seconds
        begin = max(begin, until - LONGEST_S)
        start, end = (round(min(max(moment, 0.0), self.seconds), 6) for moment in (begin, until))
        if end - start < _SHORTEST_S:
            return None
        name = f"{self.ref.path.removesuffix('.mp4')}_{number}.mp4"
        return MediaRef("video", self.ref.root, name, cell=VideoSegment(self.ref.path, start, end))


def timeline(root: Path, folder: Path, steps: Sequence[Sequence[Action]]) -> Timeline | str | None:
    """Where the steps of a trajectory lie in the recording beside it.

    Args:
        root: the dataset's folder.
        folder: that of the trajectory's file, below it.
        steps: what each does; an end at the end is no action.

    Returns:
        None where there is no recording; or why its actions are not those of the steps.
    """
    home = folder / FOLDER
    if not (home / VIDEO).exists():
        return None
    name = home.relative_to(root).as_posix()
    ref = MediaRef("video", root, f"{name}/{VIDEO}")
    ends = bool(steps and steps[-1]) and steps[-1][-1].kind == "done"
    acting = steps[:-1] if ends else steps
    try:
        zero = _began(MediaRef("video", root, f"{name}/{METADATA}"))
        kept = resolve(MediaRef("video", root, f"{name}/{RECORDED}"), budget=_BUDGET)
        events = [row for _, row in values(kept)]
        if len(events) != len(acting):
            return f"it has {len(events)} actions, and the trajectory {len(acting)}"
        spans = [_span(row, zero, done) for row, done in zip(events, acting, strict=True)]
        return Timeline(ref, recorded_seconds(ref), spans)
    except MediaError as error:
        return f"{error.what}: {error.where}"
    except ValueError as error:
        return str(error)
    except OSError as error:
        return f"it cannot be read ({error.strerror})"


def _began(ref: MediaRef) -> float:
    """When the video began.

    Raises:
        MediaError, OSError: the file cannot be read.
        ValueError: it does not say.
    """
    value = decoded(resolve(ref, budget=_BUDGET).read_bytes())
    return _moment(value.get("video_start_timestamp") if isinstance(value, dict) else None)


def _span(row: object, zero: float, actions: Sequence[Action]) -> tuple[float, float]:
    """Begin and end of an action.

    Raises:
        ValueError: it has none, or is another action than the step's.
    """
    if not isinstance(row, dict):
        raise ValueError(f"a line of {RECORDED} is no JSON object")
    start, end = (_moment(row.get(name)) - zero for name in ("start_time", "end_time"))
    said = str(row.get("description", "")).lower()
    heard = next((verb for verb in _VERBS if verb in said), "")
    types = [type_of(action) for action in actions]
    if types and not any(heard in name.lower() for name in types):
        raise ValueError(f"its action {said!r:.60} is none of a step of {' and '.join(types)}")
    return start, max(start, end)


def _moment(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not isfinite(value):
        raise ValueError("a time in it is no number")
    return float(value)


# Trajectories of AgentNet -> steps.

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
        place = Place(found.where, about(self.note, *names))
        done = [self._truth(source, name) for source, name in zip(sources, names, strict=True)]
        line = self._timeline(found, done, Place(own, place.note))
        instruction = self._instruction(found.row, place)
        tags = _tags(found)
        history: list[Action | None] = []
        screens: list[Screen] = []
        for number, (name, source) in enumerate(zip(names, sources, strict=True)):
            shot, screen = self._picture(found, source["step"], name)
            action = self._action(source, done[number], name) if done[number] else None
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

    def _truth(self, source: Mapping[str, Any], name: str) -> Sequence[Action]:
        """What a step does; empty with a finding where nobody can tell."""
        place = Place(name, about(self.note, name))
        try:
            truths = truths_of(source)
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
        if reason := recorded_otherwise(source, truths):
            place.warn(
                "recorded-differs",
                reason,
                "the recorded action, or an alternative that is one with it",
                "mend the row; the ground truth is judged by, and histories show what was recorded",
            )
        return truths[0]

    def _action(
        self, source: Mapping[str, Any], truth: Sequence[Action], name: str
    ) -> Action | None:
        found = action_of(source, truth)
        if found is None:
            Place(name, about(self.note, name)).warn(
                "action-inexpressible",
                "the code does nothing, or cannot be read",
                "calls of pyautogui or `computer`",
                "the step has no action; it is judged all the same",
            )
        return found

    def _timeline(
        self, found: Trajectory, done: Sequence[Sequence[Action]], place: Place
    ) -> Timeline | None:
        line = timeline(self.root, found.path.parent, done)
        if not isinstance(line, str):
            return line
        place.warn(
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
            Place(name, about(self.note, name)).refuse(
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


def load(data: Path | str, *, strict: bool = False, check_media: bool = True) -> LoadedDataset:
    """Read trajectories; nothing in them is executed, and no picture is decoded.

    A step's `source` has `form`, "agentnet" or "agentnetbench"; `task`, the trajectory without its
    steps; and `step`, its untouched row. Its `action`, and so the history of later steps, is all
    that the step does, with its code for words.

    Args:
        data: a folder, with as many folders in it as they like, or a file; or a Parquet repository.
        strict: make the first finding an error.
        check_media: look whether the pictures exist and are whole.

    Returns:
        Steps in the order of the files, named `<task_id>/<position>`: the positions are dense, also
        where AgentNetBench's `step_num` are not.

    Raises:
        DataError: nothing readable as AgentNet is there, or `strict` and there is a finding.
    """
    data = Path(data)
    return opened(
        data,
        "agentnet",
        TAGS,
        lambda: _read(data, check_media=check_media),
        strict=strict,
        check_media=check_media,
    )


def _read(data: Path, *, check_media: bool) -> LoadedDataset:
    findings: list[Finding] = []
    reader = StepReader(data if data.is_dir() else data.parent, findings.append)
    paths = agentnet_files.find(data)
    steps = [
        step
        for found in agentnet_files.read(paths, findings.append)
        for step in reader.steps(found)
    ]
    if not steps:
        first = findings[0] if findings else None
        raise DataError(
            f"no trajectory could be read{f': {first.what}' if first else ''}",
            where=first.where if first else str(data),
            expected=first.expected if first else agentnet_files.COLUMNS,
            remedy="mend the rows, or name other data",
        )
    skipped = reader.skipped + sum(finding.code == "json-invalid" for finding in findings)
    if check_media:
        check_media_files(steps, findings.append)
    return LoadedDataset(
        "agentnet",
        data,
        steps,
        findings,
        skipped,
        agentnet_files.fingerprint(data),
        [step.sample_id for step in steps],
        TAGS,
        ROLES,
    )


def dump(source: LoadedDataset) -> Iterator[dict[str, Any]]:
    """The trajectories that a source was read from, in its order.

    Args:
        source: of `load`; of each trajectory all steps.

    Yields:
        A line of AgentNet, or a file of AgentNetBench.
    """
    row: dict[str, Any] = {}
    for step in source.steps:
        told = step.source
        if step.step_index == 0:
            if row:
                yield row
            row = {**told["task"], STEPS[told["form"]]: []}
        row[STEPS[told["form"]]].append(told["step"])
    if row:
        yield row
