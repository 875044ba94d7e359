"""OpenAI's Responses, with its computer tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from omnidata import jsontext
from omnidata.adapters.answers import (
    accounting,
    answer_of,
    delivery_of,
    only_reasoning_error,
    tool_called,
)
from omnidata.adapters.json_api import Written, data_url, raw_text
from omnidata.adapters.render import RenderedMessage, RenderedPart, items_of
from omnidata.adapters.wires.openai import OpenAIModel
from omnidata.types import Completion, GenerationParams, Modality

_PREVIEW = "computer_use_preview"
_TOOL = "computer"


class _Part(msgspec.Struct):
    type: str
    text: str | None = None
    refusal: str | None = None


class _Item(msgspec.Struct):
    type: str
    content: list[_Part] | None = None
    action: Any = None
    actions: Any = None
    pending_safety_checks: Any = None


class _Why(msgspec.Struct):
    reason: str | None = None


class _Response(msgspec.Struct):
    output: list[_Item]
    status: str | None = None
    incomplete_details: _Why | None = None
    model: Any = None
    usage: Any = None


class OpenAIResponses(OpenAIModel):
    """A model behind Responses; nothing is kept at the server.

    A prompt with a computer tool declares it; an earlier call is a `computer_call`, and the picture
    that the user shows next is its `computer_call_output`. The answer is then a JSON list of the
    messages and calls as they came, without ids.
    """

    wire: ClassVar[str] = "openai-responses"
    spec_row: ClassVar[Mapping[str, Any]] = {**OpenAIModel.spec_row, "accepts": ["image", "video"]}
    path: ClassVar[str] = "/responses"
    sends: ClassVar[frozenset[Modality]] = frozenset({"image"})
    controls: frozenset[str] = frozenset({"temperature", "max_new_tokens"})
    tools: ClassVar[frozenset[str]] = frozenset({_TOOL, _PREVIEW})
    ours: ClassVar[frozenset[str]] = frozenset(
        {"input", "model", "tools", "store", "stream", "temperature", "max_output_tokens"}
    )

    def write(self, messages: Sequence[RenderedMessage]) -> tuple[Written, int]:
        tools = [part for turn in messages for part in turn.parts if part.kind == "tool"]
        names = tuple(part.role for part in tools)
        # What is clicked on has to be seen as it is; the other tool's models have no such detail.
        detail = "original" if _TOOL in names else "auto"
        body: dict[str, Any] = {"input": list(_input(messages, detail))}
        if tools:
            body["tools"] = [msgspec.Raw(part.text.encode()) for part in tools]
        return Written.of(body, names)

    def read(self, body: str, params: GenerationParams, where: str, *, tools: bool) -> Completion:
        response = answer_of(body, _Response, "response", where)
        why = response.incomplete_details.reason if response.incomplete_details else None
        delivery = delivery_of(why or response.status, where=where)
        parts = [part for item in response.output for part in item.content or ()]
        parts = [part for part in parts if part.type in ("output_text", "refusal")]
        calls = [item for item in response.output if item.type.endswith("_call")]
        refusal = "".join(part.refusal or "" for part in parts)
        error = ""
        if delivery == "truncated":
            error = "the answer was cut at its greatest length"
        elif refusal or delivery == "refused":
            delivery, error = "refused", refusal or "the answer was held back by a content filter"
        elif calls and not (tools and all(item.type == "computer_call" for item in calls)):
            raise tool_called(where)
        elif not calls and not parts:
            raise only_reasoning_error(where)
        return Completion(
            delivery=delivery,
            text=_items_as_json(response.output)
            if tools
            else "".join(part.text or "" for part in parts),
            error=error,
            **accounting(response.usage, response.model),
        )

    def request_settings(self, params: GenerationParams, tools: Sequence[str]) -> dict[str, Any]:
        settings: dict[str, Any] = {"model": self.preset.model, "store": False}
        if _PREVIEW in tools:  # its model has to shorten long prompts
            settings["truncation"] = "auto"
        if params.temperature is not None:
            settings["temperature"] = params.temperature
        if params.max_new_tokens is not None:
            settings["max_output_tokens"] = params.max_new_tokens
        return settings


def _input(messages: Sequence[RenderedMessage], detail: str) -> Iterator[dict[str, Any]]:
    calls = 0
    for number, message in enumerate(messages):
        if message.role != "assistant":
            shown = _result(messages, number)
            parts = [part for part in message.parts if part.kind != "tool" and part is not shown]
            if parts:
                yield {"role": message.role, "content": [_content(p, detail) for p in parts]}
            continue
        follows = messages[number + 1 : number + 2]
        result = _result(messages, number + 1) if follows else None
        outputs = []
        for part in message.parts:
            for item in items_of(part.text) if part.kind == "call" else [_message(part)]:
                if item.get("type") != "computer_call":
                    yield item if "role" in item else {"role": "assistant", **item}
                elif result is None:  # a call without its picture is refused
                    yield _message(RenderedPart("text", jsontext.compact(item)))
                else:
                    calls += 1
                    name = f"call_{calls}"
                    yield {"pending_safety_checks": [], **item, "id": f"cu_{calls}",
                           "call_id": name, "status": "completed"}  # fmt: skip
                    picture = {"type": "computer_screenshot", "image_url": data_url(result)}
                    outputs.append(
                        {"type": "computer_call_output", "call_id": name, "output": picture}
                    )
        yield from outputs


def _result(messages: Sequence[RenderedMessage], number: int) -> RenderedPart | None:
    before = messages[number - 1].parts if number else ()
    if messages[number].role != "user" or not any(part.kind == "call" for part in before):
        return None
    if not any(
        item.get("type") == "computer_call"
        for part in before
        if part.kind == "call"
        for item in items_of(part.text)
    ):
        return None
    pictures = [part for part in messages[number].parts if part.kind == "image"]
    return pictures[-1] if pictures else None


def _message(part: RenderedPart) -> dict[str, Any]:
    said = {"type": "output_text", "text": raw_text(part.text)}
    return {"role": "assistant", "content": [said]}


def _content(part: RenderedPart, detail: str) -> dict[str, Any]:
    if part.kind == "text":
        return {"type": "input_text", "text": raw_text(part.text)}
    return {"type": "input_image", "image_url": data_url(part), "detail": detail}


def _items_as_json(output: Sequence[_Item]) -> str:
    items: list[dict[str, Any]] = []
    for item in output:
        if item.type == "message":
            said = [
                {"type": "output_text", "text": part.text or ""}
                for part in item.content or ()
                if part.type == "output_text"
            ]
            items.append({"type": "message", "content": said})
        elif item.type == "computer_call":
            call = {"type": item.type, "action": item.action, "actions": item.actions}
            call |= {"pending_safety_checks": item.pending_safety_checks}
            items.append({name: value for name, value in call.items() if value})
    return jsontext.compact(items)
