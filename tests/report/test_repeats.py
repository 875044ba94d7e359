"""What differs between runs with other seeds is chance, and is measured."""

from __future__ import annotations

import statistics
from pathlib import Path
from shutil import copytree

import pytest

from omnidata.analysis.report import report
from omnidata.run.run_files import Run, read_run
from tests.report.made import write_run

IDS = ("A/T1/0", "A/T1/1", "A/T2/0")


def seeded(tmp_path: Path, seed: int, em: float, exact: str, answers: str) -> Run:
    return write_run(
        tmp_path / f"seed{seed}",
        seed=seed,
        overall=(50.0, em, 30.0, 20.0),
        scores={name: letter == "+" for name, letter in zip(IDS, exact, strict=True)},
        answers=dict(zip(IDS, answers, strict=True)),
    )


@pytest.fixture
def runs(tmp_path: Path) -> list[Run]:
    return [
        seeded(tmp_path, 1, 40.0, "++-", "xyz"),
        seeded(tmp_path, 2, 44.0, "+--", "xqz"),
        seeded(tmp_path, 3, 45.0, "+--", "wqz"),
    ]


def test_mean_deviation_and_extremes_are_those_of_the_runs(runs: list[Run]) -> None:
    made, passes = [each for each in report(runs).tables if each.name.startswith("repeats")]
    assert len(passes.rows) == 1  # which episodes are whole, these runs do not say
    assert "3 runs of openai:a" in made.title
    found = {row.group: row.cells[1].value for row in made.rows}
    values = [0.40, 0.44, 0.45]
    assert found["Mean"] == pytest.approx(0.43)
    assert found["SD between runs"] == pytest.approx(statistics.stdev(values))
    assert (found["Least"], found["Most"]) == (0.40, 0.45)
    assert made.rows[1].cells[0].value == 0.0  # TM is the same in all
    assert "The answers differ on 2 of 3 steps." in made.notes
    assert "The verdicts differ on 1 of 3 steps." in made.notes
    assert [row.labels[1] for row in report(runs).tables[0].rows] == ["seed=1", "seed=2", "seed=3"]


def test_pass_at_k_and_pass_all_k_are_over_steps_and_whole_episodes(tmp_path: Path) -> None:
    """T1 is right in none, one step of two in three; T2 in one run of three."""
    runs = [
        seeded(tmp_path, n, 40.0, exact, "xyz") for n, exact in enumerate(("+--", "+--", "+-+"))
    ]
    for run in runs:
        run.results["counts"].update(episodes=2, whole_episodes=2)
    (made,) = [table for table in report(runs).tables if table.name == "repeats-pass"]
    shown = {
        row.group: dict(zip((c.metric for c in made.columns), row.cells, strict=True))
        for row in made.rows
    }
    steps, episodes = (
        {name: round(cell.value or 0, 4) for name, cell in cells.items()}
        for cells in shown.values()
    )
    # Right runs of three: 3, 0, 1 by step; 0, 1 by episode.
    assert steps == {
        "pass@1": 0.4444, "pass@2": 0.5556, "pass@3": 0.6667,
        "pass^1": 0.4444, "pass^2": 0.3333, "pass^3": 0.3333,
    }  # fmt: skip
    assert episodes == {
        "pass@1": 0.1667, "pass@2": 0.3333, "pass@3": 0.5,
        "pass^1": 0.1667, "pass^2": 0.0, "pass^3": 0.0,
    }  # fmt: skip


def test_episodes_that_ids_and_counts_number_otherwise_are_not_shown(runs: list[Run]) -> None:
    for run in runs:
        run.results["counts"].update(episodes=1, whole_episodes=1)  # the ids name two
    (made,) = [table for table in report(runs).tables if table.name == "repeats-pass"]
    assert [row.group for row in made.rows] == ["EM of steps"]


def test_a_total_that_a_run_lacks_has_no_mean(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "2", seed=2),
        write_run(tmp_path / "3", seed=3, overall=(1.0, 2.0, None, 4.0)),
    ]
    (made,) = [table for table in report(runs).tables if table.name == "repeats"]
    assert [row.cells[2].value for row in made.rows] == [None] * 4


def test_a_copied_folder_is_told_and_is_no_repeat(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", answers={IDS[0]: "x"}, timings={"ask_s": 0.125})
    copytree(run.path, tmp_path / "copy")
    again = write_run(tmp_path / "again", answers={IDS[0]: "x"}, timings={"ask_s": 0.126})
    copy = read_run(tmp_path / "copy")
    made = report([run, copy])
    assert any("a copy of" in told for told in made.warnings)
    assert "repeats" not in [table.name for table in made.tables]
    (found,) = [each for each in report([run, copy, again]).tables if each.name == "repeats"]
    assert "2 runs" in found.title


def test_equal_runs_without_timings_are_not_taken_for_copies(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, answers={IDS[0]: "x"}) for name in ("run", "again")]
    made = report(runs)
    assert not any("a copy of" in told for told in made.warnings)
    assert "repeats" in [table.name for table in made.tables]


def test_a_control_is_no_repeat_of_the_normal_run(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "normal"),
        write_run(tmp_path / "silent", control={"name": "silence", "seed": None, "steps": 3}),
    ]
    assert "repeats" not in [table.name for table in report(runs).tables]
