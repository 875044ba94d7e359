"""What is left out so that a model can take a conversation: limits, sizes, degrading."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from omnidata.adapters.media_budget import Capabilities
from omnidata.adapters.render import render
from omnidata.errors import UsageError
from omnidata.types import Conversation, MediaRef, Modality
from tests.adapters.media import (
    SOUND,
    clip,
    colours,
    lines,
    parts,
    picture,
    pixels,
    rendered,
    shown,
    step,
    track,
    turn,
)
from tests.full import FULL

# --- size -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "L"])
def test_a_larger_picture_is_made_smaller_in_proportion(tmp_path: Path, mode: str) -> None:
    screen = Image.fromarray(colours(3, 720, 1600))
    (screen.quantize(64, dither=Image.Dither.NONE) if mode == "P" else screen.convert(mode)).save(
        tmp_path / "s.png"
    )
    ref = MediaRef("image", tmp_path, "s.png")
    [part], line = rendered(ref, image_size=1000)
    assert part.mime == "image/png"
    sent = pixels(part)
    assert sent.shape == (1000, 450, 3)
    said = {"width": 450, "height": 1000, "scale": 0.625, "original": [720, 1600]}
    assert line.items() >= said.items()
    want = np.asarray(Image.open(tmp_path / "s.png").convert("RGB"))[50::200, 60::120]
    assert np.abs(sent[31::125, 37::75].astype(int) - want.astype(int)).max() <= 1


def test_a_picture_of_the_right_size_stays_as_it_is(tmp_path: Path) -> None:
    ref = picture(tmp_path, "s.png", colours(1, 48, 64))
    for limit in (64, 1000):
        [part], line = rendered(ref, image_size=limit)
        assert part.data == (tmp_path / "s.png").read_bytes()
        assert "scale" not in line


def test_frames_are_made_smaller_like_pictures(tmp_path: Path) -> None:
    sent, line = rendered(clip(tmp_path), image_size=32, frame_times=False)
    assert {pixels(part).shape for part in sent} == {(32, 24, 3)}
    assert line.items() >= {"width": 24, "height": 32, "scale": 0.5}.items()


# --- what a model lacks ---------------------------------------------------------------------------


def test_a_modality_that_the_model_does_not_take_is_named_before_any_file_is_opened() -> None:
    nowhere = Path("/nowhere")
    conversation = turn(
        shown("video", MediaRef("video", nowhere, "1.mp4"), "video"),
        shown("audio", MediaRef("audio", nowhere, "1.wav"), "audio"),
        shown("audio", MediaRef("audio", nowhere, "2.wav"), "voice"),
    )
    lacks = r"takes no video \(video\); the model takes no audio \(audio, voice\)"
    with pytest.raises(UsageError, match=lacks):
        render(conversation, Capabilities(accepts=frozenset({"image"})))


def test_frames_count_as_pictures(tmp_path: Path) -> None:
    conversation = step(tmp_path)
    render(conversation, Capabilities(max_images=6))
    render(conversation, Capabilities(max_images=2, video="native"))
    with pytest.raises(UsageError, match=r"at most 5 pictures, not 6 \(4 of them frames\)"):
        render(conversation, Capabilities(max_images=5))


def test_degrading_leaves_out_what_the_model_does_not_take_and_says_so(tmp_path: Path) -> None:
    conversation = step(tmp_path)
    (tmp_path / "clip.mp4").unlink()  # it is not opened
    messages, receipt = render(conversation, Capabilities(accepts=SOUND, degrade=True))
    kinds = [part.role for part in parts(messages) if part.kind != "text"]
    assert kinds == ["history_screenshot", "audio", "screenshot"]
    assert lines(receipt)["video"] == {
        "role": "video",
        "kind": "video",
        "dropped": "the model takes no video",
    }
    assert receipt["degraded"] == ["video: the model takes no video"]


@pytest.mark.parametrize(
    ("limit", "left", "frames"),
    [
        (6, ["history_screenshot", "video", "screenshot"], 4),
        (5, ["video", "screenshot"], 4),
        (4, ["video", "screenshot"], 3),
        (2, ["video", "screenshot"], 1),
        (1, ["screenshot"], 0),
    ],
)
def test_the_history_goes_first_then_frames_and_never_the_current_screenshot(
    tmp_path: Path, limit: int, left: list[str], frames: int
) -> None:
    capabilities = Capabilities(max_images=limit, degrade=True, frame_times=False)
    messages, receipt = render(step(tmp_path), capabilities)
    roles = [part.role for part in parts(messages) if part.kind == "image"]
    assert list(dict.fromkeys(roles)) == left
    assert len(roles) <= limit
    assert roles.count("video") == frames == lines(receipt)["video"].get("frames", 0)
    told = " ".join(receipt.get("degraded", []))
    assert ("history_screenshot:" in told) == ("history_screenshot" not in left)
    assert ("video:" in told) == (frames < 4)
    if 1 < frames < 4:
        assert lines(receipt)["video"]["times_s"] == [0.0, 0.5, 1.1]  # spread anew, to the end


def test_a_label_goes_with_its_picture(tmp_path: Path) -> None:
    messages, _ = render(step(tmp_path), Capabilities(max_images=5, degrade=True))
    assert "[History Screenshot]:" not in [part.text for part in parts(messages)]
    messages, _ = render(step(tmp_path), Capabilities(max_images=6, degrade=True))
    assert "[History Screenshot]:" in [part.text for part in parts(messages)]


def test_of_many_pictures_the_first_are_left_out_and_no_empty_turn_stays(tmp_path: Path) -> None:
    turns: Conversation = ()
    for number in range(4):
        ref = picture(tmp_path, f"{number}.png", colours(number))
        turns += turn(shown("image", ref, f"observation_{number}"))
    messages, receipt = render(turns, Capabilities(max_images=2, degrade=True))
    assert [part.role for part in parts(messages)] == ["observation_2", "observation_3"]
    assert len(messages) == 2
    assert ["dropped" in line for line in receipt["parts"]] == [True, True, False, False]


KINDS = st.sampled_from([("image", "history_screenshot"), ("image", "before"), ("video", "video")])


@pytest.fixture(scope="module")
def media(tmp_path_factory: pytest.TempPathFactory) -> dict[Modality, MediaRef]:
    """A medium of each kind."""
    folder = tmp_path_factory.mktemp("media")
    return {
        "image": picture(folder, "s.png", colours(1)),
        "video": clip(folder),
        "audio": track(folder),
    }


@given(kinds=st.lists(KINDS, max_size=8), limit=st.integers(0, 12), frames=st.integers(1, 6))
@settings(max_examples=300 if FULL else 60, deadline=None)
def test_what_is_left_fits_and_nothing_is_left_out_without_need(
    media: dict[Modality, MediaRef], kinds: list[tuple[Modality, str]], limit: int, frames: int
) -> None:
    every = [*kinds, ("image", "screenshot")]
    conversation = turn(*(shown(kind, media[kind], role) for kind, role in every))
    capabilities = Capabilities(max_images=limit, frames=frames, frame_times=False)
    messages, receipt = render(conversation, replace(capabilities, degrade=True))
    sent = len(parts(messages))
    wanted = sum(1 if kind == "image" else frames for kind, _ in every)
    assert sent == min(limit, wanted)
    assert ("dropped" not in receipt["parts"][-1]) == (limit > 0)
    counts = [line.get("frames", 0) for line in receipt["parts"] if line["kind"] == "video"]
    assert not counts or max(counts) - min(counts) <= 1
    if sent < wanted:
        with pytest.raises(UsageError, match=f"at most {limit} picture"):
            render(conversation, capabilities)


# --- together -------------------------------------------------------------------------------------


def test_a_receipt_is_json(tmp_path: Path) -> None:
    for capabilities in (
        Capabilities(),
        Capabilities(video="native", audio="waveform"),
        Capabilities(image_size=32, max_images=3, degrade=True),
    ):
        _, receipt = render(step(tmp_path), capabilities)
        assert json.loads(json.dumps(receipt)) == receipt


def test_threads_render_what_one_does(tmp_path: Path) -> None:
    conversation, capabilities = step(tmp_path), Capabilities(image_size=32)
    alone = render(conversation, capabilities)
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda _: render(conversation, capabilities), range(24)))
    assert all(rendered == alone for rendered in together)


MODALITIES: tuple[Modality, ...] = ("image", "video", "audio")
LIMIT = st.none() | st.integers(0, 4)


@given(
    kinds=st.lists(st.sampled_from(MODALITIES), max_size=8),
    videos=LIMIT,
    audios=LIMIT,
    most=LIMIT,
    native=st.booleans(),
)
@settings(deadline=None)
def test_what_is_kept_fits_and_is_the_last_of_its_kind(
    media: dict[Modality, MediaRef],
    kinds: list[Modality],
    videos: int | None,
    audios: int | None,
    most: int | None,
    native: bool,
) -> None:
    capabilities = Capabilities(
        video="native" if native else "frames",
        frames=2,
        max_videos=videos,
        max_audios=audios,
        max_media=most,
        degrade=True,
    )
    _, receipt = render(turn(*(shown(kind, media[kind], kind) for kind in kinds)), capabilities)
    kept = [number for number, line in enumerate(receipt["parts"]) if "dropped" not in line]
    assert len(kept) == len(kinds) or (videos, audios, most) != (None, None, None)
    count = {kind: sum(kinds[number] == kind for number in kept) for kind in MODALITIES}
    weight = sum(count.values()) + (0 if native else count["video"])
    assert most is None or weight <= most
    assert audios is None or count["audio"] <= audios
    assert videos is None or not native or count["video"] <= videos
    for kind in MODALITIES:
        numbers = [number for number, has in enumerate(kinds) if has == kind]
        assert [n for n in numbers if n in kept] == numbers[len(numbers) - count[kind] :]


def test_what_does_not_fit_is_named() -> None:
    tracks = [shown("audio", MediaRef("audio", Path(), role), role) for role in ("audio", "voice")]
    with pytest.raises(UsageError, match="no more than 1 track, which leaves out audio"):
        render(turn(*tracks), Capabilities(max_audios=1))
