"""Calibration of confidences: reliability, ECE, Brier score, AURC.

All are pure functions of confidences in [0, 1] and of the correctness of answers. A critic's answer
is right if its judgement is, and its confidence is that in its judgement.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from omnidata.metrics.intervals import Floats, Mask

BINS: Final = 15
"""As in Guo et al. (2017), table 1."""


def _check(confidence: npt.ArrayLike, right: npt.ArrayLike) -> tuple[Floats, Floats]:
    sure = np.asarray(confidence, dtype=np.float64)
    true = np.asarray(right, dtype=np.bool_).astype(np.float64)
    if sure.ndim != 1 or sure.shape != true.shape:
        raise ValueError(f"confidences {sure.shape} and answers {true.shape} are not alike")
    if not ((sure >= 0) & (sure <= 1)).all():
        raise ValueError("a confidence is not in [0, 1]")
    return sure, true


def reliability(
    confidence: npt.ArrayLike, right: npt.ArrayLike, *, bins: int = BINS
) -> list[dict[str, Any]]:
    """Return the reliability diagram: mean confidence and accuracy in bins of equal width.

    C. Guo et al., On Calibration of Modern Neural Networks (2017), section 2: bin m of M holds
    confidences in ((m - 1) / M, m / M]; 0 is in the first.

    Args:
        confidence: (N,), in [0, 1].
        right: bool (N,).
        bins: M.

    Returns:
        A row for each bin with answers: its ends `low` and `high`; `rows`; the means `confidence`
        and `accuracy`.

    Examples:
        >>> rows = reliability([0.9, 0.8, 0.3], [True, False, False], bins=2)
        >>> [(row["rows"], round(row["confidence"], 2), row["accuracy"]) for row in rows]
        [(1, 0.3, 0.0), (2, 0.85, 0.5)]
    """
    sure, true = _check(confidence, right)
    edges = np.arange(bins + 1) / bins
    number = np.clip(np.searchsorted(edges, sure, side="left") - 1, 0, bins - 1)
    found = []
    for each in np.unique(number).tolist():
        inside: Mask = number == each
        found.append(
            {
                "low": float(edges[each]),
                "high": float(edges[each + 1]),
                "rows": int(inside.sum()),
                "confidence": float(sure[inside].mean()),
                "accuracy": float(true[inside].mean()),
            }
        )
    return found


def expected_calibration_error(
    confidence: npt.ArrayLike, right: npt.ArrayLike, *, bins: int = BINS
) -> float | None:
    """Return ECE, the gap between confidence and accuracy per bin, weighted by answers.

    Guo et al. (2017), equation 3, after M. Naeini et al. (2015).

    Args:
        confidence: (N,), in [0, 1].
        right: bool (N,).
        bins: of equal width.

    Returns:
        A number in [0, 1]; None without answers.

    Examples:
        >>> expected_calibration_error([0.5, 0.5], [True, False])
        0.0
        >>> round(expected_calibration_error([1.0, 1.0, 0.5], [True, False, True]), 3)
        0.5
    """
    rows = reliability(confidence, right, bins=bins)
    total = sum(row["rows"] for row in rows)
    if not total:
        return None
    apart = sum(row["rows"] * abs(row["accuracy"] - row["confidence"]) for row in rows)
    return float(apart / total)


def brier(confidence: npt.ArrayLike, right: npt.ArrayLike) -> float | None:
    """Return the mean squared difference between confidence and truth (G. Brier, 1950).

    As scikit-learn's `brier_score_loss` of a yes-or-no question.

    Returns:
        A number in [0, 1]; None without answers.

    Examples:
        >>> round(brier([0.9, 0.4], [True, False]), 3)
        0.085
    """
    sure, true = _check(confidence, right)
    return float(np.mean((sure - true) ** 2)) if len(sure) else None


def selective(confidence: npt.ArrayLike, right: npt.ArrayLike) -> list[dict[str, float]]:
    """Return selective accuracy: the accuracy of the answers above each threshold.

    R. El-Yaniv and Y. Wiener, On the Foundations of Noise-free Selective Classification (2010). A
    threshold keeps all answers of one confidence or none.

    Args:
        confidence: (N,), in [0, 1].
        right: bool (N,).

    Returns:
        A point for each threshold, the highest first: `threshold`, `coverage`, the share of
        answers at or above it, and their `accuracy`.

    Examples:
        >>> points = selective([0.9, 0.4, 0.4], [True, True, False])
        >>> [(point["threshold"], round(point["coverage"], 2), round(point["accuracy"], 2))
        ...  for point in points]
        [(0.9, 0.33, 1.0), (0.4, 1.0, 0.67)]
    """
    sure, true = _check(confidence, right)
    levels, number = np.unique(sure, return_inverse=True)
    kept = np.bincount(number, minlength=len(levels))[::-1].cumsum()
    hits = np.bincount(number, weights=true, minlength=len(levels))[::-1].cumsum()
    return [
        {"threshold": level, "coverage": count / len(sure), "accuracy": hit / count}
        for level, count, hit in zip(
            levels[::-1].tolist(), kept.tolist(), hits.tolist(), strict=True
        )
    ]


def area_under_risk_coverage(confidence: npt.ArrayLike, right: npt.ArrayLike) -> float | None:
    """Return AURC: the share of wrong answers among the n surest, averaged over all n.

    Y. Geifman et al., Bias-Reduced Uncertainty Estimation for Deep Neural Classifiers (2019),
    section 3. Answers of equal confidence count as the mean over all their orders.

    Returns:
        A number in [0, 1], lower is better; None without answers.

    Examples:
        >>> area_under_risk_coverage([0.9, 0.4], [True, False])
        0.25
        >>> area_under_risk_coverage([0.5, 0.5], [True, False])
        0.5
    """
    sure, true = _check(confidence, right)
    if not len(sure):
        return None
    levels, number = np.unique(-sure, return_inverse=True)
    counts = np.bincount(number, minlength=len(levels)).astype(np.float64)
    wrong = np.bincount(number, weights=1 - true, minlength=len(levels))
    before, lost = counts.cumsum() - counts, wrong.cumsum() - wrong
    # The expected number of wrong answers among the first of a level grows evenly in it.
    place = np.arange(1, len(sure) + 1) - np.repeat(before, counts.astype(np.int64))
    repeated = [np.repeat(each, counts.astype(np.int64)) for each in (before, lost, wrong / counts)]
    start, gone, rate = repeated
    return float(np.mean((gone + place * rate) / (start + place)))


def calibration(confidence: npt.ArrayLike, right: npt.ArrayLike) -> dict[str, Any]:
    """Return all of these metrics as JSON values.

    Returns:
        `rows`, `ece`, `brier`, `aurc`, `reliability` and `selective`.
    """
    return {
        "rows": len(np.asarray(confidence)),
        "ece": expected_calibration_error(confidence, right),
        "brier": brier(confidence, right),
        "aurc": area_under_risk_coverage(confidence, right),
        "reliability": reliability(confidence, right),
        "selective": selective(confidence, right),
    }
