"""Why a verdict is what it is, in a sentence for a person who looks at failures.

The profiles say right or wrong; what is said here follows their rules and never contradicts them:
the verdict comes first, and the sentence looks for what explains it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from omnidata.actions import POSITIONAL, SWIPES, Action, Point, Primitive, Region, Screen
from omnidata.metrics.edit_distance import edit_distance
from omnidata.tasks.agentnet.actions import POINTED, Deed
from omnidata.tasks.agentnet.rows import truths_of
from omnidata.tasks.agentnet.rules import Rule, judge
from omnidata.tasks.agentstudio.rows import shown as agentstudio_window_shown
from omnidata.tasks.agentstudio.rules import letters_of
from omnidata.tasks.omnibench.actions import Click, Finish, Keys, Wheel, spelled
from omnidata.tasks.omnibench.rows import call_of
from omnidata.tasks.osworld.actions import Act, acts, calls_of
from omnidata.tasks.osworld.actions import judge as judge_acts
from omnidata.tasks.screenspot.load import is_negative
from omnidata.types import Outcome, Step, Task
from omnidata.viewer.action_summary import (
    action_of,
    acts_said,
    deed_regions,
    deeds_said,
    pair_on_screen,
)
from omnidata.viewer.distances import gap, is_inside, quoted, shown
from omnidata.viewer.overlays import SCREENSHOT, Places
from omnidata.viewer.verdict_labels import Mark, operation

# Why answers in letters, truth values and desktop calls are right or wrong.


def letters(
    step: Step, parsed: Mapping[str, Any], task: Literal["idm-single", "idm-multiple"]
) -> str:
    """The letters that were answered beside those of the actions.

    Args:
        step: of IDM-Single or IDM-Multiple.
        parsed: the answer, `{"letters": [...]}`.
        task: which of the two.
    """
    actions = (
        [step.source]
        if task == "idm-single"
        else agentstudio_window_shown("idm-multiple", step.source)
    )
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


# Why turns on a desktop are right or wrong: AgentNet's by its rule, OSWorld's by ours.


def bench(step: Step, said: Sequence[Deed], rule: Rule, right: bool) -> str:
    """How an answer differs from what comes nearest to it of all that is right.

    Args:
        step: of AgentNet, one that can be judged.
        said: what the answer does, its places in shares of the screen.
        rule: by which it was judged.
        right: whether it is.
    """
    if not said:
        return "the answer does nothing"
    truth = max(truths_of(step.source), key=lambda one: judge([one], said, rule))
    if right:
        return _rightly(step, truth, said)
    if said[0].type not in [deed.type for deed in truth]:
        return f"the answer is {said[0].type}, what is right is {_listed(truth)}"
    differ = []
    for number, deed in enumerate(truth):
        if number >= len(said):
            differ.append(f"{deed.type} is missing")
        elif said[number].type != deed.type:
            differ.append(f"{said[number].type} is in place of {deed.type}")
        elif judge([[deed]], [said[number]], rule) < 1:
            differ.append(_differs(step, deed, said[number], rule))
    if rule == "fixed" and len(said) > len(truth):
        differ.append(f"{len(said)} things are done in place of {len(truth)}")
    return "; ".join(differ) or "what is done differs"


def _rightly(step: Step, truth: Sequence[Deed], said: Sequence[Deed]) -> str:
    deed, answer = truth[0], said[0]
    if deed.type == "scroll" and answer.direction != deed.direction:
        return "the released evaluator takes any scroll for right"
    if deed.type in POINTED and deed.type == answer.type:
        return _turn_placed(step, deed, answer)
    return f"the answer does what is right: {_listed(truth)}"


def _listed(truth: Sequence[Deed | Act]) -> str:
    return ", ".join(one.type if isinstance(one, Deed) else one.kind for one in truth)


def _turn_placed(step: Step, deed: Deed, said: Deed) -> str:
    regions = deed_regions(deed, step)
    point = pair_on_screen(step, said.place, "rel", {})
    if point is None or not regions:
        return f"{said.type} is at no place that can be told"
    return f"the point {shown(point)} is {gap(point, regions, step.screen)}"


def _differs(step: Step, deed: Deed, said: Deed, rule: Rule) -> str:
    if deed.type in POINTED:
        return _turn_placed(step, deed, said)
    if deed.type == "write":
        return f"the text differs: {quoted(said.text)} in place of {quoted(deed.text)}"
    if deed.type in ("press", "hotkey"):
        return f"the keys differ: {'+'.join(said.keys)} in place of {'+'.join(deed.keys)}"
    if deed.type == "terminate":
        return f"the status is {quoted(said.status)} in place of {quoted(deed.status)}"
    if deed.type in ("scroll", "hscroll") and rule == "fixed":
        return f"{deed.type} goes {_turn(said)} in place of {_turn(deed)}"
    return f"the released evaluator has no rule for {deed.type}"


def _turn(deed: Deed) -> str:
    turn = deed.direction if deed.amount is None else deed.amount
    return f"{turn:+g}"


def recorded(step: Step, said: Sequence[Act] | None, right: bool) -> str:
    """How an answer differs from what the recorded agent did.

    Args:
        step: of OSWorld, one that can be judged.
        said: what the answer does, its places in pixels of the screen; None for code that is not
            understood.
        right: whether it is the same.
    """
    done = acts(calls_of(step.source).calls) or []
    if said is None:
        return "a line of the answer is not understood"
    if right:
        return f"the answer does what the recorded agent did: {_listed(done)}"
    if [act.kind for act in said] != [act.kind for act in done]:
        return (
            f"the answer is {_listed(said) or 'nothing'}, the recorded agent's is {_listed(done)}"
        )
    pairs = zip(done, said, strict=True)
    unlike = (
        (one, other) for one, other in pairs if not judge_acts([one], [other], step.screen)[1]
    )
    return next((_unlike(one, other, step.screen) for one, other in unlike), "what is done differs")


def _unlike(done: Act, said: Act, screen: Screen) -> str:
    if done.detail != said.detail:
        return f"{done.kind}: {quoted(_detail(said))} in place of {quoted(_detail(done))}"
    found = []
    for name, wanted_at, given_at in (
        ("point", done.start, said.start),
        ("end", done.end, said.end),
    ):
        if wanted_at and given_at and wanted_at != given_at:
            point = Point(*given_at, "px")
            where = gap(point, [Point(*wanted_at, "px")], screen, noun="recorded")
            found.append(f"the {name} {shown(point)} is {where}")
        elif wanted_at and not given_at:
            found.append(f"{done.kind} is at no place")
    return "; ".join(found)


def _detail(act: Act) -> str:
    """Keys that are typed one after the other as a text; other things with spaces between."""
    if act.kind != "keys":
        return " ".join(map(str, act.detail))
    keys = (" " if key == "space" else str(key) for key in act.detail)
    return "".join(key if len(key) == 1 else f"[{key}]" for key in keys)


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
    differs = call(case.step, case.parsed or {}, right)
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
    return bench(case.step, said, rule, right)


def _recorded(case: Case, right: bool) -> str:
    said = acts_said(case.step, case.parsed, case.receipt)
    return recorded(case.step, said, right)


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
    "idm-single": lambda case, _: letters(case.step, case.parsed or {}, "idm-single"),
    "idm-multiple": lambda case, _: letters(case.step, case.parsed or {}, "idm-multiple"),
    "criticbench": lambda case, _: truth(case.step, case.parsed or {}),
}
