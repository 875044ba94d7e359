"""Media that other processes write, which may die (`tests/run` has what stays the same)."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.data.tiny import endless
from tests.export.small import BACK, folder, load, rows, tree, written


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc to see who decodes")
def test_a_medium_that_its_processes_die_of_is_broken_and_others_are_written(
    tmp_path: Path,
) -> None:
    data = tree(tmp_path / "data", actions=[BACK, BACK])
    clip = folder(data) / "2.mp4"
    clip.write_bytes(endless())
    source = load(data)
    first, second = source.steps
    steps = [replace(first, media={**first.media, "video": None}), second]
    killed: list[int] = []
    over = Event()
    killer = Thread(target=_kill_decoders, args=(killed, over), daemon=True)
    done = written(
        replace(source, steps=steps),
        tmp_path / "out",
        format="swift",
        drop_audio=True,
        progress=lambda done, total: killer.start() if done == 1 else over.set(),
        workers=2,
    )
    killer.join()
    assert len(rows(tmp_path / "out")) == 1
    (found,) = (one for one in done.findings if one.code == "media-broken")
    assert found.what.endswith(f"the worker process ended (SIGKILL): {clip}")
    assert len(killed) in (2, 3)  # the one that wrote the other media as well


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
