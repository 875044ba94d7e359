"""Answers are read in a time that grows with their length, and no further than is worth reading."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from omnidata.dialects import dialects
from omnidata.registry import benchmarks
from omnidata.tasks import get_task
from tests.dialects.test_every_dialect import pieces_of
from tests.full import FULL
from tests.linear import ASCII, PAIRS, Frame, Reader, dialect_readers, grow, task_readers
from tests.tasks.test_hostile_answers import UNITS, first_step

LENGTH = 3_000
LONGEST = 1_048_576
RUNS = (
    *("\n", " ", "\t", "\\", '"', "'", "(", "[", "{", "<", "9", "a", ".", "-", ":", "`"),
    *("\n ", '\\"', "\\'", "' ", '"\n', "({", "1,", "1.", "x=", "**", "# ", "a("),
)
"""Of all runs of one character and of two, those that a reader is most likely to stumble over."""


AROUND: Mapping[str, Frame] = {
    "os-atlas-pro": ("actions:\n", ""),
    "ui-tars-1.5": ("Action: ", ""),
    "gui-r1": ("<answer>", "'action': 'click'</answer>"),
}
"""Where readers of dialects begin to look."""
KEYS_OF_TOOLS = (
    ('{"action": "key", "text": "', "a+", '", "type": "keypress", "keys": "+++++++++"}'),
    ('{"name": "key_combination", "args": {"keys": "', "+", '"}}'),
)


def steep(reader: Reader, runs: Iterable[str], frames: Iterable[Frame]) -> list[object]:
    return [
        found for frame in frames for run in runs if (found := grow(reader, frame, run, LENGTH))
    ]


def every_run(reader: Reader) -> list[object]:
    """In full, of all characters and all pairs of two, which takes minutes."""
    if FULL:
        return [*steep(reader, ASCII, reader.frames), *steep(reader, PAIRS, reader.frames[:1])]
    return steep(reader, RUNS, reader.frames[:2])


@pytest.mark.parametrize("name", dialects())
def test_a_dialect_reads_every_run_in_linear_time(name: str) -> None:
    for reader in dialect_readers([name]):
        assert not every_run(reader)
        assert not steep(reader, pieces_of(name), {("", ""), AROUND.get(name, ("", ""))})
        for before, run, after in KEYS_OF_TOOLS:
            assert not steep(reader, [run], [(before, after)])


@pytest.mark.parametrize("name", benchmarks())
def test_a_benchmark_reads_every_run_in_linear_time(tmp_path: Path, name: str) -> None:
    for reader in task_readers(tmp_path, [name]):
        assert not every_run(reader)
        for before, run, after in UNITS[1:]:
            assert not steep(reader, [run], [(before, after)])


def test_a_reader_that_is_not_linear_is_found() -> None:
    quadratic = Reader("quadratic", re.compile(r"\n\s*+x").search, ())
    assert grow(quadratic, ("", ""), "\n", LENGTH) is not None
    linear = Reader("linear", re.compile(r"(?<!\s)\s*+x").search, ())
    assert grow(linear, ("", ""), "\n", 200 * LENGTH) is None


@pytest.mark.parametrize("name", benchmarks())
def test_of_an_answer_beyond_all_lengths_the_beginning_is_read_and_that_is_said(
    tmp_path: Path, name: str
) -> None:
    task = get_task(name)
    step, right = first_step(task, tmp_path)
    whole = right + " " * (LONGEST - len(right))
    told = f"only the first 1,048,576 of {LONGEST + 7:,} characters were read"
    for profile in task.profiles.values():
        exact = profile.judge(step, whole)
        assert told not in exact.reason
        cut = profile.judge(step, whole + "repeats")
        assert (cut.outcome, cut.values, cut.parsed) == (exact.outcome, exact.values, exact.parsed)
        assert cut.reason.endswith(told)
    again = task.history_action(step, whole + "repeats")
    assert again == task.history_action(step, whole)


def test_of_an_answer_in_a_dialect_no_more_is_read_either(tmp_path: Path) -> None:
    task = get_task("omnigui", {"dialect": "qwen3"})
    step, right = first_step(task, tmp_path)
    late = " " * LONGEST + right
    for profile in task.profiles.values():
        assert profile.judge(step, right).outcome == "ok"
        verdict = profile.judge(step, late)
        assert verdict.outcome == "unparsed"
        assert "only the first 1,048,576 of" in verdict.reason
    assert task.history_action(step, late) is None


def test_explanations_in_a_dialect_follow_from_what_was_judged_of_a_long_answer(
    tmp_path: Path,
) -> None:
    task = get_task("omnigui", {"dialect": "gui-r1"})
    step, right = first_step(task, tmp_path)
    late = right + " " * (LONGEST - len(right)) + right.replace("click", "long_press")
    name, profile = task.default_profile, task.profiles[task.default_profile]
    told = task.explanation(step, profile.judge(step, late), late, profile=name)
    assert told.mark == "right"
    assert told.answer_label == told.target_label == "TAP"
