"""What comes back of a batch, read into its run folder as if each answer had come live."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from omnidata.adapters.answers import error_in_answer, fault, is_whole, parse_json, text_of
from omnidata.adapters.batch_api import BatchModel, Returned
from omnidata.errors import CallError, PredictionError, RunError, UnansweredError, plural
from omnidata.predictions import numbered_lines
from omnidata.run.adapter_contract import decoding
from omnidata.run.batch import batch_model, check_light
from omnidata.run.batch_folder import (
    Asked,
    BatchFolder,
    Got,
    Manifest,
    check_models,
    spend_answers,
)
from omnidata.run.cluster import Recipe
from omnidata.run.cost import Budget, Limits
from omnidata.run.evaluate import conclude
from omnidata.run.folder import TRANSIENT, RunFolder
from omnidata.run.media_stamps import Seen
from omnidata.run.run_files import (
    FACTS,
    changes,
    describe_changes,
    read_info,
    recorded_data,
    recorded_steps,
    recorded_task,
)
from omnidata.run.scoring import get_profile
from omnidata.tasks.asking import Asking
from omnidata.types import Completion, GenerationParams, Step


@dataclass(slots=True, kw_only=True)
class Read:
    """What `read` found.

    Attributes:
        rows: of the files.
        repeated: of them those that say again what another says.
        answered: steps that got their answer now.
        failed: steps whose request came back without one, by why: "failed", "expired",
            "cancelled".
        kept: rows of steps that had an answer already, which stays.
        missing: steps of the run that have no line at all.
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
    asked: Asked
    completion: Completion
    why: str

    @property
    def name(self) -> str:
        return self.asked.sample_id

    @property
    def rank(self) -> tuple[bool, int, str]:
        """The smallest becomes a step's line: the first answer, otherwise the last failure."""
        number = self.asked.round
        return bool(self.why), -number if self.why else number, self.completion.error


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
        The task of the run, and what was found.

    Raises:
        RunError: the folder has no batch, or the data or the model have changed.
        PredictionError: a file is broken, is of another batch, or has two answers to one request;
            nothing of any file is written then.
        UnansweredError: no step of the run has an answer.
    """
    began = time.perf_counter()
    folder, manifest = BatchFolder.of(out)
    info = read_info(out)
    task = recorded_task(info, run=out)
    judge = get_profile(task, profile)
    source = task.load(recorded_data(info, out, data), check_media=False)
    steps = recorded_steps(info, source, out)
    adapter = _model(manifest, info, task, steps, out, models)
    asked = {line.custom_id: line for line in folder.requests()}
    found = Read()
    reader = _Reader(adapter, decoding(task, adapter, None), asked, found)
    outcomes = reader.outcomes(files)
    settings = {name: value for name, value in info.items() if name not in FACTS}
    with RunFolder(out, settings, again=False) as run:
        held = folder.standing()
        for line in asked.values():
            if (why := lost.get(line.file)) and line.custom_id not in outcomes:
                outcomes[line.custom_id] = reader.give_up(line, why)
        best: dict[str, _Outcome] = {}
        for outcome in outcomes.values():
            name = outcome.name
            _check_same(outcome, run.done.get(name), held.get(name), out)
            if name not in best or outcome.rank < best[name].rank:
                best[name] = outcome
        fresh = [
            best[step.sample_id]
            for step in steps
            if step.sample_id in best
            and _is_better(
                best[step.sample_id], run.done.get(step.sample_id), held.get(step.sample_id)
            )
        ]
        final = {line.sample_id for line in run.lines() if line.delivery not in TRANSIENT}
        found.kept = sum(name in final for name in best.keys() - {one.name for one in fresh})
        known = {line.custom_id for line in folder.got() if line.answered}
        chosen = {outcome.asked.custom_id for outcome in fresh}
        spare = [
            outcome
            for name, outcome in outcomes.items()
            if not outcome.why and name not in known | chosen
        ]
        _record(folder, run, fresh, spare)
        for outcome in fresh:
            found.failed[outcome.why or "ok"] += 1
        found.answered = found.failed.pop("ok", 0)
        found.missing = sum(step.sample_id not in run.done for step in steps)
        seen = Seen()
        for step in steps:
            if done := run.done.get(step.sample_id):
                seen.look(step, done.delivery, done.receipt)
        changed = seen.check(allowed=changed_media, where=str(out))
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
            changed_media=changed,
        )
    if steps and not answered:
        raise UnansweredError(
            f"none of {plural(len(steps), 'step')} has an answer: {_why_none(run)}",
            where=str(out),
            expected="an answer to at least one step",
            remedy="fix the cause, then run `omnidata batch write ... --only missing`",
        )
    return task, found


def _model(
    manifest: Manifest,
    info: Mapping[str, Any],
    task: Asking,
    steps: Sequence[Step],
    out: Path,
    models: Path | None,
) -> BatchModel:
    check_light(manifest.spec)
    check_models(manifest, models)
    recipe = Recipe(manifest.spec, manifest.options, manifest.base_url, None, models)
    adapter = batch_model(recipe.make(task, steps, asks=False))
    if found := changes(info.get("model_settings") or {}, adapter.settings):
        raise RunError(
            f"the model {adapter.name} has other settings now: {describe_changes(found)}",
            where=str(out),
            expected="the settings of run.json",
            remedy="restore the file of models that the batch was written with",
        )
    return adapter


def _check_same(found: _Outcome, there: Completion | None, held: Got | None, out: Path) -> None:
    """Raise if an earlier call read another answer to the same request."""
    if there is None or held is None or found.why or not held.answered:
        return
    came = found.completion
    if found.asked.custom_id == held.custom_id and (
        (came.delivery, came.text) != (there.delivery, there.text)
    ):
        raise PredictionError(
            f"there are two answers to the request {held.custom_id}, about step {held.sample_id}: "
            "an earlier call has read another one",
            where=str(out),
            expected="one answer to a request",
            remedy="name the files of one pass only, or write the batch into another folder",
        )


def _is_better(found: _Outcome, there: Completion | None, held: Got | None) -> bool:
    if there is None:
        return True
    if there.delivery not in TRANSIENT:
        # Of answers the first round's counts, whatever is read first; one that came live stays.
        if held is None or not held.answered or found.why:
            return False
        return found.asked.round < held.round
    if not found.why:
        return True
    # Of failures the last round's says how things stand, whatever is read first.
    return held is not None and held.round < found.asked.round


def _record(
    folder: BatchFolder, run: RunFolder, fresh: Sequence[_Outcome], spare: Sequence[_Outcome]
) -> None:
    if not fresh and not spare:
        return
    rows = [*((each, True) for each in spare), *((each, False) for each in fresh)]
    folder.append(
        "read.jsonl",
        [
            Got(
                custom_id=each.asked.custom_id,
                sample_id=each.asked.sample_id,
                round=each.asked.round,
                answered=not each.why,
                spare=is_spare,
            )
            for each, is_spare in rows
        ],
    )
    run.reopen(frozenset(each.asked.sample_id for each in fresh))
    for each in spare:
        run.append_attempt(each.asked.sample_id, each.completion)
    for each in fresh:
        run.append(each.asked.sample_id, each.completion)
    run.sync()


def _why_none(run: RunFolder) -> str:
    failed = next((line.error for line in run.lines() if line.error), "nothing came back")
    return failed.partition("\n")[0]


# Rows of files as completions.


_ENDED = {"expired": "expired", "cancelled": "was cancelled"}


class _Reader:
    def __init__(
        self,
        adapter: BatchModel,
        params: GenerationParams,
        asked: Mapping[str, Asked],
        found: Read,
    ) -> None:
        self._adapter, self._params, self._asked, self._found = adapter, params, asked, found

    def outcomes(self, files: Sequence[Path]) -> dict[str, _Outcome]:
        known: dict[str, _Outcome] = {}
        for path in files:
            for where, line, returned in self._rows(path):
                self._found.rows += 1
                outcome = self._outcome(self._asked[returned.custom_id], line, returned)
                before = known.get(returned.custom_id)
                if before is None:
                    known[returned.custom_id] = outcome
                    continue
                self._found.repeated += 1
                if not (before.why or outcome.why) and before != outcome:
                    raise PredictionError(
                        f"there are two answers to the request {returned.custom_id}, about step "
                        f"{outcome.asked.sample_id}, and they are not the same",
                        where=where,
                        expected="one answer to a request",
                        remedy="name the files of one pass only",
                    )
                known[returned.custom_id] = min(before, outcome, key=lambda each: each.rank)
        return known

    def _rows(self, path: Path) -> Iterator[tuple[str, bytes, Returned]]:
        name = self._adapter.batch.name
        expected = f"the rows that {name} writes of what came of a batch"
        for number, line in numbered_lines(path, expected=expected):
            where = f"{path}:{number}"
            returned = self._read_line(line)
            if returned is None:
                raise PredictionError(
                    "the line belongs to no request",
                    where=where,
                    expected=expected,
                    remedy="fetch the file again; without the line, its step counts as missing",
                )
            if returned.custom_id not in self._asked:
                raise PredictionError(
                    f"no request of this run is called {returned.custom_id!r:.80}",
                    where=where,
                    expected="results of the files in RUN/batch",
                    remedy="name the results of this run's batch; those of another belong to "
                    "its own folder",
                )
            yield where, line, returned

    def _read_line(self, line: bytes) -> Returned | None:
        try:
            row = parse_json(line.decode("utf-8-sig", errors="replace"))
            return self._adapter.batch.read(row) if isinstance(row, dict) else None
        except (ValueError, RecursionError):
            return None

    def _outcome(self, asked: Asked, line: bytes, returned: Returned) -> _Outcome:
        if returned.ended:
            return self.give_up(asked, returned.ended, str(returned.error or ""))
        where = f"batch request {asked.custom_id}"
        try:
            text_of(line, where)
            if returned.error is not None:
                raise _failure(returned, where)
            answer = self._adapter.read(returned.body, self._params, where, tools=bool(asked.tools))
        except CallError as error:
            return self._failure(asked, str(error), "failed")
        completion = self._adapter.finish_answer(answer, asked.receipt)
        if asked.media:
            receipt = {**completion.receipt, "media": asked.media}
            completion = msgspec.structs.replace(completion, receipt=receipt)
        return _Outcome(asked, completion, "")

    def give_up(self, asked: Asked, why: str, said: str = "") -> _Outcome:
        error = CallError(
            f"the request {_ENDED[why]} before it was answered" + (f": {said}" if said else ""),
            where=f"batch request {asked.custom_id}",
            remedy="omnidata batch write ... --only missing asks again",
        )
        return self._failure(asked, str(error), why)

    def _failure(self, asked: Asked, error: str, why: str) -> _Outcome:
        error = self._adapter.key.redact(error)
        failed = Completion(delivery="api_error", error=error, receipt=dict(asked.receipt))
        return _Outcome(asked, failed, why)


def _failure(returned: Returned, where: str) -> CallError:
    error = returned.error
    if returned.status and not is_whole(returned.status):
        inner = error.get("error", error) if isinstance(error, dict) else error
        said = inner.get("message", inner) if isinstance(inner, dict) else inner
        return fault(returned.status, {}, str(said), where=where)
    return error_in_answer(error, where=where)
