"""One step of an AndroidControl row -> what was done, and the elements of the screen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from omnidata.actions import Screen
from omnidata.jsontext import BROKEN, decode
from omnidata.loaders.a11y_forest import bounds_of, unpack
from omnidata.phone import OPPOSITE, Kind, Move, Pair, Rect, Truth, read_call

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
