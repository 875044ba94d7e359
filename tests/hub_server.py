"""A server on loopback that speaks the Hub's protocol, and that of public buckets.

The real clients, `huggingface_hub` and `datasets`, read from it and push to it. It serves what
commits hold, counts what it is asked, and goes wrong where it is told to.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import google_crc32c
import pytest

Files = Mapping[str, bytes]
TOKEN = "hf_test_0123456789"
_LFS = (".png", ".jpg", ".zip", ".z01", ".z02", ".tar", ".parquet", ".mp4", ".wav", ".gz")


@dataclass
class Repo:
    """A dataset.

    Attributes:
        commits: by SHA, the files of each.
        refs: names of branches and pull requests, and their commits.
        gated: whether a licence must be accepted first.
        private: whether only who has the token sees it.
        messages: of the commits that were pushed.
        requests: titles of pull requests, from number 1.
    """

    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    gated: bool = False
    private: bool = False
    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def commit(self, files: Files, ref: str = "main") -> str:
        """Add a commit, whose SHA follows from what it holds and what came before."""
        digest = hashlib.sha1(self.refs.get(ref, "").encode())
        for path, content in sorted(files.items()):
            digest.update(path.encode("utf-8", "surrogateescape") + b"\0" + content)
        sha = digest.hexdigest()
        self.commits[sha] = dict(files)
        self.refs[ref] = sha
        return sha

    @property
    def files(self) -> dict[str, bytes]:
        """Of the branch `main`."""
        return self.commits[self.refs["main"]]


@dataclass
class Answer:
    """An answer that no real server gives; the connection ends with it.

    Attributes:
        body: its pieces.
        headers: of it.
        status: of it.
    """

    body: Iterable[bytes] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200


@dataclass
class Hub:
    """The server's state; a test changes it while the server runs.

    Attributes:
        url: of the server.
        repos: by "ORG/NAME".
        buckets: of a public object store, by name.
        seen: the requests, "METHOD PATH".
        tokens: what was sent as `Authorization`, of every request that had it.
        ranges: what was asked for of files, in part.
        cuts: path -> bytes after which the connection is cut, once.
        altered: path -> what is served in place of the file; the listing stays as it was.
        lost: paths that are listed and not there.
        blobs: uploaded large files, by SHA-256.
        instead: path of a URL -> an answer that is given in place of any other.
    """

    url: str = ""
    repos: dict[str, Repo] = field(default_factory=dict)
    buckets: dict[str, dict[str, bytes]] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    ranges: list[str] = field(default_factory=list)
    cuts: dict[str, int] = field(default_factory=dict)
    altered: dict[str, bytes] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    blobs: dict[str, bytes] = field(default_factory=dict)
    instead: dict[str, Answer] = field(default_factory=dict)

    def add(self, name: str, files: Files, **about: Any) -> str:
        """Add a dataset with one commit; its SHA."""
        self.repos[name] = Repo(**about)
        return self.repos[name].commit(files)

    def reads(self, path: str) -> int:
        """How often the content of a file was asked for."""
        return sum(line.startswith("GET ") and line.endswith(f"/{path}") for line in self.seen)


def files_of(folder: Path) -> dict[str, bytes]:
    """What a folder holds, by path."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


class _AnswerError(Exception):
    def __init__(self, status: int, code: str = "", body: Any = None) -> None:
        self.status, self.code, self.body = status, code, body


def _is_lfs(path: str) -> bool:
    return path.endswith(_LFS)


def _blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _oid(path: str, content: bytes) -> str:
    return hashlib.sha256(content).hexdigest() if _is_lfs(path) else _blob(content)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer takes 40 ms
    hub: Hub

    def log_message(self, format: str, *args: Any) -> None:
        return

    def _handle(self) -> None:
        parts = urlsplit(self.path)
        path = unquote(parts.path, errors="surrogateescape")
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        self.hub.seen.append(f"{self.command} {path}")
        if authorization := self.headers.get("Authorization"):
            self.hub.tokens.append(authorization)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        if odd := self.hub.instead.get(path):
            self.send_response(odd.status)
            for name, value in {"Connection": "close", **odd.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(ConnectionError):  # of a client that has had enough
                self.wfile.writelines(odd.body if self.command != "HEAD" else ())
            return
        try:
            self._route(path, query, body)
        except _AnswerError as answer:
            content = b"" if answer.body is None else json.dumps(answer.body).encode()
            headers = {"Content-Type": "application/json"}
            if answer.code:
                headers |= {"X-Error-Code": answer.code, "X-Error-Message": answer.code}
            self._send(answer.status, content, headers)

    do_GET = do_HEAD = do_POST = do_PUT = _handle  # noqa: N815  the names that the library calls

    def _send(self, status: int, content: bytes, headers: Mapping[str, str] = {}) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _route(self, path: str, query: Mapping[str, str], body: bytes) -> None:
        if match := re.fullmatch(r"/storage/v1/b/([^/]+)/o(?:/(.+))?", path):
            self._bucket(match[1], match[2], query)
        elif path == "/api/validate-yaml":
            raise _AnswerError(200, body={"errors": [], "warnings": []})
        elif path == "/api/repos/create":
            self._create(json.loads(body))
        elif match := re.fullmatch(r"/lfs/([0-9a-f]{64})", path):
            self.hub.blobs[match[1]] = body
            raise _AnswerError(200)
        elif match := re.fullmatch(r"/datasets/([^/]+/[^/]+)\.git/info/lfs/objects/batch", path):
            self._batch(json.loads(body))
        elif match := re.fullmatch(r"/datasets/([^/]+/[^/]+)/resolve/(.+)", path):
            self._resolve(self._repo(match[1], content=True), match[2])
        elif match := re.fullmatch(r"/api/datasets/([^/]+/[^/]+)(?:/(.*))?", path):
            self._api(match[1], self._repo(match[1]), match[2] or "", query, body)
        else:
            raise _AnswerError(404, "RepoNotFound")

    def _repo(self, name: str, *, content: bool = False) -> Repo:
        repo, known = self.hub.repos.get(name), self.headers.get("Authorization") is not None
        if repo is None or (repo.private and not known):
            raise _AnswerError(401 if not known else 404, "RepoNotFound")
        if repo.gated and content:
            raise _AnswerError(403 if known else 401, "GatedRepo")
        return repo

    def _commit(self, repo: Repo, revision: str) -> str:
        sha = repo.refs.get(revision, revision)
        if sha not in repo.commits:
            raise _AnswerError(404, "RevisionNotFound")
        return sha

    def _api(self, name: str, repo: Repo, rest: str, query: Mapping[str, str], body: bytes) -> None:
        verb, _, rest = rest.partition("/")
        if verb in ("", "revision"):
            sha = self._commit(repo, rest or "main")
            names = [{"rfilename": path} for path in repo.commits[sha]]
            about = {"id": name, "sha": sha, "siblings": names, "private": repo.private}
            raise _AnswerError(200, body=about | {"gated": "auto" if repo.gated else False})
        if verb == "tree":
            self._tree(repo, rest, recursive=query.get("recursive", "").lower() == "true")
        elif verb == "preupload":
            asked = json.loads(body)["files"]
            modes = [{"path": each["path"], "shouldIgnore": False} for each in asked]
            for each in modes:
                each["uploadMode"] = "lfs" if _is_lfs(each["path"]) else "regular"
                each["oid"] = self._there(repo, rest, each["path"])
            raise _AnswerError(200, body={"files": modes})
        elif verb == "commit":
            self._push(name, repo, rest, query, body)
        elif verb == "discussions":
            if self.command == "POST":
                repo.requests.append(json.loads(body)["title"])
                repo.refs[f"refs/pr/{len(repo.requests)}"] = repo.refs["main"]
                raise _AnswerError(200, body={"num": len(repo.requests)})
            raise _AnswerError(200, body=_discussions(name, repo))
        else:
            raise _AnswerError(404, "EntryNotFound")

    def _there(self, repo: Repo, revision: str, path: str) -> str | None:
        content = repo.commits.get(repo.refs.get(revision, ""), {}).get(path)
        return None if content is None else _oid(path, content)

    def _tree(self, repo: Repo, rest: str, *, recursive: bool) -> None:
        revision, folder = rest, ""
        if rest not in repo.refs and "/" in rest:
            revision, _, folder = rest.partition("/")
        files = repo.commits[self._commit(repo, revision)]
        entries: dict[str, dict[str, Any]] = {}
        for path, content in files.items():
            if folder and not path.startswith(folder + "/"):
                continue
            below = path[len(folder) + 1 if folder else 0 :]
            above = below.split("/")[:-1]
            if above and not recursive:
                top = "/".join(filter(None, (folder, above[0])))
                entries[top] = {"type": "directory", "oid": "0" * 40, "size": 0, "path": top}
                continue
            size = len(content)
            entry = {"type": "file", "oid": _blob(content), "size": size, "path": path}
            if _is_lfs(path):
                entry["lfs"] = {"oid": _oid(path, content), "size": size, "pointerSize": 130}
            entries[path] = entry
        if folder and not entries:
            raise _AnswerError(404, "EntryNotFound")
        raise _AnswerError(200, body=list(entries.values()))

    def _resolve(self, repo: Repo, rest: str) -> None:
        refs = [ref for ref in repo.refs if rest.startswith(ref + "/")]
        revision, _, path = rest.partition("/")
        if refs:
            revision = max(refs, key=len)
            path = rest[len(revision) + 1 :]
        sha = self._commit(repo, revision)
        if path not in repo.commits[sha] or path in self.hub.lost:
            raise _AnswerError(404, "EntryNotFound")
        content = repo.commits[sha][path]
        about = {"ETag": f'"{_oid(path, content)}"', "X-Repo-Commit": sha}
        self._content(path, self.hub.altered.get(path, content), about)

    def _content(self, path: str, content: bytes, headers: dict[str, str]) -> None:
        headers = {**headers, "Accept-Ranges": "bytes"}
        status = 200
        if asked := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or ""):
            self.hub.ranges.append(asked[0])
            start, size = int(asked[1]), len(content)
            if start >= size and size:
                raise _AnswerError(416)
            end = min(int(asked[2] or size - 1), size - 1)
            headers["Content-Range"] = f"bytes {start}-{end}/{size}"
            content, status = content[start : end + 1], 206
        if self.command == "GET" and path in self.hub.cuts:
            headers["Content-Length"] = str(len(content))
            content = content[: self.hub.cuts.pop(path)]
            self.close_connection = True
        self._send(status, content, headers)

    def _bucket(self, bucket: str, name: str | None, query: Mapping[str, str]) -> None:
        objects = self.hub.buckets.get(bucket)
        if objects is None:
            raise _AnswerError(404)
        if name is None:
            named = sorted(path for path in objects if path.startswith(query.get("prefix", "")))
            first = int(query.get("pageToken", "0"))
            page = named[first : first + 2]  # so small that there is more than one
            items = [_object(path, objects[path]) for path in page]
            more = {"nextPageToken": str(first + 2)} if named[first + 2 :] else {}
            raise _AnswerError(200, body={"items": items, **more})
        if name not in objects or name in self.hub.lost:
            raise _AnswerError(404)
        self._content(name, self.hub.altered.get(name, objects[name]), {})

    def _create(self, asked: Mapping[str, Any]) -> None:
        name = f"{asked['organization']}/{asked['name']}"
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            raise _AnswerError(401, body={"error": "Invalid username or password."})
        if name in self.hub.repos:
            raise _AnswerError(409, body={"url": f"{self.hub.url}/datasets/{name}"})
        self.hub.add(name, {}, private=asked.get("visibility") == "private")
        raise _AnswerError(200, body={"url": f"{self.hub.url}/datasets/{name}", "name": name})

    def _batch(self, asked: Mapping[str, Any]) -> None:
        objects = []
        for each in asked["objects"]:
            entry = dict(each)
            if each["oid"] not in self.hub.blobs:
                entry["actions"] = {"upload": {"href": f"{self.hub.url}/lfs/{each['oid']}"}}
            objects.append(entry)
        raise _AnswerError(200, body={"transfer": "basic", "objects": objects})

    def _push(
        self, name: str, repo: Repo, revision: str, query: Mapping[str, str], body: bytes
    ) -> None:
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            raise _AnswerError(403, body={"error": "Forbidden"})
        files = dict(repo.commits[self._commit(repo, revision)])
        for line in body.splitlines():
            told = json.loads(line)
            value = told["value"]
            if told["key"] == "header":
                repo.messages.append(value["summary"])
            elif told["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif told["key"] == "lfsFile":
                files[value["path"]] = self.hub.blobs[value["oid"]]
            elif told["key"] == "deletedFile":
                del files[value["path"]]
        if query.get("create_pr") == "1":
            repo.requests.append(repo.messages[-1])
            revision = f"refs/pr/{len(repo.requests)}"
        sha = repo.commit(files, revision)
        url = f"{self.hub.url}/datasets/{name}"
        told = {"commitUrl": f"{url}/commit/{sha}", "commitOid": sha, "success": True}
        if query.get("create_pr") == "1":
            told["pullRequestUrl"] = f"{url}/discussions/{len(repo.requests)}"
        raise _AnswerError(200, body=told)


def _object(path: str, content: bytes) -> dict[str, str]:
    crc = google_crc32c.value(content).to_bytes(4, "big")
    told = {"name": path, "size": str(len(content))}
    return told | {"crc32c": base64.b64encode(crc).decode()}


def _discussions(name: str, repo: Repo) -> dict[str, Any]:
    found = [
        {
            "title": title,
            "num": number,
            "author": {"name": "somebody"},
            "createdAt": "2026-01-01T00:00:00.000Z",
            "status": "open",
            "isPullRequest": True,
            "repo": {"name": name, "type": "dataset"},
        }
        for number, title in enumerate(repo.requests, 1)
    ]
    return {"discussions": found, "count": len(found), "start": 0}


@contextmanager
def serving() -> Iterator[Hub]:
    """Run a server for the block."""
    hub = Hub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        hub.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield hub
        finally:
            server.shutdown()


@contextmanager
def online(hub: Hub, monkeypatch: pytest.MonkeyPatch, cache: Any) -> Iterator[Hub]:
    """Let this process and the commands that it starts use a server, and a cache of their own."""
    import datasets
    from huggingface_hub import constants

    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", hub.url)
    monkeypatch.setenv("HF_HOME", str(cache / "hf"))
    monkeypatch.setenv("OMNIDATA_CACHE", str(cache / "omnidata"))
    monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache / "hf" / "hub"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(cache / "hf" / "token"))
    monkeypatch.setattr(datasets.config, "HF_ENDPOINT", hub.url)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    yield hub
