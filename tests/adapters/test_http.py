"""What statuses and headers mean, and that every fault of a server is a CallError, on any wire."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.errors import CallError
from tests.adapters.asking import ask, keyed
from tests.adapters.servers import ChatCompletions, Fault, Server, Wire, running
from tests.adapters.servers_http import KEY, GoogleGenAI, MiniCPMServer, baichuan, vita
from tests.adapters.servers_tools import KEY as TOOLS_KEY
from tests.adapters.servers_tools import Messages, Responses

FORM = "minicpm-o-4.5"
LONG = 16 * 2**20
"""Bytes of the longest answer."""
WIRES: dict[str, tuple[Callable[[], Wire], str, str]] = {
    "openai:m": (ChatCompletions, "/v1", ""),
    "openai-responses:m": (Responses, "/v1", TOOLS_KEY),
    "anthropic:m": (Messages, "", TOOLS_KEY),
    "gemini:gemini-test": (GoogleGenAI, "", KEY),
    FORM: (MiniCPMServer, "", ""),
    "vita-1.5": (vita, "", ""),
    "baichuan-omni-1.5": (baichuan, "/chat", ""),
}
"""A server of each wire format, what stands behind its address, and its key."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running(MiniCPMServer()) as server:
        yield server


def error_of(server: Server, fault: Fault, spec: str = FORM) -> CallError:
    """What the server's answer to one question raises; nothing is sent again."""
    _, path, key = WIRES[spec]
    before = server.count
    server.script = lambda _: fault
    with pytest.raises(CallError) as caught:
        ask(keyed(spec, server.url + path, key))
    assert server.count == before + 1
    return caught.value


@pytest.mark.parametrize(
    ("status", "transient", "throttled", "hopeless"),
    [
        (302, False, False, True),
        (400, False, False, False),
        (401, False, False, True),
        (402, False, False, True),
        (403, False, False, True),
        (404, False, False, True),
        (405, False, False, True),
        (407, False, False, True),
        (408, True, False, False),
        (409, True, False, False),
        (413, False, False, False),
        (422, False, False, False),
        (425, True, False, False),
        (429, True, True, False),
        (500, True, False, False),
        (501, False, False, False),
        (502, True, False, False),
        (503, True, False, False),
        (504, True, False, False),
        (529, True, True, False),
    ],
)
def test_a_status_says_whether_to_try_again(
    server: Server, status: int, transient: bool, throttled: bool, hopeless: bool
) -> None:
    error = error_of(server, Fault(status=status, headers={"Retry-After": "7"}, body=b"why"))
    assert (error.transient, error.throttled, error.hopeless) == (transient, throttled, hopeless)
    assert (error.what, error.retry_after) == (f"HTTP {status}: why", 7)


NO_ANSWERS = [
    Fault(status=503),
    Fault(body=b""),
    Fault(body=b"null"),
    Fault(body=b'"TAP"'),
    Fault(body=b"\xff\xfe"),
    Fault(body=b"[" * 100_000),
    Fault(body=b'{"error": {"message": "no GPU"}}'),
    Fault(body=b"<html>Bad gateway</html>", headers={"Content-Type": "text/html"}),
    Fault(reset="before"),
    Fault(reset="mid-body"),
]


@pytest.mark.parametrize("spec", WIRES)
def test_what_is_no_answer_is_an_error_that_may_pass(spec: str) -> None:
    with running(WIRES[spec][0]()) as server:
        for fault in NO_ANSWERS:
            error = error_of(server, fault, spec)
            assert (error.transient, error.throttled, error.hopeless) == (True, False, False), fault


@pytest.mark.parametrize("spec", WIRES)
def test_a_server_that_is_not_there_is_named_and_may_come_back(spec: str) -> None:
    _, path, key = WIRES[spec]
    with pytest.raises(CallError) as caught:
        ask(keyed(spec, f"http://127.0.0.1:9{path}", key))
    assert caught.value.transient
    assert caught.value.where.startswith("http://127.0.0.1:9/")


@pytest.mark.parametrize("spec", ["openai:m", "vita-1.5"])
def test_requests_go_through_the_proxy_of_the_environment(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, path, key = WIRES[spec]
    with running(make()) as server:
        for name in ("http_proxy", "all_proxy"):
            with monkeypatch.context() as environment:
                environment.setenv(name, server.url)
                environment.setenv("no_proxy", "elsewhere.invalid")
                ask(keyed(spec, f"http://model.invalid{path}", key))
                with pytest.raises(CallError):
                    ask(keyed(spec, f"http://elsewhere.invalid{path}", key))
        assert {asked.headers["host"] for asked in server.asked} == {"model.invalid"}
        assert len(server.asked) == 2
        # The key and other headers are the server's: behind CONNECT a proxy cannot read them.
        assert not any("proxy-authorization" in asked.headers for asked in server.asked)


def test_the_key_stays_out_of_a_tunnel_and_its_refusal_is_the_proxys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        monkeypatch.setenv("https_proxy", f"127.0.0.1:{proxy.getsockname()[1]}")
        monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
        heads: list[bytes] = []

        def refuse() -> None:
            with suppress(TimeoutError):
                connection, _ = proxy.accept()
                heads.append(connection.recv(2**16))
                connection.sendall(b"HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\n\r\n")
                connection.close()

        proxy.settimeout(5)
        thread = Thread(target=refuse)
        thread.start()
        with pytest.raises(CallError, match="HTTP 407: from the proxy: Who are you") as caught:
            ask(keyed("openai:m", "https://model.invalid/v1", KEY))
        thread.join()
    assert caught.value.hopeless
    assert heads[0].startswith(b"CONNECT model.invalid:443 ")
    assert KEY.encode() not in heads[0]
    assert b"org-1" not in heads[0]


@pytest.mark.parametrize("skipped", ["*", "a.invalid, *", "127.0.0.1", "127.0.0.0/8"])
def test_servers_without_a_proxy_are_names_addresses_and_networks(
    skipped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", skipped)
    with running(ChatCompletions()) as server:
        ask(keyed("openai:m", f"{server.url}/v1", ""))
    monkeypatch.setenv("no_proxy", "::1")
    with pytest.raises(CallError, match="connect to host ::1:9"):
        ask(keyed("openai:m", "http://[::1]:9/v1", ""))


def test_certificates_that_cannot_be_loaded_are_an_error_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
    with pytest.raises(CallError, match="correct SSL_CERT_FILE") as caught:
        ask(keyed("openai:m", "https://127.0.0.1:9/v1", ""))
    assert caught.value.hopeless


@pytest.mark.parametrize("proxy", ["socks5://me:secret@127.0.0.1:9", "http://me:secret@[::1]:x"])
def test_a_proxy_that_cannot_be_used_is_an_error_without_its_password(
    proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("all_proxy", proxy)
    with pytest.raises(CallError, match="HTTP_PROXY or ALL_PROXY") as caught:
        ask(keyed("openai:m", "http://model.invalid/v1", ""))
    assert caught.value.hopeless
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (429, b'{"code": "insufficient_quota"}'),
        (429, b'{"type":"insufficient_quota"}'),
        (400, b'{"error": {"details": [{"reason": "API_KEY_INVALID"}]}}'),
        (400, b'{"message": "Your credit balance is too low to access the Anthropic API."}'),
    ],
)
def test_an_account_without_credit_or_key_is_hopeless_and_not_throttled(
    server: Server, status: int, body: bytes
) -> None:
    error = error_of(server, Fault(status=status, headers={"Retry-After": "1"}, body=body))
    assert (error.transient, error.throttled, error.hopeless) == (False, False, True)


def wait_of(server: Server, headers: dict[str, str], body: bytes = b"") -> float | None:
    return error_of(server, Fault(status=429, headers=headers, body=body)).retry_after


def test_a_date_to_try_again_is_read_as_seconds_from_now(server: Server) -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    seconds = wait_of(server, {"Retry-After": soon})
    assert seconds is not None
    assert 30 < seconds <= 100


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": " 3 "}, 3.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e400"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Fri, 31 Dec 99999 23:59:59 GMT"}, None),
        ({"retry-after": f"Fri, 31 Dec {10**20} 23:59:59 GMT"}, None),
        ({"retry-after": f"Fri, 31 Dec 9999 23:59:59 +{10**14}"}, None),
        ({}, None),
    ],
)
def test_seconds_to_try_again_are_read(
    server: Server, headers: dict[str, str], seconds: float | None
) -> None:
    assert wait_of(server, headers) == seconds


def test_a_delay_of_many_digits_is_no_delay(server: Server) -> None:
    assert wait_of(server, {}, b'{"retryDelay": "37s"}') == 37
    assert wait_of(server, {}, b'{"retryDelay": "%ss"}' % (b"9" * 400)) is None


WORDS = st.text(st.characters(min_codepoint=32, max_codepoint=126))
DATES = st.builds(
    "Mon, {} Jan {} {}:00:00 +{}".format,
    *(st.integers(1, 28), st.integers(1, 9999), st.integers(-99, 99), st.integers(0, 99999)),
)


@given(WORDS | DATES, st.text())
def test_no_header_is_too_strange(server: Server, header: str, body: str) -> None:
    headers = {"retry-after": header, "retry-after-ms": header}
    seconds = wait_of(server, headers, body.encode())
    assert seconds is None or seconds >= 0


def test_a_long_body_is_quoted_in_part(server: Server) -> None:
    assert len(error_of(server, Fault(status=500, body=b"no\n " * 10_000)).what) < 400


def test_an_answer_longer_than_any_is_not_read_to_the_end(server: Server) -> None:
    error = error_of(server, Fault(text="x" * (LONG + 1)))
    assert f"longer than {LONG:,} bytes" in error.what
    assert not error.transient
