"""`export --histories RUN`: prompts that tell what the model did in a run, misses patched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omnidata.run.evaluate import evaluate
from omnidata.tasks import get_task
from omnidata.training import load_reward
from omnidata.types import Completion
from tests.cli.running import EXPORT, as_json, omnidata
from tests.export.small import BACK, SWIPE, TAP, rows, tree
from tests.run.scripted import Scripted

HOME = '{"action_type": 9}'
OPTIONS = {"history": "predicted", "patches": "1", "modalities": "I"}
MISSED = {"App/E00/1", "App/E01/0", "App/E01/1"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tree(tmp_path / "data", episodes=2, actions=[TAP, SWIPE, BACK, BACK])


@pytest.fixture
def run(data: Path, tmp_path: Path) -> Path:
    """Goes on to the end in one episode, and only to the second step in the other."""
    task = get_task("omnigui", OPTIONS)
    source = task.load(data)
    targets = {step.sample_id: task.target(step) for step in source.steps}

    def reply(sample_id: str, attempt: int) -> Completion:
        target = targets[sample_id]
        assert target
        return Completion(text=HOME if sample_id in MISSED else target.text)

    model = Scripted(reply)
    evaluate(task, source, model, tmp_path / "run")
    for sample_id, prompt in model.prompts.items():
        (tmp_path / f"{sample_id.replace('/', '-')}.txt").write_text(prompt[1].parts[-1].text)
    return tmp_path / "run"


def exported(data: Path, out: Path, *more: str | Path) -> None:
    omnidata(*EXPORT, "omnigui", data, out, "--split", "train=1", *more)


def test_the_prompts_are_those_that_the_run_had(data: Path, run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    exported(data, out, "--format", "trl-grpo", "--histories", run)
    found = {row["sample_id"]: row["prompt"][-1]["content"][-1]["text"] for row in rows(out)}
    assert set(found) == {*(f"App/E00/{n}" for n in range(4)), "App/E01/0", "App/E01/1"}
    for sample_id, text in found.items():
        assert text == (tmp_path / f"{sample_id.replace('/', '-')}.txt").read_text()
    report = json.loads((out / "export.json").read_text())
    assert report["histories"] == {
        "run": str(run), "model": "scripted", "steps": 6, "not_reached": 2,
    }  # fmt: skip
    assert report["task_options"]["patches"] == "1"
    # All steps of what is trained on are kept out of an evaluation, reached or not.
    seen = (out / "seen.txt").read_text()
    assert "App/E01/3" in seen
    reward = load_reward(out / "reward.json")
    target = get_task("omnigui").load(data).steps[2]
    right = get_task("omnigui").target(target)
    assert right
    assert reward.score(target.sample_id, right.text)["exact_match"]
    exported(data, tmp_path / "supervised", "--format", "trl", "--histories", run)
    assert len(rows(tmp_path / "supervised")) == 6


def test_what_comes_after_a_failure_is_left_out_and_counted(
    data: Path, run: Path, tmp_path: Path
) -> None:
    lines = (run / "predictions.jsonl").read_text().splitlines()
    kept = [line for line in lines if '"App/E00/1"' not in line]
    (run / "predictions.jsonl").write_text("\n".join(kept) + "\n")
    out = tmp_path / "out"
    exported(data, out, "--format", "trl-grpo", "--histories", run)
    report = json.loads((out / "export.json").read_text())
    assert report["histories"].items() >= {
        "steps": 4, "after_no_answer": 2, "not_reached": 2,
    }.items()  # fmt: skip


def test_what_cannot_be_meant_is_bad_usage(data: Path, run: Path, tmp_path: Path) -> None:
    out, gold = tmp_path / "out", tmp_path / "gold"
    omnidata("evaluate", "omnigui", data, "--model", "baseline:oracle", "--out", gold)
    for more, said in (
        (("--format", "trl-grpo", "--histories", gold), "do not show the model's own"),
        (("--format", "trl-dpo", "--pairs", run, "--histories", run), "one of the two"),
        (("--format", "trl-grpo", "-T", "history=predicted"), "or --histories RUN"),
        (("--format", "trl-grpo", "--histories", run, "-T", "patches=2"), "had other prompts"),
    ):
        words = (*EXPORT, "omnigui", data, out, "--split", "train=1", *more)
        assert said in " ".join(omnidata(*words, code=2).stderr.split()), more
    assert not out.exists()
    info = as_json(omnidata("info", "omnigui", "--json"))
    assert "patches" not in info["options"]
