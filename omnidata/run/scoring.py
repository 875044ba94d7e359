"""From answers to the table: judge, write a line per step, total."""

from __future__ import annotations

import warnings
from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from omnidata.errors import DataError, PluginError, PredictionError, RunError, UsageError
from omnidata.files import STREAMED, lines, open_file
from omnidata.jsontext import encode
from omnidata.loaders.stored_steps import Positions, ids_of, taken
from omnidata.name_index import NameIndex
from omnidata.predictions import Prediction, lacked
from omnidata.run.folder import file_name
from omnidata.run.histories import PatchedRollouts, patches_of
from omnidata.run.run_files import ANSWERS, OF_LINE, RESULTS, SCORES
from omnidata.storage import atomic_write, is_unfinished, wrap_os_error, write_json
from omnidata.tasks.explaining import mark_of
from omnidata.tasks.profiles import Scored
from omnidata.types import (
    CAUSES,
    OUTCOMES,
    Cause,
    Diagnosis,
    Outcome,
    Profile,
    Step,
    Task,
    Verdict,
    VerdictColumns,
)

_CODE = {name: code for code, name in enumerate(OUTCOMES)}
_NONE = -1
_CAUSES = tuple(CAUSES)
Values = tuple[float | bool | None, ...]


def profiles_of(task: Task) -> list[str]:
    """All profiles of the benchmark, with the task's options: its own first, the default first."""
    return [*task.profiles, *(task.score_files.profiles if task.score_files else ())]


def get_profile(task: Task, name: str | None) -> Profile:
    """The task's profile of that name, or its default.

    Raises:
        UsageError: the task has no such profile with its options.
        PluginError: the profile does not say which metrics it has, or a value of it is called as
            something else in a line of scores.
    """
    profile = task.profiles.get(name or task.default_profile)
    if profile is None:
        raise UsageError(
            f'{task.name} has no profile "{name}" with these options',
            where=f"--profile {name}",
            expected=f"one of {', '.join(profiles_of(task))}",
            remedy="name one of these, or leave --profile out",
        )
    if taken := OF_LINE.intersection(profile.values):
        raise PluginError(
            f"the profile {profile.name} calls a value {min(taken)!r}",
            where=f"{type(profile).__module__}.{type(profile).__qualname__}",
            expected=f"other names than a line of scores has: {', '.join(sorted(OF_LINE))}",
            remedy="mend the profile, or tell the authors of the plug-in",
        )
    if check := getattr(profile, "check_metrics", None):
        check()
    return profile


def score(
    task: Task,
    profile: Profile,
    steps: Sequence[Step],
    answers: Iterable[Prediction],
    *,
    whole: npt.NDArray[np.bool_],
    out: Path | None = None,
    ignored: frozenset[str] = frozenset(),
    origin: Path | None = None,
    stopped: str = "",
    causes: bool = True,
    agent: str = "",
) -> dict[str, Any]:
    """Judge answers as they come and total them; memory does not grow with their text.

    Args:
        task: the benchmark, for the results' head.
        profile: parser and rules.
        steps: what was asked; those without an answer are `missing`, which is wrong. One whose
            sample id an earlier one has is left out, and counted as `repeated`.
        answers: in any order, at most one per step.
        whole: bool (N,), False for steps of episodes that the choice of steps cut into.
        out: folder for `scores.jsonl` and `results.json`; None writes nothing.
        ignored: ids of steps of the data that were not chosen; answers to them are passed over.
        origin: the file of the answers, for messages.
        stopped: why not all steps were asked about; empty if they were.
        causes: whether to say why answers are wrong, which takes longer than all the rest.
        agent: whose answers they are, where the folder of the scores does not say it; or empty.

    Returns:
        The content of `results.json`.

    Raises:
        DataError: there is no step.
        PredictionError: an answer to a step that does not exist, or two answers to one.
        RunError: the folder cannot be written.
    """
    if not steps:
        raise DataError(
            "there is no step to score",
            where=task.name,
            expected="data of which at least one row is a step",
            remedy=f"`omnidata validate {task.name} DATA` says what became of the rows",
        )
    places = Positions(steps)
    repeated = len(steps) - len(places)
    if repeated:
        first = [n for n, name in enumerate(ids_of(steps)) if places.get(name) == n]
        steps, whole = taken(steps, first), whole[first]
        places = Positions(steps)
    rollouts = None if patches_of(task) is None else PatchedRollouts(task, steps)
    if rollouts:
        answers = rollouts.watched(answers)
    judged = _Columns(task if causes else None, profile, steps, places, origin)
    if out is None:
        for _ in judged.lines(answers, ignored):
            pass
    else:
        with wrap_os_error(out):
            out.mkdir(parents=True, exist_ok=True)
            with atomic_write(out / SCORES) as file:
                file.writelines(judged.lines(answers, ignored))
    results = {
        "task": task.name,
        "profile": profile.name,
        **({"agent": agent} if agent else {}),
        **profile.total(steps, judged.rows(whole)),
    }
    if causes:
        results["causes"] = judged.causes(results["by"])
    if rollouts:
        results["patched"] = rollouts.table()
    if judged.degraded:
        results["counts"]["degraded"] = judged.degraded
    if repeated:
        results["counts"]["repeated"] = repeated
    if stopped:
        results["stopped"] = stopped
    if out is not None:
        with wrap_os_error(out):
            write_json(out / RESULTS, results)
    return results


class _Columns:
    """Verdicts as flat columns, filled in the order in which answers come.

    A dataset knows few different verdicts, so a step holds the number of its verdict, and what
    every line with that verdict has in common is encoded once. `degraded` counts the answers for
    which the model did not get all media. Without a task nobody asks why answers are wrong.
    """

    def __init__(
        self,
        task: Task | None,
        profile: Profile,
        steps: Sequence[Step],
        places: Positions,
        origin: Path | None = None,
    ) -> None:
        self.task = task
        self.profile = profile
        self.origin = origin
        self.steps = steps
        self.places = places
        self.verdicts = array("l", [_NONE]) * len(steps)
        self.kinds: dict[tuple[Outcome, Values], tuple[int, bytes, bool]] = {}
        self.wrong = array("b", [_NONE]) * len(steps)  # the numbers of causes
        self.targets = array("l", [_NONE]) * len(steps)
        self.labels = NameIndex()
        self.unexplained = False
        self.degraded = 0

    def lines(self, answers: Iterable[Prediction], ignored: frozenset[str]) -> Iterator[bytes]:
        """Judge every answer, then every step without one; yields the lines of `scores.jsonl`."""
        unknown: list[str] = []
        judge, failed = self.profile.judge, self.profile.failed
        for answer in answers:
            number = self.places.get(answer.sample_id)
            if number is None:
                if answer.sample_id not in ignored:
                    unknown.append(answer.sample_id)
                continue
            if self.verdicts[number] != _NONE:
                raise PredictionError(
                    "the step is answered twice",
                    where=self._place(answer.sample_id),
                    expected="at most one prediction per step",
                    remedy="remove one of the two lines",
                )
            step = self.steps[number]
            if answer.receipt and lacked(answer.receipt):
                self.degraded += 1
            if answer.delivery == "ok":
                verdict = judge(step, answer.output or "", answer.receipt)
            else:
                verdict = failed(step, answer.delivery)
            yield self._record(number, step, verdict, answer.receipt)
        if unknown:
            raise PredictionError(
                f"{len(unknown)} predictions are for steps that the data does not have",
                where="; ".join(map(self._place, unknown[:5])) + ("; ..." if unknown[5:] else ""),
                expected=f"ids like {self.steps[0].sample_id}",
                remedy="score against the data that the predictions were made on",
            )
        for number, step in enumerate(self.steps):
            if self.verdicts[number] == _NONE:
                yield self._record(number, step, failed(step, "missing"))

    def _place(self, sample_id: str) -> str:
        """The id, and the lines that hold it; only looked up for a message."""
        if self.origin is None or not self.origin.is_file():
            return sample_id
        # A lone surrogate stands in the file as JSON escapes it.
        wanted = sample_id.encode("utf-8", "backslashreplace")
        with open_file(self.origin, STREAMED) as file:
            there = [str(number) for number, line in enumerate(lines(file), 1) if wanted in line]
        return f"{self.origin}:{','.join(there[:5])}: {sample_id}" if there else sample_id

    def _record(
        self,
        number: int,
        step: Step,
        verdict: Verdict,
        receipt: Mapping[str, Any] | None = None,
    ) -> bytes:
        kind = verdict.outcome, verdict.values
        known = self.kinds.get(kind)
        if known is None:
            mark = mark_of(verdict.outcome, dict(zip(self.profile.values, kind[1], strict=True)))
            wrong = mark not in ("right", "unjudged")
            known = self.kinds[kind] = len(self.kinds), self._common(*kind), wrong
        self.verdicts[number] = known[0]
        return b'{"sample_id":%b,%b,"parsed":%b%b%b}\n' % (
            encode(step.sample_id),
            known[1],
            b"null" if verdict.parsed is None else encode(verdict.parsed),
            b',"reason":%b' % encode(verdict.reason) if verdict.reason else b"",
            self._cause(number, step, verdict, receipt) if known[2] and self.task else b"",
        )

    def _cause(
        self, number: int, step: Step, verdict: Verdict, receipt: Mapping[str, Any] | None
    ) -> bytes:
        """Why the answer is wrong, as a line has it."""
        assert self.task
        found, target = Diagnosis("rule"), ""
        try:
            told = self.task.explain(step, verdict, profile=self.profile.name, receipt=receipt)
            found, target = told.diagnosis or found, told.target_label
        except PluginError as error:  # it says nothing about the verdict, which stands
            if not self.unexplained:
                warnings.warn(f"some causes are not known: {error}", RuntimeWarning, stacklevel=2)
            self.unexplained = True
        self.wrong[number] = _CAUSES.index(found.cause)
        if target:
            self.targets[number] = self.labels.add(target)
        return b',"cause":%b%b%b' % (
            encode(found.cause),
            b',"cause_reading":%b' % encode(found.reading) if found.reading else b"",
            b"" if found.distance is None else b',"cause_distance":%b' % encode(found.distance),
        )

    def causes(self, by: Mapping[str, Iterable[str]]) -> dict[str, Any]:
        """How many answers are wrong for each cause: of all steps, by axis, by what was right.

        Args:
            by: axis, which is a tag -> its groups.
        """
        wrong = [number for number, cause in enumerate(self.wrong) if cause != _NONE]
        causes = [_CAUSES[self.wrong[number]] for number in wrong]
        tags = [step.tags for step in taken(self.steps, wrong)]
        by_axis = {
            axis: _grouped(zip([each.get(axis) for each in tags], causes, strict=True))
            for axis in by
        }
        targets = (self.targets[number] for number in wrong)
        by_target = _grouped(
            (self.labels[target], cause)
            for target, cause in zip(targets, causes, strict=True)
            if target != _NONE
        )
        return {
            "overall": _ordered(Counter(causes)),
            "by": {
                axis: {name: _ordered(by_axis[axis].get(name, {})) for name in groups}
                for axis, groups in by.items()
            },
            "by_target": {name: _ordered(by_target[name]) for name in sorted(by_target)},
        }

    def _common(self, outcome: Outcome, values: Values) -> bytes:
        named = dict(zip(self.profile.values, values, strict=True))
        return encode({"outcome": outcome, "profile": self.profile.name, **named})[1:-1]

    def rows(self, whole: npt.NDArray[np.bool_]) -> VerdictColumns:
        """The columns for `Profile.total`."""
        verdicts = np.frombuffer(self.verdicts, dtype=np.dtype("l"))
        outcomes = [_CODE[outcome] for outcome, _ in self.kinds]
        values = np.array([values for _, values in self.kinds], dtype=np.float64)  # None is NaN
        return VerdictColumns(
            np.array(outcomes, dtype=np.uint8)[verdicts],
            {name: values[verdicts, i] for i, name in enumerate(self.profile.values)},
            whole,
        )


_Group = TypeVar("_Group", bound=Hashable)


def _grouped(pairs: Iterable[tuple[_Group, Cause]]) -> dict[_Group, dict[Cause, int]]:
    """How often each cause is named in each group."""
    found: dict[_Group, dict[Cause, int]] = {}
    for (group, cause), count in Counter(pairs).items():
        found.setdefault(group, {})[cause] = count
    return found


def _ordered(found: Mapping[Cause, int]) -> dict[Cause, int]:
    """The counts in the order in which causes are always told."""
    return {cause: found[cause] for cause in CAUSES if cause in found}


# What is scored without any text of a model.

_LONGEST = 100
"""Characters of an agent's name in the name of its folder."""


def agent_folders(scored: Sequence[Scored], out: Path) -> dict[Path, Scored]:
    """The folder of each agent: the one that was named if there is one, else one below it for each.

    Their names are the agents', made safe, whatever other agents there are; where those of two
    would be the same, a part of a hash tells them apart.
    """
    if len(scored) == 1:
        return {out: scored[0]}
    names = [file_name(one.agent).strip(".-") for one in scored]
    often = Counter(name.lower() for name in names)
    found = {}
    for one, name in zip(scored, names, strict=True):
        if not name or len(name) > _LONGEST or often[name.lower()] > 1:
            digest = sha256(one.agent.encode("utf-8", "surrogateescape")).hexdigest()
            name = f"{name[:_LONGEST]}-{digest[:8]}".lstrip("-")
        found[out / name] = one
    return found


def write_scored(place: Path, scored: Scored) -> None:
    """Write `scores.jsonl` and `results.json`.

    Raises:
        RunError: the folder cannot be written.
    """
    with wrap_os_error(place):
        place.mkdir(parents=True, exist_ok=True)
        with atomic_write(place / SCORES) as file:
            file.writelines(encode(line) + b"\n" for line in scored.lines)
        write_json(place / RESULTS, scored.results)


# Where scores may be written.


def check_agent_folders(out: Path, outs: Sequence[Path], answers: Path | None) -> None:
    """Refuse folders as `check_scores_folder` does, and one with scores of others beside them.

    Args:
        out: the folder that was named.
        outs: those of the scores: that one, or folders below it.
        answers: what is scored.
    """
    own: dict[Path, set[str]] = {}
    for place in outs:
        check_scores_folder(place, answers)
        for each in (place, *place.parents):
            if each == out:
                break
            own.setdefault(each.parent, set()).add(each.name)
    for folder, names in own.items():
        if not folder.exists():
            continue
        if not folder.is_dir() or {path.name for path in folder.iterdir()} - names:
            raise RunError(
                "the place holds other things than these scores",
                where=f"--out {out}",
                expected=f"a new folder: {len(outs)} sets of scores get one each below it",
                remedy="give another --out",
            )


def check_scores_folder(out: Path, predictions: Path | None) -> None:
    """Refuse a folder whose content the scores would be taken to belong to."""
    if not out.exists() or (predictions is not None and _is_run(out, predictions)):
        return
    ours = (SCORES, RESULTS)
    if out.is_dir() and all(
        path.name in ours or is_unfinished(path.name) for path in out.iterdir()
    ):
        return
    raise RunError(
        "the place holds other things",
        where=f"--out {out}",
        expected="a new folder, one of earlier scores, or the run that is scored",
        remedy="give another --out",
    )


def _is_run(out: Path, predictions: Path) -> bool:
    run = predictions if predictions.is_dir() else predictions.parent
    is_run = (run / "run.json").is_file() and (run == predictions or predictions.name == ANSWERS)
    return is_run and out.resolve() == run.resolve()
