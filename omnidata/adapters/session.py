"""An HTTP session in which all that goes wrong is a CallError."""

from __future__ import annotations

import aiohttp
import yarl

from omnidata.adapters.http import fault
from omnidata.errors import CallError

MAX_ANSWER_BYTES = 16 * 2**20
"""No answer of a model is longer; a server that sends more is not read to the end."""

_CHUNK_BYTES = 2**16


class BoundedResponse(aiohttp.ClientResponse):
    """A response that is not read past `MAX_ANSWER_BYTES`, after decompression."""

    async def read(self) -> bytes:
        """The whole body.

        Raises:
            CallError: it is longer than any answer, or the connection broke.
        """
        if self._body is None:
            chunks, size = [], 0
            try:
                async for chunk in self.content.iter_chunked(_CHUNK_BYTES):
                    size += len(chunk)
                    if size > MAX_ANSWER_BYTES:
                        raise CallError(
                            f"the answer is longer than {MAX_ANSWER_BYTES:,} bytes",
                            where=address(self.url),
                            transient=False,
                        )
                    chunks.append(chunk)
            except (aiohttp.ClientError, OSError) as error:
                self.close()
                raise _broken(error, self.url) from error
            except BaseException:
                self.close()
                raise
            self._body = b"".join(chunks)
        return await super().read()


def open_session() -> aiohttp.ClientSession:
    """A session without time limits, retries, cookies or redirects; to be made in the event loop.

    Its requests raise CallError for every status but 2xx and for every break of a connection, so
    that libraries which use it (google-genai) neither retry nor put their own errors in its place.
    A redirect is an error because the headers, and a key among them, would go to another address.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        middlewares=(_judged,),
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


async def _judged(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    try:
        response = await handler(request)
    except (aiohttp.ClientError, OSError) as error:
        raise _broken(error, request.url) from error
    if 200 <= response.status < 300:
        return response
    body = (await response.read()).decode(errors="replace")
    raise fault(response.status, response.headers, body, where=address(request.url))


def _broken(error: Exception, url: yarl.URL) -> CallError:
    certificate = isinstance(error, aiohttp.ClientConnectorCertificateError)
    return CallError(
        f"{type(error).__name__}: {error}" if str(error) else type(error).__name__,
        where=address(url),
        remedy="check the address and that the server is up",
        transient=not certificate,
        hopeless=certificate,
    )
