"""Reinforce an omni model by the benchmark's own verdicts, and see whether it listens and looks.

    python examples/reinforce.py --out reinforced

makes synthetic episodes whose answer is only in the audio or only in the clip, makes a tiny
Qwen2.5-Omni with random weights, shows it right answers until it begins to hear or to see, which is
looked for in the validation split, and from there on trains it by reinforcement alone: it answers,
and `omnidata.training.Reward` says what the answer is worth. It is asked about the episodes held
out before and after, and once more with the sounds and clips of other episodes and with none. All
of it on the CPU, in minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from exporting import Exported, exported, task_of
from finetune import TINY_OPTIONS, made_data, made_model, measured, show
from finetune import train as shown_right_answers

from omnidata.analysis.controls import MEDIUM, alter
from omnidata.errors import OmnidataError
from omnidata.run.selection import split_of
from omnidata.tasks.asking import Asking
from omnidata.tasks.given_options import parse
from omnidata.torch import OmniCollator
from omnidata.types import LoadedDataset

LOOK = 2
"""Supervised steps between two looks at the validation split."""


def main() -> None:
    """Data, model, a supervised start, before, reinforcement, after, controls, table."""
    given = arguments()
    out: Path = given.out
    task = task_of("omnigui", "swift", {})
    data = made_data(out / "data", given)
    source = task.load(data)
    parts = exported(task, source, out, "swift")
    options = TINY_OPTIONS | parse(given.options, "-M")
    model = made_model(out / "model", task, parts.train, given.seed)
    started = out / "started"
    if not started.exists():
        recipe = Namespace(**vars(given) | {"steps": given.start, "method": "full"})
        unseen = [step for step in source.steps if split_of(step) == "validation"]
        enough = [stop_at(given.until, OmniCollator(model, task, options=options)(unseen))]
        shown_right_answers(task, parts, str(model), options, started, recipe, enough)
    runs = out / "runs"
    sampled = {**options, "temperature": "1"}
    table = {"before": measured(task, source, parts, str(started), options, runs / "before")}
    table["before, sampled"] = measured(
        task, source, parts, str(started), sampled, runs / "before-sampled"
    )
    tuned = out / "tuned"
    if not tuned.exists():
        reinforce(task, source, parts, started, options, tuned, given)
    table["after"] = measured(task, source, parts, str(tuned), options, runs / "after")
    table["after, sampled"] = measured(
        task, source, parts, str(tuned), sampled, runs / "after-sampled"
    )
    cues = {step.source.get("cue") for step in parts.held_out}
    held_out = {step.sample_id for step in parts.held_out}
    for name in (name for name, role in MEDIUM.items() if role in cues):
        wrong = alter(source, name, out / "controls" / name, steps=held_out).source
        table[name] = measured(task, wrong, parts, str(tuned), options, runs / name)
    show(table, parts, given.as_json)


def arguments() -> Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("reinforced"), help="a folder for it all")
    parser.add_argument("--format", default="swift", help=argparse.SUPPRESS)
    parser.add_argument("--only", choices=("audio", "video"), help="what decides the episodes")
    parser.add_argument("--episodes", type=int, default=800)
    parser.add_argument("--start", type=int, default=300, help="supervised steps at most")
    parser.add_argument(
        "--until",
        type=float,
        default=0.35,
        help="how probable right answers to the validation split are when they end; chance is 0.25",
    )
    parser.add_argument("--batch", type=int, default=16, help="of these")
    parser.add_argument("--lr", type=float, default=2e-3, help="of these")
    parser.add_argument("--steps", type=int, default=60, help="of reinforcement")
    parser.add_argument("--prompts", type=int, default=8, help="to each of which there are")
    parser.add_argument("--generations", type=int, default=8, help="answers per step")
    parser.add_argument("--rl-lr", type=float, default=5e-4)
    parser.add_argument("--beta", type=float, default=0.0, help="of the KL term")
    parser.add_argument("--workers", type=int, default=1, help="processes that decode")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-M", dest="options", action="append", default=[])
    parser.add_argument("--json", dest="as_json", action="store_true")
    return parser.parse_args()


def stop_at(enough: float, batch: Mapping[str, Any]) -> Any:
    """A callback that ends training when sampled answers to a batch would be right often enough.

    How probable the right answers are, one forward pass tells. Twins are alike but for the medium:
    who neither hears nor sees finds the four right answers of four twins as probable for each of
    them, which is 1/4 at most on average.
    """
    import torch
    from transformers import TrainerCallback

    answers = batch["labels"][:, 1:]
    prompts = {name: value for name, value in batch.items() if name != "labels"}

    class StopAt(TrainerCallback):  # type: ignore[misc]  # theirs is not read
        def on_step_end(
            self, args: Any, state: Any, control: Any, model: Any = None, **_: Any
        ) -> None:
            if state.global_step % LOOK:
                return
            model.eval()
            with torch.no_grad():
                words = model(**prompts).logits[:, :-1].log_softmax(-1)
            model.train()
            said = words.gather(-1, answers.clamp(min=0).unsqueeze(-1)).squeeze(-1)
            right = said.masked_fill(answers == -100, 0.0).sum(-1).exp().mean().item()
            print(f"supervised step {state.global_step}: {right:.3f} right", file=sys.stderr)
            control.should_training_stop |= right >= enough

    return StopAt()


def reinforce(
    task: Asking,
    source: LoadedDataset,
    parts: Exported,
    start: Path,
    options: Mapping[str, str],
    out: Path,
    given: Namespace,
) -> None:
    """Group-relative policy optimisation; the folder appears when it is whole."""
    from transformers import AutoModelForMultimodalLM
    from trl import GRPOConfig

    from omnidata.training import OmniGRPOTrainer, OmniPrompts, Reward, prompt_table

    prompts = OmniPrompts(start, task, options=options)
    config = GRPOConfig(
        output_dir=str(out.with_name("checkpoints")),
        max_steps=given.steps,
        per_device_train_batch_size=given.prompts * given.generations,
        num_generations=given.generations,
        max_completion_length=int(options["max_new_tokens"]),
        learning_rate=given.rl_lr,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=5,
        adam_beta2=0.95,
        beta=given.beta,
        logging_steps=max(1, given.steps // 20),
        save_strategy="no",
        seed=given.seed,
        use_cpu=True,
        bf16=False,
        activation_checkpointing=False,
        dataloader_pin_memory=False,
        report_to=[],
    )
    trainer = OmniGRPOTrainer(
        AutoModelForMultimodalLM.from_pretrained(start),
        Reward(task, source),
        args=config,
        train_dataset=prompt_table(task, parts.train),
        prompts=prompts,
    )
    with contextlib.redirect_stdout(sys.stderr):  # the table alone goes to stdout
        trainer.train()
    unfinished = out.with_name(f".{out.name}.unfinished")
    trainer.model.save_pretrained(unfinished)
    prompts.processor.save_pretrained(unfinished)
    curve: list[dict[str, Any]] = [line for line in trainer.state.log_history if "reward" in line]
    (unfinished / "curve.json").write_text(json.dumps(curve, indent=1))
    unfinished.rename(out)


if __name__ == "__main__":
    try:
        main()
    except OmnidataError as error:
        sys.exit(f"error: {error}")
