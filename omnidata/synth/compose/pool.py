"""A pool of subtasks, read and made ready for composition.

Composition sees instances, that is subtasks with a binding, and the resources that join them. Each
is a number in the indexed pool, which is small, can be sent to other processes, and lets graphs
grow fast.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnidata.errors import DataError, Finding, UsageError
from omnidata.loaders.load import reading, task_for
from omnidata.loaders.task_library import Library, Subtask, fill, places
from omnidata.synth.compose.settings import Settings
from omnidata.synth.compose.trajectories import Recorded, recordings
from omnidata.tasks import get_task

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
    """Return whether resources of the category are files, which may exist before a task begins.

    Examples:
        >>> is_file("img_path"), is_file("table_in_clipboard")
        (True, False)
    """
    return kind.endswith(_FILE)


def slot(kind: str) -> str:
    """Return the place that resources of the category share; empty if each has its own.

    There is one clipboard, so a table copied after a text replaces it.

    Examples:
        >>> slot("text_in_clipboard"), slot("xlsx_in_processing")
        ('clipboard', '')
    """
    return "clipboard" if kind.endswith(_CLIPBOARD) else ""


def resources(
    kinds: Iterable[str], every: Iterable[str], binding: Mapping[str, Any]
) -> tuple[Resource, ...]:
    """Return the resources of some categories under a binding, each once.

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


def _format_resource(resource: Resource) -> str:
    """Format a resource for a message.

    Examples:
        >>> _format_resource(("img_path", "./a.png"))
        "img_path './a.png'"
        >>> _format_resource(("table_in_clipboard", None))
        'table_in_clipboard'
    """
    kind, value = resource
    return kind if value is None else f"{kind} '{value}'"


@dataclass(frozen=True, slots=True)
class Group:
    """Subtasks that serve one intent.

    Attributes:
        intent: what a task of them is for; empty where the pool names none.
        instances: of the indexed pool.
        makers: resource -> the instances of the group that create it.
        users: resource -> the instances of the group that need it.
    """

    intent: str
    instances: tuple[int, ...]
    makers: Mapping[int, tuple[int, ...]]
    users: Mapping[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class IndexedPool:
    """The instances of a pool as numbers.

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
    """Return the group of an intent, without instances whose inputs none of it provides.

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
    return Group(intent, tuple(sorted(usable)), _freeze(makers), _freeze(users))


def _freeze(lists: Mapping[int, list[int]]) -> dict[int, tuple[int, ...]]:
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
        recorded: how it is done; None if it is not recorded.
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
        cards: the instances, in the order of the indexed pool.
        indexed: the same as numbers.
        initial: categories of resources that exist before a task begins, of those that occur.
        findings: what is doubtful in the pool, and the subtasks that are not used.
    """

    root: Path
    fingerprint: str
    subtasks: Mapping[str, Subtask]
    cards: Sequence[Card]
    indexed: IndexedPool
    initial: tuple[str, ...]
    findings: Sequence[Finding]


def _intents_of(subtask: Subtask) -> list[str]:
    value = subtask.source.get("task_intents", subtask.source.get("task_intent"))
    found = value if isinstance(value, list) else [value]
    return [text for text in found if isinstance(text, str) and text.strip()]


# Why subtasks of a pool are not used, said by name.

CODES = (
    "resource-unprovided",
    "values-disagree",
    "resources-cyclic",
    "provider-unused",
    "provider-without-intent",
    "resource-without-value",
    "binding-incomplete",
    "trajectory-missing",
)
"""What the findings are called."""

Note = Callable[[Finding], None]
"""Takes findings."""

_SHOWN = 3


def _unused_subtask(code: str, subtask: Subtask, what: str, expected: str) -> Finding:
    where = f"subtask {subtask.id} ({subtask.template!r:.60})"
    return Finding(code, "warning", where, what, expected, "correct it; until then it is not used")


def _unused_findings(pool: Pool, wanted: frozenset[str]) -> Iterator[Finding]:
    indexed = pool.indexed
    every = group("", range(len(pool.cards)), indexed.inputs, indexed.outputs, indexed.initial)
    usable = set(every.instances)
    grouped = {one for each in indexed.groups for one in each.instances}
    looked = _Look(indexed, pool.cards, usable)
    by_subtask: dict[str, list[int]] = defaultdict(list)
    for number, card in enumerate(pool.cards):
        by_subtask[card.subtask].append(number)
    for name, numbers in by_subtask.items():
        if usable.isdisjoint(numbers):
            yield looked.why(pool.subtasks[name], numbers[0])
        elif name in wanted and grouped.isdisjoint(numbers):
            yield _unused_subtask(
                "provider-without-intent",
                pool.subtasks[name],
                "only subtasks of other intents provide its resources",
                "a subtask of the same intent that provides it",
            )


class _Look:
    def __init__(self, indexed: IndexedPool, cards: Sequence[Card], usable: set[int]) -> None:
        self._pool = indexed
        self._cards = cards
        self._there = indexed.initial.union(*(indexed.outputs[one] for one in usable))
        self._makers: Mapping[int, list[int]] = defaultdict(list)
        for number, made in enumerate(indexed.outputs):
            for one in made:
                if one not in indexed.inputs[number]:  # who changes a thing does not provide it
                    self._makers[one].append(number)

    def why(self, subtask: Subtask, instance: int) -> Finding:
        missing = (one for one in self._pool.inputs[instance] if one not in self._there)
        needed = next(missing)
        resource, makers = self._pool.resources[needed], self._makers[needed]
        if not makers:
            others = self._others(resource)
            return _unused_subtask(
                "values-disagree" if others else "resource-unprovided",
                subtask,
                f"no subtask provides {_format_resource(resource)}"
                + (", but other values" if others else ""),
                "a subtask that provides it, or --initial with its category",
            )
        names = list(dict.fromkeys(self._cards[one].subtask for one in makers))[:_SHOWN]
        lost = self._is_stuck(needed)
        waits = "is not used itself" if lost else "waits for others in turn"
        return _unused_subtask(
            "provider-unused" if lost else "resources-cyclic",
            subtask,
            f"it needs {_format_resource(resource)}, and what provides that {waits}: "
            f"{', '.join(names)}",
            "a subtask that provides it and can be used, or --initial with its category",
        )

    def _others(self, resource: Resource) -> bool:
        kinds = {self._pool.resources[one][0] for one, makers in self._makers.items() if makers}
        return resource[0] in kinds

    def _is_stuck(self, needed: int) -> bool:
        """Return whether all providers of a resource wait for something that none makes."""
        seen, waiting = {needed}, [needed]
        while waiting:
            for one in self._makers[waiting.pop()]:
                for other in self._pool.inputs[one]:
                    if other not in self._there and other not in seen:
                        if not self._makers[other]:
                            return True
                        seen.add(other)
                        waiting.append(other)
        return False


# A pool's instances become numbers, joined by the resources that they have in common.


class _Compiler:
    def __init__(
        self,
        subtasks: Mapping[str, Subtask],
        cards: Sequence[Card],
        settings: Settings,
        note: Note,
    ) -> None:
        self.cards: list[Card] = []
        self._subtasks = subtasks
        self._settings = settings
        self._numbers: dict[Resource, int] = {}
        self._inputs: list[tuple[int, ...]] = []
        self._outputs: list[tuple[int, ...]] = []
        told: set[str] = set()
        for card in cards:
            unknown = self._add(card)
            if unknown and card.subtask not in told:
                told.add(card.subtask)
                what = f"no parameter says which {unknown[0]}"
                expected = f"a parameter {unknown[0]}, or one `path` where there is one file"
                note(
                    _unused_subtask(
                        "resource-without-value", subtasks[card.subtask], what, expected
                    )
                )

    def _add(self, card: Card) -> list[str]:
        subtask = self._subtasks[card.subtask]
        every = (*subtask.inputs, *subtask.outputs)
        needed = resources(subtask.inputs, every, card.binding)
        made = resources(subtask.outputs, every, card.binding)
        unknown = [kind for kind, value in (*needed, *made) if value is None and is_file(kind)]
        if not unknown:
            self.cards.append(card)
            self._inputs.append(tuple(self._number(one) for one in needed))
            self._outputs.append(tuple(self._number(one) for one in made))
        return unknown

    def _number(self, resource: Resource) -> int:
        return self._numbers.setdefault(resource, len(self._numbers))

    def initial_kinds(self) -> tuple[str, ...]:
        """The categories of resources that exist before a task begins, of those that occur."""
        return tuple(sorted({kind for kind, _ in self._numbers if self._exists(kind)}))

    def _exists(self, kind: str) -> bool:
        given = self._settings.initial
        return is_file(kind) if given is None else kind in given

    def index(self) -> IndexedPool:
        """Return the instances as numbers.

        Raises:
            UsageError: no intent contains what was asked for.
        """
        initial = frozenset(
            number for (kind, _), number in self._numbers.items() if self._exists(kind)
        )
        return IndexedPool(
            resources=tuple(self._numbers),
            inputs=tuple(self._inputs),
            outputs=tuple(self._outputs),
            subtasks=_number_names([card.subtask for card in self.cards]),
            categories=_number_names([card.category for card in self.cards]),
            initial=initial,
            slots=self._slots(),
            groups=tuple(self._groups(initial)),
        )

    def _slots(self) -> tuple[int, ...]:
        names = [slot(kind) for kind, _ in self._numbers]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(filter(None, names)))}
        return tuple(numbers.get(name, -1) for name in names)

    def _groups(self, initial: frozenset[int]) -> Iterator[Group]:
        members: dict[str, list[int]] = defaultdict(list)
        for number, card in enumerate(self.cards):
            for intent in _intents_of(self._subtasks[card.subtask]):
                members[intent].append(number)
        if not members:
            members[""] = list(range(len(self.cards)))
        for intent in _select_intents(list(members), self._settings):
            found = group(intent, members[intent], self._inputs, self._outputs, initial)
            if found.instances:
                yield found


def _select_intents(intents: Sequence[str], settings: Settings) -> list[str]:
    asked = [text.casefold() for text in settings.intents]
    found = [one for one in intents if not asked or any(text in one.casefold() for text in asked)]
    if not found:
        raise UsageError(
            f"no intent contains {' or '.join(map(repr, settings.intents))}",
            where="--intent",
            expected="; ".join(filter(None, intents)) or "a pool with the column task_intents",
        )
    return found


def _number_names(names: Sequence[str]) -> tuple[int, ...]:
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return tuple(numbers[name] for name in names)


def read_pool(path: Path, settings: Settings) -> Pool:
    """Read a pool: subtasks, their trajectories where those are asked for, and their intents.

    Intents are in the column `task_intents` (a list of texts) or `task_intent` of a subtask's row;
    where no row has any, all subtasks are one group.

    Args:
        path: of the pool, as the task takes it whose data it is.
        settings: of the composition.

    Raises:
        DataError: there are no subtasks, or none can be used: the message names the first reason.
        UsageError: no intent contains what was asked for.
    """
    task = get_task(task_for(path, lambda task: task.library is not None, "composes tasks of"))
    assert task.benchmark.library is not None
    with reading(path, task.name):
        library: Library = task.benchmark.library(path)
        fingerprint = task.benchmark.fingerprint(path)
    if not library.subtasks:
        raise DataError(
            "the pool has no subtasks",
            where=str(path),
            expected="rows with instruction_template, application, available_parameters, "
            "input_resources, output_resources",
            remedy="`omnidata synth pool POOL` makes a sample pool",
        )
    findings = list(library.findings)
    found = recordings(library, findings.append) if settings.trajectories else {}
    cards = list(_cards(library, found, settings, findings.append))
    compiler = _Compiler(library.subtasks, cards, settings, findings.append)
    indexed, kinds = compiler.index(), compiler.initial_kinds()
    pool = Pool(
        root=library.root,
        fingerprint=fingerprint,
        subtasks=library.subtasks,
        cards=compiler.cards,
        indexed=indexed,
        initial=kinds,
        findings=findings,
    )
    findings += list(_unused_findings(pool, _wanted_subtasks(library, settings)))
    if not indexed.groups:
        reason = next((str(each) for each in findings if each.code in CODES), "")
        raise DataError(
            f"no subtask of the pool can be used, the first: {reason}",
            where=str(path),
            expected="subtasks whose inputs others provide, or which exist initially",
            remedy="correct the pool, or name existing resources with --initial",
        )
    return pool


def _wanted_subtasks(library: Library, settings: Settings) -> frozenset[str]:
    intents = {name: _intents_of(subtask) for name, subtask in library.subtasks.items()}
    every = list(dict.fromkeys(intent for found in intents.values() for intent in found))
    asked = set(_select_intents(every, settings)) if every else set()
    return frozenset(name for name, found in intents.items() if not asked.isdisjoint(found))


def _cards(
    library: Library,
    found: Mapping[tuple[str, int], Recorded],
    settings: Settings,
    note: Note,
) -> Iterator[Card]:
    for subtask in library.subtasks.values():
        lacking = 0
        seen: set[str] = set()
        for number, binding in enumerate(subtask.parameters or ({},)):
            if missing := [name for name in places(subtask.template) if name not in binding]:
                what = f"binding {number} has no {', '.join(missing)}"
                note(
                    _unused_subtask("binding-incomplete", subtask, what, "a value for every place")
                )
                continue
            known = json.dumps(binding, sort_keys=True)
            if known in seen:
                continue
            seen.add(known)
            recorded = found.get((subtask.id, number))
            lacking += recorded is None
            if recorded is None and settings.trajectories:
                continue
            yield Card(
                subtask.id,
                fill(subtask.template, binding),
                subtask.application,
                library.categories[subtask.application],
                binding,
                recorded,
            )
        if lacking and settings.trajectories:
            what = f"{lacking} of {len(subtask.parameters or ({},))} bindings have no trajectory"
            note(
                _unused_subtask(
                    "trajectory-missing", subtask, what, "one with the same instruction"
                )
            )
