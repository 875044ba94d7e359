"""Servers with a form of their own: one text, and media in fields beside it."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from omnidata import jsontext
from omnidata.adapters.answers import answer_of, excerpt, sendable
from omnidata.adapters.api import ApiModel, Preset
from omnidata.adapters.keys import Key
from omnidata.adapters.render import RenderedMessage, RenderedPart
from omnidata.errors import CallError
from omnidata.types import Completion, GenerationParams

if TYPE_CHECKING:
    import aiohttp

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

    async def ask(self, data: io.BytesIO | aiohttp.FormData, mime: str = "") -> dict[str, Any]:
        """Send a body and return the JSON object of the answer.

        Raises:
            CallError: no answer came, or it is no JSON object.
        """
        headers = {**self.common_headers, **({"Content-Type": mime} if mime else {})}
        body, where = await self.post(data, headers)
        return answer_of(body, dict[str, Any], "JSON object", where)

    def reply(self, answer: Mapping[str, Any], *names: str) -> str:
        """Return the text of an answer under the first of some names that has one.

        Raises:
            CallError: none has a text.
        """
        texts = [answer[name] for name in names if isinstance(answer.get(name), str)]
        if not texts:
            said = excerpt(self.key.redact(jsontext.encode(answer).decode()))
            raise CallError(f"the answer has not the expected form: {said}", where=self.url)
        return next(filter(None, texts), "")


def text_of(messages: Sequence[RenderedMessage]) -> str:
    """Return all texts, those of a message on lines of their own, messages a blank line apart."""
    turns = ("\n".join(p.text for p in turn.parts if p.kind == "text") for turn in messages)
    return "\n\n".join(filter(None, turns))


def parts_of_kind(messages: Sequence[RenderedMessage], kind: str) -> list[RenderedPart]:
    """Return all media of a kind, in order."""
    return [part for turn in messages for part in turn.parts if part.kind == kind]


def form(fields: Mapping[str, Any], files: Mapping[str, RenderedPart]) -> aiohttp.FormData:
    """Return a multipart body, which can be sent once; fields that are no text become JSON."""
    import aiohttp

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
            for part in parts_of_kind(messages, kind)
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
        answer = await self.ask(form(fields | self.preset.extra_body, files))
        said = self.reply(answer, *self.replies)
        return Completion(text=said.lstrip(self.lead).strip().removesuffix(self.end).strip())
