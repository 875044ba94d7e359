"""Steps as rows and back, whatever they hold."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from omnidata.actions import NUMBERS, Action, Box, Button, Direction, Kind, Point, Region, Status
from omnidata.loaders.columns import DETAILS, features
from omnidata.loaders.rows import RowReader, storable, to_row
from omnidata.types import Step

TAGS = ("app", "platform")
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
screens = st.tuples(st.integers(1, 9999), st.integers(1, 9999))
coordinate = st.floats(allow_nan=False) | st.integers(-(2**52), 2**52)
space = st.sampled_from(["px", "rel", "norm1000"])
region: st.SearchStrategy[Region] = st.one_of(
    st.builds(Point, coordinate, coordinate, space),
    st.builds(Box, coordinate, coordinate, coordinate, coordinate, space),
)
places = st.lists(region, max_size=3).map(tuple)
said = {"text": st.none() | text, "words": st.none() | text}
plain = st.builds(Action.of, st.sampled_from(sorted(NUMBERS)), places, places, **said)
single = st.builds(
    Action,
    st.sampled_from(get_args(Kind)),
    places,
    places,
    **said,
    direction=st.none() | st.sampled_from(get_args(Direction)),
    amount=st.none() | st.floats(0, 1e6),
    button=st.sampled_from(get_args(Button)),
    count=st.integers(1, 3),
    keys=st.lists(text, max_size=3).map(tuple),
    app=st.none() | text,
    status=st.none() | st.sampled_from(get_args(Status)),
    element=st.none() | st.integers(0, 99),
)
several = st.builds(
    lambda first, then: structs.replace(first, then=tuple(then)),
    single,
    st.lists(single, max_size=2),
)
actions = plain | single | several
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)


@st.composite
def steps(draw: st.DrawFn) -> Step:
    history = draw(st.lists(st.none() | actions, max_size=3).map(tuple))
    return Step(
        sample_id=draw(text.filter(bool)),
        episode_id=draw(text),
        step_index=len(history),
        num_steps=draw(st.integers(0, 9)),
        instruction=draw(text),
        screen=draw(screens),
        media={},
        history=history,
        history_screens=tuple(draw(screens) for _ in history),
        action=draw(st.none() | actions),
        tags=draw(st.dictionaries(st.sampled_from(TAGS), text)),
        source=draw(st.dictionaries(text, json_values, max_size=3)),
    )


@given(steps())
def test_a_step_survives_parquet_and_datasets(step: Step) -> None:
    columns = features(TAGS, {}, repository=True, optional=[DETAILS])
    line = to_row(step, TAGS, [DETAILS, "history_screens"])
    table = pa.Table.from_pylist([line], schema=columns.arrow_schema)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "step.parquet"
        pq.write_table(table, path)
        (row,) = pq.read_table(path).to_pylist()
    (held,) = datasets.Dataset(pa.Table.from_pylist([line], columns.arrow_schema))
    for read in (row, held):
        assert RowReader(TAGS).step(read, {}) == step


@given(st.text(max_size=6))
def test_any_text_can_be_stored(found: str) -> None:
    stored = storable(found)
    assert stored is not None
    stored.encode()
    if not any(0xD800 <= ord(letter) < 0xE000 for letter in found):
        assert stored == found


UNTYPED = '{"kind": "TAP", "number": 0, "start": [], "end": [], "text": 7, "words": null}'
TAPPED = {"kind": "TAP", "number": 0, "start": [], "end": [], "text": None, "words": None}


@pytest.mark.parametrize(
    "change",
    [
        {"action": {"kind": "FLY"}},
        {DETAILS: '{"action": {"count": "two"}}'},
        {DETAILS: '{"action": {"count": -5}}'},
        {DETAILS: f'{{"action": {{"then": [{{"action": {UNTYPED}, "details": {{}}}}]}}}}'},
        {DETAILS: '{"action": {"then": [{}]}}', "action": TAPPED},
        {DETAILS: '{"action": {"then": [{"action": {}, "details": {}}]}}', "action": TAPPED},
        {"source": "{"},
        {"source": "[]"},
        {"source": "[" * 100_000},
        {"history": 3},
        {"screen_width": ...},
        {"screen_width": None},
        {"sample_id": None},
        {"instruction": None},
        {"step_index": -1},
    ],
)
def test_a_row_that_is_no_step_is_refused(change: dict[str, Any]) -> None:
    step = Step("a/1/0", "1", 0, 1, "Tap", (10, 10), {}, (), (), None, {"app": "a"}, {})
    row = {k: v for k, v in (to_row(step, TAGS) | change).items() if v is not ...}
    with pytest.raises((KeyError, ValueError, RecursionError)):
        RowReader(TAGS).step(row, {})


@pytest.mark.parametrize(
    ("tags", "given", "episode", "group"),
    [
        ({}, {}, "7", "7"),
        ({"app": "a"}, {}, "a/7", "a/7"),
        ({"app": "a"}, {"episode": "b/7"}, "b/7", "b/7"),
        ({"app": "a"}, {"group": "twins"}, "a/7", "twins"),
    ],
)
def test_a_step_of_which_nobody_says_more_belongs_to_its_episode(
    tags: dict[str, str], given: dict[str, str], episode: str, group: str
) -> None:
    step = Step("7/0", "7", 0, 1, "Tap", (10, 10), {}, (), (), None, tags, {}, **given)
    assert (step.episode, step.group) == (episode, group)


def test_actions_that_the_columns_have_room_for_need_no_further_one() -> None:
    step = Step("7/0", "7", 0, 1, "Tap", (10, 10), {}, (), (), Action("tap", count=2), {}, {})
    assert to_row(step, (), [DETAILS])[DETAILS] is None
    changed = replace(step, action=Action("hotkey", keys=("ctrl", "c")))
    assert to_row(changed, (), [DETAILS])[DETAILS] is not None
