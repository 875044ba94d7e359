"""Serve pages on demand, to this machine only.

Addresses hold numbers of steps and media, never paths. `omnidata.media` opens a medium, and only
inside the data after following links. Requests with another host name are refused, against DNS
rebinding.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from functools import lru_cache
from pathlib import Path
from typing import Final

from aiohttp import hdrs, web
from aiohttp.http_exceptions import HttpProcessingError

from omnidata.errors import MediaError, StoreError
from omnidata.media import resolve
from omnidata.types import Modality
from omnidata.viewer.book import Book
from omnidata.viewer.html import Pages, asset, encode, policy
from omnidata.viewer.media_index import HEAD, ON_SERVER, content, is_turned, mime_of, thumbnail

HOST: Final = "127.0.0.1"
_KEPT: Final = 512
_CHUNK: Final = 256 * 1024
_GUARDS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def serve(book: Book, port: int, started: Callable[[str], None]) -> None:
    """Serve until cancelled.

    Args:
        book: the content of the pages.
        port: 0 for any free port.
        started: called with the address once the server answers.

    Raises:
        OSError: the port is taken.
    """
    logger = logging.getLogger(__name__)
    logger.addFilter(_is_ours)
    runner = web.AppRunner(
        _Site(book).application(), access_log=None, logger=logger, shutdown_timeout=1
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, HOST, port)
        await site.start()
        found = runner.addresses[0][1]
        started(f"http://{HOST}:{found}/")
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


def _is_ours(record: logging.LogRecord) -> bool:
    """Return whether a failure is the server's, not that of a malformed request."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


class _Site:
    def __init__(self, book: Book) -> None:
        self._book = book
        self._pages = Pages(book, ON_SERVER)
        self._first: bytes | None = None
        self._thumbnail = lru_cache(_KEPT)(lambda number: thumbnail(book.shelf.refs[number]))

    def application(self) -> web.Application:
        application = web.Application(middlewares=[_refuse_foreign_hosts])
        application.on_response_prepare.append(_set_headers)
        application.router.add_get("/", self._index)
        application.router.add_get("/index.html", self._index)
        application.router.add_get(r"/{name:pages\.(?:css|js)}", self._asset)
        application.router.add_get(r"/steps/{number:[0-9]{1,9}}.html", self._step)
        application.router.add_get(r"/thumbs/{number:[0-9]{1,9}}.webp", self._thumb)
        application.router.add_get(r"/media/{number:[0-9]{1,9}}", self._medium)
        return application

    async def _index(self, request: web.Request) -> web.Response:
        if self._first is None:
            self._first = await asyncio.to_thread(lambda: encode(self._pages.first()))
        return _page(self._first)

    async def _asset(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        kind = "text/css" if name.endswith("css") else "text/javascript"
        return web.Response(text=asset(name), content_type=kind, charset="utf-8")

    async def _step(self, request: web.Request) -> web.Response:
        number = _number(request, len(self._book.steps))
        return _page(await asyncio.to_thread(lambda: encode(self._pages.step(number))))

    async def _thumb(self, request: web.Request) -> web.Response:
        number = _number(request, len(self._book.shelf.refs))
        try:
            data = await asyncio.to_thread(self._thumbnail, number)
        except (MediaError, StoreError) as error:
            raise web.HTTPNotFound(text=error.what) from None
        return web.Response(body=data, content_type="image/webp")

    async def _medium(self, request: web.Request) -> web.StreamResponse:
        ref = self._book.shelf.refs[_number(request, len(self._book.shelf.refs))]
        try:
            turned = await asyncio.to_thread(is_turned, ref)
            if turned or ref.inline is not None or ref.cell is not None:
                data, mime = await asyncio.to_thread(content, ref)
                return await _send_range(
                    request, mime, len(data), lambda at, size: data[at : at + size]
                )
            path = (await asyncio.to_thread(resolve, ref)).resolve()
            return await _file(request, path, ref.kind)
        except (MediaError, StoreError) as error:
            raise web.HTTPNotFound(text=error.what) from None
        except OSError:
            raise web.HTTPNotFound(text="the file cannot be read") from None


async def _file(request: web.Request, path: Path, kind: Modality) -> web.StreamResponse:
    with path.open("rb") as file:
        mime = mime_of(kind, file.read(HEAD))
        if mime is None:
            raise web.HTTPUnsupportedMediaType(text=f"the file is no {kind}")
        size = file.seek(0, 2)

        def read(at: int, count: int) -> bytes:
            file.seek(at)
            return file.read(count)

        return await _send_range(request, mime, size, read)


async def _send_range(
    request: web.Request, mime: str, size: int, read: Callable[[int, int], bytes]
) -> web.StreamResponse:
    """Send all bytes or the requested range (RFC 9110, section 14)."""
    start, stop, status = 0, size, 200
    try:
        wanted = request.http_range
    except ValueError:
        wanted = slice(None)  # several ranges or an unreadable one: send all
    if wanted.start is not None or wanted.stop is not None:
        start, stop, _ = wanted.indices(size)
        if _NOTHING.fullmatch(request.headers[hdrs.RANGE]):
            start = stop
        status = 206
        if start >= stop:
            raise web.HTTPRequestRangeNotSatisfiable(headers={"Content-Range": f"bytes */{size}"})
    response = web.StreamResponse(status=status)
    response.content_type = mime
    response.content_length = stop - start
    response.headers["Accept-Ranges"] = "bytes"
    if status == 206:
        response.headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
    await response.prepare(request)
    if request.method == "HEAD":
        return response
    while start < stop:
        data = await asyncio.to_thread(read, start, min(_CHUNK, stop - start))
        if not data:
            break  # the file has become shorter: the connection is closed, and the reader sees it
        await response.write(data)
        start += len(data)
    return response


_NOTHING = re.compile(r"bytes=-0+", re.IGNORECASE)
"""A request for the last 0 bytes, which `http_range` reads as all bytes."""


def _number(request: web.Request, limit: int) -> int:
    number = int(request.match_info["number"])
    if number >= limit:
        raise web.HTTPNotFound
    return number


def _page(data: bytes) -> web.Response:
    return web.Response(body=data, content_type="text/html", charset="utf-8")


_NAME = re.compile(r"(?:127\.0\.0\.1|localhost)(?::([0-9]{1,5}))?", re.IGNORECASE)


@web.middleware
async def _refuse_foreign_hosts(request: web.Request, handler: Handler) -> web.StreamResponse:
    named = _NAME.fullmatch(request.headers.get("Host", ""))
    own = request.transport.get_extra_info("sockname")[1] if request.transport else 0
    if not named or int(named[1] or 80) != own:
        raise web.HTTPForbidden(text="this server answers only to 127.0.0.1 and localhost")
    return await handler(request)


async def _set_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_GUARDS)
    if response.content_type == "text/html":
        response.headers["Content-Security-Policy"] = policy("server")
    else:
        response.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
