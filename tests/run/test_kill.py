"""Whatever ends a run, nothing that was answered is lost, and hardly anything is asked twice."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest
from PIL import Image

from tests.adapters.servers import FINE, ChatCompletions, Fault, Server, running
from tests.cli.running import Started, omnidata
from tests.full import FULL
from tests.trees import read_lines, row, write_rows

STEPS = 2000 if FULL else 160
IN_FLIGHT = 32
ERRORS = [Fault(status=500), Fault(status=503), Fault(status=429), Fault(reset="mid-body")]


def make_data(folder: Path, count: int) -> Path:
    """Steps that a model can tell apart by their goals; they share one screenshot."""
    rows = [
        row(
            f"E{number // 10}",
            number % 10,
            instruction_en=f"Open item {number}.",
            image_path="screen.png",
            app="ted",
        )
        for number in range(count)
    ]
    path = write_rows(folder / "steps.json", rows)
    Image.new("RGB", (72, 160), (30, 60, 90)).save(folder / "screen.png")
    return path


class Trouble:
    """Every fifth request fails, in one of several ways."""

    def __init__(self) -> None:
        self.failed = 0

    def __call__(self, number: int) -> Fault:
        draw = random.Random(number)
        if draw.random() >= 0.2:
            return FINE
        self.failed += 1
        return draw.choice(ERRORS)


def command(data: Path, server: Server, run: Path) -> list[str]:
    return [
        *("evaluate", "omnigui", str(data), "--model", "openai:m", "--out", str(run)),
        *("--base-url", f"{server.url}/v1", "-T", "modalities=I"),
        *("--concurrency", str(IN_FLIGHT), "--attempts", "15"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("kills", [100 if FULL else 2])
def test_a_run_that_is_killed_again_and_again_has_one_final_line_per_step(
    tmp_path: Path, kills: int
) -> None:
    data, run, trouble = make_data(tmp_path, STEPS), tmp_path / "run", Trouble()
    draw = random.Random(kills)
    with running(ChatCompletions(), trouble) as server:
        for number in range(kills):
            began = server.count
            # The later kills hit a run that has little left to ask; all of them hit one that asks.
            wanted = draw.randrange(1, max(2, STEPS // (2 * kills)))
            with Started(*command(data, server, run)) as process:
                while server.count < began + wanted:
                    assert process.poll() is None, f"ended by itself before kill {number + 1}"
                    time.sleep(0.001)
                process.send_signal(signal.SIGKILL)
        omnidata(*command(data, server, run))
        answered = server.count - trouble.failed
    lines = read_lines(run / "predictions.jsonl")
    assert len(lines) == STEPS
    assert {line["sample_id"] for line in lines} == {
        f"ted/E{number // 10}/{number % 10}" for number in range(STEPS)
    }
    assert {line["delivery"] for line in lines} == {"ok"}
    for line in lines:
        _, episode, step = line["sample_id"].split("/")
        assert f"Open item {10 * int(episode[1:]) + int(step)}.\n" in line["output"]
    assert 0 <= answered - STEPS <= kills * IN_FLIGHT
