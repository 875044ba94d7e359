"""A score that is lost or wrong for one reason says the reason, the fix, and ends with 1."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from omnidata.predictions import Prediction
from omnidata.run.scoring import score
from omnidata.tasks import get_task
from omnidata.types import LoadedDataset
from tests.cli.running import as_json, omnidata
from tests.loaders import desk, phones
from tests.trees import NO_SHARED, SHARED, write_lines

WIDE, HIGH = 3840, 2160
FIELD = SHARED / "cases" / "field" / "other_unit_zero"


def spots(folder: Path, count: int = 20) -> Path:
    """Icons all over a large screen."""
    rows = []
    for n in range(count):
        x, y = 180 * n + 40, (700 * n) % 1900 + 60
        box = [x, y, x + 60, y + 40]
        rows.append(desk.pro(id=f"word_windows_{n}", bbox=box, img_size=[WIDE, HIGH]))
    return desk.screenspot(folder, *rows, name="word_windows.json").parent


def answered(data: Path, path: Path, write: Callable[[float, float], str]) -> Path:
    """An answer to each step: the middle of its target, given in [0, 1] to `write`."""
    lines = []
    for step in get_task("screenspot").load(data, check_media=False).steps:
        box = step.targets[0] if hasattr(step, "targets") else step.action.start[0]  # type: ignore[union-attr]
        x, y = (box.left + box.right) / 2 / WIDE, (box.top + box.bottom) / 2 / HIGH  # type: ignore[union-attr]
        lines.append({"sample_id": step.sample_id, "output": write(x, y)})
    return write_lines(path, lines)


@pytest.mark.parametrize(
    ("write", "reading", "fix"),
    [
        (lambda x, y: f"[{1000 * x:.1f}, {1000 * y:.1f}]", "norm1000", "-T coordinates=norm1000"),
        (lambda x, y: f"[{WIDE * x:.0f}, {HIGH * y:.0f}]", "px", "-T coordinates=px"),
    ],
)
def test_answers_in_another_unit_name_the_option_everywhere(
    write: Callable[[float, float], str], reading: str, fix: str, tmp_path: Path
) -> None:
    data = spots(tmp_path / "d")
    lines, out = answered(data, tmp_path / "a.jsonl", write), tmp_path / "scored"
    said = f"20 of 20 wrong answers are right when read as {reading}"
    done = omnidata("score", "screenspot", data, lines, "--out", out, code=1)
    assert said in done.stdout and fix in done.stdout, "beside the table"
    printed = omnidata("score", "screenspot", data, lines, "--json", code=1)
    (reason,) = json.loads(printed.stdout)["headline"]
    assert (reason["kind"], reason["count"], reason["of"]) == ("unit", 20, 20)
    assert fix in reason["fix"]
    for more in ((), ("--errors",), ("--format", "md"), ("--json",)):
        shown = omnidata("report", out, *more, code=1)
        assert said in shown.stdout + shown.stderr and fix in shown.stdout + shown.stderr
    every = omnidata("score", "screenspot", data, lines, "--profile", "all", code=1)
    profiles = get_task("screenspot").profiles
    assert f"NOT A RESULT by {', '.join(profiles)}: {said}" in every.stdout
    run = ("--model", f"replay:{lines}", "--out", tmp_path / "run")
    asked = omnidata("evaluate", "screenspot", data, *run, code=1)
    assert said in asked.stdout and fix in asked.stdout
    option = fix.split()[1]
    fixed = omnidata("score", "screenspot", data, lines, "-T", option, "--json")
    assert json.loads(fixed.stdout)["overall"]["accuracy"] == 1.0
    assert "headline" not in json.loads(fixed.stdout)


@pytest.mark.skipif(not FIELD.exists(), reason=NO_SHARED)
def test_answers_of_another_model_family_in_another_unit_are_named() -> None:
    done = omnidata("score", "screenspot", FIELD / "d", FIELD / "answers.jsonl", code=1)
    assert "20 of 20 wrong answers are right when read as norm1000" in done.stdout
    assert "-T coordinates=norm1000, or --dialect" in done.stdout and "qwen3" in done.stdout


@pytest.mark.parametrize("place", [(0.5, 0.5), (0.05, 0.05), (0.25, 0.4)])
def test_a_constant_click_in_the_right_unit_is_an_honest_zero(
    place: tuple[float, float], tmp_path: Path
) -> None:
    data = spots(tmp_path / "d")
    lines = answered(data, tmp_path / "a.jsonl", lambda x, y: f"[{place[0]}, {place[1]}]")
    out = tmp_path / "out"
    results = as_json(omnidata("score", "screenspot", data, lines, "--out", out, "--json"))
    assert "headline" not in results
    omnidata("report", out, "--errors")


def test_the_causes_that_chance_makes_are_held_against_chance(tmp_path: Path) -> None:
    data = spots(tmp_path / "d")
    lines = answered(data, tmp_path / "a.jsonl", lambda x, y: f"[{1000 * x:.1f}, {1000 * y:.1f}]")
    out = tmp_path / "out"
    omnidata("score", "screenspot", data, lines, "--out", out, code=1)
    places = json.loads((out / "results.json").read_text())["places"]
    assert (places["missed"], places["readings"]) == (20, {"norm1000": 20})
    assert set(places["by_chance"]) == {"other_unit", "axes_swapped"}
    assert all(0 <= share < 0.2 for share in places["by_chance"].values())
    told = omnidata("report", out, "--errors", code=1).stdout
    assert "20 as norm1000" in told and "by chance (right answers to other steps)" in told


# Another dialect.


@pytest.fixture(scope="module")
def control(tmp_path_factory: pytest.TempPathFactory) -> LoadedDataset:
    """Ten steps on a phone."""
    actions = (
        phones.CLICK,
        phones.SCROLL,
        {"action_type": "long_press", "x": 9, "y": 20},
        {"action_type": "click", "x": 70, "y": 150},
        {"action_type": "input_text", "text": "7:30"},
        {"action_type": "click", "x": 20, "y": 30},
        {"action_type": "navigate_home"},
        {"action_type": "navigate_back"},
        {"action_type": "wait"},
    )
    path = tmp_path_factory.mktemp("control") / "android_control-00000-of-00001"
    data = phones.records(path, phones.episode(*actions)).parent
    return get_task("androidcontrol").load(data, check_media=False)


def headlines(source: LoadedDataset, dialect: str, texts: Sequence[str]) -> list[dict[str, str]]:
    """What a score says of such answers, one after the other again and again."""
    task = get_task("androidcontrol", {"dialect": dialect} if dialect else {})
    said = [
        Prediction(sample_id=step.sample_id, output=texts[number % len(texts)])
        for number, step in enumerate(source.steps)
    ]
    whole = np.ones(len(source.steps), dtype=np.bool_)
    profile = task.profiles[task.default_profile]
    found: list[dict[str, str]] = score(task, profile, source.steps, said, whole=whole).get(
        "headline", []
    )
    return found


def right(source: LoadedDataset, dialect: str) -> list[str]:
    task = get_task("androidcontrol", {"dialect": dialect} if dialect else {})
    return [found.text if (found := task.target(step)) else "" for step in source.steps]


PAIRS = [
    ("ui-tars-1.5", "", "ui-tars"),
    ("qwen2.5", "", "qwen"),
    ("gui-r1", "", "gui-r1"),
    ("os-atlas-pro", "", "os-atlas-pro"),
    ("ui-tars-1.5", "qwen3", "ui-tars"),
    ("qwen2.5", "ui-tars-1.5", "qwen"),
    ("gui-r1", "claude-computer-20250124", "gui-r1"),
    ("agentcpm-gui", "os-atlas-pro", "agentcpm-gui"),
    ("", "qwen2.5", "no dialect"),
]


@pytest.mark.parametrize(("spoken", "read_as", "named"), PAIRS)
def test_a_file_in_another_dialect_names_that_one(
    control: LoadedDataset, spoken: str, read_as: str, named: str
) -> None:
    (reason,) = headlines(control, read_as, right(control, spoken))
    assert reason["kind"] == "dialect"
    assert named in reason["fix"]
    assert not headlines(control, spoken, right(control, spoken))


BAD = {
    "prose": ["I'm sorry, I cannot help with that.", "The button is at the top right.", ""],
    "prose about clicks": ["Action: click the 2nd item (see Figure 3, 4)", "Step 1: tap [OK]."],
    "broken JSON": ['```json\n{"thought": "I should cl', "{}", "[]", "null"],
    "thoughts": ["<think>The user wants the settings"],
}


@pytest.mark.parametrize("dialect", ["", "qwen2.5", "ui-tars-1.5", "gui-r1", "openai-computer"])
@pytest.mark.parametrize("texts", BAD.values(), ids=BAD)
def test_honest_bad_answers_name_no_dialect(
    control: LoadedDataset, dialect: str, texts: list[str]
) -> None:
    assert not headlines(control, dialect, texts)


@pytest.mark.parametrize("dialect", ["", "qwen2.5", "ui-tars-1.5"])
def test_answers_to_other_steps_and_answers_cut_off_name_no_dialect(
    control: LoadedDataset, dialect: str
) -> None:
    said = right(control, dialect)
    assert not headlines(control, dialect, [*said[3:], *said[:3]])
    assert not headlines(control, dialect, [text[: len(text) // 2] for text in said])


# Steps that are lost.


def test_a_score_over_no_step_says_so(tmp_path: Path) -> None:
    acting = {"action_type": "fly_away"}
    rows = [phones.episode(acting, acting, acting)]
    data = phones.records(tmp_path / "d" / "android_control-00000-of-00001", *rows).parent
    source = get_task("androidcontrol").load(data, check_media=False)
    lines = [{"sample_id": step.sample_id, "output": "{}"} for step in source.steps]
    path = write_lines(tmp_path / "a.jsonl", lines)
    done = omnidata("score", "androidcontrol", data, path, "--out", tmp_path / "out", code=1)
    assert "no step can be judged" in done.stdout
    assert "[action-unusable]" in done.stdout
    shown = omnidata("report", tmp_path / "out", code=1)
    assert "no step can be judged" in shown.stderr


@pytest.mark.parametrize("more", [(), ("-T", "dialect=gui-r1")])
def test_steps_that_one_figure_of_several_judges_are_judged(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    """GUI-R1's rule has a type of each step, and a place or text of some."""
    rows = [
        {"image_path": "a.png", "goal": "Go back", "episode_id": n, "step_id": 0,
         "width": 108, "height": 240, "action": {"action_type": "navigate_back"}}
        for n in range(3)
    ]  # fmt: skip
    data, run = write_lines(tmp_path / "rows.jsonl", rows), tmp_path / "run"
    rules: tuple[str, ...] = ("--profile", "gui-r1", *more, "--json")
    command: tuple[str | Path, ...] = ("evaluate", "androidcontrol", data, *rules)
    found = as_json(omnidata(*command, "--model", "baseline:oracle", "--out", run))
    assert "headline" not in found
    assert found["overall"]["TM"] == 1
    assert found["overall"]["EM"] is None


@pytest.mark.parametrize(
    ("spoken", "end"),
    [
        ("ui-tars-1.5", "Thought: That is all.\nAction: finished(content='done')"),
        ("gui-r1", "<think>x</think><answer>[{'action': 'complete', 'point': [-100, -100], "
                   "'input_text': 'no input text'}]</answer>"),
    ],
)  # fmt: skip
def test_ends_in_the_form_of_a_dialect_are_answers_in_it(
    control: LoadedDataset, spoken: str, end: str
) -> None:
    said = [*right(control, spoken)[:4], *[end] * (len(control.steps) - 4)]
    (reason,) = headlines(control, "", said)
    assert reason["kind"] == "dialect"
    assert spoken in reason["fix"]
    prose = ["The task is complete."] * (len(control.steps) - 4)
    assert not headlines(control, "", [*right(control, spoken)[:4], *prose])
