"""The audit finds what was planted in data that it has not seen, and nothing where nothing is."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from omnidata.analysis.audit import audit
from omnidata.errors import DataError
from omnidata.registry import get_benchmark
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.tasks.totals import YesNoTotals
from tests.audit.planted import CUES, WORD, Cue, audited, rows, shuffled
from tests.full import in_gate
from tests.loaders.agentstudio import ground
from tests.trees import row, write_app, write_lines

NAMES = {
    "images": {"number of parts", "number of text parts", "number of image parts", "lines"},
    "last part": {"kind of part 2 from the end"},
    "length": {"characters", "characters of the last text"},
    "word": {f'has "{WORD}"'},
}


@pytest.mark.full("seconds of learning; test_verb.py finds one")
@pytest.mark.parametrize("cue", CUES)
@pytest.mark.parametrize(("strength", "count"), [(1.0, 60), (0.65, 500), (0.75, 200)])
def test_a_planted_leak_is_found_and_named(
    tmp_path: Path, cue: Cue, strength: float, count: int
) -> None:
    report = audited(tmp_path / "rows.jsonl", rows(cue, strength, count=count, seed=5))
    assert report.leak
    assert report.learned is not None
    assert report.learned.metric == pytest.approx(strength, abs=0.07)
    assert next(iter(report.carriers)) in NAMES[cue]


@pytest.mark.parametrize("cue", in_gate(CUES, 1, "seconds of learning"))
def test_shuffled_labels_leave_nothing_to_find(tmp_path: Path, cue: Cue) -> None:
    given = rows(cue, 1.0, count=200, seed=5)
    reports = [audited(tmp_path / "rows.jsonl", shuffled(given, seed)) for seed in range(3)]
    assert not any(report.leak for report in reports)


@pytest.mark.full("100 audits take minutes")
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
        {**each, "annotation_id": f"{each['annotation_id']}:{copy}"}
        for each in given
        for copy in "abcd"
    ]
    report = audited(tmp_path / "rows.jsonl", copies)
    assert report.groups <= 60
    assert not report.leak


def test_a_cue_of_copied_prompts_is_no_leak_whatever_they_are_called(tmp_path: Path) -> None:
    """One instruction for all, so that only the prompts themselves tell that they are copies."""
    given = [
        {**each, "instruction": "Find a house"} for each in rows("none", 0.5, count=30, seed=3)
    ] * 20
    report = audited(tmp_path / "rows.jsonl", given)
    assert report.groups == 30
    assert report.learned is not None
    assert report.learned.metric < 0.7  # no copy is answered from memory
    assert not report.leak


@pytest.mark.parametrize("seed", in_gate([1006, 1000, 1001, 1003], 1, "seconds of learning"))
def test_large_groups_among_small_ones_are_no_leak(tmp_path: Path, seed: int) -> None:
    """A chance agreement of one large group counts many times on both sides of the comparison."""
    draw = random.Random(seed)
    given = [
        each
        for each in rows("none", 0.5, count=60, seed=seed)
        for _ in range(min(40, int(draw.paretovariate(0.9))))
    ]
    assert not audited(tmp_path / "rows.jsonl", given).leak


@pytest.mark.parametrize("success", [True, False])
def test_one_answer_that_is_always_right_is_no_leak(tmp_path: Path, success: bool) -> None:
    given = [{**each, "is_success": success} for each in rows("none", 0.5, count=40, seed=5)]
    report = audited(tmp_path / "rows.jsonl", given)
    assert report.learned is None
    assert not report.leak
    assert report.unlearned.metric == 1


def test_more_answers_than_can_be_tried_are_no_leak(tmp_path: Path) -> None:
    given = [
        ground(bbox=[n % 140, n // 140, n % 140, n // 140], instruction=str(n)) for n in range(150)
    ]
    task = get_task("groundui")
    steps = task.load(write_lines(tmp_path / "rows.jsonl", given), check_media=False).steps
    report = audit(task, steps, task.profiles[task.default_profile])
    assert report.learned is None
    assert not report.leak
    assert report.unlearned.metric == pytest.approx(1 / 150)


def test_an_audit_of_one_row_says_what_a_constant_scores(tmp_path: Path) -> None:
    report = audited(tmp_path / "rows.jsonl", rows("none", 0.5, count=1, seed=5))
    assert (report.steps, report.groups, report.unlearned.metric) == (1, 1, 1)
    assert not report.leak


def test_steps_without_a_usable_target_are_not_called_clean(tmp_path: Path) -> None:
    app = write_app(tmp_path / "TED", [row(f"T{n}", result_action_type=77) for n in range(30)])
    task = get_task("omnigui")
    steps = task.load(app, check_media=False).steps
    with pytest.raises(DataError, match="judges none of the 30 steps"):
        audit(task, steps, task.profiles[task.default_profile])


@pytest.mark.parametrize(
    "columns, column",
    [(("f1", "recall", "precision", "accuracy"), "accuracy"), (("recall", "precision"), "")],
)
def test_the_column_of_the_score_is_found_wherever_it_stands(
    tmp_path: Path, columns: Sequence[str], column: str
) -> None:
    benchmark = get_benchmark("criticbench")
    rule: Any = benchmark.rules[0]
    rule.totals = YesNoTotals(lambda step: bool(step.source["is_success"]))
    rule.totals.columns = dict.fromkeys(columns, "share")
    task = Asking(benchmark)
    given = rows("none", 0.5, count=15, seed=5)
    steps = task.load(write_lines(tmp_path / "rows.jsonl", given), check_media=False).steps
    report = audit(task, steps, task.profiles[rule.name])
    assert (report.value, report.metric) == ("score", column)


def test_an_option_that_takes_the_cue_out_of_the_prompt_takes_the_leak_away(tmp_path: Path) -> None:
    """What is found without the option, `test_a_planted_leak_is_found_and_named` shows."""
    given = rows("last part", 1.0, count=60, seed=5)
    assert not audited(tmp_path / "rows.jsonl", given, symmetric="true").leak


def test_the_same_seed_gives_the_same_report(tmp_path: Path) -> None:
    given = rows("none", 0.5, count=100, seed=7)
    first, second = (audited(tmp_path / "rows.jsonl", given) for _ in "ab")
    assert first.chance is not None
    assert first == second


def test_too_few_groups_give_constants_only(tmp_path: Path) -> None:
    report = audited(tmp_path / "rows.jsonl", rows("word", 1.0, count=12, seed=5))
    assert report.learned is None
    assert not report.leak
    assert report.unlearned.metric == 0.5
