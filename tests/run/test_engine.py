"""The engine between steps and lines: order, retries, stops and failures of adapters."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest

from omnidata.adapters import Model
from omnidata.errors import CallError, UsageError
from omnidata.predictions import read
from omnidata.run.evaluate import evaluate
from omnidata.run.limits import Limits
from omnidata.tasks import get_task
from omnidata.types import (
    Completion,
    Conversation,
    GenerationParams,
    Modality,
    Prepared,
    Request,
    Source,
)
from tests.trees import read_lines, row, write_rows

TASK = get_task("omnigui")
RIGHT = Completion(text='{"action_type": -1}', usage={"prompt_tokens": 90, "completion_tokens": 10})


class Scripted(Model):
    """Does with each attempt at a step what a function says."""

    name = "scripted"
    concurrency = 4

    def __init__(self, reply: Callable[[str, int], Completion]) -> None:
        self.reply = reply
        self.asked: Counter[str] = Counter()
        self.prompts: dict[str, Conversation] = {}
        self.closed = False

    def prepare(self, request: Request) -> Prepared:
        return Prepared(request, size=1000, key=request.sample_id)

    async def generate(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> list[Completion]:
        answers = []
        for item in batch:
            self.asked[item.request.sample_id] += 1
            self.prompts[item.request.sample_id] = item.request.conversation
            await asyncio.sleep(0)
            answers.append(self.reply(item.request.sample_id, self.asked[item.request.sample_id]))
        return answers

    async def close(self) -> None:
        self.closed = True


def finals(run: Path) -> dict[str, str]:
    lines = read_lines(run / "predictions.jsonl")
    assert len({line["sample_id"] for line in lines}) == len(lines)
    return {line["sample_id"]: line["delivery"] for line in lines}


def test_an_attempt_that_fails_is_repeated_and_kept_apart(source: Source, tmp_path: Path) -> None:
    def reply(sample_id: str, attempt: int) -> Completion:
        if attempt < 3 and sample_id == source.steps[1].sample_id:
            raise CallError("HTTP 503", retry_after=0.0)
        return RIGHT

    model = Scripted(reply)
    results = evaluate(TASK, source, model, tmp_path, limit=6)
    assert set(finals(tmp_path).values()) == {"ok"}
    lines = {line["sample_id"]: line for line in read_lines(tmp_path / "predictions.jsonl")}
    assert lines[source.steps[1].sample_id]["attempts"] == 3
    attempts = read_lines(tmp_path / "attempts.jsonl")
    assert [(a["delivery"], a["attempts"], a["output"]) for a in attempts] == [
        ("api_error", 1, ""),
        ("api_error", 2, ""),
    ]
    assert "stopped" not in results
    assert model.closed


def test_a_step_without_an_answer_is_no_prediction_and_is_asked_again_on_resume(
    source: Source, tmp_path: Path
) -> None:
    lost = source.steps[2].sample_id

    def failing(sample_id: str, attempt: int) -> Completion:
        if sample_id == lost:
            raise CallError("HTTP 400: no", transient=False)
        return RIGHT

    results = evaluate(TASK, source, Scripted(failing), tmp_path, limit=6)
    assert results["outcomes"]["api_error"] == 1
    assert finals(tmp_path)[lost] == "api_error"
    again = Scripted(lambda *_: RIGHT)
    results = evaluate(TASK, source, again, tmp_path, limit=6)
    assert again.asked == {lost: 1}
    assert "api_error" not in results["outcomes"]
    assert [line["sample_id"] for line in read_lines(tmp_path / "attempts.jsonl")] == [lost]


def test_a_run_in_which_everything_fails_stops_and_says_why(source: Source, tmp_path: Path) -> None:
    def failing(sample_id: str, attempt: int) -> Completion:
        raise CallError("HTTP 401: wrong key", transient=False, hopeless=True)

    model = Scripted(failing)
    results = evaluate(TASK, source, model, tmp_path)
    assert "HTTP 401" in results["stopped"]
    assert len(model.asked) < 10 < len(source.steps)
    assert results["outcomes"]["missing"] == len(source.steps) - len(finals(tmp_path))
    assert json.loads((tmp_path / "run.json").read_text())["stopped"] == results["stopped"]
    assert "stopped" not in evaluate(TASK, source, Scripted(lambda *_: RIGHT), tmp_path)


def test_a_slip_of_an_adapter_is_a_failure_of_its_step_alone(
    source: Source, tmp_path: Path
) -> None:
    def slipping(sample_id: str, attempt: int) -> Completion:
        if sample_id == source.steps[0].sample_id:
            raise KeyError("choices")
        return RIGHT

    evaluate(TASK, source, Scripted(slipping), tmp_path, limit=5)
    [line] = [p for p in read_lines(tmp_path / "predictions.jsonl") if p["delivery"] != "ok"]
    assert line["sample_id"] == source.steps[0].sample_id
    assert "KeyError" in line["error"]


class Short(Scripted):
    max_batch = 3

    async def generate(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> list[Completion]:
        return (await super().generate(batch, params))[:-1]


def test_too_few_answers_are_given_to_nobody(source: Source, tmp_path: Path) -> None:
    results = evaluate(TASK, source, Short(lambda *_: RIGHT), tmp_path, limit=6)
    assert results["outcomes"] == {"api_error": 6}


class Hanging(Scripted):
    timeout_s = 0.05

    async def generate(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> list[Completion]:
        if batch[0].request.sample_id.endswith("/0"):
            await asyncio.sleep(60)
        return await super().generate(batch, params)


def test_a_call_that_hangs_ends(source: Source, tmp_path: Path) -> None:
    limits = Limits(attempts=1)
    results = evaluate(TASK, source, Hanging(lambda *_: RIGHT), tmp_path, limit=4, limits=limits)
    lines = read_lines(tmp_path / "predictions.jsonl")
    late = {p["sample_id"] for p in lines if "no answer within 0.05 s" in p["error"]}
    assert late == {s.sample_id for s in source.steps[:4] if s.step_index == 0}
    assert results["outcomes"]["api_error"] == len(late)


def test_a_budget_ends_the_run_and_what_was_paid_for_is_kept(
    source: Source, tmp_path: Path
) -> None:
    model = Scripted(lambda *_: RIGHT)  # 100 tokens each
    limits = Limits(max_tokens=1050)
    results = evaluate(TASK, source, model, tmp_path, limits=limits)
    assert "--max-tokens 1050" in results["stopped"]
    assert len(finals(tmp_path)) == len(model.asked) == 10
    again = Scripted(lambda *_: RIGHT)
    evaluate(TASK, source, again, tmp_path, limits=limits)
    assert not again.asked  # what an earlier part of the run used counts
    results = evaluate(TASK, source, again, tmp_path)
    assert set(finals(tmp_path).values()) == {"ok"}
    assert set(again.asked) | set(model.asked) == {step.sample_id for step in source.steps}
    assert max((again.asked + model.asked).values()) == 1
    assert "stopped" not in results


def test_equal_requests_of_another_run_are_not_sent(source: Source, tmp_path: Path) -> None:
    limits = Limits(cache=tmp_path / "cache.sqlite")
    first, second = Scripted(lambda *_: RIGHT), Scripted(lambda *_: RIGHT)
    evaluate(TASK, source, first, tmp_path / "a", limit=8, limits=limits)
    evaluate(TASK, source, second, tmp_path / "b", limit=10, limits=limits)
    assert len(first.asked) == 8
    assert set(second.asked) == {step.sample_id for step in source.steps[8:10]}
    cached = [p for p in read_lines(tmp_path / "b" / "predictions.jsonl") if p["receipt"]]
    assert len(cached) == 8
    assert all(line["receipt"]["cached"] for line in cached)


def test_predicted_histories_keep_their_order_while_episodes_run_side_by_side(
    tmp_path: Path,
) -> None:
    rows = [row(episode, step, app="ted") for episode in "ABCDEF" for step in range(4)]
    source = TASK.load(write_rows(tmp_path / "steps.json", rows))
    together: list[set[str]] = []
    under_way: set[str] = set()

    class Slow(Scripted):
        async def generate(
            self, batch: Sequence[Prepared], params: GenerationParams
        ) -> list[Completion]:
            episode = batch[0].request.sample_id.rsplit("/", 1)[0]
            assert episode not in under_way
            under_way.add(episode)
            together.append(set(under_way))
            await asyncio.sleep(0.01)
            under_way.discard(episode)
            return await super().generate(batch, params)

    def reply(sample_id: str, attempt: int) -> Completion:
        return Completion(text=json.dumps({"action_type": 3, "text": sample_id}))

    model = Slow(reply)
    evaluate(get_task("omnigui", {"history": "predicted"}), source, model, tmp_path / "run")
    assert max(map(len, together)) == 4
    order = defaultdict(list)
    for sample_id in model.asked:
        order[sample_id.rsplit("/", 1)[0]].append(int(sample_id.rsplit("/", 1)[1]))
    assert set(map(tuple, order.values())) == {(0, 1, 2, 3)}


class Blind(Scripted):
    def refuses(self, conversation: Conversation) -> str:
        kinds = {part.kind for message in conversation for part in message.parts}
        return "it takes no video" if "video" in kinds else ""


def test_media_that_the_model_cannot_take_are_refused_before_the_first_request(
    source: Source, tmp_path: Path
) -> None:
    model = Blind(lambda *_: RIGHT)
    with pytest.raises(UsageError, match=r"takes no video(.|\n)*degrade=true"):
        evaluate(TASK, source, model, tmp_path / "run")
    assert not model.asked
    assert not (tmp_path / "run").exists()
    still = get_task("omnigui", {"modalities": "IA"})
    assert evaluate(still, source, model, tmp_path / "run")["outcomes"] == {"ok": len(source.steps)}


def test_answers_that_lacked_media_are_counted(source: Source, tmp_path: Path) -> None:
    degraded = Completion(text="{}", receipt={"degraded": ["video: it takes none"]})
    model = Scripted(lambda _, n: degraded)
    assert evaluate(TASK, source, model, tmp_path, limit=5)["counts"]["degraded"] == 5


def test_a_full_disk_loses_no_line_that_was_whole(source: Source, tmp_path: Path) -> None:
    """The limit on a file's size is the system's own; what is written is real."""
    code = (
        "import resource, signal, sys; from pathlib import Path; import omnidata;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY));"
        "task = omnidata.get_task('omnigui'); source = task.load(Path(sys.argv[1]));"
        "omnidata.evaluate(task, source, 'baseline:center', Path(sys.argv[2]))"
    )
    run = tmp_path / "run"
    done = subprocess.run(
        [sys.executable, "-c", code, str(source.root), str(run)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "RunError" in done.stderr
    assert "make room and repeat the command" in done.stderr
    kept = finals(run)
    assert 0 < len(kept) < len(source.steps)
    assert (run / "predictions.jsonl").read_bytes().endswith(b"\n")
    evaluate(TASK, source, "baseline:center", run)
    assert len(finals(run)) == len(source.steps)
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 5000


class Odd(Scripted):
    """An adapter of somebody's own that slips at one step, before or after it asks."""

    def __init__(self, slip: Callable[[], Any], at: str, when: str) -> None:
        super().__init__(lambda *_: RIGHT)
        self.slip, self.at, self.when = slip, at, when

    def prepare(self, request: Request) -> Prepared:
        if self.when == "prepare" and request.sample_id == self.at:
            return self.slip()  # type: ignore[no-any-return]
        return super().prepare(request)

    async def generate(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> list[Completion]:
        if self.when == "generate" and batch[0].request.sample_id == self.at:
            return self.slip()  # type: ignore[no-any-return]
        return await super().generate(batch, params)


def _raise(error: BaseException) -> NoReturn:
    raise error


SLIPS: dict[str, tuple[str, Callable[[], Any], str]] = {
    "an error in prepare": ("prepare", lambda: _raise(KeyError("frames")), "KeyError"),
    "prepare without return": ("prepare", lambda: None, "NoneType"),
    "generate without return": ("generate", lambda: None, "NoneType"),
    "a text": ("generate", lambda: ["tap"], "str, not Completion"),
    "an unknown delivery": ("generate", lambda: [Completion(delivery=cast(Any, "fine"))], "fine"),
    "a number for a text": ("generate", lambda: [Completion(text=cast(Any, 3))], "Expected `str`"),
    "no JSON": ("generate", lambda: [Completion(receipt={"at": object()})], "object"),
    "a cancellation": ("generate", lambda: _raise(asyncio.CancelledError()), "cancelled itself"),
}


@pytest.mark.parametrize("name", SLIPS)
@pytest.mark.parametrize("accepts", [(), ("image",)])
def test_no_slip_of_an_adapter_ends_or_stalls_the_run(
    source: Source, tmp_path: Path, name: str, accepts: Sequence[Modality]
) -> None:
    when, slip, said = SLIPS[name]
    model = Odd(slip, source.steps[2].sample_id, when)
    model.accepts = frozenset(accepts)
    results = evaluate(TASK, source, model, tmp_path, limit=6, limits=Limits(attempts=2))
    assert results["outcomes"] == {"ok": 5, "api_error": 1}
    [line] = [p for p in read(tmp_path / "predictions.jsonl") if p.delivery != "ok"]
    assert line.sample_id == source.steps[2].sample_id
    assert said in line.error


def test_an_adapter_that_cannot_close_has_answered_all_the_same(
    source: Source, tmp_path: Path
) -> None:
    class Stuck(Scripted):
        async def close(self) -> None:
            raise RuntimeError("the socket is gone")

    results = evaluate(TASK, source, Stuck(lambda *_: RIGHT), tmp_path, limit=3)
    assert json.loads((tmp_path / "results.json").read_text()) == results


def test_an_adapter_that_cannot_say_what_it_takes_is_named(source: Source, tmp_path: Path) -> None:
    class Mute(Scripted):
        def refuses(self, conversation: Conversation) -> str:
            raise AttributeError("capabilities")

    with pytest.raises(UsageError, match=r"scripted, refuses: the adapter failed \(AttributeError"):
        evaluate(TASK, source, Mute(lambda *_: RIGHT), tmp_path / "run")


@pytest.mark.parametrize("seconds", [1e6, float("inf"), float("nan")])
def test_a_wait_of_days_is_not_waited(source: Source, tmp_path: Path, seconds: float) -> None:
    def spent(sample_id: str, attempt: int) -> Completion:
        raise CallError("HTTP 429: quota", throttled=True, retry_after=seconds)

    results = evaluate(TASK, source, Scripted(spent), tmp_path)
    assert "HTTP 429: quota" in results["stopped"]


def test_a_wait_that_is_negative_is_none(source: Source, tmp_path: Path) -> None:
    def once(sample_id: str, attempt: int) -> Completion:
        if attempt == 1:
            raise CallError("HTTP 429", throttled=True, retry_after=-1e6)
        return RIGHT

    evaluate(TASK, source, Scripted(once), tmp_path, limit=2)
    assert json.loads((tmp_path / "run.json").read_text())["timings"]["pause_s"] >= 0


def test_a_run_that_stops_waits_for_no_pause(source: Source, tmp_path: Path) -> None:
    def reply(sample_id: str, attempt: int) -> Completion:
        if sample_id == source.steps[0].sample_id and attempt == 1:
            raise CallError("HTTP 503", retry_after=500.0)
        return RIGHT

    model = Scripted(reply)
    results = evaluate(TASK, source, model, tmp_path, limits=Limits(max_tokens=1000))
    assert "--max-tokens 1000" in results["stopped"]
    assert source.steps[0].sample_id not in finals(tmp_path)
    assert len(finals(tmp_path)) == 10


def test_requests_that_a_model_never_takes_do_not_keep_the_others_from_being_asked(
    source: Source, tmp_path: Path
) -> None:
    """Also not when the run is resumed, where they come first."""
    bad = {step.sample_id for step in source.steps[1:14]}

    def reply(sample_id: str, attempt: int) -> Completion:
        if sample_id in bad:
            raise CallError("HTTP 400: too long", transient=False)
        return RIGHT

    for _ in range(2):
        model = Scripted(reply)
        model.concurrency = 1
        results = evaluate(TASK, source, model, tmp_path)
        assert "stopped" not in results
        assert results["outcomes"] == {"ok": len(source.steps) - 13, "api_error": 13}
        assert set(model.asked) >= bad


@pytest.mark.parametrize("media", [(), ("image",)])
def test_a_bound_in_bytes_below_one_request_lets_one_at_a_time_through(
    source: Source, tmp_path: Path, media: Sequence[Modality]
) -> None:
    model = Scripted(lambda *_: RIGHT)
    model.accepts = frozenset(media)
    results = evaluate(TASK, source, model, tmp_path, limits=Limits(ahead_bytes=1))
    assert results["outcomes"] == {"ok": len(source.steps)}
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
        self.answered.append(batch[0].request.sample_id)
        if len(self.answered) == self.after:
            os.kill(os.getpid(), self.number)
        return answers


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("after", [1, 7, 20])
def test_every_answer_that_came_before_an_interruption_has_its_line(
    source: Source, tmp_path: Path, after: int, number: int
) -> None:
    handler = signal.getsignal(number)
    model = Interrupting(after, number)
    with pytest.raises(KeyboardInterrupt):
        evaluate(TASK, source, model, tmp_path, limits=Limits(max_tokens=10**6, concurrency=16))
    assert set(finals(tmp_path)) == set(model.answered)
    assert after <= len(model.answered) < len(source.steps)
    assert model.closed
    assert json.loads((tmp_path / "run.json").read_text())["timings"]["model_s"] > 0
    assert signal.getsignal(number) is handler
    results = evaluate(TASK, source, Scripted(lambda *_: RIGHT), tmp_path)
    assert results["outcomes"] == {"ok": len(source.steps)}


def test_a_run_in_a_notebook_ends_when_it_is_interrupted(source: Source, tmp_path: Path) -> None:
    class Slow(Interrupting):
        async def generate(
            self, batch: Sequence[Prepared], params: GenerationParams
        ) -> list[Completion]:
            answers = await super().generate(batch, params)
            if len(self.answered) > self.after:
                await asyncio.sleep(3600)
            return answers

    async def cell() -> None:
        evaluate(TASK, source, model, tmp_path)

    model = Slow(5, signal.SIGINT)
    loop = asyncio.new_event_loop()  # as a kernel has it: without asyncio's own handler
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(cell())
    finally:
        loop.close()
    assert 5 <= len(finals(tmp_path)) < len(source.steps)
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
        evaluate(task, source, Scripted(lambda *_: RIGHT), tmp_path / "run")
        usage = json.loads((tmp_path / "run" / "run.json").read_text())["usage"]
        assert usage["requests"] == 5 + 2  # steps A/1 and A/2 were asked when A/1 had failed


def test_a_batch_holds_steps_of_like_length(source: Source, tmp_path: Path) -> None:
    class Long(Scripted):
        max_batch = 4
        concurrency = 1
        accepts: frozenset[Modality] = frozenset({"image"})

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
    evaluate(TASK, source, model, tmp_path, limit=32)
    assert [len(batch) for batch in model.batches] == [4] * 8
    assert all(batch == sorted(batch, reverse=True) for batch in model.batches)
    padding = sum(4 * max(batch) - sum(batch) for batch in model.batches)
    lengths = [length for batch in model.batches for length in batch]
    chance = random.Random(0).sample(lengths, len(lengths))
    as_they_come = [chance[n : n + 4] for n in range(0, 32, 4)]
    assert padding < sum(4 * max(batch) - sum(batch) for batch in as_they_come) / 2
