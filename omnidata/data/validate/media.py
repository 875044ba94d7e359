"""Every medium of a dataset, looked at once, in processes of its own."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from omnidata.data.validate.pool import Lost, cores, each
from omnidata.errors import MediaError, MediaFault
from omnidata.loaders.media_files import refuse_closed
from omnidata.media import DEFAULT_BUDGET, Budget, Probe, examine, unsafe
from omnidata.types import MediaRef, Step

LIMIT_S = 120.0
"""Seconds for one medium: ten times what 20,000 frames of a desktop take on one core."""


NoAnswer = Literal["timeout", "crash"]


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a medium is unusable.

    Attributes:
        kind: as in `MediaError`; "timeout" and "crash" where there was no answer.
        what: in words, with the place.
        expected: what would have been right.
    """

    kind: MediaFault | NoAnswer
    what: str
    expected: str


Outcome = Probe | Fault
Outcomes = Mapping[Hashable, Outcome]
"""By `key`."""


def key(ref: MediaRef) -> Hashable:
    """What two references to the same medium have in common.

    A repository that embeds its media holds one that several steps use several times.
    """
    if ref.inline is not None:
        return id(ref)  # samples in rows are not hashable
    if ref.cell is not None and ref.sha256:
        return ref.kind, ref.root, ref.path, ref.sha256
    return ref


def references(steps: Sequence[Step]) -> list[MediaRef]:
    """Every medium once, in the order met; those with unsafe paths are left to the loader.

    Raises:
        DataError: media lie outside the data, in folders that nobody named.
    """
    refuse_closed(steps)
    found: dict[Hashable, MediaRef] = {}
    for step in steps:
        for ref in step.media.values():
            if ref is not None and not unsafe(ref.path):
                found.setdefault(key(ref), ref)
    return list(found.values())


def look(
    refs: Sequence[MediaRef],
    *,
    workers: int | None = None,
    limit_s: float = LIMIT_S,
    budget: Budget = DEFAULT_BUDGET,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[tuple[MediaRef, Outcome]]:
    """Decode media from end to end, in parallel.

    Args:
        refs: see `references`.
        workers: processes; as many as there are cores if None.
        limit_s: seconds that one medium may take.
        budget: limits of one medium.
        progress: called with the number of media looked at and of all.

    Yields:
        Each reference with what is known of it now, in order.

    Raises:
        PlatformError: processes cannot be started.
    """
    outcomes = each(partial(_examined, budget), refs, workers=workers or cores(), limit_s=limit_s)
    for done, (ref, outcome) in enumerate(zip(refs, outcomes, strict=True), 1):
        if isinstance(outcome, Lost):
            kind: NoAnswer = "timeout" if outcome.timed_out else "crash"
            outcome = Fault(kind, f"{outcome.why}: {ref.path}", f"a whole {ref.kind} file")
        yield ref, outcome
        if progress is not None:
            progress(done, len(refs))


def _examined(budget: Budget, ref: MediaRef) -> Outcome:
    try:
        return examine(ref, budget=budget)
    except MediaError as error:
        return Fault(error.fault, f"{error.what}: {error.where}", error.expected)
    except Exception as error:  # whatever hostile bytes make a library raise, memory included
        what = f"it cannot be decoded ({type(error).__name__}): {ref.root / ref.path}"
        return Fault("unreadable", what, f"a whole {ref.kind} file")
