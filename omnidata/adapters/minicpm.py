"""The server of MiniCPM-o 4.5: JSON with media in base64."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from omnidata import jsontext
from omnidata.adapters.capabilities import RenderedMessage
from omnidata.adapters.finish_reasons import delivered
from omnidata.adapters.flat import FlatModel, media_of, text_of
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
    controls: ClassVar[frozenset[str]] = frozenset({"temperature", "max_new_tokens"})
    ours: ClassVar[frozenset[str]] = controls | {
        *("messages", "images", "video_base64", "audio_base64", "do_sample"),
    }

    def write(self, messages: Sequence[RenderedMessage]) -> tuple[bytes, int]:
        """The message and its media as JSON."""
        text = msgspec.Raw(jsontext.encode(text_of(messages)))
        body: dict[str, Any] = {"messages": [{"role": "user", "content": text}]}
        if images := media_of(messages, "image"):
            body["images"] = [part.data for part in images]
        for kind in ("video", "audio"):
            for part in media_of(messages, kind):
                body[f"{kind}_base64"] = part.data
        encoded = msgspec.json.encode(body)
        return encoded, len(encoded)

    async def send(self, payload: bytes, params: GenerationParams) -> Completion:
        """One attempt.

        Raises:
            CallError: no answer came.
        """
        settings = dict(self.preset.extra_body)
        if params.temperature is not None:
            settings |= {"temperature": params.temperature, "do_sample": params.temperature > 0}
        if params.max_new_tokens is not None:
            settings["max_new_tokens"] = params.max_new_tokens
        body = payload
        if settings:
            body = msgspec.json.encode(settings)[:-1] + b"," + payload[1:]
        answer = await self._post(io.BytesIO(body), "application/json")
        usage = answer.get("usage")
        reason = _reason(answer)
        return Completion(
            delivery="ok" if reason is None else delivered(reason, where=self.url),
            text=self._text(_unwrapped(answer), "text", "content"),
            usage=usage if isinstance(usage, dict) else {},
        )


def _unwrapped(answer: dict[str, Any]) -> dict[str, Any]:
    """The object that holds the text: the answer itself, or the message of its first choice."""
    match answer:
        case {"text": str(text)} if text:
            return answer
        case {"choices": [{"message": dict(message)}, *_]}:
            return message
    return answer


def _reason(answer: dict[str, Any]) -> str | None:
    """Why the model stopped, where the server says so; in its own form it does not."""
    match answer:
        case {"choices": [{"finish_reason": str(reason)}, *_]} | {"finish_reason": str(reason)}:
            return reason
    return None
