"""A conversation's media as arrays, in the form in which transformers' processors take them."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omnidata import media
from omnidata.adapters.capabilities import Capabilities
from omnidata.adapters.hf.families import Family
from omnidata.adapters.walk import Line, Turn, walk
from omnidata.types import Conversation, MediaRef, Part

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_log = logging.getLogger(__name__)
_PIXELS_PER_TOKEN = 28 * 28
_SAMPLES_PER_TOKEN = 640
_LETTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Decoded:
    """A text or a medium of one message.

    Attributes:
        kind: "text", "image", "video" or "audio".
        text: the text; empty for media.
        values: uint8 (H, W, 3) of a picture, uint8 (T, H, W, 3) of a clip, float32 (N,) of sound;
            None for text.
        role: the medium's role in the step.
    """

    kind: str
    text: str = ""
    values: npt.NDArray[Any] | None = None
    role: str = ""

    @property
    def length(self) -> int:
        """About how many tokens it becomes; good enough to sort steps by."""
        if self.values is None:
            return len(self.text) // _LETTERS_PER_TOKEN
        if self.kind == "audio":
            return self.values.size // _SAMPLES_PER_TOKEN
        return self.values.size // (3 * _PIXELS_PER_TOKEN)


class Decoder:
    """Reads and decodes for one model.

    Args:
        capabilities: what the model takes.
        family: of the model.
        rate: samples per second that its feature extractor expects, in Hz.
        fps: frames per second that are read of a clip.
    """

    def __init__(
        self, capabilities: Capabilities, family: Family, *, rate: int, fps: float
    ) -> None:
        """Nothing is read yet."""
        self._capabilities = capabilities
        self._family = family
        self._rate = rate
        self._fps = fps

    def decode(self, conversation: Conversation) -> tuple[list[Turn[Decoded]], Mapping[str, Any]]:
        """The messages, and the receipt.

        Raises:
            MediaError: a medium is missing or broken.
            UsageError: the model cannot take the conversation, and `degrade` is off.
        """
        turns, receipt = walk(conversation, self._capabilities, _text, self._sent)
        cut = [f"{line['role']}: {line['cut']}" for line in receipt["parts"] if "cut" in line]
        if cut:
            receipt["degraded"] = [*receipt.get("degraded", ()), *cut]
        return turns, receipt

    def _sent(
        self, part: Part, ref: MediaRef, frames: int | None, capabilities: Capabilities
    ) -> tuple[list[Decoded], Line]:
        if ref.kind == "audio":
            return self._sound(part, ref)
        held = media.hold(ref)
        if ref.kind == "image":
            pixels = media.image(held).pixels
            return _picture(pixels, capabilities.image_size, held)
        if frames is not None:
            return _stills(held, frames, capabilities)
        clip = media.frames(held, fps=self._fps)
        line = _line("frames", held, clip.pixels.shape[2], clip.pixels.shape[1])
        line |= {"frames": len(clip.pixels), "fps": self._fps, "times_s": _times(clip)}
        return [Decoded("video", values=clip.pixels, role=part.role)], line

    def _sound(self, part: Part, ref: MediaRef) -> tuple[list[Decoded], Line]:
        samples = media.samples(ref if ref.inline is not None else media.hold(ref), rate=self._rate)
        line: Line = {"as": "waveform", "seconds": len(samples) / self._rate}
        line["sha256"] = hashlib.sha256(samples.tobytes()).hexdigest()
        most = self._family.audio_window
        if most is not None and len(samples) > most:
            line["cut"] = (
                f"the model hears the first {most / self._rate:g} s of {line['seconds']:.1f} s"
            )
            line["seconds"] = most / self._rate
            _log.warning("%s: %s", media.place(ref), line["cut"])
            samples = samples[:most]
        return [Decoded("audio", values=samples, role=part.role)], line


def _text(text: str) -> Decoded:
    return Decoded("text", text)


def _picture(
    pixels: npt.NDArray[np.uint8], longest: int | None, held: media.Held
) -> tuple[list[Decoded], Line]:
    size = pixels.shape[1], pixels.shape[0]
    fitted = media.within(size, longest)
    line = _line("pixels", held, *fitted)
    if fitted != size:
        line |= {"scale": max(fitted) / max(size), "original": list(size)}
    return [Decoded("image", values=media.resized(pixels, fitted))], line


def _stills(held: media.Held, count: int, capabilities: Capabilities) -> tuple[list[Decoded], Line]:
    """Frames of a clip as pictures, for a model that takes no clips."""
    clip = media.frames(held, num_frames=count)
    size = clip.pixels.shape[2], clip.pixels.shape[1]
    fitted = media.within(size, capabilities.image_size)
    times = _times(clip)
    made: list[Decoded] = []
    for time, pixels in zip(times, clip.pixels, strict=True):
        if capabilities.frame_times:
            made.append(Decoded("text", f"[Video frame at {time:.2f} s]:"))
        made.append(Decoded("image", values=media.resized(pixels, fitted)))
    line = _line("frames", held, *fitted) | {"frames": len(times), "times_s": times}
    if fitted != size:
        line |= {"scale": max(fitted) / max(size), "original": list(size)}
    return made, line


def _line(form: str, held: media.Held, width: int, height: int) -> Line:
    digest = hashlib.sha256(held.content).hexdigest()
    return {"as": form, "width": width, "height": height, "sha256": digest}


def _times(clip: media.Frames) -> list[float]:
    """Seconds after the first frame."""
    times: list[float] = (clip.pts_seconds - clip.pts_seconds[0]).round(3).tolist()
    return times


def length(turns: Sequence[Turn[Decoded]]) -> int:
    """About how many tokens the messages become."""
    return sum(part.length for turn in turns for part in turn.parts)


def size(turns: Sequence[Turn[Decoded]]) -> int:
    """Bytes of the arrays."""
    parts = (part for turn in turns for part in turn.parts)
    return sum(part.values.nbytes for part in parts if part.values is not None)
