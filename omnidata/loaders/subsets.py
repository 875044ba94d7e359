"""Which subsets a dataset has: one rule for every way into `datasets`.

`all`, and every value of every tag. Case is ignored, and an app is known by any of its spellings. A
label of another tag comes before an app of the same name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from omnidata.loaders.omnigui_apps import app_key
from omnidata.types import Step

ALL = "all"
_APP = "app"
_FORBIDDEN = '<>:"/\\|?*'  # `datasets` makes folders of the names
_LONGEST = 100  # bytes; the folder's name gets more


@dataclass(frozen=True, slots=True)
class Subset:
    """A choice of steps.

    Attributes:
        name: as the data spells it first.
        values: the pairs of tag and value of which a step has one; empty for `all`.
    """

    name: str
    values: frozenset[tuple[str, str]]

    def has(self, step: Step) -> bool:
        """Whether the step belongs to it."""
        return not self.values or any(pair in self.values for pair in step.tags.items())


def subset_key(name: str) -> str:
    """What is the same in every spelling of a subset.

    Examples:
        >>> subset_key("Google_Translate") == subset_key("GTrans"), subset_key("ZH")
        (True, 'zh')
    """
    return app_key(name)


def subsets(steps: Iterable[Step]) -> tuple[list[Subset], list[str]]:
    """The subsets, `all` first, and the values that cannot name one.

    Args:
        steps: of the dataset.
    """
    pairs = {pair for step in steps for pair in step.tags.items()}
    reserved = {subset_key(ALL), subset_key("default")}
    labels = {subset_key(value) for tag, value in pairs if tag != _APP}
    groups: dict[str, set[tuple[str, str]]] = {}
    unnamable = set()
    for tag, value in pairs:
        key = subset_key(value)
        if key in reserved or (tag == _APP and key in labels):
            unnamable.add(value)
        else:
            groups.setdefault(key, set()).add((tag, value))
    found = []
    for group in groups.values():
        names = sorted(value for _, value in group if _can_name(value))
        if names:
            found.append(Subset(names[0], frozenset(group)))
        else:
            unnamable |= {value for _, value in group}
    found.sort(key=lambda subset: subset.name)
    return [Subset(ALL, frozenset()), *found], sorted(unnamable)


def _can_name(value: str) -> bool:
    long = len(value.encode("utf-8", "replace")) > _LONGEST
    return value.isprintable() and not long and not any(c in _FORBIDDEN for c in value)


def find(found: Sequence[Subset], name: str) -> Subset | None:
    """The subset of that name, in any spelling."""
    return next((s for s in found if subset_key(s.name) == subset_key(name)), None)
