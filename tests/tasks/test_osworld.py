"""The task `osworld`: the paper's prompt, right answers as code, and what the profile says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omnidata.errors import UsageError
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.types import Conversation, LoadedDataset, Step
from tests.loaders.osworld import SIZE, line, plain, rollout

TASKED: dict[str, Any] = {"instruction": "Clear the cookies"}


def texts(conversation: Conversation) -> list[str]:
    return ["".join(part.text for part in message.parts) for message in conversation]


def loaded(root: Path, **options: str) -> tuple[Asking, LoadedDataset]:
    task = get_task("osworld", options)
    return task, task.load(root)


def one(tmp_path: Path, action: Any, place: str = "os/e1") -> Step:
    rollout(tmp_path, line(1, action, **TASKED), place=place)
    return get_task("osworld").load(tmp_path, check_media=False).steps[0]


def test_the_system_prompt_forbids_to_look_for_pictures(tmp_path: Path) -> None:
    system, _ = get_task("osworld").conversation(one(tmp_path, "DONE"))
    forbidden = "DONOT use the `pyautogui.locateCenterOnScreen` function to locate"
    assert forbidden in system.parts[0].text


def test_a_step_is_asked_about_with_its_screenshot_and_the_last_three_actions(
    tmp_path: Path,
) -> None:
    rows = [line(n, f"pyautogui.press('{n}')", **TASKED) for n in range(1, 6)]
    rollout(tmp_path, *rows)
    task, source = loaded(tmp_path)
    system, user = task.conversation(source.steps[4])
    assert texts((system,))[0].endswith("complete the following task: Clear the cookies")
    (shot,) = (part for part in user.parts if part.kind == "image")
    assert shot.media == source.steps[3].media["screenshot_after"]
    assert texts((user,))[0].splitlines()[1:] == [
        "The last actions, the latest at the end:",
        "2. pyautogui.press('2')",
        "3. pyautogui.press('3')",
        "4. pyautogui.press('4')",
    ]
    assert [part.kind for part in task.conversation(source.steps[0])[1].parts] == ["text"]


def test_what_came_after_the_action_is_never_shown(tmp_path: Path) -> None:
    task, source = loaded(plain(tmp_path))
    for step in source.steps:
        shown = {
            part.media
            for message in task.conversation(step)
            for part in message.parts
            if part.media
        }
        assert shown == {step.media["screenshot"]}
        assert not shown & {step.media["screenshot_after"], step.media["video_after"]}


def test_history_may_be_left_out_or_the_models_own(tmp_path: Path) -> None:
    plain(tmp_path)
    task, source = loaded(tmp_path, history="none")
    assert "last actions" not in texts(task.conversation(source.steps[2]))[1]
    task, source = loaded(tmp_path, history="predicted")
    assert task.needs_predictions
    answers = ("```python\npyautogui.click(1, 2)\n```", "nothing")
    said = [task.history_action(source.steps[0], text) for text in answers]
    assert texts(task.conversation(source.steps[2], said))[1].splitlines()[2:] == [
        "1. pyautogui.click(1, 2)", "2. (an action that cannot be shown)",
    ]  # fmt: skip


def test_the_prompts_hash_is_of_what_the_model_reads(tmp_path: Path) -> None:
    plain_hash = get_task("osworld").prompt_hash
    assert get_task("osworld", {"alignment": "pictures"}).prompt_hash == plain_hash
    assert get_task("osworld", {"examples": str(tmp_path)}).prompt_hash == plain_hash
    with pytest.raises(UsageError):
        get_task("osworld", {"examples": str(tmp_path / "none")})


@pytest.mark.parametrize(
    ("action", "text", "places"),
    [
        ("pyautogui.click(96, 54)", "pyautogui.click(96, 54)", [(96, 54)]),
        ({"action_type": "DOUBLE_CLICK", "x": 96, "y": 54}, "pyautogui.doubleClick(96, 54)",
         [(96, 54)]),
        ("tag_1=(10, 20)\npyautogui.rightClick(tag_1)", "pyautogui.rightClick(10, 20)", [(10, 20)]),
        ("pyautogui.moveTo(1, 2); pyautogui.dragTo(3, 4)",
         "pyautogui.moveTo(1, 2)\npyautogui.dragTo(3, 4, button='left')", [(1, 2), (3, 4)]),
        ("pyautogui.write('it\\'s'); time.sleep(0.5)",
         'pyautogui.write("it\'s")\ntime.sleep(0.5)', []),
        ("pyautogui.scroll(-3, 5, 6)", "pyautogui.scroll(-3, 5, 6)", [(5, 6)]),
    ],
)  # fmt: skip
def test_the_right_answer_is_code(
    tmp_path: Path, action: Any, text: str, places: list[tuple[int, int]]
) -> None:
    task, step = get_task("osworld"), one(tmp_path, action)
    target = task.target(step)
    assert target is not None
    assert (target.text, list(target.points)) == (f"```python\n{text}\n```", places)
    assert target.template.count("<bbox>") == len(places)
    filled = target.template
    for x, y in target.points:
        filled = filled.replace("<bbox>", f"[{x}, {y}]", 1)
    profile = task.profiles["osworld-step"]
    for answer in (target.text, filled):
        assert profile.judge(step, answer).values == (True, True, True)


def test_the_words_of_the_prompt_are_blocks_of_their_own(tmp_path: Path) -> None:
    task = get_task("osworld")
    for number, (action, text) in enumerate(
        [
            ("DONE", "```DONE```"),
            ({"action_type": "WAIT"}, "```WAIT```"),
            ("pyautogui.press('a')\nFAIL", "```python\npyautogui.press('a')\n```\n```FAIL```"),
        ]
    ):
        step = one(tmp_path / str(number), action)
        target = task.target(step)
        assert target is not None
        assert (target.text, target.template) == (text, text)
        assert task.profiles["osworld-step"].judge(step, text).values == (True, True, True)


@pytest.mark.parametrize(
    "action", ["for a in b: pass", "pyautogui.click()", "pyautogui.click(tag_1)", ""]
)
def test_a_turn_that_cannot_be_said_has_no_right_answer(tmp_path: Path, action: str) -> None:
    task, step = get_task("osworld"), one(tmp_path, action)
    assert task.target(step) is None
    verdict = task.profiles["osworld-step"].judge(step, "```DONE```")
    assert verdict.values == (None, None, True)


def test_places_are_pixels_of_the_screenshot_as_it_is_shown(tmp_path: Path) -> None:
    task, step = get_task("osworld"), one(tmp_path, "pyautogui.click(96, 54)")
    small = SIZE[0] // 2, SIZE[1] // 2
    target = task.target(step, size=small)
    assert target is not None
    assert target.points == ((48, 27),)
    profile = task.profiles["osworld-step"]
    shown = {"role": "screenshot", "width": small[0], "height": small[1], "original": list(SIZE)}
    assert profile.judge(step, target.text, {"parts": [shown]}).values == (True, True, True)
    assert profile.judge(step, target.text).values == (True, False, True)
    with pytest.raises(UsageError, match="pixels"):
        task.target(step, space="norm1000")
    by = one(tmp_path / "b", "pyautogui.moveTo(1, 1); pyautogui.drag(5, 5)")
    assert task.target(by) is not None
    assert task.target(by, size=small) is None


def test_a_typed_text_that_stands_for_a_place_is_none(tmp_path: Path) -> None:
    typed = "pyautogui.write('a <bbox> b')\npyautogui.click(3, 4)\npyautogui.write('<bbox>')"
    found = get_task("osworld").target(one(tmp_path, typed))
    assert found is not None
    assert typed in found.text
    assert "write('a bbox b')\npyautogui.click(<bbox>)\npyautogui.write('bbox')" in found.template
