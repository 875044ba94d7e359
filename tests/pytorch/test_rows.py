"""From tables of `datasets` to tensors."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pytest
import torch
from torch.utils.data import DataLoader

import omnidata
from omnidata.data.convert import convert
from omnidata.errors import DataError, MediaError, UsageError
from omnidata.tasks.omnigui.load import load
from omnidata.torch import Collate, Decoding, EpisodeSampler, RowSteps, StepDataset, StepStream
from tests.export.small import tree
from tests.full import in_gate

HOW = Decoding(num_frames=2)


@pytest.fixture(scope="module")
def rows(data: Path) -> Any:
    return omnidata.load_dataset("omnigui", data, split="test")


def same(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    return torch.equal(one, other) if one is not None and other is not None else one is other


def test_rows_decode_to_what_steps_decode_to(data: Path, rows: Any) -> None:
    source = load(data)
    found, wanted = StepDataset(rows, HOW), StepDataset(source, HOW)
    assert len(found) == len(wanted)
    for number in (0, 4, len(found) - 1):
        item, other = found[number], wanted[number]
        for name in ("sample_id", "instruction", "screen", "history", "action", "tags"):
            assert getattr(item, name) == getattr(other, name)
        assert item.media.keys() == other.media.keys()
        assert all(same(item.media[role], other.media[role]) for role in item.media)


@pytest.fixture(scope="module")
def linked(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository that names its media; nobody writes into it."""
    out = tmp_path_factory.mktemp("linked") / "out"
    convert(load(data), out, embed=False)
    return out


@pytest.mark.parametrize("form", ["embedded", "linked"])
def test_the_rows_of_a_repository_decode_too(
    data: Path, request: pytest.FixtureRequest, form: str
) -> None:
    source, out = load(data), request.getfixturevalue(form)
    for rows in (
        datasets.load_dataset(str(out), split="test"),
        omnidata.load_dataset("omnigui", out, split="test", media_roots=[data]),
    ):
        other = StepDataset(source, HOW)[5]
        with omnidata.following([data]):
            found = StepDataset(rows, HOW)
        item = found[list(rows["sample_id"]).index(other.sample_id)]
        assert item.history_screens == other.history_screens
        assert all(same(item.media[role], other.media[role]) for role in other.media)


def test_rows_of_a_repository_without_their_screenshots_are_refused(embedded: Path) -> None:
    rows = datasets.load_dataset(str(embedded), split="test")
    with pytest.raises(UsageError, match="missing columns screenshot"):
        StepDataset(rows.remove_columns("screenshot"))
    assert len(StepDataset(rows.remove_columns("audio"))) == len(rows)


def test_a_linked_file_that_is_another_is_not_decoded(data: Path, linked: Path) -> None:
    rows = datasets.load_dataset(str(linked), split="test").select(range(2))
    swapped = rows.map(
        lambda row, at: {"screenshot": rows[1 - at]["screenshot"]}, with_indices=True
    )
    how = Decoding(roles=("screenshot",))
    with omnidata.following([data]):
        assert StepDataset(rows, how)[0].screenshot is not None
        with pytest.raises(MediaError):
            StepDataset(swapped, how)[0]


def test_rows_of_anybody_open_only_what_lies_in_folders_that_are_named(
    data: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever a table says of itself: whoever saved it has written that."""
    private = tmp_path_factory.mktemp("private") / "a.png"
    shutil.copy(data / "media" / "E00" / "1.png", private)
    own = omnidata.load_dataset("omnigui", data, split="test")
    rows = own.select(range(1)).with_format("arrow")[:].to_pylist()
    rows[0]["screenshot"] = {"bytes": None, "path": str(private)}
    table = pa.Table.from_pylist(rows, schema=own.with_format("arrow")[:].schema)
    hostile = datasets.Dataset(table, info=own.info)
    assert hostile.info.builder_name == own.info.builder_name
    with pytest.raises(DataError, match=r"omnidata\.following"):
        StepDataset(hostile)
    with omnidata.following([private.parent]):
        assert StepDataset(hostile, Decoding(roles=("screenshot",)))[0].screenshot is not None


def test_tables_of_several_apps_decode_together(tmp_path: Path) -> None:
    apps = [
        omnidata.load_dataset("omnigui", tree(tmp_path / app, app=app) / app, split="test")
        for app in ("Chirp", "Sonora")
    ]
    both = StepDataset(datasets.concatenate_datasets(apps), Decoding(roles=("screenshot",)))
    assert len(both) == sum(map(len, apps))
    assert both[len(both) - 1].screenshot is not None


@pytest.mark.parametrize("method", in_gate(["fork", "spawn"], 1, "new processes import torch"))
def test_chosen_rows_are_batched_by_workers(rows: Any, method: str) -> None:
    chosen = rows.filter(lambda row: row["language"] == "en").shuffle(seed=1).select(range(6))
    batches = [
        list(
            DataLoader(
                # What is sent to a worker that is spawned is its copy.
                pickle.loads(pickle.dumps(StepDataset(chosen, HOW))),
                batch_size=3,
                sampler=EpisodeSampler(RowSteps(chosen), seed=0),
                num_workers=workers,
                multiprocessing_context=method if workers else None,
                collate_fn=Collate(pad=True),
            )
        )
        for workers in (0, 1)
    ]
    named = [name for batch in batches[0] for name in batch.sample_id]
    assert sorted(named) == sorted(chosen["sample_id"])
    for one, other in zip(*batches, strict=True):
        assert one.sample_id == other.sample_id
        assert torch.equal(one.screenshot.values, other.screenshot.values)


def test_what_are_no_rows_of_steps_is_refused_with_the_way_that_works(data: Path) -> None:
    every = omnidata.load_dataset("omnigui", data)
    streams = omnidata.load_dataset("omnigui", data, streaming=True)
    rows = every["test"]
    media = ("screenshot", "history_screenshot", "video", "audio")
    plain = [name for name in rows.column_names if name not in media]
    refused: list[tuple[Any, str]] = [
        (every, "all splits"),
        (streams, "stream of all splits"),
        (streams["test"].map(dict), "does not know the types of its columns"),
        (streams["test"].remove_columns("history"), "missing columns history"),
        (rows.remove_columns(["history", "action"]), "missing columns history, action"),
        (rows.remove_columns("screenshot"), "missing columns screenshot"),
        (rows.select_columns(plain), "missing columns screenshot"),
        (list(rows.select(range(2))), "no steps"),
    ]
    for given, says in refused:
        with pytest.raises(UsageError, match=says) as caught:
            StepDataset(given)
        assert "StepDataset(omnidata.load_dataset(" in caught.value.expected
    with pytest.raises(UsageError):
        StepStream(rows)
