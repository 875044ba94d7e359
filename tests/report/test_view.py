"""`omnidata view`: pages on this machine's own address, and nothing but them."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.cli.running import Started, omnidata
from tests.trees import row, write_rows


class Server:
    def __init__(self, *arguments: str | Path) -> None:
        self.process = Started("view", *arguments, "--json")
        while not (said := self.process.said()[0]).endswith("}\n"):
            assert self.process.poll() is None, self.process.said()
            time.sleep(0.01)
        self.said: dict[str, Any] = json.loads(said)
        self.port = urlsplit(self.said["address"]).port or 0

    def ask(
        self, path: str, *, method: str = "GET", **headers: str
    ) -> tuple[int, Mapping[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.putrequest(method, path, skip_host="Host" in headers)
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders()
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def end(self, with_signal: int = signal.SIGINT) -> tuple[int, str]:
        self.process.send_signal(with_signal)
        _, told = self.process.communicate(timeout=20)
        return self.process.wait(), told


@contextmanager
def served(*arguments: str | Path) -> Iterator[Server]:
    server = Server(*arguments)
    with server.process:
        yield server


@pytest.fixture(scope="module")
def server(sample: Path) -> Iterator[Server]:
    with served("omnigui", sample) as running:
        yield running


def test_pages_of_a_dataset_are_made_on_demand(server: Server, sample: Path) -> None:
    assert server.said["task"] == "omnigui"
    status, headers, first = server.ask("/")
    assert status == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert f"{server.said['steps']} steps in {server.said['episodes']} episodes".encode() in first
    status, _, step = server.ask("/steps/1.html")
    assert status == 200
    assert b"Chirp/C001/1" in step
    assert b'class="verdict' not in step
    assert server.ask("/thumbs/0.webp")[2][8:12] == b"WEBP"
    assert server.ask(f"/steps/{server.said['steps']}.html")[0] == 404
    assert server.ask("/thumbs/999999.webp")[0] == 404


def test_ranges_of_a_clip_are_those_of_the_file(server: Server, sample: Path) -> None:
    clip = sample / "Chirp" / "media" / "C001" / "1.mp4"
    data = clip.read_bytes()
    number = next(n for n in range(9) if server.ask(f"/media/{n}")[2] == data)
    path = f"/media/{number}"
    status, headers, _ = server.ask(path)
    assert (status, headers["Accept-Ranges"], headers["Content-Type"]) == (
        200,
        "bytes",
        "video/mp4",
    )
    size = len(data)
    for given, part in (
        ("bytes=0-", data),
        ("bytes=100-199", data[100:200]),
        (f"bytes={size - 5}-{size + 100}", data[-5:]),
        ("bytes=-7", data[-7:]),
    ):
        status, headers, body = server.ask(path, Range=given)
        assert (status, body) == (206, part), given
        start = data.index(part) if len(part) > 50 else size - len(part)
        assert headers["Content-Range"] == f"bytes {start}-{start + len(part) - 1}/{size}"
    status, headers, _ = server.ask(path, Range=f"bytes={size}-")
    assert (status, headers["Content-Range"]) == (416, f"bytes */{size}")
    assert server.ask(path, Range="bytes=-0")[0] == 416
    assert server.ask(path, Range="bytes=0-1,5-9")[2] == data
    status, headers, body = server.ask(path, method="HEAD")
    assert (status, body, headers["Content-Length"]) == (200, b"", str(size))


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/media/../../../etc/passwd",
        "/media/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/media/..%5c..%5cetc",
        "//etc/passwd",
        "/etc/passwd",
        "/steps/../Chirp/localization.jsonl",
        "/media/0/../../Chirp/localization.jsonl",
        "/media/-1",
        "/media/0x1",
        "/media/%D9%A3",
        "/Chirp/media/C001/1.png",
        "/pages.html",
        "/media/99999999999999999999",
        "/thumbs/0.webp.gz",
    ],
)
def test_no_address_leads_to_a_file(server: Server, path: str) -> None:
    status, _, body = server.ask(path)
    assert status in (400, 404)
    assert b"root:" not in body
    assert b"instruction" not in body


def test_a_foreign_name_is_refused(server: Server) -> None:
    own = f"127.0.0.1:{server.port}"
    assert server.ask("/", Host=own)[0] == 200
    assert server.ask("/", Host=f"LOCALHOST:{server.port}")[0] == 200
    for name in ("evil.example", f"evil.example:{server.port}", "127.0.0.1:1", f"{own}.evil", ""):
        status, _, body = server.ask("/media/0", Host=name)
        assert status in (400, 403), name
        assert b"127.0.0.1" in body or not body


def test_nothing_can_be_sent(server: Server) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        assert server.ask("/steps/0.html", method=method)[0] == 405


def test_every_answer_says_what_a_browser_may_do(server: Server) -> None:
    for path in ("/", "/steps/0.html", "/media/0", "/thumbs/0.webp", "/nothing"):
        _, headers, _ = server.ask(path)
        assert headers["X-Content-Type-Options"] == "nosniff"
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert "file:" not in policy


def test_the_server_is_for_this_machine_alone(server: Server) -> None:
    others = {str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None)}
    others = {name for name in others if not name.startswith("127.") and name != "::1"}
    for name in [*others, "127.0.0.2"]:
        with pytest.raises(OSError), socket.create_connection((name, server.port), timeout=2):
            pass


def hostile(folder: Path) -> Path:
    """Steps whose media are links outside, other files under a picture's name, and nothing."""
    (folder.parent / "secret.png").write_bytes(b"\x89PNG\r\n\x1a\nroot: secret")
    paths = ["../secret.png", "link.png", "page.png", "/etc/passwd", "gone.png", "ok.png.html"]
    rows = [
        row("T1", number, image_path=path, video_path=path, audio_path=path)
        for number, path in enumerate(paths)
    ]
    folder.mkdir()
    (folder / "link.png").symlink_to(folder.parent / "secret.png")
    (folder / "page.png").write_text("<script>alert('root:')</script>")
    (folder / "ok.png.html").write_text("<script>alert('root:')</script>")
    return write_rows(folder / "steps.json", rows)


def test_media_that_lead_outside_or_are_none_are_not_given_out(tmp_path: Path) -> None:
    with served(hostile(tmp_path / "data"), "--task", "omnigui") as server:
        steps = server.said["steps"]
        assert steps == 6
        for number in range(3 * steps + 3):
            for path in (f"/media/{number}", f"/thumbs/{number}.webp"):
                status, _, body = server.ask(path)
                assert status in (404, 415), path
                assert b"root:" not in body
        for number in range(steps):
            status, _, body = server.ask(f"/steps/{number}.html")
            assert status == 200
            assert b"cannot be shown" in body
            assert b"secret.png" not in body.replace(b"../secret.png", b"")


def test_neither_a_request_that_is_none_nor_ctrl_c_is_complained_of(sample: Path) -> None:
    with served(sample / "Chirp") as server:
        for line in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01", b"GET /\xd9\xa3 HTTP/1.1\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
                connection.sendall(line + b"\r\n\r\n")
                assert b" 400 " in connection.recv(99)
        assert server.ask("/")[0] == 200
        code, told = server.end()
    assert code == 0
    assert "Error" not in told
    assert "Traceback" not in told


def test_bad_usage_is_a_message(tmp_path: Path, sample: Path) -> None:
    assert "omnidata view TASK DATA" in omnidata("view", code=2).stderr
    assert "twice" in omnidata("view", "omnigui", sample, "--task", "omnigui", code=2).stderr
    assert "no such file" in omnidata("view", tmp_path / "none", code=2).stderr
    assert "not a run folder" in omnidata("view", sample, "--data", sample, code=2).stderr
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        told = omnidata("view", sample / "Chirp", "--port", port, code=2).stderr
    assert f"--port {port}" in told
