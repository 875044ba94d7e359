"""Answers that point at a place on the screen, as benchmarks of grounding read and explain them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypedDict

from omnidata.actions import Action, Box, Point, Region, Screen, Space, convert
from omnidata.dialects import Asked, UnreadError
from omnidata.tasks.benchmark import ParsedAnswer, Receipt, Speech
from omnidata.tasks.coordinates import Resizing, Side, in_pixels, on_screen, point_said, resizing
from omnidata.tasks.diagnosis import place_cause
from omnidata.tasks.explaining import SCREENSHOT, explain
from omnidata.tasks.points import Reading, read
from omnidata.tasks.profile import Profile
from omnidata.tasks.sentences import RuleWords, explain_place
from omnidata.types import Cause, Diagnosis, Explanation, Overlays, Step, Verdict

Place = Point | None
"""Where an answer points; None if it says that the element is not on the screen."""


class PointRecord(TypedDict, total=False):
    """An answer in lines of scores."""

    point: tuple[Side, Side] | None
    space: Space
    negative: bool


def parse_place(
    text: str, step: Step, receipt: Receipt, *, reading: Reading, space: Space
) -> ParsedAnswer[Place]:
    """Read an answer that is a point, a box, whose centre counts, or "negative".

    Args:
        text: the answer.
        step: of the question.
        receipt: has the size of the sent picture.
        reading: as in `omnidata.tasks.points.read`.
        space: the unit that the prompt asks for.

    Raises:
        UnreadError: it is none of them.
    """
    resized = resizing_of(step, receipt, space)
    found = read(text, reading)
    if found is None:
        raise UnreadError("neither a point nor a box")
    if found.point is None:
        return ParsedAnswer(None, {"negative": True})
    stated = {"space": found.space} if found.space else {}
    return answer_at(Point(*found.point, found.space or space), resized, stated)


def resizing_of(step: Step, receipt: Receipt, space: Space) -> Resizing | None:
    """Return how the picture was resized, if answers are in pixels.

    It is asked before an answer is read: a receipt that cannot be read is an error, whatever the
    answer says.

    Raises:
        PredictionError: the receipt cannot be read.
    """
    return resizing(receipt, step.screen, where=step.sample_id) if space == "px" else None


def answer_at(
    point: Point, resized: Resizing | None, stated: Mapping[str, Any] | None = None
) -> ParsedAnswer[Place]:
    """Return the answer that points at a place.

    Args:
        point: as the model wrote it; pixels are those of the sent picture.
        resized: how that picture was resized; None if it was not.
        stated: the rest of the record.
    """
    record = {"point": json_pair(point.x, point.y), **(stated or {})}
    written = (Action("tap", (point,)),)
    if point.space == "px" and resized:
        point = Point(*resized.to_screen((point.x, point.y)), "px")
    return ParsedAnswer(point, record, written)


def json_pair(x: float, y: float) -> list[float | str]:
    """Return two numbers for JSON, which has no infinity: one that no float holds is a text."""
    return [side if math.isfinite(side) else str(side) for side in (x, y)]


def place_on_screen(step: Step, parsed: ParsedAnswer[Any] | None, receipt: Receipt) -> Point | None:
    """Return the point of an answer in pixels of the screen; None without one."""
    point = place_as_written(parsed)
    return on_screen(step, point, receipt) if point else None


def place_as_written(parsed: ParsedAnswer[Any] | None) -> Point | None:
    """Return the point as the model wrote it; None without one, or beyond all numbers."""
    if parsed is None or not parsed.written:
        return None
    point: Region = parsed.written[0].start[0]
    assert isinstance(point, Point)
    return point if math.isfinite(point.x) and math.isfinite(point.y) else None


def boxes_of(step: Step) -> list[Box]:
    """Return the boxes of a step; an answer in any of them is right."""
    regions = step.action.start if step.action else ()
    return [region for region in regions if isinstance(region, Box)]


def only_box(action: Action, screen: Screen) -> Box:
    """Return the one box of a tap, in pixels, for rows with a box.

    Args:
        action: from errata.
        screen: width and height in pixels.

    Raises:
        ValueError: the action is no tap in one box.
    """
    regions = [in_pixels(region, screen) for region in action.start]
    if action.kind != "tap" or len(regions) != 1 or not isinstance(regions[0], Box):
        raise ValueError("a row has one box")
    return regions[0]


def edges_in_shares(box: Box, screen: Screen) -> list[float]:
    """Return left, top, right and bottom of a box in shares of the screen.

    Args:
        box: in pixels or shares.
        screen: width and height in pixels.
    """
    width, height = screen if box.space == "px" else (1, 1)
    return [box.left / width, box.top / height, box.right / width, box.bottom / height]


def is_within(point: Point, edges: Sequence[float], screen: Screen) -> bool:
    """Return whether a point lies within edges in shares of the screen, the edges included.

    Args:
        point: in any unit.
        edges: left, top, right and bottom.
        screen: width and height in pixels.

    Examples:
        >>> is_within(Point(640, 180, "px"), (0.5, 0, 1, 0.5), (1280, 720))
        True
    """
    share = convert(point, "rel", screen if point.space == "px" else (1, 1))
    left, top, right, bottom = edges
    return left <= share.x <= right and top <= share.y <= bottom


def explain_point(
    step: Step,
    verdict: Verdict | None,
    parsed: ParsedAnswer[Any] | None,
    profile: Profile,
    receipt: Receipt,
    *,
    regions: tuple[Region, ...],
    rule: RuleWords,
    kinds: tuple[str, str] = ("point", "point"),
    other: tuple[Callable[[Mapping[str, Any], bool], str], Cause] | None = None,
) -> Explanation:
    """Explain a verdict on an answer that points at a place; the first arguments are `explain`'s.

    Args:
        step: of the question.
        verdict: on the answer; None without one.
        parsed: the answer; None if it could not be read.
        profile: whose verdict it is.
        receipt: of the answer.
        regions: the right places, in pixels of the screen.
        rule: the rule in words.
        kinds: the kind of the right answer and of the model's; the first is empty without one.
        other: returns the sentence, as in `explain`, and the cause of a wrong answer, where no
            place decides.
    """
    point = place_on_screen(step, parsed, receipt)

    def sentence(record: Mapping[str, Any], right: bool) -> str:
        if other:
            return other[0](record, right)
        return explain_place(step, "the point", point, regions, right=right, rule=rule)

    def diagnosis(record: Mapping[str, Any]) -> Diagnosis:
        written = place_as_written(parsed)
        if other or written is None:
            return Diagnosis(other[1] if other else "wrong_element")
        return place_cause(step, regions, (written,), receipt=receipt) or Diagnosis("rule")

    return explain(
        verdict,
        profile,
        sentence,
        target_label=kinds[0],
        answer_label=lambda record: kinds[1],
        overlays=lambda: {SCREENSHOT: Overlays(regions, (), point)},
        noun="kind",
        diagnosis=diagnosis,
    )


class PointSpeech(Speech):
    """Dialects ask a benchmark of grounding for a place.

    Args:
        space: the unit of places that the benchmark asks for.
    """

    asked: ClassVar[Asked] = "point"

    def __init__(self, space: Space) -> None:
        self.space = space

    def adopt(self, actions: Sequence[Action], step: Step, receipt: Receipt) -> ParsedAnswer[Place]:
        """Return the place of the first action."""
        x, y = point_said(actions[0])
        resized = resizing_of(step, receipt, self.space)
        return answer_at(Point(float(x), float(y), self.space), resized)
