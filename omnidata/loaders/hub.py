"""Datasets of the Hugging Face Hub as data: `hf://ORG/NAME[@REVISION][/FOLDER]`.

They are downloaded into the Hub's cache, which other programs share, and read from there. Nothing
is sent but what reading needs: no token, unless the user asks for it (`sending_token`).
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast
from urllib.parse import quote, urljoin, urlsplit

from omnidata.errors import DataError, OmnidataError, UsageError, suggestion
from omnidata.loaders.archives import RESERVE
from omnidata.loaders.names import NameCheck
from omnidata.media import unsafe
from omnidata.mirror_cache import cache_folder
from omnidata.object_stores import SENDS_TOKEN, sends_token
from omnidata.storage import copy_file, read_json, write_json

if TYPE_CHECKING:
    from huggingface_hub import HfApi

ENDPOINT: Final = "https://huggingface.co"
LARGE: Final = 10_000_000_000
"""Bytes; more are only downloaded for someone who has said yes to their number."""
HubNotice = Callable[[str], None]
"""Is told in a line what is being done."""

Result = TypeVar("Result")
Digest = Literal["sha256", "git", "crc32c", ""]
"""Kinds of digests: "git" is SHA-1 over a head and the content, "" is none."""

STALL_S: Final = 300.0
"""Seconds after which a server that has sent nothing of use is given up."""

_CHUNK: Final = 1024**2
_THREADS: Final = 8
_POLL_S: Final = 0.2
_JOIN_S: Final = 5.0
_TIMEOUT_S: Final = 10.0
_LISTING_S: Final = 1800.0
_PAGE_BYTES: Final = 64 * 1024**2
_MOST_PAGES: Final = 10_000
_MOST_FILES: Final = 5_000_000
_MOST_BYTES: Final = 1 << 50  # of a file
_ETAG: Final = re.compile(r'(W/)?"?\w[\w.:+-]*"?')
_SHA: Final = re.compile(r"[0-9a-f]{40}")
_NAME: Final = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_ADDRESS: Final = re.compile(
    # `Path` makes one slash of two.
    r"hf:/{1,2}(?:datasets/)?(?P<name>[\w.-]+/[\w.-]+?)(?:@(?P<revision>[^/]+))?(?:/(?P<below>.*))?"
)


class TooLargeError(UsageError):
    """A dataset is too large to be downloaded as a whole without being asked for.

    Attributes:
        url: under which what is read of it is fetched when it is read.
    """

    url: str = ""


@contextmanager
def sending_token(send: bool = True) -> Iterator[None]:
    """Send a token with requests in the block, for gated and private datasets.

    It is the one that `huggingface_hub` has: HF_TOKEN in the environment, or what `hf auth login`
    has kept. Threads and processes that are started in the block send it as well.

    Args:
        send: False leaves things as they are.
    """
    before = os.environ.get(SENDS_TOKEN)
    if send:
        os.environ[SENDS_TOKEN] = "1"
    try:
        yield
    finally:
        if send and before is None:
            del os.environ[SENDS_TOKEN]


def endpoint() -> str:
    """Return the Hub's URL: HF_ENDPOINT in the environment, or the public one."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or ENDPOINT


def api() -> HfApi:
    """Return the Hub's client, with a token if the user has asked to send it."""
    from huggingface_hub import HfApi

    return HfApi(endpoint=endpoint(), token=sends_token())


@dataclass(frozen=True, slots=True)
class HubAddress:
    """A dataset on the Hub.

    Attributes:
        name: "ORG/NAME".
        revision: a commit, a tag or a branch.
        below: a folder or a file in it; empty for all of it.
    """

    name: str
    revision: str = "main"
    below: str = ""

    def __str__(self) -> str:
        below = f"/{self.below}" if self.below else ""
        return f"hf://{self.name}@{self.revision}{below}"


def is_name(text: str) -> bool:
    """Return whether a text is the name of a dataset: "ORG/NAME".

    Examples:
        >>> is_name("openbmb/CAGUI"), is_name("CAGUI"), is_name("a/b/c")
        (True, False, False)
    """
    return _NAME.fullmatch(text) is not None


def parse_address(text: str | Path) -> HubAddress | None:
    """Parse the address of a dataset; None if the text is no address of the Hub.

    Raises:
        UsageError: it begins like one, and names none.

    Examples:
        >>> parse_address("hf://openbmb/CAGUI@abc/CAGUI_agent")
        HubAddress(name='openbmb/CAGUI', revision='abc', below='CAGUI_agent')
        >>> parse_address("data/omnigui") is None
        True
    """
    if not str(text).startswith("hf:/"):
        return None
    found = _ADDRESS.fullmatch(str(text))
    below = (found["below"] or "").strip("/") if found else ""
    if found is None or unsafe(below):
        raise UsageError(
            "this is not an address of a dataset on the Hub",
            where=re.sub("^hf:/+", "hf://", str(text)),  # a path has one slash
            expected="hf://ORG/NAME, hf://ORG/NAME@REVISION or hf://ORG/NAME@REVISION/FOLDER",
        )
    return HubAddress(found["name"], found["revision"] or "main", below)


# What a dataset on the Hub holds.


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


def resolve_commit(address: HubAddress) -> str:
    """Return the current commit of a revision.

    Raises:
        DataError: there is no such dataset or revision, it is not for everyone, or the Hub cannot
            be reached.
    """
    if _SHA.fullmatch(address.revision):
        return address.revision
    path = f"revision/{quote(address.revision, safe='')}"
    with hub_errors(address):
        about = _within(STALL_S, lambda: next(_answers(address, path)))
    commit = about.get("sha") if isinstance(about, dict) else None
    if not isinstance(commit, str) or not _SHA.fullmatch(commit):
        raise _strange(address, f"the commit is {commit!r:.60}")
    return commit


def list_files(address: HubAddress) -> list[RemoteFile]:
    """Return the files of a commit, sorted; no content is downloaded.

    Args:
        address: its revision is a commit.

    Raises:
        DataError: as `resolve_commit`, or a path is one that nothing is ever written to.
    """

    def collect() -> list[RemoteFile]:
        found: list[RemoteFile] = []
        for page in _answers(address, f"tree/{address.revision}?recursive=true&expand=false"):
            if not isinstance(page, list):
                raise _strange(address, "its listing is no list")
            found += [file for entry in page if (file := _listed_file(address, entry))]
            if len(found) > _MOST_FILES:
                raise _strange(address, f"it lists more than {_MOST_FILES:,} files")
        return found

    with hub_errors(address):
        found = _within(_LISTING_S, collect)
    check_names([each.path for each in found], str(address))
    return sorted(found, key=lambda each: each.path)


def _listed_file(address: HubAddress, entry: object) -> RemoteFile | None:
    file: RemoteFile | None = None
    match entry:
        case {"type": "directory"}:
            return None
        case {"type": "file", "path": str(path), "size": int(size), "lfs": {"oid": str(digest)}}:
            file = RemoteFile(path, size, "sha256", digest)
        case {"type": "file", "path": str(path), "size": int(size), "oid": str(digest)}:
            file = RemoteFile(path, size, "git", digest)
    length = {"sha256": 64, "git": 40}.get(file.kind) if file else None
    if not file or not 0 <= file.size < _MOST_BYTES or not re.fullmatch("[0-9a-f]+", file.digest):
        raise _strange(address, f"an entry of its listing is {entry!r:.200}")
    if len(file.digest) != length:
        raise _strange(address, f"the digest of {file.path!r:.100} is {file.digest!r:.100}")
    return file


def _answers(address: HubAddress, path: str) -> Iterator[Any]:
    """Yield the pages of an answer of the Hub's API; following pages are asked of the same server.

    `HfApi` follows links to any server and takes the token along, without an end.
    """
    from huggingface_hub import utils

    hub: Any = utils  # what it exports has no declaration

    headers = hub.build_hf_headers(token=sends_token())
    url = f"{endpoint()}/api/datasets/{address.name}/{path}"
    for _ in range(_MOST_PAGES):
        content = bytearray()
        with hub.http_stream_backoff(
            "GET", url, headers=headers, timeout=_TIMEOUT_S, max_retries=3, retry_on_exceptions=()
        ) as answer:
            for block in answer.iter_bytes():
                content += block
                if len(content) > _PAGE_BYTES:
                    raise _strange(address, f"more than {in_bytes(_PAGE_BYTES)} in a page")
        hub.hf_raise_for_status(answer)
        yield json.loads(content)
        following = answer.links.get("next", {}).get("url")
        if not following:
            return
        url = urljoin(url, urlsplit(following)._replace(scheme="", netloc="").geturl())
    raise _strange(address, f"more than {_MOST_PAGES:,} pages")


def _within(seconds: float, work: Callable[[], Result]) -> Result:
    """Return a result that must come in time; a server that sends a byte now and then never ends.

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
        raise TimeoutError(f"no whole answer within {seconds:g} s") from None
    if error:
        raise error
    return cast(Result, found)


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

        digest = google_crc32c.Checksum()  # type: ignore[no-untyped-call]
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


# What goes wrong on the way.


@contextmanager
def hub_errors(address: HubAddress) -> Iterator[None]:
    """Turn errors of the Hub and the network in the block into `DataError`s with a remedy.

    Raises:
        DataError: in place of any error of the Hub or of the network.
    """
    from huggingface_hub import errors

    _guard_session()
    try:
        yield
    except OmnidataError:
        raise
    except errors.GatedRepoError:
        raise DataError(
            "the dataset is gated: you must accept its licence",
            where=str(address),
            expected=f"a token of a user who accepted it at {_page(address)}",
            remedy="accept the licence there in a browser, then repeat the command with --token "
            "(HF_TOKEN in the environment, or `hf auth login`)",
        ) from None
    except errors.RevisionNotFoundError:
        raise DataError(
            f'the dataset has no revision "{address.revision}"',
            where=str(address),
            expected="a commit, a tag or a branch of it",
            remedy=f"see {_page(address)}/commits/main, or leave the revision out",
        ) from None
    except errors.RepositoryNotFoundError:
        raise DataError(
            "the Hub has no such dataset, or it is private",
            where=str(address),
            expected=f"a dataset at {_page(address)}",
            remedy=_nearest(address) or "check the spelling; for a private dataset, add --token",
        ) from None
    except errors.LocalTokenNotFoundError:
        raise UsageError(
            "no token found",
            where=str(address),
            expected="HF_TOKEN in the environment, or the token that `hf auth login` stores",
            remedy="log in with `hf auth login`, or set HF_TOKEN; public data need no token",
        ) from None
    except errors.OfflineModeIsEnabled:
        raise DataError(
            "HF_HUB_OFFLINE=1 forbids requests to the Hub",
            where=str(address),
            expected="a network",
            remedy="unset HF_HUB_OFFLINE",
        ) from None
    except errors.LocalEntryNotFoundError as error:
        offline = is_offline()
        raise DataError(
            "it is not in the cache, and HF_HUB_OFFLINE=1 forbids requests to the Hub"
            if offline
            else f"the Hub cannot be reached ({_first_line(error)})",
            where=str(address),
            expected="a completely downloaded commit"
            if offline
            else f"an answer from {endpoint()}",
            remedy="unset HF_HUB_OFFLINE, or name a folder"
            if offline
            else "repeat the command when the network is back: it resumes the download",
        ) from None
    except errors.EntryNotFoundError as error:  # not of the cache's
        raise DataError(
            f"a file that the Hub lists is missing ({_first_line(error)})",
            where=str(address),
            expected="every file of the commit",
            remedy="name another revision, or report it to the publisher",
        ) from None
    except errors.HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else "no"
        told = {401: ": the token is invalid", 403: ": the token's owner lacks the permission"}
        raise DataError(
            f"the Hub answers with status {status}{told.get(status, '')}",
            where=str(address),
            expected=f"the requested file, from {endpoint()}",
            remedy="check the permissions of the token"
            if status in told
            else "repeat the command later: it resumes",
        ) from None
    except OSError as error:
        if error.errno is None:  # of the network's
            raise _unreachable(address, error) from None
        raise
    except RuntimeError as error:  # of an upload that failed on the way
        raise DataError(
            f"the Hub refused the upload ({_first_line(error)})",
            where=str(address),
            expected=f"an upload to {endpoint()}",
            remedy="repeat the command: files that arrived are not sent again",
        ) from None
    except ValueError as error:
        raise _strange(address, _first_line(error)) from None
    except Exception as error:
        if type(error).__module__.partition(".")[0] in ("httpx", "httpx2", "httpcore", "requests"):
            raise _unreachable(address, error) from None
        raise


def is_offline() -> bool:
    """Return whether the user forbids requests to the Hub: HF_HUB_OFFLINE=1."""
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def _page(address: HubAddress) -> str:
    return f"{endpoint()}/datasets/{address.name}"


def _nearest(address: HubAddress) -> str:
    from omnidata import registry

    known = []
    for _, task in registry.working():
        for one in task.sources:
            if one.remote and (found := parse_address(one.remote.place)):
                known.append(found.name)
    return "" if address.name in known else suggestion(address.name, known)


def _first_line(error: Exception) -> str:
    return next(filter(None, map(str.strip, str(error).splitlines())), type(error).__name__)[:200]


def _unreachable(address: HubAddress, error: Exception) -> DataError:
    return DataError(
        f"the Hub cannot be reached ({type(error).__name__}: {_first_line(error)})",
        where=str(address),
        expected=f"an answer from {endpoint()}",
        remedy="repeat the command when the network is back: it resumes the download",
    )


def _strange(address: HubAddress, what: str) -> DataError:
    return DataError(
        f"the Hub's answer cannot be used: {what}",
        where=str(address),
        expected=f"a dataset as {endpoint()} serves it",
        remedy="check HF_ENDPOINT, or name another revision",
    )


def _guard_session() -> None:
    """Let the client of `huggingface_hub` send a token to the Hub alone, and name no file outside.

    It follows links to other servers with the token, and makes a file's name of its ETag.
    """
    from huggingface_hub import get_session

    session = get_session()
    hooks = session.event_hooks
    if _keep_token not in hooks["request"]:
        session.event_hooks = {
            "request": [*hooks["request"], _keep_token],
            "response": [*hooks["response"], _check_etag],
        }


def _keep_token(request: Any) -> None:
    if urlsplit(str(request.url))[:2] != urlsplit(endpoint())[:2]:
        request.headers.pop("Authorization", None)


def _check_etag(response: Any) -> None:
    etag = response.headers.get("X-Linked-ETag") or response.headers.get("ETag") or "none"
    if "/resolve/" in response.request.url.path and not _ETAG.fullmatch(etag):
        raise ValueError(f"the ETag of a file is {etag!r:.100}")


# Downloads, several at a time.


def download_files(
    files: Sequence[RemoteFile],
    get: Callable[[RemoteFile, Callable[[int], None]], None],
    where: str,
    progress: Callable[[int], None],
) -> None:
    """Download files, several at a time, and stop at the first error.

    Args:
        files: to download.
        get: downloads a file, checks it and puts it in its place; it is given the file and a
            function that it calls with the bytes received since the last call. That function raises
            an error if they are more than the listing says, or if the download has stopped.
        where: the dataset, for messages.
        progress: called with the bytes received since the last call, which may be negative.

    Raises:
        DataError: a file is longer than listed; nothing has arrived for `STALL_S` seconds.
    """
    waiting: SimpleQueue[RemoteFile] = SimpleQueue()
    arrived: SimpleQueue[int | BaseException | None] = SimpleQueue()
    stopped = threading.Event()
    for file in files:
        waiting.put(file)

    def work() -> None:
        with suppress(Empty):
            while not stopped.is_set():
                file = waiting.get_nowait()
                try:
                    get(file, counter(file))
                    arrived.put(None)
                except BaseException as error:
                    arrived.put(error)
                    return

    def counter(file: RemoteFile) -> Callable[[int], None]:
        left = file.size + _CHUNK

        def count(size: int) -> None:
            nonlocal left
            left -= size
            if stopped.is_set():
                raise InterruptedError("the request was cancelled")
            if left < 0:
                raise DataError(
                    f"{file.path} is longer than the {file.size:,} bytes that the server announced",
                    where=where,
                    expected=f"{file.size:,} bytes",
                    remedy="repeat the command; if the error stays, report it to the publisher",
                )
            arrived.put(size)

        return count

    # Threads that do not keep the process: an interrupt need not wait for a file of gigabytes.
    threads = [threading.Thread(target=work, daemon=True) for _ in files[:_THREADS]]
    for thread in threads:
        thread.start()
    left, last = len(files), time.monotonic()
    try:
        while left:
            try:
                found = arrived.get(timeout=_POLL_S)
            except Empty:
                if time.monotonic() - last < STALL_S:
                    continue
                raise DataError(
                    f"the server has sent next to nothing for {STALL_S:g} s",
                    where=where,
                    expected="a file, or some megabytes of it",
                    remedy="repeat the command when the network is better: it resumes",
                ) from None
            if isinstance(found, BaseException):
                raise found
            last = time.monotonic()
            if found is None:
                left -= 1
            else:
                progress(found)
    finally:
        stopped.set()
        end = time.monotonic() + _JOIN_S
        for thread in threads:  # else they may write while another call goes on
            thread.join(max(0.0, end - time.monotonic()))


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


# A dataset of the Hub as a folder: a snapshot in the Hub's cache.


def snapshot(address: HubAddress, notice: HubNotice = lambda line: None) -> Path:
    """Return the folder of a commit in the Hub's cache; download it if it is missing.

    A revision that can move is resolved once, and the commit is reported. It is part of the
    folder's name, and so of every record of where the data were. Downloaded files are verified
    against the hashes that the Hub lists.

    Args:
        address: of the dataset.
        notice: called with a line about source and size of the download.

    Returns:
        The folder, or the file or folder in it that `below` names.

    Raises:
        DataError: as `resolve_commit` and `list_files`; a file differs from its listing; the
            download is larger than `LARGE`; the disk is full; or nothing is there.
    """
    from huggingface_hub import constants

    notes = cache_folder() / "hub" / address.name
    refs, offline = read_json(notes / "refs.json"), is_offline()
    commit = refs.get(address.revision, address.revision) if offline else resolve_commit(address)
    pinned = replace(address, revision=commit)
    folder = _cached_folder(pinned, required=offline)
    if folder:
        pinned = replace(address, revision=folder.name)
    mark = notes / f"{pinned.revision}.json"
    noted = read_json(mark).get("whole", {})
    # Earlier versions noted no files.
    whole = dict.fromkeys(noted, ()) if isinstance(noted, list) else noted
    paths = whole.get(address.below, whole.get(""))
    if folder and paths is not None and all((folder / path).is_file() for path in paths):
        if offline:
            notice(f"{address} is commit {folder.name}, as the cache has it")
        return _below(address, folder)
    if offline:
        raise DataError(  # other programs download single files into the same folder
            "the cache may be incomplete, and HF_HUB_OFFLINE=1 forbids requests to the Hub",
            where=str(address),
            expected="a dataset that omnidata downloaded completely",
            remedy="name it once without HF_HUB_OFFLINE; or, if you know that nothing is "
            f"missing, name the folder itself: {folder}",
        )
    files = list_files(pinned)
    if address.below:
        files = [e for e in files if f"{e.path}/".startswith(f"{address.below}/")]
    if not files:
        raise _nothing_below(address)
    total = sum(each.size for each in files)
    size = f"{len(files)} files, {in_bytes(total)}"
    notice(f"{address} is commit {commit}: {size}, from {endpoint()}")
    if total > LARGE:
        error = TooLargeError(
            f"the download has {in_bytes(total)}",
            where=str(address),
            expected=f"at most {in_bytes(LARGE)} without a request",
            remedy="name a folder of it, hf://ORG/NAME@REVISION/FOLDER, or download it yourself: "
            f"hf download --repo-type dataset {address.name} --revision {commit} --local-dir DIR",
        )
        below = f"/{address.below}" if address.below else ""
        error.url = f"hf://datasets/{address.name}@{commit}{below}"
        raise error
    check_room(total, Path(constants.HF_HUB_CACHE))
    try:
        _download_to_cache(pinned, files)
    except OSError as error:
        raise DataError(
            f"the Hub's cache cannot be written ({error.strerror})",
            where=constants.HF_HUB_CACHE,
            expected="disk space and the permission to write",
            remedy="free disk space, or set HF_HOME to another folder; the same command resumes "
            "the download",
        ) from None
    mark.parent.mkdir(parents=True, exist_ok=True)
    write_json(mark, {"whole": {**whole, address.below: [each.path for each in files]}})
    write_json(notes / "refs.json", {**refs, address.revision: commit})
    folder = _cached_folder(pinned, required=True)
    assert folder is not None  # else it raises an error
    return _below(address, folder)


def _cached_folder(address: HubAddress, *, required: bool) -> Path | None:
    from huggingface_hub import snapshot_download

    try:
        with hub_errors(address):
            folder = snapshot_download(
                address.name,
                repo_type="dataset",
                revision=address.revision,
                allow_patterns=[],
                local_files_only=True,
            )
    except DataError:
        if required:
            raise
        return None
    return Path(folder)


def _download_to_cache(address: HubAddress, files: Sequence[RemoteFile]) -> None:
    from huggingface_hub import hf_hub_download, utils

    progress_bar: Any = utils.tqdm  # type: ignore[attr-defined]  # it is exported

    def get(file: RemoteFile, count: Callable[[int], None]) -> None:
        path = Path(
            hf_hub_download(
                address.name,
                file.path,
                repo_type="dataset",
                revision=address.revision,
                endpoint=endpoint(),
                token=sends_token(),
                tqdm_class=silent_bar(count),
            )
        )
        try:
            check_digest(path.resolve(), file, str(address))
        except DataError:
            path.unlink(missing_ok=True)
            raise

    total = sum(file.size for file in files)
    with (
        hub_errors(address),
        progress_bar(total=total, unit="B", unit_scale=True, desc="Downloading") as bar,
    ):
        download_files(files, get, str(address), bar.update)


def copy_of(address: HubAddress, names: Sequence[str], notice: HubNotice) -> Path:
    """Copy files of a snapshot into omnidata's cache, since the Hub's cache has links.

    Args:
        address: of the dataset.
        names: of the files; those that are not there are left out.
        notice: as in `snapshot`.

    Raises:
        DataError: as `snapshot`, or none of them is there.
    """
    kept = snapshot(address, notice)
    found = [name for name in names if (kept / name).is_file()]
    if not found:
        raise DataError(
            f"it has no {' and no '.join(names)}",
            where=str(address),
            expected="a dataset with these files",
            remedy=f"see {_page(address)}",
        )
    folder = cache_folder() / "copies" / address.name / kept.name
    folder.mkdir(parents=True, exist_ok=True)
    for name in found:
        copy_file(kept / name, folder / name)
    return folder


def _below(address: HubAddress, folder: Path) -> Path:
    found = folder / address.below if address.below else folder
    if not found.exists():
        raise _nothing_below(address)
    return found


def _nothing_below(address: HubAddress) -> DataError:
    return DataError(
        f'there is nothing called "{address.below}" in it' if address.below else "it has no files",
        where=str(address),
        expected="a folder or a file of the dataset",
        remedy=f"see {_page(address)}/tree/{address.revision}",
    )
