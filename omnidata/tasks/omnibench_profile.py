"""`omnibench-step`: is an answer the expert's next action? Ours; the paper has no such metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from omnidata.actions import Box, Point, Space, convert
from omnidata.loaders.omnibench_apps import table10
from omnidata.loaders.omnibench_rows import call_of, rect_of
from omnidata.metrics.omnibench_answer import Answer, parse
from omnidata.metrics.omnibench_step import judge
from omnidata.metrics.omnigui_answer import Pair, Unread
from omnidata.tasks.episode_profiles import EpisodeProfile
from omnidata.tasks.resizing import resizing
from omnidata.types import Outcome, Step, Verdict


class StepProfile(EpisodeProfile):
    """The rules of `omnidata.metrics.omnibench_step`.

    Args:
        space: the unit of coordinates in answers.
    """

    name = "omnibench-step"
    by: Mapping[str, Sequence[str]] = {
        "kind": ("subtask", "task"),
        "app": (),
        "category": tuple(dict.fromkeys(table10().values())),
        "platform": (),
        "intent": (),
    }

    def __init__(self, space: Space = "px") -> None:
        """Take the unit; it is never guessed from a model's name."""
        self.space = space

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        """Read one answer and hold it against the step's action.

        Pixels are those of the screenshot as the model was shown it, which the receipt tells.
        """
        answer = parse(text)
        if isinstance(answer, Unread):
            return Verdict("unparsed", self._values(step, None, None), None, answer.reason)
        point = self._on_screen(answer.point, step, receipt)
        return Verdict("ok", self._values(step, answer, point), answer.as_dict(), answer.fault)

    def failed(self, step: Step, outcome: Outcome) -> Verdict:
        """The verdict on a step without an answer: wrong, with the reason as its outcome."""
        return Verdict(outcome, self._values(step, None, None))

    def _values(
        self, step: Step, answer: Answer | None, point: Pair | None
    ) -> tuple[bool | None, bool | None, bool]:
        match = judge(call_of(step.source), self._box(step), answer, point)
        return *match, answer is not None and answer.as_prompted

    def _box(self, step: Step) -> Box | None:
        """The control's place; None where no answer in this unit can be held against it."""
        known = self.space == "px" or min(step.screen) > 0
        return rect_of(step.source) if known else None

    def _on_screen(
        self, point: Pair | None, step: Step, receipt: Mapping[str, Any] | None
    ) -> Pair | None:
        """A point of the answer in pixels of the screenshot."""
        if point is None:
            return None
        if self.space == "px":
            resized = resizing(receipt, where=step.sample_id)
            return resized.to_screen(point) if resized else point
        found = convert(Point(point[0], point[1], self.space), "px", step.screen)
        return found.x, found.y
