"""How busy a local model is kept, and what batches bring.

A random model of a true architecture answers steps of the sample dataset. The number of tokens is
chosen so that `generate` takes about three times as long as reading, decoding and the processor.

    python benchmarks/local.py [--checkpoint FOLDER] [--steps 64] [--tokens N] [-M KEY=VALUE ...]

Without a checkpoint a tiny Qwen2.5-Omni is made, and torch is given one thread, so that the other
core can prepare. On a GPU name a larger one: `--make-billions 7` writes a random Qwen2.5-Omni
thinker of about so many billion parameters first.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omnidata.adapters import hf
from omnidata.adapters.tiny import make_tiny
from omnidata.run.evaluate import evaluate
from omnidata.synth.sample import make_sample
from omnidata.tasks import get_task
from omnidata.tasks.given_options import parse
from omnidata.types import GenerationParams, LoadedDataset, Request

TASK = get_task("omnigui")
SMALL_CLIPS = {"min_video_pixels": "3136", "max_video_pixels": "50176"}
TIMES_PREPARATION = 3.0
PROBES = (8, 128)
"""Tokens of the two runs from which the cost of a token is taken."""

PROBED = 16
SAME_TOKENS = 32


def main() -> None:
    """Run the comparisons and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--make-billions", type=float)
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--tokens", type=int, help="in place of three times the preparation")
    parser.add_argument("-M", dest="options", action="append", default=[])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_sample(folder / "sample")
        source = TASK.load(folder / "sample")
        checkpoint, options = given.checkpoint, parse(given.options, "-M")
        if given.make_billions:
            checkpoint = make_large(folder / "large", given.make_billions)
        if checkpoint is None:
            import torch

            torch.set_num_threads(1)
            checkpoint = make_tiny("qwen2.5-omni", folder / "tiny")
            options = SMALL_CLIPS | options
        compare(source, checkpoint, folder / "runs", options, given.steps, given.tokens)


def compare(
    source: LoadedDataset,
    checkpoint: Path,
    runs: Path,
    options: Mapping[str, str],
    steps: int,
    tokens: int | None,
) -> None:
    """Batches of one and of eight, each overlapped and in turn."""
    spent = {}
    for size in (1, 8):
        preparation, thrice = probe(source, checkpoint, options, size)
        wanted = tokens or thrice
        chosen = {**options, "batch_size": str(size), "max_new_tokens": str(wanted)}
        in_turn = one_after_the_other(source, checkpoint, chosen, steps)
        facts = overlapped(source, checkpoint, runs / str(size), chosen, steps)
        spent[size] = steps / facts["steps_per_s"]
        print(
            f"batch {size}: {1000 * preparation:.0f} ms of preparation and {wanted} tokens a step; "
            f"busy share {facts['busy_share']:.3f}; {spent[size]:.1f} s, in turn {in_turn:.1f} s "
            f"({in_turn / spent[size]:.2f} times); {facts['new_tokens_per_s']:.0f} tokens/s, "
            f"{facts['steps_per_s']:.2f} steps/s"
            + (
                f", {facts['peak_memory_bytes'] / 2**30:.1f} GiB"
                if facts["peak_memory_bytes"]
                else ""
            )
        )
    same = {**options, "max_new_tokens": str(tokens or SAME_TOKENS)}
    rates = []
    for size in (1, 8):
        chosen = {**same, "batch_size": str(size)}
        rates.append(overlapped(source, checkpoint, runs / f"same-{size}", chosen, steps))
    print(
        f"batch 8 against 1 at {same['max_new_tokens']} tokens: "
        f"{rates[1]['steps_per_s'] / rates[0]['steps_per_s']:.2f} times the steps a second"
    )


def probe(
    source: LoadedDataset, checkpoint: Path, options: Mapping[str, str], size: int
) -> tuple[float, int]:
    """Seconds of preparation of a step, the processor included, and the tokens that take thrice."""
    model = hf.load(str(checkpoint), {**options, "batch_size": str(size)})
    requests = ask(source, PROBED)
    in_turn(model, requests[:size], GenerationParams(0.0, 1))  # loads the weights
    busy: list[float] = []
    prepared: list[float] = []
    for tokens in PROBES:
        began, before = time.perf_counter(), model.busy_s
        in_turn(model, requests, GenerationParams(0.0, tokens))
        busy.append((model.busy_s - before) / PROBED)
        prepared.append((time.perf_counter() - began) / PROBED - busy[-1])
    preparation = min(prepared)
    per_token = max(1e-6, (busy[1] - busy[0]) / (PROBES[1] - PROBES[0]))
    first = busy[0] - PROBES[0] * per_token
    return preparation, max(4, round((TIMES_PREPARATION * preparation - first) / per_token))


def ask(source: LoadedDataset, count: int) -> list[Request]:
    """Requests of the first steps."""
    return [Request(step.sample_id, TASK.conversation(step)) for step in source.steps[:count]]


def in_turn(model: Any, requests: Sequence[Request], params: GenerationParams) -> None:
    """Prepare a batch, generate, prepare the next."""

    async def work() -> None:
        for begin in range(0, len(requests), model.max_batch):
            batch = [model.prepare(one) for one in requests[begin : begin + model.max_batch]]
            await model.generate(batch, params)

    asyncio.run(work())


def one_after_the_other(
    source: LoadedDataset, checkpoint: Path, options: Mapping[str, str], steps: int
) -> float:
    """Seconds for all steps without any overlap; weights loaded before."""
    model = hf.load(str(checkpoint), options)
    requests = ask(source, steps)
    in_turn(model, requests[:1], GenerationParams(0.0, 1))
    began = time.perf_counter()
    in_turn(model, requests, model.params)
    return time.perf_counter() - began


def overlapped(
    source: LoadedDataset, checkpoint: Path, out: Path, options: Mapping[str, str], steps: int
) -> dict[str, Any]:
    """What `run.json` says of the model after a run."""
    model = hf.load(str(checkpoint), options)
    evaluate(TASK, source, model, out, limit=steps)
    facts: dict[str, Any] = json.loads((out / "run.json").read_text())["facts"]
    return facts


def make_large(folder: Path, billions: float) -> Path:
    """Write a random Qwen2.5-Omni thinker in bfloat16 and its processor.

    Width, heads and the towers for media are those of the 3B model, and from 5 billion on those of
    the 7B model; the number of layers follows. The vocabulary stays the tiny model's.
    """
    import torch
    from transformers import AutoConfig, AutoModelForMultimodalLM, AutoProcessor

    tiny = make_tiny("qwen2.5-omni", folder.with_name("seed"))
    config = AutoConfig.from_pretrained(tiny)
    width, inner, heads, pairs = (3584, 18944, 28, 4) if billions >= 5 else (2048, 11008, 16, 2)
    text, sight, sound = config.text_config, config.vision_config, config.audio_config
    text.hidden_size, text.intermediate_size = width, inner
    text.num_attention_heads, text.num_key_value_heads = heads, pairs
    text.rope_parameters["mrope_section"] = [16, 24, 24]
    per_layer = 2 * width * width + 2 * width * 128 * pairs + 3 * width * inner
    text.num_hidden_layers = max(1, round(billions * 1e9 / per_layer))
    text.layer_types = ["full_attention"] * text.num_hidden_layers
    sight.depth, sight.hidden_size, sight.num_heads = 32, 1280, 16
    sight.intermediate_size, sight.fullatt_block_indexes = 3420, [7, 15, 23, 31]
    sound.d_model, sound.encoder_layers, sound.encoder_attention_heads = 1280, 32, 20
    sound.encoder_ffn_dim, sound.num_hidden_layers = 5120, 32
    sound.output_dim = sight.out_hidden_size = width
    for part in (config, text, sight, sound):
        part.initializer_range = 0.02
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        build: Any = AutoModelForMultimodalLM
        model = build.from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(folder)
    processors: Any = AutoProcessor
    processor = processors.from_pretrained(tiny)
    processor.image_processor.size = {"shortest_edge": 56 * 56, "longest_edge": 12_845_056}
    processor.save_pretrained(folder)
    return folder


if __name__ == "__main__":
    main()
