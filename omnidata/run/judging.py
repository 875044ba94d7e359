"""Judging: a verdict and a line of scores for each answer, in this process or in others.

Other processes, here or on a cluster, are sent chunks of answers, each with its steps: as bytes, or
as the file of the cache that holds them. What comes back is joined in order, and is what one
process would have made.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

import numpy as np
import numpy.typing as npt

from omnidata.errors import OmnidataError
from omnidata.jsontext import encode
from omnidata.loaders.steps import Steps, steps_to_send
from omnidata.plugins import blaming
from omnidata.predictions import Prediction, missing_media
from omnidata.registry import plugin_origin
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.tasks.marks import mark_of
from omnidata.tasks.profile import Profile
from omnidata.types import CAUSES, OUTCOMES, Cause, Diagnosis, Outcome, Step

Values = tuple[float | bool | None, ...]
Kind = tuple[Outcome, Values]
"""A verdict without the answer that was read."""
Mistake = tuple[Cause, str, str]
"""The cause, the reading in which the place is right or an empty text, and the target's label."""
Numbers = npt.NDArray[np.intc]
CHUNK = 1000
"""Answers that are judged together: a tenth of a second, and a megabyte with receipts."""
_SLACK = 1e-9  # the mean of shares may exceed 1 by this
_LARGEST = sys.float_info.max


class Judge:
    """Judges answers, and encodes their lines of `scores.jsonl`.

    A dataset knows few different verdicts, so each has a number, and what every line with that
    verdict has in common is encoded once.

    Args:
        task: explains why answers are wrong; None for verdicts without causes.
        profile: parser and rules.

    Attributes:
        kinds: the different verdicts, in the order in which they first came, each with its number,
            its part of a line, and whether it is wrong.
        mistakes: the different mistakes, each with its number and its part of a line.
        degraded: answers for which the model did not get all media.
    """

    def __init__(self, task: Asking | None, profile: Profile) -> None:
        self.task, self.profile = task, profile
        self.kinds: dict[Kind, tuple[int, bytes, bool]] = {}
        self.mistakes: dict[Mistake, tuple[int, bytes]] = {}
        self.degraded = 0

    def judge(self, answers: Iterable[tuple[Step, Prediction | None]]) -> tuple[Numbers, bytes]:
        """Judge answers, each with its step; a step without one is `missing`.

        Returns:
            C's int (N, 2), the number of each verdict, and of its mistake or -1; and the lines.
        """
        profile, numbers, line = self.profile, array("i"), list[bytes]()
        for step, answer in answers:
            if answer is None:
                verdict = profile.without_answer(step, "missing")
            else:
                verdict = profile.judge(step, answer.output or "", answer.receipt, answer.delivery)
                if answer.receipt and missing_media(answer.receipt):
                    self.degraded += 1
            kind = verdict.outcome, verdict.values
            number, common, is_wrong = self.kinds.get(kind) or self._add(kind)
            name = encode(answer.sample_id if answer else step.sample_id)
            parsed = b"null" if verdict.parsed is None else encode(verdict.parsed)
            line += b'{"sample_id":', name, common, parsed
            if verdict.reason != "":
                if not isinstance(verdict.reason, str):
                    raise TypeError(f"the verdict has {verdict.reason!r:.40} as reason")
                line += b',"reason":', encode(verdict.reason)
            mistake = -1
            if is_wrong and self.task:
                text, receipt = (answer.output or "", answer.receipt) if answer else ("", None)
                explanation = self.task.explanation(
                    step, verdict, text, profile=profile.name, receipt=receipt
                )
                found = explanation.diagnosis or Diagnosis("rule")
                why = found.cause, found.reading, explanation.target_label
                mistake, cause = self.mistakes.get(why) or self._add_mistake(why)
                line.append(cause)
                if found.distance is not None:
                    line += b',"cause_distance":', encode(found.distance)
            line.append(b"}\n")
            numbers.append(number)
            numbers.append(mistake)
        return np.array(numbers, np.intc).reshape(-1, 2), b"".join(line)

    def _add_mistake(self, mistake: Mistake) -> tuple[int, bytes]:
        cause, reading, _ = mistake
        if cause not in CAUSES or not isinstance(reading, str):
            raise ValueError(f"the explanation has {mistake!r:.120}")
        part = {"cause": cause, **({"cause_reading": reading} if reading else {})}
        known = self.mistakes[mistake] = len(self.mistakes), b",%b" % encode(part)[1:-1]
        return known

    def _add(self, kind: Kind) -> tuple[int, bytes, bool]:
        outcome, values = kind
        if outcome not in OUTCOMES:
            raise ValueError(f"the verdict has {outcome!r:.40} as outcome")
        if len(values) != len(self.profile.values):
            raise ValueError(
                f"the rule {self.profile.name} returned {values!r:.80}: expected a value for each "
                f"of {', '.join(self.profile.values)}"
            )
        named = dict(zip(self.profile.values, values, strict=True))
        shares = self.profile.shares
        for name, value in named.items():
            low, high = (-_SLACK, 1 + _SLACK) if name in shares else (-_LARGEST, _LARGEST)
            if value is None:
                continue
            if not isinstance(value, int | float) or not low <= value <= high:  # NaN is nowhere
                raise ValueError(f"the verdict has {value!r:.40} as {name}")
        common = {"outcome": outcome, "profile": self.profile.name, **named}
        wrong = mark_of(outcome, named) not in ("right", "unjudged")
        part = b',%b,"parsed":' % encode(common)[1:-1]
        known = self.kinds[kind] = len(self.kinds), part, wrong
        return known

    def add(self, other: Judged) -> Numbers:
        """Count what another has judged.

        Returns:
            Our numbers of its verdicts and mistakes, C's int (N, 2), in the order of its answers.
        """
        kinds = [(self.kinds.get(kind) or self._add(kind))[0] for kind in other.kinds]
        whys = [(self.mistakes.get(why) or self._add_mistake(why))[0] for why in other.mistakes]
        self.degraded += other.degraded
        verdicts, mistakes = other.numbers.T
        ours = np.array(kinds, np.intc)[verdicts], np.array([*whys, -1], np.intc)[mistakes]
        return np.column_stack(ours)


# In other processes.


@dataclass(frozen=True, slots=True)
class Job:
    """The names that a judge is made from.

    Attributes:
        task: the benchmark.
        options: of the benchmark.
        profile: parser and rules.
        causes: whether to say why answers are wrong.
    """

    task: str
    options: tuple[tuple[str, str], ...]
    profile: str
    causes: bool


@dataclass(frozen=True, slots=True)
class Chunk:
    """Answers, each with its step.

    Attributes:
        steps: those that are answered, in the order of the answers.
        answers: None where a step has none.
    """

    steps: Steps
    answers: Sequence[Prediction | None]


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdicts on a chunk.

    Attributes:
        kinds, mistakes, degraded: as of `Judge`.
        numbers, lines: as `Judge.judge` returns them.
    """

    kinds: Sequence[Kind]
    mistakes: Sequence[Mistake]
    degraded: int
    numbers: Numbers
    lines: bytes


def judge_chunk(job: Job, chunk: Chunk) -> Judged | OmnidataError:
    """Judge a chunk; an error of a plug-in is given back."""
    try:
        with blaming(plugin_origin(job.task)):
            judge = Judge(*_rules(job))
            numbers, lines = judge.judge(zip(chunk.steps, chunk.answers, strict=True))
    except OmnidataError as error:
        return error
    return Judged([*judge.kinds], [*judge.mistakes], judge.degraded, numbers, lines)


@lru_cache(maxsize=4)
def _rules(job: Job) -> tuple[Asking | None, Profile]:
    task = get_task(job.task, dict(job.options))
    return task if job.causes else None, task.profiles[job.profile]


class Chunks(Sequence[Chunk]):
    """The chunks of a run, each made on first access, and kept until it is judged.

    Args:
        steps: those that are judged.
        asked: the number of each step, with its answer; every step once.
        far: whether other machines judge.
    """

    def __init__(
        self, steps: Sequence[Step], asked: Iterator[tuple[int, Prediction | None]], *, far: bool
    ) -> None:
        self._steps, self._asked, self._far = steps, asked, far
        self._made = 0
        self._held: dict[int, tuple[list[int], Chunk]] = {}

    def __len__(self) -> int:
        return -(-len(self._steps) // CHUNK)

    def __getitem__(self, number: int) -> Chunk:  # type: ignore[override]  # no slices
        if not 0 <= number < len(self):
            raise IndexError(number)
        while self._made <= number:
            part = list(islice(self._asked, CHUNK))
            numbers = [each for each, _ in part]
            answers = [answer and _bare(answer) for _, answer in part]
            steps = steps_to_send(self._steps, numbers, far=self._far)
            self._held[self._made] = numbers, Chunk(steps, answers)
            self._made += 1
        return self._held[number][1]

    def pop(self, number: int) -> list[int]:
        """Return the numbers of a chunk's steps, and forget the chunk."""
        return self._held.pop(number)[0]


def _bare(answer: Prediction) -> Prediction:
    """Keep only what is judged of an answer, to send less to other processes."""
    return Prediction(
        sample_id=answer.sample_id,
        output=answer.output,
        delivery=answer.delivery,
        receipt=answer.receipt,
    )
