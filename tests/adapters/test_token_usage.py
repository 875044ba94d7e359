"""Usages of servers, whatever they hold."""

from __future__ import annotations

import json

from hypothesis import example, given
from hypothesis import strategies as st

from omnidata.adapters.api import token_usage, tokens_by_modality
from omnidata.adapters.keys import Key
from omnidata.run.cost import Tokens

CANARY = "canary_0123456789"
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(CANARY)
NAMES = st.sampled_from(["prompt_tokens", "prompt_tokens_details", "modality", CANARY]) | st.text()
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner))


@given(JSON)
@example({"prompt_tokens_details": 1})
def test_whatever_a_server_counts_can_be_written_and_tells_nothing(usage: object) -> None:
    found = token_usage(usage, Key(CANARY).redact)
    assert CANARY not in json.dumps(found, allow_nan=False)
    assert all(count >= 0 for count in tokens_by_modality(found).values())
    assert Tokens.of(found).total >= 0


def test_a_usage_nested_without_end_is_cut() -> None:
    usage: dict[str, object] = {"prompt_tokens": 1}
    for _ in range(5000):
        usage = {"prompt_tokens": 1, "more": usage}
    assert token_usage(usage, str) == {"prompt_tokens": 1, "more": {"prompt_tokens": 1}}


def test_a_usage_of_many_names_is_cut() -> None:
    assert len(token_usage({f"name{number}": 1 for number in range(10_000)}, str)) == 64


def test_what_servers_really_say_is_kept() -> None:
    openai = {
        "prompt_tokens": 9,
        "completion_tokens": 2,
        "cost": 0.0015,
        "prompt_tokens_details": {"image_tokens": 8, "cached_tokens": 1},
    }
    gemini = {
        "prompt_token_count": 9,
        "prompt_tokens_details": [{"modality": "AUDIO", "token_count": 3}],
    }
    assert token_usage(openai, str) == openai
    assert token_usage(gemini, str) == gemini
    assert (tokens_by_modality(openai), tokens_by_modality(gemini)) == ({"image": 8}, {"audio": 3})
