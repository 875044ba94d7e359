"""The subsets of a dataset: one rule for builders and repositories.

They are `all`, and every value of every tag. Case, blanks and punctuation are ignored, and the
benchmark may take further spellings for one value. A label of another tag comes before an app of
the same name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from omnidata import registry
from omnidata.loaders.steps import column_of, select_steps
from omnidata.types import LoadedDataset, Step

ALL = "all"
_APP = "app"
_FORBIDDEN = '<>:"/\\|?*'  # `datasets` makes folders of the names
_LONGEST = 100  # bytes; the folder's name gets more


@dataclass(frozen=True, slots=True)
class Subset:
    """A selection of steps.

    Attributes:
        name: as the data spells it first.
        values: pairs of tag and value; a step has one of them. Empty for `all`.
    """

    name: str
    values: frozenset[tuple[str, str]]

    def has(self, tags: Mapping[str, str]) -> bool:
        """Return whether a step with these tags belongs to it."""
        return not self.values or any(pair in self.values for pair in tags.items())


def canonical(name: str) -> str:
    """Return a name without case, blanks and punctuation, unless nothing else would be left.

    Examples:
        >>> canonical("Google_Translate"), canonical("QQ Music")
        ('googletranslate', 'qqmusic')
    """
    return "".join(filter(str.isalnum, name.casefold())) or name.casefold()


class SubsetNames:
    """Normalise the spellings of subset names.

    Args:
        task: the benchmark of the data, for its `spelling`.
        tags: of its steps.
    """

    def __init__(self, task: str, tags: Iterable[str]) -> None:
        self._task = registry.find_benchmark(task)
        self._tags = tuple(tags)

    def key(self, name: str) -> str:
        """Return the normal form of a name.

        Examples:
            >>> names = SubsetNames("omnigui", ["app", "language"])
            >>> names.key("Google_Translate") == names.key("GTrans"), names.key("ZH")
            (True, 'zh')
        """
        if self._task:
            for tag in self._tags:
                name = self._task.wordings.spelling(tag, name)
        return canonical(name)


def count_tags(steps: Sequence[Step]) -> Counter[tuple[str, str]]:
    """Return the number of steps with each value of each tag, by tag and value."""
    return Counter(pair for tags in column_of(steps, "tags") for pair in tags.items())


def subsets(source: LoadedDataset) -> tuple[list[Subset], list[str]]:
    """Return the subsets of a dataset, `all` first, and the values that cannot name one."""
    pairs = count_tags(source.steps)
    names = SubsetNames(source.task, source.tags)
    reserved = {names.key(ALL), names.key("default")}
    labels = {names.key(value) for tag, value in pairs if tag != _APP}
    groups: dict[str, set[tuple[str, str]]] = {}
    unnamable = set()
    for tag, value in pairs:
        key = names.key(value)
        if key in reserved or (tag == _APP and key in labels):
            unnamable.add(value)
        else:
            groups.setdefault(key, set()).add((tag, value))
    found = []
    for group in groups.values():
        spellings = sorted(value for _, value in group if _can_name(value))
        if spellings:
            found.append(Subset(spellings[0], frozenset(group)))
        else:
            unnamable |= {value for _, value in group}
    found.sort(key=lambda subset: subset.name)
    return [Subset(ALL, frozenset()), *found], sorted(unnamable)


def _can_name(value: str) -> bool:
    long = len(value.encode("utf-8", "replace")) > _LONGEST
    return value.isprintable() and not long and not any(c in _FORBIDDEN for c in value)


def select_subset(source: LoadedDataset, name: str) -> Sequence[Step]:
    """Return the steps of the subset of a name, in any spelling; none if there is no such one."""
    names = SubsetNames(source.task, source.tags)
    for subset in subsets(source)[0]:
        if names.key(subset.name) == names.key(name):
            tags = column_of(source.steps, "tags")
            chosen = (number for number, own in enumerate(tags) if subset.has(own))
            return select_steps(source.steps, chosen) if subset.values else source.steps
    return []
