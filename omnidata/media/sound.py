"""Decode sound as a waveform with one channel at one rate.

Everything here is given an open container, or what a row holds itself; `decoding` opens media.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from omnidata.errors import MediaError
from omnidata.media.containers import audio_stream, broken_media
from omnidata.media.paths import Budget
from omnidata.types import MediaRef

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from av.audio.frame import AudioFrame
    from av.container import InputContainer
    from av.filter.graph import Graph

MAX_CHANNELS = 64
"""Of a track: as many as FFmpeg's resampler takes."""

MAX_RATE = 10_000_000
"""Of a track, in samples per second: DSD has 2.8 million. A resampler's filter grows with it, to
gigabytes from a hundred million on."""

_SLACK_S = 1.0
"""By which the frames of a track may be longer than the budget: samples are counted to the end."""

_PIECE = 1 << 20
"""Values of all channels, before or after resampling, that a piece of sound has: 4 MiB."""


def decode_sound(
    container: InputContainer, ref: MediaRef, rate: int, stream: int | None, budget: Budget
) -> Iterator[npt.NDArray[np.float32]]:
    """Yield the sound of a container in pieces, as `Mono` returns them.

    Raises:
        MediaError: there is none, or it is longer than the budget.
    """
    mono, seconds = Mono(ref, rate), 0.0
    for frame in container.decode(audio_stream(container, ref, stream)):
        seconds += frame.samples / frame.sample_rate
        if seconds > budget.max_seconds + _SLACK_S:
            raise _endless(ref, budget.max_seconds)  # a packet may claim to last for hours
        yield from mono.feed(frame)
    yield from mono.feed(None)


def join_sound(
    pieces: Iterable[npt.NDArray[np.float32]], ref: MediaRef, rate: int, budget: Budget
) -> npt.NDArray[np.float32]:
    """Return the pieces of a sound as one array.

    Raises:
        MediaError: there is not one sample, or there are more than the budget allows.
    """
    import numpy as np

    parts: list[npt.NDArray[np.float32]] = []
    most = min(int(budget.max_seconds * rate), budget.max_decoded_bytes // 4)
    length = 0
    for part in pieces:
        parts.append(part)
        length += len(part)
        if length > most:
            raise _endless(ref, most / rate)
    if not length:
        raise broken_media(ref, "no sample could be decoded", "at least one sample")
    return np.concatenate(parts)


def _endless(ref: MediaRef, seconds: float) -> MediaError:
    return broken_media(
        ref,
        f"the audio continues after {seconds:.0f} s",
        "audio within the budget",
        fault="refused",
    )


class Mono:
    """Convert sound of any layout to one channel at one rate, piece by piece.

    Pieces are of about one size, whatever the packets of the file: of 33 KB that claim to last for
    hours no more is made than is taken.

    Args:
        ref: where the sound is from, for errors.
        rate: samples per second of what comes out, in Hz.
    """

    def __init__(self, ref: MediaRef, rate: int) -> None:
        self._ref = ref
        self._rate = rate
        self._graph: Graph | None = None
        self._form: tuple[str, str, int] | None = None

    def feed(self, frame: AudioFrame | None) -> Iterator[npt.NDArray[np.float32]]:
        """Return the next samples, mixed to one channel.

        Args:
            frame: the next one; None at the end, after which nothing may follow.

        Raises:
            MediaError: there are more channels, or more samples per second, than sound has, or
                the frame is not like the first.
        """
        from av.audio.frame import AudioFrame
        from av.error import BlockingIOError as NothingYet
        from av.error import EOFError as NothingMore

        if frame is not None:
            form = (frame.format.name, frame.layout.name, frame.sample_rate)
            if self._graph is None:
                self._graph, self._form = self._chain(frame), form
            elif form != self._form:
                raise broken_media(
                    self._ref, "the sound changes its format midway", "the same format throughout"
                )
        if self._graph is None:
            return
        self._graph.push(frame)
        while True:
            try:
                piece = self._graph.pull()
            except (NothingYet, NothingMore):
                return
            assert isinstance(piece, AudioFrame)
            yield _mix(piece)

    def _chain(self, frame: AudioFrame) -> Graph:
        from av.filter.graph import Graph

        channels, rate, layout = frame.layout.nb_channels, frame.sample_rate, frame.layout.name
        if not 1 <= channels <= MAX_CHANNELS or not 1 <= rate <= MAX_RATE:
            raise broken_media(
                self._ref,
                f"the sound has {channels} channels at {rate} Hz",
                f"1 to {MAX_CHANNELS} channels at 1 to {MAX_RATE} Hz",
                fault="refused",
            )
        size = max(1, int(_PIECE / channels / max(1.0, self._rate / rate)))
        graph = Graph()
        graph.link_nodes(
            graph.add(
                "abuffer",
                sample_rate=str(rate),
                sample_fmt=frame.format.name,
                channel_layout=layout,
                time_base=f"1/{rate}",
            ),
            graph.add("asetnsamples", n=str(size), p="0"),
            # The layout stays: FFmpeg's own mix to one channel is louder than full scale in floats.
            # Samples of all channels come out side by side: PyAV reads beyond the planes of frames
            # that have eight or more.
            graph.add(
                "aformat", sample_rates=str(self._rate), sample_fmts="flt", channel_layouts=layout
            ),
            graph.add("abuffersink"),
        ).configure()
        return graph


def _mix(frame: AudioFrame) -> npt.NDArray[np.float32]:
    import numpy as np

    channels = frame.to_ndarray().reshape(-1, frame.layout.nb_channels).T
    # Along rows that lie in one piece: several times as fast, and added up in the channels' order.
    mixed: npt.NDArray[np.float32] = np.ascontiguousarray(channels).mean(axis=0, dtype=np.float32)
    return mixed


def inline_sound(ref: MediaRef, rate: int) -> Iterator[npt.NDArray[np.float32]]:
    """Return the samples that a row contains, `{"array": [...], "sampling_rate": Hz}`."""
    import numpy as np
    from av.audio.frame import AudioFrame

    held: Any = ref.inline
    try:
        values = np.asarray(held["array"], dtype=np.float32)
        if not np.isfinite(values).all():
            raise ValueError("a sample is not a number")
        values = values[..., : max(1, round(ref.until * values.shape[-1]))]
        frame = AudioFrame.from_ndarray(np.atleast_2d(values), format="flt", layout="mono")
        frame.sample_rate = int(held["sampling_rate"])
        mono = Mono(ref, rate)
        yield from mono.feed(frame)
        yield from mono.feed(None)
    except Exception as error:  # whatever a row holds may be anything
        raise MediaError(
            f"the row's own audio cannot be read ({type(error).__name__})",
            where=f"{ref.root}, inline",
            expected='{"array": [numbers], "sampling_rate": Hz}, one channel',
            remedy="correct the row",
        ) from None
