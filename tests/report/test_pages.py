"""Pages as files: what they say, what they hide, and where they may be written."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata import viewer
from omnidata.actions import Action, Box
from omnidata.data.convert import convert
from omnidata.errors import OmnidataError, RunError, UsageError
from omnidata.run.evaluate import evaluate
from omnidata.run.run_files import Run, read_run
from omnidata.tasks import get_task
from omnidata.types import Step
from omnidata.viewer.book import open_run
from omnidata.viewer.step_page import StepPage, step_page
from tests.cli.running import omnidata
from tests.conftest import Once
from tests.data.converting import small
from tests.loaders import omnibench
from tests.loaders.agentstudio import act, ground, pictures, single, trajectory, write
from tests.report.planted_run import BESIDE, HOSTILE, SILENT, SPOKEN, STEPS, planted
from tests.trees import row, write_rows


def answered(task: str, data: Path, texts: Sequence[str], folder: Path, **options: str) -> Run:
    """A run in which the steps of some data are answered so, in order."""
    asking = get_task(task, options)
    source = asking.load(data)
    lines = [
        {"sample_id": step.sample_id, "output": text}
        for step, text in zip(source.steps, texts, strict=True)
    ]
    answers = folder.with_suffix(".jsonl")
    answers.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    evaluate(asking, source, f"replay:{answers}", folder)
    return read_run(folder)


def why(run: Run, number: int = 0) -> dict[str, str]:
    """What every profile says of a step."""
    return {each.profile: each.why for each in step_page(open_run(run), number).rulings}


def tapped(tmp_path: Path, text: str, **changes: Any) -> StepPage:
    """The page of a step of OmniGUI that was answered so."""
    data = write_rows(tmp_path / "steps.json", [row(**changes)])
    return step_page(open_run(answered("omnigui", data, [text], tmp_path / "run")), 0)


@pytest.mark.parametrize(
    ("text", "paper", "release"),
    [
        ('{"action_type": 0, "coordinate": [390, 511]}', "is inside the target box", None),
        (
            '{"action_type": 0, "coordinate": [500, 511]}',
            "the point (360, 817.6) is 9 px right of the target box",
            None,
        ),
        (
            '{"action_type": 0, "coordinate": [200, 400]}',
            "66 px left of and 146 px above the target box",
            None,
        ),
        (
            '{"action_type": 0, "coordinate": [2000, 511]}',
            "1089 px right of the target box, off the screen",
            None,
        ),
        (
            '{"action_type": 0, "coordinate": [291.5, 511]}',
            "0.1 px left of the target box",
            "yet the released evaluator truncates",
        ),
        ('{"action_type": 0}', "the point is missing", None),
        ('{"action_type": 9}', "the answer is HOME, the expert's action is TAP", None),
        ("tap it", "no answer could be parsed", None),
        ("", "no answer could be parsed", None),
    ],
)
def test_the_cause_of_a_verdict_on_a_tap_is_said(
    tmp_path: Path, text: str, paper: str, release: str | None
) -> None:
    own, other = tapped(tmp_path, text).rulings
    assert (own.profile, other.profile) == ("omnigui-paper", "omnigui-release")
    assert paper in own.why
    assert (release or paper) in other.why


@pytest.mark.parametrize(
    ("changes", "text", "paper", "release"),
    [
        (
            {"result_action_type": 7, "result_action_text": "hello there"},
            '{"action_type": 7, "text": "hello"}',
            "the text differs: “hello” in place of “hello there”",
            "one text holds the other",
        ),
        (
            {"result_action_type": -1},
            '{"action_type": -1}',
            "both are NONE",
            "counts no NONE as an exact match",
        ),
        (
            {
                "result_action_type": 3,
                "result_touch_xy": "[[[0,800],[720,1600]]]",
                "result_lift_xy": "[[[0,0],[720,400]]]",
            },
            '{"action_type": 3, "start_coordinate": [500, 900], "end_coordinate": [500, 300]}',
            "the end (360, 480) is 80 px below the target box",
            "the end (360, 480) is 80 px below the target box",
        ),
        (
            {"result_touch_xy": "[210,786]"},
            '{"action_type": 0, "coordinate": [291, 800]}',
            "of 1000 away from the target point",
            "of 1000 away from the target point",
        ),
    ],
)
def test_the_cause_of_other_verdicts_is_said(
    tmp_path: Path, changes: dict[str, Any], text: str, paper: str, release: str
) -> None:
    own, other = tapped(tmp_path, text, **changes).rulings
    assert paper in own.why
    assert release in other.why


def test_a_row_without_usable_target_is_not_judged(tmp_path: Path) -> None:
    page = tapped(tmp_path, '{"action_type": 0}', result_action_type=99)
    assert page.rulings[0].mark == "unjudged"
    assert "cannot be judged" in page.rulings[0].why
    assert page.target == ""


def test_pixels_are_those_of_the_screenshot_as_it_was_sent(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "steps.json", [row()])
    task = get_task("omnigui", {"coordinates": "px"})
    line = {"role": "screenshot", "width": 360, "height": 800, "original": [720, 1600]}
    answers = tmp_path / "a.jsonl"
    answers.write_text(
        json.dumps(
            {
                "sample_id": task.load(data).steps[0].sample_id,
                "output": '{"action_type": 0, "coordinate": [200, 409]}',
                "receipt": {"parts": [line]},
            }
        )
    )
    evaluate(task, task.load(data), f"replay:{answers}", tmp_path / "run")
    page = step_page(open_run(read_run(tmp_path / "run")), 0)
    assert page.answer and page.answer.receipt
    assert "the point (400, 818) is 49 px right of the target box" in page.rulings[0].why


def test_grounding_is_explained_by_both_profiles(tmp_path: Path) -> None:
    data = tmp_path / "data"
    rows = [ground(), ground(raw_instruction="b"), ground(raw_instruction="c")]
    write(data / "g.jsonl", *rows)
    pictures(data / "images", ["a.png"])
    said = ["(106, 9)", "(0, 0)", "over there"]
    run = answered("groundui", data, said, tmp_path / "run", coordinates="px")
    edge, miss, unread = why(run, 0), why(run, 1), why(run, 2)
    assert edge["agentstudio-paper"] == "the point (106, 9) is inside the target box"
    assert "excludes the edges" in edge["agentstudio-release"]
    assert "106 px left of and 9 px above" in miss["agentstudio-paper"]
    assert "no answer could be parsed" in unread["agentstudio-paper"]
    page = step_page(open_run(run), 1)
    assert {shape.by for shape in page.pictures[0].shapes} == {"target", "answer"}


def test_letters_and_truth_values_are_explained(tmp_path: Path) -> None:
    data = tmp_path / "single"
    write(data / "s.jsonl", single(action_id="a"), single(action_id="b", operation="TYPE"))
    run = answered("idm-single", data, ["Answer: A", "Answer: A"], tmp_path / "run")
    assert why(run, 0)["agentstudio-paper"] == "the answer is A (CLICK), as recorded"
    assert "the recorded action is C (TYPE)" in why(run, 1)["agentstudio-paper"]
    rows = [trajectory(), trajectory(act(0, operation="TYPE"), act(1), annotation_id="e2:1")]
    for task, said, told in (
        ("idm-multiple", "Answer:\nA\nA", "1 edit apart"),
        ("criticbench", "Answer: False", "the answer is failure, and the trajectory succeeded"),
    ):
        write(tmp_path / task / "m.jsonl", *rows)
        run = answered(task, tmp_path / task, [said] * 2, tmp_path / f"run-{task}")
        assert told in why(run, 1)["agentstudio-paper"]
        viewer.write(run, tmp_path / f"{task}.html")
        assert told in html.unescape((tmp_path / f"{task}.html").read_text())


def test_desktop_calls_are_explained(tmp_path: Path) -> None:
    data = omnibench.library(tmp_path / "data")
    source = get_task("omnibench").load(data)
    targets = [get_task("omnibench").target(step) for step in source.steps]
    assert targets[0]
    elsewhere = re.sub(r'"coordinates":\[[^]]*\]', '"coordinates":[90,90]', targets[0].text)
    run = answered("omnibench", data, [elsewhere] * len(targets), tmp_path / "run")
    said = [why(run, number)["omnibench-step"] for number in range(len(targets))]
    assert "below the target box" in said[0]
    assert any("the expert's action is wheel_mouse_input" in each for each in said)
    viewer.write(run, tmp_path / "report.html")
    assert "wheel_mouse_input" in (tmp_path / "report.html").read_text()


PIXELS = get_task("omnigui", {"coordinates": "px"})


def numbers(least: int, most: int) -> st.SearchStrategy[float]:
    """Numbers that shares of the screen tell apart."""
    return st.floats(least, most).map(lambda value: round(value, 6))


@given(
    numbers(-2000, 3000), numbers(-2000, 3000), numbers(0, 700), numbers(0, 1500),
    numbers(0, 300), numbers(0, 300),
)  # fmt: skip
def test_a_point_is_inside_or_somewhere_beside(
    x: float, y: float, left: float, top: float, width: float, height: float
) -> None:
    box = Box(left, top, left + width, top + height, "px")
    step = Step("s", "e", 0, 1, "", (720, 1600), {}, (), (), Action("tap", (box,)), {}, {})
    text = json.dumps({"action_type": 0, "coordinate": [x, y]})
    verdict = PIXELS.profiles["omnigui-paper"].judge(step, text)
    said = PIXELS.explanation(step, verdict, text, profile="omnigui-paper").sentence
    assert ("is inside" in said) == verdict.values[1]
    assert ("left of" in said, "right of" in said) in (
        [(True, False)] if x < left - 1 else [(False, True)] if x > left + width + 1 else
        [(True, False), (False, True), (False, False)]
    )  # fmt: skip


@pytest.fixture(scope="module")
def run(once: Once, sample: Path) -> Run:
    return planted(once, sample)


@pytest.fixture(scope="module")
def site(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of its pages; nobody writes into it."""
    folder = tmp_path_factory.mktemp("pages") / "site"
    viewer.write(run, folder)
    return folder


def test_what_models_say_is_nowhere_markup(run: Run, site: Path, tmp_path: Path) -> None:
    viewer.write(run, tmp_path / "report.html")
    whole = (tmp_path / "report.html").read_text(encoding="utf-8")
    step = next(n for n, s in enumerate(open_run(run).steps) if s.sample_id == SPOKEN)
    for text in (whole, (site / "steps" / f"{step}.html").read_text("utf-8")):
        assert "&lt;script&gt;document.title=" in text
        assert "<script>document" not in text
        assert "<img src=x" not in text
        assert HOSTILE[:40] in html.unescape(text)
        assert "unsafe" not in text[: text.index("<title>")]
        assert not re.search(r'(?:src|href)="(?:https?:)?//', text)
    assert whole.count("<script") == 2
    assert whole.rstrip().endswith("</html>")


def test_instructions_of_the_data_are_nowhere_markup(tmp_path: Path) -> None:
    rows = [row(instruction_en=HOSTILE, episode=HOSTILE[:30])]
    data = write_rows(tmp_path / "steps.json", rows)
    run = answered("omnigui", data, ["{}"], tmp_path / "run")
    viewer.write(run, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert text.count("<script") == 2
    assert "<img src=x" not in text
    listing = text.split('id="listing">')[1].split("</script>")[0]
    assert json.loads(listing)["data"]["episodes"][0][1] == HOSTILE
    assert '<p class="lead">1 step</p>' in text
    assert 'aria-label="1 step with target' in text


def test_tags_of_the_data_are_nowhere_markup(tmp_path: Path) -> None:
    rows = [single(action_id=name, source=name, operation=name, action_space=[name, "c"])
            for name in (HOSTILE, "b")]  # fmt: skip
    data = write(tmp_path / "data" / "s.jsonl", *rows)
    run = answered("idm-single", data, ["Answer: A", "Answer: B"], tmp_path / "run")
    viewer.write(run, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert text.count("<script") == 2
    assert "<img src=x" not in text
    listing = json.loads(text.split('id="listing">')[1].split("</script>")[0])
    values = [value for axis in listing["data"]["axes"] for value in axis["values"]]
    options = {html.unescape(option) for option in re.findall(r'<option value="([^"]*)"', text)}
    assert options == {"", *values}
    assert "%3Cscript" in text


@pytest.mark.parametrize("embedded", [False, True])
def test_one_file_holds_no_more_clips_than_it_may(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embedded: bool
) -> None:
    data = small(tmp_path / "data", sample, "C001")
    if embedded:
        convert(get_task("omnigui").load(data), tmp_path / "repository", embed=True)
        data = tmp_path / "repository"
    source = get_task("omnigui").load(data)
    run = answered("omnigui", data, ["{}"] * len(source.steps), tmp_path / "run")
    tracks = {
        ref.path for s in source.steps for ref in s.media.values() if ref and ref.kind != "image"
    }
    for held in (len(tracks), 0):
        viewer.write(run, tmp_path / "report.html")
        text = (tmp_path / "report.html").read_text(encoding="utf-8")
        assert len(re.findall(r'<template id="m\d+" data-uri="data:(?:video|audio)/', text)) == held
        monkeypatch.setattr("omnidata.viewer.outputs.MOST_HELD", 9999)


def test_a_step_without_answer_is_told(run: Run) -> None:
    book = open_run(run)
    page = next(step_page(book, n) for n, s in enumerate(book.steps) if s.sample_id == SILENT)
    assert {each.mark for each in page.rulings} == {"none"}
    assert page.answer and page.answer.parsed == ""
    assert len(book.steps) == STEPS


def test_a_value_of_a_tag_is_not_called_a_group(site: Path) -> None:
    """A group is a set of related episodes; the first page shows none."""
    text = re.sub(r"<[^>]*>", " ", (site / "index.html").read_text("utf-8"))
    assert "Results by tag" in text
    assert not re.search(r"\bgroups?\b", text, re.I)


def test_links_of_a_folder_lead_to_whole_media(site: Path) -> None:
    found = set()
    for page in (site / "steps").iterdir():
        for address in re.findall(r'(?:src|href)="([^"#]+)"', page.read_text("utf-8")):
            if not address.startswith("data:"):
                assert (page.parent / address).is_file(), address
                found.add(Path(address).suffix)
    assert {".png", ".mp4", ".wav", ".webp", ".html", ".css", ".js"} <= found
    assert {path.name for path in site.iterdir()} >= {"index.html", "pages.js", "pages.css"}


def test_media_outside_the_data_are_neither_shown_nor_linked(tmp_path: Path) -> None:
    secret = tmp_path / "secret.png"
    pictures(tmp_path, ["secret.png"])
    data = tmp_path / "data"
    paths = ["../secret.png", str(secret), "link.png", "named.html"]
    rows = [row("T1", n, image_path=p, video_path=p, audio_path=p) for n, p in enumerate(paths)]
    write_rows(data / "steps.json", rows)
    (data / "link.png").symlink_to(secret)
    pictures(data, ["named.png"])
    (data / "named.png").rename(data / "named.html")
    run = answered("omnigui", data / "steps.json", ["{}"] * 4, tmp_path / "run")
    viewer.write(run, tmp_path / "report.html")
    viewer.write(run, tmp_path / "site")
    written = [tmp_path / "report.html", *(tmp_path / "site" / "steps").iterdir()]
    for path in written:
        text = path.read_text("utf-8")
        assert not re.search(r'(?:src|href)="[^"]*(?:secret|link\.png|named)', text)
        assert "cannot be shown" in text or "named" in text
    # A picture by another name is shown as a thumbnail of our own making, and not linked.
    assert [p.stat().st_size > 0 for p in (tmp_path / "site" / "thumbs").iterdir()] == [True]


def test_pages_replace_pages_and_nothing_else(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "steps.json", [row()])
    run = answered("omnigui", data, ["{}"], tmp_path / "run")
    site = tmp_path / "site"
    viewer.write(run, site)
    viewer.write(run, site)
    (site / "mine.txt").write_text("kept")
    with pytest.raises(UsageError, match="something here"):
        viewer.write(run, site)
    assert (site / "mine.txt").read_text() == "kept"
    with pytest.raises(UsageError):
        viewer.write(run, run.path)
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(UsageError, match="a folder is here"):
        viewer.write(run, tmp_path / "folder.html")
    assert not [path for path in tmp_path.iterdir() if "unfinished" in path.name]


def test_too_many_steps_for_one_file_are_refused_with_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(viewer, "MOST_IN_FILE", 4)
    rows = [row(f"T{n}") for n in range(viewer.MOST_IN_FILE + 1)]
    data = write_rows(tmp_path / "steps.json", rows)
    task = get_task("omnigui")
    evaluate(task, task.load(data, check_media=False), "baseline:center", tmp_path / "run")
    with pytest.raises(UsageError) as caught:
        viewer.write(read_run(tmp_path / "run"), tmp_path / "report.html")
    assert str(tmp_path / "report") in caught.value.remedy
    assert not (tmp_path / "report.html").exists()


def test_imported_answers_are_shown_with_the_data_that_one_names(
    sample: Path, tmp_path: Path
) -> None:
    answers, out = tmp_path / "answers.jsonl", tmp_path / "scored"
    answers.write_text(json.dumps({"sample_id": BESIDE, "output": "{}"}))
    data = sample / "Chirp"
    omnidata("score", "omnigui", data, answers, "--out", out, code=1)
    told = omnidata("report", out, "--html", tmp_path / "r.html", code=2).stderr
    assert "--data" in told
    done = omnidata("report", out, "--html", tmp_path / "r.html", "--data", data)
    assert "pages" in done.stderr
    assert "scores alone" in (tmp_path / "r.html").read_text("utf-8")


def test_pages_of_other_data_are_refused(run: Run, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "steps.json", [row()])
    with pytest.raises(RunError, match="other annotations"):
        viewer.write(run, tmp_path / "r.html", data=data)
    with pytest.raises(OmnidataError):
        viewer.write(run, tmp_path / "r.html", data=tmp_path / "gone")
    assert not (tmp_path / "r.html").exists()


def test_histories_of_answers_are_those_that_were_sent(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "steps.json", [row("T1", 0), row("T1", 1)])
    said = '{"action_type": 0, "coordinate": [1, 2]}'
    run = answered("omnigui", data, [said, said], tmp_path / "run", history="predicted")
    page = step_page(open_run(run), 1)
    assert "Step 0: TAP at [1, 2]" in page.prompt[-1].parts[-1][1]
    assert page.history[0].words == "TAP at [390, 511]"


@pytest.mark.parametrize(
    ("control", "told", "sound"),
    [
        ("silence", "The model got silence in place of each sound of a step", "silence, in place"),
        ("without audio", "The model was asked without the steps' sounds", ""),
        ("reversed", "The model got altered media (reversed)", "audio: T1/1.wav"),
    ],
)
def test_a_control_run_says_which_media_were_others(
    tmp_path: Path, control: str, told: str, sound: str
) -> None:
    data = write_rows(tmp_path / "steps.json", [row()])
    answered("omnigui", data, ["{}"], tmp_path / "run")
    info = json.loads((tmp_path / "run" / "run.json").read_text())
    info["control"] = {"name": control}
    (tmp_path / "run" / "run.json").write_text(json.dumps(info))
    viewer.write(read_run(tmp_path / "run"), tmp_path / "report.html")
    text = html.unescape((tmp_path / "report.html").read_text())
    assert text.count(told) == 2
    parts = step_page(open_run(read_run(tmp_path / "run")), 0).prompt[-1].parts
    sounds = [said for kind, said in parts if kind == "audio"]
    assert all(sound in said for said in sounds) and bool(sounds) == bool(sound)


def test_a_prompt_has_what_options_brought_when_the_data_were_loaded(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "steps.json", [row("T1", number) for number in range(3)])
    options = {"history_screenshots": "2", "media_until": "0.5"}
    run = answered("omnigui", data, ["{}"] * 3, tmp_path / "run", **options)
    parts = [said for kind, said in step_page(open_run(run), 2).prompt[-1].parts if kind != "text"]
    assert [said for said in parts if "history" in said] == [
        "history_screenshot_2: T1/1.png",
        "history_screenshot_1: T1/2.png",
    ]
    assert "video: T1/3.mp4, its first 50 %" in parts


@pytest.mark.parametrize(("said", "away"), [("tee", "1 edit away"), ("toe", "2 edits away")])
def test_how_far_a_text_is_off_is_counted(tmp_path: Path, said: str, away: str) -> None:
    data = write_rows(
        tmp_path / "steps.json", [row(result_action_type=7, result_action_text="tea")]
    )
    text = json.dumps({"action_type": 7, "text": said})
    viewer.write(answered("omnigui", data, [text], tmp_path / "run"), tmp_path / "report.html")
    assert away in (tmp_path / "report.html").read_text()


def test_a_run_without_scores_has_no_pages(tmp_path: Path) -> None:
    run = answered("omnigui", write_rows(tmp_path / "steps.json", [row()]), ["x"], tmp_path / "run")
    (run.path / "scores.jsonl").write_text("")
    with pytest.raises(RunError, match="the run has no scored step"):
        open_run(read_run(run.path))


@pytest.mark.parametrize("place", ["file/pages.html", "file/inner/pages.html", "file/pages"])
def test_a_place_that_takes_no_pages_is_said_in_plain_words(tmp_path: Path, place: str) -> None:
    run = answered("omnigui", write_rows(tmp_path / "steps.json", [row()]), ["x"], tmp_path / "run")
    (tmp_path / "file").write_text("here")
    with pytest.raises(OmnidataError) as caught:
        viewer.write(run, tmp_path / place)
    assert "written" in caught.value.what or "written" in caught.value.expected
    assert str(tmp_path / "file") in caught.value.where
    assert (tmp_path / "file").read_text() == "here"
