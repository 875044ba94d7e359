"""Time to decision: how much of a clip or a sound a model needs, and whether it waits for it.

Of runs that differ in `-T media_until` alone, step by step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from omnidata.analysis.run_tables import specs, title
from omnidata.analysis.runs import labels
from omnidata.analysis.tables import Cell, Column, Head, Row, Table
from omnidata.analysis.variations import data_of, groups, right_of, value_of
from omnidata.metrics.row_tables import means
from omnidata.predictions import dropped_parts
from omnidata.run.run_files import Run
from omnidata.tasks.common_options import MEDIA_UNTIL
from omnidata.types import LoadedDataset, Step

_WAITS = ("none", "wait")


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of one step as more of its clip and its sound was shown.

    Attributes:
        right: whether it is right, at each share, the whole last.
        acts: whether the answer does something, at each share: neither waits nor is unreadable.
    """

    right: tuple[bool, ...]
    acts: tuple[bool, ...]

    def place(self) -> int | None:
        """The number of the earliest share from which on it stays right; None if never.

        Examples:
            >>> Decision((True, False, True, True), (True,) * 4).place()
            2
            >>> Decision((True, False), (True,) * 2).place()
        """
        if not self.right[-1]:
            return None
        wrong = [number for number, right in enumerate(self.right) if not right]
        return wrong[-1] + 1 if wrong else 0

    def premature(self, number: int) -> bool:
        """Whether it is right in the end, and at this share already acts, and wrongly."""
        return self.right[-1] and self.acts[number] and not self.right[number]


def decisions(runs: Sequence[Run]) -> dict[str, Decision]:
    """The steps of which every run but the last was shown a part, by sample id.

    A step counts if all runs have judged it, and if every run that was to be shown a part of its
    clip or sound says so in its receipt: a medium that the model dropped was not cut for it.

    Args:
        runs: by their share, the whole last.

    Raises:
        RunError: scores or answers cannot be read.
    """
    value = right_of(runs[-1])[1]
    found = {}
    for name in runs[-1].scores:
        judged = [run.scores.get(name, {}).get(value) for run in runs]
        if None in judged or not all(_was_cut(run, name) for run in runs[:-1]):
            continue
        acts = tuple(_acts(run, name) for run in runs)
        found[name] = Decision(tuple(each == 1 for each in judged), acts)
    return found


def _receipt(run: Run, name: str) -> Mapping[str, Any]:
    answer = run.predictions.get(name)
    return answer.receipt if answer else {}


def _was_cut(run: Run, name: str) -> bool:
    receipt = _receipt(run, name)
    gone = {part.get("role") for part in dropped_parts(receipt)}
    shown = receipt.get("media")
    stamps = shown.items() if isinstance(shown, Mapping) else ()
    return any(
        isinstance(each, Mapping) and "until" in each and r not in gone for r, each in stamps
    )


def _acts(run: Run, name: str) -> bool:
    answer = run.predictions.get(name)
    if answer is None or answer.delivery != "ok":
        return False
    said = run.benchmark.read(answer.output or "", answer.receipt)
    return said is not None and said.kind not in _WAITS


def decision_tables(runs: Sequence[Run]) -> list[Table]:
    """A table for each model that was shown parts of clips and sounds.

    Args:
        runs: of one task and profile.

    Raises:
        RunError: scores or answers cannot be read.
        NotTracedError: the data, by whose groups the intervals go, are not there.
    """
    found = []
    known: dict[Path, LoadedDataset] = {}
    same = groups(MEDIA_UNTIL, runs)
    names = labels([group[0] for group in same])
    for group, name in zip(same, names, strict=True):
        by_share = {value_of(MEDIA_UNTIL, run): run for run in reversed(group)}
        group = [by_share[share] for share in sorted(by_share, key=float)]
        told = decisions(group)
        if told:
            data = data_of(group[-1], known)
            steps = [step for step in data.steps if step.sample_id in told]
            found.append(_table(group, ", ".join(filter(None, name)), steps, told))
    return found


def _table(
    runs: Sequence[Run], name: str, steps: Sequence[Step], told: Mapping[str, Decision]
) -> Table:
    metric = right_of(runs[-1])[0]
    shares = [value_of(MEDIA_UNTIL, run) for run in runs]
    axis = specs(runs[-1])[0]
    heads = (
        Head("", (Column("Steps", "steps", "count"),)),
        Head(f"{metric} when shown up to", tuple(Column(each, metric) for each in shares)),
        Head("", (Column("Decided at", "decided_at"),)),
        Head("Premature acts", tuple(Column(each, "premature") for each in shares[:-1])),
    )
    by: dict[str, list[Step]] = {}
    for step in steps:
        if group := step.tags.get(axis.axis):
            by.setdefault(group, []).append(step)
    order = [
        *(each for each in axis.groups if each in by),
        *(each for each in by if each not in axis.groups),
    ]
    rows = [_row(axis.whole, "", steps, told, shares)]
    rows += [_row(axis.groups.get(each, each), each, by[each], told, shares) for each in order]
    return Table(
        "decisions",
        title(f"Time to decision of {name}", runs),
        runs[-1].task,
        runs[-1].profile,
        (axis.axis.capitalize() or "Steps",),
        heads,
        tuple(rows),
        (
            "Steps: those whose clip or sound was cut, by the receipts of all runs; of several "
            "runs with one share the first.",
            "Decided at: the mean share of the time from which on an answer stays right, of the "
            "steps that are right when all is shown.",
            "Premature acts: of these steps, the share that at this time is answered with an "
            "action, and a wrong one, where waiting was possible.",
        ),
    )


def _row(
    label: str, group: str, steps: Sequence[Step], told: Mapping[str, Decision], shares: list[str]
) -> Row:
    cells = [Cell(len(steps)), *_means([[*told[s.sample_id].right] for s in steps], steps)]
    sure = [step for step in steps if told[step.sample_id].right[-1]]
    # Of a task that reads no answer as an action nobody knows what acts.
    known = any(any(found.acts) for found in told.values())
    values = []
    for step in sure:
        found = told[step.sample_id]
        place = found.place()
        assert place is not None  # it is right in the end
        early = [found.premature(number) for number in range(len(shares) - 1)]
        values.append([float(shares[place]), *early])
    found_cells = [*_means(values, sure)] if sure else [Cell(None)] * len(shares)
    cells += found_cells if known else [found_cells[0], *[Cell(None)] * (len(shares) - 1)]
    return Row((label,), tuple(cells), group=group)


def _means(values: Sequence[Sequence[float]], steps: Sequence[Step]) -> Iterator[Cell]:
    """The mean of each column, with its interval over groups of episodes."""
    columns = {str(number): column for number, column in enumerate(np.array(values, float).T)}
    owner = np.unique([step.group for step in steps], return_inverse=True)[1]
    found = means(columns, shares=columns, owner=owner)
    for name in columns:
        ends = found["ci95"][name]
        yield Cell(found[name], (ends[0], ends[1]) if ends else None)
