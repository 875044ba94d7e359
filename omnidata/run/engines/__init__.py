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
    """Call a function on every item, in parallel; answers in the order of the items.

    A process that dies costs its own call, on a cluster those that it was given: others make them.
    A call that a process dies of twice, alone, is `Lost`.

    Args:
        function: of a module, so that another process can import it; it must not raise.
        items: arguments, picklable; each is asked for when it is given out.
        workers: processes here, one per core if None; 0, or 1 where calls have no limit, makes them
            in this process, where none may be lost. On a cluster its own number counts.
        limit_s: seconds that one call may take; may be infinite.
        cluster: whose workers call; None for this machine.
        sees: files and folders that every machine of a cluster must see.

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
