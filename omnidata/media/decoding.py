"""Decode clips and tracks: frames and sound as arrays.

Sequential on purpose: in a clip of two seconds four seeks cost twice as much as one pass. Frames
are sought only where few of a long clip are wanted.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Literal

from omnidata.errors import MediaError, UsageError
from omnidata.media.containers import (
    Decoded,
    broken_media,
    decode,
    video_stream,
)
from omnidata.media.paths import DEFAULT_BUDGET, RECORDING_BUDGET, Budget
from omnidata.media.rotation import Turn, turn_of
from omnidata.media.sound import decode_sound, inline_sound, join_sound
from omnidata.media.storage import open_media
from omnidata.types import MediaRef

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream


MAX_FPS = 1000.0


@dataclass(frozen=True, slots=True)
class Frames:
    """Frames of one clip, in order.

    Attributes:
        pixels: uint8 (T, H, W, 3), RGB, upright.
        pts_seconds: float64 (T,), when each frame is shown, by the clip's own clock, which need not
            begin at 0.
        indices: int64 (T,), their numbers among all frames; for `which="keyframes"` among those.
        fps: how many of *these* frames there are per second; the clip's rate for a single one.
    """

    pixels: npt.NDArray[np.uint8]
    pts_seconds: npt.NDArray[np.float64]
    indices: npt.NDArray[np.int64]
    fps: float


def frames(
    ref: MediaRef,
    *,
    num_frames: int | None = None,
    fps: float | None = None,
    which: Literal["all", "keyframes"] | None = None,
    stream: int | None = None,
    budget: Budget = DEFAULT_BUDGET,
) -> Frames:
    """Decode a clip; exactly one of `num_frames`, `fps` and `which` says what is kept.

    Args:
        ref: a clip.
        num_frames: so many, evenly spread from the first to the last, indices cut to whole numbers
            (as the released OmniGUI evaluator samples); all if there are fewer.
        fps: the frame that is shown at 0, 1/fps, 2/fps, ... seconds after the first.
        which: "all", or "keyframes".
        stream: index of the stream in the file; None for FFmpeg's choice.
        budget: limits.

    Raises:
        MediaError: the file is missing or broken, ends early, or exceeds the budget.
        UsageError: not exactly one of the three, or a number that keeps nothing or too much.
    """
    check_choice(num_frames, fps, which)
    if num_frames is not None:
        return _evenly(ref, num_frames, stream, budget)
    with open_media(ref, budget) as container:
        video = video_stream(container, ref, budget, stream)
        if which == "keyframes":
            video.codec_context.skip_frame = "NONKEY"
        decoded = decode(container, video, ref, budget)
        if which == "keyframes":  # not every codec obeys the line above
            decoded = (found for found in decoded if found[2].key_frame)
        if fps is None:
            return _stack(decoded, video, ref, budget)
        return replace(_stack(_sample_ticks(decoded, fps), video, ref, budget), fps=fps)


def samples(
    ref: MediaRef,
    *,
    rate: int = 16_000,
    stream: int | None = None,
    budget: Budget = DEFAULT_BUDGET,
) -> npt.NDArray[np.float32]:
    """Decode the waveform of a track or of a clip's sound.

    Args:
        ref: a track, a clip with sound, or audio that a row holds inline.
        rate: samples per second to resample to, in Hz.
        stream: index of the stream in the file; None for FFmpeg's choice.
        budget: limits.

    Returns:
        float32 (N,), all channels mixed to one, full scale at -1 and 1.

    Raises:
        MediaError: the file is missing, broken, without sound, or exceeds the budget.
        UsageError: the rate is not positive.
    """
    if rate < 1:
        raise UsageError(
            "the sampling rate is not positive", where=f"samples(rate={rate})", expected="Hz"
        )
    if ref.inline is not None:
        return join_sound(inline_sound(ref, rate), ref, rate, budget)
    with open_media(ref, budget) as container:
        return join_sound(decode_sound(container, ref, rate, stream, budget), ref, rate, budget)


def check_choice(num_frames: int | None, fps: float | None, which: str | None) -> None:
    """Check that exactly one of the three selects frames of a clip.

    Raises:
        UsageError: not exactly one of the three, or a value that keeps nothing or too much.
    """
    where = f"num_frames={num_frames!r}, fps={fps!r}, which={which!r}"
    if sum(choice is not None for choice in (num_frames, fps, which)) != 1:
        raise UsageError(
            "the choice of frames is ambiguous",
            where=where,
            expected="exactly one of num_frames, fps and which",
        )
    counted = num_frames is None or (isinstance(num_frames, Integral) and num_frames >= 1)
    paced = fps is None or (isinstance(fps, Real) and 0 < fps <= MAX_FPS)
    if not counted or not paced or which not in (None, "all", "keyframes"):
        raise UsageError(
            "the value keeps nothing, or too much",
            where=where,
            expected=f'a whole number of at least 1, fps up to {MAX_FPS:g}, "all" or "keyframes"',
        )


def recorded_seconds(ref: MediaRef) -> float:
    """Return the length of a recording by its header; nothing is decoded.

    Raises:
        MediaError: it is missing or no recording, or its header does not say.
    """
    with open_media(ref, RECORDING_BUDGET) as container:
        video = video_stream(container, ref, RECORDING_BUDGET, None)
        base = video.time_base
        seconds = float(video.duration * base) if video.duration and base else 0.0
        seconds = seconds or (container.duration or 0) / 1e6
    if seconds <= 0:
        raise broken_media(ref, "the header does not say how long it is", "a complete recording")
    return seconds


def _sample_ticks(decoded: Iterator[Decoded], fps: float) -> Iterator[Decoded]:
    """Yield the frame that is on the screen at each tick: the last that began by then."""
    last: Decoded | None = None
    begin, tick = 0.0, 0
    for found in decoded:
        if last is None:
            begin = found[1]
        else:
            while begin + tick / fps < found[1] - 1e-6:  # clocks in microseconds are usual
                yield last
                tick += 1
        last = found
    if last is not None and begin + tick / fps <= last[1] + 1e-6:
        yield last


def _stack(chosen: Iterator[Decoded], video: VideoStream, ref: MediaRef, budget: Budget) -> Frames:
    import numpy as np

    width, height = video.codec_context.width, video.codec_context.height
    pixels: list[npt.NDArray[np.uint8]] = []
    seconds: list[float] = []
    numbers: list[int] = []
    turn: Turn | None = None
    for number, time, frame in chosen:
        if (len(pixels) + 1) * width * height * 3 > budget.max_decoded_bytes:
            raise broken_media(
                ref,
                f"the frames take more than {budget.max_decoded_bytes} bytes",
                "fewer frames: num_frames or fps",
            )
        # A size of its own for every frame: damaged streams change it midway.
        rgb = frame.to_ndarray(format="rgb24", width=width, height=height)
        turn = turn or turn_of(frame)
        pixels.append(turn.apply(rgb.astype(np.uint8, copy=False)))
        seconds.append(time)
        numbers.append(number)
    if not pixels:
        raise broken_media(ref, "no frame could be decoded", "at least one frame")
    span = seconds[-1] - seconds[0]
    own = float(video.average_rate or 0)
    return Frames(
        np.stack(pixels),
        np.array(seconds, dtype=np.float64),
        np.array(numbers, dtype=np.int64),
        (len(seconds) - 1) / span if span > 0 else own,
    )


# Frames evenly spread.


def _evenly(ref: MediaRef, num_frames: int, stream: int | None, budget: Budget) -> Frames:
    """Spread by the count that the header states, or, where that is wrong, by the packets."""
    with open_media(ref, budget) as container:
        video = video_stream(container, ref, budget, stream)
        stated = video.frames
        seconds = (container.duration or 0) / 1e6
        is_long = (stated or seconds * float(video.average_rate or 0)) >= _LONG
        if is_long:
            found = _seek_evenly(container, video, ref, num_frames, budget)
        else:
            found = _decode_evenly(container, video, stated, ref, num_frames, budget)
    if found is None and is_long:
        with open_media(ref, budget) as container:
            video = video_stream(container, ref, budget, stream)
            found = _decode_evenly(container, video, stated, ref, num_frames, budget)
    if found is None:
        count = _count_packets(ref, budget, stream)
        with open_media(ref, budget) as container:
            video = video_stream(container, ref, budget, stream)
            found = _decode_evenly(container, video, count, ref, num_frames, budget)
        if found is None:
            raise broken_media(
                ref, "the clip ends early", f"{count} frames, as its packets promise"
            )
    return found


def _spread(count: int, wanted: int) -> list[int]:
    if wanted >= count:
        return list(range(count))
    step = (count - 1) / (wanted - 1) if wanted > 1 else 0.0
    return [int(number * step) for number in range(wanted)]


def _decode_evenly(
    container: InputContainer,
    video: VideoStream,
    count: int,
    ref: MediaRef,
    num_frames: int,
    budget: Budget,
) -> Frames | None:
    """Spread frames over so many; None if the count is wrong."""
    if count < 1:
        return None
    wanted = _spread(count, num_frames)
    found = _stack(_at(decode(container, video, ref, budget), wanted), video, ref, budget)
    return found if len(found.indices) == len(wanted) else None


def _at(decoded: Iterator[Decoded], wanted: list[int]) -> Iterator[Decoded]:
    chosen = set(wanted)
    for found in decoded:
        if found[0] in chosen:
            yield found
        if found[0] == wanted[-1]:
            return


def _count_packets(ref: MediaRef, budget: Budget, stream: int | None) -> int:
    with open_media(ref, budget) as container:
        video = video_stream(container, ref, budget, stream)
        packets = (packet for packet in container.demux(video) if packet.size)
        count = sum(not packet.is_discard for packet in packets)
    if not count:
        raise broken_media(ref, "the clip has no frames", "at least one frame")
    return count


# A few frames of a long clip, without decoding all that lies between them.

_LONG = 300
"""Frames from which on it is worth reading the packets first: ten seconds of a screen recording."""

_SEEK_COST = 20  # frames that could be decoded in the time of one seek


def _seek_evenly(
    container: InputContainer, video: VideoStream, ref: MediaRef, num_frames: int, budget: Budget
) -> Frames | None:
    """Return the frames of a long clip by seeking; None where that does not pay or is not exact.

    They are spread over as many as the header states, where it does.
    """
    index = _Index(container, video, budget.max_frames)
    if len(index.times) > budget.max_frames or index.seconds > budget.max_seconds:
        return None  # one pass says what is too much
    if video.frames not in (0, len(index.times)):
        return None
    wanted = _spread(len(index.times), num_frames)
    if not index.usable or not index.pays(wanted):
        return None
    try:
        found = _stack(_sought_frames(container, video, index, wanted), video, ref, budget)
    except MediaError:
        return None  # one pass says what is wrong
    return found if len(found.indices) == len(wanted) else None


class _Index:
    """Display time and decoding order of a clip's frames, from its packets.

    Attributes:
        times: of the frames in the order in which they are shown, in the stream's time base.
        seconds: from the first to the last frame.
        usable: whether every frame has a time of its own, and the first is a keyframe.
    """

    def __init__(self, container: InputContainer, video: VideoStream, most: int) -> None:
        times: list[int] = []
        keys: list[int] = []
        self.usable = container.format.name != "avi"  # its frames have no usable times
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
        self.usable &= bool(keys) and self._keys[0] == self.times[0]
        self.usable &= len(set(times)) == len(times)

    def key_before(self, number: int) -> int:
        """Return the time of the keyframe from which a frame can be decoded."""
        return self._keys[bisect_right(self._keys, self.times[number]) - 1]

    def pays(self, wanted: Sequence[int]) -> bool:
        """Return whether seeking decodes much less than one pass from the beginning."""
        decoded = 0
        for number in wanted:
            decoded += _SEEK_COST + number - bisect_right(self.times, self.key_before(number)) + 1
        return 2 * decoded < wanted[-1]


def _sought_frames(
    container: InputContainer, video: VideoStream, index: _Index, wanted: Sequence[int]
) -> Iterator[tuple[int, float, VideoFrame]]:
    """Yield the wanted frames, or fewer if packets promised frames that do not come."""
    at: int | None = None
    decoder: Iterator[VideoFrame] = iter(())
    for number in wanted:
        key, time = index.key_before(number), index.times[number]
        has_key = at is not None and key <= at
        if not has_key:
            container.seek(key, stream=video, backward=True)
            decoder = container.decode(video)
        for frame in decoder:
            at = frame.pts
            if at == key:
                has_key = frame.key_frame  # packets are marked by the file, frames by the decoder
            if at is None or at > time or (at >= key and not has_key):
                return
            if at == time:
                yield number, float(frame.time or 0.0), frame
                break
        else:
            return
