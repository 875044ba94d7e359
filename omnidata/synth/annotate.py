"""Ask a model about the episodes of some data, then keep or rewrite them.

`label` and `filter` declare their questions, the reading of an answer, the fate of an episode and
the measures. The questions are a task, asked by `evaluate` into a run folder beside the tree.
Instructions, labels, media and unknown columns stay unchanged. See `docs/label.md`.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypeVar

from omnidata import predictions
from omnidata.actions import Action
from omnidata.errors import DataError, Finding, MediaError, UsageError
from omnidata.jsontext import encode
from omnidata.loaders.episode_tree import (
    DEPENDENCIES,
    DIMENSIONS,
    EPISODE_COLUMNS,
    STEP_COLUMNS,
    TARGET_COLUMNS,
    instructions,
    label,
)
from omnidata.loaders.steps import media_of
from omnidata.loaders.tree_writer import Media, TreeEpisode, TreeStep, TreeWriter, check_name
from omnidata.media import file_or_bytes, image, picture_info, png, samples, wav
from omnidata.predictions import Prediction
from omnidata.remote import display_path
from omnidata.run.asker import Recipe
from omnidata.run.cost import Limits
from omnidata.run.engines import Cluster
from omnidata.run.evaluate import UNLIMITED, Count, evaluate
from omnidata.run.run_info import ANSWERS, read_info
from omnidata.synth.folder import TreeStaging, run_folder
from omnidata.tasks.asking import Asking
from omnidata.tasks.benchmark import About
from omnidata.types import (
    Adapter,
    LoadedDataset,
    MediaRef,
    Progress,
    Step,
)

Note = Callable[[Finding], None]
"""Takes findings."""

# The episodes of some data, written again as a tree.

_PNG = b"\x89PNG\r\n\x1a\n"
_RATE = 16_000  # of sound that rows hold themselves

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Episode:
    """An episode of a source, with its data beyond the steps.

    Attributes:
        app, id: as in the source; the app defaults to the name of its task.
        steps: all steps, in order and without a gap.
        row: the row of the episode; empty if the source has none.
    """

    app: str
    id: str
    steps: tuple[Step, ...]
    row: Row

    @property
    def key(self) -> str:
        """`app/episode`, as in the ids of its steps."""
        return self.steps[0].sample_id.rpartition("/")[0] or self.steps[0].episode


@dataclass(frozen=True, slots=True)
class Change:
    """The new action, columns and tags of a step.

    Attributes:
        action: its target; None leaves it to `keep`.
        keep: whether the columns of its present target stay.
        columns: further columns, which replace those of the same name.
    """

    action: Action | None = None
    keep: bool = True
    columns: Row = field(default_factory=dict)


def read_episodes(source: LoadedDataset) -> tuple[list[Episode], list[Finding]]:
    """Return the episodes that can be written, and a finding for each other one."""
    episodes: list[Episode] = []
    findings: list[Finding] = []
    taken: set[str] = set()
    for name, same in groupby(source.steps, key=attrgetter("episode")):
        steps = tuple(same)
        app = steps[0].tags.get("app", source.task)
        row = source.episode_rows.get(name, {})
        episode = Episode(app, steps[0].episode_id, steps, row)
        if reason := _unwritable(episode, taken):
            findings.append(
                Finding(
                    "episode-left-out",
                    "error",
                    episode.key,
                    f"the episode cannot be written: {reason}",
                    "an instruction, steps 0, 1, 2, ..., and names that folders can have",
                    "correct the data; until then the episode is left out",
                )
            )
            continue
        taken.add(f"{app}/{name}".casefold())
        episodes.append(episode)
        if "dimension" not in steps[0].tags:
            findings.append(
                Finding(
                    "dimension-assumed",
                    "warning",
                    episode.key,
                    "the data state no dimension",
                    f"one of {', '.join(DIMENSIONS)}",
                    "localization is written; add it to the data",
                )
            )
    return episodes, findings


def _unwritable(episode: Episode, taken: set[str]) -> str:
    where = f"{episode.app}/{episode.id}"
    missing = set(range(episode.steps[-1].step_index + 1)) - {s.step_index for s in episode.steps}
    if missing:
        return f"there is no step {min(missing)}"
    if not any(_instructions(episode)):
        return "it has no instruction"
    if where.casefold() in taken:
        return "another episode has its name, but for upper and lower case"
    try:
        check_name(episode.app, "app name", where)
        check_name(episode.id, "episode id", where)
    except DataError as error:
        return error.what
    return ""


def _instructions(episode: Episode) -> tuple[str | None, str | None]:
    first = episode.steps[0]
    said = instructions(episode.row, first.source)
    return said if any(said) else (first.instruction or None, None)


def tree_episode(
    episode: Episode,
    change: Callable[[Step], Change],
    note: Note,
    *,
    columns: Row | None = None,
) -> TreeEpisode:
    """Return the changed episode for the writer; its media are read when its steps are written.

    Args:
        episode: to be written.
        change: of each step.
        note: called with a finding for each medium that cannot be written unchanged.
        columns: further columns of the episode's row.
    """
    english, chinese = _instructions(episode)
    tags = episode.steps[0].tags
    extra = {key: value for key, value in episode.row.items() if key not in EPISODE_COLUMNS}
    return TreeEpisode(
        episode.id,
        app=episode.app,
        dimension=label(tags.get("dimension"), DIMENSIONS) or "localization",
        steps=(_tree_step(step, change(step), note) for step in episode.steps),
        instruction_en=english,
        instruction_zh=chinese,
        dependency=label(tags.get("dependency"), DEPENDENCIES),
        extra={**extra, **(columns or {})},
    )


def _tree_step(step: Step, change: Change, note: Note) -> TreeStep:
    gone = STEP_COLUMNS if change.keep else STEP_COLUMNS | TARGET_COLUMNS
    kept = {key: value for key, value in step.source.items() if key not in gone}
    return TreeStep(
        change.action,
        screen=step.screen,
        screenshot=_medium(step, "screenshot", note),
        video=_medium(step, "video", note),
        audio=_medium(step, "audio", note),
        extra={**kept, **change.columns},
    )


_FORMS: Mapping[str, Literal[".png", ".mp4", ".wav"]] = {
    "screenshot": ".png",
    "video": ".mp4",
    "audio": ".wav",
}


def _medium(step: Step, role: str, note: Note) -> Media | None:
    ref = step.media.get(role)
    if ref is None:
        return None
    try:
        found = _content(ref)
    except MediaError as error:
        note(
            Finding(
                "media-left-out",
                "warning",
                step.sample_id,
                f"{role}: {error.what}",
                "a file that can be copied",
                "restore the file and write the data again; the step lacks it until then",
            )
        )
        return None
    suffix = Path(ref.path).suffix.lower() or _FORMS[role]
    if ref.kind != "image" and ref.inline is None and suffix != _FORMS[role]:
        note(
            Finding(
                "media-renamed",
                "warning",
                step.sample_id,
                f"{role}: the file is a {suffix}",
                f"a {_FORMS[role]}",
                "nothing to do; it is copied under the name that the format needs",
            )
        )
    return found


def _content(ref: MediaRef) -> Media:
    """Return a screenshot as PNG, inline sound as WAV, everything else unchanged.

    Raises:
        MediaError: it is missing, unsafe, or not a picture.
    """
    if ref.inline is not None:
        return wav(samples(ref, rate=_RATE), _RATE)
    found = file_or_bytes(ref)
    if ref.kind != "image" or (_is_png(found) and not picture_info(ref).turned):
        return found
    return png(image(ref).pixels)


def _is_png(found: Path | bytes) -> bool:
    if isinstance(found, bytes):
        return found.startswith(_PNG)
    with found.open("rb") as file:
        return file.read(len(_PNG)) == _PNG


# Questions to a model, and the use of their answers.

_OTHERS = "known:"
"""Prefix of the ids of questions that only measure the model."""

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The settings of asking a model; answers do not depend on its limits.

    Attributes:
        model: a SPEC, how to make one, or an adapter of your own.
        options: as given with `-M key=value`.
        limits: of rate, time and cost.
        cluster: the machines that ask; None for this one.
        progress: called during the run.
        count: see `omnidata.run.evaluate.evaluate`.
    """

    model: str | Adapter | Recipe
    _: KW_ONLY
    options: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = UNLIMITED
    cluster: Cluster | None = None
    progress: Progress | None = None
    count: Count | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """The result of annotating.

    Attributes:
        report: as in the tree.
        results: of the run (see `evaluate`); `stopped` is the reason if questions remain.
        written: whether the tree was written: not if the run stopped, or nothing is in it.
    """

    report: Mapping[str, Any]
    results: Mapping[str, Any]
    written: bool


def ask(
    task: Asking, source: LoadedDataset, run: Path, asking: ModelSettings, *, must_judge: bool
) -> tuple[Mapping[str, Any], dict[str, Prediction]]:
    """Return the results of a run (see `evaluate`), and the answers so far by sample id."""
    results = evaluate(
        task,
        source,
        asking.model,
        run,
        model_options=asking.options,
        limits=asking.limits,
        cluster=asking.cluster,
        progress=asking.progress,
        count=asking.count,
        must_judge=must_judge,
    )
    return results, {line.sample_id: line for line in predictions.read_final(run / ANSWERS)}


def about(task: Asking) -> About:
    """Return what a task asks about, and what its answers annotate.

    Raises:
        UsageError: they annotate nothing.
    """
    if task.benchmark.about is None:
        raise UsageError(
            f"the answers to {task.name} do not annotate data",
            where=task.name,
            expected="a benchmark with `about`",
        )
    return task.benchmark.about


class Annotator(ABC, Generic[Answer]):
    """Questions to a model about data, and the use of its answers.

    Args:
        task: asks the questions.
        source: the data.
        known: data with known answers, to measure the model.

    Attributes:
        verb: of `omnidata synth`, and the name of the report.
        column: the column of the rows that holds the answers.
        unmeasured: the missing data, for the warning.
        asked: a step for each question; those about other data come last.
        episodes: of the data that can be written.
        unasked: reasons why questions are not asked, by the ids that they would have.
        counts: number of questions with a known answer, by its origin.
        findings: episodes that are left out, and doubts.

    Raises:
        DataError: nothing can be asked about, or the data use the column for something else.
    """

    verb: ClassVar[str]
    column: ClassVar[str]
    unmeasured: ClassVar[str]

    def __init__(
        self, task: Asking, source: LoadedDataset, known: LoadedDataset | None = None
    ) -> None:
        self.task = task
        self.profile = task.profiles[task.default_profile]
        self.about = about(task)
        self.check_column(source)
        self.episodes, self.findings = read_episodes(source)
        steps = [self.prepare(step) for episode in self.episodes for step in episode.steps]
        questions = self.about.questions(replace(source, steps=steps))
        self.unasked = questions.unasked
        if not questions.source.steps:
            raise DataError(
                self.describe_nothing(),
                where=str(source.root),
                expected=self.about.annotation.expected,
                remedy=self.about.annotation.remedy,
            )
        self.asked, self.counts = self.add_known(questions.source, known)
        self._caveat = self.about.annotation.caveat if known is not None else ""

    def prepare(self, step: Step) -> Step:
        """Return a step of the data as it is asked about."""
        return step

    @abstractmethod
    def describe_nothing(self) -> str:
        """Return why no question can be asked, for the error."""

    @abstractmethod
    def add_known(
        self, asked: LoadedDataset, known: LoadedDataset | None
    ) -> tuple[LoadedDataset, Mapping[str, int]]:
        """Return the questions with those about other data, and the counts of known answers."""

    @abstractmethod
    def is_ours(self, value: Any) -> bool:
        """Return whether the verb can have written a value of the column."""

    @abstractmethod
    def read(self, step: Step, line: Prediction) -> Answer:
        """Return the answer to a question."""

    @abstractmethod
    def summary(self, answers: Mapping[str, Answer]) -> Mapping[str, Any]:
        """Return the report of the answers, by sample id, as JSON values."""

    @abstractmethod
    def precision(self, answers: Mapping[str, Answer]) -> Mapping[str, Any] | None:
        """Return how often answers are right; None if the truth is nowhere known."""

    def keeps(self, episode: Episode, answers: Mapping[str, Answer]) -> bool:
        """Return whether an episode is written."""
        return True

    @abstractmethod
    def rewrite(
        self, episode: Episode, answers: Mapping[str, Answer], model: str, note: Note
    ) -> TreeEpisode:
        """Return the annotated episode; `note` takes findings about its media."""

    def annotate(self, out: Path, asking: ModelSettings) -> Done:
        """Ask the model, and write the tree with its answers.

        The same call resumes after an interruption and repeats unanswered questions.

        Args:
            out: a new or empty folder, or the result of the same call. The tree is staged beside
                it until it is complete. Answers are in `run_folder(out)`.
            asking: the model and its limits.

        Raises:
            UsageError: `out` has other content, or the model cannot be asked.
            DataError: another process is writing to the same place, or it cannot be written.
            RunError, PredictionError: the run folder cannot be used (see `evaluate`).
        """
        run, root, name = run_folder(out), self.asked.root, f"{self.verb}.json"
        inputs = {root, *(ref.root for ref in media_of(self.asked.steps))}
        with TreeStaging(out, inputs=inputs, data=root, report=name, made_by=run) as staging:
            results, lines = ask(self.task, self.asked, run, asking, must_judge=False)
            answers = {
                step.sample_id: self.read(step, lines[step.sample_id])
                for step in self.asked.steps
                if step.sample_id in lines
            }
            model = read_info(run)["model"]
            kept = [each for each in self.episodes if self.keeps(each, answers)]
            report: Mapping[str, Any] = self._report(model, answers, lines)
            if written := bool(kept) and "stopped" not in results:
                report = _write(
                    staging,
                    report,
                    lambda note: (self.rewrite(each, answers, model, note) for each in kept),
                )
        return Done(report, results, written)

    def check_column(self, source: LoadedDataset) -> None:
        """Refuse data that use the verb's column for something else.

        Raises:
            DataError: they do.
        """
        for step in source.steps:
            value = step.source.get(self.column)
            if value is not None and not self.is_ours(value):
                raise DataError(
                    f'the rows have a column "{self.column}" that is not ours',
                    where=step.sample_id,
                    expected=f"no such column, or what `omnidata synth {self.verb}` writes",
                    remedy="rename the column",
                )

    def _report(
        self, model: str, answers: Mapping[str, Answer], lines: Mapping[str, Prediction]
    ) -> dict[str, Any]:
        measured, truth = self.precision(answers), self.about.annotation.truth
        unmeasured = f"precision not measured: {self.unmeasured}; {truth}"
        warnings = ("" if measured else unmeasured, self._caveat)
        # A resumed run has another digest, so its tree is written again.
        said = sorted((line.sample_id, line.delivery, line.output) for line in lines.values())
        return {
            "data": display_path(self.asked.root),
            "fingerprint": self.asked.fingerprint,
            "model": model,
            "task": self.task.name,
            "task_options": dict(self.task.options),
            "prompt_hash": self.task.prompt_hash,
            **self.summary(answers),
            "known": dict(self.counts),
            "precision": measured,
            "answers": hashlib.sha256(encode(said)).hexdigest(),
            "warnings": list(filter(None, warnings)),
            "findings": [dict(finding.as_dict()) for finding in self.findings],
        }


def with_others(asked: LoadedDataset, others: Sequence[Step], fingerprint: str) -> LoadedDataset:
    """Return the questions, followed by those about other data under ids of their own.

    Args:
        asked: about the data.
        others: about other data.
        fingerprint: of the other data.
    """
    both = f"{asked.fingerprint} {fingerprint}"
    renamed = (replace(step, sample_id=_OTHERS + step.sample_id) for step in others)
    return replace(
        asked,
        steps=[*asked.steps, *renamed],
        fingerprint=hashlib.sha256(both.encode()).hexdigest(),
    )


def is_others(sample_id: str) -> bool:
    """Return whether a question only measures the model."""
    return sample_id.startswith(_OTHERS)


def _write(
    staging: TreeStaging,
    report: Mapping[str, Any],
    episodes: Callable[[Note], Iterable[TreeEpisode]],
) -> Mapping[str, Any]:
    there = staging.there()
    if there is not None and {**there, "findings": ()} == {**report, "findings": ()}:
        return there
    findings: list[Finding] = []
    with staging.writing():
        with TreeWriter(staging.path) as tree:
            staging.mark()
            for episode in episodes(findings.append):
                tree.add(episode)
        said = [dict(finding.as_dict()) for finding in findings]
        whole = {**report, "findings": [*report["findings"], *said]}
        staging.publish(whole)
    return whole
