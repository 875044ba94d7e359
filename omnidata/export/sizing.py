"""The size that pictures get, so that a trainer's own resizing has nothing left to do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from omnidata import media
from omnidata.actions import Screen
from omnidata.errors import MediaError, UsageError

Factor = Literal[28, 32]
MIN_TOKENS, MAX_TOKENS = 4, 16384
"""Limits in squares of the factor, as Qwen's own tools have them (qwen-vl-utils)."""

_STRETCHED = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """How pictures are resized before they are written; not at all by default.

    Attributes:
        longest: pictures whose longer side exceeds so many pixels are made smaller, in proportion.
        factor: both sides become multiples of it, in about the same proportion, as Qwen-VL's image
            processors do: 28 for Qwen2-VL and Qwen2.5-VL, 32 for Qwen3-VL.
        min_pixels, max_pixels: limits of width * height with a factor; None takes `MIN_TOKENS` and
            `MAX_TOKENS`.

    Raises:
        UsageError: two ways at once, or limits that no picture meets.
    """

    longest: int | None = None
    factor: Factor | None = None
    min_pixels: int | None = None
    max_pixels: int | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if self.factor is None:
            if self.min_pixels is not None or self.max_pixels is not None:
                raise UsageError(
                    "limits of pixels belong to --smart-resize",
                    where="--min-pixels, --max-pixels",
                    expected="--smart-resize 28 or 32 with them",
                )
            return
        if self.longest is not None:
            raise UsageError(
                "pictures can be resized in one way only",
                where="--image-size, --smart-resize",
                expected="one of the two",
            )
        low, high = self.limits
        if not self.factor**2 <= high or not 0 < low <= high:
            raise UsageError(
                f"no picture has from {low} to {high} pixels",
                where="--min-pixels, --max-pixels",
                expected=f"at most {high} and at least {self.factor**2} pixels",
            )

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the most pixels of a picture with a factor."""
        square = (self.factor or 1) ** 2
        low = MIN_TOKENS * square if self.min_pixels is None else self.min_pixels
        return low, MAX_TOKENS * square if self.max_pixels is None else self.max_pixels

    def fit(self, size: Screen) -> Screen:
        """Width and height in pixels that a picture gets.

        Args:
            size: width and height that it has.

        Raises:
            MediaError: with a factor, one side is more than 200 times the other, which Qwen-VL's
                processors refuse.

        Examples:
            >>> Sizing(factor=28).fit((720, 1600)), Sizing(longest=1000).fit((720, 1600))
            ((728, 1596), (450, 1000))
        """
        if self.factor is None:
            return media.within(size, self.longest)
        if max(size) > _STRETCHED * min(size):
            raise MediaError(
                f"the picture has {size[0]} x {size[1]} pixels",
                expected=f"no side more than {_STRETCHED} times the other",
            )
        low, high = self.limits
        width, height = (round(extent / self.factor) * self.factor for extent in size)
        area = size[0] * size[1]
        if width * height > high:
            shrink = math.sqrt(area / high)
            width, height = (
                max(self.factor, math.floor(extent / shrink / self.factor) * self.factor)
                for extent in size
            )
        elif width * height < low:
            grow = math.sqrt(low / area)
            width, height = (
                math.ceil(extent * grow / self.factor) * self.factor for extent in size
            )
        return width, height
