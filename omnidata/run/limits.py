"""What a run may use: requests, time, money, memory. No answer depends on any of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from omnidata.errors import UsageError

_AHEAD_BYTES = 256 << 20
_POSITIVE = (
    "concurrency",
    "requests_per_minute",
    "tokens_per_minute",
    "timeout_s",
    "attempts",
    "max_cost",
    "max_tokens",
    "ahead_bytes",
)


@dataclass(frozen=True, slots=True)
class Limits:
    """How fast, how long and how dearly a run may ask.

    Attributes:
        concurrency: requests in flight at the start; None leaves it to the adapter.
        requests_per_minute: None = any number.
        tokens_per_minute: of input and output together; None = any number.
        timeout_s: seconds that one attempt may take; None leaves it to the adapter.
        attempts: how often one request is sent at most.
        max_cost: what the run may cost, in the currency of the price file; None = anything.
        max_tokens: tokens of input and output that the run may use; None = any number.
        prices: the price file (see `omnidata.run.prices`).
        cache: the database of answers (see `omnidata.run.cache`); None keeps none.
        ahead_bytes: size of the requests that are made ready before they can be sent.

    Raises:
        UsageError: a limit that lets nothing through.
    """

    concurrency: int | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    timeout_s: float | None = None
    attempts: int = 6
    max_cost: float | None = None
    max_tokens: int | None = None
    prices: Path | None = None
    cache: Path | None = None
    ahead_bytes: int = _AHEAD_BYTES

    def __post_init__(self) -> None:
        for name in _POSITIVE:
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UsageError(
                    f"{name} is {value}",
                    expected="more than 0",
                    remedy="leave the limit out to have none",
                )
