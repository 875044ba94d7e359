"""What do the checks of archives cost, and does a large archive fit into the memory?

A zip of pictures that do not compress, a zip and a tar of many small files are unpacked by
`omnidata.loaders.archives`, and by the libraries' own `extractall`, which checks less. CPU time,
and the most memory that Python held; the machine may be shared.

    python benchmarks/unpack.py --megabytes 400
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import tarfile
import tempfile
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

from omnidata.loaders.archives import unpack

FILES = 3_000


def main() -> None:
    """Pack, unpack, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=400, help="of the zip of pictures")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        pack_zip(place / "pictures.zip", options.megabytes, 1_000_000)
        pack_zip(place / "small.zip", FILES, 300)
        pack_tar(place / "small.tar", FILES, 300)
        for name in ("pictures.zip", "small.zip", "small.tar"):
            compare(place / name)


def pack_zip(path: Path, count: int, size: int) -> None:
    """A zip of files of random bytes."""
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(count):
            archive.writestr(f"images/{number}.png", os.urandom(size))


def pack_tar(path: Path, count: int, size: int) -> None:
    """A tar of the same."""
    with tarfile.open(path, "w") as archive:
        for number in range(count):
            info = tarfile.TarInfo(f"images/{number}.png")
            info.size = size
            archive.addfile(info, io.BytesIO(os.urandom(size)))


def compare(path: Path) -> None:
    """Our way beside the library's, as ratios."""
    out = path.with_suffix(".out")
    ours = timed(lambda: unpack(path, out), out)
    theirs = timed(lambda: extract(path, out), out)
    tracemalloc.start()
    unpack(path, out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    shutil.rmtree(out)
    size = path.stat().st_size
    print(
        f"{path.name}: {size / 1e6:.0f} MB, {ours:.2f} s of CPU, {ours / theirs:.2f} times "
        f"extractall; at most {peak / 1e6:.1f} MB held"
    )


def extract(path: Path, out: Path) -> None:
    """What the libraries do."""
    if path.suffix == ".tar":
        with tarfile.open(path) as packed:
            packed.extractall(out, filter="data")
    else:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(out)


def timed(work: Callable[[], object], out: Path) -> float:
    """The least CPU time of three calls, in seconds."""
    found = []
    for _ in range(3):
        before = time.process_time()
        work()
        found.append(time.process_time() - before)
        shutil.rmtree(out)
    return min(found)


if __name__ == "__main__":
    main()
