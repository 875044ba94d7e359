"""The folder `RUN/batch`.

`requests-00001.jsonl` and so on are the files of requests, and `ids.jsonl` names the step of each
request. `manifest.json` is written last and lists the complete files. `jobs.json` holds the state
of each file at the provider. `read.jsonl` names the lines of `predictions.jsonl` that came from a
batch, and answers that became attempts because their step has another one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from omnidata.errors import RunError, UsageError
from omnidata.files import lines
from omnidata.jsontext import encode
from omnidata.predictions import Prediction
from omnidata.run.asker import Recipe
from omnidata.run.cost import Budget
from omnidata.run.journal import TRANSIENT, RunFolder
from omnidata.storage import (
    atomic_write,
    drop_partial_line,
    is_unfinished,
    open_own,
    wrap_os_error,
    write_json,
)

_AGAIN = "restore the file, or write the batch again into another folder"
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_Number = Annotated[int, msgspec.Meta(ge=1, le=99_999)]


class Round(msgspec.Struct, kw_only=True):
    """Requests that were written in one go; `media` is the folder of media outside them."""

    id: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}$")]  # prefix of their custom ids
    whole: bool = False
    media: str = ""


class RequestFile(msgspec.Struct, kw_only=True, frozen=True):
    """One complete file of requests, of a round that is counted from 1."""

    name: Annotated[str, msgspec.Meta(pattern=r"^requests-[0-9]{5}\.jsonl$")]
    round: _Number
    requests: _Count
    bytes: _Count
    sha256: str

    @property
    def number(self) -> str:
        """Five digits."""
        return self.name[len("requests-") : -len(".jsonl")]


class Manifest(msgspec.Struct, kw_only=True):
    """The content of `manifest.json`: the format, the model without its key, and the files."""

    form: str
    url: str
    served_model: str
    price: float
    spec: str
    options: dict[str, str]
    base_url: str | None
    models: str | None
    rounds: list[Round] = []
    files: list[RequestFile] = []

    def recipe(self, base_url: str | None, key_file: Path | None, models: Path | None) -> Recipe:
        """Return the model with an address, a key and a file of models that the user names.

        Raises:
            UsageError: the user names no file of models, and the run folder does.
        """
        if self.models and models is None:
            raise UsageError(
                f"the model {self.spec} is a row of {self.models}: its address and the name of "
                "its key are taken from no run folder",
                where="--models",
                expected="the file named again, if it is yours",
                remedy=f"--models {self.models}",
            )
        return Recipe(self.spec, self.options, base_url, key_file, models)


class Asked(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """One request: a line of `ids.jsonl`; `media` is added to the receipt of its answer."""

    custom_id: str
    sample_id: str
    file: str
    round: _Number
    key: str = ""
    receipt: dict[str, Any] = {}
    media: dict[str, Any] = {}
    tools: list[str] = []


class Got(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """One result: a line of `read.jsonl`; `spare` if the step has another answer."""

    custom_id: str
    sample_id: str
    round: _Number
    answered: bool
    spare: bool = False


class FileState(msgspec.Struct, kw_only=True):
    """State of one file of requests at its provider, and of its `Job` once there is one.

    Attributes:
        state: "creating" if it is unknown whether there is a job.
        label: by which the job is found.
        uploaded, job: the provider's names of the file and the job.
        results: names of the downloaded files.
        fetched: whether all of them are downloaded.
    """

    state: Literal[
        "new", "uploaded", "creating", "running", "done", "failed", "expired", "cancelled"
    ] = "new"
    label: str = ""
    uploaded: str = ""
    job: str = ""
    word: str = ""
    counts: dict[str, int] = {}
    said: str = ""
    results: list[Annotated[str, msgspec.Meta(pattern=r"^results-[0-9-]+\.jsonl$")]] = []
    fetched: bool = False


class Upload(msgspec.Struct, kw_only=True):
    """A medium at the provider: its address, and the time of the upload in seconds since 1970."""

    uri: str
    at: float


class Jobs(msgspec.Struct, kw_only=True):
    """The content of `jobs.json`."""

    files: dict[str, FileState] = {}
    uploads: dict[str, Upload] = {}


Line = TypeVar("Line", bound=msgspec.Struct)


class BatchFolder:
    """The folder `batch` of a run; unfinished files of a killed process are ignored.

    Args:
        run: the run folder.
        new: whether the run may have no batch yet; `manifest` has no rounds then.

    Raises:
        RunError: the run has no batch, or its files cannot be read.
    """

    def __init__(self, run: Path, *, new: bool = False) -> None:
        self.path = run / "batch"
        place = self.path / "manifest.json"
        self.manifest = self._read(place.name, Manifest) or Manifest(
            form="", url="", served_model="", price=1.0, spec="", options={}, base_url=None,
            models=None,
        )  # fmt: skip
        last = len(self.manifest.rounds)
        named = max((file.round for file in self.manifest.files), default=last)
        if named > last:
            raise RunError(
                f"the manifest has a file of round {named}, of {last}",
                where=str(place),
                expected="the file that `omnidata batch write` writes",
                remedy=_AGAIN,
            )
        if not last and not new:
            raise RunError(
                "the run has no batch",
                where=str(run),
                expected="a run folder that `omnidata batch write` made",
                remedy="write its requests first: omnidata batch write TASK DATA --model SPEC "
                f"--out {run}",
            )

    def _read(self, name: str, kind: type[Line]) -> Line | None:
        path = self.path / name
        if not path.exists():
            return None
        with wrap_os_error(self.path), open_own(path, "rb") as file:
            return _decode(file.read(), kind, path)

    def save(self) -> None:
        """Write the manifest, after the files that it lists."""
        with wrap_os_error(self.path):
            self.path.mkdir(exist_ok=True)
            write_json(self.path / "manifest.json", msgspec.to_builtins(self.manifest))

    def jobs(self) -> Jobs:
        """Return the state of the files at the provider."""
        return self._read("jobs.json", Jobs) or Jobs()

    def save_jobs(self, jobs: Jobs) -> None:
        """Write the state of the files at the provider."""
        with wrap_os_error(self.path):
            write_json(self.path / "jobs.json", msgspec.to_builtins(jobs))

    def requests(self) -> Iterator[Asked]:
        """Yield the requests of the complete files."""
        whole = {file.name for file in self.manifest.files}
        return (line for line in self._lines("ids.jsonl", Asked) if line.file in whole)

    def got(self) -> Iterator[Got]:
        """Yield the results that were read, in order."""
        return self._lines("read.jsonl", Got)

    def standing(self) -> Mapping[str, Got]:
        """Return the lines of predictions that came from a batch, by sample id."""
        return {line.sample_id: line for line in self.got() if not line.spare}

    def tidy(self) -> None:
        """Remove the unfinished files of a killed process, and their requests."""
        with wrap_os_error(self.path):
            for left in self.path.iterdir():
                if is_unfinished(left.name):
                    left.unlink()
            if (self.path / "ids.jsonl").exists():
                requests = [*self.requests()]
                with atomic_write(self.path / "ids.jsonl") as file:
                    file.writelines(map(_encode, requests))

    def append(self, name: Literal["ids.jsonl", "read.jsonl"], new: Iterable[Asked | Got]) -> None:
        """Add lines to a file, and write them to the disk."""
        path = self.path / name
        with wrap_os_error(self.path):
            if path.exists():
                drop_partial_line(path)
            with open_own(path, "ab") as file:
                file.writelines(map(_encode, new))
                file.flush()
                os.fsync(file.fileno())

    def _lines(self, name: str, kind: type[Line]) -> Iterator[Line]:
        path = self.path / name
        if not path.exists():
            return
        with wrap_os_error(self.path):
            drop_partial_line(path)
            with open_own(path, "rb") as file:
                for line in lines(file):
                    yield _decode(line, kind, path)


def _encode(line: msgspec.Struct) -> bytes:
    return encode(msgspec.to_builtins(line)) + b"\n"


def _decode(text: bytes, kind: type[Line], path: Path) -> Line:
    try:
        return msgspec.convert(json.loads(text), kind)  # ids may hold lone surrogates
    except (ValueError, RecursionError, UnicodeEncodeError) as error:
        raise RunError(
            f"the content is invalid: {str(error).splitlines()[0]}",
            where=str(path),
            expected="the file that `omnidata batch` writes",
            remedy=_AGAIN,
        ) from None


def spend_answers(run: RunFolder, budget: Budget) -> None:
    """Add the usage of a run's answers to a budget, at the batch price if they came from a batch.

    Replaced answers count too. An answer without token counts is one of unknown tokens; failures
    without any, and answers from the cache, count as none.
    """
    folder = BatchFolder(run.path, new=True)
    price = folder.manifest.price
    batched = {name for name, line in folder.standing().items() if line.answered}
    for line in run.lines():
        if _has_used(line):
            budget.spend(line.usage, price if line.sample_id in batched else 1.0)
    for line in run.failed_lines():
        # A run with a batch asks no answered step again: a replaced answer came from a batch.
        if _has_used(line):
            budget.spend(line.usage, 1.0 if line.delivery in TRANSIENT else price)


def _has_used(line: Prediction) -> bool:
    return bool(line.usage) or not (line.delivery in TRANSIENT or line.receipt.get("cached"))
