"""Test data with the wrong sounds or clips, or with none: a deaf or blind model never notices."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from omnidata import media
from omnidata.data.encode import AUDIO_RATE, encode_mp4, encode_wav
from omnidata.types import MediaRef, Step

CONTROLS = {
    "other sound": ("audio", False),
    "silence": ("audio", True),
    "other clip": ("video", False),
    "still clip": ("video", True),
}
"""Name -> the medium that is altered, and whether it says nothing instead of something else."""


def altered(data: Path, out: Path, steps: Sequence[Step], control: str) -> Path:
    """A copy of a tree in which the sounds or clips of some steps are not theirs.

    Args:
        data: the tree.
        out: the copy, linked where it is the same.
        steps: those to be altered.
        control: a name of `CONTROLS`.
    """
    if out.exists():
        return out
    role, nothing = CONTROLS[control]
    refs = [ref for step in steps if step.source.get("cue") == role and (ref := step.media[role])]
    # Twins follow each other, and differ in this medium and the answer alone.
    others = refs[1:] + refs[:1]
    unfinished = out.with_name(f".{out.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    shutil.copytree(data, unfinished, copy_function=os.link)
    for ref, other in zip(refs, others, strict=True):
        file = unfinished / media.resolve(ref).resolve().relative_to(data.resolve())
        file.unlink()  # the link, not what it shares with the original
        file.write_bytes(nothing_in(ref) if nothing else media.read_bytes(other))
    unfinished.rename(out)
    return out


def nothing_in(ref: MediaRef) -> bytes:
    """Silence as long as the sound; the first frame as long as the clip."""
    if ref.kind == "audio":
        return encode_wav(np.zeros(len(media.samples(ref, rate=AUDIO_RATE))))
    clip = media.frames(ref, which="all")
    return encode_mp4([clip.pixels[0]] * len(clip.pixels), fps=round(clip.fps))
