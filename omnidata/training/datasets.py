"""Steps as datasets of PyTorch, decoded where they are asked for."""

from __future__ import annotations

import pickle
import sys
import zlib
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, islice
from mimetypes import guess_type
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from torch.utils.data import Dataset, IterableDataset, get_worker_info

from omnidata.errors import DataError, UsageError
from omnidata.files import inside, named_folders, real
from omnidata.loaders.repository import extra_features
from omnidata.loaders.rows import BELONGING, DETAILS, Reader, features, tag_of
from omnidata.media import InMemoryMedia
from omnidata.training.batches import Decoding, Item, decode
from omnidata.types import LoadedDataset, MediaRef, Modality, Step

if TYPE_CHECKING:
    import datasets


# Rows of `datasets` as steps, for whoever holds a table and no `LoadedDataset`.

_WAY = 'StepDataset(omnidata.load_dataset("omnigui", DATA, split="test")): docs/torch.md'
_BESIDE_SCREENSHOTS = frozenset(
    {
        *("history_screenshot", "screenshot_after", "final_screenshot"),
        *("video", "video_after", "audio"),
    }
)
"""Roles of the benchmarks whose steps have a screenshot."""

_KINDS: Mapping[str, Modality] = {"Image": "image", "Video": "video", "Audio": "audio"}


class RowSteps(Sequence[Step]):
    """The steps that rows of a table are, each made when it is asked for.

    `datasets` decodes nothing of it: formats (`with_format("torch")`) and media columns that were
    cast (`Audio()`, which wants torchcodec) change nothing. What `select`, `filter`, `shuffle` and
    `sort` left is what there is. Rows know the screens of earlier steps only where they are of a
    Parquet repository; `Step.history_screens` is empty elsewhere.

    Rows that name files name what they like, and may be anybody's. A file is opened where it lies
    in data that this process has loaded as a table, or in a folder that is named when the rows are
    handed over: `with omnidata.following(["FOLDER"]): StepDataset(rows)`.

    Args:
        rows: of `omnidata.load_dataset`, of `datasets.load_dataset` with the name of a benchmark,
            or of a repository that `omnidata convert` wrote; one split.

    Raises:
        UsageError: several splits, a stream, or rows that are no steps.
    """

    def __init__(self, rows: datasets.Dataset) -> None:
        plain, more = features((), {}), extra_features()
        columns = rows.features
        known = {*plain, *more, *BELONGING, DETAILS}
        own = [name for name in columns if name not in known]
        # A column of paths alone, which a repository of links has, is a dict and says no kind.
        self._kinds = {
            name: _KINDS.get(type(columns[name]).__name__)
            for name in own
            if isinstance(columns[name], dict) or type(columns[name]).__name__ in _KINDS
        }
        lacking = [name for name in plain if name not in columns]
        if not lacking and _lacks_screenshots(rows, self._kinds):
            lacking = ["screenshot"]
        if lacking:
            raise UsageError(
                f"the rows are no steps: they lack {', '.join(lacking)}",
                where=f"a dataset with the columns {', '.join(columns)}",
                expected=_WAY,
                remedy="keep these columns: leave them out of remove_columns and map",
            )
        self._reader = Reader(
            [tag_of(name) for name in own if getattr(columns[name], "dtype", "") == "string"]
        )
        self._rows = rows.with_format("arrow")
        self._within = named_folders()

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Step]: ...
    def __getitem__(self, index: int | slice) -> Step | Sequence[Step]:
        """One step, or those of a slice.

        Raises:
            DataError: the row is no step, or names a file that may lie anywhere.
        """
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        (row,) = self._rows[index % len(self) : index % len(self) + 1].to_pylist()
        sums = {entry["role"]: entry["sha256"] for entry in row.get("media") or ()}
        media = {
            role: self._medium(role, kind, row[role], sums.get(role) or "")
            for role, kind in self._kinds.items()
        }
        seen = row.get("history_screens") or ()
        screens = tuple((screen["width"], screen["height"]) for screen in seen)
        try:
            return self._reader.step(row, media=media, history_screens=screens)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise DataError(
                f"the row is no step ({type(error).__name__}: {error})",
                where=f"row {index}",
                expected=_WAY,
            ) from None

    def _medium(
        self, role: str, kind: Modality | None, cell: Mapping[str, Any] | None, sha256: str
    ) -> MediaRef | None:
        """What a media column refers to: bytes, or a file, whose name tells the kind if none is."""
        if cell is None:
            return None
        if cell.get("bytes") is not None:
            return InMemoryMedia(
                kind or "image", Path(), cell.get("path") or role, content=cell["bytes"]
            )
        if not cell.get("path"):
            return None
        place = Path(cell["path"])
        if not inside(real(place), self._within):
            raise DataError(
                "the row names a file that lies in no folder which you have named",
                where=f"column {role}: {place}",
                expected="rows of data that this process loads, or folders that you name",
                remedy='with omnidata.following(["FOLDER OF THE MEDIA"]): StepDataset(rows)',
            )
        kind = kind or _kind(place.name)
        return MediaRef(kind, place.parent, place.name, sha256=sha256, within=self._within)


def _lacks_screenshots(rows: datasets.Dataset, roles: Collection[str]) -> bool:
    """Whether the steps have screenshots that the columns with media have not.

    Rows of a repository say which media a step has. Of others it is told by what is left: nothing,
    or media that only stand beside a screenshot.
    """
    if "screenshot" in roles:
        return False
    if "media" not in rows.features:
        return _BESIDE_SCREENSHOTS.issuperset(roles)
    first = rows.with_format("arrow")[:1].to_pylist() if len(rows) else []
    return any(entry["role"] == "screenshot" for row in first for entry in row["media"] or ())


def steps_of(given: Any) -> Sequence[Step] | None:
    """The steps of a dataset of `datasets`; None where it is none.

    Raises:
        UsageError: several splits, a stream, or rows that are no steps.
    """
    library = sys.modules.get("datasets")  # who has not imported it has no dataset of it
    if library is None:
        return None
    if isinstance(given, library.Dataset):
        return RowSteps(given)
    refused: Mapping[type, str] = {
        library.DatasetDict: "these are all splits",
        library.IterableDataset: "the rows are a stream",
        library.IterableDatasetDict: "the rows are a stream of all splits",
    }
    for kind, what in refused.items():
        if isinstance(given, kind):
            raise UsageError(
                what,
                where=kind.__name__,
                expected=_WAY,
                remedy='name the split ("test"), and leave streaming=True out; '
                "training_stream reads a repository as it comes",
            )
    return None


def check_steps(given: Any) -> None:
    """Refuse what is no sequence of steps, by its first item.

    Raises:
        UsageError: there is none, or the items are something else, as rows of a table.
    """
    is_sequence = hasattr(given, "__len__") and hasattr(given, "__getitem__")
    if not is_sequence or isinstance(given, Mapping):
        raise UsageError(
            "this is no sequence of steps",
            where=f"StepDataset({type(given).__name__})",
            expected="a list of steps, what a loader found, or a table",
            remedy=_WAY,
        )
    if not len(given):
        raise UsageError("there is no step", where="StepDataset", expected="at least one step")
    if not isinstance(given[0], Step):
        raise UsageError(
            "these are no steps",
            where=f"{type(given).__name__} of {type(given[0]).__name__}",
            expected=f"steps of a loader, StepDataset(task.load(DATA)), or a table: {_WAY}",
        )


def _kind(name: str) -> Modality:
    """What a file holds, by its name; a picture where that does not tell."""
    guessed = guess_type(name)[0] or ""
    for kind in _KINDS.values():
        if guessed.startswith(kind):
            return kind
    return "image"


# Many steps in little memory, cheap to hand to worker processes.
#
# A million steps as Python objects are pickled for every spawned worker, and copied page by page
# into every forked one, because counting references writes to them. As bytes they are neither.

_RUN = 32
"""Steps that are pickled together: they share most of what they hold. All are unpickled for one."""


class PackedSteps:
    """Steps as bytes.

    Steps of an episode that follow each other are stored together, and what each holds of the
    history, whose length grows with the square of the episode's, is stored once.

    Args:
        steps: any steps, in any order.
        whole: keep `source`, which prompts are made from; else it is left out.
    """

    def __init__(self, steps: Sequence[Step], *, whole: bool = False) -> None:
        self._starts: list[int] = []
        self._blobs: list[bytes] = []
        self._length = 0
        for run in _runs(steps):
            self._starts.append(self._length)
            self._blobs.append(_pack(run, whole))
            self._length += len(run)
        self._last: tuple[int, list[Step]] = (-1, [])

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Step]:
        return (self[index] for index in range(self._length))

    def __getitem__(self, index: int) -> Step:
        if not -self._length <= index < self._length:
            raise IndexError(index)
        index %= self._length
        number = bisect_right(self._starts, index) - 1
        last = self._last
        if last[0] != number:
            last = self._last = (number, _unpack(self._blobs[number]))
        return last[1][index - self._starts[number]]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_last": (-1, [])}


def _runs(steps: Sequence[Step]) -> Iterator[list[Step]]:
    for _, found in groupby(steps, key=lambda step: step.episode):
        episode = list(found)
        for begin in range(0, len(episode), _RUN):
            yield episode[begin : begin + _RUN]


def _pack(run: list[Step], whole: bool) -> bytes:
    first = run[0]
    longest = max(run, key=lambda step: len(step.history))
    past, screens = longest.history, longest.history_screens
    stripped, lengths = [], []
    for step in run:
        count = len(step.history)
        shared = past[:count] == step.history and screens[:count] == step.history_screens
        lengths.append(count if shared else None)
        stripped.append(
            replace(
                step,
                # One object for what is equal, which pickle then writes once.
                instruction=first.instruction
                if step.instruction == first.instruction
                else step.instruction,
                tags=first.tags if step.tags == first.tags else step.tags,
                history=() if shared else step.history,
                history_screens=() if shared else step.history_screens,
                source=step.source if whole else {},
            )
        )
    held = (stripped, lengths, past, screens)
    return zlib.compress(pickle.dumps(held, pickle.HIGHEST_PROTOCOL), 1)


def _unpack(blob: bytes) -> list[Step]:
    stripped, lengths, past, screens = pickle.loads(zlib.decompress(blob))
    return [
        step
        if count is None
        else replace(step, history=past[:count], history_screens=screens[:count])
        for step, count in zip(stripped, lengths, strict=True)
    ]


_DEFAULT = Decoding()


class StepDataset(Dataset[Item]):
    """Steps of any task; `dataset[i]` decodes step i, in DataLoader workers too.

    Nothing is opened before that, so worker processes may be forked or spawned. A list of steps is
    kept as bytes, without `Step.source`: 100,000 steps, ten per episode, take some 7 MB, which each
    spawned worker gets and forked workers share.

    Args:
        steps: what a loader found, any of its steps, or a table of them: what
            `omnidata.load_dataset` and `datasets.load_dataset` give (see `RowSteps`). A sequence
            that is neither a list nor a tuple is kept as it is, and must itself be fit for
            pickling.
        decoding: what is decoded, and how.

    Raises:
        UsageError: there is no step, something else than steps, or no step has a role that
            `decoding` names.
    """

    def __init__(
        self,
        steps: LoadedDataset | Sequence[Step] | datasets.Dataset,
        decoding: Decoding = _DEFAULT,
    ) -> None:
        found = steps.steps if isinstance(steps, LoadedDataset) else steps_of(steps) or steps
        check_steps(found)
        for role in decoding.roles or ():
            _check_role(role, found)
        self._steps = PackedSteps(found) if isinstance(found, list | tuple) else found
        self.decoding = decoding

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, index: int) -> Item:
        """Step `index`, decoded.

        Raises:
            MediaError: a medium is missing or broken, unless `Decoding(on_error="none")`.
        """
        return decode(self._steps[index], self.decoding)


class StepStream(IterableDataset[Item]):
    """Steps that come one after the other, decoded as they come.

    Each DataLoader worker goes through all steps and decodes every n-th, so that every step comes
    once; with several workers the batches are others than with one.

    Args:
        steps: anything that can be gone through again for every epoch, and be pickled where workers
            are spawned.
        decoding: what is decoded, and how; as in `StepDataset`.

    Raises:
        UsageError: the steps are an iterator, which would be empty from the second epoch on, or
            rows of a table.
    """

    def __init__(self, steps: Iterable[Step], decoding: Decoding = _DEFAULT) -> None:
        if steps_of(steps) is not None:
            raise UsageError(
                "rows of a table are no steps",
                where=f"StepStream({type(steps).__name__})",
                expected="StepDataset(rows), which opens a row when it is asked for",
            )
        if isinstance(steps, Iterator):
            raise UsageError(
                "the steps can be gone through only once",
                where=f"StepStream({type(steps).__name__})",
                expected="an object whose __iter__ begins anew: a list, or a class of your own",
            )
        self._steps = steps
        self.decoding = decoding

    def __iter__(self) -> Iterator[Item]:
        worker = get_worker_info()
        first, count = (worker.id, worker.num_workers) if worker else (0, 1)
        return (decode(step, self.decoding) for step in islice(self._steps, first, None, count))


def _check_role(role: str, steps: Iterable[Step]) -> None:
    known: set[str] = set()
    for step in steps:
        if role in step.media:
            return
        known.update(step.media)
    raise UsageError(
        f'no step has a medium "{role}"',
        where="Decoding(roles=...)",
        expected=f"some of {', '.join(sorted(known))}",
    )
