"""Sound in the form that a model takes: passed on, out of a clip, or as a waveform."""

from __future__ import annotations

import io
import wave
from pathlib import Path

import av
import numpy as np
import pytest

from omnidata.adapters.base import Capabilities
from omnidata.adapters.render import render
from omnidata.errors import MediaError
from omnidata.types import MediaRef
from tests.adapters.media import (
    coded,
    colours,
    parts,
    shown,
    tone,
    track,
    turn,
)

# --- sound ----------------------------------------------------------------------------------------


def read_wav(data: bytes) -> tuple[int, int, int, np.ndarray]:
    with wave.open(io.BytesIO(data)) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        return file.getframerate(), file.getnchannels(), file.getsampwidth(), samples


@pytest.mark.parametrize(
    ("name", "codec", "container", "mime"),
    [
        ("a.wav", "libmp3lame", "mp3", "audio/mpeg"),
        ("b.bin", "pcm_s16le", "wav", "audio/wav"),
        ("c.mp3", "flac", "flac", "audio/flac"),
        ("d.wav", "libopus", "ogg", "audio/ogg"),
        ("e.mp3", "aac", "mp4", "audio/mp4"),
    ],
)
def test_a_track_is_passed_on_if_its_content_has_a_format_that_the_model_takes(
    tmp_path: Path, name: str, codec: str, container: str, mime: str
) -> None:
    rate = 48_000 if codec == "libopus" else 44_100
    ref = coded(tmp_path, name, codec, rate=rate, format=container)
    own = {"audio/mpeg": "mp3", "audio/mp4": "m4a"}.get(mime, mime.removeprefix("audio/"))
    conversation = turn(shown("audio", ref, "audio"))
    [part] = parts(render(conversation, Capabilities(audio_formats=(own,)))[0])
    assert (part.mime, part.data) == (mime, (tmp_path / name).read_bytes())
    others = tuple({"wav", "mp3", "flac", "ogg", "m4a"} - {own})
    messages, receipt = render(conversation, Capabilities(audio_formats=others))
    rate, channels, width, samples = read_wav(parts(messages)[0].data)
    assert (rate, channels, width) == (16_000, 1, 2)
    assert np.abs(samples).max() == pytest.approx(0.5 * 32768, rel=0.1)
    assert receipt["parts"][0]["as"] == "waveform"
    assert receipt["parts"][0]["seconds"] == pytest.approx(0.5, abs=0.06)
    assert len(samples) == round(receipt["parts"][0]["seconds"] * 16_000)


def test_a_wav_of_compressed_sound_is_written_anew(tmp_path: Path) -> None:
    ref = coded(tmp_path, "a.wav", "adpcm_ms", format="wav")
    messages, receipt = render(turn(shown("audio", ref, "audio")), Capabilities())
    assert receipt["parts"][0]["as"] == "waveform"
    assert read_wav(parts(messages)[0].data)[0] == 16_000


def test_the_sound_of_a_clip_is_taken_out_of_it(tmp_path: Path) -> None:
    ref = coded(tmp_path, "sound.m4a", "aac", format="mp4")
    with av.open(str(tmp_path / "film.mp4"), "w") as target, av.open(str(ref.root / ref.path)) as s:
        video = target.add_stream("libx264", rate=10)
        assert isinstance(video, av.VideoStream)
        video.width, video.height, video.pix_fmt = 48, 64, "yuv420p"
        audio = target.add_stream_from_template(s.streams.audio[0])
        target.mux(video.encode(av.VideoFrame.from_ndarray(colours(1), format="rgb24")))
        target.mux(video.encode(None))
        for packet in s.demux(s.streams.audio[0]):
            if packet.size:
                packet.stream = audio
                target.mux(packet)
    film = turn(shown("audio", MediaRef("audio", tmp_path, "film.mp4"), "audio"))
    _, receipt = render(film, Capabilities(audio_formats=("wav", "m4a")))
    assert receipt["parts"][0]["as"] == "waveform"


def test_a_waveform_of_16_bit_sound_has_the_very_samples(tmp_path: Path) -> None:
    ref = track(tmp_path)
    messages, receipt = render(turn(shown("audio", ref, "audio")), Capabilities(audio="waveform"))
    before = read_wav((tmp_path / ref.path).read_bytes())[3]
    assert (read_wav(parts(messages)[0].data)[3] == before).all()
    assert receipt["parts"][0]["as"] == "waveform"


def test_sound_that_a_row_holds_itself_becomes_a_wav_file(tmp_path: Path) -> None:
    held = {"array": tone().tolist(), "sampling_rate": 16_000}
    ref = MediaRef("audio", tmp_path, "", inline=held)
    messages, receipt = render(turn(shown("audio", ref, "audio")), Capabilities())
    rate, channels, _, samples = read_wav(parts(messages)[0].data)
    assert (rate, channels) == (16_000, 1)
    assert np.abs(samples / 32768 - tone()).max() < 1e-4
    assert receipt["parts"][0]["seconds"] == pytest.approx(0.5)


def test_samples_that_are_no_numbers_are_an_error(tmp_path: Path) -> None:
    with av.open(str(tmp_path / "a.wav"), "w") as file:
        stream = file.add_stream("pcm_f32le", rate=16_000)
        assert isinstance(stream, av.AudioStream)
        stream.layout = "mono"
        values = np.full((1, 1600), np.nan, np.float32)
        frame = av.AudioFrame.from_ndarray(values, format="flt", layout="mono")
        frame.sample_rate = 16_000
        file.mux(stream.encode(frame))
    ref = MediaRef("audio", tmp_path, "a.wav")
    with pytest.raises(MediaError, match="no numbers"):
        render(turn(shown("audio", ref, "audio")), Capabilities(audio="waveform"))
