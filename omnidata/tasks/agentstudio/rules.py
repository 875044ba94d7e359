"""The rules of AgentStudio's benchmarks.

CriticBench (section 5.3, appendix E): the *release* searches the right word, `True` or `False`,
anywhere in the response, so a response with both is always right. It stores no prediction: a wrong
response counts as the opposite of the truth. The *paper* reads the last `Answer: True` or `Answer:
False`, in any case and in bold. A response without one is unread and counted separately.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from omnidata.actions import Point, Space, ratio
from omnidata.metrics.edit_distance import edit_distance
from omnidata.tasks.agentstudio.answers import (
    DRESS,
    Letters,
    Pair,
    Reading,
    read_letter,
    read_letters,
    read_released,
    released_letter,
    released_letters,
)
from omnidata.tasks.agentstudio.rows import screen_of, target_box
from omnidata.tasks.points import answers, read_point

_TRUTH = re.compile(
    rf"[\s{re.escape(DRESS)}]*+(true|false)(?![^\W_])"
    r"(?![\s*_`\"'”’]*+(?:or\b|[/|])[\s*_`\"'“‘]*+(?:true|false))",
    re.IGNORECASE,
)


def released_score(success: bool, text: str | None) -> bool | None:
    """Return whether the right word occurs in the response, in exactly that case.

    Args:
        success: whether the trajectory succeeded.
        text: the response; None if there is none.

    Returns:
        The verdict; None if the release raises an error, as without a response.

    Examples:
        >>> released_score(True, "not True, so Answer: False"), released_score(True, "Answer: true")
        (True, False)
    """
    return None if text is None else ("True" if success else "False") in text


def read_success(text: str | None) -> bool | None:
    r"""Return the truth value of the last `Answer:` that has one; None = unread.

    Examples:
        >>> read_success("Answer: True. No:\n**Answer:** FALSE\nAnswer: see above")
        False
        >>> read_success("True") or read_success("Answer: Truecaller")
        >>> read_success("Answer: True or False")
    """
    for answer in answers(text or ""):
        if found := _TRUTH.match(answer):
            return found[1].lower() == "true"
    return None


# IDMBench: letters against the actions that were made (AgentStudio, section 5.2, appendix D).
#
# A row whose own answer cannot be written as letters is not judged: the verdict names the fault.
# The released evaluator raises there.

Fault = Literal["", "unread", "operation-unknown", "window-empty"]


class LettersVerdict(NamedTuple):
    """The verdict on one response.

    Attributes:
        correct: whether the letters equal the reference; None if the row cannot be judged.
        distance: edits from the letters to the reference; None if the row cannot be judged.
        parsed: the letters read; () = none.
        reference: the row's letters; () for a fault of the row.
        fault: "unread" (no letters: wrong, and as many edits as the reference has letters),
            "operation-unknown" and "window-empty" (faults of the row); empty otherwise.
    """

    correct: bool | None
    distance: int | None
    parsed: Letters
    reference: Letters
    fault: Fault = ""


def judge_single(
    operation: str, action_space: Sequence[str], text: str | None, *, reading: Reading
) -> LettersVerdict:
    """Judge IDM-Single: one letter for the action between two screenshots.

    Args:
        operation: the recorded action.
        action_space: the choices, in the order of their letters.
        text: the response; None if there is none.
        reading: "release" uses `released_letter`, "paper" uses `read_letter`.

    Examples:
        >>> space = ["CLICK", "SELECT", "TYPE"]
        >>> judge_single("CLICK", space, "**Answer:** A", reading="paper").correct
        True
        >>> judge_single("TYPE", space, "Answer: Click", reading="release")
        LettersVerdict(correct=True, distance=0, parsed=('C',), reference=('C',), fault='')
        >>> judge_single("HOVER", space, "Answer: A", reading="paper").fault
        'operation-unknown'
    """
    letter = (released_letter if reading == "release" else read_letter)(text)
    return judge_letters(() if letter is None else (letter,), [operation], action_space)


def judge_multiple(
    operations: Sequence[str], action_space: Sequence[str], text: str | None, *, reading: Reading
) -> LettersVerdict:
    """Judge IDM-Multiple: the letters of all actions of a window, in order.

    Args:
        operations: the actions that the prompt asks for; none is a fault of the row.
        action_space: the choices, in the order of their letters.
        text: the response; None if there is none.
        reading: "release" uses `released_letters`, "paper" uses `read_letters`.

    Examples:
        >>> space = ["CLICK", "SELECT", "TYPE"]
        >>> judge_multiple(["CLICK", "TYPE"], space, "Answer: A, C", reading="paper")
        LettersVerdict(correct=True, distance=0, parsed=('A', 'C'), reference=('A', 'C'), fault='')
        >>> judge_multiple(["CLICK", "TYPE"], space, "Answer: A, C", reading="release").distance
        1
    """
    letters = (released_letters if reading == "release" else read_letters)(text)
    return judge_letters(letters or (), operations, action_space)


def judge_letters(
    letters: Letters, operations: Sequence[str], action_space: Sequence[str]
) -> LettersVerdict:
    """Judge letters that were read.

    Args:
        letters: of the answer; () if none could be read.
        operations: the recorded actions; none is a fault of the row.
        action_space: the choices, in the order of their letters.
    """
    if not operations:
        return LettersVerdict(None, None, letters, (), "window-empty")
    reference = letters_of(operations, action_space)
    if reference is None:
        return LettersVerdict(None, None, letters, (), "operation-unknown")
    distance = edit_distance(letters, reference)
    return LettersVerdict(distance == 0, distance, letters, reference, "" if letters else "unread")


def letters_of(operations: Sequence[str], action_space: Sequence[str]) -> Letters | None:
    """Return the letters of operations; None if the action space lacks one of them.

    Examples:
        >>> letters_of(["TYPE", "CLICK"], ["CLICK", "SELECT", "TYPE"])
        ('C', 'A')
    """
    known = {name: chr(ord("A") + place) for place, name in reversed([*enumerate(action_space)])}
    if not all(operation in known for operation in operations):
        return None
    return tuple(known[operation] for operation in operations)


# GroundUI: whether a point hits (AgentStudio, section 5.1, appendix C.3).
#
# For the *release* it must be strictly inside the box. For the *paper* it "lies within" the box, so
# its edges count. The released evaluator takes the unit of the coordinates from a model's name.

ToScreen = Callable[[Pair], Pair]
"""From pixels of the picture that a model was shown to those of the row's."""
PointFault = Literal["", "no-pair", "box-unusable", "resolution-unusable"]


class PointVerdict(NamedTuple):
    """The verdict on one response.

    Attributes:
        hit: whether the point hits the box; None if the row cannot be judged, because of `fault`.
        point: the point in pixels of the screenshot; None if unread or not convertible.
        fault: "no-pair" (the response is unread and counts as a miss), "box-unusable" and
            "resolution-unusable" (faults of the row); empty otherwise.
    """

    hit: bool | None
    point: Pair | None
    fault: PointFault = ""


def judge_released(
    row: Mapping[str, Any],
    text: str | None,
    *,
    space: Space,
    to_screen: ToScreen | None = None,
) -> PointVerdict:
    """Return the released verdict: strictly inside the box, in pixels, products in float64.

    The released evaluator raises an error for a row's fault. It uses "px" for one model's name only
    and has no "norm1000", so no profile has a released score of that.

    Args:
        row: the untouched row; `bbox` is [left, top, right, bottom] and `resolution` [W, H], both
            in pixels.
        text: the response; None = there is none.
        space: unit of the coordinates in the response.
        to_screen: converts pixels of a resized picture; None if it had the row's size.

    Examples:
        >>> row = {"bbox": [1064, 99, 1148, 140], "resolution": [1440, 900]}
        >>> judge_released(row, "(0.85, 0.07)", space="rel").hit  # appendix C.3
        False
        >>> judge_released(row, "(1064, 120)", space="px")
        PointVerdict(hit=False, point=(1064.0, 120.0), fault='')
    """
    pair = read_released(text)
    point = _screen_point(pair, space, to_screen)
    return judge_pair(row, point, reading="release", space=space)


def judge_point(
    row: Mapping[str, Any],
    text: str | None,
    *,
    space: Space,
    to_screen: ToScreen | None = None,
) -> PointVerdict:
    """Return the paper's verdict: within the box, edges included.

    A tolerance of 1e-9 makes up for rounding: a point converted from an edge lies on that edge. A
    box without height can be hit; a box that is infinite or upside down cannot be judged.

    Args:
        row: the untouched row; `bbox` is [left, top, right, bottom] and `resolution` [W, H], both
            in pixels.
        text: the response; None = there is none.
        space: unit of the coordinates in the response.
        to_screen: converts pixels of a resized picture; None if it had the row's size.

    Examples:
        >>> row = {"bbox": [336, 652, 466, 652], "resolution": [1440, 900]}
        >>> judge_point(row, "(400, 652)", space="px").hit
        True
        >>> judge_point({"bbox": None}, "(400, 652)", space="px")
        PointVerdict(hit=None, point=(400.0, 652.0), fault='box-unusable')
    """
    point = _screen_point(read_point(text), space, to_screen)
    return judge_pair(row, point, reading="paper", space=space)


def _screen_point(pair: Pair | None, space: Space, to_screen: ToScreen | None) -> Point | None:
    if pair is None:
        return None
    return Point(*(to_screen(pair) if space == "px" and to_screen else pair), space)


def judge_pair(
    row: Mapping[str, Any], point: Point | None, *, reading: Reading, space: Space
) -> PointVerdict:
    """Judge the point of an answer.

    Args:
        row: as in `judge_point`.
        point: in the unit of the answer, pixels of the row's screenshot; None if unread.
        reading: whose rule: "paper" as `judge_point`, "release" as `judge_released`.
        space: unit that the prompt asks for.
    """
    pixels = pair_in_pixels(point, row.get("resolution")) if point else None
    if reading == "release":
        if point is None:
            return PointVerdict(False, None, "no-pair")
        if pixels is None:
            return PointVerdict(None, None, "resolution-unusable")
        edges = _numbers(row.get("bbox"), 4)
        if edges is None:
            return PointVerdict(None, pixels, "box-unusable")
        left, top, right, bottom = edges
        return PointVerdict(left < pixels[0] < right and top < pixels[1] < bottom, pixels)
    box = target_box(row)
    if box is None:
        return PointVerdict(None, pixels, "box-unusable")
    if space != "px" and screen_of(row) is None:
        return PointVerdict(None, None, "resolution-unusable")
    if pixels is None:
        return PointVerdict(False, None, "no-pair")
    x, y = pixels
    return PointVerdict(_within(box.left, x, box.right) and _within(box.top, y, box.bottom), pixels)


def _within(low: float, value: float, high: float) -> bool:
    return low - 1e-9 * abs(low) <= value <= high + 1e-9 * abs(high)


def pair_in_pixels(point: Point, resolution: Any) -> Pair | None:
    """Return a point in pixels of the row's screenshot; None without a usable size.

    Args:
        point: in any unit.
        resolution: [W, H] of the row, untouched.
    """
    if point.space == "px":
        return point.x, point.y
    size = _numbers(resolution, 2)
    if size is None:
        return None
    (a, b), (c, d) = (ratio(point.space, extent) for extent in size)
    return point.x * a / b, point.y * c / d


def _numbers(value: Any, count: int) -> list[Any] | None:
    if not isinstance(value, list | tuple) or len(value) != count:
        return None
    for number in value:
        if not isinstance(number, int | float):
            return None
        if isinstance(number, int) and abs(number) > 1 << 1000:
            return None
    return list(value)
