"""Chat Completions: every kind of answer, and of what is none, is told apart."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
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
from tests.adapters.asking import ask, keyed, model
from tests.adapters.servers import ChatCompletions, Fault, running
from tests.adapters.shown import Shown
from tests.full import FULL

PARAMS = GenerationParams()


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    return Shown(tmp_path / "media").write()


def fail(fault: Fault, request: Request, key: str = "") -> CallError:
    with running(ChatCompletions(key or "EMPTY"), [fault]) as server:
        with pytest.raises(CallError) as caught:
            ask(model(server, key), request)
        assert server.count == 1  # the SDK does not try again
    return caught.value


def test_tokens_are_told_by_modality(shown: Shown) -> None:
    with running(ChatCompletions()) as server:
        answer = ask(model(server), shown.request)
    assert answer.receipt["tokens"] == {"text": 60, "image": 40}
    assert answer.usage["completion_tokens"] == 10


@pytest.mark.parametrize(
    ("fault", "delivery", "text", "error"),
    [
        (Fault(finish="length", text='{"a": '), "truncated", '{"a": ', "cut at 4096 tokens"),
        (Fault(finish="content_filter", text="Tap"), "refused", "Tap", "content filter"),
        (Fault(refusal="I will not."), "refused", "", "I will not."),
        (Fault(text=""), "ok", "", ""),
    ],
)
def test_answers_that_are_none_are_told_apart(
    shown: Shown, fault: Fault, delivery: str, text: str, error: str
) -> None:
    with running(ChatCompletions(), [fault]) as server:
        answer = ask(model(server), shown.request)
    assert (answer.delivery, answer.text) == (delivery, text)
    assert error in answer.error
    assert bool(answer.error) == (delivery != "ok")


def saying(finish: str | None = "stop", content: Any = "Tap", **more: Any) -> Fault:
    """An answer of which every part can be set; `choice` and `whole` are what lies around it."""
    around, whole = more.pop("choice", {}), more.pop("whole", {})
    message = {"role": "assistant", "content": content, **more}
    choice = {"index": 0, "message": message, "finish_reason": finish, **around}
    return Fault(body=json.dumps({"choices": [choice], **whole}).encode())


@pytest.mark.parametrize(
    ("finish", "delivery"),
    [
        *(
            (word, "ok")
            for word in ("stop", "STOP", "eos", "end_turn", "stop_sequence", "COMPLETE")
        ),
        *((word, "truncated") for word in ("max_tokens", "MAX_TOKENS", "model_length")),
        ("model_context_window_exceeded", "truncated"),
        *((word, "refused") for word in ("refusal", "SAFETY", "content_filtered", "sensitive")),
        *((word, "refused") for word in ("PROHIBITED_CONTENT", "guardrail_intervened")),
    ],
)
def test_the_words_of_all_servers_are_understood(shown: Shown, finish: str, delivery: str) -> None:
    with running(ChatCompletions(), [saying(finish)]) as server:
        answer = ask(model(server), shown.request)
    assert (answer.delivery, answer.text) == (delivery, "Tap")
    assert bool(answer.error) == (delivery != "ok")


def native(word: str) -> dict[str, str]:
    return {"native_finish_reason": word}


@pytest.mark.parametrize(
    ("word", "delivery"),
    [
        *((word, "truncated") for word in ("max_tokens", "length", "MAX_TOKENS")),
        *((word, "refused") for word in ("refusal", "SAFETY")),
        *((word, "ok") for word in ("STOP", "end_turn", "completed", "")),
    ],
)
def test_the_word_of_the_server_behind_a_gateway_counts(
    shown: Shown, word: str, delivery: str
) -> None:
    with running(ChatCompletions(), [saying(choice=native(word))]) as server:
        answer = ask(model(server), shown.request)
    assert (answer.delivery, answer.text) == (delivery, "Tap")
    assert bool(answer.error) == (delivery != "ok")


THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}


@pytest.mark.parametrize(
    ("parts", "delivery", "text"),
    [
        ([{"type": "text", "text": "Tap"}, {"type": "text", "text": " here"}], "ok", "Tap here"),
        ([THOUGHT, {"type": "text", "text": "Tap"}], "ok", "Tap"),
        ([{"type": "text", "text": ""}], "ok", ""),
        ([{"type": "refusal", "refusal": "I will not."}], "refused", ""),
    ],
)
def test_content_in_parts_is_read_as_its_text(
    shown: Shown, parts: list[dict[str, Any]], delivery: str, text: str
) -> None:
    with running(ChatCompletions(), [saying("stop", parts)]) as server:
        answer = ask(model(server), shown.request)
    assert (answer.delivery, answer.text) == (delivery, text)


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
    ],
)
def test_a_failure_beside_a_text_is_no_prediction(
    shown: Shown, fault: Fault, said: str, transient: bool
) -> None:
    error = fail(fault, shown.request)
    assert said in str(error)
    assert error.transient is transient


def test_an_error_that_is_none_and_empty_calls_change_nothing(shown: Shown) -> None:
    fault = saying(tool_calls=[], function_call=None, reasoning="Hm", whole={"error": None})
    with running(ChatCompletions(), [fault]) as server:
        answer = ask(model(server), shown.request)
    assert (answer.delivery, answer.text) == ("ok", "Tap")


@pytest.mark.parametrize(
    ("said", "warned"),
    [("m", None), ("m-2024-08-06", False), ("provider/M:free", False), ("m-mini", True)],
)
def test_another_models_name_is_recorded_and_said_once(
    shown: Shown, caplog: pytest.LogCaptureFixture, said: str, warned: bool | None
) -> None:
    async def twice() -> list[Completion]:
        adapter = model(server)
        ready = [adapter.prepare(shown.request)]
        try:
            return [*await adapter.generate(ready, PARAMS), *await adapter.generate(ready, PARAMS)]
        finally:
            await adapter.close()

    with running(ChatCompletions(), lambda number: saying(whole={"model": said})) as server:
        answers = asyncio.run(twice())
    wanted = None if said == "m" else said
    assert [answer.receipt.get("model") for answer in answers] == [wanted, wanted]
    words = [record.getMessage() for record in caplog.records if "answered" in record.getMessage()]
    assert len(words) == bool(warned)
    assert all("openai:m" in word and said in word for word in words)


@pytest.mark.parametrize(
    "body",
    [
        b'{"choices": [{"mess',
        b'{"choices": []}',
        b'{"choices": [{"message": {"content": 5}}]}',
        b'{"choices": [{"finish_reason": "stop"}]}',
    ],
)
def test_what_is_no_answer_is_an_error_that_may_pass(shown: Shown, body: bytes) -> None:
    error = fail(Fault(body=body), shown.request)
    assert error.transient
    assert not error.hopeless
    assert not error.throttled


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


def test_whatever_the_server_says_is_an_answer_or_an_error() -> None:
    with running(ChatCompletions()) as server, asyncio.Runner() as runner:
        adapter = model(server)
        said = Message("user", (Part("text", "Goal"),))
        ready = adapter.prepare(Request("a", (said,)))

        @settings(max_examples=settings().max_examples if FULL else 10)
        @given(_ANSWERS.map(json.dumps).map(str.encode) | st.binary())
        def say(body: bytes) -> None:
            server.script = lambda number: Fault(body=body)
            with contextlib.suppress(CallError):
                [answer] = runner.run(adapter.generate([ready], adapter.params))
                assert answer.delivery in ("ok", "truncated", "refused")

        say()
        runner.run(adapter.close())


def test_sixteen_at_a_time_are_not_mixed_up(tmp_path: Path) -> None:
    steps = [Shown(tmp_path / str(seed)).write(seed) for seed in range(16)]

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

    with running(ChatCompletions(), lambda number: Fault(delay_s=0.3)) as server:
        answers = asyncio.run(all_at_once())
        assert server.most > 1
    assert answers == ["\n".join(step.seen()) for step in steps]


def test_a_certificate_that_nobody_signed_is_hopeless(shown: Shown, tmp_path: Path) -> None:
    """Every request of the run would meet it."""

    async def refused() -> None:
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", ssl=self_signed(tmp_path))
        port = server.sockets[0].getsockname()[1]
        adapter = keyed("openai:m", f"https://127.0.0.1:{port}/v1", "")
        try:
            await adapter.generate([adapter.prepare(shown.request)], adapter.params)
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


def test_a_hang_lasts_until_the_caller_has_enough(shown: Shown) -> None:
    async def impatient() -> None:
        adapter = model(server)
        try:
            ready = adapter.prepare(shown.request)
            async with asyncio.timeout(1.0):
                await adapter.generate([ready], adapter.params)
        finally:
            await adapter.close()

    with running(ChatCompletions(), [Fault(hang=True)]) as server:
        with pytest.raises(TimeoutError):
            asyncio.run(impatient())
        assert server.count == 1


def test_the_request_id_is_in_the_error(shown: Shown) -> None:
    for fault in (Fault(status=500), Fault(body=b"null")):
        with_id = replace(fault, headers={"x-request-id": "req-42"})
        assert "req-42" in str(fail(with_id, shown.request))


def test_reasoning_is_no_part_of_the_answer(shown: Shown) -> None:
    message = {"content": "Tap", "reasoning_content": "Hm", "audio": {"data": "AAAA"}}
    body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
    with running(ChatCompletions(), [Fault(body=body)]) as server:
        assert ask(model(server), shown.request).text == "Tap"


def test_lone_surrogates_come_and_go(shown: Shown) -> None:
    body = rb'{"choices": [{"message": {"content": "\ud83d"}, "finish_reason": "stop"}]}'
    said = Message("user", (Part("text", "Goal: \ud83d"),))
    with running(ChatCompletions(), [Fault(body=body)]) as server:
        answer = ask(model(server), Request("a", (said,)))
        assert server.asked[0].seen == ["user: text Goal: \ud83d"]
    assert answer.text == "\ud83d"


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
    shown: Shown, indices: tuple[object, ...], text: str
) -> None:
    with running(ChatCompletions(), [choices(*indices)]) as server:
        assert ask(model(server), shown.request).text == text


@pytest.mark.parametrize("indices", [(1, 2), (0, 0), (1, None, None), ("0", "1"), (True, False)])
def test_of_choices_without_a_first_none_is_the_answer(
    shown: Shown, indices: tuple[object, ...]
) -> None:
    error = fail(choices(*indices), shown.request)
    assert "index 0" in str(error)
    assert not error.transient
