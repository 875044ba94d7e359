"""What statuses and headers mean, and a session in which every fault is a CallError."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.adapters import http
from omnidata.adapters.http import fault, retry_after
from omnidata.adapters.keys import Key
from omnidata.errors import CallError
from tests.adapters.servers import Fault, running
from tests.adapters.servers_http import MiniCPMServer

BODY = b'{"messages": [{"role": "user", "content": "x"}]}'


def post(url: str, headers: dict[str, str] | None = None) -> bytes:
    async def run() -> bytes:
        async with http.open_session(Key()) as opened:
            headers_sent = {"Content-Type": "application/json", **(headers or {})}
            async with opened.post(url, data=BODY, headers=headers_sent) as response:
                return await response.read()

    return asyncio.run(run())


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
    status: int, transient: bool, throttled: bool, hopeless: bool
) -> None:
    error = fault(status, {}, "why", where="http://127.0.0.1")
    assert (error.transient, error.throttled, error.hopeless) == (transient, throttled, hopeless)
    assert error.what == f"HTTP {status}: why"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (429, '{"code": "insufficient_quota"}'),
        (429, '{"type":"insufficient_quota"}'),
        (400, '{"message": "Your credit balance is too low to access the Anthropic API."}'),
    ],
)
def test_an_account_without_credit_is_hopeless_and_not_throttled(status: int, body: str) -> None:
    error = fault(status, {"retry-after": "1"}, body, where="")
    assert (error.transient, error.throttled, error.hopeless) == (False, False, True)


def test_a_date_to_try_again_is_read_as_seconds_from_now() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    seconds = retry_after({"retry-after": soon})
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
def test_seconds_to_try_again_are_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_a_delay_of_many_digits_is_no_delay() -> None:
    assert retry_after({}, '{"retryDelay": "37s"}') == 37
    assert retry_after({}, f'{{"retryDelay": "{"9" * 400}s"}}') is None


@given(st.text(), st.text())
def test_no_header_is_too_strange(header: str, body: str) -> None:
    seconds = retry_after({"retry-after": header, "retry-after-ms": header}, body)
    assert seconds is None or seconds >= 0


@given(st.integers(1, 9999), st.integers(1, 28), st.integers(-99, 99), st.integers(0, 99999))
def test_no_date_is_too_strange(year: int, day: int, hour: int, zone: int) -> None:
    seconds = retry_after({"retry-after": f"Mon, {day} Jan {year} {hour}:00:00 +{zone}"})
    assert seconds is None or seconds >= 0


def test_a_long_body_is_quoted_in_part() -> None:
    error = fault(500, {}, "no\n " * 10_000, where="")
    assert len(error.what) < 400


def test_an_answer_longer_than_any_is_not_read_to_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http, "MAX_ANSWER_BYTES", 1000)
    long = Fault(text="x" * 5000)
    with running(MiniCPMServer(), [long]) as server, pytest.raises(CallError) as caught:
        post(server.url + MiniCPMServer.path)
    assert "longer than 1,000 bytes" in caught.value.what
    assert not caught.value.transient


def test_a_redirect_is_not_followed_so_that_no_header_goes_elsewhere() -> None:
    with running(MiniCPMServer()) as elsewhere:
        moved = Fault(status=307, headers={"Location": elsewhere.url + MiniCPMServer.path})
        with running(MiniCPMServer(), [moved]) as server, pytest.raises(CallError) as caught:
            post(server.url + MiniCPMServer.path, {"x-goog-api-key": "secret"})
    assert caught.value.hopeless
    assert elsewhere.count == 0


def test_a_place_of_an_error_holds_no_password() -> None:
    with pytest.raises(CallError) as caught:
        post("http://me:secret@127.0.0.1:9/x?key=secret")
    assert "secret" not in str(caught.value)
    assert caught.value.where == "http://127.0.0.1:9/x"
