"""Steps that are near-duplicates form one group."""

from __future__ import annotations

from pathlib import Path

from tests.audit.planted import audited
from tests.loaders.agentstudio import act, trajectory


def test_rows_of_one_recording_or_instruction_are_a_group(tmp_path: Path) -> None:
    rows = [
        trajectory(act(number), instruction=text, annotation_id=f"e{number}")
        for number, text in enumerate(["Buy it", "buy  IT", *map(str, range(10))])
    ]
    again = trajectory(act(5), instruction="seen before", annotation_id="e99")
    assert audited(tmp_path / "rows.jsonl", [*rows, again]).groups == 11


def test_an_instruction_of_all_rows_is_no_group(tmp_path: Path) -> None:
    rows = [trajectory(act(number), annotation_id=f"e{number}") for number in range(10)]
    assert audited(tmp_path / "rows.jsonl", rows).groups == 10


def test_rows_with_the_same_prompt_are_a_group_and_those_with_other_images_are_not(
    tmp_path: Path,
) -> None:
    rows = [trajectory(act(number % 10), annotation_id=f"e{number}") for number in range(20)]
    for each in rows:
        each["actions"][0]["metadata"] = {"repr": "the same"}
    assert audited(tmp_path / "rows.jsonl", rows).groups == 10
