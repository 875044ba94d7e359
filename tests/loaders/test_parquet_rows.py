"""Rows of Parquet files are read within a limit of memory, whatever made them small."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnidata.data.convert import convert
from omnidata.errors import DataError
from omnidata.loaders import repository
from omnidata.loaders.row_files import read_rows
from omnidata.tasks import get_task
from omnidata.tasks.omnigui.load import load
from tests.full import FULL
from tests.measured import cost
from tests.trees import row, write_rows

LIMIT = 256 if FULL else 32
"""MiB of rows that are read at once: fewer than usual, so that bombs are made faster."""
LONG = "x" * LIMIT * 12_000


@pytest.fixture
def _limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnidata.loaders.parquet.MAX_BYTES", LIMIT * 1024**2)


def again(text: str, count: int) -> pa.Array:
    """One text many times."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array([text]))


def write(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pq.write_table(pa.table(columns), path, **{"compression": "zstd", **options})
    return path


def read(path: Path) -> list[object]:
    return [line.row for line in read_rows(path)]


PLAIN = {"use_dictionary": False, "data_page_size": 1, "write_batch_size": 1}
BOMBS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "compressed": ({"t": [LONG] * 130}, PLAIN),
    "one-page": ({"t": [LONG] * 130}, {"use_dictionary": False}),
    "dictionary": ({"t": again(LONG, 400)}, {}),
    "several": ({f"t{number}": again(LONG[: len(LONG) // 3], 200) for number in range(4)}, {}),
    "nested": ({"t": [[{"text": LONG[: len(LONG) // 30]}] * 60] * 100}, {}),
    "nulls": ({"t": pa.array([[None] * len(LONG)], pa.list_(pa.string()))}, {}),
    "numbers": ({"t": [[1] * len(LONG)]}, {}),
    "rows": ({"t": pa.nulls(400_000, pa.string())}, {}),
    "beginnings": ({"t": [LONG] * 130}, {**PLAIN, "column_encoding": {"t": "DELTA_BYTE_ARRAY"}}),
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.usefixtures("_limited")
def test_a_small_file_of_large_rows_is_refused(tmp_path: Path, name: str) -> None:
    columns, options = BOMBS[name]
    path = write(tmp_path / "a.parquet", columns, **options)
    assert path.stat().st_size < 100_000
    with pytest.raises(DataError, match=r"rows? (of|in) \d+ bytes|encoding 7"):
        read(path)


def test_a_bomb_takes_no_memory(tmp_path: Path) -> None:
    rows = {
        "instruction": again("x" * 5_000_000, 500),
        "image": pa.nulls(500, pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
        "source": again("web", 500),
        "platform": again("x", 500),
        "bbox": [[0.0, 0.0, 1.0, 1.0]] * 500,
        "resolution": [[100, 100]] * 500,
    }
    path = write(tmp_path / "test-00000-of-00001.parquet", rows)
    assert path.stat().st_size < 20_000
    with pytest.raises(DataError, match=r"128 rows of \d+ bytes"):
        get_task("groundui").load(tmp_path)
    found = cost(
        """
        import numpy, pyarrow.compute, pyarrow.parquet
        from omnidata.errors import DataError
        from omnidata.loaders.row_files import read_rows
        """,
        """
        try:
            print(sum(1 for _ in read_rows(Path(sys.argv[1]))))
        except DataError as error:
            print(error)
        """,
        path,
    )
    assert "128 rows of" in found.said
    assert found.mebibytes < 300


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"row_group_size": 500},
        {"use_dictionary": False, "compression": "none"},
        {"data_page_version": "2.0", "compression": "gzip"},
        {"use_dictionary": False, "column_encoding": {"id": "DELTA_LENGTH_BYTE_ARRAY"}},
        {"write_statistics": False, "dictionary_pagesize_limit": 1 << 27},
    ],
    ids=lambda options: "-".join(options) or "defaults",
)
def test_usual_rows_come_as_they_were(tmp_path: Path, options: dict[str, Any]) -> None:
    count = 600
    history = [
        {"kind": "TAP", "left": number * 0.1, "text": f"{number} " * 9} for number in range(99)
    ]
    rows = [
        {
            "id": f"episode/{number}" * 20,
            "app": ("Clock", "")[number % 2],
            "prompt": f"Open window {number} of {number % 7}. " * 30,
            "history": history[: number % 50],
            "known": number % 3 == 0,
            "point": {"x": number / 7} if number % 2 else {"y": 0.5},  # the other one is null
        }
        for number in range(count)
    ]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    assert read(write(tmp_path / "a.parquet", columns, **options)) == rows


@pytest.mark.usefixtures("_limited")
def test_a_row_group_larger_than_the_limit_is_read_row_by_row(tmp_path: Path) -> None:
    count = 40 * LIMIT  # rows of 38 KB, which hardly take any room in the file
    options = {"data_page_size": 1 << 20, "write_batch_size": 64, "use_dictionary": False}
    texts = [f"{number} and so on, " * 2000 for number in range(count)]
    path = write(tmp_path / "a.parquet", {"t": texts}, **options)
    assert sum(map(len, texts)) > LIMIT * 1024**2 > 4 * path.stat().st_size
    found = (line.row for line in read_rows(path))
    assert all(row == {"t": text} for row, text in zip(found, texts, strict=True))


def test_a_repository_of_large_rows_is_not_handed_to_datasets(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "steps.json", [row(image_path="")])
    convert(load(data), tmp_path / "out", embed=True)
    [shard] = (tmp_path / "out" / "data").rglob("*.parquet")
    table = pq.read_table(shard)
    place = table.schema.get_field_index("instruction")
    many = pa.concat_tables([table] * 500)
    large = many.set_column(place, "instruction", again("x" * 5_000_000, 500))
    pq.write_table(large, shard)
    assert shard.stat().st_size < 1_000_000
    with pytest.raises(DataError, match=r"rows of \d+ bytes"):
        repository.open_dataset(tmp_path / "out", "omnigui", "all")
