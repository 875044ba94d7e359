"""Pixels that a model names are those of the screenshot as it was shown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from omnidata.actions import history_text
from omnidata.adapters.media_budget import Capabilities
from omnidata.adapters.render import render
from omnidata.errors import PredictionError
from omnidata.run.evaluate import evaluate
from omnidata.tasks import get_task
from omnidata.tasks.omnigui.load import load
from omnidata.types import Completion, Step
from tests.run.scripted import Scripted
from tests.trees import row, write_rows

INSIDE = [280, 818]  # of the box of `row` in tests/trees.py, on 720 x 1600
SMALL = {"role": "screenshot", "width": 450, "height": 1000, "original": [720, 1600]}
RECEIPT = {"parts": [{"role": "video", "as": "frames"}, {**SMALL, "scale": 0.625}]}


def answer(x: float, y: float) -> str:
    return json.dumps({"action_type": 0, "coordinate": [x, y]})


def one_step(folder: Path, **changes: Any) -> Step:
    return load(write_rows(folder / "steps.json", [row(**changes)])).steps[0]


@pytest.mark.parametrize("profile", ["omnigui-paper", "omnigui-release"])
def test_an_answer_in_pixels_of_a_smaller_screenshot_hits_the_same_target(
    tmp_path: Path, profile: str
) -> None:
    step = one_step(tmp_path)
    judge = get_task("omnigui", {"coordinates": "px"}).profiles[profile].judge
    small = answer(INSIDE[0] * 0.625, INSIDE[1] * 0.625)
    assert judge(step, small, RECEIPT).values[1] is True
    assert judge(step, small).values[1] is False
    assert judge(step, answer(*INSIDE)).values[1] is True
    assert judge(step, answer(*INSIDE), RECEIPT).values[1] is False
    assert judge(step, answer(*INSIDE), {"parts": [{"role": "screenshot"}]}).values[1] is True


def test_an_answer_is_judged_anew_by_a_receipt_that_was_changed_in_place(tmp_path: Path) -> None:
    step, text = one_step(tmp_path), answer(INSIDE[0] * 0.625, INSIDE[1] * 0.625)
    judge = get_task("omnigui", {"coordinates": "px"}).profiles["omnigui-paper"].judge
    shown = {**SMALL, "width": 720, "height": 1600}
    receipt = {"parts": [shown]}
    assert judge(step, text, receipt).values[1] is False
    shown |= SMALL
    assert judge(step, text, receipt).values[1] is True


def test_the_record_keeps_what_the_model_wrote(tmp_path: Path) -> None:
    judge = get_task("omnigui", {"coordinates": "px"}).profiles["omnigui-paper"].judge
    verdict = judge(one_step(tmp_path), answer(175, 511), RECEIPT)
    assert verdict.parsed == {"action_type": 0, "coordinate": (175, 511)}


def test_where_the_unit_is_found_by_size_only_pixels_are_mapped(tmp_path: Path) -> None:
    step = one_step(tmp_path, result_touch_xy="[[600,1400],[700,1500]]")
    tall = {"parts": [{**SMALL, "width": 540, "height": 1200}]}
    judge = get_task("omnigui", {"coordinates": "auto"}).profiles["omnigui-paper"].judge
    assert judge(step, answer(487, 1088), tall).values[1] is True  # pixels of 540 x 1200
    assert judge(step, answer(900, 910), tall).values[1] is True  # thousandths
    assert judge(step, answer(487, 1088)).values[1] is False


def test_pixels_are_those_of_the_picture_that_was_sent_also_where_the_row_states_another_size(
    tmp_path: Path,
) -> None:
    """The file has half the sides that its row says; the targets are in the row's pixels."""
    Image.fromarray(np.zeros((800, 360, 3), np.uint8)).save(tmp_path / "1.png")
    step = one_step(tmp_path, image_path="1.png", video_path=None, audio_path=None)
    assert step.screen == (720, 1600)
    task = get_task("omnigui", {"coordinates": "px"})
    judge = task.profiles["omnigui-paper"].judge
    for budget, size in ((Capabilities(), (360, 800)), (Capabilities(image_size=200), (90, 200))):
        _, receipt = render(task.conversation(step), budget)
        [line] = receipt["parts"]
        assert (line["width"], line["height"]) == size
        seen = answer(INSIDE[0] * size[0] / 720, INSIDE[1] * size[1] / 1600)
        verdict = judge(step, seen, receipt)
        assert verdict.values[1] is True
        assert judge(step, answer(*INSIDE), receipt).values[1] is False
        drawn = task.explanation(step, verdict, seen, profile="omnigui-paper", receipt=receipt)
        point = drawn.overlays["screenshot"].answer
        assert point and [point.x, point.y] == pytest.approx(INSIDE)


TAPS = {
    "omnigui": answer(225, 500),
    "androidcontrol": '{"action_type": "click", "coordinate": [225, 500]}',
    "aitw": '{"action_type": "TAP", "coordinate": [225, 500]}',
    "gui-odyssey": '{"action_type": "CLICK", "coordinate": [225, 500]}',
    "mind2web": '{"action_type": 4, "click_point": [225, 500]}',
}


@pytest.mark.parametrize("name", TAPS)
def test_a_history_of_predictions_has_the_place_that_the_model_meant(
    tmp_path: Path, name: str
) -> None:
    """It named a pixel of 450 x 1000, in which 720 x 1600 were shown."""
    step = one_step(tmp_path)
    for space, pair in {"px": (225, 500), "norm1000": (500, 500), "rel": (0.5, 0.5)}.items():
        task = get_task(name, {"coordinates": space, "history": "predicted"})
        text = TAPS[name].replace("[225, 500]", f"[{pair[0]}, {pair[1]}]")
        action = task.history_action(step, text, RECEIPT)
        assert action is not None, (name, space)
        told = history_text(action, (720, 1600))
        assert told.endswith(" at [500, 500]"), told
        in_full = {"parts": [{**SMALL, "width": 720, "height": 1600}]}
        whole = task.history_action(step, text, in_full)
        assert whole is not None
        assert history_text(whole, (720, 1600)).endswith(
            " at [313, 313]" if space == "px" else " at [500, 500]"
        )


def test_a_history_names_no_place_where_nobody_knows_the_screen(tmp_path: Path) -> None:
    task = get_task("androidcontrol", {"coordinates": "px", "history": "predicted"})
    step = replace(one_step(tmp_path), screen=(0, 0), step_index=1, history_screens=((0, 0),))
    prompt = str(task.conversation(step, [task.history_action(step, TAPS["androidcontrol"])]))
    assert "Step 0: " in prompt
    assert "225" not in prompt


def test_a_history_of_predictions_has_pixels_of_the_screen_that_the_row_states(
    tmp_path: Path,
) -> None:
    """Files of half the sides, of one episode of two steps; the second is told of the first."""
    Image.fromarray(np.zeros((800, 360, 3), np.uint8)).save(tmp_path / "1.png")
    media: dict[str, Any] = {"image_path": "1.png", "video_path": None, "audio_path": None}
    rows = [row(step=number, **media) for number in (0, 1)]
    source = load(write_rows(tmp_path / "steps.json", rows))
    task = get_task("omnigui", {"coordinates": "px", "history": "predicted"})
    line = {"role": "screenshot", "width": 180, "height": 400, "original": [360, 800]}
    said = Completion(text=answer(90, 200), receipt={"parts": [line]})
    model = Scripted(lambda *_: said)
    evaluate(task, source, model, tmp_path / "run")
    prompt = str(model.prompts[source.steps[1].sample_id])
    assert "Step 0: TAP at [500, 500]" in prompt  # thousandths of the screen, as the paper has it


def test_a_receipt_that_is_none_is_an_error_not_a_score(tmp_path: Path) -> None:
    judge = get_task("omnigui", {"coordinates": "px"}).profiles["omnigui-paper"].judge
    for line in ({**SMALL, "width": 0}, {**SMALL, "original": [720]}, "screenshot"):
        with pytest.raises(PredictionError, match="receipt"):
            judge(one_step(tmp_path), answer(*INSIDE), {"parts": [line]})
