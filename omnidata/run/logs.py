"""Other harnesses' logs as predictions.

lmms-eval, and the OmniGUI release, which is a fork of it, write one JSON line per sample. Versions
differ in what they keep: the row (`doc`) or only its number (`doc_id`); the metric values, which
for OmniGUI are objects that name the step; the answer in `filtered_resps`, in `resps`, or both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from omnidata.errors import PredictionError, UsageError
from omnidata.predictions import Prediction
from omnidata.types import Source

_FAILED = "[LMMS_EVAL_REQUEST_FAILED"  # stands where an answer would, after all retries
_METRICS = ("type_match", "exact_match", "success_rate", "goal_progress")


def read_lmms_eval(path: Path, source: Source) -> Iterator[Prediction]:
    """The answers of an lmms-eval samples log.

    A sample is found by the episode and step that its row or its metrics name, else by `doc_id`,
    the row's number in the data.

    Raises:
        PredictionError: a line cannot be read, or names no step of the data.
    """
    steps = _Steps(source)
    try:
        file = path.open("rb")
    except OSError as error:
        raise PredictionError(
            f"the file cannot be opened ({error.strerror})", where=str(path), expected="a log"
        ) from None
    with file:
        for number, line in enumerate(file, 1):
            if line.strip():
                where = f"{path}:{number}"
                sample = _object(line, where)
                sample_id = steps.find(sample, where)
                if sample_id is not None:
                    yield _prediction(sample_id, _answer(sample, where))


READERS: Mapping[str, Callable[[Path, Source], Iterator[Prediction]]] = {
    "lmms-eval": read_lmms_eval
}
"""Harnesses whose logs can be scored, for `--from`."""


def read_log(harness: str, path: Path, source: Source) -> Iterator[Prediction]:
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
    except ValueError as error:
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


class _Steps:
    """Finds a step by what a log says of it."""

    def __init__(self, source: Source) -> None:
        self.row_ids = source.row_ids
        self.targets = {s.sample_id: s.source.get("result_action_type") for s in source.steps}
        self.by_name: dict[tuple[str, str, int], str] = {}
        self.by_episode: dict[tuple[str, int], set[str]] = {}
        for step in source.steps:
            place = (step.episode_id, step.step_index)
            self.by_episode.setdefault(place, set()).add(step.sample_id)
            for name in (step.tags.get("app"), step.source.get("subset")):
                if name:
                    self.by_name[str(name).casefold(), *place] = step.sample_id

    def find(self, sample: Mapping[str, Any], where: str) -> str | None:
        """The step's id; None for a row that the loader skipped, with a finding."""
        names = [sample.get("doc"), *(sample.get(metric) for metric in _METRICS)]
        number = sample.get("doc_id")
        named = next((n for n in names if isinstance(n, dict) and "episode_id" in n), None)
        found = None
        if named is not None:  # what names a step wins: a row's number may be another dataset's
            found = self._named(named)
            what = f"episode {named['episode_id']!r}, step {_step_number(named)!r}"
        else:
            what = f"doc_id {number!r}"
            if type(number) is int and 0 <= number < len(self.row_ids):
                return self.row_ids[number]
        if found is not None:
            self._check_target(found, names, where)
            return found
        raise PredictionError(
            f"the sample ({what}) is no step of the data",
            where=where,
            expected=f"doc, or metrics with episode_id and step_id, or doc_id below "
            f"{len(self.row_ids)}",
            remedy="score against the data that the log was made on",
        )

    def _check_target(self, sample_id: str, names: Sequence[Any], where: str) -> None:
        """Refuse a log with another target than the data's: it was made on other annotations."""
        target = self.targets[sample_id]
        for name in names:
            for key in ("result_action_type", "gt_action_type"):
                if isinstance(name, dict) and key in name and name[key] != target:
                    raise PredictionError(
                        f"{key} of {sample_id} is {name[key]!r}, the data's is {target!r}",
                        where=where,
                        expected="a log that was made on this data",
                        remedy="score against the data that the log was made on",
                    )

    def _named(self, name: Mapping[str, Any]) -> str | None:
        step = _step_number(name)
        if step is None:
            return None
        place = (str(name["episode_id"]), step)
        for app in (name.get("app"), name.get("subset")):
            found = self.by_name.get((str(app).casefold(), *place))
            if found:
                return found
        candidates = self.by_episode.get(place, set())
        return next(iter(candidates)) if len(candidates) == 1 else None


def _prediction(sample_id: str, answer: str) -> Prediction:
    if answer.startswith(_FAILED):
        return Prediction(sample_id=sample_id, output="", delivery="api_error", error=answer)
    return Prediction(sample_id=sample_id, output=answer)


def _step_number(name: Mapping[str, Any]) -> int | None:
    value = name.get("step_index") if name.get("step_index") is not None else name.get("step_id")
    if isinstance(value, float) and value.is_integer():
        return int(value)  # Arrow makes floats of an int column with a gap
    return value if type(value) is int else None


def _answer(sample: Mapping[str, Any], where: str) -> str:
    value = sample.get("filtered_resps", sample.get("resps"))
    while isinstance(value, list) and value:
        value = value[0]
    if value is None or value == []:
        return ""
    if isinstance(value, str):
        return value
    raise PredictionError(
        f"the answer is a {type(value).__name__}",
        where=where,
        expected="filtered_resps or resps with a text",
    )
