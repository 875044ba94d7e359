"""An order in which episodes stay whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapreplace
from typing import Literal

import numpy as np
import numpy.typing as npt
from torch.utils.data import Sampler

from omnidata.errors import UsageError
from omnidata.types import Step

Uneven = Literal["keep", "repeat", "drop"]


class EpisodeSampler(Sampler[int]):
    """Whole episodes, one after the other, each in step order; the episodes are shuffled.

    The order depends on the seed, the epoch and the steps alone: not on the number of workers,
    which only decode. Over several processes of a cluster each episode goes to one of them. Every
    process gets nearly the same number of steps, the same in every epoch, but other episodes.

    Args:
        steps: the dataset's, in its order.
        seed: decides the order, together with the epoch.
        shuffle: False keeps the episodes in the order of the steps.
        num_replicas: how many processes share the steps.
        rank: the number of this one, from 0.
        uneven: what to do if the processes cannot get equally many steps; must be said when there
            are several. "keep": every step once, so that some processes end before others, as in
            evaluation. "repeat": the shorter ones show their first steps again at the end, and
            "drop": the longer ones leave out their last ones, for training that waits for all, as
            DistributedDataParallel does.

    Attributes:
        repeated, dropped: how many steps an epoch shows twice, or not at all, in all processes
            together; zero unless `uneven` says otherwise.

    Raises:
        UsageError: a seed below 0, a rank out of range, `uneven` not said, or fewer episodes than
            processes that must get equally many.

    Examples:
        >>> from omnidata.tasks.omnigui.load import load
        >>> import json, tempfile, pathlib
        >>> rows = [{"episode_id": id, "step_id": step} for id in "ABCD" for step in range(2)]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "steps.json"
        ...     _ = path.write_text(json.dumps(rows))
        ...     steps = load(path, check_media=False).steps
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
        self._owner = _dealt(lengths[self._by_length], num_replicas)
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
    """The places of every episode's steps, in step order; episodes in the order met."""
    found: dict[str, list[tuple[int, int]]] = {}
    for place, step in enumerate(steps):
        found.setdefault(step.episode, []).append((step.step_index, place))
    return [[place for _, place in sorted(episode)] for episode in found.values()]


def _dealt(lengths: npt.NDArray[np.int64], num_replicas: int) -> npt.NDArray[np.int64]:
    """For each episode, longest first, the process with the fewest steps so far."""
    loads = [(0, rank) for rank in range(num_replicas)]
    owners = []
    for length in lengths.tolist():
        load, rank = loads[0]
        heapreplace(loads, (load + length, rank))
        owners.append(rank)
    return np.array(owners, dtype=np.int64)
