"""`omnidata export --errata`: training rows with corrected labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cli.running import EXPORT, omnidata
from tests.errata import made
from tests.export.small import answer, rows, tree
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
    omnidata(*export, "--overwrite", "--errata", file, "--pairs", "RUN", code=2)


def test_a_prompt_without_the_corrected_instruction_is_refused(tmp_path: Path) -> None:
    data = made.control(tmp_path / "data", phones.CLICK)
    first = made.loaded("androidcontrol", data).steps[0].sample_id
    line = {"sample_id": first, "kind": "instruction", "value": "Leave the page"}
    file = made.errata(tmp_path / "ours.jsonl", "androidcontrol", line)
    export = (*EXPORT, "androidcontrol", data, tmp_path / "out", "--format", "swift")
    refused = omnidata(*export, "--errata", file, "-T", "level=low", code=2)
    assert "does not show the corrected instruction" in refused.stderr
    omnidata(*export, "--errata", file)
