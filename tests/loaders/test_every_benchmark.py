"""What holds of the data of every benchmark, whatever their form."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from omnidata.data.convert import convert
from omnidata.registry import benchmarks
from omnidata.tasks import get_task
from tests.data.converting import said
from tests.loaders.every import rows_of
from tests.loaders.neighbours import web_row
from tests.loaders.phones import zoo
from tests.loaders.published_forms import prepared
from tests.trees import write_lines

ODD: tuple[Any, ...] = (None, True, 7, -0.5, 2**70, "\ud800", [], [7], {"a": 1}, {"\ud800": 1})


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


def changes(value: Any) -> Iterator[Any]:
    """The value with odd ones in it, one at a time."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from ({**value, key: new} for new in (*ODD, *changes(inner)))
        yield {**value, "\ud800": 1}
    elif isinstance(value, list) and value:
        yield from ([new, *value[1:]] for new in (*ODD, *changes(value[0])))


def row_of(name: str, folder: Path) -> Any:
    """A row of the benchmark as JSON."""
    if name == "androidcontrol":
        return json.loads(prepared(folder).read_text())[0]
    if name == "mind2web":
        return web_row(screenshot="a.png")
    if name == "aitw":
        return zoo()
    text = rows_of(name, folder).read_text()
    rows = json.loads(text if text.startswith("[") else f"[{text.splitlines()[-1]}]")
    return rows[-1]


@pytest.mark.parametrize("name", sorted({*benchmarks()} - {"osworld"}))
def test_a_row_of_any_values_is_a_step_or_a_finding(tmp_path: Path, name: str) -> None:
    row = row_of(name, tmp_path / "data")
    path = rows_of(name, tmp_path / "data").with_suffix(".jsonl")
    shutil.rmtree(tmp_path / "data")
    path.parent.mkdir(parents=True)
    task = get_task(name)
    source = task.load(write_lines(path, [row, *changes(row)]), check_media=False)
    assert source.findings
    assert source.steps
    for step in source.steps:
        assert all(0 <= side < 2**31 for side in step.screen)
        assert task.explanation(step, None, "", profile=task.default_profile)
        task.target(step)
