"""What every dialect promises: what it writes it reads, and any text is read or refused."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from functools import cache
from itertools import chain
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from omnidata.actions import Action, Direction, Kind, Point, Screen, Status, centre, finger_way
from omnidata.dialects import CannotSayError, Platform, Rules, UnreadError, dialects, get_dialect
from tests.full import FULL

FED: Screen = (1000, 800)
SCREENS: tuple[Screen, ...] = ((1080, 2400), (1920, 1080), (3840, 2160))
"""Portrait, landscape, 4K."""
KEYS = ("enter", "ctrl", "shift", "a", "f5", "pagedown", "+", "tab", "volume_up", "]")
AWKWARD = (
    *("it's", 'say "hi"', "a\nb", "tab\there", "C:\\new\\", "\\", "'", "f('a')", "')", "', x='1'"),
    *("]", "}]", "[1, 2]", "{'a': 1}", "Action: click(start_box='(1,2)')", "a)\n\nb", "\\n", "\n"),
    *("<point>1 2</point>", "</function>", "</think>", "</answer>", "汉字", "no input text", "%"),
    *("ends in two\n\n", " blanks ", "</parameter>", "<answer>", "', 'action': 'wait'", ""),
    *("</tool_call>", "<tool_call>{}", "a]b)\\", "}}\n", "Action: x", "a)b\n```\nc", "`" * 6),
    *("<|diff_marker|>x", "◁/think▷"),
)
TEXTS = st.text(max_size=30) | st.sampled_from(AWKWARD)
MOVES = ("swipe", "scroll", "drag")


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


@cache  # to make a strategy takes longer than to draw from it
def actions(name: str, platform: Platform, fed: Screen) -> st.SearchStrategy[Action]:
    """Actions of the kinds that a dialect has on a platform; not each of them can be said."""
    dialect = get_dialect(name)
    axes = [
        st.integers(0, int(edge)) | st.floats(0, edge).map(lambda value: round(value, 9))
        for edge in dialect.frame.extent(fed)
    ]
    place = st.tuples(st.builds(Point, *axes, st.just(dialect.frame.space)))
    nowhere, yes = st.just(()), maybe(st.just(True))
    seconds = maybe(st.integers(1, 60) | st.just(2.5))
    button: st.SearchStrategy[Any] = st.sampled_from(("left", "left", "right", "middle"))

    def keys(least: int) -> st.SearchStrategy[Any]:
        chosen = st.lists(st.sampled_from(KEYS), min_size=least, max_size=3, unique=True)
        return chosen.map(tuple)

    way = {
        "start": place | nowhere, "direction": st.sampled_from(get_args(Direction)),
        "sense": st.sampled_from((None, "finger", "wheel", "content")),
        "amount": maybe(st.integers(1, 20)), "amount_unit": st.sampled_from(("notch", "px")),
    }  # fmt: skip
    pressed = ({"keys": keys(1)}, {"start": place, "button": button})
    forms: dict[Kind, tuple[dict[str, Any], ...]] = {
        "tap": ({"start": place | nowhere, "button": button, "count": st.sampled_from((1, 1, 2, 3)),
                 "held": nowhere | keys(1)},),
        "long_press": ({"start": place, "seconds": seconds},), "move": ({"start": place},),
        "select": ({"start": place}, {"start": place, "text": TEXTS}),
        "drag": ({"start": place | nowhere, "end": place, "button": button},),
        "swipe": ({"start": place, "end": place}, way), "scroll": (way,),
        "type": ({"start": place | nowhere, "text": TEXTS, "submit": yes, "clear": yes},),
        "keys": ({"keys": keys(1), "seconds": seconds},), "hotkey": ({"keys": keys(2)},),
        "hold": pressed, "release": pressed, "open_app": ({"app": TEXTS},),
        "open_url": ({"url": TEXTS},), "ask": ({"text": maybe(TEXTS)},),
        "wait": ({"seconds": seconds},),
        "done": ({"status": maybe(st.sampled_from(get_args(Status))), "text": maybe(TEXTS)},),
    }  # fmt: skip

    def of_kind(kind: Kind) -> st.SearchStrategy[Action]:
        return st.one_of(
            [st.builds(Action, st.just(kind), **each) for each in forms.get(kind, ({},))]
        )

    return st.sampled_from(sorted(dialect.says[platform])).flatmap(of_kind)


def meant(action: Action) -> Action:
    """What is the same in any dialect: a wheel and a finger that do alike, a key by its name."""
    names = {"return": "enter"}
    keys = tuple(names.get(key.lower(), key.lower()) for key in action.keys)
    if action.kind == "enter":
        return Action("keys", keys=("enter",))
    if action.kind in MOVES:
        return replace(action, kind="swipe", direction=finger_way(action), sense=None)
    return replace(
        action,
        kind="keys" if action.kind == "hotkey" and len(keys) == 1 else action.kind,
        start=tuple(centre(region) for region in action.start),
        keys=keys,
        submit=action.submit or None,
        clear=action.clear or None,
        text=action.text or None,
    )


SEVERAL = ("ui-tars-1.0", "ui-tars-1.5", "ui-tars-doubao", "ui-tars-2", "gui-r1", "ui-r1")
UNTOLD: dict[str, tuple[str, ...]] = {
    "qwen": ("keys.seconds",), "gui-owl": ("keys.seconds",), "os-atlas": ("seconds",),
    "ui-tars-2": ("seconds", "status", "drag.button"), "r1": ("seconds", "done.text"),
    "ui-tars": ("seconds", "status", "drag.button"), "agentcpm": ("done.text",),
    "claude": ("status", "done.text"), "openai": ("seconds", "status", "done.text"),
    "gemini": ("status", "done.text", "wait.seconds"),
}  # fmt: skip
"""What some dialects leave out, by a part of their name."""


def lost(said: Action, read: Action, name: str) -> list[str]:
    """The fields of an action that did not come back; what it does not say may have a default."""
    untold = {field for part, each in UNTOLD.items() if part in name for field in each}
    one, other = meant(said), meant(read)
    found = []
    for field in Action.__struct_fields__:
        here, there = getattr(one, field), getattr(other, field)
        if one.kind == "swipe":
            if field in ("start", "end") and not (here and there):
                continue  # a direction in place of an end, or an end in place of a direction
            if field == "amount_unit" or (field == "amount" and read.end):
                continue
            if field == "direction" and read.start == read.end:
                continue  # at the edge there is no place to swipe to
        if here is None and field in ("amount", "seconds", "status", "text"):
            continue
        if here != there and not untold & {field, f"{said.kind}.{field}"}:
            found.append(field)
    return found


@pytest.mark.parametrize("name", dialects())
@settings(max_examples=2000 if FULL else 25)
@given(data=st.data())
def test_what_is_written_is_read(name: str, data: st.DataObject) -> None:
    dialect = get_dialect(name)
    platform: Platform = data.draw(st.sampled_from(sorted(dialect.says)))
    fed = dialect.frame.fed_size(data.draw(st.sampled_from(SCREENS)))
    action = data.draw(actions(name, platform, fed))
    try:
        text = dialect.write((action,), fed, platform)
    except CannotSayError:
        return
    found = dialect.read(text, fed)
    assert not found.rest, text
    several = bool(action.held or action.submit or (action.kind == "type" and action.start))
    if several or (action.kind in ("keys", "hold", "release") and len(action.keys) > 1):
        assert found.actions, text
    else:
        assert len(found.actions) == 1, text
    if len(found.actions) == 1:
        assert lost(action, found.actions[0], name) == [], (text, action, found.actions)
    if name in ("qwen2.5", "qwen3"):
        unread = action.kind == "done" and action.text and platform == "mobile"
        with pytest.raises(UnreadError) if unread else nullcontext():
            assert dialect.read(text, fed, rules="strict").actions == found.actions


@pytest.mark.parametrize("name", SEVERAL)
@given(data=st.data())
def test_several_actions_of_one_answer_are_read(name: str, data: st.DataObject) -> None:
    dialect = get_dialect(name)
    platform: Platform = data.draw(st.sampled_from(sorted(dialect.says)))
    fed = dialect.frame.fed_size(data.draw(st.sampled_from(SCREENS)))
    said = []
    for action in data.draw(st.lists(actions(name, platform, fed), min_size=2, max_size=3)):
        with suppress(CannotSayError):
            dialect.write((action,), fed, platform)
            if name != "ui-tars-2" or action.kind != "done":  # whose answer ends it
                said.append(action)
    if said:
        found = dialect.read(dialect.write(said, fed, platform), fed)
        assert (found.rest, len(found.actions)) == ("", len(said))
        for one, other in zip(said, found.actions, strict=True):
            assert lost(one, other, name) == []


WRITTEN = re.compile(
    r"""([A-Za-z_.]+)\(|["']action["']: ?["'](\w+)|^([A-Z_]{4,})|"([A-Z]{4,})":|<function=(\w+)""",
    re.M,
)
"""The name of an action in an answer."""
UNTAUGHT = {
    *("pyautogui.mouseDown", "pyautogui.mouseUp", "pyautogui.keyUp", "hover", "release"),
    *("press_f5", "PRESS_F"),
}
"""Names that prompts leave out."""


@pytest.mark.parametrize("name", dialects())
def test_every_kind_can_be_written_and_the_prompt_names_what_the_platform_has(
    name: str,
) -> None:
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
    taught: dict[Platform, set[str]] = {}
    for platform, kinds in dialect.says.items():
        told = dialect.vocabulary("action", platform, FED)
        assert (str(FED[1]) in told) == (dialect.frame.space == "px")
        pointing = dialect.vocabulary("point", platform, FED)
        assert re.search("click|point|element", pointing, re.I)
        taught[platform] = set()
        for kind in kinds:
            made = []
            for form in forms.get(kind, ({}, at)):
                with suppress(CannotSayError):
                    made.append(dialect.write((Action(kind, **form),), FED, platform))
            assert any(made), (platform, kind)
            named = {*filter(None, chain(*WRITTEN.findall("\n".join(made))))} - UNTAUGHT
            is_declared = hasattr(dialect, "tool")  # beside the prompt, as a tool of an API
            assert is_declared or all(word in told for word in named), (platform, named)
            taught[platform] |= named
    for platform, names in taught.items():
        words = re.findall(r"[\w.]+", dialect.vocabulary("action", platform, FED))
        others = set().union(*taught.values()) - names - {"click", "hotkey"}  # words of sentences
        assert others.isdisjoint(words), (platform, others.intersection(words))


HERE, THERE = (Point(1, 1, "px"),), (Point(3, 4, "px"),)
UNSAID: Sequence[tuple[str | tuple[str, ...], Platform, Sequence[Action]]] = [
    ("agentcpm-gui", "mobile", [
        Action("tap", HERE, count=2), Action("tap"), Action("none"),
        Action("type", text="a", submit=True), Action("open_app", app="Clock"),
        Action("type", HERE, text="a"),
        Action("done", text="42", status="success"), Action("long_press", HERE, seconds=0.1),
    ]),
    ("gui-r1", "web", [
        Action("tap", HERE, count=3), Action("tap"), Action("type", text="a", submit=True),
        Action("done"), Action("type", text="no input text"), Action("keys", keys=("a", "b")),
        Action("swipe", HERE, THERE), Action("scroll", direction="up", amount=3),
        Action("tap", (Point(-100, -100, "px"),)), Action("hotkey", keys=("ctrl", "+")),
    ]),
    ("ui-r1", "mobile", [Action("type", text="a"), Action("scroll", direction="up")]),
    (("qwen", "gui-owl"), "mobile", [
        Action("tap", HERE, count=2), Action("none"), Action("swipe"),
        Action("done", text="a", status="failure"),
    ]),
    (("qwen", "gui-owl"), "desktop", [
        Action("tap", HERE, held=("ctrl",)), Action("hold", keys=("shift",)),
        Action("keys", keys=("a", "b")),
        Action("scroll", direction="down", amount=1, amount_unit="page"),
    ]),
    (("qwen", "gui-owl"), "web", [
        Action("tap", HERE, button="x"), Action("open_url", url="a"),
        Action("type", HERE, text="a"),
    ]),
    ("ui-tars", "web", [
        Action("tap", HERE, held=("ctrl",)), Action("tap", HERE, count=3), Action("tap"),
        Action("tap", HERE, button="middle"), Action("type", text="a\n"), Action("look"),
        Action("scroll", direction="up", amount=5), Action("done", status="failure"),
        Action("hotkey", keys=("ctrl", "a b")), Action("keys", keys=("a", "b")),
        Action("select", HERE, text="an entry"), Action("tap", HERE, then=(Action("wait"),)),
    ]),
    ("ui-tars", "mobile", [Action("recent")]),
    ("opencua", "desktop", [
        Action("long_press", HERE), Action("type", text="a", clear=True),
        Action("scroll", direction="up", amount=3, amount_unit="px"),
    ]),
    ("opencua", "mobile", [Action("back")]),
    ("kimi", "desktop", [Action("done"), Action("drag", (), HERE, path=THERE)]),
    ("aguvis", "mobile", [Action("recent"), Action("tap"), Action("type", HERE, text="a")]),
    ("aguvis", "desktop", [Action("wait"), Action("tap", button="x")]),
    ("os-atlas-pro", "mobile", [
        Action("type", text="a[0]"), Action("swipe"), Action("tap", HERE, count=2),
    ]),
    ("os-atlas-pro", "desktop", [
        Action("scroll", direction="down", amount=5), Action("keys", keys=("home",)),
    ]),
    ("os-atlas-base", "web", [Action("type", text="a")]),
    ("claude-computer-20250124", "mobile", [
        Action("tap", HERE, held=("a b",)), Action("swipe", HERE, THERE, amount=3),
    ]),
    (("claude", "openai", "gemini"), "mobile", [
        Action("ask", text="?"), Action("none"), Action("recent"), Action("select"),
    ]),
]  # fmt: skip
"""Actions that dialects, by the start of their names, have no words for."""


@pytest.mark.parametrize(("heads", "platform", "actions"), UNSAID)
def test_what_has_no_words_is_refused(
    heads: str | tuple[str, ...], platform: Platform, actions: Sequence[Action]
) -> None:
    for dialect in (each for name, each in dialects().items() if name.startswith(heads)):
        for action in actions:
            start, end = (
                tuple(Point(point.x, point.y, dialect.frame.space) for point in map(centre, places))
                for places in (action.start, action.end)
            )
            with pytest.raises(CannotSayError):
                dialect.write([replace(action, start=start, end=end)], FED, platform)


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
        "[1,", "x:", "(1,2)", "<point>", "<points x", "click(", "box:(", "actions:\nCLICK [[1",
        "## Action:\nA\n``` \n", "<|box_start|>1",
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


@cache
def texts_of(name: str) -> st.SearchStrategy[str]:
    scraps = st.lists(st.sampled_from((*pieces_of(name), *LONG)) | st.text(max_size=5))
    texts = st.text() | scraps.map("".join)
    return texts | JSON.map(json.dumps) if "-computer" in name else texts


@pytest.mark.parametrize("rules", get_args(Rules))
@pytest.mark.parametrize("name", dialects())
@given(data=st.data())
def test_any_text_is_read_or_refused(name: str, rules: Rules, data: st.DataObject) -> None:
    text = data.draw(texts_of(name))
    try:
        assert get_dialect(name).read(text, FED, rules=rules).actions
    except UnreadError as error:
        assert str(error)
