"""A run as it lies on disk, read and checked once: its values have the types stated here.

A run folder may be old, edited by hand, or somebody else's. Each file has one reader here, but for
the lines of answers, which `omnidata.predictions` reads. What is no key of these files is anybody's
and is kept; what an older version did not write is absent.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Required, TypedDict

import msgspec
from msgspec import Meta

from omnidata import predictions
from omnidata.adapters.keys import without_credentials
from omnidata.errors import RunError, UsageError
from omnidata.files import LINE, lines
from omnidata.jsontext import BROKEN, decode, is_shallow
from omnidata.metrics.paired import Unit
from omnidata.predictions import Prediction
from omnidata.remote import is_url
from omnidata.run.selection import select, shard
from omnidata.storage import open_own, write_json
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.tasks.common_options import FOR_JUDGING, names_file
from omnidata.tasks.coordinates import Side
from omnidata.tasks.rollouts import OfflineScorer
from omnidata.types import Cause, LoadedDataset, Outcome, Step

_MOST: Final = 512 * 1024**2
"""Bytes of a file that is read as a whole."""

_AGAIN: Final = "score the run again: omnidata score TASK DATA RUN --out RUN"

_OF_RUN: Final = "the file that `omnidata evaluate` writes"

_OF_RESULTS: Final = "the file that `omnidata score` writes"

FACTS: Final = (
    *("data", "steps", "findings", "stopped", "merged", "changed_media"),
    *("versions", "timings", "usage", "facts"),
)
"""What `run.json` says beside the settings."""

INFO, ANSWERS, SCORES, RESULTS = "run.json", "predictions.jsonl", "scores.jsonl", "results.json"

# Every number is finite, and small enough that sums stay exact or finite.
_Number = Annotated[float, Meta(ge=-1e18, le=1e18)]
_Count = Annotated[int, Meta(ge=0, le=2**53)]
_Amount = Annotated[float, Meta(ge=-1e100, le=1e100)]  # a cost, or a sum that a server's word made
_Part = Annotated[int, Meta(ge=1, le=999_999)]  # as `--shard` takes them
_Totals = dict[str, _Number | None]
_Interval = tuple[_Number | None, _Number | None] | None
_Intervals = dict[str, _Interval] | None


class _Control(TypedDict, total=False):
    name: str


class _Selection(TypedDict):
    by: str
    samples: _Count


class _Info(TypedDict, total=False):
    task: Required[str]
    options: dict[str, str]
    model: Required[str]
    model_options: dict[str, Any]
    model_settings: dict[str, Any] | None
    generation: dict[str, Any]
    seed: int | None
    dataset_fingerprint: str | None
    control: _Control | None
    selection: _Selection
    prompt_hash: str | None
    prompt_texts: dict[str, str]
    where: dict[str, str]
    exclude: list[str]
    limit: _Count | None
    shard: tuple[_Part, _Part] | None
    data: str | None
    steps: _Count
    findings: _Count
    stopped: str
    merged: list[str]
    versions: dict[str, str]
    timings: dict[str, _Number]
    usage: dict[str, _Amount | str | None]
    facts: dict[str, Any]


class _Counts(TypedDict, total=False):
    episodes: _Count
    whole_episodes: _Count
    incomplete_episodes: _Count
    steps: _Count
    tasks: _Count
    finished: _Count
    rows: _Count
    degraded: _Count


class _Causes(TypedDict):
    overall: dict[Cause, _Count]
    by: dict[str, dict[str, dict[Cause, _Count]]]
    by_target: dict[str, dict[Cause, _Count]]


class _Endings(TypedDict, total=False):
    attempts: Required[_Count]
    endings: Required[dict[str, _Count]]
    failures: Required[dict[str, _Count]]
    active_finish: _Number | None
    false_finish: _Number | None
    ci95: _Intervals


class _Rollouts(_Endings, total=False):
    unrecorded: _Count
    turns: _Totals | None
    seconds: _Totals | None
    tokens: _Totals | None
    lengths: dict[Annotated[str, Meta(pattern="^[1-9][0-9]{0,4}$")], _Count]
    step_limit: _Count | None
    within: list[_Number]
    area: _Number | None
    by: dict[str, dict[str, _Endings]]


class _Attempts(TypedDict):
    n: _Count
    finished: _Count
    tasks: _Count
    k: dict[Annotated[str, Meta(pattern="^[1-9][0-9]{0,3}$")], dict[str, Any]]


class _Places(TypedDict):
    missed: _Count
    readings: dict[str, _Count]
    by_chance: dict[Cause, _Number] | None


class _Reason(TypedDict):
    kind: str
    count: _Count
    of: _Count
    what: str
    fix: str


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
    outcomes: dict[str, _Count]
    stopped: str
    agent: str
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
_Value = bool | _Number | None


def read_info(run: Path) -> dict[str, Any]:
    """Return a run's `run.json` without the secrets that older versions wrote there.

    Raises:
        RunError: it is missing, cannot be read, or a value is not of its kind.
    """
    path, remedy = run / INFO, "name a run folder, or start the run again in another one"
    found = _whole(path, _OF_RUN, remedy)
    _check_info(found, path, remedy)
    return without_secrets(found)


def write_info(run: Path, info: Mapping[str, Any]) -> None:
    """Write a run's `run.json`, unless `read_info` would refuse it.

    Args:
        run: the folder.
        info: the settings of the run, and facts about it.

    Raises:
        RunError: a value could not be read again: a name that no file can hold, a number beyond all
            sense, something nested too deeply. Nothing is written.
        OSError: see `omnidata.storage.atomic_write`.
    """
    check_info(info, run / INFO)
    write_json(run / INFO, info)


def check_info(info: Mapping[str, Any], path: Path) -> None:
    """Refuse what could not be read again as the content of a `run.json`.

    Raises:
        RunError: see `write_info`.
    """
    remedy = "give the model or the task settings that can be written down"
    text = json.dumps(info).encode()
    _check_info(_object(text, str(path), _OF_RUN, remedy), path, remedy)


def _check_info(found: Mapping[str, Any], path: Path, remedy: str) -> None:
    _convert(found, _Info, str(path), _OF_RUN, remedy)
    try:
        named = b"\0" not in os.fsencode(found.get("data") or "")
    except UnicodeEncodeError:
        named = False
    if not named:
        raise RunError(
            "no file can have the name that `data` has",
            where=str(path),
            expected=_OF_RUN,
            remedy=remedy,
        )


def without_secrets(info: Mapping[str, Any]) -> dict[str, Any]:
    """Settings without what names like `api_key` hold; but what steps are chosen by stays."""
    hidden: dict[str, Any] = without_credentials(info)
    return hidden | {name: info[name] for name in ("options", "where") if name in info}


def read_results(run: Path) -> dict[str, Any]:
    """Return the content of a run's `results.json`.

    Raises:
        RunError: it is missing, cannot be read, or a value is not of its kind.
    """
    path, remedy = run / RESULTS, _AGAIN
    found = _whole(path, _OF_RESULTS, remedy)

    def check(value: Any, kind: Any, place: str = "") -> None:
        _convert(value, kind, str(path), _OF_RESULTS, remedy, place)

    check(found, _Results)
    for k, row in found.get("attempts", {}).get("k", {}).items():
        totals = {name: each for name, each in row.items() if not name.startswith("ci95")}
        check(totals, _Totals, f"k={k}")
        check(row.get("ci95"), _Intervals, f"k={k}.ci95")
    for axis, groups in found["by"].items():
        for name, group in groups.items():
            place = f"by.{axis}.{name}"
            check(group, _Counts, place)
            check(group.get("ci95"), _Intervals, f"{place}.ci95")
    return found


def _check_totals(run: Run) -> None:

    def check(place: str, found: Mapping[str, Any]) -> None:
        shown = {name: found[name] for name in run.columns if name in found}
        _convert(shown, _Totals, str(run.path / RESULTS), _OF_RESULTS, _AGAIN, place)

    check("overall", run.results["overall"])
    for axis, groups in run.results["by"].items():
        for name, group in groups.items():
            check(f"by.{axis}.{name}", group)


def read_scores(
    run: Path, profile: str, *, values: Collection[str] = (), parsed: Any = dict[str, Any]
) -> dict[str, Mapping[str, Any]]:
    """Return the lines of a run's `scores.jsonl` by sample id.

    Args:
        run: the folder.
        profile: that of its results.
        values: of the profile, which are numbers; what else a line has is anybody's.
        parsed: the type of what it read in an answer, where that is an object.

    Raises:
        RunError: the file is missing, a line cannot be read, a value of it is not of its kind, or
            it is of another profile; or a step has two lines.
    """
    path, remedy = run / SCORES, _AGAIN
    found: dict[str, Mapping[str, Any]] = {}
    for number, line in enumerate(_lines(path, remedy), 1):
        where = f"{path}:{number}"
        expected = '{"sample_id": "...", "outcome": "...", ...}'
        score = _object(line, where, expected, remedy)
        _convert(score, _Score, where, expected, remedy)
        for name in sorted(score.keys() & values):
            _convert(score[name], _Value, where, expected, remedy, name)
        if isinstance(score.get("parsed"), dict):
            _convert(score["parsed"], parsed, where, expected, remedy, "parsed")
        if score["sample_id"] in found:
            raise RunError(
                "the step has two lines", where=where, expected="one line per step", remedy=remedy
            )
        if score["profile"] != profile:
            raise RunError(
                f"the line is of profile {score['profile']}",
                where=where,
                expected=f"the profile of results.json, {profile}",
                remedy=remedy,
            )
        found[score["sample_id"]] = score
    return found


def _convert(
    value: Any, kind: Any, where: str, expected: str, remedy: str, place: str = ""
) -> None:
    try:
        msgspec.convert(value, kind)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:  # a key no file can hold
        of = f"{place}: " if place else ""
        raise RunError(
            f"the content is invalid: {of}{error}",
            where=where,
            expected=expected,
            remedy=remedy,
        ) from None


def _whole(path: Path, expected: str, remedy: str) -> dict[str, Any]:
    try:
        with open_own(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            content = file.read() if size <= _MOST else None
    except FileNotFoundError:
        raise RunError(
            f"{path.name} is missing", where=str(path), expected=expected, remedy=remedy
        ) from None
    except OSError as error:
        raise _unreadable(path, error, remedy) from None
    if content is None:
        raise RunError(
            f"the file has {size:,} bytes",
            where=str(path),
            expected=f"at most {_MOST:,}",
            remedy=remedy,
        )
    return _object(content, str(path), expected, remedy)


def _lines(path: Path, remedy: str) -> Iterator[bytes]:
    try:
        with open_own(path, "rb") as file:
            for line in lines(file):
                if len(line) >= LINE:
                    raise RunError(
                        f"a line has {LINE:,} bytes or more",
                        where=str(path),
                        expected="shorter lines",
                        remedy=remedy,
                    )
                yield line
    except OSError as error:
        raise _unreadable(path, error, remedy) from None


def _unreadable(path: Path, error: OSError, remedy: str) -> RunError:
    return RunError(
        f"the file cannot be read ({error.strerror})",
        where=str(path),
        expected="a file that omnidata wrote",
        remedy=remedy,
    )


def _object(text: bytes, where: str, expected: str, remedy: str) -> dict[str, Any]:
    try:
        value = decode(text.decode("utf-8"))
    except (UnicodeDecodeError, RecursionError):
        value = BROKEN
    if isinstance(value, dict) and is_shallow(text, value):
        return value
    what = "it cannot be read as JSON" if value is BROKEN else "it is no JSON object"
    if isinstance(value, dict):
        what = "it is nested too deeply"
    raise RunError(what, where=where, expected=expected, remedy=remedy)


# What a run folder says about how its answers are judged, and on which steps.


def recorded_task(
    info: Mapping[str, Any],
    name: str | None = None,
    options: Mapping[str, str] = {},
    *,
    run: Path | None = None,
) -> Asking:
    """Return the task with the options that loading and judging depend on.

    Options that allow any text name folders and files of the prompt's, which may be gone by now.

    Args:
        info: the content of `run.json`; empty for answers that are no run.
        name: of the task; the run's own if None.
        options: those that the caller wants otherwise.
        run: the folder, where nobody but its files names a task or an option.

    Raises:
        UsageError: there is no such task or option.
        RunError: this omnidata does not know those of the run.
    """
    name = info["task"] if name is None else name
    try:
        allowed = get_task(name).allowed
        recorded = info.get("options", {}).items()
        said = {
            key: value
            for key, value in recorded
            if key in FOR_JUDGING or allowed.get(key, ("",)) != ("",)
        }
        if "dialect" in options:
            said.pop("coordinates", None)  # the dialect has a unit of its own
        if "history" in options:
            said.pop("patches", None)  # which only the history of a run has
        return get_task(name, said | dict(options))
    except UsageError as error:
        if run is None:
            raise
        raise RunError(
            error.what,
            where=str(run),
            expected=error.expected,
            remedy="score the run with the version that made it, or restore its files",
        ) from None


@dataclass(frozen=True, slots=True)
class RecordedOptions:
    """The options of a run, without leave to open any file.

    Attributes:
        values: those that name no file, those whose text is recorded, and those that the user
            names again.
        texts: option -> the recorded content of the file that it names.
        unopened: option -> the file or folder that nobody but the run's folder names.
    """

    values: Mapping[str, str]
    texts: Mapping[str, str]
    unopened: Mapping[str, str]


def recorded_options(
    info: Mapping[str, Any], run: Path, given: Mapping[str, str] = {}
) -> RecordedOptions:
    """Return the options that prompts of a run were made with.

    A run folder may be somebody else's: a path in it opens no file. The user names files.

    Args:
        info: the content of `run.json`.
        run: the folder, for messages.
        given: files and folders that the user names for options of the run.

    Raises:
        UsageError: there is no such task, or what is given is no file that the run had.
    """
    allowed = get_task(info["task"]).allowed
    own = info.get("options", {})
    files = {name: value for name, value in own.items() if value and names_file(name, allowed)}
    for name in sorted(given.keys() - files.keys()):
        raise UsageError(
            "a run folder names its own files"
            if name in own and not names_file(name, allowed)
            else f"the run had no file for the option {name}",
            where=f"-T {name}={given[name]}",
            expected=f"a file that {run} was made with: {', '.join(files) or 'it had none'}",
            remedy="leave it out",
        )
    texts = {
        name: text
        for name, text in info.get("prompt_texts", {}).items()
        if name in files and name not in given
    }
    known = {*texts, *given}
    unopened = {name: value for name, value in files.items() if name not in known}
    kept = {name: value for name, value in own.items() if name not in unopened}
    return RecordedOptions({**kept, **given}, texts, unopened)


def recorded_data(info: Mapping[str, Any], run: Path, data: Path | None = None) -> Path:
    """Return where the data of a run lie.

    A run folder may be somebody else's: an address in it is asked nothing, as the request would
    bear the user's credentials.

    Args:
        info: the content of `run.json`.
        run: the folder, for messages.
        data: what the user says.

    Raises:
        UsageError: nobody says it, or `run.json` alone names an address, or what is neither a file
            nor a folder, or does not say which data they are.
    """
    if data is not None:
        return data
    place = info.get("data")
    if not place:
        raise UsageError(
            "the place of the data is unknown",
            where=str(run),
            expected="the dataset that the answers are to",
            remedy="name it with --data, or complete an unfinished run first",
        )
    if not info.get("dataset_fingerprint"):
        raise UsageError(
            "the run does not name its data",
            where=f"{run / INFO}: {place}",
            expected="dataset_fingerprint, to recognise the data",
            remedy=f"name them, if they are yours: --data {place}",
        )
    if is_url(place):
        raise UsageError(
            "only the run folder names the address of the data, and such an address is not opened",
            where=f"{run / INFO}: {place}",
            expected="the address on the command line, if you trust it",
            remedy=f"--data {place}",
        )
    path = Path(place)
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise UsageError(
            "the data are neither a file nor a folder",
            where=f"{run / INFO}: {place}",
            expected="the dataset that the answers are to",
            remedy="name it with --data",
        )
    return path


def recorded_steps(info: Mapping[str, Any], source: LoadedDataset, run: Path) -> Sequence[Step]:
    """Return the steps that the run asks about.

    Args:
        info: the content of `run.json`.
        source: the data, loaded.
        run: the folder, for messages.

    Raises:
        RunError: the data have other annotations than the run's, or its task is unknown.
    """
    if info.get("dataset_fingerprint") != source.fingerprint:
        raise RunError(
            "the run was made on other annotations",
            where=str(run),
            expected="annotations with the fingerprint in run.json",
            remedy="name the data of the run; to score anyway, name its predictions.jsonl",
        )
    chosen = select(
        source.steps,
        where=info.get("where", {}),
        exclude=frozenset(info.get("exclude", ())),
        limit=info.get("limit"),
        task=recorded_task(info, run=run),
    )
    part = info.get("shard")
    return shard(chosen, *part) if part else chosen


# A run as others left it on disk: settings, results, scores and answers.


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
        """The model's SPEC, or the agent; else the folder's name, for answers that were imported.

        A run on altered media bears their name, and one of answers that were chosen among several
        says how: nobody is to take it for a normal one.
        """
        return str(
            model_name(self.settings) or self.results.get("agent") or self.path.resolve().name
        )

    @property
    def control(self) -> str:
        """What was wrong with the media that the model saw; empty if nothing."""
        return _control(self.settings)

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
        """Where the data lay when the run was made; None where the folder does not say.

        `recorded_data` says whether that may be opened.
        """
        place = self.settings.get("data")
        return Path(place) if place else None

    @property
    def stopped(self) -> str:
        """Why not all steps were asked about; empty if they were."""
        return str(self.results.get("stopped", ""))

    @cached_property
    def asking(self) -> Asking:
        """Return the task with the options that loading and judging depend on.

        Raises:
            RunError: this omnidata does not know the task or an option.
        """
        return recorded_task(self.settings, self.task, run=self.path)

    @cached_property
    def offline_scorer(self) -> OfflineScorer | None:
        """Who scored it without any text, task by task; None where a model's texts were scored."""
        scorer: OfflineScorer | None = self.asking.benchmark.rollouts
        return scorer if scorer and self.profile in scorer.profiles else None

    @cached_property
    def columns(self) -> Mapping[str, Unit]:
        """Return the totals that a table shows, in order, and how they are printed.

        Raises:
            RunError: this omnidata does not know the profile.
        """
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
        """The columns whose smaller values are better."""
        rules = self.offline_scorer or self.asking.profiles.get(self.profile)
        return rules.lower_is_better if rules else ()

    @cached_property
    def scores(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the lines of `scores.jsonl` by sample id: outcome, values, parsed, reason.

        Raises:
            RunError: see `read_scores`; or this omnidata does not know the task.
        """
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
        """Return the answers by sample id; none where the folder has scores alone.

        Raises:
            PredictionError: a line is no prediction, or a step has two.
        """
        path = self.path / ANSWERS
        if not path.exists():
            return {}
        return {line.sample_id: line for line in predictions.read_final(path)}


def model_name(info: Mapping[str, Any]) -> str:
    """Return the display name of a run's model, with its marks; empty without a model.

    Of a replayed file the folder is left out: it says nothing about the answers, and it is long.

    Examples:
        >>> model_name({"model": "replay:/home/me/answers.jsonl@a1b2c3d4e5f6"})
        'replay:answers.jsonl@a1b2c3d4e5f6'
    """
    name, chosen = str(info.get("model", "")), info.get("selection") or {}
    if name.startswith("replay:"):
        name = "replay:" + re.split(r"[/\\]", name.removeprefix("replay:"))[-1]
    of = f"{chosen.get('by')} of {chosen.get('samples')}" if chosen else ""
    marks = [mark for mark in (_control(info), of) if mark]
    return f"{name} [{', '.join(marks)}]" if marks else name


def _control(info: Mapping[str, Any]) -> str:
    return str((info.get("control") or {}).get("name", ""))


def read_run(folder: Path) -> Run:
    """Return the run in a folder, of `omnidata evaluate` or `omnidata score --out`.

    Args:
        folder: holds `results.json`; `run.json` and `predictions.jsonl` where the run was made
            here.

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
    _check_totals(run)
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


# In what the settings of two runs differ, as one level of names with dots.

_LONGEST: Final = 60
"""Characters of a value in a message or a label."""


@dataclass(frozen=True, slots=True)
class Change:
    """A setting that is not the same; None where one of the two does not have it.

    Attributes:
        name: e.g. "options.modalities".
        a, b: JSON values.
    """

    name: str
    a: Any
    b: Any


def flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by names with dots for what a mapping holds; an empty mapping or list says nothing.

    Examples:
        >>> flat({"generation": {"temperature": 0.0}, "where": {}, "exclude": [], "limit": None})
        {'generation.temperature': 0.0, 'limit': None}
    """
    return dict(_flat(settings, ""))


def _flat(settings: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        elif value != []:
            yield f"{prefix}{key}", value


def changes(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[Change]:
    """Return the settings that differ as JSON values; null equals absent."""
    left, right = (flat(json.loads(json.dumps(each))) for each in (a, b))
    return [
        Change(name, left.get(name), right.get(name))
        for name in dict.fromkeys((*left, *right))
        if left.get(name) != right.get(name)
    ]


def describe_changes(found: Iterable[Change], form: str = "{name}: {a} there, {b} now") -> str:
    """Changes for a message; long values are cut.

    Examples:
        >>> describe_changes(changes({"limit": None}, {"limit": 3}))
        'limit: null there, 3 now'
    """
    return "; ".join(
        form.format(name=each.name, a=brief(each.a), b=brief(each.b)) for each in found
    )


def brief(value: Any) -> str:
    """Return a JSON value as a text of at most 60 characters."""
    return shorten(json.dumps(value, ensure_ascii=False))


def shorten(text: str) -> str:
    """Return a text of at most 60 characters."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def endings(names: Iterable[str], separator: str = ".") -> dict[str, str]:
    """Each name's shortest ending that no other name has; of one that ends another, all of it.

    Examples:
        >>> endings(["processor.size", "model.size", "options.voice"])
        {'processor.size': 'processor.size', 'model.size': 'model.size', 'options.voice': 'voice'}
    """
    parts = {name: name.split(separator) for name in names}
    found = {}
    for name, own in parts.items():
        others = [each for other, each in parts.items() if other != name]
        lengths = range(1, len(own) + 1)
        length = next(
            (n for n in lengths if all(each[-n:] != own[-n:] for each in others)), len(own)
        )
        found[name] = separator.join(own[-length:])
    return found
