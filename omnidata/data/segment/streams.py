"""Picture and sound of a recording, each decoded once, from the beginning, and never held.

Time 0 is the first frame. The file is opened twice, so that one whose tracks lie far apart costs no
memory either.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from omnidata.data.encode import AUDIO_RATE
from omnidata.data.segment.recording import BUDGET, Recording
from omnidata.media.clip import timed
from omnidata.media.containers import audio_stream, broken, opened, video_stream
from omnidata.media.sound import Mono

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from av.video.frame import VideoFrame

_JUMP_S = 0.04  # what a track may stray from its time stamps before they win


class Film:
    """The picture at any time, asked for in order; holds two frames.

    Args:
        recording: what to decode.
    """

    def __init__(self, recording: Recording) -> None:
        """Open it; nothing is decoded yet."""
        self._recording = recording
        self._frames = _frames(recording)
        self._current = self._next = next(self._frames, None)
        self._drawn: tuple[float, npt.NDArray[np.uint8]] | None = None

    def at(self, seconds: float) -> npt.NDArray[np.uint8]:
        """The frame that is on the screen then: the last that began by then, or the first of all.

        Args:
            seconds: after the first frame, never less than in the call before.

        Returns:
            uint8 (H, W, 3), RGB, upright; not to be written to.

        Raises:
            MediaError: the recording is broken there, or its picture changes its size.
        """
        limit = seconds + self._recording.tick_s + 1e-6  # sums of floats are off by less
        while self._next is not None and self._next[0] <= limit:
            self._current = self._next
            self._next = next(self._frames, None)
        assert self._current is not None  # `open_recording` has seen a frame
        time, frame = self._current
        if self._drawn is None or self._drawn[0] != time:
            self._drawn = time, self._upright(frame, time)
        return self._drawn[1]

    def close(self) -> None:
        """Close the file."""
        self._frames.close()

    def _upright(self, frame: VideoFrame, time: float) -> npt.NDArray[np.uint8]:
        import numpy as np

        recording = self._recording
        if (frame.width, frame.height) != recording.coded:
            raise broken(
                recording.ref,
                f"the picture changes to {frame.width} x {frame.height} pixels at {time:.2f} s",
                f"{recording.coded[0]} x {recording.coded[1]} throughout, or --trim before that",
            )
        pixels = frame.to_ndarray(format="rgb24").astype(np.uint8, copy=False)
        return np.ascontiguousarray(np.rot90(pixels, recording.turned))


def _frames(recording: Recording) -> Generator[tuple[float, VideoFrame], None, None]:
    """The frames with their times after the first."""
    ref = recording.ref
    with opened(ref, BUDGET) as container:
        video = video_stream(container, ref, BUDGET, None)
        video.thread_type = "AUTO"
        last = 0.0
        for number, (time, frame) in enumerate(timed(container, video)):
            if time is None:
                last += float(1 / recording.fps) if number else 0.0
            else:
                last = time - recording.origin_s
            yield last, frame


class Track:
    """The sound of any span, asked for in order; holds little more than the span.

    Args:
        recording: with sound.
    """

    def __init__(self, recording: Recording) -> None:
        """Open it; nothing is decoded yet."""
        self._blocks = _blocks(recording)
        self._held: list[tuple[int, npt.NDArray[np.float32]]] = []
        self._more = True

    def read(self, first: int, last: int) -> npt.NDArray[np.float64]:
        """The samples `first` to `last` - 1 at `AUDIO_RATE`, counted from the first frame on.

        Args:
            first: never less than `last` in the call before.
            last: where the span ends.

        Returns:
            float64 (last - first,), mono; 0 where the track has a gap, or has ended.

        Raises:
            MediaError: the recording is broken there.
        """
        import numpy as np

        self._held = [block for block in self._held if block[0] + len(block[1]) > first]
        while self._more and (not self._held or _end(self._held[-1]) < last):
            block = next(self._blocks, None)
            if block is None:
                self._more = False
            elif _end(block) > first:
                self._held.append(block)
        samples = np.zeros(last - first)
        for start, values in self._held:
            low, high = max(first, start), min(last, start + len(values))
            if low < high:
                samples[low - first : high - first] = values[low - start : high - start]
        return samples

    def close(self) -> None:
        """Close the file."""
        self._blocks.close()


def _end(block: tuple[int, npt.NDArray[np.float32]]) -> int:
    return block[0] + len(block[1])


def _blocks(
    recording: Recording,
) -> Generator[tuple[int, npt.NDArray[np.float32]], None, None]:
    """Resampled samples with the number of the first of each block.

    Samples are counted, since time stamps are coarse; where the two part, there is a gap or a jump
    in the recording, and counting begins anew.
    """
    ref = recording.ref
    with opened(ref, BUDGET) as container:
        stream = audio_stream(container, ref, None)
        mono: Mono | None = None
        position, expected = 0, 0.0
        for frame in container.decode(stream):
            time = expected if frame.time is None else frame.time - recording.origin_s
            if mono is None or abs(time - expected) > _JUMP_S:
                for block in mono.feed(None) if mono else ():
                    yield position, block
                    position += len(block)
                mono = Mono(ref, AUDIO_RATE)
                position, expected = round(time * AUDIO_RATE), time
            expected += frame.samples / frame.sample_rate
            for block in mono.feed(frame):
                yield position, block
                position += len(block)
        for block in mono.feed(None) if mono else ():
            yield position, block
            position += len(block)
