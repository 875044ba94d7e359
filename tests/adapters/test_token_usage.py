"""Usages of servers, whatever they hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omnidata.run.cost import Tokens
from omnidata.types import Completion
from tests.adapters.asking import ask, keyed
from tests.adapters.servers import ChatCompletions, Fault, running

CANARY = "canary_0123456789"
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(CANARY)
NAMES = st.sampled_from(["prompt_tokens", "prompt_tokens_details", "modality", CANARY]) | st.text()
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner))
Ask = Callable[[object], Completion]


@pytest.fixture(scope="module")
def answer() -> Iterator[Ask]:
    """The answer of a server that says a usage."""
    with running(ChatCompletions(CANARY)) as server:

        def answer(usage: object) -> Completion:
            choice = {"message": {"content": "text"}, "finish_reason": "stop"}
            body = json.dumps({"choices": [choice], "usage": usage}).replace("NaN", "1e999")
            server.script = lambda _: Fault(body=body.encode())
            return ask(keyed("openai:m", f"{server.url}/v1", CANARY))

        yield answer


@given(JSON)
@example({"prompt_tokens_details": 1})
def test_whatever_a_server_counts_can_be_written_and_tells_nothing(
    answer: Ask, usage: object
) -> None:
    found = answer(usage)
    assert CANARY not in json.dumps([found.usage, found.receipt], allow_nan=False)
    assert all(count >= 0 for count in found.receipt.get("tokens", {}).values())
    assert Tokens.of(found.usage).total >= 0


def test_a_usage_nested_without_end_is_cut(answer: Ask) -> None:
    usage: dict[str, object] = {"prompt_tokens": 1}
    for _ in range(50):
        usage = {"prompt_tokens": 1, "more": usage}
    assert answer(usage).usage == {"prompt_tokens": 1, "more": {"prompt_tokens": 1}}


def test_a_usage_of_many_names_is_cut(answer: Ask) -> None:
    assert len(answer({f"name{number}": 1 for number in range(10_000)}).usage) == 64


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "cost": 0.0015,
             "prompt_tokens_details": {"image_tokens": 8, "cached_tokens": 1}},
            {"image": 8},
        ),
        (
            {"prompt_token_count": 9,
             "prompt_tokens_details": [{"modality": "AUDIO", "token_count": 3}]},
            {"audio": 3},
        ),
    ],
)  # fmt: skip
def test_what_servers_really_say_is_kept(
    answer: Ask, usage: dict[str, Any], tokens: dict[str, int]
) -> None:
    found = answer(usage)
    assert found.usage == usage
    assert found.receipt["tokens"] == tokens
