"""From answers to the table: judge, write a line per step, total."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from omnidata.errors import (
    DataError,
    OmnidataError,
    PluginError,
    PredictionError,
    RunError,
    UnansweredError,
    UsageError,
    plural,
)
from omnidata.files import STREAMED, lines, open_file
from omnidata.jsontext import write_lines
from omnidata.loaders.steps import Positions, as_steps, can_be_sent, ids_of, select_steps
from omnidata.plugins import blaming
from omnidata.predictions import Prediction
from omnidata.registry import plugin_origin
from omnidata.run import engines
from omnidata.run.bad_lines import BadLines, repeated_answer
from omnidata.run.engines import Cluster, Lost
from omnidata.run.headlines import (
    Kept,
    Reason,
    count_misplaced,
    lost_steps,
    other_dialect,
    other_unit,
)
from omnidata.run.histories import PatchedRollouts, patches_of
from omnidata.run.journal import TRANSIENT
from omnidata.run.judging import CHUNK, Chunks, Job, Judge, Mistake, judge_chunk
from omnidata.run.run_files import OF_LINE
from omnidata.run.run_info import ANSWERS, RESULTS, SCORES
from omnidata.storage import atomic_write, file_name, is_unfinished, wrap_os_error, write_json
from omnidata.tasks import is_named
from omnidata.tasks.asking import Asking, ask_with
from omnidata.tasks.benchmark import Benchmark
from omnidata.tasks.marks import find_standing, is_judged
from omnidata.tasks.profile import Profile
from omnidata.tasks.rollouts import Scored
from omnidata.types import CAUSES, OUTCOMES, Cause, LoadedDataset, Step, Verdict, VerdictColumns

if TYPE_CHECKING:
    from omnidata.run.errata import Errata
    from omnidata.run.rejudging import Rejudging

_CODE = {name: code for code, name in enumerate(OUTCOMES)}
_NONE, _SENT = -1, -2
_TOLD = 5
"""Places that a message names."""
MANY = 200_000
"""From so many steps on several processes are worth their start: judging takes 15 s and more, and
each process 2 s before it begins."""


def profiles_of(task: Asking) -> list[str]:
    """Return all profiles of a task; its own first, the default first of all."""
    return [*task.profiles, *(task.benchmark.rollouts.profiles if task.benchmark.rollouts else ())]


def get_profile(task: Asking | Benchmark, name: str | None) -> Profile:
    """Return a profile of the task by name, or its default.

    Raises:
        UsageError: the task has no such profile with its options, or is the name or the class of
            one.
        PluginError: the profile does not say which metrics it has, or a value of it is called as
            something else in a line of scores.
    """
    if isinstance(task, str | type):
        raise UsageError(
            f"{task!r} is no task",
            expected='omnidata.get_task("NAME"), or a benchmark such as Colours("colours", {})',
        )
    task = ask_with(task)
    profile = task.profiles.get(name or task.default_profile)
    if profile is None:
        raise UsageError(
            f'{task.name} has no profile "{name}" with these options',
            where=f"--profile {name}",
            expected=f"one of {', '.join(profiles_of(task))}",
            remedy="name one of these, or leave --profile out",
        )
    if taken := OF_LINE.intersection(profile.values):
        kind = type(profile.rule)
        raise PluginError(
            f"the profile {profile.name} calls a value {min(taken)!r}",
            where=f"{kind.__module__}.{kind.__qualname__}",
            expected=f"other names than a line of scores has: {', '.join(sorted(OF_LINE))}",
            remedy="correct the profile, or report it to the authors of the plug-in",
        )
    return profile


def has_usable_target(profile: Profile, steps: Iterable[Step]) -> bool:
    """Return whether the profile can judge any of the steps."""
    return any(is_judged(profile, profile.without_answer(step, "missing")) for step in steps)


def score(
    task: Asking | Benchmark,
    profile: Profile,
    steps: Sequence[Step],
    answers: Iterable[Prediction],
    *,
    whole: npt.NDArray[np.bool_],
    out: Path | None = None,
    ignored: Container[str] = (),
    origin: Path | None = None,
    stopped: str = "",
    causes: bool = True,
    agent: str = "",
    source: LoadedDataset | None = None,
    workers: int | None = 0,
    cluster: Cluster | None = None,
    bad: BadLines | None = None,
    errata: Sequence[Errata] = (),
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
        ignored: ids of steps of the data, chosen or not; answers to those that were not chosen are
            passed over.
        origin: the file of the answers, for messages.
        stopped: why not all steps were asked about; empty if they were.
        causes: whether to say why answers are wrong, which takes longer than all the rest.
        agent: whose answers they are, where the folder of the scores does not say it; or empty.
        source: the data, whose findings say why steps are lost.
        workers: processes that judge; 0 and 1 judge in this one, None from `MANY` steps on in one
            per core, where steps can be sent there. What is written is the same. A benchmark that
            no name leads to is judged in this one.
        cluster: whose workers judge instead.
        bad: the lines of the answers' file that cannot be scored; takes note of answers to steps
            that do not exist too, and is checked after the last answer.
        errata: corrections of labels, in order; the results with them stand beside the usual ones.

    Returns:
        The content of `results.json`.

    Raises:
        DataError: there is no step.
        PredictionError: an answer to a step that does not exist, or two answers to one.
        RunError: the folder cannot be written, or a process was lost.
        UnansweredError: no step has an answer; nothing is written.
        UsageError: steps of a plug-in cannot be sent to other processes, or the profile cannot take
            a correction.
    """
    task = ask_with(task)
    if not steps:
        raise DataError(
            "there is no step to score",
            where=task.name,
            expected="data with at least one valid row",
            remedy=f"`omnidata validate {task.name} DATA` shows the problems of the rows",
        )
    places = Positions(steps)
    repeated = len(steps) - len(places)
    if repeated:
        first = [n for n, name in enumerate(ids_of(steps)) if places.get(name) == n]
        steps, whole = select_steps(steps, first), whole[first]
        places = Positions(steps)
    rollouts = None if patches_of(task) is None else PatchedRollouts(task, steps)
    if rollouts:
        answers = rollouts.watch(answers)
    judge = Judge(task if causes else None, profile)
    rejudging = None
    if errata:
        from omnidata.run.rejudging import Rejudging

        rejudging = Rejudging(task, profile, steps, errata, ignored or None)
    columns = _Columns(judge, steps, places, origin, bad, rejudging)
    if workers is None:
        workers = engines.cores() if len(steps) >= MANY and can_be_sent(steps) else 0
    if (cluster or workers > 1) and is_named(task):
        job = Job(task.name, tuple(task.options.items()), profile.name, causes)
        found = columns.lines_of_others(answers, ignored, job, workers, cluster)
    else:
        found = columns.lines(answers, ignored, plugin_origin(task.name))
    if out is None:
        for _ in found:
            pass
    else:
        with wrap_os_error(out):
            out.mkdir(parents=True, exist_ok=True)
            with atomic_write(out / SCORES) as file:
                file.writelines(found)
    results = {
        "task": task.name,
        "profile": profile.name,
        **({"agent": agent} if agent else {}),
        **profile.total(steps, columns.rows(whole)),
    }
    if rejudging:
        results |= rejudging.results(columns.rows(whole))
    if causes:
        results["causes"] = columns.causes(results["by"])
        if missed := count_misplaced(task, profile, steps, columns.count_mistakes()):
            results["places"] = missed
        if reasons := [*columns.reasons(task, profile, source, results)]:
            results["headline"] = [asdict(reason) for reason in reasons]
    if rollouts:
        results["patched"] = rollouts.table()
    if judge.degraded:
        results["counts"]["degraded"] = judge.degraded
    if repeated:
        results["counts"]["repeated"] = repeated
    if stopped:
        results["stopped"] = stopped
    if out is not None:
        with wrap_os_error(out):
            write_json(out / RESULTS, results)
    return results


class _Columns:
    def __init__(
        self,
        judge: Judge,
        steps: Sequence[Step],
        places: Positions,
        origin: Path | None = None,
        bad: BadLines | None = None,
        rejudging: Rejudging | None = None,
    ) -> None:
        self.judge, self.rejudging = judge, rejudging
        self.steps = steps
        self.places = places
        self.origin = origin
        self.kept = Kept(steps)
        self.bad = bad or BadLines(origin or Path(judge.profile.name))
        self.verdicts = array("i", [_NONE]) * len(steps)
        self.mistakes = np.full(len(steps), _NONE, np.intc)

    def lines(
        self, answers: Iterable[Prediction], ignored: Container[str], plugin: str
    ) -> Iterator[bytes]:
        """Judge every answer, then every step without one; yields the lines of `scores.jsonl`."""
        matched = self._match_steps(answers, ignored)
        with blaming(plugin):
            while part := [*islice(matched, CHUNK)]:
                numbers = [number for number, _ in part]
                given = [answer for _, answer in part]
                steps = select_steps(self.steps, numbers)
                judged, lines = self.judge.judge(zip(steps, given, strict=True))
                self.column[numbers], self.mistakes[numbers] = judged.T
                yield lines

    def lines_of_others(
        self,
        answers: Iterable[Prediction],
        ignored: Container[str],
        job: Job,
        workers: int,
        cluster: Cluster | None,
    ) -> Iterator[bytes]:
        asked = self._match_steps(answers, ignored)
        chunks = Chunks(self.steps, asked, far=cluster is not None)
        calls = engines.each(partial(judge_chunk, job), chunks, workers=workers, cluster=cluster)
        with closing(calls):
            for number, found in enumerate(calls):
                if isinstance(found, OmnidataError):
                    raise found
                if isinstance(found, Lost):
                    raise RunError(
                        f"a process was lost: {found.why}",
                        where=str(self.origin or job.task),
                        expected="enough memory",
                        remedy="use fewer --workers",
                    )
                numbers = chunks.pop(number)
                self.column[numbers], self.mistakes[numbers] = self.judge.add(found).T
                yield found.lines

    @property
    def column(self) -> npt.NDArray[np.intc]:
        return np.frombuffer(self.verdicts, np.intc)

    def _match_steps(
        self, answers: Iterable[Prediction], ignored: Container[str]
    ) -> Iterator[tuple[int, Prediction | None]]:
        unknown: list[str] = []
        answered = False
        verdicts = self.verdicts
        for number, answer in self._locate(answers):
            if number is None:
                if answer.sample_id not in ignored:
                    unknown.append(answer.sample_id)
                continue
            if verdicts[number] != _NONE:
                few = self.bad.count < _TOLD  # to find a place is to read the file
                name = answer.sample_id
                self.bad.add(repeated_answer(self._place(name) if few else name))
                continue
            verdicts[number] = _SENT
            if self.judge.task:  # to say why
                self.kept.add(number, answer)
            if self.rejudging:
                self.rejudging.keep(number, answer)
            answered = answered or answer.delivery not in TRANSIENT
            yield number, answer
        if unknown:
            self.bad.add(self._unknown(), len(unknown), [*map(self._place, unknown[:_TOLD])])
        self.bad.check()
        if not answered:
            raise self._unanswered_error()
        for missing in np.flatnonzero(self.column == _NONE).tolist():
            yield missing, None

    def _locate(self, answers: Iterable[Prediction]) -> Iterator[tuple[int | None, Prediction]]:
        coming = iter(answers)
        while part := [*islice(coming, CHUNK)]:
            ids = [answer.sample_id for answer in part]
            yield from zip(self.places.get_all(ids), part, strict=True)

    def _unknown(self) -> PredictionError:
        return PredictionError(
            "the data have no step of this id",
            expected=f"ids like {self.steps[0].sample_id}",
            remedy="score against the data that the predictions were made on",
        )

    def _unanswered_error(self) -> UnansweredError:
        failed = len(self.verdicts) - int((self.column == _NONE).sum())
        why = f"{plural(failed, 'request')} failed" if failed else "there is no answer"
        return UnansweredError(
            f"none of {plural(len(self.steps), 'step')} was answered: {why}",
            where=str(self.origin or self.judge.profile.name),
            expected="an answer to at least one step",
            remedy="run the model again, or name the file that holds its answers",
        )

    def _place(self, sample_id: str) -> str:
        if self.origin is None or not self.origin.is_file():
            return sample_id
        # A lone surrogate stands in the file as JSON escapes it.
        wanted = sample_id.encode("utf-8", "backslashreplace")
        with open_file(self.origin, STREAMED) as file:
            there = [str(number) for number, line in enumerate(lines(file), 1) if wanted in line]
        return f"{self.origin}:{','.join(there[:5])}: {sample_id}" if there else sample_id

    def count_mistakes(self) -> dict[Mistake, int]:
        """Return how many answers have each mistake."""
        counts = np.bincount(self.mistakes[self.mistakes >= 0], minlength=len(self.judge.mistakes))
        return dict(zip(self.judge.mistakes, counts.tolist(), strict=True))

    def causes(self, by: Mapping[str, Iterable[str]]) -> dict[str, Any]:
        """Count the causes: of all answers, by groups of steps, and by what is right."""
        overall = Counter[Cause]()
        targets: dict[str, Counter[Cause]] = {}
        for (cause, _, target), count in self.count_mistakes().items():
            overall[cause] += count
            if target:
                targets.setdefault(target, Counter())[cause] += count
        steps, mistakes, wrong = as_steps(self.steps), [*self.judge.mistakes], self.mistakes >= 0
        codes = steps.codes("tags")
        tags = [*steps.select(np.unique(codes, return_index=True)[1]).column("tags")]
        found = codes[wrong] * len(mistakes) + self.mistakes[wrong]
        groups: dict[tuple[str, str], Counter[Cause]] = {}
        for place, count in zip(*map(np.ndarray.tolist, np.unique_counts(found)), strict=True):
            code, number = divmod(place, len(mistakes))
            for group in tags[code].items():
                groups.setdefault(group, Counter())[mistakes[number][0]] += count
        return {
            "overall": _sort_causes(overall),
            "by": {
                axis: {name: _sort_causes(groups.get((axis, name), {})) for name in names}
                for axis, names in by.items()
            },
            "by_target": {name: _sort_causes(targets[name]) for name in sorted(targets)},
        }

    def reasons(
        self,
        task: Asking,
        profile: Profile,
        source: LoadedDataset | None,
        results: Mapping[str, Any],
    ) -> Iterator[Reason]:
        kinds = [Verdict(*kind) for kind in self.judge.kinds]
        judged = np.array([is_judged(profile, kind) for kind in kinds])[self.column]
        right = np.array([find_standing(profile, kind) == "right" for kind in kinds])[self.column]
        yield from lost_steps(source, self.steps, judged)
        places, wrong = results.get("places", {}), sum(results["causes"]["overall"].values())
        many = {"wrong": wrong, "judged": int(judged.sum())}
        if unit := other_unit(task, profile, places, self.kept, **many):
            yield unit
        elif 2 * right.sum() < judged.sum():
            form = other_dialect(task, profile, results["outcomes"], self.kept)
            yield from [form] if form else []

    def rows(self, whole: npt.NDArray[np.bool_]) -> VerdictColumns:
        kinds = self.judge.kinds
        outcomes = np.array([_CODE[outcome] for outcome, _ in kinds], np.uint8)
        values = np.array([values for _, values in kinds], np.float64)  # None is NaN
        names = self.judge.profile.values
        return VerdictColumns(outcomes[self.column], _Values(names, values, self.column), whole)


class _Values(Mapping[str, npt.NDArray[np.float64]]):
    def __init__(
        self, names: Sequence[str], kinds: npt.NDArray[np.float64], column: npt.NDArray[np.intc]
    ) -> None:
        self._numbers = {name: number for number, name in enumerate(names)}
        self._kinds, self._column = kinds, column

    def __getitem__(self, name: str) -> npt.NDArray[np.float64]:
        found: npt.NDArray[np.float64] = self._kinds[:, self._numbers[name]][self._column]
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


def _sort_causes(found: Mapping[Cause, int]) -> dict[Cause, int]:
    return {cause: found[cause] for cause in CAUSES if cause in found}


# What is scored without any text of a model.

_LONGEST = 100
"""Characters of an agent's name in the name of its folder."""


def agent_folders(scored: Sequence[Scored], out: Path) -> dict[Path, Scored]:
    """Return a folder per agent: the named one for a single agent, else one below it.

    Their names are the agents', made safe, whatever other agents there are; where those of two
    would be the same, a part of a hash is added.
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
            write_lines(file, scored.lines)
        write_json(place / RESULTS, scored.results)


# Where scores may be written.


def check_agent_folders(out: Path, outs: Sequence[Path], answers: Path | None) -> None:
    """Refuse folders as `check_scores_folder` does, and foreign scores beside them.

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
                "the folder holds other files than these scores",
                where=f"--out {out}",
                expected=f"a new folder: {len(outs)} sets of scores get one each below it",
                remedy="choose another --out",
            )


def check_scores_folder(out: Path, predictions: Path | None) -> None:
    """Refuse a folder whose content the scores would seem to belong to."""
    if not out.exists() or (predictions is not None and _is_run(out, predictions)):
        return
    ours = (SCORES, RESULTS)
    if out.is_dir() and all(
        path.name in ours or is_unfinished(path.name) for path in out.iterdir()
    ):
        return
    raise RunError(
        "the folder holds other files",
        where=f"--out {out}",
        expected="a new folder, one of earlier scores, or the run that is scored",
        remedy="choose another --out",
    )


def _is_run(out: Path, predictions: Path) -> bool:
    run = predictions if predictions.is_dir() else predictions.parent
    is_run = (run / "run.json").is_file() and (run == predictions or predictions.name == ANSWERS)
    return is_run and out.resolve() == run.resolve()
