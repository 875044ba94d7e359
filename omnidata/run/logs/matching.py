"""Matching of a log's samples with the steps of the data.

The number of a row says nothing unless the benchmark says so (`LogRows.by_number`): harnesses
number the rows of their own copy, in its order. Samples are matched by the row itself, the record
of it that metrics keep, and the prompt. The number decides between rows that these do not tell
apart, if all other rows are at the place of their number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from omnidata.errors import PredictionError
from omnidata.jsontext import as_name, is_integer
from omnidata.loaders.steps import Positions
from omnidata.predictions import Prediction
from omnidata.run.bad_lines import BadLines
from omnidata.run.logs.log import INDEX, Sample
from omnidata.tasks.asking import Asking
from omnidata.tasks.log_rows import Difference, Leaves, likeness, plain
from omnidata.types import LoadedDataset, Step

_SEVERAL: Final = 500
"""From so many alike on, rows are not looked at one by one."""
_SHOWN: Final = 5  # of the steps that a sample may be
_PARTS: Final = 2_000  # of a prompt that may be an instruction


class Matching:
    """Finds the step of the data that a sample of a log is."""

    def __init__(self, source: LoadedDataset, task: Asking) -> None:
        self._rules = task.benchmark.log_rows
        self._row_ids = source.row_ids
        self._places = Positions(source.steps)
        self._steps = source.steps
        self._by_index: dict[tuple[str | None, float], set[str]] = {}
        self._by_instruction: dict[str, set[str]] = {}
        self._by_file: dict[str, set[str]] = {}
        for step in source.steps:
            name = step.sample_id
            self._by_index.setdefault((step.episode_id, step.step_index), set()).add(name)
            if instruction := step.instruction.strip():
                self._by_instruction.setdefault(instruction, set()).add(name)
            for ref in filter(None, step.media.values()):
                self._by_file.setdefault(_base(ref.path), set()).add(name)
        self._longest = max(map(len, self._by_instruction), default=0)

    def _step(self, name: str) -> Step:
        return self._steps[self._places[name]]

    def match(self, samples: Iterable[Sample], bad: BadLines) -> Iterator[Prediction]:
        """Match samples with steps; note those that match none or several.

        If a row is known to be at another place than its number says, numbers do not count. An
        answer with the number of a skipped row that names a step repeats an answered row, or
        belongs to the step itself if the log was made on a copy without the repetition.
        """
        given: set[str] = set()
        repeated: dict[str, Sample] = {}
        unsure: list[tuple[Sample, str | None, set[str]]] = []
        moved, confirmed = "", self._rules.by_number
        for sample in samples:
            inside = is_integer(sample.number) and 0 <= sample.number < len(self._row_ids)
            own = self._row_ids[sample.number] if inside else None
            skipped = inside and own is None
            own = own if own in self._places else None
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
        """Return the steps that the sample may be; `own` is the one that its number names."""
        found = self._steps_meant_by(sample, own)
        if len(found) > _SEVERAL:  # only the one that the number names is looked at
            if own in found and self._difference(sample, self._step(own)):
                found = found - {own}
            return found
        fitting = {name for name in found if not self._difference(sample, self._step(name))}
        if len(fitting) < 2:
            return fitting
        columns = sample.columns
        alike = {
            name: likeness(self._step(name).source, columns, sample.target) for name in fitting
        }
        return {name for name in fitting if alike[name] == max(alike.values())}

    def _difference(self, sample: Sample, step: Step) -> Difference | None:
        if sample.picture:
            files = [_base(ref.path) for ref in step.media.values() if ref]
            if files and _base(sample.picture) not in files:
                return Difference("picture", sample.picture, files[0])
        return self._rules.difference(step, sample.row, sample.records)

    def _steps_meant_by(self, sample: Sample, own: str | None) -> set[str]:
        for columns in sample.columns:
            for name in columns.get("sample_id", ()):
                if isinstance(name, str) and name in self._places:
                    return {name}
            for episode in map(as_name, columns.get("episode_id", ())):
                for index in (plain(index) for key in INDEX for index in columns.get(key, ())):
                    if isinstance(index, int | float) and (episode, index) in self._by_index:
                        return self._by_index[episode, index]
        if self._rules.by_number:
            return {own} if own is not None and sample.episode_and_step is None else set()
        texts = [text for columns in sample.columns for text in _texts(columns)]
        parts = (part for prompt in sample.prompts for part in _parts(prompt, self._longest))
        found = set[str]().union(*(self._by_instruction.get(text, ()) for text in (*texts, *parts)))
        shown = set[str]().union(*(self._by_file.get(_base(text), ()) for text in texts))
        return found & shown or found

    def _undecidable(
        self, sample: Sample, own: str | None, fitting: set[str]
    ) -> PredictionError | None:
        """Return why a row number may not decide among steps."""
        if own is None or own not in fitting:
            return self._unsure(sample, fitting, "its number is none of theirs")
        step = self._step(own)
        alike = sum(self._step(name).episode == step.episode for name in fitting)
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
        named = sample.episode_and_step
        what = f"doc_id {sample.number!r}"
        if named:
            what = f"episode {named[0]!r:.60}, step {named[1]!r:.20}"
        what = f"the sample ({what}) is no step of the data"
        if own and (meant or not named):
            step = self._step(own)
            if found := self._difference(sample, step):
                what += f": its {found.column} is {found.said!r:.80}, that of {own} is "
                what += f"{found.own!r:.80}"
            else:
                what += f": nothing in it says {step.instruction!r:.80}, as {own} does"
        number = "a number alone does not name a row"
        if self._rules.by_number:
            number = f"else a doc_id below {len(self._row_ids)}"
        return PredictionError(
            what,
            where=sample.where,
            expected="the row (doc), or a record of it, or a prompt with its instruction; "
            + number,
            remedy="score against the data that the log was made on, or log the rows themselves",
        )

    def _unsure(self, sample: Sample, fitting: set[str], why: str) -> PredictionError:
        names = sorted(fitting)
        more = ", ..." if len(names) > _SHOWN else ""
        return PredictionError(
            f"several rows of the data are like the sample (doc_id {sample.number!r}): it is one "
            f"of {', '.join(names[:_SHOWN])}{more}, and {why}",
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
