"""OmniBench's graph-based evaluation: node states, Coverage Rate and Logical Consistency.

Section 4.1 of the paper. The released code has neither metric; what it scores instead stands beside
them (`graph_release`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Any, Final, Literal

import numpy as np

from omnidata.errors import DataError
from omnidata.graphs import Graph
from omnidata.metrics.classification import Floats, Ints
from omnidata.metrics.graph_coherence import CAP, Bounds, coherence, most_coherent, separated
from omnidata.metrics.graph_complexity import (
    DIMENSIONS,
    LEVELS,
    Complexity,
    capabilities,
    complexity,
    eligible,
    largest_antichain,
)
from omnidata.metrics.intervals import named_methods
from omnidata.metrics.row_tables import means

# Completion and coherence as OmniBench's released code scores them; neither is the paper's metric.
#
# Both definitions are the code's: it holds no CR and no LC.


def completion(graph: Graph, executed: Sequence[str]) -> float:
    """The share of the graph's levels that the release counts as completed.

    Depths start at 1, but the release looks at levels 0 to depth - 1 and stops at the first that is
    not completed. It never looks at the deepest: one level, or all but the deepest, is all.

    Args:
        graph: the task.
        executed: nodes in the order of their completion.

    Examples:
        >>> completion(Graph.read({"a": ["b"], "b": ["c"]}, where="task 1"), ["a", "b"])
        1.0
        >>> completion(Graph(("a",), ()), [])
        1.0
    """
    depths = graph.depths()
    depth = max(depths.values())
    left = [depths[node] for node in set(graph.nodes).difference(executed)]
    first = min(left, default=depth)
    return 1.0 if first == depth else (first - 1) / depth


def run_coherence(graph: Graph, applications: Mapping[str, str], executed: Sequence[str]) -> float:
    """The longest run within one application, held against the longest of all orders.

    The release takes one from both, and gives 0 where nothing is left below the line.

    Args:
        graph: the task.
        applications: node -> application, for every node.
        executed: nodes in the order of their completion.

    Examples:
        >>> graph = Graph(("a", "b", "c", "d"), ())
        >>> used = {"a": "Word", "b": "Word", "c": "Mail", "d": "Mail"}
        >>> run_coherence(graph, used, ["a", "c", "d"]), run_coherence(graph, used, ["a", "c"])
        (1.0, 0.0)
    """
    possible = longest_possible_run(graph, applications)
    if possible == 1 or not executed:
        return 0.0
    return (longest_run(executed, applications) - 1) / (possible - 1)


def longest_run(sequence: Sequence[str], applications: Mapping[str, str]) -> int:
    """How many subtasks in a row belong to one application, at most."""
    return max(
        (len(list(run)) for _, run in groupby(sequence, applications.__getitem__)), default=0
    )


def longest_possible_run(graph: Graph, applications: Mapping[str, str]) -> int:
    """The longest run within one application that a topological order has.

    The release finds it by enumerating all orders. Subtasks of one application can be done in a
    row if and only if no path from one to another leaves the application, and leaving it is a
    strict order: the answer is an application's largest antichain in `separated`.
    """
    members: dict[str, int] = {}
    for place, node in enumerate(graph.nodes):
        members[applications[node]] = members.get(applications[node], 0) | 1 << place
    beyond = separated(graph, applications)
    return max(largest_antichain(beyond, among) for among in members.values())


State = Literal["Waiting", "Evaluating", "Completed"]
ProfileName = Literal["omnibench-paper", "omnibench-release"]
DEFAULT_PROFILE: Final[ProfileName] = "omnibench-paper"


def states(graph: Graph, executed: Sequence[str]) -> dict[str, State]:
    """Each node's state once some subtasks are completed.

    A node is evaluated as soon as all that it waits for are completed.

    Args:
        graph: the task.
        executed: the completed nodes in a valid order, which may stop early.

    Examples:
        >>> states(Graph.read({"a": ["b"], "b": ["c"]}, where="task 1"), ["a"])
        {'a': 'Completed', 'b': 'Evaluating', 'c': 'Waiting'}
    """
    done = set(executed)
    found: dict[str, State] = {}
    for node in graph.nodes:
        ready = done.issuperset(graph.predecessors[node])
        found[node] = "Completed" if node in done else "Evaluating" if ready else "Waiting"
    return found


def coverage(graph: Graph, executed: Sequence[str]) -> Fraction:
    """CR: the completed share of the subtasks, weighted by depth.

    The paper normalises the weights twice, which cancels out. Depths start at 1: from 0, the roots
    would count for nothing.

    Args:
        graph: the task.
        executed: the completed nodes in a valid order, which may stop early.

    Examples:
        >>> coverage(Graph.read({"a": ["b"], "b": ["c"]}, where="task 1"), ["a", "b"])
        Fraction(1, 2)
    """
    depths = graph.depths()
    return Fraction(sum(depths[node] for node in executed), sum(depths.values()))


@dataclass(frozen=True, slots=True)
class TaskScore:
    """One task and what was done of it.

    Attributes:
        cr: Coverage Rate.
        cs_agent: coherence of what was done.
        cs_max: the most that an order of the whole task has.
        completion, run_coherence: what the released code scores.
        complexity: of the task.
        applications: distinct, in the order of the nodes.
        categories: of these, distinct.
    """

    cr: Fraction
    cs_agent: int
    cs_max: Bounds[int]
    completion: float
    run_coherence: float
    complexity: Complexity
    applications: tuple[str, ...]
    categories: tuple[str, ...]

    @property
    def lc(self) -> Bounds[Fraction] | None:
        """LC, CS_agent / CS_max; None where CS_max is 0, for which the paper defines none."""
        if not self.cs_max.upper:
            return None
        return Bounds(
            Fraction(self.cs_agent, self.cs_max.upper), Fraction(self.cs_agent, self.cs_max.lower)
        )

    def values(self, profile: ProfileName = DEFAULT_PROFILE) -> dict[str, Any]:
        """The profile's values as a JSON object.

        Bounds appear beside LC and CS_max only where the search for CS_max reached its cap. What
        they leave open is None, as LC is where it is undefined.

        Examples:
            >>> graph = Graph.read({"a": ["b"], "b": ["c"]}, where="task 1")
            >>> used = {"a": "Word", "b": "Word", "c": "Mail"}
            >>> score_task(graph, used, {}, ["a", "b"]).values()
            {'CR': 0.5, 'LC': 1.0, 'CS_agent': 1, 'CS_max': 1}
            >>> score_task(graph, used, {}, ["a", "b"]).values("omnibench-release")
            {'completion': 1.0, 'coherence': 1.0}
        """
        if profile == "omnibench-release":
            return {"completion": self.completion, "coherence": self.run_coherence}
        lc, most = self.lc, self.cs_max.exact
        exact = None if lc is None else lc.exact
        values: dict[str, Any] = {
            "CR": float(self.cr),
            "LC": None if exact is None else float(exact),
            "CS_agent": self.cs_agent,
            "CS_max": most,
        }
        if lc is not None and most is None:
            values["LC_bounds"] = [float(end) for end in lc]
            values["CS_max_bounds"] = list(self.cs_max)
        return values


def score_task(
    graph: Graph,
    applications: Mapping[str, str],
    categories: Mapping[str, str],
    executed: Sequence[str],
    *,
    cap: int = CAP,
    where: str = "",
) -> TaskScore:
    """Score what an agent did of a task.

    Args:
        graph: the task.
        applications: node -> application, for every node.
        categories: application -> category; one that lacks here is a category of its own.
        executed: nodes in the order of their completion; a run may stop early, or do nothing.
        cap: what the search for CS_max may cost before it settles for bounds (`most_coherent`).
        where: names the sequence in errors.

    Raises:
        DataError: a node without an application; an unknown node, a repeated one, or one that
            comes before a node it waits for.
    """
    missing = next((node for node in graph.nodes if node not in applications), None)
    if missing is not None:
        raise DataError(
            f"node {missing!r:.80} has no application",
            where=where,
            expected="the application of every node",
            remedy='add it to the task\'s "application"',
        )
    graph.check_order(executed, complete=False, where=where)
    used = dict.fromkeys(applications[node] for node in graph.nodes)
    agent, most = coherence(executed, applications), most_coherent(graph, applications, cap=cap)
    return TaskScore(
        cr=coverage(graph, executed),
        cs_agent=agent,
        # Whatever was done can be continued to a whole order.
        cs_max=Bounds(max(agent, most.lower), most.upper),
        completion=completion(graph, executed),
        run_coherence=run_coherence(graph, applications, executed),
        complexity=complexity(graph, applications, categories),
        applications=tuple(used),
        categories=tuple(dict.fromkeys(categories.get(name, name) for name in used)),
    )


# Tables of OmniBench: means over tasks with intervals, overall and by what the tasks are.
#
# A task with several applications or categories counts in the group of each. Values are unrounded
# fractions; intervals are 95 % percentile bootstraps over tasks. These are taken for independent:
# the paper's 36,076 share 255 subtasks, and true intervals are wider. The paper does not say how
# its overall CR follows from the ten capabilities' test tasks; here it is the mean over all tasks.


def total(
    scores: Sequence[TaskScore],
    *,
    profile: ProfileName = DEFAULT_PROFILE,
    intents: Sequence[str | None] | None = None,
    labels: Sequence[Sequence[str]] | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Everything that is reported about scored tasks.

    Args:
        scores: one per task.
        profile: whose values to average.
        intents: one per task; None = in no group.
        labels: the capabilities that each task was chosen to test, where the data say so.
        seed: of the bootstrap.

    Returns:
        `overall`, a table, and `by`, name -> group -> table, for "app", "category", the five
        dimensions of complexity, "eligible" (what Table 11 admits), and, where given, "intent" and
        "capability". A table holds the profile's means, None over nothing; `ci95` with a pair or
        None for each; `tasks`; and for the paper's profile `undefined_LC`, tasks without LC, and
        `capped_LC`, tasks of which only bounds are known. Neither counts in the mean of LC; where
        there are any of the latter, `LC_bounds` is what it would lie between with them.

    Raises:
        ValueError: another number of intents or labels than of scores.
    """
    if any(len(given) != len(scores) for given in (intents, labels) if given is not None):
        raise ValueError("every task needs an intent and labels, be it None and none")
    groups: dict[str, tuple[Sequence[Iterable[str]], Sequence[str]]] = {
        "app": ([score.applications for score in scores], ()),
        "category": ([score.categories for score in scores], ()),
    }
    levels = [score.complexity.levels() for score in scores]
    for dimension in DIMENSIONS:
        groups[dimension] = ([(found[dimension],) for found in levels], LEVELS)
    if intents is not None:
        groups["intent"] = ([() if intent is None else (intent,) for intent in intents], ())
    if labels is not None:
        groups["capability"] = (labels, tuple(capabilities()))
    groups["eligible"] = ([eligible(score.complexity) for score in scores], tuple(capabilities()))
    columns = _columns(scores, profile)
    return {
        "overall": _table(columns, profile, seed),
        "by": {
            name: {
                group: _table({key: column[rows] for key, column in columns.items()}, profile, seed)
                for group, rows in _members(tasks, order).items()
            }
            for name, (tasks, order) in groups.items()
        },
    }


def sensitivity(scores: Sequence[Sequence[float]], *, ddof: int = 0) -> float:
    """How much a score depends on the wording of the instruction (section 5.3, Table 6).

    Args:
        scores: for each task its score under each instruction; the paper has ten tasks with three
            orders of expression each.
        ddof: 0 for the population's deviation, 1 for the sample's; the paper names neither.

    Returns:
        The mean over tasks of the standard deviation over instructions.

    Raises:
        ValueError: no task, or one with too few instructions for `ddof`.

    Examples:
        >>> sensitivity([[10, 10, 10], [0, 3, 6]]), sensitivity([[0, 3, 6]], ddof=1)
        (1.224744871391589, 3.0)
    """
    if not scores or min(len(task) for task in scores) <= ddof:
        raise ValueError(f"every task needs more than {ddof} scores")
    return float(np.mean([np.std(task, ddof=ddof) for task in scores]))


def _columns(scores: Sequence[TaskScore], profile: ProfileName) -> dict[str, Floats]:
    """Values per task, (N,) each; NaN = not known."""
    if profile == "omnibench-release":
        return {
            "completion": np.array([score.completion for score in scores]),
            "coherence": np.array([score.run_coherence for score in scores]),
        }
    bounds = [score.lc for score in scores]
    lower, upper = (
        np.array([np.nan if pair is None else float(pair[end]) for pair in bounds], np.float64)
        for end in (0, 1)
    )
    return {"CR": np.array([float(score.cr) for score in scores]), "lower": lower, "upper": upper}


def _table(columns: Mapping[str, Floats], profile: ProfileName, seed: int) -> dict[str, Any]:
    if profile == "omnibench-release":
        table = means(columns, shares=columns.keys(), seed=seed)
        return {**table, "tasks": table.pop("rows")}
    lower, upper = columns["lower"], columns["upper"]
    undefined = np.isnan(lower)
    capped = ~undefined & (lower != upper)
    rate = means({"CR": columns["CR"]}, shares=("CR",), seed=seed)
    known = {"LC": np.where(capped, np.nan, lower)}
    consistency = means(known, shares=("LC",), seed=seed)
    table = {
        "CR": rate["CR"],
        "LC": consistency["LC"],
        "ci95": {**rate["ci95"], **consistency["ci95"]},
        **named_methods(rate.get("ci95_method", {}) | consistency.get("ci95_method", {})),
        "tasks": rate["rows"],
        "undefined_LC": int(undefined.sum()),
        "capped_LC": int(capped.sum()),
    }
    if capped.any():
        table["LC_bounds"] = [float(np.nanmean(lower)), float(np.nanmean(upper))]
    return table


def _members(groups: Sequence[Iterable[str]], order: Sequence[str]) -> dict[str, Ints]:
    """Name of a group -> rows in it, int64; first as in `order`, the others sorted."""
    found: dict[str, list[int]] = {}
    for row, names in enumerate(groups):
        for name in set(names):
            found.setdefault(name, []).append(row)
    ranks = {name: rank for rank, name in enumerate(order)}
    names = sorted(found, key=lambda name: (ranks.get(name, len(ranks)), name))
    return {name: np.array(found[name], dtype=np.int64) for name in names}
