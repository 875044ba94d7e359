"""Parts of a run cover it, each step once."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.errors import UsageError
from omnidata.run.selection import parse_shard, shard
from omnidata.types import LoadedDataset, Step
from tests.trees import load_rows, row


def steps_of(tmp_path: Path, episodes: str) -> list[Step]:
    rows = [row(name, number, app="ted") for number, name in enumerate(episodes)]
    return list(load_rows(tmp_path, *rows).steps)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_parts_are_whole_episodes_and_cover_the_steps(source: LoadedDataset, count: int) -> None:
    parts = [shard(source.steps, number, count) for number in range(1, count + 1)]
    assert sorted(s.sample_id for s in chain(*parts)) == sorted(s.sample_id for s in source.steps)
    keys = [{step.episode for step in part} for part in parts]
    assert sum(map(len, keys)) == len(set().union(*keys))
    assert max(map(len, keys)) - min(map(len, keys)) <= 1
    for part in parts:
        assert part == [step for step in source.steps if step in part]


def test_an_episode_whose_steps_lie_apart_is_not_cut(tmp_path: Path) -> None:
    steps = steps_of(tmp_path, "ABAB")
    assert [step.episode_id for step in shard(steps, 1, 2)] == ["A", "A"]


def test_more_parts_than_episodes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="2 episodes"):
        shard(steps_of(tmp_path, "AB"), 1, 3)


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "-1/2", "1/2/3", "1 /2", "a/b", "²/3"])
def test_what_names_no_part_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a part"):
        parse_shard(text)


@given(st.integers(1, 999_999), st.integers(1, 999_999))
def test_a_part_is_written_as_it_is_read(number: int, count: int) -> None:
    if number <= count:
        assert parse_shard(f"{number}/{count}") == (number, count)
