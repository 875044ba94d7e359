"""Anthropic's Messages and OpenAI's Responses, as servers see them, with calls of their tools."""

from __future__ import annotations

import base64
import json
from typing import Any

from aiohttp import web

from tests.adapters.servers import Asked, Fault, from_data_url, seen_image, seen_text

KEY = "test-key-0123456789"


class Messages:
    """Messages: every `tool_use` is followed by its result, and by nothing before it.

    Args:
        content: blocks to answer with, in place of the text.
        beta: the header that a request must have; empty for none.
    """

    path = "/v1/messages"
    fields = frozenset(
        {"model", "max_tokens", "messages", "system", "temperature", "tools", "stop_sequences"}
    )

    def __init__(self, content: Any = None, beta: str = "", extra: frozenset[str] = frozenset()):
        self.content, self.beta, self.extra = content, beta, extra

    async def read(self, request: web.Request) -> Asked:
        assert request.headers["Authorization"] == f"Bearer {KEY}", "wrong key"
        assert request.headers.get("anthropic-beta", "") == self.beta, "wrong beta"
        payload = json.loads(await request.read())
        unknown = payload.keys() - self.fields - self.extra
        assert not unknown, f"unknown fields {unknown}"
        assert payload["max_tokens"] >= 1
        old = request.headers["anthropic-version"] == "2023-06-01"
        assert old == ("temperature" in payload), "temperature: Extra inputs are not permitted"
        seen = [f"system: {seen_text(payload['system'])}"] if payload.get("system") else []
        open_calls: list[str] = []
        for message in payload["messages"]:
            blocks = message["content"]
            assert blocks, "an empty turn"
            results = [block for block in blocks if block["type"] == "tool_result"]
            assert blocks[: len(results)] == results, "results come first"
            assert [result["tool_use_id"] for result in results] == open_calls, "results"
            open_calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
            for block in blocks:
                seen += [f"{message['role']}: {line}" for line in self._block(block)]
        assert not open_calls, "a call without its result"
        assert payload["messages"][-1]["role"] == "user"
        return Asked(seen, payload)

    def _block(self, block: dict[str, Any]) -> list[str]:
        kind = block["type"]
        if kind == "text":
            assert block["text"].strip(), "an empty text"
            return [seen_text(block["text"])]
        if kind == "image":
            source = block["source"]
            assert source.keys() == {"type", "media_type", "data"}
            data = base64.b64decode(source["data"], validate=True)
            return [seen_image(data, source["media_type"].removeprefix("image/"))]
        if kind == "tool_use":
            assert block["id"].startswith("toolu_")
            return [f"call {block['name']} {json.dumps(block['input'])}"]
        assert kind == "tool_result"
        inner = [line for each in block.get("content", []) for line in self._block(each)]
        return [f"result of {block['tool_use_id']}: {line}" for line in inner or ["nothing"]]

    def reply(self, asked: Asked, text: str | None, fault: Fault) -> Any:
        content = [] if text is None else [{"type": "text", "text": text}]
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": asked.payload["model"],
            "content": content if self.content is None else self.content,
            "stop_reason": {"stop": "end_turn"}.get(fault.finish, fault.finish),
            "stop_sequence": None,
            "usage": {"input_tokens": 100, "output_tokens": 10, "cache_read_input_tokens": 0},
        }


class Responses:
    """Responses: every `computer_call` is followed by its picture.

    Args:
        output: items to answer with, in place of a message.
        why: why the answer is incomplete; empty for a complete one.
    """

    path = "/v1/responses"
    fields = frozenset(
        {"input", "model", "store", "temperature", "max_output_tokens", "tools", "truncation"}
    )

    def __init__(self, output: Any = None, why: str = "") -> None:
        self.output, self.why = output, why

    async def read(self, request: web.Request) -> Asked:
        assert request.headers["Authorization"] == f"Bearer {KEY}", "wrong key"
        payload = json.loads(await request.read())
        assert not payload.keys() - self.fields, payload.keys()
        assert payload["store"] is False
        seen = []
        open_calls: list[str] = []
        for item in payload["input"]:
            if item.get("type") == "computer_call":
                assert item["id"] and item["status"] == "completed"
                assert isinstance(item["pending_safety_checks"], list)
                open_calls.append(item["call_id"])
                seen.append(f"call {json.dumps(item.get('action', item.get('actions')))}")
            elif item.get("type") == "computer_call_output":
                open_calls.remove(item["call_id"])
                assert item["output"]["type"] == "computer_screenshot"
                mime, data = from_data_url(item["output"]["image_url"])
                line = seen_image(data, mime.removeprefix("image/"))
                seen.append(f"result of {item['call_id']}: {line}")
            else:
                assert not open_calls, "a call without its picture"
                seen += [f"{item['role']}: {self._part(part)}" for part in item["content"]]
        assert not open_calls, "a call without its picture"
        return Asked(seen, payload)

    def _part(self, part: dict[str, Any]) -> str:
        if part["type"] in ("input_text", "output_text"):
            return seen_text(part["text"])
        assert part.keys() == {"type", "image_url", "detail"}
        mime, data = from_data_url(part["image_url"])
        return seen_image(data, mime.removeprefix("image/"))

    def reply(self, asked: Asked, text: str | None, fault: Fault) -> Any:
        content: list[Any] = [{"type": "output_text", "text": text, "annotations": []}]
        if fault.refusal:
            content = [{"type": "refusal", "refusal": fault.refusal}]
        message = {"type": "message", "id": "m", "role": "assistant", "content": content}
        return {
            "id": "resp_1",
            "object": "response",
            "model": asked.payload["model"],
            "status": "incomplete" if self.why else "completed",
            "error": None,
            "incomplete_details": {"reason": self.why} if self.why else None,
            "output": [message] if self.output is None else self.output,
            "usage": {
                "input_tokens": 100,
                "output_tokens": 10,
                "total_tokens": 110,
                "output_tokens_details": {"reasoning_tokens": 4},
            },
        }
