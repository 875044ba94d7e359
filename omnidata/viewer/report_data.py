"""Collect the content of pages: the steps of a dataset, and the answers and verdicts of a run."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from omnidata import media, remote
from omnidata.actions import Action, Point, Region, Screen, history_text
from omnidata.errors import MediaError, OmnidataError, RunError, UsageError, plural
from omnidata.loaders.steps import as_steps, episodes_of
from omnidata.predictions import Prediction, missing_media, parts
from omnidata.run.altered_media import Alteration, read_alteration, step_without
from omnidata.run.errata import Correction, correct_step
from omnidata.run.histories import Histories
from omnidata.run.recorded import RecordedOptions, recorded_data, recorded_options, recorded_steps
from omnidata.run.run_files import Run
from omnidata.tasks import get_task
from omnidata.types import (
    Diagnosis,
    Explanation,
    LoadedDataset,
    Mark,
    MediaRef,
    Modality,
    Overlays,
    Part,
    Step,
    Verdict,
)
from omnidata.viewer.media_index import Shelf, Wave, waveform
from omnidata.viewer.task_graph import LIMIT, Drawing, drawing

if TYPE_CHECKING:
    from omnidata.tasks.asking import Asking


@dataclass(frozen=True)
class Book:
    """A dataset, with or without a run.

    Attributes:
        task: with the options of the run.
        source: the data.
        steps: those with pages, in order.
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
    def episodes(self) -> Sequence[Sequence[int]]:
        """The numbers of each episode's steps, in step order."""
        found: list[list[int]] = [[] for _ in range(max(self.episode_of) + 1)]
        indices = as_steps(self.steps).integers("step_index")
        for number in np.argsort(indices, kind="stable").tolist():
            found[self.episode_of[number]].append(number)
        return found

    @cached_property
    def episode_of(self) -> Sequence[int]:
        """The number of the episode of every step."""
        found: list[int] = episodes_of(self.steps).tolist()
        return found

    @cached_property
    def explanations(self) -> Sequence[Explanation]:
        """The benchmark's explanation of each step and, in a run, of its answer."""
        return [self.explain(step, self.verdict(step)) for step in self.steps]

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

    def explanation(self, number: int) -> Explanation:
        """Return the explanation of a step, by its number."""
        return self.explanations[number] if self.run else self.explain(self.steps[number])

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
        said = self.prediction(step)
        return self.task.explanation(
            step,
            verdict,
            (said.output or "") if said else "",
            profile=profile or own,
            receipt=said.receipt if said else None,
        )

    def prediction(self, step: Step) -> Prediction | None:
        """Return the answer to a step; None if the run has none."""
        return self.run.predictions.get(step.sample_id) if self.run else None

    def past_answers(self, number: int) -> list[Action | None]:
        """Return the model's own actions before a step, as its prompt showed them."""
        step, histories = self.steps[number], Histories(self.task)
        for other in self.episodes[self.episode_of[number]]:
            before = self.steps[other]
            if before.step_index < step.step_index:
                said = self.prediction(before)
                histories.remember(before, said.completion() if said else None)
        past = histories.before(step)
        return [*past, *[None] * (step.step_index - len(past))]


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
    steps = source.steps
    if run.settings:
        steps = recorded_steps(run.settings, source, run.path)
    unknown = run.scores.keys() - {step.sample_id for step in steps}
    scored = [step for step in steps if step.sample_id in run.scores]
    if unknown or not scored:
        raise RunError(
            f"{plural(len(unknown), 'score')} of steps that the data lack",
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
            return (
                task,
                task.load(data, check_media=False),
                _note_on_prompts(run, task, asked, files),
            )
        except OmnidataError as error:
            if files:
                raise
            note = f"The prompts are incomplete: {error.what}"
    return run.asking, run.asking.load(data, check_media=False), note


def _note_on_prompts(
    run: Run, task: Asking, asked: RecordedOptions, files: Mapping[str, str]
) -> str:
    if asked.unopened:
        named = " ".join(f"-T {name}={value}" for name, value in asked.unopened.items())
        return (
            "The prompts lack the files of these options, because a run folder opens no files. "
            f"Name them on the command line: {named}"
        )
    if (asked.texts or files) and run.settings.get("prompt_hash") not in (None, task.prompt_hash):
        return "These prompts differ from the sent ones: run.json has another prompt hash"
    return ""


# The content of a step's page.

_LONGEST_ROW = 20_000
"""Characters of a row on a page, at most: a row may hold minutes of sound."""


@dataclass(frozen=True, slots=True)
class StripStep:
    """A step in a strip: its number, its index in the episode, its mark (None without a run)."""

    number: int
    index: int
    mark: Mark | None


@dataclass(frozen=True, slots=True)
class Shape:
    """Something drawn over a picture, in its pixels.

    Attributes:
        by: "target", "old" for a target that errata replace, "errata" for theirs, or "answer".
        kind: "box"; "point", with a cross; "arrow" from x, y by width, height.
        x, y, width, height: where.
    """

    by: str
    kind: str
    x: float
    y: float
    width: float = 0.0
    height: float = 0.0


@dataclass(frozen=True, slots=True)
class Shown:
    """A picture of a step, or why it cannot be shown.

    Attributes:
        role: in the step.
        number: on the shelf.
        size: width and height in pixels.
        shapes: drawn over it.
        error: empty for a picture.
    """

    role: str
    number: int
    size: Screen
    shapes: Sequence[Shape]
    error: str = ""


@dataclass(frozen=True, slots=True)
class Track:
    """A clip or a sound of a step.

    Attributes:
        role: in the step.
        kind: "video" or "audio".
        number: on the shelf.
        wave: of readable sound.
        error: why it cannot be played; empty if it can.
    """

    role: str
    kind: Modality
    number: int
    wave: Wave | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Ruling:
    """The verdict of one profile, and why.

    Attributes:
        profile: the profile.
        outcome, values: of its verdict.
        mark, diagnosis: as in `Explanation`.
        why: in a sentence.
    """

    profile: str
    outcome: str
    mark: Mark
    values: Mapping[str, Any]
    why: str
    diagnosis: Diagnosis | None


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a step.

    Attributes:
        text: of the model; None if the run folder has scores alone.
        delivery, error: as in `predictions.jsonl`.
        about: known usage, latency and attempts.
        receipt: the media sent to the model, one entry each.
        parsed: the parsed action, as code or JSON; empty if none.
    """

    text: str | None
    delivery: str
    error: str
    about: Mapping[str, str]
    receipt: Sequence[Mapping[str, str]]
    parsed: str


@dataclass(frozen=True, slots=True)
class Facts:
    """A step's page.

    Attributes:
        number: of the step in the book.
        step: the step.
        strip: the steps of its episode.
        broke: the index of the first step that is not right; None if all are, or without a run.
        pictures, tracks: the media, in the order of the step's roles.
        history: index, wording and number of earlier actions; None for steps not in the data.
        prompt: role and parts of every message; a part is a kind and its text.
        prompt_note: why the prompt differs from the sent one; empty if it does not.
        framed: the noun for frames on pictures, e.g. "target".
        target: the right answer as text; empty without a usable one.
        graph: the graph of the task's subtasks; None without one, or if it is too large.
        graph_note: why a graph is not drawn; empty otherwise.
        answer: None without a run.
        rulings: of the profiles, the run's first.
        row: the source's, as JSON.
        corrections: the kind of each correction, what is right by it, and why.
    """

    number: int
    step: Step
    strip: Sequence[StripStep]
    broke: int | None
    pictures: Sequence[Shown]
    tracks: Sequence[Track]
    history: Sequence[tuple[int, str, int | None]]
    prompt: Sequence[tuple[str, Sequence[tuple[str, str]]]]
    prompt_note: str
    framed: str
    target: str
    graph: Drawing | None
    graph_note: str
    answer: Answer | None
    rulings: Sequence[Ruling]
    row: str
    corrections: Sequence[tuple[str, str, str]]


def facts(book: Book, number: int) -> Facts:
    """Return the content of a step's page; an error message replaces unreadable media.

    Args:
        book: the dataset, with or without a run.
        number: position of the step in `book.steps`.
    """
    step = book.steps[number]
    strip = [
        StripStep(each, book.steps[each].step_index, book.explanation(each).mark)
        for each in book.episodes[book.episode_of[number]]
    ]
    broken = [cell.index for cell in strip if cell.mark not in ("right", "unjudged")]
    verdict, target = book.verdict(step), book.task.target(step)
    explained = book.explanation(number)
    drawn = _draw_shapes(book, step, explained.overlays)
    prompt, note = _prompt(book, number)
    graph, graph_note = _graph(book, step)
    return Facts(
        number=number,
        step=step,
        strip=strip,
        broke=min(broken) if broken and book.run else None,
        pictures=[_picture(book, role, ref, drawn) for role, ref in _media(step, "image")],
        tracks=[
            _track(book, role, ref)
            for kind in ("video", "audio")
            for role, ref in _media(step, kind)
        ],
        history=_history(book, number),
        prompt=prompt,
        prompt_note=note,
        framed=explained.frames,
        target=target.text if target else "",
        graph=graph,
        graph_note=graph_note,
        answer=_answer(book, step, verdict) if verdict else None,
        rulings=_rulings(book, step, verdict, explained) if verdict else (),
        row=_json(step.source),
        corrections=[*_corrections(book, step)],
    )


def _corrections(book: Book, step: Step) -> Iterator[tuple[str, str, str]]:
    found = book.corrections.get(step.sample_id, ())
    for number, one in enumerate(found, 1):
        text = one.instruction
        if one.action:
            corrected = _correct(book, step, found[:number])
            target = book.task.target(corrected[-1]) if corrected else None
            text = target.text if target else one.action.label
        yield one.kind.replace("_", " "), text, one.reason


def _correct(book: Book, step: Step, corrections: Sequence[Correction]) -> Sequence[Step]:
    try:
        return correct_step(book.task.benchmark, step, corrections)
    except OmnidataError:  # `validate --errata` says why; the page shows the line
        return (step,)


def _media(step: Step, kind: str) -> list[tuple[str, MediaRef]]:
    return [(role, ref) for role, ref in step.media.items() if ref and ref.kind == kind]


def _draw_shapes(book: Book, step: Step, own: Mapping[str, Overlays]) -> dict[str, list[Shape]]:
    """Return the shapes of each picture, those of errata among them."""
    by = "target"
    found: dict[str, list[Shape]] = defaultdict(list)
    if corrections := book.corrections.get(step.sample_id):
        right = _correct(book, step, corrections)
        by = "target" if any(each.action == step.action for each in right) else "old"
        for each in right:
            if each.action != step.action:
                for role, overlays in book.explain(each).overlays.items():
                    found[role] += _target_shapes("errata", overlays)
    for role, overlays in own.items():
        found[role][:0] = _target_shapes(by, overlays)
        found[role] += _answer_shapes(overlays)
    return found


def _picture(book: Book, role: str, ref: MediaRef, drawn: Mapping[str, list[Shape]]) -> Shown:
    number = book.shelf.number(ref)
    try:
        size = media.image_size(ref)
    except MediaError as error:
        return Shown(role, number, (0, 0), (), error.what)
    return Shown(role, number, size, drawn.get(role, ()))


def _target_shapes(by: str, found: Overlays) -> list[Shape]:
    return [_shape(by, region) for region in (*found.target, *found.target_end)]


def _answer_shapes(found: Overlays) -> list[Shape]:
    said = [_shape("answer", point) for point in (found.answer, found.answer_end) if point]
    if found.answer and found.answer_end:
        one, other = found.answer, found.answer_end
        said.append(Shape("answer", "arrow", one.x, one.y, other.x - one.x, other.y - one.y))
    return said


def _shape(by: str, region: Region) -> Shape:
    if isinstance(region, Point):
        return Shape(by, "point", region.x, region.y)
    width, height = region.right - region.left, region.bottom - region.top
    return Shape(by, "box", region.left, region.top, width, height)


def _track(book: Book, role: str, ref: MediaRef) -> Track:
    number = book.shelf.number(ref)
    try:
        wave = waveform(ref) if ref.kind == "audio" else None
        if wave is None:
            media.file_or_bytes(ref)
    except MediaError as error:
        return Track(role, ref.kind, number, None, error.what)
    return Track(role, ref.kind, number, wave)


def _history(book: Book, number: int) -> list[tuple[int, str, int | None]]:
    step = book.steps[number]
    numbers = {book.steps[n].step_index: n for n in book.episodes[book.episode_of[number]]}
    past = zip(step.history, step.history_screens, strict=True)
    return [
        (index, history_text(action, screen) if action else "unknown", numbers.get(index))
        for index, (action, screen) in enumerate(past)
    ]


def _prompt(book: Book, number: int) -> tuple[list[tuple[str, Sequence[tuple[str, str]]]], str]:
    step, altered = book.steps[number], book.alteration
    if altered:
        step = step_without(step, altered.removed, book.source.roles)
    predicted = book.past_answers(number) if book.task.needs_predictions and book.run else None
    try:
        conversation = book.task.conversation(step, predicted)
    except OmnidataError as error:
        return [], error.what
    return [
        (message.role, [(part.kind, _format_part(part, step, altered)) for part in message.parts])
        for message in conversation
    ], book.note


def _format_part(part: Part, step: Step, altered: Alteration | None) -> str:
    if part.media is None:
        return part.text
    said = f"{part.role or 'medium'}: {part.media.path or 'stored in the row'}"
    if altered and part.kind == altered.kind and part.role in step.media:
        said = f"{part.role}: {altered.shown}, in place of {part.media.path or 'the original'}"
    if part.media.until < 1:
        said += f", its first {100 * part.media.until:g} %"
    if part.size:
        said += f", sent at {part.size[0]} × {part.size[1]} pixels"
    return said


def _graph(book: Book, step: Step) -> tuple[Drawing | None, str]:
    draw = book.task.benchmark.diagram
    found = draw(book.source, step) if draw else None
    if found is None:
        return None, ""
    nodes = len(found.graph.nodes)
    if nodes > LIMIT:
        return None, f"The graph has {nodes} subtasks. Only graphs of at most {LIMIT} are drawn"
    return drawing(found), ""


def _answer(book: Book, step: Step, verdict: Verdict) -> Answer:
    line, parsed = book.prediction(step), verdict.parsed or {}
    read = json.dumps(parsed, ensure_ascii=False) if parsed else ""
    if parsed.keys() == {"code"}:
        read = str(parsed["code"])
    if line is None:
        return Answer(None, verdict.outcome, "", {}, (), read)
    about = {name: str(value) for name, value in line.usage.items()}
    if line.latency_s:
        about["latency"] = f"{line.latency_s:.2f} s"
    if line.attempts > 1:
        about["attempts"] = str(line.attempts)
    receipt = [
        {
            str(name): value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for name, value in part.items()
        }
        for part in parts(line.receipt)
    ]
    if less := missing_media(line.receipt):
        about["media not sent"] = _json(less)
    return Answer(line.output or "", line.delivery, line.error, about, receipt, read)


def _rulings(book: Book, step: Step, own: Verdict, explained: Explanation) -> list[Ruling]:
    assert book.run
    found = [_ruling(book, step, book.run.profile, own, explained)]
    said = book.prediction(step)
    for name, profile in book.task.profiles.items():
        if name == book.run.profile or said is None:
            continue
        try:
            verdict = profile.judge(step, said.output or "", said.receipt, said.delivery)
        except OmnidataError as error:
            verdict = Verdict("unparsed", (None,) * len(profile.values), None, error.what)
        explained = book.explain(step, verdict, profile=name)
        found.append(_ruling(book, step, name, verdict, explained))
    return found


def _ruling(book: Book, step: Step, name: str, verdict: Verdict, explained: Explanation) -> Ruling:
    values = dict(zip(book.task.profiles[name].values, verdict.values, strict=True))
    said, why = book.prediction(step), explained.sentence
    assert explained.mark
    if explained.mark == "none" and said and said.error:
        why = f"{verdict.outcome}: {said.error}"
    return Ruling(name, verdict.outcome, explained.mark, values, why, explained.diagnosis)


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=1, default=lambda other: str(type(other)))
    return text if len(text) <= _LONGEST_ROW else f"{text[:_LONGEST_ROW]}\n… (shortened)"
