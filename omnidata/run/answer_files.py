"""Files of answers that other programs wrote: read in any form, and their bad lines listed at once.

A line is `{"sample_id", "output"}`; how large the picture was that the model got may stand beside
it (`size_receipt`). Which containers and encodings are read says `omnidata.loaders.row_files`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from omnidata.errors import DataError, PredictionError, plural
from omnidata.files import STREAMED, lines, open_text
from omnidata.jsontext import (
    BROKEN,
    MAX_LINE,
    decode_utf8,
    encode,
    fault_of,
    is_number,
    is_shallow,
    text_lines,
    whole_number,
)
from omnidata.loaders.row_files import Line, read_rows
from omnidata.loaders.row_sizes import size_columns
from omnidata.predictions import Prediction

EXPECTED: Final = '{"sample_id": "...", "output": "..."}'
_CORRECT: Final = "correct or remove the line; for another program's file use --from"
_SHOWN: Final = 5
"""Places that are named for each reason."""
_REMEDIES: Final = 3
_REASONS: Final = 10
"""Reasons that are listed."""
_KEPT: Final = 100
_NUMBER: Final = re.compile(r"0x[0-9A-F]+|\d+")
_OTHER: Final = "another reason"
"""In place of a reason, where there are as many as lines."""


@dataclass(slots=True)
class _Reason:
    what: str
    error: PredictionError
    count: int = 0
    places: list[str] = field(default_factory=list)


class BadLines:
    """Lines of a file of answers that cannot be scored, grouped by what is wrong with them.

    Args:
        path: of the file.
        skip: leave them out, so that their steps have no answer; else `check` raises.
        flag: the command's flag for that; empty where it has none.
    """

    def __init__(self, path: Path, *, skip: bool = False, flag: str = "") -> None:
        self.skip = skip
        self._path, self._flag = path, flag
        self._reasons: dict[str, _Reason] = {}

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(reason.count for reason in self._reasons.values())

    def add(self, error: PredictionError, count: int = 1, places: Sequence[str] = ()) -> None:
        """Take note of `count` lines with the same fault; some of them are at `places`."""
        what, key = error.what, _NUMBER.sub("#", error.what)
        if key not in self._reasons and len(self._reasons) >= _KEPT:
            what = key = _OTHER
        reason = self._reasons.setdefault(key, _Reason(what, error))
        reason.count += count
        reason.places += [*(places or [error.where])][: _SHOWN - len(reason.places)]

    def check(self) -> None:
        """Raise one error about all of them, unless they are left out.

        Raises:
            PredictionError: there are any.
        """
        if self.skip or not self._reasons:
            return
        reasons = [*self._reasons.values()]
        remedies = dict.fromkeys(one.error.remedy for one in reasons if one.error.remedy)
        if len(remedies) > 1:  # what helps some lines follows what helps all
            remedies = dict.fromkeys([_CORRECT, *remedies])
        remedy = "; ".join([*remedies][:_REMEDIES])
        if self._flag:
            remedy += (
                f"; or add {self._flag}: it skips such lines and counts their steps as missing"
            )
        first = reasons[0]
        if len(reasons) == 1:
            head = "" if first.count == 1 else f"{plural(first.count, 'line')}: "
            what, where = head + first.what, self._places(first)
        else:
            what, where = "\n    ".join(self._list_reasons()), str(self._path)
        expected = first.error.expected
        raise PredictionError(what, where=where, expected=expected, remedy=remedy.lstrip("; "))

    def _list_reasons(self) -> list[str]:
        reasons = [*self._reasons.values()]
        lines = [f"{plural(self.count, 'line')} cannot be scored:"]
        lines += [f"{self._places(one, short=True)}: {one.what}" for one in reasons]
        if len(reasons) > _REASONS:
            lines[_REASONS + 1 :] = [f"and {len(reasons) - _REASONS} other reasons"]
        return lines

    def _places(self, reason: _Reason, *, short: bool = False) -> str:
        head = f"{self._path}:"
        inside = all(place.startswith(head) for place in reason.places)
        told = [place.removeprefix(head) if inside else place for place in reason.places]
        more = ", ..." if reason.count > len(told) else ""
        listed = (", " if short or not inside else ",").join(told) + more
        if short:
            return f"{plural(reason.count, 'line')} ({listed})"
        return f"{head}{listed}" if inside else listed

    def summary(self) -> list[str]:
        """What was left out and why, a line for each reason; empty where nothing was."""
        return self._list_reasons() if self._reasons else []


def answer_rows(path: Path, expected: str) -> Iterator[Line]:
    """The rows of a file that another program wrote.

    Args:
        path: of the file.
        expected: what it should be, for messages.

    Raises:
        PredictionError: the file cannot be opened.
    """
    try:
        for line in read_rows(path):
            if not (line.alone and line.row is BROKEN and _is_empty(path)):
                yield line
    except DataError as error:
        raise PredictionError(
            error.what, where=error.where, expected=expected, remedy=error.remedy
        ) from None
    except OSError as error:
        raise PredictionError(
            f"the file cannot be opened ({error.strerror})",
            where=str(path),
            expected=expected,
            remedy="check the path of the file",
        ) from None


def _is_empty(path: Path) -> bool:
    with open_text(path, STREAMED) as file:
        return not any(text.strip() for text in lines(file))


_FAULTS: Final = (
    ("Unterminated string", "it ends inside a text, as where a program was stopped"),
    ("in double quotes", "it looks like Python's own form: write it with json.dumps"),
    ("Extra data", "it holds more than one object"),
    ("column 1: Expecting value", "it is plain text"),
)
"""What a parser of JSON says of common faults, and what that means."""


def row_of(line: Line, expected: str) -> Mapping[str, Any]:
    """The object that a row is.

    Raises:
        PredictionError: it is none.
    """
    if line.row is BROKEN:
        what = line.fault or "it is no JSON"
        words = next((words for said, words in _FAULTS if said in what), "")
        what = f"{what}: {words}" if words else what
        raise PredictionError(what, where=line.where, expected=expected, remedy=_CORRECT)
    if not isinstance(line.row, dict):
        raise PredictionError(
            f"the line is {kind_of(line.row)}, not an object",
            where=line.where,
            expected=expected,
            remedy=_CORRECT,
        )
    return line.row


def sift(lines: Iterable[Line], read: Callable[[Line], Any], bad: BadLines) -> Iterator[Any]:
    """Read each line; note the unreadable ones.

    Args:
        lines: rows of a file.
        read: reads one, or raises PredictionError.
        bad: takes note.
    """
    for line in lines:
        try:
            found = read(line)
        except PredictionError as error:
            bad.add(error)
        else:
            yield found


def read_answers(path: Path, bad: BadLines) -> Iterator[Prediction]:
    """The predictions of a file that anybody may have written.

    Args:
        path: JSON lines, a JSON list or Parquet of rows with `sample_id` and `output`.
        bad: takes note of the other lines.

    Raises:
        PredictionError: the file cannot be opened.
    """
    expected = f"JSON lines of {EXPECTED}"
    try:
        with open_text(path, STREAMED) as file:
            first = next((text for _, text in text_lines(file)), b"")
    except OSError:
        first = b""  # what is wrong is said below
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
"""Levels of a line that nobody counts when it has fewer brackets."""


def _plain(text: bytes) -> Prediction | None:
    """Read a line that needs no checks, as almost all lines do: five times faster."""
    if b'"image_size"' in text or b'"scale"' in text or text.count(b"[") + text.count(b"{") > _LONG:
        return None
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def without_repeated(
    read: Callable[[BadLines], Iterator[Prediction]], bad: BadLines, path: Path
) -> Iterator[Prediction]:
    """Yield the answers, except those of steps that have several.

    Args:
        read: gives the answers, each time anew.
        bad: takes note of what is left out.
        path: of the file, for messages.
    """
    known, repeated = set[str](), set[str]()
    for answer in read(BadLines(path, skip=True)):
        (repeated if answer.sample_id in known else known).add(answer.sample_id)
    for answer in read(bad):
        if answer.sample_id in repeated:
            bad.add(repeated_answer(answer.sample_id))
        else:
            yield answer


def repeated_answer(where: str) -> PredictionError:
    """What is wrong with a second answer to a step."""
    return PredictionError(
        "the step is answered twice",
        where=where,
        expected="at most one prediction per step",
        remedy="remove one of the two lines",
    )


_FORMS: Final = (
    ({"predict", "label"}, "it looks like LLaMA-Factory's: --from llamafactory --rows EXPORT"),
    ({"response", "labels"}, "it looks like ms-swift's: --from swift --rows EXPORT"),
    ({"input", "output", "gts"}, "it looks like verl's: --from verl --rows EXPORT"),
    ({"completion", "advantage"}, "it looks like TRL's: --from trl --rows EXPORT"),
    ({"filtered_resps"}, "it looks like lmms-eval's: --from lmms-eval"),
    ({"resps"}, "it looks like lmms-eval's: --from lmms-eval"),
    ({"pred", "gt_action"}, "it looks like GUI-R1's, with the answer in `pred`: --from gui-r1"),
    ({"pred", "gt_bbox"}, "it looks like GUI-R1's, with the answer in `pred`: --from gui-r1"),
    ({"question", "prediction", "index"}, "it looks like VLMEvalKit's: --from vlmevalkit"),
)
"""Columns by which files of other programs are known, and what to do with them."""


def form_of(row: Mapping[str, Any]) -> str:
    """Which program a row looks to be of, with the option that reads it; empty if of none."""
    return next((told for keys, told in _FORMS if keys <= row.keys()), "")


def _prediction(line: Line) -> Prediction:
    row = row_of(line, EXPECTED)
    _check_columns(row, line.where)
    receipt = size_receipt(row, line.where)
    try:
        found = msgspec.convert(row, Prediction)
    except (msgspec.ValidationError, UnicodeEncodeError, RecursionError) as error:
        what = f"the line is not a prediction: {str(error).splitlines()[0]}"
        raise PredictionError(what, where=line.where, expected=EXPECTED, remedy=_CORRECT) from None
    held = [each for each in (found.usage, found.receipt) if each]
    if held and not is_shallow(encode(held), *held):
        what = "the line is not a prediction: usage or receipt are nested too deeply"
        raise PredictionError(what, where=line.where, expected=EXPECTED, remedy=_CORRECT)
    if receipt and "parts" not in found.receipt:
        found.receipt = {**found.receipt, **receipt}
    return found


def _check_columns(row: Mapping[str, Any], where: str) -> None:
    for name in ("sample_id", "output"):
        if name not in row:
            remedy = form_of(row) or _CORRECT
            what = f"there is no {name}"
        elif isinstance(row[name], str) or (name == "output" and row[name] is None):
            continue
        else:
            remedy = "write the model's text as it came" if name == "output" else _CORRECT
            what = f"{name} is {kind_of(row[name])}, not a text"
        raise PredictionError(what, where=where, expected=EXPECTED, remedy=remedy)


def kind_of(value: Any) -> str:
    """What a JSON value is, in words.

    Examples:
        >>> kind_of([1]), kind_of({}), kind_of(2.5), kind_of(True)
        ('a list', 'an object', 'a number', 'true or false')
    """
    if isinstance(value, bool):
        return "true or false"
    if value is None:
        return "null"
    if is_number(value):
        return "a number"
    names: Mapping[type, str] = {str: "a text", list: "a list", dict: "an object"}
    return names.get(type(value), f"a {type(value).__name__}")


# The size of the picture that the model got, where a line says it.

_SIZE, _SCALE, _ORIGINAL = "image_size", "scale", "original_size"
_LARGEST: Final = 10**6
"""Pixels of a side that nobody's picture has."""
_TOLERANCE: Final = 0.01
"""By how much of a size `scale` may be off, which programs write rounded to a few digits."""
_SIZES: Final = (
    '"image_size": [width, height] of the picture that the model got, in pixels; or "scale" of it '
    'beside "original_size": [width, height] of the screenshot'
)


def size_receipt(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A receipt of the size of the picture that the model got; empty where the row says nothing.

    Args:
        row: may have `image_size`, `scale` (of the picture to the screenshot, one number or one
            for each axis), and of the screenshot `original_size` or what rows of data have (see
            `omnidata.loaders.row_sizes`); all but the scale in pixels. An empty list says nothing.
        where: file and line, for messages.

    Raises:
        PredictionError: the sizes cannot be read, or contradict each other.

    Examples:
        >>> line = {"image_size": [450, 1000], "orig_w": 720, "orig_h": 1600}
        >>> [part] = size_receipt(line, "")["parts"]
        >>> part["width"], part["height"], part["original"]
        (450, 1000, [720, 1600])
    """
    row = {name: value for name, value in row.items() if value != []}
    if row.get(_SIZE) is None and row.get(_SCALE) in (None, 1):
        return {}
    original: Any = row.get(_ORIGINAL)
    if original is None and size_columns(row) != (None, None):
        original = [*size_columns(row)]
    screen = None if original is None else _size(original, _ORIGINAL, where)
    scale = None if row.get(_SCALE) is None else _factors(row[_SCALE], where)
    scaled = _scale_size(screen, scale) if screen and scale else None
    size = scaled if row.get(_SIZE) is None else _size(row[_SIZE], _SIZE, where)
    if size is None:
        raise _size_error("scale alone does not say how large the picture was", where)
    if (
        screen
        and scale
        and scaled
        and not (_are_near(size, scaled) or _are_near(_scale_size(size, scale), screen))
    ):
        raise _size_error(f"image_size is {size}, and scale of original_size makes {scaled}", where)
    part = {"role": "screenshot", "kind": "image", "width": size[0], "height": size[1]}
    return {"parts": [part | ({"original": screen} if screen else {})]}


def _size(value: Any, name: str, where: str) -> list[int]:
    sides = [whole_number(side) for side in value] if isinstance(value, list | tuple) else []
    found = [side for side in sides if side is not None and 0 < side < _LARGEST]
    if len(found) != 2 or len(sides) != 2:
        raise _size_error(f"{name} is {value!r:.60}, not a width and a height in pixels", where)
    return found


def _factors(value: Any, where: str) -> Sequence[float]:
    pair = value if isinstance(value, list | tuple) else [value, value]
    if len(pair) != 2 or not all(is_number(one) and 0 < one < 100 for one in pair):
        raise _size_error(f"scale is {value!r:.60}, not one number or two above 0", where)
    return pair


def _scale_size(size: Sequence[int], scale: Sequence[float]) -> list[int]:
    return [max(1, round(side * factor)) for side, factor in zip(size, scale, strict=True)]


def _are_near(size: Sequence[int], other: Sequence[int]) -> bool:
    """Whether two sizes agree up to the rounding of a scale factor; some write its inverse."""
    return all(abs(a - b) <= 1 + _TOLERANCE * a for a, b in zip(size, other, strict=True))


def _size_error(what: str, where: str) -> PredictionError:
    return PredictionError(
        what,
        where=where,
        expected=_SIZES,
        remedy="correct the sizes, or remove them where the model got the screenshot as it is",
    )
