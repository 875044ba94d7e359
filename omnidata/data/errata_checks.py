"""Hold errata against the data that they correct, and make them of other projects' files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from omnidata.actions import Action, Region, Screen, is_on_screen
from omnidata.errors import DataError, Finding, Severity, UsageError
from omnidata.loaders.steps import Positions
from omnidata.run.errata import Correction, Errata, Targets
from omnidata.tasks.asking import Asking
from omnidata.types import LoadedDataset, Step

CODES: Final[Mapping[str, tuple[Severity, str]]] = {
    "errata-other-data": ("warning", "check the corrections against these data"),
    "errata-unknown-step": ("error", "correct the sample id, or remove the line"),
    "errata-unsayable": ("error", "correct the action, or remove the line"),
    "errata-not-taken": ("warning", "score by another profile, or remove the line"),
    "errata-off-screen": ("warning", "correct the place or its unit"),
    "errata-no-effect": ("warning", "remove the line"),
    "errata-row-skipped": ("warning", "write a line for the step by hand, if it needs one"),
}
"""Severity and remedy."""


def make_errata(
    task: Asking, source: LoadedDataset, file: Path
) -> tuple[list[Mapping[str, Any]], list[Finding]]:
    """Return the lines of an errata that another project's file makes, and the rows left out.

    Args:
        task: the benchmark.
        source: the data.
        file: corrected labels, in a form that the benchmark knows.

    Raises:
        UsageError: the benchmark knows no such form.
        DataError: the file cannot be read.
    """
    read = task.benchmark.corrections
    if read is None:
        raise UsageError(
            f"no other project's corrections of {task.name} are known",
            where=f"--errata {file}",
            expected="a benchmark whose corrections are read (docs/errata.md)",
            remedy="write the errata by hand (docs/errata.md)",
        )
    findings: list[Finding] = []

    def skip(where: str, what: str) -> None:
        findings.append(_finding("errata-row-skipped", where, what, "a row of one step"))

    head, *lines = read(file, source.steps, skip)
    return [{**head, "benchmark": task.name, "fingerprint": source.fingerprint}, *lines], findings


def check_errata(task: Asking, source: LoadedDataset, errata: Errata) -> list[Finding]:
    """Return the problems of errata with data.

    Args:
        task: the benchmark; each of its profiles has to take the corrections.
        source: the data.
        errata: for this benchmark.
    """
    found: list[Finding] = []
    if errata.fingerprint and errata.fingerprint != source.fingerprint:
        what = f"they were made for other data: fingerprint {errata.fingerprint[:16]}"
        expected = f"the fingerprint of {source.root}, {source.fingerprint[:16]}"
        found.append(_finding("errata-other-data", errata.where, what, expected))
    places = Positions(source.steps)
    targets = {name: Targets(task, name) for name in task.profiles}
    for sample_id, corrections in errata.by_sample().items():
        if (number := places.get(sample_id)) is not None:
            found += _of_step(source.steps[number], corrections, targets)
            continue
        where = f"{corrections[0].where}: {sample_id:.80}"
        what = "the data have no step of this id"
        expected = f"ids like {source.steps[0].sample_id}" if source.steps else "data with steps"
        found.append(_finding("errata-unknown-step", where, what, expected))
    return found


def _of_step(
    step: Step, corrections: Sequence[Correction], targets: Mapping[str, Targets]
) -> Iterator[Finding]:
    for one in corrections:
        where = f"{one.where}: {one.sample_id:.80}"
        if (one.action and one.action == step.action) or one.instruction == step.instruction:
            what = f"the data have this {'action' if one.action else 'instruction'} already"
            yield _finding("errata-no-effect", where, what, "another one", step)
        if one.action and (off := _places_off_screen(one.action, step.screen)):
            what = f"{len(off)} of the places of {one.action.label} are not on the screen"
            expected = f"places on {step.screen[0]} x {step.screen[1]} pixels"
            yield _finding("errata-off-screen", where, what, expected, step)
    for check in targets.values():
        try:
            check.check(step, corrections)
        except DataError as error:
            yield _finding("errata-unsayable", error.where, error.what, error.expected, step)
            return
        except UsageError as error:
            yield _finding("errata-not-taken", error.where, error.what, error.expected, step)


def _places_off_screen(action: Action, screen: Screen) -> list[Region]:
    if min(screen) < 1:
        return []
    return [each for each in (*action.start, *action.end) if not is_on_screen(each, screen)]


def _finding(code: str, where: str, what: str, expected: str, step: Step | None = None) -> Finding:
    severity, remedy = CODES[code]
    ids = (step.sample_id,) if step else ()
    return Finding(code, severity, where, what, expected, remedy, ids)
