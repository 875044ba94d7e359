"""Two runs, compared: each metric on all steps and on each slice, and the steps that flipped."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from omnidata.analysis.inference import (
    RESAMPLES,
    Estimate,
    McNemar,
    corrected,
    estimate,
    mcnemar,
)
from omnidata.analysis.pairing import Pair, differences, pair
from omnidata.errors import RunError, counted
from omnidata.metrics.episodes import codes
from omnidata.metrics.paired import Mask, Measures, means
from omnidata.run.scoring import Run, Unit, read_run
from omnidata.run.settings import Change
from omnidata.types import OUTCOMES, LoadedDataset

Direction = Literal["right->wrong", "wrong->right"]


@dataclass(frozen=True, slots=True)
class Slice:
    """The steps of one group, in both runs.

    Attributes:
        axis: the tag, e.g. "dependency"; empty for all steps.
        group: its value; "overall" for all steps.
        steps: that are compared and were judged.
        metrics: by name.
        q: each metric's p, corrected for the slices; None where it has none, as all steps have.
        flips: McNemar's test; None where no step is right or wrong.
        flips_q: its p, corrected for the slices.
    """

    axis: str
    group: str
    steps: int
    metrics: Mapping[str, Estimate]
    q: Mapping[str, float | None]
    flips: McNemar | None
    flips_q: float | None = None

    @property
    def name(self) -> str:
        """As tables of results have it."""
        return f"{self.axis}: {self.group}" if self.axis else self.group

    def as_dict(self) -> dict[str, Any]:
        """The slice as a JSON object."""
        return {
            "axis": self.axis,
            "group": self.group,
            "steps": self.steps,
            "metrics": {
                name: {**asdict(found), "q": self.q[name]} for name, found in self.metrics.items()
            },
            "mcnemar": self.flips and {**self.flips._asdict(), "q": self.flips_q},
        }


@dataclass(frozen=True, slots=True)
class Flip:
    """A step that one run has right and the other wrong.

    Attributes:
        sample_id: of the step.
        direction: from run A to run B.
        a, b: the outcome of each run.
        a_parsed, b_parsed: the action that was read of each answer; None where there is none.
        a_page, b_page: the number of the step's page in the run's HTML report.
    """

    sample_id: str
    direction: Direction
    a: str
    b: str
    a_parsed: Any
    b_parsed: Any
    a_page: int
    b_page: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is known of the difference between two runs.

    Attributes:
        pair: the runs and the steps that both have.
        columns: the metrics and their units.
        flipping: the metric that McNemar's test is about; empty where there is none.
        slices: all steps first, then the groups of each axis.
        tests: how many p of slices were corrected together.
        flips: of single steps, in the order of the data.
        settings: in what the runs differ besides their models.
        warnings: what a reader must know before the numbers.
        seed, resamples: of the draws.
    """

    pair: Pair
    columns: Mapping[str, Unit]
    flipping: str
    slices: Sequence[Slice]
    tests: int
    flips: Sequence[Flip]
    settings: Sequence[Change]
    warnings: Sequence[str]
    seed: int
    resamples: int

    @property
    def overall(self) -> Slice:
        """All steps."""
        return self.slices[0]

    def by(self, axis: str) -> dict[str, Slice]:
        """The groups of an axis by name."""
        return {found.group: found for found in self.slices if found.axis == axis}

    def as_dict(self) -> dict[str, Any]:
        """The comparison as a JSON object; fractions, not percent."""
        compared = self.pair
        failed_a, failed_b = compared.failures()
        return {
            "task": compared.a.task,
            "profile": compared.a.profile,
            "a": _head(compared.a, failed_a),
            "b": _head(compared.b, failed_b),
            "steps": {
                "compared": len(compared.ids),
                "only_a": compared.only_a,
                "only_b": compared.only_b,
                "neither": compared.neither,
                "unjudged": len(compared.ids) - self.overall.steps,
            },
            "settings": [asdict(found) for found in self.settings],
            "warnings": list(self.warnings),
            "correction": {"method": "Benjamini-Hochberg", "tests": self.tests},
            "seed": self.seed,
            "resamples": self.resamples,
            "slices": [found.as_dict() for found in self.slices],
            "flips": [asdict(found) for found in self.flips],
        }


def _head(run: Run, failed: Mapping[str, int]) -> dict[str, Any]:
    return {
        "run": str(run.path),
        "model": run.name,
        "imported": run.imported,
        "fingerprint": run.fingerprint,
        "failures": dict(failed),
    }


def compare(
    a: Path,
    b: Path,
    *,
    data: Path | None = None,
    source: LoadedDataset | None = None,
    axes: Collection[str] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Comparison:
    """Compare two runs on the steps that both have; differences are B's value minus A's.

    Args:
        a: a run folder, or one that `omnidata score --out` made of imported answers.
        b: another.
        data: where the data lie, if not where the runs say.
        source: the data, where they are loaded already.
        axes: the tags to slice by; None: all of the profile's.
        seed: of the bootstrap and the sign flips.
        resamples: of each.

    Raises:
        RunError: a folder holds no scored run; the runs are of different tasks, profiles or data,
            or have no step in common.
        UsageError: the data cannot be found.
        DataError: the data cannot be read.
    """
    compared = pair(read_run(a), read_run(b), data=data, source=source)
    found = _measures(compared)
    right: list[Mask] = []
    if found.flips:
        right = [rows.values[found.flips[1]] == 1 for rows in (compared.rows_a, compared.rows_b)]

    def cut(axis: str, group: str, chosen: Mask) -> Slice:
        judged = chosen & found.judged
        estimates = estimate(found.sums(chosen), seed=seed, resamples=resamples)
        return Slice(
            axis,
            group,
            int(judged.sum()),
            dict(zip(found.columns, estimates, strict=True)),
            dict.fromkeys(found.columns),
            mcnemar(right[0][judged], right[1][judged]) if right else None,
        )

    by = {axis: order for axis, order in found.by.items() if axes is None or axis in axes}
    # What is found on all steps is one question asked beforehand, and is not corrected.
    overall = cut("", "overall", np.ones(len(compared.ids), dtype=np.bool_))
    slices, tests = correct([cut(*group) for group in _groups(compared, by)])
    settings = differences(compared.a, compared.b)
    return Comparison(
        compared,
        found.columns,
        found.flips[0] if found.flips else "",
        [overall, *slices],
        tests,
        list(_flips(compared, right, found.judged)) if right else [],
        settings,
        list(_warnings(compared)),
        seed,
        resamples,
    )


def _measures(compared: Pair) -> Measures:
    """The metrics of the profile that both runs were scored by.

    Raises:
        RunError: the profile does not say what its totals are sums of.
    """
    run, both = compared.a, (compared.rows_a, compared.rows_b)
    if scorer := run.offline_scorer:
        columns = scorer.paired(run.profile)
        a, b = (np.column_stack([rows.values[name] for name in columns]) for rows in both)
        judged, sums = means(a, b, np.arange(len(compared.ids), dtype=np.int64))
        flips = (scorer.right, scorer.right) if scorer.right else None
        return Measures(columns, {}, flips, judged, sums)
    profile = run.benchmark.profiles[run.profile]
    measures = getattr(profile, "measures", None)
    if measures is None:
        raise RunError(
            f"runs of the profile {run.profile} cannot be compared",
            where=str(run.path),
            expected="a profile derived from EpisodeProfile or RowProfile, or with `measures`",
        )
    found: Measures = measures(compared.steps, *both)
    return found


def _groups(compared: Pair, by: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str, Mask]]:
    """Axis, group, and the mask of its steps."""
    for axis, order in by.items():
        labels, names = codes([step.tags.get(axis) for step in compared.steps], order)
        yield from ((axis, name, labels == code) for code, name in enumerate(names))


def correct(slices: Sequence[Slice]) -> tuple[list[Slice], int]:
    """The slices with their p corrected, all metrics' together; and how many those are.

    McNemar's are corrected apart: they ask of one metric again.
    """
    names = [list(found.metrics) for found in slices]
    ps = [found.metrics[name].p for found, own in zip(slices, names, strict=True) for name in own]
    qs = iter(corrected(ps))
    flips = corrected([found.flips.p if found.flips else None for found in slices])
    done = [
        replace(found, q={name: next(qs) for name in own}, flips_q=flip)
        for found, own, flip in zip(slices, names, flips, strict=True)
    ]
    return done, sum(p is not None for p in ps)


def _flips(compared: Pair, right: Sequence[Mask], judged: Mask) -> Iterator[Flip]:
    pages_a, pages_b = compared.pages(compared.a), compared.pages(compared.b)
    for number in ((right[0] != right[1]) & judged).nonzero()[0].tolist():
        name = compared.ids[number]
        a, b = compared.a.scores[name], compared.b.scores[name]
        yield Flip(
            name,
            "right->wrong" if right[0][number] else "wrong->right",
            OUTCOMES[compared.rows_a.outcomes[number]],
            OUTCOMES[compared.rows_b.outcomes[number]],
            a.get("parsed"),
            b.get("parsed"),
            pages_a[name],
            pages_b[name],
        )


def _warnings(compared: Pair) -> Iterator[str]:
    """What a reader must know before the numbers."""
    if compared.a.path.resolve() == compared.b.path.resolve():
        yield "A and B are the same folder: no difference can be found"
    for label, run in (("A", compared.a), ("B", compared.b)):
        if run.imported:
            yield f"run {label} is imported: neither its settings nor its data's hash are known"
        if run.stopped:
            yield f"run {label} is unfinished: {run.stopped}"
    left_out = [("only A has", compared.only_a), ("only B has", compared.only_b)]
    left_out.append(("neither has an answer to", compared.neither))
    unit = "step" if compared.steps else "task"
    for words, count in left_out:
        if count:
            yield f"{counted(count, unit)} that {words} {'is' if count == 1 else 'are'} left out"
    for label, failed in zip("AB", compared.failures(), strict=True):
        if failed:
            told = ", ".join(f"{count} {name}" for name, count in failed.items())
            yield f"run {label} failed on {unit}s that count as wrong: {told}"
