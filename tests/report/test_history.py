"""How errors compound is counted over episodes, and the modes stand beside each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnidata.analysis.report import report
from tests.report.made import write_run

# Three episodes: right right wrong right / wrong right / right (not judged) wrong.
VERDICTS: dict[str, bool | None] = {
    "A/T1/0": True, "A/T1/1": True, "A/T1/2": False, "A/T1/3": True,
    "A/T2/0": False, "A/T2/1": True,
    "B/T1/0": True, "B/T1/1": None, "B/T1/2": False,
}  # fmt: skip


def test_gold_and_predicted_stand_beside_each_other(tmp_path: Path) -> None:
    worse = {**VERDICTS, "A/T1/1": False, "A/T2/1": False}
    runs = [
        write_run(
            tmp_path / "predicted",
            options={"history": "predicted"},
            scores=worse,
            episodes=3,
            overall=(45.0, 30.0, 20.0, 10.0),
        ),
        write_run(tmp_path / "gold", scores=VERDICTS, episodes=3),
    ]
    made = {table.name: table for table in report(runs).tables}
    gold, predicted = made["history"].rows
    assert (gold.labels[1], predicted.labels[1]) == ("Gold", "Predicted")
    assert [cell.change for cell in predicted.cells] == pytest.approx([-0.05, -0.1, -0.1, -0.1])
    by_step = made["history-by-step"]
    assert [row.labels for row in by_step.rows] == [("1",), ("2",), ("3",), ("4",)]
    assert [[cell.value for cell in row.cells] for row in by_step.rows] == [
        [2 / 3, 3, 1, 2 / 3, 3, 1],  # EM, steps, first errors: gold, then predicted
        [1.0, 2, 0, 0.0, 2, 1],
        [0.0, 2, 2, 0.0, 2, 1],
        [1.0, 1, 0, 1.0, 1, 0],
    ]
    after = [cell.value for cell in made["history-compounding"].rows[0].cells]
    assert after == pytest.approx([0.5, 2, 1.0, 2, 3, 3, (1 + 3 + 3) / 3])
    interval = made["history-compounding"].rows[0].cells[0].ci95
    assert interval
    assert interval[0] < 0.5 < interval[1]


def test_one_mode_alone_is_not_compared(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "1", scores=VERDICTS),
        write_run(tmp_path / "2", model="openai:b", options={"history": "predicted"}),
    ]
    assert not any(table.name.startswith("history") for table in report(runs).tables)


@pytest.mark.parametrize("names", [("row-x", "row-y"), ("row/0", "row/1"), ("a/1", "b/1")])
def test_where_nothing_tells_the_order_the_other_tables_stand(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    """Two episodes of one step each: no place, one episode of two steps, places from 1."""
    scores = dict.fromkeys(names, True)
    runs = [
        write_run(tmp_path / mode, scores=scores, episodes=2, options={"history": mode})
        for mode in ("gold", "predicted")
    ]
    made = report(runs)
    assert {"main", "history"} <= {table.name for table in made.tables}
    (told,) = [text for text in made.warnings if "how errors compound are left out" in text]
    assert "follow each other, and the data are missing" in told and "/nowhere" in told
