"""The benchmark that data are rows of, where the user does not name it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from omnidata.cli import terminal
from omnidata.errors import DataError, OmnidataError, UsageError, meant


def data_of(task: str | None, place: Path) -> Path:
    """The place, or its folder `data` where only that holds data: what `omnidata demo` was given.

    Args:
        task: the benchmark, built in or a plug-in's; None where it is not known yet.
        place: as the user named it.
    """
    from omnidata.files import inside, real

    inner = place / "data"
    own = inner.is_dir() and inside(real(inner), [real(place)])  # and no link of somebody else's
    if not own or _holds(place, task) or not _holds(inner, task):
        return place
    terminal.note(f"{place} itself is no data, {inner} is: it is what is read")
    return inner


def _holds(place: Path, task: str | None) -> bool:
    """Whether some benchmark's rows are there; a plug-in alone can say whether they are its own."""
    from omnidata.loaders.recognition import SIGNATURES, recognised
    from omnidata.loaders.repository import is_repository
    from omnidata.tasks import PLUGINS, get_task

    if is_repository(place):
        return True
    if task is None or task in SIGNATURES or task not in PLUGINS.names():
        return bool(recognised(place))
    try:
        get_task(task).load(place, check_media=False)
    except (OmnidataError, OSError):  # plug-ins need not know our errors
        return False
    return True


def only_task(data: Path, usage: str, naming: Callable[[str, object], str]) -> str:
    """The benchmark that the data are rows of.

    Args:
        data: the dataset's folder or file.
        usage: of the verb, for messages.
        naming: the command for a task and its data.

    Raises:
        UsageError: they may be several's, or a benchmark is named in place of the data.
        DataError: nothing is there, or rows of no benchmark.
    """
    from omnidata.loaders.recognition import either, recognised
    from omnidata.tasks import NAMES

    if not data.exists():
        if str(data) in NAMES:
            raise UsageError("there is no data to look at", expected=naming(str(data), "DATA"))
        raise DataError(
            "there is no such file or folder",
            where=str(data),
            expected="the dataset's place",
            remedy=meant(str(data), NAMES),
        )
    found = recognised(data)
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"these may be rows of {either(found)}",
            where=str(data),
            expected=usage,
            remedy=f"name the task: {naming(found[0], data)}",
        )
    raise DataError(
        "these are rows of no benchmark that is known, or broken ones",
        where=str(data),
        expected=f"data of {either(list(NAMES))}",
        remedy=f"name the task to see what is wrong: {naming('TASK', data)}",
    )
