"""Hit rate by the size of the element, and by application: numbers and denominators by hand."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import as_json, omnidata
from tests.loaders.agentstudio import ground, single, write

AXIS = "element-size"
UUID = "fef6d1a0-a133-407b-9999-8481767f28f8"
ROWS = [
    # of 100 x 100: 1 %, 4 %, 9 %, 16 %, 25 %; the three largest hold the centre
    *(ground(image=f"linux_os_{UUID}.png", bbox=[0, 0, s, s], instruction=str(s))
      for s in (10, 20)),
    *(ground(image=f"macos_music_{UUID}.png", bbox=[60 - s, 60 - s, 60, 60], instruction=str(s))
      for s in (30, 40)),
    ground(bbox=[45, 5, 95, 55], instruction="plain"),
]  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("elements")
    rows = [{**each, "resolution": [100, 100]} for each in ROWS]
    flat = {**ground(bbox=[50, 0, 50, 100], instruction="flat"), "resolution": [100, 100]}
    data = write(folder / "rows.jsonl", *rows, flat)
    out = folder / "run"
    omnidata("evaluate", "groundui", data, "--model", "baseline:center", "--out", out)
    return out


def by_name(*arguments: str | Path) -> dict[str, Any]:
    """The tables of the command; a row has its labels, its group and the values of its cells."""
    tables = as_json(omnidata("report", *arguments, "--by", AXIS, "--json"))["tables"]
    for table in tables:
        for row in table["rows"]:
            row["cells"] = [cell["value"] for cell in row["cells"]]
    return {table["name"]: table for table in tables}


def test_rows_hold_as_many_elements_each_from_small_to_large(run: Path) -> None:
    table = by_name(run)[f"by-{AXIS}"]
    assert [row["cells"] for row in table["rows"]] == [
        [1, 0.0], [1, 0.0], [1, 1.0], [1, 1.0], [1, 1.0],
    ]  # fmt: skip
    assert [row["group"] for row in table["rows"]][::4] == ["1", "25"]
    assert any("up to 1 judged step" in note for note in table["notes"]), "the flat one"


def test_rows_are_of_steps_and_not_of_answers_to_them(tmp_path: Path) -> None:
    boxes = [*[[0, 0, 10, 10]] * 6, [0, 0, 20, 20], [0, 0, 30, 30], [50, 50, 150, 150]]
    data = write(
        tmp_path / "rows.jsonl",
        *({**ground(bbox=box, instruction=str(n)), "resolution": [100, 100]}
          for n, box in enumerate(boxes)),
    )  # fmt: skip
    own = []
    for name, more in (("center", ()), ("oracle", ()), ("oracle", ("--limit", "6"))):
        out = tmp_path / f"{name}{len(more)}"
        omnidata("evaluate", "groundui", data, "--model", f"baseline:{name}", *more, "--out", out)
        own.append(out)
    for chosen in (own[:1], own):
        table = by_name(*chosen)[f"by-{AXIS}"]
        rows = {row["group"]: row["cells"] for row in table["rows"]}
        # Six of one size are one row, and what is beyond the screen is no part of an element.
        assert [*rows] == ["1", "4", "9 to 25"]
        counts = [[6, 1, 2], [6, 1, 2], [6, 0, 0]][: len(chosen)]
        assert [[row[2 * n] for row in rows.values()] for n in range(len(chosen))] == counts


def test_applications_are_counted_apart_beside_what_is_published(run: Path) -> None:
    table = by_name(run, "--published")[f"{AXIS}-by-application"]
    rows = {row["group"]: row["cells"][:4] for row in table["rows"]}
    assert rows == {
        "linux os": [2, 0.0, None, pytest.approx(2.5)],
        "macos music": [2, 1.0, pytest.approx(12.5), None],
    }
    heads = [head["header"] for head in table["heads"]]
    assert heads[1:3] == ["SeeClick", "Claude-3 Sonnet"]
    assert [row["cells"][4] for row in table["rows"]] == [0.607, 0.538]
    assert not any("Not shown" in note for note in table["notes"])


def test_published_applications_stand_beside_their_own_rules_alone(
    run: Path, tmp_path: Path
) -> None:
    out = shutil.copytree(run, tmp_path / "released")
    rules = ("--profile", "agentstudio-release", "--out", out)
    omnidata("score", "groundui", run.parent / "rows.jsonl", out, *rules)
    table = by_name(out, "--published")[f"{AXIS}-by-application"]
    assert len(table["heads"]) == 1
    assert any("Fix: score the runs with --profile agentstudio-paper" in n for n in table["notes"])


def test_the_command_makes_tables_and_a_figure(run: Path, tmp_path: Path) -> None:
    done = omnidata(
        "report", run, "--by", AXIS, "--by", "platform", "--json", "--figures", tmp_path
    )
    names = [table["name"] for table in as_json(done)["tables"]]
    assert {f"by-{AXIS}", f"{AXIS}-by-application", f"{AXIS}-by-platform"} <= {*names}
    assert (tmp_path / f"groundui-{AXIS}.svg").is_file()
    assert "--by element-size" in omnidata("report", run, "--data", run, code=2).stderr


def test_runs_without_elements_or_data_are_refused(run: Path, tmp_path: Path) -> None:
    told = omnidata("report", tmp_path / "none", "--errors", "--by", AXIS, code=2).stderr
    assert "no table of causes by size of elements" in told, "before a run is read"
    assert f"drop --errors, or --by {AXIS}" in told
    data = write(tmp_path / "rows.jsonl", single())
    other = tmp_path / "run"
    omnidata("evaluate", "idm-single", data, "--model", "baseline:oracle", "--out", other)
    done = omnidata("report", other, "--by", AXIS, code=2)
    assert "no target of a judged step is an element" in done.stderr
    moved = write(tmp_path / "ground.jsonl", ground())
    assert "other data" in omnidata("report", run, "--by", AXIS, "--data", moved, code=2).stderr
    info = json.loads((other / "run.json").read_text())
    (other / "run.json").write_text(json.dumps({**info, "data": str(tmp_path / "gone")}))
    assert "--data" in omnidata("report", other, "--by", AXIS, code=2).stderr
