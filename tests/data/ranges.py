"""A web server on loopback that gives parts of files, as object stores do."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, *args: Any, asked: list[tuple[str, str | None]], **kwargs: Any) -> None:
        self.asked = asked
        super().__init__(*args, **kwargs)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.asked.append((self.path, wanted))
        content = Path(self.translate_path(self.path)).read_bytes()
        span = re.fullmatch(r"bytes=(\d+)-(\d*)", wanted or "")
        self.send_response(206 if span else 200)
        if span:
            begin, end = int(span[1]), int(span[2] or len(content) - 1)
            self.send_header("Content-Range", f"bytes {begin}-{end}/{len(content)}")
            content = content[begin : end + 1]
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def serve(folder: Path) -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    """Serve a folder; gives the address, and the paths and ranges asked for."""
    asked: list[tuple[str, str | None]] = []
    handler = partial(_Handler, directory=str(folder), asked=asked)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()
