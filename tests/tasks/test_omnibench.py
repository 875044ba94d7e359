"""OmniBench's prompt, right answers, baselines and totals."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.tasks import get_task
from omnidata.tasks.omnibench.load import load
from omnidata.types import Conversation, LoadedDataset, Step
from tests.loaders.omnibench import act, library, pictures, plain, task, trajectory, write
from tests.tasks.scored import scored

SPACES = ("px", "norm1000", "rel")
STEP = Step("a", "a", 0, 1, "i", (9, 9), {}, (), (), None, {}, {})


def system_prompt() -> str:
    return get_task("omnibench").conversation(STEP)[0].parts[0].text


def texts(conversation: Conversation) -> list[str]:
    return [part.text for message in conversation for part in message.parts]


def folder_of_prompts() -> Any:
    return resources.files("omnidata.tasks.omnibench").joinpath("prompts")


def test_the_prompt_is_the_papers_but_for_what_names_controls() -> None:
    paper = folder_of_prompts().joinpath("omnibench_trajectory.txt").read_text(encoding="utf-8")
    own = folder_of_prompts().joinpath("omnibench_apis.txt").read_text(encoding="utf-8")
    kept = set(paper.splitlines()) | set(own.splitlines())
    changed = [line for line in system_prompt().splitlines() if line not in kept]
    assert [line.split()[0] for line in changed] == ["-", "-", '"Status":', '"coordinates":']
    assert not re.search(r"ControlLabel|ControlText|annotat|\{apis\}|8 distinct", system_prompt())


def test_a_step_is_asked_about_with_its_screenshot_and_history(tmp_path: Path) -> None:
    step = load(library(tmp_path)).steps[-1]
    system, user = get_task("omnibench").conversation(step)
    assert (system.role, system.parts[0].text) == ("system", system_prompt())
    assert [part.kind for part in user.parts] == ["image", "text"]
    assert user.parts[0].media == step.media["screenshot"]
    assert user.parts[1].text.splitlines() == [
        "<Step History:> ",
        'Step 0: click_input(button="left", double=false) on "Save"',
        'Step 1: wheel_mouse_input(wheel_dist=-3) on "Save"',
        "<Task instruction:> Make 'C:\\one.ppt' ready.",
    ]


def test_the_options_change_the_prompt(tmp_path: Path) -> None:
    step = load(library(tmp_path)).steps[-1]
    options = [{}, {"history": "none"}, {"intent": "on"}, {"coordinates": "rel"}]
    tasks = [get_task("omnibench", each) for each in options]
    assert "<Step History:> none\n" in texts(tasks[1].conversation(step))[-1]
    assert "<Task intent:> Send a presentation\n" in texts(tasks[2].conversation(step))[-1]
    assert "from 0 to 1 along" in texts(tasks[3].conversation(step))[0]


def test_a_history_of_predictions_has_the_models_own_words(tmp_path: Path) -> None:
    asked = get_task("omnibench", {"history": "predicted"})
    assert asked.needs_predictions and not get_task("omnibench").needs_predictions
    answer = {"Function": "click_input", "Args": {"double": True}, "coordinates": [3, 4.5]}
    step = load(library(tmp_path)).steps[-1]
    answers = (json.dumps(answer), "nothing", '{"Function": ""}')
    past = [asked.history_action(step, text) for text in answers]
    said = texts(asked.conversation(step, past))[-1]
    assert said.splitlines()[1:3] == [
        'Step 0: click_input(button="left", double=true) on [3, 4.5]',
        "Step 2: FINISH",
    ]


def results(source: LoadedDataset, name: str) -> dict[str, Any]:
    asked = get_task("omnibench")
    rule = asked.baseline(name, source.steps, {})
    return scored(asked, source.steps, map(rule, source.steps), "omnibench-step")


def test_the_table_is_by_tags_and_episodes(tmp_path: Path) -> None:
    source = load(library(tmp_path))
    table = results(source, "center")
    blind = table["overall"]
    assert (blind["TM"], blind["EM"], blind["format_ok"]) == (0.4, 0.0, 1.0)
    assert results(source, "majority")["overall"]["TM"] == 0.4
    assert table["counts"]["steps"] == 5
    assert table["by"]["kind"]["subtask"]["steps"] == 2
    assert table["by"]["kind"]["task"]["steps"] == 3
    assert set(table["by"]) == {"kind", "app", "category", "platform", "intent"}
    assert table["counts"]["episodes"] == 2


def test_steps_without_a_usable_target_are_counted_and_left_out(tmp_path: Path) -> None:
    row = trajectory(act(), plain("click_input"), plain("jump"), plain("keyboard_input", keys="x"))
    source = load(write(tmp_path / "t.jsonl", row), check_media=False)
    table = results(source, "oracle")
    assert table["overall"]["EM"] == 1.0
    assert table["counts"]["steps"] == 2
    assert table["counts"]["without_usable_target"] == 2


def test_the_right_answer_is_in_the_form_that_is_asked_for(tmp_path: Path) -> None:
    first, second, _, wheel, end = load(library(tmp_path)).steps
    asked = get_task("omnibench")
    found = asked.target(first)
    assert found is not None
    assert json.loads(found.text) == {
        "Status": "CONTINUE", "Observation": "A window with a button.", "Thought": "I press it.",
        "coordinates": [20, 30], "Function": "click_input",
        "Args": {"button": "left", "double": False},
    }  # fmt: skip
    assert found.points == ((20, 30),)
    assert found.template == found.text.replace("[20,30]", "<bbox>")
    half = asked.target(first, space="px", size=(100, 50))
    assert half is not None and half.points == ((10, 15),)
    norm = asked.target(first, space="norm1000")
    assert norm is not None and norm.points == ((100, 300),)
    for step, status, function in (
        (second, "CONTINUE", "keyboard_input"), (wheel, "CONTINUE", "wheel_mouse_input"),
        (end, "FINISH", ""),
    ):  # fmt: skip
        target = asked.target(step)
        assert target is not None and (target.points, target.template) == ((), target.text)
        body = json.loads(target.text)
        assert (body["Status"], body["Function"], body["coordinates"]) == (status, function, [])


@given(st.data())
def test_every_right_answer_is_judged_right(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    width, height = data.draw(st.integers(30, 3000)), data.draw(st.integers(30, 3000))
    left, top = data.draw(st.floats(-9, width - 9)), data.draw(st.floats(-9, height - 9))
    box = [left, top, left + data.draw(st.floats(10, 500)), top + data.draw(st.floats(10, 500))]
    folder = tmp_path_factory.mktemp("box")
    pictures(folder, ["shots/0.png"], size=(width, height))
    row = trajectory(act(rect=box, thought="<bbox>"))
    step = load(write(folder / "t.jsonl", row), check_media=False).steps[0]
    space = data.draw(st.sampled_from(SPACES))
    asked = get_task("omnibench", {"coordinates": space})
    target = asked.target(step)
    assert target is not None and target.template.count("<bbox>") == 1
    verdict = asked.profiles["omnibench-step"].judge(step, target.text)
    assert verdict.values == (True, True, True)


def test_trajectories_of_one_task_stay_together_when_data_are_split(tmp_path: Path) -> None:
    rows = [
        trajectory(trajectory_id=own, subtask_id=None, task_id="12") for own in ("12(0)", "12(1)")
    ]
    rows += [trajectory(trajectory_id=own) for own in ("12", "first", "7f0a(0)")]
    rows += [trajectory(trajectory_id="first(1)", subtask_id="12")]
    source = load(write(tmp_path / "t.jsonl", *rows, task("12")), check_media=False)
    groups = [step.group for step in source.steps[::2]]
    assert groups == ["task/12"] * 2 + ["subtask/A"] * 3 + ["subtask/12"]


def test_every_option_of_the_task_is_documented() -> None:
    page = Path(__file__).parents[2] / "docs" / "benchmarks" / "omnibench.md"
    if not page.is_file():
        pytest.skip("needs a checkout: the sdist has no docs")
    text = page.read_text("utf-8")
    for name, values in get_task("omnibench").allowed.items():
        joined = "\\|".join(values)
        assert f"`{name}={joined}`" in text
