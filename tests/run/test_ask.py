"""Between steps and lines: order, retries and budgets."""

from __future__ import annotations

import asyncio
import json
import re
import resource
import subprocess
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from omnidata.errors import (
    AdapterError,
    CallError,
    UnansweredError,
    UnansweredWarning,
    UsageError,
)
from omnidata.run.cost import Limits
from omnidata.run.dry_run import dry_run
from omnidata.run.evaluate import evaluate
from omnidata.tasks import get_task
from omnidata.types import (
    Completion,
    Conversation,
    GenerationParams,
    LoadedDataset,
    Modality,
    Prepared,
    Request,
)
from tests.run.scripted import RIGHT, TASK, Scripted, finals
from tests.trees import read_lines, row, write_rows


def test_an_attempt_that_fails_is_repeated_and_kept_apart(
    source: LoadedDataset, tmp_path: Path
) -> None:
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
    source: LoadedDataset, tmp_path: Path
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


def test_a_run_in_which_everything_fails_stops_and_says_why(
    source: LoadedDataset, tmp_path: Path
) -> None:
    def failing(sample_id: str, attempt: int) -> Completion:
        raise CallError("HTTP 401: wrong key", transient=False, hopeless=True)

    model = Scripted(failing)
    with pytest.raises(UnansweredError, match="HTTP 401: wrong key"):
        evaluate(TASK, source, model, tmp_path)
    assert len(model.asked) < 10 < len(source.steps)
    assert "HTTP 401" in json.loads((tmp_path / "run.json").read_text())["stopped"]
    assert not (tmp_path / "results.json").exists()
    assert "stopped" not in evaluate(TASK, source, Scripted(lambda *_: RIGHT), tmp_path)


class Short(Scripted):
    max_batch = 3

    async def generate(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> list[Completion]:
        return (await super().generate(batch, params))[:-1]


def test_too_few_answers_are_given_to_nobody(source: LoadedDataset, tmp_path: Path) -> None:
    with pytest.raises(AdapterError, match=r"generate: the adapter failed.*2 answers to 3"):
        evaluate(TASK, source, Short(lambda *_: RIGHT), tmp_path, limit=6)
    assert set(finals(tmp_path).values()) == {"api_error"}


@pytest.mark.parametrize("limit", [1, None])
@pytest.mark.parametrize("method", ["generate", "prepare"])
def test_code_of_an_adapter_that_never_works_stops_the_run_and_is_named(
    source: LoadedDataset, tmp_path: Path, limit: int | None, method: str
) -> None:
    class Broken(Scripted):
        calls = 0

        def prepare(self, request: Request) -> Prepared:
            self.divide("prepare")
            return super().prepare(request)

        async def generate(
            self, batch: Sequence[Prepared], params: GenerationParams
        ) -> list[Completion]:
            self.divide("generate")
            return await super().generate(batch, params)

        def divide(self, here: str) -> None:
            self.calls += here == "generate"
            if here == method:
                json.loads("{" if self.calls < 0 else f"{1 / 0}")

    model = Broken(lambda *_: RIGHT)
    said = r"test_ask\.py:(\d+), in divide: the adapter failed \(ZeroDivisionError"
    with pytest.raises(AdapterError, match=said) as caught:
        evaluate(TASK, source, model, tmp_path, limit=limit)
    assert caught.value.exit_code == 1
    line = int(re.search(said, str(caught.value))[1])  # type: ignore[index]  # it matched
    assert "1 / 0" in Path(__file__).read_text().splitlines()[line - 1]
    assert model.calls < 10
    assert not (tmp_path / "results.json").exists()
    results = evaluate(TASK, source, Scripted(lambda *_: RIGHT), tmp_path, limit=limit)
    assert set(results["outcomes"]) == {"ok"}


def test_steps_without_an_answer_are_warned_of(source: LoadedDataset, tmp_path: Path) -> None:
    def failing(sample_id: str, attempt: int) -> Completion:
        if sample_id in {step.sample_id for step in source.steps[2:4]}:
            raise KeyError("choices")
        return RIGHT

    with pytest.warns(UnansweredWarning, match="2 of 6 steps got no answer.*KeyError") as seen:
        evaluate(TASK, source, Scripted(failing), tmp_path, limit=6)
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate(TASK, source, Scripted(lambda *_: RIGHT), tmp_path, limit=6)


def test_code_that_fails_for_good_later_stops_the_run(
    source: LoadedDataset, tmp_path: Path
) -> None:
    def failing(sample_id: str, attempt: int) -> Completion:
        if len(model.asked) > 5:
            raise KeyError("choices")
        return RIGHT

    model = Scripted(failing)
    results = evaluate(TASK, source, model, tmp_path)
    assert "KeyError" in results["stopped"]
    assert 0 < results["outcomes"]["ok"] <= 5
    assert len(model.asked) < 30 < len(source.steps)


class Hanging(Scripted):
    timeout_s = 0.05

    async def generate(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> list[Completion]:
        if batch[0].request.sample_id.endswith("/0"):
            await asyncio.sleep(60)
        return await super().generate(batch, params)


def test_a_call_that_hangs_ends(source: LoadedDataset, tmp_path: Path) -> None:
    limits = Limits(attempts=1)
    results = evaluate(TASK, source, Hanging(lambda *_: RIGHT), tmp_path, limit=4, limits=limits)
    lines = read_lines(tmp_path / "predictions.jsonl")
    late = {p["sample_id"] for p in lines if "no answer within 0.05 s" in p["error"]}
    assert late == {s.sample_id for s in source.steps[:4] if s.step_index == 0}
    assert results["outcomes"]["api_error"] == len(late)


def test_a_budget_ends_the_run_and_what_was_paid_for_is_kept(
    source: LoadedDataset, tmp_path: Path
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


class Eyes(Scripted):
    """Takes pictures alone, and does not think of media that it might be given beside them."""

    accepts: frozenset[Modality] | None = frozenset({"image"})


class Careless(Eyes):
    """The same without the base class's word on what it is not to be given."""

    def unsupported_reason(self, conversation: Conversation) -> str:
        return ""


class Dropping(Careless):
    def prepare(self, request: Request) -> Prepared:
        parts = [
            {"role": part.role, "kind": part.kind, "dropped": "it takes pictures"}
            for message in request.conversation
            for part in message.parts
            if part.kind in ("video", "audio")
        ]
        said = [f"{part['role']}: {part['dropped']}" for part in parts]
        receipt = {"parts": parts} | ({"degraded": said} if said else {})
        return Prepared(request, receipt=receipt)

    async def generate(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> list[Completion]:
        answers = await super().generate(batch, params)
        return [
            msgspec.structs.replace(answer, receipt=dict(item.receipt))
            for answer, item in zip(answers, batch, strict=True)
        ]


@pytest.mark.parametrize("kind", [Eyes, Careless])
def test_an_adapter_is_shown_nothing_that_it_does_not_accept(
    source: LoadedDataset, tmp_path: Path, kind: type[Eyes]
) -> None:
    model = kind(lambda *_: RIGHT)
    said = r"prompt has video, audio, image, and the model accepts image(.|\n)*-T modalities=I;"
    with pytest.raises(UsageError, match=said):
        evaluate(TASK, source, model, tmp_path / "run")
    with pytest.raises(UsageError, match=said):
        dry_run(TASK, source, model, tmp_path / "run", Limits())
    assert not model.asked
    assert not (tmp_path / "run").exists()
    pictures = get_task("omnigui", {"modalities": "I"})
    results = evaluate(pictures, source, model, tmp_path / "run", limit=9)
    assert results["outcomes"] == {"ok": 9}


def test_an_adapter_that_accepts_nothing_is_shown_nothing(
    source: LoadedDataset, tmp_path: Path
) -> None:
    model = Scripted(lambda *_: RIGHT)
    model.accepts = frozenset()
    with pytest.raises(UsageError, match="accepts no media"):
        evaluate(TASK, source, model, tmp_path / "run")
    assert not model.asked


def test_what_an_adapter_drops_and_says_so_is_counted(
    source: LoadedDataset, tmp_path: Path
) -> None:
    results = evaluate(TASK, source, Dropping(lambda *_: RIGHT), tmp_path)
    heard = sum(bool(step.media.get("video") or step.media.get("audio")) for step in source.steps)
    assert results["counts"]["degraded"] == heard > 0


ODD: dict[str, list[Any]] = {
    "name": [None, "", 3],
    "settings": [None, {"at": float("nan")}, {"at": object()}],
    "params": [None, {"temperature": 0}],
    "accepts": ["image", ["image", "picture"], [["image"]], 3],
    "max_batch": [0, -1, 1.5, None, True],
    "concurrency": [0, "4"],
    "timeout_s": [0, -1.0, float("nan"), "5"],
}


@pytest.mark.parametrize("attribute", ODD)
def test_an_adapter_whose_attributes_are_odd_is_refused_before_the_first_request(
    source: LoadedDataset, tmp_path: Path, attribute: str
) -> None:
    for value in ODD[attribute]:
        model = Scripted(lambda *_: RIGHT)
        setattr(model, attribute, value)
        said = rf"Scripted: the adapter's `{attribute}` is (.|\n)*Expected: "
        with pytest.raises(UsageError, match=said) as caught:
            evaluate(TASK, source, model, tmp_path / "run", limit=1)
        assert repr(value)[:15] in str(caught.value)
        with pytest.raises(UsageError, match=said):
            dry_run(TASK, source, model, tmp_path / "run", Limits(), limit=1)
        assert not model.asked
    assert not (tmp_path / "run").exists()


def test_what_is_no_adapter_is_refused(source: LoadedDataset, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"Scripted is a class(.|\n)*call it: Scripted\("):
        evaluate(TASK, source, cast(Any, Scripted), tmp_path / "run")
    with pytest.raises(UsageError, match="PosixPath: the adapter's `settings` is missing"):
        evaluate(TASK, source, cast(Any, tmp_path), tmp_path / "run")


@pytest.mark.parametrize("kinds", [list, tuple, set])
def test_an_adapter_says_what_it_accepts_in_any_collection(
    source: LoadedDataset,
    tmp_path: Path,
    kinds: Callable[[Sequence[Modality]], Collection[Modality]],
) -> None:
    model = Scripted(lambda *_: RIGHT)
    model.accepts = kinds(["image", "video", "audio"])
    evaluate(TASK, source, model, tmp_path, limit=2)
    lines = read_lines(tmp_path / "predictions.jsonl")
    assert all("screenshot" in line["receipt"]["media"] for line in lines)


RECEIPTS: dict[str, Any] = {
    "a list for a role": {"parts": [{"role": [1], "dropped": "why"}]},
    "no receipt": None,
    "bytes": {"said": b"x"},
}


@pytest.mark.parametrize("name", RECEIPTS)
def test_an_odd_receipt_of_a_request_is_the_slip_of_its_adapter(
    source: LoadedDataset, tmp_path: Path, name: str
) -> None:
    class Loose(Eyes):
        def prepare(self, request: Request) -> Prepared:
            return Prepared(request, receipt=RECEIPTS[name])

    with pytest.raises(AdapterError, match="prepare: the adapter failed"):
        evaluate(TASK, source, Loose(lambda *_: RIGHT), tmp_path, limit=1)


def test_media_are_not_dropped_by_asking_something_else(
    source: LoadedDataset, tmp_path: Path
) -> None:
    class Silent(Eyes):
        def prepare(self, request: Request) -> Prepared:
            return Prepared(Request(request.sample_id, ()))

    model = Silent(lambda *_: RIGHT)
    with pytest.raises(UsageError, match="the model accepts image"):
        evaluate(TASK, source, model, tmp_path, limit=1)
    assert not model.asked


class Reticent(Dropping):
    """Says of each medium why it is dropped, and no more."""

    why: Any = "too long"

    def prepare(self, request: Request) -> Prepared:
        receipt = super().prepare(request).receipt
        parts = [{**part, "dropped": self.why} for part in receipt["parts"]]
        return Prepared(request, receipt={"parts": parts})


def test_a_step_with_a_dropped_medium_is_degraded_whatever_else_its_receipt_says(
    source: LoadedDataset, tmp_path: Path
) -> None:
    full = evaluate(TASK, source, Dropping(lambda *_: RIGHT), tmp_path / "full", limit=4)
    results = evaluate(TASK, source, Reticent(lambda *_: RIGHT), tmp_path / "run", limit=4)
    assert results["counts"]["degraded"] == full["counts"]["degraded"] > 0


@pytest.mark.parametrize("why", [None, " ", True])
def test_a_medium_is_dropped_for_a_reason(source: LoadedDataset, tmp_path: Path, why: Any) -> None:
    model = Reticent(lambda *_: RIGHT)
    model.why = why
    said = re.escape(f'the receipt says "dropped": {why!r} of the ')
    with pytest.raises(AdapterError, match=rf"prepare: the adapter failed(.|\n)*{said}"):
        evaluate(TASK, source, model, tmp_path / "run", limit=1)


def test_an_answer_says_why_its_medium_was_dropped(source: LoadedDataset, tmp_path: Path) -> None:
    odd = Completion(text="x", receipt={"parts": [{"role": "video", "dropped": None}]})
    with pytest.raises(AdapterError, match=r'generate(.|\n)*"dropped": None of the video'):
        evaluate(TASK, source, Scripted(lambda *_: odd), tmp_path / "run", limit=1)


@pytest.mark.parametrize("facts", [{"at": object()}, None, 1])
def test_facts_that_fail_lose_no_results(source: LoadedDataset, tmp_path: Path, facts: Any) -> None:
    class Vague(Scripted):
        def run_metadata(self) -> Mapping[str, Any]:
            if facts == 1:
                raise KeyError("at")
            return facts  # type: ignore[no-any-return]  # whatever slips

    with pytest.warns(RuntimeWarning, match=r"run_metadata: .* without it"):
        results = evaluate(TASK, source, Vague(lambda *_: RIGHT), tmp_path, limit=2)
    assert json.loads((tmp_path / "results.json").read_text()) == results
    info = json.loads((tmp_path / "run.json").read_text())
    assert info["facts"] == {}
    assert info["timings"]["model_s"] >= 0


class Blind(Scripted):
    def unsupported_reason(self, conversation: Conversation) -> str:
        kinds = {part.kind for message in conversation for part in message.parts}
        return "it takes no video" if "video" in kinds else ""


def test_media_that_the_model_cannot_take_are_refused_before_the_first_request(
    source: LoadedDataset, tmp_path: Path
) -> None:
    model = Blind(lambda *_: RIGHT)
    with pytest.raises(UsageError, match=r"takes no video(.|\n)*degrade=true"):
        evaluate(TASK, source, model, tmp_path / "run")
    assert not model.asked
    assert not (tmp_path / "run").exists()
    still = get_task("omnigui", {"modalities": "IA"})
    assert evaluate(still, source, model, tmp_path / "run")["outcomes"] == {"ok": len(source.steps)}


def test_answers_that_lacked_media_are_counted(source: LoadedDataset, tmp_path: Path) -> None:
    degraded = Completion(text="{}", receipt={"degraded": ["video: it takes none"]})
    model = Scripted(lambda _, n: degraded)
    assert evaluate(TASK, source, model, tmp_path, limit=5)["counts"]["degraded"] == 5


def test_a_full_disk_loses_no_line_that_was_whole(source: LoadedDataset, tmp_path: Path) -> None:
    """The limit on a file's size is the system's own; what is written is real."""
    code = (
        "import resource, signal, sys; from pathlib import Path; import omnidata;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY));"
        "task = omnidata.get_task('omnigui'); source = task.load(Path(sys.argv[1]));"
        "count = lambda asked, reused: print(asked);"
        "from omnidata.run.evaluate import evaluate;"
        "evaluate(task, source, 'baseline:center', Path(sys.argv[2]), count=count)"
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
    assert "free some space and repeat the command" in done.stderr
    kept = finals(run)
    assert 0 < len(kept) < len(source.steps)
    assert done.stdout.split() == [str(len(kept))]
    assert (run / "predictions.jsonl").read_bytes().endswith(b"\n")
    evaluate(TASK, source, "baseline:center", run)
    assert len(finals(run)) == len(source.steps)
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 5000
