"""Every benchmark has the same steps whatever holds its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

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
from tests.loaders.test_row_files import FORMS

Rows = Sequence[dict[str, Any]]
FARTHEST = ("list", "data inside", "utf-16 with a mark", "parquet")
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
    FORMS["lines"][1](plain, rows)
    wanted = get_task(task).load(tmp_path, check_media=False)
    known = recognise(tmp_path)
    assert wanted.steps
    assert task in known
    plain.unlink()
    for form in FORMS if FULL else FARTHEST:
        if form in ("lines", "lines in .txt", "parquet by another name") or (
            task in MIXED and "parquet" in form
        ):
            continue
        name, write = FORMS[form]
        path = tmp_path / name.replace("rows", stem)
        write(path, rows)
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
    FORMS["parquet"][1](tmp_path / f"{stem}.parquet", [row])
    source = get_task(task).load(tmp_path)
    shot = source.steps[0].media["screenshot"]
    assert shot
    assert read_bytes(shot) == tiny.png(1)
    assert not [found for found in source.findings if found.code.startswith("media")]


@pytest.mark.parametrize("form", ["list", "data inside", "utf-8 with a mark", "utf-16 with a mark"])
def test_a_rollouts_file_of_turns_may_have_any_form(form: str, tmp_path: Path) -> None:
    data = osworld.bare(tmp_path)
    wanted = get_task("osworld").load(tmp_path, check_media=False).steps
    for path in [data] if data.is_file() else sorted(data.rglob("traj.jsonl")):
        rows = [line.row for line in read_rows(path)]
        FORMS[form][1](path, rows)
    assert list(get_task("osworld").load(tmp_path, check_media=False).steps) == list(wanted)
