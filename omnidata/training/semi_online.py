"""Training rows whose prompts tell what a model itself did before: semi-online, out of a run.

UI-S1 (Lu et al., 2025) rolls out over recordings with the expert's action in the place of a miss;
`-T history=predicted -T patches=N` is such a rollout in evaluation. Here its prompts are rows, so
that a trainer that knows nothing of episodes learns from the states that the model came to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from omnidata.actions import Action
from omnidata.errors import DataError, UsageError
from omnidata.loaders.steps import ids_of
from omnidata.run.histories import Histories
from omnidata.run.journal import TRANSIENT
from omnidata.run.recorded import recorded_steps
from omnidata.run.run_info import model_name
from omnidata.tasks.asking import Asking
from omnidata.training.preferences import open_runs
from omnidata.types import LoadedDataset

OPTION: Final = "--histories"


@dataclass(frozen=True, slots=True)
class RunHistories:
    """The histories of a run.

    Attributes:
        task: with them.
        past: the actions before each step that the run reached, by sample id.
        report: what `export.json` says of the run.
    """

    task: Asking
    past: Mapping[str, Sequence[Action | None]]
    report: Mapping[str, Any]


def run_histories(
    task: Asking, source: LoadedDataset, run: Path, *, changed_media: bool = False
) -> RunHistories:
    """Return a run's actions before each step that it reached.

    Args:
        task: with the options of the run.
        source: its data.
        run: the folder.
        changed_media: accept media that have changed since the run.

    Raises:
        UsageError: the run is of another task or other data, had other prompts, or the expert's
            actions for its history.
        RunError: the folder is no run, has no answers, or media have changed since.
        DataError: it came to no step.
        PredictionError: its answers cannot be read.
    """
    opened = [*open_runs([run], task, source, OPTION)]
    if not task.needs_predictions:
        raise UsageError(
            "the prompts of the run do not show the model's own answers",
            where=f"{OPTION} {run}",
            expected="a run with -T history=predicted, best with -T patches=N",
            remedy="drop it: without it rows have the expert's history",
        )
    if len(opened) > 1:
        raise UsageError(
            "the run has several answers to each step",
            where=f"{OPTION} {run}",
            expected="one history",
            remedy=f"name one of its samples: {opened[0].path}",
        )
    info, answers, seen = opened[0].info, opened[0].answers, opened[0].seen
    asked = frozenset(ids_of(recorded_steps(info, source, run)))
    histories = Histories(task)
    past: dict[str, Sequence[Action | None]] = {}
    lacking: Counter[str] = Counter()
    with closing(answers):
        for _, same in groupby(source.steps, key=attrgetter("episode")):
            why = ""
            for step in same:
                if step.sample_id not in asked:
                    continue
                if not why and histories.has_ended(step):
                    why = "not_reached"
                if why:
                    lacking[why] += 1
                    continue
                past[step.sample_id] = tuple(histories.before(step))
                answer = answers.get(step.sample_id)
                if answer is None or answer.delivery in TRANSIENT:
                    why = "after_no_answer"
                else:
                    seen.look(step, answer.delivery, answer.receipt)
                    histories.remember(step, answer)
    seen.check(allowed=changed_media, where=str(run))
    if not past:
        raise DataError(
            "the run reached no step of the data",
            where=f"{OPTION} {run}",
            expected="a run of some steps",
            remedy="name another run",
        )
    report = {"run": str(run), "model": model_name(info), "steps": len(past), **lacking}
    return RunHistories(task.with_past(past), past, report)
