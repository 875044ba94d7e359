"""Differences between the settings of two runs, as one level of names with dots."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

_LONGEST: Final = 60
"""Characters of a value in a message or a label."""


@dataclass(frozen=True, slots=True)
class Change:
    """A setting that differs between two runs; None on the side that lacks it.

    Attributes:
        name: e.g. "options.modalities".
        a, b: JSON values.
    """

    name: str
    a: Any
    b: Any


def flatten(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return settings with dotted names for nested ones, without empty mappings and lists.

    Examples:
        >>> flatten({"generation": {"temperature": 0.0}, "where": {}, "exclude": [], "limit": None})
        {'generation.temperature': 0.0, 'limit': None}
    """
    found: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            found |= flatten(value, f"{prefix}{key}.")
        elif value != []:
            found[f"{prefix}{key}"] = value
    return found


def changes(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[Change]:
    """Return the settings that differ as JSON values; null equals absent."""
    left, right = (flatten(json.loads(json.dumps(each))) for each in (a, b))
    return [
        Change(name, left.get(name), right.get(name))
        for name in dict.fromkeys((*left, *right))
        if left.get(name) != right.get(name)
    ]


def describe_changes(found: Iterable[Change], form: str = "{name}: {a} there, {b} now") -> str:
    """Return changes as a text for messages; long values are cut.

    Examples:
        >>> describe_changes(changes({"limit": None}, {"limit": 3}))
        'limit: null there, 3 now'
    """
    return "; ".join(
        form.format(name=each.name, a=brief(each.a), b=brief(each.b)) for each in found
    )


def brief(value: Any) -> str:
    """Return a JSON value as a text of at most 60 characters."""
    return shorten(json.dumps(value, ensure_ascii=False))


def shorten(text: str) -> str:
    """Return a text of at most 60 characters."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
