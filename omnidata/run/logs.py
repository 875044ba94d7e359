"""Other harnesses' logs as predictions.

lmms-eval, and the OmniGUI release, which is a fork of it, write one JSON line per sample. Versions
differ in what they keep: the row (`doc`) or only its number (`doc_id`); the metric values, which
for OmniGUI are objects that name the step; the answer in `filtered_resps`, in `resps`, or both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from omnidata.errors import PredictionError, UsageError
from omnidata.files import LINE, STREAMED, lines, open_file
from omnidata.jsontext import as_name, is_integer, whole_number
from omnidata.predictions import Prediction
from omnidata.run.log_rows import Rows, Said, differing, leaves
from omnidata.tasks import get_task
from omnidata.types import LoadedDataset, Step

_FAILED = "[LMMS_EVAL_REQUEST_FAILED"  # stands where an answer would, after all retries
_METRICS = ("type_match", "exact_match", "success_rate", "goal_progress")
_OWN = ("doc", "input", "arguments", "target", "token_counts")
"""Keys of a sample that are no metrics."""


def read_lmms_eval(path: Path, source: LoadedDataset) -> Iterator[Prediction]:
    """The answers of an lmms-eval samples log.

    Where the harness reads the data's rows in their own order (`LoadedDataset.numbered`), a sample
    is found by the episode and step that its row or its metrics name, else by `doc_id`, the row's
    number. In other data it is found by what is said of the row: see `omnidata.run.log_rows`.

    Raises:
        PredictionError: a line cannot be read, is no step of the data, or does not say which.
    """
    if source.numbered:
        yield from _Steps(source).match(_samples(path))
        return
    answers: list[str] = []

    def said() -> Iterator[Said]:
        for sample, where in _samples(path):
            answers.append(_answer(sample, where))
            yield _said(sample, where)

    for sample_id, answer in zip(Rows(source).match(said()), answers, strict=True):
        if sample_id is not None:
            yield _prediction(sample_id, answer)


def _samples(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """The objects of the lines, each with file and line."""
    try:
        file = open_file(path, STREAMED)
    except OSError as error:
        raise PredictionError(
            f"the file cannot be opened ({error.strerror})", where=str(path), expected="a log"
        ) from None
    with file:
        for number, line in enumerate(lines(file), 1):
            where = f"{path}:{number}"
            if len(line) >= LINE:
                raise PredictionError(
                    f"the line has {LINE:,} bytes or more",
                    where=where,
                    expected="one JSON object per line",
                    remedy="name a log of samples, or shorten the line",
                )
            if line.strip():
                yield _object(line, where), where


READERS: Mapping[str, Callable[[Path, LoadedDataset], Iterator[Prediction]]] = {
    "lmms-eval": read_lmms_eval
}
"""Harnesses whose logs can be scored, for `--from`."""


def read_log(harness: str, path: Path, source: LoadedDataset) -> Iterator[Prediction]:
    """The answers of another harness's log.

    Raises:
        UsageError: there is no reader for the harness.
    """
    if harness not in READERS:
        raise UsageError(
            f'no reader for logs of "{harness}"',
            where=f"--from {harness}",
            expected=f"one of {', '.join(READERS)}",
        )
    return READERS[harness](path, source)


def _object(line: bytes, where: str) -> dict[str, Any]:
    try:
        sample = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise PredictionError(
            f"invalid JSON: {error}", where=where, expected="one JSON object per line"
        ) from None
    if not isinstance(sample, dict):
        raise PredictionError(
            f"the line is a JSON {type(sample).__name__}",
            where=where,
            expected="an object with doc_id and filtered_resps",
        )
    return sample


def _said(sample: Mapping[str, Any], where: str) -> Said:
    number, row, target = sample.get("doc_id"), sample.get("doc"), sample.get("target")
    return Said(
        number if is_integer(number) else None,
        row if isinstance(row, dict) else {},
        [value for key, value in sample.items() if key not in _OWN and isinstance(value, dict)],
        list(_strings([sample.get("input"), sample.get("arguments")])),
        target if isinstance(target, str) else json.dumps(target) if target else "",
        where,
    )


def _strings(value: Any) -> Iterator[str]:
    """The texts of a prompt, however it is nested."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str):
            yield found
        elif isinstance(found, dict):
            waiting += found.values()
        elif isinstance(found, list):
            waiting += found


class _Steps:
    """Finds a step by what a log says of it, or by its number."""

    def __init__(self, source: LoadedDataset) -> None:
        self.task = get_task(source.task)
        self.rows = source.row_ids
        self.steps = {step.sample_id: step for step in source.steps}
        self.by_place: dict[tuple[str, int], set[str]] = {}
        for step in source.steps:
            place = (step.episode_id, step.step_index)
            self.by_place.setdefault(place, set()).add(step.sample_id)

    def match(self, samples: Iterable[tuple[dict[str, Any], str]]) -> Iterator[Prediction]:
        """The answers, without those of rows that the loader skipped with a finding.

        Those that only the number tells apart come last: when a row is known to be at another place
        than its number says, the number tells nothing. So do answers with the number of a skipped
        row that name a step: a repeated row's where the step has an answer already, the step's own
        where the log was made on a copy without the repetition.

        Raises:
            PredictionError: a sample is no step of the data, or the log does not say which.
        """
        given: set[str] = set()
        repeated: dict[str, tuple[Prediction, str]] = {}
        unsure: list[tuple[dict[str, Any], str, str | None]] = []
        moved = ""
        for sample, where in samples:
            inside, by_number = self._numbered(sample)
            fitting = self._fitting(sample, where)
            if len(fitting) > 1:
                if by_number not in fitting and (by_number or not inside):
                    raise self._ambiguous(fitting, "its number is none of theirs", where)
                unsure.append((sample, where, by_number))
                continue
            for found in fitting:
                self._check_target(found, sample, where)
                prediction = _prediction(found, _answer(sample, where))
                if inside and by_number is None:
                    repeated.setdefault(found, (prediction, where))
                    continue
                if inside and by_number != found:
                    moved = moved or where
                given.add(found)
                yield prediction
        for found, (prediction, where) in repeated.items():
            if found not in given:
                moved = moved or where
                yield prediction
        for sample, where, by_number in unsure:
            if moved:
                why = f"rows are at other places there ({moved})"
                raise self._ambiguous(self._fitting(sample, where), why, where)
            if by_number is not None:
                self._check_target(by_number, sample, where)
                yield _prediction(by_number, _answer(sample, where))

    def _numbered(self, sample: Mapping[str, Any]) -> tuple[bool, str | None]:
        """Whether the data have a row with the number, and the step that it became."""
        number = sample.get("doc_id")
        if type(number) is not int or not 0 <= number < len(self.rows):
            return False, None
        return True, self.rows[number]

    def _fitting(self, sample: Mapping[str, Any], where: str) -> set[str]:
        """The steps that the sample may be; none for a row that the loader skipped."""
        inside, by_number = self._numbered(sample)
        named = next((name for name in _names(sample) if "episode_id" in name), None)
        if named is None:
            if not inside:
                raise self._unknown(f"doc_id {sample.get('doc_id')!r}", where)
            return {by_number} if by_number else set()
        # What names a step wins: a row's number may be another dataset's.
        places = self._named(named)
        if not places and not (inside and by_number is None and self._is_of_episode(named)):
            what = f"episode {named['episode_id']!r}, step {_step_number(named)!r}"
            raise self._unknown(what, where)
        if len(places) < 2:
            return places
        said = leaves(named)
        return {one for one in places if not differing(said, self.steps[one].source)} or places

    def _named(self, name: Mapping[str, Any]) -> set[str]:
        """Steps with that episode and number, of that app or subset where the log names one."""
        step = _step_number(name)
        if step is None:
            return set()
        places = self.by_place.get((str(as_name(name["episode_id"])), step), set())
        said = self._apps(name)
        return {place for place in places if not said or said & self._apps_of(self.steps[place])}

    def _apps_of(self, step: Step) -> set[str]:
        return self._apps(step.tags) | self._apps(step.source)

    def _apps(self, row: Mapping[str, Any]) -> set[str]:
        """What a row calls its app; some versions of the harness call the app a subset."""
        known = (row.get("app"), row.get("subset"))
        return {self.task.spelling("app", str(name)) for name in known if name}

    def _is_of_episode(self, name: Mapping[str, Any]) -> bool:
        episode = str(as_name(name["episode_id"]))
        return any(step.episode_id == episode for step in self.steps.values())

    def _unknown(self, what: str, where: str) -> PredictionError:
        return PredictionError(
            f"the sample ({what}) is no step of the data",
            where=where,
            expected=f"doc, or metrics with episode_id and step_id, or doc_id below "
            f"{len(self.rows)}",
            remedy="score against the data that the log was made on",
        )

    @staticmethod
    def _ambiguous(fitting: set[str], why: str, where: str) -> PredictionError:
        return PredictionError(
            f"the sample is one of {', '.join(sorted(fitting))}, and {why}",
            where=where,
            expected="a doc, or metrics, with the app too, or a log in the order of the data",
            remedy="log the rows themselves, or write {sample_id, output} lines",
        )

    def _check_target(self, sample_id: str, sample: Mapping[str, Any], where: str) -> None:
        """Refuse a log with another target than the data's: it was made on other annotations."""
        target = self.steps[sample_id].source.get("result_action_type")
        for name in _names(sample):
            for key in ("result_action_type", "gt_action_type"):
                if key in name and name[key] != target:
                    raise PredictionError(
                        f"{key} of {sample_id} is {name[key]!r}, the data's is {target!r}",
                        where=where,
                        expected="a log that was made on this data",
                        remedy="score against the data that the log was made on",
                    )


def _names(sample: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What may name the step: the row, and the metrics' records."""
    found = (sample.get(key) for key in ("doc", *_METRICS))
    return [name for name in found if isinstance(name, dict)]


def _prediction(sample_id: str, answer: str) -> Prediction:
    if answer.startswith(_FAILED):
        return Prediction(sample_id=sample_id, output="", delivery="api_error", error=answer)
    return Prediction(sample_id=sample_id, output=answer)


def _step_number(name: Mapping[str, Any]) -> int | None:
    value = name.get("step_index") if name.get("step_index") is not None else name.get("step_id")
    return whole_number(value)


def _answer(sample: Mapping[str, Any], where: str) -> str:
    for key in ("filtered_resps", "resps"):
        value = sample.get(key)
        while isinstance(value, list) and value:
            value = value[0]
        if value not in (None, []):
            break
    else:
        return ""
    if isinstance(value, str):
        return value
    raise PredictionError(
        f"the answer is a {type(value).__name__}",
        where=where,
        expected="filtered_resps or resps with a text",
    )
