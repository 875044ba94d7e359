"""Fit the places in answers: find the picture size, unit and order of axes that explain them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Final

from omnidata.actions import Pair, Screen, Space

TOLERANCE: Final = 0.03
"""The largest distance of a right answer from the target's centre, as a share of the side."""
_ENOUGH: Final = 0.75
"""The share of answers that a fit must explain."""
_FEWEST: Final = 4
"""The number of answers that determine a scale and a shift per axis, and can contradict them."""
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
    for name, extent in sorted(_UNITS.items(), key=lambda item: item[0] != wanted):
        sides = (extent, extent) if extent else (float(size[0]), float(size[1]))
        for is_swapped in (False, True):
            said = [(y, x) for x, y in answers] if is_swapped else answers
            near = sum(_is_near(at, each, sides) for at, each in zip(targets, said, strict=True))
            if near < _ENOUGH * len(answers):
                continue
            units = "" if name == wanted else f"units of {name} in place of {wanted}"
            axes = "x and y are swapped" if is_swapped else ""
            cause = "swapped" if is_swapped else "units" if units else ""
            return Fit(cause, "; ".join(filter(None, (axes, units))), near)
    return _fit_scale(targets, answers)


def _is_near(target: Pair, answer: Pair, sides: Pair) -> bool:
    return all(
        abs(said - share * side) <= TOLERANCE * side
        for share, said, side in zip(target, answer, sides, strict=True)
    )


def _fit_scale(targets: Sequence[Pair], answers: Sequence[Pair]) -> Fit | None:
    """Fit `answer = side * share + shift` on both axes, by the medians of all pairs' slopes."""
    if len(answers) < _FEWEST:
        return None
    sides, shifts = [], []
    for axis in (0, 1):
        points = [(at[axis], said[axis]) for at, said in zip(targets, answers, strict=True)]
        slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(points, 2) if a[0] != b[0]]
        side = median(slopes)
        sides.append(side)
        shifts.append(median(said - side * at for at, said in points))
    if min(sides) <= 0:
        return None
    moved = [(x - shifts[0], y - shifts[1]) for x, y in answers]
    pair = sides[0], sides[1]
    near = sum(_is_near(at, said, pair) for at, said in zip(targets, moved, strict=True))
    if near < max(_FEWEST, _ENOUGH * len(answers)):
        return None
    across, down = round(sides[0]), round(sides[1])
    if all(abs(shift) <= TOLERANCE * side for shift, side in zip(shifts, sides, strict=True)):
        return Fit("resized", f"answers are those of a picture of {across} x {down}", near)
    left, top = round(shifts[0]), round(shifts[1])
    detail = f"answers are those of a picture of {across} x {down}, {left} from the left and {top} "
    return Fit("padded", f"{detail}from the top of a larger one", near)
