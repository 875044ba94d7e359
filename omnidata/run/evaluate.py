"""One run: steps in, answers out, each recorded the moment it comes, and the table at the end."""

from __future__ import annotations

import asyncio
import json
import platform
import signal
import threading
import time
import warnings
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from omnidata import adapters
from omnidata.errors import RunError, UnansweredError, UnansweredWarning, counted
from omnidata.predictions import Prediction
from omnidata.run.adapter_contract import check_adapter, check_taken, slip
from omnidata.run.cache import ResponseCache
from omnidata.run.cost import Budget, Limits
from omnidata.run.engine import Engine, Progress
from omnidata.run.folder import TRANSIENT, RunFolder
from omnidata.run.media_stamps import check_unchanged, media_of
from omnidata.run.scoring import get_profile, score
from omnidata.run.selection import select, whole_episodes
from omnidata.run.selection import shard as take_shard
from omnidata.run.timing import Meter
from omnidata.types import Adapter, GenerationParams, LoadedDataset, Step, Task

# The event loop of a run, which may be interrupted.

Result = TypeVar("Result")


def run_loop(work: Coroutine[Any, Any, Result]) -> Result:
    """Run to the end, also where an event loop runs already, as in a notebook.

    Raises:
        KeyboardInterrupt: on Ctrl-C, and on SIGTERM where nothing else handles it; the work was
            cancelled then and has ended.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        return _beside(work)
    try:
        return asyncio.run(_terminable(work))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _terminable(work: Coroutine[Any, Any, Result]) -> Result:
    """A machine that shuts down or a batch system asks by SIGTERM; it loses no more than Ctrl-C."""
    task = asyncio.current_task()
    in_main = threading.current_thread() is threading.main_thread()
    if task and in_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        with suppress(NotImplementedError):  # Windows
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await work


def _beside(work: Coroutine[Any, Any, Result]) -> Result:
    """In a thread of its own, which ends when this one is interrupted."""
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()

    async def begin() -> Result:
        task = asyncio.current_task()
        assert task
        started.set_result((asyncio.get_running_loop(), task))
        return await work

    done: Future[Result] = Future()

    def body() -> None:
        try:
            done.set_result(asyncio.run(begin()))
        except BaseException as error:  # for whoever waits
            done.set_exception(error)

    thread = threading.Thread(target=body, name="omnidata-run")
    try:
        thread.start()  # itself a place where an interruption may come
        return done.result()
    except KeyboardInterrupt:
        loop, task = started.result()
        with suppress(RuntimeError):  # it has just ended
            loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise


UNLIMITED = Limits()
_RECORDED = ("omnidata", "datasets", "av", "pillow", "numpy", "msgspec")


def evaluate(
    task: Task,
    source: LoadedDataset,
    model: str | Adapter,
    out: Path,
    *,
    model_options: Mapping[str, str] = {},
    profile: str | None = None,
    where: Mapping[str, str] = {},
    exclude: frozenset[str] = frozenset(),
    limit: int | None = None,
    shard: tuple[int, int] | None = None,
    params: GenerationParams | None = None,
    limits: Limits = UNLIMITED,
    progress: Progress | None = None,
    changed_media: bool = False,
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
        shard: (i, n) asks about the i-th of n parts, i from 1, cut between episodes.
        params: how to decode; the model's own if None.
        limits: how fast, how long and how dearly to ask; no answer depends on it.
        progress: called while the run goes on.
        changed_media: go on with a run although media that it was shown have changed since.

    Returns:
        The content of `results.json`; `stopped` in it says why a run ended before its end.

    Raises:
        UsageError, PredictionError, RunError, DataError: see the messages.
        AdapterError: the model's own code failed, and no step was answered.
        UnansweredError: no step was answered for another reason.

    Warns:
        UnansweredWarning: some steps were not answered; they count as wrong.
        RuntimeWarning: the model's `run_metadata` failed; the results are without them.
    """
    began = time.perf_counter()
    judge = get_profile(task, profile)
    adapter = model
    if isinstance(adapter, str):
        adapter = adapters.get_adapter(adapter, task, source.steps, options=model_options)
    check_adapter(adapter)
    params = params or adapter.params
    chosen = select(source.steps, where=where, exclude=exclude, limit=limit, spelling=task.spelling)
    steps = take_shard(chosen, *shard) if shard else chosen
    check_taken(task, adapter, steps)
    settings = {
        "task": task.name,
        "options": dict(task.options),
        "model": adapter.name,
        "model_options": dict(model_options),
        "model_settings": dict(adapter.settings),
        "generation": {
            "temperature": params.temperature,
            "max_new_tokens": params.max_new_tokens,
        },
        "seed": params.seed,
        "dataset_fingerprint": source.fingerprint,
        "control": dict(source.media_overrides) or None,
        "prompt_hash": task.prompt_hash,
        "where": dict(where),
        "exclude": sorted(exclude),
        "limit": limit,
        "shard": list(shard) if shard else None,
    }
    budget = Budget(limits, adapter.name)
    kept = ResponseCache(limits.cache) if limits.cache else nullcontext()
    with kept as cache, RunFolder(out, settings) as run:
        if task.needs_predictions:
            run.reopen(_stale(steps, run))
        changed = check_unchanged(
            steps,
            run.done,
            lambda step: media_of(task.prompt(step, [])),
            allowed=changed_media,
            where=str(out),
        )
        for completion in run.done.values():
            if completion.usage:  # an answer out of the cache has none
                budget.spend(completion.usage)
        for line in run.failed_lines():  # answers that were asked for again cost something as well
            if line.usage:
                budget.spend(line.usage)
        meter = Meter()
        asked = time.perf_counter()
        ask = _ask(task, adapter, steps, run, params, limits, budget, cache, meter, progress)
        try:
            engine = run_loop(ask)
        except BaseException:
            took = {"prepare_s": asked - began, "ask_s": time.perf_counter() - asked}
            with suppress(RunError):  # a disk that is full takes no times either
                run.finish(data=str(source.root), timings=took | meter.timings())
            raise
        asked_until = time.perf_counter()
        answered = sum(done.delivery not in TRANSIENT for done in run.done.values())
        results: dict[str, Any] = {}
        if answered or not steps:
            results = score(
                task,
                judge,
                steps,
                (Prediction.of(name, completion) for name, completion in run.done.items()),
                whole=whole_episodes(source.steps, steps),
                out=out,
                stopped=engine.stopped,
            )
        run.finish(
            data=str(source.root),
            steps=len(steps),
            findings=len(source.findings),
            stopped=engine.stopped,
            **({"changed_media": changed} if changed else {}),
            usage=budget.totals(),
            facts=_facts(adapter),
            versions={"python": platform.python_version()}
            | {name: version(name) for name in _RECORDED},
            timings={
                "prepare_s": asked - began,
                "ask_s": asked_until - asked,
                **meter.timings(),
                "score_s": time.perf_counter() - asked_until,
            },
        )
    if len(steps) > answered:
        _tell_unanswered(len(steps), answered, engine, out)
    return results


def _facts(adapter: Adapter) -> dict[str, Any]:
    """What the adapter knows of the run; whatever it lacks at its end, it has answered."""
    try:
        facts = dict(adapter.run_metadata())
        json.dumps(facts)
    except Exception as error:
        failed = slip(adapter, error, "run_metadata")
        warnings.warn(
            f"{failed.where}: {failed.what}; run.json is without it",
            RuntimeWarning,
            stacklevel=3,
        )
        return {}
    return facts


def _tell_unanswered(steps: int, answered: int, engine: Engine, out: Path) -> None:
    """Warn of steps without an answer; a score of no answer at all is none."""
    reason = (engine.stopped or engine.failed).partition("\n")[0]
    if answered:
        warnings.warn(
            f"{steps - answered} of {counted(steps, 'step')} got no answer and "
            f"{'counts' if steps - answered == 1 else 'count'} as wrong: {reason} ({out})",
            UnansweredWarning,
            stacklevel=3,
        )
    elif engine.slipped:
        raise engine.slipped
    else:
        raise UnansweredError(
            f"none of {counted(steps, 'step')} was answered: {reason}",
            where=str(out),
            expected="an answer to one step at least",
            remedy="mend the reason; the same command asks again",
        )


async def _ask(
    task: Task,
    adapter: Adapter,
    steps: Sequence[Step],
    run: RunFolder,
    params: GenerationParams,
    limits: Limits,
    budget: Budget,
    cache: ResponseCache | None,
    meter: Meter,
    progress: Progress | None,
) -> Engine:
    """Ask about all steps."""
    engine = Engine(
        task, adapter, run, params, limits=limits, budget=budget, cache=cache, meter=meter
    )
    try:
        await engine.ask(steps, progress)
    finally:
        with suppress(Exception):  # whatever an adapter lacks at its end, it has answered
            await adapter.close()
    return engine


def _stale(steps: Sequence[Step], run: RunFolder) -> frozenset[str]:
    """Steps that were asked after one that has no answer: their histories lacked it."""
    lacking: set[str] = set()
    stale = set()
    for step in steps:
        key = step.episode
        if step.sample_id not in run.done:
            lacking.add(key)
        elif key in lacking:
            stale.add(step.sample_id)
    return frozenset(stale)
