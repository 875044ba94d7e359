"""Is a file whole by its own structure? Decoders often take what is there and say nothing."""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from omnidata.media.paths import DEFAULT_BUDGET, Budget
from omnidata.media.storage import file_or_bytes
from omnidata.types import MediaRef

_STREAMED = 0x7FFF_0000
"""RIFF sizes from here on are what writers put that did not know the size."""

_PAYLOAD = {b"data", b"VP8 ", b"VP8L"}
_BOXES = {
    *(b"ftyp", b"styp", b"moov", b"moof", b"mdat", b"mfra", b"sidx", b"ssix"),
    *(b"free", b"skip", b"wide", b"uuid", b"meta", b"emsg", b"prft"),
}
_EBML, _SEGMENT, _CLUSTER = b"\x1a\x45\xdf\xa3", b"\x18\x53\x80\x67", b"\x1f\x43\xb6\x75"
_MOST_PARTS = 10_000  # a clip in fragments has two boxes for each
_MOST_BLOCKS = 1_000_000  # frames, and as many pieces of sound
_TAIL = 1 << 16


def cut_short(ref: MediaRef, *, budget: Budget = DEFAULT_BUDGET) -> str:
    """How much of the file is missing by its own header; empty if none, or it cannot be known.

    Known are MP4 and MOV (boxes), Matroska and WebM (segment), WAV, AVI and WebP (the chunk of
    sound or pictures), and JPEG (end marker; to be asked of undecodable files only, as others may
    have anything behind it).

    Raises:
        MediaError: the medium is missing, or is not opened at all.
    """
    if ref.inline is not None:
        return ""
    with _file(ref, budget) as (file, size):
        head = file.read(8)
        if head[:3] == b"\xff\xd8\xff":
            file.seek(-min(size, _TAIL), os.SEEK_END)
            return "" if b"\xff\xd9" in file.read() else f"{size} bytes without an end marker"
        stated = 0
        if len(head) < 8:
            return ""
        if head[:4] == b"RIFF":
            stated = _riff(file, size)
        elif head[4:] in _BOXES:
            stated = _boxes(file, size)
        elif head[:4] == _EBML:
            begin, length = _segment(file, size)
            stated = begin + length if length else 0
    return f"{size} bytes of {stated}" if stated > size else ""


def corruption(ref: MediaRef, *, budget: Budget = DEFAULT_BUDGET) -> str:
    """Where a file that is not cut short has bytes that cannot be; empty where none are known.

    Matroska, WebM and AVI only: FFmpeg leaves such bytes out, with all that it cannot find again
    behind them. Damage inside a frame is the decoder's to tell.

    Raises:
        MediaError: the medium is missing, or is not opened at all.
    """
    if ref.inline is not None:
        return ""
    with _file(ref, budget) as (file, size):
        head = file.read(12)
        place: int | None = None
        if head[:4] == _EBML:
            begin, length = _segment(file, size)
            place = _no_element(file, begin, begin + length) if length else None
        elif head[:4] == b"RIFF" and head[8:] == b"AVI ":
            begin, length = _payload(file, size)
            place = _no_chunk(file, begin, min(begin + length, size)) if length else None
    return "" if place is None else f"what begins at byte {place} of {size} is no part of it"


@contextmanager
def _file(ref: MediaRef, budget: Budget) -> Iterator[tuple[BinaryIO, int]]:
    """The bytes, at their beginning, and how many there are."""
    found = file_or_bytes(ref, budget=budget)
    with io.BytesIO(found) if isinstance(found, bytes) else found.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        yield file, size


def _riff(file: BinaryIO, size: int) -> int:
    """Where the payload ends by its header; where there is none, the file; 0 if that is open."""
    begin, length = _payload(file, size)
    if begin:
        return begin + length
    file.seek(4)
    (length,) = struct.unpack("<I", file.read(4))
    return length + 8 if length < _STREAMED else 0


def _payload(file: BinaryIO, size: int) -> tuple[int, int]:
    """Where sound or pictures begin, and their bytes: 0 if that is left open; (0, 0) if nowhere.

    What else a file holds is not looked at: writers miscount it, and players do not mind.
    """
    begin = 12
    for _ in range(_MOST_PARTS):
        if begin + 12 > size:
            break
        file.seek(begin)
        name, length, kind = struct.unpack("<4sI4s", file.read(12))
        begin += 8
        if name in _PAYLOAD or (name == b"LIST" and kind == b"movi"):
            return begin, length if length < _STREAMED else 0
        begin += length + length % 2
    return 0, 0


def _no_chunk(file: BinaryIO, begin: int, end: int) -> int | None:
    """Where the list of an AVI's frames holds what has no name, or does not fit into it."""
    begin += 4
    for _ in range(_MOST_BLOCKS):
        if begin + 8 > end:
            return None
        file.seek(begin)
        name, length = struct.unpack("<4sI", file.read(8))
        if not all(32 <= letter < 127 for letter in name) or begin + 8 + length > end:
            return begin
        begin += 12 if name == b"LIST" else 8 + length + length % 2
    return None


def _boxes(file: BinaryIO, size: int) -> int:
    """Where the last box ends; 0 where a box may end anywhere."""
    end = 0
    for _ in range(_MOST_PARTS):
        if end + 8 > size:
            break
        file.seek(end)
        head = file.read(16)
        (length,) = struct.unpack(">I", head[:4])
        if length == 1 and len(head) == 16:
            (length,) = struct.unpack(">Q", head[8:])
        if length < 8 or head[4:8] not in _BOXES:
            return 0  # "up to the end of the file", or bytes that are no box
        end += length
    return end


def _segment(file: BinaryIO, size: int) -> tuple[int, int]:
    """Where the one segment's content begins, and its bytes: 0 if they are left open."""
    file.seek(len(_EBML))
    begin = _length(file) + file.tell()
    if begin > size:
        return 0, 0
    file.seek(begin)
    if file.read(len(_SEGMENT)) != _SEGMENT:
        return 0, 0
    length = _length(file)
    return file.tell(), length


def _no_element(file: BinaryIO, begin: int, end: int) -> int | None:
    """Where a segment, or a cluster in it, holds something that is no EBML element."""
    for _ in range(_MOST_BLOCKS):
        if begin >= end:
            break
        file.seek(begin)
        first = file.read(1)
        count = 9 - first[0].bit_length() if first else 9
        if count > 4:  # an identifier has one byte to four
            return begin
        name = first + file.read(count - 1)
        length = _length(file)
        inside = file.tell()
        if name != _CLUSTER:
            # Only clusters may leave their size open.
            if inside + length > end:
                return begin
            inside += length
        begin = inside
    return None


def _length(file: BinaryIO) -> int:
    """An EBML number: as many bytes as its first has leading zeros, and one; 0 for "unknown"."""
    first = (file.read(1) or b"\0")[0]
    count = 8 - first.bit_length()
    bits = 7 * (count + 1)
    value = int.from_bytes(bytes([first]) + file.read(count)) & ((1 << bits) - 1)
    return 0 if value == (1 << bits) - 1 else value
