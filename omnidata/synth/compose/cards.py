"""Instances of a pool: subtasks with a binding, and what is known of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnidata.errors import Finding
from omnidata.loaders.omnibench_library import Subtask
from omnidata.synth.compose.recorded import Recorded
from omnidata.synth.compose.stock import Stock


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


def intents_of(subtask: Subtask) -> list[str]:
    """What tasks with the subtask are for, as its row says; none where it says nothing."""
    value = subtask.source.get("task_intents", subtask.source.get("task_intent"))
    found = value if isinstance(value, list) else [value]
    return [text for text in found if isinstance(text, str) and text.strip()]
