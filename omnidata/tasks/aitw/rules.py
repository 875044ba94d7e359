"""Android in the Wild's action matching: as released, and with its faults corrected.

Source: google-research, `android_in_the_wild/action_matching.py`, and the README beside it. As
released:

* actions other than dual points match if their types do; what is typed is not looked at;
* a dual point is a tap where touch and lift are at most 0.04 apart, else a swipe; a tap matches no
  swipe;
* taps match at most 0.14 apart, or where both lie in the same element, edges included, that is
  enlarged to 2.4 times its width and height;
* swipes match along the same axis: up matches down.

All of it is computed in 32-bit floats, as JAX does. Where a screen has no elements the release
raises; here the distance alone decides.

Three faults are corrected that go against the release's own definition of a match, "two actions
that would result in a similar screen state" and its limit "to the screen": opposite swipes match,
any text matches any other, and an enlarged element at the left or upper edge is moved inwards
instead of cut, so that it reaches too far on its other side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from omnidata.actions import Action, Direction, Pair, heading
from omnidata.tasks.phones.actions import (
    TAP_REACH,
    Code,
    Match,
    Rect,
    Truth,
    direction_of,
    holds,
    is_tap,
    middle,
    near,
    touch_of,
)

REACH = 0.14
"""How far apart two taps may be, as a share of the screen."""

ENLARGED = 1.4
"""What is added to an element's width and height, as a share of them."""

_AWAY = 0.3

_CODES: Mapping[str, Code] = {
    "TAP": Code.DUAL_POINT,
    "SWIPE": Code.DUAL_POINT,
    **{f"SWIPE_{way}": Code.DUAL_POINT for way in ("UP", "DOWN", "LEFT", "RIGHT")},
    "LONG_PRESS": Code.LONG_POINT,
    "INPUT": Code.TYPE,
    "BACK": Code.PRESS_BACK,
    "HOME": Code.PRESS_HOME,
    "ENTER": Code.PRESS_ENTER,
    "WAIT": Code.NO_ACTION,
    "TASK_COMPLETE": Code.STATUS_TASK_COMPLETE,
    "TASK_IMPOSSIBLE": Code.STATUS_TASK_IMPOSSIBLE,
}
"""By the label of an action. What is not here cannot be expressed in the dataset's actions, and
matches nothing."""

_WAYS: dict[Direction, Pair] = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}


def _code_of(action: Action) -> Code | None:
    return _CODES.get(action.label)


def dual_point(action: Action) -> tuple[Pair, Pair] | None:
    """Return where a tap or a swipe touches and lifts, from 0 to 1; None if unknown.

    A swipe that is named without its places, or that does not go beyond a tap, goes 0.3 of the
    screen from where it touches, or from the middle.

    Examples:
        >>> dual_point(Action("swipe", direction="up"))
        ((0.5, 0.5), (0.5, 0.2))
    """
    touch, lift = touch_of(action), middle(action.end)
    if action.kind == "tap":
        return (touch, lift or touch) if touch else None
    if touch and lift and not is_tap(touch, lift):
        return touch, lift
    direction = direction_of(action)
    if direction is None:
        return None
    touch, way = touch or (0.5, 0.5), _WAYS[direction]
    return touch, (touch[0] + _AWAY * way[0], touch[1] + _AWAY * way[1])


def match_released(truth: Truth, said: Action) -> Match:
    """Match as `check_actions_match` does.

    Examples:
        >>> truth = Truth(Action("swipe", direction="up"))
        >>> match_released(truth, Action("swipe", direction="down"))
        (True, True)
    """
    code = _code_of(said)
    if code is None or code is not _code_of(truth.action):
        return False, False
    if code is not Code.DUAL_POINT:
        return True, True
    wanted, given = dual_point(truth.action), dual_point(said)
    if wanted is None or given is None:
        return False, False
    (touch, lift), (own_touch, own_lift) = _floats(wanted), _floats(given)
    tap = _norm(touch - lift) <= TAP_REACH
    if tap != (_norm(own_touch - own_lift) <= TAP_REACH):
        return False, False
    if not tap:
        return True, bool(_axis(lift - touch) == _axis(own_lift - own_touch))
    close = _norm(touch - own_touch) <= REACH
    return True, bool(close or _in_same(touch, own_touch, truth.rects))


def _floats(pairs: tuple[Pair, Pair]) -> list[npt.NDArray[np.float32]]:
    """The places as (y, x), float32."""
    return [np.array([y, x], np.float32) for x, y in pairs]


def _norm(delta: npt.NDArray[np.float32]) -> Any:
    return np.sqrt(delta[0] * delta[0] + delta[1] * delta[1])


def _axis(delta: npt.NDArray[np.float32]) -> int:
    return int(np.argmax(np.abs(delta)))


def _in_same(
    one: npt.NDArray[np.float32], other: npt.NDArray[np.float32], rects: Sequence[Rect]
) -> bool:
    if not rects:
        return False
    low = np.array(rects, np.float32)
    change = np.float32(ENLARGED) * low[:, 2:]
    start = np.maximum(np.float32(0), low[:, :2] - change / 2)
    end = start + np.minimum(np.float32(1), low[:, 2:] + change)
    inside = [((start <= point) & (point <= end)).all(axis=1) for point in (one, other)]
    return bool((inside[0] & inside[1]).any())


def match_fixed(truth: Truth, said: Action) -> Match:
    """Match by the corrected rules for opposite swipes, texts, and elements at the edges.

    Texts are equal where they are so without spaces around them and in any case.

    Examples:
        >>> truth = Truth(Action("type", text="Walmart"))
        >>> [match_fixed(truth, Action("type", text=said)) for said in ("walmart ", "a")]
        [(True, True), (True, False)]
    """
    code = _code_of(said)
    if code is None or code is not _code_of(truth.action):
        return False, False
    if code is Code.TYPE:
        return True, _plain(truth.action) == _plain(said)
    if code is not Code.DUAL_POINT:
        return True, True
    wanted, given = dual_point(truth.action), dual_point(said)
    if wanted is None or given is None or is_tap(*wanted) != is_tap(*given):
        return False, False
    if not is_tap(*wanted):
        return True, heading(*wanted) == heading(*given)
    taps = wanted[0], given[0]
    return True, near(*taps, REACH) or any(
        all(holds(rect, tap, more=ENLARGED) for tap in taps) for rect in truth.rects
    )


def _plain(action: Action) -> str:
    return (action.text or "").strip().casefold()
