"""One row of Android in the Wild -> what was done, and the elements of the screen.

Whatever the form of the row, its numbers are those of `omnidata.phone.Code`, and its places are
(y, x) from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnidata.actions import Screen
from omnidata.jsontext import decode
from omnidata.loaders.aitw_files import Row, form_of
from omnidata.loaders.place import short
from omnidata.phone import Code, Kind, Move, Pair, Rect, Truth

_IN_CAGUI_ALONE = (Code.LONG_POINT, Code.NO_ACTION)
_KINDS: Mapping[Code, Kind] = {
    Code.PRESS_BACK: Kind.BACK,
    Code.PRESS_HOME: Kind.HOME,
    Code.PRESS_ENTER: Kind.ENTER,
    Code.NO_ACTION: Kind.WAIT,
    Code.STATUS_TASK_COMPLETE: Kind.COMPLETE,
    Code.STATUS_TASK_IMPOSSIBLE: Kind.IMPOSSIBLE,
}
_MOST_RECTS = 10_000
_FARTHEST = 1e6


def one(row: Row, name: str) -> Any:
    """The value of a feature that has one; the column of a row as it is; None if it is not there.

    Examples:
        >>> one({"step_id": [3]}, "step_id"), one({"step_id": 3}, "step_id"), one({}, "step_id")
        (3, 3, None)
    """
    value = row.get(name)
    if isinstance(value, list):
        return value[0] if len(value) == 1 else None
    return value


def move_of(row: Row) -> Move:
    """What was done.

    Raises:
        ValueError: the row does not say, or says it in another dataset's enum; the message says
            what is wrong.
    """
    form = form_of(row)
    example = form == "aitw"
    value = one(row, "results/action_type" if example else "result_action_type")
    known = [code for code in Code if form == "cagui" or code not in _IN_CAGUI_ALONE]
    code = next((c for c in known if type(value) is int and c == value), None)
    if code is None:
        raise ValueError(
            f"the action type is {short(value)}, which Android in the Wild's enum "
            f"({', '.join(f'{c.value} {c.name}' for c in known)}) does not have"
        )
    if code in (Code.DUAL_POINT, Code.LONG_POINT):
        touch = _pair(row, "results/yx_touch" if example else "result_touch_yx")
        lift = _pair(row, "results/yx_lift" if example else "result_lift_yx")
        return Move(Kind.GESTURE if code is Code.DUAL_POINT else Kind.LONG_PRESS, touch, lift)
    if code is Code.TYPE:
        text = one(row, "results/type_action" if example else "result_action_text")
        if not isinstance(text, str):
            raise ValueError(f"the text that is typed is {short(text)}")
        return Move(Kind.TYPE, text=text)
    return Move(_KINDS[code])


def truth_of(row: Row, screen: Screen) -> Truth | None:
    """What was done and what was there; None for a row that does not say what was done.

    Args:
        row: of any form.
        screen: width and height of its picture, for boxes in pixels; (0, 0) where nobody knows.
    """
    try:
        return Truth(move_of(row), rects_of(row, screen))
    except ValueError:
        return None


def rects_of(row: Row, screen: Screen) -> tuple[Rect, ...]:
    """The elements of the screen; none where they cannot be read, or not be scaled."""
    form = form_of(row)
    value = _value(row.get("image/ui_annotations_positions" if form == "aitw" else "ui_positions"))
    if not isinstance(value, list) or len(value) > 4 * _MOST_RECTS:
        return ()
    if form == "aitw":
        value = [value[at : at + 4] for at in range(0, len(value) - 3, 4)]
    if form == "aitz":
        return tuple(_scaled(rect, screen) for rect in value if _is_rect(rect) and min(screen) > 0)
    return tuple((rect[0], rect[1], rect[2], rect[3]) for rect in value if _is_rect(rect))


def _scaled(rect: list[float], screen: Screen) -> Rect:
    width, height = screen
    return rect[0] / height, rect[1] / width, rect[2] / height, rect[3] / width


def _is_rect(value: object) -> bool:
    return isinstance(value, list) and len(value) == 4 and all(map(_is_number, value))


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= _FARTHEST  # False for NaN too


def _pair(row: Row, name: str) -> Pair:
    """A place as x and y; rows have y before x."""
    value = _value(row.get(name))
    if not isinstance(value, list) or len(value) != 2 or not all(map(_is_number, value)):
        raise ValueError(f"{name} is {short(row.get(name))}, not [y, x] from 0 to 1")
    return value[1], value[0]


def _value(value: object) -> Any:
    """A list, or the list that a JSON text holds."""
    try:
        return decode(value) if isinstance(value, str) else value
    except RecursionError:
        return None
