"""`evaluate --samples` with errata."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import as_json, omnidata
from tests.cli.test_samples import command, server
from tests.errata import made
from tests.export.small import TAP, tree


def test_the_rates_of_all_samples_stand_without_and_with_errata(tmp_path: Path) -> None:
    data, run = tree(tmp_path / "data", episodes=2, actions=[TAP]), tmp_path / "run"
    lines: list[dict[str, Any]] = [
        {"sample_id": "App/E01/0", "kind": "replace", "value": {"kind": "HOME"}},
        {"sample_id": "App/E00/0", "kind": "drop"},
    ]
    file = made.errata(tmp_path / "ours.jsonl", "omnigui", *lines)
    with server() as asked:
        plain = as_json(omnidata(*command(asked, data, run)))["samples"]
        found = as_json(omnidata(*command(asked, data, run, "--errata", file)))
        assert asked.count == 6
    table = found["samples"]
    corrected, majority = table.pop("with_errata"), table["majority"].pop("with_errata")
    assert table == plain
    assert corrected["unjudged"] == 0
    assert corrected["k"]["1"]["pass@k"] == pytest.approx(1 / 3), "one of three says HOME"
    assert (plain["majority"]["overall"]["EM"], majority["overall"]["EM"]) == (1 / 2, 1)
    assert found["with_errata"]["overall"]["EM"] == 1, "of the first sample"
    second = json.loads((run / "samples" / "02" / "results.json").read_text())
    assert second["with_errata"]["overall"]["EM"] == 0
