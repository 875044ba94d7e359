"""A few frames of a long clip, without decoding all that lies between them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

LONG = 300
"""Frames from which on it is worth reading the packets first: ten seconds of a screen recording."""

_SEEK_COST = 20  # frames that could be decoded in the time of one seek


class Index:
    """When every frame is shown and which ones can be decoded alone, from the packets.

    Attributes:
        times: of the frames in the order in which they are shown, in the stream's time base.
        seconds: from the first to the last frame.
    """

    def __init__(self, container: InputContainer, video: VideoStream, most: int) -> None:
        """Read the packets of the stream, at most one more than so many; nothing is decoded."""
        times: list[int] = []
        keys: list[int] = []
        self.usable = container.format.name != "avi"  # its frames cannot be told by their times
        for packet in container.demux(video):
            if not packet.size or packet.is_discard:
                continue
            if packet.pts is None:
                self.usable = False
                continue
            times.append(packet.pts)
            if len(times) > most:
                break
            if packet.is_keyframe:
                keys.append(packet.pts)
        self.times = sorted(times)
        self._keys = sorted(keys)
        base = float(video.time_base or 0)
        self.seconds = (self.times[-1] - self.times[0]) * base if times else 0.0
        # A keyframe must come first, and no two frames may claim one moment.
        self.usable &= bool(keys) and self._keys[0] == self.times[0]
        self.usable &= len(set(times)) == len(times)

    def key_before(self, number: int) -> int:
        """The time of the keyframe from which a frame can be decoded."""
        return self._keys[bisect_right(self._keys, self.times[number]) - 1]

    def pays(self, wanted: Sequence[int]) -> bool:
        """Whether seeking decodes much less than one pass from the beginning."""
        decoded = 0
        for number in wanted:
            decoded += _SEEK_COST + number - bisect_right(self.times, self.key_before(number)) + 1
        return self.usable and 2 * decoded < wanted[-1]


def sought(
    container: InputContainer, video: VideoStream, index: Index, wanted: Sequence[int]
) -> Iterator[tuple[int, float, VideoFrame]]:
    """The wanted frames, in rising order: number, seconds, frame.

    Ends early where the packets have promised a frame that the decoder does not give, or a keyframe
    that is none; whoever asks must count.
    """
    at: int | None = None
    decoder: Iterator[VideoFrame] = iter(())
    for number in wanted:
        key = index.key_before(number)
        alone = at is not None and key <= at
        if not alone:
            container.seek(key, stream=video, backward=True)
            decoder = container.decode(video)
        for frame in decoder:
            at = frame.pts
            if at == key:
                alone = frame.key_frame  # packets are marked by the file, frames by the decoder
            if at is None or at > index.times[number] or (at >= key and not alone):
                return
            if at == index.times[number]:
                yield number, float(frame.time or 0.0), frame
                break
        else:
            return
