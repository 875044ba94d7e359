"""The tasks `aitw` and `androidcontrol`: prompts, targets, profiles, baselines."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from omnidata.actions import Space
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.types import LoadedDataset, Step
from tests.loaders.phones import (
    CLICK,
    SCROLL,
    cagui,
    episode,
    example,
    png,
    records,
    tree,
    zoo,
    zoo_episode,
)

ALL = [
    CLICK, SCROLL, {"action_type": "long_press", "x": 9, "y": 20},
    {"action_type": "open_app", "app_name": "Clock"},
    {"action_type": "type", "x": 45, "y": 100, "text": "7:30"},
    {"action_type": "input_text", "text": "7:30"}, {"action_type": "navigate_home"},
    {"action_type": "navigate_back"}, {"action_type": "wait"},
]  # fmt: skip


def wild(tmp_path: Path) -> LoadedDataset:
    """Steps of every kind that the three forms have."""
    up = example(1, results__yx_touch=[0.75, 0.5], results__yx_lift=[0.25, 0.5])
    rows = [example(0), up, example(2, results__action_type=[3], results__type_action=["7:30"])]
    rows += [
        example(3 + n, results__action_type=[code]) for n, code in enumerate((5, 6, 7, 10, 11))
    ]
    records(tmp_path / "a" / "google_apps-00000-of-00001", *rows)
    chinese = [cagui(episode_length=2), cagui(1, result_action_type=1, episode_length=2)]
    zoo_episode(tmp_path / "a", *chinese, name="77")
    return get_task("aitw").load(tmp_path / "a")


def control(tmp_path: Path, *actions: Any) -> LoadedDataset:
    return get_task("androidcontrol").load(records(tmp_path / "b", episode(*(actions or ALL))))


SPACES: Sequence[Space] = ("norm1000", "px", "rel")
DATA = {"aitw": wild, "androidcontrol": control}


def values(task: Asking, profile: str, step: Step, text: str, **receipt: Any) -> tuple[Any, ...]:
    return task.profiles[profile].judge(step, text, receipt or None).values


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("space", SPACES)
def test_targets_are_what_the_prompt_asks_for_and_the_profiles_call_right(
    tmp_path: Path, name: str, space: Space
) -> None:
    task = get_task(name, {"coordinates": space})
    steps = DATA[name](tmp_path).steps
    for step in steps:
        target = task.target(step)
        assert target
        assert values(task, task.default_profile, step, target.text) == (True, True, True)
        body = json.loads(target.text)
        assert target.template.count("<bbox>") == len(target.points)
        places = [value for value in body.values() if isinstance(value, list)]
        assert places == [list(place) for place in target.points]
        system = task.conversation(step)[0].parts[0].text
        assert f"| {body['action_type']} |" in system
    oracle = task.baseline("oracle", steps, {})
    assert [oracle(step) for step in steps] == [t.text for s in steps if (t := task.target(s))]


def test_places_are_in_the_unit_that_is_asked_for(tmp_path: Path) -> None:
    (step,) = control(tmp_path, CLICK).steps
    found = {
        space: json.loads(t.text)["coordinate"]
        for space in SPACES
        if (t := get_task("androidcontrol", {"coordinates": space}).target(step))
    }
    assert found == {"norm1000": [500, 500], "rel": [0.5, 0.5], "px": [45, 100]}
    half = get_task("androidcontrol", {"coordinates": "px"}).target(step, size=(45, 100))
    assert half
    assert half.points == ((23, 50),)


def test_the_verdict_says_how_it_was_read(tmp_path: Path) -> None:
    (step,) = control(tmp_path, SCROLL).steps
    judge = get_task("androidcontrol").profiles["agentcpm-ac-fixed"].judge
    scroll = {"action_type": "scroll", "direction": "down"}
    for text in (json.dumps(scroll), '{"POINT":[500,900],"to":"up"}'):
        assert judge(step, text).parsed == scroll
    assert judge(step, '{"STATUS":"finish"}').parsed == {"form": "agentcpm", "kind": "complete"}
    ended = judge(step, '{"action_type":"status","goal_status":"complete"}')
    assert ended.parsed == {"form": "prompted", "kind": "complete"}
    refused = judge(step, '{"action_type": 4}')
    assert (refused.outcome, refused.reason) == (
        "unparsed", "action_type is the number 4, not a name",
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        '{"action_type":"SWIPE_UP","start_coordinate":[500,900],"end_coordinate":[500,100]}',
        '{"action_type":"TAP","coordinate":[500,900]}',
        '{"action_type":"double tap","point":[500,900]}',
        '{"action_type":"swipe left"}',
        '{"POINT":[500,900],"to":[500,100]}',
        '{"POINT":[500,900],"duration":900}',
        '{"ACTION":"scroll","ARGS":{"direction":"left"}}',
        '{"action_type":"ENTER"}',
    ],
)
def test_what_was_read_can_be_read_again(tmp_path: Path, text: str) -> None:
    task, step = get_task("aitw"), wild(tmp_path).steps[0]
    parsed = task.profiles["aitw"].judge(step, text).parsed
    again = task.history_action(step, json.dumps(parsed))
    assert again == task.history_action(step, text) is not None


def test_what_the_release_leaves_out_is_not_judged(tmp_path: Path) -> None:
    task = get_task("androidcontrol")
    steps = control(tmp_path).steps
    judged = []
    for step in steps:
        answer = task.baseline("oracle", steps, {})(step)
        for text in (answer, "", '{"action_type": "wait"}'):
            found = values(task, "agentcpm-ac", step, text)
            judged.append((step.step_index, found[0] is not None))
        failed = task.profiles["agentcpm-ac"].without_answer(step, "api_error")
        judged.append((step.step_index, failed.values[0] is not None))
    assert {number for number, was in judged if not was} == {3, 4}
    assert all(was is (number not in (3, 4)) for number, was in judged)


def test_a_step_whose_action_cannot_be_read_is_not_judged(tmp_path: Path) -> None:
    (step,) = control(tmp_path, "{").steps
    task = get_task("androidcontrol")
    assert values(task, "agentcpm-ac-fixed", step, '{"action_type":"wait"}')[:2] == (None, None)
    assert task.target(step) is None
    assert task.baseline("oracle", [step], {})(step) == ""


def test_the_prompt_shows_the_screen_the_goal_and_what_was_done(tmp_path: Path) -> None:
    steps = control(tmp_path).steps
    system, user = get_task("androidcontrol").conversation(steps[5])
    assert [part.role for part in user.parts] == ["screenshot", ""]
    assert user.parts[1].text == (
        "Goal: Set an alarm\n\nStep: 5\n\nAction History:\n"
        "Step 0: TAP at [500, 500]\nStep 1: scroll down\nStep 2: LONG_PRESS at [100, 100]\n"
        'Step 3: OPEN_APP app: "Clock"\nStep 4: INPUT text: "7:30", then ENTER\n\n'
        "Analyze the current screenshot and output the next action as JSON."
    )
    text = system.parts[0].text
    assert "{" not in re.sub(r"\{\"action_type.*?\}", "", text)
    assert "Range: 0-1000" in text
    pixels = get_task("androidcontrol", {"coordinates": "px"}).conversation(steps[0])
    assert "In pixels of the screenshot." in pixels[0].parts[0].text
    bare = get_task("androidcontrol", {"history": "none", "level": "low"}).conversation(steps[5])
    assert bare[1].parts[1].text.startswith("Goal: Do 5\n\nStep: 5\n\nAnalyze")


def test_predictions_make_a_history(tmp_path: Path) -> None:
    steps = control(tmp_path, CLICK, SCROLL, CLICK).steps
    task = get_task("androidcontrol", {"history": "predicted"})
    assert task.needs_predictions
    texts = ('{"action_type":"scroll","direction":"up"}', "nothing")
    past = [task.history_action(step, text) for step, text in zip(steps, texts, strict=False)]
    text = task.conversation(steps[2], past)[1].parts[1].text
    assert "Action History:\nStep 0: scroll up\n\nAnalyze" in text
    wild_task = get_task("aitw", {"history": "predicted"})
    enter = wild_task.history_action(steps[0], '{"action_type": "ENTER"}')
    assert enter
    assert enter.words == "ENTER"
    assert wild_task.history_action(steps[0], '{"ACTION": "scroll", "ARGS": {}}') is None


def test_baselines_are_what_they_say(tmp_path: Path) -> None:
    task, steps = get_task("aitw"), wild(tmp_path).steps
    answers = {name: task.baseline(name, steps, {})(steps[0]) for name in task.baselines}
    assert answers["center"] == '{"action_type":"TAP","coordinate":[500.0,500.0]}'
    assert answers["always-wait"] == '{"action_type":"NONE"}'
    swipes = [s for s in steps if s.action and s.action.label == "SWIPE_UP"]
    usual = json.loads(task.baseline("majority", swipes, {})(steps[0]))
    assert usual["action_type"] == "SWIPE_UP"
    for text in answers.values():
        assert values(task, "aitw", steps[0], text)[2] is True


def test_goal_progress_is_partial_match_for_android_in_the_wild_alone() -> None:
    profiles: dict[str, Any] = {}
    for task in DATA:
        profiles |= get_task(task).profiles
    progress = {
        name: profile.metrics.get("GP") and profile.metric_of("GP")
        for name, profile in profiles.items()
    }
    assert {name for name, reading in progress.items() if reading == "GP_ratio"} == {
        "aitw", "aitw-fixed",
    }  # fmt: skip


def test_steps_without_a_known_screen_have_no_pixels(tmp_path: Path) -> None:
    folder = zoo_episode(tmp_path, zoo(0, episode_length=1))
    (folder / "GENERAL-5_0.png").unlink()
    (step,) = get_task("aitw").load(folder, check_media=False).steps
    text = '{"action_type":"TAP","coordinate":[400,300]}'
    assert values(get_task("aitw"), "aitw", step, text)[:2] == (True, True)
    pixels = get_task("aitw", {"coordinates": "px"})
    assert pixels.target(step) is None
    assert values(pixels, "aitw", step, text)[:2] == (None, None)


def test_a_typed_text_that_stands_for_a_place_is_none(tmp_path: Path) -> None:
    typed = {"action_type": "type", "x": 45, "y": 100, "text": "<bbox>"}
    records(tmp_path / "control" / "a", episode(typed))
    zoo_episode(tmp_path / "zoo", zoo(0, result_action_type=3, result_action_text="a <bbox>"))
    for name, folder, marked in (
        ("androidcontrol", "control", '"coordinate":<bbox>,"text":"bbox"}'),
        ("aitw", "zoo", '"text":"a bbox"}'),
    ):
        task = get_task(name)
        found = task.target(task.load(tmp_path / folder).steps[0])
        assert found is not None
        assert found.template.endswith(marked)
        assert "<bbox>" in found.text


WAIT = {"action_type": "wait"}


@pytest.mark.parametrize(
    ("text", "stops"),
    [
        ('{"action_type":"status","goal_status":"complete"}', True),
        ('{"action_type":"status","goal_status":"Infeasible"}', True),
        ('{"action":"terminate","status":"success"}', True),
        ('{"STATUS":"finish"}', True),
        ('{"action_type":"status","goal_status":"maybe"}', False),
        ('{"action_type":"status"}', False),
        ('{"action_type":"navigate_back"}', False),
    ],
)
def test_an_end_of_the_episode_is_read_and_stops_as_the_release_has_it(
    tmp_path: Path, text: str, stops: bool
) -> None:
    """Waiting is an end to the released rule and nothing else; no step of the data is one."""
    (step,) = control(tmp_path, WAIT).steps
    task = get_task("androidcontrol")
    assert values(task, "agentcpm-ac", step, text)[:2] == (stops, stops)
    assert values(task, "agentcpm-ac-fixed", step, text)[:2] == (False, False)


@pytest.mark.parametrize(
    ("at", "why"),
    [
        ([500, 900], "the point (45, 180) is 400 of 1000 away from the target point, too far"),
        ([500, 500], "the target point, but the profile distinguishes them"),  # no element is there
    ],
)
def test_where_the_place_of_a_text_is_wrong_the_sentence_does_not_blame_the_text(
    tmp_path: Path, at: list[int], why: str
) -> None:
    written = {"action_type": "type", "x": 45, "y": 100, "text": "7:30"}
    forest = tree({"bounds": (0, 0, 9, 9), "text": "far from there"})
    data = records(tmp_path / "b", episode(written, accessibility_trees=[forest, forest]))
    task = get_task("androidcontrol")
    (step,) = task.load(data).steps
    answer = {"action_type": "type", "text": "7:30", "coordinate": at}
    verdict = task.profiles["uground-ac"].judge(step, json.dumps(answer))
    assert why in task.explanation(step, verdict, json.dumps(answer), profile="uground-ac").sentence


@pytest.mark.parametrize(
    ("inner", "decides"),
    [
        ({"text": "a"}, True),
        ({"content_description": "a", "child_ids": [0]}, True),
        ({"text": "a", "is_scrollable": True, "child_ids": [0]}, True),
        ({"text": "a", "child_ids": [0]}, False),  # what it holds says more
        ({"text": "a", "is_visible_to_user": False}, False),
        ({"hint_text": "Search", "is_scrollable": True}, False),
        ({}, False),
    ],
)
def test_elements_that_are_seen_and_have_a_text_decide_for_uground(
    tmp_path: Path, inner: dict[str, Any], decides: bool
) -> None:
    """By its `extract_raw.py`: where the inner element is none, a click beside it is right."""
    around = {"bounds": (0, 0, 80, 160), "text": "Alarms"}
    seen = tree(around, {"bounds": (40, 90, 50, 110), **inner})
    data = records(tmp_path / "b", episode(CLICK, accessibility_trees=[seen, seen]))
    task = get_task("androidcontrol")
    (step,) = task.load(data).steps
    beside, outside = (
        values(task, "uground-ac", step, json.dumps({"action_type": "click", "coordinate": at}))
        for at in ([700, 500], [990, 500])
    )
    assert (beside[1], outside[1]) == (not decides, False)


@pytest.mark.parametrize(
    ("box", "counts"),
    [
        ((1079, 0, 1440, 3120), True),
        ((1080, 0, 1440, 3120), False),
        ((0, 2399, 1440, 3120), True),
        ((0, 2400, 1440, 3120), False),
    ],
)
def test_nothing_beyond_1080_by_2400_is_an_element_for_uground(
    tmp_path: Path, box: tuple[int, int, int, int], counts: bool
) -> None:
    """As in its script, whatever the size of the screen; what begins before that is one."""
    screen = (1440, 3120)
    data = records(
        tmp_path / "b",
        episode(
            {"action_type": "click", "x": 1400, "y": 3000},
            accessibility_trees=[tree({"bounds": box, "text": "a"})] * 2,
            screenshots=[png(0, screen)] * 2,
            screenshot_widths=[screen[0]] * 2,
            screenshot_heights=[screen[1]] * 2,
        ),
    )
    task = get_task("androidcontrol")
    (step,) = task.load(data).steps
    answer = json.dumps({"action_type": "click", "coordinate": [950, 950]})
    assert values(task, "uground-ac", step, answer)[1] == counts
