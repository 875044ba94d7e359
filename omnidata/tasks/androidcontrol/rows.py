"""One step of an AndroidControl row -> what was done, and the elements of the screen."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from omnidata.actions import OPPOSITE, Screen
from omnidata.jsontext import BROKEN, decode
from omnidata.loaders.tfrecord import VARINT, fields, inner, signed, whole
from omnidata.tasks.phones.actions import Kind, Move, Pair, Rect, Truth, read_call

# AndroidControl's accessibility forests: where the elements of a screen are.
#
# A forest is a message of android_env (`android_accessibility_forest.proto` and those it imports);
# of its thirty fields per element only what is needed here is read:
#
#     Forest  { repeated Window windows = 1; }
#     Window  { Rect bounds_in_screen = 1; Tree tree = 11; }
#     Tree    { repeated Node nodes = 1; }
#     Node    { Rect bounds_in_screen = 2; }
#     Rect    { int32 left = 1; top = 2; right = 3; bottom = 4; }

Bounds = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels."""

MAX_BYTES = 64 * 1024**2
_MOST = 20_000


def bounds_of(forest: bytes) -> list[Bounds]:
    """The places of windows and elements, each window before its elements.

    That is the order in which AgentCPM-GUI's preparation of the data finds them in the printed
    message. What states no bounds is left out.

    Raises:
        ValueError: the bytes are no forest, or one of more than 20,000 elements or 64 MB.
    """
    if len(forest) > MAX_BYTES:
        raise ValueError(f"the forest has more than {MAX_BYTES} bytes")
    found = []
    for bounds in _bounds(forest):
        found.append(bounds)
        if len(found) > _MOST:
            raise ValueError(f"the forest has more than {_MOST} elements")
    return found


def _bounds(forest: bytes) -> Iterator[Bounds]:
    for window in inner(forest, whole(forest), 1):
        for rect in inner(forest, window, 1):
            yield _rect(forest, rect)
        for tree in inner(forest, window, 11):
            for node in inner(forest, tree, 1):
                for rect in inner(forest, node, 2):
                    yield _rect(forest, rect)


def _rect(forest: bytes, rect: slice) -> Bounds:
    edges = [0, 0, 0, 0]
    for number, kind, value in fields(forest, rect):
        if kind == VARINT and 1 <= number <= 4 and isinstance(value, int):
            edges[number - 1] = signed(value, 32)
    return edges[0], edges[1], edges[2], edges[3]


def pack(forest: bytes) -> str:
    """A forest as a text that a row can hold, a tenth of its size.

    Examples:
        >>> unpack(pack(bytes(1000))) == bytes(1000)
        True
    """
    return base64.b64encode(zlib.compress(forest, 1)).decode("ascii")


def unpack(text: str) -> bytes:
    """The forest of a text that `pack` made.

    Raises:
        ValueError: the text is none, or the forest has more than 64 MB.
    """
    try:
        inflate = zlib.decompressobj()
        forest = inflate.decompress(base64.b64decode(text, validate=True), MAX_BYTES + 1)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(f"the text is no packed forest ({error})") from None
    if not inflate.eof or len(forest) > MAX_BYTES:
        raise ValueError(f"the forest is cut, or has more than {MAX_BYTES} bytes")
    return forest


Row = Mapping[str, Any]

STEP, FOREST, FINAL = "step", "accessibility_tree", "final_accessibility_tree"
"""What a step's `source` has beside the record's features: its number, and the forest of its
screen; that of the screen after the last action is with the last step. Both are packed."""


def item(row: Row, name: str, number: int) -> Any:
    """One value of a feature; None if it is not there."""
    values = row.get(name)
    return values[number] if isinstance(values, list) and number < len(values) else None


def call_of(row: Row) -> Move:
    """What was done, in pixels.

    Raises:
        ValueError: the action is none of AndroidControl's.
    """
    text = item(row, "actions", row[STEP])
    try:
        action = decode(text) if isinstance(text, str) else BROKEN
    except RecursionError:
        action = BROKEN
    if action is BROKEN:
        raise ValueError("the action is no JSON")
    return read_call(action)


def truth_of(row: Row, screen: Screen) -> Truth | None:
    """What was done and what was there, from 0 to 1; None where that cannot be read.

    What was there is read for moves that have a place alone.

    Args:
        row: a step's `source`.
        screen: width and height in pixels.
    """
    try:
        move = call_of(row)
    except ValueError:
        return None
    if min(screen) < 1:
        return None if move.touch else Truth(replace(move, space="rel"))
    touch, lift = _relative(move.touch, screen), _relative(move.lift, screen)
    placed = move.kind in (Kind.GESTURE, Kind.LONG_PRESS)
    rects = rects_of(row, screen) if placed else ()  # which takes a millisecond
    return Truth(replace(move, touch=touch, lift=lift, space="rel"), rects)


def _relative(place: Pair | None, screen: Screen) -> Pair | None:
    return (place[0] / screen[0], place[1] / screen[1]) if place else None


def rects_of(row: Row, screen: Screen) -> tuple[Rect, ...]:
    """Windows and elements, (y, x, height, width) from 0 to 1; none where nobody knows."""
    packed = row.get(FOREST)
    if not isinstance(packed, str):
        return ()
    try:
        found = bounds_of(unpack(packed))
    except ValueError:
        return ()
    width, height = screen
    return tuple(
        (top / height, left / width, (bottom - top) / height, (right - left) / width)
        for left, top, right, bottom in found
    )


def wording_of(move: Move) -> str | None:
    """The dataset's wording, for histories, of what the primitives do not say; None otherwise.

    Examples:
        >>> wording_of(Move(Kind.SWIPE, direction="up"))
        'scroll down'
    """
    if move.kind is Kind.SWIPE and move.direction:
        return f"scroll {OPPOSITE[move.direction]}"
    if move.kind is Kind.TYPE and move.touch:
        return f'INPUT text: "{move.text}", then ENTER'
    return None
