"""`omnidata synth label`, `filter` and `recaption`: data from a model's answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from omnidata.cli import arguments as args
from omnidata.cli import runs, terminal
from omnidata.cli.data import only_task
from omnidata.cli.declare import argument, declaration, option, verb
from omnidata.errors import Finding, UsageError, plural

if TYPE_CHECKING:
    from omnidata.run.asker import Recipe
    from omnidata.run.engines import Cluster
    from omnidata.synth.annotate import Annotator, Done
    from omnidata.tasks.asking import Asking
    from omnidata.types import Adapter, LoadedDataset, Step

Out = Annotated[Path, argument("A new folder for the dataset.", "OUT")]
Model = Annotated[str, declaration("The model, e.g. openai:NAME or hf:FOLDER.", "SPEC")]


@verb(args.reading_data, args.listing_findings)
def label(
    data: args.Data,
    out: Out,
    model: Model,
    task_options: args.TaskOptions,
    known: Path | None = args.data_option(
        "Data with known targets, to measure the model's precision."
    ),
    dry_run: args.DryRun = False,
    *,
    asking: args.AskedModel,
    cluster: args.Engine,
    as_json: args.Json = False,
) -> bool:
    """Label steps: ask a model for the action between screenshots.

    Steps with a target keep it. The model's precision is measured on them and on --known, and
    printed. Unusable answers label nothing. The same command resumes an interrupted run and asks
    again about unanswered steps.

    Exit code 1: steps have no answer, a model was asked without some media, no step was labelled,
    or the run stopped early (then OUT is not written).

    Example: omnidata synth label recording labelled --model openai:gpt-4o --known by-hand
    """
    from omnidata.synth.label import Labelling

    made = _load_questions(Labelling, "action", "labels the actions of", data, known, task_options)
    if dry_run:
        _preview(made, out, model, asking, as_json)
        return False
    done = _annotate(made, out, model, asking, cluster)
    steps = done.report["steps"]
    counts = {
        "all": steps["all"],
        "with a target of their own": steps["with_target"],
        "labelled": steps["labelled"],
        **{f"not labelled: {why}": count for why, count in steps["unlabelled"].items()},
    }
    _print(done, out, "steps", counts, ("type", "exact"), as_json)
    nothing = steps["all"] > steps["with_target"] and not steps["labelled"]
    return _finish(done, "no step could be labelled" if nothing else "")


@verb(args.reading_data, args.listing_findings)
def filter_(
    data: args.Data,
    out: Out,
    model: Model,
    task_options: args.TaskOptions,
    known: Path | None = args.data_option(
        "Data with known success, to measure the critic's precision."
    ),
    dry_run: args.DryRun = False,
    *,
    asking: args.AskedModel,
    cluster: args.Engine,
    as_json: args.Json = False,
) -> bool:
    """Keep the episodes that a critic judges successful.

    The critic's precision is measured if success is known (column `is_success`, or --known), and
    printed. Unreadable answers accept nothing. The same command resumes an interrupted run.

    Exit code 1: episodes have no answer, a model was asked without some media, no episode is
    accepted, or the run stopped early. OUT is written only if an episode is accepted.

    Example: omnidata synth filter labelled kept --model openai:gpt-4o --known criticbench.jsonl
    """
    from omnidata.synth.filter import Filtering

    made = _load_questions(Filtering, "success", "judges the success of", data, known, task_options)
    if dry_run:
        _preview(made, out, model, asking, as_json)
        return False
    done = _annotate(made, out, model, asking, cluster)
    episodes = done.report["episodes"]
    _print(done, out, "episodes", episodes, ("precision", "recall"), as_json)
    return _finish(done, "" if episodes["accepted"] else "no episode is accepted")


@verb(args.reading_data, args.listing_findings)
def recaption(
    data: args.Data,
    out: Out,
    model: Model,
    task_options: args.TaskOptions,
    grounder: str | None = option(
        "Model that finds the elements again. Default: the same model.", "SPEC"
    ),
    task: str | None = option("The benchmark of DATA, if the data fit several.", "TASK"),
    *,
    asking: args.AskedModel,
    cluster: args.Engine,
    as_json: args.Json = False,
) -> bool:
    """Rewrite instructions of elements, and keep those that work.

    A model sees each screenshot with its element framed, and writes a new instruction. It then has
    to find the element without the frame, by the new and by the old instruction. OUT has the rows
    whose new instruction works, with the old one kept. The same command resumes an interrupted run.

    Exit code 1: a question has no answer, or no new instruction works (then OUT is not written).

    Example: omnidata synth recaption screens recaptioned --model openai:gpt-4o
    """
    from omnidata.synth.recaption import Asked, writer_for
    from omnidata.synth.recaption import recaption as run
    from omnidata.tasks import get_task

    command = "omnidata synth recaption DATA OUT --model SPEC --task TASK"
    name = task or only_task(data, command)
    benchmark = get_task(name, task_options)
    source = benchmark.load(data)
    terminal.print_findings(source)
    made = partial(_make_model, asking, cluster)
    author = Asked(model, partial(made, model), asking.options)
    finder = author
    if grounder is not None and grounder != model:
        plain = replace(asking, options={}, base_url=None, key_file=None)

        def make_grounder(task: Asking, steps: Sequence[Step]) -> Adapter | Recipe:
            try:
                return _make_model(plain, cluster, grounder, task, steps)
            except UsageError as error:
                where = (error.where or "").replace("--model", "--grounder")
                raise UsageError(
                    error.what, where=where, expected=error.expected, remedy=error.remedy
                ) from None

        finder = Asked(grounder, make_grounder)
    with terminal.resumable(), runs.counting() as count, terminal.progress(model) as progress:
        report = run(
            benchmark,
            source,
            get_task(writer_for(name)),
            out,
            author=author,
            grounder=finder,
            limits=asking.limits,
            cluster=cluster,
            progress=progress,
            count=count,
        )
    if as_json:
        terminal.print_json({**report, "out": str(out) if report["files"] else None})
    else:
        elements, grounded = report["elements"], report["grounded"]
        counts = [(label, str(elements[label])) for label in ("all", "captioned", "kept")]
        terminal.print_table("", ("elements", model), counts)
        shares = {f"{label} recaptioning": found for label, found in grounded.items()}
        _print_shares(f"elements that {finder.name} finds", "found", shares)
        for why, count in elements["left_out"].items():
            terminal.say(f"{plural(count, 'step')} left out: {why}")
    if not report["files"]:
        terminal.note("no new instruction finds its element, so nothing is written")
        return True
    terminal.note(f"rows: {out}")
    return False


def _make_model(
    asking: args.ModelOptions,
    cluster: Cluster | None,
    spec: str,
    task: Asking,
    steps: Sequence[Step],
) -> Adapter | Recipe:
    """Return the model, or a recipe to make it elsewhere.

    A baseline asks here: it needs all questions.
    """
    # Created before anything is written, so that its errors come first.
    if cluster and not spec.startswith("baseline:"):
        return asking.recipe(spec)
    if cluster:
        terminal.note(f"{spec} runs on this machine, not on the cluster")
    return asking.adapter(spec, task, steps)


def _load_questions(
    kind: type[Annotator[Any]],
    of: str,
    does: str,
    data: Path,
    known: Path | None,
    task_options: Mapping[str, str],
) -> Annotator[Any]:
    from omnidata.loaders.load import task_for
    from omnidata.synth.annotate import about
    from omnidata.tasks import get_task

    def load(task: str, path: Path) -> LoadedDataset:
        source = get_task(task).load(path)
        kept = [f for f in source.findings if f.code != "target-absent"]
        terminal.print_findings(replace(source, findings=kept))
        return source

    name = task_for(data, lambda one: one.about is not None and one.about.annotation.of == of, does)
    task = get_task(name, task_options)
    source = load(task.benchmark.data_of, data)
    others = load(about(task).annotation.known_from, known) if known else None
    return kind(task, source, others)


def _preview(
    made: Annotator[Any], out: Path, model: str, asking: args.ModelOptions, as_json: bool
) -> None:
    from omnidata.run.dry_run import dry_run
    from omnidata.synth.folder import run_folder

    adapter = asking.adapter(model, made.task, made.asked.steps, asks=False)
    run = run_folder(out)
    runs.print_preview(dry_run(made.task, made.asked, adapter, run, asking.limits), as_json)


def _annotate(
    made: Annotator[Any], out: Path, model: str, asking: args.ModelOptions, cluster: Cluster | None
) -> Done:
    from omnidata.run.asker import Recipe
    from omnidata.synth.annotate import ModelSettings

    adapter = _make_model(asking, cluster, model, made.task, made.asked.steps)
    with terminal.resumable(), runs.counting() as count, terminal.progress(model) as progress:
        settings = ModelSettings(
            adapter,
            options=asking.options,
            limits=asking.limits,
            cluster=cluster if isinstance(adapter, Recipe) else None,
            progress=progress,
            count=count,
        )
        return made.annotate(out, settings)


def _print(
    done: Done,
    out: Path,
    what: str,
    counts: Mapping[str, int],
    measures: Sequence[str],
    as_json: bool,
) -> None:
    from omnidata.synth.folder import run_folder

    report, run = done.report, run_folder(out)
    terminal.print_kinds([Finding(**said) for said in report["findings"]])
    if as_json:
        place = str(out) if done.written else None
        terminal.print_json({**report, "out": place, "run": str(run)})
    else:
        rows = [(name, str(count)) for name, count in counts.items()]
        terminal.print_table("", (what, report["model"]), rows)
        if report["precision"]:
            _print_precision(report["precision"], measures)
    terminal.warn(report["warnings"])
    if done.written:
        terminal.note(f"dataset: {out}")
    terminal.note(f"answers: {run}")


def _print_precision(measured: Mapping[str, Any], measures: Sequence[str]) -> None:
    shares = {name: measured[name] for name in measures}
    _print_shares("where the truth is known", "right", shares)
    if often := measured.get("most_frequent"):
        terminal.say(
            f"{measured['labelled']} of {plural(measured['known'], 'known step')} labelled; "
            f"always {often['primitive']} would be right in "
            f"{terminal.percent(often['share'])} % (type)"
        )
    if everything := measured.get("accept_all"):
        terminal.say(f"accepting everything: {terminal.percent(everything['share'])} % (precision)")


def _print_shares(title: str, unit: str, shares: Mapping[str, Mapping[str, Any]]) -> None:
    rows = []
    for name, found in shares.items():
        interval = terminal.interval(found["ci95"], "share")
        counts = f"{found['hits']} of {found['n']}"
        rows.append((name, terminal.percent(found["share"]), interval, counts))
    terminal.print_table(title, ("", "%", "95 % interval", unit), rows)


def _finish(done: Done, nothing: str) -> bool:
    """Print why a run is not complete; return whether it is not."""
    failed, degraded = runs.lacking(done.results)
    if failed:
        terminal.note(f"{failed} have no answer; the same command asks again")
    if degraded:
        terminal.note(f"{degraded} asked without some of their media")
    stopped = done.results.get("stopped")
    if stopped:
        terminal.note(f"the run stopped, so nothing is written: {stopped}")
        terminal.note("the same command resumes it")
    elif nothing:
        terminal.note(nothing)
    return bool(failed or degraded or stopped or nothing)
