"""Our models for inspect_ai: `--model omnidata/SPEC`, as `omnidata/hf:Qwen/Qwen2.5-Omni-7B`.

inspect_ai's own local provider takes texts alone. A SPEC is one of `omnidata evaluate --model`, its
options are `-M key=value`. Messages of inspect_ai are converted back to a conversation of ours,
media bytes unchanged, for the adapter.
"""

from __future__ import annotations

import asyncio
import base64
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from anyio import CapacityLimiter, Event, fail_after, to_thread
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    Content,
    ContentAudio,
    ContentImage,
    ContentText,
    ContentVideo,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    RetryDecision,
    StopReason,
    modelapi,
)
from inspect_ai.tool import ToolChoice, ToolInfo

from omnidata.adapters import get_adapter, is_light
from omnidata.adapters.render import RenderedMessage, RenderedPart
from omnidata.errors import CallError, MediaError, OmnidataError, UsageError
from omnidata.media import InMemoryMedia
from omnidata.run.adapter_contract import check_adapter, check_answers, render_request, slip
from omnidata.run.cost import Tokens
from omnidata.run.logs.inspect import KEY
from omnidata.types import (
    Adapter,
    Completion,
    Conversation,
    GenerationParams,
    Message,
    Modality,
    Part,
    Prepared,
    Request,
)

NAME: Final = "omnidata"
"""Name of the provider, as in `--model omnidata/SPEC`."""
_REASONS: Final[Mapping[str, StopReason]] = {
    "ok": "stop",
    "truncated": "max_tokens",
    "refused": "content_filter",
}
_FORMATS: Final[Mapping[str, Any]] = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
    "video/mp4": "mp4",
    "video/mpeg": "mpeg",
    "video/quicktime": "mov",
}
"""inspect_ai's names of the formats of sounds and clips."""


@contextmanager
def convert_errors() -> Iterator[None]:
    """Raise our errors as the one that inspect_ai prints without a traceback."""
    try:
        yield
    except OmnidataError as error:
        raise PrerequisiteError(str(error).replace("[", "\\[")) from error


def texts_of(value: Any) -> Sequence[str]:
    """Return the texts that a user may have written for a value that inspect_ai read as YAML.

    Examples:
        >>> texts_of(8), texts_of(False), texts_of(["I", "A"]), texts_of("gold")
        (['8'], ['false', 'off', 'no'], ['I,A'], ['gold'])
    """
    if isinstance(value, bool):
        return ["true", "on", "yes"] if value else ["false", "off", "no"]
    if isinstance(value, list | tuple):
        return [",".join(map(str, value))]
    return ["" if value is None else str(value)]


def messages_of(
    messages: Sequence[RenderedMessage], about: Mapping[str, Any], originals: Conversation
) -> list[ChatMessage]:
    """Convert messages of ours to inspect_ai's.

    Args:
        messages: with their media in the form in which they are sent.
        about: metadata of each message, for our own models.
        originals: the messages before rendering, whose parts have roles; empty if another model
            reads the messages.

    Raises:
        UsageError: a clip is of a format that inspect_ai does not send.
    """
    kinds = {"system": ChatMessageSystem, "user": ChatMessageUser}
    made: list[ChatMessage] = []
    for number, message in enumerate(messages):
        described = [
            {
                "role": part.role,
                **({"size": list(part.size)} if part.size else {}),
                **({"about": dict(part.about)} if part.about else {}),
            }
            for part in (originals[number].parts if originals else ())
        ]
        metadata = {KEY: {**about, "parts": described}} if described else None
        content = [_content(part) for part in message.parts]
        kind = kinds.get(message.role, ChatMessageAssistant)
        made.append(kind(content=content, metadata=metadata))
    return made


def _content(part: RenderedPart) -> Content:
    if part.kind == "text":
        return ContentText(text=part.text)
    encoded = base64.b64encode(part.data).decode()
    if part.kind == "image":
        return ContentImage(image=f"data:{part.mime};base64,{encoded}")
    format = _FORMATS.get(part.mime)
    if format is None or part.kind not in ("audio", "video"):
        raise UsageError(
            f"inspect_ai sends no {part.kind} of the type {part.mime or part.text!r:.80}",
            expected="clips that are mp4, mpeg or mov",
            remedy="add -T clips=frames to send pictures instead",
        )
    if part.kind == "audio":
        mime = "audio/mpeg" if format == "mp3" else "audio/wav"
        return ContentAudio(audio=f"data:{mime};base64,{encoded}", format=format)
    return ContentVideo(video=f"data:{part.mime};base64,{encoded}", format=format)


def _conversation_of(messages: Sequence[ChatMessage]) -> Conversation:
    made = []
    for message in messages:
        if message.role == "tool":
            raise UsageError(
                "omnidata's models have no tools",
                where="a message of a tool",
                expected="messages of the system, the user and the assistant",
            )
        content = message.content
        parts = [ContentText(text=content)] if isinstance(content, str) else content
        own = _own(message).get("parts")
        roles = own if isinstance(own, list) and len(own) == len(parts) else [{}] * len(parts)
        made.append(Message(message.role, tuple(map(_part, parts, roles))))
    return tuple(made)


def _own(message: ChatMessage) -> Mapping[str, Any]:
    found = (message.metadata or {}).get(KEY)
    return found if isinstance(found, dict) else {}


def _part(content: Content, described: Mapping[str, Any]) -> Part:
    if isinstance(content, ContentText):
        about = described.get("about") or {}
        return Part("text", content.text, role=described.get("role", ""), about=about)
    kind: Modality
    if isinstance(content, ContentImage):
        kind, uri = "image", content.image
    elif isinstance(content, ContentAudio):
        kind, uri = "audio", content.audio
    elif isinstance(content, ContentVideo):
        kind, uri = "video", content.video
    else:
        raise UsageError(
            f"omnidata's models do not accept parts of type {content.type}",
            expected="texts, pictures, sounds and clips",
        )
    head, comma, encoded = uri.partition(",")
    if not (comma and head.startswith("data:") and head.endswith(";base64")):
        raise UsageError(
            f"a media part is not a data URI: {uri!r:.80}",
            expected="the bytes of media in messages",
        )
    role = described.get("role") or kind
    size = described.get("size")
    held = InMemoryMedia(kind, Path(), role, content=base64.b64decode(encoded))
    return Part(kind, media=held, role=role, size=tuple(size) if size else None)


class _Waiting:
    def __init__(self, prepared: Prepared, params: GenerationParams) -> None:
        self.prepared, self.params = prepared, params
        self.taken = False
        self.changed = Event()
        self.answer: Completion | Exception | None = None


class OmnidataModel(ModelAPI):
    """A model of ours.

    Requests that wait for the model at the same time go to it as one batch, as many as it takes.

    Args:
        model_name: the SPEC.
        base_url: the server's address, in place of the preset's.
        api_key: unused: keys are read from the environment, as in `omnidata evaluate`.
        config: settings of decoding; the model's own are the defaults.
        options: as given with `-M key=value`.

    Raises:
        PrerequisiteError: the SPEC is unknown, or the model cannot be made.
    """

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008  as inspect_ai's own have it
        **options: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        self._options = {name: texts_of(value)[0] for name, value in options.items()}
        with convert_errors():
            self._adapter = self._make_adapter()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._slots = CapacityLimiter(self._adapter.concurrency)
        self._waiting: deque[_Waiting] = deque()

    def _make_adapter(self) -> Adapter:
        adapter = get_adapter(
            self.model_name, None, (), options=self._options, base_url=self.base_url
        )
        check_adapter(adapter)
        return adapter

    def _in_this_loop(self) -> None:
        """Make an adapter per event loop: inspect_ai keeps one model for several."""
        loop = asyncio.get_running_loop()
        if self._loop not in (None, loop):
            self._slots, self._waiting = CapacityLimiter(self._adapter.concurrency), deque()
            if is_light(self.model_name):  # another has its weights, and no connections
                self._adapter = self._make_adapter()
        self._loop = loop

    def max_connections(self) -> int:
        """Return the number of open requests of `omnidata evaluate`."""
        return self._adapter.concurrency * self._adapter.max_batch

    def should_retry(self, ex: Exception) -> RetryDecision:
        """Return whether the adapter calls its error transient."""
        if not isinstance(ex, CallError) or not ex.transient or ex.hopeless:
            return RetryDecision.no()
        decide = RetryDecision.rate_limit if ex.throttled else RetryDecision.transient
        return decide(ex.retry_after)

    async def aclose(self) -> None:
        """Close the adapter's connections."""
        await self._adapter.close()

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Answer, in one attempt.

        Raises:
            CallError: no answer came.
            UsageError: the model cannot take the messages.
        """
        if tools:
            raise UsageError(
                "omnidata's models have no tools",
                where=f"--model {NAME}/{self.model_name}",
                expected="a task without tools",
            )
        self._in_this_loop()
        ours = next(filter(None, map(_own, input)), {})
        own, usual = self._adapter.params, GenerationParams()  # which our tasks ask others for
        asked = config.temperature, config.max_tokens
        params = GenerationParams(
            temperature=own.temperature if asked[0] in (None, usual.temperature) else asked[0],
            max_new_tokens=own.max_new_tokens
            if asked[1] in (None, usual.max_new_tokens)
            else asked[1],
            seed=own.seed if config.seed is None else config.seed,
            stop=tuple(config.stop_seqs or ()),
            special_tokens=ours.get("special_tokens") is True,
        )
        request = Request(str(ours.get("sample_id", "")), _conversation_of(input))
        try:
            prepared = await to_thread.run_sync(render_request, None, self._adapter, request)
        except MediaError as error:
            return self._output("", "unknown", {"delivery": "media_error", "error": str(error)})
        completion = await self._answer(_Waiting(prepared, params))
        if completion.delivery == "media_error":
            return self._output(
                "", "unknown", {"delivery": "media_error", "error": completion.error}
            )
        reason = _REASONS.get(completion.delivery)
        if reason is None:
            raise CallError(completion.error, transient=False)
        receipt = {**prepared.receipt, **completion.receipt}
        output = self._output(completion.text, reason, {"receipt": receipt})
        output.error = completion.error or None
        tokens = Tokens.of(completion.usage)
        output.usage = ModelUsage(
            input_tokens=tokens.input - tokens.cached,
            input_tokens_cache_read=tokens.cached,
            output_tokens=tokens.output,
            total_tokens=tokens.total,
        )
        return output

    def _output(self, text: str, reason: StopReason, own: Mapping[str, Any]) -> ModelOutput:
        message = ChatMessageAssistant(content=text, source="generate")
        return ModelOutput(
            model=self.model_name,
            choices=[ChatCompletionChoice(message=message, stop_reason=reason)],
            usage=ModelUsage(),
            metadata={KEY: dict(own)},
        )

    async def _answer(self, waiting: _Waiting) -> Completion:
        """Wait for an answer; the first request with a slot asks for all waiting ones."""
        self._waiting.append(waiting)
        while waiting.answer is None:
            async with self._slots:
                if not waiting.taken and waiting.answer is None:
                    await self._ask(waiting)
                    continue
            await waiting.changed.wait()
            waiting.changed = Event()
        if isinstance(waiting.answer, Exception):
            raise waiting.answer
        return waiting.answer

    async def _ask(self, first: _Waiting) -> None:
        self._waiting.remove(first)
        alike = [other for other in self._waiting if other.params == first.params]
        batch = [first, *alike[: self._adapter.max_batch - 1]]
        for one in batch:
            one.taken = True
        for one in batch[1:]:
            self._waiting.remove(one)
        try:
            answers: Sequence[Completion | Exception] = await self._generate_batch(batch)
        except CallError as error:
            answers = [error] * len(batch)
        except BaseException:  # the sample that asked has ended; the others wait for the next one
            for one in batch[1:]:
                one.taken = False
                self._waiting.append(one)
                one.changed.set()
            raise
        for one, answer in zip(batch, answers, strict=True):
            one.answer = answer
            one.changed.set()

    async def _generate_batch(self, batch: Sequence[_Waiting]) -> Sequence[Completion | Exception]:
        adapter = self._adapter
        prepared = [one.prepared for one in batch]
        try:
            with fail_after(adapter.timeout_s):
                found = await adapter.generate(prepared, batch[0].params)
            return check_answers(found, len(batch))
        except TimeoutError:
            raise CallError(f"no answer within {adapter.timeout_s} s") from None
        except OmnidataError:
            raise
        except Exception as error:
            raise slip(adapter, error, "generate") from error


@modelapi(name=NAME)
def omnidata() -> type[ModelAPI]:
    """Return the provider, by which inspect_ai finds the class."""
    return OmnidataModel
