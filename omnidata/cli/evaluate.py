"""`omnidata evaluate` and `omnidata score`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnidata.cli import terminal
from omnidata.errors import RunError

if TYPE_CHECKING:
    from omnidata.types import Source, Task

_LINES = "predictions.jsonl"
TaskName = Annotated[str, typer.Argument(metavar="TASK", help="The benchmark, e.g. omnigui.")]
Data = Annotated[Path, typer.Argument(metavar="DATA", help="The dataset's folder or file.")]
TaskOptions = Annotated[
    list[str],
    typer.Option(
        "-T",
        metavar="KEY=VALUE",
        help="A task option, e.g. modalities=I (repeatable).",
        default_factory=list,
        show_default=False,
    ),
]
Profile = Annotated[
    str | None, typer.Option(help="The scoring rules; the task's default follows its paper.")
]
Where = Annotated[
    list[str],
    typer.Option(
        metavar="TAG=VALUE",
        help="Only episodes with this tag, e.g. dimension=localization (repeatable).",
        default_factory=list,
        show_default=False,
    ),
]
Exclude = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Sample ids to leave out, one per line.")
]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first N steps.")]
Strict = Annotated[bool, typer.Option("--strict", help="Make findings in the data an error.")]
Json = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]


def evaluate(
    task: TaskName,
    data: Data,
    model: Annotated[
        str, typer.Option(metavar="SPEC", help="The model, e.g. baseline:center or replay:FILE.")
    ],
    out: Annotated[Path, typer.Option(metavar="RUN", help="The run folder.")],
    task_options: TaskOptions,
    model_options: Annotated[
        list[str],
        typer.Option(
            "-M",
            metavar="KEY=VALUE",
            help="A model option, e.g. seed=1 (repeatable).",
            default_factory=list,
            show_default=False,
        ),
    ],
    where: Where,
    profile: Profile = None,
    exclude: Exclude = None,
    limit: Limit = None,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Ask a model about every step, score its answers, print the table.

    Running the same command again resumes an interrupted run. Exit code 1 means that some steps
    got no answer; the score is written all the same.

    Example: omnidata evaluate omnigui omnidata-demo/data --model baseline:center --out runs/center
    """
    from omnidata.run.evaluate import evaluate as run
    from omnidata.run.select import read_exclude
    from omnidata.tasks import get_task
    from omnidata.tasks.options import parse

    benchmark = get_task(task, parse(task_options, "-T"))
    source = _load(benchmark, data, strict=strict, check_media=True)
    try:
        with terminal.progress(model) as progress:
            results = run(
                benchmark,
                source,
                model,
                out,
                model_options=parse(model_options, "-M"),
                profile=profile,
                where=parse(where, "--where"),
                exclude=read_exclude(exclude, source.steps) if exclude else frozenset(),
                limit=limit,
                progress=progress,
            )
    except KeyboardInterrupt:
        terminal.note(f"interrupted; the same command resumes the run in {out}")
        raise
    _print(results, benchmark, as_json)
    terminal.note(f"run folder: {out}")
    unanswered = results["outcomes"].keys() - {"ok", "unparsed"}
    if unanswered:
        raise typer.Exit(1)


def score(
    task: TaskName,
    data: Data,
    predictions: Annotated[
        Path,
        typer.Argument(
            metavar="PREDICTIONS",
            help='JSON lines of {"sample_id", "output"}, a run folder, or a log (--from).',
        ),
    ],
    task_options: TaskOptions,
    profile: Profile = None,
    out: Annotated[
        Path | None, typer.Option(help="Write scores.jsonl and results.json into this folder.")
    ] = None,
    harness: Annotated[
        str | None,
        typer.Option("--from", metavar="HARNESS", help="The log's harness: lmms-eval."),
    ] = None,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Score answers that exist: a run's, anybody's, or another harness's log.

    Steps without an answer are `missing`, which counts as wrong. A run folder is scored on the
    steps that it asked about.

    Example: omnidata score omnigui omnidata-demo/data runs/center --profile omnigui-release
    """
    from omnidata.predictions import read
    from omnidata.run.folder import read_info
    from omnidata.run.logs import read_log
    from omnidata.run.score import get_profile
    from omnidata.run.score import score as run
    from omnidata.run.select import select, whole_episodes
    from omnidata.tasks import get_task
    from omnidata.tasks.options import parse

    settings: dict[str, Any] = {}
    if predictions.is_dir():
        settings = read_info(predictions)
    options = {
        name: value
        for name, value in settings.get("options", {}).items()
        if name == "coordinates"  # the one that judging depends on
    }
    benchmark = get_task(task, options | parse(task_options, "-T"))
    rules = get_profile(benchmark, profile)
    source = _load(benchmark, data, strict=strict, check_media=False)
    if settings and settings.get("dataset_fingerprint") != source.fingerprint:
        raise RunError(
            "the run was made on other annotations",
            where=str(predictions),
            expected="the annotations that run.json has the fingerprint of",
            remedy="name the data of the run; to score all the same, name its predictions.jsonl",
        )
    steps = select(
        source.steps,
        where=settings.get("where", {}),
        exclude=frozenset(settings.get("exclude", ())),
        limit=settings.get("limit"),
    )
    if harness:
        answers = read_log(harness, predictions, source)
    else:
        answers = read(predictions / _LINES if predictions.is_dir() else predictions)
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
        origin=predictions / _LINES if predictions.is_dir() else predictions,
        ignored=frozenset(s.sample_id for s in source.steps if s.sample_id not in chosen),
    )
    _print(results, benchmark, as_json)


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


def _load(task: Task, data: Path, *, strict: bool, check_media: bool) -> Source:
    source = task.load(data, check_media=check_media, strict=strict)
    terminal.print_findings(source)
    return source


def _print(results: dict[str, Any], task: Task, as_json: bool) -> None:
    if as_json:
        terminal.print_json(results)
    else:
        terminal.print_results(results, task.profiles[results["profile"]].columns)
