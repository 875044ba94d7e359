"""A pool as composition sees it: instances, that is subtasks with a binding, and what joins them.

Everything is a number here, so that a stock is small, can be sent to other processes, and graphs
grow fast.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnidata.errors import Finding
from omnidata.loaders.task_library import Subtask
from omnidata.synth.compose.trajectories import Recorded

# Environmental resources: what a subtask needs and leaves (OmniBench, appendix B.3, figure 10).
#
# A resource is a category, e.g. `img_path`, and an actual value, e.g. `/usr/example.png`. A
# category that ends with `_path` is a file, whose value is a parameter; any other is a state, such
# as `text_in_clipboard`, which is there or is not.

Resource = tuple[str, str | None]
"""Category and value; None for a state, and for a file that no parameter names."""

_FILE = "_path"
_ONLY = "path"
_CLIPBOARD = "_in_clipboard"


def is_file(kind: str) -> bool:
    """Whether resources of the category are files, which may exist before a task begins.

    Examples:
        >>> is_file("img_path"), is_file("table_in_clipboard")
        (True, False)
    """
    return kind.endswith(_FILE)


def slot(kind: str) -> str:
    """What resources of the category take turns in; empty where each has its own place.

    There is one clipboard, so a table copied after a text replaces it.

    Examples:
        >>> slot("text_in_clipboard"), slot("xlsx_in_processing")
        ('clipboard', '')
    """
    return "clipboard" if kind.endswith(_CLIPBOARD) else ""


def resources(
    kinds: Iterable[str], every: Iterable[str], binding: Mapping[str, Any]
) -> tuple[Resource, ...]:
    """The resources of some categories under a binding, each once.

    The value of a file is the parameter of the category's name. The examples that the authors gave
    their reviewers also have a parameter `path`: it is the one file that no other parameter names.

    Args:
        kinds: the subtask's inputs, or its outputs.
        every: its inputs and its outputs.
        binding: a value for every parameter.

    Examples:
        >>> resources(["ppt_path"], ["ppt_path"], {"path": "./a.ppt", "name": "Emily"})
        (('ppt_path', './a.ppt'),)
        >>> resources(["text_in_clipboard"], ["text_in_clipboard"], {"path": "./Emily.txt"})
        (('text_in_clipboard', None),)
    """
    unnamed = {kind for kind in every if is_file(kind) and kind not in binding}
    found: dict[Resource, None] = {}
    for kind in kinds:
        value = binding.get(kind) if is_file(kind) else None
        if unnamed == {kind}:
            value = binding.get(_ONLY)
        found[kind, None if value is None else str(value)] = None
    return tuple(found)


def shown(resource: Resource) -> str:
    """A resource in messages.

    Examples:
        >>> shown(("img_path", "./a.png")), shown(("table_in_clipboard", None))
        ("img_path './a.png'", 'table_in_clipboard')
    """
    kind, value = resource
    return kind if value is None else f"{kind} '{value}'"


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


# Instances of a pool: subtasks with a binding, and what is known of them.


@dataclass(frozen=True, slots=True)
class Card:
    """An instance: a subtask with a binding.

    Attributes:
        subtask: its id.
        instruction: the template with the binding's values.
        application, category: whose, and of what kind it is.
        binding: the parameters.
        recorded: how it is done; None where nobody has recorded it.
    """

    subtask: str
    instruction: str
    application: str
    category: str
    binding: Mapping[str, Any]
    recorded: Recorded | None


@dataclass(frozen=True, slots=True)
class Pool:
    """What tasks are composed of.

    Attributes:
        root: the folder that pictures lie below.
        fingerprint: SHA-256 over the annotations, as the task has it whose data the pool is.
        subtasks: by id.
        cards: the instances, in the order of the stock.
        stock: the same as numbers.
        initial: categories of resources that exist before a task begins, of those that occur.
        findings: what is doubtful in the pool, and the subtasks that are not used.
    """

    root: Path
    fingerprint: str
    subtasks: Mapping[str, Subtask]
    cards: Sequence[Card]
    stock: Stock
    initial: tuple[str, ...]
    findings: Sequence[Finding]


def intents_of(subtask: Subtask) -> list[str]:
    """What tasks with the subtask are for, as its row says; none where it says nothing."""
    value = subtask.source.get("task_intents", subtask.source.get("task_intent"))
    found = value if isinstance(value, list) else [value]
    return [text for text in found if isinstance(text, str) and text.strip()]
