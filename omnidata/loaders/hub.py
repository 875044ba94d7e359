"""Datasets of the Hugging Face Hub as data: `hf://ORG/NAME[@REVISION][/FOLDER]`.

They are downloaded into the Hub's cache, which other programs share, and read from there. Nothing
is sent but what reading needs: no token, unless the user asks for it (`sending_token`).
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Literal

from omnidata.errors import DataError, OmnidataError, UsageError, suggestion
from omnidata.loaders.archives import RESERVE
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

_CHUNK: Final = 1024**2
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
        kind: of the digest: "sha256", "git" (SHA-1 over a head and the content), "crc32c", or ""
            for none.
        digest: of the server, in hexadecimal.
    """

    path: str
    size: int
    kind: Literal["sha256", "git", "crc32c", ""] = ""
    digest: str = ""


def resolve_commit(address: HubAddress) -> str:
    """Return the current commit of a revision.

    Raises:
        DataError: there is no such dataset or revision, it is not for everyone, or the Hub cannot
            be reached.
    """
    if _SHA.fullmatch(address.revision):
        return address.revision
    with hub_errors(address):
        told = api().repo_info(address.name, repo_type="dataset", revision=address.revision)
    if not told.sha or not _SHA.fullmatch(told.sha):
        raise _strange(address, f"the commit is {told.sha!r:.60}")
    return str(told.sha)


def list_files(address: HubAddress) -> list[RemoteFile]:
    """Return the files of a commit, sorted; no content is downloaded.

    Args:
        address: its revision is a commit.

    Raises:
        DataError: as `resolve_commit`, or a path is one that nothing is ever written to.
    """
    from huggingface_hub.hf_api import RepoFile

    found = []
    with hub_errors(address):
        listed = api().list_repo_tree(
            address.name, recursive=True, revision=address.revision, repo_type="dataset"
        )
        for entry in listed:
            if not isinstance(entry, RepoFile):
                continue
            if entry.lfs is not None:
                found.append(RemoteFile(entry.path, entry.size, "sha256", entry.lfs.sha256))
            else:
                found.append(RemoteFile(entry.path, entry.size, "git", entry.blob_id))
    check_names([each.path for each in found], str(address))
    return sorted(found, key=lambda each: each.path)


def check_names(paths: Sequence[str], where: str) -> None:
    """Refuse paths that leave the folder, enter `.git`, or are the same for a file system.

    Raises:
        DataError: there is one.
    """
    seen: dict[str, str] = {}
    for path in paths:
        why = unsafe(path)
        if not why and (not path.isprintable() or "\\" in path or path != str(PurePosixPath(path))):
            why = "the path is not a plain name"
        if not why and ".git" in PurePosixPath(path.casefold()).parts:
            why = "the path is inside a folder of git"
        if not why and (other := seen.setdefault(path.casefold(), path)) != path:
            why = f"it and {other!r:.100} would be the same file"
        if why:
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


def digest_of(path: Path, kind: str) -> str:
    """Return a file's digest, as in `RemoteFile`."""
    if kind == "crc32c":
        import google_crc32c

        checksum: Any = google_crc32c
        value = 0
        with path.open("rb") as file:
            while block := file.read(_CHUNK):
                value = checksum.extend(value, block)
        return f"{value:08x}"
    digest = hashlib.sha1() if kind == "git" else hashlib.sha256()
    if kind == "git":
        digest.update(b"blob %d\0" % path.stat().st_size)
    with path.open("rb") as file:
        while block := file.read(_CHUNK):
            digest.update(block)
    return digest.hexdigest()


def digest_of_bytes(content: bytes, kind: Literal["sha256", "git", "crc32c", ""]) -> str:
    """Return the digest of a content, of the kinds that the Hub uses."""
    if kind == "git":
        return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    return hashlib.sha256(content).hexdigest()


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
        for one in task.card.sources:
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
        The folder, or what `below` names in it.

    Raises:
        DataError: as `resolve_commit` and `list_files`; a file came otherwise than it is listed;
            it is larger than `LARGE`; the disk is full; or nothing is there.
    """
    from huggingface_hub import constants, snapshot_download

    options: dict[str, Any] = {"repo_type": "dataset", "token": sends_token()}
    kept_notes = cache_folder() / "hub" / address.name
    chosen = (
        [_escape_pattern(address.below), f"{_escape_pattern(address.below)}/*"]
        if address.below
        else None
    )
    refs = kept_notes / "refs.json"
    if is_offline():
        known = read_json(refs).get(address.revision, address.revision)
        with hub_errors(address):
            kept = snapshot_download(
                address.name,
                revision=known,
                allow_patterns=chosen,
                local_files_only=True,
                **options,
            )
        if not _is_whole(address, read_json(kept_notes / f"{Path(kept).name}.json")):
            raise DataError(  # other programs download single files into the same folder
                "the cache may be incomplete, and HF_HUB_OFFLINE=1 forbids requests to the Hub",
                where=str(address),
                expected="a dataset that omnidata downloaded completely",
                remedy="name it once without HF_HUB_OFFLINE; or, if you know that nothing is "
                f"missing, name the folder itself: {kept}",
            )
        notice(f"{address} is commit {Path(kept).name}, as the cache has it")
        return _below(address, Path(kept))
    commit = resolve_commit(address)
    pinned = HubAddress(address.name, commit, address.below)
    mark = kept_notes / f"{commit}.json"
    noted = read_json(mark)
    if _is_whole(address, noted):
        with hub_errors(pinned):
            try:
                kept = snapshot_download(
                    address.name,
                    revision=commit,
                    allow_patterns=chosen,
                    local_files_only=True,
                    **options,
                )
                return _below(address, Path(kept))
            except (OSError, ValueError):
                pass  # somebody has emptied the cache
    files = [
        each
        for each in list_files(pinned)
        if chosen is None or any(fnmatch.fnmatchcase(each.path, pattern) for pattern in chosen)
    ]
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
        with hub_errors(pinned):
            kept = snapshot_download(
                address.name, revision=commit, allow_patterns=chosen, endpoint=endpoint(), **options
            )
    except OSError as error:
        raise DataError(
            f"the Hub's cache cannot be written ({error.strerror})",
            where=constants.HF_HUB_CACHE,
            expected="disk space and the permission to write",
            remedy="free disk space, or set HF_HOME to another folder; the same command "
            "resumes the "
            "download",
        ) from None
    for each in files:
        link = Path(kept, each.path)
        try:
            check_digest(link.resolve(), each, str(pinned))
        except DataError:
            link.unlink(missing_ok=True)
            raise
    mark.parent.mkdir(parents=True, exist_ok=True)
    write_json(mark, {"whole": sorted({*noted.get("whole", []), address.below})})
    write_json(refs, {**read_json(refs), address.revision: commit})
    return _below(address, Path(kept))


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


def _escape_pattern(path: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", path)


def _is_whole(address: HubAddress, noted: Mapping[str, Any]) -> bool:
    done = noted.get("whole", [])
    return address.below in done or "" in done


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
