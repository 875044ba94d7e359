"""Check a dataset: its media, decoded from end to end, and its annotations.

`look` decodes, `report` compares, and `validate` does both: a report is also possible after an
interrupted `look`.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

from omnidata import registry
from omnidata.errors import Finding, MediaError, MediaFault, Severity, StoreError, plural
from omnidata.loaders.instructions import foreign
from omnidata.loaders.media_findings import media_turned, refuse_closed
from omnidata.loaders.steps import ids_of, media_of, select_steps
from omnidata.media import DEFAULT_BUDGET, Budget, Probe, examine, unsafe
from omnidata.run.engines import Cluster, Lost, each
from omnidata.types import LoadedDataset, MediaRef, Modality, Progress, Step

__all__ = ["LIMIT_S", "Report", "key", "look", "references", "report", "validate"]


# Every medium, looked at once, in processes of its own.

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


# What `omnidata validate` finds beyond the loaders' own findings; `docs/validate.md` has all.

CODES: Mapping[str, tuple[Severity, str]] = {
    "media-missing": ("error", "restore the file, or leave the step out"),
    "media-empty": ("error", "copy or record it again"),
    "media-truncated": ("error", "copy or download it again"),
    "media-unreadable": ("error", "copy or record it again, in a supported format"),
    "media-refused": ("error", "put a regular file of usual size inside the dataset's folder"),
    "media-changed": ("error", "restore the file, or convert the dataset again"),
    "media-timeout": ("error", "check the file; if it is intact, raise --timeout"),
    "media-crash": ("error", "record it again; do not open it with other programs"),
    "media-absent": ("warning", "fine for scoring; a model needs the media below that folder"),
    "media-unnamed": ("warning", "name the file in the row, if there is one"),
    "size-differs": ("warning", "correct the row: targets are in pixels of that size"),
    "aspect-differs": ("warning", "record the clip and the screenshot from the same screen"),
    "screenshot-blank": ("warning", "take the screenshot again; some apps forbid it"),
    "screenshot-repeated": ("warning", "check that the step has its own screenshot"),
    "clip-frozen": ("warning", "check that the clip is not frozen, and not another step's"),
    "audio-silent": ("warning", "check that the sound was recorded"),
    "length-mismatch": ("warning", "cut clip and audio at the same times"),
    "history-differs": ("warning", "make the history again from the targets"),
    "history-screenshot-differs": ("warning", "name the screenshot of the right earlier step"),
    "language-differs": ("warning", "put the text into the column of its language"),
}
"""Severity and remedy."""


def finding(
    code: str, where: str, what: str, expected: str, sample_ids: tuple[str, ...] = ()
) -> Finding:
    """Return a finding with the severity and the remedy of its code."""
    severity, remedy = CODES[code]
    return Finding(code, severity, where, what, expected, remedy, sample_ids)


# What the media say about the steps that name them.

NAMED = 0.9
"""Share of a dataset's steps that name a medium, from which on a step without it is doubtful."""

LENGTH_S, LENGTH_SHARE = 0.25, 0.05
"""Seconds, and share of the longer one, by which the lengths of clip and audio may differ: frames
come at 4 or more a second, and audio codecs add a tenth of a second."""

ASPECT = 0.05
"""Share by which clip and screenshot may differ in shape: encoders round sides up to 16 pixels."""


class MediaChecks:
    """Compare the steps of a dataset with their decoded media.

    Args:
        source: the dataset.
        outcomes: of `look`; steps are not judged by media that it lacks.

    Attributes:
        episodes: numbers of the steps of each episode, in the order of the source.
    """

    def __init__(self, source: LoadedDataset, outcomes: Outcomes) -> None:
        self._outcomes = outcomes
        task = registry.find_benchmark(source.task)
        self._lag = task.episodes.history_lag if task else None
        self._reported: set[Hashable] = set()
        self._users: dict[Hashable, list[str]] = defaultdict(list)
        self._media: dict[Hashable, tuple[MediaRef, Outcome | None]] = {}
        self.episodes: dict[str, array[int]] = defaultdict(lambda: array("q"))
        named: Counter[str] = Counter()
        for number, step in enumerate(source.steps):
            self.episodes[step.episode].append(number)
            for role, ref in step.media.items():
                if ref is not None:
                    named[role] += 1
                    own = key(ref)
                    self._users[own].append(step.sample_id)
                    if own not in self._media and not unsafe(ref.path):
                        self._media[own] = ref, outcomes.get(own)
        self._expected = {
            role
            for role, count in named.items()
            if role != "history_screenshot" and count >= NAMED * len(source.steps)
        }

    def present(self) -> Counter[Modality]:
        """Return the number of media that are there, in whatever state, by kind."""
        return Counter(
            ref.kind
            for ref, outcome in self._media.values()
            if outcome and not _is_missing(outcome)
        )

    def absent(self) -> Finding | None:
        """Return the finding for data without media; None if any medium exists."""
        if not all(outcome and _is_missing(outcome) for _, outcome in self._media.values()):
            return None
        roots = Counter(str(ref.root) for ref, _ in self._media.values())
        return finding(
            "media-absent",
            roots.most_common(1)[0][0] if roots else "media",
            "none of the media in the rows exist",
            "screenshots, clips and audio",
        )

    def turned_media(self) -> Finding | None:
        """Return the finding for media that are stored rotated; None if there are none."""
        users: list[str] = []
        counts: Counter[str] = Counter()
        for own, (ref, outcome) in self._media.items():
            if isinstance(outcome, Probe) and outcome.turned:
                users.append(self._users[own][0])
                counts[ref.kind] += 1
        return media_turned(counts, list(dict.fromkeys(users))) if users else None

    def of_episode(self, steps: Sequence[Step]) -> Iterator[Finding]:
        """Yield the findings about the media of one episode, by step."""
        before: dict[int, Step] = {}
        files: dict[Hashable, Step] = {}
        for step in steps:
            last, shot = before.get(step.step_index - 1), step.media.get("screenshot")
            yield from self._usable(step)
            yield from self._screenshot(step)
            yield from self._repetition(step, last, files.get(key(shot)) if shot else None)
            yield from self._history_screenshot(step, before)
            yield from self._clip(step, last)
            yield from self._sound(step)
            before[step.step_index] = step
            if shot:
                files.setdefault(key(shot), step)

    def _usable(self, step: Step) -> Iterator[Finding]:
        for role, ref in step.media.items():
            outcome = self._outcomes.get(key(ref)) if ref else None
            what = outcome.what if isinstance(outcome, Fault) else "the row names none"
            if ref is None and role == "screenshot":
                yield from self._about("media-missing", step, role, what, "a file")
            elif ref is None and role in self._expected:
                yield from self._about("media-unnamed", step, role, what, "a file")
            elif isinstance(outcome, Fault):
                right, code = outcome.expected, f"media-{outcome.kind}"
                yield from self._about(code, step, role, what, right, shared=True)

    def _screenshot(self, step: Step) -> Iterator[Finding]:
        seen, (width, height) = self._probe(step, "screenshot"), step.screen
        if seen is None or seen.width is None or seen.height is None:
            return
        if any(step.screen) and (seen.width, seen.height) != (width, height):
            what = f"it has {seen.width} x {seen.height} pixels, the row says {width} x {height}"
            right = "the same size in both"
            yield from self._about("size-differs", step, "screenshot", what, right)
        if seen.blank:
            what, right = "all its pixels are the same", "a picture of the screen"
            yield from self._about("screenshot-blank", step, "screenshot", what, right, shared=True)

    def _repetition(self, step: Step, last: Step | None, owner: Step | None) -> Iterator[Finding]:
        if last is not None and self._same_screen(last, step):
            owner = last if _has_effect(last) else None
        if owner is not None:
            what = f"it is that of step {owner.step_index}"
            what += f", where {owner.action.label} followed" if owner.action else ""
            right = "another picture after every action but waiting"
            yield from self._about("screenshot-repeated", step, "screenshot", what, right)

    def _history_screenshot(self, step: Step, before: dict[int, Step]) -> Iterator[Finding]:
        seen, lag = self._probe(step, "history_screenshot"), self._lag
        past = before.get(step.step_index - lag) if lag else None
        wanted = None if past is None else self._probe(past, "screenshot")
        if past and seen is not None and wanted is not None and seen.pixels != wanted.pixels:
            role, right = "history_screenshot", f"the screenshot of step {past.step_index}"
            what = "it is another picture"
            yield from self._about("history-screenshot-differs", step, role, what, right)

    def _clip(self, step: Step, last: Step | None) -> Iterator[Finding]:
        clip, shot = self._probe(step, "video"), step.screen
        if clip is None:
            return
        # Nothing was done before the first step, nor by a wait that left the screen as it was.
        waited = last is not None and not _has_effect(last) and self._same_screen(last, step)
        if clip.moves is False and step.step_index != 0 and not waited:
            what = f"all {clip.frames} frames are the same"
            right = "something that moves after an action"
            yield from self._about("clip-frozen", step, "video", what, right, shared=True)
        if clip.width and clip.height and min(shot) > 0:  # a screen of no size has no shape
            ratio = clip.width / clip.height * shot[1] / shot[0]
            if abs(ratio - 1) > ASPECT:
                what = f"its frames have {clip.width} x {clip.height} pixels, the screen "
                what += f"{shot[0]} x {shot[1]}"
                right = "the shape of the screen"
                yield from self._about("aspect-differs", step, "video", what, right)

    def _sound(self, step: Step) -> Iterator[Finding]:
        track, clip = self._probe(step, "audio"), self._probe(step, "video")
        if track is None:
            return
        if track.audio == "silent":
            what = f"all its {track.seconds:.2f} s are silence"
            yield from self._about("audio-silent", step, "audio", what, "sound", shared=True)
        seconds = _length(clip or track), _length(track)
        if abs(seconds[0] - seconds[1]) > max(LENGTH_S, LENGTH_SHARE * max(seconds)):
            what = f"the clip has {seconds[0]:.2f} s, the audio {seconds[1]:.2f} s"
            yield from self._about("length-mismatch", step, "audio", what, "the same length")

    def _same_screen(self, one: Step, other: Step) -> bool:
        shots = self._probe(one, "screenshot"), self._probe(other, "screenshot")
        return shots[0] is not None and shots[1] is not None and shots[0].pixels == shots[1].pixels

    def _probe(self, step: Step, role: str) -> Probe | None:
        ref = step.media.get(role)
        outcome = None if ref is None else self._outcomes.get(key(ref))
        return outcome if isinstance(outcome, Probe) else None

    def _about(
        self, code: str, step: Step, role: str, what: str, expected: str, *, shared: bool = False
    ) -> Iterator[Finding]:
        """Yield a finding about a step; if steps may share its medium, only one a medium."""
        ref, users = step.media.get(role), [step.sample_id]
        if shared and ref is not None:
            own = key(ref)
            if (own, code) in self._reported:
                return
            self._reported.add((own, code))
            users = list(dict.fromkeys(self._users[own]))
            if len(users) > 1:
                what += f" (used by {plural(len(users), 'step')})"
        name = role.replace("_", " ")
        yield finding(code, step.sample_id, f"{name}: {what}", f"{name}: {expected}", tuple(users))


def _is_missing(outcome: Outcome) -> bool:
    return isinstance(outcome, Fault) and outcome.kind == "missing"


def _has_effect(step: Step) -> bool:
    return step.action is None or step.action.kind not in ("none", "wait")


def _length(found: Probe) -> float:
    """Seconds; the header knows how long a clip's last frame stays."""
    return max(found.seconds or 0.0, found.stated_seconds or 0.0)


# What the annotations say about each other; the columns of a format are its loader's business.


def check_annotations(steps: Sequence[Step], *, language: bool) -> Iterator[Finding]:
    """Yield findings about the histories and instructions of one episode.

    Args:
        steps: of the episode, by index.
        language: whether to look at the language; a loader may have done so already.
    """
    if language and (reason := foreign(steps[0].instruction, steps[0].tags.get("language", ""))):
        stated = steps[0].tags["language"]
        yield finding(
            "language-differs",
            steps[0].sample_id,
            f"the instruction, {reason}: {steps[0].instruction[:60]!r}",
            f'the language of the episode, "{stated}"',
            tuple(step.sample_id for step in steps),
        )
    targets = {step.step_index: step for step in steps}
    has_history = any(step.history for step in steps)  # without any, nothing is contradicted
    for step in steps if has_history else ():
        if reason := _contradiction(step, targets):
            yield finding(
                "history-differs",
                step.sample_id,
                f"the history {reason}",
                "the earlier targets",
                (step.sample_id,),
            )


def _contradiction(step: Step, targets: dict[int, Step]) -> str:
    if len(step.history) != step.step_index:
        return f"has {len(step.history)} actions, and {step.step_index} steps came before"
    for index, past in enumerate(step.history):
        target = targets[index].action if index in targets else None
        if past is target or past is None or target is None:
            continue
        if past != target:
            return f"has another {past.label} for step {index} than its target"
    return ""


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a validation.

    Attributes:
        findings: the loader's, then those of each episode in the order of the source.
        quarantine: ids of the steps that an error makes unusable, in the order of the source.
        checked: numbers of episodes, steps, skipped rows, and media that are there, by kind.
    """

    findings: Sequence[Finding]
    quarantine: Sequence[str]
    checked: Mapping[str, Any]

    @property
    def errors(self) -> int:
        """Number of findings that are errors."""
        return sum(finding.severity == "error" for finding in self.findings)

    def summary(self) -> dict[str, Any]:
        """Return the counts: errors, warnings, findings by code, steps to leave out."""
        codes = Counter(finding.code for finding in self.findings)
        return {
            "errors": self.errors,
            "warnings": len(self.findings) - self.errors,
            "codes": dict(codes.most_common()),
            "quarantined": len(self.quarantine),
        }


def validate(
    source: LoadedDataset,
    *,
    workers: int | None = None,
    cluster: Cluster | None = None,
    limit_s: float = LIMIT_S,
    budget: Budget = DEFAULT_BUDGET,
    progress: Progress | None = None,
) -> Report:
    """Decode every medium of a dataset and report all problems.

    Processes are started with `spawn`: in a script, call it from below
    `if __name__ == "__main__":`.

    Args:
        source: the result of a task's `load` with `check_media=False`; else media are reported
            twice.
        workers: processes; as many as there are cores if None, and none, thus no limit, if 0.
        cluster: its workers decode; None for this machine.
        limit_s: seconds that one medium may take.
        budget: limits of one medium.
        progress: called with the number of media looked at and of all.

    Raises:
        PlatformError: processes cannot be started.
    """
    refs = references(source.steps)
    seen = look(
        refs, workers=workers, cluster=cluster, limit_s=limit_s, budget=budget, progress=progress
    )
    return report(source, {key(ref): outcome for ref, outcome in seen})


def report(source: LoadedDataset, outcomes: Outcomes) -> Report:
    """Compare a dataset with its decoded media.

    Args:
        source: the dataset.
        outcomes: of `look`, by `key`; possibly not of all media.
    """
    checks = MediaChecks(source, outcomes)
    judged = list(_findings(source, checks))
    # A repository remembers what was broken when it was written; we have looked.
    wrong = _unusable(judged)
    findings = [
        found
        for found in source.findings
        if found.code != "media-broken" or wrong.isdisjoint(found.sample_ids)
    ]
    findings += judged
    unusable = _unusable(findings)
    kinds = checks.present()
    return Report(
        findings,
        [sample_id for sample_id in ids_of(source.steps) if sample_id in unusable],
        {
            "episodes": len(checks.episodes),
            "steps": len(source.steps),
            "skipped": source.skipped,
            "media": {kind: kinds[kind] for kind in get_args(Modality)},
        },
    )


def _unusable(findings: Iterable[Finding]) -> set[str]:
    return {
        sample for found in findings if found.severity == "error" for sample in found.sample_ids
    }


def _findings(source: LoadedDataset, checks: MediaChecks) -> Iterator[Finding]:
    absent = checks.absent()
    if absent is not None and absent.code not in {finding.code for finding in source.findings}:
        yield absent
    read = {
        sample
        for finding in source.findings
        if finding.code in ("language-differs", "instruction-missing")
        for sample in finding.sample_ids
    }
    for numbers in checks.episodes.values():
        steps = sorted(select_steps(source.steps, numbers), key=lambda step: step.step_index)
        language = read.isdisjoint(step.sample_id for step in steps)
        yield from check_annotations(steps, language=language)
        if absent is None:
            yield from checks.of_episode(steps)
    if (turned := checks.turned_media()) is not None:
        yield turned
