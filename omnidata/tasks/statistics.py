"""Statistics of any dataset: actions, lengths, media, elements.

`omnidata info` prints them; they are the datasheet in the README that `omnidata convert` writes.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, get_args

from omnidata import media
from omnidata.actions import Box, Region, Screen, ratio
from omnidata.errors import MediaError
from omnidata.figures import spellings
from omnidata.table import TextTable
from omnidata.tasks.asking import Asking
from omnidata.tasks.overview import share
from omnidata.types import LoadedDataset, MediaRef, Modality, Step

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CLIPS: Final = 1000
"""The largest number of clips or sounds of a role whose headers are read, evenly spread over the
steps; in a larger dataset, all of them would take longer than everything else."""


@dataclass(frozen=True, slots=True)
class Measure:
    """The values of one quantity.

    Attributes:
        values: the known ones, in the order of the steps.
        unknown: number of unknown ones.
    """

    values: tuple[float, ...]
    unknown: int = 0

    def summary(self) -> dict[str, float | int | None]:
        """Return counts, extremes, quartiles and mean; None if no value is known.

        Quartiles are interpolated linearly.

        Examples:
            >>> Measure((1.0, 2.0, 3.0, 10.0), unknown=1).summary()
            {'known': 4, 'unknown': 1, 'min': 1.0, 'q1': 1.75, 'median': 2.5, 'mean': 4.0,
             'q3': 4.75, 'max': 10.0}
        """
        import numpy as np

        counts = {"known": len(self.values), "unknown": self.unknown}
        if not self.values:
            return {**counts, **dict.fromkeys(_SUMMARY)}
        least, lower, middle, upper, most = np.quantile(self.values, [0, 0.25, 0.5, 0.75, 1])
        found = (least, lower, middle, math.fsum(self.values) / len(self.values), upper, most)
        return {**counts, **dict(zip(_SUMMARY, map(float, found), strict=True))}


_SUMMARY: Final = ("min", "q1", "median", "mean", "q3", "max")
STEPS, WORDS, CHARACTERS = (
    "steps per episode",
    "words per instruction",
    "characters per instruction",
)
SHARE, AREA = "element, % of the screen", "element, px²"


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of a dataset.

    Attributes:
        episodes, steps: their numbers.
        targets: number of right answers per label, the most frequent first. A step with several
            actions has several labels.
        noun: the kind of label, e.g. "action".
        unlabelled: number of steps whose target is unusable or has no label.
        placed: number of steps whose target has a place on the screen.
        media: role -> its kind, and the number of steps with such a medium; roles that differ only
            in a final number are one ("observation_*").
        kinds: kind -> number of steps with a medium of it from their own moment
            (`Benchmark.other_moments` lists the other roles).
        measures: by name. `STEPS`; `WORDS` and `CHARACTERS` of each episode's distinct
            instructions; "seconds of ROLE" of clips and sounds, at most `CLIPS` of a role; `SHARE`
            and `AREA` of the tapped or clicked elements, see `element`.
    """

    episodes: int
    steps: int
    targets: Mapping[str, int]
    noun: str
    unlabelled: int
    placed: int
    media: Mapping[str, tuple[Modality, int]]
    kinds: Mapping[Modality, int]
    measures: Mapping[str, Measure]

    def as_dict(self) -> dict[str, Any]:
        """Return the statistics as JSON values."""
        return {
            "targets": dict(self.targets),
            "unlabelled": self.unlabelled,
            "placed": self.placed,
            "media": {
                role: {"kind": kind, "steps": count} for role, (kind, count) in self.media.items()
            },
            "measures": {name: found.summary() for name, found in self.measures.items()},
        }

    def tables(self) -> list[TextTable]:
        """Return targets, media and measures as tables, without empty ones."""
        found = []
        if self.targets:
            total = sum(self.targets.values())
            rows = [[name, str(n), share(n, total)] for name, n in self.targets.items()]
            rows += [["(steps without a label)", str(self.unlabelled), ""]] * bool(self.unlabelled)
            found.append(TextTable("Targets", ("", f"{self.noun}s", ""), rows))
        if self.media:
            rows = [
                [role, kind, str(count), share(count, self.steps)]
                for role, (kind, count) in self.media.items()
            ]
            found.append(TextTable("Media", ("", "kind", "steps", ""), rows))
        if not self.measures:
            return found
        header = ("", "known", "unknown", "min", "25 %", "median", "mean", "75 %", "max")
        rows = []
        for name, measure in self.measures.items():
            numbers = measure.summary()
            counts = [str(numbers.pop("known")), str(numbers.pop("unknown"))]
            rows.append([name, *counts, *(_format_number(number) for number in numbers.values())])
        return [*found, TextTable("Lengths and sizes", header, rows)]


def _format_number(number: float | None) -> str:
    if number is None:
        return "-"
    if number == int(number) or abs(number) >= 100:
        return f"{number:.0f}"
    return f"{number:.2f}" if abs(number) >= 1 else f"{number:.2g}"


def statistics(task: Asking, source: LoadedDataset) -> Statistics:
    """Return the statistics of a dataset; clips and sounds are not decoded, only their headers.

    Args:
        task: the benchmark.
        source: its loaded data.
    """
    tally = _Tally(task)
    for number, step in enumerate(source.steps):
        tally.add_target(step)
        tally.add_media(number, step)
    lengths = Counter(step.episode for step in source.steps)
    texts = dict.fromkeys((step.episode, step.instruction) for step in source.steps)
    measures = {STEPS: Measure(tuple(map(float, lengths.values())))} if lengths else {}
    return Statistics(
        episodes=len(lengths),
        steps=len(source.steps),
        targets=dict(sorted(tally.targets.items(), key=lambda item: (-item[1], item[0]))),
        noun=tally.noun,
        unlabelled=tally.unlabelled,
        placed=tally.placed,
        media=tally.media,
        kinds=tally.kinds,
        measures={
            **measures,
            **_instructions([text for _, text in texts]),
            **_seconds(source.steps, tally.tracks),
            **_elements(tally.sizes, tally.clicks),
        },
    )


class _Tally:
    """Counts steps one after the other; attributes are as in `Statistics`.

    Attributes:
        clicks: steps that tap or click.
        sizes: of the elements that they tap or click.
        tracks: role of clips or sounds -> the numbers of the steps that have one, and its name
            there.
    """

    def __init__(self, task: Asking) -> None:
        self.targets, self.kinds = Counter[str](), Counter[Modality]()
        self.noun, self.unlabelled, self.placed, self.clicks = "", 0, 0, 0
        self.sizes: list[_ElementSize] = []
        self.media: dict[str, tuple[Modality, int]] = {}
        self.tracks: dict[str, tuple[array[int], list[str]]] = {}
        self._task = task

    def add_target(self, step: Step) -> None:
        asked = _target(self._task, step)
        self.targets.update(asked.labels)
        self.noun = self.noun or (asked.noun if asked.labels else "")
        self.unlabelled += not asked.labels
        self.placed += bool(asked.places)
        self.clicks += asked.clicks
        if asked.clicks and (size := _largest(asked)):
            self.sizes.append(size)

    def add_media(self, number: int, step: Step) -> None:
        held: dict[str, Modality] = {}
        of_moment = set[Modality]()
        for role, ref in step.media.items():
            if ref is None:
                continue
            held[_role(role)] = ref.kind
            if role not in self._task.benchmark.card.other_moments:
                of_moment.add(ref.kind)
            if ref.kind != "image":
                numbers, names = self.tracks.setdefault(_role(role), (array("q"), []))
                numbers.append(number)
                names.append(role)
        self.kinds.update(of_moment)
        for role, kind in held.items():
            self.media[role] = kind, self.media.get(role, (kind, 0))[1] + 1


@dataclass(frozen=True, slots=True)
class _Target:
    screen: Screen
    labels: tuple[str, ...] = ()
    noun: str = "action"
    places: tuple[Region, ...] = ()
    clicks: bool = False


def _target(task: Asking, step: Step) -> _Target:
    action = step.action
    explained = task.explanation(step, None, "", profile=task.default_profile)
    labels = explained.target_labels or tuple(filter(None, [explained.target_label]))
    if action is not None:
        labels = labels or tuple(each.label for each in (action, *action.then))
        return _Target(step.screen, labels, "action", action.start, action.kind in _CLICKS)
    framed = [drawn.target for drawn in explained.overlays.values() if drawn.target]
    places = framed[0] if framed and explained.frames == "target" else ()
    return _Target(step.screen, labels, explained.noun, places, bool(places))


@lru_cache
def _role(role: str) -> str:
    return re.sub(r"\d+$", "*", role)


_IDEOGRAPH = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


def words(text: str) -> int:
    """Return the number of words: stretches between blanks with a letter or a digit.

    Papers count a path or a time of day as one word, too. In Chinese and Japanese, which have no
    blanks, every character is a word.

    Examples:
        >>> words("Don't open the drop-down."), words("点击暂停 now"), words("move ~/a/b.txt - now")
        (4, 5, 3)
    """
    between = (part for word in text.split() for part in _IDEOGRAPH.split(word))
    return len(_IDEOGRAPH.findall(text)) + sum(any(map(str.isalnum, part)) for part in between)


def _instructions(texts: Sequence[str]) -> dict[str, Measure]:
    said = [text for text in texts if text.strip()]
    if not said:
        return {}
    unsaid = len(texts) - len(said)
    return {
        WORDS: Measure(tuple(float(words(text)) for text in said), unsaid),
        CHARACTERS: Measure(tuple(float(len(text)) for text in said), unsaid),
    }


def _seconds(
    steps: Sequence[Step], tracks: Mapping[str, tuple[Sequence[int], Sequence[str]]]
) -> dict[str, Measure]:
    found = {}
    for role, (numbers, roles) in tracks.items():
        count = min(CLIPS, len(numbers))
        chosen = [place * len(numbers) // count for place in range(count)]
        refs = [ref for one in chosen if (ref := steps[numbers[one]].media[roles[one]])]
        known = [length for length in media.in_threads(_stated_seconds, refs) if length]
        found[f"seconds of {role}"] = Measure(tuple(known), len(numbers) - len(known))
    return found


def _stated_seconds(ref: MediaRef) -> float:
    try:
        return max(media.stated_seconds(ref) or 0.0, 0.0)
    except MediaError:
        return 0.0


_ElementSize = tuple[float | None, float | None]
"""See `element`."""

_CLICKS: Final = frozenset({"tap", "long_press"})


def element(task: Asking, step: Step) -> tuple[float | None, float | None] | None:
    """Return the size of the element that a step taps or clicks; None if the target is not a box.

    If several boxes are right, the largest counts.

    Returns:
        Its share of the screen and its area in pixels of the screenshot; None for a number that
        depends on an unknown size of the screen.
    """
    return _largest(_target(task, step))


def _largest(asked: _Target) -> _ElementSize | None:
    sizes = [_size(box, asked.screen) for box in asked.places if isinstance(box, Box)]
    if not (asked.clicks and sizes):
        return None
    return max(sizes, key=lambda size: [number or 0.0 for number in size])


def _size(box: Box, screen: Screen) -> _ElementSize:
    pixels = screen[0] * screen[1] if min(screen) > 0 else None
    if box.space == "px":
        wide, high = screen if pixels else (math.inf, math.inf)
    else:
        wide = high = ratio(box.space, 1)[1]
    size = _overlap(box.left, box.right, wide) * _overlap(box.top, box.bottom, high)
    if box.space == "px":
        return size / pixels if pixels else None, size
    part = size / (wide * high)
    return part, part * pixels if pixels else None


def _overlap(low: float, high: float, most: float) -> float:
    return max(0, min(high, most) - max(low, 0))


def _elements(sizes: Sequence[_ElementSize], clicks: int) -> dict[str, Measure]:
    if not sizes:
        return {}
    shares = tuple(100 * part for part, _ in sizes if part is not None)
    areas = tuple(area for _, area in sizes if area is not None)
    return {
        SHARE: Measure(shares, clicks - len(shares)),
        AREA: Measure(areas, clicks - len(areas)),
    }


# Table 1 of OmniGUI: several datasets, a row each.


def comparison(rows: Sequence[tuple[Asking, LoadedDataset, Statistics]]) -> TextTable:
    """Return datasets side by side, as in OmniGUI's Table 1.

    The paper's column about tasks designed by hand is missing: no data have it. The columns of the
    modalities replace "Per-Step": a tick is a medium at every step.

    Args:
        rows: each dataset with its benchmark and its statistics.
    """
    legend = {
        "✓": "at every step, of its own moment",
        "✗": "at none",
        "a share": "of the steps that have one",
    }
    header = (
        "", "data", "platform", "tasks", "steps", "steps/task", "words", "apps", "languages",
        "image", "video", "audio", "answer",
    )  # fmt: skip
    return TextTable(
        "Datasets side by side", header, [_comparison_row(*row) for row in rows], legend
    )


def _comparison_row(task: Asking, source: LoadedDataset, found: Statistics) -> list[str]:
    tags = {
        name: {step.tags[name] for step in source.steps if step.tags.get(name)}
        for name in ("platform", "language")
    }
    apps = {task.benchmark.wordings.application(step) for step in source.steps}
    means = [
        _format_number(found.measures[name].summary()["mean"]) if name in found.measures else "-"
        for name in (STEPS, WORDS)
    ]
    return [
        task.benchmark.card.title,
        source.root.resolve().name,
        ", ".join(sorted(tags["platform"])) or task.benchmark.card.platform or "-",
        str(found.episodes),
        str(found.steps),
        *means,
        "-"
        if "" in apps
        else str(len({task.benchmark.wordings.spelling("app", app) for app in apps})),
        ", ".join(sorted(tags["language"])) or "-",
        *(_tick(found.kinds.get(kind, 0), found.steps) for kind in get_args(Modality)),
        "coordinates" if found.placed else "text",
    ]


def _tick(part: int, whole: int) -> str:
    return "✗" if not part else "✓" if part == whole else share(part, whole)


# A figure of any dataset: a panel for the actions, and one for each measure.

_MOST: Final = 20
_COLUMNS: Final = 3


def figure(source: LoadedDataset, found: Statistics) -> Figure:
    """Draw bars of the actions, bars of each tag with several values, and histograms of measures.

    Areas of elements are on a logarithmic scale, without zeros.

    Args:
        source: the data, with at least one step.
        found: their statistics.

    Returns:
        A figure with a titled panel for each.
    """
    from matplotlib.figure import Figure

    tags = {
        tag: Counter(step.tags.get(tag, "(none)") for step in source.steps) for tag in source.tags
    }
    bars: dict[str, Mapping[str, int]] = {}
    if found.targets:
        bars[f"{found.noun}s"] = found.targets
    bars |= {f"steps by {tag}": counts for tag, counts in tags.items() if len(counts) > 1}
    drawn = {name: measure for name, measure in found.measures.items() if measure.values}
    count = len(bars) + len(drawn)
    high = -(-count // _COLUMNS)
    made = Figure(figsize=(4.6 * _COLUMNS, 3.4 * high), layout="constrained")
    panels = iter(made.subplots(high, _COLUMNS, squeeze=False).flat)
    for name, counts in bars.items():
        _bars(next(panels), name, counts)
    for name, measure in drawn.items():
        _histogram(next(panels), name, measure)
    for empty in panels:
        made.delaxes(empty)
    made.suptitle(f"{found.episodes:,} episodes, {found.steps:,} steps")
    return made


def _bars(axes: Axes, name: str, counts: Mapping[str, int]) -> None:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    shown, rest = ordered[:_MOST], ordered[_MOST:]
    if rest:
        shown.append((f"{len(rest)} others", sum(number for _, number in rest)))
    families, written = spellings(label for label, _ in shown)
    bars = axes.barh(range(len(shown)), [number for _, number in shown], color=_BLUE)
    axes.bar_label(bars, padding=2, fontsize=7)
    axes.set_yticks(
        range(len(shown)),
        [written[label][:_LONGEST] for label, _ in shown],
        fontfamily=families,
        fontsize=7,
        parse_math=False,
    )
    axes.invert_yaxis()
    axes.margins(x=0.15)
    _set_title(axes, name)


def _histogram(axes: Axes, name: str, measure: Measure) -> None:
    import numpy as np

    values = np.array(measure.values)
    edges: Any = 30
    if name in (SHARE, AREA):
        values = values[values > 0]
        if len(values) and values.min() < values.max():
            edges = np.geomspace(values.min(), values.max(), 31)
            axes.set_xscale("log")
    elif (values == values.astype(int)).all() and values.max() - values.min() < 60:
        edges = np.arange(values.min() - 0.5, values.max() + 1.5)
    if len(values):
        axes.hist(values, bins=edges, color=_BLUE)
        axes.axvline(float(np.median(values)), color="black", linestyle=":", linewidth=1)
    _set_title(axes, name)


_BLUE: Final = "#0072B2"
_LONGEST: Final = 28


def _set_title(axes: Axes, name: str) -> None:
    axes.set_title(name, loc="left", fontsize=9, parse_math=False)
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
