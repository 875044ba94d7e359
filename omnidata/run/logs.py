"""Other harnesses' logs as predictions: which step of the data each sample is.

The forms of logs are those of `omnidata.run.log_samples`, and of `omnidata.run.inspect_log`.

A number says nothing, unless the benchmark says that it does (`Benchmark.logs_by_number`):
harnesses number the rows of their own copy, in its order. What counts is the row itself, the record
of it that metrics keep, and the prompt; the number decides between rows that these do not tell
apart, where all others are at the place that their numbers say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from omnidata.errors import PredictionError, UsageError
from omnidata.jsontext import as_name, is_integer
from omnidata.loaders.steps import Positions, ids_of, select_steps
from omnidata.predictions import Prediction
from omnidata.run import inspect_log
from omnidata.run.answer_files import BadLines
from omnidata.run.log_samples import (
    ANSWERS,
    INDEX,
    Sample,
    answer_column,
    claw_samples,
    kit_samples,
    lmms_samples,
    row_receipt,
    row_samples,
    text_of,
)
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.tasks.log_rows import Difference, Leaves, leaves, likeness, plain
from omnidata.types import LoadedDataset, Step

_SAMPLES: Final[Mapping[str, Callable[[Path, BadLines], Iterator[Sample]]]] = {
    "lmms-eval": lmms_samples,
    "clawgui-eval": claw_samples,
    "inspect": lambda path, _: inspect_log.samples(path),
    "vlmevalkit": kit_samples,
    "gui-r1": row_samples,
}
_DIALECTS: Final = {"gui-r1": "gui-r1"}
"""The words in which a harness's own models answer."""
HARNESSES: Final = tuple(_SAMPLES)
"""Those whose logs can be scored, for `--from`."""

_SEVERAL: Final = 500
"""From so many alike on, rows are not looked at one by one."""
_DEEPEST: Final = 8  # level of a row in which an answer is looked for
_TOLD: Final = 5  # of the steps that a sample may be
_PARTS: Final = 2_000  # of a prompt that may be an instruction


def read_log(
    harness: str, path: Path, source: LoadedDataset, task: Asking, bad: BadLines | None = None
) -> Iterator[Prediction]:
    """Return the answers of another harness's log, without those to skipped rows.

    Answers to rows that nothing but their number tells apart come last.

    Args:
        harness: one of `HARNESSES`.
        path: of the log.
        source: the data that the log was made on.
        task: their benchmark.
        bad: takes note of lines that cannot be read, are no step of the data, or do not say which;
            None raises an error about all of them behind the last answer.

    Raises:
        UsageError: logs of the harness cannot be read.
        PredictionError: the log cannot be opened, or as said.
    """
    if harness not in HARNESSES:
        raise UsageError(
            f'no reader for logs of "{harness}"',
            where=f"--from {harness}",
            expected=f"one of {', '.join(HARNESSES)}",
        )
    own = bad or BadLines(path)
    yield from _Steps(source, task).match(_SAMPLES[harness](path, own), own)
    if bad is None:
        own.check()


def own_answers(steps: Sequence[Step], bad: BadLines, *, fed: bool) -> Iterator[Prediction]:
    """Return the answers recorded in the rows of the data.

    Args:
        steps: of the data.
        fed: whether the `image_size` of a row is that of the picture that the model got; else it
            means what it means in the benchmark.
        bad: takes note of rows with several answers, or sizes that cannot be read.

    Raises:
        PredictionError: no row has an answer.
    """
    found = False
    for step in steps:
        row: dict[str, Any] = {name: values[0] for name, values in leaves(step.source).items()}
        row |= _answers_of(step.source)
        try:
            named = answer_column(row, step.sample_id)
            receipt = row_receipt(row, step.sample_id) if fed else {}
        except PredictionError as error:
            if any(row.get(name) is not None for name in ANSWERS):
                bad.add(error)
            continue
        found = True
        text = text_of(row[named])
        yield Prediction(sample_id=step.sample_id, output=text, receipt=dict(receipt))
    if not found and not bad.count:
        raise PredictionError(
            "no row of the data has an answer",
            expected=f"one of the columns {', '.join(ANSWERS)}",
            remedy="rename the column with the model's text, or write lines of sample_id and "
            "output",
        )


def _answers_of(row: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in row.items():
        if name in ANSWERS:
            found |= {} if value is None else {name: value}
        elif isinstance(value, Mapping) and depth < _DEEPEST:
            found = _answers_of(value, depth + 1) | found
    return found


def log_settings(harness: str, path: Path, task: str, options: Mapping[str, str]) -> dict[str, Any]:
    """Return the task settings of a log, as in `run.json`; empty if it has none.

    Args:
        harness: one of `HARNESSES`.
        path: of the log.
        task: that it is scored as.
        options: as given with `-T key=value`.

    Raises:
        UsageError: the log does not say in which unit places are, and nobody else does.
        PredictionError: the log is of another task, or cannot be read.
    """
    if harness == "inspect":
        return inspect_log.settings(path, task)
    if harness in _DIALECTS and not {"coordinates", "dialect"} & options.keys():
        return {"task": task, "options": {"dialect": _DIALECTS[harness]}}
    units = get_task(task).allowed.get("coordinates", ())
    if harness == "vlmevalkit" and units and not {"coordinates", "dialect"} & options.keys():
        raise UsageError(
            "a table of VLMEvalKit does not name the unit of its coordinates",
            where=f"--from {harness} {path}",
            expected=f"-T coordinates={'|'.join(units)}, or --dialect NAME",
            remedy="name the unit that the model was asked for; VLMEvalKit's own rules use "
            "fractions of the screen (rel)",
        )
    return {}


def check_log(harness: str, path: Path, source: LoadedDataset, task: Asking) -> Sequence[Step]:
    """Return the steps that a log is about: all, unless it lists them.

    Raises:
        PredictionError: it says that it was made on other data, or with other prompts.
    """
    if harness == "inspect":
        asked = inspect_log.check(path, source, task)
        if asked:
            ids = enumerate(ids_of(source.steps))
            return select_steps(source.steps, [number for number, name in ids if name in asked])
    return source.steps


class _Steps:
    def __init__(self, source: LoadedDataset, task: Asking) -> None:
        self.task = task
        self.row_ids = source.row_ids
        self.places = Positions(source.steps)
        self._steps = source.steps
        self.by_place: dict[tuple[str | None, float], set[str]] = {}
        self.by_instruction: dict[str, set[str]] = {}
        self.by_file: dict[str, set[str]] = {}
        for step in source.steps:
            name = step.sample_id
            self.by_place.setdefault((step.episode_id, step.step_index), set()).add(name)
            if instruction := step.instruction.strip():
                self.by_instruction.setdefault(instruction, set()).add(name)
            for ref in filter(None, step.media.values()):
                self.by_file.setdefault(_base(ref.path), set()).add(name)
        self.longest = max(map(len, self.by_instruction), default=0)

    def step(self, name: str) -> Step:
        return self._steps[self.places[name]]

    def match(self, samples: Iterable[Sample], bad: BadLines) -> Iterator[Prediction]:
        """Match samples with steps; note those that match none or several.

        If a row is known to be at another place than its number says, numbers do not count. An
        answer with the number of a skipped row that names a step repeats an answered row, or
        belongs to the step itself if the log was made on a copy without the repetition.
        """
        given: set[str] = set()
        repeated: dict[str, Sample] = {}
        unsure: list[tuple[Sample, str | None, set[str]]] = []
        moved, confirmed = "", self.task.benchmark.log_rows.by_number
        for sample in samples:
            inside = is_integer(sample.number) and 0 <= sample.number < len(self.row_ids)
            own = self.row_ids[sample.number] if inside else None
            skipped = inside and own is None
            own = own if own in self.places else None
            fitting = self._fitting(sample, own)
            if len(fitting) == 1:
                (found,) = fitting
                if skipped:
                    repeated.setdefault(found, sample)
                    continue
                confirmed = confirmed or own == found
                if own not in (None, found):
                    moved = moved or sample.where
                given.add(found)
                yield sample.prediction(found)
                continue
            if not fitting and not skipped:
                bad.add(self._unknown(sample, own))
                continue
            if fitting and not skipped and (fault := self._undecidable(sample, own, fitting)):
                bad.add(fault)
                continue
            unsure.append((sample, own, fitting))
        for found, sample in repeated.items():
            if found not in given:
                moved = moved or sample.where
                yield sample.prediction(found)
        for sample, own, fitting in unsure:
            if not fitting and (moved or not confirmed):
                bad.add(self._unknown(sample, own))
            elif moved:
                why = f"rows are at other places there ({moved})"
                bad.add(self._unsure(sample, fitting, why))
            elif not confirmed:
                bad.add(self._unsure(sample, fitting, "nothing confirms its number"))
            elif own is not None:
                yield sample.prediction(own)

    def _fitting(self, sample: Sample, own: str | None) -> set[str]:
        found = self._steps_meant_by(sample, own)
        if len(found) > _SEVERAL:  # of so many only the one that the number names is looked at
            says = own in found and self._differs(sample, str(own))
            return found - {str(own)} if says else found
        fitting = {name for name in found if not self._differs(sample, name)}
        if len(fitting) < 2:
            return fitting
        said = sample.said
        alike = {name: likeness(self.step(name).source, said, sample.target) for name in fitting}
        return {name for name in fitting if alike[name] == max(alike.values())}

    def _differs(self, sample: Sample, name: str) -> bool:
        return bool(self._difference(sample, self.step(name)))

    def _difference(self, sample: Sample, step: Step) -> Difference | None:
        if sample.picture:
            files = [_base(ref.path) for ref in step.media.values() if ref]
            if files and _base(sample.picture) not in files:
                return Difference("picture", sample.picture, files[0])
        return self.task.benchmark.log_rows.difference(step, sample.row, sample.records)

    def _steps_meant_by(self, sample: Sample, own: str | None) -> set[str]:
        for columns in sample.said:
            for name in columns.get("sample_id", ()):
                if isinstance(name, str) and name in self.places:
                    return {name}
            for episode in map(as_name, columns.get("episode_id", ())):
                for index in (plain(index) for key in INDEX for index in columns.get(key, ())):
                    if isinstance(index, int | float) and (episode, index) in self.by_place:
                        return self.by_place[episode, index]
        if self.task.benchmark.log_rows.by_number:
            return (
                {own} if own is not None and own in self.places and sample.named is None else set()
            )
        return self._by_instruction(sample)

    def _by_instruction(self, sample: Sample) -> set[str]:
        texts = [text for columns in sample.said for text in _texts(columns)]
        parts = (part for prompt in sample.prompts for part in _parts(prompt, self.longest))
        found = set[str]().union(*(self.by_instruction.get(text, ()) for text in (*texts, *parts)))
        shown = set[str]().union(*(self.by_file.get(_base(text), ()) for text in texts))
        return found & shown or found

    def _undecidable(
        self, sample: Sample, own: str | None, fitting: set[str]
    ) -> PredictionError | None:
        """Return why a row number may not decide among steps of one episode."""
        if own is None or own not in fitting:
            return self._unsure(sample, fitting, "its number is none of theirs")
        step = self.step(own)
        alike = sum(self.step(name).episode == step.episode for name in fitting)
        if alike < 2:
            return None
        return PredictionError(
            f"the log does not say which of {alike} steps of episode {step.episode_id!r:.60} "
            "the sample is",
            where=sample.where,
            expected="a doc with episode_id and step_id, or with other columns of the row",
            remedy="log the rows themselves, or write {sample_id, output} lines",
        )

    def _unknown(self, sample: Sample, own: str | None) -> PredictionError:
        meant = self._steps_meant_by(sample, own)
        if meant and own not in meant:
            own = min(meant)
        named = sample.named
        what = f"doc_id {sample.number!r}"
        if named:
            what = f"episode {named[0]!r:.60}, step {named[1]!r:.20}"
        what = f"the sample ({what}) is no step of the data"
        if own and (meant or not named):
            step = self.step(own)
            if found := self._difference(sample, step):
                what += f": its {found.column} is {found.said!r:.80}, that of {own} is "
                what += f"{found.own!r:.80}"
            else:
                what += f": nothing in it says {step.instruction!r:.80}, as {own} does"
        number = "a number alone does not name a row"
        if self.task.benchmark.log_rows.by_number:
            number = f"else a doc_id below {len(self.row_ids)}"
        return PredictionError(
            what,
            where=sample.where,
            expected="the row (doc), or a record of it, or a prompt with its instruction; "
            + number,
            remedy="score against the data that the log was made on, or log the rows themselves",
        )

    def _unsure(self, sample: Sample, fitting: set[str], why: str) -> PredictionError:
        names = sorted(fitting)
        more = ", ..." if len(names) > _TOLD else ""
        return PredictionError(
            f"several rows of the data are like the sample (doc_id {sample.number!r}): it is one "
            f"of {', '.join(names[:_TOLD])}{more}, and {why}",
            where=sample.where,
            expected="a doc that tells them apart, or a log in the order of the data",
            remedy="log the rows themselves, or write {sample_id, output} lines",
        )


def _texts(row: Leaves) -> Iterator[str]:
    for values in row.values():
        yield from (value.strip() for value in values if isinstance(value, str))


def _parts(prompt: str, longest: int) -> Iterator[str]:
    ends = [prompt.strip(), *prompt.splitlines()]
    for end in ends[:_PARTS]:
        pieces = end.split(":")[:_PARTS]
        length = len(end)
        for piece in pieces:
            if length <= longest + 4:
                yield end[len(end) - length :].strip().strip("\"'").strip()
            length -= len(piece) + 1


def _base(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]
