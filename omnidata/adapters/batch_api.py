"""Batch APIs of providers: files of requests, their results, and the service that takes them.

The form and the service of a provider are declared beside its wire format.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from omnidata.adapters.answers import MAX_ERROR_BYTES, fault
from omnidata.adapters.api import ApiModel
from omnidata.adapters.keys import Key
from omnidata.adapters.render import RenderedPart
from omnidata.errors import CallError
from omnidata.storage import atomic_write
from omnidata.types import Completion, GenerationParams


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """Result of one request of a batch.

    Attributes:
        custom_id: the name of the request in its file.
        body: the JSON text with which a server would have answered; empty without an answer.
        status: the HTTP status; 0 if the provider reports none.
        error: the provider's error, as a JSON value; None beside an answer.
        ended: "expired" or "cancelled" if the request was never run; else empty.
    """

    custom_id: str
    body: str = ""
    status: int = 0
    error: Any = None
    ended: Literal["", "expired", "cancelled"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchForm:
    """Format of a provider's files.

    Attributes:
        name: of the format.
        row: writes a request from its custom id and the JSON text of its body.
        read: reads the JSON object of a row of results; None if it is no such row.
        url: the path that every row names; empty if rows name none.
        max_requests: the largest number of requests in a file; None = any number.
        max_bytes: the largest size of a file; None = any size.
        price: price of a token as a share of its price in a direct request.
        media: "file" if a request may name media in a folder of the server's machine, "upload" if
            media are uploaded separately, empty if the requests hold them all.
        command: the shell command that answers a file, if no service takes it; `{requests}`,
            `{results}` and `{model}` stand for two paths and the model.
        media_option: option of the command that permits the media folder `{media}`.
    """

    name: str
    row: Callable[[BatchForm, str, bytes], bytes]
    read: Callable[[Mapping[str, Any]], Returned | None]
    url: str = ""
    max_requests: int | None = None
    max_bytes: int | None = None
    price: float = 0.5
    media: Literal["", "file", "upload"] = ""
    command: str = ""
    media_option: str = ""


class BatchModel(ApiModel):
    """A model whose provider may answer files of requests too.

    Attributes:
        batch: the format of the files; None if this server takes none.
        batch_service: takes the files.
        refer: returns the name by which a request refers to a medium outside it; None puts the
            media into the requests.
    """

    batch: BatchForm | None = None
    batch_service: ClassVar[type[BatchService]]
    refer: Callable[[RenderedPart], str] | None = None

    @abstractmethod
    def body(self, payload: Any, params: GenerationParams) -> bytes:
        """Return the JSON text of a request, byte for byte as `send` sends it."""

    @abstractmethod
    def read(self, body: str, params: GenerationParams, where: str, *, tools: bool) -> Completion:
        """Read an answer of the server, as `send` does.

        Args:
            body: the JSON text.
            params: the settings of the request.
            where: the place, for errors.
            tools: whether the prompt has a tool.

        Raises:
            CallError: it is no answer.
        """

    def headers(self, params: GenerationParams, tools: Sequence[str]) -> dict[str, str]:
        """Return the headers, beside the key, of a request with these settings and tools."""
        return {}


State = Literal["running", "done", "failed", "expired", "cancelled"]
"""Of a job: "failed" ran nothing; "expired" and "cancelled" may have some results."""

TIMEOUT_S = 3600.0
LISTED = 1000
"""The number of the newest jobs among which `find` searches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """State of a job at its provider.

    Attributes:
        state: of the job.
        word: the provider's own word for it.
        counts: numbers of requests by state, if the provider reports them.
        said: why it failed, if the provider gives a reason.
        results: the provider's names of the files of results.
    """

    state: State
    word: str
    counts: Mapping[str, int] = field(default_factory=dict)
    said: str = ""
    results: tuple[str, ...] = ()


class BatchService(ABC):
    """A provider's batch API; every method but `create` can be repeated.

    All methods raise CallError if the provider does not do it.
    """

    def __init__(self, model: BatchModel) -> None:
        self.model = model
        self.where = model.preset.base_url

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Translate errors of the SDK into CallError, with the key redacted."""
        with self.model.key.hide_in_errors():
            try:
                yield
            except Exception as error:
                if translated := self.call_error(error):
                    raise translated from None
                raise

    @abstractmethod
    def call_error(self, error: Any) -> CallError | None:
        """Return an error of the SDK as a CallError; None if it is another error."""

    def fault(self, status: int, headers: Mapping[str, str], body: str) -> CallError:
        """Return the error for an HTTP status of the server."""
        said = self.model.key.redact(body[:MAX_ERROR_BYTES])
        return fault(status, headers, said, where=self.where)

    def upload(self, path: Path, label: str) -> str:
        """Upload a file of requests; return the provider's name of it, empty if it has none."""
        return ""

    def upload_media(self, parts: Sequence[RenderedPart]) -> Mapping[str, str]:
        """Upload media to which requests refer; return their addresses by SHA-256.

        Only a service whose `BatchForm.media` is "upload" has it.
        """
        raise NotImplementedError

    @abstractmethod
    def create(self, path: Path, uploaded: str, label: str, headers: Mapping[str, str]) -> str:
        """Create a job for a file, in one attempt; return the provider's name of the job.

        Args:
            path: of the file.
            uploaded: the name that `upload` returned.
            label: by which `find` finds the job.
            headers: those of a direct request, beside the key.
        """

    @abstractmethod
    def find(self, label: str) -> str | None:
        """Return the job with a label; None if there is none.

        Raises:
            LookupError: the provider's jobs have no labels.
        """

    @abstractmethod
    def look(self, job: str) -> Job:
        """Return the state of a job."""

    @abstractmethod
    def download(self, job: str, result: str, path: Path) -> None:
        """Write one file of results, whole or not at all."""

    @abstractmethod
    def close(self) -> None:
        """Close the connections."""


class SdkService(BatchService):
    """The batch API of OpenAI or Anthropic, whose SDKs are alike.

    Attributes:
        client_class: the client of the model's `library`.

    Raises:
        PlatformError: the extra is not installed.
    """

    client_class: ClassVar[str]

    def __init__(self, model: BatchModel) -> None:
        super().__init__(model)
        assert model.library
        self.sdk = model.library.load()
        self.client: Any = getattr(self.sdk, self.client_class)(
            api_key=model.key.value or "EMPTY",
            base_url=model.preset.base_url,
            timeout=TIMEOUT_S,
            http_client=self.sdk.DefaultHttpxClient(follow_redirects=False, timeout=TIMEOUT_S),
        )

    def call_error(self, error: Any) -> CallError | None:
        """Return an error of the SDK as a CallError."""
        import httpx2

        from omnidata.adapters.http import connection_error  # aiohttp takes long to import

        if isinstance(error, self.sdk.APIStatusError):
            body = error.body or str(error)
            said = body if isinstance(body, str) else json.dumps(body)
            return self.fault(error.status_code, error.response.headers, said)
        if isinstance(error, (self.sdk.APIConnectionError, httpx2.HTTPError)):
            return connection_error(error.__cause__ or error, self.where)
        return None

    def close(self) -> None:
        """Close the connections."""
        self.client.close()


def save(chunks: Iterable[bytes], path: Path, key: Key) -> None:
    """Write a file in one move, with the key redacted."""
    with atomic_write(path) as file:
        rest = b""
        for chunk in chunks:
            *lines, rest = (rest + chunk).split(b"\n")
            file.writelines(key.redact_bytes(line) + b"\n" for line in lines)
        file.write(key.redact_bytes(rest))
