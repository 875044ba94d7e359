"""OmniBench's metadata: subtasks, task graphs and trajectories; the latter as steps too.

Source: OmniBench, Appendix C, and the examples that its authors gave their reviewers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

from omnidata.errors import DataError, Finding, MediaError, MissingMediaError
from omnidata.loaders import omnibench_files as files
from omnidata.loaders import repository
from omnidata.loaders.media_files import check_media_files
from omnidata.loaders.omnibench_files import Kind, Line
from omnidata.loaders.omnibench_graphs import TaskReader
from omnidata.loaders.omnibench_library import Library, Subtask, TaskGraph, Trajectory
from omnidata.loaders.omnibench_orders import check_trajectory
from omnidata.loaders.omnibench_rows import read_subtask, read_trajectory
from omnidata.loaders.omnibench_steps import ROLES, TAGS, StepReader, picture_root
from omnidata.loaders.place import SKIPPED, Note, Place
from omnidata.loaders.recognition import reading
from omnidata.loaders.strict import refuse_findings
from omnidata.media import Budget, resolve
from omnidata.types import MediaRef, Source

EVALUATIONS = "evaluations"
"""The folder of the evaluation functions, `<subtask id>.txt` each; they are never run."""

_STEPLESS = "the data hold no trajectory with an action"
_SMALL = Budget(max_bytes=1024**2)


class _Named(Protocol):
    @property
    def id(self) -> str: ...


_Value = TypeVar("_Value", bound=_Named)


@dataclass(frozen=True, slots=True)
class Metadata(Source):
    """A source that knows more than its steps.

    Attributes:
        library: all that was read; None for a Parquet repository, which holds steps alone.
    """

    library: Library | None = None


def read_library(data: Path | str, *, check_orders: bool = True) -> Library:
    """Read subtasks, tasks and trajectories; no picture is opened, and nothing is executed.

    Args:
        data: JSON lines, a JSON file, or a folder with such files beside each other or one level
            below. They are known by their columns, whatever they are called.
        check_orders: look at the orders that tasks list, and find them where they do not.

    Returns:
        What could be read, and a finding with file and line for everything that was skipped or is
        doubtful.

    Raises:
        DataError: nothing is there, or nothing with OmniBench's columns that can be read.
    """
    data = Path(data)
    findings: list[Finding] = []
    note = findings.append
    root = picture_root(data)
    lines: dict[Kind, list[Line]] = {"subtask": [], "task": [], "trajectory": []}
    for line in files.read(files.find(data), note):
        if line.kind is None:
            Place(line.where, note).refuse(
                "columns-unknown",
                f"the row has {', '.join(list(line.row)[:5]) or 'no columns'}",
                " or ".join(files.COLUMNS.values()),
            )
        else:
            lines[line.kind].append(line)
    if findings and not any(lines.values()):
        first = findings[0]
        raise DataError(
            f"no row could be read: {first.what}",
            where=first.where,
            expected=first.expected,
            remedy="mend the rows, or name other data",
        )
    subtasks = _unique(lines["subtask"], lambda line: _subtask(line, root, note), note)
    reader = TaskReader(subtasks, note, check_orders)
    tasks = _unique(lines["task"], reader.task, note)
    reader.finish()
    trajectories = _unique(
        lines["trajectory"], lambda line: _trajectory(line, subtasks, tasks, note), note
    )
    return Library(root, subtasks, tuple(trajectories.values()), tasks, findings)


def _unique(
    lines: list[Line], read: Callable[[Line], _Value | None], note: Note
) -> dict[str, _Value]:
    """What the rows hold, by id; of rows with the same id the first."""
    found: dict[str, _Value] = {}
    for line in lines:
        value = read(line)
        if value is None:
            continue
        if value.id in found:
            note(
                Finding(
                    "id-repeated",
                    "error",
                    line.where,
                    f"another {line.kind} has the id {value.id!r:.80} already",
                    "an id of its own",
                    SKIPPED,
                )
            )
        else:
            found[value.id] = value
    return found


def _subtask(line: Line, root: Path, note: Note) -> Subtask | None:
    place = Place(line.where, note)
    subtask = read_subtask(line, place)
    return subtask and replace(subtask, evaluation=_evaluation(subtask.id, root, place))


def _evaluation(own: str, root: Path, place: Place) -> str | None:
    """The text of a subtask's evaluation function; None where there is no such file."""
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
                "mend the file or the id; the subtask has no evaluation function until then",
            )
            return None
    return None


def _trajectory(
    line: Line, subtasks: Mapping[str, Subtask], tasks: Mapping[str, TaskGraph], note: Note
) -> Trajectory | None:
    place = Place(line.where, note)
    trajectory = read_trajectory(line, place)
    if trajectory is None:
        return None
    owners = (("subtask", trajectory.subtask_id, subtasks), ("task", trajectory.task_id, tasks))
    for kind, own, known in owners:
        if own and known and own not in known:
            place.warn(
                f"{kind}-missing",
                f"the data have no {kind} {own!r:.80}",
                f"the id of a {kind}",
                f"add the {kind}; what it would say of the steps is unknown until then",
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
) -> Source:
    """Read OmniBench's trajectories as steps, one for each action; no picture is decoded.

    A step's `source` is the untouched action with the trajectory's `task_id` or `subtask_id` beside
    it. Its `action`, and so the history of later steps, is what comes nearest among the primitives
    of a touch screen, in words of its own (`omnidata.desktop.nearest`). Its `screen` is the size of
    its screenshot, (0, 0) where there is none. An observation after the last action is nobody's
    screenshot.

    Args:
        data: as `read_library` takes it, or a Parquet repository.
        strict: make the first finding an error.
        check_media: look whether the pictures exist and are whole (a few file reads per picture).
        needs_steps: refuse data without a trajectory; otherwise that is a finding.

    Returns:
        A `Metadata`; steps in the order of the rows, named `<trajectory id>/<number>`.

    Raises:
        DataError: nothing readable as OmniBench is there, or no step, or `strict` and there is a
            finding.
    """
    data = Path(data)
    with reading(data, "omnibench"):
        if repository.is_repository(data):
            source = repository.load(data, "omnibench", TAGS, check_media=check_media)
        else:
            source = _read(data, check_media=check_media)
        if needs_steps and not source.steps:
            raise DataError(
                _STEPLESS,
                where=str(data),
                expected="trajectories, to ask a model about their steps",
                remedy="name other data; `omnidata score omnibench` needs the tasks alone",
            )
    if strict:
        refuse_findings(source.findings, data)
    return source


def _read(data: Path, *, check_media: bool) -> Source:
    library = read_library(data)
    findings = list(library.findings)
    steps = list(StepReader(library, findings.append).steps())
    if not steps:
        findings.append(
            Finding(
                "steps-absent",
                "warning",
                str(data),
                _STEPLESS,
                "trajectories, to ask a model about their steps",
                "fine for `omnidata score omnibench`, which needs the tasks alone",
            )
        )
    elif check_media:
        check_media_files(steps, findings.append)
    return Metadata(
        "omnibench",
        data,
        steps,
        findings,
        _skipped(findings),
        files.fingerprint(data),
        [step.sample_id for step in steps],
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


def _skipped(findings: list[Finding]) -> int:
    """Rows that became nothing; each has one of these findings."""
    return sum(finding.code in _SKIPPING for finding in findings)
