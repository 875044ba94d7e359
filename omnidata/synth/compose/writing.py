"""Instructions by a model, and the check that they tell the graph (OmniBench, appendix B.4).

One question asks for an instruction, another one, which shows the instruction without the graph,
asks for the dependencies. They must be those of the graph.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from omnidata.jsontext import BROKEN, decode
from omnidata.synth.compose.identity import identity
from omnidata.synth.compose.order import EdgeRule
from omnidata.types import Conversation, Message, Part

Edge = tuple[int, int]

_WRITE = """\
You write instructions for somebody at a desktop computer. You are given the goal, the subtasks, \
and which subtask needs the result of which. Write one instruction in plain English that covers \
every subtask, with all names and paths exactly as they are given. The reader must be able to tell \
from it which subtask needs the result of which; where two subtasks do not depend on each other, \
do not make it sound as if one had to come first. Answer with the instruction alone."""

_READ = """\
You are given an instruction for somebody at a desktop computer, and the subtasks that it consists \
of, in no particular order. Tell from the instruction alone which subtask needs the result of \
which. {rule} Answer with a JSON object alone: {{"edges": [["A", "B"]]}} says that B needs the \
result of A."""

_RULES: Mapping[EdgeRule, str] = {
    "latest": "Only direct needs count: where several subtasks change one thing after another, "
    "each needs the result of the one right before it.",
    "every": "All needs count: where several subtasks change one thing after another, each needs "
    "the results of all before it.",
}

_AGAIN = """\
A reader of an earlier version got the dependencies wrong. That version was:
{instruction}
{mistakes}
Write another one that cannot be misread in this way."""


def prompt_hash(rule: EdgeRule) -> str:
    """SHA-256 of all fixed texts; changes with every word of them."""
    texts = "\0".join((_WRITE, _READ, _RULES[rule], _AGAIN))
    return hashlib.sha256(texts.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Draft:
    """A task that needs an instruction.

    Attributes:
        number: of the task.
        intent: what it is for.
        subtasks: application and instruction of each, in an order in which they can be done.
        edges: between places in that order.
    """

    number: int
    intent: str
    subtasks: Sequence[tuple[str, str]]
    edges: frozenset[Edge]

    def tells(self, edges: frozenset[Edge]) -> bool:
        """Whether these are the task's edges; subtasks that read the same may change places."""
        return edges == self.edges or (
            identity(self.subtasks, sorted(edges)) == identity(self.subtasks, sorted(self.edges))
        )


@dataclass(frozen=True, slots=True)
class Misread:
    """An instruction that did not tell the graph.

    Attributes:
        instruction: the text.
        read: the edges that were read from it; None where no answer could be read.
    """

    instruction: str
    read: frozenset[Edge] | None = field(default=None)


def ask_to_write(draft: Draft, misread: Misread | None) -> Conversation:
    """The question for an instruction.

    Args:
        draft: the task.
        misread: what the last attempt came to.
    """
    names = [f"S{place + 1}" for place in range(len(draft.subtasks))]
    lines = [f"Goal: {draft.intent}", "Subtasks:"]
    lines += _listed(names, draft.subtasks)
    lines.append("Dependencies:")
    lines += [f"{names[b]} needs the result of {names[a]}" for a, b in sorted(draft.edges)]
    if not draft.edges:
        lines.append("none: the subtasks do not depend on each other")
    if misread is not None:
        lines.append(_AGAIN.format(instruction=misread.instruction, mistakes=_why(draft, misread)))
    return _conversation(_WRITE, "\n".join(lines))


def _why(draft: Draft, misread: Misread) -> str:
    if misread.read is None:
        return "No dependencies could be told from it."
    missed = [f"S{b + 1} needs the result of S{a + 1}" for a, b in sorted(draft.edges)
              if (a, b) not in misread.read]  # fmt: skip
    wrong = [f"S{b + 1} needs the result of S{a + 1}" for a, b in sorted(misread.read)
             if (a, b) not in draft.edges]  # fmt: skip
    told = [f"It did not tell that {one}." for one in missed]
    return "\n".join(told + [f"It seemed to tell that {one}, which is not so." for one in wrong])


def letters(draft: Draft, rng: random.Random) -> list[str]:
    """Names of the subtasks for the reader, by place; nothing in them tells the order."""
    names = [_letter(number) for number in range(len(draft.subtasks))]
    rng.shuffle(names)
    return names


def _letter(number: int) -> str:
    return chr(ord("A") + number)


def ask_to_read(
    draft: Draft, instruction: str, names: Sequence[str], rule: EdgeRule
) -> Conversation:
    """The question for the dependencies; the graph is not in it.

    Args:
        draft: the task.
        instruction: to be read.
        names: of the subtasks, by place.
        rule: which edges the graph has.
    """
    pairs = sorted(zip(names, draft.subtasks, strict=True))
    lines = ["Instruction:", instruction, "Subtasks:"]
    lines += _listed([name for name, _ in pairs], [subtask for _, subtask in pairs])
    return _conversation(_READ.format(rule=_RULES[rule]), "\n".join(lines))


def _listed(names: Sequence[str], subtasks: Sequence[tuple[str, str]]) -> list[str]:
    return [
        f"{name}: in {app}: {text}" if app else f"{name}: {text}"
        for name, (app, text) in zip(names, subtasks, strict=True)
    ]


def _conversation(system: str, user: str) -> Conversation:
    return (
        Message("system", (Part("text", system),)),
        Message("user", (Part("text", user),)),
    )


def read_edges(text: str, names: Sequence[str]) -> frozenset[Edge] | None:
    """The edges of an answer; None where it has no readable ones.

    Text around the JSON object does not matter; a name that nobody has makes it unreadable.

    Args:
        text: the model's answer.
        names: of the subtasks, by place.

    Examples:
        >>> sorted(read_edges('Sure: {"edges": [["B", "A"]]}', ["A", "B"]))
        [(1, 0)]
        >>> sorted(read_edges('{"B": ["A"]}', ["A", "B"]))
        [(1, 0)]
        >>> read_edges('{"edges": [["A", "Z"]]}', ["A", "B"]) is None
        True
    """
    try:
        value = decode(text[text.find("{") : text.rfind("}") + 1])
    except RecursionError:
        return None
    if value is BROKEN or not isinstance(value, dict):
        return None
    places = {name: place for place, name in enumerate(names)}
    found = set()
    for pair in _pairs(value.get("edges", value)):
        if not (isinstance(pair, list | tuple) and len(pair) == 2):
            return None
        first, second = (places.get(name) if isinstance(name, str) else None for name in pair)
        if first is None or second is None:
            return None
        found.add((first, second))
    return frozenset(found)


def _pairs(value: Any) -> list[Any]:
    """Pairs out of a list of them, or out of an object of lists."""
    if isinstance(value, dict):
        return [
            (first, second)
            for first, others in value.items()
            for second in (others if isinstance(others, list) else [others])
        ]
    return value if isinstance(value, list) else [value]
