"""AgentCPM-GUI's compact JSON -> a move: as its evaluator reads it, and as its schema means it.

Source: OpenBMB/AgentCPM-GUI, `eval/utils/schema/schema_for_extraction.json`, `convert_output.py`
and `ActionEvaluator.action_map` of `evaluator.py`. Coordinates are whole numbers from 0 to 1000.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from omnidata.phone import DIRECTIONS, Kind, Move

Reading = Literal["released", "meant"]

DURATION: Final = 200
"""Milliseconds of an action that does not say how long it takes."""

KEYS: Final = frozenset(
    {"thought", "POINT", "to", "duration", "PRESS", "TYPE", "DEEP_LINK", "CLEAR", "STATUS"}
)
ACTS: Final = ("POINT", "PRESS", "TYPE", "DEEP_LINK", "CLEAR")
"""Of these an answer has one at most."""

_GOING_ON = ("continue", "start")
_ENDS: Final[Mapping[str, Kind]] = {
    "finish": Kind.COMPLETE,
    "satisfied": Kind.COMPLETE,
    "impossible": Kind.IMPOSSIBLE,
    "interrupt": Kind.STOP,
    "need_feedback": Kind.STOP,
}
_BUTTONS: Final[Mapping[str, Kind]] = {
    "HOME": Kind.HOME,
    "BACK": Kind.BACK,
    "ENTER": Kind.ENTER,
    "APPSELECT": Kind.RECENTS,
}


def fault_of(body: Mapping[str, Any]) -> str:
    """What an object has against the schema; empty for a valid one.

    Examples:
        >>> fault_of({"POINT": [500, 500]}), fault_of({"POINT": [500, 1001]})
        ('', 'POINT is not two whole numbers from 0 to 1000')
    """
    if unknown := sorted(body.keys() - KEYS):
        return f"it has {unknown[0]!r:.40}, none of {', '.join(sorted(KEYS))}"
    acts = [key for key in ACTS if key in body]
    if len(acts) > 1:
        return f"it has {' and '.join(acts)}"
    if not acts and "duration" not in body and body.get("STATUS", "continue") in _GOING_ON:
        return "it says nothing to do"
    if "to" in body and "POINT" not in body:
        return "it has to without POINT"
    return next((f"{key} is not {_EXPECTED[key]}" for key in body if not _fits(key, body)), "")


_EXPECTED: Final = {
    "thought": "a text",
    "POINT": "two whole numbers from 0 to 1000",
    "to": "a direction or two whole numbers from 0 to 1000",
    "duration": "a whole number of milliseconds",
    "PRESS": f"one of {', '.join(_BUTTONS)}",
    "TYPE": "a text",
    "DEEP_LINK": "null",
    "CLEAR": "null",
    "STATUS": f"one of {', '.join((*_GOING_ON, *_ENDS))}",
}


def _fits(key: str, body: Mapping[str, Any]) -> bool:
    value = body[key]
    if key in ("thought", "TYPE"):
        return isinstance(value, str)
    if key in ("DEEP_LINK", "CLEAR"):
        return value is None
    if key == "duration":
        return _is_whole(value) and value >= 0
    if key == "to" and isinstance(value, str):
        return value in DIRECTIONS
    if key in ("POINT", "to"):
        return (
            isinstance(value, list)
            and len(value) == 2
            and all(_is_whole(number) and 0 <= number <= 1000 for number in value)
        )
    return isinstance(value, str) and value in (_BUTTONS if key == "PRESS" else _STATUSES)


_STATUSES = frozenset((*_GOING_ON, *_ENDS))


def _is_whole(value: object) -> bool:
    """A whole number as JSON Schema has them: 5.0 is one, true is not."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def read_compact(body: Mapping[str, Any], reading: Reading) -> Move:
    """The move of a valid object; places from 0 to 1000.

    As released, a touch that takes less than 200 ms, DEEP_LINK and CLEAR end the episode, and a
    swipe that takes longer is a long press. As meant, a touch of any length is a tap up to 200 ms,
    a swipe stays one, and DEEP_LINK and CLEAR are nothing that data hold.

    Args:
        body: an object that `fault_of` finds no fault with.
        reading: whose.

    Raises:
        ValueError: it is nothing that data hold.

    Examples:
        >>> read_compact({"POINT": [500, 500], "duration": 100}, "released").kind.name
        'STOP'
        >>> read_compact({"POINT": [500, 500], "to": "up"}, "meant").direction
        'up'
    """
    status = body.get("STATUS", "continue")
    if status in _ENDS:
        return Move(_ENDS[status], space="norm1000")
    if "TYPE" in body:
        return Move(Kind.TYPE, text=body["TYPE"], space="norm1000")
    if "PRESS" in body:
        return Move(_BUTTONS[body["PRESS"]], space="norm1000")
    duration = body.get("duration", DURATION)
    if "POINT" in body:
        return _touch(body, duration, reading)
    if reading == "meant" and ("DEEP_LINK" in body or "CLEAR" in body):
        raise ValueError("DEEP_LINK and CLEAR are no actions of any data here")
    return Move(Kind.WAIT, space="norm1000")


def _touch(body: Mapping[str, Any], duration: float, reading: Reading) -> Move:
    x, y = body["POINT"]
    to = body.get("to")
    long = duration > DURATION
    if reading == "released" and duration < DURATION:
        return Move(Kind.STOP, space="norm1000")
    if long and (to is None or reading == "released"):
        return Move(Kind.LONG_PRESS, (x, y), (x, y), space="norm1000")
    if to is None:
        return Move(Kind.GESTURE, (x, y), (x, y), space="norm1000")
    if isinstance(to, str):
        direction = next(d for d in DIRECTIONS if d == to)
        return Move(Kind.SWIPE, (x, y), direction=direction, space="norm1000")
    return Move(Kind.SWIPE, (x, y), (to[0], to[1]), space="norm1000")
