"""Episodes that a critic accepts; and how often it is right.

The question is CriticBench's (`omnigui-critic`), asked by `evaluate` into a run folder beside the
tree. `docs/label.md` has the rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from omnidata.errors import Finding
from omnidata.loaders.omnigui_tree import TreeEpisode
from omnidata.synth.asking import Answered, Asking, Done, ask, run_folder, write
from omnidata.synth.filter.judgements import Judgement, judgements, precision
from omnidata.synth.filter.questions import COLUMN, Questions, questions
from omnidata.synth.retelling import Change, Episode, retold
from omnidata.synth.tree_staging import TreeStaging
from omnidata.tasks.omnigui_critic import OmniGuiCritic
from omnidata.types import Step

__all__ = ["COLUMN", "REPORT", "Asking", "Done", "Questions", "choose", "questions", "run_folder"]

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
