"""The computer tools of Claude, OpenAI and Gemini: what is written is read, and what is read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from omnidata.actions import Action, Box, Point, Screen
from omnidata.dialects import (
    CannotSayError,
    Past,
    Platform,
    Question,
    Rules,
    UnreadError,
    get_dialect,
)
from omnidata.errors import UsageError
from omnidata.types import MediaRef, Part

CLAUDE = tuple(f"claude-computer-{version}" for version in ("20241022", "20250124", "20251124"))
OPENAI = ("openai-computer-preview", "openai-computer")
GEMINI = "gemini-computer"
NAMES = (*CLAUDE, *OPENAI, GEMINI)
PLATFORMS: tuple[Platform, ...] = get_args(Platform)


def call(of: str, **given: Any) -> str:
    """An answer with one call, in the form of the dialect's API."""
    if of in CLAUDE:
        item: dict[str, Any] = {"type": "tool_use", "name": "computer", "input": given}
    elif of == GEMINI:
        item = {"function_call": {"name": given.pop("name"), "args": given}}
    elif of == "openai-computer":
        item = {"type": "computer_call", "actions": [given]}
    else:
        item = {"type": "computer_call", "action": given}
    return json.dumps([item])


def read(name: str, text: str, rules: Rules = "lenient") -> tuple[Action, ...]:
    return get_dialect(name).read(text, (1000, 800), rules=rules).actions


@pytest.mark.parametrize("name", NAMES)
def test_what_a_tool_cannot_say_is_named(name: str) -> None:
    dialect = get_dialect(name)
    with pytest.raises(CannotSayError, match="RECENT"):
        dialect.write([Action("recent")], (1000, 800), "mobile")
    with pytest.raises(CannotSayError, match="no action"):
        dialect.write([], (1000, 800), "mobile")


AT = (Point(3, 4, "px"),)


@pytest.mark.parametrize(
    ("name", "given", "lenient", "strict"),
    [
        # Places, as the demonstration does not take them.
        ("claude-computer-20250124", {"action": "left_click", "coordinate": "3, 4"}, "tap", ""),
        ("claude-computer-20250124", {"action": "left_click", "coordinate": [3.5, 4]}, "tap", ""),
        ("claude-computer-20250124", {"action": "left_click", "coordinate": [-3, 4]}, "tap", ""),
        ("claude-computer-20250124", {"action": "left_click", "coordinate": [True, 4]}, "", "tap"),
        ("claude-computer-20250124", {"action": "left_click", "coordinate": [3, 4], "key": "ctrl"},
         "tap", "tap"),
        # Keys that are held: the documentation's name is refused, the code's is not.
        ("claude-computer-20250124", {"action": "left_click", "text": "ctrl"}, "tap", ""),
        ("claude-computer-20250124", {"action": "Left Click"}, "tap", ""),
        ("claude-computer-20250124", {"action": "wait", "duration": 101}, "wait", ""),
        ("claude-computer-20250124", {"action": "zoom", "region": [1, 2, 3, 4]}, "look", ""),
        ("claude-computer-20251124", {"action": "zoom", "region": [1, 2, 3, 4]}, "look", "look"),
        ("claude-computer-20241022", {"action": "left_click", "coordinate": [3, 4]}, "tap", ""),
        ("claude-computer-20241022", {"action": "left_click"}, "tap", "tap"),
        ("claude-computer-20241022", {"action": "scroll", "scroll_direction": "up"}, "scroll", ""),
        ("claude-computer-20250124", {"action": "open_app"}, "", ""),
        ("claude-computer-20250124", {"action": ["key"]}, "", ""),
        # The sample's page has no keys that are held, and its wheel scrolls when it is clicked.
        ("openai-computer-preview", {"type": "click", "x": 3, "y": 4, "keys": ["CTRL"]}, "tap", ""),
        ("openai-computer-preview", {"type": "click", "x": 3, "y": 4, "button": "wheel"},
         "tap", "scroll,scroll"),
        ("openai-computer-preview", {"type": "click", "x": 3, "y": 4, "button": "odd"}, "", "tap"),
        ("openai-computer-preview", {"type": "click", "x": 3, "y": 4, "button": "back"},
         "back", "back"),
        ("openai-computer-preview", {"type": "scroll", "x": 3, "y": 4, "scroll_y": 9},
         "scroll", ""),
        ("openai-computer-preview", {"type": "drag", "path": []}, "", "none"),
        ("openai-computer", {"type": "click", "x": 3, "y": 4}, "tap", ""),
        ("openai-computer", {"type": "move", "x": 3.5, "y": 4}, "move", ""),
        ("openai-computer", {"type": "keypress", "keys": "CTRL+A"}, "hotkey", ""),
        ("claude-computer-20250124", {"action": "hold_key", "text": False, "duration": 2},
         "", "keys"),
        ("openai-computer-preview", {"type": "click", "x": "?", "button": "back", "y": 4},
         "back", "back"),
        # What the agent for Gemini wants of a call; true is 1 to it.
        (GEMINI, {"name": "click_at", "x": True, "y": 4}, "", "tap"),
        (GEMINI, {"name": "click_at", "x": "3", "y": 4}, "tap", ""),
        (GEMINI, {"name": "type_text_at", "text": "a"}, "type", ""),
        (GEMINI, {"name": "scroll_at", "x": 3, "y": 4, "direction": "DOWN"}, "scroll", ""),
        (GEMINI, {"name": "open_app", "app_name": "Maps"}, "open_app", ""),
        (GEMINI, {"name": "key_combination", "keys": "control+c"}, "hotkey", "hotkey"),
        (GEMINI, {"name": "go_forward"}, "", ""),
        (GEMINI, {"name": "tap", "x": 3, "y": 4}, "", ""),
    ],
)  # fmt: skip
def test_both_rules_say_what_they_read(
    name: str, given: dict[str, Any], lenient: str, strict: str
) -> None:
    kinds: dict[str, str] = {}
    rules: Rules
    for rules in get_args(Rules):
        try:
            actions = read(name, call(name, **given), rules)
        except UnreadError:
            actions = ()
        kinds[rules] = ",".join(action.kind for action in actions)
    assert kinds == {"lenient": lenient, "strict": strict}


@pytest.mark.parametrize("name", OPENAI)
def test_a_drag_goes_through_its_path(name: str) -> None:
    drag = Action("drag", AT, (Point(9, 9, "px"),), path=(Point(5, 6, "px"),))
    assert read(name, get_dialect(name).write([drag], (1000, 800), "desktop")) == (drag,)


def test_a_click_of_the_first_tool_is_where_the_pointer_was_moved() -> None:
    moved = (
        '{"type":"tool_use","name":"computer","input":{"action":"mouse_move","coordinate":[3,4]}}'
    )
    clicked = '{"type":"tool_use","name":"computer","input":{"action":"double_click"}}'
    assert read(CLAUDE[0], f"[{moved},{clicked}]") == (Action("tap", AT, count=2),)
    assert read(CLAUDE[1], f"[{moved},{clicked}]") == (Action("move", AT), Action("tap", count=2))


def test_several_calls_are_several_actions_with_their_thought() -> None:
    click = {"type": "click", "x": 3, "y": 4, "button": "left"}
    scroll = {"type": "scroll", "x": 3, "y": 4, "scroll_x": -5, "scroll_y": 7}
    said = {"type": "message", "content": [{"type": "output_text", "text": "I look."}]}
    answer = get_dialect("openai-computer").read(
        json.dumps([said, {"type": "computer_call", "actions": [click, scroll]}]), (9, 9)
    )
    assert answer.thought == "I look."
    assert [(a.kind, a.direction, a.amount, a.amount_unit) for a in answer.actions] == [
        ("tap", None, None, "notch"),
        ("scroll", "down", 7, "px"),
        ("scroll", "left", 5, "px"),
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("openai-computer-preview",
         '[{"type":"computer_call","action":{"type":"click","x":3,"y":4,"button":"left"},'
         '"pending_safety_checks":[{"id":"1","code":"c","message":"Sure?"}]}]'),
        (GEMINI, '[{"function_call":{"name":"click_at","args":{"x":3,"y":4,"safety_decision":'
         '{"decision":"require_confirmation","explanation":"Sure?"}}}}]'),
    ],
)  # fmt: skip
def test_consent_that_is_wanted_stands_beside_the_action(name: str, text: str) -> None:
    for rules in get_args(Rules):
        click, ask = read(name, text, rules)
        assert (click.kind, ask.kind, ask.text) == ("tap", "ask", "Sure?")


@pytest.mark.parametrize("name", NAMES)
def test_a_turn_without_a_call_is_the_end(name: str) -> None:
    assert read(name, "It costs 5 $.") == (Action("done", text="It costs 5 $."),)
    assert read(name, "[]") == (Action("done", text=""),)
    assert read(name, '["It costs 5 $."]') == (Action("done", text="It costs 5 $."),)
    with pytest.raises(UnreadError, match="empty"):
        read(name, " \n")
    [gone] = read(name, '[{"type": "text", "text": "[INFEASIBLE] no such app"}]')
    assert (gone.status, gone.text) == ("failure", "no such app")


@pytest.mark.parametrize(
    ("name", "text", "rest"),
    [
        (CLAUDE[1], '{"content": [{"type": "thinking", "thinking": "Hm"}, {"type": "tool_use", '
         '"name": "computer", "input": {"action": "left_click", "coordinate": [3, 4]}}]}', ""),
        (CLAUDE[1], '{"name": "left_click", "input": {"coordinate": [3, 4]}}', ""),
        (CLAUDE[1], 'So: {"action": "left_click", "coordinate": {"x": 3, "y": 4}} and', "and"),
        (CLAUDE[1], '[{"action": "left_click", "coordinate": [3, 4]}, {"action": "le',
         '{"action": "le'),
        ("openai-computer", '{"output": [{"type": "computer_call", "action": {"type": "click", '
         '"x": 3, "y": 4}}]}', ""),
        ("openai-computer", '{"type": "click", "x": "3", "y": 4.0}', ""),
    ],
)  # fmt: skip
def test_what_is_plainly_said_is_read(name: str, text: str, rest: str) -> None:
    answer = get_dialect(name).read(text, (1000, 800))
    assert answer.actions == (Action("tap", AT),)
    assert answer.rest == rest


def test_parts_of_googles_answer_are_read() -> None:
    parts = [{"text": "Hm"}, {"functionCall": {"name": "go_back"}}]
    answer = get_dialect(GEMINI).read(
        json.dumps({"candidates": [{"content": {"parts": parts, "role": "model"}}]}), (9, 9)
    )
    assert (answer.actions, answer.thought) == ((Action("back"),), "Hm")


def test_a_zoom_looks_at_a_box() -> None:
    [look] = read(CLAUDE[2], call(CLAUDE[2], action="zoom", region=[1, 2, 30, 40]))
    assert look == Action("look", (Box(1, 2, 30, 40, "px"),))
    assert json.loads(get_dialect(CLAUDE[2]).write([look], (99, 99), "web"))[0]["input"] == {
        "action": "zoom",
        "region": [1, 2, 30, 40],
    }


def test_the_display_is_scaled_as_the_demonstration_does_it() -> None:
    demo, newest = get_dialect(CLAUDE[1]).frame, get_dialect(CLAUDE[2]).frame
    sizes = {(1920, 1080): (1366, 768), (2560, 1600): (1280, 800), (1600, 1200): (1024, 768)}
    for screen, shown in sizes.items():
        assert demo.fed_size(screen) == shown
    for screen in ((3840, 2160), (1080, 2400), (5000, 100), (1, 9000)):
        for frame in (demo, newest):
            width, height = frame.fed_size(screen)
            assert max(width, height) <= 1568
            assert width * height <= 1_150_000
    assert demo.fed_size((1280, 720)) == newest.fed_size((1280, 720)) == (1280, 720)
    assert demo.fed_size((0, 0)) == (0, 0)


def shot(fed: Screen) -> Part:
    return Part("image", media=MediaRef("image", Path(), "1.png"), role="screenshot", size=fed)


@pytest.mark.parametrize("name", NAMES)
def test_earlier_steps_are_calls_and_the_tool_is_declared(name: str) -> None:
    dialect: Any = get_dialect(name)
    at = (Point(3, 4, dialect.frame.space),)
    known = Past((Action("tap", at),), shot((9, 9)), (9, 9))
    unknown = replace(known, actions=())
    unsaid = replace(known, actions=(Action("recent"),))
    told = Past((Action("tap", at),), None, (9, 9))
    question = Question(
        "action", "mobile", "Go.", (shot((9, 9)),), (told, known, unknown, unsaid), fed=(9, 9)
    )
    system, *turns = dialect.conversation(question)
    assert [part.role for part in system.parts[1:]] == [dialect.tool] * (len(system.parts) - 1)
    declared = [json.loads(part.text) for part in system.parts[1:]]
    assert declared and all(isinstance(each, dict) for each in declared)
    assert [turn.role for turn in turns] == ["user", "assistant"] * 3 + ["user"]
    said = [turn.parts[0] for turn in turns if turn.role == "assistant"]
    assert [(part.kind, part.text) for part in said[1:]] == [
        ("text", "(unknown)"),
        ("text", "RECENT"),
    ]
    assert (said[0].kind, said[0].role) == ("call", dialect.tool)
    assert dialect.read(said[0].text, (9, 9)).actions == known.actions
    assert "Step 1: " in turns[0].parts[0].text


@pytest.mark.parametrize("name", [*CLAUDE, "openai-computer-preview"])
def test_a_display_of_unknown_size_cannot_be_declared(name: str) -> None:
    question = Question("point", "web", "Go.", (shot((0, 0)),))
    with pytest.raises(UsageError, match="size"):
        get_dialect(name).conversation(question)


@pytest.mark.parametrize("name", NAMES)
def test_earlier_places_are_whole_numbers(name: str) -> None:
    dialect = get_dialect(name)
    space = dialect.frame.space
    past = (Action("drag", (Point(36.4, 76.8, space),), (Point(9.5, 7.2, space),)),)
    told = dialect.turn(Past(past, fed=(72, 160)), "mobile").text
    assert "." not in told
    assert "36" in told and "77" in told


def test_thoughts_that_are_hidden_are_no_call() -> None:
    thought = {"type": "redacted_thinking", "data": "EmwKAhgB"}
    click = {"type": "tool_use", "name": "computer", "input": {"action": "screenshot"}}
    for rules in get_args(Rules):
        assert read(CLAUDE[1], json.dumps([thought, click]), rules) == (Action("look"),)
