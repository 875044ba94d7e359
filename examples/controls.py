"""Test data with the wrong sounds or clips: what a model that does not attend to them never notices."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from omnidata import media
from omnidata.data.encode import encode_mp4, encode_wav
from omnidata.types import Step

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
    refs = [ref for step in steps if (ref := step.media[role]) is not None]
    others = refs[:]
    random.Random(control).shuffle(others)
    unfinished = out.with_name(f".{out.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    shutil.copytree(data, unfinished, copy_function=os.link)
    for ref, other in zip(refs, others, strict=True):
        file = unfinished / media.resolve(ref).relative_to(data.resolve())
        file.unlink()
        shown = (empty(ref.kind, file.name, ref) if nothing else media.read_bytes(other))
        file.write_bytes(shown)
    unfinished.rename(out)
    return out
