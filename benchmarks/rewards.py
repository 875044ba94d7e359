"""What does a reward cost beside judging, and OmniGRPOTrainer beside TRL's own on pictures?

An answer is judged as `omnidata score` judges it, and scored as each trainer's function scores it.
Both trainers take the same steps, with one picture each, on a tiny model and the CPU; TRL's is
given the tensors of its own processor, ours those of the evaluation. CPU time is compared: the
machine may be shared.

    python benchmarks/rewards.py --steps 6
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from omnidata.synth.sample import make_sample
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.training import Reward, TrlReward, load_reward
from omnidata.training.export import export
from omnidata.training.media_store import Sizing
from omnidata.training.reward_files import swift_scores, verl_score
from omnidata.training.rows import Options
from omnidata.types import LoadedDataset

WORDS = 12
"""Tokens of an answer."""
GROUP = 4
"""Answers to each of two prompts, in a step of a trainer."""
ROUNDS = 3
"""Of which the fastest counts."""
SIDE = 196
"""Pixels of the longer side of a picture."""


def main() -> None:
    """Measure both and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--answers", type=int, default=20_000)
    parser.add_argument("--steps", type=int, default=6, help="of each trainer, after a first")
    given = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        data = make_sample(Path(folder) / "data")
        options = {"modalities": "I"}
        task = get_task("omnigui", options)
        source = task.load(data, check_media=False)
        rewards(task, source, given.answers)
        trainers(task, source, given.steps, Path(folder))


def rewards(task: Asking, source: LoadedDataset, count: int) -> None:
    """Microseconds an answer: right ones, wrong ones and unreadable ones in turn."""
    profile = task.profiles[task.default_profile]
    reward = Reward(task, source)
    steps = [step for step in source.steps if task.target(step)]
    right = [str(target.text) for step in steps if (target := task.target(step))]
    texts = [right, [*right[1:], right[0]], ["I would tap."] * len(right)]
    asked = []
    for number in range(count):  # no text comes twice: what is read may be remembered
        place, spaces = number % len(steps), " " * (number // len(steps))
        asked.append((steps[place], texts[number % len(texts)][place] + spaces))

    def judged() -> None:
        for step, text in asked:
            profile.judge(step, text)

    def scored() -> None:
        for step, text in asked:
            reward.score(step.sample_id, text)

    def by_verl() -> None:
        for step, text in asked:
            verl_score(reward, text, step.sample_id, {"receipt": "{}"})

    ids = [step.sample_id for step, _ in asked]
    said = [text for _, text in asked]
    trl = TrlReward(reward)
    ways: dict[str, Callable[[], object]] = {
        "Profile.judge": judged,
        "Reward.score": scored,
        "TrlReward": lambda: trl([""] * count, said, sample_id=ids),
        "swift_scores": lambda: swift_scores(reward, said, sample_id=ids),
        "verl_score": by_verl,
    }
    bare = 0.0
    for name, way in ways.items():
        took = min(_cpu(way) for _ in range(ROUNDS)) / count * 1e6
        bare = bare or took
        print(f"{name:<16}{took:8.1f} us an answer, {took / bare:5.2f} of judging alone")


def trainers(task: Asking, source: LoadedDataset, count: int, folder: Path) -> None:
    """Seconds a step; medians."""
    import datasets
    from transformers import AutoModelForMultimodalLM, AutoProcessor, TrainerCallback
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.grpo_trainer import GRPOTrainer

    from omnidata.adapters.tiny import make_tiny
    from omnidata.training import OmniGRPOTrainer, OmniPrompts, prompt_table

    some = replace(source, steps=source.steps[:16])
    out = folder / "out"
    form = Options(format="trl-grpo", shares={"train": 1.0}, sizing=Sizing(longest=SIDE))
    export(task, some, out, form)
    rows = datasets.load_dataset(
        "json", data_files=str(out / "train.jsonl"), split="train", cache_dir=str(folder / "cache")
    )
    rows = rows.map(lambda row: {"images": [str(out / name) for name in row["images"]]})
    rows = rows.cast_column("images", datasets.List(datasets.Image()))
    texts = [
        part.text for step in some.steps for turn in task.conversation(step) for part in turn.parts
    ]
    model = make_tiny("qwen2.5-omni", folder / "tiny", texts=texts * 10)
    prompts = OmniPrompts(model, task, options={"image_size": str(SIDE)})
    config = GRPOConfig(
        output_dir=str(folder / "trained"),
        max_steps=count + 1,
        per_device_train_batch_size=2 * GROUP,
        num_generations=GROUP,
        max_completion_length=WORDS,
        beta=0.0,
        generation_kwargs={"suppress_tokens": prompts.media_tokens},
        use_cpu=True,
        bf16=False,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        logging_strategy="no",
        dataloader_pin_memory=False,
        activation_checkpointing=False,
    )

    class Clock(TrainerCallback):  # type: ignore[misc]  # theirs is not read
        def __init__(self) -> None:
            self.at: list[float] = []

        def on_step_end(self, *_: Any, **__: Any) -> None:
            self.at.append(time.process_time())

    def stock(clock: Clock) -> Any:
        return GRPOTrainer(
            AutoModelForMultimodalLM.from_pretrained(model),
            TrlReward(load_reward(out / "reward.json")),
            args=config,
            train_dataset=rows,
            processing_class=AutoProcessor.from_pretrained(model),
            callbacks=[clock],
        )

    def ours(clock: Clock) -> Any:
        return OmniGRPOTrainer(
            AutoModelForMultimodalLM.from_pretrained(model),
            Reward(task, some),
            args=config,
            train_dataset=prompt_table(task, some),
            prompts=prompts,
            callbacks=[clock],
        )

    took = []
    for name, made in (("TRL's own", stock), ("OmniGRPOTrainer", ours)):
        clock = Clock()
        made(clock).train()
        took.append(statistics.median(_between(clock.at)))
        print(f"{name:<16}{took[-1]:8.2f} s a step, {took[-1] / took[0]:5.2f} of TRL's own")


def _between(times: Sequence[float]) -> list[float]:
    return [after - before for before, after in pairwise(times)]


def _cpu(way: Callable[[], object]) -> float:
    begun = time.process_time()
    way()
    return time.process_time() - begun


if __name__ == "__main__":
    main()
