"""Answers that need no look at a step, and which steps each of them gets right."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnidata.types import Profile, Step, Task

CEILING = "oracle"
"""The baseline that looks at the target; its texts are what a right answer looks like."""

TRIED = 100
CHOICES = 16
Floats = npt.NDArray[np.float64]
Answer = Callable[[Step], str]


@dataclass(frozen=True, slots=True)
class Blind:
    """A rule that answers without looking.

    Attributes:
        name: "baseline NAME", or "always TEXT".
        answer: the text for a step.
        hits: float64 (N,), the profile's first value on each step; NaN = not judged.
    """

    name: str
    answer: Answer
    hits: Floats


def baselines(task: Task, profile: Profile, steps: Sequence[Step]) -> list[Blind]:
    """Every baseline of the task but the one that knows the target."""
    found = []
    for name in task.baselines:
        if name != CEILING:
            answer = task.baseline(name, steps, {})
            found.append(Blind(f"baseline {name}", answer, _hits(profile, steps, answer)))
    return found


def constants(task: Task, profile: Profile, steps: Sequence[Step], *, seed: int) -> list[Blind]:
    """Right answers of single steps, given to all steps; the best first.

    Args:
        task: the benchmark.
        profile: who judges.
        steps: the steps.
        seed: of the choice where more than `TRIED` different answers are right somewhere: the most
            frequent ones are tried, and of those that are right once a random sample.
    """
    counts = Counter(map(task.baseline(CEILING, steps, {}), steps))
    texts = list(counts)
    random.Random(seed).shuffle(texts)
    texts.sort(key=counts.__getitem__, reverse=True)
    found = []
    for text in texts[:TRIED]:
        answer = _always(text)
        found.append(Blind(f"always {text}", answer, _hits(profile, steps, answer)))
    return sorted(found, key=lambda rule: -float(np.nansum(rule.hits)))


def choices(rules: Sequence[Blind]) -> list[Blind]:
    """The few rules between which a learner chooses, so that as many steps as possible have one.

    The best rule is the first; each further one is right on the most steps on which none before it
    is, at least 5 and 1 % of the steps. Rules that are no constants, with a different answer for
    nearly every step, are the caller's to leave out.
    """
    if not rules:
        return []
    hits = np.nan_to_num(np.array([rule.hits for rule in rules])) > 0
    least = max(5, hits.shape[1] // 100)
    open_steps = np.ones(hits.shape[1], dtype=np.bool_)
    chosen: list[int] = []
    while len(chosen) < CHOICES:
        gains = (hits & open_steps).sum(axis=1)
        best = int(gains.argmax())
        if gains[best] < (least if chosen else 1):
            break
        chosen.append(best)
        open_steps &= ~hits[best]
    return [rules[number] for number in chosen]


def is_constant(rule: Blind, steps: Sequence[Step]) -> bool:
    """Whether the rule has few answers: one, or one for each kind of step."""
    return len(set(map(rule.answer, steps))) <= max(CHOICES, len(steps) // 10)


def _always(text: str) -> Answer:
    return lambda step: text


def _hits(profile: Profile, steps: Sequence[Step], answer: Answer) -> Floats:
    values = [profile.judge(step, answer(step)).values[0] for step in steps]
    return np.array(values, dtype=np.float64)
