"""What answers cost: the user's price file, and the budget."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from omnidata.errors import UsageError
from omnidata.files import read_settings
from omnidata.run.limits import Limits
from omnidata.run.usage import Tokens

_MILLION = 1_000_000
_BLIND = 8  # answers without usage, after which a limit is taken to be unmeasurable
_EXAMPLE = 'date, currency, and [models."SPEC"] with input and output per million tokens'
_MODALITIES = ("image", "audio", "video")


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a million tokens of one model cost.

    Attributes:
        input: of input.
        output: of output, thoughts included.
        cached_input: of input that the server had kept; None = as `input`.
        image_input, audio_input, video_input: of input of that modality; None = as `input`.
    """

    input: float
    output: float
    cached_input: float | None = None
    image_input: float | None = None
    audio_input: float | None = None
    video_input: float | None = None

    def cost(self, tokens: Tokens) -> float:
        """What the tokens cost, in the currency of the file.

        A server that had kept a part of the prompt does not say of which modality it was; it is
        taken to be text as far as there is any, which never makes the sum too low where media
        cost as much as text or more.
        """
        own = {name: getattr(self, f"{name}_input") for name in _MODALITIES}
        media = {name: getattr(tokens, name) for name in _MODALITIES if own[name] is not None}
        text = max(0, tokens.input - sum(media.values()))
        cached = min(tokens.cached, tokens.input) if self.cached_input is not None else 0
        whole = cached * (self.cached_input or 0.0) + tokens.output * self.output
        for count, rate in [(text, self.input), *((media[name], own[name]) for name in media)]:
            known = min(count, cached)
            cached -= known
            whole += (count - known) * rate
        return whole / _MILLION


class Prices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A price file.

    Attributes:
        date: when the prices were looked up.
        currency: e.g. "USD".
        models: by SPEC or name of a preset.
    """

    date: datetime.date
    currency: str
    models: dict[str, Price]


def read_prices(path: Path) -> Prices:
    """The content of a price file.

    Raises:
        UsageError: it cannot be read, or is not a price file.
    """
    try:
        prices = msgspec.toml.decode(read_settings(path), type=Prices)
        for model, price in prices.models.items():
            for name, value in msgspec.structs.asdict(price).items():
                if value is not None and not (math.isfinite(value) and value >= 0):
                    raise ValueError(f"{name} of {model} is {value}")
    except (OSError, ValueError, RecursionError) as error:
        what = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(
            f"the price file cannot be read: {what}",
            where=f"--prices {path}",
            expected=_EXAMPLE,
            remedy="`docs/evaluate.md` has an example",
        ) from None
    return prices


class Budget:
    """What a run has used, and whether it may ask on.

    Not to be told of answers out of the cache, which cost nothing.

    Args:
        limits: `max_cost`, `max_tokens` and `prices` of them.
        model: the name of the model in the price file.

    Raises:
        UsageError: the price file cannot be read, or a cost is limited and the model has no price.

    Examples:
        >>> budget = Budget(Limits(max_tokens=100), "openai:m")
        >>> budget.spend({"prompt_tokens": 30, "completion_tokens": 10})
        >>> budget.refuses(in_flight=0)
        ''
        >>> budget.refuses(in_flight=1)
        '--max-tokens 100: 1 answers used 40, one more takes 40, and 1 are on their way'
    """

    def __init__(self, limits: Limits, model: str) -> None:
        """Read the price file."""
        self.max_cost = limits.max_cost
        self.max_tokens = limits.max_tokens
        self.prices = read_prices(limits.prices) if limits.prices else None
        self.price = self.prices.models.get(model) if self.prices else None
        if self.max_cost is not None and self.price is None:
            known = ", ".join(self.prices.models) if self.prices else ""
            raise UsageError(
                f'the model "{model}" has no price, so its cost cannot be limited',
                where=f"--prices {limits.prices}" if limits.prices else "--max-cost",
                expected=f'[models."{model}"]' + (f"; the file has {known}" if known else ""),
                remedy="add the price, name a price file, or limit --max-tokens",
            )
        self.tokens = Tokens()
        self.cost = 0.0
        self.requests = 0
        self.unmetered = 0

    def spend(self, usage: Mapping[str, Any]) -> None:
        """Count one answer; an answer without usage is taken to have used the mean of the others.

        Args:
            usage: as the API gave it.
        """
        used = Tokens.of(usage)
        self.requests += 1
        if not used.total:
            self.unmetered += 1
            return
        self.tokens += used
        if self.price:
            self.cost += self.price.cost(used)

    def refuses(self, in_flight: int) -> str:
        """Why one request more may exceed a limit, if it and those in flight take the mean.

        Before the first answer nothing is known, so requests go out one at a time. With nothing in
        flight a refusal is final; else those in flight may yet take less than the mean.

        Args:
            in_flight: requests that were sent and not yet told of.

        Returns:
            The reason; empty if the request may be sent.
        """
        metered = self.requests - self.unmetered
        if not metered:
            return self._blind(in_flight)
        then = self.requests + in_flight + 1
        flying = f", and {in_flight} are on their way" if in_flight else ""
        return "; ".join(
            f"{flag}: {self.requests} answers used {used:.6g}, one more takes {used / metered:.6g}"
            + flying
            for flag, used, limit in self._limited()
            if used * then > limit * metered
        )

    def _blind(self, in_flight: int) -> str:
        """A limit that cannot be measured is not passed over in silence."""
        if not self._limited():
            return ""
        if self.unmetered >= _BLIND:
            return "the model does not say how many tokens its answers take: no limit can be kept"
        return "what an answer takes is not known yet" if in_flight else ""

    def _limited(self) -> list[tuple[str, float, float]]:
        """Each limit: how it is written, what has been used, what may be."""
        limited: list[tuple[str, float, float]] = []
        if self.max_cost is not None:
            limited.append((f"--max-cost {self.max_cost:g}", self.cost, self.max_cost))
        if self.max_tokens is not None:
            limited.append((f"--max-tokens {self.max_tokens}", self.tokens.total, self.max_tokens))
        return limited

    def totals(self) -> dict[str, Any]:
        """What was used, for `run.json`; cost only with a price."""
        said: dict[str, Any] = {"requests": self.requests, "unmetered": self.unmetered}
        said |= {f"{name}_tokens": getattr(self.tokens, name) for name in Tokens.__slots__}
        if self.prices and self.price:
            said |= {
                "cost": round(self.cost, 6),
                "currency": self.prices.currency,
                "prices_of": self.prices.date.isoformat(),
            }
        return said
