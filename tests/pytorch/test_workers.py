"""Decoding in DataLoader workers, forked and spawned."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, RandomSampler

from omnidata.data.convert import convert
from omnidata.errors import MediaError, UsageError
from omnidata.loaders.repository import load
from omnidata.torch import (
    Batch,
    Collate,
    EpisodeSampler,
    Item,
    Padded,
    StepDataset,
    StepStream,
)
from omnidata.types import LoadedDataset, MediaRef, Step
from tests.full import in_gate


class Whereabouts(StepDataset):
    """Says in which process an item was decoded."""

    def __getitem__(self, index: int) -> Item:
        item = super().__getitem__(index)
        return replace(item, tags={**item.tags, "process": str(os.getpid())})


def batches(steps: list[Step], workers: int, method: str | None = None) -> list[Batch]:
    loader = DataLoader(
        Whereabouts(steps),
        batch_size=2,
        sampler=EpisodeSampler(steps, seed=3),
        num_workers=workers,
        multiprocessing_context=method,
        collate_fn=Collate(pad=True, mel_bins=80),
    )
    return list(loader)


def same(one: object, other: object) -> bool:
    """Equality that goes into tensors."""
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, Padded) and isinstance(other, Padded):
        return same(one.values, other.values) and same(one.sizes, other.sizes)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return one == other


@pytest.mark.parametrize("method", in_gate(["fork", "spawn"], 1, "new processes import torch"))
def test_two_workers_give_the_batches_of_none(steps: list[Step], method: str) -> None:
    alone = batches(steps, 0)  # so that the parent has decoded before it makes its workers
    shared = batches(steps, 2, method)
    assert len(alone) == len(shared) == 5
    places: set[str] = set()
    for one, other in zip(alone, shared, strict=True):
        for name in ("sample_id", "step_index", "action", "media", "pts_seconds", "fps",
                     "mel", "placements", "errors"):  # fmt: skip
            assert same(getattr(one, name), getattr(other, name)), name
        places.update(tags["process"] for tags in other.tags)
    assert len(places) == 2 and str(os.getpid()) not in places
    names = [name for batch in shared for name in batch.sample_id]
    assert names == [steps[index].sample_id for index in EpisodeSampler(steps, seed=3)]


def test_a_workers_error_is_a_media_error_that_names_the_file(
    steps: list[Step], tmp_path: Path
) -> None:
    (tmp_path / "bad.png").write_bytes(b"garbage")
    media = {"screenshot": MediaRef("image", tmp_path, "bad.png")}
    dataset = StepDataset([*steps[:1], replace(steps[1], media=media)])
    loader = DataLoader(dataset, num_workers=1, collate_fn=Collate())
    with pytest.raises(MediaError, match=r"App/A/1, screenshot: .*bad\.png"):
        list(loader)


@pytest.mark.parametrize("method", in_gate(["fork", "spawn"], 1, "new processes import torch"))
def test_media_in_parquet_cells_are_decoded_in_workers(
    steps: list[Step], tmp_path: Path, method: str
) -> None:
    roles = {role: ref.kind for role, ref in steps[2].media.items() if ref}
    ids = [step.sample_id for step in steps]
    source = LoadedDataset("omnigui", tmp_path, steps, [], 0, "0", ids, ("app", "language"), roles)
    convert(source, tmp_path / "repository", embed=True)
    embedded = load(tmp_path / "repository", "omnigui", ("app", "language")).steps
    assert all(ref is None or ref.cell for step in embedded for ref in step.media.values())
    wanted = batches(steps, 0)
    assert len(batches(list(embedded), 0)) == 5  # the parent has opened the shards
    for one, other in zip(wanted, batches(list(embedded), 2, method), strict=True):
        assert one.sample_id == other.sample_id
        assert same(one.media, other.media)


@pytest.mark.parametrize("workers", in_gate([2, 0, 1], 2, "two stand for one"))
def test_a_stream_gives_every_step_once(steps: list[Step], workers: int) -> None:
    loader = DataLoader(StepStream(steps), batch_size=2, num_workers=workers, collate_fn=Collate())
    for _ in range(2):
        found = list(loader)
        names = [name for batch in found for name in batch.sample_id]
        assert sorted(names) == [step.sample_id for step in steps]
        assert workers > 1 or names == [step.sample_id for step in steps]
        assert isinstance(found[0].audio, list) and found[0].audio[0] is not None


def test_steps_that_can_be_gone_through_only_once_are_refused(steps: list[Step]) -> None:
    with pytest.raises(UsageError, match="only once"):
        StepStream(step for step in steps)


def test_persistent_workers_go_through_several_epochs(steps: list[Step]) -> None:
    sampler = EpisodeSampler(steps)
    loader = DataLoader(
        StepDataset(steps),
        sampler=sampler,
        num_workers=1,
        persistent_workers=True,
        collate_fn=Collate(),
    )
    seen = []
    for epoch in range(4):
        sampler.set_epoch(epoch)
        seen.append([batch.sample_id[0] for batch in loader])
        assert seen[-1] == [steps[index].sample_id for index in sampler]
    assert any(order != seen[0] for order in seen)


def test_torchs_own_samplers_work_too(steps: list[Step]) -> None:
    dataset = StepDataset(steps)
    order = RandomSampler(dataset, generator=torch.Generator().manual_seed(0))
    loader = DataLoader(dataset, batch_size=4, sampler=order, collate_fn=Collate())
    assert sorted(name for batch in loader for name in batch.sample_id) == [
        step.sample_id for step in steps
    ]
