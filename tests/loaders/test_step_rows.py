"""Rows of single steps on phones: whose they are, which way they scroll, how large a screen is."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.errors import DataError, UsageError
from omnidata.loaders.load import recognise
from omnidata.tasks import get_task
from omnidata.types import LoadedDataset, Step
from tests.cli.running import as_json, here
from tests.data.tiny import SIZE
from tests.loaders import phones
from tests.loaders.published_forms import odyssey
from tests.loaders.step_rows import answer, graded, lines, scrolls, table
from tests.trees import NO_SHARED, SHARED, codes, write_lines

FED = (56, 140)
"""The size of a picture as it was fed: multiples of 28."""
FIELD = SHARED / "cases" / "field"


def load(data: Path, name: str = "androidcontrol", **options: str) -> LoadedDataset:
    return get_task(name, options).load(data)


def labels(source: LoadedDataset) -> list[str]:
    return [step.action.label if step.action else "" for step in source.steps]


# Whose rows they are.


@pytest.mark.parametrize(
    ("rows", "name"),
    [
        ([*scrolls("up"), graded("complete")], "gui-odyssey"),
        ([*scrolls("up"), graded("impossible")], "gui-odyssey"),
        ([*scrolls("up"), graded("press_home")], "gui-odyssey"),
        ([*scrolls("up"), graded("press_recent")], "gui-odyssey"),
        ([*scrolls("up"), graded("wait")], "androidcontrol"),
        ([*scrolls("up"), graded("open_app", "Clock"), graded("press_home")], "androidcontrol"),
        (scrolls("up"), "androidcontrol"),
    ],
)
def test_the_actions_of_rows_say_whose_they_are(rows: list[Any], name: str, tmp_path: Path) -> None:
    data = lines(tmp_path / "test.jsonl", *rows)
    assert recognise(data) == [name]
    assert recognise(table(tmp_path / "table" / "a.parquet", *rows)) == [name]
    way = "SWIPE_UP" if name == "gui-odyssey" else "SWIPE_DOWN"
    assert labels(load(data, name))[0] == way


def test_rows_that_could_be_of_either_are_those_that_their_file_or_the_user_says(
    tmp_path: Path,
) -> None:
    rows = scrolls("up", "left")
    assert recognise(lines(tmp_path / "guiodyssey_test.jsonl", *rows)) == ["gui-odyssey"]
    data = lines(tmp_path / "more" / "rows.jsonl", *rows)
    assert labels(load(data, "gui-odyssey")) == ["SWIPE_UP", "SWIPE_LEFT"]
    assert labels(load(data)) == ["SWIPE_DOWN", "SWIPE_RIGHT"]


def test_an_action_far_down_a_file_says_whose_rows_they_are(tmp_path: Path) -> None:
    taps = [graded("click", place=(9, 9)) for _ in range(30)]
    rows = [*scrolls("up"), *taps, graded("complete")]
    assert recognise(table(tmp_path / "table.parquet", *rows)) == ["gui-odyssey"]
    long = [{**row, "history": "x" * 40_000} for row in rows]
    assert recognise(lines(tmp_path / "long" / "rows.jsonl", *long)) == ["gui-odyssey"]


def test_a_button_alone_does_not_outweigh_the_name_of_a_file(tmp_path: Path) -> None:
    data = lines(tmp_path / "androidcontrol_low_test.json", *scrolls("down"), graded("press_home"))
    assert recognise(data) == ["androidcontrol"]
    assert labels(load(data)) == ["SWIPE_UP", "HOME"]


@pytest.mark.parametrize(
    ("name", "actions", "whose"),
    [
        ("rows.jsonl", ["SCROLL [UP]", "PRESS_HOME", "COMPLETE"], "gui-odyssey"),
        ("rows.jsonl", ["SCROLL [UP]", "PRESS_RECENT"], "gui-odyssey"),
        ("gui_odyssey_test.jsonl", ["SCROLL [UP]", "CLICK [[5, 5]]"], "gui-odyssey"),
        ("rows.jsonl", ["SCROLL [UP]", "OPEN_APP [Clock]"], "androidcontrol"),
        ("rows.jsonl", ["SCROLL [UP]", "CLICK [[5, 5]]"], "androidcontrol"),
    ],
)
def test_actions_in_words_say_whose_rows_they_are(
    name: str, actions: list[str], whose: str, tmp_path: Path
) -> None:
    told = {"image": "0.png", "instruction": "More", "width": 72, "height": 160}
    data = lines(tmp_path / name, *({**told, "action": action} for action in actions))
    assert recognise(data) == [whose]
    way = "SWIPE_UP" if whose == "gui-odyssey" else "SWIPE_DOWN"
    assert labels(load(data, whose))[0] == way
    assert not codes(load(data, whose))["action-unusable"]


def test_a_folder_of_several_preparations_is_read_as_each_of_its_own(tmp_path: Path) -> None:
    lines(tmp_path / "guiodyssey_test.json", *scrolls("up", group="web"), graded("complete"))
    lines(tmp_path / "androidcontrol_high_test.json", *scrolls("down"), graded("wait"))
    web: Any = {"group": "web", "place": (9, 9)}
    lines(tmp_path / "guiact_web_test.json", graded("click", **web), graded("select", "a", **web))
    elements: Any = {"group": "mobile", "ui_type": "icon"}
    lines(tmp_path / "screenspot_test.json", graded("click", place=(1, 2, 30, 40), **elements))
    assert labels(load(tmp_path)) == ["SWIPE_UP", "WAIT"]
    assert labels(load(tmp_path, "gui-odyssey")) == ["SWIPE_UP", "TASK_COMPLETE"]
    assert recognise(tmp_path / "guiact_web_test.json") == []
    assert recognise(tmp_path / "screenspot_test.json") == ["screenspot"]


@pytest.mark.parametrize(
    ("row", "whose", "other"),
    [
        (graded("complete"), "gui-odyssey", "androidcontrol"),
        (graded("wait"), "androidcontrol", "gui-odyssey"),
        (graded("open_app", "Clock"), "androidcontrol", "gui-odyssey"),
    ],
)
def test_rows_of_the_one_are_not_read_as_the_other(
    row: Any, whose: str, other: str, tmp_path: Path
) -> None:
    data = lines(tmp_path / "test.jsonl", *scrolls("up"), row)
    with pytest.raises(DataError, match=f"these are rows of {whose}: name that task"):
        load(data, other)
    source = load(data, whose)
    way = "finger" if whose == "gui-odyssey" else "content"
    assert source.steps[0].source["scroll"] == way
    assert source.steps[0].source["row"]["gt_input_text"] == "UP"
    assert f"1 scroll in words: directions of the {way}" in here("info", data).stdout


def test_what_odyssey_lacks_is_a_finding(tmp_path: Path) -> None:
    rows = graded("complete"), graded("open_app", "Clock"), graded("press_recent")
    source = load(lines(tmp_path / "guiodyssey.jsonl", *rows), "gui-odyssey")
    assert codes(source)["action-unusable"] == 1
    assert labels(source) == ["TASK_COMPLETE", "", "RECENT"]


def test_rows_beside_annotations_are_no_second_copy_of_them(tmp_path: Path) -> None:
    data = odyssey(tmp_path)
    before = get_task("gui-odyssey").benchmark.fingerprint(data)
    lines(tmp_path / "train.jsonl", graded("complete"))
    assert all(step.episode == "E1" for step in load(data, "gui-odyssey").steps)
    assert get_task("gui-odyssey").benchmark.fingerprint(data) == before


def test_the_low_level_of_odyssey_rows_is_their_own_instruction(tmp_path: Path) -> None:
    data = lines(tmp_path / "odyssey.jsonl", graded("complete", step_instruction="Say so"))
    task = get_task("gui-odyssey", {"level": "low"})
    (step,) = task.load(data).steps
    assert "Goal: Say so" in task.conversation(step)[-1].parts[-1].text


# Which way they scroll.


@pytest.mark.parametrize("name", ["androidcontrol", "gui-odyssey"])
def test_the_user_says_what_directions_are_said_of(name: str, tmp_path: Path) -> None:
    data = lines(tmp_path / "rows.jsonl", *scrolls("up", "left"))
    assert labels(load(data, name, scroll="finger")) == ["SWIPE_UP", "SWIPE_LEFT"]
    assert labels(load(data, name, scroll="content")) == ["SWIPE_DOWN", "SWIPE_RIGHT"]


def test_two_places_tell_the_way_whatever_the_user_says(tmp_path: Path) -> None:
    ends = {"action": "swipe", "coordinate": [9, 90], "coordinate2": [9, 9]}
    row = {"instruction": "More", "image": "0.png", "action": ends}
    data = lines(tmp_path / "rows.jsonl", row)
    assert {labels(load(data, scroll=said))[0] for said in ("own", "content", "finger")} == {
        "SWIPE_UP"
    }


def test_the_option_is_in_a_run_only_where_it_is_given(tmp_path: Path) -> None:
    data = lines(tmp_path / "rows.jsonl", *scrolls("up", "left"))
    own, said = get_task("androidcontrol"), get_task("androidcontrol", {"scroll": "finger"})
    assert "scroll" not in own.options and said.options["scroll"] == "finger"
    assert own.prompt_hash == get_task("androidcontrol", {"scroll": "own"}).prompt_hash
    run = tmp_path / "run"
    oracle = ("--model", "baseline:oracle", "-T", "scroll=finger", "--out", run)
    here("evaluate", "androidcontrol", data, *oracle)
    assert '"scroll": "finger"' in (run / "run.json").read_text()
    assert as_json(here("score", "androidcontrol", data, run, "--json"))["overall"]["EM"] == 1


def test_own_records_scroll_the_content(tmp_path: Path) -> None:
    data = phones.records(tmp_path / "android_control", phones.episode(phones.SCROLL)).parent
    assert labels(load(data, scroll="content")) == labels(load(data))
    with pytest.raises(UsageError, match="those of the content"):
        load(data, scroll="finger")


def test_a_repository_keeps_the_sense_in_which_it_was_made(tmp_path: Path) -> None:
    rows = lines(tmp_path / "rows" / "guiodyssey.jsonl", *scrolls("up"), graded("complete"))
    data = tmp_path / "repository"
    here("convert", "gui-odyssey", rows, data)
    assert labels(load(data, "gui-odyssey", scroll="finger")) == ["SWIPE_UP", "TASK_COMPLETE"]
    with pytest.raises(UsageError, match="read as the finger's when the repository was made"):
        load(data, "gui-odyssey", scroll="content")
    run = ("--model", "baseline:oracle", "--out", tmp_path / "run", "--json")
    assert as_json(here("evaluate", "gui-odyssey", data, *run))["overall"]["EM"] == 1


@pytest.mark.parametrize(
    ("name", "word", "said", "sense"),
    [
        ("androidcontrol", "down", "own", None),
        ("androidcontrol", "down", "finger", "finger"),
        ("androidcontrol", "up", "own", "content"),
        ("androidcontrol", "up", "finger", None),
        ("gui-odyssey", "down", "own", "finger"),
        ("gui-odyssey", "down", "content", None),
        ("gui-odyssey", "up", "own", None),
    ],
)
def test_labels_that_mostly_scroll_back_are_warned_of(
    name: str, word: str, said: str, sense: str | None, tmp_path: Path
) -> None:
    rows = scrolls(*[word] * 9, "left", "down" if word == "up" else "up")
    source = load(lines(tmp_path / "rows.jsonl", *rows), name, scroll=said)
    warned = [each for each in source.findings if each.code == "scrolls-inverted"]
    assert bool(warned) is bool(sense)
    for found in warned:
        assert f"directions of the {sense}, 9 of 10 vertical scrolls go back up" in found.what
        assert f"-T scroll={'content' if sense == 'finger' else 'finger'}" in found.remedy


def test_a_few_labels_that_scroll_back_are_no_finding(tmp_path: Path) -> None:
    source = load(lines(tmp_path / "rows.jsonl", *scrolls("up", "up", "up", "up", "down")))
    assert "scrolls-inverted" not in codes(source)


# How large the screen is.


@pytest.mark.parametrize(
    "sizes",
    [
        {"orig_w": 72, "orig_h": 160},
        {"width": 56, "height": 140, "image_size": FED, "orig_w": 72, "orig_h": 160},
        {"image_width": 72, "image_height": 160},
        {"orig_w": 72.0, "orig_h": 160.0},
        {"image_size": FED, "scale": [56 / 72, 140 / 160]},
        {"image_size": FED, "scale": [72 / 56, 160 / 140]},
    ],
)
def test_a_size_that_a_row_states_is_the_screens(sizes: Any, tmp_path: Path) -> None:
    row = graded("click", place=[36, 80], **sizes)
    row = {key: value for key, value in row.items() if "orig" not in key or key in sizes}
    source = load(lines(tmp_path / "rows.json", row))
    assert source.steps[0].screen == SIZE
    assert not codes(source)


def test_the_fed_size_stands_for_a_size_that_nobody_states(tmp_path: Path) -> None:
    row = graded("click", place=[28, 70], orig_w=None, orig_h=None, image_size=FED, scale=[])
    source = load(lines(tmp_path / "rows.jsonl", row, row))
    assert [step.screen for step in source.steps] == [FED, FED]
    (found,) = [each for each in source.findings if each.code == "size-fed"]
    assert found.what.startswith("2 rows with only the size of the picture as fed")
    assert found.sample_ids == ("rows/0", "rows/1")


def right(step: Step, text: str, receipt: Any = None, dialect: str = "gui-r1") -> Any:
    profile = get_task("androidcontrol", {"dialect": dialect}).profiles["os-atlas-ac"]
    return profile.judge(step, text, receipt).values[1]


def test_the_fed_size_of_a_row_is_the_receipt_of_an_answer_without_one(tmp_path: Path) -> None:
    screen: Any = {"orig_w": 1440, "orig_h": 3120}
    row = graded("click", place=[1340, 3000], **screen, image_size=[364, 784])
    plain = graded("click", place=[1340, 3000], **screen)
    fed, unknown = load(lines(tmp_path / "rows.jsonl", row, plain)).steps
    text = answer("click", place=[338, 753])
    assert right(fed, text) is True
    assert right(unknown, text) is False  # the frame's own size is taken for the fed one
    line = {"role": "screenshot", "width": 1428, "height": 3108, "original": [1440, 3120]}
    assert right(fed, text, {"parts": [line]}) is False  # a receipt says it itself
    claude = json.dumps({"action": "left_click", "coordinate": [338, 753]})
    assert right(fed, claude, dialect="claude-computer-20250124") is False  # fed otherwise


# Containers and columns.


def test_a_table_with_its_pictures_is_read_as_its_lines_are(tmp_path: Path) -> None:
    rows = graded("click", place=[36, 80]), graded("scroll", "DOWN")
    source = load(table(tmp_path / "androidcontrol_high_test.parquet", *rows))
    assert not source.findings
    assert labels(source) == ["TAP", "SWIPE_UP"]
    assert [step.screen for step in source.steps] == [SIZE, SIZE]
    assert all(step.media["screenshot"] for step in source.steps)
    assert labels(load(tmp_path)) == ["TAP", "SWIPE_UP"]


def test_lines_are_read_whatever_their_file_is_called(tmp_path: Path) -> None:
    rows = graded("click", place=[36, 80]), graded("press_back")
    data = lines(tmp_path / "rows.json", *rows)
    listed = tmp_path / "list.json"
    listed.write_text(json.dumps(rows), encoding="utf-8")
    assert labels(load(data)) == labels(load(listed)) == ["TAP", "BACK"]


UI_R1 = [
    {"image": "episode_1-screenshot_0.png", "gt": act, "task": "Press the button"}
    for act in (
        {"action_type": "click", "x": 540, "y": 1200},
        {"action_type": "scroll", "direction": "down"},
        {"action_type": "navigate_back"},
    )
]


def test_rows_of_ui_r1_have_their_action_in_gt(tmp_path: Path) -> None:
    path = tmp_path / "ac_test.json"
    path.write_text(json.dumps(UI_R1), encoding="utf-8")
    source = load(path)
    assert labels(source) == ["TAP", "SWIPE_UP", "BACK"]
    assert not codes(source)


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        (
            [{"answer" if key == "gt" else key: row[key] for key in row} for row in UI_R1],
            "no action in any row; keys image, answer, task",
        ),
        (
            [{**row, "note": {"action_type": "click"}, "gt": 7} for row in UI_R1],
            "no action in any row: the action is 7; keys image, gt, task, note",
        ),
    ],
)
def test_rows_without_an_action_are_refused_with_their_keys(
    rows: list[Any], what: str, tmp_path: Path
) -> None:
    data = write_lines(tmp_path / "rows.jsonl", rows)
    run = ("--model", "baseline:majority", "--out", tmp_path / "run")
    assert what in here("evaluate", "androidcontrol", data, *run, code=2).stderr
    assert what in here("info", "androidcontrol", data, code=2).stderr


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
VALUES = (
    SCALARS | st.lists(SCALARS, max_size=3) | st.sampled_from(["up", "scroll", "click", "type"])
)
COLUMNS = (
    *("gt_action", "gt_bbox", "gt_input_text", "action", "gt", "image", "instruction"),
    *("orig_w", "orig_h", "width", "height", "image_size", "scale"),
)


@given(st.lists(st.dictionaries(st.sampled_from(COLUMNS), VALUES), min_size=1, max_size=3))
def test_no_row_is_too_odd(rows: list[Any]) -> None:
    with TemporaryDirectory() as folder:
        data = Path(folder) / "odyssey.jsonl"
        write_lines(data, [graded("complete"), *rows])
        source = load(data, "gui-odyssey")
    assert labels(source)[0] == "TASK_COMPLETE"
    task = get_task("gui-odyssey")
    for step in source.steps:
        truth = task.profiles["gui-r1"].judge(step, "COMPLETE").values[0]
        assert (truth is None) >= (step.action is None)


@pytest.mark.parametrize(
    "row",
    [
        graded("click", place=[10**400, 1]),
        graded("click", place=[10**400, 1, 1, 10**400]),
        {**graded("click", place=[9, 9]), "orig_w": None, "image_size": FED, "scale": [1e-300] * 2},
        {"instruction": "x", "action": {"action": "click", "coordinate": [10**400, 1]}},
        {"instruction": "x", "action": {"action": "click", "coordinate": [9, 9]},
         "candidate_bbox": [[0, 0, 10**400, 9]], "width": 72, "height": 160},
    ],
)  # fmt: skip
def test_no_number_is_too_large(row: Any, tmp_path: Path) -> None:
    data = lines(tmp_path / "rows.jsonl", graded("wait"), {"image": "", **row})
    task = get_task("androidcontrol")
    steps = load(data).steps
    assert len(steps) == 2
    for profile in task.profiles.values():
        profile.judge(steps[1], '{"action_type": "click", "coordinate": [1, 1]}')


# What is kept outside.


@pytest.mark.skipif(not FIELD.is_dir(), reason=NO_SHARED)
@pytest.mark.parametrize(
    ("task", "data", "answers", "dialect", "steps", "exact"),
    [
        ("gui-odyssey", "osatlas_odyssey_scroll/data", "osatlas", "os-atlas-pro", 3, 1.0),
        ("gui-odyssey", "osatlas_odyssey_scroll/data", "guir1", "gui-r1", 3, 1.0),
        ("gui-odyssey", "odyssey_rows_as_androidcontrol/guiodyssey_test.jsonl", "answers",
         "gui-r1", 2, 1.0),
        ("androidcontrol", "guir1_without_pictures/rows.json", "answers", "gui-r1", 2, 0.5),
        ("androidcontrol", "guir1_without_pictures/sized.jsonl", "answers_sized", "gui-r1", 2, 0.5),
    ],
)  # fmt: skip
def test_answers_from_the_field_are_scored_as_they_were_meant(
    task: str, data: str, answers: str, dialect: str, steps: int, exact: float
) -> None:
    folder = FIELD / data.split("/")[0]
    asked = ("score", task, FIELD / data, folder / f"{answers}.jsonl", "--dialect", dialect)
    profile = ("--profile", "os-atlas-ac") if task == "androidcontrol" else ()
    found = as_json(here(*asked, *profile, "--json"))
    assert (found["counts"]["steps"], found["overall"]["EM"]) == (steps, exact)
