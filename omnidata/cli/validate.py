"""`omnidata validate`: the problems of a dataset."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from omnidata.cli import arguments as args
from omnidata.cli import terminal
from omnidata.cli.data import check_exclude, write_exclude
from omnidata.cli.declare import option, repeatable, verb
from omnidata.errors import plural

if TYPE_CHECKING:
    from omnidata.data.media_outcomes import Outcome
    from omnidata.data.validate import Report
    from omnidata.errors import Finding

_HEAD = "Steps to leave out, by omnidata validate"


@verb(args.reading_data, args.listing_findings)
def validate(
    task: args.TaskName,
    data: args.Data,
    quarantine: Path | None = option(
        "Write the ids of unusable steps, for `evaluate --exclude FILE`.", "FILE"
    ),
    workers: args.Workers = None,
    timeout: float | None = option(
        "Time limit for one media file. Default: 120.", "SECONDS", min=0.1
    ),
    errata: list[str] = repeatable(
        "Check these corrections of labels against the data, in place of the media (repeatable).",
        "FILE",
    ),
    *,
    cluster: args.Processes,
    as_json: args.Json = False,
) -> bool:
    """Decode every media file, check the annotations, and list problems.

    Prints one line per kind of finding, with --all one per finding; docs/validate.md explains each
    code. Exit code 1: there are errors, so some steps cannot be used.

    Example: omnidata validate omnigui omnidata-demo/data --quarantine bad.txt

    Example: omnidata validate omnigui DATA --errata ours.jsonl
    """
    from omnidata.data.media_outcomes import LIMIT_S, key, look, references
    from omnidata.data.validate import report
    from omnidata.tasks import get_task

    if errata:
        return _check_errata(task, data, errata, quarantine, as_json)
    if quarantine is not None:
        check_exclude(quarantine, head=_HEAD, flag="--quarantine")
    source = get_task(task).load(data, check_media=False)
    refs = references(source.steps)
    outcomes: dict[Hashable, Outcome] = {}
    try:
        with terminal.progress("media") as progress:
            seen = look(
                refs,
                workers=workers,
                cluster=cluster,
                limit_s=timeout or LIMIT_S,
                progress=progress,
            )
            for ref, outcome in seen:
                outcomes[key(ref)] = outcome
    except KeyboardInterrupt:
        _print(report(source, outcomes), as_json)
        terminal.note(f"interrupted after {len(outcomes)} of {len(refs)} media")
        raise
    found = report(source, outcomes)
    _print(found, as_json)
    if quarantine is not None:
        write_exclude(quarantine, found.quarantine, head=_HEAD)
    return bool(found.errors)


def _check_errata(
    task: str, data: Path, errata: Sequence[str], quarantine: Path | None, as_json: bool
) -> bool:
    from omnidata.data.errata_checks import check_errata
    from omnidata.data.validate import Report
    from omnidata.run.errata import read_all
    from omnidata.tasks import get_task

    where = f"--quarantine {quarantine} --errata {errata[0]}"
    args.check_apart(quarantine, errata, "errata name no unusable steps", where)
    asking, files = get_task(task), read_all(errata, task)
    source = asking.load(data, check_media=False)
    findings = [finding for one in files for finding in check_errata(asking, source, one)]
    corrections = sum(len(one.corrections) for one in files)
    checked = {"corrections": corrections, "steps": len(source.steps)}
    found = Report(findings, [], checked)
    summary = found.summary()
    if as_json:
        told = [finding.as_dict() for finding in findings]
        terminal.print_json({"findings": told, "summary": summary, "checked": checked})
    else:
        terminal.print_kinds(findings, to=terminal.say, alone=_line)
        terminal.say(
            f"{plural(summary['errors'], 'error')}, {plural(summary['warnings'], 'warning')}; "
            f"checked {plural(corrections, 'correction')} against "
            f"{plural(len(source.steps), 'step')}"
        )
    return bool(found.errors)


def _print(found: Report, as_json: bool) -> None:
    summary, checked = found.summary(), found.checked
    if as_json:
        terminal.print_json(
            {
                "findings": [finding.as_dict() for finding in found.findings],
                "summary": summary,
                "checked": checked,
            }
        )
        return
    terminal.print_kinds(found.findings, to=terminal.say, alone=_line)
    media = ", ".join(f"{count} {kind}" for kind, count in checked["media"].items())
    terminal.say(
        f"{plural(summary['errors'], 'error')}, {plural(summary['warnings'], 'warning')}, "
        f"{plural(summary['quarantined'], 'unusable step')}; checked "
        f"{plural(checked['steps'], 'step')} of {plural(checked['episodes'], 'episode')} "
        f"and their media: {media}"
    )
    for code, count in summary["codes"].items():
        terminal.say(f"  {count} {code}")


def _line(finding: Finding) -> str:
    """Print a finding on one line, even if the data contain line breaks."""
    line = (
        f"{finding.severity} [{finding.code}] {finding.where}: {finding.what}; "
        f"expected: {finding.expected}; fix: {finding.remedy}"
    )
    return line.replace("\n", "\\n")
