"""What a model that looks at nothing can see of a prompt: its form, and the texts it shares.

No medium is opened and no step is looked at: two prompts with the same parts and texts have the
same features, whatever their targets are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from omnidata.types import Conversation, Part

Kind = Literal["text", "image", "video", "audio"]
MAX_BINS = 8
MAX_TEXTS = 100
LETTERS: Mapping[Kind, str] = {"text": "t", "image": "i", "video": "v", "audio": "a"}
_LABEL = re.compile(r"^[^:,]{1,40}: ")
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Features:
    """The features of N prompts, each in up to `MAX_BINS` bins.

    Attributes:
        names: of the F features.
        codes: int64 (N, F), the bin that a prompt is in.
        matrix: float64 (N, B), a column for each bin, 1 where the prompt is in it.
        starts: int64 (F,), the first column of each feature.
        levels: what a bin stands for, B of them, e.g. "2..3".
        numbers: float64 (N, P), what a tree may cut: numbers as they are, else 0 or 1.
        cuts: names of the P columns of `numbers`.
    """

    names: list[str]
    codes: Ints
    matrix: Floats
    starts: Ints
    levels: list[str]
    numbers: Floats
    cuts: list[str]


def features(prompts: Sequence[Conversation]) -> Features:
    """The features in which the prompts differ.

    * numbers: messages, parts, parts of each kind, characters and lines of all texts, of the last
      and of the one before it;
    * words: the kind of each of the last three parts and the first two, the order of all;
    * shared texts: whether a line, or an item of a list within a line, occurs, for those that at
      least 5 prompts and 2 % of them have and as many have not; the `MAX_TEXTS` most even ones.

    The order of parts has a letter for each (`LETTERS`); an order of fewer than 5 prompts counts as
    "other". Of features that part the prompts in the same way, the first is kept.

    Examples:
        >>> from omnidata.types import Message, Part
        >>> def prompt(*texts):
        ...     return (Message("user", tuple(Part("text", text) for text in texts)),)
        >>> found = features([prompt("a")] * 5 + [prompt("a", "b")] * 5)
        >>> found.names[:1], found.codes[:, 0].tolist()
        (['number of parts'], [0, 0, 0, 0, 0, 1, 1, 1, 1, 1])
    """
    described = [_describe(conversation) for conversation in prompts]
    columns = [_Column(name, [row[name] for row in described]) for name in described[0]]
    columns += [_Column(f'has "{text}"', held) for text, held in _shared(prompts)]
    seen: set[bytes] = set()
    kept = []
    for column in columns:
        key = _first_met(column.codes).tobytes()
        if len(column.levels) > 1 and key not in seen:
            seen.add(key)
            kept.append(column)
    return _assemble(kept, len(prompts))


def _describe(conversation: Conversation) -> dict[str, float | str]:
    """The numbers and words of one prompt; the same names for every prompt."""
    parts = [part for message in conversation for part in message.parts]
    texts = [part.text for part in parts if part.kind == "text"]
    kinds = [part.kind for part in parts]
    before = texts[-2] if len(texts) > 1 else ""
    return {
        "number of parts": float(len(parts)),
        "number of messages": float(len(conversation)),
        **{f"number of {kind} parts": float(kinds.count(kind)) for kind in LETTERS},
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
        "order of parts": "".join(LETTERS[kind] for kind in kinds),
    }


class _Column:
    """One feature: numbers are cut at their quantiles, words are themselves."""

    def __init__(self, name: str, values: Sequence[float | str]) -> None:
        self.name = name
        self.number = None if isinstance(values[0], str) else np.array(values, dtype=np.float64)
        if self.number is None:
            frequent = {value for value, n in Counter(values).items() if n >= 5}
            words = [str(value) if value in frequent else "other" for value in values]
            self.levels = sorted(set(words))
            self.codes = np.array([self.levels.index(word) for word in words], dtype=np.int64)
            return
        found = np.unique(self.number)
        if len(found) > MAX_BINS:
            inner = np.linspace(0, 1, MAX_BINS + 1)[1:-1]
            # Cuts are values that occur, so that frequent values stay in one bin.
            edges = np.unique(np.quantile(self.number, inner, method="inverted_cdf"))
        else:
            edges = found[1:]
        codes = np.searchsorted(edges, self.number, side="right")
        _, self.codes = np.unique(codes, return_inverse=True)
        spans = [self.number[self.codes == code] for code in range(self.codes.max() + 1)]
        self.levels = [_span(span.min(), span.max()) for span in spans]


def _span(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"{low:g}..{high:g}"


def _shared(prompts: Sequence[Conversation]) -> Iterator[tuple[str, list[float]]]:
    """Texts that many prompts have and many have not, the most even ones first."""
    held = [
        {
            text
            for message in conversation
            for part in message.parts
            for text in _segments(part)
        }
        for conversation in prompts
    ]  # fmt: skip
    total = len(prompts)
    counts = Counter(text for texts in held for text in texts)
    least = max(5, total // 50)
    even = {text: min(n, total - n) for text, n in counts.items()}
    chosen = sorted((text for text, n in even.items() if n >= least), key=lambda t: (-even[t], t))
    for text in chosen[:MAX_TEXTS]:
        yield text, [float(text in texts) for texts in held]


def _segments(part: Part) -> Iterator[str]:
    """The lines of a text, and the items of lines that are lists."""
    for line in part.text.splitlines():
        line = line.strip()
        if line:
            yield line
            items = _LABEL.sub("", line).split(", ")
            if len(items) > 1:
                yield from (item.strip() for item in items)


def _first_met(codes: Ints) -> Ints:
    """The codes renumbered in the order in which they come: equal for equal partitions."""
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def _assemble(columns: Sequence[_Column], rows: int) -> Features:
    codes = np.zeros((rows, len(columns)), dtype=np.int64)
    numbers: list[Floats] = []
    cuts: list[str] = []
    blocks: list[Floats] = []
    for position, column in enumerate(columns):
        codes[:, position] = column.codes
        block = np.eye(len(column.levels))[column.codes]
        blocks.append(block)
        if column.number is not None:
            numbers.append(column.number)
            cuts.append(column.name)
        else:
            numbers += list(block.T)
            cuts += [f"{column.name} = {level}" for level in column.levels]
    sizes = [len(column.levels) for column in columns]
    return Features(
        names=[column.name for column in columns],
        codes=codes,
        matrix=np.hstack(blocks) if blocks else np.zeros((rows, 0)),
        starts=np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)[: len(columns)],
        levels=[level for column in columns for level in column.levels],
        numbers=np.column_stack(numbers) if numbers else np.zeros((rows, 0)),
        cuts=cuts,
    )
