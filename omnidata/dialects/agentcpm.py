"""AgentCPM-GUI: one object of compact JSON, with places from 0 to 1000 and without history.

`POINT` is a tap, with a `duration` of more than 200 ms a long press, with `to` a swipe; a duration
without a point is a wait. `STATUS` beside an action is a second action: `need_feedback` calls the
user, `interrupt` ends the episode without reporting success or failure. The default duration is
200 ms, which also stands for a wait of unknown length; a long press of unknown length is written
as 1000.

Source: OpenBMB/AgentCPM-GUI, `README.md`, `eval/utils/schema/schema_for_extraction.json`,
`eval/run_predict_minicpm.py`, `convert_output.py` and `ActionEvaluator.action_map` of
`evaluator.py`. The size to which its loader shrinks a picture is rounded down there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal

from omnidata.actions import Action, Point, Screen, centre, finger_way
from omnidata.dialects.base import (
    DIRECTIONS,
    Answer,
    Asked,
    CannotSayError,
    Dialect,
    Frame,
    Layout,
    Platform,
    Rules,
    UnreadError,
    kinds,
)
from omnidata.jsontext import BROKEN, compact, decode, is_number

# Valid objects, read as the evaluator does ("released") or as the schema intends ("meant").

Reading = Literal["released", "meant"]

DURATION: Final = 200
"""The default length of an action, in milliseconds."""

ACTS: Final = ("POINT", "PRESS", "TYPE", "DEEP_LINK", "CLEAR")
"""An answer has at most one of these."""

_GOING_ON: Final = ("continue", "start")
_ENDS: Final[Mapping[str, Action]] = {
    "finish": Action("done", status="success"),
    "satisfied": Action("done", status="success"),
    "impossible": Action("done", status="failure"),
    "interrupt": Action("done"),
    "need_feedback": Action("ask"),
}
_BUTTONS: Final[Mapping[str, Action]] = {
    "HOME": Action("home"),
    "BACK": Action("back"),
    "ENTER": Action("enter"),
    "APPSELECT": Action("recent"),
}


def _is_whole(value: object) -> bool:
    """Return whether a value is an integer in JSON Schema: 5.0 is, true is not."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def _is_place(value: Any) -> bool:
    is_pair = isinstance(value, list) and len(value) == 2
    return is_pair and all(_is_whole(number) and 0 <= number <= 1000 for number in value)


_STATUSES: Final = frozenset((*_GOING_ON, *_ENDS))
_TEXT: Final = ("a text", lambda value: isinstance(value, str))
_NULL: Final = ("null", lambda value: value is None)
_SCHEMA: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    "thought": _TEXT,
    "POINT": ("two whole numbers from 0 to 1000", _is_place),
    "to": (
        "a direction or two whole numbers from 0 to 1000",
        lambda value: value in DIRECTIONS if isinstance(value, str) else _is_place(value),
    ),
    "duration": (
        "a whole number of milliseconds",
        lambda value: _is_whole(value) and value >= 0,
    ),
    "PRESS": (
        f"one of {', '.join(_BUTTONS)}",
        lambda value: isinstance(value, str) and value in _BUTTONS,
    ),
    "TYPE": _TEXT,
    "DEEP_LINK": _NULL,
    "CLEAR": _NULL,
    "STATUS": (
        f"one of {', '.join((*_GOING_ON, *_ENDS))}",
        lambda value: isinstance(value, str) and value in _STATUSES,
    ),
}
"""Key -> the description and the test of its values."""


def fault_of(body: Mapping[str, Any]) -> str:
    """Return why an object does not fit the schema; empty if it does."""
    if unknown := sorted(body.keys() - _SCHEMA.keys()):
        return f"it has {unknown[0]!r:.40}, none of {', '.join(sorted(_SCHEMA))}"
    acts = [key for key in ACTS if key in body]
    if len(acts) > 1:
        return f"it has {' and '.join(acts)}"
    if not acts and "duration" not in body and body.get("STATUS", "continue") in _GOING_ON:
        return "it says nothing to do"
    if "to" in body and "POINT" not in body:
        return "it has to without POINT"
    wrong = (key for key, value in body.items() if not _SCHEMA[key][1](value))
    return next((f"{key} is not {_SCHEMA[key][0]}" for key in wrong), "")


def read_compact(body: Mapping[str, Any], reading: Reading) -> Action:
    """Return the action of a valid object, with places from 0 to 1000.

    As released, a touch that takes less than 200 ms, DEEP_LINK and CLEAR end the episode, and a
    swipe that takes longer is a long press. As meant, a touch of any length is a tap up to 200 ms,
    a swipe stays a swipe, and DEEP_LINK and CLEAR are refused: no data have them.

    Args:
        body: an object without a fault (see `fault_of`).
        reading: as released, or as meant.

    Raises:
        ValueError: no data have such an action.
    """
    status = body.get("STATUS", "continue")
    if status in _ENDS:
        return _ENDS[status]
    if "TYPE" in body:
        return Action("type", text=body["TYPE"])
    if "PRESS" in body:
        return _BUTTONS[body["PRESS"]]
    duration = body.get("duration", DURATION)
    if "POINT" in body:
        return _touch(body, duration, reading)
    if reading == "meant" and ("DEEP_LINK" in body or "CLEAR" in body):
        raise ValueError("DEEP_LINK and CLEAR are no actions of any data here")
    return Action("wait", seconds=_seconds(duration))


def _touch(body: Mapping[str, Any], duration: float, reading: Reading) -> Action:
    x, y = body["POINT"]
    start, to = (Point(x, y, "norm1000"),), body.get("to")
    long = duration > DURATION
    if reading == "released" and duration < DURATION:
        return Action("done")
    if long and (to is None or reading == "released"):
        return Action("long_press", start, seconds=_seconds(duration))
    if to is None:
        return Action("tap", start)
    if isinstance(to, str):
        return Action("swipe", start, direction=DIRECTIONS[to])
    return Action("swipe", start, (Point(to[0], to[1], "norm1000"),))


def _seconds(duration: float) -> float | None:
    return None if duration == DURATION or not 0 <= duration < 1e9 else duration / 1000


# Lenient reading.

_SPOKEN: Final = (*ACTS[:3], "STATUS", "duration", "OPEN_APP", "open_app")
_MORE_BUTTONS: Final = {**_BUTTONS, "RECENT": Action("recent"), "RECENTS": Action("recent")}
_TRIED: Final = 64
_HELD_MS: Final = 1000
_decoder = json.JSONDecoder()


def _object(text: str) -> tuple[Mapping[str, Any], int, int]:
    """Return the first object with an action and its span; its last brace may be missing."""
    begin, first = -1, text.find("{")
    try:
        for _ in range(_TRIED):
            begin = text.find("{", begin + 1)
            if begin < 0:
                break
            try:
                body, end = _decoder.raw_decode(text, begin)
            except ValueError:
                continue
            if any(key in body for key in _SPOKEN):
                return body, begin, end
        closed = decode(text[first:].strip() + "}") if first >= 0 else BROKEN
    except RecursionError:
        raise UnreadError("the JSON is nested too deeply") from None
    if isinstance(closed, dict) and any(key in closed for key in _SPOKEN):
        return closed, first, len(text)
    raise UnreadError("no object of JSON in the text says an action")


def _read_action(body: Mapping[str, Any]) -> Action | None:
    acts = [key for key in _SPOKEN if key in body and key not in ("STATUS", "duration")]
    if len(acts) > 1:
        raise UnreadError(f"the object has {' and '.join(acts)}")
    duration = body.get("duration", DURATION)
    if not is_number(duration):
        raise UnreadError(f"the duration is {duration!r:.40}")
    if not acts:
        return Action("wait", seconds=_seconds(duration)) if "duration" in body else None
    value = body[acts[0]]
    if acts[0] == "POINT":
        to = body.get("to")
        if isinstance(to, str):
            to = to.lower()
            if to not in DIRECTIONS:
                raise UnreadError(f"to is {to!r:.40}, no direction")
        elif to is not None:
            to = _pair(to)
        return _touch({"POINT": _pair(value), "to": to}, duration, "meant")
    if not isinstance(value, str):
        raise UnreadError(f"{acts[0]} is {value!r:.40}, no text")
    if acts[0] == "TYPE":
        return Action("type", text=value)
    if acts[0] != "PRESS":
        return Action("open_app", app=value)
    if value.upper() not in _MORE_BUTTONS:
        raise UnreadError(f"there is no button {value!r:.40}")
    return _MORE_BUTTONS[value.upper()]


def _pair(value: object) -> tuple[float, float]:
    if isinstance(value, list) and len(value) == 2:
        x, y = value
        if is_number(x) and is_number(y) and max(abs(x), abs(y)) < 1e9:
            return x, y
    raise UnreadError(f"{value!r:.60} is no place")


class AgentCPM(Dialect):
    """AgentCPM-GUI."""

    name = "agentcpm-gui"
    title = "AgentCPM-GUI: an object of compact JSON, places from 0 to 1000"
    checkpoints = ("AgentCPM-GUI-8B",)
    source = "OpenBMB/AgentCPM-GUI@acbaf50 eval/run_predict_minicpm.py, eval/utils/evaluator.py"
    frame = Frame("norm1000", longest=1120)
    layout = Layout(actions=0)
    says: ClassVar = {
        "mobile": kinds(
            "tap long_press swipe scroll drag type home back enter recent wait done ask"
        )
    }

    def read(self, text: str, fed: Screen, *, rules: Rules = "lenient") -> Answer:
        if rules == "strict":
            return _read_released(text)
        body, begin, end = _object(text)
        thought = body.get("thought")
        status = body.get("STATUS", "continue")
        if not isinstance(status, str) or status.lower() not in _STATUSES:
            raise UnreadError(f"the status is {status!r:.40}")
        action, ended = _read_action(body), _ENDS.get(status.lower())
        actions = tuple(one for one in (action, ended) if one)
        if not actions:
            raise UnreadError("the object says nothing to do")
        said = thought if isinstance(thought, str) else text[:begin].strip()
        return Answer(actions, said, text[end:].strip())

    def write(self, actions: Sequence[Action], fed: Screen, platform: Platform) -> str:
        body: dict[str, Any] = {}
        for number, action in enumerate(actions):
            if number and (number > 1 or action.kind not in ("done", "ask") or "STATUS" in body):
                raise CannotSayError("more than an action and a status")
            body |= self._object(action, platform)
        if not body:
            raise CannotSayError("no action")
        return compact(body)

    def _object(self, action: Action, platform: Platform) -> dict[str, Any]:
        kind = action.kind
        self.check(action, platform, "held", "then", "path", "amount")
        if kind in ("done", "ask"):
            if action.text:
                raise self.refusal(action, "a text at the end")
            ended = Action(kind, status=action.status)
            return {"STATUS": next(word for word, one in _ENDS.items() if one == ended)}
        if kind == "type":
            self.check(action, platform, "start", "submit", "clear")
            return {"TYPE": action.text or ""}
        if kind == "wait":
            return {"duration": _milliseconds(action, DURATION)}
        pressed = next((word for word, one in _BUTTONS.items() if one.kind == kind), None)
        return {"PRESS": pressed} if pressed else self._touch(action)

    def _touch(self, action: Action) -> dict[str, Any]:
        kind = action.kind
        if action.button != "left" or action.count != 1:
            raise self.refusal(action)
        if kind in ("tap", "long_press") and not action.start:
            raise self.refusal(action, "without a place")
        point = centre(action.start[0]) if action.start else Point(500, 500, "norm1000")
        found: dict[str, Any] = {"POINT": _numbers(point)}
        if kind == "tap":
            return found
        if kind == "long_press":
            duration = _milliseconds(action, _HELD_MS)
            if duration <= DURATION:
                raise self.refusal(action, f"a press of at most {DURATION} ms is a tap")
            return {**found, "duration": duration}
        if action.start and action.end:
            return {**found, "to": _numbers(centre(action.end[0]))}
        way = finger_way(action)
        if way is None:
            raise self.refusal(action, "which way")
        return {**found, "to": way}

    def vocabulary(self, asked: Asked, platform: Platform, fed: Screen) -> str:
        place = "x from 0 at the left edge to 1000 at the right, y from 0 at the top to 1000"
        if asked == "point":
            return (
                "Find the element of the screenshot that the user names. Answer with one object "
                f'of compact JSON: {{"POINT":[x,y]}}, whole numbers, {place}.'
            )
        return (
            "You operate a phone for the user. From the task and the screenshot, choose the next "
            "action. Answer with one object of compact JSON, without blanks, whose first key is "
            '"thought": what you see and why you act. One of these goes with it:\n'
            f'"POINT":[x,y] taps; whole numbers, {place}\n'
            f'"POINT":[x,y],"duration":{_HELD_MS} presses for so many milliseconds\n'
            '"POINT":[x,y],"to":"up" swipes, the way that the finger goes: up, down, left, right, '
            "or a place\n"
            '"PRESS":"HOME" presses a button: HOME, BACK or ENTER\n'
            '"TYPE":"text" types at the focus\n'
            '"duration":1000 waits for so many milliseconds\n'
            '"STATUS":"finish" ends the task: finish, satisfied (it was done before), impossible, '
            "interrupt, or need_feedback to ask the user; it may stand beside an action"
        )


def _milliseconds(action: Action, silent: int) -> float:
    if action.seconds is None:
        return silent
    duration = action.seconds * 1000
    return round(duration) if abs(duration - round(duration)) < 1e-6 else duration


def _numbers(point: Point) -> list[float]:
    return [int(value) if value == int(value) else value for value in (point.x, point.y)]


def _read_released(text: str) -> Answer:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        raise UnreadError("the text is no JSON") from None
    if not isinstance(body, dict):
        raise UnreadError("the JSON is no object")
    if fault := fault_of(body):
        raise UnreadError(fault)
    return Answer((read_compact(body, "released"),), body.get("thought", ""))


DIALECTS: Final[tuple[Dialect, ...]] = (AgentCPM(),)
