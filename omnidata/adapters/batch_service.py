"""Files of requests sent to a provider's batch API, watched and fetched, through its own SDK."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal
from urllib.parse import quote

from omnidata.adapters.api import BatchModel
from omnidata.adapters.http import MAX_ERROR_BYTES, connection_error, fault
from omnidata.adapters.keys import Key
from omnidata.errors import PlatformError, UsageError
from omnidata.storage import atomic_write

State = Literal["running", "done", "failed", "expired", "cancelled"]
"""Of a job: "failed" ran nothing; "expired" and "cancelled" may have results of what was run."""

_TIMEOUT_S = 3600.0
_LISTED = 1000
"""Jobs, the newest first, among which one is looked for."""

_LABEL = "omnidata"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a provider says of a job.

    Attributes:
        state: of it.
        word: the provider's own word for that.
        counts: requests by what became of them, as far as it tells.
        said: why it failed; empty if it did not, or nobody says.
        results: names of the files with results, as the provider has them.
    """

    state: State
    word: str
    counts: Mapping[str, int] = field(default_factory=dict)
    said: str = ""
    results: tuple[str, ...] = ()


class BatchService(ABC):
    """A provider's batch API; one method is one call, or a few that can all be repeated.

    All methods raise CallError where the provider does not do what is asked.

    Args:
        model: whose requests the files hold.
    """

    def __init__(self, model: BatchModel) -> None:
        self.model = model

    def upload(self, path: Path, label: str) -> str:
        """Upload a file of requests; gives the provider's name of it, empty where there is none."""
        return ""

    @abstractmethod
    def create(self, path: Path, uploaded: str, label: str, headers: Mapping[str, str]) -> str:
        """Make a job of a file, in one attempt; gives the provider's name of the job.

        Args:
            path: of the file.
            uploaded: as `upload` gave it.
            label: by which `find` knows the job.
            headers: that each request would have had beside the key.
        """

    @abstractmethod
    def find(self, label: str) -> str | None:
        """The job with a label; None if there is none.

        Raises:
            LookupError: the provider's jobs have no labels.
        """

    @abstractmethod
    def look(self, job: str) -> Job:
        """How things stand with a job."""

    @abstractmethod
    def download(self, job: str, result: str, path: Path) -> None:
        """Write one file of results, whole or not at all."""

    @abstractmethod
    def close(self) -> None:
        """Close the connections."""


def check_served(form: str) -> None:
    """Refuse files that no provider takes over HTTP.

    Args:
        form: the name of their form.

    Raises:
        UsageError: they are such files.
    """
    if form not in _SERVICES:
        raise UsageError(
            "`vllm run-batch` reads the files itself, so nothing can be submitted",
            where=f"a batch of the form {form}",
            expected="a batch of OpenAI, Gemini or Anthropic",
            remedy="run it on the files, then `omnidata batch read RUN RESULTS`",
        )


def service(model: BatchModel, form: str) -> BatchService:
    """The batch API that takes files of a form.

    Args:
        model: whose requests they hold, with the provider's address and key.
        form: the name of the form.
    """
    return _SERVICES[form](model)


@dataclass(frozen=True, slots=True)
class _Errors:
    status: type[Exception]
    connection: tuple[type[Exception], ...]
    read: Callable[[Any], tuple[int, Mapping[str, str], str]]


@contextmanager
def _calling(model: BatchModel, errors: _Errors, where: str) -> Iterator[None]:
    with model.key.hide_in_errors():
        try:
            yield
        except errors.status as error:
            status, headers, body = errors.read(error)
            said = model.key.redact(body[:MAX_ERROR_BYTES])
            raise fault(status, headers, said, where=where) from None
        except errors.connection as error:
            raise connection_error(error.__cause__ or error, where) from None


# OpenAI and Anthropic, whose SDKs are of one family.


class _FamilyService(BatchService):
    package: ClassVar[str]
    client_class: ClassVar[str]

    def __init__(self, model: BatchModel) -> None:
        super().__init__(model)
        try:
            self.sdk = import_module(self.package)
        except ImportError as error:
            raise PlatformError(
                f"{error.name} is not installed",
                expected=f"the libraries of the extra `{self.package}`",
                remedy=f"pip install 'omnidata[{self.package}]'",
            ) from error
        self.client: Any = getattr(self.sdk, self.client_class)(
            api_key=model.key.value or "EMPTY",
            base_url=model.preset.base_url,
            timeout=_TIMEOUT_S,
            http_client=self.sdk.DefaultHttpxClient(follow_redirects=False, timeout=_TIMEOUT_S),
        )

    def calling(self) -> Any:
        import httpx2

        errors = _Errors(
            self.sdk.APIStatusError,
            (self.sdk.APIConnectionError, httpx2.HTTPError),
            lambda error: (
                error.status_code,
                error.response.headers,
                _text_of(error.body) or str(error),
            ),
        )
        return _calling(self.model, errors, self.model.preset.base_url)

    def once(self) -> Any:
        return self.client.with_options(max_retries=0)

    def close(self) -> None:
        self.client.close()


def _text_of(body: Any) -> str:
    return body if isinstance(body, str) else json.dumps(body) if body else ""


class OpenAIBatches(_FamilyService):
    """OpenAI's: a file is uploaded, and a job is made of it."""

    package = "openai"
    client_class = "OpenAI"
    _STATES: ClassVar[Mapping[str, State]] = {
        "completed": "done",
        "failed": "failed",
        "expired": "expired",
        "cancelled": "cancelled",
    }

    def upload(self, path: Path, label: str) -> str:
        """Upload a file of requests."""
        with self.calling(), path.open("rb") as file:
            name = f"{label}.jsonl"
            made = self.client.files.create(file=(name, file), purpose="batch")
        return str(made.id)

    def create(self, path: Path, uploaded: str, label: str, headers: Mapping[str, str]) -> str:
        """Make a job of a file."""
        with self.calling():
            made = self.once().batches.create(
                input_file_id=uploaded,
                endpoint=self.model.batch.url,
                completion_window="24h",
                metadata={_LABEL: label},
                extra_headers=dict(headers),
            )
        return str(made.id)

    def find(self, label: str) -> str | None:
        """The job whose metadata have the label."""
        with self.calling():
            jobs = islice(self.client.batches.list(limit=100), _LISTED)
            return next(
                (str(job.id) for job in jobs if (job.metadata or {}).get(_LABEL) == label), None
            )

    def look(self, job: str) -> Job:
        """How things stand with a job."""
        with self.calling():
            found = self.client.batches.retrieve(job)
        counts = found.request_counts
        errors = (found.errors.data if found.errors else None) or ()
        return Job(
            state=self._STATES.get(found.status, "running"),
            word=found.status,
            counts={name: getattr(counts, name) for name in ("total", "completed", "failed")}
            if counts
            else {},
            said="; ".join(str(error.message) for error in errors),
            results=tuple(filter(None, (found.output_file_id, found.error_file_id))),
        )

    def download(self, job: str, result: str, path: Path) -> None:
        """Write one file of results."""
        with self.calling(), self.client.files.with_streaming_response.content(result) as response:
            _save(response.iter_bytes(), path, self.model.key)


class AnthropicBatches(_FamilyService):
    """Anthropic's: a job is made of rows, and has no label."""

    package = "anthropic"
    client_class = "Anthropic"

    def create(self, path: Path, uploaded: str, label: str, headers: Mapping[str, str]) -> str:
        """Make a job of a file."""
        rows = [json.loads(line) for line in path.read_bytes().splitlines()]
        with self.calling():
            made = self.once().messages.batches.create(requests=rows, extra_headers=dict(headers))
        return str(made.id)

    def find(self, label: str) -> str | None:
        """Nobody can tell."""
        raise LookupError(label)

    def look(self, job: str) -> Job:
        """How things stand with a job."""
        with self.calling():
            found = self.client.messages.batches.retrieve(job)
        ended = found.processing_status == "ended"
        return Job(
            state="done" if ended else "running",
            word=found.processing_status,
            counts={name: int(number) for name, number in found.request_counts if number},
            results=("results",) if ended and found.results_url else (),
        )

    def download(self, job: str, result: str, path: Path) -> None:
        """Write the results, from the address that the job has, not from one that is named."""
        import httpx2

        with self.calling():
            response = self.client.get(
                f"/v1/messages/batches/{quote(job, safe='')}/results",
                cast_to=httpx2.Response,
                stream=True,
                stream_cls=self.sdk.Stream[Any],
            )
            try:
                _save(response.iter_bytes(), path, self.model.key)
            finally:
                response.close()


# Gemini.


class GeminiBatches(BatchService):
    """Google's: a file is uploaded to the File API, and a job with a name is made of it."""

    _STATES: ClassVar[Mapping[str, State]] = {
        "JOB_STATE_SUCCEEDED": "done",
        "JOB_STATE_PARTIALLY_SUCCEEDED": "done",
        "JOB_STATE_FAILED": "failed",
        "JOB_STATE_EXPIRED": "expired",
        "JOB_STATE_CANCELLED": "cancelled",
    }

    def __init__(self, model: BatchModel) -> None:
        import httpx2

        from omnidata.adapters.gemini import connect

        super().__init__(model)
        self._http = httpx2.Client(follow_redirects=False, timeout=_TIMEOUT_S)
        self.client, self._kinds = connect(model.preset, model.key, self._http)

    def _calling(self) -> Any:
        import httpx2

        errors = _Errors(
            self._kinds,
            (httpx2.HTTPError,),
            lambda error: (error.code, {}, str(error.message or "")),
        )
        return _calling(self.model, errors, self.model.preset.base_url or "Gemini")

    def upload(self, path: Path, label: str) -> str:
        """Upload a file of requests."""
        with self._calling():
            made = self.client.files.upload(
                file=str(path), config={"display_name": label, "mime_type": "application/jsonl"}
            )
        return str(made.name)

    def create(self, path: Path, uploaded: str, label: str, headers: Mapping[str, str]) -> str:
        """Make a job of a file."""
        with self._calling():
            made = self.client.batches.create(
                model=self.model.preset.model, src=uploaded, config={"display_name": label}
            )
        return str(made.name)

    def find(self, label: str) -> str | None:
        """The job whose name for people is the label."""
        with self._calling():
            jobs = islice(self.client.batches.list(config={"page_size": 100}), _LISTED)
            return next((str(job.name) for job in jobs if job.display_name == label), None)

    def look(self, job: str) -> Job:
        """How things stand with a job."""
        with self._calling():
            found = self.client.batches.get(name=job)
        word = found.state.name if found.state else ""
        result = found.dest.file_name if found.dest else None
        return Job(
            state=self._STATES.get(word, "running"),
            word=word,
            said=str(found.error.message or "") if found.error else "",
            results=(result,) if result else (),
        )

    def download(self, job: str, result: str, path: Path) -> None:
        """Write the results."""
        with self._calling():
            data = self.client.files.download(file=result)
        _save((data,), path, self.model.key)

    def close(self) -> None:
        """Close the connections."""
        self.client.close()
        self._http.close()


def _save(chunks: Iterable[bytes], path: Path, key: Key) -> None:
    """Write a file in one move, with the key redacted."""
    with atomic_write(path) as file:
        rest = b""
        for chunk in chunks:
            *lines, rest = (rest + chunk).split(b"\n")
            file.writelines(key.redact_bytes(line) + b"\n" for line in lines)
        file.write(key.redact_bytes(rest))


_SERVICES: Mapping[str, type[BatchService]] = {
    "openai": OpenAIBatches,
    "anthropic": AnthropicBatches,
    "gemini": GeminiBatches,
}
