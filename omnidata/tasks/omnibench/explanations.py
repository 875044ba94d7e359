"""Why an answer to a step of OmniBench is right or wrong: how its call differs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnidata.actions import Box, Space
from omnidata.tasks.explaining import SCREENSHOT, Rule, explained, pair_on_screen, placed
from omnidata.tasks.omnibench.actions import Call, Click, Finish, Keys, Wheel, spelled
from omnidata.tasks.omnibench.rows import call_of, rect_of
from omnidata.types import Explanation, Places, Profile, Step, Verdict


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
    wanted = call_of(step.source)
    box = rect_of(step.source) if isinstance(wanted, Click) else None
    regions: tuple[Box, ...] = (box,) if box else ()
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
    )


def _named(function: object) -> str:
    """A function's name; the end of a task has none."""
    return str(function or "finish")


def _unlike(wanted: Call | None, parsed: Mapping[str, Any], *, right: bool) -> str:
    """How a call differs from the expert's; empty where only the place can tell."""
    if wanted is None:
        return "the expert's action cannot be read"
    name, args = spelled(wanted)
    given = parsed.get("function", "")
    if given != name:
        return f"the answer is {_named(given)}, the expert's action is {_named(name)}"
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
