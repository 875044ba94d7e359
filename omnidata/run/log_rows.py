"""Which step a row of another harness's log is, by what the log says of the row.

A number says nothing: harnesses number the rows of their own copy, in its order. What counts is the
row itself, the record of it that metrics keep, and the prompt; the number decides between rows that
these do not tell apart, where all others were at the place that their numbers say.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final

from omnidata.errors import PredictionError
from omnidata.types import LoadedDataset, Step

_SEVERAL: Final = 500
"""From so many alike on, rows are not looked at one by one."""
_DEEPEST: Final = 8
_PARTS: Final = 2_000  # of a prompt that may be an instruction
_FARTHEST: Final = 1e9  # of a box's numbers
_INDEX: Final = ("step_index", "step_id")


@dataclass(frozen=True, slots=True)
class Said:
    """What a log says of a row.

    Attributes:
        number: the row's number in the harness's data; None where it is no number.
        row: the row, or what the log keeps of it; empty where it keeps nothing.
        records: what metrics keep of it, beside their own values.
        prompts: what was asked.
        target: the right answer as the harness has it, as a text.
        where: file and line.
    """

    number: int | None
    row: Mapping[str, Any]
    records: Sequence[Mapping[str, Any]]
    prompts: Sequence[str]
    target: str
    where: str


@dataclass(slots=True)
class Rows:
    """The rows of the data, found by what is said of them."""

    source: LoadedDataset
    _steps: list[Step] = field(init=False)
    _ids: dict[str, int] = field(init=False)
    _places: dict[tuple[str, int], set[int]] = field(default_factory=dict)
    _asked: dict[str, set[int]] = field(default_factory=dict)
    _shown: dict[str, set[int]] = field(default_factory=dict)
    _longest: int = 0

    def __post_init__(self) -> None:
        """Look at every step once."""
        self._steps = list(self.source.steps)
        self._ids = {step.sample_id: number for number, step in enumerate(self._steps)}
        for number, step in enumerate(self._steps):
            self._places.setdefault((step.episode_id, step.step_index), set()).add(number)
            if instruction := step.instruction.strip():
                self._asked.setdefault(instruction, set()).add(number)
                self._longest = max(self._longest, len(instruction))
            for ref in step.media.values():
                if ref is not None:
                    self._shown.setdefault(_base(ref.path), set()).add(number)

    def match(self, samples: Iterable[Said]) -> list[str | None]:
        """The sample id of each row; None for a row that the loader skipped, with a finding.

        Raises:
            PredictionError: a row is none of the data, or the log does not say which.
        """
        found: list[str | None] = []
        open_: list[tuple[int, Said, str | None]] = []
        moved, confirmed = "", 0
        for said in samples:
            fitting = self._fitting(said)
            own = self._numbered(said)
            if len(fitting) == 1:
                (number,) = fitting
                found.append(self._steps[number].sample_id)
                confirmed += own == number
                if own not in (None, number) or (own is None and self._skipped(said)):
                    moved = moved or said.where
                continue
            if not fitting and not self._skipped(said):
                raise self._unlike(said, own)
            if fitting:
                self._check_one_of(said, own, fitting)
            open_.append((len(found), said, None if own is None else self._steps[own].sample_id))
            found.append(None)
        for place, said, sample_id in open_:
            if moved or not confirmed:
                raise self._unsure(said, moved)
            found[place] = sample_id
        return found

    def _numbered(self, said: Said) -> int | None:
        """The step whose row has the number."""
        rows = self.source.row_ids
        if said.number is None or not 0 <= said.number < len(rows):
            return None
        sample_id = rows[said.number]
        return None if sample_id is None else self._ids.get(sample_id)

    def _skipped(self, said: Said) -> bool:
        """Whether the row with the number is one that became no step."""
        rows = self.source.row_ids
        return said.number is not None and said.number in range(len(rows)) and not rows[said.number]

    def _fitting(self, said: Said) -> set[int]:
        """The steps that nothing which is said speaks against, and something speaks for."""
        named = leaves(said.row)
        noted = [leaves(record) for record in said.records]
        every = [named, *noted]
        found = self._meant(every, said.prompts)
        if len(found) > _SEVERAL:
            return found
        fitting = {number for number in found if not self._against(number, named, noted)}
        if len(fitting) < 2:
            return fitting
        return self._nearest(fitting, every, said.target)

    def _meant(self, every: Sequence[Leaves], prompts: Sequence[str]) -> set[int]:
        """The steps that something which is said speaks for."""
        found = self._identified(every)
        return self._by_instruction(every, prompts) if found is None else found

    def _identified(self, every: Sequence[Leaves]) -> set[int] | None:
        """The steps whose ids are said; None where none is."""
        for said in every:
            for sample_id in said.get("sample_id", ()):
                if isinstance(sample_id, str) and sample_id in self._ids:
                    return {self._ids[sample_id]}
            for episode in said.get("episode_id", ()):
                for index in (index for key in _INDEX for index in said.get(key, ())):
                    place = str(episode), _plain(index)
                    if place in self._places:
                        return set(self._places[place])
        return None

    def _by_instruction(self, every: Sequence[Leaves], prompts: Sequence[str]) -> set[int]:
        """The steps with an instruction that is said, and with a picture where one is said."""
        texts = [text for said in every for text in _texts(said)]
        parts = (part for prompt in prompts for part in _parts(prompt, self._longest))
        asked = [self._asked[text] for text in (*texts, *parts) if text in self._asked]
        if not asked:
            return set()
        found = set().union(*asked)
        names = {_base(text) for text in texts}
        shown = [self._shown[name] for name in names if name in self._shown]
        both = found.intersection(set().union(*shown))
        return both or found

    def _against(self, number: int, named: Leaves, noted: Sequence[Leaves]) -> str:
        """The column in which the row is another than the step's; empty where there is none."""
        row = self._steps[number].source
        if key := differing(named, row):
            return key
        own = leaves(row)
        # Metrics have numbers of their own beside what they keep of a row.
        for record in noted:
            for key in record.keys() & own.keys():
                if not _agree(record[key], own[key], (str,)):
                    return key
        return ""

    def _nearest(self, fitting: set[int], every: Sequence[Leaves], target: str) -> set[int]:
        """Those of whose lists and target most are said; all, where others' may be converted."""
        agreeing: dict[int, int] = {}
        for number in fitting:
            own = leaves(self._steps[number].source)
            same = sum(
                any(not _forms(said.get(key, ())).isdisjoint(_forms(own[key])) for said in every)
                for key in own
            )
            values = [value for values in own.values() for value in values]
            texts = {str(value) for value in values}
            right = bool(target) and (target in texts or _read(target) in _forms(values))
            agreeing[number] = same + right
        most = max(agreeing.values())
        return {number for number in fitting if agreeing[number] == most}

    def _check_one_of(self, said: Said, own: int | None, fitting: set[int]) -> None:
        """Whether the number may decide: all that fit are of other episodes than its step's."""
        if own is None or own not in fitting:
            raise self._unsure(said, said.where)
        episode = self._steps[own].episode_id
        alike = sum(self._steps[number].episode_id == episode for number in fitting)
        if alike > 1:
            raise PredictionError(
                f"the log does not say which of {alike} steps of episode {episode!r:.60} "
                "the sample is",
                where=said.where,
                expected="a doc with episode_id and step_id, or with other columns of the row",
                remedy="log the rows themselves, or write {sample_id, output} lines",
            )

    def _unlike(self, said: Said, own: int | None) -> PredictionError:
        """Why a row is no step: the first column that differs from the row with its number."""
        what = f"the sample (doc_id {said.number!r}) is no step of the data"
        named, noted = leaves(said.row), [leaves(record) for record in said.records]
        meant = self._meant([named, *noted], said.prompts)
        if meant and own not in meant:
            own = min(meant)
        if own is not None:
            step = self._steps[own]
            key = self._against(own, named, noted)
            if key:
                told = next(row[key][0] for row in (named, *noted) if key in row)
                ours = leaves(step.source)[key][0]
                what += f": its {key} is {told!r:.80}, that of {step.sample_id} is {ours!r:.80}"
            else:
                what += f": nothing in it says {step.instruction!r:.80}, as {step.sample_id} does"
        return PredictionError(
            what,
            where=said.where,
            expected="the row (doc), or a record of it, or a prompt with its instruction; a number "
            "alone does not name a row",
            remedy="score against the data that the log was made on, or log the rows themselves",
        )

    def _unsure(self, said: Said, moved: str) -> PredictionError:
        why = (
            f"rows are at other places there ({moved})" if moved else "nothing confirms its number"
        )
        return PredictionError(
            f"several rows of the data are like the sample (doc_id {said.number!r}), and {why}",
            where=said.where,
            expected="a doc that tells them apart, or a log in the order of the data",
            remedy="log the rows themselves, or write {sample_id, output} lines",
        )


Leaves = Mapping[str, Sequence[Any]]
"""By the name of a column, its values; several where a row has parts that share names."""


def leaves(row: Mapping[str, Any]) -> Leaves:
    """The columns of a row, and of the objects in it."""
    found: dict[str, list[Any]] = {}
    for key, value in _flat(row, 0):
        found.setdefault(key, []).append(value)
    return found


def differing(said: Leaves, row: Mapping[str, Any]) -> str:
    """The column in which a row that is said is another than one of ours; empty where none is.

    Texts and numbers are compared, and boxes unless one may be the other in another unit.
    """
    own = leaves(row)
    for key in said.keys() & own.keys():
        if not _agree(said[key], own[key], (str, int, float)):
            return key
        left, right = [list(_boxes(one[key])) for one in (said, own)]
        if left and right and not any(_may_be_converted(a, b) for a in left for b in right):
            return key
    return ""


def _flat(row: Mapping[str, Any], depth: int) -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        if isinstance(value, Mapping):
            if depth < _DEEPEST:
                yield from _flat(value, depth + 1)
        elif value is not None and value != "":
            yield str(key), value


def _agree(said: Sequence[Any], own: Sequence[Any], kinds: tuple[type, ...]) -> bool:
    """Whether a value is the same in both, or they are of kinds that cannot be compared."""
    left = {_plain(value) for value in said if isinstance(value, kinds)}
    right = {_plain(value) for value in own if isinstance(value, kinds)}
    return not left or not right or not left.isdisjoint(right)


def _plain(value: Any) -> Any:
    """The value as another harness may have it: without blanks around it, numbers as numbers."""
    if _is_digits(value):
        return int(value)
    return value.strip() if isinstance(value, str) else value


def _boxes(values: Sequence[Any]) -> Iterator[Sequence[float]]:
    """The lists of four numbers."""
    for value in values:
        if (
            isinstance(value, list)
            and len(value) == 4
            and all(type(one) in (int, float) and abs(one) < _FARTHEST for one in value)
        ):
            yield value


def _may_be_converted(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether two boxes may be the same in other units, or with other meanings of their numbers.

    Of a fraction of the screen and pixels nothing is known without the screen's size. Other units
    have a scale along each axis, but for rounding; the numbers are two corners, or the upper left
    one with width and height, or the middle with these.

    Examples:
        >>> _may_be_converted([10, 10, 20, 20], [0.1, 0.2, 0.3, 0.4])
        True
        >>> _may_be_converted([10, 20, 30, 40], [10, 20, 20, 20])
        True
        >>> _may_be_converted([10, 10, 20, 20], [11, 10, 20, 20])
        False
    """
    if list(one) == list(other):
        return True
    shares = [max(map(abs, box)) <= 1 for box in (one, other)]
    if shares[0] != shares[1]:
        return True
    slack = 0.005 if shares[0] else 0.5
    if _is_scaled(one, other, slack) or _is_scaled(other, one, slack):
        return True
    # Of two with the same meaning the numbers themselves have the scale. An edge that is the sum of
    # two rounded numbers is off by both.
    return any(
        _is_scaled(left[1], right[1], 2 * slack) or _is_scaled(right[1], left[1], 2 * slack)
        for left, right in product(_corners(one), _corners(other))
        if left[0] != right[0]
    )


def _corners(box: Sequence[float]) -> Iterator[tuple[str, Sequence[float]]]:
    """By what the numbers may mean, the two corners."""
    x, y, a, b = box
    yield "corners", box
    yield "corner and size", (x, y, x + a, y + b)
    yield "middle and size", (x - a / 2, y - b / 2, x + a / 2, y + b / 2)


def _is_scaled(one: Sequence[float], other: Sequence[float], slack: float) -> bool:
    """Whether a box is another times a number along each axis, rounded to nearest or down."""
    return any(
        all(
            _has_scale([one[axis] + down, one[axis + 2] + down], other[axis::2], reach)
            for axis in (0, 1)
        )
        # A half may have gone either way; what was rounded down was less than one more.
        for down, reach in ((0, slack * 1.0001), (slack, slack))
    )


def _has_scale(numbers: Sequence[float], others: Sequence[float], slack: float) -> bool:
    low, high = 0.0, float("inf")
    for number, other in zip(numbers, others, strict=True):
        if other:
            least, most = sorted(((number - slack) / other, (number + slack) / other))
            low, high = max(low, least), min(high, most)
        elif abs(number) > slack:
            return False
    return low < high


def _forms(values: Sequence[Any]) -> set[Any]:
    """The lists among values that are not empty, so that equal ones are equal."""
    return {_form(value, 0) for value in values if isinstance(value, list) and value}


def _form(value: Any, depth: int) -> Any:
    if isinstance(value, list | Mapping) and depth < _DEEPEST:
        parts = sorted(value.items()) if isinstance(value, Mapping) else value
        return tuple(_form(part, depth + 1) for part in parts)
    if isinstance(value, float):  # Arrow keeps 4 bytes of some
        return value if value.is_integer() else float(f"{value:.6g}")
    return value if isinstance(value, int | str) else None


def _read(text: str) -> Any:
    """The list that a text writes; else the text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return _form(value, 0) if isinstance(value, list) else text


def _texts(row: Leaves) -> Iterator[str]:
    for values in row.values():
        yield from (value.strip() for value in values if isinstance(value, str))


def _parts(prompt: str, longest: int) -> Iterator[str]:
    """What may be the instruction in a prompt: its lines, and what follows a colon."""
    ends = [prompt.strip(), *prompt.splitlines()]
    for end in ends[:_PARTS]:
        pieces = end.split(":")[:_PARTS]
        length = len(end)
        for piece in pieces:
            if length <= longest + 4:
                yield end[len(end) - length :].strip().strip("\"'").strip()
            length -= len(piece) + 1


def _is_digits(value: Any) -> bool:
    return isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10


def _base(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]
