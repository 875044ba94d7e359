"""Reads the directories of zips from untrusted sources: names, sizes and offsets.

An archive is refused as a whole if a member's name leaves the folder, if it has links, devices or
encrypted members, if two names are equal on some file system, or if it holds more bytes or members
than an archive of its size plausibly can.
"""

from __future__ import annotations

import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Final

from omnidata.errors import DataError

MOST_MEMBERS: Final = 5_000_000
RATIO: Final = 100
"""Bytes that may come of each byte of an archive, once `FREE` bytes have come."""
FREE: Final = 64 * 1024**2
MOST_DIRECTORY: Final = 2 * 1024**3
"""Bytes of the directory of a zip."""

END, END64, LOCATOR = b"PK\5\6", b"PK\6\6", b"PK\6\7"
END_FORM: Final = struct.Struct("<4s4H2LH")
END64_FORM: Final = struct.Struct("<4sQ2H2L4Q")
LOCATOR_FORM: Final = struct.Struct("<4sLQL")

_APPLES: Final = "__MACOSX"
"""A folder of what macOS knows of the files, which its zips have beside them; it is left out."""
_SCHEME: Final = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")
_LONGEST_NAME: Final = 1024
_LONGEST_PART: Final = 255
"""Bytes of a file's own name that file systems take."""
_MOST_NOTE: Final = 1 << 16
_HEADER: Final = struct.Struct("<4s22x2H")
_SIGN: Final = b"PK\3\4"
_MOST_HEADER: Final = _HEADER.size + 2 * 0xFFFF
_PIECE: Final = 8 * 1024**2
_RAW: Final = -15  # zlib's own number: a window of 2^15 bytes, without a wrapping
BROKEN: Final = (
    zipfile.BadZipFile,
    EOFError,
    struct.error,
    ValueError,
    NotImplementedError,
    UnicodeError,
)
"""What `zipfile` says of a zip that is none, or is broken."""


@dataclass(frozen=True, slots=True)
class Member:
    """The location of a file in a zip.

    Attributes:
        at: the offset of its header.
        span: the size of header and content.
        packed: the size of the content in the zip.
        size: the size of the file.
        deflated: whether it is compressed.
        crc: the check sum of the file.
    """

    at: int
    span: int
    packed: int
    size: int
    deflated: bool
    crc: int


def unsafe(path: str) -> str:
    """Return why a path from a dataset must not be followed; empty if it may.

    Examples:
        >>> unsafe("T0540/6.mp4")
        ''
        >>> unsafe("../../etc/passwd")
        'the path leaves its folder through ".."'
    """
    if "\0" in path:
        return "the path holds a NUL character"
    forward = path.replace("\\", "/")
    if _SCHEME.match(forward):
        return "the path is a URL or has a drive letter"
    if forward.startswith("/"):
        return "the path is absolute"
    if ".." in PurePosixPath(forward).parts:
        return 'the path leaves its folder through ".."'
    return ""


def is_left_out(name: str) -> bool:
    """Return whether a member is not part of the data.

    Examples:
        >>> is_left_out("__MACOSX/images/._a.png"), is_left_out("images/a.png")
        (True, False)
    """
    return PurePosixPath(name).parts[:1] == (_APPLES,)


def member_paths(names: Iterable[str], stem: str) -> dict[str, str]:
    """Return the paths of unpacked members: in a folder of the archive's name.

    Args:
        names: of the members.
        stem: the name of the archive without its ending.

    Returns:
        Name -> path relative to the archive's folder.

    Examples:
        >>> member_paths(["images/a.png"], "images"), member_paths(["a.png"], "images")
        ({'images/a.png': 'images/a.png'}, {'a.png': 'images/a.png'})
    """
    names = list(names)
    inside = all(name.partition("/")[0] == stem for name in names)
    return {name: name if inside else f"{stem}/{name}" for name in names}


def safe_path(archive: Path, name: str, names: dict[str, str], folders: dict[str, str]) -> str:
    """Return the path of a member, safe to be joined to a folder.

    Args:
        archive: for messages.
        name: of the member.
        names: those of earlier files by their normalised paths; the name is added.
        folders: the same for their folders, each with a file in it.

    Raises:
        DataError: the path is unsafe.
    """
    parts = PurePosixPath(name).parts
    why = unsafe(name)
    if not why and (not parts or "\\" in name or not name.isprintable()):
        why = "the path is no plain name"
    longest = max((len(os.fsencode(part)) for part in parts), default=0)
    if not why and (len(os.fsencode(name)) > _LONGEST_NAME or longest > _LONGEST_PART):
        why = "the path is too long"
    if not why and ".git" in (part.casefold() for part in parts):
        why = "the path lies in a folder of git"
    if why:
        raise bad_archive(archive, f"{name!r:.100}: {why}")
    key = "/".join(parts).casefold()
    above = [key[:at] for at, letter in enumerate(key) if letter == "/"]
    if key in names:
        raise bad_archive(archive, f"{name!r:.100} and {names[key]!r:.100} would be one file")
    if key in folders:
        raise bad_archive(
            archive, f"{name!r:.100} is a file, and a folder of {folders[key]!r:.100}"
        )
    for one in above:
        if one in names:
            raise bad_archive(
                archive, f"{names[one]!r:.100} is a file, and a folder of {name!r:.100}"
            )
        folders.setdefault(one, name)
    names[key] = name
    if len(names) > MOST_MEMBERS:
        raise bad_archive(archive, f"it has more than {MOST_MEMBERS:,} files")
    return "/".join(parts)


def files_in(archive: Path, packed: zipfile.ZipFile, room: int) -> Iterator[zipfile.ZipInfo]:
    """Return the files of a zip.

    Args:
        archive: for messages.
        packed: the zip.
        room: the size of the zip in bytes.

    Raises:
        DataError: a member must not be unpacked, or members overlap.
    """
    infos = packed.infolist()
    inside = sum(info.compress_size for info in infos)
    if inside > room:  # members that overlap: a few kilobytes become petabytes
        raise bad_archive(archive, f"its members have {inside:,} bytes, and it has {room:,}")
    for info in infos:
        mode = info.external_attr >> 16
        if info.flag_bits & 0x1:
            raise bad_archive(archive, f"{info.filename!r:.100} is encrypted")
        if info.orig_filename != info.filename or not info.filename:  # it cuts names at a NUL
            raise bad_archive(archive, f"{info.orig_filename!r:.100}: the path is no plain name")
        if info.is_dir() and not info.file_size:
            continue
        if info.is_dir():
            raise bad_archive(archive, f"{info.filename!r:.100} is a folder, and has content")
        if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            raise bad_archive(archive, f"{info.filename!r:.100} is a link or a device")
        yield info


def directory(archive: Path, file: IO[bytes], size: int) -> Mapping[str, Member]:
    """Return the members of a zip by their names, if they can be read one by one.

    Args:
        archive: for messages.
        file: the zip; only its end is read.
        size: of the zip in bytes.

    Raises:
        DataError: it is broken or hostile, one of several parts, or uses an unusual compression.
    """
    found: dict[str, Member] = {}
    names: dict[str, str] = {}
    folders: dict[str, str] = {}
    try:
        _check_end(archive, file, size)
        with zipfile.ZipFile(file) as packed:
            starts = sorted({info.header_offset for info in packed.infolist()})
            following = dict(zip(starts, [*starts[1:], packed.start_dir], strict=True))
            for info in files_in(archive, packed, size):
                if is_left_out(info.filename):
                    continue
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise bad_archive(
                        archive, f"{info.filename!r:.100} is compressed in a rare way"
                    )
                at = info.header_offset
                span = min(following[at] - at, _MOST_HEADER + info.compress_size)
                if at < 0 or span < _HEADER.size + info.compress_size:
                    raise bad_archive(
                        archive, f"{info.filename!r:.100} lies where another one does"
                    )
                found[safe_path(archive, info.filename, names, folders)] = Member(
                    at,
                    span,
                    info.compress_size,
                    info.file_size,
                    info.compress_type == zipfile.ZIP_DEFLATED,
                    info.CRC,
                )
    except BROKEN as error:
        raise bad_archive(archive, f"it is broken ({type(error).__name__}: {error})") from None
    if sum(member.size for member in found.values()) > FREE + RATIO * size:
        raise bad_archive(
            archive, f"more than {RATIO} times as much would come of its {size:,} bytes"
        )
    return found


def _check_end(archive: Path, file: IO[bytes], size: int) -> None:
    """Refuse a zip in several parts, and a directory too large for memory."""
    tail_at = max(0, size - _MOST_NOTE - END_FORM.size)
    file.seek(tail_at)
    tail = file.read(size - tail_at)
    at = tail.rfind(END)
    if at < 0:
        raise bad_archive(archive, "it has no end of a zip")
    _, disk, first, _, _, length, _, _ = END_FORM.unpack_from(tail, at)
    if tail[at - LOCATOR_FORM.size : at].startswith(LOCATOR):
        _, _, place, disks = LOCATOR_FORM.unpack_from(tail, at - LOCATOR_FORM.size)
        file.seek(place)
        _, _, _, _, disk, first, _, _, length, _ = END64_FORM.unpack(file.read(END64_FORM.size))
        disk = max(disk, disks - 1)
    if disk or first:
        raise bad_archive(archive, f"it is the last of {disk + 1} parts, which are read as a whole")
    if length > MOST_DIRECTORY:
        raise bad_archive(archive, f"its directory has {length:,} bytes")


def content(member: Member, read: Callable[[int, int], bytes]) -> Iterator[bytes]:
    """Yield the content of a member in pieces, never more bytes than its stated size.

    Args:
        member: of a zip.
        read: returns the bytes of the zip between two offsets.

    Raises:
        ValueError: the member is broken; pieces of it may have been yielded.
    """
    stop = member.at + member.span
    block = read(member.at, min(stop, member.at + _PIECE))
    sign, names, extras = _HEADER.unpack_from(block)
    start = _HEADER.size + names + extras
    if sign != _SIGN or start + member.packed > member.span:
        raise ValueError("it does not begin where the directory says")
    at = member.at + len(block)
    rest = block[start : start + member.packed]
    left = member.packed - len(rest)
    inflate = zlib.decompressobj(_RAW)
    size, crc = 0, 0
    while True:
        try:
            piece = inflate.decompress(rest, _PIECE) if member.deflated else rest
        except zlib.error as error:
            raise ValueError(str(error)) from None
        rest = inflate.unconsumed_tail
        size, crc = size + len(piece), zlib.crc32(piece, crc)
        if size > member.size:
            break
        yield piece
        if inflate.eof or (not rest and not left and not piece):
            break
        if not rest and left:
            rest = read(at, at + min(left, _PIECE))
            at, left = at + len(rest), left - len(rest)
        elif not rest and not member.deflated:
            break
    if size != member.size or crc != member.crc:
        raise ValueError("it is not the file that the directory says")


def bad_archive(archive: Path, what: str) -> DataError:
    """Return the error for a bad archive."""
    return DataError(
        what,
        where=str(archive),
        expected="an archive of regular files with plain, relative names",
        remedy="download it again; if it stays like that, tell its publisher",
    )
