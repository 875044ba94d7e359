"""What every dialect promises: what it writes it reads, and any text is read or refused in time."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.actions import (
    Action,
    Button,
    Direction,
    Kind,
    Point,
    Screen,
    Sense,
    Status,
    finger_way,
)
from omnidata.dialects import (
    CannotSayError,
    Dialect,
    Platform,
    Rules,
    UnreadError,
    dialects,
    get_dialect,
)

FED: Screen = (1000, 800)
SCREENS: tuple[Screen, ...] = ((1080, 2400), (1920, 1080), (3840, 2160))
"""Portrait, landscape, 4K."""
MOVES = ("swipe", "scroll", "drag")
KEYS = ("enter", "ctrl", "shift", "a", "f5", "pagedown", "+", "tab")


def points(dialect: Dialect, fed: Screen) -> st.SearchStrategy[Point]:
    """Places of a fed picture, whole or not, in the unit of the dialect."""
    width, height = dialect.frame.extent(fed)
    axes = [
        st.integers(0, int(edge)) | st.floats(0, edge).map(lambda value: round(value, 9))
        for edge in (width, height)
    ]
    return st.builds(Point, *axes, st.just(dialect.frame.space))


@st.composite
def actions(draw: st.DrawFn, dialect: Dialect, platform: Platform, fed: Screen) -> Action:
    """Actions of the kinds that the dialect has on a platform."""
    kind: Kind = draw(st.sampled_from(sorted(dialect.says[platform])))
    place = st.tuples(points(dialect, fed))
    maybe = place | st.just(())
    texts = st.text(max_size=30) | st.sampled_from(AWKWARD)
    if kind == "tap":
        return Action(
            kind, draw(place), count=draw(st.sampled_from((1, 1, 2))), button=draw(_BUTTON)
        )
    if kind in ("long_press", "move", "select"):
        return Action(kind, draw(place))
    if kind in MOVES:
        way = draw(st.sampled_from(get_args(Direction)))
        if kind == "drag" or (kind == "swipe" and draw(st.booleans())):
            return Action(kind, draw(place), draw(place))
        return Action(kind, draw(maybe), direction=way, sense=draw(_SENSE))
    if kind == "type":
        return Action(
            kind, draw(maybe), text=draw(texts), submit=draw(st.sampled_from((None, True)))
        )
    if kind in ("keys", "hotkey"):
        least = 2 if kind == "hotkey" else 1
        keys = draw(st.lists(st.sampled_from(KEYS), min_size=least, max_size=4, unique=True))
        return Action(kind, keys=tuple(keys))
    if kind in ("hold", "release"):
        return Action(kind, keys=(draw(st.sampled_from(KEYS)),))
    if kind in ("open_app", "open_url"):
        name = draw(texts)
        return Action(kind, app=name) if kind == "open_app" else Action(kind, url=name)
    if kind == "wait":
        return Action(kind, seconds=draw(st.none() | st.integers(1, 60)))
    if kind == "done":
        return Action(kind, status=draw(_STATUS), text=draw(st.none() | texts))
    return Action(kind)


_BUTTON: st.SearchStrategy[Button] = st.sampled_from(("left", "left", "right"))
_SENSE: st.SearchStrategy[Sense | None] = st.sampled_from((None, "finger", "wheel", "content"))
_STATUS: st.SearchStrategy[Status | None] = st.sampled_from((None, "success", "failure"))
AWKWARD = (
    *("it's", 'say "hi"', "a\nb", "tab\there", "C:\\new\\", "\\", "'", "f('a')", "')", "', x='1'"),
    *("]", "}]", "[1, 2]", "{'a': 1}", "Action: click(start_box='(1,2)')", "a)\n\nb", "\\n", "\n"),
    *("<point>1 2</point>", "</function>", "</think>", "</answer>", "汉字", "no input text", "%"),
    "",
    *("ends in two\n\n", " blanks ", "</parameter>", "<answer>", "', 'action': 'wait'"),
)


def same(said: Action, read: Action, *, silent: tuple[str, ...] = ()) -> bool:
    """Whether what was read is what was said.

    Of moves, it is the way that a finger would go, and the places that both name.

    Args:
        said, read: the two.
        silent: what the dialect leaves out.
    """
    if said.kind in MOVES:
        ends = all(getattr(said, name) in ((), getattr(read, name)) for name in ("start", "end"))
        if said.direction is None:
            return read.kind in MOVES and ends
        return read.kind in MOVES and ends and finger_way(said) == finger_way(read)
    blank: dict[str, Any] = dict.fromkeys(silent)
    return replace(said, **blank) == replace(read, **blank)


NEVER_READ: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("ui-tars-1.0", "ui-tars-1.5", "ui-tars-doubao"), ("status", "seconds")),
    **dict.fromkeys(("gui-r1", "ui-r1", "agentcpm-gui"), ("seconds",)),
    "ui-tars-2": ("status",),
}
"""Fields that some dialects leave out."""


def said(draw: st.DrawFn, dialect: Dialect, platform: Platform, fed: Screen) -> list[Action]:
    """One to three actions that the dialect can say in one answer."""
    found = []
    for action in draw(st.lists(actions(dialect, platform, fed), min_size=1, max_size=3)):
        with suppress(CannotSayError):
            dialect.write((action,), fed, platform)
            found.append(action)
    if dialect.name == "agentcpm-gui":
        return found[:1]
    if dialect.name == "ui-tars-2" and len(found) > 1:
        return [one for one in found if one.kind != "done"]
    return found


@pytest.mark.parametrize("name", NEVER_READ)
@given(data=st.data())
def test_what_is_written_is_read(name: str, data: st.DataObject) -> None:
    dialect = get_dialect(name)
    platform: Platform = data.draw(st.sampled_from(sorted(dialect.says)))
    fed = dialect.frame.fed_size(data.draw(st.sampled_from(SCREENS)))
    written = said(data.draw, dialect, platform, fed)
    if not written:
        return
    text = dialect.write(written, fed, platform)
    found = dialect.read(text, fed)
    assert (found.rest, len(found.actions)) == ("", len(written)), text
    for one, other in zip(written, found.actions, strict=True):
        silent = NEVER_READ[name]
        if one.kind == "done" and "tars" not in name:
            silent = ("text", "seconds") if name != "agentcpm-gui" else ("text",)
        if name == "ui-tars-2" and (one.kind, one.text) == ("done", ""):
            continue  # an empty answer is none
        assert same(one, other, silent=silent), (text, one, other)


@pytest.mark.parametrize("name", dialects())
def test_every_kind_that_a_dialect_has_can_be_written(name: str) -> None:
    dialect = get_dialect(name)
    at = {"start": (Point(1, 2, dialect.frame.space),)}
    forms: dict[Kind, tuple[dict[str, Any], ...]] = {
        "drag": ({**at, "end": at["start"]},), "scroll": ({"direction": "down"},),
        "swipe": ({"direction": "up"},), "type": ({"text": 'a "b" \\ ]\n'}, {"text": "a"}),
        "keys": ({"keys": ("f5",)},), "hotkey": ({"keys": ("ctrl", "c")},),
        "hold": ({"keys": ("ctrl",)}, at, {}), "release": ({"keys": ("ctrl",)}, at, {}),
        "open_app": ({"app": "Clock"},), "open_url": ({"url": "https://a.b"},),
        "done": ({"status": "success"},), "ask": ({"text": "Which?"}, {}),
        "select": ({**at, "text": "a"}, at), "wait": ({}, {"seconds": 2}),
    }  # fmt: skip

    def is_sayable(action: Action, platform: Platform) -> bool:
        try:
            return bool(dialect.write((action,), FED, platform))
        except CannotSayError:
            return False

    for platform, kinds in dialect.says.items():
        for kind in kinds:
            made = [Action(kind, **form) for form in forms.get(kind, ({}, at))]
            assert any(is_sayable(one, platform) for one in made), (platform, kind)


# Pieces of answers, by the start of the names of the dialects whose reader looks for them.
PIECES: dict[tuple[str, ...], tuple[str, ...]] = {
    ("qwen", "gui-owl"): (
        "{", '{"', "{'a", "{/*", "{a:", "{a:[1,", "<tool_call>", "<tool_call>{", "[{", "{a:{b:1},",
        "</think>", "(1,", "<point>", "x=1,", "box:(", "click(", '{"name": "', "<tool_call>\n",
        "\n", "</tool_call>", '{"name": "mobile_use"', ', "arguments": ', '{"action": "click"',
        '"coordinate": ', "[1, 2", "]", "}", "'", '"', "1e999", "NaN", "\\u12", "\ud800", "//",
        "<think>", "-1", "computer_use", "null", ", ", "[[]]", "key", "keys",
    ),
    ("opencua", "aguvis", "kimi", "os-atlas"): (
        "pyautogui.click(", "x=1, y=2)", "```", "python\n", "actions:\n", "CLICK ", "[[", "1,",
        "]]", "TYPE [", "(", ")", "'", '"', "\\", "\n", "1e999", "mobile.swipe(", "keys=[",
        "## Action:\n", "## Code:\n", "<|box_start|>", "<|box_end|>", ".", "\0", "call_user(",
        "computer.terminate(status='", "0x" + "f" * 9, "\ud800", "-", " ", "pyautogui.write('",
        "pyautogui.write(message='", "pyautogui.press('a')\n", "```\n", " \n", "WAIT\n", "<think>",
        "TYPE [a]\n", "TYPE [\n", "x=1, ", "## Action:\nA\n```", "## Action", "</think>", "1",
        "[1,", "x:", "(1,2)", "<point>", "<points x", "click(", "box:(",
    ),
    ("ui-tars",): (
        "Action: a('", "type(content='", "Action: click(", "'", "\\'", "('", "'))", "<point>",
        "<function=type><parameter=content>", "<think>", "wait()\n", "Action: ", "[", "(", " ",
        "click(start_box=(", "Thought: ", "type(content='a\n", "\n", "</parameter>", "Reflection: ",
        ")", ",", "='(1,2)'", "click(", "scroll(direction='up')",
    ),
    ("gui-r1", "ui-r1"): (
        "{", "[", "[1,2]", "[1,2]}", "{'action': '", "<answer>", "<answer>[{'action':", "'", " ",
        "\n", "{'a':", "{[1,2]", "[1,\n", "'input_text': '", "</answer>", "{'a': [", "'action': ",
        "}", "]", "click", "'point': ", "<answer>{'a'",
    ),
    ("agentcpm",): (
        '{"', "POINT", '":', "[1,2]", "}", ",", '"to"', "STATUS", '"', '{"POINT":', "{", "[",
        '{"TYPE":"', "\\", '{"a":1}',
    ),
    ("claude", "openai", "gemini"): (
        "{", "[", '{"a":', '{"action":"', "+", '"', "{}", '{"type":"click","x":', "9", "]", "}",
        ",", '{"type":"tool_use","name":"computer","input":', '{"function_call":{"name":"',
        '{"type":"computer_call","actions":[', '"keys":[', "null", "\\",
    ),
}  # fmt: skip
LONG = ("9" * 400, "9" * 5000, "[" * 50)
# Values where the tools of providers have their calls.
_WORDS = (
    *("click", "scroll", "key", "left_click", "computer", "tool_use", "down", "computer_call"),
    *("click_at", "type", "drag", 10**400),
)
_KEYS = (
    *("type", "action", "actions", "name", "input", "args", "coordinate", "x", "y", "text", "path"),
    *("keys", "function_call", "content", "key", "scroll_direction", "direction", "button"),
    *("pending_safety_checks", "safety_decision", "duration", "scroll_x", "region", "repeat"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(_WORDS),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(_KEYS), inner | st.text(max_size=5), max_size=6)
    ),
    max_leaves=25,
)


def pieces_of(name: str) -> tuple[str, ...]:
    [pieces] = [pieces for heads, pieces in PIECES.items() if name.startswith(heads)]
    return pieces


@pytest.mark.parametrize("rules", get_args(Rules))
@pytest.mark.parametrize("name", dialects())
@given(data=st.data())
def test_any_text_is_read_or_refused(name: str, rules: Rules, data: st.DataObject) -> None:
    scraps = st.lists(st.sampled_from((*pieces_of(name), *LONG)) | st.text(max_size=5))
    texts = st.text() | scraps.map("".join)
    text = data.draw(texts | JSON.map(json.dumps) if "-computer" in name else texts)
    try:
        assert get_dialect(name).read(text, FED, rules=rules).actions
    except UnreadError as error:
        assert str(error)


# One of each reader.
READERS = (
    *("qwen3", "gui-owl-1.0", "gui-owl-1.5", "opencua", "kimi", "os-atlas-pro", "os-atlas-base"),
    *("ui-tars-1.5", "ui-tars-2", "gui-r1", "agentcpm-gui", "claude-computer-20250124"),
    *("openai-computer", "gemini-computer"),
)
AROUND = {
    "os-atlas-pro": ("actions:\n", ""),
    "ui-tars-1.5": ("Action: ", ""),
    "gui-r1": ("<answer>", "'action': 'click'</answer>"),
}
SIZE = 300_000
WHOLE = (
    "pyautogui.click(" + "(" * SIZE,
    "pyautogui.click(" + "x=1, " * (SIZE // 5) + ")",
    "## Action:\nA\n```" + " \n" * (SIZE // 2),
    "## Action" + " " * SIZE + "x",
    "\n" * SIZE + "actions:" + " " * SIZE + "!",
    "actions:\nCLICK [[" + "1" * SIZE,
    "<|box_start|>" + "1" * SIZE + "<|box_end|>",
    "<|box_start|>" * (SIZE // 13) + "\n<|box_end|>",
    "<think>" * (SIZE // 7) + "</think>",
    json.dumps({"action": "key", "text": "a+" * SIZE, "type": "keypress", "keys": "+" * 9}),
    json.dumps({"name": "key_combination", "args": {"keys": "+" * SIZE}}),
)


@pytest.mark.parametrize("rules", get_args(Rules))
@pytest.mark.parametrize("name", READERS)
def test_reading_takes_linear_time(name: str, rules: Rules) -> None:
    """Quadratic time would be minutes."""
    repeated = [piece * (SIZE // len(piece)) for piece in pieces_of(name)]
    before, after = AROUND.get(name, ("", ""))
    for text in (*repeated, *(before + text + after for text in repeated if before), *WHOLE):
        begin = time.process_time()
        with suppress(UnreadError):
            get_dialect(name).read(text, FED, rules=rules)
        assert time.process_time() - begin < 3, text[:60]
