"""What answers cost: the user's price file, and the budget."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from omnidata.errors import UsageError
from omnidata.files import read_settings
from omnidata.jsontext import in_snake_case, is_number
from omnidata.types import is_token_count

# Token counts, as APIs name them.

_INPUT = ("prompt_tokens", "input_tokens", "prompt_token_count")
_OUTPUT = ("completion_tokens", "output_tokens", "candidates_token_count")
_BESIDE = ("tool_use_prompt_token_count", "cached_content_token_count", "thoughts_token_count")
_INPUT_DETAILS = ("prompt_tokens_details", "input_tokens_details")
_READ = "cache_read_input_tokens"
_KEPT = (_READ, "cache_creation_input_tokens")
"""Anthropic's, which stand beside its input tokens; gateways that say OpenAI's `prompt_tokens` have
them within those."""
_COUNTS = frozenset({*_INPUT, *_OUTPUT, *_BESIDE, *_KEPT})


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token counts of one or more answers.

    Attributes:
        input: all tokens of the prompt; the next four are parts of it.
        cached: those that the server had kept from an earlier request.
        image, audio, video: those of a modality, where the server tells.
        output: tokens of the answer, thoughts included.
    """

    input: int = 0
    cached: int = 0
    image: int = 0
    audio: int = 0
    video: int = 0
    output: int = 0

    @classmethod
    def of(cls, usage: Mapping[str, Any]) -> Tokens:
        """Read the usage of one answer; absent counts are 0.

        OpenAI's names (Chat Completions and Responses), Anthropic's and Gemini's are understood, in
        snake case and in camel case. Gemini counts thoughts beside the answer, the others within
        it; Anthropic counts what it reads from its cache and writes there beside the input.

        Examples:
            >>> Tokens.of({"prompt_tokens": 9, "completion_tokens": 2,
            ...            "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 3}})
            Tokens(input=9, cached=4, image=0, audio=3, video=0, output=2)
            >>> Tokens.of({"promptTokenCount": 9, "candidatesTokenCount": 2,
            ...            "thoughtsTokenCount": 5,
            ...            "promptTokensDetails": [{"modality": "IMAGE", "tokenCount": 8}]})
            Tokens(input=9, cached=0, image=8, audio=0, video=0, output=7)
            >>> Tokens.of({"input_tokens": 9, "cache_read_input_tokens": 4, "output_tokens": 2,
            ...            "cache_creation_input_tokens": 3})
            Tokens(input=16, cached=4, image=0, audio=0, video=0, output=2)
        """
        if not usage:
            return cls()
        said = in_snake_case(usage)
        parts = _parts(said)
        beside = {} if "prompt_tokens" in said else {name: _count(said.get(name)) for name in _KEPT}
        return cls(
            input=_first(said, _INPUT)
            + _count(said.get("tool_use_prompt_token_count"))
            + sum(beside.values()),
            cached=parts.get("cached", 0)
            + _count(said.get("cached_content_token_count"))
            + beside.get(_READ, 0),
            image=parts.get("image", 0),
            audio=parts.get("audio", 0),
            video=parts.get("video", 0),
            output=_first(said, _OUTPUT) + _count(said.get("thoughts_token_count")),
        )

    def __add__(self, other: Tokens) -> Tokens:
        names = Tokens.__slots__
        return Tokens(**{name: getattr(self, name) + getattr(other, name) for name in names})

    @property
    def total(self) -> int:
        """Of input and output."""
        return self.input + self.output


def textual_counts(usage: Mapping[str, Any]) -> dict[str, str]:
    """Return the counts of a usage that are texts; `Tokens.of` would read them as 0.

    Examples:
        >>> textual_counts({"input_tokens": "many", "output_tokens": 3, "tier": "default"})
        {'input_tokens': 'many'}
    """
    texts = in_snake_case({name: value for name, value in usage.items() if isinstance(value, str)})
    return {name: text for name, text in texts.items() if name in _COUNTS}


def _parts(said: Mapping[str, Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in _INPUT_DETAILS:
        details = said.get(name)
        if isinstance(details, Mapping):
            found = {key.removesuffix("_tokens"): _count(value) for key, value in details.items()}
        elif isinstance(details, list):
            for item in details:
                if isinstance(item, Mapping):
                    modality = str(item.get("modality")).lower().rpartition(".")[2]
                    found[modality] = found.get(modality, 0) + _count(item.get("token_count"))
    return found


def _first(said: Mapping[str, Any], names: tuple[str, ...]) -> int:
    return next((_count(said[name]) for name in names if said.get(name) is not None), 0)


def _count(value: Any) -> int:
    return int(value) if is_token_count(value) else 0


# What a run may use: requests, time, money, memory. No answer depends on any of it.

_AHEAD_BYTES = 256 << 20
_POSITIVE = {
    "concurrency": "concurrency",
    "requests_per_minute": "rpm",
    "tokens_per_minute": "tpm",
    "timeout_s": "timeout",
    "attempts": "attempts",
    "max_cost": "max_cost",
    "max_tokens": "max_tokens",
    "ahead_bytes": "ahead_bytes",
}
"""Limits above 0, each with the word of the command line and of suites."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the speed, duration and cost of a run.

    Attributes:
        concurrency: requests in flight at the start; None leaves it to the adapter.
        requests_per_minute: None = any number.
        tokens_per_minute: of input and output together; None = any number.
        timeout_s: seconds that one attempt may take; None leaves it to the adapter.
        attempts: how often one request is sent at most.
        max_cost: what the run may cost, in the currency of the price file; None = anything.
        max_tokens: tokens of input and output that the run may use; None = any number.
        prices: the price file (see `omnidata.run.cost`).
        cache: the database of answers (see `omnidata.run.cache`); None keeps none.
        ahead_bytes: size of the requests that are made ready before they can be sent.
        reuse_answers: whether answers may be used that other code of the model has given.

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
    reuse_answers: bool = False

    def __post_init__(self) -> None:
        for name, word in _POSITIVE.items():
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UsageError(
                    f"{word} is {value}",
                    expected="more than 0",
                    remedy="drop the option for no limit",
                )


_MILLION = 1_000_000
_BLIND = 8  # answers without usage, after which a limit is taken to be unmeasurable
_EXAMPLE = 'date, currency, and [models."SPEC"] with input and output per million tokens'
_MODALITIES = ("image", "audio", "video")
_DEAREST = 1e9
"""A price of a million tokens; what costs more in any currency is a slip of the pen."""


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Prices of a million tokens of one model.

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
        """Return the cost of the tokens, in the currency of the file.

        A server does not report the modality of cached parts of the prompt; they are
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
    """Read a price file.

    Raises:
        UsageError: it cannot be read, or is not a price file.
    """
    try:
        prices = msgspec.toml.decode(read_settings(path), type=Prices)
        for model, price in prices.models.items():
            for name, value in msgspec.structs.asdict(price).items():
                if value is not None and not 0 <= value <= _DEAREST:  # NaN as well
                    raise ValueError(f"{name} of {model} is {value}, not 0 to {_DEAREST:g}")
    except (OSError, ValueError, RecursionError) as error:
        what = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(
            f"the price file cannot be read: {what}",
            where=f"--prices {path}",
            expected=_EXAMPLE,
            remedy="`docs/evaluate.md` has an example",
        ) from None
    return prices


_COST = ("cost", "currency", "prices_of")


def with_whole_cost(total: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the usage of several runs; without a cost unless all have one in one currency.

    Args:
        total: their usage as one.
        parts: the usage of each.

    Examples:
        >>> with_whole_cost({"requests": 3, "cost": 0.5, "currency": "EUR"},
        ...                 [{"requests": 1, "cost": 0.5, "currency": "EUR"}, {"requests": 2}])
        {'requests': 3}
    """
    currencies = {part.get("currency") for part in parts}
    whole = len(currencies) == 1 and None not in currencies
    return {name: value for name, value in total.items() if whole or name not in _COST}


def add_up(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up numbers by name and list different texts; of other values the first is taken.

    Examples:
        >>> add_up([{"n": 1, "of": {"s": 0.1}, "by": "a"}, {"of": {"s": 0.2}, "by": "b"}])
        {'n': 1, 'of': {'s': 0.3}, 'by': 'a, b'}
    """
    total: dict[str, Any] = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        values = [part[name] for part in parts if part.get(name) is not None]
        if values and all(isinstance(value, Mapping) for value in values):
            total[name] = add_up(values)
        elif values and all(map(is_number, values)):
            total[name] = round(sum(values), 12)
        elif values and all(isinstance(value, str) for value in values):
            total[name] = ", ".join(dict.fromkeys(values))
        else:
            total[name] = values[0] if values else None
    return total


class Budget:
    """The usage of a run, checked against its limits.

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
        self._kept: dict[str, Any] = {}

    def spend(self, usage: Mapping[str, Any], share: float = 1.0) -> None:
        """Count one answer; one without usage counts as the mean of the others.

        Args:
            usage: as the API gave it.
            share: of the price that was asked for it.
        """
        used = Tokens.of(usage)
        self.requests += 1
        if not used.total:
            self.unmetered += 1
            return
        self.tokens += used
        if self.price:
            self.cost += share * self.price.cost(used)

    def refuses(self, in_flight: int) -> str:
        """Return why one more request may exceed a limit, if all in flight take the mean.

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
            for flag, used, limit in self._limits()
            if used * then > limit * metered
        )

    def _blind(self, in_flight: int) -> str:
        if not self._limits():
            return ""
        if self.unmetered >= _BLIND:
            return "the model does not say how many tokens its answers take: no limit can be kept"
        return "what an answer takes is not known yet" if in_flight else ""

    def _limits(self) -> list[tuple[str, float, float]]:
        limited: list[tuple[str, float, float]] = []
        if self.max_cost is not None:
            limited.append((f"--max-cost {self.max_cost:g}", self.cost, self.max_cost))
        if self.max_tokens is not None:
            limited.append((f"--max-tokens {self.max_tokens}", self.tokens.total, self.max_tokens))
        return limited

    def keep_cost(self, said: Mapping[str, Any]) -> None:
        """Keep the cost of an earlier count of the same answers if this one has no prices.

        Args:
            said: as `totals` gave it; nothing of it is kept if it counts others.

        Examples:
            >>> budget = Budget(Limits(), "openai:m")
            >>> budget.spend({"prompt_tokens": 30, "completion_tokens": 10})
            >>> budget.keep_cost(budget.totals() | {"cost": 0.5, "currency": "EUR"})
            >>> budget.totals()["cost"]
            0.5
        """
        own = self.totals()
        if all(said.get(name) == value for name, value in own.items()):
            self._kept = {name: said[name] for name in _COST if name in said}

    def totals(self) -> dict[str, Any]:
        """Return the usage for `run.json`; with a cost only if prices are known."""
        said: dict[str, Any] = {"requests": self.requests, "unmetered": self.unmetered}
        said |= {f"{name}_tokens": getattr(self.tokens, name) for name in Tokens.__slots__}
        if self.prices and self.price:
            said |= {
                "cost": round(self.cost, 6),
                "currency": self.prices.currency,
                "prices_of": self.prices.date.isoformat(),
            }
        return said | self._kept
