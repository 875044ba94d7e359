"""Tool calls of Qwen's models and of GUI-Owl."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.actions import Action, Box, Button, Direction, Point, Screen, centre
from omnidata.dialects import (
    CannotSayError,
    Past,
    Platform,
    Question,
    Rules,
    UnreadError,
    get_dialect,
)
from omnidata.types import MediaRef, Part

VERSIONS = ("qwen2", "qwen2.5", "qwen3", "gui-owl-1.0", "gui-owl-1.5")
SCREENS = ((1080, 2400), (1920, 1080), (3840, 2160))
TEXTS = st.text(max_size=30) | st.sampled_from(
    ["</tool_call>", "<tool_call>{}", 'it\'s "so"\n', "a]b)\\", "</think>", "}}\n", "Action: x"]
)
WORDS = TEXTS.filter(bool)


def call(tool: str, **arguments: object) -> str:
    body = json.dumps({"name": tool, "arguments": arguments})
    return f"<tool_call>\n{body}\n</tool_call>\n"


def read(name: str, text: str, rules: Rules = "lenient") -> tuple[Action, ...] | None:
    """The actions, or None for what is unread."""
    try:
        return get_dialect(name).read(text, (1000, 1000), rules=rules).actions
    except UnreadError:
        return None


@st.composite
def spoken(draw: st.DrawFn, name: str) -> tuple[Action, Platform, Screen]:
    """An action that the version expresses so that reading gives it back, and where it is done."""
    dialect = get_dialect(name)
    fed = dialect.frame.fed_size(draw(st.sampled_from(SCREENS)))
    edges = dialect.frame.extent(fed)

    def at() -> tuple[Point, ...]:
        x, y = (draw(st.integers(0, int(edge)) | st.floats(0, edge)) for edge in edges)
        return (Point(x, y, dialect.frame.space),)

    def maybe(strategy: st.SearchStrategy[str]) -> str | None:
        return draw(st.none() | strategy)

    seconds = st.integers(0, 60) | st.floats(0, 60)
    platform: Platform = draw(st.sampled_from(get_args(Platform)))
    both: dict[str, Callable[[], Action]] = {
        "type": lambda: Action("type", text=draw(TEXTS)),
        "wait": lambda: Action("wait", seconds=draw(seconds)),
        "done": lambda: Action("done", status=draw(st.sampled_from(["success", "failure"]))),
    }
    if name in ("qwen3", "gui-owl-1.0", "gui-owl-1.5") and (
        platform == "mobile" or name != "gui-owl-1.0"
    ):
        both["answer"] = lambda: Action("done", text=draw(WORDS))
    if name == "gui-owl-1.5":
        both["ask"] = lambda: Action("ask", text=maybe(WORDS))
    mobile: dict[str, Callable[[], Action]] = {
        "tap": lambda: Action("tap", at()),
        "long_press": lambda: Action("long_press", at(), seconds=draw(seconds)),
        "swipe": lambda: Action("swipe", at(), at()),
        "press": lambda: Action(draw(st.sampled_from(["back", "home", "recent", "enter"]))),
        "keys": lambda: Action("keys", keys=(draw(st.sampled_from(["volume_up", "+"])),)),
        "open": lambda: Action("open_app", app=draw(TEXTS)),
    }
    clicks: list[tuple[Button, int]] = [("left", 1), ("left", 2), ("right", 1), ("middle", 1)]
    ways: list[Direction] = ["up", "down"]
    if name in ("qwen3", "gui-owl-1.5"):
        clicks.append(("left", 3))
        ways = list(get_args(Direction))

    def tap() -> Action:
        button, count = draw(st.sampled_from(clicks))
        somewhere = name == "gui-owl-1.0" or draw(st.booleans())
        return Action("tap", at() if somewhere else (), button=button, count=count)

    desktop: dict[str, Callable[[], Action]] = {
        "tap": tap,
        "move": lambda: Action("move", at()),
        "drag": lambda: Action("drag", at(), at()),
        "scroll": lambda: Action(
            "scroll",
            at() if draw(st.booleans()) else (),
            direction=draw(st.sampled_from(ways)),
            amount=draw(st.integers(1, 50)),
        ),
        "keys": lambda: Action("keys", keys=(draw(st.sampled_from(["enter", "+", "f5"])),)),
        "hotkey": lambda: Action("hotkey", keys=("ctrl", draw(st.sampled_from(["c", "+", "]"])))),
    }
    if name == "gui-owl-1.0":
        flag = st.none() | st.booleans()
        desktop["type"] = lambda: Action(
            "type", text=draw(TEXTS), clear=draw(flag), submit=draw(flag)
        )
    kinds = {**both, **(mobile if platform == "mobile" else desktop)}
    return draw(st.sampled_from(sorted(kinds)).map(lambda kind: kinds[kind]())), platform, fed


@pytest.mark.parametrize("name", VERSIONS)
@given(data=st.data())
def test_what_is_written_is_read_again(name: str, data: st.DataObject) -> None:
    action, platform, fed = data.draw(spoken(name))
    dialect = get_dialect(name)
    answer = dialect.read(dialect.write([action], fed, platform), fed)
    assert (answer.actions, answer.rest) == ((action,), "")
    assert action.kind in dialect.says[platform]


@pytest.mark.parametrize("name", ["qwen2.5", "qwen3"])
@given(data=st.data())
def test_the_released_parser_reads_what_is_written(name: str, data: st.DataObject) -> None:
    action, platform, fed = data.draw(spoken(name))
    text = get_dialect(name).write([action], fed, platform)
    released_has_no_answer = action.kind == "done" and action.text and platform == "mobile"
    assert read(name, text, "strict") == (None if released_has_no_answer else (action,))


TAP = (Action("tap", (Point(447, 81, "norm999"),)),)


@pytest.mark.parametrize(
    "text",
    [
        'Thought: so.\nAction: "tap"\n' + call("mobile_use", action="click", coordinate=[447, 81]),
        '{"name": "mobile_use", "arguments": {"action": "click", "coordinate": [447, 81]}}',
        "{'action': 'click', 'coordinate': (447, 81),}",
        '<tool_call>{"name": "m", "arguments": {"action": "click", "coordinate": [447, 81]}',
        '<tool_call>{"arguments": {"action": "click", "coordinate": "(447, 81)"}</tool_call>',
        '```json\n{"function": {"name": "m", "arguments": "{\\"action\\": \\"tap\\",'
        ' \\"coordinate\\": [[447, 81]]}"}}\n```',
        "<think>then " + call("mobile_use", action="wait", time=9) + "</think>"
        + call("mobile_use", action="click", coordinate=["447", "81"]),
        "<think>" + call("mobile_use", action="click", coordinate={"x": 447, "y": 81}),
        '[{"point_2d": [447, 81], "label": "a"}]',
        "<|box_start|>(447,81)<|box_end|>",
    ],
)  # fmt: skip
def test_what_is_plainly_said_is_read(text: str) -> None:
    assert read("qwen3", text) == TAP


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I would tap (447, 81).",
        "Action: swipe(start_box='(1,2)', end_box='(3,4)')",
        '<tool_call>{"name": "mobile_use", "arguments": {"action": "click", "coordinate": [447, 81',
        '{"name": "mobile_use", "arguments": {"action": "swipe", "coordinate": [1, 2], "coor',
        call("mobile_use", action="click"),
        call("mobile_use", action="shake"),
        call("mobile_use", action="system_button", button="Power"),
        call("mobile_use", action="click", coordinate=[1, 2, 3]),
        call("mobile_use", action="type"),
    ],
)
def test_what_is_not_said_is_not_guessed(text: str) -> None:
    assert read("qwen3", text) is None


def test_parts_of_an_answer() -> None:
    done = call("computer_use", action="left_click")
    answer = get_dialect("gui-owl-1.0").read(
        f"<thinking>\nhm\n</thinking>\n{done}<conclusion>\nI did\n</conclusion>", (0, 0)
    )
    assert (answer.thought, answer.rest) == ("hm", "")
    assert get_dialect("qwen3").read(f"{done} And more.", (0, 0)).rest.endswith("And more.")
    box = Box(1, 2, 30, 40, "norm1000")
    assert read("qwen2", "<|box_start|>(1,2),(30,40)<|box_end|>") == (Action("tap", (box,)),)
    assert read("qwen2", "[-1, -1]") == (Action("none"),)


def test_a_drag_begins_where_the_pointer_was_moved() -> None:
    end = (Point(5, 6, "px"),)
    alone = call("computer_use", action="left_click_drag", coordinate=[5, 6])
    moved = call("computer_use", action="mouse_move", coordinate=[1, 2])
    assert read("qwen2.5", alone) == (Action("drag", (), end),)
    assert read("qwen2.5", moved + alone) == (Action("drag", (Point(1, 2, "px"),), end),)


def test_ways_keep_what_they_are_said_of() -> None:
    turned = call("computer_use", action="scroll", pixels=-5)
    (down,) = read("qwen3", turned) or ()
    assert (down.kind, down.direction, down.sense, down.amount) == ("scroll", "down", None, 5)
    qwen = get_dialect("qwen2")
    (swipe,) = qwen.read(qwen.write([down], (10, 10), "mobile"), (10, 10)).actions
    assert (swipe.kind, centre(swipe.start[0]).y > centre(swipe.end[0]).y) == ("swipe", True)
    finger = Action("swipe", direction="up")
    assert qwen.read(qwen.write([finger], (9, 9), "desktop"), (9, 9)).actions[0].direction == "down"


# What the released parsers make of answers, as they were run on them: (text, lenient, strict).
CLICK = call("computer_use", action="left_click", coordinate=[1, 2])
KNOWN = {
    "qwen2.5": [
        (CLICK, True, True),
        (CLICK.replace('"', "'"), True, True),  # JSON5
        (CLICK.replace("\n</tool_call>", ""), True, True),  # salvaged without its last character
        (CLICK.replace("}}\n</tool_call>\n", "}"), True, False),
        ("<think>" + CLICK, True, False),
        (CLICK.strip("\n").removeprefix("<tool_call>").removesuffix("</tool_call>"), True, False),
        (call("mobile_use", action="long_press", coordinate=[1, 2]), True, False),
        (call("mobile_use", action="wait"), True, False),
        (call("computer_use", action="triple_click", coordinate=[1, 2]), True, False),
        (call("mobile_use", action="terminate", status="done"), True, False),
    ],
    "qwen3": [
        (call("computer_use", action="answer", text="a"), True, True),
        (call("mobile_use", action="answer", text="a"), True, False),
    ],
    "gui-owl-1.0": [
        (CLICK, True, True),
        (call("computer_use", action="middle_click", coordinate=[1, 2]), True, False),
        (call("computer_use", action="left_click"), True, False),
        (call("computer_use", action="left_click_drag", coordinate=[1, 2]), True, False),
        (CLICK.replace('"', "'"), True, False),
        (call("mobile_use", action="key", text="volume_up"), True, False),
        (call("mobile_use", action="system_button", button="Menu"), True, False),
    ],
    "gui-owl-1.5": [
        (CLICK, True, True),
        (CLICK.replace('"', "'"), True, True),  # a literal of Python
        (CLICK.replace("</tool_call>", ""), True, False),
        (call("computer_use", action="left_click_drag", coordinate=[1, 2]), True, False),
        (call("computer_use", action="hscroll", pixels=3), True, False),
        (call("mobile_use", action="click", coordinate=[1, 2]), True, True),
        (call("mobile_use", action="click", coordinate=[1, 2]).replace("\n<", "<"), True, False),
        (call("mobile_use", action="type", text="}}\n").replace("\\n", "\n"), True, False),
        (call("mobile_use", action="key", text="volume_up"), True, False),
    ],
}


@pytest.mark.parametrize(
    ("name", "text", "lenient", "strict"),
    [(name, *case) for name, cases in KNOWN.items() for case in cases],
)
def test_known_breakages_of_released_parsers(
    name: str, text: str, lenient: bool, strict: bool
) -> None:
    found = (read(name, text) is not None, read(name, text, "strict") is not None)
    assert found == (lenient, strict)


@pytest.mark.parametrize("name", VERSIONS)
@pytest.mark.parametrize(
    ("action", "platform"),
    [
        (Action("tap", (Point(1, 2, "px"),), count=2), "mobile"),
        (Action("tap", (Point(1, 2, "px"),), held=("ctrl",)), "desktop"),
        (Action("tap", (Point(1, 2, "px"),), button="x"), "web"),
        (Action("none"), "mobile"),
        (Action("open_url", url="a"), "web"),
        (Action("type", (Point(1, 2, "px"),), text="a"), "web"),
        (Action("hold", keys=("shift",)), "desktop"),
        (Action("keys", keys=("a", "b")), "desktop"),
        (Action("scroll", direction="down", amount=1, amount_unit="page"), "desktop"),
        (Action("swipe"), "mobile"),
        (Action("done", text="a", status="failure"), "mobile"),
    ],
)
def test_what_cannot_be_said(name: str, action: Action, platform: Platform) -> None:
    with pytest.raises(CannotSayError):
        get_dialect(name).write([action], (1000, 1000), platform)


@pytest.mark.parametrize("name", VERSIONS)
@pytest.mark.parametrize("platform", ["mobile", "desktop", "web"])
def test_prompts_declare_what_can_be_said(name: str, platform: Platform) -> None:
    dialect = get_dialect(name)
    text = dialect.vocabulary("action", platform, (1092, 1932))
    tool = json.loads(text.partition("<tools>\n")[2].partition("\n</tools>")[0])["function"]
    size = {"px": "1092x1932", "norm1000": "1000x1000", "norm999": "999x999"}[dialect.frame.space]
    assert tool["name"] == ("mobile_use" if platform == "mobile" else "computer_use")
    assert size in tool["description"]
    assert "terminate" in tool["parameters"]["properties"]["action"]["enum"]
    pointing = dialect.vocabulary("point", platform, (0, 0))
    assert '"enum":["click"]' in pointing or '"enum":["left_click"]' in pointing


@pytest.mark.parametrize(("platform", "turns"), [("mobile", 1), ("desktop", 3), ("web", 3)])
def test_screenshots_of_the_past_are_turns_where_harnesses_have_them(
    platform: Platform, turns: int
) -> None:
    shot = Part("image", media=MediaRef("image", Path(), "1.png"), role="screenshot", size=(9, 9))
    past = Past((Action("tap", (Point(3, 4, "norm1000"),)),), shot, (9, 9))
    question = Question("action", platform, "Go.", (shot,), (past,), fed=(9, 9))
    _system, *conversation = get_dialect("qwen3").conversation(question)
    assert [turn.role for turn in conversation] == ["user", "assistant", "user"][:turns]
