"""The report of the released AgentStudio evaluator, name for name and rounded as it rounds.

Micro averages over all rows, by platform and, for trajectories, by source family; three decimals of
the fraction; NaN over nothing. For tables to compare models by, see `agentstudio_totals`: these
lack intervals, and the released CriticBench report fails on many ordinary runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from omnidata.metrics.classification import Confusion

PLATFORMS = ("web", "desktop", "mobile")
_FAMILY_PARTS: Mapping[str, str] = {
    "mind2web": "mind2web",
    "aitw": "aitw",
    "vwa": "vwa",
    "agent_studio": "agent-studio",
}
"""A family's name in the report -> what its sources' names contain."""


class CriticReport(NamedTuple):
    """The released CriticBench report.

    Attributes:
        metrics: by name; None where the release divides by zero.
        raises: names of those; the released report exists only if there are none.
    """

    metrics: dict[str, float | None]
    raises: tuple[str, ...]


def score_report(
    scores: Mapping[str, Sequence[float]],
    platforms: Sequence[str],
    sources: Sequence[str] | None = None,
    *,
    tokens: Sequence[tuple[int, int]],
) -> dict[str, float]:
    """The report of GroundUI, IDM-Single and IDM-Multiple.

    Args:
        scores: "score", and for IDM-Multiple "edit_distance", one value per row.
        platforms: one per row.
        sources: one per row; None for GroundUI, which is not reported by source.
        tokens: input and output tokens of each row.

    Examples:
        >>> score_report({"score": [1, 0, 1]}, ["web", "web", "mobile"], tokens=[(7, 3)] * 3)
        {'score': 0.667, 'web_score': 0.5, 'desktop_score': nan, 'mobile_score': 1.0,
        'input_tokens:sum': 21.0, 'output_tokens:sum': 9.0}
    """
    report = {
        f"{prefix}{name}": _mean([values[row] for row in rows])
        for prefix, rows in _slices(platforms, sources).items()
        for name, values in scores.items()
    }
    report["input_tokens:sum"] = float(sum(count for count, _ in tokens))
    report["output_tokens:sum"] = float(sum(count for _, count in tokens))
    return report


def critic_report(
    success: Sequence[bool],
    scores: Sequence[bool],
    platforms: Sequence[str],
    sources: Sequence[str],
) -> CriticReport:
    """The report of CriticBench.

    The release stores no prediction: a wrong verdict counts as the opposite answer. It never counts
    tokens, and a slice without a predicted or a true success, or without a hit, ends the report.

    Args:
        success: the truth, one per row.
        scores: verdicts, one per row.
        platforms: one per row.
        sources: one per row.

    Examples:
        >>> report = critic_report([True, False], [True, True], ["web"] * 2, ["vwa_reddit"] * 2)
        >>> report.metrics["vwa_f1"], report.metrics["mobile_f1"], report.raises
        (1.0, nan, ())
    """
    slices = {
        prefix: _released_rates([success[row] for row in rows], [scores[row] for row in rows])
        for prefix, rows in _slices(platforms, sources).items()
    }
    metrics: dict[str, float | None] = {
        f"{prefix}{name}": rates[name]
        for name in ("accuracy", "precision", "recall", "f1")
        for prefix, rates in slices.items()
    }
    raises = tuple(name for name, value in metrics.items() if value is None)
    return CriticReport({**metrics, "input_tokens:sum": 0.0, "output_tokens:sum": 0.0}, raises)


def _slices(platforms: Sequence[str], sources: Sequence[str] | None) -> dict[str, list[int]]:
    """Prefix of the names -> the rows that count."""
    slices = {"": list(range(len(platforms)))}
    for name in PLATFORMS:
        slices[f"{name}_"] = [row for row, platform in enumerate(platforms) if platform == name]
    if sources is not None:
        for name, part in _FAMILY_PARTS.items():
            slices[f"{name}_"] = [row for row, source in enumerate(sources) if part in source]
    return slices


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 3) if values else float("nan")


def _released_rates(success: Sequence[bool], scores: Sequence[bool]) -> dict[str, float | None]:
    if not success:
        return dict.fromkeys(("accuracy", "precision", "recall", "f1"), float("nan"))
    tp, fp, fn, tn, *_ = Confusion.of_scores(success, scores)
    precision = tp / (tp + fp) if tp + fp else None
    recall = tp / (tp + fn) if tp + fn else None
    f1 = 2 * precision * recall / (precision + recall) if precision and recall else None
    found = {"accuracy": (tp + tn) / len(success), "precision": precision, "recall": recall}
    return {
        name: None if value is None else round(value, 3)
        for name, value in {**found, "f1": f1}.items()
    }
