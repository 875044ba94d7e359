"""HTTP sessions in which every failure is a CallError."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
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

from omnidata.adapters.answers import MAX_ERROR_BYTES, decode_answer, excerpt, fault, is_whole
from omnidata.adapters.keys import Key
from omnidata.errors import CallError

_CUT = "Not enough data"  # how aiohttp begins its message about a body that ends too early
MAX_ANSWER_BYTES = 16 * 2**20
"""No answer of a model is longer; a server that sends more is not read to the end."""

_REQUEST_IDS = ("x-request-id", "request-id")
_LONGEST_ID = 200
_CHUNK_BYTES = 2**16


class BoundedResponse(aiohttp.ClientResponse):
    """A response that is not read past `MAX_ANSWER_BYTES`, after decompression.

    Attributes:
        key: redacted in the body.
    """

    key = Key()

    @property
    def where(self) -> str:
        """The address, and the name that the server gives to the request, for errors."""
        named = next(filter(None, map(self.headers.get, _REQUEST_IDS)), "")
        request = self.key.redact(named)[:_LONGEST_ID]
        place = address(self.url)
        return f"{place} (request {request})" if request else place

    async def text(self, encoding: str | None = None, errors: str = "strict") -> str:
        """Read and return the body; JSON is UTF-8 whatever the head says (RFC 8259, section 8.1).

        Raises:
            CallError: it is longer than any answer or no text of one, or the connection broke.
        """
        body = await self._up_to(MAX_ANSWER_BYTES)
        if len(body) > MAX_ANSWER_BYTES:
            raise CallError(
                f"the answer is longer than {MAX_ANSWER_BYTES:,} bytes",
                where=address(self.url),
                transient=False,
            )
        return decode_answer(self.key.redact_bytes(body), address(self.url))

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
        async for chunk in self.chunks():
            body += chunk
            if len(body) > limit:
                self.close()
                break
        return bytes(body)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body in pieces; close the connection if it is not read to its end.

        Raises:
            CallError: the connection broke.
        """
        try:
            async for chunk in self.content.iter_chunked(_CHUNK_BYTES):
                yield chunk
        except (aiohttp.ClientError, OSError) as error:
            self.close()
            raise connection_error(error, address(self.url)) from None
        except BaseException:
            self.close()
            raise


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
    connection. A redirect is an error because the headers, and a key among them, would go to
    another address.

    Args:
        key: redacted in everything that servers send.
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
            said = excerpt(link.message)
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
        unsent=isinstance(error, aiohttp.ClientConnectorError),
    )
