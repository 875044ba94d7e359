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


FORMS: dict[str, tuple[str, Data]] = {
    "records": ("androidcontrol", records),
    "own": (
        "androidcontrol",
        partial(
            up_and_down,
            {"action": {"action_type": "scroll", "direction": "down"}},
            {"action": {"action_type": "scroll", "direction": "up"}},
        ),
    ),
    "ui-r1": (
        "androidcontrol",
        partial(
            up_and_down,
            {"gt": {"action_type": "scroll", "direction": "down"}},
            {"gt": {"action_type": "scroll", "direction": "up"}},
        ),
    ),
    "mobile_use": (
        "androidcontrol",
        partial(
            up_and_down,
            {"action": {"action": "swipe", "direction": "up"}},
            {"action": {"action": "swipe", "direction": "down"}},
        ),
    ),
    "two places": (
        "androidcontrol",
        partial(up_and_down, swipe((9, 90), (9, 9)), swipe((9, 9), (9, 90))),
    ),
    "os-atlas's texts": (
        "androidcontrol",
        partial(up_and_down, {"action": "SCROLL [DOWN]"}, {"action": "SCROLL [UP]"}),
    ),
    "gui-r1's columns": (
        "androidcontrol",
        partial(up_and_down, graded("scroll", "DOWN"), graded("scroll", "UP")),
    ),
    "os-atlas's conversations": (
        "androidcontrol",
        partial(conversations, "OPEN_APP", "DOWN", "UP"),
    ),
    "annotations": ("gui-odyssey", annotated),
    "os-atlas's conversations of odyssey": (
        "gui-odyssey",
        partial(conversations, "IMPOSSIBLE", "UP", "DOWN"),
    ),
    "os-atlas's texts of odyssey": (
        "gui-odyssey",
        partial(up_and_down, {"action": "SCROLL [UP]"}, {"action": "SCROLL [DOWN]"}),
    ),
    "gui-r1's columns of odyssey": (
        "gui-odyssey",
        partial(up_and_down, graded("scroll", "UP"), graded("scroll", "DOWN")),
    ),
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
