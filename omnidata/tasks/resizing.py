"""The screenshot as a model was shown it, and the way from it back to the screen of the step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from omnidata.actions import Screen
from omnidata.errors import PredictionError
from omnidata.metrics.omnigui_answer import Answer, Pair
from omnidata.metrics.omnigui_paper import PredictedSpace

Pixels = Annotated[int, msgspec.Meta(ge=1)]


class _Line(msgspec.Struct):
    """What a receipt says of one medium, as far as it is needed here."""

    role: str = ""
    width: Pixels | None = None
    height: Pixels | None = None
    original: tuple[Pixels, Pixels] | None = None


class _Receipt(msgspec.Struct):
    parts: list[_Line] = []


@dataclass(frozen=True, slots=True)
class Resizing:
    """The current screenshot as a model was shown it.

    Attributes:
        size: width and height of what was sent, in pixels.
        original: width and height of the screenshot, in pixels.
    """

    size: Screen
    original: Screen

    def to_screen(self, pair: Pair) -> Pair:
        """A point of what was sent, in pixels of the screenshot.

        Whole numbers beyond any float, which lie on no screen, stay as they are.

        Examples:
            >>> Resizing((450, 1000), (720, 1600)).to_screen((225, 500))
            (360.0, 800.0)
        """
        try:
            return (
                pair[0] * self.original[0] / self.size[0],
                pair[1] * self.original[1] / self.size[1],
            )
        except OverflowError:
            return pair


def shown(receipt: Mapping[str, Any] | None, *, where: str) -> Resizing | None:
    """The sizes of the current screenshot; None where the receipt does not tell.

    Args:
        receipt: of a prediction.
        where: the step, for the message.

    Raises:
        PredictionError: the receipt is none that omnidata writes.

    Examples:
        >>> line = {"role": "screenshot", "width": 450, "height": 1000, "original": [720, 1600]}
        >>> shown({"parts": [line]}, where="")
        Resizing(size=(450, 1000), original=(720, 1600))
    """
    if not receipt:
        return None
    try:
        lines = msgspec.convert(receipt, _Receipt).parts
    except msgspec.ValidationError as error:
        raise PredictionError(
            f"the receipt cannot be read: {error}",
            where=where,
            expected='"parts": for each medium its role and, where resized, width, height, '
            "original",
            remedy="remove the receipt if the model was shown the screenshot as it is",
        ) from None
    for line in lines:
        if line.role == "screenshot" and line.width and line.height:
            size = line.width, line.height
            return Resizing(size, line.original or size)
    return None


def resizing(receipt: Mapping[str, Any] | None, *, where: str) -> Resizing | None:
    """How the current screenshot was resized; None where it was sent as it is.

    Args:
        receipt: of a prediction.
        where: the step, for the message.

    Raises:
        PredictionError: as `shown`.
    """
    found = shown(receipt, where=where)
    return found if found and found.size != found.original else None


def on_screen(
    answer: Answer, space: PredictedSpace, receipt: Mapping[str, Any] | None, *, where: str
) -> Answer:
    """An answer with its pixels, if it has any, in pixels of the screenshot.

    Args:
        answer: as the model wrote it.
        space: unit of its coordinates; "auto": pixels where one exceeds 1000.
        receipt: of the prediction.
        where: the step, for messages.

    Raises:
        PredictionError: as `resizing`.
    """
    if space in ("norm1000", "rel") or not receipt:
        return answer
    found = resizing(receipt, where=where)
    if found is None:
        return answer

    def back(pair: Pair | None) -> Pair | None:
        pixels = pair is not None and (space == "px" or max(pair) > 1000)
        return found.to_screen(pair) if pair is not None and pixels else pair

    return msgspec.structs.replace(answer, start=back(answer.start), end=back(answer.end))
