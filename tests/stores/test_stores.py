"""Data on stores other than S3, over their emulators and the real packages that speak to them.

`tests/stores/run.sh` installs them and starts this; each is skipped where it is not installed.
"""

from __future__ import annotations

import io
import os
import shutil
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from omnidata import media, mirror, mirror_cache, object_stores
from omnidata.errors import StoreError
from omnidata.types import MediaRef

_PLAIN = os.urandom(1_500_000)
_SHOTS = [os.urandom(30_000) for _ in range(100)]
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Azurite's own, which its documentation has."""


@contextmanager
def _started(command: list[str], folder: Path, port: int) -> Iterator[None]:
    """A server, once it listens."""
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 60
        while True:
            assert process.poll() is None and time.monotonic() < until, "it does not start"
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(params=["gs", "az"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, Any]]:
    """The URL of a bucket, and the package's own file system."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    if request.param == "gs":
        for name in ("gcsfs", "gcp_storage_emulator"):
            pytest.importorskip(name, reason="not installed: tests/stores/run.sh installs it")
        # To ask for the kind of a bucket it speaks gRPC, which the emulator does not.
        monkeypatch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", url)
        command = [sys.executable, "-m", "gcp_storage_emulator", "start", "--in-memory"]
        command += ["--host=127.0.0.1", f"--port={port}", "--default-bucket=bucket"]
    else:
        pytest.importorskip("adlfs", reason="not installed: tests/stores/run.sh installs it")
        azurite = shutil.which("azurite-blob")
        if azurite is None:
            pytest.skip("azurite is not installed: tests/stores/run.sh installs it")
        place = f"AccountName=devstoreaccount1;AccountKey={_KEY};"
        place += f"DefaultEndpointsProtocol=http;BlobEndpoint={url}/devstoreaccount1;"
        monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", place)
        command = [azurite, "--inMemoryPersistence", "--silent", "--skipApiVersionCheck"]
        command += ["--disableTelemetry", "--blobHost=127.0.0.1", f"--blobPort={port}"]
    monkeypatch.setenv("OMNIDATA_CACHE", str(tmp_path / "cache"))
    with _started(command, tmp_path, port):
        import fsspec

        system = fsspec.filesystem(request.param, skip_instance_cache=True)
        if request.param == "az":
            system.mkdir("bucket")
        yield f"{request.param}://bucket", system


def test_data_are_listed_read_by_ranges_and_not_mixed_with_other_versions(
    store: tuple[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, system = store
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for number, shot in enumerate(_SHOTS):
            archive.writestr(f"{number}.png", shot)
    files = {"rows.json": b"[]", "deep/er/plain.bin": _PLAIN, "images.zip": held.getvalue()}
    for name, content in files.items():
        system.pipe(f"bucket/data/{name}", content)
    came: list[int] = []
    read = object_stores.read

    def counted(*given: Any) -> bytes:
        found = read(*given)
        came.append(len(found))
        return found

    monkeypatch.setattr(mirror, "read", counted)
    root = mirror.local(f"{url}/data")
    assert sum(came) <= 2 * 256 * 1024, "more than the zip's directory was fetched"
    path = root / "deep/er/plain.bin"
    with mirror.Ranged(path) as file:
        file.seek(1_000_000)
        assert file.read(1000) == _PLAIN[1_000_000:1_001_000]
    assert sum(came) < 1_000_000
    mirror.fill(path)
    assert path.read_bytes() == _PLAIN
    del came[:]
    assert media.read_bytes(MediaRef("image", root, "images/77.png")) == _SHOTS[77]
    assert sum(came) < 31_000
    assert mirror_cache.display_path(path) == f"{url}/data/deep/er/plain.bin"
    system.pipe("bucket/data/rows.json", b"[1]")
    with pytest.raises(StoreError, match="changed since it was listed"):
        mirror.fill(root / "rows.json")
    system.rm("bucket/data/deep/er/plain.bin")
    assert mirror.local(f"{url}/data") == root
    assert not path.exists()
    mirror.fill(root / "rows.json")
    assert (root / "rows.json").read_bytes() == b"[1]"
