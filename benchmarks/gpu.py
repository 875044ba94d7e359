"""What a local model needs and gives on a GPU: does it run, is it busy, does it fit, does it train.

    python benchmarks/gpu.py --out FOLDER [--billions 7] [PART ...]

Models have the true architectures and random weights; data are synthetic episodes with screens of
720x1600 pixels, clips and sounds. Each part runs in a process of its own, prints a line per
measurement and writes the figures to `FOLDER/PART.json`. Parts of tiny models run side by side.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from local import make_large

from omnidata.adapters import hf
from omnidata.adapters.hf import checkpoint
from omnidata.adapters.tiny import make_tiny
from omnidata.run.evaluate import evaluate
from omnidata.synth.episodes import Settings, make_episodes
from omnidata.tasks import get_task
from omnidata.types import Completion, GenerationParams, LoadedDataset, Prepared, Request, Step

ROOT = Path(__file__).parents[1]
TASK = get_task("omnigui")
FAMILIES = ("qwen2.5-omni", "qwen3-omni", "gemma4", "gemma3n", "phi4")
SIZES = (1, 8, 32)
TOKENS = 32
"""About as many as an action in JSON has."""
LEAK_STEPS = 2000
TRAINED = 12
TRAINING_EPISODES = 24
LIMITS = {
    "busy": 200,
    "memory": 110,
    "train": 170,
    "train-varlen": 170,
    "attention": 240,
    "workers": 270,
}
"""Seconds that a part may take."""


def main() -> None:
    """Run the parts, those of tiny models side by side."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path("gpu-work"), help="checkpoints and data")
    parser.add_argument("--billions", type=float, default=7, help="0 takes a tiny model")
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.inside:
        (part,) = given.parts
        measure(part, given)
        return
    data(given)
    parts = given.parts or list(PARTS)
    names = [part for part in parts if part in SMALL]
    running = [start(part, given) for part in names]
    for process in running:
        wait(process, 170)
    for part in (part for part in parts if part not in SMALL):
        wait(start(part, given), LIMITS.get(part, 120))


def start(part: str, given: argparse.Namespace) -> subprocess.Popen[bytes]:
    """Start a part in a process of its own."""
    how = [f"--{name}={getattr(given, name)}" for name in ("out", "work", "billions", "steps")]
    return subprocess.Popen([sys.executable, __file__, part, "--inside", *how])


def wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Wait for a part; one that takes too long is ended, and what it wrote stays."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        print(f"ended after {seconds:.0f} s: {process.args!r}", flush=True)
        process.kill()


def measure(part: str, given: argparse.Namespace) -> None:
    """Run one part in this process; each figure is written as soon as it is there."""
    figures: dict[str, Any] = {}

    def note(name: str, **values: Any) -> None:
        figures[name] = values
        (given.out / f"{part}.json").write_text(json.dumps(figures, indent=1))
        print(f"{part} {name}: {json.dumps(values)}", flush=True)

    read_weights_once()
    began = time.perf_counter()
    try:
        PARTS[part](given, note)
    except Exception as error:
        traceback.print_exc()
        note("failed", error=f"{type(error).__name__}: {error}"[:500])
    note("whole part", seconds=round(time.perf_counter() - began, 1))


Note = Callable[..., None]


def read_weights_once() -> None:
    """Let all models of this process that have the same weights share them."""
    own, read = checkpoint.load_model, {}

    def load_model(path: str, options: Any, known: Any) -> Any:
        name = path, options.dtype
        if name not in read:
            read[name] = own(path, options, known)
        return read[name]

    checkpoint.load_model = load_model


# Models and data.


def data(given: argparse.Namespace) -> LoadedDataset:
    """Episodes with screens, clips and sounds of the default size."""
    folder = given.work / "episodes"
    if not folder.exists():
        make_episodes(folder, Settings(distractors=1.0), episodes=64)
    return TASK.load(folder)


def full_steps(source: LoadedDataset, count: int) -> list[Step]:
    """Steps that have a picture, a clip and a sound; repeated if there are too few."""
    found = [step for step in source.steps if step.media.get("video") and step.media.get("audio")]
    return [found[number % len(found)] for number in range(count)]


def make_model(given: argparse.Namespace, note: Note) -> None:
    """The large model."""
    began = time.perf_counter()
    if not large(given).exists():
        if given.billions:
            make_large(large(given), given.billions)
        else:
            make_tiny("qwen2.5-omni", large(given))
    note("model", billions=given.billions, seconds=round(time.perf_counter() - began, 1))


def large(given: argparse.Namespace) -> Path:
    """The folder of the large model."""
    folder: Path = given.work / "large"
    return folder


def tiny(given: argparse.Namespace, family: str, part: str) -> Path:
    """A tiny checkpoint of a family."""
    folder: Path = given.work / f"{part}-{family}"
    if folder.exists():
        return folder
    if family in ("gemma3n", "phi4"):
        sys.path.insert(0, str(ROOT))
        from tests.adapters import tiny_others

        checkpoint.prepare_imports()
        torch.manual_seed(0)
        folder.mkdir(parents=True)
        getattr(tiny_others, family)(folder)
        return folder
    return make_tiny(family, folder)  # type: ignore[arg-type]  # one of its families


def requests(steps: Sequence[Step]) -> list[Request]:
    """Requests whose names differ although steps repeat."""
    return [Request(f"step {number}", TASK.conversation(step)) for number, step in enumerate(steps)]


def ask(
    model: Any, asked: Sequence[Request | Prepared], params: GenerationParams
) -> list[Completion]:
    """Prepare a batch unless it is prepared, generate, prepare the next."""

    async def work() -> list[Completion]:
        answers: list[Completion] = []
        for begin in range(0, len(asked), model.max_batch):
            batch = [
                model.prepare(one) if isinstance(one, Request) else one
                for one in asked[begin : begin + model.max_batch]
            ]
            answers += await model.generate(batch, params)
        return answers

    return asyncio.run(work())


@contextmanager
def first_logits() -> Iterator[list[Any]]:
    """Keep what each call of transformers' `generate` finds likely for the first token."""
    from transformers import GenerationMixin

    own, found = GenerationMixin.generate, []

    def generate(model: Any, **how: Any) -> Any:
        made = own(model, **how, return_dict_in_generate=True, output_logits=True)
        found.append(made.logits[0].float().cpu())
        return made.sequences

    GenerationMixin.generate = generate
    try:
        yield found
    finally:
        GenerationMixin.generate = own


def on_gpu() -> bool:
    """Whether there is a GPU; without one the parts can be tried, and say nothing."""
    return torch.cuda.is_available()


def synchronize() -> None:
    """Wait for the GPU."""
    if on_gpu():
        torch.cuda.synchronize()


def peak_gib() -> float:
    """GiB of GPU memory in use at most since the last call."""
    if not on_gpu():
        return 0.0
    peak = torch.cuda.max_memory_allocated() / 2**30
    torch.cuda.reset_peak_memory_stats()
    return round(peak, 2)


# 1. It runs.


def run_families(given: argparse.Namespace, note: Note) -> None:
    """Each family in bfloat16 and float32, batches of 1, 8 and 32: peaks, and equal answers."""
    steps = requests(full_steps(data(given), max(SIZES)))
    for family in FAMILIES:
        try:
            folder = tiny(given, family, "families")
            prepared = prepare(folder, steps)
            compare_sizes(folder, "bfloat16", SIZES, prepared, partial(note, f"{family} bfloat16"))
            few = prepared[: SIZES[1]]
            compare_sizes(folder, "float32", SIZES[:2], few, partial(note, f"{family} float32"))
        except Exception as error:
            traceback.print_exc()
            note(family, error=f"{type(error).__name__}: {error}"[:300])


def run_large(given: argparse.Namespace, note: Note) -> None:
    """The large model: the same comparison in bfloat16."""
    prepared = prepare(large(given), requests(full_steps(data(given), max(SIZES))))
    compare_sizes(large(given), "bfloat16", SIZES, prepared, partial(note, "bfloat16"))


def prepare(folder: Path, steps: Sequence[Request]) -> list[Prepared]:
    """Steps with their media decoded, as models of the same checkpoint share them."""
    model = hf.load(str(folder), {})
    with ThreadPoolExecutor() as pool:
        return list(pool.map(model.prepare, steps))


def compare_sizes(
    folder: Path, dtype: str, sizes: Sequence[int], steps: Sequence[Prepared], note: Note
) -> None:
    """Batches of several sizes against one step at a time."""
    alone: tuple[Any, list[str]] | None = None
    table = {}
    for size in sizes:
        options = {"dtype": dtype, "batch_size": str(size), "max_new_tokens": "16"}
        model = hf.load(str(folder), options)
        ask(model, steps[:1], GenerationParams(0.0, 1))
        peak_gib()
        began = time.perf_counter()
        with first_logits() as found:
            answers = ask(model, steps, model.params)
        took = time.perf_counter() - began
        logits, texts = torch.cat(found), [answer.text or "" for answer in answers]
        failed = [answer.error for answer in answers if answer.delivery == "api_error"]
        row: dict[str, Any] = {"peak_gib": peak_gib(), "steps_per_s": round(len(steps) / took, 2)}
        if failed:
            row |= {"failed": len(failed), "error": str(failed[0])[:200]}
        elif alone is None:
            alone = logits, texts
            row["prompt_tokens"] = statistics.median(a.usage["prompt_tokens"] for a in answers)
        else:
            row |= closeness(alone, (logits, texts))
        table[f"batch {size}"] = row
    note(**table)


def closeness(alone: tuple[Any, list[str]], batched: tuple[Any, list[str]]) -> dict[str, Any]:
    """How far the logits of the first token are apart, and how many answers are equal."""
    one, many = alone[0], batched[0]
    apart = (one - many).abs().max() / one.std()
    return {
        "logits_apart": float(f"{apart:.2g}"),
        "equal_first_tokens": round((one.argmax(1) == many.argmax(1)).float().mean().item(), 3),
        "equal_texts": sum(a == b for a, b in zip(alone[1], batched[1], strict=True)),
        "of": len(alone[1]),
    }


# 2. It is busy.


def keep_busy(given: argparse.Namespace, note: Note) -> None:
    """The large model: made before, made in turn, made beside."""
    source = data(given)
    for size in (1, 8):
        options = {"batch_size": str(size), "max_new_tokens": str(TOKENS)}
        model = hf.load(str(large(given)), options)
        asked = requests(source.steps[: given.steps])
        ask(model, asked[:size], model.params)
        model.busy_s, began = 0.0, time.perf_counter()
        ask(model, asked, model.params)
        in_turn, generating = time.perf_counter() - began, model.busy_s
        out = given.work / "runs" / f"busy-{size}"
        model = hf.load(str(large(given)), options)
        evaluate(TASK, source, model, out, limit=given.steps, must_judge=False)
        facts = json.loads((out / "run.json").read_text())["facts"]
        note(
            f"batch {size}",
            steps=len(asked),
            tokens=TOKENS,
            generating_s=round(generating, 2),
            in_turn_s=round(in_turn, 2),
            steps_per_s_without_media_work=round(len(asked) / generating, 3),
            steps_per_s_in_turn=round(len(asked) / in_turn, 3),
            **{name: facts[name] for name in KEPT},
            faster_than_in_turn=round(facts["steps_per_s"] / (len(asked) / in_turn), 3),
            peak_gib=peak_gib(),
        )


KEPT = ("busy_share", "steps_per_s", "new_tokens_per_s")


# 3. It fits.


def fit_memory(given: argparse.Namespace, note: Note) -> None:
    """A limit at which 32 steps do not fit: batches are halved, and the next run has all again."""
    steps = requests(full_steps(data(given), 32))
    peaks = {}
    for size in (1, 8):
        model = hf.load(str(large(given)), {"batch_size": str(size), "max_new_tokens": "8"})
        ask(model, steps[:size], model.params)
        peaks[size] = peak_gib()
    weights = torch.cuda.memory_allocated() / 2**30
    whole = torch.cuda.get_device_properties(0).total_memory / 2**30
    torch.cuda.empty_cache()
    limit = weights + 1.5 * (peaks[8] - weights) + 1
    torch.cuda.set_per_process_memory_fraction(limit / whole)
    model = hf.load(str(large(given)), {"batch_size": "32", "max_new_tokens": "8"})
    answers = [ask(model, steps, model.params) for _ in range(2)]
    facts = model.run_metadata()
    note(
        "halving",
        weights_gib=round(weights, 2),
        peaks_gib=peaks,
        limit_gib=round(limit, 2),
        answered=[sum(a.delivery != "api_error" for a in one) for one in answers],
        same_answers=[a.text for a in answers[0]] == [a.text for a in answers[1]],
        batch_size_found=facts["batch_size"],
        peak_gib=peak_gib(),
    )
    torch.cuda.set_per_process_memory_fraction(1.0)
    fresh = hf.load(str(large(given)), {"batch_size": "32", "max_new_tokens": "8"})
    after = ask(fresh, steps, fresh.params)
    note(
        "recovery",
        answered=sum(a.delivery != "api_error" for a in after),
        batch_size=fresh.run_metadata()["batch_size"],
        peak_gib=peak_gib(),
        left_gib=round(torch.cuda.memory_allocated() / 2**30 - weights, 4),
    )


def find_leak(given: argparse.Namespace, note: Note) -> None:
    """Memory of a tiny model over 2,000 steps."""
    import resource

    folder = given.work / "small-episodes"
    settings = Settings(size=(112, 196), clip_size=(84, 140), fps=6, seconds=1.0, distractors=1.0)
    make_episodes(folder, settings, episodes=64)
    steps = full_steps(TASK.load(folder), LEAK_STEPS)
    options = {"batch_size": "16", "max_new_tokens": "4", "dtype": "bfloat16"}
    model = hf.load(str(tiny(given, "qwen2.5-omni", "leak")), options)
    for part in range(5):
        fifth = requests(steps[part * LEAK_STEPS // 5 : (part + 1) * LEAK_STEPS // 5])
        ask(model, fifth, model.params)
        note(
            f"{(part + 1) * LEAK_STEPS // 5} steps",
            allocated_mib=round(torch.cuda.memory_allocated() / 2**20, 3) if on_gpu() else 0,
            reserved_mib=round(torch.cuda.memory_reserved() / 2**20, 1) if on_gpu() else 0,
            peak_rss_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        )


# 4. Training.


def train_large(given: argparse.Namespace, note: Note, sight: str = "sdpa") -> None:
    """`train` of `examples/finetune.py` with LoRA: speed, memory, and the wait for the collator."""
    sys.path.insert(0, str(ROOT / "examples"))
    finetune, exporting = import_module("finetune"), import_module("exporting")
    from transformers import TrainerCallback

    clock: dict[str, list[float]] = {"begin": [], "end": []}

    class Clock(TrainerCallback):  # type: ignore[misc]  # theirs is not read
        def on_train_begin(self, *_: Any, model: Any, **__: Any) -> None:
            set_attention(model.get_base_model(), "sdpa", sight)

        def on_step_begin(self, *_: Any, **__: Any) -> None:
            clock["begin"].append(time.perf_counter())

        def on_step_end(self, *_: Any, **__: Any) -> None:
            synchronize()
            clock["end"].append(time.perf_counter())
            report()
            if len(clock["end"]) == TRAINED:
                raise MeasuredError

    def report() -> None:
        warm = min(2, len(clock["end"]) - 1)
        works = [e - b for b, e in zip(clock["begin"], clock["end"], strict=True)]
        waits = [b - e for e, b in zip(clock["end"], clock["begin"][1:], strict=False)]
        span = clock["end"][-1] - clock["begin"][warm]
        done = len(works) - warm
        note(
            f"lora, batch {how.batch}, {how.workers} workers",
            steps=len(works),
            until_first_step_s=round(clock["begin"][0] - began, 1),
            first_step_s=round(works[0], 2),
            steps_per_s=round(done / span, 3),
            rows_per_s=round(how.batch * done / span, 3),
            waiting_share=round(sum(waits[warm:]) / span, 4),
            working_s=round(statistics.median(works[warm:]), 3),
            peak_gib=round(torch.cuda.max_memory_allocated() / 2**30, 2) if on_gpu() else 0,
        )

    began = time.perf_counter()
    folder = given.work / f"episodes-{sight}"
    make_episodes(folder, Settings(distractors=1.0), episodes=TRAINING_EPISODES)
    source = TASK.load(folder)
    parts = exporting.exported(
        TASK, source, given.work / f"export-{sight}", "parquet", keep_leaks=True
    )
    how = argparse.Namespace(
        steps=TRAINED, batch=4, lr=1e-4, seed=0, workers=8, method="lora", format="parquet"
    )
    note("export", s=round(time.perf_counter() - began, 1))
    with suppress(MeasuredError):
        finetune.train(TASK, parts, str(large(given)), {}, given.work / "tuned", how, [Clock()])


class MeasuredError(Exception):
    """All was measured; the weights are not saved."""


def equal_step(given: argparse.Namespace, note: Note) -> None:
    """One optimiser step on all weights of tiny models, on the GPU and on the CPU, in float32."""
    from transformers import AutoModelForMultimodalLM

    from omnidata.torch import OmniCollator, training_table

    torch.backends.cudnn.allow_tf32 = False
    source = data(given)
    table = training_table(TASK, source)
    full = {step.sample_id for step in full_steps(source, 8)}
    rows = [table[number] for number, step in enumerate(source.steps) if step.sample_id in full][:4]
    for family in ("qwen2.5-omni", "qwen3-omni", "gemma4"):
        folder = tiny(given, family, "equal")
        batch = OmniCollator(folder, TASK, options={})(rows)
        results = []
        for device in ("cpu", "cuda" if on_gpu() else "cpu"):
            build: Any = AutoModelForMultimodalLM
            model = build.from_pretrained(folder, dtype=torch.float32).to(device).eval()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            placed = {
                n: v.to(device) if isinstance(v, torch.Tensor) else v for n, v in batch.items()
            }
            loss = model(**placed).loss
            loss.backward()
            grads = [p.grad.cpu() for p in model.parameters() if p.grad is not None]
            optimizer.step()
            results.append((loss.item(), grads, [p.detach().cpu() for p in model.parameters()]))
        (loss, grads, weights), (loss_2, grads_2, weights_2) = results
        note(
            family,
            loss=[round(loss, 6), round(loss_2, 6)],
            gradients_apart=float(f"{relative(grads, grads_2):.2g}"),
            weights_apart=float(f"{relative(weights, weights_2):.2g}"),
        )


def relative(one: Sequence[Any], other: Sequence[Any]) -> float:
    """The norm of the difference over the norm."""
    apart = sum(float(((a - b).double() ** 2).sum()) for a, b in zip(one, other, strict=True))
    return float((apart / sum(float((a.double() ** 2).sum()) for a in one)) ** 0.5)


# 5. Attention and compilation.


def compare_attention(given: argparse.Namespace, note: Note) -> None:
    """Variants of attention and cache on batches that were made before."""
    from omnidata.adapters.hf.generation import generate

    steps = requests(full_steps(data(given), 8))
    for size in (1, 8):
        options = {"batch_size": str(size), "max_new_tokens": str(TOKENS)}
        model = hf.load(str(large(given)), options)
        ask(model, steps[:1], GenerationParams(0.0, 1))
        pipeline, net = model._pipeline, model._model
        turns = [pipeline.decode(one.conversation, one.sample_id)[0] for one in steps[:size]]
        batch = pipeline.inputs.batch(turns)

        def answer(
            how: dict[str, Any], net: Any = net, pipeline: Any = pipeline, batch: Any = batch
        ) -> tuple[list[str], Any, float]:
            chosen = type(batch)(batch.tensors, {**batch.how, **how})
            params = GenerationParams(0.0, TOKENS)
            synchronize()
            began = time.perf_counter()
            with first_logits() as found:
                answers = generate(net, pipeline.processor, chosen, params, threading.Event())
            return [one.text or "" for one in answers], found[0], time.perf_counter() - began

        baseline = None
        for name, (text, sight), how in VARIANTS:
            try:
                set_attention(net, text, sight)
                first = answer(how)[2]
                texts, logits, again = answer(how)
                baseline = baseline or (logits, texts)
                note(
                    f"batch {size}, {name}",
                    first_s=round(first, 2),
                    again_s=round(again, 3),
                    tokens_per_s=round(TOKENS * size / again, 1),
                    **closeness(baseline, (logits, texts)),
                    peak_gib=peak_gib(),
                )
                if not how:
                    with clock_parts(net) as parts:
                        answer(how)
                    note(f"batch {size}, {name}, parts in s", **parts)
            except Exception as error:
                note(f"batch {size}, {name}", error=f"{type(error).__name__}: {error}"[:300])
        set_attention(net, "sdpa", "sdpa")
    try:
        ids = [list(range(5, 200))] * 8
        made = net.generate_batch(inputs=ids, max_new_tokens=16)
        note("continuous batching, text alone", answers=len(made))
    except Exception as error:
        note("continuous batching", error=f"{type(error).__name__}: {error}"[:300])


VARIANTS: tuple[tuple[str, tuple[str, str], dict[str, Any]], ...] = (
    ("sdpa", ("sdpa", "sdpa"), {}),
    ("sdpa, pictures by torch's varlen_attn", ("sdpa", "flash_of_torch"), {}),
    (
        "the same, static cache, no compilation",
        ("sdpa", "flash_of_torch"),
        {"cache_implementation": "static", "disable_compile": True},
    ),
    (
        "the same, static cache, compiled",
        ("sdpa", "flash_of_torch"),
        {"cache_implementation": "static"},
    ),
    ("eager", ("eager", "eager"), {}),
    ("flash_attention_2", ("flash_attention_2", "flash_attention_2"), {}),
    ("flex_attention", ("flex_attention", "flex_attention"), {}),
)
"""A name; the attention of the text model and of the tower for pictures; options of `generate`."""


def set_attention(net: Any, text: str, sight: str) -> None:
    """Choose the attention of the text model, and of the tower for pictures and clips."""
    if sight == "flash_of_torch":
        net.set_attn_implementation(text)
        register_varlen()
        net.model.visual.config._attn_implementation = sight
    else:
        net.set_attn_implementation(text)


def register_varlen() -> None:
    """Let transformers call torch's own kernel for sequences of several lengths.

    A name with "flash" makes the tower hand over all windows in one call. Without it the tower
    calls its attention window by window.
    """
    from torch.nn.attention.varlen import varlen_attn
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    def attend(
        module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **given: Any
    ) -> tuple[Any, None]:
        query, key, value = (one.squeeze(0).transpose(0, 1) for one in (query, key, value))
        longest = int(given["max_length_q"])
        limits = given["cu_seq_lens_q"].to(torch.int32)
        made: Any = varlen_attn(query, key, value, limits, limits, longest, longest)
        return made.unsqueeze(0), None

    ALL_ATTENTION_FUNCTIONS.register("flash_of_torch", attend)


@contextmanager
def clock_parts(net: Any) -> Iterator[dict[str, float]]:
    """Seconds in the towers, in the prompt and in the tokens after it, with a wait after each."""
    spent: dict[str, float] = {"pictures and clips": 0, "sounds": 0, "prompt": 0, "tokens": 0}
    begun: dict[str, float] = {}
    hooks = []

    def clock(part: Any, name: str) -> None:
        def begin(*_: Any) -> None:
            synchronize()
            begun[name] = time.perf_counter()

        def end(_: Any, __: Any, ___: Any) -> None:
            synchronize()
            key = "tokens" if name == "prompt" and spent["prompt"] else name
            spent[key] = round(spent[key] + time.perf_counter() - begun[name], 3)

        hooks.extend([part.register_forward_pre_hook(begin), part.register_forward_hook(end)])

    clock(net.model.visual, "pictures and clips")
    clock(net.model.audio_tower, "sounds")
    clock(net.model.language_model, "prompt")
    began = time.perf_counter()
    try:
        yield spent
    finally:
        spent["whole"] = round(time.perf_counter() - began, 3)
        for hook in hooks:
            hook.remove()


# 6. Several workers.


def share_gpu(given: argparse.Namespace, note: Note) -> None:
    """`omnidata evaluate` by one process, by two with half of the steps each, and through Ray."""
    for name, commands in WORKERS.items():
        if "ray" in name and find_spec("ray") is None:
            note(name, error="Ray is not installed")
            continue
        outs = [given.work / "runs" / f"{name}-{number}" for number in range(len(commands))]
        began = time.perf_counter()
        running = [
            subprocess.Popen(
                [
                    *(sys.executable, "-m", "omnidata", "evaluate", "omnigui"),
                    *(str(given.work / "episodes"), "--model", f"hf:{large(given)}"),
                    *("-M", "batch_size=4", "-M", f"max_new_tokens={TOKENS}"),
                    *("--limit", str(given.steps), "--out", str(out), *more),
                ],
                stderr=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
            for out, more in zip(outs, commands, strict=True)
        ]
        exits = [process.wait() for process in running]
        took = time.perf_counter() - began
        facts = [json.loads((out / "run.json").read_text()).get("facts") for out in outs]
        note(name, seconds=round(took, 1), exits=exits, facts=facts)


WORKERS: dict[str, list[list[str]]] = {
    "one process": [[]],
    "two processes": [["--shard", "1/2"], ["--shard", "2/2"]],
    "ray, --gpus 1": [["--gpus", "1"]],
    "ray, two halves": [["--engine", "ray", "--workers", "2", "--gpus-per-worker", "0.5"]],
}
"""Further options of each command; those of a name run at the same time."""


PARTS: dict[str, Callable[[argparse.Namespace, Note], None]] = {
    "make": make_model,
    "families": run_families,
    "leak": find_leak,
    "equal": equal_step,
    "large": run_large,
    "busy": keep_busy,
    "memory": fit_memory,
    "train": train_large,
    "train-varlen": partial(train_large, sight="flash_of_torch"),
    "attention": compare_attention,
    "workers": share_gpu,
}
SMALL = ("make", "families", "leak", "equal")
"""Those that need no large model, and run side by side."""


if __name__ == "__main__":
    main()
