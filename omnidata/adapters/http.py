"""What an HTTP answer that is no answer means for a run; all wire formats judge by it."""

from __future__ import annotations

import asyncio
import io
import json
import re
import ssl
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache, partial
from ipaddress import ip_address, ip_network
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import yarl
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.tracing import Trace
from multidict import CIMultiDict

from omnidata import jsontext
from omnidata.adapters.keys import Key
from omnidata.errors import CallError

_HOPELESS = frozenset({401, 402, 403, 404, 405, 407, 410})
_TRANSIENT = frozenset({408, 409, 425, 429})
_FOR_GOOD = frozenset({501, 505})
_THROTTLED = frozenset({429, 529})
_BAD_KEY = ("API_KEY_INVALID", "API_KEY_EXPIRED", "invalid_api_key")
_NO_CREDIT = ("insufficient_quota", "billing_not_active", "credit balance is too low")
_DELAY = re.compile(r'"retryDelay"\s*:\s*"(\d{1,9}(?:\.\d+)?)s"')
_EXCERPT = 300
_CUT = "Not enough data"  # how aiohttp begins what it says of a body that ends too early
_ENDLESS = re.compile(r"\d{1000}")  # a whole number that Python refuses to convert
_WHOLE = frozenset({200, 201, 203, 204})


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
    answer (206). Hopeless are those that every request
    of a run will meet: 401-405, 407, 410, redirects (a key is not sent on to another address), a
    key that Google calls invalid with a 400, and an account without credit, which OpenAI reports
    with a 429 and Anthropic with a 400.

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
    if said and (when := _date(said)) is not None:
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


class _DoubledError(Exception):
    pass


class _Doubled(dict[str, Any]):
    key: str


def doubled_key(body: str) -> str:
    """Return the first key that a JSON object has twice with different values.

    Which of the two a parser takes is its own affair: what such a text says is not known.

    Args:
        body: the text.

    Returns:
        The key; empty where there is none, or in the server's accounting alone.

    Raises:
        RecursionError: the value is nested too deeply.

    Examples:
        >>> doubled_key('{"choices": [{"finish_reason": "length", "finish_reason": "stop"}]}')
        'finish_reason'
        >>> doubled_key('{"usage": {"n": 1, "n": 2}, "usage": {}, "text": "a", "text": "a"}')
        ''
    """
    try:
        json.loads(body, object_pairs_hook=_refuse_doubled, parse_int=float)
        return ""
    except _DoubledError:
        value = json.loads(body, object_pairs_hook=_mark_doubled, parse_int=float)
        return value.key if isinstance(value, _Doubled) else ""
    except ValueError:
        return ""


def _refuse_doubled(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise _DoubledError
    return made


def _mark_doubled(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    for key, value in pairs:
        held = value if isinstance(value, list) else [value]
        inner = next((each.key for each in held if isinstance(each, _Doubled)), "")
        if inner and key not in _ACCOUNTING:
            break
        if len(made) < len(pairs) and made[key] != value and key not in _ACCOUNTING:
            inner = key
            break
    else:
        return made
    found = _Doubled(made)
    found.key = inner
    return found


def text_of(body: bytes, where: str) -> str:
    """Return the text of an answer.

    Raises:
        CallError: it is not UTF-8, or says something twice and not the same.
    """
    try:
        text = body.decode("utf-8-sig")
        twice = doubled_key(text)
    except UnicodeDecodeError:
        raise CallError(
            "the answer is not UTF-8",
            where=where,
            expected="JSON in UTF-8",
        ) from None
    except RecursionError:
        return text  # its reader reports it
    if twice:
        raise CallError(
            f"the answer says {twice[:_EXCERPT]!r} twice, and not the same",
            where=where,
            expected="each key once",
            transient=False,
        )
    return text


def _seconds(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\s*\d{1,9}(\.\d*)?\s*", text, re.ASCII) else None


def _date(text: str) -> datetime | None:
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, OverflowError):  # no date, or one beyond the calendar
        return None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


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


# An HTTP session in which all that goes wrong is a CallError.

MAX_ANSWER_BYTES = 16 * 2**20
"""No answer of a model is longer; a server that sends more is not read to the end."""

MAX_ERROR_BYTES = 2**16
"""Of what is no answer so much is read; its status has said what matters."""

_REQUEST_IDS = ("x-request-id", "request-id")
_LONGEST_ID = 200
_CHUNK_BYTES = 2**16
_LARGE_BYTES = 2**20


class Headers(CIMultiDict[str]):
    """Headers of requests, among them keys: as text it has their names alone."""

    def __repr__(self) -> str:
        return f"Headers({', '.join(self)})"


class BoundedRequest(aiohttp.ClientRequest):
    """A request whose body, if it is large, goes to the socket in pieces."""

    def update_body_from_data(self, body: Any, *more: Any, **named: Any) -> None:
        """Take the body; one write of many megabytes would hold up all other requests."""
        if isinstance(body, bytes) and len(body) > _LARGE_BYTES:
            body = io.BytesIO(body)
        super().update_body_from_data(body, *more, **named)


class BoundedResponse(aiohttp.ClientResponse):
    """A response that is not read past `MAX_ANSWER_BYTES`, after decompression.

    Attributes:
        key: what is taken out of the body before anybody sees it.
    """

    key = Key()
    _text: str | None = None

    @property
    def where(self) -> str:
        """The address, and the name that the server gives to the request, for errors."""
        named = next(filter(None, map(self.headers.get, _REQUEST_IDS)), "")
        request = self.key.redact(named)[:_LONGEST_ID]
        place = address(self.url)
        return f"{place} (request {request})" if request else place

    async def text(self, encoding: str | None = None, errors: str = "strict") -> str:
        """Return the whole body; JSON is UTF-8 whatever the head says (RFC 8259, section 8.1).

        Raises:
            CallError: it is longer than any answer or no text of one, or the connection broke.
        """
        if self._text is None:
            body = await self._up_to(MAX_ANSWER_BYTES)
            if len(body) > MAX_ANSWER_BYTES:
                raise CallError(
                    f"the answer is longer than {MAX_ANSWER_BYTES:,} bytes",
                    where=address(self.url),
                    transient=False,
                )
            self._text = text_of(self.key.redact_bytes(body), address(self.url))
        return self._text

    async def read(self) -> bytes:
        """Return the whole body as `text` has it."""
        return (await self.text()).encode()

    async def begin(self) -> str:
        """Return the first `MAX_ERROR_BYTES` of the body as text, and drop the rest.

        Raises:
            CallError: the connection broke.
        """
        body = await self._up_to(MAX_ERROR_BYTES + self.key.margin)
        return self.key.redact_start(body, MAX_ERROR_BYTES)

    async def _up_to(self, limit: int) -> bytes:
        """Read the body; stop after the first byte beyond the limit and close."""
        body = bytearray()
        try:
            async for chunk in self.content.iter_chunked(_CHUNK_BYTES):
                body += chunk
                if len(body) > limit:
                    self.close()
                    break
        except (aiohttp.ClientError, OSError) as error:
            self.close()
            raise connection_error(error, address(self.url)) from None
        except BaseException:
            self.close()
            raise
        return bytes(body)


QUIET_S: Final = 0.25
"""A connection is used again after it has been silent for so long behind an answer."""


class _Handler(ResponseHandler):
    """Close a connection on which unrequested data arrive."""

    idle = False

    def __init__(self, overrun: Callable[[], None], loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._overrun = overrun

    def set_response_params(self, **settings: Any) -> None:
        self.idle = False
        super().set_response_params(**settings)

    def data_received(self, data: bytes) -> None:
        if self.idle and data:
            self._overrun()
            self.close()
        else:
            super().data_received(data)


class QuietConnector(aiohttp.TCPConnector):
    """Connections that are used again only where nothing was left on them.

    A server, or a proxy that repeats itself, may answer twice: what is left of the first request
    would be taken for the answer to the next one on the same connection. So one rests behind its
    answer, and is closed where anything comes. From then on none is used a second time.

    Where one request is sent after the other, the one that rests is closed for the next: a server
    may serve one connection at a time, until it has answered on one while another rested.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._factory: Any = partial(_Handler, self._distrust, loop=self._loop)
        self._resting: set[ResponseHandler] = set()
        self._serves_many = False

    def _distrust(self) -> None:
        self._force_close = True

    def _release(
        self, key: ConnectionKey, protocol: ResponseHandler, *, should_close: bool = False
    ) -> None:
        if should_close or self._closed or self._force_close or protocol.should_close:
            super()._release(key, protocol, should_close=should_close)
        else:
            assert isinstance(protocol, _Handler)  # as the factory says
            protocol.idle = True
            self._serves_many |= any(each.is_connected() for each in self._resting)
            self._resting.add(protocol)
            self._loop.call_later(QUIET_S, self._wake, key, protocol)

    def _wake(self, key: ConnectionKey, protocol: ResponseHandler) -> None:
        self._resting.discard(protocol)
        super()._release(key, protocol)

    async def _create_connection(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        if (
            not self._serves_many and len(self._acquired) - len(self._resting) <= 1
        ):  # this one alone is wanted
            for protocol in self._resting:
                protocol.close()
        return await super()._create_connection(req, traces, timeout)


def open_session(key: Key, base_url: str) -> aiohttp.ClientSession:
    """Open a session without time limits, retries, cookies or redirects; needs the event loop.

    Its requests raise CallError for every status without a whole answer and for every break of a
    connection, so that libraries which use it (google-genai) neither retry nor put their own errors
    in its place.
    A redirect is an error because the headers, and a key among them, would go to another address.

    Args:
        key: taken out of all that servers say.
        base_url: of the server; the environment says which proxy and certificates it needs.

    Raises:
        CallError: the environment names a proxy or certificates that cannot be used.
    """

    async def judge_response(
        request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        try:
            response = await handler(request)
        except (aiohttp.ClientError, OSError) as error:
            raise connection_error(error, address(request.url)) from None
        assert isinstance(response, BoundedResponse)  # as `response_class` says
        response.key = key
        if is_whole(response.status):
            return response
        body = await response.begin()
        raise fault(response.status, response.headers, body, where=response.where)

    secure: ssl.SSLContext | bool = True
    if urlsplit(base_url).scheme == "https":
        import httpx2  # its contexts know the certificates of macOS and Windows

        try:
            secure = httpx2.create_ssl_context()
        except OSError as error:
            raise CallError(
                f"the certificates cannot be loaded: {error}",
                where=base_url,
                remedy="correct SSL_CERT_FILE or SSL_CERT_DIR",
                transient=False,
                hopeless=True,
            ) from None
    return aiohttp.ClientSession(
        connector=QuietConnector(limit=0, ssl=secure),
        cookie_jar=aiohttp.DummyCookieJar(),
        middlewares=(judge_response,),
        proxy=find_proxy(base_url),
        request_class=BoundedRequest,
        response_class=BoundedResponse,
        timeout=aiohttp.ClientTimeout(total=None),
    )


def find_proxy(url: str) -> str | None:
    """Return the proxy of the environment for a server; None if there is none.

    With `trust_env` aiohttp looks for one, and for passwords in ~/.netrc, at every request.

    Raises:
        CallError: it is not an HTTP proxy; the message does not quote it.
    """
    server, proxies = urlsplit(url), getproxies()
    skipped = proxies.get("no", "").split(",")
    if proxy_bypass(server.netloc) or any(_covers(name, server.hostname) for name in skipped):
        return None
    proxy = proxies.get(server.scheme) or proxies.get("all")
    if not proxy:
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    try:
        parts = urlsplit(proxy)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return proxy
    except ValueError:
        pass  # a port that is no number
    raise CallError(
        "the environment's proxy cannot be used",
        where=url,
        expected=f"http://HOST:PORT or https://... as {server.scheme.upper()}_PROXY or ALL_PROXY",
        remedy="correct it, or name the server in NO_PROXY",
        transient=False,
        hopeless=True,
    )


def _covers(name: str, host: str | None) -> bool:
    """Return whether `*`, an IPv6 address or a network covers a host; urllib does not know them."""
    if name.strip() == "*":
        return True
    try:
        return ip_address(host or "") in ip_network(name.strip("[] "), strict=False)
    except ValueError:
        return False


@lru_cache(maxsize=64)
def address(url: yarl.URL) -> str:
    """Return a URL without user, password and query.

    Examples:
        >>> address(yarl.URL("http://me:secret@localhost:8000/v1?key=secret"))
        'http://localhost:8000/v1'
    """
    return str(url.with_user(None).with_query(None))


def connection_error(error: BaseException, where: str) -> CallError:
    """Return the error for a connection that broke, or was never made."""
    # Libraries put errors of their own around the one that says why.
    links = (error, error.__cause__, error.__context__)
    certificate = any(isinstance(link, aiohttp.ClientConnectorCertificateError) for link in links)
    for link in links:
        if isinstance(link, aiohttp.ClientHttpProxyError):
            return fault(link.status, {}, f"from the proxy: {link.message}", where=where)
        if isinstance(link, aiohttp.ClientResponseError | HttpProcessingError):
            said = " ".join(str(link.message).split())[:_EXCERPT]
            if said.startswith(_CUT):
                return CallError(
                    f"the connection broke before the answer was complete: {said}",
                    where=where,
                    expected="an answer of the length in its header",
                    remedy="check that the server, and any proxy before it, stays up",
                )
            return CallError(
                f"the server's response is not HTTP: {said}",
                where=where,
                expected="a response of HTTP/1.1",
                remedy="check the address, the port, and any proxy before the server",
            )
    return CallError(
        f"{type(error).__name__}: {error}" if str(error) else type(error).__name__,
        where=where,
        remedy="check the address and "
        + ("the server's certificate" if certificate else "that the server is up"),
        transient=not certificate,
        hopeless=certificate,
    )
