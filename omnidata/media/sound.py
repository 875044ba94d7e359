"""Audio as a waveform: one channel, the rate that models want."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from omnidata.errors import MediaError, UsageError
from omnidata.media.containers import audio_stream, broken, opened
from omnidata.media.paths import DEFAULT_BUDGET, Budget
from omnidata.types import MediaRef

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from av.audio.frame import AudioFrame


def samples(
    ref: MediaRef,
    *,
    rate: int = 16_000,
    stream: int | None = None,
    budget: Budget = DEFAULT_BUDGET,
) -> npt.NDArray[np.float32]:
    """The waveform of a track, or of a clip's sound.

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
    import numpy as np

    if rate < 1:
        raise UsageError("nothing would be kept", where=f"samples(rate={rate})", expected="Hz")
    parts: list[npt.NDArray[np.float32]] = []
    most = min(int(budget.max_seconds * rate), budget.max_decoded_bytes // 4)
    length = 0
    heard = _inline(ref, rate) if ref.inline is not None else _decoded(ref, rate, stream, budget)
    for part in heard:
        parts.append(part)
        length += len(part)
        if length > most:
            raise broken(
                ref,
                f"the audio goes on after {most / rate:.0f} s",
                "audio within the budget",
                fault="refused",
            )
    if not length:
        raise broken(ref, "no sample could be decoded", "at least one sample")
    return np.concatenate(parts)


def _decoded(
    ref: MediaRef, rate: int, stream: int | None, budget: Budget
) -> Iterator[npt.NDArray[np.float32]]:
    from av.audio.resampler import AudioResampler

    with opened(ref, budget) as container:
        # The layout stays: FFmpeg's own mix to one channel is louder than full scale in floats.
        resampler = AudioResampler(format="fltp", rate=rate)
        for frame in container.decode(audio_stream(container, ref, stream)):
            for resampled in resampler.resample(frame):
                yield _mixed(resampled)
        for resampled in resampler.resample(None):
            yield _mixed(resampled)


def _mixed(frame: AudioFrame) -> npt.NDArray[np.float32]:
    """The mean of the channels."""
    import numpy as np

    mixed: npt.NDArray[np.float32] = frame.to_ndarray().mean(axis=0, dtype=np.float32)
    return mixed


def _inline(ref: MediaRef, rate: int) -> Iterator[npt.NDArray[np.float32]]:
    """Samples that a row holds itself, `{"array": [...], "sampling_rate": Hz}`."""
    import numpy as np
    from av.audio.frame import AudioFrame
    from av.audio.resampler import AudioResampler

    held: Any = ref.inline
    try:
        values = np.asarray(held["array"], dtype=np.float32)
        if not np.isfinite(values).all():
            raise ValueError("a sample that is no number")
        frame = AudioFrame.from_ndarray(np.atleast_2d(values), format="flt", layout="mono")
        frame.sample_rate = int(held["sampling_rate"])
        resampler = AudioResampler(format="flt", layout="mono", rate=rate)
        for resampled in (*resampler.resample(frame), *resampler.resample(None)):
            yield resampled.to_ndarray()[0]
    except Exception as error:  # whatever a row holds may be anything
        raise MediaError(
            f"the row's own audio cannot be read ({type(error).__name__})",
            where=f"{ref.root}, inline",
            expected='{"array": [numbers], "sampling_rate": Hz}, one channel',
            remedy="mend the row",
        ) from None
