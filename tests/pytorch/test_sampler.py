from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.actions import Action
from omnidata.errors import UsageError
from omnidata.torch import EpisodeSampler
from omnidata.types import Step
from tests.pytorch.small import make_step

Lengths = st.lists(st.integers(1, 9), min_size=1, max_size=12)


def bare(lengths: list[int]) -> list[Step]:
    """Steps without media, the episodes' steps mixed up."""
    rounds = range(max(lengths))
    return [
        make_step(f"E{number}", index, [Action("back")] * length, {})
        for index in reversed(rounds)
        for number, length in enumerate(lengths)
        if index < length
    ]


def whole(steps: list[Step], order: list[int]) -> bool:
    """Whether each episode comes once, from its first step to its last."""
    found = [
        (episode, [steps[index].step_index for index in group])
        for episode, group in groupby(order, key=lambda index: steps[index].episode_id)
    ]
    lengths = {step.episode_id: step.num_steps for step in steps}
    return len(dict(found)) == len(found) and all(
        indices == list(range(lengths[episode])) for episode, indices in found
    )


@given(Lengths, st.integers(0, 99), st.integers(0, 99))
def test_every_step_comes_once_and_episodes_stay_whole(
    lengths: list[int], seed: int, epoch: int
) -> None:
    steps = bare(lengths)
    sampler = EpisodeSampler(steps, seed=seed)
    sampler.set_epoch(epoch)
    order = list(sampler)
    assert sorted(order) == list(range(len(steps)))
    assert len(sampler) == len(steps)
    assert whole(steps, order)
    assert list(sampler) == order


@given(Lengths, st.integers(1, 5), st.integers(0, 9))
def test_processes_that_keep_all_share_the_steps_without_loss(
    lengths: list[int], num_replicas: int, epoch: int
) -> None:
    steps = bare(lengths)
    together: list[int] = []
    for rank in range(num_replicas):
        sampler = EpisodeSampler(steps, num_replicas=num_replicas, rank=rank, uneven="keep")
        sampler.set_epoch(epoch)
        own = list(sampler)
        assert len(own) == len(sampler)
        assert whole(steps, own)
        together += own
    assert sorted(together) == list(range(len(steps)))


@given(Lengths, st.integers(1, 4), st.integers(0, 9))
def test_what_is_repeated_or_dropped_is_said(
    lengths: list[int], num_replicas: int, epoch: int
) -> None:
    num_replicas = min(num_replicas, len(lengths))
    steps = bare(lengths)
    for uneven in ("repeat", "drop"):
        shares = []
        for rank in range(num_replicas):
            sampler = EpisodeSampler(
                steps, num_replicas=num_replicas, rank=rank, uneven=uneven
            )  # fmt: skip
            sampler.set_epoch(epoch)
            shares.append(list(sampler))
            assert len(shares[-1]) == len(sampler)
        assert len({len(share) for share in shares}) == 1
        shown = Counter(index for share in shares for index in share)
        assert sampler.repeated == shown.total() - len(shown)
        assert sampler.dropped == len(steps) - len(shown)
        assert (sampler.dropped if uneven == "repeat" else sampler.repeated) == 0


def test_shares_differ_by_no_more_than_the_longest_episode() -> None:
    steps = bare([9, 1, 1, 8, 2, 7, 3, 5, 5, 4])
    shares = [
        len(EpisodeSampler(steps, num_replicas=3, rank=rank, uneven="keep")) for rank in range(3)
    ]
    assert shares == [15, 15, 15]


def test_a_process_gets_equally_many_steps_but_other_episodes_in_every_epoch() -> None:
    steps = bare([3] * 8)
    sampler = EpisodeSampler(steps, num_replicas=2, rank=1, uneven="keep")
    seen = set()
    for epoch in range(4):
        sampler.set_epoch(epoch)
        own = list(sampler)
        assert len(own) == len(sampler) == 12
        seen.add(frozenset(own))
    assert len(seen) > 1


def test_seed_and_epoch_decide_the_order() -> None:
    steps = bare([2] * 20)

    def order(seed: int, epoch: int) -> list[int]:
        sampler = EpisodeSampler(steps, seed=seed)
        sampler.set_epoch(epoch)
        return list(sampler)

    assert order(1, 2) == order(1, 2)
    orders = [order(0, 0), order(0, 1), order(1, 0), order(1, 1)]
    assert all(one != other for one, other in pairwise(orders))
    assert order(0, 1) != order(1, 0)


def test_without_shuffling_episodes_keep_the_order_of_the_steps() -> None:
    steps = sorted(bare([2, 3, 1]), key=lambda step: step.sample_id)
    assert list(EpisodeSampler(steps, shuffle=False)) == list(range(6))


def test_episodes_of_one_name_in_two_apps_are_two() -> None:
    steps = [make_step("E", index, [Action("back")] * 2, {}) for index in range(2)]
    steps += [replace(step, tags={"app": "Other"}, episode="", group="") for step in steps]
    order = list(EpisodeSampler(steps, seed=1))
    assert order in ([0, 1, 2, 3], [2, 3, 0, 1])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"num_replicas": 2, "rank": 2, "uneven": "keep"}, "a rank from 0 to 1"),
        ({"seed": -1}, "a whole number from 0"),
        ({"seed": 0.5}, "a whole number from 0"),
        ({"num_replicas": 2}, 'uneven="keep"'),
        ({"uneven": "pad"}, 'uneven="keep"'),
        ({"num_replicas": 4, "uneven": "drop"}, "at least one episode for each"),
    ],
)
def test_a_share_that_cannot_be_dealt_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        EpisodeSampler(bare([2, 3, 1]), **wrong)
