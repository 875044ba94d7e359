"""Fit the places in answers: find the picture size, unit and order of axes that explain them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from omnidata.actions import Pair, Screen, Space

TOLERANCE: Final = 0.03
"""The largest distance of a right answer from the target's centre, as a share of the side."""
_ENOUGH: Final = 0.75
"""The share of answers that a fit must explain."""
_FEWEST: Final = 4
"""The number of answers that determine the sides of a copy, and can contradict them."""
_CLOSE: Final = 0.015
"""`TOLERANCE` for a copy: the answers of a weak model lie near many copies."""
_FAR: Final = 0.1
"""How much a copy's side differs from the picture's, at least."""
_UNITS: Final = {"pixels": None, "0 to 1000": 1000.0, "0 to 100": 100.0, "0 to 1": 1.0}
_NAMES: Final[dict[Space, str]] = {"px": "pixels", "norm1000": "0 to 1000", "rel": "0 to 1"}


@dataclass(frozen=True, slots=True)
class Fit:
    """An explanation of answers to questions about places.

    Attributes:
        cause: a key of `omnidata.certify.causes.CAUSES`; empty where the answers are right.
        detail: the numbers that the fit found, in words; empty where the answers are right.
        explained: how many answers it explains.
    """

    cause: str
    detail: str
    explained: int


def fit_places(
    targets: Sequence[Pair], answers: Sequence[Pair], size: Screen, space: Space
) -> Fit | None:
    """Return what explains the answers about a target's centre; None if nothing does.

    Args:
        targets: the centres, in shares of the picture's sides.
        answers: x and y as the model wrote them, in the same order.
        size: width and height in pixels of the picture as sent.
        space: the unit that was asked for.

    Examples:
        >>> centres = [(0.2, 0.1), (0.7, 0.3), (0.4, 0.6), (0.9, 0.8)]
        >>> halves = [(x * 540, y * 1200) for x, y in centres]
        >>> fit_places(centres, halves, (1080, 2400), "px")
        Fit(cause='resized', detail='answers are those of a picture of 540 x 1200', explained=4)
    """
    wanted = _NAMES[space]
    enough = _ENOUGH * len(answers)
    units = _sides_of(size)
    for name, sides in sorted(units.items(), key=lambda item: item[0] != wanted):
        for is_swapped in (False, True):
            said = [(y, x) for x, y in answers] if is_swapped else answers
            near = _count_near(targets, said, sides, TOLERANCE)
            if near < enough:
                continue
            other = "" if name == wanted else f"units of {name} in place of {wanted}"
            axes = "x and y are swapped" if is_swapped else ""
            cause = "swapped" if is_swapped else "units" if other else ""
            return Fit(cause, "; ".join(filter(None, (axes, other))), near)
    if len(answers) < _FEWEST:
        return None
    copy = _median_ratio(targets, answers, 0), _median_ratio(targets, answers, 1)
    near = _count_near(targets, answers, copy, _CLOSE)
    if near >= enough and all(_differ(copy, sides) for sides in units.values()):
        detail = f"answers are those of a picture of {copy[0]:.0f} x {copy[1]:.0f}"
        return Fit("resized", detail, near)
    squared = [_on_square(at, size) for at in targets]
    side = _median_ratio(squared, answers, 0)
    near = _count_near(squared, answers, (side, side), _CLOSE)
    if near >= enough:
        detail = f"answers are those of a square of {side:.0f} x {side:.0f}, with margins"
        return Fit("padded", detail, near)
    return None


def count_right(
    targets: Sequence[Pair], answers: Sequence[Pair], size: Screen, space: Space
) -> int:
    """Return how many answers lie at their targets, as `fit_places` takes them."""
    return _count_near(targets, answers, _sides_of(size)[_NAMES[space]], TOLERANCE)


def _sides_of(size: Screen) -> dict[str, Pair]:
    """Return the sides of a picture in each unit."""
    return {name: (extent, extent) if extent else size for name, extent in _UNITS.items()}


def _count_near(
    targets: Sequence[Pair], answers: Sequence[Pair], sides: Pair, tolerance: float
) -> int:
    return sum(
        all(
            abs(said - share * side) <= tolerance * side
            for share, said, side in zip(at, answer, sides, strict=True)
        )
        for at, answer in zip(targets, answers, strict=True)
    )


def _median_ratio(targets: Sequence[Pair], answers: Sequence[Pair], axis: int) -> float:
    return median(said[axis] / at[axis] for at, said in zip(targets, answers, strict=True))


def _differ(some: Pair, other: Pair) -> bool:
    return any(abs(a - b) > _FAR * b for a, b in zip(some, other, strict=True))


def _on_square(at: Pair, size: Screen) -> Pair:
    """Return a place of a picture in the middle of a square, in shares of the square's side."""
    square = max(size)
    x, y = (share * side + (square - side) / 2 for share, side in zip(at, size, strict=True))
    return x / square, y / square
