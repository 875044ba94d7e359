"""Unpack untrusted archives: zips, zips in several parts, tars.

The standard library reads them, and nothing is unpacked by its `extractall`. A member becomes a
regular file below the folder, or the whole archive is refused: no path that leaves, no link, no
device, nothing encrypted, no two names that are one file, and no more bytes or members than an
archive of its size may sensibly hold.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import re
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

from omnidata.errors import DataError
from omnidata.files import ANY, open_file
from omnidata.loaders.names import NameCheck

RESERVE: Final = 256 * 1024**2
"""Bytes of the disk that are left free."""
MOST_MEMBERS: Final = 5_000_000
MOST_EMPTY: Final = 10_000
RATIO: Final = 100
"""Bytes that may come of each byte of an archive, once `FREE` bytes have come."""
FREE: Final = 64 * 1024**2

_CHUNK: Final = 1024**2
_MOST_DIRECTORY: Final = 2 * 1024**3
_APPLES: Final = "__MACOSX"
"""A folder that macOS adds to its zips; it is left out."""
_PART: Final = re.compile(r"\.z(\d{2,})$", re.IGNORECASE)
_COMPRESSED: Final[Mapping[bytes, Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZ": bz2.open,
    b"\xfd7": lzma.open,
}
_BROKEN: Final = (
    zipfile.BadZipFile,
    tarfile.TarError,
    gzip.BadGzipFile,
    lzma.LZMAError,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,
    NotImplementedError,
    RecursionError,
)
"""Errors of the standard library for an archive that is none, or is broken."""


@dataclass(frozen=True, slots=True)
class _File:
    """A file in an archive.

    Attributes:
        name: its path, relative.
        size: bytes, as the archive says; no more are written.
        content: open at its start; at its end it has been checked.
    """

    name: str
    size: int
    content: IO[bytes]


def is_part(path: str) -> bool:
    """Return whether a file is a part of a zip before the last, which alone is called `.zip`.

    Examples:
        >>> is_part("images.z01"), is_part("images.zip")
        (True, False)
    """
    return _PART.search(path) is not None


def parts_of(path: Path) -> list[Path]:
    """Return the parts of an archive, in order; the archive alone where it has none.

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
        raise _bad_archive(path, f"part {lacking[0]} of the archive is missing")
    return [*(found[number] for number in sorted(found)), path]


def stem_of(name: str) -> str:
    """Return the name of an archive without its endings.

    Examples:
        >>> stem_of("images.tar.gz"), stem_of("a.b.zip")
        ('images', 'a.b')
    """
    path = PurePosixPath(name)
    inner = PurePosixPath(path.stem)
    return inner.stem if inner.suffix.lower() == ".tar" else path.stem


def unpack(archive: Path, folder: Path, progress: Callable[[int], None] = lambda size: None) -> int:
    """Unpack an archive into a folder, which is made.

    Args:
        archive: `.zip`, the last part of several included, or `.tar`, compressed or not.
        folder: an empty one, or none.
        progress: called with the bytes written since the last call.

    Returns:
        The number of files.

    Raises:
        DataError: the archive is broken, or holds what is never unpacked; some files may have been
            written by then.
        OSError: the disk is full, or cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    packed = sum(part.stat().st_size for part in parts_of(archive))
    names, count, empty, written = NameCheck(), 0, 0, 0
    with _archive_errors(archive), _members(archive) as members:
        for member in members:
            if PurePosixPath(member.name).parts[:1] == (_APPLES,):
                continue
            name = str(PurePosixPath(member.name))  # `tar` writes "./" before names
            if why := names.add(name):
                raise _bad_archive(archive, f"{member.name!r:.100}: {why}")
            count += 1
            empty += not member.size
            written += member.size
            if empty > MOST_EMPTY:
                raise _bad_archive(archive, f"it has more than {MOST_EMPTY:,} empty files")
            if written > FREE + RATIO * packed:
                raise _bad_archive(
                    archive, f"more than {RATIO} times as much would come of its {packed:,} bytes"
                )
            target = folder / name
            if member.size > shutil.disk_usage(folder).free - RESERVE:
                raise OSError(errno.ENOSPC, "the disk is full", str(target))
            target.parent.mkdir(parents=True, exist_ok=True)
            _write(archive, member, target, progress)
    return count


def _write(archive: Path, member: _File, target: Path, progress: Callable[[int], None]) -> None:
    size = 0
    with target.open("xb") as file:
        while block := member.content.read(_CHUNK):
            size += len(block)
            if size > member.size:
                break
            file.write(block)
            progress(len(block))
    if size != member.size:
        raise _bad_archive(
            archive,
            f"{member.name!r:.100} has not the {member.size:,} bytes that its header states",
        )


def _bad_archive(archive: Path, what: str) -> DataError:
    return DataError(
        what,
        where=str(archive),
        expected="an archive of regular files with plain, relative names",
        remedy="download it again; if the error stays, report it to the publisher",
    )


@contextmanager
def _archive_errors(archive: Path) -> Iterator[None]:
    try:
        yield
    except _BROKEN as error:
        raise _bad_archive(archive, f"it is broken ({type(error).__name__}: {error})") from None
    except OSError as error:
        if error.errno == errno.EINVAL:  # an offset before the start of the archive
            raise _bad_archive(
                archive, "it is broken: it refers to a position outside the archive"
            ) from None
        if error.errno is None:  # not of the system's: what `bz2` says of broken data
            raise _bad_archive(archive, f"it is broken ({error})") from None
        raise
    except RuntimeError as error:  # what `zipfile` says of encrypted members
        raise _bad_archive(archive, str(error)) from None


@contextmanager
def _members(archive: Path) -> Iterator[Iterator[_File]]:
    with ExitStack() as stack:
        files = [stack.enter_context(open_file(part, ANY)) for part in parts_of(archive)]
        if archive.suffix.lower() == ".zip":
            whole = zipfile.ZipFile(files[0]) if not files[1:] else _open_parts(archive, files)
            yield _of_zip(archive, stack.enter_context(whole))
            return
        (file,) = files
        start = file.read(2)
        file.seek(0)
        if start in _COMPRESSED:
            file = stack.enter_context(_COMPRESSED[start](file))
        stream = _TarStream(file)
        tar = stack.enter_context(tarfile.TarFile(fileobj=stream))  # type: ignore[arg-type]  # only read and tell
        yield _of_tar(archive, stream, tar)


def _of_zip(archive: Path, packed: zipfile.ZipFile) -> Iterator[_File]:
    infos = packed.infolist()
    there = sum(part.stat().st_size for part in parts_of(archive))
    inside = sum(info.compress_size for info in infos)
    if inside > there:  # members that overlap: a few kilobytes become petabytes
        raise _bad_archive(archive, f"its members have {inside:,} bytes, and it has {there:,}")
    if len(infos) > MOST_MEMBERS:
        raise _bad_archive(archive, f"it has more than {MOST_MEMBERS:,} members")
    if sum(not info.file_size and not info.is_dir() for info in infos) > MOST_EMPTY:
        raise _bad_archive(archive, f"it has more than {MOST_EMPTY:,} empty files")
    for info in infos:
        why = ""
        if info.flag_bits & 0x1:
            why = "is encrypted"
        elif info.orig_filename != info.filename:  # it cuts names at a NUL
            why = f"has the path {info.orig_filename!r:.100}, which is no plain name"
        elif info.is_dir() and info.file_size:
            why = "is a folder, and has content"
        elif info.is_dir():
            continue
        elif stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
            why = "is a link or a device"
        if why:
            raise _bad_archive(archive, f"{info.filename!r:.100} {why}")
        with packed.open(info) as content:
            yield _File(info.filename, info.file_size, content)


def _of_tar(archive: Path, stream: _TarStream, packed: tarfile.TarFile) -> Iterator[_File]:
    count = 0
    while (info := packed.next()) is not None:
        packed.members = []  # type: ignore[attr-defined]  # else all headers stay in memory
        count += 1
        if count > MOST_MEMBERS:
            raise _bad_archive(archive, f"it has more than {MOST_MEMBERS:,} members")
        if info.isdir():
            continue
        if not info.isreg() or info.issparse():
            raise _bad_archive(archive, f"{info.name!r:.100} is a link, a device or sparse")
        content = packed.extractfile(info)
        assert content is not None  # it is a regular file
        yield _File(info.name, info.size, content)
    if stream.last != bytes(tarfile.BLOCKSIZE):
        raise _bad_archive(archive, "it is broken: a header is damaged, or the end is missing")
    behind = 0
    while block := stream.read(_CHUNK):  # to the end, where a compressed file is checked
        behind += len(block)
        if behind > FREE:
            raise _bad_archive(archive, f"more than {FREE:,} bytes follow its end")


class _TarStream:
    """The bytes of a tar.

    `tarfile` reads a long name into memory, however long it is, and takes an archive that is cut
    between two members, or has a damaged header, for one that ends there.

    Attributes:
        last: the last bytes that were read; of a whole archive they are zeros.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.last = b""
        self.tell, self.seek, self.close = file.tell, file.seek, file.close

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _CHUNK:
            raise ValueError(f"a header of {size:,} bytes")
        self.last = self._file.read(size)
        return self.last


# A zip in several parts, which `zip -s` writes and Python does not read: the parts are read as one
# file with the directory behind it once more, and offsets count from the beginning of the first.

_END, _END64, _LOCATOR = b"PK\5\6", b"PK\6\6", b"PK\6\7"
_END_FORM = struct.Struct("<4s4H2LH")
_END64_FORM = struct.Struct("<4sQ2H2L4Q")
_LOCATOR_FORM = struct.Struct("<4sLQL")


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


def _open_parts(archive: Path, files: Sequence[IO[bytes]]) -> zipfile.ZipFile:
    parts = _Joined(files)
    whole = io.BufferedReader(parts)

    def start(part: int) -> int:
        if not 0 <= part < len(files):
            raise _bad_archive(archive, f"it names part {part + 1}, and there are {len(files)}")
        return parts.starts[part]

    size = parts.starts[len(files)]
    tail_at = max(0, size - (1 << 16) - _END_FORM.size)
    whole.seek(tail_at)
    tail = whole.read(size - tail_at)
    at = tail.rfind(_END)
    if at < 0:
        raise _bad_archive(archive, "the last part has no end-of-archive record")
    _, last, first, _, count, length, offset, _ = _END_FORM.unpack_from(tail, at)
    if tail[at - _LOCATOR_FORM.size : at].startswith(_LOCATOR):
        _, part, place, total = _LOCATOR_FORM.unpack_from(tail, at - _LOCATOR_FORM.size)
        whole.seek(start(part) + place)
        sign, _, _, _, last, first, _, count, length, offset = _END64_FORM.unpack(
            whole.read(_END64_FORM.size)
        )
        if sign != _END64:
            raise _bad_archive(archive, "its directory does not end at the stated offset")
        last = max(last, total - 1)
    if last + 1 != len(files):
        raise _bad_archive(
            archive, f"it was packed in {last + 1} parts, and there are {len(files)}"
        )
    if length > _MOST_DIRECTORY:
        raise _bad_archive(archive, f"its directory has {length:,} bytes")
    whole.seek(start(first) + offset)
    directory = whole.read(length)
    end = _END64_FORM.pack(_END64, 44, 45, 45, 0, 0, count, count, length, size)
    end += _LOCATOR_FORM.pack(_LOCATOR, 0, size + length, 1)
    end += _END_FORM.pack(_END, 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    packed = zipfile.ZipFile(io.BufferedReader(_Joined(files, directory + end)))
    for info in packed.infolist():
        info.header_offset += start(info.volume)
        if hasattr(info, "_end_offset"):  # which newer versions of Python count in one file
            info._end_offset = None
    return packed
