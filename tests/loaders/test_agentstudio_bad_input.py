"""Every odd row of AgentStudio has a finding that names it, and none breaks the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from omnidata.errors import DataError, MediaError
from omnidata.media import image
from omnidata.tasks.agentstudio.load import load
from tests.loaders.agentstudio import TASKS, TaskName, act, ground, single, trajectory, write
from tests.trees import codes

NAN = float("nan")
GOOD: dict[TaskName, dict[str, Any]] = {
    "groundui": ground(image="good.png"),
    "idm-single": single(action_id="good"),
    "idm-multiple": trajectory(annotation_id="good"),
    "criticbench": trajectory(annotation_id="good"),
}
BAD_BOX = {"x": NAN, "y": 4, "width": 1, "height": 1}

SKIPPED: list[tuple[TaskName, dict[str, Any], str]] = [
    ("groundui", ground(bbox=None), "box-unusable"),
    ("groundui", ground(bbox=[1, 2, 3]), "box-unusable"),
    ("groundui", ground(bbox={"x": 1}), "box-unusable"),
    ("groundui", ground(bbox=[1, NAN, 3, 4]), "box-unusable"),
    ("groundui", ground(bbox=[1, 2, float("inf"), 4]), "box-unusable"),
    ("groundui", ground(bbox=[1, 2, 10**400, 4]), "box-unusable"),
    ("groundui", ground(bbox=["1", "2", "3", "4"]), "box-unusable"),
    ("groundui", ground(bbox=[True, False, True, True]), "box-unusable"),
    ("groundui", ground(bbox=[5, 2, 3, 4]), "box-unusable"),
    ("groundui", ground(resolution=None), "size-unusable"),
    ("groundui", ground(resolution=[0, 90]), "size-unusable"),
    ("groundui", ground(resolution=[144.5, 90]), "size-unusable"),
    ("groundui", ground(resolution=[NAN, 90]), "size-unusable"),
    ("groundui", ground(resolution=[144, 90, 3]), "size-unusable"),
    ("groundui", ground(instruction=None), "column-wrong"),
    ("groundui", {"image": "a.png"}, "column-wrong"),
    ("groundui", single(), "size-unusable"),
    ("idm-single", single(operation="HOVER"), "operation-unknown"),
    ("idm-single", single(operation=None), "operation-unknown"),
    ("idm-single", single(operation=["CLICK"]), "operation-unknown"),
    ("idm-single", single(action_space=[]), "action-space-unusable"),
    ("idm-single", single(action_space=["CLICK", "CLICK"]), "action-space-unusable"),
    ("idm-single", single(action_space=["CLICK", 3]), "action-space-unusable"),
    ("idm-single", single(action_space=[["CLICK"]]), "action-space-unusable"),
    ("idm-single", single(action_space="CLICK"), "action-space-unusable"),
    (
        "idm-single",
        single(action_space=["CLICK", *(f"op{number}" for number in range(26))]),
        "action-space-unusable",
    ),
    ("idm-multiple", trajectory(actions=[]), "window-empty"),
    ("idm-multiple", trajectory(act(obs_after=None)), "window-empty"),
    ("idm-multiple", trajectory(actions=None), "column-wrong"),
    ("idm-multiple", trajectory(actions=["CLICK"]), "column-wrong"),
    ("idm-multiple", trajectory(act(0), act(1, operation="HOVER")), "operation-unknown"),
    ("idm-multiple", trajectory(*[act(n) for n in range(501)]), "actions-many"),
    ("criticbench", trajectory(actions=[]), "window-empty"),
    ("criticbench", trajectory(act(metadata={})), "repr-missing"),
    ("criticbench", trajectory(act(metadata=None)), "repr-missing"),
    ("criticbench", trajectory(is_success="True"), "label-unusable"),
    ("criticbench", trajectory(is_success=1), "label-unusable"),
    ("criticbench", trajectory(instruction=3), "column-wrong"),
]
KEPT: list[tuple[TaskName, dict[str, Any], str]] = [
    ("groundui", ground(bbox=[3, 5, 9, 5]), "box-flat"),
    ("groundui", ground(bbox=[0, -6, 9, 5]), "box-outside"),
    ("groundui", ground(bbox=[0, 1, 144.5, 5]), "box-outside"),
    ("groundui", ground(platform="tv"), "platform-unknown"),
    ("groundui", ground(platform=None), "platform-unknown"),
    ("groundui", ground(source=None), "source-missing"),
    ("groundui", ground(image=7), "path-unsafe"),
    ("idm-single", single(bbox=BAD_BOX), "box-unusable"),
    ("idm-single", single(bbox=[1, 2, 3, 4]), "box-unusable"),
    ("idm-single", single(image="a.png", bbox=[[1], {}]), "box-unusable"),
    ("criticbench", trajectory(image="a.png", bbox=[[1], {}]), ""),
    ("idm-single", single(source="vwa_reddit", bbox=act()["bbox"]), "box-unusable"),
    ("idm-single", single(bbox={"x": 1, "y": 2, "width": 3, "height": 0}), "box-flat"),
    ("idm-single", single(bbox={"x": 1, "y": 2, "width": -3, "height": 1}), "box-unusable"),
    ("idm-single", single(source="aitw_single"), "box-outside"),
    ("idm-single", single(obs_after=None), "image-missing"),
    ("idm-single", single(metadata={"repr": "[a]  All -> HOVER"}), "label-noise"),
    ("idm-single", single(metadata=None), ""),
    ("idm-multiple", trajectory(*[act(n, metadata=None) for n in range(2)]), ""),
    ("idm-multiple", trajectory(is_success=None), ""),
    (
        "idm-multiple",
        trajectory(act(0, operation="HOVER"), *[act(n) for n in range(1, 6)]),
        "operation-unknown",
    ),
    ("criticbench", trajectory(act(0), act(1, operation="HOVER")), "operation-unknown"),
    ("criticbench", trajectory(act(0, obs_before=None), act(1)), "image-missing"),
    ("criticbench", trajectory(act(0), act(2)), "chain-broken"),
    ("criticbench", trajectory(act(obs_after=None)), ""),
]


def _load(tmp_path: Path, task: TaskName, *rows: dict[str, Any]) -> Any:
    return load(write(tmp_path / "m.jsonl", *rows), task)


@pytest.mark.parametrize(("task", "row", "code"), SKIPPED)
def test_a_row_that_cannot_be_scored_is_skipped_and_told(
    tmp_path: Path, task: TaskName, row: dict[str, Any], code: str
) -> None:
    source = _load(tmp_path, task, GOOD[task], row)
    assert (source.row_ids, source.skipped) == (["m/0", None], 1)
    assert codes(source) == {code: 1}
    found = next(finding for finding in source.findings if finding.code == code)
    assert found.severity == "error"
    assert found.where == f"m/1 ({tmp_path / 'm.jsonl'}:2)"


@pytest.mark.parametrize(("task", "row", "code"), KEPT)
def test_a_doubtful_row_is_kept_and_told(
    tmp_path: Path, task: TaskName, row: dict[str, Any], code: str
) -> None:
    source = _load(tmp_path, task, GOOD[task], {**row, "annotation_id": "x", "action_id": "x"})
    assert source.row_ids == ["m/0", "m/1"]
    assert codes(source) == ({code: 1} if code else {})
    assert source.steps[1].source["platform"] == row["platform"]


@pytest.mark.parametrize("task", TASKS)
def test_equal_rows_are_all_kept(tmp_path: Path, task: TaskName) -> None:
    source = _load(tmp_path, task, GOOD[task], GOOD[task], GOOD[task])
    assert len(source.steps) == 3
    assert codes(source) == {"row-repeated": 2}


@pytest.mark.parametrize(
    ("task", "rows", "code"),
    [
        ("criticbench", [trajectory(), trajectory(is_success=False)], "id-repeated"),
        ("idm-single", [single(), single(instruction="Find a flat")], "id-repeated"),
        (
            "groundui",
            [ground(), ground(bbox=[1, 2, 3, 4]), ground(platform="mobile")],
            "target-ambiguous",
        ),
    ],
)
def test_one_id_or_question_with_two_contents_is_told(
    tmp_path: Path, task: TaskName, rows: list[dict[str, Any]], code: str
) -> None:
    assert codes(_load(tmp_path, task, *rows)) == {code: 1}


@pytest.mark.parametrize("path", ["../secret.png", "link.png"])
@pytest.mark.parametrize("task", TASKS)
def test_no_path_leads_outside(tmp_path: Path, task: TaskName, path: str) -> None:
    (tmp_path / "secret.png").write_bytes(b"secret")
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "link.png").symlink_to(tmp_path / "secret.png")
    rows: dict[TaskName, dict[str, Any]] = {
        "groundui": ground(image=path),
        "idm-single": single(obs_before=path),
        "idm-multiple": trajectory(act(0, obs_before=path), act(1)),
        "criticbench": trajectory(act(0, obs_before=path), act(1)),
    }
    source = _load(tmp_path, task, rows[task])
    assert codes(source)["media-broken" if path == "link.png" else "path-unsafe"] >= 1
    ref = next(iter(source.steps[0].media.values()))
    with pytest.raises(MediaError):
        image(ref)


@pytest.mark.parametrize(
    "line",
    [
        *("[]", "{", "\ud800", '{"a": ' * 100_000, "7" * 5000, '{"a": 1}' * 2),
        json.dumps(ground()).replace("0", f"{'[' * 700}{']' * 700}", 1),
    ],
    ids=["array", "open", "surrogate", "deep", "digits", "two", "nested"],
)
def test_a_line_that_is_no_row_is_told(tmp_path: Path, line: str) -> None:
    data = tmp_path / "m.jsonl"
    content = f"{json.dumps(ground())}\n{line}\n{json.dumps(ground(image='b.png'))}\n"
    data.write_bytes(content.encode("utf-8", "surrogatepass"))
    source = load(data, "groundui")
    assert source.row_ids == ["m/0", None, "m/2"]
    assert codes(source) == {"json-invalid": 1}


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\0" * 100 + b"PAR1"])
def test_broken_parquet_is_one_error(tmp_path: Path, content: bytes) -> None:
    data = tmp_path / "test-00000-of-00001.parquet"
    data.write_bytes(content)
    for named in (data, tmp_path):
        with pytest.raises(DataError, match="Parquet file cannot be read"):
            load(named, "groundui")
