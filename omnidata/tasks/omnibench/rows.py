"""One row of OmniBench's metadata -> a subtask or a trajectory, with a finding for every doubt.

The forms are those of Appendix C and of the examples that the authors gave their reviewers: keys
that are left out, three dots where the example breaks off, one more observation than actions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from msgspec.structs import replace

from omnidata.actions import Action, Box
from omnidata.errors import DataError
from omnidata.graphs import Graph, id_of
from omnidata.jsontext import is_number
from omnidata.loaders.files import SKIPPED
from omnidata.loaders.load import Note, RowContext, about, short
from omnidata.loaders.row_files import Line
from omnidata.loaders.task_library import Subtask, TaskGraph, Trajectory, places
from omnidata.tasks.omnibench.actions import FUNCTIONS, read_call, words

Row = Mapping[str, Any]

MAX_ACTIONS = 2000
"""Of one trajectory; every step holds the history before it, so length costs its square."""

DOTS = "..."
"""The end of an example that breaks off."""

_FARTHEST = 1e9
_PLACED = frozenset({"tap", "scroll"})
_UNUSABLE = "correct the action; the step has no target until then"


def identity(row: Row, *keys: str) -> str | None:
    """Return the value of the first key with a text or whole number."""
    named = (id_of(row.get(key)) for key in keys)
    return next((own for own in named if own and own.strip()), None)


def ids_of(value: object) -> tuple[str, ...] | None:
    """Return a list of ids, texts or whole numbers; None for other values."""
    if not isinstance(value, list):
        return None
    found = [own for own in map(id_of, value) if own is not None]
    return tuple(found) if len(found) == len(value) else None


def text_of(row: Row, *keys: str) -> str:
    """Return the text of the first key that has one, or an empty text."""
    return next((row[key] for key in keys if isinstance(row.get(key), str)), "")


def read_subtask(line: Line, place: RowContext) -> Subtask | None:
    """Return the subtask of a row without its evaluation; None without id or template."""
    row = line.row
    own, template = identity(row, "id", "subtask_id"), row["instruction_template"]
    if own is None:
        place.refuse("id-missing", "the subtask has no id", "id, a text")
        return None
    if not isinstance(template, str):
        place.refuse("column-wrong", f"instruction_template is {short(template)}", "a text")
        return None
    if not text_of(row, "application"):
        place.warn(
            "application-missing",
            f"application is {short(row.get('application'))}",
            "the application's name",
            "add it; tasks with the subtask cannot be scored until then",
        )
    return Subtask(
        id=own,
        template=template,
        application=text_of(row, "application"),
        parameters=tuple(_parameters(row, template, place)),
        os=text_of(row, "OS", "os"),
        inputs=_names(row, "input_resources", place),
        outputs=_names(row, "output_resources", place),
        source=row,
    )


def _parameters(row: Row, template: str, place: RowContext) -> Iterator[Mapping[str, Any]]:
    value = row.get("available_parameters")
    given = [value] if isinstance(value, Mapping) else [] if value is None else value
    if not isinstance(given, list) or not all(isinstance(binding, Mapping) for binding in given):
        place.warn(
            "parameters-unusable",
            f"available_parameters is {short(value)}",
            "a list of objects, each a value for every place of the template",
        )
        return
    wanted = set(places(template))
    for number, binding in enumerate(given):
        if missing := sorted(wanted - binding.keys()):
            place.warn(
                "parameter-missing",
                f"binding {number} has no {', '.join(missing)}",
                "a value for every place of the template",
            )
        yield binding


def _names(row: Row, key: str, place: RowContext) -> tuple[str, ...]:
    value = row.get(key)
    if value is None:
        return ()
    if isinstance(value, list) and all(isinstance(name, str) and name for name in value):
        return tuple(value)
    place.warn("resources-unusable", f"{key} is {short(value)}", "a list of names")
    return ()


def read_trajectory(line: Line, place: RowContext) -> Trajectory | None:
    """Return the trajectory of a row; None for a row without id or actions."""
    row = line.row
    own, actions = identity(row, "trajectory_id", "id"), row["actions"]
    if own is None:
        place.refuse("id-missing", "the trajectory has no id", "trajectory_id, a text")
        return None
    if not isinstance(actions, list):
        place.refuse("column-wrong", f"actions is {short(actions)}", "a list of actions")
        return None
    if len(actions) > MAX_ACTIONS:
        place.refuse(
            "actions-many", f"the row has {len(actions)} actions", f"at most {MAX_ACTIONS}"
        )
        return None
    rows = tuple(action if isinstance(action, Mapping) else {} for action in actions)
    steps = [f"{own}/{number}" for number in range(len(rows))]
    place = RowContext(place.where, about(place.note, *steps))
    listed = row.get("topological_order")
    order = () if listed is None else ids_of(listed)
    if order is None:
        place.warn("order-unusable", f"topological_order is {short(listed)}", "a list of node ids")
    found = Trajectory(
        id=own,
        instruction=text_of(row, "instruction", "task_instruction"),
        observations=_observations(row, len(actions), place),
        actions=rows,
        subtask_id=identity(row, "subtask_id") or "",
        task_id=identity(row, "task_id") or "",
        order=order or (),
        intent=text_of(row, "intent", "task_intent"),
        source=row,
        read_actions=tuple(map(action_of, rows)),
    )
    if not found.instruction:
        place.warn("instruction-missing", "the trajectory has no instruction", "a text")
    if not found.subtask_id and not found.task_id:
        place.warn(
            "owner-missing",
            "the trajectory names neither subtask nor task",
            "subtask_id or task_id",
        )
    for step, action in zip(steps, found.actions, strict=True):
        _check_action(action, RowContext(f"{step} ({place.where})", about(place.note, step)))
    return found


def _observations(row: Row, actions: int, place: RowContext) -> tuple[str, ...]:
    value = row.get("observations")
    names = value if isinstance(value, list) else []
    if len(names) - actions not in (0, 1):
        place.warn(
            "observations-differ",
            f"there are {len(names)} observations and {actions} actions",
            "one before each action, optionally one after the last",
            "add the missing ones; steps without one have no screenshot until then",
        )
    unusable = [short(name) for name in names if not isinstance(name, str)]
    if unusable:
        place.warn("observation-unusable", f"an observation is {unusable[0]}", "a picture's path")
    return tuple(name if isinstance(name, str) and name != DOTS else "" for name in names)


def action_of(row: Mapping[str, Any]) -> Action | None:
    """Return an action of a trajectory, in its own words; None if unreadable."""
    try:
        action = _read(row)
    except ValueError:
        return None
    control = text_of(row, "control_text").strip()
    box = rect_of(row) if action.kind in _PLACED else None
    said = words(action, f'"{control}"' if control else "")
    return replace(action, start=(box,) if box else (), words=said)


def _read(row: Mapping[str, Any]) -> Action:
    if "function" not in row:
        raise ValueError("the action names no function")
    return read_call(row["function"], row.get("args"))


def rect_of(action: Mapping[str, Any]) -> Box | None:
    """Return the control of an action, in pixels of the screenshot; None if unknown."""
    edges = action.get("rect")
    if not isinstance(edges, list | tuple) or len(edges) != 4:
        return None
    if not all(is_number(edge) for edge in edges):
        return None
    if not all(abs(edge) <= _FARTHEST for edge in edges):  # False for NaN too
        return None
    left, top, right, bottom = edges
    return Box(left, top, right, bottom, "px") if left <= right and top <= bottom else None


def _check_action(action: Mapping[str, Any], place: RowContext) -> None:
    try:
        read = _read(action)
    except ValueError as error:
        functions = ", ".join(filter(None, FUNCTIONS))
        place.warn("action-unusable", str(error), f"{functions}, and their arguments", _UNUSABLE)
        return
    rect = action.get("rect")
    if rect is not None and rect_of(action) is None:
        place.warn(
            "rect-unusable",
            f"rect is {short(rect)}",
            "[left, top, right, bottom] in pixels, left <= right and top <= bottom",
        )
    elif read.kind == "tap" and rect is None:
        place.warn(
            "click-without-rect",
            "the click has no place",
            "rect, [left, top, right, bottom] in pixels",
            "add it; the step is not judged until then",
        )


# The orders of a task and of its trajectories, compared with the graph.

MAX_ORDERS = 1000
"""Orders of a task that are computed if its source does not list them all."""

_STATES = 10_000
"""Limit of counting a task's orders; see `Graph.count_orders`."""

_NUMBERED = re.compile(r".*\((?P<number>\d{1,9})\)", re.DOTALL)


def _valid_orders(row: Row, graph: Graph, place: RowContext) -> tuple[tuple[str, ...], ...]:
    """Return the valid orders of the row's list, or all if the list lacks some of a few.

    A row may say in `orders_total` that its list is a sample.
    """
    listed = _valid(row.get("successful_topo"), graph, place)
    total = graph.count_orders(_STATES)
    if total == len(listed):
        return listed
    few = total is not None and total <= MAX_ORDERS
    stated = row.get("orders_total") if listed else None
    if row.get("successful_topo") is not None and (stated is None or total not in (None, stated)):
        place.warn(
            "orders-incomplete",
            f"successful_topo has {len(listed)} of {total or 'very many'} valid orders",
            "all of them, or how many there are in orders_total",
            "list them all; they are computed until then" if few else "list them all, or none",
        )
    if not few:
        return listed
    known = set(listed)
    return (*listed, *(order for order in graph.orders() if order not in known))


def _valid(value: object, graph: Graph, place: RowContext) -> tuple[tuple[str, ...], ...]:
    if not isinstance(value, list):
        if value is not None:
            place.warn("orders-unusable", f"successful_topo is {short(value)}", "a list of orders")
        return ()
    found: dict[tuple[str, ...], None] = {}
    for number, listed in enumerate(value):
        where = RowContext(f"{place.where}, successful_topo {number}", place.note)
        order = ids_of(listed)
        try:
            if order is None:
                raise DataError(f"the order is {short(listed)}", expected="a list of node ids")
            graph.check_order(order)
        except DataError as error:
            remedy = "correct the order; it is left out until then"
            where.warn("order-wrong", error.what, error.expected, remedy)
            continue
        if order in found:
            where.warn("order-repeated", "the order is listed twice", "each once")
        found[order] = None
    return tuple(found)


def check_trajectory(trajectory: Trajectory, task: TaskGraph, place: RowContext) -> None:
    """Compare the order of a task's trajectory with the task.

    The trajectory's id ends in the number of the order: "12(0)" is the first of task 12 (Appendix
    C.5).
    """
    if not trajectory.order:
        return
    try:
        task.graph.check_order(trajectory.order)
    except DataError as error:
        place.warn("order-wrong", error.what, error.expected)
        return
    numbered = _NUMBERED.fullmatch(trajectory.id)
    listed = task.source.get("successful_topo")
    if numbered is None or not isinstance(listed, Sequence):
        return
    number = int(numbered["number"])
    if number >= len(listed) or ids_of(listed[number]) != trajectory.order:
        place.warn(
            "order-number-wrong",
            f"the id names order {number}, which differs",
            "the order's 0-based place in successful_topo",
        )


# The applications of OmniBench and their categories (Table 10).


@cache
def _content() -> Any:
    folder = resources.files("omnidata.tasks.omnibench")
    return json.loads(folder.joinpath("table10.json").read_bytes())


@cache
def table10() -> Mapping[str, str]:
    """Return the category of each application, as printed.

    Examples:
        >>> len(table10()), len(set(table10().values()))
        (49, 12)
    """
    categories = _content()["categories"].items()
    return {app: category for category, apps in categories for app in apps}


@cache
def _categories() -> Mapping[str, str]:
    """Return the category by an application's key, also of the released code's spellings."""
    spellings = {said: table10()[app] for said, app in _content()["spellings"].items()}
    return {_key(app): category for app, category in {**table10(), **spellings}.items()}


def _key(app: str) -> str:
    return " ".join(app.split()).casefold()


def categories_of(apps: Iterable[str], given: Mapping[str, str] = {}) -> dict[str, str]:
    """Return the category of each application; an unknown application is a category of its own.

    Case and repeated spaces do not count; nothing else is guessed.

    Args:
        apps: the applications of a task.
        given: categories by the source, which come first.

    Examples:
        >>> categories_of(["Word", "Outlook"])
        {'Word': 'Office', 'Outlook': 'Outlook'}
    """
    return {app: given.get(app) or _categories().get(_key(app), app) for app in apps}


# One row of OmniBench's task metadata -> a task graph, with a finding for every doubt.


def subtask_of(node: str, subtasks: Mapping[str, Subtask]) -> Subtask | None:
    """Return the subtask that a node is an instance of.

    Instances of a subtask are numbered: C1, C2 of C. The longest matching id counts.

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
    """Return node -> subtask: the one in the task's row, or else by `subtask_of`."""
    said = row.get("subtasks")
    named = said if isinstance(said, Mapping) else {}
    return {node: subtask_of(id_of(named.get(node)) or node, subtasks) for node in nodes}


def row_categories(subtasks: Iterable[Subtask]) -> dict[str, str]:
    """Return application -> category from the subtasks' rows; the paper's have none."""
    found = ((subtask, text_of(subtask.source, "category")) for subtask in subtasks)
    return {subtask.application: category for subtask, category in found if category}


@dataclass(slots=True)
class TaskReader:
    """Turns rows into task graphs.

    Attributes:
        subtasks: of the same library, by id; empty if it has none.
        note: takes the findings.
        check_orders: check the orders of rows, and compute missing ones.
    """

    subtasks: Mapping[str, Subtask]
    note: Note
    check_orders: bool = True
    _unlisted: list[str] = field(default_factory=list)
    _apps: set[str] = field(default_factory=set)

    def task(self, line: Line) -> TaskGraph | None:
        """Return the task of a row; None if its graph is unusable."""
        row, place = line.row, RowContext(line.where, self.note)
        own = identity(row, "task_id", "id")
        own = own or (line.path.stem if line.alone else str(line.number))
        try:
            graph = Graph.read(row["dag"], where=f"task {own} ({line.where})")
        except DataError as error:
            RowContext(error.where, self.note).refuse(
                "graph-broken", error.what, error.expected, error.remedy or SKIPPED
            )
            return None
        subtasks = subtasks_of(graph.nodes, row, self.subtasks)
        applications = dict(self._applications(row, subtasks, place))
        given = row_categories(filter(None, subtasks.values())) | _texts(row.get("category"))
        for app in applications.values():
            if app in given or app in self._apps or _key(app) in _categories():
                continue
            self._apps.add(app)
            place.warn(
                "app-unknown",
                f"Table 10 has no application {short(app)}",
                'one of its 49, or "category": {application: name} in the row',
                "none, if it is a category of its own, which it counts as until then",
            )
        if row.get("successful_topo") is None:
            self._unlisted.append(line.where)
        orders = _valid_orders(row, graph, place) if self.check_orders else ()
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
        self, row: Row, subtasks: Mapping[str, Subtask | None], place: RowContext
    ) -> Iterator[tuple[str, str]]:
        given = _texts(row.get("application"))
        unknown, appless = [], []
        for node, subtask in subtasks.items():
            if self.subtasks and subtask is None:
                unknown.append(node)
            app = given.get(node) or (subtask.application if subtask else "")
            if app:
                yield node, app
            else:
                appless.append(node)
        if unknown:
            place.refuse(
                "subtask-missing",
                f"the data have no subtask {', '.join(map(short, unknown[:5]))}",
                "each node, or the node without its number, as the id of a subtask",
                "add the subtask, or correct the graph",
            )
        elif appless:
            place.warn(
                "application-missing",
                f"no application is known for {', '.join(map(short, appless[:5]))}",
                'the subtasks beside the tasks, or "application": {node: name}',
                "add it; the task cannot be scored until then",
            )

    def finish(self) -> None:
        """Note the findings about all tasks together."""
        if self.check_orders and self._unlisted:
            RowContext(self._unlisted[0], self.note).warn(
                "orders-missing",
                f"{len(self._unlisted)} tasks list no orders; this is the first",
                "successful_topo, all valid orders",
                f"nothing to do: up to {MAX_ORDERS} orders are computed",
            )


def _texts(value: object) -> dict[str, str]:
    pairs = value.items() if isinstance(value, Mapping) else ()
    return {key: name for key, name in pairs if isinstance(key, str) and isinstance(name, str)}
