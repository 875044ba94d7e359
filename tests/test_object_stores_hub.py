"""Data on the Hub by a URL, over a server on the loopback that speaks as much of it as is asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest

_COMMIT = "1" * 40
_NAME = "/api/datasets/org/name"
_FILES = {"data/a.json": b"[]", "data/b.bin": bytes(range(250)) * 4000}


class Hub(BaseHTTPRequestHandler):
    """One dataset repository, whose branch is at one commit."""

    asked: ClassVar[list[tuple[str, str, str]]] = []

    def do_GET(self) -> None:
        path, span = self.path.partition("?")[0], self.headers.get("Range", "")
        self.asked.append((path, span, self.headers.get("Authorization", "")))
        if path.startswith(f"{_NAME}/tree/"):
            rows = [
                {"type": "file", "path": name, "size": len(content), "oid": f"{number:040d}"}
                for number, (name, content) in enumerate(_FILES.items())
            ]
            self._send(json.dumps(rows).encode())
        elif path.startswith(_NAME):
            self._send(json.dumps({"id": "org/name", "sha": _COMMIT, "siblings": []}).encode())
        elif "/resolve/" in path:
            first, _, last = span.removeprefix("bytes=").partition("-")
            content = _FILES[path.partition(f"/resolve/{_COMMIT}/")[2]]
            self._send(content[int(first) : int(last) + 1], 206)
        else:
            self._send(b"{}", 404)

    def _send(self, content: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *given: object) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_commit_is_read_by_ranges_and_nobody_is_told_who_asks(hub: str, tmp_path: Path) -> None:
    code = (
        "from omnidata import mirror, mirror_cache\n"
        "path = mirror.local('hf://datasets/org/name@main/data') / 'b.bin'\n"
        "mirror.fill(path, 500_000, 500_100)\n"
        "read = path.read_bytes()[500_000:500_100] == bytes(range(100))\n"
        "print(mirror_cache.display_path(path), read)\n"
    )
    environment = os.environ | {
        "HF_ENDPOINT": hub,
        "HF_TOKEN": "hf_geheim",
        "HF_HUB_OFFLINE": "0",
        "OMNIDATA_CACHE": str(tmp_path),
    }
    told = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert told.split() == ["hf://datasets/org/name@main/data/b.bin", "True"]
    assert {token for _, _, token in Hub.asked} == {""}
    (read,) = [(path, span) for path, span, _ in Hub.asked if "/resolve/" in path]
    assert read == (f"/datasets/org/name/resolve/{_COMMIT}/data/b.bin", "bytes=262144-524287")
