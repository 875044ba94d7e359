"""Spoken texts: a folder with a WAV file for each, named after the text.

`omnidata voice` writes such a folder; a benchmark whose prompt has a spoken form looks there.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from omnidata.types import MediaRef

MIN_BYTES = 1000
"""A file of this size or less says nothing (30 ms); OmniGUI's released code passes over it too."""


def voice_file(text: str) -> str:
    """The name of the file that speaks a text: the MD5 of its UTF-8 form.

    Examples:
        >>> voice_file("Tap Share")
        '6392b4d2500cf323b5aa50b48162869b.wav'
    """
    encoded = text.encode("utf-8", "surrogatepass")
    return hashlib.md5(encoded, usedforsecurity=False).hexdigest() + ".wav"


def find_voice(folder: Path, text: str) -> MediaRef | None:
    """The spoken form of a text; None if the folder has none."""
    name = voice_file(text)
    path = folder / name
    if path.is_file() and path.stat().st_size > MIN_BYTES:
        return MediaRef("audio", folder, name)
    return None
