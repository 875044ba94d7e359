"""`omnidata ablate`."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from omnidata.cli import arguments as args
from omnidata.cli import runs, terminal
from omnidata.cli.declare import flag, option, repeatable, verb
from omnidata.errors import OmnidataError, UsageError, plural

if TYPE_CHECKING:
    from omnidata.analysis.ablation import Ablation
    from omnidata.tasks.asking import Asking
    from omnidata.types import LoadedDataset, Modality


@verb(args.reading_data, args.listing_findings)
def ablate(
    *,
    task: args.TaskName,
    data: args.Data,
    model: str = option("The model, e.g. openai:NAME.", "SPEC", default=...),
    out: Path = option("Folder for the runs and the table.", "DIR", default=...),
    task_options: args.TaskOptions,
    steps: args.ChosenSteps,
    vary: list[str] = repeatable(
        "Compare values of a task or model option instead of media, the base value first; "
        "one option varies at a time (repeatable).",
        "KEY=V1,V2",
        name="--vary",
    ),
    modalities: str | None = option(
        "Media to show, the full setting first, e.g. IAV,IV,IA,I. Default: all media, then fewer.",
        "LIST",
    ),
    instructions: str | None = option(
        "Forms of the instruction. Default: text, and voice with -T voice=DIR.", "LIST"
    ),
    controls: str | None = option(
        "Wrong media to show: other-sound, silence, other-clip, frozen-clip, "
        "other-picture, or none. Default: all that fit the data; other-picture only if the "
        "data have pictures alone.",
        "LIST",
    ),
    grid: bool = flag("Run every combination of the varied values.", "--grid"),
    profile: args.Profile = None,
    strict: args.Strict = False,
    seed: int = option("Seed for choosing other episodes.", min=0, default=0),
    asking: args.AskedModel,
    cluster: args.Engine,
    by: str | None = option("Break the tables down by this tag, e.g. dependency.", "TAG"),
    form: args.Format = "terminal",
    as_json: args.Json = False,
) -> bool:
    """Measure the score with less or wrong media, or with other options.

    Runs each set of media with each form of instruction. In the full setting it also runs controls:
    the sound, clip or picture of another episode, silence, or a frozen clip. With --vary the runs
    differ in options instead. Tables show the differences to the base with paired intervals;
    --by adds breakdowns. Each run has its own folder; the same command resumes all runs. Exit
    code 1: a run failed, steps have no answer, or a model was asked without some media.

    Example: omnidata ablate omnigui omnidata-demo/data --model baseline:random --out ablation
    """
    from omnidata.analysis.ablation import Plan, settings
    from omnidata.analysis.ablation import ablate as run
    from omnidata.analysis.varied_options import Trial, read_values, variants
    from omnidata.loaders.load import refuse_findings
    from omnidata.loaders.steps import media_of
    from omnidata.run.scoring import get_profile
    from omnidata.run.suite import ModelRow
    from omnidata.tasks import get_task, options_for
    from omnidata.tasks.asking_under_options import check_effects
    from omnidata.tasks.common_options import OPTIONS as COMMON

    options = dict(task_options)
    if not any(one.startswith(("dialect=", "coordinates=")) for one in vary or ()):
        options, said = options_for(task, options, model, models=asking.models)
        if said:
            terminal.note(said)
    allowed = get_task(task).allowed
    of_task = {*allowed, *COMMON}
    values = read_values(vary, allowed, {*options, *asking.options})
    trial = Trial(task, data, options, of_task)
    varied = variants(values, trial, grid=grid, note=terminal.note)
    base = varied[0].options if varied else {}
    benchmark = get_task(task, options | {name: base[name] for name in base if name in of_task})
    rules = get_profile(benchmark, profile)
    if by is not None:
        _check_tag(by, getattr(rules, "by", {}))
    source = benchmark.load(data, strict=strict)
    kinds = {ref.kind for ref in media_of(source.steps)}
    terminal.print_findings(source)
    accepts = None if varied else _model_media(asking, model, benchmark, source)
    chosen = settings(
        benchmark,
        modalities,
        instructions,
        controls,
        options,
        kinds=kinds,
        varied=varied,
        accepts=accepts,
    )
    if accepts is not None and modalities is None and not kinds <= {*accepts}:
        takes = ", ".join(sorted(accepts)) or "no media"
        terminal.note(
            f"{model} accepts {takes}: the full setting is {chosen[0].modalities}. Choose others "
            "with --modalities; -M degrade=true drops media that the model does not accept"
        )
    plan = Plan(
        task=task,
        data=data,
        out=out,
        model=ModelRow(
            model,
            base_url=asking.base_url,
            key_file=str(asking.key_file) if asking.key_file else None,
            models=str(asking.models) if asking.models else None,
        ),
        settings=chosen,
        task_options=options,
        model_options=asking.options,
        profile=profile,
        where=steps.where,
        exclude=steps.exclude,
        limit=steps.limit,
        limits=asking.limits,
        seed=seed,
        by_option="modalities" in benchmark.allowed,
        of_task=of_task,
        by=by or "",
    )
    tried = check_effects(plan.suite_run(chosen[0], None, None).asking, source)
    doubts = [*tried, *(found for found in trial.findings if found not in tried)]
    if doubts and strict:
        refuse_findings(doubts, data)
    terminal.print_doubts(doubts)
    terminal.note(f"{plural(len(chosen), 'run')}: {', '.join(setting.name for setting in chosen)}")
    with terminal.resumable():
        found = run(
            plan,
            benchmark,
            source,
            watch=terminal.progress,
            done=runs.note_outcome,
            cluster=cluster,
        )
    terminal.print_doubts(found.findings)
    _print(found, "json" if as_json else form, by_level=by is not None)
    terminal.note(f"runs and table: {out}")
    return any(not row.results or row.error or runs.is_doubtful(row.results) for row in found.rows)


def _check_tag(by: str, tags: Collection[str]) -> None:
    if by not in tags:
        raise UsageError(
            "the results of the task have no such tag",
            where=f"--by {by}",
            expected=f"one of {', '.join(tags)}" if tags else "no --by: there are no tags",
            remedy="choose one of these tags" if tags else "drop --by",
        )


def _model_media(
    asking: args.ModelOptions, model: str, task: Asking, source: LoadedDataset
) -> Collection[Modality] | None:
    try:
        adapter = asking.adapter(model, task, source.steps, asks=False)
    except OmnidataError:  # each run says why
        return None
    if getattr(getattr(adapter, "capabilities", None), "degrade", False):
        return None
    return adapter.accepts


def _print(found: Ablation, form: str, *, by_level: bool) -> None:
    from omnidata.analysis import ablation_tables as shown

    if terminal.print_data(found, form, shown.as_csv):
        return
    if form == "md":
        terminal.say(shown.markdown(found, by_level=by_level).removesuffix("\n"))
        return
    for table in shown.tables(found, by_level=by_level):
        terminal.show_table(table)
    for line in shown.notes(found, by_level=by_level):
        terminal.note_prose(line)
