"""`omnidata info`: what is supported, what a dataset holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnidata.cli import terminal
from omnidata.errors import UsageError

if TYPE_CHECKING:
    from omnidata.types import Source


def info(
    data: Annotated[
        Path | None, typer.Argument(metavar="[DATA]", help="The dataset's folder or file.")
    ] = None,
    expect: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="Compare the counts with the paper's: table7."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the paper's Figure 2 of it: png, svg or pdf."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Make the first finding an error.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show what is supported, or what a dataset holds and what is wrong with it.

    Exit code 1 means that something is missing or unusable, or that the counts differ from TABLE.

    Example: omnidata info omnidata-demo/data
    """
    if expect not in (None, "table7"):
        raise UsageError(
            "no such table", where=f"--expect {expect}", expected="table7", remedy="--expect table7"
        )
    if data is None:
        if expect or strict or plot:
            raise UsageError("there is no data to look at", expected="omnidata info DATA ...")
        _supported(as_json)
        return
    from omnidata.loaders.omnigui_counts import compare, count, distribution
    from omnidata.tasks import get_task

    if plot:
        from omnidata.data import plots

        plots.check(plot)
    source = get_task("omnigui").load(data, strict=strict)
    counts = count(source.steps)
    spread = distribution(source.steps)
    differences = compare(counts) if expect else []
    if as_json:
        terminal.print_json(
            {
                "task": source.task,
                "fingerprint": source.fingerprint,
                "steps": len(source.steps),
                "episodes": counts["total"]["episodes"],
                "skipped": source.skipped,
                "counts": counts,
                "distribution": spread,
                "findings": [finding.as_dict() for finding in source.findings],
                "differences": differences,
            }
        )
    else:
        _print_counts(counts)
        _print_distribution(spread, counts["total"])
        for finding in source.findings:
            terminal.note(str(finding))
        _print_summary(source, counts["total"]["episodes"])
        for difference in differences:
            terminal.say(f"differs from Table 7: {difference}")
        if expect and not differences:
            terminal.say("all counts are those of Table 7")
    if plot:
        for name, drawn in plots.draw(counts, spread, plot).items():
            terminal.note(f"no installed font can draw the app {name!r}: it is written {drawn}")
        terminal.note(f"figure: {plot}")
    if differences or any(finding.severity == "error" for finding in source.findings):
        raise typer.Exit(1)


def _supported(as_json: bool) -> None:
    from omnidata.adapters import FORMS
    from omnidata.run.logs import READERS
    from omnidata.tasks import NAMES, get_task

    tasks = [get_task(name) for name in NAMES]
    if as_json:
        described = {
            task.name: {
                "profiles": list(task.profiles),
                "default_profile": task.default_profile,
                "options": {name: list(values) for name, values in task.allowed.items()},
                "baselines": list(task.baselines),
            }
            for task in tasks
        }
        terminal.print_json({"tasks": described, "models": FORMS, "logs": list(READERS)})
        return
    for task in tasks:
        terminal.say(f"task {task.name}")
        terminal.say(f"  profiles: {', '.join(task.profiles)}")
        for name, values in task.allowed.items():
            terminal.say(f"  -T {name}={'|'.join(values) or 'FOLDER'}")
        terminal.say(f"  baselines: {', '.join(task.baselines)}")
    terminal.say("models:   " + "  ".join(FORMS))
    terminal.say("logs:     " + ", ".join(READERS))


def _print_counts(counts: dict[str, Any]) -> None:
    keys = [key for key in counts["total"] if key != "language"]
    rows = [
        [name, row["language"], *(str(row[key]) for key in keys)]
        for name, row in (*counts["apps"].items(), ("total", counts["total"]))
    ]
    terminal.print_table("Episodes and steps, as in Table 7", ("app", "lang", *keys), rows)


def _print_distribution(spread: dict[str, Any], total: dict[str, Any]) -> None:
    rows = []
    for axis, groups in spread.items():
        for name, row in groups.items():
            shares = [f"{terminal.percent(row[k] / total[k])} %" for k in ("episodes", "steps")]
            mean = f"{row['steps'] / row['episodes']:.2f}" if row["episodes"] else "-"
            numbers = (str(row["apps"]), str(row["episodes"]), shares[0], str(row["steps"]))
            rows.append([f"{axis}: {name}", *numbers, shares[1], mean])
    mean = f"{total['steps'] / total['episodes']:.2f}"
    rows.append(["total", "", str(total["episodes"]), "", str(total["steps"]), "", mean])
    terminal.print_table(
        "Distribution, as in Figure 2",
        ("", "apps", "episodes", "", "steps", "", "steps/episode"),
        rows,
    )


def _print_summary(source: Source, episodes: int) -> None:
    from collections import Counter

    errors = sum(finding.severity == "error" for finding in source.findings)
    unusable = sum(step.action is None for step in source.steps)
    terminal.say(
        f"{episodes} episodes, {len(source.steps)} steps, {source.skipped} rows skipped, "
        f"{unusable} steps without a usable target, {errors} errors, "
        f"{len(source.findings) - errors} warnings"
    )
    for code, number in Counter(finding.code for finding in source.findings).most_common():
        terminal.say(f"  {number} {code}")
