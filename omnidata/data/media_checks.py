"""Check decoded media: are they whole, and do they fit the steps that name them?"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence

from omnidata import registry
from omnidata.data.media_outcomes import Fault, Outcome, Outcomes, key
from omnidata.errors import Finding, Severity, plural
from omnidata.loaders.media_findings import media_turned
from omnidata.media import Probe, unsafe
from omnidata.types import LoadedDataset, MediaRef, Modality, Step

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
            if isinstance(outcome, Fault):
                what, right, code = outcome.what, outcome.expected, f"media-{outcome.kind}"
                yield from self._about(code, step, role, what, right, shared=True)
            elif ref is None:
                what = "the row names none"
                if role == "screenshot":
                    yield from self._about("media-missing", step, role, what, "a file")
                elif role in self._expected:
                    yield from self._about("media-unnamed", step, role, what, "a file")

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
