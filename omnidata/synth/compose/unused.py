"""Why subtasks of a pool are not used, said by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from omnidata.errors import Finding
from omnidata.loaders.omnibench_library import Subtask
from omnidata.synth.compose.cards import Card, Pool
from omnidata.synth.compose.resources import Resource, shown
from omnidata.synth.compose.stock import Stock, group

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


def unused(code: str, subtask: Subtask, what: str, expected: str) -> Finding:
    """The finding of a subtask that is not used, or not with every binding."""
    where = f"subtask {subtask.id} ({subtask.template!r:.60})"
    return Finding(code, "warning", where, what, expected, "mend it; it is not used until then")


def findings(pool: Pool, wanted: frozenset[str]) -> Iterator[Finding]:
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
            yield unused(
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
            return unused(
                "values-disagree" if others else "resource-unprovided",
                subtask,
                f"nobody provides {shown(resource)}" + (", but other values" if others else ""),
                "a subtask that provides it, or --initial with its category",
            )
        names = list(dict.fromkeys(self._cards[one].subtask for one in makers))[:_SHOWN]
        lost = self._lost(needed)
        waits = "is not used itself" if lost else "waits for others in turn"
        return unused(
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
