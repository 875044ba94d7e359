"""The actions of OSWorld's rollouts: `pyautogui`, `computer_13`, and the special ones.

Nothing in an action is executed. Places are pixels of the screen (paper, Appendix A.3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from msgspec.structs import replace

from omnidata.actions import Action, Pair, Point, Region, centre, finger_way
from omnidata.dialects import CannotSayError, UnreadError
from omnidata.dialects.code_values import Names, Unresolved, Value
from omnidata.dialects.pyautogui import (
    WHEEL,
    WORDS,
    Call,
    Code,
    action_of,
    bind,
    in_place,
    read_turn,
    single_actions,
)
from omnidata.dialects.pyautogui import Kind as CallKind
from omnidata.jsontext import BROKEN, decode, is_number
from omnidata.loaders.load import short

Flag = Literal["action-alias", "action-foreign", "action-space-differs"]

_ALIASES: Final[Mapping[str, str]] = {"MOUSE_MOVE": "MOVE_TO", "TYPE": "TYPING", "KEY": "PRESS"}
"""Their names in the examples of the release's own prompt."""

_CLICK_TYPES: Final[Mapping[str, tuple[str, int]]] = {
    "WHEEL_UP": ("vscroll", 1),
    "WHEEL_DOWN": ("vscroll", -1),
}
_FUNCTIONS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "MOVE_TO": ("moveTo", {"x": "x", "y": "y"}),
    "CLICK": ("click", {"button": "button", "x": "x", "y": "y", "num_clicks": "clicks"}),
    "MOUSE_DOWN": ("mouseDown", {"button": "button"}),
    "MOUSE_UP": ("mouseUp", {"button": "button"}),
    "RIGHT_CLICK": ("rightClick", {"x": "x", "y": "y"}),
    "DOUBLE_CLICK": ("doubleClick", {"x": "x", "y": "y"}),
    "DRAG_TO": ("dragTo", {"x": "x", "y": "y"}),
    "TYPING": ("write", {"text": "message"}),
    "PRESS": ("press", {"key": "keys"}),
    "KEY_DOWN": ("keyDown", {"key": "key"}),
    "KEY_UP": ("keyUp", {"key": "key"}),
    "HOTKEY": ("hotkey", {"keys": "keys"}),
}
"""Of each type of `computer_13` (Table 6): the function that the release runs for it, and the names
of its parameters there. SCROLL is two functions."""

_NEEDED: Final = {"MOVE_TO": ("x", "y"), "DRAG_TO": ("x", "y"), "SCROLL": ("dx", "dy")}
_DEEPEST: Final = 20


@dataclass(slots=True)
class Reading:
    """The calls of some actions.

    Attributes:
        calls: in order.
        flags: deviations from the action space: kind -> description.
    """

    calls: list[Call | Code] = field(default_factory=list)
    flags: dict[Flag, str] = field(default_factory=dict)


def calls_of(source: Mapping[str, Any]) -> Reading:
    """Return the calls of a step, in either action space, from its `source`.

    Args:
        source: `Step.source` of OSWorld, also from a Parquet repository.

    Examples:
        >>> row = {"action": {"action_type": "SCROLL", "dx": 0, "dy": -3}}
        >>> [call.amount for call in calls_of({"rows": [row]}).calls]
        [-3]
    """
    reading = Reading()
    space = source.get("action_space", "")
    for row in source.get("rows", ()):
        actions = row.get("actions")
        if "action" in row:
            _read(row["action"], space, reading, 0)
        elif isinstance(actions, list):
            for action in actions:
                _read(action, space, reading, 0)
    return reading


def _read(action: object, space: str, reading: Reading, depth: int) -> None:
    if action is None or action == "":
        return
    if isinstance(action, str):
        _read_text(action, space, reading, depth)
    elif isinstance(action, Mapping):
        _read_object(action, space, reading)
    elif isinstance(action, list) and depth < _DEEPEST:
        for one in action:
            _read(one, space, reading, depth + 1)
    elif is_number(action):
        reading.flags["action-foreign"] = f"the action is the number {short(action)}"
        reading.calls.append(Code(short(action), "a number of another dataset's actions"))
    else:
        reading.calls.append(Code(short(action), f"a {type(action).__name__} is no action"))


def _read_text(text: str, space: str, reading: Reading, depth: int) -> None:
    if space != "computer_13" or text.strip() in WORDS:
        reading.calls += read_turn(text)
        return
    try:
        value = decode(text)
    except RecursionError:
        value = BROKEN
    if isinstance(value, dict | list) and depth < _DEEPEST:
        _read(value, space, reading, depth + 1)
    else:
        reading.calls.append(Code(text, "no action of computer_13"))


def _read_object(action: Mapping[str, Any], space: str, reading: Reading) -> None:
    kind = action.get("action_type")
    for name in ("command", "code"):  # of agents that keep a tool's call beside what it ran
        if "action_type" not in action and isinstance(action.get(name), str):
            _read_text(action[name], "pyautogui", reading, _DEEPEST)
            return
    if not isinstance(kind, str):
        if kind is not None:
            reading.flags["action-foreign"] = f"action_type is {short(kind)}"
        reading.calls.append(Code(short(action), "action_type is no name of computer_13"))
        return
    if space == "pyautogui":
        reading.flags["action-space-differs"] = "an action of computer_13 among those of pyautogui"
    name = kind.strip().upper()
    nested = action.get("parameters")
    given = {
        key: value for key, value in action.items() if key not in ("action_type", "parameters")
    }
    given |= nested if isinstance(nested, Mapping) else {}
    given = {key: value for key, value in given.items() if value is not None}
    if name != kind or name in _ALIASES or "click_type" in given:
        reading.flags["action-alias"] = f"action_type {short(kind)} as in the prompt's examples"
    try:
        reading.calls += _bind(_ALIASES.get(name, name), name == "KEY", given, short(action))
    except Unresolved as error:
        reading.calls.append(Code(short(action), str(error)))


def _bind(name: str, is_key: bool, given: dict[str, Any], raw: str) -> list[Call]:
    if name in WORDS:
        return [WORDS[name]]
    for needed in _NEEDED.get(name, ()):
        if needed not in given:
            raise Unresolved(f"{name} lacks {needed}")
    if name == "SCROLL":
        turns = (("hscroll", given["dx"]), ("vscroll", given["dy"]))
        return [_call(function, {"clicks": by}, raw) for function, by in turns if by != 0]
    click_type = given.get("click_type")
    wheel = _CLICK_TYPES.get(click_type.upper()) if isinstance(click_type, str) else None
    if wheel and name == "CLICK":
        return [_call(wheel[0], {"clicks": wheel[1]}, raw)]
    if name == "CLICK" and "click_type" in given:
        given["button"] = given.pop("click_type")
    if is_key and isinstance(given.get("key"), str) and "+" in given["key"].strip("+"):
        name, given = "HOTKEY", {"keys": given["key"].split("+")}
    if name not in _FUNCTIONS:
        raise Unresolved(f"computer_13 has no type {name:.40}")
    function, parameters = _FUNCTIONS[name]
    unknown = given.keys() - parameters.keys()
    if unknown:
        raise Unresolved(f"{name} takes no {min(map(str, unknown)):.40}")
    return [_call(function, {parameters[key]: given[key] for key in given}, raw)]


def _call(function: str, given: Mapping[str, Any], raw: str) -> Call:
    values: dict[str, Value] = {}
    for name, value in given.items():
        listed = value if isinstance(value, list) else [value]
        for one in listed:
            if not (one is None or isinstance(one, str | int | float | bool)):
                raise Unresolved(f"a {type(one).__name__} is no parameter")
        values[name] = tuple(listed) if isinstance(value, list) else value
    return bind("pyautogui", function, (), values, raw=raw, tag="")


# The actions of a turn on a desktop, however it is written.
#
# `words` of an action of the mouse is the button as the call names it: a call without a button is
# not the same as one of the left button.

_ASIDE: Final = frozenset({"left", "right"})
_NAMES: Final = {
    **{"\n": "enter", "\r": "enter", "return": "enter", "\t": "tab", " ": "space"},
    **{"esc": "escape", "del": "delete", "control": "ctrl", "ctrlleft": "ctrl"},
    **{"altleft": "alt", "shiftleft": "shift", "pgup": "pageup", "pgdn": "pagedown"},
    **{"option": "alt", "super": "win", "winleft": "win", "command": "win", "cmd": "win"},
}


def actions_of(statements: Sequence[Call | Code]) -> list[Action] | None:
    """Return the actions of some calls, as the rule compares them.

    A move of the pointer is part of the next action there, keys typed one after the other are one
    action, and pauses are omitted, unless there is nothing else. Each key has one name; the keys of
    a hotkey have no order.

    Args:
        statements: of one turn.

    Returns:
        None if a statement is not understood.

    Examples:
        >>> from omnidata.dialects.pyautogui import read_code
        >>> found = actions_of(read_code("pyautogui.moveTo(3, 4); pyautogui.click()"))
        >>> [(one.label, one.start) for one in found]
        [('TAP', (Point(x=3, y=4, space='px'),))]
        >>> actions_of(read_code("pyautogui.write('a'); pyautogui.press('enter')"))[0].keys
        ('a', 'enter')
    """
    if any(isinstance(one, Code) for one in statements):
        return None
    found: list[Action] = []
    for call, before, at, moved in in_place(statements, space="px"):
        action = _action(call, before, at)
        if action.kind == "keys" and found and found[-1].kind == "keys" and not moved:
            found[-1] = replace(found[-1], keys=found[-1].keys + action.keys)
        else:
            found.append(action)
    return found if found or not statements else [Action("wait")]


def _action(call: Call, before: Point | None, at: Point | None) -> Action:
    if call.kind in ("scroll", "hscroll"):  # a wheel that does not turn has a direction too
        way = WHEEL[call.kind][math.copysign(1, call.amount) < 0]
        return Action("scroll", (at,) if at else (), direction=way, amount=abs(call.amount))
    if call.kind == "terminate":
        failed = call.status.lower().startswith("fail")
        return Action("done", status="failure" if failed else "success")
    typed = call.text if call.text is not None else call.keys
    names = (name.lower() if len(name) > 1 else name for name in typed)
    keys = tuple(_NAMES.get(name, name) for name in names)
    if call.kind in ("write", "press"):
        return Action("keys", keys=keys * call.times)
    if call.kind == "hotkey":
        keys = tuple(sorted(set(keys)))
    action = action_of(call, before, at)
    assert action is not None  # only ends may be unknown
    return replace(action, keys=keys, words=call.button)


def calls_for(action: Action) -> Iterator[Call]:
    """Yield an action of any agent as calls of pyautogui; a drag begins with a move to its start.

    An end without a status is a success.

    Raises:
        CannotSayError: pyautogui has no such call.

    Examples:
        >>> [call.kind for call in calls_for(Action("type", text="a", submit=True))]
        ['write', 'press']
    """
    for one in single_actions([action]):
        yield from _calls(one)


_BUTTONS: Final = ("left", "right", "middle")
_CALLED: Final[Mapping[str, CallKind]] = {
    **{"keyDown": "key_down", "keyUp": "key_up", "moveTo": "move", "dragTo": "drag"},
    **{"click": "click", "scroll": "scroll", "hscroll": "hscroll"},
    **{"write": "write", "press": "press", "hotkey": "hotkey"},
}


def _calls(action: Action) -> Iterator[Call]:
    kind, start, end = action.kind, action.start[:1], action.end[:1]
    if action.button not in _BUTTONS:
        raise CannotSayError(f"pyautogui has no button {action.button}")
    match kind:
        case "tap":
            yield _calling("click", start, button=action.button, times=action.count)
        case "move" | "drag" | "swipe":
            if kind != "move" and not end:
                raise CannotSayError(f"nobody says where the {action.label} ends")
            if start:
                yield _calling("moveTo", start)
            if kind != "move":
                yield _calling("dragTo", end, button=action.button)
        case "scroll":
            way = finger_way(action)
            # Pixels become as many clicks of the wheel, as OSWorld's own agent for OpenAI's tool
            # has it (mm_agents/openai_cua_agent.py); how far a wheel turns is not judged.
            if way is None or action.amount_unit not in ("notch", "px"):
                raise CannotSayError("a wheel turns one way, by notches")
            if start:
                yield _calling("moveTo", start)
            turn = 1 if way in ("down", "left") else -1
            name = "hscroll" if way in _ASIDE else "scroll"
            yield _calling(name, amount=turn * (1 if action.amount is None else action.amount))
        case "type":
            yield _calling("write", text=action.text or "")
        case "keys" | "hotkey" if action.keys:
            yield _calling("press" if kind == "keys" else "hotkey", keys=action.keys)
        case "hold" | "release" if action.keys:
            yield _calling("keyDown" if kind == "hold" else "keyUp", keys=action.keys)
        case "wait":
            yield WORDS["WAIT"]
        case "done":
            yield WORDS["FAIL" if action.status == "failure" else "DONE"]
        case _:
            raise CannotSayError(f"pyautogui has no {action.label}")


def _calling(name: str, place: Sequence[Region] = (), **given: Any) -> Call:
    x, y = (found.x, found.y) if place and (found := centre(place[0])) else (None, None)
    return Call(_CALLED[name], name, "", x, y, **given)


def move(found: Sequence[Action], place: Callable[[Pair], Pair]) -> list[Action]:
    """Return the actions with every place mapped by a function."""

    def there(regions: tuple[Region, ...]) -> tuple[Region, ...]:
        points = map(centre, regions)
        return tuple(Point(*place((point.x, point.y)), point.space) for point in points)

    return [replace(one, start=there(one.start), end=there(one.end)) for one in found]


# A model's text as code: the blocks of it, or one of the words WAIT, DONE and FAIL.
#
# As OSWorld's own agent reads it (`parse_code_from_string`), without two mistakes: that one cuts
# the text at every `;`, also within quotes, and takes a word before a line break for a language, so
# that "DONE" on a line of its own is lost.

_FENCE: Final = "```"
_LANGUAGES: Final = frozenset({"python", "py", "python3", "code"})


@dataclass(frozen=True, slots=True)
class ParsedResponse:
    """The code of an answer.

    Attributes:
        statements: in order.
        code: the blocks, one below the other.
    """

    statements: tuple[Call | Code, ...]
    code: str

    @property
    def as_prompted(self) -> bool:
        """Whether the whole response is code in the prompt's form."""
        return not any(isinstance(one, Code) for one in self.statements)


def parse(text: str, names: Names | None = None) -> ParsedResponse:
    r"""Read an answer of code.

    Args:
        text: the answer, unchanged.
        names: the places of marks, by name.

    Raises:
        UnreadError: there is no code.

    Examples:
        >>> parse("I see it. ```python\npyautogui.click(3, 4)\n```").code
        'pyautogui.click(3, 4)'
        >>> parse("DONE").statements[0].status
        'success'
    """
    if text.strip() in WORDS:
        return ParsedResponse((WORDS[text.strip()],), text.strip())
    parts = text.split(_FENCE)
    blocks = []
    for block in parts[1:-1:2]:
        first, *rest = block.split(maxsplit=1) or [""]
        blocks.append(("".join(rest) if first.lower() in _LANGUAGES else block).strip())
    if not blocks:
        raise UnreadError("there is no block of code")
    found = [one for block in blocks for one in read_turn(block, names=names)]
    if not found:
        raise UnreadError("the block of code is empty")
    return ParsedResponse(tuple(found), "\n".join(filter(None, blocks)))
