"""Which tables a benchmark has, with the headers of its paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from omnidata.report.tables import Column, Head
from omnidata.run.scored import Run

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
