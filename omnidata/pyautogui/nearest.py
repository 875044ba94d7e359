"""What comes nearest to some calls of pyautogui among the primitives of a touch screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from omnidata.actions import Action, Point, Primitive, Space
from omnidata.pyautogui.calls import Call, Code

_IDLE: Final = frozenset({"sleep", "wait"})
_END: Final = {
    "success": Primitive.TASK_COMPLETE,
    "": Primitive.TASK_COMPLETE,
    "failure": Primitive.TASK_IMPOSSIBLE,
    "fail": Primitive.TASK_IMPOSSIBLE,
}


@dataclass(slots=True)
class _Pointer:
    """Where the mouse is, as far as the text says.

    Attributes:
        place: None where it does not.
        pressed: where a button went down and has not come up.
        down: whether one has.
    """

    place: Point | None = None
    pressed: Point | None = None
    down: bool = False

    def at(self, call: Call, space: Space) -> Point | None:
        """The place that a call names, or else the pointer's."""
        if call.x is not None and call.y is not None:
            return Point(call.x, call.y, space)
        unknown = call.x is not None or call.y is not None or call.tag
        return None if unknown else self.place

    def by(self, call: Call, space: Space) -> Point | None:
        """The place that far from the pointer's."""
        if self.place is None:
            return None
        x, y = self.place.x + (call.x or 0), self.place.y + (call.y or 0)
        return Point(x, y, space)


def nearest(
    statements: Sequence[Call | Code], *, space: Space, said: str | None = None
) -> Action | None:
    """The one primitive that comes nearest to what some calls do; what they really do is in `said`.

    It is that of the first call that does more than move the pointer or wait. A right click is a
    long press, as menus open by either; other single clicks are a tap, several are a double tap. A
    drag, pressed or at once, is a swipe; to turn the wheel up is to swipe down, and to turn it to
    the right is to swipe left. Keys are an input of their names joined by "+", waiting is NONE.

    Args:
        statements: from `read_code`.
        space: the unit of their coordinates.
        said: the action's `words`.

    Returns:
        None where no primitive comes near: a statement is `Code`, the pointer only moves, a key or
        a button is held, a drag's ends are unknown; or where there is no statement.

    Examples:
        >>> from omnidata.pyautogui import read_code
        >>> nearest(read_code("pyautogui.moveTo(10, 20); pyautogui.rightClick()"), space="px")
        Action(kind=<Primitive.LONG_PRESS: 2>, start=(Point(x=10, y=20, space='px'),), ...)
    """
    if not statements or any(isinstance(one, Code) for one in statements):
        return None
    pointer = _Pointer()
    calls = [one for one in statements if isinstance(one, Call)]
    for call in calls:
        if call.kind == "move":
            pointer.place = pointer.at(call, space)
        elif call.kind == "move_by":
            pointer.place = pointer.by(call, space)
        elif call.kind == "mouse_down" and not pointer.down:
            pointer.place = pointer.pressed = pointer.at(call, space)
            pointer.down = True
        elif call.kind not in _IDLE:
            return _action(call, pointer, space, said)
    if all(call.kind in _IDLE for call in calls):
        return Action(Primitive.NONE, words=said)
    return None


def _action(call: Call, pointer: _Pointer, space: Space, said: str | None) -> Action | None:
    place = pointer.at(call, space)
    if call.kind == "mouse_up" and pointer.down:
        return _swipe(pointer.pressed, place, said)
    if pointer.down or call.kind in ("mouse_down", "mouse_up", "key_down", "key_up"):
        return None
    if call.kind == "click":
        return Action(_clicked(call), (place,) if place else (), words=said)
    if call.kind == "drag":
        return _swipe(pointer.place, place, said)
    if call.kind == "drag_by":
        return _swipe(pointer.place, pointer.by(call, space), said)
    if call.kind in ("scroll", "hscroll"):
        return _turned(call, place, said)
    if call.kind == "terminate":
        end = _END.get(call.status.lower())
        return None if end is None else Action(end, words=said)
    text = "+".join(call.keys) if call.text is None else call.text
    return Action(Primitive.INPUT, text=text, words=said)


def _clicked(call: Call) -> Primitive:
    if call.button == "right":
        return Primitive.LONG_PRESS
    return Primitive.TAP if call.times == 1 else Primitive.DOUBLE_TAP


def _turned(call: Call, place: Point | None, said: str | None) -> Action | None:
    if call.amount == 0:
        return None
    forth, back = (
        (Primitive.SWIPE_DOWN, Primitive.SWIPE_UP)
        if call.kind == "scroll"
        else (Primitive.SWIPE_LEFT, Primitive.SWIPE_RIGHT)
    )
    return Action(forth if call.amount > 0 else back, (place,) if place else (), words=said)


def _swipe(start: Point | None, end: Point | None, said: str | None) -> Action | None:
    """A swipe along its longer side; None where an end is unknown or both are the same."""
    if start is None or end is None or (start.x, start.y) == (end.x, end.y):
        return None
    right, down = end.x - start.x, end.y - start.y
    if abs(right) > abs(down):
        kind = Primitive.SWIPE_RIGHT if right > 0 else Primitive.SWIPE_LEFT
    else:
        kind = Primitive.SWIPE_DOWN if down > 0 else Primitive.SWIPE_UP
    return Action(kind, (start,), (end,), words=said)
