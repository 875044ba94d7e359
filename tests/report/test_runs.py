"""A run folder is read as it was left; what is none, or is not finished, is said to be so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from omnidata.analysis.runs import group_alike, labels, read_runs, repeats, warnings
from omnidata.errors import OmnidataError, RunError, UsageError
from omnidata.run.evaluate import evaluate
from omnidata.run.run_files import read_run
from omnidata.tasks import get_task
from tests.report.made import write_run
from tests.trees import load_rows, row


def test_a_run_of_evaluate_is_read_line_by_line_when_asked(tmp_path: Path) -> None:
    source = load_rows(tmp_path, row(step=0), row(step=1))
    task = get_task("omnigui", {"modalities": "I"})
    evaluate(task, source, "baseline:oracle", tmp_path / "run")
    run = read_run(tmp_path / "run")
    assert (run.name, run.task, run.profile) == ("baseline:oracle", "omnigui", "omnigui-paper")
    assert run.fingerprint == source.fingerprint
    assert run.data == source.root
    assert list(run.columns) == ["TM", "EM", "SR", "GP"]
    assert run.asking.options["modalities"] == "I"
    ids = [step.sample_id for step in source.steps]
    assert list(run.scores) == ids == list(run.predictions)
    assert run.scores[ids[0]]["exact_match"] is True
    assert not run.imported


def test_scores_without_a_run_are_read_too(tmp_path: Path) -> None:
    run = write_run(tmp_path / "theirs", scores={"A/T1/0": True}, imported=True)
    assert run.imported
    assert run.name == "theirs"
    assert run.fingerprint is None
    assert run.predictions == {}
    assert run.scores["A/T1/0"]["exact_match"] is True


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (None, "there is no such folder"),
        ([], "the folder holds no run"),
        (["run.json", "predictions.jsonl"], "the run is unfinished"),
        (["predictions.jsonl"], "the answers were never scored"),
    ],
)
def test_a_folder_without_results_says_what_it_lacks(
    tmp_path: Path, files: list[str] | None, said: str
) -> None:
    folder = tmp_path / "run"
    if files is not None:
        folder.mkdir()
        for name in files:
            (folder / name).write_text("{}")
    with pytest.raises(RunError, match=said) as raised:
        read_run(folder)
    assert raised.value.remedy


@pytest.mark.parametrize(
    ("change", "said"),
    [({"task": ""}, 'unknown task ""'), ({"profile": "omnigui-2031"}, "no profile")],
)
def test_results_that_name_nothing_known_are_refused(
    tmp_path: Path, change: dict[str, str], said: str
) -> None:
    path = write_run(tmp_path / "run", imported=True).path / "results.json"
    text = path.read_text()
    path.write_text(json.dumps(json.loads(text) | change))
    with pytest.raises(RunError, match=said):
        read_run(path.parent)
    path.write_text(text[:-1])
    with pytest.raises(RunError, match="cannot be read as JSON"):
        read_run(path.parent)
    with pytest.raises(RunError, match="it is a file"):
        read_run(path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("results.json", {"overall": {"EM": "high"}}),
        ("results.json", {"overall": {"EM": float("nan")}}),
        ("results.json", {"ci95": {"EM": [0.5]}}),
        ("results.json", {"by": {"app": {"TED": {"EM": [1]}}}}),
        ("results.json", {"by": {"app": {"TED": {"ci95": {"EM": [0.1, float("inf")]}}}}}),
        ("results.json", {"counts": {"steps": "many"}}),
        ("results.json", {"counts": {"finished": [1]}}),
        ("results.json", {"outcomes": ["ok"]}),
        ("run.json", {"options": ["modalities"]}),
        ("run.json", {"control": "silence"}),
        ("run.json", {"where": ["TED"]}),
        ("run.json", {"shard": 3}),
    ],
)
def test_a_value_of_the_wrong_kind_is_told(
    tmp_path: Path, name: str, change: dict[str, Any]
) -> None:
    path = write_run(tmp_path / "run").path / name
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(RunError, match="the content is invalid") as raised:
        read_run(tmp_path / "run")
    assert raised.value.where == str(path)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"sample_id": "A/T1/1", "out', "cannot be read as JSON"),
        ('{"sample_id": "A/T1/1"}', "missing required field `outcome`"),
        ('{"sample_id": "A/T1/0", "outcome": "ok", "profile": "omnigui-paper"}', "two lines"),
        ('{"sample_id": "A/T1/1", "outcome": "ok", "profile": "other"}', "of profile other"),
    ],
)
def test_a_broken_line_of_scores_is_named(tmp_path: Path, line: str, said: str) -> None:
    run = write_run(tmp_path / "run", scores={"A/T1/0": True})
    with (run.path / "scores.jsonl").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(RunError, match=said) as raised:
        _ = read_run(run.path).scores
    assert raised.value.where.endswith("scores.jsonl:2")


def test_a_step_that_is_answered_twice_is_an_error(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", answers={"A/T1/0": "x"})
    path = run.path / "predictions.jsonl"
    path.write_text(path.read_text() * 2)
    with pytest.raises(OmnidataError, match="two lines"):
        _ = read_run(run.path).predictions


def test_a_run_named_twice_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    with pytest.raises(UsageError, match="named twice"):
        read_runs([tmp_path / "run", tmp_path / "x" / ".." / "run"])


def test_labels_have_what_sets_runs_apart_and_nothing_else(tmp_path: Path) -> None:
    one = write_run(tmp_path / "1")
    two = write_run(tmp_path / "2", options={"modalities": "I"})
    other = write_run(tmp_path / "3", model="openai:b", where={"language": "en"})
    same = write_run(tmp_path / "4")
    assert labels([one]) == [("openai:a", "")]
    assert labels([one, two]) == [("openai:a", "modalities=IAV"), ("openai:a", "modalities=I")]
    assert labels([one, other]) == [("openai:a", ""), ("openai:b", "language=en")]
    assert labels([one, same]) == [("openai:a", "1"), ("openai:a", "4")]


def test_labels_name_the_keys_that_differ_by_their_shortest_ending(tmp_path: Path) -> None:
    processor = {"crop": {"height": 9, "width": 9}, "mean": [0.5] * 80}
    one, two, three = (
        write_run(
            tmp_path / str(size),
            model_options={} if size == 224 else {"image_size": str(size)},
            model_settings={
                "processor": {**processor, "size": {"height": size}},
                "image_size": size,
            },
            generation={"height": size // 448},
        )
        for size in (224, 448, 896)
    )
    assert labels([one, two, three]) == [
        ("openai:a", f"generation.height={size // 448}, size.height={size}, image_size={size}")
        for size in (224, 448, 896)
    ]
    long = [
        write_run(tmp_path / end / "run", model_options={"template": "x" * 500 + end})
        for end in "ab"
    ]
    cut = f"template={'x' * 57}..."
    assert labels(long) == [("openai:a", f"{cut}, a/run"), ("openai:a", f"{cut}, b/run")]


def test_an_imported_run_does_not_make_all_settings_differ(tmp_path: Path) -> None:
    one = write_run(tmp_path / "1")
    theirs = write_run(tmp_path / "theirs", imported=True)
    assert labels([one, theirs]) == [("openai:a", ""), ("theirs", "")]


def test_runs_that_differ_in_more_than_their_seed_are_no_repeats(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / f"seed{seed}", seed=seed) for seed in (1, 2)]
    runs.append(write_run(tmp_path / "option", model_options={"seed": "3"}))
    other = write_run(tmp_path / "other", options={"history": "none"})
    data = write_run(tmp_path / "data", dataset_fingerprint="e" * 64)
    assert repeats([*runs, other, data]) == [runs]
    assert [len(group) for group in group_alike([*runs, other], frozenset())] == [1, 1, 1, 1]


def test_different_data_steps_and_profiles_are_warned_of(tmp_path: Path) -> None:
    one = write_run(tmp_path / "1")
    other = write_run(tmp_path / "2", dataset_fingerprint="e" * 64)
    assert list(warnings([one])) == []
    (told,) = warnings([one, other])
    assert "different data" in told
    part = write_run(tmp_path / "3", limit=5)
    (told,) = warnings([one, part])
    assert "different steps" in told
    released = write_run(tmp_path / "released", profile="omnigui-release")
    (told,) = warnings([one, released])
    assert "2 profiles (omnigui-paper, omnigui-release)" in told
    own = write_run(tmp_path / "own", scores={"A/T1/0": True})
    same = write_run(tmp_path / "same", scores={"A/T1/0": False}, imported=True)
    other = write_run(tmp_path / "other", scores={"A/T9/0": False}, imported=True)
    (told,) = warnings([own, same])
    assert "name no data" in told
    (told,) = warnings([own, other])
    assert "other steps" in told


def test_what_a_run_lacks_is_told(tmp_path: Path) -> None:
    run = write_run(tmp_path / "1")
    path = run.path / "results.json"
    results = json.loads(path.read_text())
    results |= {"stopped": "the budget is spent", "outcomes": {"ok": 90, "missing": 10}}
    results["counts"]["degraded"] = 7
    path.write_text(json.dumps(results))
    told = " ".join(warnings([read_run(run.path)]))
    assert "the budget is spent" in told
    assert "10 steps without an answer" in told
    assert "7 steps were asked with less" in told
    results["outcomes"]["missing"] = results["counts"]["degraded"] = 1
    path.write_text(json.dumps(results))
    told = " ".join(warnings([read_run(run.path)]))
    assert "1 step without an answer counts as wrong" in told
    assert "1 step was asked with less" in told
