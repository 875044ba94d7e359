"""Two runs side by side: each metric on all steps and on each slice, and the steps that flipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from omnidata import remote
from omnidata.analysis.inference import (
    RESAMPLES,
    Estimate,
    McNemar,
    correct_p_values,
    estimate,
    mcnemar,
)
from omnidata.errors import RunError, UsageError, plural
from omnidata.loaders.steps import ids_of, select_steps
from omnidata.metrics.episodes import codes
from omnidata.metrics.intervals import Mask
from omnidata.metrics.paired import Measures, Unit, means
from omnidata.run.differences import Change, changes
from omnidata.run.errata import Errata
from omnidata.run.headlines import lines_of
from omnidata.run.recorded import recorded_data
from omnidata.run.rejudging import open_rejudging
from omnidata.run.run_files import Run, read_run
from omnidata.run.selection import whole_episodes
from omnidata.tasks.totals import owners
from omnidata.types import CAUSES, OUTCOMES, Cause, LoadedDataset, Step, VerdictColumns

# Two runs on the steps that both have.

ANSWERED = ("ok", "unparsed")
"""Outcomes with an answer; all others are failures."""


@dataclass(frozen=True)
class Pair:
    """Two runs on the steps that both have.

    Attributes:
        a, b: the runs.
        ids: sample ids, in the order of the data.
        steps: of the same ids; none for runs that are scored task by task.
        order: all ids of the data.
        rows_a, rows_b: the verdicts, aligned with `ids`.
        only_a, only_b: number of steps that only one run has.
        neither: number of listed steps to which neither run has an answer.
    """

    a: Run
    b: Run
    ids: Sequence[str]
    steps: Sequence[Step]
    order: Sequence[str]
    rows_a: VerdictColumns
    rows_b: VerdictColumns
    only_a: int
    only_b: int
    neither: int

    def failures(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Return how many of the compared steps each run failed on, by outcome."""
        return failures(self.rows_a), failures(self.rows_b)

    def pages(self, run: Run) -> dict[str, int]:
        """Return the number of each step's page in the run's HTML report."""
        return {name: n for n, name in enumerate(name for name in self.order if name in run.scores)}


def pair(a: Run, b: Run, *, data: Path | None = None, source: LoadedDataset | None = None) -> Pair:
    """Align two runs on the steps that both have.

    Args:
        a: a scored run.
        b: another.
        data: the dataset, if it has moved.
        source: the data, if they are loaded already.

    Raises:
        RunError: the runs are of different tasks, profiles or data, or have no step in common.
        UsageError: the data cannot be found.
        DataError: the data cannot be read.
    """
    found = align([a, b], data=data, source=source)
    in_a, in_b = map(set, found.answered)
    rows_a, rows_b = found.rows
    listed = a.scores.keys() | b.scores.keys()
    return Pair(
        a,
        b,
        found.ids,
        found.steps,
        found.order,
        rows_a,
        rows_b,
        only_a=len(in_a) - len(found.ids),
        only_b=len(in_b) - len(found.ids),
        neither=len(listed - in_a - in_b),
    )


@dataclass(frozen=True)
class Aligned:
    """Runs on the steps that all of them have.

    Attributes:
        runs: two or more.
        ids: sample ids, in the order of the data.
        steps: of the same ids; none for runs that are scored task by task.
        order: all ids of the data.
        source: all steps of the data.
        rows: each run's verdicts, aligned with `ids`.
        answered: the ids that each run has, those of `missing` steps left out.
    """

    runs: Sequence[Run]
    ids: Sequence[str]
    steps: Sequence[Step]
    order: Sequence[str]
    source: Sequence[Step]
    rows: Sequence[VerdictColumns]
    answered: Sequence[Collection[str]]


def align(
    runs: Sequence[Run], *, data: Path | None = None, source: LoadedDataset | None = None
) -> Aligned:
    """Align scored runs on the steps that all have; arguments and errors are those of `pair`."""
    first, *others = runs
    for other in others:
        _check_alike(first, other)
    steps: Sequence[Step] = []
    if not first.offline_scorer:
        if source is None:
            run = next((run for run in runs if not run.imported), runs[0])
            source = run.asking.load(find_data(runs, data), check_media=False)
        for run in runs:
            check_source(run, source)
        steps = source.steps
    ids = [*ids_of(steps)] or list(dict.fromkeys(name for run in runs for name in run.scores))
    known = set(ids)
    for run in runs:
        check_ids(run, known)
    answered = [
        {n for n in ids if (score := run.scores.get(n)) and score["outcome"] != "missing"}
        for run in runs
    ]
    chosen = set.intersection(*answered)
    if not chosen:
        raise RunError(
            "the runs have no step in common",
            where=", ".join(
                f"{run.path} has {len(own)}" for run, own in zip(runs, answered, strict=True)
            ),
            expected="answers to the same steps",
            remedy="check --where, --limit and --shard of the runs",
        )
    common = [name for name in ids if name in chosen]
    kept = select_steps(steps, [n for n, name in enumerate(ids) if name in chosen] if steps else [])
    whole = whole_episodes(steps, kept) if kept else np.ones(len(common), dtype=np.bool_)
    rows = [verdict_columns(run, common, whole) for run in runs]
    return Aligned(runs, common, kept, ids, steps, rows, answered)


def _check_alike(a: Run, b: Run) -> None:
    if a.task != b.task:
        raise RunError(
            f"the runs are of different tasks: {a.task} and {b.task}",
            where=f"{a.path} and {b.path}",
            expected="two runs of one task",
            remedy="name runs of the same task",
        )
    if a.profile != b.profile:
        raise RunError(
            f"the runs were scored by different rules: {a.profile} and {b.profile}",
            where=f"{a.path} and {b.path}",
            expected="one profile",
            remedy=f"score one of them again: omnidata score {b.task} DATA {b.path} "
            f"--profile {a.profile} --out {b.path}",
        )
    if a.fingerprint and b.fingerprint and a.fingerprint != b.fingerprint:
        raise RunError(
            "the runs were made on different data: fingerprints "
            f"{a.fingerprint[:16]} ({a.data}) and {b.fingerprint[:16]} ({b.data})",
            where=f"{a.path} and {b.path}",
            expected="the same annotations, byte for byte",
            remedy="run one of the two again on the other's data",
        )


def find_data(runs: Sequence[Run], data: Path | None = None) -> Path:
    """Return the place of the data that runs were scored on.

    Args:
        runs: of one dataset.
        data: the place, if it is known; else the first run that names one says it.

    Raises:
        UsageError: no run names its data, or they are missing.
    """
    run = next((run for run in runs if run.data), None)
    if data is None and run is None:
        raise UsageError(
            "no run names its data",
            where=" and ".join(str(run.path) for run in runs),
            expected="the data that the answers were scored on",
            remedy="add --data DATA",
        )
    place = remote.get(recorded_data(run.settings if run else {}, (run or runs[0]).path, data))
    if not place.exists():
        raise UsageError(
            "the data are missing",
            where=str(place),
            expected="the data of the runs, for their episodes and labels",
            remedy="add --data DATA with their current place",
        )
    return place


def check_source(run: Run, source: LoadedDataset) -> None:
    """Check that the data are the run's, if it records its data.

    Raises:
        RunError: they are not.
    """
    if run.fingerprint and run.fingerprint != source.fingerprint:
        raise RunError(
            f"the run was made on other data: fingerprint {run.fingerprint[:16]}, and "
            f"{source.fingerprint[:16]} of {source.root}",
            where=str(run.path),
            expected="the run's annotations, byte for byte",
            remedy="name the run's data with --data, or run again on these",
        )


def check_ids(run: Run, known: set[str]) -> None:
    """Check that the data have all scored steps.

    Args:
        run: scored.
        known: all ids of the data.

    Raises:
        RunError: a step is unknown.
    """
    unknown = [name for name in run.scores if name not in known]
    if unknown:
        are = "is" if len(unknown) == 1 else "are"
        steps = plural(len(unknown), "step")
        raise RunError(
            f"{steps} of the run {are} not in the data, e.g. {unknown[0]:.80}",
            where=str(run.path),
            expected="scores of steps of the data",
            remedy="name the scored data with --data",
        )


def verdict_columns(run: Run, ids: Sequence[str], whole: Mask) -> VerdictColumns:
    """Return the verdicts of a run on steps.

    Args:
        run: scored.
        ids: of the steps.
        whole: bool (N,), see `VerdictColumns`.

    Raises:
        RunError: a line of the scores cannot be read.
    """
    scores = [run.scores[name] for name in ids]
    scorer = run.offline_scorer
    names = scorer.paired_totals(run.profile) if scorer else run.asking.profiles[run.profile].values
    if lacking := [name for name in names if name not in scores[0]]:
        raise RunError(
            f"runs of the profile {run.profile} cannot be compared",
            where=str(run.path / "scores.jsonl"),
            expected=f"{lacking[0]} of every step or task",
            remedy="compare runs that answer steps, or score these again with this version",
        )
    try:
        codes = np.array([OUTCOMES.index(score["outcome"]) for score in scores], dtype=np.uint8)
        values = {
            name: np.array([score[name] for score in scores], dtype=np.float64)  # None is NaN
            for name in names
        }
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(
            f"a line of the scores cannot be read ({type(error).__name__}: {error})",
            where=str(run.path / "scores.jsonl"),
            expected="a file written by `omnidata score`",
            remedy="score the run again: omnidata score TASK DATA RUN --out RUN",
        ) from None
    return VerdictColumns(codes, values, whole)


def failures(rows: VerdictColumns) -> dict[str, int]:
    """Return how many steps a run failed on, by outcome; they count as wrong."""
    found = Counter(OUTCOMES[code] for code in rows.outcomes.tolist())
    return {name: found[name] for name in OUTCOMES if found[name] and name not in ANSWERED}


_ASKED = (
    *("options", "model_options", "model_settings", "generation", "seed", "prompt_hash"),
    *("control", "where", "exclude", "limit", "shard"),
)
"""Keys of `run.json` that change what a run was asked, or how."""


def differences(a: Run, b: Run) -> list[Change]:
    """Return the settings in which two runs differ, their models left out.

    Settings of imported runs are unknown, so these have none.
    """
    if a.imported or b.imported:
        return []

    def number(steps: Sequence[str] | None) -> str | None:
        return plural(len(steps), "step") if steps else None

    asked = ({key: run.settings.get(key) for key in _ASKED} for run in (a, b))
    return [
        Change(each.name, number(each.a), number(each.b)) if each.name == "exclude" else each
        for each in changes(*asked)
    ]


# The comparison of a pair.

Direction = Literal["right->wrong", "wrong->right"]


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

    @property
    def name(self) -> str:
        """The name in tables."""
        return f"{self.axis}: {self.group}" if self.axis else self.group

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
        pair: the runs and the steps that both have.
        columns: the metrics and their units.
        flipping: the metric of McNemar's test; empty if there is none.
        slices: all steps first, then the groups of each axis.
        tests: number of p of slices that were corrected together.
        causes: of wrong answers; none if the scores of a run lack them.
        flips: of single steps, in the order of the data.
        settings: in which the runs differ besides their models.
        warnings: to read before the numbers.
        seed, resamples: of the draws.
    """

    pair: Pair
    columns: Mapping[str, Unit]
    flipping: str
    slices: Sequence[Slice]
    tests: int
    causes: Mapping[Cause, CauseShare]
    flips: Sequence[Flip]
    settings: Sequence[Change]
    warnings: Sequence[str]
    seed: int
    resamples: int

    @property
    def overall(self) -> Slice:
        """The slice of all steps."""
        return self.slices[0]

    def by(self, axis: str) -> dict[str, Slice]:
        """Return the groups of an axis by name."""
        return {found.group: found for found in self.slices if found.axis == axis}

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as a JSON object; fractions, not percent."""
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
            "causes": {
                name: {**asdict(found.share), "q": found.q} for name, found in self.causes.items()
            },
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
        RunError: a folder has no scored run; the runs are of different tasks, profiles or data, or
            have no step in common.
        UsageError: the data cannot be found.
        DataError: the data cannot be read.
    """
    compared = pair(read_run(a), read_run(b), data=data, source=source)
    if errata:
        both = (compared.rows_a, compared.rows_b)
        rows_a, rows_b = correct_rows((compared.a, compared.b), compared.steps, both, errata)
        compared = replace(compared, rows_a=rows_a, rows_b=rows_b)
    found = measures(compared.a, compared.ids, compared.steps, compared.rows_a, compared.rows_b)
    right: list[Mask] = []
    if found.flips:
        right = [rows.values[found.flips[1]] == 1 for rows in (compared.rows_a, compared.rows_b)]

    def make_slice(axis: str, group: str, chosen: Mask) -> Slice:
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

    # All steps are one question asked beforehand, whose p is not corrected.
    overall = make_slice("", "overall", np.ones(len(compared.ids), dtype=np.bool_))
    parts = []
    for axis in found.by if axes is None else [axis for axis in found.by if axis in axes]:
        labels, names = codes([step.tags.get(axis) for step in compared.steps], found.by[axis])
        parts += [make_slice(axis, name, labels == code) for code, name in enumerate(names)]
    slices, tests = correct(parts)
    return Comparison(
        compared,
        found.columns,
        found.flips[0] if found.flips else "",
        [overall, *slices],
        tests,
        {} if errata else _causes(compared, found.judged, seed=seed, resamples=resamples),
        list(_flips(compared, right, found.judged)) if right else [],
        differences(compared.a, compared.b),
        list(_warnings(compared)),
        seed,
        resamples,
    )


def correct_rows(
    runs: Sequence[Run],
    steps: Sequence[Step],
    rows: Sequence[VerdictColumns],
    errata: Sequence[Errata],
) -> list[VerdictColumns]:
    """Return the verdicts of runs with errata.

    Args:
        runs: scored, with their answers.
        steps: that all runs have.
        rows: each run's verdicts without errata, aligned with the steps.
        errata: apply in order.

    Raises:
        RunError, DataError, UsageError: as `omnidata.run.rejudging.open_rejudging`.
    """
    return [
        open_rejudging(run, steps, errata).correct(own)[0]
        for run, own in zip(runs, rows, strict=True)
    ]


def _causes(compared: Pair, judged: Mask, *, seed: int, resamples: int) -> dict[Cause, CauseShare]:
    runs = (compared.a, compared.b)
    if any("causes" not in run.results for run in runs):
        return {}
    found = [[run.scores[name].get("cause") for name in compared.ids] for run in runs]
    names = [cause for cause in CAUSES if any(cause in causes for causes in found)]
    if not names:
        return {}
    a, b = (np.array([[cause == name for name in names] for cause in own], float) for own in found)
    owner = owners(compared.steps, np.ones(len(compared.ids), dtype=np.bool_))
    shares = estimate(means(a, b, owner)[1](judged), seed=seed, resamples=resamples)
    qs = correct_p_values([share.p for share in shares])
    return dict(zip(names, map(CauseShare, shares, qs), strict=True))


def measure_all(found: Aligned) -> tuple[list[Measures], Mask]:
    """Return the measures of the first run with each other, and the steps judged in all, (N,)."""
    first, *others = found.rows
    pairs = [measures(found.runs[0], found.ids, found.steps, first, rows) for rows in others]
    return pairs, np.logical_and.reduce([each.judged for each in pairs], dtype=np.bool_)


def measures(
    run: Run, ids: Sequence[str], steps: Sequence[Step], a: VerdictColumns, b: VerdictColumns
) -> Measures:
    """Return the metrics of two runs by their profile.

    Args:
        run: one of the two.
        ids: of the steps that both have.
        steps: of the same ids, as `Aligned` has them.
        a: the verdicts of one run, aligned with `ids`.
        b: those of the other.

    Raises:
        RunError: the profile's runs cannot be compared.
    """
    if scorer := run.offline_scorer:
        columns = scorer.paired_totals(run.profile)
        sides = [np.column_stack([rows.values[name] for name in columns]) for rows in (a, b)]
        judged, sums = means(sides[0], sides[1], np.arange(len(ids), dtype=np.int64))
        flips = (scorer.right, scorer.right) if scorer.right else None
        return Measures(columns, {}, flips, judged, sums)
    profile = run.asking.profiles[run.profile]
    return profile.measures(steps, a, b)


def correct(slices: Sequence[Slice]) -> tuple[list[Slice], int]:
    """Return the slices with their p corrected together for all metrics, and the number of p.

    Those of McNemar's test are corrected apart: they test one of the metrics again.
    """
    names = [list(found.metrics) for found in slices]
    ps = [found.metrics[name].p for found, own in zip(slices, names, strict=True) for name in own]
    qs = iter(correct_p_values(ps))
    flips = correct_p_values([found.flips.p if found.flips else None for found in slices])
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
    if compared.a.path.resolve() == compared.b.path.resolve():
        yield "A and B are the same folder: no difference can be found"
    with_causes = ["causes" in run.results for run in (compared.a, compared.b)]
    if any(with_causes) and not all(with_causes):
        label = "AB"[with_causes.index(False)]
        yield f"run {label} was scored without causes of wrong answers: score it again"
    for label, run in (("A", compared.a), ("B", compared.b)):
        if run.imported:
            yield f"run {label} is imported: its settings and data fingerprint are unknown"
        yield from (f"run {label} is not a result: {line}" for line in lines_of(run.results))
        if run.stopped:
            yield f"run {label} is unfinished: {run.stopped}"
    left_out = [("only A has", compared.only_a), ("only B has", compared.only_b)]
    left_out.append(("neither has an answer to", compared.neither))
    unit = "step" if compared.steps else "task"
    for words, count in left_out:
        if count:
            yield f"{plural(count, unit)} that {words} {'is' if count == 1 else 'are'} left out"
    for label, failed in zip("AB", compared.failures(), strict=True):
        if failed:
            counts = ", ".join(f"{count} {name}" for name, count in failed.items())
            yield f"failed {unit}s of run {label} count as wrong: {counts}"
