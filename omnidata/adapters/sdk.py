"""Models that are asked through a provider's SDK of the family that OpenAI and Anthropic share.

The SDK knows addresses, headers and keys. The body is encoded before, in a thread, and what comes
back is read here, so that answers and errors of all of them are judged alike.
"""

from __future__ import annotations

import base64
import ssl
from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import aiohttp
import msgspec

from omnidata import jsontext
from omnidata.adapters.api import BatchModel, error_in_answer
from omnidata.adapters.http import (
    MAX_ANSWER_BYTES,
    MAX_ERROR_BYTES,
    QuietConnector,
    connection_error,
    fault,
    is_whole,
    parse_json,
    text_of,
    too_long,
)
from omnidata.adapters.keys import Key
from omnidata.adapters.media_budget import ALL
from omnidata.adapters.presets import Preset
from omnidata.adapters.render import RenderedPart
from omnidata.errors import CallError, PlatformError, UsageError
from omnidata.types import Completion, GenerationParams, Modality

if TYPE_CHECKING:
    import httpx2

_SLICE = 2**18  # bytes handed to the socket at a time, so that other requests get their turn
_EXCERPT = 200


@dataclass(frozen=True, slots=True)
class Written:
    """A request without its generation settings.

    Attributes:
        body: the rest of the JSON object, behind its first brace.
        tools: names of the tools that are declared.
    """

    body: bytes
    tools: tuple[str, ...] = ()


class SdkModel(BatchModel):
    """A model behind an SDK, which neither retries nor follows redirects.

    Attributes:
        package: the SDK, and the extra that brings it.
        path: of the requests, behind the base address.
        sends: the modalities that a request can hold as they are; frames of a clip are pictures.
        request_ids: headers that may name the request.

    Args:
        preset: the row that describes the model.
        key: the secret that the server asks for; a server that asks for none is sent "EMPTY".

    Raises:
        PlatformError: the extra is not installed.
        UsageError: as `ApiModel`, or the model is to be sent what no request can hold.
    """

    package: ClassVar[str]
    path: ClassVar[str]
    sends: ClassVar[frozenset[Modality]] = ALL
    request_ids: ClassVar[tuple[str, ...]] = ("x-request-id", "request-id")

    def __init__(self, preset: Preset, key: Key) -> None:
        super().__init__(preset, key)
        self.sdk = _load(self.package)
        sent = self.accepts - ({"video"} if self.capabilities.video == "frames" else frozenset())
        if unsent := sent - self.sends:
            raise UsageError(
                f'the wire format "{self.wire}" cannot send {" and ".join(sorted(unsent))}',
                where=f"--model {preset.spec}",
                expected=f"accepts={','.join(sorted(self.accepts - unsent))}, and video=frames",
            )
        self.url = preset.base_url + self.path
        self._client: Any = None

    @abstractmethod
    def connect(self, **settings: Any) -> Any:
        """A client of the SDK with these settings, which all SDKs of the family have."""

    @abstractmethod
    def request_settings(self, params: GenerationParams, tools: Sequence[str]) -> dict[str, Any]:
        """All of a request but what `write` has written, and `extra_body`.

        Args:
            params: how to decode.
            tools: the names of those that are declared.
        """

    async def send(self, payload: Written, params: GenerationParams) -> Completion:
        """One attempt.

        Raises:
            CallError: no answer came.
        """
        headers = self.headers(params, payload.tools)
        text, where = await self.post(*self._pieces(payload, params), headers=headers)
        return self.read(text, params, where, tools=bool(payload.tools))

    def body(self, payload: Written, params: GenerationParams) -> bytes:
        """The JSON text of a request."""
        return b"".join(self._pieces(payload, params))

    def _pieces(self, payload: Written, params: GenerationParams) -> tuple[bytes, bytes]:
        settings = self.request_settings(params, payload.tools) | self.preset.extra_body
        return msgspec.json.encode(settings)[:-1] + b",", payload.body

    async def post(
        self, *pieces: bytes, headers: Mapping[str, str] | None = None
    ) -> tuple[str, str]:
        """Send the pieces of a JSON text, one after the other, in one attempt.

        Returns:
            What the server said, and where, for errors.

        Raises:
            CallError: no answer came.
        """
        import httpx2

        size = str(sum(map(len, pieces)))
        unread: bool = True
        try:
            response = await self._connect().post(
                self.path,
                cast_to=httpx2.Response,
                content=_slice(pieces),
                options={"headers": {"Content-Length": size, **(headers or {})}},
                stream=unread,
                stream_cls=self.sdk.AsyncStream[Any],
            )
            assert isinstance(response, httpx2.Response)  # as `cast_to` says, streamed or not
            text = await self._read(response)
        except (
            self.sdk.APIConnectionError,
            httpx2.HTTPError,
            aiohttp.ClientError,
            OSError,
        ) as error:
            cause = error.__cause__ or error
            if isinstance(cause, CallError):
                raise cause from None
            raise connection_error(cause, self.url) from None
        return text, self._where(response.headers)

    async def _judge(self, response: httpx2.Response) -> None:
        """Raise on an error status before the SDK reads the whole body."""
        if not is_whole(response.status_code):
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MAX_ERROR_BYTES + self.key.margin:
                    break
            await response.aclose()
            said = self.key.redact_start(bytes(body), MAX_ERROR_BYTES)
            where = self._where(response.headers)
            raise fault(response.status_code, response.headers, said, where=where)

    async def _read(self, response: httpx2.Response) -> str:
        body = bytearray()
        try:
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MAX_ANSWER_BYTES:
                    raise too_long(self.url)
        finally:
            await response.aclose()
        return text_of(self.key.redact_bytes(bytes(body)), self.url)

    def _connect(self) -> Any:
        if self._client is None:
            http = self.sdk.DefaultAioHttpClient(
                timeout=None, follow_redirects=False, event_hooks={"response": [self._judge]}
            )
            for transport in (http._transport, *http._mounts.values()):
                if hasattr(transport, "ssl_context"):
                    transport.client = partial(_session, transport.ssl_context)
            self._client = self.connect(
                api_key=self.key.value or "EMPTY",
                base_url=self.preset.base_url,
                max_retries=0,
                timeout=None,
                http_client=http,
            )
        return self._client

    def _where(self, headers: Mapping[str, str]) -> str:
        said = next(filter(None, (headers.get(name, "") for name in self.request_ids)), "")
        request = self.key.redact(said)
        return f"{self.url} (request {request[:_EXCERPT]})" if request else self.url

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()


def _session(ssl_context: ssl.SSLContext) -> aiohttp.ClientSession:
    """Replace the SDK's session by one that reuses connections."""
    return aiohttp.ClientSession(connector=QuietConnector(limit=0, ssl=ssl_context))


def _load(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError as error:
        raise PlatformError(
            f"{error.name} is not installed",
            expected=f"the libraries of the extra `{package}`",
            remedy=f"pip install 'omnidata[{package}]'",
        ) from error


async def _slice(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    """Yield the request in slices, so that no copy of the whole is made."""
    for piece in pieces:
        for begin in range(0, len(piece), _SLICE):
            yield piece[begin : begin + _SLICE]


T = TypeVar("T")


def answer_of(body: str, form: type[T], noun: str, where: str) -> T:
    """What the server said, in its form.

    Args:
        body: as it came.
        form: a struct of what is needed of it.
        noun: what it should be, for the message.
        where: the address.

    Raises:
        CallError: the body reports an error, or is no such thing.
    """
    try:
        value = parse_json(body)
        if isinstance(value, dict) and value.get("error"):
            raise error_in_answer(value["error"], where=where)
        return msgspec.convert(value, form)
    except (ValueError, RecursionError):
        said = " ".join(body[:_EXCERPT].split())
        raise CallError(f"the answer is no {noun}: {said or '(nothing)'}", where=where) from None


def data_url(part: RenderedPart) -> msgspec.Raw:
    """The medium as a JSON string; base64 and MIME types hold nothing that JSON escapes."""
    return msgspec.Raw(b'"data:%b;base64,%b"' % (part.mime.encode(), base64.b64encode(part.data)))


def raw_text(text: str) -> msgspec.Raw:
    """The text as a JSON string, lone surrogates among its letters or not."""
    return msgspec.Raw(jsontext.encode(text))
