"""Features of the form of prompts.

No medium is opened and no target is read: prompts with equal parts and texts have equal features.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from omnidata.metrics.intervals import Floats, Ints
from omnidata.tasks.totals import number_keys
from omnidata.types import Conversation

Kind = Literal["text", "image", "video", "audio"]
_Columns = Mapping[str, npt.NDArray[Any]]
"""Columns that a tree may split, by name."""

MAX_BINS: Final = 8
MAX_TEXTS: Final = 100
_RARE: Final = 5
_LETTERS: Final[Mapping[Kind, str]] = {"text": "t", "image": "i", "video": "v", "audio": "a"}
_LABEL: Final = re.compile(r"^[^:,]{1,40}: ")


@dataclass(frozen=True, slots=True)
class Features:
    """The features of N prompts, each in up to `MAX_BINS` bins.

    Attributes:
        names: of the F features.
        bins: float64 (N, B), a column for each bin of each feature, 1 where a prompt is in it.
        codes: int64 (N, F), the column of `bins` in which a feature of a prompt is 1.
        numbers: float32 (N, P), the columns that a tree may split: numbers, and 0 or 1 for words.
        columns: names of the P columns.
    """

    names: list[str]
    bins: Floats
    codes: Ints
    numbers: npt.NDArray[np.float32]
    columns: list[str]


def features(prompts: Sequence[Conversation]) -> Features:
    """Return the features in which the prompts differ.

    * numbers: messages, parts, parts of each kind, characters and lines of all texts, of the last
      and of the one before it;
    * words: the kind of each of the last three parts and the first two, the order of all;
    * shared texts: whether a line, or an item of a list within a line, occurs, for those that at
      least 5 prompts and 2 % of them have and as many lack; the `MAX_TEXTS` most even ones.

    The order of parts has a letter for each (t, i, v, a); an order of fewer than 5 prompts counts
    as "other". Of features that split the prompts in the same way, the first is kept.

    Examples:
        >>> from omnidata.types import Message, Part
        >>> def prompt(*texts):
        ...     return (Message("user", tuple(Part("text", text) for text in texts)),)
        >>> found = features([prompt("a")] * 5 + [prompt("a", "b")] * 5)
        >>> found.names, found.codes.ravel().tolist()
        (['number of parts'], [0, 0, 0, 0, 0, 1, 1, 1, 1, 1])
        >>> features([prompt(f"{number:03}") for number in range(50)]).names
        []
        >>> found = features([prompt("x" * number) for number in range(1, 200)])
        >>> found.names, found.bins.sum(axis=0).tolist()
        (['characters'], [24.0, 25.0, 25.0, 25.0, 25.0, 25.0, 25.0, 25.0])
    """
    described = [_describe(conversation) for conversation in prompts]
    values = {name: np.array([row[name] for row in described]) for name in described[0]}
    bin_of: dict[str, Ints] = {}
    columns: dict[str, npt.NDArray[Any]] = {}
    partitions: set[bytes] = set()
    for name, value in (values | _shared_texts(prompts)).items():
        is_word = value.dtype.kind == "U"
        code, own = _split_words(name, value) if is_word else _split_numbers(name, value)
        partition = number_keys(code.tolist()).tobytes()  # equal for equal splits
        if code.max() > 0 and partition not in partitions:
            partitions.add(partition)
            bin_of[name] = code
            columns |= own
    count = len(prompts)
    starts = np.cumsum([0, *(code.max() + 1 for code in bin_of.values())])
    codes = _stack(bin_of, count, np.int64) + starts[:-1]
    bins = np.zeros((count, starts[-1]))
    bins[np.arange(count)[:, None], codes] = 1
    return Features(list(bin_of), bins, codes, _stack(columns, count, np.float32), list(columns))


def _split_words(name: str, words: npt.NDArray[np.str_]) -> tuple[Ints, _Columns]:
    """Return the number of each prompt's word, and a column for each word; rare ones are one."""
    _, code, counts = np.unique(words, return_inverse=True, return_counts=True)
    known, code = np.unique(np.where(counts[code] < _RARE, "other", words), return_inverse=True)
    return code, {f"{name} = {word}": code == number for number, word in enumerate(known)}


def _split_numbers(name: str, numbers: Floats) -> tuple[Ints, _Columns]:
    """Return the bin of each prompt's number, and the numbers as a column."""
    # Cuts are values that occur, so that frequent values stay in one bin.
    cuts = np.unique(numbers)[1:]
    if len(cuts) >= MAX_BINS:
        inner = np.linspace(0, 1, MAX_BINS + 1)[1:-1]
        cuts = np.unique(np.quantile(numbers, inner, method="inverted_cdf"))
    _, code = np.unique(np.searchsorted(cuts, numbers, side="right"), return_inverse=True)
    return code, {name: numbers}


def _stack(columns: _Columns, count: int, dtype: type[np.generic]) -> npt.NDArray[Any]:
    """Return a matrix of the columns, of so many rows; there may be no column."""
    rows = np.array([*columns.values()], dtype=dtype).reshape(len(columns), count)
    return np.ascontiguousarray(rows.T)


def _describe(conversation: Conversation) -> dict[str, float | str]:
    """Return the numbers and words of one prompt; the same names for every prompt."""
    parts = [part for message in conversation for part in message.parts]
    texts = [part.text for part in parts if part.kind == "text"]
    kinds: list[Kind] = [part.media.kind if part.media else "text" for part in parts]
    before = texts[-2] if len(texts) > 1 else ""
    return {
        "number of parts": float(len(parts)),
        "number of messages": float(len(conversation)),
        **{f"number of {kind} parts": float(kinds.count(kind)) for kind in _LETTERS},
        "characters": float(sum(map(len, texts))),
        "characters of the last text": float(len(texts[-1]) if texts else 0),
        "characters of the text before": float(len(before)),
        "lines": float(sum(text.count("\n") + 1 for text in texts)),
        "lines of the last text": float(texts[-1].count("\n") + 1 if texts else 0),
        **{
            f"kind of part {n} from the end": kinds[-n] if len(kinds) >= n else "none"
            for n in (1, 2, 3)
        },
        **{f"kind of part {n + 1}": kinds[n] if len(kinds) > n else "none" for n in range(2)},
        "order of parts": "".join(_LETTERS[kind] for kind in kinds),
    }


def _shared_texts(prompts: Sequence[Conversation]) -> dict[str, Floats]:
    """Return whether each prompt has each shared text, the most even texts first."""
    held = [
        {
            text
            for message in conversation
            for part in message.parts
            for text in segments(part.text)
        }
        for conversation in prompts
    ]  # fmt: skip
    total = len(prompts)
    counts = Counter(text for texts in held for text in texts)
    even = {text: min(n, total - n) for text, n in counts.items()}
    least = max(_RARE, total // 50)
    chosen = sorted((text for text, n in even.items() if n >= least), key=lambda t: (-even[t], t))
    return {
        f'has "{text}"': np.array([text in texts for texts in held], dtype=np.float64)
        for text in chosen[:MAX_TEXTS]
    }


def segments(text: str) -> Iterator[str]:
    """Yield the lines of a text, and the items of lines that are lists."""
    for line in text.splitlines():
        line = line.strip()
        if line:
            yield line
            items = _LABEL.sub("", line).split(", ")
            if len(items) > 1:
                yield from (item.strip() for item in items)
