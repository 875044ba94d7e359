"""Calibration, held against definitions written out and scikit-learn."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss

from omnidata.metrics.calibration import (
    area_under_risk_coverage,
    brier,
    calibration,
    expected_calibration_error,
    reliability,
    selective,
)

answers = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40)
coarse = st.lists(
    st.tuples(st.sampled_from([0.0, 0.3, 0.6, 1.0]), st.booleans()), min_size=1, max_size=6
)


@given(answers)
def test_brier_is_scikit_learns(pairs: list[tuple[float, bool]]) -> None:
    sure, right = zip(*pairs, strict=True)
    assert brier(sure, right) == pytest.approx(brier_score_loss(right, sure, labels=[False, True]))


@given(st.lists(st.tuples(st.integers(0, 99), st.booleans()), min_size=1, max_size=40))
def test_the_diagram_is_scikit_learns(pairs: list[tuple[int, bool]]) -> None:
    """On the edge of a bin both differ; these confidences lie on none."""
    sure = [(each + 0.5) / 100 for each, _ in pairs]
    right = [each for _, each in pairs]
    true, said = calibration_curve(right, sure, n_bins=10)
    found = reliability(sure, right, bins=10)
    assert [row["accuracy"] for row in found] == pytest.approx(true.tolist())
    assert [row["confidence"] for row in found] == pytest.approx(said.tolist())


@given(answers, st.integers(1, 20))
def test_ece_is_the_papers_sum(pairs: list[tuple[float, bool]], bins: int) -> None:
    sure, right = zip(*pairs, strict=True)
    total = 0.0
    edges = np.arange(bins + 1) / bins
    for m in range(bins):
        inside = [
            (each, hit)
            for each, hit in pairs
            if edges[m] < each <= edges[m + 1] or (m == 0 and each == 0)
        ]
        if inside:
            accuracy = sum(hit for _, hit in inside) / len(inside)
            confidence = sum(each for each, _ in inside) / len(inside)
            total += len(inside) / len(pairs) * abs(accuracy - confidence)
    assert expected_calibration_error(sure, right, bins=bins) == pytest.approx(total)
    assert sum(row["rows"] for row in reliability(sure, right, bins=bins)) == len(pairs)


@given(answers)
def test_a_threshold_keeps_what_is_as_sure_or_surer(pairs: list[tuple[float, bool]]) -> None:
    sure, right = zip(*pairs, strict=True)
    for point in selective(sure, right):
        kept = [hit for each, hit in pairs if each >= point["threshold"]]
        assert point["coverage"] == pytest.approx(len(kept) / len(pairs))
        assert point["accuracy"] == pytest.approx(sum(kept) / len(kept))
    assert selective(sure, right)[-1]["coverage"] == 1.0


@given(coarse)
def test_aurc_is_the_mean_over_all_orders_of_equals(pairs: list[tuple[float, bool]]) -> None:
    sure, right = zip(*pairs, strict=True)
    found = []
    for order in permutations(pairs):
        if [each for each, _ in order] != sorted((each for each, _ in order), reverse=True):
            continue
        wrong = np.cumsum([not hit for _, hit in order])
        found.append(np.mean(wrong / np.arange(1, len(order) + 1)))
    assert area_under_risk_coverage(sure, right) == pytest.approx(np.mean(found))


def test_nothing_is_known_of_no_answer() -> None:
    found = calibration([], [])
    assert [found[name] for name in ("rows", "ece", "brier", "aurc")] == [0, None, None, None]
    assert (found["reliability"], found["selective"]) == ([], [])


@pytest.mark.parametrize("sure", [[1.5], [-0.1], [float("nan")], [0.5, 0.5]])
def test_what_is_no_confidence_is_refused(sure: list[float]) -> None:
    with pytest.raises(ValueError, match=r"confidence"):
        brier(sure, [True])
