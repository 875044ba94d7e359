"""Intervals and p are those of scipy and of published examples, and keep what they promise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.analysis.inference import Estimate, correct_p_values, estimate, mcnemar
from omnidata.metrics.intervals import Floats
from omnidata.metrics.paired import Sums
from tests.full import FULL


def ratio(sums: Floats) -> Floats:
    found: Floats = sums[..., :1] / sums[..., 1:]
    return found


def shares(a: Sequence[int], b: Sequence[int], steps: Sequence[int]) -> Sums:
    before, after = (np.column_stack([right, steps]).astype(np.float64) for right in (a, b))
    return Sums(before, after, ratio, [(0, 1)])


def drawn(seed: int, episodes: int, *, a: float, b: float, alike: float = 0.0) -> Sums:
    """Two runs of such accuracy, whose steps follow their episode's luck to that share."""
    from scipy import stats

    rng = np.random.default_rng(seed)
    steps = rng.integers(1, 7, episodes)
    luck = rng.normal(0, 1, (2, episodes))
    both = []
    for share, own in zip((a, b), luck, strict=True):
        edge = stats.norm.ppf(share)
        noise = [rng.normal(0, 1, count) for count in steps]
        mixed = [
            np.sqrt(alike) * lucky + np.sqrt(1 - alike) * each
            for lucky, each in zip(own, noise, strict=True)
        ]
        both.append([int((each < edge).sum()) for each in mixed])
    return shares(both[0], both[1], steps.tolist())


def only(sums: Sums, **how: int) -> Estimate:
    (found,) = estimate(sums, **how)
    return found


def test_mcnemars_test_gives_the_p_of_statsmodels() -> None:
    """`mcnemar([[10, 8], [1, 5]], exact=True)` and [[10, 14], [5, 5]] of statsmodels 0.15."""
    for flips, p in (((8, 1), 0.0390625), ((14, 5), 0.063568115234375)):
        a = np.array([True] * (10 + flips[0]) + [False] * (flips[1] + 5))
        b = np.array([True] * 10 + [False] * flips[0] + [True] * flips[1] + [False] * 5)
        found = mcnemar(a, b)
        assert (found.a_only, found.b_only) == flips
        assert found.p == pytest.approx(p, rel=1e-12)
        assert mcnemar(b, a).p == found.p
        assert mcnemar(a, a) == (0, 0, 1.0)


def test_correction_is_that_of_the_paper() -> None:
    """The 15 p of Benjamini and Hochberg's example (section 3.2), four of which are below 0.05."""
    ps = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240]
    ps += [0.4262, 0.5719, 0.6528, 0.7590, 1.0]
    found = correct_p_values([ps[9], None, *ps[:9], *ps[10:]])
    assert found[1] is None
    qs = [q for q in found if q is not None]
    assert sum(q < 0.05 for q in qs) == 4
    assert qs[1:5] == pytest.approx([0.0015, 0.003, 0.0095, 0.035625])
    assert correct_p_values([None]) == [None]


def test_the_interval_is_that_of_scipys_paired_bootstrap() -> None:
    from scipy import stats

    sums = drawn(3, 200, a=0.55, b=0.62, alike=0.4)
    found = only(sums)

    def difference(*columns: Floats, axis: int = -1) -> Floats:
        right_a, steps_a, right_b, steps_b = (column.sum(axis=axis) for column in columns)
        value: Floats = right_b / steps_b - right_a / steps_a
        return value

    columns = (*sums.a.T, *sums.b.T)
    other = stats.bootstrap(
        columns, difference, paired=True, n_resamples=10_000, method="percentile", rng=1
    ).confidence_interval
    assert found.ci95 == pytest.approx((other.low, other.high), abs=0.003)
    assert found.difference == pytest.approx(float(difference(*columns)))


@pytest.mark.parametrize("episodes", [9, 60])
def test_p_is_that_of_scipys_permutation_test(episodes: int) -> None:
    """Exact for few episodes, by chance for many."""
    from scipy import stats

    sums = drawn(5, episodes, a=0.5, b=0.6, alike=0.3)
    found = only(sums)

    def difference(a: Floats, b: Floats, axis: int = -1) -> Floats:
        value: Floats = (b - a).sum(axis=axis)
        return value

    other = stats.permutation_test(
        (sums.a[:, 0], sums.b[:, 0]),
        difference,
        permutation_type="samples",
        n_resamples=np.inf if episodes < 12 else 10_000,
        rng=1,
    )
    assert found.p == pytest.approx(other.pvalue, abs=1e-9 if episodes < 12 else 0.015)


def test_the_same_seed_gives_the_same_numbers() -> None:
    sums = drawn(1, 80, a=0.5, b=0.6)
    assert only(sums, seed=4) == only(sums, seed=4)
    assert only(sums, seed=4).ci95 != only(sums, seed=5).ci95


def test_many_kinds_of_episodes_are_drawn_in_portions() -> None:
    """More than two million random numbers at a time would be held otherwise."""
    rng = np.random.default_rng(0)
    steps = rng.integers(1, 1000, 900)
    a, b = rng.integers(0, steps), rng.integers(0, steps)
    found = only(shares(a.tolist(), b.tolist(), steps.tolist()), resamples=3000)
    assert found.ci95 is not None and found.difference is not None
    assert found.ci95[0] < found.difference < found.ci95[1]


def test_where_there_is_no_interval_there_is_a_reason() -> None:
    one = only(shares([2], [0], [2]))
    assert (one.difference, one.ci95, one.p) == (-1.0, None, 1.0)
    assert one.why == "too few episodes (1)"
    five = only(shares([1] * 5 + [0] * 40, [0] * 45, [1] * 45))
    assert (five.ci95, five.p) == (None, 2 / 2**5)
    assert five.why == "too few episodes differ (5)"
    six = only(shares([1] * 6 + [0] * 39, [0] * 45, [1] * 45))
    assert six.ci95 is not None and not six.why
    assert six.p == 2 / 2**6
    same = only(shares([1, 2] * 20, [1, 2] * 20, [3] * 40))
    assert (same.difference, same.ci95, same.p) == (0.0, None, 1.0)
    assert same.why == "no episode differs"
    for sums in (shares([0] * 20, [0] * 20, [0] * 20), shares([], [], [])):
        none = only(sums)
        assert (none.a, none.b, none.difference, none.p, none.ci95) == (None,) * 5
        assert none.why == "undefined"


Episode = st.tuples(st.integers(1, 4), st.integers(0, 4), st.integers(0, 4))


@given(st.lists(Episode, min_size=1, max_size=9))
def test_which_run_comes_first_changes_the_sign_alone(drawn: list[tuple[int, int, int]]) -> None:
    steps = [count for count, _, _ in drawn]
    a = [min(count, right) for count, right, _ in drawn]
    b = [min(count, right) for count, _, right in drawn]
    there, back = (only(shares(*both, steps), resamples=600) for both in ((a, b), (b, a)))
    assert there.difference is not None and back.difference is not None
    assert there.difference == pytest.approx(-back.difference)
    assert (there.p, there.differing) == (back.p, back.differing)


@pytest.mark.slow
def test_without_a_difference_one_p_in_twenty_is_below_a_twentieth() -> None:
    """Although the steps of an episode fall together; and intervals hold nothing as often."""
    times, tolerance = (4000, 0.012) if FULL else (200, 0.03)
    low, missed = 0, 0
    for seed in range(times):
        found = only(drawn(seed, 50, a=0.6, b=0.6, alike=0.5), resamples=1000)
        assert found.p is not None and found.ci95 is not None
        low += found.p < 0.05
        missed += not found.ci95[0] <= 0 <= found.ci95[1]
    assert low / times == pytest.approx(0.05, abs=tolerance)
    assert missed / times == pytest.approx(0.06, abs=tolerance)


def test_a_true_difference_is_found() -> None:
    found = only(drawn(0, 200, a=0.4, b=0.6))
    assert found.p is not None and found.p < 0.001
    assert found.ci95 is not None and found.ci95[0] > 0.05
