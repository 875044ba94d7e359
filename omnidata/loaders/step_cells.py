"""Values of a step as cells of bytes, which come back with the same types.

A cell is of `marshal`, which keeps the type of every value; what it does not keep is refused, and
the step with it stays in memory. An untouched row is a cell of MessagePack where it is JSON, so
that a few of its values can be read without the others.

Actions, places and media are written as tuples of their fields (`plain_...`) and made again from
those (`restore_...`).
"""

from __future__ import annotations

import marshal
import operator
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypedDict

import msgspec

from omnidata.actions import Action, Box, Point
from omnidata.types import ByteRange, MediaRef, ParquetLocation, VideoSegment

_SCALARS: Final = frozenset[type]({str, int, float, bool, type(None), bytes})
_SEQUENCES: Final = frozenset[type]({list, tuple, set, frozenset})
_KEYS: Final = frozenset[type]({str})


class CannotStoreError(Exception):
    """A value whose type or size the file does not know; its step stays in memory."""


# Any value.


def to_cell(value: Any) -> bytes:
    """Encode a value exactly; `marshal` alone would take arrays for bytes.

    Raises:
        CannotStoreError: it holds another type than those of JSON, bytes, tuples and sets.
    """
    try:
        _check_plain(value)
        return marshal.dumps(value)
    except (ValueError, RecursionError):  # too many levels
        raise CannotStoreError(value) from None


def _check_plain(value: Any) -> None:
    """Refuse what is none of the types of a cell; of a value's parts the simple ones first."""
    kind = type(value)
    if kind is dict:
        if not _SCALARS.issuperset(map(type, value)):
            raise CannotStoreError(value)
        value = value.values()
    elif kind not in _SEQUENCES:
        if kind in _SCALARS:
            return
        raise CannotStoreError(value)
    for each in value:
        if type(each) not in _SCALARS:
            _check_plain(each)


# Untouched rows.

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode
_MARSHALLED: Final = (ord("{"), ord("{") | 0x80)
"""First bytes of a dictionary of `marshal`, and of one that others may refer to. MessagePack begins
no dictionary with them."""


def row_cell(row: Mapping[str, Any]) -> bytes:
    """Encode an untouched row.

    Raises:
        CannotStoreError: as `to_cell`.
    """
    with suppress(ValueError, OverflowError, RecursionError):  # lone surrogates, a large number
        if _is_json(row):
            return _pack(row)
    return to_cell(row)


def _is_json(value: Any) -> bool:
    kind = type(value)
    if kind is dict:
        if not _KEYS.issuperset(map(type, value)):
            return False
        value = value.values()
    elif kind is not list:
        return kind in _SCALARS
    return _SCALARS.issuperset(map(type, value)) or all(map(_is_json, value))


def read_row(cell: memoryview, unpack: Callable[[memoryview], Any] = _unpack) -> Any:
    """Return a row; `unpack` reads one that is MessagePack."""
    return marshal.loads(cell) if cell[0] in _MARSHALLED else unpack(cell)


@lru_cache(maxsize=64)
def unpacker_of(keys: tuple[str, ...]) -> Callable[[memoryview], Any]:
    """Return an `unpack` that reads these keys of a row and skips the others."""
    row = TypedDict("row", dict.fromkeys(keys, Any), total=False)  # type: ignore[misc]  # any keys
    return msgspec.msgpack.Decoder(row).decode


# Tags.


def tags_cell(tags: Mapping[str, str]) -> bytes:
    """Encode tags; the same tags become the same bytes.

    Raises:
        CannotStoreError: a key or a value is no scalar.
    """
    if not _SCALARS.issuperset(map(type, (*tags, *tags.values()))):
        raise CannotStoreError(tags)
    return marshal.dumps(tuple(tags.items()), 2)  # later versions note whether a text is shared


@lru_cache(maxsize=4096)
def read_tags(cell: bytes) -> dict[str, str]:
    """Return one object for the tags of all steps of an episode, as loaders make it."""
    return dict(marshal.loads(cell))


# Actions.

_PLACES: Final = frozenset[type]({Point, Box})
_START, _END, _PATH, _THEN = map(Action.__struct_fields__.index, ("start", "end", "path", "then"))
_DEFAULTS: Final = (None, *Action.__struct_defaults__)
_REQUIRED: Final = _END + 1
"""Fields of an action that are always written; of the others those before the last defaults."""


def plain_action(action: Action | None) -> tuple[Any, ...] | None:
    """Return the fields of an action, without defaults at the end.

    Raises:
        CannotStoreError: it or a part of it is of another class.
    """
    if action is None:
        return None
    if type(action) is not Action or type(action.then) is not tuple:
        raise CannotStoreError(action)
    values = list(msgspec.structs.astuple(action))
    for number in (_START, _END, _PATH):
        if values[number] != ():
            values[number] = _plain_places(values[number])
    if action.then:
        values[_THEN] = tuple(map(plain_action, action.then))
    end = len(values)
    while end > _REQUIRED and values[end - 1] is _DEFAULTS[end - 1]:
        end -= 1
    return tuple(values[:end])


def restore_action(values: tuple[Any, ...] | None) -> Action | None:
    """Return the action of its fields; those missing at the end are defaults."""
    if values is None:
        return None
    kind, start, end = values[:_REQUIRED]
    rest: Any = values[_REQUIRED:]
    if len(values) > _PATH:
        rest = [*rest]
        rest[_PATH - _REQUIRED] = _restore_places(values[_PATH])
        if len(values) > _THEN:
            rest[_THEN - _REQUIRED] = tuple(map(restore_action, values[_THEN]))
    return Action(kind, start and _restore_places(start), end and _restore_places(end), *rest)


def _plain_places(places: Any) -> tuple[tuple[Any, ...], ...]:
    if type(places) is not tuple or not _PLACES.issuperset(map(type, places)):
        raise CannotStoreError(places)
    return tuple(map(msgspec.structs.astuple, places))


def _restore_places(places: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple([Point(*place) if len(place) == 3 else Box(*place) for place in places])


# Media.

_LOCATIONS: Final = (ParquetLocation, ByteRange, VideoSegment)
_FIELDS: Final = {
    kind: operator.attrgetter(*(field.name for field in fields(kind)))
    for kind in (MediaRef, *_LOCATIONS)
}
_PATH_TYPE: Final = type(Path())
_root = lru_cache(maxsize=4096)(Path)


def plain_media(media: Mapping[str, MediaRef | None], within: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of media by role; None stands for the usual `within`.

    Raises:
        CannotStoreError: a reference or a part of it is of another class.
    """
    if type(media) is not dict:
        raise CannotStoreError(media)
    held: dict[str, Any] = {}
    for role, ref in media.items():
        if ref is None:
            held[role] = None
            continue
        if type(ref) is not MediaRef or type(ref.root) is not _PATH_TYPE:
            raise CannotStoreError(ref)
        kind, root, path, inline, cell, sha256, own, until, marks = _FIELDS[MediaRef](ref)
        if cell is not None:
            if type(cell) not in _LOCATIONS:
                raise CannotStoreError(cell)
            cell = _LOCATIONS.index(type(cell)), *_FIELDS[type(cell)](cell)
        own = None if own is within or own == within else own
        held[role] = kind, str(root), path, inline, cell, sha256, own, until, marks
    return held


def has_own_bounds(held: Mapping[str, Any]) -> bool:
    """Return whether one of the `plain_media` is bound to other folders than the usual ones."""
    return any(values and values[6] is not None for values in held.values())


def restore_media(held: Mapping[str, Any], within: tuple[str, ...]) -> dict[str, MediaRef | None]:
    """Return media by role out of their fields."""
    media: dict[str, MediaRef | None] = {}
    for role, values in held.items():
        if values is None:
            media[role] = None
            continue
        kind, root, path, inline, cell, sha256, own, until, marks = values
        if cell is not None:
            cell = _LOCATIONS[cell[0]](*cell[1:])
        own = within if own is None else own
        media[role] = MediaRef(kind, _root(root), path, inline, cell, sha256, own, until, marks)
    return media
