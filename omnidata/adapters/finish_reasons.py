"""Why a model stopped, in the words of all servers, and what is known of who answered."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from omnidata.adapters.http import fault
from omnidata.errors import CallError
from omnidata.types import Delivery

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


def delivered(reason: str | None, message: str = "", *, where: str) -> Delivery:
    """What a reason to stop means for the text that came with it.

    Args:
        reason: the server's word, in any case; None where it gives none.
        message: what the server says of it.
        where: the server's address, for errors.

    Raises:
        CallError: the text is no answer: the model was stopped by an error, called a tool, or
            stopped for a reason that nobody knows, or for none.

    Examples:
        >>> delivered("MAX_TOKENS", where="http://localhost")
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


def tool_called(where: str, how: str = "") -> CallError:
    """The error that stands for a call of a tool: its text, if any, is not the answer."""
    return CallError(
        f"the model called a tool in place of an answer{how}",
        where=where,
        remedy="turn tools off at the server, or in extra_body",
        transient=False,
    )


def reasoned_alone(where: str) -> CallError:
    """The error that stands for reasoning without an answer behind it."""
    return CallError(
        "the server sent the model's reasoning and no answer",
        where=where,
        remedy="check how the server tells reasoning and answer apart",
        transient=False,
    )


def reported(error: Any, *, where: str) -> CallError:
    """The error that an answer with status 200 reports beside its text, or in place of it.

    Gateways send one where the model fails after they have begun to answer.
    """
    said = error.get("message", error) if isinstance(error, dict) else error
    code = error.get("code") if isinstance(error, dict) else None
    text = " ".join(str(said).split())[:_EXCERPT]
    if isinstance(code, int) and 400 <= code < 600:
        return fault(code, {}, text, where=where)
    return CallError(f"the server reports an error: {text}", where=where)


def is_another(asked: str, said: str) -> bool:
    """Whether a server names plainly another model than it was asked for.

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
    """A name without its provider's, in lower case."""
    return name.rstrip("/").rpartition("/")[2].lower()
