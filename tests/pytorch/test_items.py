from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from omnidata.actions import Action, Point
from omnidata.errors import MediaError, MissingMediaError, UsageError
from omnidata.media import frames, image, samples
from omnidata.tasks.omnigui.load import load
from omnidata.torch import Decoding, StepDataset
from omnidata.types import MediaRef, Step
from tests.pytorch.small import HEIGHT, SAMPLES, WIDTH, make_step


def ref(step: Step, role: str) -> MediaRef:
    found = step.media[role]
    assert found is not None
    return found


def broken(steps: list[Step], tmp_path: Path) -> list[Step]:
    """The first step with a clip of garbage."""
    (tmp_path / "bad.mp4").write_bytes(b"garbage" * 100)
    media = {**steps[0].media, "video": MediaRef("video", tmp_path, "bad.mp4")}
    return [replace(steps[0], media=media)]


def test_an_item_holds_what_omnidata_media_decodes(steps: list[Step]) -> None:
    step = steps[2]
    item = StepDataset(steps)[2]
    assert item.screenshot is not None and item.frames is not None and item.audio is not None
    pixels = image(ref(step, "screenshot")).pixels
    clip = frames(ref(step, "video"), num_frames=4)
    assert np.array_equal(item.screenshot.permute(1, 2, 0).numpy(), pixels)
    assert np.array_equal(item.frames.permute(0, 2, 3, 1).numpy(), clip.pixels)
    assert np.array_equal(item.pts_seconds["video"].numpy(), clip.pts_seconds)
    assert np.array_equal(item.audio.numpy(), samples(ref(step, "audio")))
    assert item.fps == {"video": clip.fps}
    past = image(ref(steps[0], "screenshot")).pixels
    shown = item.media["history_screenshot"]
    assert shown is not None and np.array_equal(shown.permute(1, 2, 0).numpy(), past)


def test_shapes_and_types_are_those_of_the_documentation(steps: list[Step]) -> None:
    item = StepDataset(steps)[0]
    assert {role: (tensor.shape, tensor.dtype) for role, tensor in item.media.items()
            if tensor is not None} == {
        "screenshot": ((3, HEIGHT, WIDTH), torch.uint8),
        "video": ((4, 3, HEIGHT, WIDTH), torch.uint8),
        "audio": ((SAMPLES,), torch.float32),
    }  # fmt: skip
    assert item.media["history_screenshot"] is None
    assert item.pts_seconds["video"].dtype == torch.float64


def test_texts_and_actions_come_along(steps: list[Step]) -> None:
    dataset = StepDataset(steps)
    for step, item in zip(steps, (dataset[index] for index in range(len(steps))), strict=True):
        for name in ("sample_id", "episode_id", "step_index", "num_steps", "instruction",
                     "screen", "history", "history_screens", "action", "tags"):  # fmt: skip
            assert getattr(item, name) == getattr(step, name), name


def test_only_the_roles_asked_for_are_decoded(steps: list[Step], tmp_path: Path) -> None:
    item = StepDataset(broken(steps, tmp_path), Decoding(roles=("audio",)))[0]
    assert list(item.media) == ["audio"]
    assert item.screenshot is None and item.frames is None


@pytest.mark.parametrize("role", ["screenshot", "video"])
def test_a_point_is_mapped_into_the_resized_picture_and_clip(steps: list[Step], role: str) -> None:
    item = StepDataset(steps, Decoding(resize=(32, 100), num_frames=2))[0]
    placement, pixels = item.placements[role], item.media[role]
    assert pixels is not None
    assert pixels.shape == ((3, 32, 100) if role == "screenshot" else (2, 3, 32, 100))
    assert placement.to_picture(0, 0) == (38, 0)
    assert placement.to_screen(*placement.to_picture(WIDTH, HEIGHT)) == (WIDTH, HEIGHT)
    assert not pixels[..., :38].any() and pixels[..., 38:62].any()


@pytest.mark.parametrize(
    ("how", "count"),
    [({"num_frames": 3}, 3), ({"fps": 5.0}, 6), ({"which": "all"}, 12), ({}, 4)],
)
def test_the_frames_of_a_clip_are_those_asked_for(
    steps: list[Step], how: dict[str, Any], count: int
) -> None:
    item = StepDataset(steps, Decoding(**how))[0]
    assert item.frames is not None and len(item.frames) == count
    assert len(item.pts_seconds["video"]) == count


def test_sound_comes_at_the_rate_asked_for(steps: list[Step]) -> None:
    item = StepDataset(steps, Decoding(audio_rate=8_000))[0]
    assert item.audio is not None and item.audio_rate == 8_000
    assert item.audio.shape == (SAMPLES // 2,)


def test_tensors_may_be_written_to(steps: list[Step]) -> None:
    dataset = StepDataset(steps)
    item, again = dataset[0], dataset[0]
    for role in ("screenshot", "video", "audio"):
        tensor, other = item.media[role], again.media[role]
        assert tensor is not None and other is not None
        tensor.zero_()
        assert other.any()


def test_a_broken_medium_names_the_step_and_the_file(steps: list[Step], tmp_path: Path) -> None:
    with pytest.raises(MediaError, match=r"App/A/0, video: .*bad\.mp4") as caught:
        StepDataset(broken(steps, tmp_path))[0]
    assert 'Decoding(on_error="none")' in str(caught.value)


def test_a_missing_medium_is_no_absent_one(steps: list[Step]) -> None:
    media = {**steps[0].media, "audio": MediaRef("audio", Path("/nowhere"), "1.wav")}
    with pytest.raises(MissingMediaError, match=r"App/A/0, audio: .*1\.wav"):
        StepDataset([replace(steps[0], media=media)])[0]


def test_a_broken_medium_may_be_none_with_its_message(steps: list[Step], tmp_path: Path) -> None:
    item = StepDataset(broken(steps, tmp_path), Decoding(on_error="none"))[0]
    assert item.frames is None and item.screenshot is not None
    assert list(item.errors) == ["video"]
    assert "bad.mp4" in item.errors["video"]
    assert StepDataset(steps, Decoding(on_error="none"))[0].errors == {}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"num_frames": 4, "fps": 2.0}, "exactly one"),
        ({"num_frames": 0}, "whole number of at least 1"),
        ({"num_frames": 2.5}, "whole number of at least 1"),
        ({"fps": -1.0}, "fps up to 1000"),
        ({"fps": 5000}, "fps up to 1000"),
        ({"which": "keyframe"}, '"keyframes"'),
        ({"roles": "audio"}, "names"),
        ({"resize": (32,)}, r"\(height, width\)"),
        ({"resize": (0, 100)}, "positive"),
        ({"size": (32, 100)}, r"Decoding\(resize=\(100, 32\)\)"),
        ({"audio_rate": 0}, "from 1000 Hz"),
        ({"audio_rate": 1}, "from 1000 Hz"),
        ({"audio_rate": 16_000.0}, "from 1000 Hz"),
        ({"on_error": "skip"}, '"raise" or "none"'),
    ],
)
def test_a_choice_that_means_nothing_is_refused_at_once(
    wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        Decoding(**wrong)


def test_an_unknown_role_and_no_step_are_refused_at_once(steps: list[Step]) -> None:
    with pytest.raises(UsageError, match=r"screenshots(.|\n)*some of audio, history_screenshot"):
        StepDataset(steps, Decoding(roles=("screenshots",)))
    with pytest.raises(UsageError, match="no step"):
        StepDataset([])


@pytest.mark.parametrize("given", [3, None, {}, {0: 1}, iter(())])
def test_what_is_no_sequence_is_refused_with_the_way_that_works(given: Any) -> None:
    with pytest.raises(UsageError, match="no sequence of steps") as caught:
        StepDataset(given)
    assert "StepDataset(omnidata.load_dataset(" in caught.value.expected


def test_indices_are_those_of_a_sequence(steps: list[Step]) -> None:
    dataset = StepDataset(steps)
    assert len(dataset) == len(steps)
    assert dataset[-1].sample_id == steps[-1].sample_id
    with pytest.raises(IndexError):
        dataset[len(steps)]


def test_steps_in_any_order_keep_their_histories(steps: list[Step]) -> None:
    mixed = [steps[index] for index in (8, 0, 3, 7, 1, 6, 5, 2, 4)]
    odd = replace(steps[2], history=(None, steps[5].action), history_screens=((1, 1), (2, 2)))
    dataset = StepDataset([*mixed, odd, steps[2]], Decoding(roles=()))
    for index, step in enumerate([*mixed, odd, steps[2]]):
        assert dataset[index].history == step.history
        assert dataset[index].history_screens == step.history_screens


def test_long_histories_are_pickled_once() -> None:
    taps = [Action("tap", (Point(1.0, 0.0, "px"),))] * 1000
    episode = [make_step("A", index, taps, {}) for index in range(1000)]
    dataset = StepDataset(episode, Decoding(roles=()))
    assert len(pickle.dumps(dataset)) < 50 * len(episode) < len(pickle.dumps(episode)) / 20
    assert pickle.loads(pickle.dumps(dataset))[999].history == episode[999].history


def test_a_source_is_taken_as_it_is(data: Path) -> None:
    source = load(data)
    dataset = StepDataset(source, Decoding(roles=("screenshot", "audio")))
    assert len(dataset) == len(source.steps)
    item = dataset[1]
    assert item.screenshot is not None and item.audio is not None
    assert (item.screenshot.shape[2], item.screenshot.shape[1]) == item.screen
