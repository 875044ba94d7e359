"""Read rows of untrusted Parquet files within a limit of memory.

Compression, dictionaries and repeats make gigabytes of kilobytes, at once or row by row. So before
a row group is read, the headers of its pages tell what a batch of its rows may take at the most.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnidata.errors import DataError, StoreError
from omnidata.files import ANY, check_file, open_parts
from omnidata.media.parquet_pages import Pages, open_parquet, page_sizes

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MAX_BYTES = 256 * 1024**2
"""Of the rows that are read at once, unless they take a quarter as much in the file."""

_TIMES = 4
_BATCH_ROWS = 128
_SMALL = 100
"""A column that takes less than a hundredth of the limit is not measured exactly."""
_CELL_BYTES = 100
"""Of a value, when it becomes Python's."""
_MOST_ROWS, _ROW_BYTES = 100_000, 8
"""A file may have so many rows, and one more for every 8 of its bytes."""


def leaves(file: pq.ParquetFile) -> list[str]:
    """Return the paths of the schema's leaves: the columns within structs and lists."""
    return [file.schema.column(number).path for number in range(len(file.schema))]


def rows(
    path: Path, file: pq.ParquetFile, chosen: Sequence[str], *, groups: int | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file.

    Args:
        path: the file.
        file: its reader.
        chosen: which of its `leaves` are read.
        groups: how many row groups are read, from the first on; None for all.

    Raises:
        ValueError: as `check`, or a row takes more memory than it may.
    """
    wanted = range(min(file.num_row_groups, groups or file.num_row_groups))
    check(path, file, chosen, wanted)
    for batch in file.iter_batches(
        _BATCH_ROWS, row_groups=list(wanted), columns=chosen, use_threads=False
    ):
        for part in _parts(batch):
            yield from part.to_pylist()


def check(
    path: Path, file: pq.ParquetFile, chosen: Sequence[str], groups: Iterable[int] | None = None
) -> None:
    """Make sure that rows can be read batch by batch; nothing is read but headers and dictionaries.

    Args:
        path: the file.
        file: its reader.
        chosen: which of its `leaves` are to be read.
        groups: the row groups that are to be read; None for all.

    Raises:
        ValueError: rows would take more memory than they may, or their pages are broken.
    """
    size = path.stat().st_size
    if file.metadata.num_rows > _MOST_ROWS + size // _ROW_BYTES:
        raise ValueError(f"{file.metadata.num_rows} rows in {size} bytes")
    schema = [file.schema.column(number) for number in range(len(file.schema))]
    columns = {column.path: column for column in schema if column.path in chosen}
    with open_parts(path) as content:
        for group in range(file.num_row_groups) if groups is None else groups:
            about = file.metadata.row_group(group)
            chunks = [about.column(number) for number in range(about.num_columns)]
            found = [
                _Column(columns[chunk.path_in_schema], chunk.num_values, page_sizes(content, chunk))
                for chunk in chunks
                if chunk.path_in_schema in columns
            ]
            packed = sum(chunk.total_compressed_size for chunk in chunks)
            most = max(MAX_BYTES, _TIMES * min(size, packed))
            if sum(column.pages.bytes + column.repeated for column in found) <= most:
                continue  # even if each reference were to the longest value
            needed = sum(column.read for column in found)
            if needed <= most:
                needed += sum(column.expanded_bytes(path, file, group) for column in found)
            if needed > most:
                raise ValueError(
                    f"{min(_BATCH_ROWS, about.num_rows)} rows of {needed} bytes, in row group "
                    f"{group} of {packed}"
                )


@dataclass(frozen=True, slots=True)
class _Column:
    schema: pq.ColumnSchema
    values: int
    pages: Pages

    @property
    def nested(self) -> bool:
        return bool(self.schema.max_repetition_level)

    @property
    def read(self) -> int:
        """Bytes of the values that are read at once, at the most, references as such."""
        return self.pages.bytes if self.nested else self.pages.window(_BATCH_ROWS)

    @property
    def repeated(self) -> int:
        """Bytes that references would stand for, if each were to the longest value there may be."""
        longest = 0  # of numbers, for which 8 bytes are counted already
        if self.is_text:
            longest = self.pages.dictionary
        elif self.schema.physical_type == "FIXED_LEN_BYTE_ARRAY" and self.pages.dictionary:
            longest = self.schema.length
        return longest * (self.values if self.nested else min(self.values, _BATCH_ROWS))

    @property
    def is_text(self) -> bool:
        return bool(self.schema.physical_type == "BYTE_ARRAY")

    def expanded_bytes(self, path: Path, file: pq.ParquetFile, group: int) -> int:
        """Bytes that the references that are read at once stand for, at the most."""
        import pyarrow.compute as pc
        from pyarrow import types

        if not self.is_text or self.repeated * _SMALL <= MAX_BYTES:
            return self.repeated
        name, total = self.schema.path, 0
        with open_parquet(
            path,
            metadata=file.metadata,
            read_dictionary=[name],
            page_checksum_verification=False,
        ) as references:
            for batch in references.iter_batches(
                self.values if self.nested else 1,
                row_groups=[group],
                columns=[name],
                use_threads=False,
            ):
                values = batch.column(0)
                while types.is_nested(values.type):
                    values = values.field(0) if types.is_struct(values.type) else values.flatten()
                lengths = pc.binary_length(values.dictionary)
                if not self.nested:
                    return _BATCH_ROWS * int(pc.max(lengths).as_py() or 0)
                total += pc.sum(lengths.take(values.indices)).as_py() or 0
        return total


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the batch in parts that may be Python's values at once."""
    needed = batch.nbytes + _CELL_BYTES * sum(map(_cells, batch.columns))
    if needed <= MAX_BYTES:
        yield batch
        return
    if batch.num_rows == 1:
        raise ValueError(f"1 row of {needed} bytes")
    half = batch.num_rows // 2
    yield from _parts(batch.slice(0, half))
    yield from _parts(batch.slice(half))


def _cells(values: pa.Array) -> int:
    """Count the values in an array, with those in structs and lists."""
    from pyarrow import types

    if types.is_struct(values.type):
        parts = [values.field(number) for number in range(values.type.num_fields)]
    else:
        parts = [values.flatten()] if types.is_nested(values.type) else []
    return len(values) + sum(map(_cells, parts))


@contextmanager
def open_checked(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a file; errors of Arrow about hostile bytes become a `DataError`.

    Raises:
        DataError: the file cannot be read.
    """
    check_file(path, ANY)
    try:
        with open_parquet(path) as file:
            yield file
    except StoreError:
        raise
    except Exception as error:
        raise DataError(
            f"the Parquet file cannot be read ({type(error).__name__}: {error})",
            where=str(path),
            expected="a complete Parquet file as the Hub stores them",
            remedy="download it again",
        ) from None


def digest(path: Path, file: pq.ParquetFile, columns: Sequence[str]) -> bytes:
    """Return SHA-256 over some columns of a file, and over the sizes of all.

    Args:
        path: the file.
        file: its reader.
        columns: which of its `leaves` are read.

    Raises:
        ValueError: as `rows`.
    """
    found, about = hashlib.sha256(), file.metadata
    for group in range(about.num_row_groups):
        for column in range(about.num_columns):
            size = about.row_group(group).column(column).total_compressed_size
            found.update(f"{size} ".encode())
    for row in rows(path, file, columns):
        found.update(json.dumps(row, default=str).encode())
    return found.digest()
