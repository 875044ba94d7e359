"""Parquet files that others wrote: compressed, with dictionaries, in lists; and bombs."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from omnidata.errors import MediaError
from omnidata.media import Budget, image, read_bytes
from omnidata.types import MediaRef, ParquetLocation

ROWS = 40
LONG = 1_000_000


def png(seed: int) -> bytes:
    """A screenshot-like image: flat areas, edges and some noise."""
    rng = np.random.default_rng(seed)
    pixels = np.full((90, 120, 3), seed * 5 % 256, np.uint8)
    pixels[10:30, 20:100] = rng.integers(0, 256, (20, 80, 3))
    held = io.BytesIO()
    Image.fromarray(pixels).save(held, "PNG")
    return held.getvalue()


CELLS = [None if row == 7 else png(row % 29) for row in range(ROWS)]


def table() -> pa.Table:
    """Forty cells, one of them empty, some the same."""
    named = [cell and {"bytes": cell, "path": f"{row}.png"} for row, cell in enumerate(CELLS)]
    return pa.table({"instruction": [f"Tap {row}" for row in range(ROWS)], "image": named})


def ref(path: Path, row: int, column: str = "image", item: int | None = None) -> MediaRef:
    cell = ParquetLocation(path.name, column, row, item)
    return MediaRef("image", path.parent, f"{row}.png", cell=cell)


def check(path: Path) -> None:
    rows = [row for row in range(ROWS) if CELLS[row]]
    random.Random(1).shuffle(rows)
    for row in (*rows, *sorted(rows)):
        assert read_bytes(ref(path, row)) == CELLS[row]
    assert image(ref(path, 3)).pixels.shape == (90, 120, 3)
    with pytest.raises(MediaError, match="the cell is empty"):
        read_bytes(ref(path, 7))


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "none", "use_dictionary": False, "row_group_size": 6},  # as omnidata writes
        {},
        {"compression": "gzip"},
        {"compression": "zstd", "row_group_size": 9},
        {"compression": "brotli"},
        {"compression": "lz4", "data_page_version": "2.0"},
        {"use_dictionary": False, "data_page_size": 1000, "write_batch_size": 3},
        {"dictionary_pagesize_limit": 20_000, "write_batch_size": 3},
        {"write_page_checksum": True, "write_page_index": True},
        {"use_content_defined_chunking": True, "data_page_version": "2.0"},
    ],
    ids=lambda options: "-".join(options) or "defaults",
)
def test_images_are_read_whatever_pyarrow_writes(tmp_path: Path, options: dict[str, Any]) -> None:
    pq.write_table(table(), tmp_path / "t.parquet", **options)
    check(tmp_path / "t.parquet")


def test_images_are_read_as_datasets_writes_them(tmp_path: Path) -> None:
    kinds = datasets.Features({"instruction": datasets.Value("string"), "image": datasets.Image()})
    made = datasets.Dataset.from_dict(table().to_pydict(), features=kinds)
    made.to_parquet(tmp_path / "t.parquet", batch_size=11)
    check(tmp_path / "t.parquet")


@pytest.mark.parametrize("limit", [1, 1 << 20])
@pytest.mark.parametrize("structs", [True, False], ids=["structs", "columns"])
def test_images_in_lists_are_read(tmp_path: Path, structs: bool, limit: int) -> None:
    cells = [cell and {"bytes": cell, "path": None} for cell in CELLS]
    lists = [cells[row * 5 : row * 5 + 5] for row in range(8)]
    if structs:
        held: list[Any] = [[{"shot": cell} for cell in row] for row in lists]
        column = "actions.list.element.shot"
    else:
        held, column = [{"shot": row} for row in lists], "actions.shot.list.element"
    path = tmp_path / "t.parquet"
    rows = pa.table({"actions": held})
    pq.write_table(rows, path, dictionary_pagesize_limit=limit, write_batch_size=4)
    for number in [*range(ROWS), *range(ROWS - 1, -1, -1)]:
        if CELLS[number]:
            assert read_bytes(ref(path, number // 5, column, number % 5)) == CELLS[number]
    for item in (None, 5):
        with pytest.raises(MediaError, match="the cell cannot be read"):
            read_bytes(ref(path, 2, column, item))
    with pytest.raises(MediaError, match="the cell cannot be read"):
        read_bytes(ref(path, 2, "shot", 0))


@pytest.mark.parametrize("kind", [pa.large_list, lambda inner: pa.list_(inner, 5)])
def test_lists_of_other_writers_are_read(tmp_path: Path, kind: Any) -> None:
    inner = pa.struct([("bytes", pa.large_binary()), ("path", pa.large_string())])
    cells = [cell and {"bytes": cell, "path": None} for cell in CELLS]
    shots = pa.array([cells[row * 5 : row * 5 + 5] for row in range(8)], kind(inner))
    pq.write_table(pa.table({"shots": shots}), tmp_path / "t.parquet")
    for number, cell in enumerate(CELLS):
        place = ref(tmp_path / "t.parquet", number // 5, "shots.list.element", number % 5)
        assert cell is None or read_bytes(place) == cell


def test_columns_are_read_side_by_side(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    cells = table().column("image")
    columns = {f"image{number}": cells for number in range(6)}
    pq.write_table(pa.table(columns), path, row_group_size=9)
    for row in (8, 9, 0, 39, 20):
        for column in columns:
            assert read_bytes(ref(path, row, column)) == CELLS[row]


def write(path: Path, cells: list[bytes | None], **options: Any) -> Path:
    named = [cell and {"bytes": cell} for cell in cells]
    pq.write_table(pa.table({"image": named}), path, **{"use_dictionary": False, **options})
    return path


@pytest.mark.parametrize(
    ("count", "options"),
    [
        (8, {"compression": "zstd"}),
        (8, {"compression": "gzip", "data_page_version": "2.0"}),
        (8, {"compression": "snappy"}),
        (20, {"compression": "zstd", "data_page_size": 1, "write_batch_size": 1}),
    ],
    ids=["zstd", "gzip", "snappy", "pages"],
)
def test_a_bomb_is_refused(tmp_path: Path, count: int, options: dict[str, Any]) -> None:
    path = write(tmp_path / "t.parquet", [bytes(LONG)] * count, **options)
    assert path.stat().st_size < LONG
    with pytest.raises(MediaError, match="row group 0 holds") as caught:
        read_bytes(ref(path, 0), budget=Budget(max_bytes=2 * LONG))
    assert "smaller row groups" in caught.value.remedy


def test_a_bomb_is_refused_although_the_footer_calls_it_small(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", [bytes(LONG)] * 8, compression="zstd")
    size = pq.read_metadata(path).row_group(0).column(0).total_uncompressed_size
    said = bytes([*((2 * size >> 7 * n & 127) | 128 for n in range(3)), 2 * size >> 21])
    content = path.read_bytes()
    assert content.count(said)
    path.write_bytes(content.replace(said, b"\x80\x80\x80\x01"))
    assert pq.read_metadata(path).row_group(0).column(0).total_uncompressed_size < size
    with pytest.raises(MediaError, match="row group 0 holds"):
        read_bytes(ref(path, 0), budget=Budget(max_bytes=2 * LONG))


def test_values_that_repeat_their_beginnings_are_refused(tmp_path: Path) -> None:
    encoding = {"image.bytes": "DELTA_BYTE_ARRAY"}
    path = write(tmp_path / "t.parquet", [bytes(LONG)] * 20, column_encoding=encoding)
    with pytest.raises(MediaError, match="the cell cannot be read"):
        read_bytes(ref(path, 0), budget=Budget(max_bytes=2 * LONG))


def test_many_empty_cells_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", [b"1", *[None] * 300_000])
    assert path.stat().st_size < 10_000
    with pytest.raises(MediaError, match="row group 0 holds"):
        read_bytes(ref(path, 0), budget=Budget(max_bytes=LONG))


def test_one_image_that_is_referred_to_often_takes_its_room_once(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", [bytes(LONG)] * 60, use_dictionary=True)
    before = pa.total_allocated_bytes()
    for row in (59, 0, 30):
        assert len(read_bytes(ref(path, row), budget=Budget(max_bytes=2 * LONG))) == LONG
    assert pa.total_allocated_bytes() < before + 10 * LONG


@pytest.mark.parametrize("form", ["plain", "dictionary", "nested"])
def test_a_row_group_larger_than_the_budget_is_read_in_parts(tmp_path: Path, form: str) -> None:
    rng = random.Random(4)
    cells = [rng.randbytes(100_000) for _ in range(30)]
    path, pages = tmp_path / "t.parquet", {"data_page_size": 1, "write_batch_size": 1}
    if form == "nested":
        rows = [[{"bytes": cell} for cell in cells[row * 3 : row * 3 + 3]] for row in range(10)]
        pq.write_table(pa.table({"shots": rows}), path, dictionary_pagesize_limit=150_000, **pages)
    elif form == "dictionary":
        options = {"use_dictionary": True, "dictionary_pagesize_limit": 150_000}
        write(path, [*cells], **options, **pages)
    else:
        write(path, [*cells], **pages)
    most = 110_000 if form == "plain" else 210_000
    chunk = pq.read_metadata(path).row_group(0).column(0)
    assert chunk.has_dictionary_page is (form != "plain")
    assert chunk.total_uncompressed_size > 2 * most
    for number in (0, 29, 13, 14, 13):
        place = ref(path, number)
        if form == "nested":
            place = ref(path, number // 3, "shots.list.element", number % 3)
        assert read_bytes(place, budget=Budget(max_bytes=most)) == cells[number]


def test_a_large_row_group_of_references_is_refused(tmp_path: Path) -> None:
    rng = random.Random(5)
    often = [rng.randbytes(100_000) for _ in range(2)] * 50
    cells: list[bytes | None] = [*often, *(rng.randbytes(100_000) for _ in range(30))]
    options: dict[str, Any] = {"dictionary_pagesize_limit": 250_000, "write_batch_size": 1}
    path = write(tmp_path / "t.parquet", cells, use_dictionary=True, data_page_size=1, **options)
    assert path.stat().st_size > 2 * 210_000
    with pytest.raises(MediaError, match="row group 0 holds"):
        read_bytes(ref(path, 0), budget=Budget(max_bytes=210_000))


@given(st.integers(4, 60), st.integers(0, 255))
def test_a_damaged_page_header_gives_the_bytes_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, at: int, byte: int
) -> None:
    path = write(tmp_path_factory.mktemp("any") / "t.parquet", [b"some bytes"] * 3)
    content = bytearray(path.read_bytes())
    content[at] = byte
    path.write_bytes(content)
    try:
        assert len(read_bytes(ref(path, 1))) <= 30
    except MediaError as error:
        assert "t.parquet" in error.where
