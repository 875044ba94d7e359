"""The journal of a run: append-only lines in a run folder, with one writer.

`run.json` says what was run, `predictions.jsonl` has one final line per step, `attempts.jsonl` the
failed attempts, `scores.jsonl` and `results.json` belong to the profile last asked for.
"""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Final, Self, get_args

import numpy as np

from omnidata import predictions
from omnidata.errors import RunError
from omnidata.jsontext import encode
from omnidata.loaders.steps import Positions
from omnidata.predictions import Prediction
from omnidata.remote import refuse_url
from omnidata.run.differences import changes, describe_changes
from omnidata.run.run_info import ANSWERS, INFO, read_info, without_secrets, write_info
from omnidata.storage import atomic_write, drop_partial_line, open_own, take_lock, wrap_os_error
from omnidata.types import Completion, Delivery, Step

TRANSIENT: frozenset[Delivery] = frozenset({"api_error", "media_error"})
"""Deliveries that are tried again when a run is resumed."""
_DELIVERIES: tuple[Delivery, ...] = get_args(Delivery)
_NONE: Final = 255

CODE = "adapter"
"""Among the versions of `run.json`: the code of the model."""


class _LineFile:
    """An append-only file of lines, made with the first one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None
        self._dirty = False

    def append(self, line: Prediction) -> int:
        """Write a whole line and return its offset; take back the part that a full disk took."""
        data = encode(line) + b"\n"
        with self._disk():
            if self._file is None:
                self._file = open_own(self._path, "ab", buffering=0)
            written = self._file.write(data)
            if written < len(data):
                self._file.truncate(self._file.tell() - written)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._dirty = True
            return self._file.tell() - len(data)

    def sync(self) -> None:
        if self._file is not None and self._dirty:
            self._dirty = False  # before the call: a line that comes meanwhile may not be covered
            with self._disk():
                os.fsync(self._file.fileno())

    def close(self) -> None:
        """Sync and close; the next line opens the file again."""
        try:
            self.sync()
        finally:
            if self._file is not None:
                self._file.close()
                self._file = None

    @contextmanager
    def _disk(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RunError(
                f"a line cannot be written ({error.strerror})",
                where=str(self._path),
                expected="free space on the disk",
                remedy="free some space and repeat the command, which resumes after the last "
                "complete line",
            ) from None


class Journal(ABC):
    """The lines of steps that are asked about: final ones, and failed attempts.

    Every method raises RunError if the disk is full.

    Args:
        final: the file of the final lines.
        attempts: the file of the failed attempts.

    Attributes:
        done: the final lines so far, by sample id.
    """

    done: Mapping[str, Completion]

    def __init__(self, final: Path, attempts: Path) -> None:
        self._final, self._failed = _LineFile(final), _LineFile(attempts)

    def append(self, sample_id: str, completion: Completion) -> None:
        """Record a step's final line; it survives this process, and after `sync` a power cut."""
        start = self._final.append(Prediction.of(sample_id, completion))
        self._note(sample_id, start, completion)

    @abstractmethod
    def _note(self, sample_id: str, start: int, completion: Completion) -> None:
        """Add a final line to `done`."""

    def append_attempt(self, sample_id: str, completion: Completion) -> None:
        """Record a failed attempt before another one."""
        self._failed.append(Prediction.of(sample_id, completion))

    def sync(self) -> None:
        """Write all lines to the disk; may run in a thread beside `append`."""
        self._failed.sync()
        self._final.sync()

    def close(self) -> None:
        """Sync and close."""
        with ExitStack() as last:  # each of them, whatever another raises
            last.callback(self._final.close)
            last.callback(self._failed.close)


class RunFolder(Journal):
    """A run folder.

    Opening a folder that has a run with the same settings resumes it; other settings are refused.

    Args:
        path: the folder; made if missing.
        settings: everything that makes two runs comparable, as JSON values; secrets in them are
            not written.
        steps: of the run, if they are known (see `Answers`).
        again: whether steps with transient failures are asked again; else their lines stay until
            `reopen` moves them.
        code: hash of the model's code (see `omnidata.run.adapter_code`); empty keeps the recorded
            one.
        reuse: keep answers of other code of the model.

    Raises:
        RunError: the folder holds something else, a run with other settings, or answers of other
            code of the model.
    """

    def __init__(
        self,
        path: Path,
        settings: Mapping[str, Any],
        steps: Sequence[Step] = (),
        *,
        again: bool = True,
        code: str = "",
        reuse: bool = False,
    ) -> None:
        refuse_url(path, "run folder")
        self.path = path
        self.settings: Mapping[str, Any] = without_secrets(settings)
        self.predictions = path / ANSWERS
        self.attempts = path / "attempts.jsonl"
        self._info = path / INFO
        super().__init__(self.predictions, self.attempts)
        self.done: Answers = Answers(self.predictions, steps)
        self._again = again
        self._code = code
        self._make()
        with wrap_os_error(path):
            self._lock = take_lock(
                path / ".lock",
                busy=RunError(
                    "another process is writing into the folder",
                    where=str(path),
                    expected="one writer per run",
                    remedy="wait until it has ended, or choose another --out",
                ),
            )
        try:
            with wrap_os_error(path):
                if self._info.exists():
                    self._resume(reuse=reuse)
                else:
                    write_info(path, {**self.settings, **self._versions({})})
        except BaseException:
            self.__exit__()
            raise

    def _make(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            others = [entry.name for entry in self.path.iterdir() if entry.name[0] != "."]
        except OSError as error:
            raise RunError(
                f"the run folder cannot be made ({error.strerror})",
                where=str(self.path),
                expected="a new folder, or one that can be written",
                remedy="choose another --out",
            ) from None
        if others and not self._info.exists():
            raise RunError(
                f"the folder holds {', '.join(sorted(others)[:3])} and no run",
                where=str(self.path),
                expected="an empty or new folder, or one with run.json",
                remedy="choose another --out",
            )

    def _resume(self, *, reuse: bool) -> None:
        recorded = read_info(self.path)
        if recorded.get("selection"):
            raise RunError(
                "the folder holds answers chosen from other runs",
                where=str(self._info),
                expected="a new run folder",
                remedy="choose another --out",
            )
        # Runs of earlier versions have the hash of these texts alone, in that of the prompts.
        now = {k: v for k, v in self.settings.items() if k != "prompt_texts" or k in recorded}
        found = changes({key: recorded.get(key) for key in now}, now)
        if found:
            raise RunError(
                f"the folder holds a run with different settings: {describe_changes(found)}",
                where=str(self._info),
                expected="the same settings, to resume",
                remedy="repeat the first command, or choose another --out",
            )
        for path in (self.attempts, self.predictions):
            if path.exists():
                drop_partial_line(path)
        self._check_code(recorded, reuse=reuse)
        if self.done.read(failed=not self._again) and self._again:
            self._set_aside(lambda line: line.delivery in TRANSIENT)

    def _check_code(self, recorded: Mapping[str, Any], *, reuse: bool) -> None:
        """Refuse answers of other model code; versions that recorded no code pass."""
        versions = recorded.get("versions", {})
        before = versions.get(CODE, "")
        self._code = self._code or before
        if before == self._code:
            return
        self.done.read()
        has_answers = bool(self.done) or any((self.path / "parts").glob("*.jsonl"))
        if before and has_answers and not reuse:
            raise RunError(
                "the code of the adapter has changed since the existing answers were made: "
                f"{before} then, {self._code} now",
                where=str(self._info),
                expected="the same code, to reuse its answers",
                remedy="choose another --out to ask again, or add --reuse-answers to keep the "
                "answers of the old code",
            )
        write_info(self.path, {**recorded, **self._versions(versions)})

    def _versions(self, versions: Mapping[str, str]) -> dict[str, Any]:
        known = {**versions, CODE: self._code} if self._code else dict(versions)
        return {"versions": known} if known else {}

    def _set_aside(self, is_again: Callable[[Prediction], bool]) -> None:
        """Move final lines to the attempts."""
        for line in self.lines():
            if is_again(line):
                self._failed.append(line)
        self._failed.sync()
        self._final.close()
        kept = (encode(line) + b"\n" for line in self.lines() if not is_again(line))
        with wrap_os_error(self.path), atomic_write(self.predictions) as new:
            new.writelines(kept)
        self.done.read(failed=not self._again)

    def reopen(self, sample_ids: frozenset[str]) -> None:
        """Move final lines of steps to be asked again to the attempts."""
        again = {name for name in sample_ids if name in self.done}
        if again:
            self._set_aside(lambda line: line.sample_id in again)

    def lines(self) -> Iterator[Prediction]:
        """Yield the final lines in the order of their arrival, or raise PredictionError."""
        if self.predictions.exists():
            yield from predictions.read(self.predictions, of_run=True)

    def failed_lines(self) -> Iterator[Prediction]:
        """Yield the failed attempts, or raise PredictionError."""
        if self.attempts.exists():
            yield from predictions.read(self.attempts, of_run=True)

    def _note(self, sample_id: str, start: int, completion: Completion) -> None:
        self.done.note(sample_id, start, completion.delivery)

    def finish(self, **info: Any) -> None:
        """Add versions, timings and the like to `run.json`; timings add up over resumed runs."""
        before = read_info(self.path).get("timings", {})
        timings = info.pop("timings", {})
        info["timings"] = {
            name: round(before.get(name, 0.0) + seconds, 3) for name, seconds in timings.items()
        }
        with wrap_os_error(self.path):
            versions = self._versions(info.pop("versions", {}))
            write_info(self.path, {**self.settings, **info, **versions})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as last:
            last.callback(self._lock.release)
            last.callback(self.close)
            last.callback(self.done.close)


class Answers(Mapping[str, Completion]):
    """The final lines of a run by sample id; each is read on access.

    An answer with its receipt takes 2 to 3 KB. Memory holds the offset of its line and its
    delivery: 9 bytes for each of the steps, and 150 for other sample ids.

    Args:
        path: the file of the lines.
        steps: those with expected answers.

    Attributes:
        others: the sample ids of lines that belong to none of the steps.
    """

    def __init__(self, path: Path, steps: Sequence[Step] = ()) -> None:
        self._path = path
        self._file: IO[bytes] | None = None
        self._position = Positions(steps).get
        self._expected = len(steps)
        self._forget()

    def _forget(self) -> None:
        self.close()
        self.others: dict[str, int] = {}
        self._starts = array("q", bytes(8 * self._expected))
        self._deliveries = bytearray([_NONE]) * self._expected
        self._length = 0

    def _place(self, sample_id: str) -> int | None:
        place = self._position(sample_id)
        return self.others.get(sample_id) if place is None else place

    def read(self, *, failed: bool = False) -> bool:
        """Read the file, if there is one, from its beginning.

        Args:
            failed: keep the lines of transient failures too.

        Returns:
            Whether there are transient failures.

        Raises:
            PredictionError: a line is not a prediction, or a step has two lines.
        """
        self._forget()
        found, passed = False, set[str]()
        if not self._path.exists():
            return False
        for start, line in predictions.read_with_offsets(self._path, of_run=True):
            if line.sample_id in self or line.sample_id in passed:
                raise predictions.repeated_line(line, self._path)
            transient = line.delivery in TRANSIENT
            found = found or transient
            if failed or not transient:
                self.note(line.sample_id, start, line.delivery)
            else:
                passed.add(line.sample_id)
        return found

    def note(self, sample_id: str, start: int, delivery: Delivery) -> None:
        """Record the line of a step by its offset; it replaces an earlier one."""
        place = self._place(sample_id)
        if place is None:
            place = self.others[sample_id] = len(self._starts)
            self._starts.append(0)
            self._deliveries.append(_NONE)
        self._length += self._deliveries[place] == _NONE
        self._starts[place], self._deliveries[place] = start, _DELIVERIES.index(delivery)

    @property
    def answered(self) -> int:
        """Return the number of lines that are not transient failures."""
        failed = (_DELIVERIES.index(delivery) for delivery in TRANSIENT)
        return len(self) - sum(map(self._deliveries.count, failed))

    def __getitem__(self, sample_id: str) -> Completion:
        return self.line(sample_id).completion()

    def line(self, sample_id: str) -> Prediction:
        """Return the line of a step, or raise KeyError."""
        place = self._place(sample_id)
        if place is None or self._deliveries[place] == _NONE:
            raise KeyError(sample_id)
        return self._read(self._starts[place])

    def _read(self, start: int) -> Prediction:
        if self._file is None:
            self._file = open_own(self._path, "rb")
        self._file.seek(start)
        return predictions.decode(self._file.readline(), self._path)

    def __contains__(self, sample_id: object) -> bool:
        place = self._place(sample_id) if isinstance(sample_id, str) else None
        return place is not None and self._deliveries[place] != _NONE

    def __iter__(self) -> Iterator[str]:
        is_known = np.frombuffer(self._deliveries, np.uint8) != _NONE
        starts = np.sort(np.array(self._starts)[is_known])
        return (self._read(start).sample_id for start in starts.tolist())

    def __len__(self) -> int:
        return self._length

    def close(self) -> None:
        """Close the file; the next access opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None


class PartFile(Journal):
    """The lines of one worker, which the driver joins.

    Args:
        path: where final lines go; failed attempts go beside, into `<name>.attempts`.
        done: the answers to earlier steps of the part's episodes.
    """

    def __init__(self, path: Path, done: Mapping[str, Completion]) -> None:
        super().__init__(path, attempts_of(path))
        self.done: dict[str, Completion] = dict(done)

    def _note(self, sample_id: str, start: int, completion: Completion) -> None:
        self.done[sample_id] = completion


def attempts_of(path: Path) -> Path:
    """Return the file of failed attempts beside a part's lines."""
    return path.with_suffix(".attempts")


def join_left(run: RunFolder, *, again: bool) -> None:
    """Join the lines that workers wrote for a driver that was killed.

    With `again` transient failures become attempts: their steps are to be asked again.

    Raises:
        RunError, PredictionError: the disk is full, or a file was not written by a worker.
    """
    folder = run.path / "parts"
    if not folder.is_dir():
        return
    for path in sorted(folder.glob("*.jsonl")):
        for _, line in whole_lines(path):
            if again and line.delivery in TRANSIENT:
                run.append_attempt(line.sample_id, line.completion())
            elif line.sample_id not in run.done:
                run.append(line.sample_id, line.completion())
    for path in sorted(folder.glob("*.attempts")):
        for _, line in whole_lines(path):
            run.append_attempt(line.sample_id, line.completion())
    run.sync()
    for path in [*folder.glob("*.jsonl"), *folder.glob("*.attempts")]:
        path.unlink()
    with suppress(OSError):
        folder.rmdir()


def whole_lines(
    path: Path, start: int = 0, content: bytes | None = None
) -> Iterator[tuple[int, Prediction]]:
    """Yield the lines from `start` on with the byte behind each, but for a last one that is torn.

    `content` is that of the file, if this machine may not see all of it yet.
    """
    with (
        suppress(FileNotFoundError),
        open_own(path, "rb") if content is None else BytesIO(content) as file,
    ):
        file.seek(start)
        for line in file:
            if not line.endswith(b"\n"):
                break
            start += len(line)
            yield start, predictions.decode(line, path)
