"""Files of a batch at their provider: submitted once, watched, fetched.

`RUN/batch/jobs.json` is written before and after each step, so that an interrupted call can be
repeated and no file is submitted twice.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, TypeVar, cast

from omnidata.adapters.batch_api import BatchApi, BatchModel, Job
from omnidata.adapters.render import RenderedPart
from omnidata.errors import CallError, RunError, UsageError
from omnidata.files import read_file
from omnidata.run.adapter_contract import decoding
from omnidata.run.batch import UPLOADED, batch_model
from omnidata.run.batch_folder import BatchFolder, FileState, Manifest, RequestFile, Upload
from omnidata.run.event_loop import EventLoop
from omnidata.run.pace import retry_delay
from omnidata.run.recorded import recorded_task
from omnidata.run.run_info import read_info
from omnidata.storage import atomic_write, open_own, take_lock, wrap_os_error
from omnidata.tasks.asking import Asking

Result = TypeVar("Result")

_ATTEMPTS, _LONGEST_PAUSE_S = 3, 60.0
_FIRST_WAIT_S, _LONGEST_WAIT_S = 15.0, 300.0
_KEPT_S = 40 * 3600
"""Google keeps an uploaded file for 48 hours, and a batch may take 24 of them to begin."""

_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Place:
    """Address and key of a provider.

    Attributes:
        base_url: the server's address; None for the model's usual one.
        key_file: holds the server's key, in place of the environment.
        models: the file that has the model, if it is no built-in row.
    """

    base_url: str | None = None
    key_file: Path | None = None
    models: Path | None = None


USUAL = Place()


class _Batch:
    """The batch of a run, locked against other processes, and its provider."""

    def __init__(self, out: Path, place: Place, stack: ExitStack) -> None:
        self.folder = BatchFolder(out)
        self.task = recorded_task(read_info(out), run=out)
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
        self.model, self.api = _model_with_key(self.folder.manifest, self.task, place)
        self.jobs = self.folder.jobs()
        self.run = stack.enter_context(EventLoop()).run
        stack.callback(lambda: self.run(self.model.close()))

    def call(self, method: Callable[..., Coroutine[Any, Any, Result]], *arguments: Any) -> Result:
        """Call a method of the API that can be repeated, again where it failed for a moment."""
        for attempt in range(1, _ATTEMPTS):
            try:
                return self.run(method(*arguments))
            except CallError as error:
                pause = retry_delay(error, attempt)
                if pause is None or pause > _LONGEST_PAUSE_S:
                    raise
            time.sleep(pause)
        return self.run(method(*arguments))

    def save(self) -> None:
        self.folder.save_jobs(self.jobs)

    def states(self) -> Iterator[tuple[RequestFile, FileState]]:
        for file in self.folder.manifest.files:
            yield file, self.jobs.files.setdefault(file.name, FileState())


def _model_with_key(manifest: Manifest, task: Asking, place: Place) -> tuple[BatchModel, BatchApi]:
    """Send the key to the address that the user names, never to one that a run folder names."""
    api = batch_model(manifest.recipe(manifest.base_url, None, place.models), task).batch
    assert api  # a model without is refused
    if api.command and api.name == manifest.form:
        raise UsageError(
            f"`{api.command.partition(' -')[0]}` reads the files itself: nothing can be submitted",
            where=f"a batch of the form {api.name}",
            expected="a batch of a provider that takes files",
            remedy="run it on the files, then `omnidata batch read RUN RESULTS`",
        )
    recipe = manifest.recipe(place.base_url, place.key_file, place.models)
    model = batch_model(recipe, task, asks=True)
    usual = model.key.redact(model.preset.base_url) or None
    if place.base_url is None and usual != manifest.base_url:
        raise UsageError(
            f"the batch was written for {manifest.base_url}, and the model's usual address is "
            f"{usual}: a key goes to no address that a run folder alone names",
            where="--base-url",
            expected="the address on the command line, if you trust it",
            remedy=f"--base-url {manifest.base_url}",
        )
    return model, type(api)(model)


def submit(
    out: Path, place: Place = USUAL, *, report: Callable[[str], None] = lambda line: None
) -> dict[str, FileState]:
    """Send every file of the last round that was not sent yet or that the provider refused.

    Args:
        out: the run folder.
        place: address and key of the provider.
        report: called with messages about the progress.

    Returns:
        The state of each file.

    Raises:
        RunError: the run has no batch, or a file of it was changed.
        UsageError: the provider takes no files, or the key is missing.
        CallError: the provider did not take a file; those before it are submitted, and the same
            call goes on.
    """
    with ExitStack() as stack:
        batch = _Batch(out, place, stack)
        if not batch.folder.manifest.rounds[-1].whole:
            raise RunError(
                "not all requests are written",
                where=str(out),
                expected="a complete round",
                remedy="repeat the `omnidata batch write` command, which resumes",
            )
        tools = dict.fromkeys(tool for line in batch.folder.requests() for tool in line.tools)
        headers = batch.model.headers(decoding(batch.task, batch.model, None), [*tools])
        last = len(batch.folder.manifest.rounds)
        for file, known in batch.states():
            # Steps of earlier rounds that have no answer are in the last round too.
            if file.round == last and known.state in ("new", "uploaded", "creating", "failed"):
                sent = _submit(batch, file, known, headers)
                report(f"{file.name}: {sent.state} as {sent.job}")
        return batch.jobs.files


def _submit(
    batch: _Batch, file: RequestFile, known: FileState, headers: Mapping[str, str]
) -> FileState:
    """Record each step before the next, so an interrupted call can be resumed."""
    path = batch.folder.path / file.name
    try:
        with open_own(path, "rb") as content:
            digest = hashlib.file_digest(cast(BufferedReader, content), "sha256").hexdigest()
    except OSError as error:
        digest = str(error.strerror)
    if digest != file.sha256:
        raise RunError(
            "the file has changed since it was written",
            where=str(path),
            expected=f"SHA-256 {file.sha256}",
            remedy="restore it, or write the batch again into another folder",
        )
    current = batch.folder.manifest.rounds[file.round - 1]
    if known.state == "failed":
        label, _, again = known.label.partition(".")
        batch.jobs.files[file.name] = known = FileState(label=f"{label}.{int(again or 1) + 1}")
    known.label = known.label or f"{current.id}-{file.number}"
    if known.state == "creating":
        try:
            known.job = batch.call(batch.api.find, known.label)
        except LookupError:
            raise RunError(
                f"it is unknown whether {file.name} was submitted: the call was interrupted, and "
                "the provider's jobs have no names",
                where=str(path),
                expected="the job's id in jobs.json",
                remedy=f"look at the provider's list of batches: if it has one of {file.requests} "
                f'requests, set "job" of {file.name} in jobs.json to its id and "state" to '
                '"running"; else set "state" to "new"',
            ) from None
    if not known.job:
        if known.state == "new":
            with _with_addresses(batch, path, current.media) as sent:
                known.uploaded = batch.call(batch.api.upload, sent, known.label)
        known.state = "creating"
        batch.save()
        try:
            known.job = batch.run(batch.api.create(path, known.uploaded, known.label, headers))
        except CallError as error:
            if error.throttled or error.unsent:
                known.state = "uploaded"
            elif not error.transient:  # the provider has refused it
                known.state = "new"
            batch.save()
            raise
    known.state = "running"
    batch.save()
    return known


# Media that requests refer to, uploaded.

_REFERENCE = re.compile(
    re.escape(UPLOADED.encode()) + rb"([a-z]+/[A-Za-z0-9.+-]+)/([0-9a-f]{64}\.[A-Za-z0-9._=+-]+)"
)


@contextmanager
def _with_addresses(batch: _Batch, path: Path, media: str) -> Iterator[Path]:
    """Upload the media of a file; yield a copy of the file that has their addresses."""
    if not media:
        yield path
        return
    with wrap_os_error(path), open_own(path, "rb") as file:
        types = {
            name.decode(): mime.decode() for line in file for mime, name in _REFERENCE.findall(line)
        }
    fresh = time.time() - _KEPT_S
    uploads = batch.jobs.uploads
    lacking = [name for name in sorted(types) if name not in uploads or uploads[name].at < fresh]
    for begin in range(0, len(lacking), _AT_ONCE):
        names = lacking[begin : begin + _AT_ONCE]
        with wrap_os_error(path):
            parts = [_medium(Path(media) / name, types[name]) for name in names]
        uris = batch.call(batch.api.upload_media, parts)
        now = time.time()
        for name, part in zip(names, parts, strict=True):
            uploads[name] = Upload(uri=uris[part.sha256], at=now)
        batch.save()

    def address(match: re.Match[bytes]) -> bytes:
        return uploads[match[2].decode()].uri.encode()

    sent = path.with_name(f".{path.name}")
    try:
        with wrap_os_error(path), open_own(path, "rb") as file, atomic_write(sent) as copy:
            copy.writelines(_REFERENCE.sub(address, line) for line in file)
        yield sent
    finally:
        sent.unlink(missing_ok=True)


def _medium(path: Path, mime: str) -> RenderedPart:
    """Read a medium named by its hash; nothing else leaves the machine."""
    content, digest = read_file(path), path.name.partition(".")[0]
    if hashlib.sha256(content).hexdigest() != digest:
        raise RunError(
            "the medium is not the one that its name is the SHA-256 of",
            where=str(path),
            expected="the folder as `omnidata batch write` left it",
            remedy="write the batch again into another folder",
        )
    return RenderedPart("image", data=content, mime=mime, sha256=digest)  # an upload has no kind


# States and results.


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
    with ExitStack() as stack:
        batch = _Batch(out, place, stack)
        for _, known in batch.states():
            if known.state == "running":
                _look(batch, known)
        return batch.jobs.files


def _look(batch: _Batch, known: FileState) -> Job:
    job = batch.call(batch.api.look, known.job)
    known.state, known.word, known.said = job.state, job.word, job.said
    known.counts = dict(job.counts)
    batch.save()
    return job


def fetch(
    out: Path,
    place: Place = USUAL,
    *,
    wait: bool = False,
    first_wait_s: float = _FIRST_WAIT_S,
    report: Callable[[dict[str, FileState]], None] = lambda files: None,
) -> tuple[dict[str, FileState], list[Path], dict[str, str]]:
    """Download the results of finished jobs into the run folder.

    Files that are there stay as they are; delete one to download it again.

    Args:
        out: the run folder.
        place: as of `submit`.
        wait: ask again, at growing intervals, until every job has ended.
        first_wait_s: seconds before the second time.
        report: called with the states, each time they are asked for.

    Returns:
        The state of each file of requests; the files of results; and "expired" or "cancelled" by
        the name of each file of requests that ended so.

    Raises:
        RunError, UsageError, CallError: as of `submit`.
    """
    pause = first_wait_s
    with ExitStack() as stack:
        batch = _Batch(out, place, stack)
        files = batch.jobs.files
        while True:
            try:
                for file, known in batch.states():
                    places = [batch.folder.path / name for name in known.results]
                    if known.job and not (known.fetched and all(map(Path.exists, places))):
                        _fetch(batch, file, known)
            except CallError as error:
                if not (wait and error.transient):
                    raise
            report(files)
            if not (wait and any(known.job and not known.fetched for known in files.values())):
                break
            time.sleep(pause)
            pause = min(1.5 * pause, _LONGEST_WAIT_S)
    paths = [batch.folder.path / name for known in files.values() for name in known.results]
    ended: dict[str, str] = {name: known.state for name, known in files.items() if known.fetched}
    lost = {name: state for name, state in ended.items() if state in ("expired", "cancelled")}
    return files, paths, lost


def _fetch(batch: _Batch, file: RequestFile, known: FileState) -> None:
    job = _look(batch, known)
    if job.state == "running":
        return
    again = known.label.partition(".")[2]
    names = []
    for place, result in enumerate(job.results, 1):
        name = f"results-{'-'.join(filter(None, (file.number, again, str(place))))}.jsonl"
        with wrap_os_error(batch.folder.path):
            batch.call(batch.api.download, known.job, result, batch.folder.path / name)
        names.append(name)
    known.results, known.fetched = names, True
    batch.save()
