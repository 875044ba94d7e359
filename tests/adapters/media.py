"""Conversations about real media: pictures, clips and tracks that a test can tell apart."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt
from PIL import Image

from omnidata.adapters.media_budget import Capabilities
from omnidata.adapters.render import RenderedMessage, RenderedPart, render
from omnidata.media import encode_mp4, encode_wav
from omnidata.types import Conversation, MediaRef, Message, Modality, Part

Pixels = npt.NDArray[np.uint8]
SOUND: frozenset[Modality] = frozenset({"image", "audio"})
FRAMES, FPS, RATE = 12, 10, 16_000


def colours(seed: int, width: int = 48, height: int = 64) -> Pixels:
    """A screen of coloured tiles."""
    tiles = np.random.default_rng(seed).integers(0, 255, (8, 6, 3))
    return np.kron(tiles, np.ones((height // 8, width // 6, 1))).astype(np.uint8)


def picture(folder: Path, name: str, pixels: Pixels, **options: Any) -> MediaRef:
    Image.fromarray(pixels).save(folder / name, **options)
    return MediaRef("image", folder, name)


def clip(folder: Path, name: str = "clip.mp4", *, frames: int = FRAMES) -> MediaRef:
    """Frames of one grey each, lighter from frame to frame by 20."""
    greys = [np.full((64, 48, 3), 20 * number, np.uint8) for number in range(frames)]
    (folder / name).write_bytes(encode_mp4(greys, fps=FPS, crf=0))
    return MediaRef("video", folder, name)


def tone(seconds: float = 0.5, hertz: float = 440.0) -> npt.NDArray[np.float64]:
    times = np.arange(int(seconds * RATE)) / RATE
    return np.asarray(0.5 * np.sin(2 * np.pi * hertz * times))


def track(folder: Path, name: str = "sound.wav") -> MediaRef:
    (folder / name).write_bytes(encode_wav(tone()))
    return MediaRef("audio", folder, name)


def coded(
    folder: Path, name: str, codec: str, *, channels: int = 1, rate: int = 44_100, **options: Any
) -> MediaRef:
    """Half a second of sound in the container that `format` names, or else the file's name."""
    wave = np.tile(np.sin(np.arange(rate // 2) / 20).astype(np.float32) * 0.5, (channels, 1))
    with av.open(str(folder / name), "w", **options) as container:
        stream = container.add_stream(codec, rate=rate)
        assert isinstance(stream, av.AudioStream)
        stream.layout = {1: "mono", 2: "stereo"}[channels]
        wanted = stream.codec_context.format.name
        frame = av.AudioFrame.from_ndarray(wave, format="fltp", layout=stream.layout.name)
        frame.sample_rate = rate
        resampler = av.AudioResampler(
            wanted, stream.layout, rate, frame_size=stream.codec_context.frame_size or None
        )
        for piece in (*resampler.resample(frame), *resampler.resample(None)):
            container.mux(stream.encode(piece))
        container.mux(stream.encode(None))
    return MediaRef("audio", folder, name)


def shown(kind: Modality, ref: MediaRef, role: str) -> Part:
    return Part(kind, media=ref, role=role)


def step(folder: Path) -> Conversation:
    """A system prompt and a turn with all that a step of OmniGUI has."""
    history = picture(folder, "history.png", colours(1))
    screenshot = picture(folder, "screenshot.png", colours(2))
    return (
        Message("system", (Part("text", "You are an agent."),)),
        Message(
            "user",
            (
                Part("text", "[History Screenshot]:", role="history_screenshot"),
                shown("image", history, "history_screenshot"),
                shown("video", clip(folder), "video"),
                shown("audio", track(folder), "audio"),
                shown("image", screenshot, "screenshot"),
                Part("text", "Goal: Tap Share"),
            ),
        ),
    )


def turn(*parts: Part) -> Conversation:
    return (Message("user", parts),)


def rendered(ref: MediaRef, **how: Any) -> tuple[list[RenderedPart], dict[str, Any]]:
    """What is sent of one medium, and its line of the receipt; options of the capabilities."""
    messages, receipt = render(turn(shown(ref.kind, ref, ref.kind)), Capabilities(**how))
    return parts(messages), receipt["parts"][0]


def parts(messages: tuple[RenderedMessage, ...]) -> list[RenderedPart]:
    """Of all messages, in order."""
    return [part for message in messages for part in message.parts]


def pixels(part: RenderedPart) -> Pixels:
    """What a model sees."""
    return np.asarray(Image.open(io.BytesIO(part.data)).convert("RGB"))


def lines(receipt: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {line["role"]: line for line in receipt["parts"]}
