"""What an HTTP answer that is no answer means for a run; all wire formats judge by it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from omnidata import jsontext
from omnidata.errors import CallError

_HOPELESS = frozenset({401, 402, 403, 404, 405, 407, 410})
_TRANSIENT = frozenset({408, 409, 425, 429})
_FOR_GOOD = frozenset({501, 505})
_THROTTLED = frozenset({429, 529})
_BAD_KEY = ("API_KEY_INVALID", "API_KEY_EXPIRED", "invalid_api_key")
_NO_CREDIT = ("insufficient_quota", "billing_not_active")
_DELAY = re.compile(r'"retryDelay"\s*:\s*"(\d{1,9}(?:\.\d+)?)s"')
_EXCERPT = 300
_ENDLESS = re.compile(r"\d{1000}")  # a whole number that Python refuses to convert


def fault(status: int, headers: Mapping[str, str], body: str, *, where: str) -> CallError:
    """The error that a status stands for.

    Transient are 408, 409, 425, 429 and 5xx but 501 and 505. Hopeless are those that every request
    of a run will meet: 401-405, 407, 410, redirects (a key is not sent on to another address), a
    key that Google calls invalid with a 400, and an account without credit, which OpenAI reports
    with a 429.

    Args:
        status: the HTTP status, not a success.
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
    transient = status in _TRANSIENT or (status >= 500 and status not in _FOR_GOOD)
    said = " ".join(body.split())[:_EXCERPT]
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
    """
    milliseconds = _seconds(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    said = headers.get("retry-after", "")
    seconds = _seconds(said)
    if seconds is not None:
        return seconds
    if said and (when := _date(said)) is not None:
        return max(0.0, (when - datetime.now(UTC)).total_seconds())
    delay = _DELAY.search(body)
    return float(delay.group(1)) if delay else None


def sendable(text: str) -> str:
    r"""The text with a question mark for each lone surrogate, which UTF-8 cannot hold.

    Examples:
        >>> sendable("go \ud800 back")
        'go ? back'
    """
    return text.encode(errors="replace").decode()


def parsed(body: str) -> Any:
    """The JSON value of an answer, or `jsontext.BROKEN`.

    Raises:
        RecursionError: the value is nested too deeply.

    Examples:
        >>> parsed('{"usage": {"total_tokens": ' + "9" * 5000 + "}}")
        {'usage': {'total_tokens': inf}}
    """
    value = jsontext.decode(body)
    if value is not jsontext.BROKEN or not _ENDLESS.search(body):
        return value
    try:
        return json.loads(body, parse_int=float)
    except ValueError:
        return value


def _seconds(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\s*\d{1,9}(\.\d*)?\s*", text, re.ASCII) else None


def _date(text: str) -> datetime | None:
    try:
        when = parsedate_to_datetime(text)
    except ValueError:
        return None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def _remedy(status: int, spent: bool) -> str:
    if spent:
        return "the account has no credit left"
    if 300 <= status < 400:
        return "give the address that the server redirects to"
    if status in (401, 403, 407):
        return "check the key and what it may use"
    if status in (404, 405, 410):
        return "check the address and the model's name"
    return ""
