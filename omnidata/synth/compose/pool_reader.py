"""A pool of subtasks, read and made ready for composition."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from omnidata.errors import DataError, Finding, UsageError
from omnidata.loaders.detect import task_for
from omnidata.loaders.task_library import Library, Subtask, filled, places
from omnidata.synth.compose.pool_index import (
    Card,
    Group,
    Pool,
    Resource,
    Stock,
    group,
    intents_of,
    is_file,
    resources,
    shown,
    slot,
)
from omnidata.synth.compose.settings import Settings
from omnidata.synth.compose.trajectories import Recorded, recordings
from omnidata.tasks import get_task

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


def unused_subtask(code: str, subtask: Subtask, what: str, expected: str) -> Finding:
    """The finding of a subtask that is not used, or not with every binding."""
    where = f"subtask {subtask.id} ({subtask.template!r:.60})"
    return Finding(code, "warning", where, what, expected, "mend it; it is not used until then")


def unused_findings(pool: Pool, wanted: frozenset[str]) -> Iterator[Finding]:
    """One for every subtask none of whose instances can be part of a task.

    Args:
        pool: compiled.
        wanted: ids of the subtasks that serve an intent that was asked for.
    """
    stock = pool.stock
    every = group("", range(len(pool.cards)), stock.inputs, stock.outputs, stock.initial)
    usable = set(every.instances)
    grouped = {one for each in stock.groups for one in each.instances}
    looked = _Look(stock, pool.cards, usable)
    by_subtask: dict[str, list[int]] = defaultdict(list)
    for number, card in enumerate(pool.cards):
        by_subtask[card.subtask].append(number)
    for name, numbers in by_subtask.items():
        if usable.isdisjoint(numbers):
            yield looked.why(pool.subtasks[name], numbers[0])
        elif name in wanted and grouped.isdisjoint(numbers):
            yield unused_subtask(
                "provider-without-intent",
                pool.subtasks[name],
                "what it needs is provided, but by no subtask of its intents",
                "a subtask of the same intent that provides it",
            )


class _Look:
    """What of a stock is there, and who makes what."""

    def __init__(self, stock: Stock, cards: Sequence[Card], usable: set[int]) -> None:
        self._stock = stock
        self._cards = cards
        self._there = stock.initial.union(*(stock.outputs[one] for one in usable))
        self._makers: Mapping[int, list[int]] = defaultdict(list)
        for number, made in enumerate(stock.outputs):
            for one in made:
                if one not in stock.inputs[number]:  # who changes a thing does not provide it
                    self._makers[one].append(number)

    def why(self, subtask: Subtask, instance: int) -> Finding:
        """Why an instance cannot be used."""
        missing = (one for one in self._stock.inputs[instance] if one not in self._there)
        needed = next(missing)
        resource, makers = self._stock.resources[needed], self._makers[needed]
        if not makers:
            others = self._others(resource)
            return unused_subtask(
                "values-disagree" if others else "resource-unprovided",
                subtask,
                f"nobody provides {shown(resource)}" + (", but other values" if others else ""),
                "a subtask that provides it, or --initial with its category",
            )
        names = list(dict.fromkeys(self._cards[one].subtask for one in makers))[:_SHOWN]
        lost = self._lost(needed)
        waits = "is not used itself" if lost else "waits for others in turn"
        return unused_subtask(
            "provider-unused" if lost else "resources-cyclic",
            subtask,
            f"it needs {shown(resource)}, and what provides that {waits}: {', '.join(names)}",
            "a subtask that provides it and can be used, or --initial with its category",
        )

    def _others(self, resource: Resource) -> bool:
        """Whether somebody makes other things of its category."""
        kinds = {self._stock.resources[one][0] for one, makers in self._makers.items() if makers}
        return resource[0] in kinds

    def _lost(self, needed: int) -> bool:
        """Whether what provides a resource waits, in the end, for something that nobody makes."""
        seen, waiting = {needed}, [needed]
        while waiting:
            for one in self._makers[waiting.pop()]:
                for other in self._stock.inputs[one]:
                    if other not in self._there and other not in seen:
                        if not self._makers[other]:
                            return True
                        seen.add(other)
                        waiting.append(other)
        return False


# A pool's instances become numbers, joined by the resources that they have in common.


class Compiler:
    """Turns cards into a stock.

    Args:
        subtasks: by id.
        cards: candidates.
        settings: of the composition.
        note: takes a finding for every subtask whose resources nobody knows.

    Attributes:
        cards: those that are in the stock, in its order.
    """

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
                    unused_subtask("resource-without-value", subtasks[card.subtask], what, expected)
                )

    def _add(self, card: Card) -> list[str]:
        """Take an instance in, unless there are files that no parameter names."""
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

    def stock(self) -> Stock:
        """The instances as numbers.

        Raises:
            UsageError: no intent contains what was asked for.
        """
        initial = frozenset(
            number for (kind, _), number in self._numbers.items() if self._exists(kind)
        )
        return Stock(
            resources=tuple(self._numbers),
            inputs=tuple(self._inputs),
            outputs=tuple(self._outputs),
            subtasks=_numbered([card.subtask for card in self.cards]),
            categories=_numbered([card.category for card in self.cards]),
            initial=initial,
            slots=self._slots(),
            groups=tuple(self._groups(initial)),
        )

    def _slots(self) -> tuple[int, ...]:
        names = [slot(kind) for kind, _ in self._numbers]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(filter(None, names)))}
        return tuple(numbers.get(name, -1) for name in names)

    def _groups(self, initial: frozenset[int]) -> Iterator[Group]:
        """One for each intent that was asked for and has a subtask that can be used."""
        members: dict[str, list[int]] = defaultdict(list)
        for number, card in enumerate(self.cards):
            for intent in intents_of(self._subtasks[card.subtask]):
                members[intent].append(number)
        if not members:
            members[""] = list(range(len(self.cards)))
        for intent in chosen(list(members), self._settings):
            found = group(intent, members[intent], self._inputs, self._outputs, initial)
            if found.instances:
                yield found


def chosen(intents: Sequence[str], settings: Settings) -> list[str]:
    """The intents that were asked for.

    Raises:
        UsageError: none contains what was asked for.
    """
    asked = [text.casefold() for text in settings.intents]
    found = [one for one in intents if not asked or any(text in one.casefold() for text in asked)]
    if not found:
        raise UsageError(
            f"no intent contains {' or '.join(map(repr, settings.intents))}",
            where="--intent",
            expected="; ".join(filter(None, intents)) or "a pool with the column task_intents",
        )
    return found


def _numbered(names: Sequence[str]) -> tuple[int, ...]:
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
    task = get_task(task_for(path, lambda task: task.library is not None))
    assert task.library is not None
    library: Library = task.library(path)
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
    compiler = Compiler(library.subtasks, cards, settings, findings.append)
    stock, kinds = compiler.stock(), compiler.initial_kinds()
    pool = Pool(
        root=library.root,
        fingerprint=task.fingerprint(path),
        subtasks=library.subtasks,
        cards=compiler.cards,
        stock=stock,
        initial=kinds,
        findings=findings,
    )
    findings += list(unused_findings(pool, _wanted(library, settings)))
    if not stock.groups:
        reason = next((str(each) for each in findings if each.code in CODES), "")
        raise DataError(
            f"no subtask of the pool can be used, the first: {reason}",
            where=str(path),
            expected="subtasks whose inputs others provide, or which exist initially",
            remedy="mend the pool, or say with --initial which resources exist",
        )
    return pool


def _wanted(library: Library, settings: Settings) -> frozenset[str]:
    """The subtasks that serve an intent that was asked for; none where there are no intents."""
    intents = {name: intents_of(subtask) for name, subtask in library.subtasks.items()}
    every = list(dict.fromkeys(intent for found in intents.values() for intent in found))
    asked = set(chosen(every, settings)) if every else set()
    return frozenset(name for name, found in intents.items() if not asked.isdisjoint(found))


def _cards(
    library: Library,
    found: Mapping[tuple[str, int], Recorded],
    settings: Settings,
    note: Note,
) -> Iterator[Card]:
    """Every subtask with every binding that is whole, and recorded where that is asked for."""
    for subtask in library.subtasks.values():
        lacking = 0
        seen: set[str] = set()
        for number, binding in enumerate(subtask.parameters or ({},)):
            if missing := [name for name in places(subtask.template) if name not in binding]:
                what = f"binding {number} has no {', '.join(missing)}"
                note(unused_subtask("binding-incomplete", subtask, what, "a value for every place"))
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
                filled(subtask.template, binding),
                subtask.application,
                library.categories[subtask.application],
                binding,
                recorded,
            )
        if lacking and settings.trajectories:
            what = f"{lacking} of {len(subtask.parameters or ({},))} bindings have no trajectory"
            note(
                unused_subtask("trajectory-missing", subtask, what, "one with the same instruction")
            )
