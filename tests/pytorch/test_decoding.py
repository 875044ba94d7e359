"""Rows of `datasets`, streamed or not, as arrays and tensors without torchcodec."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import omnidata
from omnidata.errors import MediaError, PlatformError, UsageError
from omnidata.media import image
from omnidata.tasks.omnigui.load import load
from omnidata.torch import Collate, CollateRows, Decoding, StepDataset, StepStream
from tests.hub_server import Hub, files_of

HOW = Decoding(num_frames=2)
ROLES = ("screenshot", "history_screenshot", "video", "audio")


WAYS: dict[str, Callable[[Path, Path, bool], Any]] = {
    "omnidata": lambda data, repository, stream: omnidata.load_dataset(
        "omnigui", data, split="test", streaming=stream
    ),
    "registered": lambda data, repository, stream: datasets.load_dataset(
        "omnigui", "all", data_dir=str(data), split="test", streaming=stream
    ),
    "repository": lambda data, repository, stream: datasets.load_dataset(
        str(repository), split="test", streaming=stream
    ),
    "repository by omnidata": lambda data, repository, stream: omnidata.load_dataset(
        "omnigui", repository, split="test", streaming=stream
    ),
}


@pytest.fixture(autouse=True)
def registered() -> None:
    omnidata.register()


@pytest.fixture(scope="module")
def importing() -> multiprocessing.context.ForkServerContext:
    """Starts workers without threads of pyarrow, which no fork survives; torch is imported once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["datasets", "omnidata.torch"])
    return context


@pytest.mark.parametrize("way", WAYS)
def test_a_stream_gives_what_steps_give_once_in_any_worker(
    data: Path, embedded: Path, way: str, importing: multiprocessing.context.ForkServerContext
) -> None:
    stream = WAYS[way](data, embedded, True)
    found: Any = StepDataset(stream, HOW)
    assert isinstance(found, StepStream)
    steps = StepDataset(load(data), HOW)
    wanted = {item.sample_id: item for item in (steps[number] for number in range(len(steps)))}
    items = {item.sample_id: item for item in found}
    assert items.keys() == wanted.keys()
    for name, item in items.items():
        assert item.action == wanted[name].action
        assert item.history == wanted[name].history
        for role, tensor in wanted[name].media.items():
            own = item.media[role]
            assert (own is tensor is None) or torch.equal(own, tensor)  # type: ignore[arg-type]
    if way.startswith("repository"):
        return
    loader = DataLoader(
        found,
        batch_size=3,
        num_workers=2,
        collate_fn=Collate(pad=True),
        multiprocessing_context=importing,
    )
    assert sorted(name for batch in loader for name in batch.sample_id) == sorted(wanted)


def test_a_shuffled_stream_has_another_order_in_another_epoch(data: Path) -> None:
    stream = omnidata.load_dataset("omnigui", data, split="test", streaming=True)
    found: Any = StepDataset(stream.shuffle(seed=1, buffer_size=8), Decoding(roles=()))
    orders = []
    for epoch in (0, 1, 0):
        found.set_epoch(epoch)
        orders.append([item.sample_id for item in found])
    assert orders[0] == orders[2] != orders[1]


@pytest.mark.parametrize("way", WAYS)
def test_rows_are_decoded_when_asked_for_and_collated_with_masks(
    data: Path, embedded: Path, way: str
) -> None:
    rows = WAYS[way](data, embedded, False)
    decode = omnidata.decode(rows, resize=(64, 32), num_frames=2, seconds=0.5)
    decoded = rows.with_transform(decode)
    loader = DataLoader(decoded, batch_size=4, num_workers=1)
    batches = list(loader)
    steps = {step.sample_id: step for step in load(data).steps}
    for batch in batches:
        count = len(batch["sample_id"])
        assert batch["screenshot"].shape == (count, 3, 64, 32)
        assert batch["video"].shape == (count, 2, 3, 64, 32)
        assert batch["audio"].shape == (count, 8000)
        for number, name in enumerate(batch["sample_id"]):
            for role, ref in steps[name].media.items():
                assert bool(batch[f"{role}_mask"][number]) == (ref is not None)
                if ref is None:
                    assert not batch[role][number].any()
            shot = steps[name].media["screenshot"]
            assert shot
            pixels = image(shot, size=(32, 64)).pixels
            assert np.array_equal(batch["screenshot"][number].permute(1, 2, 0), pixels)
            assert 0 <= batch["audio_length"][number] <= 8000
    assert sum(len(batch["sample_id"]) for batch in batches) == len(steps)

    stream = WAYS[way](data, embedded, True).map(decode, batched=True, batch_size=4)
    first = next(iter(DataLoader(stream, batch_size=4)))
    assert torch.equal(first["screenshot"], batches[0]["screenshot"])
    assert first["history"] == batches[0]["history"]


@pytest.mark.parametrize(
    ("way", "streaming", "workers"),
    [
        ("omnidata", False, 2),
        ("omnidata", True, 0),
        ("repository", False, 0),
        ("repository", True, 2),
    ],
)
def test_rows_in_torchs_format_are_collated_with_masks(
    data: Path, embedded: Path, way: str, streaming: bool, workers: int
) -> None:
    rows = WAYS[way](data, embedded, streaming)
    collate = CollateRows(omnidata.decode(rows, num_frames=2))
    loader = DataLoader(
        rows.with_format("torch"), batch_size=3, num_workers=workers, collate_fn=collate
    )
    found = {name: (batch, at) for batch in loader for at, name in enumerate(batch["sample_id"])}
    table = WAYS[way](data, embedded, False)
    decoded = table.with_transform(omnidata.decode(table, num_frames=2))
    assert sorted(found) == sorted(table["sample_id"])
    absent = 0
    for row in decoded:
        batch, at = found[row["sample_id"]]
        assert batch.keys() == {*row, *(f"{role}_size" for role in ROLES if role != "audio")}
        assert batch["step_index"][at] == row["step_index"]
        assert batch["action"][at] == row["action"]
        for role in ROLES:
            absent += not row[f"{role}_mask"]
            assert batch[f"{role}_mask"][at] == row[f"{role}_mask"]
            own = batch[role][at].numpy()
            extent = tuple(map(slice, row[role].shape))
            assert np.array_equal(own[extent], row[role])
            own[extent] = 0
            assert not own.any()
            if role != "audio":
                assert tuple(batch[f"{role}_size"][at].tolist()) == row[role].shape[-2:]
    assert absent


def test_rows_in_any_format_are_collated_alike(data: Path) -> None:
    rows = omnidata.load_dataset("omnigui", data, split="test")
    collate = CollateRows(omnidata.decode(rows, roles=["audio"]))
    plain, *others = (
        next(iter(DataLoader(rows.with_format(name), batch_size=8, collate_fn=collate)))
        for name in (None, "torch", "numpy")
    )
    for batch in others:
        assert batch.keys() == plain.keys()
        for name, values in plain.items():
            same = torch.equal if isinstance(values, torch.Tensor) else list.__eq__
            assert same(batch[name], values), name


def test_what_datasets_decodes_is_refused_before_any_row(data: Path) -> None:
    rows = omnidata.load_dataset("omnigui", data, split="test")
    with pytest.raises(UsageError, match="a Dataset decodes no rows"):
        CollateRows(rows)
    for column, feature in (("screenshot", datasets.Image()), ("audio", datasets.Audio())):
        cast = rows.cast_column(column, feature)
        with pytest.raises(UsageError, match=f"decodes the column {column}") as caught:
            omnidata.decode(cast)
        assert eval(caught.value.remedy, {"rows": cast, "datasets": datasets}).features == (
            rows.features
        )


@pytest.mark.parametrize("place", ["hf://org/steps", "hf://datasets/org/steps@{sha}"])
def test_a_dataset_of_the_hub_comes_as_tensors_in_the_same_lines(
    place: str, hub: Hub, embedded: Path
) -> None:
    sha = hub.add("org/steps", files_of(embedded))
    rows = omnidata.load_dataset("omnigui", place.format(sha=sha), split="test")
    decode = omnidata.decode(rows, roles=["screenshot"], resize=(64, 32))
    batches = DataLoader(rows.with_transform(decode), batch_size=8, num_workers=1)
    assert [batch["screenshot"].shape for batch in batches] == [(8, 3, 64, 32)]
    stream = omnidata.load_dataset("omnigui", place.format(sha=sha), split="test", streaming=True)
    steps: Any = StepDataset(stream, Decoding(roles=("screenshot",)))
    items = list(steps)
    assert sorted(item.sample_id for item in items) == sorted(rows["sample_id"])


def test_media_are_left_out_and_named_when_they_do_not_exist(data: Path, tmp_path: Path) -> None:
    rows = omnidata.load_dataset("omnigui", data, split="test")
    row = rows.with_transform(omnidata.decode(rows, roles=["audio"]))[0]
    assert {"screenshot", "screenshot_mask", "video"}.isdisjoint(row)
    assert row["audio"].dtype == np.float32
    with pytest.raises(UsageError, match='no media column "smell"'):
        omnidata.decode(rows, roles=["smell"])
    with pytest.raises(UsageError, match="'none'"):
        omnidata.decode(rows, on_error="none")  # type: ignore[arg-type]
    for seconds in (-1.0, float("nan")):
        with pytest.raises(UsageError, match=r"seconds is (-1|nan)"):
            omnidata.decode(rows, seconds=seconds)
    with pytest.raises(UsageError, match=r"two positive whole numbers"):
        omnidata.decode(rows, resize=(8.5, 8))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="positive whole numbers"):
        omnidata.decode(rows, resize=(True, 8))
    with pytest.raises(UsageError, match=r"omnidata\.decode\(resize=\(1008, 448\)\)"):
        omnidata.decode(rows, size=(448, 1008))


def test_steps_rows_and_batches_of_rows_are_resized_to_the_same_pixels(data: Path) -> None:
    rows = omnidata.load_dataset("omnigui", data, split="test")
    how: dict[str, Any] = {"resize": (64, 32), "num_frames": 2}
    decode = omnidata.decode(rows, **how)
    decoded = rows.with_transform(decode)
    batch = CollateRows(decode)(list(rows))
    dataset = StepDataset(rows, Decoding(**how))
    compared = 0
    for number in range(len(rows)):
        for role in ("screenshot", "video"):
            item = dataset[number].media[role]
            if item is not None:
                compared += 1
                assert item.shape[-3:] == (3, 64, 32)
                assert torch.equal(item, torch.from_numpy(decoded[number][role]))
                assert torch.equal(item, batch[role][number])
    assert compared > len(rows)


@pytest.mark.parametrize("first", [1, None])
def test_an_absent_number_is_nan_in_a_batch(data: Path, first: int | None) -> None:
    rows = omnidata.load_dataset("omnigui", data, split="test")
    scores = [first, None, 2**24 + 1, *[4] * (len(rows) - 3)]
    scored = rows.add_column("score", scores)
    decoded = scored.with_transform(omnidata.decode(scored, roles=["screenshot"], resize=(8, 8)))
    (batch,) = DataLoader(decoded, batch_size=len(rows))
    wanted = torch.tensor([float("nan") if one is None else one for one in scores])
    assert torch.equal(batch["score"].isnan(), wanted.isnan())
    assert batch["score"][2:].tolist() == scores[2:]


def test_a_broken_medium_is_an_error_that_names_the_step_or_a_mask(
    data: Path, tmp_path: Path
) -> None:
    import shutil

    copy = tmp_path / "App"
    shutil.copytree(data, copy)
    rows = omnidata.load_dataset("omnigui", copy, split="test", cache_dir=tmp_path / "cache")
    Path(rows[0]["screenshot"]["path"]).write_bytes(b"no picture")
    decoded = rows.with_transform(omnidata.decode(rows, roles=["screenshot"], resize=(8, 8)))
    with pytest.raises(MediaError, match=rows[0]["sample_id"]):
        decoded[0]
    masked = omnidata.decode(rows, roles=["screenshot"], resize=(8, 8), on_error="mask")
    assert rows.with_transform(masked)[0]["screenshot_mask"] is False


@pytest.mark.parametrize(("column", "feature"), [("audio", "Audio"), ("video", "Video")])
def test_a_cast_that_wants_torchcodec_says_what_to_do_instead(
    data: Path, column: str, feature: str
) -> None:
    pytest.importorskip("datasets")
    if __import__("importlib.util").util.find_spec("torchcodec"):
        pytest.skip("torchcodec is here, and decodes")
    rows = omnidata.load_dataset("omnigui", data, split="test")
    cast = rows.cast_column(column, getattr(datasets, feature)())
    number = next(n for n, row in enumerate(rows) if row[column])
    with pytest.raises(PlatformError, match=r"omnidata\.decode"):
        cast[number]
    # And what we make of the same rows needs no cast undone.
    assert StepDataset(cast, HOW)[number].media[column] is not None


def test_a_torchcodec_without_ffmpeg_says_what_to_do_instead(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torchcodec").mkdir()
    fault = 'raise OSError("Could not load this library: torchcodec/libtorchcodec_image.so")\n'
    (tmp_path / "torchcodec" / "__init__.py").write_text(fault)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(datasets.config, "TORCHCODEC_AVAILABLE", True)
    rows = omnidata.load_dataset("omnigui", data, split="test").filter(lambda row: row["audio"])
    with pytest.raises(PlatformError, match=r"omnidata\.decode(.|\n)*FFmpeg"):
        rows.cast_column("audio", datasets.Audio())[0]
