"""Training data: rows that hold a step each, from a list or streamed from a Parquet repository.

Trainers such as TRL's take datasets of `datasets` alone; DataLoader takes these, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnidata.errors import DataError, OmnidataError
from omnidata.loaders import repository
from omnidata.loaders.rows import BELONGING, DETAILS, Reader, features
from omnidata.media import InMemoryMedia
from omnidata.training.datasets import PackedSteps
from omnidata.types import LoadedDataset, MediaRef, Step, Task

if TYPE_CHECKING:
    import datasets

_CHECKED = 4
"""Steps in a batch that is made to see whether it can be made."""

_NAMED = 5
"""Steps that an error about many names."""


def training_table(task: Task, steps: LoadedDataset | Sequence[Step]) -> datasets.Dataset:
    """Steps as a table whose row i is `{"step": steps[i]}`.

    No medium is opened. The steps are kept as bytes, which forked workers share.

    Args:
        task: that they are steps of.
        steps: what a loader found, or some of its steps.

    Raises:
        DataError: there is no step, or a step has no target.
    """
    import datasets

    found = steps.steps if isinstance(steps, LoadedDataset) else steps
    if not found:
        raise DataError("there is no step to train on", expected="at least one step")
    _check_targets(task, found)
    rows = datasets.Dataset.from_dict({"number": range(len(found))})
    return rows.with_transform(_Lookup(PackedSteps(found, whole=True)))


def check(
    data: datasets.Dataset | datasets.IterableDataset,
    collator: Callable[[list[Any]], Mapping[str, Any]],
    *,
    workers: int = 0,
) -> int:
    """Make every batch once, so that training does not stop at the first step that has none.

    Args:
        data: from `training_table` or `training_stream`.
        collator: the one that training uses.
        workers: processes that decode; 0 decodes here.

    Returns:
        Tokens of the longest step, answer included.

    Raises:
        DataError, MediaError, UsageError: whatever the collator finds wrong; it names the step.
    """
    from torch.utils.data import DataLoader

    lengths = DataLoader(
        data, batch_size=_CHECKED, num_workers=workers, collate_fn=_Measure(collator)
    )
    longest = 0
    for length in lengths:
        if isinstance(length, OmnidataError):
            raise length
        longest = max(longest, length)
    return longest


@dataclass(frozen=True, slots=True)
class _Measure:
    """Counts a batch's tokens; an error is returned, for of one raised DataLoader keeps the text.

    That is a traceback, out of which no place and no remedy can be told.
    """

    collator: Callable[[list[Any]], Mapping[str, Any]]

    def __call__(self, items: list[Any]) -> int | OmnidataError:
        try:
            return int(self.collator(items)["input_ids"].shape[1])
        except OmnidataError as error:
            return error


@dataclass(frozen=True, slots=True)
class _Lookup:
    """Gives rows their steps."""

    steps: PackedSteps

    def __call__(self, rows: Mapping[str, Sequence[int]]) -> dict[str, list[Step]]:
        return {"step": [self.steps[number] for number in rows["number"]]}


def training_stream(
    task: Task, data: Path, name: str = "all", *, seed: int | None = None, buffer: int = 256
) -> datasets.IterableDataset:
    """The rows of a Parquet repository with embedded media, one after the other.

    Nothing but these rows is held in memory, whatever the size of the repository. DataLoader
    workers, and the processes of a cluster, share its shards.

    Args:
        task: whose repository it is.
        data: its folder, as `omnidata convert --embed` wrote it.
        name: the subset.
        seed: shuffles the shards, and the rows through a buffer; None keeps their order. The order
            of later epochs is another one: `stream.set_epoch(1)`, which trainers call.
        buffer: rows among which the next one is chosen.

    Returns:
        Rows `{"step": step}`; the media of a step are in memory, undecoded.

    Raises:
        DataError: it is another benchmark's, its media are not embedded, a medium was broken when
            it was written, or a step has no target.
    """
    manifest = repository.read_manifest(data)
    if not manifest.embed:
        raise DataError(
            "the media of the repository are links",
            where=str(data),
            expected="media in the rows",
            remedy="omnidata convert --embed, or train on the steps: training_table(task, "
            "task.load(DATA))",
        )
    broken = [found for found in manifest.media_findings if found.severity == "error"]
    if broken:
        raise DataError(
            f"{broken[0].where}: {broken[0].what} ({len(broken)} such media)",
            where=str(data),
            expected="media that can be decoded",
            remedy="mend the source or leave these steps out, and convert again",
        )
    found = repository.open_dataset(data, task.name, name, split="test", streaming=True)
    _check_targets(task, repository.subset_steps(data, manifest, name))
    if seed is not None:
        found = found.shuffle(seed=seed, buffer_size=buffer)
    columns = [*features(manifest.tags, manifest.roles), *repository.extra_features()]
    columns += [name for name in (*BELONGING, DETAILS) if name in (found.column_names or ())]
    return found.map(_Rows(data, manifest), remove_columns=columns)


@dataclass(slots=True)
class _Rows:
    """Makes steps of a repository's rows."""

    data: Path
    manifest: repository.Manifest
    reader: Reader = field(init=False)

    def __post_init__(self) -> None:
        self.reader = Reader(self.manifest.tags, self.manifest.task)

    def __call__(self, row: Mapping[str, Any]) -> dict[str, Step]:
        media: dict[str, MediaRef | None] = dict.fromkeys(self.manifest.roles)
        for role, kind in self.manifest.roles.items():
            if (cell := row[role]) is not None:
                name = cell["path"] or role
                media[role] = InMemoryMedia(kind, self.data, name, content=cell["bytes"])
        screens = tuple((screen["width"], screen["height"]) for screen in row["history_screens"])
        try:
            return {"step": self.reader.step(row, media=media, history_screens=screens)}
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise DataError(
                f"a row is no step ({type(error).__name__}: {error})",
                where=str(self.data),
                expected="a repository as `omnidata convert` of this version writes it",
                remedy="convert the source again",
            ) from None


def _check_targets(task: Task, steps: Iterable[Step]) -> None:
    """Raise a DataError that names the first of these steps that lack one, if any do."""
    names = [step.sample_id for step in steps if task.target(step) is None]
    if names:
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        raise DataError(
            f"{len(names)} steps have no target: {', '.join(names[:_NAMED])}{more}",
            expected="steps that say what is right",
            remedy="leave them out: [step for step in source.steps if task.target(step)]",
        )
