"""How fast are task graphs scored, and when does enumerating topological orders become hopeless?

CS_max by search against the most coherent of all orders, as graphs grow; wide graphs made to be
hard, with the bounds that the cap leaves; scoring as many tasks as OmniBench has, of its size, with
growth; composing as many out of 255 subtasks, with growth. CPU time is compared: the machine may be
shared.

    python benchmarks/graph.py
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from graph_pool import INTENTS, SUBTASKS, write_pool

from omnidata.graphs import Graph
from omnidata.jsontext import decode
from omnidata.metrics.graphs import Bounds, TaskScore, coherence, most_coherent, score_task, total
from omnidata.run.engines.local import cores
from omnidata.synth.compose import Settings, compose
from omnidata.synth.compose.settings import Levels

TASKS = 36_076  # OmniBench, section 3.4
PATIENCE_S = 20.0  # CPU time that enumeration may take per size
REPEATS = 100  # of the search, which takes microseconds
HARD = ((60, 12, 0.1), (100, 10, 0.02), (100, 10, 0.05), (300, 30, 0.01), (1000, 300, 0.001))
"""Nodes, applications and the share of pairs with an edge of graphs that no task resembles."""

Task = tuple[Graph, dict[str, str]]


def main() -> None:
    """Run all parts and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=TASKS)
    parser.add_argument("--intents", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=cores())
    parser.add_argument("--only", choices=("search", "score", "compose"))
    options = parser.parse_args()
    if options.only in (None, "search"):
        against_enumeration()
        wide_graphs()
    if options.only in (None, "score"):
        scoring(options.tasks, options.intents)
    if options.only in (None, "compose"):
        composing(options.tasks, options.workers)


def draw(rng: random.Random, nodes: int, applications: int, share: float) -> Task:
    """A random graph over a hidden order of its nodes, with random applications."""
    names = [f"s{number}" for number in range(nodes)]
    work = rng.sample(names, nodes)
    edges = tuple(
        (first, second)
        for place, second in enumerate(work)
        for first in work[:place]
        if rng.random() < share
    )
    return Graph(tuple(names), edges), {node: f"App{rng.randrange(applications)}" for node in names}


def cpu(work: Callable[..., Any], *given: Any) -> tuple[float, Any]:
    """CPU seconds of one call, and what it gave."""
    begin = time.process_time()
    found = work(*given)
    return time.process_time() - begin, found


def search(tasks: Sequence[Task]) -> list[Bounds[int]]:
    """CS_max of each task."""
    return [most_coherent(*task) for task in tasks]


def enumerate_all(tasks: Sequence[Task]) -> list[int]:
    """CS_max of each task by looking at all its orders."""
    return [max(coherence(order, used) for order in graph.orders()) for graph, used in tasks]


def against_enumeration() -> None:
    """Graphs of each size by both ways, until enumeration is hopeless; then its price alone."""
    print("CS_max, mean of 5 random graphs (20 % of the pairs, 4 applications)")
    print(f"{'nodes':>6} {'orders, most':>14} {'search':>10} {'enumeration':>12} {'ratio':>10}")
    per_order, spent = 0.0, 0.0
    for nodes in (4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 20, 24, 30):
        rng = random.Random(nodes)
        tasks = [draw(rng, nodes, 4, 0.2) for _ in range(5)]
        counts = [graph.count_orders() or 0 for graph, _ in tasks]
        searched, found = cpu(search, tasks * REPEATS)
        searched /= REPEATS
        mark = ""
        if per_order * sum(counts) < PATIENCE_S:
            spent, best = cpu(enumerate_all, tasks)
            assert [pair.exact for pair in found[:5]] == best
            per_order = spent / sum(counts)
        else:
            spent, mark = per_order * sum(counts), "  (by its price per order)"
        print(
            f"{nodes:6} {max(counts):14.3g} {searched / 5 * 1e6:7.0f} us "
            f"{spent / 5:10.3g} s {spent / searched:10.3g}{mark}"
        )


def wide_graphs() -> None:
    """What the cap leaves of graphs made to be hard."""
    print("\nhard graphs, 5 each: CS_max or its bounds")
    for nodes, applications, share in HARD:
        rng = random.Random(nodes)
        spent, found = cpu(search, [draw(rng, nodes, applications, share) for _ in range(5)])
        shown = ", ".join(
            str(pair.lower) if pair.exact is not None else f"{pair.lower}..{pair.upper}"
            for pair in found
        )
        print(
            f"  {nodes} nodes, {applications} applications, {share:.1%} of pairs: "
            f"{spent / 5:.2f} s each: {shown}"
        )


def scoring(tasks: int, intents: int) -> None:
    """Read, score and tabulate; the time per task must not grow with their number."""
    print(f"\nscoring tasks of 2 to 8 nodes, {intents} intents")
    for count in (tasks // 4, tasks // 2, tasks):
        lines = [json.dumps(row) for row in rows(random.Random(count), count)]
        names = [f"intent {number % intents}" for number in range(count)]
        score_s, scores = cpu(score, lines)
        total_s, _ = cpu(lambda given, by: total(given, intents=by), scores, names)
        mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"  {count:6} tasks: read and scored {score_s:.2f} s ({score_s / count * 1e6:.0f} us "
            f"each), tables {total_s:.2f} s ({total_s / count * 1e6:.0f} us each), peak {mb:.0f} MB"
        )


def composing(tasks: int, workers: int) -> None:
    """Compose and write distinct tasks; the time per task must not grow with their number."""
    print(f"\ncomposing from {SUBTASKS} subtasks for {INTENTS} intents, {workers} processes")
    with tempfile.TemporaryDirectory() as name:
        pool = write_pool(Path(name) / "pool")
        for count in (tasks // 4, tasks // 2, tasks):
            compose_once(pool, count, workers, Settings(trajectories=0))
        for count in (tasks // 18, tasks // 9):
            compose_once(pool, count, workers, Settings())
        hard: Levels = {"dependency": "hard", "hierarchy": "hard", "branch": "hard"}
        compose_once(pool, tasks // 36, workers, Settings(trajectories=0, levels=hard))


def compose_once(pool: Path, count: int, workers: int, settings: Settings) -> None:
    """One line of the table: seconds on the clock, CPU time of all processes, bytes."""
    with tempfile.TemporaryDirectory() as name:
        begin, busy = time.perf_counter(), all_cpu()
        report = compose(pool, Path(name) / "out", settings, tasks=count, workers=workers)
        took, busy = time.perf_counter() - begin, all_cpu() - busy
        size = sum(path.stat().st_size for path in (Path(name) / "out").glob("*.jsonl"))
    made = report["made"]
    kind = f"{made['sums']['steps']} steps" if settings.trajectories else "graphs alone"
    kind += "".join(f", {dimension}={level}" for dimension, level in settings.levels.items())
    mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"  {count:6} tasks, {kind}: {took:.1f} s, CPU {busy:.1f} s ({busy / count * 1e3:.2f} ms "
        f"each), {size / count:.0f} bytes each, {made['search']['attempts']} attempts, "
        f"{made['search']['isomorphic_copies']} copies left out, peak {mb:.0f} MB",
        flush=True,
    )


def all_cpu() -> float:
    """CPU seconds of this process and of those that it started and that have ended."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(use.ru_utime + use.ru_stime for use in map(resource.getrusage, whose))


def rows(rng: random.Random, count: int) -> list[dict[str, Any]]:
    """Tasks with 2.2 applications on average, each with a run that stops somewhere."""
    found = []
    for _ in range(count):
        applications = rng.choices((1, 2, 3, 4), (25, 40, 25, 10))[0]
        graph, used = draw(rng, rng.randint(2, 8), applications, rng.random() * 0.6)
        order = next(graph.orders())
        found.append(
            {
                "dag": graph.as_json(),
                "application": used,
                "executed": order[: rng.randint(0, len(order))],
            }
        )
    return found


def score(lines: Sequence[str]) -> list[TaskScore]:
    """Scores of tasks from their JSON."""
    found = []
    for line in lines:
        row = decode(line)
        graph = Graph.read(row["dag"], where="")
        found.append(score_task(graph, row["application"], {}, row["executed"]))
    return found


if __name__ == "__main__":
    main()
