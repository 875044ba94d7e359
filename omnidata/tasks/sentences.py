"""Sentences about answers: how an action, a text or a place differs from the right one.

Positions are in pixels of the screen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from omnidata.actions import Action, Point, Region, Screen, convert
from omnidata.tasks.diagnosis import PLACED, REACH, off_by
from omnidata.types import Overlays, Step

_FAR: Final = 10**9
"""Thousandths of a screen beyond which distances are not distinguished."""


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
