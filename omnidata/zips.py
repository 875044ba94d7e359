"""Reads the directories of zips from untrusted sources: names, sizes and offsets.

An archive is refused as a whole if a member's name leaves the folder, if it has links, devices or
encrypted members, if two names are equal on some file system, or if it holds more bytes or members
than an archive of its size plausibly can.
"""

from __future__ import annotations

import os
import stat
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from omnidata.errors import DataError
from omnidata.files import unsafe

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


def is_left_out(name: str) -> bool:
    """Return whether a member is not part of the data.

    Examples:
        >>> is_left_out("__MACOSX/images/._a.png"), is_left_out("images/a.png")
        (True, False)
    """
    return PurePosixPath(name).parts[:1] == (_APPLES,)


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


def bad_archive(archive: Path, what: str) -> DataError:
    """Return the error for a bad archive."""
    return DataError(
        what,
        where=str(archive),
        expected="an archive of regular files with plain, relative names",
        remedy="download it again; if it stays like that, tell its publisher",
    )
