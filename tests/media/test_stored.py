"""Media that lie in cells of Parquet files."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnidata.errors import MediaError, MissingMediaError
from omnidata.media import (
    Budget,
    encode_mp4,
    encode_wav,
    file_hash,
    frames,
    hold,
    linkable,
    probe,
    read_bytes,
    resolve,
    samples,
)
from omnidata.types import MediaRef, Modality, ParquetLocation
from tests.full import in_gate

ROWS, GROUP = 20, 6


def write(table: pa.Table, path: Path, **options: Any) -> None:
    """As `omnidata convert` writes media: neither compressed nor as a dictionary."""
    pq.write_table(
        table, path, compression="none", use_dictionary=False, write_statistics=False, **options
    )


def content(row: int) -> bytes:
    return f"medium {row}".encode() * (row + 1)


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    """Twenty cells in row groups of six, the third of them empty."""
    cells = [
        None if row == 2 else {"bytes": content(row), "path": f"{row}.bin"} for row in range(ROWS)
    ]
    table = pa.table({"other": list(range(ROWS)), "audio": cells})
    write(table, tmp_path / "s.parquet", row_group_size=GROUP)
    return tmp_path / "s.parquet"


def ref(shard: Path, row: int, kind: Modality = "audio", column: str = "audio") -> MediaRef:
    return MediaRef(kind, shard.parent, f"{row}.bin", cell=ParquetLocation(shard.name, column, row))


def digest(found: MediaRef) -> tuple[int, bytes]:
    return os.getpid(), read_bytes(found)


def test_clips_and_tracks_decode_from_cells(tmp_path: Path) -> None:
    pictures = [np.full((32, 32, 3), 20 * number, np.uint8) for number in range(6)]
    clip, track = encode_mp4(pictures, fps=6), encode_wav(np.sin(np.arange(8000) / 5))
    cells = pa.table({"video": [{"bytes": clip}], "audio": [{"bytes": track}]})
    write(cells, tmp_path / "s.parquet")
    shard = tmp_path / "s.parquet"
    (tmp_path / "clip.mp4").write_bytes(clip)
    as_file = MediaRef("video", tmp_path, "clip.mp4")
    as_cell = ref(shard, 0, "video", "video")
    assert np.array_equal(frames(as_cell, which="all").pixels, frames(as_file, which="all").pixels)
    assert probe(as_cell).frames == 6
    assert len(samples(ref(shard, 0))) == 8000


@pytest.mark.parametrize("method", in_gate(["fork", "spawn"], 1, "new processes import much"))
def test_readers_survive_other_processes(shard: Path, method: str) -> None:
    rows = [row for row in range(ROWS) if row != 2] * 5
    assert read_bytes(ref(shard, 0)) == content(0)  # the parent has the file open
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        found = list(pool.map(digest, [ref(shard, row) for row in rows]))
    assert [read for _, read in found] == [content(row) for row in rows]
    assert os.getpid() not in {process for process, _ in found}


def test_readers_survive_threads(shard: Path) -> None:
    rows = [row for row in range(ROWS) if row != 2] * 20
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda row: read_bytes(ref(shard, row)), rows))
    assert found == [content(row) for row in rows]


def test_a_file_that_is_replaced_is_read_anew(shard: Path) -> None:
    assert read_bytes(ref(shard, 1)) == content(1)
    new = shard.with_suffix(".new")
    write(pa.table({"audio": [{"bytes": b"new 0"}, {"bytes": b"new 1"}]}), new)
    new.replace(shard)
    assert read_bytes(ref(shard, 1)) == b"new 1"


def test_the_hash_of_a_file_follows_its_content(tmp_path: Path) -> None:
    for size in (2, 3):
        samples = np.zeros(size)
        (tmp_path / "a.wav").write_bytes(encode_wav(samples))
        track = MediaRef("audio", tmp_path, "a.wav")
        held = hold(track)
        assert held.sha256 == file_hash(track) == hashlib.sha256(held.content).hexdigest()


@pytest.mark.parametrize("row", [2, ROWS, 10**9, -1])
def test_a_cell_that_is_not_there_is_told(shard: Path, row: int) -> None:
    with pytest.raises(MediaError, match=rf"s\.parquet, row {row}, column audio"):
        read_bytes(ref(shard, row))


@pytest.mark.parametrize("column", ["colour", "other", "audio.bytes"])
def test_a_column_that_holds_no_media_is_told(shard: Path, column: str) -> None:
    with pytest.raises(MediaError, match="the cell cannot be read"):
        read_bytes(ref(shard, 0, column=column))


def test_a_broken_or_missing_file_is_told(shard: Path) -> None:
    shard.write_bytes(shard.read_bytes()[:-40])
    with pytest.raises(MediaError, match="the cell cannot be read"):
        read_bytes(ref(shard, 0))
    shard.unlink()
    with pytest.raises(MissingMediaError):
        read_bytes(ref(shard, 0))


def test_cells_and_row_groups_beyond_the_budget_are_refused(shard: Path) -> None:
    with pytest.raises(MediaError, match="row group 3 holds"):
        read_bytes(ref(shard, 18), budget=Budget(max_bytes=20))
    cell = pa.table({"audio": [{"bytes": bytes(1000)}]})
    write(cell, shard)
    with pytest.raises(MediaError, match="the cell has 1000 bytes, more than 999"):
        read_bytes(ref(shard, 0), budget=Budget(max_bytes=999))


def test_a_shard_outside_the_dataset_is_refused(shard: Path, tmp_path: Path) -> None:
    inner = tmp_path / "data"
    inner.mkdir()
    (inner / "link.parquet").symlink_to(shard)
    for name in ("../s.parquet", str(shard), "link.parquet"):
        outside = MediaRef("audio", inner, "0.bin", cell=ParquetLocation(name, "audio", 0))
        with pytest.raises(MediaError):
            read_bytes(outside)


def test_a_cell_has_no_path(shard: Path) -> None:
    assert linkable(ref(shard, 0)) is None
    with pytest.raises(MediaError, match="no file of its own"):
        resolve(ref(shard, 0))
