"""Wire formats that send JSON and read JSON: those of OpenAI and Anthropic."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any, ClassVar

import msgspec

from omnidata import jsontext
from omnidata.adapters.api import Headers, Preset
from omnidata.adapters.batch_api import BatchModel
from omnidata.adapters.keys import Key
from omnidata.adapters.media_budget import ALL
from omnidata.adapters.render import RenderedPart
from omnidata.errors import UsageError
from omnidata.types import Completion, GenerationParams, Modality

_SLICE = 2**18  # bytes handed to the socket at a time, so that other requests get their turn
_ENCODER = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Written:
    """A request without its generation settings.

    Attributes:
        body: the rest of the JSON object, behind its first brace.
        tools: names of the tools that are declared.
    """

    body: memoryview
    tools: tuple[str, ...] = ()

    @classmethod
    def of(cls, body: Mapping[str, Any], tools: tuple[str, ...] = ()) -> tuple[Written, int]:
        """Encode a request; return it and its size in bytes."""
        rest = memoryview(msgspec.json.encode(body))[1:]  # a copy would cost as much as base64
        return cls(rest, tools), len(rest)


class JsonModel(BatchModel):
    """A model whose requests and answers are JSON; without a key the server is sent "EMPTY".

    Attributes:
        path: of the requests, behind the base address.
        sends: the modalities that a request can hold as they are; frames of a clip are pictures.
        key_header: the header of the key, which stands for `{}` in its value.
        fixed_headers: of every request.
        environment: headers of every request, and the variables that hold them.
        custom_headers: a variable that holds more of them, a line each: "NAME: VALUE".

    Raises:
        UsageError: as `ApiModel`, or the model is to be sent what no request can hold.
    """

    path: ClassVar[str]
    sends: ClassVar[frozenset[Modality]] = ALL
    key_header: ClassVar[tuple[str, str]] = ("Authorization", "Bearer {}")
    fixed_headers: ClassVar[Mapping[str, str]] = {}
    environment: ClassVar[Mapping[str, str]] = {}
    custom_headers: ClassVar[str] = ""

    def __init__(self, preset: Preset, key: Key) -> None:
        super().__init__(preset, key)
        sent = self.accepts - ({"video"} if self.capabilities.video == "frames" else frozenset())
        if unsent := sent - self.sends:
            raise UsageError(
                f'the wire format "{self.wire}" cannot send {" and ".join(sorted(unsent))}',
                where=f"--model {preset.spec}",
                expected=f"accepts={','.join(sorted(self.accepts - unsent))}, and video=frames",
            )
        self.url = preset.base_url + self.path

    @cached_property
    def common_headers(self) -> Headers:
        """Headers of every request; those of the environment win."""
        name, value = self.key_header
        headers = Headers(
            {
                "Accept": "application/json",
                name: value.format(self.key.value or "EMPTY"),
                "Content-Type": "application/json",
                "User-Agent": f"omnidata/{version('omnidata')}",
                **self.fixed_headers,
            }
        )
        values = {name: os.environ.get(variable) for name, variable in self.environment.items()}
        headers.update({name: value.strip() for name, value in values.items() if value is not None})
        lines = os.environ.get(self.custom_headers, "").splitlines()
        pairs = (line.split(":", 1) for line in lines if ":" in line)
        headers.update({name.strip(): value.strip() for name, value in pairs})
        return headers

    @abstractmethod
    def request_settings(self, params: GenerationParams, tools: Sequence[str]) -> dict[str, Any]:
        """Return all of a request but what `write` has written, and `extra_body`.

        Args:
            params: how to decode.
            tools: the names of those that are declared.
        """

    async def send(self, payload: Written, params: GenerationParams) -> Completion:
        """Send one request.

        Raises:
            CallError: no answer came.
        """
        pieces = self._pieces(payload, params)
        headers = self.common_headers.copy()
        headers.update(self.headers(params, payload.tools))
        headers["Content-Length"] = str(sum(map(len, pieces)))
        text, where = await self.post(_slice(pieces), headers)
        return self.read(text, params, where, tools=bool(payload.tools))

    def body(self, payload: Written, params: GenerationParams) -> bytes:
        """Return the JSON text of a request."""
        return b"".join(self._pieces(payload, params))

    def _pieces(self, payload: Written, params: GenerationParams) -> tuple[bytes, memoryview]:
        settings, extra = self.request_settings(params, payload.tools), self.preset.extra_body
        for name in settings.keys() & extra.keys():
            if isinstance(settings[name], dict) and isinstance(extra[name], dict):
                extra = {**extra, name: settings[name] | extra[name]}
        settings |= extra
        return msgspec.json.encode(settings)[:-1] + b",", payload.body


async def _slice(pieces: Sequence[bytes | memoryview]) -> AsyncIterator[Any]:
    """Yield the request in slices, without a copy; aiohttp takes memoryviews too."""
    for piece in pieces:
        for begin in range(0, len(piece), _SLICE):
            yield piece[begin : begin + _SLICE]


def data_url(part: RenderedPart) -> msgspec.Raw:
    """Return a medium as a JSON string; base64 and MIME types need no escapes."""
    url = bytearray(b'"data:%b;base64,' % part.mime.encode())
    comma = len(url) - 1
    _ENCODER.encode_into(part.data, url, comma)  # base64 in quotes: a third of the time of `base64`
    url[comma : comma + 1] = b","
    return msgspec.Raw(url)


def raw_text(text: str) -> msgspec.Raw:
    """Return a text as a JSON string, lone surrogates included."""
    return msgspec.Raw(jsontext.encode(text))
