"""What runs took, from their own files: nothing that nobody told, nothing that is not theirs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnidata.analysis.figures import drawings
from omnidata.analysis.model_card import card_text
from omnidata.analysis.report import report
from omnidata.run.cost import Limits
from omnidata.run.evaluate import evaluate
from omnidata.run.run_files import Run, read_run
from omnidata.table import Table
from omnidata.types import Completion
from tests.compare.making import TEXTS, data, loaded
from tests.report.made import write_run
from tests.run.scripted import RIGHT, TASK, Scripted
from tests.trees import write_lines

GEMINI = {
    "promptTokenCount": 900,
    "candidatesTokenCount": 10,
    "promptTokensDetails": [
        {"modality": "IMAGE", "tokenCount": 500},
        {"modality": "AUDIO", "tokenCount": 300},
    ],
}
PAID = {"cost": 0.5, "currency": "USD", "prices_of": "2026-11-01", "requests": 4, "unmetered": 0}
MODEL_SETTINGS = {"extra_body": {"generationConfig": {"topP": 0.9}}, "capabilities": {}}


def answer(number: int, **said: Any) -> dict[str, Any]:
    return {"sample_id": f"A/{number}/0", "output": "x", "usage": GEMINI, "latency_s": 2.0, **said}


def asked(folder: Path, *lines: Mapping[str, Any], **settings: Any) -> Run:
    """A run with these answers, which took half an hour."""
    run = write_run(folder, **{"timings": {"ask_s": 1800.0}, "usage": PAID, **settings})
    write_lines(run.path / "predictions.jsonl", lines)
    return read_run(folder)


def found(table: Table, row: int = 0) -> dict[str, float | None]:
    cells = zip(table.columns, table.rows[row].cells, strict=True)
    return {column.metric: cell.value for column, cell in cells}


def table(name: str, *runs: Run) -> Table:
    (made,) = [each for each in report(runs).tables if each.name == name]
    return made


def test_tokens_latency_and_cost_are_those_of_the_answers(tmp_path: Path) -> None:
    latencies = [1.0, 2.0, 4.0, 9.0]
    run = asked(tmp_path / "run", *(answer(n, latency_s=s) for n, s in enumerate(latencies)))
    values = found(table("cost", run))
    assert values == {
        "answers": 4,
        "per_hour": 8.0,
        "latency_median": 3.0,
        "latency_p95": pytest.approx(np.percentile(latencies, 95)),
        "input_tokens": 3600,
        "image_tokens": 2000,
        "audio_tokens": 1200,
        "output_tokens": 40,
        "cost_USD": 0.5,
        "EM_per_USD": pytest.approx(0.4 * 100 / 0.5),  # EM is 40 % of 100 steps
    }


def test_answers_that_failed_were_kept_or_have_no_tokens_buy_no_right_steps(tmp_path: Path) -> None:
    failed = answer(1, output=None, delivery="api_error", latency_s=99.0)
    kept = answer(2, usage={}, latency_s=0.0, receipt={"cached": True})
    values = found(table("cost", asked(tmp_path / "run", answer(0), failed, kept)))
    assert (values["answers"], values["latency_p95"], values["input_tokens"]) == (1, 2.0, 900)
    assert values["cost_USD"] == 0.5
    assert values.get("EM_per_USD") is None  # nobody knows what the kept answer had cost
    made = table("cost", asked(tmp_path / "unknown", answer(0), answer(1, usage={})))
    assert found(made).get("EM_per_USD") is None
    assert any("the tokens of 1 answer are unknown" in note for note in made.notes)


def test_a_local_models_receipt_tells_the_modalities(tmp_path: Path) -> None:
    counts = {"text": 20, "image": 70, "video": 10}
    usage = {"prompt_tokens": 100, "completion_tokens": 5}
    run = asked(tmp_path / "run", answer(0, usage=usage, receipt={"tokens": counts}))
    values = found(table("cost", run))
    assert (values["input_tokens"], values["image_tokens"], values["video_tokens"]) == (100, 70, 10)


def test_currencies_are_never_pooled_and_a_merged_run_has_no_clock(tmp_path: Path) -> None:
    runs = [
        asked(tmp_path / "usd", answer(0)),
        asked(tmp_path / "eur", answer(0), usage={**PAID, "currency": "EUR"}, model="openai:b"),
        asked(tmp_path / "merged", answer(0), usage={}, model="openai:c", merged=["1", "2"]),
    ]
    made = table("cost", *runs)
    rows = [found(made, row) for row in range(3)]
    assert [row["cost_USD"] for row in rows] == [0.5, None, None]
    assert [row["cost_EUR"] for row in rows] == [None, 0.5, None]
    assert [row["per_hour"] for row in rows] == [2.0, 2.0, None]


def test_a_run_gets_its_cost_from_the_same_call_with_prices_and_asks_nothing_again(
    tmp_path: Path,
) -> None:
    source, out = loaded(data(tmp_path / "data", episodes=5)), tmp_path / "run"
    prices = tmp_path / "prices.toml"
    prices.write_text(
        'date = 2026-11-01\ncurrency = "USD"\n[models.scripted]\ninput = 100\noutput = 1000\n'
    )
    said = Completion(text=TEXTS["right"], usage=RIGHT.usage, latency_s=0.5)
    first, second = (Scripted(lambda name, attempt: said) for _ in range(2))
    results = evaluate(TASK, source, first, out)
    assert "cost_USD" not in found(table("cost", read_run(out)))
    evaluate(TASK, source, second, out, limits=Limits(prices=prices))
    assert not second.asked
    values = found(table("cost", read_run(out)))
    cost = 10 * (90 * 100 + 10 * 1000) / 1e6  # ten steps
    assert values["cost_USD"] == pytest.approx(cost)
    assert values["EM_per_USD"] == pytest.approx(results["overall"]["EM"] * 10 / cost)
    assert (values["latency_median"], values["input_tokens"]) == (0.5, 900)


def test_baselines_have_neither_table(tmp_path: Path) -> None:
    run = asked(tmp_path / "run", answer(0, usage={}, latency_s=0.0), usage={})
    assert {"cost", "hyperparameters"}.isdisjoint(made.name for made in report([run]).tables)


def test_hyperparameters_are_those_of_table_6_in_every_format(tmp_path: Path) -> None:
    generation = {"temperature": None, "max_new_tokens": 4096}
    runs = [
        asked(tmp_path / "a", answer(0), model_settings=MODEL_SETTINGS, seed=7),
        asked(tmp_path / "b", answer(0), model="openai:b", generation=generation),
    ]
    made = table("hyperparameters", *runs)
    assert made.labels[1:] == ("Temperature", "Max Tokens", "Top_p", "Top_k", "Do_Sample", "Seed")
    assert made.rows[0].labels[1:] == ("0.0", "4096", "0.9", "-", "-", "7")
    assert made.rows[1].labels[1:] == ("server default", "4096", "-", "-", "-", "-")
    shown = report(runs)
    lines = list(csv.DictReader(io.StringIO(shown.text("csv"))))
    told = {line["metric"]: line["value"] for line in lines if line["table"] == made.name}
    assert (told["Temperature"], told["Top_p"]) == ("server default", "")  # those of the last row
    assert r"server default & 4096 & - & -" in shown.text("latex")
    assert "| server default | 4096 |" in shown.text("md")
    assert "server default  4096" in shown.text("terminal")
    assert "| 0.5000 |" in card_text(runs[:1])
    assert json.dumps(shown.as_dict())


BODY = {"temperature": 0.7, "seed": 11, "max_tokens": 64}
GOOGLES = {"generationConfig": {"temperature": 0.7, "seed": 11, "maxOutputTokens": 64}}
OTHER = {"reasoning": {"max_tokens": 64}, "drafting": {"temperature": 0.7, "seed": 11}}
SAID, UNSAID = ("0.7", "64", "-", "-", "-", "11"), ("0.0", "4096", "-", "-", "-", "-")


@pytest.mark.parametrize(
    ("settings", "labels"),
    [
        ({"extra_body": BODY}, SAID),
        ({"extra_body": GOOGLES}, SAID),
        ({"temperature": 0.7, "seed": 11, "max_new_tokens": 64, "max_tokens": None}, SAID),
        ({"extra_body": OTHER}, UNSAID),
    ],
)
def test_hyperparameters_are_those_of_a_models_own_settings(
    tmp_path: Path, settings: dict[str, Any], labels: tuple[str, ...]
) -> None:
    made = table("hyperparameters", asked(tmp_path / "run", answer(0), model_settings=settings))
    assert made.rows[0].labels[1:] == labels


def test_the_figure_has_the_runs_whose_whole_cost_is_known(tmp_path: Path) -> None:
    runs = [
        asked(tmp_path / "a", answer(0)),
        asked(tmp_path / "b", answer(0), usage={**PAID, "cost": 2.0}, model="openai:b"),
        asked(tmp_path / "c", answer(0, receipt={"cached": True}), model="openai:c"),
    ]
    (drawing,) = [each for each in drawings(runs) if "cost" in each.name]
    (axes,) = drawing.make().axes
    marked = [line for line in axes.lines if str(line.get_marker()) in "os"]
    points = [np.asarray(line.get_xydata()).ravel().tolist() for line in marked]
    assert points == [[0.5, 40.0], [2.0, 40.0]]
    assert axes.get_xlabel() == "Cost of the run (USD)"
