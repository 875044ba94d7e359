"""AgentStudio's prompts are the released ones, byte for byte."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from omnidata.tasks import get_task
from omnidata.tasks.agentstudio.load import load
from omnidata.tasks.asking import Asking
from omnidata.types import Conversation, LoadedDataset, Step
from tests.loaders.agentstudio import REAL, SPACE, TaskName, act, ground, single, trajectory, write
from tests.metrics.agentstudio import CASES, SETS, shared_cases
from tests.trees import NO_SHARED

real = pytest.mark.skipif(not CASES.is_file(), reason=NO_SHARED)


def asking(task: TaskName, **options: str) -> Asking:
    return get_task(task, options)


def ask(task: TaskName, step: Step, **options: str) -> Conversation:
    return asking(task, **options).conversation(step)


def one(tmp_path: Path, task: TaskName, row: dict[str, Any]) -> Step:
    return load(write(tmp_path / "m.jsonl", row), task, check_media=False).steps[0]


def released(conversation: Conversation) -> list[dict[str, str]]:
    """The conversation as the released evaluator writes it down."""
    messages = []
    for message in conversation:
        (part,) = message.parts
        content = part.media.path if part.media else part.text
        messages.append({"role": message.role, "content": content})
    return messages


def contents(conversation: Conversation) -> list[str]:
    return [message["content"] for message in released(conversation)]


@cache
def source(task: TaskName) -> LoadedDataset:
    return load(REAL[task], task, check_media=False)


@real
def test_the_prompts_of_the_release_are_reproduced() -> None:
    checked = 0
    for case in shared_cases("prompt"):
        task = SETS[case["set"]]
        options = {}
        if task == "idm-multiple":
            options["gemini_limit"] = "on" if "gemini" in case["model"] else "off"
        if task == "criticbench":
            options["observations_only"] = str(case["mode"] == "actionless").lower()
        messages = released(asking(task, **options).conversation(source(task).steps[case["row"]]))
        if "messages" in case:
            assert messages == case["messages"]
        assert len(messages) == case["n_messages"]
        text = json.dumps(messages, separators=(",", ":"))
        assert hashlib.sha256(text.encode()).hexdigest() == case["sha256"], case
        checked += 1
    assert checked == 187


def test_groundui_is_a_screenshot_and_three_lines(tmp_path: Path) -> None:
    shot, text = contents(ask("groundui", one(tmp_path, "groundui", ground())))
    assert shot == "a.png"
    first, second, third = text.split("\n")
    assert first.endswith("X, Y is the coordinates ranging from 0 to 1.")
    assert (second, third) == ('Instruction: Click on "Discounts".', "Answer:")


def test_braces_and_placeholders_in_the_data_stay(tmp_path: Path) -> None:
    odd = "{action_space} {x} {instruction} {{0}} %s \\1"
    step = one(tmp_path, "groundui", ground(instruction=odd))
    text = contents(ask("groundui", step))[-1]
    assert f"\nInstruction: {odd}\n" in text
    step = one(tmp_path, "criticbench", trajectory(instruction=odd, action_space=["CLICK", "{x}"]))
    text = contents(ask("criticbench", step))[-1]
    assert f"\nInstruction: {odd}\nAction space: CLICK, {{x}}\n" in text


def test_choices_are_lettered_in_the_order_of_the_action_space(tmp_path: Path) -> None:
    step = one(tmp_path, "idm-single", single())
    before, after, text = contents(ask("idm-single", step))
    assert (before, after) == ("m2w/0.png", "m2w/1.png")
    assert "\nAvailable actions:\nA. CLICK\nB. SELECT\nC. TYPE\nAfter" in text
    assert "Find a house" not in text


@pytest.mark.parametrize(
    ("count", "ends", "images"),
    [(2, True, range(3)), (7, True, range(2, 8)), (7, False, range(1, 7)), (2, False, range(2))],
)
def test_idm_multiple_shows_five_actions_between_six_observations(
    tmp_path: Path, count: int, ends: bool, images: range
) -> None:
    actions = [act(n) for n in range(count)]
    if not ends:
        actions[-1]["obs_after"] = None
    found = contents(ask("idm-multiple", one(tmp_path, "idm-multiple", trajectory(*actions))))
    assert found[:-1] == [f"m2w/{n}.png" for n in images]
    assert found[-1].endswith("Answer:\nA\nC")


def test_geminis_sentence_is_a_message_of_its_own(tmp_path: Path) -> None:
    step = one(tmp_path, "idm-multiple", trajectory())
    plain = ask("idm-multiple", step)
    limited = ask("idm-multiple", step, gemini_limit="on")
    assert limited[:-1] == plain
    assert contents(limited)[-1] == "You must output no more than ten actions."


@pytest.mark.parametrize("ends", [True, False])
def test_the_critic_is_shown_each_action_after_its_observation(tmp_path: Path, ends: bool) -> None:
    actions = [act(n) for n in range(7)]
    if not ends:
        actions[-1]["obs_after"] = None
    step = one(tmp_path, "criticbench", trajectory(*actions))
    shown = [x for n in range(2, 7) for x in (f"m2w/{n}.png", f"[link]  Thing {n} -> CLICK")]
    last = ["m2w/7.png"] if ends else []
    assert contents(ask("criticbench", step))[:-1] == shown + last
    assert contents(ask("criticbench", step, symmetric="true"))[:-1] == shown
    alone = ask("criticbench", step, observations_only="true")
    assert contents(alone)[:-1] == shown[::2] + last
    both = ask("criticbench", step, observations_only="true", symmetric="true")
    assert contents(both)[:-1] == shown[::2]
    assert f"Action space: {', '.join(SPACE)}\n" in contents(ask("criticbench", step))[-1]
    assert "Action space" not in contents(both)[-1]


@real
def test_a_symmetric_prompt_ends_alike_for_every_row() -> None:
    def kinds(options: dict[str, str]) -> set[str]:
        asked = asking("criticbench", **options)
        steps = source("criticbench").steps
        return {asked.conversation(step)[-2].parts[0].kind for step in steps}

    assert kinds({}) == {"text", "image"}
    assert kinds({"symmetric": "true"}) == {"text"}


def test_every_message_is_the_users_and_has_one_part(tmp_path: Path) -> None:
    rows: dict[TaskName, dict[str, Any]] = {
        "groundui": ground(),
        "idm-single": single(),
        "idm-multiple": trajectory(),
        "criticbench": trajectory(),
    }
    for task, row in rows.items():
        for message in asking(task).conversation(one(tmp_path, task, row)):
            assert message.role == "user"
            assert len(message.parts) == 1
            assert bool(message.parts[0].role) == (message.parts[0].kind == "image")
