"""Episode metrics: the table is the definitions, and intervals behave."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnidata.metrics import episodes
from omnidata.metrics.episodes import METRICS, StepVerdicts
from omnidata.metrics.intervals import wilson
from omnidata.tasks.published import read_published

Row = tuple[bool, bool, bool]
"""Type match, exact match and format of one step."""
rows = st.tuples(st.booleans(), st.booleans(), st.booleans())
some_episodes = st.lists(
    st.tuples(st.lists(rows, min_size=1, max_size=9), st.booleans()), max_size=12
)


def columns(
    held: Sequence[tuple[Sequence[Row], bool]], shuffled: Sequence[int] | None = None
) -> StepVerdicts:
    """Episodes as columns; a cut episode is marked in its last row only."""
    flat = [
        (code, place, *row, whole or place < len(steps) - 1)
        for code, (steps, whole) in enumerate(held)
        for place, row in enumerate(steps)
    ]
    if shuffled is not None:
        flat = [flat[index] for index in shuffled]
    table = np.array(flat, dtype=np.float64).reshape(len(flat), 6)
    return StepVerdicts(
        episode=table[:, 0].astype(np.int64),
        order=table[:, 1].astype(np.int64),
        type_match=table[:, 2],
        exact_match=table[:, 3],
        format_ok=table[:, 4],
        whole=table[:, 5].astype(np.bool_),
    )


def mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


@settings(deadline=None, max_examples=60)
@given(some_episodes, st.randoms(use_true_random=False))
def test_the_table_is_the_mean_of_the_definitions_in_any_order_of_rows(
    held: list[tuple[list[Row], bool]], random: Any
) -> None:
    count = sum(len(steps) for steps, _ in held)
    found = episodes.table(columns(held, random.sample(range(count), count)))
    flat = [row for steps, _ in held for row in steps]
    exact = [[row[1] for row in steps] for steps, whole in held if whole]
    wanted = {
        "TM": mean([row[0] for row in flat]),
        "EM": mean([row[1] for row in flat]),
        "format_ok": mean([row[2] for row in flat]),
        "SR": mean([episodes.success(verdicts) for verdicts in exact]),
        "GP_ratio": mean([episodes.goal_progress_ratio(verdicts) for verdicts in exact]),
        "GP_prefix": mean([episodes.goal_progress_prefix(verdicts) for verdicts in exact]),
    }
    for name, value in wanted.items():
        assert found[name] == (value if value is None else pytest.approx(value, abs=1e-12)), name
    assert (found["steps"], found["episodes"]) == (count, len(held))
    assert found["whole_episodes"] == len(exact)


@settings(deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_success_is_at_most_the_prefix_and_the_prefix_at_most_the_ratio(exact: list[bool]) -> None:
    success, prefix = episodes.success(exact), episodes.goal_progress_prefix(exact)
    assert 0 <= success <= prefix <= episodes.goal_progress_ratio(exact) <= 1


def test_goal_progress_of_omniguis_table_3_is_no_ratio() -> None:
    """Each right step adds at least 1 / its episode's length to a sum of ratios of correct steps.

    So one model's ratios print as 0.0 only if its episodes have more than 95 steps; they have 3.6.
    """
    rows = read_published("omnidata.tasks.omnigui", "omnigui").of("main")
    (row,) = (row for row in rows if row.model == "Baichuan-Omni-1.5" and "3" in row.source)
    group, steps_per_episode = "cross_modal_discrimination", 2579 / 709
    progress, exact = (row.values[group, name] for name in ("GP", "EM"))
    assert (exact - 0.0005) * steps_per_episode / (progress + 0.0005) > 95


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 40), st.data())
def test_one_wrong_step_costs_what_the_definitions_say(steps: int, data: st.DataObject) -> None:
    wrong = data.draw(st.integers(0, steps - 1))
    right: Row = (True, True, True)
    perfect = episodes.table(columns([([right] * steps, True)]))
    spoiled = [right] * wrong + [(True, False, True)] + [right] * (steps - wrong - 1)
    found = episodes.table(columns([(spoiled, True)]))
    assert all(perfect[name] == 1.0 for name in METRICS)
    assert found["TM"] == found["format_ok"] == 1.0
    assert perfect["EM"] - found["EM"] == pytest.approx(1 / steps, abs=1e-12)
    assert found["SR"] == 0.0
    assert found["GP_ratio"] == pytest.approx((steps - 1) / steps, abs=1e-12)
    assert found["GP_prefix"] == pytest.approx(wrong / steps, abs=1e-12)


@pytest.mark.parametrize(("first", "prefix"), [(True, 0.5), (False, 0.0)])
def test_steps_in_the_same_place_count_in_the_order_of_the_rows(first: bool, prefix: float) -> None:
    exact = np.array([first, not first], dtype=np.float64)
    zeros = np.zeros(2, dtype=np.int64)
    verdicts = StepVerdicts(zeros, zeros, exact, exact, exact, np.ones(2, dtype=np.bool_))
    assert episodes.table(verdicts)["GP_prefix"] == prefix


@settings(deadline=None, max_examples=30)
@given(some_episodes, st.lists(st.sampled_from(["b", "a", None]), min_size=12, max_size=12))
def test_a_groups_table_is_the_table_of_its_steps(
    held: list[tuple[list[Row], bool]], labels: list[str | None]
) -> None:
    verdicts = columns(held)
    codes, names = episodes.codes([labels[code] for code in verdicts.episode.tolist()])
    groups = episodes.by_group(verdicts, codes, names)
    wanted = {}
    for name in ("a", "b"):
        kept = [one for one, label in zip(held, labels, strict=False) if label == name]
        if kept:
            wanted[name] = episodes.table(columns(kept))
    assert groups == wanted


def sample(count: int, *, seed: int) -> StepVerdicts:
    """Episodes of 1 to 6 steps of a model that is right in four of five."""
    random = np.random.default_rng(seed)
    held = []
    for length in random.integers(1, 7, count):
        type_match = random.random(length) < 0.9
        exact = type_match & (random.random(length) < 0.9)
        format_ok = random.random(length) < 0.95
        rows = [
            (bool(a), bool(b), bool(c))
            for a, b, c in zip(type_match, exact, format_ok, strict=True)
        ]
        held.append((rows, True))
    return columns(held)


@pytest.mark.parametrize("seed", range(2))
def test_the_intervals_hold_the_values_and_narrow_with_the_sample(seed: int) -> None:
    small, large = (episodes.table(sample(count, seed=seed)) for count in (200, 3_200))
    for name in METRICS:
        widths = []
        for found in (small, large):
            low, high = found["ci95"][name]
            assert 0 <= low < found[name] < high <= 1, name
            widths.append(high - low)
        assert 3 < widths[0] / widths[1] < 5.5, name  # four, as 16 times the episodes should


@pytest.mark.parametrize("name", ["SR", "EM"])
def test_the_interval_is_as_wide_as_theory_has_it(name: Literal["SR", "EM"]) -> None:
    """Of episodes of one step each, SR and EM are shares of independent draws."""
    right, wrong = (True, True, True), (True, False, True)
    held = [([right if index % 4 else wrong], True) for index in range(1_600)]
    found = episodes.table(columns(held))
    low, high = found["ci95"][name]
    assert found[name] == 0.75
    assert high - low == pytest.approx(2 * 1.96 * math.sqrt(0.75 * 0.25 / 1_600), rel=0.08)


def test_the_intervals_depend_on_the_seed_and_on_nothing_else() -> None:
    verdicts = sample(300, seed=1)
    first = episodes.table(verdicts, seed=5)
    backwards = verdicts.where(np.arange(len(verdicts.episode))[::-1])
    assert episodes.table(verdicts, seed=5) == first
    assert episodes.table(backwards, seed=5)["ci95"] == first["ci95"]
    assert episodes.table(verdicts, seed=6)["ci95"] != first["ci95"]


def test_episodes_of_one_group_are_drawn_together() -> None:
    """Four copies of each episode say no more than one; groups of one change nothing."""
    single = sample(80, seed=3)
    four = single.where(np.repeat(np.arange(len(single.episode)), 4))
    torn = replace(four, episode=4 * four.episode + np.arange(len(four.episode)) % 4)
    alone, twins, apart = (
        episodes.table(verdicts, seed=2)
        for verdicts in (
            replace(single, group=single.episode + 7),
            replace(torn, group=four.episode),
            torn,
        )
    )
    assert twins["episodes"] == 4 * alone["episodes"] == 320
    for name in METRICS:
        assert alone[name] == twins[name] == pytest.approx(episodes.table(single)[name])
        widths = [high - low for low, high in (t["ci95"][name] for t in (alone, twins, apart))]
        assert widths[1] == pytest.approx(widths[0], rel=0.25)
        assert widths[2] < 0.75 * widths[1]


@settings(deadline=None, max_examples=40)
@given(st.lists(rows, min_size=1, max_size=9), st.integers(1, 400), st.integers(0, 99))
def test_equal_episodes_leave_only_nothing_and_all_uncertain(
    one: list[Row], count: int, seed: int
) -> None:
    found = episodes.table(columns([(one, True)] * count), seed=seed)
    extreme = [name for name in METRICS if found[name] in (0, 1)]
    others = dict.fromkeys(set(METRICS) - set(extreme), "none: one group") if count == 1 else {}
    assert found.get("ci95_method", {}) == dict.fromkeys(extreme, "wilson") | others
    for name in METRICS:
        if name in others:
            assert found["ci95"][name] is None
            continue
        low, high = found["ci95"][name]
        if name in extreme:
            assert (low, high) == wilson(count * int(found[name]), count)
            continue
        assert high - low == pytest.approx(0, abs=1e-12)
        assert low == pytest.approx(found[name], abs=1e-12)


@pytest.mark.parametrize("group", [None, np.zeros(6, np.int64)])
def test_of_one_group_there_is_no_interval(group: npt.NDArray[np.int64] | None) -> None:
    """One episode, or several that belong together, tell nothing of others."""
    right, wrong = (True, True, True), (True, False, True)
    held = [[right, wrong, right], [wrong, wrong, right]] if group is not None else [[right, wrong]]
    found = episodes.table(replace(columns([(rows, True) for rows in held]), group=group))
    none = ("EM", "GP_ratio", "GP_prefix")
    assert all(0 < found[name] < 1 and found["ci95"][name] is None for name in none)
    assert found["ci95"]["SR"] == [*(wilson(0, 1) or ())]
    assert found["ci95"]["TM"] == [*(wilson(1, 1) or ())]
    told = dict.fromkeys(none, "none: one group")
    assert found["ci95_method"] == told | dict.fromkeys(("TM", "SR", "format_ok"), "wilson")


def test_of_one_whole_episode_among_cut_ones_goal_progress_has_no_interval() -> None:
    right, wrong = (True, True, True), (True, False, True)
    held = [([right, wrong], True), ([right, right], False), ([wrong], False)]
    found = episodes.table(columns(held))
    assert found["ci95"]["GP_ratio"] is None
    assert found["ci95_method"]["GP_ratio"] == "none: one group"
    low, high = found["ci95"]["EM"]
    assert low < found["EM"] < high


def test_of_no_steps_nothing_is_known() -> None:
    found = episodes.table(columns([]))
    assert all(found[name] is None and found["ci95"][name] is None for name in METRICS)
    assert found["steps"] == found["episodes"] == found["whole_episodes"] == 0


def test_intervals_of_episode_metrics_are_drawn_from_whole_episodes_only() -> None:
    right: Row = (True, True, True)
    held = [([right], True), ([right], True), ([right, right], False)]
    found = episodes.table(columns(held))
    assert found["ci95"]["SR"] == [*(wilson(2, 2) or ())]  # and not of three


def test_none_of_149_steps_is_no_proof_that_none_can_be_right() -> None:
    wrong: Row = (True, False, True)
    sizes = [4] * 17 + [3] * 27
    found = episodes.table(columns([([wrong] * size, True) for size in sizes]))
    assert (found["steps"], found["episodes"], found["EM"]) == (149, 44, 0.0)
    assert found["ci95"]["EM"] == pytest.approx([0.0, 0.0803], abs=1e-4)
    assert found["ci95_method"]["EM"] == "wilson"
    one_right = [([(True, True, True), *[wrong] * 3], True), *[([wrong] * 3, True)] * 43]
    assert "EM" not in episodes.table(columns(one_right)).get("ci95_method", {})
