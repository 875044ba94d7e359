"""A dataset cut into steps to train on and steps held out; the former as trainers read them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from omnidata.data.convert import convert
from omnidata.export import Options, export
from omnidata.export.formats import HOLDS, FormatName
from omnidata.run.select import read_exclude
from omnidata.run.splits import split_of
from omnidata.torch import exported_table, training_stream
from omnidata.types import Modality, Source, Step, Task

Form = Literal["parquet", "llamafactory", "swift", "qwen-vl"]


@dataclass(frozen=True, slots=True)
class Exported:
    """What there is to train on, and to evaluate with.

    Attributes:
        form: in which it was written.
        folder: where.
        train: the steps to train on.
        seen: ids of the steps that no evaluation may ask about: `--exclude` of `omnidata evaluate`.
        held_out: the others.
    """

    form: Form
    folder: Path
    train: Sequence[Step]
    seen: frozenset[str]
    held_out: Sequence[Step]

    def rows(self, task: Task, seed: int) -> Any:
        """What the trainer is given: read from what was written, not from the source."""
        if self.form == "parquet":
            return training_stream(task, self.folder, seed=seed, buffer=1024)
        return exported_table(self.folder)


def media_of(form: Form) -> frozenset[Modality]:
    """The media that a step has in this form."""
    return HOLDS[_checked_as(form)]


def exported(task: Task, source: Source, out: Path, form: Form) -> Exported:
    """Write the training data; without the episodes that share something with those held out.

    Args:
        task: writes prompts and answers.
        source: all steps.
        out: the folder of all that is written.
        form: of the training data.
    """
    folder = out / f"export-{form}"
    held_out = [step for step in source.steps if split_of(step) == "test"]
    against = replace(source, steps=held_out)
    options = Options(format=_checked_as(form))
    if not (folder / "export.json").is_file():
        export(task, source, folder, options, against=against)
        leaks = read_exclude(folder / "leaks.txt", source.steps)
        if leaks:
            export(task, source, folder, options, against=against, exclude=leaks, overwrite=True)
    left_out = json.loads((folder / "export.json").read_text(encoding="utf-8"))["exclude"]
    train = [
        step
        for step in source.steps
        if split_of(step) == "train" and step.sample_id not in left_out
    ]
    seen = read_exclude(folder / "seen.txt", source.steps)
    if form == "parquet":
        folder = out / "parquet"
        if not folder.exists():
            rows = [step.sample_id for step in train]
            convert(replace(source, steps=train, row_ids=rows), folder, embed=True)
    return Exported(form, folder, train, seen, held_out)


def _checked_as(form: Form) -> FormatName:
    """The trainer whose export tells what is trained on; a repository is made of these steps."""
    return "swift" if form == "parquet" else form
