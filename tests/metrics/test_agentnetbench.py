"""AgentNetBench's rule, worked out by hand at every boundary, as released and as mended."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.actions import Action, Box, Button, Direction, Point, Status
from omnidata.dialects import UnreadError
from omnidata.tasks import get_task
from omnidata.tasks.agentnet.rules import REACH, judge
from omnidata.types import Step
from tests.loaders.desk import bench, bench_step, gold
from tests.trees import codes

TASK: Any = get_task("agentnet")
Version = Literal["released", "fixed"]
BOTH: tuple[Version, ...] = ("released", "fixed")
PROFILES = {"released": "agentnetbench", "fixed": "agentnetbench-fixed"}
STEP = Step("s", "e", 0, 1, "", (1000, 1000), {}, (), (), None, {}, {})
CLICKS: Mapping[str, tuple[Button, int]] = {
    "click": ("left", 1), "doubleClick": ("left", 2), "tripleClick": ("left", 3),
    "rightClick": ("right", 1), "middleClick": ("middle", 1),
}  # fmt: skip
TYPES = (
    *CLICKS, "moveTo", "dragTo", "scroll", "hscroll", "write", "press", "hotkey", "wait",
    "terminate",
)  # fmt: skip
WAYS: Mapping[str, tuple[Direction, Direction]] = {
    "scroll": ("up", "down"),
    "hscroll": ("right", "left"),
}
both = pytest.mark.parametrize("rule", BOTH)


def at(x: float, y: float = 0.5, kind: str = "click", *boxes: Box) -> Action:
    place = Point(x, y, "rel")
    if kind in CLICKS:
        button, count = CLICKS[kind]
        return Action("tap", (place, *boxes), button=button, count=count)
    if kind == "dragTo":
        return Action("drag", end=(place, *boxes))
    return Action("move" if kind == "moveTo" else "none", (place, *boxes))


def write(text: str) -> Action:
    return Action("type", text=text)


def press(*keys: str) -> Action:
    return Action("keys", keys=keys)


def hotkey(*keys: str) -> Action:
    return Action("hotkey", keys=keys)


def scroll(amount: float, kind: str = "scroll") -> Action:
    way = WAYS[kind][amount < 0] if amount else None
    return Action("scroll", direction=way, amount=abs(amount), words=kind)


def ended(status: str) -> Action:
    known: Status | None = status if status in ("success", "failure") else None  # type: ignore[assignment]
    return Action("done", status=known, words=status)


def of_type(
    kind: str,
    place: tuple[float, float],
    text: str,
    keys: tuple[str, ...],
    amount: int,
    status: str,
) -> Action:
    """The action of a type, of what is given that which the type has."""
    if kind in TYPES[:7]:
        return at(*place, kind)
    if kind in ("scroll", "hscroll"):
        return scroll(amount, kind)
    others = {"write": write(text), "press": press(*keys), "hotkey": hotkey(*keys)}
    return {**others, "wait": Action("wait"), "terminate": ended(status)}[kind]


def scores(truth: list[Action], said: list[Action]) -> tuple[float, float]:
    return judge([truth], said, "released"), judge([truth], said, "fixed")


@both
@pytest.mark.parametrize("digits", [3, 200, 400])
def test_a_place_beyond_any_float_scores_nothing(rule: Version, digits: int) -> None:
    said = [at(float("9" * digits))]
    assert judge([[at(0.5)]], said, rule) == 0


@both
@pytest.mark.parametrize(
    ("distance", "score"),
    [
        (0.0, 1.0),
        (REACH * 0.999, 1.0),
        (0.02, math.exp(-120 * (0.02 - 0.01 * math.sqrt(2)))),
        (0.02, 0.4951),
        (0.05, 0.0135),
    ],
)
def test_a_click_beside_the_place_scores_the_less_the_farther(
    rule: Version, distance: float, score: float
) -> None:
    truth = [at(0.0)]
    assert judge([truth], [at(distance)], rule) == pytest.approx(score, abs=5e-5)


@both
def test_at_the_reach_itself_a_click_is_right_and_beyond_it_is_not(rule: Version) -> None:
    truth = [at(0.0, 0.0)]
    assert judge([truth], [at(REACH, 0.0)], rule) == 1.0
    beyond = math.nextafter(REACH, 1)
    assert judge([truth], [at(beyond + 1e-9, 0.0)], rule) < 1.0


@both
@pytest.mark.parametrize("kind", ["click", "doubleClick", "rightClick", "tripleClick", "moveTo"])
def test_anywhere_in_a_box_is_right_edges_included(rule: Version, kind: Any) -> None:
    truth = [at(0.5, 0.5, kind, Box(0.25, 0.25, 0.75, 0.375, "rel"))]
    for x, y in ((0.25, 0.25), (0.75, 0.375), (0.5, 0.3)):
        assert judge([truth], [at(x, y, kind)], rule) == 1.0
    assert judge([truth], [at(math.nextafter(0.75, 1), 0.3, kind)], rule) < 1e-6


def test_the_released_rule_takes_any_scroll() -> None:
    assert scores([scroll(-3)], [scroll(-3)]) == (1.0, 1.0)
    assert scores([scroll(-3)], [scroll(3)]) == (1.0, 0.0)
    assert scores([scroll(-6)], [scroll(-3)]) == (1.0, 0.5)
    assert scores([scroll(-3)], [scroll(-6)]) == (1.0, 0.5)
    down = Action("scroll", direction="down", words="scroll")
    assert scores([down], [scroll(-6)]) == (1.0, 1.0)
    assert scores([down], [scroll(6)]) == (1.0, 0.0)
    assert scores([Action("scroll", words="scroll")], [scroll(6)]) == (1.0, 1.0)
    assert scores([scroll(0)], [scroll(0)]) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("text", "said", "released", "fixed"),
    [
        ("abcd", "abcd", 1, 1),
        ("abcd", "ABCD ", 1, 1),
        ("abcd", "abce", 0.75 / 0.8, 0.75 / 0.8),
        ("abcde", "abcdf", 1, 1),  # 0.8 is enough
        ("abcdefghi", "abcdefg", 7 / 9 / 0.8, 7 / 9 / 0.8),
        ("", "", 1, 1),
        ("", "a", 0, 0),
        ("abcd", "", 0, 0),
        ("abcde\n", "abcdf", 1, 0.8 * 0.9 / 0.8),
        ("abcde\n", "abcde", 1, 1),  # 0.9 is more than 0.8
        ("abcde\n", "abcdf\n", 1, 1),
    ],
)
def test_texts_are_compared_by_their_likeness(
    text: str, said: str, released: float, fixed: float
) -> None:
    found = scores([write(text)], [write(said)])
    assert list(found) == pytest.approx([released, fixed])


def test_a_write_and_its_enter_are_one() -> None:
    truth = [write("abcd"), press("Enter")]
    assert scores(truth, [write("abcd"), press("return")]) == (1.0, 1.0)
    assert scores(truth, [write("abcd\n")]) == (1.0, 1.0)
    hot = hotkey("enter")
    assert scores([write("abcd"), hot], [write("abcd\n")]) == (1.0, 1.0)
    # Of what is predicted, the released rule merges a press alone: a hotkey is left over.
    assert scores(truth, [write("abcd"), hot]) == (1.0, 1.0)
    assert scores([write("abcd"), press("tab")], [write("abcd"), press("tab")]) == (1.0, 1.0)
    assert scores([write("abcd"), press("enter"), press("enter")], [write("abcd")]) == (0.5, 0.5)


def test_keys_are_sets_in_the_release_and_in_order_when_mended() -> None:
    assert scores([press("Down", "down")], [press("DOWN")]) == (1.0, 0.0)
    copy = [hotkey("ctrl", "c")]
    assert scores(copy, [hotkey("C", "CTRL")]) == (1.0, 0.0)
    assert scores(copy, [hotkey("Ctrl", "C")]) == (1.0, 1.0)
    assert scores(copy, [hotkey("ctrl", "v")]) == (0.0, 0.0)
    assert scores(copy, [press("ctrl", "c")]) == (0.0, 0.0)


def test_the_first_action_must_be_of_one_of_the_types_and_the_rest_go_by_position() -> None:
    truth = [at(0.1, 0.1, "moveTo"), at(0.9, 0.9, "dragTo")]
    right = [at(0.1, 0.1, "moveTo"), at(0.9, 0.9, "dragTo")]
    assert scores(truth, right) == (1.0, 1.0)
    assert scores(truth, right[:1]) == (0.5, 0.5)
    assert scores(truth, right[1:]) == (0.0, 0.0)
    assert scores(truth, [at(0.1, 0.1)]) == (0.0, 0.0)
    assert scores(truth, [right[0], at(0.9, 0.9)]) == (0.5, 0.5)


def test_the_score_is_the_mean_over_types_not_over_actions() -> None:
    truth = [at(0.1), at(0.9), scroll(-1)]
    assert scores(truth, [at(0.1), at(0.1), scroll(-1)])[0] == pytest.approx((0.5 + 1) / 2)


def test_what_is_predicted_too_much_costs_only_when_mended() -> None:
    assert scores([at(0.5)], [at(0.5), write("unasked")]) == (1.0, 0.5)
    end = [ended("success")]
    assert scores(end, [*end, at(0.5)]) == (1.0, 0.5)


def test_an_end_has_its_status() -> None:
    done, failed = ended("success"), ended("failure")
    assert scores([done], [done]) == (1.0, 1.0)
    assert scores([done], [failed]) == (0.0, 0.0)
    assert scores([done], [at(0.5)]) == (0.0, 0.0)
    assert scores([at(0.5)], [done]) == (0.0, 0.0)


def test_what_no_released_rule_judges_is_judged_when_mended() -> None:
    for one in (at(0.5, 0.5, "middleClick"), Action("wait"), scroll(2, "hscroll")):
        assert scores([one], [one]) == (0.0, 1.0)
        assert scores([at(0.5), one], [at(0.5), one]) == (1.0, 1.0)
        assert scores([at(0.5), one], [at(0.5)]) == (0.5, 0.5)


def test_the_best_alternative_counts() -> None:
    truths = [[at(0.5)], [hotkey("ctrl", "s")]]
    for rule in BOTH:
        assert judge(truths, [hotkey("ctrl", "s")], rule) == 1.0
        assert judge(truths, [], rule) == 0.0


@pytest.mark.parametrize(
    ("text", "released", "fixed"),
    [
        ("Action:\npyautogui.click(x=0.5, y=0.25)", [at(0.5, 0.25)], [at(0.5, 0.25)]),
        ("so pyautogui.rightClick(x=.5, y=1) it is", [at(0.5, 1, "rightClick")], None),
        ("pyautogui.click(0.5, 0.25)", None, [at(0.5, 0.25)]),
        ("pyautogui.click((0.5, 0.25))", None, [at(0.5, 0.25)]),
        ("pyautogui.write(message='it is')", [write("it is")], [write("it is")]),
        ('pyautogui.write(message="it\'s")', [write("it")], [write("it's")]),
        ("pyautogui.write('a')", [write("a")], [write("a")]),
        ("pyautogui.write('it\\'s')", [write("it\\'s")], [write("it's")]),
        ("pyautogui.write('')", [write("")], [write("")]),
        ("pyautogui.write('a', interval=0.1)", None, [write("a")]),
        ("pyautogui.write(\"a') b\"); f('c')", [write("a') b")], None),
        ("pyautogui.press('enter')", [press("enter")], [press("enter")]),
        ("pyautogui.press('a', 'b')", [press("a")], None),
        ("pyautogui.press(['command'])", [press("ctrl")], [press("command")]),
        ("pyautogui.press(['ctrl', 'v'])", [hotkey("ctrl", "v")], [press("ctrl", "v")]),
        ("pyautogui.press(keys = ['a', 'b'])", [press("a")], [press("a", "b")]),
        ("pyautogui.hotkey(keys = ['ctrl', 'c'])", [hotkey("ctrl", "c")], [hotkey("ctrl", "c")]),
        ("pyautogui.press(keys=['cmd', 'Tab'])", [press("ctrl", "Tab")], [press("cmd", "Tab")]),
        ("pyautogui.hotkey(keys=['ctrl', 'c'])", [hotkey("ctrl", "c")], [hotkey("ctrl", "c")]),
        ("pyautogui.hotkey('Cmd', 'c')", [hotkey("ctrl", "c")], [hotkey("Cmd", "c")]),
        ("pyautogui.scroll(-3)", [scroll(-3)], [scroll(-3)]),
        ("pyautogui.scroll(clicks=-3)", None, [scroll(-3)]),
        (
            "computer.triple_click(x=0.5, y=0.25)",
            [at(0.5, 0.25, "other")],
            [at(0.5, 0.25, "tripleClick")],
        ),
        ("pyautogui.click(x=0.5, y=0.2.5)", None, None),
        ("pyautogui.click(x=-0.5, y=0.25)", None, [at(-0.5, 0.25)]),
        (
            "pyautogui.moveTo(x=0.5, y=0.25)\npyautogui.click()",
            [at(0.5, 0.25, "moveTo")],
            [at(0.5, 0.25, "moveTo"), at(0.5, 0.25)],
        ),
        (
            "```python\nimport time\npyautogui.press('a'); time.sleep(1)\n```",
            [press("a")],
            [press("a")],
        ),
        ("for i in range(3): pyautogui.press('a')", [press("a")], None),
        ("I would click on Save.", None, None),
        ("# pyautogui.click(x=1, y=1)", [at(1, 1)], None),
        ("", None, None),
    ],
)
def test_answers_are_read_as_the_release_does_and_as_they_are_meant(
    text: str, released: list[Action] | None, fixed: list[Action] | None
) -> None:
    wanted = {"released": released, "fixed": fixed}
    for rule, profile in PROFILES.items():
        try:
            found = list(TASK.parse(text, STEP, profile=profile).value.actions)
        except UnreadError:
            found = None
        assert found == wanted[rule], rule


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"type": "fly"},
        {"type": 4},
        {"type": "click", "params": {}},
        {"type": "click", "params": {"position": {"x": "a", "y": 0}}},
        {"type": "click", "params": {"position": {"x": True, "y": 0}}},
        {"type": "press", "params": {"keys": [1]}},
        {"type": "write", "params": {"text": 5}},
        {"type": "terminate", "params": {}},
        {"type": "terminate", "params": 5},
    ],
)
def test_a_ground_truth_that_cannot_be_used_is_refused(tmp_path: Path, value: Any) -> None:
    source = get_task("agentnet").load(bench(tmp_path, bench_step(0, value)))
    assert source.steps[0].action is None
    assert codes(source) == {"action-unusable": 1}


@pytest.mark.parametrize("kind", ["scroll", "hscroll"])
@pytest.mark.parametrize("params", [{}, {"amount": 0}, {"direction": "down"}])
def test_a_wheel_is_of_its_type_whichever_way_it_turns(
    tmp_path: Path, kind: str, params: dict[str, Any]
) -> None:
    (step,) = get_task("agentnet").load(bench(tmp_path, bench_step(0, gold(kind, **params)))).steps
    judged = get_task("agentnet").profiles["agentnetbench-fixed"].judge
    for name in ("scroll", "hscroll"):
        clicks = params.get("amount", -3)
        assert judged(step, f"pyautogui.{name}({clicks})").values[0] == (name == kind)


kinds = st.sampled_from(TYPES)
share = st.floats(0, 1)
done = st.builds(
    of_type,
    kinds,
    st.tuples(share, share),
    text=st.text(max_size=8),
    keys=st.lists(st.sampled_from(["a", "ctrl", "enter"]), max_size=3).map(tuple),
    amount=st.integers(-9, 9),
    status=st.sampled_from(["success", "failure"]),
)


@given(st.lists(done, min_size=1, max_size=4), st.lists(done, max_size=4))
def test_a_score_is_between_0_and_1_and_the_truth_itself_is_right(
    truth: list[Action], said: list[Action]
) -> None:
    for score in scores(truth, said):
        assert 0 <= score <= 1
    assert judge([truth], truth, "fixed") == 1.0


@given(kinds, share, share)
def test_what_is_spelled_out_is_read_back(kind: str, x: float, y: float) -> None:
    action = of_type(kind, (round(x, 4), round(y, 4)), "it's\n", ("ctrl", "c"), -3, "failure")
    adopted = TASK.benchmark.speech.adopt([action], STEP, None)
    read = TASK.parse(f"```python\n{adopted.record['code']}\n```", STEP)
    assert list(adopted.value.actions) == list(read.value.actions) == [action]
