"""OSWorld-G's regions, and whether a point is right: the rules of lmms-eval's task `osworld_g`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from omnidata.actions import Action, Box, Pair, Point, Region, Space
from omnidata.jsontext import is_coordinate
from omnidata.loaders.load import short
from omnidata.tasks.benchmark import ParsedAnswer, Receipt, Rule, Values
from omnidata.tasks.coordinates import on_screen
from omnidata.tasks.pointing import Place, json_pair
from omnidata.tasks.points import read
from omnidata.tasks.totals import Column, PartTotals
from omnidata.types import Step, Verdict, VerdictColumns

CAPABILITIES: Final = (
    "text_matching", "element_recognition", "layout_understanding", "fine_grained_manipulation",
    "refusal",
)  # fmt: skip
"""The capabilities of the paper's Table 2, as named in the release's file of classes."""
TYPES: Final = ("bbox", "polygon", "refusal")
DONE: Final = Action("done", status="failure")
"""The action of an answer that the element is absent."""
_ABSENT: Final = (-1.0, -1.0)


def numbers_of(row: Mapping[str, Any]) -> list[float]:
    """Return the numbers of a region: left, top, width and height of a box, x and y of corners.

    Raises:
        ValueError: they are no region; the message says why.
    """
    value, kind = row.get("box_coordinates"), row.get("box_type")
    fits = isinstance(value, list) and all(map(is_coordinate, value))
    if not isinstance(value, list) or not fits or kind not in TYPES:
        raise ValueError(f"{short(kind)} at {short(value)}")
    if kind == "bbox" and (len(value) != 4 or min(value[2:]) < 0):
        raise ValueError(f"a box of {short(value)}")
    if kind == "polygon" and (len(value) % 2 or not 6 <= len(value) <= 2000):
        raise ValueError(f"a polygon of {len(value)} numbers")
    return value


def _in_polygon(x: float, y: float, corners: Sequence[Pair]) -> bool:
    """Return whether a point lies in a polygon, by the crossings of a ray to the right.

    Examples:
        >>> [_in_polygon(x, 1, [(0, 0), (4, 0), (4, 2), (0, 2)]) for x in (1, 5)]
        [True, False]
    """
    sides = ((a, b) for a, b in pairwise([corners[-1], *corners]) if (a[1] > y) != (b[1] > y))
    crossed = ((a[0] - b[0]) * (y - b[1]) / (a[1] - b[1]) + b[0] for a, b in sides)
    return sum(x < at for at in crossed) % 2 == 1


def _within(corners: Sequence[Pair]) -> Iterator[Pair]:
    """Return points in a polygon: the middles of its spans between corner heights."""
    spans: list[tuple[float, Pair]] = []
    for low, high in pairwise(sorted({corner[1] for corner in corners})):
        y = (low + high) / 2
        sides = ((a, b) for a, b in pairwise([corners[-1], *corners]) if (a[1] > y) != (b[1] > y))
        at = sorted((a[0] - b[0]) * (y - b[1]) / (a[1] - b[1]) + b[0] for a, b in sides)
        spans += [(b - a, ((a + b) / 2, y)) for a, b in zip(at[::2], at[1::2], strict=False)]
    yield from (middle for _, middle in sorted(spans, reverse=True))


def region_of(row: Mapping[str, Any]) -> Region | None:
    """Return the box, or a point in the polygon; None if the row has neither."""
    try:
        found = numbers_of(row)
    except ValueError:
        return None
    if row["box_type"] == "bbox":
        return Box(found[0], found[1], found[0] + found[2], found[1] + found[3], "px")
    corners = list(zip(found[::2], found[1::2], strict=True))
    points = (at for at in _within(corners) if row["box_type"] == "polygon")
    return next((Point(x, y, "px") for x, y in points if _in_polygon(x, y, corners)), None)


def hits(row: Mapping[str, Any], point: Pair) -> bool:
    """Return whether a point in pixels is right: in the box or polygon, or below 0 for absence.

    Raises:
        ValueError: as `numbers_of`.
    """
    found, (x, y) = numbers_of(row), point
    if row["box_type"] == "bbox":
        left, top, wide, high = found
        return left <= x <= left + wide and top <= y <= top + high
    if row["box_type"] == "refusal":
        return x < 0 and y < 0
    return _in_polygon(x, y, list(zip(found[::2], found[1::2], strict=True)))


# lmms-eval's reading of answers: its expressions, made possessive to take linear time.

_NUM: Final = r"-?\d++(?:\.\d++)?+%?+"
_NUMBERS: Final = re.compile(_NUM)
_BBOX: Final = re.compile(r"<\s*+bbox", re.IGNORECASE)
_END: Final = re.compile(r"<\s*+/\s*+bbox\s*+>", re.IGNORECASE)
_PAIR: Final = re.compile(rf"[\[\(]\s*+({_NUM})(?:\s*+,\s*+|\s++)({_NUM})\s*+[\]\)]")
_X, _Y = (re.compile(rf"{axis}['\"]?+\s*+[:=]\s*+({_NUM})", re.IGNORECASE) for axis in "xy")
_BOXED: Final = ("bbox", "box", "rect")
_LONGEST: Final = 100_000


def read_released(text: str, space: Space) -> Point | None:
    """Return the point that lmms-eval reads; numbers from 0 to 1 are shares but of `norm1000`.

    Examples:
        >>> read_released("<bbox>1 2 3 4</bbox>", "px"), read_released("x: 5, y: 6", "norm1000")
        (Point(x=2.0, y=3.0, space='px'), Point(x=5.0, y=6.0, space='norm1000'))
        >>> read_released("[0.5, 0.25]", "px"), read_released("7", "px")
        (Point(x=0.5, y=0.25, space='rel'), None)
    """
    pair = _released_pair(text) if len(text) <= _LONGEST else None
    if pair is None:
        return None
    if space != "norm1000":
        space = "rel" if min(pair) >= 0 and max(pair) <= 1 else "px"
    return Point(*pair, space)


def _released_pair(text: str) -> Pair | None:
    begin = _BBOX.search(text)
    closed = text.find(">", begin.end()) if begin else -1
    if closed >= 0 and (end := _END.search(text, closed + 1)):
        inside = _NUMBERS.findall(text[closed + 1 : end.start()])
        if len(inside) >= 4:
            return _middle(inside)
    if found := _PAIR.search(text):
        return _number(found[1]), _number(found[2])
    if (across := _X.search(text)) and (down := _Y.search(text, across.end())):
        return _number(across[1]), _number(down[1])
    every = _NUMBERS.findall(text)
    if len(every) >= 4 and any(word in text.lower() for word in _BOXED):
        return _middle(every)
    return (_number(every[0]), _number(every[1])) if len(every) >= 2 else None


def _number(word: str) -> float:
    return float(word[:-1]) / 100 if word.endswith("%") else float(word)


def _middle(words: Sequence[str]) -> Pair:
    left, top, right, bottom = map(_number, words[:4])
    return (left + right) / 2, (top + bottom) / 2


def read_fixed(text: str, space: Space) -> Point | None:
    """Return the point that `omnidata.tasks.points` reads, in the unit that was asked for."""
    found = read(text, "fixed")
    return Point(*(found.point or _ABSENT), found.space or space) if found else None


def answer_at(point: Point, step: Step, receipt: Receipt) -> ParsedAnswer[Place]:
    """Return the answer that points at a place; two numbers below 0 mean absence.

    Its value is None if no screen has such a place, and in its own unit on a screen of unknown
    size.

    Args:
        point: as the model wrote it; pixels are those of the sent picture.
        step: of the question.
        receipt: has the size of that picture.
    """
    written = DONE if point.x < 0 and point.y < 0 else Action("tap", (point,))
    is_finite = np.isfinite(point.x) and np.isfinite(point.y)
    return ParsedAnswer(
        on_screen(step, point, receipt) if min(step.screen) > 0 else point,
        {"point": json_pair(point.x, point.y), "space": point.space},
        (written,) if is_finite else (),
    )


class Accuracy(PartTotals):
    """Accuracy: of all rows, of those of each kind of region, and of each capability."""

    def __init__(self) -> None:
        super().__init__([Column("accuracy", "score"), *map(Column, TYPES)], by={"box_type": TYPES})

    def total(self, steps: Sequence[Step], rows: VerdictColumns) -> dict[str, Any]:
        """Return the table of `PartTotals`, also by capability; a row may have several."""
        found, judged = super().total(steps, rows), ~np.isnan(rows.values["score"])
        asked = [step.tags.get("capability", "").split("+") for step in steps]
        masks = {name: judged & np.array([name in one for one in asked]) for name in CAPABILITIES}
        tables = {n: self._table(steps, rows, mask) for n, mask in masks.items() if mask.any()}
        found["by"] |= {"capability": tables} if tables else {}
        return found


class InRegion(Rule[Place]):
    """The point lies in the row's region, or says that the element is absent."""

    source = "OSWorld-G (Xie et al., 2025), as lmms-eval scores it"
    totals = Accuracy()

    def __init__(self, name: str) -> None:
        self.name = name

    def judge(self, step: Step, parsed: ParsedAnswer[Place] | None) -> Values | Verdict:
        """Compare the place with the region; a share of an unknown screen cannot be judged."""
        row, at = step.source["row"], parsed.value if parsed else None
        if at and at.space != "px" and at.x >= 0:
            return (None,) * 4
        try:
            hit = hits(row, (at.x, at.y) if at else (np.nan, np.nan))
        except ValueError as error:
            return Verdict("ok", (None,) * 4, None, str(error))
        return (hit, *(hit if row["box_type"] == name else None for name in TYPES))
