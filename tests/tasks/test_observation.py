"""What a model is shown of a screen besides its picture, and answers that name a mark."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata import media
from omnidata.actions import Screen
from omnidata.adapters.media_budget import Capabilities
from omnidata.adapters.render import render
from omnidata.analysis.figures import drawings, tree_lengths
from omnidata.errors import MediaError, UsageError
from omnidata.run.evaluate import evaluate
from omnidata.run.run_files import read_run
from omnidata.tasks import benchmark as contract
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.tasks.observation import OPTIONS, Element, ScreenDisplay
from omnidata.types import Completion, MediaRef, Prepared, Request, Step
from tests.cli.running import here
from tests.loaders.phones import CLICK, SCREEN, SCROLL, episode, pixels, png, records, tree
from tests.run.scripted import Scripted, finals
from tests.trees import NO_SHARED, SHARED, read_lines

NODES: Sequence[dict[str, Any]] = (
    {"bounds": (0, 0, *SCREEN), "class_name": "android.widget.FrameLayout"},
    {"bounds": (0, 0, 90, 150), "class_name": "android.widget.ScrollView", "text": "Alarms"},
    {
        "bounds": (40, 90, 60, 110), "class_name": "android.widget.Button",
        "content_description": "Add\talarm", "text": "+",
    },
    {"bounds": (10, 10, 20, 20), "class_name": "android.widget.ImageView"},
    {"bounds": (10, 160, 80, 180), "class_name": "android.view.View", "hint_text": "Search"},
    {"bounds": (0, 0, 9, 9), "text": "unseen", "is_visible_to_user": False},
)  # fmt: skip
PX = """tag\tname\ttext\tposition (top-left x&y)\tsize (w&h)
ScrollView\t\tAlarms\t(0, 0)\t(90, 150)
Button\tAdd alarm\t+\t(40, 90)\t(20, 20)
ImageView\t\t\t(10, 10)\t(10, 10)
View\t\tSearch\t(10, 160)\t(70, 20)
"""
TOKENS = 100
"""Those of `PX`."""

MARKED = """index\ttag\tname\ttext
1\tScrollView\t\tAlarms
2\tButton\tAdd alarm\t+
3\tImageView\t\t
4\tView\t\tSearch
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    trees = [tree(*NODES), tree(*NODES), tree()]
    return records(
        tmp_path / "data" / "ac", episode(CLICK, SCROLL, accessibility_trees=trees)
    ).parent


def asked(data: Path, **options: str) -> tuple[Asking, Step]:
    task = get_task("androidcontrol", options)
    return task, task.load(data).steps[0]


def told(task: Asking, step: Step) -> str:
    (part,) = (part for part in task.conversation(step)[-1].parts if part.about)
    return part.text


def values(task: Asking, step: Step, answer: Any, **receipt: Any) -> tuple[Any, ...]:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return task.profiles[task.default_profile].judge(step, text, receipt or None).values


def test_without_the_option_runs_and_prompts_are_as_before_there_was_one(data: Path) -> None:
    plain, step = asked(data)
    named, _ = asked(data, observation="screenshot")
    assert dict(named.options) == dict(plain.options)
    assert not {"observation", "a11y_tokens"} & plain.options.keys()
    assert named.prompt_hash == plain.prompt_hash
    assert [part.role for part in plain.conversation(step)[-1].parts] == ["screenshot", ""]


def test_a_tree_is_a_table_in_place_of_the_picture_or_beside_it(data: Path) -> None:
    task, step = asked(data, observation="a11y", coordinates="px")
    system, user = task.conversation(step)
    assert told(task, step).partition(":\n")[2] == PX
    assert {part.kind for part in user.parts} == {"text"}
    assert "screenshot" not in "".join(part.text for part in (*system.parts, *user.parts))
    both, _ = asked(data, observation="screenshot+a11y", coordinates="px")
    assert [part.kind for part in both.conversation(step)[-1].parts] == ["image", "text", "text"]
    assert told(both, step) == told(task, step)
    assert len({one.prompt_hash for one in (task, both, asked(data)[0])}) == 3


def test_positions_have_the_unit_of_answers(data: Path) -> None:
    for unit, line in (
        ("norm1000", "(444, 450)\t(222, 100)"),
        ("rel", "(0.4444, 0.45)\t(0.2222, 0.1)"),
    ):
        task, step = asked(data, observation="a11y", coordinates=unit)
        assert told(task, step).splitlines()[3] == f"Button\tAdd alarm\t+\t{line}"
    with pytest.raises(MediaError, match="size of the screen"):
        task.conversation(replace(step, screen=(0, 0)))


def observe(elements: Sequence[Element], kind: str, most: str, screen: Screen) -> Any:
    options = {"observation": kind, "a11y_tokens": most}
    found = ScreenDisplay(options, lambda step: elements).observation(
        Step("s", "e", 0, 1, "", screen, {}, (), (), None, {}, {})
    )
    assert found
    return found


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({}, True),
        ({"visible": False}, False),
        ({"usable": False}, False),
        ({"name": ""}, False),
        ({"name": "", "text": "a"}, True),
        ({"name": "", "image": True}, True),
        ({"box": (0, -1, 5, 5)}, False),
        ({"box": (3, 3, 3, 5)}, False),
        ({"box": (3, 5, 9, 5)}, False),
    ],
)
def test_elements_are_kept_by_table_11(change: dict[str, Any], kept: bool) -> None:
    element = replace(Element("button", "Close", "", (0, 0, 5, 5)), **change)
    assert len(observe([element], "som", "unlimited", (60, 60)).elements) == kept


def test_what_a_budget_cuts_off_is_neither_told_nor_marked_and_the_receipt_says_it(
    tmp_path: Path,
) -> None:
    many = [{"bounds": (n, 0, n + 1, 9), "text": f"Item {n} of the list"} for n in range(300)]
    trees = [tree(*many, {"bounds": (0, 0, 1, 1)})] * 2
    data = records(tmp_path / "a", episode(CLICK, accessibility_trees=trees))
    task, step = asked(data, observation="som", a11y_tokens="1500")
    text = told(task, step)
    assert text.endswith("[...]\n")
    shot = next(part.media for part in task.conversation(step)[-1].parts if part.media)
    lines = text.splitlines()[2:-1]
    _, receipt = render(task.conversation(step), Capabilities())
    (line,) = (line for line in receipt["parts"] if line["kind"] == "text")
    assert len(shot.marks) == len(lines) == line["told"] < 300
    assert (line["elements"], line["kept"]) == (301, 300)
    assert line["told"] + line["left_out"] == 300
    assert 1480 < line["tokens"] <= 1500
    last, cut = (values(task, step, click(f"tag_{n}")) for n in (line["told"], line["told"] + 1))
    assert (last[2], cut[2]) == (True, False)
    whole, _ = asked(data, observation="som", a11y_tokens="unlimited")
    assert told(whole, step).count("\n") == 302


def click(place: Any) -> dict[str, Any]:
    return {"action_type": "click", "coordinate": place}


def test_marks_are_drawn_where_the_elements_are_and_nowhere_else(data: Path) -> None:
    task, step = asked(data, observation="som")
    assert told(task, step).partition(":\n")[2] == MARKED
    shot = next(part.media for part in task.conversation(step)[-1].parts if part.media)
    drawn, plain = media.image(shot).pixels, pixels(30)
    assert media.image_size(shot) == SCREEN
    left, top, right, bottom = 40, 90, 60, 110
    assert (drawn[top, left:right] == (255, 0, 0)).all()
    assert (drawn[top:bottom, right] == (255, 0, 0)).all()
    assert (drawn[95, 50] == plain[95, 50]).all()  # inside of a frame
    changed = np.argwhere((drawn != plain).any(axis=2))
    assert not ((changed[:, 0] > 181) | (changed[:, 0] < 0)).any()  # below the last frame
    step_shot = step.media["screenshot"]
    assert step_shot
    assert (media.image(step_shot).pixels == plain).all()


def test_an_answer_that_names_a_mark_is_judged_at_its_element(data: Path) -> None:
    task, step = asked(data, observation="som")  # the expert clicks at (45, 100), within mark 2
    target = task.target(step)
    assert target
    assert json.loads(target.text) == click("tag_2")
    assert values(task, step, target.text) == (True, True, True)
    assert values(task, step, click("tag_4")) == (True, False, True)
    assert values(task, step, click([500, 500])) == (True, True, True)
    unread = task.profiles[task.default_profile].judge(step, json.dumps(click("tag_9")))
    assert unread.outcome == "unparsed"
    verdict = task.profiles[task.default_profile].judge(step, target.text)
    told = task.explanation(step, verdict, target.text, profile=task.default_profile)
    overlays = told.overlays["screenshot"]
    assert overlays.answer
    assert (overlays.answer.x, overlays.answer.y) == pytest.approx((45, 100))
    plain, _ = asked(data)
    judged = plain.profiles[plain.default_profile].judge(step, json.dumps(click("tag_2")))
    assert judged.outcome == "unparsed"  # nobody was shown a mark


def test_pixels_are_the_screens_where_the_tree_tells_them_and_else_the_pictures(data: Path) -> None:
    small = {"role": "screenshot", "width": 45, "height": 100, "original": [*SCREEN]}
    half, full = click([25, 50]), click([50, 100])
    for observed, answer, other in (
        ("screenshot", half, full), ("som", half, full), ("screenshot+a11y", full, half),
    ):  # fmt: skip
        task, step = asked(data, observation=observed, coordinates="px")
        lines = [part.about for part in task.conversation(step)[-1].parts if part.about]
        receipt = {"parts": [small, *lines]}
        assert values(task, step, answer, **receipt)[1] is True
        assert values(task, step, other, **receipt)[1] is False
    task, step = asked(data, observation="som", coordinates="px")
    assert values(task, step, click("tag_2"), parts=[small])[1] is True
    tree_told, _ = asked(data, observation="a11y", coordinates="px")
    found = tree_told.target(step, size=(45, 100))
    assert found
    assert found.points == ((45, 100),)


@given(
    st.lists(
        st.tuples(
            st.text(max_size=5), st.text(max_size=9), st.integers(-3, 60), st.integers(-3, 60),
            st.integers(-1, 9), st.integers(-1, 9),
        ),
        min_size=1,
    ),
    st.sampled_from([("unlimited", 1), ("1500", 100)]),
)  # fmt: skip
def test_a_table_has_a_line_for_each_mark(
    rows: list[tuple[str, str, int, int, int, int]], limit: tuple[str, int]
) -> None:
    most, times = limit
    elements = [Element(a, b, a, (x, y, x + w, y + h)) for a, b, x, y, w, h in rows] * times
    found = observe(elements, "som", most, (60, 60))
    lines = found.text.split("\n")[1:-1]
    cut = "left_out" in found.about
    assert len(lines) == len(found.elements) + cut
    assert all(line.count("\t") == 3 for line in lines[: len(found.elements)])
    assert most == "unlimited" or found.about["tokens"] <= 1500


class Sees(Scripted):
    """Is shown pictures, and says what it got."""

    accepts = frozenset({"image"})

    def prepare(self, request: Request) -> Prepared:
        _, receipt = render(request.conversation, Capabilities())
        return Prepared(request, receipt, 1000, receipt)

    async def generate(self, batch: Sequence[Prepared], params: Any) -> list[Completion]:
        return [Completion(text=self.reply("", 1).text, receipt=dict(one.receipt)) for one in batch]


def test_a_broken_tree_is_a_media_error_of_its_step_and_never_a_bare_screenshot(
    tmp_path: Path,
) -> None:
    trees = [tree(*NODES)[:-1], tree(*NODES), tree()]
    data = records(tmp_path / "a", episode(CLICK, CLICK, CLICK, accessibility_trees=trees))
    model = Sees(lambda name, attempt: Completion(text=json.dumps(click("tag_2"))))
    for observed in ("a11y", "screenshot+a11y", "som"):
        task = get_task("androidcontrol", {"observation": observed})
        source = task.load(data)
        assert [found.code for found in source.findings] == ["lengths-differ", "forest-broken"]
        out = tmp_path / observed
        with pytest.warns(UserWarning, match="2 of 3"):
            results = evaluate(task, source, model, out)
        assert results["outcomes"]["media_error"] == 2
        assert finals(out) == {"3/0": "media_error", "3/1": "ok", "3/2": "media_error"}
        lines = {line["sample_id"]: line for line in read_lines(out / "predictions.jsonl")}
        assert "accessibility tree cannot be read" in lines["3/0"]["error"]
        assert "accessibility tree has no element" in lines["3/2"]["error"]
        assert lines["3/1"]["receipt"]["parts"][-1]["told"] == 4
    with pytest.raises(MediaError, match="no accessibility tree"):
        bare = {key: said for key, said in source.steps[1].source.items() if "tree" not in key}
        task.conversation(replace(source.steps[1], source=bare))


def test_lengths_of_trees_are_drawn_from_receipts(data: Path, tmp_path: Path) -> None:
    model = Sees(lambda name, attempt: Completion(text="{}"))
    task = get_task("androidcontrol", {"observation": "a11y", "coordinates": "px"})
    evaluate(task, task.load(data), model, tmp_path / "run")
    run = read_run(tmp_path / "run")
    assert tree_lengths(run) == [(TOKENS, False)] * 2
    (figure,) = (one for one in drawings([run]) if one.name == "androidcontrol-trees")
    (axes,) = figure.make().axes
    assert axes.get_legend_handles_labels()[1] == [f"90 % have at most {TOKENS}"]
    assert axes.get_ylim()[1] == pytest.approx(2, rel=0.1)


def test_runs_that_differ_in_what_is_shown_are_one_table(data: Path, tmp_path: Path) -> None:
    for observed in OPTIONS["observation"]:
        task = get_task("androidcontrol", {"observation": observed})
        model = Sees(lambda name, attempt: Completion(text=json.dumps(click("tag_2"))))
        evaluate(task, task.load(data), model, tmp_path / observed, limit=1)
    task = get_task("androidcontrol", {"observation": "a11y", "a11y_tokens": "1500"})
    evaluate(task, task.load(data), model, tmp_path / "short", limit=1)
    runs = (tmp_path / name for name in (*OPTIONS["observation"], "short"))
    said = here("report", *runs).stdout
    table = said[said.index("Runs by observation") :]
    shares = {
        name: re.split(f" {re.escape(name)}[ ,]", table)[1].splitlines()[0]
        for name in ("Screenshot", "A11y tree", "Screenshot + A11y tree", "Set-of-Mark")
    }
    assert "100.0" in shares["Set-of-Mark"]
    assert "100.0" not in shares["Screenshot + A11y tree"]  # where no mark was shown
    assert " A11y tree, a11y_tokens=1500 " in table
    assert " A11y tree, a11y_tokens=10000 " in table


def test_exports_have_marked_pictures_name_marks_and_leave_broken_trees_out(tmp_path: Path) -> None:
    trees = [tree(*NODES), tree(*NODES)[:-1], tree(*NODES)]
    data = records(tmp_path / "a", episode(CLICK, CLICK, accessibility_trees=trees))
    twin = episode(CLICK, number=4, goal=["Else"], screenshots=[png(30), png(77)])
    known = records(tmp_path / "known" / "ac", twin)
    out = tmp_path / "out"
    said = f"export androidcontrol {data} {out} --format llamafactory -T observation=som"
    here(*said.split(), "--check-against", known, "--workers", "1", code=1)
    report = json.loads((out / "export.json").read_text())
    found = {finding["code"]: finding["where"] for finding in report["findings"]}
    assert found["media-broken"] == "3/1"
    assert found["leak-screenshot"] == "3/0"  # whatever marks are drawn on it
    (row,) = (row for path in out.glob("*.jsonl") for row in read_lines(path))
    assert json.loads(row["messages"][-1]["content"]) == click("tag_2")
    assert MARKED in row["messages"][-2]["content"]
    drawn = media.image(MediaRef("image", out, row["images"][0]))
    assert (drawn.pixels[90, 40:60] == (255, 0, 0)).all()


def test_exports_of_trees_alone_have_no_pictures(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    here(*f"export androidcontrol {data} {out} --format trl -T observation=a11y".split())
    rows = [row for path in out.glob("*.jsonl") for row in read_lines(path)]
    assert [row["images"] for row in rows] == [[], []]
    assert "Add alarm" in rows[0]["prompt"][1]["content"][0]["text"]


class Stall(contract.Benchmark):
    """A benchmark whose steps hold the elements of their screens."""

    card = contract.Card(title="Stall")
    question = "Next?"
    allowed = OPTIONS

    def steps(self, data: Path, note: contract.Note) -> list[Step]:
        return []

    def parse(self, text: str, step: Step, receipt: contract.Receipt) -> contract.ParsedAnswer[str]:
        return contract.ParsedAnswer(text, {})

    def target(self, step: Step, **_: Any) -> None:
        return None

    def elements(self, step: Step) -> Sequence[Element]:
        return [Element("button", "Buy", "", (0, 0, 5, 5))]


def test_the_default_prompt_shows_the_elements_that_the_option_asks_for() -> None:
    step = Step("s", "e", 0, 1, "", (60, 60), {}, (), (), None, {}, {})
    made = {kind: Stall("stall", {"observation": kind}) for kind in OPTIONS["observation"]}
    parts = {kind: each.prompt(step, contract.History())[0].parts for kind, each in made.items()}
    assert "button\tBuy\t\t(0, 0)\t(5, 5)\n" in parts["a11y"][0].text
    assert [part.text for part in parts["screenshot"]] == ["Next?"]
    assert len({each.prompt_hash for each in made.values()}) == 4
    assert Stall("stall", {}).prompt_hash == made["screenshot"].prompt_hash


def test_a_benchmark_without_elements_may_have_an_option_observation_of_its_own() -> None:
    own = {"elements": None, "allowed": {"observation": ("screenshot", "dom")}}
    Own = type("Own", (Stall,), own)  # noqa: N806  (a class)
    step = Step("s", "e", 0, 1, "", (60, 60), {}, (), (), None, {}, {})
    assert dict(Own("own", {}).options) == {"observation": "screenshot"}
    (user,) = Own("own", {"observation": "dom"}).prompt(step, contract.History())
    assert [part.text for part in user.parts] == ["Next?"]


@pytest.mark.skipif(not SHARED.is_dir(), reason=NO_SHARED)
def test_lengths_of_a_real_recordings_trees_are_those_of_the_documentation() -> None:
    def walk(node: dict[str, Any]) -> Iterator[Element]:
        edges = node["BoundingRectangle"]
        box = edges["left"], edges["top"], edges["right"], edges["bottom"]
        yield Element(node["ControlType"], node["Name"], "", box)
        for child in node["Children"]:
            yield from walk(child)

    rows = read_lines(SHARED / "data" / "agentnet_raw_win10" / "recording" / "a11y.jsonl")
    found = [observe([*walk(row["axtree"])], "a11y", "unlimited", (1366, 768)) for row in rows]
    assert all(one.about["told"] == one.about["kept"] > 0 for one in found)
    lengths = sorted(one.about["tokens"] for one in found)
    assert len(lengths) == 32
    assert 1500 < np.median(lengths) < 1750
    assert lengths[28] < 2150  # nine of ten; the roles are a word longer here


def test_options_that_cannot_go_together_are_refused() -> None:
    for options in (
        {"observation": "som", "history": "predicted"},
        {"a11y_tokens": "1500"},
        {"observation": "dom"},
    ):
        with pytest.raises(UsageError):
            get_task("androidcontrol", options)
