"""A run as files for a provider's batch API: every request of it, written and not sent.

The folder is a run folder like any other. What comes back is read by `omnidata.run.batch_results`,
and whatever has no answer then `evaluate` asks live, or the next round of a batch.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from omnidata.adapters import is_light
from omnidata.adapters.batch_api import BatchForm, BatchModel
from omnidata.adapters.keys import credentials_in
from omnidata.adapters.render import RenderedPart
from omnidata.errors import CallError, RunError, UsageError, plural
from omnidata.jsontext import hash_of
from omnidata.remote import display_path
from omnidata.run.adapter_contract import describe_model
from omnidata.run.ask import prepare_step
from omnidata.run.batch_folder import Asked, BatchFolder, Manifest, RequestFile, Round
from omnidata.run.cluster import Recipe, join_left
from omnidata.run.cost import Budget, Limits, Tokens
from omnidata.run.dry_run import estimate_tokens, price_of
from omnidata.run.evaluate import UNLIMITED, check_judgeable, run_settings
from omnidata.run.folder import TRANSIENT, RunFolder, file_name
from omnidata.run.run_files import read_info
from omnidata.run.scoring import get_profile
from omnidata.run.selection import select
from omnidata.storage import atomic_write, wrap_os_error
from omnidata.tasks.asking import Asking
from omnidata.types import (
    Adapter,
    Completion,
    GenerationParams,
    LoadedDataset,
    Prepared,
    Progress,
    Step,
)

_OF_VLLM = "/v1/chat/completions"
_SAMPLED = 64
_WRAPPED = 64
"""Bytes that an API puts around the rows of a file, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What `write` has done.

    Attributes:
        form: of the files.
        model: as the provider knows it.
        files: those of the last round, this call's and earlier ones'.
        folder: that they lie in.
        round: its number.
        new: requests that this call has written.
        answered: steps of the run that have an answer.
        unsent: why steps have no request, by sample id.
        media: the folder of the media; empty where the requests hold them.
        estimate: `tokens` of the new requests and, with a price, `cost`; empty without any.
    """

    form: str
    model: str
    files: Sequence[RequestFile]
    folder: Path
    round: int
    new: int
    answered: int
    unsent: Mapping[str, str]
    media: str
    estimate: Mapping[str, Any]


def write(
    task: Asking,
    source: LoadedDataset,
    model: Recipe,
    out: Path,
    *,
    where: Mapping[str, str] = {},
    exclude: frozenset[str] = frozenset(),
    limit: int | None = None,
    only_missing: bool = False,
    media: Path | None = None,
    max_requests: int | None = None,
    max_bytes: int | None = None,
    limits: Limits = UNLIMITED,
    progress: Progress | None = None,
) -> Written:
    """Write the request of every step without an answer; nothing is sent.

    The same call resumes after an interruption, and does nothing if all requests are written.

    Args:
        task: the benchmark with its options.
        source: the loaded data.
        model: the model.
        out: the run folder.
        where: tag -> value that an episode must have.
        exclude: sample ids to leave out.
        limit: the first so many steps only.
        only_missing: write another round for the steps that still have no answer.
        media: a folder for one copy of each medium, to which requests refer. None = media are part
            of the requests.
        max_requests: the largest number of requests in a file, if lower than the provider's.
        max_bytes: the largest size of a file, if lower than the provider's.
        limits: prices of them are used, for the estimate, and whether answers of other code are.
        progress: called while the requests are made.

    Raises:
        UsageError: the model or the task cannot be asked in a batch, or see `evaluate`.
        RunError: the folder holds another run, or an earlier round has not been read.
        DataError: a prompt cannot be made.
    """
    if task.needs_predictions:
        raise UsageError(
            "each prompt tells of the answer to the one before it, which does not exist yet "
            "in a batch",
            where="-T history=predicted",
            expected="a history that exists before the run",
            remedy="drop it, or ask directly with `omnidata evaluate`",
        )
    steps = select(source.steps, where=where, exclude=exclude, limit=limit, task=task)
    check_light(model.spec)
    check_judgeable(get_profile(task, None), steps, source, out)
    adapter = batch_model(model.make(task, source.steps, asks=False))
    form = adapter.batch
    _check_url(adapter)
    _check_no_secrets(adapter)
    _check_media(form, media, model)
    about = describe_model(task, adapter, None, steps, None)
    settings = run_settings(
        task,
        source,
        about,
        model_options=model.options,
        where=where,
        exclude=exclude,
        limit=limit,
    )
    budget = Budget(limits, about.name)
    with RunFolder(out, settings, again=False, code=about.code, reuse=limits.reuse_answers) as run:
        join_left(run, again=False)
        if "data" not in read_info(out):
            run.finish(
                data=display_path(source.root), steps=len(steps), findings=len(source.findings)
            )
        folder = BatchFolder(out)
        manifest = folder.manifest or _manifest(adapter, model)
        answered = {line.sample_id for line in run.lines() if line.delivery not in TRANSIENT}
        left = [step for step in steps if step.sample_id not in answered]
        begun = _begin(folder, manifest, left, only_missing=only_missing, media=media, out=out)
        ready: list[Prepared] = []
        unsent: dict[str, str] = {}
        new = 0
        if begun:
            asked = {line.sample_id for line in folder.requests() if line.round == begun}
            left = [step for step in left if step.sample_id not in asked]
            writing = _Writing(task, adapter, about.params, manifest, begun)
            every = max(1, len(left) // _SAMPLED)
            rows = _record_unsendable(writing.rows(left, progress), run, unsent, ready, every)
            most = _least(form.max_requests, max_requests), _least(form.max_bytes, max_bytes)
            new = _write_files(folder, manifest, rows, begun, *most)
            manifest.rounds[begun - 1].whole = True
            folder.save(manifest)
        used = [Tokens.of(line.usage) for line in run.lines() if line.usage]
        estimate: dict[str, Any] = {}
        if new:
            tokens = estimate_tokens(used, ready, new, about.params)
            estimate = {"tokens": tokens, **price_of(tokens, budget, form.price)}
    last = len(manifest.rounds)
    return Written(
        form=form.name,
        model=adapter.preset.model,
        files=[file for file in manifest.files if file.round == last],
        folder=folder.path,
        round=last,
        new=new,
        answered=len(answered & {step.sample_id for step in steps}),
        unsent=unsent,
        media=manifest.rounds[-1].media if manifest.rounds else "",
        estimate=estimate,
    )


def check_light(spec: str) -> None:
    """Refuse a model that has no batches before its weights are loaded, or its code is run.

    Raises:
        UsageError: it is local, or a plug-in's.
    """
    if not is_light(spec):
        raise _no_batch_error(spec)


def batch_model(adapter: Adapter) -> BatchModel:
    """The adapter, if there are batches of its provider's.

    Raises:
        UsageError: there are none.
    """
    if isinstance(adapter, BatchModel):
        return adapter
    raise _no_batch_error(adapter.name)


def _no_batch_error(name: str) -> UsageError:
    return UsageError(
        f"{name} is asked step by step: no batch API takes its requests as files",
        where=f"--model {name}",
        expected="openai:MODEL, openai-responses:MODEL, anthropic:MODEL, gemini:MODEL or a preset "
        "of one of these wire formats; a local model behind `vllm run-batch` is openai:MODEL with "
        "--base-url",
        remedy="ask it directly with `omnidata evaluate`",
    )


def _check_url(adapter: BatchModel) -> None:
    if adapter.batch.name == "vllm" and adapter.batch.url != _OF_VLLM:
        raise UsageError(
            f"`vllm run-batch` has no requests of the wire format {adapter.wire}",
            where=f"--model {adapter.name}",
            expected="openai:MODEL, which is Chat Completions",
            remedy="name the model so, or ask it directly with `omnidata evaluate`",
        )


def _check_no_secrets(adapter: BatchModel) -> None:
    if any(credentials_in(adapter.preset.extra_body)):
        raise UsageError(
            "extra_body seems to hold a key, which would be written into every request",
            where=f"--model {adapter.name}",
            expected="no secrets in files",
            remedy="remove it from extra_body, or ask directly with `omnidata evaluate`",
        )


def _check_media(form: BatchForm, media: Path | None, model: Recipe) -> None:
    if media is not None and not form.media:
        raise UsageError(
            f"requests of {model.spec} hold their media: the provider's batch API accepts "
            "nothing else",
            where=f"--media-files {media}",
            expected="a model behind vLLM (openai: with --base-url), or gemini:MODEL",
            remedy="drop --media-files",
        )


def _least(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)


def _manifest(adapter: BatchModel, model: Recipe) -> Manifest:
    return Manifest(
        form=adapter.batch.name,
        url=adapter.batch.url,
        served_model=adapter.preset.model,
        price=adapter.batch.price,
        spec=model.spec,
        options=dict(model.options),
        base_url=adapter.key.redact(adapter.preset.base_url) or None,
        models=str(model.models.absolute()) if model.models else None,
    )


def _begin(
    folder: BatchFolder,
    manifest: Manifest,
    left: Sequence[Step],
    *,
    only_missing: bool,
    media: Path | None,
    out: Path,
) -> int:
    place = str(media.absolute()) if media else ""
    last = manifest.rounds[-1] if manifest.rounds else None
    if last and not last.whole:
        if last.media != place:
            raise UsageError(
                "the round was begun with its media elsewhere",
                where=f"--media-files {media}" if media else "--media-files",
                expected=last.media or "media in the requests",
                remedy="repeat the first command, which resumes",
            )
        folder.tidy()
        return len(manifest.rounds)
    if last and not only_missing:
        return 0
    if not left:
        return 0
    if last:
        _check_read(folder, len(manifest.rounds), out)
    manifest.rounds.append(Round(id=secrets.token_hex(8), media=place))
    folder.save(manifest)
    return len(manifest.rounds)


def _check_read(folder: BatchFolder, last: int, out: Path) -> None:
    """Refuse to ask twice about steps whose answers may still come."""
    there = [
        name
        for name, known in folder.jobs().files.items()
        if known.state == "creating" or (known.job and not known.fetched)
    ]
    if there:
        raise RunError(
            f"{plural(len(there), 'file')} of requests may be at the provider, and what they ask "
            f"would be asked twice: {', '.join(there[:3])}",
            where=str(folder.path),
            expected="jobs that have ended and been fetched",
            remedy=f"omnidata batch fetch {out} --wait",
        )
    if not any(line.round == last for line in folder.requests()):
        return
    if not any(line.round == last for line in folder.got()):
        raise RunError(
            f"nothing of round {last} has been read: all of its steps would be asked twice",
            where=str(folder.path),
            expected=f"its results first: omnidata batch read {out} RESULTS, or batch fetch {out}",
            remedy="files that the provider refused as a whole can be submitted again as they are",
        )


# Steps as rows, made in threads, in order.


@dataclass(frozen=True, slots=True)
class _Row:
    step: Step
    asked: Asked | None
    data: bytes
    line: Completion | None
    made: Prepared | None


class _Writing:
    def __init__(
        self,
        task: Asking,
        adapter: BatchModel,
        params: GenerationParams,
        manifest: Manifest,
        number: int,
    ) -> None:
        self._task, self._adapter, self._params = task, adapter, params
        self._number, self._round = number, manifest.rounds[number - 1]
        if self._round.media:
            adapter.refer = _referring(adapter.batch, Path(self._round.media))

    def rows(self, steps: Sequence[Step], progress: Progress | None) -> Iterator[_Row]:
        threads = (os.cpu_count() or 1) + 1
        waiting: deque[Future[_Row]] = deque()
        pool = ThreadPoolExecutor(threads, "omnidata-batch")
        try:
            for number, step in enumerate(steps):
                waiting.append(pool.submit(self._row, step))
                if len(waiting) > 2 * threads:
                    yield waiting.popleft().result()
                    if progress:
                        progress(number + 1 - len(waiting), len(steps))
            while waiting:
                yield waiting.popleft().result()
                if progress:
                    progress(len(steps) - len(waiting), len(steps))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _row(self, step: Step) -> _Row:
        failures: list[CallError] = []
        made, shown = prepare_step(self._task, self._adapter, step, failed=failures.append)
        if failures:
            raise failures[0]  # every step would fail in the same code
        if isinstance(made, Completion):
            return _Row(step, None, b"", made, None)
        name = f"{self._round.id}-{hash_of(step.sample_id)[:32]}"
        body = self._adapter.body(made.payload, self._params)
        form = self._adapter.batch
        data = form.row(form, name, body).replace(b"\n", b" ") + b"\n"
        parts = [part for message in made.request.conversation for part in message.parts]
        asked = Asked(
            custom_id=name,
            sample_id=step.sample_id,
            file="",
            round=self._number,
            key=made.key,
            receipt=dict(made.receipt),
            media=shown,
            tools=[part.role for part in parts if part.kind == "tool"],
        )
        return _Row(step, asked, data, None, replace(made, payload=None))


def _referring(form: BatchForm, folder: Path) -> Callable[[RenderedPart], str]:
    with wrap_os_error(folder):
        folder.mkdir(parents=True, exist_ok=True)

    def refer(part: RenderedPart) -> str:
        path = folder / medium_name(part.sha256, part.mime)
        with wrap_os_error(folder):
            if not path.exists():
                with atomic_write(path, durable=False) as file:
                    file.write(part.data)
        return path.as_uri() if form.media == "file" else f"{UPLOADED}{part.mime}/{path.name}"

    return refer


UPLOADED = "omnidata-upload:"
"""Begins the name of a medium whose address is known once it is uploaded: its type and file."""


def medium_name(sha256: str, mime: str) -> str:
    """The name of a medium's file.

    Examples:
        >>> medium_name("0f" * 4, "audio/x-wav")
        '0f0f0f0f.wav'
    """
    ending = mime.partition("/")[2].removeprefix("x-")
    return file_name(f"{sha256}.{ending}")


def _record_unsendable(
    rows: Iterator[_Row],
    run: RunFolder,
    unsent: dict[str, str],
    ready: list[Prepared],
    every: int,
) -> Iterator[_Row]:
    for number, row in enumerate(rows):
        if row.line is None:
            if row.made and number % every == 0:
                ready.append(row.made)
            yield row
            continue
        name = row.step.sample_id
        unsent[name] = row.line.error
        if run.done.get(name) != row.line:
            run.reopen(frozenset({name}))
            run.append(name, row.line)


def _write_files(
    folder: BatchFolder,
    manifest: Manifest,
    rows: Iterator[_Row],
    number: int,
    max_requests: int | None,
    max_bytes: int | None,
) -> int:
    """Write file after file; the manifest lists each before the next begins."""
    total = 0
    row = next(rows, None)
    while row is not None:
        name = f"requests-{len(manifest.files) + 1:05d}.jsonl"
        found: list[Asked] = []
        size, digest = _WRAPPED if max_bytes else 0, hashlib.sha256()
        with wrap_os_error(folder.path), atomic_write(folder.path / name) as file:
            while row is not None and row.asked:
                full = max_requests is not None and len(found) >= max_requests
                if max_bytes is not None and size + len(row.data) > max_bytes:
                    if not found:
                        raise _too_large(row, max_bytes)
                    full = True
                if full:
                    break
                file.write(row.data)
                digest.update(row.data)
                size += len(row.data)
                found.append(msgspec.structs.replace(row.asked, file=name))
                row = next(rows, None)
        size -= _WRAPPED if max_bytes else 0
        folder.append("ids.jsonl", found)
        manifest.files.append(
            RequestFile(
                name=name,
                round=number,
                requests=len(found),
                bytes=size,
                sha256=digest.hexdigest(),
            )
        )
        folder.save(manifest)
        total += len(found)
    return total


def _too_large(row: _Row, max_bytes: int) -> UsageError:
    return UsageError(
        f"the request has {len(row.data):,} bytes, more than a file may have",
        where=row.step.sample_id,
        expected=f"at most {max_bytes:,} bytes",
        remedy="send less of it (-M image_size=..., -M frames=...), name media with --media-files "
        "where the provider can, or leave the step out with --exclude",
    )
