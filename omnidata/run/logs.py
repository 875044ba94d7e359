"""Other harnesses' logs as predictions.

lmms-eval, and the OmniGUI release, which is a fork of it, write one JSON line per sample. Versions
differ in what they keep: the row (`doc`) or only its number (`doc_id`); the metric values, which
for OmniGUI are objects that name the step; the answer in `filtered_resps`, in `resps`, or both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from omnidata.errors import PredictionError, UsageError
from omnidata.predictions import Prediction
from omnidata.types import Source

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
        file = path.open(encoding="utf-8")
    except OSError as error:
        raise PredictionError(
            f"the file cannot be opened ({error.strerror})", where=str(path), expected="a log"
        ) from None
    with file:
        for number, line in enumerate(file, 1):
            if line.strip():
                where = f"{path}:{number}"
                sample = _object(line, where)
                yield Prediction(sample_id=steps.find(sample, where), output=_answer(sample, where))


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


def _object(line: str, where: str) -> dict[str, Any]:
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
        self.by_name: dict[tuple[str, str, int], str] = {}
        self.by_episode: dict[tuple[str, int], set[str]] = {}
        for step in source.steps:
            place = (step.episode_id, step.step_index)
            self.by_episode.setdefault(place, set()).add(step.sample_id)
            for name in (step.tags.get("app"), step.source.get("subset")):
                if name:
                    self.by_name[str(name).casefold(), *place] = step.sample_id

    def find(self, sample: Mapping[str, Any], where: str) -> str:
        names = [sample.get("doc"), *(sample.get(metric) for metric in _METRICS)]
        for name in names:
            if isinstance(name, dict) and "episode_id" in name:
                found = self._named(name)
                if found:
                    return found
        number = sample.get("doc_id")
        if isinstance(number, int) and 0 <= number < len(self.row_ids):
            row_id = self.row_ids[number]
            if row_id is not None:
                return row_id
        raise PredictionError(
            f"the sample (doc_id {number!r}) is no step of the data",
            where=where,
            expected=f"doc, or metrics with episode_id and step_id, or doc_id below "
            f"{len(self.row_ids)}",
            remedy="score against the data that the log was made on",
        )

    def _named(self, name: Mapping[str, Any]) -> str | None:
        step = name.get("step_index") if name.get("step_index") is not None else name.get("step_id")
        if not isinstance(step, int):
            return None
        place = (str(name["episode_id"]), step)
        for app in (name.get("app"), name.get("subset")):
            found = self.by_name.get((str(app).casefold(), *place))
            if found:
                return found
        candidates = self.by_episode.get(place, set())
        return next(iter(candidates)) if len(candidates) == 1 else None


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
