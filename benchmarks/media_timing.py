"""CPU and clock of small pieces of work; the machine may be shared."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

Work = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Spent:
    """Milliseconds of one call, the best of several rounds each.

    Attributes:
        cpu: of all threads of this process.
        clock: from call to return.
    """

    cpu: float
    clock: float


def measure(works: dict[str, Work], *, times: int, rounds: int = 5) -> dict[str, Spent]:
    """Let the works take turns, so that a busy machine is unfair to none."""
    found: dict[str, list[Spent]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            cpu, clock = time.process_time(), time.perf_counter()
            for _ in range(times):
                work()
            cpu, clock = time.process_time() - cpu, time.perf_counter() - clock
            found[name].append(Spent(1000 * cpu / times, 1000 * clock / times))
    return {
        name: Spent(min(one.cpu for one in all_), min(one.clock for one in all_))
        for name, all_ in found.items()
    }


def compare(
    label: str, other: str, theirs: Work, ours: Work, *, times: int, rounds: int = 5
) -> None:
    """Print what another way costs, what omnidata costs, and the ratio of the CPU."""
    spent = measure({"theirs": theirs, "ours": ours}, times=times, rounds=rounds)
    print(
        f"  {label:16} {other:9} {spent['theirs'].cpu:9.2f} ms ({spent['theirs'].clock:8.2f})"
        f"   omnidata {spent['ours'].cpu:9.2f} ms ({spent['ours'].clock:8.2f})"
        f"   {spent['theirs'].cpu / spent['ours'].cpu:6.3f} times its speed"
    )
