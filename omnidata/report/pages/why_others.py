"""Why answers in letters, truth values and desktop calls are right or wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from omnidata.desktop import Click, Finish, Keys, Wheel, spelled
from omnidata.loaders.agentstudio_window import shown
from omnidata.loaders.omnibench_rows import call_of
from omnidata.metrics.agentstudio_idm import edit_distance, letters_of
from omnidata.report.pages.marks import operation
from omnidata.types import Step


def letters(
    step: Step, parsed: Mapping[str, Any], task: Literal["idm-single", "idm-multiple"]
) -> str:
    """The letters that were answered beside those of the actions.

    Args:
        step: of IDM-Single or IDM-Multiple.
        parsed: the answer, `{"letters": [...]}`.
        task: which of the two.
    """
    actions = [step.source] if task == "idm-single" else shown("idm-multiple", step.source)
    operations = [str(action["operation"]) for action in actions]
    wanted = letters_of(operations, step.source["action_space"]) or ()
    given: Sequence[str] = parsed.get("letters", ())
    said = f"the answer is {_spelled(step, given)}"
    if tuple(given) == wanted:
        return f"{said}, as it was done"
    done = f"{said}, what was done is {_spelled(step, wanted)}"
    distance = edit_distance(given, wanted)
    return done if task == "idm-single" else f"{done}: {distance} edit{'s' * (distance != 1)} apart"


def _spelled(step: Step, given: Sequence[str]) -> str:
    return ", ".join(f"{letter} ({operation(step, letter)})" for letter in given) or "nothing"


def truth(step: Step, parsed: Mapping[str, Any]) -> str:
    """What was said of a trajectory beside what it is."""
    said = "success" if parsed.get("success") else "failure"
    true = "succeeded" if step.source["is_success"] else "failed"
    return f"the answer is {said}, and the trajectory {true}"


def call(step: Step, parsed: Mapping[str, Any], right: bool) -> str:
    """How a desktop call differs from the expert's; empty where only the place can tell."""
    wanted = call_of(step.source)
    if wanted is None:
        return "the expert's action cannot be read"
    name, args = spelled(wanted)
    given = parsed.get("function", "")
    if given != name:
        return f"the answer is {given or 'finish'}, the expert's action is {name or 'finish'}"
    said: Mapping[str, Any] = parsed.get("args") or {}
    if isinstance(wanted, Click):
        return "" if said == args or _same_click(said, wanted) else _differ(said, args)
    if isinstance(wanted, Finish):
        return "both end the task" if right else "the answer's status is CONTINUE"
    if right:
        return "both type the same keys" if isinstance(wanted, Keys) else "both turn the wheel so"
    if isinstance(wanted, Wheel):
        return f"{_differ(said, args)}, not the same way and between half and twice as far"
    return _differ(said, args)


def _same_click(said: Mapping[str, Any], wanted: Click) -> bool:
    return said.get("button") == wanted.button and bool(said.get("double")) == wanted.double


def _differ(said: Mapping[str, Any], args: Mapping[str, Any]) -> str:
    """The arguments, side by side."""
    given = ", ".join(f"{name} {value!r}" for name, value in said.items()) or "nothing"
    wanted = ", ".join(f"{name} {value!r}" for name, value in args.items())
    return f"the arguments differ: {given} in place of {wanted}"
