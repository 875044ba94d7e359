"""Why an answer to one of AgentStudio's four benchmarks is right or wrong: points and letters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from omnidata.actions import Box, Space, convert
from omnidata.metrics.edit_distance import edit_distance
from omnidata.tasks.agentstudio.rows import action_box, shown, target_box
from omnidata.tasks.agentstudio.rules import letters_of
from omnidata.tasks.explaining import (
    SCREENSHOT,
    Rule,
    explained,
    in_pixels,
    pair_on_screen,
    place_cause,
    placed,
)
from omnidata.types import Diagnosis, Explanation, Places, Profile, Step, Verdict

_FRAMES: Final = "recorded action"
"""What is framed where the question is what was done: the place of an action is no target."""
_RELEASE: Final = Rule(borderline="the released evaluator wants it strictly inside")


def ground(
    step: Step, verdict: Verdict | None, profile: Profile, *, is_release: bool, space: Space
) -> Explanation:
    """Of GroundUI: where the point is, seen from the target."""
    box = target_box(step.source)
    # The profile has brought the point to the screen.
    said = pair_on_screen(step, ((verdict and verdict.parsed) or {}).get("point"), "px", {})
    regions: tuple[Box, ...] = (box,) if box else ()
    rule = _RELEASE if is_release else Rule()
    return explained(
        verdict,
        profile,
        lambda parsed, right: placed(step, "the point", said, regions, right=right, rule=rule),
        places={SCREENSHOT: Places(regions, (), said)},
        diagnosis=lambda parsed: (
            (
                place_cause(step, regions, (convert(said, space, step.screen),), receipt={})
                if said
                else None
            )
            or Diagnosis("rule")
        ),
    )


def single(step: Step, verdict: Verdict | None, profile: Profile) -> Explanation:
    """Of IDM-Single: the operation that was answered beside the one that was done."""

    def cause(parsed: Mapping[str, Any], right: bool) -> str:
        given: Sequence[str] = parsed.get("letters", ())
        return _compared(step, given, _right_letters(step, [step.source]))

    return explained(
        verdict,
        profile,
        cause,
        target_label=str(step.source["operation"]),
        answer_label=lambda parsed: _operation(step, parsed["letters"][0]),
        places=_recorded(step, {"before": step.source}),
        noun="operation",
        diagnosis=lambda parsed: Diagnosis("wrong_type"),
        frames=_FRAMES,
    )


def multiple(step: Step, verdict: Verdict | None, profile: Profile) -> Explanation:
    """Of IDM-Multiple: the letters that were answered beside those of the actions."""

    def cause(parsed: Mapping[str, Any], right: bool) -> str:
        given: Sequence[str] = parsed.get("letters", ())
        wanted = _right_letters(step, shown("idm-multiple", step.source))
        said = _compared(step, given, wanted)
        if tuple(given) == wanted:
            return said
        distance = edit_distance(given, wanted)
        return f"{said}: {distance} edit{'s' * (distance != 1)} apart"

    return explained(
        verdict,
        profile,
        cause,
        places=_trajectory(step),
        frames=_FRAMES,
        diagnosis=lambda parsed: Diagnosis("wrong_type"),
    )


def critic(step: Step, verdict: Verdict | None, profile: Profile) -> Explanation:
    """Of CriticBench: what was said of a trajectory beside what it is."""

    def cause(parsed: Mapping[str, Any], right: bool) -> str:
        true = "succeeded" if step.source["is_success"] else "failed"
        return f"the answer is {_truth(parsed.get('success'))}, and the trajectory {true}"

    return explained(
        verdict,
        profile,
        cause,
        target_label=_truth(step.source["is_success"]),
        answer_label=lambda parsed: _truth(parsed["success"]),
        places=_trajectory(step),
        noun="judgement",
        frames=_FRAMES,
    )


def _right_letters(step: Step, actions: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    operations = [str(action["operation"]) for action in actions]
    return tuple(letters_of(operations, step.source["action_space"]) or ())


def _compared(step: Step, given: Sequence[str], wanted: tuple[str, ...]) -> str:
    said = f"the answer is {_spelled(step, given)}"
    if tuple(given) == wanted:
        return f"{said}, as it was done"
    return f"{said}, what was done is {_spelled(step, wanted)}"


def _spelled(step: Step, given: Sequence[str]) -> str:
    return ", ".join(f"{letter} ({_operation(step, letter)})" for letter in given) or "nothing"


def _operation(step: Step, letter: str) -> str:
    """What a letter stands for in a row; the letter where it stands for nothing.

    Only the alphabet's letters do.
    """
    space = step.source["action_space"]
    place = ord(letter) - ord("A") if len(letter) == 1 else -1
    return str(space[place]) if 0 <= place < len(space) else letter


def _truth(success: object) -> str:
    return "success" if success else "failure"


def _trajectory(step: Step) -> Mapping[str, Places]:
    actions = step.source["actions"]
    return _recorded(step, {f"observation_{n}": action for n, action in enumerate(actions)})


def _recorded(step: Step, actions: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Places]:
    """Where recorded actions were made, by the role of the picture before each."""
    found = ((role, action_box(step.source, action)) for role, action in actions.items())
    return {
        role: Places((in_pixels(region, step.screen),))
        for role, region in found
        if region is not None
    }
