"""Servers that mean harm, or are broken beyond what a fault of `servers` says, for all wires."""

from __future__ import annotations

import asyncio
import json
import resource
import zlib
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from omnidata.errors import CallError
from omnidata.types import Completion, MediaRef, Message, Part, Request
from tests.adapters.asking import keyed
from tests.full import in_gate

KEY = "sk-canary/0123456789-abcdefghijklmnop"
HELLO = Part("text", "hello")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
# All have one session; the first reads the JSON of a provider, the second that of a form.
each_client = pytest.mark.parametrize("spec", ["openai:m", "minicpm-o-4.5"])
READERS = ("openai:m", "gemini:m", "minicpm-o-4.5", "vita-1.5", "baichuan-omni-1.5")
each_reader = pytest.mark.parametrize("spec", in_gate(READERS, 3, "a second form"))


def answer(text: str = "x", **more: Any) -> dict[str, Any]:
    """What every wire reads as an answer."""
    return {
        "choices": [{"message": {"content": text}, "finish_reason": "stop"}],
        "candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}],
        "text": text,
        "response": text,
        **more,
    }


def saying(body: bytes, status: int = 200, **headers: str) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        await request.read()
        named = {"Content-Type": "application/json"}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=status, headers=named, body=body)

    return handle


def ask(spec: str, handle: Handler, *parts: Part) -> Completion:
    """One attempt."""

    async def once() -> Completion:
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/{any:.*}", handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        model = keyed(spec, f"http://127.0.0.1:{runner.addresses[0][1]}", KEY)
        try:
            made = model.prepare(Request("a/b/1", (Message("user", parts or (HELLO,)),)))
            async with asyncio.timeout(30):
                [completion] = await model.generate([made], model.params)
            return completion
        finally:
            await model.close()
            await runner.cleanup()

    return asyncio.run(once())


@each_client
@pytest.mark.parametrize(("status", "hopeless"), [(503, False), (401, True)])
def test_an_error_without_end_is_judged_by_its_status(
    spec: str, status: int, hopeless: bool
) -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse(status=status, headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        while True:
            await response.write(b"on and on " * 10_000)

    with pytest.raises(CallError, match=f"HTTP {status}: on and on") as caught:
        ask(spec, endless)
    assert caught.value.hopeless is hopeless
    assert caught.value.transient is not hopeless


@pytest.mark.parametrize("charset", ["hex", "nonsense", "utf-7"])
def test_a_charset_changes_nothing_about_an_error(charset: str) -> None:
    handle = saying(b"no", 400, Content_Type=f"text/plain; charset={charset}")
    with pytest.raises(CallError, match="HTTP 400: no"):
        ask("openai:m", handle)


@each_client
@pytest.mark.parametrize("status", [200, 400])
def test_a_key_is_hidden_also_where_a_message_is_cut(spec: str, status: int) -> None:
    for before in (150, 180, 190, 270, 290, 295):
        body = b"x" * before + KEY.encode()
        with pytest.raises(CallError) as caught:
            ask(spec, saying(body, status))
        assert KEY[:8] not in str(caught.value)


def test_a_key_is_hidden_also_where_what_is_read_of_an_error_ends() -> None:
    # Blanks are not shown and keys that were found take less room: what is read last comes near.
    for before in (b" " * 2**16, b" " * 50_000 + KEY.encode() * 400 + b" " * 2**16):
        for shown in (1, len(KEY) // 2, len(KEY) - 1):
            body = before[: 2**16 - shown] + KEY.encode() + b" and more"
            with pytest.raises(CallError, match="HTTP 400") as caught:
                ask("openai:m", saying(body, 400))
            assert KEY[:3] not in str(caught.value)


@each_reader
@pytest.mark.parametrize("body", [b"[" * 10**6, b'{"a":' * 10**5 + b"1" + b"}" * 10**5])
def test_an_answer_nested_without_end_is_a_failed_call(spec: str, body: bytes) -> None:
    with pytest.raises(CallError):
        ask(spec, saying(body))


@each_reader
def test_what_a_server_counts_is_numbers_and_nothing_else(spec: str) -> None:
    usage = {
        "prompt_tokens": 7,
        "completion_tokens": -1,
        "note": KEY,
        KEY: 3,
        "deep": {"deeper": {"deepest": KEY}},
        "prompt_tokens_details": {"image_tokens": 4, "text_tokens": True, "audio_tokens": -2},
    }
    metadata = {
        "promptTokenCount": 7,
        "candidatesTokenCount": -1,
        "trafficType": KEY,
        "promptTokensDetails": [
            {"modality": "IMAGE", "tokenCount": 4},
            {"modality": KEY, "tokenCount": 5},
            {"modality": "AUDIO", "tokenCount": -2},
        ],
    }
    body = json.dumps(answer(usage=usage, usageMetadata=metadata)).encode()
    found = ask(spec, saying(body))
    assert found.text == "x"
    assert "canary" not in f"{found.usage} {found.receipt}"
    if spec in ("openai:m", "gemini:m", "minicpm-o-4.5"):
        assert 7 in found.usage.values()
        assert -1 not in found.usage.values()
        assert found.receipt["tokens"] == {"image": 4}


@each_reader
def test_no_number_of_tokens_fails_a_step(spec: str) -> None:
    numbers = ("7", "1e400", "-7", '"many"', "9" * 400, "9" * 5000, "[1]", "NaN")
    counts = ", ".join(f'"n{at}": {number}' for at, number in enumerate(numbers))
    body = json.dumps(answer(usage="<counts>", usageMetadata="<counts>"))
    found = ask(spec, saying(body.replace('"<counts>"', f"{{{counts}}}").encode()))
    assert (found.delivery, found.text) == ("ok", "x")
    assert found.usage in ({}, {"n0": 7, "n6": [{}]})
    found = ask(spec, saying(body.encode()))
    assert (found.delivery, found.text, found.usage) == ("ok", "x", {})


@each_client
def test_a_key_in_escapes_is_hidden_as_well(spec: str) -> None:
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
    body = json.dumps(answer("<here>")).replace("<here>", escaped).encode()
    assert ask(spec, saying(body)).text == "[key]"
    slashed = KEY.replace("/", r"\/").encode()
    with pytest.raises(CallError, match=r"wrong: \[key\]"):
        ask(spec, saying(b"wrong: " + slashed, 400))


@each_client
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(spec: str, status: int) -> None:
    asked: list[str] = []

    async def move(request: web.Request) -> web.Response:
        asked.append(request.path)
        await request.read()
        elsewhere = f"{request.url.origin()}/elsewhere"
        return web.Response(status=status, headers={"Location": elsewhere})

    with pytest.raises(CallError, match=f"HTTP {status}") as caught:
        ask(spec, move)
    assert caught.value.hopeless
    assert len(asked) == 1
    assert "/elsewhere" not in asked


@each_client
@pytest.mark.parametrize("status", [200, 400])
def test_an_answer_that_unpacks_without_end_takes_no_memory(spec: str, status: int) -> None:
    packed = _packed()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(CallError):
        ask(spec, saying(packed, status, Content_Encoding="gzip"))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 2**17, f"{grown} KB for an answer that is no answer"


def test_words_that_no_sdk_knows_are_not_printed(capfd: pytest.CaptureFixture[str]) -> None:
    word = f"\x1b[2J{KEY}"
    reason = {"content": {"parts": [{"text": "x"}]}, "finishReason": word}
    block = {"blockReason": word}
    for more in ({"candidates": [reason]}, {"promptFeedback": block}):
        try:
            ask("gemini:m", saying(json.dumps(answer(**more)).encode()))
        except CallError as error:
            assert "canary" not in str(error)
    assert "canary" not in "".join(capfd.readouterr())


@each_reader
def test_passwords_of_other_programs_are_not_sent(
    spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1\nlogin me\npassword of-another-program\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    sent: list[str] = []

    async def look(request: web.Request) -> web.Response:
        sent.extend(request.headers.getall("Authorization", []))
        sent.extend(request.headers.getall("x-goog-api-key", []))
        return web.json_response(answer())

    assert ask(spec, look).text == "x"
    assert sent == [KEY if spec == "gemini:m" else f"Bearer {KEY}"]


@pytest.mark.parametrize("spec", READERS)
def test_large_media_are_sent_in_pieces_and_arrive_whole(spec: str, tmp_path: Path) -> None:
    # aiohttp warns of bodies above 1 MB that are written at once; warnings are errors here.
    (tmp_path / "large.png").write_bytes(_noise(900, 900))
    part = Part("image", media=MediaRef("image", tmp_path, "large.png"), role="screenshot")
    sizes: list[int] = []

    async def weigh(request: web.Request) -> web.Response:
        sizes.append(len(await request.read()))
        return web.json_response(answer())

    assert ask(spec, weigh, part, HELLO).text == "x"
    assert sizes[0] > (tmp_path / "large.png").stat().st_size > 2**20


@each_client
@pytest.mark.parametrize("status", [202, 205, 206, 207, 226])
def test_a_success_without_a_whole_answer_is_none(spec: str, status: int) -> None:
    whole = json.dumps(answer()).encode()
    with pytest.raises(CallError) as caught:
        ask(spec, saying(b"" if status == 205 else whole, status))
    assert f"HTTP {status}" in str(caught.value)
    assert caught.value.transient


@each_reader
@pytest.mark.parametrize("at", [b"TAP", b"stop", b"STOP"])
def test_a_text_that_is_not_utf_8_is_no_answer(spec: str, at: bytes) -> None:
    body = json.dumps(answer("TAP")).encode().replace(at, at[:1] + b"\xff\xfe" + at[1:])
    with pytest.raises(CallError, match="not UTF-8"):
        ask(spec, saying(body))


@each_reader
def test_a_key_that_is_said_twice_and_not_the_same_makes_no_answer(spec: str) -> None:
    once = json.dumps(answer("TAP", usage={"n": 1}, usageMetadata={"n": 1}))
    for said, other in (
        ('"finish_reason": "stop"', '"finish_reason": "length"'),
        ('"finishReason": "STOP"', '"finishReason": "MAX_TOKENS"'),
        ('"content": "TAP"', '"content": "SWIPE"'),
        ('"text": "TAP"', '"text": "SWIPE"'),
        ('"response": "TAP"', '"response": "SWIPE"'),
    ):
        for both in (f"{said}, {other}", f"{other}, {said}"):
            with pytest.raises(CallError, match="twice, and not the same"):
                ask(spec, saying(once.replace(said, both).encode()))
    harmless = once.replace('"n": 1', '"n": 1, "n": 2').replace(said, f"{said}, {said}")
    assert ask(spec, saying(harmless.encode())).text == "TAP"


@cache
def _packed() -> bytes:
    """A megabyte that unpacks to 256, made without them."""
    pack = zlib.compressobj(1, wbits=31)
    return b"".join(pack.compress(b"a" * 2**20) for _ in range(2**8)) + pack.flush()


def _noise(width: int, height: int) -> bytes:
    import numpy as np

    from omnidata.media import png

    random = np.random.default_rng(0)
    return png(random.integers(0, 256, (height, width, 3), dtype=np.uint8))
