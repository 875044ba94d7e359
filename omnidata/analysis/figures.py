"""Figures of runs: fingerprints, bars by app (OmniGUI, Figures 4 and 5), costs, turns, trees.

Of rollouts: success and attempts by number of turns (OSWorld, Figure 9). Of runs with accessibility
trees in their prompts: the lengths of these (OSWorld, Figure 10). Of critics: the reliability
diagram (Guo et al., 2017, Figure 1).

Colours are Okabe and Ito's, for colour-blind readers; lines differ in their dashes and markers,
bars in their hatches and greys, so that a print without colour can be read too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from omnidata.analysis import elements
from omnidata.analysis.elements import Clicks
from omnidata.analysis.rollouts import curves
from omnidata.analysis.run_tables import count_names, group_order
from omnidata.analysis.runs import by_profile, unlike
from omnidata.analysis.slices import cell, main_metric, run_names, slice_runs, specs
from omnidata.analysis.usage_tables import usage_of
from omnidata.errors import RunError, UsageError
from omnidata.figures import check_installed, save, spellings
from omnidata.metrics.calibration import expected_calibration_error, reliability
from omnidata.predictions import parts
from omnidata.run.run_files import Run
from omnidata.run.run_info import SCORES
from omnidata.storage import file_name
from omnidata.table import number
from omnidata.tasks.published import TableSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

T = TypeVar("T")
_COLOURS = ("#0072B2", "#D55E00", "#000000", "#009E73", "#CC79A7", "#56B4E9", "#8A5A00", "#7F7F7F")
_DASHES = ("-", "--", "-.", ":")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_BARS = (("#0072B2", ""), ("#E69F00", "////"), ("#EDEDED", "...."), ("#009E73", "xxxx"))
_TOGETHER = len(_COLOURS)
"""Runs in one figure, at most: more cannot be distinguished."""
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
        clicks: of the runs whose hits are drawn by the size of the element.

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
    for drawing in drawings(runs, clicks):
        for suffix in _SUFFIXES:
            path = folder / f"{drawing.name}{suffix}"
            save(drawing.make, path)
            written.append(path)
    return written


def drawings(runs: Sequence[Run], clicks: Sequence[Clicks] = ()) -> list[Drawing]:
    """Return the figures of the runs, of each task and profile; arguments are those of `draw`."""
    found: list[Drawing] = []
    for same in by_profile(runs):
        several = len({run.profile for run in runs if run.task == same[0].task}) > 1
        prefix = f"{same[0].task}-{same[0].profile}" if several else same[0].task
        for make in (_radars, _bars, _turns, _costs, _trees, _reliabilities):
            found += [Drawing(f"{prefix}-{each.name}", each.make) for each in make(same)]
    numbered = _number_files([each.run for each in clicks])
    for each, (run, name, end) in zip(clicks, numbered, strict=True):
        make_hits = partial(elements.figure, each, _shorten(name, 64))
        found.append(Drawing(f"{run.task}-{elements.AXIS}{end}", make_hits))
    return found


def _with_names(runs: Sequence[Run]) -> list[tuple[Run, str]]:
    return list(zip(runs, run_names(runs), strict=True))


def _number_files(runs: Sequence[Run]) -> Iterator[tuple[Run, str, str]]:
    """Yield each run with its name and the end of its file's name."""
    for nth, (run, name) in enumerate(_with_names(runs), 1):
        yield run, name, f"-{nth}" if len(runs) > 1 else ""


def _split(lines: Sequence[T]) -> Iterator[tuple[Sequence[T], str]]:
    """Yield as many lines as one figure can show, with the end of its file's name."""
    for nth, start in enumerate(range(0, len(lines), _TOGETHER), 1):
        yield lines[start : start + _TOGETHER], f"-{nth}" if len(lines) > _TOGETHER else ""


# The main metric by group, a line per run (Figure 4).


def _radars(runs: Sequence[Run]) -> Iterator[Drawing]:
    for spec in specs(runs[0]):
        if len(slice_runs(runs, spec.axis)[1:]) >= 3:
            for part, end in _split(_with_names(runs)):
                yield Drawing(f"radar-{spec.axis}{end}", partial(_draw_radar, spec, part))


def _draw_radar(spec: TableSpec, runs: Sequence[tuple[Run, str]]) -> Figure:
    """Draw the runs, at most eight, with their names."""
    from matplotlib.figure import Figure

    first = runs[0][0]
    metric = main_metric(first)
    groups = [part[:2] for part in slice_runs([run for run, _ in runs], spec.axis, spec.groups)[1:]]
    angles = [2 * math.pi * place / len(groups) for place in range(len(groups))]
    lines = [
        [_percent(cell(run, spec.axis, group, metric).value) for group, _ in groups]
        for run, _ in runs
    ]
    made = Figure(figsize=(6.4, 6.2 + 0.22 * len(runs)), layout="constrained")
    axes = made.add_subplot(projection="polar")
    families, written = spellings([name for _, name in runs] + [name for _, name in groups])
    headers = [written[name].replace(" ", "\n") for _, name in groups]
    _draw_web(axes, angles, headers, families, _top(lines))
    for place, (values, (_, name)) in enumerate(zip(lines, runs, strict=True)):
        axes.plot(
            [*angles, angles[0]],
            [*values, values[0]],
            **_look(place),
            markersize=9 - 0.7 * place,  # of lines that coincide all are seen
            linewidth=3.2 - 0.3 * place,
            label=_shorten(written[name], 64),
            clip_on=False,
        )
    made.suptitle(f"{metric} by {spec.axis} (%): {first.task}, {first.profile}", fontsize=11)
    _add_legend(made, families)
    return made


def _draw_web(
    axes: Axes, angles: Sequence[float], headers: Sequence[str], families: Sequence[str], top: int
) -> None:
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


# Bars by group, a figure per run (Figure 5).


def _bars(runs: Sequence[Run]) -> Iterator[Drawing]:
    for run, name, end in _number_files(runs):
        axes = [axis for axis in ("app", specs(run)[0].axis) if run.results["by"].get(axis)]
        if axes:
            yield Drawing(f"bars-{axes[0]}{end}", partial(_draw_bars, run, axes[0], name))


def _draw_bars(run: Run, axis: str, name: str) -> Figure:
    """Draw the best group at the top, with dotted lines for all steps.

    The sizes of the groups are at the right.
    """
    from matplotlib.figure import Figure

    groups = group_order(axis, [run])[:_MOST_BARS]
    metrics = _bar_metrics(run)
    made = Figure(figsize=(8, 1.6 + 0.11 * (len(metrics) + 1) * len(groups)), layout="constrained")
    axes = made.add_subplot()
    families, written = spellings([name, *groups])
    height = 0.8 / len(metrics)
    values = [
        [_percent(cell(run, axis, group, metric).value) for group in groups] for metric in metrics
    ]
    for place, (metric, own) in enumerate(zip(metrics, values, strict=True)):
        colour, hatch = _BARS[place]
        offset = (place - (len(metrics) - 1) / 2) * height
        axes.barh(
            [number + offset for number in range(len(groups))],
            own,
            height=height,
            color=colour,
            edgecolor="#333333",
            linewidth=0.4,
            hatch=hatch,
            label=metric,
        )
    wholes = {metric: cell(run, "", "", metric).value for metric in metrics}
    for metric, style in zip(metrics, (":", (0, (1, 3))), strict=False):
        if (whole := wholes[metric]) is not None:
            axes.axvline(
                100 * whole, linestyle=style, color="black", linewidth=1.2,
                label=f"{metric} of all: {number(whole, 'share')}",
            )  # fmt: skip
    axes.set_yticks(
        range(len(groups)),
        [_shorten(written[group], 32) for group in groups],
        fontfamily=families,
        fontsize=8,
        parse_math=False,
    )
    axes.set_ylim(len(groups) - 0.4, -0.6)
    axes.set_xlim(0, _top([*values, [_percent(whole) for whole in wholes.values()]]))
    axes.set_xlabel("%")
    axes.spines[["top"]].set_visible(False)
    _add_sizes(axes, run, axis, groups)
    _set_title(
        axes, f"{_shorten(written[name], 64)}: by {axis} ({run.task}, {run.profile})", families
    )
    made.legend(loc="outside lower center", ncols=6, frameon=False, fontsize=8)
    return made


def _bar_metrics(run: Run) -> list[str]:
    """Return the shares that the paper's bars have, or else the first shares."""
    shares = [name for name, unit in run.columns.items() if unit == "share"]
    metrics = getattr(run.asking.profiles.get(run.profile), "metrics", {})
    papers = [
        name
        for metric in ("EM", "GP", "SR")
        for name in shares
        if metrics.get(name, name).partition("_")[0] == metric
    ]
    return (papers or shares)[: len(_BARS)]


def _add_sizes(axes: Axes, run: Run, axis: str, groups: Sequence[str]) -> None:
    counts = run.results["by"][axis]
    units = count_names([*counts.values()])
    sizes = ["/".join(str(counts[group].get(unit, 0)) for unit in units) for group in groups]
    side = axes.secondary_yaxis("right")
    side.set_yticks(range(len(groups)), sizes, fontsize=8)
    side.tick_params(length=0)
    side.set_ylabel("/".join(units), fontsize=8)


# Success and attempts by number of turns (OSWorld, Figure 9).


def _turns(runs: Sequence[Run]) -> Iterator[Drawing]:
    found = curves(runs)
    names = run_names([run for run, _ in found])
    rows = [(run, name, curve) for (run, curve), name in zip(found, names, strict=True)]
    for part, end in _split(rows):
        yield Drawing(f"turns{end}", partial(_draw_turns, part))


def _draw_turns(rows: Sequence[tuple[Run, str, Sequence[float]]]) -> Figure:
    """Draw the success within each number of turns, and the attempts that had as many.

    Args:
        rows: at most eight runs with their names and curves; these have one length.
    """
    from matplotlib.figure import Figure

    made = Figure(figsize=(7.2, 6.0 + 0.22 * len(rows)), layout="constrained")
    above, below = made.subplots(2, 1, sharex=True)
    families, written = spellings([name for _, name, _ in rows])
    turns = range(1, len(rows[0][2]) + 1)
    for place, (run, name, curve) in enumerate(rows):
        lengths = run.results["rollouts"].get("lengths", {})
        whole = sum(lengths.values()) or 1
        look = {**_look(place), "markersize": 4}
        above.plot(
            turns,
            [100 * share for share in curve],
            **look,
            label=_shorten(written[name], 64),
            drawstyle="steps-post",
        )
        below.plot(turns, [100 * lengths.get(str(turn), 0) / whole for turn in turns], **look)
    above.set_ylabel("success within so many turns (%)", fontsize=9)
    below.set_ylabel("attempts with so many turns (%)", fontsize=9)
    below.set_xlabel("turns")
    for axes in (above, below):
        axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
    first = rows[0][0]
    made.suptitle(f"Turns of rollouts: {first.task}, {first.profile}", fontsize=11)
    _add_legend(made, families)
    return made


# The main metric against the cost of the run, with its 95 % interval.


def _costs(runs: Sequence[Run]) -> Iterator[Drawing]:
    """Yield a figure per currency, of runs whose whole cost is known.

    Of runs on different steps there is none: they cost what their steps do.
    """
    points: dict[str, list[tuple[Run, str, float]]] = {}
    for run, name in _with_names(runs) if not unlike(runs) else ():
        if "cost" not in run.settings.get("usage", {}):
            continue
        usage = usage_of(run)
        if usage.whole_cost and cell(run, "", "", main_metric(run)).value is not None:
            points.setdefault(usage.currency, []).append((run, name, usage.whole_cost))
    for currency, found in points.items():
        mark = f"-{file_name(currency)}" if len(points) > 1 else ""
        for part, end in _split(found) if len(found) > 1 else ():
            yield Drawing(f"cost{mark}{end}", partial(_draw_costs, part, currency))


def _draw_costs(points: Sequence[tuple[Run, str, float]], currency: str) -> Figure:
    """Draw at most eight runs with their names and costs."""
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
            **{**_look(place), "linestyle": ""},
            markersize=8,
            capsize=3,
            label=_shorten(written[name], 64),
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
    _add_legend(made, families)
    return made


# The lengths of accessibility trees in prompts (OSWorld, Figure 10).


def _trees(runs: Sequence[Run]) -> Iterator[Drawing]:
    for run, name, end in _number_files(runs):
        if lengths := tree_lengths(run):
            yield Drawing(f"trees{end}", partial(_draw_trees, lengths, name))


def tree_lengths(run: Run) -> list[tuple[int, bool]]:
    """Return the tokens of each tree in a prompt, and whether some of it was cut off."""
    return [
        (length, "left_out" in line)
        for prediction in run.predictions.values()
        for line in parts(prediction.receipt)
        if isinstance(length := line.get("tokens"), int)
    ]


def _draw_trees(lengths: Sequence[tuple[int, bool]], name: str) -> Figure:
    """Draw the lengths, with their 90th percentile; a cut tree is as long as in the prompt."""
    import numpy as np
    from matplotlib.figure import Figure

    values = np.array([length for length, _ in lengths])
    most = int(np.quantile(values, 0.9, method="inverted_cdf"))
    cut = sum(was_cut for _, was_cut in lengths)
    made = Figure(figsize=(6.4, 4), layout="constrained")
    axes = made.add_subplot()
    families, written = spellings([name])
    axes.hist(values, bins=min(40, len(values)), color=_COLOURS[0], edgecolor="white")
    axes.axvline(most, color="black", linestyle="--", label=f"90 % have at most {most}")
    axes.set_xlabel("tokens of the accessibility tree, estimated")
    axes.set_ylabel("steps")
    title = f"{_shorten(written[name], 64)}: {len(values)} trees, {cut} cut at the budget"
    _set_title(axes, title, families)
    axes.legend(frameon=False, fontsize=9)
    return made


# The reliability diagram of a critic.


def _reliabilities(runs: Sequence[Run]) -> Iterator[Drawing]:
    for run, name, end in _number_files(runs):
        if "calibration" in run.results and (sure := _confidences(run)):
            yield Drawing(f"reliability{end}", partial(_draw_reliability, sure, name))


def _confidences(run: Run) -> list[tuple[float, bool]]:
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


def _draw_reliability(sure: Sequence[tuple[float, bool]], name: str) -> Figure:
    """Draw the share of right answers by confidence, in 15 bins."""
    from matplotlib.figure import Figure

    stated, right = [each for each, _ in sure], [each for _, each in sure]
    rows = reliability(stated, right)
    made = Figure(figsize=(4.8, 4.6), layout="constrained")
    axes = made.add_subplot()
    families, written = spellings([name])
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
    _set_title(
        axes, f"{_shorten(written[name], 40)}: {len(sure)} answers, ECE {error:.3f}", families
    )
    axes.legend(frameon=False, fontsize=9)
    return made


# What figures share.


def _look(place: int) -> dict[str, Any]:
    """Return the colour, dashes and marker of a line."""
    return {
        "color": _COLOURS[place],
        "linestyle": _DASHES[place % len(_DASHES)],
        "marker": _MARKERS[place],
    }


def _set_title(axes: Axes, text: str, families: Sequence[str]) -> None:
    axes.set_title(text, fontsize=10, fontfamily=families, loc="left", parse_math=False)


def _add_legend(made: Figure, families: Sequence[str]) -> None:
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
    highest = max((value for line in lines for value in line if value == value), default=0.0)
    return min(100, max(10, math.ceil(highest / 10) * 10))


def _percent(value: float | None) -> float:
    return math.nan if value is None else 100 * value


def _shorten(name: str, longest: int) -> str:
    half = longest // 2
    return name if len(name) <= longest else f"{name[: half - 1]}…{name[-half:]}"
