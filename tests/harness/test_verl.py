"""verl's own dataset and reward manager on our files: `tests/harness/run.sh verl`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.harness.prompts import ANSWERS, Rows, asked, exported, tiny_prompts, worth

pytest.importorskip("verl.trainer.ppo.reward", reason="tests/harness/run.sh verl has it")

import numpy as np
import torch
from omegaconf import OmegaConf
from transformers import AutoProcessor
from verl import DataProto
from verl.experimental.reward_loop.reward_manager import get_reward_manager_cls
from verl.trainer.ppo.reward import get_custom_reward_fn
from verl.utils.dataset.rl_dataset import get_dataset_class
from verl.utils.tokenizer import build_multimodal_processor_inputs

from omnidata.adapters.tiny import make_tiny

OURS = {"path": "pkg://omnidata.training.verl_prompts", "name": "Prompts"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("verl")


@pytest.fixture(scope="module")
def rows(folder: Path) -> Rows:
    return exported(folder, "verl")[1]


@pytest.fixture(scope="module")
def processor(folder: Path, rows: Rows) -> Any:
    texts = tiny_prompts(folder / "data")
    return AutoProcessor.from_pretrained(make_tiny("qwen2.5-omni", folder / "tiny", texts=texts))


def read(folder: Path, processor: Any, **options: Any) -> Any:
    """The rows as verl reads them; the filter of long prompts is on, as by default."""
    given = {"max_prompt_length": 4096, "cache_dir": str(folder / "cache"), **options}
    config = OmegaConf.create(given)
    made: Any = get_dataset_class(config)
    return made(str(folder / "out" / "train.json"), processor.tokenizer, config, processor)


def test_each_row_becomes_a_prompt_with_its_picture_clip_and_sound(
    folder: Path, rows: Rows, processor: Any
) -> None:
    found = read(folder, processor, custom_cls=OURS)
    assert len(found) == len(rows)
    for row, got in zip(rows, found, strict=True):
        said = "".join(
            part if isinstance(part, str) else part.get("text", f"<{part['type']}>")
            for turn in got["raw_prompt"]
            for part in turn["content"]
        )
        assert said == "".join(text for _, text in asked(row))
    prompt = found[0]["raw_prompt"]
    images, videos, audios = asyncio.run(
        type(found).process_multi_modal_info(prompt, image_patch_size=14, config=found.config)
    )
    text = processor.apply_chat_template(prompt, add_generation_prompt=True, tokenize=False)
    made = build_multimodal_processor_inputs(
        processor, text=[text], images=images, videos=videos, audio=audios
    )
    assert {"pixel_values", "pixel_values_videos", "input_features"} <= {*made}


def test_its_own_class_drops_every_row_with_sound(folder: Path, rows: Rows, processor: Any) -> None:
    """Why there is one of ours; once it is mended, ours can go."""
    assert rows
    assert len(read(folder, processor)) == 0


def test_its_reward_manager_gives_what_score_gives(
    folder: Path, rows: Rows, processor: Any
) -> None:
    path = str(folder / "out" / "reward_verl.py")
    named = {"path": path, "name": "compute_score", "reward_kwargs": {}}
    config = OmegaConf.create({"reward": {"custom_reward_function": named}})
    function = get_custom_reward_fn(config)
    words = processor.tokenizer
    wanted = worth(folder, rows)

    async def judged(row: dict[str, Any], text: str) -> float:
        ids = words.encode(text, return_tensors="pt", add_special_tokens=False)
        columns = {
            name: np.array([row[name]], dtype=object)
            for name in ("data_source", "reward_model", "extra_info")
        }
        tensors = {"responses": ids, "attention_mask": torch.ones_like(ids)}
        data = DataProto.from_dict(tensors, non_tensors=columns)
        manager = get_reward_manager_cls("naive")(config, words, function)
        found: float = (await manager.run_single(data))["reward_score"]
        return found

    for row in rows:
        for text in ANSWERS:
            assert asyncio.run(judged(dict(row), text)) == wanted[row["sample_id"], text]
