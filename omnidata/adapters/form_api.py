"""Servers with a form of their own: one text, and media in fields beside it."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import aiohttp
import msgspec

from omnidata import jsontext
from omnidata.adapters.api import ApiModel, delivery_of, error_in_answer, first_of, tool_called
from omnidata.adapters.http import parse_json, sendable
from omnidata.adapters.keys import Key
from omnidata.adapters.presets import Preset
from omnidata.adapters.render import RenderedMessage, RenderedPart
from omnidata.errors import CallError
from omnidata.types import Completion, GenerationParams

_EXCERPT = 200
_ENDINGS = {
    "audio/mp4": "m4a",
    "audio/mpeg": "mp3",
    "image/jpeg": "jpg",
    "video/quicktime": "mov",
    "video/x-matroska": "mkv",
}


class FlatModel(ApiModel):
    """A model behind a form that has fields for media but no places for them in the text.

    Texts keep their order, and so do media of a kind; which text stands beside which medium is
    lost. A key, if there is one, is sent as a bearer token.

    Attributes:
        path: appended to the address, unless it ends with it.
        most: the limits of the form, by the name that they have in `Capabilities`.

    Args:
        preset: the row that describes the model.
        key: the secret that the server asks for, or none.

    Raises:
        UsageError: a generation setting that the form has no field for.
    """

    path: ClassVar[str] = ""
    most: ClassVar[Mapping[str, int]] = {}
    controls: frozenset[str] = frozenset()

    def __init__(self, preset: Preset, key: Key) -> None:
        super().__init__(preset, key)
        limits: dict[str, Any] = {
            name: most if (given := getattr(self.capabilities, name)) is None else min(most, given)
            for name, most in self.most.items()
        }
        self.capabilities = dataclasses.replace(self.capabilities, **limits)
        self.url = preset.base_url.removesuffix(self.path) + self.path

    async def _post(self, data: io.BytesIO | aiohttp.FormData, mime: str = "") -> dict[str, Any]:
        headers = {**self.common_headers, **({"Content-Type": mime} if mime else {})}
        async with self.session().post(self.url, data=data, headers=headers) as response:
            body = await response.text()
        try:
            answer = parse_json(body)
        except RecursionError:
            answer = jsontext.BROKEN
        if not isinstance(answer, dict):
            raise self._unreadable(body)
        if answer.get("error"):
            raise error_in_answer(answer["error"], where=self.url)
        return answer

    def _text(self, answer: Mapping[str, Any], *names: str) -> str:
        texts = [answer[name] for name in names if isinstance(answer.get(name), str)]
        if not texts:
            raise self._unreadable(jsontext.encode(answer).decode())
        return next(filter(None, texts), "")

    def _unreadable(self, said: str) -> CallError:
        excerpt = " ".join(self.key.redact(said).split())[:_EXCERPT]
        return CallError(f"the answer has not the expected form: {excerpt}", where=self.url)


def text_of(messages: Sequence[RenderedMessage]) -> str:
    """Return all texts, those of a message on lines of their own, messages a blank line apart."""
    turns = ("\n".join(p.text for p in turn.parts if p.kind == "text") for turn in messages)
    return "\n\n".join(filter(None, turns))


def media_of(messages: Sequence[RenderedMessage], kind: str) -> list[RenderedPart]:
    """Return all media of a kind, in order."""
    return [part for turn in messages for part in turn.parts if part.kind == kind]


def form(fields: Mapping[str, Any], files: Mapping[str, RenderedPart]) -> aiohttp.FormData:
    """Return a multipart body, which can be sent once; fields that are no text become JSON."""
    data = aiohttp.FormData(default_to_multipart=True)
    for name, value in fields.items():
        text = value if isinstance(value, str) else jsontext.encode(value).decode()
        data.add_field(name, sendable(text))
    for name, part in files.items():
        ending = _ENDINGS.get(part.mime) or part.mime.partition("/")[2].removeprefix("x-")
        data.add_field(
            name,
            io.BytesIO(part.data),
            filename=f"{part.role or part.kind}.{ending}",
            content_type=part.mime,
        )
    return data


# Multipart forms: VITA-1.5 and Baichuan-Omni-1.5.

_Form = tuple[str, dict[str, RenderedPart]]


class FormModel(FlatModel):
    """A server that takes a multipart form: a text, and the last medium of each kind as a file.

    Attributes:
        text_field: the name of the text.
        file_field: the name of a file, with its kind for `{}`.
        fixed: what the form always says beside them; `extra_body` may say it otherwise.
        replies: names under which the reply may stand, the first that holds a text counts.
        lead, end: marks of the model, which are cut off the reply with the blanks at both ends.
    """

    text_field: ClassVar[str]
    file_field: ClassVar[str]
    fixed: ClassVar[Mapping[str, Any]]
    replies: ClassVar[tuple[str, ...]]
    lead: ClassVar[str] = ""
    end: ClassVar[str]

    def write(self, messages: Sequence[RenderedMessage]) -> tuple[_Form, int]:
        """Return the text and the files."""
        text = text_of(messages)
        files = {
            self.file_field.format(kind): part
            for kind in ("image", "video", "audio")
            for part in media_of(messages, kind)
        }
        return (text, files), len(text) + sum(len(part.data) for part in files.values())

    async def send(self, payload: _Form, params: GenerationParams) -> Completion:
        """Send one request.

        Raises:
            CallError: no answer came.
        """
        text, files = payload
        fields: dict[str, Any] = {self.text_field: text, **self.fixed}
        if params.temperature is not None and "temperature" in self.controls:
            fields["temperature"] = f"{params.temperature:g}"
        answer = await self._post(form(fields | self.preset.extra_body, files))
        said = self._text(answer, *self.replies)
        return Completion(text=said.lstrip(self.lead).strip().removesuffix(self.end).strip())


class Vita(FormModel):
    """POST {base}/generate with a question and at most one image, one clip and one track."""

    wire: ClassVar[str] = "vita"
    path: ClassVar[str] = "/generate"
    most: ClassVar[Mapping[str, int]] = {"max_images": 1, "max_videos": 1, "max_audios": 1}
    controls: frozenset[str] = frozenset({"temperature"})
    ours: ClassVar[frozenset[str]] = controls | {"question", "image", "video", "audio"}
    text_field = "question"
    file_field = "{}"
    fixed: ClassVar[Mapping[str, Any]] = {
        "model_type": "qwen2p5_instruct",
        "conv_mode": "qwen2p5_instruct",
    }
    replies = ("response",)
    lead = "☜"
    end = "<|im_end|>"


class Baichuan(FormModel):
    """POST {base} with a text and at most one file: a clip, or an image, or a track.

    The form has no fields for generation settings. Older servers call the reply `response`.
    """

    wire: ClassVar[str] = "baichuan"
    most: ClassVar[Mapping[str, int]] = {"max_media": 1}
    ours: ClassVar[frozenset[str]] = frozenset(
        {"text_query", "image_file", "video_file", "audio_file"}
    )
    text_field = "text_query"
    file_field = "{}_file"
    fixed: ClassVar[Mapping[str, Any]] = {"generate_audio": False}
    replies = ("text", "response")
    end = "<|endoftext|>"


# The server of MiniCPM-o 4.5: JSON with media in base64.


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
        *("messages", "images", "video_base64", "audio_base64", "do_sample"),
    }

    def write(self, messages: Sequence[RenderedMessage]) -> tuple[bytes, int]:
        """Return the message and its media as JSON."""
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
        """Send one request.

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
        choice = _first_choice(answer, self.url)
        reason = next((r for r in map(_reason, (choice, answer)) if r is not None), None)
        said = _unwrap(answer, choice)
        if said.get("error"):
            raise error_in_answer(said["error"], where=self.url)
        if said.get("tool_calls") or said.get("function_call"):
            raise tool_called(self.url)
        return Completion(
            delivery="ok" if reason is None else delivery_of(reason, where=self.url),
            text=self._text(said, "text", "content"),
            usage=usage if isinstance(usage, dict) else {},
        )


def _first_choice(answer: Mapping[str, Any], where: str) -> dict[str, Any]:
    choices = answer.get("choices")
    if not isinstance(choices, list):
        return {}
    found = [choice for choice in choices if isinstance(choice, dict)]
    return found[first_of([choice.get("index") for choice in found], where)] if found else {}


def _unwrap(answer: dict[str, Any], choice: Mapping[str, Any]) -> dict[str, Any]:
    message = choice.get("message")
    own = isinstance(answer.get("text"), str) and answer["text"]
    return message if isinstance(message, dict) and not own else answer


def _reason(said: Mapping[str, Any]) -> str | None:
    reason = said.get("finish_reason")
    return reason if isinstance(reason, str) else None
