"""Mind2Web's metrics: element accuracy, operation F1, and the success of steps and of tasks.

Sources: Mind2Web (Deng et al., 2023), section 4, and SeeClick (Cheng et al., 2024), whose
`agent_tasks/mind2web_test.py` is what screenshots alone are scored with.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping, Sequence
from sys import float_info
from typing import Any, Final, Literal, TypedDict

import numpy as np

from omnidata.actions import Box, Pair, Point, Screen, Space
from omnidata.jsontext import objects
from omnidata.metrics.paired import Unit
from omnidata.metrics.row_tables import means
from omnidata.tasks.coordinates import on_screen, point_of
from omnidata.tasks.profiles import RowProfile
from omnidata.types import Step, Verdict, VerdictColumns

Reading = Literal["released", "fixed"]
Operation = Literal["CLICK", "TYPE", "SELECT"]
CODES: Final[Mapping[Operation, int]] = {"CLICK": 4, "TYPE": 3, "SELECT": 2}
OPERATIONS: Final[Mapping[str, Operation]] = {
    **{name: name for name in CODES}, "HOVER": "CLICK", "ENTER": "CLICK"
}  # fmt: skip
"""What annotators did, and as what it counts: hovering and pressing Enter are clicks."""
SPLITS: Final = ("train", "test_task", "test_website", "test_domain")

_PAIR: Final = re.compile(r"\(\s*+(-?[\d.eE+-]++)\s*+,\s*+(-?[\d.eE+-]++)\s*+\)")
_LONGEST: Final = 100_000


class Parsed(TypedDict, total=False):
    """The parsed answer in a line of scores."""

    operation: str
    point: tuple[float, float]
    value: str


def f1(said: str, wanted: str) -> float:
    """The F1 of the words of two texts, each once.

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


def read(text: str, reading: Reading) -> Mapping[str, Any] | None:
    """The object of an answer; None where there is none.

    Args:
        text: as it came; places may be written as Python's tuples, as SeeClick writes them.
        reading: "released" wants the object alone, as Python writes it; "fixed" the last object of
            any text.

    Examples:
        >>> read("{'action_type': 4, 'click_point': (0.49,0.40)}", "released")
        {'action_type': 4, 'click_point': (0.49, 0.4)}
        >>> read('I click: {"action_type": 4}', "released")
        >>> read('I click: {"action_type": 4, "click_point": (0.5, 1)}', "fixed")
        {'action_type': 4, 'click_point': [0.5, 1]}
    """
    if len(text) > _LONGEST:
        return None
    every: list[Any] = []
    if reading == "fixed":
        try:
            every = [one for one in objects(_PAIR.sub(r"[\1, \2]", text)) if "action_type" in one]
        except RecursionError:
            return None
    found = every[-1] if every else _literal(text)
    return found if isinstance(found, dict) and "action_type" in found else None


def _literal(text: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes such as "\d", which are the answer's
            return ast.literal_eval(text)
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError, OverflowError):
        return None


def operation_of(said: Mapping[str, Any]) -> Operation | None:
    """Return the operation of an answer, by its number or name."""
    code = said.get("action_type")
    if isinstance(code, str):
        return OPERATIONS.get(code.strip().upper())
    return next((name for name, number in CODES.items() if code == number), None)


def _f1_released(said: Mapping[str, Any], wanted: Operation, value: str) -> float:
    """Operation F1 as SeeClick's script has it: whatever the type is, it is written out.

    Examples:
        >>> _f1_released({"action_type": "3", "value": "a"}, "TYPE", "a")  # no number: no value
        0.6666666666666666
    """
    code, given = said["action_type"], said.get("value")
    text = str(code)
    if code == 3 or code == 2:
        if not isinstance(given, str):
            return 0.0
        text += f" {given.lower()}"
    return f1(text, f"{CODES[wanted]} {value.lower()}" if wanted != "CLICK" else "4")


def _f1_fixed(op: Operation | None, given: object, wanted: Operation, value: str) -> float:
    """Return the F1 of operation and value; 0 without a valid operation or needed value."""
    if op is None or (op != "CLICK" and not isinstance(given, str)):
        return 0.0
    said = f"{op} {str(given).lower()}" if op != "CLICK" else op
    return f1(said, f"{wanted} {value.lower()}" if wanted != "CLICK" else wanted)


def boxes_of(step: Step) -> Sequence[Box]:
    """Return the boxes of the right elements in pixels, the recorded one first."""
    return (
        [region for region in step.action.start if isinstance(region, Box)] if step.action else ()
    )


def aim_of(step: Step) -> Box | None:
    """Where an answer is right by both readings, in pixels: within the box and its rounded edges.

    On a page of 20000 pixels a thousandth is 20 of them, and a low element may have no such place:
    then it is the box.
    """
    boxes = boxes_of(step)
    if not boxes or min(step.screen) < 1:
        return None
    box, extents = boxes[0], step.screen * 2
    near = [e * n for e, n in zip(_edges(box, step.screen, "released"), extents, strict=True)]
    left, top = max(box.left, near[0]), max(box.top, near[1])
    right, bottom = min(box.right, near[2]), min(box.bottom, near[3])
    return Box(left, top, right, bottom, "px") if left <= right and top <= bottom else box


class Mind2WebProfile(RowProfile):
    """Element accuracy, operation F1 and the success rate of steps; of tasks beside the table.

    Args:
        reading: "released" judges as SeeClick's script does: the box of one element, whose edges
            are rounded to thousandths of the page; "fixed" by all elements that the annotation
            takes for right, at their edges.
        space: the unit of places in answers.
    """

    values = ("step", "element", "op_f1")
    columns: Mapping[str, Unit] = dict.fromkeys(("Step SR", "Ele.Acc", "Op.F1"), "share")
    by: Mapping[str, Sequence[str]] = {
        "split": SPLITS,
        "domain": (),
        "subdomain": (),
        "website": (),
    }

    def __init__(self, reading: Reading, space: Space) -> None:
        self.name = "mind2web" if reading == "released" else "mind2web-fixed"
        self.source = "SeeClick's evaluation of Mind2Web (Cheng et al., 2024)"
        self.leaves_out = "steps whose element is not in the page"
        self._reading: Reading = reading
        self._space = space

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        boxes, row = boxes_of(step), step.source["row"]
        operation, value = target_of(row)
        if not boxes or operation is None or min(step.screen) < 1:
            return Verdict("ok", (None, None, None), None, "nobody knows the element")
        if self._reading == "released" and operation != "CLICK":
            # The script writes the value between quotation marks, and reads that again.
            value = _literal(f'"{value}"')
            if not isinstance(value, str):
                why = "SeeClick's script cannot read this value again, and leaves the step out"
                return Verdict("ok", (None, None, None), None, why)
        said = read(text, self._reading)
        if said is None:
            return Verdict("unparsed", (False, False, 0.0), None, "no object with an action_type")
        op, given, place = operation_of(said), said.get("value"), said.get("click_point")
        if self._reading == "released" and isinstance(place, list | tuple):
            place = place[:2]  # the script looks at no more
        point = _finite(point_of(place, self._space))
        at = _share(step, point, receipt) if point else None
        if self._reading == "released":
            boxes = boxes[:1]
            score = _f1_released(said, operation, value) if point else 0.0
        else:
            score = _f1_fixed(op, given, operation, value)
        element = at is not None and any(
            _inside(at, box, step.screen, self._reading) for box in boxes
        )
        parsed: dict[str, Any] = {"operation": op or ""}
        if point:
            parsed["point"] = [point.x, point.y]
        if isinstance(given, str):
            parsed["value"] = given
        return Verdict("ok", (element and score == 1, element, float(score)), parsed)

    def total(self, steps: Sequence[Step], rows: VerdictColumns) -> dict[str, Any]:
        """The table of `RowProfile`; `macro`, each metric's mean over tasks; `SR` of tasks.

        `Op.F1 by operation` has the mean of the steps of each operation, and `Op.F1`, their mean,
        which SeeClick prints as its Operation F1.
        """
        found, judged = super().total(steps, rows), ~np.isnan(rows.values["step"])
        places = np.flatnonzero(judged).tolist()
        tasks: dict[str, list[int]] = {}
        kinds: dict[str, list[int]] = {}
        for at in places:
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


def target_of(row: Mapping[str, Any]) -> tuple[Operation | None, str]:
    """Return the operation and its typed or selected value."""
    done = row.get("operation")
    if not isinstance(done, Mapping):
        return None, ""
    name, value = done.get("original_op", done.get("op")), done.get("value")
    return OPERATIONS.get(str(name)), value if isinstance(value, str) else ""


def _finite(point: Point | None) -> Point | None:
    """JSON has no infinity."""
    if point is None or point.x != point.x or point.y != point.y:
        return None
    x, y = (max(-float_info.max, min(float_info.max, side)) for side in (point.x, point.y))
    return Point(x, y, point.space)


def _edges(box: Box, screen: Screen, reading: Reading) -> list[float]:
    sides = zip((box.left, box.top, box.right, box.bottom), screen * 2, strict=True)
    edges = [side / extent for side, extent in sides]
    return [round(edge, 3) for edge in edges] if reading == "released" else edges


def _share(step: Step, point: Point, receipt: Mapping[str, Any] | None) -> Pair | None:
    """The script compares shares of the page."""
    if point.space != "px":
        parts = 1000 if point.space == "norm1000" else 1
        return point.x / parts, point.y / parts
    at = on_screen(step, point, receipt)
    return (at.x / step.screen[0], at.y / step.screen[1]) if at else None


def _inside(at: Pair, box: Box, screen: Screen, reading: Reading) -> bool:
    left, top, right, bottom = _edges(box, screen, reading)
    return left <= at[0] <= right and top <= at[1] <= bottom
