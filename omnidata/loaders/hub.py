"""Datasets of the Hugging Face Hub as data: `hf://ORG/NAME[@REVISION][/FOLDER]`.

They are downloaded into the Hub's cache, which other programs share, and read from there. Nothing
is sent but what reading needs: no token, unless the user asks for it (`sending_token`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urljoin, urlsplit

from omnidata.errors import DataError, OmnidataError, UsageError, suggestion
from omnidata.loaders import transfers
from omnidata.loaders.transfers import RemoteFile, in_bytes
from omnidata.media import unsafe
from omnidata.remote import cache_folder, sends_token
from omnidata.remote import sending_token as sending_token
from omnidata.storage import copy_file, read_json, write_json

if TYPE_CHECKING:
    from huggingface_hub import HfApi

ENDPOINT: Final = "https://huggingface.co"
LARGE: Final = 10_000_000_000
"""Bytes; larger downloads must be confirmed."""
HubNotice = Callable[[str], None]
"""Called with a line about the work in progress."""

_ETAG: Final = re.compile(r'(W/)?"?\w[\w.:+-]*"?')
_SHA: Final = re.compile(r"[0-9a-f]{40}")
_NAME: Final = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_ADDRESS: Final = re.compile(
    # `Path` makes one slash of two.
    r"hf:/{1,2}(?:datasets/)?(?P<name>[\w.-]+/[\w.-]+?)(?:@(?P<revision>[^/]+))?(?:/(?P<below>.*))?"
)


class TooLargeError(UsageError):
    """A dataset is too large to be downloaded as a whole without a confirmation.

    Attributes:
        url: of the dataset, whose files are fetched one by one when they are read.
    """

    url: str = ""


def endpoint() -> str:
    """Return the Hub's URL: HF_ENDPOINT in the environment, or the public one."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or ENDPOINT


def api() -> HfApi:
    """Return the Hub's client, with a token if the user has asked to send it."""
    from huggingface_hub import HfApi

    return HfApi(endpoint=endpoint(), token=sends_token())


def auth_headers() -> dict[str, str]:
    """Return the headers of requests to the Hub, with a token if the user has asked to send it."""
    from huggingface_hub import utils

    make = utils.build_hf_headers  # type: ignore[attr-defined]  # it is exported
    headers: dict[str, str] = make(token=sends_token())
    return headers


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


# The commits and files of a dataset.


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
        about = transfers.within(transfers.STALL_S, lambda: next(_pages(address, path)))
    commit = about.get("sha") if isinstance(about, dict) else None
    if not isinstance(commit, str) or not _SHA.fullmatch(commit):
        raise DataError(
            f"the Hub's answer cannot be used: the commit is {commit!r:.60}",
            where=str(address),
            expected=f"a dataset as {endpoint()} serves it",
            remedy="check HF_ENDPOINT, or name another revision",
        )
    return commit


def list_files(address: HubAddress) -> list[RemoteFile]:
    """Return the files of a commit, sorted; no content is downloaded.

    Args:
        address: its revision is a commit.

    Raises:
        DataError: as `resolve_commit`, or a path is one that nothing is ever written to.
    """

    def read(page: Any) -> list[RemoteFile]:
        if not isinstance(page, list):
            raise ValueError("its list of files is none")
        found = []
        for entry in page:
            match entry:
                case {"type": "directory"}:
                    pass
                case {"type": "file", "path": str(path), "size": int(size), "lfs": dict(large)}:
                    found.append(RemoteFile(path, size, "sha256", str(large.get("oid"))))
                case {"type": "file", "path": str(path), "size": int(size), "oid": str(digest)} if (
                    entry.get("lfs") is None
                ):
                    found.append(RemoteFile(path, size, "git", digest))
                case _:
                    raise ValueError(f"it lists {entry!r:.200}")
        return found

    with hub_errors(address):
        pages = _pages(address, f"tree/{address.revision}?recursive=true&expand=false")
        found = transfers.collect_files(pages, read)
    transfers.check_names([each.path for each in found], str(address))
    return found


def _pages(address: HubAddress, path: str) -> Iterator[Any]:
    url = f"{endpoint()}/api/datasets/{address.name}/{path}"

    def following(answer: Any, _: Any) -> str:  # on the same server, see `_check_answer`
        return str(answer.links.get("next", {}).get("url") or "")

    return transfers.get_pages(url, following, **auth_headers())


# Errors.


@contextmanager
def hub_errors(address: HubAddress) -> Iterator[None]:
    """Turn errors of the Hub and the network in the block into `DataError`s with a remedy.

    Raises:
        DataError: in place of any error of the Hub or of the network.
        UsageError: there is no token to send.
    """
    from huggingface_hub.errors import LocalTokenNotFoundError

    _guard_session()
    try:
        yield
    except OmnidataError:
        raise
    except Exception as error:
        if (explanation := _explanation(address, error)) is None:
            raise
        what, expected, remedy = explanation
        kind = UsageError if isinstance(error, LocalTokenNotFoundError) else DataError
        raise kind(what, where=str(address), expected=expected, remedy=remedy) from None


def _explanation(address: HubAddress, error: Exception) -> tuple[str, str, str] | None:
    """Return what has happened, what was expected, and a remedy; None for errors of the system."""
    from huggingface_hub import errors

    page, line = f"{endpoint()}/datasets/{address.name}", transfers.first_line(error)
    match error:
        case errors.GatedRepoError():
            return (
                "the dataset is gated: you must accept its licence",
                f"a token of a user who accepted it at {page}",
                "accept the licence there in a browser, then repeat the command with --token "
                "(HF_TOKEN in the environment, or `hf auth login`)",
            )
        case errors.RevisionNotFoundError():
            return (
                f'the dataset has no revision "{address.revision}"',
                "a commit, a tag or a branch of it",
                f"see {page}/commits/main, or leave the revision out",
            )
        case errors.RepositoryNotFoundError():
            return (
                "the Hub has no such dataset, or it is private",
                f"a dataset at {page}",
                _nearest(address) or "check the spelling; for a private dataset, add --token",
            )
        case errors.LocalTokenNotFoundError():
            return (
                "no token found",
                "HF_TOKEN in the environment, or the token that `hf auth login` stores",
                "log in with `hf auth login`, or set HF_TOKEN; public data need no token",
            )
        case errors.OfflineModeIsEnabled():
            return (
                "HF_HUB_OFFLINE=1 forbids requests to the Hub",
                "a network",
                "unset HF_HUB_OFFLINE",
            )
        case errors.LocalEntryNotFoundError() if is_offline():
            return (
                "it is not in the cache, and HF_HUB_OFFLINE=1 forbids requests to the Hub",
                "a completely downloaded commit",
                "unset HF_HUB_OFFLINE, or name a folder",
            )
        case errors.EntryNotFoundError() if not isinstance(error, errors.LocalEntryNotFoundError):
            return (
                f"a file that the Hub lists is missing ({line})",
                "every file of the commit",
                "name another revision, or report it to the publisher",
            )
        case errors.HfHubHTTPError():
            status = error.response.status_code if error.response is not None else "no"
            reasons = {
                401: ": the token is invalid",
                403: ": the token's owner lacks the permission",
            }
            return (
                f"the Hub answers with status {status}{reasons.get(status, '')}",
                f"the requested file, from {endpoint()}",
                "check the permissions of the token"
                if status in reasons
                else "repeat the command later: it resumes",
            )
    if reason := transfers.network_error(error):
        return (
            f"the Hub cannot be reached ({reason})",
            f"an answer from {endpoint()}",
            "repeat the command when the network is back: it resumes the download",
        )
    if isinstance(error, ValueError):
        return (
            f"the Hub's answer cannot be used: {line}",
            f"a dataset as {endpoint()} serves it",
            "check HF_ENDPOINT, or name another revision",
        )
    if isinstance(error, RuntimeError):  # of an upload that failed on the way
        return (
            f"the Hub refused the upload ({line})",
            f"an upload to {endpoint()}",
            "repeat the command: files that arrived are not sent again",
        )
    return None


def is_offline() -> bool:
    """Return whether the user forbids requests to the Hub: HF_HUB_OFFLINE=1."""
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def _nearest(address: HubAddress) -> str:
    from omnidata import registry

    known = []
    for _, task in registry.working():
        for one in task.card.sources:
            if one.remote and (found := parse_address(one.remote.place)):
                known.append(found.name)
    return "" if address.name in known else suggestion(address.name, known)


def _guard_session() -> None:
    """Let the client of `huggingface_hub` check answers, in this process from now on.

    It asks any server that a list links to for the next page, with the token, and makes a file's
    name of its ETag.
    """
    from huggingface_hub import get_session

    session = get_session()
    hooks = session.event_hooks
    if _check_answer not in hooks["response"]:
        session.event_hooks = {**hooks, "response": [*hooks["response"], _check_answer]}


def _check_answer(answer: Any) -> None:
    url, path = str(answer.request.url), answer.request.url.path
    if "/api/" in path and (link := answer.links.get("next", {}).get("url")):
        following = urljoin(url, urlsplit(link)._replace(scheme="", netloc="").geturl())
        if urlsplit(following)[:2] != urlsplit(url)[:2]:
            raise ValueError(f"the next page is at {link!r:.100}")
        answer.headers["Link"] = f'<{following}>; rel="next"'
    etag = answer.headers.get("X-Linked-ETag") or answer.headers.get("ETag") or "none"
    if "/resolve/" in path and not _ETAG.fullmatch(etag):
        raise ValueError(f"the ETag of a file is {etag!r:.100}")


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
            disk is full; or nothing is there.
        TooLargeError: the download is larger than `LARGE`.
    """
    notes = cache_folder() / "hub" / address.name
    refs, offline = read_json(notes / "refs.json"), is_offline()
    commit = refs.get(address.revision, address.revision) if offline else resolve_commit(address)
    pinned = replace(address, revision=commit)
    folder = _cached_folder(pinned, required=offline)
    if folder:
        pinned = replace(address, revision=folder.name)
    mark = notes / f"{pinned.revision}.json"
    whole = _read_whole(mark)
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
    files = [
        each
        for each in list_files(pinned)
        if not address.below or f"{each.path}/".startswith(f"{address.below}/")
    ]
    if not files:
        raise _nothing_below(address)
    total = sum(each.size for each in files)
    size = f"{len(files)} files, {in_bytes(total)}"
    notice(f"{address} is commit {commit}: {size}, from {endpoint()}")
    if total > LARGE:
        raise _too_large(address, commit, total)
    _download_to_cache(pinned, files)
    mark.parent.mkdir(parents=True, exist_ok=True)
    write_json(mark, {"whole": {**whole, address.below: [each.path for each in files]}})
    write_json(notes / "refs.json", {**refs, address.revision: commit})
    folder = _cached_folder(pinned, required=True)
    assert folder is not None  # else it raises an error
    return _below(address, folder)


def _read_whole(mark: Path) -> Mapping[str, Sequence[str]]:
    """Return the folders of a commit that were downloaded completely, each with its files."""
    noted = read_json(mark).get("whole", {})
    # Earlier versions noted no files.
    return dict.fromkeys(noted, ()) if isinstance(noted, list) else noted


def _too_large(address: HubAddress, commit: str, total: int) -> TooLargeError:
    error = TooLargeError(
        f"the download has {in_bytes(total)}",
        where=str(address),
        expected=f"at most {in_bytes(LARGE)} without a request",
        remedy="name a folder of it, hf://ORG/NAME@REVISION/FOLDER, or download it yourself: "
        f"hf download --repo-type dataset {address.name} --revision {commit} --local-dir DIR",
    )
    below = f"/{address.below}" if address.below else ""
    error.url = f"hf://datasets/{address.name}@{commit}{below}"
    return error


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
    from huggingface_hub import constants, hf_hub_download, utils

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
                tqdm_class=transfers.silent_bar(count),
            )
        )
        try:
            transfers.check_digest(path.resolve(), file, str(address))
        except DataError:
            path.unlink(missing_ok=True)
            raise

    total = sum(file.size for file in files)
    transfers.check_room(total, Path(constants.HF_HUB_CACHE))
    try:
        with (
            hub_errors(address),
            progress_bar(total=total, unit="B", unit_scale=True, desc="Downloading") as bar,
        ):
            transfers.download_files(files, get, str(address), bar.update)
    except OSError as error:
        raise DataError(
            f"the Hub's cache cannot be written ({error.strerror})",
            where=constants.HF_HUB_CACHE,
            expected="disk space and the permission to write",
            remedy="free disk space, or set HF_HOME to another folder; the same command resumes "
            "the download",
        ) from None


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
            remedy=f"see {endpoint()}/datasets/{address.name}",
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
        remedy=f"see {endpoint()}/datasets/{address.name}/tree/{address.revision}",
    )
