"""Which benchmarks' rows some data are, by a look at their beginning."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from omnidata import registry
from omnidata.errors import DataError, OmnidataError
from omnidata.files import staying_in
from omnidata.loaders.repository import is_repository, read_manifest
from omnidata.types import Task

_LOOKING: ContextVar[bool] = ContextVar("looking", default=False)
"""Whether tasks are being asked already: one may read the data to tell, and fail with an error
whose remedy would ask them all again."""


def recognised(data: Path) -> list[str]:
    """The benchmarks whose rows the data seem to be; some have the same columns.

    Args:
        data: a file, a folder, or a Parquet repository, which says what it holds.

    Raises:
        FileError: the data are neither a folder nor a file that is ever opened.
    """
    with staying_in(data):
        if not is_repository(data):
            token = _LOOKING.set(True)
            try:
                return [task for task in registry.names() if _recognises(data, task)]
            finally:
                _LOOKING.reset(token)
        try:
            task = read_manifest(data).task
        except DataError:
            return []
        return [task] if task in registry.names() else []


def task_for(data: Path, wanted: Callable[[Task], bool]) -> str:
    """The task of a kind that takes the data: the only one, or that whose rows they are.

    Args:
        data: a file, a folder, or a Parquet repository.
        wanted: whether a task is of the kind.

    Raises:
        DataError: of several tasks of the kind none takes the data, or more than one does.
    """
    takes: dict[str, str] = {}
    for name, task in registry.working():
        if wanted(task):
            takes[name] = task.asks_about or name
    if len(takes) > 1:
        rows = recognised(data)
        kinds, takes = takes, {name: own for name, own in takes.items() if own in rows}
        if len(takes) != 1:
            raise DataError(
                f"{either(list(takes))} all take the data" if takes else "no task takes the data",
                where=str(data),
                expected=f"rows of {either(sorted(set(kinds.values())))}, which one task takes",
                remedy="uninstall the distributions of the others" if takes else "name other data",
            )
    (name,) = takes
    return name


def _recognises(data: Path, task: str) -> bool:
    try:
        return bool(registry.get_task(task).detect(data))
    except (OmnidataError, OSError):  # a broken plug-in has no say about data of others
        return False


@contextmanager
def reading(data: Path, task: str, *beside: Path) -> Iterator[None]:
    """Read data in the block: nothing outside them is opened, and an error names their benchmark.

    The remedy of a `DataError` names the benchmarks that the data are rows of; an error about data
    that may be rows of `task` stays as it is.

    Args:
        data: as the user named it.
        task: the benchmark as which it is read.
        beside: what else belongs to the data, as in `omnidata.files.staying_in`.

    Raises:
        FileError: a file of the data is not opened, see `omnidata.files`.
    """
    try:
        with staying_in(data, *beside):
            yield
    except DataError as error:
        others = [] if _LOOKING.get() else recognised(data)
        if not others or task in others:
            raise
        raise DataError(
            error.what,
            where=error.where,
            expected=error.expected,
            remedy=f"these are rows of {either(others)}: name that task, or other data",
        ) from None


def either(names: list[str]) -> str:
    """The names as a choice.

    Examples:
        >>> either(["groundui", "idm-single", "omnigui"])
        'groundui, idm-single or omnigui'
    """
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last
