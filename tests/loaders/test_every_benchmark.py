"""What holds of the data of every benchmark, whatever their form."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from omnidata.data.convert import convert
from omnidata.registry import benchmarks
from omnidata.tasks import get_task
from tests.data.converting import said
from tests.loaders.every import rows_of


@pytest.mark.parametrize("name", benchmarks())
def test_the_fingerprint_changes_with_every_edit_and_not_with_the_place(
    tmp_path: Path, name: str
) -> None:
    data, fingerprint = rows_of(name, tmp_path / "a"), get_task(name).benchmark.fingerprint
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    before = fingerprint(data)
    for place in ("b", "link"):
        assert fingerprint(tmp_path / place / data.relative_to(tmp_path / "a")) == before
    files = [path for path in (tmp_path / "a").rglob("*") if path.is_file()]
    edited = max(files, key=lambda path: path.stat().st_size)
    if edited.suffix == ".parquet":
        pq.write_table(pq.read_table(edited).slice(1), edited)
    else:
        content = bytearray(edited.read_bytes())
        content[len(content) // 2] ^= 1
        edited.write_bytes(content)
    assert fingerprint(data) != before


@pytest.mark.parametrize("name", benchmarks())
def test_a_repository_gives_every_step_back(tmp_path: Path, name: str) -> None:
    source = get_task(name).load(rows_of(name, tmp_path / "data"), check_media=False)
    convert(source, tmp_path / "out", embed=True)
    back = get_task(name).load(tmp_path / "out", check_media=False)
    for step, again in zip(source.steps, back.steps, strict=True):
        ours, theirs = said(step), said(again)
        ours["media"], theirs["media"] = (
            {role: ref for role, ref in one["media"].items() if ref} for one in (ours, theirs)
        )
        assert ours == theirs
    assert (back.row_ids, back.roles, back.tags) == (source.row_ids, source.roles, source.tags)
