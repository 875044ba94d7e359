"""What a run would send: its first conversation, and an estimate. No request is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omnidata import predictions
from omnidata.adapters.api import ApiModel
from omnidata.adapters.media_budget import arrange
from omnidata.errors import MediaError, counted
from omnidata.run.adapter_contract import check_adapter, check_taken, rendered
from omnidata.run.cost import Budget, Limits, Tokens
from omnidata.run.folder import TRANSIENT
from omnidata.run.selection import Shard, select, shard
from omnidata.types import (
    Adapter,
    Conversation,
    GenerationParams,
    LoadedDataset,
    Part,
    Prepared,
    Request,
    Step,
    Task,
)

_SAMPLED = 8
_BYTES_PER_TOKEN = 4


def dry_run(
    task: Task,
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
    """Show what `evaluate` would do with the same arguments; nothing is sent or written.

    The first conversation is rendered as it would be sent. Of the steps without an answer up to 8,
    evenly spread, are made ready to learn how many bytes a request has. Tokens are taken from the
    answers that the run folder has, if they say what they used; else only those of texts are
    estimated, 4 bytes of UTF-8 each, and answers are taken to be as long as they may be.

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
    check_adapter(adapter)
    params = params or adapter.params
    budget = Budget(limits, adapter.name)
    chosen = select(source.steps, where=where, exclude=exclude, limit=limit, spelling=task.spelling)
    steps = shard(chosen, *part) if part else chosen
    check_taken(task, adapter, steps)
    answered = _answered(out)
    left = [step for step in steps if step.sample_id not in answered]
    tried = _spread(left or steps)
    ready, problems = _ready(task, adapter, tried)
    first = ready[0]
    mean = sum(prepared.size for prepared in ready) / len(ready)
    used = [tokens for tokens in answered.values() if tokens.total]
    tokens = _measured(used, len(left)) if used else _guessed(ready, len(left), params)
    preview: dict[str, Any] = {
        "model": adapter.name,
        "sample_id": first.request.sample_id,
        "conversation": _shown(_arranged(first.request.conversation, adapter), first),
        "steps": len(steps),
        "answered": len(steps) - len(left),
        "requests": -(-len(left) // adapter.max_batch),
        "prepared": len(ready),
        "unreadable": problems,
        "bytes": round(mean * len(left)),
        "tokens": tokens,
    }
    if budget.price and budget.prices:
        counted = {name: tokens[name] for name in Tokens.__slots__ if name in tokens}
        preview["cost"] = {
            "amount": round(budget.price.cost(Tokens(**counted)), 6),
            "currency": budget.prices.currency,
            "prices_of": budget.prices.date.isoformat(),
        }
    return preview


def _answered(out: Path) -> dict[str, Tokens]:
    """What each answer in the run folder used; failures are asked again and do not count."""
    path = out / "predictions.jsonl"
    if not path.is_file():
        return {}
    return {
        line.sample_id: Tokens.of(line.usage)
        for line in predictions.read(path, of_run=True)
        if line.delivery not in TRANSIENT
    }


def _spread(steps: Sequence[Step]) -> list[Step]:
    """Up to 8 steps, evenly spread, the first among them."""
    count = min(_SAMPLED, len(steps))
    return [steps[number * len(steps) // count] for number in range(count)]


def _ready(task: Task, adapter: Adapter, steps: Sequence[Step]) -> tuple[list[Prepared], list[str]]:
    """Requests made ready, and why others could not be."""
    ready: list[Prepared] = []
    problems: list[str] = []
    for step in steps:
        try:
            ready.append(rendered(task, adapter, Request(step.sample_id, task.prompt(step, []))))
        except MediaError as error:
            problems.append(f"{step.sample_id}: {error}")
            if len(problems) == len(steps):
                raise
    return ready, problems


def _arranged(conversation: Conversation, adapter: Adapter) -> Conversation:
    """The conversation in the order in which the model reads it."""
    if not isinstance(adapter, ApiModel):
        return conversation
    arranged, _ = arrange(conversation, adapter.preset.layout, adapter.preset.release)
    return arranged


def _shown(conversation: Conversation, prepared: Prepared) -> list[dict[str, Any]]:
    """Messages with their texts, and for each medium its line of the receipt."""
    lines = iter(prepared.receipt.get("parts", ()))

    def part(item: Part) -> dict[str, Any]:
        if item.media is None:
            return {"text": item.text}
        return {"path": item.media.path, **next(lines, {"role": item.role, "kind": item.kind})}

    shown: list[dict[str, Any]] = [
        {"role": message.role, "parts": [part(item) for item in message.parts]}
        for message in conversation
    ]
    if left_out := list(lines):  # by the layout
        shown.append({"role": "left out", "parts": left_out})
    return shown


def _measured(used: Sequence[Tokens], count: int) -> dict[str, Any]:
    """The mean of answers that were given, for so many more."""
    total = sum(used, Tokens())
    tokens: dict[str, Any] = {
        name: round(getattr(total, name) * count / len(used)) for name in Tokens.__slots__
    }
    return {**tokens, "how": f"as {counted(len(used), 'answer')} in the run folder used on average"}


def _guessed(ready: Sequence[Prepared], count: int, params: GenerationParams) -> dict[str, Any]:
    """Tokens of texts, and of answers at their longest."""
    texts = sum(
        len(part.text.encode("utf-8", "replace"))
        for prepared in ready
        for message in prepared.request.conversation
        for part in message.parts
    )
    longest = params.max_new_tokens
    how = f"input: texts only, {_BYTES_PER_TOKEN} bytes a token, media are not counted; "
    how += f"output: at most {longest} an answer" if longest else "output: not limited, not counted"
    return {
        "input": round(texts / len(ready) / _BYTES_PER_TOKEN * count),
        "output": (longest or 0) * count,
        "how": how,
    }
