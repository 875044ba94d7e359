"""Training data as tables of `datasets`: steps, rows of a Parquet repository, rows of an export.

Trainers such as TRL's take such tables alone; DataLoader takes them, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from omnidata import media
from omnidata.adapters.media_budget import parts_of
from omnidata.errors import DataError, FileError, MissingMediaError, OmnidataError, UsageError
from omnidata.files import STREAMED, open_file, read_file
from omnidata.loaders import repository
from omnidata.loaders.rows import RowReader
from omnidata.run.selection import Split
from omnidata.storage import PLAN
from omnidata.tasks.asking import Asking
from omnidata.tasks.common_options import AT_LOADING
from omnidata.training.datasets import steps_for_workers
from omnidata.training.examples import Example, read
from omnidata.training.export_files import REPORT
from omnidata.training.formats import AnswerFormat, find_format
from omnidata.types import Conversation, LoadedDataset, Message, Step

if TYPE_CHECKING:
    import datasets
    import numpy as np
    import numpy.typing as npt


_CHECKED = 4
"""The batch size of `check`."""

_NAMED = 5
"""The number of steps that an error names."""


def training_table(task: Asking, steps: LoadedDataset | Sequence[Step]) -> datasets.Dataset:
    """Return steps as a table whose row i is `{"step": steps[i]}`.

    No medium is opened. The steps are kept as bytes, which forked workers share.

    Args:
        task: the benchmark of the steps.
        steps: the result of a loader, or some of its steps.

    Raises:
        DataError: there is no step, or a step has no target.
    """
    import datasets

    found = steps.steps if isinstance(steps, LoadedDataset) else steps
    if not found:
        raise DataError(
            "there is no step to train on",
            expected="at least one step",
            remedy="pass the steps of a loader: task.load(DATA)",
        )
    _check_targets(task, found)
    rows = datasets.Dataset.from_dict({"number": range(len(found))})
    return rows.with_transform(partial(_look_up, steps_for_workers(found, sources=True)))


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
        DataError, MediaError, UsageError: of the collator; the message names the step.
    """
    from torch.utils.data import DataLoader

    measure = partial(_measure, collator)
    lengths = DataLoader(data, batch_size=_CHECKED, num_workers=workers, collate_fn=measure)
    longest = 0
    for length in lengths:
        if isinstance(length, OmnidataError):
            raise length
        longest = max(longest, length)
    return longest


def _measure(
    collator: Callable[[list[Any]], Mapping[str, Any]], items: list[Any]
) -> int | OmnidataError:
    """Return a batch's tokens, or its error: one that a worker raises loses place and remedy."""
    try:
        return int(collator(items)["input_ids"].shape[1])
    except OmnidataError as error:
        return error


def _look_up(steps: Sequence[Step], rows: Mapping[str, Sequence[int]]) -> dict[str, list[Step]]:
    return {"step": [steps[number] for number in rows["number"]]}


def training_stream(
    task: Asking, data: Path, name: str = "all", *, seed: int | None = None, buffer: int = 256
) -> datasets.IterableDataset:
    """Return the rows of a Parquet repository with embedded media, as a stream.

    Nothing but these rows is held in memory, whatever the size of the repository. DataLoader
    workers, and the processes of a cluster, share its shards.

    Args:
        task: the benchmark of the repository.
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
        UsageError: an option of the task needs more than a row at a time.
    """
    for option in AT_LOADING:
        if option in task.options and option not in task.allowed:
            raise UsageError(
                "a stream has one row at a time, and the option needs all steps",
                where=f"-T {option}={task.options[option]}",
                expected="a task without it",
                remedy="train on the steps: training_table(task, task.load(DATA))",
            )
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
            remedy="correct the source or leave these steps out, and convert again",
        )
    found = repository.open_dataset(data, task.name, name, split="test", streaming=True)
    _check_targets(task, repository.subset_steps(data, manifest, name))
    if seed is not None:
        found = found.shuffle(seed=seed, buffer_size=buffer)
    reader = RowReader(manifest.tags, manifest.roles, manifest.task)
    return found.map(partial(_to_step, reader, str(data)), remove_columns=found.column_names)


def _to_step(reader: RowReader, where: str, row: Mapping[str, Any]) -> dict[str, Step]:
    return {"step": reader.read(row, where)}


def _check_targets(task: Asking, steps: Iterable[Step]) -> None:
    names = [step.sample_id for step in steps if task.target(step) is None]
    if names:
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        raise DataError(
            f"{len(names)} steps have no target: {', '.join(names[:_NAMED])}{more}",
            expected="steps with targets",
            remedy="leave them out: [step for step in source.steps if task.target(step)]",
        )


# Rows of an export, read back: what `omnidata export` wrote, in any of its formats.

_LONGEST = 64 * 1024**2
"""Bytes of a row: a prompt has thousands."""


class _Options(msgspec.Struct):
    format: str


class _Written(msgspec.Struct):
    steps: int


class _Report(msgspec.Struct):
    """`export.json`; with fixed sizes the prompts state the sizes of the written pictures."""

    options: _Options
    task_options: dict[str, str]
    splits: dict[Split, _Written]
    fixed_sizes: bool = False
    special_tokens: bool = False


def exported_table(out: Path, split: Split = "train") -> datasets.Dataset:
    """Return the rows of an export as a table whose row i is `{"example": Example}`.

    Every row is read once to see that it is one; no medium is opened before it is decoded, when it
    must still have the hash that it is named after. Nothing but the places of the rows is held in
    memory.

    Args:
        out: what `omnidata export` wrote, in any of its formats.
        split: which of its files.

    Raises:
        DataError: it is no export, an unfinished one, of an unknown format or without such rows; a
            row is none of the format, has more or fewer media than placeholders, names what is no
            medium of an export, or leaves places of its answer to ms-swift; or there are more or
            fewer rows than were written.
        MissingMediaError: a medium is not there.
    """
    import datasets

    report = _report(out)
    name = report.options.format
    form = find_format(name)
    if not isinstance(form, AnswerFormat):
        raise DataError(
            f"rows of {name} have no answers to learn"
            if form
            else f"no installed format is called {name}",
            where=str(out),
            expected="an export with right answers",
            remedy="train with a reward (docs/reinforce.md), or export with another --format",
        )
    if split not in report.splits:
        raise DataError(
            f"the export has no {split} rows",
            where=str(out),
            expected=f"one of {', '.join(report.splits)}",
            remedy="name one of these, or export again with another --split",
        )
    file = _File(out.absolute() / f"{split}{form.suffix}", form, report)
    starts = file.starts(report.splits[split].steps)
    rows = datasets.Dataset.from_dict({"number": range(len(starts))})
    return rows.with_transform(partial(_examples_at, file, starts))


def _report(out: Path) -> _Report:
    path = out / REPORT
    try:
        return msgspec.json.decode(read_file(path), type=_Report)
    except OSError as error:
        begun = (out / PLAN, out.with_name(f".{out.name}.unfinished"))
        unfinished = any(place.exists() for place in begun)
        what = "the export is unfinished" if unfinished else "this is no export"
        reason = error.strerror
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        what, reason = "the export cannot be read", str(error)
    raise DataError(
        f"{what} ({reason})",
        where=str(path),
        expected="a complete export of this version",
        remedy="export again; the same command resumes an interrupted export",
    )


@dataclass(frozen=True, slots=True)
class _File:
    """The rows of a split; the media lie beside the file."""

    path: Path
    form: AnswerFormat
    report: _Report

    def starts(self, count: int) -> npt.NDArray[np.int64]:
        """Check all `count` rows, and return the byte at which each begins."""
        import numpy as np

        begins: list[int] = []
        following = 0
        there: set[str] = set()
        with self.open() as file:
            while line := file.readline(_LONGEST + 1):
                number = len(begins) + 1
                begins.append(following)
                following += len(line)
                parts = parts_of(self.example(line, number).prompt)
                for ref in filter(None, (part.media for part in parts)):
                    if ref.path not in there and not (ref.root / ref.path).is_file():
                        raise MissingMediaError(
                            f"{ref.path} is missing",
                            where=f"{self.path}:{number}",
                            expected=f"a file below {ref.root}",
                            remedy="copy the export with its media, or export again",
                        )
                    there.add(ref.path)
        if len(begins) != count:
            raise DataError(
                f"there are {len(begins)} rows",
                where=str(self.path),
                expected=f"{count}, as {REPORT} says",
                remedy="export again",
            )
        return np.array(begins, dtype=np.int64)

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        try:
            if self.path.is_symlink():
                raise FileError("a link is not a regular file of the export")
            with open_file(self.path, STREAMED) as file:
                yield file
        except OSError as error:
            raise DataError(
                f"the rows cannot be read ({error.strerror})",
                where=str(self.path),
                expected="the file that the export wrote",
                remedy="copy the export with `cp -rL`, or export again",
            ) from None

    def example(self, line: bytes, number: int) -> Example:
        where = f"{self.path}:{number}"
        if len(line) > _LONGEST:
            raise DataError(
                "the row is too long",
                where=where,
                expected=f"{_LONGEST} bytes at most",
                remedy="export again: exports have no rows of this length",
            )
        try:
            found = read(line, self.form, self.path.parent)
        except DataError as error:
            error.where = where
            raise
        report = self.report
        in_pixels = report.fixed_sizes or report.task_options.get("coordinates") == "px"
        return replace(
            found, size="own" if in_pixels else None, special_tokens=report.special_tokens
        )


def _examples_at(
    rows: _File, starts: npt.NDArray[np.int64], asked: Mapping[str, Sequence[int]]
) -> dict[str, list[Example]]:
    found: list[Example] = []
    with rows.open() as file:
        for number in asked["number"]:
            file.seek(int(starts[number]))
            one = rows.example(file.readline(_LONGEST + 1), number + 1)
            fixed = rows.report.fixed_sizes
            found.append(replace(one, prompt=_with_sizes(one.prompt)) if fixed else one)
    return {"example": found}


def _with_sizes(prompt: Conversation) -> Conversation:
    return tuple(
        Message(
            turn.role,
            tuple(
                replace(part, size=media.image_size(part.media))
                if part.media and part.kind == "image"
                else part
                for part in turn.parts
            ),
        )
        for turn in prompt
    )
