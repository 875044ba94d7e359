"""The contents of an OmniGUI dataset, as in the paper's Table 7 and Figure 2; its other tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from omnidata.errors import plural
from omnidata.figures import save, spellings
from omnidata.loaders.episode_tree import DEPENDENCIES, DIMENSIONS
from omnidata.table import TextTable
from omnidata.tasks import overview
from omnidata.tasks.omnigui.files import COLUMNS, table7, table7_row
from omnidata.tasks.overview import share
from omnidata.tasks.published import HISTORY, TableSpec, Variation
from omnidata.types import LoadedDataset, Step

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_AXES: Mapping[str, tuple[str, Sequence[str]]] = {
    "languages": ("language", ("zh", "en")),
    "dimensions": ("dimension", DIMENSIONS),
    "dependencies": ("dependency", DEPENDENCIES),
}
KEYS = ("episodes", "steps", *COLUMNS.values())


def count(steps: Sequence[Step]) -> dict[str, Any]:
    """Return the counts of Table 7 for any steps of OmniGUI.

    Returns:
        `apps`: name -> language ("zh+en" for an app with episodes in both), episodes, steps, and
        episodes per dimension and dependency level in Table 7's abbreviations; and `languages`:
        language -> episodes, steps. `total`: the sums. An episode is labelled as its first step.
    """
    apps: dict[str, dict[str, Any]] = {}
    for (app, _), (first, number) in _episodes(steps).items():
        row = apps.setdefault(app, {"language": "", **dict.fromkeys(KEYS, 0), "languages": {}})
        part = row["languages"].setdefault(first.tags["language"], {"episodes": 0, "steps": 0})
        for numbers in (row, part):
            numbers["episodes"] += 1
            numbers["steps"] += number
        for tag in {"dimension", "dependency"} & first.tags.keys():
            row[COLUMNS[first.tags[tag]]] += 1
    for row in apps.values():
        row["language"] = "+".join(sorted(row["languages"], reverse=True))
    total = {key: sum(row[key] for row in apps.values()) for key in KEYS}
    return {"apps": dict(sorted(apps.items())), "total": {"language": "", **total}}


def distribution(steps: Sequence[Step]) -> dict[str, dict[str, dict[str, int]]]:
    """Return the counts of Figure 2: steps by language, dimension and dependency level.

    The numbers that the paper prints for it are in section 3.2.

    Returns:
        `languages`, `dimensions` and `dependencies`: name -> apps, episodes, steps; the names of
        the paper always, and `unlabelled` where there are episodes without a label. An episode is
        labelled as its first step.
    """
    episodes = _episodes(steps)
    found: dict[str, dict[str, dict[str, int]]] = {}
    for axis, (tag, names) in _AXES.items():
        apps: dict[str, set[str]] = {name: set() for name in names}
        groups = {name: {"apps": 0, "episodes": 0, "steps": 0} for name in names}
        for (app, _), (first, number) in episodes.items():
            name = first.tags.get(tag, "unlabelled")
            apps.setdefault(name, set()).add(app)
            group = groups.setdefault(name, {"apps": 0, "episodes": 0, "steps": 0})
            group["apps"] = len(apps[name])
            group["episodes"] += 1
            group["steps"] += number
        found[axis] = groups
    return found


def _episodes(steps: Sequence[Step]) -> dict[tuple[str, str], tuple[Step, int]]:
    found: dict[tuple[str, str], tuple[Step, int]] = {}
    for step in steps:
        key = step.tags["app"], step.episode_id
        first, number = found.get(key, (step, 0))
        found[key] = first, number + 1
    return found


def compare(counts: dict[str, Any]) -> list[str]:
    """Return the differences to Table 7, one sentence each."""
    found: dict[str, dict[str, Any]] = {}
    differences = []
    for name, row in counts["apps"].items():
        expected = table7_row(name)
        if expected is None:
            differences.append(f"{name}: the app is not in Table 7")
        elif expected["app"] in found:  # another spelling of an app that was counted before
            merged = found[expected["app"]]
            merged |= {key: merged[key] + row[key] for key in KEYS}
        else:
            found[expected["app"]] = dict(row)
    for expected in table7()["apps"]:
        row = found.get(expected["app"])
        if row is None:
            differences.append(f"{expected['app']}: missing ({expected['episodes']} episodes)")
        else:
            differences += _differences(expected["app"], row, expected, ("language", *KEYS))
    return differences + _differences("total", counts["total"], table7()["totals"], KEYS)


def _differences(
    name: str, row: dict[str, Any], expected: dict[str, Any], keys: Sequence[str]
) -> list[str]:
    return [
        f"{name}: {key} is {row[key]}, published {expected[key]}"
        for key in keys
        if row[key] != expected[key]
    ]


class View(overview.View):
    """Episodes and steps per app, language, dimension and level."""

    published: ClassVar[Mapping[str, str]] = {"table7": "Table 7"}
    draws: ClassVar[bool] = True

    def __init__(self, source: LoadedDataset) -> None:
        super().__init__(source)
        self.spread = distribution(source.steps)

    def _count(self) -> dict[str, Any]:
        return count(self.source.steps)

    def as_dict(self) -> dict[str, Any]:
        return {"counts": self.counts, "distribution": self.spread}

    def tables(self) -> list[TextTable]:
        return [self._apps(), self._distribution()]

    def _apps(self) -> TextTable:
        total = self.counts["total"]
        keys = [key for key in total if key != "language"]
        rows = [
            [name, row["language"], *(str(row[key]) for key in keys)]
            for name, row in (*self.counts["apps"].items(), ("total", total))
        ]
        legend = {short: name.replace("_", " ") for name, short in COLUMNS.items() if short in keys}
        return TextTable(
            "Episodes and steps, as in Table 7 of the paper", ("app", "lang", *keys), rows, legend
        )

    def _distribution(self) -> TextTable:
        total = self.counts["total"]
        rows = []
        for axis, groups in self.spread.items():
            for name, row in groups.items():
                shares = [share(row[key], total[key]) for key in ("episodes", "steps")]
                numbers = (str(row["apps"]), str(row["episodes"]), shares[0], str(row["steps"]))
                rows.append([f"{axis}: {name}", *numbers, shares[1], _mean(row)])
        rows.append(
            ["total", "", str(total["episodes"]), "", str(total["steps"]), "", _mean(total)]
        )
        header = ("", "apps", "episodes", "", "steps", "", "steps/episode")
        return TextTable("Distribution, as in Figure 2 of the paper", header, rows)

    def remarks(self) -> list[str]:
        unusable = sum(step.action is None for step in self.source.steps)
        return [f"{plural(unusable, 'step')} without a usable target"]

    def differences(self, table: str) -> list[str]:
        return compare(self.counts)

    def draw(self, path: Path) -> Mapping[str, str]:
        """Draw Figure 2; return the apps that no font can draw, and their replacements."""
        save(lambda: figure(self.counts, self.spread), path)
        _, written = spellings(self.counts["apps"])
        return {name: drawn for name, drawn in written.items() if drawn != name}


def _mean(row: Mapping[str, int]) -> str:
    return f"{row['steps'] / row['episodes']:.2f}" if row["episodes"] else "-"


# Figure 2 of any dataset: apps and languages, dimensions, dependency levels.

_MOST_APPS = 60
_LONGEST_NAME = 28
_COLOURS = {"zh": ("#b2452f", "#ebb8a8"), "en": ("#2b5c8a", "#a9c6e2")}
_GREYS = ("#4a4a4a", "#bdbdbd")
_DRAWN = ("episodes", "steps")

Numbers = Mapping[str, int]


def figure(counts: Mapping[str, Any], distribution: Mapping[str, Mapping[str, Numbers]]) -> Figure:
    """Draw Figure 2: (a) every app, by language, (b) dimensions, (c) dependency levels.

    Args:
        counts: from `count`.
        distribution: from `distribution`.

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
    ordered = sorted(apps.items(), key=lambda app: (-app[1]["episodes"], app[0]))
    chosen = sorted(ordered[:_MOST_APPS], key=lambda app: app[1]["language"], reverse=True)
    rest = [row for _, row in ordered[_MOST_APPS:]]
    if rest:
        sums: dict[str, Any] = {
            language: {key: sum(_part(row, language, key) for row in rest) for key in _DRAWN}
            for language in _COLOURS
        }
        chosen.append((f"{len(rest)} other apps", {"languages": sums}))
    return chosen


def _part(row: Mapping[str, Any], language: str, key: str) -> int:
    numbers: Numbers = row["languages"].get(language, {})
    return numbers.get(key, 0)


def _draw_apps(axes: Axes, apps: Sequence[tuple[str, Mapping[str, Any]]], number: int) -> None:
    for offset, key in zip((-0.2, 0.2), _DRAWN, strict=True):
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
                color=colours[_DRAWN.index(key)],
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
        [
            name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
            for name in (written[app] for app, _ in apps)
        ],
        fontfamily=families,
        parse_math=False,
    )
    axes.set_ylim(len(apps) - 0.4, -0.6)
    _finish(axes, f"(a) {number} apps")
    axes.legend(fontsize=8, frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.03))


def _draw_groups(axes: Axes, title: str, groups: Mapping[str, Numbers]) -> None:
    for offset, key, colour in zip((-0.2, 0.2), _DRAWN, _GREYS, strict=True):
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


# The tables of OmniGUI's paper; the groups of its rows fit 699 of its 709 episodes.

TABLES = (
    TableSpec(
        "main",
        "Main results",
        "dimension",
        {
            "localization": "Localization",
            "semantic_understanding": "Semantic Understand.",
            "cross_modal_discrimination": "Cross-modal Discr.",
            "temporal_reasoning": "Temporal Reason.",
            "instant_response": "Instant Resp.",
        },
        like="OmniGUI, Table 3",
    ),
    TableSpec(
        "dependency",
        "Dependency levels",
        "dependency",
        {"critical": "AV-Critical", "supportive": "AV-Supportive", "present": "AV-Present"},
        whole_last=True,
        like="OmniGUI, Table 4",
        varied="dependency levels",
    ),
)
VARIATIONS = (
    Variation(  # Table 4, whose marks go down a model's rows
        "modalities",
        "IAV",
        {
            "IAV": "Full (I+A+V)",
            "IV": "No Audio (I+V)",
            "IA": "No Video (I+A)",
            "I": "No AV (Img Only)",
        },
        "Modality ablation",
        "Modality Input",
    ),
    Variation(  # Table 5
        "voice",
        "",
        {"": "Text (Baseline)", "TTS": "TTS Voice"},
        "Instruction as text and as voice",
        "Instruction",
        other="TTS Voice",
        besides=frozenset({"voice_form"}),
        across=True,
    ),
    HISTORY,
)
