"""Why an answer to a step of OmniBench is right or wrong: how its action differs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from omnidata.actions import Action, Point, Space
from omnidata.tasks.explaining import (
    SCREENSHOT,
    Rule,
    diagnose,
    explained,
    pair_on_screen,
    placed,
)
from omnidata.tasks.omnibench.actions import read_call, spelled
from omnidata.tasks.omnibench.rows import action_of
from omnidata.types import Explanation, Places, Profile, Step, Verdict

_ARGUMENTS: Final = {"notches": "wheel_dist", "text": "keys"}
"""Names of arguments in verdicts -> those of the functions."""


def explain(
    step: Step,
    verdict: Verdict | None,
    profile: Profile,
    *,
    space: Space,
    receipt: Mapping[str, Any] | None,
) -> Explanation:
    """The explanation of a step, and of a verdict on an answer to it.

    Args:
        step: of OmniBench.
        verdict: on an answer; None tells of the step alone.
        profile: whose verdict it is.
        space: the unit of the answer's point.
        receipt: of the answer.
    """
    wanted = action_of(step.source)
    regions = wanted.start if wanted and wanted.kind == "tap" else ()
    given = ((verdict and verdict.parsed) or {}).get("coordinates")
    said = pair_on_screen(step, given, space, receipt)

    def cause(parsed: Mapping[str, Any], right: bool) -> str:
        differs = _unlike(wanted, parsed, right=right)
        return differs or placed(step, "the point", said, regions, right=right, rule=Rule())

    return explained(
        verdict,
        profile,
        cause,
        target_label=_named(spelled(wanted)[0]) if wanted else "",
        answer_label=lambda parsed: _named(str(parsed["function"])),
        places={SCREENSHOT: Places(regions, (), said)},
        noun="function",
        diagnosis=lambda parsed: diagnose(
            step, (wanted,) if wanted else (), _said(parsed, space), receipt=receipt
        ),
    )


def _named(function: object) -> str:
    """A function's name; the end of a task has none."""
    return str(function or "finish")


def _said(parsed: Mapping[str, Any], space: Space) -> tuple[Action, ...]:
    """What a profile read, as an action; nothing where its arguments could not be read."""
    args = {_ARGUMENTS.get(name, name): value for name, value in parsed.get("args", {}).items()}
    try:
        action = read_call(parsed.get("function"), args)
    except ValueError:
        return ()
    place = parsed.get("coordinates")
    return (replace(action, start=(Point(place[0], place[1], space),) if place else ()),)


def _unlike(wanted: Action | None, parsed: Mapping[str, Any], *, right: bool) -> str:
    """How an action differs from the expert's; empty where only the place can tell."""
    if wanted is None:
        return "the expert's action cannot be read"
    name, args = spelled(wanted)
    given = parsed.get("function", "")
    if given != name:
        return f"the answer is {_named(given)}, the expert's action is {_named(name)}"
    said: Mapping[str, Any] = parsed.get("args") or {}
    if wanted.kind == "tap":
        return "" if said == args else _differ(said, args)
    if wanted.kind == "done":
        return "both end the task" if right else "the answer's status is CONTINUE"
    if right:
        return "both type the same keys" if wanted.kind == "type" else "both turn the wheel so"
    if wanted.kind == "scroll":
        return f"{_differ(said, args)}, not the same way and between half and twice as far"
    return _differ(said, args)


def _differ(said: Mapping[str, Any], args: Mapping[str, Any]) -> str:
    """The arguments, side by side."""
    given = ", ".join(f"{name} {value!r}" for name, value in said.items()) or "nothing"
    wanted = ", ".join(f"{name} {value!r}" for name, value in args.items())
    return f"the arguments differ: {given} in place of {wanted}"
