"""How fast a run asks: places, rates, pauses, and when it gives up."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.errors import CallError
from omnidata.run.scheduling import (
    FAILURES,
    HOPELESS,
    LONGEST_ASKED_S,
    AdaptiveConcurrency,
    CircuitBreaker,
    Prefetch,
    RateLimiter,
    StageTimer,
    retry_delay,
)
from omnidata.types import Completion, LoadedDataset, Step


def test_no_more_are_open_than_there_are_places() -> None:
    async def work() -> int:
        window, most = AdaptiveConcurrency(3), 0

        async def one() -> None:
            nonlocal most
            async with window:
                most = max(most, window.open)
                await asyncio.sleep(0)

        await asyncio.gather(*(one() for _ in range(20)))
        assert window.open == 0
        return most

    assert asyncio.run(work()) == 3


def test_a_wave_of_429_halves_the_places_once_and_answers_bring_them_back() -> None:
    async def work() -> None:
        window = AdaptiveConcurrency(16)
        sent = time.monotonic()
        for _ in range(16):  # all of one wave say the same
            window.slow_down(sent, 0.0)
        assert window.limit == 8
        window.slow_down(time.monotonic(), 0.0)
        assert window.limit == 4
        for _ in range(500):
            window.slow_down(time.monotonic(), 0.0)
        assert window.limit == 1
        for _ in range(1000):
            window.note_answer()
        assert window.limit == 16

    asyncio.run(work())


def test_nobody_enters_before_the_time_that_the_model_asked_for() -> None:
    async def work() -> float:
        window = AdaptiveConcurrency(4)
        window.slow_down(time.monotonic(), 0.2)
        began = time.monotonic()
        async with window:
            return time.monotonic() - began

    assert asyncio.run(work()) >= 0.19


def test_a_rate_of_requests_allows_no_burst() -> None:
    async def work() -> float:
        rates = RateLimiter(60 * 50, None)
        began = time.monotonic()
        for _ in range(6):
            await rates.take()
        return time.monotonic() - began

    assert asyncio.run(work()) >= 5 / 50 * 0.9


def test_tokens_that_an_answer_took_beyond_its_share_are_waited_for() -> None:
    async def work() -> float:
        rates = RateLimiter(None, 60 * 1000)
        reserved = await rates.take()
        rates.settle(reserved, [{"prompt_tokens": 150, "completion_tokens": 50}])
        began = time.monotonic()
        again = await rates.take()
        assert again == 200  # the mean so far
        rates.settle(again, [])  # a failed attempt took nothing
        return time.monotonic() - began

    assert asyncio.run(work()) >= 0.15


@given(attempt=st.integers(1, 100), asked=st.none() | st.floats(0, LONGEST_ASKED_S))
def test_a_pause_is_at_least_what_was_asked_and_never_longer_than_a_minute_more(
    attempt: int, asked: float | None
) -> None:
    wait = retry_delay(CallError("busy", retry_after=asked), attempt)
    assert wait is not None
    assert (asked or 0.0) <= wait <= (asked or 0.0) + min(60, 2 ** (attempt - 1))


def test_pauses_are_drawn_from_the_whole_span() -> None:
    drawn = [retry_delay(CallError("busy"), 4) or 0.0 for _ in range(400)]
    assert min(drawn) < 1 < 7 < max(drawn) <= 8


def test_what_will_not_heal_or_takes_too_long_is_not_tried_again() -> None:
    assert retry_delay(CallError("no such field", transient=False), 1) is None
    assert retry_delay(CallError("quota", retry_after=LONGEST_ASKED_S + 1), 1) is None


def test_the_breaker_stops_when_everything_fails_and_says_why() -> None:
    breaker = CircuitBreaker()
    busy, wrong = CallError("HTTP 503"), CallError("HTTP 401", hopeless=True)
    said = [breaker.note_failure(busy) for _ in range(FAILURES)]
    assert said[:-1] == [""] * (FAILURES - 1)
    assert "HTTP 503" in said[-1]
    breaker.note_answer()
    said = [breaker.note_failure(wrong) for _ in range(HOPELESS)]
    assert not any(said[:-1])
    assert "HTTP 401" in said[-1]


def test_one_answer_in_between_keeps_the_run_going() -> None:
    breaker = CircuitBreaker()
    for _ in range(10 * FAILURES):
        assert not breaker.note_failure(CallError("HTTP 503"))
        breaker.note_answer()


def test_requests_that_the_model_will_not_take_are_no_sign_that_nothing_works() -> None:
    """Before the first answer they may be; once others were answered they are not."""
    breaker, wrong = CircuitBreaker(), CallError("HTTP 400", transient=False)
    assert breaker.note_failure(CallError("HTTP 503")) == ""
    said = [breaker.note_failure(wrong) for _ in range(FAILURES - 1)]
    assert "HTTP 400" in said[-1]
    breaker.note_answer()
    assert not any(breaker.note_failure(wrong) for _ in range(10 * FAILURES))
    assert not any(CircuitBreaker(answered=True).note_failure(wrong) for _ in range(10 * FAILURES))
    said = [breaker.note_failure(CallError("HTTP 503")) for _ in range(FAILURES)]
    assert "HTTP 503" in said[-1]


def test_before_the_first_answer_a_rate_of_tokens_lets_one_request_out_at_a_time() -> None:
    async def work() -> None:
        rates = RateLimiter(None, 60e6)
        first = await rates.take()
        others = [asyncio.create_task(rates.take()) for _ in range(3)]
        await asyncio.sleep(0.01)
        assert not any(other.done() for other in others)
        rates.settle(first, [])  # it failed, so the next one finds out
        await asyncio.sleep(0.01)
        assert [other.done() for other in others] == [True, False, False]
        rates.settle(0.0, [{"prompt_tokens": 100}])
        assert await asyncio.gather(*others) == [0.0, 100.0, 100.0]

    asyncio.run(work())


def test_an_answer_that_does_not_say_its_tokens_is_taken_for_the_mean() -> None:
    async def work() -> None:
        rates = RateLimiter(None, 60e6)
        rates.settle(await rates.take(), [{"prompt_tokens": 100}])
        rates.settle(await rates.take(), [{}])
        assert await rates.take() == 100

    asyncio.run(work())


@pytest.mark.parametrize("steps", [0, 1])
def test_only_what_is_in_the_making_is_waited_for_as_media(
    source: LoadedDataset, steps: int
) -> None:
    """Senders that have nothing left to send wait for the last answers, or for pauses."""
    meter = StageTimer()
    release = threading.Event()

    def make(step: Step) -> Completion:
        release.wait(60)
        return Completion()

    async def work() -> float:
        ahead = Prefetch(make, threads=True, max_bytes=1, max_waiting=1, meter=meter)
        ahead.add(source.steps[:steps])
        tasks = [asyncio.create_task(ahead.work()), *(_taking(ahead) for _ in range(2))]
        await asyncio.sleep(0.05)
        release.set()
        await asyncio.sleep(0.05)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return meter.media_wait_s

    def _taking(ahead: Prefetch) -> asyncio.Task[Any]:
        return asyncio.create_task(ahead.take(1))

    waited = asyncio.run(work())
    assert (waited > 0.04) == bool(steps)
    assert steps or waited == 0
