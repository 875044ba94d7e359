"""Many recordings at once: `omnidata segment --list`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from omnidata.data.segment import segment
from omnidata.data.segment.many import read_list, segment_all
from omnidata.errors import DataError
from omnidata.tasks.omnigui.load import load
from tests.cli.running import as_json, here
from tests.data.segment.films import film, tap, write_log
from tests.limits import full_disk
from tests.trees import same_files


def listed(folder: Path, count: int = 3, **first: Any) -> Path:
    """A list of recordings with two steps each; the first line says more."""
    lines = []
    for number in range(count):
        film(folder / f"R{number}.mkv", count=60)
        write_log(folder / f"{number}.jsonl", tap(1.0), tap(1.5))
        line = {"recording": f"R{number}.mkv", "events": f"{number}.jsonl"}
        lines.append(json.dumps(line | (first if number == 0 else {})))
    path = folder / "list.jsonl"
    path.write_text("\n".join(lines))
    return path


def test_a_list_of_one_gives_what_the_recording_gives(tmp_path: Path) -> None:
    segment(
        film(tmp_path / "R0.mkv", count=60),
        write_log(tmp_path / "0.jsonl", tap(1.0), tap(1.5)),
        tmp_path / "one",
    )
    here("segment", "--list", listed(tmp_path, 1), tmp_path / "list", "--workers", "2")
    assert same_files(tmp_path / "one", tmp_path / "list")


def test_lines_beat_options_and_options_beat_logs(tmp_path: Path) -> None:
    path = listed(tmp_path, 2, app="Mine", instruction_en="Go", lead=0.0, trim=":1.2")
    options = ("--json", "--workers", "1", "--app", "GTrans", "--lead", "0.2")
    said = as_json(here("segment", "--list", path, tmp_path / "out", *options))
    assert [(one["app"], one["steps"], one["trimmed"]) for one in said["episodes"]] == [
        ("Mine", 1, 1),
        ("GTrans", 2, 0),
    ]
    first = [step for step in load(tmp_path / "out").steps if step.step_index == 0]
    shots = {step.tags["app"]: step.source["screenshot_s"] for step in first}
    assert shots == {"Mine": 1.0, "GTrans": 0.8}


def test_a_bad_recording_is_a_finding_and_the_others_are_written(tmp_path: Path) -> None:
    path = listed(tmp_path)
    (tmp_path / "R1.mkv").unlink()
    done = here("segment", "--list", path, tmp_path / "out", "--workers", "1", code=1)
    assert f"error [recording-unusable] {path}:2" in done.stderr.replace("\n", "")
    assert done.stdout.splitlines()[-1] == "2 episodes, 4 steps; 1 recording left out"
    assert len(load(tmp_path / "out", strict=True).steps) == 4


def test_a_list_without_a_usable_recording_leaves_nothing(tmp_path: Path) -> None:
    path = listed(tmp_path, 1)
    (tmp_path / "R0.mkv").write_bytes(b"")
    before = {*tmp_path.iterdir()}
    with pytest.raises(DataError, match="none of 1 recording can be cut"):
        segment_all(read_list(path), tmp_path / "out")
    assert {*tmp_path.iterdir()} == before


def test_an_interrupted_call_goes_on_and_cuts_nothing_twice(tmp_path: Path) -> None:
    path = listed(tmp_path)

    def stop(done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    whole = segment_all(read_list(path), tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        segment_all(read_list(path), tmp_path / "out", progress=stop)
    cut = {place.name for place in (tmp_path / ".out.unfinished" / "parts").iterdir()}
    assert len(cut) == 2
    blank(tmp_path / "R0.mkv", tmp_path / "R1.mkv")
    assert segment_all(read_list(path), tmp_path / "out") == whole
    assert same_files(tmp_path / "whole", tmp_path / "out")
    assert not (tmp_path / ".out.unfinished").exists()


def blank(*recordings: Path) -> None:
    """Who cuts them again finds no film, and nothing else has changed."""
    for path in recordings:
        stat = path.stat()
        path.write_bytes(bytes(stat.st_size))
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_a_call_that_ends_while_the_tree_is_made_loses_no_cut(tmp_path: Path) -> None:
    path = listed(tmp_path, 2)

    def stop(done: int, total: int) -> None:
        if done == total:
            raise KeyboardInterrupt

    whole = segment_all(read_list(path), tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        segment_all(read_list(path), tmp_path / "out", progress=stop)
    with full_disk(after=16), pytest.raises(DataError, match=r"cannot be written \(File too large"):
        segment_all(read_list(path), tmp_path / "out")
    blank(tmp_path / "R0.mkv", tmp_path / "R1.mkv")
    assert segment_all(read_list(path), tmp_path / "out") == whole
    assert same_files(tmp_path / "whole", tmp_path / "out")


def test_a_recording_that_is_listed_twice_is_cut_once(tmp_path: Path) -> None:
    path = listed(tmp_path, 1)
    path.write_text(f"{path.read_text()}\n" * 8)
    found = segment_all(read_list(path), tmp_path / "out", workers=4)
    assert [done.steps for _, done in found.episodes] == [2]
    assert [finding.where for finding in found.findings] == [f"{path}:{n}" for n in range(2, 9)]
    assert len(load(tmp_path / "out", strict=True).steps) == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"recording": "a.mp4"}, "missing required field `events`"),
        ({"recording": "a.mp4", "events": "a.jsonl", "apps": "x"}, "unknown field `apps`"),
        ({"recording": "a.mp4", "events": "a.jsonl", "lead": -1}, "list.jsonl:1, lead -1"),
        ({"recording": "a.mp4", "events": "a.jsonl", "trim": "5"}, "the part cannot be read"),
        ({"recording": "a.mp4", "events": "a.jsonl", "dimension": "x"}, "Invalid enum value"),
        (None, "the list has no recording"),
    ],
)
def test_a_list_that_is_none_is_refused(tmp_path: Path, line: Any, message: str) -> None:
    (tmp_path / "list.jsonl").write_text(json.dumps(line) if line else "\n")
    done = here("segment", "--list", tmp_path / "list.jsonl", tmp_path / "out", code=2)
    assert message in " ".join(done.stderr.split())
    assert not (tmp_path / "out").exists()


def test_places_and_options_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    for arguments, message in (
        (("a.mp4", "out"), "2 arguments in place of 3"),
        (("--list", "l", "a.mp4", "b", "out"), "3 arguments in place of 1"),
        (("--list", "l", "out", "--episode", "E"), "one name cannot serve many episodes"),
        (("a.mp4", "b", "out", "--workers", "2"), "one recording is cut by one process"),
    ):
        assert message in here("segment", *arguments, code=2).stderr
