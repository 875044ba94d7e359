"""OmniBench's metadata: subtasks, task graphs and trajectories, read and written as a folder.

Source: OmniBench, Appendix C. Nothing here opens a file, and nothing is ever executed: the
evaluation function of a subtask is a text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnidata.errors import DataError, Finding
from omnidata.media import resolve, unsafe
from omnidata.storage import atomic_write, copy_file
from omnidata.types import MediaRef, Progress

if TYPE_CHECKING:
    from omnidata.actions import Action
    from omnidata.graphs import Graph


EVALUATIONS = "evaluations"
"""The folder of the evaluation functions, `<subtask id>.txt` each; they are never run."""


@dataclass(frozen=True, slots=True)
class Subtask:
    """A small task of one application (Appendix C.1).

    Attributes:
        id: as the source spells it, a UUID in the paper.
        template: the instruction with places such as `{xlsx_path}`.
        application: its application.
        parameters: the bindings; each names a value for every place of the template.
        os: "Windows" in the paper's examples; "" where the row has none.
        inputs: kinds of resources needed before, e.g. "xlsx_path".
        outputs: kinds of resources there afterwards.
        evaluation: the text of the evaluation function (Appendix C.3), never run; None where the
            source has none.
        source: the untouched row; empty for a subtask that no file holds yet.
    """

    id: str
    template: str
    application: str
    parameters: tuple[Mapping[str, Any], ...] = ()
    os: str = ""
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    evaluation: str | None = None
    source: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Trajectory:
    """An expert's actions in a subtask or a whole task (Appendices C.2 and C.5).

    Attributes:
        id: e.g. "12(0)": task 12, the first of its orders.
        instruction: the instantiated instruction.
        observations: pictures by relative path, before each action; one more after the last
            action in some sources.
        actions: as the source has them: `function`, `args` and, in most, `rect`, `description`,
            `thought`, `control_text`.
        subtask_id: "" for a task's trajectory.
        task_id: "" for a subtask's trajectory.
        order: the nodes in the order in which they were done; empty for a subtask's.
        intent: the task's; "" for a subtask's.
        source: the untouched row; empty for a trajectory that no file holds yet.
        read_actions: what each action does, None for one that cannot be read; empty for a
            trajectory that no file holds yet.
    """

    id: str
    instruction: str
    observations: tuple[str, ...]
    actions: tuple[Mapping[str, Any], ...]
    subtask_id: str = ""
    task_id: str = ""
    order: tuple[str, ...] = ()
    intent: str = ""
    source: Mapping[str, Any] = field(default_factory=dict)
    read_actions: tuple[Action | None, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class TaskGraph:
    """A task as a graph of subtasks (Appendix C.4).

    Attributes:
        id: of the row, else the name of its file or its 0-based number in it.
        instruction: of the whole task.
        graph: the subtasks and what depends on what. A node is a subtask's id, or that id with
            a number where the task has the subtask more than once ("C1", "C2").
        intent: what the task is for.
        applications: node -> application; nodes with an unknown application are left out.
        categories: application -> category (Table 10), for every application above.
        orders: valid topological orders; those of the source where they are right, else found
            anew where there are few; () where there are too many.
        source: the untouched row; empty for a task that no file holds yet.
    """

    id: str
    instruction: str
    graph: Graph
    intent: str = ""
    applications: Mapping[str, str] = field(default_factory=dict)
    categories: Mapping[str, str] = field(default_factory=dict)
    orders: tuple[tuple[str, ...], ...] = ()
    source: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Library:
    """The contents of a folder or file of OmniBench's metadata.

    Attributes:
        root: the folder that pictures lie below.
        subtasks, tasks: by id, in the order of the source.
        trajectories: of subtasks and of tasks, in the order of the source.
        findings: everything doubtful, skipped or missing, in the order met.
        categories: application -> category, for the application of every subtask that was read.
    """

    root: Path
    subtasks: Mapping[str, Subtask] = field(default_factory=dict)
    trajectories: Sequence[Trajectory] = ()
    tasks: Mapping[str, TaskGraph] = field(default_factory=dict)
    findings: Sequence[Finding] = ()
    categories: Mapping[str, str] = field(default_factory=dict)


# Instruction templates: texts with places such as `{xlsx_path}` (Appendix C.1).

_PLACE = re.compile(r"\{(\w+)\}")


def places(template: str) -> list[str]:
    """Return the parameters of a template, each once, in order.

    Examples:
        >>> places("Copy '{a}' to '{b}' and '{a}'")
        ['a', 'b']
    """
    return list(dict.fromkeys(_PLACE.findall(template)))


def fill(template: str, binding: Mapping[str, Any]) -> str:
    """Return the template with its parameters filled in; other braces stay as they are.

    Examples:
        >>> fill("Open '{path}' {other} {a.b}", {"path": "x{y}"})
        "Open 'x{y}' {other} {a.b}"
    """
    return _PLACE.sub(lambda place: str(binding.get(place[1], place[0])), template)


# The one writer of OmniBench's metadata: a library as the files that `read_library` reads.
#
#     subtasks.jsonl               Appendix C.1
#     subtask_trajectories.jsonl   Appendix C.2
#     evaluations/<subtask id>.txt Appendix C.3, as text
#     tasks.jsonl                  Appendix C.4
#     trajectories.jsonl           Appendix C.5
#     and the pictures, under the paths that the trajectories have for them.
#
# The paper names no files: the layout is ours.

SUBTASKS = "subtasks.jsonl"
SUBTASK_TRAJECTORIES = "subtask_trajectories.jsonl"
TASKS = "tasks.jsonl"
TRAJECTORIES = "trajectories.jsonl"
CONTENTS = frozenset({SUBTASKS, SUBTASK_TRAJECTORIES, TASKS, TRAJECTORIES, EVALUATIONS})
"""What a library's folder holds beside its pictures."""


def row_of(value: Subtask | Trajectory | TaskGraph) -> Mapping[str, Any]:
    """Return a value's source row, or a row in the paper's schema if it has none.

    Tasks also have `task_id`, `application` and `category`: the paper names tasks by a number that
    its schema lacks, and scoring needs the applications.

    Args:
        value: of a library. One that is changed after it was read has to lose its `source`.

    Examples:
        >>> row_of(Subtask("1", "Open '{path}'.", "Excel", inputs=("path",)))["input_resources"]
        ['path']
    """
    if value.source:
        return value.source
    if isinstance(value, Subtask):
        return {
            "id": value.id,
            "instruction_template": value.template,
            "application": value.application,
            "available_parameters": list(value.parameters),
            "OS": value.os,
            "input_resources": list(value.inputs),
            "output_resources": list(value.outputs),
        }
    if isinstance(value, TaskGraph):
        return {
            "task_id": value.id,
            "task_instruction": value.instruction,
            "dag": value.graph.as_json(),
            "task_intent": value.intent,
            "successful_topo": [list(order) for order in value.orders],
            "application": dict(value.applications),
            "category": dict(value.categories),
        }
    return _trajectory(value)


def _trajectory(value: Trajectory) -> dict[str, Any]:
    done = {"observations": list(value.observations), "actions": list(value.actions)}
    if value.subtask_id:
        return {
            "trajectory_id": value.id,
            "instruction": value.instruction,
            **done,
            "subtask_id": value.subtask_id,
        }
    return {
        "trajectory_id": value.id,
        "task_id": value.task_id,
        "topological_order": list(value.order),
        "instruction": value.instruction,
        "intent": value.intent,
        **done,
    }


def line_of(value: Subtask | Trajectory | TaskGraph) -> str:
    """Return the row as a line of JSON, with its line break."""
    return json.dumps(row_of(value)) + "\n"


def write_library(library: Library, folder: Path, *, pictures: bool = True) -> None:
    """Write the contents of a library; empty parts get no file.

    Reading the folder returns the same library, without the findings.

    Args:
        library: what to write.
        folder: an existing folder.
        pictures: copy the pictures too, each once, from the library's root.

    Raises:
        DataError: the id of a subtask with an evaluation function cannot name a file, or a picture
            is called like one of the files written here.
        MediaError: a picture is missing, or lies outside the library's root.
    """
    for subtask in library.subtasks.values():
        _write_evaluation(subtask, folder)
    own = [each for each in library.trajectories if each.subtask_id]
    whole = [each for each in library.trajectories if not each.subtask_id]
    _write(folder / SUBTASKS, library.subtasks.values())
    _write(folder / SUBTASK_TRAJECTORIES, own)
    _write(folder / TASKS, library.tasks.values())
    _write(folder / TRAJECTORIES, whole)
    if pictures:
        names = (name for each in library.trajectories for name in each.observations if name)
        copy_pictures(library.root, names, folder)


def _write(path: Path, values: Iterable[Subtask | Trajectory | TaskGraph]) -> None:
    lines = map(line_of, values)
    first = next(lines, None)
    if first is not None:
        with atomic_write(path) as file:
            file.write(first.encode())
            file.writelines(line.encode() for line in lines)


def _write_evaluation(subtask: Subtask, folder: Path) -> None:
    if subtask.evaluation is None:
        return
    name = f"{subtask.id}.txt"
    if unsafe(name) or "/" in name or "\\" in name:
        raise DataError(
            f"the id {subtask.id!r:.80} cannot name a file",
            where=str(folder / EVALUATIONS),
            expected="a subtask's id without slashes, as the name of its evaluation function",
            remedy="rename the subtask",
        )
    path = folder / EVALUATIONS / name
    path.parent.mkdir(exist_ok=True)
    with atomic_write(path, durable=False) as file:
        file.write(subtask.evaluation.encode("utf-8"))


def copy_pictures(
    root: Path,
    names: Iterable[str],
    folder: Path,
    *,
    progress: Progress | None = None,
) -> None:
    """Copy pictures to the same relative paths in another folder, each once.

    Args:
        root: the folder that they lie below.
        names: their paths; repetitions cost nothing.
        folder: where they go; a picture that is there already is left alone.
        progress: called with the pictures done and their number.

    Raises:
        DataError: a picture is called like a library's own files.
        MediaError: a picture is missing, or lies outside `root`.
    """
    wanted = list(dict.fromkeys(names))
    for done, name in enumerate(wanted, 1):
        path = resolve(MediaRef("image", root, name))
        if Path(name).parts[0] in CONTENTS:
            raise DataError(
                f"a picture is called {name!r:.80}",
                where=str(root),
                expected=f"another name than {', '.join(sorted(CONTENTS))}",
            )
        target = folder / name
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            copy_file(path, target)
        if progress:
            progress(done, len(wanted))
