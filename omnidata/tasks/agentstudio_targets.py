"""AgentStudio's right answers: a point, letters, or a truth value, as the prompts ask for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from omnidata.actions import Screen, Space
from omnidata.loaders.agentstudio_boxes import target_box
from omnidata.loaders.agentstudio_files import TaskName
from omnidata.loaders.agentstudio_window import shown
from omnidata.metrics.agentstudio_idm import letters_of
from omnidata.tasks.places import place
from omnidata.types import PLACE, Step, Target


def _point(step: Step, space: Space, size: Screen) -> Target | None:
    box = target_box(step.source)
    if box is None or min(step.screen) < 1:
        return None
    x, y = place(box, step.screen, space=space, size=size)
    return Target(f"({x!r}, {y!r})", PLACE, ((x, y),))


def _letter(step: Step, space: Space, size: Screen) -> Target | None:
    letters = letters_of([step.source["operation"]], step.source["action_space"])
    return _said(f"Answer: {letters[0]}") if letters else None


def _letters(step: Step, space: Space, size: Screen) -> Target | None:
    operations = [action["operation"] for action in shown("idm-multiple", step.source)]
    letters = letters_of(operations, step.source["action_space"])
    return _said("\n".join(("Answer:", *letters))) if letters else None


def _truth(step: Step, space: Space, size: Screen) -> Target | None:
    return _said(f"Answer: {step.source['is_success']}")


def _said(text: str) -> Target:
    return Target(text, text)


TARGETS: Mapping[TaskName, Callable[[Step, Space, Screen], Target | None]] = {
    "groundui": _point,
    "idm-single": _letter,
    "idm-multiple": _letters,
    "criticbench": _truth,
}
"""By benchmark: the answer to a step, with coordinates in a unit, on a screenshot of that size.

None where the row has no usable target."""
