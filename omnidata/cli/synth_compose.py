"""`omnidata synth pool` and `omnidata synth compose`: tasks from subtasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from omnidata.cli import arguments as args
from omnidata.cli import runs, terminal
from omnidata.cli.arguments import Asking, asks
from omnidata.errors import Finding, counted

if TYPE_CHECKING:
    from omnidata.synth.compose import Author
    from omnidata.synth.compose.settings import EdgeRule

_SHOWN = 10
_DIMENSIONS = ("dependency", "instruction", "knowledge", "hierarchy", "branch")
_LEVELS = ("easy", "medium", "hard")


def pool(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The pool's folder, new.")],
    seed: Annotated[int, typer.Option(help="Of names, colours and bindings.")] = 0,
    as_json: args.Json = False,
) -> None:
    """Make a sample pool: subtasks of made-up desktop apps, with drawn screens and actions.

    Example: omnidata synth pool pool
    """
    from omnidata.synth.pool import REPORT, make_pool

    with terminal.progress("drawing") as progress:
        report = make_pool(out, seed=seed, progress=progress)
    made = report["made"]
    if as_json:
        terminal.print_json(report)
    else:
        names = ("subtasks", "bindings", "trajectories", "steps", "pictures")
        rows = [[name, str(made[name])] for name in names]
        rows += [["apps", str(len(made["apps"]))], ["intents", str(len(made["intents"]))]]
        terminal.print_table("sample pool", ("", ""), rows)
    terminal.note(f"pool: {out}, report: {out / REPORT}")


@asks
def compose(
    pool: Annotated[Path, typer.Argument(metavar="POOL", help="Subtasks and trajectories.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The tasks' folder, new.")],
    level: Annotated[
        list[str],
        typer.Option(
            metavar="DIMENSION=LEVEL",
            help="E.g. dependency=hard (repeatable): dependency, instruction, knowledge, "
            "hierarchy, branch; easy, medium, hard.",
            default_factory=list,
            show_default=False,
        ),
    ],
    intent: Annotated[
        list[str],
        typer.Option(
            metavar="TEXT",
            help="Only intents with this text (repeatable).",
            default_factory=list,
            show_default=False,
        ),
    ],
    initial: Annotated[
        list[str],
        typer.Option(
            metavar="KIND",
            help="Resources of this kind exist initially, and no others (repeatable; all that "
            "end with _path if left).",
            default_factory=list,
            show_default=False,
        ),
    ],
    tasks: Annotated[int, typer.Option(metavar="N", min=1, help="Distinct tasks.")] = 100,
    seed: Annotated[int, typer.Option(help="Of everything that chance decides.")] = 0,
    most: Annotated[int, typer.Option(help="Subtasks of a task at most.")] = 10,
    edges: Annotated[
        Literal["latest", "every"],
        typer.Option(help="From what last made or changed a resource, or from all that did."),
    ] = "latest",
    orders: Annotated[int, typer.Option(help="Orders that a task lists at most.")] = 20,
    trajectories: Annotated[int, typer.Option(help="Of a task; 0 = graphs alone.")] = 1,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the distribution there; needs the extra plots."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; one per core if left.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="SPEC", help="Writes the instructions; by template if left."),
    ] = None,
    rounds: Annotated[int, typer.Option(help="An instruction is written so often at most.")] = 3,
    *,
    asking: Asking,
    as_json: args.Json = False,
) -> None:
    """Compose tasks of controlled complexity from a pool of subtasks.

    Subtasks of one intent are joined where one provides what another needs; no task is there twice.
    A model's instruction is taken only if the same graph can be read from it again. The same seed
    makes the same bytes with any number of workers; an interrupted call goes on when it is made
    again.

    Example: omnidata synth compose pool tasks --tasks 1000 --level hierarchy=hard
    """
    from omnidata.data.processes import cores
    from omnidata.synth.compose import REPORT, Settings, run_folder
    from omnidata.synth.compose import compose as run
    from omnidata.synth.compose.settings import parse_levels

    settings = Settings(
        seed=seed,
        levels=parse_levels(level),
        intents=tuple(intent),
        edges=edges,
        most=most,
        orders=orders,
        trajectories=trajectories,
        initial=tuple(initial) or None,
    )
    if plot is not None:
        from omnidata.figures import check

        check(plot)
    author = _author(model, asking, edges)
    with runs.resumable(), terminal.progress("composing tasks") as progress:
        if author is not None:
            author = replace(author, rounds=rounds, limits=asking.limits, progress=progress)
        report = run(
            pool,
            out,
            settings,
            tasks=tasks,
            author=author,
            workers=workers or cores(),
            progress=progress,
        )
    if plot is not None:
        from omnidata.synth.compose.parts import draw

        draw(report["made"], plot)
        terminal.note(f"figure: {plot}")
    _print(report, as_json)
    terminal.note(f"tasks: {out}, report: {out / REPORT}")
    if model is not None:
        terminal.note(f"answers: {run_folder(out)}")


def _author(model: str | None, asking: Asking, edges: EdgeRule) -> Author | None:
    """Who writes; None for the template, beside which options of a model mean nothing."""
    from omnidata.errors import UsageError
    from omnidata.synth.compose.instructions import Author, Questions

    if model is None:
        given = {
            "-M": asking.options,
            "--base-url": asking.base_url,
            "--key-file": asking.key_file,
            "--models": asking.models,
        }
        for flag, value in given.items():
            if value:
                raise UsageError("nobody is asked", where=flag, expected="--model SPEC beside it")
        return None
    return Author(asking.adapter(model, Questions(edges), ()), asking.options)


def _print(report: Mapping[str, Any], as_json: bool) -> None:
    """The report as JSON, or as the tables of OmniBench's figure 3."""
    made = report["made"]
    for said in made["findings"][:_SHOWN]:
        terminal.note(str(Finding(**said)))
    if as_json:
        terminal.print_json(report)
        return
    total = made["sums"]["tasks"]
    rows = []
    for name in _DIMENSIONS:
        counts = made["levels"][name]
        shares = [terminal.percent(counts[level] / total) for level in _LEVELS]
        cells = zip((counts[level] for level in _LEVELS), shares, strict=True)
        rows.append([name, *(f"{count} ({share})" for count, share in cells)])
    terminal.print_table(f"{counted(total, 'task')} by complexity (%)", ("", *_LEVELS), rows)
    for axis in ("intents", "apps"):
        ranked = sorted(made[axis].items(), key=lambda pair: (-pair[1], pair[0]))
        rows = [[name or "-", str(n), terminal.percent(n / total)] for name, n in ranked]
        terminal.print_table(axis, ("", "tasks", "%"), rows)
    _say_sums(made, total)


def _say_sums(made: Mapping[str, Any], total: int) -> None:
    sums, search, instructions = made["sums"], made["search"], made["instructions"]
    apps = sum(int(number) * count for number, count in made["apps_per_task"].items())
    terminal.say(
        f"a task on average: {sums['subtasks'] / total:.2f} subtasks, {sums['edges'] / total:.2f} "
        f"edges, {apps / total:.2f} apps, {sums['words'] / total:.1f} words of instruction"
    )
    made_of = counted(sums["steps"], "step")
    terminal.say(f"{counted(sums['trajectories'], 'trajectory')} with {made_of}")
    if sampled := sums["tasks_with_more_orders"]:
        terminal.say(f"a fair sample of its orders is listed by {counted(sampled, 'task')}")
    terminal.say(f"exist initially: {', '.join(made['initial']) or 'nothing'}")
    terminal.say(
        f"{counted(search['attempts'], 'attempt')}: {search['isomorphic_copies']} came to a task "
        f"that was there already, {search['other_levels']} to other levels, "
        f"{search['no_graph']} to none"
    )
    if instructions["by"] == "model":
        reasons = ", ".join(f"{n} {why}" for why, n in instructions["not_accepted"].items())
        terminal.say(
            f"instructions: {instructions['accepted']} accepted, "
            f"{counted(instructions['rejected'], 'task')} left out; "
            f"not accepted: {reasons or 'none'}"
        )
