"""Keep the episodes that a critic accepts, and measure the critic's precision.

The questions are those of a task whose answers say whether an episode succeeded (`Annotation.of`);
see `docs/label.md`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from omnidata.errors import DataError
from omnidata.loaders.episode_tree import TreeEpisode
from omnidata.metrics.classification import Confusion
from omnidata.metrics.intervals import share
from omnidata.predictions import Prediction
from omnidata.synth.annotate import (
    Answered,
    Asked,
    Change,
    Done,
    Episode,
    ModelSettings,
    Note,
    Result,
    about,
    annotate,
    check_column,
    is_others,
    read_episodes,
    retold,
    run_folder,
    with_others,
)
from omnidata.tasks.asking import Asking
from omnidata.tasks.profile import Profile
from omnidata.types import LoadedDataset, Outcome, Step, Verdict

__all__ = [
    "COLUMN",
    "REPORT",
    "Asked",
    "Done",
    "ModelSettings",
    "choose",
    "questions",
    "run_folder",
]


# What a critic's answers say of episodes, and how often they are right.


@dataclass(frozen=True, slots=True)
class Judgement:
    """A critic's answer about an episode.

    Attributes:
        success: whether it succeeded; None if the answer cannot be read.
        outcome: "ok", or why there is no judgement.
        answer: the model's text, unchanged.
        why: the reason if there is no judgement.
    """

    success: bool | None
    outcome: Outcome
    answer: str
    why: str = ""

    @property
    def fate(self) -> Literal["accepted", "rejected", "undecided"]:
        """The outcome for the episode."""
        if self.success is None:
            return "undecided"
        return "accepted" if self.success else "rejected"


def _judgements(
    task: Asking, steps: Sequence[Step], lines: Mapping[str, Prediction]
) -> dict[str, Judgement]:
    """Incomplete answers give no judgement."""
    profile = task.profiles[task.default_profile]
    said = {}
    for step in steps:
        line = lines.get(step.sample_id)
        if line is None:
            continue
        text = line.output or ""
        if line.delivery != "ok":
            said[step.sample_id] = Judgement(None, line.delivery, text, line.error)
            continue
        verdict = profile.judge(step, text, line.receipt)
        success = _claim(profile, verdict)
        said[step.sample_id] = Judgement(success, verdict.outcome, text, verdict.reason)
    return said


def _claim(profile: Profile, verdict: Verdict) -> bool | None:
    value = dict(zip(profile.values, verdict.values, strict=True))["said"]
    return None if value is None else bool(value)


def _true_outcome(task: Asking, step: Step) -> bool | None:
    profile = task.profiles[task.default_profile]
    target = task.target(step)
    return None if target is None else _claim(profile, profile.judge(step, target.text))


def precision(
    task: Asking, steps: Sequence[Step], said: Mapping[str, Judgement]
) -> dict[str, Any] | None:
    """Return the table of the episodes with a known outcome.

    Args:
        task: has the right answers.
        steps: of the questions.
        said: the judgements, by sample id.

    Returns:
        `known`, `unanswered` (of them: no full answer came, and they count for nothing below),
        `confusion`, `precision` (of the accepted, those that succeeded), `recall` (of those that
        succeeded, the accepted; an answer that cannot be read accepts nothing), each as
        `metrics.intervals.share`, and `accept_all`, the precision of accepting everything. None if
        nothing is known.
    """
    asked = [step for step in steps if step.sample_id in said]
    known_ones = [
        (success, said[step.sample_id])
        for step in asked
        if (success := _true_outcome(task, step)) is not None
    ]
    if not known_ones:
        return None
    judged = [(truth, j.success) for truth, j in known_ones if j.outcome in ("ok", "unparsed")]
    cells = Confusion.of([truth for truth, _ in judged], [answer for _, answer in judged])
    positive = cells.tp + cells.fn + cells.unread_positive
    return {
        "known": len(known_ones),
        "unanswered": len(known_ones) - len(judged),
        "confusion": cells._asdict(),
        "precision": share(cells.tp, cells.tp + cells.fp),
        "recall": share(cells.tp, positive),
        "accept_all": share(positive, len(judged)),
    }


# Which episodes a critic is asked about, and where it is known whether they succeeded.

COLUMN = "critics"
"""The column of an episode, and of its steps, with the critics that accepted it and their words."""


def questions(task: Asking, source: LoadedDataset, bench: LoadedDataset | None = None) -> Asked:
    """Select the episodes to ask about.

    Args:
        task: asks whether an episode succeeded.
        source: of the task that it asks about.
        bench: of the task whose truth is known; its rows are asked about to measure the model.

    Returns:
        The questions; `known` counts those of the "data", and the rows of the other task.

    Raises:
        DataError: nothing can be asked about, or the data use our column for something else.
    """
    asks = about(task)
    wanted = asks.annotation
    check_column(source, COLUMN, lambda value: isinstance(value, list), "filter")
    episodes, findings = read_episodes(source)
    found = asks.questions(replace(source, steps=[s for e in episodes for s in e.steps]))
    asked = found.source
    if not asked.steps:
        reasons = [*found.unasked.values(), *(finding.what for finding in findings)]
        raise DataError(
            f"no episode can be judged: {reasons[0]}",
            where=str(source.root),
            expected=wanted.expected,
            remedy=wanted.remedy,
        )
    counts = {"data": sum(_true_outcome(task, step) is not None for step in asked.steps)}
    if bench is not None:
        asked = with_others(asked, bench.steps, bench.fingerprint)
        counts[bench.task] = len(bench.steps)
    caveat = wanted.caveat if bench is not None else ""
    return Asked(asked, episodes, found.unasked, counts, findings, caveat=caveat)


REPORT = "filter.json"
_UNMEASURED = "of no episode that was judged is it known whether it succeeded"


def choose(task: Asking, asked: Asked, out: Path, asking: ModelSettings) -> Done:
    """Ask a critic about every episode, and write a tree of those that it accepts.

    Arguments and errors are those of `omnidata.synth.annotate.annotate`.
    """

    def read(answered: Answered) -> Result:
        said = _judgements(task, asked.source.steps, answered.lines)
        judged = {name: each for name, each in said.items() if not is_others(name)}
        by_name = {episode.steps[0].episode: episode for episode in asked.episodes}
        accepted = [
            (by_name[step.episode], judged[step.sample_id])
            for step in asked.source.steps
            if step.sample_id in judged and judged[step.sample_id].success
        ]
        return Result(
            _fates(asked, judged),
            precision(task, asked.source.steps, said),
            _UNMEASURED,
            (lambda note: _retold(accepted, answered.model, note)) if accepted else None,
        )

    return annotate(task, asked, out, asking, report=REPORT, read=read)


def _retold(
    accepted: Sequence[tuple[Episode, Judgement]], model: str, note: Note
) -> Iterator[TreeEpisode]:
    for episode, judgement in accepted:
        before = episode.steps[0].source.get(COLUMN) or []
        columns = {COLUMN: [*before, {"model": model, "answer": judgement.answer}]}
        yield retold(episode, _with(columns), note, columns=columns)


def _with(columns: Mapping[str, Any]) -> Callable[[Step], Change]:
    return lambda step: Change(columns=columns)


def _fates(asked: Asked, judged: Mapping[str, Judgement]) -> dict[str, Any]:
    counts = Counter(judgement.fate for judgement in judged.values())
    return {
        "episodes": {
            "all": len(asked.episodes),
            "asked": len(judged),
            "accepted": counts["accepted"],
            "rejected": counts["rejected"],
            "undecided": counts["undecided"] + len(asked.unasked),
        },
        "rejected": [
            {"episode": name, "answer": judgement.answer}
            for name, judgement in judged.items()
            if judgement.fate == "rejected"
        ],
        "undecided": [
            {"episode": name, "outcome": j.outcome, "why": j.why, "answer": j.answer}
            for name, j in judged.items()
            if j.fate == "undecided"
        ]
        + [
            {"episode": name, "outcome": "unasked", "why": why, "answer": ""}
            for name, why in asked.unasked.items()
        ],
    }
