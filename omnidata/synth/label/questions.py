"""What the model is asked: the steps to be labelled, and those whose action is known."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from omnidata.errors import DataError, Finding, MediaError
from omnidata.media import read_bytes, stored
from omnidata.synth.retelling import Episode, read_episodes
from omnidata.tasks.omnigui_idm import OmniGuiIdm, followed, unaskable
from omnidata.types import Source, Step

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
