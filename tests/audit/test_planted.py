"""The audit finds what was planted in data that it has not seen, and nothing where nothing is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.audit.planted import CUES, Cue, audited, rows, shuffled

FULL = bool(os.environ.get("OMNIDATA_TEST_FULL"))
NAMES = {
    "images": {"number of parts", "number of text parts", "number of image parts", "lines"},
    "last part": {"kind of part 2 from the end"},
    "length": {"characters", "characters of the last text"},
    "word": {'has "wait"'},
}


@pytest.mark.parametrize("strength, count", [(0.6, 1200), (0.75, 300), (1.0, 200)])
@pytest.mark.parametrize("cue", CUES)
def test_a_planted_leak_is_found_and_named(
    tmp_path: Path, cue: Cue, strength: float, count: int
) -> None:
    report = audited(tmp_path / "rows.jsonl", rows(cue, strength, count=count, seed=5))
    assert report.leak
    assert report.learned is not None
    assert report.learned.metric == pytest.approx(strength, abs=0.07)
    assert next(iter(report.carriers)) in NAMES[cue]


@pytest.mark.parametrize("cue", CUES)
def test_shuffled_labels_leave_nothing_to_find(tmp_path: Path, cue: Cue) -> None:
    given = rows(cue, 1.0, count=200, seed=5)
    reports = [audited(tmp_path / "rows.jsonl", shuffled(given, seed)) for seed in range(3)]
    assert not any(report.leak for report in reports)


@pytest.mark.skipif(not FULL, reason="100 audits take minutes: OMNIDATA_TEST_FULL=1")
def test_at_least_95_of_100_shuffled_datasets_are_found_clean(tmp_path: Path) -> None:
    found = [
        audited(
            tmp_path / "rows.jsonl",
            shuffled(rows(CUES[seed % len(CUES)], 0.75, count=300, seed=seed), seed),
        ).leak
        for seed in range(100)
    ]
    assert sum(found) <= 5


def test_a_cue_of_copied_rows_is_no_leak(tmp_path: Path) -> None:
    """Each row comes four times: who answers copies from memory knows everything, and nothing."""
    given = rows("none", 0.5, count=60, seed=5)
    copies = [
        {**row, "annotation_id": f"{row['annotation_id']}:{copy}"}
        for row in given
        for copy in "abcd"
    ]
    report = audited(tmp_path / "rows.jsonl", copies)
    assert report.groups <= 60
    assert not report.leak


def test_an_option_that_takes_the_cue_out_of_the_prompt_takes_the_leak_away(
    tmp_path: Path,
) -> None:
    given = rows("last part", 1.0, count=200, seed=5)
    assert audited(tmp_path / "rows.jsonl", given).leak
    assert not audited(tmp_path / "rows.jsonl", given, symmetric="true").leak


def test_the_same_seed_gives_the_same_report(tmp_path: Path) -> None:
    given = rows("word", 0.75, count=200, seed=5)
    first, second = (audited(tmp_path / "rows.jsonl", given) for _ in "ab")
    assert first == second


def test_too_few_groups_give_constants_only(tmp_path: Path) -> None:
    report = audited(tmp_path / "rows.jsonl", rows("word", 1.0, count=12, seed=5))
    assert report.learned is None
    assert not report.leak
    assert report.unlearned.metric == 0.5
