"""AndroidControl's accessibility forests: where the elements of a screen are.

A forest is a message of android_env (`android_accessibility_forest.proto` and those it imports); of
its thirty fields per element only what is needed here is read:

    Forest  { repeated Window windows = 1; }
    Window  { Rect bounds_in_screen = 1; Tree tree = 11; }
    Tree    { repeated Node nodes = 1; }
    Node    { Rect bounds_in_screen = 2; }
    Rect    { int32 left = 1; top = 2; right = 3; bottom = 4; }
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Iterator

from omnidata.loaders.wire import VARINT, fields, inner, signed, whole

Bounds = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels."""

MAX_BYTES = 64 * 1024**2
_MOST = 20_000


def bounds_of(forest: bytes) -> list[Bounds]:
    """The places of windows and elements, each window before its elements.

    That is the order in which AgentCPM-GUI's preparation of the data finds them in the printed
    message. What states no bounds is left out.

    Raises:
        ValueError: the bytes are no forest, or one of more than 20,000 elements or 64 MB.
    """
    if len(forest) > MAX_BYTES:
        raise ValueError(f"the forest has more than {MAX_BYTES} bytes")
    found = []
    for bounds in _bounds(forest):
        found.append(bounds)
        if len(found) > _MOST:
            raise ValueError(f"the forest has more than {_MOST} elements")
    return found


def _bounds(forest: bytes) -> Iterator[Bounds]:
    for window in inner(forest, whole(forest), 1):
        for rect in inner(forest, window, 1):
            yield _rect(forest, rect)
        for tree in inner(forest, window, 11):
            for node in inner(forest, tree, 1):
                for rect in inner(forest, node, 2):
                    yield _rect(forest, rect)


def _rect(forest: bytes, rect: slice) -> Bounds:
    edges = [0, 0, 0, 0]
    for number, kind, value in fields(forest, rect):
        if kind == VARINT and 1 <= number <= 4 and isinstance(value, int):
            edges[number - 1] = signed(value, 32)
    return edges[0], edges[1], edges[2], edges[3]


def pack(forest: bytes) -> str:
    """A forest as a text that a row can hold, a tenth of its size.

    Examples:
        >>> unpack(pack(bytes(1000))) == bytes(1000)
        True
    """
    return base64.b64encode(zlib.compress(forest, 1)).decode("ascii")


def unpack(text: str) -> bytes:
    """The forest of a text that `pack` made.

    Raises:
        ValueError: the text is none, or the forest has more than 64 MB.
    """
    try:
        inflate = zlib.decompressobj()
        forest = inflate.decompress(base64.b64decode(text, validate=True), MAX_BYTES + 1)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(f"the text is no packed forest ({error})") from None
    if not inflate.eof or len(forest) > MAX_BYTES:
        raise ValueError(f"the forest is cut, or has more than {MAX_BYTES} bytes")
    return forest
