"""The engine between steps and lines: order, retries and budgets."""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from omnidata.errors import CallError, UsageError
from omnidata.run.evaluate import evaluate
from omnidata.run.limits import Limits
from omnidata.tasks import get_task
from omnidata.types import (
    Completion,
    Conversation,
    GenerationParams,
    Prepared,
    Source,
)
from tests.run.scripted import RIGHT, TASK, Scripted, finals
from tests.trees import read_lines, row, write_rows


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
