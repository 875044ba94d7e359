"""Pages of desktops and phones: where an answer points, what it is called, and why it is right."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omnidata.run.evaluate import evaluate
from omnidata.run.run_files import read_run
from omnidata.tasks import get_task
from omnidata.viewer.book import open_run
from omnidata.viewer.step_page import StepPage, step_page
from tests.loaders import osworld, phones
from tests.loaders.desk import (
    agentnet,
    bench,
    bench_step,
    click,
    gold,
    pro,
    screenspot,
    spot,
    trajectory,
)

HALF = {"parts": [{"role": "screenshot", "width": 32, "height": 18, "original": [64, 36]}]}
"""A screenshot of `desk.SCREEN` sent at half its size."""


def looked_at(
    task: str, data: Path, texts: Sequence[str], *, receipt: Any = None, **options: str
) -> list[StepPage]:
    """The pages of the steps, answered so in order."""
    asking = get_task(task, options)
    source = asking.load(data)
    lines = [
        {"sample_id": step.sample_id, "output": text, "receipt": receipt or {}}
        for step, text in zip(source.steps, texts, strict=True)
    ]
    folder = data.with_name(f"{data.name}-run")
    answers = folder.with_suffix(".jsonl")
    answers.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    evaluate(asking, source, f"replay:{answers}", folder)
    book = open_run(read_run(folder))
    return [step_page(book, number) for number in range(len(book.steps))]


def labels(data: Path) -> list[tuple[str, str]]:
    """What targets and answers of the run are called."""
    book = open_run(read_run(data.with_name(f"{data.name}-run")))
    return list(zip(book.targets, (each.answer_label for each in book.explanations), strict=True))


def causes(page: StepPage) -> list[tuple[str, str]]:
    return [(each.mark, each.why) for each in page.rulings]


def drawn(page: StepPage, by: str) -> list[tuple[str, float, float]]:
    """Kind and place of what is drawn over the first picture."""
    shapes = page.pictures[0].shapes
    return [(each.kind, round(each.x, 6), round(each.y, 6)) for each in shapes if each.by == by]


def test_code_is_drawn_named_and_explained(tmp_path: Path) -> None:
    data = agentnet(
        tmp_path / "data",
        trajectory(
            "pyautogui.click(x=0.5, y=0.25)",
            "pyautogui.moveTo(x=0.25, y=0.25)\npyautogui.dragTo(x=0.75, y=0.5)",
            "pyautogui.write(message='abc')",
            "pyautogui.scroll(-5)",
            "computer.terminate(status='success')",
            "pyautogui.hotkey(keys=['ctrl', 's'])",
        ),
    )
    said = [
        "pyautogui.click(x=0.52, y=0.25)",
        "pyautogui.moveTo(x=0.25, y=0.25)\npyautogui.dragTo(x=0.5, y=0.5)",
        "pyautogui.write(message='abd')",
        "pyautogui.scroll(5)",
        "pyautogui.click(x=0.5, y=0.5)",
        "pyautogui.hotkey(keys=['ctrl', 'x'])",
    ]
    pages = looked_at("agentnet", data, said)
    assert labels(data) == [
        ("click", "click"),
        ("dragTo", "dragTo"),
        ("write", "write"),
        ("scroll", "scroll"),
        ("terminate", "click"),
        ("hotkey", "hotkey"),
    ]
    assert drawn(pages[0], "target") == [("point", 32, 9)]
    assert drawn(pages[0], "answer") == [("point", 33.28, 9)]
    assert drawn(pages[1], "target") == [("point", 16, 9), ("point", 48, 18)]
    assert drawn(pages[1], "answer") == [("point", 16, 9), ("point", 32, 18), ("arrow", 16, 9)]
    assert pages[0].answer and pages[0].answer.parsed == said[0]
    whys = [causes(page)[1] for page in pages]
    assert whys[0] == ("partly", "the point (33.3, 9) is 20 of 1000 away from the target point")
    assert whys[1] == ("partly", "the point (32, 18) is 250 of 1000 away from the target point")
    assert whys[2] == ("partly", "the text differs: “abd” in place of “abc”")
    assert whys[3] == ("wrong", "scroll goes +5 in place of -5")
    assert whys[4] == ("wrong", "the answer is click, the target is terminate")
    assert whys[5] == ("wrong", "the keys differ: ctrl+x in place of ctrl+s")
    assert causes(pages[3])[0] == ("right", "the released evaluator accepts any scroll")


def test_the_nearest_alternative_explains_and_the_truth_is_drawn(tmp_path: Path) -> None:
    box = [0.25, 0.25, 0.25, 0.5]
    data = bench(
        tmp_path / "data",
        bench_step(0, click(0.3, 0.3, box), alternative_options=[[gold("write", text="ab")]]),
        bench_step(1, click(), gold("press", keys=["a"])),
        bench_step(2, gold("scroll", amount=-3)),
    )
    said = ["pyautogui.write(message='ac')", "pyautogui.click(x=0.5, y=0.5)", "computer.wait()"]
    pages = looked_at("agentnet", data, said)
    assert drawn(pages[0], "target") == [("box", 16, 9)]
    assert causes(pages[0])[1][1] == "the text differs: “ac” in place of “ab”"
    assert causes(pages[1])[1] == ("partly", "press is missing")
    assert drawn(pages[2], "target") == []
    assert labels(data)[2] == ("scroll", "(unparsed)")


def test_pixels_of_code_are_those_of_the_picture_as_it_was_sent(tmp_path: Path) -> None:
    data = agentnet(tmp_path / "data", trajectory("pyautogui.click(x=0.5, y=0.5)"))
    said = ["pyautogui.click(x=16, y=9)"]
    (page,) = looked_at("agentnet", data, said, receipt=HALF, coordinates="px")
    assert drawn(page, "answer") == drawn(page, "target") == [("point", 32, 18)]
    assert page.rulings[0].mark == "right"


def test_a_place_beyond_any_screen_is_wrong_and_told(tmp_path: Path) -> None:
    data = agentnet(tmp_path / "data", *(trajectory("pyautogui.click(x=0.5, y=0.5)", own=own)
                                         for own in ("a", "b")))  # fmt: skip
    said = [f"pyautogui.click(x={'9' * 200}, y=0.5)", f"pyautogui.click(x={'9' * 400}, y=0.5)"]
    far, beyond = looked_at("agentnet", data, said)
    assert "farther than any screen away" in causes(far)[0][1]
    assert causes(beyond)[0] == ("wrong", "click has no usable place")


def test_without_its_picture_a_place_is_judged_and_not_told(tmp_path: Path) -> None:
    data = agentnet(tmp_path / "data", trajectory("pyautogui.click(x=0.5, y=0.5)"))
    (data / "images" / "t1_0.png").unlink()
    (page,) = looked_at("agentnet", data, ["pyautogui.click(x=0.1, y=0.1)"])
    assert page.pictures[0].error
    assert causes(page)[0] == ("wrong", "click has no usable place")


def test_turns_of_rollouts_are_compared_thing_by_thing(tmp_path: Path) -> None:
    rows = [
        osworld.line(1),
        osworld.line(2, "pyautogui.write('a b')"),
        osworld.line(3, "pyautogui.click(10, 10)"),
        osworld.line(4, "DONE"),
    ]
    data = tmp_path / "data"
    osworld.rollout(data, *rows)
    said = [
        "```python\npyautogui.click(106, 54)\n```",
        "```python\npyautogui.write('a')\npyautogui.press('enter')\n```",
        "```python\npyautogui.rightClick(12, 10)\n```",
        "```WAIT```",
    ]
    pages = looked_at("osworld", data, said)
    kinds = [("click", "click"), ("keys", "keys"), ("click", "click"), ("terminate", "wait")]
    assert labels(data) == kinds
    assert drawn(pages[2], "target") == [("point", 10, 10)]
    assert drawn(pages[2], "answer") == [("point", 12, 10)]
    assert [causes(page)[0] for page in pages] == [
        ("near", "the point (106, 54) is 53 of 1000 away from the recorded point"),
        ("near", "keys: “a[enter]” in place of “a b”"),
        ("near", "click: “right 1” in place of “left 1”"),
        ("wrong", "the answer is wait, the recorded agent's is terminate"),
    ]


def test_points_are_drawn_in_the_unit_that_the_answer_names(tmp_path: Path) -> None:
    rows = [spot(), spot(), spot(), spot()]
    data = screenspot(tmp_path / "data", *rows)
    said = ["(0.5, 0.5)", "<box>(200,400),(300,600)</box>", "negative", "nowhere"]
    pages = looked_at("screenspot", data, said)
    assert drawn(pages[0], "target") == [("box", 8, 9)]
    assert [drawn(page, "answer") for page in pages] == [
        [("point", 32, 18)],
        [("point", 16, 18)],
        [],
        [],
    ]
    assert [causes(page)[0] for page in pages] == [
        ("wrong", "the point (32, 18) is 8 px right of the target box"),
        ("right", "the point (16, 18) is inside the target box"),
        ("wrong", "the answer says that the element is absent, but it is"),
        ("unread", "no answer could be parsed: neither a point nor a box"),
    ]
    assert labels(data)[1:] == [
        ("point", "point"),
        ("point", "negative"),
        ("point", "(unparsed)"),
    ]


def test_a_point_where_nothing_is_meant_is_explained(tmp_path: Path) -> None:
    rows = [pro(gt_type="negative"), pro(gt_type="negative")]
    data = screenspot(tmp_path / "data", *rows, name="photoshop_windows.json")
    right, wrong = looked_at("screenspot", data, ["negative", "(0.5, 0.5)"])
    assert causes(right)[0] == ("right", "the answer says that the element is absent, and so it is")
    assert causes(wrong)[0][1] == "the element is not on the screen, and the answer names a point"


def test_phones_are_explained_by_the_rules_of_each_profile(tmp_path: Path) -> None:
    # The expert taps at (0.4, 0.3), on the only element.
    typed = phones.zoo(1, result_action_type=3, result_action_text="abc")
    swiped = phones.zoo(
        2, result_touch_yx="[0.8, 0.5]", result_lift_yx="[0.2, 0.5]", episode_length=3
    )
    data = tmp_path / "data"
    phones.zoo_episode(data, phones.zoo(0), typed, swiped)
    said = ['{"POINT": [400, 320]}', '{"TYPE": "xyz"}', '{"POINT": [500, 200], "to": "down"}']
    pages = looked_at("aitw", data, said, coordinates="rel")
    whys = [{each.profile: (each.mark, each.why) for each in page.rulings} for page in pages]
    beside = "the point (36, 64) is 20 of 1000 away from the target point"
    assert drawn(pages[0], "answer") == [("point", 36, 64)]
    assert whys[0]["aitw"] == ("right", beside)
    assert whys[0]["aitz"][0] == "near"
    assert "reads every click as a click at (0, 0)" in whys[0]["aitz"][1]
    assert whys[0]["aitz-fixed"] == ("right", f"{beside}, which the profile's boxes allow")
    assert whys[1]["aitw"] == ("right", "the profile accepts “xyz” for “abc”")
    assert whys[1]["aitw-fixed"] == ("near", "the text differs: “xyz” in place of “abc”")
    turned = "the answer is SWIPE_DOWN, the expert's action is SWIPE_UP"
    assert whys[2]["aitw"] == ("right", f"{turned}, which the profile accepts as the same")
    assert whys[2]["aitw-fixed"][1] == turned


def test_an_element_may_count_where_a_point_is_far_away(tmp_path: Path) -> None:
    data = tmp_path / "data"
    phones.zoo_episode(data, phones.zoo(0, ui_positions="[[0, 0, 200, 90]]"))
    (page,) = looked_at("aitw", data, ['{"POINT": [900, 900]}'])
    whys = {each.profile: each.why for each in page.rulings}
    assert whys["agentcpm"].endswith("away from the target point, which the profile's boxes allow")
    assert whys["agentcpm"].startswith("the point (81, 180) is")
