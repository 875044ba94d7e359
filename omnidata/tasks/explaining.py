"""Why a verdict is what it is, for people: what explanations of several benchmarks share.

A profile says right or wrong. An explanation follows the profile's rules and never contradicts it:
the verdict comes first, and the sentence looks for what explains it. Places are in pixels of the
picture that they are drawn on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Final, Generic, Protocol, TypeVar, get_args

from omnidata.actions import (
    Action,
    Box,
    Direction,
    Pair,
    Point,
    Region,
    Screen,
    Space,
    centre,
    convert,
    heading,
)
from omnidata.errors import OmnidataError, PluginError
from omnidata.metrics.edit_distance import edit_distance
from omnidata.tasks.coordinates import in_pixels, on_screen, scale_of, scaled
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
    Profile,
    Step,
    Verdict,
)

_T = TypeVar("_T")
SCREENSHOT: Final = "screenshot"
"""The role of the picture that actions are drawn on."""
REACH: Final = 140.0
"""How far from a target point most evaluators let an answer be, in thousandths of the screen."""

_SLACK: Final = 1e-9
"""What rounding may add to a place, as a share of it."""
_FAR: Final = 10**9
"""Thousandths of a screen that nobody needs to tell apart."""
_BRIEF: Final = 40
_PLACED: Final = frozenset({"tap", "long_press", "move"})
_PRIMARY: Final = ("exact_match", "score")
_PARTLY: Final = 0.005
"""Of a score that is a share: from here on it is 0.01 when rounded, and not nothing."""


# How a step came out, and the frame that all explanations have.


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
    """The value that says whether an answer is right: `exact_match` or `score`, else the first.

    Args:
        values: the profile's values by name.
    """
    names = [name for name in _PRIMARY if name in values] or list(values)
    return values[names[0]] if names else None


_UNANSWERED: Final[Mapping[Outcome, str]] = {
    "truncated": "no verdict on a text that was cut off before its end counts as right",
    "refused": "the model refused to answer",
    "api_error": "no answer came",
    "media_error": "a medium of the step could not be sent",
    "missing": "there is no answer to this step",
}


class _Lazy(Explanation):
    """An explanation of which each costly member is made when it is first read.

    Scoring asks for a diagnosis of every wrong answer, and for no sentence and no picture. What
    `dataclasses.replace` makes of it has them all.
    """

    __slots__ = ("_made",)
    _made: Mapping[str, Callable[[], Any]]

    def __init__(
        self, made: Mapping[str, Callable[[], Any]] = MappingProxyType({}), **known: object
    ) -> None:
        object.__setattr__(self, "_made", made)
        for name, value in known.items():
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:  # called for what is not there yet
        made = object.__getattribute__(self, "_made")  # a copy has all but this
        if name not in made:
            raise AttributeError(name)
        value = made[name]()
        object.__setattr__(self, name, value)
        return value


def settled(told: Explanation) -> Explanation:
    """The explanation with all of its members made, by whoever answers for what that raises."""
    return Explanation(**{field.name: getattr(told, field.name) for field in fields(Explanation)})


class _Once(Generic[_T]):
    """A call without arguments that is made once; `functools.cache` takes ten times as long."""

    __slots__ = ("_call", "_value")

    _value: _T

    def __init__(self, call: Callable[[], _T]) -> None:
        self._call = call

    def __call__(self) -> _T:
        try:
            return self._value
        except AttributeError:
            self._value = self._call()
            return self._value


def explained(
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
    """An explanation, said as all benchmarks say what they have in common.

    What is given as a call is called once, when it is first asked for.

    Args:
        verdict: on the answer; None without one.
        profile: whose it is.
        sentence: says why an answer that was read and judged is right or wrong, from what was read
            and whether it is right.
        target_label: as in `Explanation`.
        target_labels: as in `Explanation`.
        answer_label: gives the label of an answer from what was read; None for benchmarks whose
            answers have no labels.
        overlays: what can be drawn, by the role of the picture.
        noun: what the labels are.
        frames: what is framed on pictures.
        diagnosis: of an answer that was read and is not right, from what was read.
    """
    known: dict[str, object] = {
        "target_label": target_label,
        "target_labels": target_labels,
        "noun": noun,
        "frames": frames,
    }
    if verdict is None:
        known |= {"mark": None, "sentence": "", "answer_label": "", "diagnosis": None}
        return _Lazy({"overlays": overlays}, **known)
    mark = mark_of(verdict.outcome, dict(zip(profile.values, verdict.values, strict=True)))
    wrong = mark not in ("right", "unjudged")
    return _Lazy(
        {
            "sentence": lambda: _sentence(verdict, mark, sentence),
            "answer_label": lambda: _label(verdict, answer_label) if answer_label else "",
            "overlays": overlays,
            "diagnosis": lambda: (
                (_undelivered(verdict) or diagnosis(verdict.parsed or {})) if wrong else None
            ),
        },
        mark=mark,
        **known,
    )


_UNREAD_CAUSES: Final[Mapping[Outcome, Cause]] = {
    "unparsed": "format",
    "truncated": "truncated",
    "refused": "refused",
    "api_error": "no_answer",
    "media_error": "no_answer",
    "missing": "no_answer",
}


def _undelivered(verdict: Verdict) -> Diagnosis | None:
    """What is wrong where there is nothing to hold against the target."""
    cause = _UNREAD_CAUSES.get(verdict.outcome)
    return Diagnosis(cause) if cause else None


def _sentence(
    verdict: Verdict, mark: Mark, sentence: Callable[[Mapping[str, Any], bool], str]
) -> str:
    because = f": {verdict.reason}" if verdict.reason else ""
    if mark == "unjudged":
        return f"the row cannot be judged{because}"
    if mark == "none":
        return _UNANSWERED.get(verdict.outcome, "there is no answer")
    if verdict.outcome == "unparsed":
        return f"nothing could be read{because}"
    return sentence(verdict.parsed or {}, mark == "right") + (because if mark != "right" else "")


def _label(verdict: Verdict, answer_label: Callable[[Mapping[str, Any]], str]) -> str:
    if verdict.outcome not in ("ok", "unparsed"):
        return NOTHING
    if verdict.parsed is None:
        return UNREAD if verdict.outcome == "unparsed" else READ
    return answer_label(verdict.parsed) or UNREAD


def plain(verdict: Verdict, profile: Profile, *, right: bool) -> str:
    """The sentence where nothing is known but the profile's values."""
    if right:
        return "the answer is the right one"
    values = zip(profile.values, verdict.values, strict=True)
    wrong = [name for name, value in values if value is False or value == 0]
    return f"the profile says no to {', '.join(wrong)}" if wrong else "the answer is not all right"


# Answers that are actions like the steps' own.


class Reader(Protocol):
    """What reads a model's text as an action, as a task does for histories of predictions."""

    def read(self, text: str, receipt: Mapping[str, Any] | None = None) -> Action | None:
        """The action; None if it is none."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a profile's rule is called where it decides against the eye.

    Attributes:
        borderline: why a point inside is wrong, or one outside right; empty where nobody knows.
        same_text: why another text than the target's is right.
        unlike: why an answer is wrong in which nothing differs from the target; empty where the
            verdict says it.
        reach: how far from a target point an answer may be, in thousandths of the screen.
    """

    borderline: str = "the profile compares in the unit of the answer"
    same_text: str = "both type the same text"
    unlike: str = "the profile tells them apart"
    reach: float = REACH


def read_again(reader: Reader, verdict: Verdict | None) -> Action | None:
    """What a profile read in an answer, as an action, its places as the answer has them.

    None where there is no answer, or answers are no such actions.

    Raises:
        PluginError: the reader is of another distribution, and fails.
    """
    if verdict is None or verdict.parsed is None:
        return None
    try:
        code = verdict.parsed.get("code")
        return reader.read(json.dumps(verdict.parsed) if code is None else fenced(code), {})
    except PluginError:
        raise
    except (OmnidataError, LookupError, TypeError, ValueError, OverflowError):
        return None


def fenced(code: str) -> str:
    """Code as an answer has it."""
    return f"```python\n{code}\n```"


def by_action(
    step: Step,
    verdict: Verdict | None,
    profile: Profile,
    read: Callable[[], Action | None],
    *,
    receipt: Mapping[str, Any] | None,
    sentence: Callable[[Action, Action, Overlays, bool], str],
    reach: float = REACH,
    rules_known: bool = True,
) -> Explanation:
    """The explanation of an answer that is an action, held against the step's own.

    Args:
        step: the step; its action is the target.
        verdict: on the answer.
        profile: whose verdict it is.
        read: gives the answer, its places as the model wrote them; None where it is no action.
        receipt: of the answer.
        sentence: says why, from the target, the answer, the overlays and whether it is right.
        reach: how far from a target point an answer may be, in thousandths of the screen.
        rules_known: as in `diagnose`.
    """
    wanted = step.action
    said = _Once(read)
    overlays = _Once(lambda: _of_actions(step, said(), receipt))

    def told(parsed: Mapping[str, Any], right: bool) -> str:
        answer = said()
        if wanted is None or answer is None:
            assert verdict
            return plain(verdict, profile, right=right)
        return sentence(wanted, answer, overlays(), right)

    def label(parsed: Mapping[str, Any]) -> str:
        if answer := said():
            return answer.label
        return UNREAD if verdict and verdict.outcome == "unparsed" else _brief(parsed)

    def diagnosis(parsed: Mapping[str, Any]) -> Diagnosis:
        assert verdict
        values = dict(zip(profile.values, verdict.values, strict=True))
        same_type = bool(values.get("type_match"))
        apart = not values.get("type_match", True)  # it tells the types apart, wherever they are
        done, answered = ((one, *one.then) if one else () for one in (wanted, said()))
        return diagnose(
            step,
            done,
            answered,
            receipt=receipt,
            reach=reach,
            same_type=same_type,
            rules_known=rules_known or apart,
        )

    return explained(
        verdict,
        profile,
        told,
        target_label=wanted.label if wanted else "",
        target_labels=tuple(one.label for one in (wanted, *wanted.then)) if wanted else (),
        answer_label=label if wanted else None,
        overlays=lambda: {SCREENSHOT: overlays()},
        diagnosis=diagnosis,
    )


def _brief(parsed: Mapping[str, Any]) -> str:
    """What a profile read and only it understands, in a few letters."""
    kind = parsed.get("kind")
    if not isinstance(kind, str):
        values = list(parsed.values())
        kind = str(values[0]) if len(values) == 1 else json.dumps(parsed, ensure_ascii=False)
    return kind if len(kind) <= _BRIEF else kind[: _BRIEF - 1] + "…"


def _of_actions(step: Step, said: Action | None, receipt: Mapping[str, Any] | None) -> Overlays:
    """Where a step's action is right, and where an answer points."""
    wanted = step.action
    answers = [
        on_screen(step, regions[0], receipt) if regions and isinstance(regions[0], Point) else None
        for regions in ((said.start, said.end) if said else ((), ()))
    ]
    return Overlays(
        tuple(in_pixels(region, step.screen) for region in (wanted.start if wanted else ())),
        tuple(in_pixels(region, step.screen) for region in (wanted.end if wanted else ())),
        *answers,
    )


def acted(
    step: Step, wanted: Action, said: Action, overlays: Overlays, *, right: bool, rule: Rule
) -> str:
    """Why an action is right or wrong: by its primitive, its text, its places, its details."""
    kind = said.kind
    if said.label != wanted.label:
        return f"the answer is {said.label}, the expert's action is {wanted.label}"
    if kind == "type":
        return typed(wanted, said, right=right, rule=rule)
    if kind in _PLACED:
        return placed(step, "the point", overlays.answer, overlays.target, right=right, rule=rule)
    if kind in ("swipe", "drag"):
        return _swiped(step, overlays, right=right, rule=rule)
    return _detailed(wanted, said, right=right, rule=rule)


def _detailed(wanted: Action, said: Action, *, right: bool, rule: Rule) -> str:
    """Why an action without a place is right or wrong, which has the target's label."""
    for noun, target, answer in _details(wanted, said):
        if target.casefold() == answer.casefold():
            continue
        if right:
            return f"the profile takes {answer or f'no {noun}'} for {target or f'no {noun}'}"
        if not answer:
            return f"the answer has no {noun}, the expert's action has {target}"
        verb = "differ" if noun == "keys" else "differs"
        return f"the {noun} {verb}: {answer} in place of {target or f'no {noun}'}"
    both = f"both are {said.label}"
    if said.keys:
        both = f"both have the keys {_pressed(said)}"
    elif said.app:
        both = f"both open {said.app}"
    return both if right or not rule.unlike else f"{both}, and {rule.unlike}"


def _details(wanted: Action, said: Action) -> list[tuple[str, str, str]]:
    """What actions have beside a label and places: its name, the target's and the answer's."""
    return [
        ("keys", _pressed(wanted), _pressed(said)),
        ("app", wanted.app or "", said.app or ""),
        ("status", wanted.status or "", said.status or ""),
        ("direction", wanted.direction or "", said.direction or ""),
    ]


def _pressed(action: Action) -> str:
    """The names of the keys, those of a hotkey with a plus between them."""
    return ("+" if action.kind in ("hotkey", "hold", "release") else " ").join(action.keys)


def typed(wanted: Action, said: Action, *, right: bool, rule: Rule) -> str:
    """Why a text to type is right or wrong."""
    if said.text is None:
        return "the answer has no text to type"
    if right:
        return "both type the same text" if said.text == wanted.text else rule.same_text
    return f"the text differs: {quoted(said.text)} in place of {quoted(wanted.text)}"


def placed(
    step: Step,
    name: str,
    said: Point | None,
    regions: tuple[Region, ...],
    *,
    right: bool,
    rule: Rule,
) -> str:
    """Why one place of an answer is right or wrong.

    Args:
        step: what was asked about.
        name: of the place, e.g. "the point".
        said: the place in pixels; None where the answer has none.
        regions: where it is right, in pixels.
        right: whether it is.
        rule: of the profile.
    """
    if min(step.screen) < 1:
        return f"nobody knows the size of the screen, and so not where {name} is"
    if said is None:
        return f"{name} is missing in the answer, or on no screen"
    if not regions:
        return f"{name} {shown(said)} has nothing to be held against: the row names no place"
    inside = is_inside(said, regions, step.screen, reach=rule.reach)
    sentence = f"{name} {shown(said)} is {gap(said, regions, step.screen)}"
    if inside == right:
        return sentence
    if not rule.borderline:
        return f"{sentence}, which the profile {'counts' if right else 'does not count'} as right"
    return f"{sentence}, {'yet' if right else 'but'} {rule.borderline}"


def _swiped(step: Step, overlays: Overlays, *, right: bool, rule: Rule) -> str:
    start, regions = overlays.answer, overlays.target
    begins = placed(step, "the start", start, regions, right=right, rule=rule)
    starts = start and regions and is_inside(start, regions, step.screen, reach=rule.reach)
    if not right and not starts:
        return begins
    if not overlays.target_end:
        return f"{begins}, and the row names no lift"
    ends = placed(step, "the end", overlays.answer_end, overlays.target_end, right=right, rule=rule)
    return f"{begins}; {ends}" if right else ends


# What is wrong with an answer: the first thing in which it differs from the step's own action.

_UNITS: Final[tuple[Space, ...]] = get_args(Space)
_NEAR: Final = 50.0
"""How far outside a target a near miss may be, in thousandths of the screen."""
_EXACT: Final = 1.0
"""How far from a target point what is exactly there may be: what rounding takes, in thousandths."""
_MOST_TEXT: Final = 10_000
"""Characters of a text that are compared."""
_IDLE: Final = frozenset({"none", "wait"})
_BUTTONS: Final = frozenset({"back", "home", "recent", "enter", "keys"})


def diagnose(
    step: Step,
    wanted: Sequence[Action],
    said: Sequence[Action],
    *,
    receipt: Mapping[str, Any] | None,
    reach: float = REACH,
    same_type: bool = False,
    rules_known: bool = True,
) -> Diagnosis:
    """What is wrong with an answer that a profile does not count as right.

    Types of action come first, then directions, elements and places, texts and keys. A place
    outside its target is a near miss up to 50 thousandths of the screen from the target's edge, or
    from the reach of a target point; farther away, it may be right in another unit or with its axes
    swapped; else it is another element. Where a place within the reach of a target point is all
    that differs, a profile whose rules nobody knows wants it nearer, and it is a near miss too,
    unless it is exactly there in another unit or with its axes swapped. A text is near where half
    of its characters or more are right (similarity 1 - distance / length of at least 0.5, the
    threshold of ANLS, Biten et al. 2019), case and white space aside.

    Args:
        step: what was asked about.
        wanted: what is right, in order; empty where nobody knows it as actions.
        said: the answer, its places as the model wrote them; empty where it is no action.
        receipt: of the answer, with the size of the picture as it was sent.
        reach: how far from a target point an answer may be, in thousandths of the screen.
        same_type: whether the profile counts both as one type of action.
        rules_known: whether the reach is the profile's, which then has another rule against what is
            within it.

    Returns:
        The first difference, or `rule` where there is none.
    """
    if not wanted or not said:
        return Diagnosis("rule")
    for one, other in zip(wanted, said, strict=False):
        if cause := _type_cause(one, other, same_type=same_type):
            return Diagnosis(cause)
    if len(wanted) != len(said):
        return Diagnosis("wrong_type")

    def differing(within: float) -> Diagnosis | None:
        pairs = zip(wanted, said, strict=True)
        found = (_difference(step, one, other, receipt, within) for one, other in pairs)
        return next(filter(None, found), None)

    if found := differing(reach):
        return found
    pairs = zip(wanted, said, strict=True)
    missing = any(at and not own for pair in pairs for at, own in _places(*pair))
    if rules_known or missing or reach <= _EXACT:
        return Diagnosis("rule")
    found = differing(_EXACT)
    if found and found.cause == "wrong_element":
        return Diagnosis("near_miss")
    return found or Diagnosis("rule")


def _type_cause(wanted: Action, said: Action, *, same_type: bool) -> Cause | None:
    kinds = {wanted.kind, said.kind}
    if len(kinds) == 1:
        other = wanted.status and said.status and wanted.status != said.status
        clicks = (wanted.button, wanted.count) != (said.button, said.count)
        return "wrong_type" if other or clicks else None
    if kinds == _IDLE:
        return None
    if wanted.kind == "done":
        return "went_on"
    if said.kind == "done":
        return "stopped_early"
    if wanted.kind in _IDLE:
        return "acted_early"
    if said.kind in _IDLE:
        return "waited_too_long"
    return "wrong_key" if same_type and kinds <= _BUTTONS else "wrong_type"


def _difference(
    step: Step, wanted: Action, said: Action, receipt: Mapping[str, Any] | None, reach: float
) -> Diagnosis | None:
    """What differs in two actions of one type."""
    ways = _way(wanted), _way(said)
    if None not in ways and ways[0] != ways[1]:
        return Diagnosis("wrong_direction")
    if None not in (elements := (wanted.element, said.element)) and len({*elements}) > 1:
        return Diagnosis("wrong_element")
    for regions, own in _places(wanted, said):
        if regions and not own and wanted.kind in _PLACED:
            return Diagnosis("format")
        if found := place_cause(step, regions, own, receipt=receipt, reach=reach):
            return found
    for text, own_text in ((wanted.text, said.text), (wanted.app, said.app)):
        if text is not None and (found := _text_cause(text, own_text)):
            return found
    if [key.casefold() for key in wanted.keys] != [key.casefold() for key in said.keys]:
        return Diagnosis("wrong_key")
    return None


def _places(wanted: Action, said: Action) -> list[tuple[tuple[Region, ...], tuple[Region, ...]]]:
    """The places that are compared, the target's and the answer's."""
    if wanted.kind == "scroll":
        return []
    if wanted.kind not in ("swipe", "drag"):  # where a tap's finger is lifted is no second target
        return [(wanted.start, said.start)]
    return [(wanted.start, said.start), (wanted.end, said.end)]


def _way(action: Action) -> Direction | None:
    """Which way a finger goes or a wheel turns, as far as anything says it."""
    if action.direction or action.kind != "swipe" or not (action.start and action.end):
        return action.direction
    start, end = centre(action.start[0]), centre(action.end[0])
    return heading((start.x, start.y), (end.x, end.y))


def place_cause(
    step: Step,
    wanted: Sequence[Region],
    said: Sequence[Region],
    *,
    receipt: Mapping[str, Any] | None,
    reach: float = REACH,
) -> Diagnosis | None:
    """What is wrong with a place; None where it is right, missing, or nobody can say.

    Args:
        step: what was asked about.
        wanted: the alternatives that are right.
        said: the place of the answer, as the model wrote it.
        receipt: of the answer.
        reach: how far from a target point an answer may be, in thousandths of the screen.
    """
    if not wanted or not said:
        return None
    screen, own = step.screen, centre(said[0])
    units: tuple[Space, ...] = (own.space, *(unit for unit in _UNITS if unit != own.space))
    if min(screen) < 1:  # shares can be compared, pixels cannot
        if any(region.space == "px" for region in (*wanted, *said)):
            return None
        screen, units = (1000, 1000), tuple(unit for unit in units if unit != "px")
    regions = [in_pixels(region, screen) for region in wanted]
    pair = scaled(own.x, own.y, scale_of(own.space, screen, receipt))
    off = [_off(*pair, region) for region in regions] if pair else []
    away = _outside(off, regions, screen, reach)
    if away <= 0:
        return None
    if away > _NEAR:
        nearest, reading = math.inf, ("", own.space)
        for x, y, order in ((own.x, own.y, ""), (own.y, own.x, "y before x")):
            for unit in units:
                if not order and unit == own.space:
                    continue
                pair = scaled(x, y, scale_of(unit, screen, receipt))
                near = _inside(pair, regions, screen, reach)
                if near < nearest - _SLACK:
                    nearest, reading = near, (order, unit)
        order, unit = reading
        if unit != own.space:
            return Diagnosis("other_unit", f"{unit}, {order}" if order else unit)
        if order:
            return Diagnosis("axes_swapped", order)
    far = _diagonals(off, regions)
    return Diagnosis("near_miss" if away <= _NEAR else "wrong_element", distance=far)


def _outside(off: Sequence[Pair], regions: Sequence[Region], screen: Screen, reach: float) -> float:
    """How far outside the nearest region a place is, in thousandths of the screen."""
    nearest = math.inf
    for (x, y), region in zip(off, regions, strict=False):  # of a place on no screen there are none
        away = math.hypot(1000 * x / screen[0], 1000 * y / screen[1])
        nearest = min(nearest, away - reach if isinstance(region, Point) else away)
    return nearest


def _inside(pair: Pair | None, regions: Sequence[Region], screen: Screen, reach: float) -> float:
    """How far a place that is right is from the target, in thousandths; infinity if it is wrong.

    In a box it is 0. Most answers are asked so five times.
    """
    nearest = math.inf
    if pair is None:
        return nearest
    x, y = pair
    wide, tall = _SLACK * max(1.0, abs(x)), _SLACK * max(1.0, abs(y))
    for region in regions:
        if isinstance(region, Point):
            off = 1000 * (x - region.x) / screen[0], 1000 * (y - region.y) / screen[1]
            if (away := math.hypot(*off)) <= reach and away < nearest:
                nearest = away
        elif (
            region.left - wide <= x <= region.right + wide
            and region.top - tall <= y <= region.bottom + tall
        ):
            return 0.0
    return nearest


def _diagonals(off: Sequence[Pair], regions: Sequence[Region]) -> float | None:
    """How far a place is from the nearest box, in that box's diagonals; None where none has one."""
    nearest, diagonal = math.inf, 1.0
    for (x, y), box in zip(off, regions, strict=False):
        if isinstance(box, Box):
            size = math.hypot(box.right - box.left, box.bottom - box.top)
            if size and (math.hypot(x, y), size) < (nearest, diagonal):
                nearest, diagonal = math.hypot(x, y), size
    return round(nearest / diagonal, 3) if math.isfinite(nearest) else None


def _text_cause(wanted: str, said: str | None) -> Diagnosis | None:
    """What is wrong with a text; None where it is the same."""
    if said is None:
        return Diagnosis("format")
    if said == wanted:
        return None
    one, other = (" ".join(text.casefold().split())[:_MOST_TEXT] for text in (wanted, said))
    edits = edit_distance(one, other)
    near = 2 * edits <= max(len(one), len(other))
    return Diagnosis("near_text" if near else "wrong_text", distance=edits)


# Turns in which several things are done: what they are, and where.


@dataclass(frozen=True, slots=True)
class Turn:
    """What is done in a turn.

    Attributes:
        kinds: in order, in the benchmark's words.
        starts: where, in pixels of the screen, but for the ends of drags.
        ends: where drags end.
    """

    kinds: tuple[str, ...] = ()
    starts: tuple[Region, ...] = ()
    ends: tuple[Region, ...] = ()

    @property
    def label(self) -> str:
        """The first thing that is more than moving the pointer; empty where nothing is done."""
        more = (kind for kind in self.kinds if kind not in ("move", "moveTo"))
        return next(more, self.kinds[0] if self.kinds else "")


def of_turns(target: Turn | None, said: Turn | None) -> Overlays:
    """What can be drawn of a turn and of an answer; None where one is not understood."""
    start, end = (
        next((region for region in regions if isinstance(region, Point)), None)
        for regions in ((said.starts, said.ends) if said else ((), ()))
    )
    return Overlays(target.starts if target else (), target.ends if target else (), start, end)


# Texts and distances in words.


def shown(point: Point) -> str:
    """A point in pixels, to a tenth.

    Examples:
        >>> shown(Point(512.44, 300, "px"))
        '(512.4, 300)'
    """
    return f"({_number(point.x)}, {_number(point.y)})"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0") if abs(value) < 1e9 else f"{value:.1e}"


def quoted(text: object) -> str:
    """A text between quotation marks, a long one cut off."""
    said = str(text)
    return f"“{said if len(said) <= 80 else said[:80] + '…'}”"


def gap(point: Point, regions: Sequence[Region], screen: Screen, *, noun: str = "target") -> str:
    """Where a point lies, seen from the nearest of some regions, all in pixels.

    Args:
        point: of an answer.
        regions: at least one.
        screen: width and height in pixels.
        noun: what the regions are called.

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
    region = min(regions, key=lambda each: math.hypot(*_off(point.x, point.y, each)))
    several = len(regions) > 1
    outside = "" if _is_on(point, screen) else ", off the screen"
    if isinstance(region, Point):
        about = f"the nearest of {len(regions)} {noun} points" if several else f"the {noun} point"
        distance = _thousandths(point, region, screen)
        away = f"{distance} of 1000" if distance < _FAR else "farther than any screen"
        return f"{away} away from {about}{outside}"
    about = f"the nearest of {len(regions)} {noun} boxes" if several else f"the {noun} box"
    x, y = _off(point.x, point.y, region)
    parts = []
    if x:
        parts.append(f"{_pixels(x)} {'left' if x < 0 else 'right'} of")
    if y:
        parts.append(f"{_pixels(y)} {'above' if y < 0 else 'below'}")
    return f"{' and '.join(parts)} {about}{outside}" if parts else f"inside {about}{outside}"


def is_inside(
    point: Point, regions: Sequence[Region], screen: Screen, *, reach: float = REACH
) -> bool:
    """Whether a point lies in one of the boxes, edges included, or near enough to a point.

    Args:
        point: of an answer.
        regions: all in pixels, as the point.
        screen: width and height in pixels.
        reach: how far from a point is near enough, in thousandths of the screen.
    """
    return any(
        _thousandths(point, region, screen) <= reach
        if isinstance(region, Point)
        else _off(point.x, point.y, region) == (0, 0)
        for region in regions
    )


def _off(x: float, y: float, region: Region) -> tuple[float, float]:
    """How far right of and below the region a place is; negative: left of and above."""
    if isinstance(region, Point):
        return x - region.x, y - region.y
    return _beyond(region.left, x, region.right), _beyond(region.top, y, region.bottom)


def _beyond(low: float, value: float, high: float) -> float:
    """The distance from an interval; what lies within a billionth of an end is on it."""
    if low <= value <= high:
        return 0.0
    off = min(0.0, value - low) + max(0.0, value - high)
    return off if abs(off) > _SLACK * max(1.0, abs(value)) else 0.0


def _thousandths(point: Point, target: Point, screen: Screen) -> int:
    one, other = (convert(each, "norm1000", screen) for each in (point, target))
    distance = math.dist((one.x, one.y), (other.x, other.y))
    return math.ceil(distance - 1e-9) if distance < _FAR else _FAR


def _pixels(distance: float) -> str:
    """A distance; less than 10 pixels with a digit after the point."""
    size = abs(distance)
    if size >= 1e9:
        return f"{size:.1e} px"
    if size < 0.05:
        return "less than 0.1 px"
    return f"{size:.0f} px" if size >= 10 or size == int(size) else f"{size:.1f} px"


def _is_on(point: Point, screen: Screen) -> bool:
    return 0 <= point.x <= screen[0] and 0 <= point.y <= screen[1]
