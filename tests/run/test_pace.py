"""How fast a run asks: places, rates, pauses, and when it gives up."""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from omnidata.errors import CallError, UnansweredError
from omnidata.run.cost import Limits
from omnidata.run.evaluate import evaluate
from omnidata.types import Completion, GenerationParams, LoadedDataset, Modality, Prepared, Request
from tests.run.scripted import RIGHT, TASK, Run, Scripted


class Watched(Scripted):
    """Does with the n-th request what a function says, and notes when each began.

    Attributes:
        began: seconds, in order of the requests.
        open: how many were under way then.
        by_step: the same seconds by sample id.
    """

    def __init__(
        self, reply: Callable[[int], Completion], slow_s: Callable[[int], float] = lambda _: 0.0
    ) -> None:
        super().__init__(lambda *_: RIGHT)
        self.by_number, self.slow_s = reply, slow_s
        self.began: list[float] = []
        self.open: list[int] = []
        self.by_step: defaultdict[str, list[float]] = defaultdict(list)
        self.under_way = 0

    async def generate(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> list[Completion]:
        number = len(self.began)
        self.began.append(time.monotonic())
        self.by_step[batch[0].request.sample_id].append(self.began[-1])
        self.under_way += 1
        self.open.append(self.under_way)
        try:
            await asyncio.sleep(self.slow_s(number))
            return [self.by_number(number)]
        finally:
            self.under_way -= 1


def fails(error: CallError) -> Completion:
    raise error


def answer(**usage: int) -> Completion:
    return Completion(text=RIGHT.text, usage=usage)


def test_no_more_are_open_than_there_are_places(run: Run) -> None:
    model = Watched(lambda _: RIGHT, slow_s=lambda _: 0.01)
    run(model, limit=20, concurrency=3)
    assert max(model.open) == 3


def test_a_wave_of_429_halves_the_places_once_and_answers_bring_them_back(
    whole: LoadedDataset, tmp_path: Path
) -> None:
    busy = CallError("HTTP 429", throttled=True, retry_after=0.0)
    model = Watched(
        lambda n: fails(busy) if n < 8 else RIGHT, slow_s=lambda n: 0.5 if 8 <= n < 14 else 0.02
    )
    evaluate(TASK, whole, model, tmp_path, limits=Limits(concurrency=8))
    assert model.open[:8] == [*range(1, 9)]
    assert max(model.open[8:14]) == 4  # all of one wave say the same
    assert max(model.open[14:]) == 8


def test_nobody_is_asked_before_the_time_that_the_model_asked_for(run: Run) -> None:
    busy = CallError("HTTP 429", throttled=True, retry_after=0.3)
    model = Watched(lambda n: fails(busy) if n == 0 else RIGHT)
    run(model, limit=6, concurrency=1)
    assert model.began[1] - model.began[0] >= 0.29
    [again] = [times for times in model.by_step.values() if len(times) == 2]
    assert again[1] - again[0] >= 0.29


@pytest.mark.parametrize(
    "limits",
    [{"requests_per_minute": 60 * 50}, {"tokens_per_minute": 60e6}, {"max_tokens": 10**9}],
)
def test_requests_that_wait_for_their_turn_are_held_as_well(
    run: Run, limits: dict[str, Any]
) -> None:
    busy = CallError("HTTP 429", throttled=True, retry_after=0.5)
    model = Watched(lambda n: fails(busy) if n == 0 else RIGHT)
    run(model, limit=8, **limits)
    assert model.began[1] - model.began[0] >= 0.45
    if "requests_per_minute" in limits:  # those that were held do not go out together
        assert model.began[-1] - model.began[1] >= 7 / 50 / 2


def test_a_rate_of_requests_allows_no_burst(run: Run) -> None:
    model = Watched(lambda _: RIGHT)
    run(model, limit=6, requests_per_minute=60 * 20)
    assert model.began[-1] - model.began[0] >= 5 / 20 / 2


def test_tokens_of_answers_are_waited_for_and_failed_attempts_took_none(run: Run) -> None:
    wrong = CallError("HTTP 400", transient=False)
    spent = answer(prompt_tokens=150, completion_tokens=50)
    model = Watched(lambda n: fails(wrong) if n >= 2 else spent)
    run(model, limit=32, concurrency=1, tokens_per_minute=60 * 500)
    assert model.began[1] - model.began[0] >= 0.2  # 0.4 s, less what a busy machine is late
    assert model.began[2] - model.began[1] >= 0.2
    assert model.began[-1] - model.began[2] < 29 * 0.4 / 2


def test_an_answer_that_does_not_say_its_tokens_is_taken_for_the_mean(run: Run) -> None:
    model = Watched(lambda n: answer() if n else answer(prompt_tokens=100))
    run(model, limit=6, concurrency=1, tokens_per_minute=60 * 1000)
    assert model.began[-1] - model.began[0] >= 0.3  # of 0.5 s; 0.1 s if it counted for none


def test_before_the_first_answer_a_rate_of_tokens_lets_one_request_out_at_a_time(run: Run) -> None:
    wrong = CallError("HTTP 400", transient=False)
    model = Watched(lambda n: RIGHT if n else fails(wrong), slow_s=lambda _: 0.05)
    run(model, limit=12, tokens_per_minute=60e6)
    assert model.open[:2] == [1, 1]  # the first failed, so the second finds out
    assert max(model.open) == 4


def test_pauses_are_drawn_from_a_span_that_doubles(run: Run) -> None:
    times: defaultdict[str, list[float]] = defaultdict(list)

    def reply(sample_id: str, attempt: int) -> Completion:
        times[sample_id].append(time.monotonic())
        return RIGHT if attempt > 2 else fails(CallError("busy"))

    run(Scripted(reply), concurrency=len(run.ids))
    first, second = zip(*((b - a, c - b) for a, b, c in times.values()), strict=True)
    assert min(first) < 0.3 < 0.7 < max(first)
    assert max(second) > 1.1


def test_a_run_in_which_everything_fails_stops_after_ten_steps(run: Run) -> None:
    model = Watched(lambda _: fails(CallError("HTTP 503")))
    with pytest.raises(UnansweredError, match="HTTP 503"):
        run(model, attempts=1, concurrency=1)
    assert len(model.began) == 10


def test_one_answer_in_between_keeps_the_run_going(run: Run) -> None:
    model = Watched(lambda n: RIGHT if n % 10 == 9 else fails(CallError("HTTP 503")))
    results = run(model, attempts=1, concurrency=1)
    assert "stopped" not in results
    assert len(model.began) == len(run.ids) > 20


@pytest.mark.parametrize("answered", [False, True])
def test_requests_that_the_model_will_not_take_are_no_sign_that_nothing_works(
    run: Run, answered: bool
) -> None:
    """Before the first answer they may be; once others were answered they are not."""
    wrong, busy = CallError("HTTP 400", transient=False), CallError("HTTP 503")

    def reply(number: int) -> Completion:
        if number == 0:
            return RIGHT if answered else fails(busy)
        return fails(wrong if number <= 15 else busy)

    model = Watched(reply)
    if answered:
        results = run(model, attempts=1, concurrency=1)
        assert "HTTP 503" in results["stopped"]
        assert len(model.began) == 1 + 15 + 10
    else:
        with pytest.raises(UnansweredError, match="HTTP 400"):
            run(model, attempts=1, concurrency=1)
        assert len(model.began) == 10


class Reading(Watched):
    """Takes its time to make a request ready."""

    accepts: frozenset[Modality] | None = frozenset({"image", "video", "audio"})

    def prepare(self, request: Request) -> Prepared:
        time.sleep(0.1)
        return super().prepare(request)


def media_wait_s(source: LoadedDataset, run: Path, model: Watched) -> Any:
    evaluate(TASK, source, model, run, limit=1)
    return json.loads((run / "run.json").read_text())["timings"]["media_wait_s"]


def test_only_what_is_in_the_making_is_waited_for_as_media(
    source: LoadedDataset, tmp_path: Path
) -> None:
    """Senders that have nothing left to send wait for the last answers, or for pauses."""
    assert media_wait_s(source, tmp_path / "reading", Reading(lambda _: RIGHT)) >= 0.09
    busy = CallError("HTTP 503", retry_after=0.5)
    pausing = Watched(lambda n: RIGHT if n else fails(busy), slow_s=lambda _: 0.2)
    assert media_wait_s(source, tmp_path / "pausing", pausing) < 0.4
