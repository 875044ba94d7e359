"""What Gemini answered: text, refusal, length cut, tokens."""

from __future__ import annotations

from google.genai.types import (
    Candidate,
    FinishReason,
    GenerateContentResponse,
)

from omnidata.errors import CallError
from omnidata.types import Completion

_COMPLETE = frozenset({None, FinishReason.FINISH_REASON_UNSPECIFIED, FinishReason.STOP})
_REFUSALS = frozenset(
    {
        FinishReason.SAFETY,
        FinishReason.RECITATION,
        FinishReason.LANGUAGE,
        FinishReason.BLOCKLIST,
        FinishReason.PROHIBITED_CONTENT,
        FinishReason.SPII,
        FinishReason.IMAGE_SAFETY,
        FinishReason.IMAGE_PROHIBITED_CONTENT,
        FinishReason.IMAGE_RECITATION,
        FinishReason.MODEL_ARMOR,
    }
)

_EXCERPT = 300


def completion(response: GenerateContentResponse, where: str) -> Completion:
    """The answer; thoughts are left out of its text.

    A blocked prompt and a candidate that was stopped for its content are refusals. A candidate that
    stopped for another reason than its end or its length is no answer.

    Args:
        response: as the SDK has it.
        where: the server's address, for errors.

    Raises:
        CallError: there is no candidate, or it is no answer.
    """
    usage = response.usage_metadata
    counts = usage.model_dump(mode="json", exclude_none=True) if usage else {}
    feedback = response.prompt_feedback
    if feedback and feedback.block_reason:
        said = f"{feedback.block_reason.value} {feedback.block_reason_message or ''}".rstrip()
        error = f"the prompt was blocked: {said}"
        return Completion(delivery="refused", error=error, usage=counts)
    if not response.candidates:
        raise CallError("the answer has no candidate", where=where)
    candidate = response.candidates[0]
    text = _text(candidate)
    reason: FinishReason | None = candidate.finish_reason
    said = f"{reason.value if reason else ''} {candidate.finish_message or ''}".strip()[:_EXCERPT]
    if reason in _REFUSALS:
        return Completion(delivery="refused", text=text, error=said, usage=counts)
    if reason == FinishReason.MAX_TOKENS:
        error = "the answer was cut at its greatest length"
        return Completion(delivery="truncated", text=text, error=error, usage=counts)
    if reason not in _COMPLETE or (reason is None and not text):
        raise CallError(f"the model stopped without an answer: {said or 'no reason'}", where=where)
    return Completion(text=text, usage=counts)


def _text(candidate: Candidate) -> str:
    parts = candidate.content.parts if candidate.content else None
    return "".join(part.text or "" for part in parts or () if not part.thought)
