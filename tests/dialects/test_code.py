"""Agents that answer in code, and OS-Atlas: what is written is read, and read as it was meant."""

from __future__ import annotations

from typing import get_args

import pytest

from omnidata.actions import Action, Box, Point, Region, Screen
from omnidata.dialects import Answer, CannotSayError, Rules, UnreadError, get_dialect

CODE = ("opencua", "aguvis", "kimi")
OURS = (*CODE, "os-atlas-pro", "os-atlas-base", "os-atlas-base-4b")
FED: Screen = (1932, 1092)


def read(name: str, text: str, *, fed: Screen = FED, rules: Rules = "lenient") -> Answer:
    return get_dialect(name).read(text, fed, rules=rules)


def shown(name: str, text: str, rules: Rules = "lenient") -> str:
    """The labels of what is read, or "unread"."""
    try:
        return " ".join(action.label for action in read(name, text, rules=rules).actions)
    except UnreadError:
        return "unread"


@pytest.mark.parametrize("name", CODE)
def test_keys_that_are_held_and_places_of_texts_are_lines_of_their_own(name: str) -> None:
    dialect = get_dialect(name)
    space = dialect.frame.space
    where = (Point(1, 1, space),)
    code = dialect.write(
        [Action("tap", where, held=("ctrl",)), Action("type", where, text="a", submit=True)],
        FED,
        "desktop",
    )
    labels = [action.label for action in dialect.read(code, FED).actions]
    assert labels == ["HOLD", "TAP", "RELEASE", "TAP", "INPUT", "KEYS"]


# What models write.

HEADS = "# Step 3:\n## Observation:\nA page.\n\n## Thought:\nThe menu.\n\n## Action:\nClick.\n\n"


@pytest.mark.parametrize(
    ("text", "labels", "thought", "rest"),
    [
        (f"{HEADS}## Code:\n```python\npyautogui.click(x=1, y=2)\n```\n", "TAP", "The menu.", ""),
        ("```python\npyautogui.moveTo(1, 2)\n```\n```code\ncomputer.triple_click(3, 4)\n```",
         "MOVE TRIPLE_TAP", "", ""),
        ("pyautogui.moveTo(1, 2)\npyautogui.dragTo(3, 4)", "DRAG", "", ""),
        ("I click: pyautogui.click(3, 4)", "TAP", "I click:", ""),
        ("```python\npyautogui.write(message='it's')\n```", "INPUT", "", ""),
        ("```python\n  pyautogui.press('a')\n    pyautogui.press('b')\n```", "KEYS KEYS", "", ""),
        ("```pyautogui.press('a')```\nDone.", "KEYS", "", "Done."),
        ("```python\npyautogui.click(1, 2)\npyautogui.wri", "TAP", "", "pyautogui.wri"),
        ("pyautogui.click(1, 2); pyautogui.wri(", "TAP", "", "pyautogui.wri("),
        ("pyautogui.click(1, 2)\nThis opens it.", "TAP", "", "This opens it."),
        ("```python\nimport os\npyautogui.click(1, 2)\nfor a in b: pass\n```", "TAP", "",
         "for a in b: pass"),
        ("<think>```pyautogui.click(9, 9)``` no</think>pyautogui.press('a')", "KEYS",
         "```pyautogui.click(9, 9)``` no", ""),
        ("all\nThought: A list.\nAction: Down.\nassistantos\npyautogui.scroll(page=-0.1)"
         "<|diff_marker|>", "SCROLL_DOWN", "A list.", ""),
        ("pyautogui.keyDown('ctrl')\npyautogui.click()\npyautogui.keyUp('ctrl')",
         "HOLD TAP RELEASE", "", ""),
        ("```\npyautogui.click(1, 2)\ntime.sleep(2)\n```", "TAP", "", ""),
        ("```\npyautogui.sleep(2)\n```", "WAIT", "", ""),
    ],
)  # fmt: skip
def test_code_is_found_wherever_it_stands(text: str, labels: str, thought: str, rest: str) -> None:
    found = read("opencua", text)
    assert " ".join(action.label for action in found.actions) == labels
    assert (found.thought, found.rest) == (thought, rest)


def test_plug_ins_and_questions_are_read() -> None:
    swipe = read("aguvis", "mobile.swipe(from_coord=[0.5, 0.8], to_coord=[0.5, 0.2])").actions[0]
    assert (swipe.direction, swipe.start, swipe.end) == (
        None, (Point(0.5, 0.8, "rel"),), (Point(0.5, 0.2, "rel"),)
    )  # fmt: skip
    assert read("aguvis", "mobile.wait(seconds=3)").actions == (Action("wait", seconds=3),)
    assert read("aguvis", "mobile.open_app(app_name='A')").actions == (Action("open_app", app="A"),)
    picked = read("aguvis", "browser.select_option(x=0, y=1, value='b')").actions[0]
    assert (picked.kind, picked.text) == ("select", "b")
    page = read("aguvis", "pyautogui.hscroll(page=0.5)").actions[0]
    assert (page.direction, page.amount, page.amount_unit) == ("right", 0.5, "page")
    assert read("kimi", "```call_user(question='Which?')```").actions == (
        Action("ask", text="Which?"),
    )
    answer = read("opencua", "computer.terminate(status='success', answer='42')").actions[0]
    assert (answer.status, answer.text) == ("success", "42")


@pytest.mark.parametrize("call", ["pyautogui.click(x, 0.5)", "pyautogui.click(0.5, [y])"])
def test_why_kimis_answer_is_unread_is_the_same_in_every_process(call: str) -> None:
    text = f"## Action:\nTap.\n## Code:\n```python\n{call}\n```"
    with pytest.raises(UnreadError, match="the released parser fails") as found:
        read("kimi", text, rules="strict")
    assert "0x" not in str(found.value)


def test_the_last_block_of_kimis_counts() -> None:
    text = "```python\npyautogui.press('a')\n```\nor\n```python\npyautogui.click(0.1, 0.2)\n```"
    assert shown("kimi", text) == "TAP"
    assert shown("opencua", text) == "KEYS TAP"


def test_kimis_thought_is_between_its_own_marks() -> None:
    found = read("kimi", "◁think▷The menu.◁/think▷\npyautogui.click(x=0.2, y=0.1)")
    assert (found.thought, found.rest) == ("The menu.", "")


@pytest.mark.parametrize(
    ("text", "labels", "thought"),
    [
        ("thoughts:\nTo the shop.\nactions:\nCLICK <point>[[101, 872]]</point>", "TAP",
         "To the shop."),
        ("Thoughts: My actions: none yet.\nActions:\nSCROLL [UP]<|im_end|>", "SCROLL_UP",
         "My actions: none yet."),
        ("actions: OPEN_APP [Zoho Meet]\nWAIT", "OPEN_APP WAIT", ""),
        ("PRESS_RECENT", "RECENT", ""),
        ("actions:\nTYPE [two\nlines]\nENTER", "INPUT ENTER", ""),
        ("actions:\nTYPE [actions:\nWAIT]", "INPUT", ""),
        ("actions:\nDOUBLECLICK [[1,2]]\nRIGHTCLICK (3, 4)\nMOVETO <point>5 6</point>",
         "DOUBLE_TAP RIGHT_CLICK MOVE", ""),
        ("actions:\nHOTKEY [CTRL_A]\nPRESS_PGDN", "HOTKEY KEYS", ""),
        ("actions:\nIMPOSSIBLE", "TASK_IMPOSSIBLE", ""),
        ("actions:\nclick: <point>[[1, 2]]", "TAP", ""),
    ],
)  # fmt: skip
def test_words_are_read(text: str, labels: str, thought: str) -> None:
    found = read("os-atlas-pro", text)
    assert " ".join(action.label for action in found.actions) == labels
    assert (found.thought, found.rest) == (thought, "")


def test_places_keep_their_numbers_and_boxes_their_corners() -> None:
    base: list[tuple[str, Region]] = [
        ("<|object_ref_start|>a (b)<|object_ref_end|><|box_start|>(576,12),(592,42)<|box_end|>",
         Box(576, 12, 592, 42, "norm1000")),
        ("[[3, 4.5]]", Point(3, 4.5, "norm1000")),
        ("<point>300 80</point>", Point(300, 80, "norm1000")),
        ("It is at 3, 4", Point(3, 4, "norm1000")),
        ('{"point_2d": [3, 4], "label": "5"}', Point(3, 4, "norm1000")),
        ("Not (1, 2) but (3, 4).", Point(3, 4, "norm1000")),
    ]  # fmt: skip
    for text, region in base:
        assert read("os-atlas-base", text).actions == (Action("tap", (region,)),)
    assert read("opencua", "pyautogui.click(x=0, y=2.50)").actions[0].start == (
        Point(0, 2.5, "px"),
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("opencua", ""),
        ("opencua", "I am done."),
        ("opencua", "```python\nfor i in range(3): pyautogui.press('a')\n```"),
        ("opencua", "```python\nos.system('ls')\n```"),
        ("opencua", "pyautogui.click(tag_1)"),
        ("opencua", "pyautogui.click(x=5)"),
        ("opencua", "pyautogui.dance()"),
        ("os-atlas-base", "<|box_start|>(1,2),(1e400,4)<|box_end|>"),
        ("kimi", "◁think▷ pyautogui.click(x=0.1, y=0.2)"),
        ("os-atlas-pro", "actions:\nJUMP [UP]"),
        ("os-atlas-pro", "actions:\nSCROLL [FORTH]"),
        ("os-atlas-pro", "actions:\nTYPE [cut off"),
        ("os-atlas-pro", "actions:\nCLICK the button"),
        ("os-atlas-base", "It is not there."),
    ],
)
def test_what_is_no_known_action_is_unread(name: str, text: str) -> None:
    with pytest.raises(UnreadError, match=r"\w"):
        read(name, text)


# What the released parsers make of it.


@pytest.mark.parametrize(
    ("name", "text", "released", "plainly"),
    [
        ("opencua", "pyautogui.click(3, 4)", "unread", "TAP"),
        ("opencua", "pyautogui.tripleClick(x=3, y=4)", "unread", "TRIPLE_TAP"),
        ("opencua", "pyautogui.hscroll(3)", "unread", "SCROLL_RIGHT"),
        ("opencua", "pyautogui.scroll(--3)", "unread", "SCROLL_UP"),
        ("opencua", "x = 1\npyautogui.press(keys=['a', 'b'])", "KEYS", "KEYS"),
        ("opencua", "pyautogui.press(['a', 'b'])", "HOTKEY", "KEYS"),
        ("opencua", "for a in b:\n  pyautogui.press('x')", "KEYS", "KEYS"),
        ("aguvis", "pyautogui.rightClick(x=0.1, y=0.2)", "unread", "RIGHT_CLICK"),
        ("aguvis", "pyautogui.click(x=0.1, y=0.2)\npyautogui.press(keys=['a'])", "TAP",
         "TAP KEYS"),
        ("aguvis", "pyautogui.hscroll(page=0.5)", "MOVE SCROLL_UP", "SCROLL_RIGHT"),
        ("aguvis", "mobile.swipe(from_coord=[0, 0], to_coord=[1, 1])", "unread", "SWIPE"),
        ("aguvis", "mobile.long_press(x=0.1, y=0.2)", "LONG_PRESS", "LONG_PRESS"),
        ("aguvis", "computer.terminate(status='success')", "TASK_COMPLETE", "TASK_COMPLETE"),
        ("aguvis", "pyautogui.write(message='a')", "INPUT", "INPUT"),
        ("kimi", "```python\npyautogui.press('a')\n```", "unread", "KEYS"),
        ("kimi", "## Action:\nStop.\n```computer.terminate(status='success', answer='failed')```",
         "TASK_IMPOSSIBLE", "TASK_COMPLETE"),
        ("kimi", "## Action:\nGo.\n```\npyautogui.scroll(-3, x=0.5, y=0.5)\n```", "unread",
         "SCROLL_DOWN"),
        ("os-atlas-pro", "Actions:\nWAIT", "unread", "WAIT"),
        ("os-atlas-pro", "actions:\nWAIT\n<|im_end|>", "unread", "WAIT"),
        ("os-atlas-pro", "actions:\nCLICK the button", "TAP", "unread"),
        ("os-atlas-pro", "actions:\nTYPE [a]\nWAIT", "INPUT", "INPUT WAIT"),
        ("os-atlas-base", "<|box_start|>(0,12),(592,42)<|box_end|>", "unread", "TAP"),
        ("os-atlas-base", "[[3, 4]]", "unread", "TAP"),
        ("os-atlas-base-4b", "[[3, 4]]", "unread", "TAP"),
    ],
)  # fmt: skip
def test_released_parsers_lose_what_is_plainly_said(
    name: str, text: str, released: str, plainly: str
) -> None:
    assert (shown(name, text, "strict"), shown(name, text)) == (released, plainly)


def test_opencua_takes_fractions_for_shares_and_writes_none() -> None:
    """As its released reader does; the pixel in the corner stays a pixel."""
    for rules in get_args(Rules):
        found = read("opencua", "pyautogui.click(x=0.25, y=0.5)", rules=rules).actions[0]
        assert found.start == (Point(FED[0] / 4, FED[1] / 2, "px"),)
    assert read("opencua", "pyautogui.click(x=1, y=0)").actions[0].start == (Point(1, 0, "px"),)
    with pytest.raises(CannotSayError, match="first pixel"):
        get_dialect("opencua").write([Action("tap", (Point(0.5, 1, "px"),))], FED, "desktop")


def test_released_parsers_move_places() -> None:
    row = read("opencua", "pyautogui.click(x=300, y=1)", rules="strict").actions[0]
    assert row.start == (Point(300 * FED[0], 1 * FED[1], "px"),)
    triple = read("opencua", "computer.triple_click(x=30, y=40)", rules="strict").actions[0]
    assert triple.start == (Point(30 * FED[0], 40 * FED[1], "px"),)
    typed = read("opencua", "pyautogui.write(message='it\\'s')", rules="strict").actions[0]
    assert typed.text == "it\\"
    smiley = "pyautogui.click(x=0.5, y=0.5); pyautogui.write(':)')"
    pixels = read(
        "kimi", f"## Action:\nGo.\n```\n{smiley}\n```", fed=(100, 100), rules="strict"
    ).actions[0]
    assert pixels.start == (Point(0.005, 0.005, "rel"),)
    eaten = read("os-atlas-pro", "actions:\nTYPE find me", rules="strict").actions[0]
    assert eaten.text == "find"
    nowhere = read("os-atlas-pro", "actions:\nCLICK it", rules="strict").actions[0]
    assert nowhere.start == (Point(-100, -100, "norm1000"),)


# How it is asked.
