"""A run or a dataset as pages for a browser: one file, a folder, or a server on this machine.

Pages load nothing from outside, escape every text, and find media through `omnidata.media` only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from omnidata.errors import UsageError
from omnidata.run.errata import Errata, corrections_in_order
from omnidata.run.run_files import Run
from omnidata.types import Progress

MOST_IN_FILE: Final = 4000
"""Steps of a report in one file, at most: browsers open larger files slowly."""


def write(
    run: Run,
    path: Path,
    *,
    data: Path | None = None,
    files: Mapping[str, str] = {},
    errata: Sequence[Errata] = (),
    progress: Progress | None = None,
) -> None:
    """Write the pages of a run. Complete pages replace existing ones; partial pages never appear.

    Args:
        run: scored.
        path: a file ending in `.html`, which will hold everything (docs/view.md describes clips
            and sounds); or a folder, which will hold a file per page.
        data: the dataset; its recorded place if None.
        files: as of `omnidata.viewer.book.open_run`.
        errata: corrections of labels to show on the pages of steps, in order.
        progress: called with (done, total).

    Raises:
        UsageError: the run has too many steps for one file; `path` holds something else; or as
            `open_run`.
        RunError, DataError: the data are missing, or not those of the run.
    """
    from omnidata.viewer.book import open_run
    from omnidata.viewer.outputs import write_file, write_folder

    book = open_run(run, data=data, files=files)
    book = replace(book, corrections=corrections_in_order(errata))
    if path.suffix.lower() not in (".html", ".htm"):
        write_folder(book, path, [run.path, book.source.root], progress)
        return
    if len(book.steps) > MOST_IN_FILE:
        raise UsageError(
            f"the run has {len(book.steps)} steps",
            where=str(path),
            expected=f"at most {MOST_IN_FILE} in one file",
            remedy=f"write a folder, e.g. {path.with_suffix('')}",
        )
    if path.is_dir():
        raise UsageError("a folder is here", where=str(path), expected="a file, or no such path")
    write_file(book, path, progress)
