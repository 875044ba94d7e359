"""The tables of a benchmark's paper: their shapes and published numbers.

The papers do not confirm that their numbers follow the rules of our profiles, nor on which steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Literal

import msgspec


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table with a row per run.

    Attributes:
        name: of the table; the main table is called "main". Several tables may have the same name:
            the one whose axis the results have is shown.
        title: of the table.
        axis: of `by` in `results.json`.
        groups: group -> header; other groups follow under their own names.
        whole: header of the column over all steps.
        whole_last: whether that column is last.
        per: common part of the columns under a header: all metrics of a group, as in OmniGUI, or
            all groups of a metric, as in AgentStudio.
        most: number of metrics per group, from the first; None: all.
        like: the table of the paper.
        profiles: its profiles; empty: all.
        varied: name of the groups if tables of runs that differ in one option (see `Variation`)
            have this shape; empty: they have the shape of the main table.
        rising: whether the groups are levels, each compared with the previous one.
    """

    name: str
    title: str
    axis: str
    groups: Mapping[str, str] = field(default_factory=dict)
    whole: str = "Overall"
    whole_last: bool = False
    per: Literal["group", "metric"] = "group"
    most: int | None = None
    like: str = ""
    profiles: Sequence[str] = ()
    varied: str = ""
    rising: bool = False


@dataclass(frozen=True, slots=True)
class Variation:
    """A task option in which the rows of a table differ.

    Attributes:
        option: its name.
        base: the value that the others are compared with.
        values: value -> its name in the paper; other values are shown as they are.
        other: text before a value without a name.
        title: of the table.
        label: header of the column with the value.
        besides: options without effect if this one has its base value.
        across: whether marks compare groups, not a model's rows.
        axis: of `by` in `results.json`, whose groups are the columns; empty: those of the tables.
        wordings: whether the values are wordings of the same instruction, which should not change
            answers.
    """

    option: str
    base: str
    values: Mapping[str, str]
    title: str
    label: str
    other: str = ""
    besides: frozenset[str] = frozenset()
    across: bool = False
    axis: str = ""
    wordings: bool = False

    def wording(self, value: str) -> str:
        """Return the value as the table shows it."""
        return self.values.get(value) or " ".join(filter(None, (self.other, value)))

    def value(self, options: Mapping[str, str]) -> str:
        """Return the value in task options."""
        return str(options.get(self.option, self.base))


HISTORY = Variation(
    "history",
    "gold",
    {"gold": "Gold", "predicted": "Predicted", "none": "None"},
    "History of gold and of predicted actions",
    "History",
)
"""For all benchmarks whose prompts show earlier actions."""

Key = tuple[str, str]
"""Group, empty for all steps together, and metric."""


class PublishedRow(msgspec.Struct, frozen=True):
    """A published row.

    Attributes:
        table: the name of a `TableSpec`, the option of a `Variation`, or the axis of a table with a
            row per group.
        model: as printed.
        options: of the task, if they change the question.
        source: the table of the paper.
        steps: how many the numbers are over; None if not stated.
        values: by group and metric, in the metric's unit; shares as fractions.
        digits: the paper's number of decimals per value; default: ours.
        profiles: profiles with the rules of the numbers; empty: all profiles of the task.
    """

    table: str
    model: str
    options: Mapping[str, str]
    source: str
    steps: int | None
    values: Mapping[Key, float]
    digits: Mapping[Key, int] = {}
    profiles: Sequence[str] = ()

    def has_rules_of(self, profile: str) -> bool:
        """Return whether the numbers follow the rules of the profile, strict or lenient."""
        return _has_rules_of(self.profiles, profile)


def _has_rules_of(profiles: Sequence[str], profile: str) -> bool:
    return not profiles or profile.partition("+")[0] in profiles


class Best(msgspec.Struct, frozen=True):
    """The best published score of one metric.

    Attributes:
        score: a fraction for shares; the lowest value for distances.
        model: with this score.
        table: of the paper.
    """

    score: float
    model: str
    table: str


class BestScores(msgspec.Struct, frozen=True):
    """The best published scores of a task in one setting.

    Attributes:
        steps: of the scored data.
        options: the task options of the setting; other options do not matter.
        metrics: by name.
        profiles: profiles with the rules of the scores; empty: all profiles of the task.
    """

    steps: int
    options: Mapping[str, str]
    metrics: Mapping[str, Best]
    profiles: Sequence[str] = ()

    def has_rules_of(self, profile: str) -> bool:
        """Return whether the scores follow the rules of the profile, strict or lenient."""
        return _has_rules_of(self.profiles, profile)


@dataclass(frozen=True, slots=True)
class Published:
    """The published numbers of a task.

    Attributes:
        rows: of tables.
        settings: the best scores of each setting.
        notes: profile -> metric -> a note for tables with runs of the profile and published values
            of the metric.
    """

    rows: Sequence[PublishedRow] = ()
    settings: Sequence[BestScores] = ()
    notes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def of(self, table: str) -> list[PublishedRow]:
        """Return the rows of a table."""
        return [row for row in self.rows if row.table == table]

    def best(self, options: Mapping[str, str]) -> BestScores | None:
        """Return the best scores in the setting of task options; None if there are none."""
        return next((s for s in self.settings if s.options.items() <= options.items()), None)


class _Printed(msgspec.Struct, frozen=True):
    """Numbers keep the paper's decimals; `digits` counts them where zeros end a number."""

    task: str
    table: str
    source: str
    steps: int | None
    metrics: list[str]
    groups: list[str]
    rows: list[list[str | dict[str, str] | list[float | None]]]
    digits: int | None = None
    profiles: list[str] = []


class _File(msgspec.Struct, frozen=True):
    notes: dict[str, dict[str, str]] = {}
    best: dict[str, list[BestScores]] = {}
    tables: list[_Printed] = []


@cache
def read_published(package: str, task: str) -> Published:
    """Read the published numbers of a task from the `published.json` of its package.

    Args:
        package: name of the package that contains the file.
        task: one of the benchmark's.

    Examples:
        >>> found = read_published("omnidata.tasks.omnigui", "omnigui").of("main")[0]
        >>> found.model, found.values["", "EM"], found.source
        ('Gemini 3 Pro', 0.636, 'OmniGUI, Table 3')
    """
    text = resources.files(package).joinpath("published.json").read_bytes()
    found = msgspec.json.decode(text, type=_File)
    rows = [row for each in found.tables if each.task == task for row in _rows(each)]
    return Published(rows, found.best.get(task, []), found.notes)


def decimals(value: float) -> int:
    """Return the number of decimals in the shortest form of a number.

    Examples:
        >>> decimals(1.95), decimals(80.0), decimals(7)
        (2, 1, 0)
    """
    return len(repr(value).partition(".")[2])


def _rows(printed: _Printed) -> list[PublishedRow]:
    found = []
    for model, options, *groups in printed.rows:
        numbers = {
            (group, metric): value
            for group, listed in zip(printed.groups, groups, strict=True)
            for metric, value in zip(printed.metrics, listed, strict=True)
            if isinstance(value, float | int)
        }
        digits = printed.digits
        found.append(
            PublishedRow(
                printed.table,
                str(model),
                msgspec.convert(options, dict[str, str]),
                printed.source,
                printed.steps,
                {key: round(value / 100, 6) for key, value in numbers.items()},
                {key: digits or decimals(value) for key, value in numbers.items()},
                printed.profiles,
            )
        )
    return found
