"""Findings of one kind are one line with their number and three places; --all lists each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import EXPORT, omnidata
from tests.loaders import phones
from tests.trees import write_lines

COUNT, EPISODES = 200, 20


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Episodes of whose steps nearly all have an action that nobody knows."""
    unknown = [{"action_type": f"fly_{n}"} for n in range(COUNT // EPISODES)]
    rows = [phones.episode(phones.CLICK, *unknown, number=n) for n in range(EPISODES)]
    path = tmp_path_factory.mktemp("many") / "android_control-00000-of-00001"
    return phones.records(path, *rows).parent


def unusable(text: str) -> list[str]:
    return [line for line in text.splitlines() if "action-unusable" in line]


def test_info_prints_a_line_for_a_kind_and_each_with_all(data: Path) -> None:
    done = omnidata("info", "androidcontrol", data, code=1)
    assert len((done.stdout + done.stderr).splitlines()) < 60
    first, *more = unusable(done.stderr)
    assert first.startswith("error [action-unusable] ")
    assert all(line.count("android_control-00000-of-00001") <= 3 for line in (first, *more))
    assert len(more) < 3, "wordings that differ in a name are few lines"
    assert f"{COUNT} action-unusable" in done.stdout
    each = omnidata("info", "androidcontrol", data, "--all", code=1)
    assert len(unusable(each.stderr)) == COUNT
    printed = omnidata("info", "androidcontrol", data, "--json", code=1)
    assert len(json.loads(printed.stdout)["findings"]) == COUNT


def test_validate_does_so_too(data: Path) -> None:
    command = ("validate", "androidcontrol", data, "--workers", "1")
    done = omnidata(*command, code=1)
    assert len(done.stdout.splitlines()) < 30
    each = omnidata(*command, "--all", code=1)
    assert len(unusable(each.stdout)) >= COUNT


def test_verbs_that_read_data_print_few_lines(data: Path, tmp_path: Path) -> None:
    answers = write_lines(tmp_path / "a.jsonl", [{"sample_id": "0/0", "output": "?"}])
    asks = ("evaluate", "androidcontrol", data, "--model", "baseline:majority", "--limit", "1")
    for command, code in (
        ((*asks, "--out", tmp_path / "run"), 0),
        (("score", "androidcontrol", data, answers), 1),
        (("convert", "androidcontrol", data, tmp_path / "converted"), 1),
        ((*EXPORT, "androidcontrol", data, tmp_path / "out", "--format", "trl"), 1),
    ):
        done = omnidata(*command, code=code)
        assert len(done.stderr.splitlines()) < 30, command
        assert unusable(done.stderr), command
        assert not any("fly_7" in line for line in unusable(done.stderr)), command


def test_each_wording_of_a_code_is_counted_as_a_whole(tmp_path: Path) -> None:
    """Four wordings that alternate; the fourth is none of the three that have a line."""
    agents = ("Ann", "Bob", "Cid", "Dan")
    rows = [{"task_id": f"t{n}", **{f"{one}_human_label": 9 for one in agents}} for n in range(5)]
    rows.append({"task_id": "t5", "Ann_human_label": 1})
    (tmp_path / "human_label.json").write_text(json.dumps(rows))
    told = omnidata("info", "online-mind2web", tmp_path, code=1).stderr
    lines = [line for line in told.splitlines() if "label-unknown" in line]
    assert [line.partition("times:")[0] for line in lines] == 4 * ["error [label-unknown] 5 "]
