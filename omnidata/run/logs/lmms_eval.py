"""Logs of lmms-eval, and of the OmniGUI release, which is a fork of it.

Versions differ in what they keep: the row (`doc`) or only its number (`doc_id`); the metric values,
which may be objects that name the step; the answer in `filtered_resps`, in `resps`, or both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from omnidata.errors import PredictionError
from omnidata.loaders.row_files import Line
from omnidata.run.logs.log import LineLog, Sample, as_text

FAILED: Final = "[LMMS_EVAL_REQUEST_FAILED"  # where an answer would stand, after all retries
_NO_METRICS: Final = ("doc", "input", "arguments", "target", "token_counts")
_ANSWERS: Final = ("filtered_resps", "resps")
_EXPECTED: Final = "filtered_resps or resps with a text"


class LmmsLog(LineLog):
    """A log of lmms-eval: one JSON object per sample."""

    harness = "lmms-eval"
    marks = (frozenset({"filtered_resps"}), frozenset({"resps"}))
    looks = "lmms-eval's"
    expected = "an object with doc_id and filtered_resps"

    def sample(self, row: Mapping[str, Any], line: Line) -> Sample:
        doc, answer = row.get("doc"), _answer(row, line.where)
        error = "the log has no answer to the sample" if answer is None else ""
        if answer and answer.startswith(FAILED):
            error = answer
        return Sample(
            number=row.get("doc_id"),
            row=doc if isinstance(doc, dict) else {},
            records=[
                value
                for key, value in row.items()
                if key not in _NO_METRICS and isinstance(value, dict)
            ],
            prompts=list(_texts([row.get("input"), row.get("arguments")])),
            target=as_text(row.get("target") or ""),
            answer=answer or "",
            error=error,
            where=line.where,
        )


def _answer(sample: Mapping[str, Any], where: str) -> str | None:
    if not any(key in sample for key in _ANSWERS):
        raise PredictionError(
            "the line has no answer",
            where=where,
            expected=_EXPECTED,
            remedy="score the samples that lmms-eval writes with --log_samples",
        )
    for key in _ANSWERS:
        value = sample.get(key)
        while isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, str):
            return value
        if value not in (None, []):
            what = f"the answer is a {type(value).__name__}"
            raise PredictionError(what, where=where, expected=_EXPECTED)
    return None


def _texts(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str):
            yield found
        elif isinstance(found, dict):
            waiting += found.values()
        elif isinstance(found, list):
            waiting += found
