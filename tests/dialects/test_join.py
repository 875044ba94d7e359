"""A task in a dialect: asked, answered, judged and counted, with a dialect of a stranger's."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from omnidata.actions import Action, Box, Point
from omnidata.dialects import dialects, get_dialect
from omnidata.errors import UsageError
from omnidata.tasks import get_task
from omnidata.types import Conversation, Step
from tests.cli.running import here
from tests.dialects import toy
from tests.trees import read_lines, write_lines

TOYS = [one.name for one in toy.TOYS]
pytestmark = pytest.mark.usefixtures("toys")


def run(*arguments: str | Path, code: int = 0) -> str:
    done = here(*arguments, code=code)
    if code > 1:
        return done.stderr
    return done.stdout if "--json" in arguments else done.stdout + done.stderr


def said(conversation: Conversation) -> list[tuple[str, str]]:
    return [
        (message.role, " ".join(part.text or part.role for part in message.parts))
        for message in conversation
    ]


@pytest.mark.parametrize("name", TOYS)
def test_a_run_is_asked_answered_and_counted_in_the_dialect(
    name: str, phone: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    command = ("evaluate", "aitw", phone, "-T", f"dialect={name}", "--model", "baseline:oracle")
    found = json.loads(run(*command, "--out", out, "--json"))
    plain = get_task("aitw").load(phone)
    sayable = [step for step in plain.steps if step.action and step.action.kind in toy.KINDS]
    assert 0 < len(sayable) < len(plain.steps)
    assert found["dialect"] == {
        "name": name,
        "rules": "lenient",
        "answers": len(plain.steps),
        "read": len(sayable),
        "read_strict": len(sayable),
        "expressed": len(sayable),
        "several": 0,
        "steps": len(plain.steps),
        "expressible": len(sayable),
    }
    lines = read_lines(out / "scores.jsonl")
    assert all(line["exact_match"] == line["expressible"] for line in lines)
    info = json.loads((out / "run.json").read_text())
    assert info["options"] == {"history": "gold", "dialect": name}
    strict = run("score", "aitw", phone, out, "--profile", "aitw+strict", "--json")
    assert json.loads(strict)["dialect"]["rules"] == "strict"
    shown = run("score", "aitw", phone, out)
    unsaid = len(plain.steps) - len(sayable)
    assert f"{unsaid} targets that the dialect cannot express" in " ".join(shown.split())


def test_what_either_side_has_no_words_for_is_wrong_and_counted(
    phone: Path, tmp_path: Path
) -> None:
    ids = [step.sample_id for step in get_task("aitw").load(phone).steps][:4]
    outputs = [
        '[{"kind":"ask","text":"which?"}]',
        '[{"kind":"tap","start":[[500,500]]},{"kind":"done"}]',
        '[ {"kind":"done","status":"success"} ]',
        "I would tap on it",
    ]
    answers = write_lines(
        tmp_path / "answers.jsonl",
        [{"sample_id": own, "output": text} for own, text in zip(ids, outputs, strict=True)],
    )
    out = tmp_path / "scored"
    command = ("score", "aitw", phone, answers, "--dialect", "toy-1000", "--out", out, "--json")
    found = json.loads(run(*command, code=1))["dialect"]  # the other steps are missing
    wanted = {"answers": 4, "read": 3, "read_strict": 2, "expressed": 2, "several": 1}
    assert {key: found[key] for key in wanted} == wanted
    lines = {line["sample_id"]: line for line in read_lines(out / "scores.jsonl")}
    assert [lines[own]["outcome"] for own in ids] == ["ok", "ok", "ok", "unparsed"]
    assert lines[ids[0]]["parsed"] == {"unexpressed": "ASK"}
    assert lines[ids[0]]["cause"] == "wrong_type"
    strictly = json.loads(run(*command[:-3], "--profile", "aitw+strict", "--json", code=1))
    assert strictly["outcomes"]["unparsed"] == 2


def test_earlier_steps_are_turns_with_their_screenshots_in_native_words(phone: Path) -> None:
    task = get_task("aitw", {"dialect": "toy-px"})
    step = next(step for step in task.load(phone).steps if step.step_index == 3)
    told = task.conversation(step)
    roles = [role for role, _ in said(told)]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]
    shots = [part for message in told for part in message.parts if part.media]
    assert [part.role for part in shots] == [
        "history_screenshot_2",
        "history_screenshot_1",
        "screenshot",
    ]
    fed = toy.TOYS[0].frame.fed_size(step.screen)
    assert {part.size for part in shots} == {fed}
    assert f"px of {fed}" in said(told)[0][1]
    first = said(told)[1][1]
    assert f"Task: {step.instruction}" in first
    assert re.search(r"Previous actions:\nStep 1: \[\{", first)
    action = json.loads(said(told)[4][1])[0]
    assert action["kind"] == step.history[2].kind  # type: ignore[union-attr]


def test_the_window_of_the_history_and_its_absence_are_kept(phone: Path) -> None:
    def prompt(**options: str) -> str:
        task = get_task("aitw", {"dialect": "toy-1000", **options})
        step = next(step for step in task.load(phone).steps if step.step_index == 3)
        return str(said(task.conversation(step)))

    assert "Step 1:" in prompt()
    assert "Step 1:" not in prompt(history_window="2")
    assert "assistant" not in prompt(history="none")


def test_a_text_of_the_users_stands_in_place_of_the_vocabulary(phone: Path, tmp_path: Path) -> None:
    own = tmp_path / "system.txt"
    own.write_text("You are MY agent.", encoding="utf-8")
    plain = get_task("aitw", {"dialect": "toy-1000"})
    task = get_task("aitw", {"dialect": "toy-1000", "system": str(own)})
    step = task.load(phone).steps[0]
    assert said(task.conversation(step))[0] == ("system", "You are MY agent.")
    hashes = {plain.prompt_hash, task.prompt_hash}
    own.write_text("You are HER agent.", encoding="utf-8")
    hashes.add(get_task("aitw", {"dialect": "toy-1000", "system": str(own)}).prompt_hash)
    assert len(hashes) == 3
    own.unlink()
    gone = get_task("aitw", {"dialect": "toy-1000", "system": str(own)})
    assert gone.profiles["aitw"].judge(step, '[{"kind":"done"}]').outcome == "ok"
    with pytest.raises(UsageError, match="cannot be read"):
        gone.conversation(step)


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        ("aitw", {"dialect": "toy"}, "unknown dialect"),
        ("aitw", {"dialect": "toy-px", "coordinates": "px"}, "the dialect sets the unit of places"),
        ("aitw", {"system": "x.txt"}, "a system text needs a prompt in a dialect"),
        ("idm-single", {"dialect": "toy-px"}, "dialects only ask for an action or a place"),
        ("androidcontrol", {"dialect": "toy-px", "observation": "som"}, "screenshot itself"),
    ],
)
def test_what_makes_no_sense_is_refused(task: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        get_task(task, options)


def test_unified_is_the_task_as_it_is() -> None:
    assert get_task("aitw", {"dialect": "unified"}).prompt_hash == get_task("aitw").prompt_hash


def test_info_lists_what_each_side_cannot_say() -> None:
    told = json.loads(run("info", "dialects", "--task", "androidcontrol", "--json"))
    found = told["toy-px"]
    assert "open an app" in found["dialect_cannot_say"]
    assert "call the user" in found["task_cannot_express"]
    assert "tap" not in [*found["dialect_cannot_say"], *found["task_cannot_express"]]
    assert (
        "dialects only ask for an action"
        in json.loads(run("info", "dialects", "--task", "criticbench", "--json"))["toy-px"][
            "refused"
        ]
    )
    assert "dialect toy-px: A toy" in run("info", "dialects")
    assert "only for `info dialects`" in run("info", "--task", "aitw", code=2)


# Where a place lands, in every frame and on every shape of screen.

SCREENS = ((1080, 2400), (1920, 1080), (3840, 2160), (320, 2001))
BOX = Box(101, 203, 131, 215, "px")


def _spot(screen: tuple[int, int]) -> Step:
    bbox = [BOX.left, BOX.top, BOX.right - BOX.left, BOX.bottom - BOX.top]
    row: dict[str, Any] = {"img_filename": "a.png", "bbox": bbox, "data_type": "text"}
    source = {"row": row, "boxes": "columns"}
    tags = {"platform": "web", "ui_type": "text"}
    return Step("a", "a", 0, 1, "it", screen, {}, (), (), Action("tap", (BOX,)), tags, source)


@pytest.mark.parametrize("name", TOYS)
@pytest.mark.parametrize("screen", SCREENS)
def test_a_pixel_outside_the_edge_is_wrong_in_every_frame(
    name: str, screen: tuple[int, int]
) -> None:
    task: Any = get_task("screenspot", {"dialect": name})
    step, frame, fed = _spot(screen), task.dialect.frame, task.dialect.frame.fed_size(screen)
    wide, tall = frame.extent(fed)
    hits = {}
    for x, y in (
        *((BOX.left + 0.01, 209), (BOX.right - 0.01, 209)),
        *((BOX.left - 1, 209), (BOX.right + 1, 209)),
        *((116, BOX.top + 0.01), (116, BOX.bottom - 0.01)),
        *((116, BOX.top - 1), (116, BOX.bottom + 1)),
    ):
        point = Point(x * wide / screen[0], y * tall / screen[1], frame.space)
        text = task.dialect.write([Action("tap", (point,))], fed, "web")
        hits[x, y] = task.profiles["screenspot"].judge(step, text).values[0]
    assert list(hits.values()) == [True, True, False, False] * 2


@pytest.mark.parametrize("name", [name for name in dialects() if "web" in get_dialect(name).says])
@pytest.mark.parametrize(
    "form", ["It is the field at ({}, {}).", '{{"point_2d": [{}, {}], "label": "field"}}']
)
def test_a_place_in_other_words_is_read_where_a_place_is_asked_for(name: str, form: str) -> None:
    """One reader for all families; where an action is asked for, such words are none."""
    task: Any = get_task("screenspot", {"dialect": name})
    step, frame, fed = (
        _spot((1920, 1080)),
        task.dialect.frame,
        task.dialect.frame.fed_size((1920, 1080)),
    )
    wide, tall = frame.extent(fed)
    text = form.format(116 * wide / 1920, 209 * tall / 1080)
    assert task.profiles["screenspot"].judge(step, text).values[0] is True
    negative = task.profiles["screenspot"].judge(step, "It is not on the screen.")
    assert negative.values[0] is False


def test_a_receipt_says_how_large_the_picture_was() -> None:
    task: Any = get_task("screenspot", {"dialect": "toy-px"})
    step = _spot((1920, 1080))
    line = {"role": "screenshot", "width": 960, "height": 540, "original": [1920, 1080]}
    text = '[{"kind":"tap","start":[[58,104]]}]'
    judge = task.profiles["screenspot"].judge
    assert judge(step, text, {"parts": [line]}).values[0] is True
    assert judge(step, text).values[0] is False


def test_a_verdict_has_the_counts_behind_the_profiles_own_values() -> None:
    task: Any = get_task("screenspot", {"dialect": "toy-rel"})
    profile = task.profiles["screenspot"]
    own = get_task("screenspot").profiles["screenspot"].values
    counts = ("read", "read_strict", "expressed", "expressible", "left_out")
    assert profile.values == (*own, *counts)
    failed = profile.without_answer(_spot((1920, 1080)), "api_error")
    assert dict(zip(profile.values, failed.values, strict=True))["read"] is None


def test_pixels_are_of_the_screen_whatever_size_the_picture_has(phone: Path) -> None:
    task = get_task("aitw", {"dialect": "gui-r1"})
    step = next(
        step for step in task.load(phone).steps if step.action and step.action.kind == "tap"
    )
    right = task.target(step)
    assert right
    fed = get_dialect("gui-r1").frame.fed_size(step.screen)
    half = [side // 2 for side in step.screen]
    for original in (step.screen, half, [side * 2 for side in step.screen]):
        line = {"role": "screenshot", "width": fed[0], "height": fed[1], "original": original}
        verdict = task.profiles["agentcpm"].judge(step, right.text, {"parts": [line]})
        assert verdict.values[1] is True, original
