"""Logs of other harnesses as predictions.

A form of logs is a subclass of `Log` in a module of its own: it declares how its files are
recognised, and reads their samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from omnidata.errors import UsageError
from omnidata.predictions import Prediction
from omnidata.run.bad_lines import BadLines
from omnidata.run.logs.clawgui import ClawLog
from omnidata.run.logs.gui_r1 import RowLog
from omnidata.run.logs.inspect import InspectLog
from omnidata.run.logs.lmms_eval import LmmsLog
from omnidata.run.logs.log import Log
from omnidata.run.logs.matching import Matching
from omnidata.run.logs.vlmevalkit import KitLog
from omnidata.tasks.asking import Asking
from omnidata.types import LoadedDataset

_FORMS: Final[Mapping[str, type[Log]]] = {
    form.harness: form for form in (LmmsLog, ClawLog, InspectLog, KitLog, RowLog)
}
HARNESSES: Final = tuple(_FORMS)
"""Those whose logs can be scored, for `--from`."""
_LOOKS: Final = (
    ({"predict", "label"}, "it looks like LLaMA-Factory's: --from llamafactory --rows EXPORT"),
    ({"response", "labels"}, "it looks like ms-swift's: --from swift --rows EXPORT"),
    ({"input", "output", "gts"}, "it looks like verl's: --from verl --rows EXPORT"),
    ({"completion", "advantage"}, "it looks like TRL's: --from trl --rows EXPORT"),
    *(
        (columns, f"it looks like {form.looks}: --from {form.harness}")
        for form in _FORMS.values()
        for columns in form.marks
    ),
)
"""Columns by which files are recognised, and how to read them."""


def open_log(harness: str, path: Path) -> Log:
    """Return a log of another harness.

    Args:
        harness: one of `HARNESSES`.
        path: of the log.

    Raises:
        UsageError: logs of the harness cannot be read.
    """
    if harness not in HARNESSES:
        raise UsageError(
            f'no reader for logs of "{harness}"',
            where=f"--from {harness}",
            expected=f"one of {', '.join(HARNESSES)}",
        )
    return _FORMS[harness](path)


def read_log(
    harness: str, path: Path, source: LoadedDataset, task: Asking, bad: BadLines | None = None
) -> Iterator[Prediction]:
    """Yield the answers of another harness's log, without those to skipped rows.

    Answers to rows that only their number tells apart come last.

    Args:
        harness: one of `HARNESSES`.
        path: of the log.
        source: the data that the log was made on.
        task: their benchmark.
        bad: takes note of lines that cannot be read, are no step of the data, or do not say which;
            None raises an error about all of them behind the last answer.

    Raises:
        UsageError: logs of the harness cannot be read.
        PredictionError: the log cannot be opened, or has bad lines.
    """
    own = bad or BadLines(path)
    samples = open_log(harness, path).samples(own)
    yield from Matching(source, task).match(samples, own)
    if bad is None:
        own.check()


def recognise(row: Mapping[str, Any]) -> str:
    """Return how to read files with lines like this one; empty if their form is unknown."""
    return next((remedy for columns, remedy in _LOOKS if columns <= row.keys()), "")
