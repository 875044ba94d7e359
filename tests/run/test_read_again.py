"""What a run writes is read again, whatever a server or an adapter says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata import predictions
from omnidata.analysis.report import report
from omnidata.errors import AdapterError, RunError
from omnidata.run.cost import Limits, Tokens
from omnidata.run.evaluate import evaluate
from omnidata.run.parts import merge
from omnidata.run.run_files import read_run
from omnidata.run.run_info import read_info
from omnidata.types import Completion, LoadedDataset
from tests.adapters.servers import ChatCompletions, Fault, running
from tests.cli.running import here
from tests.run.scripted import RIGHT, TASK, Run, Scripted

HUGE = 2**53 - 1
USAGES: dict[str, dict[str, Any]] = {
    "openai": {"prompt_tokens": HUGE, "completion_tokens": HUGE},
    "anthropic": {"input_tokens": HUGE, "cache_read_input_tokens": HUGE, "output_tokens": 1},
    "gemini": {"promptTokenCount": HUGE, "thoughtsTokenCount": HUGE},
    "details": {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": HUGE}},
    "whole number": {"prompt_tokens": 10**400},
    "fraction": {"prompt_tokens": 1e300, "cost": 1e300},
}
PRICES = 'date = 2026-11-01\ncurrency = "EUR"\n[models.scripted]\ninput = {0}\noutput = {0}\n'


@pytest.mark.parametrize("name", USAGES)
def test_no_count_of_tokens_makes_a_run_unreadable(
    source: LoadedDataset, tmp_path: Path, name: str
) -> None:
    prices, run = tmp_path / "prices.toml", tmp_path / "run"
    prices.write_text(PRICES.format(1e9))
    model = Scripted(lambda *_: Completion(text=RIGHT.text, usage=USAGES[name]))
    limits = Limits(prices=prices)
    evaluate(TASK, source, model, run, limits=limits)
    assert read_info(run)["usage"]["input_tokens"] <= 9 * len(source.steps)
    (cost,) = [table for table in report([read_run(run)]).tables if table.name == "cost"]
    counts = dict(zip(cost.columns, cost.rows[0].cells, strict=True))
    tokens = [cell.value or 0 for each, cell in counts.items() if each.metric.endswith("_tokens")]
    assert sum(tokens) <= 9 * len(source.steps)
    for verb in (
        ("report", run),
        ("score", "omnigui", source.root, run / "predictions.jsonl"),
    ):
        assert here(*verb, code=None).returncode == 0, verb
    evaluate(TASK, source, model, run, limits=limits)
    assert max(model.asked.values()) == 1


def test_a_servers_counts_are_bounded_where_they_come_in(
    source: LoadedDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Counting(ChatCompletions):
        def reply(self, asked: Any, text: str | None, fault: Fault) -> Any:
            details = {"image_tokens": HUGE, "text_tokens": 3}
            usage = {"prompt_tokens": HUGE, "completion_tokens": 7}
            return super().reply(asked, text, fault) | {
                "usage": {**usage, "prompt_tokens_details": details}
            }

    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with running(Counting()) as server:
        argv = ("evaluate", "omnigui", source.root, "--model", "openai:m", "--limit", "3")
        way = ("--base-url", f"{server.url}/v1", "-T", "modalities=I", "--out", tmp_path / "run")
        here(*argv, *way, code=None)
    for line in predictions.read(tmp_path / "run" / "predictions.jsonl"):
        assert line.usage == {
            "completion_tokens": 7,
            "prompt_tokens_details": {"text_tokens": 3},
        }
        assert line.receipt["tokens"] == {"text": 3}


def test_a_run_with_sums_beyond_all_sense_is_read(source: LoadedDataset, tmp_path: Path) -> None:
    """Earlier versions wrote them, and then refused to read them."""
    run = tmp_path / "run"
    evaluate(TASK, source, Scripted(), run)
    info = json.loads((run / "run.json").read_text())
    info["usage"] |= {"input_tokens": 112 * HUGE, "cost": 1e30 * HUGE, "currency": "EUR"}
    (run / "run.json").write_text(json.dumps(info))
    assert read_run(run).settings["usage"]["input_tokens"] == 112 * HUGE
    assert here("report", run, code=None).returncode == 0


@pytest.mark.parametrize("price", ["1e30", "1.1e9", "nan"])
def test_a_price_that_nobody_asks_is_refused_before_the_first_request(
    source: LoadedDataset, tmp_path: Path, price: str
) -> None:
    (tmp_path / "prices.toml").write_text(
        PRICES.format(price).replace("scripted", '"baseline:center"')
    )
    argv = ("evaluate", "omnigui", source.root, "--model", "baseline:center")
    prices = ("--prices", tmp_path / "prices.toml")
    done = here(*argv, "--out", tmp_path / "run", *prices, code=2)
    assert "not 0 to 1e+09" in done.stderr
    assert not (tmp_path / "run").exists()


DEEP = json.loads("[" * 70 + "]" * 70)
UNWRITABLE: dict[str, Mapping[str, Any]] = {
    "deep usage": {"usage": {"a": DEEP}},
    "deep receipt": {"receipt": {"a": DEEP}},
    "latency": {"latency_s": 1e19},
    "digits": {"usage": {"prompt_tokens": 10**5000}},
    "length": {"text": "x" * 2**26},
}


@pytest.mark.parametrize("name", UNWRITABLE)
def test_a_line_that_could_not_be_read_again_is_the_slip_of_its_adapter(
    run: Run, name: str
) -> None:
    odd = Completion(**{"text": "x", **UNWRITABLE[name]})
    with pytest.raises(AdapterError, match="generate: the adapter failed"):
        run(Scripted(lambda *_: odd), limit=1)
    good = Scripted()
    run(good, limit=1)
    assert sum(good.asked.values()) == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["prompt_tokens", "completion_tokens", "input_tokens", "x"])


@given(
    usage=st.dictionaries(NAMES, JSON, max_size=3),
    receipt=st.dictionaries(st.text(), JSON, max_size=3),
    text=st.text(),
    latency_s=st.floats(),
)
def test_what_is_taken_from_an_adapter_is_read_again(
    source: LoadedDataset,
    text: str,
    latency_s: float,
    usage: dict[str, Any],
    receipt: dict[str, Any],
) -> None:
    odd = Completion(text=text, latency_s=latency_s, usage=usage, receipt=receipt)
    with TemporaryDirectory() as folder:
        run = Path(folder, "run")
        with suppress(AdapterError):
            evaluate(TASK, source, Scripted(lambda *_: odd), run, limit=1)
        [line] = predictions.read_final(run / "predictions.jsonl")
    if line.delivery == "ok":
        assert line.output == text
        assert Tokens.of(line.usage) == Tokens.of(usage)


def test_settings_that_could_not_be_read_again_are_refused_before_any_request(run: Run) -> None:
    model = Scripted()
    model.settings = {"a": DEEP}
    with pytest.raises(RunError, match=r"run\.json"):
        run(model)
    assert not model.asked
    assert not (run.folder / "run.json").exists()


def test_facts_that_could_not_be_read_again_are_left_out(
    source: LoadedDataset, tmp_path: Path
) -> None:
    class Odd(Scripted):
        def run_metadata(self) -> Mapping[str, Any]:
            return {"a": DEEP}

    parts = [tmp_path / "1", tmp_path / "2"]
    for number, part in enumerate(parts, 1):
        with pytest.warns(RuntimeWarning, match="without it"):
            evaluate(TASK, source, Odd(), part, shard=(number, 2))
    merge(parts, tmp_path / "whole")
    assert not read_info(tmp_path / "whole").get("facts")
