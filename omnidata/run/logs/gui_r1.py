"""Rows of the data with their answers, as GUI-R1's inference writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from omnidata.errors import PredictionError
from omnidata.loaders.row_files import Line
from omnidata.predictions import Prediction
from omnidata.run.bad_lines import BadLines
from omnidata.run.logs.log import LineLog, Sample, as_text
from omnidata.run.picture_sizes import size_receipt
from omnidata.tasks.log_rows import leaves
from omnidata.types import Step

_ANSWERS: Final = ("pred", "prediction", "predict", "model_output", "model_response")
"""Columns of an answer; no dataset calls its right answers so."""
_READ: Final = ("coord", "action", "input_text")
"""Endings of columns that a harness adds for the parts of an answer."""
_FED: Final = ("image_size", "scale", "orig_w", "orig_h", "original_size")
"""Columns that say how large the picture was that the model got."""
_DEEPEST: Final = 8  # level of a row in which an answer is looked for


class RowLog(LineLog):
    """A file of rows of the data, each with its answer."""

    harness = "gui-r1"
    marks = (frozenset({"pred", "gt_action"}), frozenset({"pred", "gt_bbox"}))
    looks = "GUI-R1's, with the answer in `pred`"

    def settings(self, task: str, options: Mapping[str, str]) -> dict[str, Any]:
        if {"coordinates", "dialect"} & options.keys():
            return {}
        return {"task": task, "options": {"dialect": "gui-r1"}}

    def sample(self, row: Mapping[str, Any], line: Line) -> Sample:
        column = _answer_column(row, line.where)
        added = {column, *(f"{column}_{part}" for part in _READ), *_FED}
        return Sample(
            number=line.number,
            row={key: value for key, value in row.items() if key not in added},
            answer=as_text(row[column]),
            receipt=_picture_receipt(row, line.where),
            where=line.where,
        )


def own_answers(steps: Sequence[Step], bad: BadLines, *, fed: bool) -> Iterator[Prediction]:
    """Yield the answers recorded in the rows of the data.

    Args:
        steps: of the data.
        fed: whether the `image_size` of a row is that of the picture that the model got; else it
            has the benchmark's own meaning.
        bad: takes note of rows with several answers, or sizes that cannot be read.

    Raises:
        PredictionError: no row has an answer.
    """
    found = False
    for step in steps:
        row: dict[str, Any] = {name: values[0] for name, values in leaves(step.source).items()}
        row |= _answers_in(step.source)
        try:
            column = _answer_column(row, step.sample_id)
            receipt = _picture_receipt(row, step.sample_id) if fed else {}
        except PredictionError as error:
            if any(row.get(name) is not None for name in _ANSWERS):
                bad.add(error)
            continue
        found = True
        yield Prediction(sample_id=step.sample_id, output=as_text(row[column]), receipt=receipt)
    if not found and not bad.count:
        raise PredictionError(
            "no row of the data has an answer",
            expected=f"one of the columns {', '.join(_ANSWERS)}",
            remedy="rename the column with the model's text, or write lines of sample_id and "
            "output",
        )


def _answers_in(row: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in row.items():
        if name in _ANSWERS:
            found |= {} if value is None else {name: value}
        elif isinstance(value, Mapping) and depth < _DEEPEST:
            found = _answers_in(value, depth + 1) | found
    return found


def _answer_column(row: Mapping[str, Any], where: str) -> str:
    names = [name for name in _ANSWERS if row.get(name) is not None]
    names = [name for name in names if row[name] != ""] or names[:1]
    if len(names) == 1:
        return names[0]
    several = f"the row has several columns of answers: {', '.join(names)}"
    raise PredictionError(
        several if names else "the row has no answer",
        where=where,
        expected=f"one of the columns {', '.join(_ANSWERS)}",
        remedy="leave one column, or write lines of sample_id and output",
    )


def _picture_receipt(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the receipt of the size; empty for a scale alone, which the data explain."""
    return size_receipt(row, where) if row.get("image_size") is not None else {}
