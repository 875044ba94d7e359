"""GUI-R1 and UI-R1: lists of dictionaries, read as they are meant and as the scripts do."""

from __future__ import annotations

import pytest

from omnidata.actions import Action, Point
from omnidata.dialects import Answer, Past, UnreadError, get_dialect

NAMES = ("gui-r1", "ui-r1")
FED = (1316, 728)


def read(text: str, name: str = "gui-r1", *, strict: bool = False) -> Answer:
    return get_dialect(name).read(text, FED, rules="strict" if strict else "lenient")


def at(x: float, y: float) -> tuple[Point]:
    return (Point(x, y, "px"),)


def one(action: str, point: str = "[1, 2]", text: str = "'no input text'") -> str:
    return f"<answer>[{{'action': '{action}', 'point': {point}, 'input_text': {text}}}]</answer>"


def test_actions_are_written_with_what_stands_for_nothing() -> None:
    gui, ui = map(get_dialect, NAMES)
    tap = Action("tap", at(123, 300))
    assert gui.write((tap,), FED, "mobile") == one("click", "[123, 300]")
    assert ui.write((tap,), FED, "mobile") == (
        "<answer>[{'action': 'click', 'coordinate': [123, 300]}]</answer>"
    )
    assert gui.write((Action("back"),), FED, "mobile") == one("press_back", "[-100, -100]")
    down = Action("scroll", direction="down")
    assert gui.write((down,), FED, "web") == one("scroll", "[-100, -100]", "'up'")


@pytest.mark.parametrize(("text", "action"), [
    (one("click"), Action("tap", at(1, 2))),
    (one("doubleclick"), Action("tap", at(1, 2), count=2)),
    (one("rightclick"), Action("tap", at(1, 2), button="right")),
    (one("moveto"), Action("move", at(1, 2))), (one("long_press"), Action("long_press", at(1, 2))),
    (one("click", "[1, 2, 3, 4]"), Action("tap", at(2, 3))),
    (one("click", "[-100, -100]"), Action("tap")),
    (one("type", "[-100, -100]", "'it's'"), Action("type", text="it's")),
    (one("type", "[-100, -100]", "\"it's\""), Action("type", text="it's")),
    (one("open_app", "[-100, -100]", "'Clock'"), Action("open_app", app="Clock")),
    (one("scroll", "[-100, -100]", "'Up'"), Action("scroll", direction="up", sense="finger")),
    ("[{'action': 'scroll', 'point': [-100, -100], 'direction': 'left'}]",
     Action("scroll", direction="left", sense="finger")),
    (one("select", "[1, 2]", "'Red'"), Action("select", at(1, 2), text="Red")),
    (one("hotkey", "[-100, -100]", "'ctrl+c'"), Action("hotkey", keys=("ctrl", "c"))),
    (one("press_pgdn"), Action("keys", keys=("pgdn",))),
    (one("press_enter"), Action("keys", keys=("enter",))),
    (one("press_back"), Action("back")), (one("press_home"), Action("home")),
    (one("press_recent"), Action("recent")), (one("wait"), Action("wait")),
    (one("complete"), Action("done", status="success")),
    (one("impossible"), Action("done", status="failure")),
])  # fmt: skip
def test_names_of_actions(text: str, action: Action) -> None:
    assert read(f"<think>why</think>{text}") == Answer((action,), "why")


@pytest.mark.parametrize("text", [
    '<answer>[{"action": "click", "coordinate": [1, 2]}]</answer>',
    "<answer>{'action': 'click', 'point': [1,2]}</answer>",
    "[{'action': 'click', 'point': [1, 2]}]", "<answer>[{'action': 'click', 'point': [1, 2]",
    "<answer>```json\n[{'action': 'click', 'point': [1, 2]}]\n```</answer>",
    "<think><answer></think><answer>[{'action': 'click', 'point': [1, 2]}]</answer>",
    "<answer>[{'action': 'click', 'point': '(1, 2)'}]</answer>",
    "so <answer>\n[\n  {'action': 'click',\n 'point': [1, 2]}\n]\n</answer>",
])  # fmt: skip
def test_lists_in_all_their_spellings(text: str) -> None:
    assert read(text).actions == (Action("tap", at(1, 2)),)


def test_several_actions_and_what_is_left_unread() -> None:
    text = "<answer>[{'action': 'click', 'point': [1, 2]}, {'action': 'wait'}]</answer>"
    assert [action.kind for action in read(text).actions] == ["tap", "wait"]
    assert read(text + " and so on").rest == "]</answer> and so on"


@pytest.mark.parametrize("text", [
    "", "<answer></answer>", "<answer>[]</answer>", "<answer>[{'point': [1, 2]}]</answer>",
    one("fly"), one("click", "'the button'"), one("scroll", "[-100, -100]", "'north'"),
    "<answer>[{'action': 'type', 'input_text': 'hel", "<answer>[{'action': 'click', 'point': [1, ",
    one("click", f"[{'9' * 5000}, 1]"),
])  # fmt: skip
def test_what_is_no_answer(text: str) -> None:
    with pytest.raises(UnreadError):
        read(text)


# As released: each of these was held against the functions themselves.


@pytest.mark.parametrize(("text", "released", "meant"), [
    (one("click"), Action("tap", at(1, 2)), Action("tap", at(1, 2))),
    ('<answer>[{"action": "click", "point": [1, 2]}]</answer>', None, Action("tap", at(1, 2))),
    ("[{'action': 'click', 'point': [1, 2]}]", None, Action("tap", at(1, 2))),
    (one("click", "[1.5, 2]"), Action("tap", at(0, 0)), Action("tap", at(1.5, 2))),
    (one("click", "(1, 2)"), Action("tap", at(0, 0)), Action("tap", at(1, 2))),
    (one("click", "[-100, -100]"), Action("tap", at(0, 0)), Action("tap")),
    (one("type", "[-100, -100]", "'it's'"), Action("type", text="it"), Action("type", text="it's")),
    (one("wait", "[1, 2]}, {'action': 'click', 'point': [3, 4]"), Action("wait"), Action("wait")),
    (one("click", "[1, 2], 'then': [3, 4]"), Action("tap", at(3, 4)), Action("tap", at(1, 2))),
])  # fmt: skip
def test_what_the_scripts_read(text: str, released: Action | None, meant: Action) -> None:
    assert read(text).actions[0] == meant
    if released is None:
        with pytest.raises(UnreadError):
            read(text, strict=True)
    else:
        assert read(text, strict=True).actions == (released,)


def test_ui_r1_reads_no_text() -> None:
    text = one("scroll", "[-100, -100]", "'up'")
    assert read(text, "ui-r1", strict=True).actions[0].direction is None
    assert read(text, "ui-r1").actions[0].direction == "up"


def test_histories_tell_which_way_a_swipe_went() -> None:
    past = Past((Action("swipe", at(5, 9), at(5, 2)),))
    assert get_dialect("gui-r1").line(past, "mobile") == one("scroll", "[5, 9]", "'up'")


def test_the_end_of_a_thought_in_a_text_that_is_typed_ends_no_thought() -> None:
    typed = "{'action': 'type', 'point': [-100, -100], 'input_text': '</think>'}"
    then = "{'action': 'press_back', 'point': [-100, -100], 'input_text': 'no input text'}"
    for thought in ("", "<think>I type <answer>.</think>"):
        said = f"{thought}<answer>[{typed}, {then}]</answer>"
        found = get_dialect("gui-r1").read(said, (100, 100))
        assert [action.kind for action in found.actions] == ["type", "back"]
        assert found.actions[0].text == "</think>"
