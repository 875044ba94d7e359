"""Steps as datasets of PyTorch, decoded where they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from torch.utils.data import Dataset, IterableDataset, get_worker_info

from omnidata.errors import UsageError
from omnidata.torch.item import Decoding, Item, decode
from omnidata.torch.packed import PackedSteps
from omnidata.torch.rows import check_steps, steps_of
from omnidata.types import Source, Step

if TYPE_CHECKING:
    import datasets

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
        self, steps: Source | Sequence[Step] | datasets.Dataset, decoding: Decoding = _DEFAULT
    ) -> None:
        """Pack the steps."""
        found = steps.steps if isinstance(steps, Source) else steps_of(steps) or steps
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
        """Open nothing."""
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
