"""Media are sent as they are where nothing has to change, and as what they are in any case."""

from __future__ import annotations

import hashlib
import io
import wave
from pathlib import Path
from typing import Any

import av
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnidata.adapters.media_budget import Capabilities
from omnidata.adapters.render import render
from omnidata.errors import MediaError
from omnidata.media import encode_wav
from omnidata.types import MediaRef, Modality, ParquetLocation
from tests.adapters.media import (
    FPS,
    clip,
    coded,
    colours,
    lines,
    parts,
    picture,
    pixels,
    rendered,
    shown,
    step,
    tone,
    track,
    turn,
)

# --- passed on as they are ------------------------------------------------------------------------


def test_media_that_need_no_change_are_passed_on_byte_for_byte(tmp_path: Path) -> None:
    messages, receipt = render(step(tmp_path), Capabilities(video="native"))
    assert [message.role for message in messages] == ["system", "user"]
    sent = [part for part in parts(messages) if part.kind != "text"]
    files = ["history.png", "clip.mp4", "sound.wav", "screenshot.png"]
    assert [part.data for part in sent] == [(tmp_path / name).read_bytes() for name in files]
    assert [part.mime for part in sent] == ["image/png", "video/mp4", "audio/wav", "image/png"]
    assert [part.sha256 for part in sent] == [hashlib.sha256(p.data).hexdigest() for p in sent]
    assert [line["as"] for line in receipt["parts"]] == ["file"] * 4
    assert [line["sha256"] for line in receipt["parts"]] == [part.sha256 for part in sent]
    assert lines(receipt)["screenshot"] | {"sha256": ""} == {
        "role": "screenshot",
        "kind": "image",
        "as": "file",
        "mime": "image/png",
        "bytes": len(sent[3].data),
        "width": 48,
        "height": 64,
        "sha256": "",
    }
    assert lines(receipt)["video"]["seconds"] == pytest.approx(1.2)
    assert lines(receipt)["audio"]["seconds"] == pytest.approx(0.5)
    assert "degraded" not in receipt


def test_parts_stay_in_the_order_of_the_conversation(tmp_path: Path) -> None:
    messages, _ = render(step(tmp_path), Capabilities(frames=2, frame_times=False))
    assert [part.text or part.role for part in parts(messages)] == [
        *("You are an agent.", "[History Screenshot]:", "history_screenshot"),
        *("video", "video", "audio", "screenshot", "Goal: Tap Share"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "mime"),
    [("a.png", "JPEG", "image/jpeg"), ("b.jpg", "WEBP", "image/webp"), ("c", "PNG", "image/png")],
)
def test_a_picture_is_called_by_its_content_not_its_name(
    tmp_path: Path, name: str, content: str, mime: str
) -> None:
    ref = picture(tmp_path, name, colours(1), format=content)
    [part], _ = rendered(ref)
    assert (part.mime, part.data) == (mime, (tmp_path / name).read_bytes())


@pytest.mark.parametrize(
    ("container", "codec", "mime"),
    [
        ("mp4", "libx264", "video/mp4"),
        ("mov", "libx264", "video/quicktime"),
        ("webm", "libvpx", "video/webm"),
        ("matroska", "libx264", "video/x-matroska"),
        ("avi", "mpeg4", "video/x-msvideo"),
    ],
)
def test_a_clip_is_called_by_its_content_not_its_name(
    tmp_path: Path, container: str, codec: str, mime: str
) -> None:
    with av.open(str(tmp_path / "clip.mp4"), "w", format=container) as file:
        stream = file.add_stream(codec, rate=FPS)
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt = 48, 64, "yuv420p"
        for seed in range(5):
            file.mux(stream.encode(av.VideoFrame.from_ndarray(colours(seed), format="rgb24")))
        file.mux(stream.encode(None))
    ref = MediaRef("video", tmp_path, "clip.mp4")
    [part], line = rendered(ref, video="native")
    assert (part.mime, line["width"], line["height"]) == (mime, 48, 64)


@pytest.mark.parametrize(
    ("kind", "name", "faststart"),
    [
        ("image", "screenshot.png", False),
        ("image", "photo.jpg", False),
        ("video", "clip.mp4", False),
        ("video", "clip.mp4", True),
        ("audio", "sound.wav", False),
    ],
)
@pytest.mark.parametrize("video", ["native", "frames"])
@pytest.mark.parametrize("audio", ["file", "waveform"])
def test_a_truncated_medium_is_never_sent(
    tmp_path: Path, kind: Modality, name: str, faststart: bool, video: Any, audio: Any
) -> None:
    step(tmp_path)
    noise = np.random.default_rng(0).integers(0, 255, (64, 48, 3)).astype(np.uint8)
    picture(tmp_path, "photo.jpg", noise)
    path = tmp_path / name
    if faststart:
        _begin_with_the_index(path)
    ref = MediaRef(kind, tmp_path, name)
    rendered(ref, video=video, audio=audio)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 4 // 5])
    with pytest.raises(MediaError, match=name.split(".")[0]):
        rendered(ref, video=video, audio=audio)


def _begin_with_the_index(path: Path) -> None:
    """Write a clip anew so that its head says all, and only pictures are lost with its end."""
    other = path.with_name("index-first.mp4")
    options = {"movflags": "faststart"}
    with av.open(str(path)) as source, av.open(str(other), "w", options=options) as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(source.streams.video[0]):
            if packet.size:
                packet.stream = stream
                target.mux(packet)
    content = other.read_bytes()
    assert content.index(b"moov") < content.index(b"mdat")
    path.write_bytes(content)


def test_media_in_cells_of_a_parquet_file_are_passed_on_as_well(tmp_path: Path) -> None:
    step(tmp_path)
    files = {"image": "screenshot.png", "video": "clip.mp4", "audio": "sound.wav"}
    cells = {kind: [{"bytes": (tmp_path / name).read_bytes()}] for kind, name in files.items()}
    pq.write_table(pa.table(cells), tmp_path / "s.parquet", compression="none")
    kinds: tuple[Modality, ...] = ("image", "video", "audio")
    refs = [
        MediaRef(kind, tmp_path, files[kind], cell=ParquetLocation("s.parquet", kind, 0))
        for kind in kinds
    ]
    for name in files.values():
        (tmp_path / name).unlink()
    conversation = turn(*(shown(ref.kind, ref, ref.kind) for ref in refs))
    messages, receipt = render(conversation, Capabilities(video="native"))
    sent = [part.data for part in parts(messages)]
    assert sent == [cell["bytes"] for [cell] in cells.values()]
    assert [line["as"] for line in receipt["parts"]] == ["file"] * 3
    _, receipt = render(conversation, Capabilities(audio="waveform", image_size=32))
    assert [line["as"] for line in receipt["parts"]] == ["file", "frames", "waveform"]


@pytest.mark.parametrize("kind", ["image", "video", "audio"])
def test_a_file_that_is_no_medium_or_missing_is_an_error(tmp_path: Path, kind: Modality) -> None:
    (tmp_path / "x").write_bytes(b"not a medium" * 100)
    with pytest.raises(MediaError):
        rendered(MediaRef(kind, tmp_path, "x"), video="native")
    with pytest.raises(MediaError, match="missing"):
        rendered(MediaRef(kind, tmp_path, "y"), video="native")


# --- frames ---------------------------------------------------------------------------------------


def test_frames_go_from_the_first_to_the_last_and_say_when_they_are_shown(tmp_path: Path) -> None:
    sent, line = rendered(clip(tmp_path))
    times, frames = sent[0::2], sent[1::2]
    assert [part.text for part in times] == [
        f"[Video frame at {seconds:.2f} s]:" for seconds in (0.0, 0.3, 0.7, 1.1)
    ]
    seen = [round(float(pixels(part).mean()) / 20) for part in frames]
    assert seen == [0, 3, 7, 11]  # 0, 11/3, 22/3, 11, cut to whole numbers as the release does
    whole = b"".join(part.data for part in frames)
    said = {"as": "frames", "frames": 4, "times_s": [0.0, 0.3, 0.7, 1.1], "width": 48, "height": 64}
    said |= {"bytes": len(whole), "sha256": hashlib.sha256(whole).hexdigest()}
    assert line.items() >= said.items()


def test_a_frame_is_the_decoded_one_without_loss(tmp_path: Path) -> None:
    ref = clip(tmp_path)
    with av.open(str(tmp_path / ref.path)) as container:
        first = next(container.decode(video=0)).to_ndarray(format="rgb24")
    sent, _ = rendered(ref, frame_times=False)
    assert (pixels(sent[0]) == first).all()


def test_a_clip_of_fewer_frames_is_shown_whole(tmp_path: Path) -> None:
    sent, line = rendered(clip(tmp_path, frames=2), frames=4, frame_times=False)
    assert len(sent) == line["frames"] == 2
    assert "dropped" not in line


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
    [part], _ = rendered(ref, audio_formats=(own,))
    assert (part.mime, part.data) == (mime, (tmp_path / name).read_bytes())
    others = tuple({"wav", "mp3", "flac", "ogg", "m4a"} - {own})
    [part], line = rendered(ref, audio_formats=others)
    rate, channels, width, samples = read_wav(part.data)
    assert (rate, channels, width, line["as"]) == (16_000, 1, 2, "waveform")
    assert np.abs(samples).max() == pytest.approx(0.5 * 32768, rel=0.1)
    assert line["seconds"] == pytest.approx(0.5, abs=0.06)
    assert len(samples) == round(line["seconds"] * 16_000)


def test_a_wav_of_compressed_sound_is_written_anew(tmp_path: Path) -> None:
    ref = coded(tmp_path, "a.wav", "adpcm_ms", format="wav")
    [part], line = rendered(ref)
    assert (line["as"], read_wav(part.data)[0]) == ("waveform", 16_000)


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
    film = MediaRef("audio", tmp_path, "film.mp4")
    assert rendered(film, audio_formats=("wav", "m4a"))[1]["as"] == "waveform"


def test_a_waveform_of_16_bit_sound_has_the_very_samples(tmp_path: Path) -> None:
    ref = track(tmp_path)
    [part], line = rendered(ref, audio="waveform")
    before = read_wav((tmp_path / ref.path).read_bytes())[3]
    assert (read_wav(part.data)[3] == before).all()
    assert line["as"] == "waveform"


def test_sound_that_a_row_holds_itself_becomes_a_wav_file(tmp_path: Path) -> None:
    held = {"array": tone().tolist(), "sampling_rate": 16_000}
    ref = MediaRef("audio", tmp_path, "", inline=held)
    [part], line = rendered(ref)
    rate, channels, _, samples = read_wav(part.data)
    assert (rate, channels) == (16_000, 1)
    assert np.abs(samples / 32768 - tone()).max() < 1e-4
    assert line["seconds"] == pytest.approx(0.5)


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
    with pytest.raises(MediaError, match="not numbers"):
        rendered(ref, audio="waveform")


def test_a_track_has_no_more_samples_a_second_than_it_may(tmp_path: Path) -> None:
    """Nothing above half of the rate is left: a high tone is not heard."""
    (tmp_path / "high.wav").write_bytes(encode_wav(tone(hertz=3000.0)))
    heard = {}
    for name, ref in (("low", track(tmp_path)), ("high", MediaRef("audio", tmp_path, "high.wav"))):
        [part], line = rendered(ref, audio_rate=4000)
        rate, _, _, samples = read_wav(part.data)
        assert (rate, line["rate"], line["as"]) == (4000, 4000, "waveform")
        assert len(samples) == pytest.approx(2000, abs=2) and line["seconds"] == len(samples) / rate
        heard[name] = float(np.abs(samples[500:1500]).max()) / 32768
    assert heard["low"] > 0.4 and heard["high"] < 0.02
    assert "rate" not in rendered(ref)[1]
