"""The paper's Figure 2 of any dataset: apps and languages, dimensions, dependency levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnidata.run.figures import save, spellings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_APPS = 60
_LONGEST_NAME = 28
_COLOURS = {"zh": ("#b2452f", "#ebb8a8"), "en": ("#2b5c8a", "#a9c6e2")}
_GREYS = ("#4a4a4a", "#bdbdbd")
_KEYS = ("episodes", "steps")

Numbers = Mapping[str, int]


def draw(
    counts: Mapping[str, Any], distribution: Mapping[str, Mapping[str, Numbers]], path: Path
) -> Mapping[str, str]:
    """Write the figure in one move.

    Args:
        counts: as `omnigui_counts.count` gives them.
        distribution: as `omnigui_counts.distribution` gives it.
        path: see `omnidata.run.figures.check`.

    Returns:
        The apps whose names no installed font can draw, and how they are written instead.
    """
    save(lambda: figure(counts, distribution), path)
    _, written = spellings(counts["apps"])
    return {name: drawn for name, drawn in written.items() if drawn != name}


def figure(counts: Mapping[str, Any], distribution: Mapping[str, Mapping[str, Numbers]]) -> Figure:
    """Three panels: (a) every app, by language, (b) dimensions, (c) dependency levels.

    Args:
        counts: as `omnigui_counts.count` gives them.
        distribution: as `omnigui_counts.distribution` gives it.

    Returns:
        A figure whose axes are (a), (b), (c), each with bars of episodes and of steps.
    """
    from matplotlib.figure import Figure

    apps = _most(counts["apps"])
    made = Figure(figsize=(12, max(6.0, 1.2 + 0.26 * len(apps))), layout="constrained")
    panels = made.subplot_mosaic([["a", "b"], ["a", "c"]], width_ratios=(1.1, 1))
    _draw_apps(panels["a"], apps, len(counts["apps"]))
    _draw_groups(panels["b"], "(b) Task dimensions", distribution["dimensions"])
    _draw_groups(panels["c"], "(c) Multimodal dependency", distribution["dependencies"])
    return made


def _most(apps: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any]]]:
    """The apps by language and size; of very many, the smallest together."""
    ordered = sorted(apps.items(), key=lambda app: (-app[1]["episodes"], app[0]))
    chosen = sorted(ordered[:_MOST_APPS], key=lambda app: app[1]["language"], reverse=True)
    rest = [row for _, row in ordered[_MOST_APPS:]]
    if rest:
        sums: dict[str, Any] = {
            language: {key: sum(_part(row, language, key) for row in rest) for key in _KEYS}
            for language in _COLOURS
        }
        chosen.append((f"{len(rest)} other apps", {"languages": sums}))
    return chosen


def _part(row: Mapping[str, Any], language: str, key: str) -> int:
    """How many episodes or steps of an app are in a language."""
    numbers: Numbers = row["languages"].get(language, {})
    return numbers.get(key, 0)


def _draw_apps(axes: Axes, apps: Sequence[tuple[str, Mapping[str, Any]]], number: int) -> None:
    """Bars of episodes and of steps; those of an app in both languages are stacked."""
    for offset, key in zip((-0.2, 0.2), _KEYS, strict=True):
        ends = [0] * len(apps)
        for language, colours in _COLOURS.items():
            parts = [_part(row, language, key) for _, row in apps]
            places = [place for place, part in enumerate(parts) if part]
            if not places:
                continue
            axes.barh(
                [place + offset for place in places],
                [parts[place] for place in places],
                left=[ends[place] for place in places],
                height=0.4,
                color=colours[_KEYS.index(key)],
                label=f"{key}, {language} ({sum(parts):,})",
            )
            ends = [end + part for end, part in zip(ends, parts, strict=True)]
        for place, end in enumerate(ends):
            axes.annotate(
                str(end), (end, place + offset), (2, 0), textcoords="offset points",
                va="center", fontsize=6,
            )  # fmt: skip
    families, written = spellings(name for name, _ in apps)
    axes.set_yticks(
        range(len(apps)),
        [_cut(written[name]) for name, _ in apps],
        fontfamily=families,
        parse_math=False,
    )
    axes.set_ylim(len(apps) - 0.4, -0.6)
    _finish(axes, f"(a) {number} apps")
    axes.legend(fontsize=8, frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.03))


def _draw_groups(axes: Axes, title: str, groups: Mapping[str, Numbers]) -> None:
    for offset, key, colour in zip((-0.2, 0.2), _KEYS, _GREYS, strict=True):
        numbers = [row[key] for row in groups.values()]
        total = sum(numbers)
        bars = axes.bar(
            [place + offset for place in range(len(groups))],
            numbers,
            width=0.4,
            color=colour,
            label=f"{key} ({total:,})",
        )
        shares = [f"{number:,}\n{100 * number / max(total, 1):.1f} %" for number in numbers]
        axes.bar_label(bars, shares, padding=2, fontsize=7)
    names = [name.replace("_", "\n") for name in groups]
    axes.set_yticks([])
    axes.set_xticks(range(len(groups)), names, fontsize=9)
    axes.margins(y=0.2)
    _finish(axes, title)
    axes.legend(  # beside the title, where no bar's label can be
        fontsize=8, frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1), borderpad=0
    )


def _finish(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left")
    axes.spines[["top", "right"]].set_visible(False)


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
