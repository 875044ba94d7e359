"""Why a verdict is what it is, in a sentence for a person who looks at failures.

The profiles say right or wrong; what is said here follows their rules and never contradicts them:
the verdict comes first, and the sentence looks for what explains it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from omnidata.actions import POSITIONAL, SWIPES, Action, Point, Primitive, Region
from omnidata.report.pages import why_others
from omnidata.report.pages.gaps import gap, is_inside, shown
from omnidata.report.pages.marks import Mark
from omnidata.report.pages.places import SCREENSHOT, Places
from omnidata.types import Outcome, Step

_UNANSWERED: Final[Mapping[Outcome, str]] = {
    "truncated": "no verdict on a text that was cut off before its end counts as right",
    "refused": "the model refused to answer",
    "api_error": "no answer came",
    "media_error": "a medium of the step could not be sent",
    "missing": "there is no answer to this step",
}


@dataclass(frozen=True, slots=True)
class Case:
    """All that an explanation may look at.

    Attributes:
        task: the benchmark.
        profile: whose verdict it is.
        step: the step.
        outcome, values, parsed, reason: of the verdict.
        said: the answer as an action; None where it is none.
        error: why no answer came; empty if one did.
        places: what can be drawn, by role.
    """

    task: str
    profile: str
    step: Step
    outcome: Outcome
    values: Mapping[str, Any]
    parsed: Mapping[str, Any] | None
    said: Action | None
    reason: str
    error: str
    places: Mapping[str, Places]

    @property
    def is_release(self) -> bool:
        """Whether the rules are the released evaluator's."""
        return self.profile.endswith("-release")


def why(case: Case, mark: Mark) -> str:
    """One sentence, without a full stop.

    Args:
        case: what was asked, answered and judged.
        mark: how the step came out.
    """
    if mark == "unjudged":
        return f"the row cannot be judged{_because(case.reason)}"
    if mark == "none":
        said = case.error or _UNANSWERED.get(case.outcome, "there is no answer")
        return f"{case.outcome}: {said}" if case.error else said
    if case.outcome == "unparsed":
        return f"nothing could be read{_because(case.reason)}"
    explained = _EXPLAINED.get(case.task, _acted)(case, mark == "right")
    return explained + (_because(case.reason) if case.reason and mark != "right" else "")


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""


def _plain(case: Case, right: bool) -> str:
    """For benchmarks of which nothing more is known."""
    if right:
        return "the answer is the right one"
    wrong = [name for name, value in case.values.items() if value is False or value == 0]
    return f"the profile says no to {', '.join(wrong)}" if wrong else "the answer is not all right"


def _acted(case: Case, right: bool) -> str:
    """For benchmarks whose answers are actions like the steps' own."""
    step = case.step
    if step.action is None or case.said is None:
        return _plain(case, right)
    kind, wanted = case.said.kind, step.action.kind
    if kind is not wanted:
        return f"the answer is {kind.name}, the expert's action is {wanted.name}"
    if kind is Primitive.INPUT:
        return _input(case, right)
    if case.is_release and not right and kind in (Primitive.NONE, Primitive.DOUBLE_TAP):
        return f"the released evaluator counts no {kind.name} as an exact match"
    found = case.places.get(SCREENSHOT, Places())
    if kind in POSITIONAL:
        return _placed(case, right, "the point", found.said, found.start)
    if kind in SWIPES:
        return _swiped(case, right, found)
    return f"both are {kind.name}"


def _input(case: Case, right: bool) -> str:
    given = case.said.text if case.said else None
    wanted = case.step.action.text if case.step.action else None
    if given is None:
        return "the answer has no text to type"
    if right:
        same = "one text holds the other" if case.is_release else "both type the same text"
        return "both type the same text" if given == wanted else same
    return f"the text differs: {_quoted(given)} in place of {_quoted(wanted)}"


def _quoted(text: object) -> str:
    said = str(text)
    return f"“{said if len(said) <= 80 else said[:80] + '…'}”"


def _placed(
    case: Case, right: bool, name: str, said: Point | None, regions: tuple[Region, ...]
) -> str:
    """Of one place of an answer."""
    if said is None:
        return f"{name} is missing in the answer"
    if not regions:
        return f"{name} {shown(said)} has nothing to be held against: the row names no place"
    where = gap(said, regions, case.step.screen)
    inside = is_inside(said, regions, case.step.screen)
    sentence = f"{name} {shown(said)} is {where}"
    if inside and not right:
        return f"{sentence}, but {_borderline(case)}"
    return f"{sentence}, yet {_borderline(case)}" if right and not inside else sentence


def _borderline(case: Case) -> str:
    if case.task == "groundui" and case.is_release:
        return "the released evaluator wants it strictly inside"
    if case.is_release:
        return "the released evaluator truncates both to whole thousandths of the screen first"
    return "the profile compares in the unit of the answer"


def _swiped(case: Case, right: bool, found: Places) -> str:
    begins = _placed(case, right, "the start", found.said, found.start)
    starts = found.said and found.start and is_inside(found.said, found.start, case.step.screen)
    if not right and not starts:
        return begins
    if not found.end:
        return f"{begins}, and the row names no lift"
    ends = _placed(case, right, "the end", found.said_end, found.end)
    return f"{begins}; {ends}" if right else ends


def _ground(case: Case, right: bool) -> str:
    found = case.places.get(SCREENSHOT, Places())
    return _placed(case, right, "the point", found.said, found.start)


def _omnibench(case: Case, right: bool) -> str:
    differs = why_others.call(case.step, case.parsed or {}, right)
    if differs:
        return differs
    found = case.places.get(SCREENSHOT, Places())
    return _placed(case, right, "the point", found.said, found.start)


_EXPLAINED: Mapping[str, Callable[[Case, bool], str]] = {
    "groundui": _ground,
    "omnibench": _omnibench,
    "idm-single": lambda case, _: why_others.letters(case.step, case.parsed or {}, "idm-single"),
    "idm-multiple": lambda case, _: why_others.letters(
        case.step, case.parsed or {}, "idm-multiple"
    ),
    "criticbench": lambda case, _: why_others.truth(case.step, case.parsed or {}),
}
