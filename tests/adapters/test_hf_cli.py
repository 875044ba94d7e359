"""Local models through the command line: ablations, AgentStudio, damage, kills, repetition."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from omnidata.tasks import get_task
from tests.adapters.local_models import FAMILIES, Spy, checkpoint
from tests.cli.running import here
from tests.conftest import Once
from tests.export.small import tree
from tests.full import in_gate
from tests.loaders import agentstudio as rows
from tests.trees import read_lines

FEW = ("-M", "max_new_tokens=3")
STUDIO = ("criticbench", "groundui", "idm-single", "idm-multiple")
KINDS = {"I": "image", "V": "video", "A": "audio"}


@pytest.fixture(scope="module")
def data(once: Once) -> Path:
    """Two episodes with all media, eight steps; nobody writes into them."""
    return once("two-episodes", lambda folder: tree(folder, episodes=2))


def evaluate(
    task: str, data: Path, folder: Path, run: Path, *more: str
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The command, in this process; its results, and the predictions by sample."""
    argv = ["evaluate", task, data, "--model", f"hf:{folder}", "--out", run, *FEW, *more]
    done = here(*argv, "--json", code=None)
    assert done.returncode in (0, 1), done.stderr  # 1: random models rarely end an answer
    return json.loads(done.stdout), predictions(run)


def predictions(run: Path) -> dict[str, dict[str, Any]]:
    return {line["sample_id"]: line for line in read_lines(run / "predictions.jsonl")}


ABLATIONS = (("IAV", "predicted"), ("I", "none"), ("IV", "predicted"), ("IA", "none"))


@pytest.mark.parametrize("asked", in_gate(ABLATIONS, 2, "a run; modalities are the task's"))
def test_every_ablation_of_omnigui_runs(
    once: Once, data: Path, tmp_path: Path, asked: tuple[str, str]
) -> None:
    modalities, history = asked
    family = FAMILIES[len(modalities) % len(FAMILIES)]
    results, answers = evaluate(
        *("omnigui", data, checkpoint(once, family), tmp_path / "run", "--limit", "2"),
        *("-T", f"modalities={modalities}", "-T", f"history={history}", "-M", "batch_size=2"),
    )
    assert results["counts"]["steps"] == len(answers) == 2
    assert results["counts"].get("degraded", 0) == 0
    for line in answers.values():
        assert line["delivery"] in ("ok", "truncated"), line
        kinds = {part["kind"] for part in line["receipt"]["parts"]}
        assert kinds == {KINDS[letter] for letter in modalities}
        assert set(line["receipt"]["tokens"]) == {"text", *kinds}


def agentstudio(task: str, folder: Path) -> Path:
    made = {
        "groundui": [rows.ground()],
        "idm-single": [rows.single()],
        "idm-multiple": [rows.trajectory()],
        "criticbench": [rows.trajectory(), rows.trajectory(is_success=False)],
    }
    folder.mkdir()
    data = rows.write(folder / "rows.jsonl", *made[task])
    for number, name in enumerate(("a.png", "m2w/0.png", "m2w/1.png", "m2w/2.png")):
        path = folder / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (144, 90), (60 * number, 90, 30)).save(path)
    return data


@pytest.mark.parametrize("task", in_gate(STUDIO, 2, "the prompts are tested without a model"))
def test_every_task_of_agentstudio_runs(once: Once, tmp_path: Path, task: str) -> None:
    data = agentstudio(task, tmp_path / "data")
    folder = checkpoint(once, "qwen3-omni")
    results, answers = evaluate(task, data, folder, tmp_path / "run", "-M", "batch_size=2")
    assert answers and results["task"] == task
    for line in answers.values():
        assert line["delivery"] in ("ok", "truncated"), line
        assert {part["kind"] for part in line["receipt"]["parts"]} == {"image"}


def test_a_corrupt_clip_fails_its_step_and_the_batch_goes_on(
    once: Once, data: Path, tmp_path: Path
) -> None:
    shutil.copytree(data, tmp_path / "data")
    step = get_task("omnigui").load(tmp_path / "data").steps[1]
    ref = step.media["video"]
    assert ref is not None
    clip = ref.root / ref.path
    clip.write_bytes(clip.read_bytes()[:400])
    results, answers = evaluate(
        *("omnigui", tmp_path / "data", checkpoint(once, "qwen2.5-omni"), tmp_path / "run"),
        *("--limit", "3", "-M", "batch_size=3"),
    )
    assert len(answers) == 3
    assert answers[step.sample_id]["delivery"] == "media_error"
    assert clip.name in answers[step.sample_id]["error"]
    others = {line["delivery"] for name, line in answers.items() if name != step.sample_id}
    assert others <= {"truncated", "ok"}
    assert results["outcomes"]["media_error"] == 1


def test_sampling_says_the_same_with_the_same_seed_only(
    once: Once, data: Path, tmp_path: Path
) -> None:
    said = []
    for number, seed in enumerate(("1", "1", "2")):
        _, answers = evaluate(
            *("omnigui", data, checkpoint(once, "qwen2.5-omni"), tmp_path / str(number)),
            *("--limit", "1", "-T", "modalities=I", "-M", "temperature=1", "-M", f"seed={seed}"),
        )
        said.append({name: line["output"] for name, line in answers.items()})
    assert said[0] == said[1] != said[2]


def test_an_answer_that_ends_is_told_from_one_that_is_cut(
    once: Once, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = checkpoint(once, "qwen2.5-omni")
    spy = Spy(monkeypatch)
    more = ("--limit", "1", "-T", "modalities=I")
    _, cut = evaluate("omnigui", data, tiny, tmp_path / "cut", *more)
    [line] = cut.values()
    assert line["delivery"] == "truncated"
    assert line["usage"]["completion_tokens"] == 3 and "3 tokens" in line["error"]
    second = int(spy.outputs[0][0, -2])
    assert second != int(spy.outputs[0][0, -3])
    folder = shutil.copytree(tiny, tmp_path / "brief")
    config = json.loads((folder / "generation_config.json").read_text())
    config["eos_token_id"] = [config["eos_token_id"], second]
    (folder / "generation_config.json").write_text(json.dumps(config))
    _, ended = evaluate("omnigui", data, folder, tmp_path / "ended", *more)
    [line] = ended.values()
    assert line["delivery"] == "ok"
    assert line["usage"]["completion_tokens"] == 2
