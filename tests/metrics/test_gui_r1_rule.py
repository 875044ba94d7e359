"""GUI-R1's own rule: what it counts, and over which steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omnidata.tasks import get_task
from tests.cli.running import as_json, here
from tests.loaders.step_rows import answer, graded, lines
from tests.trees import read_lines, write_lines

CLICK = graded("click", place=[36, 80])
TYPE = graded("type", "green tea with milk")


def judged(tmp_path: Path, row: Any, text: str, name: str = "androidcontrol") -> tuple[Any, ...]:
    """Type, place or text, and place."""
    task = get_task(name, {"dialect": "gui-r1"})
    (step,) = task.load(lines(tmp_path / "rows.jsonl", row), check_media=False).steps
    line = {"role": "screenshot", "width": 72, "height": 160}
    return task.profiles["gui-r1"].judge(step, text, {"parts": [line]}).values[:3]


@pytest.mark.parametrize(
    ("row", "text", "found"),
    [
        (CLICK, answer("click", place=[36, 80]), (True, True, True)),
        (CLICK, answer("click", place=[46, 80]), (True, True, True)),  # 0.139 of the width away
        (CLICK, answer("click", place=[47, 80]), (True, False, False)),
        (CLICK, answer("click", place=[43, 100]), (True, False, False)),  # 0.158 of both
        (CLICK, answer("long_press", place=[36, 80]), (False, True, True)),
        (CLICK, answer("type", "tea", place=[36, 80]), (False, True, True)),
        (CLICK, answer("wait"), (False, False, False)),
        (CLICK, "Click it.", (False, False, False)),
        (graded("click", place=[4, 8]), answer("press_back"), (False, True, True)),  # at (0, 0)
        (graded("click", place=[4, 8]), "Click it.", (False, True, True)),
        (graded("long_press", place=[36, 80]), answer("wait"), (False, False, False)),
        (TYPE, answer("type", "Milk with green tea"), (True, True, None)),
        (TYPE, answer("type", "green tea"), (True, True, None)),  # F1 of 2/3
        (TYPE, answer("type", "tea"), (True, False, None)),  # of 0.4
        (TYPE, answer("open_app", "green tea"), (False, True, None)),
        (TYPE, answer("click", place=[36, 80]), (False, False, None)),
        (graded("type", "tea"), answer("type", "teapot"), (True, True, None)),  # single words
        (graded("open_app", "Clock"), answer("open_app", "[clock]"), (True, True, None)),
        (graded("open_app", "Clock"), answer("open_app"), (True, False, None)),
        (graded("scroll", "DOWN"), answer("scroll", "up"), (True, True, None)),  # by their meaning
        (graded("scroll", "DOWN"), answer("scroll", "down"), (True, False, None)),
        (graded("wait"), answer("wait"), (True, None, None)),
        (graded("press_back"), answer("wait"), (False, None, None)),
    ],
)
def test_a_place_or_a_text_counts_whatever_the_type_is(
    row: Any, text: str, found: tuple[Any, ...], tmp_path: Path
) -> None:
    assert judged(tmp_path, row, text) == found


PUBLISHED = [
    # What is right, then the answer: type, place or text, place.
    (graded("click", place=[36, 80]), answer("complete", place=[36, 80]), (0, 1, 1)),
    (graded("click", place=[36, 80]), answer("type", "tea", place=[36, 80]), (0, 1, 1)),
    (graded("click", place=[36, 80]), answer("press_enter", place=[36, 80]), (0, 1, 1)),
    (graded("click", place=[36, 80]), answer("complete", place=[70, 80]), (0, 0, 0)),
    (graded("long_press", place=[36, 80]), answer("press_home", place=[36, 80]), (0, 1, 1)),
    (graded("click", place=[36, 80]), answer("think", place=[36, 80]), (0, 1, 1)),  # no action
    (graded("click", place=[36, 80]), "I click [36, 80].", (0, 0, 0)),
    (graded("type", "tea"), answer("click", "tea", place=[36, 80]), (0, 1, None)),
    (graded("type", "tea"), answer("complete", "milk"), (0, 0, None)),
    (graded("type", ""), answer("complete"), (0, 0, None)),
    (graded("scroll", "UP"), answer("click", "up", place=[36, 80]), (0, 1, None)),
    (graded("complete"), answer("complete", place=[36, 80]), (1, None, None)),
    # A click without a place and a scroll without a way have the right name.
    (graded("click", place=[36, 80]), answer("click"), (1, 0, 0)),
    (graded("long_press", place=[4, 8]), answer("long_press"), (1, 1, 1)),  # at (0, 0)
    (graded("scroll", "UP"), answer("scroll"), (1, 0, None)),
    (graded("scroll", "UP"), answer("click"), (0, 0, None)),
    (graded("click", place=[36, 80]), answer("rightclick"), (0, 0, 0)),
    (graded("click", place=[36, 80]), answer("doubleclick"), (0, 0, 0)),
]


@pytest.mark.parametrize("profile", ["gui-r1", "gui-r1+strict"])
def test_a_place_and_a_text_count_beside_any_action(profile: str, tmp_path: Path) -> None:
    rows = [{**row, "image_size": [72, 160], "pred": text} for row, text, _ in PUBLISHED]
    data, out = write_lines(tmp_path / "odyssey.json", rows), tmp_path / "out"
    command = ("score", "gui-odyssey", data, data, "--from", "gui-r1", "--profile", profile)
    here(*command, "--out", out)
    lines = {line["sample_id"]: line for line in read_lines(out / "scores.jsonl")}
    names = ("type_match", "exact_match", "grounding")
    scores = [lines[f"odyssey/{n}"] for n in range(len(rows))]
    found = [tuple(line[name] for name in names) for line in scores]
    assert found == [wanted for *_, wanted in PUBLISHED]
    assert [n for n, line in enumerate(scores) if line["outcome"] == "unparsed"] == [5, 6]


def test_other_rules_do_not_see_the_place_beside_an_action(tmp_path: Path) -> None:
    rows = [{**row, "image_size": [72, 160], "pred": text} for row, text, _ in PUBLISHED]
    data = write_lines(tmp_path / "odyssey.json", rows)
    command = ("score", "gui-odyssey", data, data, "--from", "gui-r1", "--profile", "odyssey-ams")
    found = as_json(here(*command, "--json"))
    assert found["overall"]["EM"] == pytest.approx(1 / len(rows))


def explained(tmp_path: Path, row: Any, text: str) -> Any:
    task = get_task("gui-odyssey", {"dialect": "gui-r1"})
    (step,) = task.load(lines(tmp_path / "rows.jsonl", row), check_media=False).steps
    verdict = task.profiles["gui-r1"].judge(step, text)
    return task.explanation(step, verdict, text, profile="gui-r1")


@pytest.mark.parametrize(
    ("row", "text", "mark", "sentence"),
    [
        (TYPE, answer("press_enter", "green tea"), "right", "but the profile accepts it"),
        (TYPE, answer("press_enter"), "wrong", "has no words"),
        (graded("scroll", "UP"), answer("scroll"), "near", "has no words"),
        (CLICK, answer("complete", place=[36, 80]), "right", "the place or the text alone"),
    ],
)
def test_the_explanation_agrees_with_the_verdict(
    row: Any, text: str, mark: str, sentence: str, tmp_path: Path
) -> None:
    found = explained(tmp_path, row, text)
    assert found.mark == mark
    assert sentence in found.sentence
    assert (found.diagnosis is None) == (mark == "right")


def test_a_text_counts_where_no_size_of_the_screen_is_known(tmp_path: Path) -> None:
    row = {key: value for key, value in TYPE.items() if not key.startswith("orig_")}
    task = get_task("gui-odyssey", {"dialect": "gui-r1"})
    (step,) = task.load(lines(tmp_path / "rows.jsonl", row), check_media=False).steps
    verdict = task.profiles["gui-r1"].judge(step, answer("complete", "green tea"))
    assert verdict.values[:3] == (False, True, None)


def test_ends_of_odyssey_are_types(tmp_path: Path) -> None:
    row = graded("complete")
    assert judged(tmp_path, row, answer("complete"), "gui-odyssey") == (True, None, None)
    assert judged(tmp_path, row, answer("impossible"), "gui-odyssey") == (False, None, None)


def test_each_figure_is_over_the_steps_that_it_is_about(tmp_path: Path) -> None:
    rows = [CLICK, CLICK, TYPE, graded("wait"), graded("press_back"), graded("press_back")]
    said = [
        answer("click", place=[36, 80]),
        answer("type", "x", place=[1, 159]),
        answer("type", "tea"),
        answer("wait"),
        answer("wait"),
        answer("click", place=[9, 9]),
    ]
    data = lines(tmp_path / "rows.jsonl", *rows)
    answers = write_lines(
        tmp_path / "answers.jsonl",
        [
            {
                "sample_id": f"rows/{number}",
                "output": text,
                "receipt": {"parts": [{"role": "screenshot", "width": 72, "height": 160}]},
            }
            for number, text in enumerate(said)
        ],
    )
    told = ("--dialect", "gui-r1", "--profile", "gui-r1", "--json")
    found = as_json(here("score", "androidcontrol", data, answers, *told))
    assert found["overall"] == {"TM": pytest.approx(3 / 6), "EM": pytest.approx(1 / 3), "GR": 0.5}
    # The script's totals leave out going back, of which no type is right, and texts without a hit.
    assert found["released"] == {"TM": pytest.approx(3 / 4), "EM": 0.5, "GR": 0.5}
    every = ("--dialect", "gui-r1", "--profile", "all")
    assert "GR: grounding" in here("score", "androidcontrol", data, answers, *every).stderr


def test_steps_without_place_or_text_are_judged_by_their_type(tmp_path: Path) -> None:
    data = lines(tmp_path / "rows.jsonl", graded("press_back"), graded("press_back"))
    said = [answer("press_back"), answer("wait")]
    rows = [{"sample_id": f"rows/{n}", "output": text} for n, text in enumerate(said)]
    answers = write_lines(tmp_path / "answers.jsonl", rows)
    told = ("--dialect", "gui-r1", "--profile", "gui-r1")
    found = as_json(here("score", "androidcontrol", data, answers, *told, "--json"))
    assert found["overall"] == {"TM": 0.5, "EM": None, "GR": None}
    assert "headline" not in found
    asked = ("--model", "baseline:majority", "--profile", "gui-r1", "--out", tmp_path / "run")
    here("evaluate", "androidcontrol", data, *asked)
