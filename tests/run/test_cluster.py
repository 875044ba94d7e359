"""A run on a cluster of Ray's: the same lines as on one machine, whatever dies meanwhile."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omnidata.errors import PredictionError, RunError, UnansweredError, UsageError
from omnidata.run.asker import Recipe
from omnidata.run.cost import Limits
from omnidata.run.engines import Cluster
from omnidata.run.evaluate import evaluate
from omnidata.run.run_info import read_info
from omnidata.tasks import get_task
from tests.adapters.servers import FINE, ChatCompletions, Fault, Server, running
from tests.cli.running import Started, omnidata_apart
from tests.full import FULL
from tests.run.conftest import workers_of
from tests.run.test_kill import Trouble, make_data
from tests.trees import read_lines

STEPS = 2000 if FULL else 60
IN_FLIGHT = 8


def ask(
    data: Path, out: Path, model: str | Recipe, cluster: Cluster | None, **limits: Any
) -> dict[str, Any]:
    task = get_task("omnigui", {"modalities": "I", **limits.pop("task", {})})
    many = Limits(**{"concurrency": IN_FLIGHT, "attempts": 15, **limits})
    return evaluate(task, task.load(data), model, out, limits=many, cluster=cluster)


def served(server: Server) -> Recipe:
    return Recipe("openai:m", base_url=f"{server.url}/v1")


def answers(run: Path) -> dict[str, tuple[str, str]]:
    lines = read_lines(run / "predictions.jsonl")
    found = {line["sample_id"]: (line["delivery"], line["output"]) for line in lines}
    assert len(found) == len(lines)
    return found


@pytest.mark.parametrize(
    "history",
    ["predicted", pytest.param("gold", marks=pytest.mark.full("12 seconds"))],
)
def test_a_cluster_leaves_what_one_machine_would(
    tmp_path: Path, cluster: Cluster, history: str
) -> None:
    data, trouble = make_data(tmp_path, STEPS), Trouble()
    with running(ChatCompletions(), trouble) as server:
        told = {"task": {"history": history}}
        alone = ask(data, tmp_path / "alone", served(server), None, **told)
        asked = server.count
        handler = signal.getsignal(signal.SIGTERM)
        both = ask(data, tmp_path / "both", served(server), cluster, **told)
        assert signal.getsignal(signal.SIGTERM) is handler
        # What one engine began, the other goes on with, and has nothing to ask.
        again = ask(data, tmp_path / "both", served(server), None, **told)
        assert server.count - trouble.failed == 2 * STEPS
    assert both == again == alone
    assert asked > STEPS
    assert answers(tmp_path / "both") == answers(tmp_path / "alone")
    assert not (tmp_path / "both" / "parts").exists()
    used = [read_info(tmp_path / name)["usage"] for name in ("alone", "both")]
    assert used[0] == used[1]
    failed = read_lines(tmp_path / "both" / "attempts.jsonl")
    assert len(failed) + len(read_lines(tmp_path / "alone" / "attempts.jsonl")) == trouble.failed


def test_a_baseline_knows_all_steps_of_the_data_on_every_machine(
    tmp_path: Path, cluster: Cluster
) -> None:
    data = make_data(tmp_path, 40)
    alone = ask(data, tmp_path / "alone", "baseline:majority", None)
    assert ask(data, tmp_path / "both", "baseline:majority", cluster) == alone
    assert answers(tmp_path / "both") == answers(tmp_path / "alone")


@pytest.mark.full("15 seconds of deaths")
def test_who_dies_costs_what_was_under_way_and_no_step(
    tmp_path: Path, machines: Any, cluster: Cluster
) -> None:
    """Workers are killed, and a machine with all that is on it."""
    kills = 30 if FULL else 3
    data, draw = make_data(tmp_path, STEPS), random.Random(kills)
    slow, over = Fault(delay_s=0.02), threading.Event()
    killed: list[str] = []
    machine = next(iter(machines.worker_nodes))

    def kill() -> None:
        seen = 0
        while len(killed) < kills and not over.wait(draw.uniform(1.0, 3.0)):
            workers = workers_of(machines, "AskingWorker")
            # Three that die in a row without an answer end a run, as they should.
            if (count := server.count) < seen + 2 * IN_FLIGHT:
                continue
            seen = count
            if workers and len(killed) == 1:
                [raylet] = machine.all_processes["raylet"]
                os.kill(raylet.process.pid, signal.SIGKILL)
                killed.append("machine")
            elif workers:
                os.kill(draw.choice(workers), signal.SIGKILL)
                killed.append("worker")

    trouble = Trouble()
    with running(
        ChatCompletions(), lambda number: slow if trouble(number) is FINE else ERROR
    ) as server:
        hand = threading.Thread(target=kill)
        hand.start()
        try:
            run, many = tmp_path / "run", 8 if FULL else 2
            disturbed = ask(data, run, served(server), cluster, concurrency=many)
        finally:
            over.set()
            hand.join()
            machines.remove_node(machine)
            machines.add_node(num_cpus=2)
        repeated = server.count - trouble.failed - STEPS
    assert len(killed) >= min(kills, 2)
    found = answers(tmp_path / "run")
    assert len(found) == STEPS
    assert {delivery for delivery, _ in found.values()} == {"ok"}
    with running(ChatCompletions()) as calm:
        assert ask(data, tmp_path / "calm", served(calm), None) == disturbed
    assert answers(tmp_path / "calm") == found
    assert 0 <= repeated <= len(killed) * 4 * IN_FLIGHT


ERROR = Fault(status=500)


def test_a_step_that_kills_its_worker_is_said_to_and_all_others_are_answered(
    tmp_path: Path, cluster: Cluster
) -> None:
    data = make_data(tmp_path, 40)
    model = "deadly:ted/E2/3"
    with pytest.warns(UserWarning, match="1 of 40 steps got no answer"):
        ask(data, tmp_path / "run", model, cluster)
    found = read_lines(tmp_path / "run" / "predictions.jsonl")
    assert len(found) == 40
    [bad] = [line for line in found if line["delivery"] != "ok"]
    assert (bad["sample_id"], bad["delivery"]) == ("ted/E2/3", "api_error")
    assert "its worker died 2 times" in bad["error"]


@pytest.mark.full("15 seconds of deaths")
def test_a_step_that_kills_comes_first_or_every_step_does(
    tmp_path: Path, machines: Any, cluster: Cluster
) -> None:
    data = make_data(tmp_path, 40)
    alone = Cluster(machines.address, workers=1)
    with pytest.warns(UserWarning, match="1 of 40 steps got no answer"):
        ask(data, tmp_path / "first", "deadly:ted/E0/0", alone)
    with pytest.raises(RunError, match="died in a row without an answer"):
        ask(data, tmp_path / "all", "deadly:*", cluster, concurrency=1)


@pytest.mark.full("8 seconds of disks")
def test_a_disk_that_is_full_at_one_worker_costs_nothing_and_at_all_ends_the_run(
    tmp_path: Path, cluster: Cluster
) -> None:
    data, mark = make_data(tmp_path, 60), tmp_path / "full"
    ask(data, tmp_path / "one", f"filling:{mark}", cluster)
    assert mark.is_dir()
    found = answers(tmp_path / "one")
    assert len(found) == 60
    assert {delivery for delivery, _ in found.values()} == {"ok"}
    with pytest.raises(RunError, match="a line cannot be written") as refused:
        ask(data, tmp_path / "all", "filling:*", cluster)
    assert "free some space" in refused.value.remedy


@pytest.mark.full("4 seconds of a budget")
def test_the_budget_is_that_of_the_whole_run_and_another_engine_goes_on(
    tmp_path: Path, cluster: Cluster
) -> None:
    data = make_data(tmp_path, 60)
    with running(ChatCompletions()) as server:
        stopped = ask(data, tmp_path / "run", served(server), cluster, max_tokens=2000)
        assert "--max-tokens 2000" in stopped["stopped"]
        assert 2 < server.count < 30
        ask(data, tmp_path / "run", served(server), None)
        assert server.count == 60
    assert len(answers(tmp_path / "run")) == 60


@pytest.mark.full("8 seconds of a death")
def test_a_worker_that_dies_returns_what_it_had_reserved(
    tmp_path: Path, machines: Any, cluster: Cluster
) -> None:
    """Until the first answer requests go out one at a time, so the others wait for it."""
    data = make_data(tmp_path, 20)

    def kill() -> None:
        while not server.count:
            time.sleep(0.01)
        for worker in workers_of(machines, "AskingWorker"):
            os.kill(worker, signal.SIGKILL)

    first = Fault(delay_s=5)
    with running(ChatCompletions(), lambda number: FINE if number else first) as server:
        hand = threading.Thread(target=kill)
        hand.start()
        ask(data, tmp_path / "run", served(server), cluster, max_tokens=1_000_000)
        hand.join()
        assert server.count == 21
    assert {delivery for delivery, _ in answers(tmp_path / "run").values()} == {"ok"}


@pytest.mark.full("5 seconds of a rate")
def test_rates_are_those_of_the_whole_run(tmp_path: Path, cluster: Cluster) -> None:
    data = make_data(tmp_path, 20)
    with running(ChatCompletions()) as server:
        began = time.monotonic()
        ask(data, tmp_path / "run", served(server), cluster, requests_per_minute=300)
        assert time.monotonic() - began >= 19 * 0.2
    assert server.count == 20


@pytest.mark.parametrize(
    "limits", [{}, pytest.param({"max_tokens": 10**9}, marks=pytest.mark.full("6 seconds"))]
)
def test_a_pause_that_the_model_asks_one_worker_for_holds_all(
    tmp_path: Path, cluster: Cluster, limits: dict[str, int]
) -> None:
    data, came, held = make_data(tmp_path, 400), list[float](), list[int]()
    busy = Fault(status=429, headers={"Retry-After": "2"})

    def reply(number: int) -> Fault:
        came.append(time.monotonic())
        if not held and server.most > 4:  # both workers ask
            held.append(number)
            return busy
        return Fault(delay_s=0.05 if held else 0.2)

    with running(ChatCompletions(), reply) as server:
        ask(data, tmp_path / "run", served(server), cluster, concurrency=4, **limits)
    [number] = held
    after = [later - came[number] for later in came[number:]]
    assert len([seconds for seconds in after if seconds < 1.8]) <= 9  # those that were under way
    assert len(answers(tmp_path / "run")) == 400


def test_a_driver_that_is_killed_loses_nothing_that_was_answered(
    tmp_path: Path, machines: Any, cluster: Cluster
) -> None:
    data, run = make_data(tmp_path, 120), tmp_path / "run"
    with running(ChatCompletions(), lambda _: Fault(delay_s=0.05)) as server:
        command = [
            *("evaluate", "omnigui", str(data), "--model", "openai:m", "--out", str(run)),
            *("--base-url", f"{server.url}/v1", "-T", "modalities=I", "--concurrency", "4"),
        ]
        ray = ["--engine", "ray", "--address", cluster.address, "--workers", "2"]
        with Started(*command, *ray) as process:
            while server.count < 30:
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
        while workers_of(machines, "AskingWorker"):
            time.sleep(0.1)
        omnidata_apart(*command)
        assert 120 <= server.count <= 120 + 2 * 4
    assert len(answers(run)) == 120
    assert not (run / "parts").exists()


@pytest.mark.parametrize(
    "sent",
    [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.full("8 seconds of a driver"))],
)
def test_an_interruption_waits_for_what_is_under_way(
    tmp_path: Path, cluster: Cluster, sent: signal.Signals
) -> None:
    data, run = make_data(tmp_path, 120), tmp_path / "run"
    with running(ChatCompletions(), lambda _: Fault(delay_s=0.05)) as server:
        command = [
            *("evaluate", "omnigui", str(data), "--model", "openai:m", "--out", str(run)),
            *("--base-url", f"{server.url}/v1", "-T", "modalities=I", "--concurrency", "4"),
        ]
        ray = ("--engine", "ray", "--address", cluster.address, "--workers", "2")
        with Started(*command, *ray) as process:
            while server.count < 30:
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(sent)
            _, said = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "SIGTERM" not in said
        assert "the same command resumes" in said
        assert len(answers(run)) == server.count
        omnidata_apart(*command)
        assert server.count == 120


def test_a_machine_that_does_not_see_the_data_is_named(tmp_path: Path, cluster: Cluster) -> None:
    (tmp_path / "data").mkdir()
    data = make_data(tmp_path / "data", 4)
    task = get_task("omnigui", {"modalities": "I"})
    source = task.load(data)
    (tmp_path / "data").rename(tmp_path / "gone")
    with pytest.raises(RunError, match="does not see it") as refused:
        evaluate(task, source, "baseline:center", tmp_path / "run", cluster=cluster)
    assert str(tmp_path / "data") in refused.value.where


def test_room_that_never_comes_is_an_error_after_a_stated_wait(
    tmp_path: Path, cluster: Cluster
) -> None:
    wanted = Cluster(cluster.address, workers=1, gpus_per_worker=1, wait_s=2)
    with pytest.raises(RunError, match="within 2 s") as refused:
        ask(make_data(tmp_path, 4), tmp_path / "run", "baseline:center", wanted)
    assert "0 GPUs" in refused.value.expected


def test_this_machine_alone_is_not_waited_for(tmp_path: Path) -> None:
    data = make_data(tmp_path, 4)
    command = ("evaluate", "omnigui", data, "--model", "baseline:center", "-T", "modalities=I")
    began = time.monotonic()
    said = omnidata_apart(
        *command, "--out", tmp_path / "run", "--engine", "ray", "--gpus-per-worker", "64", code=2
    ).stderr
    assert "no machine gave a worker its 1 core and 64 GPUs" in said
    assert time.monotonic() - began < 60


REFUSED: dict[str, Callable[[], Cluster]] = {
    "not an address": lambda: Cluster("nowhere"),
    "nothing answers": lambda: Cluster("127.0.0.1:9"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_an_address_without_a_cluster_is_refused_at_once(tmp_path: Path, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        ask(make_data(tmp_path, 4), tmp_path / "run", "baseline:center", REFUSED[why]())


def test_what_another_engine_left_has_to_be_lines(tmp_path: Path) -> None:
    data, run = make_data(tmp_path, 4), tmp_path / "run"
    ask(data, run, "baseline:center", None)
    (run / "parts").mkdir()
    (run / "parts" / "x.jsonl").write_text("{}\n", encoding="utf-8")
    with pytest.raises(PredictionError, match=r"x\.jsonl"):
        ask(data, run, "baseline:center", None)


def test_failures_that_a_killed_driver_left_are_asked_again(tmp_path: Path) -> None:
    data, run = make_data(tmp_path, 4), tmp_path / "run"
    ask(data, run, "baseline:center", None)
    lines = (run / "predictions.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (run / "predictions.jsonl").write_text("".join(lines[:-1]), encoding="utf-8")
    (run / "parts").mkdir()
    left = '{"sample_id":"ted/E0/3","output":"","delivery":"api_error","error":"503"}\n'
    (run / "parts" / "x.jsonl").write_text(left, encoding="utf-8")
    ask(data, run, "baseline:center", None)
    assert {delivery for delivery, _ in answers(run).values()} == {"ok"}


@pytest.mark.full("10 seconds of a machine that comes late")
def test_less_room_than_asked_for_is_enough_to_go_on(tmp_path: Path, machines: Any) -> None:
    data = make_data(tmp_path, 40)
    many = Cluster(machines.address, workers=9, wait_s=8)  # of which four have room
    with running(ChatCompletions(), lambda _: Fault(delay_s=0.2)) as server:
        ask(data, tmp_path / "run", served(server), many, concurrency=1)
        assert server.count == 40
    assert len(answers(tmp_path / "run")) == 40


@pytest.mark.full("6 seconds of refusals")
def test_workers_remember_between_parts_that_others_were_answered(
    tmp_path: Path, machines: Any
) -> None:
    data = make_data(tmp_path, 200)
    alone = Cluster(machines.address, workers=1)
    refusing = running(
        ChatCompletions(), lambda number: FINE if number <= 60 else Fault(status=400)
    )
    with refusing as server, pytest.warns(UserWarning, match="steps got no answer"):
        found = ask(data, tmp_path / "run", served(server), alone)
    assert "stopped" not in found
    assert server.count == 200


@pytest.mark.full("4 seconds of refusals")
def test_a_model_that_answers_nothing_is_not_asked_on(tmp_path: Path, cluster: Cluster) -> None:
    data = make_data(tmp_path, 200)
    refusing = running(ChatCompletions(), lambda number: Fault(status=401))
    with refusing as server, pytest.raises(UnansweredError):
        ask(data, tmp_path / "run", served(server), cluster)
    assert server.count < 60


def test_a_limit_on_memory_that_leaves_no_room_for_ray_is_said_at_once(tmp_path: Path) -> None:
    data = make_data(tmp_path, 4)
    limited = (
        "import resource, sys; limit = 7 * 2**29; "  # 3.5 GiB
        "resource.setrlimit(resource.RLIMIT_AS, (limit, limit)); "
        "from omnidata.cli import main; main(sys.argv[1:])"
    )
    command = [
        *(sys.executable, "-c", limited, "evaluate", "omnigui", str(data)),
        *("--model", "baseline:center", "--out", str(tmp_path / "run"), "--engine", "ray"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2, done.stderr
    assert "3.5 GiB of memory" in done.stderr
    assert "ulimit -v" in done.stderr


def test_a_worker_with_other_code_of_the_model_asks_nothing(
    tmp_path: Path, cluster: Cluster
) -> None:
    """Each answer is the number of the process that gave it."""
    ask(make_data(tmp_path, 40), tmp_path / "run", "changing:", cluster, concurrency=1)
    found = answers(tmp_path / "run")
    assert len(found) == 40
    assert len(set(found.values())) == 1
