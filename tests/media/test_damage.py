"""Damaged files end in a picture, samples or a `MediaError` that names the file."""

from __future__ import annotations

import random
import resource
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from omnidata.errors import MediaError
from omnidata.media import Budget, frames, image, probe, samples
from omnidata.types import MediaRef, Modality
from tests.full import FULL, in_gate
from tests.trees import NO_SHARED, SHARED

DATA = SHARED / "data"
SOURCES: list[tuple[Modality, str]] = [
    ("video", "torchcodec_av/h265_video.mp4"),
    ("audio", "talkback_earcons/complete.ogg"),
    ("image", "aitz_google_apps/GOOGLE_APPS-523638528775825151_1.png"),
    ("video", "torchcodec_av/av1_video.mkv"),
    ("video", "torchcodec_av/nasa_13013.mp4"),
    ("audio", "torchcodec_av/sine_mono_s16.wav"),
    ("audio", "torchcodec_av/nasa_13013.mp4.audio.mp3"),
    ("image", "screenagent_sessions/session7/images/2023-12-18_00-49-21-204467.jpg"),
]
MEDIA = in_gate(SOURCES, 3, "one medium of each kind: other codecs are FFmpeg's")
BUDGET = Budget(max_pixels=20_000_000, max_frames=2000, max_seconds=120)
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=NO_SHARED)


def damaged(whole: bytes, rng: random.Random) -> bytes:
    """Flipped, cut, zeroed or repeated bytes, at times in the first kilobyte, where headers are."""
    body = bytearray(whole)
    reach = min(len(body), 1024) if rng.random() < 0.4 else len(body)
    for _ in range(rng.choice((1, 3, 30, 300))):
        body[rng.randrange(reach)] = rng.randrange(256)
    kind = rng.choice(("flip", "cut", "zero", "repeat"))
    begin = rng.randrange(reach)
    if kind == "cut":
        return bytes(body[:begin])
    if kind == "zero":
        end = min(len(body), begin + rng.randrange(1, 5000))
        body[begin:end] = bytes(end - begin)
    if kind == "repeat":
        body[begin:begin] = body[begin : begin + 2000] * rng.randrange(1, 4)
    return bytes(body)


def touch(ref: MediaRef) -> str:
    """Everything that can be asked of the medium; says what came of it."""
    outcome = "read"
    calls: dict[Modality, list[Callable[[], object]]] = {
        "image": [lambda: image(ref, size=(64, 64), budget=BUDGET)],
        "video": [
            lambda: frames(ref, num_frames=4, budget=BUDGET),
            lambda: frames(ref, fps=1.0, budget=BUDGET),
            lambda: frames(ref, which="keyframes", budget=BUDGET),
        ],
        "audio": [lambda: samples(ref, budget=BUDGET)],
    }
    everything = [*calls[ref.kind]]
    everything.append(lambda: probe(ref, budget=BUDGET))
    for call in everything:
        try:
            call()
        except MediaError as error:
            assert ref.path in str(error)
            outcome = "refused"
    return outcome


@pytest.mark.parametrize("medium", MEDIA, ids=str)
def test_damaged_files_are_read_or_refused_within_time_and_memory(
    tmp_path: Path, medium: tuple[Modality, str]
) -> None:
    kind, source = medium
    whole = (DATA / source).read_bytes()
    rng = random.Random(source)
    outcomes = set()
    for number in range(40 if FULL else 5):
        path = tmp_path / f"{number}{Path(source).suffix}"
        path.write_bytes(damaged(whole, rng))
        began = time.process_time()
        outcomes.add(touch(MediaRef(kind, tmp_path, path.name)))
        assert time.process_time() - began < 60
    assert "refused" in outcomes
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4_000_000  # KiB


@pytest.mark.parametrize("medium", MEDIA, ids=str)
def test_the_whole_files_are_read(medium: tuple[Modality, str]) -> None:
    kind, source = medium
    path = DATA / source
    assert touch(MediaRef(kind, path.parent, path.name)) == "read"
