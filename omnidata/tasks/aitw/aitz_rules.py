"""Android in the Zoo's evaluator: as released, and with its faults corrected.

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
is right. Corrected: the point is the expert's; a click without a box is right where its point lies
in such an element, or is the expert's; an empty text is no part of any other; success and failure
are different things; a long press is no press of a button; the first element counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cmp_to_key
from typing import Final, Literal

from omnidata.actions import Action, Box, Direction, Kind, Pair, Point, Screen, convert
from omnidata.tasks.phones.actions import Match, Truth, middle, touch_of

Type = Literal["click", "scroll", "type", "press", "stop"]
Edges = tuple[float, float, float, float]
"""Left, top, right, bottom in pixels."""

ENLARGED: Final = 1.2
OVERLAP: Final = 0.5
RATIO: Final = 0.8
STEEP: Final = 0.9

_TYPES: Final[Mapping[Kind, Type]] = {
    "swipe": "scroll",
    "type": "type",
    "back": "press",
    "home": "press",
    "enter": "press",
    "keys": "press",
    "done": "stop",
}


def _type_of(action: Action) -> Type | None:
    if action.kind == "tap":
        return "click" if action.count == 1 else None
    return _TYPES.get(action.kind)


def _direction_of(action: Action) -> Direction | None:
    """The direction of the finger; None if unknown.

    Examples:
        >>> _direction_of(Action("swipe", (Point(0.5, 0.5, "rel"),), (Point(0.6, 0.41, "rel"),)))
        'up'
    """
    touch, lift = middle(action.start), middle(action.end)
    if action.direction is not None or not touch or not lift:
        return action.direction
    (x, y), (to_x, to_y) = touch, lift
    if abs(y - to_y) >= STEEP * abs(to_x - x):
        return "up" if to_y < y else "down"
    return "left" if to_x < x else "right"


def match_released(truth: Truth, said: Action) -> Match | None:
    """Match as released; None for a click on a screen of unknown size."""
    wanted = _type_of(truth.action)
    if wanted == "click" and min(truth.screen) < 1:
        return None
    given = "press" if said.kind == "long_press" else _type_of(said)
    if wanted is None or wanted != given:
        return False, False
    if wanted == "click":
        named = _element_box(truth, said.element) if said.element else None
        box = named or _pixel_box(said, truth.screen)
        return True, box is not None and _clicks(box, (0, 0), truth)
    if wanted == "scroll":
        return True, _direction_of(truth.action) == _direction_of(said)
    if wanted == "type":
        return True, _same(truth.action.text or "", said.text or "")
    return True, wanted == "stop" or truth.action.kind == said.kind


def match_fixed(truth: Truth, said: Action) -> Match | None:
    """Match by the corrected rules; None for a click on a screen of unknown size."""
    wanted, action = _type_of(truth.action), truth.action
    if wanted == "click" and min(truth.screen) < 1:
        return None
    if wanted is None or wanted != _type_of(said):
        return False, False
    if wanted == "click":
        return True, _clicks_fixed(truth, said)
    if wanted == "scroll":
        return True, _direction_of(action) == _direction_of(said) is not None
    if wanted == "type":
        one, other = action.text or "", said.text or ""
        return True, bool(one) == bool(other) and _same(one, other)
    return True, (action.kind, action.status) == (said.kind, said.status)


def _same(one: str, other: str) -> bool:
    from rapidfuzz.distance import Indel  # what Levenshtein.ratio computes

    return one in other or other in one or Indel.normalized_similarity(one, other) > RATIO


def _pixel_box(action: Action, screen: Screen) -> Edges | None:
    """Halves round to even."""
    box = action.start[0] if action.start else None
    if not isinstance(box, Box):
        return None
    corners = Point(box.left, box.top, box.space), Point(box.right, box.bottom, box.space)
    low, high = (convert(corner, "rel", (1, 1)) for corner in corners)
    width, height = screen
    return (
        round(low.x * width),
        round(low.y * height),
        round(high.x * width),
        round(high.y * height),
    )


def _boxes(truth: Truth) -> list[Edges]:
    width, height = truth.screen
    found: list[Edges] = []
    for y, x, tall, wide in truth.rects:
        left, top = round(x * width), round(y * height)
        found.append((left, top, left + round(wide * width), top + round(tall * height)))
    return found


def _element_box(truth: Truth, element: int | None) -> Edges | None:
    boxes = _boxes(truth)
    if element is None or not 0 <= element < len(boxes):
        return None
    return _in_order(boxes)[element]


def _in_order(boxes: Sequence[Edges]) -> list[Edges]:
    """The release numbers elements line by line, top to bottom, each line left to right.

    A line continues while the next element contains the line's mean height.
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
    if one[1] > other[1] and one[1] > _middle(other):
        return 1
    if one[1] < other[1] and other[1] > _middle(one):
        return -1
    return (one[0] > other[0]) - (one[0] < other[0])


def _middle(box: Edges) -> float:
    return (box[1] + box[3]) / 2


def _enlarge(box: Edges) -> Edges:
    left, top, right, bottom = box
    x, y = (left + right) / 2, (top + bottom) / 2
    wide, tall = (right - left) * ENLARGED, (bottom - top) * ENLARGED
    return x - wide / 2, y - tall / 2, x + wide / 2, y + tall / 2


def _holds(box: Edges, point: Pair) -> bool:
    return box[0] <= point[0] <= box[2] and box[1] <= point[1] <= box[3]


def _clicks(box: Edges, point: Pair, truth: Truth) -> bool:
    box = _enlarge(box)
    if _holds(box, point):
        return True
    elements = map(_enlarge, _boxes(truth))
    return any(_overlap(box, e) > OVERLAP for e in elements if _holds(e, point))


def _overlap(one: Edges, other: Edges) -> float:
    """Intersection over union; an area is at least one pixel."""
    wide = max(0, min(one[2], other[2]) - max(one[0], other[0]))
    tall = max(0, min(one[3], other[3]) - max(one[1], other[1]))
    areas = [max((box[2] - box[0]) * (box[3] - box[1]), 1) for box in (one, other)]
    return wide * tall / (areas[0] + areas[1] - wide * tall)


def _clicks_fixed(truth: Truth, said: Action) -> bool:
    wanted, given = touch_of(truth.action), touch_of(said)
    if wanted is None:
        return False
    point = _pixel(wanted, truth.screen)
    box = _element_box(truth, said.element) or _pixel_box(said, truth.screen)
    if box is not None:
        return _clicks(box, point, truth)
    if given is None:
        return False
    own = _pixel(given, truth.screen)
    elements = map(_enlarge, _boxes(truth))
    return own == point or any(_holds(e, point) and _holds(e, own) for e in elements)


def _pixel(place: Pair, screen: Screen) -> tuple[int, int]:
    return int(place[0] * screen[0]), int(place[1] * screen[1])
