"""Mel features and resampling; `transformers` is the oracle of the former."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from torch import Tensor

from omnidata.errors import PlatformError
from omnidata.media import samples
from omnidata.torch import Collate, Decoding, Padded, StepDataset, log_mel, resample
from omnidata.types import Step
from tests.full import in_gate

TOLERANCE = 5e-4
"""Of values between about -1.5 and 1.5; single precision differs by 1e-5, seldom 1e-4."""


def whisper(waves: list[Tensor], bins: int) -> tuple[Tensor, Tensor]:
    """Features (B, bins, columns) and mask (B, columns) as transformers makes them."""
    from transformers import WhisperFeatureExtractor

    found = WhisperFeatureExtractor(feature_size=bins)(
        [wave.numpy() for wave in waves],
        sampling_rate=16_000,
        padding="longest",
        truncation=False,
        return_attention_mask=True,
        return_tensors="pt",
    )
    return found["input_features"], found["attention_mask"]


def sound(seconds: float, seed: int) -> Tensor:
    """A tone that rises, in noise."""
    clock = np.arange(int(seconds * 16_000)) / 16_000
    tone = 0.5 * np.sin(2 * np.pi * (300 + 900 * clock) * clock)
    noise = np.random.default_rng(seed).normal(0, 0.01, len(clock))
    return torch.from_numpy((tone + noise).astype(np.float32))


@pytest.mark.parametrize("bins", [80, 128])
@pytest.mark.parametrize("seconds", [0.05, 1.0, 2.00333, 31.0])
def test_features_equal_those_of_whisper(bins: Literal[80, 128], seconds: float) -> None:
    wave = sound(seconds, seed=1)
    wanted = whisper([wave], bins)[0][0]
    found = log_mel(wave, bins=bins)
    assert found.shape == wanted.shape and found.dtype == torch.float32
    assert (found - wanted).abs().max() < TOLERANCE


def test_features_of_silence_equal_those_of_whisper() -> None:
    wave = torch.zeros(8_000)
    assert (log_mel(wave) - whisper([wave], 128)[0][0]).abs().max() < TOLERANCE


@pytest.mark.parametrize("longest", [3.0, 3.00013])
def test_features_of_a_padded_batch_equal_those_of_whisper(
    steps: list[Step], longest: float
) -> None:
    waves = [sound(1.25, seed=2), sound(longest, seed=3), sound(0.70007, seed=4)]
    items = [StepDataset(steps, Decoding(roles=("audio",)))[0] for _ in waves]
    for item, wave in zip(items, waves, strict=True):
        item.media["audio"] = wave
    features, mask = whisper(waves, 128)
    mel = Collate(pad=True, mel_bins=128)(items).mel["audio"]
    assert isinstance(mel, Padded)
    assert mel.values.shape == features.shape
    assert (mel.values - features).abs().max() < TOLERANCE
    assert torch.equal(mel.mask(2), mask.bool())


def test_features_in_lists_are_those_of_each_track(steps: list[Step]) -> None:
    item = StepDataset(steps)[0]
    assert item.audio is not None
    batch = Collate(mel_bins=80)([item, item])
    assert isinstance(batch.mel["audio"], list)
    for found in batch.mel["audio"]:
        assert found is not None and torch.equal(found, log_mel(item.audio, bins=80))


def test_sound_of_another_rate_is_resampled_for_the_features(steps: list[Step]) -> None:
    item = StepDataset(steps, Decoding(roles=("audio",), audio_rate=24_000))[0]
    assert item.audio is not None
    batch = Collate(mel_bins=80)([item])
    assert isinstance(batch.mel["audio"], list) and batch.mel["audio"][0] is not None
    assert (
        batch.mel["audio"][0].shape == log_mel(resample(item.audio, 24_000, 16_000), bins=80).shape
    )


def test_a_tone_keeps_its_pitch_when_resampled() -> None:
    clock = torch.arange(24_000) / 24_000
    tone = torch.sin(2 * torch.pi * 440 * clock)
    found = resample(tone, 24_000, 16_000)
    wanted = torch.sin(2 * torch.pi * 440 * torch.arange(16_000) / 16_000)
    assert found.shape == (16_000,)
    assert (found - wanted)[200:-200].abs().max() < 0.01


def test_a_sound_shorter_than_a_window_has_one_column() -> None:
    assert log_mel(torch.ones(10)).shape == (128, 1)


UNLOADABLE = 'raise OSError("libc10_cuda.so: cannot open shared object file")\n'
ABSENT = 'raise ModuleNotFoundError("No module named torchaudio")\n'


@pytest.mark.parametrize("source", in_gate([UNLOADABLE, ABSENT], 1, "both are caught alike"))
def test_a_torchaudio_that_does_not_load_is_a_clear_message(
    source: str, tmp_path: Path, steps: list[Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Samples still come at 16 kHz; only the features are refused."""
    (tmp_path / "torchaudio.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchaudio"]:
        monkeypatch.delitem(sys.modules, name)
    track = steps[0].media["audio"]
    assert track is not None
    wave = torch.from_numpy(samples(track))
    assert len(wave) == 3200
    for _ in range(2):
        with pytest.raises(PlatformError, match="torchaudio cannot be loaded") as caught:
            log_mel(wave, bins=40)  # type: ignore[arg-type]  # filters that no test has made
        assert "torch and torchaudio from one index" in caught.value.remedy


def test_a_missing_torch_is_a_clear_message() -> None:
    code = """
import sys
sys.modules["torch"] = None
from omnidata.errors import PlatformError
try:
    import omnidata.torch
except PlatformError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "omnidata[local]"' in done.stdout
