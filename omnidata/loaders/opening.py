"""What all loaders begin and end with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from omnidata.loaders import repository
from omnidata.loaders.recognition import reading
from omnidata.loaders.strict import refuse_findings
from omnidata.types import Source


def opened(
    data: Path,
    task: str,
    tags: Sequence[str],
    read: Callable[[], Source],
    *,
    strict: bool,
    check_media: bool,
) -> Source:
    """A Parquet repository's steps, or those of the benchmark's own files.

    Args:
        data: as the user named it.
        task: the benchmark.
        tags: those of its steps.
        read: reads the benchmark's own files.
        strict: make the first finding an error.
        check_media: for a repository: say what is wrong with its media.

    Raises:
        DataError: nothing readable as the benchmark is there; the remedy names the right one where
            the rows are another's. Or `strict` and there is a finding.
    """
    with reading(data, task):
        if repository.is_repository(data):
            source = repository.load(data, task, tags, check_media=check_media)
        else:
            source = read()
    if strict:
        refuse_findings(source.findings, data)
    return source
