"""Files that are written whole or not at all, and never through a link that somebody laid."""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedWriter
from pathlib import Path
from typing import IO, Any, Literal

from omnidata.errors import RunError

_UNFINISHED = re.compile(r"\.[0-9a-f]{16}\.new")


@contextmanager
def atomic_write(path: Path, *, durable: bool = True) -> Iterator[BufferedWriter]:
    """Write a file beside its target and put it there in one move when all went well.

    Nobody can foresee the name that the file has until then, and it is only ever made, never
    opened: no link that lies in the folder leads the bytes elsewhere. A link in the place of the
    target is replaced, and what it leads to stays as it is. A process that is killed leaves a file
    that `is_unfinished` tells by its name.

    Args:
        path: the target; its folder must exist.
        durable: whether the content is to outlive the machine before the move. Without it a file
            among thousands costs less; a power cut may leave it empty.

    Raises:
        OSError: the file cannot be written, or cannot take its place.
    """
    new = path.with_name(f".{secrets.token_hex(8)}.new")
    file = new.open("xb")  # fails where there is anything of that name, links included
    try:
        with file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def is_unfinished(name: str) -> bool:
    """Whether a file's name is one that `atomic_write` gives before the move.

    Examples:
        >>> is_unfinished(".0123456789abcdef.new"), is_unfinished(".run.json.new")
        (True, False)
    """
    return _UNFINISHED.fullmatch(name) is not None


def open_own(path: Path, mode: Literal["rb", "ab", "rb+"], *, buffering: int = -1) -> IO[bytes]:
    """Open a file of a folder that may be anybody's, and never one that lies elsewhere.

    Args:
        path: the file; only its last name is looked at, as the folder is the user's choice.
        mode: as `open` has it; a file to be added to is made if missing.
        buffering: as `open` has it.

    Raises:
        RunError: it is a link, or no regular file; or it is to be changed and has a second name,
            under which it would change as well.
        OSError: it cannot be opened.
    """

    def opened(name: str, flags: int) -> int:
        # Not blocking: a pipe without a writer would be waited for.
        descriptor = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
        about = os.fstat(descriptor)
        if stat.S_ISREG(about.st_mode) and (mode == "rb" or about.st_nlink <= 1):
            return descriptor
        os.close(descriptor)
        is_file = stat.S_ISREG(about.st_mode)
        raise _foreign(path, "the file has a second name" if is_file else "it is no regular file")

    try:
        return open(path, mode, buffering, opener=opened)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _foreign(path, "the file is a link") from None
        if error.errno in (errno.ENXIO, errno.EISDIR):  # a pipe that nobody reads, a folder
            raise _foreign(path, "it is no regular file") from None
        raise


def _foreign(path: Path, what: str) -> RunError:
    return RunError(
        what,
        where=str(path),
        expected="a regular file that lies in the folder and nowhere else",
        remedy="copy the folder with what its links lead to (cp -rL), and name the copy",
    )


def copy_file(source: Path, target: Path) -> None:
    """Copy a file's content in one move.

    Raises:
        OSError: it cannot be read, or see `atomic_write`.
    """
    with atomic_write(target, durable=False) as file:
        shutil.copyfile(source, file.name)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file in one move.

    Raises:
        OSError: see `atomic_write`.
    """
    with atomic_write(path) as file:
        file.write(json.dumps(value, indent=1, ensure_ascii=True).encode() + b"\n")
