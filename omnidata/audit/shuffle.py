"""Whether a score could be luck: rows that belong together, and features dealt out at random."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from omnidata.audit.learn import FOLDS, LEARNERS, Exam, cross_validated, marks
from omnidata.types import Conversation, Step

SHUFFLES = 199
ALPHA = 0.005
Ints = npt.NDArray[np.int64]


def groups(steps: Sequence[Step], prompts: Sequence[Conversation]) -> Ints:
    """A number per group of near-duplicates, (N,): of one group, instruction or prompt.

    Instructions are compared without case and space. One that a fifth of the steps or more have
    is a template, which joins nothing. Prompts are compared in all their parts; media by their
    hash where the data has it, else by place and name.

    Args:
        steps: N of them.
        prompts: of the steps.

    Examples:
        >>> groups([], [])
        array([], dtype=int64)
    """
    said = ["".join(step.instruction.casefold().split()) for step in steps]
    counts = Counter(said)
    head: dict[str, str] = {}

    def find(key: str) -> str:
        while head.setdefault(key, key) != key:
            head[key] = head[head[key]]
            key = head[key]
        return key

    seen: dict[Hashable, int] = {}
    for step, text, prompt in zip(steps, said, prompts, strict=True):
        shown = seen.setdefault(_content(prompt), len(seen))
        head[find(f"shown {shown}")] = find(f"group {step.group}")
        if text and counts[text] * FOLDS < len(steps):
            head[find(f"said {text}")] = find(f"group {step.group}")
    numbers: dict[str, int] = {}
    found = [find(f"group {step.group}") for step in steps]
    return np.array([numbers.setdefault(key, len(numbers)) for key in found], dtype=np.int64)


def _content(prompt: Conversation) -> Hashable:
    """What is the same for two prompts that show the same."""
    return tuple(
        (message.role, part.kind, part.text, part.media and (part.media.sha256 or part.media))
        for message in prompt
        for part in message.parts
    )


def shuffled(group: Ints, rng: np.random.Generator) -> Ints:
    """Whose features each row gets, (N,): every group gets those of one group.

    Members come in random order; of a larger group some are left out, those of a smaller one are
    dealt out in turn. What the members of a group have in common stays together, so that chance is
    not taken to be smaller than it is; nothing else is left of what the features knew.
    """
    members = np.lexsort((rng.random(len(group)), group))
    sizes = np.bincount(group)
    starts = np.cumsum(sizes) - sizes
    place = np.empty(len(group), dtype=np.int64)
    place[members] = np.arange(len(group)) - starts[group[members]]
    giver = rng.permutation(len(sizes))[group]
    rows: Ints = members[starts[giver] + place % sizes[giver]]
    return rows


@dataclass(frozen=True, slots=True)
class Chance:
    """How often shuffled features do as well.

    Attributes:
        p: the share of shuffles with a score as high, the data itself counted as one; after an
            early stop the estimate of Besag and Clifford.
        shuffles: how many were drawn.
        highest: the best score among them.
    """

    p: float
    shuffles: int
    highest: float


def chance(
    exam: Exam,
    group: Ints,
    observed: float,
    *,
    seed: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Chance:
    """The test of the best score: every learner and feature runs on every shuffle, the best counts.

    Trying many of them therefore costs nothing in error. The draw ends as soon as the level
    `ALPHA` is out of reach, which is with the first shuffle that does as well (Besag and Clifford,
    Sequential Monte Carlo p-values, 1991).

    Args:
        exam: what was learned.
        group: int64 (N,), near-duplicates.
        observed: the highest cross-validated score, of a learner or of a feature alone.
        seed: of the shuffles.
        progress: called with shuffles done and in all.
    """
    from sklearn import config_context

    rng = np.random.default_rng(seed)
    most = int(ALPHA * (SHUFFLES + 1)) - 1
    as_high, highest = 0, 0.0
    # Many small matrices: threads would only wait for each other, and checks cost more than fits.
    with threadpool_limits(1), config_context(assume_finite=True, skip_parameter_validation=True):
        for done in range(1, SHUFFLES + 1):
            found = _best(exam, shuffled(group, rng))
            highest = max(highest, found)
            as_high += found >= observed
            progress(done, SHUFFLES)
            if as_high > most:
                return Chance(as_high / done, done, highest)
    return Chance((1 + as_high) / (SHUFFLES + 1), SHUFFLES, highest)


def _best(exam: Exam, rows: Ints) -> float:
    learned = [exam.score(cross_validated(exam, learn, rows)) for learn in LEARNERS.values()]
    return max(float(marks(exam, rows).max()), *learned)
