"""OmniBench's metadata: subtasks, task graphs and trajectories; the latter as steps too.

Source: OmniBench, Appendix C, and the examples that its authors gave their reviewers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from omnidata.actions import Screen
from omnidata.errors import DataError, Finding, MediaError, MissingMediaError
from omnidata.jsontext import BROKEN
from omnidata.loaders.files import Look, RowFiles
from omnidata.loaders.load import Note, RowContext, about, load_data, size_of, tag_of
from omnidata.loaders.media_findings import check_media_files
from omnidata.loaders.row_files import Line, head_of, read_rows
from omnidata.loaders.steps import Steps, row_ids
from omnidata.loaders.task_library import EVALUATIONS, Library, Subtask, TaskGraph, Trajectory
from omnidata.media import Budget, resolve, unsafe
from omnidata.tasks.loading import EpisodeBuilder
from omnidata.tasks.omnibench.rows import (
    TaskReader,
    categories_of,
    check_trajectory,
    read_subtask,
    read_trajectory,
    rect_of,
    row_categories,
    subtasks_of,
)
from omnidata.types import LoadedDataset, MediaRef, Modality, Step

# OmniBench's metadata: JSON lines, or JSON files, recognised by their columns.
#
# The paper names no files (Appendix C). A folder may hold them all, beside each other or one level
# below, under any names. Other files are skipped.

Kind = Literal["subtask", "trajectory", "task"]

COLUMNS: Mapping[Kind, str] = {
    "subtask": "instruction_template, application, available_parameters, OS, input_resources, "
    "output_resources",
    "trajectory": "trajectory_id, instruction, observations, actions, and subtask_id or task_id",
    "task": "task_instruction, dag, task_intent, successful_topo",
}
"""The columns of the rows (Appendix C)."""

_PEEKED = 20
_SIGNS = (b'"instruction_template"', b'"dag"', b'"actions"', b'"observations"')
_SUFFIXES = (".json", ".jsonl", ".ndjson", ".parquet")


def kind_of(row: object) -> Kind | None:
    """Return the kind of a row by its columns; None for other rows.

    Examples:
        >>> kind_of({"dag": {"A": ["B"]}}), kind_of({"actions": [], "action_space": []})
        ('task', None)
    """
    if not isinstance(row, Mapping):
        return None
    if "instruction_template" in row:
        return "subtask"
    if "dag" in row:
        return "task"
    named = not row.keys().isdisjoint(("trajectory_id", "observations", "subtask_id", "task_id"))
    return "trajectory" if "actions" in row and named and "action_space" not in row else None


def _list_files(data: Path) -> Iterator[Path]:
    if not data.is_dir():
        yield from [data] if data.exists() else []
        return
    for entry in sorted(_entries(data), key=lambda entry: entry.name):
        inner = _entries(Path(entry.path)) if entry.is_dir() else [entry]
        for item in sorted(inner, key=lambda item: item.path):
            path = Path(item.path)
            if item.name.endswith(_SUFFIXES) and path.exists() and not item.is_dir():
                yield path


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return [entry for entry in entries if not entry.name.startswith(".")]


def _look(path: Path) -> Look:
    """Searches the first megabyte before it decodes: other files may be hundreds of megabytes."""
    if path.suffix != ".jsonl":
        head = head_of(path)
        if not any(sign in head for sign in _SIGNS):
            return "other"
    first = [line.row for line in islice(read_rows(path), _PEEKED)]
    if any(map(kind_of, first)):
        return "known"
    return "broken" if first and all(value is BROKEN for value in first) else "other"


FILES = RowFiles(
    "JSON lines, or files with a JSON object or a list of them: "
    + "; or ".join(f"a {kind} with {columns}" for kind, columns in COLUMNS.items()),
    _look,
    _list_files,
)


# OmniBench's trajectories -> steps, one for each action.

TAGS = ("kind", "app", "category", "platform", "intent")
"""The tags of a step: subtask or task, the application and its category, the operating system, the
task's intent. Several applications are `SEVERAL`."""

ROLES: Mapping[str, Modality] = {"screenshot": "image"}
SEVERAL = "several"

_UNKNOWN: Screen = (0, 0)
"""The screen of a step without a readable screenshot."""


@dataclass(slots=True)
class _StepReader:
    """Turns the trajectories of a library into steps."""

    library: Library
    note: Note
    _sizes: dict[str, Screen] = field(default_factory=dict)

    def steps(self) -> Iterator[Step]:
        """Yield all steps, in the order of the trajectories."""
        for trajectory in self.library.trajectories:
            if not trajectory.actions:
                RowContext(trajectory.id, self.note).warn(
                    "trajectory-empty", "the trajectory has no action", "at least one action"
                )
            yield from self._steps(trajectory)

    def _steps(self, trajectory: Trajectory) -> Iterator[Step]:
        tags = self._tags(trajectory)
        ids = {"task_id": trajectory.task_id, "subtask_id": trajectory.subtask_id}
        owner = {key: own for key, own in ids.items() if own}  # groups the steps, also in splits
        episode = EpisodeBuilder(trajectory.id, tags, count=len(trajectory.actions))
        done = zip(trajectory.actions, trajectory.read_actions, strict=True)
        for number, (row, action) in enumerate(done):
            sample_id = f"{trajectory.id}/{number}"
            place = RowContext(sample_id, about(self.note, sample_id))
            names = trajectory.observations[number : number + 1]
            shot = self._picture(names[0], place) if names and names[0] else None
            screen = self._size(shot)
            box = rect_of(row) if screen != _UNKNOWN else None
            if box and not (
                min(box.left, box.top) >= 0 and box.right <= screen[0] and box.bottom <= screen[1]
            ):
                place.warn(
                    "rect-outside",
                    f"the rect [{box.left}, {box.top}, {box.right}, {box.bottom}] leaves the "
                    f"screen of {screen[0]} x {screen[1]}",
                    "a rect inside the screen",
                )
            step = episode.step(
                sample_id,
                trajectory.instruction,
                {"screenshot": shot},
                screen,
                action,
                {**row, **owner},
            )
            yield assign_group(step)

    def _tags(self, trajectory: Trajectory) -> dict[str, str]:
        nodes = trajectory.order or (trajectory.subtask_id,)
        task = self.library.tasks.get(trajectory.task_id)
        known = subtasks_of(nodes, task.source if task else {}, self.library.subtasks)
        subtasks: list[Subtask] = [subtask for subtask in known.values() if subtask]
        apps = [subtask.application for subtask in subtasks if subtask.application]
        categories = categories_of(apps, row_categories(subtasks))
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

    def _picture(self, name: str, place: RowContext) -> MediaRef:
        if reason := unsafe(name):
            place.refuse(
                "path-unsafe",
                f"screenshot: {reason}",
                f"a path relative to {self.library.root}",
                "correct the path; the step lacks the picture until then",
            )
        return MediaRef("image", self.library.root, name)

    def _size(self, shot: MediaRef | None) -> Screen:
        if shot is None:
            return _UNKNOWN
        if shot.path not in self._sizes:
            self._sizes[shot.path] = size_of(shot)
        return self._sizes[shot.path]


def assign_group(step: Step) -> Step:
    """Return the step grouped with all trajectories of its task or subtask."""
    kind = tag_of(step, "kind")
    episode, owner = f"{kind}/{step.episode_id}", step.source.get(f"{kind}_id")
    return replace(step, episode=episode, group=f"{kind}/{owner}" if owner else episode)


def task_of(step: Step) -> str:
    """Return the task of a trajectory; empty for subtasks.

    The instructions of a task differ in the order of its subtasks. Those of a subtask differ in
    their parameters, so they are not wordings of one task.
    """
    return step.group if step.tags.get("kind") == "task" else ""


def _one(values: Iterable[str]) -> str:
    found = list(dict.fromkeys(filter(None, values)))
    return found[0] if len(found) == 1 else SEVERAL if found else ""


_STEPLESS = "the data have no trajectory with an action"
_SMALL = Budget(max_bytes=1024**2)


class _Named(Protocol):
    @property
    def id(self) -> str: ...


_Value = TypeVar("_Value", bound=_Named)


@dataclass(frozen=True, slots=True)
class Metadata(LoadedDataset):
    """A dataset with the library that its steps are from."""

    library: Library | None = None


def read_library(data: Path | str, *, check_orders: bool = True) -> Library:
    """Read subtasks, tasks and trajectories; no picture is opened, and nothing is executed.

    Args:
        data: JSON lines, a JSON file, or a folder with such files beside each other or one level
            below.
        check_orders: check the orders of tasks, and compute missing ones.

    Returns:
        The library, with a finding for everything that was skipped or is doubtful.

    Raises:
        DataError: nothing is there, or no readable row with OmniBench's columns.
    """
    data = Path(data)
    findings: list[Finding] = []
    note = findings.append
    root = data if data.is_dir() else data.parent
    lines: dict[Kind, list[Line]] = {"subtask": [], "task": [], "trajectory": []}
    for line in FILES.rows(FILES.find(data), note):
        kind = kind_of(line.row)
        if kind is None:
            RowContext(line.where, note).refuse(
                "columns-unknown",
                f"the row has {', '.join(list(line.row)[:5]) or 'no columns'}",
                " or ".join(COLUMNS.values()),
            )
        else:
            lines[kind].append(line)
    if findings and not any(lines.values()):
        first = findings[0]
        raise DataError(
            f"no row could be read: {first.what}",
            where=first.where,
            expected=first.expected,
            remedy="correct the rows, or name other data",
        )

    def subtask_of(line: Line) -> Subtask | None:
        place = RowContext(line.where, note)
        subtask = read_subtask(line, place)
        return subtask and replace(subtask, evaluation=_evaluation(subtask.id, root, place))

    subtasks = _unique(lines["subtask"], subtask_of, note)
    reader = TaskReader(subtasks, note, check_orders)
    tasks = _unique(lines["task"], reader.task, note)
    reader.finish()
    trajectories = _unique(
        lines["trajectory"], lambda line: _trajectory(line, subtasks, tasks, note), note
    )
    apps = (subtask.application for subtask in subtasks.values())
    categories = categories_of(apps, row_categories(subtasks.values()))
    return Library(root, subtasks, tuple(trajectories.values()), tasks, findings, categories)


def _unique(
    lines: list[Line], read: Callable[[Line], _Value | None], note: Note
) -> dict[str, _Value]:
    found: dict[str, _Value] = {}
    for line in lines:
        value = read(line)
        if value is None:
            continue
        if value.id in found:
            RowContext(line.where, note).refuse(
                "id-repeated",
                f"another {kind_of(line.row)} already has the id {value.id!r:.80}",
                "an id of its own",
            )
        else:
            found[value.id] = value
    return found


def _evaluation(own: str, root: Path, place: RowContext) -> str | None:
    for name in (f"{EVALUATIONS}/{own}.txt", f"{own}.txt"):
        try:
            path = resolve(MediaRef("image", root, name), budget=_SMALL)
            return path.read_bytes().decode("utf-8")
        except MissingMediaError:
            continue
        except (MediaError, OSError, UnicodeDecodeError) as error:
            what = error.what if isinstance(error, MediaError) else type(error).__name__
            place.warn(
                "evaluation-unreadable",
                f"its evaluation function {name!r:.80}: {what}",
                f"a text in UTF-8 inside the folder, of at most {_SMALL.max_bytes} bytes",
                "correct the file or the id; the subtask has no evaluation function until then",
            )
            return None
    return None


def _trajectory(
    line: Line, subtasks: Mapping[str, Subtask], tasks: Mapping[str, TaskGraph], note: Note
) -> Trajectory | None:
    place = RowContext(line.where, note)
    trajectory = read_trajectory(line, place)
    if trajectory is None:
        return None
    ids = (f"{trajectory.id}/{number}" for number in range(len(trajectory.actions)))
    place = RowContext(line.where, about(note, *ids))
    owners = (("subtask", trajectory.subtask_id, subtasks), ("task", trajectory.task_id, tasks))
    for kind, own, known in owners:
        if own and known and own not in known:
            place.warn(
                f"{kind}-missing",
                f"the data have no {kind} {own!r:.80}",
                f"the id of a {kind}",
                f"add the {kind}; its facts about the steps are unknown until then",
            )
    if trajectory.task_id in tasks:
        check_trajectory(trajectory, tasks[trajectory.task_id], place)
    return trajectory


def load(
    data: Path | str,
    *,
    strict: bool = False,
    check_media: bool = True,
    needs_steps: bool = True,
) -> LoadedDataset:
    """Read OmniBench's trajectories as steps, one for each action; no picture is decoded.

    A step's `source` is the untouched action with the trajectory's `task_id` or `subtask_id`. Its
    `action` is the call, with the control's text in its words. Its `screen` is the size of its
    screenshot, (0, 0) without one. An observation after the last action is not used.

    Args:
        data: as `read_library` takes it, or a Parquet repository.
        strict: make the first finding an error.
        check_media: look whether the pictures exist and are whole (a few file reads per picture).
        needs_steps: refuse data without a trajectory; otherwise that is a finding.

    Returns:
        Steps in the order of the rows, named `<trajectory id>/<number>`.

    Raises:
        DataError: nothing readable as OmniBench is there, or no step, or `strict` and there is a
            finding.
    """
    data = Path(data)

    def read() -> LoadedDataset:
        source = _read(data, check_media=check_media)
        if needs_steps and not source.steps:
            raise DataError(
                _STEPLESS,
                where=str(data),
                expected="trajectories, to ask a model about their steps",
                remedy="name other data; `omnidata score omnibench` needs only the tasks",
            )
        return source

    return load_data(data, "omnibench", TAGS, read, strict=strict, check_media=check_media)


def _read(data: Path, *, check_media: bool) -> LoadedDataset:
    library = read_library(data)
    findings = list(library.findings)
    steps = Steps.of(_StepReader(library, findings.append).steps())
    if not steps:
        RowContext(str(data), findings.append).warn(
            "steps-absent",
            _STEPLESS,
            "trajectories, to ask a model about their steps",
            "nothing to do for `omnidata score omnibench`, which needs only the tasks",
        )
    elif check_media:
        check_media_files(steps, findings.append)
    return Metadata(
        "omnibench",
        data,
        steps,
        findings,
        sum(finding.code in _SKIPPING for finding in findings),
        FILES.fingerprint(data),
        row_ids(steps, range(len(steps))),
        TAGS,
        ROLES,
        library=library,
    )


_SKIPPING = frozenset(
    {
        *("json-invalid", "columns-unknown", "id-missing", "id-repeated", "column-wrong"),
        *("actions-many", "graph-broken"),
    }
)
