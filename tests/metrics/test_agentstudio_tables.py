"""AgentStudio's Table 10 through the production aggregators, and these themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnidata.metrics.classification import RATES, Confusion
from omnidata.metrics.intervals import wilson
from omnidata.metrics.row_tables import by_group, critic_table, means

Table = dict[str, Any]
PLATFORMS = ("web", "desktop", "mobile")

PUBLISHED: dict[str, Any] = json.loads(
    resources.files("omnidata.tasks.agentstudio")
    .joinpath("published_tables.json")
    .read_text("utf-8")
)
HALF = 0.05 + 1e-9
"""Half of the last printed digit, which is rounded either way."""


def prints(value: float, printed: float) -> bool:
    return abs(value - printed) <= HALF


def models(name: str) -> Iterator[Any]:
    for model, cells in PUBLISHED[name]["models"].items():
        yield pytest.param(PUBLISHED[name], cells, id=f"{name}-{model}")


SETTINGS = ("table10_criticbench_observation_action", "table10_criticbench_observations_only")


@pytest.mark.parametrize(("table", "printed"), [row for name in SETTINGS for row in models(name)])
def test_the_confusion_counts_print_every_rate_of_table_10(table: Table, printed: Table) -> None:
    counts = {
        name: Confusion(
            tp=printed["tp"][name],
            fp=printed["fp"][name],
            fn=table["success"][name] - printed["tp"][name],
            tn=table["failure"][name] - printed["fp"][name],
        )
        for name in PLATFORMS
    }
    counts["total"] = Confusion(*map(sum, zip(*counts.values(), strict=True)))
    for place, confusion in counts.items():
        found = critic_table(confusion)
        for name in RATES:
            assert prints(found[name] * 100, printed[name][place]), (name, place)


# --- the aggregators themselves -------------------------------------------------------------------

columns = st.lists(
    st.tuples(st.sampled_from([0.0, 1.0, np.nan]), st.integers(0, 9)), min_size=1, max_size=60
)


@settings(deadline=None)
@given(columns)
def test_means_leave_out_what_was_not_judged(rows: list[tuple[float, int]]) -> None:
    accuracy, distance = np.array(rows, dtype=np.float64).T
    table = means({"accuracy": accuracy, "edit_distance": distance})
    judged = ~np.isnan(accuracy)
    assert table["rows"] == judged.sum()
    if not judged.any():
        assert table["accuracy"] is table["edit_distance"] is table["ci95"]["accuracy"] is None
        return
    for name, column in (("accuracy", accuracy), ("edit_distance", distance)):
        assert table[name] == pytest.approx(column[judged].mean())
        if judged.sum() == 1:
            assert table["ci95"][name] is None
            continue
        low, high = table["ci95"][name]
        assert column[judged].min() <= low <= high <= column[judged].max()


def test_an_interval_is_the_binomials() -> None:
    column = np.repeat([1.0, 0.0], [700, 300])
    low, high = means({"accuracy": column})["ci95"]["accuracy"]
    assert (low, high) == pytest.approx((0.672, 0.728), abs=0.006)
    assert means({"accuracy": column}) == means({"accuracy": column[::-1]})


def test_groups_come_in_the_order_asked_for_and_the_rest_sorted() -> None:
    labels = ["mobile", "tv", None, "web", "car", "web"]
    found = by_group(lambda rows: {"rows": int(rows.sum())}, labels, PLATFORMS)
    assert list(found) == ["web", "mobile", "car", "tv"]
    assert found["web"] == {"rows": 2}


def test_a_share_of_nothing_or_all_has_wilsons_interval_and_a_distance_has_not() -> None:
    nothing = np.zeros(149)
    found = means({"accuracy": nothing, "edit_distance": nothing}, shares=("accuracy",))
    assert found["ci95"]["accuracy"] == pytest.approx([0.0, 0.0251], abs=1e-4)
    assert found["ci95"]["edit_distance"] == [0.0, 0.0]
    assert found["ci95_method"] == {"accuracy": "wilson"}
    half = np.r_[nothing, np.ones(149)]
    assert "ci95_method" not in means({"accuracy": half}, shares=("accuracy",))


def test_rows_of_one_group_are_drawn_together() -> None:
    """Five equal rows of a page tell no more than one."""
    hits = np.tile([1.0, 0.0, 0.0, 1.0], 5)
    pages = np.arange(len(hits))
    alone = means({"accuracy": hits}, shares=("accuracy",))
    copied = {"accuracy": np.repeat(hits, 5)}
    together = means(copied, shares=("accuracy",), owner=np.repeat(pages, 5))
    assert together == {**alone, "rows": 100}
    assert means(copied, owner=np.arange(100))["ci95"] == means(copied)["ci95"]
    nothing = {"accuracy": np.zeros(100)}
    by_page = means(nothing, shares=("accuracy",), owner=np.repeat(pages, 5))
    assert by_page["ci95"] == means({"accuracy": np.zeros(20)}, shares=("accuracy",))["ci95"]


def test_rows_of_one_page_alone_have_no_interval() -> None:
    """The value 4/7 with an interval of [4/7, 4/7] would say that every page has it."""
    score = np.array([1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0])
    page = np.zeros(len(score), np.int64)
    table = {"score": score, "edit_distance": 3 * score, "read": np.ones(7)}
    found = means(table, shares=("score", "read"), owner=page)
    assert found["score"] == pytest.approx(4 / 7)
    assert found["ci95"]["score"] is found["ci95"]["edit_distance"] is None
    assert found["ci95"]["read"] == [*(wilson(1, 1) or ())]
    none = "none: one group"
    assert found["ci95_method"] == {"score": none, "edit_distance": none, "read": "wilson"}
    assert means({"score": score}, owner=page + (np.arange(7) > 3))["ci95"]["score"] is not None
    assert means({"score": np.r_[0.5, np.nan]})["ci95"]["score"] is None


def test_responses_of_one_recording_alone_have_no_interval() -> None:
    counts = Confusion(tp=3, fp=1, fn=1, tn=2)
    found = critic_table(counts, per_group=[counts])
    assert set(found["ci95"].values()) == {None}
    assert found["ci95_method"] == dict.fromkeys(RATES, "none: one group")
    assert None not in critic_table(counts)["ci95"].values()


def test_responses_of_one_recording_are_drawn_together() -> None:
    """Each recording has as many successes as failures, so that no draw of them differs."""
    truth, said = [True, False] * 20, [True] * 40
    counts = Confusion.of(truth, said)
    recordings = [Confusion.of(truth[:8], said[:8])] * 5
    found, alone = critic_table(counts, per_group=recordings), critic_table(counts)
    assert found["precision"] == alone["precision"] == 0.5
    assert found["ci95"]["precision"] == [0.5, 0.5]
    assert alone["ci95"]["precision"][0] < 0.4 < 0.6 < alone["ci95"]["precision"][1]
