"""AgentNet and AgentNetBench: what is read, what is kept, and what is never run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

import omnidata
from omnidata import media
from omnidata.actions import Box, Point
from omnidata.data.convert import convert
from omnidata.data.validate import validate
from omnidata.errors import DataError
from omnidata.loaders.load import recognise
from omnidata.tasks import get_task
from omnidata.tasks.agentnet.load import dump
from omnidata.types import Step, VideoSegment
from tests.loaders.desk import SCREEN, agentnet, bench, bench_step, click, gold, trajectory
from tests.trees import NO_SHARED, SHARED, codes, read_lines

REAL = SHARED / "data" / "agentnet_raw_win10"
real = pytest.mark.skipif(not REAL.is_dir(), reason=NO_SHARED)
load = get_task("agentnet").load
DRAG = "pyautogui.moveTo(x=0.4, y=0.2)\npyautogui.dragTo(x=0.1, y=0.2, button='left')"
END = "computer.terminate(status='success')"


def score(step: Step, code: str) -> Any:
    return get_task("agentnet").profiles["agentnetbench-fixed"].judge(step, code).values[0]


def test_a_trajectory_of_agentnet_is_read_and_given_back(tmp_path: Path) -> None:
    does = "pyautogui.click(x=1, y=0)", DRAG, "pyautogui.scroll(-3)", "pyautogui.moveTo(x=1, y=1)"
    row = trajectory(*does, END) | {"task_completed": True, "alignment_score": 9}
    data = agentnet(tmp_path / "a", row, trajectory(END, own="t2"))
    source = load(data)
    assert recognise(data) == ["agentnet"]
    assert not source.findings
    assert [step.sample_id for step in source.steps] == [*(f"t1/{n}" for n in range(5)), "t2/0"]
    first, _, _, _, last, _ = source.steps
    assert first.screen == SCREEN
    assert first.tags == {"form": "agentnet", "part": "agentnet", "completed": "true"}
    did = [step.action or pytest.fail(step.sample_id) for step in source.steps]
    assert [action.label for action in did[:4]] == ["TAP", "DRAG", "SCROLL_DOWN", "MOVE"]
    assert [action.words for action in did[:4]] == [*does]
    assert did[0].start == (Point(1, 0, "rel"),)
    assert did[2].amount == 3
    assert last.history == tuple(did[:4])
    assert list(dump(source)) == [row, trajectory(END, own="t2")]


def test_a_trajectory_of_agentnetbench_is_read_and_given_back(tmp_path: Path) -> None:
    steps = [
        bench_step(3, click(0.5, 0.5, [0.4, 0.4, 0.2, 0.2])),
        bench_step(
            7,
            gold("write", text="a"),
            gold("press", keys=["enter"]),
            action="pyautogui.write(message='a')",
            alternative_options=[[click(0.1, 0.1)], [gold("hotkey", keys=["ctrl", "s"])]],
        ),
        bench_step(8, gold("terminate", status="success"), action=END),
    ]
    data = bench(tmp_path / "b", *steps, meta_info={"os": "windows"})
    source = load(data)
    assert recognise(data) == ["agentnet"]
    assert not source.findings
    first, second, _ = source.steps
    assert (first.step_index, second.step_index, second.source["step"]["step_num"]) == (0, 1, 7)
    assert first.action
    assert first.action.start == (Box(0.4, 0.4, 0.6000000000000001, 0.6000000000000001, "rel"),)
    written = "write(message='a')\npyautogui.press('enter')"
    for right in (written, "click(x=0.1, y=0.1)", "hotkey('ctrl', 's')"):
        assert score(second, f"pyautogui.{right}") == 1
    assert list(dump(source)) == [json.loads((data / "b1.json").read_text())]


def test_code_is_never_run(tmp_path: Path) -> None:
    victim = tmp_path / "precious.txt"
    victim.write_text("kept")
    attack = (
        f"import pathlib\npathlib.Path({str(victim)!r}).unlink()\npyautogui.click(x=0.5, y=0.5)"
    )
    source = load(agentnet(tmp_path / "a", trajectory(attack, END)))
    convert(source, tmp_path / "out", embed=True)
    assert victim.read_text() == "kept"
    assert codes(source) == {"action-unusable": 1}
    step = source.steps[0]
    assert (step.action, step.source["step"]["value"]["code"]) == (None, attack)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"task_id": 7}, "id-missing"),
        ({"task_id": "t1"}, "id-repeated"),
        ({"traj": []}, "steps-unusable"),
        ({"traj": [3]}, "steps-unusable"),
        ({"traj": {}}, "json-invalid"),
    ],
)
def test_a_broken_trajectory_is_skipped_with_a_finding(
    tmp_path: Path, changes: dict[str, object], code: str
) -> None:
    data = agentnet(tmp_path, trajectory(END))
    broken = {**trajectory(END, own="t2"), **changes}
    with (data / "agentnet.jsonl").open("a") as file:
        file.write(json.dumps(broken) + "\n")
    source = load(data)
    assert codes(source) == {code: 1}
    assert (len(source.steps), source.skipped) == (1, 1)


@pytest.mark.parametrize("value", ["click", 3, [{"code": END}], True, {}, {"code": 3}, None])
def test_a_step_without_code_is_kept_with_a_finding(tmp_path: Path, value: object) -> None:
    steps = [{"index": 0, "image": "0.png", "value": value}]
    source = load(agentnet(tmp_path, {**trajectory(END), "traj": steps}))
    assert codes(source) == {"action-unusable": 1}
    assert [row["traj"] for row in dump(source)] == [steps]


def test_doubtful_rows_are_kept_with_a_finding(tmp_path: Path) -> None:
    data = bench(
        tmp_path / "b",
        bench_step(0, alternative_options=[[{"type": "fly"}], [click()]]),
        bench_step(1, gold("click")),
        bench_step(2, image="gone.png"),
        bench_step(3, image="../../secret.png"),  # there is such a picture
    )
    (data / "images" / "gone.png").unlink()
    source = load(data)
    assert codes(source) == dict.fromkeys(
        ("alternative-unusable", "action-unusable", "media-broken", "path-unsafe"), 1
    )
    assert {f.sample_ids for f in source.findings} == {(step.sample_id,) for step in source.steps}
    assert score(source.steps[0], "pyautogui.click(x=0.5, y=0.5)") == 1
    with pytest.raises(DataError, match="4 findings"):
        load(data, strict=True)


@real
def test_the_real_trajectory_is_read_with_its_recording() -> None:
    source = load(REAL)
    assert not source.findings
    assert read_lines(REAL / "raw_example.jsonl") == list(dump(source))
    measured = json.loads((REAL / "derived" / "step_timing.json").read_text())["rows"]
    kinds = [step.action.label for step in source.steps if step.action]
    assert kinds == [
        "TAP", "RIGHT_CLICK", "TAP", "DRAG", "TAP", "SCROLL_DOWN", *["TAP"] * 8, "TASK_COMPLETE",
    ]  # fmt: skip
    ends = [video.cell.end_s for step in source.steps if (video := step.media["video"])
            and isinstance(video.cell, VideoSegment)]  # fmt: skip
    for row, end in zip(measured[:14], ends, strict=False):
        assert end == pytest.approx(row["action_start_s"], abs=0.001)
    assert ends[14] == pytest.approx(122.6, abs=0.1)


@real
def test_the_clip_of_a_real_step_shows_its_own_screenshot() -> None:
    steps = load(REAL, check_media=False).steps

    def small(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.int16]:
        return np.asarray(Image.fromarray(pixels).resize((160, 90)), np.int16)

    def far(frame: npt.NDArray[np.uint8], number: int) -> float:
        shot = steps[number].media["screenshot"]
        assert shot
        return float(np.abs(small(frame) - small(media.image(shot).pixels)).mean())

    video = steps[2].media["video"]
    assert video
    last = media.frames(video, fps=5).pixels[-1]
    assert far(last, 2) < 4 < far(last, 6)


@real
def test_a_recording_of_other_actions_gives_no_clips(tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(REAL / "recording", data / "recording")
    agentnet(data, trajectory("pyautogui.click(x=0.5, y=0.5)", END))
    source = load(data, check_media=False)
    assert codes(source) == {"recording-unmatched": 1}
    assert source.steps[0].media["video"] is None


@real
def test_a_recording_alone_names_the_verb_that_reads_it(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        load(REAL / "recording")
    assert "omnidata segment" in caught.value.remedy


@pytest.mark.parametrize(
    ("code", "truth", "told"),
    [
        ("pyautogui.write('stat')", gold("write", text="stat6011"), True),
        ("pyautogui.write('stat6011')", gold("write", text="stat6011"), False),
        ("pyautogui.press('Enter')", gold("press", keys=["enter"]), False),
        ("pyautogui.press('tab')", gold("press", keys=["enter"]), True),
        ("pyautogui.click(x=0.1, y=0.1)", click(0.5, 0.5), False),
        ("pyautogui.rightClick(x=0.5, y=0.5)", click(0.5, 0.5), True),
        ("nobody reads this", click(0.5, 0.5), False),
    ],
)
def test_a_recorded_action_that_is_not_the_right_one_is_told(
    tmp_path: Path, code: str, truth: dict[str, object], told: bool
) -> None:
    source = load(bench(tmp_path, bench_step(0, truth, action=code)))
    found = [finding for finding in source.findings if finding.code == "recorded-differs"]
    assert len(found) == told
    if told:
        assert found[0].where == "b1/0"
        assert code in found[0].what.replace('"', "")


def test_rows_of_datasets_say_all_of_an_action(tmp_path: Path) -> None:
    from omnidata.torch import RowSteps

    code = "pyautogui.hotkey('ctrl', 's')", "pyautogui.click(x=0.1, y=0.2); pyautogui.write('a')"
    data = agentnet(tmp_path / "a", trajectory(*code, END))
    source = load(data)
    convert(source, tmp_path / "r", embed=True)
    kept = datasets.load_dataset(str(tmp_path / "r"), split="test")
    for rows in (omnidata.load_dataset("agentnet", data, split="test"), kept):
        told = [(step.action, step.history) for step in RowSteps(rows)]
        assert told == [(step.action, step.history) for step in source.steps]


def test_prompts_tell_of_what_they_told_before(tmp_path: Path) -> None:
    codes = "pyautogui.moveTo(x=0.1, y=0.1)", "pyautogui.scroll(0)", "pyautogui.press('a')"
    source = load(agentnet(tmp_path, trajectory(*codes, END)))
    told = str(get_task("agentnet").conversation(source.steps[-1]))
    assert told.count("(an action that cannot be shown)") == 2
    assert "pyautogui.press('a')" in told


def test_the_screen_may_stay_the_same_while_one_waits(tmp_path: Path) -> None:
    data = agentnet(tmp_path, trajectory("computer.wait()", "computer.wait()", END))
    found = validate(load(data), workers=0).findings
    assert "screenshot-repeated" not in {finding.code for finding in found}
