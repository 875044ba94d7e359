"""Fine-tune an omni model on trajectories, and measure whether it listens and looks.

    python examples/finetune.py --out finetune

Makes synthetic episodes whose answer is only in the audio or only in the clip, and exports training
data. Makes a tiny Qwen2.5-Omni with random weights, and evaluates it on the held-out episodes.
Trains it with TRL's SFTTrainer and evaluates it again. The controls replace sounds and clips, or
silence and freeze them: a model that listens falls back to chance. Runs on a CPU, in minutes.

    python examples/finetune.py --out tuned --data DATA --model Qwen/Qwen2.5-Omni-7B --method lora

Does the same to a real model with data of your own: OmniGUI's layout or a Parquet repository. With
`--task omnibench --keep-leaks` it trains on tasks that `omnidata synth compose` made.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from exporting import Exported, Form, exported, media_of, task_of

from omnidata import registry
from omnidata.adapters.tiny import make_tiny
from omnidata.analysis.controls import MEDIUM, alter
from omnidata.errors import OmnidataError
from omnidata.run.evaluate import evaluate
from omnidata.synth.episodes import Settings, make_episodes
from omnidata.tasks.asking import Asking
from omnidata.tasks.given_options import parse
from omnidata.torch import OmniCollator, check
from omnidata.types import LoadedDataset, Step

SMALL = Settings(
    audio_share=0.5,
    video_share=0.5,
    size=(112, 196),
    clip_size=(84, 140),
    fps=6,
    seconds=1.0,
    max_steps=1,
    apps=1,
    cues=("pitch", "colour"),
    questions=("tap",),
    shuffled=False,
    distractors=0.0,
)
"""Screens of 28 tokens; clips of 45, with the colour in two of six frames; tones of half a second;
four buttons."""

TINY_OPTIONS = {
    "fps": "6",
    "min_video_pixels": "3136",
    "max_video_pixels": "50176",
    "max_new_tokens": "32",
    "batch_size": "16",
}

LORA = r".*model\.layers\.\d+\.(self_attn\.(q|k|v|o)_proj|mlp\.(gate|up|down)_proj)"
"""The text model's layers; the towers for pictures and sound stay as they are."""

TOWERS = r".*(tower|visual).*"
"""Said again: peft 0.21 turns the pattern into endings of names for mixtures of experts."""

CHANCE = 0.25
"""Four buttons, of which one is right."""

ENOUGH = 20
"""Held-out steps; a table of fewer says nothing about sound and clip."""

HEADINGS = {
    "all": "all steps",
    "cross_modal_discrimination": "answer in the sound",
    "temporal_reasoning": "answer in the clip",
}
Row = dict[str, float]


def main() -> None:
    """Data, export, model, before, training, after, controls, table."""
    given = arguments()
    out: Path = given.out
    if given.model is None:
        use_one_thread()
    task = task_of(given.task, given.format, parse(given.task_options, "-T"))
    data = given.data or made_data(out / "data", given)
    source = task.load(data)
    parts = exported(task, source, out, given.format, keep_leaks=given.keep_leaks)
    model, options = given.model, parse(given.options, "-M")
    if given.data is None:
        require_episodes(parts, given.episodes)
    if model is None:
        model = str(made_model(out / "model", task, parts.train, given.seed))
        options = TINY_OPTIONS | options
    runs = out / "runs"
    table = {"before": measured(task, source, parts, model, options, runs / "before")}
    tuned = out / "tuned"
    if not tuned.exists():
        train(task, parts, model, options, tuned, given)
    cues = {step.source.get("cue") for step in parts.held_out}
    table["after"] = measured(task, source, parts, str(tuned), options, runs / "after")
    if given.data is None:
        require_learning(table["after"], parts, given.steps)
    held_out = {step.sample_id for step in parts.held_out}
    for name in (name for name, role in MEDIUM.items() if role in cues):
        wrong = alter(source, name, out / "controls" / name, steps=held_out).source
        table[name] = measured(task, wrong, parts, str(tuned), options, runs / name)
    show(table, parts, given.as_json)


def use_one_thread() -> None:
    """Run torch on one thread, unless OMP_NUM_THREADS is set.

    The tiny model's operations are so small that several threads wait for each other most of the
    time.
    """
    import torch

    if "OMP_NUM_THREADS" not in os.environ:
        os.environ["OMP_NUM_THREADS"] = "1"  # processes that start later
        torch.set_num_threads(1)


def require_episodes(parts: Exported, episodes: int) -> None:
    """Raise an error when too few steps are held out to compare with chance."""
    if len(parts.held_out) < ENOUGH:
        raise OmnidataError(
            f"{len(parts.held_out)} of the steps from --episodes {episodes} are held out, too few "
            "to compare with chance",
            expected=f"at least {ENOUGH}",
            remedy="use another --out, and --episodes 800 (the default)",
        )


def require_learning(after: Row, parts: Exported, steps: int) -> None:
    """Raise an error when the trained model is no better than chance: controls say nothing then."""
    if after["all"] <= CHANCE:
        raise OmnidataError(
            f"exact match is {100 * after['all']:.1f} % after {steps} steps on {len(parts.train)} "
            "rows: the model has not learned, so the controls are skipped",
            expected=f"more than chance, {100 * CHANCE:.0f} %",
            remedy="use another --out, and more --episodes (default 800) or --steps (default 300)",
        )


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("finetune"), help="a folder for all of it")
    parser.add_argument("--data", type=Path, help="in place of synthetic episodes")
    parser.add_argument(
        "--task", choices=registry.benchmarks(), default="omnigui", help="whose data they are"
    )
    parser.add_argument("--model", help="in place of a tiny random one")
    parser.add_argument("--format", choices=get_args(Form), default="parquet", help="to train from")
    parser.add_argument(
        "--keep-leaks",
        action="store_true",
        help="train on episodes that share screens or instructions with those held out",
    )
    parser.add_argument("--method", choices=("full", "lora"), default="full")
    parser.add_argument("--episodes", type=positive, default=800)
    parser.add_argument("--only", choices=("audio", "video"), help="what decides the episodes")
    parser.add_argument("--steps", type=positive, default=300, help="of the optimiser")
    parser.add_argument("--batch", type=positive, default=16)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--workers", type=int, default=1, help="processes that decode")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-T", dest="task_options", action="append", default=[])
    parser.add_argument("-M", dest="options", action="append", default=[])
    parser.add_argument("--json", dest="as_json", action="store_true")
    return parser.parse_args()


def positive(text: str) -> int:
    """Parse a number of at least 1."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of 1 or more")
    return int(text)


def made_data(folder: Path, given: argparse.Namespace) -> Path:
    """Half of the episodes are decided by a tone, half by the colour that flashes in the clip.

    Where rows hold no sound the clip decides all of them.
    """
    only = given.only if "audio" in media_of(given.format) else "video"
    heard = {None: 0.5, "audio": 1.0, "video": 0.0}[only]
    settings = replace(SMALL, seed=given.seed, audio_share=heard, video_share=1 - heard)
    make_episodes(folder, settings, episodes=given.episodes)
    return folder


def made_model(folder: Path, task: Asking, steps: Sequence[Step], seed: int) -> Path:
    """A tiny Qwen2.5-Omni whose vocabulary knows the prompts."""
    from transformers import AutoProcessor, WhisperFeatureExtractor

    if folder.exists():
        return folder
    texts = [
        part.text for step in steps[:200] for said in task.conversation(step) for part in said.parts
    ]
    unfinished = folder.with_name(f".{folder.name}.unfinished")
    made = make_tiny("qwen2.5-omni", unfinished, seed=seed, texts=texts)
    processor = AutoProcessor.from_pretrained(made)
    # To pad sounds of a second to thirty would take more time than all else that is decoded.
    processor.feature_extractor = WhisperFeatureExtractor(
        feature_size=128, chunk_length=2, padding_side="right"
    )
    processor.save_pretrained(made)
    return made.rename(folder)


def measured(
    task: Asking,
    source: LoadedDataset,
    parts: Exported,
    model: str,
    options: Mapping[str, str],
    run: Path,
) -> Row:
    """Exact match by what decides the steps, as `omnidata evaluate --exclude seen.txt` finds it."""
    found = evaluate(task, source, f"hf:{model}", run, model_options=options, exclude=parts.seen)
    by = {name: values["EM"] for name, values in found["by"].get("dimension", {}).items()}
    return {"all": found["overall"]["EM"], **by}


def train(
    task: Asking,
    parts: Exported,
    model: str,
    options: Mapping[str, str],
    out: Path,
    given: argparse.Namespace,
    callbacks: Sequence[Any] = (),
) -> None:
    """Supervised fine-tuning; the folder appears when it is whole."""
    import torch
    from peft import LoraConfig
    from transformers import AutoModelForMultimodalLM
    from trl import SFTConfig, SFTTrainer

    collator = OmniCollator(model, task, options=options)
    rows = parts.rows(task, given.seed)
    check(rows, collator, workers=given.workers)
    on_gpu = torch.cuda.is_available()
    config = SFTConfig(
        output_dir=str(out.with_name("checkpoints")),
        max_steps=given.steps,
        per_device_train_batch_size=given.batch,
        learning_rate=given.lr,
        lr_scheduler_type="cosine",
        warmup_steps=given.steps // 20,
        adam_beta2=0.95,
        logging_steps=max(1, given.steps // 20),
        save_strategy="no",
        seed=given.seed,
        dataloader_num_workers=given.workers,
        remove_unused_columns=False,
        dataset_kwargs={"skip_prepare_dataset": True},
        max_length=None,
        gradient_checkpointing=on_gpu,
        use_cpu=not on_gpu,
        bf16=on_gpu,
        report_to=[],
    )
    lora = LoraConfig(
        r=16,
        lora_alpha=32,
        task_type="CAUSAL_LM",
        target_modules=LORA,
        exclude_modules=TOWERS,
    )
    trainer = SFTTrainer(
        model=AutoModelForMultimodalLM.from_pretrained(model),
        args=config,
        train_dataset=rows,
        processing_class=collator.processor,
        data_collator=collator,
        peft_config=lora if given.method == "lora" else None,
        callbacks=[*callbacks],
    )
    with contextlib.redirect_stdout(sys.stderr):  # the table alone goes to stdout
        trainer.train()
    tuned = trainer.model.merge_and_unload() if given.method == "lora" else trainer.model
    unfinished = out.with_name(f".{out.name}.unfinished")
    tuned.save_pretrained(unfinished)
    collator.processor.save_pretrained(unfinished)
    curve = [line for line in trainer.state.log_history if "loss" in line]
    (unfinished / "curve.json").write_text(json.dumps(curve, indent=1))
    unfinished.rename(out)


def show(table: Mapping[str, Row], parts: Exported, as_json: bool) -> None:
    """One row per evaluation, in percent."""
    if as_json:
        print(json.dumps(table, indent=1))
        return
    columns = list(table["before"])
    print(
        f"exact match (%) on {len(parts.held_out)} held-out steps; "
        f"{len(parts.train)} to train on, from {parts.folder}"
    )
    print(" " * 16 + "".join(f"{HEADINGS.get(name, name):>28}" for name in columns))
    for name, row in table.items():
        cells = (f"{100 * row.get(column, float('nan')):>28.1f}" for column in columns)
        print(f"{name:<16}" + "".join(cells))


if __name__ == "__main__":
    try:
        main()
    except OmnidataError as error:
        sys.exit(f"error: {error}")
