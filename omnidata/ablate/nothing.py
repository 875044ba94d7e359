"""Media that say nothing: silence as long as a sound, a clip in which nothing moves."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from itertools import repeat
from pathlib import Path

import numpy as np

from omnidata import media
from omnidata.data.encode import AUDIO_RATE, encode_mp4, encode_wav
from omnidata.run.folder import explained
from omnidata.storage import atomic_write
from omnidata.types import MediaRef

_MOST_FPS_PARTS = 1001  # 29.97 is 30000/1001


def nothing_in(ref: MediaRef, folder: Path) -> MediaRef:
    """A medium of the same length that says nothing.

    Args:
        ref: a sound, which becomes silence, or a clip, of which the first frame stays.
        folder: for the file; one that is there already is used.

    Raises:
        MediaError: the medium cannot be decoded.
        RunError: the file cannot be written.
    """
    if ref.kind == "audio":
        length = len(media.samples(ref, rate=AUDIO_RATE))
        name = f"silence-{length}.wav"
    else:
        name = f"frozen-{hashlib.sha256(media.read_bytes(ref)).hexdigest()[:24]}.mp4"
    path = folder / name
    if not path.is_file():
        content = encode_wav(np.zeros(length)) if ref.kind == "audio" else _frozen(ref)
        with explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as file:
                file.write(content)
    return MediaRef(ref.kind, folder, name)


def _frozen(ref: MediaRef) -> bytes:
    """The first frame, as often and as fast as the clip has frames."""
    found = media.probe(ref)
    first = media.frames(ref, num_frames=1).pixels[0]
    height, width = (extent - extent % 2 for extent in first.shape[:2])  # as the codec wants it
    frames, seconds = found.frames or 1, found.seconds or 1.0
    rate = Fraction(found.fps or frames / seconds).limit_denominator(_MOST_FPS_PARTS)
    return encode_mp4(repeat(first[:height, :width], frames), fps=rate)
