"""The five dimensions of a task graph's complexity, and the capabilities that it can test.

OmniBench's section 3.1 and Table 2 define the dimensions and their levels; Table 11, included as
data, has the levels of the test tasks of the ten capabilities.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final, Literal, get_args

from omnidata.graphs import Graph, largest_antichain

Dimension = Literal["dependency", "instruction", "knowledge", "hierarchy", "branch"]
Level = Literal["easy", "medium", "hard"]
DIMENSIONS: Final[tuple[Dimension, ...]] = get_args(Dimension)
LEVELS: Final[tuple[Level, ...]] = get_args(Level)

LIMITS: Final[Mapping[Dimension, tuple[int, int]]] = {
    "dependency": (1, 3),
    "instruction": (2, 4),
    "knowledge": (1, 3),
    "hierarchy": (2, 4),
    "branch": (2, 4),
}
"""The largest value that is easy and the largest that is medium (Table 2)."""


@dataclass(frozen=True, slots=True)
class Complexity:
    """The counts of Table 2.

    Attributes:
        dependency: edges as given, including those implied by a longer path.
        instruction: nodes.
        knowledge: distinct categories of the applications.
        hierarchy: nodes on the longest path.
        branch: the width as the largest set of nodes that can run at once: an antichain.
        largest_level: the other reading of width, the most nodes of one depth; at most `branch`.
    """

    dependency: int
    instruction: int
    knowledge: int
    hierarchy: int
    branch: int
    largest_level: int

    def levels(self) -> dict[Dimension, Level]:
        """Return each dimension's level.

        Examples:
            >>> Complexity(4, 5, 2, 3, 2, 2).levels()
            {'dependency': 'hard', 'instruction': 'hard', 'knowledge': 'medium',
            'hierarchy': 'medium', 'branch': 'easy'}
        """
        return {dimension: level(dimension, getattr(self, dimension)) for dimension in DIMENSIONS}


def complexity(
    graph: Graph, applications: Mapping[str, str], categories: Mapping[str, str]
) -> Complexity:
    """Measure a task graph.

    Args:
        graph: the task.
        applications: node -> application, for every node.
        categories: application -> category; any other application is its own category.

    Examples:
        >>> graph = Graph.read({"a": ["c"], "b": ["c"]}, where="task 1")
        >>> complexity(graph, dict.fromkeys("abc", "Word"), {"Word": "Office"})
        Complexity(dependency=2, instruction=3, knowledge=1, hierarchy=2, branch=2, largest_level=2)
    """
    used = {applications[node] for node in graph.nodes}
    depths = graph.depths().values()
    return Complexity(
        dependency=len(graph.edges),
        instruction=len(graph.nodes),
        knowledge=len({categories.get(name, name) for name in used}),
        hierarchy=max(depths),
        branch=largest_antichain(graph.ancestors()),
        largest_level=max(Counter(depths).values()),
    )


def level(dimension: Dimension, value: int) -> Level:
    """Return the level of a measured value (Table 2).

    Examples:
        >>> level("branch", 2), level("branch", 4), level("branch", 5)
        ('easy', 'medium', 'hard')
    """
    easy, medium = LIMITS[dimension]
    return "easy" if value <= easy else "medium" if value <= medium else "hard"


@cache
def capabilities() -> Mapping[str, Mapping[Dimension, Level]]:
    """Return Table 11: capability -> levels of its test tasks; other dimensions are free."""
    text = (
        resources.files("omnidata.metrics").joinpath("graph_capabilities.json").read_text("utf-8")
    )
    return {
        name: {dimension: LEVELS[count - 1] for dimension, count in stars.items() if count}
        for name, stars in json.loads(text)["stars"].items()
    }


def eligible(measured: Complexity) -> tuple[str, ...]:
    """Return the capabilities that a task could test, in the order of Table 11.

    The paper's annotators chose among eligible tasks, so the graph does not determine a task's own
    capability; three pairs of capabilities require the same levels.

    Examples:
        >>> eligible(Complexity(4, 4, 1, 5, 2, 2))
        ('Long-Range Planning',)
    """
    found = measured.levels().items()
    return tuple(name for name, wanted in capabilities().items() if wanted.items() <= found)
