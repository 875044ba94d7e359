"""The benchmark that data are rows of, where the user does not name it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from omnidata.errors import DataError, UsageError


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
            "there is no such file or folder", where=str(data), expected="the dataset's place"
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
