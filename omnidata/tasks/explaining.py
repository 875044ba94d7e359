"""Explanations of verdicts, shared by several benchmarks.

A profile judges an answer right or wrong. An explanation follows from the verdict and never
contradicts it. Positions are in pixels of the picture that they are drawn on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from omnidata.actions import (
    Action,
    Point,
    Region,
    Screen,
    convert,
)
from omnidata.tasks.coordinates import in_pixels, on_screen
from omnidata.tasks.diagnosis import PLACED, REACH, bare_diagnosis, diagnose, off_by
from omnidata.types import (
    NOTHING,
    READ,
    UNREAD,
    Cause,
    Diagnosis,
    Explanation,
    Mark,
    Outcome,
    Overlays,
    Step,
    Verdict,
)

if TYPE_CHECKING:
    from omnidata.tasks.profile import Profile

SCREENSHOT: Final = "screenshot"
"""The role of the picture that actions are drawn on."""

_FAR: Final = 10**9
"""Thousandths of a screen beyond which distances are not distinguished."""
_BRIEF: Final = 40
_PRIMARY: Final = ("exact_match", "score")
_PARTLY: Final = 0.005
"""Of a score that is a share: from here on it is 0.01 when rounded, and not nothing."""


# How a step came out, and the frame that all explanations have.


def mark_of(outcome: Outcome, values: Mapping[str, Any]) -> Mark:
    """Return the mark of a verdict.

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
    value = deciding(values)
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


def deciding(values: Mapping[str, Any]) -> Any:
    """Return the value that decides whether an answer is right.

    It is `exact_match` or `score`, else the first value.

    Args:
        values: the profile's values by name.
    """
    names = [name for name in _PRIMARY if name in values] or list(values)
    return values[names[0]] if names else None


Standing = Literal["right", "wrong", "partly", "unjudged"]
RIGHT: Final = 1 - 1e-9
"""Of a score that is a mean of shares, which may lack a last digit."""


def standing(profile: Profile, verdict: Verdict) -> Standing:
    """Return the mark of a verdict; "partly" for a score between 0 and 1."""
    value = deciding(dict(zip(profile.values, verdict.values, strict=True)))
    if value is None:
        return "unjudged"
    return "right" if value > RIGHT else "partly" if value > 0 else "wrong"


def is_judged(profile: Profile, verdict: Verdict) -> bool:
    """Return whether a verdict has any value."""
    values = dict(zip(profile.values, verdict.values, strict=True))
    return deciding(values) is not None or values.get("type_match") is not None


_UNANSWERED: Final[Mapping[Outcome, str]] = {
    "truncated": "the answer was cut off before its end, which never counts as right",
    "refused": "the model refused to answer",
    "api_error": "the request failed without an answer",
    "media_error": "a medium of the step could not be sent",
    "missing": "there is no answer to this step",
}


class _Lazy(Explanation):
    """An explanation that computes its members on first access.

    Scoring reads the label and the diagnosis of every wrong answer, but neither its sentence nor
    its pictures.
    """

    __slots__ = ("_parts",)
    _parts: _Parts | None

    def __init__(self, parts: _Parts | None = None, **known: object) -> None:
        object.__setattr__(self, "_parts", parts)
        for name, value in known.items():
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:  # called for what is not there yet
        parts = object.__getattribute__(self, "_parts")  # a copy has all but this
        if name not in _MEMBERS:
            raise AttributeError(name)
        value = getattr(parts, name)()
        object.__setattr__(self, name, value)
        return value


_MEMBERS: Final = frozenset(one.name for one in fields(Explanation))


class _Parts(msgspec.Struct):
    """The members that all explanations compute alike, by their names."""

    verdict: Verdict | None
    profile: Profile

    @property
    def has_labels(self) -> bool:
        raise NotImplementedError

    def explain_parsed(self, parsed: Mapping[str, Any], right: bool) -> str:
        raise NotImplementedError

    def label_parsed(self, parsed: Mapping[str, Any]) -> str:
        raise NotImplementedError

    def diagnose_parsed(self, parsed: Mapping[str, Any]) -> Diagnosis:
        raise NotImplementedError

    def mark(self) -> Mark | None:
        verdict = self.verdict
        if verdict is None:
            return None
        return _cached_mark(verdict.outcome, tuple(self.profile.values), verdict.values)

    def diagnosis(self) -> Diagnosis | None:
        verdict = self.verdict
        if verdict is None or self.mark() in ("right", "unjudged"):
            return None
        cause = _UNREAD_CAUSES.get(verdict.outcome)
        return bare_diagnosis(cause) if cause else self.diagnose_parsed(verdict.parsed or {})

    def sentence(self) -> str:
        verdict, mark = self.verdict, self.mark()
        if verdict is None:
            return ""
        because = f": {verdict.reason}" if verdict.reason else ""
        if mark == "unjudged":
            return f"the row cannot be judged{because}"
        if mark == "none":
            return _UNANSWERED.get(verdict.outcome, "the step has no answer")
        if verdict.outcome == "unparsed":
            return f"no answer could be parsed{because}"
        right = mark == "right"
        return self.explain_parsed(verdict.parsed or {}, right) + ("" if right else because)

    def answer_label(self) -> str:
        verdict = self.verdict
        if verdict is None or not self.has_labels:
            return ""
        if verdict.outcome not in ("ok", "unparsed"):
            return NOTHING
        if verdict.parsed is None:
            return UNREAD if verdict.outcome == "unparsed" else READ
        return self.label_parsed(verdict.parsed) or UNREAD


@lru_cache(maxsize=1024)  # there are few different verdicts
def _cached_mark(outcome: Outcome, names: tuple[str, ...], values: tuple[object, ...]) -> Mark:
    return mark_of(outcome, dict(zip(names, values, strict=True)))


_UNREAD_CAUSES: Final[Mapping[Outcome, Cause]] = {
    "unparsed": "format",
    "truncated": "truncated",
    "refused": "refused",
    "api_error": "no_answer",
    "media_error": "no_answer",
    "missing": "no_answer",
}


class _Given(_Parts):
    sentence_of: Callable[[Mapping[str, Any], bool], str]
    label_of: Callable[[Mapping[str, Any]], str] | None
    diagnosis_of: Callable[[Mapping[str, Any]], Diagnosis]
    overlays: Callable[[], Mapping[str, Overlays]]

    @property
    def has_labels(self) -> bool:
        return self.label_of is not None

    def explain_parsed(self, parsed: Mapping[str, Any], right: bool) -> str:
        return self.sentence_of(parsed, right)

    def label_parsed(self, parsed: Mapping[str, Any]) -> str:
        return self.label_of(parsed) if self.label_of else ""

    def diagnose_parsed(self, parsed: Mapping[str, Any]) -> Diagnosis:
        return self.diagnosis_of(parsed)


def explain(
    verdict: Verdict | None,
    profile: Profile,
    sentence: Callable[[Mapping[str, Any], bool], str],
    *,
    target_label: str = "",
    target_labels: tuple[str, ...] = (),
    answer_label: Callable[[Mapping[str, Any]], str] | None = None,
    overlays: Callable[[], Mapping[str, Overlays]],
    noun: str = "primitive",
    frames: str = "target",
    diagnosis: Callable[[Mapping[str, Any]], Diagnosis] = lambda parsed: Diagnosis("rule"),
) -> Explanation:
    """Return an explanation with the parts that all benchmarks have in common.

    Callables are called once, on first access.

    Args:
        verdict: on the answer, if any.
        profile: whose it is.
        sentence: returns why a judged answer is right or wrong, given the parsed answer and
            whether it is right.
        target_label: as in `Explanation`.
        target_labels: as in `Explanation`.
        answer_label: returns the label of a parsed answer; None for benchmarks without labels.
        overlays: drawings by role of the picture.
        noun: the kind of label.
        frames: boxes drawn on pictures.
        diagnosis: returns the diagnosis of a parsed answer that is not right.
    """
    return _Lazy(
        _Given(verdict, profile, sentence, answer_label, diagnosis, overlays),
        target_label=target_label,
        target_labels=target_labels,
        noun=noun,
        frames=frames,
    )


def plain(verdict: Verdict, profile: Profile, *, right: bool) -> str:
    """Return the sentence for a verdict that has values only."""
    if right:
        return "the answer is right"
    values = zip(profile.values, verdict.values, strict=True)
    wrong = [name for name, value in values if value is False or value == 0]
    return f"the profile rejects {', '.join(wrong)}" if wrong else "the answer is not fully right"


# Answers that are actions like the steps' own.


@dataclass(frozen=True, slots=True)
class RuleWords:
    """Explanations for verdicts of a profile's rule that look wrong.

    Attributes:
        borderline: why a point inside is wrong, or one outside right; empty if unknown.
        same_text: why a text that differs from the target's is right.
        unlike: why an answer equal to the target is wrong; empty if the verdict explains it.
        reach: how far from a target point an answer may be, in thousandths of the screen.
    """

    borderline: str = "the profile compares in the unit of the answer"
    same_text: str = "both type the same text"
    unlike: str = "the profile distinguishes them"
    reach: float = REACH


def code_block(code: str) -> str:
    """Return code in a fence, as answers have it."""
    return f"```python\n{code}\n```"


def by_action(
    step: Step,
    verdict: Verdict | None,
    profile: Profile,
    said: Action | None,
    *,
    receipt: Mapping[str, Any] | None,
    sentence: Callable[[Action, Action, Overlays, bool], str],
    reach: float = REACH,
    rules_known: bool = True,
) -> Explanation:
    """Explain an answer that is an action by comparing it with the step's target.

    Args:
        step: the step; its action is the target.
        verdict: on the answer.
        profile: whose verdict it is.
        said: the answer with its original coordinates; None if it is not an action.
        receipt: of the answer.
        sentence: returns the reason, given target, answer, overlays and whether it is right.
        reach: how far from a target point an answer may be, in thousandths of the screen.
        rules_known: as in `diagnose`.
    """
    parts = _OfAction(
        verdict, profile, step, step.action, said, receipt, sentence, reach, rules_known
    )
    label = step.action.label if step.action else ""
    return _Lazy(parts, target_label=label)


class _OfAction(_Parts):
    step: Step
    wanted: Action | None
    said: Action | None
    receipt: Mapping[str, Any] | None
    sentence_of: Callable[[Action, Action, Overlays, bool], str]
    reach: float
    rules_known: bool

    def noun(self) -> str:
        return "primitive"

    def frames(self) -> str:
        return "target"

    def target_labels(self) -> tuple[str, ...]:
        wanted = self.wanted
        return tuple(one.label for one in (wanted, *wanted.then)) if wanted else ()

    def overlays(self) -> Mapping[str, Overlays]:
        return {SCREENSHOT: self._places()}

    def _places(self) -> Overlays:
        screen, said = self.step.screen, self.said
        targets = (self.wanted.start, self.wanted.end) if self.wanted else ((), ())
        answers = [
            on_screen(self.step, regions[0], self.receipt)
            if regions and isinstance(regions[0], Point)
            else None
            for regions in ((said.start, said.end) if said else ((), ()))
        ]
        target, target_end = (
            tuple(in_pixels(region, screen) for region in regions) for regions in targets
        )
        return Overlays(target, target_end, *answers)

    @property
    def has_labels(self) -> bool:
        return self.wanted is not None

    def explain_parsed(self, parsed: Mapping[str, Any], right: bool) -> str:
        if self.wanted is None or self.said is None:
            assert self.verdict
            return plain(self.verdict, self.profile, right=right)
        return self.sentence_of(self.wanted, self.said, self._places(), right)

    def label_parsed(self, parsed: Mapping[str, Any]) -> str:
        if self.said:
            return self.said.label
        return UNREAD if self.verdict and self.verdict.outcome == "unparsed" else _brief(parsed)

    def diagnose_parsed(self, parsed: Mapping[str, Any]) -> Diagnosis:
        assert self.verdict
        names, values = self.profile.values, self.verdict.values
        same_type = values[names.index("type_match")] if "type_match" in names else None
        wanted, said = self.wanted, self.said
        return diagnose(
            self.step,
            (wanted, *wanted.then) if wanted else (),
            (said, *said.then) if said else (),
            receipt=self.receipt,
            reach=self.reach,
            same_type=bool(same_type),
            # A profile with a value for the type compares types wherever the places are.
            rules_known=self.rules_known or ("type_match" in names and not same_type),
        )


def _brief(parsed: Mapping[str, Any]) -> str:
    kind = parsed.get("kind")
    if not isinstance(kind, str):
        values = list(parsed.values())
        kind = str(values[0]) if len(values) == 1 else json.dumps(parsed, ensure_ascii=False)
    return kind if len(kind) <= _BRIEF else kind[: _BRIEF - 1] + "…"


def explain_action(
    step: Step, wanted: Action, said: Action, overlays: Overlays, *, right: bool, rule: RuleWords
) -> str:
    """Explain an action by its primitive, text, places and details."""
    kind = said.kind
    if said.label != wanted.label:
        return f"the answer is {said.label}, the expert's action is {wanted.label}"
    if kind == "type":
        return explain_text(wanted, said, right=right, rule=rule)
    if kind in PLACED:
        return explain_place(
            step, "the point", overlays.answer, overlays.target, right=right, rule=rule
        )
    if kind in ("swipe", "drag"):
        return _explain_swipe(step, overlays, right=right, rule=rule)
    return _explain_details(wanted, said, right=right, rule=rule)


def _explain_details(wanted: Action, said: Action, *, right: bool, rule: RuleWords) -> str:
    for noun, target, answer in _details(wanted, said):
        if target.casefold() == answer.casefold():
            continue
        if right:
            return f"the profile accepts {answer or f'no {noun}'} for {target or f'no {noun}'}"
        if not answer:
            return f"the answer has no {noun}, the expert's action has {target}"
        verb = "differ" if noun == "keys" else "differs"
        return f"the {noun} {verb}: {answer} in place of {target or f'no {noun}'}"
    both = f"both are {said.label}"
    if said.keys:
        both = f"both have the keys {_keys(said)}"
    elif said.app:
        both = f"both open {said.app}"
    return both if right or not rule.unlike else f"{both}, and {rule.unlike}"


def _details(wanted: Action, said: Action) -> list[tuple[str, str, str]]:
    return [
        ("keys", _keys(wanted), _keys(said)),
        ("app", wanted.app or "", said.app or ""),
        ("status", wanted.status or "", said.status or ""),
        ("direction", wanted.direction or "", said.direction or ""),
    ]


def _keys(action: Action) -> str:
    return ("+" if action.kind in ("hotkey", "hold", "release") else " ").join(action.keys)


def explain_text(wanted: Action, said: Action, *, right: bool, rule: RuleWords) -> str:
    """Explain a text to type."""
    if said.text is None:
        return "the answer has no text to type"
    if right:
        return "both type the same text" if said.text == wanted.text else rule.same_text
    return f"the text differs: {quote(said.text)} in place of {quote(wanted.text)}"


def explain_place(
    step: Step,
    name: str,
    said: Point | None,
    regions: tuple[Region, ...],
    *,
    right: bool,
    rule: RuleWords,
) -> str:
    """Explain why one position of an answer is right or wrong.

    Args:
        step: what was asked about.
        name: of the place, e.g. "the point".
        said: the position in pixels; None if the answer has none.
        regions: the right regions, in pixels.
        right: whether it is right.
        rule: of the profile.
    """
    if min(step.screen) < 1:
        return f"the size of the screen is unknown, so {name} cannot be located"
    if said is None:
        return f"{name} is missing in the answer, or is no valid position"
    if not regions:
        return f"{name} {format_point(said)} cannot be compared: the row names no position"
    inside = is_inside(said, regions, step.screen, reach=rule.reach)
    sentence = f"{name} {format_point(said)} is {gap(said, regions, step.screen)}"
    if inside == right:
        return sentence
    if not rule.borderline:
        return f"{sentence}, which the profile {'counts' if right else 'does not count'} as right"
    return f"{sentence}, {'yet' if right else 'but'} {rule.borderline}"


def _explain_swipe(step: Step, overlays: Overlays, *, right: bool, rule: RuleWords) -> str:
    start, regions = overlays.answer, overlays.target
    begins = explain_place(step, "the start", start, regions, right=right, rule=rule)
    starts = start and regions and is_inside(start, regions, step.screen, reach=rule.reach)
    if not right and not starts:
        return begins
    if not overlays.target_end:
        return f"{begins}, and the row has no end of the swipe"
    ends = explain_place(
        step, "the end", overlays.answer_end, overlays.target_end, right=right, rule=rule
    )
    return f"{begins}; {ends}" if right else ends


# Turns in which several things are done: what they are, and where.


@dataclass(frozen=True, slots=True)
class Turn:
    """The actions of a turn.

    Attributes:
        kinds: names of the actions, in order.
        starts: their positions in pixels of the screen, without ends of drags.
        ends: the ends of drags.
    """

    kinds: tuple[str, ...] = ()
    starts: tuple[Region, ...] = ()
    ends: tuple[Region, ...] = ()

    @property
    def label(self) -> str:
        """The first action that is not a pointer move; empty if there is none."""
        more = (kind for kind in self.kinds if kind not in ("move", "moveTo"))
        return next(more, self.kinds[0] if self.kinds else "")


def of_turns(target: Turn | None, said: Turn | None) -> Overlays:
    """Return the overlays of a turn and an answer; None marks an unreadable one."""
    start, end = (
        next((region for region in regions if isinstance(region, Point)), None)
        for regions in ((said.starts, said.ends) if said else ((), ()))
    )
    return Overlays(target.starts if target else (), target.ends if target else (), start, end)


# Texts and distances in words.


def format_point(point: Point) -> str:
    """Return a point in pixels, rounded to a tenth.

    Examples:
        >>> format_point(Point(512.44, 300, "px"))
        '(512.4, 300)'
    """
    return f"({_number(point.x)}, {_number(point.y)})"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0") if abs(value) < 1e9 else f"{value:.1e}"


def quote(text: object) -> str:
    """Return a text in quotation marks, shortened to 80 characters."""
    said = str(text)
    return f"“{said if len(said) <= 80 else said[:80] + '…'}”"


def gap(point: Point, regions: Sequence[Region], screen: Screen, *, noun: str = "target") -> str:
    """Describe where a point lies relative to the nearest region, all in pixels.

    Args:
        point: of an answer.
        regions: at least one.
        screen: width and height in pixels.
        noun: the name of the regions.

    Examples:
        >>> from omnidata.actions import Box
        >>> box = Box(100, 200, 300, 260, "px")
        >>> gap(Point(343, 230, "px"), [box], (720, 1600))
        '43 px right of the target box'
        >>> gap(Point(90, 190, "px"), [box, Box(600, 600, 700, 700, "px")], (720, 1600))
        '10 px left of and 10 px above the nearest of 2 target boxes'
        >>> gap(Point(300, 260, "px"), [box], (720, 1600))
        'inside the target box'
    """
    region = min(regions, key=lambda each: math.hypot(*off_by(point.x, point.y, each)))
    several = len(regions) > 1
    is_on = 0 <= point.x <= screen[0] and 0 <= point.y <= screen[1]
    outside = "" if is_on else ", off the screen"
    if isinstance(region, Point):
        about = f"the nearest of {len(regions)} {noun} points" if several else f"the {noun} point"
        distance = _thousandths(point, region, screen)
        away = f"{distance} of 1000" if distance < _FAR else "farther than any screen"
        return f"{away} away from {about}{outside}"
    about = f"the nearest of {len(regions)} {noun} boxes" if several else f"the {noun} box"
    x, y = off_by(point.x, point.y, region)
    parts = []
    if x:
        parts.append(f"{_pixels(x)} {'left' if x < 0 else 'right'} of")
    if y:
        parts.append(f"{_pixels(y)} {'above' if y < 0 else 'below'}")
    return f"{' and '.join(parts)} {about}{outside}" if parts else f"inside {about}{outside}"


def is_inside(
    point: Point, regions: Sequence[Region], screen: Screen, *, reach: float = REACH
) -> bool:
    """Return whether a point lies in one of the regions, or near enough to a point.

    The edges of boxes count as inside.

    Args:
        point: of an answer.
        regions: all in pixels, as the point.
        screen: width and height in pixels.
        reach: how far from a point is near enough, in thousandths of the screen.
    """
    return any(
        _thousandths(point, region, screen) <= reach
        if isinstance(region, Point)
        else off_by(point.x, point.y, region) == (0, 0)
        for region in regions
    )


def _thousandths(point: Point, target: Point, screen: Screen) -> int:
    one, other = (convert(each, "norm1000", screen) for each in (point, target))
    distance = math.dist((one.x, one.y), (other.x, other.y))
    return math.ceil(distance - 1e-9) if distance < _FAR else _FAR


def _pixels(distance: float) -> str:
    size = abs(distance)
    if size >= 1e9:
        return f"{size:.1e} px"
    if size < 0.05:
        return "less than 0.1 px"
    return f"{size:.0f} px" if size >= 10 or size == int(size) else f"{size:.1f} px"
