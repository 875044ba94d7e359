"""Time to decision: how much of a clip or a sound a model needs, and whether it waits for it.

The tables are of runs that differ in `-T media_until` only, step by step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from omnidata.analysis.slices import (
    group_by_option,
    make_cell,
    make_table,
    option_of,
    run_data,
    slice_steps,
    specs,
    step_metric,
)
from omnidata.metrics.row_tables import means
from omnidata.predictions import dropped_parts
from omnidata.run.run_files import Run
from omnidata.table import Cell, Column, Head, Row, Table
from omnidata.tasks.common_options import MEDIA_UNTIL
from omnidata.tasks.totals import number_keys
from omnidata.types import LoadedDataset, Step

_WAITS = ("none", "wait")
_NOTES = (
    "Steps: those whose clip or sound was cut, by the receipts of all runs; of several "
    "runs with one share the first.",
    "Decided at: the mean share of the time from which on an answer stays right, of the "
    "steps that are right when all is shown.",
    "Premature acts: of these steps, the share that at this time is answered with an "
    "action, and a wrong one, where waiting was possible.",
)


def decision_tables(runs: Sequence[Run]) -> list[Table]:
    """Return a table for each model that was shown parts of clips and sounds.

    Raises:
        NotTracedError: the data, by whose groups the intervals go, are missing or have changed.
    """
    found = []
    known: dict[Path, LoadedDataset] = {}
    for name, group in group_by_option(MEDIA_UNTIL, runs):
        by_share = {option_of(MEDIA_UNTIL, run): run for run in reversed(group)}
        shares = sorted(by_share, key=float)
        own = [by_share[share] for share in shares]
        if rights := _rights(own):
            data = run_data(own[-1], known)
            steps = [step for step in data.steps if step.sample_id in rights]
            decisions = {
                step.sample_id: _Decision(
                    rights[step.sample_id], tuple(_acts(run, step) for run in own)
                )
                for step in steps
            }
            found.append(_table(own, shares, name, steps, decisions))
    return found


@dataclass(frozen=True, slots=True)
class _Decision:
    """Verdicts on one step as more of its clip and its sound is shown.

    Attributes:
        right: whether it is right, at each share, the whole last.
        acts: whether the answer does something, at each share: neither waits nor is unreadable.
    """

    right: tuple[bool, ...]
    acts: tuple[bool, ...]

    def values(self, shares: Sequence[str]) -> list[float]:
        """Return the share from which it stays right, and whether it acts too early at each."""
        wrong = [number for number, right in enumerate(self.right) if not right]
        early = [
            acts and not right for right, acts in zip(self.right[:-1], self.acts[:-1], strict=True)
        ]
        return [float(shares[wrong[-1] + 1 if wrong else 0]), *early]


def _rights(runs: Sequence[Run]) -> dict[str, tuple[bool, ...]]:
    """Return by step which runs are right.

    Steps are those that all runs judged, and whose clip or sound every run but the last cut.
    A medium that the model dropped was not cut for it.
    """
    value = step_metric(runs[-1])[1]
    found = {}
    for name in runs[-1].scores:
        judged = [run.scores.get(name, {}).get(value) for run in runs]
        if None not in judged and all(_was_cut(run, name) for run in runs[:-1]):
            found[name] = tuple(each == 1 for each in judged)
    return found


def _was_cut(run: Run, name: str) -> bool:
    answer = run.predictions.get(name)
    receipt: Mapping[str, Any] = answer.receipt if answer else {}
    gone = {part.get("role") for part in dropped_parts(receipt)}
    media = receipt.get("media")
    stamps = media.items() if isinstance(media, Mapping) else ()
    return any(
        isinstance(each, Mapping) and "until" in each and r not in gone for r, each in stamps
    )


def _acts(run: Run, step: Step) -> bool:
    answer = run.predictions.get(step.sample_id)
    if answer is None or answer.delivery != "ok":
        return False
    action = run.asking.history_action(step, answer.output or "", answer.receipt)
    return action is not None and action.kind not in _WAITS


def _table(
    runs: Sequence[Run],
    shares: Sequence[str],
    name: str,
    steps: Sequence[Step],
    decisions: Mapping[str, _Decision],
) -> Table:
    metric = step_metric(runs[-1])[0]
    spec = specs(runs[-1])[0]
    heads = (
        Head("", (Column("Steps", "steps", "count"),)),
        Head(f"{metric} when shown up to", tuple(Column(each, metric) for each in shares)),
        Head("", (Column("Decided at", "decided_at"),)),
        Head("Premature acts", tuple(Column(each, "premature") for each in shares[:-1])),
    )
    # Of a task that reads no answer as an action, it is unknown which answers act.
    is_action_task = any(any(each.acts) for each in decisions.values())
    rows = []
    for group, header, own in slice_steps(steps, spec):
        cells = [Cell(len(own)), *_means([decisions[step.sample_id].right for step in own], own)]
        sure = [step for step in own if decisions[step.sample_id].right[-1]]
        nothing = [Cell(None)] * len(shares)
        decided = nothing
        if sure:
            decided = _means([decisions[step.sample_id].values(shares) for step in sure], sure)
        cells += decided if is_action_task else [decided[0], *nothing[1:]]
        rows.append(Row((header,), tuple(cells), group=group))
    labels = (spec.axis.capitalize() or "Steps",)
    return make_table("decisions", f"Time to decision of {name}", runs, labels, heads, rows, _NOTES)


def _means(values: Sequence[Sequence[float]], steps: Sequence[Step]) -> list[Cell]:
    columns = {str(number): column for number, column in enumerate(np.array(values, float).T)}
    owner = number_keys(step.group for step in steps)
    found = means(columns, shares=columns, owner=owner)
    return [make_cell(found, name) for name in columns]
