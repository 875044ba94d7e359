from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torch import Tensor

from omnidata.errors import UsageError
from omnidata.torch import Collate, Decoding, Item, Padded, StepDataset
from omnidata.types import MediaRef, Step
from tests.pytorch.small import HEIGHT, SAMPLES, WIDTH


@pytest.fixture
def items(steps: list[Step], tmp_path: Path) -> list[Item]:
    """Three items: all media; a larger screenshot, a longer clip and no sound; half the sound."""
    Image.new("RGB", (WIDTH + 8, HEIGHT + 4), "white").save(tmp_path / "large.png")
    media = {**steps[1].media, "screenshot": MediaRef("image", tmp_path, "large.png")}
    media["audio"] = None
    first = StepDataset([steps[0], replace(steps[1], media=media)])
    more = StepDataset([replace(steps[1], media=media)], Decoding(num_frames=6))
    short = StepDataset(steps, Decoding(roles=("screenshot", "audio")))[2]
    assert short.audio is not None
    short.media["audio"] = short.audio[: SAMPLES // 2]
    return [first[0], more[0], short]


def padded(found: object) -> Padded:
    assert isinstance(found, Padded)
    return found


def test_media_stay_as_they_are_in_lists_with_none_where_absent(items: list[Item]) -> None:
    batch = Collate()(items)
    assert isinstance(batch.screenshot, list) and isinstance(batch.audio, list)
    for found, item in zip(batch.screenshot, items, strict=True):
        assert found is item.screenshot
    assert [sound is None for sound in batch.audio] == [False, True, False]
    assert isinstance(batch.frames, list) and batch.frames[2] is None
    assert batch.fps["video"] == [items[0].fps["video"], items[1].fps["video"], None]
    assert batch.placements["screenshot"][1] == items[1].placements["screenshot"]
    assert batch.mel == {}


def test_texts_stay_lists_and_the_index_is_a_tensor(items: list[Item]) -> None:
    batch = Collate()(items)
    assert batch.sample_id == ["App/A/0", "App/A/1", "App/A/2"]
    assert batch.action == [item.action for item in items]
    assert batch.history == [item.history for item in items]
    assert batch.step_index.tolist() == [0, 1, 2]
    assert len(batch) == 3


def test_padding_keeps_every_value_in_its_place(items: list[Item]) -> None:
    batch = Collate(pad=True)(items)
    screens, clips, sounds = padded(batch.screenshot), padded(batch.frames), padded(batch.audio)
    assert screens.values.shape == (3, 3, HEIGHT + 4, WIDTH + 8)
    assert clips.values.shape == (3, 6, 3, HEIGHT, WIDTH)
    assert sounds.values.shape == (3, SAMPLES)
    for role, found in (("screenshot", screens), ("video", clips), ("audio", sounds)):
        for row, size, item in zip(found.values, found.sizes, items, strict=True):
            tensor = item.media.get(role)
            if tensor is None:
                assert not row.any() and not size.any()
                continue
            assert size.tolist() == list(tensor.shape)
            inside = tuple(slice(extent) for extent in tensor.shape)
            assert torch.equal(row[inside], tensor)
            row = row.clone()
            row[inside] = 0
            assert not row.any()


def test_masks_say_where_the_values_are_real(items: list[Item]) -> None:
    batch = Collate(pad=True)(items)
    assert padded(batch.audio).mask(1).sum(1).tolist() == [SAMPLES, 0, SAMPLES // 2]
    assert padded(batch.frames).mask(1).sum(1).tolist() == [4, 6, 0]
    pixels = padded(batch.screenshot).mask(2, 3)
    assert pixels.shape == (3, HEIGHT + 4, WIDTH + 8)
    assert pixels[0, HEIGHT - 1, WIDTH - 1] and not pixels[0, HEIGHT, 0] and pixels[1].all()
    times = padded(batch.pts_seconds["video"])
    assert times.values.dtype == torch.float64 and torch.equal(
        times.mask(1), padded(batch.frames).mask(1)
    )


@pytest.mark.parametrize("padded", [False, True])
def test_a_medium_that_no_item_has_keeps_its_place(steps: list[Step], padded: bool) -> None:
    media = dict.fromkeys(steps[0].media)
    item = StepDataset([replace(steps[0], media=media)])[0]
    batch = Collate(pad=padded, mel_bins=80)([item, item])
    empty = None if padded else [None, None]
    assert batch.media == dict.fromkeys(media, empty)
    assert batch.screenshot == batch.audio == batch.frames == empty
    assert batch.mel == {"audio": empty}
    assert batch.pts_seconds == {"video": empty}
    assert batch.fps == {"video": [None, None]}
    roles = ("screenshot", "history_screenshot", "video")
    assert batch.placements == {role: [None, None] for role in roles}


def test_what_makes_no_batch_is_refused() -> None:
    with pytest.raises(UsageError, match="at least one item"):
        Collate()([])
    wrong: Any = 99
    with pytest.raises(UsageError, match="80, 128"):
        Collate(mel_bins=wrong)


def test_messages_of_broken_media_come_along(steps: list[Step]) -> None:
    media = {**steps[0].media, "audio": MediaRef("audio", Path("/nowhere"), "1.wav")}
    dataset = StepDataset([steps[0], replace(steps[0], media=media)], Decoding(on_error="none"))
    batch = Collate()([dataset[0], dataset[1]])
    assert batch.errors[0] == {} and "1.wav" in batch.errors[1]["audio"]


def test_items_of_different_audio_rates_are_refused(steps: list[Step]) -> None:
    items = [StepDataset(steps, Decoding(audio_rate=rate))[0] for rate in (8_000, 16_000)]
    with pytest.raises(UsageError, match="different audio rates"):
        Collate()(items)


def tensors(value: object) -> list[Tensor]:
    """All tensors in a value."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, Padded):
        return [value.values, value.sizes]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [tensor for part in inner for tensor in tensors(part)]


@pytest.mark.parametrize("pad", [False, True])
def test_a_batch_goes_to_a_device_whole(items: list[Item], pad: bool) -> None:
    here = Collate(pad=pad, mel_bins=80)(items)
    there = here.to("meta", non_blocking=True)
    parts = ("step_index", "media", "pts_seconds", "mel")
    moved = [tensor for part in parts for tensor in tensors(getattr(there, part))]
    stayed = [tensor for part in parts for tensor in tensors(getattr(here, part))]
    assert len(moved) == len(stayed) > 8
    assert {tensor.device.type for tensor in moved} == {"meta"}
    assert {tensor.device.type for tensor in stayed} == {"cpu"}
    assert there.sample_id == here.sample_id


@pytest.mark.skipif(not torch.cuda.is_available(), reason="page-locked memory needs an accelerator")
def test_a_batch_is_pinned_whole(items: list[Item]) -> None:
    batch = Collate(pad=True)(items).pin_memory()
    assert padded(batch.audio).values.is_pinned() and batch.step_index.is_pinned()
