"""Google's Gemini API through the google-genai SDK."""

from __future__ import annotations

import asyncio
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aiohttp

from omnidata.adapters.api import ApiModel
from omnidata.adapters.capabilities import RenderedMessage, RenderedPart
from omnidata.adapters.http import fault, sendable
from omnidata.adapters.session import open_session
from omnidata.errors import CallError, PlatformError
from omnidata.types import Completion, GenerationParams

try:
    from google import genai
    from google.genai import errors, types
except ImportError as error:
    raise PlatformError(
        "google-genai is not installed",
        expected="the libraries of the extra `gemini`",
        remedy="pip install 'omnidata[gemini]'",
    ) from error

from omnidata.adapters.gemini_answers import completion
from omnidata.adapters.gemini_files import Uploads

ADDRESS = "https://generativelanguage.googleapis.com"
API_VERSION = "v1beta"
"""Named in every request: left to the SDK, it would change with the SDK and the environment."""

_ROLES = {"user": "user", "assistant": "model"}


@dataclass(frozen=True, slots=True)
class _Written:
    """A request before its media are uploaded.

    Attributes:
        system: the texts of the system messages.
        turns: the others.
        uploads: hashes of the media that do not travel in the request.
    """

    system: str
    turns: tuple[RenderedMessage, ...]
    uploads: frozenset[str]


class Gemini(ApiModel):
    """Sends media inline, or through the File API where a request would grow too large.

    The SDK gets a session of ours, so that errors are the same whichever HTTP libraries happen to
    be installed, and its own retries are off. `extra_body` is merged into the request's JSON, e.g.
    `{"generationConfig": {"mediaResolution": "MEDIA_RESOLUTION_LOW"}}` or a `thinkingConfig`.
    """

    wire = "gemini"
    ours = frozenset(
        {
            *("contents", "systemInstruction", "system_instruction"),
            *(f"generationConfig.{name}" for name in ("temperature", "maxOutputTokens", "seed")),
        }
    )

    _session: aiohttp.ClientSession | None = None
    _client: genai.Client | None = None
    _uploads: Uploads | None = None

    def write(self, messages: Sequence[RenderedMessage]) -> tuple[_Written, int]:
        """The messages, and which of their media are to be uploaded."""
        parts = [part for message in messages for part in message.parts]
        system = [
            sendable(part.text)
            for message in messages
            if message.role == "system"
            for part in message.parts
        ]
        written = _Written(
            system="\n".join(system),
            turns=tuple(message for message in messages if message.role != "system"),
            uploads=_too_large(parts, self.preset.inline_limit_mb * 1e6),
        )
        return written, sum(len(part.data) + len(part.text) for part in parts)

    async def send(self, payload: _Written, params: GenerationParams) -> Completion:
        """One attempt.

        Raises:
            CallError: no answer came.
        """
        client, uploads = self._open()
        where = self.preset.base_url or ADDRESS
        try:
            uris = await _uploaded(payload, uploads)
            response = await client.aio.models.generate_content(
                model=self.preset.model,
                contents=[self._turn(turn, uris) for turn in payload.turns],
                config=types.GenerateContentConfig(
                    system_instruction=payload.system or None,
                    temperature=params.temperature,
                    max_output_tokens=params.max_new_tokens,
                    seed=params.seed,
                    # As it came: what the SDK makes of it lacks what it does not know.
                    should_return_http_response=True,
                    # Not the client's: uploads would carry it too.
                    http_options=types.HttpOptions(extra_body=self.preset.extra_body or None),
                ),
            )
        except errors.APIError as error:
            raise fault(error.code, {}, error.message or "", where=where) from error
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            # What the SDK lets through when what the File API says is not the JSON that it expects;
            # its words quote the answer.
            raise CallError(
                f"the answer cannot be read ({type(error).__name__})", where=where
            ) from None
        http = response.sdk_http_response
        return completion((http and http.body) or "", where)

    def _turn(self, message: RenderedMessage, uris: Mapping[str, str]) -> types.ContentDict:
        parts = [self._part(part, uris.get(part.sha256, "")) for part in message.parts]
        return {"role": _ROLES[message.role], "parts": parts}

    def _part(self, part: RenderedPart, uri: str) -> types.PartDict:
        if part.kind == "text":
            return {"text": sendable(part.text)}
        sent: types.PartDict
        if uri:
            sent = {"file_data": {"file_uri": uri, "mime_type": part.mime}}
        else:
            sent = {"inline_data": {"data": part.data, "mime_type": part.mime}}
        if part.kind == "video" and self.preset.fps:
            sent["video_metadata"] = {"fps": self.preset.fps}
        return sent

    def _open(self) -> tuple[genai.Client, Uploads]:
        """The client; kept, because one that nothing refers to closes itself."""
        if self._client is None or self._uploads is None:
            # The SDK's warnings of words that it does not know quote the server's answer.
            warnings.filterwarnings("ignore", module=r"google\.genai\._common")
            self._session = open_session(self.key)
            self._client = genai.Client(
                api_key=self.key.value or "none",
                vertexai=False,
                http_options=types.HttpOptions(
                    base_url=self.preset.base_url or ADDRESS,
                    api_version=self.preset.api_version or API_VERSION,
                    aiohttp_client=self._session,
                    retry_options=types.HttpRetryOptions(attempts=1),
                ),
            )
            self._uploads = Uploads(self._client.aio.files)
        return self._client, self._uploads

    async def close(self) -> None:
        """Delete what was uploaded, and close the connections."""
        if self._uploads is not None:
            await self._uploads.close()
        if self._client is not None:
            await self._client.aio.aclose()
            self._client.close()
        if self._session is not None:
            await self._session.close()


def _too_large(parts: Sequence[RenderedPart], limit: float) -> frozenset[str]:
    """Hashes of the media to upload: the largest, until the rest fits into a request."""
    media = {part.sha256: part for part in parts if part.kind != "text"}
    times = Counter(part.sha256 for part in parts)
    left = sum(_inline(part) for part in parts)
    uploads: set[str] = set()
    for part in sorted(media.values(), key=_inline, reverse=True):
        if left <= limit:
            break
        left -= _inline(part) * times[part.sha256]
        uploads.add(part.sha256)
    return frozenset(uploads)


def _inline(part: RenderedPart) -> int:
    """Bytes that the part takes in the request; media are base64."""
    return len(part.text) + 4 * -(-len(part.data) // 3)


async def _uploaded(payload: _Written, uploads: Uploads) -> dict[str, str]:
    """Addresses of the uploaded media, by hash."""
    media = {part.sha256: part for turn in payload.turns for part in turn.parts}
    hashes = sorted(payload.uploads)
    uris = await asyncio.gather(*(uploads.uri(media[key]) for key in hashes))
    return dict(zip(hashes, uris, strict=True))
