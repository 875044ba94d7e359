"""Google's Gemini API through the google-genai SDK."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import warnings
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, cast

import msgspec

from omnidata.adapters.answers import (
    accounting,
    delivery_of,
    error_in_answer,
    excerpt,
    fault,
    first_of,
    only_reasoning_error,
    parse_json,
    sendable,
    token_usage,
    tool_called,
)
from omnidata.adapters.api import Library, Options, Preset
from omnidata.adapters.batch_api import (
    LISTED,
    TIMEOUT_S,
    BatchForm,
    BatchModel,
    BatchService,
    Job,
    Returned,
    State,
    save,
)
from omnidata.adapters.keys import Key
from omnidata.adapters.render import RenderedMessage, RenderedPart, items_of
from omnidata.errors import CallError
from omnidata.jsontext import compact, decode, in_snake_case
from omnidata.types import Completion, GenerationParams

if TYPE_CHECKING:
    from google import genai
    from google.genai import types
    from google.genai.files import AsyncFiles


class _Named(msgspec.Struct, rename="camel"):
    pass


class _Call(_Named):
    name: str = ""
    args: Any = None


class _Part(_Named):
    text: str = ""
    thought: bool = False
    function_call: _Call | None = None


class _Content(_Named):
    parts: list[_Part] | None = None


class _Candidate(_Named):
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    index: Any = None


class _Feedback(_Named):
    block_reason: str | None = None
    block_reason_message: str | None = None


class _Answer(_Named):
    candidates: list[_Candidate] | None = None
    prompt_feedback: _Feedback | None = None
    usage_metadata: Any = None
    model_version: Any = None
    error: Any = None


def _parts_as_json(parts: Sequence[_Part]) -> str:
    items: list[dict[str, Any]] = []
    for part in parts:
        if call := part.function_call:
            items.append({"function_call": {"name": call.name, "args": call.args}})
        elif part.text and not part.thought:
            items.append({"text": part.text})
    return compact(items)


def _check_answered(parts: Sequence[_Part], text: str, where: str, *, tools: bool) -> None:
    if any(part.function_call is not None for part in parts):
        if not tools:
            raise tool_called(where)
        return
    if not text.strip() and any(part.thought for part in parts):
        raise only_reasoning_error(where)
    if not parts:
        raise CallError(
            "the server sent a candidate without content",
            where=where,
            expected="a text in the candidate's `parts`, which may be empty",
        )


# Media too large for a request: uploaded once in a run through Google's File API.

_FIRST_WAIT_S = 0.25
_LONGEST_WAIT_S = 4.0
_REMAINING = timedelta(hours=1)
_DELETIONS = 16


class Uploads:
    """The files of a run, by the hash of their content.

    An upload goes on when the call that started it is given up, so that the next attempt finds it
    further on. The service keeps files for 48 hours; one that is about to expire is sent again.

    Args:
        files: the File API of an open client.
    """

    def __init__(self, files: AsyncFiles) -> None:
        self._files = files
        self._tasks: dict[Hashable, asyncio.Task[types.File]] = {}
        self._names: list[str] = []

    async def uri(self, part: RenderedPart) -> str:
        """Upload a medium and return its address, once the model can read it.

        Raises:
            CallError: it cannot be uploaded, or the service cannot read it.
        """
        key = (part.sha256, part.mime)
        task = self._tasks.get(key)
        if task is None or _useless(task):
            task = self._tasks[key] = asyncio.create_task(self._upload(part))
            task.add_done_callback(_look_at)
        uri = (await asyncio.shield(task)).uri
        if not uri:
            raise CallError("the File API gave no address for an uploaded file")
        return uri

    async def _upload(self, part: RenderedPart) -> types.File:
        file = await self._files.upload(file=io.BytesIO(part.data), config={"mime_type": part.mime})
        if not file.name:
            raise CallError("the File API gave no name to an uploaded file")
        self._names.append(file.name)
        wait = _FIRST_WAIT_S
        while file.state == "PROCESSING":
            await asyncio.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT_S)
            file = await self._files.get(name=file.name or self._names[-1])
        if file.state == "FAILED":
            said = file.error.message if file.error else ""
            raise CallError(
                f"the File API cannot read the {part.role or part.kind}"
                + (f": {said}" if said else ""),
                expected=f"a file that Google's servers can decode as {part.mime}",
                transient=False,
            )
        return file

    def keep(self) -> None:
        """Leave what was uploaded to expire by itself."""
        self._names.clear()

    async def close(self) -> None:
        """Delete what was uploaded; what cannot be deleted expires within 48 hours."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        slots = asyncio.Semaphore(_DELETIONS)
        await asyncio.gather(*(self._delete(name, slots) for name in self._names))

    async def _delete(self, name: str, slots: asyncio.Semaphore) -> None:
        async with slots:
            with contextlib.suppress(CallError):
                await self._files.delete(name=name)


def _useless(task: asyncio.Task[types.File]) -> bool:
    if not task.done():
        return False
    if task.cancelled() or task.exception():
        return True
    expires = task.result().expiration_time
    return expires is not None and expires < datetime.now(UTC) + _REMAINING


def _look_at(task: asyncio.Task[types.File]) -> None:
    """Retrieve the error; asyncio reports errors that nothing retrieves."""
    if not task.cancelled():
        task.exception()


_ROLES = {"user": "user", "assistant": "model"}


@dataclass(frozen=True, slots=True)
class _Written:
    system: str
    turns: tuple[RenderedMessage, ...]
    uploads: frozenset[str]
    tools: tuple[types.ToolDict, ...] = ()


def _gemini_row(form: BatchForm, custom_id: str, body: bytes) -> bytes:
    return json.dumps({"key": custom_id})[:-1].encode() + b',"request":' + body + b"}"


def _gemini_read(row: Mapping[str, Any]) -> Returned | None:
    match row:
        case {"key": str(name), "response": dict(body)} if not row.get("error"):
            return Returned(custom_id=name, status=200, body=json.dumps(body))
        case {"key": str(name), "error": error} | {"key": str(name), "status": error} if error:
            return Returned(custom_id=name, error=error)
    return None


_BATCH: Final = BatchForm(
    name="gemini",
    max_bytes=2_000_000_000,
    media="upload",
    row=_gemini_row,
    read=_gemini_read,
)


_ADDRESS = "https://generativelanguage.googleapis.com"
_API_VERSION = "v1beta"
"""Named in every request: left to the SDK, it would change with the SDK and the environment."""


def _connect(key: Key, address: str = "", version: str = "", **connections: Any) -> genai.Client:
    """Return a client without retries, whose `connections` are ours to close."""
    from google import genai
    from google.genai import types

    return genai.Client(
        api_key=key.value or "none",
        vertexai=False,
        http_options=types.HttpOptions(
            base_url=address or _ADDRESS,
            api_version=version or _API_VERSION,
            retry_options=types.HttpRetryOptions(attempts=1),
            **connections,
        ),
    )


class GeminiBatches(BatchService):
    """Google's: a file is uploaded to the File API, and a job with a name is made of it."""

    _STATES: ClassVar[Mapping[str, State]] = {
        "JOB_STATE_SUCCEEDED": "done",
        "JOB_STATE_PARTIALLY_SUCCEEDED": "done",
        "JOB_STATE_FAILED": "failed",
        "JOB_STATE_EXPIRED": "expired",
        "JOB_STATE_CANCELLED": "cancelled",
    }

    def __init__(self, model: BatchModel) -> None:
        super().__init__(model)
        self.where = model.preset.base_url or "Gemini"
        import httpx2

        self._http = httpx2.Client(follow_redirects=False, timeout=TIMEOUT_S)
        self.client = _connect(
            model.key, model.preset.base_url, model.own.api_version, httpx_client=self._http
        )

    def call_error(self, error: Any) -> CallError | None:
        """Return an error of the SDK as a CallError."""
        import httpx2
        from google.genai import errors

        from omnidata.adapters.http import connection_error

        if isinstance(error, errors.APIError):
            return self.fault(error.code, {}, str(error.message or ""))
        if isinstance(error, httpx2.HTTPError):
            return connection_error(error.__cause__ or error, self.where)
        return None

    def upload(self, path: Path, label: str) -> str:
        """Upload a file of requests."""
        with self.calling():
            made = self.client.files.upload(
                file=str(path), config={"display_name": label, "mime_type": "application/jsonl"}
            )
        return str(made.name)

    def upload_media(self, parts: Sequence[RenderedPart]) -> Mapping[str, str]:
        """Upload media to the File API."""
        assert isinstance(self.model, Gemini)
        return asyncio.run(self.model.upload(parts))

    def create(self, path: Path, uploaded: str, label: str, headers: Mapping[str, str]) -> str:
        """Make a job of a file."""
        with self.calling():
            made = self.client.batches.create(
                model=self.model.preset.model, src=uploaded, config={"display_name": label}
            )
        return str(made.name)

    def find(self, label: str) -> str | None:
        """Return the job whose display name is the label; None if there is none."""
        with self.calling():
            jobs = islice(self.client.batches.list(config={"page_size": 100}), LISTED)
            return next((str(job.name) for job in jobs if job.display_name == label), None)

    def look(self, job: str) -> Job:
        """Return the state of a job."""
        with self.calling():
            found = self.client.batches.get(name=job)
        word = found.state.name if found.state else ""
        result = found.dest.file_name if found.dest else None
        return Job(
            state=self._STATES.get(word, "running"),
            word=word,
            said=str(found.error.message or "") if found.error else "",
            results=(result,) if result else (),
        )

    def download(self, job: str, result: str, path: Path) -> None:
        """Write the results."""
        with self.calling():
            data = self.client.files.download(file=result)
        save((data,), path, self.model.key)

    def close(self) -> None:
        """Close the connections."""
        self.client.close()
        self._http.close()


class GeminiOptions(Options, frozen=True, kw_only=True):
    """The options of Gemini.

    Attributes:
        api_version: the version in the path of Google's API.
        fps: frames per second that the server reads from a clip.
        inline_limit_mb: requests above so many megabytes upload their media first.
    """

    api_version: str = ""
    fps: Annotated[float, msgspec.Meta(gt=0, le=240)] | None = None
    inline_limit_mb: Annotated[float, msgspec.Meta(ge=0, le=1e6)] = 20


class Gemini(BatchModel):
    """Sends media inline, or through the File API where a request would grow too large.

    The SDK gets a session of ours, so that errors are the same whichever HTTP libraries happen to
    be installed, and its own retries are off. `extra_body` is merged into the request's JSON, e.g.
    `{"generationConfig": {"mediaResolution": "MEDIA_RESOLUTION_LOW"}}` or a `thinkingConfig`.
    """

    wire = "gemini"
    spec_row: ClassVar[Mapping[str, Any]] = {
        "base_url_env": "GEMINI_BASE_URL",
        "key_env": "GEMINI_API_KEY",
        "video": "native",
        "audio_formats": ["wav", "mp3", "aiff", "aac", "ogg", "flac"],
        "release": {
            "video": "frames",
            "frames": 4,
            "frame_times": False,
            "rules": {"system": "twice"},
        },
    }
    options = GeminiOptions
    own: GeminiOptions
    library = Library("google-genai", "gemini", "google.genai")
    needs_address = False
    batch = _BATCH
    batch_service = GeminiBatches
    tools = frozenset({"computer_use"})
    ours = frozenset(
        {
            *("contents", "systemInstruction", "system_instruction", "tools"),
            *(f"generationConfig.{name}" for name in ("temperature", "maxOutputTokens", "seed")),
        }
    )

    _client: genai.Client | None = None
    _uploads: Uploads | None = None

    def __init__(self, preset: Preset, key: Key) -> None:
        super().__init__(preset, key)
        self.library.load()
        self.url = preset.base_url or _ADDRESS

    def write(self, messages: Sequence[RenderedMessage]) -> tuple[_Written, int]:
        """Return the messages, and which of their media are to be uploaded."""
        parts = [part for message in messages for part in message.parts]
        heads = [part for turn in messages if turn.role == "system" for part in turn.parts]
        system = [sendable(part.text) for part in heads if part.kind == "text"]
        written = _Written(
            system="\n".join(system),
            turns=tuple(message for message in messages if message.role != "system"),
            uploads=_too_large(parts, self.own.inline_limit_mb * 1e6),
            tools=tuple(decode(part.text) for part in heads if part.kind == "tool"),
        )
        return written, sum(len(part.data) + len(part.text) for part in parts)

    async def send(self, payload: _Written, params: GenerationParams) -> Completion:
        """Send one request.

        Raises:
            CallError: no answer came.
        """
        from google.genai import errors

        client, uploads = self._open()
        where = self.url
        try:
            uris = await _upload_media(payload, uploads)
            response = await client.aio.models.generate_content(
                model=self.preset.model,
                contents=self._contents(payload.turns, uris),
                config=self._config(payload, params),
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
        return self.read((http and http.body) or "", params, where, tools=bool(payload.tools))

    def body(self, payload: _Written, params: GenerationParams) -> bytes:
        """Return the JSON text of a request, which the SDK makes only while it sends it.

        Media are in it however large they are, as it is no request of its own, or named.
        """
        media = [part for turn in payload.turns for part in turn.parts if part.sha256]
        uris = {part.sha256: self.refer(part) for part in media} if self.refer else {}
        response = _echo().models.generate_content(
            model=self.preset.model,
            contents=self._contents(payload.turns, uris),
            config=self._config(payload, params),
        )
        http = response.sdk_http_response
        assert http and http.body
        return http.body.encode()

    def read(self, body: str, params: GenerationParams, where: str, *, tools: bool) -> Completion:
        """Read an answer of the server, without its thoughts.

        A blocked prompt, or a candidate that was stopped for its content, is a refusal.

        Raises:
            CallError: there is no candidate, or it is no answer.
        """
        try:
            answer = msgspec.convert(parse_json(body), _Answer)
        except (ValueError, RecursionError):
            said = excerpt(body) or "(nothing)"
            raise CallError(f"the answer cannot be read: {said}", where=where) from None
        if answer.error:
            raise error_in_answer(answer.error, where=where)
        usage = in_snake_case(token_usage(answer.usage_metadata, str))
        about = Completion(**accounting(usage, answer.model_version))
        feedback = answer.prompt_feedback
        if feedback and feedback.block_reason:
            said = f"{feedback.block_reason} {feedback.block_reason_message or ''}".rstrip()
            error = f"the prompt was blocked: {said}"
            return msgspec.structs.replace(about, delivery="refused", error=error)
        if not answer.candidates:
            raise CallError("the answer has no candidate", where=where)
        candidate = answer.candidates[first_of([each.index for each in answer.candidates], where)]
        message = candidate.finish_message or ""
        delivery = delivery_of(candidate.finish_reason, message, where=where)
        if delivery == "truncated":
            error = "the answer was cut at its greatest length"
        else:
            error = excerpt(f"{candidate.finish_reason} {message}")
        parts = (candidate.content.parts if candidate.content else None) or []
        text = "".join(part.text for part in parts if not part.thought)
        if delivery == "ok":
            _check_answered(parts, text, where, tools=tools)
        if tools:
            text = _parts_as_json(parts)
        return msgspec.structs.replace(
            about,
            delivery=delivery,
            text=text,
            error="" if delivery == "ok" else error,
        )

    def _config(self, payload: _Written, params: GenerationParams) -> types.GenerateContentConfig:
        from google.genai import types

        return types.GenerateContentConfig(
            system_instruction=payload.system or None,
            temperature=params.temperature,
            max_output_tokens=params.max_new_tokens,
            seed=params.seed,
            stop_sequences=list(params.stop) or None,
            tools=list(payload.tools) or None,
            # Nothing here could call a function; the SDK would say so at every request.
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            # As it came: what the SDK makes of it lacks what it does not know.
            should_return_http_response=True,
            # Not the client's: uploads would carry it too.
            http_options=types.HttpOptions(extra_body=self.preset.extra_body or None),
        )

    def _contents(
        self, turns: Sequence[RenderedMessage], uris: Mapping[str, str]
    ) -> list[types.ContentDict]:
        contents: list[types.ContentDict] = []
        open_calls: list[str] = []
        for turn in turns:
            parts: list[types.PartDict] = []
            if turn.role == "user":
                shown = [part for part in turn.parts if open_calls and part.kind == "image"]
                parts = self._responses(open_calls, shown, uris)
                open_calls = []
                told = [part for part in turn.parts if part not in shown]
                parts += [self._part(part, uris.get(part.sha256, "")) for part in told]
            elif open_calls:  # the picture that was their response has been left out
                contents.append({"role": "user", "parts": self._responses(open_calls, (), uris)})
                open_calls = []
            if turn.role == "assistant":
                for item in _model_parts(turn.parts):
                    if call := item.get("function_call"):
                        open_calls.append(call["name"])
                        parts.append({"function_call": call})
                    else:
                        parts.append({"text": sendable(item["text"])})
            contents.append({"role": _ROLES[turn.role], "parts": parts})
        if open_calls:
            contents.append({"role": "user", "parts": self._responses(open_calls, (), uris)})
        return contents

    def _responses(
        self, calls: Sequence[str], shown: Sequence[RenderedPart], uris: Mapping[str, str]
    ) -> list[types.PartDict]:
        """Return one response per call; the API wants a page address, which is unknown."""
        parts: list[types.PartDict] = [
            {"function_response": {"name": name, "response": {"url": ""}}} for name in calls
        ]
        if shown:
            parts[-1] = {
                "function_response": {
                    "name": calls[-1],
                    "response": {"url": ""},
                    "parts": [
                        cast(
                            "types.FunctionResponsePartDict",
                            self._part(part, uris.get(part.sha256, "")),
                        )
                        for part in shown
                    ],
                }
            }
        return parts

    def _part(self, part: RenderedPart, uri: str) -> types.PartDict:
        if part.kind == "text":
            return {"text": sendable(part.text)}
        sent: types.PartDict
        if uri:
            sent = {"file_data": {"file_uri": uri, "mime_type": part.mime}}
        else:
            sent = {"inline_data": {"data": part.data, "mime_type": part.mime}}
        if part.kind == "video" and self.own.fps:
            sent["video_metadata"] = {"fps": self.own.fps}
        return sent

    def _open(self) -> tuple[genai.Client, Uploads]:
        """Keep the client: one without references closes itself."""
        if self._client is None or self._uploads is None:
            # The SDK's warnings of words that it does not know quote the server's answer.
            warnings.filterwarnings("ignore", module=r"google\.genai\._common")
            self._client = _connect(
                self.key, self.preset.base_url, self.own.api_version, aiohttp_client=self.session()
            )
            self._uploads = Uploads(self._client.aio.files)
        return self._client, self._uploads

    async def upload(self, parts: Sequence[RenderedPart]) -> dict[str, str]:
        """Upload media for later requests, and close the connections.

        Returns:
            Their addresses by SHA-256.

        Raises:
            CallError: one cannot be uploaded, or the service cannot read it.
        """
        try:
            with self.key.hide_in_errors():
                _, uploads = self._open()
                uris = await asyncio.gather(*map(uploads.uri, parts))
            uploads.keep()
        finally:
            await self.close()
        return {part.sha256: uri for part, uri in zip(parts, uris, strict=True)}

    async def close(self) -> None:
        """Delete what was uploaded, and close the connections."""
        if self._uploads is not None:
            await self._uploads.close()
        if self._client is not None:
            await self._client.aio.aclose()
            self._client.close()
        await super().close()
        self._client = self._uploads = None


@cache
def _echo() -> genai.Client:
    """Return a client that answers with its own request; making one is slow."""
    import httpx2

    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, content=request.content))
    return _connect(Key(), httpx_client=httpx2.Client(transport=transport))


def _model_parts(parts: Sequence[RenderedPart]) -> Iterator[dict[str, Any]]:
    for part in parts:
        yield from items_of(part.text) if part.kind == "call" else [{"text": part.text}]


def _too_large(parts: Sequence[RenderedPart], limit: float) -> frozenset[str]:
    media = {part.sha256: part for part in parts if part.sha256}  # no text, no tool
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
    """Return the bytes that a part takes in a request; media are base64."""
    return len(part.text) + 4 * -(-len(part.data) // 3)


async def _upload_media(payload: _Written, uploads: Uploads) -> dict[str, str]:
    media = {part.sha256: part for turn in payload.turns for part in turn.parts}
    hashes = sorted(payload.uploads)
    uris = await asyncio.gather(*(uploads.uri(media[key]) for key in hashes))
    return dict(zip(hashes, uris, strict=True))
