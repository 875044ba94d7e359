"""Batch APIs of providers: files of requests, their results, and the jobs that answer them.

The API of a provider is declared beside its wire format.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, cast

from omnidata.adapters.answers import answer_of, parse_json
from omnidata.adapters.api import ApiModel
from omnidata.adapters.render import RenderedPart
from omnidata.errors import CallError
from omnidata.files import LINE
from omnidata.jsontext import BROKEN
from omnidata.storage import atomic_write
from omnidata.types import Completion, GenerationParams

if TYPE_CHECKING:
    from omnidata.adapters.http import BoundedResponse

Answer = TypeVar("Answer")


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


State = Literal["running", "done", "failed", "expired", "cancelled"]
"""Of a job: "failed" ran nothing; "expired" and "cancelled" may have some results."""

LISTED = 1000
"""The number of the newest jobs among which `find` searches."""
_PAUSE_S = 3600.0
"""A server may be silent for so long: providers check a file before they answer."""
_LARGEST = 16 * 2**30
"""Bytes of a file of results at most; providers take files of 2 GB at most."""


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
    results: Sequence[str] = ()


class BatchApi(ABC):
    """A provider's batch API: the form of its files, and its jobs.

    All methods with `async` call the provider and raise CallError; all but `create` can be
    repeated.

    Attributes:
        name: of the format.
        max_requests: the largest number of requests in a file; None = any number.
        max_bytes: the largest size of a file; None = any size.
        price: price of a token as a share of its price in a direct request.
        media: "file" if a request may name media in a folder of the server's machine, "upload" if
            media are uploaded separately, empty if the requests hold them all.
        command: the shell command that answers a file, if there are no jobs; `{requests}`,
            `{results}` and `{model}` stand for two paths and the model.
        media_option: option of the command that permits the media folder `{media}`.
        url: the path that every row names; empty if rows name none.
        root: the address that the paths of calls begin with.

    Args:
        model: whose requests the files hold.
    """

    name: ClassVar[str]
    max_requests: ClassVar[int | None] = None
    max_bytes: ClassVar[int | None] = None
    price: ClassVar[float] = 0.5
    media: ClassVar[Literal["", "file", "upload"]] = ""
    command: ClassVar[str] = ""
    media_option: ClassVar[str] = ""

    def __init__(self, model: BatchModel) -> None:
        self.model = model
        self.url = ""
        self.root = model.preset.base_url

    @abstractmethod
    def row(self, custom_id: str, body: bytes) -> bytes:
        """Return the line of a request from its custom id and the JSON text of its body."""

    @abstractmethod
    def read(self, row: Mapping[str, Any]) -> Returned | None:
        """Read the JSON object of a row of results; return None if it is no such row."""

    async def upload(self, path: Path, label: str) -> str:
        """Upload a file of requests; return the provider's name of it, empty if it has none."""
        return ""

    async def upload_media(self, parts: Sequence[RenderedPart]) -> Mapping[str, str]:
        """Upload media to which requests refer; return their addresses by SHA-256.

        Only an API whose `media` is "upload" has it.
        """
        raise NotImplementedError

    @abstractmethod
    async def create(
        self, path: Path, uploaded: str, label: str, headers: Mapping[str, str]
    ) -> str:
        """Create a job for a file, in one attempt; return the provider's name of the job.

        Args:
            path: of the file.
            uploaded: the name that `upload` returned.
            label: by which `find` finds the job.
            headers: those of a direct request, beside the key.
        """

    async def find(self, label: str) -> str:
        """Return the job with a label; empty if there is none.

        Raises:
            LookupError: the provider's jobs have no labels.
        """
        raise LookupError(label)

    @abstractmethod
    async def look(self, job: str) -> Job:
        """Return the state of a job."""

    @abstractmethod
    async def download(self, job: str, result: str, path: Path) -> None:
        """Write one file of results, whole or not at all."""

    # For the methods of a provider.

    async def call(
        self, verb: str, path: str, form: type[Answer], headers: Mapping[str, str] = {}, **body: Any
    ) -> Answer:
        """Send a request to a path behind `root`, and return the JSON of its answer as a struct."""
        async with self.request(verb, path, headers, **body) as response:
            return answer_of(await response.text(), form, "answer about a batch", response.where)

    @asynccontextmanager
    async def request(
        self, verb: str, path: str, headers: Mapping[str, str] = {}, **body: Any
    ) -> AsyncIterator[BoundedResponse]:
        """Send a request; `body` is `data`, `json` or `params`, as in aiohttp."""
        import aiohttp

        sent = self.model.common_headers.copy()
        sent.update(headers)
        patience = aiohttp.ClientTimeout(total=None, sock_read=_PAUSE_S)
        with self.model.key.hide_in_errors():
            async with self.model.session().request(
                verb, self.root + path, headers=sent, timeout=patience, **body
            ) as response:
                yield cast("BoundedResponse", response)

    async def save(self, path: str, file: Path, **params: str) -> None:
        """Download results line by line, with the key redacted."""
        key, rest, size = self.model.key, bytearray(), 0
        async with self.request("GET", path, {"Accept": "*/*"}, params=params) as response:
            with atomic_write(file) as out:
                async for chunk in response.chunks():
                    size += len(chunk)
                    rest += chunk
                    if b"\n" in chunk:
                        *lines, rest = rest.split(b"\n")
                        out.writelines(key.redact_bytes(bytes(line)) + b"\n" for line in lines)
                    if len(rest) > LINE or size > _LARGEST:
                        response.close()
                        raise CallError(
                            f"the results have a line of more than {LINE:,} bytes, or more than "
                            f"{_LARGEST:,} bytes in all",
                            where=response.where,
                            transient=False,
                        )
                if _is_torn(bytes(rest)):
                    raise CallError(
                        "the results end inside a row",
                        where=response.where,
                        remedy="check that the server, and any proxy before it, stays up",
                    )
                out.write(key.redact_bytes(bytes(rest)))


def _is_torn(end: bytes) -> bool:
    """Return whether a file whose server gave no length was cut off in its last line."""
    try:
        return bool(end.strip()) and parse_json(end.decode(errors="replace")) is BROKEN
    except RecursionError:
        return False  # its reader reports it


class BatchModel(ApiModel):
    """A model whose provider may answer files of requests too.

    Attributes:
        batch: the batch API; None if this server has none.
        refer: returns the name by which a request refers to a medium outside it; None puts the
            media into the requests.
    """

    batch: BatchApi | None = None
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
