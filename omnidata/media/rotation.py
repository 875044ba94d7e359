"""Clips that lie turned in their files, and the rotation that makes their frames upright.

A clip is what players show: the display matrix of its container is obeyed wherever frames are
decoded, which FFmpeg's libraries leave to their caller.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from omnidata.actions import Screen
from omnidata.errors import MediaError
from omnidata.media.containers import first_frame, open_container
from omnidata.media.paths import Budget
from omnidata.types import MediaRef

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from av.video.frame import VideoFrame


class Turn(NamedTuple):
    """The rotation that makes stored frames upright.

    Attributes:
        swap: whether rows become columns, before anything else.
        across, down: whether they are mirrored left to right, and top to bottom.
    """

    swap: bool = False
    across: bool = False
    down: bool = False

    @property
    def mirrors(self) -> bool:
        """Whether no rotation does the same."""
        return sum(self) % 2 == 1

    def size(self, width: int, height: int) -> Screen:
        """Width and height of the upright frame."""
        return (height, width) if self.swap else (width, height)

    def apply(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return the upright frame.

        Args:
            pixels: uint8 (H, W, 3), as stored.
        """
        import numpy as np

        if not any(self):
            return pixels
        found = pixels.swapaxes(0, 1) if self.swap else pixels
        found = found[:: -1 if self.down else 1, :: -1 if self.across else 1]
        return np.ascontiguousarray(found)


def turn_of(frame: VideoFrame) -> Turn:
    """Return the rotation of a display matrix (ISO 14496-12, 8.3.2); none unless by quarter turns.

    A point (p, q) of the stored frame is shown at (a p + c q, b p + d q), but for an offset.
    """
    from av.sidedata.sidedata import SideData

    matrix = frame.side_data.get("DISPLAYMATRIX")
    if not isinstance(matrix, SideData):
        return Turn()
    a, b, _, c, d = struct.unpack_from("=5i", bytes(matrix))
    if a and d and not (b or c):
        return Turn(False, a < 0, d < 0)
    if b and c and not (a or d):
        return Turn(True, c < 0, b < 0)
    return Turn()


_UPRIGHT = struct.pack(">5i", 1 << 16, 0, 0, 0, 1 << 16)
_MOST_BOXES = 10_000


def is_turned(content: bytes, ref: MediaRef, budget: Budget) -> bool:
    """Return whether a clip's first frame has to be rotated; False if there is no frame.

    Args:
        content: the clip's file; only an MP4 or MOV is looked at.
        ref: whose it is.
        budget: limits.
    """
    if not _may_be_turned(content):
        return False
    try:
        with open_container(content, ref, budget, at_a_glance=True) as container:
            return any(turn_of(first_frame(container, ref, budget)[1]))
    except MediaError:
        return False


def _may_be_turned(content: bytes) -> bool:
    """Return whether a track of an MP4 or MOV has another matrix than most; nothing is decoded.

    The first frame confirms it. Other containers hardly ever have a matrix, and are not looked at.
    """
    place = 0
    for _ in range(_MOST_BOXES):
        length = int.from_bytes(content[place : place + 4])
        name = content[place + 4 : place + 8]
        if length == 1:  # the true length has 64 bits and follows
            length = int.from_bytes(content[place + 8 : place + 16])
        if name == b"moov":
            return _has_matrix(content[place : place + length] if length else content[place:])
        if length < 8:
            return False
        place += length
    return False


def _has_matrix(moov: bytes) -> bool:
    """Return whether a header of the film or of a track has another matrix than upright."""
    for name, before in ((b"mvhd", 36), (b"tkhd", 40)):
        place = moov.find(name)
        while place >= 0:
            place += 4
            longer = 12 if moov[place : place + 1] == b"\1" else 0  # times of 64 bits
            matrix = place + before + longer
            if moov[matrix : matrix + len(_UPRIGHT)] != _UPRIGHT:
                return True
            place = moov.find(name, place)
    return False
