"""Steps as PyTorch datasets, decoded when they are indexed, and samplers of whole episodes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapreplace
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import numpy as np
import numpy.typing as npt
from torch.utils.data import Dataset, IterableDataset, Sampler, get_worker_info

from omnidata.errors import UsageError
from omnidata.loaders.rows import WAY, RowReader
from omnidata.loaders.steps import Steps, as_steps
from omnidata.training.batches import Decoding, Item, decode
from omnidata.types import LoadedDataset, Step

if TYPE_CHECKING:
    import datasets


# Rows of `datasets` as steps, for callers with a table instead of a `LoadedDataset`.


class RowSteps(Sequence[Step]):
    """The rows of a table as steps; each step is made when it is indexed.

    `select`, `filter`, `shuffle` and `sort` apply; formats (`with_format("torch")`) and casts of
    media columns (`Audio()`) are ignored. Only rows of a Parquet repository know the screens of
    earlier steps; elsewhere `Step.history_screens` is empty. `RowReader` says which files are read.

    Args:
        rows: one split of `omnidata.load_dataset`, of `datasets.load_dataset` with a benchmark's
            name, or of a repository that `omnidata convert` wrote.

    Raises:
        UsageError: rows that are no steps.
    """

    def __init__(self, rows: datasets.Dataset) -> None:
        self._reader = RowReader.of(rows)
        self._rows = rows.with_format("arrow")

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Step]: ...
    def __getitem__(self, index: int | slice) -> Step | Sequence[Step]:
        """Return one step, or those of a slice.

        Raises:
            DataError: the row is no step, or names a file outside the allowed folders.
        """
        number = range(len(self))[index]
        if isinstance(number, range):
            return [self[each] for each in number]
        (row,) = self._rows[number : number + 1].to_pylist()
        return self._reader.read(row, f"row {index}")


def _kind_of_rows(given: object) -> str:
    """Return the class of `datasets` that an object is of; empty for any other object."""
    library = sys.modules.get("datasets")
    if library is None:  # a process that has not imported it has no dataset of it
        return ""
    kinds = ("Dataset", "IterableDataset", "DatasetDict", "IterableDatasetDict")
    return next((kind for kind in kinds if isinstance(given, getattr(library, kind))), "")


def _steps_of(given: Any) -> Sequence[Step]:
    kind = _kind_of_rows(given)
    if kind.endswith("Dict"):
        stream = "the rows are a stream of all splits"
        raise UsageError(
            stream if kind.startswith("Iterable") else "these are all splits",
            where=kind,
            expected=WAY,
            remedy='name the split: split="test"',
        )
    found = given.steps if isinstance(given, LoadedDataset) else RowSteps(given) if kind else given
    name = type(found).__name__
    is_sequence = hasattr(found, "__len__") and hasattr(found, "__getitem__")
    if not is_sequence or isinstance(found, Mapping):
        what = "this is no sequence of steps"
    elif not len(found):
        what = "there is no step"
    elif not isinstance(found[0], Step):
        what, name = "these are no steps", f"{name} of {type(found[0]).__name__}"
    else:
        return found
    raise UsageError(
        what,
        where=f"StepDataset({name})",
        expected=f"steps of a loader, StepDataset(task.load(DATA)), or a table: {WAY}",
    )


def steps_for_workers(steps: Sequence[Step], *, sources: bool) -> Steps:
    """Return steps that worker processes share: those of a file as they are, others as bytes.

    A million steps as Python objects are pickled for every spawned worker, and copied page by page
    into every forked one, because counting references writes to them.

    Args:
        steps: any, in any order.
        sources: whether to keep `Step.source`, which prompts are made from; a file keeps it anyway.
    """
    own = as_steps(steps)
    return own if own.file is not None else own.pack(sources=sources)


_DEFAULT = Decoding()


class StepDataset(Dataset[Item]):
    """Steps of any benchmark; `dataset[i]` decodes step i to an `Item`, also in workers.

    Files are opened on indexing only, so workers may be forked or spawned. A list of steps is kept
    as bytes without `Step.source`, some 300 a step: each spawned worker gets a copy; forked workers
    share it. Steps of the cache are mapped by all workers.

    Args:
        steps: a `LoadedDataset`, a sequence of steps, or a table of `omnidata.load_dataset` or
            `datasets.load_dataset` (see `RowSteps`). A sequence that is neither list nor tuple is
            kept as it is and must be picklable. A stream (`streaming=True`) gives a `StepStream`.
        decoding: roles, sizes (height, width), frames and rates.

    Raises:
        UsageError: `steps` is empty or holds no steps, or no step has a role of `decoding`.
    """

    def __new__(cls, steps: Any = None, decoding: Decoding = _DEFAULT) -> Any:
        """Make a map-style dataset; of a stream an iterable one."""
        if _kind_of_rows(steps) == "IterableDataset":
            return StepStream(steps, decoding)
        return super().__new__(cls)

    def __init__(
        self,
        steps: LoadedDataset | Sequence[Step] | datasets.Dataset,
        decoding: Decoding = _DEFAULT,
    ) -> None:
        found = _steps_of(steps)
        for role in decoding.roles or ():
            _check_role(role, found)
        own = isinstance(found, list | tuple | Steps)
        self._steps = steps_for_workers(found, sources=False) if own else found
        self.decoding = decoding

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, index: int) -> Item:
        """Decode step `index`.

        Raises:
            MediaError: a medium is missing or broken, unless `Decoding(on_error="none")`.
        """
        return decode(self._steps[index], self.decoding)


class StepStream(IterableDataset[Item]):
    """An iterable of steps, decoded one after the other to an `Item` each.

    Each of n DataLoader workers iterates over all steps and decodes every n-th, so every step is
    decoded once; the batches depend on the number of workers. Of a stream of `datasets` each worker
    reads shards of its own; workers beyond the number of shards stay idle. Shuffle a stream with
    its own `shuffle`.

    Args:
        steps: an iterable that starts anew for every epoch, and is picklable if workers are
            spawned; or one split of a stream of rows (see `RowSteps`).
        decoding: as in `StepDataset`.

    Raises:
        UsageError: the steps are an iterator, which is empty from the second epoch on, or rows of a
            table.
    """

    def __init__(
        self, steps: Iterable[Step] | datasets.IterableDataset, decoding: Decoding = _DEFAULT
    ) -> None:
        self._steps: Any = steps
        self._reader: RowReader | None = None
        kind = _kind_of_rows(steps)
        if kind == "IterableDataset":
            rows = cast("datasets.IterableDataset", steps)
            self._reader, self._steps = RowReader.of(rows), rows.with_format("arrow")
        elif kind:
            raise UsageError(
                "rows of a table are no steps",
                where=f"StepStream({kind})",
                expected="StepDataset(rows), which opens a row when it is asked for",
            )
        elif isinstance(steps, Iterator):
            raise UsageError(
                "the steps can be gone through only once",
                where=f"StepStream({type(steps).__name__})",
                expected="an object whose __iter__ begins anew: a list, or a class of your own",
            )
        self.decoding = decoding

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of that epoch, of a stream that is shuffled; call it before each."""
        if self._reader:
            self._steps.set_epoch(epoch)

    def __iter__(self) -> Iterator[Item]:
        steps: Iterable[Step]
        if self._reader:
            rows = enumerate(row for table in self._steps for row in table.to_pylist())
            steps = (self._reader.read(row, f"row {number}") for number, row in rows)
        else:
            worker = get_worker_info()
            first, count = (worker.id, worker.num_workers) if worker else (0, 1)
            steps = islice(self._steps, first, None, count)
        return (decode(step, self.decoding) for step in steps)


def _check_role(role: str, steps: Iterable[Step]) -> None:
    known: set[str] = set()
    for step in steps:
        known.update(step.media)
        if role in known:
            return
    raise UsageError(
        f'no step has a medium "{role}"',
        where="Decoding(roles=...)",
        expected=f"some of {', '.join(sorted(known))}",
        remedy="name roles that the steps have, or leave `roles` out for all",
    )


# The order of training: whole episodes, shuffled, and dealt to the processes of a cluster.

Uneven = Literal["keep", "repeat", "drop"]


class EpisodeSampler(Sampler[int]):
    """Shuffled whole episodes, each in step order.

    The order depends on seed, epoch and steps, not on the number of workers. Several processes
    share the episodes: each gets nearly the same number of steps, constant over the epochs, and
    other episodes in each epoch.

    Args:
        steps: the steps of the dataset, in its order.
        seed: determines the order, together with the epoch.
        shuffle: False keeps the episodes in the order of the steps.
        num_replicas: number of processes.
        rank: number of this process, from 0.
        uneven: how to balance the numbers of steps; required for several processes. "keep" uses
            every step once, so some processes end first, as in evaluation. For training that waits
            for all, as DistributedDataParallel: "repeat" repeats the first steps of the shorter
            ones, "drop" leaves out the last steps of the longer ones.

    Attributes:
        repeated, dropped: steps of an epoch that appear twice, or not at all, in all processes
            together; zero unless `uneven` is "repeat" or "drop".

    Raises:
        UsageError: a seed below 0, a rank out of range, no `uneven` for several processes, or fewer
            episodes than processes that must get equally many steps.

    Examples:
        >>> from omnidata.tasks import get_task
        >>> import json, tempfile, pathlib
        >>> rows = [{"episode_id": id, "step_id": step} for id in "ABCD" for step in range(2)]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "steps.json"
        ...     _ = path.write_text(json.dumps(rows))
        ...     steps = get_task("omnigui").load(path, check_media=False).steps
        >>> order = EpisodeSampler(steps, seed=7)
        >>> order.set_epoch(1)
        >>> [steps[index].sample_id for index in order][:4]
        ['unknown/C/0', 'unknown/C/1', 'unknown/A/0', 'unknown/A/1']
    """

    def __init__(
        self,
        steps: Iterable[Step],
        *,
        seed: int = 0,
        shuffle: bool = True,
        num_replicas: int = 1,
        rank: int = 0,
        uneven: Uneven | None = None,
    ) -> None:
        _check_number("seed", seed)
        if not 0 <= rank < num_replicas:
            raise UsageError(
                f"there is no process {rank}",
                where=f"EpisodeSampler(num_replicas={num_replicas}, rank={rank})",
                expected=f"a rank from 0 to {num_replicas - 1}",
            )
        if uneven not in ("keep", "repeat", "drop") and (num_replicas > 1 or uneven is not None):
            raise UsageError(
                "episodes are whole, so that processes may get different numbers of steps",
                where=f"EpisodeSampler(num_replicas={num_replicas}, uneven={uneven!r})",
                expected='uneven="keep" (evaluation), "repeat" or "drop" (training)',
            )
        self._episodes = _episodes(steps)
        self._seed, self._epoch, self._shuffle, self._rank = seed, 0, shuffle, rank
        lengths = np.array([len(episode) for episode in self._episodes], dtype=np.int64)
        self._by_length = np.argsort(-lengths, kind="stable")
        self._owner = _assign_ranks(lengths[self._by_length], num_replicas)
        self._lengths = lengths
        loads = np.bincount(self._owner, lengths[self._by_length], num_replicas).astype(int)
        if uneven in ("repeat", "drop") and not loads.all():
            raise UsageError(
                f"{len(lengths)} episodes cannot be dealt to {num_replicas} processes",
                where="EpisodeSampler",
                expected="at least one episode for each",
            )
        target = {"repeat": loads.max(), "drop": loads.min()}.get(uneven or "", loads)
        self._length = int(np.broadcast_to(target, loads.shape)[rank])
        self.repeated = int(np.maximum(target - loads, 0).sum())
        self.dropped = int(np.maximum(loads - target, 0).sum())

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of that epoch, from 0; the same in all processes."""
        _check_number("epoch", epoch)
        self._epoch = epoch

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[int]:
        order = np.arange(len(self._lengths))
        by_length = self._by_length
        if self._shuffle:
            np.random.default_rng((self._seed, self._epoch)).shuffle(order)
            # Places are dealt to processes by length, once; episodes take turns in those of theirs.
            by_length = order[np.argsort(-self._lengths[order], kind="stable")]
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        mine = by_length[self._owner == self._rank]
        own = [
            index for number in mine[np.argsort(place[mine])] for index in self._episodes[number]
        ]
        while len(own) < self._length:
            own += own[: self._length - len(own)]
        return iter(own[: self._length])


def _check_number(name: str, value: int) -> None:
    if not isinstance(value, int | np.integer) or value < 0:
        raise UsageError(
            "no order can be made from it",
            where=f"EpisodeSampler, {name} {value}",
            expected="a whole number from 0",
        )


def _episodes(steps: Iterable[Step]) -> list[list[int]]:
    found: dict[str, list[tuple[int, int]]] = {}
    for place, step in enumerate(steps):
        found.setdefault(step.episode, []).append((step.step_index, place))
    return [[place for _, place in sorted(episode)] for episode in found.values()]


def _assign_ranks(lengths: npt.NDArray[np.int64], num_replicas: int) -> npt.NDArray[np.int64]:
    loads = [(0, rank) for rank in range(num_replicas)]
    owners = []
    for length in lengths.tolist():
        load, rank = loads[0]
        heapreplace(loads, (load + length, rank))
        owners.append(rank)
    return np.array(owners, dtype=np.int64)
