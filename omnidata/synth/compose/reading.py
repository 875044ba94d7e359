"""A pool of subtasks, read and made ready for composition."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnidata.errors import DataError, Finding, UsageError
from omnidata.loaders.omnibench import read_library
from omnidata.loaders.omnibench_apps import categories_of
from omnidata.loaders.omnibench_library import Library, Subtask
from omnidata.synth.compose.recorded import Recorded, recordings
from omnidata.synth.compose.resources import Resource, is_file, resources, shown, slot
from omnidata.synth.compose.settings import Settings
from omnidata.synth.compose.stock import Group, Stock, group
from omnidata.synth.templates import filled, places

_SHOWN = 3


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
        subtasks: by id.
        cards: the instances, in the order of the stock.
        stock: the same as numbers.
        initial: categories of resources that exist before a task begins, of those that occur.
        findings: what is doubtful in the pool, and the subtasks that are not used.
    """

    root: Path
    subtasks: Mapping[str, Subtask]
    cards: Sequence[Card]
    stock: Stock
    initial: tuple[str, ...]
    findings: Sequence[Finding]


def read_pool(path: Path, settings: Settings) -> Pool:
    """Read a pool: subtasks, their trajectories where those are asked for, and their intents.

    Intents are in the column `task_intents` (a list of texts) or `task_intent` of a subtask's row;
    where no row has any, all subtasks are one group.

    Args:
        path: of the pool, as `read_library` takes it.
        settings: of the composition.

    Raises:
        DataError: there are no subtasks, or none can be used: the message names the first reason.
        UsageError: no intent contains what was asked for.
    """
    library = read_library(path)
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
    pool = _Compiler(library, cards, settings, findings.append).pool(findings)
    if not any(len(each.instances) for each in pool.stock.groups):
        reason = next((str(each) for each in findings if each.code in _UNUSED), "")
        raise DataError(
            f"no subtask of the pool can be used, the first: {reason}",
            where=str(path),
            expected="subtasks whose inputs others provide, or which exist initially",
            remedy="mend the pool, or say with --initial which resources exist",
        )
    return pool


_UNUSED = (
    "resource-unprovided",
    "values-disagree",
    "resources-cyclic",
    "provider-unused",
    "resource-without-value",
    "binding-incomplete",
    "trajectory-missing",
)
"""Why subtasks are not used."""


def _finding(code: str, subtask: Subtask, what: str, expected: str) -> Finding:
    where = f"subtask {subtask.id} ({subtask.template!r:.60})"
    return Finding(code, "warning", where, what, expected, "mend it; it is not used until then")


def _cards(
    library: Library,
    found: Mapping[tuple[str, int], Recorded],
    settings: Settings,
    note: Callable[[Finding], None],
) -> Iterator[Card]:
    """Every subtask with every binding that is whole, and recorded where that is asked for."""
    given = {
        subtask.application: category
        for subtask in library.subtasks.values()
        if isinstance(category := subtask.source.get("category"), str)
    }
    for subtask in library.subtasks.values():
        lacking = 0
        seen: set[str] = set()
        for number, binding in enumerate(subtask.parameters or ({},)):
            if missing := [name for name in places(subtask.template) if name not in binding]:
                what = f"binding {number} has no {', '.join(missing)}"
                note(_finding("binding-incomplete", subtask, what, "a value for every place"))
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
                categories_of([subtask.application], given)[subtask.application],
                binding,
                recorded,
            )
        if lacking and settings.trajectories:
            what = f"{lacking} of {len(subtask.parameters or ({},))} bindings have no trajectory"
            note(_finding("trajectory-missing", subtask, what, "one with the same instruction"))


class _Compiler:
    """Turns cards into a stock."""

    def __init__(
        self,
        library: Library,
        cards: Sequence[Card],
        settings: Settings,
        note: Callable[[Finding], None],
    ) -> None:
        self._library = library
        self._settings = settings
        self._note = note
        self._numbers: dict[Resource, int] = {}
        self._cards: list[Card] = []
        self._inputs: list[tuple[int, ...]] = []
        self._outputs: list[tuple[int, ...]] = []
        told: set[str] = set()
        for card in cards:
            self._add(card, told)

    def _add(self, card: Card, told: set[str]) -> None:
        subtask = self._library.subtasks[card.subtask]
        every = (*subtask.inputs, *subtask.outputs)
        needed = resources(subtask.inputs, every, card.binding)
        made = resources(subtask.outputs, every, card.binding)
        unknown = [kind for kind, value in (*needed, *made) if value is None and is_file(kind)]
        if not unknown:
            self._cards.append(card)
            self._inputs.append(tuple(self._number(one) for one in needed))
            self._outputs.append(tuple(self._number(one) for one in made))
        elif card.subtask not in told:
            told.add(card.subtask)
            what = f"no parameter says which {unknown[0]}"
            expected = f"a parameter {unknown[0]}, or one `path` where there is one file"
            self._note(_finding("resource-without-value", subtask, what, expected))

    def _number(self, resource: Resource) -> int:
        return self._numbers.setdefault(resource, len(self._numbers))

    def pool(self, findings: Sequence[Finding]) -> Pool:
        """The pool; what is not used has a finding."""
        initial = frozenset(
            number for (kind, _), number in self._numbers.items() if self._exists(kind)
        )
        every = group("", range(len(self._cards)), self._inputs, self._outputs, initial)
        self._tell_unused(set(every.instances), initial)
        stock = Stock(
            resources=tuple(self._numbers),
            inputs=tuple(self._inputs),
            outputs=tuple(self._outputs),
            subtasks=_numbered([card.subtask for card in self._cards]),
            categories=_numbered([card.category for card in self._cards]),
            initial=initial,
            slots=self._slots(),
            groups=tuple(self._groups(initial)),
        )
        kinds = sorted({kind for kind, _ in self._numbers if self._exists(kind)})
        subtasks = self._library.subtasks
        return Pool(self._library.root, subtasks, self._cards, stock, tuple(kinds), findings)

    def _exists(self, kind: str) -> bool:
        given = self._settings.initial
        return is_file(kind) if given is None else kind in given

    def _slots(self) -> tuple[int, ...]:
        names = [slot(kind) for kind, _ in self._numbers]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(filter(None, names)))}
        return tuple(numbers.get(name, -1) for name in names)

    def _groups(self, initial: frozenset[int]) -> Iterator[Group]:
        """One for each intent that was asked for and has a subtask that can be used."""
        wanted: dict[str, list[int]] = defaultdict(list)
        for number, card in enumerate(self._cards):
            for intent in intents_of(self._library.subtasks[card.subtask]):
                wanted[intent].append(number)
        if not wanted:
            wanted[""] = list(range(len(self._cards)))
        asked = [text.casefold() for text in self._settings.intents]
        chosen = [
            intent for intent in wanted if not asked or any(t in intent.casefold() for t in asked)
        ]
        if not chosen:
            raise UsageError(
                f"no intent contains {' or '.join(map(repr, self._settings.intents))}",
                where="--intent",
                expected="; ".join(filter(None, wanted)) or "a pool with the column task_intents",
            )
        for intent in chosen:
            found = group(intent, wanted[intent], self._inputs, self._outputs, initial)
            if found.instances:
                yield found

    def _tell_unused(self, used: set[int], initial: frozenset[int]) -> None:
        """Say of every subtask none of whose instances can be used, why."""
        makers: dict[int, list[int]] = defaultdict(list)
        for number, made in enumerate(self._outputs):
            for one in made:
                makers[one].append(number)
        known = list(self._numbers)
        kinds = {known[one][0] for one in makers}
        by_subtask: dict[str, list[int]] = defaultdict(list)
        for number, card in enumerate(self._cards):
            by_subtask[card.subtask].append(number)
        for name, numbers in by_subtask.items():
            if used.isdisjoint(numbers):
                first = numbers[0]
                there = initial.union(*(self._outputs[one] for one in used))
                needed = next(one for one in self._inputs[first] if one not in there)
                subtask = self._library.subtasks[name]
                if makers[needed]:
                    lost = self._lost(needed, makers, there)
                    self._tell_waiting(subtask, known[needed], makers[needed], lost=lost)
                else:
                    self._tell_missing(subtask, known[needed], kinds)

    def _lost(
        self, needed: int, makers: Mapping[int, Sequence[int]], there: frozenset[int]
    ) -> bool:
        """Whether what provides a resource waits, in the end, for something that nobody makes."""
        seen, waiting = {needed}, [needed]
        while waiting:
            for one in makers[waiting.pop()]:
                for other in self._inputs[one]:
                    if other not in there and other not in seen:
                        if not makers[other]:
                            return True
                        seen.add(other)
                        waiting.append(other)
        return False

    def _tell_waiting(
        self, subtask: Subtask, resource: Resource, makers: Sequence[int], *, lost: bool
    ) -> None:
        """Say that what provides something cannot be used itself."""
        names = ", ".join(list(dict.fromkeys(self._cards[one].subtask for one in makers))[:_SHOWN])
        what = f"it needs {shown(resource)}, and what provides that "
        if lost:
            code, what = "provider-unused", f"{what}is not used itself: {names}"
        else:
            code, what = "resources-cyclic", f"{what}waits for others in turn: {names}"
        expected = "a subtask that provides it and can be used, or --initial with its category"
        self._note(_finding(code, subtask, what, expected))

    def _tell_missing(self, subtask: Subtask, resource: Resource, kinds: set[str]) -> None:
        """Say that nobody makes something; `kinds` are the categories that somebody makes."""
        if resource[0] in kinds:
            code, what = "values-disagree", f"nobody provides {shown(resource)}, but other values"
        else:
            code, what = "resource-unprovided", f"nobody provides {shown(resource)}"
        expected = "a subtask that provides it, or --initial with its category"
        self._note(_finding(code, subtask, what, expected))


def _numbered(names: Sequence[str]) -> tuple[int, ...]:
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return tuple(numbers[name] for name in names)


def intents_of(subtask: Subtask) -> list[str]:
    """What tasks with the subtask are for, as its row says; none where it says nothing."""
    value = subtask.source.get("task_intents", subtask.source.get("task_intent"))
    found = value if isinstance(value, list) else [value]
    return [text for text in found if isinstance(text, str) and text.strip()]
