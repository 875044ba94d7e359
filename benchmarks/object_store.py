"""Media of a store through the cache, beside bare requests and beside files on this disk.

A server of S3 runs in a process of its own on the loopback, so this measures our own time, not a
network. `python -m benchmarks.object_store [MEDIA] [KILOBYTES]` prints

* cold: all media through `omnidata.media`, by 8 threads, over `fs.get_file` of s3fs for the same
  objects, by 8 threads;
* warm: the same again, out of the cache, over the same files in a folder of this disk;
* listing: the time to list them and to make the files that stand for them, over `fs.find` alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from omnidata import media, remote
from omnidata.types import MediaRef

_THREADS = 8
_ROUNDS = 3
_SERVER = """
import json, os, sys
from tests.s3_server import S3Server
server, count, size = S3Server(), int(sys.argv[1]), int(sys.argv[2])
for number in range(count):
    server.put(f"data/{number:05d}.png", os.urandom(size))
print(json.dumps(server.url), flush=True)
sys.stdin.read()
"""
Item = TypeVar("Item")


def _seconds(read: Callable[[Item], Any], items: Sequence[Item]) -> float:
    """Return the seconds to read all items by some threads."""
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
        names = [f"{number:05d}.png" for number in range(count)]
        best: dict[str, float] = {}

        def note(name: str, seconds: float) -> None:
            best[name] = min(seconds, best.get(name, seconds))

        with tempfile.TemporaryDirectory() as folder:
            own = Path(folder) / "own"

            def copy(name: str) -> None:
                bare.get_file(f"bucket/data/{name}", str(own / name))

            own.mkdir()
            for number in range(_ROUNDS):
                os.environ[remote.CACHE_VARIABLE] = f"{folder}/cache{number}"
                bare.invalidate_cache()
                began = time.perf_counter()
                bare.find("bucket/data", detail=True)
                note("find", time.perf_counter() - began)
                began = time.perf_counter()
                root = remote.get("s3://bucket/data")
                note("listed", time.perf_counter() - began)
                refs = [MediaRef("image", root, name) for name in names]
                note("bare", _seconds(copy, names))
                note("cold", _seconds(media.read_bytes, refs))
                note("warm", _seconds(media.read_bytes, refs))
                note("disk", _seconds(media.read_bytes, [MediaRef("image", own, n) for n in names]))
    finally:
        server.stdin.close()
        server.wait()
    print(f"{count} media of {kilobytes} kB, {_THREADS} threads, best of {_ROUNDS}")
    for name, over in (("cold", "bare"), ("warm", "disk"), ("listed", "find")):
        print(
            f"{name:12}{best[name] / count * 1000:8.2f} ms each, {best[name] / best[over]:6.2f} "
            f"times {over} ({best[over] / count * 1000:.2f} ms)"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
