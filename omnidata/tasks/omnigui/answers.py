"""Read an action from a model's text, as the released OmniGUI evaluator does.

The order of attempts follows the benchmark authors' release of April 2026: a `<tool_call>`, the
whole text as JSON, code fences, the first balanced braces that hold an action, a function call. If
the released code raises an error and ends the evaluation, `parse` returns `ParseFailure`. Every
attempt takes time linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, Literal

from msgspec.structs import replace

from omnidata.actions import Action, Point, Space
from omnidata.jsontext import BROKEN, decode
from omnidata.tasks.json_answers import (
    ALIASES,
    LABELS,
    NO_ACTION,
    TRIGGERS,
    Answer,
    CannotReadError,
    Pair,
    ParseFailure,
    action_number,
    read_object,
    read_pair,
)

PredictedSpace = Space | Literal["auto"]
"""The unit of coordinates in answers; "auto": pixels if one exceeds 1000."""
PLACED: Final = frozenset({"tap", "long_press"})
"""Kinds of action that are done at one place."""
NO_JSON: Final = ParseFailure("no JSON action, tool call or function call in the text")

_PROMPTED_KEYS: Mapping[int, frozenset[str]] = {
    -1: frozenset({"action_type"}),
    **dict.fromkeys(range(3), frozenset({"action_type", "coordinate"})),
    **dict.fromkeys(range(3, 7), frozenset({"action_type", "start_coordinate", "end_coordinate"})),
    7: frozenset({"action_type", "text"}),
    **dict.fromkeys(range(8, 12), frozenset({"action_type"})),
}


def read_prompted(body: dict[str, Any]) -> Answer | None:
    """Return the action of an object with exactly the keys and types of the prompt's table.

    Coordinates are two numbers in [0, 1000]. This is the fast path for most answers of good models.
    """
    kind = body.get("action_type")
    if type(kind) is not int or body.keys() != _PROMPTED_KEYS.get(kind):
        return None
    if 0 <= kind <= 2:
        start = _prompt_pair(body["coordinate"])
        return start and Answer(kind, start, None, None, True)
    if 3 <= kind <= 6:
        start = _prompt_pair(body["start_coordinate"])
        end = _prompt_pair(body["end_coordinate"])
        return Answer(kind, start, end, None, True) if start and end else None
    if kind == 7:
        text = body["text"]
        return Answer(kind, None, None, text, True) if isinstance(text, str) else None
    return Answer(kind, None, None, None, True)


def _prompt_pair(value: Any) -> Pair | None:
    if type(value) is not list or len(value) != 2:
        return None
    x, y = value
    if type(x) in _NUMERIC and type(y) in _NUMERIC and 0 <= x <= 1000 and 0 <= y <= 1000:
        return x, y
    return None


_NUMERIC = frozenset({int, float})


def parse(text: str) -> Answer | ParseFailure:
    """Read one model output.

    Args:
        text: the untrusted output.

    Returns:
        The action, or the reason why there is none. Never raises.

    Examples:
        >>> parse('Sure: {"action_type": 0, "coordinate": [389, 511]}')
        Answer(kind=0, start=(389, 511), end=None, text=None, as_prompted=False)
        >>> parse("I would tap the button")
        ParseFailure(reason='no JSON action, tool call or function call in the text')
    """
    text = text.strip()
    try:
        found = _tool_call(text) if _OPEN in text else None
        if found is None and text[:1] == "{" and text[-1:] == "}":
            value = decode(text)
            if value is not BROKEN:
                return read_prompted(value) or read_object(value)
        return found or _search(text)
    except CannotReadError as error:
        return ParseFailure(str(error))
    except OverflowError:
        return ParseFailure("a number is infinite or too large")
    except RecursionError:
        return ParseFailure("the JSON is nested too deeply")


def action_of(answer: Answer, space: PredictedSpace, *, released: bool = False) -> Action:
    """Return an answer as an action, with its places in their unit.

    Args:
        answer: as the model wrote it.
        space: unit of its coordinates.
        released: read coordinates as the released evaluator: it drops their fractions before it
            looks whether one exceeds 1000. Otherwise places beyond 10^9 are left out.

    Examples:
        >>> action_of(Answer(0, (1000.5, 3)), "auto").start
        (Point(x=1000.5, y=3, space='px'),)
    """
    start = _place(answer.start, space, released) if answer.start else ()
    end = _place(answer.end, space, released) if answer.end else ()
    bare = _PRIMITIVES[answer.kind]
    if not start and not end and answer.text is None:
        return bare
    return replace(bare, start=start, end=end, text=answer.text)


_PRIMITIVES: Final[Mapping[int, Action]] = {
    number: Action.of(label) for number, label in LABELS.items()
}


def _place(pair: Pair, space: PredictedSpace, released: bool) -> tuple[Point, ...]:
    x, y = pair
    if not released and not (-_FARTHEST <= x <= _FARTHEST and -_FARTHEST <= y <= _FARTHEST):
        return ()
    if space == "auto":
        space = "px" if max(pair) >= 1001 or (max(pair) > 1000 and not released) else "norm1000"
    return (Point(x, y, space),)


_FARTHEST: Final = 1e9


def _search(text: str) -> Answer | ParseFailure:
    value = decode(text) if text[:1] in _JSON_STARTS else BROKEN
    if value is BROKEN:
        value = next(_candidates(text), BROKEN)
    if value is BROKEN:
        return _function_call(text)
    if isinstance(value, dict):
        return read_object(value)
    if value is None or (isinstance(value, str | list) and not any(k in value for k in TRIGGERS)):
        return NO_ACTION
    # A bare number, or a string or list holding a key word, ends the released evaluation.
    return ParseFailure(f"the JSON is a {type(value).__name__}, not an object")


_JSON_STARTS = frozenset('["-0123456789tfnNI')  # an object was tried before


# --- where the JSON may hide ----------------------------------------------------------------------

_BRACES = re.compile(r"[{}]")
_QUALIFYING = frozenset({"action_type", "point", "coordinate", "action"})


def _candidates(text: str) -> Iterator[dict[str, Any]]:
    """Objects in code fences first, then objects in balanced braces that hold an action."""
    if "```" in text:
        for opener in ("```json", "```"):
            for body in _code_blocks(text, opener):
                if body.startswith("{"):
                    value = decode(body)
                    if value is not BROKEN:
                        yield value
    depth = start = 0
    for brace in _BRACES.finditer(text):
        if brace.group() == "{":
            if depth == 0:
                start = brace.start()
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                value = decode(text[start : brace.end()])
                if isinstance(value, dict) and not _QUALIFYING.isdisjoint(value):
                    yield value


def _code_blocks(text: str, opener: str) -> Iterator[str]:
    position = 0
    while (begin := text.find(opener, position)) >= 0:
        begin += len(opener)
        end = text.find("```", begin)
        if end < 0:
            return
        yield text[begin:end].strip()
        position = end + 3


# --- function calls -------------------------------------------------------------------------------

_POINT_CALL = re.compile(
    r"\b(click|tap|double_click|double_tap|long_press|swipe_up|swipe_down|swipe_left|swipe_right"
    r"|scroll_up|scroll_down|scroll_left|scroll_right|input|type|back|home|none)"
    r"\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)",
    re.IGNORECASE,
)
_POINT_TEXT_CALL = re.compile(r"\b(input|type)\s*\(\s*(\d+)\s*,\s*(\d+)\s*,\s*[\"']", re.IGNORECASE)
_TEXT_CALL = re.compile(r"\b(input|type)\s*\(\s*[\"']", re.IGNORECASE)
_BARE_CALL = re.compile(
    r"\b(back|home|none|task_complete|task_impossible|wait)\s*\(\s*\)", re.IGNORECASE
)
_QUOTE = re.compile("[\"']")
_CLOSE = re.compile(r"\s*\)")


def _function_call(text: str) -> Answer | ParseFailure:
    if "(" not in text:
        return NO_JSON
    if call := _POINT_CALL.search(text):
        return Answer(ALIASES[call[1].lower()], _digits(call))
    if found := _text_argument(_POINT_TEXT_CALL, text):
        call, argument = found
        return Answer(7, _digits(call), text=argument or None)
    if found := _text_argument(_TEXT_CALL, text):
        return Answer(7, text=found[1])
    if call := _BARE_CALL.search(text):
        return Answer(ALIASES[call[1].lower()])
    return NO_JSON


def _digits(call: re.Match[str]) -> Pair | None:
    try:
        return read_pair([int(call[2]), int(call[3])])
    except ValueError:  # more digits than Python converts: the release leaves the place out
        return None


def _text_argument(pattern: re.Pattern[str], text: str) -> tuple[re.Match[str], str] | None:
    """Two steps, because one pattern takes quadratic time on blanks before a missing `)`."""
    for call in pattern.finditer(text):
        begin = call.end()
        quote = _QUOTE.search(text, begin)
        if quote and _CLOSE.match(text, quote.end()):
            return call, text[begin : quote.start()]
        close = text.rfind(")", begin, quote.start() if quote else len(text))
        if close >= 0:
            return call, text[begin:close]
    return None


# --- a Qwen tool call -> an action ----------------------------------------------------------------

_OPEN, _SHUT = "<tool_call>", "</tool_call>"
_SIMPLE = {"click": 0, "double_click": 1, "long_press": 2, "type": 7, "wait": -1}
_DIRECTIONS = {"up": 3, "down": 4, "left": 5, "right": 6}
_SUCCESS = frozenset({"success", "complete", "done", "finished"})


def _tool_call(text: str) -> Answer | ParseFailure | None:
    begin = text.find(_OPEN)
    end = text.find(_SHUT, begin + len(_OPEN)) if begin >= 0 else -1
    if end < 0:
        return None
    inner = text[begin + len(_OPEN) : end].strip()
    if "{{" in inner:
        inner = inner.replace("{{", "{").replace("}}", "}")
    call = decode(inner)
    if call is BROKEN:
        return None
    if not isinstance(call, dict):
        raise CannotReadError("the tool call is not a JSON object")
    arguments = call["arguments"] if "arguments" in call else call.get("args", {})
    if isinstance(arguments, str):
        arguments = decode(arguments)
        if arguments is BROKEN:
            return None
    if not isinstance(arguments, dict):
        raise CannotReadError("the tool call's arguments are not a JSON object")
    name = arguments["action"] if "action" in arguments else call.get("name", "")
    if not isinstance(name, str):
        raise CannotReadError("the tool call's action is not a name")
    body = _call_body(name.lower().strip(), arguments)
    return None if body is None else read_object(body)


def _call_body(name: str, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    if name == "swipe":
        return _swipe_call(arguments)
    if name == "system_button":
        button = str(_existing(arguments, "button", "key") or "").lower().strip()
        if button in ("home", "home_screen"):
            return {"action_type": 9}
        return {"action_type": 7 if button in ("enter", "return_key") else 8}
    if name == "terminate":
        said = [arguments[key] for key in ("status", "reason") if key in arguments]
        done = not said or str(said[0]).lower().strip() in _SUCCESS
        return {"action_type": 10 if done else 11}
    number = _SIMPLE[name] if name in _SIMPLE else action_number(name)
    if number is None:
        return None
    body: dict[str, Any] = {"action_type": number}
    coordinate = _existing(arguments, "coordinate", "coordinates")
    if name in _SIMPLE:
        if name == "type" and (text := _existing(arguments, "text", "content", "input_text")):
            body["text"] = text
        coordinate = _existing(arguments, "coordinate", "coordinates", "position")
        if coordinate is None and arguments.keys() >= {"x", "y"}:
            coordinate = [arguments["x"], arguments["y"]]
        with suppress(ValueError, TypeError):  # the release raises for an infinite time
            seconds = float(_existing(arguments, "time", "duration") or 0)
            int(seconds * 1000 if seconds < 100 else seconds)
    if isinstance(coordinate, list) and read_pair(coordinate) is not None:
        body["coordinate"] = coordinate
    return body


def _swipe_call(arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    begin = _existing(arguments, "coordinate", "start_coordinate")
    end = _existing(arguments, "coordinate2", "end_coordinate", "to")
    if not begin:
        return None
    if end:
        try:
            start, stop = _ends(begin), _ends(end)
        except (ValueError, TypeError, LookupError):
            return None
        dx, dy = stop[0] - start[0], stop[1] - start[1]
        across, along = (6 if dx > 0 else 5), (4 if dy > 0 else 3)
        kind = across if abs(dx) > abs(dy) else along
        return {"action_type": kind, "start_coordinate": [*start], "end_coordinate": [*stop]}
    direction = arguments.get("direction", "up")
    if not isinstance(direction, str):
        raise CannotReadError("the direction of the swipe is not a text")
    body: dict[str, Any] = {"action_type": _DIRECTIONS.get(direction.lower(), 3)}
    with suppress(ValueError, TypeError):
        try:
            body["start_coordinate"] = [*_ends(begin)]
        except KeyError:
            return None
        except IndexError:
            raise CannotReadError("the start of the swipe has one coordinate") from None
    return body


def _existing(body: Mapping[str, Any], *keys: str) -> Any:
    return next((body[key] for key in keys if key in body), None)


def _ends(value: Any) -> tuple[int, int]:
    return int(float(value[0])), int(float(value[1]))
