"""`omnidata score`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from omnidata.cli import arguments as args
from omnidata.cli import runs, terminal
from omnidata.errors import RunError

_LINES = "predictions.jsonl"


def score(
    task: args.TaskName,
    data: args.Data,
    predictions: Annotated[
        Path,
        typer.Argument(
            metavar="PREDICTIONS",
            help='JSON lines of {"sample_id", "output"}, a run folder, or a log (--from).',
        ),
    ],
    task_options: args.TaskOptions,
    profile: args.Profile = None,
    out: Annotated[
        Path | None, typer.Option(help="Write scores.jsonl and results.json into this folder.")
    ] = None,
    harness: Annotated[
        str | None,
        typer.Option("--from", metavar="HARNESS", help="The log's harness: lmms-eval."),
    ] = None,
    strict: args.Strict = False,
    as_json: args.Json = False,
) -> None:
    """Score answers that exist: a run's, anybody's, or another harness's log.

    Steps without an answer are `missing`, which counts as wrong. A run folder is scored on the
    steps that it asked about.

    Example: omnidata score omnigui omnidata-demo/data runs/center --profile omnigui-release
    """
    from omnidata.predictions import read
    from omnidata.run.folder import read_info
    from omnidata.run.logs import read_log
    from omnidata.run.recorded import recorded_steps, recorded_task
    from omnidata.run.score import get_profile
    from omnidata.run.score import score as run
    from omnidata.run.select import whole_episodes
    from omnidata.tasks.options import parse

    is_run = predictions.is_dir()
    info: dict[str, Any] = read_info(predictions) if is_run else {}
    benchmark = recorded_task(info, task, parse(task_options, "-T"))
    rules = get_profile(benchmark, profile)
    source = benchmark.load(data, check_media=False, strict=strict)
    terminal.print_findings(source)
    steps = recorded_steps(info, source, predictions) if is_run else list(source.steps)
    lines = predictions / _LINES if is_run else predictions
    answers = read_log(harness, predictions, source) if harness else read(lines)
    if out is not None:
        _check_out(out, predictions)
    chosen = {step.sample_id for step in steps}
    results = run(
        benchmark,
        rules,
        steps,
        answers,
        whole=whole_episodes(source.steps, steps),
        out=out,
        origin=lines,
        ignored=frozenset(s.sample_id for s in source.steps if s.sample_id not in chosen),
    )
    runs.print_results(results, benchmark, as_json)


def _check_out(out: Path, predictions: Path) -> None:
    """Refuse a folder whose content the scores would be taken to belong to."""
    run = predictions if predictions.is_dir() else predictions.parent
    is_run = (run / "run.json").is_file() and (run == predictions or predictions.name == _LINES)
    if not out.exists() or (is_run and out.resolve() == run.resolve()):
        return
    if out.is_dir() and {path.name for path in out.iterdir()} <= {"scores.jsonl", "results.json"}:
        return
    raise RunError(
        "the place holds other things",
        where=f"--out {out}",
        expected="a new folder, one of earlier scores, or the run that is scored",
        remedy="give another --out",
    )
