"""A pool as composition sees it: instances, that is subtasks with a binding, and what joins them.

Everything is a number here, so that a stock is small, can be sent to other processes, and graphs
grow fast.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from omnidata.synth.compose.resources import Resource


@dataclass(frozen=True, slots=True)
class Group:
    """Subtasks that serve one intent.

    Attributes:
        intent: what a task of them is for; empty where the pool names none.
        instances: of the stock.
        makers: resource -> the instances of the group that create it.
        users: resource -> the instances of the group that need it.
    """

    intent: str
    instances: tuple[int, ...]
    makers: Mapping[int, tuple[int, ...]]
    users: Mapping[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Stock:
    """What tasks are composed of.

    Attributes:
        resources: of all instances.
        inputs, outputs: of each instance, as numbers of resources.
        subtasks: of each instance, the number of its subtask.
        categories: of each instance, the number of its application's category.
        initial: resources that may be there before a task begins.
        slots: of each resource, the number of what it takes turns in; -1 = nothing.
        groups: by intent.
    """

    resources: tuple[Resource, ...]
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    subtasks: tuple[int, ...]
    categories: tuple[int, ...]
    initial: frozenset[int]
    slots: tuple[int, ...]
    groups: tuple[Group, ...]


def group(
    intent: str,
    instances: Sequence[int],
    inputs: Sequence[tuple[int, ...]],
    outputs: Sequence[tuple[int, ...]],
    initial: frozenset[int],
) -> Group:
    """The group of an intent, without the instances whose inputs nobody in it provides.

    Args:
        intent: of the group.
        instances: candidates.
        inputs: of all instances, as numbers of resources.
        outputs: likewise.
        initial: resources that may be there before a task begins.
    """
    there = set(initial)
    usable: list[int] = []
    waiting = set(instances)
    while ready := [one for one in waiting if there.issuperset(inputs[one])]:
        usable += ready
        there.update(out for one in ready for out in outputs[one])
        waiting.difference_update(ready)
    makers: dict[int, list[int]] = defaultdict(list)
    users: dict[int, list[int]] = defaultdict(list)
    for one in sorted(usable):
        for needed in inputs[one]:
            users[needed].append(one)
        for made in outputs[one]:
            if made not in inputs[one]:
                makers[made].append(one)
    return Group(intent, tuple(sorted(usable)), _frozen(makers), _frozen(users))


def _frozen(lists: Mapping[int, list[int]]) -> dict[int, tuple[int, ...]]:
    return {number: tuple(ones) for number, ones in lists.items()}
