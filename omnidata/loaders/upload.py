"""Upload files to a dataset on the Hub, in one commit, so it is never half there.

Files that are there already are not sent again: an interrupted call resumes, and a second call has
nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from omnidata.errors import DataError, UsageError
from omnidata.files import ANY, check_file
from omnidata.loaders import hub, transfers

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

_MOST_REQUESTS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Upload:
    """The files of a push, sent or to be sent.

    Attributes:
        name: "ORG/NAME".
        server: its URL.
        new: whether the dataset is created first.
        sent: path -> bytes of the files that change.
        removed: paths that earlier pushes of the same kind have left.
        url: of the commit or the pull request; empty if nothing was sent.
    """

    name: str
    server: str
    new: bool
    sent: Mapping[str, int]
    removed: Sequence[str]
    url: str = ""

    def lines(self) -> Sequence[str]:
        """Return lines that describe the push."""
        size = transfers.in_bytes(sum(self.sent.values()))
        return [
            f"{self.name} at {self.server}{', which is new' if self.new else ''}",
            f"  {len(self.sent)} files, {size}; {len(self.removed)} of an earlier push removed",
        ]


def check_name(name: str) -> None:
    """Refuse a name that is not "ORG/NAME".

    Raises:
        UsageError: it is not.
    """
    if not hub.is_name(name):
        raise UsageError(
            "this is not a name of a dataset on the Hub",
            where=name,
            expected="ORG/NAME",
            remedy="put your account or organisation before the name, e.g. me/demo",
        )


def upload(
    name: str,
    files: Mapping[str, Path | bytes],
    title: str,
    *,
    is_ours: Callable[[Sequence[str]], bool],
    stale: Callable[[str], bool],
    private: bool = False,
    pull_request: bool = False,
    dry_run: bool = False,
) -> Upload:
    """Commit files to a dataset on the Hub, which is created if needed.

    Args:
        name: "ORG/NAME".
        files: path there -> the file, or its content.
        title: of the commit and of the pull request; another call with this title continues the
            pull request.
        is_ours: returns whether a dataset of these paths may be changed without a pull request.
        stale: returns whether a path is one of an earlier push, which is removed if it is none of
            `files`.
        private: create a private dataset.
        pull_request: open a pull request.
        dry_run: only list the files to send.

    Raises:
        UsageError: there is no token, or something else has the name.
        DataError: a file is a link; the Hub cannot be reached, or refuses.
    """
    address = hub.HubAddress(name)
    for path in files.values():
        if isinstance(path, Path):
            check_link(path)
            check_file(path, ANY)
    with hub.sending_token(), hub.hub_errors(address):
        client = hub.api()
        new = not client.repo_exists(name, repo_type="dataset")
        if new and dry_run:
            sizes = {path: _size(each) for path, each in files.items()}
            return Upload(name, hub.endpoint(), new, sizes, ())
        if new:
            client.create_repo(name, repo_type="dataset", private=private, exist_ok=True)
        open_request = _open_pull_request(address, title) if pull_request else None
        revision = open_request or "main"
        base = hub.resolve_commit(hub.HubAddress(name, revision))
        there = {each.path: each for each in hub.list_files(hub.HubAddress(name, base))}
        shown = [path for path in there if not transfers.is_hidden(path)]
        if shown and not pull_request and not is_ours(shown):
            raise UsageError(
                "the Hub has another dataset of this name",
                where=str(address),
                expected="a new name, or the dataset of an earlier push",
                remedy="choose another name, or propose the change with --pr",
            )
        sent = {p: each for p, each in files.items() if not _is_there(each, there.get(p))}
        removed = [path for path in shown if path not in files and stale(path)]
        sizes = {path: _size(each) for path, each in sent.items()}
        found = Upload(name, hub.endpoint(), new, sizes, removed)
        if dry_run or not (sent or removed):
            return found
        done = client.create_commit(
            name,
            _operations(sent, removed),
            commit_message=title,
            repo_type="dataset",
            revision=revision,
            create_pr=pull_request and open_request is None,
            parent_commit=base,
        )
    return replace(found, url=str(done.pr_url or done.commit_url))


def _operations(
    sent: Mapping[str, Path | bytes], removed: Sequence[str]
) -> list[CommitOperationAdd | CommitOperationDelete]:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    return [
        *(
            CommitOperationAdd(path, str(each) if isinstance(each, Path) else each)
            for path, each in sent.items()
        ),
        *map(CommitOperationDelete, removed),
    ]


def _open_pull_request(address: hub.HubAddress, title: str) -> str | None:
    requests = hub.api().get_repo_discussions(
        address.name,
        repo_type="dataset",
        discussion_type="pull_request",
        discussion_status="open",
    )
    some = islice(requests, _MOST_REQUESTS)  # a list may have no end
    return next((f"refs/pr/{each.num}" for each in some if each.title == title), None)


def check_link(path: Path) -> None:
    """Refuse a link, as the file that it leads to would be sent.

    Raises:
        DataError: it is one.
    """
    if path.is_symlink():
        raise DataError(
            "this is a link, and its target would be sent",
            where=str(path),
            expected="regular files",
            remedy="copy the folder with its links resolved (cp -rL), and push the copy",
        )


def _size(content: Path | bytes) -> int:
    return content.stat().st_size if isinstance(content, Path) else len(content)


def _is_there(content: Path | bytes, there: transfers.RemoteFile | None) -> bool:
    if there is None or _size(content) != there.size:
        return False
    return transfers.digest_of(content, there.kind) == there.digest
