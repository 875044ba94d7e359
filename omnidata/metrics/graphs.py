"""OmniBench's graph-based evaluation: node states, Coverage Rate (CR) and Logical Consistency (LC).

LC divides CS, the coherence of the completed subtasks, by CS_max, the most that the graph allows.
The released code has neither metric; `completion` and `run_coherence` are its own.

Section 4.1 of the paper. CS counts adjacent subtasks of one application, so for n subtasks CS_max
is n less the fewest *blocks*, maximal stretches within one application, of any topological order.
With unboundedly many applications and chains that contains the shortest common supersequence, which
is NP-hard; tasks of the published size take microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby, pairwise
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from omnidata.errors import DataError
from omnidata.graphs import Graph, largest_antichain
from omnidata.metrics.graph_complexity import (
    DIMENSIONS,
    LEVELS,
    Complexity,
    capabilities,
    complexity,
    eligible,
)
from omnidata.metrics.intervals import Floats, Ints, method_column
from omnidata.metrics.row_tables import means

# Coherence, and the most of it that a graph allows.

CAP: Final = 10_000_000
"""What a search may cost before it gives bounds, in subtasks: about a second."""

Number = TypeVar("Number")


class Bounds(NamedTuple, Generic[Number]):
    """Inclusive bounds of a value; equal bounds are the value."""

    lower: Number
    upper: Number

    @property
    def exact(self) -> Number | None:
        """The value; None if the bounds differ."""
        return self.lower if self.lower == self.upper else None


def coherence(sequence: Sequence[str], applications: Mapping[str, str]) -> int:
    """Return CS, the number of adjacent subtasks of the same application.

    Args:
        sequence: nodes in the order of their completion.
        applications: node -> application.

    Examples:
        >>> coherence(["a", "b", "c"], {"a": "Word", "b": "Word", "c": "Mail"})
        1
    """
    used = [applications[node] for node in sequence]
    return sum(first == second for first, second in pairwise(used))


def most_coherent(graph: Graph, applications: Mapping[str, str], *, cap: int = CAP) -> Bounds[int]:
    """Return CS_max, the greatest coherence of a topological order of the whole graph.

    A* over the sets of done subtasks that full blocks reach. Three facts make it exact and short:

    - Once in an application it is never worse to finish all of it that is or becomes available.
    - Where that finishes the application for good, no other next block is better.
    - Subtasks of one application with one of another on a path between them are in different
      blocks. The longest such chain of each application, summed, bounds the blocks to come from
      below, and a block shortens one chain by at most one: the first set that the search reaches
      is reached with the fewest blocks.

    Args:
        graph: the task.
        applications: node -> application, for every node.
        cap: subtasks to look at; each set that is reached costs all of the graph's.

    Returns:
        Equal bounds, unless the cap was reached. Whether CS_max is 0 is always known.

    Examples:
        >>> graph = Graph.read({"a": ["b"], "b": ["c"]}, where="task 1")
        >>> most_coherent(graph, {"a": "Word", "b": "Mail", "c": "Word"})
        Bounds(lower=0, upper=0)
        >>> most_coherent(graph, {"a": "Word", "b": "Word", "c": "Mail"}).exact
        1
    """
    nodes = len(graph.nodes)
    blocks = _fewest_blocks(_groups(graph, applications), (1 << nodes) - 1, cap)
    return Bounds(nodes - blocks.upper, nodes - blocks.lower)


def nodes_beyond(graph: Graph, applications: Mapping[str, str]) -> tuple[int, ...]:
    """Return each node's successors beyond a change of application, on some path.

    Among the nodes of one application this is a strict order; related nodes are never in the same
    block.

    Args:
        graph: the task.
        applications: node -> application, for every node.

    Returns:
        Bit sets by place in `graph.nodes`.
    """
    after = [0] * len(graph.nodes)
    beyond = [0] * len(graph.nodes)
    for place in reversed(graph.sequence):
        node = graph.nodes[place]
        for name in graph.successors[node]:
            other = graph.index[name]
            reached = after[other] | 1 << other
            after[place] |= reached
            beyond[place] |= beyond[other] if applications[node] == applications[name] else reached
    return tuple(beyond)


@dataclass(frozen=True, slots=True)
class _Group:
    """The nodes of one application.

    Attributes:
        members: bit set.
        ordered: each node's bit and the bit set of its predecessors, in topological order.
        chains: for h = 1, 2, ..., the nodes that begin a chain of h nodes, each in its own block.
            As many blocks remain as sets contain a node that is still to come.
    """

    members: int
    ordered: tuple[tuple[int, int], ...]
    chains: tuple[int, ...]

    def blocks(self, done: int) -> int:
        """Lower bound of the application's remaining blocks."""
        return sum(1 for chain in self.chains if chain & ~done)

    def close(self, done: int) -> int:
        for bit, before in self.ordered:
            if not before & ~done:
                done |= bit
        return done


def _groups(graph: Graph, applications: Mapping[str, str]) -> list[_Group]:
    ordered: dict[str, list[int]] = {}
    for place in graph.sequence:
        ordered.setdefault(applications[graph.nodes[place]], []).append(place)
    beyond = nodes_beyond(graph, applications)
    return [
        _Group(
            sum(1 << place for place in places),
            tuple((1 << place, graph.before[place]) for place in places),
            _chains(places, beyond),
        )
        for places in ordered.values()
    ]


def _chains(places: Sequence[int], beyond: Sequence[int]) -> tuple[int, ...]:
    chains: list[int] = []
    for place in reversed(places):
        height = sum(1 for chain in chains if chain & beyond[place])
        if height == len(chains):
            chains.append(0)
        for level in range(height + 1):
            chains[level] |= 1 << place
    return tuple(chains)


def _fewest_blocks(groups: Sequence[_Group], whole: int, cap: int) -> Bounds[int]:
    """Return the fewest blocks of any order.

    A block either shortens a chain and keeps its set's bound, or raises the bound by one, so two
    stacks replace A*'s queue. Dropping sets that another set contains would halve the sets of hard
    graphs but costs more time than it saves.
    """
    bound = sum(len(group.chains) for group in groups)
    now, later, seen = [0], list[int](), set[int]()
    while True:
        while now:
            done = now.pop()
            if done == whole:
                return Bounds(bound, bound)
            if done in seen:
                continue
            seen.add(done)
            moves = [move for move in _moves(groups, done) if move[0] not in seen]
            cap -= len(moves) * whole.bit_length()
            if cap < 0:
                return Bounds(bound, _greedy(groups, whole))
            for reached, shorter in moves:
                (now if shorter else later).append(reached)
        now, later = later, []
        bound += 1


def _moves(groups: Sequence[_Group], done: int) -> list[tuple[int, bool]]:
    moves = []
    for group in groups:
        if not group.members & ~done:
            continue
        reached = group.close(done)
        if not group.members & ~reached:
            return [(reached, True)]
        if reached != done:
            moves.append((reached, group.blocks(reached) < group.blocks(done)))
    return moves


def _greedy(groups: Sequence[_Group], whole: int) -> int:
    """Return the blocks of one good order: shorten a chain if possible, by the largest block.

    It has a block of two nodes if any order has. Otherwise each application would have one chain
    left after the last block that shortened none. None of these was free beside that block's node,
    so all wait for it, and it headed a longer chain of its own: it shortened one.
    """
    done = blocks = 0
    while done != whole:
        done, _ = max(_moves(groups, done), key=lambda move: (move[1], move[0].bit_count()))
        blocks += 1
    return blocks


# Completion and coherence as OmniBench's released code scores them; neither is the paper's metric.
#
# Both definitions are the code's: it holds no CR and no LC.


def completion(graph: Graph, executed: Sequence[str]) -> float:
    """Return the share of the graph's levels that the release counts as completed.

    Depths start at 1, but the release looks at levels 0 to depth - 1 and stops at the first
    incomplete one. It never looks at the deepest level: a graph of one level, or with all but the
    deepest completed, scores 1.

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
    """Return the longest run within one application, divided by the longest of all orders.

    The release subtracts 1 from both, and returns 0 if the denominator is 0.

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
    """Return the largest number of consecutive subtasks of the same application."""
    return max(
        (len(list(run)) for _, run in groupby(sequence, applications.__getitem__)), default=0
    )


def longest_possible_run(graph: Graph, applications: Mapping[str, str]) -> int:
    """Return the longest run within one application in any topological order.

    The release finds it by enumerating all orders. Subtasks of one application can be done in a
    row if and only if no path from one to another leaves the application, and leaving it is a
    strict order: the answer is an application's largest antichain in `nodes_beyond`.
    """
    members: dict[str, int] = {}
    for place, node in enumerate(graph.nodes):
        members[applications[node]] = members.get(applications[node], 0) | 1 << place
    beyond = nodes_beyond(graph, applications)
    return max(largest_antichain(beyond, among) for among in members.values())


State = Literal["Waiting", "Evaluating", "Completed"]
GraphProfile = Literal["paper", "release"]
"""Whose rules: those of the paper, CR and LC, or those of its released code."""


def states(graph: Graph, executed: Sequence[str]) -> dict[str, State]:
    """Return each node's state after some subtasks are completed.

    A node is evaluated as soon as all its predecessors are completed.

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
    """Return CR, the completed share of the subtasks, weighted by depth.

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
    """The scores of one task.

    Attributes:
        cr: Coverage Rate.
        cs_agent: coherence of the completed subtasks.
        cs_max: the greatest coherence of an order of the whole task.
        completion, run_coherence: the released code's scores.
        complexity: of the task.
        applications: distinct, in the order of the nodes.
        categories: distinct categories of the applications.
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
        """LC, CS_agent / CS_max; None if CS_max is 0, for which the paper defines no LC."""
        if not self.cs_max.upper:
            return None
        return Bounds(
            Fraction(self.cs_agent, self.cs_max.upper), Fraction(self.cs_agent, self.cs_max.lower)
        )

    def values(self, profile: GraphProfile = "paper") -> dict[str, Any]:
        """Return the profile's values as a JSON object.

        Bounds of LC and CS_max appear only if the search for CS_max reached its cap. Unknown values
        are None, like an undefined LC.

        Examples:
            >>> graph = Graph.read({"a": ["b"], "b": ["c"]}, where="task 1")
            >>> used = {"a": "Word", "b": "Word", "c": "Mail"}
            >>> score_task(graph, used, {}, ["a", "b"]).values()
            {'CR': 0.5, 'LC': 1.0, 'CS_agent': 1, 'CS_max': 1}
            >>> score_task(graph, used, {}, ["a", "b"]).values("release")
            {'completion': 1.0, 'coherence': 1.0}
        """
        if profile == "release":
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
    """Score an agent's completed subtasks of a task.

    Args:
        graph: the task.
        applications: node -> application, for every node.
        categories: application -> category; any other application is its own category.
        executed: nodes in the order of their completion; a run may stop early, or do nothing.
        cap: cost at which the search for CS_max returns bounds (`most_coherent`).
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


# Tables: means over tasks with intervals, overall and by what the tasks are.
#
# A task with several applications or categories counts in the group of each. Values are unrounded
# fractions; intervals are 95 % percentile bootstraps over tasks. These are taken for independent:
# the paper's 36,076 share 255 subtasks, and true intervals are wider. The paper does not say how
# its overall CR follows from the ten capabilities' test tasks; here it is the mean over all tasks.


def total(
    scores: Sequence[TaskScore],
    *,
    profile: GraphProfile = "paper",
    intents: Sequence[str | None] | None = None,
    labels: Sequence[Sequence[str]] | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Return the results of scored tasks.

    Args:
        scores: one per task.
        profile: its values are averaged.
        intents: one per task; None = in no group.
        labels: the capabilities that each task was chosen to test, if the data have them.
        seed: of the bootstrap.

    Returns:
        `overall`, a table, and `by`, name -> group -> table, for "app", "category", the five
        dimensions of complexity, "eligible" (by Table 11), "intent" and "capability" if given, and
        "shape": chains and graphs with equal numbers of nodes and edges and the same categories
        (section 5.2, Figure 6), if there are both; if no categories have both, those of any
        categories, named `CONFOUNDED`. A table has the profile's means, None over no tasks; `ci95`
        with a pair or None for each; `tasks`; and for the paper's profile `undefined_LC`, the
        number of tasks without LC, and `capped_LC`, the number of tasks with bounds only. Neither
        counts in the mean of LC; `LC_bounds` are its bounds with the latter, if there are any.

    Raises:
        ValueError: the numbers of intents or labels and of scores differ.
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
    shapes = _shapes(scores)
    if named := sorted({shape for shape in shapes if shape}):
        groups["shape"] = ([shape[-1:] for shape in shapes], [name for *_, name in named])
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


CONFOUNDED: Final = "confounded by category"
"""What is added to the name of chains and graphs of one size that are of other categories."""

Shape = tuple[int, str, str] | tuple[()]
"""Nodes, categories, and what the group is called; empty for a task that is compared with none."""


def _shapes(scores: Sequence[TaskScore]) -> list[Shape]:
    """A chain of n subtasks has n - 1 edges and is compared only with graphs of n - 1 edges.

    Section 5.2, Figure 6.
    """
    sized: dict[int, list[TaskScore]] = {}
    for score in scores:
        if _edges_of_chain(score.complexity):
            sized.setdefault(score.complexity.instruction, []).append(score)
    alike = {size: _in_both([_domain(one), one] for one in own) for size, own in sized.items()}
    both = _in_both((size, one) for size, own in sized.items() for one in own)

    def shape(score: TaskScore) -> Shape:
        size, domain = score.complexity.instruction, _domain(score)
        if not _edges_of_chain(score.complexity) or size not in both:
            return ()
        if alike[size] and domain not in alike[size]:
            return ()
        kind = "chain" if _is_path(score.complexity) else "graph"
        told = domain if alike[size] else CONFOUNDED
        return size, told, f"{kind} of {size}: {told}"

    return [shape(score) for score in scores]


def _domain(score: TaskScore) -> str:
    return ", ".join(sorted(score.categories))


def _in_both(keyed: Iterable[Sequence[Any]]) -> set[Any]:
    found: dict[bool, set[Any]] = {True: set(), False: set()}
    for key, score in keyed:
        found[_is_path(score.complexity)].add(key)
    return found[True] & found[False]


def _edges_of_chain(measured: Complexity) -> bool:
    return measured.dependency == measured.instruction - 1


def _is_path(measured: Complexity) -> bool:
    return measured.hierarchy == measured.instruction


def sensitivity(scores: Sequence[Sequence[float]], *, ddof: int = 0) -> float:
    """Return the mean over tasks of the standard deviation of scores over instructions.

    It measures how much a score depends on the wording (section 5.3, Table 6).

    Args:
        scores: for each task its score under each instruction; the paper has ten tasks with three
            orders of expression each.
        ddof: 0 for the population's deviation, 1 for the sample's; the paper states neither.

    Raises:
        ValueError: there is no task, or a task has too few instructions for `ddof`.

    Examples:
        >>> sensitivity([[10, 10, 10], [0, 3, 6]]), sensitivity([[0, 3, 6]], ddof=1)
        (1.224744871391589, 3.0)
    """
    if not scores or min(len(task) for task in scores) <= ddof:
        raise ValueError(f"every task needs more than {ddof} scores")
    return float(np.mean([np.std(task, ddof=ddof) for task in scores]))


def _columns(scores: Sequence[TaskScore], profile: GraphProfile) -> dict[str, Floats]:
    """(N,) per task; NaN = unknown."""
    if profile == "release":
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


def _table(columns: Mapping[str, Floats], profile: GraphProfile, seed: int) -> dict[str, Any]:
    if profile == "release":
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
        **method_column(rate.get("ci95_method", {}) | consistency.get("ci95_method", {})),
        "tasks": rate["rows"],
        "undefined_LC": int(undefined.sum()),
        "capped_LC": int(capped.sum()),
    }
    if capped.any():
        table["LC_bounds"] = [float(np.nanmean(lower)), float(np.nanmean(upper))]
    return table


def _members(groups: Sequence[Iterable[str]], order: Sequence[str]) -> dict[str, Ints]:
    found: dict[str, list[int]] = {}
    for row, names in enumerate(groups):
        for name in set(names):
            found.setdefault(name, []).append(row)
    ranks = {name: rank for rank, name in enumerate(order)}
    names = sorted(found, key=lambda name: (ranks.get(name, len(ranks)), name))
    return {name: np.array(found[name], dtype=np.int64) for name in names}
