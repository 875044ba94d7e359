"""The server of MiniCPM-o 4.5: JSON with media in base64."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from omnidata import jsontext
from omnidata.adapters.answers import delivery_of, error_in_answer, first_of, tool_called
from omnidata.adapters.form_api import FlatModel, parts_of_kind, text_of
from omnidata.adapters.render import RenderedMessage
from omnidata.types import Completion, GenerationParams


class MiniCPM(FlatModel):
    """POST {base}/v1/chat/completions with one message, any number of images, one clip, one track.

    Not Chat Completions, in spite of its path: the message's content is a string, the media are
    `images` (a list), `video_base64` and `audio_base64`, and `do_sample` says whether the
    temperature is above 0. The reply is `text`, or `choices` as in Chat Completions; nothing is cut
    off it.
    """

    wire: ClassVar[str] = "minicpm"
    path: ClassVar[str] = "/v1/chat/completions"
    most: ClassVar[Mapping[str, int]] = {"max_videos": 1, "max_audios": 1}
    controls: frozenset[str] = frozenset({"temperature", "max_new_tokens"})
    ours: ClassVar[frozenset[str]] = controls | {
        *("messages", "images", "video_base64", "audio_base64", "do_sample")
    }

    def write(self, messages: Sequence[RenderedMessage]) -> tuple[bytes, int]:
        text = msgspec.Raw(jsontext.encode(text_of(messages)))
        body: dict[str, Any] = {"messages": [{"role": "user", "content": text}]}
        if images := parts_of_kind(messages, "image"):
            body["images"] = [part.data for part in images]
        for kind in ("video", "audio"):
            for part in parts_of_kind(messages, kind):
                body[f"{kind}_base64"] = part.data
        encoded = msgspec.json.encode(body)
        return encoded, len(encoded)

    async def send(self, payload: bytes, params: GenerationParams) -> Completion:
        settings = dict(self.preset.extra_body)
        if params.temperature is not None:
            settings |= {"temperature": params.temperature, "do_sample": params.temperature > 0}
        if params.max_new_tokens is not None:
            settings["max_new_tokens"] = params.max_new_tokens
        body = payload
        if settings:
            body = msgspec.json.encode(settings)[:-1] + b"," + payload[1:]
        answer = await self.ask(io.BytesIO(body), "application/json")
        usage = answer.get("usage")
        choice = _first_choice(answer, self.url)
        reasons = (each.get("finish_reason") for each in (choice, answer))
        reason = next((each for each in reasons if isinstance(each, str)), None)
        message = choice.get("message")
        has_text = isinstance(answer.get("text"), str) and answer["text"]
        said = message if isinstance(message, dict) and not has_text else answer
        if said.get("error"):
            raise error_in_answer(said["error"], where=self.url)
        if said.get("tool_calls") or said.get("function_call"):
            raise tool_called(self.url)
        return Completion(
            delivery="ok" if reason is None else delivery_of(reason, where=self.url),
            text=self.reply(said, "text", "content"),
            usage=usage if isinstance(usage, dict) else {},
        )


def _first_choice(answer: Mapping[str, Any], where: str) -> dict[str, Any]:
    choices = answer.get("choices")
    if not isinstance(choices, list):
        return {}
    found = [choice for choice in choices if isinstance(choice, dict)]
    return found[first_of([choice.get("index") for choice in found], where)] if found else {}
