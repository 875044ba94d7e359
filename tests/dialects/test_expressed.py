"""What benchmarks make of a dialect's actions: nothing is mapped in silence, nothing is lost."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, get_args

import pytest

from omnidata.actions import Action, Box, Direction, Point, Screen
from omnidata.dialects import (
    Answer,
    Asked,
    CannotSayError,
    Dialect,
    Frame,
    Past,
    Platform,
    Rules,
    dialects,
    get_dialect,
)
from omnidata.errors import PluginError
from omnidata.tasks import get_task
from omnidata.types import Step
from tests import plugs
from tests.goldens import worlds

HERE, THERE = (Point(500, 400, "px"),), (Point(300, 200, "px"),)
WAYS: tuple[Direction, ...] = get_args(Direction)
ACTIONS = (
    *(Action("tap", HERE, count=count) for count in (1, 2, 3)),
    *(Action("tap", HERE, button=button) for button in ("right", "middle")),
    *(Action("tap"), Action("tap", HERE, held=("ctrl",)), Action("long_press", HERE)),
    *(Action("swipe", direction=way) for way in WAYS),
    *(Action("scroll", HERE, direction=way, amount=3) for way in WAYS),
    *(Action("swipe", HERE, THERE), Action("drag", HERE, THERE), Action("move", HERE)),
    *(Action("hold", HERE), Action("release", HERE), Action("hold", keys=("shift",))),
    *(Action("type", text="text"), Action("type", HERE, text="text"), Action("enter")),
    *(Action("keys", keys=("tab",)), Action("hotkey", keys=("ctrl", "c")), Action("back")),
    *(Action("home"), Action("recent"), Action("open_app", app="Clock"), Action("wait")),
    *(Action("open_url", url="https://example.org"), Action("select", HERE, text="one")),
    *(Action("none"), Action("look"), Action("ask", text="which one?")),
    *(Action("done", status="success"), Action("done", status="failure")),
    Action("done", text="42", status="success"),
    # Unusual ones.
    Action("tap", HERE, button="right", count=2),
    Action("tap", HERE, button="x"),
    Action("long_press"),
    Action("drag", HERE),
    Action("drag", HERE, THERE, button="right"),
    Action("swipe", HERE, direction="up"),
    Action("scroll", HERE),
    Action("scroll", HERE, direction="down", amount=1.5),
    Action("type"),
)


def first_step(world: str, folder: Path) -> tuple[Any, Step]:
    task = get_task(worlds.WORLDS[world][0])
    return task, task.load(worlds.build(world, folder / "world"), check_media=False).steps[0]


@pytest.mark.parametrize(
    ("world", "profile"),
    [
        ("omnigui-few", "omnigui"),
        ("aitz", "aitw"),
        ("androidcontrol", "agentcpm-ac-fixed"),
        ("agentnetbench", "agentnetbench-fixed"),
        ("osworld", "osworld-step"),
        ("omnibench", "omnibench-step"),
    ],
)
def test_what_is_expressed_is_an_answer_to_the_benchmarks_own_reader(
    world: str, profile: str, tmp_path: Path
) -> None:
    task, step = first_step(world, tmp_path)
    profile = profile if profile in task.profiles else task.default_profile
    expressed = 0
    for action in ACTIONS:
        try:
            answer = task.benchmark.speech.adopt([action], step, None)
        except CannotSayError:
            continue
        expressed += 1
        verdict = task.profiles[profile].judge_parsed(step, answer)
        assert verdict.outcome == "ok", (action, answer)
    assert expressed > 10


@pytest.mark.parametrize(
    ("task", "action"),
    [
        ("omnigui", Action("keys", keys=("tap",))),
        ("omnigui", Action("keys", keys=("swipe_up",))),
        ("omnigui", Action("drag", HERE, THERE, button="right")),
        ("aitw", Action("drag", HERE, THERE, button="right")),
        ("aitw", Action("scroll", HERE, direction="down", held=("ctrl",))),
        ("androidcontrol", Action("tap")),
        ("agentnet", Action("tap", HERE, button="right", count=2)),
        ("agentnet", Action("tap", HERE, button="x")),
        ("agentnet", Action("tap")),
        ("agentnet", Action("drag", HERE)),
        ("agentnet", Action("drag", HERE, THERE, button="right")),
        ("agentnet", Action("scroll")),
        ("osworld", Action("swipe", HERE, direction="up")),
        ("osworld", Action("tap", HERE, button="x")),
        ("omnibench", Action("tap")),
        ("omnibench", Action("scroll", direction="down", amount=1.5)),
        ("omnibench", Action("scroll", direction="down", amount=2, held=("ctrl",))),
    ],
)
def test_what_a_benchmark_has_no_words_for_is_not_expressed_as_something_else(
    task: str, action: Action, tmp_path: Path
) -> None:
    own: Any = get_task(task)
    step = Step("a", "a", 0, 1, "", (1000, 1000), {}, (), (), None, {}, {})
    with pytest.raises(CannotSayError):
        own.benchmark.speech.adopt([action], step, None)


def test_a_text_at_a_place_is_a_click_and_a_text_for_agentnet() -> None:
    own: Any = get_task("agentnet")
    step = Step("a", "a", 0, 1, "", (1000, 1000), {}, (), (), None, {}, {})
    answer: Any = own.benchmark.speech.adopt(
        [Action("type", HERE, text="a", submit=True)], step, None
    )
    assert answer.record["code"].splitlines() == [
        "pyautogui.click(x=500, y=400)",
        "pyautogui.write(message='a')",
        "pyautogui.press(keys=['enter'])",
    ]


def test_a_scroll_in_pixels_turns_the_wheel_of_osworld_as_its_own_agent_has_it() -> None:
    own: Any = get_task("osworld")
    step = Step("a", "a", 0, 1, "", (1000, 1000), {}, (), (), None, {}, {})
    down = Action("scroll", HERE, direction="down", sense="content", amount=300, amount_unit="px")
    answer: Any = own.benchmark.speech.adopt([down], step, None)
    assert "pyautogui.scroll(-300)" in answer.record["code"]


# Keys have other names in the tools of providers than in the data of benchmarks.


def claude(text: str) -> str:
    given = {"action": "key", "text": text}
    return json.dumps([{"type": "tool_use", "name": "computer", "input": given}])


def openai(*keys: str) -> str:
    return json.dumps([{"type": "computer_call", "actions": [{"type": "keypress", "keys": keys}]}])


def gemini(keys: str) -> str:
    return json.dumps([{"function_call": {"name": "key_combination", "args": {"keys": keys}}}])


@pytest.mark.parametrize(
    ("world", "keys", "dialect", "answer"),
    [
        ("agentnet", ("enter",), "claude-computer-20250124", claude("Return")),
        ("agentnet", ("ctrl", "s"), "claude-computer-20250124", claude("Control_L+s")),
        ("agentnet", ("ctrl", "s"), "gemini-computer", gemini("control+s")),
        ("agentnet", ("ctrl", "s"), "openai-computer", openai("CTRL", "S")),
        ("osworld", ("enter",), "claude-computer-20250124", claude("KP_Enter")),
        ("osworld", ("ctrl", "c"), "openai-computer", openai("CTRL", "C")),
        ("omnibench", ("ctrl", "s"), "openai-computer", openai("CTRL", "S")),
    ],
)
def test_a_key_is_the_same_by_its_name_in_any_tool(
    world: str, keys: tuple[str, ...], dialect: str, answer: str, tmp_path: Path
) -> None:
    name = worlds.WORLDS[world][0]
    own: Any = get_task(name)
    task = get_task(name, {"dialect": dialect})
    steps = own.load(worlds.build(world, tmp_path / "world"), check_media=False).steps
    step = next(
        step
        for step in steps
        if [one.keys for one in own.benchmark.speech.right_actions(step)] == [keys]
    )
    profile = task.profiles[own.default_profile]
    found = dict(zip(profile.values, profile.judge(step, answer).values, strict=True))
    assert found.get("exact_match", found.get("score")) == 1
    other = answer.replace('S"', 'T"').replace('+s"', '+t"').replace("Return", "Tab")
    if other != answer:
        found = dict(zip(profile.values, profile.judge(step, other).values, strict=True))
        assert found.get("exact_match", found.get("score")) == 0


# How histories tell of what was done.


def test_a_history_has_the_direction_in_the_sense_of_its_dialect() -> None:
    up = Action("swipe", (Point(5, 9, "norm1000"),), (Point(5, 2, "norm1000"),), direction="up")
    line = get_dialect("os-atlas-pro").line(Past((up,)), "mobile")
    assert line == "actions:\nSCROLL [DOWN]"


def test_screenshots_that_are_asked_for_are_shown_beside_a_text_too(tmp_path: Path) -> None:
    data = worlds.build("aitz", tmp_path / "world")

    def shown(**options: str) -> list[str]:
        task = get_task("aitw", {"dialect": "qwen2.5", **options})
        step = next(step for step in task.load(data).steps if step.step_index == 3)
        return [
            part.role for message in task.conversation(step) for part in message.parts if part.media
        ]

    assert shown() == ["screenshot"]
    last = ["history_screenshot_2", "history_screenshot_1", "screenshot"]
    assert shown(history_screenshots="2") == last


# Families with two units: which one is meant, their numbers tell.


@pytest.mark.parametrize(
    ("dialect", "code", "place"),
    [
        ("opencua", "pyautogui.click(x=1, y=0)", Point(1, 0, "px")),
        ("opencua", "pyautogui.click(x=644, y=364)", Point(644, 364, "px")),
        ("kimi", "pyautogui.click(x=644, y=364)", Point(0.5, 0.5, "rel")),
        ("kimi", "pyautogui.click(x=1, y=0)", Point(1, 0, "rel")),
    ],
)
def test_shares_and_pixels_of_code_are_told_apart(dialect: str, code: str, place: Point) -> None:
    text = f"## Action:\nClick.\n\n## Code:\n```python\n{code}\n```"
    assert get_dialect(dialect).read(text, (1288, 728)).actions[0].start == (place,)


# Answers are not trusted, and neither are dialects of others.

HUGE = "9" * 400


@pytest.mark.parametrize("number", [HUGE, "1e308", "NaN"])
@pytest.mark.parametrize("name", list(dialects()))
def test_a_number_beyond_all_reckoning_stops_no_run(name: str, number: str) -> None:
    task: Any = get_task("screenspot", {"dialect": name})
    screen, tap = (1000, 2000), Action("tap", (Point(77, 77, "px"),))
    step = Step("a", "a", 0, 1, "it", screen, {}, (), (), tap, {"platform": "web"}, {})
    fed = task.dialect.frame.fed_size(screen)
    text = task.dialect.write([task.in_dialect_unit(tap, screen)], fed, task.platform_of(step))
    spot = re.search(r"\d+(\.\d+)?(?=[^\d]*\d+(\.\d+)?[^\d]*$)", text)
    assert spot
    hostile = text[: spot.start()] + number + text[spot.end() :]
    target = Action("tap", (Box(10, 10, 910, 1910, "px"),))
    asked = replace(step, action=target, source={"row": {"img_filename": "a.png"}})
    for profile in task.profiles.values():
        verdict = profile.judge(asked, hostile)
        assert verdict.outcome in ("ok", "unparsed")


class Wild(Dialect):
    """Reads what a test says, and writes nothing that is a text."""

    title = "a dialect that is broken"
    frame = Frame("norm1000")
    says: ClassVar = {"mobile": frozenset({"tap"})}

    def __init__(self, name: str, found: Any) -> None:
        self.name, self.found = name, found  # type: ignore[misc]

    def read(self, text: str, fed: Screen, *, rules: Rules = "lenient") -> Answer:
        return Answer(self.found)

    def write(self, actions: Sequence[Action], fed: Screen, platform: Platform) -> Any:
        return None

    def vocabulary(self, asked: Asked, platform: Platform, fed: Screen) -> str:
        return "Anything."


WILD = [
    Wild(f"wild-{number}", found)
    for number, found in enumerate(
        (
            ("tap",),
            (Action("tap", (Point("1", 2, "norm1000"),)),),  # type: ignore[arg-type]
            (Action("tap", (Point(1, 2, "inches"),)),),  # type: ignore[arg-type]
            (Action("type", text=3),),  # type: ignore[arg-type]
            (Action("keys", keys=(3,)),),  # type: ignore[arg-type]
        )
    )
]


def test_a_dialect_that_gives_no_actions_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = plugs.on_path(tmp_path / "site", "wild_dialects", monkeypatch)
    (site / "wild_dialects.py").write_text("from tests.dialects.test_expressed import WILD\n")
    plugs.install(site, "wild", "omnidata.dialects", "wild = wild_dialects:WILD")
    dialects.cache_clear()
    _, step = first_step("aitz", tmp_path)
    tasks: dict[str, Any] = {each.name: get_task("aitw", {"dialect": each.name}) for each in WILD}
    dialects.cache_clear()
    for name, task in tasks.items():
        with pytest.raises(PluginError, match=f"the dialect {name} gives"):
            task.profiles[task.default_profile].judge(step, "x")
        with pytest.raises(PluginError, match=f"`write` of the dialect {name} gives None"):
            task.target(step)
