"""Time to decision and premature acts, on runs whose every answer is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnidata.analysis.report import report
from omnidata.data.convert import convert
from omnidata.run.evaluate import evaluate
from omnidata.run.run_files import Run, read_run
from omnidata.tasks import get_task
from omnidata.types import Completion
from tests.report.made import write_run
from tests.run.scripted import Scripted
from tests.trees import read_lines, row, write_app, write_lines, write_rows

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
    runs = made(tmp_path)
    tables = {table.name: table for table in report(runs).tables}
    assert [each.labels[1] for each in tables["media_until"].rows] == ["1", "0.5", "0.25"]
    table = tables["decisions"]
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
    (tmp_path / "data").rename(tmp_path / "elsewhere")
    found = report(runs)
    assert "decisions" not in {table.name for table in found.tables}
    assert any("time to decision is left out: the data are missing" in t for t in found.warnings)


def test_sounds_that_rows_hold_count_as_files_do(tmp_path: Path) -> None:
    """Of those without a file the receipt says what part was shown, and nothing of a whole one."""
    held = {"array": [0.0, 0.25, -0.25] * 4000, "sampling_rate": 16_000}
    rows = [row("T1", n, audio_path=None, audio=held, video_path=None) for n in (0, 1)]
    data = write_rows(tmp_path / "steps.json", rows)
    runs = []
    for share in ("1", "0.5"):
        task = get_task("omnigui", {"media_until": share})
        model = Scripted(lambda name, attempt: Completion(text=WAIT))
        model.accepts = frozenset({"audio", "image"})
        source = task.load(data, check_media=False)
        evaluate(task, source, model, tmp_path / share)
        convert(source, tmp_path / f"repository {share}", embed=True)
        back = task.load(tmp_path / f"repository {share}", check_media=False)
        evaluate(task, back, model, tmp_path / share)  # whose sounds are files, and no others
        assert model.asked.total() == 2
        runs.append(read_run(tmp_path / share))
    found = [run.predictions["unknown/T1/0"].receipt.get("media") for run in runs]
    assert found == [None, {"audio": {"until": 0.5}}]
    (table,) = [table for table in report(runs).tables if table.name == "decisions"]
    assert table.rows[0].cells[0].value == 2


def test_of_several_runs_with_one_share_the_first_counts(tmp_path: Path) -> None:
    runs = made(tmp_path)
    wrong = dict.fromkeys(STEPS, False)
    again = write_run(
        tmp_path / "again",
        options={"media_until": "0.5"},
        scores=wrong,
        data=str(tmp_path / "data"),
        dataset_fingerprint=runs[0].fingerprint,
        episodes=2,
    )
    lines = read_lines(runs[1].path / "predictions.jsonl")
    write_lines(again.path / "predictions.jsonl", lines)
    alone, both = (
        next(table for table in report(each).tables if table.name == "decisions")
        for each in (runs, [*runs, read_run(again.path)])
    )
    assert both == alone


def test_of_answers_that_are_no_actions_nobody_knows_whether_they_were_premature(
    tmp_path: Path,
) -> None:
    runs = made(tmp_path)
    for run in runs:
        path = run.path / "predictions.jsonl"
        write_lines(path, [{**line, "output": "B"} for line in read_lines(path)])
    again = report([read_run(run.path) for run in runs])
    (table,) = [table for table in again.tables if table.name == "decisions"]
    values = [cell.value for cell in table.rows[0].cells]
    assert values[-2:] == [None, None]
    assert values[4] == pytest.approx((0.25 + 1 + 1 + 0.5) / 4)


def test_a_single_run_has_no_time_to_decision(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", options={"media_until": "0.5"})
    assert "decisions" not in {table.name for table in report([run]).tables}
