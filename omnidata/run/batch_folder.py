"""What a run folder keeps of a batch: `RUN/batch`.

`requests-00001.jsonl` and so on are the files of requests, `ids.jsonl` says which step each of them
is about, `manifest.json` is written last and says which files are whole. `read.jsonl` names the
lines of `predictions.jsonl` that came out of a batch, and answers that are none of them because
their step has one; `jobs.json` says what the provider calls it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import msgspec

from omnidata.errors import RunError, UsageError
from omnidata.files import lines
from omnidata.jsontext import encode
from omnidata.predictions import Prediction
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

FOLDER = "batch"
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_Number = Annotated[int, msgspec.Meta(ge=1, le=99_999)]


class Round(msgspec.Struct, kw_only=True):
    """Requests that were written in one go.

    Attributes:
        id: begins the custom id of each.
        whole: whether all of them are written.
        media: the folder that holds the media; empty where the requests do.
    """

    id: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}$")]
    whole: bool = False
    media: str = ""


class RequestFile(msgspec.Struct, kw_only=True, frozen=True):
    """One file of requests.

    Attributes:
        name: in the folder.
        round: the number of its round, from 1.
        requests: how many it holds.
        bytes: of the file.
        sha256: of the file, in hexadecimal.
    """

    name: Annotated[str, msgspec.Meta(pattern=r"^requests-[0-9]{5}\.jsonl$")]
    round: _Number
    requests: _Count
    bytes: _Count
    sha256: str


class Manifest(msgspec.Struct, kw_only=True):
    """What was written, and how the model is made that reads what comes back.

    Attributes:
        form: of the files.
        url: that their rows name.
        served_model: as the provider knows it.
        price: share of the price of a request of its own.
        spec, options, base_url, models: of the model, as of `omnidata.adapters.get_adapter`; no
            key is among them.
        rounds: in order.
        files: in order.
    """

    form: Literal["openai", "vllm", "gemini", "anthropic"]
    url: str
    served_model: str
    price: float
    spec: str
    options: dict[str, str]
    base_url: str | None
    models: str | None
    rounds: list[Round] = []
    files: list[RequestFile] = []


def check_models(manifest: Manifest, models: Path | None) -> None:
    """Refuse a file of models that the run folder alone names.

    Args:
        manifest: of the batch.
        models: the file that the user names.

    Raises:
        UsageError: the user names none, and the folder does.
    """
    if manifest.models and models is None:
        raise UsageError(
            f"the model {manifest.spec} is a row of {manifest.models}: its address and the name of "
            "its key are taken from no run folder",
            where="--models",
            expected="the file named again, if it is yours",
            remedy=f"--models {manifest.models}",
        )


class Asked(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """One request: a line of `ids.jsonl`.

    Attributes:
        custom_id: its name in the files.
        sample_id: the step that it is about.
        file: that it stands in.
        round: the number of its round.
        key: as of `Prepared`.
        receipt: of the request.
        media: what the receipt of an answer says of the media that were shown.
        tools: names of the tools that it declares.
    """

    custom_id: str
    sample_id: str
    file: str
    round: _Number
    key: str = ""
    receipt: dict[str, Any] = {}
    media: dict[str, Any] = {}
    tools: list[str] = []


class Got(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """A line of predictions that came out of a batch: a line of `read.jsonl`.

    Attributes:
        custom_id: of the request.
        sample_id: the step that it is about.
        round: the number of its round.
        answered: whether an answer came back.
        spare: whether the step has another answer, so that this one is an attempt, which cost too.
    """

    custom_id: str
    sample_id: str
    round: _Number
    answered: bool
    spare: bool = False


class FileState(msgspec.Struct, kw_only=True):
    """One file of requests at its provider.

    Attributes:
        state: "new", "uploaded", "creating" (nobody knows whether it was submitted), "running",
            "done" (results lie in the folder), "failed", "expired", "cancelled".
        label: by which the provider's job is found.
        uploaded: the provider's name of the file.
        job: the provider's name of the job.
        word: the provider's word for how it stands.
        counts: requests by what became of them.
        said: why it failed.
        results: names of the files in the folder.
        fetched: whether all of them are there.
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
    """A medium at the provider: its address, and when it got there, in seconds since 1970."""

    uri: str
    at: float


class Jobs(msgspec.Struct, kw_only=True):
    """The content of `jobs.json`."""

    files: dict[str, FileState] = {}
    uploads: dict[str, Upload] = {}


Line = TypeVar("Line", bound=msgspec.Struct)


class BatchFolder:
    """The folder `batch` of a run; what a killed process left unfinished in it is passed over.

    Args:
        run: the run folder.

    Raises:
        RunError: what is there cannot be read.
    """

    def __init__(self, run: Path) -> None:
        self.path = run / FOLDER
        self.manifest: Manifest | None = None
        if (self.path / "manifest.json").exists():
            with wrap_os_error(self.path), open_own(self.path / "manifest.json", "rb") as file:
                self.manifest = decode_line(file.read(), Manifest, self.path / "manifest.json")
            self._check_rounds(self.manifest)

    def _check_rounds(self, manifest: Manifest) -> None:
        last = len(manifest.rounds)
        wrong = next((file for file in manifest.files if file.round > last), None)
        if wrong or not last:
            raise RunError(
                f"{wrong.name} is of round {wrong.round}, of {last}"
                if wrong
                else "the manifest has no round",
                where=str(self.path / "manifest.json"),
                expected="the file that `omnidata batch write` writes",
                remedy="restore the file, or write the batch again into another folder",
            )

    @classmethod
    def of(cls, run: Path) -> tuple[Self, Manifest]:
        """The folder of a run that has a batch.

        Raises:
            RunError: it has none.
        """
        folder = cls(run)
        if folder.manifest is None:
            raise RunError(
                "the run has no batch",
                where=str(run),
                expected="a run folder that `omnidata batch write` made",
                remedy="write its requests first: omnidata batch write TASK DATA --model SPEC "
                f"--out {run}",
            )
        return folder, folder.manifest

    def save(self, manifest: Manifest) -> None:
        """Write the manifest, after all that it names."""
        self.manifest = manifest
        with wrap_os_error(self.path):
            self.path.mkdir(exist_ok=True)
            write_json(self.path / "manifest.json", msgspec.to_builtins(manifest))

    def requests(self) -> Iterator[Asked]:
        """The requests of the files that are whole."""
        whole = {file.name for file in self.manifest.files} if self.manifest else set()
        yield from (line for line in self._lines("ids.jsonl", Asked) if line.file in whole)

    def got(self) -> Iterator[Got]:
        """What was read, in the order in which it was."""
        return self._lines("read.jsonl", Got)

    def standing(self) -> Mapping[str, Got]:
        """By sample id, the line of predictions that came out of a batch; the last one stands."""
        return {line.sample_id: line for line in self.got() if not line.spare}

    def jobs(self) -> Jobs:
        """What is known of the files at their provider; nothing where none was submitted."""
        path = self.path / "jobs.json"
        if not path.exists():
            return Jobs()
        with wrap_os_error(self.path), open_own(path, "rb") as file:
            return decode_line(file.read(), Jobs, path)

    def tidy(self) -> None:
        """Take out what a killed process left of requests whose file is not whole."""
        with wrap_os_error(self.path):
            for left in self.path.iterdir():
                if is_unfinished(left.name):
                    left.unlink()
        path = self.path / "ids.jsonl"
        if not path.exists():
            return
        kept = [encode(msgspec.to_builtins(line)) + b"\n" for line in self.requests()]
        with wrap_os_error(self.path), atomic_write(path) as file:
            file.writelines(kept)

    def append(
        self, name: Literal["ids.jsonl", "read.jsonl"], found: Iterable[Asked | Got]
    ) -> None:
        """Add lines, which outlive the machine."""
        path = self.path / name
        with wrap_os_error(self.path):
            if path.exists():
                drop_partial_line(path)
            with open_own(path, "ab") as file:
                file.writelines(encode(msgspec.to_builtins(line)) + b"\n" for line in found)
                file.flush()
                os.fsync(file.fileno())

    def _lines(self, name: str, kind: type[Line]) -> Iterator[Line]:
        path = self.path / name
        if not path.exists():
            return
        with wrap_os_error(self.path):
            drop_partial_line(path)
        with wrap_os_error(self.path), open_own(path, "rb") as file:
            for line in lines(file):
                yield decode_line(line, kind, path)


def decode_line(text: bytes, kind: type[Line], path: Path) -> Line:
    """The content of a file of ours, or a line of it.

    Raises:
        RunError: it is none.
    """
    try:
        return msgspec.convert(json.loads(text), kind)  # ids may hold lone surrogates
    except (ValueError, RecursionError, UnicodeEncodeError) as error:
        raise RunError(
            f"the content is invalid: {str(error).splitlines()[0]}",
            where=str(path),
            expected="the file that `omnidata batch` writes",
            remedy="restore the file, or write the batch again into another folder",
        ) from None


def spend_answers(run: RunFolder, budget: Budget) -> None:
    """Count what the answers of a run have used, those out of a batch at its price.

    Replaced answers have cost as well. An answer without token counts is one of unknown tokens;
    failures without any, and answers out of the cache, count as none.

    Args:
        run: its lines.
        budget: counts them.
    """
    folder = BatchFolder(run.path)
    price = folder.manifest.price if folder.manifest else 1.0
    batched = {name for name, line in folder.standing().items() if line.answered}
    for line in run.lines():
        if _has_used(line):
            budget.spend(line.usage, price if line.sample_id in batched else 1.0)
    for line in run.failed_lines():
        # A run with a batch asks no step again that has an answer: what was one and gave way to
        # another came out of a batch.
        if _has_used(line):
            budget.spend(line.usage, 1.0 if line.delivery in TRANSIENT else price)


def _has_used(line: Prediction) -> bool:
    return bool(line.usage) or not (line.delivery in TRANSIENT or line.receipt.get("cached"))
