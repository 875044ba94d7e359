"""Tasks of AgentStudio, from rows to tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnidata.tasks import get_task
from tests.cli.running import as_json, here
from tests.loaders.agentstudio import REAL, single
from tests.trees import NO_SHARED, SHARED, write_lines


@pytest.mark.skipif(not SHARED.is_dir(), reason=NO_SHARED)
def test_missing_answers_are_wrong_and_told_apart(tmp_path: Path) -> None:
    lines = tmp_path / "outputs.jsonl"
    lines.write_text('{"sample_id": "metadata_success_detection/0", "output": "Answer: maybe"}\n')
    data = REAL["criticbench"]
    for profile, unread in (("agentstudio-paper", 350), ("agentstudio-release", 0)):
        command = ("score", "criticbench", data, lines, "--profile", profile, "--json")
        found = as_json(here(*command, code=1))
        assert found["overall"]["accuracy"] == 0.0
        assert found["outcomes"]["missing"] == 349
        counts = found["counts"]["confusion"]
        assert counts["unread_positive"] + counts["unread_negative"] == unread
        assert sum(counts.values()) == 350


def test_a_run_is_scored_with_the_instructions_that_it_was_asked_with(tmp_path: Path) -> None:
    """A row without the raw wording is no step of such a run, and none that it missed."""
    rows = [
        {
            "image": f"{n}.png", "instruction": "Tap", "bbox": [1, 1, 9, 9], "resolution": [20, 20],
            "source": "web", "platform": "web", **({"raw_instruction": "tap"} if n else {}),
        }
        for n in range(3)
    ]  # fmt: skip
    data = write_lines(tmp_path / "rows.jsonl", rows)
    out = tmp_path / "run"
    asked: list[str | Path] = ["evaluate", "groundui", data, "--out", out, "--json"]
    asked += ["--model", "baseline:oracle"]
    evaluated = as_json(here(*asked, "-T", "instructions=raw"))
    scored = as_json(here("score", "groundui", data, out, "--json"))
    assert evaluated["outcomes"] == scored["outcomes"] == {"ok": 2}


def test_the_majority_is_that_of_the_rows_action_space(tmp_path: Path) -> None:
    """The same letter means another action in another one."""
    spaces = (["CLICK", "TYPE"], ["CLICK", "TYPE"], ["TYPE", "CLICK"])
    rows = [single(annotation_id=f"{n}", action_space=space) for n, space in enumerate(spaces)]
    task = get_task("idm-single")
    steps = task.load(write_lines(tmp_path / "rows.jsonl", rows), check_media=False).steps
    majority = task.baseline("majority", steps, {})
    assert [majority(step) for step in steps] == ["Answer: A", "Answer: A", "Answer: B"]
