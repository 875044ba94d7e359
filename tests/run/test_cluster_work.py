"""Work other than runs on a cluster of Ray's: the same as here, whatever dies meanwhile."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from omnidata.analysis.audit import audit
from omnidata.data.convert import convert
from omnidata.data.segment.many import read_list, segment_all
from omnidata.errors import RunError
from omnidata.run.engines import Cluster, Lost, each
from omnidata.synth.compose import compose
from omnidata.synth.compose import settings as composing
from omnidata.synth.episodes import make_episodes
from omnidata.synth.pool import make_pool
from omnidata.tasks import get_task
from omnidata.training.media_store import Sizing
from tests.adapters.servers import ChatCompletions, Fault, Server, running
from tests.cli.running import omnidata, omnidata_apart
from tests.data import calls
from tests.data.segment.films import film, tap, write_log
from tests.export.small import written
from tests.run.conftest import workers_of
from tests.run.test_kill import make_data
from tests.synth.making import TINY
from tests.synth.recordings import answering
from tests.synth.recordings import ask as ask_verb
from tests.synth.test_recaption import CAPTIONS, model, write_screens
from tests.trees import same_files


def test_answers_come_in_order_and_an_item_that_kills_or_hangs_costs_itself(
    cluster: Cluster,
) -> None:
    """A batch of items that holds such a one is made again in halves."""
    found = list(each(calls.die_of_three, range(100), workers=None, cluster=cluster))
    assert isinstance(lost := found[3], Lost)
    assert not lost.timed_out
    assert found[:3] + found[4:] == [2 * n for n in range(100) if n != 3]
    late = list(each(calls.hang_at_three, range(40), workers=None, cluster=cluster, limit_s=1))
    assert isinstance(lost := late[3], Lost)
    assert lost.timed_out
    assert late[:3] + late[4:] == [2 * n for n in range(40) if n != 3]
    assert list(each(calls.double, [], workers=None, cluster=cluster)) == []


@pytest.mark.full("10 seconds of deaths")
def test_workers_that_all_die_end_the_work_with_a_message(cluster: Cluster) -> None:
    with pytest.raises(RunError, match="died in a row without an answer"):
        list(each(calls.exit_at_all, range(50), workers=None, cluster=cluster))


def test_a_repository_has_the_same_bytes_whoever_wrote_it(
    tmp_path: Path, few: Path, cluster: Cluster
) -> None:
    source = get_task("omnigui").load(few, check_media=False)
    made = [tmp_path / name / "repository" for name in ("here", "processes", "cluster")]
    convert(source, made[0], embed=True)
    convert(source, made[1], embed=True, workers=2)
    convert(source, made[2], embed=True, cluster=cluster)
    assert same_files(made[0], made[1])
    assert same_files(made[0], made[2])


def test_an_export_that_processes_began_ends_on_a_cluster_with_the_same_bytes(
    tmp_path: Path, sample: Path, cluster: Cluster
) -> None:
    here, there = tmp_path / "here" / "out", tmp_path / "there" / "out"
    options: dict[str, Any] = {"video": "frames", "sizing": Sizing(factor=28), "limit": 4}
    found = written(sample, here, **options)

    def stop(done: int, total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        written(sample, there, workers=2, progress=stop, **options)
    assert written(sample, there, cluster=cluster, **options).findings == found.findings
    assert same_files(here, there)


def test_a_tree_of_recordings_has_the_same_bytes_whoever_cuts_them(
    tmp_path: Path, cluster: Cluster
) -> None:
    """One is broken, and one has the name of another."""
    lines = []
    for number in range(4):
        recording = film(tmp_path / f"R{number}.mkv", count=60)
        if number == 1:
            recording.write_bytes(b"no film")
        write_log(tmp_path / f"{number}.jsonl", tap(1.0), tap(1.5))
        line = {"recording": recording.name, "events": f"{number}.jsonl"}
        lines.append(json.dumps(line | ({"episode": "R2"} if number == 3 else {})))
    (tmp_path / "list.jsonl").write_text("\n".join(lines))
    jobs = read_list(tmp_path / "list.jsonl")
    here, there = tmp_path / "here" / "out", tmp_path / "there" / "out"
    found = segment_all(jobs, here)
    assert [done.labels.episode for _, done in found.episodes] == ["R0", "R2"]
    assert [finding.where for finding in found.findings] == [
        f"{tmp_path / 'list.jsonl'}:{line}" for line in (2, 4)
    ]
    assert segment_all(jobs, there, cluster=cluster) == found
    assert same_files(here, there)


def test_instructions_sound_the_same_whoever_has_them_spoken(
    tmp_path: Path, sample: Path, machines: Any
) -> None:
    """By an engine that says a text as it said others before, unless a process begins anew."""
    made = [tmp_path / name / "out" for name in ("here", "processes", "cluster")]
    ray = ("--engine", "ray", "--address", machines.address, "--workers", "2")
    for out, more in zip(made, (("--workers", "1"), ("--workers", "2"), ray), strict=True):
        omnidata_apart("voice", "omnigui", sample, out, "--where", "dimension=localization", *more)
    assert len([*made[0].rglob("*.wav")]) > 3
    assert same_files(made[0], made[1])
    assert same_files(made[0], made[2])


SUITE = """
out = "OUT"
[[tasks]]
task = "omnigui"
data = "DATA"
limit = 3
options = { modalities = "IA" }
[[models]]
model = "openai:m"
base_url = "URL"
"""


WAITING = (Fault(text='{"action_type": -1}'),) * 100


def asks_the_same(machines: Any, server: Server, *command: Any, out: Path) -> bool:
    """Whether requests on a cluster are those of one machine, whatever their order."""
    found = []
    for number, more in enumerate(
        ((), ("--engine", "ray", "--address", machines.address, "--workers", "2"))
    ):
        before = len(server.asked)
        place = out.with_name(f"{out.name}-{number}")
        omnidata_apart(*(str(part).replace("OUT", str(place)) for part in command), *more)
        found.append(sorted(json.dumps(item.payload) for item in server.asked[before:]))
    return len(found[0]) > 0 and found[0] == found[1]


def test_a_suite_asks_the_same_on_a_cluster(tmp_path: Path, sample: Path, machines: Any) -> None:
    with running(ChatCompletions(), WAITING) as server:
        text = SUITE.replace("URL", f"{server.url}/v1").replace("DATA", str(sample))
        for number in (0, 1):
            out = tmp_path / f"runs-{number}"
            out.with_suffix(".toml").write_text(text.replace("OUT", out.name))
        command = ("suite", "OUT.toml")
        assert asks_the_same(machines, server, *command, out=tmp_path / "runs")
        assert server.count == 2 * 3


@pytest.mark.full("10 seconds: every control is a run of its own")
def test_an_ablation_shows_the_same_altered_media_on_a_cluster(
    tmp_path: Path, sample: Path, machines: Any
) -> None:
    with running(ChatCompletions(), WAITING) as server:
        command = (
            *("ablate", "omnigui", sample, "--model", "openai:m", "--out", "OUT"),
            *("--base-url", f"{server.url}/v1", "--limit", "3"),
            *("--modalities", "IA,I", "--controls", "silence,other-sound"),
        )
        assert asks_the_same(machines, server, *command, out=tmp_path / "ablation")
        assert server.count == 2 * 4 * 3


@pytest.mark.full("10 seconds of shuffles")
def test_an_audit_reports_the_same_whoever_learns(sample: Path, cluster: Cluster) -> None:
    task = get_task("omnigui")
    steps = task.load(sample, check_media=False).steps
    profile = task.profiles[task.default_profile]
    found = audit(task, steps, profile)
    assert found.chance is not None
    assert audit(task, steps, profile, cluster=cluster) == found


@pytest.mark.full("10 seconds: two runs")
def test_recaptioned_rows_are_the_same_whoever_asked(tmp_path: Path, machines: Any) -> None:
    """The question for an instruction is a task of no name, and its pictures are made for it."""
    screens = write_screens(tmp_path)
    made = [tmp_path / name / "out" for name in ("here", "there")]
    ray = ("--engine", "ray", "--address", machines.address, "--workers", "2")
    for out, more in zip(made, ((), ray), strict=True):
        with answering(model(CAPTIONS, {"Open the mail.", "Close it.", "icon_2"})) as server:
            told = ask_verb("recaption", server, screens, out, *more)
            assert server.count == 4 + 3 + 3
        assert told["elements"]["kept"] == 2
    assert same_files(*made)


@pytest.mark.full("10 seconds of other verbs")
def test_episodes_and_tasks_have_the_same_bytes_whoever_made_them(
    tmp_path: Path, cluster: Cluster
) -> None:
    make_episodes(tmp_path / "here", TINY, episodes=40)
    make_episodes(tmp_path / "there", TINY, episodes=40, cluster=cluster)
    assert same_files(tmp_path / "here", tmp_path / "there")
    make_pool(tmp_path / "pool", seed=0)
    for name, where in (("tasks", None), ("more", cluster)):
        compose(
            tmp_path / "pool", tmp_path / name, composing.Settings(seed=1), tasks=60, cluster=where
        )
    assert same_files(tmp_path / "tasks", tmp_path / "more")


@pytest.mark.full("15 seconds of deaths")
def test_workers_that_are_killed_cost_their_parts_and_not_the_job(
    tmp_path: Path, machines: Any, cluster: Cluster
) -> None:
    killed: list[int] = []

    def kill(done: int, total: int) -> None:
        # Between parts that are made: three that die without one end the work, as they should.
        if done // 48 > len(killed) and len(killed) < 5:
            killed.extend(workers_of(machines, "Caller")[:1])
            os.kill(killed[-1], signal.SIGKILL)

    make_episodes(tmp_path / "there", TINY, episodes=400, cluster=cluster, progress=kill)
    assert len(killed) == 5
    make_episodes(tmp_path / "here", TINY, episodes=400)
    assert same_files(tmp_path / "here", tmp_path / "there")


def test_findings_are_the_same_and_a_folder_that_a_machine_does_not_see_is_named(
    tmp_path: Path, machines: Any, cluster: Cluster
) -> None:
    (tmp_path / "data").mkdir()
    data = make_data(tmp_path / "data", 6)
    screen = tmp_path / "data" / "screen.png"
    screen.write_bytes(screen.read_bytes()[:200])
    command = ("validate", "omnigui", data, "--json")
    alone = omnidata(*command, code=1)
    spread = omnidata_apart(*command, "--engine", "ray", "--address", machines.address, code=1)
    assert spread.stdout == alone.stdout
    assert '"media-truncated"' in spread.stdout
    with pytest.raises(RunError, match="does not see it") as refused:
        list(each(calls.double, [1], workers=1, cluster=cluster, sees=[tmp_path / "gone"]))
    assert str(tmp_path / "gone") in refused.value.where


def test_a_call_that_is_stopped_leaves_no_worker(machines: Any, cluster: Cluster) -> None:
    answers = each(calls.double, range(1000), workers=None, cluster=cluster)
    assert next(answers) == 0
    answers.close()
    until = time.monotonic() + 20
    while workers_of(machines, "Caller"):
        assert time.monotonic() < until
        time.sleep(0.1)
