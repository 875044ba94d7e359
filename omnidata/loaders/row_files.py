"""Read files of rows in any format.

A file is known by its content, not by its ending. These are read:

* JSON lines, an object a line; or objects one after the other, over as many lines as they like;
* a JSON list of rows; an object with the list inside (`data`, `rows`, `annotations`, ...), or with
  a list for each split (`train`, `test`, ...);
* one JSON object, which is one row;
* Parquet; its pictures stay in the file until they are opened. Nulls of a row are left out, because
  a table has null for every key that a row lacks.

Texts are UTF-8 with or without a mark, UTF-16 or UTF-32; lines end as they like.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, time, timedelta
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from omnidata.errors import FileError
from omnidata.files import ANY, STREAMED, check_file, open_file, open_parts, open_text, read_text
from omnidata.jsontext import (
    AT_ONCE,
    BROKEN,
    MAX_LINE,
    decode_utf8,
    fault_of,
    is_json_array,
    json_file,
    json_items,
    json_values,
    text_lines,
)
from omnidata.loaders import parquet
from omnidata.types import MediaRef, ParquetLocation

if TYPE_CHECKING:
    import pyarrow.parquet as pq

HEAD: Final = 1024**2
"""Bytes from the beginning of a file in which its columns are looked for."""
WRAPPERS: Final = frozenset(
    ("data", "rows", "annotations", "examples", "samples", "instances", "items", "records")
)
"""Keys of an object that has the list of rows inside."""
SPLITS: Final = frozenset(("train", "test", "val", "valid", "validation", "dev"))
"""Keys of an object that has a list of rows for each split."""

PICTURES: Final = frozenset(("image", "images", "screenshot", "img", "picture"))
"""Columns of bare bytes that are pictures."""

_PARQUET: Final = b"PAR1"
_MAX_FILE: Final = 512 * 1024**2
_PEEKED: Final = 20
_MAX_PEEKED: Final = 64 * 1024
"""Average bytes of a value of Parquet, above which `head_of` leaves its column out."""
_LISTS: Final = frozenset(("list", "element", "item", "array", "bag", "array_element"))
"""What Parquet's writers call the levels of a list."""

_SCALARS: Final = frozenset((str, int, float, bool))

Pictures = Mapping[str, MediaRef | tuple[MediaRef, ...]]


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a file.

    Attributes:
        where: the file and the line, the item of a list, or the row of a table, for findings.
        path: the file.
        number: 0-based, in the file; blank lines do not count.
        row: untouched; of Parquet without pictures and nulls. `read_rows` yields any JSON value, or
            `BROKEN` if it is not JSON; `RowFiles.rows` yields objects only.
        alone: whether the file has this one row and cannot have others.
        pictures: by column, the pictures in the file itself; several if the column has a list.
        fault: why the row is `BROKEN`, and how to fix it.
    """

    where: str
    path: Path
    number: int
    row: Any
    alone: bool = False
    pictures: Pictures = field(default_factory=dict)
    fault: str = ""

    def picture(self, names: Iterable[str]) -> MediaRef | None:
        """Return the picture of the first of these columns that has exactly one."""
        for name in names:
            held = self.pictures.get(name)
            if isinstance(held, MediaRef):
                return held
            if held is not None and len(held) == 1:
                return held[0]
        return None


def read_rows(path: Path, *, unread: Collection[str] = ()) -> Iterator[Line]:
    """Yield every row of a file, in order; anything that is no JSON value has a `fault`.

    JSON lines, lists and Parquet are read part by part. A large list is gone through twice, as
    nothing of a broken one is used.

    Args:
        path: the file.
        unread: columns that are left out, such as whole pages of HTML; of Parquet they are never
            read.

    Raises:
        DataError: it is Parquet and cannot be read.
        OSError: it cannot be read, or is one JSON value other than a list and has more than
            512 MiB.
    """
    value = _small_value(path)
    if value is BROKEN and is_parquet(path):
        yield from _parquet_rows(path, unread)
        return
    for line in _json_rows(path) if value is BROKEN else _document(path, value):
        if unread and isinstance(line.row, dict):
            row = {key: value for key, value in line.row.items() if key not in unread}
            line = replace(line, row=row)
        yield line


def is_parquet(path: Path) -> bool:
    """Return whether a file is Parquet, by its content or its name.

    Raises:
        OSError: it cannot be read.
    """
    if path.suffix.lower() == ".parquet":
        return True
    check_file(path, ANY)
    with open_parts(path) as file:
        return file.read(len(_PARQUET)) == _PARQUET


def head_of(path: Path) -> bytes:
    """Return the beginning of a file as UTF-8, to look for its columns.

    Of Parquet it is the columns' names in quotes, and the first rows as JSON lines.

    Raises:
        DataError: it is Parquet and cannot be read.
        OSError: it cannot be read.
    """
    if is_parquet(path):
        found = path.stat()
        return _parquet_head(path, found.st_size, found.st_mtime_ns)
    try:
        with open_text(path, ANY) as file:
            return file.read(HEAD)
    except FileError:  # zeros at the beginning of something else
        with open_file(path, ANY) as file:
            return file.read(HEAD)


# JSON.


def _small_value(path: Path) -> Any:
    """Return the JSON value that a small file is, which is opened once; BROKEN for all others."""
    if path.suffix.lower() == ".parquet":
        return BROKEN
    with open_text(path, ANY) as file:
        text = file.read(HEAD)
    return decode_utf8(text) if len(text) < HEAD else BROKEN


def _json_rows(path: Path) -> Iterator[Line]:
    mark, has_row_per_line = _look_at_beginning(path)
    if has_row_per_line:
        yield from _lines(path)
    elif mark == b"[" and path.stat().st_size > AT_ONCE and is_json_array(path):
        with open_text(path, STREAMED) as file:
            yield from _items(path, json_items(file))
    else:
        yield from _document(path, json_file(path, _MAX_FILE))


def _is_document(path: Path) -> bool:
    return path.suffix.lower() == ".json"


def _look_at_beginning(path: Path) -> tuple[bytes, bool]:
    """Return the first byte that is no blank, and whether the file has a row per line.

    It does if the first line is a JSON value and another follows, or if most of the first lines are
    objects; one may be broken. A lone object too long to be read here is taken for a first line,
    unless the name says that the file is one document.
    """
    texts: list[bytes] = []
    left = AT_ONCE
    with open_text(path, STREAMED) as file:
        while len(texts) < _PEEKED and left and (text := file.readline(left)):
            left -= len(text)
            if text.strip():
                texts.append(text)
    mark = b"".join(texts).strip()[:1]
    if len(texts) < 2:
        is_long_object = not left and mark == b"{"
        return mark, (not texts or is_long_object) and not _is_document(path)
    values = [decode_utf8(text) for text in texts]
    objects = sum(isinstance(value, dict) for value in values)
    return mark, values[0] is not BROKEN or 2 * objects > len(values)


def _lines(path: Path) -> Iterator[Line]:
    with open_text(path, STREAMED) as file:
        for number, (at, text) in enumerate(text_lines(file)):
            row = BROKEN if len(text) > MAX_LINE else decode_utf8(text)
            fault = fault_of(text.strip()) if row is BROKEN else ""
            yield Line(f"{path}:{at}", path, number, row, fault=fault)


def _items(path: Path, rows: Iterable[Any], of: str = "") -> Iterator[Line]:
    return (
        Line(f"{path}, item {number}{of}", path, number, row) for number, row in enumerate(rows)
    )


def _document(path: Path, value: Any) -> Iterator[Line]:
    if isinstance(value, list):
        yield from _items(path, value)
    elif lists := _lists_in(value):
        number = 0
        for key, rows in lists.items():
            for line in _items(path, rows, f" of {key}"):
                yield replace(line, number=number)
                number += 1
    elif value is not BROKEN:
        alone = _is_document(path)
        yield Line(str(path) if alone else f"{path}:1", path, 0, value, alone)
    elif _is_document(path):
        yield from _values(path)
    else:
        yield from _lines(path)


def _lists_in(value: Any) -> Mapping[str, list[Any]]:
    """Return the lists of rows of an object that holds no others: one, or one for each split."""
    if not isinstance(value, dict):
        return {}
    lists = {
        key: rows
        for key, rows in value.items()
        if isinstance(rows, list) and rows and all(isinstance(row, dict) for row in rows)
    }
    if lists and len(lists) == len(value) and lists.keys() <= SPLITS:
        return lists
    return lists if len(lists) == 1 and lists.keys() <= WRAPPERS else {}


def _values(path: Path) -> Iterator[Line]:
    """Yield objects that follow one another over as many lines as they like."""
    number = -1
    try:
        with open_text(path, STREAMED) as file:
            for number, (at, row) in enumerate(json_values(file)):
                if number == 0 and not isinstance(row, dict):
                    raise ValueError("more follows a value that is no object")
                fault = "" if row is not BROKEN else "it has too many levels"
                yield Line(f"{path}:{at}", path, number, row, fault=fault)
        if number < 0:
            yield Line(str(path), path, 0, BROKEN, alone=True, fault="the file is empty")
    except (ValueError, RecursionError):
        content = read_text(path, _MAX_FILE)
        if number < 0:
            fault = fault_of(content)
        else:
            fault = f"the rest of the file {fault_of(content).removeprefix('it ')}"
        yield Line(str(path), path, number + 1, BROKEN, number < 0, fault=fault)


# Parquet.


def leaf_parts(leaf: str) -> list[str]:
    """Return the path of a leaf of the schema without the levels of lists."""
    column, *below = leaf.split(".")
    return [column, *(part for part in below if part not in _LISTS)]


@dataclass(frozen=True, slots=True)
class _PictureColumns:
    """The columns of pictures: `bytes` in a struct, as the Hub writes, or named like a picture."""

    stored: Mapping[str, str]  # column -> where its pictures lie in the schema
    linked: Collection[str]  # columns whose pictures are files elsewhere: all bytes are null
    leaves: Collection[str]  # of the schema, with bytes, which are never read with the rows

    @classmethod
    def of(cls, file: pq.ParquetFile) -> _PictureColumns:
        stored, linked, leaves = {}, set(), set()
        for number, leaf in enumerate(parquet.leaves(file)):
            column, (name, *below) = file.schema.column(number), leaf_parts(leaf)
            if column.physical_type != "BYTE_ARRAY" or column.logical_type.type == "STRING":
                continue
            if below[-1:] != ["bytes"] and leaf not in PICTURES:
                continue
            leaves.add(leaf)
            if below == ["bytes"] and _is_null(file, number):
                linked.add(name)
            elif below in ([], ["bytes"]):
                stored[name] = leaf.removesuffix(".bytes")
        return cls(stored, linked, leaves)


def _is_null(file: pq.ParquetFile, at: int) -> bool:
    """Return whether a column has nulls alone, by the statistics of the file."""
    for number in range(file.num_row_groups):
        chunk = file.metadata.row_group(number).column(at)
        about = chunk.statistics
        if about is None or not about.has_null_count or about.null_count < chunk.num_values:
            return False
    return True


def _parquet_rows(path: Path, unread: Collection[str]) -> Iterator[Line]:
    # The Hub's cache links its files to others elsewhere, and the rows are from there too.
    real = path.resolve()
    with parquet.open_checked(path) as file:
        columns = _PictureColumns.of(file)
        for number, row in enumerate(parquet.rows(path, file, readable(file, unread))):
            pictures: dict[str, MediaRef | tuple[MediaRef, ...]] = {}
            for name, column in columns.stored.items():
                held, stored = row.pop(name, None), ParquetLocation(real.name, column, number)
                pictures[name] = _pictures(held, real, stored, is_list="." in column)
            for name in columns.linked:
                row[name] = _paths(row[name])
            yield Line(f"{path}, row {number}", path, number, _plain(row), pictures=pictures)


def readable(file: pq.ParquetFile, unread: Collection[str] = ()) -> list[str]:
    """Return the leaves to read: all but the bytes of pictures, and `unread` columns."""
    pictures = _PictureColumns.of(file).leaves
    kept = (leaf for leaf in parquet.leaves(file) if leaf.split(".")[0] not in unread)
    return [leaf for leaf in kept if leaf not in pictures]


def _paths(held: Any) -> Any:
    """Return the paths of linked pictures, in lists as they are held."""
    if isinstance(held, list):
        return [_paths(item) for item in held]
    return held.get("path") if isinstance(held, dict) else held


def _pictures(
    held: Any, real: Path, stored: ParquetLocation, *, is_list: bool
) -> MediaRef | tuple[MediaRef, ...]:
    if is_list:
        items = held if isinstance(held, list) else []
        return tuple(
            _reference(item, real, replace(stored, item=n)) for n, item in enumerate(items)
        )
    return _reference(held, real, stored)


def _reference(held: Any, real: Path, stored: ParquetLocation) -> MediaRef:
    name = (held.get("path") if isinstance(held, dict) else None) or f"{stored.row}"
    return MediaRef("image", real.parent, name, cell=stored)


def _plain(value: Any) -> Any:
    """Return a value of Parquet as JSON has it, without nulls in objects."""
    if value is None or type(value) in _SCALARS:
        return value
    if isinstance(value, dict):
        return {key: _plain(held) for key, held in value.items() if held is not None}
    if isinstance(value, list | tuple):
        return [_plain(held) for held in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, date | time | timedelta):
        return str(value)
    return float(value) if isinstance(value, Decimal) else value


@lru_cache(maxsize=64)
def _parquet_head(path: Path, _size: int, _modified: int) -> bytes:
    """Return the head of a file, once as long as its size and time stay."""
    with parquet.open_checked(path) as file:
        names = dict.fromkeys(part for leaf in parquet.leaves(file) for part in leaf.split("."))
        text = " ".join(f'"{name}"' for name in names)
        kept = readable(file)
        if file.num_row_groups:
            first = file.metadata.row_group(0)
            chunks = map(first.column, range(first.num_columns))
            most = _MAX_PEEKED * max(1, first.num_rows)
            small = {c.path_in_schema for c in chunks if c.total_uncompressed_size <= most}
            kept = [leaf for leaf in kept if leaf in small]
        if kept:
            for row in islice(parquet.rows(path, file, kept, groups=1), _PEEKED):
                text += "\n" + json.dumps(_plain(row), ensure_ascii=False, default=str)
    return text.encode("utf-8", "replace")[:HEAD]
