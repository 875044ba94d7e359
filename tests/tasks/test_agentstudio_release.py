"""`agentstudio-release` as `omnidata score` runs it: the released verdicts and reports."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import omnidata
from omnidata.errors import UsageError
from omnidata.run.scoring import get_profile
from omnidata.tasks.asking import Asking
from omnidata.types import LoadedDataset
from tests.loaders.agentstudio import REAL
from tests.metrics.agentstudio import CASES, SETS, Row, respond, shared_cases
from tests.tasks.scored import scored
from tests.trees import NO_SHARED, read_lines

pytestmark = pytest.mark.skipif(not CASES.is_file(), reason=NO_SHARED)


@pytest.fixture(scope="module")
def sources() -> dict[str, LoadedDataset]:
    return {
        name: omnidata.get_task(task).load(REAL[task], check_media=False)
        for name, task in SETS.items()
    }


def score_rows(
    task: Asking, source: LoadedDataset, texts: Mapping[int, str | None], out: Path
) -> tuple[dict[str, Any], dict[str, Row]]:
    """The results over the rows that have a text, and the lines of `scores.jsonl` by id."""
    steps = [source.steps[row] for row in texts]
    results = scored(task, steps, texts.values(), "agentstudio-release", out=out)
    return results, {line["sample_id"]: line for line in read_lines(out / "scores.jsonl")}


def told(line: Row, case: Row) -> Row:
    """What a line of `scores.jsonl` says, under the names of the cases."""
    parsed = line["parsed"]
    if case["set"] == "groundui":
        parsed = parsed and parsed["point"]
    elif case["set"] == "idm":
        parsed = parsed and "".join(parsed["letters"])
    elif case["set"] == "idmn2n":
        parsed = parsed["letters"] if parsed else []
    found = {**line, "parsed": parsed}
    return {name: found[name] for name in ("score", "parsed", "edit_distance") if name in case}


def test_scores_are_the_released_verdicts(
    sources: dict[str, LoadedDataset], tmp_path: Path
) -> None:
    """One run takes one response per row; the cases make as many runs as a row has of them."""
    runs: dict[tuple[str, str, int], dict[int, Row]] = defaultdict(dict)
    turn: Counter[tuple[str, str, int]] = Counter()
    for case in shared_cases("case"):
        unit = "px" if case["model"] == "gemini-1.5-flash" else "rel"
        place = (case["set"], unit, case["row"])
        runs[(case["set"], unit, turn[place])][case["row"]] = case
        turn[place] += 1
    wrong, checked = [], 0
    for (name, unit, number), cases in runs.items():
        options = {"coordinates": unit} if name == "groundui" else {}
        task = omnidata.get_task(SETS[name], options)
        texts = {row: case["response"] for row, case in cases.items()}
        _, lines = score_rows(task, sources[name], texts, tmp_path / f"{name}-{unit}-{number}")
        for row, case in cases.items():
            ours = told(lines[sources[name].steps[row].sample_id], case)
            wrong += [(case, ours)] if any(ours[key] != case[key] for key in ours) else []
            checked += 1
    assert checked == 3_464
    assert wrong == []


_COLUMN = {"score": "accuracy"} | {
    name: name for name in ("edit_distance", "accuracy", "precision", "recall", "f1")
}


def reported(results: Row, name: str) -> float:
    """A value of the released report from our results."""
    metric = next(metric for metric in _COLUMN if name.endswith(metric))
    group = name.removesuffix(metric).rstrip("_")
    tables = {"": results["overall"]} | results["by"]["platform"] | results["by"]["source"]
    value: float = tables[group][_COLUMN[metric]]
    return round(value, 3)


def test_tables_are_the_released_reports(sources: dict[str, LoadedDataset], tmp_path: Path) -> None:
    """Tokens aside, which no score depends on. A run over nothing is never scored."""
    checked = 0
    for report in shared_cases("report"):
        if not report["n"]:
            continue
        source, count = sources[report["set"]], report["n"]
        kinds = report["kind_of_row"]
        kinds = [kinds] * count if isinstance(kinds, str) else kinds
        texts = {
            row: respond(report["set"], dict(source.steps[row].source), kinds[row])
            for row in range(count)
        }
        task = omnidata.get_task(SETS[report["set"]])
        results, _ = score_rows(task, source, texts, tmp_path / f"{report['set']}-{report['run']}")
        for name, value in report["metrics"].items():
            if name.endswith(":sum"):
                continue
            assert reported(results, name) == value, (report["run"], name)
            checked += 1
    assert checked == 88


def test_the_release_has_no_score_for_a_unit_that_it_does_not_know() -> None:
    task = omnidata.get_task("groundui", {"coordinates": "norm1000"})
    assert list(task.profiles) == ["agentstudio-paper"]
    with pytest.raises(UsageError, match="agentstudio-release"):
        get_profile(task, "agentstudio-release")
    for unit in ("rel", "px"):
        known = omnidata.get_task("groundui", {"coordinates": unit})
        assert "agentstudio-release" in known.profiles
