"""Tool calls of Qwen's models and of GUI-Owl."""

import json
from pathlib import Path

import pytest

from omnidata.actions import Action, Box, Point, centre
from omnidata.dialects import (
    Past,
    Platform,
    Question,
    Rules,
    UnreadError,
    get_dialect,
)
from omnidata.types import MediaRef, Part

VERSIONS = ("qwen2", "qwen2.5", "qwen3", "gui-owl-1.0", "gui-owl-1.5")


def call(tool: str, **arguments: object) -> str:
    body = json.dumps({"name": tool, "arguments": arguments})
    return f"<tool_call>\n{body}\n</tool_call>\n"


def read(name: str, text: str, rules: Rules = "lenient") -> tuple[Action, ...] | None:
    """The actions, or None for what is unread."""
    try:
        return get_dialect(name).read(text, (1000, 1000), rules=rules).actions
    except UnreadError:
        return None


TAP = (Action("tap", (Point(447, 81, "norm999"),)),)


@pytest.mark.parametrize(
    "text",
    [
        'Thought: so.\nAction: "tap"\n' + call("mobile_use", action="click", coordinate=[447, 81]),
        '{"name": "mobile_use", "arguments": {"action": "click", "coordinate": [447, 81]}}',
        "{'action': 'click', 'coordinate': (447, 81),}",
        '{"action": "click", // here\n "coordinate": [447, 81]}',
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


@pytest.mark.parametrize("name", ["qwen3", "gui-owl-1.5"])
def test_an_answer_and_a_text_with_tags_come_back(name: str) -> None:
    for action in (Action("done", text="42"), Action("type", text="</tool_call>")):
        text = get_dialect(name).write([action], (1000, 1000), "mobile")
        assert read(name, text) == (action,)


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
