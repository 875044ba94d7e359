"""Verbs that ask models and keep runs: evaluate, merge, suite."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnidata.cli import arguments as args
from omnidata.cli import runs, terminal
from omnidata.cli.declare import argument, flag, option, verb
from omnidata.errors import plural

if TYPE_CHECKING:
    from omnidata.run.errata import Errata
    from omnidata.run.suite import Outcome, SuiteRun
    from omnidata.types import Progress


@verb(args.reading_data, args.listing_findings)
def evaluate(
    *,
    task: args.TaskName,
    data: args.Data,
    model: str = option("The model, e.g. openai:NAME or baseline:center.", "SPEC", default=...),
    out: Path = option("The run folder; written, or resumed.", "RUN", default=...),
    task_options: args.TaskOptions,
    steps: args.ChosenSteps,
    profile: args.Profile = None,
    errata: args.Errata,
    strict: args.Strict = False,
    dry_run: args.DryRun = False,
    asking: args.AskedModel,
    shard: args.ShardOf = None,
    cluster: args.Engine,
    changed_media: args.ChangedMedia = False,
    require_certificate: bool = flag(
        "Refuse a model without a certificate of `omnidata certify`, or with one that has faults.",
        "--require-certificate",
    ),
    samples: int | None = option(
        "Ask for K answers to each step; needs a temperature above 0.", "K"
    ),
    verifier: Path | None = option(
        "With --samples: choose the best answer by these scores, JSON lines of "
        '{"sample_id", "sample", "score"} or a critic\'s run.',
        "FILE|RUN",
    ),
    as_json: args.Json = False,
) -> bool:
    """Ask a model about every step, score its answers and print a table.

    The same command resumes an interrupted run. With --samples the table has pass@K, agreement and
    the majority answer (docs/samples.md). Exit code 1: steps have no answer, a model was asked
    without some media, or one fault spoils most of the score. The score is written in any case.

    Example: omnidata evaluate omnigui omnidata-demo/data --model baseline:center --out runs/center
    """
    from omnidata.run.adapter_contract import sent_modalities
    from omnidata.run.certificates import check_certificate
    from omnidata.run.evaluate import evaluate as run
    from omnidata.run.selection import parse_shard

    args.check_together(
        verifier,
        samples is not None,
        "a verifier chooses among several answers, and each step has one",
        f"--verifier {verifier}",
        "--samples K",
    )
    part = parse_shard(shard) if shard else None
    benchmark, source = args.load_asking(task, task_options, data, model, asking, strict=strict)
    corrected: list[Errata] = []
    if errata:
        from omnidata.run.errata import read_all

        corrected = read_all(errata, task)
        runs.note_other_data(corrected, source)
    kept = steps.read(source.steps)
    if dry_run:
        from omnidata.run.dry_run import dry_run as preview

        seen = preview(
            benchmark,
            source,
            asking.adapter(model, benchmark, source.steps, asks=False),
            out,
            asking.limits,
            part=part,
            **kept,
        )
        runs.print_preview(seen, as_json)
        if samples:
            terminal.note(f"the estimate is of one of {plural(samples, 'sample')}")
        return False
    if require_certificate:
        made = asking.adapter(model, benchmark, source.steps, asks=False)
        sent = sent_modalities(benchmark, made, source.steps)
        check_certificate(made.name, made.settings, sent)
    chosen: dict[str, Any] = {
        **kept,
        "profile": profile,
        "shard": part,
        "limits": asking.limits,
        "changed_media": changed_media,
        "cluster": cluster,
    }
    asked, table = (benchmark, source, asking.recipe(model), out), None
    with terminal.resumable(), runs.counting() as count, terminal.progress(model) as progress:
        chosen |= {"progress": progress, "count": count, "errata": corrected}
        if samples is None:
            results = run(*asked, model_options=asking.options, **chosen)
        else:
            from omnidata.run.sampling import evaluate_samples

            results, table = evaluate_samples(*asked, samples, verifier=verifier, **chosen)
    if table and as_json:
        terminal.print_json({**results, "samples": table})
    else:
        runs.print_run(results, benchmark, out, as_json, source)
        if table:
            runs.print_samples(table, benchmark)
    return runs.is_doubtful(results) or bool(table and table["deliveries"].keys() - {"ok"})


@verb(args.reading_data)
def merge(
    *,
    parts: list[Path] = argument("The run folders of all parts, in any order.", "RUN..."),
    out: Path = option("A new run folder.", "RUN", default=...),
    data: Path | None = args.data_option("The dataset, if it has moved."),
    profile: args.Profile = None,
    as_json: args.Json = False,
) -> bool:
    """Join the parts of a run made with --shard, and score them as one.

    The parts must be complete and have the same settings. The `evaluate` command without --shard
    resumes the joined run. Exit codes are those of `evaluate`.

    Example: omnidata merge runs/part-1 runs/part-2 --out runs/whole
    """
    from omnidata.run.parts import merge as join
    from omnidata.run.recorded import recorded_task
    from omnidata.run.run_info import read_info
    from omnidata.run.sampling import sample_folders

    results = join(parts, out, data=data, profile=profile)
    runs.print_run(results, recorded_task(read_info(out)), out, as_json)
    if others := sample_folders(parts[0])[1:]:
        terminal.note(
            f"{plural(len(others), 'other sample')} of each part: merge these folders as well, "
            f"{others[0]} and so on, into {out / others[0].relative_to(parts[0])}"
        )
    return runs.is_doubtful(results)


@verb(args.reading_data, args.listing_findings)
def suite(
    *,
    file: Path = argument("The suite, in TOML (docs/evaluate.md).", "FILE"),
    reuse_answers: args.ReuseAnswers = False,
    cluster: args.Engine,
    as_json: args.Json = False,
) -> bool:
    """Evaluate every model of a TOML file on every task, in one table.

    Each run has its own folder, as `evaluate` makes it. The same command resumes all runs. A run
    that fails does not stop the others. Exit code 1: a run failed, or `evaluate` would exit with 1
    for a run.

    Example: omnidata suite suite.toml
    """
    from omnidata.run.suite import read_suite, run_suite

    planned_runs = [
        replace(planned, limits=replace(planned.limits, reuse_answers=reuse_answers))
        for planned in read_suite(file)
    ]
    numbers = {id(planned): number for number, planned in enumerate(planned_runs, 1)}

    def watch(planned: SuiteRun) -> AbstractContextManager[Progress]:
        return terminal.progress(f"{numbers[id(planned)]}/{len(planned_runs)} {planned.out.name}")

    outcomes: list[Outcome] = []
    with terminal.resumable():
        for outcome in run_suite(
            planned_runs, loaded=terminal.print_findings, watch=watch, cluster=cluster
        ):
            outcomes.append(outcome)
            runs.note_outcome(outcome)
    outcomes.sort(key=lambda outcome: numbers[id(outcome.planned)])
    if as_json:
        terminal.print_json([_as_json(outcome) for outcome in outcomes])
    else:
        _print(outcomes, str(file))
    return any(not each.results or runs.is_doubtful(each.results) for each in outcomes)


def _as_json(outcome: Outcome) -> dict[str, Any]:
    from omnidata.adapters.keys import without_credentials

    planned = outcome.planned
    return {
        "run": str(planned.out),
        "task": planned.task.name or planned.task.task,
        "model": planned.model.name or planned.model.model,
        "options": dict(planned.task_options),
        "model_options": without_credentials(planned.model_options),
        "asked": outcome.asked,
        "reused": outcome.reused,
        "error": outcome.error,
        "results": outcome.results,
    }


def _print(outcomes: Sequence[Outcome], title: str) -> None:
    units: dict[str, Any] = {}
    for outcome in outcomes:
        if outcome.results:
            units |= outcome.planned.asking.profiles[outcome.results["profile"]].columns
    rows = []
    for outcome in outcomes:
        planned, results = outcome.planned, outcome.results
        overall = results["overall"] if results else {}
        rows.append(
            [
                planned.task.name or planned.task.task,
                planned.model.name or planned.model.model,
                ", ".join(f"{name}={value}" for name, value in planned.varied.items()),
                *terminal.cells({name: overall.get(name) for name in units}, units),
                *map(str, runs.lacking(results) if results else ("failed", "")),
            ]
        )
    header = ("task", "model", "options", *units, "without answer", "degraded")
    terminal.print_table(f"{title} (%)", header, rows)
