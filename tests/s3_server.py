"""An S3 server on the loopback, moto's, which counts what it sends and fails when told to."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from moto.backends import get_backend
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

BUCKET = "bucket"
_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "geheim",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
_ACCOUNT = "123456789012"  # moto's own


class S3Server:
    """The server, with one bucket.

    Attributes:
        url: of the server.
        gets: of each object that was asked for: its key, and the bytes that were sent.
        fails: whether a request for a key is answered with an error.
        error: that error.
        bodies: by key the body in place of an object, without its size; of a listing for "".
    """

    def __init__(self) -> None:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self.gets: list[tuple[str, int]] = []
        self.fails: Callable[[str], bool] = lambda key: False
        self.error = "500 Internal Server Error"
        self.bodies: dict[str, Callable[[], Iterable[bytes]]] = {}
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.port}"
        self._store = get_backend("s3")[_ACCOUNT]["aws"]
        if BUCKET not in self._store.buckets:  # it is one for all servers of a process
            self._store.create_bucket(BUCKET, "us-east-1")

    def put(self, key: str, content: bytes) -> None:
        """An object of the bucket, as if it had been sent."""
        self._store.put_object(BUCKET, key, content)

    def put_folder(self, folder: Path, prefix: str) -> None:
        """The files below a folder."""
        for path in folder.rglob("*"):
            if path.is_file():
                self.put(f"{prefix}/{path.relative_to(folder).as_posix()}", path.read_bytes())

    def remove(self, key: str) -> None:
        """No such object any more."""
        self._store.delete_object(BUCKET, key)

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def fetched(self, ending: str = "") -> int:
        """Bytes that were sent of objects whose keys end so."""
        return sum(size for key, size in self.gets if key.endswith(ending))

    def _answer(self, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        key = environ["PATH_INFO"].removeprefix(f"/{BUCKET}").strip("/")
        if self.fails(key):
            start(self.error, [("Content-Length", "0")])
            return [b""]
        if environ["REQUEST_METHOD"] == "GET" and key in self.bodies:
            start("200 OK", [("ETag", '"1"')])
            return self.bodies[key]()
        answered: Iterable[bytes] = self._app(environ, start)
        if environ["REQUEST_METHOD"] != "GET" or not key:
            return answered
        content = b"".join(answered)
        self.gets.append((key, len(content)))
        return [content]


@contextmanager
def serving() -> Iterator[S3Server]:
    """A server to which s3:// leads in this process and in those that it starts."""
    from s3fs import S3FileSystem

    S3FileSystem.clear_instance_cache()  # of another server
    server = S3Server()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (_ENVIRONMENT | {"AWS_ENDPOINT_URL": server.url}).items():
            patch.setenv(name, value)
        yield server
    server.close()
