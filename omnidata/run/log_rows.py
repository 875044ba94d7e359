"""Which step a row of another harness's log is, by what the log says of the row.

A number says nothing: harnesses number the rows of their own copy, in its order. What counts is the
row itself, the record of it that metrics keep, and the prompt; the number decides between rows that
these do not tell apart, where all others were at the place that their numbers say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from omnidata.errors import PredictionError
from omnidata.types import Source, Step

_SEVERAL: Final = 500
"""From so many alike on, rows are not looked at one by one."""
_DEEPEST: Final = 8
_PARTS: Final = 2_000  # of a prompt that may be an instruction
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

    source: Source
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
        named = _leaves(said.row)
        noted = [_leaves(record) for record in said.records]
        every = [named, *noted]
        found = self._identified(every)
        if found is None:
            found = self._by_instruction(every, said.prompts)
        if len(found) > _SEVERAL:
            return found
        fitting = {number for number in found if not self._against(number, named, noted)}
        if len(fitting) < 2:
            return fitting
        return self._nearest(fitting, every, said.target)

    def _identified(self, every: Sequence[_Leaves]) -> set[int] | None:
        """The steps whose ids are said; None where none is."""
        for leaves in every:
            for sample_id in leaves.get("sample_id", ()):
                if isinstance(sample_id, str) and sample_id in self._ids:
                    return {self._ids[sample_id]}
            for episode in leaves.get("episode_id", ()):
                for index in (index for key in _INDEX for index in leaves.get(key, ())):
                    place = str(episode), _plain(index)
                    if place in self._places:
                        return set(self._places[place])
        return None

    def _by_instruction(self, every: Sequence[_Leaves], prompts: Sequence[str]) -> set[int]:
        """The steps with an instruction that is said, and with a picture where one is said."""
        texts = [text for leaves in every for text in _texts(leaves)]
        parts = (part for prompt in prompts for part in _parts(prompt, self._longest))
        asked = [self._asked[text] for text in (*texts, *parts) if text in self._asked]
        if not asked:
            return set()
        found = set().union(*asked)
        names = {_base(text) for text in texts}
        shown = [self._shown[name] for name in names if name in self._shown]
        both = found.intersection(set().union(*shown))
        return both or found

    def _against(self, number: int, named: _Leaves, noted: Sequence[_Leaves]) -> str:
        """The column in which the row is another than the step's; empty where there is none."""
        own = _leaves(self._steps[number].source)
        for key in named.keys() & own.keys():
            if not _agree(named[key], own[key], (str, int, float)):
                return key
        # Metrics have numbers of their own beside what they keep of a row.
        for record in noted:
            for key in record.keys() & own.keys():
                if not _agree(record[key], own[key], (str,)):
                    return key
        return ""

    def _nearest(self, fitting: set[int], every: Sequence[_Leaves], target: str) -> set[int]:
        """Those whose lists or target are said, where there are such; others may be converted."""
        lists = {
            str(value)
            for leaves in every
            for values in leaves.values()
            for value in values
            if isinstance(value, list) and value
        } | ({target} if target else set())
        best = {
            number
            for number in fitting
            if not lists.isdisjoint(
                str(value)
                for values in _leaves(self._steps[number].source).values()
                for value in values
            )
        }
        return best or fitting

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
        if own is not None:
            step = self._steps[own]
            key = self._against(own, _leaves(said.row), [_leaves(one) for one in said.records])
            if key:
                told = next(
                    leaves[key][0]
                    for leaves in map(_leaves, (said.row, *said.records))
                    if key in leaves
                )
                ours = _leaves(step.source)[key][0]
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


_Leaves = Mapping[str, Sequence[Any]]
"""By the name of a column, its values; several where a row has parts that share names."""


def _leaves(row: Mapping[str, Any]) -> _Leaves:
    found: dict[str, list[Any]] = {}
    for key, value in _flat(row, 0):
        found.setdefault(key, []).append(value)
    return found


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


def _texts(leaves: _Leaves) -> Iterator[str]:
    for values in leaves.values():
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
