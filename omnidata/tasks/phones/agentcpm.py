"""AgentCPM-GUI's `ActionEvaluator`: as released, and with its faults corrected.

Source: OpenBMB/AgentCPM-GUI, `eval/utils/evaluator.py` and, for AndroidControl, `eval_data/
process_ac.py`. As released:

* types: click, long_point, scroll, type, press, stop; waiting and every end of an episode are stop,
  and match one another;
* a click or long press is right in an element that holds the expert's, both edges included, whose
  width and height are enlarged by a fifth, or at most 0.14 of the screen away;
* in AndroidControl: in one of the five elements whose middles are nearest to the expert's, or at
  most 0.04 away; long presses are clicks, and steps that open an app or click, type and enter are
  left out;
* a scroll has the direction that the cosine makes the nearest, a press the same button;
* of two texts, without spaces around them and in lower case, one is in the other.

Corrected: an empty text is in every text; waiting, success and failure are different things; an
enlarged element at the left or upper edge is moved instead of cut; and in AndroidControl the five
nearest elements may be the whole screen, where every point would be right: there it is the
smallest element that holds the expert's point. Long presses are long presses, and no step is left
out. What compact JSON loses in reading is in `omnidata.dialects.agentcpm`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from omnidata.actions import Action, Direction, Kind, Pair
from omnidata.tasks.phones.actions import (
    Match,
    Rect,
    Truth,
    direction_of,
    holds,
    is_within,
    middle,
    near,
    touch_of,
)

Type = Literal["click", "long_point", "scroll", "type", "press", "stop"]

REACH: Final = 0.14
REACH_AC: Final = 0.04
ENLARGED: Final = 1.2
_MORE: Final = 0.2
NEAREST: Final = 5

_TYPES: Final[Mapping[Kind, Type]] = {
    "long_press": "long_point",
    "swipe": "scroll",
    "type": "type",
    "back": "press",
    "home": "press",
    "enter": "press",
    "recent": "press",
    "keys": "press",
    "wait": "stop",
    "done": "stop",
}
_WAYS: Final[tuple[tuple[Direction, Pair], ...]] = (
    ("up", (0, -1)), ("down", (0, 1)), ("left", (-1, 0)), ("right", (1, 0)),
)  # fmt: skip


def _type_of(action: Action) -> Type | None:
    """Return the evaluator's type of an action; None for an unknown one.

    Examples:
        >>> _type_of(Action("wait")), _type_of(Action("swipe", direction="up"))
        ('stop', 'scroll')
    """
    if action.kind == "tap":
        return "click" if action.count == 1 else None
    return _TYPES.get(action.kind)


def match_released(truth: Truth, said: Action) -> Match:
    """Match as released for Android in the Zoo, CAGUI and GUI-Odyssey."""
    touch = touch_of(truth.action)
    around = [rect for rect in map(_enlarge, truth.rects) if touch and _holds(rect, touch)]
    return _match_released(truth, said, around, REACH)


def match_released_ac(truth: Truth, said: Action) -> Match | None:
    """Match as with `--eval_android_control`; None for a step that its data leave out."""
    action = truth.action
    if action.kind == "open_app" or (action.kind == "type" and action.start):
        return None
    if action.kind == "long_press":
        truth = Truth(Action("tap", action.start), truth.rects)
    return _match_released(truth, said, _nearest(truth), REACH_AC)


def _match_released(truth: Truth, said: Action, around: Sequence[Rect], reach: float) -> Match:
    wanted, given = _type_of(truth.action), _type_of(said)
    if wanted is None or wanted != given:
        return False, False
    if wanted in ("click", "long_point"):
        touch, own = touch_of(truth.action), touch_of(said)
        hit = own and any(_holds(rect, own) for rect in around)
        return True, bool(hit) or is_within(touch, own, reach)
    if wanted == "scroll":
        return True, _direction(truth.action) == _direction(said)
    if wanted == "type":
        one, other = _plain(truth.action), _plain(said)
        return True, one in other or other in one
    return True, wanted == "stop" or truth.action.kind == said.kind


def _plain(action: Action) -> str:
    return (action.text or "").lower().strip()


def _nearest(truth: Truth) -> list[Rect]:
    touch = touch_of(truth.action)
    if touch is None:
        return []
    x, y = touch

    def away(rect: Rect) -> float:
        from_y, from_x = rect[0] + rect[2] / 2 - y, rect[1] + rect[3] / 2 - x
        return float((from_y**2 + from_x**2) ** 0.5)

    return sorted(map(_enlarge, truth.rects), key=away)[:NEAREST]


def _enlarge(rect: Rect) -> Rect:
    y, x, height, width = rect
    more_y, more_x = (ENLARGED - 1) * height, (ENLARGED - 1) * width
    low = max(0, y - more_y / 2), max(0, x - more_x / 2)
    return (*low, min(1, height + more_y), min(1, width + more_x))


def _holds(rect: Rect, point: Pair) -> bool:
    y, x, height, width = rect
    return y <= point[1] <= y + height and x <= point[0] <= x + width


def _direction(action: Action) -> Direction | None:
    """The first of equal cosines wins."""
    touch, lift = middle(action.start), middle(action.end)
    if action.direction is not None or not touch or not lift:
        return action.direction
    x, y = lift[0] - touch[0], lift[1] - touch[1]
    length = math.sqrt(x**2 + y**2)
    if not length:
        return None
    return max(_WAYS, key=lambda way: x / length * way[1][0] + y / length * way[1][1])[0]


def match_fixed(truth: Truth, said: Action) -> Match:
    """Match by the corrected rules."""
    touch = touch_of(truth.action)
    around = [rect for rect in truth.rects if touch and holds(rect, touch, more=_MORE)]
    return _match_fixed(truth, said, around, REACH)


def match_fixed_ac(truth: Truth, said: Action) -> Match:
    """Match by the corrected rules for AndroidControl."""
    return _match_fixed(truth, said, smallest(truth), REACH_AC)


def _match_fixed(truth: Truth, said: Action, around: Sequence[Rect], reach: float) -> Match:
    action = truth.action
    wanted, given = _type_of(action) or action.kind, _type_of(said) or said.kind
    if wanted != given or (wanted == "stop" and (action.kind == "wait") != (said.kind == "wait")):
        return False, False
    if wanted in ("click", "long_point"):
        touch, own = touch_of(action), touch_of(said)
        if not touch or not own:
            return True, False
        hit = any(holds(rect, own, more=_MORE) for rect in around)
        return True, hit or near(touch, own, reach)
    if wanted == "scroll":
        return True, direction_of(action) == direction_of(said) is not None
    if wanted == "type":
        one, other = _plain(action), _plain(said)
        return True, one == other or bool(one and other and (one in other or other in one))
    if wanted == "open_app":
        return True, _app(action) == _app(said)
    return True, (action.kind, action.status) == (said.kind, said.status)


def _app(action: Action) -> str:
    return (action.app or "").strip().casefold()


def smallest(truth: Truth) -> list[Rect]:
    """Return the smallest element that holds the expert's point."""
    touch = touch_of(truth.action)
    holding = [rect for rect in truth.rects if touch and holds(rect, touch, more=0)]
    return [min(holding, key=lambda rect: rect[2] * rect[3])] if holding else []
