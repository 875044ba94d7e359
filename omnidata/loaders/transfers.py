"""Files on a server: lists that are bounded, downloads of several at a time, and checks of both.

Servers are not trusted: a list or a file that is longer than announced ends with an error, and so
does one that arrives byte by byte.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, Literal, TypeVar, cast

from omnidata.errors import DataError
from omnidata.loaders.archives import RESERVE
from omnidata.loaders.names import NameCheck

Result = TypeVar("Result")
Digest = Literal["sha256", "git", "crc32c", ""]
"""Kinds of digests: "git" is SHA-1 over a head and the content, "" is none."""

STALL_S: Final = 300.0
"""Seconds after which a server that has sent nothing of use is given up."""
LISTING_S: Final = 1800.0
"""Seconds in which the list of all files must have come."""

_CHUNK: Final = 1024**2
_THREADS: Final = 8
_POLL_S: Final = 0.2
_JOIN_S: Final = 5.0
_TIMEOUT_S: Final = 10.0
_PAGE_BYTES: Final = 64 * 1024**2
_MOST_PAGES: Final = 10_000
_MOST_FILES: Final = 5_000_000
_MOST_BYTES: Final = 1 << 50  # of a file
_NETWORK: Final = ("httpx", "httpx2", "httpcore", "httpcore2", "requests", "http")


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file on a server.

    Attributes:
        path: relative to the dataset.
        size: bytes.
        kind: of the digest.
        digest: of the server, in hexadecimal.
    """

    path: str
    size: int
    kind: Digest = ""
    digest: str = ""

    def __post_init__(self) -> None:
        length = {"sha256": 64, "git": 40, "crc32c": 8, "": 0}[self.kind]
        is_hex = set(self.digest) <= set("0123456789abcdef")
        if not 0 <= self.size < _MOST_BYTES or len(self.digest) != length or not is_hex:
            raise ValueError(
                f"a file of {self.size} bytes with the {self.kind} {self.digest!r:.99}"
            )


# Lists.


def get_pages(url: str, following: Callable[[Any, Any], str], **headers: str) -> Iterator[Any]:
    """Yield the pages of an answer in JSON.

    Args:
        url: of the first page.
        following: returns the URL of the next page for an answer and its content; "" ends.
        headers: of the requests.

    Raises:
        ValueError: an answer is no JSON, too long, or has no end.
        HfHubHTTPError: the server refuses.
    """
    from huggingface_hub import utils

    hub: Any = utils  # its exports have no declarations
    for _ in range(_MOST_PAGES):
        content = bytearray()
        with hub.http_stream_backoff(
            "GET", url, headers=headers, timeout=_TIMEOUT_S, max_retries=3, retry_on_exceptions=()
        ) as answer:
            for block in answer.iter_bytes():
                content += block
                if len(content) > _PAGE_BYTES:
                    raise ValueError(f"a page has more than {in_bytes(_PAGE_BYTES)}")
        hub.hf_raise_for_status(answer)
        try:
            page = json.loads(content)
        except RecursionError:
            raise ValueError("its lists are nested too deeply") from None
        yield page
        if not (url := following(answer, page)):
            return
    raise ValueError(f"there are more than {_MOST_PAGES:,} pages")


def collect_files(
    pages: Iterator[Any], read: Callable[[Any], list[RemoteFile]]
) -> list[RemoteFile]:
    """Return the files of all pages of a list, sorted by their paths.

    Args:
        pages: of the list.
        read: returns the files of a page.

    Raises:
        ValueError: the list has no end.
    """

    def collect() -> list[RemoteFile]:
        found: list[RemoteFile] = []
        for page in pages:
            found += read(page)
            if len(found) > _MOST_FILES:
                raise ValueError(f"there are more than {_MOST_FILES:,} files")
        return sorted(found, key=lambda each: each.path)

    return within(LISTING_S, collect)


def within(seconds: float, work: Callable[[], Result]) -> Result:
    """Return a result that must come in time.

    Timeouts of requests do not end an answer that arrives byte by byte.

    Raises:
        TimeoutError: it has not come.
    """
    result: SimpleQueue[tuple[Result | None, BaseException | None]] = SimpleQueue()

    def run() -> None:
        try:
            result.put((work(), None))
        except BaseException as error:
            result.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    try:
        found, error = result.get(timeout=seconds)
    except Empty:
        raise TimeoutError(f"no complete answer within {seconds:g} s") from None
    if error:
        raise error
    return cast(Result, found)


def network_error(error: Exception) -> str:
    """Return an error of the network in a line; empty if it is another error."""
    is_network = isinstance(error, OSError) and error.errno is None
    if is_network or type(error).__module__.partition(".")[0] in _NETWORK:
        return f"{type(error).__name__}: {first_line(error)}"
    return ""


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or its name."""
    return next(filter(None, map(str.strip, str(error).splitlines())), type(error).__name__)[:200]


# Checks.


def check_names(paths: Sequence[str], where: str) -> None:
    """Refuse paths that leave the folder, enter `.git`, or cannot all be files of one folder.

    Raises:
        DataError: there is one.
    """
    check = NameCheck()
    for path in paths:
        if why := check.add(path):
            raise DataError(
                f"{path!r:.100}: {why}",
                where=where,
                expected="distinct plain relative paths",
                remedy="report it to the publisher, or use another revision",
            )


def is_hidden(path: str) -> bool:
    """Return whether a part of the path begins with a dot.

    Examples:
        >>> is_hidden(".gitattributes"), is_hidden("images/.DS_Store"), is_hidden("a.png")
        (True, True, False)
    """
    return any(part.startswith(".") for part in path.split("/"))


def digest_of(content: Path | bytes, kind: Digest) -> str:
    """Return the digest of a file or of its content, in hexadecimal."""
    size = len(content) if isinstance(content, bytes) else content.stat().st_size
    digest: Any = hashlib.sha1(b"blob %d\0" % size) if kind == "git" else hashlib.sha256()
    if kind == "crc32c":
        import google_crc32c

        digest = google_crc32c.Checksum()  # type: ignore[no-untyped-call]  # no types
    with io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as file:
        while block := file.read(_CHUNK):
            digest.update(block)
    found = digest.hexdigest()
    return found.decode() if isinstance(found, bytes) else str(found)


def check_digest(path: Path, file: RemoteFile, where: str) -> None:
    """Remove a downloaded file whose digest is not the server's.

    Raises:
        DataError: it was not, and has been removed.
    """
    size = path.stat().st_size
    found = digest_of(path, file.kind) if file.kind and size == file.size else ""
    if size == file.size and found == file.digest:
        return
    path.unlink()
    what = f"it has {size:,} bytes" if size != file.size else f"its {file.kind} is {found}"
    said = f"{file.size:,} bytes" if size != file.size else f"{file.digest}, as the server says"
    raise DataError(
        f"{file.path} differs from what the server announced: {what}; it was removed",
        where=where,
        expected=said,
        remedy="repeat the command; if the error stays, do not use the data, and report it to the "
        "publisher",
    )


def check_room(needed: int, folder: Path) -> None:
    """Refuse a download for which the disk has too little space.

    Raises:
        DataError: it has not.
    """
    there = next(one for one in (folder, *folder.absolute().parents) if one.exists())
    free = shutil.disk_usage(there).free
    if needed + RESERVE > free:
        raise DataError(
            f"not enough disk space: {in_bytes(needed)} needed, {in_bytes(free)} free",
            where=str(folder),
            expected="disk space for the download, and a reserve",
            remedy="free disk space, or name a folder on another disk",
        )


def in_bytes(size: int) -> str:
    """Format a number of bytes.

    Examples:
        >>> in_bytes(999), in_bytes(1_330_000_000)
        ('999 bytes', '1.33 GB')
    """
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size} bytes"


# Downloads.


def download_files(
    files: Sequence[RemoteFile],
    get: Callable[[RemoteFile, Callable[[int], None]], None],
    where: str,
    progress: Callable[[int], object],
) -> None:
    """Download files, several at a time, and stop at the first error.

    Args:
        files: to download.
        get: downloads a file, checks it and puts it in its place; it is given the file and a
            function that it calls with the bytes received since the last call. That function raises
            an error if they are more than the list says, or if the download has stopped.
        where: the dataset, for messages.
        progress: called with the bytes received since the last call, which may be negative.

    Raises:
        DataError: a file is longer than listed; nothing has arrived for `STALL_S` seconds.
    """
    work = _Downloads(files, get, where)
    try:
        for size in work.sizes():
            progress(size)
    finally:
        work.stop()


class _Downloads:
    """Threads that download files, and a queue of what has arrived.

    They do not keep the process alive: an interrupt need not wait for a file of gigabytes.
    """

    def __init__(
        self,
        files: Sequence[RemoteFile],
        get: Callable[[RemoteFile, Callable[[int], None]], None],
        where: str,
    ) -> None:
        self._get, self._where, self._count = get, where, len(files)
        self._waiting: SimpleQueue[RemoteFile] = SimpleQueue()
        self._arrived: SimpleQueue[int | BaseException | None] = SimpleQueue()  # None ends a file
        self._stopped = threading.Event()
        for file in files:
            self._waiting.put(file)
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in files[:_THREADS]]
        for thread in self._threads:
            thread.start()

    def _work(self) -> None:
        with suppress(Empty):
            while not self._stopped.is_set():
                file = self._waiting.get_nowait()
                try:
                    self._get(file, self._counter(file))
                    self._arrived.put(None)
                except BaseException as error:
                    self._arrived.put(error)
                    return

    def _counter(self, file: RemoteFile) -> Callable[[int], None]:
        left = file.size

        def count(size: int) -> None:
            nonlocal left
            left -= size
            if self._stopped.is_set():
                raise InterruptedError("the request was cancelled")
            if left < -_CHUNK:
                raise DataError(
                    f"{file.path} is longer than the {file.size:,} bytes that the server announced",
                    where=self._where,
                    expected=f"{file.size:,} bytes",
                    remedy="repeat the command; if the error stays, report it to the publisher",
                )
            self._arrived.put(size)

        return count

    def sizes(self) -> Iterator[int]:
        """Yield the bytes received since the last time, until all files are there."""
        left, last = self._count, time.monotonic()
        while left:
            try:
                found = self._arrived.get(timeout=_POLL_S)
            except Empty:
                if time.monotonic() - last < STALL_S:
                    continue
                raise DataError(
                    f"the server has sent next to nothing for {STALL_S:g} s",
                    where=self._where,
                    expected="a file, or some megabytes of it",
                    remedy="repeat the command when the network is better: it resumes",
                ) from None
            if isinstance(found, BaseException):
                raise found
            last = time.monotonic()
            if found is None:
                left -= 1
            else:
                yield found

    def stop(self) -> None:
        """End the threads: else they may write while another call goes on."""
        self._stopped.set()
        end = time.monotonic() + _JOIN_S
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))


def download_file(
    url: str, target: Path, size: int, count: Callable[[int], None], **headers: str
) -> None:
    """Download a file, or the rest of one, by `huggingface_hub`, which retries and resumes.

    Its `hf_hub_download` begins each call anew, and asks for each file twice.

    Args:
        url: of the file.
        target: an interrupted call may have left its start there.
        size: bytes.
        count: called with the bytes received since the last call.
        headers: of the requests.

    Raises:
        OSError: it ended early (without a number), or it cannot be written.
        HfHubHTTPError: the server refuses.
    """
    from huggingface_hub import constants
    from huggingface_hub.file_download import http_get

    if target.is_file() and target.stat().st_size > size:  # it is of another file
        target.unlink()
    with target.open("ab") as out:
        count(out.tell())
        if out.tell() == size:
            return
        http_get(
            url,
            out,
            resume_size=out.tell(),
            headers={**headers, "Accept-Encoding": "identity"},
            # It refuses larger ones, which the Hub serves by another protocol.
            expected_size=size if size <= constants.MAX_HTTP_DOWNLOAD_SIZE else None,
            tqdm_class=silent_bar(count),
        )


def silent_bar(count: Callable[[int], None]) -> Any:
    """Return a class of progress bars that shows nothing and calls a function with each step."""
    from tqdm import tqdm

    class Bar(tqdm):  # type: ignore[misc]  # it has no types
        monitor_interval = 0  # else each class has a thread

        def __init__(self, *_: object, **__: object) -> None:
            super().__init__(disable=True)

        def update(self, n: float | None = 1) -> bool | None:
            count(int(n or 0))
            return None

    return Bar
