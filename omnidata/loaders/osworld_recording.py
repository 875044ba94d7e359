"""OSWorld's screen recordings: where in them each turn lies.

A recording begins before the first turn and ends after the evaluation, and nobody notes when. Where
the clock of the turns stands in it is estimated from both ends, or told by the screenshots, which
the recording shows too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Final, Literal

from omnidata.errors import MediaError
from omnidata.media import image
from omnidata.media.containers import opened, video_stream
from omnidata.media.cut import RECORDING, recorded_seconds
from omnidata.types import Cut, MediaRef

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from av.video.frame import VideoFrame

    Small = npt.NDArray[np.uint8]

Alignment = Literal["exact", "estimated"]

_SMALL: Final = (96, 54)
_NOISE: Final = 12
"""Levels of grey by which a cell of the small picture may differ for the loss of compression: in a
real recording of a desktop beside its screenshots it was 7."""
_ODD_CELLS: Final = 4
"""Cells that may differ more: a blinking caret, the pointer. Of 5184; a letter that is typed is no
more than that, a menu or a window many times as much."""
_LEAST: Final = 2
_STAMP_S: Final = 1.0
_SHORTEST_S: Final = 1 / 60


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording that opens.

    Attributes:
        ref: the file.
        seconds: how long it is by its header.
    """

    ref: MediaRef
    seconds: float

    @classmethod
    def of(cls, ref: MediaRef) -> Recording:
        """The recording in a file.

        Raises:
            MediaError: it is missing or none.
        """
        return cls(ref, recorded_seconds(ref))

    def first_frame(self, name: str) -> MediaRef:
        """The first picture, which is what the agent saw first."""
        return MediaRef("image", self.ref.root, name, cell=Cut(self.ref.path, 0.0, 0.0))


@dataclass(frozen=True, slots=True)
class Timeline:
    """A recording and the turns in it.

    Attributes:
        recording: what was recorded.
        starts: when each turn's first action began, in seconds after the first frame.
        alignment: "exact": told by the screenshots, up to the second of the stamps and the moment
            that the screen takes to change; "estimated": from the two ends.
    """

    recording: Recording
    starts: Sequence[float]
    alignment: Alignment

    def clip(self, number: int) -> MediaRef | None:
        """What the recording shows up to a turn, from the turn before or from the beginning.

        Args:
            number: of the turn, 0-based; one more for what it shows from the last one to its end.

        Returns:
            None for less than a frame, or for what lies outside the recording.
        """
        ref, last = self.recording.ref, self.recording.seconds
        bounds = (0.0, *self.starts, last)[number : number + 2]
        start, end = (round(min(max(moment, 0.0), last), 6) for moment in bounds)
        if end - start < _SHORTEST_S:
            return None
        name = f"{ref.path.removesuffix('.mp4')}_{number}.mp4"
        return MediaRef("video", ref.root, name, cell=Cut(ref.path, start, end))


def estimated(recording: Recording, times: Sequence[datetime]) -> Timeline:
    """A recording whose beginning is estimated.

    The release ends it after the evaluation, so it begins at the last turn's time, and what comes
    after that, less its length. What comes after is taken to last as long as the turns usually do,
    or what is left over where that is less; of a single turn, half of what is left over.

    Args:
        recording: what was recorded.
        times: of the turns, not decreasing; at least one.
    """
    seconds = recording.seconds
    since = [(time - times[0]).total_seconds() for time in times]
    over = max(0.0, seconds - since[-1])
    gaps = [late - early for early, late in pairwise(since)]
    tail = min(over, median(gaps)) if gaps else over / 2
    first = max(0.0, seconds - tail - since[-1])
    return Timeline(recording, [first + moment for moment in since], "estimated")


def matched(
    recording: Recording, times: Sequence[datetime], pictures: Sequence[MediaRef | None]
) -> Timeline:
    """A recording whose beginning is told by the screenshots, if they tell it.

    Each screenshot is looked for in the recording, in order; of one that shows the same as the one
    before nothing can be learned. What an action does is seen after the action began, so that the
    recording began at least as late as the latest of (a turn's time less when its screen is first
    seen), and a screen reacts soon.

    Args:
        recording: what was recorded; it is decoded from beginning to end.
        times: of the turns, not decreasing; at least one.
        pictures: the screenshot after each turn.

    Returns:
        As `estimated` where fewer than two screenshots can tell, where one is not found, or where
        they contradict the times.

    Raises:
        MediaError: the recording is broken.
    """
    guess = estimated(recording, times)
    since = [(time - times[0]).total_seconds() for time in times]
    seen = _first_seen(recording.ref, pictures)
    if seen is None or len(seen) < _LEAST:
        return guess
    begin = max(since[number] - moment for number, moment in seen.items())
    starts = [moment - begin for moment in since]
    ends = [*starts[1:], recording.seconds]
    if any(moment > ends[number] + _STAMP_S for number, moment in seen.items()):
        return guess
    return Timeline(recording, starts, "exact")


def _first_seen(ref: MediaRef, pictures: Sequence[MediaRef | None]) -> dict[int, float] | None:
    """When each screenshot that is a change is first seen; None where one is not."""
    found: dict[int, float] = {}
    with opened(ref, RECORDING) as container:
        video = video_stream(container, ref, RECORDING, None)
        origin = 0.0
        wanted: list[tuple[int, Small]] | None = None
        for frame in container.decode(video):
            if frame.time is None:
                return None
            small = _shrunk(frame)
            if wanted is None:
                origin, wanted = frame.time, _changes(pictures, small)
            if len(found) == len(wanted):
                break
            number, picture = wanted[len(found)]
            if not _differ(small, picture):
                found[number] = frame.time - origin
    return found if wanted and len(found) == len(wanted) else None


def _changes(pictures: Sequence[MediaRef | None], last: Small) -> list[tuple[int, Small]]:
    """The screenshots that differ from the one before, small; the first from the recording's."""
    found = []
    for number, ref in enumerate(pictures):
        small = _small(ref)
        if small is None:
            continue
        if _differ(small, last):
            found.append((number, small))
        last = small
    return found


def _small(ref: MediaRef | None) -> Small | None:
    import av

    if ref is None:
        return None
    try:
        return _shrunk(av.VideoFrame.from_ndarray(image(ref).pixels, format="rgb24"))
    except MediaError:
        return None


def _shrunk(frame: VideoFrame) -> Small:
    import numpy as np

    return frame.reformat(*_SMALL, format="gray").to_ndarray().astype(np.uint8, copy=False)


def _differ(one: Small, other: Small) -> bool:
    import numpy as np

    cells = np.abs(one.astype(np.int16) - other) > _NOISE
    return int(cells.sum()) > _ODD_CELLS
