"""AgentStudio's baselines: what a score means without a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from omnidata.actions import Point, Space, convert
from omnidata.errors import UsageError
from omnidata.loaders.agentstudio_boxes import target_box
from omnidata.loaders.agentstudio_files import TaskName
from omnidata.loaders.agentstudio_window import shown
from omnidata.metrics.agentstudio_idm import letters_of
from omnidata.types import Step

NAMES: Mapping[TaskName, Sequence[str]] = {
    "groundui": ("oracle", "center"),
    "idm-single": ("oracle", "majority"),
    "idm-multiple": ("oracle", "majority"),
    "criticbench": ("oracle", "always-true", "always-false", "majority"),
}
"""`oracle` answers with the target; `center` points at the middle of the screen; `majority` always
gives the most frequent target of the row's action space (CriticBench: of the data)."""

_CONSTANT = {"always-true": "Answer: True", "always-false": "Answer: False"}


def policy(
    task: TaskName, name: str, steps: Sequence[Step], *, space: Space, options: Mapping[str, str]
) -> Callable[[Step], str]:
    """The rule of that name: a step's answer, in the form that the prompt asks for.

    Raises:
        UsageError: the task has no such rule, or an option is given.
    """
    if name not in NAMES[task]:
        raise UsageError(
            f'{task} has no baseline "{name}"',
            where=f"--model baseline:{name}",
            expected=f"one of {', '.join(NAMES[task])}",
        )
    for option in options:
        raise UsageError(f"baseline:{name} has no options", where=f"-M {option}={options[option]}")
    if name in _CONSTANT:
        return lambda step: _CONSTANT[name]
    if name == "center":
        return lambda step: _point(Point(0.5, 0.5, "rel"), step, space)
    if name == "oracle":
        return lambda step: _target(task, step, space)
    counts: dict[str, Counter[str]] = {}
    for step in steps:
        counts.setdefault(_kind(task, step), Counter())[_target(task, step, space)] += 1
    usual = {kind: answers.most_common(1)[0][0] for kind, answers in counts.items()}
    return lambda step: usual[_kind(task, step)]


def _kind(task: TaskName, step: Step) -> str:
    """Rows among which answers can be compared: letters mean different actions elsewhere."""
    return "" if task == "criticbench" else " ".join(map(str, step.source["action_space"]))


def _target(task: TaskName, step: Step, space: Space) -> str:
    """The right answer; an empty one where the row has none."""
    row = step.source
    if task == "criticbench":
        return f"Answer: {row['is_success']}"
    if task == "groundui":
        box = target_box(row)
        return _point(box.centre, step, space) if box else "Answer:"
    actions = [row] if task == "idm-single" else shown("idm-multiple", row)
    letters = letters_of([action["operation"] for action in actions], row["action_space"])
    return "Answer: " + "\n".join(letters or ())


def _point(point: Point, step: Step, space: Space) -> str:
    """All digits: a box without height is hit by the exact coordinate only."""
    found = convert(point, space, step.screen)
    return f"Answer: ({found.x!r}, {found.y!r})"
