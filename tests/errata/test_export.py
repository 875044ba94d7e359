"""`omnidata export --errata`: training rows with corrected labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cli.running import EXPORT, omnidata
from tests.errata import made
from tests.export.small import answer, rows, tree
from tests.export.test_preferences import HOME, asked, exported, steps_of
from tests.loaders import phones

WAIT, HERE = {"kind": "NONE"}, {"kind": "TAP", "start": [made.box(0, 0, 4, 4)]}


def test_rows_have_the_corrected_labels_and_the_report_names_them(tmp_path: Path) -> None:
    data, out = tree(tmp_path / "data"), tmp_path / "out"
    lines: list[dict[str, Any]] = [
        {"sample_id": "App/E00/0", "kind": "replace", "value": HERE},
        {"sample_id": "App/E00/1", "kind": "also_right", "value": WAIT},
        {"sample_id": "App/E00/2", "kind": "drop"},
        {"sample_id": "App/E00/3", "kind": "instruction", "value": "Leave the page"},
    ]
    file = made.errata(tmp_path / "ours.jsonl", "omnigui", *lines)
    export = (*EXPORT, "omnigui", data, out, "--format", "swift", "--split", "train=1")
    omnidata(*export)
    before = rows(out)
    omnidata(*export, "--overwrite", "--errata", file)
    after, report = rows(out), json.loads((out / "export.json").read_text())
    assert [answer(row) for row in after[1:]] == [answer(before[1]), answer(before[3])]
    assert answer(after[0]) != answer(before[0])
    assert "Leave the page" in json.dumps(after[2]) and "Leave the page" not in json.dumps(before)
    assert [one["name"] for one in report["errata"]] == ["ours"]


def test_a_prompt_without_the_corrected_instruction_is_refused(tmp_path: Path) -> None:
    data = made.control(tmp_path / "data", phones.CLICK)
    first = made.loaded("androidcontrol", data).steps[0].sample_id
    line = {"sample_id": first, "kind": "instruction", "value": "Leave the page"}
    file = made.errata(tmp_path / "ours.jsonl", "androidcontrol", line)
    export = (*EXPORT, "androidcontrol", data, tmp_path / "out", "--format", "swift")
    refused = omnidata(*export, "--errata", file, "-T", "level=low", code=2)
    assert "does not show the corrected instruction" in refused.stderr
    omnidata(*export, "--errata", file)


def test_pairs_are_judged_by_corrected_labels_and_keep_their_prompts(tmp_path: Path) -> None:
    data, out = tree(tmp_path / "data"), tmp_path / "out"
    at_home = dict.fromkeys(range(4), HOME)
    runs = [asked(data, tmp_path / "right"), asked(data, tmp_path / "home", at_home)]
    lines: list[dict[str, Any]] = [
        {"sample_id": "App/E00/0", "kind": "replace", "value": {"kind": "HOME"}},
        {"sample_id": "App/E00/0", "kind": "instruction", "value": "Leave the page"},
        {"sample_id": "App/E00/1", "kind": "also_right", "value": {"kind": "HOME"}},
        {"sample_id": "App/E00/2", "kind": "drop"},
    ]
    file = made.errata(tmp_path / "ours.jsonl", "omnigui", *lines)
    exported(data, out, runs)
    usual = dict(zip(steps_of(rows(out)), rows(out), strict=True))
    exported(data, out, runs, "swift-dpo", "--overwrite", "--errata", str(file))
    found = dict(zip(steps_of(rows(out)), rows(out), strict=True))
    assert ([*usual], [*found]) == ([0, 1, 2, 3], [0, 3])
    assert found[0]["messages"][-1]["content"] == HOME == usual[0]["rejected_response"]
    assert found[0]["messages"][:-1] == usual[0]["messages"][:-1]
    assert found[3] == usual[3]
    report = json.loads((out / "export.json").read_text())
    assert [one["name"] for one in report["errata"]] == ["ours"]
    assert report["preferences"]["steps"] == {
        "paired": 2, "all_right": 1, "all_wrong": 0, "without": 0, "dropped": 1,
    }  # fmt: skip
