"""Model text -> a desktop action, as OmniBench's prompt asks for it.

The released environment drops seven characters before and three after where a text begins with a
backtick, reads the rest as JSON, and ends the episode on anything else than a known Function and
Status. Whatever it reads is read here; beside it an object anywhere in the text, in a fence or not,
and keys in any case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from omnidata.desktop import FUNCTIONS, Call, Click, Finish, Function, read_call
from omnidata.jsontext import decode, objects
from omnidata.metrics.omnigui_answer import Pair, Unread, read_pair

STATUSES: Final = ("CONTINUE", "FINISH")
KEYS: Final = ("Status", "Observation", "Thought", "coordinates", "Function", "Args")
"""The keys of an answer to the prompt that shows the screenshot alone."""

_DROPPED = 7, 3
_FARTHEST = 1e9


class Answer(msgspec.Struct, frozen=True):
    """An action as a model wrote it.

    Attributes:
        function: one of `FUNCTIONS`.
        call: what it does; None where its arguments cannot be read.
        point: where, in the model's unit; None if it does not say, or names no place on earth.
        status: "CONTINUE", "FINISH", or empty for anything else.
        as_prompted: the whole output is one object with the prompt's keys, to the letter.
        fault: why the arguments cannot be read.
    """

    function: Function
    call: Call | None = None
    point: Pair | None = None
    status: str = ""
    as_prompted: bool = False
    fault: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The answer as a JSON object."""
        body: dict[str, Any] = {"function": self.function, "status": self.status}
        if self.call is not None:
            body["args"] = msgspec.to_builtins(self.call)
        if self.point is not None:
            body["coordinates"] = self.point
        return body


def parse(text: str) -> Answer | Unread:
    """Read one model output.

    Args:
        text: the output as it came; none of it is trusted.

    Returns:
        The action, or the reason why there is none. Never raises.

    Examples:
        >>> said = '{"Function": "click_input", "Args": {"button": "left"}, "coordinates": [9, 7]}'
        >>> parse(f"```json{said}```").point
        (9, 7)
        >>> parse("I would click")
        Unread(reason='no JSON object with a Function in the text')
    """
    text = text.strip()
    fault = "no JSON object with a Function in the text"
    try:
        whole = decode(text)
        for body in [whole] if isinstance(whole, dict) else _objects(text):
            try:
                found = _read(body)
            except ValueError as error:
                fault = str(error)
                continue
            if found is not None:
                as_prompted = body is whole and _is_prompted(body, found)
                return msgspec.structs.replace(found, as_prompted=as_prompted)
    except RecursionError:
        return Unread("the JSON is nested too deeply")
    return Unread(fault)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """What the release reads, then the objects that begin at one of the first braces."""
    if text.startswith("`"):
        value = decode(text[_DROPPED[0] : -_DROPPED[1]])
        if isinstance(value, dict):
            yield value
    yield from objects(text)


def _read(body: Mapping[str, Any]) -> Answer | None:
    """The answer of an object; None if it has no Function and no Status that ends the task.

    Raises:
        ValueError: there is no such function.
    """
    said = {key.lower().replace("_", ""): value for key, value in body.items()}
    status = said.get("status")
    status = status.strip().upper() if isinstance(status, str) else ""
    if "function" not in said and status != "FINISH":
        return None
    name = said.get("function") or ""
    if not isinstance(name, str):
        raise ValueError(f"the Function is a {type(name).__name__}")
    function = next((f for f in FUNCTIONS if f == name.strip().removesuffix("()")), None)
    if function is None:
        raise ValueError(f"there is no function {name!r:.80}")
    call, fault = None, ""
    try:
        call = read_call(function, said.get("args"))
    except (ValueError, RecursionError) as error:
        fault = str(error)
    status = status if status in STATUSES else ""
    return Answer(function, call, _point(said), status, fault=fault)


def _point(said: Mapping[str, Any]) -> Pair | None:
    value = said.get("coordinates", said.get("coordinate"))
    if isinstance(value, str):
        value = value.strip(" ()[]")
    try:
        point = read_pair(value)
    except OverflowError:  # infinite
        return None
    return point if point and all(abs(number) <= _FARTHEST for number in point) else None


def _is_prompted(body: Mapping[str, Any], found: Answer) -> bool:
    """Whether an object is an answer to the letter of the prompt."""
    if body.keys() != set(KEYS) or found.call is None or found.status != body["Status"]:
        return False
    if body["Function"] != found.function or not isinstance(body["Args"], dict):
        return False
    ends = found.status == "FINISH"
    placed = isinstance(body["coordinates"], list) and found.point is not None
    return ends == isinstance(found.call, Finish) and (placed or not isinstance(found.call, Click))
