"""The orders that a task lists, and the one that a trajectory follows, held against the graph."""

from __future__ import annotations

import re
from collections.abc import Sequence

from omnidata.errors import DataError, Finding
from omnidata.graphs import Graph
from omnidata.loaders.omnibench_files import Row
from omnidata.loaders.omnibench_library import TaskGraph, Trajectory
from omnidata.loaders.omnibench_rows import ids_of
from omnidata.loaders.place import Place, short

MAX_ORDERS = 1000
"""Orders of a task that are found anew where its source does not list them all."""

_STATES = 10_000
"""What counting a task's orders may cost; see `Graph.count_orders`."""

_NUMBERED = re.compile(r".*\((?P<number>\d{1,9})\)", re.DOTALL)


def valid_orders(row: Row, graph: Graph, place: Place) -> tuple[tuple[str, ...], ...]:
    """The valid ones of the row's list; all, where there are few and the list lacks some.

    A row may say in `orders_total` that its list is a sample; nothing is found in that.
    """
    listed = _valid(row.get("successful_topo"), graph, place)
    total = graph.count_orders(_STATES)
    if total == len(listed):
        return listed
    few = total is not None and total <= MAX_ORDERS
    told = row.get("orders_total") if listed else None
    if row.get("successful_topo") is not None and (told is None or total not in (None, told)):
        place.warn(
            "orders-incomplete",
            f"successful_topo has {len(listed)} of {total or 'very many'} valid orders",
            "all of them, or how many there are in orders_total",
            "list them all; they are found anew until then" if few else "list them all, or none",
        )
    if not few:
        return listed
    known = set(listed)
    return (*listed, *(order for order in graph.orders() if order not in known))


def _valid(value: object, graph: Graph, place: Place) -> tuple[tuple[str, ...], ...]:
    """The listed orders that are orders of the graph, each once."""
    if not isinstance(value, list):
        if value is not None:
            place.warn("orders-unusable", f"successful_topo is {short(value)}", "a list of orders")
        return ()
    found: dict[tuple[str, ...], None] = {}
    for number, listed in enumerate(value):
        where = f"{place.where}, successful_topo {number}"
        order = ids_of(listed)
        try:
            if order is None:
                raise DataError(f"the order is {short(listed)}", expected="a list of node ids")
            graph.check_order(order)
        except DataError as error:
            remedy = "mend the order; it is left out until then"
            place.note(Finding("order-wrong", "warning", where, error.what, error.expected, remedy))
            continue
        if order in found:
            Place(where, place.note).warn("order-repeated", "the order is there twice", "each once")
        found[order] = None
    return tuple(found)


def check_trajectory(trajectory: Trajectory, task: TaskGraph, place: Place) -> None:
    """Hold the order of a task's trajectory against the task.

    Its id ends in the number of the order: "12(0)" is the first of task 12 (Appendix C.5).
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
            f"the id says order {number}, which is another one",
            "the order's 0-based place in successful_topo",
        )
