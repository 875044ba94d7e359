"""The tasks agentnet and screenspot: prompts, targets, profiles, tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omnidata.tasks import get_task
from omnidata.types import LoadedDataset, Step
from tests.cli.running import as_json, here
from tests.loaders.desk import (
    agentnet,
    bench,
    bench_step,
    click,
    code,
    gold,
    pro,
    screenspot,
    spot,
    trajectory,
)
from tests.trees import NO_SHARED, SHARED, write_lines

REAL = SHARED / "data" / "agentnet_raw_win10"
real = pytest.mark.skipif(not REAL.is_dir(), reason=NO_SHARED)
SPACES = ("rel", "px", "norm1000")


def verdict(task: str, profile: str, step: Step, text: str, **options: str) -> Any:
    return get_task(task, options).profiles[profile].judge(step, text)


def steps_of(task: str, data: Path, **options: str) -> LoadedDataset:
    return get_task(task, options).load(data)


def trajectories(tmp_path: Path) -> Path:
    agentnet(
        tmp_path / "a",
        trajectory(
            "pyautogui.click(x=0.5, y=0.25)",
            "pyautogui.moveTo(x=0.4, y=0.2)\npyautogui.dragTo(x=0.1, y=0.2, button='left')",
            "pyautogui.scroll(-3)",
            "pyautogui.hotkey(keys=['ctrl', 's'])",
            "computer.terminate(status='success')",
        ),
    )
    bench(
        tmp_path / "b",
        bench_step(0, click(0.1, 0.1, [0.05, 0.05, 0.1, 0.1])),
        bench_step(
            4,
            gold("write", text="a b"),
            gold("press", keys=["enter"]),
            action="pyautogui.write(message='a b')\npyautogui.press(keys=['enter'])",
        ),
    )
    return tmp_path


def test_a_target_has_its_places(tmp_path: Path) -> None:
    task = get_task("agentnet")
    step = task.load(trajectories(tmp_path)).steps[1]
    found = task.target(step)
    assert found
    assert found.text == (
        "```python\npyautogui.moveTo(x=0.4, y=0.2)\npyautogui.dragTo(x=0.1, y=0.2, button='left')"
        "\n```"
    )
    assert found.template.count("<bbox>") == 2
    assert found.points == ((0.4, 0.2), (0.1, 0.2))
    pixels = task.target(step, space="px", size=(640, 360))
    assert pixels
    assert pixels.points == ((256, 72), (64, 72))


def test_pixels_of_an_unknown_screen_are_not_judged(tmp_path: Path) -> None:
    data = agentnet(tmp_path, trajectory("pyautogui.click(x=0.5, y=0.5)", "pyautogui.scroll(1)"))
    for path in (data / "images").iterdir():
        path.unlink()
    task = get_task("agentnet", {"coordinates": "px"})
    click_step, scroll_step = task.load(data).steps
    for said in ("pyautogui.click(x=1, y=1)", "no code"):
        assert task.profiles["agentnetbench"].judge(click_step, said).values == (None,)
    assert task.target(click_step) is None
    said = "pyautogui.scroll(1)"
    assert task.profiles["agentnetbench"].judge(scroll_step, said).values == (1.0,)


@pytest.mark.parametrize("space", ["rel", "norm1000"])
def test_shares_need_no_size_of_the_screen(tmp_path: Path, space: str) -> None:
    data = agentnet(tmp_path / "a", trajectory("pyautogui.click(x=0.25, y=0.5)"))
    (data / "images" / "t1_0.png").unlink()
    row = {"file_name": "a.png", "bbox": [0.2, 0.4, 0.3, 0.6], "instruction": "x"}
    spots = write_lines(tmp_path / "s.jsonl", [{**row, "data_type": "icon"}])
    for task, place in (
        (get_task("agentnet", {"coordinates": space}), data),
        (get_task("screenspot", {"coordinates": space, "boxes": "xyxy-rel"}), spots),
    ):
        (step,) = task.load(place).steps
        target = task.target(step)
        assert target
        assert target.points == ((0.25, 0.5) if space == "rel" else (250, 500),)
        for profile in task.profiles.values():
            assert profile.judge(step, target.text).values[0] == 1


def test_the_prompt_shows_the_code_of_the_steps_before(tmp_path: Path) -> None:
    step = steps_of("agentnet", trajectories(tmp_path)).steps[2]
    system, user = get_task("agentnet").conversation(step)
    assert "from 0 to 1" in system.parts[0].text
    shown, asked = user.parts
    assert (shown.kind, shown.role) == ("image", "screenshot")
    assert "Task: Save the file" in asked.text
    assert "1. pyautogui.click(x=0.5, y=0.25)\n2. pyautogui.moveTo" in asked.text
    _, bare = get_task("agentnet", {"history": "none"}).conversation(step)
    assert bare.parts[1].text.endswith("(none)")
    own = get_task("agentnet", {"history": "predicted"})
    said = own.history_action(step, "```python\npyautogui.press('a')\n```")
    _, told = own.conversation(step, (said, None))
    assert "1. pyautogui.press('a')\n2. (an action that cannot be shown)" in told.parts[1].text


def test_an_alternative_is_as_right_as_the_truth(tmp_path: Path) -> None:
    other = bench_step(0, click(), alternative_options=[[gold("press", keys=["f5"])]])
    step = steps_of("agentnet", bench(tmp_path, other)).steps[0]
    for profile in ("agentnetbench", "agentnetbench-fixed"):
        found = verdict("agentnet", profile, step, "pyautogui.press(keys=['f5'])")
        assert found.values == (1.0,)


def test_steps_whose_truth_cannot_be_used_are_counted_and_left_out(tmp_path: Path) -> None:
    row = trajectory("pyautogui.click(x=0.5, y=0.5)")
    row["traj"].append(code(1, "while True: pass", "t1_1.png"))
    task = get_task("agentnet")
    source = task.load(agentnet(tmp_path, row))
    assert task.target(source.steps[1]) is None
    found = task.profiles["agentnetbench"].judge(source.steps[1], "pyautogui.scroll(1)")
    assert found.values == (None,)


@real
@pytest.mark.parametrize("space", SPACES)
def test_the_real_trajectory_is_answered_and_missed(space: str) -> None:
    task = get_task("agentnet", {"coordinates": space})
    steps = task.load(REAL, check_media=False).steps
    for name, wanted in (("oracle", 1.0), ("center", 0.0)):
        answer = task.baseline(name, steps, {})
        for profile in task.profiles.values():
            scores = [profile.judge(step, answer(step)).values[0] for step in steps]
            mean = sum(value for value in scores if value is not None) / len(scores)
            assert mean == pytest.approx(wanted, abs=0.05), (space, name, profile.name)


def spots(tmp_path: Path) -> Path:
    screenspot(tmp_path, spot(), spot(data_type="icon"), name="screenspot_web.json")
    screenspot(tmp_path, spot(img_filename="m.png"), name="screenspot_mobile.json")
    screenspot(tmp_path, pro(), name="photoshop_windows.json")
    return tmp_path


def test_the_table_has_seeclicks_columns(tmp_path: Path) -> None:
    data = spots(tmp_path)
    said = {"screenspot_web/0": "(0.25, 0.375)", "screenspot_mobile/0": "(0.125, 0.25)"}
    ids = [step.sample_id for step in get_task("screenspot").load(data).steps]
    rows = [{"sample_id": own, "output": said.get(own, "no")} for own in ids]
    answers = write_lines(tmp_path / "answers.jsonl", rows)
    found = as_json(here("score", "screenspot", data, answers, "--json"))
    assert found["overall"] == {"accuracy": 0.5, "text": 1.0, "icon": 0.0}
    assert found["macro"] == 0.5  # a text on either platform, and icons on two
    web = found["by"]["platform"]["web"]
    assert (web["accuracy"], web["text"], web["icon"], web["steps"]) == (0.5, 1.0, 0.0, 2)
    assert found["by"]["group"]["Creative"]["icon"] == 0.0
    assert found["by"]["platform"]["mobile"]["icon"] is None
    assert found["outcomes"] == {"ok": 2, "unparsed": 2}


def test_a_negative_row_wants_the_word(tmp_path: Path) -> None:
    data = screenspot(tmp_path, pro(gt_type="negative"), name="p.json")
    task = get_task("screenspot", {"negatives": "on"})
    (step,) = task.load(data).steps
    (message,) = task.conversation(step)
    assert "the word negative" in message.parts[1].text
    target = task.target(step)
    assert target
    for profile in task.profiles.values():
        assert profile.judge(step, target.text).values == (True, None, True)
        assert profile.judge(step, "(0.5, 0.5)").values == (False, None, False)
        assert profile.judge(step, "maybe").outcome == "unparsed"


def test_a_row_without_a_screen_is_not_judged(tmp_path: Path) -> None:
    data = screenspot(tmp_path, spot())
    (data / "images" / "web_1.png").unlink()
    (step,) = steps_of("screenspot", data).steps
    assert verdict("screenspot", "screenspot", step, "(0.5, 0.5)").values == (None, None, None)
    assert get_task("screenspot").target(step) is None
