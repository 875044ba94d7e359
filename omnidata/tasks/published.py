"""The tables of a benchmark's paper: their shapes, and what is published in them.

Nobody has confirmed that published numbers were scored as profiles score, nor on which steps.
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
        name: of the table; a benchmark's main table is called "main". Of several with one name
            that one is shown whose axis the results have.
        title: what it shows.
        axis: of `by` in `results.json`.
        groups: group -> header; others of the data follow under their own names.
        whole: the header of all steps together.
        whole_last: whether that stands at the end.
        per: what the columns under one header have in common: OmniGUI's tables have all metrics of
            a group there, AgentStudio's all groups of a metric.
        most: so many metrics are shown of each group, the first ones; None: all.
        like: the table of the paper.
        profiles: that it is of; none: of all.
        varied: what the groups are called where tables of runs that differ in one option (see
            `Variation`) have this shape; empty: they have that of the main table.
        rising: whether the groups are levels, and each is compared with the one before it.
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
    """A task option that the rows of a table differ in.

    Attributes:
        option: its name.
        base: the value that the others are compared with.
        values: value -> how the paper calls it; others are called by their value.
        other: what a value without a name is called, before the value itself.
        title: of the table.
        label: header of the column with the value.
        besides: options that mean nothing where this one has its base value.
        across: whether marks go across groups, not down a model's rows.
        axis: of `by` in `results.json`, whose groups are the columns; empty: those of the tables.
        wordings: whether the values say the same in other words, to which an answer should not be
            sensitive.
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

    def called(self, value: str) -> str:
        """The value as the table has it."""
        return self.values.get(value) or " ".join(filter(None, (self.other, value)))

    def value(self, options: Mapping[str, str]) -> str:
        """The value that task options have."""
        return str(options.get(self.option, self.base))


HISTORY = Variation(
    "history",
    "gold",
    {"gold": "Gold", "predicted": "Predicted", "none": "None"},
    "History of gold and of predicted actions",
    "History",
)
"""Of any benchmark whose prompts show earlier actions."""

Key = tuple[str, str]
"""Group, empty for all steps together, and metric."""


class PublishedRow(msgspec.Struct, frozen=True):
    """A published row.

    Attributes:
        table: the name of a `TableSpec`, the option of a `Variation`, or the axis of a table with a
            row per group.
        model: as printed.
        options: of the task, where they change what is asked.
        source: the table of the paper.
        steps: that the numbers are over; None where that is not said.
        values: by group and metric, in the metric's unit; shares as fractions.
        digits: how many decimals the paper prints of each of them; of others as many as ours.
        profiles: whose rules the numbers have; none: nobody knows other rules than the task's.
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
        """Whether the row may stand beside runs of the profile, however answers were read there."""
        return not self.profiles or profile.partition("+")[0] in self.profiles


class Best(msgspec.Struct, frozen=True):
    """The best published score of one metric.

    Attributes:
        score: a fraction for shares; for distances the lowest, as it is.
        model: who reached it.
        table: where it is printed.
    """

    score: float
    model: str
    table: str


class BestScores(msgspec.Struct, frozen=True):
    """The best that is published of a task in one setting.

    Attributes:
        steps: of the data that the scores were made on.
        options: the task options of the setting; other options make no difference here.
        metrics: by name.
    """

    steps: int
    options: Mapping[str, str]
    metrics: Mapping[str, Best]


@dataclass(frozen=True, slots=True)
class Published:
    """What is published of a task.

    Attributes:
        rows: of tables.
        settings: the best scores, for each setting apart.
        notes: profile -> metric -> what a reader must know where a run of the profile stands beside
            published values of the metric.
    """

    rows: Sequence[PublishedRow] = ()
    settings: Sequence[BestScores] = ()
    notes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def of(self, table: str) -> list[PublishedRow]:
        """The rows of a table."""
        return [row for row in self.rows if row.table == table]

    def best(self, options: Mapping[str, str]) -> BestScores | None:
        """The best scores in the setting of task options; None where there are none."""
        return next((s for s in self.settings if s.options.items() <= options.items()), None)


class _Printed(msgspec.Struct, frozen=True):
    """A table of the file; its rows are model, options and a list of metrics per group.

    Numbers have the decimals of the paper; `digits` says how many where zeros end them.
    """

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
    """What the `published.json` of a benchmark's package says of a task.

    Args:
        package: the name of the package, in whose folder the file lies.
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
    """How many decimals a number has as it is written.

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
