"""What a model is trained on: a prompt and the answer behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from omnidata import media
from omnidata.actions import Screen
from omnidata.errors import DataError, UsageError
from omnidata.tasks.resizing import shown
from omnidata.types import Conversation, Step, Task


@dataclass(frozen=True, slots=True)
class Example:
    """One of them.

    Attributes:
        sample_id: of the step.
        prompt: as the evaluation has it.
        answer: the right one.
        size: width and height in pixels of the current screenshot as the answer takes it to be
            shown; "own": those that it has; None where the answer holds no pixels.
        labelled: whether a text that belongs to a medium has its role, so that one goes with the
            other.
    """

    sample_id: str
    prompt: Conversation
    answer: str
    size: Screen | Literal["own"] | None = None
    labelled: bool = True

    def check(self, receipt: Mapping[str, Any]) -> None:
        """Refuse a prompt that is not shown as the answer and the texts take it to be.

        Args:
            receipt: of the prompt.

        Raises:
            DataError: the screenshot is shown in another size.
            UsageError: a medium is left out, and the texts that belong to it are not known.
        """
        dropped = [line["dropped"] for line in receipt["parts"] if "dropped" in line]
        if dropped and not self.labelled:
            raise UsageError(
                dropped[0],
                where=self.sample_id,
                expected="a row that the model can take whole",
                remedy="export again without what it cannot take, e.g. with -T modalities",
            )
        seen = shown(receipt, where=self.sample_id)
        if self.size is None or seen is None:
            return
        size = seen.original if self.size == "own" else self.size
        if seen.size != size:
            raise DataError(
                f"the screenshot is shown with {seen.size[0]} x {seen.size[1]} pixels, the answer "
                f"is for {size[0]} x {size[1]}",
                where=self.sample_id,
                expected="an answer in pixels of the screenshot as it is shown",
                remedy="leave the step out, or take answers in another unit: -T coordinates",
            )


def as_example(task: Task, step: Step, *, longest: int | None = None) -> Example:
    """A step as an example.

    Args:
        task: writes the prompt and the answer.
        step: one of its steps.
        longest: pixels of the longer side above which the screenshot is made smaller; None = never.

    Raises:
        DataError: the step has no target.
    """
    size = media.within(step.screen, longest)
    target = task.target(step, size=size)
    if target is None:
        raise DataError(
            "the step has no target",
            where=step.sample_id,
            expected="a step that says what is right",
            remedy="leave the step out",
        )
    pixels = bool(target.places) and task.options.get("coordinates") == "px"
    return Example(step.sample_id, task.prompt(step), target.text, size if pixels else None)
