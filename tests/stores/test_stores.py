"""Data on stores other than S3, over their emulators and the real packages that speak to them.

`tests/stores/run.sh` installs them and starts this; each is skipped where it is not installed.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from omnidata import media
from omnidata.errors import StoreError
from omnidata.tasks import get_task
from omnidata.types import MediaRef
from tests.trees import row, write_app

_PLAIN = os.urandom(1_500_000)
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


def test_data_are_listed_downloaded_and_not_mixed_with_other_versions(
    store: tuple[str, Any], tmp_path: Path
) -> None:
    url, system = store
    app = write_app(tmp_path / "data" / "TED", [row(audio_path="", video_path="")])
    shot = app / "media" / "T1" / "1.png"
    shot.parent.mkdir(parents=True)
    Image.new("RGB", (720, 1600)).save(shot)
    for path in app.rglob("*.*"):
        system.pipe(f"bucket/data/{path.relative_to(tmp_path / 'data')}", path.read_bytes())
    system.pipe("bucket/data/deep/er/large.bin", _PLAIN)
    task = get_task("omnigui")
    source = task.load(f"{url}/data")  # type: ignore[arg-type]
    (step,) = source.steps
    ref = step.media["screenshot"]
    assert ref
    assert media.place(ref) == f"{url}/data/TED/media/T1/1.png"
    assert media.read_bytes(ref) == shot.read_bytes()
    large = MediaRef("image", source.root, "deep/er/large.bin")
    assert media.read_stored(large) == _PLAIN
    other = bytes(reversed(_PLAIN))
    system.pipe("bucket/data/deep/er/large.bin", other)
    again = task.load(f"{url}/data").root  # type: ignore[arg-type]
    assert media.read_stored(MediaRef("image", again, "deep/er/large.bin")) == other
    assert media.read_stored(large) == _PLAIN
    system.pipe("bucket/data/deep/er/large.bin", _PLAIN[:-1] + b"x")
    system.rm("bucket/data/TED/media/T1/1.png")
    shutil.rmtree(tmp_path / "cache")
    with pytest.raises(StoreError, match="changed since it was listed"):
        last = task.load(f"{url}/data").root  # type: ignore[arg-type]
        system.pipe("bucket/data/deep/er/large.bin", _PLAIN)
        media.read_stored(MediaRef("image", last, "deep/er/large.bin"))


def test_wrong_credentials_and_an_incomplete_setup_have_errors_of_their_own(
    store: tuple[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, system = store
    if not url.startswith("az"):
        pytest.skip("the emulator of Google's store takes any credentials")
    place = os.environ["AZURE_STORAGE_CONNECTION_STRING"]
    for wrong, fault in (
        (place.replace(_KEY, f"A{_KEY[1:]}"), "denies access"),
        ("", "adlfs cannot be set up"),
    ):
        monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", wrong)
        type(system).clear_instance_cache()  # which does not look at the environment
        with pytest.raises(StoreError, match=fault):
            get_task("omnigui").load(f"{url}/data")  # type: ignore[arg-type]
