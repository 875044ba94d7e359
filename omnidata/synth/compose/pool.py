"""A pool of subtasks, read and made ready for composition.

Composition joins instances, that is subtasks with a binding, by their resources. Both are numbers
in the indexed pool, which is small, can be sent to other processes, and lets graphs grow fast.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omnidata.errors import DataError, Finding, UsageError
from omnidata.loaders.load import reading, task_for
from omnidata.loaders.task_library import Library, Subtask, fill, places
from omnidata.synth.compose.settings import Settings
from omnidata.synth.compose.trajectories import Recorded, recordings
from omnidata.tasks import get_task

# Environmental resources of subtasks (OmniBench, appendix B.3, figure 10).
#
# A resource is a category, e.g. `img_path`, and a value, e.g. `/usr/example.png`. A category that
# ends with `_path` is a file, whose value is a parameter; any other is a state without a value,
# e.g. `text_in_clipboard`.

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


def resources(
    kinds: Iterable[str], every: Iterable[str], binding: Mapping[str, Any]
) -> tuple[Resource, ...]:
    """Return the resources of some categories under a binding, each once.

    The value of a file is the parameter of the category's name. The examples that the authors gave
    their reviewers also have a parameter `path`: it is the one file that no other parameter names.

    Args:
        kinds: the subtask's inputs, or its outputs.
        every: its inputs and outputs.
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
    kind, value = resource
    return kind if value is None else f"{kind} '{value}'"


@dataclass(frozen=True, slots=True)
class Group:
    """Subtasks of one intent, which is empty if the pool has none.

    Attributes:
        intent: the purpose of tasks.
        instances: of the indexed pool.
        makers, users: resource -> the instances of the group that create it, that need it.
    """

    intent: str
    instances: Sequence[int]
    makers: Mapping[int, Sequence[int]]
    users: Mapping[int, Sequence[int]]


@dataclass(frozen=True, slots=True)
class IndexedPool:
    """The instances of a pool as numbers.

    Attributes:
        resources: of all instances.
        inputs, outputs: of each instance, as numbers of resources.
        categories: of the instances' applications.
        initial: resources that may be there before a task begins.
        clipboard: resources in the clipboard: a table copied after a text replaces it.
        groups: by intent.
    """

    resources: tuple[Resource, ...]
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    categories: tuple[str, ...]
    initial: frozenset[int]
    clipboard: frozenset[int]
    groups: tuple[Group, ...]


def _group(
    intent: str,
    instances: Sequence[int],
    inputs: Sequence[tuple[int, ...]],
    outputs: Sequence[tuple[int, ...]],
    initial: frozenset[int],
) -> Group:
    """Return the group of an intent, without instances whose inputs none of it provides."""
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
    return Group(intent, sorted(usable), dict(makers), dict(users))


# Instances of a pool: subtasks with a binding.


@dataclass(frozen=True, slots=True)
class Card:
    """An instance: a subtask with a binding.

    Attributes:
        subtask: its id.
        instruction: the template with the binding's values.
        application, category: the app and its kind.
        binding: the parameters.
        recorded: its trajectory, if there is one.
    """

    subtask: str
    instruction: str
    application: str
    category: str
    binding: Mapping[str, Any]
    recorded: Recorded | None


@dataclass(frozen=True, slots=True)
class Pool:
    """The material of tasks.

    Attributes:
        root: the folder of the pictures.
        fingerprint: SHA-256 over the annotations, by the pool's task.
        subtasks: by id.
        cards: the instances.
        indexed: the same as numbers.
        initial: categories of the pool's resources that exist before a task begins.
        findings: doubts about the pool, and unused subtasks.
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


# Reasons why subtasks of a pool are not used, as findings.

Note = Callable[[Finding], None]
"""Takes findings."""

_CODES = (
    "resource-unprovided",
    "values-disagree",
    "resources-cyclic",
    "provider-unused",
    "provider-without-intent",
    "resource-without-value",
    "binding-incomplete",
    "trajectory-missing",
)
_SHOWN = 3


def _subtask_finding(code: str, subtask: Subtask, what: str, expected: str) -> Finding:
    where = f"subtask {subtask.id} ({subtask.template!r:.60})"
    return Finding(code, "warning", where, what, expected, "correct it; until then it is not used")


def _findings(pool: Pool, wanted: Collection[str]) -> Iterator[Finding]:
    indexed = pool.indexed
    every = _group("", range(len(pool.cards)), indexed.inputs, indexed.outputs, indexed.initial)
    usable = set(every.instances)
    grouped = {one for each in indexed.groups for one in each.instances}
    there = indexed.initial.union(*(indexed.outputs[one] for one in usable))
    makers: dict[int, list[int]] = defaultdict(list)
    for number, made in enumerate(indexed.outputs):
        for one in made:
            if one not in indexed.inputs[number]:  # editing a resource does not provide it
                makers[one].append(number)
    by_subtask: dict[str, list[int]] = defaultdict(list)
    for number, card in enumerate(pool.cards):
        by_subtask[card.subtask].append(number)
    for name, numbers in by_subtask.items():
        if usable.isdisjoint(numbers):
            yield _unusable_subtask(pool, numbers[0], there, makers)
        elif name in wanted and grouped.isdisjoint(numbers):
            yield _subtask_finding(
                "provider-without-intent",
                pool.subtasks[name],
                "only subtasks of other intents provide its resources",
                "a subtask of the same intent that provides it",
            )


def _unusable_subtask(
    pool: Pool, instance: int, there: frozenset[int], makers: Mapping[int, Sequence[int]]
) -> Finding:
    subtask, every = pool.subtasks[pool.cards[instance].subtask], pool.indexed.resources
    needed = next(one for one in pool.indexed.inputs[instance] if one not in there)
    resource, providers = every[needed], makers.get(needed, ())
    if not providers:
        others = resource[0] in {every[one][0] for one in makers}
        return _subtask_finding(
            "values-disagree" if others else "resource-unprovided",
            subtask,
            f"no subtask provides {_format_resource(resource)}"
            + (", but other values" if others else ""),
            "a subtask that provides it, or --initial with its category",
        )
    names = list(dict.fromkeys(pool.cards[one].subtask for one in providers))[:_SHOWN]
    stuck = _is_stuck(pool.indexed, needed, there, makers)
    waits = "is not used itself" if stuck else "waits for others in turn"
    return _subtask_finding(
        "provider-unused" if stuck else "resources-cyclic",
        subtask,
        f"it needs {_format_resource(resource)}, and what provides that {waits}: "
        f"{', '.join(names)}",
        "a subtask that provides it and can be used, or --initial with its category",
    )


def _is_stuck(
    indexed: IndexedPool, needed: int, there: frozenset[int], makers: Mapping[int, Sequence[int]]
) -> bool:
    """Return whether all providers of a resource wait for something that none makes."""
    seen, waiting = {needed}, [needed]
    while waiting:
        for one in makers[waiting.pop()]:
            for other in indexed.inputs[one]:
                if other not in there and other not in seen:
                    if other not in makers:
                        return True
                    seen.add(other)
                    waiting.append(other)
    return False


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


@dataclass(frozen=True, slots=True)
class _Instances:
    """The cards whose files have values, all resources, and each card's as numbers."""

    cards: list[Card] = field(default_factory=list)
    resources: dict[Resource, int] = field(default_factory=dict)
    inputs: list[tuple[int, ...]] = field(default_factory=list)
    outputs: list[tuple[int, ...]] = field(default_factory=list)

    def add(self, card: Card, needed: Sequence[Resource], made: Sequence[Resource]) -> None:
        self.cards.append(card)
        self.inputs.append(self._number(needed))
        self.outputs.append(self._number(made))

    def _number(self, some: Sequence[Resource]) -> tuple[int, ...]:
        return tuple(self.resources.setdefault(one, len(self.resources)) for one in some)


def read_pool(path: Path, settings: Settings) -> Pool:
    """Read a pool: subtasks, their trajectories where those are asked for, and their intents.

    Intents are in the column `task_intents` (a list of texts) or `task_intent` of a subtask's row;
    where no row has any, all subtasks are one group.

    Raises:
        DataError: there are no subtasks, or none can be used: the message names the first reason.
        UsageError: no intent contains a wanted text.
    """
    library, fingerprint = _read_library(path)
    findings = list(library.findings)
    found = recordings(library, findings.append) if settings.trajectories else {}
    cards = list(_cards(library, found, settings, findings.append))
    instances = _number_resources(library, cards, findings.append)
    intents = {name: _intents_of(subtask) for name, subtask in library.subtasks.items()}
    indexed = _index(instances, intents, settings)
    initial = {indexed.resources[number][0] for number in indexed.initial}
    pool = Pool(
        root=library.root,
        fingerprint=fingerprint,
        subtasks=library.subtasks,
        cards=instances.cards,
        indexed=indexed,
        initial=tuple(sorted(initial)),
        findings=findings,
    )
    every = list(dict.fromkeys(intent for own in intents.values() for intent in own))
    wanted = set(_select_intents(every, settings)) if every else set()
    findings += list(_findings(pool, {n for n, own in intents.items() if wanted & {*own}}))
    if not indexed.groups:
        reason = next((str(each) for each in findings if each.code in _CODES), "")
        raise DataError(
            f"no subtask of the pool can be used, the first: {reason}",
            where=str(path),
            expected="subtasks whose inputs others provide, or which exist initially",
            remedy="correct the pool, or name existing resources with --initial",
        )
    return pool


def _read_library(path: Path) -> tuple[Library, str]:
    """Return the subtasks and trajectories of a pool, and its fingerprint."""
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
    return library, fingerprint


def _index(
    instances: _Instances, intents: Mapping[str, Sequence[str]], settings: Settings
) -> IndexedPool:
    """Return the instances as numbers, in groups of the wanted intents."""
    kinds = [kind for kind, _ in instances.resources]
    given = settings.initial
    initial = frozenset(
        number
        for number, kind in enumerate(kinds)
        if (is_file(kind) if given is None else kind in given)
    )
    members: dict[str, list[int]] = defaultdict(list)
    for number, card in enumerate(instances.cards):
        for intent in intents[card.subtask]:
            members[intent].append(number)
    if not members:
        members[""] = list(range(len(instances.cards)))
    groups = [
        _group(intent, members[intent], instances.inputs, instances.outputs, initial)
        for intent in _select_intents(list(members), settings)
    ]
    return IndexedPool(
        resources=tuple(instances.resources),
        inputs=tuple(instances.inputs),
        outputs=tuple(instances.outputs),
        categories=tuple(card.category for card in instances.cards),
        initial=initial,
        clipboard=frozenset(n for n, kind in enumerate(kinds) if kind.endswith(_CLIPBOARD)),
        groups=tuple(each for each in groups if each.instances),
    )


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
                    _subtask_finding("binding-incomplete", subtask, what, "a value for every place")
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
                _subtask_finding(
                    "trajectory-missing", subtask, what, "one with the same instruction"
                )
            )


def _number_resources(library: Library, cards: Sequence[Card], note: Note) -> _Instances:
    """Return the cards whose files have values; a finding for each subtask of another one."""
    found = _Instances()
    reported: set[str] = set()
    for card in cards:
        subtask = library.subtasks[card.subtask]
        every = (*subtask.inputs, *subtask.outputs)
        needed = resources(subtask.inputs, every, card.binding)
        made = resources(subtask.outputs, every, card.binding)
        unknown = [kind for kind, value in (*needed, *made) if value is None and is_file(kind)]
        if not unknown:
            found.add(card, needed, made)
        elif card.subtask not in reported:
            reported.add(card.subtask)
            what = f"no parameter says which {unknown[0]}"
            expected = f"a parameter {unknown[0]}, or one `path` where there is one file"
            note(_subtask_finding("resource-without-value", subtask, what, expected))
    return found
