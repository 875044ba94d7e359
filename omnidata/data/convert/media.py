"""What goes into a repository for one medium: its bytes or its path, and what is known of it."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from omnidata import media
from omnidata.actions import Screen
from omnidata.errors import Finding, MediaError, MissingMediaError, UsageError
from omnidata.loaders.media_files import medium_broken, size_differs
from omnidata.loaders.rows import storable
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
        size: of a picture, in pixels.
        problem: why it is not whole; empty otherwise.
    """

    state: State
    path: Path | None = None
    frames: int | None = None
    seconds: float | None = None
    size: Screen | None = None
    problem: str = ""


def look(ref: MediaRef) -> Facts:
    """Decode a medium from end to end; never raises for what is wrong with it."""
    path = media.linkable(ref)
    if path is None and ref.inline is None and ref.cell is None:
        return Facts("unsafe", problem=f"the path {ref.path!r} leads outside its folder")
    try:
        found = media.examine(ref)
    except MissingMediaError as error:
        return Facts("missing", path, problem=f"{error.what}: {ref.path}")
    except MediaError as error:
        return Facts("corrupt", path, problem=f"{error.what}: {ref.path}")
    if ref.kind == "image":
        assert found.width
        assert found.height
        return Facts("present", path, frames=1, size=(found.width, found.height))
    state: State = "silent" if ref.kind == "audio" and found.audio == "silent" else "present"
    return Facts(state, path, found.frames, found.seconds)


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
            "path": storable(ref.path),
            "root": None if embed else roots.index(ref.root),
            "state": known.state,
            "sha256": None,
            "bytes": None,
            "frames": known.frames,
            "seconds": known.seconds,
        }
        listed.append(entry)
        if not embed and known.path:
            if not _is_text(known.path):
                continue  # Arrow has no such strings: the step comes back with the medium missing
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


def _is_text(path: Path) -> bool:
    """Whether the name is Unicode; file systems take any bytes."""
    return storable(str(path)) == str(path)


def _content(ref: MediaRef) -> bytes | None:
    """The bytes; None for what is too large or may not be read."""
    try:
        return media.read_bytes(ref)
    except MediaError:
        return None


def _waveform(ref: MediaRef) -> bytes | None:
    """Audio that a row holds inline, as a WAV file of 32-bit floats at its own rate."""
    held: Any = ref.inline
    try:
        rate = int(held["sampling_rate"])
        samples = media.samples(ref, rate=rate)
    except (MediaError, UsageError, LookupError, TypeError, ValueError, OverflowError):
        return None
    return _wav(samples, rate)


def _wav(samples: npt.NDArray[np.float32], rate: int) -> bytes:
    import av

    buffer = io.BytesIO()
    with av.open(buffer, "w", format="wav", options={"fflags": "+bitexact"}) as container:
        stream = container.add_stream("pcm_f32le", rate=rate, layout="mono")
        frame = av.AudioFrame.from_ndarray(samples[None], format="flt", layout="mono")
        frame.sample_rate = rate
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return buffer.getvalue()


def findings(steps: Iterable[Step], facts: Mapping[MediaRef, Facts]) -> Iterator[Finding]:
    """What the loader's own look at the media would say, and what only decoding shows.

    One finding per medium, at the step that names it first; what the loader says of unsafe paths
    it has said already.
    """
    seen: set[MediaRef] = set()
    for step in steps:
        for role, ref in step.media.items():
            if ref is None:
                if role == "screenshot":
                    yield medium_broken(step, role, "the row names no file", "a screenshot")
                continue
            if ref in seen or (ref.inline is None and media.unsafe(ref.path)):
                continue
            seen.add(ref)
            known = facts[ref]
            if known.problem:
                yield medium_broken(step, role, known.problem, f"a whole {ref.kind} file")
            elif known.size and (differs := size_differs(step, role, known.size)):
                yield differs


def portable(findings: Iterable[Finding], root: Path) -> Iterator[Finding]:
    """Findings without the folder in which the source lay, and as text that can be written."""
    for found in findings:
        said = (found.where, found.what, found.expected, found.remedy)
        where, what, expected, remedy = (
            storable(text.replace(f"{root}{os.sep}", "")) or "" for text in said
        )
        names = tuple(storable(name) or "" for name in found.sample_ids)
        yield Finding(found.code, found.severity, where, what, expected, remedy, names)
