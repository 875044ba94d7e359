"""Look at many media in threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_TOGETHER: Final = 20
"""Media that a thread looks at before it hands them over: a look at a missing file costs less than
to wake who waits for it."""


def in_threads(
    look: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    workers: int | None = None,
    ahead: int = 1000,
) -> Generator[Result, None, None]:
    """Call a function for each medium in threads; yield the results in order.

    In threads: decoders and hashes release the interpreter, and bytes need no copy between
    processes. Closing the generator early cancels the calls that have not begun.

    Args:
        look: the function.
        items: what it is called with, such as references.
        workers: threads; one per core if None.
        ahead: so many results wait to be taken at most. A million calls that wait take more memory
            than what they give.
    """
    # Before the threads: an import that several of them begin at once fails.
    import av  # noqa: F401  for the threads
    from PIL import Image  # noqa: F401  for the threads

    threads = workers or os.cpu_count() or 1
    size = max(1, min(_TOGETHER, len(items) // (4 * threads)))
    firsts = range(0, len(items), size)
    calls = max(1, ahead // size)

    def look_at(first: int) -> list[Result]:
        return [look(item) for item in items[first : first + size]]

    pool = ThreadPoolExecutor(threads)
    try:
        for begin in range(0, len(firsts), calls):
            for found in pool.map(look_at, firsts[begin : begin + calls]):
                yield from found
    finally:
        pool.shutdown(cancel_futures=True)
