"""What is scored is what was answered; everything else is counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnidata.errors import DataError, PredictionError
from omnidata.predictions import read
from omnidata.run.asker import Recipe
from omnidata.run.batch import write
from omnidata.run.cost import Limits
from omnidata.run.evaluate import evaluate
from omnidata.run.scoring import score
from omnidata.run.selection import whole_episodes
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.types import LoadedDataset
from tests.run.scripted import Scripted
from tests.trees import row, write_lines, write_rows

TASK = get_task("omnigui")


def judged(source: LoadedDataset, path: Path, task: Asking = TASK, **how: Any) -> dict[str, Any]:
    """What the answers in a file are worth by the rules of the paper."""
    whole = whole_episodes(source.steps, source.steps)
    profile = task.profiles["omnigui-paper"]
    return score(task, profile, source.steps, read(path), whole=whole, **how)


def test_steps_without_an_answer_are_missing_and_wrong(
    source: LoadedDataset, tmp_path: Path
) -> None:
    answers = [
        {"sample_id": step.sample_id, "output": target.text}
        for step in source.steps[:10]
        if (target := TASK.target(step))
    ]
    results = judged(source, write_lines(tmp_path / "p.jsonl", answers))
    assert results["outcomes"] == {"ok": 10, "missing": len(source.steps) - 10}
    assert results["overall"]["EM"] == pytest.approx(10 / len(source.steps))
    assert results["answered"]["EM"] == 1.0
    assert results["answered"]["steps"] == 10
    assert results["counts"]["steps"] == len(source.steps)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"sample_id": "nobody/T1/0", "output": "x"}, r"p\.jsonl:2: nobody/T1/0"),
        ({"sample_id": None, "output": "x"}, r"p\.jsonl:1,2: .*answered twice"),
    ],
)
def test_unknown_and_repeated_ids_are_errors_and_write_nothing(
    source: LoadedDataset, tmp_path: Path, extra: dict[str, Any], message: str
) -> None:
    first = source.steps[0].sample_id
    answers = [{"sample_id": first, "output": "x"}, {**extra}]
    answers[1]["sample_id"] = extra["sample_id"] or first
    path = write_lines(tmp_path / "p.jsonl", answers)
    with pytest.raises(PredictionError, match=message):
        judged(source, path, out=tmp_path / "out", origin=path)
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"output": "x"}', '{"sample_id": 3, "output": "x"}',
             '{"sample_id": "a", "output": {}}',
             '{"sample_id": "a", "output": "x", "delivery": "?"}',
             "\udcff"]
)  # fmt: skip
def test_a_line_that_is_no_prediction_is_named_by_file_and_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "p.jsonl"
    good = json.dumps({"sample_id": "a", "output": "x"})
    path.write_bytes(f"{good}\n\n".encode() + line.encode("utf-8", "surrogateescape") + b"\n")
    with pytest.raises(PredictionError, match=r"p\.jsonl:3"):
        list(read(path))


def test_steps_without_a_usable_target_are_left_out_of_the_paper_profile_and_counted(
    tmp_path: Path,
) -> None:
    rows = [row(step=0), row(step=1, result_touch_xy="[[1,2]]"), row(step=2, result_action_type=10)]
    source = TASK.load(write_rows(tmp_path / "steps.json", rows))
    results = evaluate(TASK, source, "baseline:oracle", tmp_path / "run")
    assert results["counts"]["without_usable_target"] == 1
    assert results["counts"]["steps"] == 2
    assert results["overall"]["EM"] == 1.0
    release = evaluate(
        TASK, source, "baseline:oracle", tmp_path / "release", profile="omnigui-release"
    )
    assert release["counts"]["steps"] == 3


def test_steps_judged_by_an_extension_are_counted(tmp_path: Path) -> None:
    rows = [row(step=0, result_touch_xy="[360,800]"), row(step=1)]
    source = TASK.load(write_rows(tmp_path / "steps.json", rows))
    results = evaluate(TASK, source, "baseline:oracle", tmp_path / "run")
    assert results["counts"]["judged_by_extension"] == 1


def test_episodes_of_two_apps_merge_in_the_release_where_it_merges_them(tmp_path: Path) -> None:
    rows = [
        row("T1", 0, app="ted", result_action_type=10),
        row("T1", 0, app="jd", result_action_type=11),
    ]
    source = TASK.load(write_rows(tmp_path / "steps.json", rows))
    paper = evaluate(TASK, source, "baseline:oracle", tmp_path / "a")
    release = evaluate(TASK, source, "baseline:oracle", tmp_path / "b", profile="omnigui-release")
    assert (paper["counts"]["episodes"], release["counts"]["episodes"]) == (2, 1)


def test_a_replayed_run_scores_the_same(source: LoadedDataset, tmp_path: Path) -> None:
    first = evaluate(TASK, source, "baseline:random", tmp_path / "a")
    spec = f"replay:{tmp_path / 'a' / 'predictions.jsonl'}"
    again = evaluate(TASK, source, spec, tmp_path / "b")
    assert again == first


def test_a_replay_without_a_line_for_a_step_is_a_failure_not_an_answer(
    source: LoadedDataset, tmp_path: Path
) -> None:
    path = write_lines(
        tmp_path / "p.jsonl", [{"sample_id": source.steps[0].sample_id, "output": "x"}]
    )
    results = evaluate(TASK, source, f"replay:{path}", tmp_path / "run", limit=2)
    assert results["outcomes"] == {"unparsed": 1, "api_error": 1}


def test_mutants_of_the_oracle_change_exactly_the_metrics_they_must(tmp_path: Path) -> None:
    """One step of one of two episodes is made wrong; `px` makes one unit one pixel."""
    box = {"result_touch_xy": "[[210,786],[351,850]]"}
    rows = [
        row("A", 0, app="ted", **box),
        row("A", 1, app="ted", result_action_type=3, result_lift_xy="[[10,20],[30,40]]", **box),
        row("A", 2, app="ted", result_action_type=7, result_action_text="hello"),
        row("A", 3, app="ted", result_action_type=10),
        row("B", 0, app="ted", result_action_type=8),
    ]
    task = get_task("omnigui", {"coordinates": "px"})
    source = task.load(write_rows(tmp_path / "steps.json", rows))
    targets = [task.target(step) for step in source.steps]
    right = [json.loads(target.text) for target in targets if target]
    inside = [[210, 786], [351, 850], [210, 850], [351, 786]]
    outside = [[209, 800], [352, 800], [300, 785], [300, 851]]
    mutants: list[tuple[int, dict[str, Any], bool, bool]] = [
        *((0, {"coordinate": point}, True, True) for point in inside),
        *((0, {"coordinate": point}, True, False) for point in outside),
        *((1, {"start_coordinate": point}, True, False) for point in outside),
        (1, {"end_coordinate": [30, 40]}, True, True),
        (1, {"end_coordinate": [31, 40]}, True, False),
        (2, {"text": "hellp"}, True, False),
        (2, {"text": "Hello"}, True, False),
        (3, {"action_type": 11}, False, False),
    ]
    for number, (place, change, type_match, exact) in enumerate(mutants):
        bodies = [{**body, **(change if i == place else {})} for i, body in enumerate(right)]
        answers = [
            {"sample_id": step.sample_id, "output": json.dumps(body)}
            for step, body in zip(source.steps, bodies, strict=True)
        ]
        path = write_lines(tmp_path / f"{number}.jsonl", answers)
        wanted = {
            "TM": 1.0 if type_match else 4 / 5,
            "EM": 1.0 if exact else 4 / 5,
            "SR": 1.0 if exact else 1 / 2,
            "GP_ratio": 1.0 if exact else (3 / 4 + 1) / 2,
            "GP_prefix": 1.0 if exact else (place / 4 + 1) / 2,
        }
        assert judged(source, path, task)["overall"].items() >= wanted.items(), change


def test_a_metric_over_nothing_is_null_and_no_nought(tmp_path: Path) -> None:
    source = TASK.load(write_rows(tmp_path / "steps.json", [row(step=0), row(step=1)]))
    cut = evaluate(TASK, source, "baseline:oracle", tmp_path / "cut", limit=1)
    assert (cut["overall"]["EM"], cut["overall"]["SR"], cut["ci95"]["GP"]) == (1.0, None, None)
    unusable = write_rows(tmp_path / "none.json", [row(result_action_type=12)])
    nothing = evaluate(TASK, TASK.load(unusable), "baseline:oracle", tmp_path / "none")
    assert set(nothing["overall"].values()) == {None}


def test_a_run_that_cannot_be_judged_asks_no_model(tmp_path: Path) -> None:
    unusable = [row(step=0, result_action_type=12), row(step=1, result_touch_xy="[1]")]
    source = TASK.load(write_rows(tmp_path / "none.json", unusable))
    model, run = Scripted(), tmp_path / "run"
    for limit in (None, 1):
        with pytest.raises(DataError, match="has a usable target by omnigui-paper"):
            evaluate(TASK, source, model, run, limit=limit)
    with pytest.raises(DataError, match="has a usable target"):
        write(TASK, source, Recipe("openai:m", {}, "http://127.0.0.1:9/v1"), run)
    assert not model.asked
    assert not run.exists()
    rows = [*unusable, row(step=2)]
    one = TASK.load(write_rows(tmp_path / "one.json", rows))
    assert evaluate(TASK, one, model, run)["counts"]["without_usable_target"] == 2


def test_answers_that_are_there_are_scored_though_none_can_be_judged(tmp_path: Path) -> None:
    source = TASK.load(write_rows(tmp_path / "steps.json", [row(result_action_type=12)]))
    evaluate(TASK, source, "baseline:oracle", tmp_path / "run")
    model = Scripted()
    model.name = "baseline:oracle"
    limits = Limits(reuse_answers=True)
    results = evaluate(TASK, source, model, tmp_path / "run", limits=limits)
    assert set(results["overall"].values()) == {None}
    assert not model.asked


def test_episodes_that_lack_steps_are_counted(tmp_path: Path) -> None:
    rows = [
        row("gap", 0), row("gap", 2), row("tail", 0, episode_length=3), row("whole", 0),
        row("left out", 0, result_touch_xy="[1]"), row("left out", 1),
    ]  # fmt: skip
    source = TASK.load(write_rows(tmp_path / "steps.json", rows))
    results = evaluate(TASK, source, "baseline:oracle", tmp_path / "run")
    assert results["counts"]["incomplete_episodes"] == 3


def test_data_without_a_step_are_refused() -> None:
    profile = TASK.profiles[TASK.default_profile]
    with pytest.raises(DataError, match="no step to score"):
        score(TASK, profile, [], [], whole=np.zeros(0, dtype=np.bool_))
