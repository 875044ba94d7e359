"""Compare rows in another harness's log with rows of the data.

Harnesses keep all of a row, some columns, or a record in a metric's value, with numbers as texts,
lists as texts, and boxes in another unit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import product
from typing import Any, Final, NamedTuple

from omnidata.actions import Box, Screen, Space
from omnidata.tasks.coordinates import in_pixels
from omnidata.types import Step

_DEEPEST: Final = 8
_FARTHEST: Final = 1e9  # of a box's numbers
_FEWEST: Final = 2  # digits of a fraction: with one, a tenth of the screen would be the same place
_EXACT: Final = 1e-6  # as far as a float of four bytes may be off


class Difference(NamedTuple):
    """A column in which a log contradicts the data.

    Attributes:
        column: its name in the log.
        said: the log's value.
        own: the value of the data.
    """

    column: str
    said: Any
    own: Any


Leaves = Mapping[str, Sequence[Any]]
"""By the name of a column, its values; several where a row has parts that share names."""


def leaves(row: Mapping[str, Any]) -> Leaves:
    """Return the columns of a row and of its objects."""
    found: dict[str, list[Any]] = {}
    for key, value in _flat(row, 0):
        found.setdefault(key, []).append(value)
    return found


def step_difference(
    step: Step, row: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
) -> Difference | None:
    """Return the first column in which a log contradicts a step's untouched row.

    Texts, numbers and boxes of the row are compared (`_is_same_box`); of the records only texts,
    because metrics have numbers of their own beside the columns that they keep.

    Args:
        step: the candidate for the row.
        row: the columns of the row in the log; empty if it has none.
        records: the columns that metrics keep of the row, beside their own values.
    """
    places = step.action.start if step.action and all(step.screen) else ()
    regions = [in_pixels(place, step.screen) for place in places]
    targets = [region for region in regions if isinstance(region, Box)]
    known, said = leaves(step.source), leaves(row)
    for key in said:
        if key in known and not (
            _agree(said[key], known[key], (str, int, float))
            and _is_box_there(said[key], known[key], step.screen, targets)
        ):
            return Difference(key, said[key][0], known[key][0])
    for noted in map(leaves, records):
        for key in noted:
            if key in known and not _agree(noted[key], known[key], (str,)):
                return Difference(key, noted[key][0], known[key][0])
    return None


def likeness(own: Mapping[str, Any], said: Sequence[Leaves], target: str) -> int:
    """Return how many texts, lists and targets of a log are in a row of the data.

    Args:
        own: the row of the data.
        said: the row as the log has it, and what metrics keep of it.
        target: the right answer as the log has it, as a text; empty where it has none.
    """
    known = leaves(own)
    same = sum(
        any(not _forms(each.get(key, ())).isdisjoint(_forms(known[key])) for each in said)
        for key in known
    )
    values = [value for values in known.values() for value in values]
    right = bool(target) and (target in map(str, values) or _read(target) in _forms(values))
    return same + right


def _flat(row: Mapping[str, Any], depth: int) -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        if isinstance(value, Mapping):
            if depth < _DEEPEST:
                yield from _flat(value, depth + 1)
        elif value is not None and value != "":
            yield str(key), value


def _agree(said: Sequence[Any], own: Sequence[Any], kinds: tuple[type, ...]) -> bool:
    left = {plain(value) for value in said if isinstance(value, kinds)}
    right = {plain(value) for value in own if isinstance(value, kinds)}
    return not left or not right or not left.isdisjoint(right)


def plain(value: Any) -> Any:
    """Return a value without blanks around it, and a number in a text as a number.

    Examples:
        >>> plain("12"), plain(" a "), plain(1.5)
        (12, 'a', 1.5)
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text


def _is_box_there(
    said: Sequence[Any], own: Sequence[Any], screen: Screen, targets: Sequence[Box]
) -> bool:
    pairs = [*product(_boxes(said), _boxes(own))]
    return not pairs or any(_is_same_box(one, other, screen, targets) for one, other in pairs)


def _boxes(values: Sequence[Any]) -> Iterator[Sequence[float]]:
    for value in values:
        if (
            isinstance(value, list)
            and len(value) == 4
            and all(type(one) in (int, float) and abs(one) < _FARTHEST for one in value)
        ):
            yield value


def _is_same_box(
    said: Sequence[float], own: Sequence[float], screen: Screen, targets: Sequence[Box] = ()
) -> bool:
    """Whether a log's box is that of the data, perhaps in another unit and with another meaning.

    The numbers are pixels, fractions of the screen or thousandths of it; two corners, the upper
    left one with width and height, or the middle with these. Each must be that of the data, rounded
    to nearest or down to the digits that the log has.

    Args:
        said: the log's numbers.
        own: those of the data.
        screen: its width and height in pixels; where these are not known, no unit becomes another.
        targets: the right places, in pixels; where the numbers of the data can be read as one of
            them, they mean nothing else.

    Examples:
        >>> screen = (200, 100)
        >>> _is_same_box([0.05, 0.2, 0.15, 0.4], [10, 20, 20, 20], screen)  # width and height
        True
        >>> _is_same_box([50, 200, 150, 400], [10, 20, 30, 40], screen)  # thousandths
        True
        >>> _is_same_box([11, 20, 30, 40], [10, 20, 30, 40], screen)
        False
        >>> _is_same_box([1, 1, 4, 4], [10, 20, 30, 40], screen)
        False
    """
    if list(said) == list(own):
        return True
    scales = _scales(screen)
    unit = "rel" if "rel" in scales and max(map(abs, own)) <= 1 else "px"
    read = [
        (name, tuple(edge * scale[number % 2] for number, edge in enumerate(corners)))
        for name, scale in scales.items()
        for corners in _corners(own)
    ]
    meant = [edges for _, edges in read if any(_is_near(edges, one) for one in targets)]
    digits = max(_digits(said), _FEWEST if max(map(abs, said)) <= 1 else 0)
    return any(
        _is_spelled(said, [edge / scale[number % 2] for number, edge in enumerate(edges)], digits)
        for edges in meant or [edges for name, edges in read if name == unit]
        for scale in scales.values()
    )


def _scales(screen: Screen) -> Mapping[Space, tuple[float, float]]:
    if not all(screen):
        return {"px": (1, 1)}
    thousandth = (screen[0] / 1000, screen[1] / 1000)
    return {"px": (1, 1), "rel": screen, "norm1000": thousandth}


def _corners(box: Sequence[float]) -> Iterator[Sequence[float]]:
    x, y, a, b = box
    yield box
    yield x, y, x + a, y + b
    yield x - a / 2, y - b / 2, x + a / 2, y + b / 2


def _is_near(edges: Sequence[float], target: Box) -> bool:
    """Data and targets may differ in whether edges are inclusive."""
    own = (target.left, target.top, target.right, target.bottom)
    return all(abs(one - other) <= 1 for one, other in zip(edges, own, strict=True))


def _is_spelled(said: Sequence[float], edges: Sequence[float], digits: int) -> bool:
    left, top, right, bottom = edges
    width, height = right - left, bottom - top
    spelled = [edges, (left, top, width, height)]
    spelled.append(((left + right) / 2, (top + bottom) / 2, width, height))
    # A width may be the difference of two edges that were rounded before.
    whole = (said[0], said[1], said[0] + said[2], said[1] + said[3])
    return _are_rounded(whole, edges, digits) or any(
        _are_rounded(said, numbers, digits) for numbers in spelled
    )


def _are_rounded(said: Sequence[float], numbers: Sequence[float], digits: int) -> bool:
    last = 10.0**-digits
    for one, number in zip(said, numbers, strict=True):
        off, exact = number - one, _EXACT * max(1, abs(number))
        if abs(off) > exact and not -last / 2 - exact <= off < last - exact:
            return False
    return True


def _digits(numbers: Sequence[float]) -> int:
    exponents = (Decimal(repr(float(one))).normalize().as_tuple().exponent for one in numbers)
    return max(max(0, -exponent) for exponent in exponents if isinstance(exponent, int))


def _forms(values: Sequence[Any]) -> set[Any]:
    return {_form(value, 0) for value in values if isinstance(value, str | list) and value}


def _form(value: Any, depth: int) -> Any:
    if isinstance(value, list | Mapping) and depth < _DEEPEST:
        parts = sorted(value.items()) if isinstance(value, Mapping) else value
        return tuple(_form(part, depth + 1) for part in parts)
    if isinstance(value, float):  # Arrow keeps 4 bytes of some
        return value if value.is_integer() else float(f"{value:.6g}")
    return value if isinstance(value, int | str) else None


def _read(text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return _form(value, 0) if isinstance(value, list) else text
