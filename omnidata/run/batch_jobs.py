"""The files of a batch at their provider: submitted once, watched, fetched.

All that is known of them is in `RUN/batch/jobs.json`, which is written before and after each step,
so that a call that was interrupted can be repeated and no file is submitted twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from omnidata.adapters.batch_api import BatchModel, BatchService, Job
from omnidata.adapters.render import RenderedPart
from omnidata.errors import CallError, RunError, UsageError
from omnidata.files import read_file
from omnidata.run.adapter_contract import decoding
from omnidata.run.batch import UPLOADED, batch_model, check_light
from omnidata.run.batch_folder import (
    BatchFolder,
    FileState,
    Manifest,
    RequestFile,
    Upload,
    check_models,
)
from omnidata.run.cluster import Recipe
from omnidata.run.run_files import read_info, recorded_task
from omnidata.storage import atomic_write, open_own, take_lock, wrap_os_error, write_json
from omnidata.tasks.asking import Asking

_FIRST_WAIT_S, _LONGEST_WAIT_S = 15.0, 300.0
_KEPT_S = 40 * 3600
"""Google keeps an uploaded file for 48 hours, and a batch may take 24 of them to begin."""

_AT_ONCE = 8
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Place:
    """Address and key of a provider.

    Attributes:
        base_url: the server's address; None for the model's usual one.
        key_file: holds the server's key, in place of the environment.
        models: the file that has the model, where no built-in row is it.
    """

    base_url: str | None = None
    key_file: Path | None = None
    models: Path | None = None


USUAL = Place()


class _Open:
    def __init__(self, out: Path, stack: ExitStack, place: Place) -> None:
        self.folder, self.manifest = BatchFolder.of(out)
        task = recorded_task(read_info(out), run=out)
        self.path = self.folder.path / "jobs.json"
        with wrap_os_error(self.folder.path):
            lock = take_lock(
                self.folder.path / ".lock",
                busy=RunError(
                    "another process works on the batch",
                    where=str(self.folder.path),
                    expected="one process at a time",
                    remedy="wait until it has ended",
                ),
            )
        stack.callback(lock.release)
        self.jobs = self.folder.jobs()
        self.model = _model_with_key(task, self.manifest, place)
        self.params = decoding(task, self.model, None)
        self.service = self.model.batch_service(self.model)
        stack.callback(self.service.close)

    def save(self) -> None:
        with wrap_os_error(self.folder.path):
            write_json(self.path, msgspec.to_builtins(self.jobs))

    def state(self, file: RequestFile) -> FileState:
        return self.jobs.files.setdefault(file.name, FileState())


def _model_with_key(task: Asking, manifest: Manifest, place: Place) -> BatchModel:
    """Send the key where the user says, never where a run folder says."""
    if manifest.form == "vllm":
        raise UsageError(
            "`vllm run-batch` reads the files itself, so nothing can be submitted",
            where="a batch of the form vllm",
            expected="a batch of OpenAI, Gemini or Anthropic",
            remedy="run it on the files, then `omnidata batch read RUN RESULTS`",
        )
    check_models(manifest, place.models)
    check_light(manifest.spec)
    recipe = Recipe(manifest.spec, manifest.options, place.base_url, place.key_file, place.models)
    adapter = batch_model(recipe.make(task, ()))
    usual = adapter.key.redact(adapter.preset.base_url) or None
    if place.base_url is None and usual != manifest.base_url:
        raise UsageError(
            f"the batch was written for {manifest.base_url}, and the model's usual address is "
            f"{usual}: a key goes to no address that a run folder alone names",
            where="--base-url",
            expected="the address on the command line, if you trust it",
            remedy=f"--base-url {manifest.base_url}",
        )
    return adapter


@contextmanager
def _open_folder(out: Path, place: Place) -> Iterator[_Open]:
    with ExitStack() as stack:
        yield _Open(out, stack, place)


def submit(
    out: Path,
    place: Place = USUAL,
    *,
    told: Callable[[str], None] = lambda line: None,
) -> dict[str, FileState]:
    """Send every file of the last round that was not sent yet or that the provider refused.

    Args:
        out: the run folder.
        place: address and key of the provider.
        told: called with messages about the progress.

    Returns:
        The state of each file.

    Raises:
        RunError: the run has no batch, or a file of it was changed.
        UsageError: the provider takes no files, or the key is missing.
        CallError: the provider did not take a file; those before it are submitted, and the same
            call goes on.
    """
    with _open_folder(out, place) as batch:
        if not batch.manifest.rounds[-1].whole:
            raise RunError(
                "not all requests are written",
                where=str(out),
                expected="a complete round",
                remedy="repeat the `omnidata batch write` command, which resumes",
            )
        tools = {tool: None for line in batch.folder.requests() for tool in line.tools}
        headers = batch.model.headers(batch.params, [*tools])
        last = len(batch.manifest.rounds)
        for file in batch.manifest.files:
            if file.round < last:  # whose steps, if they had no answer, are in the last round
                continue
            known = batch.state(file)
            if known.state in ("new", "uploaded", "creating", "failed"):
                _submit(batch, file, known, headers)
                told(f"{file.name}: {known.state} as {known.job}")
        return batch.jobs.files


def _submit(batch: _Open, file: RequestFile, known: FileState, headers: Mapping[str, str]) -> None:
    """Record each step before the next, so an interrupted call can be resumed."""
    path = batch.folder.path / file.name
    _check_unchanged(path, file)
    if known.state == "failed":
        batch.jobs.files[file.name] = known = _renew_label(known)
    number = file.name.removeprefix("requests-").removesuffix(".jsonl")
    if not known.label:
        known.label = f"{batch.manifest.rounds[file.round - 1].id}-{number}"
    if known.state == "creating" and (job := _find_job(batch.service, known, file, path)):
        known.job, known.state = job, "running"
        batch.save()
        return
    if known.state == "new":
        with _with_addresses(batch, path, batch.manifest.rounds[file.round - 1].media) as sent:
            known.uploaded = batch.service.upload(sent, known.label)
        known.state = "uploaded"
    known.state = "creating"
    batch.save()
    try:
        known.job = batch.service.create(path, known.uploaded, known.label, headers)
    except CallError as error:
        if not error.transient or error.throttled:  # the provider has said no
            known.state = "uploaded" if error.throttled else "new"
            batch.save()
        raise
    known.state = "running"
    batch.save()


def _renew_label(known: FileState) -> FileState:
    again = int(known.label.rpartition(".")[2]) + 1 if "." in known.label else 2
    return FileState(label=f"{known.label.partition('.')[0]}.{again}")


def _check_unchanged(path: Path, file: RequestFile) -> None:
    try:
        with open_own(path, "rb") as content:
            digest = hashlib.sha256()
            for block in iter(lambda: content.read(_BLOCK), b""):
                digest.update(block)
            found = digest.hexdigest()
    except OSError as error:
        found = str(error.strerror)
    if found != file.sha256:
        raise RunError(
            "the file has changed since it was written",
            where=str(path),
            expected=f"SHA-256 {file.sha256}",
            remedy="restore it, or write the batch again into another folder",
        )


def _find_job(service: BatchService, known: FileState, file: RequestFile, path: Path) -> str | None:
    try:
        return service.find(known.label)
    except LookupError:
        raise RunError(
            f"it is unknown whether {file.name} was submitted: the call was interrupted, and the "
            "provider's jobs have no names",
            where=str(path),
            expected="the job's id in jobs.json",
            remedy=f"look at the provider's list of batches: if it has one of {file.requests} "
            f'requests, set "job" of {file.name} in jobs.json to its id and "state" to "running"; '
            'else set "state" to "new"',
        ) from None


# Media that requests name, at Google's.

_NAMED = re.compile(
    re.escape(UPLOADED.encode()) + rb"([a-z]+/[A-Za-z0-9.+-]+)/([0-9a-f]{64}\.[A-Za-z0-9._=+-]+)"
)


@contextmanager
def _with_addresses(batch: _Open, path: Path, media: str) -> Iterator[Path]:
    if not media:
        yield path
        return
    with wrap_os_error(path), open_own(path, "rb") as file:
        named = {
            name.decode(): mime.decode() for line in file for mime, name in _NAMED.findall(line)
        }
    fresh = time.time() - _KEPT_S
    known = batch.jobs.uploads
    lacking = [name for name in sorted(named) if name not in known or known[name].at < fresh]
    for begin in range(0, len(lacking), _AT_ONCE):
        with wrap_os_error(path):
            parts = {
                name: RenderedPart(
                    "image",  # which it need not be: an upload has a type and no kind
                    data=_medium(Path(media) / name),
                    mime=named[name],
                    sha256=name.partition(".")[0],
                )
                for name in lacking[begin : begin + _AT_ONCE]
            }
        uris = asyncio.run(_upload_media(batch.model, [*parts.values()]))
        known |= {
            name: Upload(uri=uris[part.sha256], at=time.time()) for name, part in parts.items()
        }
        batch.save()

    def address(match: re.Match[bytes]) -> bytes:
        return known[match[2].decode()].uri.encode()

    sent = path.with_name(f".{path.name}")
    try:
        with wrap_os_error(path), open_own(path, "rb") as file, atomic_write(sent) as copy:
            copy.writelines(_NAMED.sub(address, line) for line in file)
        yield sent
    finally:
        sent.unlink(missing_ok=True)


def _medium(path: Path) -> bytes:
    """Read a medium named by its hash; nothing else leaves the machine."""
    content = read_file(path)
    if hashlib.sha256(content).hexdigest() != path.name.partition(".")[0]:
        raise RunError(
            "the medium is not the one that its name is the SHA-256 of",
            where=str(path),
            expected="the folder as `omnidata batch write` left it",
            remedy="write the batch again into another folder",
        )
    return content


async def _upload_media(model: BatchModel, parts: Sequence[RenderedPart]) -> dict[str, str]:
    from omnidata.adapters.wires.gemini import Gemini

    assert isinstance(model, Gemini)  # no other form has media that are uploaded
    try:
        return await model.upload(parts)
    finally:
        await model.close()


# How things stand, and what has come.


def status(out: Path, place: Place = USUAL) -> dict[str, FileState]:
    """Ask the provider for the state of each submitted file.

    Args:
        out: the run folder.
        place: as of `submit`.

    Returns:
        The state of each file of requests.

    Raises:
        RunError, UsageError, CallError: as `submit`.
    """
    with _open_folder(out, place) as batch:
        _look(batch)
        return batch.jobs.files


def _look(batch: _Open) -> None:
    for file in batch.manifest.files:
        known = batch.state(file)
        if known.state != "running":
            continue
        _apply(known, batch.service.look(known.job))
        batch.save()


def _apply(known: FileState, job: Job) -> None:
    known.state, known.word, known.said = job.state, job.word, job.said
    known.counts = dict(job.counts)


def fetch(
    out: Path,
    place: Place = USUAL,
    *,
    wait: bool = False,
    first_wait_s: float = _FIRST_WAIT_S,
    told: Callable[[dict[str, FileState]], None] = lambda files: None,
) -> tuple[dict[str, FileState], list[Path], dict[str, str]]:
    """Download the results of finished jobs into the run folder.

    Args:
        out: the run folder.
        place: as of `submit`.
        wait: ask again, at growing intervals, until every job has ended.
        first_wait_s: seconds before the second time.
        told: called with the states, each time they are asked for.

    Returns:
        What is known of each file of requests; the files of results; and of files of requests that
        expired or were cancelled, which.

    Raises:
        RunError, UsageError, CallError: as of `submit`.
    """
    pause = first_wait_s
    with _open_folder(out, place) as batch:
        while True:
            try:
                _look(batch)
                _download(batch)
            except CallError as error:
                if not (wait and error.transient):
                    raise
            told(batch.jobs.files)
            waiting = any(
                known.state == "running" or (known.job and not known.fetched)
                for known in batch.jobs.files.values()
            )
            if not (wait and waiting):
                break
            time.sleep(pause)
            pause = min(1.5 * pause, _LONGEST_WAIT_S)
        files = batch.jobs.files
        paths = [batch.folder.path / name for known in files.values() for name in known.results]
        lost: dict[str, str] = {
            name: known.state
            for name, known in files.items()
            if known.fetched and known.state in ("expired", "cancelled")
        }
        return files, paths, lost


def _download(batch: _Open) -> None:
    for file in batch.manifest.files:
        known = batch.state(file)
        if known.state not in ("done", "failed", "expired", "cancelled") or known.fetched:
            continue
        number = file.name.removeprefix("requests-").removesuffix(".jsonl")
        again = known.label.partition(".")[2]
        names = []
        for place, result in enumerate(batch.service.look(known.job).results, 1):
            name = f"results-{'-'.join(filter(None, (number, again, str(place))))}.jsonl"
            with wrap_os_error(batch.folder.path):
                batch.service.download(known.job, result, batch.folder.path / name)
            names.append(name)
        known.results, known.fetched = names, True
        batch.save()
