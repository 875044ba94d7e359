"""A disk that is full."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def full_disk(after: int) -> Iterator[Callable[[], None]]:
    """Let no file of this process grow beyond so many bytes, or until the function is called."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def free() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    resource.setrlimit(resource.RLIMIT_FSIZE, (after, hard))
    try:
        yield free
    finally:
        free()
