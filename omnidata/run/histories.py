"""Histories of predictions: what a model did before, as a later step's prompt tells it."""

from __future__ import annotations

from omnidata.actions import Action
from omnidata.tasks.coordinates import of_screen
from omnidata.types import Completion, Step, Task


def told(task: Task, step: Step, answer: Completion | None) -> Action | None:
    """What a history tells of an answer; None where none came, or none that can be read."""
    if answer is None or answer.delivery != "ok":
        return None
    return task.read(answer.text, of_screen(answer.receipt, step.screen))
