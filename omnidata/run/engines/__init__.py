"""Where work is done in parallel: processes of this machine that may die, or a cluster of Ray's."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TypeVar

from omnidata.run.engines import local, ray
from omnidata.run.engines.local import Lost, cores
from omnidata.run.engines.ray import Cluster

__all__ = ["Cluster", "Lost", "cores", "each"]

Item = TypeVar("Item")
Result = TypeVar("Result")


def each(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    workers: int | None,
    limit_s: float = math.inf,
    cluster: Cluster | None = None,
    sees: Sequence[Path] = (),
) -> Generator[Result | Lost, None, None]:
    """Call a function on every item in parallel and yield the answers in the order of the items.

    If a process dies, its calls are repeated in another one. A call during which a process dies
    twice is `Lost`.

    Args:
        function: defined in a module, so that other processes can import it; it must not raise.
        items: picklable arguments.
        workers: processes on this machine, None = one per core. With 0, or with 1 and no time
            limit, calls run in this process, where none can be lost. Ignored with `cluster`.
        limit_s: time limit of one call in seconds; may be infinite.
        cluster: the cluster to run on; None for this machine.
        sees: files and folders that every machine of the cluster must be able to read.

    Raises:
        PlatformError: a process ends before it can take a call, or Ray is not installed.
        UsageError: no cluster answers.
        RunError: the cluster is at fault, or one of its machines does not see a path.
    """
    if cluster:
        yield from ray.each(function, items, cluster=cluster, limit_s=limit_s, sees=sees)
        return
    processes = cores() if workers is None else workers
    if not processes or (math.isinf(limit_s) and min(processes, len(items)) == 1):
        yield from map(function, items)
    else:
        yield from local.each(function, items, workers=processes, limit_s=limit_s)
