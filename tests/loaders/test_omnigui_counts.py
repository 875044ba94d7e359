"""Table 7 and Figure 2 against what the paper prints of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from omnidata.tasks.omnigui.files import table7
from omnidata.tasks.omnigui.overview import compare, count, distribution
from omnidata.types import Step
from tests.trees import NO_SHARED, SHARED

TABLES = SHARED / "tables" / "omnigui.json"
KEYS = tuple(table7()["totals"])
pytestmark = pytest.mark.skipif(not TABLES.is_file(), reason=NO_SHARED)


@pytest.fixture(scope="module")
def published() -> dict[str, Any]:
    tables: dict[str, Any] = json.loads(TABLES.read_text(encoding="utf-8"))
    return tables


def test_the_table_that_ships_is_the_papers(published: dict[str, Any]) -> None:
    rows = {row["app"]: row for row in table7()["apps"]}
    assert {name: {**row, "aliases": None} for name, row in rows.items()} == {
        row["app"]: {**row, "aliases": None} for row in published["table7"]["rows"]
    }
    assert table7()["totals"] == published["table7"]["printed_totals"]
    for key in KEYS:
        assert sum(row[key] for row in rows.values()) == table7()["totals"][key]


def test_figure_2_and_table_7_agree_on_languages(published: dict[str, Any]) -> None:
    for language in ("zh", "en"):
        rows = [row for row in table7()["apps"] if row["language"] == language]
        sums = {key: sum(row[key] for row in rows) for key in ("episodes", "steps")}
        assert {"apps": len(rows), **sums} == published["section_3_2"][language]


def test_a_dataset_of_the_papers_size_has_the_papers_figure_2(published: dict[str, Any]) -> None:
    """Episodes, steps and labels are dealt out so that every margin is the published one."""
    section = published["section_3_2"]
    steps = list(_steps(section["dimensions"], "dimension"))
    found = distribution(steps)["dimensions"]
    assert list(found) == list(section["dimensions"])
    for name, expected in section["dimensions"].items():
        assert {key: found[name][key] for key in ("episodes", "steps")} == {
            key: expected[key] for key in ("episodes", "steps")
        }
        share = round(100 * found[name]["episodes"] / count(steps)["total"]["episodes"], 1)
        assert share == expected["ep_share"]
    levels = {
        name.removeprefix("AV-").lower(): numbers for name, numbers in section["dependency"].items()
    }
    found = distribution(list(_steps(levels, "dependency")))["dependencies"]
    assert {name: (row["episodes"], row["steps"]) for name, row in found.items()} == {
        name: (numbers["episodes"], numbers["steps"]) for name, numbers in levels.items()
    }


def _steps(groups: dict[str, Any], tag: str) -> Iterator[Step]:
    """As many episodes and steps as published; the first episode takes what is left."""
    for name, numbers in groups.items():
        extra = numbers["steps"] - numbers["episodes"]
        for episode in range(numbers["episodes"]):
            for index in range(1 + extra * (episode == 0)):
                yield Step(
                    sample_id=f"TED/{name}{episode}/{index}",
                    episode_id=f"{name}{episode}",
                    step_index=index,
                    num_steps=1,
                    instruction="",
                    screen=(1, 1),
                    media={},
                    history=(),
                    history_screens=(),
                    action=None,
                    tags={"app": "TED", "language": "en", tag: name},
                    source={},
                )


def test_an_app_in_two_spellings_is_one_app_of_table_7(published: dict[str, Any]) -> None:
    rows = {row["app"]: {key: row[key] for key in ("language", *KEYS)}
            for row in published["table7"]["rows"]}  # fmt: skip
    total = {"language": "", **published["table7"]["printed_totals"]}
    assert compare({"apps": rows, "total": total}) == []
    half = {key: rows["X"][key] // 2 for key in KEYS}
    rest = {key: rows["X"][key] - half[key] for key in KEYS}
    split = {**rows, "X": {"language": "en", **half}, "x": {"language": "en", **rest}}
    assert compare({"apps": split, "total": total}) == []
