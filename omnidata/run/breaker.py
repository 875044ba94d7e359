"""Stops a run in which everything fails."""

from __future__ import annotations

from omnidata.errors import AdapterError, CallError

FAILURES = 10
"""Steps in a row without an answer after which nothing more is asked."""

HOPELESS = 3
"""The same where the reason will not go away: a wrong key or address, code that never worked."""


class Breaker:
    """Counts failures since the last answer.

    Args:
        answered: whether the run has an answer already, from before it was resumed.
    """

    def __init__(self, *, answered: bool = False) -> None:
        """Nothing has failed."""
        self._failures = 0
        self._hopeless = 0
        self._any_answer = answered

    def answered(self) -> None:
        """An answer came; whatever failed before, not everything does."""
        self._failures = self._hopeless = 0
        self._any_answer = True

    def failed(self, error: CallError) -> str:
        """A step got no answer in all its attempts.

        Returns:
            Why the run is to stop; empty to go on.
        """
        slipped = isinstance(error, AdapterError)
        if self._any_answer and not (error.transient or error.hopeless or slipped):
            return ""  # others were answered: it is this request that the model does not take
        self._failures += 1
        self._hopeless += error.hopeless or (slipped and not self._any_answer)
        if self._hopeless < HOPELESS and self._failures < FAILURES:
            return ""
        return f"the last {self._failures} steps all got no answer; the last reason: {error.what}"
