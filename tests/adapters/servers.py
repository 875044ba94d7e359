"""Servers on 127.0.0.1 that check what they are sent, decode its media and answer by them.

An answer is the list of all that the server saw, text by text and medium by medium (`seen_*`), so
that a swapped, missing or truncated medium gives another answer. What a wire format looks like is a
`Wire`; whatever is wrong with a payload is an HTTP 400 and stands in `Server.problems`.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import av
import numpy as np
import numpy.typing as npt
from aiohttp import web
from PIL import Image


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong with one request.

    Attributes:
        status, headers: of the answer.
        body: sent in place of an answer; a failing status without one has a JSON error.
        delay_s: waits so long first.
        hang: never answers.
        reset: breaks the connection, "before" the answer or in "mid-body".
        finish: the reason why the model stopped.
        refusal: what the model says in place of an answer.
        text: the answer's text, in place of what was seen; None sends no text at all.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    delay_s: float = 0.0
    hang: bool = False
    reset: str = ""
    finish: str = "stop"
    refusal: str = ""
    text: str | None = "(seen)"


FINE = Fault()
Script = Sequence[Fault] | Callable[[int], Fault]
"""Faults of the first requests, or the fault of a request by its number from 0."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as the server read it.

    Attributes:
        seen: a line for each text and medium, in order.
        payload: the whole request, media included.
        headers: its headers, names in lower case.
    """

    seen: list[str]
    payload: Any
    headers: Mapping[str, str] = field(default_factory=dict)


class Wire(Protocol):
    """What requests and answers of a wire format look like."""

    @property
    def path(self) -> str:
        """Of the requests, as aiohttp's router writes it."""

    async def read(self, request: web.Request) -> Asked:
        """Decode the request.

        Raises:
            AssertionError, KeyError, ValueError: it is not as it should be.
        """

    def reply(self, asked: Asked, text: str | None, fault: Fault) -> Any:
        """The answer's JSON."""


class Server:
    """A running server; see `running`.

    Attributes:
        url: its address, e.g. "http://127.0.0.1:40001".
        script: what goes wrong.
        asked: every request that could be read, in the order in which they came.
        bodies: of those, byte by byte; empty for forms.
        problems: what was wrong with payloads.
        count: requests in all, those that got a fault included.
        most: how many were open at a time.
    """

    def __init__(self, wire: Wire, script: Script) -> None:
        self.url = ""
        self.script = script
        self.asked: list[Asked] = []
        self.bodies: list[bytes] = []
        self.problems: list[str] = []
        self.count = 0
        self.most = 0
        self._open = 0
        self._wire = wire

    def _fault(self) -> Fault:
        number = self.count
        self.count += 1
        if callable(self.script):
            return self.script(number)
        return self.script[number] if number < len(self.script) else FINE

    async def handle(self, request: web.Request) -> web.StreamResponse:
        fault = self._fault()
        self._open += 1
        self.most = max(self.most, self._open)
        try:
            return await self._answer(request, fault)
        finally:
            self._open -= 1

    async def _answer(self, request: web.Request, fault: Fault) -> web.StreamResponse:
        try:
            read = await self._wire.read(request)
        except (AssertionError, KeyError, ValueError, OSError, av.FFmpegError) as error:
            self.problems.append(f"{type(error).__name__}: {error}")
            return web.json_response({"error": {"message": self.problems[-1]}}, status=400)
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = Asked(read.seen, read.payload, headers)
        self.asked.append(asked)
        self.bodies.append(await request.read())
        await asyncio.sleep(3600 if fault.hang else fault.delay_s)
        text = "\n".join(asked.seen) if fault.text == "(seen)" else fault.text
        body = fault.body
        if body is None and fault.status >= 400:
            body = json.dumps({"error": {"message": f"scripted {fault.status}"}}).encode()
        if body is None:
            body = json.dumps(self._wire.reply(asked, text, fault)).encode()
        named = {"Content-Type": "application/json", **fault.headers}
        if not fault.reset:
            return web.Response(status=fault.status, headers=named, body=body)
        response = web.StreamResponse(status=fault.status, headers=named)
        if fault.reset == "mid-body":
            response.content_length = len(body)
            await response.prepare(request)
            await response.write(body[: len(body) // 2])
        assert request.transport is not None
        request.transport.abort()
        return response


@contextmanager
def running(wire: Wire, script: Script = ()) -> Iterator[Server]:
    """A server in a thread of its own; nothing may have been wrong with any payload."""
    server = Server(wire, script)
    loop = asyncio.new_event_loop()
    ready = threading.Event()

    async def serve() -> web.AppRunner:
        app = web.Application(client_max_size=2**28)
        app.router.add_post(wire.path, server.handle)
        app.router.add_routes(getattr(wire, "routes", ()))
        runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return runner

    def work() -> None:
        asyncio.set_event_loop(loop)
        runner = loop.run_until_complete(serve())
        ready.set()
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
    assert not server.problems


class ChatCompletions:
    """Chat Completions, with vLLM's audio_url and video_url.

    Args:
        key: the bearer token that every request must have.
    """

    path = "/v1/chat/completions"
    fields = frozenset(
        {"model", "messages", "temperature", "max_tokens", "max_completion_tokens", "seed"}
    )

    def __init__(self, key: str = "EMPTY", extra: frozenset[str] = frozenset()) -> None:
        self.key = key
        self.extra = extra

    async def read(self, request: web.Request) -> Asked:
        assert request.headers["Authorization"] == f"Bearer {self.key}", "wrong key"
        assert request.content_type == "application/json", request.content_type
        payload = json.loads(await request.read())
        unknown = payload.keys() - self.fields - self.extra
        assert not unknown, f"unknown fields {unknown}"
        assert isinstance(payload["model"], str)
        assert payload["messages"], "no messages"
        seen = []
        for message in payload["messages"]:
            assert message.keys() == {"role", "content"}, message.keys()
            assert message["role"] in ("system", "user", "assistant")
            for part in message["content"]:
                seen.append(f"{message['role']}: {_chat_part(part)}")
        return Asked(seen, payload)

    def reply(self, asked: Asked, text: str | None, fault: Fault) -> Any:
        message = {"role": "assistant", "content": text}
        if fault.refusal:
            message |= {"content": None, "refusal": fault.refusal}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": asked.payload["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": fault.finish}],
            "usage": {
                "prompt_tokens": 100,
                "completion_tokens": 10,
                "total_tokens": 110,
                "prompt_tokens_details": {"text_tokens": 60, "image_tokens": 40},
            },
        }


def _chat_part(part: dict[str, Any]) -> str:
    kind = part["type"]
    assert part.keys() == {"type", kind}, part.keys()
    if kind == "text":
        return seen_text(part["text"])
    if kind == "input_audio":
        sound = part["input_audio"]
        assert sound.keys() == {"data", "format"}
        return seen_audio(base64.b64decode(sound["data"], validate=True), sound["format"])
    assert part[kind].keys() == {"url"}
    mime, data = from_data_url(part[kind]["url"])
    family, _, form = mime.partition("/")
    assert kind == f"{family}_url", f"{mime} as {kind}"
    return {"image": seen_image, "video": seen_video, "audio": seen_audio}[family](data, form)


def from_data_url(url: str) -> tuple[str, bytes]:
    """MIME type and bytes."""
    head, _, data = url.partition(",")
    assert head.startswith("data:"), head[:40]
    assert head.endswith(";base64"), head[:40]
    return head.removeprefix("data:").removesuffix(";base64"), base64.b64decode(data, validate=True)


def seen_text(text: str) -> str:
    return f"text {text}"


def seen_image(data: bytes, form: str = "png") -> str:
    with Image.open(io.BytesIO(data)) as picture:
        assert picture.format is not None
        assert picture.format.lower() == form, f"{picture.format} as image/{form}"
        return seen_pixels(np.asarray(picture.convert("RGB")))


def seen_pixels(pixels: npt.NDArray[np.uint8]) -> str:
    """What is seen of a picture or a frame: (height, width, 3)."""
    return f"image {pixels.shape[1]}x{pixels.shape[0]} {_digest(pixels.tobytes())}"


def seen_video(data: bytes, form: str = "mp4") -> str:
    with av.open(io.BytesIO(data), "r") as container:
        assert form in container.format.name.split(","), f"{container.format.name} as {form}"
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    pixels = b"".join(frame.tobytes() for frame in frames)
    return f"video {len(frames)} frames {_digest(pixels)}"


def seen_audio(data: bytes, form: str = "wav") -> str:
    with av.open(io.BytesIO(data), "r") as container:
        form = form.removeprefix("x-").replace("mpeg", "mp3")
        assert form in container.format.name.split(","), f"{container.format.name} as {form}"
        rate = container.streams.audio[0].rate
        chunks = [frame.to_ndarray() for frame in container.decode(audio=0)]
    samples = np.concatenate(chunks, axis=1)
    return f"audio {samples.shape[1]} samples at {rate} Hz {_digest(samples.tobytes())}"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
