"""What the answers of servers mean: statuses, JSON, reasons to stop, counts of tokens."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import msgspec

from omnidata import jsontext
from omnidata.errors import CallError
from omnidata.jsontext import is_number
from omnidata.types import Delivery, is_token_count

T = TypeVar("T")

_HOPELESS = frozenset({401, 402, 403, 404, 405, 407, 410})
_TRANSIENT = frozenset({408, 409, 425, 429})
_FOR_GOOD = frozenset({501, 505})
_THROTTLED = frozenset({429, 529})
_BAD_KEY = ("API_KEY_INVALID", "API_KEY_EXPIRED", "invalid_api_key")
_NO_CREDIT = ("insufficient_quota", "billing_not_active", "credit balance is too low")
_DELAY = re.compile(r'"retryDelay"\s*:\s*"(\d{1,9}(?:\.\d+)?)s"')
_ENDLESS = re.compile(r"\d{1000}")  # a whole number that Python refuses to convert
_WHOLE = frozenset({200, 201, 203, 204})
_EXCERPT = 300
MAX_ERROR_BYTES = 2**16
"""Of an answer with an error status so much is read."""


def excerpt(text: object) -> str:
    """Return the beginning of a server's words on one line, for errors."""
    return " ".join(str(text)[: 2 * _EXCERPT].split())[:_EXCERPT]


def is_whole(status: int) -> bool:
    """Return whether a status promises a whole answer: 206 is a part, 202 a promise.

    Examples:
        >>> is_whole(200), is_whole(206), is_whole(302)
        (True, False, False)
    """
    return status in _WHOLE


def fault(status: int, headers: Mapping[str, str], body: str, *, where: str) -> CallError:
    """Return the error that a status stands for.

    Transient are 408, 409, 425, 429, 5xx but 501 and 505, and a success whose body is not the whole
    answer (206). Hopeless are those that every request of a run will meet: 401-405, 407, 410,
    redirects (a key is not sent on to another address), a key that Google calls invalid with a 400,
    and an account without credit, which OpenAI reports with a 429 and Anthropic with a 400.

    Args:
        status: the HTTP status; see `is_whole`.
        headers: of the answer; names in lower case, or a mapping that ignores case.
        body: of the answer, as text.
        where: the server's address, without user and password.

    Examples:
        >>> error = fault(429, {"retry-after": "7"}, "slow down", where="http://localhost")
        >>> error.transient, error.throttled, error.retry_after, error.hopeless
        (True, True, 7.0, False)
        >>> fault(401, {}, "", where="http://localhost").hopeless
        True
    """
    redirect = 300 <= status < 400
    spent = any(mark in body for mark in _NO_CREDIT)
    hopeless = redirect or status in _HOPELESS or spent or any(mark in body for mark in _BAD_KEY)
    transient = status < 300 or status in _TRANSIENT
    transient = transient or (status >= 500 and status not in _FOR_GOOD)
    said = excerpt(body)
    return CallError(
        f"HTTP {status}" + (f": {said}" if said else ""),
        where=where,
        remedy=_remedy(status, spent),
        transient=transient and not hopeless,
        throttled=status in _THROTTLED and not spent,
        retry_after=retry_after(headers, body),
        hopeless=hopeless,
    )


def retry_after(headers: Mapping[str, str], body: str = "") -> float | None:
    """Seconds that the server asks to wait, 0 or more; None if it does not say.

    Read are `retry-after-ms`, `Retry-After` in seconds or as a date (RFC 9110, section 10.2.3), and
    the RetryInfo that Google's servers put into the body instead.

    Examples:
        >>> retry_after({"retry-after": "1.5"})
        1.5
        >>> retry_after({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"})
        0.0
        >>> retry_after({}, '{"retryDelay": "37s"}')
        37.0
        >>> retry_after({"retry-after": "soon"}) is None
        True
        >>> retry_after({"retry-after": f"Fri, 31 Dec {10**20} 23:59:59 GMT"}) is None
        True
    """
    milliseconds = _seconds(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    said = headers.get("retry-after", "")
    seconds = _seconds(said)
    if seconds is not None:
        return seconds
    with suppress(ValueError, OverflowError):  # no date, or one beyond the calendar
        when = parsedate_to_datetime(said)
        when = when if when.tzinfo else when.replace(tzinfo=UTC)
        return max(0.0, (when - datetime.now(UTC)).total_seconds())
    delay = _DELAY.search(body)
    return float(delay.group(1)) if delay else None


def sendable(text: str) -> str:
    r"""Return the text with a question mark for each lone surrogate, which UTF-8 cannot hold.

    Examples:
        >>> sendable("go \ud800 back")
        'go ? back'
    """
    return text.encode(errors="replace").decode()


def parse_json(body: str) -> Any:
    """Return the JSON value of an answer, or `jsontext.BROKEN`.

    Raises:
        RecursionError: the value is nested too deeply.

    Examples:
        >>> parse_json('{"usage": {"total_tokens": ' + "9" * 5000 + "}}")
        {'usage': {'total_tokens': inf}}
    """
    value = jsontext.decode(body)
    if value is not jsontext.BROKEN or not _ENDLESS.search(body):
        return value
    try:
        return json.loads(body, parse_int=float)
    except ValueError:
        return value


_ACCOUNTING = frozenset({"usage", "usageMetadata", "usage_metadata"})


def contradictory_key(body: str) -> str:
    """Return the first key that a JSON object has twice with different values.

    Which of the two a parser takes is its own affair: what such a text says is not known.

    Returns:
        The key; empty where there is none, or in the server's accounting alone.

    Raises:
        RecursionError: the value is nested too deeply.

    Examples:
        >>> contradictory_key('{"choices": [{"finish_reason": "length", "finish_reason": "stop"}]}')
        'finish_reason'
        >>> contradictory_key('{"usage": {"n": 1, "n": 2}, "usage": {}, "text": "a", "text": "a"}')
        ''
    """
    try:
        return _first_contradiction(json.loads(body, object_pairs_hook=_Pairs, parse_int=float))
    except ValueError:
        return ""


class _Pairs(list[tuple[str, Any]]):
    """The keys and values of an object."""


def _first_contradiction(value: object) -> str:
    if isinstance(value, _Pairs):
        held: dict[str, Any] = {}
        for key, inner in value:
            if key not in _ACCOUNTING:
                if held.setdefault(key, inner) != inner:
                    return key
                if found := _first_contradiction(inner):
                    return found
        return ""
    items = value if isinstance(value, list) else ()
    return next(filter(None, map(_first_contradiction, items)), "")


def decode_answer(body: bytes, where: str) -> str:
    """Return the text of an answer.

    Raises:
        CallError: it is not UTF-8, or says something twice and not the same.
    """
    try:
        text = body.decode("utf-8-sig")
        twice = contradictory_key(text)
    except UnicodeDecodeError:
        raise CallError("the answer is not UTF-8", where=where, expected="JSON in UTF-8") from None
    except RecursionError:
        return text  # its reader reports it
    if twice:
        raise CallError(
            f"the answer says {excerpt(twice)!r} twice, and not the same",
            where=where,
            expected="each key once",
            transient=False,
        )
    return text


def _seconds(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\s*\d{1,9}(\.\d*)?\s*", text, re.ASCII) else None


def _remedy(status: int, spent: bool) -> str:
    if spent:
        return "add credit to the account"
    if status < 300:
        return "check the server, or the proxy before it: the answer is incomplete"
    if 300 <= status < 400:
        return "use the address that the server redirects to"
    if status in (401, 403, 407):
        return "check the key and what it may use"
    if status in (404, 405, 410):
        return "check the address and the model's name"
    return ""


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
    said = excerpt(f"{reason} {message}")
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
    text = excerpt(said)
    if isinstance(code, int) and 400 <= code < 600:
        return fault(code, {}, text, where=where)
    return CallError(f"the server reports an error: {text}", where=where)


def answer_of(body: str, form: type[T], noun: str, where: str) -> T:
    """Return the server's answer in its form.

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
        said = excerpt(body) or "(nothing)"
        raise CallError(f"the answer is no {noun}: {said}", where=where) from None


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
    names = (name.rstrip("/").rpartition("/")[2].lower() for name in (asked, said))
    wanted, got = (Counter(re.split(r"[-_.@:\s]+", name)) for name in names)
    more, less = got - wanted, wanted - got
    if not all(_VERSION.fullmatch(word) for word in [*more, *less]):
        return True
    return any(map(_DATED.fullmatch, more)) and any(map(_DATED.fullmatch, less))


# What a server says of its own accounting, as far as it is numbers; nothing else is written down.
#
# A usage is whatever the server likes: huge, deeply nested, or a text that repeats the key.

_NAME = re.compile(r"[A-Za-z]\w{0,63}", re.ASCII)
_MODALITIES = ("text", "image", "audio", "video", "document")
_LONGEST_NAME = 200
_MOST = 64
"""Names of one usage, and lines of one list; servers have a dozen."""


def accounting(usage: object, model: object) -> dict[str, Any]:
    """Return `usage` and `receipt` of a completion, from the server's usage and model.

    The runner takes its counts from this usage; see `token_usage`.
    """
    return {
        "usage": usage if isinstance(usage, dict) else {},
        "receipt": {"model": model[:_LONGEST_NAME]} if isinstance(model, str) else {},
    }


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
    """Return the tokens of the prompt by modality, as far as the server reports them.

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
