"""Run an ablation and compare its runs: what does a model lose without, or with wrong media?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from omnidata.ablate.controls import Altered, Control, altered
from omnidata.ablate.grid import Plan, Setting
from omnidata.compare import Slice, compare
from omnidata.compare.comparison import correct
from omnidata.errors import Finding, OmnidataError
from omnidata.jsontext import encode
from omnidata.run.engine import Progress
from omnidata.run.folder import explained
from omnidata.run.scored import Unit
from omnidata.run.select import read_exclude, select
from omnidata.run.suite import Cell, Outcome, run_suite
from omnidata.storage import atomic_write, write_json
from omnidata.types import Source, Task

AXIS = "dependency"
"""The tag of the slices, as in the paper's Table 4."""


@dataclass(frozen=True, slots=True)
class Row:
    """What came of one setting.

    Attributes:
        setting: the setting.
        run: its folder.
        results: the content of `results.json`; None where the run failed.
        error: why it failed.
        reference: what it is compared with; None for the first.
        slices: the differences on each dependency level by name, and "overall"; none for the first,
            and where one of the two runs failed.
        warnings: of the comparison.
    """

    setting: Setting
    run: Path
    results: Mapping[str, Any] | None
    error: str = ""
    reference: Setting | None = None
    slices: Mapping[str, Slice] = field(default_factory=dict)
    warnings: Sequence[str] = ()

    def values(self) -> dict[str, Mapping[str, Any]]:
        """Each dependency level's results by name, and "overall"."""
        if self.results is None:
            return {}
        return {**self.results["by"].get(AXIS, {}), "overall": self.results["overall"]}


@dataclass(frozen=True, slots=True)
class Ablation:
    """All settings of one model.

    Attributes:
        plan: what was asked for.
        columns: the metrics and their units.
        rows: one per setting, in the order of the plan.
        findings: about the controls.
        tests: how many p were corrected together.
    """

    plan: Plan
    columns: Mapping[str, Unit]
    rows: Sequence[Row]
    findings: Sequence[Finding]
    tests: int

    def levels(self) -> list[str]:
        """The dependency levels that the data have, and "overall"."""
        names = dict.fromkeys(name for row in self.rows for name in row.values())
        return [*(name for name in names if name != "overall"), "overall"]

    def as_dict(self) -> dict[str, Any]:
        """The ablation as a JSON object; fractions, not percent."""
        return {
            "task": "omnigui",
            "data": str(self.plan.data),
            "model": self.plan.model.model,
            "seed": self.plan.seed,
            "correction": {"method": "Benjamini-Hochberg", "tests": self.tests},
            "settings": [self._row(row) for row in self.rows],
            "findings": [dict(finding.as_dict()) for finding in self.findings],
        }

    def _row(self, row: Row) -> dict[str, Any]:
        return {
            "name": row.setting.name,
            "instruction": row.setting.instruction,
            "modalities": row.setting.modalities,
            "control": row.setting.control,
            "run": str(row.run),
            "error": row.error,
            "results": row.results,
            "compared_with": row.reference and row.reference.name,
            "differences": {name: found.as_dict() for name, found in row.slices.items()},
            "warnings": list(row.warnings),
        }


def ablate(
    plan: Plan,
    task: Task,
    source: Source,
    *,
    watch: Callable[[str], AbstractContextManager[Progress]],
    done: Callable[[Outcome], None] = lambda outcome: None,
) -> Ablation:
    """Run every setting, resuming what is there, and compare each with its reference.

    A run that fails does not stop the others. The result is also written to `ablation.json`.

    Args:
        plan: what to run.
        task: OmniGUI.
        source: the plan's data, loaded.
        watch: makes the context in which a part of the work runs, given its name, and what is told
            how far it is.
        done: called after each run.

    Raises:
        UsageError: the choice of steps is none of the data.
        RunError: a file cannot be written.
    """
    excluded = read_exclude(plan.exclude, source.steps) if plan.exclude else frozenset[str]()
    worlds = _worlds(plan, source, excluded, watch)
    with explained(plan.out):
        plan.out.mkdir(parents=True, exist_ok=True)
        files = {name: _record(plan, name, found, excluded) for name, found in worlds.items()}
    controls = {setting.name: setting.control for setting in plan.settings}

    def cell(setting: Setting) -> Cell:
        if setting.control is None:
            return plan.cell(setting, plan.exclude, plan.limit)
        # What is left out must not let in steps that stand behind the limit, which are as ever.
        lost = len(worlds[setting.control].left_out)
        limit = None if plan.limit is None else plan.limit - lost
        return plan.cell(setting, files[setting.control], limit)

    def load(cell: Cell, task: Task) -> Source:
        control = controls[cell.varied["setting"]]
        return worlds[control].source if control else source

    outcomes = []
    for outcome in run_suite(
        [cell(setting) for setting in plan.settings],
        loaded=lambda source: None,
        watch=lambda cell: watch(cell.varied["setting"]),
        load=load,
    ):
        outcomes.append(outcome)
        done(outcome)
    rows, tests = _corrected(list(_rows(plan, source, outcomes)))
    findings = [finding for found in worlds.values() for finding in found.findings]
    profile = task.profiles[plan.profile or task.default_profile]
    result = Ablation(plan, profile.columns, rows, findings, tests)
    with explained(plan.out):
        write_json(plan.out / "ablation.json", result.as_dict())
    return result


def _worlds(
    plan: Plan,
    source: Source,
    excluded: frozenset[str],
    watch: Callable[[str], AbstractContextManager[Progress]],
) -> dict[Control, Altered]:
    """The data under each control."""
    chosen = select(source.steps, where=plan.where, exclude=excluded, limit=plan.limit)
    steps = frozenset(step.sample_id for step in chosen)
    found: dict[Control, Altered] = {}
    for control in plan.controls:
        folder = plan.out / "controls" / control
        with watch(control) as progress:
            found[control] = altered(
                source, control, folder, steps=steps, seed=plan.seed, progress=progress
            )
    return found


def _record(plan: Plan, control: Control, found: Altered, excluded: frozenset[str]) -> Path | None:
    """Write which step got whose medium; the file of steps to leave out, if there are any."""
    folder = plan.out / "controls" / control
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_write(folder / "given.jsonl") as file:
        for name, given in found.given.items():
            file.write(encode({"sample_id": name, "given": given}) + b"\n")
    if not found.left_out:
        return plan.exclude
    path = folder / "left_out.txt"
    with atomic_write(path) as file:
        for name in sorted(excluded | found.left_out):
            file.write(name.encode("utf-8", "surrogatepass") + b"\n")
    return path


def _rows(plan: Plan, source: Source, outcomes: Sequence[Outcome]) -> Iterator[Row]:
    """Each setting's results, and its differences where both runs are there."""
    runs = {outcome.cell.varied["setting"]: outcome for outcome in outcomes}
    for setting in plan.settings:
        outcome = runs[setting.name]
        reference = plan.reference(setting)
        row = Row(setting, outcome.cell.out, outcome.results, outcome.error, reference)
        if reference is None or outcome.results is None or not runs[reference.name].results:
            yield row
            continue
        before = runs[reference.name].cell.out
        try:
            found = compare(before, row.run, source=source, axes=(AXIS,), seed=plan.seed)
        except OmnidataError as error:
            yield replace(row, error=str(error))
            continue
        slices = {**found.by(AXIS), "overall": found.overall}
        yield replace(row, slices=slices, warnings=found.warnings)


def _corrected(rows: Sequence[Row]) -> tuple[list[Row], int]:
    """The rows with all p of the table corrected together, and how many those are."""
    done, tests = correct([found for row in rows for found in row.slices.values()])
    slices = iter(done)
    return [replace(row, slices={name: next(slices) for name in row.slices}) for row in rows], tests
