"""The runs of an ablation: modalities x instruction forms, and controls at full modalities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from omnidata.ablate.controls import CONTROLS, MEDIUM, Control
from omnidata.errors import UsageError
from omnidata.run.limits import Limits
from omnidata.run.suite import Cell, ModelRow, TaskRow
from omnidata.tasks import get_task

Instruction = Literal["text", "voice"]
INSTRUCTIONS: tuple[Instruction, ...] = get_args(Instruction)
_LETTER = {"audio": "A", "video": "V"}


@dataclass(frozen=True, slots=True)
class Setting:
    """One run of an ablation.

    Attributes:
        instruction: how the model is told what to do.
        modalities: what it is shown, as `-T modalities`.
        control: what is wrong with it; None where nothing is.
    """

    instruction: Instruction
    modalities: str
    control: Control | None = None

    @property
    def name(self) -> str:
        """For tables and folders."""
        parts = (self.instruction, self.modalities, self.control)
        return "-".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be run.

    Attributes:
        data: the dataset.
        out: the folder of all of it.
        model: the SPEC, and how it is reached.
        settings: in the order of the table; the first is what the others are compared with.
        task_options: as given with `-T`.
        model_options: as given with `-M`.
        profile, where, exclude, limit: as in `omnidata evaluate`.
        limits: of each run.
        seed: of the choice of other episodes.
    """

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

    @property
    def controls(self) -> list[Control]:
        """The controls, each once."""
        return list(dict.fromkeys(s.control for s in self.settings if s.control))

    def reference(self, setting: Setting) -> Setting | None:
        """What a setting is compared with; None for the first.

        That is the first of its instruction form; and for the first of a form, the first of all.
        """
        first = next(s for s in self.settings if s.instruction == setting.instruction)
        other = first if first != setting else self.settings[0]
        return None if other == setting else other

    def cell(self, setting: Setting, exclude: Path | None, limit: int | None) -> Cell:
        """The run of a setting, for `omnidata.run.suite`.

        Args:
            setting: one of the plan's.
            exclude: a file of the steps to leave out.
            limit: how many of the others to ask about.
        """
        options = {**self.task_options, "modalities": setting.modalities}
        if setting.instruction == "text":
            options.pop("voice", None)
        row = TaskRow(
            "omnigui",
            str(self.data),
            name=f"omnigui {setting.name}",
            profile=self.profile,
            where=dict(self.where),
            exclude=str(exclude) if exclude else None,
            limit=limit,
        )
        folder, out = Path(), self.out / "runs" / setting.name
        varied = {"setting": setting.name}
        return Cell(row, self.model, options, self.model_options, varied, self.limits, folder, out)


def settings(
    modalities: str,
    instructions: str | None,
    controls: str | None,
    task_options: Mapping[str, str],
) -> list[Setting]:
    """The runs that are asked for.

    Args:
        modalities: values of `-T modalities`, with commas; the first is the full setting.
        instructions: of `INSTRUCTIONS`, with commas; None: text, and voice where `-T voice` has a
            folder.
        controls: of `CONTROLS`, with commas, or "none"; None: all whose medium is in the full
            setting.
        task_options: as given with `-T`.

    Raises:
        UsageError: an unknown or repeated value, voice without a folder, a control of a medium that
            the full setting lacks, or modalities given twice.
    """
    if "modalities" in task_options:
        raise UsageError(
            "an ablation sets the modalities itself",
            where=f"-T modalities={task_options['modalities']}",
            expected="other options with -T",
            remedy=f"--modalities {task_options['modalities']}",
        )
    shown = _chosen("--modalities", modalities, get_task("omnigui").allowed["modalities"])
    told = ["text", "voice"] if task_options.get("voice") else ["text"]
    if instructions is not None:
        told = _chosen("--instructions", instructions, INSTRUCTIONS)
    if "voice" in told and not task_options.get("voice"):
        raise UsageError(
            "there is no folder of spoken instructions",
            where=f"--instructions {instructions}",
            expected="-T voice=DIR beside it",
            remedy="omnidata voice DATA DIR makes them",
        )
    full = shown[0]
    usable = [name for name in CONTROLS if _LETTER[MEDIUM[name]] in full]
    wrong = usable if controls is None else _chosen("--controls", controls, (*CONTROLS, "none"))
    lacking = [name for name in wrong if name != "none" and name not in usable]
    if lacking or ("none" in wrong and len(wrong) > 1):
        raise UsageError(
            f"{lacking[0]} alters what the full setting {full} does not show"
            if lacking
            else "controls and none of them",
            where=f"--controls {controls}",
            expected=f"of {', '.join(usable) or 'no control'}, or none",
        )
    found = []
    for instruction in INSTRUCTIONS:
        if instruction in told:
            found += [Setting(instruction, each) for each in shown]
            found += [Setting(instruction, full, name) for name in usable if name in wrong]
    return found


def _chosen(flag: str, text: str, allowed: Sequence[str]) -> list[str]:
    """The items of a list with commas."""
    items = [item.strip() for item in text.split(",")]
    for number, item in enumerate(items):
        if item not in allowed or item in items[:number]:
            raise UsageError(
                f'"{item}" comes twice' if item in allowed else f'there is no "{item}"',
                where=f"{flag} {text}",
                expected=f"of {', '.join(allowed)}, each once, with commas",
            )
    return items
