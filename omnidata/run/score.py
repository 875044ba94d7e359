"""From answers to the table: judge, write a line per step, total."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from omnidata.errors import PredictionError, UsageError
from omnidata.jsontext import encode
from omnidata.predictions import Prediction
from omnidata.run.folder import replacing, write_json
from omnidata.types import OUTCOMES, Profile, Rows, Step, Task, Verdict

_CODE = {name: code for code, name in enumerate(OUTCOMES)}


def get_profile(task: Task, name: str | None) -> Profile:
    """The task's profile of that name, or its default.

    Raises:
        UsageError: the task has no such profile with its options.
    """
    profile = task.profiles.get(name or task.default_profile)
    if profile is None:
        raise UsageError(
            f'{task.name} has no profile "{name}" with these options',
            where=f"--profile {name}",
            expected=f"one of {', '.join(task.profiles)}",
        )
    return profile


def score(
    task: Task,
    profile: Profile,
    steps: Sequence[Step],
    answers: Iterable[Prediction],
    *,
    whole: npt.NDArray[np.bool_],
    out: Path | None = None,
    ignored: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """Judge answers as they come and total them; memory does not grow with their text.

    Args:
        task: the benchmark, for the results' head.
        profile: parser and rules.
        steps: what was asked; those without an answer are `missing`, which is wrong.
        answers: in any order, at most one per step.
        whole: bool (N,), False for steps of episodes that the choice of steps cut into.
        out: folder for `scores.jsonl` and `results.json`; None writes nothing.
        ignored: ids of steps of the data that were not chosen; answers to them are passed over.

    Returns:
        The content of `results.json`.

    Raises:
        PredictionError: an answer to a step that does not exist, or two answers to one.
    """
    judged = _Columns(profile, steps)
    if out is None:
        for _ in judged.lines(answers, ignored):
            pass
    else:
        out.mkdir(parents=True, exist_ok=True)
        with replacing(out / "scores.jsonl") as file:
            file.writelines(line + b"\n" for line in judged.lines(answers, ignored))
    results = {
        "task": task.name,
        "profile": profile.name,
        **profile.total(steps, judged.rows(whole)),
    }
    if out is not None:
        write_json(out / "results.json", results)
    return results


class _Columns:
    """Verdicts as flat columns, filled in the order in which answers come.

    Plain buffers: setting one element of a NumPy array costs several times as much.
    """

    def __init__(self, profile: Profile, steps: Sequence[Step]) -> None:
        self.profile = profile
        self._name, self._names = profile.name, profile.values
        self.steps = steps
        self.index = {step.sample_id: number for number, step in enumerate(steps)}
        self.outcomes = bytearray([_CODE["missing"]]) * len(steps)
        self.values = [array("f", [nan]) * len(steps) for _ in profile.values]

    def lines(self, answers: Iterable[Prediction], ignored: frozenset[str]) -> Iterator[bytes]:
        """Judge every answer, then every step without one; yields the lines of `scores.jsonl`."""
        missing = _CODE["missing"]
        unknown: list[str] = []
        judge, failed = self.profile.judge, self.profile.failed
        for answer in answers:
            number = self.index.get(answer.sample_id)
            if number is None:
                if answer.sample_id not in ignored:
                    unknown.append(answer.sample_id)
                continue
            if self.outcomes[number] != missing:
                raise PredictionError(
                    "the step is answered twice",
                    where=answer.sample_id,
                    expected="at most one prediction per step",
                    remedy="remove one of the two lines",
                )
            step = self.steps[number]
            if answer.delivery == "ok":
                verdict = judge(step, answer.output or "", answer.receipt)
            else:
                verdict = failed(step, answer.delivery)
            yield self._record(number, step, verdict)
        if unknown:
            raise PredictionError(
                f"{len(unknown)} predictions are for steps that the data does not have",
                where=", ".join(unknown[:5]) + (", ..." if len(unknown) > 5 else ""),
                expected=f"ids like {self.steps[0].sample_id}",
                remedy="score against the data that the predictions were made on",
            )
        for number, step in enumerate(self.steps):
            if self.outcomes[number] == missing:
                yield self._record(number, step, failed(step, "missing"))

    def _record(self, number: int, step: Step, verdict: Verdict) -> bytes:
        self.outcomes[number] = _CODE[verdict.outcome]
        for column, value in zip(self.values, verdict.values, strict=True):
            if value is not None:
                column[number] = value
        line: dict[str, Any] = {
            "sample_id": step.sample_id,
            "outcome": verdict.outcome,
            "profile": self._name,
            **dict(zip(self._names, verdict.values, strict=True)),
            "parsed": verdict.parsed,
        }
        if verdict.reason:
            line["reason"] = verdict.reason
        return encode(line)

    def rows(self, whole: npt.NDArray[np.bool_]) -> Rows:
        """The columns for `Profile.total`."""
        return Rows(
            np.frombuffer(self.outcomes, dtype=np.uint8),
            {
                name: np.frombuffer(column, dtype=np.float32)
                for name, column in zip(self.profile.values, self.values, strict=True)
            },
            whole,
        )
