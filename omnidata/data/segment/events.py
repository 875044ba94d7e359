"""The plain action log: JSON lines that can be written by hand (`docs/segment.md`)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from omnidata.actions import POSITIONAL, SWIPES, Action, Box, Point, Primitive, Region, Space
from omnidata.data.segment.log import UNLABELLED, Event, Labels, Log, objects
from omnidata.errors import DataError
from omnidata.loaders.omnigui_apps import DEPENDENCIES, DIMENSIONS, Language
from omnidata.loaders.omnigui_targets import FARTHEST

_LATEST = 1e11
"""Seconds; beyond it, a clock counts something else."""

Form = Literal["box", "point"]

_TEXTS = ("app", "episode", "instruction_en", "instruction_zh")
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "language": get_args(Language),
    "dimension": tuple(DIMENSIONS),
    "dependency": tuple(DEPENDENCIES),
    "unit": get_args(Space),
}
_HEADER = (*_TEXTS, *_CHOICES, "screen", "clock")
_EVENT = ("time", "end", "action", "box", "point", "to", "text", "unit", "words")
_NAMES = ", ".join(kind.name for kind in Primitive)


@dataclass(frozen=True, slots=True)
class _Header:
    """What holds for every line: unit, size that pixels refer to, and the clock's zero."""

    labels: Labels = UNLABELLED
    unit: Space = "px"
    screen: tuple[float, float] | None = None
    clock: float = 0.0


def read_events(path: Path) -> Log:
    """Read a plain log: an optional header line, then one action per line.

    Args:
        path: JSON lines as `docs/segment.md` describes them.

    Raises:
        DataError: a line is not what the format allows, or there is no action.
    """
    header = _Header()
    events: list[Event] = []
    for number, (where, row) in enumerate(objects(path)):
        if number == 0 and "action" not in row and "time" not in row:
            header = _read_header(row, where)
        else:
            events.append(_read_event(row, header, where))
    if not events:
        raise DataError(
            "the log has no action",
            where=str(path),
            expected='lines like {"time": 2.5, "action": "TAP", "point": [360, 800]}',
            remedy="add the actions",
        )
    return Log(tuple(events), header.labels)


def _read_header(row: Mapping[str, Any], where: str) -> _Header:
    _check_keys(row, _HEADER, where)
    for name in _TEXTS:
        if name in row and not (isinstance(row[name], str) and row[name].strip()):
            raise _bad(name, row[name], "a text that is not empty", where)
    for name, allowed in _CHOICES.items():
        if name in row and row[name] not in allowed:
            raise _bad(name, row[name], f"one of {', '.join(allowed)}", where)
    screen = None
    if "screen" in row:
        width, height = _numbers(row["screen"], 2, "screen", where)
        if min(width, height) < 1:
            raise _bad("screen", row["screen"], "width and height in pixels", where)
        screen = width, height
    stated = {name: row[name] for name in (*_TEXTS, *_CHOICES) if name in row}
    unit = stated.pop("unit", "px")
    return _Header(Labels(**stated), unit, screen, _seconds(row, "clock", where))


def _read_event(row: Mapping[str, Any], header: _Header, where: str) -> Event:
    _check_keys(row, _EVENT, where)
    name = row.get("action")
    if not isinstance(name, str) or name not in Primitive.__members__:
        raise _bad("action", name, f"one of {_NAMES}", where)
    if "time" not in row:
        raise _bad("time", None, "seconds by the log's clock", where)
    start = _seconds(row, "time", where) - header.clock
    end = _seconds(row, "end", where) - header.clock if "end" in row else start
    if end < start:
        raise _bad("end", row["end"], f"not before the action begins ({row['time']})", where)
    return Event(start, end, _action(Primitive[name], row, header, where), where)


def _action(kind: Primitive, row: Mapping[str, Any], header: _Header, where: str) -> Action:
    placed, swipe = kind in POSITIONAL or kind in SWIPES, kind in SWIPES
    given = [name for name in ("box", "point") if name in row]
    if len(given) != int(placed):
        raise DataError(
            f"{kind.name} with {' and '.join(given) or 'neither box nor point'}",
            where=where,
            expected="either box or point" if placed else "neither box nor point",
            remedy="mend the line",
        )
    for key, wanted in (("to", swipe), ("text", kind is Primitive.INPUT)):
        if key in row and not wanted:
            raise _bad(key, row[key], f"no {key} with {kind.name}", where)
    for key in ("text", "words"):
        if (key in row or (key == "text" and kind is Primitive.INPUT)) and not isinstance(
            row.get(key), str
        ):
            raise _bad(key, row.get(key), "a text", where)
    if row.get("text") == "":
        raise _bad("text", "", "what is typed", where)
    if "unit" in row and row["unit"] not in _CHOICES["unit"]:
        raise _bad("unit", row["unit"], f"one of {', '.join(_CHOICES['unit'])}", where)
    unit = cast(Space, row.get("unit", header.unit))
    start: tuple[Region, ...] = ()
    if placed:
        form: Form = "box" if "box" in row else "point"
        start = _regions(row[form], form, unit, header, where)
    end: tuple[Region, ...] = ()
    if "to" in row:
        box = isinstance(row["to"], list) and len(row["to"]) == 4
        end = (_region(row["to"], "box" if box else "point", unit, header, where),)
    return Action(kind, start, end, text=row.get("text"), words=row.get("words"))


def _regions(
    value: object, form: Form, unit: Space, header: _Header, where: str
) -> tuple[Region, ...]:
    """A point, a box, or boxes that are alternatives."""
    if form == "box" and isinstance(value, list) and value and isinstance(value[0], list):
        return tuple(_region(item, form, unit, header, where) for item in value)
    return (_region(value, form, unit, header, where),)


def _region(value: object, form: Form, unit: Space, header: _Header, where: str) -> Region:
    numbers = _numbers(value, 4 if form == "box" else 2, form, where)
    if unit == "px" and header.screen:
        unit = "rel"
        numbers = [number / header.screen[axis % 2] for axis, number in enumerate(numbers)]
    if form == "point":
        return Point(numbers[0], numbers[1], unit)
    left, top, right, bottom = numbers
    if left > right or top > bottom:
        raise _bad("box", value, "[left, top, right, bottom], left <= right, top <= bottom", where)
    return Box(left, top, right, bottom, unit)


def _check_keys(row: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    unknown = sorted(set(row) - set(known))
    if unknown:
        raise DataError(
            f"the line has {', '.join(map(repr, unknown[:5]))}",
            where=where,
            expected=f"only {', '.join(known)}",
            remedy="mend the spelling, or remove it",
        )


def _numbers(value: object, count: int, name: str, where: str) -> list[float]:
    good = (
        isinstance(value, list)
        and len(value) == count
        and all(_is_number(item) and abs(item) <= FARTHEST for item in value)
    )
    if not good:
        raise _bad(name, value, f"{count} numbers, none beyond {FARTHEST}", where)
    return cast(list[float], value)


def _seconds(row: Mapping[str, Any], name: str, where: str) -> float:
    value = row.get(name, 0)
    if not _is_number(value) or abs(value) > _LATEST:
        raise _bad(name, value, "seconds by the log's clock", where)
    return float(value)


def _is_number(value: object) -> bool:
    """A number as JSON has them: no truth value, no NaN, no infinity."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) or math.isfinite(value)


def _bad(name: str, value: object, expected: str, where: str) -> DataError:
    text = repr(value)
    return DataError(
        f"{name} is {text if len(text) <= 60 else text[:57] + '...'}",
        where=where,
        expected=expected,
        remedy="mend the line; docs/segment.md describes the format",
    )
