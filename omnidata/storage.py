"""Files and folders that are written whole or not at all, by one writer at a time.

Nothing is ever written through a link.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
import stat
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BufferedWriter
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, ClassVar, Literal, Self

from filelock import BaseFileLock, FileLock, Timeout

from omnidata.errors import DataError, OmnidataError, RunError, UsageError
from omnidata.remote import refuse_url

_UNFINISHED = re.compile(r"\.[0-9a-f]{16}\.new")


@contextmanager
def atomic_write(path: Path, *, durable: bool = True) -> Iterator[BufferedWriter]:
    """Write a file beside its target and put it there in one move when all went well.

    Nobody can foresee the name that the file has until then, and it is only ever made, never
    opened: no link that lies in the folder leads the bytes elsewhere. A link in the place of the
    target is replaced, and what it leads to stays as it is. A process that is killed leaves a file
    that `is_unfinished` recognises by its name.

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
    """Return whether a file's name is a temporary one of `atomic_write`.

    Examples:
        >>> is_unfinished(".0123456789abcdef.new"), is_unfinished(".run.json.new")
        (True, False)
    """
    return _UNFINISHED.fullmatch(name) is not None


def holds_only(folder: Path, names: Collection[str]) -> bool:
    """Return whether a path is a folder, no link, with no files but `names` and unfinished ones."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    return all(path.name in names or is_unfinished(path.name) for path in folder.iterdir())


def file_name(text: str) -> str:
    """Return the text as part of a file name; different texts may share one.

    Examples:
        >>> file_name("org/model:1"), file_name("a b")
        ('org-model-1', 'a-b')
    """
    return re.sub(r"[^A-Za-z0-9._=+-]+", "-", text)


def open_own(path: Path, mode: Literal["rb", "ab", "rb+"], *, buffering: int = -1) -> IO[bytes]:
    """Open a file of an untrusted folder, and never one outside it.

    Args:
        path: the file; only its last name is looked at, as the folder is the user's choice.
        mode: as `open` has it; a file to be added to is made if missing.
        buffering: as `open` has it.

    Raises:
        RunError: it is a link, or no regular file; or it is to be changed and has a second name,
            under which it would change as well.
        OSError: it cannot be opened.
    """

    def open_regular(name: str, flags: int) -> int:
        # Not blocking: a pipe without a writer would be waited for.
        descriptor = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
        about = os.fstat(descriptor)
        if stat.S_ISREG(about.st_mode) and (mode == "rb" or about.st_nlink <= 1):
            return descriptor
        os.close(descriptor)
        is_file = stat.S_ISREG(about.st_mode)
        raise _foreign(path, "the file has a second name" if is_file else "it is no regular file")

    try:
        return open(path, mode, buffering, opener=open_regular)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _foreign(path, "the file is a link") from None
        if error.errno in (errno.ENXIO, errno.EISDIR):  # a pipe without a reader, a folder
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


def link_or_copy(source: Path, target: Path) -> None:
    """Make a file the same file as another one, or a copy of it where they cannot share a disk.

    Raises:
        OSError: as `copy_file`.
    """
    try:
        os.link(source, target)
    except OSError:  # another disk, another owner, a file system without links
        copy_file(source, target)


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object from one of our files; empty if it is missing or unreadable."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file in one move.

    Raises:
        OSError: see `atomic_write`.
    """
    with atomic_write(path) as file:
        file.write(json.dumps(value, indent=1, ensure_ascii=True).encode() + b"\n")


@contextmanager
def wrap_os_error(folder: Path) -> Iterator[None]:
    """Say of a file system's error what a person can do about it.

    Raises:
        RunError: in place of an OSError.
    """
    try:
        yield
    except OSError as error:
        place = Path(os.fsdecode(error.filename)) if error.filename else folder
        raise RunError(
            f"a file cannot be read or written ({error.strerror})",
            where=str(place.parent if is_unfinished(place.name) else place),
            expected="space on the disk, and a folder that can be written",
            remedy="correct that and repeat the command: finished work is kept",
        ) from None


def drop_partial_line(path: Path) -> None:
    """Cut a last line that a killed process left without its newline.

    Raises:
        RunError: the file is a link, or has a second name.
    """
    with open_own(path, "rb+") as file:
        size = file.seek(0, os.SEEK_END)
        tail = b""
        while size and b"\n" not in tail:
            step = min(1 << 16, size)
            size -= step
            file.seek(size)
            tail = file.read(step) + tail
        file.truncate(size + tail.rfind(b"\n") + 1)


def take_lock(path: Path, *, busy: OmnidataError) -> BaseFileLock:
    """Take the lock that keeps a second writer out, without waiting; the caller releases it.

    Args:
        path: of the lock's file, which stays.
        busy: is raised where another process holds it.

    Raises:
        OSError: the file cannot be made.
    """
    lock = FileLock(path)
    try:
        return lock.acquire(timeout=0).lock
    except Timeout:
        if not path.exists():  # filelock tries again where it cannot make the file
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from None
        raise busy from None


def is_writable(folder: Path) -> bool:
    """Return whether a file can be made in a folder."""
    try:
        with TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


# A folder in the making: hidden beside its place, which takes it in one move.

_PATTERN = "[]*?"
PLAN = ".plan.json"
"""The file in it that says what it is going to hold: another call goes on only with its own."""


class StagedFolder(ABC):
    """The folder that is written to, and the only way from there to `out`.

    Used as a context manager. Nothing is ever removed but what a writer of the same kind has
    written.

    Args:
        out: where the result belongs.
        overwrite: whether a result that is there may be replaced.
        inputs: folders that must not lie in there.
        data: what is read; a folder in which `out` must not lie, for what is written there would be
            read as data the next time. None if nothing of the kind is read.

    Attributes:
        noun: what the result is called.
        work: what another process is said to be doing to the same place.
        hidden: files of the folder that are not published.
        path: the folder.

    Raises:
        UsageError: `out` cannot be the place, or something is there already.
        DataError: another process is writing to the same place.
    """

    noun: ClassVar[str]
    work: ClassVar[str]
    hidden: ClassVar[tuple[str, ...]]

    def __init__(
        self, out: Path, *, overwrite: bool, inputs: Iterable[Path], data: Path | None = None
    ) -> None:
        refuse_url(out, "OUT")
        self.out = out.resolve()
        self._overwrite = overwrite
        if any(letter in _PATTERN for letter in str(self.out)) or not self.out.name:
            raise _bad_place(
                self.out, "the path cannot be opened by `datasets`", "a folder without [ ] * ?"
            )
        for folder in inputs:
            if folder.resolve().is_relative_to(self.out):
                raise _bad_place(self.out, f"{folder} lies in there", "a folder beside the source")
        if data is not None and self.out.is_relative_to(data.resolve()):
            what = f"it lies in {data}, and would become part of it"
            raise _bad_place(self.out, what, "a folder beside it")
        self.path = self.out.with_name(f".{self.out.name}.unfinished")
        self._before = self.out.with_name(f".{self.out.name}.before")

    @abstractmethod
    def is_ours(self, folder: Path) -> bool:
        """Return whether the folder has a writer's files of this kind and no others."""

    def begin(self) -> None:
        """Run first under the lock. Does nothing by default."""
        return

    def __enter__(self) -> Self:
        try:
            self.out.parent.mkdir(parents=True, exist_ok=True)
            self._lock = take_lock(
                self.out.with_name(f".{self.out.name}.lock"),
                busy=DataError(
                    f"another process is {self.work} to the same place",
                    where=str(self.out),
                    expected="one at a time",
                    remedy="wait until it has ended, or choose another folder",
                ),
            )
        except OSError as error:
            raise self._unwritable(error) from None
        try:
            self._tidy()
            self._check_target()
            self.begin()
        except BaseException as error:
            self._lock.release()
            if isinstance(error, OSError):
                raise self._unwritable(error) from None
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def keep(self, plan: Mapping[str, Any], *, ours: bool) -> bool:
        """Keep what an interrupted call with the same plan has left, else make the folder anew.

        Args:
            plan: all that the result depends on, as JSON values.
            ours: whether a writer of this kind has left what is there.

        Returns:
            Whether there is something to go on with.

        Raises:
            UsageError: another folder has the name.
        """
        if self.path.exists() or self.path.is_symlink():
            if not ours:
                raise self.foreign()
            if read_json(self.path / PLAN) == plan:
                return True
            shutil.rmtree(self.path)
        self.path.mkdir()
        write_json(self.path / PLAN, plan)
        return False

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Say of a file system's error what a person can do about it.

        Raises:
            DataError: in place of an OSError.
        """
        try:
            yield
        except OSError as error:
            what = self.noun.partition(" ")[2] or self.noun  # without its article
            raise DataError(
                f"the {what} cannot be written ({error.strerror or error})",
                where=str(self.out),
                expected="space on the disk and the right to write",
                remedy="make room; the same command goes on with what is there",
            ) from None

    def move(self) -> None:
        """Move the folder to its place; the one that is there goes last.

        Raises:
            UsageError: something has appeared there in the meantime.
        """
        self._check_target()
        if self._is_empty():
            self.out.rmdir()
        elif self.out.exists():
            self.out.rename(self._before)
        self.path.rename(self.out)
        self._tidy()

    def _tidy(self) -> None:
        if self.is_ours(self._before) and not self.out.exists():
            self._before.rename(self.out)
        if self.is_ours(self.out):
            for name in self.hidden:
                (self.out / name).unlink(missing_ok=True)
            if self.is_ours(self._before):
                remove_folders_first(self._before)

    def _is_empty(self) -> bool:
        return self.out.is_dir() and not any(self.out.iterdir())

    def _unwritable(self, error: OSError) -> UsageError:
        what = f"nothing can be written there ({error.strerror})"
        return _bad_place(self.out, what, "a writable folder")

    def _check_target(self) -> None:
        if not self.out.exists() or self._is_empty():
            return
        if not self.is_ours(self.out):
            raise _bad_place(self.out, "there is something here already", "a new or empty folder")
        if not self._overwrite:
            raise UsageError(
                f"there is {self.noun} here already",
                where=str(self.out),
                expected="a new or empty folder",
                remedy="add --overwrite to replace it",
            )

    def foreign(self) -> UsageError:
        """Return the error for a folder of the hidden name that no writer of this kind left."""
        return _bad_place(self.path, "there is something here already", "a name that nobody uses")


def remove_folders_first(folder: Path) -> None:
    """Remove a folder; the files in it that tell whose it is are there until the rest is gone."""
    for path in [*folder.iterdir()]:
        if path.is_dir():
            shutil.rmtree(path)
    shutil.rmtree(folder)


def _bad_place(place: Path, what: str, expected: str) -> UsageError:
    return UsageError(what, where=str(place), expected=expected, remedy="choose another folder")
