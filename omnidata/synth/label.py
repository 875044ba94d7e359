"""Label recordings with actions by an inverse-dynamics model, and measure its precision.

The questions are those of a task whose answers are actions (`Annotation.of`); see `docs/label.md`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from omnidata.actions import Action, Point, Region, Screen, centre, convert
from omnidata.errors import DataError, MediaError
from omnidata.loaders.episode_tree import TreeEpisode
from omnidata.media import file_or_bytes, read_bytes
from omnidata.metrics.intervals import share
from omnidata.predictions import Prediction
from omnidata.synth.annotate import (
    Answered,
    Asked,
    Change,
    Done,
    ModelSettings,
    Note,
    Result,
    about,
    annotate,
    check_column,
    is_others,
    read_episodes,
    retold,
    run_folder,
    with_others,
)
from omnidata.tasks.asking import Asking
from omnidata.tasks.benchmark import About
from omnidata.tasks.profile import Profile
from omnidata.types import Delivery, LoadedDataset, Step

__all__ = ["COLUMN", "REPORT", "Asked", "Done", "ModelSettings", "label", "questions", "run_folder"]


# A model's answers as targets, where they can be; whatever else came back is none.


@dataclass(frozen=True, slots=True)
class Label:
    """The answer about a step.

    Attributes:
        outcome: "ok"; "unparsed"; "unusable" for an action that is impossible at this step; or the
            outcome of the request if no full answer came.
        answer: the model's text, unchanged.
        action: the target; None unless the outcome is "ok".
        why: the reason if there is no target.
        type_match, exact_match: whether the target is the known action, by the task's default
            profile; None where there is no target, or no known action.
        extension: whether a known point was judged by a rule that is not in the paper.
    """

    outcome: Delivery | str
    answer: str
    action: Action | None = None
    why: str = ""
    type_match: bool | None = None
    exact_match: bool | None = None
    extension: bool = False

    def column(self, model: str, *, used: bool) -> dict[str, Any]:
        """Return the column of the step's row about its label.

        Args:
            model: the SPEC.
            used: whether the target of the row is this answer.
        """
        said = {"model": model, "answer": self.answer, "outcome": self.outcome, "used": used}
        return said | ({"why": self.why} if self.why else {})


def _read_label(task: Asking, profile: Profile, step: Step, answer: Prediction) -> Label:
    text = answer.output or ""
    if answer.delivery != "ok":
        return Label(answer.delivery, text, why=answer.error)
    verdict = profile.judge(step, text, answer.receipt)
    action = task.history_action(step, text, answer.receipt)
    if action is None:
        return Label("unparsed", text, why=verdict.reason)
    if why := lacks(action, step.screen):
        return Label("unusable", text, why=why)
    if step.action is None:
        return Label("ok", text, action)
    said = dict(zip(profile.values, verdict.values, strict=True))
    return Label(
        "ok",
        text,
        action,
        type_match=bool(said["type_match"]),
        exact_match=bool(said["exact_match"]),
        extension=bool(said.get("extension")),
    )


def lacks(action: Action, screen: Screen) -> str:
    """Return why an action is impossible between two screenshots; empty if it is possible.

    Args:
        action: as a model answered it.
        screen: width and height of the screenshot in pixels.

    Examples:
        >>> lacks(Action("tap", (Point(500, 1001, "norm1000"),)), (720, 1600))
        'its place lies off the screen'
        >>> lacks(Action("tap"), (720, 1600)), lacks(Action("back"), (720, 1600))
        ('it has no place', '')
    """
    if action.kind == "done":
        return "it ends the episode, which goes on"
    if action.kind == "type" and not action.text:
        return "it types nothing"
    if action.kind in ("tap", "long_press", "swipe") and not action.start:
        return "it has no place"
    if not all(_on_screen(region, screen) for region in (*action.start, *action.end)):
        return "its place lies off the screen"
    return ""


def _on_screen(region: Region, screen: Screen) -> bool:
    pixel: Point = convert(centre(region), "px", screen)
    return 0 <= pixel.x <= screen[0] and 0 <= pixel.y <= screen[1]


# How often labels are right, measured where the action is known.


def precision(asked: Iterable[tuple[Step, Label]]) -> dict[str, Any] | None:
    """Return the table of the steps with a known action.

    Precision is over the labels made; an unlabelled step lowers `coverage` instead.

    Args:
        asked: the steps in the questions, with their labels.

    Returns:
        `known` (steps), `labelled`, `coverage` (its share), `type` and `exact` (of the labels, the
        right ones: see `metrics.intervals.share`), `by_extension`
        (labels that a rule of ours judged, since the known action is a point), and
        `most_frequent` (`primitive`, `share`: what answering nothing else would get for the type).
        None if no action is known.
    """
    known = [(step.action, label) for step, label in asked if step.action]
    if not known:
        return None
    made = [label for _, label in known if label.action]
    often = Counter(action.label for action, _ in known).most_common(1)[0]
    return {
        "known": len(known),
        "labelled": len(made),
        "coverage": len(made) / len(known),
        "type": share(sum(bool(label.type_match) for label in made), len(made)),
        "exact": share(sum(bool(label.exact_match) for label in made), len(made)),
        "by_extension": sum(label.extension for label in made),
        "most_frequent": {"primitive": often[0], "share": often[1] / len(known)},
    }


# What the model is asked: the steps to be labelled, and those whose action is known.

COLUMN = "idm"
"""The column of a step that says what a model answered, and whether that is the target."""


def questions(task: Asking, source: LoadedDataset, known: LoadedDataset | None = None) -> Asked:
    """Select the steps to ask about.

    A step with a target keeps it, and is asked to measure the model. A target that a model made in
    an earlier call counts as none.

    Args:
        task: asks what was done at a step.
        source: the data; steps may have targets or not.
        known: data of the same task with targets. Steps with equal ids and screenshots are the
            same; others are asked only to measure the model.

    Returns:
        The questions; the `action` of each is the known one, None = unknown. `known` counts those
        that are from the "data"; "same", steps of the data that the other dataset knows; "others",
        steps that only that one has; "unusable", known actions that no question fits.

    Raises:
        DataError: nothing can be asked about, the data use our column for something else, or the
            known data have no target.
    """
    asks = about(task)
    wanted = asks.annotation
    _check_column(source)
    episodes, findings = read_episodes(source)
    steps = [_blank(step) for episode in episodes for step in episode.steps]
    own = frozenset(step.sample_id for step in steps if step.action)
    found = asks.questions(replace(source, steps=steps))
    asked = found.source
    if not asked.steps:
        raise DataError(
            "no step has a screenshot before and after its action"
            + (f": {findings[0]}" if findings else ""),
            where=str(source.root),
            expected=wanted.expected,
            remedy=wanted.remedy,
        )
    counts = Counter(data=sum(step.action is not None for step in asked.steps))
    counts["unusable"] = len(own) - counts["data"]
    if known is not None:
        asked, more = _with_known(asks, asked, known)
        counts.update(more)
    caveat = wanted.caveat if known is not None else ""
    return Asked(asked, episodes, found.unasked, counts, findings, caveat=caveat, own=own)


def _blank(step: Step) -> Step:
    return replace(step, action=None) if _is_by_model(step) else step


def _is_by_model(step: Step) -> bool:
    answered = step.source.get(COLUMN)
    return bool(answered and answered["used"])


def _check_column(source: LoadedDataset) -> None:
    check_column(source, COLUMN, lambda value: isinstance(value, dict) and "used" in value, "label")


def _with_known(
    asks: About, asked: LoadedDataset, known: LoadedDataset
) -> tuple[LoadedDataset, Counter[str]]:
    _check_column(known)
    there = {step.sample_id: step for step in known.steps if _blank(step).action}
    if not there:
        raise DataError(
            "no step there has a target from a person",
            where=str(known.root),
            expected=f"data of {known.task} with targets",
            remedy="name other data, or drop --known",
        )
    counts = Counter(same=0, others=0, unusable=0)
    steps = []
    for step in asked.steps:
        other = there.get(step.sample_id)
        if other is not None and step.screen == other.screen and _same(step, other):
            del there[step.sample_id]
            counts["same"] += step.action is None
            step = replace(step, action=step.action or other.action)
        steps.append(step)
    others = [
        step
        for step in asks.questions(known).source.steps
        if step.sample_id in there and _has_pictures(step)
    ]
    counts["others"] = len(others)
    counts["unusable"] = len(there) - len(others)
    return with_others(replace(asked, steps=steps), others, known.fingerprint), counts


def _same(step: Step, other: Step) -> bool:
    """Return whether two steps have the same screenshot; True if the other's cannot be read."""
    first, second = step.media.get("screenshot"), other.media.get("screenshot")
    if first is None or second is None:
        return first is second
    try:
        content = read_bytes(second)
    except MediaError:
        return True
    try:
        return content == read_bytes(first)
    except MediaError:
        return False


def _has_pictures(step: Step) -> bool:
    try:
        for ref in step.media.values():
            if ref and ref.kind == "image":
                file_or_bytes(ref)
    except MediaError:
        return False
    return True


REPORT = "label.json"
_UNMEASURED = "no step that the model was asked about has a known action"


def label(task: Asking, asked: Asked, out: Path, asking: ModelSettings) -> Done:
    """Ask a model for the action of every step, and write the tree with its answers as targets.

    Arguments and errors are those of `omnidata.synth.annotate.annotate`.
    """

    def read(answered: Answered) -> Result:
        profile = task.profiles[task.default_profile]
        labels = {
            step.sample_id: _read_label(task, profile, step, answered.lines[step.sample_id])
            for step in asked.source.steps
            if step.sample_id in answered.lines
        }
        measured = precision(
            (step, labels[step.sample_id])
            for step in asked.source.steps
            if step.sample_id in labels
        )
        steps = [step for episode in asked.episodes for step in episode.steps]
        wanted = [step.sample_id for step in steps if step.sample_id not in asked.own]
        found = {name: labels[name] for name in wanted if name in labels}
        made = [label.action for label in found.values() if label.action]
        unlabelled = Counter(label.outcome for label in found.values() if not label.action)
        unlabelled.update(asked.unasked[name] for name in wanted if name in asked.unasked)
        return Result(
            {
                "episodes": len(asked.episodes),
                "steps": {
                    "all": len(steps),
                    "with_target": len(asked.own),
                    "asked": sum(not is_others(name) for name in labels),
                    "labelled": len(made),
                    "unlabelled": dict(sorted(unlabelled.items())),
                },
                "primitives": dict(Counter(action.label for action in made).most_common()),
            },
            measured,
            _UNMEASURED,
            lambda note: _retold(asked, labels, answered.model, note),
        )

    return annotate(task, asked, out, asking, report=REPORT, read=read)


def _retold(
    asked: Asked, labels: Mapping[str, Label], model: str, note: Note
) -> Iterator[TreeEpisode]:
    def change(step: Step) -> Change:
        found = labels.get(step.sample_id)
        if found is None:
            columns = {COLUMN: None} if COLUMN in step.source else {}
            return Change(keep=not _is_by_model(step), columns=columns)
        used = found.action is not None and step.sample_id not in asked.own
        return Change(
            found.action if used else None,
            keep=not used and not _is_by_model(step),
            columns={COLUMN: found.column(model, used=used)},
        )

    return (retold(episode, change, note) for episode in asked.episodes)
