"""`omnidata score` of answers that somebody else's program wrote: forms, faults, sizes, choices."""

from __future__ import annotations

import codecs
import json
import random
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnidata.tasks import get_task
from tests.cli.running import as_json, omnidata
from tests.trees import read_lines, write_lines

Line = dict[str, Any]
BACK = '{"action_type": "navigate_back"}'


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two episodes of AndroidControl, six ways back."""
    rows = [
        {"image_path": "a.png", "goal": "Go back", "episode_id": n // 3, "step_id": n % 3,
         "width": 1080, "height": 2400, "action": {"action_type": "navigate_back"}}
        for n in range(6)
    ]  # fmt: skip
    return write_lines(tmp_path_factory.mktemp("control") / "rows.jsonl", rows)


@pytest.fixture
def answers(data: Path) -> list[Line]:
    steps = get_task("androidcontrol").load(data, check_media=False).steps
    return [{"sample_id": step.sample_id, "output": BACK} for step in steps]


def lines_of(answers: Sequence[Line], end: str = "\n") -> str:
    return "".join(json.dumps(line) + end for line in answers)


FORMS: dict[str, Callable[[Path, Sequence[Line]], object]] = {
    "utf-8": lambda path, found: path.write_text(lines_of(found), "utf-8"),
    "utf-8 with a mark": lambda path, found: path.write_text(lines_of(found), "utf-8-sig"),
    "utf-16": lambda path, found: path.write_text(lines_of(found), "utf-16"),
    "utf-16-be": lambda path, found: path.write_bytes(
        codecs.BOM_UTF16_BE + lines_of(found).encode("utf-16-be")
    ),
    "utf-16-le without a mark": lambda path, found: path.write_text(lines_of(found), "utf-16-le"),
    "utf-32": lambda path, found: path.write_text(lines_of(found), "utf-32"),
    "windows": lambda path, found: path.write_bytes(lines_of(found, "\r\n").encode()),
    "blank lines": lambda path, found: path.write_text(lines_of(found, "\n\n \n"), "utf-8"),
    "no last end": lambda path, found: path.write_text(lines_of(found).rstrip(), "utf-8"),
    "list": lambda path, found: path.write_text(json.dumps(list(found)), "utf-8"),
    "indented list": lambda path, found: path.write_text(
        json.dumps(list(found), indent=2), "utf-8"
    ),
    "parquet": lambda path, found: pq.write_table(pa.Table.from_pylist(list(found)), path),
}


@pytest.mark.parametrize("form", FORMS)
def test_predictions_are_read_in_any_container_and_encoding(
    data: Path, answers: list[Line], tmp_path: Path, form: str
) -> None:
    ending = {"parquet": ".parquet", "list": ".json", "indented list": ".json"}.get(form, ".jsonl")
    path = tmp_path / f"answers{ending}"
    FORMS[form](path, answers)
    found = as_json(omnidata("score", "androidcontrol", data, path, "--json"))
    assert found["outcomes"] == {"ok": 6}
    assert found["overall"]["EM"] == 1


@pytest.mark.parametrize("profile", [(), ("--profile", "all")])
@pytest.mark.parametrize("content", ["", "\n\n", "[]"])
def test_a_file_without_answers_has_no_score(
    data: Path, tmp_path: Path, content: str, profile: tuple[str, ...]
) -> None:
    path, out = tmp_path / "answers.json", tmp_path / "scored"
    path.write_text(content)
    done = omnidata("score", "androidcontrol", data, path, *profile, "--out", out, code=1)
    assert "none of 6 steps was answered" in done.stderr
    assert done.stdout == ""
    assert not [*out.rglob("results.json")]


def test_failures_or_nulls_alone_have_no_score(
    data: Path, answers: list[Line], tmp_path: Path
) -> None:
    failed = [{**line, "delivery": "api_error", "error": "503"} for line in answers]
    nulls = [{**line, "output": None} for line in answers]
    path = tmp_path / "answers.jsonl"
    for lines, said in (
        (failed, "none of 6 steps was answered: 6 requests failed"),
        (nulls, "no step was answered: 6 outputs are null"),
    ):
        write_lines(path, lines)
        assert said in omnidata("score", "androidcontrol", data, path, code=1).stderr
    write_lines(path, [answers[0], *nulls[1:]])
    found = as_json(omnidata("score", "androidcontrol", data, path, "--json"))
    assert found["outcomes"] == {"ok": 1, "unparsed": 5}


def test_missing_steps_stand_in_the_headline_and_end_with_1(
    data: Path, answers: list[Line], tmp_path: Path
) -> None:
    path = write_lines(tmp_path / "answers.jsonl", answers[:2])
    command = ("score", "androidcontrol", data, path)
    head = "4 of 6 steps have no full answer (4 missing) and count as wrong"
    for more in ((), ("--profile", "all")):
        assert head in " ".join(omnidata(*command, *more, code=1).stdout.split())
    assert head in omnidata(*command, "--json", code=1).stderr
    failed = {**answers[2], "delivery": "api_error"}
    write_lines(path, [*answers[:2], failed])
    told = " ".join(omnidata(*command, code=1).stdout.split())
    assert "4 of 6 steps have no full answer (1 api_error, 3 missing)" in told


def test_a_run_of_some_steps_does_not_lack_the_others(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    model = ("--model", "baseline:majority", "--out", run, "--limit", "2")
    omnidata("evaluate", "androidcontrol", data, *model)
    for more in ((), ("--profile", "all")):
        done = omnidata("score", "androidcontrol", data, run, *more)
        assert "no full answer" not in done.stdout
    lines = run / "predictions.jsonl"
    assert "4 missing" in omnidata("score", "androidcontrol", data, lines, code=1).stdout


def test_steps_are_chosen_as_evaluate_chooses_them(
    data: Path, answers: list[Line], tmp_path: Path
) -> None:
    path = write_lines(tmp_path / "answers.jsonl", answers[:2])
    command = ("score", "androidcontrol", data, path, "--json")
    found = as_json(omnidata(*command, "--limit", "2"))
    assert found["outcomes"] == {"ok": 2}
    assert found["counts"]["whole_episodes"] == 0  # two of three steps are no episode
    exclude = tmp_path / "exclude.txt"
    exclude.write_text("".join(f"{line['sample_id']}\n" for line in answers[2:]))
    assert as_json(omnidata(*command, "--exclude", exclude))["outcomes"] == {"ok": 2}
    assert "no step has app" in omnidata(*command, "--where", "app=ted", code=2).stderr


def test_a_tag_chooses_among_answers_and_a_run(few: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    omnidata("evaluate", "omnigui", few, "--model", "baseline:oracle", "--out", run)
    for place in (run, run / "predictions.jsonl"):
        command = ("score", "omnigui", few, place, "--where", "language=en", "--json")
        found = as_json(omnidata(*command))
        assert 0 < found["counts"]["steps"] < 28
        assert found["by"]["language"].keys() == {"en"}
        assert as_json(omnidata(*command, "--limit", "3"))["outcomes"] == {"ok": 3}


BAD = {
    2: ("not json", "it is no JSON"),
    3: (json.dumps({"output": BACK}), "there is no sample_id"),
    5: (json.dumps({"sample_id": "0/1"}), "there is no output"),
    6: (json.dumps({"sample_id": 7, "output": BACK}), "sample_id is a number, not a text"),
    7: (json.dumps({"sample_id": "0/2", "output": {"a": 1}}), "output is an object, not a text"),
    8: (json.dumps([1]), "the line is a list, not an object"),
    9: (json.dumps({"output": "again"}), "there is no sample_id"),
    10: (json.dumps({"sample_id": "9/9", "output": BACK}), "the data have no step of this id"),
    11: ('{"sample_id": "1/0", "outp', "it ends inside a text"),
}


def test_all_bad_lines_are_listed_at_once_by_reason(
    data: Path, answers: list[Line], tmp_path: Path
) -> None:
    texts = [BAD.get(number, (json.dumps(answers[0 if number == 1 else 4]),))[0]
             for number in range(1, 12)]  # fmt: skip
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(texts))
    out = tmp_path / "scored"
    done = omnidata("score", "androidcontrol", data, path, "--out", out, code=2)
    assert f"{path}: 9 lines cannot be scored:" in done.stderr
    assert "2 lines (3, 9): there is no sample_id" in done.stderr
    for _, says in BAD.values():
        assert says in done.stderr
    assert "--skip-bad" in done.stderr
    assert not [*out.iterdir()]

    done = omnidata("score", "androidcontrol", data, path, "--skip-bad", "--json", code=1)
    assert as_json(done)["outcomes"] == {"ok": 2, "missing": 4}
    assert "9 lines cannot be scored:" in done.stderr


def test_of_two_answers_to_a_step_none_counts(
    data: Path, answers: list[Line], tmp_path: Path
) -> None:
    path = write_lines(tmp_path / "answers.jsonl", [*answers, {**answers[1], "output": "?"}])
    command = ("score", "androidcontrol", data, path)
    told = omnidata(*command, code=2).stderr
    assert f"{path}:2,7: {answers[1]['sample_id']}: the step is answered twice" in told
    found = as_json(omnidata(*command, "--skip-bad", "--json", code=1))
    assert found["outcomes"] == {"ok": 5, "missing": 1}


def test_a_thousand_reasons_are_not_a_thousand_lines(data: Path, tmp_path: Path) -> None:
    letters = "abcdefghij"  # numbers alone are no other reason
    sizes = map("".join, product(letters, letters, letters))
    bad = [{"sample_id": "0/0", "output": "", "image_size": size} for size in sizes]
    path = write_lines(tmp_path / "answers.jsonl", bad)
    told = omnidata("score", "androidcontrol", data, path, code=2).stderr
    assert "1000 lines cannot be scored" in told
    assert len(told.splitlines()) < 20
    assert "and 91 other reasons" in told


def test_a_broken_line_of_a_run_is_damage(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    omnidata("evaluate", "androidcontrol", data, "--model", "baseline:majority", "--out", run)
    told = omnidata("score", "androidcontrol", data, run, "--skip-bad", code=2).stderr
    assert f"name the file: {run / 'predictions.jsonl'}" in told


def test_options_of_texts_mean_nothing_where_none_is_scored(tmp_path: Path) -> None:
    for option in (("--limit", "1"), ("--skip-bad",), ("--where", "a=b")):
        told = omnidata("score", "osworld", tmp_path, *option, code=2).stderr
        assert "this option is for answers of a model" in told


# How large the picture was.

ROW = {
    "image": "", "instruction": "Open the menu", "gt_action": "click", "gt_bbox": [540, 2000],
    "gt_input_text": "no input text", "width": 1440, "height": 3120,
}  # fmt: skip
SAID = "<answer>[{'action': 'click', 'point': [410, 1526], 'input_text': 'no input text'}]</answer>"
"""In pixels of 1092 x 2380; of the screenshot it is (540, 2000)."""
GUI_R1 = ("--dialect", "gui-r1", "--profile", "os-atlas-ac", "--json")


@pytest.mark.parametrize(
    ("sizes", "exact"),
    [
        ({"image_size": [1092, 2380]}, 1.0),
        ({"image_size": [1092.0, 2380.0], "scale": [0.758, 0.7628]}, 1.0),
        ({"image_size": [1092, 2380], "original_size": [1440, 3120]}, 1.0),
        ({"scale": [0.7583, 0.7628], "original_size": [1440, 3120]}, 1.0),
        ({"scale": [0.7583, 0.7628], "orig_w": 1440, "orig_h": 3120}, 1.0),
        ({"image_size": [1440, 3120], "scale": 1}, 0.0),
        ({"image_size": [1092, 2380], "scale": []}, 1.0),  # as where nothing was resized
        ({}, 0.0),  # what the dialect's own resize makes of the screenshot
    ],
)
def test_a_line_says_how_large_the_picture_was_that_the_model_got(
    tmp_path: Path, sizes: Line, exact: float
) -> None:
    data = write_lines(tmp_path / "rows.jsonl", [ROW])
    line = {"sample_id": "rows/0", "output": SAID, **sizes}
    path = write_lines(tmp_path / "answers.jsonl", [line])
    found = as_json(omnidata("score", "androidcontrol", data, path, *GUI_R1))
    assert found["overall"]["EM"] == exact


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ({"image_size": [1092]}, "not a width and a height in pixels"),
        ({"image_size": "1092x2380"}, "not a width and a height in pixels"),
        ({"image_size": [0, 5]}, "not a width and a height in pixels"),
        ({"image_size": [True, 5]}, "not a width and a height in pixels"),
        ({"scale": 0.5}, "scale alone does not say how large the picture was"),
        ({"scale": [1, 2, 3], "original_size": [9, 9]}, "not one number or two above 0"),
        ({"image_size": [500, 500], "scale": 0.9, "original_size": [1000, 1000]}, "makes [900"),
    ],
)
def test_sizes_that_cannot_be_meant_are_refused(
    data: Path, sizes: Line, says: str, tmp_path: Path
) -> None:
    line = {"sample_id": "a", "output": "", **sizes}
    path = write_lines(tmp_path / "answers.jsonl", [line])
    assert says in omnidata("score", "androidcontrol", data, path, code=2).stderr


def test_a_size_and_its_scale_say_the_same(tmp_path: Path) -> None:
    """Lines whose size and scale disagree are refused; of random sizes none is."""
    rng, lines = random.Random(0), list[Line]()
    while len(lines) < 300:
        fed, shot = ([rng.randint(1, 9999), rng.randint(1, 9999)] for _ in range(2))
        scale = [a / b for a, b in zip(fed, shot, strict=True)]
        if max(scale) < 100:
            sizes = {"image_size": fed, "scale": scale, "original_size": shot}
            lines.append({"sample_id": f"rows/{len(lines)}", "output": BACK, **sizes})
    data = write_lines(tmp_path / "rows.jsonl", [ROW] * len(lines))
    omnidata("score", "androidcontrol", data, write_lines(tmp_path / "answers.jsonl", lines))


# Rows that hold what is right and the answer.


@pytest.mark.parametrize("how", [("--from", "gui-r1"), ("--dialect", "gui-r1")])
def test_rows_with_their_answers_are_scored_by_themselves(
    tmp_path: Path, how: tuple[str, ...]
) -> None:
    other = {**ROW, "instruction": "Go back", "gt_action": "press_back", "gt_bbox": [-100, -100]}
    rows = [
        {**ROW, "image_size": [1092, 2380], "pred": SAID, "pred_action": "click"},
        {**other, "image_size": [1092, 2380], "pred": "no idea", "pred_action": "none"},
        {**other, "image_size": [1092, 2380], "pred": None},
    ]
    data = write_lines(tmp_path / "rows.jsonl", rows)
    command = ("score", "androidcontrol", data, data, "--profile", "os-atlas-ac", "--json")
    found = as_json(omnidata(*command, *how, code=1))
    assert found["outcomes"] == {"ok": 1, "unparsed": 1, "missing": 1}
    assert found["overall"]["EM"] == pytest.approx(1 / 3)


def test_rows_with_answers_are_found_in_data_of_another_order(tmp_path: Path) -> None:
    rows = [{**ROW, "instruction": f"Open menu {n}", "image_size": [1092, 2380]} for n in range(3)]
    data = write_lines(tmp_path / "rows.jsonl", rows)
    said = [{**row, "pred": SAID if n else "?"} for n, row in enumerate(rows)]
    path = write_lines(tmp_path / "said.json", said[::-1])
    command = ("score", "androidcontrol", data, path, "--from", "gui-r1", "--profile")
    out = tmp_path / "scored"
    found = as_json(omnidata(*command, "os-atlas-ac", "--out", out, "--json"))
    assert found["outcomes"] == {"ok": 2, "unparsed": 1}
    lines = {line["sample_id"]: line["outcome"] for line in read_lines(out / "scores.jsonl")}
    assert lines["rows/0"] == "unparsed"
    told = omnidata("score", "androidcontrol", data, path, code=2).stderr
    assert "--from gui-r1" in told
    told = omnidata("score", "androidcontrol", data, data, code=2).stderr
    assert "no row of the data has an answer" in told
    both = write_lines(tmp_path / "both.jsonl", [{**said[1], "prediction": "?"}])
    told = omnidata("score", "androidcontrol", both, both, code=2).stderr
    assert "several columns of answers: pred, prediction" in told


def test_steps_without_what_decides_are_judged_by_the_other_parts(
    data: Path, answers: list[Line], tmp_path: Path
) -> None:
    path = write_lines(tmp_path / "answers.jsonl", answers)
    done = omnidata("score", "androidcontrol", data, path, "--profile", "gui-r1")
    assert "NOT A RESULT" not in done.stdout
    model = ("--model", "baseline:majority", "--profile", "gui-r1", "--out", tmp_path / "run")
    assert "NOT A RESULT" not in omnidata("evaluate", "androidcontrol", data, *model).stdout


def test_empty_texts_and_objects_in_rows_are_answers(tmp_path: Path) -> None:
    click = {"action": "click", "point": [410, 1526], "input_text": "no input text"}
    said: list[object] = [SAID, "", click, [click]]
    rows = [{**ROW, "image_size": [1092, 2380], "pred": answer} for answer in said]
    data = write_lines(tmp_path / "rows.jsonl", rows)
    command = ("score", "androidcontrol", data, data, "--from", "gui-r1", "--json")
    found = as_json(omnidata(*command))
    assert found["outcomes"] == {"ok": 3, "unparsed": 1}
    assert found["overall"]["EM"] == pytest.approx(3 / 4)


def test_the_dialect_is_named_once(tmp_path: Path) -> None:
    data = write_lines(tmp_path / "rows.jsonl", [{**ROW, "pred": SAID}] * 2)
    command = ("score", "androidcontrol", data, data)
    done = omnidata(*command, code=1)
    assert "--dialect gui-r1" in done.stdout
    assert "no answer could be read" not in done.stderr
    prose = write_lines(tmp_path / "prose.jsonl", [{**ROW, "pred": "Tap it."}] * 2)
    told = omnidata("score", "androidcontrol", prose, prose).stderr
    assert "no answer could be read" in told
