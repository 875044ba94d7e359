"""What OmniBench's metadata hold: subtasks, task graphs, trajectories, and a folder of them.

Source: OmniBench, Appendix C. Nothing here opens a file, and nothing is ever executed: the
evaluation function of a subtask is a text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnidata.errors import Finding

if TYPE_CHECKING:
    from omnidata.graphs import Graph


@dataclass(frozen=True, slots=True)
class Subtask:
    """A small task of one application (Appendix C.1).

    Attributes:
        id: as the source spells it, a UUID in the paper.
        template: the instruction with places such as `{xlsx_path}`.
        application: whose subtask it is.
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
    """What an expert did, of a subtask or of a whole task (Appendices C.2 and C.5).

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


@dataclass(frozen=True, slots=True)
class TaskGraph:
    """A task as a graph of subtasks (Appendix C.4).

    Attributes:
        id: of the row, else the name of its file or its 0-based number in it.
        instruction: of the whole task.
        graph: the subtasks and what depends on what. A node is a subtask's id, or that id with
            a number where the task has the subtask more than once ("C1", "C2").
        intent: what the task is for.
        applications: node -> application; nodes whose application nobody tells are left out.
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
    """All that a folder or a file of OmniBench's metadata holds.

    Attributes:
        root: the folder that pictures lie below.
        subtasks, tasks: by id, in the order of the source.
        trajectories: of subtasks and of tasks, in the order of the source.
        findings: everything doubtful, skipped or missing, in the order met.
    """

    root: Path
    subtasks: Mapping[str, Subtask] = field(default_factory=dict)
    trajectories: Sequence[Trajectory] = ()
    tasks: Mapping[str, TaskGraph] = field(default_factory=dict)
    findings: Sequence[Finding] = ()
