"""One run: steps in, answers out, each recorded the moment it comes, and the table at the end."""

from __future__ import annotations

import platform
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnidata import predictions
from omnidata.adapters import asks_nobody
from omnidata.errors import (
    DataError,
    RunError,
    UnansweredError,
    UnansweredWarning,
    UsageError,
    plural,
)
from omnidata.loaders.steps import Positions, as_steps, ids_of
from omnidata.plugins import blaming
from omnidata.registry import plugin_origin, plugin_versions
from omnidata.remote import display_path
from omnidata.run.adapter_contract import About
from omnidata.run.ask import AskingOutcome
from omnidata.run.asker import LocalAsker, OpenModel, Recipe
from omnidata.run.batch_folder import spend_answers
from omnidata.run.certificates import FACT, find_certificate
from omnidata.run.cost import Budget, Limits, Tokens
from omnidata.run.engines import Cluster
from omnidata.run.journal import TRANSIENT, RunFolder, join_left
from omnidata.run.media_stamps import Seen
from omnidata.run.run_info import ANSWERS
from omnidata.run.scoring import get_profile, has_usable_target, score
from omnidata.run.selection import select, whole_episodes
from omnidata.tasks import is_named
from omnidata.tasks.asking import Asking, ask_with
from omnidata.tasks.asking_in_dialect import prompt_texts
from omnidata.tasks.benchmark import Benchmark
from omnidata.tasks.profile import Profile
from omnidata.types import Adapter, GenerationParams, LoadedDataset, Progress, Step

if TYPE_CHECKING:
    from omnidata.run.cluster import OnCluster
    from omnidata.run.errata import Errata

Count = Callable[[int, int], None]
"""Takes how many steps were asked about, and how many answers were used that were there before."""

UNLIMITED = Limits()
_RECORDED = ("omnidata", "datasets", "av", "pillow", "numpy", "msgspec")


def evaluate(
    task: Asking | Benchmark,
    source: LoadedDataset,
    model: str | Adapter | Recipe | OpenModel,
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
    errata: Sequence[Errata] = (),
) -> dict[str, Any]:
    """Ask a model about every step and score its answers.

    The same call resumes a run that was interrupted; nothing that was answered is asked again.

    Args:
        task: the benchmark with its options.
        source: the loaded data.
        model: a SPEC such as "baseline:center", how to make one, an adapter of your own, or a model
            that stays open for other runs.
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
        errata: corrections of labels, see `score`.

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
    steps = select(source.steps, where=where, exclude=exclude, limit=limit, task=task, part=shard)
    if isinstance(model, str):
        model = Recipe(model, model_options)
    opened = model if isinstance(model, OpenModel) else OpenModel(model)
    if must_judge and not (opened.recipe and asks_nobody(opened.recipe.spec)):
        check_judgeable(judge, steps, source, out)
    if errata:
        from omnidata.run.rejudging import Rejudging

        Rejudging(task, judge, steps, errata)  # refuses what cannot be judged before it is paid for
    with ExitStack() as stack:
        stack.enter_context(blaming(plugin_origin(task.name)))
        asker: LocalAsker | OnCluster
        if cluster:
            asker = _on_cluster(task, source, opened.recipe, params, limits, out, cluster)
        else:
            if opened is not model:
                stack.enter_context(opened)
            asker = LocalAsker(task, opened, source.steps, params, limits)
        about = asker.begin(stack, steps)
        certificate = find_certificate(about.name, about.settings)
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
            seen = Seen(task)
            for number, name in enumerate(ids_of(steps) if run.done else ()):
                if done := run.done.get(name):
                    seen.look(steps[number], done.delivery, done.receipt)
            changed = seen.check(allowed=changed_media, where=str(out))
            spend_answers(run, budget)
            kept, prepared = len(run.done), time.perf_counter()

            def timings() -> dict[str, float]:
                spent = {"prepare_s": prepared - began, "ask_s": time.perf_counter() - prepared}
                return {**spent, **asker.timings}

            try:
                asker.ask(steps, run, budget, progress)
            except BaseException:
                with suppress(RunError):  # a disk that is full takes no times either
                    run.finish(data=display_path(source.root), timings=timings())
                raise
            finally:
                if count:
                    count(asker.outcome.asked, kept + asker.outcome.reused)
            results, answered = conclude(
                task,
                judge,
                source,
                steps,
                run,
                budget,
                findings=len(source.findings),
                stopped=asker.outcome.stopped,
                changed_media=changed,
                facts={**asker.facts, **({FACT: certificate.as_dict()} if certificate else {})},
                timings=timings(),
                errata=errata,
            )
        asked = len(steps) - results.get("patched", {}).get("not_asked", 0)
        if asked > answered:
            _report_unanswered(asked, answered, asker.outcome, out)
        return results


def check_judgeable(
    profile: Profile, steps: Sequence[Step], source: LoadedDataset, out: Path
) -> None:
    """Refuse to ask about steps if none can be judged; a run with all of its answers passes.

    Raises:
        DataError: no step has a target that the profile can use.
    """
    if not steps or has_usable_target(profile, steps):
        return
    answered = usage_of_answers(out)
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
    """Return the settings of a run for `run.json`, by which runs are compared."""
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
    errata: Sequence[Errata] = (),
) -> tuple[dict[str, Any], int]:
    """Score the lines of a run and record its end; `timings` are seconds by stage so far.

    Returns:
        The content of `results.json`, empty if no step has an answer; and the number of answers.
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
            ignored=Positions(source.steps) if errata else (),
            errata=errata,
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


def _on_cluster(
    task: Asking,
    source: LoadedDataset,
    model: Recipe | None,
    params: GenerationParams | None,
    limits: Limits,
    out: Path,
    cluster: Cluster,
) -> OnCluster:
    from omnidata.run.cluster import Job, OnCluster
    from omnidata.run.engines.ray import Place

    if model is None:
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


def _report_unanswered(steps: int, answered: int, outcome: AskingOutcome, out: Path) -> None:
    reason = (outcome.stopped or outcome.failed).partition("\n")[0]
    if answered:
        warnings.warn(
            f"{steps - answered} of {plural(steps, 'step')} got no answer and "
            f"{'counts' if steps - answered == 1 else 'count'} as wrong: {reason} ({out})",
            UnansweredWarning,
            stacklevel=3,
        )
    elif outcome.slipped:
        raise outcome.slipped
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
        if step.sample_id not in run.done:
            lacking.add(step.episode)
        elif step.episode in lacking:
            stale.add(step.sample_id)
    return frozenset(stale)


def usage_of_answers(out: Path) -> dict[str, Tokens]:
    """Return the tokens of the final answers in a run folder by sample id; it may be missing."""
    path = out / ANSWERS
    return {
        line.sample_id: Tokens.of(line.usage)
        for line in (predictions.read_final(path) if path.is_file() else ())
        if line.delivery not in TRANSIENT
    }
