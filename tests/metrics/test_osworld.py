"""OSWorld's rates, its published tables, and the rules of `osworld-step`, worked out by hand."""

from __future__ import annotations

import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.actions import Action, Point
from omnidata.dialects import UnreadError
from omnidata.dialects.pyautogui import read_turn
from omnidata.metrics.rollouts import Example, total
from omnidata.tasks.osworld.actions import actions_of, parse
from omnidata.tasks.osworld.rules import judge
from omnidata.tasks.osworld.tree import read_score
from omnidata.tasks.published import read_published
from tests.loaders.osworld import SIZES

GROUPS = {
    "OS": ("os",),
    "Office": ("libreoffice_calc", "libreoffice_impress", "libreoffice_writer"),
    "Daily": ("vlc", "thunderbird", "chrome"),
    "Professional": ("vs_code", "gimp"),
    "Workflow": ("multi_apps",),
}
SCREEN = (1000, 1000)

DIFFERENT = {
    ("Llama-3-70B (a11y_tree)", "Workflow"),
    ("GPT-4V (screenshot)", "Daily"),
    ("CogAgent (screenshot_a11y_tree)", "Office"),
    ("CogAgent (screenshot_a11y_tree)", "Professional"),
    ("CogAgent (som)", "Office"),
    ("CogAgent (som)", "Workflow"),
    ("CogAgent (som)", ""),
}
"""Cells of Table 5 that the paper's own Table 13 contradicts, by more than rounding can."""


def printed(table: str, source: str) -> dict[str, dict[str, float]]:
    """By row the success rates that a table of the paper prints, in percent."""
    return {
        row.model: {group: 100 * value for (group, _), value in row.values.items()}
        for row in read_published("omnidata.tasks.osworld", "osworld").of(table)
        if row.source == source
    }


TABLE_5, TABLE_13 = printed("main", "OSWorld, Table 5"), printed("domain", "OSWorld, Table 13")
TABLE_12 = printed("main", "OSWorld, Table 12")


@pytest.mark.parametrize("row", TABLE_13)
def test_table_5_follows_from_the_domains_of_table_13(row: str) -> None:
    """Each of its cells is the mean over the examples of all its domains."""
    rates = TABLE_13[row]
    for name, value in TABLE_5[row].items():
        domains = GROUPS[name] if name else rates
        found = sum(rates[one] * SIZES[one] for one in domains if one in rates)
        found /= sum(SIZES[one] for one in domains if one in rates)
        assert (round(abs(found - value), 6) > 0.1) == ((row, name) in DIFFERENT)


def test_the_published_tables_have_every_row() -> None:
    assert len(TABLE_5) == 27
    assert TABLE_5.keys() == TABLE_13.keys()
    assert len(TABLE_12) == 4
    assert sum(SIZES.values()) == 369
    assert {name: sum(SIZES.get(one, 0) for one in found) for name, found in GROUPS.items()} == {
        "OS": 24, "Office": 117, "Daily": 78, "Professional": 49, "Workflow": 101,
    }  # fmt: skip


def test_rates_are_micro_averages_of_what_finished_and_of_all() -> None:
    """In OS 1, 0 and one unfinished of 24; in VLC 0.5 of 17; nothing else of 369."""
    tried = [
        Example("os", 1.0), Example("os", 0.0), Example("os", None), Example("vlc", 0.5),
    ]  # fmt: skip
    table = total(tried, sizes=SIZES, groups=GROUPS)
    assert table["overall"]["SR_finished"] == 0.5
    assert table["overall"]["SR_all"] == pytest.approx(1.5 / 369, abs=1e-15)
    assert table["by"]["group"]["OS"]["SR_finished"] == 0.5
    assert table["by"]["group"]["OS"]["SR_all"] == pytest.approx(1 / 24)
    assert table["by"]["domain"]["vlc"]["SR_all"] == pytest.approx(0.5 / 17)
    assert table["by"]["domain"]["chrome"]["SR_finished"] is None
    assert table["by"]["domain"]["chrome"]["SR_all"] == 0
    assert (table["overall"]["tasks"], table["overall"]["finished"]) == (369, 3)


def test_more_examples_than_the_set_has_all_count() -> None:
    table = total([Example("x", 1.0)] * 3, sizes={"x": 2}, groups={})
    assert (table["overall"]["SR_all"], table["overall"]["tasks"]) == (1.0, 3)


def test_an_unknown_domain_is_no_example() -> None:
    with pytest.raises(ValueError, match="no domain 'y'"):
        total([Example("y", 1.0)], sizes={"x": 2}, groups={})


@pytest.mark.parametrize(
    ("text", "score"),
    [("1.0", 1), ("0", 0), ("0.35", 0.35), ("True", 1), ("False", 0), ("1e-1", 0.1), ("-0.0", 0)],
)
def test_a_score_is_a_number_or_a_word(text: str, score: float) -> None:
    assert read_score(text) == score


@pytest.mark.parametrize(
    "text",
    ["", "true", "FALSE", "None", "nan", "inf", "-inf", "1.01", "-0.1", "1,0", "(1.0,)", "0.0\n1.0",
     "1.0 # ok", "10", "__import__('os')", "0_1", "\uff11", "1_0e-1", "0x1", "1 0"],
)  # fmt: skip
def test_what_is_no_score_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="score"):
        read_score(text)


@given(st.text(max_size=12))
def test_any_text_is_a_score_or_refused(text: str) -> None:
    with suppress(ValueError):
        assert 0 <= read_score(text) <= 1


RIGHT, KIND, WRONG, UNJUDGED = (True, True), (True, False), (False, False), (None, None)


@pytest.mark.parametrize(
    ("reference", "answer", "expected"),
    [
        # A point may lie 0.01 x sqrt 2 away: 14.14 pixels of a screen of 1000 x 1000.
        ("pyautogui.click(500, 500)", "pyautogui.click(510, 510)", RIGHT),
        ("pyautogui.click(500, 500)", "pyautogui.click(490, 490)", RIGHT),
        ("pyautogui.click(500, 500)", "pyautogui.click(511, 510)", KIND),
        ("pyautogui.click(500, 500)", "pyautogui.click(514.1, 500)", RIGHT),
        ("pyautogui.click(500, 500)", "pyautogui.click(514.2, 500)", KIND),
        ("pyautogui.click(500, 500)", "pyautogui.click()", KIND),
        ("pyautogui.click(500, 500)", "pyautogui.click(500, 500, button='right')", KIND),
        ("pyautogui.click(500, 500)", "pyautogui.doubleClick(500, 500)", KIND),
        ("pyautogui.click(500, 500)", "pyautogui.click(500, 500, button='')", KIND),
        ("pyautogui.click(5, 5)", "pyautogui.moveTo(5, 5); pyautogui.click()", RIGHT),
        ("pyautogui.click(5, 5)", "time.sleep(1); pyautogui.click(5, 5)", RIGHT),
        ("pyautogui.click(5, 5, clicks=2)", "pyautogui.doubleClick(5, 5)", RIGHT),
        ("pyautogui.click(5, 5)", "pyautogui.press('enter')", WRONG),
        ("pyautogui.click(5, 5)", "pyautogui.click(5, 5); pyautogui.click(5, 5)", WRONG),
        ("pyautogui.click()", "pyautogui.click()", UNJUDGED),
        ("pyautogui.click(tag_1)", "pyautogui.click(1, 1)", UNJUDGED),
        ("pyautogui.moveTo(5, 5)", "pyautogui.moveTo(15, 15)", RIGHT),
        ("pyautogui.moveTo(5, 5)", "pyautogui.click(5, 5)", WRONG),
        ("pyautogui.moveTo(5, 5); pyautogui.dragTo(90, 5)",
         "pyautogui.moveTo(6, 6); pyautogui.dragTo(91, 6)", RIGHT),
        ("pyautogui.moveTo(5, 5); pyautogui.dragTo(90, 5)",
         "pyautogui.moveTo(5, 5); pyautogui.drag(85, 0)", RIGHT),
        ("pyautogui.moveTo(5, 5); pyautogui.dragTo(90, 5)",
         "pyautogui.moveTo(90, 5); pyautogui.dragTo(5, 5)", KIND),
        ("pyautogui.moveTo(5, 5); pyautogui.dragTo(90, 5)",
         "pyautogui.moveTo(5, 5); pyautogui.dragTo(90, 5, button='right')", KIND),
        ("pyautogui.dragTo(90, 5)", "pyautogui.dragTo(90, 5)", UNJUDGED),
        ("pyautogui.scroll(-3)", "pyautogui.scroll(-500, 9, 9)", RIGHT),
        ("pyautogui.scroll(-3)", "pyautogui.scroll(3)", KIND),
        ("pyautogui.scroll(-3)", "pyautogui.hscroll(-3)", WRONG),
        ("pyautogui.write('Ab')", "pyautogui.typewrite(['A', 'b'])", RIGHT),
        ("pyautogui.write('a\\n')", "pyautogui.write('a'); pyautogui.press('enter')", RIGHT),
        ("pyautogui.write('a')", "pyautogui.write('A')", KIND),
        ("pyautogui.write('')", "pyautogui.write('')", RIGHT),
        ("pyautogui.write('a')", "pyautogui.write('')", KIND),
        ("pyautogui.press('Enter')", "pyautogui.press('return')", RIGHT),
        ("pyautogui.press('a', presses=2)", "pyautogui.write('aa')", RIGHT),
        ("pyautogui.hotkey('ctrl', 'c')", "pyautogui.hotkey(['C', 'ctrl'])", KIND),
        ("pyautogui.hotkey('ctrl', 'c')", "pyautogui.hotkey('c', 'CTRL')", RIGHT),
        ("pyautogui.hotkey('ctrl', 'c')", "pyautogui.hotkey('ctrl', 'v')", KIND),
        ("pyautogui.keyDown('shift')", "pyautogui.keyDown('shiftleft')", RIGHT),
        ("pyautogui.keyDown('shift')", "pyautogui.keyUp('shift')", WRONG),
        ("WAIT", "time.sleep(3)", RIGHT),
        ("WAIT", "DONE", WRONG),
        ("DONE", "DONE", RIGHT),
        ("DONE", "FAIL", KIND),
        ("DONE", "computer.terminate(status='success')", RIGHT),
        ("for a in b: pass", "pyautogui.click(1, 1)", UNJUDGED),
        ("pyautogui.click(1, 1)", "for a in b: pass", WRONG),
        ("", "pyautogui.click(1, 1)", UNJUDGED),
        ("pyautogui.click(1, 1)", "", WRONG),
    ],
)  # fmt: skip
def test_an_answer_is_held_against_the_recorded_turn(
    reference: str, answer: str, expected: tuple[bool | None, bool | None]
) -> None:
    wanted, said = (actions_of(read_turn(text)) for text in (reference, answer))
    assert judge(wanted, said, SCREEN) == expected


@pytest.mark.parametrize(("beyond", "exact"), [(0.0, True), (1e-6, False)])
def test_the_edge_of_a_point_is_inside(beyond: float, exact: bool) -> None:
    reference = [Action("tap", (Point(0.3 * 1920, 0.7 * 1080, "px"),))]
    answer = [Action("tap", (Point((0.3 + math.sqrt(2) / 100 + beyond) * 1920, 0.7 * 1080, "px"),))]
    assert judge(reference, answer, (1920, 1080)) == (True, exact)


def test_no_answer_is_wrong_and_an_unknown_screen_judges_no_place() -> None:
    click, typed = (
        actions_of(read_turn("pyautogui.click(1, 1)")),
        actions_of(read_turn("pyautogui.write('a')")),
    )
    assert judge(click, None, SCREEN) == WRONG
    assert judge(click, click, (0, 0)) == UNJUDGED
    assert judge(typed, typed, (0, 0)) == RIGHT


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("```python\npyautogui.click(1, 2)\n```", "pyautogui.click(1, 2)"),
        ("I see it.\n```\npyautogui.click(1, 2)\n``` So.", "pyautogui.click(1, 2)"),
        ("```python pyautogui.click(1, 2)```", "pyautogui.click(1, 2)"),
        ("```py\npyautogui.write('a;b')\n```", "pyautogui.write('a;b')"),
        ("```\na()\n```\nthen\n```\nb()\n```", "a()\nb()"),
        ("```DONE```", "DONE"),
        ("```\nFAIL\n```", "FAIL"),
        ("```python\nWAIT\n```", "WAIT"),
        ("  DONE \n", "DONE"),
        ("```\npyautogui.press('a')\nDONE\n```", "pyautogui.press('a')\nDONE"),
    ],
)
def test_the_code_of_an_answer_is_found(text: str, code: str) -> None:
    assert parse(text).code == code


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no block"),
        ("I am DONE", "no block"),
        ("```python\npyautogui.click(1, 2)", "no block"),
        ("``````", "empty"),
        ("```python\n# nothing\n```", "empty"),
    ],
)
def test_an_answer_without_code_says_why(text: str, why: str) -> None:
    with pytest.raises(UnreadError, match=why):
        parse(text)


def test_only_code_that_is_understood_is_as_the_prompt_asks() -> None:
    for text, good in (("```\npyautogui.click(1, 2)\n```", True), ("```\nimport os\n```", False)):
        assert parse(text).as_prompted is good


def test_a_score_of_minus_zero_is_zero() -> None:
    assert math.copysign(1, read_score("-0.0")) == 1
