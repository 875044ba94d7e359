"""The file of many steps: an Arrow IPC file of our own, mapped into memory.

A row is a step. Texts and numbers are columns of Arrow; what Arrow cannot hold exactly (actions,
media, tags, the untouched row) is a cell of bytes (`omnidata.loaders.step_cells`). Only files that
this user's processes wrote are read (`omnidata.loaders.steps_cache` checks their size and CRC).

A history is stored once: the row of a step whose history is that of the step before, with its
action added, says so, and holds none.
"""

from __future__ import annotations

import marshal
import mmap
import operator
import tempfile
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from itertools import pairwise, repeat
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnidata.actions import Action, Screen
from omnidata.errors import DataError
from omnidata.files import bounds
from omnidata.loaders.memory_limit import VARIABLE
from omnidata.loaders.step_cells import (
    CannotStoreError,
    has_own_bounds,
    plain_action,
    plain_media,
    read_row,
    read_tags,
    restore_action,
    restore_media,
    row_cell,
    tags_cell,
    to_cell,
    unpacker_of,
)
from omnidata.loaders.step_folders import current_folder
from omnidata.types import Step

Numbers = npt.NDArray[np.int64]

BLOCK: Final = 64
"""Rows whose columns become Python values together."""
_BATCH: Final = 4096
_BATCH_BYTES: Final = 64 * 1024**2
_SLOTS: Final = 64
"""Blocks that are kept, for readers that come back to them, as several threads do."""
_VIEWS: Final = 16_384
"""Columns of batches whose buffers are kept."""

_MOST: Final = 2**63
"""The first whole number that no column takes."""

_TEXTS: Final = ("sample_id", "episode_id", "instruction", "episode", "group")
_INTEGERS: Final = ("step_index", "num_steps")
_CELLS: Final = ("history", "history_screens", "action", "media", "tags", "source", "odd")
SCHEMA: Final = pa.schema(
    [
        *((name, pa.string()) for name in _TEXTS),
        *((name, pa.int64()) for name in (*_INTEGERS, "width", "height")),
        *((name, pa.int32()) for name in ("history_back", "history_screens_back")),
        *((name, pa.large_binary()) for name in _CELLS),
    ]
)


# Writing.


class StepWriter:
    """Writes steps to a file, batch by batch.

    Args:
        file: open for writing; it stays open.
        sources: whether to write `Step.source`; else it is empty.

    Attributes:
        in_memory: steps that the file cannot hold, by row.
        is_movable: whether all references to media are bound to the data alone, so that another
            process may open the file.
    """

    def __init__(self, file: IO[bytes] | pa.NativeFile, *, sources: bool = True) -> None:
        self._writer = pa.ipc.new_file(file, SCHEMA)
        self._sources = sources
        self._rows: list[Sequence[Any]] = []
        self._bytes = 0
        self._count = 0
        self._last: Step | None = None
        self._back = 0, 0
        self.within = bounds()
        self.in_memory: dict[int, Step] = {}
        self.is_movable = True

    def add(self, step: Step) -> None:
        """Write a step.

        Raises:
            DataError: the disk takes no more.
        """
        try:
            self._rows.append(self._row(step))
        except CannotStoreError:
            self.in_memory[self._count] = step
            self._rows.append(_NO_ROW)
            self._last = None
        self._count += 1
        if self._count % BLOCK == 0 and (len(self._rows) >= _BATCH or self._bytes > _BATCH_BYTES):
            self._flush()

    def _row(self, step: Step) -> list[Any]:
        """Return the values of a row in the order of the columns."""
        if type(step.tags) is not dict or type(step.source) is not dict:
            raise CannotStoreError(step)
        row, odd = _plain_fields(step)
        last, (back, screens_back) = self._last, self._back
        if last and _extends(step.history, last.history, last.action, operator.is_):
            history, back = b"", back + 1
        else:
            history, back = to_cell(_plain_history(step.history)), 0
        screens = step.history_screens
        if last and _extends(screens, last.history_screens, last.screen, _same_screens):
            history_screens, screens_back = b"", screens_back + 1
        else:
            history_screens, screens_back = to_cell(_plain_screens(screens)), 0
        media = plain_media(step.media, self.within)
        row += (
            *(back, screens_back, history, history_screens),
            to_cell(plain_action(step.action)),
            media_cell := to_cell(media),
            tags_cell(step.tags),
            source_cell := row_cell(step.source) if self._sources else _EMPTY,
            to_cell(odd) if odd else b"",
        )
        self._last, self._back = step, (back, screens_back)
        self._bytes += len(media_cell) + len(source_cell)
        if has_own_bounds(media):
            self.is_movable = False
        return row

    def _flush(self) -> None:
        columns = zip(*self._rows, strict=True)
        held = [_array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
        try:
            self._writer.write_batch(pa.record_batch(held, schema=SCHEMA))
        except OSError as error:
            raise _full(error) from None
        self._rows.clear()
        self._bytes = 0

    def close(self) -> None:
        """Write the last batch and the footer.

        Raises:
            DataError: the disk takes no more.
        """
        if self._rows:
            self._flush()
        try:
            self._writer.close()
        except OSError as error:
            raise _full(error) from None


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return a column; `pa.array` imports pandas for it, which takes 0.3 s."""
    if None in values:
        return pa.array(values, kind)
    if pa.types.is_integer(kind):
        numbers = np.array(values, f"i{kind.bit_width // 8}")
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(numbers)])
    is_text = pa.types.is_string(kind)
    parts = [text.encode() for text in values] if is_text else values
    ends = np.cumsum([0, *map(len, parts)])
    if is_text and ends[-1] >= 2**31:
        return pa.array(values, kind)
    starts = pa.py_buffer(ends.astype(np.int32 if is_text else np.int64))
    return pa.Array.from_buffers(kind, len(values), [None, starts, pa.py_buffer(b"".join(parts))])


_EMPTY: Final = marshal.dumps({})
_NO_ROW: Final = [
    b"" if name in _CELLS else 0 if name.endswith("_back") else None for name in SCHEMA.names
]
_PLAIN: Final = (*_TEXTS, *_INTEGERS)
_PLAIN_OF: Final = operator.attrgetter(*_PLAIN)
_KINDS: Final = [*repeat(str, len(_TEXTS)), *repeat(int, len(_INTEGERS))]


def _plain_fields(step: Step) -> tuple[list[Any], dict[str, Any]]:
    """Return texts, numbers and sides of the screen; those that no column takes are None, and odd.

    A look at all of them at once costs a third of one at each.
    """
    row, odd = list(_PLAIN_OF(step)), {}
    texts, numbers = row[: len(_TEXTS)], row[len(_TEXTS) :]
    is_usual = [*map(type, row)] == _KINDS and _is_unicode("".join(texts))
    if not is_usual or min(numbers) < -_MOST or max(numbers) >= _MOST:
        for at, (name, value, kind) in enumerate(zip(_PLAIN, row, _KINDS, strict=True)):
            is_kind = type(value) is kind
            if not is_kind or not (_is_unicode(value) if kind is str else -_MOST <= value < _MOST):
                odd[name], row[at] = value, None
    if _is_screen(step.screen):
        row += step.screen
    else:
        odd["screen"] = step.screen
        row += None, None
    return row, odd


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_screen(value: Any) -> bool:
    return (
        type(value) is tuple
        and len(value) == 2
        and type(value[0]) is type(value[1]) is int
        and min(value) >= 0
        and max(value) < _MOST
    )


def _same_screens(one: Screen, other: Screen) -> bool:
    return one is other or (one == other and _is_screen(one) and _is_screen(other))


def _extends(past: Any, before: Any, last: Any, is_same: Callable[[Any, Any], bool]) -> bool:
    """Return whether a history is the one before with one more: equals may differ in their type."""
    return (
        type(past) is type(before) is tuple
        and len(past) == len(before) + 1
        and is_same(past[-1], last)
        and (all(map(operator.is_, past, before)) or all(map(is_same, past, before)))
    )


def _plain_history(past: Any) -> tuple[Any, ...]:
    return tuple(map(plain_action, _plain_screens(past)))


def _plain_screens(past: Any) -> tuple[Any, ...]:
    if type(past) is not tuple:
        raise CannotStoreError(past)
    return past


# Where steps are written.


def write(steps: Iterable[Step]) -> StepFile:
    """Write steps to a file.

    It lies in the folder of `writing_into`. Elsewhere it has no name, is this user's alone, and
    vanishes with the process.

    Raises:
        DataError: the disk takes no more.
    """
    folder = current_folder()
    path = folder.new_file() if folder else None
    file: Any = path.open("xb+") if path else tempfile.TemporaryFile(prefix="omnidata-")  # noqa: SIM115  closed below
    try:
        writer = StepWriter(file)
        for step in steps:
            writer.add(step)
        writer.close()
        try:
            file.flush()
        except OSError as error:
            raise _full(error) from None
        made = StepFile.map(file, writer.within, writer.in_memory)
    finally:
        with suppress(OSError):  # the rest of what the disk has not taken
            file.close()
    if folder and path and writer.is_movable and not writer.in_memory:
        folder.add(made, path)
    return made


def _full(error: OSError) -> DataError:
    folder = current_folder()
    if folder and folder.path:
        folder.is_full = True
    return DataError(
        f"the steps cannot be written to disk ({error.strerror})",
        where=str((folder and folder.path) or tempfile.gettempdir()),
        expected="disk space, about 1 KB a step",
        remedy="free disk space, name other folders in TMPDIR and OMNIDATA_CACHE, or use "
        f"--no-cache; {VARIABLE} sets how many steps stay in memory",
    )


def pack(steps: Iterable[Step], *, sources: bool = True) -> StepFile:
    """Return steps as a file in memory.

    Args:
        steps: any.
        sources: whether to keep `Step.source`; else it is empty.
    """
    sink = pa.BufferOutputStream()
    writer = StepWriter(sink, sources=sources)
    for step in steps:
        writer.add(step)
    writer.close()
    return StepFile(sink.getvalue(), writer.within, writer.in_memory)


# Reading.


class StepFile:
    """The steps of a file, or of its bytes; each `Step` fills its fields when they are asked for.

    Threads and forked processes may share it.

    Args:
        content: of the file.
        within: real paths, in which media must lie.
        in_memory: steps that the file does not hold, by row.
        path: of the file, where another process may open it.

    Raises:
        pyarrow.ArrowInvalid: the content is no such file.
    """

    def __init__(
        self,
        content: Any,
        within: tuple[str, ...],
        in_memory: Mapping[int, Step] | None = None,
        path: Path | None = None,
    ) -> None:
        self.content = pa.py_buffer(content)
        reader = pa.ipc.open_file(self.content)
        if not reader.schema.equals(SCHEMA):
            raise pa.ArrowInvalid("these are no steps of this version")
        self.batches = [reader.get_batch(each) for each in range(reader.num_record_batches)]
        self.within = within
        self.in_memory = in_memory or {}
        self.path = path
        self._starts = array("q", [0])
        for batch in self.batches:
            self._starts.append(self._starts[-1] + batch.num_rows)
        self._blocks: list[Block | None] = [None] * _SLOTS
        self._made: tuple[int, list[Step]] = 0, []
        self._views: dict[tuple[int, str], _View | None] = {}

    @classmethod
    def map(
        cls,
        file: IO[bytes],
        within: tuple[str, ...],
        in_memory: Mapping[int, Step] | None = None,
        path: Path | None = None,
    ) -> StepFile:
        """Map an open file, which may be closed afterwards."""
        return cls(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), within, in_memory, path)

    def __len__(self) -> int:
        return self._starts[-1]

    def block(self, number: int) -> Block:
        """Return the rows from `number * BLOCK` on; asked for twice they may be two objects."""
        slot = number % _SLOTS
        found = self._blocks[slot]
        if found is None or found.number != number:
            found = self._blocks[slot] = Block(self, number)
        return found

    def batch_of(self, row: int) -> tuple[int, int]:
        """Return the number of a row's batch, and the row's place in it."""
        number = bisect_right(self._starts, row) - 1
        return number, row - self._starts[number]

    def view(self, batch: int, name: str) -> _View | None:
        """Return the buffers of a column of a batch; None if it has nulls."""
        key = batch, name
        try:
            return self._views[key]
        except KeyError:
            if len(self._views) >= _VIEWS:
                self._views.clear()
            found = self._views[key] = _view(self.batches[batch].column(name))
            return found

    def step(self, row: int) -> Step:
        """Return the step of a row.

        Rows that are asked for in order are made a block at a time, after its first: what was
        asked of that one is filled for the others at once.

        Raises:
            IndexError: there is none.
        """
        first, made = self._made
        if 0 <= row - first < len(made):
            return made[row - first]
        number, place = divmod(row, BLOCK)
        if not 0 <= row < len(self):
            raise IndexError(f"there is no step {row} of {len(self)}")
        block, here = self.block(number), range(place, place + 1)
        if self.in_memory:
            return self.in_memory.get(row) or block.steps(here)[0]
        is_next = place == 1 and row == first + len(made)
        found = block.steps(range(1, block.length), made[-1]) if is_next else block.steps(here)
        self._made = row, found
        return found[0]

    def steps(self, rows: range) -> Iterator[Step]:
        """Yield neighbouring steps, made a block at a time as `step` makes them."""
        if self.in_memory:
            yield from map(self.step, rows)
            return
        for number, places in _parts(rows):
            block = self.block(number)
            (first,) = block.steps(places[:1])
            yield first
            yield from block.steps(places[1:], first)

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a column of texts or numbers; null where only the step itself says it."""
        found = [batch.column(name) for batch in self.batches]
        return pa.chunked_array(found, SCHEMA.field(name).type)

    def values(self, name: str, rows: range) -> Iterator[Any]:
        """Yield a field of neighbouring steps, in order."""
        if self.in_memory:
            yield from (self.value(row, name) for row in rows)
            return
        for number, places in _parts(rows):
            yield from self.block(number).values(places, name)

    def sources(self, rows: Iterable[int], keys: tuple[str, ...]) -> Iterator[Mapping[str, Any]]:
        """Yield the untouched rows with these of their keys; some have all."""
        read = unpacker_of(keys)
        for row in rows:
            if row in self.in_memory:
                yield self.in_memory[row].source
                continue
            batch, place = self.batch_of(row)
            view = self.view(batch, "source")
            assert view is not None  # a cell is no null
            yield read_row(view.data[view.numbers[place] : view.numbers[place + 1]], read)

    def take(self, numbers: Numbers, *, sources: bool = True) -> StepFile:
        """Return some rows as bytes in memory.

        Args:
            numbers: of the rows, int64 (N,), in order.
            sources: whether to keep `Step.source`; else it is empty.
        """
        order = np.argsort(numbers, kind="stable")
        rows = numbers[order]
        owners = np.searchsorted(self._starts, rows, side="right") - 1
        firsts = [0, *(np.flatnonzero(np.diff(owners)) + 1).tolist(), len(rows)]
        parts = [
            self.batches[owners[first]].take(
                pa.array(rows[first:end] - self._starts[owners[first]])
            )
            for first, end in pairwise(firsts)
            if end > first
        ]
        table = pa.Table.from_batches(parts, SCHEMA).combine_chunks()
        if (np.diff(order) != 1).any():
            table = table.take(pa.array(np.argsort(order)))
        table = self._rejoin(table, "history", _plain_history, numbers)
        table = self._rejoin(table, "history_screens", _plain_screens, numbers)
        if not sources:
            empty = pa.array([_EMPTY] * len(numbers), pa.large_binary())
            table = table.set_column(SCHEMA.get_field_index("source"), "source", empty)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, SCHEMA) as writer:
            writer.write_table(table, max_chunksize=_BATCH)
        places = enumerate(numbers.tolist()) if self.in_memory else ()
        in_memory = {each: self.in_memory[row] for each, row in places if row in self.in_memory}
        return StepFile(sink.getvalue(), self.within, in_memory)

    def _rejoin(
        self, table: pa.Table, column: str, plain: Callable[[Any], Any], numbers: Numbers
    ) -> pa.Table:
        """Write the histories of rows whose predecessor is not among the chosen."""
        back = f"{column}_back"
        backs = table.column(back).to_numpy()
        follows = np.zeros(len(numbers), np.bool_)
        follows[1:] = np.diff(numbers) == 1
        begins = (backs == 0) | ~follows
        places = np.arange(len(numbers))
        backs = (places - np.maximum.accumulate(np.where(begins, places, 0))).astype(np.int32)
        cells = table.column(column).to_pylist()
        torn = np.flatnonzero(begins & (table.column(back).to_numpy() > 0))
        for place in torn[np.argsort(numbers[torn])].tolist():  # rows of a block together
            cells[place] = to_cell(plain(self.value(int(numbers[place]), column)))
        for name, values in ((column, pa.array(cells, pa.large_binary())), (back, pa.array(backs))):
            table = table.set_column(SCHEMA.get_field_index(name), name, values)
        return table

    def value(self, row: int, name: str) -> Any:
        """Return one field of a step."""
        if self.in_memory and row in self.in_memory:
            return getattr(self.in_memory[row], name)
        return self.block(row // BLOCK).value(row % BLOCK, name)


def _parts(rows: range) -> Iterator[tuple[int, range]]:
    """Yield the blocks that rows lie in, each with the places of its rows."""
    for number in range(rows.start // BLOCK, -(-rows.stop // BLOCK)):
        first = number * BLOCK
        yield number, range(max(rows.start - first, 0), min(rows.stop - first, BLOCK))


class _View(NamedTuple):
    """Buffers of a column: numbers, or where texts and cells begin and end, and their bytes."""

    numbers: memoryview
    data: memoryview


def _view(column: pa.Array) -> _View | None:
    if column.null_count:
        return None
    _, numbers, *data = column.buffers()
    is_wide = column.type in (pa.int64(), pa.large_binary())
    return _View(
        memoryview(numbers).cast("q" if is_wide else "i")[column.offset :],
        memoryview(data[0] if data and data[0] else b"").cast("B"),
    )


_new = object.__new__


class Block:
    """Rows of a file that lie together; a column becomes Python values when it is asked for.

    Of the row that is asked for first only its own values do: rows at random are in many blocks.
    It does not hold its steps, which hold it.

    Args:
        file: of the rows.
        number: of the block, from 0.
    """

    __slots__ = (
        "_batch",
        "_cells",
        "_columns",
        "_file",
        "_first",
        "_lone",
        "_start",
        "length",
        "number",
    )

    def __init__(self, file: StepFile, number: int) -> None:
        self.number = number
        self._file = file
        self._first = number * BLOCK
        self._batch, self._start = file.batch_of(self._first)
        self.length = min(BLOCK, file.batches[self._batch].num_rows - self._start)
        self._lone: int | None = None  # the place of the row that was asked for first
        self._columns: dict[str, list[Any]] = {}
        self._cells: dict[str, tuple[memoryview, memoryview]] = {}

    def steps(self, places: range, before: Step | None = None) -> list[Step]:
        """Return the steps of neighbouring rows.

        Args:
            places: of the rows, counted from the block's first.
            before: a step whose fields are filled that the others will be asked for.
        """
        steps = [*map(_new, repeat(Step, len(places)))]
        _fill(_set_block, steps, repeat(self))
        _fill(_set_place, steps, places)
        for name, field in _FIELDS_OF_STEP.items() if before else ():
            try:
                field.__get__(before)
            except AttributeError:  # nobody asked for it
                continue
            _fill(field.__set__, steps, self.values(places, name))
        return steps

    def values(self, places: range, name: str) -> list[Any]:
        """Return a field of the steps of neighbouring rows."""
        if name in ("action", "media", "source"):
            view, ends = self._cells_of(name)
            edges = ends.tolist()
            decode = read_row if name == "source" else marshal.loads
            found = [decode(view[edges[place] : edges[place + 1]]) for place in places]
            if name == "media":
                return [restore_media(held, self._file.within) for held in found]
            if name == "action":
                known = self._columns.setdefault(name, [_UNKNOWN] * self.length)
                for place, values in zip(places, found, strict=True):
                    if known[place] is _UNKNOWN:
                        known[place] = restore_action(values)
                return known[places.start : places.stop]
            return found
        if name not in _CELLS and None not in (column := self.column(name)):
            return column[places.start : places.stop]
        return [self.value(place, name) for place in places]

    def value(self, place: int, name: str) -> Any:
        """Return a field of the step of a row."""
        column = self._columns.get(name)
        if column is not None:
            value = column[place]
            if value is not None and value is not _UNKNOWN:
                return value
        if name == "source":
            return read_row(self._cell(place, name))
        if name == "media":
            return restore_media(marshal.loads(self._cell(place, name)), self._file.within)
        if name == "tags":
            return read_tags(bytes(self._cell(place, name)))
        if name == "action":
            return self._action(place)
        if name in ("history", "history_screens"):
            return self._past(place, name)
        value = self._plain(place, name)
        if value is None and len(cell := self._cell(place, "odd")):
            value = marshal.loads(cell)[name]
        return value

    def _plain(self, place: int, name: str) -> Any:
        """Return a text, a number or a screen; None where the row has an odd value."""
        if self._lone is None:
            self._lone = place
        if place != self._lone or name in self._columns:
            return self.column(name)[place]
        if name == "screen":
            side = self._plain(place, "width")
            return None if side is None else (side, self._plain(place, "height"))
        view = self._file.view(self._batch, name)
        if view is None:
            return self.column(name)[place]
        row = self._start + place
        if name not in _TEXTS:
            return view.numbers[row]
        return str(view.data[view.numbers[row] : view.numbers[row + 1]], "utf-8")

    def column(self, name: str) -> list[Any]:
        """Return a column; None where the row has an odd value."""
        found = self._columns.get(name)
        if found is None:
            if name == "screen":
                sides = zip(self.column("width"), self.column("height"), strict=True)
                found = [None if side[0] is None else side for side in sides]
            else:
                column = self._file.batches[self._batch].column(name)
                found = column.slice(self._start, self.length).to_pylist()
            self._columns[name] = found
        return found

    def _cell(self, place: int, name: str) -> memoryview:
        view, ends = self._cells_of(name)
        return view[ends[place] : ends[place + 1]]

    def _cells_of(self, name: str) -> tuple[memoryview, memoryview]:
        found = self._cells.get(name)
        if found is None:
            view = self._file.view(self._batch, name)
            assert view is not None  # a cell may be empty, but is no null
            ends = view.numbers[self._start : self._start + self.length + 1]
            found = self._cells[name] = view.data, ends
        return found

    def _action(self, place: int) -> Action | None:
        """One object for a step and the histories after it."""
        found = self._columns.get("action")
        if found is None:
            found = self._columns["action"] = [_UNKNOWN] * self.length
        action = found[place]
        if action is _UNKNOWN:
            action = found[place] = restore_action(marshal.loads(self._cell(place, "action")))
        return action  # type: ignore[no-any-return]  # marshal has no types

    def _past(self, place: int, name: str) -> tuple[Any, ...]:
        found = self._columns.get(name)
        if found is None:
            found = self._columns[name] = [None] * self.length
        past: tuple[Any, ...] | None = found[place]
        if past is not None:
            return past
        back = self._plain(place, f"{name}_back")  # one more in each row after that of the root
        begin = max(0, place - back)
        start = place
        while start > begin and found[start] is None:
            start -= 1
        if found[start] is None:
            found[start] = self._begin(start, name, back - (place - start))
        of = "action" if name == "history" else "screen"
        for each in range(start, place):
            found[each + 1] = (*found[each], self.value(each, of))
        return found[place]  # type: ignore[no-any-return]  # a list of actions

    def _begin(self, place: int, name: str, back: int) -> tuple[Any, ...]:
        """Return the history of a row: what it holds, or what rows of earlier blocks hold."""
        if not back:
            held = marshal.loads(self._cell(place, name))
            return tuple(map(restore_action, held)) if name == "history" else held
        row = self._first + place
        of = "action" if name == "history" else "screen"
        first: tuple[Any, ...] = self._file.value(row - back, name)
        return (*first, *(self._file.value(each, of) for each in range(row - back, row)))


_UNKNOWN: Final = object()
_set_block = Step._block.__set__  # type: ignore[attr-defined]  # a slot
_set_place = Step._place.__set__  # type: ignore[attr-defined]  # a slot
_FIELDS_OF_STEP: Final = {field.name: getattr(Step, field.name) for field in fields(Step)}


def _fill(set_field: Callable[[Step, Any], None], steps: list[Step], values: Iterable[Any]) -> None:
    deque(map(set_field, steps, values), maxlen=0)
