"""The common part of `label` and `filter`: ask a model about episodes and write them again.

The questions are a task, asked by `evaluate` into a run folder beside the tree. Instructions,
labels, media and unknown columns stay unchanged; only the targets and columns that the answers set
differ. See `docs/label.md`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

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
    Media,
    TreeEpisode,
    TreeStep,
    TreeWriter,
    check_name,
    instructions,
    label,
)
from omnidata.loaders.steps import media_of
from omnidata.media import file_or_bytes, image, picture_info, png, samples, wav
from omnidata.predictions import Prediction
from omnidata.remote import display_path
from omnidata.run.cluster import Recipe
from omnidata.run.cost import Limits
from omnidata.run.engines import Cluster
from omnidata.run.evaluate import Count, evaluate
from omnidata.run.run_info import ANSWERS, read_info
from omnidata.synth.folder import TreeStaging
from omnidata.tasks.asking import Asking
from omnidata.tasks.benchmark import About
from omnidata.types import (
    Adapter,
    GenerationParams,
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
    """Return the episodes that can be written, and a finding for each other one.

    Args:
        source: with its steps in order of episodes.
    """
    episodes: list[Episode] = []
    findings: list[Finding] = []
    taken: set[str] = set()
    for name, same in groupby(source.steps, key=attrgetter("episode")):
        steps = tuple(same)
        app = steps[0].tags.get("app", source.task)
        row = source.episode_rows.get(name, {})
        episode = Episode(app, steps[0].episode_id, steps, row)
        reason = _unwritable(episode, taken)
        if reason:
            findings.append(_exclusion(episode, reason))
            continue
        taken.add(f"{app}/{name}".casefold())
        episodes.append(episode)
        if "dimension" not in steps[0].tags:
            findings.append(_assumption(episode))
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


def _exclusion(episode: Episode, reason: str) -> Finding:
    return Finding(
        "episode-left-out",
        "error",
        episode.key,
        f"the episode cannot be written: {reason}",
        "an instruction, steps 0, 1, 2, ..., and names that folders can have",
        "correct the data; until then the episode is left out",
    )


def _assumption(episode: Episode) -> Finding:
    return Finding(
        "dimension-assumed",
        "warning",
        episode.key,
        "the data state no dimension",
        f"one of {', '.join(DIMENSIONS)}",
        "localization is written; add it to the data",
    )


def _instructions(episode: Episode) -> tuple[str | None, str | None]:
    first = episode.steps[0]
    said = instructions(episode.row, first.source)
    return said if any(said) else (first.instruction or None, None)


def retold(
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
        steps=_steps(episode.steps, change, note),
        instruction_en=english,
        instruction_zh=chinese,
        dependency=label(tags.get("dependency"), DEPENDENCIES),
        extra={**extra, **(columns or {})},
    )


def _steps(
    steps: Sequence[Step],
    change: Callable[[Step], Change],
    note: Note,
) -> Iterator[TreeStep]:
    for step in steps:
        made = change(step)
        gone = STEP_COLUMNS if made.keep else STEP_COLUMNS | TARGET_COLUMNS
        kept = {key: value for key, value in step.source.items() if key not in gone}
        yield TreeStep(
            made.action,
            screen=step.screen,
            screenshot=_medium(step, "screenshot", note),
            video=_medium(step, "video", note),
            audio=_medium(step, "audio", note),
            extra={**kept, **made.columns},
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


UNLIMITED = Limits()

# The questions: about the data, and about other data with known answers.

_OTHERS = "known:"


@dataclass(frozen=True, slots=True)
class Asked:
    """The questions to a model.

    Attributes:
        source: a step for each question; those about other data come last and only measure the
            model (see `is_others`).
        episodes: of the data that can be written.
        unasked: reasons why questions are not asked, by the ids that they would have.
        known: number of questions with a known answer, by its origin.
        findings: episodes that are left out, and doubts.
        caveat: why the measurement may be too good; empty if there is no reason.
        own: ids of steps of the data with a target that no model made.
    """

    source: LoadedDataset
    episodes: Sequence[Episode]
    unasked: Mapping[str, str]
    known: Mapping[str, int]
    findings: Sequence[Finding]
    _: KW_ONLY
    caveat: str = ""
    own: frozenset[str] = frozenset()


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


def with_others(asked: LoadedDataset, others: Sequence[Step], fingerprint: str) -> LoadedDataset:
    """Return the questions, followed by those about other data.

    Args:
        asked: about the data.
        others: about other data; each gets an id that no step of the data has.
        fingerprint: of the other data.
    """
    both = f"{asked.fingerprint} {fingerprint}"
    return replace(
        asked,
        steps=[
            *asked.steps,
            *(replace(step, sample_id=_OTHERS + step.sample_id) for step in others),
        ],
        fingerprint=hashlib.sha256(both.encode()).hexdigest(),
    )


def is_others(sample_id: str) -> bool:
    """Return whether a question only measures the model."""
    return sample_id.startswith(_OTHERS)


def check_column(
    source: LoadedDataset, column: str, ours: Callable[[Any], bool], verb: str
) -> None:
    """Refuse data that use the verb's column for something else.

    Raises:
        DataError: they do.
    """
    for step in source.steps:
        value = step.source.get(column)
        if value is not None and not ours(value):
            raise DataError(
                f'the rows have a column "{column}" that is not ours',
                where=step.sample_id,
                expected=f"no such column, or what `omnidata synth {verb}` writes",
                remedy="rename the column",
            )


# To ask, and what came of it.


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The settings of asking a model; answers do not depend on its limits.

    Attributes:
        model: a SPEC, how to make one, or an adapter of your own.
        options: as given with `-M key=value`.
        params: how to decode; the model's own if None.
        limits: of rate, time and cost.
        cluster: the machines that ask; None for this one.
        progress: called during the run.
        count: see `omnidata.run.evaluate.evaluate`.
    """

    model: str | Adapter | Recipe
    _: KW_ONLY
    options: Mapping[str, str] = field(default_factory=dict)
    params: GenerationParams | None = None
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


def run_folder(out: Path) -> Path:
    """Return the folder of the answers, beside the tree."""
    out = out.resolve()
    return out.with_name(f"{out.name}.run")


@dataclass(frozen=True, slots=True)
class Answered:
    """The answers of a model.

    Attributes:
        results: see `evaluate`.
        model: the model's name in `run.json`.
        lines: the answers so far, by sample id.
    """

    results: Mapping[str, Any]
    model: str
    lines: Mapping[str, Prediction]

    @property
    def digest(self) -> str:
        """SHA-256 over the answers; a run that goes on changes it."""
        said = sorted((line.sample_id, line.delivery, line.output) for line in self.lines.values())
        return hashlib.sha256(encode(said)).hexdigest()


@dataclass(frozen=True, slots=True)
class Result:
    """Return the result of the answers to all questions.

    Attributes:
        report: as JSON values.
        precision: measured where the truth is known; None where it is known nowhere.
        unmeasured: the missing data, for the warning.
        episodes: given a function for further findings, yields the episodes to write; None for
            none.
    """

    report: Mapping[str, Any]
    precision: Mapping[str, Any] | None
    unmeasured: str
    episodes: Callable[[Note], Iterable[TreeEpisode]] | None


def annotate(
    task: Asking,
    asked: Asked,
    out: Path,
    asking: ModelSettings,
    *,
    report: str,
    read: Callable[[Answered], Result],
) -> Done:
    """Ask a model, and write the tree with its answers.

    The same call resumes after an interruption and repeats unanswered questions.

    Args:
        task: of the questions.
        asked: the questions.
        out: a new or empty folder, or the result of the same call. The tree is staged beside it
            until it is complete. Answers are in `run_folder(out)`.
        asking: the model and its limits.
        report: the name of the report's file in the tree.
        read: parses the answers.

    Raises:
        UsageError: `out` has other content, or the model cannot be asked.
        DataError: another process is writing to the same place, or it cannot be written.
        RunError, PredictionError: the run folder cannot be used (see `evaluate`).
    """
    run = run_folder(out)
    root = asked.source.root
    inputs = {root, *(ref.root for ref in media_of(asked.source.steps))}
    with TreeStaging(out, inputs=inputs, data=root, report=report, made_by=run) as staging:
        results = evaluate(
            task,
            asked.source,
            asking.model,
            run,
            model_options=asking.options,
            params=asking.params,
            limits=asking.limits,
            cluster=asking.cluster,
            progress=asking.progress,
            count=asking.count,
            must_judge=False,
        )
        lines = predictions.read_final(run / ANSWERS)
        by_id = {line.sample_id: line for line in lines}
        answered = Answered(results, read_info(run)["model"], by_id)
        found = read(answered)
        told: Mapping[str, Any] = _report(task, asked, answered, found)
        whole = found.episodes is not None and "stopped" not in answered.results
        if found.episodes is not None and whole:
            told = _write(staging, told, found.episodes)
    return Done(told, answered.results, written=whole)


def _report(task: Asking, asked: Asked, answered: Answered, found: Result) -> dict[str, Any]:
    unmeasured = f"precision not measured: {found.unmeasured}; {about(task).annotation.truth}"
    warnings = ("" if found.precision else unmeasured, asked.caveat)
    return {
        "data": display_path(asked.source.root),
        "fingerprint": asked.source.fingerprint,
        "model": answered.model,
        "task": task.name,
        "task_options": dict(task.options),
        "prompt_hash": task.prompt_hash,
        **found.report,
        "known": dict(asked.known),
        "precision": found.precision,
        "answers": answered.digest,
        "warnings": list(filter(None, warnings)),
        "findings": [dict(finding.as_dict()) for finding in asked.findings],
    }


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
