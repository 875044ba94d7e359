"""AndroidWorld's results: checkpoints, JSON, tables as CSV and as printed, and droidrun's."""

from __future__ import annotations

import gzip
import json
import pickle
import tempfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.errors import DataError
from omnidata.loaders.load import recognise
from omnidata.tasks import get_task
from omnidata.types import Step
from tests.cli.running import as_json, here
from tests.loaders.neighbours import androidworld, episode
from tests.tasks.verbs import every_verb
from tests.trees import codes

TABLE = """\
task_template,num_complete_trials,mean_success_rate,mean_episode_length,total_runtime_s,difficulty
CameraTakePhoto,2,0.5,4.0,80.1,easy
ClockStopWatchPaused,1,1.0,3.0,20.0,easy
MarkorCreateNote,0,,,0.0,medium
========= Average =========,1.0,0.75,3.5,33.4,
"""


def scores(data: Path, **options: Any) -> dict[str, Any]:
    scorer = get_task("androidworld").benchmark.rollouts
    assert scorer is not None
    found, _ = scorer.score(data, None, profile="androidworld", **options)
    return {one.agent: one.results for one in found}


def test_every_verb_takes_the_data(tmp_path: Path) -> None:
    rows = [episode(), episode("CameraTakePhoto", 0.0), episode("MarkorCreateNote", 0.0)]
    data = androidworld(tmp_path / "data", {"m3a": rows, "t3a": rows[:2]})
    names = ("oracle", "majority")
    # There are no pictures to train on.
    found = every_verb("androidworld", data, tmp_path, baselines=names, exported=2)
    assert found["majority"]["overall"] == {"accuracy": 0.6}
    assert as_json(here("info", "androidworld", data, "--json"))["tasks"] == 3, "of five episodes"
    here("score", "androidworld", data, "--out", tmp_path / "scored")
    tables = as_json(here("report", *(tmp_path / "scored").iterdir(), "--json"))["tables"]
    assert any(table["title"].startswith("Agents: androidworld") for table in tables)


def test_success_is_the_mean_over_tasks_of_the_mean_over_their_episodes(tmp_path: Path) -> None:
    rows = [
        episode("A", 1.0), episode("A", 0.0, instance_id=1), episode("B", 1.0),
        episode("B", 1.0, instance_id=1),
        episode("C", None, exception_info="Traceback: no emulator"),
        episode("C", 0.0, instance_id=1),
    ]  # fmt: skip
    found = scores(androidworld(tmp_path, {"m3a": rows}))["m3a"]
    assert found["overall"]["SR_finished"] == pytest.approx((0.5 + 1 + 0) / 3)
    assert found["overall"]["SR_all"] == pytest.approx((0.5 + 1 + 0) / 116)
    assert found["counts"] == {"tasks": 116, "finished": 3, "unfinished": 0, "absent": 113}
    assert found["attempts"]["n"] == 2
    assert found["attempts"]["k"]["2"]["pass@k"] == 1.0  # of the two tasks that both finished
    assert found["rollouts"]["endings"] == {"crash": 1, "unknown": 5}
    assert found["rollouts"]["turns"]["mean"] == 5


def test_the_releases_list_of_tasks_says_how_difficult_they_are(tmp_path: Path) -> None:
    data = androidworld(tmp_path, {"m3a": [episode("A"), episode("B", 0.0)]})
    told = [{"task_name": "A", "difficulty": "hard"}, {"task_name": "B", "difficulty": "odd"}]
    (data / "task_metadata.json").write_text(json.dumps(told))
    by = scores(data)["m3a"]["by"]["difficulty"]
    assert {name: table["finished"] for name, table in by.items()} == {"hard": 1}


class _Trap:
    """What a pickle runs when Python reads it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path(self.path),)

    def __init__(self, path: Path) -> None:
        self.path = str(path)


def checkpoint(folder: Path, *episodes: Mapping[str, Any], name: str = "") -> Path:
    """A task's checkpoint as AndroidWorld writes it, with a screenshot and texts of each step."""
    folder.mkdir(parents=True, exist_ok=True)
    shot = np.zeros((80, 36, 3), np.uint8)
    steps = {"raw_screenshot": [shot, shot], "summary": ["I see.", "Done."], "step_number": [0, 1]}
    kept = []
    for one in episodes:
        failed = one["exception_info"] is not None
        nothing = dict.fromkeys(("is_successful", "episode_length"), np.nan) if failed else {}
        kept.append(
            {
                **{name: one[name] for name in ("goal", "task_template")},
                "episode_data": np.nan if failed else steps,
                **one,
                **nothing,
                "finish_dtime": datetime(2026, 1, 2, 3, 4),  # noqa: DTZ001  # as it writes them
                "agent_name": one.get("agent_name", "m3a_gpt4v"),
            }
        )
    own = name or f"{episodes[0]['task_template']}_{episodes[0]['instance_id']}.pkl.gz"
    content = pickle.dumps(kept)
    (folder / own).write_bytes(gzip.compress(content) if own.endswith("gz") else content)
    return folder


def test_checkpoints_are_scored_as_the_episodes_that_they_hold(tmp_path: Path) -> None:
    rows = [
        episode("A", np.float64(1.0)), episode("A", 0.0, instance_id=1),
        episode("B", 0.5, instance_id=np.int64(0)),
        episode("C", None, exception_info="Traceback: no emulator"),
    ]  # fmt: skip
    run = tmp_path / "runs" / "run_20260102T030405000000"
    for row in rows:
        checkpoint(run, row)
    assert recognise(tmp_path) == ["androidworld"]
    found = scores(tmp_path)["m3a_gpt4v"]
    assert found["overall"]["SR_finished"] == pytest.approx((0.5 + 0.5) / 2)
    assert found["overall"]["SR_all"] == pytest.approx((0.5 + 0.25) / 116)  # B was tried once
    assert found["counts"]["unfinished"] == 1
    assert found["rollouts"]["endings"] == {"crash": 1, "unknown": 3}
    rows[-1]["episode_length"] = None
    plain = json.loads(json.dumps(rows, default=float))
    same = scores(androidworld(tmp_path / "json", {"m3a_gpt4v": plain}))["m3a_gpt4v"]
    assert found == same, "as if they had been written as JSON"
    source = get_task("androidworld").load(run)
    assert not codes(source)
    assert source.steps[0].source["row"]["finish_dtime"] == "2026-01-02T03:04:00"
    assert "episode_data" not in source.steps[0].source["row"]


@pytest.mark.parametrize("name", ["A_0.pkl", "A_0.pkl.gz", "A_0.pickle", "all.pickle.gz"])
def test_checkpoints_are_read_zipped_or_not(tmp_path: Path, name: str) -> None:
    checkpoint(tmp_path, episode("A", 1.0, agent_name=""), name=name)
    assert scores(tmp_path)[tmp_path.name]["counts"]["finished"] == 1, "the folder is the agent"
    assert scores(tmp_path / name)[tmp_path.name]["counts"]["finished"] == 1


def test_an_older_checkpoint_is_a_pair_with_the_names_of_what_is_done(tmp_path: Path) -> None:
    held = [episode("A", 1.0), episode("B", 0.0)], ["A", "B"]
    (tmp_path / "m3a.pkl.gz").write_bytes(gzip.compress(pickle.dumps(held)))
    assert scores(tmp_path)[tmp_path.name]["overall"]["SR_finished"] == 0.5


def test_what_a_checkpoint_holds_beside_episodes_is_found(tmp_path: Path) -> None:
    odd: list[Any] = [np.array(1.0), [1], 1.0]
    checkpoint(tmp_path, *(episode(task, own) for task, own in zip("ABC", odd, strict=True)))
    (tmp_path / "other.pkl").write_bytes(pickle.dumps({"weights": [1.0]}))
    (tmp_path / "list.pkl").write_bytes(pickle.dumps([1, "a"]))
    source = get_task("androidworld").load(tmp_path)
    assert codes(source) == {"score-unusable": 2, "episode-unusable": 2, "task-missing": 1}
    assert [step.group for step in source.steps] == ["C"]


def test_runs_of_one_agent_in_several_folders_are_not_pooled(tmp_path: Path) -> None:
    for run, success in (("run_1", 1.0), ("run_2", 0.0)):
        checkpoint(tmp_path / run, episode("A", success))
    found = scores(tmp_path)
    assert {agent: one["overall"]["SR_finished"] for agent, one in found.items()} == {
        "m3a_gpt4v/run_1": 1.0, "m3a_gpt4v/run_2": 0.0,
    }  # fmt: skip


def test_the_elements_that_m3a_keeps_are_read_without_its_classes(tmp_path: Path) -> None:
    """As a pickle has them: a name, nothing given, and a state."""
    name = b"android_world.env.representation_utils\nUIElement\n"
    steps = b"X\x0c\x00\x00\x00episode_data}X\x08\x00\x00\x00elementsc" + name
    steps += b")\x81}X\x04\x00\x00\x00textX\x02\x00\x00\x00OKsbss"
    content = pickle.dumps([episode("A", 1.0)], 2)[:-2] + steps + b"a."
    (tmp_path / "A_0.pkl").write_bytes(content)
    assert scores(tmp_path)[tmp_path.name]["overall"]["SR_finished"] == 1.0
    (tmp_path / "A_0.pkl").write_bytes(content.replace(b"UIElement", b"UIScreens"))
    with pytest.raises(DataError, match=r"android_world\.env\.representation_utils\.UIScreens"):
        scores(tmp_path)


def test_a_checkpoint_that_is_more_than_data_is_refused_by_name_and_not_run(tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    data = tmp_path / "data"
    data.mkdir()
    held = [episode("CameraTakePhoto", 1.0, aux_data=_Trap(sprung))]
    (data / "CameraTakePhoto_0.pkl.gz").write_bytes(gzip.compress(pickle.dumps(held)))
    (data / "Trap_0.pkl.gz").write_bytes(pickle.dumps(_Trap(sprung)))
    with pytest.raises(DataError, match=r"getattr|Path"):
        get_task("androidworld").load(data)
    checkpoint(data, episode())
    found = get_task("androidworld").load(data)
    assert codes(found) == {"pickle-refused": 2}
    assert len(found.steps) == 1
    assert not sprung.exists()


PRINTED = """\
I0102 12:00:00.000 1 suite_utils.py:689]

                      task_num  num_complete_trials  mean_success_rate  mean_episode_length  \
total_runtime_s  num_fail_trials
task
CameraTakePhoto              0                 1.00               0.00                 4.00  \
           40.1             0.00
========= Average =========  0                 1.00               0.00                 4.00  \
           40.1             0.00

Running task: MarkorCreateNote
==============================

                      task_num  num_complete_trials  mean_success_rate  mean_episode_length  \
total_runtime_s  num_fail_trials
task
CameraTakePhoto              0                 2.00               0.50                 4.00  \
           80.1             0.00
ClockStopWatchPaused         1                 1.00               1.00                 3.00  \
           20.0             0.00
MarkorCreateNote             2                 0.00                NaN                  NaN  \
           17.3             1.00
========= Average =========  0                 1.00               0.75                 3.50  \
           39.1             0.33

                mean_success_rate
difficulty                   easy medium hard
tags
complex_ui                   0.50      -    -
"""
"""What `run.py` logs: a table of all tasks so far after each episode, and one by tag."""


MARKDOWN = """\
| task_num | task | num_complete_trials | mean_success_rate |
|---:|:---|---:|---:|
| 0 | CameraTakePhoto | 2 | 0.5 |
| 1 | ClockStopWatchPaused | 1 | 1.0 |
| 2 | MarkorCreateNote | 0 | |

As of January.
"""


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("m3a.csv", TABLE),
        ("m3a.md", MARKDOWN),
        *((place, PRINTED) for place in ("m3a.log", "m3a.txt", "m3a/log", "m3a/results.md")),
    ],
)
def test_a_table_of_tasks_is_read_without_averages_and_of_printed_ones_the_last(
    tmp_path: Path, place: str, text: str
) -> None:
    path = tmp_path / "data" / place
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    assert recognise(tmp_path / "data") == ["androidworld"]
    found = scores(tmp_path / "data")["m3a"]
    assert found["overall"] == {"SR_finished": 0.75, "SR_all": pytest.approx(1.5 / 116)}
    assert (found["counts"]["finished"], found["counts"]["unfinished"]) == (2, 1)
    assert "rollouts" not in found
    if text == TABLE:
        assert found["by"]["difficulty"]["easy"]["SR_finished"] == 0.75
    source = get_task("androidworld").load(tmp_path / "data")
    assert not codes(source)
    assert source.steps[0].sample_id == "m3a/CameraTakePhoto"


def test_results_without_a_score_say_why(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([episode("A", 2.0), episode("B", 3.0)]))
    with pytest.raises(DataError, match=r"a\.json, item 0: the success is 2\.0"):
        scores(tmp_path)


def test_rows_of_a_printed_table_that_cannot_be_used_are_found(tmp_path: Path) -> None:
    cut = PRINTED.replace("ClockStopWatchPaused         1 ", "...                          1 ")
    (tmp_path / "m3a.log").write_text(cut.replace("           17.3             1.00", ""))
    source = get_task("androidworld").load(tmp_path)
    assert codes(source) == {"columns-differ": 2}
    assert [step.sample_id for step in source.steps] == ["m3a/CameraTakePhoto"]


def test_a_table_beside_episodes_is_no_second_agent(tmp_path: Path) -> None:
    """Episodes say more; of the table the tasks count that have none."""
    run = checkpoint(tmp_path / "run", episode("CameraTakePhoto", 1.0))
    (run / "log.txt").write_text(PRINTED, encoding="utf-8")
    found = scores(tmp_path)
    assert list(found) == ["m3a_gpt4v"]
    assert found["m3a_gpt4v"]["overall"]["SR_finished"] == 1.0
    assert codes(get_task("androidworld").load(tmp_path)) == {"table-repeated": 1}


def droidrun(folder: Path, task: str, success: Any, **changes: Any) -> None:
    """A task's result as droidrun's evaluation writes it."""
    row = {
        "task_id": 3, "task_name": task, "task_idx": 0, "task_description": f"Do {task}.",
        "max_steps": 15, "success": success, "agent_success": True, "steps_taken": 4,
        "execution_time": 45.7, "reasoning": False, "final_thought": "Done.", "logs": [],
        "timestamp": "2026-01-02T03:04:05", "error": None, "trajectory": [{"type": "plan"}],
        "trajectory_stats": {"total_steps": 4}, "device": "emulator-5554", **changes,
    }  # fmt: skip
    (folder / task).mkdir(parents=True, exist_ok=True)
    (folder / task / "result.json").write_text(json.dumps(row, indent=2))


def test_droidruns_results_are_one_agents(tmp_path: Path) -> None:
    """`success` is the environment's, `agent_success` the agent's own opinion."""
    data = tmp_path / "eval_results"
    droidrun(data, "A", 1.0)
    droidrun(data, "B", 0.0)
    droidrun(data, "C", 0.5, agent_success=False, steps_taken=15)
    droidrun(data, "D", 0.0, agent_success=False, final_thought="Timeout after 900 seconds")
    droidrun(data, "E", 0.0, agent_success=False, error="RuntimeError('no device')")
    droidrun(data / "A" / "old", "A", 0.0)
    assert recognise(data) == ["androidworld"]
    for place, agent in ((data, "eval_results"), (tmp_path, "eval_results")):
        found = scores(place)
        assert list(found) == [agent]
        assert found[agent]["overall"]["SR_finished"] == pytest.approx((1 + 0 + 0.5 + 0) / 4)
        assert found[agent]["rollouts"]["endings"] == {
            "finished": 2, "step_limit": 1, "time_limit": 1, "crash": 1,
        }  # fmt: skip
    source = get_task("androidworld").load(data)
    assert codes(source) == {"attempt-repeated": 1}, "the copy inside the folder of the task"
    (first,) = [step for step in source.steps if step.sample_id == "eval_results/A"]
    assert first.instruction == "Do A."
    assert first.source["row"]["task_name"] == "A" and "trajectory" not in first.source["row"]


def test_older_results_of_droidrun_have_a_file_for_each_run_and_a_summary(tmp_path: Path) -> None:
    for number, success in enumerate((True, False)):
        row = {"task_name": f"T{number}", "success": success, "steps_taken": 3, "error": None}
        (tmp_path / f"20260102_03040{number}_T{number}.json").write_text(json.dumps(row))
    tasks = [{"task_name": "T0", "success": True, "steps_taken": 3}]
    (tmp_path / "summary.json").write_text(json.dumps({"total_tasks": 2, "tasks": tasks}))
    found = scores(tmp_path)
    assert {agent: one["counts"]["finished"] for agent, one in found.items()} == {tmp_path.name: 2}
    assert not codes(get_task("androidworld").load(tmp_path))


def test_rows_that_cannot_be_used_are_found(tmp_path: Path) -> None:
    rows: list[Any] = [
        episode(task_template=None), episode("A", 7.0), episode("B"), episode("B"),
        episode("C", None), 7, episode("D", is_successful="yes"),
    ]  # fmt: skip
    data = androidworld(tmp_path, {"m3a": rows})
    (data / "table.csv").write_text(TABLE + "Short,1\n")
    source = get_task("androidworld").load(data)
    assert codes(source) == {
        "task-missing": 1, "score-unusable": 2, "attempt-repeated": 1, "json-invalid": 1,
        "columns-differ": 1,
    }  # fmt: skip
    (unknown,) = [step for step in source.steps if step.sample_id == "m3a/C"]
    assert "outcome" not in unknown.tags
    assert get_task("androidworld").target(unknown) is None


def test_an_agent_without_any_score_is_left_out_and_told_of(tmp_path: Path) -> None:
    data = androidworld(tmp_path, {"m3a": [episode()], "t3a": [episode("A", None)]})
    scorer = get_task("androidworld").benchmark.rollouts
    assert scorer is not None
    found, findings = scorer.score(data, None, profile="androidworld")
    assert [one.agent for one in found] == ["m3a"]
    assert [one.code for one in findings] == ["agent-unscored"]
    with pytest.raises(DataError):
        scores(androidworld(tmp_path / "other", {"t3a": [episode("A", None)]}))
    with pytest.raises(DataError):
        scores(data, strict=True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Status: success", True),
        ("Status: failure", False),
        ("It is no success. Status: FAILED", False),
        ("successful", None),
        ("", None),
    ],
)
def test_an_outcome_is_read_by_its_last_word(text: str, said: bool | None) -> None:
    step = Step("a", "a", 0, 1, "i", (9, 9), {}, (), (), None, {}, {"scores": {}})
    found = get_task("androidworld").profiles["androidworld-judge"].judge(step, text).parsed
    assert (found and found["success"]) is said


@given(st.text(max_size=200))
def test_a_table_of_any_text_is_read_or_told_of(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.csv")
        path.write_text(f"mean_success_rate,num_complete_trials,task\n{text}", "utf-8", "replace")
        try:
            steps = get_task("androidworld").load(Path(folder), check_media=False).steps
        except DataError:
            return
        assert all(step.sample_id for step in steps)
