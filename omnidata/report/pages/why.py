"""Why a verdict is what it is, in a sentence for a person who looks at failures.

The profiles say right or wrong; what is said here follows their rules and never contradicts them:
the verdict comes first, and the sentence looks for what explains it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from omnidata.actions import POSITIONAL, SWIPES, Action, Point, Primitive, Region
from omnidata.loaders.screenspot_rows import is_negative
from omnidata.metrics.agentnetbench import Rule
from omnidata.report.pages import why_others, why_turns
from omnidata.report.pages.answers import action_of
from omnidata.report.pages.gaps import gap, is_inside, quoted, shown
from omnidata.report.pages.marks import Mark
from omnidata.report.pages.places import SCREENSHOT, Places
from omnidata.report.pages.turns import acts_said, deeds_said
from omnidata.types import Outcome, Step, Task

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
        task: the benchmark, with the options of the run.
        profile: whose verdict it is.
        step: the step.
        outcome, values, parsed, reason: of the verdict.
        receipt: of the answer.
        error: why no answer came; empty if one did.
        places: what can be drawn, by role.
    """

    task: Task
    profile: str
    step: Step
    outcome: Outcome
    values: Mapping[str, Any]
    parsed: Mapping[str, Any] | None
    receipt: Mapping[str, Any]
    reason: str
    error: str
    places: Mapping[str, Places]

    @property
    def said(self) -> Action | None:
        """The answer as an action; None where it is none."""
        return action_of(self.task, self.parsed)

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
    explained = _EXPLAINED.get(case.task.name, _acted)(case, mark == "right")
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
    step, said = case.step, case.said
    if step.action is None or said is None:
        return _plain(case, right)
    kind, wanted = said.kind, step.action.kind
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
    return f"the text differs: {quoted(given)} in place of {quoted(wanted)}"


def _placed(
    case: Case, right: bool, name: str, said: Point | None, regions: tuple[Region, ...]
) -> str:
    """Of one place of an answer."""
    if min(case.step.screen) < 1:
        return f"nobody knows the size of the screen, and so not where {name} is"
    if said is None:
        return f"{name} is missing in the answer, or on no screen"
    if not regions:
        return f"{name} {shown(said)} has nothing to be held against: the row names no place"
    where = gap(said, regions, case.step.screen)
    inside = is_inside(said, regions, case.step.screen)
    sentence = f"{name} {shown(said)} is {where}"
    if inside and not right:
        return f"{sentence}, but {_borderline(case)}"
    return f"{sentence}, yet {_borderline(case)}" if right and not inside else sentence


def _borderline(case: Case) -> str:
    if case.task.name == "groundui" and case.is_release:
        return "the released evaluator wants it strictly inside"
    if case.task.name == "screenspot":
        return "the profile compares in shares of the screen"
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


def _spotted(case: Case, right: bool) -> str:
    said, absent = case.parsed or {}, is_negative(case.step.source["row"])
    if said.get("negative"):
        return (
            f"by the answer the element is not there, {'and so it is' if absent else 'but it is'}"
        )
    if absent:
        return "the element is not on the screen, and the answer names a point"
    return _ground(case, right)


def _bench(case: Case, right: bool) -> str:
    rule: Rule = "fixed" if case.profile.endswith("-fixed") else "released"
    said = deeds_said(case.task, case.step, case.parsed, case.receipt, rule)
    return why_turns.bench(case.step, said, rule, right)


def _recorded(case: Case, right: bool) -> str:
    said = acts_said(case.step, case.parsed, case.receipt)
    return why_turns.recorded(case.step, said, right)


_REACH: Final[Mapping[str, int]] = {
    "aitw": 140, "aitw-fixed": 140, "agentcpm": 140, "agentcpm-fixed": 140,
    "agentcpm-ac": 40, "agentcpm-ac-fixed": 40,
}  # fmt: skip
"""How far from the expert's a tap may be, in thousandths; other profiles have boxes alone."""


def _phone(case: Case, right: bool) -> str:
    """For phones, whose profiles know elements and directions beside places."""
    step, said = case.step, case.said
    if step.action is None or said is None:
        return _plain(case, right)
    kind, wanted = said.kind, step.action.kind
    if kind is not wanted:
        sentence = f"the answer is {kind.name}, the expert's action is {wanted.name}"
        return f"{sentence}, which the profile takes for the same" if right else sentence
    if kind is Primitive.INPUT:
        if right and said.text != step.action.text:
            return f"the profile takes {quoted(said.text)} for {quoted(step.action.text)}"
        return _input(case, right)
    if kind not in POSITIONAL:
        return f"both are {kind.name}" + ("" if right else ", and the profile tells them apart")
    found = case.places.get(SCREENSHOT, Places())
    if found.said is None or not found.start or min(step.screen) < 1:
        return _placed(case, right, "the point", found.said, found.start)
    sentence = f"the point {shown(found.said)} is {gap(found.said, found.start, step.screen)}"
    near = is_inside(found.said, found.start, step.screen, reach=_REACH.get(case.profile, 0))
    if right:
        return sentence if near else f"{sentence}, which the profile's boxes allow"
    if case.profile == "aitz":
        return f"{sentence}, but the released evaluator looks at the point (0, 0) for every click"
    return f"{sentence}, but the profile tells them apart" if near else f"{sentence}, too far"


_EXPLAINED: Mapping[str, Callable[[Case, bool], str]] = {
    "groundui": _ground,
    "screenspot": _spotted,
    "omnibench": _omnibench,
    "agentnet": _bench,
    "osworld": _recorded,
    "aitw": _phone,
    "androidcontrol": _phone,
    "idm-single": lambda case, _: why_others.letters(case.step, case.parsed or {}, "idm-single"),
    "idm-multiple": lambda case, _: why_others.letters(
        case.step, case.parsed or {}, "idm-multiple"
    ),
    "criticbench": lambda case, _: why_others.truth(case.step, case.parsed or {}),
}
