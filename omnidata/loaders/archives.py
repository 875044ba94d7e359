"""Unpack untrusted archives: zips, zips in several parts, tars.

Nothing is unpacked by the libraries' own `extractall`. A member becomes a regular file below the
folder, or the whole archive is refused: no path that leaves, no link, no device, nothing encrypted,
no two names that one file system takes for the same, and no more bytes or members than an archive
of its size may sensibly hold.
"""

from __future__ import annotations

import errno
import gzip
import io
import lzma
import os
import re
import shutil
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, Self

from omnidata.files import ANY, open_file
from omnidata.zips import (
    BROKEN,
    END,
    END64,
    END64_FORM,
    END_FORM,
    FREE,
    LOCATOR,
    LOCATOR_FORM,
    MOST_DIRECTORY,
    MOST_MEMBERS,
    RATIO,
    bad_archive,
    files_in,
    is_left_out,
    safe_path,
)

RESERVE: Final = 256 * 1024**2
"""Bytes of the disk that are left free."""

_CHUNK: Final = 1024**2
_PLAIN: Final = (*tarfile.REGULAR_TYPES, tarfile.DIRTYPE)
_MOST_HEADER: Final = 1024**2
_NO_HEADER: Final = tarfile.HeaderError
_END_OF_TAR: Final = tarfile.EOFHeaderError  # type: ignore[attr-defined]  # the stubs lack it
_PART: Final = re.compile(r"\.z(\d{2,})$", re.IGNORECASE)
_BROKEN: Final = (*BROKEN, tarfile.TarError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)


@dataclass(frozen=True, slots=True)
class _File:
    """A file in an archive.

    Attributes:
        name: its path, relative.
        size: bytes, as the archive says; no more are written.
        open: opens it; at its end it has been checked.
    """

    name: str
    size: int
    open: Callable[[], IO[bytes]]


def is_part(path: str) -> bool:
    """Whether a file is a part of a zip before the last, which alone is called `.zip`.

    Examples:
        >>> is_part("images.z01"), is_part("images.zip")
        (True, False)
    """
    return _PART.search(path) is not None


def parts_of(path: Path) -> list[Path]:
    """The parts of an archive, in order; the archive alone where it has none.

    Raises:
        DataError: a part is missing.
    """
    found: dict[int, Path] = {}
    if path.suffix.lower() == ".zip":
        for each in path.parent.iterdir():
            if each.stem == path.stem and (match := _PART.search(each.name)):
                found[int(match[1])] = each
    lacking = [number for number in range(1, max(found, default=0)) if number not in found]
    if lacking:
        raise bad_archive(path, f"part {lacking[0]} of the archive is missing")
    return [*(found[number] for number in sorted(found)), path]


def unpack(archive: Path, folder: Path, progress: Callable[[int], None] = lambda size: None) -> int:
    """Unpack an archive into a folder, which is made.

    Args:
        archive: `.zip`, the last part of several included, or `.tar`, packed or not.
        folder: an empty one, or none.
        progress: called with the bytes written since the last call.

    Returns:
        How many files there are.

    Raises:
        DataError: the archive is broken, or holds what is never unpacked; some files may have been
            written by then.
        OSError: the disk is full, or cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    packed = sum(part.stat().st_size for part in parts_of(archive))
    most = FREE + RATIO * packed
    names: dict[str, str] = {}
    folders: dict[str, str] = {}
    written = 0
    try:
        with _members(archive) as members:
            for member in members:
                if is_left_out(member.name):
                    continue
                target = folder / safe_path(archive, member.name, names, folders)
                if written + member.size > most:
                    raise bad_archive(
                        archive,
                        f"more than {RATIO} times as much would come of its {packed:,} bytes",
                    )
                if member.size > shutil.disk_usage(folder).free - RESERVE:
                    raise OSError(errno.ENOSPC, "the disk is full", str(target))
                target.parent.mkdir(parents=True, exist_ok=True)
                _write(archive, member, target, progress)
                written += member.size
    except _BROKEN as error:
        raise bad_archive(archive, f"it is broken ({type(error).__name__}: {error})") from None
    except OSError as error:
        if error.errno == errno.EINVAL:  # an offset before the start of the archive
            raise bad_archive(
                archive, "it is broken: it refers to a position outside the archive"
            ) from None
        if error.errno is None:  # not of the system's: what `bz2` says of broken data
            raise bad_archive(archive, f"it is broken ({error})") from None
        raise
    except RuntimeError as error:  # what `zipfile` says of encrypted members
        raise bad_archive(archive, str(error)) from None
    return len(names)


def is_archive(path: str) -> bool:
    """Whether a name is that of an archive which `unpack` reads.

    Examples:
        >>> is_archive("a.tar.gz"), is_archive("a.png")
        (True, False)
    """
    return path.lower().endswith((".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz"))


def stem_of(name: str) -> str:
    """The name of an archive without its endings.

    Examples:
        >>> stem_of("images.tar.gz"), stem_of("a.b.zip")
        ('images', 'a.b')
    """
    path = PurePosixPath(name)
    inner = PurePosixPath(path.stem)
    return inner.stem if inner.suffix.lower() == ".tar" else path.stem


def _write(archive: Path, member: _File, target: Path, progress: Callable[[int], None]) -> None:
    size = 0
    with member.open() as source, target.open("xb") as file:
        while block := source.read(_CHUNK):
            size += len(block)
            if size > member.size:
                break
            file.write(block)
            progress(len(block))
    if size != member.size:
        raise bad_archive(
            archive,
            f"{member.name!r:.100} has not the {member.size:,} bytes that its header states",
        )


@contextmanager
def _members(archive: Path) -> Iterator[Iterator[_File]]:
    with ExitStack() as stack:
        if archive.suffix.lower() != ".zip":
            file = stack.enter_context(open_file(archive, ANY))
            yield _of_tar(archive, stack.enter_context(_tar(file)))
            return
        files = [stack.enter_context(open_file(part, ANY)) for part in parts_of(archive)]
        whole: IO[bytes] = files[0] if len(files) == 1 else _join_parts(archive, files)
        yield _of_zip(archive, stack.enter_context(zipfile.ZipFile(whole)))


def _tar(file: IO[bytes]) -> tarfile.TarFile:
    return tarfile.open(fileobj=file, mode="r:*", tarinfo=_Header)


def _of_zip(archive: Path, packed: zipfile.ZipFile) -> Iterator[_File]:
    room = sum(part.stat().st_size for part in parts_of(archive))
    for info in files_in(archive, packed, room):
        yield _File(info.filename, info.file_size, partial(packed.open, info))


def _of_tar(archive: Path, packed: tarfile.TarFile) -> Iterator[_File]:
    for number, info in enumerate(packed):
        vars(packed)["members"].clear()  # else all headers of a large archive stay in memory
        if number > MOST_MEMBERS:
            raise bad_archive(archive, f"it has more than {MOST_MEMBERS:,} members")
        if info.isdir():
            continue
        if not info.isreg() or info.issparse():
            raise bad_archive(archive, f"{info.name!r:.100} is a link, a device or sparse")

        def open_member(info: tarfile.TarInfo = info) -> IO[bytes]:
            found = packed.extractfile(info)
            assert found is not None  # it is a regular file
            return found

        yield _File(info.name, info.size, open_member)
    assert packed.fileobj is not None  # it has been opened to read
    behind = 0
    while block := packed.fileobj.read(_CHUNK):
        behind += len(block)
        if behind > FREE:
            raise bad_archive(archive, f"more than {FREE:,} bytes follow its end")


class _Header(tarfile.TarInfo):
    """A header of a tar.

    `tarfile` reads what belongs to it into the memory, however much it is, and takes an archive
    that is cut between two members, or has a broken header, for one that ends there.
    """

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(tarfile)
        except _NO_HEADER as error:
            # At the beginning `tarfile` itself says so, and tries how else it may be packed.
            if isinstance(error, _END_OF_TAR) or tarfile.offset == 0:
                raise
            raise ValueError(f"{error}, instead of a member or the end") from None

    def _proc_member(self, tarfile: tarfile.TarFile) -> Any:
        if self.type not in _PLAIN and self.size > _MOST_HEADER:
            raise ValueError(f"a header of {self.size:,} bytes")
        return super()._proc_member(tarfile)  # type: ignore[misc]  # the stubs do not have it


# A zip in several parts, which `zip -s` writes and Python does not read: the parts are read as one
# file, behind which stands a directory that counts from the beginning of the first.

_ENTRY = b"PK\1\2"
_ENTRY_FORM = struct.Struct("<4s6H3L5H2L")


class _Joined(io.RawIOBase):
    def __init__(self, files: Sequence[IO[bytes]], tail: bytes = b"") -> None:
        self._files = [*files, io.BytesIO(tail)]
        self.starts = [0]
        for file in self._files:
            self.starts.append(self.starts[-1] + file.seek(0, os.SEEK_END))
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.starts[-1]}[whence]
        if base + offset < 0:
            raise ValueError("an offset before the start of the archive")
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]  # whatever a reader hands over
        for number, file in enumerate(self._files):
            if self.starts[number] <= self._at < self.starts[number + 1]:
                file.seek(self._at - self.starts[number])
                block: bytes = file.read(min(len(view), self.starts[number + 1] - self._at))
                view[: len(block)] = block
                self._at += len(block)
                return len(block)
        return 0


def _join_parts(archive: Path, files: Sequence[IO[bytes]]) -> IO[bytes]:
    parts = _Joined(files)
    whole = io.BufferedReader(parts)
    starts, size = parts.starts, parts.starts[len(files)]
    tail_at = max(0, size - (1 << 16) - END_FORM.size)
    whole.seek(tail_at)
    tail = whole.read(size - tail_at)
    at = tail.rfind(END)
    if at < 0:
        raise bad_archive(archive, "the last part has no end-of-archive record")
    _, disk, first_disk, _, count, length, offset, _ = END_FORM.unpack_from(tail, at)
    if tail[at - LOCATOR_FORM.size : at].startswith(LOCATOR):
        _, on_disk, place, disks = LOCATOR_FORM.unpack_from(tail, at - LOCATOR_FORM.size)
        whole.seek(_start(archive, starts, files, on_disk) + place)
        found = END64_FORM.unpack(whole.read(END64_FORM.size))
        if found[0] != END64:
            raise bad_archive(archive, "its directory does not end at the stated offset")
        disk, first_disk, count, length, offset = *found[4:6], *found[7:10]
        disk = max(disk, disks - 1)
    if disk + 1 != len(files):
        raise bad_archive(archive, f"it was packed in {disk + 1} parts, and there are {len(files)}")
    if length > MOST_DIRECTORY:
        raise bad_archive(archive, f"its directory has {length:,} bytes")
    whole.seek(_start(archive, starts, files, first_disk) + offset)
    directory = whole.read(length)
    rebuilt = io.BytesIO()
    at = 0
    for _ in range(count):
        at = _entry(archive, directory, at, rebuilt, lambda n: _start(archive, starts, files, n))
    content = rebuilt.getvalue()
    end = size + len(content)
    content += END64_FORM.pack(END64, 44, 45, 45, 0, 0, count, count, len(content), size)
    content += LOCATOR_FORM.pack(LOCATOR, 0, end, 1)
    content += END_FORM.pack(END, 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return io.BufferedReader(_Joined([*files], content))


def _start(archive: Path, starts: Sequence[int], files: Sequence[object], disk: int) -> int:
    if not 0 <= disk < len(files):
        raise bad_archive(archive, f"it names part {disk + 1}, and there are {len(files)}")
    return starts[disk]


def _entry(
    archive: Path, directory: bytes, at: int, out: IO[bytes], start: Callable[[int], int]
) -> int:
    fields = [*_ENTRY_FORM.unpack_from(directory, at)]
    if fields[0] != _ENTRY:
        raise bad_archive(archive, "its directory is broken")
    names, extras, notes = fields[10:13]
    at += _ENTRY_FORM.size
    name, extra = directory[at : at + names], directory[at + names : at + names + extras]
    packed, size, disk, offset = fields[8], fields[9], fields[13], fields[16]
    kept = b""
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<2H", extra)
        value, extra = extra[4 : 4 + length], extra[4 + length :]
        if kind != 1:
            kept += struct.pack("<2H", kind, length) + value
            continue
        wide = io.BytesIO(value)  # only what has no room in the entry, in this order
        if size == 0xFFFFFFFF:
            (size,) = struct.unpack("<Q", wide.read(8))
        if packed == 0xFFFFFFFF:
            (packed,) = struct.unpack("<Q", wide.read(8))
        if offset == 0xFFFFFFFF:
            (offset,) = struct.unpack("<Q", wide.read(8))
        if disk == 0xFFFF:
            (disk,) = struct.unpack("<L", wide.read(4))
    kept += struct.pack("<2H3Q", 1, 24, size, packed, start(disk) + offset)
    fields[8], fields[9], fields[11], fields[12] = 0xFFFFFFFF, 0xFFFFFFFF, len(kept), 0
    fields[13], fields[16] = 0, 0xFFFFFFFF
    out.write(_ENTRY_FORM.pack(*fields) + name + kept)
    return int(at + names + extras + notes)
