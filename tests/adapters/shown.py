"""A small step with real media, and what a server that looks at them sees."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from omnidata.media import AUDIO_RATE, encode_mp4, encode_wav
from omnidata.types import Conversation, MediaRef, Message, Modality, Part, Request
from tests.adapters.servers import seen_audio, seen_image, seen_text, seen_video

FRAMES = 12


@dataclass(frozen=True)
class Shown:
    """Files of one step: a screenshot, the one before, a clip of 12 frames and half a second."""

    folder: Path

    def write(self, seed: int = 0) -> Shown:
        """Write the four files; another seed gives other media."""
        random = np.random.default_rng(seed)
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in ("screenshot", "history_screenshot"):
            pixels = random.integers(0, 256, (48, 32, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(self.folder / f"{name}.png")
        frames = np.repeat(random.integers(0, 256, (FRAMES, 6, 4, 3), dtype=np.uint8), 8, axis=1)
        clip = encode_mp4(np.repeat(frames, 8, axis=2), fps=6)
        (self.folder / "video.mp4").write_bytes(clip)
        samples = random.uniform(-1, 1, AUDIO_RATE // 2)
        (self.folder / "audio.wav").write_bytes(encode_wav(samples))
        return self

    def part(self, role: str, name: str) -> Part:
        kinds: dict[str, Modality] = {".png": "image", ".mp4": "video", ".wav": "audio"}
        kind = kinds[Path(name).suffix]
        return Part(kind, media=MediaRef(kind, self.folder, name), role=role)

    @property
    def conversation(self) -> Conversation:
        """In the order of OmniGUI's paper."""
        user = (
            Part("text", "[History Screenshot]:", role="history_screenshot"),
            self.part("history_screenshot", "history_screenshot.png"),
            self.part("video", "video.mp4"),
            self.part("audio", "audio.wav"),
            self.part("screenshot", "screenshot.png"),
            Part("text", 'Goal: tap "分享"\nStep: 2'),
        )
        return (Message("system", (Part("text", "You are an agent."),)), Message("user", user))

    @property
    def request(self) -> Request:
        return Request("app/T1/2", self.conversation)

    def seen(self, *, clip: bool = True) -> list[str]:
        """What a server sees of the whole conversation when the clip goes as a file."""
        lines = [
            f"system: {seen_text('You are an agent.')}",
            f"user: {seen_text('[History Screenshot]:')}",
            f"user: {seen_image(self.read('history_screenshot.png'))}",
            f"user: {seen_video(self.read('video.mp4'))}",
            f"user: {seen_audio(self.read('audio.wav'))}",
            f"user: {seen_image(self.read('screenshot.png'))}",
            "user: " + seen_text('Goal: tap "分享"\nStep: 2'),
        ]
        return lines if clip else [line for line in lines if "video" not in line]

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()


def png(width: int, height: int) -> bytes:
    """A grey picture."""
    stream = io.BytesIO()
    Image.new("RGB", (width, height), (90, 90, 90)).save(stream, "png")
    return stream.getvalue()
