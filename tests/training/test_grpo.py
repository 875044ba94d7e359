"""Reinforcement learning with sound and clips: all of the model learns, by the table's rules."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnidata.errors import UsageError
from omnidata.predictions import Prediction
from omnidata.run.scoring import score as run_score
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.training.media_store import Sizing
from omnidata.types import LoadedDataset, Step
from tests.adapters.local_models import checkpoint, torch
from tests.conftest import Once
from tests.training.exporting import written

pytest.importorskip("trl", reason="needs the extra `train`")
pytestmark = [
    pytest.mark.slow,
    # TRL asks transformers for what is renamed in its next version.
    pytest.mark.filterwarnings("ignore:.* is deprecated and will be removed in v6:FutureWarning"),
]
SMALL = {"image_size": "100", "min_video_pixels": "3136", "max_video_pixels": "50176"}
QUIET: dict[str, Any] = {
    "per_device_train_batch_size": 2, "logging_steps": 1, "save_strategy": "no", "use_cpu": True,
    "bf16": False, "report_to": [], "disable_tqdm": True, "activation_checkpointing": False,
    "dataloader_pin_memory": False,
}  # fmt: skip
TOWERS = {"audio_tower": "sound", "visual": "pictures and clips", "": "text"}


@pytest.fixture(scope="module")
def task() -> Asking:
    return get_task("omnigui")


@pytest.fixture(scope="module")
def source(data: Path, task: Asking) -> LoadedDataset:
    return task.load(data, check_media=False)


@dataclass
class Sampled:
    """What a trainer sampled, and what it made of it."""

    texts: list[tuple[str, str, bool]] = field(default_factory=list)
    rewards: list[float | None] = field(default_factory=list)
    moved: dict[str, tuple[int, int]] = field(default_factory=dict)
    logs: list[dict[str, float]] = field(default_factory=list)


def trainer(once: Once, task: Asking, steps: Any, out: Path, function: Any, **changes: Any) -> Any:
    from transformers import AutoModelForMultimodalLM
    from trl.trainer.grpo_config import GRPOConfig

    from omnidata.training import OmniGRPOTrainer, OmniPrompts, prompt_table

    folder = checkpoint(once, "qwen2.5-omni")
    settings: dict[str, Any] = {
        "max_steps": 3, "steps_per_generation": 2, "num_generations": 2,
        "max_completion_length": 6, "beta": 0.04, "learning_rate": 1e-2, "seed": 1,
    }  # fmt: skip
    return OmniGRPOTrainer(
        AutoModelForMultimodalLM.from_pretrained(folder),
        function,
        args=GRPOConfig(output_dir=str(out), **QUIET | settings | changes),
        train_dataset=prompt_table(task, steps),
        prompts=OmniPrompts(folder, task, options=SMALL),
    )


def stock_trainer(folder: Path, rows: Any, function: Any, out: Path, **settings: Any) -> Any:
    """TRL's own, for one step on two answers to a prompt."""
    from transformers import AutoModelForMultimodalLM, AutoProcessor
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.grpo_trainer import GRPOTrainer

    return GRPOTrainer(
        AutoModelForMultimodalLM.from_pretrained(folder),
        function,
        args=GRPOConfig(output_dir=str(out), max_steps=1, num_generations=2, **QUIET | settings),
        train_dataset=rows,
        processing_class=AutoProcessor.from_pretrained(folder),
    )


def tower(name: str) -> str:
    return next(part for part in TOWERS if part in name)


@pytest.fixture(scope="module")
def run(
    once: Once, task: Asking, source: LoadedDataset, tmp_path_factory: pytest.TempPathFactory
) -> Sampled:
    """Three steps: two on two prompts with two answers each, one on another two; with KL.

    Steps that are no whole generation are scored by the older self as well.
    """
    from omnidata.training import Reward, TrlReward

    found = Sampled()
    judge = TrlReward(Reward(task, source))

    def spread(completions: Any, sample_id: Any, completion_ids: Any, **_: Any) -> list[float]:
        """Random weights are all wrong: groups need something to be told apart by."""
        for name, said, ids in zip(sample_id, completions, completion_ids, strict=True):
            ended = ids[-1] in made.eos_token_ids
            found.texts.append((name, said[0]["content"], ended))
        return [float(number % 2) for number in range(len(completions))]

    class Recording(type(judge)):  # type: ignore[misc]
        def __call__(self, *given: Any, **columns: Any) -> Any:
            got = super().__call__(*given, **columns)
            found.rewards += got
            return got

    made = trainer(
        once, task, source, tmp_path_factory.mktemp("grpo"), [spread, Recording(judge.reward)]
    )
    before = {name: value.detach().clone() for name, value in made.model.named_parameters()}
    made.train()
    for name, value in made.model.named_parameters():
        moved, count = found.moved.get(tower(name), (0, 0))
        changed = not torch.equal(before[name], value)
        found.moved[tower(name)] = (moved + changed, count + 1)
    found.logs = made.state.log_history
    return found


def test_ears_eyes_and_words_all_learn(run: Sampled) -> None:
    for part, (moved, count) in run.moved.items():
        assert count and moved >= count - 1, TOWERS[part]  # a bias may add nothing


def test_the_reference_hears_what_the_policy_hears(run: Sampled) -> None:
    """They are one model before the first step; rows are shuffled and split in between."""
    assert run.logs[0]["kl"] == pytest.approx(0, abs=1e-6)
    assert run.logs[1]["kl"] > 1e-5


def test_rewards_are_those_of_the_table(
    run: Sampled, once: Once, task: Asking, source: LoadedDataset, tmp_path: Path
) -> None:
    whole = np.ones(len(source.steps), dtype=np.bool_)
    assert len(run.texts) == len(run.rewards) == 8
    for (name, text, ended), got in zip(run.texts, run.rewards, strict=True):
        answer = Prediction(sample_id=name, output=text, delivery="ok" if ended else "truncated")
        profile = task.profiles[task.default_profile]
        run_score(task, profile, source.steps, [answer], whole=whole, out=tmp_path)
        lines = (tmp_path / "scores.jsonl").read_text(encoding="utf-8").splitlines()
        line = next(each for each in map(json.loads, lines) if each["sample_id"] == name)
        worth = 0.1 * line["format_ok"] + 0.4 * line["type_match"] + 0.5 * line["exact_match"]
        assert got == pytest.approx(worth)


def test_tm_and_em_are_logged(run: Sampled) -> None:
    assert {"TM", "EM"} <= run.logs[0].keys()


def test_an_answer_is_scored_with_all_that_the_model_saw(
    once: Once, task: Asking, source: LoadedDataset, tmp_path: Path
) -> None:
    """Against the collator of supervised training; rows in other orders and chunks, too."""
    from omnidata.torch import OmniCollator
    from omnidata.training import Reward

    steps: list[Step] = [source.steps[0], source.steps[5]]
    made = trainer(once, task, steps, tmp_path, Reward(task, source))
    collate = OmniCollator(checkpoint(once, "qwen2.5-omni"), task, options=SMALL)
    for order in ([0, 1], [1, 0]):
        prompts = [made._prompts.of(steps[number]) for number in order]
        batches = [collate([steps[number]]) for number in order]
        answers = [batch["input_ids"][0][batch["labels"][0] != -100] for batch in batches]
        width, most = max(len(p.ids) for p in prompts), max(map(len, answers))
        ids = torch.zeros((2, width + most), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
            filled = slice(width - len(prompt.ids), width + len(answer))
            ids[row, filled] = torch.cat([prompt.ids, answer])
            mask[row, filled] = 1
        made._scored = prompts
        made.model.eval()
        for size in (1, 2):
            with torch.no_grad():
                logps, _, _ = made._get_per_token_logps_and_entropies(
                    made.model, ids, mask, most, batch_size=size
                )
            for row, (batch, answer) in enumerate(zip(batches, answers, strict=True)):
                with torch.no_grad():
                    logits = made.model(**{k: v for k, v in batch.items() if k != "labels"}).logits
                wanted = logits[0, -len(answer) - 1 : -1].log_softmax(-1)
                wanted = wanted.gather(1, answer[:, None])[:, 0]
                assert torch.allclose(logps[row, : len(answer)], wanted, atol=2e-4)


def test_media_are_never_sampled(
    once: Once, task: Asking, source: LoadedDataset, tmp_path: Path
) -> None:
    from omnidata.training import Reward

    made = trainer(once, task, source, tmp_path, Reward(task, source))
    words = made.processing_class.tokenizer
    names = ("<|AUDIO|>", "<|IMAGE|>", "<|VIDEO|>", "<|audio_bos|>", "<|vision_eos|>")
    wanted = {words.convert_tokens_to_ids(name) for name in names}
    assert None not in wanted
    assert wanted <= {*made.generation_config.suppress_tokens}


def test_the_stock_trainer_is_refused_where_it_would_not_hear(
    once: Once, task: Asking, source: LoadedDataset, tmp_path: Path
) -> None:
    """TRL's own trainer runs on a prompt with sound, and trains as if there were none."""
    import datasets

    from omnidata.training import Reward, TrlReward, prompt_table

    folder = checkpoint(once, "qwen2.5-omni")
    step = source.steps[0]

    def heard(rows: Any) -> dict[str, Any]:
        part = {"type": "audio", "audio": np.zeros(16_000, np.float32)}
        said = {"type": "text", "text": "What is it?"}
        count = len(rows["number"])
        return {
            "prompt": [[{"role": "user", "content": [part, said]}]] * count,
            "sample_id": [step.sample_id] * count,
        }

    sounds = datasets.Dataset.from_dict({"number": [0, 1]}).with_transform(heard)
    for rows in (sounds, prompt_table(task, source)):
        reward = TrlReward(Reward(task, source))
        stock = stock_trainer(folder, rows, reward, tmp_path, max_completion_length=2)
        with pytest.raises(UsageError, match="OmniGRPOTrainer"):
            stock.train()


def test_the_stock_trainer_takes_an_export_of_pictures(
    once: Once, data: Path, task: Asking, tmp_path: Path
) -> None:
    """As docs/reinforce.md says it."""
    import datasets

    from omnidata.training import OmniPrompts, TrlReward, load_reward

    folder, out = checkpoint(once, "qwen2.5-omni"), tmp_path / "out"
    few = {"video": "frames", "frames": 1, "drop_audio": True, "sizing": Sizing(longest=100)}
    written(task, data, out, "trl-grpo", **few)
    rows = datasets.load_dataset(
        "json", data_files=str(out / "train.jsonl"), split="train", cache_dir=str(tmp_path / "c")
    )
    rows = rows.map(lambda row: {"images": [str(out / name) for name in row["images"]]})
    rows = rows.cast_column("images", datasets.List(datasets.Image()))
    suppressed = {"suppress_tokens": OmniPrompts(folder, task).media_tokens}
    stock = stock_trainer(
        folder, rows, TrlReward(load_reward(out / "reward.json")), tmp_path / "trained",
        max_completion_length=4, generation_kwargs=suppressed,
    )  # fmt: skip
    stock.train()
    assert {"TM", "EM", "reward"} <= stock.state.log_history[0].keys()


def test_what_is_not_covered_is_refused(
    once: Once, task: Asking, source: LoadedDataset, tmp_path: Path
) -> None:
    from omnidata.training import OmniPrompts, Reward

    reward = Reward(task, source)
    for changes in (
        {"use_transformers_continuous_batching": True},
        {"use_liger_kernel": True},
        {"remove_unused_columns": True},
    ):
        with pytest.raises(UsageError, match="not supported"):
            trainer(once, task, source, tmp_path, reward, **changes)
    with pytest.raises(UsageError, match="own answers"):
        OmniPrompts(checkpoint(once, "qwen2.5-omni"), get_task("omnigui", {"history": "predicted"}))


def test_an_export_and_a_run_are_rows_for_the_trainer(
    once: Once, data: Path, task: Asking, source: LoadedDataset, tmp_path: Path
) -> None:
    from omnidata.run.evaluate import evaluate
    from omnidata.training import OmniPrompts, exported_prompts, prompt_table, run_histories

    out = tmp_path / "out"
    source = task.load(data, check_media=False)
    written(task, data, out, "swift-grpo")
    loaded, table = exported_prompts(out)
    rows = [json.loads(line) for line in (out / "train.jsonl").read_text().splitlines()]
    assert [row["sample_id"] for row in table] == [row["sample_id"] for row in rows]
    plain = prompt_table(loaded, [row["step"] for row in table])
    assert [row["prompt"] for row in plain] == [row["prompt"] for row in table]
    frames = tmp_path / "frames"
    written(task, data, frames, "swift-grpo", video="frames")
    with pytest.raises(UsageError, match="the prompts in the rows differ"):
        exported_prompts(frames)
    semi = get_task("omnigui", {"history": "predicted", "patches": "9"})
    evaluate(semi, source, "baseline:majority", tmp_path / "run")
    told = run_histories(semi, source, tmp_path / "run")
    steps = [step for step in source.steps if step.sample_id in told.past]
    folder = checkpoint(once, "qwen2.5-omni")
    words = OmniPrompts(folder, told.task, options=SMALL)
    last = steps[-1]
    said = words.processor.tokenizer.decode(words.of(last).ids)
    own = semi.conversation(last, list(told.past[last.sample_id]))[1].parts[-1].text
    assert last.history
    assert own in said
    assert prompt_table(told.task, steps)[len(steps) - 1]["prompt"][1]["content"].endswith(own)
