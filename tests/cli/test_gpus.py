"""`--gpus N`: one command, several processes, one run."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from omnidata.run.parts import visible_gpus
from tests.adapters.servers import ChatCompletions, Fault, running
from tests.cli.running import Started, as_json, omnidata
from tests.trees import read_lines


def finals(run: Path) -> list[tuple[str, str, str]]:
    lines = read_lines(run / "predictions.jsonl")
    return [(line["sample_id"], line["delivery"], line["output"]) for line in lines]


def test_two_processes_leave_what_one_would(tmp_path: Path, sample: Path) -> None:
    ask = ["evaluate", "omnigui", str(sample), "--model", "baseline:random", "--json"]
    alone = as_json(omnidata(*ask, "--out", tmp_path / "alone"))
    both = as_json(omnidata(*ask, "--out", tmp_path / "both", "--gpus", "2"))
    assert both == alone
    assert finals(tmp_path / "both") == finals(tmp_path / "alone")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alone", "both"]
    again = as_json(omnidata(*ask, "--out", tmp_path / "both", "--gpus", "2"))
    assert again == alone


@pytest.mark.full("20 seconds of two runs")
def test_an_interruption_reaches_all_and_the_same_command_goes_on(
    tmp_path: Path, sample: Path
) -> None:
    slow = Fault(delay_s=0.05)
    with running(ChatCompletions(), lambda _: slow) as server:
        ask = ["evaluate", "omnigui", str(sample), "--model", "openai:m", "--concurrency", "1"]
        ask += ["--base-url", f"{server.url}/v1", "--out", str(tmp_path / "run"), "--gpus=2"]
        with Started(*ask) as process:
            while server.count < 20:
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "the same command resumes" in said
        asked = server.count
        parts = [read_lines(tmp_path / "run.parts" / n / "predictions.jsonl") for n in "12"]
        assert 0 < sum(map(len, parts)) <= asked
        omnidata(*ask)
        assert server.count - asked + sum(map(len, parts)) == len(finals(tmp_path / "run"))


def test_a_part_that_cannot_begin_is_reported_with_its_own_words(
    tmp_path: Path, sample: Path
) -> None:
    ask = ["evaluate", "omnigui", str(sample), "--model", "baseline:best"]
    done = omnidata(*ask, "--out", tmp_path / "run", "--gpus", "2", code=2)
    assert "exit code 2" in done.stderr
    assert 'no baseline "best"' in done.stderr or "baseline:" in done.stderr
    done = omnidata(*ask, "--out", tmp_path / "run", "--gpus", "2", "--shard", "1/2", code=2)
    assert "not both" in done.stderr


@pytest.mark.parametrize(
    ("said", "found"), [(None, ["0", "1"]), ("3,5,7", ["3", "5"]), ("", ["", ""])]
)
def test_each_process_sees_one_gpu(
    monkeypatch: pytest.MonkeyPatch, said: str | None, found: list[str]
) -> None:
    if said is None:
        monkeypatch.delitem(os.environ, "CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setitem(os.environ, "CUDA_VISIBLE_DEVICES", said)
    assert visible_gpus(2) == found
