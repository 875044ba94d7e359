"""Which way a scroll goes: the labels of every form, in every dialect, there and back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from omnidata.dialects import dialects
from omnidata.errors import UsageError
from omnidata.tasks import get_task
from omnidata.types import Step
from tests.loaders import phones, step_rows
from tests.loaders.published_forms import act, odyssey
from tests.loaders.step_rows import graded

Data = Callable[[Path], Path]


def up_and_down(up: Any, down: Any, folder: Path) -> Path:
    """JSON rows that say with these actions that the finger goes up, and down."""
    told = {"instruction": "Look further", "image": "x.png", "width": 72, "height": 160}
    rows = (each if "gt_action" in each else {**told, **each} for each in (up, down))
    return step_rows.lines(folder / "rows.jsonl", *rows)


def records(folder: Path) -> Path:
    calls = [{"action_type": "scroll", "direction": way} for way in ("down", "up")]
    return phones.records(folder / "android_control", phones.episode(*calls)).parent


def annotated(folder: Path) -> Path:
    ends = [[500, 800], [500, 200]], [[500, 200], [500, 800]]
    return odyssey(folder, *(act("SCROLL", each) for each in ends))


def swipe(*ends: tuple[int, int]) -> Any:
    return {"action": {"action": "swipe", "coordinate": ends[0], "coordinate2": ends[1]}}


def conversations(sign: str, up: str, down: str, folder: Path) -> Path:
    """OS-Atlas's test rows, whose prompt has an action of their benchmark."""
    asked = f"Custom Action 1: {sign}\nTask: Look. You need to: Look further.\nHistory: None"
    rows = [
        {
            "image": f"/a/7_{number}.png",
            "width": 72,
            "height": 160,
            "conversations": [
                {"from": "human", "value": asked},
                {"from": "gpt", "value": f"thoughts:\nx\nactions:\nSCROLL [{word}]"},
            ],
        }
        for number, word in enumerate((up, down))
    ]
    return step_rows.lines(folder / "rows.jsonl", *rows)


def scroll(direction: str) -> dict[str, str]:
    return {"action_type": "scroll", "direction": direction}


def use(direction: str) -> Any:
    return {"action": {"action": "swipe", "direction": direction}}


CONTROL, ODYSSEY = "androidcontrol", "gui-odyssey"
OWN = {"action": scroll("down")}, {"action": scroll("up")}
UI_R1 = {"gt": scroll("down")}, {"gt": scroll("up")}
PLACES = swipe((9, 90), (9, 9)), swipe((9, 9), (9, 90))
TEXTS = {"action": "SCROLL [DOWN]"}, {"action": "SCROLL [UP]"}
GUI_R1 = graded("scroll", "DOWN"), graded("scroll", "UP")
FORMS: dict[str, tuple[str, Data]] = {
    "records": (CONTROL, records),
    "own": (CONTROL, partial(up_and_down, *OWN)),
    "ui-r1": (CONTROL, partial(up_and_down, *UI_R1)),
    "mobile_use": (CONTROL, partial(up_and_down, use("up"), use("down"))),
    "two places": (CONTROL, partial(up_and_down, *PLACES)),
    "os-atlas's texts": (CONTROL, partial(up_and_down, *TEXTS)),
    "gui-r1's columns": (CONTROL, partial(up_and_down, *GUI_R1)),
    "os-atlas's conversations": (CONTROL, partial(conversations, "OPEN_APP", "DOWN", "UP")),
    "annotations": (ODYSSEY, annotated),
    "os-atlas's conversations of odyssey": (
        ODYSSEY,
        partial(conversations, "IMPOSSIBLE", "UP", "DOWN"),
    ),
    "os-atlas's texts of odyssey": (ODYSSEY, partial(up_and_down, *TEXTS[::-1])),
    "gui-r1's columns of odyssey": (ODYSSEY, partial(up_and_down, *GUI_R1[::-1])),
}
WORDS = {"androidcontrol": "SCROLL [DOWN]", "gui-odyssey": "SCROLL [UP]"}
"""How OS-Atlas's labels of each benchmark say that the finger goes up."""


def right(task: Any, step: Step, text: str) -> Any:
    profile = task.profiles[task.default_profile]
    return dict(zip(profile.values, profile.judge(step, text).values, strict=True))["exact_match"]


@pytest.mark.parametrize("form", FORMS)
def test_a_label_in_every_dialect_is_right_where_it_came_from_and_nowhere_else(
    form: str, tmp_path: Path
) -> None:
    name, build = FORMS[form]
    up, down = get_task(name).load(build(tmp_path), check_media=False).steps
    assert [step.action and step.action.label for step in (up, down)] == ["SWIPE_UP", "SWIPE_DOWN"]
    said = set()
    for dialect in dialects():
        try:
            task = get_task(name, {"dialect": dialect})
        except UsageError:
            continue
        if (first := task.target(up)) is None:
            continue
        assert right(task, up, first.text) is True, dialect
        assert right(task, down, first.text) is False, dialect
        said.add(dialect)
    assert {"os-atlas-pro", "gui-r1", "qwen2.5", "ui-tars-1.5", "agentcpm-gui"} <= said


@pytest.mark.parametrize("form", FORMS)
def test_os_atlas_teaches_and_reads_the_words_of_the_benchmark(form: str, tmp_path: Path) -> None:
    name, build = FORMS[form]
    task = get_task(name, {"dialect": "os-atlas-pro"})
    up, down = task.load(build(tmp_path), check_media=False).steps
    target = task.target(up)
    assert target and target.text.endswith(WORDS[name])
    for profile in (task.default_profile, f"{task.default_profile}+strict"):
        judge = task.profiles[profile].judge
        found = [judge(step, f"thoughts:\nx\nactions:\n{WORDS[name]}") for step in (up, down)]
        assert [verdict.values[:2] for verdict in found] == [(True, True), (True, False)]
    told = str(task.conversation(up)[-1].parts[0].text)
    assert ("move a finger in that direction" in told) == (name == "gui-odyssey")


def test_the_user_says_what_the_words_of_a_dialect_mean(tmp_path: Path) -> None:
    data = annotated(tmp_path)
    task = get_task("gui-odyssey", {"dialect": "os-atlas-pro", "scroll": "content"})
    up, _ = task.load(data, check_media=False).steps
    assert up.action and up.action.label == "SWIPE_UP"  # two places tell it
    assert right(task, up, "actions:\nSCROLL [DOWN]") is True
    assert right(task, up, "actions:\nSCROLL [UP]") is False
    target = task.target(up)
    assert target and target.text == "actions:\nSCROLL [DOWN]"


def test_a_history_of_odyssey_is_in_the_fingers_sense(tmp_path: Path) -> None:
    task = get_task("gui-odyssey", {"dialect": "os-atlas-pro"})
    _, second = task.load(annotated(tmp_path), check_media=False).steps
    told = str(task.conversation(second)[-1].parts[0].text)
    assert "actions:\nSCROLL [UP]" in told
