"""Parquet files of the Hub's form: rows without their images, and where the images lie."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnidata.errors import DataError
from omnidata.files import ANY, check_file
from omnidata.loaders import parquet_rows
from omnidata.loaders.agentstudio_columns import IMAGES
from omnidata.types import Cell, MediaRef

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_LISTS = ("list", "element", "item", "array", "bag", "array_element")
"""What Parquet's writers call the levels of a list."""


@dataclass(frozen=True, slots=True)
class Held:
    """The images that a row of a Parquet file holds itself.

    Attributes:
        path: the file.
        row: 0-based, counted through the file.
        columns: where the schema has the images: by the names that the authors' files have, those
            of a trajectory in lists.
    """

    path: Path
    row: int
    columns: Mapping[str, str]

    def image(self, column: str, name: str, item: int | None) -> MediaRef:
        """A reference to an image by the name that it had; `item` is the action's number."""
        # The Hub's cache links its files to others elsewhere, and the rows are from there too.
        path = self.path.resolve()
        cell = Cell(path.name, self.columns[column], self.row, item)
        return MediaRef("image", path.parent, name, cell=cell)


def columns(path: Path) -> list[str]:
    """The top-level columns.

    Raises:
        DataError: the file cannot be read.
    """
    with _opened(path) as file:
        return list(file.schema_arrow.names)


def rows(path: Path) -> Iterator[tuple[dict[str, Any], Held]]:
    """Every row; of images only the names are read.

    Raises:
        DataError: the file cannot be read.
    """
    with _opened(path) as file:
        images = [leaf for leaf in parquet_rows.leaves(file) if _is_image(leaf)]
        held = {_parts(leaf)[-2]: leaf.removesuffix(".bytes") for leaf in images}
        wanted = [leaf for leaf in parquet_rows.leaves(file) if leaf not in images]
        for number, row in enumerate(parquet_rows.rows(path, file, wanted)):
            yield row, Held(path, number, held)


def _is_image(leaf: str) -> bool:
    """Whether a leaf of the schema holds the bytes of images, in lists or not."""
    *above, column, last = ["", *_parts(leaf)]
    return last == "bytes" and column in IMAGES and above in ([""], ["", "actions"])


def _parts(leaf: str) -> list[str]:
    """The path of a leaf without the levels of lists."""
    return [part for part in leaf.split(".") if part not in _LISTS]


def fingerprint(path: Path) -> bytes:
    """A hash of what the rows say, and of how much room the images take.

    Raises:
        DataError: the file cannot be read.
    """
    digest = hashlib.sha256()
    with _opened(path) as file:
        about = file.metadata
        for group in range(about.num_row_groups):
            for column in range(about.num_columns):
                size = about.row_group(group).column(column).total_compressed_size
                digest.update(f"{size} ".encode())
    for row, _ in rows(path):
        digest.update(json.dumps(row, default=str).encode())
    return digest.digest()


@contextmanager
def _opened(path: Path) -> Iterator[pq.ParquetFile]:
    """The file; whatever Arrow says of hostile bytes becomes a `DataError`."""
    import pyarrow.parquet as pq

    check_file(path, ANY)
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            yield file
    except Exception as error:
        raise DataError(
            f"the Parquet file cannot be read ({type(error).__name__}: {error})",
            where=str(path),
            expected="a whole Parquet file of the Hub's form",
            remedy="download it again",
        ) from None
