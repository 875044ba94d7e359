"""Marks of answers (right, near, wrong, ...), from the values of their verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from omnidata.types import Mark, Outcome, Verdict

if TYPE_CHECKING:
    from omnidata.tasks.profile import Profile

RIGHT: Final = 1 - 1e-9
"""Values above it are right: the mean of several shares may lack a last digit of 1."""
_PARTLY: Final = 0.005
"""Of a score that is a share: from here on it is 0.01 when rounded, and not nothing."""
_PRIMARY: Final = ("exact_match", "score")


def mark_of(outcome: Outcome, values: Mapping[str, Any]) -> Mark:
    """Return the mark of a verdict.

    Args:
        outcome: of the answer.
        values: the profile's values by name; `exact_match` or `score` decides, else the first.

    Examples:
        >>> mark_of("ok", {"type_match": True, "exact_match": False})
        'near'
        >>> mark_of("ok", {"score": 0.495})
        'partly'
        >>> mark_of("truncated", {"score": False})
        'none'
    """
    value = deciding(values)
    if value is None:
        return "unjudged"
    if outcome not in ("ok", "unparsed"):
        return "none"
    if value > RIGHT:
        return "right"
    if outcome == "unparsed":
        return "unread"
    if value >= _PARTLY:
        return "partly"
    return "near" if values.get("type_match") else "wrong"


def deciding(values: Mapping[str, Any]) -> Any:
    """Return the value that decides whether an answer is right.

    It is `exact_match` or `score`, else the first value.

    Args:
        values: the profile's values by name.
    """
    names = [name for name in _PRIMARY if name in values] or list(values)
    return values[names[0]] if names else None


Standing = Literal["right", "wrong", "partly", "unjudged"]


def find_standing(profile: Profile, verdict: Verdict) -> Standing:
    """Return whether an answer is right, whatever its outcome; "partly" between 0 and 1."""
    value = deciding(dict(zip(profile.values, verdict.values, strict=True)))
    if value is None:
        return "unjudged"
    return "right" if value > RIGHT else "partly" if value > 0 else "wrong"


def is_judged(profile: Profile, verdict: Verdict) -> bool:
    """Return whether a verdict has any value."""
    values = dict(zip(profile.values, verdict.values, strict=True))
    return deciding(values) is not None or values.get("type_match") is not None
