"""A text of pyautogui calls, read with `ast`: nothing in it is ever executed."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from omnidata.pyautogui.calls import FUNCTIONS, Call, Code, bind
from omnidata.pyautogui.values import Names, Unresolved, Value, resolve, tag_of

LONGEST: Final = 100_000
"""Characters of the longest text that is parsed; a longer one is `Code` as a whole. So are calls
after as many keys: a constant that is typed again and again takes few characters."""

_SETTINGS: Final = frozenset({"PAUSE", "FAILSAFE"})
_BUTTONS: Final = frozenset({"LEFT", "MIDDLE", "RIGHT", "PRIMARY", "SECONDARY"})
_TWEEN: Final = re.compile(r"linear|ease\w+")
_UNPARSED: Final = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)


def read_code(text: str, *, names: Names | None = None) -> tuple[Call | Code, ...]:
    r"""The calls that a text makes, in order.

    What states no call, such as a comment, a docstring, an import of pyautogui or a constant, is
    left out. Everything else that is not understood, such as a loop, a computed argument or a call
    of another library, is kept as `Code`; so is the whole of a text that is not Python, for
    whoever runs it runs nothing of it. Never raises.

    Args:
        text: Python, as an agent wrote it.
        names: constants that were set before, e.g. `{"tag_1": (960, 540)}`.

    Examples:
        >>> [one.kind for one in read_code("pyautogui.moveTo(10, 20); pyautogui.click()")]
        ['move', 'click']
        >>> read_code("for _ in range(3): pyautogui.press('down')")[0].why
        'For is not run'
    """
    if len(text) > LONGEST:
        return (Code(text, f"longer than {LONGEST} characters"),)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes such as "\d", which are the agent's
            tree = ast.parse(text.strip())
        return tuple(_Reader(_Text(text.strip()), tree, dict(names or {})).statements())
    except _UNPARSED as error:
        if not text.strip():
            return ()
        reason = "is no Python" if isinstance(error, SyntaxError) else "cannot be parsed"
        return (Code(text, f"the text {reason}"),)


WORDS: Final[Mapping[str, Call]] = {
    "WAIT": Call("wait", "WAIT", "WAIT"),
    "DONE": Call("terminate", "DONE", "DONE", status="success"),
    "FAIL": Call("terminate", "FAIL", "FAIL", status="failure"),
}
"""What OSWorld's agents may say in place of code, or on the last line of it."""


def read_turn(text: str) -> tuple[Call | Code, ...]:
    r"""What an agent of OSWorld says to do at once: code, or one of `WORDS`, or both.

    Args:
        text: without the fence around it.

    Examples:
        >>> [one.kind for one in read_turn("pyautogui.press('enter')\nDONE")]
        ['press', 'terminate']
    """
    before, _, last = _unix(text.strip()).rpartition("\n")
    if last.strip() in WORDS:
        return (*read_code(before), WORDS[last.strip()])
    return read_code(text)


def _unix(text: str) -> str:
    """The text with the line ends that Python's parser sees; there are no others."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


@dataclass(slots=True)
class _Text:
    """Cuts statements out of a text; `ast.get_source_segment` would cut all its lines each time."""

    text: str
    _lines: list[bytes] = field(init=False)

    def __post_init__(self) -> None:
        # As Python's parser counts: columns in bytes.
        self._lines = _unix(self.text).encode("utf-8").split(b"\n")

    def of(self, node: ast.stmt) -> str:
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        if first == last:
            return self._lines[first][node.col_offset : node.end_col_offset].decode()
        lines = [self._lines[first][node.col_offset :], *self._lines[first + 1 : last]]
        return b"\n".join([*lines, self._lines[last][: node.end_col_offset]]).decode()


class _Reader:
    """Goes through the statements of a text, keeping the constants that they set."""

    def __init__(self, text: _Text, tree: ast.Module, names: dict[str, Value]) -> None:
        self._text = text
        self._tree = tree
        self._names = names
        self._modules: dict[str, str] = {module: module for module in FUNCTIONS}
        self._functions: dict[str, tuple[str, str]] = {}
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
                yield Code(self._text.of(node), str(error))
            else:
                if call is not None:
                    yield call

    def _statement(self, node: ast.stmt) -> Call | None:
        """The call that a statement makes; None where it makes none."""
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            return self._call(node.value, self._text.of(node))
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
        call = bind(module, name, given, named, raw=raw, tag=next(filter(None, tags), ""))
        self._typed += call.times * (len(call.keys) if call.text is None else len(call.text))
        if self._typed > LONGEST:
            raise Unresolved(f"more than {LONGEST} keys are typed")
        return call

    def _argument(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            ours = self._modules.get(node.value.id) == "pyautogui"
            if ours and (node.attr in _BUTTONS or _TWEEN.fullmatch(node.attr)):
                return node.attr.lower()
        if isinstance(node, ast.Name) and node.id not in self._names and tag_of(node):
            return None  # a mark whose place nobody told: the call is known, the place is not
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
        """Nothing is known any more of what a statement that is not understood may have set."""
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
