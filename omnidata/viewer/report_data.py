"""What pages are made of: the steps of a dataset, and what a run's answers to them are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from omnidata.actions import Action
from omnidata.errors import OmnidataError, RunError, UsageError, counted
from omnidata.predictions import Prediction
from omnidata.run.run_files import Run, recorded_steps
from omnidata.tasks import get_task
from omnidata.types import Explanation, LoadedDataset, MediaRef, Step, Task, Verdict
from omnidata.viewer.media_index import Shelf


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
    source: LoadedDataset
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
    def explanations(self) -> Sequence[Explanation]:
        """What the benchmark tells of every step and, in a run, of its answer."""
        return [self.explained(step, self.verdict(step)) for step in self.steps]

    @cached_property
    def targets(self) -> Sequence[str]:
        """The label of every step's target."""
        return [found.target_label for found in self.explanations]

    @property
    def noun(self) -> str:
        """What the labels of targets and answers are."""
        return self.explanations[0].noun

    def verdict(self, step: Step) -> Verdict | None:
        """What the run's profile says of a step, as it is recorded; None without a run."""
        if self.run is None:
            return None
        line = self.run.scores[step.sample_id]
        parsed = line.get("parsed")
        return Verdict(
            line["outcome"],
            tuple(line.get(name) for name in self.task.profiles[self.run.profile].values),
            parsed if isinstance(parsed, dict) else None,
            line.get("reason", ""),
        )

    def explained(
        self, step: Step, verdict: Verdict | None = None, *, profile: str = ""
    ) -> Explanation:
        """What the benchmark tells of a step and of a verdict on its answer.

        Args:
            step: one of the book's.
            verdict: of a profile; None without an answer.
            profile: the one; empty for the run's, or without one the benchmark's own.
        """
        own = self.run.profile if self.run else self.task.default_profile
        said = self.prediction(step)
        receipt = said.receipt if said else None
        return self.task.explain(step, verdict, profile=profile or own, receipt=receipt)

    def prediction(self, step: Step) -> Prediction | None:
        """The answer to a step; None where the run has none."""
        return self.run.predictions.get(step.sample_id) if self.run else None

    def face(self, step: Step) -> MediaRef | None:
        """The picture that stands for a step: its screenshot, or else the first that it has."""
        pictures = (ref for ref in step.media.values() if ref and ref.kind == "image")
        return step.media.get("screenshot") or next(pictures, None)

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
