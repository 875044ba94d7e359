"""What a server can do wrong, and what becomes of the step: the real SDK against a real server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omnidata.adapters import get_adapter
from omnidata.run.cost import Limits
from omnidata.run.evaluate import evaluate
from omnidata.tasks import get_task
from omnidata.types import LoadedDataset
from tests.adapters.servers import FINE, ChatCompletions, Fault, Script, Server, running
from tests.full import in_gate
from tests.trees import read_lines

TASK = get_task("omnigui", {"modalities": "I"})
STEPS = 4


@pytest.fixture
def ask(source: LoadedDataset, tmp_path: Path) -> Callable[..., tuple[dict[str, Any], Server]]:
    def run(script: Script, times: int = 1, **limits: Any) -> tuple[dict[str, Any], Server]:
        with running(ChatCompletions(), script) as server:
            for _ in range(times):
                adapter = get_adapter("openai:m", TASK, source.steps, base_url=f"{server.url}/v1")
                results = evaluate(
                    TASK,
                    source,
                    adapter,
                    tmp_path / "run",
                    limit=STEPS,
                    limits=Limits(**{"concurrency": 1, "attempts": 3, **limits}),
                )
        return results, server

    return run


def lines(tmp_path: Path, name: str = "predictions") -> list[dict[str, Any]]:
    return read_lines(tmp_path / "run" / f"{name}.jsonl")


PASSING = {
    "429 with Retry-After": (Fault(status=429, headers={"Retry-After": "1"}), "HTTP 429"),
    "429 without": (Fault(status=429), "HTTP 429"),
    "500": (Fault(status=500), "HTTP 500"),
    "503": (Fault(status=503), "HTTP 503"),
    "hang": (Fault(hang=True), "no answer within"),
    "reset in mid-body": (Fault(reset="mid-body"), "127.0.0.1"),
    "reset before the answer": (Fault(reset="before"), "127.0.0.1"),
    "invalid JSON": (Fault(body=b'{"choices": ['), "no chat completion"),
    "no choices": (Fault(body=b'{"choices": []}'), "no choices"),
}


PATIENCE_S = {True: 1.0, False: 60.0}
"""How long an answer is waited for where none comes, and where a busy machine may be late."""


@pytest.mark.parametrize("name", PASSING)
def test_what_passes_is_tried_again_with_the_same_request(
    ask: Callable[..., tuple[dict[str, Any], Server]], tmp_path: Path, name: str
) -> None:
    fault, said = PASSING[name]
    results, server = ask([FINE, fault], timeout_s=PATIENCE_S[fault.hang])
    assert set(results["outcomes"]) <= {"ok", "unparsed"}
    [attempt] = lines(tmp_path, "attempts")
    assert said in attempt["error"]
    assert attempt["output"] == ""
    assert [line["attempts"] for line in lines(tmp_path)] == [1, 2, 1, 1]
    assert server.asked[1].payload == server.asked[2].payload  # and the same sampling
    assert server.count == STEPS + 1


ONCE_MORE = ["500", "hang", "invalid JSON"]


@pytest.mark.parametrize(
    "name",
    in_gate(
        [*ONCE_MORE, *sorted(PASSING.keys() - set(ONCE_MORE))],
        len(ONCE_MORE),
        "a second failure of the same kind; the gate sees the first of each",
    ),
)
def test_what_does_not_pass_is_an_api_error_and_no_prediction(
    ask: Callable[..., tuple[dict[str, Any], Server]], tmp_path: Path, name: str
) -> None:
    fault, said = PASSING[name]
    results, server = ask([FINE, fault, fault], timeout_s=PATIENCE_S[fault.hang], attempts=2)
    assert results["outcomes"]["api_error"] == 1
    line = lines(tmp_path)[1]
    assert (line["delivery"], line["output"], line["attempts"]) == ("api_error", "", 2)
    assert said in line["error"]
    assert server.count == STEPS + 1


ANSWERS = {
    "empty": (Fault(text=""), "ok", ""),
    "refusal": (Fault(refusal="I cannot help with that."), "refused", ""),
    "filtered": (Fault(finish="content_filter", text=""), "refused", ""),
    "cut": (Fault(finish="length", text='{"action_type'), "truncated", '{"action_type'),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_what_the_model_itself_did_is_final(
    ask: Callable[..., tuple[dict[str, Any], Server]], tmp_path: Path, name: str
) -> None:
    fault, delivery, output = ANSWERS[name]
    results, server = ask([FINE, fault], times=2)  # the second has nothing left to ask
    line = lines(tmp_path)[1]
    assert (line["delivery"], line["output"], line["attempts"]) == (delivery, output, 1)
    assert not (tmp_path / "run" / "attempts.jsonl").exists()
    if delivery != "ok":
        assert results["outcomes"][delivery] == 1
    assert server.count == STEPS
