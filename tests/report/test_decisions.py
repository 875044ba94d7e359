"""Time to decision and premature acts, on runs whose every answer is known."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.analysis.decisions import Decision
from omnidata.analysis.report import report
from omnidata.run.run_files import Run
from omnidata.tasks import get_task
from tests.report.made import write_run
from tests.trees import row, write_app, write_lines

TAP, WAIT = '{"action_type": 0, "coordinate": [1, 1]}', '{"action_type": -1}'
# Right at 0.25, 0.5 and all; what is answered where it is wrong.
STEPS: dict[str, tuple[tuple[bool | None, ...], str]] = {
    "App/T1/0": ((True, True, True), TAP),  # at once
    "App/T1/1": ((True, False, True), TAP),  # right, then wrong: decided at the end, premature once
    "App/T1/2": ((False, False, True), WAIT),  # waits until it knows
    "App/T1/3": ((False, False, False), TAP),  # never: no premature act, it is just wrong
    "App/T2/0": ((False, True, True), TAP),  # premature at 0.25
    "App/T2/1": ((None, None, None), TAP),  # not judged
    "App/T2/2": ((True, True, True), TAP),  # its clip was dropped
    "App/T2/3": ((True, True, True), TAP),  # has no clip
}
SHARES = ("0.25", "0.5", "1")


def made(folder: Path) -> list[Run]:
    rows = [row(name.split("/")[1], int(name[-1])) for name in STEPS]
    write_app(folder / "data" / "App", rows)
    source = get_task("omnigui").load(folder / "data", check_media=False)
    assert {step.sample_id for step in source.steps} == {*STEPS}
    runs = []
    for number, share in enumerate(SHARES):
        run = write_run(
            folder / share,
            options={"media_until": share} if share != "1" else {},
            scores={name: right[number] for name, (right, _) in STEPS.items()},
            data=str(folder / "data"),
            dataset_fingerprint=source.fingerprint,
            episodes=2,
        )
        stamp = {"size": 1, "mtime_ns": 1, "sha256": ""} | (
            {"until": float(share)} if share != "1" else {}
        )
        lines = []
        for name, (right, wrong) in STEPS.items():
            receipt = {"media": {"video": stamp} if name != "App/T2/3" else {}}
            if name == "App/T2/2":
                receipt["parts"] = [{"role": "video", "kind": "video", "dropped": "no eyes"}]  # type: ignore[assignment]
            said = wrong if not right[number] else TAP
            lines.append({"sample_id": name, "output": said, "receipt": receipt})
        write_lines(run.path / "predictions.jsonl", lines)
        runs.append(run)
    return runs


def test_every_number_is_the_one_made_by_hand(tmp_path: Path) -> None:
    (table,) = [t for t in report(made(tmp_path)).tables if t.name == "decisions"]
    assert [column.header for column in table.columns] == [
        "Steps", *SHARES, "Decided at", "0.25", "0.5"
    ]  # fmt: skip
    whole, dimension = table.rows
    assert [cell.value for cell in whole.cells] == pytest.approx(
        [5, 2 / 5, 2 / 5, 4 / 5, (0.25 + 1 + 1 + 0.5) / 4, 1 / 4, 1 / 4]
    )
    assert [cell.value for cell in dimension.cells] == [cell.value for cell in whole.cells]
    assert (whole.labels, dimension.group) == (("Overall",), "localization")
    interval = whole.cells[3].ci95  # over two episodes, of which one is right throughout
    assert interval == pytest.approx((3 / 4, 1.0))


def test_runs_that_differ_in_their_share_have_the_curve_by_group(tmp_path: Path) -> None:
    (table,) = [t for t in report(made(tmp_path)).tables if t.name == "media_until"]
    assert [each.labels[1] for each in table.rows] == ["1", "0.5", "0.25"]


def test_without_the_data_a_sentence_says_what_is_left_out(tmp_path: Path) -> None:
    runs = made(tmp_path)
    (tmp_path / "data").rename(tmp_path / "elsewhere")
    found = report(runs)
    assert "decisions" not in {table.name for table in found.tables}
    assert any("time to decision is left out: the data are not there" in t for t in found.warnings)


@given(st.lists(st.booleans(), min_size=1))
def test_what_is_decided_stays_right(right: list[bool]) -> None:
    found = Decision(tuple(right), (True,) * len(right))
    place = found.place()
    if place is None:
        assert not right[-1]
        assert not any(found.premature(number) for number in range(len(right)))
    else:
        assert all(right[place:]) and (place == 0 or not right[place - 1])
        assert all(found.premature(number) is not each for number, each in enumerate(right))


def test_a_single_run_has_no_time_to_decision(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", options={"media_until": "0.5"})
    assert "decisions" not in {table.name for table in report([run]).tables}
