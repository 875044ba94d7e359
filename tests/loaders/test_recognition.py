"""Which benchmarks' rows some data are."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import omnidata
from omnidata.data.convert import convert
from omnidata.errors import DataError
from omnidata.loaders.load import reading, recognise
from omnidata.loaders.repository import MANIFEST
from omnidata.registry import names
from omnidata.tasks import get_task
from tests.full import FULL
from tests.loaders.agentstudio import columnwise, ground, single, trajectory, write
from tests.trees import row, write_app, write_rows

TRAJECTORIES = ["criticbench", "idm-multiple"]


def test_every_form_of_the_data_is_recognised(sample: Path, tmp_path: Path) -> None:
    assert recognise(sample) == ["omnigui"]
    assert recognise(write_app(tmp_path / "TED", [row()])) == ["omnigui"]
    steps = write_rows(tmp_path / "release" / "merged_sorted.json", [row()])
    assert recognise(steps) == recognise(steps.parent) == ["omnigui"]
    hub = write(tmp_path / "hub" / "data" / "test.jsonl", columnwise(ground()))
    assert recognise(hub) == recognise(tmp_path / "hub") == ["groundui"]
    table = tmp_path / "table" / "test-00000-of-00002.parquet"
    table.parent.mkdir()
    pq.write_table(pa.Table.from_pylist([trajectory(metadata={"a": 1})]), table)
    assert recognise(table) == recognise(table.parent) == TRAJECTORIES


def test_steps_after_a_row_that_is_none_are_recognised(tmp_path: Path) -> None:
    text = "\ufeff[\n {}, " + json.dumps({"ID": "1", "step_index": 0}) + "]"
    (tmp_path / "steps.json").write_text(text, encoding="utf-8")
    assert recognise(tmp_path) == ["omnigui"]


def test_a_folder_with_rows_of_several_benchmarks_is_all_of_them(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", single())
    write(tmp_path / "b.jsonl", trajectory())
    assert recognise(tmp_path) == [*TRAJECTORIES, "idm-single"]
    with pytest.raises(DataError) as caught:
        get_task("groundui").load(tmp_path)
    assert "rows of criticbench, idm-multiple or idm-single: name" in caught.value.remedy


@pytest.mark.parametrize("content", ["", "[]", "{}", "[" * 100_000, '{"a": ' * 100_000, "[1, 2]"])
@pytest.mark.parametrize("name", ["rows.jsonl", "steps.json", "rows.parquet"])
def test_what_is_no_rows_is_recognised_by_none(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert recognise(tmp_path / name) == recognise(tmp_path) == []
    assert recognise(tmp_path / "none") == []


POINTER = b"version https://git-lfs"


@settings(max_examples=2000 if FULL else 8)  # each asks all benchmarks eight times
@given(st.binary(max_size=300).filter(lambda content: not content.startswith(POINTER)))
def test_no_bytes_make_it_raise(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """But for pointers of git-lfs, which are refused with what fetches the file."""
    folder = tmp_path_factory.mktemp("bytes")
    for name in ("x.jsonl", "x.json", "x.parquet", MANIFEST):
        (folder / name).write_bytes(content)
        assert set(recognise(folder / name)) | set(recognise(folder)) <= set(names())


@pytest.mark.parametrize(("held", "asked"), [("omnigui", "groundui"), ("criticbench", "omnigui")])
def test_a_repository_of_another_benchmark_names_it_every_way(
    tmp_path: Path, held: str, asked: str
) -> None:
    data = write(tmp_path / "rows.jsonl", trajectory())
    if held == "omnigui":
        data = write_rows(tmp_path / "steps.json", [row()])
    convert(get_task(held).load(data), tmp_path / "out", embed=True)
    for way in (get_task(asked).load, partial(omnidata.load_dataset, asked)):
        with pytest.raises(DataError, match=f"the repository holds {held}") as caught:
            way(tmp_path / "out")
        assert f"these are rows of {held}: name that task" in caught.value.remedy


def test_a_repository_of_an_unknown_benchmark_names_no_task(tmp_path: Path) -> None:
    data = write(tmp_path / "rows.jsonl", ground())
    convert(get_task("groundui").load(data), tmp_path / "out", embed=True)
    manifest = tmp_path / "out" / MANIFEST
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "task": "rm -rf"}))
    assert recognise(tmp_path / "out") == []
    with pytest.raises(DataError, match="holds rm -rf") as caught:
        get_task("groundui").load(tmp_path / "out")
    assert "rm" not in caught.value.remedy


def test_the_builders_name_the_right_task(tmp_path: Path) -> None:
    data = write(tmp_path / "data" / "rows.jsonl", ground())
    omnidata.register()
    for way in (
        partial(omnidata.load_dataset, "idm-single", data),
        partial(omnidata.load_dataset, "omnigui", data),
        partial(datasets.load_dataset, "omnigui", data_dir=str(data.parent)),
    ):
        with pytest.raises(DataError) as caught:
            way()
        assert "these are rows of groundui" in caught.value.remedy


def test_an_error_about_data_that_may_be_right_stays_as_it_is(tmp_path: Path) -> None:
    data, error = write(tmp_path / "rows.jsonl", trajectory()), DataError("x", remedy="y")
    for task in TRAJECTORIES:
        with pytest.raises(DataError) as caught, reading(data, task):
            raise error
        assert caught.value is error
