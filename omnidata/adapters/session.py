"""An HTTP session in which all that goes wrong is a CallError."""

from __future__ import annotations

import io
from typing import Any

import aiohttp
import yarl

from omnidata.adapters.http import fault
from omnidata.adapters.keys import Key
from omnidata.errors import CallError

MAX_ANSWER_BYTES = 16 * 2**20
"""No answer of a model is longer; a server that sends more is not read to the end."""

MAX_ERROR_BYTES = 2**16
"""Of what is no answer so much is read; its status has said what matters."""

_CHUNK_BYTES = 2**16
_LARGE_BYTES = 2**20


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

    async def read(self) -> bytes:
        """The whole body.

        Raises:
            CallError: it is longer than any answer, or the connection broke.
        """
        if self._body is None:
            body = await self._up_to(MAX_ANSWER_BYTES)
            if len(body) > MAX_ANSWER_BYTES:
                raise CallError(
                    f"the answer is longer than {MAX_ANSWER_BYTES:,} bytes",
                    where=address(self.url),
                    transient=False,
                )
            self._body = self.key.redact_bytes(body)
        return await super().read()

    async def begin(self) -> str:
        """The first `MAX_ERROR_BYTES` of the body as text; the rest is given up.

        Raises:
            CallError: the connection broke.
        """
        body = await self._up_to(MAX_ERROR_BYTES + self.key.margin)
        return self.key.redact_start(body, MAX_ERROR_BYTES)

    async def _up_to(self, limit: int) -> bytes:
        """The body; of a longer one at least a byte more than the limit, and it is closed."""
        body = bytearray()
        try:
            async for chunk in self.content.iter_chunked(_CHUNK_BYTES):
                body += chunk
                if len(body) > limit:
                    self.close()
                    break
        except (aiohttp.ClientError, OSError) as error:
            self.close()
            raise _broken(error, self.url) from error
        except BaseException:
            self.close()
            raise
        return bytes(body)


def open_session(key: Key, *, bearer: bool = False) -> aiohttp.ClientSession:
    """A session without time limits, retries, cookies or redirects; to be made in the event loop.

    Its requests raise CallError for every status but 2xx and for every break of a connection, so
    that libraries which use it (google-genai) neither retry nor put their own errors in its place.
    A redirect is an error because the headers, and a key among them, would go to another address.

    Args:
        key: taken out of all that servers say.
        bearer: send the key, if there is one, as a bearer token.
    """
    authorization = f"Bearer {key.value}" if bearer and key else ""

    async def judged(
        request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        # aiohttp takes proxies from the environment only together with passwords from ~/.netrc.
        request.headers.popall("Authorization", None)
        if authorization:
            request.headers["Authorization"] = authorization
        try:
            response = await handler(request)
        except (aiohttp.ClientError, OSError) as error:
            raise _broken(error, request.url) from error
        assert isinstance(response, BoundedResponse)  # as `response_class` says
        response.key = key
        if 200 <= response.status < 300:
            return response
        body = await response.begin()
        raise fault(response.status, response.headers, body, where=address(request.url))

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        middlewares=(judged,),
        request_class=BoundedRequest,
        response_class=BoundedResponse,
        timeout=aiohttp.ClientTimeout(total=None),
        trust_env=True,
    )


def address(url: yarl.URL) -> str:
    """Where an error happened: the URL without user, password and query.

    Examples:
        >>> address(yarl.URL("http://me:secret@localhost:8000/v1?key=secret"))
        'http://localhost:8000/v1'
    """
    return str(url.with_user(None).with_query(None))


def _broken(error: Exception, url: yarl.URL) -> CallError:
    certificate = isinstance(error, aiohttp.ClientConnectorCertificateError)
    return CallError(
        f"{type(error).__name__}: {error}" if str(error) else type(error).__name__,
        where=address(url),
        remedy="check the address and that the server is up",
        transient=not certificate,
        hopeless=certificate,
    )
