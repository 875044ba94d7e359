"""The split of a step follows from its episode and the shares, from nothing else."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.errors import UsageError
from omnidata.run.splits import SHARES, Split, group, parse_shares, split_of
from omnidata.tasks import get_task
from omnidata.types import Step
from tests.loaders.agentstudio import ground, write
from tests.trees import load_rows, row


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> Step:
    return load_rows(tmp_path_factory.mktemp("step"), row()).steps[0]


def test_all_steps_of_an_episode_and_all_spellings_of_its_app_fall_together(step: Step) -> None:
    for number in range(50):
        first = replace(step, episode_id=f"T{number}", tags={"app": "GTrans"})
        same = replace(first, step_index=7, sample_id="x", tags={"app": "Google_Translate"})
        assert split_of(first) == split_of(same)


def test_twins_fall_together_whatever_their_episodes_are_called(step: Step) -> None:
    """One that comes later, or alone, falls where the others are."""
    seen = Counter(
        len({split_of(twin(step, f"E{group}{number}", f"G{group}")) for number in range(4)})
        for group in range(50)
    )
    assert seen == {1: 50}


def test_twins_of_another_app_are_others(step: Step) -> None:
    first = replace(twin(step, "E1", "G1"), tags={"app": "GTrans"})
    assert group(first) == group(replace(first, tags={"app": "Google_Translate"}))
    assert group(first) != group(replace(first, tags={"app": "TED"}))


@pytest.mark.parametrize("value", [None, "", 3, ["G1"], {"G": 1}])
def test_a_column_that_names_no_group_changes_nothing(step: Step, value: Any) -> None:
    assert group(twin(step, "E1", value)) == group(replace(step, episode_id="E1"))


def twin(step: Step, episode: str, twins: Any) -> Step:
    return replace(step, episode_id=episode, source={**step.source, "twins": twins})


def test_shares_are_about_what_was_asked_for(step: Step) -> None:
    found = Counter(split_of(replace(step, episode_id=f"E{number}")) for number in range(5000))
    for split, share in SHARES.items():
        assert abs(found[split] / 5000 - share) < 0.02


@given(names=st.sets(st.text(max_size=8), min_size=1), less=st.floats(0, 1), more=st.floats(0, 1))
def test_a_larger_share_takes_from_the_next_split_only(
    names: set[str], less: float, more: float, step: Step
) -> None:
    small, large = sorted((less, more))
    for name in names:
        one = replace(step, episode_id=name)
        if split_of(one, {"train": small, "test": 1 - small}) == "train":
            assert split_of(one, {"train": large, "test": 1 - large}) == "train"


def test_a_split_without_a_share_gets_nothing(step: Step) -> None:
    shares: dict[Split, float] = {"train": 0.5, "test": 0.5}
    found = {split_of(replace(step, episode_id=str(n)), shares) for n in range(200)}
    assert found == {"train", "test"}


def test_a_row_of_agentstudio_stays_where_it_is_when_others_come_before_it(tmp_path: Path) -> None:
    """Its number moves; the picture, which several instructions share, does not."""
    rows = [ground(image=f"{n}.png", instruction=f"Click {n}") for n in range(40)]
    more = [ground(image="0.png", instruction="another one"), *rows]
    task = get_task("groundui")
    before = task.load(write(tmp_path / "a.jsonl", *rows), check_media=False).steps
    after = task.load(write(tmp_path / "b.jsonl", *more), check_media=False).steps
    assert [split_of(step) for step in after[1:]] == [split_of(step) for step in before]
    assert split_of(after[0]) == split_of(after[1])
    assert len({group(step) for step in before}) == 40


@pytest.mark.parametrize(
    "text", ["", "train", "train=0.5", "train=1,train=0", "dev=1", "train=nan", "train=2,test=-1"]
)
def test_shares_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no shares"):
        parse_shares(text)
