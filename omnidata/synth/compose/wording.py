"""Instructions by template, from which the graph can be read again."""

from __future__ import annotations

import re
from collections.abc import Sequence

Edges = Sequence[tuple[int, int]]
_LINE = re.compile(r"(?P<number>\d+)\. (?:\(after (?P<before>\d+(?:(?:, | and )\d+)*)\) )?")
_NUMBER = re.compile(r"\d+")


def instruct(intent: str, subtasks: Sequence[tuple[str, str]], edges: Edges) -> str:
    """What to do, and what has to wait for what.

    Args:
        intent: what the task is for; may be empty.
        subtasks: application and instruction of each, in an order in which they can be done.
        edges: between places in that order.

    Examples:
        >>> print(instruct("Greet Ann", [("Word", "Write it"), ("Mail", "Send it")], [(0, 1)]))
        Greet Ann. Whatever waits for nothing can be done at any time.
        1. In Word: Write it.
        2. (after 1) In Mail: Send it.
    """
    head = f"{_plain(intent).rstrip('.')}. " if intent else ""
    lines = [f"{head}Whatever waits for nothing can be done at any time."]
    for place, (app, text) in enumerate(subtasks):
        numbers = [str(first + 1) for first, second in edges if second == place]
        numbers.sort(key=int)
        *some, last = numbers or [""]
        joined = f"{', '.join(some)} and {last}" if some else last
        waits = f"(after {joined}) " if joined else ""
        where = f"In {_plain(app)}: " if app else ""
        lines.append(f"{place + 1}. {waits}{where}{_plain(text).rstrip('.')}.")
    return "\n".join(lines)


def infer(instruction: str) -> list[tuple[int, int]]:
    """The edges that an instruction of `instruct` tells, sorted.

    Examples:
        >>> infer(instruct("", [("A", "x"), ("B", "y"), ("A", "z")], [(0, 2), (1, 2)]))
        [(0, 2), (1, 2)]
    """
    found = []
    for line in instruction.split("\n")[1:]:
        head = _LINE.match(line)
        if head:
            place = int(head["number"]) - 1
            found += [(int(one) - 1, place) for one in _NUMBER.findall(head["before"] or "")]
    return sorted(found)


def _plain(text: str) -> str:
    return " ".join(text.split())
