"""The orientation tag of a picture (EXIF 2.3, section 4.6.4), and where the formats keep it."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from PIL.Image import Transpose

_ORIENTATION: Final = 0x0112
_NUMBERS: Final = {3: "H", 4: "I"}
"""Types of whole numbers in TIFF 6.0, section 2: SHORT, which EXIF asks for, and LONG."""
_EXIF, _PROFILE = "exif", "Raw profile type exif"
_XMP: Final = ("XML:com.adobe.xmp", "xmp")
"""Pillow's names of an XMP packet in a PNG, and in others."""
_TAGGED: Final = frozenset({_EXIF, _PROFILE, *_XMP})
_EXIF_CHUNK: Final = b"eXIf"
_TEXT_TAGS: Final = (_PROFILE.encode(), _XMP[0].encode())
"""How the texts with tags begin in a PNG."""
_PNG_TAGS: Final = {_EXIF_CHUNK: _EXIF, **{text: text.decode() for text in _TEXT_TAGS}}
"""Signs of tags in a PNG, and Pillow's names of them."""
_TAGS_TAIL: Final = 1 << 14
"""Bytes at the end of a PNG in which tags are looked for; those before the pixels lie anywhere."""
_SCAN: Final = b"\xff\xda"
"""Begins the pixels of a JPEG."""
_STATED: Final = re.compile(rb'tiff:Orientation(?:="|>)([1-8])')


def turn_by_tags(info: Mapping[Any, Any]) -> Transpose | None:
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


def is_sideways(turn: Transpose | None) -> bool:
    """Return whether rows become columns."""
    from PIL.Image import Transpose

    return turn in {
        *(Transpose.TRANSPOSE, Transpose.ROTATE_270),
        *(Transpose.TRANSVERSE, Transpose.ROTATE_90),
    }


def tags_in_tail(end: bytes) -> list[str]:
    """Return Pillow's names of the tags that may lie in the last bytes of a PNG."""
    end = end[-_TAGS_TAIL:]
    # From behind a short text is found in a third of the time.
    return [name for sign, name in _PNG_TAGS.items() if end.rfind(sign) >= 0]


def may_be_turned(content: bytes) -> bool:
    """Return whether there may be an orientation tag, in a tenth of the time of opening."""
    if content[8:12] == b"WEBP":
        return content[12:16] == b"VP8X"  # other WebP files have pixels alone
    if content.startswith(b"\x89PNG"):
        return _png_may_be_turned(content)
    return _jpeg_may_be_turned(content)


def _png_may_be_turned(content: bytes) -> bool:
    """Look at the chunks before the pixels, and at the end."""
    place = 8
    while (name := content[place + 4 : place + 8]) not in (b"IDAT", b""):
        if name == _EXIF_CHUNK or content.startswith(_TEXT_TAGS, place + 8):
            return True
        place += 12 + int.from_bytes(content[place : place + 4])
    return bool(tags_in_tail(content[-_TAGS_TAIL:]))


def _jpeg_may_be_turned(content: bytes) -> bool:
    """Look at the segments before the pixels."""
    place = 2
    while content[place : place + 1] == b"\xff" and content[place : place + 2] != _SCAN:
        if content[place + 1 : place + 2] in (b"\xe1", b"\xff"):  # EXIF or XMP; padding
            return True
        place += 2 + int.from_bytes(content[place + 2 : place + 4])
    return content[place : place + 2] != _SCAN  # something else than segments: Pillow knows more
