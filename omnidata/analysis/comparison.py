"""Two runs side by side: each metric on all steps and on each slice, and the steps that flipped."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from omnidata.analysis.alignment import Aligned, align, apply_errata, failures, measure
from omnidata.analysis.inference import (
    RESAMPLES,
    Estimate,
    McNemar,
    correct_p_values,
    estimate,
    mcnemar,
)
from omnidata.errors import plural
from omnidata.metrics.episodes import codes
from omnidata.metrics.intervals import Mask
from omnidata.metrics.paired import Unit, means
from omnidata.run.differences import Change, changes
from omnidata.run.errata import Errata
from omnidata.run.headlines import lines_of
from omnidata.run.run_files import Run, read_run
from omnidata.tasks.totals import owners
from omnidata.types import CAUSES, OUTCOMES, Cause, LoadedDataset

Direction = Literal["right->wrong", "wrong->right"]

_ASKED: Final = (
    *("options", "model_options", "model_settings", "generation", "seed", "prompt_hash"),
    *("control", "where", "exclude", "limit", "shard"),
)
"""Keys of `run.json` that change what a run was asked, or how."""


@dataclass(frozen=True, slots=True)
class Slice:
    """The steps of one group, in both runs.

    Attributes:
        axis: the tag, e.g. "dependency"; empty for all steps.
        group: its value; "overall" for all steps.
        steps: number of compared steps that were judged.
        metrics: by name.
        q: each metric's p, corrected for the slices; None without p, and for all steps.
        flips: McNemar's test; None if no step is right or wrong.
        flips_q: its p, corrected for the slices.
    """

    axis: str
    group: str
    steps: int
    metrics: Mapping[str, Estimate]
    q: Mapping[str, float | None]
    flips: McNemar | None
    flips_q: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the slice as a JSON object."""
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
class CauseShare:
    """How often the answers of both runs are wrong for one cause.

    Attributes:
        share: of the compared steps that were judged.
        q: its p, corrected for the causes.
    """

    share: Estimate
    q: float | None


@dataclass(frozen=True, slots=True)
class Flip:
    """A step that only one of the runs has right.

    Attributes:
        sample_id: of the step.
        direction: from run A to run B.
        a, b: the outcome of each run.
        a_parsed, b_parsed: the action in each answer; None if there is none.
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
    """The difference between two runs.

    Attributes:
        aligned: run A and run B on the steps that both have.
        columns: the metrics and their units.
        flipping: the metric of McNemar's test; empty if there is none.
        slices: all steps first, then the groups of each axis.
        tests: number of p of slices that were corrected together.
        causes: of wrong answers; none if the scores of a run lack them.
        flips: of single steps, in the order of the data.
        seed, resamples: of the draws.
    """

    aligned: Aligned
    columns: Mapping[str, Unit]
    flipping: str
    slices: Sequence[Slice]
    tests: int
    causes: Mapping[Cause, CauseShare]
    flips: Sequence[Flip]
    seed: int
    resamples: int

    @property
    def a(self) -> Run:
        """The first run."""
        return self.aligned.runs[0]

    @property
    def b(self) -> Run:
        """The second run."""
        return self.aligned.runs[1]

    @property
    def overall(self) -> Slice:
        """The slice of all steps."""
        return self.slices[0]

    def by(self, axis: str) -> dict[str, Slice]:
        """Return the groups of an axis by name."""
        return {each.group: each for each in self.slices if each.axis == axis}

    def unshared(self) -> dict[str, int]:
        """Return the numbers of steps that "only_a", "only_b" and "neither" run answered."""
        in_a, in_b = map(set, self.aligned.answered)
        listed = self.a.scores.keys() | self.b.scores.keys()
        return {
            "only_a": len(in_a - in_b),
            "only_b": len(in_b - in_a),
            "neither": len(listed - in_a - in_b),
        }

    def unjudged(self) -> int:
        """Return the number of compared steps without a usable target."""
        return len(self.aligned.ids) - self.overall.steps

    def failures(self) -> list[dict[str, int]]:
        """Return how many of the compared steps each run failed on, by outcome."""
        return [failures(rows) for rows in self.aligned.rows]

    @property
    def settings(self) -> list[Change]:
        """The settings in which the runs differ besides their models.

        Settings of imported runs are unknown, so these have none.
        """
        if self.a.imported or self.b.imported:
            return []
        a, b = ({key: run.settings.get(key) for key in _ASKED} for run in (self.a, self.b))
        return [_without_ids(change) for change in changes(a, b)]

    @property
    def warnings(self) -> list[str]:
        """What to read before the numbers."""
        return list(_warnings(self))

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as a JSON object; fractions, not percent."""
        failed_a, failed_b = self.failures()
        return {
            "task": self.a.task,
            "profile": self.a.profile,
            "a": _head(self.a, failed_a),
            "b": _head(self.b, failed_b),
            "steps": {
                "compared": len(self.aligned.ids),
                **self.unshared(),
                "unjudged": self.unjudged(),
            },
            "settings": [asdict(change) for change in self.settings],
            "warnings": self.warnings,
            "correction": {"method": "Benjamini-Hochberg", "tests": self.tests},
            "seed": self.seed,
            "resamples": self.resamples,
            "slices": [each.as_dict() for each in self.slices],
            "causes": {
                name: {**asdict(each.share), "q": each.q} for name, each in self.causes.items()
            },
            "flips": [asdict(flip) for flip in self.flips],
        }


def _without_ids(change: Change) -> Change:
    """Return the number of excluded steps in place of their ids."""
    if change.name != "exclude":
        return change
    a, b = (plural(len(ids), "step") if ids else None for ids in (change.a, change.b))
    return Change(change.name, a, b)


def _warnings(found: Comparison) -> Iterator[str]:
    if found.a.path.resolve() == found.b.path.resolve():
        yield "A and B are the same folder: no difference can be found"
    runs = {"A": found.a, "B": found.b}
    unexplained = [label for label, run in runs.items() if "causes" not in run.results]
    if len(unexplained) == 1:
        yield f"run {unexplained[0]} was scored without causes of wrong answers: score it again"
    for label, run in runs.items():
        if run.imported:
            yield f"run {label} is imported: its settings and data fingerprint are unknown"
        yield from (f"run {label} is not a result: {line}" for line in lines_of(run.results))
        if run.stopped:
            yield f"run {label} is unfinished: {run.stopped}"
    unit, words = found.aligned.unit, ("only A has", "only B has", "neither has an answer to")
    for which, count in zip(words, found.unshared().values(), strict=True):
        if count:
            are = "is" if count == 1 else "are"
            yield f"{plural(count, unit)} that {which} {are} left out"
    for label, failed in zip(runs, found.failures(), strict=True):
        if failed:
            counts = ", ".join(f"{count} {name}" for name, count in failed.items())
            yield f"failed {unit}s of run {label} count as wrong: {counts}"


def _head(run: Run, failed: Mapping[str, int]) -> dict[str, Any]:
    return {
        "run": str(run.path),
        "model": run.name,
        "imported": run.imported,
        "fingerprint": run.fingerprint,
        "failures": failed,
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
    errata: Sequence[Errata] = (),
) -> Comparison:
    """Compare two runs on the steps that both have; differences are B's value minus A's.

    Args:
        a: a run folder, or one that `omnidata score --out` made of imported answers.
        b: another.
        data: the dataset, if it has moved.
        source: the data, if they are loaded already.
        axes: the tags to slice by; None for all of the profile's.
        seed: for the bootstrap and the sign flips.
        resamples: number of each.
        errata: corrections of labels, by which both runs are judged; causes are left out then.

    Raises:
        RunError: a folder has no scored run; or see `omnidata.analysis.alignment.align`.
        UsageError: the data cannot be found.
        DataError: the data cannot be read.
    """
    aligned = align([read_run(a), read_run(b)], data=data, source=source)
    if errata:
        aligned = apply_errata(aligned, errata)
    (measures,), judged = measure(aligned)
    flipping, value = measures.flips or ("", "")
    right = [rows.values[value] == 1 for rows in aligned.rows] if measures.flips else []

    def make_slice(axis: str, group: str, members: Mask) -> Slice:
        counted = members & judged
        estimates = estimate(measures.sums(members), seed=seed, resamples=resamples)
        return Slice(
            axis,
            group,
            int(counted.sum()),
            dict(zip(measures.columns, estimates, strict=True)),
            dict.fromkeys(measures.columns),
            mcnemar(*(each[counted] for each in right)) if right else None,
        )

    # All steps are one question asked beforehand, whose p is not corrected.
    overall = make_slice("", "overall", np.ones(len(aligned.ids), dtype=np.bool_))
    groups = []
    for axis, order in measures.by.items():
        if axes is None or axis in axes:
            group_of, names = codes([step.tags.get(axis) for step in aligned.steps], order)
            groups += [make_slice(axis, name, group_of == n) for n, name in enumerate(names)]
    groups, tests = correct(groups)
    return Comparison(
        aligned,
        measures.columns,
        flipping,
        [overall, *groups],
        tests,
        {} if errata else _causes(aligned, judged, seed=seed, resamples=resamples),
        list(_flips(aligned, right, judged)) if right else [],
        seed,
        resamples,
    )


def correct(slices: Sequence[Slice]) -> tuple[list[Slice], int]:
    """Return the slices with their p corrected together for all metrics, and the number of p.

    Those of McNemar's test are corrected apart: they test one of the metrics again.
    """
    ps = [each.p for found in slices for each in found.metrics.values()]
    qs = iter(correct_p_values(ps))
    flips = correct_p_values([found.flips and found.flips.p for found in slices])
    corrected = [
        replace(found, q={name: next(qs) for name in found.metrics}, flips_q=flip)
        for found, flip in zip(slices, flips, strict=True)
    ]
    return corrected, sum(p is not None for p in ps)


def _causes(found: Aligned, judged: Mask, *, seed: int, resamples: int) -> dict[Cause, CauseShare]:
    if any("causes" not in run.results for run in found.runs):
        return {}
    causes = [[run.scores[name].get("cause") for name in found.ids] for run in found.runs]
    known = [cause for cause in CAUSES if any(cause in own for own in causes)]
    if not known:
        return {}
    a, b = (np.array([[each == cause for cause in known] for each in own], float) for own in causes)
    owner = owners(found.steps, np.ones(len(found.ids), dtype=np.bool_))
    shares = estimate(means(a, b, owner)[1](judged), seed=seed, resamples=resamples)
    qs = correct_p_values([share.p for share in shares])
    return dict(zip(known, map(CauseShare, shares, qs), strict=True))


def _flips(found: Aligned, right: Sequence[Mask], judged: Mask) -> Iterator[Flip]:
    # A run's pages are numbered like its scored steps, in the order of the data.
    pages_a, pages_b = (
        {name: n for n, name in enumerate(name for name in found.order if name in run.scores)}
        for run in found.runs
    )
    (a, b), (rows_a, rows_b) = found.runs, found.rows
    for n in np.flatnonzero((right[0] != right[1]) & judged).tolist():
        name = found.ids[n]
        yield Flip(
            name,
            "right->wrong" if right[0][n] else "wrong->right",
            OUTCOMES[rows_a.outcomes[n]],
            OUTCOMES[rows_b.outcomes[n]],
            a.scores[name].get("parsed"),
            b.scores[name].get("parsed"),
            pages_a[name],
            pages_b[name],
        )
