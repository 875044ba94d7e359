"""Media that other processes write, which may die (`tests/run` has what stays the same)."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import pytest

from omnidata.training.media_store import Broken, Kept, Sizing, Store, Wanted
from omnidata.types import MediaRef
from tests.data.tiny import endless, png


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc to see who decodes")
def test_a_medium_that_its_processes_die_of_is_broken_and_others_are_written(
    tmp_path: Path,
) -> None:
    (tmp_path / "1.png").write_bytes(png(1))
    (tmp_path / "2.mp4").write_bytes(endless())
    refs = [MediaRef("image", tmp_path, "1.png"), MediaRef("video", tmp_path, "2.mp4")]
    killed: list[int] = []
    over = Event()
    killer = Thread(target=_kill_decoders, args=(killed, over), daemon=True)
    (tmp_path / "out").mkdir()
    store = Store(tmp_path / "out", tmp_path / "journal", sizing=Sizing(), frames=None, copy=True)
    picture, clip = store.fill(
        [*map(Wanted, refs)],
        lambda done, total: killer.start() if done == 1 else over.set(),
        workers=2,
    ).values()
    killer.join()
    assert isinstance(picture, Kept)
    assert isinstance(clip, Broken)
    assert clip.what == f"the worker process ended (SIGKILL): {tmp_path / '2.mp4'}"
    assert len(killed) in (2, 3)  # the one that wrote the picture as well


def _kill_decoders(killed: list[int], over: Event) -> None:
    """End all workers that have loaded the decoders."""
    me = os.getpid()
    while not over.is_set():
        for child in Path(f"/proc/{me}/task/{me}/children").read_text().split():
            with suppress(OSError):  # it has ended meanwhile
                works = b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
                decodes = "libavcodec" in Path(f"/proc/{child}/maps").read_text()
                if works and decodes and int(child) not in killed:
                    os.kill(int(child), signal.SIGKILL)
                    killed.append(int(child))
        time.sleep(0.02)
