"""Chat Completions: OpenAI's own, and those of vLLM and other compatible servers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal
from urllib.parse import quote, urlsplit

import msgspec

from omnidata.adapters.answers import (
    accounting,
    answer_of,
    delivery_of,
    error_in_answer,
    excerpt,
    first_of,
    is_whole,
    only_reasoning_error,
    tool_called,
)
from omnidata.adapters.api import Options, Preset
from omnidata.adapters.batch_api import LISTED, BatchApi, Job, Returned, State
from omnidata.adapters.json_api import JsonModel, Written, data_url, raw_text
from omnidata.adapters.keys import Key
from omnidata.adapters.render import RenderedMessage, RenderedPart
from omnidata.errors import CallError
from omnidata.types import Completion, GenerationParams

_THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning"})
_PARTS = frozenset({"text", "refusal", *_THOUGHTS})


class _Part(msgspec.Struct):
    type: str
    text: str | None = None
    refusal: str | None = None


class _Message(msgspec.Struct):
    content: str | list[_Part] | None = None
    refusal: str | None = None
    tool_calls: Any = None
    function_call: Any = None
    reasoning: Any = None
    reasoning_content: Any = None
    reasoning_details: Any = None
    thinking: Any = None
    thinking_blocks: Any = None
    error: Any = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None
    native_finish_reason: str | None = None
    error: Any = None
    index: Any = None


class _Answer(msgspec.Struct):
    choices: list[_Choice]
    model: Any = None
    usage: Any = None


# Batches, whose files vLLM reads as well.


class _File(msgspec.Struct):
    id: str


class _JobError(msgspec.Struct):
    message: Any = None


class _JobErrors(msgspec.Struct):
    data: list[_JobError] | None = None


class _Job(msgspec.Struct):
    id: str
    status: str = ""
    metadata: dict[str, Any] | None = None
    request_counts: dict[str, int] | None = None
    errors: _JobErrors | None = None
    output_file_id: str | None = None
    error_file_id: str | None = None


class _Jobs(msgspec.Struct):
    data: list[_Job]
    has_more: bool = False


def is_openai(url: str) -> bool:
    """Return whether the server is OpenAI's own, or its form on Azure."""
    host = urlsplit(url).hostname or ""
    return host == "api.openai.com" or host.endswith((".api.openai.com", ".openai.azure.com"))


class OpenAIBatches(BatchApi):
    """OpenAI's: a file is uploaded, and a job is made of it."""

    name = "openai"
    max_requests: ClassVar[int | None] = 50_000
    max_bytes: ClassVar[int | None] = 200_000_000
    _LABEL = "omnidata"
    _STATES: ClassVar[Mapping[str, State]] = {
        "completed": "done",
        "failed": "failed",
        "expired": "expired",
        "cancelled": "cancelled",
    }

    def __init__(self, model: OpenAIModel) -> None:
        super().__init__(model)
        self.url = f"/v1{model.path}"

    def row(self, custom_id: str, body: bytes) -> bytes:
        head = {"custom_id": custom_id, "method": "POST", "url": self.url}
        return json.dumps(head, separators=(",", ":"))[:-1].encode() + b',"body":' + body + b"}"

    def read(self, row: Mapping[str, Any]) -> Returned | None:
        match row:
            case {"custom_id": str(name), "error": {"code": "batch_expired", **rest}}:
                return Returned(custom_id=name, ended="expired", error=rest.get("message", ""))
            case {"custom_id": str(name), "error": {"code": "batch_cancelled", **rest}}:
                return Returned(custom_id=name, ended="cancelled", error=rest.get("message", ""))
            case {"custom_id": str(name), "response": {"status_code": said, "body": dict(body)}}:
                status = _status(said)
                if is_whole(status) and not row.get("error"):
                    return Returned(custom_id=name, status=status, body=json.dumps(body))
                return Returned(custom_id=name, status=status, error=row.get("error") or body)
            case {"custom_id": str(name), "error": error, **rest} if error:
                response = rest.get("response")
                stated = response.get("status_code") if isinstance(response, dict) else 0
                return Returned(custom_id=name, status=_status(stated), error=error)
        return None

    async def upload(self, path: Path, label: str) -> str:
        import aiohttp  # takes long to import

        with path.open("rb") as file:
            form = aiohttp.FormData({"purpose": "batch"}, default_to_multipart=True)
            form.add_field("file", file, filename=f"{label}.jsonl")
            content = form()
            headers = {"Content-Type": content.content_type}
            return (await self.call("POST", "/files", _File, headers, data=content)).id

    async def create(
        self, path: Path, uploaded: str, label: str, headers: Mapping[str, str]
    ) -> str:
        about = {
            "input_file_id": uploaded,
            "endpoint": self.url,
            "completion_window": "24h",
            "metadata": {self._LABEL: label},
        }
        return (await self.call("POST", "/batches", _Job, headers, json=about)).id

    async def find(self, label: str) -> str:
        params = {"limit": "100"}
        for _ in range(LISTED // 100):
            page = await self.call("GET", "/batches", _Jobs, params=params)
            for job in page.data:
                if (job.metadata or {}).get(self._LABEL) == label:
                    return job.id
            if not (page.has_more and page.data):
                break
            params["after"] = page.data[-1].id
        return ""

    async def look(self, job: str) -> Job:
        found = await self.call("GET", f"/batches/{quote(job, safe='')}", _Job)
        counts = found.request_counts or {}
        errors = (found.errors.data if found.errors else None) or ()
        return Job(
            state=self._STATES.get(found.status, "running"),
            word=found.status,
            counts={name: counts[name] for name in _COUNTED if name in counts},
            said="; ".join(str(error.message) for error in errors),
            results=[*filter(None, (found.output_file_id, found.error_file_id))],
        )

    async def download(self, job: str, result: str, path: Path) -> None:
        await self.save(f"/files/{quote(result, safe='')}/content", path)


_COUNTED = ("total", "completed", "failed")


class VllmBatches(OpenAIBatches):
    """The same files, answered by `vllm run-batch`."""

    name = "vllm"
    max_requests = None
    max_bytes = None
    price = 1.0
    media = "file"
    command = "vllm run-batch -i {requests} -o {results} --model {model}"
    media_option = " --allowed-local-media-path {media}"


def _status(value: object) -> int:
    """Return an HTTP status or 0; a huge number in a row turns all its numbers into floats."""
    return int(value) if isinstance(value, int | float) and 100 <= value < 600 else 0


# One request.


class OpenAIModel(JsonModel):
    """A model of OpenAI's, or of a server with one of its wire formats."""

    spec_row: ClassVar[Mapping[str, Any]] = {
        "base_url": "https://api.openai.com/v1",
        "base_url_env": "OPENAI_BASE_URL",
        "key_env": "OPENAI_API_KEY",
    }
    environment: ClassVar[Mapping[str, str]] = {
        "OpenAI-Organization": "OPENAI_ORG_ID",
        "OpenAI-Project": "OPENAI_PROJECT_ID",
    }
    custom_headers: ClassVar[str] = "OPENAI_CUSTOM_HEADERS"

    def __init__(self, preset: Preset, key: Key) -> None:
        super().__init__(preset, key)
        # Another server is taken for vLLM's, whose batches are of Chat Completions alone.
        if is_openai(preset.base_url):
            self.batch = OpenAIBatches(self)
        elif self.path == OpenAIChat.path:
            self.batch = VllmBatches(self)

    @classmethod
    def is_providers_own(cls, url: str) -> bool:
        return is_openai(url)


class ChatOptions(Options, frozen=True, kw_only=True):
    """The options of Chat Completions.

    Attributes:
        audio_part: the kind of part that carries a track; audio_url is vLLM's.
        token_limit: the field that carries `max_new_tokens`.
    """

    audio_part: Literal["input_audio", "audio_url"] = "input_audio"
    token_limit: Literal["max_completion_tokens", "max_tokens"] = "max_tokens"


class OpenAIChat(OpenAIModel):
    """A model behind Chat Completions.

    Pictures go as `image_url` with a data URL, tracks as `input_audio` or `audio_url`, whole clips
    as `video_url` (the last two are vLLM's). The messages are encoded in `write`, which runs in a
    thread, and sent as bytes, so that the event loop encodes nothing that grows with the media.

    An answer that the prompt begins, and special tokens that are kept, are fields which vLLM and
    SGLang have beside OpenAI's.
    """

    wire: ClassVar[str] = "openai"
    options = ChatOptions
    own: ChatOptions
    path: ClassVar[str] = "/chat/completions"
    ours: ClassVar[frozenset[str]] = frozenset(
        {
            *("messages", "model", "n", "seed", "stream", "temperature"),
            *("max_completion_tokens", "max_tokens"),
        }
    )

    def __init__(self, preset: Preset, key: Key) -> None:
        super().__init__(preset, key)
        if not is_openai(preset.base_url):
            self.controls |= {"special_tokens"}
            if preset.layout == "paper":  # the other makes one turn of all
                self.controls |= {"prefix"}

    @classmethod
    def own_options(cls, given: Mapping[str, Any], url: str) -> ChatOptions:
        """Return the options for a server.

        Newer OpenAI models take only the new field of the token limit, many servers only the old
        one; Ollama and llama-cpp-python accept `max_completion_tokens` and ignore it.
        """
        limit = "max_completion_tokens" if is_openai(url) else "max_tokens"
        return ChatOptions(**{"token_limit": limit, **given})

    def write(self, messages: Sequence[RenderedMessage]) -> tuple[Written, int]:
        """Write the messages as JSON, media in base64, and whether an answer has begun."""
        body: dict[str, Any] = {
            "messages": [
                {"role": message.role, "content": [self._part(part) for part in message.parts]}
                for message in messages
            ]
        }
        if messages and messages[-1].role == "assistant":
            body |= {"continue_final_message": True, "add_generation_prompt": False}
        return Written.of(body)

    def _part(self, part: RenderedPart) -> dict[str, Any]:
        if part.kind == "text":
            return {"type": "text", "text": raw_text(part.text)}
        if part.kind == "audio" and self.own.audio_part == "input_audio" and not self.refer:
            sound = {"data": part.data, "format": _format(part.mime)}
            return {"type": "input_audio", "input_audio": sound}
        kind = f"{part.kind}_url"
        return {"type": kind, kind: {"url": self.refer(part) if self.refer else data_url(part)}}

    def read(self, body: str, params: GenerationParams, where: str, *, tools: bool) -> Completion:
        answer = answer_of(body, _Answer, "chat completion", where)
        if not answer.choices:
            raise CallError(f"the answer has no choices: {excerpt(body)}", where=where)
        choice = answer.choices[first_of([each.index for each in answer.choices], where)]
        message = choice.message
        if failure := choice.error or message.error:
            raise error_in_answer(failure, where=where)
        content = _text(message, where)
        completion = Completion(text=content or "", **accounting(answer.usage, answer.model))
        if refusal := message.refusal or "".join(part.refusal or "" for part in _parts(message)):
            return msgspec.structs.replace(completion, delivery="refused", error=refusal)
        delivery = delivery_of(choice.finish_reason, where=where)
        if delivery == "ok" and choice.native_finish_reason:
            # Gateways say "stop" of answers that the server behind them cut or failed to give.
            delivery = delivery_of(choice.native_finish_reason, where=where)
        if delivery == "refused":
            reason = "the answer was held back by a content filter"
            return msgspec.structs.replace(completion, delivery="refused", error=reason)
        if delivery == "truncated":
            limit = params.max_new_tokens
            reason = f"the answer was cut at {limit} tokens" if limit else "the answer was cut"
            return msgspec.structs.replace(completion, delivery="truncated", error=reason)
        if message.tool_calls or message.function_call:
            raise tool_called(where)
        if not completion.text.strip() and _has_reasoning(message):
            raise only_reasoning_error(where)
        if content is None:
            raise CallError(
                "the server sent a message without content",
                where=where,
                expected="a text as the message's `content`, which may be empty",
            )
        return completion

    def request_settings(self, params: GenerationParams, tools: Sequence[str]) -> dict[str, Any]:
        settings = {
            "model": self.preset.model,
            "temperature": params.temperature,
            self.own.token_limit: params.max_new_tokens,
            "seed": params.seed,
            "stop": params.stop or None,
            "skip_special_tokens": False if params.special_tokens else None,
        }
        return {name: value for name, value in settings.items() if value is not None}


def _format(mime: str) -> str:
    """Return the name for `input_audio`: "wav" for audio/x-wav and audio/wav."""
    name = mime.partition("/")[2].removeprefix("x-")
    return {"mpeg": "mp3", "wave": "wav", "mp4": "m4a"}.get(name, name)


def _parts(message: _Message) -> list[_Part]:
    return message.content if isinstance(message.content, list) else []


def _text(message: _Message, where: str) -> str | None:
    if not isinstance(message.content, list):
        return message.content
    if others := {part.type for part in message.content} - _PARTS:
        raise CallError(
            f"the answer has a part that omnidata does not read: {excerpt(min(others))}",
            where=where,
            expected=f"parts of type {', '.join(sorted(_PARTS))}",
            transient=False,
        )
    texts = [part.text for part in message.content if part.type == "text"]
    known = [text for text in texts if text is not None]
    return "".join(known) if known else None


def _has_reasoning(message: _Message) -> bool:
    return bool(
        message.reasoning
        or message.reasoning_content
        or message.reasoning_details
        or message.thinking
        or message.thinking_blocks
        or any(part.type in _THOUGHTS for part in _parts(message))
    )
