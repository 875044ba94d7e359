"""Batch APIs of providers: files of requests, what comes of them, and the service that takes them.

A provider's own form and service stand with its wire format.
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
    """What came of one request of a batch.

    Attributes:
        custom_id: the name that the request had in its file.
        body: the JSON text that a server would have answered with; empty where there is none.
        status: the HTTP status; 0 where the provider tells of none.
        error: what it says in place of an answer, as a JSON value; None beside an answer.
        ended: "expired" or "cancelled" where the request was never run; else empty.
    """

    custom_id: str
    body: str = ""
    status: int = 0
    error: Any = None
    ended: Literal["", "expired", "cancelled"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchForm:
    """What the files of a provider look like.

    Attributes:
        name: of the format.
        url: the path that every row names; empty where rows name none.
        max_requests: that a file may hold; None = any number.
        max_bytes: of a file; None = any number.
        price: what a token costs beside its price in a request of its own.
        media: "file" where a request may name media that lie in a folder of the server's machine,
            "upload" where they are uploaded beside it, empty where it holds them all.
        row: writes a request: its custom id and the JSON text of its body.
        read: reads what came of a request out of a row's JSON object; None where it is no such row.
    """

    name: Literal["openai", "vllm", "gemini", "anthropic"]
    url: str = ""
    max_requests: int | None = None
    max_bytes: int | None = None
    price: float = 0.5
    media: Literal["", "file", "upload"] = ""
    row: Callable[[BatchForm, str, bytes], bytes]
    read: Callable[[Mapping[str, Any]], Returned | None]


class BatchModel(ApiModel):
    """A model whose provider also answers files of requests, which it is sent in one go.

    Attributes:
        batch: what the files look like.
        batch_service: takes the files.
        refer: gives the name by which a request has a medium that lies elsewhere; None puts the
            media into the requests.
    """

    batch: BatchForm
    batch_service: ClassVar[type[BatchService]]
    refer: Callable[[RenderedPart], str] | None = None

    @abstractmethod
    def body(self, payload: Any, params: GenerationParams) -> bytes:
        """Return the JSON text of a request, byte by byte what `send` sends."""

    @abstractmethod
    def read(self, body: str, params: GenerationParams, where: str, *, tools: bool) -> Completion:
        """Read an answer of the server, as `send` does.

        Args:
            body: the JSON text.
            params: how it was asked.
            where: the place, for errors.
            tools: whether the prompt has a tool.

        Raises:
            CallError: it is no answer.
        """

    def headers(self, params: GenerationParams, tools: Sequence[str]) -> dict[str, str]:
        """Return the headers of one request; none by default.

        Args:
            params: how to decode.
            tools: the names of those that are declared.
        """
        return {}


State = Literal["running", "done", "failed", "expired", "cancelled"]
"""Of a job: "failed" ran nothing; "expired" and "cancelled" may have results of what was run."""

TIMEOUT_S = 3600.0
LISTED = 1000
"""Jobs, the newest first, among which one is looked for."""


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
        self.where = model.preset.base_url

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Raise CallError where the SDK raises an error of its own; the key is in neither."""
        with self.model.key.hide_in_errors():
            try:
                yield
            except Exception as error:
                if translated := self.call_error(error):
                    raise translated from None
                raise

    @abstractmethod
    def call_error(self, error: Any) -> CallError | None:
        """Return an error of the SDK as a CallError; None where it is none of the SDK's."""

    def fault(self, status: int, headers: Mapping[str, str], body: str) -> CallError:
        """Return the error that a status of the server stands for."""
        said = self.model.key.redact(body[:MAX_ERROR_BYTES])
        return fault(status, headers, said, where=self.where)

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
