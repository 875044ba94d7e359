"""Picture files: opened within limits, turned upright, and marks drawn on what is in them.

Everything here is given a file or its bytes; `storage` knows where the bytes of a medium are.

A picture is what viewers, browsers and `datasets.Image` show: one with an orientation tag (EXIF) is
turned upright wherever it is read, since its targets refer to the upright picture.
"""

from __future__ import annotations

import io
import re
import struct
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from omnidata.actions import Screen
from omnidata.errors import MediaError, StoreError
from omnidata.media.encoding import png
from omnidata.media.paths import Budget, place
from omnidata.types import MediaRef

if TYPE_CHECKING:
    from PIL.Image import Image, Transpose

_PNG_END = b"IEND\xaeB`\x82"
_PNG_TAIL = 1 << 16
"""Bytes in which a PNG has the marker of its end; a file may have something behind it."""
_FORMATS = ("PNG", "JPEG", "WEBP")

_MAX_SIDE = 65_535
"""Of a picture, in pixels, as JPEG has it: a row has a price of its own, whatever its length."""

_MOST_SCANS = 20
"""How often all pixels of the largest picture may be gone over. A progressive JPEG has about ten
scans; one of kilobytes may have hundreds, and each takes as long as the picture."""

_SCAN = b"\xff\xda"

# Pillow warns of tags that we read ourselves; a filter for a while would be no thread's own.
warnings.filterwarnings("ignore", "Corrupt EXIF data", UserWarning, r"PIL\.")


@dataclass(frozen=True, slots=True)
class OpenPicture:
    """A picture whose header has been read.

    Attributes:
        stored: Pillow's picture, as it lies in the file.
        turn: what turns it upright; None for one that stands upright.
    """

    stored: Image
    turn: Transpose | None

    @property
    def size(self) -> Screen:
        """Width and height in pixels, upright; nothing is decoded."""
        width, height = self.stored.size
        return (height, width) if self.turn in _sideways() else (width, height)

    def decode(self) -> Image:
        """Decode the picture, upright, in RGB."""
        rgb = _in_rgb(self.stored)
        return rgb if self.turn is None else rgb.transpose(self.turn)


@contextmanager
def open_picture(found: Path | bytes, ref: MediaRef, budget: Budget) -> Iterator[OpenPicture]:
    """Open a picture and read its header, for the block.

    Args:
        found: the file, or its bytes.
        ref: whose they are, for errors.
        budget: limits.

    Raises:
        MediaError: it is no picture, has too many pixels, or is a PNG that was cut; or the pixels
            cannot be decoded in the block.
    """
    from PIL import Image

    try:
        with (
            io.BytesIO(found) if isinstance(found, bytes) else found.open("rb") as file,
            Image.open(file, formats=_FORMATS) as picture,
        ):
            if picture.width * picture.height > budget.max_pixels or max(picture.size) > _MAX_SIDE:
                raise MediaError(
                    f"the picture has {picture.width} x {picture.height} pixels",
                    where=place(ref),
                    expected=f"at most {budget.max_pixels} pixels, {_MAX_SIDE} along a side",
                    remedy="set a larger budget if you trust the picture",
                    fault="refused",
                )
            if picture.format == "JPEG":
                _check_scans(file, picture.size, ref, budget)
            if picture.format == "PNG":
                end = _read_png_end(file, ref)
                if any(name not in picture.info for name in _tags_in(end)):
                    picture.load()  # which reads on behind the pixels
            yield OpenPicture(picture, _turn(picture.info))
    except (MediaError, StoreError):
        raise
    except Exception as error:
        # Not a list of types on purpose: hostile bytes make decoders raise whatever they like.
        raise MediaError(
            f"the file cannot be read as an image ({type(error).__name__})",
            where=place(ref),
            expected="a PNG, JPEG or WebP screenshot",
            remedy="repair the file, or leave the step out with --exclude",
            fault="refused" if isinstance(error, Image.DecompressionBombError) else "unreadable",
        ) from None


def read_upright(content: bytes, ref: MediaRef, budget: Budget) -> bytes:
    """Return a picture's own bytes if it is stored upright, else a PNG without a tag.

    Args:
        content: the picture's file; what cannot be opened is returned as it is.
        ref: whose it is, for errors.
        budget: limits.

    Raises:
        MediaError: the picture is turned and cannot be decoded.
    """
    import numpy as np

    if not _may_be_turned(content):
        return content
    try:
        with open_picture(content, ref, budget) as picture:
            turned = picture.turn is not None
    except MediaError:
        return content
    if not turned:
        return content
    with open_picture(content, ref, budget) as picture:
        return png(np.asarray(picture.decode()))


# The orientation tag of EXIF (2.3, section 4.6.4) and where the formats keep it.

_ORIENTATION: Final = 0x0112
_NUMBERS: Final = {3: "H", 4: "I"}
"""Types of whole numbers in TIFF 6.0, section 2: SHORT, which EXIF asks for, and LONG."""
_EXIF, _PROFILE = "exif", "Raw profile type exif"
_XMP: Final = ("XML:com.adobe.xmp", "xmp")
"""Pillow's names of an XMP packet in a PNG, and in others."""
_TAGGED: Final = frozenset({_EXIF, _PROFILE, *_XMP})
_PNG_TAGS: Final = {b"eXIf": _EXIF, _PROFILE.encode(): _PROFILE, _XMP[0].encode(): _XMP[0]}
"""How chunks with tags begin in a PNG, and Pillow's names of them."""
_TAGS_TAIL: Final = 1 << 14
"""Bytes at the end of a PNG in which tags are looked for; those before the pixels lie anywhere."""
_STATED: Final = re.compile(rb'tiff:Orientation(?:="|>)([1-8])')


def _tags_in(end: bytes) -> list[str]:
    """Return Pillow's names of the tags that may lie in the last bytes of a PNG."""
    end = end[-_TAGS_TAIL:]
    # From behind a short text is found in a third of the time.
    return [name for sign, name in _PNG_TAGS.items() if end.rfind(sign) >= 0]


def _may_be_turned(content: bytes) -> bool:
    """Return whether there may be an orientation tag, in a tenth of the time of opening."""
    if content[8:12] == b"WEBP":
        return content[12:16] == b"VP8X"  # other WebP files have pixels alone
    if content.startswith(b"\x89PNG"):
        place = 8
        while content[place + 4 : place + 8] not in (b"IDAT", b""):
            if any(content.startswith(sign, place + 4 + 4 * (len(sign) > 4)) for sign in _PNG_TAGS):
                return True
            place += 12 + int.from_bytes(content[place : place + 4])
        return bool(_tags_in(content[-_TAGS_TAIL:]))
    place = 2
    while content[place : place + 1] == b"\xff" and content[place + 1 : place + 2] != _SCAN[1:]:
        if content[place + 1 : place + 2] in (b"\xe1", b"\xff"):  # EXIF or XMP; padding
            return True
        place += 2 + int.from_bytes(content[place + 2 : place + 4])
    return content[place : place + 2] != _SCAN  # something else than segments: Pillow knows more


def _sideways() -> frozenset[Transpose]:
    from PIL.Image import Transpose

    return frozenset(
        {Transpose.TRANSPOSE, Transpose.ROTATE_270, Transpose.TRANSVERSE, Transpose.ROTATE_90}
    )


def _turn(info: Mapping[Any, Any]) -> Transpose | None:
    """Return the operation that turns a picture upright by its tags; None if it is upright.

    An unreadable tag says nothing, as in viewers. EXIF counts before XMP, as in Pillow.
    """
    if _TAGGED.isdisjoint(info):
        return None
    from PIL.Image import Transpose

    turns = (
        *(None, Transpose.FLIP_LEFT_RIGHT, Transpose.ROTATE_180, Transpose.FLIP_TOP_BOTTOM),
        *(Transpose.TRANSPOSE, Transpose.ROTATE_270, Transpose.TRANSVERSE, Transpose.ROTATE_90),
    )
    number = _orientation(info)
    return turns[number - 1] if 1 <= number <= len(turns) else None


def _orientation(info: Mapping[Any, Any]) -> int:
    block = info.get(_EXIF)
    if block is None and isinstance(profile := info.get(_PROFILE), str):
        try:  # ImageMagick's: a line break, a name, a length, then hexadecimal digits
            block = bytes.fromhex("".join(profile.split("\n")[3:]))
        except ValueError:
            block = None
    if isinstance(block, bytes) and (number := _exif_orientation(block)):
        return number
    packet = info.get(_XMP[0]) or info.get(_XMP[1])
    if isinstance(packet, str):
        packet = packet.encode()
    stated = _STATED.search(packet) if isinstance(packet, bytes) else None
    return int(stated[1]) if stated else 0


def _exif_orientation(block: bytes) -> int:
    """Return the orientation in the first directory of a block of EXIF (a TIFF file); else 0.

    Examples:
        >>> head = bytes.fromhex("4949 2a00 0800 0000 0100")
        >>> _exif_orientation(head + bytes.fromhex("1201 0300 01000000 06000000"))
        6
        >>> _exif_orientation(head)
        0
    """
    while block.startswith(b"Exif\0\0"):
        block = block[6:]
    order = {b"II": "<", b"MM": ">"}.get(block[:2])
    if order is None:
        return 0
    try:
        (begin,) = struct.unpack_from(f"{order}I", block, 4)
        (entries,) = struct.unpack_from(f"{order}H", block, begin)
        for place in range(begin + 2, begin + 2 + 12 * entries, 12):
            tag, kind, count = struct.unpack_from(f"{order}HHI", block, place)
            if tag == _ORIENTATION and count == 1 and kind in _NUMBERS:
                return int(struct.unpack_from(order + _NUMBERS[kind], block, place + 8)[0])
    except struct.error:  # the block ends too early
        return 0
    return 0


def _in_rgb(picture: Image) -> Image:
    import numpy as np
    from PIL import Image

    if picture.mode.startswith("I"):  # 16 bits of grey, which `convert` would cut off at 255
        picture = Image.fromarray((np.asarray(picture) >> 8).clip(0, 255).astype(np.uint8))
    return picture.convert("RGB")


def _read_png_end(file: BinaryIO, ref: MediaRef) -> bytes:
    """Return the last bytes of a PNG, among them the marker of its end."""
    where, size = file.tell(), file.seek(0, 2)
    file.seek(-min(_PNG_TAIL, size), 2)
    end = file.read()
    if not end.endswith(_PNG_END) and _PNG_END not in end:
        raise MediaError(
            f"the PNG ends after {size} bytes without its end marker",
            where=place(ref),
            expected="a complete PNG; this one is truncated",
            remedy="copy or download it again, or leave the step out with --exclude",
            fault="truncated",
        )
    file.seek(where)
    return end


def _check_scans(file: BinaryIO, size: Screen, ref: MediaRef, budget: Budget) -> None:
    """Refuse a JPEG that makes the decoder go over its pixels without end.

    Scans are counted by their markers, which cannot occur within the data of another.
    """
    where = file.tell()
    file.seek(0)
    scans = file.read().count(_SCAN)
    file.seek(where)
    if scans * size[0] * size[1] > _MOST_SCANS * budget.max_pixels:
        raise MediaError(
            f"the JPEG has {scans} scans of {size[0]} x {size[1]} pixels",
            where=place(ref),
            expected=f"at most {_MOST_SCANS * budget.max_pixels} pixels in all scans",
            remedy="save it again as a PNG or an ordinary JPEG, or leave the step out "
            "with --exclude",
            fault="refused",
        )


# Set-of-Mark: boxes with their numbers, as OSWorld draws them (Appendix C.5, Figure 8).

_LABEL: Final = 15
"""Height of a number in pixels on a screen of 1080 lines; larger ones have larger numbers."""
_LINES: Final = 1080


def read_marked(found: Path | bytes, ref: MediaRef, budget: Budget) -> bytes:
    """Return a picture with its marks drawn on it, as a PNG.

    A mark is a red frame with its number, white on black, in its lower left corner. What of a frame
    lies beyond the picture is not seen.

    Args:
        found: the picture's file, or its bytes.
        ref: whose they are, and the marks.
        budget: limits.

    Raises:
        MediaError: as `open_picture`.
    """
    import numpy as np
    from PIL import ImageDraw, ImageFont

    with open_picture(found, ref, budget) as picture:
        drawn = picture.decode()
    scale = max(1, round(min(drawn.size) / _LINES))
    font = ImageFont.load_default(_LABEL * scale)
    draw = ImageDraw.Draw(drawn)
    width, height = drawn.size
    for box in ref.marks:
        frame = [min(max(-1, at), side) for at, side in zip(box, (width, height) * 2, strict=True)]
        draw.rectangle(frame, outline="red", width=scale)
    for number, (left, _, _, bottom) in enumerate(ref.marks, 1):  # no frame hides a number
        corner = min(max(0, left), width), min(max(0, bottom), height)
        draw.rectangle(draw.textbbox(corner, str(number), font=font, anchor="lb"), fill="black")
        draw.text(corner, str(number), font=font, anchor="lb", fill="white")
    return png(np.asarray(drawn))
