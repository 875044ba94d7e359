"""Rows of an export as training data, whatever trainer they were written for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from omnidata.errors import DataError, MissingMediaError
from omnidata.files import STREAMED, open_file, read_file
from omnidata.run.selection import Split
from omnidata.training.formats import Example, FormatName, read
from omnidata.types import MediaRef

if TYPE_CHECKING:
    import datasets
    import numpy as np
    import numpy.typing as npt

_REPORT, _PLAN = "export.json", ".plan.json"
_LONGEST = 64 * 1024**2
"""Bytes of a row: a prompt has thousands."""


class _Options(msgspec.Struct):
    format: FormatName


class _Written(msgspec.Struct):
    steps: int


class _Report(msgspec.Struct):
    """What `export.json` says, as far as it is needed here."""

    options: _Options
    task_options: dict[str, str]
    splits: dict[Split, _Written]


def exported_table(out: Path, split: Split = "train") -> datasets.Dataset:
    """The rows of an export as a table whose row i is `{"example": Example}`.

    Every row is read once to see that it is one; no medium is opened before it is decoded, when it
    must still have the hash that it is named after. Nothing but the places of the rows is held in
    memory.

    Args:
        out: what `omnidata export` wrote, in any of its formats.
        split: which of its files.

    Raises:
        DataError: it is no export, an unfinished one, of an unknown format or without such rows; a
            row is none of the format, has more or fewer media than placeholders, names what is no
            medium of an export, or leaves places of its answer to ms-swift; or there are more or
            fewer rows than were written.
        MissingMediaError: a medium is not there.
    """
    import datasets

    report = _report(out)
    if split not in report.splits:
        raise DataError(
            f"the export has no {split} rows",
            where=str(out),
            expected=f"one of {', '.join(report.splits)}",
            remedy="name one of these, or export again with another --split",
        )
    pixels = report.task_options.get("coordinates") == "px"
    file = _File(out.absolute() / f"{split}.jsonl", report.options.format, pixels)
    starts = file.starts(report.splits[split].steps)
    rows = datasets.Dataset.from_dict({"number": range(len(starts))})
    return rows.with_transform(_Lookup(file, starts))


def _report(out: Path) -> _Report:
    path = out / _REPORT
    try:
        return msgspec.json.decode(read_file(path), type=_Report)
    except OSError as error:
        begun = (out / _PLAN, out.with_name(f".{out.name}.unfinished"))
        unfinished = any(place.exists() for place in begun)
        what = "the export is unfinished" if unfinished else "this is no export"
        reason = error.strerror
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        what, reason = "the export cannot be read", str(error)
    raise DataError(
        f"{what} ({reason})",
        where=str(path),
        expected="a folder that `omnidata export` of this version wrote to its end",
        remedy="export again; the same command goes on with what an interrupted one has left",
    )


@dataclass(frozen=True, slots=True)
class _File:
    """The rows of a split.

    Attributes:
        path: of the file, beside which the media lie.
        form: the trainer that it was written for.
        pixels: whether answers have coordinates in pixels.
    """

    path: Path
    form: FormatName
    pixels: bool

    def starts(self, count: int) -> npt.NDArray[np.int64]:
        """Look at all rows.

        Args:
            count: how many were written.

        Returns:
            (count,), the byte at which each begins.
        """
        import numpy as np

        begins: list[int] = []
        following = 0
        there: set[str] = set()
        with self.opened() as file:
            while line := file.readline(_LONGEST + 1):
                number = len(begins) + 1
                begins.append(following)
                following += len(line)
                for ref in _media(self.example(line, number)):
                    if ref.path not in there and not (ref.root / ref.path).is_file():
                        raise self._missing(ref, number)
                    there.add(ref.path)
        if len(begins) != count:
            raise DataError(
                f"there are {len(begins)} rows",
                where=str(self.path),
                expected=f"{count}, as {_REPORT} says",
                remedy="export again",
            )
        return np.array(begins, dtype=np.int64)

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """The file; a DataError where it cannot be read, or a link leads elsewhere."""
        try:
            if self.path.exists() and not _is_own(self.path):
                raise DataError(
                    "the rows lie elsewhere, or in what is no regular file",
                    where=str(self.path),
                    expected="the file that the export wrote",
                    remedy="copy the export with `cp -rL`, or export again",
                )
            with open_file(self.path, STREAMED) as file:
                yield file
        except OSError as error:
            raise DataError(
                f"the rows cannot be read ({error.strerror})",
                where=str(self.path),
                expected="the file that the export wrote",
                remedy="export again",
            ) from None

    def example(self, line: bytes, number: int) -> Example:
        """The row that stands in a line, counted from 1."""
        where = f"{self.path}:{number}"
        if len(line) > _LONGEST:
            raise DataError(
                "the row is too long", where=where, expected=f"{_LONGEST} bytes at most"
            )
        try:
            found = read(line, self.form, self.path.parent)
        except DataError as error:
            error.where = where
            raise
        return replace(found, size="own") if self.pixels else found

    def _missing(self, ref: MediaRef, number: int) -> MissingMediaError:
        return MissingMediaError(
            f"{ref.path} is missing",
            where=f"{self.path}:{number}",
            expected=f"a file below {ref.root}",
            remedy="copy the export with its media, or export again",
        )


@dataclass(frozen=True, slots=True)
class _Lookup:
    """Gives rows their examples."""

    file: _File
    starts: npt.NDArray[np.int64]

    def __call__(self, rows: Mapping[str, Sequence[int]]) -> dict[str, list[Example]]:
        with self.file.opened() as file:
            return {"example": [self._at(file, number) for number in rows["number"]]}

    def _at(self, file: BinaryIO, number: int) -> Example:
        file.seek(int(self.starts[number]))
        return self.file.example(file.readline(_LONGEST + 1), number + 1)


def _is_own(path: Path) -> bool:
    """Whether a regular file lies where its name says, and not behind a link."""
    return path.is_file() and path.resolve().parent == path.parent.resolve()


def _media(example: Example) -> Iterator[MediaRef]:
    return (part.media for turn in example.prompt for part in turn.parts if part.media)
