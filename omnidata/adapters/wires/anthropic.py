"""Anthropic's Messages, with the computer tools of Claude."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

import msgspec

from omnidata import jsontext
from omnidata.adapters.answers import (
    accounting,
    answer_of,
    delivery_of,
    only_reasoning_error,
    tool_called,
)
from omnidata.adapters.api import Preset
from omnidata.adapters.batch_api import BatchApi, Job, Returned
from omnidata.adapters.json_api import JsonModel, Written, raw_text
from omnidata.adapters.keys import Key
from omnidata.adapters.render import RenderedMessage, RenderedPart, items_of
from omnidata.errors import UsageError
from omnidata.types import Completion, GenerationParams, Modality

_BETAS: Mapping[str, str] = {
    "computer_20241022": "computer-use-2024-10-22",
    "computer_20250124": "computer-use-2025-01-24",
    "computer_20251124": "computer-use-2025-11-24",
}
"""Tools, and what a request with one of them has in its header `anthropic-beta`."""
_WITH_TEMPERATURE = "2023-06-01"
"""The last version of the API that takes a temperature; a later one refuses it whatever it is."""
_NEWEST = "2026-10-21"


class _Block(msgspec.Struct):
    type: str
    text: str | None = None
    name: str | None = None
    input: Any = None


class _Message(msgspec.Struct):
    content: list[_Block]
    stop_reason: str | None = None
    model: Any = None
    usage: Any = None


# Batches. The file is ours: the API takes its rows as a list.


class _Job(msgspec.Struct):
    id: str
    processing_status: str = ""
    request_counts: dict[str, int] = {}
    results_url: str | None = None


class AnthropicBatches(BatchApi):
    """Anthropic's: a job is made of rows, and has no label."""

    name = "anthropic"
    max_requests = 100_000
    max_bytes = 256_000_000

    def row(self, custom_id: str, body: bytes) -> bytes:
        return json.dumps({"custom_id": custom_id})[:-1].encode() + b',"params":' + body + b"}"

    def read(self, row: Mapping[str, Any]) -> Returned | None:
        match row:
            case {"custom_id": str(name), "result": {"type": "succeeded", "message": dict(body)}}:
                return Returned(custom_id=name, status=200, body=json.dumps(body))
            case {"custom_id": str(name), "result": {"type": "errored", **rest}}:
                error = rest.get("error")
                inner = error.get("error") if isinstance(error, dict) else None
                return Returned(custom_id=name, error=inner or error or "errored")
            case {"custom_id": str(name), "result": {"type": "expired"}}:
                return Returned(custom_id=name, ended="expired")
            case {"custom_id": str(name), "result": {"type": "canceled"}}:
                return Returned(custom_id=name, ended="cancelled")
        return None

    async def create(
        self, path: Path, uploaded: str, label: str, headers: Mapping[str, str]
    ) -> str:
        rows = b",".join(path.read_bytes().splitlines())
        content = BytesIO(b'{"requests":[' + rows + b"]}")
        return (await self.call("POST", _BATCHES, _Job, headers, data=content)).id

    async def look(self, job: str) -> Job:
        found = await self.call("GET", f"{_BATCHES}/{quote(job, safe='')}", _Job)
        ended = found.processing_status == "ended"
        counts = sorted(found.request_counts.items())
        return Job(
            state="done" if ended else "running",
            word=found.processing_status,
            counts={name: number for name, number in counts if number},
            results=["results"] if ended and found.results_url else (),
        )

    async def download(self, job: str, result: str, path: Path) -> None:
        """Write the results, from the address that the job has, not from one that is named."""
        await self.save(f"{_BATCHES}/{quote(job, safe='')}/results", path)


_BATCHES = "/v1/messages/batches"


# One request.


class AnthropicMessages(JsonModel):
    """A model behind Messages.

    Pictures go in base64, clips as frames. A request with a temperature asks for the version of the
    API that has one. A prompt with a tool declares it and names its beta; an
    earlier call is a block `tool_use`, and what the user says next is its result. The answer is
    then a JSON list of the blocks `text` and `tool_use` as they came, without ids.

    Raises:
        UsageError: as `JsonModel`, or there is no limit of tokens, which every request has.
    """

    wire: ClassVar[str] = "anthropic"
    spec_row: ClassVar[Mapping[str, Any]] = {
        "base_url": "https://api.anthropic.com",
        "base_url_env": "ANTHROPIC_BASE_URL",
        "key_env": "ANTHROPIC_API_KEY",
        "accepts": ["image", "video"],
        "temperature": None,  # the newest version of the API takes none
    }
    path: ClassVar[str] = "/v1/messages"
    fixed_headers: ClassVar[Mapping[str, str]] = {"anthropic-version": _NEWEST}
    custom_headers: ClassVar[str] = "ANTHROPIC_CUSTOM_HEADERS"
    sends: ClassVar[frozenset[Modality]] = frozenset({"image"})
    controls: frozenset[str] = frozenset({"temperature", "max_new_tokens", "stop"})
    tools: ClassVar[frozenset[str]] = frozenset(_BETAS)
    ours: ClassVar[frozenset[str]] = frozenset(
        {
            *("messages", "model", "system", "tools", "stream"),
            *("temperature", "max_tokens", "stop_sequences"),
        }
    )

    def __init__(self, preset: Preset, key: Key) -> None:
        super().__init__(preset, key)
        if preset.params.max_new_tokens is None:
            raise UsageError(
                "the Messages API needs a length limit in every request",
                where=f"--model {preset.spec}",
                expected="max_new_tokens=4096, or another number",
            )
        self.batch = AnthropicBatches(self)

    def write(self, messages: Sequence[RenderedMessage]) -> tuple[Written, int]:
        heads = [part for turn in messages if turn.role == "system" for part in turn.parts]
        system = "\n\n".join(part.text for part in heads if part.kind == "text")
        tools = [part for part in heads if part.kind == "tool"]
        body: dict[str, Any] = {"messages": list(_turns(messages))}
        if system:
            body["system"] = raw_text(system)
        if tools:
            body["tools"] = [msgspec.Raw(part.text.encode()) for part in tools]
        return Written.of(body, tuple(part.role for part in tools))

    def read(self, body: str, params: GenerationParams, where: str, *, tools: bool) -> Completion:
        message = answer_of(body, _Message, "message", where)
        calls = [block for block in message.content if block.type == "tool_use"]
        texts = [block.text for block in message.content if block.type == "text" and block.text]
        reason = message.stop_reason
        # With a tool in the prompt a call is what was asked for, and its turn ends like any other.
        delivery = delivery_of(
            "end_turn" if tools and reason == "tool_use" else reason, where=where
        )
        error = {
            "truncated": "the answer was cut at its greatest length",
            "refused": f"the model ended its answer: {reason}",
        }.get(delivery, "")
        if delivery == "ok":
            if calls and not tools:
                raise tool_called(where)
            thinks = any("thinking" in block.type for block in message.content)
            if thinks and not texts and not calls:
                raise only_reasoning_error(where)
        return Completion(
            delivery=delivery,
            text=_blocks_as_json(message.content) if tools else "".join(texts),
            error=error,
            **accounting(message.usage, message.model),
        )

    def request_settings(self, params: GenerationParams, tools: Sequence[str]) -> dict[str, Any]:
        settings: dict[str, Any] = {"model": self.preset.model, "max_tokens": params.max_new_tokens}
        if params.stop:
            settings["stop_sequences"] = params.stop
        if params.temperature is not None:
            settings["temperature"] = params.temperature
        return settings

    def headers(self, params: GenerationParams, tools: Sequence[str]) -> dict[str, str]:
        """Return the version of the API that has a temperature, and the betas of tools."""
        headers: dict[str, str] = {}
        if params.temperature is not None:
            headers["anthropic-version"] = _WITH_TEMPERATURE
        if tools:
            headers["anthropic-beta"] = ",".join(_BETAS[name] for name in tools)
        return headers


def _turns(messages: Sequence[RenderedMessage]) -> Iterator[dict[str, Any]]:
    """Return the turns after the system's; the user turn after a call is its result."""
    open_calls: list[str] = []
    calls = 0
    for message in messages:
        if message.role == "system":
            continue
        if message.role == "user":
            content = [_block(part) for part in message.parts if part.kind != "text" or _says(part)]
            if open_calls:
                content = _results(open_calls, content)
                open_calls = []
        else:
            if open_calls:  # the picture that was their result has been left out
                yield {"role": "user", "content": _results(open_calls, [])}
                open_calls = []
            content = []
            for part in message.parts:
                for item in _assistant_blocks(part):
                    if item.get("type") == "tool_use":
                        calls += 1
                        item = {**item, "id": f"toolu_{calls}"}
                        open_calls.append(item["id"])
                    content.append(item)
        if content:
            yield {"role": message.role, "content": content}
    if open_calls:
        yield {"role": "user", "content": _results(open_calls, [])}


def _says(part: RenderedPart) -> bool:
    return bool(part.text.strip())


def _assistant_blocks(part: RenderedPart) -> list[dict[str, Any]]:
    if part.kind == "call":
        return items_of(part.text)
    return [_block(part)] if part.kind != "text" or _says(part) else []


def _results(calls: Sequence[str], content: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one block per call; the last one shows the screenshot."""
    results: list[dict[str, Any]] = [{"type": "tool_result", "tool_use_id": call} for call in calls]
    if content:
        results[-1]["content"] = content
    return results


def _block(part: RenderedPart) -> dict[str, Any]:
    if part.kind == "text":
        return {"type": "text", "text": raw_text(part.text)}
    source = {"type": "base64", "media_type": part.mime, "data": part.data}
    return {"type": "image", "source": source}


def _blocks_as_json(content: Sequence[_Block]) -> str:
    items: list[dict[str, Any]] = []
    for block in content:
        if block.type == "text":
            items.append({"type": "text", "text": block.text or ""})
        elif block.type == "tool_use":
            items.append({"type": "tool_use", "name": block.name, "input": block.input})
    return jsontext.compact(items)
