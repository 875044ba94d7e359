"""Servers with a form of their own: one text, and media in fields beside it."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import aiohttp

from omnidata import jsontext
from omnidata.adapters.api import ApiModel
from omnidata.adapters.capabilities import RenderedMessage, RenderedPart
from omnidata.adapters.finish_reasons import reported
from omnidata.adapters.http import parsed, sendable
from omnidata.adapters.keys import Key
from omnidata.adapters.presets import Preset
from omnidata.adapters.session import open_session
from omnidata.errors import CallError, UsageError

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
        controls: the generation settings that the form has fields for.

    Args:
        preset: the row that describes the model.
        key: the secret that the server asks for, or none.

    Raises:
        UsageError: a generation setting that the form has no field for.
    """

    path: ClassVar[str] = ""
    most: ClassVar[Mapping[str, int]] = {}
    controls: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, preset: Preset, key: Key) -> None:
        """Hold the row against what the form has; no connection is opened yet."""
        super().__init__(preset, key)
        for name, value in dataclasses.asdict(preset.params).items():
            if value is not None and name not in self.controls:
                raise UsageError(
                    f'the wire format "{self.wire}" cannot send {name}',
                    where=f"--model {preset.spec}",
                    expected=f"{name}=none, which leaves it to the server",
                )
        limits: dict[str, Any] = {
            name: most if (given := getattr(self.capabilities, name)) is None else min(most, given)
            for name, most in self.most.items()
        }
        self.capabilities = dataclasses.replace(self.capabilities, **limits)
        self.url = preset.base_url.removesuffix(self.path) + self.path
        self._session: aiohttp.ClientSession | None = None

    async def _post(self, data: io.BytesIO | aiohttp.FormData, mime: str = "") -> dict[str, Any]:
        """Send a body once.

        Returns:
            The answer, a JSON object.

        Raises:
            CallError: there is none.
        """
        if self._session is None:
            self._session = open_session(self.key, bearer=True)
        headers = {"Content-Type": mime} if mime else {}
        async with self._session.post(self.url, data=data, headers=headers) as response:
            body = await response.read()
        try:
            answer = parsed(body.decode())
        except (ValueError, RecursionError):
            answer = jsontext.BROKEN
        if not isinstance(answer, dict):
            raise self._unreadable(body.decode(errors="replace"))
        if answer.get("error"):
            raise reported(answer["error"], where=self.url)
        return answer

    def _text(self, answer: Mapping[str, Any], *names: str) -> str:
        """The first text that is not empty under one of the names.

        Raises:
            CallError: there is none of the names.
        """
        texts = [answer[name] for name in names if isinstance(answer.get(name), str)]
        if not texts:
            raise self._unreadable(jsontext.encode(answer).decode())
        return next(filter(None, texts), "")

    def _unreadable(self, said: str) -> CallError:
        excerpt = " ".join(self.key.redact(said).split())[:_EXCERPT]
        return CallError(
            f"the answer is not what the server should send: {excerpt}", where=self.url
        )

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()


def text_of(messages: Sequence[RenderedMessage]) -> str:
    """All texts in order: those of a message on lines of their own, messages a blank line apart."""
    turns = ("\n".join(p.text for p in turn.parts if p.kind == "text") for turn in messages)
    return "\n\n".join(filter(None, turns))


def media_of(messages: Sequence[RenderedMessage], kind: str) -> list[RenderedPart]:
    """All media of a kind, in order."""
    return [part for turn in messages for part in turn.parts if part.kind == kind]


def form(fields: Mapping[str, Any], files: Mapping[str, RenderedPart]) -> aiohttp.FormData:
    """A multipart body; it can be sent once. Fields that are no text are sent as JSON."""
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
