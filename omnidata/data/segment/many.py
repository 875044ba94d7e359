"""Cut many recordings with their logs into one tree of episodes.

A recording that cannot be cut is a finding. What an interrupted call has cut is kept beside the
tree, and the same call resumes.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import msgspec

from omnidata.data.segment import Segmented, check_out, cut_episode, episode, publish, staging_tree
from omnidata.data.segment.plan import USUAL, Cut, cut_of
from omnidata.errors import DataError, Finding, MediaError, OmnidataError, plural
from omnidata.loaders.action_log import UNLABELLED, Labels, objects
from omnidata.loaders.episode_tree import Dependency, Dimension
from omnidata.loaders.instructions import Language
from omnidata.loaders.tree_writer import TreeWriter, write_episode
from omnidata.run.engines import Cluster, Lost, each
from omnidata.run.engines.ray import wait_until_seen
from omnidata.storage import read_json, write_json
from omnidata.types import Progress

_REPORT = "report.json"
_MEDIA = "media"


@dataclass(frozen=True, slots=True)
class Job:
    """A recording that is to be cut.

    Attributes:
        recording, events, labels, cut: as of `segment`.
        where: of the list, for messages.
    """

    recording: Path
    events: Path
    labels: Labels = UNLABELLED
    cut: Cut = USUAL
    where: str = ""


def _stamp(job: Job) -> str:
    files = [job.recording, job.events]
    if job.events.is_dir():
        files += sorted(path for path in job.events.rglob("*") if path.is_file())
    known: list[Any] = [version("omnidata"), asdict(job.labels), asdict(job.cut)]
    for path in files:
        try:
            found = path.stat()
        except OSError:  # the cutting reports it
            known.append((str(path.absolute()), 0, 0))
        else:
            known.append((str(path.absolute()), found.st_size, found.st_mtime_ns))
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:32]


class _Row(msgspec.Struct, forbid_unknown_fields=True):
    recording: str
    events: str
    app: str | None = None
    episode: str | None = None
    instruction_en: str | None = None
    instruction_zh: str | None = None
    language: Language | None = None
    dimension: Dimension | None = None
    dependency: Dependency | None = None
    offset: float | None = None
    lead: float | None = None
    max_clip: float | None = None
    trim: str | None = None
    until: float | str | None = None


_TIMES = ("offset", "lead", "max_clip", "trim", "until")


def read_list(path: Path, *, labels: Labels = UNLABELLED, cut: Cut = USUAL) -> list[Job]:
    """Read a list of recordings.

    Args:
        path: JSON lines; `recording` and `events` are relative to the folder of the list, other
            keys have the names of the options of `omnidata segment`.
        labels: defaults of a line; the log's own labels come last.
        cut: likewise.

    Raises:
        DataError: the file cannot be read, a line has other contents, or there is no line.
        UsageError: a line has a time that makes no sense.
    """
    jobs = []
    for where, line in objects(path):
        try:
            row = msgspec.convert(line, _Row)
        except msgspec.ValidationError as error:
            raise DataError(
                str(error),
                where=where,
                expected='{"recording": FILE, "events": FILE}, and options by their names',
                remedy="correct the line; docs/segment.md shows a list",
            ) from None
        own = Labels(**{name: getattr(row, name) for name in asdict(UNLABELLED)}).over(labels)
        times = {name: getattr(row, name) for name in _TIMES}
        how = cut_of(f"{where}, ".__add__, **times, usual=cut)
        jobs.append(Job(path.parent / row.recording, path.parent / row.events, own, how, where))
    if not jobs:
        raise DataError(
            "the list has no recording",
            where=str(path),
            expected='lines of {"recording": FILE, "events": FILE}',
            remedy="see docs/segment.md for an example",
        )
    return jobs


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one recording; see `Segmented`."""

    labels: Labels
    steps: int
    clips: int
    clip_seconds: float
    recording_seconds: float
    trimmed: int
    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, made: Segmented) -> Done:
        """Return the summary of an episode."""
        clips = [span.start_s - span.clip_s for span in made.spans if span.frames]
        return cls(
            labels=made.labels,
            steps=len(made.spans),
            clips=len(clips),
            clip_seconds=round(sum(clips), 3),
            recording_seconds=round(made.recording.seconds, 3),
            trimmed=made.trimmed,
            findings=made.findings,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        own = msgspec.structs.asdict(self)
        findings = [finding.as_dict() for finding in own.pop("findings")]
        labels: Labels = own.pop("labels")
        return {"app": labels.app, "episode": labels.episode, **own, "findings": findings}


@dataclass(frozen=True, slots=True)
class Cuttings:
    """The written episodes in the order of the list, and a finding for each other recording."""

    episodes: Sequence[tuple[Job, Done]]
    findings: Sequence[Finding]


def segment_all(
    jobs: Sequence[Job],
    out: Path,
    *,
    workers: int | None = 1,
    cluster: Cluster | None = None,
    progress: Progress | None = None,
) -> Cuttings:
    """Cut recordings into a tree of episodes; the bytes do not depend on the workers.

    Args:
        jobs: the recordings; of two episodes of one name the first is written.
        out: as of `segment`.
        workers: processes, one per core if None; 1 = this one.
        cluster: whose workers cut; None for this machine.
        progress: called with the number of recordings done and of all.

    Raises:
        DataError: no recording can be cut, or as of `segment` of `out`.
        OmnidataError: as `run.engines.each`.
    """
    place = check_out(out)
    done: list[tuple[Job, Done]] = []
    findings: list[Finding] = []
    with staging_tree(place, keeps=True) as tree:
        parts = tree.with_name("parts")
        parts.mkdir(exist_ok=True)
        made: list[Path | OmnidataError] = []
        with closing(_parts(jobs, parts, workers, cluster)) as coming:
            for number, part in enumerate(coming, 1):
                made.append(part)
                if progress:
                    progress(number, len(jobs))
        with TreeWriter(tree) as writer:
            for job, part in zip(jobs, made, strict=True):
                try:
                    if isinstance(part, OmnidataError):
                        raise part
                    found = msgspec.convert(read_json(part / _REPORT), Done)
                    writer.add_written(episode(found.labels, ()), part / _MEDIA)
                    done.append((job, found))
                except OmnidataError as error:
                    findings.append(_unusable_recording(job, error))
            if not done:
                raise DataError(
                    f"none of {plural(len(jobs), 'recording')} can be cut, the first: "
                    f"{findings[0]}",
                    expected="at least one recording with its log",
                    remedy="correct the list",
                )
        publish(tree, place)
    return Cuttings(done, findings)


def _unusable_recording(job: Job, error: OmnidataError) -> Finding:
    return Finding(
        "recording-unusable",
        "error",
        job.where or str(job.recording),
        f"{error.what}: {error.where}" if error.where else error.what,
        error.expected or "a recording that its log fits",
        error.remedy or "correct it, or remove it from the list",
    )


def _parts(
    jobs: Sequence[Job], parts: Path, workers: int | None, cluster: Cluster | None
) -> Generator[Path | OmnidataError]:
    places = [parts / _stamp(job) for job in jobs]
    missing: dict[Path, Job] = {}  # a list may have one twice
    for job, place in zip(jobs, places, strict=True):
        if not _is_cut(place):
            missing.setdefault(place, job)
    inputs = {path.parent for job in missing.values() for path in (job.recording, job.events)}
    sees = [parts, *(folder for folder in sorted(inputs) if folder.exists())]
    items = [(job, place) for place, job in missing.items()]
    calls = each(_cut_recording, items, workers=workers, cluster=cluster, sees=sees)
    outcomes: dict[Path, OmnidataError | OSError | Lost | None] = {}
    with closing(calls) as answers:
        for job, place in zip(jobs, places, strict=True):
            if place in missing and place not in outcomes:
                outcomes[place] = next(answers)
            answer = outcomes.get(place)
            if isinstance(answer, OSError):
                raise answer
            if isinstance(answer, Lost):
                yield MediaError(
                    answer.why,
                    where=str(job.recording),
                    expected="a recording that does not crash a decoder, and enough memory",
                    remedy="`omnidata segment` it alone",
                )
            elif answer:
                yield answer
            else:
                if cluster:
                    wait_until_seen(place, partial(_is_cut, place))
                yield place


def _is_cut(place: Path) -> bool:
    return (place / _REPORT).is_file() and (place / _MEDIA).is_dir()


def _cut_recording(item: tuple[Job, Path]) -> OmnidataError | OSError | None:
    job, place = item
    try:
        made, found = cut_episode(job.recording, job.events, labels=job.labels, cut=job.cut)
        scratch = Path(mkdtemp(dir=place.parent, prefix="."))
        write_episode(scratch / _MEDIA, found)
        write_json(scratch / _REPORT, msgspec.to_builtins(Done.of(made)))
        if place.exists():  # left by an earlier version
            shutil.rmtree(place)
        scratch.rename(place)
    except (OmnidataError, OSError) as error:
        return error
    return None
