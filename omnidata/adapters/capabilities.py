"""What a model can take, and what one turn looks like once it fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from omnidata.types import Modality

ALL: frozenset[Modality] = frozenset({"image", "video", "audio"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a model takes and in which form it is sent.

    Attributes:
        accepts: the modalities.
        video: "native" sends the clip's own bytes, "frames" some of its frames as pictures.
        frames: how many frames, evenly spread from the first to the last.
        frame_times: whether a line of text before each frame says when it is shown.
        audio: "file" sends the track's own bytes where the model takes its format, "waveform"
            always a 16-bit mono WAV file of 16 kHz.
        audio_formats: the formats of files that it takes, e.g. "wav".
        max_images: how many pictures one request may hold, frames included; None = any number.
        max_videos, max_audios: how many whole clips and how many tracks; None = any number.
        max_media: how many media of all kinds one request may hold, frames included; None = any
            number.
        image_size: the longest side of a picture in pixels; larger ones are made smaller, in
            proportion. None = as they are.
        degrade: leave out what the model cannot take, and say so in the receipt.
    """

    accepts: frozenset[Modality] = ALL
    video: Literal["native", "frames"] = "frames"
    frames: int = 4
    frame_times: bool = True
    audio: Literal["file", "waveform"] = "file"
    audio_formats: tuple[str, ...] = ("wav", "mp3")
    max_images: int | None = None
    max_videos: int | None = None
    max_audios: int | None = None
    max_media: int | None = None
    image_size: int | None = None
    degrade: bool = False


@dataclass(frozen=True, slots=True)
class RenderedPart:
    """A text, or a medium in the form in which it is sent.

    Attributes:
        kind: "text" or the modality; frames of a clip are "image".
        text: the text; empty for media.
        data: a file's bytes; empty for text.
        mime: what the bytes are, e.g. "image/png".
        role: the medium's role in the step.
        sha256: of `data`, in hexadecimal.
    """

    kind: Literal["text", "image", "video", "audio"]
    text: str = ""
    data: bytes = b""
    mime: str = ""
    role: str = ""
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class RenderedMessage:
    """One turn, ready for a wire format."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[RenderedPart, ...]
