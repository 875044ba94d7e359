"""A column says its unit and direction in one place, and reaches whatever shows it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnidata import viewer
from omnidata.actions import Screen, Space
from omnidata.analysis.report import report
from omnidata.dialects import UnreadError
from omnidata.run.run_files import read_run
from omnidata.tasks.benchmark import Benchmark, Card, Note, ParsedAnswer, Receipt, Rule, Values
from omnidata.tasks.totals import Column, EpisodeTotals, PartTotals, RowTotals
from omnidata.types import Step, Target, VerdictColumns
from tests import plugs
from tests.cli.running import here
from tests.trees import write_lines

DATA = Path("numbers.jsonl")


class Distance(Rule[float]):
    name = "distance"
    totals = RowTotals(
        [
            Column(
                "miss", "distance", unit="number", meaning="distance to it", lower_is_better=True
            ),
            Column("hit", "score"),
        ],
        by={"app": ()},
    )

    def judge(self, step: Step, parsed: ParsedAnswer[float] | None) -> Values:
        if parsed is None:
            return (9.0, False)
        return (abs(parsed.value - step.source["number"]), parsed.value == step.source["number"])


class Guess(Benchmark):
    card = Card(title="Guess", tags=("app",))
    question = "Guess"
    rules = (Distance(),)

    def steps(self, data: Path, note: Note) -> Iterable[Step | None]:
        for number, line in enumerate(data.read_text(encoding="utf-8").splitlines()):
            tags = {"app": "odd" if number % 2 else "even"}
            yield Step(
                f"g/{number}", f"g{number}", 0, 1, "guess", (0, 0), {}, (), (), None, tags,
                json.loads(line),
            )  # fmt: skip

    def parse(self, text: str, step: Step, receipt: Receipt) -> ParsedAnswer[float]:
        try:
            return ParsedAnswer(float(text), {"number": float(text)})
        except ValueError:
            raise UnreadError("no number") from None

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target:
        text = str(step.source["number"])
        return Target(text, text)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Runs whose guesses miss a little, more in rows of the odd app, and a lot."""
    site = plugs.on_path(tmp_path / "site", "no_module", monkeypatch)
    plugs.install(site, "omnidata-guess", "omnidata.tasks", f"guess = {__name__}:Guess")
    write_lines(tmp_path / DATA, [{"number": 5}] * 24)
    monkeypatch.chdir(tmp_path)
    return {
        name: scored(tmp_path / name, misses)
        for name, misses in (("near", (1, 2)), ("middle", (2, 3)), ("far", (5, 6)))
    }


def scored(out: Path, misses: Sequence[int]) -> Path:
    lines = [{"sample_id": f"g/{n}", "output": str(5 + misses[n % 2])} for n in range(24)]
    answers = write_lines(out.with_suffix(".answers"), lines)
    here("score", "guess", DATA, answers, "--out", out)
    return out


def test_a_column_of_which_less_is_better_reaches_all_that_shows_it(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    near, far = runs["near"], runs["far"]
    assert read_run(near).results["overall"] == {"miss": 1.5, "hit": 0.0}
    assert "1.50" in here("score", "guess", DATA, near.with_suffix(".answers")).stdout
    assert "miss (distance to it)" in here("info", "guess").stdout

    made = report([read_run(near), read_run(far)], by=["app"])
    overall: Any = next(table for table in made.as_dict()["tables"] if table["name"] == "overall")
    miss, hit, _ = overall["heads"][0]["columns"]
    assert (miss["metric"], miss["unit"], miss["lower_is_better"]) == ("miss", "number", True)
    assert "lower_is_better" not in hit

    compared = here("compare", near, far, "--data", DATA).stdout
    (line,) = [line.strip() for line in compared.splitlines() if line.strip().startswith("miss")]
    assert line.split()[1:4] == ["1.50", "5.50", "+4.00"]
    page = tmp_path / "page.html"
    viewer.write(read_run(near), page, data=DATA)
    assert "distance to it" in page.read_text(encoding="utf-8")


def test_the_run_with_the_least_is_the_best(runs: dict[str, Path]) -> None:
    order = [runs[name] for name in ("far", "near", "middle")]
    ranked = json.loads(here("compare", *order, "--data", DATA, "--json").stdout)
    assert (ranked["metric"], ranked["unit"]) == ("miss", "number")
    assert [Path(place["run"]).name for place in ranked["places"]] == ["near", "middle", "far"]
    assert [place["rank"] for place in ranked["places"]] == [1, 2, 3]

    made = report([read_run(runs[name]) for name in ("far", "near")], by=["app"])
    tables = {table.name: table for table in made.tables}
    marks = {row.labels[0]: row.cells[0].mark for row in tables["main"].rows}
    assert marks == {"far": "", "near": "best"}
    assert [row.group for row in tables["by-app"].rows] == ["even", "odd"]


MISS = Column("miss", "distance", unit="number")


@pytest.mark.parametrize(
    ("base", "columns", "values"),
    [
        (RowTotals, [MISS, Column("hit", "score")], {}),
        (PartTotals, [MISS, Column("hit", "score")], {}),
        (EpisodeTotals, [MISS, Column("EM")], {"values": ("distance", "exact_match")}),
    ],
)
def test_a_column_that_is_no_mean_is_a_dash_where_it_has_no_value(
    base: Any,
    columns: list[Column],
    values: dict[str, Any],
    runs: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Median(base):  # type: ignore[misc]  # a class of three
        def total(self, steps: Sequence[Step], rows: VerdictColumns) -> dict[str, Any]:
            found: dict[str, Any] = super().total(steps, rows)
            found["overall"]["median"] = float(np.median(rows.values["distance"]))
            found["answered"]["median"] = float("nan")
            return found

    totals = Median(columns, by={"app": ()}, **values)
    totals.columns = {**totals.columns, "median": "number"}
    monkeypatch.setattr(Distance, "totals", totals)
    near, far = (scored(runs[name].with_name(f"{name}-again"), (2, 2)) for name in ("near", "far"))
    results = read_run(near).results
    assert (results["overall"]["median"], results["answered"]["median"]) == (2, None)
    score = here("score", "guess", DATA, near.with_suffix(".answers"), "--profile", "all").stdout
    table = here("report", near, "--by", "app").stdout
    assert "median" in score and "2.00" in table and " -" in table
    compared = here("compare", near, far, "--data", DATA).stdout
    assert "miss" in compared and "median" not in compared
    assert "median" in here("audit", "guess", DATA).stdout
