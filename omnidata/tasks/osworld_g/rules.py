"""OSWorld-G's regions, and whether a point is right: the rules of lmms-eval's task `osworld_g`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, Literal, TypedDict

import numpy as np

from omnidata.actions import Box, Pair, Point, Region, Space
from omnidata.jsontext import is_number
from omnidata.loaders.load import short
from omnidata.tasks.coordinates import Side, on_screen
from omnidata.tasks.points import read as read_fixed
from omnidata.tasks.profiles import PartsProfile
from omnidata.types import Step, Verdict, VerdictColumns

CAPABILITIES: Final = (
    "text_matching", "element_recognition", "layout_understanding", "fine_grained_manipulation",
    "refusal",
)  # fmt: skip
"""What rows ask for by the paper's Table 2, as the release's file of classes names it."""
TYPES: Final = ("bbox", "polygon", "refusal")


def numbers_of(row: Mapping[str, Any]) -> list[float]:
    """The numbers of a row's region: of a box left, top, width and height, of a polygon x and y.

    Raises:
        ValueError: they are no region; the message says why.
    """
    value, kind = row.get("box_coordinates"), row.get("box_type")
    fits = isinstance(value, list) and all(is_number(n) and abs(n) <= 1e9 for n in value)
    if not isinstance(value, list) or not fits or kind not in TYPES:
        raise ValueError(f"{short(kind)} at {short(value)}")
    if kind == "bbox" and (len(value) != 4 or min(value[2:]) < 0):
        raise ValueError(f"a box of {short(value)}")
    if kind == "polygon" and (len(value) % 2 or not 6 <= len(value) <= 2000):
        raise ValueError(f"a polygon of {len(value)} numbers")
    return value


def _in_polygon(x: float, y: float, corners: Sequence[Pair]) -> bool:
    """Whether a point lies in a polygon, by the crossings of a ray to the right.

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
    """Whether a point in pixels is right: in the box with its edges, in the polygon, below 0.

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


# How lmms-eval reads an answer; the expressions are its own, with ends that cost no second look.

_NUM: Final = r"-?\d++(?:\.\d++)?+%?+"
_NUMBERS: Final = re.compile(_NUM)
_BBOX: Final = re.compile(r"<\s*+bbox", re.IGNORECASE)
_END: Final = re.compile(r"<\s*+/\s*+bbox\s*+>", re.IGNORECASE)
_PAIR: Final = re.compile(rf"[\[\(]\s*+({_NUM})(?:\s*+,\s*+|\s++)({_NUM})\s*+[\]\)]")
_X, _Y = (re.compile(rf"{axis}['\"]?+\s*+[:=]\s*+({_NUM})", re.IGNORECASE) for axis in "xy")
_BOXED: Final = ("bbox", "box", "rect")
_LONGEST: Final = 100_000


def read_released(text: str) -> Pair | None:
    """The point that lmms-eval reads in an answer; of a box the middle.

    Examples:
        >>> read_released("<bbox>1 2 3 4</bbox>"), read_released("x: 5, y: 6"), read_released("7")
        ((2.0, 3.0), (5.0, 6.0), None)
    """
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


class Parsed(TypedDict):
    """The parsed answer in a line of scores."""

    point: tuple[Side, Side] | None
    space: Space


class RegionProfile(PartsProfile):
    """Accuracy: of all rows, and of those of each kind of region.

    Args:
        reading: "released" reads as lmms-eval does, numbers from 0 to 1 as shares whatever was
            asked for; "fixed" as `omnidata.tasks.points` does, in the unit that was asked for.
        space: that unit.
    """

    values = ("score", *TYPES)
    columns: Mapping[str, Literal["share", "number"]] = dict.fromkeys(("accuracy", *TYPES), "share")
    by: Mapping[str, Sequence[str]] = {"box_type": TYPES}

    def __init__(self, reading: Literal["released", "fixed"], space: Space) -> None:
        self.name = "osworld-g" if reading == "released" else "osworld-g-fixed"
        self.source = "OSWorld-G (Xie et al., 2025), as lmms-eval scores it"
        self._reading, self._space = reading, space

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        row, point = step.source["row"], self._read(text)
        known = point is None or point.x < 0 or point.space == "px" or min(step.screen) > 0
        at = on_screen(step, point, receipt) if point and min(step.screen) > 0 else point
        try:
            hit = hits(row, (at.x, at.y) if at else (np.nan, np.nan)) if known else None
        except ValueError as error:
            return Verdict("ok", (None,) * 4, None, str(error))
        values = (hit, *(hit if row["box_type"] == name else None for name in TYPES))
        if point is None:
            return Verdict("unparsed", values, None, "no point")
        sides = [side if np.isfinite(side) else str(side) for side in (point.x, point.y)]
        return Verdict("ok", values, {"point": sides, "space": point.space})

    def _read(self, text: str) -> Point | None:
        if len(text) > _LONGEST:
            return None
        if self._reading == "fixed":
            said = read_fixed(text, "fixed")
            pair = (-1.0, -1.0) if said and said.point is None else said.point if said else None
            return Point(*pair, (said and said.space) or self._space) if pair else None
        pair = read_released(text)
        unit: Space = "px" if self._space == "rel" else self._space
        if pair and unit == "px" and 0 <= pair[0] <= 1 and 0 <= pair[1] <= 1:
            unit = "rel"
        return Point(*pair, unit) if pair else None

    def total(self, steps: Sequence[Step], rows: VerdictColumns) -> dict[str, Any]:
        """Return the table of `PartsProfile`, also by capability; a row may have several."""
        found, judged = super().total(steps, rows), ~np.isnan(rows.values["score"])
        asked = [step.tags.get("capability", "").split("+") for step in steps]
        masks = {name: judged & np.array([name in one for one in asked]) for name in CAPABILITIES}
        tables = {n: self._table(steps, rows, mask) for n, mask in masks.items() if mask.any()}
        found["by"] |= {"capability": tables} if tables else {}
        return found
