"""A connection is used again only where nothing is left on it: each answer is to its request."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import count
from threading import Thread

import pytest

from omnidata.errors import CallError
from omnidata.types import Message, Part, Request
from tests.adapters.asking import keyed

KEY = "sk-canary-0123456789-abcdefghijklmnop"
STEPS = 10
SAID = [f"question {number}" for number in range(STEPS)]
Writes = Callable[[asyncio.StreamWriter, bytes], Awaitable[None]]
# One that sends JSON and one that sends forms: all wires have the session of one of them.
each_client = pytest.mark.parametrize("spec", ["openai:m", "vita-1.5"])


def answer(text: str) -> bytes:
    """A response that both read."""
    choice = {"message": {"content": text}, "finish_reason": "stop"}
    content = json.dumps({"choices": [choice], "response": text}).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(content)}"
    return head.encode() + b"\r\n\r\n" + content


async def ask_each(spec: str, write: Writes, at_once: int = 1) -> tuple[list[str], int]:
    """What is taken for the answers to so many requests, and how many connections there were."""
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                body = b""
                if length := re.search(rb"content-length: (\d+)", head, re.IGNORECASE):
                    body = await reader.readexactly(int(length[1]))
                else:
                    while not body.endswith(b"0\r\n\r\n"):
                        body += await reader.read(2**16)
                [asked] = re.findall(rb"question \d+", body)
                await write(writer, answer(asked.decode()))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    model = keyed(spec, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", KEY)
    found = [""] * STEPS

    async def ask(first: int) -> None:
        for number in range(first, STEPS, at_once):
            made = model.prepare(Request("a", (Message("user", (Part("text", SAID[number]),)),)))
            try:
                [completion] = await model.generate([made], model.params)
                found[number] = completion.text
            except CallError as error:
                found[number] = str(error)

    try:
        async with asyncio.timeout(60):
            await asyncio.gather(*map(ask, range(at_once)))
    finally:
        await model.close()
        server.close()
    return found, connections


async def once(writer: asyncio.StreamWriter, response: bytes) -> None:
    writer.write(response)
    await writer.drain()


async def twice_in_one(writer: asyncio.StreamWriter, response: bytes) -> None:
    await once(writer, response + response)


async def twice(writer: asyncio.StreamWriter, response: bytes) -> None:
    await once(writer, response)
    await once(writer, response)


async def twice_later(writer: asyncio.StreamWriter, response: bytes) -> None:
    await once(writer, response)
    await asyncio.sleep(0.05)
    await once(writer, response)


async def half_later(writer: asyncio.StreamWriter, response: bytes) -> None:
    """A head without its body, whose rest comes with the next answer."""
    await once(writer, response + b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n")
    await asyncio.sleep(0.05)
    await once(writer, b"\r\nwrong")


@pytest.mark.parametrize("at_once", [1, 3])
@pytest.mark.parametrize("write", [twice_in_one, twice, twice_later, half_later])
@each_client
def test_a_second_response_is_no_answer_to_the_next_request(
    spec: str, write: Writes, at_once: int
) -> None:
    assert asyncio.run(ask_each(spec, write, at_once))[0] == SAID


@each_client
def test_a_silent_connection_is_used_again(spec: str) -> None:
    numbers = count()

    async def slowly(writer: asyncio.StreamWriter, response: bytes) -> None:
        await asyncio.sleep((0.1, 0.25, 0.4)[next(numbers) % 3])
        await once(writer, response)

    found, connections = asyncio.run(ask_each(spec, slowly, 3))
    assert found == SAID
    assert connections < STEPS


def test_connections_at_rest_stay_open_for_a_server_that_serves_several() -> None:
    async def slowly_if_even(writer: asyncio.StreamWriter, response: bytes) -> None:
        if re.search(rb"question \d*[02468]\b", response):
            await asyncio.sleep(0.15)  # these are alone in the end
        await once(writer, response)

    found, connections = asyncio.run(ask_each("openai:m", slowly_if_even, 2))
    assert found == SAID
    assert connections < STEPS


class _OneAtATime(BaseHTTPRequestHandler):
    """Keeps its connection, and meanwhile nobody else is served."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.wfile.write(answer("x"))


def test_a_server_of_one_connection_at_a_time_is_not_waited_for() -> None:
    server = HTTPServer(("127.0.0.1", 0), _OneAtATime)
    thread = Thread(target=server.serve_forever)
    thread.start()

    async def ask() -> list[str]:
        model = keyed("openai:m", f"http://127.0.0.1:{server.server_port}", KEY)
        made = model.prepare(Request("a", (Message("user", (Part("text", "hello"),)),)))
        try:
            async with asyncio.timeout(5):
                return [(await model.generate([made], model.params))[0].text for _ in range(STEPS)]
        finally:
            await model.close()

    try:
        assert asyncio.run(ask()) == ["x"] * STEPS
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


NO_HTTP = r"the server's response is not HTTP|payload is not completed"
CUT = "^(?!.*not HTTP).*the connection broke before the answer was complete"


@pytest.mark.parametrize(
    ("response", "told"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", NO_HTTP),
        (b"HTTP/1.1 two hundred\r\n\r\n", NO_HTTP),
        (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}", NO_HTTP),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}", NO_HTTP),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nten\r\n{}\r\n", NO_HTTP),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}", CUT),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{}", CUT),
    ],
)
@each_client
def test_what_is_no_http_is_called_so_and_what_was_cut_is_not(
    spec: str, response: bytes, told: str
) -> None:
    async def garble(writer: asyncio.StreamWriter, _: bytes) -> None:
        await once(writer, response)
        writer.close()

    for said in asyncio.run(ask_each(spec, garble))[0]:
        assert re.search(told, said, re.DOTALL)
        assert "held the key" not in said
        assert KEY not in said


@pytest.mark.parametrize("charset", ["utf-8", "iso-8859-1", "utf-16", "none-such"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_json_is_read_as_utf_8_whatever_its_head_says(mark: bytes, charset: str) -> None:
    async def recode(writer: asyncio.StreamWriter, response: bytes) -> None:
        content = mark + response.partition(b"\r\n\r\n")[2].replace(b"question", "点击 Ü".encode())
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json; charset={charset}\r\n"
        await once(writer, f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)

    found, _ = asyncio.run(ask_each("openai:m", recode))
    assert found == [f"点击 Ü {number}" for number in range(STEPS)]
