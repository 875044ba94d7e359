"""What a turn on a desktop does, however it is written, and how near two turns are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from omnidata.actions import Screen
from omnidata.pyautogui import Call, Code
from omnidata.pyautogui.calls import Kind

Pair = tuple[float, float]
ActKind = Literal[
    "move", "click", "drag", "mouse_down", "mouse_up", "scroll", "hscroll", "keys", "hotkey",
    "key_down", "key_up", "wait", "terminate",
]  # fmt: skip

NEAR: Final = 0.01 * math.sqrt(2)
"""How far a point may lie from the other, in shares of the screen's width and height: what
AgentNetBench's evaluator takes for the same point where it knows no box."""

_PLACED: Final[dict[Kind, ActKind]] = {
    "click": "click", "drag": "drag", "drag_by": "drag", "mouse_down": "mouse_down",
    "mouse_up": "mouse_up", "scroll": "scroll", "hscroll": "hscroll",
}  # fmt: skip
_NAMES: Final = {
    **{"\n": "enter", "\r": "enter", "return": "enter", "\t": "tab", " ": "space"},
    **{"esc": "escape", "del": "delete", "control": "ctrl", "ctrlleft": "ctrl"},
    **{"altleft": "alt", "shiftleft": "shift", "pgup": "pageup", "pgdn": "pagedown"},
    **{"option": "alt", "super": "win", "winleft": "win", "command": "win", "cmd": "win"},
}
_AIMED: Final = frozenset({"click", "move", "mouse_down", "mouse_up"})


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that is done.

    Attributes:
        kind: what.
        start: where, or where a drag begins; None where nobody says.
        end: where a drag ends.
        detail: what else must be the same: the button and how often, the direction, the keys, the
            status at the end.
    """

    kind: ActKind
    start: Pair | None = None
    end: Pair | None = None
    detail: tuple[str | int, ...] = ()


def acts(statements: Sequence[Call | Code]) -> list[Act] | None:
    """What some calls do.

    To move the pointer is a part of what is done there next, keys that are typed one after the
    other are one, and pauses are left out, unless there is nothing else.

    Args:
        statements: of one turn.

    Returns:
        None where a statement is not understood.

    Examples:
        >>> from omnidata.pyautogui import read_code
        >>> acts(read_code("pyautogui.moveTo(3, 4); pyautogui.click(); time.sleep(1)"))
        [Act(kind='click', start=(3, 4), end=None, detail=('left', 1))]
        >>> acts(read_code("pyautogui.write('a'); pyautogui.press('enter')"))[0].detail
        ('a', 'enter')
    """
    found: list[Act] = []
    pointer: Pair | None = None
    moved = False
    for call in statements:
        if isinstance(call, Code):
            return None
        if call.kind == "sleep":
            continue
        if call.kind in ("move", "move_by"):
            pointer, moved = _place(call, pointer), True
            continue
        act = _act(call, pointer)
        if act.kind == "keys" and found and found[-1].kind == "keys" and not moved:
            found[-1] = replace(found[-1], detail=found[-1].detail + act.detail)
        else:
            found.append(act)
        if call.kind in _PLACED:
            pointer = act.end if act.kind == "drag" else act.start
            moved = False
    if moved:
        found.append(Act("move", pointer))
    return found if found or not statements else [Act("wait")]


def _place(call: Call, pointer: Pair | None) -> Pair | None:
    """Where a call happens; None where nobody says."""
    if call.kind in ("move_by", "drag_by"):
        if pointer is None:
            return None
        return pointer[0] + (call.x or 0), pointer[1] + (call.y or 0)
    if call.x is not None and call.y is not None:
        return call.x, call.y
    return None if call.tag or call.x is not None or call.y is not None else pointer


def _act(call: Call, pointer: Pair | None) -> Act:
    place = _place(call, pointer)
    if call.kind in ("drag", "drag_by"):
        return Act("drag", pointer, place, (call.button,))
    if call.kind in ("scroll", "hscroll"):
        return Act(_PLACED[call.kind], place, None, (int(math.copysign(1, call.amount)),))
    if call.kind in _PLACED:
        times = (call.times,) if call.kind == "click" else ()
        return Act(_PLACED[call.kind], place, None, (call.button, *times))
    if call.kind == "terminate":
        failed = call.status.lower().startswith("fail")
        return Act("terminate", detail=("failure" if failed else "success",))
    if call.kind == "wait":
        return Act("wait")
    return _typed(call)


def _typed(call: Call) -> Act:
    keys = tuple(map(_key, call.text if call.text is not None else call.keys))
    if call.kind == "hotkey":
        return Act("hotkey", detail=tuple(sorted(set(keys))))
    if call.kind == "key_down":
        return Act("key_down", detail=keys)
    if call.kind == "key_up":
        return Act("key_up", detail=keys)
    return Act("keys", detail=keys * call.times)


def _key(name: str) -> str:
    """One name for each key; a letter by itself keeps its case, as it is typed."""
    if len(name) > 1:
        name = name.lower()
    return _NAMES.get(name, name)


def moved(found: Sequence[Act], place: Callable[[Pair], Pair]) -> list[Act]:
    """The same with every place as a function says."""
    return [
        replace(
            act,
            start=act.start if act.start is None else place(act.start),
            end=act.end if act.end is None else place(act.end),
        )
        for act in found
    ]


def needs_places(found: Sequence[Act]) -> bool:
    """Whether something is done at a place."""
    return any(act.kind in _AIMED or act.kind == "drag" for act in found)


def is_whole(found: Sequence[Act]) -> bool:
    """Whether every place is said that something is done at."""
    return all(
        (act.kind not in _AIMED or act.start is not None)
        and (act.kind != "drag" or (act.start is not None and act.end is not None))
        for act in found
    )


def judge(
    reference: Sequence[Act] | None, answer: Sequence[Act] | None, screen: Screen
) -> tuple[bool | None, bool | None]:
    """Hold what an answer does against what the recorded agent did; a rule of ours.

    `type_match`: the same kinds of things, in the same order. `exact_match`: also the same buttons,
    directions, keys and status, and every point that is clicked, moved or dragged to lies within
    `NEAR` of the other. Where the wheel turns, and how far, does not matter.

    Args:
        reference: of the recorded turn; None where it is not understood.
        answer: of the model; None where nothing could be read.
        screen: width and height in pixels, the unit of all places.

    Returns:
        None and None where the recorded turn says too little to judge by.

    Examples:
        >>> recorded, said = [Act("click", (100, 100))], [Act("click", (110, 110))]
        >>> judge(recorded, said, (1000, 1000)), judge(recorded, said, (900, 900))
        ((True, True), (True, False))
    """
    if not reference or not is_whole(reference):
        return None, None
    if needs_places(reference) and min(screen) < 1:
        return None, None
    if answer is None or [act.kind for act in reference] != [act.kind for act in answer]:
        return False, False
    pairs = zip(reference, answer, strict=True)
    return True, all(_same(one, other, screen) for one, other in pairs)


def _same(one: Act, other: Act, screen: Screen) -> bool:
    if one.detail != other.detail:
        return False
    if one.kind in ("scroll", "hscroll"):
        return True
    return _near(one.start, other.start, screen) and _near(one.end, other.end, screen)


def _near(one: Pair | None, other: Pair | None, screen: Screen) -> bool:
    if one is None or other is None:
        return one is other
    return math.dist(
        (one[0] / screen[0], one[1] / screen[1]), (other[0] / screen[0], other[1] / screen[1])
    ) <= NEAR * (1 + 1e-9)  # a point on the edge, whatever the last digit of its shares
