"""What calls of pyautogui do, as actions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from omnidata.actions import Action, Direction, Kind, Point, Space, Status
from omnidata.dialects.pyautogui import Call, Code

_STATUS: Final[Mapping[str, Status]] = {
    "success": "success",
    "": "success",
    "failure": "failure",
    "fail": "failure",
}
WHEEL: Final[Mapping[str, tuple[Direction, Direction]]] = {
    "scroll": ("up", "down"),
    "hscroll": ("right", "left"),
}
"""Which way the wheel of a function turns for amounts above 0, and below."""
_POINTED: Final = frozenset({
    "click", "drag", "drag_by", "mouse_down", "mouse_up", "scroll", "hscroll", "swipe",
    "long_press", "select",
})  # fmt: skip
_KINDS: Final[Mapping[str, Kind]] = {
    "move": "move", "move_by": "move", "click": "tap", "long_press": "long_press",
    "select": "select", "mouse_down": "hold", "mouse_up": "release", "key_down": "hold",
    "key_up": "release", "hotkey": "hotkey", "back": "back", "home": "home", "wait": "wait",
    "ask": "ask",
}  # fmt: skip
"""Calls whose arguments are their actions' fields, and the kinds of these."""


def as_action(
    statements: Sequence[Call | Code], *, space: Space, said: str | None = None
) -> Action | None:
    """Return some calls as one action: the first, with the others in `then`.

    A move of the pointer is part of the next action there, and pauses are left out, unless there is
    nothing else. A button that goes down and comes up elsewhere is a drag.

    Args:
        statements: from `read_code`.
        space: the unit of their coordinates.
        said: the action's `words`.

    Returns:
        None for no statement, one that is `Code`, or an end with an unknown status alone.

    Examples:
        >>> from omnidata.dialects.pyautogui import read_code
        >>> code = "pyautogui.moveTo(10, 20); pyautogui.rightClick(); pyautogui.press('a')"
        >>> found = as_action(read_code(code), space="px")
        >>> found.label, found.start, found.then[0].keys
        ('RIGHT_CLICK', (Point(x=10, y=20, space='px'),), ('a',))
    """
    if any(isinstance(one, Code) for one in statements):
        return None
    found: list[Action] = []
    for call, before, at, _ in in_place(statements, space=space):
        action = action_of(call, before, at)
        if action is None and not found:
            return None
        action = action or Action("done")
        if found and _drags(found[-1], action):
            found[-1] = Action("drag", found[-1].start, action.start, button=action.button)
        else:
            found.append(action)
    if not found:
        return Action("wait", words=said) if statements else None
    return replace(found[0], words=said, then=tuple(found[1:]))


def each_action(statements: Sequence[Call], *, space: Space) -> list[Action]:
    """Return some calls as actions, one each.

    Only a call's own place counts, not that of the pointer; a move before a drag is its start.
    Pauses are left out where something else is done.

    Args:
        statements: calls from `read_code`.
        space: the unit of their coordinates.
    """
    found: list[Action] = []
    pointer: Point | None = None
    paused: float | None = None
    for call in statements:
        before, pointer = pointer, _pointer_after(call, pointer, space=space)
        if call.kind == "sleep":
            paused = (paused or 0) + (call.seconds or 0)
            continue
        by = call.kind in ("move_by", "drag_by")
        action = action_of(
            call, before if by else None, pointer if by or call.x is not None else None
        )
        action = action or Action("done")
        if action.kind == "drag" and found and found[-1].kind == "move":
            action = replace(action, start=found.pop().start)
        elif action.kind == "wait":
            action = replace(action, seconds=call.seconds)
        elif action.kind == "done":
            action = replace(action, text=call.text)
        found.append(action)
    return found or ([] if paused is None else [Action("wait", seconds=paused)])


class _PlacedCall(NamedTuple):
    """A call that does more than to move the pointer on its way, or to pause.

    Attributes:
        call: a move only where nothing is done at its end.
        before, at: where the pointer was, and where the call is done; None if unknown.
        moved: whether the pointer was moved since something was done at its place.
    """

    call: Call
    before: Point | None
    at: Point | None
    moved: bool


def in_place(statements: Sequence[Call | Code], *, space: Space) -> Iterator[_PlacedCall]:
    """Yield the calls of a turn, each with its place; a move there is part of the call.

    Args:
        statements: from `read_code`; `Code` is skipped.
        space: the unit of their coordinates.
    """
    pointer: Point | None = None
    move: Call | None = None
    for call in statements:
        if isinstance(call, Code) or call.kind == "sleep":
            continue
        before, pointer = pointer, _pointer_after(call, pointer, space=space)
        if call.kind in ("move", "move_by"):
            move = call
            continue
        yield _PlacedCall(call, before, pointer, move is not None)
        if call.kind in _POINTED:
            move = None
    if move is not None:
        yield _PlacedCall(move, pointer, pointer, True)


def _pointer_after(call: Call, pointer: Point | None, *, space: Space) -> Point | None:
    """Return where the pointer is after a call, or where the call is done; None if unknown."""
    if call.kind in ("move_by", "drag_by"):
        if pointer is None:
            return None
        return Point(pointer.x + (call.x or 0), pointer.y + (call.y or 0), space)
    if call.x is not None and call.y is not None:
        return Point(call.x, call.y, space)
    return None if call.tag or call.x is not None or call.y is not None else pointer


def action_of(call: Call, before: Point | None, at: Point | None) -> Action | None:
    """Return the action of a call; None for an end with an unknown word.

    Args:
        call: any call but a pause.
        before: where the pointer was, from which a drag begins; None if unknown.
        at: where the call is done, or where a drag ends.
    """
    place = (at,) if at and call.kind in (*_POINTED, "move", "move_by") else ()
    button = call.button or "left"
    if kind := _KINDS.get(call.kind):
        return Action(kind, place, text=call.text, keys=call.keys, button=button, count=call.times)
    if call.kind in ("drag", "drag_by"):
        return Action("drag", (before,) if before else (), place, button=button)
    if call.kind in ("scroll", "hscroll"):
        way = WHEEL[call.kind][call.amount < 0] if call.amount else None
        unit = call.amount_unit
        return Action("scroll", place, direction=way, amount=abs(call.amount), amount_unit=unit)
    if call.kind == "swipe":
        return Action("swipe", place, (Point(*call.end, at.space),) if call.end and at else ())
    if call.kind == "open_app":
        return Action("open_app", app=call.text)
    if call.kind == "terminate":
        status = _STATUS.get(call.status.lower())
        return Action("done", status=status) if status else None
    if call.text is not None:
        return Action("type", text=call.text)
    return Action("keys", keys=call.keys * call.times)


def _drags(held: Action, action: Action) -> bool:
    return (
        (held.kind, action.kind) == ("hold", "release")
        and not held.keys
        and not action.keys
        and held.button == action.button
        and held.start != action.start
    )
