"""`omnidata batch`: runs through the providers' batch APIs, at half the price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from omnidata.cli import arguments as args
from omnidata.cli import runs, terminal
from omnidata.cli.declare import Group, argument, flag, option, verb
from omnidata.cli.help import Verb, group
from omnidata.errors import UsageError, plural

if TYPE_CHECKING:
    from omnidata.run.batch import Written
    from omnidata.run.batch_folder import FileState
    from omnidata.run.batch_jobs import Place

app = group("Ask a model through its provider's batch API, at half the price.")
_Run = Annotated[Path, argument("The run folder.", "RUN")]


@app.command("write", cls=Verb)
@verb(args.reading_data, args.listing_findings)
def write(
    *,
    task: args.TaskName,
    data: args.Data,
    model: str = option("The model, e.g. openai:NAME or gemini:NAME.", "SPEC", default=...),
    task_options: args.TaskOptions,
    steps: args.ChosenSteps,
    place: Path | None = argument("The run folder; same as --out.", "[OUT]", default=None),
    out: Path | None = option("The run folder.", "RUN"),
    strict: args.Strict = False,
    only: Literal["missing"] | None = option(
        "Write another round for the steps without an answer."
    ),
    asking: args.UnaskedModel,
    media_files: Path | None = option(
        "Store each media file here once, outside the requests. vLLM reads them with "
        "--allowed-local-media-path FOLDER; `submit` uploads them to Gemini.",
        "FOLDER",
    ),
    per_file: int | None = option("Maximum number of requests per file.", "N", min=1),
    mb_per_file: float | None = option("Maximum size of a file in megabytes.", "MB", min=0.001),
    as_json: args.Json = False,
) -> bool:
    """Write the requests of a run as files for a batch API; send nothing.

    The files are in RUN/batch, for OpenAI, Gemini or Anthropic, or for `vllm run-batch` if
    --base-url names another server. They hold no API keys. The same command resumes an interrupted
    call. `evaluate` with the same options asks for the remaining answers directly.

    Example: omnidata batch write omnigui omnidata-demo/data --model openai:gpt-4o --out runs/gpt
    """
    from omnidata.run import batch

    folder = out or place
    if folder is None or (out and place):
        raise UsageError(
            "the run folder is named twice" if folder else "no run folder is named",
            where="--out",
            expected="omnidata batch write TASK DATA --model SPEC --out RUN",
        )
    benchmark, source = args.load_asking(task, task_options, data, model, asking, strict=strict)
    with terminal.resumable(), terminal.progress(model) as progress:
        written = batch.write(
            benchmark,
            source,
            asking.recipe(model),
            folder,
            **steps.read(source.steps),
            only_missing=only == "missing",
            media=media_files,
            max_requests=per_file,
            max_bytes=round(mb_per_file * 1e6) if mb_per_file else None,
            limits=asking.limits,
            progress=progress,
        )
    _print_written(written, folder, as_json)
    return bool(written.unsent)


def _print_written(written: Written, out: Path, as_json: bool) -> None:
    form, folder, rounds = written.form, written.folder, written.manifest.rounds
    model, number = written.manifest.served_model, len(rounds)
    files = [file for file in written.manifest.files if file.round == number]
    if as_json:
        about: dict[str, Any] = {"run": str(out), "format": form.name, "model": model}
        about |= {"round": number, "new": written.new, "answered": written.answered}
        about["files"] = [
            {"path": str(folder / file.name), "requests": file.requests}
            | {"bytes": file.bytes, "sha256": file.sha256}
            for file in files
        ]
        terminal.print_json({**about, "unsent": written.unsent, **written.estimate})
    else:
        rows = [
            [str(folder / file.name), f"{file.requests:,}", f"{file.bytes / 1e6:,.1f}"]
            for file in files
        ]
        if rows:
            title = f"round {number}, {form.name} files"
            terminal.print_table(title, ("", "requests", "MB"), rows)
        runs.print_estimate(written.estimate, ", at the batch's price")
    for why in written.unsent.values():
        terminal.note(f"no request: {why}")
    terminal.note(
        f"{plural(written.new, 'request')} written, "
        f"{plural(written.answered, 'step')} already answered: {folder}"
    )
    if written.new and form.command:
        last, media = folder / files[-1].name, rounds[-1].media
        results = last.with_name(last.name.replace("requests", "results"))
        command = form.command.format(requests=last, results=results, model=model)
        option = form.media_option.format(media=media) if media else ""
        terminal.note(f"next, for each file: {command}{option}")
        terminal.note(f"then: omnidata batch read {out} {folder}/results-*.jsonl")
    elif written.new:
        terminal.note(f"next: omnidata batch submit {out}, then omnidata batch fetch {out} --wait")


def _scoring(
    *,
    data: Path | None = args.data_option("The dataset, if it has moved."),
    profile: args.Profile = None,
    changed_media: args.ChangedMedia = False,
    prices: args.Prices = None,
) -> dict[str, Any]:
    return {"data": data, "profile": profile, "changed_media": changed_media, "prices": prices}


_Scoring = Annotated[dict[str, Any], Group(_scoring)]


@app.command("read", cls=Verb)
@verb(args.reading_data)
def read(
    *,
    run: _Run,
    results: list[Path] = argument("The provider's result files, in any order.", "RESULTS..."),
    scoring: _Scoring,
    models: Path | None = option("The TOML file of models that `batch write` used.", "FILE"),
    as_json: args.Json = False,
) -> bool:
    """Read the results of a batch, score the run and print a table.

    Reads results of OpenAI (output and error files), `vllm run-batch`, Gemini and Anthropic, of one
    or several rounds. Failed, expired and cancelled requests count as api_error, absent ones as
    missing. Reading a file twice changes nothing. Exit code 1: some steps have no answer.

    Example: omnidata batch read runs/gpt batch_output.jsonl batch_errors.jsonl
    """
    return _read(run, results, as_json, models=models, **scoring)


def _read(run: Path, results: Sequence[Path], as_json: bool, **how: Any) -> bool:
    from omnidata.run import batch_results

    task, found = batch_results.read(run, results, **how)
    about = {"rows": found.rows, "answered": found.answered, **found.failed}
    about |= {"repeated": found.repeated, "kept": found.kept, "missing": found.missing}
    if as_json:
        terminal.print_json({"read": about, **found.results})
    else:
        runs.print_results(found.results, task, as_json)
    terminal.note(", ".join(f"{name}: {number}" for name, number in about.items()))
    terminal.note(f"run folder: {run}")
    runs.note_cost(run)
    lacking = runs.lacking(found.results)
    if found.missing or found.failed or lacking[0]:
        terminal.note(
            f"{plural(lacking[0], 'step')} without an answer: ask again in a batch with "
            "`omnidata batch write ... --only missing`, or directly with `omnidata evaluate`"
        )
    return runs.is_doubtful(found.results)


# What the provider does with the files.


def _place(
    *, base_url: args.BaseUrl = None, key_file: args.KeyFile = None, models: args.Models = None
) -> Any:
    from omnidata.run.batch_jobs import Place

    return Place(base_url, key_file, models)


_Provider = Annotated["Place", Group(_place)]


@app.command("submit", cls=Verb)
@verb()
def submit(run: _Run, *, place: _Provider, as_json: args.Json = False) -> None:
    """Send the request files of a run to OpenAI, Gemini or Anthropic.

    RUN/batch/jobs.json records each file that was sent. The same command resumes an interrupted
    call; it sends a file again only if the provider has refused the whole file.

    Example: omnidata batch submit runs/gpt
    """
    from omnidata.run import batch_jobs

    with terminal.resumable():
        files = batch_jobs.submit(run, place, report=terminal.note)
    _print_files(files, as_json)
    terminal.note(f"next: omnidata batch fetch {run} --wait")


@app.command("status", cls=Verb)
@verb()
def status(run: _Run, *, place: _Provider, as_json: args.Json = False) -> bool:
    """Show the state of the request files of a run.

    Exit code 1: the provider has refused a whole file.

    Example: omnidata batch status runs/gpt
    """
    from omnidata.run import batch_jobs

    files = batch_jobs.status(run, place)
    _print_files(files, as_json)
    return any(known.state == "failed" for known in files.values())


@app.command("fetch", cls=Verb)
@verb(args.reading_data)
def fetch(
    run: _Run,
    wait: bool = flag("Wait until all jobs have ended, asking less and less often.", "--wait"),
    *,
    place: _Provider,
    scoring: _Scoring,
    as_json: args.Json = False,
) -> bool:
    """Fetch finished results, score the run and print a table.

    Exit code 1: some steps have no answer, or no job has ended yet.

    Example: omnidata batch fetch runs/gpt --wait
    """
    from omnidata.run import batch_jobs

    with terminal.resumable(), terminal.progress(str(run)) as progress:

        def report_progress(files: Mapping[str, FileState]) -> None:
            progress(sum(known.fetched for known in files.values()), len(files))

        files, results, lost = batch_jobs.fetch(run, place, wait=wait, report=report_progress)
    for name, known in files.items():
        if not known.fetched or known.state != "done":
            terminal.note(" ".join(filter(None, (f"{name}: {known.state}", known.said))))
    if not (results or lost):
        terminal.note("no job has ended yet; add --wait to wait")
        return True
    return _read(run, results, as_json, lost=lost, models=place.models, **scoring)


def _print_files(files: Mapping[str, FileState], as_json: bool) -> None:
    if as_json:
        terminal.print_json(
            {
                name: {"state": known.state, "job": known.job, "word": known.word}
                | {"counts": known.counts, "said": known.said, "fetched": known.fetched}
                for name, known in files.items()
            }
        )
        return
    rows = []
    for name, known in files.items():
        counts = ", ".join(f"{number} {what}" for what, number in known.counts.items())
        rows.append([name, known.job, known.state, known.word, counts])
        if known.said:
            terminal.note(f"{name}: {known.said}")
    terminal.print_table("files of requests", ("", "job", "state", "provider's", "requests"), rows)
