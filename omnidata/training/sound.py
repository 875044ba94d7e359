"""Resampling and mel features of waveforms that are tensors, by torchaudio."""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import pad

from omnidata.errors import PlatformError

MelBins = Literal[80, 128]
RATE = 16_000
"""Samples per second that Whisper's features are made of."""

HOP = 160
"""Samples from one column of features to the next: 10 ms."""

_WINDOW = 400


def resample(audio: Tensor, rate: int, new_rate: int) -> Tensor:
    """A waveform at another rate, through a windowed sinc filter.

    `Decoding(audio_rate=...)` needs no torchaudio and starts from what the file holds; this is for
    a second rate from the same samples.

    Args:
        audio: float32 (..., N).
        rate: its samples per second, in Hz.
        new_rate: those of the result.

    Returns:
        float32 (..., ceil(N * new_rate / rate)).

    Raises:
        PlatformError: torchaudio is absent or cannot be loaded.

    Examples:
        >>> resample(torch.zeros(2, 24_000), 24_000, 16_000).shape
        torch.Size([2, 16000])
    """
    if rate == new_rate:
        return audio
    result: Tensor = _torchaudio().functional.resample(audio, rate, new_rate)
    return result


def log_mel(audio: Tensor, *, bins: MelBins = 128, rate: int = RATE) -> Tensor:
    """Log-mel features as Whisper's (Radford et al. 2022, section 2.2), which Qwen-Omni takes too.

    Hann windows of 400 samples, one every 160; slaney filters up to 8 kHz; logarithm to the base
    10, cut 8 below the waveform's maximum, then (x + 4) / 4. `transformers`'
    `WhisperFeatureExtractor` gives the same within 5e-4.

    Args:
        audio: float32 (..., N), full scale at -1 and 1.
        bins: 80, or 128 (Whisper large-v3, Qwen-Omni).
        rate: of `audio`, in Hz; resampled to 16 kHz first where it is another.

    Returns:
        float32 (..., bins, N // 160), N at 16 kHz, where less than 201 samples are filled up with
        silence.

    Raises:
        PlatformError: torchaudio is absent or cannot be loaded.

    Examples:
        >>> log_mel(torch.zeros(16_000), bins=80).shape
        torch.Size([80, 100])
    """
    wave = resample(audio, rate, RATE)
    wave = pad(wave, (0, max(0, _WINDOW // 2 + 1 - wave.shape[-1])))
    mel: Tensor = _spectrogram(bins, wave.device)(wave)[..., :-1].clamp(min=1e-10).log10()
    mel = torch.maximum(mel, mel.amax(dim=(-2, -1), keepdim=True) - 8.0)
    return (mel + 4.0) / 4.0


@lru_cache(maxsize=8)
def _spectrogram(bins: MelBins, device: torch.device) -> torch.nn.Module:
    module: torch.nn.Module = _torchaudio().transforms.MelSpectrogram(
        RATE, _WINDOW, hop_length=HOP, n_mels=bins, f_max=8000.0, norm="slaney", mel_scale="slaney"
    )
    return module.to(device)


def _torchaudio() -> ModuleType:
    """The library, or why it is not there: builds for another torch fail in ways of their own."""
    try:
        import torchaudio
    except (ImportError, OSError, RuntimeError) as error:
        raise PlatformError(
            f"torchaudio cannot be loaded ({type(error).__name__}: {error})",
            where=f"torch {torch.__version__}",
            expected="the build of torchaudio that was made for this torch, CUDA or CPU",
            remedy="install both from one index; without it samples come at any rate through "
            "Decoding(audio_rate=...), but there is no mel",
        ) from None
    module: ModuleType = torchaudio
    return module
