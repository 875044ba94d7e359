"""Multimodal-Mind2Web: its Parquet rows, and SeeClick's rules, by cases computed by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.actions import Action, Box
from omnidata.errors import DataError
from omnidata.loaders.load import recognise
from omnidata.tasks import get_task
from omnidata.types import Step
from tests.cli.running import as_json, here
from tests.data.tiny import SIZE
from tests.loaders.neighbours import candidate, mind2web, operation, three_steps, web_row
from tests.tasks.verbs import every_verb
from tests.trees import codes, write_lines

WIDE, HIGH = SIZE


def one(folder: Path, **changes: Any) -> Step:
    return get_task("mind2web").load(mind2web(folder, web_row(**changes))).steps[0]


def typed_step(text: str) -> Step:
    row = web_row(operation=json.loads(operation("TYPE", text)))
    action = Action("type", (Box(8, 9, 24, 18, "px"),), text=text)
    return Step("a", "a", 0, 1, "i", SIZE, {}, (), (), action, {}, {"row": row})


def judged(step: Step, text: str, profile: str = "mind2web", **options: str) -> tuple[Any, ...]:
    """Step success, element accuracy and operation F1 of an answer."""
    return get_task("mind2web", options).profiles[profile].judge(step, text).values


def test_every_verb_takes_the_data(tmp_path: Path) -> None:
    data = mind2web(tmp_path / "data", *three_steps("t1"), *three_steps("t2"), web_row("t3"))
    found = every_verb("mind2web", data, tmp_path, subset="test_task")
    results = found["oracle"]
    assert results["overall"] == {"Step SR": 1.0, "Ele.Acc": 1.0, "Op.F1": 1.0}
    assert found["center"]["overall"]["Ele.Acc"] == 0.0
    assert results["SR"] == 1.0
    assert results["by"].keys() == {"split", "domain", "subdomain", "website"}


def test_rows_become_the_steps_of_tasks(tmp_path: Path) -> None:
    rows = three_steps()
    task = get_task("mind2web")
    source = task.load(mind2web(tmp_path, rows[2], rows[0]))  # of 1 there is no row
    assert recognise(tmp_path) == ["mind2web"]
    assert not source.findings
    first, last = source.steps
    assert (first.sample_id, first.step_index, last.step_index) == ("t1/t1-u0", 0, 2)
    assert (first.screen, first.num_steps, first.episode) == (SIZE, 2, "t1")
    assert first.action
    assert first.action.start == (Box(8, 9, 24, 18, "px"),)
    assert [past and past.label for past in last.history] == ["TAP", "INPUT"]
    assert "Step 1: [textbox]  City -> TYPE: New York" in task.conversation(last)[-1].parts[-1].text
    assert (first.tags["split"], task.benchmark.wordings.application(first)) == (
        "test_task",
        "united",
    )
    assert "raw_html" not in first.source["row"]


def test_a_task_that_several_shards_hold_is_one(tmp_path: Path) -> None:
    rows = three_steps()
    mind2web(tmp_path, rows[0], name="train-00000-of-00002.parquet")
    mind2web(tmp_path, *rows[1:], name="train-00001-of-00002.parquet")
    steps = get_task("mind2web").load(tmp_path).steps
    assert [(step.step_index, step.num_steps) for step in steps] == [(0, 3), (1, 3), (2, 3)]
    assert {step.tags["split"] for step in steps} == {"train"}


def test_elements_that_are_right_are_in_the_order_of_their_use(tmp_path: Path) -> None:
    found = [candidate(1, 1, 9, 9), candidate(0, 0, 0, 9), candidate(2, 2, 3, 3, original=True)]
    step = one(tmp_path, pos_candidates=found)
    assert step.action
    assert step.action.start == (Box(2, 2, 5, 5, "px"), Box(1, 1, 10, 10, "px"))
    beside = json.dumps({"action_type": 4, "click_point": [8 / WIDE, 8 / HIGH]})
    assert judged(step, beside) == (False, False, 1.0)
    assert judged(step, beside, "mind2web-fixed") == (True, True, 1.0)


def test_rows_that_cannot_be_used_are_found(tmp_path: Path) -> None:
    rows = [
        web_row("a", pos_candidates=[]),
        web_row("b", operation="no JSON"),
        web_row("c", operation=operation("DANCE")),
        web_row("d", pos_candidates=[candidate(1, 2, 3)]),
        web_row("e", confirmed_task=" "),
        web_row("f", annotation_id=None),
        web_row("g", pos_candidates=[candidate(60, 9, 30, 9)]),
        web_row("h", pos_candidates=["{", "[]", '{"attributes": "3"}']),
    ]
    source = get_task("mind2web").load(mind2web(tmp_path, *rows))
    assert codes(source) == {
        "target-missing": 3, "operation-unusable": 2, "box-unusable": 4, "instruction-missing": 1,
        "id-missing": 1, "target-outside": 1,
    }  # fmt: skip
    assert (len(source.steps), source.skipped) == (6, 2)
    assert [step.action is not None for step in source.steps] == [False] * 4 + [True, False]
    assert judged(source.steps[0], '{"action_type": 4}') == (None, None, None)


def test_a_broken_file_is_said_to_be_one(tmp_path: Path) -> None:
    path = tmp_path / "train-00000-of-00001.parquet"
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError):
        get_task("mind2web").load(tmp_path)


@pytest.mark.parametrize("code", ["doubleClick(x=19, y=14)", "write(message='a')"])
def test_an_action_that_no_answer_expresses_is_wrong(tmp_path: Path, code: str) -> None:
    profile = get_task("mind2web", {"dialect": "aguvis"}).profiles["mind2web"]
    verdict = profile.judge(one(tmp_path), f"pyautogui.{code}")
    found = dict(zip(profile.values, verdict.values, strict=True))
    assert (found["step"], found["read"], found["expressed"]) == (False, True, False)


def test_one_pixel_outside_is_wrong(tmp_path: Path) -> None:
    step = one(tmp_path)  # the box is 8 to 24 by 9 to 18
    for x, y, right in (
        (8, 9, True), (24, 18, True), (7, 9, False), (25, 18, False), (8, 8, False), (8, 19, False)
    ):  # fmt: skip
        text = json.dumps({"action_type": 4, "click_point": [x, y]})
        assert judged(step, text, "mind2web-fixed", coordinates="px")[1] is right
        if not right:
            assert judged(step, text, "mind2web", coordinates="px")[1] is False


def test_released_edges_are_rounded_to_thousandths(tmp_path: Path) -> None:
    step = one(tmp_path, pos_candidates=[candidate(8.04, 9, 16, 9)])  # 0.11167 of the width
    text = json.dumps({"action_type": 4, "click_point": [0.1118, 0.1]})
    assert (judged(step, text)[1], judged(step, text, "mind2web-fixed")[1]) == (False, True)


IN = (16 / WIDE, 14 / HIGH)


@pytest.mark.parametrize(
    ("op", "value", "text", "released", "fixed"),
    [
        ("CLICK", "", '{{"action_type": 4, "click_point": ({0},{1})}}', (1, 1, 1), (1, 1, 1)),
        ("HOVER", "", '{{"action_type": 4, "click_point": ({0},{1})}}', (1, 1, 1), (1, 1, 1)),
        ("ENTER", "", "{{'action_type': 4, 'click_point': [{0},{1}]}}", (1, 1, 1), (1, 1, 1)),
        ("CLICK", "", 'I do {{"action_type": 4, "click_point": [{0}, {1}]}}', None, (1, 1, 1)),
        ("CLICK", "", '{{"action_type": "4", "click_point": ({0},{1})}}', (1, 1, 1), (0, 1, 0)),
        ("CLICK", "", '{{"action_type": "CLICK", "click_point": [{0},{1}]}}', (0, 1, 0), (1, 1, 1)),
        ("CLICK", "", '{{"action_type": 3, "click_point": ({0},{1}), "value": "a"}}', (0, 1, 0),
         (0, 1, 0)),
        ("CLICK", "", '{{"action_type": 4}}', (0, 0, 0), (0, 0, 1)),
        ("TYPE", "New York", '{{"action_type": 3, "click_point": ({0},{1}), "value": "york new"}}',
         (1, 1, 1), (1, 1, 1)),
        ("TYPE", "New York", '{{"action_type": 3, "click_point": ({0},{1}), "value": "New"}}',
         (0, 1, 0.8), (0, 1, 0.8)),
        ("TYPE", "New York", '{{"action_type": 3, "click_point": ({0},{1})}}', (0, 1, 0),
         (0, 1, 0)),
        ("SELECT", "2", '{{"action_type": 2, "click_point": ({0},{1}), "value": "2"}}', (1, 1, 1),
         (1, 1, 1)),
        ("SELECT", "2", '{{"action_type": 3, "click_point": ({0},{1}), "value": "2"}}',
         (0, 1, 2 / 3), (0, 1, 0.5)),
        ("CLICK", "", "I would click there", None, None),
        ("CLICK", "", "", None, None),
    ],
)  # fmt: skip
def test_answers_are_judged_as_by_hand(
    op: str, value: str, text: str, released: Any, fixed: Any, tmp_path: Path
) -> None:
    step = one(tmp_path, operation=operation(op, value))
    said = text.format(*IN)
    assert judged(step, said) == pytest.approx(released or (0, 0, 0))
    assert judged(step, said, "mind2web-fixed") == pytest.approx(fixed or (0, 0, 0))


def test_a_value_that_the_script_cannot_read_again_is_left_out(tmp_path: Path) -> None:
    step = one(tmp_path, operation=operation("TYPE", 'say "hi"'))
    task = get_task("mind2web")
    target = task.target(step)
    assert target
    assert judged(step, target.text) == (None, None, None)
    assert judged(step, target.text, "mind2web-fixed") == (True, True, 1.0)


def test_the_totals_are_those_of_the_script(tmp_path: Path) -> None:
    rows = [*three_steps("a"), web_row("b")]
    data = mind2web(tmp_path / "data", *rows)
    task = get_task("mind2web")
    right = {step.sample_id: task.target(step) for step in task.load(data).steps}
    lines = [
        {"sample_id": name, "output": target.text if target and name != "a/a-u1" else ""}
        for name, target in right.items()
    ]
    answers = write_lines(tmp_path / "answers.jsonl", lines)
    found = as_json(here("score", "mind2web", data, answers, "--json"))
    assert found["overall"]["Step SR"] == 3 / 4
    assert found["macro"]["Step SR"] == pytest.approx((2 / 3 + 1) / 2)
    assert found["SR"] == 0.5
    assert found["operations"] == {
        "Op.F1": {"CLICK": 1.0, "SELECT": 1.0, "TYPE": 0.0}, "mean": pytest.approx(2 / 3)
    }  # fmt: skip


@given(st.lists(st.sampled_from("abcd")), st.lists(st.sampled_from("abcd")))
def test_f1_is_a_share_and_asks_not_which_is_which(one: list[str], other: list[str]) -> None:
    def f1(wanted: list[str], said: list[str]) -> Any:
        answer = {"action_type": 3, "click_point": [0, 0], "value": " ".join(said)}
        return judged(typed_step(" ".join(wanted)), json.dumps(answer))[2]

    assert 0 <= f1(one, other) <= 1
    assert f1(one, other) == pytest.approx(f1(other, one))
    assert (f1(one, other) == 1) == (set(one) == set(other))


@pytest.mark.parametrize(
    ("code", "right"),
    [
        ("pyautogui.click(x=19, y=14)\npyautogui.write(message='New York')", True),
        (
            "pyautogui.click(x=19, y=14)\npyautogui.hotkey(['ctrl', 'a'])\n"
            "pyautogui.write(message='New York')",
            True,
        ),
        ("pyautogui.write(message='New York')", False),
        ("pyautogui.click(x=19, y=14)\npyautogui.press('enter')", False),
        ("pyautogui.rightClick(x=19, y=14)\npyautogui.write(message='New York')", False),
    ],
)
def test_a_text_typed_where_an_answer_clicked_is_one_operation(
    tmp_path: Path, code: str, right: bool
) -> None:
    task = get_task("mind2web", {"dialect": "opencua"})
    step = task.load(mind2web(tmp_path)).steps[1]
    verdict = task.profiles[task.default_profile].judge(step, f"```python\n{code}\n```")
    assert verdict.values[0] is right
