"""Media of a store through the cache, beside bare requests and beside files on this disk.

A server of S3 runs in a process of its own on the loopback, so what is measured is what we add, not
a network. `python -m benchmarks.object_store [MEDIA] [KILOBYTES]` prints

* cold: bytes of all media through `omnidata.media`, by 8 threads, over the same objects read by
  `fs.cat_file` of s3fs, by 8 threads;
* warm: the same again, out of the cache, over the same files in a folder of this disk;
* listing: the time to list them and to make the files that stand for them, over `fs.find` alone;
* zip: bytes and time to read some of them out of a zip of all, over as many bare requests for parts
  of it, and beside a download of it (the server copies all of the zip for each request);
* zips on a disk: the first and the second read of all its members, and looking into it, over files
  of a folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from omnidata import media, mirror, mirror_cache, object_stores
from omnidata.types import MediaRef

_THREADS = 8
_ROUNDS = 3
_SOME = (1, 20, 100)
_SERVER = """
import io, json, os, sys, zipfile
from tests.s3_server import S3Server
server, count, size = S3Server(), int(sys.argv[1]), int(sys.argv[2])
held = io.BytesIO()
with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as packed:
    for number in range(count):
        content = os.urandom(size)
        server.put(f"data/{number:05d}.png", content)
        packed.writestr(f"{number:05d}.png", content)
server.put("zip/images.zip", held.getvalue())
print(json.dumps(server.url), flush=True)
sys.stdin.read()
"""
Item = TypeVar("Item")


def _timed(read: Callable[[Item], Any], items: Sequence[Item]) -> float:
    """Seconds to read all, by some threads."""
    with ThreadPoolExecutor(_THREADS) as pool:
        began = time.perf_counter()
        for _ in pool.map(read, items):
            pass
        return time.perf_counter() - began


def main(count: int = 400, kilobytes: int = 200) -> None:
    """Measure, and print the ratios of the best of some rounds."""
    import fsspec

    server = subprocess.Popen(
        [sys.executable, "-c", _SERVER, str(count), str(kilobytes * 1000)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdout
    assert server.stdin
    try:
        os.environ |= {
            "AWS_ENDPOINT_URL": json.loads(server.stdout.readline()),
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        bare = fsspec.filesystem("s3")
        names = [f"bucket/data/{number:05d}.png" for number in range(count)]
        best: dict[str, float] = {}
        share: dict[int, float] = {}

        def note(name: str, seconds: float) -> None:
            best[name] = min(seconds, best.get(name, seconds))

        with tempfile.TemporaryDirectory() as folder:
            own = Path(folder) / "own"
            own.mkdir()
            for name in names:
                (own / name.rpartition("/")[2]).write_bytes(bare.cat_file(name))
            for number in range(_ROUNDS):
                os.environ[mirror_cache.CACHE_VARIABLE] = f"{folder}/cache{number}"
                bare.invalidate_cache()
                began = time.perf_counter()
                bare.find("bucket/data", detail=True)
                note("find", time.perf_counter() - began)
                began = time.perf_counter()
                root = mirror.local("s3://bucket/data")
                note("listed", time.perf_counter() - began)
                refs = [MediaRef("image", root, name.rpartition("/")[2]) for name in names]
                files = [MediaRef("image", own, ref.path) for ref in refs]
                note("bare", _timed(bare.cat_file, names))
                note("cold", _timed(media.read_bytes, refs))
                note("warm", _timed(media.read_bytes, refs))
                note("disk", _timed(media.read_bytes, files))
                began = time.perf_counter()
                whole = bare.cat_file("bucket/zip/images.zip")
                note("download", time.perf_counter() - began)
                with _counting() as came:
                    for some in _SOME:
                        os.environ[mirror_cache.CACHE_VARIABLE] = f"{folder}/zip{number}-{some}"
                        came.clear()
                        began = time.perf_counter()
                        root = mirror.local("s3://bucket/zip")
                        _timed(media.read_bytes, _members(root, count, some))
                        note(f"{some} of zip", time.perf_counter() - began)
                        note(f"{some} bare", _timed(partial(_part, bare, len(whole)), range(some)))
                        share[some] = sum(came) / len(whole)
                local = Path(folder, f"local{number}")
                local.mkdir()
                (local / "images.zip").write_bytes(whole)
                began = time.perf_counter()
                root = mirror.local(local)
                note("looked into", time.perf_counter() - began)
                refs = _members(root, count, count)
                note("first", _timed(media.read_bytes, refs))
                note("second", _timed(media.read_bytes, refs))
    finally:
        server.stdin.close()
        server.wait()
    print(f"{count} media of {kilobytes} kB, {_THREADS} threads, best of {_ROUNDS}")
    ratios = [("cold", "bare"), ("warm", "disk"), ("listed", "find")]
    ratios += [(name, "disk") for name in ("looked into", "first", "second")]
    for name, over in ratios:
        print(
            f"{name:12}{best[name] / count * 1000:8.2f} ms each, {best[name] / best[over]:6.2f} "
            f"times {over} ({best[over] / count * 1000:.2f} ms)"
        )
    for some in _SOME:
        print(
            f"{some:4} of zip {best[f'{some} of zip']:6.2f} s and {share[some]:.4f} of its bytes; "
            f"as many bare requests {best[f'{some} bare']:.2f} s; download {best['download']:.2f} s"
        )


def _members(root: Path, count: int, some: int) -> list[MediaRef]:
    """Some members of the zip, from its beginning to its end."""
    numbers = range(0, count, count // some)
    return [MediaRef("image", root, f"images/{number:05d}.png") for number in numbers]


def _part(bare: Any, size: int, number: int) -> bytes:
    """A hundred thousand bytes or more of the zip."""
    at = number * size // 101
    found: bytes = bare.cat_file("bucket/zip/images.zip", start=at, end=at + size // 400)
    return found


@contextmanager
def _counting() -> Iterator[list[int]]:
    """The bytes that come of a store while the block is run."""
    came: list[int] = []
    read = object_stores.read

    def counted(*given: Any) -> bytes:
        found = read(*given)
        came.append(len(found))
        return found

    mirror.read = counted  # type: ignore[attr-defined, assignment]
    try:
        yield came
    finally:
        mirror.read = read  # type: ignore[attr-defined]


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
