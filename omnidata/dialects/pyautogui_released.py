"""Answers in code, as the released parsers of OpenCUA, Aguvis and Kimi read them.

What these parsers lose or get wrong is lost and wrong here too: published figures depend on it.
Nothing is executed. A reader takes the answer and the size of the fed picture in pixels, and raises
`UnreadError` if the released parser finds nothing or fails.
"""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, takewhile
from typing import Final

from omnidata.actions import Action, Point, Screen, Status
from omnidata.dialects.base import UnreadError, join_moves, map_places
from omnidata.dialects.call_syntax import parse_python
from omnidata.dialects.pyautogui import LONGEST, Call, Code, each_action, read_code

_ENDS: Final[dict[str, Status]] = {"success": "success", "failure": "failure"}
_STATUS: Final = re.compile(r"status=['\"](\w+)['\"]")
_MESSAGE: Final = re.compile(r"message=['\"](.+?)['\"]")
_PLACE: Final = re.compile(r"x=([\d.]+),\s*y=([\d.]+)")
_BLANK_PLACE: Final = re.compile(r"x\s*=\s*([\d.]+)\s*,\s*y\s*=\s*([\d.]+)")
_QUOTED: Final = re.compile(r"['\"]([^'\"]+)['\"]")
_LISTED: Final = re.compile(r"['\"]([^'\"]*)['\"]|(\w+)")
_MODULES: Final = ("pyautogui.", "computer.")
_NOTCHES: Final = re.compile(r"pyautogui\.scroll\(([-\d]+)\)")
_PAGES: Final = re.compile(r"scroll\(page=([-\d.]+)\)")
_NUMBER: Final = re.compile(r"[-+]?\d*\.\d+|\d+")
_APP: Final = re.compile(r"app_name='([^']+)'")


def _some(actions: Sequence[Action]) -> tuple[Action, ...]:
    if not actions:
        raise UnreadError("the released parser finds no action")
    return tuple(actions)


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UnreadError(f"the released parser fails at the number {text:.40}") from None


def _between(line: str, opening: str, closing: str) -> str | None:
    start = line.find(opening)
    end = line.find(closing, start + len(opening)) if start >= 0 else -1
    return line[start + len(opening) : end] if end >= 0 else None


def _final_action(status: str) -> Action:
    return Action("done", status=_ENDS.get(status))


_POINTED_WORDS: Final[Mapping[str, Callable[[tuple[Point]], Action]]] = {
    "click": partial(Action, "tap"),
    "moveTo": partial(Action, "move"),
    "doubleClick": partial(Action, "tap", count=2),
    "rightClick": partial(Action, "tap", button="right"),
    "dragTo": partial(Action, "drag", ()),
}
"""The action at the place of a line, by a word in the line; the first of these words counts."""

# OpenCUA.


def read_opencua(text: str, fed: Screen) -> tuple[Action, ...]:
    """Return the actions of an answer of OpenCUA's, line by line.

    A place is in pixels if both numbers are above 1, else a share of the screen; every place of
    `computer.triple_click` is a share.
    """
    lines = [line.strip() for line in text.split("\n")]
    chosen = [line for line in lines if line.startswith(_MODULES)]
    if not chosen:
        for line in lines:
            if module := next((one for one in _MODULES if one in line), ""):
                chosen.append(module + line.split(module, 2)[1].strip())
    found = (action for line in chosen for action in _opencua_line(line.strip(), fed))
    return _some(join_moves(found))


def _opencua_line(line: str, fed: Screen) -> Iterator[Action]:
    if line.startswith("computer.terminate") and (status := _STATUS.search(line)):
        yield _final_action(status[1])
    elif line.startswith("computer.triple_click") and (place := _PLACE.search(line)):
        yield Action("tap", (_point_from_shares(_float(place[1]), _float(place[2]), fed),), count=3)
    elif line.startswith("pyautogui."):
        line, at = _opencua_place(line, fed)
        words = [word for word in _POINTED_WORDS if word in line]
        if "doubleClick" in line or "rightClick" in line:
            words = [word for word in words if word != "click"]
        if at and words:
            yield _POINTED_WORDS[words[0]]((at,))
        yield from _opencua_text(line)
        yield from _opencua_keys(line)
        if turned := _NOTCHES.search(line):
            yield _wheel(turned[1])


def _opencua_place(line: str, fed: Screen) -> tuple[str, Point | None]:
    """Return the line with its pixel place rewritten to shares, and the place.

    The rewriting may hit a typed text, and a share written with an exponent is not found again.
    """
    place = _PLACE.search(line)
    if not place:
        return line, None
    x, y = _float(place[1]), _float(place[2])
    if not (x > 1 and y > 1):
        return line, _point_from_shares(x, y, fed)
    if min(fed) < 1:
        return line, Point(x, y, "px")
    shares = f"x={x / fed[0]}, y={y / fed[1]}"
    line = line[: place.start()] + shares + line[place.end() :]
    again = _PLACE.search(line)
    if again and again.start() == place.start():
        return line, Point(x, y, "px")
    return line, _point_from_shares(_float(again[1]), _float(again[2]), fed) if again else None


def _point_from_shares(x: float, y: float, fed: Screen) -> Point:
    width, height = fed if min(fed) > 0 else (1, 1)
    return Point(x * width, y * height, "px")


def _opencua_text(line: str) -> Iterator[Action]:
    if message := _MESSAGE.search(line):
        yield Action("type", text=message[1])
        return
    # The earliest call that ends with its own quote; a search with a pattern would be quadratic.
    found: list[tuple[int, str]] = []
    for quote in "'\"":
        start = line.find(opening := f"pyautogui.write({quote}")
        end = line.find(f"{quote})", start + len(opening)) if start >= 0 else -1
        if end >= 0:
            found.append((start, line[start + len(opening) : end]))
    if found:
        yield Action("type", text=min(found)[1])


def _opencua_keys(line: str) -> Iterator[Action]:
    listed = _between(line, "keys=[", "]")
    if listed is not None:
        keys = [one or other for one, other in _LISTED.findall(listed) if one or other]
        yield _key_action(keys, at_once="hotkey" in line)
    if "keys=" in line:
        return
    if "hotkey(" in line and (keys := _QUOTED.findall(_to_the_last(line, "pyautogui.hotkey("))):
        yield _key_action(keys, at_once=True)
    if "press(" in line:
        inside = _to_the_last(line, "pyautogui.press(").strip()
        keys = _QUOTED.findall(inside)
        if keys:
            keys = keys if inside.startswith("[") else keys[:1]
            yield _key_action(keys, at_once=len(keys) > 1)


def _to_the_last(line: str, opening: str) -> str:
    start = line.find(opening)
    end = line.rfind(")")
    return line[start + len(opening) : end] if 0 <= start < end else ""


def _key_action(names: Sequence[str], *, at_once: bool) -> Action:
    keys = (name.strip() for name in names)
    keys = ("ctrl" if key.lower() in ("cmd", "command") else key for key in keys)
    return Action("hotkey" if at_once else "keys", keys=tuple(keys))


def _wheel(notches: str) -> Action:
    try:
        amount = int(notches)
    except ValueError:
        raise UnreadError(f"the released parser fails at the number {notches:.40}") from None
    if not amount:
        return Action("scroll", amount=0)
    return Action("scroll", direction="up" if amount > 0 else "down", amount=abs(amount))


# Aguvis.


def read_aguvis(text: str, fed: Screen) -> tuple[Action, ...]:
    """Return the action of an Aguvis answer: its first pyautogui line, or its last `mobile` one."""
    last = text.strip().split("<|diff_marker|>", 1)[0].rsplit("\n", 1)[-1].strip()
    if last.startswith("mobile."):
        return (_aguvis_phone(last),)
    lines = (line.strip() for line in text.split("\n"))
    line = next((line for line in lines if line.startswith(("pyautogui", "computer."))), "")
    if line.startswith("computer.terminate"):
        status = _STATUS.search(line)
        return _some([_final_action(status[1])] if status else [])
    return _some(list(_aguvis_line(line)) if line.startswith("pyautogui.") else [])


def _aguvis_line(line: str) -> Iterator[Action]:
    if place := _BLANK_PLACE.search(line):
        at = (Point(_float(place[1]), _float(place[2]), "rel"),)
        words = (word for word in ("click", "moveTo", "doubleClick") if word in line)
        yield from (_POINTED_WORDS[word](at) for word in islice(words, 1))
    if pages := _PAGES.search(line):
        yield Action("move", (Point(0.5, 0.5, "rel"),))
        yield Action("scroll", direction="up" if _float(pages[1]) > 0 else "down")
    if message := _MESSAGE.search(line):
        yield Action("type", text=message[1])
    listed = _between(line, "keys=[", "]")
    if listed is not None:
        keys = tuple(key.strip("'\" ") for key in listed.split(",") if key.strip())
        yield Action("hotkey" if len(keys) > 1 else "keys", keys=keys)


def _aguvis_phone(line: str) -> Action:
    called = line.removeprefix("mobile.")
    if called.startswith("back"):
        return Action("back")
    if called.startswith("home"):
        return Action("home")
    if called.startswith("terminate"):
        return Action("done", status="success" if "success" in line else "failure")
    if called.startswith("open_app") and (app := _APP.search(called)):
        return Action("open_app", app=app[1])
    if called.startswith("wait"):
        return Action("wait", seconds=3)
    if called.startswith("long_press"):
        numbers = _NUMBER.findall(line)
        if len(numbers) == 2:
            try:
                x, y = (round(float(number) * 1000) / 1000 for number in numbers)
            except OverflowError:
                raise UnreadError("the released parser fails at a number") from None
            return Action("long_press", (Point(x, y, "rel"),))
    raise UnreadError(f"the released parser does not know {line:.80}")


# Kimi.

_THOUGHT_MARK: Final = re.compile("◁/?think▷")
_HEAD: Final = re.compile(r"^##\s*Action\b", re.MULTILINE)
_BLOCK: Final = re.compile("```(?:code|python)?(.*?)```", re.DOTALL | re.IGNORECASE)
_SECTION: Final = re.compile(
    r"^[^\S\n]*+##\s*+Action(?:\s*+:(?=\s*?[\n\r])\s*+|\s*[\n\r])", re.MULTILINE
)
_NEXT_SECTION: Final = re.compile(r"^[^\S\n]*+##", re.MULTILINE)
_QUESTION: Final = re.compile(r"call_user\s*\(\s*(?:question\s*=\s*)?[\"'](.+?)[\"']", re.DOTALL)
_QUESTION_KEY: Final = re.compile(r'"question"\s*:\s*"(.+?)"', re.DOTALL)
_CALL: Final = re.compile(r"pyautogui\.\w+\([^)]*\)")
_POINTED: Final[dict[str, tuple[str, ...]]] = {
    "click": ("x", "y", "clicks", "interval", "button", "duration", "pause"),
    **dict.fromkeys(("rightClick", "middleClick"), ("x", "y", "duration", "tween", "pause")),
    **dict.fromkeys(
        ("doubleClick", "tripleClick"), ("x", "y", "interval", "button", "duration", "pause")
    ),
    "moveTo": ("x", "y", "duration", "tween", "pause"),
    "dragTo": ("x", "y", "duration", "button", "mouseDownUp", "pause"),
}
_ADDRESS: Final = re.compile(" object at 0x[0-9a-fA-F]+")
"""The end of an object's default text in Python."""
_FAILS: Final = (ValueError, TypeError, OverflowError, RecursionError, MemoryError)


def read_kimi(text: str, fed: Screen) -> tuple[Action, ...]:
    """Return the actions of an answer of Kimi's: those of its last block of code, or a question."""
    content = _THOUGHT_MARK.sub("\n", text.lstrip()).lstrip()
    if head := _HEAD.search(content):
        content = content[head.start() :]
    blocks = deque(_BLOCK.finditer(content), maxlen=1)
    if not blocks:
        raise UnreadError("the released parser finds no block of code")
    block = blocks[0][1].strip()
    lower = block.lower()
    if "call_user" in lower:
        question = _QUESTION.search(block) or _QUESTION_KEY.search(block)
        return (Action("ask", text=question[1].strip() if question else None),)
    section, said = _SECTION.search(content), ""
    if section:
        end = _NEXT_SECTION.search(content, section.end())
        said = content[section.end() : end.start() if end else None].strip()
    if "computer.wait" in lower:
        if section is None:
            raise UnreadError("the released parser fails where there is no section Action")
        return (Action("wait"),)
    if "computer.terminate" in lower:
        if "fail" in lower:
            return (Action("done", status="failure"),)
        if "success" in lower:
            return (Action("done", status="success"),)
        raise UnreadError("the released parser finds no status")
    if not block or not said:
        raise UnreadError("the released parser wants a section Action and code")
    if len(block) > LONGEST:
        raise UnreadError(f"longer than {LONGEST} characters")
    try:
        code = _project_code(block, fed) if min(fed) > 0 else block
    except _FAILS as error:
        why = _ADDRESS.sub("", str(error))  # equal answers have equal reasons
        raise UnreadError(f"the released parser fails: {why}") from None
    calls: list[Call] = []
    for one in read_code(code):
        if isinstance(one, Code):
            raise UnreadError(f"{one.raw:.80}: {one.why}")
        calls.append(one)
    width, height = fed if min(fed) > 0 else (1, 1)
    return _some(
        [
            map_places(action, lambda at: Point(at.x / width, at.y / height, "rel"))
            for action in each_action(calls, space="px")
        ]
    )


def _project_code(code: str, screen: Screen) -> str:
    """Return the code with places in pixels, as the released agent rewrites it.

    A place is a share of the screen if no number is above 1, and is rounded otherwise.
    Where one call cannot be parsed, no place is rewritten; of a call that takes a place only by
    name, what is said without a name is lost.
    """
    found = code
    for call in _CALL.findall(code):
        called, _, inside = call.partition("(")
        try:
            tree = parse_python(f"func({inside}").body[0]
        except SyntaxError:
            return code
        assert isinstance(tree, ast.Expr) and isinstance(tree.value, ast.Call)
        parameters = _POINTED.get(called.removeprefix("pyautogui."), ())
        arguments: dict[str | None, object] = {
            parameter: ast.literal_eval(value)
            for parameter, value in zip(parameters, tree.value.args, strict=False)
        }
        named = [keyword.arg for keyword in tree.value.keywords]
        try:
            for keyword in tree.value.keywords:
                arguments[keyword.arg] = ast.literal_eval(keyword.value)
        except _FAILS:
            return code
        if _project(arguments, screen):
            placed = [*takewhile(arguments.__contains__, parameters)]
            written = [_literal(arguments[name]) for name in placed]
            written += [
                f"{name}={_literal(arguments[name])}" for name in named if name not in placed
            ]
            found = found.replace(call, f"{called}({', '.join(written)})")
    return found


def _project(arguments: dict[str | None, object], screen: Screen) -> bool:
    if "x" not in arguments or "y" not in arguments:
        return False
    try:
        x, y = (float(arguments[name]) for name in ("x", "y"))  # type: ignore[arg-type]  # caught
        width, height = screen if x <= 1 and y <= 1 else (1, 1)
        arguments["x"], arguments["y"] = round(x * width), round(y * height)
    except ValueError:
        return False
    return True


def _literal(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)
