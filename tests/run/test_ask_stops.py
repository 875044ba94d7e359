"""Slips of adapters, waits and interruptions: the run ends well and no line is lost."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest

from omnidata.errors import CallError, UnansweredError, UsageError
from omnidata.predictions import Prediction, read
from omnidata.run.cost import Limits
from omnidata.run.evaluate import evaluate
from omnidata.tasks import get_task
from omnidata.types import (
    Completion,
    GenerationParams,
    Modality,
    Prepared,
    Request,
)
from tests.run.scripted import RIGHT, TASK, Run, Scripted
from tests.trees import row, write_rows


class Odd(Scripted):
    """An adapter of somebody's own that slips at one step, before or after it asks."""

    def __init__(self, slip: Callable[[], Any], at: str, when: str) -> None:
        super().__init__(lambda *_: RIGHT)
        self.slip, self.at, self.when = slip, at, when

    def prepare(self, request: Request) -> Prepared:
        if self.when == "prepare" and request.sample_id == self.at:
            return self.slip()  # type: ignore[no-any-return]  # whatever slips
        return super().prepare(request)

    def generate(self, batch: Sequence[Prepared], params: GenerationParams) -> Any:
        slips = batch[0].request.sample_id == self.at
        if slips and self.when == "call":
            return self.slip()

        async def answer() -> list[Completion]:
            if slips and self.when == "generate":
                return self.slip()  # type: ignore[no-any-return]  # whatever slips
            return await Scripted.generate(self, batch, params)

        return answer()


def _raise(error: BaseException) -> NoReturn:
    raise error


SLIPS: dict[str, tuple[str, Callable[[], Any], str]] = {
    "an error in prepare": ("prepare", lambda: _raise(KeyError("frames")), "KeyError"),
    "prepare without return": ("prepare", lambda: None, "None, not Prepared"),
    "no Prepared, though it looks like one": (
        "prepare",
        lambda: SimpleNamespace(request=Request("Chirp/C001/2", ()), receipt={}, key=""),
        "not Prepared",
    ),
    "a prediction": (
        "generate",
        lambda: [Prediction(sample_id="x", output="")],
        "not a Completion",
    ),
    "generate without async": ("call", lambda: [RIGHT], "write `async def generate`"),
    "generate without return": ("generate", lambda: None, "returned None"),
    "one completion": ("generate", lambda: RIGHT, "not a list of Completions"),
    "a payload alone": (
        "prepare",
        lambda: Prepared(cast(Any, "x")),
        "not Prepared with the Request",
    ),
    "a text for a receipt": (
        "prepare",
        lambda: Prepared(Request("Chirp/C001/2", ()), receipt=cast(Any, "rec")),
        "the receipt 'rec', no dict",
    ),
    "counts in words": (
        "generate",
        lambda: [Completion(usage={"promptTokenCount": "many", "tier": "default"})],
        "'prompt_token_count': 'many'",
    ),
    "a text": ("generate", lambda: ["tap"], "TypeError"),
    "an unknown delivery": ("generate", lambda: [Completion(delivery=cast(Any, "fine"))], "fine"),
    "a number for a text": ("generate", lambda: [Completion(text=cast(Any, 3))], "Expected `str`"),
    "bytes for a text": ("generate", lambda: [Completion(text=cast(Any, b"x"))], "bytes"),
    "a set in a receipt": ("generate", lambda: [Completion(receipt={"at": {1}})], "set"),
    "no time": ("generate", lambda: [Completion(latency_s=float("nan"))], "latency_s"),
    "another step": ("prepare", lambda: Prepared(Request("ted/A/0", ())), "step ted/A/0"),
    "no JSON": ("generate", lambda: [Completion(receipt={"at": object()})], "object"),
    "a cancellation in prepare": (
        "prepare",
        lambda: _raise(asyncio.CancelledError()),
        "CancelledError",
    ),
    "an exit in prepare": ("prepare", lambda: _raise(SystemExit(0)), "SystemExit"),
    "an exit": ("generate", lambda: _raise(SystemExit(0)), "SystemExit"),
    "a cancellation": ("generate", lambda: _raise(asyncio.CancelledError()), "cancelled itself"),
}


MEDIA: Sequence[Modality] = ("image", "video", "audio")


@pytest.mark.parametrize(
    ("name", "accepts"),
    [
        *((name, None) for name in SLIPS),
        # Requests with media are prepared by threads.
        *((name, MEDIA) for name, (when, *_) in SLIPS.items() if when == "prepare"),
    ],
)
def test_no_slip_of_an_adapter_ends_or_stalls_the_run(
    run: Run, name: str, accepts: Sequence[Modality] | None
) -> None:
    when, slip, said = SLIPS[name]
    model = Odd(slip, run.ids[2], when)
    model.accepts = frozenset(accepts) if accepts else None
    results = run(model, limit=6, attempts=2)
    assert results["outcomes"] == {"ok": 5, "api_error": 1}
    [line] = [p for p in read(run.folder / "predictions.jsonl") if p.delivery != "ok"]
    assert line.sample_id == run.ids[2]
    assert said in line.error


@pytest.mark.parametrize(
    "error", [RuntimeError("the socket is gone"), asyncio.CancelledError(), SystemExit(0)]
)
def test_an_adapter_that_cannot_close_has_answered_all_the_same(
    run: Run, error: BaseException
) -> None:
    class Stuck(Scripted):
        async def close(self) -> None:
            raise error

    results = run(Stuck(), limit=3)
    assert json.loads((run.folder / "results.json").read_text()) == results


@pytest.mark.parametrize("seconds", [600.5, 1e6, float("inf"), float("nan")])
def test_a_wait_of_days_is_not_waited(run: Run, seconds: float) -> None:
    def spent(sample_id: str, attempt: int) -> Completion:
        raise CallError("HTTP 429: quota", throttled=True, retry_after=seconds)

    with pytest.raises(UnansweredError, match="HTTP 429: quota"):
        run(Scripted(spent))


def test_a_wait_that_is_negative_is_none(run: Run) -> None:
    def once(sample_id: str, attempt: int) -> Completion:
        if attempt == 1:
            raise CallError("HTTP 429", throttled=True, retry_after=-1e6)
        return RIGHT

    run(Scripted(once), limit=2)
    assert run.info["timings"]["pause_s"] >= 0


def test_a_run_that_stops_waits_for_no_pause(run: Run) -> None:
    def reply(sample_id: str, attempt: int) -> Completion:
        if sample_id == run.ids[0] and attempt == 1:
            raise CallError("HTTP 503", retry_after=500.0)
        return RIGHT

    model = Scripted(reply)
    results = run(model, max_tokens=1000)
    assert "--max-tokens 1000" in results["stopped"]
    assert run.ids[0] not in run.finals()
    assert len(run.finals()) == 10


def test_requests_that_a_model_never_takes_keep_no_other_from_being_asked(run: Run) -> None:
    """Also not when the run is resumed, where they come first."""
    bad = {step.sample_id for step in run.source.steps[1:14]}

    def reply(sample_id: str, attempt: int) -> Completion:
        if sample_id in bad:
            raise CallError("HTTP 400: too long", transient=False)
        return RIGHT

    for _ in range(2):
        model = Scripted(reply)
        model.concurrency = 1
        results = run(model)
        assert "stopped" not in results
        assert results["outcomes"] == {"ok": len(run.ids) - 13, "api_error": 13}
        assert set(model.asked) >= bad


@pytest.mark.parametrize("media", [None, ("image", "video", "audio")])
def test_a_bound_in_bytes_below_one_request_lets_one_at_a_time_through(
    run: Run, media: Sequence[Modality] | None
) -> None:
    model = Scripted()
    model.accepts = frozenset(media) if media else None
    results = run(model, ahead_bytes=1)
    assert results["outcomes"] == {"ok": len(run.ids)}
    with pytest.raises(UsageError, match="ahead_bytes is 0"):
        Limits(ahead_bytes=0)


class Interrupting(Scripted):
    """Is interrupted at the very moment an answer comes."""

    def __init__(self, after: int, number: int) -> None:
        super().__init__(lambda *_: RIGHT)
        self.after, self.number = after, number
        self.answered: list[str] = []

    async def generate(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> list[Completion]:
        answers = await super().generate(batch, params)
        await asyncio.sleep(0.001)  # run.json has the time in milliseconds
        self.answered.append(batch[0].request.sample_id)
        if len(self.answered) == self.after:
            os.kill(os.getpid(), self.number)
        return answers


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("after", [1, 7])
def test_every_answer_that_came_before_an_interruption_has_its_line(
    run: Run, after: int, number: int
) -> None:
    handler = signal.getsignal(number)
    model = Interrupting(after, number)
    with pytest.raises(KeyboardInterrupt):
        run(model, max_tokens=10**6, concurrency=16)
    assert set(run.finals()) == set(model.answered)
    assert after <= len(model.answered) < len(run.ids)
    assert model.closed
    assert run.info["timings"]["model_s"] > 0
    assert signal.getsignal(number) is handler
    results = run(Scripted())
    assert results["outcomes"] == {"ok": len(run.ids)}


def test_a_run_in_a_notebook_ends_when_it_is_interrupted(run: Run) -> None:
    class Slow(Interrupting):
        async def generate(
            self, batch: Sequence[Prepared], params: GenerationParams
        ) -> list[Completion]:
            answers = await super().generate(batch, params)
            if len(self.answered) > self.after:
                await asyncio.sleep(3600)
            return answers

    async def cell() -> None:
        run(model)

    model = Slow(5, signal.SIGINT)
    loop = asyncio.new_event_loop()  # as a kernel has it: without asyncio's own handler
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(cell())
    finally:
        loop.close()
    assert 5 <= len(run.finals()) < len(run.ids)
    assert model.closed


def test_what_answers_cost_that_were_asked_again_counts_against_the_budget(tmp_path: Path) -> None:
    rows = [row(episode, step, app="ted") for episode in "AB" for step in range(3)]
    source = TASK.load(write_rows(tmp_path / "steps.json", rows))
    task = get_task("omnigui", {"history": "predicted"})

    def failing(sample_id: str, attempt: int) -> Completion:
        if sample_id == "ted/A/1":
            raise CallError("HTTP 400", transient=False)
        return RIGHT

    evaluate(task, source, Scripted(failing), tmp_path / "run")
    for _ in range(2):
        evaluate(task, source, Scripted(), tmp_path / "run")
        usage = json.loads((tmp_path / "run" / "run.json").read_text())["usage"]
        assert usage["requests"] == 5 + 2  # steps A/1 and A/2 were asked when A/1 had failed


def test_a_batch_holds_steps_of_like_length(run: Run) -> None:
    class Long(Scripted):
        max_batch = 4
        concurrency = 1
        accepts: frozenset[Modality] | None = frozenset({"image", "video", "audio"})

        def __init__(self) -> None:
            super().__init__(lambda *_: RIGHT)
            self.batches: list[list[int]] = []

        def prepare(self, request: Request) -> Prepared:
            length = int(hashlib.sha256(request.sample_id.encode()).hexdigest(), 16) % 1000
            return Prepared(request, length=length)

        async def generate(
            self, batch: Sequence[Prepared], params: GenerationParams
        ) -> list[Completion]:
            self.batches.append([item.length for item in batch])
            await asyncio.sleep(0.05)  # slower than what is prepared meanwhile
            return await super().generate(batch, params)

    model = Long()
    run(model, limit=28)
    assert [len(batch) for batch in model.batches] == [4] * 7
    assert all(batch == sorted(batch, reverse=True) for batch in model.batches)
    padding = sum(4 * max(batch) - sum(batch) for batch in model.batches)
    lengths = [length for batch in model.batches for length in batch]
    chance = random.Random(0).sample(lengths, len(lengths))
    as_they_come = [chance[n : n + 4] for n in range(0, 28, 4)]
    assert padding < sum(4 * max(batch) - sum(batch) for batch in as_they_come) / 2
