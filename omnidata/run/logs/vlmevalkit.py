"""Tables of predictions of VLMEvalKit.

A table has the columns of VLMEvalKit's copy of the data, without the pictures, and `prediction`, in
which a failure stands as a text. VLMEvalKit writes a pickle where it cannot write the form that was
asked for; a pickle is never opened.
"""

from __future__ import annotations

import csv
import io
import json
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from omnidata.errors import PlatformError, PredictionError, UsageError
from omnidata.files import LINE, STREAMED, WHOLE, open_file, open_text, read_text
from omnidata.run.bad_lines import BadLines
from omnidata.run.logs.log import Log, Sample, as_text
from omnidata.tasks import get_task
from omnidata.types import Delivery

_FAILED: Final = ("Failed to obtain answer", "Error: Failed to parse the response")
"""How answers begin that are none (VLMEvalKit, vlmeval/smp/file.py and vlmeval/api)."""
_CELL: Final = 32_767
"""Characters that a cell of a spreadsheet holds; the rest is lost."""
_BESIDE: Final = frozenset(
    {"index", "prediction", "thinking", "extra_records", "image", "image_url", "hit", "log"}
)
"""Columns that are not of the row: its number in VLMEvalKit's copy, and additions."""
_TABLE: Final = "a table of predictions as VLMEvalKit writes it: .tsv, .json or .xlsx"


class KitLog(Log):
    """A table of predictions of VLMEvalKit."""

    harness = "vlmevalkit"
    marks = (frozenset({"question", "prediction", "index"}),)
    looks = "VLMEvalKit's"

    def settings(self, task: str, options: Mapping[str, str]) -> dict[str, Any]:
        units = get_task(task).allowed.get("coordinates", ())
        if units and not {"coordinates", "dialect"} & options.keys():
            raise UsageError(
                "a table of VLMEvalKit does not name the unit of its coordinates",
                where=f"--from {self.harness} {self.path}",
                expected=f"-T coordinates={'|'.join(units)}, or --dialect NAME",
                remedy="name the unit that the model was asked for; VLMEvalKit's own rules use "
                "fractions of the screen (rel)",
            )
        return {}

    def samples(self, bad: BadLines) -> Iterator[Sample]:
        suffix = self.path.suffix.lower()
        if suffix not in _TABLES:
            pickled = suffix == ".pkl"
            raise PredictionError(
                "pickle files are not opened, because they can run code"
                if pickled
                else "the table has no form",
                where=str(self.path),
                expected=_TABLE,
                remedy="write another format: PRED_FORMAT=tsv" if pickled else "",
            )
        longest = _CELL if suffix == ".xlsx" else sys.maxsize
        for number, row in enumerate(_TABLES[suffix](self.path), 1):
            where = f"{self.path}:{number}"
            if "prediction" in row:
                yield _sample(row, where, longest)
            else:
                bad.add(PredictionError("the row has no prediction", where=where, expected=_TABLE))


def _sample(row: Mapping[str, Any], where: str, longest: int) -> Sample:
    answer = row["prediction"]
    text = "" if _is_empty(answer) else as_text(answer)
    own = {
        str(key): _parse_list(value)
        for key, value in row.items()
        if key not in _BESIDE and not _is_empty(value)
    }
    if "instruction" not in own and "question" in own:
        own["instruction"] = own["question"]
    error = ""
    delivery: Delivery = "ok"
    if text.lstrip().startswith(_FAILED):
        error = text
    elif len(text) >= longest:
        error = f"the answer ends where a cell does, at {longest:,} characters"
        delivery = "truncated"
    picture = own.get("image_path")
    return Sample(
        row=own,
        answer=text,
        error=error,
        delivery=delivery,
        picture=picture if isinstance(picture, str) else "",
        where=where,
    )


def _is_empty(value: Any) -> bool:
    return value is None or value == "" or value != value


def _parse_list(value: Any) -> Any:
    if isinstance(value, str) and value.startswith("["):
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            return value
        return found if isinstance(found, list) else value
    return value


def _tsv_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    csv.field_size_limit(min(LINE, sys.maxsize))
    try:
        with (
            open_text(path, STREAMED) as file,
            io.TextIOWrapper(file, encoding="utf-8", newline="") as text,
        ):
            for row in csv.DictReader(text, delimiter="\t", strict=True):
                if None in row:
                    raise csv.Error("a row has more cells than the head")
                if None in row.values():
                    raise csv.Error("a row has fewer cells than the head; the file may be cut off")
                yield row
    except (csv.Error, UnicodeDecodeError, OSError) as error:
        raise _unreadable(path, error) from None


def _json_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        rows = json.loads(read_text(path, WHOLE))
    except (ValueError, RecursionError, OSError) as error:
        raise _unreadable(path, error) from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise PredictionError("the file is no list of rows", where=str(path), expected=_TABLE)
    yield from rows


def _xlsx_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        import openpyxl
    except ImportError as error:
        raise PlatformError(
            f"openpyxl cannot be imported ({error})",
            where=str(path),
            expected="the extra `vlmevalkit`, which reads spreadsheets",
            remedy='pip install "omnidata[vlmevalkit]", or let it write PRED_FORMAT=tsv',
        ) from None
    try:
        with open_file(path, WHOLE) as file:
            with zipfile.ZipFile(file) as archive:
                size = sum(member.file_size for member in archive.infolist())
            if size > 4 * WHOLE:
                raise zipfile.BadZipFile(f"it unpacks to {size:,} bytes")
            file.seek(0)
            # An answer that begins with "=" is a formula in the file, without a value.
            book = openpyxl.load_workbook(file, read_only=True, data_only=False)
            rows = book.worksheets[0].iter_rows(values_only=True)
            head = [str(name) for name in next(rows, ())]
            for cells in rows:
                row = dict(zip(head, cells, strict=False))
                if not isinstance(given := row.get("prediction"), str | int | float | None):
                    raise TypeError(f"a prediction is a {type(given).__name__}")
                yield row
    except (OSError, KeyError, ValueError, IndexError, TypeError, zipfile.BadZipFile) as error:
        raise _unreadable(path, error) from None


_TABLES: Final = {".tsv": _tsv_rows, ".json": _json_rows, ".xlsx": _xlsx_rows}


def _unreadable(path: Path, error: Exception) -> PredictionError:
    return PredictionError(
        f"the table cannot be read ({type(error).__name__}: {error})",
        where=str(path),
        expected=_TABLE,
    )
