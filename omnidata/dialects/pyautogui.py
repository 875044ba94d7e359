"""A text of pyautogui calls, read with `ast`, and as actions; nothing in it is ever executed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from msgspec.structs import replace

from omnidata.actions import (
    Action,
    AmountUnit,
    Button,
    Direction,
    Pair,
    Point,
    Space,
    Status,
)
from omnidata.actions import Kind as ActionKind
from omnidata.dialects.call_syntax import UNPARSED, parse_python
from omnidata.dialects.code_values import LARGEST, Names, Unresolved, Value, resolve, tag_of
from omnidata.jsontext import is_integer, is_number

# pyautogui's functions and what their arguments mean (pyautogui 0.9.54; OSWorld, A.3.1).

Kind = Literal[
    "move", "move_by", "click", "drag", "drag_by", "mouse_down", "mouse_up", "scroll", "hscroll",
    "write", "press", "key_down", "key_up", "hotkey", "sleep", "wait", "terminate",
    "swipe", "long_press", "back", "home", "open_app", "select", "ask",
]  # fmt: skip
_Button = Button | Literal[""]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a function of pyautogui, `time` or OpenCUA's `computer`, or of `AGENTS`.

    Numbers are as in the text. Places are pixels or shares of the screen, depending on the dataset:
    the functions have the same names in both.

    Attributes:
        kind: the kind of call; several functions have the same.
        name: the function as it was called, without its module.
        raw: the statement's text.
        x, y: the place; for `move_by` and `drag_by` the distance. None if the text omits it, which
            means the pointer's place.
        end: the end of a swipe; None for the others.
        tag: the mark that stands for the place ("tag_3"), even if its place is unknown.
        button: of a click, a drag, `mouse_down` or `mouse_up`; else empty.
        times: how often a click or a key is repeated, at least 1.
        amount: how far a wheel turns; above 0 is up, or right for `hscroll`.
        amount_unit: "notch", or "page" where the text says `page=`.
        text: the text that `write` types; None if it lists keys instead. Also the option picked,
            the app opened, the question asked, or the final answer.
        keys: the keys of `press`, `hotkey`, `key_down`, `key_up`, or of a `write` that lists them.
        seconds: the duration of `sleep`; None for the others, and for a `wait` without one.
        status: the status that `terminate` reports: "success", "failure"; may be empty.
    """

    kind: Kind
    name: str
    raw: str
    x: float | None = None
    y: float | None = None
    end: Pair | None = None
    tag: str = ""
    button: _Button = ""
    times: int = 1
    amount: float = 0
    amount_unit: AmountUnit = "notch"
    text: str | None = None
    keys: tuple[str, ...] = ()
    seconds: float | None = None
    status: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    """A statement with an effect that is unknown unless it is run, which never happens.

    Attributes:
        raw: its text.
        why: the reason.
    """

    raw: str
    why: str


@dataclass(frozen=True, slots=True)
class _Function:
    kind: Kind
    parameters: str = ""
    button: _Button = ""
    times: int = 1


_END: Final = " logScreenshot _pause"
_MOVE: Final = " duration tween" + _END
_DRAG: Final = " duration tween button logScreenshot _pause mouseDownUp"
_TRIPLE: Final = _Function("click", "x y interval button" + _MOVE, "left", 3)
_PYAUTOGUI: Final[Mapping[str, _Function]] = {
    "moveTo": _Function("move", "x y" + _MOVE),
    **dict.fromkeys(("move", "moveRel"), _Function("move_by", "xOffset yOffset" + _MOVE)),
    "click": _Function("click", "x y clicks interval button" + _MOVE, "left"),
    "leftClick": _Function("click", "x y interval" + _MOVE, "left"),
    "rightClick": _Function("click", "x y interval" + _MOVE, "right"),
    "middleClick": _Function("click", "x y interval" + _MOVE, "middle"),
    "doubleClick": _Function("click", "x y interval button" + _MOVE, "left", 2),
    "tripleClick": _TRIPLE,
    "dragTo": _Function("drag", "x y" + _DRAG, "left"),
    **dict.fromkeys(("drag", "dragRel"), _Function("drag_by", "xOffset yOffset" + _DRAG, "left")),
    "mouseDown": _Function("mouse_down", "x y button" + _MOVE, "left"),
    "mouseUp": _Function("mouse_up", "x y button" + _MOVE, "left"),
    **dict.fromkeys(("scroll", "vscroll"), _Function("scroll", "clicks x y" + _END)),
    "hscroll": _Function("hscroll", "clicks x y" + _END),
    **dict.fromkeys(("write", "typewrite"), _Function("write", "message interval" + _END)),
    "press": _Function("press", "keys presses interval" + _END),
    "keyDown": _Function("key_down", "key" + _END),
    "keyUp": _Function("key_up", "key" + _END),
    "hotkey": _Function("hotkey"),
    "sleep": _Function("sleep", "seconds"),
}
_ENDING: Final[Mapping[str, _Function]] = {
    "wait": _Function("wait", "seconds"),
    "terminate": _Function("terminate", "status answer"),
}
FUNCTIONS: Final[Mapping[str, Mapping[str, _Function]]] = {
    "pyautogui": _PYAUTOGUI,
    "time": {"sleep": _Function("sleep", "secs")},
    "computer": {"triple_click": _TRIPLE, "tripleClick": _TRIPLE, **_ENDING},
}
"""Module -> its functions that can be read: pyautogui's, `time`'s, and OpenCUA's `computer`."""
AGENTS: Final[Mapping[str, Mapping[str, _Function]]] = {
    **FUNCTIONS,
    "pyautogui": {
        **_PYAUTOGUI,
        "scroll": _Function("scroll", "clicks x y page" + _END),
        "hscroll": _Function("hscroll", "clicks x y page" + _END),
        **dict.fromkeys(("write", "typewrite"), _Function("write", f"message interval{_END} text")),
        "press": _Function("press", "keys presses interval key _pause"),
    },
    "mobile": {
        "swipe": _Function("swipe", "from_coord to_coord"),
        "long_press": _Function("long_press", "x y"),
        "home": _Function("home"),
        "back": _Function("back"),
        "open_app": _Function("open_app", "app_name"),
        **_ENDING,
    },
    "browser": {"select_option": _Function("select", "x y value")},
    "": {"call_user": _Function("ask", "question")},
}
"""`FUNCTIONS` with those of agents: Aguvis' wheel by pages and plug-ins for phones and browsers,
Kimi's `call_user`, and the names of arguments that agents write."""

_RENAMED: Final[Mapping[str, str]] = {
    "xOffset": "x", "yOffset": "y", "clicks": "times", "presses": "times", "message": "text",
    "key": "keys", "secs": "seconds", "from_coord": "x", "to_coord": "end", "app_name": "text",
    "value": "text", "question": "text",
}  # fmt: skip
_BUTTONS: Final[Mapping[Value, _Button]] = {
    "": "", "left": "left", "primary": "left", 1: "left", "middle": "middle", 2: "middle",
    "right": "right", "secondary": "right", 3: "right",
}  # fmt: skip
_MOST_TIMES: Final = 1000


def bind(
    module: str,
    name: str,
    given: Sequence[Value],
    named: Mapping[str, Value],
    *,
    raw: str,
    tag: str,
    functions: Mapping[str, Mapping[str, _Function]] = FUNCTIONS,
) -> Call:
    """Return the call of a function.

    Args:
        module: one of `functions`.
        name: a function's name.
        given: positional arguments.
        named: keyword arguments.
        raw: the statement's text.
        tag: the mark that stands for the place.
        functions: the known functions.

    Raises:
        Unresolved: there is no such function, or it does not take these arguments.
    """
    function = functions[module].get(name)
    if function is None:
        raise Unresolved(f"{module}.{name:.40} is no function that is read here")
    if function.kind == "hotkey":
        arguments = _hotkey(given, named)
    else:
        arguments = _arguments(function, name, given, named)
    kind, turn = function.kind, arguments.get("times", arguments.get("page"))
    x, y = (_as_number(arguments.get(axis), axis) for axis in ("x", "y"))
    end: tuple[float, ...] = ()
    if kind == "swipe":
        found = arguments.get("end")
        pair = found if isinstance(found, tuple) and len(found) == 2 else ()
        end = tuple(one for item in pair if (one := _as_number(item, "the end")) is not None)
        if len(end) != 2:
            raise Unresolved("the end is no pair of numbers")
    button = arguments.get("button", function.button)
    button = button.lower() if isinstance(button, str) else button
    if isinstance(button, bool | tuple) or button not in _BUTTONS:
        raise Unresolved("there is no such button")
    wheel = kind in ("scroll", "hscroll")
    times = 1 if wheel else arguments.get("times", function.times)
    if not is_integer(times) or not 1 <= times <= _MOST_TIMES:
        raise Unresolved(f"repeated not once to {_MOST_TIMES} times")
    amount = _as_number(turn, "how far to scroll") if wheel else 0
    if amount is None:
        raise Unresolved("how far to scroll is not said")
    text = arguments.get("answer" if kind == "terminate" else "text")
    if kind == "write" and not isinstance(text, str | tuple):
        raise Unresolved("there is no text to write")
    keys = _keys(kind, arguments)
    seconds, status = _as_number(arguments.get("seconds"), "seconds"), arguments.get("status", "")
    if not isinstance(status, str):
        raise Unresolved("the status is no text")
    return Call(
        kind=kind,
        name=name,
        raw=raw,
        x=x,
        y=y,
        end=(end[0], end[1]) if end else None,
        tag=tag,
        button=_BUTTONS[button],
        times=times,
        amount=amount,
        amount_unit="page" if wheel and "page" in arguments else "notch",
        text=text if isinstance(text, str) else None,
        keys=keys,
        seconds=seconds,
        status=status,
    )


def _arguments(
    function: _Function, name: str, given: Sequence[Value], named: Mapping[str, Value]
) -> dict[str, Value]:
    """Return the arguments by parameter name; a place in one tuple counts as two."""
    parameters = function.parameters.split()
    found: dict[str, Value] = {}
    if len(given) > len(parameters):
        raise Unresolved(f"{name} has {len(given)} arguments")
    for key, value in [*zip(parameters, given, strict=False), *named.items()]:
        own = _RENAMED.get(key, key)
        if key not in parameters:
            raise Unresolved(f"{name} takes no {key:.40}")
        if own in found:
            raise Unresolved(f"{name} has {key:.40} twice")
        found[own] = value
    place = found.get("x")
    if isinstance(place, tuple):
        if len(place) != 2 or found.get("y") is not None:
            raise Unresolved(f"the place of {name} is no pair of numbers")
        found["x"], found["y"] = place
    return found


def _hotkey(given: Sequence[Value], named: Mapping[str, Value]) -> dict[str, Value]:
    """Read `hotkey("ctrl", "c")` or a list of keys, which later versions take too."""
    rest = {key: value for key, value in named.items() if key not in ("interval", "_pause")}
    keys = tuple(given) if given else (rest.pop("keys", ()),)
    if rest:
        raise Unresolved(f"hotkey takes no {next(iter(rest)):.40}")
    if len(keys) == 1 and isinstance(keys[0], tuple):
        return {"keys": keys[0]}
    return {"keys": tuple(key if isinstance(key, str) else None for key in keys)}


def _as_number(value: Value, name: str) -> float | None:
    if value is None:
        return None
    if not is_number(value) or not abs(value) <= LARGEST:
        raise Unresolved(f"{name} is no number, or too large")
    return value


def _keys(kind: Kind, arguments: Mapping[str, Value]) -> tuple[str, ...]:
    if kind not in ("press", "key_down", "key_up", "hotkey", "write"):
        return ()
    value = arguments.get("text" if kind == "write" else "keys")
    if isinstance(value, str):
        return () if kind == "write" else (value,)
    keys = tuple(key for key in value if isinstance(key, str)) if isinstance(value, tuple) else ()
    if not keys or not isinstance(value, tuple) or len(keys) != len(value):
        raise Unresolved("the keys are no names of keys")
    if len(keys) > 1 and kind in ("key_down", "key_up"):
        raise Unresolved("one key can be held at a time")
    return keys


LONGEST: Final = 100_000
"""Characters of the longest text that is parsed; a longer one is `Code` as a whole. So are calls
after as many keys: a constant that is typed again and again takes few characters."""

_SETTINGS: Final = frozenset({"PAUSE", "FAILSAFE"})
_BUTTON_NAMES: Final = frozenset({"LEFT", "MIDDLE", "RIGHT", "PRIMARY", "SECONDARY"})
_TWEEN: Final = re.compile(r"linear|ease\w+")


def read_code(
    text: str,
    *,
    names: Names | None = None,
    functions: Mapping[str, Mapping[str, _Function]] = FUNCTIONS,
) -> tuple[Call | Code, ...]:
    r"""Return the calls of a text of Python in order, without running it.

    Comments, docstrings, imports of pyautogui and constants are omitted. Other statements that are
    not understood, such as loops, computed arguments or calls of another library, become `Code`,
    and so does a whole text that is not Python. Never raises.

    Args:
        text: Python, as an agent wrote it.
        names: constants that were set before, e.g. `{"tag_1": (960, 540)}`.
        functions: the known functions.

    Examples:
        >>> [one.kind for one in read_code("pyautogui.moveTo(10, 20); pyautogui.click()")]
        ['move', 'click']
        >>> read_code("for _ in range(3): pyautogui.press('down')")[0].why
        'For is not run'
    """
    if len(text) > LONGEST:
        return (Code(text, f"longer than {LONGEST} characters"),)
    try:
        return tuple(_Reader(text.strip(), dict(names or {}), functions).statements())
    except UNPARSED as error:
        if not text.strip():
            return ()
        reason = "is no Python" if isinstance(error, SyntaxError) else "cannot be parsed"
        return (Code(text, f"the text {reason}"),)


WORDS: Final[Mapping[str, Call]] = {
    "WAIT": Call("wait", "WAIT", "WAIT"),
    "DONE": Call("terminate", "DONE", "DONE", status="success"),
    "FAIL": Call("terminate", "FAIL", "FAIL", status="failure"),
}
"""The words of OSWorld's agents in place of code, or on the last line of it."""


def read_turn(text: str, *, names: Names | None = None) -> tuple[Call | Code, ...]:
    r"""Return the calls of one turn of an OSWorld agent: code, one of `WORDS`, or both.

    Args:
        text: without the fence around it.
        names: constants that were set before.

    Examples:
        >>> [one.kind for one in read_turn("pyautogui.press('enter')\nDONE")]
        ['press', 'terminate']
    """
    before, _, last = _unix(text.strip()).rpartition("\n")
    if last.strip() in WORDS:
        return (*read_code(before, names=names), WORDS[last.strip()])
    return read_code(text, names=names)


def _unix(text: str) -> str:
    """Return the text with only the line ends that Python's parser sees."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


class _Reader:
    def __init__(
        self, text: str, names: dict[str, Value], known: Mapping[str, Mapping[str, _Function]]
    ) -> None:
        self._tree = tree = parse_python(text)
        # As Python's parser counts: columns in bytes.
        self._lines = _unix(text).encode("utf-8").split(b"\n")
        self._names = names
        self._known = known
        self._modules: dict[str, str] = {module: module for module in known if module}
        self._functions: dict[str, tuple[str, str]] = {
            name: ("", name) for name in known.get("", ())
        }
        self._typed = 0
        self._changing = frozenset(
            name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names
        )

    def statements(self) -> Iterator[Call | Code]:
        for node in self._tree.body:
            try:
                call = self._statement(node)
            except Unresolved as error:
                self._forget(node)
                yield Code(self._source(node), str(error))
            else:
                if call is not None:
                    yield call

    def _source(self, node: ast.stmt) -> str:
        """Return a statement; `ast.get_source_segment` would split the whole text each time."""
        lines = self._lines[node.lineno - 1 : node.end_lineno]
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        return b"\n".join(lines).decode()

    def _statement(self, node: ast.stmt) -> Call | None:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            return self._call(node.value, self._source(node))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return None
        if isinstance(node, ast.Assign):
            self._assign(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self._import(node)
        elif not isinstance(node, ast.Pass):
            raise Unresolved(f"{type(node).__name__} is not run")
        return None

    def _call(self, node: ast.Call, raw: str) -> Call:
        module, name = self._function(node.func)
        given: list[Value] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                several = resolve(argument.value, self._names)
                given += several if isinstance(several, tuple) else [None]
            else:
                given.append(self._argument(argument))
        named: dict[str, Value] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise Unresolved("arguments from a dictionary")
            named[keyword.arg] = self._argument(keyword.value)
        tags = (tag_of(one) for one in [*node.args, *(key.value for key in node.keywords)])
        tag = next(filter(None, tags), "")
        call = bind(module, name, given, named, raw=raw, tag=tag, functions=self._known)
        self._typed += call.times * (len(call.keys) if call.text is None else len(call.text))
        if self._typed > LONGEST:
            raise Unresolved(f"more than {LONGEST} keys are typed")
        return call

    def _argument(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            ours = self._modules.get(node.value.id) == "pyautogui"
            if ours and (node.attr in _BUTTON_NAMES or _TWEEN.fullmatch(node.attr)):
                return node.attr.lower()
        if isinstance(node, ast.Name) and node.id not in self._names and tag_of(node):
            return None  # a mark of unknown place: the call is known, the place is not
        return resolve(node, self._names)

    def _function(self, node: ast.expr) -> tuple[str, str]:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = self._modules.get(node.value.id)
            if module is not None:
                return module, node.attr
        if isinstance(node, ast.Name) and node.id in self._functions:
            return self._functions[node.id]
        raise Unresolved("a call of something other than pyautogui")

    def _assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if len(node.targets) != 1:
            raise Unresolved("several names at once")
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            if self._modules.get(target.value.id) == "pyautogui" and target.attr in _SETTINGS:
                resolve(node.value, self._names)
                return
            raise Unresolved("an attribute is set")
        value = resolve(node.value, self._names)
        if isinstance(target, ast.Name):
            self._set(target.id, value)
            return
        names = target.elts if isinstance(target, ast.Tuple | ast.List) else []
        if not isinstance(value, tuple) or not names or len(names) != len(value):
            raise Unresolved("an assignment that is not read here")
        for one, item in zip(names, value, strict=True):
            if not isinstance(one, ast.Name):
                raise Unresolved("an assignment that is not read here")
            self._set(one.id, item)

    def _set(self, name: str, value: Value) -> None:
        if name in self._changing:
            raise Unresolved(f"{name:.40} is changed by a function")
        self._unbind(name)
        self._names[name] = value

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            if any(alias.name not in FUNCTIONS for alias in node.names):
                raise Unresolved("an import of another library")
            for alias in node.names:
                own = alias.asname or alias.name
                self._unbind(own)
                self._modules[own] = alias.name
            return
        functions: Mapping[str, object] = FUNCTIONS.get(node.module or "", {})
        if node.level or any(alias.name not in functions for alias in node.names):
            raise Unresolved("an import of another library")
        for alias in node.names:
            own = alias.asname or alias.name
            self._unbind(own)
            self._functions[own] = (node.module or "", alias.name)

    def _unbind(self, name: str) -> None:
        for known in (self._names, self._modules, self._functions):
            known.pop(name, None)

    def _forget(self, node: ast.stmt) -> None:
        """Forget the variables that an unknown statement may have set."""
        for one in ast.walk(node):
            if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load):
                self._unbind(one.id)
            elif isinstance(one, ast.alias):
                if one.name == "*":
                    for name in [*self._names, *self._modules, *self._functions]:
                        self._unbind(name)
                self._unbind((one.asname or one.name).partition(".")[0])
            else:  # of functions, classes, handlers, patterns
                for own in (getattr(one, "name", None), getattr(one, "rest", None)):
                    if isinstance(own, str):
                        self._unbind(own)


# Calls as actions.

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
"""Function -> the direction of the wheel for amounts above 0, and below."""
_POINTED: Final = frozenset({
    "click", "drag", "drag_by", "mouse_down", "mouse_up", "scroll", "hscroll", "swipe",
    "long_press", "select",
})  # fmt: skip
_KINDS: Final[Mapping[str, ActionKind]] = {
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


# Actions and calls to be written.


def single_actions(actions: Sequence[Action]) -> Iterator[Action]:
    """Yield actions as pyautogui has calls for them.

    Held keys go down before an action and come up after it. A text at a place is a click and a
    text, and a submitted one is followed by the enter key.

    Args:
        actions: of any agent, in order.

    Examples:
        >>> place = (Point(3, 4, "px"),)
        >>> typed = Action("type", place, text="a", submit=True)
        >>> [(one.label, one.keys) for one in single_actions([typed])]
        [('TAP', ()), ('INPUT', ()), ('KEYS', ('enter',))]
    """
    for action in actions:
        bare = replace(action, held=(), then=())
        yield from (Action("hold", keys=(key,)) for key in action.held)
        if action.kind == "type":
            if action.start:
                yield Action("tap", action.start)
            yield replace(bare, start=(), submit=None)
            if action.submit:
                yield Action("keys", keys=("enter",))
        elif action.kind in ("hold", "release") and len(action.keys) > 1:
            yield from (replace(bare, keys=(key,)) for key in action.keys)
        elif action.kind == "enter":
            yield Action("keys", keys=("enter",))
        else:
            yield bare
        yield from (Action("release", keys=(key,)) for key in reversed(action.held))
        yield from single_actions(action.then)


CLICKS: Final[Mapping[tuple[_Button, int], str]] = {
    ("left", 1): "click",
    ("left", 2): "doubleClick",
    ("left", 3): "tripleClick",
    ("right", 1): "rightClick",
    ("middle", 1): "middleClick",
}
"""(button, number of clicks) -> the function."""
_PLACED: Final = {"move": "moveTo", "mouse_down": "mouseDown", "mouse_up": "mouseUp"}
_KEYED: Final = {"press": "press", "key_down": "keyDown", "key_up": "keyUp", "hotkey": "hotkey"}


def code_of(call: Call, place: str = "") -> str:
    """Return a call as code, or as one of the words WAIT, DONE and FAIL.

    Args:
        call: the call; marks are not written.
        place: the arguments of the place; empty for the pointer's place.

    Examples:
        >>> [code_of(one, "3, 4") for one in read_code("pyautogui.click(3, 4, clicks=2)")]
        ['pyautogui.doubleClick(3, 4)']
        >>> [code_of(one) for one in read_code("pyautogui.press(keys='a', presses=2)")]
        ["pyautogui.press('a', presses=2)"]
    """
    if call.kind == "wait":
        return "WAIT"
    if call.kind == "terminate":
        return "FAIL" if call.status.lower().startswith("fail") else "DONE"
    if call.kind == "sleep":
        return f"time.sleep({call.seconds:g})" if call.seconds is not None else "time.sleep(1)"
    if call.kind == "write":
        text = list(call.keys) if call.text is None else call.text
        return _code("write", [repr(text)])
    if call.kind in _KEYED:
        keys = [repr(key) for key in call.keys]
        if call.kind == "press" and len(keys) > 1:
            keys = [f"[{', '.join(keys)}]"]
        more = [f"presses={call.times}"] if call.times > 1 else []
        return _code(_KEYED[call.kind], [*keys, *more])
    where = [place] if place else []
    button = [f"button={call.button!r}"] if call.button not in ("", "left") else []
    if call.kind == "click":
        name = CLICKS.get((call.button, call.times))
        if name:
            return _code(name, where)
        return _code("click", [*where, f"clicks={call.times}", *button])
    if call.kind in ("scroll", "hscroll"):
        return _code(call.kind, [f"{call.amount:g}", *where])
    if call.kind in ("move_by", "drag_by"):
        by = [f"{call.x or 0:g}", f"{call.y or 0:g}"]
        return _code("move" if call.kind == "move_by" else "drag", [*by, *button])
    if call.kind == "drag":
        return _code("dragTo", [*where, f"button={call.button!r}"])
    return _code(_PLACED[call.kind], [*where, *button])


def _code(name: str, arguments: Sequence[str]) -> str:
    return f"pyautogui.{name}({', '.join(arguments)})"
