"""Online-Mind2Web's results: labels of persons, WebJudge's, and trajectories, put together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from omnidata.errors import DataError
from omnidata.loaders.load import recognise
from omnidata.tasks import get_task
from tests.cli.running import as_json, here
from tests.data.tiny import SIZE
from tests.loaders.agentstudio import pictures
from tests.loaders.neighbours import label, online_mind2web, trajectory
from tests.tasks.verbs import every_verb
from tests.trees import codes

HUMAN, JUDGE = "online-mind2web", "online-mind2web-webjudge"


def scores(data: Path, profile: str = HUMAN) -> dict[str, Any]:
    scorer = get_task("online-mind2web").benchmark.rollouts
    assert scorer is not None
    found, _ = scorer.score(data, None, profile=profile)
    return {one.agent: one.results for one in found}


def test_every_verb_takes_the_data(tmp_path: Path) -> None:
    data = online_mind2web(tmp_path / "data")
    names = ("oracle", "majority")
    # The export leaves out the agent of which there are no pictures, and says so.
    found = every_verb("online-mind2web", data, tmp_path, baselines=names, exported=1)
    assert found["oracle"]["overall"] == {"accuracy": 1.0}
    here("score", "online-mind2web", data, "--profile", JUDGE, "--out", tmp_path / "scored")
    assert as_json(here("report", tmp_path / "scored", "--json"))["tables"]


def test_labels_trajectories_and_judgements_are_one_rollout(tmp_path: Path) -> None:
    source = get_task("online-mind2web").load(online_mind2web(tmp_path))
    assert recognise(tmp_path) == ["online-mind2web"]
    assert not source.findings
    steps = {step.sample_id: step for step in source.steps}
    assert steps.keys() == {"Seer/t1", "Doer/t1", "Seer/t2", "Doer/t2"}
    seen = steps["Seer/t1"]
    shot = seen.media["screenshot"]
    assert (shot and shot.path, seen.screen) == ("10_shot.png", SIZE)  # after 9, and not after 1
    assert seen.source["actions"] == [f"click {n}" for n in range(11)]
    assert {name: step.tags.get("outcome") for name, step in steps.items()} == {
        "Seer/t1": "success", "Doer/t1": "failure", "Seer/t2": "failure", "Doer/t2": None,
    }  # fmt: skip
    assert seen.group == steps["Doer/t1"].group == "t1"


def test_persons_and_webjudge_are_profiles_of_their_own(tmp_path: Path) -> None:
    data = online_mind2web(tmp_path)
    found = scores(data)
    assert found["Seer"]["overall"] == {"SR_finished": 0.5, "SR_all": pytest.approx(1 / 300)}
    # What an agent could not begin counts in SR_all alone.
    assert found["Doer"]["overall"] == {"SR_finished": 0.0, "SR_all": 0.0}
    assert found["Doer"]["counts"]["unfinished"] == 1
    assert scores(data, JUDGE).keys() == {"Seer"}
    assert scores(data, JUDGE)["Seer"]["overall"]["SR_finished"] == 1.0
    assert found["Seer"]["rollouts"]["endings"] == {"finished": 2}
    assert found["Seer"]["rollouts"]["turns"]["mean"] == 11


def test_the_second_form_of_a_trajectory_names_its_screenshots(tmp_path: Path) -> None:
    steps = [{"action": f"do {n}", "thought": "", "screenshot": f"s{n}.png"} for n in range(2)]
    changes = {"schema_version": "online-mind2web-v2", "action_history": steps}
    trajectory(tmp_path, "t1", final_result_response=None, agent_final_answer="42", **changes)
    pictures(tmp_path / "t1" / "trajectory", ["s0.png", "s1.png"], size=SIZE)
    source = get_task("online-mind2web").load(tmp_path)
    (step,) = source.steps
    assert not source.findings
    shot = step.media["screenshot"]
    assert shot and shot.path == "s1.png"
    assert step.source["actions"] == ["do 0", "do 1"]
    assert step.sample_id == f"{tmp_path.name}/t1"
    with pytest.raises(DataError, match="no rollout has a score"):
        scores(tmp_path)


def test_the_benchmarks_list_of_tasks_says_how_difficult_they_are(tmp_path: Path) -> None:
    data = online_mind2web(tmp_path)
    told = [
        {"task_id": "t1", "confirmed_task": "Find it", "reference_length": 5, "level": "hard"},
        {"task_id": "t2", "confirmed_task": "See it", "reference_length": 2, "level": "easy"},
    ]
    (data / "Online_Mind2Web.json").write_text(json.dumps(told))
    by = scores(data)["Seer"]["by"]["level"]
    assert {name: table["SR_finished"] for name, table in by.items()} == {"easy": 0.0, "hard": 1.0}


def test_rows_that_cannot_be_used_are_found(tmp_path: Path) -> None:
    rows = [label("t1", Seer="1", Doer="yes"), label("", Seer="1"), label("t3", Seer="0"), 7]
    (tmp_path / "human_label.json").write_text(json.dumps(rows))
    source = get_task("online-mind2web").load(tmp_path)
    assert codes(source) == {"label-unknown": 1, "task-missing": 1, "json-invalid": 1}
    assert [step.sample_id for step in source.steps] == ["Seer/t1", "Seer/t3"]


def test_of_two_judges_of_one_rollout_the_first_holds(tmp_path: Path) -> None:
    data = online_mind2web(tmp_path)
    other = {"task_id": "t1", "task": "Do t1", "predicted_label": 0}
    (data / "Seer" / "z_auto_eval_results.json").write_text(json.dumps(other) + "\n")
    assert codes(get_task("online-mind2web").load(data)) == {"judgement-repeated": 1}
    assert scores(data, JUDGE)["Seer"]["overall"]["SR_finished"] == 1.0


def judged(folder: Path, own: str, score: Any, **changes: Any) -> None:
    """A rollout as Browser Use publishes its own: no actions, and what its judge said."""
    row = {"task_id": own, "task": f"Do {own}", "final_result_response": "It is done."}
    row |= {"judge": {"score": score, "reasoning": "It was."}} | changes
    (folder / own).mkdir(parents=True, exist_ok=True)
    (folder / own / "result.json").write_text(json.dumps(row))


@pytest.mark.parametrize("scale", [100.0, True])
def test_an_agents_own_judge_is_a_judge(tmp_path: Path, scale: Any) -> None:
    """Of 300 rollouts 291 are right, by a judge that counts to 100, or says true."""
    data = tmp_path / "repository" / "results"
    for number in range(300):
        judged(data, f"t{number}", scale if number >= 9 else scale * 0)
    assert recognise(data) == ["online-mind2web"]
    found = scores(data, JUDGE)
    assert list(found) == ["results"]
    assert found["results"]["overall"] == {"SR_finished": 0.97, "SR_all": 0.97}
    assert found["results"]["counts"]["absent"] == 0
    assert found["results"]["rollouts"]["endings"] == {"finished": 300}
    assert scores(data.parent, JUDGE) == found
    with pytest.raises(DataError, match=f"--profile {JUDGE}, which 300 rollouts have"):
        scores(data)


def test_a_judge_that_counts_to_100_gives_parts_of_it(tmp_path: Path) -> None:
    for own, score in (("a", 75), ("b", 1), ("c", 0), ("d", None)):
        judged(tmp_path / "X", own, score)
    judged(tmp_path / "Y", "a", 0.75)
    judged(tmp_path / "Y", "b", 1)
    found = scores(tmp_path, JUDGE)
    assert found["X"]["overall"]["SR_finished"] == pytest.approx((0.75 + 0.01 + 0) / 3)
    assert found["Y"]["overall"]["SR_finished"] == pytest.approx((0.75 + 1) / 2)
    assert found["X"]["counts"]["absent"] == 297, "nobody judged the fourth"


@pytest.mark.parametrize("score", ["100", 101, -1, float("nan"), [1]])
def test_a_judgement_that_is_no_score_is_found(tmp_path: Path, score: Any) -> None:
    judged(tmp_path / "X", "a", score)
    judged(tmp_path / "X", "b", 100)
    assert codes(get_task("online-mind2web").load(tmp_path)) == {"score-unusable": 1}
    assert scores(tmp_path, JUDGE)["X"]["counts"]["finished"] == 1


def test_a_judgement_alone_is_a_rollouts(tmp_path: Path) -> None:
    for own, score in (("a", 100), ("b", 0)):
        (tmp_path / "X" / own).mkdir(parents=True)
        row = {"task_id": own, "judge": {"score": score}}
        (tmp_path / "X" / own / "result.json").write_text(json.dumps(row))
    assert scores(tmp_path, JUDGE)["X"]["overall"]["SR_finished"] == 0.5


def test_webjudges_label_holds_beside_an_agents_own_judge(tmp_path: Path) -> None:
    judged(tmp_path / "X", "a", 100)
    judged(tmp_path / "X", "b", 100)
    label = {"task_id": "a", "predicted_label": 0}
    (tmp_path / "X" / "webjudge_auto_eval_results.json").write_text(json.dumps(label) + "\n")
    assert scores(tmp_path, JUDGE)["X"]["overall"]["SR_finished"] == 0.5
    assert codes(get_task("online-mind2web").load(tmp_path)) == {"judgement-repeated": 1}


def test_a_rollout_inside_anothers_folder_is_no_second_agent(tmp_path: Path) -> None:
    judged(tmp_path / "Seer", "a", 100)
    judged(tmp_path / "Seer" / "a", "b", 0)
    judged(tmp_path / "Seer" / "a" / "old", "a", 0)
    label = {"task_id": "c", "predicted_label": 1}
    (tmp_path / "Seer" / "a" / "eval_results.json").write_text(json.dumps(label) + "\n")
    found = scores(tmp_path, JUDGE)
    assert list(found) == ["Seer"]
    assert found["Seer"]["overall"]["SR_finished"] == pytest.approx((1 + 0 + 1) / 3)
    assert codes(get_task("online-mind2web").load(tmp_path)) == {"rollout-repeated": 1}
    assert list(scores(tmp_path / "Seer" / "a", JUDGE)) == ["Seer"], "named from within"


def test_a_screenshot_elsewhere_is_never_opened(tmp_path: Path) -> None:
    steps = [{"action": "do", "screenshot": "../../../secret.png"}]
    trajectory(tmp_path, "t1", action_history=steps)
    (step,) = get_task("online-mind2web").load(tmp_path).steps
    assert step.media == {}
