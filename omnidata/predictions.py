"""Lines of predictions: what a run writes, what `score` and `replay:` read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from omnidata.errors import PredictionError
from omnidata.files import STREAMED, open_file
from omnidata.types import Completion, Delivery


class Prediction(msgspec.Struct, kw_only=True):
    """One final line per step.

    Attributes:
        sample_id: the step's id in the dataset.
        output: the model's text as it came; null and "" are answers that say nothing.
        delivery: "ok", or the way in which no full answer came.
        error: why not.
        usage: token counts as the API names them.
        latency_s: seconds.
        attempts: how often the request was sent.
        receipt: what the model really got.
    """

    sample_id: str
    output: str | None
    delivery: Delivery = "ok"
    error: str = ""
    usage: dict[str, Any] = msgspec.field(default_factory=dict)
    latency_s: float = 0.0
    attempts: int = 1
    receipt: dict[str, Any] = msgspec.field(default_factory=dict)

    @classmethod
    def of(cls, sample_id: str, completion: Completion) -> Prediction:
        """The line for a completion."""
        return cls(
            sample_id=sample_id,
            output=completion.text,
            delivery=completion.delivery,
            error=completion.error,
            usage=completion.usage,
            latency_s=completion.latency_s,
            attempts=completion.attempts,
            receipt=completion.receipt,
        )

    def completion(self) -> Completion:
        """The completion that the line records."""
        return Completion(
            delivery=self.delivery,
            text=self.output or "",
            error=self.error,
            usage=self.usage,
            latency_s=self.latency_s,
            attempts=self.attempts,
            receipt=self.receipt,
        )


_decoder = msgspec.json.Decoder(Prediction)


def read(path: Path) -> Iterator[Prediction]:
    """The predictions of a file, one by one; blank lines are skipped.

    Raises:
        PredictionError: the file is missing, or a line is not a prediction; names file and line.
    """
    try:
        file = open_file(path, STREAMED)
    except OSError as error:
        raise PredictionError(
            f"the file cannot be opened ({error.strerror})",
            where=str(path),
            expected='JSON lines of {"sample_id", "output"}',
        ) from None
    decode = _decoder.decode
    with file:
        for number, line in enumerate(file, 1):
            try:
                yield decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                if line.strip():
                    yield _decode_slowly(line, path, number)


def _decode_slowly(line: bytes, path: Path, number: int) -> Prediction:
    """In Python's dialect of JSON, which has the lone surrogates that msgspec refuses."""
    try:
        return msgspec.convert(json.loads(line), Prediction)
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        raise PredictionError(
            f"the line is not a prediction: {str(error).splitlines()[0]}",
            where=f"{path}:{number}",
            expected='{"sample_id": "...", "output": "..."}',
            remedy="mend or remove the line; for another harness's log use --from",
        ) from None
