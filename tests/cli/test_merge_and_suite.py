"""`merge` and `suite`, as a person meets them."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnidata.tasks.omnigui.load import load
from tests.adapters.servers import Fault
from tests.cli.asking import server
from tests.cli.running import as_json, omnidata
from tests.trees import read_lines, write_lines


def test_parts_run_apart_and_joined_are_the_whole_run(few: Path, tmp_path: Path) -> None:
    arguments: list[str | Path] = ["evaluate", "omnigui", few, "--json"]
    arguments += ["--model", "baseline:majority"]
    whole = as_json(omnidata(*arguments, "--out", tmp_path / "whole"))
    for number in (1, 2, 3):
        out = tmp_path / f"part-{number}"
        omnidata(*arguments, "--shard", f"{number}/3", "--out", out)
    parts = [tmp_path / f"part-{number}" for number in (3, 1, 2)]
    done = omnidata("merge", *parts[:2], "--out", tmp_path / "joined", code=2)
    assert "missing: 2/3" in done.stderr
    assert not (tmp_path / "joined").exists()
    joined = omnidata("merge", *parts, "--out", tmp_path / "joined", "--json")
    assert as_json(joined) == whole
    assert f"run folder: {tmp_path / 'joined'}" in joined.stderr
    again = as_json(omnidata("score", "omnigui", few, tmp_path / "joined", "--json"))
    assert again == whole
    assert as_json(omnidata(*arguments, "--out", tmp_path / "joined")) == whole
    part = as_json(omnidata("score", "omnigui", few, parts[0], "--json"))
    assert part["counts"]["steps"] == len(read_lines(parts[0] / "predictions.jsonl"))
    assert part["outcomes"].get("missing", 0) == 0


def test_a_failed_step_of_a_part_makes_the_whole_exit_with_1(few: Path, tmp_path: Path) -> None:
    lines = tmp_path / "empty.jsonl"
    lines.write_text("")
    for number in (1, 2):
        omnidata(
            "evaluate", "omnigui", few, "--model", f"replay:{lines}",
            "--shard", f"{number}/2", "--out", tmp_path / str(number), code=1,
        )  # fmt: skip
    parts = (tmp_path / "1", tmp_path / "2", "--out", tmp_path / "3")
    assert "none of 28 steps was answered" in omnidata("merge", *parts, code=1).stderr
    line = {"sample_id": load(few).steps[0].sample_id, "output": "?"}
    write_lines(lines, [line])
    for number in (4, 5):
        omnidata(
            "evaluate", "omnigui", few, "--model", f"replay:{lines}",
            "--shard", f"{number - 3}/2", "--out", tmp_path / str(number), code=1,
        )  # fmt: skip
    done = omnidata("merge", tmp_path / "4", tmp_path / "5", "--out", tmp_path / "6", code=1)
    assert "api_error" in done.stderr
    assert "overall" in done.stdout
    assert "27 of 28 steps have no full answer (27 api_error)" in " ".join(done.stdout.split())


SUITE = """
out = "runs"
[limits]
concurrency = 2
max_tokens = 1_000_000
cache = "answers.db"

[[tasks]]
task = "omnigui"
name = "tiny"
data = "DATA"
limit = 3
options = { modalities = ["I", "IA"], history = "none" }

[[models]]
model = "baseline:center"

[[models]]
model = "openai:tiny"
name = "api"
base_url = "URL"
options = { seed = [1, 2], temperature = 0.5 }
limits = { concurrency = 1, timeout = 20 }
"""


def test_a_suite_is_models_by_tasks_by_options_and_resumes(few: Path, tmp_path: Path) -> None:
    file = tmp_path / "suite.toml"
    (tmp_path / "DATA").symlink_to(few)
    with server(lambda number: Fault(text='{"action_type": -1}')) as asked:
        file.write_text(SUITE.replace("URL", f"{asked.url}/v1"))
        done = omnidata("suite", file)
        assert asked.count == 3 * 2 * 2
        assert asked.most == 1
        assert {item.payload["seed"] for item in asked.asked} == {1, 2}
        assert {item.payload["temperature"] for item in asked.asked} == {0.5}
        again = omnidata("suite", file, "--json")
        assert asked.count == 3 * 2 * 2
    rows = [line.split() for line in done.stdout.splitlines() if " tiny " in f" {line}"]
    assert [row[1] for row in rows] == ["baseline:center", "api", "api"] * 2
    assert "modalities=IA, seed=2" in done.stdout
    assert all(name in done.stdout for name in ("TM", "EM", "SR", "GP", "degraded"))
    assert "history=none" not in done.stdout  # the same in all runs
    names = {path.name for path in (tmp_path / "runs").iterdir()}
    assert names == {
        *(f"tiny--baseline-center--modalities={m}" for m in ("I", "IA")),
        *(f"tiny--api--modalities={m}--seed={s}" for m in ("I", "IA") for s in (1, 2)),
    }
    cells = as_json(again)
    assert len(cells) == 6
    assert cells[-1]["options"] == {"modalities": "IA", "history": "none"}
    assert cells[-1]["model_options"] == {"seed": "2", "temperature": "0.5"}
    assert all(cell["results"]["outcomes"] == {"ok": 3} for cell in cells)


def test_a_failing_cell_does_not_stop_the_others(few: Path, tmp_path: Path) -> None:
    lines = tmp_path / "empty.jsonl"
    lines.write_text("")
    file = tmp_path / "suite.toml"
    file.write_text(
        f"""
        out = "runs"
        [[tasks]]
        task = "omnigui"
        data = "{tmp_path / "nowhere"}"
        [[tasks]]
        task = "omnigui"
        name = "there"
        data = "{few}"
        [[models]]
        model = "baseline:nobody"
        [[models]]
        model = "replay:{lines}"
        name = "empty"
        [[models]]
        model = "baseline:oracle"
        """
    )
    done = omnidata("suite", file, code=1)
    rows = [line.split() for line in done.stdout.splitlines() if "omnigui " in line]
    assert [row[1:] for row in rows] == [
        [name, *["-"] * (len(rows[0]) - 3), "failed"]
        for name in ("baseline:nobody", "empty", "baseline:oracle")
    ]
    there = {line.split()[1]: line.split() for line in done.stdout.splitlines() if "there " in line}
    assert there["baseline:nobody"][-1] == "failed"
    assert there["empty"][-1] == "failed"  # it answered nothing, which is no score
    assert there["baseline:oracle"][2:4] == ["100.0", "100.0"]
    assert "nowhere" in done.stderr
    assert "baseline:nobody" in done.stderr
    cells = as_json(omnidata("suite", file, "--json", code=1))
    assert [bool(cell["error"]) for cell in cells] == [True, True, True, True, True, False]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("concurrency = 2", "concurency = 2", "concurency"),
        ("concurrency = 2", "concurrency = 0", "concurrency is 0"),
        ('"omnigui"', '"omnigu"', "omnigu"),
        ('history = "none"', 'history = "some"', "-T history=some"),
        ('history = "none"', "histories = 3", "histories"),
        ("limit = 3", 'profile = "best"', "best"),
        ("seed = [1, 2]", "seed = [1, 1]", "would share the folder"),
        ('["I", "IA"]', "[]", "has no run"),
        ("[limits]", "[limits", "cannot be read"),
    ],
)
def test_a_slip_in_the_file_is_found_before_anything_runs(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    file = tmp_path / "suite.toml"
    assert old in SUITE
    file.write_text(SUITE.replace(old, new))
    done = omnidata("suite", file, code=2)
    assert message in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["suite.toml"]
