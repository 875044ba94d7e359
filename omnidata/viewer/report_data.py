"""What pages are made of: the steps of a dataset, and what a run's answers to them are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from omnidata.actions import Action
from omnidata.errors import OmnidataError, RunError, UsageError, counted
from omnidata.predictions import Prediction
from omnidata.run.scoring import Run, recorded_steps
from omnidata.tasks import get_task
from omnidata.types import MediaRef, Outcome, Source, Step, Task
from omnidata.viewer.media_index import Shelf
from omnidata.viewer.verdict_labels import Mark, answer_label, mark_of, target_label

FIRST_ROLES = ("screenshot", "before", "observation_0")
"""The picture that stands for a step, in order of choice."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What the index knows of a step in a run.

    Attributes:
        outcome: of the answer.
        mark: how it came out by the run's profile.
        answer: the answer's label (see `marks`); empty where answers have none.
    """

    outcome: Outcome
    mark: Mark
    answer: str


@dataclass(frozen=True)
class Book:
    """A dataset, with or without a run.

    Attributes:
        task: with the options by which the model was asked.
        source: the data.
        steps: those that there are pages of, in order.
        run: the run; None for data alone.
        note: what a reader of prompts must know; empty if nothing.
    """

    task: Task
    source: Source
    steps: Sequence[Step]
    run: Run | None = None
    note: str = ""

    @property
    def title(self) -> str:
        """What the pages are called."""
        return self.run.name if self.run else self.source.root.resolve().name

    @cached_property
    def shelf(self) -> Shelf:
        """The media of all steps."""
        return Shelf(self.steps)

    @cached_property
    def episodes(self) -> Sequence[Sequence[int]]:
        """The numbers of the steps of every episode, in order of their steps."""
        found: dict[str, list[int]] = {}
        for number, step in enumerate(self.steps):
            found.setdefault(step.episode, []).append(number)
        for numbers in found.values():
            numbers.sort(key=lambda number: self.steps[number].step_index)
        return list(found.values())

    @cached_property
    def episode_of(self) -> Mapping[int, int]:
        """The number of the episode of every step."""
        return {n: episode for episode, numbers in enumerate(self.episodes) for n in numbers}

    @cached_property
    def targets(self) -> Sequence[str]:
        """The label of every step's target."""
        return [target_label(self.task.name, step) for step in self.steps]

    @cached_property
    def judged(self) -> Sequence[Judged]:
        """What the run says of every step; empty without a run."""
        if self.run is None:
            return ()
        scores = self.run.scores
        return [self._judged(step, scores[step.sample_id]) for step in self.steps]

    def _judged(self, step: Step, line: Mapping[str, Any]) -> Judged:
        outcome: Outcome = line["outcome"]
        answer = answer_label(self.task, step, outcome, line.get("parsed"))
        return Judged(outcome, mark_of(outcome, self.values(line)), answer)

    def values(self, line: Mapping[str, Any]) -> Mapping[str, Any]:
        """The values of the run's profile in a line of `scores.jsonl`."""
        assert self.run
        names = self.task.profiles[self.run.profile].values
        return {name: line.get(name) for name in names}

    def prediction(self, step: Step) -> Prediction | None:
        """The answer to a step; None where the run has none."""
        return self.run.predictions.get(step.sample_id) if self.run else None

    def face(self, step: Step) -> MediaRef | None:
        """The picture that stands for a step."""
        chosen = (step.media.get(role) for role in FIRST_ROLES)
        pictures = (ref for ref in step.media.values() if ref and ref.kind == "image")
        return next((ref for ref in chosen if ref), next(pictures, None))

    def past_answers(self, number: int) -> list[Action | None]:
        """The model's own actions before a step, as its prompt showed them."""
        step = self.steps[number]
        past: list[Action | None] = [None] * step.step_index
        for other in self.episodes[self.episode_of[number]]:
            before = self.steps[other]
            said = self.prediction(before) if before.step_index < step.step_index else None
            if said and said.delivery == "ok":
                past[before.step_index] = self.task.read(said.output or "", said.receipt)
        return past


def open_run(run: Run, *, data: Path | None = None) -> Book:
    """The pages' material of a run.

    Args:
        run: scored.
        data: its dataset; where it lay when the run was made if None.

    Raises:
        UsageError: nobody says where the data are; or the scores are of task graphs, not of steps.
        RunError, DataError: the data are gone, or others than the run's.
    """
    place = data or run.data
    if place is None:
        raise UsageError(
            "nobody says where the data are",
            where=str(run.path),
            expected="the dataset that the answers are to",
            remedy="name it with --data",
        )
    if run.profile not in run.benchmark.profiles:
        raise UsageError(
            f"{run.profile} scores no steps",
            where=str(run.path),
            expected=f"scores by {', '.join(run.benchmark.profiles)}",
        )
    source = run.benchmark.load(place, check_media=False)
    steps = list(source.steps)
    if run.settings:
        steps = recorded_steps(run.settings, source, run.path)
    unknown = run.scores.keys() - {step.sample_id for step in steps}
    scored = [step for step in steps if step.sample_id in run.scores]
    if unknown or not scored:
        raise RunError(
            f"{counted(len(unknown), 'score')} of steps that the data does not have",
            where=f"{run.path / 'scores.jsonl'}: {min(unknown, default='empty')}",
            expected=f"ids like {steps[0].sample_id}" if steps else "steps",
            remedy="name the data that the answers are to",
        )
    task, note = _asked(run)
    return Book(task, source, scored, run, note)


def open_data(task: Task, data: Path) -> Book:
    """The pages' material of a dataset.

    Args:
        task: the benchmark; its options shape the prompts that are shown.
        data: the dataset's folder or file.

    Raises:
        DataError: it cannot be read, or has no step.
    """
    source = task.load(data, check_media=False)
    if not source.steps:
        raise UsageError("the data have no step", where=str(data), expected="at least one")
    return Book(task, source, source.steps)


def _asked(run: Run) -> tuple[Task, str]:
    """The task as the model was asked, without folders that are gone; and what to know of that."""
    if not run.settings:
        return run.benchmark, "Nobody recorded the options: the prompts have the task's own"
    altered = run.settings.get("control")
    note = (
        f"The model got altered media ({altered}), and here are the data's own" if altered else ""
    )
    try:
        return get_task(run.task, run.settings.get("options", {})), note
    except OmnidataError as error:
        return run.benchmark, f"The prompts lack what cannot be found any more: {error.what}"
