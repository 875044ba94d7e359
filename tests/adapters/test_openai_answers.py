"""Chat Completions: every kind of answer, and of what is none, is told apart."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from omnidata.errors import CallError
from omnidata.types import Completion, GenerationParams, Message, Part, Request
from tests.adapters.asking import GOAL, ask, keyed, model
from tests.adapters.servers import ChatCompletions, Fault, Server, running
from tests.adapters.shown import Shown
from tests.full import FULL

PARAMS = GenerationParams()


@pytest.fixture(scope="module", name="server")
def _server() -> Iterator[Server]:
    with running(ChatCompletions()) as server:
        yield server


def answer(server: Server, fault: Fault, request: Request = GOAL) -> Completion:
    server.script = lambda _: fault
    return ask(model(server), request)


def fail(server: Server, fault: Fault) -> CallError:
    before = server.count
    with pytest.raises(CallError) as caught:
        answer(server, fault)
    assert server.count == before + 1  # the SDK does not try again
    return caught.value


def saying(finish: str | None = "stop", content: Any = "Tap", **more: Any) -> Fault:
    """An answer of which every part can be set; `choice` and `whole` are what lies around it."""
    around, whole = more.pop("choice", {}), more.pop("whole", {})
    message = {"role": "assistant", "content": content, **more}
    choice = {"index": 0, "message": message, "finish_reason": finish, **around}
    return Fault(body=json.dumps({"choices": [choice], **whole}).encode())


def native(word: str) -> dict[str, str]:
    return {"native_finish_reason": word}


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


THOUGHT = {"type": "thinking", "thinking": [text("Hm")]}
EMPTY: dict[str, Any] = {"tool_calls": [], "function_call": None, "whole": {"error": None}}
OK = ("stop", "STOP", "eos", "end_turn", "stop_sequence", "COMPLETE")
CUT = ("length", "max_tokens", "MAX_TOKENS", "model_length", "model_context_window_exceeded")
REFUSED = (
    *("refusal", "SAFETY", "content_filter", "content_filtered", "sensitive"),
    *("PROHIBITED_CONTENT", "guardrail_intervened"),
)


@pytest.mark.parametrize(
    ("fault", "delivery", "said", "error"),
    [
        *((saying(word), "ok", "Tap", "") for word in OK),
        *((saying(word), "truncated", "Tap", "cut at 4096 tokens") for word in CUT),
        *((saying(word), "refused", "Tap", "") for word in REFUSED),
        # The word of the server behind a gateway counts.
        *((saying(choice=native(word)), "ok", "Tap", "") for word in (*OK[1:4:2], "completed", "")),
        *((saying(choice=native(word)), "truncated", "Tap", "") for word in CUT[:3]),
        *((saying(choice=native(word)), "refused", "Tap", "") for word in REFUSED[:2]),
        (saying("stop", [text("Tap"), text(" here")]), "ok", "Tap here", ""),
        (saying("stop", [THOUGHT, text("Tap")]), "ok", "Tap", ""),
        (saying("stop", [text("")]), "ok", "", ""),
        (saying("stop", [{"type": "refusal", "refusal": "No."}]), "refused", "", "No."),
        (saying("stop", None, refusal="I will not."), "refused", "", "I will not."),
        (saying("stop", ""), "ok", "", ""),
        (saying(reasoning="Hm", reasoning_content="Hm", audio={"data": "AA"}), "ok", "Tap", ""),
        (saying(**EMPTY), "ok", "Tap", ""),
    ],
)
def test_answers_and_what_is_none_are_told_apart(
    server: Server, fault: Fault, delivery: str, said: str, error: str
) -> None:
    found = answer(server, fault)
    assert (found.delivery, found.text) == (delivery, said)
    assert error in found.error
    assert bool(found.error) == (delivery != "ok")


CALLS = [{"id": "1", "type": "function", "function": {"name": "tap", "arguments": "{}"}}]
FAILED = {"code": 502, "message": "provider went away"}


@pytest.mark.parametrize(
    ("fault", "said", "transient"),
    [
        (saying("error"), "without an answer: error", True),
        (saying("abort"), "without an answer: abort", True),
        (saying("network_error"), "network_error", True),
        (saying(None), "does not say why the model stopped", False),
        (saying(""), "does not say why the model stopped", False),
        (saying("load"), "does not know: load", False),
        (saying("tool_calls"), "called a tool", False),
        (saying("tool_use", None), "called a tool", False),
        (saying("stop", None, tool_calls=CALLS), "called a tool", False),
        (saying("stop", tool_calls=CALLS), "called a tool", False),
        (saying("stop", None, function_call={"name": "tap"}), "called a tool", False),
        (saying("stop", None, reasoning_content="Hm"), "reasoning and no answer", False),
        (saying("stop", "", reasoning="Hm"), "reasoning and no answer", False),
        (saying("stop", "", thinking="Hm"), "reasoning and no answer", False),
        (saying("stop", None, thinking="Hm"), "reasoning and no answer", False),
        (saying("stop", " \n", reasoning="Hm"), "reasoning and no answer", False),
        (saying("stop", [THOUGHT]), "reasoning and no answer", False),
        (saying("stop", None), "message without content", True),
        (saying("stop", []), "message without content", True),
        (saying("stop", [{"type": "image_url", "text": "Tap"}]), "not read: image_url", False),
        (saying(error=FAILED), "HTTP 502: provider went away", True),
        (saying(error="no GPU"), "reports an error: no GPU", True),
        (saying(choice=native("error")), "without an answer: error", True),
        (saying(choice=native("MALFORMED_FUNCTION_CALL")), "MALFORMED_FUNCTION_CALL", True),
        (saying(choice=native("tool_use")), "called a tool", False),
        (saying(choice=native("load")), "does not know: load", False),
        (saying(whole={"error": FAILED}), "HTTP 502: provider went away", True),
        (saying(choice={"error": FAILED}), "HTTP 502: provider went away", True),
        (saying(None, choice={"error": "no GPU"}), "reports an error: no GPU", True),
        (saying(whole={"error": {"code": 400, "message": "too long"}}), "HTTP 400", False),
        (saying(whole={"error": {"code": "rate_limited", "message": "slow"}}), "slow", True),
        (Fault(body=b'{"choices": [{"mess'), "", True),
        (Fault(body=b'{"choices": []}'), "", True),
        (Fault(body=b'{"choices": [{"message": {"content": 5}}]}'), "", True),
        (Fault(body=b'{"choices": [{"finish_reason": "stop"}]}'), "", True),
    ],
)
def test_a_failure_beside_a_text_is_no_prediction(
    server: Server, fault: Fault, said: str, transient: bool
) -> None:
    error = fail(server, fault)
    assert said in str(error)
    assert error.transient is transient
    assert not error.hopeless


@pytest.mark.parametrize(
    ("said", "warned"),
    [("m", None), ("m-2024-08-06", False), ("provider/M:free", False), ("m-mini", True)],
)
def test_another_models_name_is_recorded_and_said_once(
    server: Server, caplog: pytest.LogCaptureFixture, said: str, warned: bool | None
) -> None:
    async def twice() -> list[Completion]:
        adapter = model(server)
        ready = [adapter.prepare(GOAL)]
        try:
            return [*await adapter.generate(ready, PARAMS), *await adapter.generate(ready, PARAMS)]
        finally:
            await adapter.close()

    server.script = lambda _: saying(whole={"model": said})
    answers = asyncio.run(twice())
    wanted = None if said == "m" else said
    assert [answer.receipt.get("model") for answer in answers] == [wanted, wanted]
    words = [record.getMessage() for record in caplog.records if "answered" in record.getMessage()]
    assert len(words) == bool(warned)
    assert all("openai:m" in word and said in word for word in words)


_NAMES = (
    *("choices", "message", "content", "refusal", "finish_reason"),
    *("usage", "prompt_tokens_details", "image_tokens", "error"),
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_NAMES), inner, max_size=4)
    ),
)
_MESSAGES = st.fixed_dictionaries({"content": _VALUES, "refusal": _VALUES})
_CHOICES = st.fixed_dictionaries({"message": _MESSAGES | _VALUES, "finish_reason": _VALUES})
_ANSWERS = st.fixed_dictionaries({"choices": st.lists(_CHOICES), "usage": _VALUES}) | _VALUES


def test_whatever_the_server_says_is_an_answer_or_an_error(server: Server) -> None:
    with asyncio.Runner() as runner:
        adapter = model(server)
        ready = adapter.prepare(GOAL)

        @settings(max_examples=settings().max_examples if FULL else 10)
        @given(_ANSWERS.map(json.dumps).map(str.encode) | st.binary())
        def say(body: bytes) -> None:
            server.script = lambda number: Fault(body=body)
            with contextlib.suppress(CallError):
                [answer] = runner.run(adapter.generate([ready], adapter.params))
                assert answer.delivery in ("ok", "truncated", "refused")

        say()
        runner.run(adapter.close())


def test_several_at_a_time_are_not_mixed_up(tmp_path: Path) -> None:
    steps = [Shown(tmp_path / str(seed)).write(seed) for seed in range(6)]

    async def all_at_once() -> list[str]:
        adapter = model(server, video="native")
        ready = [adapter.prepare(step.request) for step in steps]
        try:
            done = await asyncio.gather(
                *(adapter.generate([item], adapter.params) for item in ready)
            )
        finally:
            await adapter.close()
        return [answer.text for [answer] in done]

    with running(ChatCompletions(), lambda number: Fault(delay_s=0.2)) as server:
        answers = asyncio.run(all_at_once())
        assert server.most > 1
    assert answers == ["\n".join(step.seen()) for step in steps]


def test_a_certificate_that_nobody_signed_is_hopeless(tmp_path: Path) -> None:
    """Every request of the run would meet it."""

    async def refused() -> None:
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", ssl=self_signed(tmp_path))
        port = server.sockets[0].getsockname()[1]
        adapter = keyed("openai:m", f"https://127.0.0.1:{port}/v1", "")
        try:
            await adapter.generate([adapter.prepare(GOAL)], adapter.params)
        finally:
            await adapter.close()
            server.close()

    with pytest.raises(CallError, match=r"(?i)certificate") as caught:
        asyncio.run(refused())
    assert (caught.value.hopeless, caught.value.transient) == (True, False)


def self_signed(folder: Path) -> ssl.SSLContext:
    """A server's context with a certificate of its own making."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    signed = (
        made.add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    (folder / "server.pem").write_bytes(private + signed)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "server.pem")
    return context


def test_a_hang_lasts_until_the_caller_has_enough() -> None:
    async def impatient() -> None:
        adapter = model(server)
        try:
            ready = adapter.prepare(GOAL)
            async with asyncio.timeout(0.5):
                await adapter.generate([ready], adapter.params)
        finally:
            await adapter.close()

    with running(ChatCompletions(), [Fault(hang=True)]) as server:
        with pytest.raises(TimeoutError):
            asyncio.run(impatient())
        assert server.count == 1


def test_the_request_id_is_in_the_error(server: Server) -> None:
    for fault in (Fault(status=500), Fault(body=b"null")):
        assert "req-42" in str(fail(server, replace(fault, headers={"x-request-id": "req-42"})))


def test_lone_surrogates_come_and_go(server: Server) -> None:
    said = Message("user", (Part("text", "Goal: \ud83d"),))
    assert answer(server, saying(content="\ud83d"), Request("a", (said,))).text == "\ud83d"
    assert server.asked[-1].seen == ["user: text Goal: \ud83d"]


def choices(*indices: object) -> Fault:
    """An answer with so many choices, each of which says its index; no index where it is None."""
    found = []
    for index in indices:
        message = {"role": "assistant", "content": f"choice {index}"}
        said = {} if index is None else {"index": index}
        found.append({"message": message, "finish_reason": "stop", **said})
    return Fault(body=json.dumps({"choices": found}).encode())


@pytest.mark.parametrize(
    ("indices", "text"),
    [
        ((1, 0), "choice 0"),
        ((2, 1, 0.0), "choice 0.0"),
        ((1, None), "choice None"),
        ((7,), "choice 7"),
        (("0",), "choice 0"),
    ],
)
def test_the_choice_with_index_0_is_the_answer(
    server: Server, indices: tuple[object, ...], text: str
) -> None:
    assert answer(server, choices(*indices)).text == text


@pytest.mark.parametrize("indices", [(1, 2), (0, 0), (1, None, None), ("0", "1"), (True, False)])
def test_of_choices_without_a_first_none_is_the_answer(
    server: Server, indices: tuple[object, ...]
) -> None:
    error = fail(server, choices(*indices))
    assert "index 0" in str(error)
    assert not error.transient
