"""Every benchmark has the same steps whatever holds its rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnidata import registry
from omnidata.loaders.load import recognise
from omnidata.loaders.row_files import read_rows
from omnidata.media import read_bytes
from omnidata.tasks import get_task
from omnidata.types import Step
from tests.data import tiny
from tests.full import FULL
from tests.loaders import neighbours, osworld, phones
from tests.loaders.every import rows_of

Rows = Sequence[dict[str, Any]]


def _lines(rows: Rows, end: str = "\n") -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + end for row in rows)


def _parquet(rows: Rows) -> bytes:
    buffer = pa.BufferOutputStream()
    names = dict.fromkeys(name for row in rows for name in row)
    table = pa.Table.from_pylist([{name: row.get(name) for name in names} for row in rows])
    pq.write_table(table, buffer)
    return buffer.getvalue().to_pybytes()  # type: ignore[no-any-return]


FORMS: dict[str, tuple[str, Callable[[Rows], bytes]]] = {
    "lines in .json": (".json", lambda rows: _lines(rows).encode()),
    "list": (".json", lambda rows: json.dumps(list(rows), indent=1).encode()),
    "list in .jsonl": (".jsonl", lambda rows: json.dumps(list(rows)).encode()),
    "list inside": (".json", lambda rows: json.dumps({"v": 1, "data": list(rows)}).encode()),
    "splits": (".json", lambda rows: json.dumps({"train": rows[:1], "test": rows[1:]}).encode()),
    "mark and CRLF": (".jsonl", lambda rows: _lines(rows, "\r\n").encode("utf-8-sig")),
    "utf-16": (".jsonl", lambda rows: _lines(rows, "\r\n").encode("utf-16")),
    "utf-16 list": (".json", lambda rows: json.dumps(list(rows)).encode("utf-16")),
    "parquet": (".parquet", _parquet),
}
FARTHEST = ("list", "list inside", "utf-16", "parquet")
"""Forms that differ most; tests/loaders/test_row_files.py reads the rows of all of them."""
ROWS: dict[str, Rows] = {
    "androidcontrol": [
        {"image": "a.png", "instruction": "Öffne", "width": 72, "height": 160,
         "action": {"action_type": "click", "x": 3, "y": 4}},
        {"image": "b.png", "instruction": "Scroll", "width": 72, "height": 160,
         "action": {"action_type": "scroll", "direction": "down"}},
    ],
    "aitw": [phones.zoo(0), phones.zoo(1)],
}  # fmt: skip
TASKS = [
    name for name in registry.names() if name not in ("osworld", "omnigui-critic", "omnigui-idm")
]
"""All but those whose data are a tree of folders, and those that ask about OmniGUI's."""
MIXED = ("step-critic", "trajectory-critic")
"""Tasks with lists of texts and objects, which no table holds."""


def _example(task: str, folder: Path) -> tuple[str, Rows]:
    """The name of a file without its ending, and its rows; a key of nothing is no key."""
    if task == "mind2web":
        rows = [neighbours.web_row("t1"), neighbours.web_row("t2")]
        return "test_task-0", [{k: v for k, v in row.items() if k != "screenshot"} for row in rows]
    if task in ROWS:
        return "rows", [_without_nulls(row) for row in ROWS[task]]
    path = rows_of(task, folder)
    found = [_without_nulls(line.row) for line in read_rows(path)]
    path.unlink()
    return path.stem, found


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(held) for key, held in value.items() if held not in (None, {})}
    return [_without_nulls(held) for held in value] if isinstance(value, list) else value


def _unnamed(step: Step) -> Step:
    """The step without the name of its file."""
    return replace(step, source={k: v for k, v in step.source.items() if k != "file"})


@pytest.mark.parametrize("task", TASKS)
def test_steps_are_the_same_in_every_form(task: str, tmp_path: Path) -> None:
    stem, rows = _example(task, tmp_path)
    assert len(rows) > 1
    plain = tmp_path / f"{stem}.jsonl"
    plain.write_text(_lines(rows), "utf-8")
    wanted = get_task(task).load(tmp_path, check_media=False)
    known = recognise(tmp_path)
    assert wanted.steps
    assert task in known
    plain.unlink()
    for form in FORMS if FULL else FARTHEST:
        if form == "parquet" and task in MIXED:
            continue
        suffix, write = FORMS[form]
        path = tmp_path / f"{stem}{suffix}"
        path.write_bytes(write(rows))
        for data in (tmp_path, path):
            found = get_task(task).load(data, check_media=False)
            assert list(map(_unnamed, found.steps)) == list(map(_unnamed, wanted.steps)), form
        assert recognise(tmp_path) == known, form
        assert recognise(path) == known, form
        assert [f.code for f in found.findings] == [f.code for f in wanted.findings], form
        path.unlink()


@pytest.mark.parametrize(
    ("task", "stem"),
    [("androidcontrol", "rows"), ("aitw", "rows"), ("cagui-grounding", "cap"), ("osworld-g", "a")],
)
def test_a_picture_inside_parquet_is_the_steps(task: str, stem: str, tmp_path: Path) -> None:
    _, rows = _example(task, tmp_path / "made")
    names = ("image_path", "image_width", "image_height")
    row = {key: value for key, value in rows[0].items() if key not in names}
    row["image"] = {"bytes": tiny.png(1), "path": "a.png"}
    (tmp_path / f"{stem}.parquet").write_bytes(_parquet([row]))
    source = get_task(task).load(tmp_path)
    shot = source.steps[0].media["screenshot"]
    assert shot
    assert read_bytes(shot) == tiny.png(1)
    assert not [found for found in source.findings if found.code.startswith("media")]


@pytest.mark.parametrize(
    "form", ["lines in .json", "list", "list inside", "mark and CRLF", "utf-16"]
)
def test_a_rollouts_file_of_turns_may_have_any_form(form: str, tmp_path: Path) -> None:
    data = osworld.bare(tmp_path)
    wanted = get_task("osworld").load(tmp_path, check_media=False).steps
    for path in [data] if data.is_file() else sorted(data.rglob("traj.jsonl")):
        rows = [line.row for line in read_rows(path)]
        path.write_bytes(FORMS[form][1](rows))
    assert list(get_task("osworld").load(tmp_path, check_media=False).steps) == list(wanted)
