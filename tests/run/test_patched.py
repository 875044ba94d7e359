"""`-T history=predicted -T patches=N`: the expert's action stands where the model's was wrong."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from omnidata.errors import UsageError
from omnidata.run.engines import Cluster
from omnidata.run.evaluate import evaluate
from omnidata.run.run_info import read_info
from omnidata.tasks import get_task
from omnidata.types import Completion, LoadedDataset
from tests.cli.running import omnidata
from tests.run.scripted import Scripted, finals
from tests.trees import read_lines, row, write_lines, write_rows

WRONG = '{"action_type": 9}'
GOLD = get_task("omnigui")


def patched(most: int | None) -> Any:
    more = {} if most is None else {"patches": str(most)}
    return get_task("omnigui", {"history": "predicted", **more})


def written(folder: Path, lengths: Sequence[int]) -> Path:
    def box(n: int, step: int) -> str:
        return f"[[{20 * n},{40 * step}],[{20 * n + 9},{40 * step + 30}]]"

    rows = [
        row(f"E{n}", step, app="ted", result_touch_xy=box(n, step))
        for n, length in enumerate(lengths)
        for step in range(length)
    ]
    return write_rows(folder / "steps.json", rows)


def loaded(folder: Path, lengths: Sequence[int]) -> LoadedDataset:
    return GOLD.load(written(folder, lengths))


def answering(source: LoadedDataset, wrong: set[str]) -> Callable[[str, int], Completion]:
    right = {step.sample_id: GOLD.target(step) for step in source.steps}

    def reply(sample_id: str, attempt: int) -> Completion:
        target = right[sample_id]
        assert target
        return Completion(text=WRONG if sample_id in wrong else target.text)

    return reply


def rolled(
    source: LoadedDataset, most: int | None, wrong: set[str], run: Path, **how: Any
) -> tuple[dict[str, Any], Scripted]:
    """The results of a run with so many patches, and the model that was asked."""
    model = Scripted(answering(source, wrong))
    return evaluate(patched(most), source, model, run, **how), model


def history(model: Scripted, sample_id: str) -> list[str]:
    """The lines of a prompt that tell what was done."""
    text = model.prompts[sample_id][1].parts[-1].text
    return [line for line in text.split("\n") if line.startswith("Step ")]


def test_a_miss_is_patched_and_one_too_many_ends_the_rollout(tmp_path: Path) -> None:
    source = loaded(tmp_path, [6, 2])
    wrong = {"ted/E0/1", "ted/E0/3", "ted/E1/1"}
    reply = answering(source, wrong)
    aside = Completion(
        text='{"action_type": 0, "coordinate": [10, 15]}'
    )  # in the box, off its middle
    model = Scripted(lambda name, attempt: aside if name == "ted/E0/0" else reply(name, attempt))
    results = evaluate(patched(1), source, model, tmp_path / "run")
    assert set(model.asked) == {*(f"ted/E0/{n}" for n in range(4)), "ted/E1/0", "ted/E1/1"}
    steps = {step.sample_id: step for step in source.steps}
    gold = [
        line
        for line in GOLD.conversation(steps["ted/E0/3"])[1].parts[-1].text.split("\n")
        if line.startswith("Step ")
    ]
    own = history(model, "ted/E0/2")
    assert own[1] == gold[1]  # the expert's
    assert own[0] == "Step 0: TAP at [10, 15]" != gold[0]  # the model's
    assert history(model, "ted/E0/3")[:2] == own
    assert results["patched"] == {
        "patches": 1, "episodes": 2, "patched_steps": 2, "patched_episodes": 2, "ended": 1,
        "not_asked": 2, "reached": pytest.approx((4 / 6 + 1) / 2),
    }  # fmt: skip
    assert results["outcomes"] == {"ok": 6, "missing": 2}
    again, asked = rolled(source, 1, wrong, tmp_path / "run")
    assert again == results and not asked.asked
    assert read_info(tmp_path / "run")["options"]["patches"] == "1"


def test_without_patches_the_rollout_ends_at_the_first_miss_and_progress_is_its_prefix(
    tmp_path: Path,
) -> None:
    source = loaded(tmp_path, [4, 4])
    results, _ = rolled(source, 0, {"ted/E0/2"}, tmp_path / "run")
    assert results["patched"]["reached"] == pytest.approx((3 / 4 + 1) / 2)
    assert results["overall"]["GP_prefix"] == pytest.approx((2 / 4 + 1) / 2)
    assert results["overall"]["SR"] == 0.5


def test_an_answer_that_did_not_come_is_no_miss_and_is_asked_for_again(tmp_path: Path) -> None:
    source = loaded(tmp_path, [4])
    right = answering(source, {"ted/E0/2"})

    def failing(sample_id: str, attempt: int) -> Completion:
        if sample_id == "ted/E0/1":
            return Completion(delivery="api_error", error="503")
        return right(sample_id, attempt)

    with pytest.warns(UserWarning, match="1 of 4 steps got no answer"):
        evaluate(patched(1), source, Scripted(failing), tmp_path / "run")
    results, again = rolled(source, 1, {"ted/E0/1", "ted/E0/2"}, tmp_path / "run")
    assert sorted(again.asked) == ["ted/E0/1", "ted/E0/2"]
    assert results["patched"].items() >= {"ended": 1, "not_asked": 1, "patched_steps": 1}.items()
    assert set(finals(tmp_path / "run").values()) == {"ok"}


def test_the_rollouts_are_what_the_answers_make_of_them(tmp_path: Path) -> None:
    draw = random.Random(0)
    source = loaded(tmp_path, [draw.randint(1, 7) for _ in range(12)])
    wrong = {step.sample_id for step in source.steps if draw.random() < 0.4}
    for most in (0, 1, 2, None):
        results, model = rolled(source, most, wrong, tmp_path / f"run{most}")
        asked, misses = [], dict[str, int]()
        for step in source.steps:
            if most is None or misses.get(step.episode, 0) <= most:
                asked.append(step.sample_id)
                misses[step.episode] = misses.get(step.episode, 0) + (step.sample_id in wrong)
        assert sorted(model.asked) == sorted(asked)
        assert ("patched" in results) == (most is not None)
        if most is not None:
            assert results["patched"]["not_asked"] == len(source.steps) - len(asked)
            assert results["patched"]["ended"] == sum(n > most for n in misses.values())


def test_a_cluster_rolls_out_as_one_machine_does(tmp_path: Path, cluster: Cluster) -> None:
    draw = random.Random(1)
    task, data = patched(1), written(tmp_path / "data", [draw.randint(1, 7) for _ in range(8)])
    source = task.load(data)
    wrong = {step.sample_id for step in source.steps if draw.random() < 0.4}
    reply = answering(source, wrong)
    said = [
        {"sample_id": step.sample_id, "output": reply(step.sample_id, 1).text}
        for step in source.steps
    ]
    model = f"replay:{write_lines(tmp_path / 'said.jsonl', said)}"
    here = evaluate(task, source, model, tmp_path / "here")
    there = evaluate(task, source, model, tmp_path / "there", cluster=cluster)
    assert here == there
    assert here["patched"]["not_asked"] > 0
    both = [
        {line["sample_id"] for line in read_lines(tmp_path / name / "predictions.jsonl")}
        for name in ("here", "there")
    ]
    assert both[0] == both[1]


def test_scores_and_pages_of_such_a_run_are_those_of_its_histories(tmp_path: Path) -> None:
    source = loaded(tmp_path / "data", [4])
    run = tmp_path / "run"
    results, _ = rolled(source, 0, {"ted/E0/1"}, run)
    omnidata("score", "omnigui", tmp_path / "data", run, "--out", run)
    scored = omnidata("score", "omnigui", tmp_path / "data", run, "--json")
    assert '"not_asked": 2' in scored.stdout
    assert results["patched"]["not_asked"] == 2
    omnidata("report", run, "--html", tmp_path / "pages.html")


def test_counts_are_of_answers_that_came_whoever_gave_the_others(tmp_path: Path) -> None:
    """Answers behind a rollout's end, from elsewhere, hide no failure; what stopped got not far."""
    source = loaded(tmp_path / "data", [4, 4])
    reply = answering(source, {"ted/E0/0"})
    said = [
        {"sample_id": step.sample_id, "output": reply(step.sample_id, 1).text}
        for step in source.steps
        if step.sample_id != "ted/E0/2" and step.sample_id not in ("ted/E1/2", "ted/E1/3")
    ]
    answers = write_lines(tmp_path / "said.jsonl", said)
    options = ("-T", "history=predicted", "-T", "patches=0")
    done = omnidata("score", "omnigui", tmp_path / "data", answers, *options, "--json", code=1)
    results = json.loads(done.stdout)
    assert results["outcomes"] == {"ok": 5, "missing": 3}
    assert results["patched"]["not_asked"] == 1
    assert "2 of 8 steps have no full answer" in done.stderr
    assert results["patched"]["reached"] == pytest.approx((1 / 4 + 2 / 4) / 2)


def test_parts_of_such_a_run_are_merged_and_an_unfinished_one_is_refused(tmp_path: Path) -> None:
    source = loaded(tmp_path / "data", [4, 4])
    wrong = {"ted/E0/1", "ted/E1/2"}
    whole, _ = rolled(source, 0, wrong, tmp_path / "whole")
    parts = [tmp_path / str(number) for number in (1, 2)]
    for number, part in enumerate(parts, 1):
        rolled(source, 0, wrong, part, shard=(number, 2))
    omnidata("merge", *parts, "--data", tmp_path / "data", "--out", tmp_path / "merged")
    assert json.loads((tmp_path / "merged" / "results.json").read_text()) == whole
    assert not (tmp_path / "merged" / "samples").exists()
    for part in parts:
        shutil.copytree(part, tmp_path / "sampled" / part.name / "samples" / "02")
        shutil.copytree(part, tmp_path / "sampled" / part.name, dirs_exist_ok=True)
    sampled = [tmp_path / "sampled" / part.name for part in parts]
    said = omnidata("merge", *sampled, "--data", tmp_path / "data", "--out", tmp_path / "again")
    assert "1 other sample of each part" in " ".join(said.stderr.split())
    lines = (parts[0] / "predictions.jsonl").read_text().splitlines()
    (parts[0] / "predictions.jsonl").write_text(lines[0] + "\n")  # the miss was not yet made
    done = omnidata(
        "merge", *parts, "--data", tmp_path / "data", "--out", tmp_path / "more", code=2
    )
    assert "the part is incomplete" in " ".join(done.stderr.split())


def test_patches_of_a_history_that_is_not_the_models_are_bad_usage() -> None:
    for history_of in ("gold", "none"):
        with pytest.raises(UsageError, match="history=predicted"):
            get_task("omnigui", {"history": history_of, "patches": "2"})
    with pytest.raises(UsageError, match="or none"):
        get_task("omnigui", {"history": "predicted", "patches": "-1"})
    plain = get_task("omnigui", {"history": "predicted"})
    assert get_task("omnigui", {"history": "predicted", "patches": "none"}).prompt_hash == (
        plain.prompt_hash
    )
