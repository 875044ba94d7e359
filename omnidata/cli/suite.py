"""`omnidata suite`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnidata.cli import arguments as args
from omnidata.cli import runs, terminal
from omnidata.cli.arguments import reading_data

if TYPE_CHECKING:
    from omnidata.run.engine import Progress
    from omnidata.run.suite import Cell, Outcome


@reading_data
def suite(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The suite, in TOML.")],
    as_json: args.Json = False,
) -> None:
    """Run every model of a file on every task: one table.

    Each run has a folder of its own, as `evaluate` makes it; running the same command again
    resumes them all. A run that fails does not stop the others. Exit code 1 means that a run
    failed, or that some steps got no answer or an answer to less than all of their media.

    Example: omnidata suite suite.toml
    """
    from omnidata.run.suite import read_suite, run_suite

    cells = read_suite(file)
    numbers = {id(cell): number for number, cell in enumerate(cells, 1)}

    def watch(cell: Cell) -> AbstractContextManager[Progress]:
        return terminal.progress(f"{numbers[id(cell)]}/{len(cells)} {cell.out.name}")

    outcomes: list[Outcome] = []
    with runs.resumable():
        for outcome in run_suite(cells, loaded=terminal.print_findings, watch=watch):
            outcomes.append(outcome)
            if outcome.results:
                line = terminal.outcome_line(outcome.results)
                terminal.note(f"{outcome.cell.out}: {line}")
            else:
                terminal.note(f"{outcome.cell.out}: failed: {outcome.error}")
    if as_json:
        terminal.print_json([_as_json(outcome) for outcome in outcomes])
    else:
        _print(outcomes, str(file))
    if any(not o.results or any(runs.lacking(o.results)) for o in outcomes):
        raise typer.Exit(1)


def _as_json(outcome: Outcome) -> dict[str, Any]:
    cell = outcome.cell
    return {
        "run": str(cell.out),
        "task": cell.task.name or cell.task.task,
        "model": cell.model.name or cell.model.model,
        "options": dict(cell.task_options),
        "model_options": dict(cell.model_options),
        "error": outcome.error,
        "results": outcome.results,
    }


def _print(outcomes: Sequence[Outcome], title: str) -> None:
    """A row per run; a metric that a run's profile does not have is a dash."""
    units: dict[str, Any] = {}
    for outcome in outcomes:
        if outcome.results:
            units |= outcome.cell.benchmark.profiles[outcome.results["profile"]].columns
    rows = []
    for outcome in outcomes:
        cell, results = outcome.cell, outcome.results
        overall = results["overall"] if results else {}
        rows.append(
            [
                cell.task.name or cell.task.task,
                cell.model.name or cell.model.model,
                ", ".join(f"{name}={value}" for name, value in cell.varied.items()),
                *terminal.cells({name: overall.get(name) for name in units}, units),
                *map(str, runs.lacking(results) if results else ("failed", "")),
            ]
        )
    header = ("task", "model", "options", *units, "without answer", "degraded")
    terminal.print_table(f"{title} (%)", header, rows)
