"""The Hub's form of the rows, Parquet repositories and `datasets` all give the same steps."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnidata
from omnidata import following
from omnidata.data.convert import convert
from omnidata.data.validate import validate
from omnidata.media import image, read_bytes
from omnidata.tasks.agentstudio.load import load
from omnidata.types import LoadedDataset, Step
from tests.full import FULL, in_gate
from tests.loaders.agentstudio import (
    REAL,
    TaskName,
    act,
    columnwise,
    ground,
    pictures,
    real_rows,
    real_source,
    single,
    trajectory,
    write,
)
from tests.trees import NO_SHARED, codes

real = pytest.mark.skipif(not REAL["groundui"].is_file(), reason=NO_SHARED)
FARTHEST: tuple[TaskName, ...] = ("criticbench", "groundui", "idm-multiple", "idm-single")
"""The tasks, and first those that differ most: trajectories and single pictures."""
TWO = pytest.mark.parametrize(
    "task", in_gate(FARTHEST, 2, "other rows are opened the same way, with as many pictures or one")
)
ONE = pytest.mark.parametrize("task", in_gate(FARTHEST, 1, "the same code opens other tasks' rows"))
ROWS: dict[TaskName, list[dict[str, Any]]] = {
    "groundui": [ground(), ground(image="b.png", platform="mobile", source="motif")],
    "idm-single": [single(), single(action_id="b", source="agent-studio", platform="desktop")],
    "idm-multiple": [
        trajectory(),
        trajectory(*[act(n) for n in range(7)], annotation_id="e2", platform="mobile"),
        trajectory(act(0), act(1, obs_after=None), annotation_id="e3"),
    ],
    "criticbench": [
        trajectory(),
        trajectory(*[act(n) for n in range(7)], annotation_id="e2", is_success=False),
        trajectory(act(0, obs_after=None), annotation_id="e3"),
    ],
}


def said(step: Step) -> dict[str, Any]:
    """Everything about a step but where its media lie."""
    fields = {field.name: getattr(step, field.name) for field in dataclasses.fields(step)}
    return {**fields, "media": {role: ref and ref.path for role, ref in step.media.items()}}


def written(folder: Path, task: TaskName) -> Path:
    """The rows of a task with an image for every name."""
    names = []
    for row in ROWS[task]:
        for item in row.get("actions", [row]):
            names += [item[k] for k in ("image", "obs_before", "obs_after") if item.get(k)]
    pictures(folder / "images", names)
    return write(folder / "rows.jsonl", *ROWS[task])


@real
@TWO
def test_the_hubs_columns_give_equal_steps(tmp_path: Path, task: TaskName) -> None:
    plain = real_source(task)
    rows = map(columnwise, real_rows(task))
    hub = load(write(tmp_path / REAL[task].name, *rows), task)
    assert [said(step) for step in hub.steps] == [said(step) for step in plain.steps]
    assert codes(hub) == codes(plain)
    assert hub.roles == plain.roles


def test_columns_of_different_lengths_are_told(tmp_path: Path) -> None:
    row = columnwise(trajectory())
    row["actions"]["operation"].append("TYPE")
    odd = {**row, "actions": {**row["actions"], "operation": "CLICK"}}
    data = write(tmp_path / "m.jsonl", columnwise(trajectory(annotation_id="e2")), row, odd)
    source = load(data, "idm-multiple")
    assert source.row_ids == ["m/0", None, None]
    assert codes(source) == {"columns-differ": 2}


def hub_table(rows: list[dict[str, Any]], images: Path, *, columns: bool) -> pa.Table:
    """The trajectories as the Hub's Parquet has them, images inside."""
    text, number = datasets.Value("string"), datasets.Value("float32")
    box = dict.fromkeys(("x", "y", "width", "height"), number)
    words = {"repr": text, "text": text}
    action = {
        **dict.fromkeys(("action_id", "operation", "obs_before_path", "obs_after_path"), text),
        **dict.fromkeys(("obs_before", "obs_after"), datasets.Image(decode=False)),
        "bbox": box,
        "metadata": words,
    }
    features = datasets.Features(
        {
            **dict.fromkeys(("instruction", "annotation_id", "source", "platform"), text),
            "metadata": words,
            "actions": datasets.Sequence(action) if columns else [action],
            "action_space": datasets.Sequence(text),
            "is_success": datasets.Value("bool"),
        }
    )
    found = []
    for row in rows:
        actions = []
        for item in row["actions"]:
            held = {f"{k}_path": item[k] for k in ("obs_before", "obs_after")}
            for key in ("obs_before", "obs_after"):
                path = item[key] and images / item[key]
                held[key] = path and {"bytes": path.read_bytes(), "path": path.name}
            actions.append({**item, **held})
        spread = {key: [item[key] for item in actions] for key in actions[0]}
        found.append({**row, "actions": spread if columns else actions})
    table: pa.Table = datasets.Dataset.from_list(found, features=features).data.table
    return table


@pytest.mark.parametrize("columns", [True, False], ids=["columns", "structs"])
@pytest.mark.parametrize("task", ["idm-multiple", "criticbench"])
def test_the_hubs_parquet_of_trajectories_is_read(
    tmp_path: Path, task: TaskName, columns: bool
) -> None:
    data = written(tmp_path / "plain", task)
    table = hub_table(ROWS[task], data.parent / "images", columns=columns)
    assert pa.types.is_struct(table.schema.field("actions").type) is columns
    (tmp_path / "hub" / "data").mkdir(parents=True)
    parts = [table.slice(0, 2), table.slice(2)]
    for number, part in enumerate(parts):
        name = f"rows-{number:05d}-of-00002.parquet"
        pq.write_table(part, tmp_path / "hub" / "data" / name)
    (data.parent / "images").rename(tmp_path / "hub" / "images")
    hub = load(tmp_path / "hub", task)
    (tmp_path / "hub" / "images").rename(data.parent / "images")
    plain = load(data, task)
    assert [said(step) for step in hub.steps] == [said(step) for step in plain.steps]
    assert hub.findings == plain.findings == []


def test_a_missing_shard_is_told(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([ground()]), tmp_path / "t-00001-of-00003.parquet")
    assert codes(load(tmp_path, "groundui")) == {"shard-missing": 1}


def embedded(path: Path, images: Path, **options: Any) -> Path:
    """GroundUI as the Hub's Parquet has it, images inside."""
    rows = []
    for row in ROWS["groundui"]:
        content = (images / row["image"]).read_bytes()
        rows.append({**row, "image": {"bytes": content, "path": None}, "image_path": row["image"]})
    pq.write_table(pa.Table.from_pylist(rows), path, use_dictionary=False, **options)
    return path


def test_images_inside_parquet_are_the_media(tmp_path: Path) -> None:
    images = written(tmp_path / "plain", "groundui").parent / "images"
    data = embedded(tmp_path / "test.parquet", images, compression="none")
    source = load(data, "groundui")
    assert source.findings == []
    assert [step.source for step in source.steps] == ROWS["groundui"]
    contents = [(images / row["image"]).read_bytes() for row in ROWS["groundui"]]
    shots = [step.media["screenshot"] for step in source.steps]
    assert [read_bytes(shot) for shot in shots if shot] == contents
    opened = omnidata.load_dataset("groundui", data, split="test")
    assert [shot["bytes"] for shot in opened["screenshot"]] == contents


def hub_rows(task: TaskName, images: Path) -> datasets.Dataset:
    """The rows of GroundUI or IDM-Single as the Hub has them, images inside."""
    keys = [key for key in ("image", "obs_before", "obs_after") if key in ROWS[task][0]]
    found: list[dict[str, Any]] = []
    for row in ROWS[task]:
        held: dict[str, Any] = {f"{key}_path": row[key] for key in keys}
        for key in keys:
            path = images / row[key]
            held[key] = {"bytes": path.read_bytes(), "path": path.name}
        found.append({**row, **held})
    made = datasets.Dataset.from_list(found)
    for key in keys:
        made = made.cast_column(key, datasets.Image())
    return made


HUB: list[tuple[TaskName, str]] = [
    ("groundui", "pyarrow"),
    ("criticbench", "columns"),
    ("idm-multiple", "pyarrow"),
    ("groundui", "datasets"),
    ("idm-multiple", "columns"),
    ("idm-single", "pyarrow"),
    ("idm-single", "datasets"),
    ("idm-multiple", "datasets"),
    ("criticbench", "pyarrow"),
    ("criticbench", "datasets"),
]


@pytest.mark.parametrize("case", in_gate(HUB, 2, "a picture and trajectories, once each"), ids=str)
@pytest.mark.usefixtures("_registered")
def test_every_image_in_the_hubs_parquet_is_a_medium(
    tmp_path: Path, case: tuple[TaskName, str]
) -> None:
    task, by = case
    plain = load(written(tmp_path / "plain", task), task)
    images, data = tmp_path / "plain" / "images", tmp_path / "hub" / "rows.parquet"
    data.parent.mkdir()
    if task in ("groundui", "idm-single"):
        made = hub_rows(task, images)
    else:
        made = datasets.Dataset(hub_table(ROWS[task], images, columns=by == "columns"))
    if by == "pyarrow" and task in ("idm-multiple", "criticbench"):
        pq.write_table(made.data.table, data)
    else:
        made.to_parquet(data)
        if by == "pyarrow":
            pq.write_table(pq.read_table(data), data)
    hub = load(data, task)
    assert [said(step) | {"screen": ()} for step in hub.steps] == [
        said(step) | {"screen": ()} for step in plain.steps
    ]
    assert hub.findings == []
    opened, contents = plainly(task, data.parent), [held(step) for step in plain.steps]
    assert [held(step) for step in hub.steps] == contents
    for row, content in zip(opened, contents, strict=True):
        assert {role: row[role]["bytes"] for role in content} == content
    convert(hub, tmp_path / "out", embed=True)
    assert [held(step) for step in load(tmp_path / "out", task).steps] == contents
    assert {f.code for f in validate(hub, workers=0).findings} <= {"screenshot-blank"}


def held(step: Step) -> dict[str, bytes]:
    """The bytes of its media."""
    return {role: read_bytes(ref) for role, ref in step.media.items() if ref}


def test_images_are_read_where_the_hubs_cache_keeps_them(tmp_path: Path) -> None:
    images = written(tmp_path / "plain", "groundui").parent / "images"
    named = tmp_path / "snapshots" / "3f9c" / "data" / "test-00000-of-00001.parquet"
    for folder in (tmp_path / "blobs", named.parent):
        folder.mkdir(parents=True)
    hub_rows("groundui", images).to_parquet(tmp_path / "blobs" / "70b1")
    named.symlink_to("../../../blobs/70b1")
    steps = load(tmp_path / "snapshots" / "3f9c", "groundui").steps
    assert [step.sample_id for step in steps] == ["test/0", "test/1"]
    shots = [ref for step in steps for ref in step.media.values() if ref]
    assert [*map(read_bytes, shots)] == [
        (images / row["image"]).read_bytes() for row in ROWS["groundui"]
    ]


def test_the_fingerprint_of_parquet_changes_with_rows_and_images(tmp_path: Path) -> None:
    images = written(tmp_path / "plain", "groundui").parent / "images"
    data = embedded(tmp_path / "test.parquet", images, compression="none")
    before = load(data, "groundui").fingerprint
    pictures(images, ["a.png"], (300, 200))
    embedded(data, images, compression="none")
    after = load(data, "groundui").fingerprint
    table = pq.read_table(data)
    pq.write_table(table.set_column(1, "instruction", [["Tap", "Tap"]]), data, use_dictionary=False)
    assert len({before, after, load(data, "groundui").fingerprint}) == 3


def test_an_image_inside_a_table_has_no_known_size(tmp_path: Path) -> None:
    images = written(tmp_path / "plain", "idm-single").parent / "images"
    row = ROWS["idm-single"][0]
    cell = {"bytes": (images / row["obs_before"]).read_bytes(), "path": None}
    inside = {"obs_before": cell, "obs_after": cell}
    paths = {f"{key}_path": row[key] for key in inside}
    data = tmp_path / "test.parquet"
    pq.write_table(pa.Table.from_pylist([{**row, **inside, **paths}]), data)
    (step,) = load(data, "idm-single").steps
    assert step.screen == (0, 0)
    assert step.source == row


@TWO
def test_a_linked_repository_gives_the_same_steps(tmp_path: Path, task: TaskName) -> None:
    source = load(written(tmp_path, task), task)
    convert(source, tmp_path / "out", embed=False)
    with following([tmp_path]):
        back = load(tmp_path / "out", task)
    assert [said(step) for step in back.steps] == [said(step) for step in source.steps]
    assert (back.row_ids, back.roles) == (source.row_ids, source.roles)
    assert back.findings == source.findings == []
    refs = [ref for step in back.steps for ref in step.media.values() if ref]
    assert {image(ref).pixels.shape for ref in refs} == {(90, 144, 3)}


def test_a_repository_has_both_instructions(tmp_path: Path) -> None:
    data = written(tmp_path, "groundui")
    convert(load(data, "groundui", instructions="raw"), tmp_path / "out", embed=True)
    for form, text in (("raw", "redirect_discounts"), ("recaptioned", 'Click on "Discounts".')):
        steps = load(tmp_path / "out", "groundui", instructions=form).steps  # type: ignore[arg-type]  # a literal
        assert {step.instruction for step in steps} == {text}


@TWO
def test_validate_looks_at_every_image(tmp_path: Path, task: TaskName) -> None:
    data = written(tmp_path, task)
    broken = min((tmp_path / "images").rglob("*.png"))
    broken.write_bytes(broken.read_bytes()[:40])
    findings = validate(load(data, task, check_media=False), workers=0).findings
    (found,) = (f for f in findings if f.code != "screenshot-blank")  # the pictures are plain
    assert found.code in ("media-truncated", "media-unreadable")


@pytest.fixture
def _registered() -> None:
    omnidata.register()


def plainly(task: TaskName, data: Path, name: str | None = None, **options: Any) -> Any:
    return datasets.load_dataset(task, name, data_dir=str(data), split="test", **options)


def rows_of(source: LoadedDataset) -> list[tuple[str, Any]]:
    return [(step.sample_id, dict(step.source)) for step in source.steps]


@TWO
@pytest.mark.usefixtures("_registered")
def test_datasets_opens_every_benchmark(tmp_path: Path, task: TaskName) -> None:
    source = load(written(tmp_path / "data", task), task)
    opened = plainly(task, tmp_path / "data")
    assert [(r["sample_id"], json.loads(r["source"])) for r in opened] == rows_of(source)
    names = datasets.get_dataset_config_names(task, data_dir=str(tmp_path / "data"))
    assert {"all", "web", "desktop", "mobile", "mind2web"} <= {*names}
    wanted = [s.sample_id for s in source.steps if "web" in s.tags.values()]
    assert plainly(task, tmp_path / "data", "web")["sample_id"][:] == wanted
    assert opened["source_tag"] == [step.tags["source"] for step in source.steps]
    for step, row in zip(source.steps, opened, strict=True):
        for role in source.roles:
            ref = step.media.get(role)
            path = str((ref.root / ref.path).resolve()) if ref else None
            assert (row[role] or {"path": None})["path"] == path
    own = omnidata.load_dataset(task, tmp_path / "data" / "rows.jsonl", split="test")
    assert own.to_list() == opened.to_list()
    assert list(plainly(task, tmp_path / "data", streaming=True)) == opened.to_list()
    if FULL:  # tests/loaders/test_builders.py has two processes
        two = plainly(task, tmp_path / "data", num_proc=2, cache_dir=str(tmp_path / "two"))
        assert two.to_list() == opened.to_list()


@real
@ONE
@pytest.mark.usefixtures("_registered")
def test_datasets_opens_the_folder_of_all_real_rows(task: TaskName) -> None:
    opened = plainly(task, REAL[task].parent)
    assert [json.loads(source) for source in opened["source"]] == real_rows(task)


@pytest.mark.usefixtures("_registered")
def test_an_edit_is_noticed_and_another_trajectory_adds_columns(tmp_path: Path) -> None:
    data = write(tmp_path / "m.jsonl", trajectory())
    assert len(plainly("criticbench", tmp_path)) == 1
    write(data, trajectory(), trajectory(*[act(n) for n in range(4)], annotation_id="e2"))
    opened = plainly("criticbench", tmp_path)
    assert len(opened) == 2
    assert "observation_4" in opened.features
    assert opened[0]["observation_4"] is None
