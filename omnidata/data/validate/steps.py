"""What the media say about the steps that name them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from omnidata.actions import Primitive
from omnidata.data.validate.codes import finding
from omnidata.data.validate.media import Fault, Outcomes, key, references
from omnidata.errors import Finding, counted
from omnidata.media import Probe
from omnidata.types import MediaRef, Source, Step

NAMED = 0.9
"""Share of a dataset's steps that name a medium, from which on a step without it is doubtful."""

LENGTH_S, LENGTH_SHARE = 0.25, 0.05
"""Seconds, and share of the longer one, by which the lengths of clip and audio may differ: frames
come at 4 or more a second, and audio codecs add a tenth of a second."""

ASPECT = 0.05
"""Share by which clip and screenshot may differ in shape: encoders round sides up to 16 pixels."""

HISTORY_LAG = {"omnigui": 2}
"""By task: how many steps back the history screenshot was taken (OmniGUI: t-2)."""


@dataclass(frozen=True, slots=True)
class Remark:
    """A finding, and the steps that it is about.

    Attributes:
        finding: with the first of these steps as its place.
        samples: ids of all of them.
    """

    finding: Finding
    samples: tuple[str, ...]


class MediaChecks:
    """Holds the steps of a dataset against what is known of their media.

    Args:
        source: the dataset.
        outcomes: what `look` gave; steps are not judged by media that it lacks.
    """

    def __init__(self, source: Source, outcomes: Outcomes) -> None:
        """Find out who uses what."""
        self._source = source
        self._outcomes = outcomes
        self._said: set[Hashable] = set()
        self._users: dict[Hashable, list[str]] = defaultdict(list)
        named: Counter[str] = Counter()
        for step in source.steps:
            for role, ref in step.media.items():
                if ref is not None:
                    named[role] += 1
                    self._users[key(ref)].append(step.sample_id)
        self._expected = {
            role
            for role, count in named.items()
            if role != "history_screenshot" and count >= NAMED * len(source.steps)
        }

    def absent(self) -> Finding | None:
        """The one finding for data that is annotations alone; None where any medium exists."""
        refs = references(self._source.steps)
        outcomes = [self._outcomes.get(key(ref)) for ref in refs]
        if not all(isinstance(found, Fault) and found.kind == "missing" for found in outcomes):
            return None
        roots = Counter(str(ref.root) for ref in refs)
        return finding(
            "media-absent",
            roots.most_common(1)[0][0] if roots else "media",
            "none of the media that the rows name exists",
            "screenshots, clips and audio",
        )

    def of_episode(self, steps: Sequence[Step]) -> Iterator[Remark]:
        """Everything about the media of one episode, by step."""
        before: dict[int, Step] = {}
        files: dict[Hashable, Step] = {}
        for step in steps:
            last, shot = before.get(step.step_index - 1), step.media.get("screenshot")
            yield from self._usable(step)
            yield from self._screenshot(step)
            yield from self._repeated(step, last, files.get(key(shot)) if shot else None)
            yield from self._history_screenshot(step, before)
            yield from self._clip(step, last)
            yield from self._sound(step)
            before[step.step_index] = step
            if shot:
                files.setdefault(key(shot), step)

    def _usable(self, step: Step) -> Iterator[Remark]:
        for role, ref in step.media.items():
            if ref is None:
                if role == "screenshot":
                    yield _remark("media-missing", step, role, "the row names none", "a file")
                elif role in self._expected:
                    yield _remark("media-unnamed", step, role, "the row names none", "a file")
                continue
            outcome = self._outcomes.get(key(ref))
            if isinstance(outcome, Fault) and self._first(ref, "fault"):
                yield self._shared(
                    f"media-{outcome.kind}", step, role, ref, outcome.what, outcome.expected
                )

    def _screenshot(self, step: Step) -> Iterator[Remark]:
        ref, seen = step.media.get("screenshot"), self._probe(step, "screenshot")
        if ref is None or seen is None or seen.width is None or seen.height is None:
            return
        if (seen.width, seen.height) != step.screen:
            yield _remark(
                "size-differs",
                step,
                "screenshot",
                f"it has {seen.width} x {seen.height} pixels, the row says "
                f"{step.screen[0]} x {step.screen[1]}",
                "the same size in both",
            )
        if seen.blank and self._first(ref, "blank"):
            yield self._shared(
                "screenshot-blank",
                step,
                "screenshot",
                ref,
                "all its pixels are the same",
                "a picture of the screen",
            )

    def _repeated(self, step: Step, last: Step | None, owner: Step | None) -> Iterator[Remark]:
        """The screen did not change under an action, or the file is an earlier step's."""
        if last is not None and self._same_screen(last, step):
            owner = last if _acted(last) else None
        if owner is not None:
            yield _remark(
                "screenshot-repeated",
                step,
                "screenshot",
                f"it is that of step {owner.step_index}"
                + (f", where {owner.action.kind.name} followed" if owner.action else ""),
                "another picture after every action but waiting",
            )

    def _history_screenshot(self, step: Step, before: dict[int, Step]) -> Iterator[Remark]:
        seen, lag = self._probe(step, "history_screenshot"), HISTORY_LAG.get(self._source.task)
        past = before.get(step.step_index - lag) if lag else None
        wanted = None if past is None else self._probe(past, "screenshot")
        if seen is not None and wanted is not None and seen.pixels != wanted.pixels:
            yield _remark(
                "history-screenshot-differs",
                step,
                "history screenshot",
                "it is another picture",
                f"the screenshot of step {step.step_index - (lag or 0)}",
            )

    def _clip(self, step: Step, last: Step | None) -> Iterator[Remark]:
        ref, clip, shot = step.media.get("video"), self._probe(step, "video"), step.screen
        if ref is None or clip is None:
            return
        # Nothing was done before the first step, nor by a wait that left the screen as it was.
        waited = last is not None and not _acted(last) and self._same_screen(last, step)
        rest = step.step_index == 0 or waited
        if clip.moves is False and not rest and self._first(ref, "frozen"):
            yield self._shared(
                "clip-frozen",
                step,
                "video",
                ref,
                f"all {clip.frames} frames are the same",
                "something that moves after an action",
            )
        if clip.width and clip.height and min(shot) > 0:  # a screen of no size has no shape
            ratio = clip.width / clip.height * shot[1] / shot[0]
            if abs(ratio - 1) > ASPECT:
                yield _remark(
                    "aspect-differs",
                    step,
                    "video",
                    f"its frames have {clip.width} x {clip.height} pixels, the screen "
                    f"{shot[0]} x {shot[1]}",
                    "the shape of the screen",
                )

    def _sound(self, step: Step) -> Iterator[Remark]:
        ref, track = step.media.get("audio"), self._probe(step, "audio")
        if ref is None or track is None:
            return
        if track.audio == "silent" and self._first(ref, "silent"):
            yield self._shared(
                "audio-silent",
                step,
                "audio",
                ref,
                f"all of its {track.seconds:.2f} s are silence",
                "sound",
            )
        clip = self._probe(step, "video")
        if clip is None:
            return
        lengths = _length(clip), _length(track)
        if abs(lengths[0] - lengths[1]) > max(LENGTH_S, LENGTH_SHARE * max(lengths)):
            yield _remark(
                "length-mismatch",
                step,
                "audio",
                f"the clip has {lengths[0]:.2f} s, the audio {lengths[1]:.2f} s",
                "the same length",
            )

    def _same_screen(self, one: Step, other: Step) -> bool:
        shots = self._probe(one, "screenshot"), self._probe(other, "screenshot")
        return shots[0] is not None and shots[1] is not None and shots[0].pixels == shots[1].pixels

    def _probe(self, step: Step, role: str) -> Probe | None:
        ref = step.media.get(role)
        outcome = None if ref is None else self._outcomes.get(key(ref))
        return outcome if isinstance(outcome, Probe) else None

    def _first(self, ref: MediaRef, what: str) -> bool:
        """Whether nothing of this kind has been said of the medium: steps may share one."""
        mark = (key(ref), what)
        new = mark not in self._said
        self._said.add(mark)
        return new

    def _shared(
        self, code: str, step: Step, role: str, ref: MediaRef, what: str, expected: str
    ) -> Remark:
        users = tuple(dict.fromkeys(self._users[key(ref)]))
        if len(users) > 1:
            what += f" (used by {counted(len(users), 'step')})"
        return _remark(code, step, role, what, expected, users)


def _remark(
    code: str,
    step: Step,
    role: str,
    what: str,
    expected: str,
    samples: tuple[str, ...] | None = None,
) -> Remark:
    name = role.replace("_", " ")
    said = finding(code, step.sample_id, f"{name}: {what}", f"{name}: {expected}")
    return Remark(said, samples or (step.sample_id,))


def _acted(step: Step) -> bool:
    """Whether something was done that may change the screen."""
    return step.action is None or step.action.kind is not Primitive.NONE


def _length(found: Probe) -> float:
    """Seconds; the header knows how long a clip's last frame stays."""
    return max(found.seconds or 0.0, found.stated_seconds or 0.0)
