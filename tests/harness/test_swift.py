"""ms-swift on our rows and with our reward: `tests/harness/run.sh swift`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.prompts import ANSWERS, Rows, asked, exported, tiny_prompts, worth

pytest.importorskip("swift.rewards", reason="tests/harness/run.sh swift has it")

import torch
from safetensors.torch import load_file
from swift.dataset import load_dataset
from swift.rewards import orms
from swift.utils import import_external_file
from transformers import (
    AutoProcessor,
    Qwen2_5OmniConfig,
    Qwen2_5OmniForConditionalGeneration,
    Qwen2_5OmniThinkerForConditionalGeneration,
)

from omnidata.adapters.tiny import make_tiny

SPREAD = """
from swift.rewards import ORM, orms


class Spread(ORM):
    def __call__(self, completions, **kwargs):
        return [float(number % 2) for number in range(len(completions))]


orms["spread"] = Spread
"""
"""Random weights are all wrong: groups need something to be told apart by."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("swift")


@pytest.fixture(scope="module")
def rows(folder: Path) -> Rows:
    return exported(folder, "swift-grpo")[1]


@pytest.fixture(scope="module")
def model(folder: Path, rows: Rows) -> Path:
    """A whole Qwen2.5-Omni without its voice, as ms-swift loads it, around a tiny thinker."""
    assert rows
    tiny = make_tiny("qwen2.5-omni", folder / "tiny", texts=tiny_prompts(folder / "data"))
    thinker = Qwen2_5OmniThinkerForConditionalGeneration.from_pretrained(tiny)
    about = Qwen2_5OmniConfig(thinker_config=thinker.config.to_dict(), enable_audio_output=False)
    whole = Qwen2_5OmniForConditionalGeneration(about)
    whole.thinker = thinker
    whole.save_pretrained(folder / "whole")
    AutoProcessor.from_pretrained(tiny).save_pretrained(folder / "whole")
    torch.save({}, folder / "whole" / "spk_dict.pt")  # its voices
    return folder / "whole"


def test_its_preprocessor_keeps_the_turns_the_media_and_our_columns(
    folder: Path, rows: Rows
) -> None:
    path = str(folder / "out" / "train.jsonl")
    options = {"remove_unused_columns": False, "load_from_cache_file": False, "strict": True}
    found, _ = load_dataset([path], **options)
    assert len(found) == len(rows)
    for row, got in zip(rows, found, strict=True):
        turns = [(turn["role"], turn["content"]) for turn in got["messages"]]
        assert turns == asked(row)
        assert [image["path"] for image in got["images"]] == row["images"]
        for name in ("videos", "audios", "sample_id", "receipt"):
            assert got[name] == row[name]


def test_its_registry_gives_what_score_gives(folder: Path, rows: Rows) -> None:
    import_external_file(str(folder / "out" / "reward_swift.py"))
    reward = orms["omnidata"](args=None)
    wanted = worth(folder, rows)
    for text in ANSWERS:
        columns = {name: [row[name] for row in rows] for name in ("sample_id", "receipt")}
        got = reward([text] * len(rows), **columns)
        assert got == [wanted[row["sample_id"], text] for row in rows]


def test_it_trains_eyes_ears_and_words(folder: Path, model: Path, tmp_path: Path) -> None:
    """One step on two answers to a prompt with a picture, a clip and a sound."""
    plugin = tmp_path / "spread.py"
    plugin.write_text(SPREAD)
    out = folder / "out"
    options = {
        "model": model, "model_type": "qwen2_5_omni", "template": "qwen2_5_omni",
        "tuner_type": "full", "torch_dtype": "float32", "bf16": "false", "fp16": "false",
        "attn_impl": "eager", "freeze_vit": "false", "freeze_aligner": "false",
        "dataset": out / "train.jsonl", "load_from_cache_file": "false", "use_hf": "true",
        "max_completion_length": 8, "num_generations": 2, "per_device_train_batch_size": 2,
        "gradient_accumulation_steps": 1, "max_steps": 1, "learning_rate": "1e-2", "beta": 0,
        "warmup_ratio": 0, "output_dir": tmp_path / "run", "add_version": "false",
        "logging_steps": 1, "save_strategy": "steps", "save_steps": 1, "report_to": "none",
        "save_only_model": "true", "gradient_checkpointing": "false",
    }  # fmt: skip
    swift = str(Path(sys.executable).with_name("swift"))
    command = [swift, "rlhf", "--rlhf_type", "grpo"]
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    command += ["--external_plugins", str(out / "reward_swift.py"), str(plugin)]
    command += ["--reward_funcs", "omnidata", "spread"]
    own = {"ROOT_IMAGE_DIR": str(out), "MODELSCOPE_CACHE": str(tmp_path / "cache")}
    with (tmp_path / "log").open("w") as log:
        done = subprocess.run(
            command, stdout=log, stderr=log, env={**os.environ, **own}, timeout=900
        )
    assert done.returncode == 0, (tmp_path / "log").read_text()[-3000:]
    before = load_file(model / "model.safetensors")
    after = load_file(tmp_path / "run" / "checkpoint-1" / "model.safetensors")
    for part in ("audio_tower", "visual", "thinker.model"):
        names = [name for name in before if part in name]
        moved = [name for name in names if not torch.equal(before[name], after[name])]
        assert len(moved) >= len(names) - 2 > 0, part  # a bias may add nothing
    lines = (tmp_path / "run" / "logging.jsonl").read_text().splitlines()
    assert "rewards/Omnidata/mean" in json.loads(lines[0])
