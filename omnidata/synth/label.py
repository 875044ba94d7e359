"""Actions for recordings without any, by an inverse-dynamics model; and how often it is right.

loader -> step -> messages -> adapter -> text -> action -> verdict: the questions are a task like
any other (`omnigui-idm`), asked by `evaluate` into a run folder beside the tree. `docs/label.md`
has the rules.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from omnidata.actions import (
    POSITIONAL,
    SWIPES,
    Action,
    Point,
    Primitive,
    Region,
    Screen,
    centre,
    convert,
)
from omnidata.errors import DataError, Finding, MediaError
from omnidata.loaders.episode_tree import TreeEpisode
from omnidata.media import read_bytes, stored
from omnidata.metrics.intervals import share
from omnidata.predictions import Prediction
from omnidata.synth.asking import Answered, Asking, Done, ask, run_folder, write
from omnidata.synth.folder import TreeStaging
from omnidata.synth.rewrite import Change, Episode, read_episodes, retold
from omnidata.tasks.omnigui.idm import OmniGuiIdm, followed, unaskable
from omnidata.types import Delivery, Profile, Source, Step

__all__ = ["COLUMN", "REPORT", "Asking", "Done", "Questions", "label", "questions", "run_folder"]


# A model's answers as targets, where they can be; whatever else came back is none.

_ENDS = frozenset({Primitive.TASK_COMPLETE, Primitive.TASK_IMPOSSIBLE})


@dataclass(frozen=True, slots=True)
class Label:
    """What came of asking about a step.

    Attributes:
        outcome: "ok"; "unparsed", nothing could be read; "unusable", what was read is no action
            that can have been made there; or the way in which no full answer came.
        answer: the model's text, untouched.
        action: the target; None unless the outcome is "ok".
        why: the reason, where there is no target.
        type_match, exact_match: whether the target is the known action, by `omnigui-paper`; None
            where there is no target, or no known action.
        extension: whether a known point was judged by the rule that the paper does not have.
    """

    outcome: Delivery | str
    answer: str
    action: Action | None = None
    why: str = ""
    type_match: bool | None = None
    exact_match: bool | None = None
    extension: bool = False

    def column(self, model: str, *, used: bool) -> dict[str, Any]:
        """What the step's row says of it.

        Args:
            model: the SPEC.
            used: whether the target of the row is this answer.
        """
        said = {"model": model, "answer": self.answer, "outcome": self.outcome, "used": used}
        return said | ({"why": self.why} if self.why else {})


def read_label(task: OmniGuiIdm, profile: Profile, step: Step, answer: Prediction) -> Label:
    """Read one answer.

    Args:
        task: reads texts.
        profile: `omnigui-paper`, which holds answers against known actions.
        step: as it was asked about.
        answer: what came back.
    """
    text = answer.output or ""
    if answer.delivery != "ok":
        return Label(answer.delivery, text, why=answer.error)
    verdict = profile.judge(step, text, answer.receipt)
    action = task.read(text, answer.receipt)
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
        extension=bool(said["extension"]),
    )


def lacks(action: Action, screen: Screen) -> str:
    """Why an action cannot have been made between two screenshots; empty if it can.

    Args:
        action: as a model answered it.
        screen: width and height of the screenshot in pixels.

    Examples:
        >>> lacks(Action(Primitive.TAP, (Point(500, 1001, "norm1000"),)), (720, 1600))
        'its place lies off the screen'
        >>> lacks(Action(Primitive.TAP), (720, 1600)), lacks(Action(Primitive.BACK), (720, 1600))
        ('it has no place', '')
    """
    if action.kind in _ENDS:
        return "it ends the episode, which goes on"
    if action.kind is Primitive.INPUT and not action.text:
        return "it types nothing"
    if (action.kind in POSITIONAL or action.kind in SWIPES) and not action.start:
        return "it has no place"
    if not all(_on_screen(region, screen) for region in (*action.start, *action.end)):
        return "its place lies off the screen"
    return ""


def _on_screen(region: Region, screen: Screen) -> bool:
    pixel: Point = convert(centre(region), "px", screen)
    return 0 <= pixel.x <= screen[0] and 0 <= pixel.y <= screen[1]


# How often labels are right, measured where the action is known.


def precision(asked: Iterable[tuple[Step, Label]]) -> dict[str, Any] | None:
    """The table of the steps whose action is known.

    Precision is over the labels that were made; a step that the model left unlabelled lowers
    `coverage` instead.

    Args:
        asked: steps as they were asked about, and what came of it.

    Returns:
        `known` (steps), `labelled`, `coverage` (its share), `type` and `exact` (of the labels, the
        right ones: see `metrics.proportion.share`), `by_extension`
        (labels that a rule of ours judged, since the known action is a point), and
        `most_frequent` (`primitive`, `share`: what answering nothing else would get for the type).
        None if no action is known.
    """
    known = [(step.action, label) for step, label in asked if step.action]
    if not known:
        return None
    made = [label for _, label in known if label.action]
    often = Counter(action.kind.name for action, _ in known).most_common(1)[0]
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

_PREFIX = "known:"
_EXPECTED = "an episode of two steps or more, each with a screenshot"


@dataclass(frozen=True, slots=True)
class Questions:
    """Steps to ask about.

    Attributes:
        source: the steps, as `OmniGuiIdm` has them. The `action` is the known one; None = unknown.
        episodes: of the data, those that can be written.
        own: ids of steps of the data that have a target which no model made.
        unasked: ids of steps of the data that nobody is asked about, and why.
        known: where the known actions are from: "data"; "same", steps of the data that the other
            dataset knows; "others", steps that only that one has; "unusable", known actions that
            nobody can be asked about.
        findings: episodes that are left out, and doubts.
    """

    source: Source
    episodes: Sequence[Episode]
    own: frozenset[str]
    unasked: Mapping[str, str]
    known: Mapping[str, int]
    findings: Sequence[Finding]


def questions(task: OmniGuiIdm, source: Source, known: Source | None = None) -> Questions:
    """Choose what to ask about.

    A step that has a target keeps it, and is asked about to measure the model; one whose target a
    model made, as an earlier call left it, has none.

    Args:
        task: makes steps of inverse dynamics.
        source: of OmniGUI; steps may have targets or not.
        known: of OmniGUI, with targets: of the same steps, told by their ids and screenshots, or of
            others, which are asked about to measure the model and not written.

    Raises:
        DataError: nothing can be asked about, the data use our column for something else, or the
            known data have no target.
    """
    _check_column(source)
    episodes, findings = read_episodes(source)
    steps = [_blank(step) for episode in episodes for step in episode.steps]
    unasked = {
        step.sample_id: reason
        for step, following in followed(steps)
        if (reason := unaskable(step, following))
    }
    own = frozenset(step.sample_id for step in steps if step.action)
    asked = task.ask_about(replace(source, steps=steps))
    if not asked.steps:
        raise DataError(
            "no step has a screenshot before and after its action"
            + (f": {findings[0]}" if findings else ""),
            where=str(source.root),
            expected=_EXPECTED,
            remedy="mend the data; a last step cannot be labelled, since nothing shows what came "
            "of it",
        )
    counts = Counter(data=sum(step.action is not None for step in asked.steps))
    counts["unusable"] = len(own) - counts["data"]
    if known is not None:
        asked, found = _with_known(task, asked, known)
        counts.update(found)
    return Questions(asked, episodes, own, unasked, counts, findings)


def _blank(step: Step) -> Step:
    """The step without a target that a model made."""
    return replace(step, action=None) if by_model(step) else step


def by_model(step: Step) -> bool:
    """Whether a model made the step's target."""
    answered = step.source.get(COLUMN)
    return bool(answered and answered["used"])


def _check_column(source: Source) -> None:
    for step in source.steps:
        value = step.source.get(COLUMN)
        if value is not None and not (isinstance(value, dict) and "used" in value):
            raise DataError(
                f'the rows have a column "{COLUMN}" that is not ours',
                where=step.sample_id,
                expected="no such column, or what `omnidata synth label` writes",
                remedy="rename the column",
            )


def _with_known(task: OmniGuiIdm, asked: Source, known: Source) -> tuple[Source, Counter[str]]:
    """The questions with the actions that another dataset knows, and its own further steps."""
    _check_column(known)
    there = {step.sample_id: step for step in known.steps if _blank(step).action}
    if not there:
        raise DataError(
            "no step there has a target that no model made",
            where=str(known.root),
            expected="OmniGUI data with targets",
            remedy="name other data, or leave out --known",
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
        replace(step, sample_id=_PREFIX + step.sample_id)
        for step in task.ask_about(known).steps
        if step.sample_id in there and _has_screenshots(step)
    ]
    counts["others"] = len(others)
    counts["unusable"] = len(there) - len(others)
    both = f"{asked.fingerprint} {known.fingerprint}"
    return (
        replace(
            asked,
            steps=[*steps, *others],
            fingerprint=hashlib.sha256(both.encode()).hexdigest(),
        ),
        counts,
    )


def _same(step: Step, other: Step) -> bool:
    """Whether two steps of one name show the same; annotations alone are taken at their word."""
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


def _has_screenshots(step: Step) -> bool:
    """Whether a step can be shown; annotations alone cannot."""
    try:
        for role in ("screenshot", "after"):
            if ref := step.media[role]:
                stored(ref)
    except MediaError:
        return False
    return True


def is_others(sample_id: str) -> bool:
    """Whether the step is asked about only to measure the model."""
    return sample_id.startswith(_PREFIX)


REPORT = "label.json"
_NOT_MEASURED = (
    "precision not measured: no step that the model was asked about has a known action; label some "
    "by hand, or name data with targets with --known"
)


def label(task: OmniGuiIdm, asked: Questions, out: Path, asking: Asking) -> Done:
    """Ask a model for the action of every step, and write the tree with its answers as targets.

    The same call goes on after an interruption, and asks again about steps that got no answer.

    Args:
        task: that made the questions.
        asked: the questions.
        out: a new or empty folder, or what the same call has written; until all is whole the tree
            lies beside it. The answers lie in `run_folder(out)`.
        asking: the model, and what it may use.

    Raises:
        UsageError: `out` holds something else, or the model cannot be asked.
        DataError: another process is writing to the same place, or it cannot be written.
        RunError, PredictionError: the run folder cannot be used (see `evaluate`).
    """
    run = run_folder(out)
    inputs = {
        asked.source.root,
        *(r.root for s in asked.source.steps for r in s.media.values() if r),
    }
    with TreeStaging(out, inputs=inputs, report=REPORT, made_by=run) as staging:
        answered = ask(task, asked.source, run, asking)
        profile = task.profiles[task.default_profile]
        labels = {
            step.sample_id: read_label(task, profile, step, answered.lines[step.sample_id])
            for step in asked.source.steps
            if step.sample_id in answered.lines
        }
        report: Mapping[str, Any] = _report(task, asked, labels, answered)
        whole = "stopped" not in answered.results
        if whole:
            model = answered.model
            report = write(staging, report, lambda note: _retold(asked, labels, model, note))
    return Done(report, answered.results, written=whole)


def _retold(
    asked: Questions, labels: Mapping[str, Label], model: str, note: Callable[[Finding], None]
) -> Iterator[TreeEpisode]:
    def change(step: Step) -> Change:
        found = labels.get(step.sample_id)
        if found is None:
            columns = {COLUMN: None} if COLUMN in step.source else {}
            return Change(keep=not by_model(step), columns=columns)
        used = found.action is not None and step.sample_id not in asked.own
        return Change(
            found.action if used else None,
            keep=not used and not by_model(step),
            columns={COLUMN: found.column(model, used=used)},
        )

    return (retold(episode, change, note) for episode in asked.episodes)


def _report(
    task: OmniGuiIdm, asked: Questions, labels: Mapping[str, Label], answered: Answered
) -> dict[str, Any]:
    """What was done, as JSON values."""
    steps = [step for episode in asked.episodes for step in episode.steps]
    wanted = [step.sample_id for step in steps if step.sample_id not in asked.own]
    found = {name: labels[name] for name in wanted if name in labels}
    made = [label.action for label in found.values() if label.action]
    unlabelled = Counter(label.outcome for label in found.values() if not label.action)
    unlabelled.update(asked.unasked[name] for name in wanted if name in asked.unasked)
    measured = precision(
        (step, labels[step.sample_id]) for step in asked.source.steps if step.sample_id in labels
    )
    return {
        "data": str(asked.source.root),
        "fingerprint": asked.source.fingerprint,
        "model": answered.model,
        "task": task.name,
        "task_options": dict(task.options),
        "prompt_hash": task.prompt_hash,
        "episodes": len(asked.episodes),
        "steps": {
            "all": len(steps),
            "with_target": len(asked.own),
            "asked": sum(not is_others(name) for name in labels),
            "labelled": len(made),
            "unlabelled": dict(sorted(unlabelled.items())),
        },
        "primitives": dict(Counter(action.kind.name for action in made).most_common()),
        "known": dict(asked.known),
        "precision": measured,
        "answers": answered.digest,
        "warnings": [] if measured else [_NOT_MEASURED],
        "findings": [dict(finding.as_dict()) for finding in asked.findings],
    }
