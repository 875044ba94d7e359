"""Figures of runs: fingerprints, bars by app (OmniGUI, Figures 4 and 5), costs, turns, trees.

Of rollouts: success within so many turns, and how many have so many (OSWorld, Figure 9). Of runs
that were told of accessibility trees: how long these are (OSWorld, Figure 10). Of critics: the
reliability diagram (Guo et al., 2017, Figure 1).

Colours are Okabe and Ito's, which colour-blind people tell apart; lines differ in their dashes and
markers, bars in their hatches and greys, so that a print without colour can be read too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from omnidata.analysis import elements
from omnidata.analysis.elements import Clicks
from omnidata.analysis.rollouts import curves
from omnidata.analysis.run_tables import count_names, group_order
from omnidata.analysis.runs import by_profile, labels, unlike
from omnidata.analysis.slices import cell, main_metric, slice_runs, specs
from omnidata.analysis.tables import number
from omnidata.analysis.usage_tables import usage_of
from omnidata.errors import RunError, UsageError
from omnidata.figures import check_installed, save, spellings
from omnidata.metrics.calibration import expected_calibration_error, reliability
from omnidata.predictions import parts
from omnidata.run.folder import file_name
from omnidata.run.run_files import SCORES, Run
from omnidata.tasks.published import TableSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = ("#0072B2", "#D55E00", "#000000", "#009E73", "#CC79A7", "#56B4E9", "#8A5A00", "#7F7F7F")
_DASHES = ("-", "--", "-.", ":")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_BARS = (("#0072B2", ""), ("#E69F00", "////"), ("#EDEDED", "...."), ("#009E73", "xxxx"))
_TOGETHER = len(_COLOURS)
_MOST_BARS = 60
_SUFFIXES = (".png", ".svg")


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure to be drawn.

    Attributes:
        name: of its files, without suffix.
        make: makes it.
    """

    name: str
    make: Callable[[], Figure]


def draw(runs: Sequence[Run], folder: Path, clicks: Sequence[Clicks] = ()) -> list[Path]:
    """Write every figure that the runs have, as PNG and as SVG.

    Args:
        runs: of any tasks.
        folder: made if missing; older figures of the same names are replaced.
        clicks: of the runs whose hits are to be told by the size of the element.

    Returns:
        The files.

    Raises:
        PlatformError: matplotlib is not installed.
        UsageError: no file can be written there.
    """
    check_installed()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"the folder cannot be made ({error.strerror})",
            where=f"--figures {folder}",
            expected="a folder that can be written",
            remedy="name another folder",
        ) from None
    written = []
    for drawing in [*drawings(runs), *_sizes_of_elements(clicks)]:
        for suffix in _SUFFIXES:
            path = folder / f"{drawing.name}{suffix}"
            save(drawing.make, path)
            written.append(path)
    return written


def drawings(runs: Sequence[Run]) -> list[Drawing]:
    """The figures of the runs, for each task and profile apart."""
    found = []
    for same in by_profile(runs):
        several = len({run.profile for run in runs if run.task == same[0].task}) > 1
        prefix = f"{same[0].task}-{same[0].profile}" if several else same[0].task
        found += [*_radars(same, prefix), *_bars(same, prefix), *_turns(same, prefix)]
        found += [*_costs(same, prefix), *_trees(same, prefix), *_reliabilities(same, prefix)]
    return found


def _radars(runs: Sequence[Run], prefix: str) -> Iterator[Drawing]:
    """One per table of groups, and for so many runs as can be told apart."""
    told = [", ".join(filter(None, label)) for label in labels(runs)]
    for spec in specs(runs[0]):
        if len(slice_runs(runs, spec.axis)[1:]) < 3:
            continue
        for start in range(0, len(runs), _TOGETHER):
            part, named = runs[start : start + _TOGETHER], told[start : start + _TOGETHER]
            number = f"-{start // _TOGETHER + 1}" if len(runs) > _TOGETHER else ""
            make = partial(radar, spec, part, named)
            yield Drawing(f"{prefix}-radar-{spec.axis}{number}", make)


def _bars(runs: Sequence[Run], prefix: str) -> Iterator[Drawing]:
    """One per run: by app where the data tell it, else as in the main table."""
    told = [", ".join(filter(None, label)) for label in labels(runs)]
    for place, (run, name) in enumerate(zip(runs, told, strict=True), 1):
        axes = [axis for axis in ("app", specs(run)[0].axis) if run.results["by"].get(axis)]
        number = f"-{place}" if len(runs) > 1 else ""
        if axes:
            yield Drawing(f"{prefix}-bars-{axes[0]}{number}", partial(bars, run, axes[0], name))


def _costs(runs: Sequence[Run], prefix: str) -> Iterator[Drawing]:
    """One per currency and so many runs as can be told apart; of runs whose whole cost is known.

    Of runs on different steps there is none: they cost what their steps do.
    """
    told = [", ".join(filter(None, label)) for label in labels(runs)]
    points: dict[str, list[tuple[Run, str, float]]] = {}
    for run, name in zip(runs, told, strict=True) if not unlike(runs) else ():
        if "cost" not in run.settings.get("usage", {}):
            continue
        usage = usage_of(run)
        if usage.whole_cost and cell(run, "", "", main_metric(run)).value is not None:
            points.setdefault(usage.currency, []).append((run, name, usage.whole_cost))
    for currency, found in points.items():
        if len(found) < 2:
            continue
        mark = f"-{file_name(currency)}" if len(points) > 1 else ""
        for start in range(0, len(found), _TOGETHER):
            number = f"-{start // _TOGETHER + 1}" if len(found) > _TOGETHER else ""
            make = partial(costs, found[start : start + _TOGETHER], currency)
            yield Drawing(f"{prefix}-cost{mark}{number}", make)


def _sizes_of_elements(clicks: Sequence[Clicks]) -> Iterator[Drawing]:
    told = [", ".join(filter(None, label)) for label in labels([each.run for each in clicks])]
    for place, (each, name) in enumerate(zip(clicks, told, strict=True), 1):
        number = f"-{place}" if len(clicks) > 1 else ""
        make = partial(elements.figure, each, _cut(name, 64))
        yield Drawing(f"{each.run.task}-{elements.AXIS}{number}", make)


def _turns(runs: Sequence[Run], prefix: str) -> Iterator[Drawing]:
    """For so many runs of rollouts as can be told apart."""
    found = curves(runs)
    told = [", ".join(filter(None, label)) for label in labels([run for run, _ in found])]
    for start in range(0, len(found), _TOGETHER):
        part = slice(start, start + _TOGETHER)
        number = f"-{start // _TOGETHER + 1}" if len(found) > _TOGETHER else ""
        yield Drawing(f"{prefix}-turns{number}", partial(turns, found[part], told[part]))


def turns(found: Sequence[tuple[Run, Sequence[float]]], told: Sequence[str]) -> Figure:
    """Success within so many turns, and below it how many attempts had so many (Figure 9).

    Args:
        found: at most eight runs with their curves, all as long.
        told: their names.
    """
    from matplotlib.figure import Figure

    made = Figure(figsize=(7.2, 6.0 + 0.22 * len(found)), layout="constrained")
    above, below = made.subplots(2, 1, sharex=True)
    families, written = spellings(told)
    most = len(found[0][1])
    for place, ((run, curve), name) in enumerate(zip(found, told, strict=True)):
        lengths = run.results["rollouts"].get("lengths", {})
        whole = sum(lengths.values()) or 1
        shares = [100 * lengths.get(str(turn), 0) / whole for turn in range(1, most + 1)]
        for axes, values in ((above, [100 * value for value in curve]), (below, shares)):
            axes.plot(
                range(1, most + 1),
                values,
                color=_COLOURS[place],
                linestyle=_DASHES[place % len(_DASHES)],
                marker=_MARKERS[place],
                markersize=4,
                label=_cut(written[name], 64) if axes is above else None,
                drawstyle="steps-post" if axes is above else "default",
            )
    above.set_ylabel("success within so many turns (%)", fontsize=9)
    below.set_ylabel("attempts with so many turns (%)", fontsize=9)
    below.set_xlabel("turns")
    for axes in (above, below):
        axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
    run = found[0][0]
    made.suptitle(f"Turns of rollouts: {run.task}, {run.profile}", fontsize=11)
    _legend(made, families)
    return made


def _trees(runs: Sequence[Run], prefix: str) -> Iterator[Drawing]:
    """One per run whose model was told of accessibility trees."""
    told = [", ".join(filter(None, label)) for label in labels(runs)]
    for place, (run, name) in enumerate(zip(runs, told, strict=True), 1):
        lengths = tree_lengths(run)
        number = f"-{place}" if len(runs) > 1 else ""
        if lengths:
            yield Drawing(f"{prefix}-trees{number}", partial(trees, lengths, name))


def tree_lengths(run: Run) -> list[tuple[int, bool]]:
    """Tokens of each tree that the model was told, and whether some of it was cut off."""
    found = []
    for prediction in run.predictions.values():
        for line in parts(prediction.receipt):
            if isinstance(length := line.get("tokens"), int):
                found.append((length, "left_out" in line))
    return found


def _reliabilities(runs: Sequence[Run], prefix: str) -> Iterator[Drawing]:
    """One per run whose answers say how sure they are."""
    told = [", ".join(filter(None, label)) for label in labels(runs)]
    for place, (run, name) in enumerate(zip(runs, told, strict=True), 1):
        sure = confidences(run) if "calibration" in run.results else []
        number = f"-{place}" if len(runs) > 1 else ""
        if sure:
            yield Drawing(f"{prefix}-reliability{number}", partial(reliabilities, sure, name))


def confidences(run: Run) -> list[tuple[float, bool]]:
    """How sure each answer is that says it, and whether it is right.

    Raises:
        RunError: one is not in [0, 1].
    """
    found = []
    for name, line in run.scores.items():
        if (sure := line.get("confidence")) is None:
            continue
        if not 0 <= sure <= 1:
            raise RunError(
                f"a confidence is {sure!r:.40}",
                where=f"{run.path / SCORES}: {name}",
                expected="a number from 0 to 1",
                remedy="score the run again",
            )
        found.append((float(sure), line.get("score") == 1))
    return found


def radar(spec: TableSpec, runs: Sequence[Run], told: Sequence[str]) -> Figure:
    """The capability fingerprint (Figure 4): the main metric by group, a line per run.

    Args:
        spec: whose groups, three or more.
        runs: at most eight.
        told: their names.
    """
    from matplotlib.figure import Figure

    metric = main_metric(runs[0])
    groups = [each[:2] for each in slice_runs(runs, spec.axis, spec.groups)[1:]]
    angles = [2 * math.pi * place / len(groups) for place in range(len(groups))]
    lines = [
        [_percent(cell(run, spec.axis, group, metric).value) for group, _ in groups] for run in runs
    ]
    made = Figure(figsize=(6.4, 6.2 + 0.22 * len(runs)), layout="constrained")
    axes = made.add_subplot(projection="polar")
    families, written = spellings([*told, *(header for _, header in groups)])
    _web(
        axes,
        angles,
        [written[each].replace(" ", "\n") for _, each in groups],
        families,
        _top(lines),
    )
    for place, (values, name) in enumerate(zip(lines, told, strict=True)):
        axes.plot(
            [*angles, angles[0]],
            [*values, values[0]],
            color=_COLOURS[place],
            linestyle=_DASHES[place % len(_DASHES)],
            marker=_MARKERS[place],
            markersize=9 - 0.7 * place,  # of lines that coincide all are seen
            linewidth=3.2 - 0.3 * place,
            label=_cut(written[name], 64),
            clip_on=False,
        )
    made.suptitle(f"{metric} by {spec.axis} (%): {runs[0].task}, {runs[0].profile}", fontsize=11)
    _legend(made, families)
    return made


def _web(
    axes: Axes, angles: Sequence[float], headers: Sequence[str], families: Sequence[str], top: int
) -> None:
    """The spokes, named, and the rings, numbered."""
    axes.set_theta_offset(math.pi / 2)  # type: ignore[attr-defined]  # polar axes have it, which their type does not say
    axes.set_theta_direction(-1)  # type: ignore[attr-defined]  # polar axes have it, which their type does not say
    axes.set_ylim(0, top)
    apart = 20 if top > 50 else 10 if top > 20 else 5
    rings = range(apart, top + 1, apart)
    axes.set_yticks(list(rings), [str(ring) for ring in rings], fontsize=8, color="#555555")
    axes.set_rlabel_position(180 / len(angles))  # type: ignore[attr-defined]  # polar axes have it, which their type does not say
    axes.set_xticks(angles, headers, fontsize=9, fontfamily=families, parse_math=False)
    for angle, text in zip(angles, axes.get_xticklabels(), strict=True):
        side = math.sin(angle)
        text.set_horizontalalignment(
            "center" if abs(side) < 0.1 else "left" if side > 0 else "right"
        )
    axes.grid(color="#c8c8c8", linewidth=0.6)
    axes.spines["polar"].set_color("#c8c8c8")


def _legend(made: Figure, families: Sequence[str]) -> None:
    legend = made.legend(
        loc="outside lower center",
        frameon=False,
        fontsize=9,
        handlelength=4,
        ncols=1,
        prop={"family": list(families), "size": 9},
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def _top(lines: Sequence[Sequence[float]]) -> int:
    """The outermost ring: a round number that holds all values."""
    highest = max((value for line in lines for value in line if value == value), default=0.0)
    return min(100, max(10, math.ceil(highest / 10) * 10))


def _percent(value: float | None) -> float:
    return math.nan if value is None else 100 * value


def bars(run: Run, axis: str, told: str) -> Figure:
    """Bars by app (Figure 5): the best at the top, dotted lines for the whole.

    At the right stands over how much each group goes.

    Args:
        run: the run.
        axis: of its groups.
        told: its name.
    """
    from matplotlib.figure import Figure

    groups = group_order(axis, [run])[:_MOST_BARS]
    metrics = _shown(run)
    made = Figure(figsize=(8, 1.6 + 0.11 * (len(metrics) + 1) * len(groups)), layout="constrained")
    axes = made.add_subplot()
    families, written = spellings([told, *groups])
    height = 0.8 / len(metrics)
    drawn = [
        [_percent(cell(run, axis, group, metric).value) for group in groups] for metric in metrics
    ]
    styles = zip(metrics, drawn, _BARS, strict=False)
    for place, (metric, values, (colour, hatch)) in enumerate(styles):
        offset = (place - (len(metrics) - 1) / 2) * height
        axes.barh(
            [number + offset for number in range(len(groups))],
            values,
            height=height,
            color=colour,
            edgecolor="#333333",
            linewidth=0.4,
            hatch=hatch,
            label=metric,
        )
    _averages(axes, run, metrics[:2])
    axes.set_yticks(
        range(len(groups)),
        [_cut(written[group], 32) for group in groups],
        fontfamily=families,
        fontsize=8,
        parse_math=False,
    )
    axes.set_ylim(len(groups) - 0.4, -0.6)
    wholes = [_percent(cell(run, "", "", metric).value) for metric in metrics]
    axes.set_xlim(0, _top([*drawn, wholes]))
    axes.set_xlabel("%")
    axes.spines[["top"]].set_visible(False)
    sides = axes.secondary_yaxis("right")
    sides.set_yticks(range(len(groups)), [_sizes(run, axis, group) for group in groups], fontsize=8)
    sides.tick_params(length=0)
    sides.set_ylabel("/".join(count_names(list(run.results["by"][axis].values()))), fontsize=8)
    axes.set_title(
        f"{_cut(written[told], 64)}: by {axis} ({run.task}, {run.profile})",
        fontsize=10,
        fontfamily=families,
        loc="left",
        parse_math=False,
    )
    made.legend(loc="outside lower center", ncols=6, frameon=False, fontsize=8)
    return made


def trees(lengths: Sequence[tuple[int, bool]], told: str) -> Figure:
    """How long the trees are (OSWorld, Figure 10), with the length that nine of ten do not exceed.

    Args:
        lengths: as `tree_lengths` gives them; a tree that was cut counts as long as it was told.
        told: the run's name.
    """
    import numpy as np
    from matplotlib.figure import Figure

    values = np.array([length for length, _ in lengths])
    most = int(np.quantile(values, 0.9, method="inverted_cdf"))
    cut = sum(was_cut for _, was_cut in lengths)
    made = Figure(figsize=(6.4, 4), layout="constrained")
    axes = made.add_subplot()
    families, written = spellings([told])
    axes.hist(values, bins=min(40, len(values)), color=_COLOURS[0], edgecolor="white")
    axes.axvline(most, color="black", linestyle="--", label=f"90 % have at most {most}")
    axes.set_xlabel("tokens of the accessibility tree, estimated")
    axes.set_ylabel("steps")
    axes.set_title(
        f"{_cut(written[told], 64)}: {len(values)} trees, {cut} cut at the budget",
        fontsize=10,
        fontfamily=families,
        loc="left",
        parse_math=False,
    )
    axes.legend(frameon=False, fontsize=9)
    return made


def reliabilities(sure: Sequence[tuple[float, bool]], told: str) -> Figure:
    """The reliability diagram: how often answers are right, by how sure they are; 15 bins.

    Args:
        sure: as `confidences` gives them, one or more.
        told: the run's name.
    """
    from matplotlib.figure import Figure

    stated, right = [each for each, _ in sure], [each for _, each in sure]
    rows = reliability(stated, right)
    made = Figure(figsize=(4.8, 4.6), layout="constrained")
    axes = made.add_subplot()
    families, written = spellings([told])
    axes.bar(
        [row["low"] for row in rows],
        [row["accuracy"] for row in rows],
        [row["high"] - row["low"] for row in rows],
        align="edge",
        color=_COLOURS[5],
        edgecolor="white",
        label="right",
    )
    axes.plot([0, 1], [0, 1], color="black", linestyle="--", label="as sure as right")
    axes.plot(
        [row["confidence"] for row in rows],
        [row["accuracy"] for row in rows],
        color=_COLOURS[1],
        linestyle="",
        marker="o",
        clip_on=False,
        label="mean confidence of a bin",
    )
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xlabel("confidence")
    axes.set_ylabel("share of right answers")
    error = expected_calibration_error(stated, right)
    axes.set_title(
        f"{_cut(written[told], 40)}: {len(sure)} answers, ECE {error:.3f}",
        fontsize=10,
        fontfamily=families,
        loc="left",
        parse_math=False,
    )
    axes.legend(frameon=False, fontsize=9)
    return made


def _shown(run: Run) -> list[str]:
    """The paper's three in its order where the run has them, else the first shares."""
    shares = [name for name, unit in run.columns.items() if unit == "share"]
    papers: list[str] = [name for name in ("EM", "GP", "SR") if name in shares]
    return papers or shares[: len(_BARS)]


def _averages(axes: Axes, run: Run, metrics: Sequence[str]) -> None:
    """Dotted lines where all steps together are."""
    for metric, style in zip(metrics, (":", (0, (1, 3))), strict=False):
        value = cell(run, "", "", metric).value
        if value is not None:
            axes.axvline(
                100 * value, linestyle=style, color="black", linewidth=1.2,
                label=f"{metric} of all: {number(value, 'share')}",
            )  # fmt: skip


def _sizes(run: Run, axis: str, group: str) -> str:
    """Over how much a group goes, e.g. episodes/steps."""
    found = run.results["by"][axis][group]
    of = count_names([*run.results["by"][axis].values()])
    return "/".join(str(found.get(key, 0)) for key in of)


def costs(points: Sequence[tuple[Run, str, float]], currency: str) -> Figure:
    """The main metric against the cost of the run, with its 95 % interval.

    Args:
        points: run, name and cost; at most eight.
        currency: of the costs.
    """
    from matplotlib.figure import Figure

    first = points[0][0]
    metric = main_metric(first)
    scale = 100 if first.columns[metric] == "share" else 1
    made = Figure(figsize=(6.4, 4.2 + 0.22 * len(points)), layout="constrained")
    axes = made.add_subplot()
    families, written = spellings([*(name for _, name, _ in points), currency])
    for place, (run, name, cost) in enumerate(points):
        found = cell(run, "", "", metric)
        value = scale * (found.value or 0.0)
        low, high = (scale * end for end in found.ci95) if found.ci95 else (value, value)
        axes.errorbar(
            [cost],
            [value],
            yerr=[[max(0.0, value - low)], [max(0.0, high - value)]],
            color=_COLOURS[place],
            marker=_MARKERS[place],
            markersize=8,
            linestyle="",
            capsize=3,
            label=_cut(written[name], 64),
        )
    costly = [cost for *_, cost in points]
    if max(costly) > 20 * min(costly):
        axes.set_xscale("log")
    else:
        axes.set_xlim(left=0)
    axes.set_xlabel(f"Cost of the run ({written[currency]})", fontfamily=families, parse_math=False)
    axes.set_ylabel(f"{metric} (%)" if scale == 100 else metric)
    axes.grid(color="#c8c8c8", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(f"{metric} against cost: {first.task}, {first.profile}", fontsize=11)
    _legend(made, families)
    return made


def _cut(name: str, longest: int) -> str:
    """A long name without its middle: what sets runs apart is often the end."""
    half = longest // 2
    return name if len(name) <= longest else f"{name[: half - 1]}…{name[-half:]}"
