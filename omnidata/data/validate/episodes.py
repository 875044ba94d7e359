"""What the annotations say about each other; the columns of a format are its loader's business."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omnidata.data.validate.codes import finding
from omnidata.data.validate.steps import Remark
from omnidata.loaders.scripts import foreign
from omnidata.types import Step


def check_annotations(steps: Sequence[Step], *, language: bool) -> Iterator[Remark]:
    """Histories and instructions of one episode.

    Args:
        steps: of the episode, by index.
        language: whether to look at the language; a loader may have done so already.
    """
    if language and (reason := foreign(steps[0].instruction, steps[0].tags.get("language", ""))):
        stated = steps[0].tags["language"]
        said = finding(
            "language-differs",
            steps[0].sample_id,
            f"the instruction, {reason}: {steps[0].instruction[:60]!r}",
            f'the language of the episode, "{stated}"',
        )
        yield Remark(said, tuple(step.sample_id for step in steps))
    targets = {step.step_index: step for step in steps}
    for step in steps:
        if reason := _contradiction(step, targets):
            said = finding(
                "history-differs", step.sample_id, f"the history {reason}", "the earlier targets"
            )
            yield Remark(said, (step.sample_id,))


def _contradiction(step: Step, targets: dict[int, Step]) -> str:
    """Where a step's history and the targets of the steps before part; empty if nowhere."""
    if len(step.history) != step.step_index:
        return f"has {len(step.history)} actions, and {step.step_index} steps came before"
    for index, past in enumerate(step.history):
        target = targets[index].action if index in targets else None
        if past is target or past is None or target is None:
            continue
        if past != target:
            return f"has another {past.kind.name} for step {index} than its target"
    return ""
