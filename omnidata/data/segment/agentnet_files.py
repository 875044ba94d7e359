"""What AgentNet's recorder writes, as far as it is used, checked while it is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from omnidata.data.segment.log import MAX_BYTES, objects
from omnidata.errors import DataError
from omnidata.jsontext import BROKEN, decode

Number = Annotated[float, msgspec.Meta(ge=-1e11, le=1e11)]
Row = TypeVar("Row")


class Coordinate(msgspec.Struct, frozen=True):
    """A place in pixels of the screen."""

    x: Number
    y: Number


class Turn(msgspec.Struct, frozen=True):
    """One notch of the wheel."""

    x: Number
    y: Number
    dx: Number
    dy: Number


class Details(msgspec.Struct, frozen=True):
    """What mouse and keyboard did; every kind of action has some of these."""

    id: int
    action: str
    button: str = ""
    click_type: int = 1
    coordinate: Coordinate | None = None
    drag_trace: list[tuple[Number, Number]] = []
    trace: list[Any] = []  # its items differ from kind to kind
    key_names: list[str] = []


class Target(msgspec.Struct, frozen=True):
    """The element that the recorder found under the pointer."""

    title: str | None = None
    control_type: str | None = None


class Rectangle(msgspec.Struct, frozen=True):
    """An element, in pixels of the screen."""

    left: Number
    top: Number
    right: Number
    bottom: Number


class Shown(msgspec.Struct, frozen=True):
    """What the annotator kept of an action."""

    id: int
    action: str
    start_time: Number
    end_time: Number
    description: str = ""
    target: Target | None = None
    axtree: dict[str, Any] | None = None


class Metadata(msgspec.Struct, frozen=True):
    """The clock and the screen; times are seconds by one clock."""

    screen_width: Number
    screen_height: Number
    video_start_timestamp: Number
    system: str | None = None


class Task(msgspec.Struct, frozen=True):
    """What the annotator was asked to do."""

    task_name: str | None = None


def read_lines(path: Path, kind: type[Row]) -> Iterator[tuple[str, Row]]:
    """The rows of a file with their places.

    Raises:
        DataError: the file or a line is not what the recorder writes.
    """
    _check_inside(path)
    for where, row in objects(path):
        yield where, convert(row, kind, where)


def read_object(path: Path, kind: type[Row]) -> Row:
    """A file that is one JSON object, over as many lines as it likes.

    Raises:
        DataError: the file is not what the recorder writes.
    """
    _check_inside(path)
    if not path.is_file() or path.stat().st_size > MAX_BYTES:
        raise broken(path, "the file is missing or too large", "a file as the recorder writes it")
    try:
        value = decode(path.read_text(encoding="utf-8-sig"))
    except (UnicodeDecodeError, RecursionError):
        value = BROKEN
    if value is BROKEN:
        raise broken(path, "the file is not JSON", "one JSON object in UTF-8")
    return convert(value, kind, str(path))


def convert(value: object, kind: type[Row], where: str) -> Row:
    """A value as one of the types above.

    Raises:
        DataError: it is not.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise broken(where, str(error), "what the recorder writes") from None


def _check_inside(path: Path) -> None:
    """Refuse a link that leads out of the recording's folder."""
    if not path.resolve().is_relative_to(path.parent.resolve()):
        raise broken(path, "the file is a link that leads out of its folder", "a file in there")


def broken(where: Path | str, what: str, expected: str) -> DataError:
    """The error for a file that the recorder did not write so."""
    return DataError(
        what,
        where=str(where),
        expected=expected,
        remedy="restore the recording's folder, or write the log by hand (docs/segment.md)",
    )
