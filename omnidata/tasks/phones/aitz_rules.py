"""Android in the Zoo's evaluator: as released, and with what is broken mended.

Source: IMNearth/CoAT, `coat/evaluate.py` and `screen_utils.py`. As released:

* types: click, scroll, type, press, stop;
* a click is a box; it is right if, enlarged by a fifth, it holds the expert's point, or overlaps
  with an enlarged element that holds that point, intersection over union above 0.5; an element
  may be named by its number in reading order, but not the first, for 0 is taken for none;
* a scroll has the same direction: the expert's is vertical from 0.9 of its horizontal way on;
* of two texts one is in the other, or their Levenshtein ratio is above 0.8;
* a press has the same button, and every end is right. Whatever has "press" in its name is one:
  LONG_PRESS has the type of a press.

But the expert's point is only looked up for scrolls. For a click it is (0, 0), and hardly any click
is right. Mended: the point is the expert's; a click without a box is right where its point lies in
such an element, or is the expert's; an empty text is no part of any other; success and failure are
different things; a long press is no press of a button; the first element counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key
from typing import Final, Literal

from omnidata.actions import Direction, Screen
from omnidata.tasks.phones.actions import Kind, Move, Pair, Truth, is_tap

Type = Literal["click", "scroll", "type", "press", "stop"]
Verdict = tuple[bool, bool]
Edges = tuple[float, float, float, float]
"""Left, top, right, bottom in pixels."""

ENLARGED: Final = 1.2
OVERLAP: Final = 0.5
RATIO: Final = 0.8
STEEP: Final = 0.9

_TYPES: Final[dict[Kind, Type]] = {
    Kind.SWIPE: "scroll",
    Kind.TYPE: "type",
    Kind.BACK: "press",
    Kind.HOME: "press",
    Kind.ENTER: "press",
    Kind.BUTTON: "press",
    Kind.COMPLETE: "stop",
    Kind.IMPOSSIBLE: "stop",
    Kind.STOP: "stop",
}


def type_of(move: Move) -> Type | None:
    """The evaluator's type of a move; None for what it does not know."""
    if move.kind is Kind.GESTURE:
        still = not move.touch or not move.lift or is_tap(move.touch, move.lift)
        return "click" if still else "scroll"
    return _TYPES.get(move.kind)


def direction_of(move: Move) -> Direction | None:
    """Which way a finger goes; None if nobody says it.

    Examples:
        >>> direction_of(Move(Kind.GESTURE, (0.5, 0.5), (0.6, 0.41)))
        'up'
    """
    if move.direction is not None or not move.touch or not move.lift:
        return move.direction
    (x, y), (to_x, to_y) = move.touch, move.lift
    if abs(y - to_y) >= STEEP * abs(to_x - x):
        return "up" if to_y < y else "down"
    return "left" if to_x < x else "right"


def released(truth: Truth, said: Move, screen: Screen) -> Verdict | None:
    """What the evaluator gives.

    Args:
        truth: the expert's move and the elements.
        said: the answer; its box from 0 to 1.
        screen: width and height of the screenshot in pixels.

    Returns:
        None for a click on a screen of unknown size.
    """
    wanted = type_of(truth.move)
    if wanted == "click" and min(screen) < 1:
        return None
    given = "press" if said.kind is Kind.LONG_PRESS else type_of(said)
    if wanted is None or wanted != given:
        return False, False
    if wanted == "click":
        named = _named(truth, said.element, screen) if said.element else None
        box = named or _rounded(said.box, screen)
        return True, bool(box) and _clicks(box, (0, 0), _elements(truth, screen))
    if wanted == "scroll":
        return True, direction_of(truth.move) == direction_of(said)
    if wanted == "type":
        return True, _same(truth.move.text, said.text)
    return True, wanted == "stop" or truth.move.kind is said.kind


def fixed(truth: Truth, said: Move, screen: Screen) -> Verdict | None:
    """The rules with what is broken mended; arguments and result as in `released`."""
    wanted, move = type_of(truth.move), truth.move
    if wanted == "click" and min(screen) < 1:
        return None
    if wanted is None or wanted != type_of(said):
        return False, False
    if wanted == "click":
        return True, _clicks_fixed(truth, said, screen)
    if wanted == "scroll":
        return True, direction_of(move) == direction_of(said) is not None
    if wanted == "type":
        return True, bool(move.text) == bool(said.text) and _same(move.text, said.text)
    return True, move.kind is said.kind


def _same(one: str, other: str) -> bool:
    from rapidfuzz.distance import Indel  # what Levenshtein.ratio computes

    return one in other or other in one or Indel.normalized_similarity(one, other) > RATIO


def _rounded(box: Edges | None, screen: Screen) -> Edges | None:
    """A box in whole pixels; halves go to the even neighbour."""
    if box is None:
        return None
    left, top, right, bottom = (
        round(edge * side) for edge, side in zip(box, (*screen, *screen), strict=True)
    )
    return left, top, right, bottom


def _elements(truth: Truth, screen: Screen) -> list[Edges]:
    """The elements in whole pixels, enlarged."""
    return [_enlarged(box) for box in _boxes(truth, screen)]


def _boxes(truth: Truth, screen: Screen) -> list[Edges]:
    """The elements in whole pixels."""
    width, height = screen
    found: list[Edges] = []
    for y, x, tall, wide in truth.rects:
        left, top = round(x * width), round(y * height)
        found.append((left, top, left + round(wide * width), top + round(tall * height)))
    return found


def _named(truth: Truth, element: int | None, screen: Screen) -> Edges | None:
    """The element with the number, as it was drawn on the screenshot that a model was shown."""
    boxes = _boxes(truth, screen)
    if element is None or not 0 <= element < len(boxes):
        return None
    return _in_order(boxes)[element]


def _in_order(boxes: Sequence[Edges]) -> list[Edges]:
    """Elements in lines from top to bottom, each from left to right, as the release numbers them.

    A line goes on while the next element holds the line's mean height, and the last one the next
    one's middle.
    """
    lines: list[list[Edges]] = []
    for box in sorted(boxes, key=cmp_to_key(_before)):
        if lines:
            last, middles = lines[-1][-1], [_middle(one) for one in lines[-1]]
            mean = sum(middles) / len(middles)
            if box[1] < mean < box[3] and last[1] < _middle(box) < last[3]:
                lines[-1].append(box)
                continue
        lines.append([box])
    return [box for line in lines for box in sorted(line, key=lambda box: box[0])]


def _before(one: Edges, other: Edges) -> int:
    """Which comes first: the higher one, if the other begins below its middle; else the left."""
    if one[1] > other[1] and one[1] > _middle(other):
        return 1
    if one[1] < other[1] and other[1] > _middle(one):
        return -1
    return (one[0] > other[0]) - (one[0] < other[0])


def _middle(box: Edges) -> float:
    return (box[1] + box[3]) / 2


def _enlarged(box: Edges) -> Edges:
    left, top, right, bottom = box
    x, y = (left + right) / 2, (top + bottom) / 2
    wide, tall = (right - left) * ENLARGED, (bottom - top) * ENLARGED
    return x - wide / 2, y - tall / 2, x + wide / 2, y + tall / 2


def _holds(box: Edges, point: Pair) -> bool:
    return box[0] <= point[0] <= box[2] and box[1] <= point[1] <= box[3]


def _clicks(box: Edges | None, point: Pair, elements: Sequence[Edges]) -> bool:
    assert box is not None
    box = _enlarged(box)
    if _holds(box, point):
        return True
    return any(_overlap(box, e) > OVERLAP for e in elements if _holds(e, point))


def _overlap(one: Edges, other: Edges) -> float:
    """Intersection over union; an area counts as one pixel at least."""
    wide = max(0, min(one[2], other[2]) - max(one[0], other[0]))
    tall = max(0, min(one[3], other[3]) - max(one[1], other[1]))
    areas = [max((box[2] - box[0]) * (box[3] - box[1]), 1) for box in (one, other)]
    return wide * tall / (areas[0] + areas[1] - wide * tall)


def _clicks_fixed(truth: Truth, said: Move, screen: Screen) -> bool:
    if truth.move.touch is None:
        return False
    x, y = truth.move.touch
    point = int(x * screen[0]), int(y * screen[1])
    elements = _elements(truth, screen)
    box = _named(truth, said.element, screen) or _rounded(said.box, screen)
    if box is not None:
        return _clicks(box, point, elements)
    if said.touch is None:
        return False
    own = int(said.touch[0] * screen[0]), int(said.touch[1] * screen[1])
    return own == point or any(_holds(e, point) and _holds(e, own) for e in elements)
