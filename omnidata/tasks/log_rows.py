"""What another harness's log says of a row, held against a row of the data.

Harnesses keep of a row what they like: all of it, some columns, or a record in a metric's value;
with numbers as texts, lists as texts, and boxes in another unit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final, NamedTuple

_DEEPEST: Final = 8
_FARTHEST: Final = 1e9  # of a box's numbers


class Difference(NamedTuple):
    """A column in which a log says of a row what is not so in the data.

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
    """The columns of a row, and of the objects in it."""
    found: dict[str, list[Any]] = {}
    for key, value in _flat(row, 0):
        found.setdefault(key, []).append(value)
    return found


def difference(
    own: Mapping[str, Any], row: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
) -> Difference | None:
    """The first column in which a log says of a row of the data what is not so.

    Texts and numbers are compared, and boxes unless one may be the other in another unit; of the
    records texts alone, because metrics have numbers of their own beside what they keep of a row.

    Args:
        own: the row of the data.
        row: the row as the log has it, or what it keeps of it; empty where it keeps nothing.
        records: what metrics keep of it.
    """
    known, said = leaves(own), leaves(row)
    for key in said:
        if key in known and not (
            _agree(said[key], known[key], (str, int, float))
            and _may_be_converted(said[key], known[key])
        ):
            return Difference(key, said[key][0], known[key][0])
    for noted in map(leaves, records):
        for key in noted:
            if key in known and not _agree(noted[key], known[key], (str,)):
                return Difference(key, noted[key][0], known[key][0])
    return None


def likeness(own: Mapping[str, Any], said: Sequence[Leaves], target: str) -> int:
    """How much of what is said stands in a row of the data: texts and lists of a column, a target.

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
    """Whether a value is the same in both, or they are of kinds that cannot be compared."""
    left = {plain(value) for value in said if isinstance(value, kinds)}
    right = {plain(value) for value in own if isinstance(value, kinds)}
    return not left or not right or not left.isdisjoint(right)


def plain(value: Any) -> Any:
    """The value as another harness may have it: without blanks around it, numbers as numbers.

    Examples:
        >>> plain("12"), plain(" a "), plain(1.5)
        (12, 'a', 1.5)
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text


def _may_be_converted(said: Sequence[Any], own: Sequence[Any]) -> bool:
    """Whether boxes may be the same in other units, or one of them has no box."""
    pairs = [*product(_boxes(said), _boxes(own))]
    return not pairs or any(_is_box_converted(one, other) for one, other in pairs)


def _boxes(values: Sequence[Any]) -> Iterator[Sequence[float]]:
    """The lists of four numbers."""
    for value in values:
        if (
            isinstance(value, list)
            and len(value) == 4
            and all(type(one) in (int, float) and abs(one) < _FARTHEST for one in value)
        ):
            yield value


def _is_box_converted(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether two boxes may be the same in other units, or with other meanings of their numbers.

    Of a fraction of the screen and pixels nothing is known without the screen's size. Other units
    have a scale along each axis, but for rounding; the numbers are two corners, or the upper left
    one with width and height, or the middle with these.

    Examples:
        >>> _is_box_converted([10, 10, 20, 20], [0.1, 0.2, 0.3, 0.4])
        True
        >>> _is_box_converted([10, 20, 30, 40], [10, 20, 20, 20])
        True
        >>> _is_box_converted([10, 10, 20, 20], [11, 10, 20, 20])
        False
    """
    if list(one) == list(other):
        return True
    shares = [max(map(abs, box)) <= 1 for box in (one, other)]
    if shares[0] != shares[1]:
        return True
    slack = 0.005 if shares[0] else 0.5
    if _is_scaled(one, other, slack) or _is_scaled(other, one, slack):
        return True
    # Of two with the same meaning the numbers themselves have the scale. An edge that is the sum of
    # two rounded numbers is off by both.
    return any(
        _is_scaled(left[1], right[1], 2 * slack) or _is_scaled(right[1], left[1], 2 * slack)
        for left, right in product(_corners(one), _corners(other))
        if left[0] != right[0]
    )


def _corners(box: Sequence[float]) -> Iterator[tuple[str, Sequence[float]]]:
    """By what the numbers may mean, the two corners."""
    x, y, a, b = box
    yield "corners", box
    yield "corner and size", (x, y, x + a, y + b)
    yield "middle and size", (x - a / 2, y - b / 2, x + a / 2, y + b / 2)


def _is_scaled(one: Sequence[float], other: Sequence[float], slack: float) -> bool:
    """Whether a box is another times a number along each axis, rounded to nearest or down."""
    return any(
        all(
            _has_scale([one[axis] + down, one[axis + 2] + down], other[axis::2], reach)
            for axis in (0, 1)
        )
        # A half may have gone either way; what was rounded down was less than one more.
        for down, reach in ((0, slack * 1.0001), (slack, slack))
    )


def _has_scale(numbers: Sequence[float], others: Sequence[float], slack: float) -> bool:
    low, high = 0.0, float("inf")
    for number, other in zip(numbers, others, strict=True):
        if other:
            least, most = sorted(((number - slack) / other, (number + slack) / other))
            low, high = max(low, least), min(high, most)
        elif abs(number) > slack:
            return False
    return low < high


def _forms(values: Sequence[Any]) -> set[Any]:
    """The texts and the lists among values that are not empty, so that equal ones are equal."""
    return {_form(value, 0) for value in values if isinstance(value, str | list) and value}


def _form(value: Any, depth: int) -> Any:
    if isinstance(value, list | Mapping) and depth < _DEEPEST:
        parts = sorted(value.items()) if isinstance(value, Mapping) else value
        return tuple(_form(part, depth + 1) for part in parts)
    if isinstance(value, float):  # Arrow keeps 4 bytes of some
        return value if value.is_integer() else float(f"{value:.6g}")
    return value if isinstance(value, int | str) else None


def _read(text: str) -> Any:
    """The list that a text writes; else the text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return _form(value, 0) if isinstance(value, list) else text
