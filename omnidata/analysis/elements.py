"""Hit rate by the size of the element: whether a small one fails more often.

AgentStudio's Figure 7 has the areas of elements that were hit and missed, and its Table 11 the hit
rate by application. Both work for any benchmark whose targets are boxes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from omnidata.analysis.alignment import load_data
from omnidata.analysis.slices import (
    RunSlice,
    Values,
    add_published,
    make_table,
    published_rows,
    rows_of_groups,
    run_names,
    specs,
    step_metric,
)
from omnidata.errors import RunError, UsageError, plural
from omnidata.metrics.intervals import Floats, Ints, Mask
from omnidata.metrics.row_tables import means
from omnidata.run.run_files import Run
from omnidata.table import Column, Head, Row, Table
from omnidata.tasks.statistics import element
from omnidata.tasks.totals import number_keys
from omnidata.types import Step

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AXIS: Final = "element-size"
"""Its name for `--by`, beside the axes of `results.json`."""
BINS: Final = 5
_MEDIANS = ("Hit, median %", "Missed, median %")


@dataclass(frozen=True, slots=True)
class Clicks:
    """The judged steps of a run whose target is an element.

    Attributes:
        run: the run.
        steps: (N,).
        sizes: float64 (N,), each element's share of its screen.
        right: float64 (N,), the value that says whether the step is right, from 0 to 1.
        owner: int64 (N,), equal numbers for steps of one group, which are resampled together.
        left_out: number of judged steps without an element, or on a screen of unknown size.
    """

    run: Run
    steps: Sequence[Step]
    sizes: Floats
    right: Floats
    owner: Ints
    left_out: int

    def values(self, mask: Mask, metric: str) -> Values:
        """Return the number of the masked steps, the share that is right, and median sizes."""
        found = {"elements": int(mask.sum())}
        if not mask.any():
            return found
        medians = {}
        for name, part in zip(_MEDIANS, (self.right == 1, self.right < 1), strict=True):
            sizes = self.sizes[mask & part]
            medians[name] = 100 * float(np.median(sizes)) if len(sizes) else None
        share = means({metric: self.right[mask]}, shares=(metric,), owner=self.owner[mask])
        return {**share, **medians, **found}


def read_clicks(run: Run, data: Path | None = None) -> Clicks:
    """Look up the elements that the run's steps are about.

    A step without an answer is wrong, as in the run's own strict score.

    Args:
        run: scored.
        data: its dataset; by default the place where it was when the run was made.

    Raises:
        UsageError: the place of the data is unknown, or no target is an element.
        RunError: the data are not the run's, or its scores are not of steps.
    """
    if run.profile not in run.asking.profiles:
        raise RunError(
            f"{run.profile} scores no steps",
            where=str(run.path),
            expected=f"scores by {', '.join(run.asking.profiles)}",
            remedy=f"leave --by {AXIS} out",
        )
    source = load_data(run, data)
    value = step_metric(run)[1]
    judged = [
        step for step in source.steps if run.scores.get(step.sample_id, {}).get(value) is not None
    ]
    steps, sizes = [], []
    for step in judged:
        found = element(run.asking, step)
        if found and found[0]:
            steps.append(step)
            sizes.append(found[0])
    if not steps:
        raise UsageError(
            "no target of a judged step is an element whose size is known",
            where=f"--by {AXIS}",
            expected="boxes to tap or click",
            remedy="leave it out",
        )
    return Clicks(
        run,
        steps,
        np.array(sizes, np.float64),
        np.array([run.scores[step.sample_id][value] for step in steps], np.float64),
        number_keys(step.group for step in steps),
        len(judged) - len(steps),
    )


def tables(
    found: Sequence[Clicks], axes: Sequence[str] = (), *, with_published: bool = False
) -> list[Table]:
    """Return the share of right steps by the size of the element, and sizes by application.

    Args:
        found: of runs of one task and profile.
        axes: tags to have a table by too; without any, and without applications, the axis of the
            main table.
        with_published: whether to add published results by application.
    """
    apps = [list(map(each.run.asking.benchmark.wordings.application, each.steps)) for each in found]
    made = [_by_size(found)]
    if any(map(any, apps)):
        made.append(_by_group(found, "application", apps, with_published=with_published))
    tags = {tag for each in found for step in each.steps for tag in step.tags}
    for tag in axes or ([] if made[1:] else [specs(found[0].run)[0].axis]):
        if tag in tags:
            values = [[step.tags.get(tag, "") for step in each.steps] for each in found]
            made.append(_by_group(found, tag, values))
    return made


def _by_size(found: Sequence[Clicks]) -> Table:
    """Return rows of about as many elements each, from the smallest to the largest.

    A step counts once, however many runs answered it, and elements of one size share a row: so
    more runs of the same steps change no row.
    """
    size_of = {
        (each.run.fingerprint, step.sample_id): size
        for each in found
        for step, size in zip(each.steps, each.sizes.tolist(), strict=True)
    }
    sizes = sorted(size_of.values())
    starts = _split(sizes)
    metric = step_metric(found[0].run)[0]
    slices = []
    for low, end in zip(starts, [*starts[1:], math.inf], strict=True):
        high = max(size for size in sizes if size < end)
        name = " to ".join(dict.fromkeys(f"{100 * size:.3g}" for size in (low, high)))
        values = [each.values((each.sizes >= low) & (each.sizes < end), metric) for each in found]
        slices.append(RunSlice(name, name, values))
    heads = _heads(found)
    return _table(
        f"by-{AXIS}",
        "Hit rate by element size",
        "Share of the screen (%)",
        heads,
        rows_of_groups(slices, heads),
        found,
        intervals=True,
    )


def _split(sizes: Sequence[float]) -> list[float]:
    """Return the smallest size of each row; `sizes` are in order, and equal ones share a row."""
    cuts = [0, *(place for place, (a, b) in enumerate(pairwise(sizes), 1) if a < b)]
    wanted = (len(sizes) * row / BINS for row in range(BINS))
    return sorted({sizes[min(cuts, key=lambda cut: abs(cut - place))] for place in wanted})


def _by_group(
    found: Sequence[Clicks],
    axis: str,
    groups: Sequence[Sequence[str]],
    *,
    with_published: bool = False,
) -> Table:
    """Return the hit rate of each group, and the median sizes of hits and of misses.

    `groups` are those of every step of each run; steps whose group is empty are left out.
    """
    metric = step_metric(found[0].run)[0]
    slices = []
    for name in sorted({group for own in groups for group in own if group}):
        pairs = zip(found, groups, strict=True)
        values = [each.values(np.array([g == name for g in own]), metric) for each, own in pairs]
        slices.append(RunSlice(name, name, values))
    heads = _heads(found, _MEDIANS)
    rows = rows_of_groups(slices, heads)
    others, notes = published_rows(axis, [each.run for each in found], with_published)
    for other in others:
        heads, rows = add_published(other, axis, found[0].run, heads, rows)
    what = f"Element sizes by {axis}"
    return _table(f"{AXIS}-by-{axis}", what, axis.capitalize(), heads, rows, found, notes)


def _heads(found: Sequence[Clicks], more: Sequence[str] = ()) -> list[Head]:
    metric = step_metric(found[0].run)[0]
    runs = [each.run for each in found]
    return [
        Head(
            name,
            (
                Column("Elements", "elements", "count", run=str(run.path)),
                Column(metric, metric, "share", run=str(run.path)),
                *(Column(each, each, "number", run=str(run.path)) for each in more),
            ),
        )
        for run, name in zip(runs, run_names(runs), strict=True)
    ]


def _table(
    name: str,
    what: str,
    label: str,
    heads: Sequence[Head],
    rows: Sequence[Row],
    found: Sequence[Clicks],
    more: Sequence[str] = (),
    *,
    intervals: bool = False,
) -> Table:
    notes = ["Of several boxes that are alternatives, the largest is the element."]
    if left := max(each.left_out for each in found):
        notes.append(
            f"Left out: up to {plural(left, 'judged step')}, whose target is no box to tap or "
            "click, or has no area, or whose screen's size is unknown."
        )
    runs = [each.run for each in found]
    notes += more
    return make_table(name, what, runs, (label,), heads, rows, notes, intervals=intervals)


def figure(found: Clicks, title: str) -> Figure:
    """Draw the areas of elements that were hit and that were missed (AgentStudio, Figure 7)."""
    from matplotlib.figure import Figure

    made = Figure(figsize=(6.4, 4), layout="constrained")
    axes = made.add_subplot()
    low, high = found.sizes.min(), found.sizes.max()
    ends = (low, high) if low < high else (low / 2, low * 2)
    edges = (100 * np.geomspace(*ends, 31)).tolist()
    for name, hit, colour, hatch in (
        ("hit", found.right == 1, "#0072B2", ""), ("missed", found.right < 1, "#E69F00", "////"),
    ):  # fmt: skip
        axes.hist(
            100 * found.sizes[hit], bins=edges, alpha=0.6, color=colour, hatch=hatch,
            edgecolor="#333333", linewidth=0.4, label=f"{name} ({int(hit.sum())})",
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlabel("element, % of the screen")
    axes.set_ylabel("elements")
    axes.set_title(title, loc="left", fontsize=10, parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return made
