"""Read files of answers in the project's own form: lines of `{"sample_id", "output"}`.

The size of the picture that the model got may stand beside them (`size_receipt`). Which containers
and encodings are read says `omnidata.loaders.row_files`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from omnidata.errors import PredictionError
from omnidata.files import STREAMED, open_text
from omnidata.jsontext import (
    BROKEN,
    MAX_LINE,
    decode_utf8,
    encode,
    fault_of,
    is_shallow,
    text_lines,
)
from omnidata.loaders.row_files import Line
from omnidata.predictions import Prediction
from omnidata.run.bad_lines import CORRECT, BadLines, answer_rows, kind_of, row_of, sift
from omnidata.run.logs import recognise
from omnidata.run.picture_sizes import size_receipt

_EXPECTED: Final = '{"sample_id": "...", "output": "..."}'


def read_answers(path: Path, bad: BadLines) -> Iterator[Prediction]:
    """Yield the predictions of a file that another program wrote.

    Args:
        path: JSON lines, a JSON list or Parquet of rows with `sample_id` and `output`.
        bad: takes note of the other lines.

    Raises:
        PredictionError: the file cannot be opened.
    """
    expected = f"JSON lines of {_EXPECTED}"
    try:
        with open_text(path, STREAMED) as file:
            first = next((text for _, text in text_lines(file)), b"")
    except OSError:
        first = b""  # `answer_rows` says why
    if _plain(first) is None:
        yield from sift(answer_rows(path, expected), _prediction, bad)
        return
    with open_text(path, STREAMED) as file:
        for number, (at, text) in enumerate(text_lines(file)):
            if (plain := _plain(text)) is not None:
                yield plain
                continue
            row = decode_utf8(text) if len(text) <= MAX_LINE else BROKEN
            fault = fault_of(text.strip()) if row is BROKEN else ""
            line = Line(f"{path}:{at}", path, number, row, fault=fault)
            yield from sift([line], _prediction, bad)


_decoder: Final = msgspec.json.Decoder(Prediction)
_LONG: Final = 64
"""Brackets of a line; one with fewer cannot be nested too deeply."""


def _plain(text: bytes) -> Prediction | None:
    """Read a line that needs no checks, as almost all lines do: five times faster."""
    if b'"image_size"' in text or b'"scale"' in text or text.count(b"[") + text.count(b"{") > _LONG:
        return None
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _prediction(line: Line) -> Prediction:
    def error(what: str, remedy: str = CORRECT) -> PredictionError:
        return PredictionError(what, where=line.where, expected=_EXPECTED, remedy=remedy)

    row = row_of(line, _EXPECTED)
    for name in ("sample_id", "output"):
        if name not in row:
            raise error(f"there is no {name}", recognise(row) or CORRECT)
        if not (isinstance(row[name], str) or (name == "output" and row[name] is None)):
            remedy = "write the model's text as it came" if name == "output" else CORRECT
            raise error(f"{name} is {kind_of(row[name])}, not a text", remedy)
    receipt = size_receipt(row, line.where)
    try:
        found = msgspec.convert(row, Prediction)
    except (msgspec.ValidationError, UnicodeEncodeError, RecursionError) as fault:
        raise error(f"the line is not a prediction: {str(fault).splitlines()[0]}") from None
    held = [each for each in (found.usage, found.receipt) if each]
    if held and not is_shallow(encode(held), *held):
        raise error("the line is not a prediction: usage or receipt are nested too deeply")
    if receipt and "parts" not in found.receipt:
        found.receipt = {**found.receipt, **receipt}
    return found
