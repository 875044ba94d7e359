"""The distribution of composed tasks as a figure (OmniBench, figure 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnidata.figures import save, spellings
from omnidata.metrics.graph_complexity import DIMENSIONS, LEVELS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = {"easy": "#a9c6e2", "medium": "#5f93c4", "hard": "#2b5c8a"}
_GREY = "#8a8a8a"
_MOST_BARS = 20
_LONGEST = 52


def draw(made: Mapping[str, Any], path: Path) -> None:
    """Draw levels of each dimension, subtasks of a task, intents and apps; `made` is a report's."""
    save(lambda: _figure(made), path)


def _figure(made: Mapping[str, Any]) -> Figure:
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(12, 8), layout="constrained")
    panels = drawn.subplot_mosaic([["a", "b"], ["c", "d"]], width_ratios=(1.2, 1))
    _draw_levels(panels["a"], made["levels"], made["sums"]["tasks"])
    axes, values = panels["b"], made["values"]["instruction"]
    numbers = sorted(map(int, values))
    axes.bar(numbers, [values[str(number)] for number in numbers], color=_GREY)
    axes.set_xticks(numbers)
    _finish(axes, "(b) Subtasks of a task")
    _draw_bars(panels["c"], "(c) Intents", made["intents"])
    _draw_bars(panels["d"], "(d) Apps", made["apps"])
    return drawn


def _draw_levels(axes: Axes, levels: Mapping[str, Mapping[str, int]], total: int) -> None:
    starts = [0] * len(DIMENSIONS)
    for level in LEVELS:
        counts = [levels[name][level] for name in DIMENSIONS]
        bars = axes.barh(DIMENSIONS, counts, left=starts, color=_COLOURS[level], label=level)
        shares = [f"{100 * count / total:.0f} %" if count else "" for count in counts]
        ink = "white" if level == "hard" else "black"
        axes.bar_label(bars, shares, label_type="center", fontsize=8, color=ink)
        starts = [start + count for start, count in zip(starts, counts, strict=True)]
    axes.invert_yaxis()
    axes.legend(ncols=3, frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1, 1))
    _finish(axes, f"(a) {total:,} tasks by complexity")


def _draw_bars(axes: Axes, title: str, counts: Mapping[str, int]) -> None:
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:_MOST_BARS]
    families, written = spellings(name for name, _ in ranked)
    places: Sequence[int] = range(len(ranked))
    axes.barh(places, [count for _, count in ranked], color=_GREY)
    axes.set_yticks(
        places,
        [written[name][:_LONGEST] or "-" for name, _ in ranked],
        fontfamily=families,
        fontsize=8,
        parse_math=False,
    )
    axes.invert_yaxis()
    more = f", the {_MOST_BARS} most frequent of {len(counts)}" if len(counts) > _MOST_BARS else ""
    _finish(axes, title + more)


def _finish(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
