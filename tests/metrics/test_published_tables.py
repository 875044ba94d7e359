"""OmniGUI's Table 3 through the production aggregator, from integer verdicts."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from omnidata.metrics.episodes import by_group, table
from tests.metrics.layout import Part, lay_out, printed, solve, spread

PUBLISHED = Path(__file__).resolve().parents[2].parent / "shared" / "tables" / "omnigui.json"

pytestmark = pytest.mark.skipif(
    not PUBLISHED.exists(),
    reason=f"{PUBLISHED.name} is not here: the shared tables are kept outside",
)

MODELS = (
    "Gemini 3 Pro",
    "Gemini 3 Flash",
    "Gemini 2.5 Pro",
    "Gemini 2.5 Flash",
    "Qwen3-Omni",
    "VITA-1.5",
    "MiniCPM-o-4.5",
    "Baichuan-Omni-1.5",
)
DIMENSIONS = (
    "localization",
    "semantic_understanding",
    "cross_modal_discrimination",
    "temporal_reasoning",
    "instant_response",
)
EPISODES, STEPS = 709, 2579
COLUMNS = {"TM": "TM", "EM": "EM", "SR": "SR", "GP": "GP_prefix"}
"""Table 3's columns and the production metrics that fill them."""


_LOW_GP = "so many exact steps make a higher mean ratio, however these episodes share them"
NO_RATIO_SOLUTION: dict[tuple[str, str], str] = {
    ("Gemini 3 Pro", "temporal_reasoning"): _LOW_GP,
    ("Gemini 3 Pro", "instant_response"): _LOW_GP,
    ("Gemini 3 Flash", "instant_response"): _LOW_GP,
    ("Gemini 2.5 Pro", "temporal_reasoning"): _LOW_GP,
    ("Gemini 2.5 Pro", "instant_response"): _LOW_GP,
    ("Gemini 2.5 Flash", "instant_response"): _LOW_GP,
    ("Qwen3-Omni", "semantic_understanding"): _LOW_GP,
    ("Qwen3-Omni", "instant_response"): _LOW_GP,
    **{("VITA-1.5", dimension): _LOW_GP for dimension in DIMENSIONS},
    ("MiniCPM-o-4.5", "localization"): _LOW_GP,
    ("MiniCPM-o-4.5", "semantic_understanding"): _LOW_GP,
    ("MiniCPM-o-4.5", "temporal_reasoning"): _LOW_GP,
    ("MiniCPM-o-4.5", "instant_response"): _LOW_GP,
    **{("Baichuan-Omni-1.5", dimension): _LOW_GP for dimension in DIMENSIONS},
}
"""(model, dimension) whose GP is no ratio of correct steps, at the lengths that `parts` uses."""


@cache
def published() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    return content


def denominator(kind: str, dimension: str) -> int:
    """The reconstructed count; the file notes a second candidate behind the likelier one."""
    value = published()["reconstructed_denominators"][f"table3_{kind}"][dimension]
    return int(str(value).split()[0])


def parts(model: str) -> list[Part]:
    """The five dimensions, and last the episodes that belong to none but count overall."""
    counts = [(denominator("episodes", name), denominator("steps", name)) for name in DIMENSIONS]
    labelled = [sum(column) for column in zip(*counts, strict=True)]
    rows = published()["table3"][model]
    return [
        *(Part(spread(*count), rows[name]) for name, count in zip(DIMENSIONS, counts, strict=True)),
        Part(spread(EPISODES - labelled[0], STEPS - labelled[1]), {}),
    ]


@pytest.mark.parametrize("model", MODELS)
def test_the_aggregator_prints_table_3(model: str) -> None:
    rows = {name: published()["table3"][model][name] for name in ("overall", *DIMENSIONS)}
    six_parts = parts(model)
    counts = solve(six_parts, rows["overall"])
    assert counts is not None
    verdicts, labels = lay_out(counts, [*range(len(DIMENSIONS)), -1])
    assert (verdicts.type_match >= verdicts.exact_match).all()

    results = {"overall": table(verdicts), **by_group(verdicts, labels, DIMENSIONS)}

    assert {name: (result["episodes"], result["steps"]) for name, result in results.items()} == {
        "overall": (EPISODES, STEPS),
        **{
            name: (len(part.lengths), part.lengths.sum())
            for name, part in zip(DIMENSIONS, six_parts[:-1], strict=True)
        },
    }
    assert {
        name: {column: printed(result[metric]) for column, metric in COLUMNS.items()}
        for name, result in results.items()
    } == {name: {column: f"{row[column]:.1f}" for column in COLUMNS} for name, row in rows.items()}


def test_goal_progress_as_a_ratio_cannot_print_these_rows() -> None:
    """Section 3.4 to the letter; every model has such a row, so Table 3 is not made of ratios."""
    unsolved = {
        (model, name)
        for model in MODELS
        for name, part in zip(DIMENSIONS, parts(model)[:-1], strict=True)
        if solve([part], {}, late=False) is None
    }
    assert unsolved == set(NO_RATIO_SOLUTION)
    assert {model for model, _ in unsolved} == set(MODELS)
