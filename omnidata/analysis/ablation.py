"""Run an ablation and compare its runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, Final, Literal, get_args

from omnidata.adapters import is_light
from omnidata.analysis.comparison import Slice, compare, correct
from omnidata.analysis.controls import Altered, alter
from omnidata.analysis.varied_options import Variant, Varied, format_values
from omnidata.errors import Finding, OmnidataError, UsageError
from omnidata.jsontext import write_lines
from omnidata.metrics.paired import Unit
from omnidata.run.altered_media import CONTROLS, MEDIUM, Control, without
from omnidata.run.cost import Limits
from omnidata.run.engines import Cluster
from omnidata.run.selection import read_exclude, select
from omnidata.run.suite import ModelRow, Outcome, SuiteRun, TaskRow, recipe_of, run_suite
from omnidata.storage import atomic_write, file_name, wrap_os_error, write_json
from omnidata.tasks.asking import Asking
from omnidata.types import LoadedDataset, Modality, Progress

# The runs of an ablation: modalities x instruction forms, or values of options; and controls.

Instruction = Literal["text", "voice"]
INSTRUCTIONS: tuple[Instruction, ...] = get_args(Instruction)
_LETTERS: Final[Mapping[Modality, str]] = {"image": "I", "audio": "A", "video": "V"}
_NO_MEDIA: Final = "none"


def grid(kinds: Collection[Modality]) -> list[str]:
    """Return the settings for data with such media, the full one first.

    Pictures stay in all of them. Without pictures, or with nothing else, the last one has no media.

    Examples:
        >>> grid(["image", "audio", "video"]), grid(["image"]), grid(["audio", "video"])
        (['IAV', 'IV', 'IA', 'I'], ['I', 'none'], ['AV', 'V', 'A', 'none'])
    """
    letters = [letter for kind, letter in _LETTERS.items() if kind in kinds]
    spare = [letter for letter in letters if letter != "I"]
    found = [
        "".join(letter for letter in letters if letter not in dropped) or _NO_MEDIA
        for count in range(len(spare) + 1)
        for dropped in combinations(spare, count)
    ]
    return found if len(found) > 1 else [*found, _NO_MEDIA]


@dataclass(frozen=True, slots=True)
class Setting:
    """One run of an ablation.

    Attributes:
        instruction: its form.
        modalities: of the media in the prompt, as in `grid`.
        control: the wrong media, if any.
        varied: the values in the run's name; empty unless options are varied.
        options: all values of the varied options.
    """

    instruction: Instruction
    modalities: str
    control: Control | None = None
    varied: Varied = field(default_factory=dict)
    options: Varied = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name in tables: the varied options, or else instruction and modalities."""
        if self.varied:
            return ", ".join(filter(None, [format_values(self.varied), self.control]))
        parts = (self.instruction, self.modalities, self.control)
        return "-".join(part for part in parts if part)

    @property
    def folder(self) -> str:
        """The folder of its run."""
        return "--".join(map(file_name, self.name.split(", ")))


@dataclass(frozen=True, slots=True)
class Plan:
    """The runs of an ablation.

    Attributes:
        task: the name of the benchmark.
        data: the dataset.
        out: the folder of the ablation.
        model: the SPEC, and how to reach the model.
        settings: in the order of the table, the base first.
        task_options: from `-T`.
        model_options: from `-M`.
        of_task: the names of the task's options; other varied options are the model's.
        profile, where, exclude, limit: as in `omnidata evaluate`.
        limits: of each run.
        seed: for the choice of other episodes.
        by: the tag of the breakdown; empty for the benchmark's own.
        by_option: whether the task's option `modalities` leaves media out of the prompt; else they
            are taken out of the steps.
    """

    task: str
    data: Path
    out: Path
    model: ModelRow
    settings: Sequence[Setting]
    task_options: Mapping[str, str]
    model_options: Mapping[str, str]
    profile: str | None
    where: Mapping[str, str]
    exclude: Path | None
    limit: int | None
    limits: Limits
    seed: int
    by_option: bool = True
    of_task: Collection[str] = ()
    by: str = ""

    @property
    def controls(self) -> list[Control]:
        """The controls of the settings, each once."""
        return list(dict.fromkeys(s.control for s in self.settings if s.control))

    def reference(self, setting: Setting) -> Setting | None:
        """Return the setting with which one is compared; None for the first.

        It is the first setting with the same form of instruction. For the first of a form, and if
        options are varied, it is the first of all.
        """
        forms = (s for s in self.settings if s.instruction == setting.instruction)
        first = self.settings[0] if setting.varied else next(forms)
        other = first if first != setting else self.settings[0]
        return None if other == setting else other

    def suite_run(self, setting: Setting, exclude: Path | None, limit: int | None) -> SuiteRun:
        """Return the run of a setting.

        Args:
            setting: one of the plan's.
            exclude: a file with the ids of steps to leave out.
            limit: the number of other steps to ask about.
        """
        options, model_options = dict(self.task_options), dict(self.model_options)
        if self.by_option:
            options["modalities"] = setting.modalities
        if setting.instruction == "text":
            options.pop("voice", None)
        for name, value in setting.options.items():
            (options if name in self.of_task else model_options)[name] = value
        row = TaskRow(
            self.task,
            str(self.data),
            name=f"{self.task} {setting.name}",
            profile=self.profile,
            where=dict(self.where),
            exclude=str(exclude) if exclude else None,
            limit=limit,
        )
        folder, out = Path(), self.out / "runs" / setting.folder
        varied = {"setting": setting.name}
        return SuiteRun(row, self.model, options, model_options, varied, self.limits, folder, out)


def settings(
    task: Asking,
    modalities: str | None,
    instructions: str | None,
    controls: str | None,
    task_options: Mapping[str, str],
    *,
    kinds: Collection[Modality] = (),
    varied: Sequence[Variant] = (),
    accepts: Collection[Modality] | None = None,
) -> list[Setting]:
    """Return the settings of the runs.

    Args:
        task: the benchmark.
        modalities: separated by commas, the full setting first: values of the task's option
            `modalities` or, without this option, of `grid`; None for all.
        instructions: of `INSTRUCTIONS`, separated by commas; None for text, and for voice if
            `-T voice` has a folder.
        controls: of `CONTROLS`, separated by commas, or "none"; None for all controls of sounds and
            clips in the full setting, and of pictures if the data have no other media.
        task_options: from `-T`.
        kinds: of the media in the data.
        varied: replaces the settings of media; with it only listed controls are run.
        accepts: media that the model takes; unless modalities are listed, the full setting is the
            first without other media, and instructions are spoken only to a model that takes
            audio. None for all media.

    Raises:
        UsageError: the data have no media, a value is unknown or repeated, voice has no folder, a
            control needs a medium that the full setting lacks, or modalities are given twice.
    """
    allowed = task.allowed.get("modalities") or grid(kinds)
    if varied:
        if modalities or instructions:
            raise UsageError(
                "--vary excludes --modalities and --instructions",
                where="--vary",
                expected="--vary alone",
                remedy="vary the task options modalities and voice, or run two ablations",
            )
        return _varied_settings(task, varied, controls, task_options, allowed)
    if not kinds and "modalities" not in task.allowed:
        raise UsageError(
            f"the steps of {task.name} have no media",
            where=task.name,
            expected="data with pictures, clips or sounds",
            remedy="`omnidata info NAME DATA` lists the media of data",
        )
    if "modalities" in task_options:
        raise UsageError(
            "an ablation sets the modalities itself",
            where=f"-T modalities={task_options['modalities']}",
            expected="other options with -T",
            remedy=f"use --modalities {task_options['modalities']}",
        )
    shown = _shown_media(modalities, allowed, accepts)
    forms = _instruction_forms(instructions, bool(task_options.get("voice")), accepts)
    full = shown[0]
    has_fewer = modalities is None and len(shown) < len(allowed)
    only_pictures = {*kinds} == {"image"} or (has_fewer and full == _LETTERS["image"])
    usual = [name for name in CONTROLS if MEDIUM[name] != "image" or only_pictures]
    wrong = _choose_controls(controls, full, usual)
    return [
        setting
        for form in INSTRUCTIONS
        if form in forms
        for setting in (
            *(Setting(form, each) for each in shown),
            *(Setting(form, full, control) for control in wrong),
        )
    ]


def _shown_media(
    listed: str | None, allowed: Sequence[str], accepts: Collection[Modality] | None
) -> Sequence[str]:
    """Return the listed settings of media, or those that the model takes."""
    if listed is not None:
        return _choose("--modalities", listed, allowed)
    if accepts is None:
        return allowed
    letters = {_LETTERS[kind] for kind in accepts}
    return [each for each in allowed if each == _NO_MEDIA or letters.issuperset(each)] or allowed


def _instruction_forms(
    listed: str | None, is_spoken: bool, accepts: Collection[Modality] | None
) -> Sequence[str]:
    """Return the listed forms of instructions, or those that the model takes.

    `is_spoken` says whether there is a folder of spoken instructions.
    """
    if listed is None:
        hears = is_spoken and (accepts is None or "audio" in accepts)
        return ["text", "voice"] if hears else ["text"]
    forms = _choose("--instructions", listed, INSTRUCTIONS)
    if "voice" in forms and not is_spoken:
        raise UsageError(
            "there is no folder of spoken instructions",
            where=f"--instructions {listed}",
            expected="-T voice=DIR as well",
            remedy="make them with `omnidata voice TASK DATA DIR`",
        )
    return forms


def _varied_settings(
    task: Asking,
    varied: Sequence[Variant],
    controls: str | None,
    task_options: Mapping[str, str],
    allowed: Sequence[str],
) -> list[Setting]:
    wrong = _choose_controls(controls, task.options.get("modalities", allowed[0]), ())
    made = []
    for each in varied:
        options = {**task_options, **each.options}
        form: Instruction = "voice" if options.get("voice") else "text"
        shown = options.get("modalities", allowed[0])
        made.append(Setting(form, shown, None, each.named, each.options))
    made += [replace(made[0], control=control) for control in wrong]
    if len({setting.folder.lower() for setting in made}) < len(made):
        raise UsageError(
            "two runs would share a folder",
            where="--vary",
            expected="values that differ in their letters and digits",
        )
    return made


def _choose_controls(text: str | None, full: str, usual: Sequence[Control]) -> list[Control]:
    """Return the listed or the usual controls of the media in the full setting."""
    usable = [name for name in CONTROLS if full != _NO_MEDIA and _LETTERS[MEDIUM[name]] in full]
    if text is None:
        return [name for name in usable if name in usual]
    chosen = _choose("--controls", text, (*CONTROLS, "none"))
    lacking = [name for name in chosen if name != "none" and name not in usable]
    if lacking or ("none" in chosen and len(chosen) > 1):
        raise UsageError(
            f"{lacking[0]} alters a medium that the full setting {full} does not show"
            if lacking
            else "none excludes other controls",
            where=f"--controls {text}",
            expected=f"one or more of {', '.join(usable) or 'no control'}, or none",
        )
    return [name for name in usable if name in chosen]


def _choose(flag: str, text: str, allowed: Sequence[str]) -> list[str]:
    items = [item.strip() for item in text.split(",")]
    for place, item in enumerate(items):
        if item not in allowed or item in items[:place]:
            raise UsageError(
                f'"{item}" is given twice' if item in allowed else f'there is no "{item}"',
                where=f"{flag} {text}",
                expected=f"some of {', '.join(allowed)}, separated by commas",
            )
    return items


@dataclass(frozen=True, slots=True)
class Row:
    """The results of one setting.

    Attributes:
        setting: the setting.
        run: its folder.
        results: the content of `results.json`; None if the run failed.
        error: why it failed.
        reference: the setting with which it is compared; None for the first.
        slices: group of the table's axis, or "overall" -> the difference; none for the first, and
            if one of the two runs failed.
        warnings: of the comparison.
        axis: the tag of the table's columns; empty if there is none.
    """

    setting: Setting
    run: Path
    results: Mapping[str, Any] | None
    error: str = ""
    reference: Setting | None = None
    slices: Mapping[str, Slice] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    axis: str = ""

    def values(self) -> dict[str, Mapping[str, Any]]:
        """Return the results of each group by name, and "overall"."""
        if self.results is None:
            return {}
        return {**self.results["by"].get(self.axis, {}), "overall": self.results["overall"]}


@dataclass(frozen=True, slots=True)
class Ablation:
    """All settings of one model.

    Attributes:
        plan: of the runs.
        columns: the metrics and their units.
        rows: one per setting, in the order of the plan.
        findings: about the controls.
        tests: number of p that were corrected together.
        headers: group -> its header, if that is not its name.
    """

    plan: Plan
    columns: Mapping[str, Unit]
    rows: Sequence[Row]
    findings: Sequence[Finding]
    tests: int
    headers: Mapping[str, str] = field(default_factory=dict)

    def levels(self) -> list[str]:
        """Return the groups in the data, and "overall"."""
        names = dict.fromkeys(name for row in self.rows for name in row.values())
        return [*(name for name in names if name != "overall"), "overall"]

    def as_dict(self) -> dict[str, Any]:
        """Return the ablation as a JSON object; fractions, not percent."""
        return {
            "task": self.plan.task,
            "data": str(self.plan.data),
            "model": self.plan.model.model,
            "seed": self.plan.seed,
            "correction": {"method": "Benjamini-Hochberg", "tests": self.tests},
            "settings": [
                {
                    "name": row.setting.name,
                    "instruction": row.setting.instruction,
                    "modalities": row.setting.modalities,
                    "control": row.setting.control,
                    "varied": dict(row.setting.varied),
                    "run": str(row.run),
                    "error": row.error,
                    "results": row.results,
                    "compared_with": row.reference and row.reference.name,
                    "differences": {name: found.as_dict() for name, found in row.slices.items()},
                    "warnings": list(row.warnings),
                }
                for row in self.rows
            ],
            "findings": [dict(finding.as_dict()) for finding in self.findings],
        }


_Worlds = Mapping[Control, Altered]  # the data under each control


def ablate(
    plan: Plan,
    task: Asking,
    source: LoadedDataset,
    *,
    watch: Callable[[str], AbstractContextManager[Progress]],
    done: Callable[[Outcome], None] = lambda outcome: None,
    cluster: Cluster | None = None,
) -> Ablation:
    """Run every setting, resuming what is there, and compare each with its reference.

    A failed run does not stop the others, and a control that alters no step is left out. The result
    is also written to `ablation.json`.

    Args:
        plan: of the runs.
        task: the plan's.
        source: the plan's data, loaded.
        watch: returns a context for a part of the work, by its name, and its progress callback.
        done: called after each run.
        cluster: the machines that ask; None for this one.

    Raises:
        UsageError: the selection is empty, or the SPEC names no model.
        RunError: a file cannot be written.
    """
    excluded = read_exclude(plan.exclude, source.steps) if plan.exclude else frozenset[str]()
    if is_light(plan.model.model):  # a wrong SPEC is refused before any control is made
        for setting in plan.settings:
            planned_run = plan.suite_run(setting, plan.exclude, plan.limit)
            recipe_of(planned_run).make(task, source.steps)
    worlds = _alter_data(plan, task, source, excluded, watch)
    findings = [finding for found in worlds.values() for finding in found.findings]
    impossible = [name for name, found in worlds.items() if not found.given]  # a finding says why
    kept = [setting for setting in plan.settings if setting.control not in impossible]
    plan = replace(plan, settings=kept)
    with wrap_os_error(plan.out):
        plan.out.mkdir(parents=True, exist_ok=True)
        files = {
            name: _write_control(plan, name, found, excluded)
            for name, found in worlds.items()
            if name not in impossible
        }
    outcomes = []
    for outcome in run_suite(
        [_suite_run(plan, setting, worlds, files) for setting in plan.settings],
        loaded=lambda source: None,
        watch=lambda run: watch(run.varied["setting"]),
        load=partial(_load, plan, source, worlds),
        cluster=cluster,
    ):
        outcomes.append(outcome)
        done(outcome)
    result = _tabulate(plan, task, source, outcomes, findings)
    with wrap_os_error(plan.out):
        write_json(plan.out / "ablation.json", result.as_dict())
    return result


def _suite_run(
    plan: Plan, setting: Setting, worlds: _Worlds, files: Mapping[Control, Path | None]
) -> SuiteRun:
    if setting.control is None:
        return plan.suite_run(setting, plan.exclude, plan.limit)
    # Steps beyond the limit, which are unaltered, must not replace those that are left out.
    lost = len(worlds[setting.control].left_out)
    limit = None if plan.limit is None else plan.limit - lost
    return plan.suite_run(setting, files[setting.control], limit)


def _load(
    plan: Plan, source: LoadedDataset, worlds: _Worlds, run: SuiteRun, task: Asking
) -> LoadedDataset:
    """Return the data of a run."""
    setting = next(each for each in plan.settings if each.name == run.varied["setting"])
    if setting.control:
        return worlds[setting.control].source
    base = plan.suite_run(plan.settings[0], None, None)
    if run.task_options != base.task_options and setting.varied:
        return task.load(plan.data)
    left_out = [kind for kind, letter in _LETTERS.items() if letter not in setting.modalities]
    return source if plan.by_option else without(source, left_out)


def _tabulate(
    plan: Plan,
    task: Asking,
    source: LoadedDataset,
    outcomes: Sequence[Outcome],
    findings: Sequence[Finding],
) -> Ablation:
    """Compare the runs, with p corrected for all tests together."""
    spec = next((spec for spec in task.benchmark.paper.tables if spec.varied), None)
    results = (outcome.results for outcome in outcomes if outcome.results)
    known = list(dict.fromkeys(name for found in results for name in found["by"]))
    axis = plan.by or (spec.axis if spec else next(iter(known), ""))
    rows = list(_compare_rows(plan, source, outcomes, axis))
    corrected, tests = correct([found for row in rows for found in row.slices.values()])
    slices = iter(corrected)
    rows = [replace(row, slices={name: next(slices) for name in row.slices}) for row in rows]
    profile = task.profiles[plan.profile or task.default_profile]
    headers = spec.groups if spec and axis == spec.axis else {}
    return Ablation(plan, profile.columns, rows, findings, tests, headers)


def _alter_data(
    plan: Plan,
    task: Asking,
    source: LoadedDataset,
    excluded: frozenset[str],
    watch: Callable[[str], AbstractContextManager[Progress]],
) -> dict[Control, Altered]:
    chosen = select(source.steps, where=plan.where, exclude=excluded, limit=plan.limit, task=task)
    steps = frozenset(step.sample_id for step in chosen)
    worlds: dict[Control, Altered] = {}
    for control in plan.controls:
        folder = plan.out.absolute() / "controls" / control  # workers work in other folders
        with watch(control) as progress:
            worlds[control] = alter(
                source, control, folder, steps=steps, seed=plan.seed, progress=progress
            )
    return worlds


def _write_control(
    plan: Plan, control: Control, found: Altered, excluded: frozenset[str]
) -> Path | None:
    """Write whose medium each step has; return the file of steps to leave out, if there are any."""
    folder = plan.out / "controls" / control
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_write(folder / "given.jsonl") as file:
        write_lines(
            file, ({"sample_id": name, "given": given} for name, given in found.given.items())
        )
    if not found.left_out:
        return plan.exclude
    path = folder / "left_out.txt"
    with atomic_write(path) as file:
        for name in sorted(excluded | found.left_out):
            file.write(name.encode("utf-8", "surrogatepass") + b"\n")
    return path


def _compare_rows(
    plan: Plan, source: LoadedDataset, outcomes: Sequence[Outcome], axis: str
) -> Iterator[Row]:
    runs = {outcome.planned.varied["setting"]: outcome for outcome in outcomes}
    for setting in plan.settings:
        outcome = runs[setting.name]
        reference = plan.reference(setting)
        row = Row(
            setting, outcome.planned.out, outcome.results, outcome.error, reference, axis=axis
        )
        if reference is None or outcome.results is None or not runs[reference.name].results:
            yield row
            continue
        before = runs[reference.name].planned.out
        try:
            axes = (axis,) if axis else ()
            found = compare(before, row.run, source=source, axes=axes, seed=plan.seed)
        except OmnidataError as error:
            yield replace(row, error=str(error))
            continue
        slices = {**(found.by(axis) if axis else {}), "overall": found.overall}
        yield replace(row, slices=slices, warnings=found.warnings)
