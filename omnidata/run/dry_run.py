"""The requests of a run without sending them: its first conversation, and an estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omnidata.adapters.media_budget import arrange, parts_of
from omnidata.errors import MediaError, plural
from omnidata.run.adapter_contract import describe_model, render_request
from omnidata.run.cost import Budget, Limits, Tokens
from omnidata.run.evaluate import usage_of_answers
from omnidata.run.selection import Shard, select
from omnidata.tasks.asking import Asking
from omnidata.types import (
    Adapter,
    Conversation,
    GenerationParams,
    LoadedDataset,
    Part,
    Prepared,
    Request,
    Step,
)

_SAMPLED = 8
_BYTES_PER_TOKEN = 4


def dry_run(
    task: Asking,
    source: LoadedDataset,
    adapter: Adapter,
    out: Path,
    limits: Limits,
    *,
    where: Mapping[str, str] = {},
    exclude: frozenset[str] = frozenset(),
    limit: int | None = None,
    part: Shard | None = None,
    params: GenerationParams | None = None,
) -> dict[str, Any]:
    """Return a summary of the requests of `evaluate`, without sending or writing anything.

    The first conversation is rendered. Up to 8 steps without an answer, evenly spread, are prepared
    to estimate the bytes of a request. Tokens are estimated from the usage of answers in the run
    folder; without any, only texts count, 4 bytes of UTF-8 per token, and answers have their
    maximum length.

    Args:
        task: the benchmark with its options.
        source: the loaded data.
        adapter: the model.
        out: the run folder; may be missing.
        limits: those of the run; its prices are used.
        where: tag -> value that an episode must have.
        exclude: sample ids to leave out.
        limit: the first so many steps only.
        part: the shard.
        params: how to decode; the model's own if None.

    Returns:
        `sample_id`, `conversation` (messages of texts and receipt lines), `steps`, `answered`,
        `requests`, `prepared` (how many steps were made ready), `unreadable` (why others could not
        be), `bytes` to send, `tokens` (`input`, `output`, `how`) and, with a price, `cost`.

    Raises:
        UsageError: the model cannot take the steps, its attributes are not what they should be, or
            a cost is limited and has no price.
        MediaError: none of the steps tried can be made ready.
        AdapterError: the model's own code failed.
    """
    steps = select(source.steps, where=where, exclude=exclude, limit=limit, task=task, part=part)
    about = describe_model(task, adapter, params, steps, limits.concurrency)
    budget = Budget(limits, about.name)
    answered = usage_of_answers(out)
    left = [step for step in steps if step.sample_id not in answered]
    among = left or steps
    count = min(_SAMPLED, len(among))
    tried = [among[number * len(among) // count] for number in range(count)]
    ready, problems = _prepare(task, adapter, tried)
    first = ready[0]
    mean = sum(prepared.size for prepared in ready) / len(ready)
    used = [tokens for tokens in answered.values() if tokens.total]
    tokens = estimate_tokens(used, ready, len(left), about.params)
    preview: dict[str, Any] = {
        "model": about.name,
        "sample_id": first.request.sample_id,
        "conversation": _show_messages(_arrange(first.request.conversation, adapter), first),
        "steps": len(steps),
        "answered": len(steps) - len(left),
        "requests": -(-len(left) // adapter.max_batch),
        "prepared": len(ready),
        "unreadable": problems,
        "bytes": round(mean * len(left)),
        "tokens": tokens,
    }
    return preview | price_of(tokens, budget)


def price_of(tokens: Mapping[str, Any], budget: Budget, share: float = 1.0) -> dict[str, Any]:
    """Return the cost of `estimate_tokens`, at a share of the price; empty without a price."""
    if not (budget.price and budget.prices):
        return {}
    counted = {name: tokens[name] for name in Tokens.__slots__ if name in tokens}
    return {
        "cost": {
            "amount": round(share * budget.price.cost(Tokens(**counted)), 6),
            "currency": budget.prices.currency,
            "prices_of": budget.prices.date.isoformat(),
        }
    }


def _prepare(
    task: Asking, adapter: Adapter, steps: Sequence[Step]
) -> tuple[list[Prepared], list[str]]:
    ready: list[Prepared] = []
    problems: list[str] = []
    for step in steps:
        try:
            ready.append(
                render_request(task, adapter, Request(step.sample_id, task.conversation(step, [])))
            )
        except MediaError as error:
            problems.append(f"{step.sample_id}: {error}")
            if len(problems) == len(steps):
                raise
    return ready, problems


def _arrange(conversation: Conversation, adapter: Adapter) -> Conversation:
    from omnidata.adapters.api import ApiModel  # its HTTP client takes long to import

    if not isinstance(adapter, ApiModel):
        return conversation
    arranged, _ = arrange(conversation, adapter.preset.layout, adapter.preset.release)
    return arranged


def _show_messages(conversation: Conversation, prepared: Prepared) -> list[dict[str, Any]]:
    lines = iter(prepared.receipt.get("parts", ()))

    def part(item: Part) -> dict[str, Any]:
        if item.media is None:
            return {"text": item.text, **(next(lines, {}) if item.about else {})}
        return {"path": item.media.path, **next(lines, {"role": item.role, "kind": item.kind})}

    shown: list[dict[str, Any]] = [
        {"role": message.role, "parts": [part(item) for item in message.parts]}
        for message in conversation
    ]
    if left_out := list(lines):  # by the layout
        shown.append({"role": "left out", "parts": left_out})
    return shown


def estimate_tokens(
    used: Sequence[Tokens], ready: Sequence[Prepared], count: int, params: GenerationParams
) -> dict[str, Any]:
    """Return the estimated `input` and `output` tokens of `count` steps, and `how` they are known.

    The mean of `used` answers counts; without any, texts of `ready` requests.
    """
    if used:
        total, names = sum(used, Tokens()), Tokens.__slots__
        how = f"as {plural(len(used), 'answer')} in the run folder used on average"
        return {name: round(getattr(total, name) * count / len(used)) for name in names} | {
            "how": how
        }
    texts = sum(
        len(part.text.encode("utf-8", "replace"))
        for prepared in ready
        for part in parts_of(prepared.request.conversation)
    )
    longest = params.max_new_tokens
    how = f"input: texts only, {_BYTES_PER_TOKEN} bytes a token, media are not counted; "
    how += f"output: at most {longest} an answer" if longest else "output: not limited, not counted"
    return {
        "input": round(texts / len(ready) / _BYTES_PER_TOKEN * count),
        "output": (longest or 0) * count,
        "how": how,
    }
