"""Google's Gemini API, with its computer tool and its File API."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar
from urllib.parse import quote, urlsplit

import msgspec

from omnidata.adapters.answers import (
    accounting,
    answer_of,
    delivery_of,
    excerpt,
    first_of,
    only_reasoning_error,
    sendable,
    token_usage,
    tool_called,
)
from omnidata.adapters.api import Options, Preset
from omnidata.adapters.batch_api import LISTED, BatchApi, Job, Returned, State
from omnidata.adapters.json_api import JsonModel, Written
from omnidata.adapters.keys import Key
from omnidata.adapters.render import RenderedMessage, RenderedPart, items_of
from omnidata.errors import CallError
from omnidata.jsontext import compact, in_snake_case
from omnidata.types import Completion, GenerationParams

_ADDRESS = "https://generativelanguage.googleapis.com"
_API_VERSION = "v1beta"


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
_NOUN = "file of the File API"


class _File(_Named):
    name: str
    uri: str = ""
    state: str = ""
    expiration_time: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    error: Any = None


class _Upload(msgspec.Struct):
    file: _File


class Uploads:
    """The files of a run, by the hash of their content.

    An upload goes on when the call that started it is given up, so that the next attempt finds it
    further on. The service keeps files for 48 hours; one that is about to expire is sent again.
    """

    def __init__(self, model: Gemini) -> None:
        self._model = model
        self._tasks: dict[tuple[str, str], asyncio.Task[_File]] = {}
        self._names: list[str] = []

    async def uri(self, part: RenderedPart) -> str:
        """Upload a medium and return its address, once the model can read it.

        Raises:
            CallError: it cannot be uploaded, or the service cannot read it.
        """
        key = (part.sha256, part.mime)
        task = self._tasks.get(key)
        if task is None or _is_useless(task):
            task = self._tasks[key] = asyncio.create_task(self._upload(part))
            # asyncio reports errors that nothing retrieves
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        uri = (await asyncio.shield(task)).uri
        if not uri:
            raise CallError("the File API gave no address for an uploaded file")
        return uri

    async def send(self, content: BinaryIO, mime: str, label: str = "") -> _File:
        """Upload a file, which `close` does not delete; `label` is the name to show."""
        model, size = self._model, content.seek(0, io.SEEK_END)
        content.seek(0)
        start = {
            "X-Goog-Upload-Protocol": "resumable",
            "X-Goog-Upload-Command": "start",
            "X-Goog-Upload-Header-Content-Length": str(size),
            "X-Goog-Upload-Header-Content-Type": mime,
        }
        file = {"mimeType": mime, "sizeBytes": size} | ({"displayName": label} if label else {})
        about = msgspec.json.encode({"file": file})
        path = f"upload/{model.api_version}/files"
        _, headers = await self._call("POST", path, about, start)
        if not (place := headers.get("X-Goog-Upload-URL")):
            raise CallError("the File API gave no address to upload to", where=model.address)
        server = urlsplit(model.address)
        try:
            target = urlsplit(place)._replace(scheme=server.scheme, netloc=server.netloc).geturl()
        except ValueError:
            raise CallError(
                "the File API's upload address is no URL", where=model.address
            ) from None
        finish = {"X-Goog-Upload-Command": "upload, finalize", "X-Goog-Upload-Offset": "0"}
        async with model.session().post(target, data=content, headers=finish) as response:
            answer = await response.text()
            if response.headers.get("X-Goog-Upload-Status") != "final":
                raise CallError("the File API did not finish an upload", where=model.address)
        return answer_of(answer, _Upload, _NOUN, model.address).file

    async def _upload(self, part: RenderedPart) -> _File:
        model, file = self._model, await self.send(io.BytesIO(part.data), part.mime)
        self._names.append(file.name)
        wait = _FIRST_WAIT_S
        while file.state == "PROCESSING":
            await asyncio.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT_S)
            answer, _ = await self._call("GET", f"{model.api_version}/{file.name}")
            # In the form of an upload, where an `error` of the file is not one of the request.
            file = answer_of(f'{{"file": {answer}}}', _Upload, _NOUN, model.address).file
        if file.state == "FAILED":
            said = file.error.get("message", "") if isinstance(file.error, dict) else ""
            raise CallError(
                f"the File API cannot read the {part.role or part.kind}"
                + (f": {said}" if said else ""),
                expected=f"a file that Google's servers can decode as {part.mime}",
                transient=False,
            )
        return file

    async def _call(
        self, verb: str, path: str, body: bytes = b"", more: Mapping[str, str] = {}
    ) -> tuple[str, Mapping[str, str]]:
        """Return the text and the headers of an answer."""
        model, headers = self._model, self._model.common_headers.copy()
        headers.update(more)
        url = f"{model.address}/{path}"
        async with model.session().request(verb, url, data=body, headers=headers) as response:
            return await response.text(), response.headers

    def keep(self) -> None:
        """Leave what was uploaded to expire by itself."""
        self._names.clear()

    async def close(self) -> None:
        """Delete what was uploaded; what cannot be deleted expires within 48 hours."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        slots = asyncio.Semaphore(_DELETIONS)

        async def delete(name: str) -> None:
            async with slots:
                with contextlib.suppress(CallError):
                    await self._call("DELETE", f"{self._model.api_version}/{name}")

        await asyncio.gather(*map(delete, self._names))


def _is_useless(task: asyncio.Task[_File]) -> bool:
    if not task.done():
        return False
    if task.cancelled() or task.exception():
        return True
    expires = task.result().expiration_time
    return expires is not None and expires < datetime.now(UTC) + _REMAINING


# Batches.


class _Output(_Named):
    responses_file: str = ""


class _About(_Named):
    state: str = ""
    display_name: str = ""
    output: _Output | None = None


class _Job(_Named):
    name: str
    metadata: _About = msgspec.field(default_factory=_About)
    error: Any = None


class _Jobs(_Named):
    operations: list[_Job] = []
    next_page_token: str = ""


class _Looked(_Named):
    job: _Job


class GeminiBatches(BatchApi):
    """Google's: a file is uploaded to the File API, and a job with a name is made of it."""

    name = "gemini"
    max_bytes = 2_000_000_000
    media = "upload"
    _STATES: ClassVar[Mapping[str, State]] = {
        "JOB_STATE_SUCCEEDED": "done",
        "JOB_STATE_PARTIALLY_SUCCEEDED": "done",
        "JOB_STATE_FAILED": "failed",
        "JOB_STATE_EXPIRED": "expired",
        "JOB_STATE_CANCELLED": "cancelled",
    }

    def __init__(self, model: Gemini) -> None:
        super().__init__(model)
        self._gemini = model
        self.root = f"{model.address}/{model.api_version}/"

    def row(self, custom_id: str, body: bytes) -> bytes:
        return json.dumps({"key": custom_id})[:-1].encode() + b',"request":' + body + b"}"

    def read(self, row: Mapping[str, Any]) -> Returned | None:
        match row:
            case {"key": str(name), "response": dict(body)} if not row.get("error"):
                return Returned(custom_id=name, status=200, body=json.dumps(body))
            case {"key": str(name), "error": error} | {"key": str(name), "status": error} if error:
                return Returned(custom_id=name, error=error)
        return None

    async def upload(self, path: Path, label: str) -> str:
        with path.open("rb") as file, self.model.key.hide_in_errors():
            return (await self._gemini.uploads.send(file, "application/jsonl", label)).name

    async def upload_media(self, parts: Sequence[RenderedPart]) -> Mapping[str, str]:
        with self.model.key.hide_in_errors():
            uris = await self._gemini.upload(parts)
        self._gemini.uploads.keep()
        return uris

    async def create(
        self, path: Path, uploaded: str, label: str, headers: Mapping[str, str]
    ) -> str:
        about = {"displayName": label, "inputConfig": {"fileName": uploaded}}
        url = f"{self._gemini.resource}:batchGenerateContent"
        return (await self.call("POST", url, _Job, headers, json={"batch": about})).name

    async def find(self, label: str) -> str:
        params = {"pageSize": "100"}
        for _ in range(LISTED // 100):
            page = await self.call("GET", "batches", _Jobs, params=params)
            for job in page.operations:
                if job.metadata.display_name == label:
                    return job.name
            if not page.next_page_token:
                break
            params["pageToken"] = page.next_page_token
        return ""

    async def look(self, job: str) -> Job:
        async with self.request("GET", f"batches/{_last(job)}") as response:
            # In another object, where an `error` of the job is not one of the request.
            body, where = await response.text(), response.where
        found = answer_of(f'{{"job": {body}}}', _Looked, "job", where).job
        word = found.metadata.state.replace("BATCH_", "JOB_", 1)
        result = found.metadata.output.responses_file if found.metadata.output else ""
        return Job(
            state=self._STATES.get(word, "running"),
            word=word,
            said=str(found.error.get("message", "")) if isinstance(found.error, dict) else "",
            results=[result] if result else (),
        )

    async def download(self, job: str, result: str, path: Path) -> None:
        await self.save(f"files/{_last(result)}:download", path, alt="media")


def _last(name: str) -> str:
    return quote(name.partition("/")[2] or name, safe="")


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


@dataclass(frozen=True, slots=True)
class _Large:
    """A request that some media must be uploaded for."""

    messages: Sequence[RenderedMessage]
    uploads: Sequence[RenderedPart]
    tools: tuple[str, ...]


class Gemini(JsonModel):
    """Sends media inline, or through the File API where a request would grow too large.

    `extra_body` is merged into the request's JSON, e.g.
    `{"generationConfig": {"mediaResolution": "MEDIA_RESOLUTION_LOW"}}` or a `thinkingConfig`.
    """

    wire: ClassVar[str] = "gemini"
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
    needs_address = False
    path: ClassVar[str] = ""
    key_header: ClassVar[tuple[str, str]] = ("x-goog-api-key", "{}")
    tools: ClassVar[frozenset[str]] = frozenset({"computer_use"})
    ours: ClassVar[frozenset[str]] = frozenset(
        {
            *("contents", "systemInstruction", "system_instruction", "tools", "generation_config"),
            *(f"generationConfig.{name}" for name in ("temperature", "maxOutputTokens", "seed")),
        }
    )

    def __init__(self, preset: Preset, key: Key) -> None:
        super().__init__(preset, key)
        self.address = preset.base_url or _ADDRESS
        self.api_version = self.own.api_version or _API_VERSION
        model = preset.model
        if not model.startswith(("models/", "tunedModels/")):
            model = f"models/{model}"
        self.resource = quote(model)
        self.url = f"{self.address}/{self.api_version}/{self.resource}:generateContent"
        self.uploads = Uploads(self)
        self.batch = GeminiBatches(self)

    def write(self, messages: Sequence[RenderedMessage]) -> tuple[Written | _Large, int]:
        parts = [part for message in messages for part in message.parts]
        large = () if self.refer else _too_large(parts, self.own.inline_limit_mb * 1e6)
        if not large:
            return self._encode(messages, {})
        tools = tuple(part.role for part in parts if part.kind == "tool")
        size = sum(len(part.data) + len(part.text) for part in parts)
        return _Large(messages, large, tools), size

    def _encode(
        self, messages: Sequence[RenderedMessage], uris: Mapping[str, str]
    ) -> tuple[Written, int]:
        heads = [part for turn in messages if turn.role == "system" for part in turn.parts]
        system = "\n".join(part.text for part in heads if part.kind == "text")
        tools = [part for part in heads if part.kind == "tool"]
        turns = [message for message in messages if message.role != "system"]
        body: dict[str, Any] = {"contents": self._contents(turns, uris)}
        if system:
            body["systemInstruction"] = {"parts": [{"text": sendable(system)}], "role": "user"}
        if tools:
            body["tools"] = [msgspec.Raw(part.text.encode()) for part in tools]
        return Written.of(body, tuple(part.role for part in tools))

    async def send(self, payload: Written | _Large, params: GenerationParams) -> Completion:
        """Send one request, after its large media.

        Raises:
            CallError: no answer came.
        """
        if isinstance(payload, _Large):
            uris = await self.upload(payload.uploads)
            payload = (await asyncio.to_thread(self._encode, payload.messages, uris))[0]
        return await super().send(payload, params)

    def body(self, payload: Written | _Large, params: GenerationParams) -> bytes:
        """Return the JSON text of a request; media are in it however large they are."""
        if isinstance(payload, _Large):
            payload = self._encode(payload.messages, {})[0]
        return super().body(payload, params)

    def request_settings(self, params: GenerationParams, tools: Sequence[str]) -> dict[str, Any]:
        settings = {
            "temperature": params.temperature,
            "maxOutputTokens": params.max_new_tokens,
            "seed": params.seed,
            "stopSequences": params.stop or None,
        }
        known = {name: value for name, value in settings.items() if value is not None}
        return {"generationConfig": known}

    def read(self, body: str, params: GenerationParams, where: str, *, tools: bool) -> Completion:
        """Read an answer of the server, without its thoughts.

        A blocked prompt, or a candidate that was stopped for its content, is a refusal.

        Raises:
            CallError: there is no candidate, or it is no answer.
        """
        answer = answer_of(body, _Answer, "answer of Gemini", where)
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
            about, delivery=delivery, text=text, error="" if delivery == "ok" else error
        )

    def _contents(
        self, turns: Sequence[RenderedMessage], uris: Mapping[str, str]
    ) -> list[dict[str, Any]]:
        contents: list[dict[str, Any]] = []
        open_calls: list[str] = []
        for turn in turns:
            parts: list[dict[str, Any]] = []
            if turn.role == "user":
                shown = [part for part in turn.parts if open_calls and part.kind == "image"]
                parts = self._responses(open_calls, shown, uris)
                open_calls = []
                others = [part for part in turn.parts if part not in shown]
                parts += [self._part(part, uris) for part in others]
            elif open_calls:  # the picture that was their response has been left out
                contents.append({"role": "user", "parts": self._responses(open_calls, (), uris)})
                open_calls = []
            if turn.role == "assistant":
                for item in _model_parts(turn.parts):
                    if call := item.get("function_call"):
                        open_calls.append(call["name"])
                        parts.append({"functionCall": call})
                    else:
                        parts.append({"text": sendable(item["text"])})
            contents.append({"role": _ROLES[turn.role], "parts": parts})
        if open_calls:
            contents.append({"role": "user", "parts": self._responses(open_calls, (), uris)})
        return contents

    def _responses(
        self, calls: Sequence[str], shown: Sequence[RenderedPart], uris: Mapping[str, str]
    ) -> list[dict[str, Any]]:
        """Return one response per call; the API wants a page address, which is unknown."""
        responses: list[dict[str, Any]] = [
            {"name": name, "response": {"url": ""}} for name in calls
        ]
        if shown:
            responses[-1]["parts"] = [self._part(part, uris) for part in shown]
        return [{"functionResponse": response} for response in responses]

    def _part(self, part: RenderedPart, uris: Mapping[str, str]) -> dict[str, Any]:
        if part.kind == "text":
            return {"text": sendable(part.text)}
        uri = self.refer(part) if self.refer else uris.get(part.sha256, "")
        sent: dict[str, Any]
        if uri:
            sent = {"fileData": {"file_uri": uri, "mime_type": part.mime}}
        else:
            sent = {"inlineData": {"data": part.data, "mime_type": part.mime}}
        if part.kind == "video" and self.own.fps:
            sent["videoMetadata"] = {"fps": self.own.fps}
        return sent

    async def upload(self, parts: Sequence[RenderedPart]) -> dict[str, str]:
        """Upload media; return their addresses by SHA-256.

        Raises:
            CallError: one cannot be uploaded, or the service cannot read it.
        """
        uris = await asyncio.gather(*map(self.uploads.uri, parts))
        return {part.sha256: uri for part, uri in zip(parts, uris, strict=True)}

    async def close(self) -> None:
        """Delete what was uploaded, and close the connections."""
        await self.uploads.close()
        await super().close()
        self.uploads = Uploads(self)


_ROLES = {"user": "user", "assistant": "model"}


def _model_parts(parts: Sequence[RenderedPart]) -> Iterator[dict[str, Any]]:
    for part in parts:
        yield from items_of(part.text) if part.kind == "call" else [{"text": part.text}]


def _too_large(parts: Sequence[RenderedPart], limit: float) -> list[RenderedPart]:
    """Return the media to upload: the largest, until the rest is within a limit of bytes."""
    media = {part.sha256: part for part in parts if part.sha256}  # no text, no tool
    times = Counter(part.sha256 for part in parts)
    left = sum(_inline(part) for part in parts)
    uploads: list[RenderedPart] = []
    for part in sorted(media.values(), key=_inline, reverse=True):
        if left <= limit:
            break
        left -= _inline(part) * times[part.sha256]
        uploads.append(part)
    return uploads


def _inline(part: RenderedPart) -> int:
    """Return the bytes that a part takes in a request; media are base64."""
    return len(part.text) + 4 * -(-len(part.data) // 3)
