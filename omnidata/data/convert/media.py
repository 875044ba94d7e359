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
        path: where the file is, absolute; None where there is none that may be opened.
        state: "present" and "silent" are whole; "corrupt" is there but cut short or undecodable;
            "unsafe" leads outside the dataset and was not touched.
        frames: of a clip; 1 for a picture.
        seconds: of a clip or a track.
        problem: why it is not present; empty otherwise.
    """

    state: State
    path: Path | None = None
    frames: int | None = None
    seconds: float | None = None
    problem: str = ""


def look(ref: MediaRef) -> Facts:
    """Decode a medium from end to end; never raises for what is wrong with it."""
    path = media.linkable(ref)
    if path is None and ref.inline is None and ref.cell is None:
        return Facts("unsafe", problem=f"the path {ref.path!r} leads outside its folder")
    try:
        found = media.examine(ref)
    except MissingMediaError as error:
        return Facts("missing", path, problem=f"{error.what}: {error.where}")
    except MediaError as error:
        return Facts("corrupt", path, problem=f"{error.what}: {error.where}")
    if ref.kind == "audio" and found.audio == "silent":
        return Facts("silent", path, seconds=found.seconds)
    return Facts("present", path, 1 if ref.kind == "image" else found.frames, found.seconds)


def columns(
    step: Step, facts: Mapping[MediaRef, Facts], *, embed: bool, roots: Sequence[Path]
) -> dict[str, Any]:
    """The media columns of a row, and `media`, which says what they hold.

    An embedded medium that is missing, and any that leads outside, has an empty column: `datasets`
    would look for its path anywhere, and embed what it finds.
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
            "root": None if embed else roots.index(ref.root),
            "state": known.state,
            "sha256": None,
            "bytes": None,
            "frames": known.frames,
            "seconds": known.seconds,
        }
        listed.append(entry)
        if not embed and known.path:
            row[role] = {"path": str(known.path)}
        if known.state in ("missing", "unsafe"):
            continue
        content = _waveform(ref) if ref.inline is not None else _content(ref)
        if content is None:
            continue
        entry |= {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        if embed:
            row[role] = {"bytes": content, "path": entry["path"] or f"{role}.wav"}
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
