"""Answers are read in a time that grows with their length, and no further than is worth reading."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from omnidata.dialects import dialects
from omnidata.registry import benchmarks
from omnidata.tasks import get_task
from tests.linear import ASCII, PAIRS, Reader, dialect_readers, grow, task_readers
from tests.loaders.every import rows_of

LENGTH = 6_000
LONGEST = 1_048_576
RUNS = (
    *("\n", " ", "\t", "\\", '"', "'", "(", "[", "{", "<", "9", "a", ".", "-", ":", "`"),
    *("\n ", '\\"', "\\'", "' ", '"\n', "({", "1,", "1.", "x=", "**", "# ", "a("),
)
"""Of all runs of one character and of two, those that a reader is most likely to stumble over."""


def steep(reader: Reader, runs: tuple[str, ...], frames: int) -> list[object]:
    return [
        found
        for frame in reader.frames[:frames]
        for run in runs
        if (found := grow(reader, frame, run, LENGTH))
    ]


@pytest.mark.parametrize("name", dialects())
def test_a_dialect_reads_every_run_in_linear_time(name: str) -> None:
    for reader in dialect_readers([name]):
        assert not steep(reader, RUNS, 2)


@pytest.mark.parametrize("name", benchmarks())
def test_a_benchmark_reads_every_run_in_linear_time(tmp_path: Path, name: str) -> None:
    for reader in task_readers(tmp_path, [name]):
        assert not steep(reader, RUNS, 2)


@pytest.mark.full("every character and every pair of two takes minutes")
@pytest.mark.parametrize("name", dialects())
def test_a_dialect_reads_runs_of_all_characters_and_pairs_in_linear_time(name: str) -> None:
    for reader in dialect_readers([name]):
        assert not steep(reader, ASCII, 1000)
        assert not steep(reader, PAIRS, 1)


@pytest.mark.full("every character and every pair of two takes minutes")
@pytest.mark.parametrize("name", benchmarks())
def test_a_benchmark_reads_runs_of_all_characters_and_pairs_in_linear_time(
    tmp_path: Path, name: str
) -> None:
    for reader in task_readers(tmp_path, [name]):
        assert not steep(reader, ASCII, 1000)
        assert not steep(reader, PAIRS, 1)


def test_a_reader_that_is_not_linear_is_found() -> None:
    quadratic = Reader("quadratic", re.compile(r"\n\s*+x").search, ())
    assert grow(quadratic, ("", ""), "\n", LENGTH // 2) is not None
    linear = Reader("linear", re.compile(r"(?<!\s)\s*+x").search, ())
    assert grow(linear, ("", ""), "\n", 100 * LENGTH) is None


@pytest.mark.parametrize("name", benchmarks())
def test_of_an_answer_beyond_all_lengths_the_beginning_is_read_and_that_is_said(
    tmp_path: Path, name: str
) -> None:
    task = get_task(name)
    step = task.load(rows_of(name, tmp_path), check_media=False).steps[0]
    step = replace(step, screen=step.screen if min(step.screen) else (32, 32))
    target = task.target(step)
    assert target is not None
    whole = target.text + " " * (LONGEST - len(target.text))
    told = f"only the first 1,048,576 of {LONGEST + 7:,} characters were read"
    for profile in task.profiles.values():
        exact = profile.judge(step, whole)
        assert told not in exact.reason
        cut = profile.judge(step, whole + "repeats")
        assert (cut.outcome, cut.values, cut.parsed) == (
            exact.outcome,
            exact.values,
            exact.parsed,
        )
        assert cut.reason.endswith(told)
    again = task.history_action(step, whole + "repeats")
    assert again == task.history_action(step, whole)


def test_of_an_answer_in_a_dialect_no_more_is_read_either(tmp_path: Path) -> None:
    task = get_task("omnigui", {"dialect": "qwen3"})
    step = task.load(rows_of("omnigui", tmp_path), check_media=False).steps[0]
    target = task.target(step)
    assert target is not None
    late = " " * LONGEST + target.text
    for profile in task.profiles.values():
        assert profile.judge(step, target.text).outcome == "ok"
        verdict = profile.judge(step, late)
        assert verdict.outcome == "unparsed"
        assert "only the first 1,048,576 of" in verdict.reason
    assert task.history_action(step, late) is None


def test_explanations_in_a_dialect_follow_from_what_was_judged_of_a_long_answer(
    tmp_path: Path,
) -> None:
    task = get_task("omnigui", {"dialect": "gui-r1"})
    step = task.load(rows_of("omnigui", tmp_path), check_media=False).steps[0]
    target = task.target(step)
    assert target is not None
    whole = target.text + " " * (LONGEST - len(target.text))
    late = whole + target.text.replace("click", "long_press")
    name, profile = task.default_profile, task.profiles[task.default_profile]
    told = task.explanation(step, profile.judge(step, late), late, profile=name)
    assert told.mark == "right"
    assert told.answer_label == told.target_label == "TAP"
