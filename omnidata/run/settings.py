"""Settings as one level of names with dots, and in what two of them differ."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

_LONGEST: Final = 60
"""Characters of a value in a message or a label."""


@dataclass(frozen=True, slots=True)
class Change:
    """A setting that is not the same; None where one of the two does not have it.

    Attributes:
        name: e.g. "options.modalities".
        a, b: JSON values.
    """

    name: str
    a: Any
    b: Any


def flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by names with dots for what a mapping holds; an empty mapping or list says nothing.

    Examples:
        >>> flat({"generation": {"temperature": 0.0}, "where": {}, "exclude": [], "limit": None})
        {'generation.temperature': 0.0, 'limit': None}
    """
    return dict(_flat(settings, ""))


def _flat(settings: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        elif value != []:
            yield f"{prefix}{key}", value


def changes(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[Change]:
    """The settings that are not the same as JSON values; a null is as good as none."""
    left, right = (flat(json.loads(json.dumps(each))) for each in (a, b))
    return [
        Change(name, left.get(name), right.get(name))
        for name in dict.fromkeys((*left, *right))
        if left.get(name) != right.get(name)
    ]


def described(found: Iterable[Change], form: str = "{name}: {a} there, {b} now") -> str:
    """Changes for a message; long values are cut.

    Examples:
        >>> described(changes({"limit": None}, {"limit": 3}))
        'limit: null there, 3 now'
    """
    return "; ".join(
        form.format(name=each.name, a=brief(each.a), b=brief(each.b)) for each in found
    )


def brief(value: Any) -> str:
    """A JSON value as a text of at most 60 characters."""
    return cut(json.dumps(value, ensure_ascii=False))


def cut(text: str) -> str:
    """A text of at most 60 characters."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def endings(names: Iterable[str], separator: str = ".") -> dict[str, str]:
    """Each name's shortest ending that no other name has; of one that ends another, all of it.

    Examples:
        >>> endings(["processor.size", "model.size", "options.voice"])
        {'processor.size': 'processor.size', 'model.size': 'model.size', 'options.voice': 'voice'}
    """
    parts = {name: name.split(separator) for name in names}
    found = {}
    for name, own in parts.items():
        others = [each for other, each in parts.items() if other != name]
        lengths = range(1, len(own) + 1)
        length = next(
            (n for n in lengths if all(each[-n:] != own[-n:] for each in others)), len(own)
        )
        found[name] = separator.join(own[-length:])
    return found
