"""Options of tasks and models given as `key=value`, checked against what exists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from omnidata.errors import UsageError
from omnidata.tasks.common_options import OPTIONS as COMMON


def resolve(
    given: Mapping[str, str], allowed: Mapping[str, Sequence[str]], flag: str
) -> dict[str, str]:
    """Return all options with the given values, or else each option's first value.

    Args:
        given: as the user wrote them.
        allowed: option -> its values, the default first; a single value "" allows any text.
        flag: how the options are given, for the message.

    Raises:
        UsageError: an option or a value does not exist.

    Examples:
        >>> resolve({"history": "none"}, {"history": ("gold", "none"), "voice": ("",)}, "-T")
        {'history': 'none', 'voice': ''}
    """
    for name, value in given.items():
        if name not in allowed:
            raise UsageError(
                f'unknown option "{name}"',
                where=f"{flag} {name}={value}",
                expected=f"one of {', '.join([*allowed, *COMMON])}",
                remedy="choose one of these, or drop the option",
            )
        values = allowed[name]
        if values != ("",) and value not in values:
            raise UsageError(
                f'"{name}" has no value "{value}"',
                where=f"{flag} {name}={value}",
                expected=f"one of {', '.join(values)}",
                remedy="choose one of these, or drop the option",
            )
    return {name: given.get(name, values[0]) for name, values in allowed.items()}


def parse(pairs: Sequence[str], flag: str) -> dict[str, str]:
    """Return `["a=1", "b=2"]` as a mapping.

    Raises:
        UsageError: an item without "=", or a key given twice.
    """
    options: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key or key in options:
            raise UsageError(
                "the option is given twice" if key in options else "the option has no value",
                where=f"{flag} {pair}",
                expected=f"{flag} key=value, with each key once",
                remedy="drop one of them"
                if key in options
                else f"write {flag} {key or 'key'}=VALUE",
            )
        options[key] = value
    return options
