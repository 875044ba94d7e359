"""How a step came out, in one word, and what was done and answered, in one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from omnidata.tasks.omnibench.actions import spelled
from omnidata.tasks.omnibench.rows import call_of
from omnidata.tasks.screenspot.load import is_negative
from omnidata.types import Outcome, Step, Task
from omnidata.viewer.action_summary import action_of, answer_turn, target_turn

Mark = Literal["right", "near", "partly", "wrong", "unread", "none", "unjudged"]
MARKS: Final[Mapping[Mark, str]] = {
    "right": "right",
    "near": "type only",
    "partly": "partly right",
    "wrong": "wrong",
    "unread": "unparsed",
    "none": "no answer",
    "unjudged": "not judged",
}
"""The marks, as a reader sees them."""

UNREAD: Final = "(unparsed)"
READ: Final = "(read)"
"""An answer of which the profile says that it was read, and not what it says."""
NOTHING: Final = "(no answer)"
_BRIEF: Final = 40
_PRIMARY: Final = ("exact_match", "score")
_PARTLY: Final = 0.005
"""Of a score that is a share: from here on it is 0.01 when rounded, and not nothing."""


def mark_of(outcome: Outcome, values: Mapping[str, Any]) -> Mark:
    """The mark of a verdict.

    Args:
        outcome: of the answer.
        values: the profile's values by name; `exact_match` or `score` decides, else the first.

    Examples:
        >>> mark_of("ok", {"type_match": True, "exact_match": False})
        'near'
        >>> mark_of("ok", {"score": 0.495})
        'partly'
        >>> mark_of("truncated", {"score": False})
        'none'
    """
    names = [name for name in _PRIMARY if name in values] or list(values)
    value = values[names[0]] if names else None
    if value is None:
        return "unjudged"
    if outcome not in ("ok", "unparsed"):
        return "none"
    if value > 1 - 1e-9:  # the mean of shares may lack a last digit
        return "right"
    if outcome == "unparsed":
        return "unread"
    if value >= _PARTLY:
        return "partly"
    return "near" if values.get("type_match") else "wrong"


def target_label(task: str, step: Step) -> str:
    """What the right answer is, in a word that many steps share; empty where there is none."""
    found = _LABELS.get(task)
    if found:
        return found[0](step)
    return step.action.kind.name if step.action else ""


def answer_label(task: Task, step: Step, outcome: Outcome, parsed: Mapping[str, Any] | None) -> str:
    """What the model answered, in such a word; empty for benchmarks whose answers have none.

    Args:
        task: the benchmark.
        step: the step.
        outcome: of the answer.
        parsed: the answer as the profile read it.
    """
    found = _LABELS.get(task.name)
    if not found and not step.action:
        return ""
    if outcome not in ("ok", "unparsed"):
        return NOTHING
    if parsed is None:
        return UNREAD if outcome == "unparsed" else READ
    if found:
        return found[1](task, step, parsed) or UNREAD
    action = action_of(task, parsed)
    if action:
        return action.kind.name
    return UNREAD if outcome == "unparsed" else _brief(parsed)


def _brief(parsed: Mapping[str, Any]) -> str:
    """What a profile of another distribution read, which only it understands, in a few letters."""
    kind = parsed.get("kind")
    if not isinstance(kind, str):
        values = list(parsed.values())
        kind = str(values[0]) if len(values) == 1 else json.dumps(parsed, ensure_ascii=False)
    return kind if len(kind) <= _BRIEF else kind[: _BRIEF - 1] + "…"


def _single(step: Step) -> str:
    return str(step.source["operation"])


def _single_said(task: Task, step: Step, parsed: Mapping[str, Any]) -> str:
    return operation(step, parsed["letters"][0])


def operation(step: Step, letter: str) -> str:
    """What a letter stands for in a row of AgentStudio; the letter where it stands for nothing.

    Only the alphabet's letters do.
    """
    space = step.source["action_space"]
    place = ord(letter) - ord("A") if len(letter) == 1 else -1
    return str(space[place]) if 0 <= place < len(space) else letter


def _truth(success: object) -> str:
    return "success" if success else "failure"


def _function(name: str) -> str:
    return name or "finish"


def _call(step: Step) -> str:
    call = call_of(step.source)
    return _function(spelled(call)[0]) if call else ""


def _turn(task: str) -> Callable[[Step], str]:
    def label(step: Step) -> str:
        found = target_turn(task, step)
        return found.label if found else ""

    return label


def _turn_said(task: Task, step: Step, parsed: Mapping[str, Any]) -> str:
    found = answer_turn(task, step, parsed, {})
    return found.label if found else ""


def _spot(step: Step) -> str:
    if is_negative(step.source["row"]):
        return _NEGATIVE
    return "point" if step.action else ""


_NEGATIVE: Final = "negative"
_LABELS: Mapping[
    str, tuple[Callable[[Step], str], Callable[[Task, Step, Mapping[str, Any]], str | None]]
] = {
    "idm-single": (_single, _single_said),
    "criticbench": (
        lambda step: _truth(step.source["is_success"]),
        lambda task, step, parsed: _truth(parsed["success"]),
    ),
    "omnibench": (_call, lambda task, step, parsed: _function(str(parsed["function"]))),
    "agentnet": (_turn("agentnet"), _turn_said),
    "osworld": (_turn("osworld"), _turn_said),
    "screenspot": (
        _spot,
        lambda task, step, parsed: _NEGATIVE if parsed.get("negative") else "point",
    ),
}
"""By benchmark: the target's label, and the answer's. Others have actions with a primitive."""

NOUNS: Final[Mapping[str, str]] = {
    "idm-single": "operation",
    "criticbench": "judgement",
    "omnibench": "function",
    "agentnet": "action",
    "osworld": "action",
    "screenspot": "kind",
}
"""What the labels of a benchmark are, unless they are primitives."""
