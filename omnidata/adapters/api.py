"""A model behind HTTP: what all wire formats share.

How a request is made ready and sent, why a model stopped, in the words of all servers, and what is
kept of a server's own accounting.
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import aiohttp
import msgspec

from omnidata import jsontext
from omnidata.adapters.base import Model
from omnidata.adapters.http import Headers, fault, open_session
from omnidata.adapters.keys import Key, credentials_in, secrets_in
from omnidata.adapters.media_budget import arrange, lacking
from omnidata.adapters.presets import Preset
from omnidata.adapters.render import RenderedMessage, render
from omnidata.errors import CallError, UsageError
from omnidata.jsontext import is_number
from omnidata.types import (
    Completion,
    Conversation,
    Delivery,
    GenerationParams,
    Modality,
    Prepared,
    Request,
    is_token_count,
)

_log = logging.getLogger(__name__)
_LONGEST_ERROR = 1000


class ApiModel(Model):
    """A preset behind a wire format; a subclass says how a request is written and sent.

    Attributes:
        wire: the name of the wire format.
        url: where requests are sent.
        version: goes up with every change to what the wire format sends, so that a kept answer is
            never taken for one to another request.
        ours: fields of a request that `extra_body` may not say, inner ones behind a dot.
        controls: as in `Model`: what requests have fields for.
        tools: names of the provider's own tools that a prompt may have (`Capabilities.tools`).

    Args:
        preset: the row that describes the model.
        key: the secret that the server asks for.

    Raises:
        UsageError: `extra_body` holds what the request says elsewhere, or there is a generation
            setting that the request has no field for.
    """

    wire: ClassVar[str]
    version: ClassVar[int] = 1
    ours: ClassVar[frozenset[str]] = frozenset()
    tools: ClassVar[frozenset[str]] = frozenset()
    accepts: frozenset[Modality]
    controls: frozenset[str] = frozenset({"temperature", "max_new_tokens", "seed", "stop"})
    concurrency = 16
    timeout_s = 300.0

    _session: aiohttp.ClientSession | None = None

    def __init__(self, preset: Preset, key: Key) -> None:
        for name in sorted(self.ours & _names(preset.extra_body)):
            raise UsageError(
                f'"{name}" is not for extra_body: it is part of every request',
                where=f"--model {preset.spec}",
                remedy="use the options temperature, max_new_tokens and seed",
            )
        for name in ("temperature", "max_new_tokens", "seed"):  # the others are no options
            if getattr(preset.params, name) is not None and name not in self.controls:
                raise UsageError(
                    f'the wire format "{self.wire}" cannot send {name}',
                    where=f"--model {preset.spec}",
                    expected=f"{name}=none, to use the server's default",
                )
        self.preset = preset
        hidden = (*secrets_in(preset.base_url), *credentials_in(preset.extra_body))
        self.key = key.also(hidden)
        self.name = preset.spec
        self._warned = False
        self.params = preset.params
        self.capabilities = replace(preset.capabilities, tools=self.tools)
        self.accepts = self.capabilities.accepts
        self.url = preset.base_url
        settings = {**preset.settings, "wire": f"{self.wire}-{self.version}"}
        if preset.base_url:
            settings["base_url"] = self.key.redact(preset.base_url)
        self.settings: Mapping[str, Any] = settings

    def unsupported_reason(self, conversation: Conversation) -> str:
        """Return why the model cannot take the whole conversation; empty if it may take a part."""
        if self.capabilities.degrade:
            return ""
        arranged, _ = arrange(conversation, self.preset.layout, self.preset.release)
        return lacking(arranged, self.capabilities)

    def prepare(self, request: Request) -> Prepared:
        """Render the conversation and write the request; runs in a thread.

        Raises:
            MediaError: a medium cannot be read.
        """
        arranged, dropped = arrange(request.conversation, self.preset.layout, self.preset.release)
        messages, receipt = render(arranged, self.capabilities)
        if dropped:
            reasons = [f"{part['role']}: {part['dropped']}" for part in dropped]
            receipt = {
                **receipt,
                "parts": [*receipt["parts"], *dropped],
                "degraded": [*receipt.get("degraded", ()), *reasons],
            }
        payload, size = self.write(messages)
        return Prepared(request, payload, size, receipt, self._digest(messages))

    def _digest(self, messages: Sequence[RenderedMessage]) -> str:
        parts = [
            [
                message.role,
                [(part.kind, part.text, part.mime, part.sha256) for part in message.parts],
            ]
            for message in messages
        ]
        asked = [self.version, self.preset.asked, parts]
        return hashlib.sha256(jsontext.encode(asked)).hexdigest()

    async def generate(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> Sequence[Completion]:
        """Send one request.

        Raises:
            CallError: no answer came; the key is not in its message.
        """
        [prepared] = batch
        began = time.perf_counter()
        with self.key.hide_in_errors():
            answer = await self.send(prepared.payload, params)
        return [self.finish_answer(answer, prepared.receipt, time.perf_counter() - began)]

    def finish_answer(
        self, answer: Completion, receipt: Mapping[str, Any], latency_s: float = 0.0
    ) -> Completion:
        """Return an answer as a run records it.

        Args:
            answer: as it was read; the usage as the server has it, as is the `model` of its
                receipt.
            receipt: of the request.
            latency_s: seconds that it took; 0 where nobody waited for it.
        """
        usage = token_usage(answer.usage, self.key.redact)
        said: dict[str, Any] = {"tokens": counts} if (counts := tokens_by_modality(usage)) else {}
        model = answer.receipt.get("model") or self.preset.model
        if model != self.preset.model:
            said["model"] = model
            self._warn_of(model)
        return msgspec.structs.replace(
            answer,
            text=self.key.redact(answer.text),
            error=self.key.redact(answer.error)[:_LONGEST_ERROR],
            usage=usage,
            latency_s=latency_s,
            receipt={**receipt, **said},
        )

    def _warn_of(self, model: str) -> None:
        if self._warned or not is_another(self.preset.model, model):
            return
        self._warned = True
        _log.warning(
            "%s: the server says that %r answered; the receipts of such answers name it",
            self.name,
            model,
        )

    def session(self) -> aiohttp.ClientSession:
        """Return the connections to the server, opened by the first call in the event loop."""
        if self._session is None:
            self._session = open_session(self.key, self.url)
        return self._session

    @cached_property
    def common_headers(self) -> Headers:
        """Headers of every request; by default a key as a bearer token.

        They are not the session's: aiohttp sends those to proxies as well.
        """
        return Headers({"Authorization": f"Bearer {self.key.value}"} if self.key else {})

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    @abstractmethod
    def write(self, messages: Sequence[RenderedMessage]) -> tuple[Any, int]:
        """Return the request without its generation settings, and its size in bytes."""

    @abstractmethod
    async def send(self, payload: Any, params: GenerationParams) -> Completion:
        """Send one request; usage and the `model` of the receipt are as the server has them.

        Raises:
            CallError: no answer came.
        """


def _names(body: Mapping[str, Any]) -> set[str]:
    nested = {name: value for name, value in body.items() if isinstance(value, dict)}
    return body.keys() | {f"{name}.{key}" for name, value in nested.items() for key in value}


# Why a model stopped, and who answered.

_DELIVERIES: Mapping[Delivery, tuple[str, ...]] = {
    "ok": (
        *("stop", "eos", "eos_token", "stop_sequence", "end_turn", "complete", "completed"),
        *("end_of_turn", "stop_token"),
    ),
    "truncated": (
        *("length", "max_tokens", "max_length", "max_output_tokens", "model_length"),
        *("model_context_window_exceeded", "error_limit"),
    ),
    "refused": (
        *("content_filter", "content_filtered", "refusal", "guardrail_intervened", "sensitive"),
        *("safety", "recitation", "language", "blocklist", "prohibited_content", "spii"),
        *("image_safety", "image_prohibited_content", "image_recitation", "model_armor"),
        "error_toxic",
    ),
}
"""OpenAI, Azure, vLLM, SGLang, TGI, Ollama, llama.cpp, Mistral, Cohere, Zhipu; Anthropic, Bedrock
and Gemini, also behind gateways that pass their words on."""

_DELIVERY = {word: delivery for delivery, words in _DELIVERIES.items() for word in words}
_PASSING = frozenset(
    {
        *("error", "abort", "aborted", "cancelled", "canceled", "user_cancel", "timeout", "other"),
        *("network_error", "insufficient_system_resource", "malformed_function_call"),
        *("malformed_response", "malformed_model_output", "missing_thought_signature"),
        "image_other",
    }
)
"""Reasons after which the same request may be answered."""

_TOOLS = frozenset({"tool_calls", "tool_call", "tool_use", "function_call", "unexpected_tool_call"})
_EXCERPT = 200
_VERSION = re.compile(r"\d{2,8}|latest|preview|exp|experimental|beta|stable|v\d+|free|\d+k?b?it")
_DATED = re.compile(r"\d{2,}")


def delivery_of(reason: str | None, message: str = "", *, where: str) -> Delivery:
    """Return the delivery that a reason to stop stands for.

    Args:
        reason: the server's word, in any case; None where it gives none.
        message: what the server says of it.
        where: the server's address, for errors.

    Raises:
        CallError: the text is no answer: the model was stopped by an error, called a tool, or
            stopped for a reason that nobody knows, or for none.

    Examples:
        >>> delivery_of("MAX_TOKENS", where="http://localhost")
        'truncated'
    """
    word = (reason or "").lower()
    if word in _DELIVERY:
        return _DELIVERY[word]
    said = f"{reason} {message}".strip()[:_EXCERPT]
    if word in ("", "finish_reason_unspecified"):
        raise CallError(
            "the server does not say why the model stopped: the answer may not be whole",
            where=where,
            expected="a finish reason with every answer",
            transient=False,
        )
    if word in _TOOLS:
        raise tool_called(where, f" ({said})")
    if word in _PASSING:
        raise CallError(f"the model stopped without an answer: {said}", where=where)
    raise CallError(
        f"the model stopped for a reason that omnidata does not know: {said}",
        where=where,
        expected=f"one of {', '.join(_DELIVERY)}",
        transient=False,
    )


def first_of(indices: Sequence[object], where: str) -> int:
    """Return the place of the answer among several to one request: the one with index 0.

    Servers may send them in any order. One alone is the answer whatever its index; where none has
    an index, the first is.

    Args:
        indices: the index that each has, in the order in which they came; None where it has none.
        where: the server's address, for errors.

    Returns:
        Its place.

    Raises:
        CallError: none has the index 0, or two have.

    Examples:
        >>> first_of([1, 0], "http://localhost"), first_of([None, None], "http://localhost")
        (1, 0)
        >>> first_of([None, 1], "http://localhost")  # a 0 may be left out, as any default
        0
    """
    named = [place for place, index in enumerate(indices) if is_number(index) and index == 0]
    unnamed = [place for place, index in enumerate(indices) if index is None]
    found = named or (unnamed if len(unnamed) in (1, len(indices)) else [])
    if len(indices) == 1 or (found and len(named) < 2):
        return found[0] if found else 0
    raise CallError(
        f"{len(named)} of {len(indices)} answers in one response have the index 0",
        where=where,
        expected="one answer, or one with the index 0",
        transient=False,
    )


def tool_called(where: str, how: str = "") -> CallError:
    """Return the error for a call of a tool, whose text is not the answer."""
    return CallError(
        f"the model called a tool in place of an answer{how}",
        where=where,
        remedy="turn tools off at the server, or in extra_body",
        transient=False,
    )


def only_reasoning_error(where: str) -> CallError:
    """Return the error that stands for reasoning without an answer behind it."""
    return CallError(
        "the server sent the model's reasoning and no answer",
        where=where,
        remedy="check how the server tells reasoning and answer apart",
        transient=False,
    )


def error_in_answer(error: Any, *, where: str) -> CallError:
    """Return the error that an answer with status 200 reports beside or without a text.

    Gateways send one where the model fails after they have begun to answer.
    """
    said = error.get("message", error) if isinstance(error, dict) else error
    code = error.get("code") if isinstance(error, dict) else None
    text = " ".join(str(said).split())[:_EXCERPT]
    if isinstance(code, int) and 400 <= code < 600:
        return fault(code, {}, text, where=where)
    return CallError(f"the server reports an error: {text}", where=where)


def is_another(asked: str, said: str) -> bool:
    """Return whether a server plainly names another model than it was asked for.

    Servers answer with the version behind a name, with or without the provider's: that is the
    model. Another size, family or dated version is not.

    Examples:
        >>> is_another("gpt-4o", "gpt-4o-2024-08-06"), is_another("m/Llama-3-8B", "llama-3-8b")
        (False, False)
        >>> is_another("gpt-4o", "gpt-4o-mini"), is_another("m-2024-05-13", "m-2024-08-06")
        (True, True)
    """
    wanted, got = (Counter(re.split(r"[-_.@:\s]+", _bare(name))) for name in (asked, said))
    more, less = got - wanted, wanted - got
    if not all(_VERSION.fullmatch(word) for word in [*more, *less]):
        return True
    return any(map(_DATED.fullmatch, more)) and any(map(_DATED.fullmatch, less))


def _bare(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2].lower()


# What a server says of its own accounting, as far as it is numbers; nothing else is written down.
#
# A usage is whatever the server likes: huge, deeply nested, or a text that repeats the key.

_NAME = re.compile(r"[A-Za-z]\w{0,63}", re.ASCII)
_MODALITIES = ("text", "image", "audio", "video", "document")
_MOST = 64
"""Names of one usage, and lines of one list; servers have a dozen."""


def token_usage(usage: object, redact: Callable[[str], str]) -> dict[str, Any]:
    """Return the numbers of a usage by name, and those one level below; nothing else.

    Args:
        usage: as the server has it.
        redact: takes a secret out of a text; a name that holds one is left out.

    Examples:
        >>> token_usage({"prompt_tokens": 9, "cost": float("nan"), "note": "x"}, str)
        {'prompt_tokens': 9}
        >>> token_usage({"prompt_tokens_details": [{"modality": "IMAGE", "token_count": 8}]}, str)
        {'prompt_tokens_details': [{'modality': 'IMAGE', 'token_count': 8}]}
    """
    found: dict[str, Any] = {}
    for name, value in _named_counts(usage, redact).items():
        if _is_count(name, value):
            found[name] = value
        elif isinstance(value, list):
            found[name] = [_numbers(item, redact) for item in value[:_MOST]]
        elif inner := _numbers(value, redact):
            found[name] = inner
    return found


def tokens_by_modality(usage: Mapping[str, Any]) -> dict[str, int]:
    """Tokens of the prompt by modality, where the server tells.

    Args:
        usage: as `token_usage` gives it, in OpenAI's names or Gemini's.

    Examples:
        >>> tokens_by_modality({"prompt_tokens_details": {"image_tokens": 8, "cached_tokens": 2}})
        {'image': 8}
        >>> tokens_by_modality({"prompt_tokens_details": [{"modality": "IMAGE", "token_count": 8}]})
        {'image': 8}
    """
    details = usage.get("prompt_tokens_details")
    if isinstance(details, list):
        said = {str(item.get("modality")).lower(): item.get("token_count") for item in details}
    elif isinstance(details, Mapping):
        said = {name: details.get(f"{name}_tokens") for name in _MODALITIES}
    else:
        return {}
    return {name: said[name] for name in _MODALITIES if isinstance(said.get(name), int)}


def _numbers(value: object, redact: Callable[[str], str]) -> dict[str, Any]:
    return {
        name: item
        for name, item in _named_counts(value, redact).items()
        if _is_count(name, item) or (name == "modality" and str(item).lower() in _MODALITIES)
    }


def _named_counts(value: object, redact: Callable[[str], str]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {}
    kept = [
        (name, item)
        for name, item in value.items()
        if _NAME.fullmatch(str(name)) and redact(name) == name
    ]
    return dict(kept[:_MOST])


def _is_count(name: str, value: object) -> bool:
    if "token" in name.lower():
        return is_token_count(value)
    # Compared, not converted: there are whole numbers in JSON that no float can hold.
    return is_number(value) and 0 <= value < 2**53
