"""Two runs side by side: the steps that both have, and what each says of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from omnidata.errors import RunError, UsageError, counted
from omnidata.run.scoring import Run
from omnidata.run.selection import whole_episodes
from omnidata.run.settings import Change, changes
from omnidata.types import OUTCOMES, LoadedDataset, Step, VerdictColumns

ANSWERED = ("ok", "unparsed")
"""Outcomes with an answer; all others are failures."""


@dataclass(frozen=True)
class Pair:
    """What both runs have.

    Attributes:
        a, b: the runs.
        ids: sample ids, in the order of the data.
        steps: of the same ids; none for what is scored task by task, without steps.
        order: all ids of the data.
        rows_a, rows_b: the verdicts, aligned with `ids`; `missing` steps are nobody's.
        only_a, only_b: steps that one run alone has.
        neither: steps that a run lists and that neither has an answer to, missing in both.
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
        """How many of the compared steps each run failed on, by outcome; they count as wrong."""
        return _failures(self.rows_a), _failures(self.rows_b)

    def pages(self, run: Run) -> dict[str, int]:
        """The number of each step's page in a run's HTML report, which has all steps in order."""
        return {name: n for n, name in enumerate(name for name in self.order if name in run.scores)}


def pair(a: Run, b: Run, *, data: Path | None = None, source: LoadedDataset | None = None) -> Pair:
    """Put two runs side by side.

    Args:
        a: a scored run.
        b: another.
        data: where the data lie, if not where the runs say.
        source: the data, where they are loaded already.

    Raises:
        RunError: the runs are of different tasks, profiles or data, or have no step in common.
        UsageError: the data cannot be found.
        DataError: the data cannot be read.
    """
    _check_alike(a, b)
    steps: list[Step] = []
    if not a.offline_scorer:
        source = source or _load(a, b, data)
        _check_source(a, source)
        _check_source(b, source)
        steps = list(source.steps)
    ids = [step.sample_id for step in steps] or list(dict.fromkeys((*a.scores, *b.scores)))
    known = set(ids)
    for run in (a, b):
        _check_ids(run, known)
    in_a, in_b = ({name for name in ids if _has(run, name)} for run in (a, b))
    common = [name for name in ids if name in in_a and name in in_b]
    if not common:
        raise RunError(
            "the runs have no step in common",
            where=f"{a.path} has {len(in_a)}, {b.path} has {len(in_b)}",
            expected="answers to the same steps",
            remedy="look at --where, --limit and --shard of the two runs",
        )
    chosen = set(common)
    kept = [step for step in steps if step.sample_id in chosen]
    whole = whole_episodes(steps, kept) if kept else None
    listed = a.scores.keys() | b.scores.keys()
    return Pair(
        a,
        b,
        common,
        kept,
        ids,
        _rows(a, common, whole),
        _rows(b, common, whole),
        only_a=len(in_a) - len(common),
        only_b=len(in_b) - len(common),
        neither=len(listed - in_a - in_b),
    )


def _check_alike(a: Run, b: Run) -> None:
    if a.task != b.task:
        raise RunError(
            f"the runs are of different tasks: {a.task} and {b.task}",
            where=f"{a.path} and {b.path}",
            expected="two runs of one task",
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
            expected="the same annotations, to the byte",
            remedy="run one of the two again on the other's data",
        )


def _load(a: Run, b: Run, data: Path | None) -> LoadedDataset:
    """The data, from where the user or the first run says that they lie."""
    named = data or a.data or b.data
    if named is None:
        raise UsageError(
            "neither run says which data it is of",
            where=f"{a.path} and {b.path}",
            expected="the data that the answers were scored on",
            remedy="add --data DATA",
        )
    if not named.exists():
        raise UsageError(
            "the data are not there",
            where=str(named),
            expected="the data of the runs, for their episodes and labels",
            remedy="add --data DATA with the place where they lie now",
        )
    task = a.benchmark if b.imported else b.benchmark
    return task.load(named, check_media=False)


def _check_source(run: Run, source: LoadedDataset) -> None:
    if run.fingerprint and run.fingerprint != source.fingerprint:
        raise RunError(
            f"the run was made on other data: fingerprint {run.fingerprint[:16]}, and "
            f"{source.fingerprint[:16]} of {source.root}",
            where=str(run.path),
            expected="the annotations that the run was made on, to the byte",
            remedy="name them with --data, or run again on these",
        )


def _check_ids(run: Run, known: set[str]) -> None:
    unknown = [name for name in run.scores if name not in known]
    if unknown:
        are = "is" if len(unknown) == 1 else "are"
        steps = counted(len(unknown), "step")
        raise RunError(
            f"{steps} of the run {are} not in the data, e.g. {unknown[0]:.80}",
            where=str(run.path),
            expected="scores of steps of the data",
            remedy="name with --data the data that it was scored on",
        )


def _has(run: Run, sample_id: str) -> bool:
    score = run.scores.get(sample_id)
    return score is not None and score["outcome"] != "missing"


def _rows(run: Run, ids: Sequence[str], whole: npt.NDArray[np.bool_] | None) -> VerdictColumns:
    """The run's verdicts on these steps."""
    scores = [run.scores[name] for name in ids]
    scorer = run.offline_scorer
    names = scorer.paired(run.profile) if scorer else run.benchmark.profiles[run.profile].values
    if lacking := [name for name in names if name not in scores[0]]:
        raise RunError(
            f"runs of the profile {run.profile} cannot be compared",
            where=str(run.path / "scores.jsonl"),
            expected=f"{lacking[0]} of every step or task",
            remedy="compare runs that answer steps; if an older version scored these, score again",
        )
    try:
        codes = np.array([OUTCOMES.index(score["outcome"]) for score in scores], dtype=np.uint8)
        values = {
            name: np.array([_value(score, name) for score in scores], dtype=np.float64)
            for name in names
        }
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(
            f"a line of the scores cannot be read ({type(error).__name__}: {error})",
            where=str(run.path / "scores.jsonl"),
            expected="what `omnidata score` writes",
            remedy="score the run again: omnidata score TASK DATA RUN --out RUN",
        ) from None
    return VerdictColumns(
        codes, values, np.ones(len(ids), dtype=np.bool_) if whole is None else whole
    )


def _value(score: Mapping[str, Any], name: str) -> float:
    value = score[name]
    return float("nan") if value is None else float(value)


def _failures(rows: VerdictColumns) -> dict[str, int]:
    found = Counter(OUTCOMES[code] for code in rows.outcomes.tolist())
    return {name: found[name] for name in OUTCOMES if found[name] and name not in ANSWERED}


# In what two runs differ besides their answers.

_ASKED = (
    "options",
    "model_options",
    "model_settings",
    "generation",
    "seed",
    "prompt_hash",
    "control",
    "where",
    "exclude",
    "limit",
    "shard",
)
"""Keys of `run.json` that change what a run was asked, or how."""


def differences(a: Run, b: Run) -> list[Change]:
    """The settings in which two runs differ, but for their models; none where one is imported."""
    if a.imported or b.imported:
        return []
    asked = ({key: run.settings.get(key) for key in _ASKED} for run in (a, b))
    return [
        Change(each.name, _excluded(each.a), _excluded(each.b)) if each.name == "exclude" else each
        for each in changes(*asked)
    ]


def _excluded(steps: Sequence[str] | None) -> str | None:
    return counted(len(steps), "step") if steps else None
