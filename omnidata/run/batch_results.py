"""Results of a batch, read into its run folder as if each answer had come live."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from omnidata.adapters.answers import decode_answer, error_in_answer, fault, is_whole, parse_json
from omnidata.adapters.batch_api import BatchModel, Returned
from omnidata.errors import CallError, PredictionError, RunError, UnansweredError, plural
from omnidata.predictions import numbered_lines
from omnidata.run.adapter_contract import decoding
from omnidata.run.batch import batch_model
from omnidata.run.batch_folder import Asked, BatchFolder, Got, spend_answers
from omnidata.run.cost import Budget, Limits
from omnidata.run.differences import changes, describe_changes
from omnidata.run.evaluate import conclude
from omnidata.run.journal import TRANSIENT, RunFolder
from omnidata.run.media_stamps import Seen
from omnidata.run.recorded import recorded_data, recorded_steps, recorded_task
from omnidata.run.run_info import FACTS, read_info
from omnidata.run.scoring import get_profile
from omnidata.tasks.asking import Asking
from omnidata.types import Completion, GenerationParams, Step


@dataclass(slots=True, kw_only=True)
class Read:
    """Counts of `read`.

    Attributes:
        rows: of the files.
        repeated: rows that repeat another.
        answered: steps that this call has given an answer.
        failed: steps that this call has given a failure: "failed", "expired" or "cancelled".
        kept: steps whose earlier answer stays.
        missing: steps of the run without a line.
        results: the content of `results.json`.
    """

    rows: int = 0
    repeated: int = 0
    answered: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    kept: int = 0
    missing: int = 0
    results: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The answer to a request or, with a reason, its failure."""

    asked: Asked
    completion: Completion
    why: str = ""

    @property
    def rank(self) -> tuple[bool, float]:
        """The smallest becomes a step's line: the first answer, otherwise the last failure."""
        return bool(self.why), -self.asked.round if self.why else self.asked.round

    def got(self, *, spare: bool) -> Got:
        asked = self.asked
        return Got(
            custom_id=asked.custom_id,
            sample_id=asked.sample_id,
            round=asked.round,
            answered=not self.why,
            spare=spare,
        )


def read(
    out: Path,
    files: Sequence[Path],
    *,
    lost: Mapping[str, str] = {},
    data: Path | None = None,
    profile: str | None = None,
    changed_media: bool = False,
    prices: Path | None = None,
    models: Path | None = None,
) -> tuple[Asking, Read]:
    """Read files of results in any order, and score the run.

    An answer becomes the same line as in a live run; a request that failed, expired or was
    cancelled becomes an `api_error` with the reason. An existing line stays unless a file has a
    better one, so reading a file twice changes nothing.

    Args:
        out: the run folder.
        files: as the provider wrote them.
        lost: files of requests that get no more results, and why: "expired" or "cancelled".
            Their requests without a result have failed for that reason.
        data: the dataset, if it is not where it was.
        profile: the task's default if None.
        changed_media: go on although media have changed since the requests were written.
        prices: the price file, for the usage in `run.json`.
        models: the file that has the model, where no built-in row is it.

    Returns:
        The task of the run, and the counts.

    Raises:
        RunError: the folder has no batch, or the data or the model have changed.
        PredictionError: a file is broken, is of another batch, or has two answers to one request;
            nothing of any file is written then.
        UnansweredError: no step of the run has an answer.
    """
    began = time.perf_counter()
    folder = BatchFolder(out)
    manifest = folder.manifest
    info = read_info(out)
    task = recorded_task(info, run=out)
    judge = get_profile(task, profile)
    source = task.load(recorded_data(info, out, data), check_media=False)
    steps = recorded_steps(info, source, out)
    adapter = batch_model(manifest.recipe(manifest.base_url, None, models), task)
    if changed := changes(info.get("model_settings") or {}, adapter.settings):
        raise RunError(
            f"the model {adapter.name} has other settings now: {describe_changes(changed)}",
            where=str(out),
            expected="the settings of run.json",
            remedy="restore the file of models that the batch was written with",
        )
    found = Read()
    outcomes = _read_files(files, lost, folder, adapter, decoding(task, adapter, None), found)
    settings = {name: value for name, value in info.items() if name not in FACTS}
    with RunFolder(out, settings, again=False) as run:
        _record(outcomes, steps, folder, run, found)
        seen = Seen()
        for step in steps:
            if done := run.done.get(step.sample_id):
                seen.look(step, done.delivery, done.receipt)
            else:
                found.missing += 1
        budget = Budget(Limits(prices=prices), manifest.spec)
        spend_answers(run, budget)
        if prices is None:
            budget.keep_cost(info.get("usage") or {})
        found.results, answered = conclude(
            task,
            judge,
            source,
            steps,
            run,
            budget,
            timings={"read_s": time.perf_counter() - began},
            findings=info.get("findings", len(source.findings)),
            changed_media=seen.check(allowed=changed_media, where=str(out)),
        )
        if steps and not answered:
            error = next((line.error for line in run.lines() if line.error), "nothing came back")
            error = error.partition("\n")[0]
            raise UnansweredError(
                f"none of {plural(len(steps), 'step')} has an answer: {error}",
                where=str(out),
                expected="an answer to at least one step",
                remedy="fix the cause, then run `omnidata batch write ... --only missing`",
            )
    return task, found


def _record(
    outcomes: Mapping[str, _Outcome],
    steps: Sequence[Step],
    folder: BatchFolder,
    run: RunFolder,
    found: Read,
) -> None:
    """Record the outcomes that are better than the lines of their steps."""
    held = folder.standing()
    best: dict[str, _Outcome] = {}
    for outcome in outcomes.values():
        name = outcome.asked.sample_id
        best[name] = min(best.get(name, outcome), outcome, key=lambda each: each.rank)
        if (line := run.done.get(name)) and name in held:
            _check_same(outcome, line, held[name], run.path)
    fresh: list[_Outcome] = []
    for name in (step.sample_id for step in steps if step.sample_id in best):
        rank = _rank_of(run.done.get(name), held.get(name))
        if best[name].rank < rank:
            fresh.append(best[name])
        else:
            found.kept += not rank[0]
    found.failed.update(outcome.why for outcome in fresh if outcome.why)
    found.answered = len(fresh) - found.failed.total()
    noted = {line.custom_id for line in folder.got() if line.answered}
    noted |= {outcome.asked.custom_id for outcome in fresh}
    spare = [each for name, each in outcomes.items() if not each.why and name not in noted]
    if not (fresh or spare):
        return
    # In this order: a call that is killed leaves steps without a line, and the next one goes on.
    run.reopen(frozenset(outcome.asked.sample_id for outcome in fresh))
    new = [*(each.got(spare=True) for each in spare), *(each.got(spare=False) for each in fresh)]
    folder.append("read.jsonl", new)
    for outcome in spare:
        run.append_attempt(outcome.asked.sample_id, outcome.completion)
    for outcome in fresh:
        run.append(outcome.asked.sample_id, outcome.completion)
    run.sync()


def _rank_of(line: Completion | None, held: Got | None) -> tuple[bool, float]:
    """Return the rank of a step's line; a live answer stays, and so does a live failure."""
    if line is None:
        return True, math.inf
    is_failure = line.delivery in TRANSIENT
    if held is None or held.answered == is_failure:
        return is_failure, -math.inf
    return is_failure, -held.round if is_failure else held.round


def _check_same(outcome: _Outcome, line: Completion, held: Got, out: Path) -> None:
    """Raise if an earlier call read another answer to the same request."""
    came = outcome.completion
    is_answered_again = not outcome.why and held.answered
    if (
        is_answered_again
        and outcome.asked.custom_id == held.custom_id
        and (came.delivery, came.text) != (line.delivery, line.text)
    ):
        raise PredictionError(
            f"there are two answers to the request {held.custom_id}, about step {held.sample_id}: "
            "an earlier call has read another one",
            where=str(out),
            expected="one answer to a request",
            remedy="name the files of one pass only, or write the batch into another folder",
        )


# Rows of files as completions.


def _read_files(
    files: Sequence[Path],
    lost: Mapping[str, str],
    folder: BatchFolder,
    adapter: BatchModel,
    params: GenerationParams,
    found: Read,
) -> dict[str, _Outcome]:
    """Return the outcomes by custom id."""
    asked = {line.custom_id: line for line in folder.requests()}
    outcomes: dict[str, _Outcome] = {}
    for path in files:
        for where, line, returned in _read_rows(path, adapter, asked):
            name = returned.custom_id
            outcome = _judge_row(asked[name], line, returned, adapter, params)
            before = outcomes.setdefault(name, outcome)
            found.rows += 1
            found.repeated += before is not outcome
            if before != outcome and not (before.why or outcome.why):
                raise PredictionError(
                    f"there are two answers to the request {name}, about step "
                    f"{outcome.asked.sample_id}, and they are not the same",
                    where=where,
                    expected="one answer to a request",
                    remedy="name the files of one pass only",
                )
            outcomes[name] = min(
                before, outcome, key=lambda each: (each.rank, each.completion.error)
            )
    for name, request in asked.items():
        if name not in outcomes and (why := lost.get(request.file)):
            ended = Returned(custom_id=name, ended="expired" if why == "expired" else "cancelled")
            outcomes[name] = _judge_row(request, b"", ended, adapter, params)
    return outcomes


def _read_rows(
    path: Path, adapter: BatchModel, asked: Mapping[str, Asked]
) -> Iterator[tuple[str, bytes, Returned]]:
    form = adapter.batch
    assert form
    expected = f"rows of results, as a batch of the form {form.name} has them"
    for number, line in numbered_lines(path, expected=expected):
        where = f"{path}:{number}"
        try:
            row = parse_json(line.decode(errors="replace"))
            returned = form.read(row) if isinstance(row, dict) else None
        except (ValueError, RecursionError):
            returned = None
        if returned is None:
            raise PredictionError(
                "the line belongs to no request",
                where=where,
                expected=expected,
                remedy="delete the file and fetch it again; without the line, its step counts as "
                "missing",
            )
        if returned.custom_id not in asked:
            raise PredictionError(
                f"no request of this run is called {returned.custom_id!r:.80}",
                where=where,
                expected="results of the files in RUN/batch",
                remedy="name the results of this run's batch; those of another belong to "
                "its own folder",
            )
        yield where, line, returned


_ENDED = {"expired": "expired", "cancelled": "was cancelled"}


def _judge_row(
    asked: Asked, line: bytes, returned: Returned, adapter: BatchModel, params: GenerationParams
) -> _Outcome:
    where = f"batch request {asked.custom_id}"
    error = returned.error
    try:
        if returned.ended:
            raise CallError(
                f"the request {_ENDED[returned.ended]} before it was answered"
                + (f": {error}" if error else ""),
                where=where,
                remedy="omnidata batch write ... --only missing asks again",
            )
        decode_answer(line, where)
        if error is not None and returned.status and not is_whole(returned.status):
            inner = error.get("error", error) if isinstance(error, dict) else error
            said = inner.get("message", inner) if isinstance(inner, dict) else inner
            raise fault(returned.status, {}, str(said), where=where)
        if error is not None:
            raise error_in_answer(error, where=where)
        answer = adapter.read(returned.body, params, where, tools=bool(asked.tools))
    except CallError as failed:
        text = adapter.key.redact(str(failed))
        completion = Completion(delivery="api_error", error=text, receipt=dict(asked.receipt))
        return _Outcome(asked, completion, returned.ended or "failed")
    completion = adapter.finish_answer(answer, asked.receipt)
    if asked.media:
        receipt = {**completion.receipt, "media": asked.media}
        completion = msgspec.structs.replace(completion, receipt=receipt)
    return _Outcome(asked, completion)
