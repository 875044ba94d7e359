"""Mind2Web's metrics: element accuracy, operation F1, and the success of steps and of tasks.

Sources: Mind2Web (Deng et al., 2023), section 4, and SeeClick (Cheng et al., 2024), whose
`agent_tasks/mind2web_test.py` scores models that see screenshots alone.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from sys import float_info
from typing import Any, Final, Literal, TypedDict

import numpy as np
from msgspec import Struct

from omnidata.actions import Action, Box, Kind, Point, Screen, Space
from omnidata.dialects import UnreadError
from omnidata.jsontext import objects
from omnidata.metrics.row_tables import means
from omnidata.tasks.benchmark import ParsedAnswer, Receipt, Rule, Values
from omnidata.tasks.coordinates import on_screen, point_of
from omnidata.tasks.pointing import boxes_of, edges_in_shares, is_within
from omnidata.tasks.totals import Column, RowTotals
from omnidata.types import Step, Verdict, VerdictColumns

Reading = Literal["released", "fixed"]
Operation = Literal["CLICK", "TYPE", "SELECT"]
CODES: Final[Mapping[Operation, int]] = {"CLICK": 4, "TYPE": 3, "SELECT": 2}
KINDS: Final[Mapping[Operation, Kind]] = {"CLICK": "tap", "TYPE": "type", "SELECT": "select"}
OPERATIONS: Final[Mapping[str, Operation]] = {
    **{name: name for name in CODES}, "HOVER": "CLICK", "ENTER": "CLICK"
}  # fmt: skip
"""Annotated operation -> the operation that it counts as: hovering and Enter are clicks."""
SPLITS: Final = ("train", "test_task", "test_website", "test_domain")


# Answers.

_PAIR: Final = re.compile(r"\(\s*+(-?[\d.eE+-]++)\s*+,\s*+(-?[\d.eE+-]++)\s*+\)")
_LONGEST: Final = 100_000
_NOWHERE: Final = Point(math.inf, math.inf, "px")
"""The place of an answer whose receipt cannot be read, or whose numbers are out of range."""


class Record(TypedDict, total=False):
    """The parsed answer in a line of scores."""

    operation: str
    point: tuple[float, float]
    value: str


class Move(Struct, frozen=True):
    """An operation on an element, as an answer has it.

    Attributes:
        code: `action_type`, a number or a name.
        point: the place; None without one.
        value: the text to type or select; a faulty answer may have any value.
    """

    code: Any
    point: Point | None
    value: Any = None

    @property
    def operation(self) -> Operation | None:
        """The operation, by its number or name; None if there is no such operation."""
        if isinstance(self.code, str):
            return OPERATIONS.get(self.code.strip().upper())
        return next((name for name, number in CODES.items() if self.code == number), None)

    def as_answer(self, step: Step, receipt: Receipt) -> ParsedAnswer[Move]:
        """Return the answer that rules judge; pixels are those of the sent picture."""
        operation, point = self.operation, self.point
        record: dict[str, Any] = {"operation": operation or ""}
        if point:
            record["point"] = [point.x, point.y]
        if isinstance(self.value, str):
            record["value"] = self.value
        written: tuple[Action, ...] = ()
        if operation:
            text = None if operation == "CLICK" else str(self.value or "")
            written = (Action(KINDS[operation], (point,) if point else (), text=text),)
        if point and point.space == "px":
            point = on_screen(step, point, receipt) or _NOWHERE
        return ParsedAnswer(Move(self.code, point, self.value), record, written)


def parse_move(
    text: str, step: Step, receipt: Receipt, *, reading: Reading, space: Space
) -> ParsedAnswer[Move]:
    """Read the object of an answer, with places in a unit of coordinates.

    The reading "released" is that of SeeClick's script, which wants the object alone, as Python
    writes it; "fixed" takes the last object of any text, with places as Python's tuples too.
    """
    found: Any = None
    if reading == "fixed" and len(text) <= _LONGEST:
        with suppress(RecursionError):
            bodies = [*objects(_PAIR.sub(r"[\1, \2]", text))]
            found = next((body for body in reversed(bodies) if "action_type" in body), None)
    found = found or _literal(text)
    if not isinstance(found, dict) or "action_type" not in found:
        raise UnreadError("no object with an action_type")
    place = found.get("click_point")
    if reading == "released" and isinstance(place, list | tuple):
        place = place[:2]  # the script looks at no more
    point = point_of(place, space)
    if point and point.x == point.x and point.y == point.y:
        most = float_info.max  # JSON has no infinity
        x, y = (max(-most, min(most, side)) for side in (point.x, point.y))
        point = Point(x, y, space)
    else:
        point = None
    return Move(found["action_type"], point, found.get("value")).as_answer(step, receipt)


def _literal(text: str) -> Any:
    """The value of Python's literal; None for a text that is none."""
    if len(text) > _LONGEST:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes such as "\d", which are the answer's
            return ast.literal_eval(text)
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError, OverflowError):
        return None


# What is right.


def target_of(row: Mapping[str, Any]) -> tuple[Operation | None, str]:
    """Return the operation and its typed or selected value."""
    done = row.get("operation")
    if not isinstance(done, Mapping):
        return None, ""
    name, value = done.get("original_op", done.get("op")), done.get("value")
    return OPERATIONS.get(str(name)), value if isinstance(value, str) else ""


def aim_of(box: Box, screen: Screen) -> Box:
    """Return where an answer is right by both rules, in pixels: in the box and its rounded edges.

    On a page of 20000 pixels a thousandth is 20 of them, and a low element may have no such place:
    then it is the box.
    """
    edges = edges_in_shares(box, screen)
    near = [round(edge, 3) * extent for edge, extent in zip(edges, screen * 2, strict=True)]
    left, top = max(box.left, near[0]), max(box.top, near[1])
    right, bottom = min(box.right, near[2]), min(box.bottom, near[3])
    return Box(left, top, right, bottom, "px") if left <= right and top <= bottom else box


# Rules.


class Totals(RowTotals):
    """Element accuracy, operation F1 and the success rate of steps; of tasks beside the table."""

    def __init__(self) -> None:
        super().__init__(
            [Column("Step SR", "step"), Column("Ele.Acc", "element"), Column("Op.F1", "op_f1")],
            by={"split": SPLITS, "domain": (), "subdomain": (), "website": ()},
        )

    def total(self, steps: Sequence[Step], rows: VerdictColumns) -> dict[str, Any]:
        """Return the table of `RowTotals`; `macro`, each metric's mean over tasks; `SR` of tasks.

        `operations` has the mean F1 of the steps of each operation, and the mean of these means,
        which SeeClick prints as its Operation F1.
        """
        found, judged = super().total(steps, rows), ~np.isnan(rows.values["step"])
        tasks: dict[str, list[int]] = {}
        kinds: dict[str, list[int]] = {}
        for at in np.flatnonzero(judged).tolist():
            tasks.setdefault(steps[at].episode, []).append(at)
            kinds.setdefault(target_of(steps[at].source["row"])[0] or "", []).append(at)
        each = {
            name: np.array([rows.values[value][own].mean() for own in tasks.values()])
            for name, value in zip(self.columns, self.values, strict=True)
        }
        macro = means(each, shares=(*each,)) if tasks else {}
        op = {kind: float(rows.values["op_f1"][own].mean()) for kind, own in sorted(kinds.items())}
        return {
            **found,
            "macro": {name: macro.get(name) for name in self.columns},
            "SR": float((each["Step SR"] == 1).mean()) if tasks else None,
            "operations": {"Op.F1": op, "mean": float(np.mean([*op.values()])) if op else None},
        }


class InElement(Rule[Move]):
    """The place is in a right element, and the operation and its value are right.

    Args:
        reading: "released" judges as SeeClick's script does: by the box of one element, whose edges
            are rounded to thousandths of the page; "fixed" by all elements that the annotation
            takes for right, at their edges.
    """

    source = "SeeClick's evaluation of Mind2Web (Cheng et al., 2024)"
    leaves_out = "steps whose element is not in the page"
    totals = Totals()

    def __init__(self, reading: Reading) -> None:
        self.name = "mind2web" if reading == "released" else "mind2web-fixed"
        self._reading: Reading = reading

    def judge(self, step: Step, parsed: ParsedAnswer[Move] | None) -> Values | Verdict:
        """Compare operation, value and place with the row's."""
        boxes, released = boxes_of(step), self._reading == "released"
        operation, value = target_of(step.source["row"])
        if not boxes or operation is None or min(step.screen) < 1:
            return Verdict("ok", (None, None, None), None, "nobody knows the element")
        if released and operation != "CLICK":
            # The script writes the value between quotation marks, and reads that again.
            value = _literal(f'"{value}"')
            if not isinstance(value, str):
                why = "SeeClick's script cannot read this value again, and leaves the step out"
                return Verdict("ok", (None, None, None), None, why)
        if parsed is None:
            return (False, False, 0.0)
        move, edges = parsed.value, [edges_in_shares(box, step.screen) for box in boxes]
        if released:
            edges = [[round(edge, 3) for edge in edges[0]]]
        point = move.point
        element = point is not None and any(is_within(point, e, step.screen) for e in edges)
        score = self._f1(move, operation, value.lower())
        return (element and score == 1, element, float(score))

    def _f1(self, move: Move, wanted: Operation, value: str) -> float:
        """The script writes out any type, known or not, and needs a place."""
        said: str | None = move.operation
        right, has_value = str(wanted), said != "CLICK"
        if self._reading == "released":
            said, right = str(move.code) if move.point else None, str(CODES[wanted])
            has_value = move.code in (CODES["TYPE"], CODES["SELECT"])
        if said is None or (has_value and not isinstance(move.value, str)):
            return 0.0
        said = f"{said} {move.value.lower()}" if has_value else said
        return f1(said, f"{right} {value}" if wanted != "CLICK" else right)


def f1(said: str, wanted: str) -> float:
    """Return the F1 of the words of two texts, each once.

    Examples:
        >>> f1("3 new york", "3 new jersey"), f1("", "")
        (0.6666666666666666, 1)
    """
    one, other = set(said.split()), set(wanted.split())
    if not one or not other:
        return int(not one and not other)
    both = len(one & other)
    precision, recall = both / len(one), both / len(other)
    return 2 * precision * recall / (precision + recall) if both else 0.0
