"""Lines of predictions, as runs write them and `score` and `replay:` read them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import msgspec

from omnidata.errors import PredictionError
from omnidata.files import LINE, STREAMED, lines, open_text
from omnidata.jsontext import encode, is_shallow
from omnidata.storage import open_own
from omnidata.types import Completion, Delivery, Seconds

_MOST: Final = LINE - 2**20
"""Bytes of a completion's line without the ids and hashes that a run adds to it."""
_DEEPEST: Final = 60  # levels; a run puts what it adds four levels deep at most


class Prediction(msgspec.Struct, kw_only=True, gc=False):
    """One final line per step.

    Attributes:
        sample_id: the step's id in the dataset.
        output: the model's text, untouched; null and "" are empty answers.
        delivery: "ok", or the reason why no full answer came.
        error: a message if it is not "ok".
        usage: token counts as the API names them.
        latency_s: seconds.
        attempts: how often the request was sent.
        receipt: the media and sizes that the model received.
    """

    sample_id: str
    output: str | None
    delivery: Delivery = "ok"
    error: str = ""
    usage: dict[str, Any] = msgspec.field(default_factory=dict)
    latency_s: Seconds = 0.0
    attempts: int = 1
    receipt: dict[str, Any] = msgspec.field(default_factory=dict)

    @classmethod
    def of(cls, sample_id: str, completion: Completion) -> Prediction:
        """Return the line for a completion."""
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
        """Return the completion that the line records."""
        return Completion(
            delivery=self.delivery,
            text=self.output or "",
            error=self.error,
            usage=self.usage,
            latency_s=self.latency_s,
            attempts=self.attempts,
            receipt=self.receipt,
        )


def check_written(completion: Completion) -> None:
    """Refuse a completion whose line could not be read again.

    Raises:
        ValueError: it is too long, too deep, or has a value of another type.
        TypeError: it has a value that no JSON holds.
    """
    data = encode(completion)
    if len(data) >= _MOST:
        raise ValueError(f"its line has {len(data):,} bytes, where {_MOST:,} are too many")
    try:
        again = _completion_decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):  # lone surrogates, or another type
        again = msgspec.convert(json.loads(data), Completion)
    if not is_shallow(data, completion.usage, completion.receipt, deepest=_DEEPEST):
        raise ValueError("its usage or receipt are nested too deeply")
    if again != completion:  # NaN and tuples may differ; bytes, which msgspec writes, may not
        json.dumps(msgspec.structs.asdict(completion))


def parts(receipt: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the parts of a receipt, of any origin, that are about media."""
    listed = receipt.get("parts")
    found = listed if isinstance(listed, list | tuple) else ()
    return [part for part in found if isinstance(part, Mapping)]


def dropped_parts(receipt: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the parts of a receipt with `dropped`: the model did not get them."""
    return [part for part in parts(receipt) if "dropped" in part]


def missing_media(receipt: Mapping[str, Any]) -> list[str]:
    """Return descriptions of the step's media that the model did not get.

    Examples:
        >>> missing_media({"parts": [{"role": "audio", "kind": "audio", "dropped": "no ears"}]})
        ['audio: no ears']
        >>> missing_media({"parts": [{"role": "audio", "kind": "audio"}]})
        []
    """
    if "degraded" in receipt:
        said = receipt["degraded"]
        return [*map(str, said)] if said and isinstance(said, list | tuple) else [str(said)]
    return [f"{part.get('role', 'a medium')}: {part['dropped']}" for part in dropped_parts(receipt)]


_decoder = msgspec.json.Decoder(Prediction)
_completion_decoder = msgspec.json.Decoder(Completion)


def decode(line: bytes, path: Path) -> Prediction:
    """Decode one line of a run.

    Args:
        line: whole.
        path: of its file.

    Raises:
        PredictionError: it is none.
    """
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_slowly(line, path, 0)


def read(path: Path, *, of_run: bool = False) -> Iterator[Prediction]:
    """Return the predictions of a file, one by one; blank lines are skipped.

    Args:
        path: the file.
        of_run: whether it is a file of a run folder, which is no link.

    Raises:
        PredictionError: the file is missing, or a line is not a prediction; names file and line.
        RunError: a file of a run folder is a link.
    """
    return map(itemgetter(1), read_with_offsets(path, of_run=of_run))


def read_with_offsets(path: Path, *, of_run: bool) -> Iterator[tuple[int, Prediction]]:
    """Yield predictions like `read`, each with the byte offset of its line."""
    decode = _decoder.decode
    expected = 'JSON lines of {"sample_id", "output"}'
    for number, start, line in _lines_with_offsets(path, expected=expected, of_run=of_run):
        try:
            found = decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            found = _decode_slowly(line, path, number)
        if (found.usage or found.receipt) and not is_shallow(line, found.usage, found.receipt):
            raise _bad_line("usage or receipt are nested too deeply", path, number)
        yield start, found


def numbered_lines(
    path: Path, *, expected: str, of_run: bool = False
) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file that are not blank, each with its number.

    Args:
        path: the file.
        expected: what the file should be, for messages.
        of_run: whether it is a file of a run folder, which is no link.

    Raises:
        PredictionError: the file cannot be opened, or a line is too long.
        RunError: a file of a run folder is a link.
    """
    found = _lines_with_offsets(path, expected=expected, of_run=of_run)
    return ((number, line) for number, _, line in found)


def open_error(path: Path, error: OSError, expected: str) -> PredictionError:
    """Return the error of a file of answers that cannot be opened."""
    return PredictionError(
        f"the file cannot be opened ({error.strerror})",
        where=str(path),
        expected=expected,
        remedy="check the path of the file",
    )


def _lines_with_offsets(
    path: Path, *, expected: str, of_run: bool
) -> Iterator[tuple[int, int, bytes]]:
    start = 0
    try:
        file = open_own(path, "rb") if of_run else open_text(path, STREAMED)
    except OSError as error:
        raise open_error(path, error, expected) from None
    with file:
        for number, line in enumerate(lines(file), 1):
            if len(line) >= LINE:
                raise PredictionError(
                    f"the line has {LINE:,} bytes or more",
                    where=f"{path}:{number}",
                    expected=expected,
                    remedy="shorten or remove the line, or name another file",
                )
            if line.strip():
                yield number, start, line
            start += len(line) + 1


def read_final(path: Path) -> Iterator[Prediction]:
    """Yield the predictions of a run folder, one per step; none if it has no such file.

    Raises:
        PredictionError: see `read`; or a step has two lines.
    """
    known = set[str]()
    for line in read(path, of_run=True) if path.exists() else ():
        if line.sample_id in known:
            raise repeated_line(line, path)
        known.add(line.sample_id)
        yield line


def repeated_line(line: Prediction, path: Path) -> PredictionError:
    """Return the error for a second line of a step."""
    return PredictionError(
        f"step {line.sample_id} has two lines",
        where=str(path),
        expected="one final line per step",
        remedy="remove one of them, or start again in another folder",
    )


def _decode_slowly(line: bytes, path: Path, number: int) -> Prediction:
    """In Python's dialect of JSON, which has the lone surrogates that msgspec refuses."""
    try:
        return msgspec.convert(json.loads(line), Prediction)
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        raise _bad_line(str(error).splitlines()[0], path, number) from None


def _bad_line(why: str, path: Path, number: int) -> PredictionError:
    return PredictionError(
        f"the line is not a prediction: {why}",
        where=f"{path}:{number}",
        expected='{"sample_id": "...", "output": "..."}',
        remedy="correct or remove the line; for another harness's log use --from",
    )
