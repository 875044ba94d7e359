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
from omnidata.types import Completion, Conversation, GenerationParams, Modality, Prepared, Request
from tests.run.scripted import RIGHT, TASK, Run, Scripted, finals
from tests.trees import row, write_rows


def failing_at(names: Collection[str], error: Exception, attempts: int = 10**9) -> Any:
    """What fails so often at these steps and is right at others."""

    def reply(sample_id: str, attempt: int) -> Completion:
        if sample_id in names and attempt <= attempts:
            raise error
        return RIGHT

    return reply


def test_an_attempt_that_fails_is_repeated_and_kept_apart(run: Run) -> None:
    busy = CallError("HTTP 503", retry_after=0.0)
    model = Scripted(failing_at({run.ids[1]}, busy, attempts=2))
    assert "stopped" not in run(model, limit=6)
    assert set(run.finals().values()) == {"ok"}
    assert {line["sample_id"]: line["attempts"] for line in run.lines()}[run.ids[1]] == 3
    assert [(a["delivery"], a["attempts"], a["output"]) for a in run.lines("attempts")] == [
        ("api_error", 1, ""),
        ("api_error", 2, ""),
    ]
    assert model.closed


def test_a_step_without_an_answer_is_no_prediction_and_is_asked_again_on_resume(run: Run) -> None:
    lost = run.ids[2]
    model = Scripted(failing_at({lost}, CallError("HTTP 400: no", transient=False)))
    assert run(model, limit=6)["outcomes"]["api_error"] == 1
    assert run.finals()[lost] == "api_error"
    again = Scripted()
    assert "api_error" not in run(again, limit=6)["outcomes"]
    assert again.asked == {lost: 1}
    assert [line["sample_id"] for line in run.lines("attempts")] == [lost]


def test_a_run_in_which_everything_fails_stops_and_says_why(run: Run) -> None:
    wrong = CallError("HTTP 401: wrong key", transient=False, hopeless=True)
    model = Scripted(failing_at(run.ids, wrong))
    with pytest.raises(UnansweredError, match="HTTP 401: wrong key"):
        run(model)
    assert len(model.asked) < 10 < len(run.ids)
    assert "HTTP 401" in run.info["stopped"]
    assert not (run.folder / "results.json").exists()
    assert "stopped" not in run(Scripted())


class Short(Scripted):
    max_batch = 3

    async def generate(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> list[Completion]:
        return (await super().generate(batch, params))[:-1]


def test_too_few_answers_are_given_to_nobody(run: Run) -> None:
    with pytest.raises(AdapterError, match=r"generate: the adapter failed.*2 answers to 3"):
        run(Short(), limit=6)
    assert set(run.finals().values()) == {"api_error"}


@pytest.mark.parametrize("limit", [1, None])
@pytest.mark.parametrize("method", ["generate", "prepare"])
def test_code_of_an_adapter_that_never_works_stops_the_run_and_is_named(
    run: Run, limit: int | None, method: str
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

    model = Broken()
    said = r"test_ask\.py:(\d+), in divide: the adapter failed \(ZeroDivisionError"
    with pytest.raises(AdapterError, match=said) as caught:
        run(model, limit=limit)
    assert caught.value.exit_code == 1
    line = int(re.search(said, str(caught.value))[1])  # type: ignore[index]  # it matched
    assert "1 / 0" in Path(__file__).read_text().splitlines()[line - 1]
    assert model.calls < 10
    assert not (run.folder / "results.json").exists()
    assert set(run(Scripted(), limit=limit)["outcomes"]) == {"ok"}


def test_steps_without_an_answer_are_warned_of(run: Run) -> None:
    model = Scripted(failing_at(run.ids[2:4], KeyError("choices")))
    with pytest.warns(UnansweredWarning, match="2 of 6 steps got no answer.*KeyError") as seen:
        evaluate(TASK, run.source, model, run.folder, limit=6)
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(Scripted(), limit=6)


def test_code_that_fails_for_good_later_stops_the_run(run: Run) -> None:
    def failing(sample_id: str, attempt: int) -> Completion:
        if len(model.asked) > 5:
            raise KeyError("choices")
        return RIGHT

    model = Scripted(failing)
    results = run(model)
    assert "KeyError" in results["stopped"]
    assert 0 < results["outcomes"]["ok"] <= 5
    assert len(model.asked) < 25 < len(run.ids)


class Hanging(Scripted):
    timeout_s = 0.05

    async def generate(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> list[Completion]:
        if batch[0].request.sample_id.endswith("/0"):
            await asyncio.sleep(60)
        return await super().generate(batch, params)


def test_a_call_that_hangs_ends(run: Run) -> None:
    results = run(Hanging(), limit=4, attempts=1)
    late = {p["sample_id"] for p in run.lines() if "no answer within 0.05 s" in p["error"]}
    assert late == {name for name in run.ids[:4] if name.endswith("/0")}
    assert results["outcomes"]["api_error"] == len(late)


def test_a_budget_ends_the_run_and_what_was_paid_for_is_kept(run: Run) -> None:
    model, again = Scripted(), Scripted()  # 100 tokens each
    assert "--max-tokens 1050" in run(model, max_tokens=1050)["stopped"]
    assert len(run.finals()) == len(model.asked) == 10
    run(again, max_tokens=1050)
    assert not again.asked  # what an earlier part of the run used counts
    assert "stopped" not in run(again)
    assert set(run.finals().values()) == {"ok"}
    assert set(again.asked) | set(model.asked) == {*run.ids}
    assert max((again.asked + model.asked).values()) == 1


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

    model = Slow(lambda name, _: Completion(text=json.dumps({"action_type": 3, "text": name})))
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


class Blind(Scripted):
    def unsupported_reason(self, conversation: Conversation) -> str:
        kinds = {part.kind for message in conversation for part in message.parts}
        return "it takes no video" if "video" in kinds else ""


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


class Reticent(Dropping):
    """Says of each medium why it is dropped, and no more."""

    why: Any = "too long"

    def prepare(self, request: Request) -> Prepared:
        receipt = super().prepare(request).receipt
        parts = [{**part, "dropped": self.why} for part in receipt["parts"]]
        return Prepared(request, receipt={"parts": parts})


NOT_ALL = r"prompt has video, audio, image, and the model accepts image(.|\n)*-T modalities=I;"


@pytest.mark.parametrize(
    ("kind", "said"),
    [(Eyes, NOT_ALL), (Careless, NOT_ALL), (Blind, r"takes no video(.|\n)*degrade=true")],
)
def test_an_adapter_is_shown_nothing_that_it_does_not_accept(
    run: Run, kind: type[Scripted], said: str
) -> None:
    model = kind()
    with pytest.raises(UsageError, match=said):
        run(model)
    with pytest.raises(UsageError, match=said):
        dry_run(TASK, run.source, model, run.folder, Limits())
    assert not model.asked
    assert not run.folder.exists()
    pictures = get_task("omnigui", {"modalities": "I"})
    assert run(model, limit=9, task=pictures)["outcomes"] == {"ok": 9}


def test_an_adapter_that_accepts_nothing_is_shown_nothing(run: Run) -> None:
    model = Scripted()
    model.accepts = frozenset()
    with pytest.raises(UsageError, match="accepts no media"):
        run(model)
    assert not model.asked


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
    run: Run, attribute: str
) -> None:
    for value in ODD[attribute]:
        model = Scripted()
        setattr(model, attribute, value)
        said = rf"Scripted: the adapter's `{attribute}` is (.|\n)*Expected: "
        with pytest.raises(UsageError, match=said) as caught:
            run(model, limit=1)
        assert repr(value)[:15] in str(caught.value)
        with pytest.raises(UsageError, match=said):
            dry_run(TASK, run.source, model, run.folder, Limits(), limit=1)
        assert not model.asked
    assert not run.folder.exists()


def test_what_is_no_adapter_is_refused(run: Run, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"Scripted is a class(.|\n)*call it: Scripted\("):
        run(cast(Any, Scripted))
    with pytest.raises(UsageError, match="PosixPath: the adapter's `settings` is missing"):
        run(cast(Any, tmp_path))


@pytest.mark.parametrize("kinds", [list, tuple, set])
def test_an_adapter_says_what_it_accepts_in_any_collection(
    run: Run, kinds: Callable[[Sequence[Modality]], Collection[Modality]]
) -> None:
    model = Scripted()
    model.accepts = kinds(["image", "video", "audio"])
    run(model, limit=2)
    assert all("screenshot" in line["receipt"]["media"] for line in run.lines())


@pytest.mark.parametrize(
    "receipt", [{"parts": [{"role": [1], "dropped": "why"}]}, None, {"said": b"x"}]
)
def test_an_odd_receipt_of_a_request_is_the_slip_of_its_adapter(run: Run, receipt: Any) -> None:
    class Loose(Eyes):
        def prepare(self, request: Request) -> Prepared:
            return Prepared(request, receipt=receipt)

    with pytest.raises(AdapterError, match="prepare: the adapter failed"):
        run(Loose(), limit=1)


def test_media_are_not_dropped_by_asking_something_else(run: Run) -> None:
    class Silent(Eyes):
        def prepare(self, request: Request) -> Prepared:
            return Prepared(Request(request.sample_id, ()))

    model = Silent()
    with pytest.raises(UsageError, match="the model accepts image"):
        run(model, limit=1)
    assert not model.asked


@pytest.mark.parametrize("kind", [Dropping, Reticent])
def test_a_step_with_a_dropped_medium_is_degraded_whatever_else_its_receipt_says(
    run: Run, kind: type[Dropping]
) -> None:
    heard = [step.media.get("video") or step.media.get("audio") for step in run.source.steps]
    assert run(kind())["counts"]["degraded"] == sum(map(bool, heard)) > 0


@pytest.mark.parametrize("why", [None, " ", True])
def test_a_medium_is_dropped_for_a_reason(run: Run, why: Any) -> None:
    model = Reticent()
    model.why = why
    said = re.escape(f'the receipt says "dropped": {why!r} of the ')
    with pytest.raises(AdapterError, match=rf"prepare: the adapter failed(.|\n)*{said}"):
        run(model, limit=1)


def test_an_answer_says_why_its_medium_was_dropped(run: Run) -> None:
    odd = Completion(text="x", receipt={"parts": [{"role": "video", "dropped": None}]})
    with pytest.raises(AdapterError, match=r'generate(.|\n)*"dropped": None of the video'):
        run(Scripted(lambda *_: odd), limit=1)


@pytest.mark.parametrize("facts", [{"at": object()}, None, 1])
def test_facts_that_fail_lose_no_results(run: Run, facts: Any) -> None:
    class Vague(Scripted):
        def run_metadata(self) -> Mapping[str, Any]:
            if facts == 1:
                raise KeyError("at")
            return facts  # type: ignore[no-any-return]  # whatever slips

    with pytest.warns(RuntimeWarning, match=r"run_metadata: .* without it"):
        results = run(Vague(), limit=2)
    assert json.loads((run.folder / "results.json").read_text()) == results
    assert run.info["facts"] == {}
    assert run.info["timings"]["model_s"] >= 0


def test_a_full_disk_loses_no_line_that_was_whole(run: Run) -> None:
    """The limit on a file's size is the system's own; what is written is real."""
    code = (
        "import resource, signal, sys; from pathlib import Path; import omnidata;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY));"
        "task = omnidata.get_task('omnigui'); source = task.load(Path(sys.argv[1]));"
        "count = lambda asked, reused: print(asked);"
        "from omnidata.run.evaluate import evaluate;"
        "evaluate(task, source, 'baseline:center', Path(sys.argv[2]), count=count)"
    )
    command = [sys.executable, "-c", code, str(run.source.root), str(run.folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "RunError" in done.stderr
    assert "free some space and repeat the command" in done.stderr
    kept = finals(run.folder)
    assert 0 < len(kept) < len(run.ids)
    assert done.stdout.split() == [str(len(kept))]
    assert (run.folder / "predictions.jsonl").read_bytes().endswith(b"\n")
    run("baseline:center")
    assert len(run.finals()) == len(run.ids)
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 2000
