"""What a plug-in may say beside the question and the judge, and which verbs ask for it."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnidata
from omnidata.analysis.comparison import compare
from omnidata.analysis.report import report
from omnidata.run.run_files import Run, read_run
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from tests.plugin import data as odyssey
from tests.tasks.scored import scored
from tests.tasks.words import install, told


def test_its_overview_and_its_scorer_serve_info_and_score(
    site: Path, rows: Path, tmp_path: Path
) -> None:
    install(site, points="words = words_plugin:Told")
    votes = tmp_path / "votes.jsonl"
    votes.write_text('{"vote": "1", "is": 1}\n{"vote": "2", "is": 0}\n', encoding="utf-8")
    shown = told("info", "words", rows, "--expect", "paper", code=1)
    assert "Letters of the questions" in shown
    assert "differs from the paper's Table 1: there are 3 questions, published 4" in shown
    assert "Expected: paper" in told("info", "words", rows, "--expect", "other", code=2)
    figure = tmp_path / "f.png"
    assert "Lengths and sizes" in told("info", "words", rows, "--plot", figure)
    assert figure.is_file()
    assert "agreement" in told("score", "words", rows, votes, "--out", tmp_path / "votes")
    found = compare(tmp_path / "votes", tmp_path / "votes", resamples=50)
    assert found.overall.metrics["agreement"].a == 0.5
    votes.write_text('{"vote": "1", "is": 1}\n{"vote": "2", "is": 1}\n', encoding="utf-8")
    told("score", "words", rows, votes, "--out", tmp_path / "better")
    tables = report([read_run(tmp_path / name) for name in ("votes", "better")]).tables
    (ranks,) = [table for table in tables if table.name == "ranking"]
    assert [(row.labels[0], row.cells[0].value) for row in ranks.rows] == [
        ("better", 1),
        ("votes", 2),
    ]
    (ends,) = [table for table in tables if table.name == "rollout-endings"]
    assert [row.cells[1].value for row in ends.rows] == [0.5, 0.0], "false finish"
    log = told("score", "words", rows, "--actions", votes, code=2)
    assert "the benchmark has no evaluator of actions" in log


def run_of(task: Asking, rows: Path, out: Path, profile: str, *said: str) -> Run:
    scored(task, task.load(rows).steps, said, profile, out=out)
    return read_run(out)


def test_metrics_of_its_own_names_are_compared_and_reported(
    site: Path, rows: Path, tmp_path: Path
) -> None:
    install(site, points="words = words_plugin:Told")
    task = get_task("words")
    for profile, name, values in (
        ("words-graded", "found", (0.5, 1.0)),
        ("words-graded", "letters", (4.0, 5.0)),
        ("words-rated", "rate", (1 / 8, 2 / 10)),
    ):
        a = run_of(task, rows, tmp_path / f"a-{profile}", profile, "fig", "Birne", "")
        b = run_of(task, rows, tmp_path / f"b-{profile}", profile, "melon", "Birne", "")
        found = compare(a.path, b.path, data=rows, resamples=50).overall.metrics[name]
        assert (found.a, found.b) == pytest.approx(values)
        assert (a.results["overall"][name], b.results["overall"][name]) == pytest.approx(values)
        assert name in report([a, b]).text("terminal")


def test_its_published_rows_stand_beside_its_runs(site: Path, rows: Path, tmp_path: Path) -> None:
    install(site, points="words = words_plugin:Told")
    task = get_task("words")
    run = run_of(task, rows, tmp_path / "run", "words-graded", "fig", "Birne", "")
    made = {each.name: each for each in report([run], with_published=True, by=["language"]).tables}
    main = made["main"]
    assert [head.header for head in main.heads] == ["Overall", "German", "English"]
    assert [row.labels for row in main.rows] == [("Reader 1",), ("run",)]
    shown = [cell.value for cell in main.rows[0].cells]
    assert shown == [0.75, None, 0.5, None, None, None]
    assert "Found counts as Reader 1 counts." in main.notes
    beside = made["by-language"]
    assert [head.header for head in beside.heads] == ["run", "Reader 3"]
    assert {row.group: row.cells[-1].value for row in beside.rows} == {"de": 0.25, "en": None}
    best = task.benchmark.paper.published().best(task.options)
    assert best
    assert best.metrics["found"].model == "Reader 1"


def test_what_is_said_of_episodes_has_the_names_of_its_own_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odyssey.install(tmp_path / "site", monkeypatch)
    data = odyssey.write(tmp_path / "data", episodes=3)  # the second has an unusable target
    left_out = tmp_path / "left_out.txt"
    left_out.write_text("E0/1\n", encoding="utf-8")
    run = ("--model", "baseline:oracle", "--out", tmp_path / "run")
    found = told("evaluate", "odyssey", data, *run, "--exclude", left_out)
    assert "1 episode lacks steps or usable targets" in found
    assert "1 episode incomplete by the choice of steps, left out of SR\n" in found


def test_tags_are_chosen_in_any_spelling_of_its_own(site: Path, rows: Path, tmp_path: Path) -> None:
    install(site, points="words = words_plugin:Told")
    task = get_task("words")
    where = {"language": "German"}
    source = task.load(rows)
    found = omnidata.evaluate(task, source, "baseline:oracle", tmp_path / "run", where=where)
    assert found["counts"]["steps"] == 1
    opened = omnidata.load_dataset("words", rows, "GERMAN", split="test", cache_dir=tmp_path / "c")
    assert opened["language"] == ["de"]


def test_what_is_spoken_is_its_own_say(site: Path, rows: Path) -> None:
    install(site, points="words = words_plugin:Told")
    task = get_task("words")
    steps = task.load(rows).steps
    wanted = [(step.instruction, step.tags["language"]) for step in steps]
    assert [tuple(task.benchmark.wordings.spoken_texts(step)) for step in steps] == wanted
