"""From answers to the table: judge, write a line per step, total."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from omnidata import predictions
from omnidata.errors import DataError, PredictionError, RunError, UsageError
from omnidata.files import STREAMED, lines, open_file
from omnidata.jsontext import encode
from omnidata.predictions import Prediction, lacked
from omnidata.run.escaping import file_name
from omnidata.run.folder import explained
from omnidata.run.run_files import read_info, read_results, read_scores
from omnidata.run.selection import select, shard
from omnidata.storage import atomic_write, write_json
from omnidata.tasks import get_task
from omnidata.tasks.offline_scorer import OfflineScorer, Scored
from omnidata.types import (
    OUTCOMES,
    LoadedDataset,
    Outcome,
    Profile,
    Step,
    Task,
    Verdict,
    VerdictColumns,
)

_CODE = {name: code for code, name in enumerate(OUTCOMES)}
_NONE = -1
Values = tuple[float | bool | None, ...]


def profiles_of(task: Task) -> list[str]:
    """All profiles of the benchmark, with the task's options: its own first, the default first."""
    return [*task.profiles, *(task.score_files.profiles if task.score_files else ())]


def get_profile(task: Task, name: str | None) -> Profile:
    """The task's profile of that name, or its default.

    Raises:
        UsageError: the task has no such profile with its options.
    """
    profile = task.profiles.get(name or task.default_profile)
    if profile is None:
        raise UsageError(
            f'{task.name} has no profile "{name}" with these options',
            where=f"--profile {name}",
            expected=f"one of {', '.join(profiles_of(task))}",
        )
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
    first: dict[str, int] = {}
    for number, step in enumerate(steps):
        first.setdefault(step.sample_id, number)
    repeated = len(steps) - len(first)
    if repeated:
        steps, whole = [steps[number] for number in first.values()], whole[[*first.values()]]
    judged = _Columns(profile, steps, origin)
    if out is None:
        for _ in judged.lines(answers, ignored):
            pass
    else:
        with explained(out):
            out.mkdir(parents=True, exist_ok=True)
            with atomic_write(out / "scores.jsonl") as file:
                file.writelines(judged.lines(answers, ignored))
    results = {
        "task": task.name,
        "profile": profile.name,
        **profile.total(steps, judged.rows(whole)),
    }
    if judged.degraded:
        results["counts"]["degraded"] = judged.degraded
    if repeated:
        results["counts"]["repeated"] = repeated
    if stopped:
        results["stopped"] = stopped
    if out is not None:
        with explained(out):
            write_json(out / "results.json", results)
    return results


class _Columns:
    """Verdicts as flat columns, filled in the order in which answers come.

    A dataset knows few different verdicts, so a step holds the number of its verdict, and what
    every line with that verdict has in common is encoded once. `degraded` counts the answers for
    which the model did not get all media.
    """

    def __init__(self, profile: Profile, steps: Sequence[Step], origin: Path | None = None) -> None:
        self.profile = profile
        self.origin = origin
        self.steps = steps
        self.index = {step.sample_id: number for number, step in enumerate(steps)}
        self.verdicts = array("l", [_NONE]) * len(steps)
        self.kinds: dict[tuple[Outcome, Values], tuple[int, bytes]] = {}
        self.degraded = 0

    def lines(self, answers: Iterable[Prediction], ignored: frozenset[str]) -> Iterator[bytes]:
        """Judge every answer, then every step without one; yields the lines of `scores.jsonl`."""
        unknown: list[str] = []
        judge, failed = self.profile.judge, self.profile.failed
        for answer in answers:
            number = self.index.get(answer.sample_id)
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
            if lacked(answer.receipt):
                self.degraded += 1
            if answer.delivery == "ok":
                verdict = judge(step, answer.output or "", answer.receipt)
            else:
                verdict = failed(step, answer.delivery)
            yield self._record(number, step, verdict)
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

    def _record(self, number: int, step: Step, verdict: Verdict) -> bytes:
        kind = verdict.outcome, verdict.values
        known = self.kinds.get(kind)
        if known is None:
            known = self.kinds[kind] = len(self.kinds), self._common(*kind)
        self.verdicts[number] = known[0]
        return b'{"sample_id":%b,%b,"parsed":%b%b}\n' % (
            encode(step.sample_id),
            known[1],
            b"null" if verdict.parsed is None else encode(verdict.parsed),
            b',"reason":%b' % encode(verdict.reason) if verdict.reason else b"",
        )

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
    with explained(place):
        place.mkdir(parents=True, exist_ok=True)
        with atomic_write(place / "scores.jsonl") as file:
            file.writelines(encode(line) + b"\n" for line in scored.lines)
        write_json(place / "results.json", scored.results)


# What a run folder says about how its answers are judged, and on which steps.


def recorded_task(
    info: Mapping[str, Any], name: str | None = None, options: Mapping[str, str] = {}
) -> Task:
    """The task, set up as far as loading and judging depend on it.

    Options that allow any text name folders and files of the prompt's, which may be gone by now.

    Args:
        info: the content of `run.json`; empty for answers that are no run.
        name: of the task; the run's own if None.
        options: those that the caller wants otherwise.

    Raises:
        UsageError: there is no such task or option.
    """
    name = name or info["task"]
    allowed = get_task(name).allowed
    recorded = info.get("options", {}).items()
    said = {key: value for key, value in recorded if allowed.get(key, ("",)) != ("",)}
    return get_task(name, said | dict(options))


def recorded_steps(info: Mapping[str, Any], source: LoadedDataset, run: Path) -> list[Step]:
    """The steps that the run asks about.

    Args:
        info: the content of `run.json`.
        source: the data, loaded.
        run: the folder, for messages.

    Raises:
        RunError: the data have other annotations than the run's.
    """
    if info.get("dataset_fingerprint") != source.fingerprint:
        raise RunError(
            "the run was made on other annotations",
            where=str(run),
            expected="the annotations that run.json has the fingerprint of",
            remedy="name the data of the run; to score all the same, name its predictions.jsonl",
        )
    chosen = select(
        source.steps,
        where=info.get("where", {}),
        exclude=frozenset(info.get("exclude", ())),
        limit=info.get("limit"),
        spelling=recorded_task(info).spelling,
    )
    part = info.get("shard")
    return shard(chosen, *part) if part else chosen


# A run as others left it on disk: settings, results, scores and answers.

Unit = Literal["share", "number"]
_RESULTS, _SCORES, _ANSWERS = "results.json", "scores.jsonl", "predictions.jsonl"


@dataclass(frozen=True)
class Run:
    """A scored run; what it says line by line is read when first asked for, and kept.

    Attributes:
        path: the folder.
        settings: the content of `run.json`; empty for answers that were imported.
        results: the content of `results.json`: fractions, not percent.
    """

    path: Path
    settings: Mapping[str, Any]
    results: Mapping[str, Any]

    @property
    def task(self) -> str:
        """The benchmark's name."""
        return str(self.results["task"])

    @property
    def profile(self) -> str:
        """The rules that it was scored by."""
        return str(self.results["profile"])

    @property
    def name(self) -> str:
        """The model's SPEC; the folder's name for answers that were imported.

        A run on altered media bears their name: nobody is to take it for a normal one.
        """
        name = str(self.settings.get("model") or self.path.resolve().name)
        return f"{name} [{self.control}]" if self.control else name

    @property
    def control(self) -> str:
        """What was wrong with the media that the model was shown; empty if nothing."""
        return str((self.settings.get("control") or {}).get("name", ""))

    @property
    def imported(self) -> bool:
        """Whether the answers came from elsewhere: then nothing is known of how they were made."""
        return not self.settings

    @property
    def fingerprint(self) -> str | None:
        """Of the data's annotations; None where the folder does not say."""
        return self.settings.get("dataset_fingerprint")

    @property
    def data(self) -> Path | None:
        """Where the data lay when the run was made; None where the folder does not say."""
        place = self.settings.get("data")
        return Path(place) if place else None

    @property
    def stopped(self) -> str:
        """Why not all steps were asked about; empty if they were."""
        return str(self.results.get("stopped", ""))

    @cached_property
    def benchmark(self) -> Task:
        """The task, set up as far as loading and judging depend on it.

        Raises:
            RunError: this omnidata does not know the task or an option.
        """
        try:
            return recorded_task(self.settings, self.task)
        except UsageError as error:
            raise RunError(
                error.what,
                where=str(self.path),
                expected=error.expected,
                remedy="score the run with the version that made it, or restore its files",
            ) from None

    @cached_property
    def offline_scorer(self) -> OfflineScorer | None:
        """Who scored it without any text, task by task; None where a model's texts were scored."""
        scorer: OfflineScorer | None = self.benchmark.score_files
        return scorer if scorer and self.profile in scorer.profiles else None

    @cached_property
    def columns(self) -> Mapping[str, Unit]:
        """The totals that a table shows, in order, and how they are printed.

        Raises:
            RunError: this omnidata does not know the profile.
        """
        if scorer := self.offline_scorer:
            return scorer.profiles[self.profile]
        profile = self.benchmark.profiles.get(self.profile)
        if profile is None:
            raise RunError(
                f'{self.task} has no profile "{self.profile}"',
                where=str(self.path / _RESULTS),
                expected=f"one of {', '.join(self.benchmark.profiles)}",
                remedy="score the run again with this version: omnidata score",
            )
        return profile.columns

    @cached_property
    def scores(self) -> Mapping[str, Mapping[str, Any]]:
        """The lines of `scores.jsonl` by sample id: outcome, the profile's values, parsed, reason.

        Raises:
            RunError: see `read_scores`.
        """
        return read_scores(self.path, self.profile)

    @cached_property
    def predictions(self) -> Mapping[str, Prediction]:
        """The answers by sample id; none where the folder has scores alone.

        Raises:
            PredictionError: a line is no prediction, or a step has two.
        """
        path = self.path / _ANSWERS
        if not path.exists():
            return {}
        found: dict[str, Prediction] = {}
        for line in predictions.read(path, of_run=True):
            if line.sample_id in found:
                raise PredictionError(
                    f"step {line.sample_id} has two lines",
                    where=str(path),
                    expected="one final line per step",
                    remedy="remove one of them",
                )
            found[line.sample_id] = line
        return found


def read_run(folder: Path) -> Run:
    """The run of a folder: one of `omnidata evaluate`, or of `omnidata score --out`.

    Args:
        folder: holds `results.json`; `run.json` and `predictions.jsonl` where the run was made
            here.

    Raises:
        RunError: there is no such folder, no run in it, it has no results yet, or a file of it is
            broken.
    """
    if not folder.is_dir():
        raise RunError(
            "it is a file" if folder.exists() else "there is no such folder",
            where=str(folder),
            expected="a run folder, as `omnidata evaluate --out` or `score --out` make it",
            remedy="name a folder that is there",
        )
    has_info = (folder / "run.json").exists()
    if not (folder / _RESULTS).exists():
        raise _without_results(folder, has_info)
    info = read_info(folder) if has_info else {}
    return Run(folder, info, read_results(folder))


def _without_results(folder: Path, has_info: bool) -> RunError:
    """Why a folder has none: unfinished, never scored, or no run at all."""
    if has_info:
        what = "the run is unfinished: it has no results"
        expected = "a run that went to its end"
        remedy = "repeat its `omnidata evaluate` command: it goes on where it stopped"
    elif (folder / _ANSWERS).exists() or (folder / _SCORES).exists():
        what = "the answers were never scored"
        expected = _RESULTS
        remedy = f"omnidata score TASK DATA {folder / _ANSWERS} --out SCORED, and name SCORED"
    else:
        what = "the folder holds no run"
        expected = "a folder with run.json or results.json"
        remedy = "name a run folder itself, not the one above it"
    return RunError(what, where=str(folder), expected=expected, remedy=remedy)
