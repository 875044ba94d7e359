"""Episodes that a critic accepts; and how often it is right.

The question is CriticBench's (`omnigui-critic`), asked by `evaluate` into a run folder beside the
tree. `docs/label.md` has the rules.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from omnidata.errors import DataError, Finding
from omnidata.loaders.episode_tree import TreeEpisode
from omnidata.metrics.classification import Confusion
from omnidata.metrics.intervals import share
from omnidata.predictions import Prediction
from omnidata.synth.asking import Answered, Asking, Done, ask, run_folder, write
from omnidata.synth.folder import TreeStaging
from omnidata.synth.rewrite import Change, Episode, read_episodes, retold
from omnidata.tasks.omnigui.critic import OmniGuiCritic, agreed, known
from omnidata.types import Outcome, Source, Step

__all__ = ["COLUMN", "REPORT", "Asking", "Done", "Questions", "choose", "questions", "run_folder"]


# What a critic's answers say of episodes, and how often they are right.


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a critic said of an episode.

    Attributes:
        success: that it succeeded or failed; None = nothing that could be read.
        outcome: "ok", or why there is no judgement.
        answer: the model's text, untouched.
        why: the reason, where there is no judgement.
    """

    success: bool | None
    outcome: Outcome
    answer: str
    why: str = ""

    @property
    def fate(self) -> Literal["accepted", "rejected", "undecided"]:
        """What becomes of the episode."""
        if self.success is None:
            return "undecided"
        return "accepted" if self.success else "rejected"


def judgements(
    task: OmniGuiCritic, steps: Sequence[Step], lines: Mapping[str, Prediction]
) -> dict[str, Judgement]:
    """Read the answers; one that did not come whole is no judgement.

    Args:
        task: its profile reads texts.
        steps: that were asked about.
        lines: what came back, by sample id.

    Returns:
        By sample id; steps without a line are left out.
    """
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
        success = verdict.parsed["success"] if verdict.parsed else None
        said[step.sample_id] = Judgement(success, verdict.outcome, text, verdict.reason)
    return said


def precision(steps: Sequence[Step], said: Mapping[str, Judgement]) -> dict[str, Any] | None:
    """The table of the episodes of which it is known whether they succeeded.

    Args:
        steps: that were asked about.
        said: what came of it, by sample id.

    Returns:
        `known`, `unanswered` (of them: no full answer came, and they count for nothing below),
        `confusion`, `precision` (of the accepted, those that succeeded), `recall` (of those that
        succeeded, the accepted; an answer that cannot be read accepts nothing), each as
        `metrics.proportion.share`, and `accept_all`, the precision of accepting everything. None if
        nothing is known.
    """
    asked = [step for step in steps if step.sample_id in said]
    known_ones = [
        (success, said[step.sample_id]) for step in asked if (success := known(step)) is not None
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

_PREFIX = "known:"


@dataclass(frozen=True, slots=True)
class Questions:
    """Episodes to ask about.

    Attributes:
        source: a step for each, as `OmniGuiCritic` has them; then rows of CriticBench, which are
            asked about to measure the model.
        episodes: of the data, those that can be written.
        unasked: keys of episodes that nobody is asked about, and why.
        known: of how many it is known whether they succeeded: episodes of the "data", and rows of
            "criticbench".
        findings: episodes that are left out, and doubts.
    """

    source: Source
    episodes: Sequence[Episode]
    unasked: Mapping[str, str]
    known: Mapping[str, int]
    findings: Sequence[Finding]


def questions(task: OmniGuiCritic, source: Source, bench: Source | None = None) -> Questions:
    """Choose what to ask about.

    Args:
        task: makes rows of CriticBench from episodes.
        source: of OmniGUI.
        bench: of CriticBench.

    Raises:
        DataError: nothing can be asked about, or the data use our column for something else.
    """
    _check_column(source)
    episodes, findings = read_episodes(source)
    unasked = {e.key: reason for e in episodes if (reason := task.unaskable(e.steps))}
    asked = task.ask_about(replace(source, steps=[s for e in episodes for s in e.steps]))
    by_key = {episode.key: episode for episode in episodes}
    asked = replace(asked, steps=[_informed(s, by_key[s.sample_id]) for s in asked.steps])
    if not asked.steps:
        reasons = [*unasked.values(), *(finding.what for finding in findings)]
        raise DataError(
            f"no episode can be judged: {reasons[0]}",
            where=str(source.root),
            expected="episodes with screenshots and actions",
            remedy="label the steps first (`omnidata synth label`), or judge without the actions: "
            "-T observations_only=true",
        )
    counts = {"data": sum(known(step) is not None for step in asked.steps)}
    if bench is not None:
        rows = [replace(step, sample_id=_PREFIX + step.sample_id) for step in bench.steps]
        both = f"{source.fingerprint} {bench.fingerprint}"
        asked = replace(
            asked,
            steps=[*asked.steps, *rows],
            fingerprint=hashlib.sha256(both.encode()).hexdigest(),
        )
        counts["criticbench"] = len(rows)
    return Questions(asked, episodes, unasked, counts, findings)


def _informed(question: Step, episode: Episode) -> Step:
    """The question, which knows what the episode's own row says of its success as well."""
    success = agreed((episode.row, *(step.source for step in episode.steps)))
    return replace(question, source={**question.source, "is_success": success})


def _check_column(source: Source) -> None:
    for step in source.steps:
        value = step.source.get(COLUMN)
        if value is not None and not isinstance(value, list):
            raise DataError(
                f'the rows have a column "{COLUMN}" that is not ours',
                where=step.sample_id,
                expected="no such column, or what `omnidata synth filter` writes",
                remedy="rename the column",
            )


REPORT = "filter.json"
_NOT_MEASURED = (
    "precision not measured: of no episode that was judged is it known whether it succeeded; add a "
    'column "is_success" where you know, or name a file of CriticBench with --known'
)
_LEAK = (
    "CriticBench gives itself away: of two of its sources every failure ends with an observation "
    "and no success does, which a critic can learn; -T symmetric=true leaves that observation out"
)


def choose(task: OmniGuiCritic, asked: Questions, out: Path, asking: Asking) -> Done:
    """Ask a critic about every episode, and write a tree of those that it accepts.

    The same call goes on after an interruption, and asks again about episodes without an answer.

    Args:
        task: that made the questions.
        asked: the questions.
        out: a new or empty folder, or what the same call has written; until all is whole the tree
            lies beside it. The answers lie in `run_folder(out)`.
        asking: the model, and what it may use.

    Raises:
        UsageError: `out` holds something else, or the model cannot be asked.
        DataError: another process is writing to the same place, or it cannot be written.
        RunError, PredictionError: the run folder cannot be used (see `evaluate`).
    """
    run = run_folder(out)
    inputs = {
        asked.source.root,
        *(r.root for s in asked.source.steps for r in s.media.values() if r),
    }
    with TreeStaging(out, inputs=inputs, report=REPORT, made_by=run) as staging:
        answered = ask(task, asked.source, run, asking)
        said = judgements(task, asked.source.steps, answered.lines)
        accepted = [e for e in asked.episodes if e.key in said and said[e.key].success]
        report: Mapping[str, Any] = _report(task, asked, said, answered)
        whole = bool(accepted) and "stopped" not in answered.results
        if whole:
            model = answered.model
            report = write(staging, report, lambda note: _retold(accepted, said, model, note))
    return Done(report, answered.results, written=whole)


def _retold(
    accepted: Sequence[Episode],
    said: Mapping[str, Judgement],
    model: str,
    note: Callable[[Finding], None],
) -> Iterator[TreeEpisode]:
    for episode in accepted:
        own = {"model": model, "answer": said[episode.key].answer}
        before = episode.steps[0].source.get(COLUMN) or []
        columns = {COLUMN: [*before, own]}
        yield retold(episode, _with(columns), note, columns=columns)


def _with(columns: Mapping[str, Any]) -> Callable[[Step], Change]:
    return lambda step: Change(columns=columns)


def _report(
    task: OmniGuiCritic, asked: Questions, said: Mapping[str, Judgement], answered: Answered
) -> dict[str, Any]:
    """What was done, as JSON values."""
    judged = {e.key: said[e.key] for e in asked.episodes if e.key in said}
    measured = precision(asked.source.steps, said)
    leaks = "criticbench" in asked.known and task.options["symmetric"] == "false"
    warnings = ([] if measured else [_NOT_MEASURED]) + ([_LEAK] if leaks else [])
    counts = Counter(judgement.fate for judgement in judged.values())
    return {
        "data": str(asked.source.root),
        "fingerprint": asked.source.fingerprint,
        "model": answered.model,
        "task": task.name,
        "task_options": dict(task.options),
        "prompt_hash": task.prompt_hash,
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
        "known": dict(asked.known),
        "precision": measured,
        "answers": answered.digest,
        "warnings": warnings,
        "findings": [dict(finding.as_dict()) for finding in asked.findings],
    }
