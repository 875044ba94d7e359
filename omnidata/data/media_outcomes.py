"""Decode every medium of a dataset from end to end, in processes of its own, and keep its facts."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from omnidata.errors import MediaError, MediaFault, StoreError
from omnidata.loaders.media_findings import refuse_closed
from omnidata.loaders.steps import media_of
from omnidata.media import DEFAULT_BUDGET, Budget, Probe, examine, unsafe
from omnidata.run.engines import Cluster, Lost, each
from omnidata.types import MediaRef, Progress, Step

LIMIT_S = 120.0
"""Seconds for one medium: ten times what 20,000 frames of a desktop take on one core."""


NoAnswer = Literal["timeout", "crash"]


@dataclass(frozen=True, slots=True)
class Fault:
    """The reason why a medium is unusable.

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
    """Return a key that references to the same medium share.

    A repository that embeds its media holds one that several steps use several times.
    """
    if ref.inline is not None:
        return id(ref)  # samples in rows are not hashable
    if ref.cell is not None and ref.sha256:
        return ref.kind, ref.root, ref.path, ref.sha256
    return ref


def references(steps: Sequence[Step]) -> list[MediaRef]:
    """Return every medium once, in order of first use; unsafe paths are left to the loader.

    Raises:
        DataError: media lie outside the data, in folders that are not allowed.
    """
    found: dict[Hashable, MediaRef] = {}
    for ref in media_of(steps):
        found.setdefault(key(ref), ref)
    refuse_closed(found.values())
    return [ref for ref in found.values() if not unsafe(ref.path)]


def look(
    refs: Sequence[MediaRef],
    *,
    workers: int | None = None,
    cluster: Cluster | None = None,
    limit_s: float = LIMIT_S,
    budget: Budget = DEFAULT_BUDGET,
    progress: Progress | None = None,
) -> Iterator[tuple[MediaRef, Outcome]]:
    """Decode media from end to end, in parallel.

    Args:
        refs: see `references`.
        workers: processes; as many as there are cores if None, and none, thus no limit, if 0.
        cluster: its workers decode; None for this machine.
        limit_s: seconds that one medium may take.
        budget: limits of one medium.
        progress: called with the number of media looked at and of all.

    Yields:
        Each reference with its outcome, in order.

    Raises:
        PlatformError: processes cannot be started.
    """
    outcomes = each(
        partial(_examine, budget),
        refs,
        workers=workers,
        limit_s=limit_s,
        cluster=cluster,
        sees=[root for root in sorted({ref.root for ref in refs}) if root.exists()],
    )
    for done, (ref, outcome) in enumerate(zip(refs, outcomes, strict=True), 1):
        if isinstance(outcome, Lost):
            kind: NoAnswer = "timeout" if outcome.timed_out else "crash"
            outcome = Fault(kind, f"{outcome.why}: {ref.path}", f"a whole {ref.kind} file")
        yield ref, outcome
        if progress is not None:
            progress(done, len(refs))


def _examine(budget: Budget, ref: MediaRef) -> Outcome:
    try:
        return examine(ref, budget=budget)
    except MediaError as error:
        return Fault(error.fault, f"{error.what}: {error.where}", error.expected)
    except StoreError:
        raise
    except Exception as error:  # whatever hostile bytes make a library raise, memory included
        what = f"it cannot be decoded ({type(error).__name__}): {ref.root / ref.path}"
        return Fault("unreadable", what, f"a whole {ref.kind} file")
