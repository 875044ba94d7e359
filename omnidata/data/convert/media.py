"""What goes into a repository for one medium: its bytes or its path, and what is known of it."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from omnidata import media
from omnidata.errors import Finding, MediaError, MissingMediaError
from omnidata.types import MediaRef, Step

State = Literal["present", "silent", "corrupt", "missing", "unsafe"]


@dataclass(frozen=True, slots=True)
class Facts:
    """What a medium turned out to be.

    Attributes:
        state: "present" and "silent" can be decoded; "corrupt" is there but cannot; "unsafe" leads
            outside the dataset and was not touched.
        frames: of a clip; 1 for a picture.
        seconds: of a clip or a track.
        problem: why it is not present; empty otherwise.
    """

    state: State
    frames: int | None = None
    seconds: float | None = None
    problem: str = ""


def look(ref: MediaRef) -> Facts:
    """Decode a medium from end to end; never raises for what is wrong with it."""
    if ref.inline is None and ref.cell is None and media.linkable(ref) is None:
        return Facts("unsafe", problem=f"the path {ref.path!r} leads outside its folder")
    try:
        if ref.inline is None:
            media.stored(ref)
        found = media.probe(ref)
    except MissingMediaError as error:
        return Facts("missing", problem=f"{error.what}: {error.where}")
    except MediaError as error:
        return Facts("corrupt", problem=f"{error.what}: {error.where}")
    if ref.kind == "image":
        return Facts("present", frames=1)
    if ref.kind == "video":
        return Facts("present", frames=found.frames, seconds=found.seconds)
    if found.audio in ("present", "silent"):
        return Facts(found.audio, seconds=found.seconds)
    return Facts("corrupt", problem=f"no sound can be decoded: {media.place(ref)}")


def columns(
    step: Step, facts: Mapping[MediaRef, Facts], *, embed: bool, roots: Sequence[Path]
) -> dict[str, Any]:
    """The media columns of a row, and `media`, which says what they hold.

    A medium that is missing or leads outside has an empty column: `datasets` would look for its
    path anywhere.
    """
    row: dict[str, Any] = dict.fromkeys(step.media)
    listed = []
    for role, ref in step.media.items():
        if ref is None:
            continue
        known = facts[ref]
        entry = {
            "role": role,
            "path": ref.path.encode("utf-8", "replace").decode(),
            "root": None if embed or ref.root not in roots else roots.index(ref.root),
            "state": known.state,
            "sha256": None,
            "bytes": None,
            "frames": known.frames,
            "seconds": known.seconds,
        }
        listed.append(entry)
        if known.state in ("missing", "unsafe"):
            if not embed and known.state == "missing":
                row[role] = {"bytes": None, "path": str(media.linkable(ref))}
            continue
        content = _waveform(ref) if ref.inline is not None else _content(ref)
        if content is None:
            continue
        entry |= {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        if embed or ref.inline is not None:
            row[role] = {"bytes": content, "path": entry["path"] or f"{role}.wav"}
        else:
            row[role] = {"bytes": None, "path": str(media.linkable(ref))}
    return {**row, "media": listed}


def _content(ref: MediaRef) -> bytes | None:
    """The bytes; None for what is too large or too odd to be kept."""
    try:
        return media.read_bytes(ref)
    except MediaError:
        return None


def _waveform(ref: MediaRef) -> bytes | None:
    """Audio that a row holds inline, as a WAV file of 32-bit floats at its own rate."""
    held: Any = ref.inline
    try:
        rate = int(held["sampling_rate"])
        wave_form = media.samples(ref, rate=rate)
    except (MediaError, TypeError, ValueError):
        return None
    return _wav(wave_form, rate)


def _wav(samples: np.ndarray[Any, np.dtype[np.float32]], rate: int) -> bytes:
    import av

    buffer = io.BytesIO()
    with av.open(buffer, "w", format="wav", options={"fflags": "+bitexact"}) as container:
        stream = container.add_stream("pcm_f32le", rate=rate, layout="mono")
        frame = av.AudioFrame.from_ndarray(samples[None], format="flt", layout="mono")
        frame.sample_rate = rate
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return buffer.getvalue()


def finding(step: Step, role: str, facts: Facts) -> Finding:
    """The finding for a medium that is not whole."""
    return Finding(
        "path-unsafe" if facts.state == "unsafe" else "media-broken",
        "error",
        step.sample_id,
        f"{role.replace('_', ' ')}: {facts.problem}",
        f"a whole {role.replace('_', ' ')} inside the dataset's folder",
        "restore the file and convert again; the step has no such medium until then",
    )
