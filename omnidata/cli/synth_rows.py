"""`omnidata synth criticbench`, `synth idm`: rows of benchmarks from other episodes and runs.

Tasks name the verbs in their `derivation`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from omnidata import registry
from omnidata.cli import arguments as args
from omnidata.cli import help, terminal
from omnidata.cli.data import only_task
from omnidata.cli.declare import argument, declaration, verb
from omnidata.errors import Finding, UsageError, plural

_Episodes = Annotated[Path, args.data_argument("Folder or file of the episodes.")]
_Out = Annotated[Path, argument("A new folder for the rows.", "OUT")]
_Of = Annotated[str | None, declaration("The benchmark of DATA.", "TASK", name="--task")]
_Runs = Annotated[
    list[Path] | None,
    declaration(
        "Ask about the answers of this run on DATA, and its samples (repeatable).",
        "RUN",
        name="--run",
    ),
]
_Seed = Annotated[int, declaration("Seed of all random choices.")]
_OF_ANSWERS: Final = ("answer", "answers")
"""Values of `Derivation.of` whose rows are made from runs."""


class Verbs(help.Verbs):
    """The verbs of this module, and those that tasks name."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return all of them."""
        return [*super().list_commands(ctx), *sorted(_tasks_by_verb())]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the verb of that name; tasks are asked only where none of ours has it."""
        found = super().get_command(ctx, cmd_name)
        if found is not None or cmd_name.startswith("-"):
            return found
        tasks = _tasks_by_verb().get(cmd_name)
        return _command(cmd_name, tasks) if tasks else None


def _tasks_by_verb() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, task in registry.working():
        if task.derivation and task.derivation.of != "target":
            found.setdefault(task.derivation.verb, []).append(name)
    return found


def _command(name: str, tasks: Sequence[str]) -> Any:
    from omnidata.synth.derive import derivation_of
    from omnidata.tasks import get_task

    kinds = {each: derivation_of(get_task(each)).of for each in tasks}
    of_answers = [each for each in tasks if kinds[each] in _OF_ANSWERS]
    of_episodes = [each for each in tasks if kinds[each] not in _OF_ANSWERS]

    def make_rows(
        data: _Episodes,
        out: _Out,
        task_options: args.TaskOptions,
        task: _Of = None,
        runs: _Runs = None,
        profile: args.Profile = None,
        changed_media: args.ChangedMedia = False,
        seed: _Seed = 0,
        as_json: args.Json = False,
    ) -> None:
        from omnidata.run.run_info import read_info
        from omnidata.synth.derive import REPORT, derive
        from omnidata.training.preferences import run_options

        if runs:
            if not of_answers:
                raise UsageError(
                    f"{name} cannot make rows from answers",
                    where=f"--run {runs[0]}",
                    expected="episodes alone",
                    remedy="drop --run",
                )
            of = task or read_info(runs[0])["task"]
            had = run_options(of, runs[0], task_options, "--run")
            episodes = get_task(of, had.values, texts=had.texts)
        else:
            if profile or changed_media:
                raise UsageError(
                    "this option is for answers of a run, and no run is named",
                    where=f"--profile {profile}" if profile else "--changed-media",
                    expected="--run RUN as well",
                )
            of = task or only_task(data, f"omnidata synth {name} DATA OUT --task TASK")
            episodes = get_task(of, task_options)
        source = episodes.load(data)
        terminal.print_findings(source)
        with terminal.resumable(), terminal.progress("making rows") as progress:
            if runs:
                from omnidata.synth.critics import derive_critics

                report = derive_critics(
                    [get_task(each) for each in of_answers],
                    episodes,
                    source,
                    runs,
                    out,
                    profile=profile,
                    changed_media=changed_media,
                    progress=progress,
                )
            else:
                wanted = [get_task(each) for each in of_episodes]
                report = derive(wanted, episodes, source, out, seed=seed, progress=progress)
        terminal.print_kinds([Finding(**each) for each in report["findings"]])
        if as_json:
            terminal.print_json(report)
        elif runs:
            _print_answers(report)
        else:
            _print(report)
        terminal.note(f"rows: {out}, report: {out / REPORT}")
        for file, about in report["files"].items():
            terminal.note(f"next: omnidata audit {about} {out / file}")

    more = (
        f"""

    With --run it makes rows of {" and ".join(of_answers)}: the model's prompt, its answer, and
    whether the profile accepts it (docs/critics.md). Options are those of the run; -T changes them.
    """
        if of_answers
        else ""
    )
    make_rows.__doc__ = f"""Make rows of {" and ".join(of_episodes)} from episodes.

    The form of the rows does not reveal the answers (check with `omnidata audit`); docs/derive.md
    describes the method. Each episode needs a screenshot and an action at every step. Failed
    episodes are left out.{more}

    Example: omnidata synth {name} omnidata-demo/data {name}
    """
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command(name, cls=help.Verb)(verb(args.reading_data)(make_rows))
    return typer.main.get_command(app)


def _print(report: Mapping[str, Any]) -> None:
    rows = []
    for name, made in report["made"].items():
        rows.append([name, str(made["rows"]), str(made["groups"])])
        successes = {"successes": made["successes"]} if "successes" in made else {}
        counts = {**successes, **made.get("designs", {}), **made.get("operations", {})}
        rows += [[f"  {label}", str(count), ""] for label, count in counts.items()]
        rows += [[f"  of {plural(int(n), 'action')}", str(count), ""]
                 for n, count in made["actions"].items()]  # fmt: skip
    terminal.print_table("", ("", "rows", "groups"), rows)
    episodes = report["episodes"]
    left_out = "".join(f"; {count} left out: {why}" for why, count in episodes["left_out"].items())
    terminal.say(f"of {plural(episodes['used'], 'episode')}{left_out}")


def _print_answers(report: Mapping[str, Any]) -> None:
    rows = [
        [name, *(str(made[each]) for each in ("rows", "groups", "right", "wrong"))]
        for name, made in report["made"].items()
    ]
    terminal.print_table("", ("", "rows", "groups", "right", "wrong"), rows)
    for each in report["answers"]:
        for kind in ("steps", "episodes"):
            counts = ", ".join(f"{count} {name}" for name, count in each[kind].items())
            terminal.say(f"{each['run']}, {kind}: {counts}")
