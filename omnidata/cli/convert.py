"""`omnidata convert`: a dataset as a Parquet repository."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from omnidata.cli import arguments as args
from omnidata.cli import terminal
from omnidata.cli.data import check_new_file
from omnidata.cli.declare import argument, flag, option, verb
from omnidata.errors import UsageError, plural

if TYPE_CHECKING:
    from omnidata.tasks.asking import Asking


@verb(args.reading_data, args.listing_findings)
def convert(
    *,
    task: args.TaskName,
    data: args.Data,
    out: Path = argument("A new folder for the repository.", "OUT"),
    embed: bool | None = flag(
        "Store the media in the rows (portable, the default), or only their paths (this machine).",
        "--embed/--link",
        default=None,
    ),
    overwrite: bool = flag("Replace an existing repository.", "--overwrite"),
    strict: bool = flag("Stop if the annotations have findings.", "--strict"),
    errata: Path | None = option(
        "Write this project's corrected labels of DATA as errata OUT, in place of a repository "
        "(docs/errata.md).",
        "FILE",
    ),
    workers: int | None = option(
        "Number of processes that write files. Default: 1, which checks media on all "
        "cores; with ray all that fit.",
        min=1,
    ),
    cluster: args.Processes,
    as_json: args.Json = False,
) -> bool:
    """Write a Parquet repository that `datasets.load_dataset` opens.

    Each value of each tag (app, language, platform, source, ...) is a subset over shared files;
    `all` is the default. The same command resumes an interrupted conversion. Exit code 1: the
    repository is written, but rows or media have errors; the findings list them.

    Example: omnidata convert omnigui omnidata-demo/data omnidata-demo/parquet --embed

    Example: omnidata convert androidcontrol DATA curated.jsonl --errata
    android_control_high_bbox.json
    """
    from omnidata.data.convert import convert as run
    from omnidata.tasks import get_task

    asking = get_task(task)
    if asking.benchmark.about:
        own = asking.benchmark.data_of
        raise UsageError(
            f"{task} has no data of its own: it asks about the data of {own}",
            where="TASK",
            expected=own,
            remedy=f"convert {own}; {task} reads that repository too",
        )
    if errata is not None:
        for given, name in (
            (embed is not None, "--embed" if embed else "--link"),
            (overwrite, "--overwrite"),
            (workers, f"--workers {workers}"),
            (cluster, "--engine ray"),
        ):
            what, where = "errata are one file without media", f"{name} --errata {errata}"
            args.check_apart(given, errata, what, where)
        return _convert_errata(asking, data, errata, out, strict, as_json)
    media = "linked" if embed is False else "embedded"
    source = asking.load(data, check_media=False, strict=strict)
    with terminal.resumable(), terminal.progress("converting") as progress:
        done = run(
            source,
            out,
            embed=media == "embedded",
            overwrite=overwrite,
            workers=workers or 1,
            cluster=cluster,
            progress=progress,
        )
    manifest, findings = done.manifest, done.findings
    errors = sum(finding.severity == "error" for finding in findings)
    if as_json:
        terminal.print_json(
            {
                "out": str(out),
                "media": media,
                "digest": manifest.digest,
                "steps": len(source.steps),
                "subsets": list(manifest.subsets),
                "files": len(manifest.shards),
                "findings": [finding.as_dict() for finding in findings],
            }
        )
    else:
        terminal.print_kinds(findings)
        terminal.say(
            f"{plural(len(source.steps), 'step')} in {plural(len(manifest.shards), 'file')}, "
            f"{plural(len(manifest.subsets), 'subset')}, {plural(errors, 'error')}, "
            f"{plural(len(findings) - errors, 'warning')}"
        )
        terminal.say(f'open it with datasets.load_dataset("{out}", split="test")')
    return errors > 0


def _convert_errata(
    task: Asking, data: Path, file: Path, out: Path, strict: bool, as_json: bool
) -> bool:
    from omnidata.data.errata_checks import check_errata, make_errata
    from omnidata.jsontext import write_lines
    from omnidata.run.errata import read_errata
    from omnidata.storage import atomic_write, wrap_os_error

    check_new_file(out, f"OUT {out}")
    source = task.load(data, check_media=False, strict=strict)
    lines, findings = make_errata(task, source, file)
    with wrap_os_error(out.parent), atomic_write(out) as written:
        write_lines(written, lines)
    findings += check_errata(task, source, read_errata(out))
    kinds = Counter(line["kind"] for line in lines[1:])
    if as_json:
        listed = [finding.as_dict() for finding in findings]
        terminal.print_json({"out": str(out), "corrections": dict(kinds), "findings": listed})
    else:
        terminal.print_kinds(findings)
        parts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        terminal.say(f"{plural(len(lines) - 1, 'correction')} in {out}: {parts or 'none'}")
    return any(finding.severity == "error" for finding in findings)
