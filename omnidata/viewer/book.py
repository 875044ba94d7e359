"""Open a dataset or a run for pages: its steps, and the answers, verdicts and explanations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from omnidata import remote
from omnidata.errors import OmnidataError, RunError, UsageError, plural
from omnidata.loaders.steps import as_steps, episodes_of
from omnidata.predictions import Prediction
from omnidata.run.altered_media import Alteration, read_alteration
from omnidata.run.errata import Correction
from omnidata.run.recorded import RecordedOptions, recorded_data, recorded_options, recorded_steps
from omnidata.run.run_files import Run
from omnidata.tasks import get_task
from omnidata.types import Explanation, LoadedDataset, Step, Verdict
from omnidata.viewer.media_index import Shelf

if TYPE_CHECKING:
    from omnidata.tasks.asking import Asking


@dataclass(frozen=True)
class Book:
    """A dataset, with or without a run.

    Steps have numbers, which are their positions in `steps`.

    Attributes:
        task: with the options of the run.
        source: the data.
        steps: those with pages, in order; of a run the scored ones.
        run: the run; None for data alone.
        note: why the prompts differ from the sent ones; empty if they do not.
        alteration: how a control run altered the media; None if it did not.
        corrections: errata of its steps, in order, by sample id.
    """

    task: Asking
    source: LoadedDataset
    steps: Sequence[Step]
    run: Run | None = None
    note: str = ""
    alteration: Alteration | None = None
    corrections: Mapping[str, Sequence[Correction]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The title of the pages."""
        return self.run.name if self.run else self.source.root.resolve().name

    @cached_property
    def shelf(self) -> Shelf:
        """The media of all steps."""
        return Shelf(self.steps)

    @cached_property
    def episode_of(self) -> Sequence[int]:
        """The number of every step's episode."""
        numbers: list[int] = episodes_of(self.steps).tolist()
        return numbers

    @cached_property
    def episodes(self) -> Sequence[Sequence[int]]:
        """The numbers of each episode's steps, in step order."""
        episodes: list[list[int]] = [[] for _ in range(max(self.episode_of) + 1)]
        indices = as_steps(self.steps).integers("step_index")
        for number in np.argsort(indices, kind="stable").tolist():
            episodes[self.episode_of[number]].append(number)
        return episodes

    def episode(self, number: int) -> Sequence[int]:
        """Return the numbers of the steps of a step's episode, in step order."""
        return self.episodes[self.episode_of[number]]

    def answer(self, step: Step) -> Prediction | None:
        """Return the answer to a step; None if the run has none."""
        return self.run.predictions.get(step.sample_id) if self.run else None

    def verdict(self, step: Step) -> Verdict | None:
        """Return the recorded verdict on a step; None without a run."""
        return self.run.verdict(step.sample_id) if self.run else None

    def explain(
        self, step: Step, verdict: Verdict | None = None, *, profile: str = ""
    ) -> Explanation:
        """Explain a step and a verdict on its answer.

        Args:
            step: one of the book's.
            verdict: of a profile; None without an answer.
            profile: the rule profile; empty for the run's, or without a run the default.
        """
        own = self.run.profile if self.run else self.task.default_profile
        answer = self.answer(step)
        text = (answer.output or "") if answer else ""
        receipt = answer.receipt if answer else None
        return self.task.explanation(step, verdict, text, profile=profile or own, receipt=receipt)

    @cached_property
    def explanations(self) -> Sequence[Explanation]:
        """The benchmark's explanation of each step and, in a run, of the verdict on its answer."""
        return [self.explain(step, self.verdict(step)) for step in self.steps]

    def explanation(self, number: int) -> Explanation:
        """Return one of `explanations`; without a run, the others are not made for it."""
        return self.explanations[number] if self.run else self.explain(self.steps[number])

    @cached_property
    def targets(self) -> Sequence[str]:
        """The label of every step's target."""
        if self.run:
            return [found.target_label for found in self.explanations]
        return [self.explain(step).target_label for step in self.steps]  # a million are not kept

    @property
    def noun(self) -> str:
        """The noun for labels of targets and answers, e.g. "primitive"."""
        return self.explanation(0).noun


def open_run(run: Run, *, data: Path | None = None, files: Mapping[str, str] = {}) -> Book:
    """Open a scored run and its data for pages.

    Args:
        run: the scored run, as `read_run` returns it.
        data: its dataset; defaults to the path that the run recorded.
        files: paths of files and folders that the run's options name, by option; no others are
            opened.

    Raises:
        UsageError: the path of the data is unknown or a remote address; the run scored task graphs,
            not steps; or a file differs from the run's.
        RunError, DataError: the data are missing, or differ from the run's.
    """
    place = recorded_data(run.settings, run.path, data)
    if run.profile not in run.asking.profiles:
        raise UsageError(
            f"{run.profile} scores no steps",
            where=str(run.path),
            expected=f"scores by {', '.join(run.asking.profiles)}",
        )
    task, source, note = _load_as_run(run, remote.get(place), files)
    steps = recorded_steps(run.settings, source, run.path) if run.settings else source.steps
    unknown = run.scores.keys() - {step.sample_id for step in steps}
    scored = [step for step in steps if step.sample_id in run.scores]
    if unknown or not scored:
        raise RunError(
            f"{plural(len(unknown), 'score')} of steps that the data lack"
            if unknown
            else "the run has no scored step",
            where=f"{run.path / 'scores.jsonl'}: {min(unknown, default='empty')}",
            expected=f"ids like {steps[0].sample_id}" if steps else "steps",
            remedy="name the data of the run with --data",
        )
    altered = read_alteration(run.control) if run.control else None
    return Book(task, source, scored, run, note, altered)


def open_data(task: Asking, data: Path) -> Book:
    """Open a dataset for pages.

    Args:
        task: the benchmark; its options shape the prompts.
        data: the dataset's folder or file.

    Raises:
        DataError: the dataset cannot be read.
        UsageError: the dataset has no step.
    """
    source = task.load(data, check_media=False)
    if not source.steps:
        raise UsageError("the data have no step", where=str(data), expected="at least one")
    return Book(task, source, source.steps)


def _load_as_run(
    run: Run, data: Path, files: Mapping[str, str]
) -> tuple[Asking, LoadedDataset, str]:
    """Load task and data with the options of the run, and say how the prompts may differ.

    Some options change steps when they are loaded. Folders that the user names may lack files.
    """
    note = "The run recorded no options. The prompts use the defaults of the task"
    if run.settings:
        asked = recorded_options(run.settings, run.path, files)
        try:
            task = get_task(run.task, asked.values, texts=asked.texts)
            source = task.load(data, check_media=False)
            return task, source, _note_on_prompts(run, task, asked, files)
        except OmnidataError as error:
            if files:
                raise
            note = f"The prompts are incomplete: {error.what}"
    return run.asking, run.asking.load(data, check_media=False), note


def _note_on_prompts(
    run: Run, task: Asking, asked: RecordedOptions, files: Mapping[str, str]
) -> str:
    if asked.unopened:
        missing = " ".join(f"-T {name}={value}" for name, value in asked.unopened.items())
        return (
            "The prompts lack the files of these options, because a run folder opens no files. "
            f"Name them on the command line: {missing}"
        )
    if (asked.texts or files) and run.settings.get("prompt_hash") not in (None, task.prompt_hash):
        return "These prompts differ from the sent ones: run.json has another prompt hash"
    return ""
