"""Actions for recordings without any, by an inverse-dynamics model; and how often it is right.

loader -> step -> messages -> adapter -> text -> action -> verdict: the questions are a task like
any other (`omnigui-idm`), asked by `evaluate` into a run folder beside the tree. `docs/label.md`
has the rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from omnidata.errors import Finding
from omnidata.loaders.omnigui_tree import TreeEpisode
from omnidata.synth.asking import Answered, Asking, Done, ask, run_folder, write
from omnidata.synth.label.labels import Label, read_label
from omnidata.synth.label.precision import precision
from omnidata.synth.label.questions import COLUMN, Questions, by_model, is_others, questions
from omnidata.synth.retelling import Change, retold
from omnidata.synth.tree_staging import TreeStaging
from omnidata.tasks.omnigui_idm import OmniGuiIdm
from omnidata.types import Step

__all__ = ["COLUMN", "REPORT", "Asking", "Done", "Questions", "label", "questions", "run_folder"]

REPORT = "label.json"
_NOT_MEASURED = (
    "precision not measured: no step that the model was asked about has a known action; label some "
    "by hand, or name data with targets with --known"
)


def label(task: OmniGuiIdm, asked: Questions, out: Path, asking: Asking) -> Done:
    """Ask a model for the action of every step, and write the tree with its answers as targets.

    The same call goes on after an interruption, and asks again about steps that got no answer.

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
        profile = task.profiles[task.default_profile]
        labels = {
            step.sample_id: read_label(task, profile, step, answered.lines[step.sample_id])
            for step in asked.source.steps
            if step.sample_id in answered.lines
        }
        report: Mapping[str, Any] = _report(task, asked, labels, answered)
        whole = "stopped" not in answered.results
        if whole:
            model = answered.model
            report = write(staging, report, lambda note: _retold(asked, labels, model, note))
    return Done(report, answered.results, written=whole)


def _retold(
    asked: Questions, labels: Mapping[str, Label], model: str, note: Callable[[Finding], None]
) -> Iterator[TreeEpisode]:
    def change(step: Step) -> Change:
        found = labels.get(step.sample_id)
        if found is None:
            columns = {COLUMN: None} if COLUMN in step.source else {}
            return Change(keep=not by_model(step), columns=columns)
        used = found.action is not None and step.sample_id not in asked.own
        return Change(
            found.action if used else None,
            keep=not used and not by_model(step),
            columns={COLUMN: found.column(model, used=used)},
        )

    return (retold(episode, change, note) for episode in asked.episodes)


def _report(
    task: OmniGuiIdm, asked: Questions, labels: Mapping[str, Label], answered: Answered
) -> dict[str, Any]:
    """What was done, as JSON values."""
    steps = [step for episode in asked.episodes for step in episode.steps]
    wanted = [step.sample_id for step in steps if step.sample_id not in asked.own]
    found = {name: labels[name] for name in wanted if name in labels}
    made = [label.action for label in found.values() if label.action]
    unlabelled = Counter(label.outcome for label in found.values() if not label.action)
    unlabelled.update(asked.unasked[name] for name in wanted if name in asked.unasked)
    measured = precision(
        (step, labels[step.sample_id]) for step in asked.source.steps if step.sample_id in labels
    )
    return {
        "data": str(asked.source.root),
        "fingerprint": asked.source.fingerprint,
        "model": answered.model,
        "task": task.name,
        "task_options": dict(task.options),
        "prompt_hash": task.prompt_hash,
        "episodes": len(asked.episodes),
        "steps": {
            "all": len(steps),
            "with_target": len(asked.own),
            "asked": sum(not is_others(name) for name in labels),
            "labelled": len(made),
            "unlabelled": dict(sorted(unlabelled.items())),
        },
        "primitives": dict(Counter(action.kind.name for action in made).most_common()),
        "known": dict(asked.known),
        "precision": measured,
        "answers": answered.digest,
        "warnings": [] if measured else [_NOT_MEASURED],
        "findings": [dict(finding.as_dict()) for finding in asked.findings],
    }
