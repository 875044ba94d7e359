"""A run as files for a provider's batch API: its requests are written, and nothing is sent.

The folder is a run folder like any other. `omnidata.run.batch_results` reads the results into it;
`evaluate`, or another round, asks the steps that still have no answer.
"""

from __future__ import annotations

import hashlib
import math
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import msgspec

from omnidata.adapters import asks_nobody, is_light
from omnidata.adapters.batch_api import BatchApi, BatchModel
from omnidata.adapters.keys import credentials_in
from omnidata.adapters.media_budget import parts_of
from omnidata.adapters.render import RenderedPart
from omnidata.errors import CallError, RunError, UsageError, plural
from omnidata.jsontext import hash_of
from omnidata.remote import display_path
from omnidata.run.adapter_contract import describe_model
from omnidata.run.ask import prepare_step
from omnidata.run.asker import Recipe
from omnidata.run.batch_folder import Asked, BatchFolder, Manifest, RequestFile, Round
from omnidata.run.cost import Budget, Limits, Tokens
from omnidata.run.dry_run import estimate_tokens, price_of
from omnidata.run.evaluate import UNLIMITED, check_judgeable, run_settings
from omnidata.run.journal import TRANSIENT, RunFolder, join_left
from omnidata.run.run_info import read_info
from omnidata.run.scoring import get_profile
from omnidata.run.selection import select
from omnidata.storage import atomic_write, file_name, wrap_os_error
from omnidata.tasks.asking import Asking
from omnidata.types import Completion, GenerationParams, LoadedDataset, Prepared, Progress, Step

_SAMPLED = 64
_WRAPPED = 64
"""The largest number of bytes that an API adds to the rows of a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Result of `write`.

    Attributes:
        form: the format of the files.
        manifest: of the folder; `write` continues or begins its last round.
        folder: that has the files.
        new: the number of requests that this call has written.
        answered: the number of steps with an answer.
        unsent: reasons why steps have no request, by sample id.
        estimate: `tokens` of the new requests and, with a price, `cost`; empty without any.
    """

    form: BatchApi
    manifest: Manifest
    folder: Path
    new: int
    answered: int
    unsent: Mapping[str, str]
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
        limits: its prices are used for the estimate; `reuse_answers` as in `evaluate`.
        progress: called while the requests are made.

    Raises:
        UsageError: the model or the task cannot be asked in a batch, or see `evaluate`.
        RunError: the folder holds another run, or an earlier round has not been read.
        DataError: a prompt cannot be made.
    """
    steps = select(source.steps, where=where, exclude=exclude, limit=limit, task=task)
    adapter = batch_model(model, task)
    form = adapter.batch
    assert form
    _check_writable(task, adapter, form, media)
    check_judgeable(get_profile(task, None), steps, source, out)
    about = describe_model(task, adapter, None, steps, None)
    settings = run_settings(
        task, source, about, model_options=model.options, where=where, exclude=exclude, limit=limit
    )
    budget = Budget(limits, about.name)
    with RunFolder(out, settings, again=False, code=about.code, reuse=limits.reuse_answers) as run:
        join_left(run, again=False)
        if "data" not in read_info(out):
            run.finish(
                data=display_path(source.root), steps=len(steps), findings=len(source.findings)
            )
        folder = BatchFolder(out, new=True)
        if not folder.manifest.rounds:
            folder.manifest = Manifest(
                form=form.name,
                url=form.url,
                served_model=adapter.preset.model,
                price=form.price,
                spec=model.spec,
                options=dict(model.options),
                base_url=adapter.key.redact(adapter.preset.base_url) or None,
                models=str(model.models.absolute()) if model.models else None,
            )
        answered = {line.sample_id for line in run.lines() if line.delivery not in TRANSIENT}
        left = [step for step in steps if step.sample_id not in answered]
        samples: list[Prepared] = []
        unsent: dict[str, str] = {}
        estimate: dict[str, Any] = {}
        new = 0
        if _begin_round(folder, left, out, media, only_missing=only_missing):
            last = len(folder.manifest.rounds)
            asked = {line.sample_id for line in folder.requests() if line.round == last}
            left = [step for step in left if step.sample_id not in asked]
            every = max(1, len(left) // _SAMPLED)

            def requests() -> Iterator[_Row]:
                """Record the steps with unreadable media in the run instead."""
                for number, row in enumerate(_rows(left, task, adapter, about.params, folder)):
                    name, made = row.asked.sample_id, row.made
                    if isinstance(made, Prepared):
                        if number % every == 0:
                            samples.append(made)
                        yield row
                    else:
                        unsent[name] = made.error
                        if run.done.get(name) != made:
                            run.reopen(frozenset({name}))
                            run.append(name, made)
                    if progress:
                        progress(number + 1, len(left))

            most = (form.max_requests or math.inf, form.max_bytes or math.inf)
            most_requests = min(most[0], max_requests or math.inf)
            most_bytes = min(most[1], max_bytes or math.inf)
            new = _write_files(requests(), folder, most_requests, most_bytes)
            folder.manifest.rounds[-1].whole = True
            folder.save()
            if new:
                used = [Tokens.of(line.usage) for line in run.lines() if line.usage]
                tokens = estimate_tokens(used, samples, new, about.params)
                estimate = {"tokens": tokens, **price_of(tokens, budget, form.price)}
    return Written(
        form=form,
        manifest=folder.manifest,
        folder=folder.path,
        new=new,
        answered=len(answered & {step.sample_id for step in steps}),
        unsent=unsent,
        estimate=estimate,
    )


def batch_model(recipe: Recipe, task: Asking, *, asks: bool = False) -> BatchModel:
    """Return a model that is asked, or only writes and reads files; no weights are loaded.

    Raises:
        UsageError: there are no batches of the model.
    """
    if is_light(recipe.spec) and not asks_nobody(recipe.spec):
        adapter = recipe.make(task, (), asks=asks)
        # The files may be sent to a gateway, which has a format of its own, or none.
        if isinstance(adapter, BatchModel) and (adapter.batch or asks):
            return adapter
    raise UsageError(
        f"{recipe.spec} is asked step by step: no batch API takes its requests as files",
        where=f"--model {recipe.spec}",
        expected="a model and server with batches, as `docs/batch.md` lists them",
        remedy="ask it directly with `omnidata evaluate`",
    )


def _check_writable(task: Asking, adapter: BatchModel, form: BatchApi, media: Path | None) -> None:
    if task.needs_predictions:
        raise UsageError(
            "each prompt contains the answer to the one before it, which does not exist yet "
            "in a batch",
            where="-T history=predicted",
            expected="a history that exists before the run",
            remedy="drop it, or ask directly with `omnidata evaluate`",
        )
    if any(credentials_in(adapter.preset.extra_body)):
        raise UsageError(
            "extra_body seems to hold a key, which would be written into every request",
            where=f"--model {adapter.name}",
            expected="no secrets in files",
            remedy="remove it from extra_body, or ask directly with `omnidata evaluate`",
        )
    if media and not form.media:
        raise UsageError(
            f"requests of {adapter.name} hold their media: the provider's batch API accepts "
            "nothing else",
            where=f"--media-files {media}",
            expected="a model whose requests may refer to media (docs/batch.md)",
            remedy="drop --media-files",
        )


def _begin_round(
    folder: BatchFolder, left: Sequence[Step], out: Path, media: Path | None, *, only_missing: bool
) -> bool:
    """Continue the last round or begin another; return False if there is nothing to write."""
    rounds = folder.manifest.rounds
    place = str(media.absolute()) if media else ""
    if rounds and not rounds[-1].whole:
        if rounds[-1].media != place:
            raise UsageError(
                "the round was begun with its media elsewhere",
                where=f"--media-files {media}" if media else "--media-files",
                expected=rounds[-1].media or "media in the requests",
                remedy="repeat the first command, which resumes",
            )
        folder.tidy()
        return True
    if not left or (rounds and not only_missing):
        return False
    if rounds:
        _check_read(folder, len(rounds), out)
    rounds.append(Round(id=secrets.token_hex(8), media=place))
    folder.save()
    return True


def _check_read(folder: BatchFolder, last: int, out: Path) -> None:
    """Refuse to ask twice about steps whose answers may still come."""
    pending = [
        name
        for name, known in folder.jobs().files.items()
        if known.state == "creating" or (known.job and not known.fetched)
    ]
    if pending:
        raise RunError(
            f"{plural(len(pending), 'file')} of requests may be at the provider, and what they ask "
            f"would be asked twice: {', '.join(pending[:3])}",
            where=str(folder.path),
            expected="jobs that have ended and been fetched",
            remedy=f"omnidata batch fetch {out} --wait",
        )
    is_asked = any(line.round == last for line in folder.requests())
    if is_asked and not any(line.round == last for line in folder.got()):
        raise RunError(
            f"nothing of round {last} has been read: all of its steps would be asked twice",
            where=str(folder.path),
            expected=f"its results first: omnidata batch read {out} RESULTS, or batch fetch {out}",
            remedy="files that the provider refused as a whole can be submitted again as they are",
        )


class _Row(NamedTuple):
    asked: Asked
    data: bytes
    made: Prepared | Completion


def _rows(
    steps: Sequence[Step],
    task: Asking,
    adapter: BatchModel,
    params: GenerationParams,
    folder: BatchFolder,
) -> Iterator[_Row]:
    """Make the requests of the last round in threads, and yield them in order."""
    form, current = adapter.batch, folder.manifest.rounds[-1]
    assert form
    if current.media:
        adapter.refer = _referring(form, Path(current.media))

    def make(step: Step) -> _Row:
        asked = Asked(
            custom_id=f"{current.id}-{hash_of(step.sample_id)[:32]}",
            sample_id=step.sample_id,
            file="",
            round=len(folder.manifest.rounds),
        )
        made, shown = prepare_step(task, adapter, step, failed=_raise)
        if isinstance(made, Completion):
            return _Row(asked, b"", made)
        row = form.row(asked.custom_id, adapter.body(made.payload, params))
        parts = parts_of(made.request.conversation)
        asked = msgspec.structs.replace(
            asked,
            key=made.key,
            receipt=dict(made.receipt),
            media=shown,
            tools=[part.role for part in parts if part.kind == "tool"],
        )
        return _Row(asked, row.replace(b"\n", b" ") + b"\n", replace(made, payload=None))

    threads = (os.cpu_count() or 1) + 1
    with ThreadPoolExecutor(threads, "omnidata-batch") as pool:
        for begin in range(0, len(steps), 2 * threads):
            yield from pool.map(make, steps[begin : begin + 2 * threads])


def _write_files(
    rows: Iterator[_Row], folder: BatchFolder, most_requests: float, most_bytes: float
) -> int:
    """Write file after file, list each in the manifest, and return the number of requests."""
    files = folder.manifest.files
    number, requests, size = len(files) + 1, 0, _WRAPPED

    def file_number(row: _Row) -> int:
        nonlocal number, requests, size
        requests, size = requests + 1, size + len(row.data)
        if requests > most_requests or size > most_bytes:
            number, requests, size = number + 1, 1, _WRAPPED + len(row.data)
        if size > most_bytes:
            raise UsageError(
                f"the request has {len(row.data):,} bytes, more than a file may have",
                where=row.asked.sample_id,
                expected=f"at most {most_bytes:,} bytes",
                remedy="send less of it (-M image_size=..., -M frames=...), name media with "
                "--media-files where the provider can, or leave the step out with --exclude",
            )
        return number

    total = 0
    for current, group in groupby(rows, file_number):
        name = f"requests-{current:05d}.jsonl"
        asked: list[Asked] = []
        written, digest = 0, hashlib.sha256()
        with wrap_os_error(folder.path), atomic_write(folder.path / name) as file:
            for row in group:
                file.write(row.data)
                digest.update(row.data)
                written += len(row.data)
                asked.append(msgspec.structs.replace(row.asked, file=name))
        folder.append("ids.jsonl", asked)
        files.append(
            RequestFile(
                name=name,
                round=len(folder.manifest.rounds),
                requests=len(asked),
                bytes=written,
                sha256=digest.hexdigest(),
            )
        )
        folder.save()
        total += len(asked)
    return total


def _raise(error: CallError) -> NoReturn:
    raise error  # every step would fail in the same code


# Media outside the requests.

UPLOADED = "omnidata-upload:"
"""Prefix of the name of a medium that has no address before its upload: its type and file."""


def _referring(form: BatchApi, folder: Path) -> Callable[[RenderedPart], str]:
    with wrap_os_error(folder):
        folder.mkdir(parents=True, exist_ok=True)

    def refer(part: RenderedPart) -> str:
        ending = part.mime.partition("/")[2].removeprefix("x-")
        path = folder / file_name(f"{part.sha256}.{ending}")
        with wrap_os_error(folder):
            if not path.exists():
                with atomic_write(path, durable=False) as file:
                    file.write(part.data)
        return path.as_uri() if form.media == "file" else f"{UPLOADED}{part.mime}/{path.name}"

    return refer
