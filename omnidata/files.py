"""Open and read untrusted files safely.

A dataset, a run folder or a file of settings may come from anyone. A pipe or a device in the place
of a file would be read for ever, a sparse file of a terabyte until the memory is full, and a link
may lead to a private file. So everything opens such files through this module: regular files only,
of a size that is known before the first byte is read, and none that lies elsewhere than where the
user pointed to.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import shlex
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, Final

from omnidata import remote
from omnidata.errors import FileError, OmnidataError, UsageError

SETTINGS: Final = 1024**2
"""Bytes of a file of settings, which a person writes: models, prices, suites."""
WHOLE: Final = 512 * 1024**2
"""Bytes of a file that is held in memory as a whole."""
STREAMED: Final = 64 * 1024**3
"""Bytes of a file that is read part by part."""
LINE: Final = 64 * 1024**2
"""Bytes of a line of a file that is read line by line; one of as many or more is refused."""
ANY: Final = 1 << 62
"""For a file that is read in parts, however large it is."""
LIMIT_VARIABLE: Final = "OMNIDATA_MAX_FILE_BYTES"
"""The variable of the environment that raises all of these limits to a number of bytes."""

BOM: Final = codecs.BOM_UTF8
"""The mark that some editors put at the beginning of a file in UTF-8."""

_BLOCK: Final = 64 * 1024  # bytes that are split into lines at once
_POINTER: Final = b"version https://git-lfs.github.com/spec/v"
_LONGEST_POINTER: Final = 1024  # by the specification of git-lfs
_KEY_ENDS: Final = re.compile(r"[\n=]")
_MOST_PARTS: Final = 100  # the time that `tomllib` takes grows with their square
_MOST_NAMED: Final = 3  # folders, before the one that holds them all is shorter
_READING: Final = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)  # a pipe that took the file's place must not make us wait
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_KINDS: Final = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)

_SCHEME: Final = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")

_followed: ContextVar[tuple[str, ...]] = ContextVar("_followed", default=())
_bounds: ContextVar[tuple[str, ...]] = ContextVar("_bounds", default=())
_handed_out: set[str] = set()


@contextmanager
def following(folders: Iterable[str | Path]) -> Iterator[None]:
    """Let links and linked repositories lead into these folders while data are loaded in the block.

    What has been loaded in the block may be opened after it, in other threads and processes too.

    Args:
        folders: outside the data, each of whose files may be opened and handed on.

    Raises:
        UsageError: one of them is no folder.
    """
    for folder in map(str, folders):
        if not os.path.isdir(folder):  # noqa: PTH112  False for a name with a NUL, on every Python
            raise UsageError(
                "there is no such folder",
                where=f"--media-root {folder}",
                expected="a folder outside the data, to which their links or lists of media lead",
            )
    token = _followed.set((*_followed.get(), *map(os.path.realpath, map(str, folders))))
    try:
        yield
    finally:
        _followed.reset(token)


@contextmanager
def staying_in(data: Path, *beside: Path) -> Iterator[None]:
    """Open no file of the data, in the block, that lies outside what the user named.

    Args:
        data: as the user named it: a folder stands for all that it holds, a file for itself and its
            neighbours. A link is the user's own, and stands for what it leads to. Of a snapshot in
            the cache of the Hugging Face Hub, the files that it is made of belong to it.
        beside: what else belongs to the data: folders that the user named, or single files.

    Raises:
        FileError: the data are neither a folder nor a file that is ever opened.
    """
    folder = data.is_dir()
    if not folder and data.exists():
        check_file(data, ANY)
    own = [real(data)] if folder else [real(data.parent), real(data)]
    # The Hub's cache keeps files in `blobs`, beside `snapshots`.
    snapshots = (above for above in Path(own[0]).parents if above.name == "snapshots")
    own += (str(above.parent / "blobs") for above in snapshots)
    for path in beside:
        own.append(real(path) if path.is_dir() else f"{real(path.parent)}{os.sep}{path.name}")
    token = _bounds.set(tuple(dict.fromkeys((*_bounds.get(), *own, *_followed.get()))))
    try:
        yield
    finally:
        _bounds.reset(token)


def bounds() -> tuple[str, ...]:
    """Return the real paths outside which nothing is opened now; empty outside of `staying_in`."""
    return _bounds.get()


def remember_bounds() -> None:
    """Keep what the bounds are now: a table of these data is handed out, whose rows name files."""
    _handed_out.update(bounds())


def allowed_folders() -> tuple[str, ...]:
    """Return the real paths in which the rows of a table may name files.

    They are the folders that `following` names, and those of data that this process has handed out
    as tables. The metadata of a table are not trusted.
    """
    return (*_followed.get(), *sorted(_handed_out))


def real(path: Path) -> str:
    """Return the target of a path after following all links.

    Raises:
        FileError: no file system can hold the name.
    """
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        raise _unnamable(path) from None


def inside(path: str, folders: Sequence[str]) -> bool:
    """Return whether a real path is one of these, or below one.

    Examples:
        >>> inside("/data/a.png", ["/data"]), inside("/database/a.png", ["/data"])
        (True, False)
        >>> inside("/etc/passwd", ["/"])
        True
    """
    return any(
        path == folder or path.startswith(folder.rstrip(os.sep) + os.sep) for folder in folders
    )


def naming(folders: Sequence[str]) -> str:
    """Return the options to type for data that lead outside."""
    if len(folders) > _MOST_NAMED:
        folders = [os.path.commonpath(map(os.path.abspath, folders))]
    given = " ".join(f"--media-root {shlex.quote(folder)}" for folder in folders)
    return (
        f"if all that lies there may be opened and sent to models, add {given} "
        "(in Python: omnidata.following)"
    )


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
    if ".." in forward.split("/"):
        return 'the path leaves its folder through ".."'
    return ""


def check_file(path: Path, limit: int, *, within: Sequence[str] | None = None) -> os.stat_result:
    """Check a file; at most the head of a small one is read.

    Args:
        path: of the file.
        limit: bytes that it may have, unless the environment says more.
        within: real paths, one of them must contain it; `bounds()` if None, anywhere if empty.

    Raises:
        FileError: it is no regular file, too large, a pointer of git-lfs, or lies outside the
            bounds that are in force.
        OSError: it is missing, or may not be looked at.
    """
    try:
        found = path.stat()
    except ValueError:
        raise _unnamable(path) from None
    allowed = bounds() if within is None else within
    if allowed and not inside(real(path), allowed):
        raise outside([path], allowed)
    _check(path, found, limit)
    if _is_pointer(path):
        raise FileError(
            "this is a pointer of git-lfs, not the file: `git lfs pull` fetches it",
            where=str(path),
            expected="the content that the pointer stands for",
            remedy="run `git lfs pull` in its repository",
        )
    return found


def outside(paths: Sequence[Path], allowed: Sequence[str]) -> FileError:
    """Return the error for paths that lead outside through links, with all options to type.

    Args:
        paths: one at least, files or folders.
        allowed: real paths; each file must lie in one of them.
    """
    more = f", and {len(paths) - 1} more" if len(paths) > 1 else ""
    return FileError(
        "the path leads outside the dataset through a link",
        where=f"{paths[0]}{more}",
        expected=f"a file below {allowed[0]}",
        remedy=naming([*dict.fromkeys(_way_out(path, allowed) for path in paths)]),
    )


def _way_out(path: Path, allowed: Sequence[str]) -> str:
    for part in [*reversed(path.parents), path]:
        target = real(part)
        below = any(inside(folder, [target]) for folder in allowed)  # the user's own way there
        if part.is_symlink() and not below and not inside(target, allowed):
            return target if Path(target).is_dir() else str(Path(target).parent)
    return str(Path(real(path)).parent)


def open_file(path: Path, limit: int) -> BufferedReader:
    """Open a regular file to read its bytes; the caller closes it.

    Args:
        path: of the file.
        limit: bytes that it may have, unless the environment says more.

    Raises:
        FileError: as `check_file`.
        OSError: it is missing, or cannot be opened.
        StoreError: it stands for an object that its store does not give.
    """
    check_file(path, limit)
    remote.fetch(path)
    file = os.fdopen(os.open(path, _READING), "rb")
    try:
        _check(path, os.fstat(file.fileno()), limit)  # it may have been replaced since
    except OmnidataError:
        file.close()
        raise
    return file


def open_parts(path: Path) -> IO[bytes]:
    """Open a file that was looked at, to read a few parts of it; the caller closes it.

    Raises:
        OSError: it is missing, or cannot be opened.
        StoreError: as `open_file`.
    """
    remote.fetch(path)
    return path.open("rb")


def read_file(path: Path, limit: int = WHOLE) -> bytes:
    """Return all bytes of a regular file.

    Args:
        path: of the file.
        limit: bytes that it may have, unless the environment says more.

    Raises:
        FileError: as `check_file`.
        OSError: it is missing, or cannot be read.
    """
    with open_file(path, limit) as file:
        found = file.read(_most(limit) + 1)  # a file of the kernel has no size, and a log may grow
    _check_size(path, len(found), limit)
    return found


def open_text(path: Path, limit: int) -> IO[bytes]:
    """Open a text file to read it as UTF-8 without a mark; the caller closes it.

    PowerShell's `>` writes UTF-16, and some editors put a mark before UTF-8. The encoding is that
    of the mark; without one, zeros among the first four bytes tell UTF-16 and UTF-32, as every JSON
    text begins with ASCII. What is in no such encoding comes as it is.

    Args:
        path: of the file.
        limit: bytes that it may have, unless the environment says more.

    Raises:
        FileError: as `open_file`; while it is read: it is no text in the encoding of its beginning.
        OSError, StoreError: as `open_file`.
    """
    file = open_file(path, limit)
    encoding = json.detect_encoding(file.peek(4)[:4])
    if encoding == "utf-8-sig":
        file.read(len(BOM))
    if encoding.startswith("utf-8"):
        return file
    return io.BufferedReader(_Recoded(file, encoding, path), _BLOCK)


def read_text(path: Path, limit: int = WHOLE) -> bytes:
    """Return all of a text file as UTF-8 without a mark; see `open_text`.

    Raises:
        FileError, OSError: as `read_file`, or it is no text in the encoding of its beginning.
    """
    content = read_file(path, limit)
    encoding = json.detect_encoding(content[:4])
    if encoding.startswith("utf-8"):
        return content.removeprefix(BOM)
    return _recode(codecs.getincrementaldecoder(encoding)("surrogatepass"), content, True, path)


class _Recoded(io.RawIOBase):
    def __init__(self, file: BufferedReader, encoding: str, path: Path) -> None:
        self._file, self._path = file, path
        self._decoder = codecs.getincrementaldecoder(encoding)("surrogatepass")
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = b"more"
        while block and not self._rest:
            block = self._file.read(_BLOCK)
            self._rest = _recode(self._decoder, block, not block, self._path)
        found, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        self._file.close()
        super().close()


def _recode(decoder: codecs.IncrementalDecoder, block: bytes, last: bool, path: Path) -> bytes:
    try:
        # A half of a pair of UTF-16 spoils its own line alone, which is no UTF-8 then.
        return decoder.decode(block, last).encode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise FileError(
            f"the file begins as {error.encoding} and cannot be read as such ({error.reason})",
            where=str(path),
            expected="a text in one encoding",
            remedy="save the file as UTF-8, or download it again",
        ) from None


def lines(file: IO[bytes], longest: int = LINE) -> Iterator[bytes]:
    """Yield the lines of a file without their ends, read in blocks.

    Args:
        file: open to read bytes.
        longest: bytes; a line of as many or more may come cut, and is the last one then.
    """
    rest = b""
    while block := file.read(max(_BLOCK, len(rest))):
        *whole, rest = (rest + block).split(b"\n")
        yield from whole
        if len(rest) >= longest:
            break
    if rest:
        yield rest


def read_settings(path: Path) -> str:
    """Read a TOML file as text.

    Raises:
        FileError: as `check_file`.
        OSError: it is missing, or cannot be read.
        ValueError: it is not UTF-8, or has keys of so many parts that reading them would not end.
    """
    text = read_file(path, SETTINGS).decode("utf-8-sig")  # some editors write a mark first
    run = 0
    for part in text.split("."):
        run = run + 1 if part.strip() and not _KEY_ENDS.search(part) else 0
        if run > _MOST_PARTS:
            raise ValueError(f"a key has more than {_MOST_PARTS} parts")
    return text


def _is_pointer(path: Path) -> bool:
    """Return whether a regular file is a pointer of git-lfs to a file that was not downloaded.

    False for one that cannot be read: opening it raises the error.
    """
    try:
        if not 0 < path.stat().st_size < _LONGEST_POINTER:
            return False
        remote.fetch(path)
        with os.fdopen(os.open(path, _READING), "rb") as file:
            return file.read(len(_POINTER)) == _POINTER
    except OSError:
        return False


def _check(path: Path, found: os.stat_result, limit: int) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(found.st_mode)), "something else")
        raise FileError(
            f"this is {kind}, not a regular file",
            where=str(path),
            expected="a regular file",
            remedy="name a file, or restore the one that belongs there",
        )
    _check_size(path, found.st_size, limit)


def _check_size(path: Path, size: int, limit: int) -> None:
    most = _most(limit)
    if size > most:
        raise FileError(
            f"the file has {size:,} bytes or more",
            where=str(path),
            expected=f"at most {most:,} bytes",
            remedy=f"if it is meant to be so large, set {LIMIT_VARIABLE}={size}",
        )


def _most(limit: int) -> int:
    given = os.environ.get(LIMIT_VARIABLE)
    if not given:
        return limit
    if not (given.isascii() and given.isdigit() and len(given) < 20):
        raise UsageError(
            f"{given[:40]!r} is no number of bytes",
            where=LIMIT_VARIABLE,
            expected=f"a whole number, e.g. {2 * WHOLE}",
        )
    return max(limit, int(given))


def _unnamable(path: Path) -> FileError:
    return FileError(
        "no file can have this name",
        where=repr(str(path))[:200],
        expected="a path without NUL characters",
        remedy="correct the name",
    )
