"""The media of an export: each decoded once to see that it is whole, each file written once.

Files are named after the SHA-256 of their content, so that no name of the data is ever used, and
media that are the same are one file.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
from collections.abc import Hashable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from omnidata import media
from omnidata.actions import Screen
from omnidata.errors import MediaError, OmnidataError, UsageError
from omnidata.run.engines import Cluster, Lost, each
from omnidata.run.engines.ray import wait_until_seen
from omnidata.storage import atomic_write, drop_partial_line, open_own
from omnidata.types import MediaRef, Progress

# The size that pictures get, so that a trainer's own resizing has nothing left to do.

Factor = Literal[28, 32]
MIN_TOKENS, MAX_TOKENS = 4, 16384
"""Limits in squares of the factor, as in Qwen's own tools (qwen-vl-utils)."""

_STRETCHED = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """The resizing of pictures before they are written; none by default.

    Attributes:
        longest: largest side in pixels; larger pictures are reduced, in proportion.
        factor: both sides become multiples of it, in about the same proportion, as Qwen-VL's image
            processors do: 28 for Qwen2-VL and Qwen2.5-VL, 32 for Qwen3-VL.
        min_pixels, max_pixels: limits of width * height with a factor; None takes `MIN_TOKENS` and
            `MAX_TOKENS`.

    Raises:
        UsageError: two ways at once, or limits that no picture meets.
    """

    longest: int | None = None
    factor: Factor | None = None
    min_pixels: int | None = None
    max_pixels: int | None = None

    def __post_init__(self) -> None:
        low, high = self.limits
        where = "--min-pixels, --max-pixels"
        if self.factor is None:
            if self.min_pixels is self.max_pixels is None:
                return
            what = "limits of pixels belong to --smart-resize"
            expected = "--smart-resize 28 or 32 as well"
        elif self.longest is not None:
            what, expected = "pictures can be resized in one way only", "one of the two"
            where = "--image-size, --smart-resize"
        elif self.factor**2 <= high and 0 < low <= high:
            return
        else:
            what = f"no picture has from {low} to {high} pixels"
            expected = f"at most {high} and at least {self.factor**2} pixels"
        raise UsageError(what, where=where, expected=expected)

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the most pixels of a picture with a factor."""
        square = (self.factor or 1) ** 2
        low = MIN_TOKENS * square if self.min_pixels is None else self.min_pixels
        return low, MAX_TOKENS * square if self.max_pixels is None else self.max_pixels

    def fit(self, size: Screen) -> Screen:
        """Return the width and height in pixels that a picture gets.

        Args:
            size: width and height that it has.

        Raises:
            MediaError: with a factor, one side is more than 200 times the other, which Qwen-VL's
                processors refuse.
        """
        if self.factor is None:
            return media.within(size, self.longest)
        if max(size) > _STRETCHED * min(size):
            raise MediaError(
                f"the picture has {size[0]} x {size[1]} pixels",
                expected=f"no side more than {_STRETCHED} times the other",
            )
        low, high = self.limits
        width, height = (round(extent / self.factor) * self.factor for extent in size)
        area = size[0] * size[1]
        if width * height > high:
            shrink = math.sqrt(area / high)
            width, height = (
                max(self.factor, math.floor(extent / shrink / self.factor) * self.factor)
                for extent in size
            )
        elif width * height < low:
            grow = math.sqrt(low / area)
            width, height = (
                math.ceil(extent * grow / self.factor) * self.factor for extent in size
            )
        return width, height


MEDIA = "media"
"""The folder of the media, in the export."""

RATE = 16_000
"""Samples per second, in Hz, of tracks that have to be converted."""

_NAME = 32  # of 64 digits of a hash, enough to exclude collisions
_SUFFIXES = {"jpeg": "jpg"}


class File(msgspec.Struct, frozen=True):
    """A file of the export, `name` relative to it; `width` and `height` are 0 for sound."""

    name: str
    bytes: int
    width: int = 0
    height: int = 0


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a medium: one, or the frames of a clip.

    Attributes:
        line: of the receipt, as in `Completion.receipt`.
        times_s: of frames, in seconds after the first.
        pixels: SHA-256 of a picture's size and pixels as they were; None for one in one colour.
    """

    files: tuple[File, ...]
    line: dict[str, Any]
    times_s: tuple[float, ...] = ()
    pixels: str | None = None


class Broken(msgspec.Struct, frozen=True):
    """The reason why a medium cannot be exported, and what was expected in its place."""

    what: str
    expected: str


Media = Mapping[Hashable, Kept | Broken]
"""The files of each medium, or why it has none, by `Wanted.key`."""


class _Entry(msgspec.Struct, frozen=True):
    """A line of the journal; `stamp` is the medium's size and time when it was read."""

    place: str
    stamp: tuple[int, int] | None
    kept: Kept


@dataclass(frozen=True, slots=True)
class Wanted:
    """A medium as a prompt shows it; a picture has `Part.size`, or None for the export's sizing."""

    ref: MediaRef
    size: Screen | None = None

    @property
    def key(self) -> Hashable:
        """The same for one medium in one size."""
        return id(self.ref) if self.ref.inline is not None else self

    @property
    def place(self) -> str:
        """The name in the journal."""
        ref = self.ref
        return f"{ref.kind} {media.place(ref)} {ref.cell} {ref.marks} {ref.until} {self.size}"


class Store:
    """Writes media into a folder, and remembers them for the next call if this one is interrupted.

    Args:
        root: the export's folder.
        journal: a file that an interrupted call may have left.
        sizing, copy: as in `Options`.
        frames: number of frames that are written in place of a clip; None writes the clip.
    """

    def __init__(
        self, root: Path, journal: Path, *, sizing: Sizing, frames: int | None, copy: bool
    ) -> None:
        self._writer = _Writer(root.absolute(), sizing, frames, copy)
        self._journal = journal
        (root / MEDIA).mkdir(exist_ok=True)
        self._before: dict[str, _Entry] = {}
        if journal.exists():
            drop_partial_line(journal)
            with suppress(OSError, msgspec.DecodeError):
                for line in journal.read_bytes().splitlines():
                    entry = msgspec.json.decode(line, type=_Entry)
                    self._before[entry.place] = entry

    def fill(
        self,
        wanted: Sequence[Wanted],
        progress: Progress | None = None,
        *,
        workers: int | None = 1,
        cluster: Cluster | None = None,
    ) -> dict[Hashable, Kept | Broken]:
        """Write all media, each once in each size, and return their files by `Wanted.key`.

        Files and results do not depend on the workers. A medium that a process dies of is broken.

        Raises:
            OSError: the disk is full.
            OmnidataError: as `run.engines.each`, or a store cannot be read.
        """
        kept = [*map(self._reusable, wanted)]
        missing = [one for one, found in zip(wanted, kept, strict=True) if found is None]
        roots = sorted({one.ref.root for one in missing})
        sees = [self._writer.root, *(root for root in roots if root.exists())]
        calls = each(self._writer.add, missing, workers=workers, cluster=cluster, sees=sees)
        done: dict[Hashable, Kept | Broken] = {}
        with open_own(self._journal, "ab") as journal, closing(calls) as added:
            for one, before in zip(wanted, kept, strict=True):
                found = before or next(added)
                if isinstance(found, Exception):
                    raise found
                if isinstance(found, Lost):
                    what = f"{found.why}: {media.place(one.ref)}"
                    found = Broken(what, "a media file that does not crash a decoder")
                if isinstance(found, _Entry):
                    for file in found.kept.files if cluster else ():
                        path = self._writer.root / file.name
                        wait_until_seen(path, path.exists)
                    if found.stamp:  # else it may change unseen
                        journal.write(msgspec.json.encode(found) + b"\n")
                    found = found.kept
                done[one.key] = found
                if progress:
                    progress(len(done), len(wanted))
        return done

    def _reusable(self, wanted: Wanted) -> Kept | None:
        before = self._before.get(wanted.place) if self._before else None
        if before and before.stamp == _stamp(wanted.ref):
            return before.kept if all(map(self._writer.is_whole, before.kept.files)) else None
        return None


@dataclass(frozen=True, slots=True)
class _Writer:
    root: Path
    sizing: Sizing
    frames: int | None
    copy: bool

    def add(self, wanted: Wanted) -> _Entry | Broken | Exception:
        stamp = _stamp(wanted.ref)  # before reading, so that a later change is noticed
        try:
            return _Entry(wanted.place, stamp, self._decode(wanted.ref, wanted.size))
        except MediaError as error:
            where = error.where or media.place(wanted.ref)
            return Broken(f"{error.what}: {where}", error.expected)
        except (OmnidataError, OSError) as error:
            return error

    def is_whole(self, file: File) -> bool:
        with suppress(OSError):
            return (self.root / file.name).stat().st_size == file.bytes
        return False

    def _decode(self, ref: MediaRef, wanted: Screen | None) -> Kept:
        if ref.inline is not None:
            return self._sound(ref, None)
        held = media.hold(ref)
        # Marks do not hide from checks for leaks which picture it is.
        seen = media.examine(media.hold(replace(ref, marks=())) if ref.marks else held)
        if ref.kind == "image":
            return self._picture(ref, held, None if seen.blank else seen.pixels, wanted)
        if ref.kind == "audio":
            return self._sound(ref, held)
        if self.frames is not None:
            return self._stills(held, self.frames)
        about = media.media_info(held)
        size = about.width or 0, about.height or 0
        file = self._same(ref, held, about.format, size)
        return Kept(files=(file,), line={"as": "file", "width": size[0], "height": size[1]})

    def _picture(
        self, ref: MediaRef, held: media.InMemoryMedia, pixels: str | None, wanted: Screen | None
    ) -> Kept:
        about = media.media_info(held)
        size = about.width or 0, about.height or 0
        fitted = wanted or self.sizing.fit(size)
        line: dict[str, Any] = {"as": "file", "width": fitted[0], "height": fitted[1]}
        if fitted == size and not _is_misread(held.content):
            file = self._same(ref, held, about.format, size)
            return Kept(files=(file,), line=line, pixels=pixels)
        if fitted != size:
            line["original"] = list(size)
        content = media.png(media.resize(media.image(held).pixels, fitted))
        return Kept(files=(self._new(content, "png", fitted),), line=line, pixels=pixels)

    def _stills(self, held: media.InMemoryMedia, count: int) -> Kept:
        clip = media.frames(held, num_frames=count)
        height, width = clip.pixels.shape[1:3]
        size = self.sizing.fit((width, height))
        files = tuple(
            self._new(media.png(media.resize(pixels, size)), "png", size) for pixels in clip.pixels
        )
        times = tuple((clip.pts_seconds - clip.pts_seconds[0]).round(3).tolist())
        line = {"as": "frames", "width": size[0], "height": size[1], "frames": len(files)}
        return Kept(files=files, line=line, times_s=times)

    def _sound(self, ref: MediaRef, held: media.InMemoryMedia | None) -> Kept:
        """The track itself if it is WAV or MP3, which every trainer reads; else as 16-bit WAV."""
        import numpy as np

        if held is not None:
            about = media.media_info(held)
            known = about.format == "mp3" or (about.codec or "").startswith("pcm_")
            if known and about.format in ("wav", "mp3") and not about.pictures:
                file = self._same(ref, held, about.format)
                return Kept(files=(file,), line={"as": "file"})
        samples = media.samples(ref if held is None else held, rate=RATE)
        if not np.isfinite(samples).all():
            raise MediaError("some audio samples are not numbers", expected="samples in [-1, 1]")
        file = self._new(media.wav(samples, RATE), "wav")
        return Kept(files=(file,), line={"as": "waveform"})

    def _same(
        self, ref: MediaRef, held: media.InMemoryMedia, form: str, size: Screen = (0, 0)
    ) -> File:
        """Write a medium as it is, as a hard link if possible."""
        source = None if self.copy or not held.as_stored else media.linkable(ref)
        return self._new(held.content, _SUFFIXES.get(form, form), size, source)

    def _new(
        self, content: bytes, suffix: str, size: Screen = (0, 0), source: Path | None = None
    ) -> File:
        digest = hashlib.sha256(content).hexdigest()[:_NAME]
        file = File(f"{MEDIA}/{digest}.{suffix}", len(content), *size)
        target = self.root / file.name
        if source is not None and not self.is_whole(file):
            with suppress(OSError):  # another disk, another owner, another file system: a copy then
                os.link(source, target)
        if not self.is_whole(file):
            with atomic_write(target, durable=False) as part:
                part.write(content)
        return file


def _is_misread(content: bytes) -> bool:
    """Return whether many trainers would show another picture than evaluation does.

    They fail at unreadable EXIF tags, and clip 16-bit grey at 255, so all is white.
    """
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content)) as picture:
            picture.getexif()
            return picture.mode.startswith("I")
    except Exception:  # whatever hostile bytes make the reader of tags raise
        return True


def _stamp(ref: MediaRef) -> tuple[int, int] | None:
    shard = ref if ref.cell is None else media.around(ref, ref.cell)
    path = media.linkable(shard)
    with suppress(OSError):
        if path is not None:
            found = path.stat()
            return found.st_size, found.st_mtime_ns
    return None
