"""What logs of other harnesses say of a sample, each in its own form.

lmms-eval, and the OmniGUI release, which is a fork of it, write one JSON line per sample. Versions
differ in what they keep: the row (`doc`) or only its number (`doc_id`); the metric values, which
may be objects that name the step; the answer in `filtered_resps`, in `resps`, or both.

clawgui-eval writes the sample with the answer under `<model>_infer` (its `predictions.jsonl`, whose
published files are raw answers of agents: `--dialect` reads them).

VLMEvalKit writes a table: the columns of its copy of the data, without the pictures, and
`prediction`, in which a failure stands as a text. It falls back to pickle where it cannot write the
form that was asked for; a pickle is never opened.
"""

from __future__ import annotations

import csv
import io
import json
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from omnidata.errors import PlatformError, PredictionError
from omnidata.files import LINE, STREAMED, WHOLE, open_file, open_text, read_text
from omnidata.jsontext import as_name
from omnidata.loaders.row_files import Line
from omnidata.predictions import Prediction
from omnidata.run.answer_files import BadLines, answer_rows, row_of, sift, size_receipt
from omnidata.tasks.log_rows import Leaves, leaves, plain
from omnidata.types import Delivery

INDEX: Final = ("step_index", "step_id")
LMMS_FAILED: Final = "[LMMS_EVAL_REQUEST_FAILED"  # where an answer would stand, after all retries
_OWN: Final = ("doc", "input", "arguments", "target", "token_counts")
"""Keys of a sample of lmms-eval that are no metrics."""
_LINES: Final = "a log of samples, one JSON object per line"


@dataclass(frozen=True, slots=True)
class Sample:
    """A line of a log: an answer, and what is said of the row that was asked about.

    Attributes:
        number: of the row in the harness's data, as the log has it.
        row: the row, or what the log keeps of it; empty where it keeps nothing.
        records: what metrics keep of it, beside their own values.
        prompts: what was asked.
        target: the right answer as the harness has it, as a text.
        answer: the model's text.
        where: file and line.
        error: why no answer came; empty where one did.
        delivery: how it came, or in which way none did; by default "api_error" where there is an
            error.
        receipt: what the model got, where the log says it.
        picture: the file that was shown, in whatever column the log has it; empty where it does not
            say.
    """

    number: Any
    row: Mapping[str, Any]
    records: Sequence[Mapping[str, Any]]
    prompts: Sequence[str]
    target: str
    answer: str
    where: str
    error: str = ""
    delivery: Delivery = "ok"
    receipt: Mapping[str, Any] = field(default_factory=dict)
    picture: str = ""

    @property
    def said(self) -> list[Leaves]:
        """The columns of the row and of each record."""
        return [leaves(self.row), *map(leaves, self.records)]

    @property
    def named(self) -> tuple[str | None, Any] | None:
        """The episode and the step that the row or else a record names; None where none does."""
        for columns in self.said:
            for episode in columns.get("episode_id", ()):
                steps = [plain(step) for key in INDEX for step in columns.get(key, ())]
                return as_name(episode), steps[0] if steps else None
        return None

    def prediction(self, sample_id: str) -> Prediction:
        """The answer as that to a step."""
        failed = self.error or self.delivery != "ok"
        return Prediction(
            sample_id=sample_id,
            output="" if failed else self.answer,
            delivery="api_error" if failed and self.delivery == "ok" else self.delivery,
            error=self.error,
            receipt=dict(self.receipt),
        )


# lmms-eval.


def lmms_samples(path: Path, bad: BadLines) -> Iterator[Sample]:
    """The samples of a log of lmms-eval.

    Args:
        path: of the log.
        bad: takes note of lines that cannot be read.

    Raises:
        PredictionError: the file cannot be opened.
    """
    return sift(answer_rows(path, _LINES), _sample, bad)


def claw_samples(path: Path, bad: BadLines) -> Iterator[Sample]:
    """The samples of a log of clawgui-eval; see `lmms_samples`."""
    return sift(answer_rows(path, _LINES), _claw_sample, bad)


_INFERRED: Final = "_infer"


def _claw_sample(line: Line) -> Sample:
    expected, where = "an object with question, image and <model>_infer", line.where
    found = row_of(line, expected)
    answers = [value for key, value in found.items() if key.endswith(_INFERRED)]
    if len(answers) != 1:
        raise PredictionError(
            f"the line has {len(answers)} keys that end in {_INFERRED}",
            where=where,
            expected=expected,
            remedy="score the predictions of one model, as clawgui-eval writes them",
        )
    text = answers[0] if isinstance(answers[0], str) else json.dumps(answers[0])
    row = {"instruction": found.get("question"), "image": found.get("image")}
    error = found.get("error")
    return Sample(
        None, row, [], [], json.dumps(found.get("answer")), text, where, str(error) if error else ""
    )


def _sample(line: Line) -> Sample:
    found, where = row_of(line, "an object with doc_id and filtered_resps"), line.where
    row, target, given = found.get("doc"), found.get("target"), _answer(found, where)
    text = given or ""
    error = text if text.startswith(LMMS_FAILED) else ""
    return Sample(
        found.get("doc_id"),
        row if isinstance(row, dict) else {},
        [value for key, value in found.items() if key not in _OWN and isinstance(value, dict)],
        list(_strings([found.get("input"), found.get("arguments")])),
        target if isinstance(target, str) else json.dumps(target) if target else "",
        text,
        where,
        error if given is not None else "the log has no answer to the sample",
    )


def _answer(sample: Mapping[str, Any], where: str) -> str | None:
    keys = ("filtered_resps", "resps")
    if not any(key in sample for key in keys):
        raise PredictionError(
            "the line has no answer",
            where=where,
            expected="filtered_resps or resps with a text",
            remedy="score the samples that lmms-eval writes with --log_samples",
        )
    for key in keys:
        value = sample.get(key)
        while isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, str):
            return value
        if value not in (None, []):
            raise PredictionError(
                f"the answer is a {type(value).__name__}",
                where=where,
                expected="filtered_resps or resps with a text",
            )
    return None


def _strings(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str):
            yield found
        elif isinstance(found, dict):
            waiting += found.values()
        elif isinstance(found, list):
            waiting += found


# Rows of the data themselves, each with its answer beside what is right.

ANSWERS: Final = ("pred", "prediction", "predict", "model_output", "model_response")
"""Columns of an answer; no dataset calls its right answers so."""
_FED: Final = ("image_size", "scale", "orig_w", "orig_h", "original_size")
"""Columns that say how large the picture was that the model got."""


def row_samples(path: Path, bad: BadLines) -> Iterator[Sample]:
    """The samples of a file of rows with their answers, as GUI-R1's inference writes one."""
    return sift(answer_rows(path, _LINES), _row_sample, bad)


def _row_sample(line: Line) -> Sample:
    found = row_of(line, _LINES)
    named = answer_column(found, line.where)
    beside = (named, *(f"{named}_{part}" for part in ("coord", "action", "input_text")), *_FED)
    row = {key: value for key, value in found.items() if key not in beside}
    text, receipt = text_of(found[named]), row_receipt(found, line.where)
    return Sample(line.number, row, [], [], "", text, line.where, receipt=receipt)


def answer_column(row: Mapping[str, Any], where: str) -> str:
    """The column that holds the answer of a row.

    Raises:
        PredictionError: there is none, or there are several.
    """
    named = [name for name in ANSWERS if row.get(name) is not None]
    named = [name for name in named if row[name] != ""] or named[:1]
    if len(named) == 1:
        return named[0]
    several = f"the row has several columns of answers: {', '.join(named)}"
    raise PredictionError(
        several if named else "the row has no answer",
        where=where,
        expected=f"one of the columns {', '.join(ANSWERS)}",
        remedy="leave one column, or write lines of sample_id and output",
    )


def row_receipt(row: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """The size of the picture that the model got; where only a scale is known, the data say it.

    Raises:
        PredictionError: as `size_receipt`.
    """
    return size_receipt(row, where) if row.get("image_size") is not None else {}


def text_of(answer: Any) -> str:
    """A model's text as a column has it; of one that its program has parsed, the JSON."""
    return answer if isinstance(answer, str) else json.dumps(answer)


# VLMEvalKit.

_KIT_FAILED: Final = ("Failed to obtain answer", "Error: Failed to parse the response")
"""How answers begin that are none (VLMEvalKit, vlmeval/smp/file.py and vlmeval/api)."""
_CELL: Final = 32_767
"""Characters that a cell of a spreadsheet holds; the rest is lost."""
_OK: Final[Delivery] = "ok"
_CUT: Final[Delivery] = "truncated"
_BESIDE: Final = frozenset(
    {"index", "prediction", "thinking", "extra_records", "image", "image_url", "hit", "log"}
)
"""Columns that are none of the row: the number in the harness's own copy, and what it adds."""
_PICTURE: Final = "image_path"
_TABLE: Final = "a table of predictions as VLMEvalKit writes it: .tsv, .json or .xlsx"


def kit_samples(path: Path, bad: BadLines) -> Iterator[Sample]:
    """The samples of a table of predictions of VLMEvalKit; `bad` takes note of other rows.

    Raises:
        PlatformError: a spreadsheet, and openpyxl is not installed.
        PredictionError: the table cannot be read, or has no predictions.
    """
    read = _TABLES.get(path.suffix.lower())
    if read is None:
        pickled = path.suffix.lower() == ".pkl"
        raise PredictionError(
            "pickle files are not opened, because they can run code"
            if pickled
            else "the table has no form",
            where=str(path),
            expected=_TABLE,
            remedy="write another format: PRED_FORMAT=tsv" if pickled else "",
        )
    for number, row in enumerate(read(path), 1):
        where = f"{path}:{number}"
        if "prediction" not in row:
            bad.add(PredictionError("the row has no prediction", where=where, expected=_TABLE))
            continue
        yield _kit_sample(row, where, cut=path.suffix.lower() == ".xlsx")


def _kit_sample(row: Mapping[str, Any], where: str, *, cut: bool) -> Sample:
    given = row["prediction"]
    text = given if isinstance(given, str) else "" if _is_empty(given) else json.dumps(given)
    own = {
        str(key): _parse_list(value)
        for key, value in row.items()
        if key not in _BESIDE and not _is_empty(value)
    }
    if "instruction" not in own and "question" in own:
        own["instruction"] = own["question"]
    error, delivery = "", _OK
    if text.lstrip().startswith(_KIT_FAILED):
        error = text
    elif cut and len(text) >= _CELL:
        error, delivery = f"the answer ends where a cell does, at {_CELL:,} characters", _CUT
    shown = own.get(_PICTURE, "")
    picture = shown if isinstance(shown, str) else ""
    return Sample(None, own, [], [], "", text, where, error, delivery, picture=picture)


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
            # An answer that begins with "=" is a formula in the file, which nobody has computed.
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
