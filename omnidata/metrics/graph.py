"""OmniBench's graph-based evaluation: node states, Coverage Rate and Logical Consistency.

Section 4.1 of the paper. The released code has neither metric; what it scores instead stands beside
them (`graph_release`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal

from omnidata.errors import DataError
from omnidata.graphs import Graph
from omnidata.metrics.graph_coherence import CAP, Bounds, coherence, most_coherent
from omnidata.metrics.graph_complexity import Complexity, complexity
from omnidata.metrics.graph_release import completion, run_coherence

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
