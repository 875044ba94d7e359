"""Label recordings with actions by an inverse-dynamics model, and measure its precision.

The questions are those of a task whose answers are actions (`Annotation.of`); see `docs/label.md`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from omnidata.actions import Action, Screen, centre, is_on_screen
from omnidata.errors import DataError, MediaError
from omnidata.loaders.tree_writer import TreeEpisode
from omnidata.media import file_or_bytes, read_bytes
from omnidata.metrics.intervals import share
from omnidata.predictions import Prediction
from omnidata.synth.annotate import (
    Annotator,
    Change,
    Episode,
    Note,
    is_others,
    tree_episode,
    with_others,
)
from omnidata.types import Delivery, LoadedDataset, Step


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


def lacks(action: Action, screen: Screen) -> str:
    """Return why an action is impossible between two screenshots; empty if it is possible.

    Args:
        action: as a model answered it.
        screen: width and height of the screenshot in pixels.

    Examples:
        >>> from omnidata.actions import Point
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
    if not all(is_on_screen(centre(region), screen) for region in (*action.start, *action.end)):
        return "its place lies off the screen"
    return ""


class Labelling(Annotator[Label]):
    """Answers become targets of steps.

    A step with a target keeps it, and is asked about to measure the model; a target that a model
    made in an earlier call counts as none. Steps of the known data with equal ids and screenshots
    are the same; others are only asked about. `counts` has the known actions of the "data"; "same",
    steps of the data that the known data label; "others", steps of the known data alone;
    "unusable", known actions that fit no question.
    """

    verb = "label"
    column = "idm"
    unmeasured = "no step that the model was asked about has a known action"

    def prepare(self, step: Step) -> Step:
        """Return the step without a target that a model made."""
        return replace(step, action=None) if self._is_by_model(step) else step

    def _is_by_model(self, step: Step) -> bool:
        answered = step.source.get(self.column)
        return bool(answered and answered["used"])

    def is_ours(self, value: Any) -> bool:
        """Return whether the value says how an answer was used."""
        return isinstance(value, dict) and "used" in value

    def describe_nothing(self) -> str:
        """Return the first reason."""
        reason = f": {self.findings[0]}" if self.findings else ""
        return f"no step has a screenshot before and after its action{reason}"

    def add_known(
        self, asked: LoadedDataset, known: LoadedDataset | None
    ) -> tuple[LoadedDataset, Mapping[str, int]]:
        """Take known actions from the data and from other data.

        Raises:
            DataError: the other data have no target.
        """
        own = [step for each in self.episodes for step in each.steps if self.prepare(step).action]
        self._own = frozenset(step.sample_id for step in own)
        counts = Counter(data=sum(step.action is not None for step in asked.steps))
        counts["unusable"] = len(self._own) - counts["data"]
        if known is None:
            return asked, counts
        self.check_column(known)
        there = {step.sample_id: step for step in known.steps if self.prepare(step).action}
        if not there:
            raise DataError(
                "no step there has a target from a person",
                where=str(known.root),
                expected=f"data of {known.task} with targets",
                remedy="name other data, or drop --known",
            )
        counts["same"] = 0
        steps = []
        for step in asked.steps:
            other = there.get(step.sample_id)
            if other is not None and step.screen == other.screen and _has_same_shot(step, other):
                del there[step.sample_id]
                counts["same"] += step.action is None
                step = replace(step, action=step.action or other.action)
            steps.append(step)
        others = [
            step
            for step in self.about.questions(known).source.steps
            if step.sample_id in there and _has_pictures(step)
        ]
        counts["others"] = len(others)
        counts["unusable"] += len(there) - len(others)
        return with_others(replace(asked, steps=steps), others, known.fingerprint), counts

    def read(self, step: Step, line: Prediction) -> Label:
        """Return the answer as a target if it can be one."""
        text = line.output or ""
        if line.delivery != "ok":
            return Label(line.delivery, text, why=line.error)
        verdict = self.profile.judge(step, text, line.receipt)
        action = self.task.history_action(step, text, line.receipt)
        if action is None:
            return Label("unparsed", text, why=verdict.reason)
        if why := lacks(action, step.screen):
            return Label("unusable", text, why=why)
        if step.action is None:
            return Label("ok", text, action)
        values = dict(zip(self.profile.values, verdict.values, strict=True))
        return Label(
            "ok",
            text,
            action,
            type_match=bool(values["type_match"]),
            exact_match=bool(values["exact_match"]),
            extension=bool(values.get("extension")),
        )

    def summary(self, answers: Mapping[str, Label]) -> Mapping[str, Any]:
        """Return the counts of steps, and of the labels' primitives."""
        names = [step.sample_id for each in self.episodes for step in each.steps]
        wanted = [name for name in names if name not in self._own]
        found = [answers[name] for name in wanted if name in answers]
        made = [label.action for label in found if label.action]
        unlabelled = Counter(label.outcome for label in found if not label.action)
        unlabelled.update(self.unasked[name] for name in wanted if name in self.unasked)
        return {
            "episodes": len(self.episodes),
            "steps": {
                "all": len(names),
                "with_target": len(self._own),
                "asked": sum(not is_others(name) for name in answers),
                "labelled": len(made),
                "unlabelled": dict(sorted(unlabelled.items())),
            },
            "primitives": dict(Counter(action.label for action in made).most_common()),
        }

    def precision(self, answers: Mapping[str, Label]) -> Mapping[str, Any] | None:
        """Return the table of the steps with a known action.

        Precision is over the labels made; an unlabelled step lowers `coverage` instead.

        Returns:
            `known` (steps), `labelled`, `coverage` (its share), `type` and `exact` (the right ones
            of the labels: see `metrics.intervals.share`), `by_extension` (labels that a rule of
            ours judged, since the known action is a point), and `most_frequent` (`primitive`,
            `share`: the share of right types if every answer were this primitive). None if no
            action is known.
        """
        known = [
            (step.action, answers[step.sample_id])
            for step in self.asked.steps
            if step.action and step.sample_id in answers
        ]
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

    def rewrite(
        self, episode: Episode, answers: Mapping[str, Label], model: str, note: Note
    ) -> TreeEpisode:
        """Return the episode with answers as targets where it has none of its own."""

        def change(step: Step) -> Change:
            found, by_model = answers.get(step.sample_id), self._is_by_model(step)
            if found is None:
                gone = {self.column: None} if self.column in step.source else {}
                return Change(keep=not by_model, columns=gone)
            used = found.action is not None and step.sample_id not in self._own
            said = {"model": model, "answer": found.answer, "outcome": found.outcome, "used": used}
            columns = {self.column: {**said, **({"why": found.why} if found.why else {})}}
            return Change(found.action if used else None, not used and not by_model, columns)

        return tree_episode(episode, change, note)


def _has_same_shot(step: Step, other: Step) -> bool:
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
