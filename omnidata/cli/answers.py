"""The answers that `omnidata score` reads: of a run, a file, a log, a trainer, or the data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnidata.errors import RunError, UnansweredError, UsageError, plural

if TYPE_CHECKING:
    from omnidata.predictions import Prediction
    from omnidata.run.bad_lines import BadLines
    from omnidata.tasks.asking import Asking
    from omnidata.types import LoadedDataset, Step

SKIP_BAD = "--skip-bad"


@dataclass(frozen=True, slots=True)
class GivenAnswers:
    """The answers to score.

    Attributes:
        lines: the file that they are in, for messages.
        settings: how they were made, as in `run.json`; empty if unknown.
        steps: returns the steps that were asked about.
        read: yields the answers in any order, each time anew; notes lines without an answer.
        flag: the option that leaves bad lines out; empty if a bad line is damage.
    """

    lines: Path
    settings: Mapping[str, Any]
    steps: Callable[[LoadedDataset, Asking], Sequence[Step]]
    read: Callable[[LoadedDataset, Asking, BadLines], Iterator[Prediction]]
    flag: str = SKIP_BAD

    def check_skipping(self, skip_bad: bool) -> None:
        """Refuse to skip broken lines of a run folder.

        Raises:
            UsageError: they are to be skipped.
        """
        if skip_bad and not self.flag:
            raise UsageError(
                "a broken line in a run folder means that the folder is damaged",
                where=SKIP_BAD,
                expected=f"{SKIP_BAD} only with a file of answers",
                remedy=f"name the file: {self.lines}",
            )


def find_answers(
    task: str,
    data: Path,
    place: Path,
    options: Mapping[str, str],
    *,
    harness: str | None,
    rows: Path | None,
) -> GivenAnswers:
    """Return the answers in a place; `harness` is the value of `--from`.

    Raises:
        UsageError: no harness has this name, or an option that it needs is missing.
        RunError: the folder is no run, or its files are broken.
        PredictionError: a log or a trainer's file cannot be read, or is of another task.
    """
    from omnidata.run.answer_files import read_answers
    from omnidata.run.logs import HARNESSES, open_log, read_log
    from omnidata.run.logs.gui_r1 import own_answers
    from omnidata.training.trainer_logs import TrainerLog, trainers

    known = [*trainers()] if harness or rows else []
    if harness is not None and harness not in (*HARNESSES, *known):
        raise UsageError(
            f'"{harness}" is no known format of answers',
            where=f"--from {harness}",
            expected=f"one of {', '.join((*HARNESSES, *known))}",
        )
    if rows is not None and harness not in known:
        raise UsageError(
            "--rows is for predictions of a trainer",
            where=f"--rows {rows}",
            expected=f"--from {'|'.join(known)} as well",
        )
    if harness in known:
        log = TrainerLog(harness, place, rows)
        return GivenAnswers(place, log.settings(task), log.steps, log.read)
    form = open_log(harness, place) if harness else None
    settings = form.settings(task, options) if form else {}
    if place.exists() and data.exists() and place.samefile(data):
        return GivenAnswers(
            place,
            settings,
            lambda source, _: source.steps,
            lambda source, _, bad: own_answers(source.steps, bad, fed=harness is not None),
        )
    if harness and form:
        return GivenAnswers(place, settings, form.steps, partial(read_log, harness, place))
    if place.is_dir():
        return _run(task, data, place)
    return GivenAnswers(
        place, {}, lambda source, _: source.steps, lambda _, __, bad: read_answers(place, bad)
    )


def _run(task: str, data: Path, folder: Path) -> GivenAnswers:
    from omnidata.predictions import read
    from omnidata.run.recorded import recorded_steps
    from omnidata.run.run_info import ANSWERS, INFO, read_info

    lines = folder / ANSWERS
    if not (folder / INFO).exists():
        raise RunError(
            "the folder is not a run folder: it has no run.json",
            where=str(folder),
            expected="a run folder from `omnidata evaluate`, or a file of predictions",
            remedy="name the file of predictions: omnidata score "
            f"{task} {data} {lines if lines.exists() else 'PREDICTIONS'}",
        )
    settings = read_info(folder)
    return GivenAnswers(
        lines,
        settings,
        lambda source, _: recorded_steps(settings, source, folder),
        lambda *_: read(lines, of_run=True),
        flag="",
    )


def read_counted(
    answers: GivenAnswers, source: LoadedDataset, task: Asking, bad: BadLines
) -> Iterator[Prediction]:
    """Yield the answers that count: where bad lines are left out, none to a step that has several.

    Raises:
        UnansweredError: behind the last answer; each of them is null, as where a server died.
    """
    from omnidata.run.bad_lines import BadLines, repeated_answer

    known, repeated = set[str](), set[str]()
    if bad.skip:
        for answer in answers.read(source, task, BadLines(answers.lines, skip=True)):
            (repeated if answer.sample_id in known else known).add(answer.sample_id)
    count = nulls = 0
    for answer in answers.read(source, task, bad):
        if answer.sample_id in repeated:
            bad.add(repeated_answer(answer.sample_id))
            continue
        count += 1
        nulls += answer.delivery == "ok" and answer.output is None
        yield answer
    if count and nulls == count:
        verb = "is" if nulls == 1 else "are"
        raise UnansweredError(
            f"no step was answered: {plural(nulls, 'output')} {verb} null",
            where=str(answers.lines),
            expected="an answer to at least one step",
            remedy="run the model again, or name the file that holds its answers",
        )
