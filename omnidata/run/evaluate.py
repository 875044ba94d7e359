"""One run: steps in, answers out, each batch recorded the moment it comes."""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

from omnidata import adapters, media
from omnidata.actions import Action
from omnidata.errors import MediaError
from omnidata.predictions import Prediction
from omnidata.run.folder import RunFolder
from omnidata.run.score import get_profile, score
from omnidata.run.select import episode_key, select, whole_episodes
from omnidata.types import (
    Adapter,
    Completion,
    GenerationParams,
    Request,
    Source,
    Step,
    Task,
)

GREEDY = GenerationParams()
_RECORDED = ("omnidata", "datasets", "av", "pillow", "numpy", "msgspec")
Progress = Callable[[int, int], None]
"""Called with (steps done, steps in all)."""


def evaluate(
    task: Task,
    source: Source,
    model: str | Adapter,
    out: Path,
    *,
    model_options: Mapping[str, str] = {},
    profile: str | None = None,
    where: Mapping[str, str] = {},
    exclude: frozenset[str] = frozenset(),
    limit: int | None = None,
    params: GenerationParams = GREEDY,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Ask a model about every step and score its answers.

    The same call resumes a run that was interrupted; nothing that was answered is asked again.

    Args:
        task: the benchmark with its options.
        source: the loaded data.
        model: a SPEC such as "baseline:center", or an adapter of your own.
        out: the run folder.
        model_options: as given with `-M key=value`.
        profile: the task's default if None.
        where: tag -> value that an episode must have.
        exclude: sample ids to leave out.
        limit: ask about the first so many steps only.
        params: how to decode.
        progress: called after every batch.

    Returns:
        The content of `results.json`.

    Raises:
        UsageError, PredictionError, RunError, DataError: see the messages.
    """
    began = time.perf_counter()
    judge = get_profile(task, profile)
    steps = select(source.steps, where=where, exclude=exclude, limit=limit)
    adapter = model
    if isinstance(adapter, str):
        adapter = adapters.get_adapter(adapter, task, source.steps, options=model_options)
    settings = {
        "task": task.name,
        "options": dict(task.options),
        "model": adapter.name,
        "model_options": dict(model_options),
        "generation": {
            "temperature": params.temperature,
            "max_new_tokens": params.max_new_tokens,
        },
        "seed": params.seed,
        "dataset_fingerprint": source.fingerprint,
        "prompt_hash": task.prompt_hash,
        "where": dict(where),
        "exclude": sorted(exclude),
        "limit": limit,
    }
    with RunFolder(out, settings) as run:
        asked = time.perf_counter()
        _run(_ask(task, adapter, steps, run, params, progress))
        answered = time.perf_counter()
        results = score(
            task,
            judge,
            steps,
            (Prediction.of(name, completion) for name, completion in run.done.items()),
            whole=whole_episodes(source.steps, steps),
            out=out,
        )
        run.finish(
            data=str(source.root),
            steps=len(steps),
            findings=len(source.findings),
            versions={"python": platform.python_version()}
            | {name: version(name) for name in _RECORDED},
            timings={
                "prepare_s": asked - began,
                "model_s": answered - asked,
                "score_s": time.perf_counter() - answered,
            },
        )
    return results


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end, also where an event loop runs already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
        return
    with ThreadPoolExecutor(max_workers=1) as thread:
        thread.submit(asyncio.run, work).result()


async def _ask(
    task: Task,
    adapter: Adapter,
    steps: Sequence[Step],
    run: RunFolder,
    params: GenerationParams,
    progress: Progress | None,
) -> None:
    """Batches of steps without an answer; with predicted history, episodes side by side."""
    predicted = task.needs_predictions
    waves = _side_by_side(steps, adapter.max_batch) if predicted else _batches(steps, adapter)
    if predicted:
        run.reopen(_stale(steps, run))
    past: dict[str, list[Action | None]] = {}
    for wave in waves:
        open_steps = [step for step in wave if step.sample_id not in run.done]
        ready: list[Request] = []
        for step in open_steps:
            conversation = task.prompt(step, past.get(episode_key(step), []))
            request = Request(step.sample_id, conversation)
            problem = _unreadable(request, step, adapter)
            if problem is None:
                ready.append(request)
            else:
                run.append(step.sample_id, Completion(delivery="media_error", error=problem))
        if ready:
            completions = await adapter.generate(ready, params)
            for request, completion in zip(ready, completions, strict=True):
                run.append(request.sample_id, completion)
        if predicted:
            for step in wave:
                line = past.setdefault(episode_key(step), [])
                line.extend([None] * (step.step_index - len(line)))  # steps that the data lacks
                line.append(_predicted(task, run.done[step.sample_id]))
        if progress:
            progress(len(run.done), len(steps))


def _batches(steps: Sequence[Step], adapter: Adapter) -> Iterator[Sequence[Step]]:
    for begin in range(0, len(steps), adapter.max_batch):
        yield steps[begin : begin + adapter.max_batch]


def _side_by_side(steps: Sequence[Step], width: int) -> Iterator[list[Step]]:
    """First steps of up to `width` episodes, then their second steps, and so on."""
    episodes = [list(group) for _, group in groupby(steps, key=episode_key)]
    for begin in range(0, len(episodes), width):
        group = episodes[begin : begin + width]
        for position in range(max(map(len, group))):
            yield [episode[position] for episode in group if position < len(episode)]


def _stale(steps: Sequence[Step], run: RunFolder) -> frozenset[str]:
    """Steps that were asked after one that has no answer: their histories lacked it."""
    lacking: set[str] = set()
    stale = set()
    for step in steps:
        key = episode_key(step)
        if step.sample_id not in run.done:
            lacking.add(key)
        elif key in lacking:
            stale.add(step.sample_id)
    return frozenset(stale)


def _predicted(task: Task, completion: Completion) -> Action | None:
    return task.read(completion.text) if completion.delivery == "ok" else None


def _unreadable(request: Request, step: Step, adapter: Adapter) -> str | None:
    """Why the step cannot be shown to this model; a failure never becomes a prediction."""
    if not adapter.accepts:
        return None
    if "image" in adapter.accepts and step.media.get("screenshot", ...) is None:
        return f"{step.sample_id}: the row names no screenshot"
    for message in request.conversation:
        for part in message.parts:
            if part.media and part.media.kind in adapter.accepts:
                try:
                    media.check(part.media)
                except MediaError as error:
                    return f"{step.sample_id}: {error}"
    return None
