"""The trainers' own readers, where they are installed, find in an export what was meant.

LLaMA-Factory and ms-swift pin other versions of libraries than omnidata: they are read in processes
of their own, and install beside it without their dependencies:

    pip install --no-deps llamafactory==0.9.5 ms-swift==4.6.0 modelscope modelscope-hub addict \
        dacite json-repair binpacking simplejson sortedcontainers zstandard rouge
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from omnidata.tasks import get_task
from omnidata.training.media_store import Sizing
from tests.conftest import Once
from tests.export.small import answer, load, rows, tree, written
from tests.export.test_preferences import WRONG, asked, exported

ROOT = Path(__file__).resolve().parents[2]


def installed(*names: str) -> pytest.MarkDecorator:
    lacking = [name for name in names if find_spec(name) is None]
    return pytest.mark.skipif(bool(lacking), reason=f"needs {', '.join(lacking)} (see above)")


def child(module: str, *arguments: str | Path) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", f"tests.export.{module}", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "DISABLE_VERSION_CHECK": "1", "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="session")
def data(once: Once) -> Path:
    return once("export-readers", lambda root: tree(root, episodes=2))


@installed("llamafactory")
def test_llamafactory_reads_prompts_answers_and_media(data: Path, tmp_path: Path) -> None:
    written(data, tmp_path / "out")
    found = child("read_llamafactory", tmp_path / "out", "omnigui_train")
    made = rows(tmp_path / "out")
    assert [[row["system"], *row["asked"], *row["answer"]] for row in found] == [
        [turn["content"] for turn in row["messages"]] for row in made
    ]
    for read, row in zip(found, made, strict=True):
        names = [*row["images"], *row["videos"], *row["audios"]]
        assert read["files"] == [str(tmp_path / "out" / name) for name in names]
        assert read["pictures"] == [[72, 160]] * len(row["images"])
        assert read["frames"] == [1]


@installed("swift", "modelscope")
def test_swift_reads_prompts_answers_and_media(data: Path, tmp_path: Path) -> None:
    written(data, tmp_path / "out", format="swift")
    found = child("read_swift", tmp_path / "out" / "train.jsonl", "norm1000")
    for read, row in zip(found, rows(tmp_path / "out"), strict=True):
        system, asked, said = (turn["content"] for turn in row["messages"])
        assert read["roles"] == ["user", "assistant"]
        assert (read["system"], read["asked"], read["answer"]) == (system, asked, said)
        assert (read["videos"], read["audios"]) == (row["videos"], row["audios"])
        assert len(read["pictures"]) == len(row["images"])


@installed("swift", "modelscope")
@pytest.mark.parametrize("unit", ["norm1", "real"])
@pytest.mark.parametrize(("norm", "space"), [("norm1000", "norm1000"), ("none", "px")])
def test_the_answers_that_swift_makes_of_objects_are_exact_matches(
    unit: str, norm: str, space: str, data: Path, tmp_path: Path
) -> None:
    """Both for models of parts of a thousand and for those of pixels after the resize."""
    small = Sizing(factor=28)
    written(data, tmp_path / "out", format="swift", objects=unit, sizing=small)
    found = child("read_swift", tmp_path / "out" / "train.jsonl", norm)
    names = [row["sample_id"] for row in rows(tmp_path / "out")]
    steps = {step.sample_id: step for step in load(data).steps}
    profile = get_task("omnigui", {"coordinates": space}).profiles["omnigui-paper"]
    for name, read in zip(names, found, strict=True):
        width, height = read["pictures"][-1]
        assert (width, height) == (84, 168)
        line = {"role": "screenshot", "width": width, "height": height, "original": [72, 160]}
        verdict = profile.judge(steps[name], read["answer"], {"parts": [line]})
        assert verdict.values[1] is True, read["answer"]


@pytest.fixture(scope="session")
def runs(once: Once) -> Path:

    def make(root: Path) -> None:
        data = tree(root / "data", episodes=2)
        asked(data, root / "a")
        asked(data, root / "b", WRONG)

    return once("export-preferences", make)


@installed("llamafactory")
def test_llamafactory_reads_pairs_and_tags(runs: Path, tmp_path: Path) -> None:
    both = [runs / "a", runs / "b"]
    exported(runs / "data", tmp_path / "dpo", both, "llamafactory-dpo")
    found = child("read_llamafactory", tmp_path / "dpo", "omnigui_train")
    for read, row in zip(found, rows(tmp_path / "dpo"), strict=True):
        assert read["answer"] == [row["chosen"]["content"], row["rejected"]["content"]]
        assert [read["system"], *read["asked"]] == [turn["content"] for turn in row["messages"]]
        names = [*row["images"], *row["videos"], *row["audios"]]
        assert read["files"] == [str(tmp_path / "dpo" / name) for name in names]
    exported(runs / "data", tmp_path / "kto", both, "llamafactory-kto")
    found = child("read_llamafactory", tmp_path / "kto", "omnigui_train")
    for read, row in zip(found, rows(tmp_path / "kto"), strict=True):
        said = row["messages"][-1]["content"]
        assert read["answer"] == ([said, ""] if row["kto_tag"] else ["", said])


@installed("swift", "modelscope")
def test_swift_reads_pairs(runs: Path, tmp_path: Path) -> None:
    exported(runs / "data", tmp_path / "out", [runs / "a", runs / "b"])
    found = child("read_preferences", tmp_path / "out")
    for read, row in zip(found, rows(tmp_path / "out"), strict=True):
        system, said, right = (turn["content"] for turn in row["messages"])
        for side, answer_ in (("chosen", right), ("rejected", row["rejected_response"])):
            assert read[side] == {
                "system": system, "asked": said, "answer": answer_, "images": len(row["images"]),
                "videos": row["videos"], "audios": row["audios"],
            }  # fmt: skip


@pytest.mark.full("half a minute of a trainer")
@installed("trl", "torch", "transformers")
@pytest.mark.parametrize("form", ["trl-dpo", "trl-kto"])
def test_trls_trainers_prefer_what_is_right(form: str, runs: Path, tmp_path: Path) -> None:
    from omnidata.adapters.tiny import make_tiny

    checkpoint = make_tiny("qwen2.5-omni", tmp_path / "tiny")
    exported(runs / "data", tmp_path / "out", [runs / "a", runs / "b"], form, "--frames", "2")
    found = child("read_preferences", tmp_path / "out", checkpoint, form)
    first, second = rows(tmp_path / "out")[:2]
    if form == "trl-dpo":  # the right answers of the batch, then the wrong ones
        said = [first["chosen"], second["chosen"], first["rejected"], second["rejected"]]
    else:
        said = [first["completion"], second["completion"]]
    for text, turn in zip(found["texts"], said, strict=False):
        assert turn[0]["content"][0]["text"] in text
    assert found["pictures"] == len(first["images"] + second["images"]) * (
        2 if form == "trl-dpo" else 1
    )
    assert all(math.isfinite(loss) for loss in found["losses"])
    assert found["margins"][0] == 0 < 0.5 < found["margins"][-1]


@pytest.mark.full("a quarter of a minute of a trainer")
@installed("trl", "torch", "transformers")
def test_trls_trainer_learns_the_answer_and_nothing_else(data: Path, tmp_path: Path) -> None:
    from omnidata.adapters.tiny import make_tiny

    checkpoint = make_tiny("qwen2.5-omni", tmp_path / "tiny")
    written(data, tmp_path / "out", format="trl", video="frames", frames=2, drop_audio=True)
    found = child("read_trl", tmp_path / "out", checkpoint)
    for read, row in zip(found["rows"], rows(tmp_path / "out"), strict=True):
        text = read["labels"].replace("<|im_end|>", "").strip()
        assert text == answer(row)
        assert read["pictures"] == len(row["images"])
    assert math.isfinite(found["loss"])
