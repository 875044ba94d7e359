"""A scored run as its folder holds it: results, scores and answers, checked when they are read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Required, TypedDict

from msgspec import Meta

from omnidata import predictions
from omnidata.errors import RunError
from omnidata.metrics.paired import Unit
from omnidata.predictions import Prediction
from omnidata.run.recorded import recorded_task
from omnidata.run.run_info import (
    ANSWERS,
    INFO,
    RESULTS,
    SCORES,
    Count,
    JsonFile,
    Number,
    control_name,
    model_name,
    read_info,
)
from omnidata.tasks.asking import Asking
from omnidata.tasks.coordinates import Side
from omnidata.tasks.rollouts import OfflineScorer
from omnidata.types import Cause, Outcome, Verdict

_AGAIN: Final = "score the run again: omnidata score TASK DATA RUN --out RUN"

_Totals = dict[str, Number | None]
_Interval = tuple[Number | None, Number | None] | None
_Intervals = dict[str, _Interval] | None


class _Counts(TypedDict, total=False):
    episodes: Count
    whole_episodes: Count
    incomplete_episodes: Count
    steps: Count
    tasks: Count
    finished: Count
    rows: Count
    degraded: Count


class _Causes(TypedDict):
    overall: dict[Cause, Count]
    by: dict[str, dict[str, dict[Cause, Count]]]
    by_target: dict[str, dict[Cause, Count]]


class _Endings(TypedDict, total=False):
    attempts: Required[Count]
    endings: Required[dict[str, Count]]
    failures: Required[dict[str, Count]]
    active_finish: Number | None
    false_finish: Number | None
    ci95: _Intervals


class _Rollouts(_Endings, total=False):
    unrecorded: Count
    turns: _Totals | None
    seconds: _Totals | None
    tokens: _Totals | None
    lengths: dict[Annotated[str, Meta(pattern="^[1-9][0-9]{0,4}$")], Count]
    step_limit: Count | None
    within: list[Number]
    area: Number | None
    by: dict[str, dict[str, _Endings]]


class _Attempts(TypedDict):
    n: Count
    finished: Count
    tasks: Count
    k: dict[Annotated[str, Meta(pattern="^[1-9][0-9]{0,3}$")], dict[str, Any]]


class _Places(TypedDict):
    missed: Count
    readings: dict[str, Count]
    by_chance: dict[Cause, Number] | None


class _Reason(TypedDict):
    kind: str
    count: Count
    of: Count
    what: str
    fix: str


class _Effect(TypedDict, total=False):
    name: Required[str]
    version: Required[str]
    hash: Required[str]
    steps: Required[Count]
    verdicts_changed: Required[Count]
    now_right: Required[Count]
    now_wrong: Required[Count]
    dropped: Required[Count]
    unknown: Count


class _WithErrata(TypedDict, total=False):
    overall: Required[_Totals]
    ci95: _Intervals
    by: Required[dict[str, dict[str, dict[str, Any]]]]
    counts: Required[_Counts]


class _Results(TypedDict, total=False):
    task: Required[str]
    profile: Required[str]
    overall: Required[dict[str, Any]]
    ci95: _Intervals
    ci95_method: dict[str, str]
    by: Required[dict[str, dict[str, dict[str, Any]]]]
    counts: Required[_Counts]
    causes: _Causes
    places: _Places
    headline: list[_Reason]
    outcomes: dict[str, Count]
    stopped: str
    agent: str
    errata: list[_Effect]
    with_errata: _WithErrata
    rollouts: _Rollouts
    attempts: _Attempts


class _Score(TypedDict, total=False):
    sample_id: Required[str]
    outcome: Required[Outcome]
    profile: Required[str]
    parsed: Any
    reason: str
    cause: Cause
    cause_reading: str
    cause_distance: Side


OF_LINE: Final = frozenset(_Score.__annotations__)
"""The keys of a line of scores; no value of a profile has one of these names."""
_Value = bool | Number | None


def _results_file(run: Path) -> JsonFile:
    return JsonFile(run / RESULTS, "the file that `omnidata score` writes", _AGAIN)


def read_results(run: Path) -> dict[str, Any]:
    """Return the content of a run's `results.json`.

    Raises:
        RunError: it is missing, cannot be read, or a value is not of its type.
    """
    file = _results_file(run)
    found = file.read()
    file.check(found, _Results)
    for k, row in found.get("attempts", {}).get("k", {}).items():
        totals = {name: each for name, each in row.items() if not name.startswith("ci95")}
        file.check(totals, _Totals, f"k={k}")
        file.check(row.get("ci95"), _Intervals, f"k={k}.ci95")
    for axis, groups in found["by"].items():
        for name, group in groups.items():
            place = f"by.{axis}.{name}"
            file.check(group, _Counts, place)
            file.check(group.get("ci95"), _Intervals, f"{place}.ci95")
    return found


def read_scores(
    run: Path, profile: str, *, values: Collection[str] = (), parsed: Any = dict[str, Any]
) -> dict[str, Mapping[str, Any]]:
    """Return the lines of a run's `scores.jsonl` by sample id.

    Args:
        run: the folder.
        profile: that of its results.
        values: of the profile, which are numbers; other values of a line are not checked.
        parsed: the type of `parsed`, if that is an object.

    Raises:
        RunError: the file is missing, a line cannot be read, a value of it is not of its type, or
            it is of another profile; or a step has two lines.
    """
    file = JsonFile(run / SCORES, '{"sample_id": "...", "outcome": "...", ...}', _AGAIN)
    found: dict[str, Mapping[str, Any]] = {}
    for number, score in file.lines():
        file.check(score, _Score, line=number)
        for name in sorted(score.keys() & values):
            file.check(score[name], _Value, name, line=number)
        if isinstance(score.get("parsed"), dict):
            file.check(score["parsed"], parsed, "parsed", line=number)
        if score["sample_id"] in found:
            expected = "one line per step"
            raise file.error("the step has two lines", line=number, expected=expected)
        if score["profile"] != profile:
            what = f"the line is of profile {score['profile']}"
            expected = f"the profile of results.json, {profile}"
            raise file.error(what, line=number, expected=expected)
        found[score["sample_id"]] = score
    return found


@dataclass(frozen=True)
class Run:
    """A scored run; its scores and answers are read on first access, and kept.

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
        """The name of the benchmark."""
        return str(self.results["task"])

    @property
    def profile(self) -> str:
        """The name of the scoring rules."""
        return str(self.results["profile"])

    @property
    def name(self) -> str:
        """The model's SPEC with its marks, or the agent; of other imported answers the folder."""
        return str(
            model_name(self.settings) or self.results.get("agent") or self.path.resolve().name
        )

    @property
    def control(self) -> str:
        """The name of the altered media that the model got; empty for the data's own."""
        return control_name(self.settings)

    @property
    def imported(self) -> bool:
        """Whether the answers were made elsewhere, with unknown settings."""
        return not self.settings

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the annotations; None if it is not recorded."""
        return self.settings.get("dataset_fingerprint")

    @property
    def data(self) -> Path | None:
        """The recorded place of the data, which `recorded_data` checks; None without one."""
        place = self.settings.get("data")
        return Path(place) if place else None

    @property
    def stopped(self) -> str:
        """The reason why the run stopped early; empty if it did not."""
        return str(self.results.get("stopped", ""))

    @cached_property
    def asking(self) -> Asking:
        """The task with the options that loading and judging depend on, or RunError."""
        return recorded_task(self.settings, self.task, run=self.path)

    @cached_property
    def offline_scorer(self) -> OfflineScorer | None:
        """The scorer of recorded rollouts; None if texts of a model were scored."""
        scorer: OfflineScorer | None = self.asking.benchmark.rollouts
        return scorer if scorer and self.profile in scorer.profiles else None

    @cached_property
    def columns(self) -> Mapping[str, Unit]:
        """The totals that a table shows, in order, with their units, or RunError."""
        if scorer := self.offline_scorer:
            return scorer.profiles[self.profile]
        profile = self.asking.profiles.get(self.profile)
        if profile is None:
            raise RunError(
                f'{self.task} has no profile "{self.profile}"',
                where=str(self.path / RESULTS),
                expected=f"one of {', '.join(self.asking.profiles)}",
                remedy="score the run again with this version: omnidata score",
            )
        return profile.columns

    @property
    def lower_is_better(self) -> Collection[str]:
        """The columns with smaller values for better results."""
        rules = self.offline_scorer or self.asking.profiles.get(self.profile)
        return rules.lower_is_better if rules else ()

    @cached_property
    def scores(self) -> Mapping[str, Mapping[str, Any]]:
        """The lines of `scores.jsonl` by sample id, as of `read_scores`."""
        if scorer := self.offline_scorer:
            return read_scores(self.path, self.profile, values=scorer.paired_totals(self.profile))
        profile = self.asking.profiles.get(self.profile)
        return read_scores(
            self.path,
            self.profile,
            values=profile.values if profile else (),
            parsed=self.asking.benchmark.card.answer_type,
        )

    @cached_property
    def predictions(self) -> Mapping[str, Prediction]:
        """The answers by sample id, or PredictionError; empty if the folder has scores alone."""
        return {line.sample_id: line for line in predictions.read_final(self.path / ANSWERS)}

    def verdict(self, sample_id: str) -> Verdict:
        """Return the recorded verdict on a scored step."""
        line = self.scores[sample_id]
        parsed = line.get("parsed")
        return Verdict(
            line["outcome"],
            tuple(line.get(name) for name in self.asking.profiles[self.profile].values),
            parsed if isinstance(parsed, dict) else None,
            line.get("reason", ""),
        )


def read_run(folder: Path) -> Run:
    """Return the run in a folder, of `omnidata evaluate` or `omnidata score --out`.

    Args:
        folder: with `results.json`; and with `run.json` and `predictions.jsonl` if the answers were
            made by `omnidata evaluate`.

    Raises:
        RunError: there is no such folder, no run in it, it has no results yet, a file of it is
            broken, or this omnidata does not know its task or profile.
    """
    if not folder.is_dir():
        raise RunError(
            "it is a file" if folder.exists() else "there is no such folder",
            where=str(folder),
            expected="a run folder, as `omnidata evaluate --out` or `score --out` make it",
            remedy="name an existing folder",
        )
    has_info = (folder / INFO).exists()
    if not (folder / RESULTS).exists():
        raise _without_results(folder, has_info)
    run = Run(folder, read_info(folder) if has_info else {}, read_results(folder))
    file = _results_file(folder)
    totals = {"overall": run.results["overall"]}
    for axis, groups in run.results["by"].items():
        totals |= {f"by.{axis}.{name}": group for name, group in groups.items()}
    for place, found in totals.items():
        file.check({name: found[name] for name in run.columns if name in found}, _Totals, place)
    return run


def _without_results(folder: Path, has_info: bool) -> RunError:
    if has_info:
        what = "the run is unfinished: it has no results"
        expected = "a run that went to its end"
        remedy = "repeat its `omnidata evaluate` command: it goes on where it stopped"
    elif (folder / ANSWERS).exists() or (folder / SCORES).exists():
        what = "the answers were never scored"
        expected = RESULTS
        remedy = f"omnidata score TASK DATA {folder / ANSWERS} --out SCORED, and name SCORED"
    else:
        what = "the folder holds no run"
        expected = "a folder with run.json or results.json"
        remedy = "name a run folder itself, not the one above it"
    return RunError(what, where=str(folder), expected=expected, remedy=remedy)
