"""The plain log: what it may say, and that everything else is an error with its place."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.actions import NUMBERS, Box, Point
from omnidata.data.segment import segment
from omnidata.errors import DataError
from omnidata.loaders.action_log import Log, read_events
from tests import plugs
from tests.data.segment.films import film, tap, write_log

PLUGIN = """
from omnidata.actions import Action
from omnidata.loaders.action_log import Event, Labels, Log
from omnidata.tasks.benchmark import Benchmark, Card, Rule
from omnidata.tasks.totals import RowTotals


class Exact(Rule):
    name = "diary-exact"
    totals = RowTotals()

    def judge(self, step, parsed):
        raise NotImplementedError


class Diary(Benchmark):
    card = Card(title="Diary")
    rules = (Exact(),)

    def steps(self, data, note):
        raise NotImplementedError

    def parse(self, text, step, receipt):
        raise NotImplementedError

    def target(self, step, *, space=None, size=None):
        return None

    def recorder(self, events):
        diary = events / "diary.txt"
        if not diary.exists():
            return None
        moment = float(diary.read_text())
        event = Event(moment, moment, Action("back"), str(diary))
        return Log((event,), Labels(app="TED", instruction_en="Go back"))
"""


def read(folder: Path, *rows: object) -> Log:
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return read_events(path)


def test_every_primitive_can_be_written(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = []
    for number, label in enumerate(NUMBERS):
        row: dict[str, Any] = {"time": number, "action": label}
        if label.startswith(("TAP", "DOUBLE", "LONG", "SWIPE")):
            row["point"] = [1, 2]
        if label == "INPUT":
            row["text"] = "你好"
        rows.append(row)
    events = read(tmp_path, *rows).events
    assert [event.action.label for event in events] == list(NUMBERS)
    assert events[list(NUMBERS).index("INPUT")].action.text == "你好"
    assert [(event.start_s, event.end_s) for event in events][:2] == [(0.0, 0.0), (1.0, 1.0)]


def test_the_header_holds_for_every_line(tmp_path: Path) -> None:
    header = {"app": "TED", "language": "en", "unit": "norm1000", "clock": 100, "screen": [9, 9]}
    log = read(
        tmp_path,
        header,
        {"time": 101.5, "end": 102, "action": "TAP", "point": [500, 250]},
        {"time": 103, "action": "TAP", "unit": "px", "box": [[0, 0, 3, 9], [3, 0, 9, 9]]},
        {"time": 104, "action": "SWIPE_UP", "point": [5, 9], "to": [1, 2, 3, 4], "words": "up"},
    )
    assert (log.labels.app, log.labels.language, log.labels.episode) == ("TED", "en", None)
    first, second, third = log.events
    assert (first.start_s, first.end_s) == (1.5, 2.0)
    assert first.action.start == (Point(500, 250, "norm1000"),)
    assert second.action.start == (Box(0, 0, 1 / 3, 1, "rel"), Box(1 / 3, 0, 1, 1, "rel"))
    assert third.action.end == (Box(1, 2, 3, 4, "norm1000"),)
    assert third.action.words == "up"
    assert third.where == f"{tmp_path / 'log.jsonl'}:4"


GOOD: dict[str, Any] = {"time": 1, "action": "TAP", "point": [1, 2]}
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a time that is text": ({"time": "1"}, "time is '1'"),
    "no time": ({"time": None}, "time is None"),
    "a time that is no number": ({"time": math.nan}, "time is nan"),
    "an endless time": ({"time": math.inf}, "time is inf"),
    "milliseconds": ({"time": 1e12}, "time is 1000000000000.0"),
    "an end before the start": ({"end": 0.5}, "end is 0.5"),
    "another action": ({"action": "CLICK"}, "action is 'CLICK'"),
    "a number for the action": ({"action": 0}, "action is 0"),
    "a point and a box": ({"box": [1, 2, 3, 4]}, "TAP with box and point"),
    "three coordinates": ({"point": [1, 2, 3]}, r"point is \[1, 2, 3\]"),
    "a coordinate that is no number": ({"point": [1, math.nan]}, "point is"),
    "a truth value as a coordinate": ({"point": [1, True]}, "point is"),
    "a huge coordinate": ({"point": [1, 1e300]}, "point is"),
    "a text on a tap": ({"text": "a"}, "text is 'a'"),
    "a lift on a tap": ({"to": [1, 2]}, "to is"),
    "one box in a list to lift in": ({"action": "SWIPE_UP", "to": [[1, 2, 3, 4]]}, "point is"),
    "three boxes to lift in": ({"action": "SWIPE_UP", "to": [[1, 2, 3, 4]] * 3}, "point is"),
    "four boxes to lift in": ({"action": "SWIPE_UP", "to": [[1, 2, 3, 4]] * 4}, "box is"),
    "words that are no text": ({"words": 3}, "words is 3"),
    "an unknown unit": ({"unit": "mm"}, "unit is 'mm'"),
    "a misspelt key": ({"colour": "red"}, "the line has 'colour'"),
    "a place for BACK": ({"action": "BACK"}, "BACK with point"),
    "no text for INPUT": ({"action": "INPUT", "point": ...}, "text is None"),
    "an empty text for INPUT": ({"action": "INPUT", "point": ..., "text": ""}, "text is ''"),
    "swapped edges": ({"point": ..., "box": [3, 4, 1, 2]}, "box is"),
    "no place at all": ({"point": ...}, "TAP with neither"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_is_an_error_with_its_place(tmp_path: Path, name: str) -> None:
    change, message = BAD[name]
    row = {key: value for key, value in {**GOOD, **change}.items() if value is not ...}
    with pytest.raises(DataError, match=message) as caught:
        read(tmp_path, GOOD, row)
    assert caught.value.where == f"{tmp_path / 'log.jsonl'}:2"
    assert caught.value.expected
    assert caught.value.remedy


def test_a_key_that_stands_twice_is_an_error(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"time": 1, "action": "HOME", "time": 2}\n')
    with pytest.raises(DataError, match="has 'time' twice"):
        read_events(log)


@pytest.mark.parametrize(
    "header",
    [
        {"app": ""},
        {"app": 3},
        {"language": "de"},
        {"dimension": "space"},
        {"screen": [0, 5]},
        {"screen": [math.inf, 5]},
        {"clock": "noon"},
        {"owner": "me"},
    ],
)
def test_a_bad_header_is_an_error(tmp_path: Path, header: dict[str, Any]) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path, header, GOOD)
    assert caught.value.where.endswith(":1")


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b'{"app": "a"}\n', b"[1]\n", b"\xff\n", b"{}{}\n", b"[" * 100_000]
)
def test_what_is_no_log_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "log.jsonl").write_bytes(content)
    with pytest.raises(DataError):
        read_events(tmp_path / "log.jsonl")


def test_actions_after_the_end_are_an_error(tmp_path: Path) -> None:
    end = {"time": 1, "action": "TASK_COMPLETE"}
    log = write_log(tmp_path / "log.jsonl", end, tap(2.0))
    with pytest.raises(DataError, match="TAP comes after TASK_COMPLETE"):
        segment(film(tmp_path / "a.mkv"), log, tmp_path / "out")


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
KEYS = ("time", "end", "action", "box", "point", "to", "text", "unit", "words", "app", "screen")
LIKELY = st.sampled_from(["TAP", "INPUT", "SWIPE_UP", "px", "rel", [1, 2], [1, 2, 3, 4], 0, 1.5])


@given(
    lines=st.lists(
        st.binary().map(lambda line: line.replace(b"\n", b""))
        | st.dictionaries(st.sampled_from(KEYS), LIKELY | JSON).map(
            lambda row: json.dumps(row).encode()
        ),
        max_size=4,
    )
)
def test_any_file_is_a_log_or_an_error_that_names_it(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_bytes(b"\n".join(lines))
    try:
        log = read_events(path)
    except DataError as error:
        assert str(path) in error.where
        assert error.expected
    else:
        assert all(event.start_s <= event.end_s < math.inf for event in log.events)


def test_a_plug_in_reads_what_its_recorder_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = plugs.on_path(tmp_path / "site", "diary", monkeypatch)
    (site / "diary.py").write_text(PLUGIN, encoding="utf-8")
    plugs.install(site, "diary", "omnidata.tasks", "diary = diary:Diary")
    recorded = tmp_path / "recorded"
    recorded.mkdir()
    (recorded / "diary.txt").write_text("1.5")
    made = segment(film(tmp_path / "a.mkv"), recorded, tmp_path / "out")
    assert [(span.event.action.label, span.start_s) for span in made.spans] == [("BACK", 1.5)]


def test_a_folder_that_no_recorder_wrote_is_an_error_that_asks_for_a_log(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DataError, match="name the action log") as caught:
        segment(film(tmp_path / "a.mkv"), empty, tmp_path / "out")
    assert caught.value.where == str(empty)
