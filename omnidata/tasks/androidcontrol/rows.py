"""One step of an AndroidControl row -> what was done, and the elements of the screen."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from omnidata.actions import OPPOSITE, Action, Screen, centre, convert
from omnidata.jsontext import BROKEN, decode
from omnidata.loaders.tfrecord import VARINT, fields, inner, signed, whole
from omnidata.tasks.phones.actions import Rect, Truth, read_call

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


def call_of(row: Row) -> Action:
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

    What was there is read for actions that have a place alone.

    Args:
        row: a step's `source`.
        screen: width and height in pixels.
    """
    try:
        action = call_of(row)
    except ValueError:
        return None
    if not action.start:
        return Truth(action)
    if min(screen) < 1:
        return None
    start = tuple(convert(centre(region), "rel", screen) for region in action.start)
    # Reading the elements takes a millisecond, and what is typed is not held against them.
    rects = rects_of(row, screen) if action.kind != "type" else ()
    return Truth(replace(action, start=start), rects)


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


def worded(action: Action) -> Action:
    """An action with the dataset's wording for histories, where it has one of its own.

    Examples:
        >>> worded(Action("swipe", direction="up")).words
        'scroll down'
    """
    if action.kind == "swipe" and action.direction:
        return replace(action, words=f"scroll {OPPOSITE[action.direction]}")
    if action.kind == "type" and action.start:
        return replace(action, words=f'INPUT text: "{action.text}", then ENTER')
    return action
