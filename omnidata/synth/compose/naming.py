"""Names of nodes: a subtask's id, or that id with a number where it occurs more than once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

_MARK = "#"


def node_names(subtasks: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
    """The nodes of a task, as in the examples that OmniBench's authors gave their reviewers.

    Args:
        subtasks: ids, in order.
        known: ids of all subtasks of the pool. Where an id with a number would be another one, or
            could be taken for an instance of it, a sign stands before the number.

    Examples:
        >>> node_names(["A", "C", "B", "C"], {"A", "B", "C"})
        ('A', 'C1', 'B', 'C2')
        >>> node_names(["C", "C"], {"C", "C1"})
        ('C#1', 'C#2')
    """
    counts = Counter(subtasks)
    clear = {
        name: not any(other != name and other.startswith(name) for other in known)
        for name, count in counts.items()
        if count > 1
    }
    seen: Counter[str] = Counter()
    names = []
    for name in subtasks:
        seen[name] += 1
        mark = "" if clear.get(name) else _MARK
        names.append(f"{name}{mark}{seen[name]}" if counts[name] > 1 else name)
    return tuple(names)
