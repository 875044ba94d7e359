"""Instructions by a model: accepted if the graph can be read from them, and never otherwise."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.adapters import get_adapter
from omnidata.errors import OmnidataError
from omnidata.synth.compose import Author, Settings, compose
from omnidata.synth.compose.instructions import (
    Draft,
    Misread,
    Questions,
    ask_to_read,
    ask_to_write,
    read_edges,
)
from omnidata.tasks.asking import Asking
from tests.adapters.servers import FINE, Fault, Server
from tests.cli.running import Started, as_json, here
from tests.full import FULL
from tests.synth.composing import full_disk, no_links, pair, sample_pool
from tests.synth.making import digests
from tests.synth.oracle import read_rows
from tests.synth.scribes import Scribe, scribing

COUNT = 40 if FULL else 12


def command(server: Server, out: Path, *more: str) -> list[str]:
    return [
        *("synth", "compose", str(sample_pool()), str(out), "--tasks", str(COUNT)),
        *("--trajectories", "0", "--workers", "1", "--json"),
        *("--model", "openai:scribe", "--base-url", f"{server.url}/v1", *more),
    ]


def made(done: subprocess.CompletedProcess[str]) -> Any:
    return as_json(done)["made"]["instructions"]


def edges_of(row: dict[str, Any]) -> list[str]:
    nodes = row["dag"]["nodes"]
    return [
        f"S{nodes.index(second) + 1} needs the result of S{nodes.index(first) + 1}"
        for first, others in row["dag"]["edges"].items()
        for second in others
    ]


def test_an_instruction_that_tells_the_graph_is_accepted_at_once(tmp_path: Path) -> None:
    scribe, out = Scribe(), tmp_path / "out"
    with scribing(scribe) as server:
        told = made(here(*command(server, out)))
        assert made(here(*command(server, out))) == told
        assert len(scribe.written) == COUNT, "a finished folder asks nobody"
        done = here(*command(server, out, "--rounds", "5"), code=2)
    assert "rounds: 3 there, 5 now" in done.stderr
    assert told == {
        "by": "model",
        "accepted": COUNT,
        "accepted_in_round": {"1": COUNT},
        "rejected": 0,
        "not_accepted": {},
    }
    rows = read_rows(out / "tasks.jsonl")
    assert len(rows) == COUNT
    for row in rows:
        assert row["instruction_by"] == {"model": "openai:scribe", "round": 1}
        assert row["task_instruction"].startswith("[1] in ")
        question = next(one for one in scribe.written if row["task_instruction"][4:40] in one)
        assert question.startswith("Goal: ")
    asked = "\n".join(scribe.written)
    for row in rows:
        assert all(edge in asked for edge in edges_of(row))


def test_the_reader_sees_the_instruction_and_never_the_graph(tmp_path: Path) -> None:
    scribe = Scribe()
    with scribing(scribe) as server:
        here(*command(server, tmp_path / "out"))
    rows = {row["task_instruction"]: row for row in read_rows(tmp_path / "out" / "tasks.jsonl")}
    in_order = 0
    for question in scribe.read_:
        assert "needs the result of" not in question
        text, subtasks = question.removeprefix("Instruction:\n").split("\nSubtasks:\n")
        assert text in rows
        lines = [line.partition(": ")[2] for line in subtasks.split("\n")]
        own = [line.partition("] ")[2].partition(" <- ")[0] for line in text.split("\n")]
        assert sorted(lines) == sorted(own)
        in_order += lines == own
    assert in_order < COUNT / 2


def test_a_misread_instruction_is_written_again_with_what_was_misread(tmp_path: Path) -> None:
    scribe, out = Scribe(linear=True), tmp_path / "out"
    with scribing(scribe) as server:
        told = made(here(*command(server, out)))
    rounds = told["accepted_in_round"]
    assert told["accepted"] == COUNT
    assert rounds["1"] + rounds["2"] == COUNT
    assert told["not_accepted"] == {"other edges": rounds["2"]}
    again = [one for one in scribe.written if "earlier version got the dependencies wrong" in one]
    assert len(again) == rounds["2"] > COUNT / 4
    assert all(
        "It seemed to tell that S" in one or "It did not tell that S" in one for one in again
    )
    chains = {row["task_id"]: row["instruction_by"]["round"] == 1
              for row in read_rows(out / "tasks.jsonl")}  # fmt: skip
    for row in read_rows(out / "tasks.jsonl"):
        chain = [f"S{n + 1} needs the result of S{n}" for n in range(1, len(row["dag"]["nodes"]))]
        assert chains[row["task_id"]] == (edges_of(row) == chain)


def test_what_is_never_read_as_the_graph_is_left_out_and_counted(tmp_path: Path) -> None:
    scribe, out = Scribe(stubborn=6), tmp_path / "out"
    with scribing(scribe) as server:
        told = made(here(*command(server, out, "--rounds", "2")))
    rows = read_rows(out / "tasks.jsonl")
    assert told["rejected"] > 0
    assert told["accepted"] == len(rows) == COUNT - told["rejected"]
    assert told["not_accepted"] == {"other edges": 2 * told["rejected"]}
    numbers = [int(row["task_id"]) for row in rows]
    assert numbers == sorted(numbers)
    assert numbers != list(range(len(numbers)))


def test_answers_that_say_nothing_accept_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with scribing(Scribe(babbles=True)) as server:
        done = here(*command(server, out, "--rounds", "2"), code=2)
    assert f"none of {COUNT} tasks has an instruction" in done.stderr
    assert not out.exists()
    with scribing(Scribe(mute=2)) as server:
        told = made(here(*command(server, tmp_path / "mute")))
    assert told["not_accepted"]["empty"] == 3 * told["rejected"] > 0


def test_a_failure_of_the_api_accepts_nothing_and_the_same_command_goes_on(tmp_path: Path) -> None:
    """A third of the requests fails for good; what was answered is not asked again."""
    out, scribe = tmp_path / "out", Scribe()

    def trouble(number: int) -> Fault:
        return Fault(status=500) if number % 3 == 2 else FINE

    with scribing(scribe, trouble) as server:
        done = here(*command(server, out, "--attempts", "1"), code=1)
        assert "tasks wait for an answer" in done.stderr
        assert "the same command asks again" in done.stderr
        assert not out.exists()
        server.script = ()
        told = made(here(*command(server, out, "--attempts", "1")))
    assert told["accepted"] == COUNT
    assert len(scribe.written) == len(scribe.read_) == COUNT
    lines = read_rows(tmp_path / "out.run" / "predictions.jsonl")
    assert {line["sample_id"] for line in lines} == {
        f"{task}/{what}/1" for task in range(COUNT) for what in ("write", "read")
    }
    kept = {line["sample_id"]: line["output"] for line in lines}
    for row in read_rows(out / "tasks.jsonl"):
        assert row["task_instruction"] == kept[f"{row['task_id']}/write/1"]
        assert '"edges"' in kept[f"{row['task_id']}/read/1"]


def test_a_refusal_is_no_acceptance(tmp_path: Path) -> None:
    refusal = Fault(refusal="No.")
    with scribing(Scribe(), lambda number: refusal if number < 7 else FINE) as server:
        told = made(here(*command(server, tmp_path / "out")))
    assert sum(told["not_accepted"].values()) == 7
    assert told["accepted"] == COUNT


def test_a_limit_stops_it_and_a_higher_one_goes_on(tmp_path: Path) -> None:
    out, scribe = tmp_path / "out", Scribe()
    with scribing(scribe) as server:
        done = here(*command(server, out, "--max-tokens", "1200"), code=1)
        assert "--max-tokens 1200" in done.stderr
        assert not out.exists()
        first = len(scribe.written) + len(scribe.read_)
        assert 0 < first < 2 * COUNT
        made(here(*command(server, out)))
    assert len(scribe.written) + len(scribe.read_) == 2 * COUNT


def test_a_killed_command_asks_nothing_twice_and_makes_the_same_tasks(tmp_path: Path) -> None:
    slow = Fault(delay_s=0.05)
    scribe = Scribe(linear=True)
    with scribing(scribe, lambda number: slow) as server:
        options = command(server, tmp_path / "out", "--concurrency", "2")
        for wanted in (5, 25, 60) if FULL else (15,):
            process = Started(*options)
            end = time.monotonic() + 60
            while server.count < wanted:
                assert process.poll() is None
                assert time.monotonic() < end
                time.sleep(0.01)
            process.kill()
            process.communicate()
        here(*options)
        assert (
            len(scribe.written)
            + len(scribe.read_)
            - len(read_rows(tmp_path / "out.run" / "predictions.jsonl"))
            <= 2 * 3
        )  # what was on its way when the command was killed
    with scribing(Scribe(linear=True)) as server:
        here(*command(server, tmp_path / "whole"))
    interrupted, whole = digests(tmp_path / "out"), digests(tmp_path / "whole")
    interrupted.pop("compose.json"), whole.pop("compose.json")  # the address of the server
    assert interrupted == whole


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--model", "baseline:oracle"), "written by template"),
        (("--base-url", "http://127.0.0.1:1/v1"), "--model SPEC as well"),
        (("-M", "layout=release"), "--model SPEC as well"),
        (("--model", "openai:m", "--base-url", "http://127.0.0.1:1/v1", "--rounds", "0"), "rounds"),
    ],
)
def test_options_that_mean_nothing_are_refused(
    tmp_path: Path, options: Sequence[str], told: str
) -> None:
    done = here("synth", "compose", sample_pool(), tmp_path / "out", *options, code=2)
    assert told in done.stderr
    assert not list(tmp_path.iterdir())


@given(st.text() | st.text('{}[]",:ABedgs ', max_size=40))
def test_no_answer_of_a_model_breaks_the_reader(text: str) -> None:
    found = read_edges(text, ["A", "B", "C"])
    assert found is None or all(0 <= a < 3 and 0 <= b < 3 for a, b in found)


def test_edges_are_read_in_the_forms_in_which_models_write_them() -> None:
    names = ["B", "A", "C"]
    edges = frozenset({(1, 0), (0, 2)})
    for told in (
        {"edges": [["A", "B"], ["B", "C"], ["A", "B"]]},
        {"edges": {"A": ["B"], "B": ["C"]}},
        {"A": "B", "B": ["C"], "C": []},
    ):
        assert read_edges(f"So:\n```\n{json.dumps(told)}\n```", names) == edges
    assert read_edges('{"edges": []}', names) == frozenset()
    for text in (
        "",
        "none",
        '{"edges": [["A"]]}',
        '{"edges": [[1, 2]]}',
        '{"A": ["D"]}',
        "[" * 9999,
    ):
        assert read_edges(text, names) is None


def test_what_was_misread_is_said_edge_by_edge() -> None:
    draft = Draft(0, "Greet", [("W", "x"), ("W", "y"), ("M", "z")], frozenset({(0, 2), (1, 2)}))
    misread = Misread("First x, then y, then z.", frozenset({(0, 1), (1, 2)}))
    user = ask_to_write(draft, misread)[1].parts[0].text
    assert "It did not tell that S3 needs the result of S1." in user
    assert "It seemed to tell that S2 needs the result of S1, which is not so." in user
    assert "S3 needs the result of S2, which" not in user
    shown = ask_to_read(draft, "text", ["B", "A", "C"], "latest")
    assert "A: in W: y\nB: in W: x\nC: in M: z" in shown[1].parts[0].text


class Greeting(Scribe):
    """Begins with other words every time."""

    def _write(self, user: str) -> str:
        return f"{len(self.written)}. call\n{super()._write(user)}"


def test_texts_of_answers_that_were_thrown_away_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", no_links)
    pool, out = pair(tmp_path, "there.png", bytes(1_000_000)), tmp_path / "out"
    with scribing(Greeting()) as server:

        def run() -> None:
            model = get_adapter(
                "openai:scribe", Asking(Questions("latest")), (), base_url=f"{server.url}/v1"
            )
            compose(pool, out, Settings(), tasks=1, author=Author(model))

        with full_disk(500_000), pytest.raises(OmnidataError):
            run()
        shutil.rmtree(tmp_path / "out.run")
        run()
    (row,) = read_rows(out / "tasks.jsonl")
    assert row["task_instruction"].startswith("2. call")
