"""One row of OmniBench's task metadata -> a task graph, with a finding for every doubt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from omnidata.errors import DataError, Finding
from omnidata.graph_checks import id_of
from omnidata.graphs import Graph
from omnidata.loaders.omnibench_apps import categories_of, category_of
from omnidata.loaders.omnibench_files import Line, Row
from omnidata.loaders.omnibench_library import Subtask, TaskGraph
from omnidata.loaders.omnibench_orders import MAX_ORDERS, valid_orders
from omnidata.loaders.omnibench_rows import identity, text_of
from omnidata.loaders.place import SKIPPED, Note, Place, short


def subtask_of(node: str, subtasks: Mapping[str, Subtask]) -> Subtask | None:
    """The subtask that a node is an instance of.

    A task that has a subtask more than once numbers its instances: C1, C2 of C. The longest id
    that fits is meant.

    Examples:
        >>> known = {name: Subtask(name, "", "") for name in ("C", "C1")}
        >>> [subtask_of(node, known).id for node in ("C", "C1", "C12", "C2", "C#3")]
        ['C', 'C1', 'C1', 'C', 'C']
        >>> subtask_of("D1", known) is None
        True
    """
    if node in subtasks:
        return subtasks[node]
    for end in range(len(node) - 1, 0, -1):
        if not node[end].isdecimal():
            return None
        base = node[:end]
        for name in (base, base[:-1] if base[-1] in "#_.-" else base):
            if name in subtasks:
                return subtasks[name]
    return None


def subtasks_of(
    nodes: Iterable[str], row: Row, subtasks: Mapping[str, Subtask]
) -> dict[str, Subtask | None]:
    """Node -> its subtask: the one that the task's row names, else as `subtask_of`."""
    said = row.get("subtasks")
    named = said if isinstance(said, Mapping) else {}
    return {node: subtask_of(id_of(named.get(node)) or node, subtasks) for node in nodes}


def said_categories(subtasks: Iterable[Subtask]) -> dict[str, str]:
    """Application -> category, as far as the subtasks' rows say it; the paper's say nothing."""
    found = ((subtask, text_of(subtask.source, "category")) for subtask in subtasks)
    return {subtask.application: category for subtask, category in found if category}


@dataclass(slots=True)
class TaskReader:
    """Turns rows into task graphs.

    Attributes:
        subtasks: of the same library, by id; empty if it has none.
        note: takes the findings.
        check_orders: look at the orders that rows list, and find them where they do not.
    """

    subtasks: Mapping[str, Subtask]
    note: Note
    check_orders: bool = True
    _unlisted: list[str] = field(default_factory=list)
    _apps: set[str] = field(default_factory=set)

    def task(self, line: Line) -> TaskGraph | None:
        """The task of a row; None for one whose graph cannot be used."""
        row, place = line.row, Place(line.where, self.note)
        own = identity(row, "task_id", "id") or line.name
        try:
            graph = Graph.read(row["dag"], where=f"task {own} ({line.where})")
        except DataError as error:
            found = (error.where, error.what, error.expected, error.remedy or SKIPPED)
            self.note(Finding("graph-broken", "error", *found))
            return None
        subtasks = subtasks_of(graph.nodes, row, self.subtasks)
        applications = dict(self._applications(row, subtasks, place))
        given = said_categories(filter(None, subtasks.values())) | _texts(row.get("category"))
        self._check_apps(applications.values(), given, place)
        if row.get("successful_topo") is None:
            self._unlisted.append(line.where)
        orders = valid_orders(row, graph, place) if self.check_orders else ()
        return TaskGraph(
            id=own,
            instruction=text_of(row, "task_instruction", "instruction"),
            graph=graph,
            intent=text_of(row, "task_intent", "intent"),
            applications=applications,
            categories=categories_of(dict.fromkeys(applications.values()), given),
            orders=orders,
            source=row,
        )

    def _applications(
        self, row: Row, subtasks: Mapping[str, Subtask | None], place: Place
    ) -> Iterator[tuple[str, str]]:
        """What the row itself says of a node, else what its subtask does."""
        given = _texts(row.get("application"))
        unknown, untold = [], []
        for node, subtask in subtasks.items():
            if self.subtasks and subtask is None:
                unknown.append(node)
            app = given.get(node) or (subtask.application if subtask else "")
            if app:
                yield node, app
            else:
                untold.append(node)
        if unknown:
            self.note(
                Finding(
                    "subtask-missing",
                    "error",
                    place.where,
                    f"the data have no subtask {', '.join(map(short, unknown[:5]))}",
                    "every node, or the node without its number, as the id of a subtask",
                    "add the subtask, or correct the graph",
                )
            )
        elif untold:
            place.warn(
                "application-missing",
                f"nobody says whose {', '.join(map(short, untold[:5]))} is",
                'the subtasks beside the tasks, or "application": {node: name}',
                "add it; the task cannot be scored until then",
            )

    def _check_apps(self, apps: Any, given: Mapping[str, str], place: Place) -> None:
        """Say of every application without a category that it is its own; once each."""
        for app in apps:
            if app in given or app in self._apps or category_of(app):
                continue
            self._apps.add(app)
            place.warn(
                "app-unknown",
                f"Table 10 has no application {short(app)}",
                'one of its 49, or "category": {application: name} in the row',
                "nothing, if it is a category of its own, as it is counted until then",
            )

    def finish(self) -> None:
        """Say what is said once for all tasks."""
        if self.check_orders and self._unlisted:
            self.note(
                Finding(
                    "orders-missing",
                    "warning",
                    self._unlisted[0],
                    f"{len(self._unlisted)} tasks, of which this is the first, list no orders",
                    "successful_topo, all valid orders",
                    f"nothing: they are found anew where there are at most {MAX_ORDERS}",
                )
            )


def _texts(value: object) -> dict[str, str]:
    """The pairs of two texts in an object; none if it is no object."""
    pairs = value.items() if isinstance(value, Mapping) else ()
    return {key: name for key, name in pairs if isinstance(key, str) and isinstance(name, str)}
