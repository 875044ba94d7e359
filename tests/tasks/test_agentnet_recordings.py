"""AgentNet's log, with kinds of actions that the real example does not have."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.actions import Action, Box, Point
from omnidata.data.segment import segment
from omnidata.data.segment.plan import Cut
from omnidata.errors import DataError
from omnidata.loaders.action_log import Log
from omnidata.tasks import get_task
from tests.data.segment.films import film

METADATA = {"screen_width": 1000, "screen_height": 500, "video_start_timestamp": 100.0}


def read_recorder(path: Path) -> Log | None:
    recorder = get_task("agentnet").benchmark.recorder
    assert recorder
    return recorder(path)


def read_log(path: Path) -> Log:
    log = read_recorder(path)
    assert log
    return log


def write(folder: Path, *actions: dict[str, Any], label: str = "click") -> Path:
    """A recording's folder with these actions, a second apart."""
    folder.mkdir(exist_ok=True)
    (folder / "metadata.json").write_text(json.dumps({"system": "Linux", **METADATA}))
    (folder / "task_name.json").write_text(json.dumps({"task_name": "Open the settings"}))
    shown = [
        {
            "id": number,
            "action": label,
            "start_time": 101.0 + number,
            "end_time": 101.5 + number,
            "description": "what was done",
            "target": action.pop("target", {"mark": False}),
            "axtree": action.pop("axtree", None),
        }
        for number, action in enumerate(actions)
    ]
    for name, rows in (("vis", shown), ("complete", actions)):
        lines = [json.dumps({"id": number, **row}) for number, row in enumerate(rows)]
        (folder / f"reduced_events_{name}.jsonl").write_text("\n".join(lines))
    return folder


def click(**changes: Any) -> dict[str, Any]:
    place = {"x": 250, "y": 250}
    return {"action": "click", "button": "left", "click_type": 1, "coordinate": place, **changes}


def scroll(dx: int, dy: int) -> dict[str, Any]:
    return {"action": "scroll", "trace": [{"x": 250, "y": 250, "dx": dx, "dy": dy}]}


def drag(x: int, y: int) -> dict[str, Any]:
    return click(action="drag", drag_trace=[[250, 250], [x, y]])


HERE = (Point(0.25, 0.5, "rel"),)
KINDS: dict[str, tuple[dict[str, Any], Action | None]] = {
    "click": (click(), Action("tap", HERE)),
    "double click": (click(click_type=2), Action.of("DOUBLE_TAP", HERE)),
    "right click": (click(button="right"), Action("long_press", HERE)),
    "long press": (click(action="mouse_press"), Action("long_press", HERE)),
    "triple click": (click(click_type=3), None),
    "middle click": (click(button="middle"), None),
    "scroll down": (scroll(0, -3), Action.of("SWIPE_UP", HERE)),
    "scroll up": (scroll(0, 3), Action.of("SWIPE_DOWN", HERE)),
    "scroll right": (scroll(2, 0), Action.of("SWIPE_LEFT", HERE)),
    "drag left": (drag(50, 300), Action.of("SWIPE_LEFT", HERE, (Point(0.05, 0.6, "rel"),))),
    "drag down": (drag(260, 400), Action.of("SWIPE_DOWN", HERE, (Point(0.26, 0.8, "rel"),))),
    "typing": (
        {"action": "type", "key_names": ["h", "i", "space", "x", "backspace", "!", "enter"]},
        Action("type", text="hi !\n"),
    ),
    "an arrow key": ({"action": "type", "key_names": ["left"]}, None),
    "a hotkey": ({"action": "press"}, None),
}


@pytest.mark.parametrize("name", KINDS)
def test_an_action_becomes_its_primitive_or_a_finding(tmp_path: Path, name: str) -> None:
    row, expected = KINDS[name]
    log = read_log(write(tmp_path / "r", click(), dict(row)))
    found = [event.action for event in log.events[1:-1]]
    assert found == ([] if expected is None else [expected])
    unmapped = [finding for finding in log.findings if finding.code == "action-unmapped"]
    assert [finding.severity for finding in unmapped] == (["error"] if expected is None else [])


def test_times_are_those_of_the_recording_and_the_end_follows_the_last_action(
    tmp_path: Path,
) -> None:
    log = read_log(write(tmp_path / "r", click(), click()))
    assert [(event.start_s, event.end_s) for event in log.events[:2]] == [(1.0, 1.5), (2.0, 2.5)]
    end = log.events[-1]
    assert (end.start_s, end.earliest_s) == (2.5 + 2.0, 2.5)
    assert end.action == Action.of("TASK_COMPLETE")
    assert [finding.code for finding in log.findings] == ["end-assumed"]
    assert (log.labels.app, log.labels.instruction_en) == ("Linux", "Open the settings")


def element(left: int, right: int, name: str = "Save", kind: str = "ButtonControl") -> Any:
    rectangle = {"left": left, "top": 200, "right": right, "bottom": 300}
    return {"Name": name, "ControlType": kind, "BoundingRectangle": rectangle, "Children": []}


def target(kind: str = "ButtonControl") -> dict[str, str]:
    return {"title": "Save", "control_type": kind}


@pytest.mark.parametrize(
    ("label", "nodes", "kind", "reason"),
    [
        ("click", [element(200, 300)], "ButtonControl", None),
        ("Click on save", [element(200, 300)], "ButtonControl", None),
        ("Click on the file", [element(200, 300)], "ButtonControl", "the annotator calls it"),
        ("click", [element(300, 400)], "ButtonControl", "does not hold"),
        ("click", [element(200, 300), element(0, 400)], "ButtonControl", "2 rectangles"),
        ("click", [element(0, 900, kind="WindowControl")], "WindowControl", "whole window"),
        ("click", [element(200, 300, name="Open")], "ButtonControl", ""),
    ],
)
def test_a_box_is_the_target_where_everything_speaks_for_it(
    tmp_path: Path, label: str, nodes: list[Any], kind: str, reason: str | None
) -> None:
    action = click(target=target(kind), axtree={"Children": [{"Children": nodes}]})
    log = read_log(write(tmp_path / "r", action, label=label))
    (found,) = log.events[0].action.start
    assert isinstance(found, Box) == (reason is None)
    doubts = [finding.what for finding in log.findings if finding.code == "box-doubtful"]
    assert len(doubts) == bool(reason)
    assert not reason or reason in doubts[0]


def test_the_log_is_known_by_its_content(tmp_path: Path) -> None:
    folder = write(tmp_path / "recording", click())
    renamed = folder / "any.jsonl"
    renamed.write_bytes((folder / "reduced_events_vis.jsonl").read_bytes())
    assert read_log(tmp_path).events == read_log(folder).events
    assert len(read_log(renamed).events) == len(read_log(folder).events)
    (tmp_path / "other").mkdir()
    assert read_recorder(tmp_path / "other") is None


def test_the_file_that_is_named_is_the_one_that_is_read(tmp_path: Path) -> None:
    folder = write(tmp_path / "recording", click(), click(), click())
    lines = (folder / "reduced_events_vis.jsonl").read_text().splitlines(keepends=True)
    (folder / "mended.jsonl").write_text(lines[0] + lines[2])
    log = read_log(folder / "mended.jsonl")
    assert [event.start_s for event in log.events[:-1]] == [1.0, 3.0]


def test_what_an_unmapped_action_did_is_in_no_clip(tmp_path: Path) -> None:
    folder = write(tmp_path / "r", click(), {"action": "press"}, click(), {"action": "press"})
    made = segment(film(tmp_path / "a.mkv", count=240), folder, tmp_path / "out")
    assert [(span.clip_s, span.start_s) for span in made.spans] == [(0, 1), (2.5, 3), (4.5, 6.5)]


def test_an_assumed_end_that_is_trimmed_away_is_not_spoken_of(tmp_path: Path) -> None:
    folder = write(tmp_path / "r", click(), click())
    codes = {}
    for trim in ((0, math.inf), (0, 2.2)):
        out = tmp_path / f"out{trim[1]}"
        made = segment(film(tmp_path / "a.mkv"), folder, out, cut=Cut(trim=trim))
        codes[made.spans[-1].event.action.label] = {finding.code for finding in made.findings}
    assert "end-assumed" in codes["TASK_COMPLETE"]
    assert "end-assumed" not in codes["TAP"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("metadata.json", None),
        ("metadata.json", "{"),
        ("metadata.json", "[]"),
        ("metadata.json", json.dumps({**METADATA, "screen_width": 0})),
        ("metadata.json", json.dumps({**METADATA, "screen_width": math.nan})),
        ("metadata.json", json.dumps({**METADATA, "video_start_timestamp": "noon"})),
        ("metadata.json", json.dumps({**METADATA, "video_start_timestamp": 10**400})),
        ("metadata.json", "[" * 100_000),
        ("reduced_events_complete.jsonl", None),
        ("reduced_events_complete.jsonl", ""),
        ("reduced_events_complete.jsonl", '{"id": 0, "action": "press"}'),
        ("reduced_events_vis.jsonl", None),
        ("reduced_events_vis.jsonl", '{"id": 0}'),
    ],
)
def test_a_missing_or_broken_file_is_an_error(
    tmp_path: Path, name: str, content: str | None
) -> None:
    folder = write(tmp_path / "r", click())
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_text(content)
    with pytest.raises(DataError) as caught:
        read_log(folder)
    assert str(folder) in caught.value.where


def test_a_file_outside_the_folder_is_not_read(tmp_path: Path) -> None:
    folder = write(tmp_path / "r", click())
    secret = (folder / "metadata.json").rename(tmp_path / "metadata.json")
    (folder / "metadata.json").symlink_to(secret)
    with pytest.raises(DataError, match="leads out"):
        read_log(folder)


JUNK = st.none() | st.booleans() | st.floats() | st.integers() | st.text() | st.lists(st.floats())
FIELDS = ("action", "button", "click_type", "coordinate", "drag_trace", "trace", "key_names", "id")


@given(
    change=st.dictionaries(st.sampled_from(FIELDS), JUNK),
    tree=st.dictionaries(st.sampled_from(["Name", "ControlType", "Children"]), JUNK | st.text()),
)
def test_any_folder_is_a_log_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, change: dict[str, Any], tree: dict[str, Any]
) -> None:
    folder = tmp_path_factory.getbasetemp() / "any"
    action = click(target=target(), axtree=tree, **change)
    try:
        log = read_log(write(folder, action))
    except DataError as error:
        assert str(folder) in error.where
    else:
        assert isinstance(log, Log)
