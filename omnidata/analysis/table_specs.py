"""Which tables a benchmark has, with the headers of its paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

import msgspec

from omnidata.analysis.tables import LOWER_IS_BETTER, Cell, Column, Head, Row
from omnidata.run.scoring import Run

_DIMENSIONS = {
    "localization": "Localization",
    "semantic_understanding": "Semantic Understand.",
    "cross_modal_discrimination": "Cross-modal Discr.",
    "temporal_reasoning": "Temporal Reason.",
    "instant_response": "Instant Resp.",
}
_DEPENDENCIES = {
    "critical": "AV-Critical",
    "supportive": "AV-Supportive",
    "present": "AV-Present",
}
_PLATFORMS = {"web": "Web", "desktop": "Desktop", "mobile": "Mobile"}
_SOURCES = {"mind2web": "M2W", "aitw": "AITW", "vwa": "VWA", "agent_studio": "AS"}
_CAPABILITIES = {
    "Parallel Planning": "PP",
    "Long-Range Planning": "LRP",
    "Cross-Domain Decision-Making": "CDDK",
    "Sequential Decision-Making": "SDK",
    "Subtask Identification": "SI",
    "Dependency Identification": "DI",
    "Long-Sequence Reasoning": "LSR",
    "Long Instruction Following": "LIF",
    "Domain-Specific Knowledge": "DSK",
    "Cross-Domain Knowledge": "CDK",
}
_LEVELS = {"easy": "Easy", "medium": "Medium", "hard": "Hard"}


@dataclass(frozen=True, slots=True)
class Shape:
    """A table with a row per run.

    Attributes:
        name: of the table.
        title: what it shows.
        axis: of `by` in `results.json`.
        groups: group -> header; others of the data follow under their own names.
        whole: the header of all steps together.
        whole_last: whether that stands at the end.
        per: what the columns under one header have in common: OmniGUI's tables have all metrics of
            a group there, AgentStudio's all groups of a metric.
        most: so many metrics are shown of each group, the first ones; None: all.
        like: the table of the paper.
    """

    name: str
    title: str
    axis: str
    groups: Mapping[str, str]
    whole: str = "Overall"
    whole_last: bool = False
    per: Literal["group", "metric"] = "group"
    most: int | None = None
    like: str = ""

    def heads(self, runs: Sequence[Run], shares: Run | None = None) -> tuple[Head, ...]:
        """The columns that any of the runs has something for.

        Args:
            runs: of one task and profile.
            shares: the run whose shares of episodes stand beside the groups' headers.
        """
        units = runs[0].columns
        shown = list(units)[: self.most]
        groups = [("", self.whole), *self.present(runs)]
        if self.whole_last:
            groups = groups[1:] + groups[:1]
        if self.per == "metric":
            return tuple(
                Head(
                    metric,
                    tuple(Column(header, metric, units[metric], name) for name, header in groups),
                )
                for metric in units
            )
        return tuple(
            Head(
                header + (_share(shares, self.axis, name) if shares else ""),
                tuple(
                    Column(metric, metric, units[metric], name)
                    for metric in (shown if name else units)
                ),
            )
            for name, header in groups
        )

    def present(self, runs: Sequence[Run]) -> Iterator[tuple[str, str]]:
        """The groups that a run has, and their headers."""
        found = [name for run in runs for name in run.results["by"].get(self.axis, {})]
        names = dict.fromkeys([name for name in self.groups if name in found] + found)
        for name in names:
            yield name, self.groups.get(name, name)


def _share(run: Run, axis: str, group: str) -> str:
    """The group's share of episodes, as the paper's Table 4 has it in its header."""
    of = run.results["by"].get(axis, {}).get(group, {}) if group else run.results["counts"]
    total = run.results["counts"].get("episodes")
    part = of.get("episodes")
    return f" ({100 * part / total:.1f}%)" if total and part is not None else ""


DEPENDENCY = Shape(
    "dependency",
    "Dependency levels",
    "dependency",
    _DEPENDENCIES,
    whole_last=True,
    like="OmniGUI, Table 4",
)
_GROUNDUI = Shape(
    "main", "Results by platform", "platform", _PLATFORMS, "Total", True, "metric",
    like="AgentStudio, Table 4",
)  # fmt: skip
_IDM = Shape(
    "main", "Results by source", "source", _SOURCES, "Total", True, "metric",
    like="AgentStudio, Tables 5 and 9",
)  # fmt: skip
_CRITIC = Shape(
    "main", "Results by platform", "platform", _PLATFORMS, "Total", True, "metric",
    like="AgentStudio, Tables 6 and 10",
)  # fmt: skip
_COMPLEXITY = tuple(
    Shape(
        dimension,
        f"Complexity of {dimension}",
        dimension,
        _LEVELS,
        most=1,
        like="OmniBench, Table 5",
    )
    for dimension in ("dependency", "branch", "instruction", "knowledge", "hierarchy")
)
_SHAPES: Mapping[str, tuple[Shape, ...]] = {
    "omnigui": (
        Shape("main", "Main results", "dimension", _DIMENSIONS, like="OmniGUI, Table 3"),
        DEPENDENCY,
    ),
    "groundui": (_GROUNDUI,),
    "idm-single": (_IDM,),
    "idm-multiple": (_IDM,),
    "criticbench": (_CRITIC,),
}


def shapes(run: Run) -> tuple[Shape, ...]:
    """The tables of a run's task, the main one first."""
    if run.task in _SHAPES:
        return _SHAPES[run.task]
    by = run.results["by"]
    if "eligible" in by:  # OmniBench's graphs
        axis = "capability" if "capability" in by else "eligible"
        title = "Capabilities" if axis == "capability" else "Capabilities that Table 11 admits"
        main = Shape(
            "main", title, axis, _CAPABILITIES, most=1,
            like="OmniBench, Table 4",
        )  # fmt: skip
        return (main, *_COMPLEXITY)
    axis = next(iter(by), "")
    return (Shape("main", "Main results", axis, {}),)


# Rows of published tables, to stand beside a user's runs.
#
# Nobody has confirmed that the published numbers were scored as these profiles score, nor on which
# steps: the groups of OmniGUI's tables fit 699 of its 709 episodes, and Overall fits all of them.

Key = tuple[str, str]
"""Group, empty for all steps together, and metric."""


class Figures(msgspec.Struct, frozen=True):
    """A published row.

    Attributes:
        model: as printed.
        options: of the task, where they change what is asked.
        source: the table.
        steps: that the numbers are over; None where that is not said.
        values: by group and metric: fractions, or edits.
    """

    model: str
    options: Mapping[str, str]
    source: str
    steps: int | None
    values: Mapping[Key, float]


class _Printed(msgspec.Struct, frozen=True):
    """A table of `published.json`; its rows are model, options and a list of metrics per group."""

    task: str
    table: str
    source: str
    steps: int | None
    axis: str
    metrics: list[str]
    groups: list[str]
    rows: list[list[str | dict[str, str] | list[float | None]]]


class _File(msgspec.Struct, frozen=True):
    about: str
    tables: list[_Printed]


def figures(task: str, table: str, runs: Sequence[Run] = ()) -> list[Figures]:
    """The published rows of a table.

    Args:
        task: the benchmark.
        table: "main", or the option that the rows differ in.
        runs: of the task; of CriticBench those settings are shown that the runs have.

    Examples:
        >>> row = figures("omnigui", "main")[0]
        >>> row.model, row.values["", "EM"], row.source
        ('Gemini 3 Pro', 0.636, 'OmniGUI, Table 3')
    """
    if task == "criticbench":
        asked = {run.settings.get("options", {}).get("observations_only", "false") for run in runs}
        return [row for row in _all(task, table) if row.options["observations_only"] in asked]
    return list(_all(task, table))


def row(of: Figures, labels: tuple[str, ...], columns: Sequence[Column]) -> Row:
    """The figures as a line of a table; a dash where nothing is published."""
    cells = tuple(Cell(of.values.get((column.group, column.metric))) for column in columns)
    return Row(labels, cells, source=of.source)


@cache
def _all(task: str, table: str) -> tuple[Figures, ...]:
    if task in _AGENTSTUDIO:
        return tuple(_agentstudio(task)) if table == "main" else ()
    text = resources.files("omnidata.analysis").joinpath("published.json").read_bytes()
    printed = msgspec.json.decode(text, type=_File).tables
    found = [each for each in printed if (each.task, each.table) == (task, table)]
    return tuple(figure for each in found for figure in _read(each))


def _read(printed: _Printed) -> list[Figures]:
    found = []
    for model, options, *groups in printed.rows:
        values = {
            (group, metric): round(value / 100, 6)
            for group, numbers in zip(printed.groups, groups, strict=True)
            for metric, value in zip(printed.metrics, numbers, strict=True)
            if isinstance(value, float | int)
        }
        found.append(
            Figures(
                str(model),
                msgspec.convert(options, dict[str, str]),
                printed.source,
                printed.steps,
                values,
            )
        )
    return found


_AGENTSTUDIO: Mapping[str, tuple[tuple[str, str, str, Mapping[str, str]], ...]] = {
    "groundui": (("table4_groundui_accuracy", "accuracy", "Table 4", {}),),
    "idm-single": (("table5_idm_single_accuracy", "accuracy", "Table 5", {}),),
    "idm-multiple": (
        ("table5_idm_multiple_accuracy", "accuracy", "Table 5", {}),
        ("table9_idm_multiple_edit_distance", "edit_distance", "Table 9", {}),
    ),
    "criticbench": (
        (
            "table10_criticbench_observation_action", "", "Table 10",
            {"observations_only": "false"},
        ),
        (
            "table10_criticbench_observations_only", "", "Table 10",
            {"observations_only": "true"},
        ),
    ),
}  # fmt: skip
"""Task -> table of the file, its metric (empty: each model has several), its number, options."""


def _agentstudio(task: str) -> list[Figures]:
    """AgentStudio's rows; a model of two tables has one row, with the values of both."""
    text = (
        resources.files("omnidata.tasks.agentstudio").joinpath("published_tables.json").read_bytes()
    )
    tables = msgspec.json.decode(text)
    found: dict[tuple[str, str], Figures] = {}
    for name, metric, number, options in _AGENTSTUDIO[task]:
        table = tables[name]
        sizes = table.get("rows") or table["success"]
        steps = sum(sizes.values()) + sum(table.get("failure", {}).values())
        for model, numbers in table["models"].items():
            values = {
                ("" if group == "total" else group, each): _fraction(each, value)
                for each, by in ({metric: numbers} if metric else numbers).items()
                if each not in ("tp", "fp")
                for group, value in by.items()
            }
            key = _same(model), str(options)
            before = found.get(key)
            sources = [before.source] if before else []
            source = " and ".join([*sources, number if before else f"AgentStudio, {number}"])
            found[key] = Figures(
                before.model if before else model,
                options,
                source,
                steps,
                {**(before.values if before else {}), **values},
            )
    return list(found.values())


def _fraction(metric: str, value: float) -> float:
    return value if metric in LOWER_IS_BETTER else round(value / 100, 6)


def _same(model: str) -> str:
    """The model without the date that only some tables print."""
    return model.partition(" (")[0]
