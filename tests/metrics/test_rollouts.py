"""How rollouts end and what several attempts tell, worked out by hand and by counting."""

from __future__ import annotations

from itertools import combinations
from math import comb
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.metrics.rollouts import (
    Attempt,
    Example,
    behaviour,
    endings,
    pass_all,
    pass_at,
    period,
    repetition,
    total,
    within,
)


@given(st.data())
def test_pass_at_k_and_pass_all_k_are_shares_of_the_choices_of_k(data: st.DataObject) -> None:
    outcomes = data.draw(st.lists(st.booleans(), min_size=1, max_size=7))
    k = data.draw(st.integers(1, len(outcomes)))
    chosen = list(combinations(outcomes, k))
    assert len(chosen) == comb(len(outcomes), k)
    counts = len(outcomes), sum(outcomes), k
    assert pass_at(*counts) == pytest.approx(fmean(map(any, chosen)))
    assert pass_all(*counts) == pytest.approx(fmean(map(all, chosen)))


def test_attempts_that_are_not_there_leave_a_task_out_or_count_as_failed() -> None:
    """Of five tasks a is done twice in two, b once, c was tried once, d never finished, e never."""
    tried: dict[str, list[float | None]] = {
        "a": [1.0, 1.0],
        "b": [1.0, 0.5],
        "c": [1.0],
        "d": [None, 1.0],
    }
    attempts = [Attempt(task, score) for task, scores in tried.items() for score in scores]
    found = repetition(attempts, 2, 5)
    assert (found["n"], found["finished"], found["tasks"]) == (2, 2, 5)
    one, two = found["k"]["1"], found["k"]["2"]
    assert (one["pass@k"], one["pass^k"]) == (0.75, 0.75)
    assert (two["pass@k"], two["pass^k"]) == (1.0, 0.5)
    assert one["pass@k_all"] == one["pass^k_all"] == pytest.approx((1 + 0.5 + 0.5 + 0.5) / 5)
    assert (two["pass@k_all"], two["pass^k_all"]) == (4 / 5, 1 / 5)


def test_many_attempts_are_told_of_a_few_choices_with_how_their_intervals_were_found() -> None:
    attempts = [Attempt(task, float(n < 50)) for task in "abcdef" for n in range(100)]
    attempts += [Attempt("never", 0.0)] * 100
    found = repetition(attempts, 100, 7)["k"]
    assert [*map(int, found)] == [1, 2, 3, 4, 5, 8, 16, 32, 64, 100]
    assert found["100"]["pass^k"] == 0
    assert found["100"]["ci95_method"] == dict.fromkeys(("pass^k", "pass^k_all"), "wilson")
    assert "ci95_method" not in found["1"]


@pytest.mark.parametrize(
    ("turns", "length"),
    [("", 0), ("aa", 0), ("aaa", 1), ("xaaa", 1), ("aaax", 0), ("ababab", 2), ("babab", 0),
     ("abcabcabc", 3), ("zzabababab", 2), ("aabaab", 0)],
)  # fmt: skip
def test_a_cycle_has_come_three_times_up_to_the_last_turn(turns: str, length: int) -> None:
    assert period(list(turns)) == length


def test_endings_are_of_what_was_recorded_and_failures_of_what_did_not_succeed() -> None:
    """Of three that finished one has no score, and one of two is half right."""
    attempts = [
        Attempt("a", 1.0, "finished", 2),
        Attempt("b", 0.5, "finished", 4),
        Attempt("c", None, "finished", 1),
        Attempt("d", 1.0, "fail_right", 1),
        Attempt("e", 0.0, "fail_wrong", 1),
        Attempt("f", None, "time_limit", 3),
        Attempt("g", 1.0),
    ]
    found = behaviour(attempts, limit=5, axes={"by": {"a": "x", "b": "x", "f": "y"}})
    assert found["endings"] == {"finished": 3, "fail_right": 1, "fail_wrong": 1, "time_limit": 1}
    assert found["failures"] == {"finished": 2, "fail_wrong": 1, "time_limit": 1}
    assert (found["active_finish"], found["false_finish"]) == (0.5, 0.5)
    assert (found["attempts"], found["unrecorded"]) == (6, 1)
    assert found["by"]["by"]["x"]["endings"] == {"finished": 2}
    assert found["by"]["by"]["y"]["false_finish"] is None
    assert found["within"] == [0.25, 0.5, 0.5, 0.625, 0.625]
    assert found["area"] == pytest.approx(0.5)
    assert found["lengths"] == {"1": 3, "2": 1, "3": 1, "4": 1}
    assert found["turns"] == {"n": 6, "mean": 2.0, "median": 1.5, "p95": 3.75, "most": 4.0}
    assert found["seconds"] is found["tokens"] is None


def test_parts_of_a_score_count_from_their_own_turns() -> None:
    parts = Attempt("a", 0.75, "no_progress", 21, gains=[(1, 0.25), (2, 0.5)])
    whole = Attempt("b", 1.0, "finished", 3)
    assert within([parts], 21) == [0.25] + [0.75] * 20
    assert within([parts, whole], 4) == [0.125, 0.375, 0.875, 0.875]
    assert behaviour([parts])["area"] == pytest.approx((0.25 + 20 * 0.75) / 21)


def test_attempts_at_one_task_are_drawn_together() -> None:
    """Two tasks, ten attempts each, all alike: as wide as two attempts."""
    many = [Attempt("a", 1.0, "finished"), Attempt("b", 1.0, "crash")] * 10
    assert endings(many)["ci95"]["active_finish"] == endings(many[:2])["ci95"]["active_finish"]


def test_nothing_has_no_rates() -> None:
    assert endings([])["active_finish"] is None
    assert within([Attempt("a", None, "crash", 1)], 3) == []
    assert repetition([], 2, 0)["k"]["2"]["pass@k_all"] is None


def test_groups_of_tags_are_over_the_sets_own_numbers() -> None:
    tried = [
        Example("os", 1.0, 0.5, {"kind": "never", "apps": "2"}),
        Example("os", None, None, {"kind": "ever"}),
    ]
    axes: dict[str, dict[str, int | None]] = {
        "kind": {"ever": 3, "never": 1},
        "apps": {"1": None, "2": None},
        "none": {"x": 5},
    }
    found = total(tried, sizes={"os": 4}, groups={}, axes=axes)
    assert found["overall"]["SR_all"] == 0.125, "of two attempts one did not finish"
    assert set(found["by"]) == {"group", "domain", "kind", "apps"}
    ever, never = found["by"]["kind"]["ever"], found["by"]["kind"]["never"]
    assert (ever["SR_finished"], ever["SR_all"], ever["tasks"]) == (None, 0.0, 3)
    assert (never["SR_finished"], never["SR_all"], never["tasks"]) == (1.0, 0.5, 1)
    assert list(found["by"]["apps"]) == ["2"]
    assert found["by"]["apps"]["2"]["SR_all"] is None
    assert found["by"]["apps"]["2"]["ci95"]["SR_all"] is None
