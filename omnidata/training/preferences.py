"""Preferences from runs: pairs of a right and a wrong answer to the same step.

Both are untouched answers of models to the prompt of the row; the profile decides which is right.
Steps without an answer, answers that were cut off or refused, and answers to prompts without all
their media make no preference.

Sources: TRL 1.16 (`DPOTrainer`, `KTOTrainer`: explicit prompts, vision), ms-swift 4.6 (custom
datasets: RLHF), LLaMA-Factory 0.9.5 (`data/README`, `SharegptDatasetConverter`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

from omnidata import predictions
from omnidata.errors import DataError, Finding, RunError, UsageError, plural
from omnidata.run.differences import shorten
from omnidata.run.errata import Errata, RightActions
from omnidata.run.journal import Answers
from omnidata.run.media_stamps import Seen
from omnidata.run.recorded import RecordedOptions, recorded_options, recorded_task
from omnidata.run.run_info import ANSWERS, model_name, read_info
from omnidata.run.sampling import sample_folders
from omnidata.run.scoring import get_profile
from omnidata.tasks.asking import Asking
from omnidata.tasks.coordinates import answer_space, sent_size
from omnidata.tasks.marks import Standing, find_standing
from omnidata.tasks.profile import Profile
from omnidata.training.formats import Content, PreferenceFormat, Row, format_names
from omnidata.training.rows import ExclusionError, Line, Maker, Options
from omnidata.types import (
    CAUSES,
    Cause,
    Completion,
    Diagnosis,
    LoadedDataset,
    Modality,
    Step,
    Target,
    Verdict,
)

Order = Literal["nearest", "balanced"]

_NEAR: Final[frozenset[Cause]] = frozenset({"near_miss", "near_text"})
_OTHER_TYPE: Final[frozenset[Cause]] = frozenset(
    {"wrong_type", "acted_early", "waited_too_long", "stopped_early", "went_on"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferences:
    """Sources and selection of preferences.

    Attributes:
        runs: the folders of the runs; samples below one are runs as well.
        profile: judges the answers; None for the task's default.
        order: "nearest": by the distance of the wrong answer, nearest first; "balanced": the causes
            of wrong answers in turn, the nearest of each first.
        most: number of rows, the first in this order; None for all.
        changed_media: accept answers to media that have changed since.
    """

    runs: Sequence[Path]
    profile: str | None = None
    order: Order = "nearest"
    most: int | None = None
    changed_media: bool = False


# The pairs and their order.


class Pair(NamedTuple):
    """Two answers to a step, or a single one.

    Attributes:
        step: its number among the steps.
        chosen: the number of the run with the right answer; None without one.
        rejected: that of the run with the wrong answer; None without one.
        cause: of the wrong answer; None without one.
        distance: of the wrong answer from right (see `Diagnosis`); infinite if unknown.
    """

    step: int
    chosen: int | None
    rejected: int | None
    cause: Cause | None = None
    distance: float = math.inf


def tier(cause: Cause | None) -> int:
    """Return the tier of a cause: 0 for the answers that are nearest to right.

    A near miss; the right type of action with another argument; another type; an unreadable answer.

    Examples:
        >>> tier("near_miss"), tier("wrong_element"), tier("wrong_type"), tier("format")
        (0, 1, 2, 3)
    """
    if cause in _NEAR:
        return 0
    if cause in _OTHER_TYPE:
        return 2
    return 3 if cause in (None, "format") else 1


def sort_pairs(pairs: Iterable[Pair], order: Order) -> list[Pair]:
    """Return pairs in the order in which they are written.

    Distances of two causes have no common unit. So pairs of a tier are sorted by their rank within
    their own cause, as a share: the nearest tenth of all near misses comes with the nearest tenth
    of all near texts.

    Args:
        pairs: in the order of the steps, which decides between equals.
        order: see `Preferences`.
    """
    by_cause: dict[Cause | None, list[Pair]] = {}
    for pair in pairs:
        by_cause.setdefault(pair.cause, []).append(pair)
    causes = [cause for cause in (*CAUSES, None) if cause in by_cause]
    ranked: list[tuple[tuple[float, ...], Pair]] = []
    for number, cause in enumerate(causes):
        same = sorted(by_cause[cause], key=lambda pair: pair.distance)
        for rank, pair in enumerate(same):
            share = (rank + 0.5) / len(same)
            place = (tier(cause), share) if order == "nearest" else (rank, number)
            ranked.append((place, pair))
    return [pair for _, pair in sorted(ranked, key=lambda each: each[0])]


def apart(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Yield the answers of pairs one by one, each once: the right one, then the wrong one."""
    seen: set[tuple[int, int]] = set()
    for pair in pairs:
        for one in (pair._replace(rejected=None, cause=None), pair._replace(chosen=None)):
            number = one.rejected if one.chosen is None else one.chosen
            if number is not None and (pair.step, number) not in seen:
                seen.add((pair.step, number))
                yield one


# The runs.


def run_options(
    task: str, run: Path, given: Mapping[str, str], option: str = "--pairs"
) -> RecordedOptions:
    """Return the task's options in a run.

    Args:
        task: its name.
        run: the folder.
        given: options of the command line, which go before the run's.
        option: how it was named, for messages.

    Raises:
        UsageError: the run is of another task, or had a file of its own folder.
        RunError: the folder is no run, or broken.
    """
    info = read_info(run)
    _check_task(run, info, task, option)
    found = recorded_options(info, run)
    if unopened := {k: v for k, v in found.unopened.items() if k not in given}:
        named = " ".join(f"-T {name}={value}" for name, value in unopened.items())
        raise UsageError(
            "the run was made with a file that a run folder does not open",
            where=f"{option} {run}: {named}",
            expected="the file named on the command line, if it is yours",
            remedy=named,
        )
    texts = {name: text for name, text in found.texts.items() if name not in given}
    return RecordedOptions({**found.values, **given}, texts, {})


def _check_task(run: Path, info: Mapping[str, Any], task: str, option: str) -> None:
    if info["task"] != task:
        raise UsageError(
            f"the run is of {info['task']}",
            where=f"{option} {run}",
            expected=f"a run of {task}",
            remedy="name runs of one task",
        )


def _check_run(
    run: Path, info: Mapping[str, Any], task: Asking, source: LoadedDataset, option: str
) -> None:
    _check_task(run, info, task.name, option)
    same = info.get("prompt_hash") == task.prompt_hash
    ours = {"task": task.name, "options": task.options}
    if info.get("dataset_fingerprint") != source.fingerprint:
        what = "the run was made on other annotations"
        expected = "the data of the run, whose steps it answers"
        remedy = f"name its data, {info['data']}" if info.get("data") else "name its data"
    elif info.get("control"):
        what = "the run is an ablation: its media were removed or swapped"
        expected, remedy = "a run on the unchanged data", "drop the run"
    elif not same or recorded_task(info, run=run).options != recorded_task(ours).options:
        own = info.get("options", {})
        other = " ".join(
            f"-T {name}={value}" for name, value in own.items() if task.options.get(name) != value
        )
        differences = other or ", ".join(name for name in task.options if name not in own)
        what = "the run had other options" if same else "the run had other prompts"
        what += f": {shorten(differences)}" if differences else ""
        expected = "one prompt for all answers to a step"
        remedy = "ask again with this version, or drop the run"
        if other:
            remedy = f"give {other}, and name other runs apart"
    else:
        return
    raise UsageError(what, where=f"{option} {run}", expected=expected, remedy=remedy)


def unusable(answer: Completion | None, left_out: Collection[Modality] = ()) -> str:
    """Return a code if an answer is no verdict of the model on the step; else an empty string.

    Args:
        answer: what a run has for the step.
        left_out: modalities that the prompt may lack.
    """
    if answer is None:
        return "no_answer"
    if answer.delivery != "ok":
        return answer.delivery
    kinds = {part.get("kind") for part in predictions.dropped_parts(answer.receipt)}
    if kinds.difference(left_out) or ("degraded" in answer.receipt and not kinds):
        return "degraded"
    return ""


def judge_answer(profile: Profile, step: Step, answer: Completion) -> tuple[Verdict, Standing]:
    """Return the profile's verdict on an answer, and its standing."""
    verdict = profile.judge(step, answer.text, answer.receipt)
    return verdict, find_standing(profile, verdict)


def diagnosis(
    task: Asking, profile: Profile, step: Step, verdict: Verdict, answer: Completion
) -> Diagnosis:
    """Return the cause of a wrong answer; `rule` if the benchmark does not say it."""
    explanation = task.explanation(
        step, verdict, answer.text, profile=profile.name, receipt=answer.receipt
    )
    return explanation.diagnosis or Diagnosis("rule")


@dataclass(frozen=True, slots=True)
class NamedRun:
    """A run whose answers are to prompts of these data.

    Attributes:
        path: the folder.
        named: the run that was named: itself, or that whose sample it is.
        number: of the sample, from 1.
        info: the content of its `run.json`.
        answers: by sample id, each read when it is asked for.
        seen: compares the media of the answers with the present ones.
        counts: of its answers, by outcome.
    """

    path: Path
    named: Path
    number: int
    info: Mapping[str, Any]
    answers: Answers
    seen: Seen
    counts: Counter[str] = field(default_factory=Counter)


def open_runs(
    runs: Iterable[Path], task: Asking, source: LoadedDataset, flag: str = "--pairs"
) -> Iterator[NamedRun]:
    """Yield the given runs, each with its samples.

    Raises:
        UsageError: a run is of another task or other data, was shown media that were altered, had
            other prompts or options, or is named twice.
        RunError: one is unfinished or broken.
        PredictionError: its answers cannot be read.
    """
    places: set[Path] = set()
    for named in runs:
        for number, run in enumerate(sample_folders(named), 1):
            if run.resolve() in places:
                raise UsageError(
                    "the run is named twice",
                    where=f"{flag} {run}",
                    expected="each run once",
                    remedy="leave one of them out",
                )
            places.add(run.resolve())
            info = read_info(run)
            _check_run(run, info, task, source, flag)
            if not (run / ANSWERS).exists():
                raise RunError(
                    "the run has no answers",
                    where=str(run),
                    expected=ANSWERS,
                    remedy="repeat its `omnidata evaluate` command, or leave it out",
                )
            answers = Answers(run / ANSWERS, source.steps)
            answers.read()
            yield NamedRun(run, named, number, info, answers, Seen(task))


class PreferenceRows:
    """Pairs of right and wrong answers of runs, and their rows.

    Args:
        task: writes the prompts, and judges the answers.
        source: the data.
        wanted: which runs, and how they are chosen from.
        options: of the export.
        errata: corrections of the labels by which the answers are judged, in order. Prompts stay
            those that were answered.

    Raises:
        UsageError: the format is not for preferences.
        OmnidataError: as `open_runs`.
    """

    def __init__(
        self,
        task: Asking,
        source: LoadedDataset,
        wanted: Preferences,
        options: Options,
        errata: Sequence[Errata] = (),
    ) -> None:
        form = options.rows
        if not isinstance(form, PreferenceFormat):
            raise UsageError(
                f"rows of {form.name} hold no preferences",
                where=f"--format {form.name}",
                expected=f"one of {', '.join(format_names(PreferenceFormat))}",
            )
        self._task, self._wanted, self._form = task, wanted, form
        self._profile: Profile = get_profile(task, wanted.profile)
        self._right_actions = RightActions(task, self._profile.name, errata)
        self._left_out = frozenset(get_args(Modality)) - options.capabilities.accepts
        self._runs = [*open_runs(wanted.runs, task, source)]
        self._outcomes: Counter[str] = Counter()
        self._steps: Sequence[Step] = ()
        self._pairs: Sequence[Pair] = ()
        self._written: Counter[str] = Counter()
        self._causes: Counter[Cause] = Counter()

    def choose(self, steps: Sequence[Step]) -> Sequence[Step]:
        """Choose the pairs from the answers to steps, and return the steps that have any.

        Raises:
            DataError: there are none.
            RunError: media have changed since a model was shown them.
        """
        found: list[Pair] = []
        alone: list[Pair] = []
        with self._closing():
            for number, step in enumerate(steps):
                targets = self._right_actions.steps(step)
                if not targets:
                    self._outcomes["dropped"] += 1
                    continue
                right, wrong = self._judge_answers(number, targets)
                if right:
                    self._outcomes["paired" if wrong else "all_right"] += 1
                    found += [
                        pair._replace(chosen=right[place % len(right)])
                        for place, pair in enumerate(wrong)
                    ]
                    alone += [Pair(number, run, None) for run in right[len(wrong) :]]
                else:
                    self._outcomes["all_wrong" if wrong else "without"] += 1
                    alone += wrong
        for run in self._runs:
            run.seen.check(allowed=self._wanted.changed_media, where=str(run.path))
        pairs = sort_pairs(found, self._wanted.order)
        if self._form.label:
            pairs = [*apart(pairs), *alone]
        pairs = pairs[: self._wanted.most]
        if not pairs:
            counts = self._outcomes
            summary = ", ".join(f"{counts[name]} {_ALIKE[name]}" for name in _ALIKE if counts[name])
            raise DataError(
                f"no preference in {plural(len(steps), 'step')}: {summary}",
                where=" ".join(f"--pairs {run.path}" for run in self._runs),
                expected="an answer with a verdict"
                if self._form.label
                else "a step with a right answer and a wrong one",
                remedy="add runs of other models, or with other seeds",
            )
        self._steps, self._pairs = steps, pairs
        return [steps[number] for number in sorted({pair.step for pair in pairs})]

    def lines(self, maker: Maker) -> Iterator[tuple[Step, Callable[[], Line]]]:
        """Yield the steps of the pairs in order, each with a function that makes the row."""
        with self._closing():
            for pair in self._pairs:
                step = self._steps[pair.step]
                yield step, partial(self._line, maker, step, pair)

    def report(self) -> dict[str, Any]:
        """Return the part of `export.json` about the rows and their sources."""
        return {
            "format": self._form.name,
            "profile": self._profile.name,
            "order": self._wanted.order,
            "max_rows": self._wanted.most,
            "runs": [
                {"run": str(run.path), "model": model_name(run.info), "answers": dict(run.counts)}
                for run in self._runs
            ],
            "steps": {
                name: self._outcomes[name]
                for name in ("paired", *_ALIKE, "dropped")
                if name != "dropped" or self._outcomes[name]
            },
            "written": {name: self._written[name] for name in ("right", "wrong")},
            "causes": {cause: self._causes[cause] for cause in CAUSES if self._causes[cause]},
        }

    @contextmanager
    def _closing(self) -> Iterator[None]:
        try:
            yield
        finally:
            for run in self._runs:
                run.answers.close()

    def _judge_answers(self, number: int, targets: Sequence[Step]) -> tuple[list[int], list[Pair]]:
        """Return the runs with right answers to a step, and the wrong ones, the nearest first.

        Args:
            number: of the step.
            targets: the step with each of its right actions.
        """
        step = targets[0]
        right: list[int] = []
        wrong: list[Pair] = []
        known: set[str] = set()
        for place, run in enumerate(self._runs):
            answer = run.answers.get(step.sample_id)
            fault = unusable(answer, self._left_out)
            if answer is None or fault:
                run.counts[fault] += 1
                continue
            run.seen.look(step, answer.delivery, answer.receipt)
            judged = [judge_answer(self._profile, each, answer) for each in targets]
            verdict, outcome = next((each for each in judged if each[1] == "right"), judged[0])
            again = outcome in ("right", "wrong") and answer.text in known
            run.counts["repeated" if again else outcome] += 1
            if again or outcome not in ("right", "wrong"):
                continue
            known.add(answer.text)
            if outcome == "right":
                right.append(place)
                continue
            why = diagnosis(self._task, self._profile, step, verdict, answer)
            far = math.inf if why.distance is None else why.distance
            wrong.append(Pair(number, None, place, why.cause, far))
        return right, sorted(wrong, key=lambda pair: (tier(pair.cause), pair.distance))

    def _line(self, maker: Maker, step: Step, pair: Pair) -> Line:
        content = maker.make_prompt(step)
        maker.check(step, self._form.answers.row(content))
        chosen, rejected = (
            None if number is None else self._row(maker, step, content, self._runs[number])
            for number in (pair.chosen, pair.rejected)
        )
        if self._form.label:
            row = {**(chosen or rejected or {}), self._form.label: chosen is not None}
        else:
            assert chosen and rejected
            row = self._form.pair(chosen, rejected)
        line = maker.line(step, content, {**row, "cause": pair.cause or ""})
        self._written["right"] += pair.chosen is not None
        self._written["wrong"] += pair.rejected is not None
        if pair.rejected is not None and pair.cause:
            self._causes[pair.cause] += 1
        return line

    def _row(self, maker: Maker, step: Step, content: Content, run: NamedRun) -> Row:
        """Return the row with a run's answer, or raise ExclusionError if it does not fit."""
        answer = run.answers[step.sample_id]
        text = content.begun + answer.text
        then, now = (
            found.size if (found := sent_size(each, where=step.sample_id)) else step.screen
            for each in (answer.receipt, content.receipt)
        )
        made = self._form.answers.row(replace(content, target=Target(text, text)))
        if then != now and self._moves(maker.task, step, answer, content.receipt):
            what = f"the answer is for a picture of {then[0]} x {then[1]} pixels, the row's has "
            what += f"{now[0]} x {now[1]}"
            expected = "pictures as the model was shown them: give --image-size or --smart-resize "
            expected += "the size of the run"
        else:
            try:
                maker.check(step, made)
            except ExclusionError as error:
                what = error.finding.what.replace("a text of the data", "the answer")
                expected = "an answer without what trainers and models obey"
            else:
                return made
        remedy = "nothing to do: the row is left out; or name other runs"
        what = f"{run.path}: {what}"
        raise ExclusionError(
            Finding("answer-unusable", "warning", step.sample_id, what, expected, remedy)
        )

    def _moves(
        self, task: Asking, step: Step, answer: Completion, receipt: Mapping[str, Any]
    ) -> bool:
        """Return whether the answer means other places in the picture of the row."""
        space = answer_space(task.options)
        if space == "px":
            said = task.history_action(step, answer.text, answer.receipt)
            return said is None or any(
                each.start or each.end or each.path for each in (said, *said.then)
            )
        if space is not None:
            return False
        profile = get_profile(task, self._wanted.profile)
        then, now = (profile.judge(step, answer.text, each) for each in (answer.receipt, receipt))
        return (then.values, then.parsed) != (now.values, now.parsed)


_ALIKE: Final[Mapping[str, str]] = {
    "all_right": "with right answers alone",
    "all_wrong": "with wrong answers alone",
    "without": "without a usable answer",
}
"""The outcomes of steps without a pair."""
