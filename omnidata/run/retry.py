"""How long to wait before the same request is sent again."""

from __future__ import annotations

import random

from omnidata.errors import CallError

_FIRST_S = 1.0
_LONGEST_S = 60.0
LONGEST_ASKED_S = 600.0
"""A model that asks for a longer wait than this gets no other attempt in this run."""

_jitter = random.Random()  # nothing that is measured depends on it


def pause(error: CallError, attempt: int) -> float | None:
    """Seconds to wait before the next attempt; None if there is to be none.

    Full jitter over an exponentially growing time, so that requests which failed together do not
    come back together; what the model asked for is waited in full.

    Args:
        error: why there was no answer.
        attempt: how many attempts were made, 1 or more.

    Examples:
        >>> pause(CallError("no such model", transient=False), 1) is None
        True
        >>> 7.0 <= pause(CallError("busy", retry_after=7.0), 1) <= 8.0
        True
    """
    if not error.transient:
        return None
    drawn = _jitter.uniform(0, min(_LONGEST_S, _FIRST_S * 2 ** (attempt - 1)))
    if error.retry_after is None:
        return drawn
    if not error.retry_after <= LONGEST_ASKED_S:  # NaN as well
        return None
    return max(0.0, error.retry_after) + min(drawn, _FIRST_S)
