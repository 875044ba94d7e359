"""What Gemini answered: text, refusal, length cut, tokens."""

from __future__ import annotations

from typing import Any

import msgspec

from omnidata.adapters.counts import counted, in_snake_case
from omnidata.adapters.finish_reasons import delivered, reported
from omnidata.adapters.http import parsed
from omnidata.errors import CallError
from omnidata.types import Completion

_EXCERPT = 300


class _Named(msgspec.Struct, rename="camel"):
    """The API's names are in camel case."""


class _Part(_Named):
    text: str = ""
    thought: bool = False
    function_call: Any = None


class _Content(_Named):
    parts: list[_Part] | None = None


class _Candidate(_Named):
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None


class _Feedback(_Named):
    block_reason: str | None = None
    block_reason_message: str | None = None


class _Answer(_Named):
    candidates: list[_Candidate] | None = None
    prompt_feedback: _Feedback | None = None
    usage_metadata: Any = None
    model_version: Any = None
    error: Any = None


def completion(body: str, where: str) -> Completion:
    """The answer; thoughts are left out of its text.

    A blocked prompt and a candidate that was stopped for its content are refusals. A candidate that
    stopped for another reason than its end or its length is no answer.

    Args:
        body: the JSON that the server sent.
        where: the server's address, for errors.

    Raises:
        CallError: there is no candidate, or it is no answer.
    """
    try:
        answer = msgspec.convert(parsed(body), _Answer)
    except (ValueError, RecursionError):
        said = " ".join(body[:_EXCERPT].split())
        raise CallError(f"the answer cannot be read: {said or '(nothing)'}", where=where) from None
    if answer.error:
        raise reported(answer.error, where=where)
    model = answer.model_version
    about = Completion(
        usage=in_snake_case(counted(answer.usage_metadata, str)),
        receipt={"model": model[:_EXCERPT]} if isinstance(model, str) else {},
    )
    feedback = answer.prompt_feedback
    if feedback and feedback.block_reason:
        said = f"{feedback.block_reason} {feedback.block_reason_message or ''}".rstrip()
        error = f"the prompt was blocked: {said}"
        return msgspec.structs.replace(about, delivery="refused", error=error)
    if not answer.candidates:
        raise CallError("the answer has no candidate", where=where)
    candidate = answer.candidates[0]
    message = candidate.finish_message or ""
    delivery = delivered(candidate.finish_reason, message, where=where)
    if delivery == "truncated":
        error = "the answer was cut at its greatest length"
    else:
        error = f"{candidate.finish_reason} {message}".strip()[:_EXCERPT]
    parts = (candidate.content.parts if candidate.content else None) or []
    return msgspec.structs.replace(
        about,
        delivery=delivery,
        text="".join(part.text for part in parts if not part.thought),
        error="" if delivery == "ok" else error,
    )
