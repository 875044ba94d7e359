"""A dataset cut into steps to train on and steps held out; the former as trainers read them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, cast

from omnidata.data.convert import convert
from omnidata.errors import DataError
from omnidata.run.selection import read_exclude, split_of
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.tasks.benchmark import History
from omnidata.tasks.omnigui.task import OmniGui
from omnidata.torch import exported_table, training_stream
from omnidata.training.export import export
from omnidata.training.formats import get_format
from omnidata.training.rows import Options
from omnidata.types import Conversation, LoadedDataset, Message, Modality, Part, Step

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

    def rows(self, task: Asking, seed: int) -> Any:
        """What the trainer is given: read from what was written, not from the source."""
        if self.form == "parquet":
            return training_stream(task, self.folder, seed=seed, buffer=1024)
        return exported_table(self.folder)


class OneTurn(OmniGui):
    """Asks as rows of qwen-vl do, whose trainer has no system prompt: it begins the question.

    A tiny model that has never met a system prompt answers one with broken JSON now and then.
    """

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        """As `OmniGui`; the prompt is another one."""
        super().__init__(name, options)
        self.prompt_hash = sha256(f"one turn {self.prompt_hash}".encode()).hexdigest()

    def prompt(self, step: Step, history: History) -> Conversation:
        """The question, all of it the user's."""
        system, user = super().prompt(step, history)
        return (Message("user", (*system.parts, Part("text", "\n\n"), *user.parts)),)


def task_of(name: str, form: Form, options: Mapping[str, str]) -> Asking:
    """The benchmark, asking for what rows of this form can hold, and as they ask."""
    if name != "omnigui":
        return get_task(name, options)
    if "audio" not in media_of(form):
        options = {"modalities": "IV", **options}
    if form == "qwen-vl":
        return cast("Asking", Asking(OneTurn(name, options)))
    return get_task(name, options)


def media_of(form: Form) -> frozenset[Modality]:
    """The media that a step has in this form."""
    return get_format(_checked_as(form)).holds


def exported(
    task: Asking, source: LoadedDataset, out: Path, form: Form, *, keep_leaks: bool = False
) -> Exported:
    """Write the training data; without the episodes that share something with those held out.

    Args:
        task: writes prompts and answers.
        source: all steps.
        out: the folder of all that is written.
        form: of the training data.
        keep_leaks: with those that share something. Tasks that were composed of the same subtasks
            all have screens in common.

    Raises:
        DataError: there is nothing to evaluate with.
    """
    folder = out / f"export-{form}"
    held_out = [step for step in source.steps if split_of(step) == "test"]
    if not held_out:
        raise DataError(
            f"none of the {len(source.steps)} steps is held out for testing",
            where=str(source.root),
            expected="at least one step in the split `test`, about a tenth of all groups",
            remedy="use another --out and more episodes",
        )
    against = replace(source, steps=held_out)
    options = Options(format=_checked_as(form))
    if not (folder / "export.json").is_file():
        export(task, source, folder, options, against=against)
        leaks = read_exclude(folder / "leaks.txt", source.steps)
        if leaks and not keep_leaks:
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


def _checked_as(form: Form) -> str:
    """The trainer whose export tells what is trained on; a repository is made of these steps."""
    return "swift" if form == "parquet" else form
