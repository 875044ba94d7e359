"""`omnidata export` as a person or a script meets it."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from tests.cli.running import EXPORT, Started, as_json, omnidata
from tests.export.small import TAP, answer, folder, rows, tree


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tree(tmp_path / "data", episodes=3)


def test_the_example_works_on_data_like_the_samples(data: Path, tmp_path: Path) -> None:
    done = omnidata("export", "omnigui", data, tmp_path / "train", "--format", "llamafactory")
    assert "docs/export.md" in done.stdout
    assert len(rows(tmp_path / "train")) > 0


def test_json_says_what_was_written(data: Path, tmp_path: Path) -> None:
    done = omnidata(
        *EXPORT, "omnigui", data, tmp_path / "out", "--format", "swift", "--split", "train=1",
        "--json",
    )  # fmt: skip
    said = as_json(done)
    assert said["splits"] == {"train": {
        "file": "train.jsonl", "episodes": 3, "groups": 3, "steps": 12,
        "share": {"groups": 1.0, "steps": 1.0},
    }}  # fmt: skip
    assert said["findings"] == []
    assert said == {"out": str(tmp_path / "out"), **json.loads(
        (tmp_path / "out" / "export.json").read_text()
    )}  # fmt: skip


def test_a_step_that_is_left_out_makes_exit_code_1(data: Path, tmp_path: Path) -> None:
    (folder(data) / "1.wav").write_bytes(b"")
    done = omnidata(
        *EXPORT, "omnigui", data, tmp_path / "out", "--format", "swift", "--split", "train=1",
        code=1,
    )  # fmt: skip
    assert "error [media-broken] App/E00/0: audio: the file is empty" in done.stderr
    assert "1 media-broken" in done.stdout
    assert len(rows(tmp_path / "out")) == 11


def test_a_leak_makes_exit_code_1_and_lists_the_steps(data: Path, tmp_path: Path) -> None:
    options = ("--format", "swift", "--split", "train=1", "--check-against", data)
    done = omnidata(*EXPORT, "omnigui", data, tmp_path / "out", *options, code=1)
    assert "3 leak-episode" in done.stdout
    assert len((tmp_path / "out" / "leaks.txt").read_text().splitlines()) == 13
    exclude = ("--exclude", tmp_path / "out" / "leaks.txt")
    left = omnidata(*EXPORT, "omnigui", data, tmp_path / "b", *options, *exclude, code=2)
    assert "no step is left" in left.stderr


def test_the_steps_for_testing_are_evaluated_with_seen_txt(tmp_path: Path) -> None:
    data = tree(tmp_path / "data", episodes=12, actions=[TAP])
    shares = "train=0.5,test=0.5"
    omnidata(*EXPORT, "omnigui", data, tmp_path / "out", "--format", "swift", "--split", shares)
    omnidata(
        "evaluate", "omnigui", data, "--model", "baseline:oracle", "--out", tmp_path / "run",
        "--exclude", tmp_path / "out" / "seen.txt",
    )  # fmt: skip
    lines = (tmp_path / "run" / "predictions.jsonl").read_text().splitlines()
    tested = {one["sample_id"] for one in rows(tmp_path / "out", "test")}
    assert {json.loads(line)["sample_id"] for line in lines} == tested


def test_options_reach_the_rows(data: Path, tmp_path: Path) -> None:
    omnidata(
        *EXPORT, "omnigui", data, tmp_path / "out", "--format", "trl", "--video", "frames",
        "--frames", "2", "--drop-audio", "--coordinates", "px", "--smart-resize", "28",
        "--max-pixels", "7840", "-T", "history=none", "--limit", "1", "--split", "train=1",
        "--copy",
    )  # fmt: skip
    (one,) = rows(tmp_path / "out")
    assert len(one["images"]) == 3
    texts = [part.get("text") for turn in one["prompt"] for part in turn["content"]]
    assert "Action History" not in str(texts)
    (x, y) = json.loads(answer(one))["coordinate"]
    assert (x, y) == (16, 22)  # of 56 x 112: the middle of 10..30 x 20..44 on 72 x 160


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--format", "axolotl"), "--format axolotl: there is no such choice"),
        (
            ("--format", "trl"),
            "add --drop-audio to leave sound out and --video frames to give pictures in place of "
            "clips; or drop them with -T modalities=I",
        ),
        (("--format", "qwen-vl"), "sound out; or drop them with -T modalities=IV"),
        (("--format", "swift", "--split", "train=2"), "these are not shares"),
        (("--format", "swift", "--video", "gif"), "'gif' is not one of 'file', 'frames'"),
        (("--format", "swift", "--frames", "2"), "--video frames as well"),
        (("--format", "swift", "--smart-resize", "14"), "'14' is not one of '28', '32'"),
        (
            ("--format", "swift", "--coordinates", "cm"),
            '"coordinates" has no value "cm" Expected: one of norm1000',
        ),
        (
            ("--format", "swift", "--coordinates", "px", "-T", "coordinates=rel"),
            "-T coordinates=px: the option is given twice",
        ),
        (("--format", "trl", "--objects", "real"), "--format swift as well"),
        (("--format", "swift", "--check-against", "nowhere"), "nowhere"),
        (("--format", "swift", "--limit", "0"), "--limit"),
    ],
)
def test_bad_usage_is_an_error_before_anything_is_written(
    data: Path, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = omnidata(*EXPORT, "omnigui", data, tmp_path / "out", *arguments, code=2)
    assert said in " ".join(done.stderr.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


def test_a_task_without_coordinates_says_so(tmp_path: Path) -> None:
    done = omnidata(
        *EXPORT, "criticbench", tmp_path, tmp_path / "out", "--format", "swift",
        "--coordinates", "px", code=2,
    )  # fmt: skip
    assert '-T coordinates=px: unknown option "coordinates"' in done.stderr


def test_ctrl_c_leaves_nothing_under_the_name_and_the_same_command_goes_on(
    few: Path, tmp_path: Path
) -> None:
    command = ["export", "omnigui", str(few), str(tmp_path / "out"), "--format", "swift"]
    process = Started(*command)
    journal = tmp_path / ".out.unfinished" / ".media.jsonl"
    while not journal.exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=100)
    assert process.returncode == 130
    assert "the same command resumes: omnidata export" in said
    assert not (tmp_path / "out").exists()
    omnidata(*command)
    assert len(rows(tmp_path / "out")) > 10
