"""Several answers to every step: a run for each, and what they say together.

The first is the run itself, with the settings that it always had; the others lie below it, each a
run folder like any other, which differs in its seed alone. Each resumes, retries and fails as a
run does. What is chosen among answers is a run folder, too, that says in its name how.

    RUN/                    the first answer to every step
    RUN/samples/02/ ...     the others
    RUN/samples/majority/   of each step's answers the one that most are the same as
    RUN/samples/best/       the one that a verifier likes best
    RUN/samples.jsonl       step by step what came out
    RUN/samples.json        the table
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from omnidata.errors import UsageError, plural
from omnidata.run.answer_choice import SAMPLES, read_verifier, write_table
from omnidata.run.asker import OpenModel, Recipe
from omnidata.run.cost import Limits
from omnidata.run.engines import Cluster
from omnidata.run.engines.ray import connect
from omnidata.run.evaluate import UNLIMITED, evaluate
from omnidata.run.run_info import INFO, read_info
from omnidata.run.scoring import get_profile
from omnidata.run.selection import select
from omnidata.tasks.asking import Asking
from omnidata.types import GenerationParams, LoadedDataset, Progress

_MOST: Final = 64


def sample_folders(run: Path) -> list[Path]:
    """Return the run and the existing folders of its other samples."""
    others = sorted((run / SAMPLES).glob("[0-9][0-9]"))
    return [run, *(path for path in others if (path / INFO).is_file())]


def evaluate_samples(
    task: Asking,
    source: LoadedDataset,
    model: Recipe,
    out: Path,
    samples: int,
    *,
    limits: Limits = UNLIMITED,
    progress: Progress | None = None,
    cluster: Cluster | None = None,
    verifier: Path | None = None,
    **settings: Any,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Ask a model several times about every step. The model is opened once.

    Args:
        task: the benchmark with its options.
        source: the loaded data.
        model: how to make the model.
        out: the run folder of the first sample, which holds the others.
        samples: answers to each step, 2 to 64.
        limits: see `evaluate`; those of cost and tokens are of all samples together.
        progress: called with the number of answers of all samples, and of those to come.
        cluster: the machines that ask; their workers open the model for every sample.
        verifier: scores of the answers, or a run of a critic on them (see `read_verifier`); chooses
            the best of each step.
        settings: others of `omnidata.run.evaluate.evaluate`, for every sample.

    Returns:
        The content of `results.json` of the first sample, and of `samples.json`.

    Raises:
        UsageError: the model decodes greedily, so that all samples would be one; or answers would
            come out of the cache, where samples cannot be told apart by a seed; or the verifier
            judges no answers.
        RunError, PredictionError, DataError, AdapterError, UnansweredError: as `evaluate`.
    """
    if not 2 <= samples <= _MOST:
        raise UsageError(
            "the number of samples is out of range",
            where=f"--samples {samples}",
            expected=f"2 to {_MOST}",
        )
    if task.needs_predictions:
        raise UsageError(
            "with the model's own answers as history each sample would see another prompt",
            where="--samples, -T history=predicted",
            expected="history=gold or history=none",
        )
    results: dict[str, Any] = {}
    done: list[Path] = []
    with ExitStack() as stack:
        opened = stack.enter_context(OpenModel(model))
        adapter = (
            model.make(task, source.steps, asks=False)
            if cluster
            else opened.adapter(task, source.steps)
        )
        # Without a seed all requests are the same, and the server draws.
        seeded = "seed" in getattr(adapter, "controls", ("seed",))
        params = adapter.params
        _check_draws(params, model, limits, seeded=seeded)
        # Before anything is asked and paid for.
        scores = read_verifier(verifier, task, source.fingerprint) if verifier else None
        if cluster:
            stack.enter_context(connect(cluster))
        for number in range(samples):
            left = _remaining_limits(limits, done)
            if isinstance(left, str):
                results = {**results, "stopped": left}
                break
            folder = out / SAMPLES / f"{number + 1:02}" if number else out
            seed = (params.seed or 0) + number if number and seeded else params.seed
            found = evaluate(
                task,
                source,
                opened,
                folder,
                model_options=model.options,
                params=replace(params, seed=seed),
                limits=left,
                progress=progress and partial(_show_sample, progress, number, samples),
                cluster=cluster,
                **settings,
            )
            done.append(folder)
            results = results or found
            if found.get("stopped"):
                results = {**results, "stopped": found["stopped"]}
                break
    rules = get_profile(task, settings.get("profile"))
    choice = {name: settings[name] for name in ("where", "exclude", "limit") if name in settings}
    steps = select(source.steps, task=task, part=settings.get("shard"), **choice)
    errata = settings.get("errata", ())
    table = write_table(
        task, rules, source, steps, done, samples=samples, verifier=scores, errata=errata
    )
    return results, table


def _show_sample(progress: Progress, number: int, samples: int, done: int, total: int) -> None:
    progress(number * total + done, samples * total)


def _check_draws(base: GenerationParams, model: Recipe, limits: Limits, *, seeded: bool) -> None:
    if base.temperature == 0:
        raise UsageError(
            "the model decodes greedily, so all samples would be the same answer",
            where=f"--samples, --model {model.spec}",
            expected="a temperature above 0",
            remedy="add -M temperature=0.7, or drop --samples",
        )
    if limits.cache and not seeded:
        raise UsageError(
            "the model takes no seed, so all samples would be the same cached answer",
            where="--samples, --cache",
            expected="one of the two",
            remedy="drop --cache",
        )


def _remaining_limits(limits: Limits, done: Sequence[Path]) -> Limits | str:
    cost = tokens = 0.0
    for folder in done:
        used = read_info(folder).get("usage", {})
        cost += used.get("cost") or 0
        tokens += (used.get("input_tokens") or 0) + (used.get("output_tokens") or 0)
    if limits.max_cost is not None:
        if cost >= limits.max_cost:
            return f"--max-cost {limits.max_cost:g}: {plural(len(done), 'sample')} used {cost:.6g}"
        limits = replace(limits, max_cost=limits.max_cost - cost)
    if limits.max_tokens is not None:
        if tokens >= limits.max_tokens:
            return (
                f"--max-tokens {limits.max_tokens}: {plural(len(done), 'sample')} used {tokens:.0f}"
            )
        limits = replace(limits, max_tokens=int(limits.max_tokens - tokens))
    return limits
