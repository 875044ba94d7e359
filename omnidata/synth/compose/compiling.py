"""A pool's instances become numbers, joined by the resources that they have in common."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from omnidata.errors import UsageError
from omnidata.loaders.omnibench_library import Subtask
from omnidata.synth.compose.cards import Card, intents_of
from omnidata.synth.compose.resources import Resource, is_file, resources, slot
from omnidata.synth.compose.settings import Settings
from omnidata.synth.compose.stock import Group, Stock, group
from omnidata.synth.compose.unused import Note, unused


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
        """Number the resources."""
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
                note(unused("resource-without-value", subtasks[card.subtask], what, expected))

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
