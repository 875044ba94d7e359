"""A run as others left it on disk: settings, results, scores and answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from omnidata import predictions
from omnidata.errors import PredictionError, RunError, UsageError
from omnidata.predictions import Prediction
from omnidata.run.recorded import recorded_task
from omnidata.run.run_files import read_info, read_results, read_scores
from omnidata.run.textless import scorer_of
from omnidata.types import Task

Unit = Literal["share", "number"]
_RESULTS, _SCORES, _ANSWERS = "results.json", "scores.jsonl", "predictions.jsonl"


@dataclass(frozen=True)
class Run:
    """A scored run; what it says line by line is read when first asked for, and kept.

    Attributes:
        path: the folder.
        settings: the content of `run.json`; empty for answers that were imported.
        results: the content of `results.json`: fractions, not percent.
    """

    path: Path
    settings: Mapping[str, Any]
    results: Mapping[str, Any]

    @property
    def task(self) -> str:
        """The benchmark's name."""
        return str(self.results["task"])

    @property
    def profile(self) -> str:
        """The rules that it was scored by."""
        return str(self.results["profile"])

    @property
    def name(self) -> str:
        """The model's SPEC; the folder's name for answers that were imported.

        A run on altered media bears their name: nobody is to take it for a normal one.
        """
        name = str(self.settings.get("model") or self.path.resolve().name)
        return f"{name} [{self.control}]" if self.control else name

    @property
    def control(self) -> str:
        """What was wrong with the media that the model was shown; empty if nothing."""
        return str((self.settings.get("control") or {}).get("name", ""))

    @property
    def imported(self) -> bool:
        """Whether the answers came from elsewhere: then nothing is known of how they were made."""
        return not self.settings

    @property
    def fingerprint(self) -> str | None:
        """Of the data's annotations; None where the folder does not say."""
        return self.settings.get("dataset_fingerprint")

    @property
    def data(self) -> Path | None:
        """Where the data lay when the run was made; None where the folder does not say."""
        place = self.settings.get("data")
        return Path(place) if place else None

    @property
    def stopped(self) -> str:
        """Why not all steps were asked about; empty if they were."""
        return str(self.results.get("stopped", ""))

    @cached_property
    def benchmark(self) -> Task:
        """The task, set up as far as loading and judging depend on it.

        Raises:
            RunError: this omnidata does not know the task or an option.
        """
        try:
            return recorded_task(self.settings, self.task)
        except UsageError as error:
            raise RunError(
                error.what,
                where=str(self.path),
                expected=error.expected,
                remedy="score the run with the version that made it, or restore its files",
            ) from None

    @cached_property
    def columns(self) -> Mapping[str, Unit]:
        """The totals that a table shows, in order, and how they are printed.

        Raises:
            RunError: this omnidata does not know the profile.
        """
        scorer = scorer_of(self.task)
        if scorer and self.profile in scorer.PROFILES:
            return scorer.columns(self.profile)
        profile = self.benchmark.profiles.get(self.profile)
        if profile is None:
            raise RunError(
                f'{self.task} has no profile "{self.profile}"',
                where=str(self.path / _RESULTS),
                expected=f"one of {', '.join(self.benchmark.profiles)}",
                remedy="score the run again with this version: omnidata score",
            )
        return profile.columns

    @cached_property
    def scores(self) -> Mapping[str, Mapping[str, Any]]:
        """The lines of `scores.jsonl` by sample id: outcome, the profile's values, parsed, reason.

        Raises:
            RunError: see `read_scores`.
        """
        return read_scores(self.path, self.profile)

    @cached_property
    def predictions(self) -> Mapping[str, Prediction]:
        """The answers by sample id; none where the folder has scores alone.

        Raises:
            PredictionError: a line is no prediction, or a step has two.
        """
        path = self.path / _ANSWERS
        if not path.exists():
            return {}
        found: dict[str, Prediction] = {}
        for line in predictions.read(path, of_run=True):
            if line.sample_id in found:
                raise PredictionError(
                    f"step {line.sample_id} has two lines",
                    where=str(path),
                    expected="one final line per step",
                    remedy="remove one of them",
                )
            found[line.sample_id] = line
        return found


def read_run(folder: Path) -> Run:
    """The run of a folder: one of `omnidata evaluate`, or of `omnidata score --out`.

    Args:
        folder: holds `results.json`; `run.json` and `predictions.jsonl` where the run was made
            here.

    Raises:
        RunError: there is no such folder, no run in it, it has no results yet, or a file of it is
            broken.
    """
    if not folder.is_dir():
        raise RunError(
            "it is a file" if folder.exists() else "there is no such folder",
            where=str(folder),
            expected="a run folder, as `omnidata evaluate --out` or `score --out` make it",
            remedy="name a folder that is there",
        )
    has_info = (folder / "run.json").exists()
    if not (folder / _RESULTS).exists():
        raise _without_results(folder, has_info)
    info = read_info(folder) if has_info else {}
    return Run(folder, info, read_results(folder))


def _without_results(folder: Path, has_info: bool) -> RunError:
    """Why a folder has none: unfinished, never scored, or no run at all."""
    if has_info:
        what = "the run is unfinished: it has no results"
        expected = "a run that went to its end"
        remedy = "repeat its `omnidata evaluate` command: it goes on where it stopped"
    elif (folder / _ANSWERS).exists() or (folder / _SCORES).exists():
        what = "the answers were never scored"
        expected = _RESULTS
        remedy = f"omnidata score TASK DATA {folder / _ANSWERS} --out SCORED, and name SCORED"
    else:
        what = "the folder holds no run"
        expected = "a folder with run.json or results.json"
        remedy = "name a run folder itself, not the one above it"
    return RunError(what, where=str(folder), expected=expected, remedy=remedy)
