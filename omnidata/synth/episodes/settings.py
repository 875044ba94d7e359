"""What decides an episode; two runs with equal settings make equal bytes."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from omnidata.actions import Screen
from omnidata.errors import UsageError
from omnidata.synth.episodes.theme import CUES, MEDIA, QUESTIONS, Medium, QuestionKind, of_medium

MOST_APPS = 96
MOST_STEPS = 8
SMALLEST, LARGEST = 32, 4096
MOST_FRAMES = 4000
_GOLDEN = 0.6180339887498949
_PLASTIC = (0.7548776662466927, 0.5698402909980532)  # 1 / p and 1 / p^2 with p^3 = p + 1


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings; the defaults are the sample dataset's sizes.

    Attributes:
        seed: of everything that chance decides.
        audio_share, video_share: of the steps, those whose answer is in that medium alone; the
            rest is in the screenshot alone.
        size: width and height of the screenshots in pixels.
        clip_size: of the clips, even.
        fps: frames per second of the clips.
        seconds: length of the clips and sounds, at least 0.5.
        max_steps: an episode has 1 to so many.
        apps: how many apps take turns, each with a look of its own; 1 to `MOST_APPS`.
        cues: names of `CUES`, at least one for each medium that has a share; None = all that the
            clips and sounds are long enough for, but speech.
        questions: names of `QUESTIONS`.
        shuffled: False = code k always stands for answer k; True = the instruction tells.
        distractors: share of the steps that have a sound, a motion or a sign that does not matter,
            for each of these on its own.
    """

    seed: int = 0
    audio_share: float = 0.4
    video_share: float = 0.3
    size: Screen = (720, 1600)
    clip_size: Screen = (360, 800)
    fps: int = 15
    seconds: float = 2.0
    max_steps: int = 3
    apps: int = 24
    cues: tuple[str, ...] | None = None
    questions: tuple[QuestionKind, ...] = QUESTIONS
    shuffled: bool = True
    distractors: float = 0.5

    def __post_init__(self) -> None:
        """Refuse what no episode can be made of.

        Raises:
            UsageError: a value is out of range, the clips or sounds are too short for a cue that is
                named, or a medium with a share has no cue.
        """
        for name in ("audio_share", "video_share", "seconds", "distractors"):
            # Written as 1.0 where 1 was given: equal settings have equal reports and names.
            object.__setattr__(self, name, float(getattr(self, name)))
        _within("--audio-share", self.audio_share, 0, 1)
        _within("--video-share", self.video_share, 0, 1)
        _within("--audio-share + --video-share", self.audio_share + self.video_share, 0, 1 + 1e-9)
        _within("--distractors", self.distractors, 0, 1)
        _within("--seconds", self.seconds, 0.5, 60)
        _within("--fps", self.fps, 1, 60)
        _within("--seconds x --fps", self.seconds * self.fps, 2, MOST_FRAMES)
        _within("--max-steps", self.max_steps, 1, MOST_STEPS)
        _within("--apps", self.apps, 1, MOST_APPS)
        for side in (*self.size, *self.clip_size):
            _within("--size and --clip-size", side, SMALLEST, LARGEST)
        if any(side % 2 for side in self.clip_size):
            raise UsageError(
                "a side of the clips is odd",
                where=f"--clip-size {self.clip_size[0]}x{self.clip_size[1]}",
                expected="even numbers: H.264 keeps colour at half the size",
            )
        _known("--answers", self.questions, QUESTIONS)
        if self.cues is not None:
            _known("--cue", self.cues, CUES)
            self._check_lengths(self.cues)
        for medium in MEDIA:
            if self.share(medium) > 0 and not self.cues_of(medium):
                raise UsageError(
                    f"there is no cue for the {medium} steps",
                    where=f"--cue {' '.join(self.all_cues)}",
                    expected=f"one of {', '.join(of_medium(medium))} for which the clips and "
                    "sounds are long enough",
                    remedy="name one, make them longer, or set the share to 0",
                )

    def _check_lengths(self, names: Sequence[str]) -> None:
        for name in names:
            if not self.has_time_for(name):
                kind = CUES[name]
                least = f"{kind.frames} frames" if kind.frames else f"{kind.seconds:g} s"
                raise UsageError(
                    f"{name} needs {least}",
                    where=f"--seconds {self.seconds:g} --fps {self.fps}",
                    expected=f"{least} or more; there are {self.frames} frames in "
                    f"{self.seconds:g} s",
                    remedy=f"make the clips and sounds longer, or leave out --cue {name}",
                )

    @property
    def frames(self) -> int:
        """Frames of a clip."""
        return round(self.seconds * self.fps)

    @property
    def all_cues(self) -> tuple[str, ...]:
        """The names of the cues, in the order in which chance chooses among them."""
        if self.cues is not None:
            return self.cues
        return tuple(name for name in CUES if name != "speech" and self.has_time_for(name))

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits for the names of episodes: other settings have others."""
        return hashlib.sha256(json.dumps(self.as_dict()).encode()).hexdigest()[:8]

    def has_time_for(self, cue: str) -> bool:
        """Whether the clips and sounds are long enough for a cue."""
        return CUES[cue].frames <= self.frames and CUES[cue].seconds <= self.seconds

    def share(self, medium: Medium) -> float:
        """The share of the steps that are decided in a medium."""
        shares = {"audio": self.audio_share, "video": self.video_share}
        return shares.get(medium, max(0.0, 1 - self.audio_share - self.video_share - 1e-12))

    def cues_of(self, medium: Medium) -> tuple[str, ...]:
        """The cues of a medium."""
        return tuple(name for name in self.all_cues if CUES[name].medium == medium)

    def length(self, group: int) -> int:
        """How many steps the episodes of a group have; see `medium`."""
        place = (_start(self.seed, "length") + group * _PLASTIC[1]) % 1
        return 1 + int(place * self.max_steps)

    def medium(self, group: int, step: int) -> Medium:
        """The medium that decides a step.

        Together with `length` a sequence of low discrepancy (Kronecker's, by the powers of the
        plastic number) and no dice, so that even a few hundred steps have the shares that were
        asked for, whatever their number.
        """
        place = (_start(self.seed, "medium") + group * _PLASTIC[0] + step * _GOLDEN) % 1
        if place < self.audio_share:
            return "audio"
        seen = place < self.audio_share + self.video_share or self.share("screen") == 0
        return "video" if seen else "screen"

    def as_dict(self) -> Mapping[str, Any]:
        """The settings as JSON values, with the cues by name."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in {**asdict(self), "cues": self.all_cues}.items()
        }


@lru_cache(maxsize=16)
def _start(seed: int, name: str) -> float:
    return random.Random(f"{seed}/{name}").random()


def _within(where: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise UsageError(
            f"{value:g} is out of range", where=where, expected=f"{low:g} to {round(high, 6):g}"
        )


def _known(where: str, names: Sequence[str], known: Mapping[str, Any] | Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise UsageError(
                f'there is no "{name}"', where=where, expected=f"one of {', '.join(known)}"
            )
    if not names or len(set(names)) < len(names):
        raise UsageError(
            "none is named, or one of them twice", where=where, expected="each at most once"
        )
