"""`omnidata synth criticbench`, `synth idm`: rows of benchmarks out of anybody's episodes.

The verbs are those that tasks name in their `derivation`; none of ours is named here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from omnidata.cli import terminal
from omnidata.cli.arguments import Json, TaskOptions, data_argument, only_task, reading_data
from omnidata.errors import Finding, counted

_Episodes = Annotated[Path, data_argument("The episodes' folder or file.")]
_Out = Annotated[Path, typer.Argument(metavar="OUT", help="The rows' folder, new.")]
_Of = Annotated[str | None, typer.Option("--task", metavar="TASK", help="Whose episodes DATA are.")]
_Seed = Annotated[int, typer.Option(help="Of everything that chance decides.")]


class Verbs(TyperGroup):
    """The verbs that are written here and below, and those that tasks name."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All of them."""
        return [*super().list_commands(ctx), *sorted(_named())]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The verb of that name; tasks are asked only where none of ours has it."""
        found = super().get_command(ctx, cmd_name)
        if found is not None or cmd_name.startswith("-"):
            return found
        tasks = _named().get(cmd_name)
        return _command(cmd_name, tasks) if tasks else None


def _named() -> dict[str, list[str]]:
    """Names of the tasks whose rows can be made of episodes, by verb."""
    from omnidata import registry

    found: dict[str, list[str]] = {}
    for name, task in registry.working():
        if task.derivation and task.derivation.of != "target":
            found.setdefault(task.derivation.verb, []).append(name)
    return found


def _command(verb: str, tasks: Sequence[str]) -> Any:
    """The verb, as the command line calls it."""

    def made(
        data: _Episodes,
        out: _Out,
        task_options: TaskOptions,
        task: _Of = None,
        seed: _Seed = 0,
        as_json: Json = False,
    ) -> None:
        from omnidata.synth.derive import REPORT, derive
        from omnidata.tasks import get_task
        from omnidata.tasks.base import parse

        usage = f"omnidata synth {verb} EPISODES OUT --task TASK"
        name = task or only_task(data, usage, lambda name, place: usage.replace("TASK", name))
        episodes = get_task(name, parse(task_options, "-T"))
        source = episodes.load(data)
        terminal.print_findings(source)
        with terminal.resumable(), terminal.progress("copying pictures") as progress:
            report = derive(
                [get_task(each) for each in tasks],
                episodes,
                source,
                out,
                seed=seed,
                progress=progress,
            )
        terminal.print_first([Finding(**told) for told in report["findings"]])
        if as_json:
            terminal.print_json(report)
        else:
            _print(report)
        terminal.note(f"rows: {out}, report: {out / REPORT}")
        for file, of in report["files"].items():
            terminal.note(f"next: omnidata audit {of} {out / file}")

    made.__doc__ = f"""Make rows of {" and ".join(tasks)} out of the episodes of any task.

    Their form tells nothing of the answers: `omnidata audit` is to find no leak. docs/derive.md
    says how they are made. Each episode needs a screenshot and an action at every step; those that
    did not succeed are left out.

    Example: omnidata synth {verb} omnidata-demo/data {verb}
    """
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command(verb)(reading_data(made))
    return typer.main.get_command(app)


def _print(report: Mapping[str, Any]) -> None:
    """What was made, as a table."""
    rows = []
    for name, made in report["made"].items():
        rows.append([name, str(made["rows"]), str(made["groups"])])
        told = {"successes": made["successes"]} if "successes" in made else {}
        counts = {**told, **made.get("designs", {}), **made.get("operations", {})}
        rows += [[f"  {label}", str(count), ""] for label, count in counts.items()]
        rows += [[f"  of {counted(int(n), 'action')}", str(count), ""]
                 for n, count in made["actions"].items()]  # fmt: skip
    terminal.print_table("", ("", "rows", "groups"), rows)
    episodes = report["episodes"]
    left_out = "".join(f"; {count} left out: {why}" for why, count in episodes["left_out"].items())
    terminal.say(f"of {counted(episodes['used'], 'episode')}{left_out}")
