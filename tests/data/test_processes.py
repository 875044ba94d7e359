"""Calls in processes: one that is lost costs itself alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from omnidata.run.engines import Lost, each
from tests.data import calls
from tests.full import in_gate


class Asked(Sequence[int]):
    """Numbers from 0 on.

    Attributes:
        numbers: those that were asked for.
    """

    def __init__(self, count: int) -> None:
        self.numbers: list[int] = []
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: int) -> int:  # type: ignore[override]  # nobody cuts it
        self.numbers.append(number)
        return number


EVEN = [0, 2, 4, 6, 8, 10, 12, 14]


@pytest.mark.parametrize("workers", [0, 3])
def test_answers_come_in_the_order_of_the_items(workers: int) -> None:
    assert list(each(calls.double, range(8), workers=workers, limit_s=60)) == EVEN


def test_no_items_give_no_answers() -> None:
    assert list(each(calls.double, [], workers=2, limit_s=60)) == []


def test_calls_run_in_other_processes_whose_limit_may_be_longer_than_the_system_can_wait() -> None:
    assert all(each(calls.is_elsewhere, [1, 2], workers=1, limit_s=1e9))


@pytest.mark.parametrize("workers", in_gate([1, 2], 1, "the same with another at work"))
def test_a_process_that_is_killed_costs_its_own_answer(workers: int) -> None:
    found = list(each(calls.die_of_three, range(8), workers=workers, limit_s=60))
    lost = found[3]
    assert isinstance(lost, Lost)
    assert not lost.timed_out
    assert "SIGKILL" in lost.why
    assert found[:3] + found[4:] == EVEN[:3] + EVEN[4:]


@pytest.mark.parametrize("workers", in_gate([3, 1], 1, "the same with one alone"))
def test_a_call_whose_process_was_ended_from_outside_is_made_again(
    tmp_path: Path, workers: int
) -> None:
    marks = [str(tmp_path / name) for name in "abc"]
    (tmp_path / "b").touch()
    assert list(each(calls.die_once, marks, workers=workers, limit_s=60)) == [*"abc"]


def test_few_large_answers_wait_for_a_slow_one() -> None:
    asked = Asked(12)
    answers = each(calls.large_after_slow, asked, workers=2, limit_s=60)
    large = bytes(16 * 1024**2)
    assert next(answers) == large
    assert len(asked.numbers) <= 8
    assert all(answer == large for answer in answers)
    assert asked.numbers == [*range(12)]


def test_there_may_be_no_limit() -> None:
    assert list(each(calls.double, [1, 2], workers=1, limit_s=float("inf"))) == [2, 4]


@pytest.mark.parametrize("workers", in_gate([2, 1], 1, "the same with one alone"))
def test_a_call_that_hangs_is_ended(workers: int) -> None:
    found = list(each(calls.hang_at_three, range(8), workers=workers, limit_s=1))
    lost = found[3]
    assert isinstance(lost, Lost)
    assert lost.timed_out
    assert found[:3] + found[4:] == EVEN[:3] + EVEN[4:]


def test_every_call_may_be_lost() -> None:
    found = list(each(calls.exit_at_all, [1, 2], workers=1, limit_s=60))
    assert [lost.why for lost in found if isinstance(lost, Lost)] == [
        f"the worker process ended (exit code {code})" for code in (1, 2)
    ]


def test_a_script_without_a_guard_is_told_what_to_do(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from omnidata.run.engines import each\n"
        "from tests.data.calls import double\n"
        "print(list(each(double, [1], workers=1, limit_s=60)))\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, str(script)],
        env={"PYTHONPATH": str(root)}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode != 0
    assert "__main__" in done.stderr
    assert "PlatformError" in done.stderr
