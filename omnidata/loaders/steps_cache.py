"""Where the files of steps lie."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable

from omnidata.errors import DataError
from omnidata.loaders.spill import VARIABLE
from omnidata.loaders.step_file import StepFile, StepWriter
from omnidata.types import Step


def write(steps: Iterable[Step]) -> StepFile:
    """Write steps to a file.

    Raises:
        DataError: the disk takes no more.
    """
    # It has no name from its first moment on and is this user's alone.
    with tempfile.TemporaryFile(prefix="omnidata-") as file:
        writer = StepWriter(file)
        for step in steps:
            try:
                writer.add(step)
            except OSError as error:
                raise _full(error) from None
        try:
            writer.close()
            file.flush()
        except OSError as error:
            raise _full(error) from None
        return StepFile.map(file, writer.within, writer.in_memory)


def _full(error: OSError) -> DataError:
    return DataError(
        f"the steps cannot be written to disk ({error.strerror})",
        where=tempfile.gettempdir(),
        expected="disk space, about 1 KB a step",
        remedy=f"free disk space, or set TMPDIR to another folder; {VARIABLE} "
        "sets how many steps stay in memory",
    )
