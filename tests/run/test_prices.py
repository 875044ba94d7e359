"""Costs are those of the user's file, and a budget is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.errors import UsageError
from omnidata.run.cost import Budget, Limits, Price, Tokens, read_prices

FILE = """
date = 2026-11-01
currency = "EUR"
[models."openai:m"]
input = 2
output = 10.0
cached_input = 0.5
audio_input = 32
[models.cheap]
input = 1
output = 1
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "prices.toml"
    path.write_text(FILE)
    return path


def test_a_price_file_says_when_and_in_what(file: Path) -> None:
    prices = read_prices(file)
    assert (prices.date.isoformat(), prices.currency) == ("2026-11-01", "EUR")
    assert prices.models["openai:m"] == Price(2, 10, cached_input=0.5, audio_input=32)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "date = 2026-11-01\ncurrency = 'EUR'\n[models.m]\ninput = 1\n",
        "date = 2026-11-01\n[models]\n",
        FILE.replace("cached_input", "cache"),
        FILE.replace("32", "-1"),
        FILE.replace("32", "nan"),
        FILE.replace("32", "inf"),
        FILE.replace("32", "'32'"),
        "[models",
        "\udcff",
    ],
)
def test_another_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "prices.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError, match=r"prices\.toml: the price file cannot be read"):
        read_prices(path)
    with pytest.raises(UsageError, match="No such file"):
        read_prices(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({}, Tokens()),
        ({"prompt_tokens": None, "completion_tokens": "7"}, Tokens()),
        (
            {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
             "prompt_tokens_details": {"cached_tokens": 60, "audio_tokens": 5, "image_tokens": 9,
                                       "text_tokens": 86},
             "completion_tokens_details": {"reasoning_tokens": 15}},
            Tokens(input=100, cached=60, image=9, audio=5, output=20),
        ),
        (
            {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 3},
            Tokens(input=10, cached=4, output=3),
        ),
        ({"prompt_tokens": 5, "prompt_tokens_details": None}, Tokens(input=5)),
        (
            {"prompt_token_count": 300, "candidates_token_count": 20, "thoughts_token_count": 80,
             "cached_content_token_count": 100, "total_token_count": 400,
             "prompt_tokens_details": [
                 {"modality": "TEXT", "token_count": 10},
                 {"modality": "VIDEO", "token_count": 200},
                 {"modality": "MediaModality.AUDIO", "token_count": 50},
                 {"modality": "IMAGE", "token_count": 20},
                 {"modality": "IMAGE", "token_count": 20}]},
            Tokens(input=300, cached=100, image=40, audio=50, video=200, output=100),
        ),
    ],
)  # fmt: skip
def test_usage_is_read_as_each_api_names_it(usage: dict[str, Any], tokens: Tokens) -> None:
    assert Tokens.of(usage) == tokens


NAMES = st.sampled_from(["prompt_tokens", "prompt_tokens_details", "promptTokenCount", "modality"])
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers(-(2**60), 2**60) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(NAMES, JSON))
def test_no_usage_breaks_a_run(usage: dict[str, Any]) -> None:
    assert Tokens.of(usage).total >= 0


COUNTS = st.integers(0, 10**7)


@given(COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
def test_a_cost_lies_between_the_cheapest_and_the_dearest_reading(
    text: int, audio: int, image: int, cached: int, output: int
) -> None:
    whole = text + audio + image
    tokens = Tokens(whole, min(cached, whole), image, audio, 0, output)
    cost = Price(2, 10, cached_input=0.5, audio_input=32).cost(tokens) * 1e6
    dearest = (text + image) * 2 + audio * 32 + output * 10
    assert cost <= dearest + 1e-3
    assert cost >= whole * 0.5 + output * 10 - 1e-3
    no_discount = Price(2, 10, audio_input=32).cost(tokens) * 1e6
    assert no_discount == pytest.approx(dearest)


def test_cached_text_is_cheaper_and_audio_dearer() -> None:
    tokens = Tokens(input=1000, cached=400, audio=100, output=10)
    cost = Price(2, 10, cached_input=0.5, audio_input=32).cost(tokens)
    assert cost * 1e6 == pytest.approx(500 * 2 + 100 * 32 + 400 * 0.5 + 10 * 10)


def used(tokens: int) -> dict[str, int]:
    return {"prompt_tokens": tokens}


def test_what_is_in_flight_counts_as_if_it_were_spent() -> None:
    budget = Budget(Limits(max_tokens=1000), "m")
    budget.spend(used(100))
    budget.spend(used(300))
    assert budget.refuses(2) == ""  # 400 spent, three times 200
    assert "2 answers used 400, one more takes 200, and 3 are on their way" in budget.refuses(3)
    for _ in range(3):
        budget.spend(used(200))
    assert "--max-tokens 1000: 5 answers used 1000" in budget.refuses(0)


def test_before_the_first_answer_requests_go_one_at_a_time() -> None:
    budget = Budget(Limits(max_tokens=1000), "m")
    assert budget.refuses(0) == ""
    assert "not known yet" in budget.refuses(1)
    assert Budget(Limits(), "m").refuses(1) == ""


def test_a_limit_that_cannot_be_measured_is_not_passed_over() -> None:
    budget = Budget(Limits(max_tokens=1000), "m")
    for _ in range(8):
        assert budget.refuses(0) == ""
        budget.spend({})
    assert "does not say how many tokens" in budget.refuses(0)
    budget.spend(used(10))
    assert budget.refuses(0) == ""


def test_an_answer_without_usage_counts_as_the_mean() -> None:
    budget = Budget(Limits(max_tokens=1000), "m")
    budget.spend(used(400))
    assert budget.refuses(0) == ""
    budget.spend({})
    assert "--max-tokens" in budget.refuses(0)
    assert budget.totals()["unmetered"] == 1


def test_without_a_limit_everything_is_admitted_and_counted(file: Path) -> None:
    budget = Budget(Limits(prices=file), "openai:m")
    for _ in range(8):
        budget.spend({})
    budget.spend({"prompt_tokens": 1_000_000, "completion_tokens": 100_000})
    assert budget.refuses(10_000) == ""
    assert budget.totals() == {
        "requests": 9, "unmetered": 8, "input_tokens": 1_000_000, "output_tokens": 100_000,
        "cached_tokens": 0, "image_tokens": 0, "audio_tokens": 0, "video_tokens": 0,
        "cost": 3.0, "currency": "EUR", "prices_of": "2026-11-01",
    }  # fmt: skip


def test_a_cost_is_kept(file: Path) -> None:
    budget = Budget(Limits(max_cost=0.01, prices=file), "cheap")
    spent = 0
    while not budget.refuses(0):
        budget.spend(used(900))
        spent += 1
    assert spent == 11  # 0.0009 each
    assert "--max-cost 0.01: 11 answers used 0.0099" in budget.refuses(0)


@given(st.integers(1, 1000), st.integers(1, 50), st.integers(1, 20))
def test_no_more_is_spent_than_allowed_when_answers_are_alike(
    size: int, answers: int, width: int
) -> None:
    budget = Budget(Limits(max_tokens=size * answers), "m")
    flying = 0
    while flying or not budget.refuses(0):
        while flying < width and not budget.refuses(flying):
            flying += 1
        budget.spend(used(size))
        flying -= 1
    assert budget.requests == answers


@pytest.mark.parametrize("named", [True, False])
def test_a_cost_without_a_price_is_refused_at_once(file: Path, named: bool) -> None:
    with pytest.raises(UsageError, match=r'"openai:other" has no price'):
        Budget(Limits(max_cost=1.0, prices=file if named else None), "openai:other")
    assert "cost" not in Budget(Limits(prices=file), "openai:other").totals()
