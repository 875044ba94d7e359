"""The data that a verb is about: where they are, whose rows they are, and lists of their steps."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from omnidata import registry
from omnidata.cli import terminal
from omnidata.errors import DataError, UsageError, plural, suggestion

if TYPE_CHECKING:
    from omnidata.tasks.benchmark import Benchmark

# The benchmark that data are rows of, where the user does not name it.


def data_of(task: str | None, place: Path) -> Path:
    """Return the place, or its folder `data` if only that holds data, as after `omnidata demo`.

    Args:
        task: the benchmark, built in or a plug-in's; None where it is not known yet.
        place: as the user named it: a path, a URL, a dataset of the Hub, or `auto`.

    Raises:
        DataError: the Hub does not give the dataset, see `omnidata.loaders.data_place.local_place`.
    """
    from omnidata.files import inside, real

    if not os.path.exists(place):  # noqa: PTH110  False for names that no file can have
        from omnidata.loaders.data_place import local_place

        with terminal.resumable(), terminal.bytes_progress("fetching") as moves:
            place = local_place(place, task, terminal.note, moves)
    inner = place / "data"
    own = inner.is_dir() and inside(real(inner), [real(place)])  # and no link that leads outside
    if not own or _holds(place, task) or not _holds(inner, task):
        return place
    terminal.note(f"reading {inner}: {place} itself holds no data")
    return inner


def _holds(place: Path, task: str | None) -> bool:
    from omnidata.loaders.load import recognise
    from omnidata.loaders.repository import is_repository

    if is_repository(place):
        return True
    benchmark = registry.find_benchmark(task) if task else None
    if benchmark is None or benchmark.about or _says(benchmark, place):
        return bool(recognise(place))
    try:
        benchmark.load(place, check_media=False)
    except Exception:  # plug-ins need not know our errors
        return False
    return True


def _says(benchmark: Benchmark, place: Path) -> bool:
    from omnidata.files import staying_in

    try:
        with staying_in(place):
            return benchmark.recognises(place) is not None
    except Exception:  # a broken plug-in recognises nothing
        return True


def only_task(data: Path, command: str, usage: str = "") -> str:
    """Return the benchmark that the data are rows of.

    Args:
        data: the dataset's folder or file.
        command: for messages, with TASK and DATA in place of both.
        usage: all forms of the command; the command itself if empty.

    Raises:
        UsageError: they may be several's, or a benchmark is named in place of the data.
        DataError: nothing is there, or rows of no benchmark.
    """
    from omnidata.loaders.load import either, recognise

    if not data.exists():
        if str(data) in registry.names():
            raise UsageError("no data is named", expected=command.replace("TASK", str(data)))
        raise DataError(
            "there is no such file or folder",
            where=str(data),
            expected="the dataset's folder or file",
            remedy=suggestion(str(data), registry.names())
            or "check the path; `omnidata info` lists the tasks",
        )
    found, on_data = recognise(data), command.replace("DATA", str(data))
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"the data fit {either(found)}",
            where=str(data),
            expected=usage or command,
            remedy=f"name the task: {on_data.replace('TASK', found[0])}",
        )
    raise DataError(
        "the data fit no known benchmark, or are broken",
        where=str(data),
        expected=f"data of {either(registry.benchmarks())}",
        remedy=f"name the task to see the problems: {on_data}",
    )


# Lists of steps to leave out.


def check_exclude(path: Path, *, head: str, flag: str) -> None:
    """Refuse to write sample ids over what another program wrote, before hours are spent.

    Args:
        path: where they are to be written.
        head: of such a file, which distinguishes it from other files.
        flag: that names the path, for the message.

    Raises:
        UsageError: the file is another's, or cannot be written.
    """
    from omnidata.storage import is_writable

    if path.is_file():
        with path.open("rb") as file:
            mine = file.read(len(head) + 2) == f"# {head}".encode()
    else:
        mine = not path.exists()
    if not mine or not is_writable(path.parent):
        raise UsageError(
            "the file cannot be written here",
            where=f"{flag} {path}",
            expected="a new file in an existing folder, or a file that this verb wrote earlier",
            remedy="choose another name",
        )


def check_new_file(path: Path, where: str) -> None:
    """Refuse to write corrections over another file.

    Args:
        path: where they are to be written.
        where: the argument, for the message.

    Raises:
        UsageError: the file exists, or its folder does not.
    """
    if path.exists() or not path.parent.is_dir():
        raise UsageError(
            "corrections are not written over another file",
            where=where,
            expected="a new file in an existing folder",
            remedy="choose another name",
        )


def write_exclude(path: Path, ids: Sequence[str], *, head: str) -> None:
    """Write sample ids for `evaluate --exclude`, and say how many."""
    from omnidata.run import selection

    lacking = selection.write_exclude(path, ids, head=head)
    terminal.note(f"{plural(len(ids) - len(lacking), 'step')} to leave out: {path}")
    for sample in lacking:
        terminal.note(f"not written: rename this id, such a file cannot hold it: {sample}")
