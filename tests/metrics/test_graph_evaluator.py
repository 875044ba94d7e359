"""The evaluator over an action log, held against one that keeps the states of all nodes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from omnidata.graphs import Graph
from omnidata.metrics.graph_evaluator import IDLE, MOST, LoggedAction, walk
from omnidata.metrics.graphs import states

CHAIN = Graph.read({"a": ["b"], "b": ["c"]}, where="a chain")
NAMES = ("a", "b", "c", "d")


@given(st.data())
def test_what_is_tested_is_what_the_states_before_the_action_say(data: st.DataObject) -> None:
    """By the paper's rules, whatever passes when; and what is done is an order of the graph."""
    order = data.draw(st.permutations(NAMES))
    pairs = [(one, other) for n, one in enumerate(order) for other in order[n + 1 :]]
    edges = data.draw(st.lists(st.sampled_from(pairs), unique=True))
    graph = Graph(NAMES, tuple(edges))
    log = data.draw(st.lists(st.frozensets(st.sampled_from(NAMES)), max_size=8))
    done: list[str] = []
    for passed in log:
        before = states(graph, done)
        done += [node for node in NAMES if before[node] == "Evaluating" and node in passed]
    found = walk(graph, map(LoggedAction, log))
    assert list(found.executed) == done
    assert (found.ending == "completed") == (len(done) == len(NAMES))
    release = walk(graph, map(LoggedAction, log), rules="release")
    for each in (found, release):
        graph.check_order(each.executed, complete=False, where="the walk")
        assert list(each.at) == sorted(each.at)
    assert set(release.executed) >= set(found.executed)


def test_the_release_tests_at_once_what_became_ready_later_in_the_order() -> None:
    everything = [LoggedAction({"a", "b", "c"})] * 3
    assert walk(CHAIN, everything).at == (1, 2, 3)
    assert walk(CHAIN, everything, rules="release").at == (1, 1, 1)
    backwards = Graph(("c", "b", "a"), (("a", "b"), ("b", "c")))
    assert walk(backwards, everything, rules="release").at == (1, 2, 3)


def test_a_task_without_progress_for_n_actions_is_over() -> None:
    nothing, something = LoggedAction(()), LoggedAction({"a"})
    late = [*[nothing] * (IDLE - 1), something, *[nothing] * (IDLE - 1), LoggedAction({"b"})]
    assert walk(CHAIN, late).executed == ("a", "b"), "each completion begins the count anew"
    assert walk(CHAIN, late).ending == "unknown", "the log ends before"
    over = walk(CHAIN, [*[nothing] * IDLE, something])
    assert (over.executed, over.steps, over.ending) == ((), IDLE, "no_progress")


def test_only_the_release_limits_all_actions() -> None:
    nodes = tuple(f"n{n}" for n in range(MOST))
    log = [LoggedAction({nodes[n // 2]} if n % 2 else ()) for n in range(MOST + 10)]
    graph = Graph(nodes, ())
    release, paper = walk(graph, log, rules="release"), walk(graph, log)
    assert (release.steps, release.ending) == (MOST, "step_limit")
    assert (paper.steps, paper.ending) == (MOST + 10, "unknown")


def test_the_action_with_which_an_agent_finishes_is_evaluated() -> None:
    last = LoggedAction({"a"}, finished=True)
    assert walk(Graph(("a",), ()), [last]).ending == "completed"
    assert walk(CHAIN, [last, LoggedAction({"b"})]).executed == ("a",)
