"""OmniBench's graph-based evaluator over an action log (section 4.1, Figure 4).

At first the subtasks without predecessors are evaluated and the others wait. Every action is
followed by a test of each evaluated subtask. A subtask that passes is completed; a waiting subtask
is evaluated once all its predecessors are completed. A task fails if no subtask is completed within
N actions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from omnidata.graphs import Graph
from omnidata.metrics.graphs import GraphProfile
from omnidata.metrics.rollouts import Ending

IDLE: Final = 20
"""N, the actions within which something must be completed: the release's; the paper names none."""
MOST: Final = 200
"""Actions that the release grants a task in all; the paper has no such limit."""


@dataclass(frozen=True, slots=True)
class LoggedAction:
    """The state after an action of an agent.

    Attributes:
        passed: the subtasks whose evaluation functions pass.
        finished: whether the agent ended the task.
    """

    passed: Collection[str]
    finished: bool = False


@dataclass(frozen=True, slots=True)
class Walk:
    """An evaluated log.

    Attributes:
        executed: the completed subtasks, in the order of their completion.
        at: the number of the action, from 1, that completed each.
        steps: the number of evaluated actions.
        ending: "completed", "finished" by the agent alone, "no_progress", "step_limit", or
            "unknown" if the log ends before.
        early: how often a waiting subtask passed, which does not count.
    """

    executed: tuple[str, ...]
    at: tuple[int, ...]
    steps: int
    ending: Ending
    early: int


def walk(
    graph: Graph, log: Iterable[LoggedAction], *, rules: GraphProfile = "paper", idle: int = IDLE
) -> Walk:
    """Evaluate a task action by action.

    Args:
        graph: the task.
        log: the state after each action; actions after the end are ignored.
        rules: "paper" tests newly ready subtasks after the next action; "release" tests the nodes
            in order, including those that became ready earlier in the same pass, and stops after
            `MOST` actions.
        idle: N, the actions within which a subtask must be completed.

    Examples:
        >>> graph = Graph.read({"a": ["b"], "c": []}, where="task 1")
        >>> log = [LoggedAction({"b"}), LoggedAction({"a", "b"}), LoggedAction({"b", "c"})]
        >>> walk(graph, log)
        Walk(executed=('a', 'b', 'c'), at=(2, 3, 3), steps=3, ending='completed', early=2)
        >>> walk(graph, log, rules="release").at
        (2, 2, 3)
        >>> walk(graph, [LoggedAction({"a"}), LoggedAction((), finished=True)]).ending
        'finished'
        >>> walk(graph, [LoggedAction(())] * 3, idle=2)
        Walk(executed=(), at=(), steps=2, ending='no_progress', early=0)
    """
    done: dict[str, int] = {}

    def is_ready(node: str) -> bool:
        return all(other in done for other in graph.predecessors[node])

    steps = waited = early = 0
    ending: Ending = "unknown"
    for step, action in enumerate(log, 1):
        steps, before = step, len(done)
        evaluated = set(filter(is_ready, graph.nodes))
        for node in graph.nodes:
            if node in done or node not in action.passed:
                continue
            if node in evaluated or (rules == "release" and is_ready(node)):
                done[node] = step
            else:
                early += 1
        waited = 0 if len(done) > before else waited + 1
        if len(done) == len(graph.nodes):
            ending = "completed"
        elif action.finished:
            ending = "finished"
        elif waited >= idle:
            ending = "no_progress"
        elif rules == "release" and step >= MOST:
            ending = "step_limit"
        if ending != "unknown":
            break
    return Walk(tuple(done), tuple(done.values()), steps, ending, early)
