"""Tables of agents that were scored task by task: ranks, pairs, endings and effort of attempts.

Their numbers stand in `results.json` under `rollouts` and `attempts` (`omnidata.metrics.rollouts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import combinations
from math import inf
from statistics import StatisticsError, correlation
from typing import Any, Final

from omnidata.analysis.comparison import Comparison, compare
from omnidata.analysis.inference import TIE, correct_p_values
from omnidata.analysis.runs import usual
from omnidata.analysis.slices import make_cell, make_table, run_names, title
from omnidata.errors import RunError, plural
from omnidata.metrics.paired import both_known
from omnidata.metrics.rollouts import ENDINGS, REPEATS, choices
from omnidata.run.run_files import Run
from omnidata.table import Cell, Column, Head, Row, Table, mark_best
from omnidata.tasks.rollouts import OfflineScorer

HEADERS: Final[Mapping[str, str]] = {
    "completed": "Completed",
    "finished": "Finished",
    "fail_right": "FAIL, rightly",
    "fail_wrong": "FAIL, wrongly",
    "fail": "FAIL",
    "repetition": "Repetition",
    "parse_error": "Parse error",
    "no_progress": "No progress",
    "step_limit": "Step limit",
    "time_limit": "Time limit",
    "crash": "Crash",
    "unknown": "Unknown",
}
assert HEADERS.keys() == ENDINGS.keys()
TURNS: Final = (1, 2, 3, 5, 10, 15, 20, 30, 50, 75, 100, 150, 200)
"""The points of a curve that a table shows, and its last one."""
_EFFORT: Final[Mapping[str, str]] = {"turns": "Turns", "seconds": "Seconds", "tokens": "Tokens"}
_SUMMARY: Final = ("mean", "median", "p95")


def tables(runs: Sequence[Run], by: Sequence[str], notes: list[str]) -> list[Table]:
    """Return the tables of agents; none for runs that answer steps.

    Args:
        runs: of one task and profile.
        by: axes of tables of endings.
        notes: gets a sentence for each table that is left out.
    """
    found = []
    scorer = runs[0].offline_scorer
    if scorer and len(runs) > 1:
        results = {str(run.path): run.results for run in runs}
        names = dict(zip(results, run_names(runs), strict=True))
        ranked = ranking(
            results,
            scorer,
            runs[0].profile,
            names=names,
            head=title("Agents", runs),
            tried={str(run.path): run.scores.keys() for run in runs},
        )
        found.append(ranked)
        order = [row.run for row in ranked.rows]
        try:
            found.append(pairs(sorted(runs, key=lambda run: order.index(str(run.path)))))
        except RunError as error:
            notes.append(f"{runs[0].task}: the table of pairs is left out: {error}")
    recorded = [run for run in runs if "rollouts" in run.results]
    if recorded:
        found += [_endings(recorded), _failures(recorded), *_within(recorded), _effort(recorded)]
        axes = [axis for axis in by if any(_groups(run).get(axis) for run in recorded)]
        found += [_by(recorded, axis) for axis in axes]
    several = [run for run in runs if "attempts" in run.results]
    return [*found, _attempts(several)] if several else found


# Which agent is better.


def ranking(
    results: Mapping[str, Mapping[str, Any]],
    scorer: OfflineScorer,
    profile: str,
    *,
    names: Mapping[str, str],
    head: str,
    tried: Mapping[str, Set[str]],
) -> Table:
    """Return a table with a row per agent, the best first; equal totals have equal ranks.

    Ranks are among the agents that tried the most common set of tasks; others have none.

    Args:
        results: by folder or name the content of `results.json`, of one task and profile.
        scorer: of the agents.
        profile: one of its own.
        names: of the rows.
        head: the table's title.
        tried: the tasks of each.
    """
    common = usual([*tried.values()])
    columns, lower = scorer.profiles[profile], scorer.lower_is_better
    metric = scorer.ranked_by or next(iter(columns))
    sign = -1 if metric in lower else 1
    totals = {
        key: None if (value := found["overall"].get(metric)) is None else sign * value
        for key, found in results.items()
    }
    order = sorted(totals, key=lambda key: -inf if (v := totals[key]) is None else v, reverse=True)
    ranks = _ranks({key: total for key, total in totals.items() if tried[key] == common})
    counts = [name for name in ("finished", "tasks") if name in results[order[0]]["counts"]]
    shown = [
        Column("Rank", "rank", "count"),
        *(
            Column(name, name, unit, lower_is_better=name in lower)
            for name, unit in columns.items()
        ),
        *(Column(name.capitalize(), name, "count") for name in counts),
    ]
    rows = {}
    for key in order:
        found = results[key]
        own = {**found["overall"], "ci95": found.get("ci95")}
        cells = (
            Cell(ranks.get(key)),
            *(make_cell(own, name) for name in columns),
            *(Cell(found["counts"].get(name)) for name in counts),
        )
        rows[key] = Row((names[key],), cells, run=key)
    compared = [key for key in order if key in ranks]
    marked = mark_best(shown, [rows[key] for key in compared])
    rows |= dict(zip(compared, marked, strict=True))
    first = results[order[0]]
    return Table(
        "ranking",
        f"{head}, ranked by {metric}",
        first["task"],
        first["profile"],
        ("Agent",),
        (Head("", tuple(shown)),),
        tuple(rows.values()),
        tuple(_rank_notes(common, {names[key]: tried[key] for key in order})),
        intervals=True,
    )


def _ranks(totals: Mapping[str, float | None]) -> dict[str, int]:
    """Return the rank of each agent with a total; equal totals have equal ranks."""
    known = {key: total for key, total in totals.items() if total is not None}
    return {
        key: 1 + sum(other > total + TIE for other in known.values())
        for key, total in known.items()
    }


def _rank_notes(common: Set[str] | None, tried: Mapping[str, Set[str]]) -> Iterator[str]:
    if common is None:
        yield "No ranks: the agents tried different tasks."
        return
    for name, own in tried.items():
        lacks, more = common - own, own - common
        if lacks:
            what = f"lacks {plural(len(lacks), 'task')} of the ranked ones, e.g. {min(lacks)}"
            yield f"No rank: {name} {what}."
        if more:
            what = f"tried {plural(len(more), 'task')} more than the others, e.g. {min(more)}"
            yield f"No rank: {name} {what}."


def pairs(runs: Sequence[Run]) -> Table:
    """Return a table of every two agents on the tasks that both finished.

    Args:
        runs: scored task by task, the best first.

    Raises:
        RunError: scores cannot be read, or two agents have no task in common.
    """
    names = dict(zip((run.path for run in runs), run_names(runs), strict=True))
    found = [compare(a.path, b.path, axes=()) for a, b in combinations(runs, 2)]
    metric = found[0].flipping or next(iter(found[0].columns))
    unit = found[0].columns[metric]
    qs = correct_p_values([each.overall.metrics[metric].p for each in found])
    columns = [
        Column("A", "a", unit),
        Column("B", "b", unit),
        Column("B - A", "difference", unit),
        Column("p", "p", "p"),
        Column("q", "q", "p"),
        Column("r", "correlation", "number"),
        Column("Tasks", "tasks", "count"),
    ]
    if found[0].flipping:
        columns += [
            Column("Only A", "only_a", "count"),
            Column("Only B", "only_b", "count"),
            Column("p of flips", "p_flips", "p"),
        ]
    rows = []
    for each, q in zip(found, qs, strict=True):
        value, flips = each.overall.metrics[metric], each.overall.flips
        difference = Cell(value.difference, value.ci95)
        rest = value.p, q, _correlation(each, metric), each.overall.steps, *(flips or ())
        cells = (Cell(value.a), Cell(value.b), difference, *map(Cell, rest))
        rows.append(Row((names[each.a.path], names[each.b.path]), cells))
    return make_table(
        "pairs",
        f"Agents in pairs, {metric} on the tasks that both finished",
        runs,
        ("A", "B"),
        [Head("", tuple(columns))],
        rows,
        (
            "Only A, only B: tasks that one of the two alone has right, and p by McNemar's exact "
            "test. q: p corrected for all pairs (Benjamini-Hochberg). r: Pearson's correlation of "
            "the scores. `omnidata compare A B` lists the tasks.",
        ),
        intervals=True,
    )


def _correlation(found: Comparison, metric: str) -> float | None:
    """Return Pearson's correlation of two agents' scores (Table 16 of OSWorld), if they differ."""
    a, b = (rows.values[metric] for rows in found.aligned.rows)
    both = both_known(a, b)
    try:
        return correlation(a[both].tolist(), b[both].tolist())
    except StatisticsError:  # fewer than two tasks, or no difference between them
        return None


# How the attempts went.


def _table(
    name: str,
    what: str,
    runs: Sequence[Run],
    heads: Sequence[Head],
    cells: Iterable[Sequence[Cell]],
    notes: Sequence[str] = (),
    *,
    intervals: bool = False,
) -> Table:
    """Return a table with a row per agent."""
    rows = [
        Row((agent,), tuple(own), run=str(run.path))
        for agent, run, own in zip(run_names(runs), runs, cells, strict=True)
    ]
    return make_table(name, what, runs, ["Agent"], heads, rows, notes, intervals=intervals)


def _endings(runs: Sequence[Run]) -> Table:
    """Return the shares of all attempts, as in AgentStudio's Table 3."""
    found = [run.results["rollouts"] for run in runs]
    columns = _ending_columns(found)
    metrics = {column.metric for column in columns}
    notes = [
        f"{HEADERS[name]}: {ENDINGS[name]}."
        for name in ENDINGS
        if name in metrics & {"finished", "parse_error", "unknown"}
    ]
    notes.append("False finish: of those that finished and have a score, the share below 1.")
    if "repetition" in metrics:
        notes.append(
            f"Repetition: the last turns are one turn, or a cycle, {REPEATS} times or more."
        )
    for name, each in zip(run_names(runs), found, strict=True):
        if unrecorded := each.get("unrecorded"):
            notes.append(
                f"{name}: there is no record of how {plural(unrecorded, 'attempt')} went, whose "
                "scores count in success rates, and in no table of endings or turns."
            )
    cells = (_ending_cells(each, columns) for each in found)
    heads = [Head("", columns)]
    return _table(
        "rollout-endings", "How attempts ended", runs, heads, cells, notes, intervals=True
    )


def _ending_columns(found: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
    return (
        *_present([each["endings"] for each in found]),
        Column("False finish", "false_finish"),
        Column("Attempts", "n", "count"),
    )


def _present(counts: Sequence[Mapping[str, int]]) -> list[Column]:
    names = (name for name in HEADERS if any(name in each for each in counts))
    return [Column(HEADERS[name], name) for name in names]


def _ending_cells(found: Mapping[str, Any], columns: Sequence[Column]) -> tuple[Cell, ...]:
    active, false = (make_cell(found, name) for name in ("active_finish", "false_finish"))
    shares = zip(columns, _shares(found["endings"], columns[:-2]), strict=False)
    cells = [active if column.metric == "finished" else share for column, share in shares]
    return (*cells, false, Cell(found["attempts"]))


def _shares(counts: Mapping[str, int], columns: Sequence[Column]) -> list[Cell]:
    whole = sum(counts.values())
    return [Cell(counts.get(each.metric, 0) / whole if whole else None) for each in columns]


def _by(runs: Sequence[Run], axis: str) -> Table:
    found = [
        (name, group, each, run)
        for name, run in zip(run_names(runs), runs, strict=True)
        for group, each in _groups(run).get(axis, {}).items()
    ]
    columns = _ending_columns([each for _, _, each, _ in found])
    rows = [
        Row((name, group), _ending_cells(each, columns), group=group, run=str(run.path))
        for name, group, each, run in found
    ]
    what, labels = f"How attempts ended, by {axis}", ("Agent", axis.capitalize())
    return make_table(f"rollout-endings-by-{axis}", what, runs, labels, [Head("", columns)], rows)


def _groups(run: Run) -> Mapping[str, Any]:
    return run.results["rollouts"].get("by") or {}


def _failures(runs: Sequence[Run]) -> Table:
    """Return the shares of the attempts that did not succeed, as in AgentStudio's Table 2."""
    found = [run.results["rollouts"]["failures"] for run in runs]
    columns = [
        replace(column, header="False finish") if column.metric == "finished" else column
        for column in _present(found)
    ]
    head = Head("", (*columns, Column("Failures", "n", "count")))
    cells = ([*_shares(each, columns), Cell(sum(each.values()))] for each in found)
    note = "Failures: attempts without a score of 1, and those without any."
    return _table("rollout-failures", "Failure modes", runs, [head], cells, [note])


def curves(runs: Sequence[Run]) -> list[tuple[Run, list[float]]]:
    """Return the success rates within 1, 2, ... turns of each run that has them.

    All curves have the length of the longest: an agent that was stopped had no more turns, and its
    curve goes on flat.
    """
    found = [
        (run, curve) for run in runs if (curve := run.results.get("rollouts", {}).get("within"))
    ]
    most = max((len(curve) for _, curve in found), default=0)
    return [(run, [*curve, *[curve[-1]] * (most - len(curve))]) for run, curve in found]


def _within(runs: Sequence[Run]) -> Iterator[Table]:
    found = curves(runs)
    if not found:
        return
    most = len(found[0][1])
    points = [turns for turns in TURNS if turns < most] + [most]
    columns = (
        *(Column(str(turns), f"SR_within_{turns}") for turns in points),
        Column("Area", "area"),
    )
    own = [run for run, _ in found]
    cells = (
        [*(Cell(curve[turns - 1]) for turns in points), Cell(sum(curve) / most)]
        for _, curve in found
    )
    limits = {run.results["rollouts"].get("step_limit") for run in own}
    notes = [
        "What the attempts with a score and a trajectory had reached by then. A part of a score "
        f"counts from the turn at which it was reached. Area: the mean over 1 to {most} turns."
    ]
    if len(limits) > 1:
        shown = ", ".join(str(limit or "unknown") for limit in sorted(limits, key=lambda n: n or 0))
        notes.append(f"The agents had other limits of turns ({shown}): their areas do not compare.")
    what = "Success within so many turns"
    table = _table("rollout-within", what, own, [Head("", columns)], cells, notes)
    if len(limits) == 1:
        table = replace(table, rows=tuple(mark_best(columns, table.rows)))
    yield table


def _effort(runs: Sequence[Run]) -> Table:
    """Return the turns, seconds and tokens of an attempt; the turns are OSWorld's Figure 9."""
    found = [run.results["rollouts"] for run in runs]
    kinds = [kind for kind in _EFFORT if any(each.get(kind) for each in found)]
    heads = [
        Head(_EFFORT[kind], tuple(Column(key, f"{kind}_{key}", "number") for key in _SUMMARY))
        for kind in kinds
    ]
    cells = (
        [Cell((each.get(kind) or {}).get(key)) for kind in kinds for key in _SUMMARY]
        for each in found
    )
    note = "Seconds: as the source has them, per attempt. A dash: it does not say."
    return _table("rollout-effort", "What an attempt takes", runs, heads, cells, [note])


def _attempts(runs: Sequence[Run]) -> Table:
    found = [run.results["attempts"] for run in runs]
    possible = {k for each in found for k in choices(each["n"])}
    ks = sorted(possible & {int(k) for each in found for k in each["k"]})
    metrics = ("pass@k", "pass^k", "pass@k_all", "pass^k_all")
    heads = [
        Head(
            metric.replace("k_all", "k, all tasks"),
            tuple(Column(f"k={k}", f"{metric.replace('k', str(k), 1)}") for k in ks),
        )
        for metric in metrics
    ]
    sizes = {"n": "Attempts", "finished": "Finished", "tasks": "Tasks"}
    heads.append(Head("", tuple(Column(header, name, "count") for name, header in sizes.items())))
    cells = (
        [
            *(
                make_cell(row, metric)
                for metric in metrics
                for row in (each["k"].get(str(k), {}) for k in ks)
            ),
            *(Cell(each[size]) for size in sizes),
        ]
        for each in found
    )
    note = (
        "pass@k: one of k attempts succeeds (Chen et al., 2021); pass^k: all k do. Both over the "
        "tasks that all attempts finished, and over all tasks, where what is unfinished failed."
    )
    what = "Several attempts at each task"
    return _table("attempts", what, runs, heads, cells, [note], intervals=True)
