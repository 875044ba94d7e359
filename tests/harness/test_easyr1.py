"""EasyR1's own dataset and reward manager on our files: `tests/harness/run.sh easyr1`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.prompts import ANSWERS, Rows, exported, tiny_prompts, worth

pytest.importorskip("verl.workers.reward.function", reason="tests/harness/run.sh easyr1 has it")

import numpy as np
import torch
from transformers import Qwen2_5_VLProcessor, Qwen2VLImageProcessor, Qwen2VLVideoProcessor
from verl.protocol import DataProto
from verl.utils.dataset import RLHFDataset
from verl.workers.reward.config import RewardConfig
from verl.workers.reward.function import AutoRewardManager

from omnidata.adapters.tiny import tokenizer

NAMES = {
    "image_token": "<|image_pad|>",
    "video_token": "<|video_pad|>",
    "vision_bos_token": "<|vision_start|>",
    "vision_eos_token": "<|vision_end|>",
}
TEMPLATE = """\
{% for message in messages %}<|im_start|>{{ message.role }}
{% for part in message.content %}\
{% if part.type == "text" %}{{ part.text }}\
{% else %}<|vision_start|><|{{ part.type }}_pad|><|vision_end|>{% endif %}\
{% endfor %}<|im_end|>
{% endfor %}<|im_start|>assistant
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("easyr1")


@pytest.fixture(scope="module")
def rows(folder: Path) -> Rows:
    return exported(folder, "easyr1", video="frames", drop_audio=True)[1]


@pytest.fixture(scope="module")
def processor(folder: Path, rows: Rows) -> Any:
    assert rows
    texts = tiny_prompts(folder / "data")
    words = tokenizer("<|im_start|>", "<|im_end|>", "<|endoftext|>", NAMES, texts)
    sizes = {"shortest_edge": 4 * 28 * 28, "longest_edge": 64 * 28 * 28}
    return Qwen2_5_VLProcessor(
        image_processor=Qwen2VLImageProcessor(size=sizes),
        tokenizer=words,
        video_processor=Qwen2VLVideoProcessor(size=sizes),
        chat_template=TEMPLATE,
    )


def test_each_row_becomes_a_prompt_with_its_pictures(
    folder: Path, rows: Rows, processor: Any
) -> None:
    found = RLHFDataset(
        str(folder / "out" / "train.jsonl"),
        processor.tokenizer,
        processor,
        image_dir=str(folder / "out"),
        max_prompt_length=4096,
        filter_overlong_prompts_workers=1,
    )
    assert len(found) == len(rows)
    for row, got in zip(rows, found, strict=True):
        assert got["ground_truth"] == row["answer"]
        pictures = got["multi_modal_data"]["images"]
        assert pictures == [str(folder / "out" / name) for name in row["images"]]
        text = processor.tokenizer.decode(got["raw_prompt_ids"])
        assert text.count("<|image_pad|>") == len(pictures)
        assert row["prompt"].split("<image>")[-1] in text


def test_its_reward_manager_gives_what_score_gives(
    folder: Path, rows: Rows, processor: Any
) -> None:
    path = str(folder / "out" / "reward_easyr1.py")
    config = RewardConfig(reward_function=f"{path}:compute_score")
    config.post_init()
    words = processor.tokenizer
    manager = AutoRewardManager(config, words)
    wanted = worth(folder, rows)
    for text in ANSWERS:
        ids = words.encode(text, return_tensors="pt", add_special_tokens=False)
        ids = ids.repeat(len(rows), 1)
        truths = np.array([row["answer"] for row in rows], dtype=object)
        data = DataProto.from_dict(
            tensors={"responses": ids, "response_mask": torch.ones_like(ids)},
            non_tensors={"ground_truth": truths},
        )
        rewards, _ = manager.compute_reward(data)
        for row, given in zip(rows, rewards.sum(-1).tolist(), strict=True):
            assert given == wanted[row["sample_id"], text]
