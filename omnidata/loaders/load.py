"""Common parts of loaders: recognise the benchmark, place findings, refuse them by `--strict`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from omnidata import registry
from omnidata.actions import Screen
from omnidata.errors import (
    DataError,
    Finding,
    MediaError,
    StoreError,
    UnusableRowError,
    plural,
)
from omnidata.files import staying_in
from omnidata.jsontext import is_integer
from omnidata.loaders import repository, steps_cache
from omnidata.loaders.files import OTHER_DATA, SKIPPED
from omnidata.loaders.steps import Steps
from omnidata.media import InMemoryMedia, image_size, unpack_command, unsafe
from omnidata.types import LoadedDataset, MediaRef, Step

if TYPE_CHECKING:
    from omnidata.tasks.benchmark import Benchmark

# The place of a row, and where its findings go.

Note = Callable[[Finding], None]


def about(note: Note, *sample_ids: str) -> Note:
    """Add the ids of steps to findings that name none.

    Args:
        note: takes the findings.
        sample_ids: of these steps.
    """

    def tell(finding: Finding) -> None:
        note(finding if finding.sample_ids else replace(finding, sample_ids=sample_ids))

    return tell


@dataclass(frozen=True, slots=True)
class RowContext:
    """The position of a row, and the receiver of its findings."""

    where: str
    note: Note

    def warn(self, code: str, what: str, expected: str, remedy: str = "correct the row") -> None:
        """Report a warning; the row is kept."""
        self.note(Finding(code, "warning", self.where, what, expected, remedy))

    def refuse(self, code: str, what: str, expected: str, remedy: str = SKIPPED) -> bool:
        """Report why the row is skipped, and return False, so that a check can end with it."""
        self.note(Finding(code, "error", self.where, what, expected, remedy))
        return False

    def leave_unjudged(self, code: str, what: str, expected: str) -> None:
        """Report why a step has no target; the row is kept."""
        self.refuse(code, what, expected, "correct the row; the step is not judged until then")


def short(value: object) -> str:
    """Return a value as text for a message."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # more digits than Python writes, or too many levels
        text = f"a {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."


_LONGEST_SIDE = 65_535  # more than pictures of any format here can have


def stated_size(width: object, height: object, place: RowContext) -> Screen:
    """Return width and height of a screenshot as a row states them; (0, 0) if they are not a size.

    Args:
        width: the row's value; None if it has none.
        height: likewise.
        place: where the finding goes.
    """
    sides = range(1, _LONGEST_SIDE + 1)
    if is_integer(width) and is_integer(height) and width in sides and height in sides:
        return width, height
    if width is not None or height is not None:
        place.warn(
            "size-unusable",
            f"the screenshot's size is {short(width)} x {short(height)}",
            f"two whole numbers from 1 to {_LONGEST_SIDE}",
            "correct the row; the size counts as unknown until then",
        )
    return 0, 0


def size_of(picture: MediaRef | None) -> Screen:
    """Return width and height of a screenshot; (0, 0) if it is missing or unreadable.

    The check of the media reports the fault.
    """
    try:
        return image_size(picture) if picture else (0, 0)
    except MediaError:
        return 0, 0


def picture_broken(place: RowContext, what: str, expected: str) -> None:
    """Report an unusable screenshot within a record.

    Args:
        place: the step, or the name of the picture.
        what: what is wrong with it.
        expected: what would be right.
    """
    place.refuse(
        "media-broken",
        f"screenshot: {what}",
        expected,
        "download the file again; until then models skip this step",
    )


def check_picture(content: bytes, stated: Screen, place: RowContext) -> None:
    """Report a screenshot within a record that is unreadable or of another size.

    Args:
        content: the file of the picture.
        stated: its width and height in pixels by the row.
        place: the step, or the name of the picture.
    """
    try:
        size = image_size(InMemoryMedia("image", Path(), place.where, content=content))
        what = f"it has {size[0]} x {size[1]} pixels, the row says {stated[0]} x {stated[1]}"
    except MediaError as error:
        size, what = None, error.what
    if size != stated:
        picture_broken(place, what, "a picture of that size")


# Checks for a rule that assigns steps to episodes and groups (`Benchmark.group`).


def tag_of(step: Step, name: str) -> str:
    """Return a tag that each step of the benchmark has.

    Raises:
        UnusableRowError: this step has not.
    """
    value = step.tags.get(name)
    if value is None:
        raise UnusableRowError(f"{step.sample_id} has no {name}")
    return value


def check_screen(step: Step) -> None:
    """Check that the screen has a size, by which coordinates are divided.

    Raises:
        UnusableRowError: it has no size.
    """
    if min(step.screen) < 1:
        raise UnusableRowError(
            f"{step.sample_id} has a screen of {step.screen[0]} x {step.screen[1]}"
        )


# Paths of media that are never followed: the findings say so, whichever loader made the steps.


def unsafe_paths(source: LoadedDataset) -> list[Finding]:
    """Return a finding for each medium whose path leads out of its folder, if not yet reported.

    Such a medium is never opened, so nothing else reports it.

    Args:
        source: with the findings of its loader.
    """
    users: dict[tuple[Path, str], tuple[str, dict[str, None]]] = {}
    for step in source.steps:
        for role, ref in step.media.items():
            if ref and ref.inline is None and ref.cell is None and unsafe(ref.path):
                # A later step may show the same medium in another role.
                _, names = users.setdefault((ref.root, ref.path), (role, {}))
                names[step.sample_id] = None
    reported = {
        name
        for found in source.findings
        if users and found.code == "path-unsafe"
        for name in (found.where, *found.sample_ids)
    }
    return [
        Finding(
            "path-unsafe",
            "error",
            next(iter(names)),
            f"{role.replace('_', ' ')} {short(path)}: {unsafe(path)}",
            f"a path relative to {root}",
            f"correct the path; the {'step lacks' if len(names) == 1 else 'steps lack'} the "
            f"{role.replace('_', ' ')} until then",
            tuple(names),
        )
        for (root, path), (role, names) in users.items()
        if reported.isdisjoint(names)
    ]


# Recognise the benchmarks of data from their first rows.

_LOOKING: ContextVar[bool] = ContextVar("looking", default=False)
"""Whether tasks are being asked already: one may read the data to tell, and fail with an error
whose remedy would ask them all again."""


def recognise(data: Path) -> list[str]:
    """Return the benchmarks that the rows of the data fit; some have the same columns.

    Args:
        data: a file, a folder, or a Parquet repository, which names its benchmark.

    Raises:
        FileError: the data are neither a folder nor a file that may be opened.
    """
    with staying_in(data):
        if not repository.is_repository(data):
            token = _LOOKING.set(True)
            try:
                return [task for task in registry.names() if _recognises(data, task)]
            finally:
                _LOOKING.reset(token)
        try:
            task = repository.read_manifest(data).task
        except DataError:
            return []
        return [task] if task in registry.names() else []


def task_for(data: Path, wanted: Callable[[Benchmark], bool], does: str) -> str:
    """Return the task of a kind that reads the data.

    The only task of its kind also gets unknown data, and says what is wrong with them.

    Args:
        data: a file, a folder, or a Parquet repository.
        wanted: returns whether a task is of the kind.
        does: the verb of such a task, in a message before "such rows".

    Raises:
        DataError: no task of the kind takes the data, or several do.
    """
    kind = {name: one.data_of for name, one in registry.working() if wanted(one)}
    rows = recognise(data)
    takes = {name: own for name, own in kind.items() if own in rows}
    if len(kind) == 1 and not rows:
        takes = kind
    if len(takes) != 1:
        what = f"{either(list(takes))} all take the data" if takes else "no task takes the data"
        if rows and not takes:
            what = f"these are rows of {either(rows)}, and no task {does} such rows"
        raise DataError(
            what,
            where=str(data),
            expected=f"rows of {either(sorted(set(kind.values())))}"
            + (", which one task takes" if takes else ""),
            remedy="uninstall the distributions of the others" if takes else "name other data",
        )
    (name,) = takes
    return name


def _recognises(data: Path, task: str) -> bool:
    try:
        return bool(registry.get_benchmark(task).recognises(data))
    except StoreError:
        raise
    except Exception:  # a broken plug-in has no say about data of others
        return False


@contextmanager
def reading(data: Path, task: str, *beside: Path) -> Iterator[None]:
    """Read data in the block: nothing else is opened, and an error names their benchmark.

    The fix of a `DataError` names the benchmarks of the rows, before the loader's own words, since
    rows of others may be among them. An error about data that may be rows of `task` stays as it is.

    Args:
        data: as the user named them.
        task: the benchmark that reads them.
        beside: further paths of the data, as in `omnidata.files.staying_in`.

    Raises:
        FileError: a file of the data is not opened, see `omnidata.files`.
        DataError: the data are a zip.
    """
    if data.suffix.lower() == ".zip" and data.is_file():
        raise DataError(
            "the data are in a zip",
            where=str(data),
            expected="its folder",
            remedy=unpack_command(data),
        )
    try:
        with staying_in(data, *beside):
            yield
    except DataError as error:
        others = [] if _LOOKING.get() else recognise(data)
        if not others or task in others:
            raise
        advice = f"these are rows of {either(others)}: name that task, or "
        if error.remedy.startswith(advice):  # a block inside this one has said it
            raise
        raise DataError(
            error.what,
            where=error.where,
            expected=error.expected,
            remedy=advice + ("other data" if error.remedy in ("", OTHER_DATA) else error.remedy),
        ) from None


def either(names: list[str]) -> str:
    """Return the names as a choice.

    Examples:
        >>> either(["groundui", "idm-single", "omnigui"])
        'groundui, idm-single or omnigui'
    """
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


# `--strict`: data with a finding are refused.


def refuse_findings(findings: Sequence[Finding], data: Path) -> None:
    """Raise an error if there are findings.

    Args:
        findings: about the data.
        data: as the user named them.

    Raises:
        DataError: there are findings; the first one is in the message.
    """
    if findings:
        raise DataError(
            f"{plural(len(findings), 'finding')}, the first: {findings[0]}",
            where=str(data),
            expected="no finding, because of --strict",
            remedy="correct the data, or leave out --strict",
        )


def load_data(
    data: Path,
    task: str,
    tags: Sequence[str] | None,
    read: Callable[[], LoadedDataset],
    *,
    strict: bool,
    check_media: bool,
    beside: Sequence[Path] = (),
    depends: Sequence[object] | None = None,
) -> LoadedDataset:
    """Load the steps of a Parquet repository, or of the benchmark's own files.

    Args:
        data: as the user named them.
        task: the benchmark.
        tags: those of its steps; None if they depend on the data.
        read: reads the benchmark's own files.
        strict: make the first finding an error.
        check_media: whether to check the media of a repository.
        beside: further paths of the data, as in `reading`.
        depends: all else that the steps follow from, such as options; None if unknown, and then
            many steps are not kept in the cache.

    Raises:
        DataError: the data are unreadable as the benchmark; the fix names another benchmark if the
            rows fit it. Or `strict` is set and there is a finding.
    """

    def read_all() -> LoadedDataset:
        if repository.is_repository(data):
            source = repository.load(data, task, tags, check_media=check_media)
        else:
            source = read()
        if not isinstance(source.steps, Steps):
            source = replace(source, steps=Steps.of(source.steps))
        if more := unsafe_paths(source):
            source = replace(source, findings=[*source.findings, *more])
        return source

    with reading(data, task, *beside):
        if depends is None:
            source = read_all()
        else:
            origin = steps_cache.Origin(task, data, beside, depends, check_media)
            source = steps_cache.load(read_all, origin)
    if strict:
        refuse_findings(source.findings, data)
    return source
