"""What lies beside an export: interrupted work is kept, and nobody else's is touched."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from omnidata.data.convert import convert
from omnidata.errors import UsageError
from omnidata.training.media_store import Sizing
from tests.export.small import (
    ACTIONS,
    TAP,
    codes,
    folder,
    load,
    rows,
    stop_at_the_end,
    tree,
    written,
)
from tests.full import in_gate


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tree(tmp_path / "data")


def beside(out: Path) -> list[str]:
    return sorted(path.name for path in out.parent.glob(f".{out.name}.*"))


def test_an_empty_folder_is_taken_and_nothing_is_left_beside_it(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    written(data, out)
    assert len(rows(out)) == len(ACTIONS)
    assert beside(out) == [".out.lock"]


def test_an_interrupted_conversion_of_the_same_name_is_not_touched(
    data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        convert(load(data), out, embed=True, progress=stop_at_the_end)
    work = tmp_path / ".out.unfinished"
    before = {path for path in work.rglob("*") if path.is_file()}
    with pytest.raises(UsageError, match="something here already"):
        written(data, out)
    assert before == {path for path in work.rglob("*") if path.is_file()}


@pytest.mark.parametrize("left", [(), (".0123456789abcdef.new",), (".plan.json",)])
def test_an_export_that_was_killed_at_its_very_beginning_goes_on(
    left: tuple[str, ...], data: Path, tmp_path: Path
) -> None:
    """The folder is there, and no plan, or none that is whole."""
    work = tmp_path / ".out.unfinished"
    work.mkdir()
    for name in left:
        (work / name).write_text('{"omni')
    written(data, tmp_path / "out")
    assert beside(tmp_path / "out") == [".out.lock"]


@pytest.mark.parametrize("link", [".", "media"])
def test_work_that_leads_elsewhere_is_refused(link: str, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        written(data, out, progress=stop_at_the_end)
    work = tmp_path / ".out.unfinished" / link
    moved = work.rename(tmp_path / "elsewhere")
    work.symlink_to(moved)
    left = list(moved.rglob("*"))
    with pytest.raises(UsageError, match="something here already"):
        written(data, out)
    assert list(moved.rglob("*")) == left


def test_media_are_not_decoded_again_though_a_kill_cut_the_journal_short(
    data: Path, tmp_path: Path
) -> None:
    """The first call's last line is half; the second adds its own; the third reads all."""
    out, small = tmp_path / "out", Sizing(longest=100)
    journal = tmp_path / ".out.unfinished" / ".media.jsonl"

    def stop_early(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        written(data, out, sizing=small, progress=stop_early)
    with journal.open("ab") as file:
        file.write(b'{"place":"half a li')
    with pytest.raises(KeyboardInterrupt):
        written(data, out, sizing=small, progress=stop_at_the_end)
    for path in folder(data).glob("[1-4].*"):
        found = path.stat()
        path.write_bytes(bytes(found.st_size))  # whoever reads it finds it broken
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert not written(data, out, sizing=small).findings


@pytest.mark.parametrize("last", in_gate([4, 13, 1, 7, 10, 16], 2, "an end at another file"))
def test_an_end_in_the_middle_of_replacing_an_export_blocks_no_later_one(
    last: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old export is removed file by file, in any order; here they are in alphabetical order."""
    data, out = tree(tmp_path / "data"), tmp_path / "out"
    written(data, out)
    removed = 0
    unlink, scandir = os.unlink, os.scandir

    def in_order(path: Any = ".") -> Any:
        return nullcontext(sorted(scandir(path), key=lambda entry: entry.name))

    def stop(*arguments: Any, **options: Any) -> None:
        nonlocal removed
        removed += 1
        if removed > last:
            raise KeyboardInterrupt
        unlink(*arguments, **options)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "scandir", in_order)
        patch.setattr(os, "unlink", stop)
        written(data, out, overwrite=True)
    written(data, out, overwrite=True)
    assert len(rows(out)) == len(ACTIONS)
    assert beside(out) == [".out.lock"]


def test_files_that_a_kill_left_half_do_not_take_room_from_the_next_call(
    data: Path, tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        written(data, tmp_path / "out", progress=stop_at_the_end)
    part = tmp_path / ".out.unfinished" / "media" / f".{'0' * 16}.new"
    part.write_bytes(b"half")
    with pytest.raises(KeyboardInterrupt):
        written(data, tmp_path / "out", progress=stop_at_the_end)
    assert not part.exists()


def test_a_disk_that_takes_no_more_is_an_error_without_half_a_file(tmp_path: Path) -> None:
    data = tree(tmp_path / "data", actions=[TAP])
    largest = max(path.stat().st_size for path in folder(data).iterdir())
    code = (
        "import resource, sys; from omnidata.cli import main;"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({largest - 1}, resource.RLIM_INFINITY));"
        "main()"
    )
    command = ["export", "omnigui", data, tmp_path / "out", "--format", "swift", "--copy"]
    done = subprocess.run(
        [sys.executable, "-B", "-c", code, *map(str, command)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "the export cannot be written (File too large)" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
    assert not list((tmp_path / ".out.unfinished" / "media").glob(".*"))
    assert not codes(written(data, tmp_path / "out", copy=True))
