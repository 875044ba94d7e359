"""The content of a step's page. An error message replaces media that cannot be read."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from omnidata import media
from omnidata.actions import Action, Point, Screen, history_text
from omnidata.errors import MediaError, OmnidataError
from omnidata.predictions import missing_media, parts
from omnidata.run.altered_media import Alteration, step_without
from omnidata.run.errata import Correction, correct_step
from omnidata.run.histories import Histories
from omnidata.types import (
    Diagnosis,
    Explanation,
    Mark,
    MediaRef,
    Modality,
    Overlays,
    Part,
    Step,
    Verdict,
)
from omnidata.viewer.book import Book
from omnidata.viewer.media_index import Wave, waveform
from omnidata.viewer.task_graph import LIMIT, Drawing, drawing

_LONGEST_ROW: Final = 20_000
"""Characters of a row on a page, at most: a row may hold minutes of sound."""


@dataclass(frozen=True, slots=True)
class StepPage:
    """A step's page.

    Attributes:
        number: of the step in the book.
        step: the step.
        strip: the steps of its episode.
        broke: the index of the first step that is not right; None if all are, or without a run.
        pictures, tracks: the media, in the order of the step's roles.
        framed: the noun for frames on pictures, e.g. "target".
        history: the earlier actions.
        prompt: the messages.
        prompt_note: why the prompt differs from the sent one; empty if it does not.
        target: the right answer as text; empty without a usable one.
        errata: corrections of the step.
        graph: the graph of the task's subtasks; None without one, or if it is too large.
        graph_note: why a graph is not drawn; empty otherwise.
        answer: None without a run.
        rulings: of the profiles, the run's first.
        row: the source's, as JSON.
    """

    number: int
    step: Step
    strip: Sequence[StripStep]
    broke: int | None
    pictures: Sequence[Picture]
    tracks: Sequence[Track]
    framed: str
    history: Sequence[PastAction]
    prompt: Sequence[PromptMessage]
    prompt_note: str
    target: str
    errata: Sequence[Erratum]
    graph: Drawing | None
    graph_note: str
    answer: Answer | None
    rulings: Sequence[Ruling]
    row: str


def step_page(book: Book, number: int) -> StepPage:
    """Return the content of a step's page.

    Args:
        book: the dataset, with or without a run.
        number: of the step in the book.
    """
    step, explained = book.steps[number], book.explanation(number)
    strip = [
        StripStep(each, book.steps[each].step_index, book.explanation(each).mark)
        for each in book.episode(number)
    ]
    mistakes = (cell.index for cell in strip if cell.mark not in ("right", "unjudged"))
    target, verdict = book.task.target(step), book.verdict(step)
    prompt, prompt_note = _prompt(book, number)
    graph, graph_note = _graph(book, step)
    return StepPage(
        number=number,
        step=step,
        strip=strip,
        broke=min(mistakes, default=None) if book.run else None,
        pictures=_pictures(book, step, explained.overlays),
        tracks=_tracks(book, step),
        framed=explained.frames,
        history=_history(book, number),
        prompt=prompt,
        prompt_note=prompt_note,
        target=target.text if target else "",
        errata=list(_errata(book, step)),
        graph=graph,
        graph_note=graph_note,
        answer=_answer(book, step, verdict) if verdict else None,
        rulings=_rulings(book, step, verdict, explained) if verdict else [],
        row=_format_json(step.source),
    )


@dataclass(frozen=True, slots=True)
class StripStep:
    """A step in a strip: its number, its index in the episode, its mark (None without a run)."""

    number: int
    index: int
    mark: Mark | None


# Pictures, and the shapes drawn over them.


@dataclass(frozen=True, slots=True)
class Shape:
    """Something drawn over a picture, in its pixels.

    Attributes:
        by: "target", "old" for a target that errata replace, "errata" for theirs, or "answer".
        kind: "box"; "point", with a cross; "arrow" from x, y by width, height.
        x, y, width, height: where.
    """

    by: Literal["target", "old", "errata", "answer"]
    kind: Literal["box", "point", "arrow"]
    x: float
    y: float
    width: float = 0.0
    height: float = 0.0


@dataclass(frozen=True, slots=True)
class Picture:
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


def _pictures(book: Book, step: Step, overlays: Mapping[str, Overlays]) -> list[Picture]:
    shapes = _shapes(book, step, overlays)
    pictures = []
    for role, ref in _media(step, "image"):
        number = book.shelf.number(ref)
        try:
            size = media.image_size(ref)
        except MediaError as error:
            pictures.append(Picture(role, number, (0, 0), (), error.what))
        else:
            pictures.append(Picture(role, number, size, shapes.get(role, ())))
    return pictures


def _media(step: Step, kind: Modality) -> list[tuple[str, MediaRef]]:
    return [(role, ref) for role, ref in step.media.items() if ref and ref.kind == kind]


def _shapes(book: Book, step: Step, own: Mapping[str, Overlays]) -> Mapping[str, list[Shape]]:
    """Return the shapes of each picture: of the target, of errata and of the answer, in order."""
    corrections = book.corrections.get(step.sample_id, ())
    corrected = _correct(book, step, corrections) if corrections else (step,)
    is_right = any(each.action == step.action for each in corrected)
    shapes: dict[str, list[Shape]] = defaultdict(list)
    for role, overlays in own.items():
        shapes[role] += _target_shapes("target" if is_right else "old", overlays)
    for each in corrected:
        if each.action != step.action:
            for role, overlays in book.explain(each).overlays.items():
                shapes[role] += _target_shapes("errata", overlays)
    for role, overlays in own.items():
        shapes[role] += _answer_shapes(overlays)
    return shapes


def _target_shapes(by: Literal["target", "old", "errata"], found: Overlays) -> Iterator[Shape]:
    for region in (*found.target, *found.target_end):
        if isinstance(region, Point):
            yield Shape(by, "point", region.x, region.y)
        else:
            width, height = region.right - region.left, region.bottom - region.top
            yield Shape(by, "box", region.left, region.top, width, height)


def _answer_shapes(found: Overlays) -> Iterator[Shape]:
    start, end = found.answer, found.answer_end
    for point in filter(None, (start, end)):
        yield Shape("answer", "point", point.x, point.y)
    if start and end:
        yield Shape("answer", "arrow", start.x, start.y, end.x - start.x, end.y - start.y)


# Clips and sounds.


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


def _tracks(book: Book, step: Step) -> list[Track]:
    return [_track(book, *each) for each in (*_media(step, "video"), *_media(step, "audio"))]


def _track(book: Book, role: str, ref: MediaRef) -> Track:
    number = book.shelf.number(ref)
    try:
        wave = waveform(ref) if ref.kind == "audio" else None
        if wave is None:
            media.file_or_bytes(ref)
    except MediaError as error:
        return Track(role, ref.kind, number, None, error.what)
    return Track(role, ref.kind, number, wave)


# Earlier actions, and the prompt.


@dataclass(frozen=True, slots=True)
class PastAction:
    """An earlier action: its index in the episode, words, and its step; None if not in the data."""

    index: int
    words: str
    number: int | None


def _history(book: Book, number: int) -> list[PastAction]:
    step = book.steps[number]
    numbers = {book.steps[each].step_index: each for each in book.episode(number)}
    past = zip(step.history, step.history_screens, strict=True)
    return [
        PastAction(index, history_text(action, screen) if action else "unknown", numbers.get(index))
        for index, (action, screen) in enumerate(past)
    ]


class PromptMessage(NamedTuple):
    """A message of a prompt: its role, and the kind and text of each part."""

    role: str
    parts: Sequence[tuple[str, str]]


def _prompt(book: Book, number: int) -> tuple[list[PromptMessage], str]:
    """Return the messages, and why they differ from the sent ones."""
    step, altered = book.steps[number], book.alteration
    if altered:
        step = step_without(step, altered.removed, book.source.roles)
    own_actions = _own_actions(book, number) if book.task.needs_predictions and book.run else None
    try:
        conversation = book.task.conversation(step, own_actions)
    except OmnidataError as error:
        return [], error.what
    return [
        PromptMessage(
            message.role,
            [(part.kind, _format_part(part, step, altered)) for part in message.parts],
        )
        for message in conversation
    ], book.note


def _own_actions(book: Book, number: int) -> list[Action | None]:
    """Return the model's own actions before a step, as its prompt showed them."""
    step, histories = book.steps[number], Histories(book.task)
    for other in book.episode(number):
        before = book.steps[other]
        if before.step_index < step.step_index:
            answer = book.answer(before)
            histories.remember(before, answer.completion() if answer else None)
    past = histories.before(step)
    return [*past, *[None] * (step.step_index - len(past))]


def _format_part(part: Part, step: Step, altered: Alteration | None) -> str:
    if part.media is None:
        return part.text
    text = f"{part.role or 'medium'}: {part.media.path or 'stored in the row'}"
    if altered and part.kind == altered.kind and part.role in step.media:
        text = f"{part.role}: {altered.shown}, in place of {part.media.path or 'the original'}"
    if part.media.until < 1:
        text += f", its first {100 * part.media.until:g} %"
    if part.size:
        text += f", sent at {part.size[0]} × {part.size[1]} pixels"
    return text


# Errata, and the graph of the task.


class Erratum(NamedTuple):
    """A correction: its kind, what is right by it, and why."""

    kind: str
    right: str
    why: str


def _errata(book: Book, step: Step) -> Iterator[Erratum]:
    corrections = book.corrections.get(step.sample_id, ())
    for number, one in enumerate(corrections, 1):
        right = one.instruction
        if one.action:
            corrected = _correct(book, step, corrections[:number])
            target = book.task.target(corrected[-1]) if corrected else None
            right = target.text if target else one.action.label
        yield Erratum(one.kind.replace("_", " "), right, one.reason)


def _correct(book: Book, step: Step, corrections: Sequence[Correction]) -> Sequence[Step]:
    try:
        return correct_step(book.task.benchmark, step, corrections)
    except OmnidataError:  # `validate --errata` says why; the page shows the line
        return (step,)


def _graph(book: Book, step: Step) -> tuple[Drawing | None, str]:
    draw = book.task.benchmark.diagram
    found = draw(book.source, step) if draw else None
    if found is None:
        return None, ""
    nodes = len(found.graph.nodes)
    if nodes > LIMIT:
        return None, f"The graph has {nodes} subtasks. Only graphs of at most {LIMIT} are drawn"
    return drawing(found), ""


# The answer and its verdicts.


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


def _answer(book: Book, step: Step, verdict: Verdict) -> Answer:
    parsed = verdict.parsed or {}
    code = json.dumps(parsed, ensure_ascii=False) if parsed else ""
    if parsed.keys() == {"code"}:
        code = str(parsed["code"])
    answer = book.answer(step)
    if answer is None:
        return Answer(None, verdict.outcome, "", {}, (), code)
    about = {name: str(value) for name, value in answer.usage.items()}
    if answer.latency_s:
        about["latency"] = f"{answer.latency_s:.2f} s"
    if answer.attempts > 1:
        about["attempts"] = str(answer.attempts)
    if less := missing_media(answer.receipt):
        about["media not sent"] = _format_json(less)
    receipt = [
        {
            str(name): value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for name, value in part.items()
        }
        for part in parts(answer.receipt)
    ]
    return Answer(answer.output or "", answer.delivery, answer.error, about, receipt, code)


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


def _rulings(book: Book, step: Step, own: Verdict, explained: Explanation) -> list[Ruling]:
    assert book.run
    rulings = [_ruling(book, step, book.run.profile, own, explained)]
    answer = book.answer(step)
    for name, profile in book.task.profiles.items():
        if name == book.run.profile or answer is None:
            continue
        try:
            verdict = profile.judge(step, answer.output or "", answer.receipt, answer.delivery)
        except OmnidataError as error:
            verdict = Verdict("unparsed", (None,) * len(profile.values), None, error.what)
        explained = book.explain(step, verdict, profile=name)
        rulings.append(_ruling(book, step, name, verdict, explained))
    return rulings


def _ruling(book: Book, step: Step, name: str, verdict: Verdict, explained: Explanation) -> Ruling:
    assert explained.mark  # an explanation of a verdict has one
    values = dict(zip(book.task.profiles[name].values, verdict.values, strict=True))
    answer, why = book.answer(step), explained.sentence
    if explained.mark == "none" and answer and answer.error:
        why = f"{verdict.outcome}: {answer.error}"
    return Ruling(name, verdict.outcome, explained.mark, values, why, explained.diagnosis)


def _format_json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=1, default=lambda other: str(type(other)))
    return text if len(text) <= _LONGEST_ROW else f"{text[:_LONGEST_ROW]}\n… (shortened)"
