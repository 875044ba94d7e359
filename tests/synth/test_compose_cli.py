"""`omnidata synth pool` and `omnidata synth compose` as a person or a script meets them."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest
from PIL import Image

from omnidata.data.validate import validate
from omnidata.tasks.omnibench.load import load
from tests.cli.running import Started, as_json, here
from tests.full import FULL
from tests.synth.composing import sample_pool
from tests.synth.making import digests
from tests.synth.oracle import read_rows

COMPOSE = ("synth", "compose")


def test_one_command_each_makes_a_pool_composes_looks_and_exports(tmp_path: Path) -> None:
    pool, tasks, export = sample_pool(), tmp_path / "tasks", tmp_path / "export"
    told = as_json(here("synth", "pool", pool, "--json"))  # which made it: the same again
    assert told == json.loads((pool / "pool.json").read_text())
    here(*COMPOSE, pool, tasks, "--tasks", "12", "--workers", "1")
    found = as_json(here("info", "omnibench", tasks, "--json"))
    assert not [one for one in found.get("findings", []) if one["severity"] == "error"]
    assert validate(load(tasks), workers=0).errors == 0
    here("export", "omnibench", tasks, export, "--format", "trl", "--workers", "1")
    rows = sum(len(read_rows(path)) for path in export.glob("*.jsonl"))
    assert rows == sum(len(row["actions"]) for row in read_rows(tasks / "trajectories.jsonl"))


def test_tables_say_what_was_made(tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = (sample_pool(), out, "--tasks", "12", "--workers", "1")
    done = here(*COMPOSE, *options)
    for word in (
        "12 tasks by complexity",
        "hierarchy",
        "medium",
        "intents",
        "Postling",
        "subtasks",
    ):
        assert word in done.stdout
    assert "resources at the start: audio_path" in done.stdout
    assert "no subtask provides vpn_connected" in done.stderr
    assert str(out / "compose.json") in done.stderr
    told = as_json(here(*COMPOSE, *options, "--json"))
    assert told == json.loads((out / "compose.json").read_text())


def test_the_distribution_can_be_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    figure = tmp_path / "figure.png"
    options = ("--tasks", "12", "--trajectories", "0", "--workers", "1", "--plot", figure)
    here(*COMPOSE, sample_pool(), tmp_path / "out", *options)
    with Image.open(figure) as image:
        assert image.width > 1000
        assert len(image.convert("RGB").getcolors(1 << 20) or ()) > 20


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--level", "depth=hard"), "--level depth=hard"),
        (("--level", "branch=hard", "--level", "branch=easy"), "given twice"),
        (("--level", "hierarchy=hard", "--level", "dependency=easy"), "no graph"),
        (("--level", "hierarchy=hard", "--most", "4"), "at most 4 subtasks"),
        (("--most", "99"), "2 to 16"),
        (("--orders", "0"), "--orders"),
        (("--trajectories", "30"), "at most as many as orders"),
        (("--intent", "tunnel"), "no intent contains 'tunnel'"),
        (("--initial", "x", "--intent", "script", "--level", "knowledge=hard"), "the nearest has"),
        (("--plot", "figure.doc"), "--plot"),
    ],
)
def test_bad_usage_is_said_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], told: str
) -> None:
    monkeypatch.setattr("omnidata.synth.compose.search.PATIENCE", 2)  # for what no search finds
    done = here(*COMPOSE, sample_pool(), tmp_path / "out", *options, "--workers", "1", code=2)
    assert told in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("stage", "how"),
    [
        ("parts", signal.SIGINT),
        pytest.param("lots", signal.SIGKILL, marks=pytest.mark.full("seconds each")),
        pytest.param("lots", signal.SIGINT, marks=pytest.mark.full("seconds each")),
        pytest.param("parts", signal.SIGKILL, marks=pytest.mark.full("seconds each")),
    ],
)
def test_a_stopped_command_goes_on(tmp_path: Path, stage: str, how: signal.Signals) -> None:
    count = 1500 if stage == "lots" else 700 if FULL else 272
    options = [*COMPOSE, str(sample_pool()), str(tmp_path / "out"), "--tasks", str(count)]
    process = Started(*options, "--workers", "2")
    made = tmp_path / ".out.unfinished" / stage
    pattern = "???????.msgpack" if stage == "lots" else "???????.tally.json"
    end = time.monotonic() + 90
    while not list(made.glob(pattern)):
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(how)
    _, stderr = process.communicate(timeout=60)
    if how is signal.SIGINT:
        assert process.returncode == 130
        assert "the same command resumes" in stderr
        assert "Traceback" not in stderr  # a killed one's workers may say that nobody listens
    assert not (tmp_path / "out").exists()
    kept = {path: path.stat().st_mtime_ns for path in made.glob(pattern)}
    assert kept
    done = here(*COMPOSE, sample_pool(), tmp_path / "out", "--tasks", str(count + 1), code=2)
    assert f"tasks: {count} there, {count + 1} now" in done.stderr
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    here(*options, "--workers", "2")
    alone = ("--tasks", str(count), "--workers", "1")
    here(*COMPOSE, sample_pool(), tmp_path / "whole", *alone)
    assert digests(tmp_path / "out") == digests(tmp_path / "whole")
    assert not list(tmp_path.glob(".out.unfinished"))
