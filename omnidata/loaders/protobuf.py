"""Protocol buffers without their schemas: the fields of a message, and where they lie.

The format is Google's (protobuf.dev, "Encoding"). Nothing is copied: a field that is not a number
stands for its place, by which a screenshot in a file of gigabytes is found.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

Value = int | slice
"""A varint's number (unsigned), or where the bytes of a field of another type lie."""

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_SIZES = {FIXED64: 8, FIXED32: 4}
_MAX_SHIFT = 63


def whole(data: bytes) -> slice:
    """Return the place of all of the data."""
    return slice(0, len(data))


def fields(data: bytes, message: slice) -> Iterator[tuple[int, int, Value]]:
    """Yield the fields of a message, in order: number, wire type, value.

    Args:
        data: what the message lies in.
        message: where.

    Raises:
        ValueError: the bytes are no message.

    Examples:
        >>> list(fields(bytes([8, 150, 1, 18, 2, 72, 105]), slice(0, 7)))
        [(1, 0, 150), (2, 2, slice(5, 7, None))]
    """
    at, end = message.start, message.stop
    while at < end:
        tag = data[at]  # nearly all tags and sizes are one byte
        at += 1
        if tag >= 0x80:
            tag, at = _varint(data, at - 1, end)
        number, kind = tag >> 3, tag & 7
        if not number:
            raise ValueError("a field has the number 0")
        if kind == VARINT:
            value, at = _varint(data, at, end)
            yield number, kind, value
            continue
        if kind == BYTES:
            size, at = _varint(data, at, end)
        elif kind in _SIZES:
            size = _SIZES[kind]
        else:
            raise ValueError(f"a field has the wire type {kind}")
        if size > end - at:
            raise ValueError("a field is longer than its message")
        yield number, kind, slice(at, at + size)
        at += size


def inner(data: bytes, message: slice, wanted: int) -> Iterator[slice]:
    """Yield the places of the fields with a number that are messages or bytes.

    Raises:
        ValueError: the bytes are no message.
    """
    for number, _, value in fields(data, message):
        if number == wanted and isinstance(value, slice):
            yield value


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > _MAX_SHIFT:
            raise ValueError("a number has more than 64 bits")
    raise ValueError("the message ends within a number")


def varints(data: bytes, value: Value) -> list[int]:
    """Return the numbers of one occurrence of a repeated field, packed or not.

    Raises:
        ValueError: the bytes are no numbers.
    """
    if isinstance(value, int):
        return [value]
    found, at = [], value.start
    while at < value.stop:
        number, at = _varint(data, at, value.stop)
        found.append(number)
    return found


def floats(data: bytes, value: Value) -> list[float]:
    """Return the 32-bit floats of one occurrence of a repeated field, packed or not.

    Raises:
        ValueError: the bytes are no numbers.
    """
    if isinstance(value, int) or (value.stop - value.start) % 4:
        raise ValueError("a list of floats has another type")
    return list(struct.unpack(f"<{(value.stop - value.start) // 4}f", data[value]))


def to_signed(number: int, bits: int = 64) -> int:
    """Return a varint as a signed number.

    Examples:
        >>> to_signed(2**64 - 1)
        -1
    """
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number
