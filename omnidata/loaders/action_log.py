"""An action log in neutral form: what happened when, and what the episode is called."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, cast, get_args

from omnidata.actions import NUMBERS, Action, Box, Point, Region, Space
from omnidata.errors import DataError, Finding
from omnidata.jsontext import is_number
from omnidata.loaders.episode_tree import DEPENDENCIES, DIMENSIONS, FARTHEST, Dependency, Dimension
from omnidata.loaders.instructions import Language

MAX_BYTES = 512 * 1024**2
"""Of one file of a log; what a human does in an hour takes a hundredth of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """The labels of an episode; None = not stated.

    Attributes:
        app: names the app's folder.
        episode: the episode's id.
        instruction_en, instruction_zh: the task in English and Chinese.
        language: the language that the app is evaluated in.
        dimension: the cognitive dimension.
        dependency: how much the task depends on audio and video.
    """

    app: str | None = None
    episode: str | None = None
    instruction_en: str | None = None
    instruction_zh: str | None = None
    language: Language | None = None
    dimension: Dimension | None = None
    dependency: Dependency | None = None

    def over(self, other: Labels) -> Labels:
        """Return these labels, and where one is missing that of another.

        Examples:
            >>> Labels(app="TED").over(Labels(app="ted", episode="T1"))
            Labels(app='TED', episode='T1', instruction_en=None, ...)
        """
        stated = {item.name: getattr(self, item.name) for item in fields(self)}
        return replace(other, **{name: value for name, value in stated.items() if value})


UNLABELLED = Labels()


@dataclass(frozen=True, slots=True)
class Event:
    """One action of a log.

    Attributes:
        start_s, end_s: when it begins and ends, in seconds after the recording's first frame by the
            log's clock.
        action: the primitive with its targets; regions in "px" are pixels of the recording.
        where: file and line that it was read from.
        earliest_s: where the recording ends before `start_s`, the step may be taken as early as
            this; None = not at all.
        extra: further columns for the step's row.
    """

    start_s: float
    end_s: float
    action: Action
    where: str
    earliest_s: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Log:
    """A whole log.

    Attributes:
        events: in the order of the file; `plan` sorts them.
        labels: those that the log states.
        findings: what was doubtful or could not be read as one of the primitives.
        left_out: start and end, as in `Event`, of each action that is none of the primitives: no
            clip may show one.
    """

    events: tuple[Event, ...]
    labels: Labels
    findings: tuple[Finding, ...] = ()
    left_out: tuple[tuple[float, float], ...] = ()


def objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects of a JSON-lines file with their places; blank lines are skipped.

    Args:
        path: a regular file of at most `MAX_BYTES`.

    Yields:
        `file:line` and the object.

    Raises:
        DataError: the file is missing, too large or no regular file, or a line is not an object.
    """
    if not path.is_file() or path.stat().st_size > MAX_BYTES:
        raise DataError(
            "the file is too large" if path.is_file() else "there is no such file",
            where=str(path),
            expected=f"a file of JSON lines, at most {MAX_BYTES >> 20} MiB",
            remedy="name the action log; docs/segment.md shows an example",
        )
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                where = f"{path}:{number}"
                yield where, _object(line, where)


def _object(line: bytes, where: str) -> dict[str, Any]:
    try:
        value = json.loads(line.decode("utf-8-sig"), object_pairs_hook=_unique)
    except UnicodeDecodeError:
        what = "the line is not UTF-8"
    except RecursionError:
        what = "the line is nested too deeply"
    except _TwiceError as error:
        what = f"the line has {str(error)!r} twice"
    except ValueError:
        what = "the line is not JSON"
    else:
        if isinstance(value, dict):
            return value
        what = f"the line is a {type(value).__name__}"
    raise DataError(
        what, where=where, expected="one JSON object per line", remedy="correct the line"
    )


class _TwiceError(Exception):
    """An object has a key twice, and readers of JSON do not agree which one counts."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _TwiceError(next(key for key in keys if keys.count(key) > 1))
    return row


# The plain action log: JSON lines that can be written by hand (`docs/segment.md`).

_LATEST = 1e11
"""Seconds; beyond it, a clock counts something else."""

_Form = Literal["box", "point"]

_TEXTS = ("app", "episode", "instruction_en", "instruction_zh")
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "language": get_args(Language),
    "dimension": DIMENSIONS,
    "dependency": DEPENDENCIES,
    "unit": get_args(Space),
}
_HEADER = (*_TEXTS, *_CHOICES, "screen", "clock")
_EVENT = ("time", "end", "action", "box", "point", "to", "text", "unit", "words")
_NAMES = ", ".join(NUMBERS)


@dataclass(frozen=True, slots=True)
class _Header:
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
    if not isinstance(name, str) or name not in NUMBERS:
        raise _bad("action", name, f"one of {_NAMES}", where)
    if "time" not in row:
        raise _bad("time", None, "seconds on the log's clock", where)
    start = _seconds(row, "time", where) - header.clock
    end = _seconds(row, "end", where) - header.clock if "end" in row else start
    if end < start:
        raise _bad("end", row["end"], f"not before the action begins ({row['time']})", where)
    return Event(start, end, _action(name, row, header, where), where)


def _action(label: str, row: Mapping[str, Any], header: _Header, where: str) -> Action:
    kind = Action.of(label).kind
    form = _form_of_place(label, row, where, is_placed=kind in ("tap", "long_press", "swipe"))
    for key, allowed in (("to", kind == "swipe"), ("text", kind == "type")):
        if key in row and not allowed:
            raise _bad(key, row[key], f"no {key} with {label}", where)
    for key, needed in (("text", kind == "type"), ("words", False)):
        if (needed or key in row) and not isinstance(row.get(key), str):
            raise _bad(key, row.get(key), "a text", where)
    if row.get("text") == "":
        raise _bad("text", "", "the typed text", where)
    if "unit" in row and row["unit"] not in _CHOICES["unit"]:
        raise _bad("unit", row["unit"], f"one of {', '.join(_CHOICES['unit'])}", where)
    unit = cast(Space, row.get("unit", header.unit))
    start: tuple[Region, ...] = ()
    if form is not None:
        start = _regions(row[form], form, unit, header, where)
    end: tuple[Region, ...] = ()
    if "to" in row:
        is_box = isinstance(row["to"], list) and len(row["to"]) == 4
        end = (_region(row["to"], "box" if is_box else "point", unit, header, where),)
    return Action.of(label, start, end, text=row.get("text"), words=row.get("words"))


def _form_of_place(
    label: str, row: Mapping[str, Any], where: str, *, is_placed: bool
) -> _Form | None:
    """Return which of box and point a line has; None for an action without a place."""
    forms: tuple[_Form, ...] = ("box", "point")
    given = [form for form in forms if form in row]
    if len(given) != int(is_placed):
        raise DataError(
            f"{label} with {' and '.join(given) or 'neither box nor point'}",
            where=where,
            expected="either box or point" if is_placed else "neither box nor point",
            remedy="correct the line",
        )
    return given[0] if given else None


def _regions(
    value: object, form: _Form, unit: Space, header: _Header, where: str
) -> tuple[Region, ...]:
    if form == "box" and isinstance(value, list) and value and isinstance(value[0], list):
        return tuple(_region(item, form, unit, header, where) for item in value)
    return (_region(value, form, unit, header, where),)


def _region(value: object, form: _Form, unit: Space, header: _Header, where: str) -> Region:
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
            remedy="correct the spelling, or remove the key",
        )


def _numbers(value: object, count: int, name: str, where: str) -> list[float]:
    good = (
        isinstance(value, list)
        and len(value) == count
        and all(is_number(item) and abs(item) <= FARTHEST for item in value)
    )
    if not good:
        raise _bad(name, value, f"{count} numbers, none beyond {FARTHEST}", where)
    return cast(list[float], value)


def _seconds(row: Mapping[str, Any], name: str, where: str) -> float:
    value = row.get(name, 0)
    if not is_number(value) or not abs(value) <= _LATEST:  # which NaN is not either
        raise _bad(name, value, "seconds on the log's clock", where)
    return float(value)


def _bad(name: str, value: object, expected: str, where: str) -> DataError:
    text = repr(value)
    return DataError(
        f"{name} is {text if len(text) <= 60 else text[:57] + '...'}",
        where=where,
        expected=expected,
        remedy="correct the line; docs/segment.md describes the format",
    )
