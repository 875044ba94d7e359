"""What a dataset holds, measured alike for every benchmark: numbers by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from omnidata import media
from omnidata.actions import Action, Box, Point, Region, Screen
from omnidata.table import TextTable
from omnidata.tasks import get_task
from omnidata.tasks.statistics import (
    AREA,
    CHARACTERS,
    SHARE,
    STEPS,
    WORDS,
    Statistics,
    comparison,
    figure,
    statistics,
)
from omnidata.types import LoadedDataset, MediaRef, Step
from tests.cli.running import as_json, here
from tests.loaders.agentstudio import ground, trajectory, write


def step(
    episode: str,
    index: int = 0,
    action: Action | None = None,
    *,
    screen: Screen = (100, 200),
    instruction: str = "Tap it",
    media: Mapping[str, MediaRef | None] = {},
    **tags: str,
) -> Step:
    return Step(
        f"{episode}/{index}", episode, index, 1, instruction, screen, dict(media), (), (), action,
        tags, {},
    )  # fmt: skip


def source(*steps: Step) -> LoadedDataset:
    tags = dict.fromkeys(tag for one in steps for tag in one.tags)
    ids = [one.sample_id for one in steps]
    return LoadedDataset("omnigui", Path("data"), steps, [], 0, "", ids, tuple(tags), {})


def measured(*steps: Step) -> Statistics:
    return statistics(get_task("omnigui"), source(*steps))


def tap(*regions: Region) -> Action:
    return Action("tap", regions)


def test_steps_and_instructions_are_counted_by_episode() -> None:
    found = measured(
        step("A", instruction="Open the app"),
        *(step("B", index, instruction="打开 TED") for index in range(3)),
        step("B", 3, instruction=" "),
    ).measures
    assert found[STEPS].values == (1, 4)
    assert found[WORDS].values == (3, 3), "one instruction of B, whose words are 打, 开 and TED"
    assert found[CHARACTERS].values == (12, 6)
    assert found[WORDS].unknown == 1
    assert found[STEPS].summary() == {
        "known": 2, "unknown": 0, "min": 1, "q1": 1.75, "median": 2.5, "mean": 2.5, "q3": 3.25,
        "max": 4,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("action", "screen", "share", "area"),
    [
        (tap(Box(10, 20, 20, 40, "px")), (100, 200), 1.0, 200.0),
        (tap(Box(0.1, 0.2, 0.2, 0.4, "rel")), (100, 200), 2.0, 400.0),
        (tap(Box(100, 200, 200, 400, "norm1000")), (0, 0), 2.0, None),
        (tap(Box(10, 20, 20, 40, "px")), (0, 0), None, 200.0),
        (tap(Box(0, 0, 1, 1, "px"), Box(0, 0, 20, 100, "px")), (100, 200), 10.0, 2000.0),
        (tap(Box(-50, 100, 150, 300, "px")), (100, 200), 50.0, 10_000.0),
        (tap(Box(-200, 0, 1200, 500, "norm1000")), (100, 200), 50.0, 10_000.0),
        (tap(Box(2, 0, 3, 1, "rel")), (100, 200), 0.0, 0.0),
        (Action("long_press", (Box(0, 0, 10, 20, "px"),)), (100, 200), 1.0, 200.0),
    ],
)
def test_an_element_is_what_is_tapped(
    action: Action, screen: Screen, share: float | None, area: float | None
) -> None:
    found = measured(step("A", action=action, screen=screen)).measures
    for name, number in ((SHARE, share), (AREA, area)):
        assert found[name].values == (() if number is None else (pytest.approx(number),))
        assert found[name].unknown == (number is None)


def test_what_is_no_tap_on_a_box_is_no_element() -> None:
    box = Box(0, 0, 100, 200, "px")
    swipe, point = Action("swipe", (box,), (box,)), tap(Point(1, 1, "px"))
    assert SHARE not in measured(step("A", action=swipe), step("B", action=point)).measures
    found = measured(step("A", action=tap(box)), step("B", action=point), step("C", action=swipe))
    assert (found.measures[SHARE].values, found.measures[SHARE].unknown) == ((100,), 1)


def test_targets_and_media_are_counted() -> None:
    shot, clip = (MediaRef(kind, Path("data"), "x") for kind in ("image", "video"))
    both = Action("tap", (Point(1, 1, "px"),), then=(Action("type", text="a"),))
    found = measured(
        step("A", action=both, media={"observation_0": shot, "observation_1": shot}),
        step("B", action=Action("wait"), media={"observation_0": shot, "video": clip}),
        step("C", media={"observation_0": None, "history_screenshot": shot}),
    )
    assert dict(found.targets) == {"INPUT": 1, "TAP": 1, "WAIT": 1}
    assert (found.unlabelled, found.placed, found.noun) == (1, 1, "action")
    media = {"observation_*": ("image", 2), "video": ("video", 1)}
    assert dict(found.media) == {**media, "history_screenshot": ("image", 1)}
    assert dict(found.kinds) == {"image": 2, "video": 1}, "C has none of its own moment"
    data = source(step("A", media={"screenshot_after": shot, "video_after": clip}))
    assert not statistics(get_task("osworld"), data).kinds
    assert found.measures["seconds of video"].unknown == 1, "the file is not there"


def test_a_benchmark_without_actions_is_told_by_its_pages(tmp_path: Path) -> None:
    data = write(tmp_path / "rows.jsonl", ground(bbox=[0, 0, 72, 9]), ground(bbox=[0, 0, 36, 45]))
    found = as_json(here("info", data, "--json"))["statistics"]
    assert found["placed"] == 2
    assert found["measures"][SHARE]["min"] == pytest.approx(5)  # of 144 x 90
    assert found["measures"][SHARE]["max"] == pytest.approx(12.5)
    pair = [trajectory(), trajectory(annotation_id="e2", is_success=False)]
    critic = as_json(here("info", "criticbench", write(tmp_path / "c.jsonl", *pair), "--json"))
    assert critic["statistics"]["targets"] == {"failure": 1, "success": 1}
    several = as_json(here("info", "idm-multiple", write(tmp_path / "m.jsonl", pair[0]), "--json"))
    made = Counter(each["operation"] for each in pair[0]["actions"])
    assert several["statistics"]["targets"] == made


def test_clips_and_sounds_are_as_long_as_what_is_in_them(sample: Path) -> None:
    task = get_task("omnigui")
    data = task.load(sample)
    found = statistics(task, data).measures
    for role in ("video", "audio"):
        refs = [ref for each in data.steps if (ref := each.media.get(role))]
        measure = found[f"seconds of {role}"]
        assert (len(measure.values), measure.unknown) == (len(refs), 0)
        assert measure.values[0] == pytest.approx(media.probe(refs[0]).seconds, abs=0.05)


@pytest.mark.parametrize("row", [["TED", "1"], ["TED", "1", "2", "3"]])
def test_a_row_that_is_not_as_wide_as_the_header_is_named(row: list[str]) -> None:
    with pytest.raises(ValueError, match=r"Apps: . cells below 3 headers.*TED"):
        TextTable("Apps", ("", "episodes", "steps"), [row])


@pytest.fixture
def printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[TextTable, int], str]:
    """Prints a benchmark's table in a terminal of so many columns."""
    data = write(tmp_path / "rows.jsonl", ground())

    def show(table: TextTable, columns: int) -> str:
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr("omnidata.tasks.overview.View.tables", lambda overview: [table])
        return here("info", "groundui", data).stdout.partition("\n\n")[0]

    return show


def test_no_header_from_the_data_is_obeyed_by_a_terminal(
    printed: Callable[[TextTable, int], str],
) -> None:
    text = printed(TextTable("Apps", ("a\x1b[2J", "b\nc"), [["TED", "1"]]), 80)
    assert r"a\x1b[2J" in text
    assert r"b\nc" in text
    assert "\x1b" not in text


def test_long_labels_are_folded_before_a_table_is_printed_in_parts(
    printed: Callable[[TextTable, int], str],
) -> None:
    header = ("", "aaaaaaaa", "bbbbbbbb", "cccccccc")
    table = TextTable("", header, [["one two three four five six seven", "1", "2", "3"]])
    text = printed(table, 60)
    assert text.count("aaaaaaaa") == text.count("cccccccc") == 1
    assert max(map(len, text.splitlines())) <= 60
    assert [line.split() for line in text.splitlines()][:1] == [list(header[1:])]


def test_datasets_stand_beside_each_other(tmp_path: Path) -> None:
    shot, clip = (MediaRef(kind, Path("data"), "x") for kind in ("image", "video"))
    one = source(
        step("A", action=tap(Point(1, 1, "px")), media={"shot": shot, "clip": clip}, app="TED"),
        step("A", 1, media={"shot": shot}, app="TED"),
    )
    task = get_task("omnigui")
    table = comparison([(task, one, statistics(task, one))])
    row = {c.header: cell.text for c, cell in zip(table.columns, table.rows[0].cells, strict=True)}
    assert row.items() >= {
        "platform": "mobile", "tasks": "1", "steps": "2", "steps/task": "2", "apps": "1",
        "image": "✓", "video": "50.0 %", "audio": "✗", "answer": "coordinates",
    }.items()  # fmt: skip
    data = write(tmp_path / "a_b.jsonl", ground(), ground(image="b.png", platform="mobile"))
    other = write(tmp_path / "other.jsonl", ground())
    done = here("info", "groundui", data, other, "--format", "md")
    lines = [line for line in done.stdout.splitlines() if line.startswith("| GroundUI")]
    assert len(lines) == 2 and "a\\_b.jsonl | mobile, web | 2 | 2 |" in lines[0]
    both = as_json(here("info", data, "groundui", other, "--json"))["datasets"]
    assert [each["steps"] for each in both] == [2, 1]
    latex = here("info", "groundui", data, "--format", "latex").stdout
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 3
    assert r"element, \% of the screen" in latex


def test_the_figure_of_any_dataset_draws_what_is_counted() -> None:
    data = source(
        *(step("A", index, tap(Box(0, 0, 10, 10, "px")), app="$a_{") for index in range(3)),
        step("B", 0, Action("wait"), app="b"),
    )
    found = statistics(get_task("omnigui"), data)
    panels: Any = {panel.get_title("left"): panel for panel in figure(data, found).axes}
    assert panels.keys() == {"actions", "steps by app", *found.measures}
    assert [bar.get_width() for bar in panels["steps by app"].patches] == [3, 1]
    sums = {name: sum(bar.get_height() for bar in panels[name].patches) for name in (STEPS, SHARE)}
    assert sums == {STEPS: 2, SHARE: 3}
