"""One run: steps in, answers out, each recorded the moment it comes, and the table at the end."""

from __future__ import annotations

import asyncio
import platform
import signal
import threading
import time
import warnings
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol, TypeVar

from omnidata import predictions
from omnidata.adapters import asks_nobody
from omnidata.adapters.media_budget import arrange
from omnidata.errors import (
    AdapterError,
    DataError,
    MediaError,
    RunError,
    UnansweredError,
    UnansweredWarning,
    UsageError,
    plural,
)
from omnidata.loaders.steps import as_steps, ids_of
from omnidata.plugins import blaming
from omnidata.registry import plugin_origin, plugin_versions
from omnidata.remote import display_path
from omnidata.run.adapter_contract import (
    About,
    check_adapter,
    check_taken,
    decoding,
    describe_model,
    render_request,
    slip,
)
from omnidata.run.batch_folder import spend_answers
from omnidata.run.cache import ResponseCache
from omnidata.run.cluster import Job, OnCluster, Recipe, join_left
from omnidata.run.cost import Budget, Limits, Tokens
from omnidata.run.engine import Engine
from omnidata.run.engines.ray import Cluster, Place
from omnidata.run.journal import TRANSIENT, RunFolder
from omnidata.run.media_stamps import Seen, media_of
from omnidata.run.run_info import INFO, check_info
from omnidata.run.scheduling import Gate, StageTimer
from omnidata.run.scoring import get_profile, has_usable_target, score
from omnidata.run.selection import Shard, select, shard, whole_episodes
from omnidata.run.selection import shard as take_shard
from omnidata.tasks import is_named
from omnidata.tasks.asking import Asking, ask_with
from omnidata.tasks.asking_in_dialect import prompt_texts
from omnidata.tasks.benchmark import Benchmark
from omnidata.tasks.profile import Profile
from omnidata.types import (
    Adapter,
    Conversation,
    GenerationParams,
    LoadedDataset,
    Part,
    Prepared,
    Progress,
    Request,
    Step,
)

# The event loop of a run, which may be interrupted.

Result = TypeVar("Result")


def run_loop(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end, also inside a running event loop such as a notebook's.

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
    """Treat SIGTERM as Ctrl-C, so that nothing recorded is lost."""
    task = asyncio.current_task()
    in_main = threading.current_thread() is threading.main_thread()
    if task and in_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        with suppress(NotImplementedError):  # Windows
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await work


def _beside(work: Coroutine[Any, Any, Result]) -> Result:
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
        except BaseException as error:  # raised by the thread that waits
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


Count = Callable[[int, int], None]
"""Takes how many steps were asked about, and how many answers were used that were there before."""

UNLIMITED = Limits()
_RECORDED = ("omnidata", "datasets", "av", "pillow", "numpy", "msgspec")


def evaluate(
    task: Asking | Benchmark,
    source: LoadedDataset,
    model: str | Adapter | Recipe,
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
    cluster: Cluster | None = None,
    count: Count | None = None,
    must_judge: bool = True,
) -> dict[str, Any]:
    """Ask a model about every step and score its answers.

    The same call resumes a run that was interrupted; nothing that was answered is asked again.

    Args:
        task: the benchmark with its options.
        source: the loaded data.
        model: a SPEC such as "baseline:center", how to make one, or an adapter of your own.
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
        cluster: the machines that ask; None for this one. Either resumes what the other began.
        count: called with how many steps this call has asked the model about, and how many answers
            it has used that were there before: in the folder, or in the cache.
        must_judge: raise if no step can be judged. Set it to False to collect answers, such as
            labels.

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
    task = ask_with(task)
    judge = get_profile(task, profile)
    chosen = select(source.steps, where=where, exclude=exclude, limit=limit, task=task)
    steps = take_shard(chosen, *shard) if shard else chosen
    made = Recipe(model, model_options) if isinstance(model, str) else model
    if must_judge and not (isinstance(made, Recipe) and asks_nobody(made.spec)):
        check_judgeable(judge, steps, source, out)
    with ExitStack() as stack:
        stack.enter_context(blaming(plugin_origin(task.name)))
        asker: _Asker = (
            _on_cluster(task, source, made, params, limits, out, cluster)
            if cluster
            else _Here(task, source, made, params, limits)
        )
        about = asker.begin(stack, steps)
        settings = run_settings(
            task,
            source,
            about,
            model_options=model_options,
            where=where,
            exclude=exclude,
            limit=limit,
            shard=shard,
        )
        budget = Budget(limits, about.name)
        reuse = limits.reuse_answers
        with RunFolder(out, settings, steps, code=about.code, reuse=reuse) as run:
            join_left(run, again=True)
            if task.needs_predictions:
                run.reopen(_stale(steps, run))
            seen = Seen(lambda step: media_of(task.conversation(step, [])))
            for number, name in enumerate(ids_of(steps) if run.done else ()):
                if done := run.done.get(name):
                    seen.look(steps[number], done.delivery, done.receipt)
            changed = seen.check(allowed=changed_media, where=str(out))
            spend_answers(run, budget)
            kept, asked = len(run.done), time.perf_counter()
            try:
                try:
                    asker.ask(steps, run, budget, progress)
                finally:
                    if count:
                        count(asker.asked, kept + asker.reused)
            except BaseException:
                took = {"prepare_s": asked - began, "ask_s": time.perf_counter() - asked}
                with suppress(RunError):  # a disk that is full takes no times either
                    run.finish(data=display_path(source.root), timings=took | dict(asker.timings))
                raise
            results, answered = conclude(
                task,
                judge,
                source,
                steps,
                run,
                budget,
                findings=len(source.findings),
                stopped=asker.stopped,
                changed_media=changed,
                facts=asker.facts,
                timings={
                    "prepare_s": asked - began,
                    "ask_s": time.perf_counter() - asked,
                    **asker.timings,
                },
            )
        asked = len(steps) - results.get("patched", {}).get("not_asked", 0)
        if asked > answered:
            _tell_unanswered(asked, answered, asker, out)
        return results


def check_judgeable(
    profile: Profile, steps: Sequence[Step], source: LoadedDataset, out: Path
) -> None:
    """Refuse to ask about steps if none can be judged.

    Args:
        profile: the rules.
        steps: of the run.
        source: the data, for the message.
        out: the run folder; one that has all of its answers is scored again.

    Raises:
        DataError: no step has a target that the profile can use.
    """
    if not steps or has_usable_target(profile, steps):
        return
    answered = _usage_of_answers(out)
    if all(name in answered for name in ids_of(steps)):
        return
    raise DataError(
        f"none of {plural(len(steps), 'step')} has a usable target by {profile.name}: no answer "
        "could be judged",
        where=str(source.root),
        expected="at least one step with a target in the data",
        remedy=f"`omnidata validate {source.task} {source.root}` shows the problems of targets; "
        "or choose other steps, or another --profile",
    )


def run_settings(
    task: Asking,
    source: LoadedDataset,
    about: About,
    *,
    model_options: Mapping[str, str],
    where: Mapping[str, str],
    exclude: frozenset[str],
    limit: int | None,
    shard: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """Return the settings of a run for `run.json`, by which runs are compared.

    Args:
        task: the benchmark with its options.
        source: the loaded data.
        about: the model, looked over.
        model_options: as given with `-M key=value`.
        where: tag -> value that an episode must have.
        exclude: sample ids that are left out.
        limit: the first so many steps only.
        shard: the part.
    """
    return {
        "task": task.name,
        "options": dict(task.options),
        "model": about.name,
        "model_options": dict(model_options),
        "model_settings": dict(about.settings),
        "generation": {
            "temperature": about.params.temperature,
            "max_new_tokens": about.params.max_new_tokens,
            **({"stop": list(about.params.stop)} if about.params.stop else {}),
            **({"special_tokens": True} if about.params.special_tokens else {}),
        },
        "seed": about.params.seed,
        "dataset_fingerprint": source.fingerprint,
        "control": dict(source.media_overrides) or None,
        "prompt_hash": task.prompt_hash,
        **({"prompt_texts": texts} if (texts := prompt_texts(task)) else {}),
        "where": dict(where),
        "exclude": sorted(exclude),
        "limit": limit,
        "shard": list(shard) if shard else None,
    }


def conclude(
    task: Asking,
    judge: Profile,
    source: LoadedDataset,
    steps: Sequence[Step],
    run: RunFolder,
    budget: Budget,
    *,
    timings: Mapping[str, float],
    findings: int,
    stopped: str = "",
    changed_media: int = 0,
    facts: Mapping[str, Any] = {},
) -> tuple[dict[str, Any], int]:
    """Score the lines of a run and record its end.

    Args:
        task: the benchmark with its options.
        judge: the profile.
        source: the loaded data.
        steps: those of the run.
        run: its folder, open.
        budget: has been told of every answer.
        timings: seconds by stage so far.
        findings: how many there are in the data.
        stopped: why it ended before its end.
        changed_media: how many have changed since the model was shown them.
        facts: what the model knows of the run.

    Returns:
        The content of `results.json`, empty where no step has an answer; and how many have one.
    """
    began = time.perf_counter()
    answered = run.done.answered
    results: dict[str, Any] = {}
    if answered or not steps:
        results = score(
            task,
            judge,
            steps,
            run.lines(),
            whole=whole_episodes(source.steps, steps),
            out=run.path,
            stopped=stopped,
            source=source,
        )
    run.finish(
        data=display_path(source.root),
        steps=len(steps),
        findings=findings,
        stopped=stopped,
        **({"changed_media": changed_media} if changed_media else {}),
        usage=budget.totals(),
        facts=dict(facts),
        versions={"python": platform.python_version()}
        | {name: version(name) for name in _RECORDED}
        | plugin_versions(task.name),
        timings={**timings, "score_s": time.perf_counter() - began},
    )
    return results, answered


class _Asker(Protocol):
    stopped: str
    failed: str
    slipped: AdapterError | None
    asked: int
    reused: int

    @property
    def timings(self) -> Mapping[str, float]: ...

    @property
    def facts(self) -> Mapping[str, Any]: ...

    def begin(self, stack: ExitStack, steps: Sequence[Step]) -> About: ...

    def ask(
        self, steps: Sequence[Step], run: RunFolder, budget: Budget, progress: Progress | None
    ) -> None: ...


class _Here:
    def __init__(
        self,
        task: Asking,
        source: LoadedDataset,
        model: Adapter | Recipe,
        params: GenerationParams | None,
        limits: Limits,
    ) -> None:
        self.stopped = self.failed = ""
        self.slipped: AdapterError | None = None
        self.asked = self.reused = 0
        self.timings: Mapping[str, float] = {}
        self.facts: Mapping[str, Any] = {}
        self._task, self._limits, self._params = task, limits, params
        self._adapter = model.make(task, source.steps) if isinstance(model, Recipe) else model

    def begin(self, stack: ExitStack, steps: Sequence[Step]) -> About:
        about = describe_model(
            self._task, self._adapter, self._params, steps, self._limits.concurrency
        )
        self._params = about.params
        cache = self._limits.cache
        self._cache = stack.enter_context(ResponseCache(cache)) if cache else None
        return about

    def ask(
        self, steps: Sequence[Step], run: RunFolder, budget: Budget, progress: Progress | None
    ) -> None:
        meter = StageTimer()
        try:
            run_loop(self._ask(steps, run, budget, meter, progress))
        finally:
            self.timings = meter.timings()
            self.facts = _facts(self._adapter)

    async def _ask(
        self,
        steps: Sequence[Step],
        run: RunFolder,
        budget: Budget,
        meter: StageTimer,
        progress: Progress | None,
    ) -> None:
        assert self._params
        engine = Engine(
            self._task,
            self._adapter,
            run,
            self._params,
            limits=self._limits,
            gate=Gate(self._limits, budget),
            cache=self._cache,
            meter=meter,
        )
        try:
            await engine.ask(steps, progress)
        finally:
            self.asked, self.reused = engine.asked, engine.reused
            with suppress(Exception):  # whatever an adapter lacks at its end, it has answered
                await self._adapter.close()
        self.stopped, self.failed = engine.stopped, engine.failed
        self.slipped = engine.slipped


def _on_cluster(
    task: Asking,
    source: LoadedDataset,
    model: Adapter | Recipe,
    params: GenerationParams | None,
    limits: Limits,
    out: Path,
    cluster: Cluster,
) -> _Asker:
    if not isinstance(model, Recipe):
        raise UsageError(
            "an adapter object cannot run on other machines",
            where="evaluate(model=...)",
            expected="a SPEC, or a Recipe",
            remedy="register the adapter as a plug-in (docs/add_model.md), and name it",
        )
    unnamed = None if is_named(task) else task
    # Workers are sent steps as they are here; where media were made for them, they lie elsewhere.
    replaced = source.steps if source.media_overrides or unnamed else ()
    roots = {ref.root for step in replaced for ref in step.media.values() if ref}
    media = [root for root in sorted(roots) if root.exists()]
    job = Job(
        task.name,
        dict(task.options),
        [Place.of(path) for path in (source.root, *media)],
        as_steps(source.steps).pack() if model.spec.startswith("baseline:") else (),
        model,
        params,
        limits,
        out.absolute() / "parts",
        unnamed,
    )
    return OnCluster(job, cluster)


def _facts(adapter: Adapter) -> dict[str, Any]:
    try:
        facts = dict(adapter.run_metadata())
        check_info({"task": "", "model": "", "facts": facts}, Path(INFO))
    except Exception as error:
        failed = slip(adapter, error, "run_metadata")
        warnings.warn(
            f"{failed.where}: {failed.what}; run.json is without it",
            RuntimeWarning,
            stacklevel=3,
        )
        return {}
    return facts


def _tell_unanswered(steps: int, answered: int, asker: _Asker, out: Path) -> None:
    reason = (asker.stopped or asker.failed).partition("\n")[0]
    if answered:
        warnings.warn(
            f"{steps - answered} of {plural(steps, 'step')} got no answer and "
            f"{'counts' if steps - answered == 1 else 'count'} as wrong: {reason} ({out})",
            UnansweredWarning,
            stacklevel=3,
        )
    elif asker.slipped:
        raise asker.slipped
    else:
        raise UnansweredError(
            f"none of {plural(steps, 'step')} was answered: {reason}",
            where=str(out),
            expected="an answer to at least one step",
            remedy="fix the cause; the same command asks again",
        )


def _stale(steps: Sequence[Step], run: RunFolder) -> frozenset[str]:
    """Return the steps asked after an unanswered one: their histories lacked its answer."""
    lacking: set[str] = set()
    stale = set()
    for step in steps:
        key = step.episode
        if step.sample_id not in run.done:
            lacking.add(key)
        elif key in lacking:
            stale.add(step.sample_id)
    return frozenset(stale)


# What a run would send: its first conversation, and an estimate. No request is sent.

_SAMPLED = 8
_BYTES_PER_TOKEN = 4


def dry_run(
    task: Asking,
    source: LoadedDataset,
    adapter: Adapter,
    out: Path,
    limits: Limits,
    *,
    where: Mapping[str, str] = {},
    exclude: frozenset[str] = frozenset(),
    limit: int | None = None,
    part: Shard | None = None,
    params: GenerationParams | None = None,
) -> dict[str, Any]:
    """Return a summary of the requests of `evaluate`, without sending or writing anything.

    The first conversation is rendered. Up to 8 steps without an answer, evenly spread, are prepared
    to estimate the bytes of a request. Tokens are estimated from the usage of answers in the run
    folder; without any, only texts count, 4 bytes of UTF-8 per token, and answers have their
    maximum length.

    Args:
        task: the benchmark with its options.
        source: the loaded data.
        adapter: the model.
        out: the run folder; may be missing.
        limits: those of the run; its prices are used.
        where: tag -> value that an episode must have.
        exclude: sample ids to leave out.
        limit: the first so many steps only.
        part: the shard.
        params: how to decode; the model's own if None.

    Returns:
        `sample_id`, `conversation` (messages of texts and receipt lines), `steps`, `answered`,
        `requests`, `prepared` (how many steps were made ready), `unreadable` (why others could not
        be), `bytes` to send, `tokens` (`input`, `output`, `how`) and, with a price, `cost`.

    Raises:
        UsageError: the model cannot take the steps, its attributes are not what they should be, or
            a cost is limited and has no price.
        MediaError: none of the steps tried can be made ready.
        AdapterError: the model's own code failed.
    """
    check_adapter(adapter)
    params = decoding(task, adapter, params)
    budget = Budget(limits, adapter.name)
    chosen = select(source.steps, where=where, exclude=exclude, limit=limit, task=task)
    steps = shard(chosen, *part) if part else chosen
    check_taken(task, adapter, steps)
    answered = _usage_of_answers(out)
    left = [step for step in steps if step.sample_id not in answered]
    tried = _spread(left or steps)
    ready, problems = _ready(task, adapter, tried)
    first = ready[0]
    mean = sum(prepared.size for prepared in ready) / len(ready)
    used = [tokens for tokens in answered.values() if tokens.total]
    tokens = estimate_tokens(used, ready, len(left), params)
    preview: dict[str, Any] = {
        "model": adapter.name,
        "sample_id": first.request.sample_id,
        "conversation": _show_messages(_arrange(first.request.conversation, adapter), first),
        "steps": len(steps),
        "answered": len(steps) - len(left),
        "requests": -(-len(left) // adapter.max_batch),
        "prepared": len(ready),
        "unreadable": problems,
        "bytes": round(mean * len(left)),
        "tokens": tokens,
    }
    return preview | price_of(tokens, budget)


def price_of(tokens: Mapping[str, Any], budget: Budget, share: float = 1.0) -> dict[str, Any]:
    """Return the cost of tokens as `cost`; empty without a price.

    Args:
        tokens: an estimate of `dry_run`.
        budget: has the prices.
        share: of them that is asked for.
    """
    if not (budget.price and budget.prices):
        return {}
    counted = {name: tokens[name] for name in Tokens.__slots__ if name in tokens}
    return {
        "cost": {
            "amount": round(share * budget.price.cost(Tokens(**counted)), 6),
            "currency": budget.prices.currency,
            "prices_of": budget.prices.date.isoformat(),
        }
    }


def _usage_of_answers(out: Path) -> dict[str, Tokens]:
    return {
        line.sample_id: Tokens.of(line.usage)
        for line in predictions.read_final(out / "predictions.jsonl")
        if line.delivery not in TRANSIENT
    }


def _spread(steps: Sequence[Step]) -> list[Step]:
    count = min(_SAMPLED, len(steps))
    return [steps[number * len(steps) // count] for number in range(count)]


def _ready(
    task: Asking, adapter: Adapter, steps: Sequence[Step]
) -> tuple[list[Prepared], list[str]]:
    ready: list[Prepared] = []
    problems: list[str] = []
    for step in steps:
        try:
            ready.append(
                render_request(task, adapter, Request(step.sample_id, task.conversation(step, [])))
            )
        except MediaError as error:
            problems.append(f"{step.sample_id}: {error}")
            if len(problems) == len(steps):
                raise
    return ready, problems


def _arrange(conversation: Conversation, adapter: Adapter) -> Conversation:
    from omnidata.adapters.api import ApiModel  # its HTTP client takes long to import

    if not isinstance(adapter, ApiModel):
        return conversation
    arranged, _ = arrange(conversation, adapter.preset.layout, adapter.preset.release)
    return arranged


def _show_messages(conversation: Conversation, prepared: Prepared) -> list[dict[str, Any]]:
    lines = iter(prepared.receipt.get("parts", ()))

    def part(item: Part) -> dict[str, Any]:
        if item.media is None:
            return {"text": item.text, **(next(lines, {}) if item.about else {})}
        return {"path": item.media.path, **next(lines, {"role": item.role, "kind": item.kind})}

    shown: list[dict[str, Any]] = [
        {"role": message.role, "parts": [part(item) for item in message.parts]}
        for message in conversation
    ]
    if left_out := list(lines):  # by the layout
        shown.append({"role": "left out", "parts": left_out})
    return shown


def estimate_tokens(
    used: Sequence[Tokens], ready: Sequence[Prepared], count: int, params: GenerationParams
) -> dict[str, Any]:
    """Return the estimated `input` and `output` tokens of steps, and `how` they are known.

    Args:
        used: of answers that were given.
        ready: some requests, for where there are none.
        count: how many steps.
        params: how they are to be decoded.
    """
    return _measure_tokens(used, count) if used else _guess_tokens(ready, count, params)


def _measure_tokens(used: Sequence[Tokens], count: int) -> dict[str, Any]:
    total = sum(used, Tokens())
    tokens: dict[str, Any] = {
        name: round(getattr(total, name) * count / len(used)) for name in Tokens.__slots__
    }
    return {
        **tokens,
        "how": f"as {plural(len(used), 'answer')} in the run folder used on average",
    }


def _guess_tokens(
    ready: Sequence[Prepared], count: int, params: GenerationParams
) -> dict[str, Any]:
    texts = sum(
        len(part.text.encode("utf-8", "replace"))
        for prepared in ready
        for message in prepared.request.conversation
        for part in message.parts
    )
    longest = params.max_new_tokens
    how = f"input: texts only, {_BYTES_PER_TOKEN} bytes a token, media are not counted; "
    how += f"output: at most {longest} an answer" if longest else "output: not limited, not counted"
    return {
        "input": round(texts / len(ready) / _BYTES_PER_TOKEN * count),
        "output": (longest or 0) * count,
        "how": how,
    }
