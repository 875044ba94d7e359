"""Does a small element fail more often? Hit rate by the size of what is clicked.

AgentStudio's Figure 7 has the areas of elements that were hit and missed, and its Table 11 the hit
rate by application. Both are of any benchmark whose targets are boxes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from omnidata.analysis.comparison import check_ids, check_source
from omnidata.analysis.run_tables import beside, of_other_rules, specs, title, with_rules
from omnidata.analysis.runs import labels
from omnidata.analysis.tables import Cell, Column, Head, Row, Table
from omnidata.analysis.variations import right_of
from omnidata.errors import RunError, UsageError, plural
from omnidata.metrics.row_tables import means
from omnidata.mirror import local
from omnidata.run.run_files import Run, recorded_data
from omnidata.tasks.profiles import number_keys
from omnidata.tasks.statistics import element
from omnidata.types import Step

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AXIS: Final = "element-size"
"""What `--by` calls it, beside the axes of `results.json`."""
BINS: Final = 5


@dataclass(frozen=True, slots=True)
class Clicks:
    """The judged steps of a run whose target is an element.

    Attributes:
        run: whose they are.
        steps: (N,).
        sizes: float64 (N,), each element's share of its screen.
        right: float64 (N,), the value that says whether the step is right, from 0 to 1.
        owner: int64 (N,), equal numbers for steps of one group, which intervals draw together.
        left_out: judged steps without an element, or on a screen of unknown size.
    """

    run: Run
    steps: Sequence[Step]
    sizes: npt.NDArray[np.float64]
    right: npt.NDArray[np.float64]
    owner: npt.NDArray[np.int64]
    left_out: int

    def cells(self, chosen: npt.NDArray[np.bool_]) -> tuple[Cell, Cell]:
        """How many of them there are, and the share that is right, with its interval."""
        if not chosen.any():
            return Cell(0), Cell(None)
        found = means({"right": self.right[chosen]}, shares=("right",), owner=self.owner[chosen])
        ends = found["ci95"]["right"]
        return Cell(int(chosen.sum())), Cell(found["right"], tuple(ends) if ends else None)


def clicks(run: Run, data: Path | None = None) -> Clicks:
    """Look up the elements that the run's steps are about.

    A step without an answer is wrong, as in the run's own strict score.

    Args:
        run: scored.
        data: its dataset; where it lay when the run was made if None.

    Raises:
        UsageError: the place of the data is unknown, or no target is an element.
        RunError: the data are others than the run's, or its scores are of no steps.
    """
    place = local(recorded_data(run.settings, run.path, data))
    if not place.exists():
        raise UsageError(
            "the data are missing",
            where=str(place),
            expected="the dataset that the answers are to, for the boxes of its targets",
            remedy="name it with --data",
        )
    if run.profile not in run.benchmark.profiles:
        raise RunError(
            f"{run.profile} scores no steps",
            where=str(run.path),
            expected=f"scores by {', '.join(run.benchmark.profiles)}",
            remedy=f"leave --by {AXIS} out",
        )
    source = run.benchmark.load(place, check_media=False)
    check_source(run, source)
    check_ids(run, {step.sample_id for step in source.steps})
    value = right_of(run)[1]
    judged = [
        step for step in source.steps if run.scores.get(step.sample_id, {}).get(value) is not None
    ]
    sizes = [element(run.benchmark, step) for step in judged]
    known = [(step, size[0]) for step, size in zip(judged, sizes, strict=True) if size and size[0]]
    if not known:
        raise UsageError(
            "no target of a judged step is an element whose size is known",
            where=f"--by {AXIS}",
            expected="boxes to tap or click",
            remedy="leave it out",
        )
    return Clicks(
        run,
        [step for step, _ in known],
        np.array([size for _, size in known], np.float64),
        np.array([float(run.scores[step.sample_id][value]) for step, _ in known], np.float64),
        number_keys(step.group for step, _ in known),
        len(judged) - len(known),
    )


def tables(
    found: Sequence[Clicks], axes: Sequence[str] = (), *, with_published: bool = False
) -> list[Table]:
    """The share of right steps by the size of the element, and sizes by application.

    Args:
        found: of one task and profile.
        axes: tags to have a table by too; where there are none, and nothing tells applications, it
            is the axis of the main table.
        with_published: whether what papers print by application stands beside it.
    """
    of_app = [[each.run.benchmark.application(step) for step in each.steps] for each in found]
    made = [_by_size(found)]
    if any(map(any, of_app)):
        made.append(_by_group(found, "application", of_app, with_published=with_published))
    held = {tag for each in found for step in each.steps for tag in step.tags}
    for tag in axes or ([] if made[1:] else [specs(found[0].run)[0].axis]):
        if tag in held:
            values = [[step.tags.get(tag, "") for step in each.steps] for each in found]
            made.append(_by_group(found, tag, values))
    return made


def _by_size(found: Sequence[Clicks]) -> Table:
    """Rows of about as many elements each, from the smallest to the largest.

    A step counts once, however many runs answered it, and elements of one size share a row: so
    more runs of the same steps change no row.
    """
    size_of = {
        (each.run.fingerprint, step.sample_id): size
        for each in found
        for step, size in zip(each.steps, each.sizes.tolist(), strict=True)
    }
    sizes = sorted(size_of.values())
    ends = [0, *(at for at, (a, b) in enumerate(pairwise(sizes), 1) if a < b)]
    shares = (len(sizes) * part / BINS for part in range(BINS))
    starts = sorted({sizes[min(ends, key=lambda at: abs(at - share))] for share in shares})
    rows = []
    for low, end in zip(starts, [*starts[1:], math.inf], strict=True):
        cells = [
            cell for each in found for cell in each.cells((each.sizes >= low) & (each.sizes < end))
        ]
        high = max(size for size in sizes if size < end)
        name = " to ".join(dict.fromkeys(map(_percent, (low, high))))
        rows.append(Row((name,), tuple(cells), group=name))
    heads = _heads(found, ())
    return _table(
        f"by-{AXIS}", "Hit rate by element size", "Share of the screen (%)", heads, rows, found
    )


def _by_group(
    found: Sequence[Clicks],
    name: str,
    groups: Sequence[Sequence[str]],
    *,
    with_published: bool = False,
) -> Table:
    """Rows of groups: the hit rate, and the middle sizes of hits and of misses.

    Args:
        found: of the runs.
        name: what the groups are by.
        groups: of every step of each; the ones without a name are left out.
        with_published: whether columns of papers stand beside the runs'.
    """
    rows = []
    for value in sorted({group for own in groups for group in own if group}):
        cells: list[Cell] = []
        for each, own in zip(found, groups, strict=True):
            chosen = np.array([group == value for group in own])
            cells += each.cells(chosen)
            for part in (each.right == 1, each.right < 1):
                sizes = each.sizes[chosen & part]
                cells.append(Cell(100 * float(np.median(sizes)) if len(sizes) else None))
        rows.append(Row((value,), tuple(cells), group=value))
    heads = list(_heads(found, ("Hit, median %", "Missed, median %")))
    notes: tuple[str, ...] = ()
    if with_published:
        runs = [each.run for each in found]
        printed = runs[0].benchmark.published.of(name)
        for other in with_rules(printed, runs):
            heads, rows = beside(other, name, found[0].run, heads, rows)
        notes = of_other_rules(printed, runs)
    what = f"Element sizes by {name}"
    table = _table(f"{AXIS}-by-{name}", what, name.capitalize(), heads, rows, found)
    return replace(table, notes=(*table.notes, *notes))


def _heads(found: Sequence[Clicks], more: Sequence[str]) -> tuple[Head, ...]:
    metric = right_of(found[0].run)[0]
    return tuple(
        Head(
            ", ".join(filter(None, label)),
            (
                Column("Elements", "elements", "count", run=str(each.run.path)),
                Column(metric, metric, "share", run=str(each.run.path)),
                *(Column(name, name, "number", run=str(each.run.path)) for name in more),
            ),
        )
        for each, label in zip(found, labels([each.run for each in found]), strict=True)
    )


def _table(
    name: str,
    what: str,
    label: str,
    heads: Sequence[Head],
    rows: Sequence[Row],
    found: Sequence[Clicks],
) -> Table:
    runs = [each.run for each in found]
    notes = ["Of several boxes that are alternatives, the largest is the element."]
    if left := max(each.left_out for each in found):
        notes.append(
            f"Left out: up to {plural(left, 'judged step')}, whose target is no box to tap or "
            "click, or has no area, or whose screen's size is unknown."
        )
    return Table(
        name, title(what, runs), runs[0].task, runs[0].profile, (label,), tuple(heads), tuple(rows),
        tuple(notes), intervals=name == f"by-{AXIS}",
    )  # fmt: skip


def _percent(part: float) -> str:
    return f"{100 * part:.3g}"


def figure(found: Clicks, told: str) -> Figure:
    """The areas of elements that were hit and that were missed (AgentStudio, Figure 7).

    Args:
        found: of a run.
        told: its name.
    """
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
    axes.set_title(told, loc="left", fontsize=10, parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return made
