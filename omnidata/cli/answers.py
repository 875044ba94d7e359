"""What `omnidata score` is given: answers of a run, a file, a log, a trainer, or the data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from omnidata.errors import RunError, UnansweredError, UsageError, plural

if TYPE_CHECKING:
    from omnidata.predictions import Prediction
    from omnidata.run.answer_files import BadLines
    from omnidata.training.trainer_logs import TrainerLog
    from omnidata.types import LoadedDataset, Step
from omnidata.tasks.asking import Asking

SKIP_BAD = "--skip-bad"


class Answers(Protocol):
    """Answers that exist."""

    @property
    def lines(self) -> Path:
        """The file that they are in, for messages."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """What is known of how they were made, as in `run.json`; empty where nothing is."""

    @property
    def flag(self) -> str:
        """The option that leaves bad lines out; empty where a bad line is damage."""

    def steps(self, source: LoadedDataset, task: Asking) -> Sequence[Step]:
        """The steps that were asked about."""

    def read(self, source: LoadedDataset, task: Asking, bad: BadLines) -> Iterator[Prediction]:
        """The answers in any order, each time anew; `bad` takes note of lines without one."""


@dataclass(frozen=True, slots=True)
class _Run:
    folder: Path
    lines: Path
    settings: Mapping[str, Any]
    flag: str = ""

    def steps(self, source: LoadedDataset, task: Asking) -> Sequence[Step]:
        from omnidata.run.run_files import recorded_steps

        return recorded_steps(self.settings, source, self.folder)

    def read(self, source: LoadedDataset, task: Asking, bad: BadLines) -> Iterator[Prediction]:
        from omnidata.predictions import read

        return read(self.lines, of_run=True)


@dataclass(frozen=True, slots=True)
class _Lines:
    lines: Path
    settings: Mapping[str, Any]
    flag: str = SKIP_BAD

    def steps(self, source: LoadedDataset, task: Asking) -> Sequence[Step]:
        return source.steps

    def read(self, source: LoadedDataset, task: Asking, bad: BadLines) -> Iterator[Prediction]:
        from omnidata.run.answer_files import read_answers

        return read_answers(self.lines, bad)


@dataclass(frozen=True, slots=True)
class _Own:
    harness: str | None
    lines: Path
    settings: Mapping[str, Any]
    flag: str = SKIP_BAD

    def steps(self, source: LoadedDataset, task: Asking) -> Sequence[Step]:
        return source.steps

    def read(self, source: LoadedDataset, task: Asking, bad: BadLines) -> Iterator[Prediction]:
        from omnidata.run.logs import own_answers

        return own_answers(source.steps, bad, fed=self.harness is not None)


@dataclass(frozen=True, slots=True)
class _Log:
    harness: str
    lines: Path
    settings: Mapping[str, Any]
    flag: str = SKIP_BAD

    def steps(self, source: LoadedDataset, task: Asking) -> Sequence[Step]:
        from omnidata.run.logs import check_log

        return check_log(self.harness, self.lines, source, task)

    def read(self, source: LoadedDataset, task: Asking, bad: BadLines) -> Iterator[Prediction]:
        from omnidata.run.logs import read_log

        return read_log(self.harness, self.lines, source, task, bad)


@dataclass(frozen=True, slots=True)
class _Trained:
    log: TrainerLog
    lines: Path
    settings: Mapping[str, Any]
    flag: str = SKIP_BAD

    def steps(self, source: LoadedDataset, task: Asking) -> Sequence[Step]:
        return self.log.steps(source)

    def read(self, source: LoadedDataset, task: Asking, bad: BadLines) -> Iterator[Prediction]:
        return self.log.read(bad)


def find_answers(
    task: str,
    data: Path,
    place: Path,
    options: Mapping[str, str],
    *,
    harness: str | None,
    rows: Path | None,
) -> Answers:
    """The answers that the user means.

    Args:
        task: the benchmark's name.
        data: the dataset's place.
        place: of the answers.
        options: as given with `-T` and `--dialect`.
        harness: as given with `--from`.
        rows: as given with `--rows`.

    Raises:
        UsageError: no harness is called so, or what it needs is not given.
        RunError: the folder is no run, or its files are broken.
        PredictionError: a log or a trainer's file cannot be read, or is of another task.
    """
    from omnidata.run.logs import HARNESSES, log_settings
    from omnidata.training.trainer_logs import TRAINERS, TrainerLog

    if harness is not None and harness not in (*HARNESSES, *TRAINERS):
        raise UsageError(
            f'"{harness}" is no known format of answers',
            where=f"--from {harness}",
            expected=f"one of {', '.join((*HARNESSES, *TRAINERS))}",
        )
    if rows is not None and harness not in TRAINERS:
        raise UsageError(
            "--rows is for predictions of a trainer",
            where=f"--rows {rows}",
            expected=f"--from {'|'.join(TRAINERS)} as well",
        )
    if harness in TRAINERS:
        log = TrainerLog(harness, place, rows)
        return _Trained(log, place, log.settings(task))
    settings = log_settings(harness, place, task, options) if harness else {}
    if place.exists() and data.exists() and place.samefile(data):
        return _Own(harness, place, settings)
    if harness:
        return _Log(harness, place, settings)
    return _run(task, data, place) if place.is_dir() else _Lines(place, {})


def _run(task: str, data: Path, folder: Path) -> Answers:
    from omnidata.run.run_files import ANSWERS, INFO, read_info

    lines = folder / ANSWERS
    if not (folder / INFO).exists():
        raise RunError(
            "the folder is not a run folder: it has no run.json",
            where=str(folder),
            expected="a run folder from `omnidata evaluate`, or a file of predictions",
            remedy="name the file of predictions: omnidata score "
            f"{task} {data} {lines if lines.exists() else 'PREDICTIONS'}",
        )
    return _Run(folder, lines, read_info(folder))


def read_counted(
    answers: Answers, source: LoadedDataset, task: Asking, bad: BadLines
) -> Iterator[Prediction]:
    """The answers that count: where bad lines are left out, none to a step that has several.

    Raises:
        UnansweredError: behind the last answer; each of them is null, as where a server died.
    """
    from omnidata.run.answer_files import without_repeated

    read = partial(answers.read, source, task)
    count = nulls = 0
    for answer in without_repeated(read, bad, answers.lines) if bad.skip else read(bad):
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
