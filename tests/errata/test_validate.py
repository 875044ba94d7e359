"""`omnidata validate --errata`: corrections held against the data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omnidata.data.errata_checks import CODES, check_errata
from omnidata.run.errata import read_errata
from omnidata.tasks import get_task
from tests.cli.running import as_json, omnidata
from tests.errata import made
from tests.loaders.every import rows_of

PAGE = (Path(__file__).parents[2] / "docs" / "errata.md").read_text("utf-8")
HERE = [[210, 786], [351, 850]]


def tap(*edges: int, kind: str = "TAP") -> dict[str, object]:
    return {"kind": kind, "start": [made.box(*edges)]}


def test_each_problem_is_a_finding_with_its_line(tmp_path: Path) -> None:
    data = made.taps(tmp_path / "data", HERE, HERE, HERE, HERE)
    source = made.loaded("omnigui", data)
    first, second, third, fourth = (step.sample_id for step in source.steps)
    lines: list[dict[str, Any]] = [
        {"sample_id": "nowhere", "kind": "drop"},
        {"sample_id": first, "kind": "replace", "value": {"kind": "HOTKEY", "keys": ["a"]}},
        {"sample_id": second, "kind": "also_right", "value": tap(9, 9, 9, 9, kind="DOUBLE_TAP")},
        {"sample_id": third, "kind": "replace", "value": tap(700, 10, 730, 20)},
        {"sample_id": fourth, "kind": "replace", "value": tap(210, 786, 351, 850)},
    ]
    file = made.errata(tmp_path / "e.jsonl", "omnigui", *lines, fingerprint="0" * 64)
    validate = ("validate", "omnigui", data, "--errata", file)
    found = as_json(omnidata(*validate, "--json", code=1))
    assert [(one["code"], one["where"]) for one in found["findings"]] == [
        ("errata-other-data", str(file)),
        ("errata-unknown-step", f"{file}:2: nowhere"),
        ("errata-unsayable", f"{file}:3: {first}"),
        ("errata-not-taken", f"{file}:4: {second}"),
        ("errata-off-screen", f"{file}:5: {third}"),
        ("errata-no-effect", f"{file}:6: {fourth}"),
    ]
    assert found["checked"] == {"corrections": 5, "steps": 4}
    assert "the profile omnigui-release" in found["findings"][3]["what"]
    assert (
        "2 errors, 4 warnings; checked 5 corrections against 4 steps"
        in omnidata(*validate, code=1).stdout
    )
    drop = {"sample_id": first, "kind": "drop"}
    good = made.errata(tmp_path / "good.jsonl", "omnigui", drop, fingerprint=source.fingerprint)
    assert "0 errors, 0 warnings" in omnidata("validate", "omnigui", data, "--errata", good).stdout


def test_the_page_has_every_finding() -> None:
    assert all(f"`{code}`" in PAGE for code in CODES)


BACK: dict[str, Any] = {"kind": "BACK"}
PLACE_OF_TAP = {"start": [made.box(1, 1, 9, 8)]}


@pytest.mark.parametrize(
    ("task", "value", "is_taken"),
    [
        *((task, BACK, True) for task in ("omnigui", "androidcontrol", "aitw", "gui-odyssey")),
        *((task, tap(1, 1, 9, 8), True) for task in ("groundui", "osworld-g", "mind2web")),
        ("cagui-grounding", tap(1, 1, 9, 8), True),
        ("omnibench", {"kind": "INPUT", "text": "^s"}, True),
        ("omnibench", BACK, False),
        ("cagui-grounding", BACK, False),
        ("mind2web", {"kind": "INPUT", "text": "Save", **PLACE_OF_TAP}, False),
        ("agentnet", tap(1, 1, 9, 8), False),
        ("idm-single", BACK, False),
    ],
)
def test_every_profile_takes_a_correction_or_is_named(
    task: str, value: dict[str, Any], is_taken: bool, tmp_path: Path
) -> None:
    data = rows_of(task, tmp_path / "data")
    steps = made.loaded(task, data).steps
    line = {"sample_id": steps[0].sample_id, "kind": "replace", "value": value}
    file = made.errata(tmp_path / "e.jsonl", task, line)
    findings = check_errata(get_task(task), made.loaded(task, data), read_errata(file))
    codes = {one.code for one in findings}
    assert bool(codes & {"errata-not-taken", "errata-unsayable"}) != is_taken
