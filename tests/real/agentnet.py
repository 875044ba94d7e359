"""The real screen recording with real interface sounds mixed in.

The recording (AgentNet raw example, Windows 10, 122.6 s) has 14 actions and an end. Its own track
is digital silence, so TalkBack's earcons are put there, one at the end of every action: the next
step's track begins with it. Step 0 stays silent, and so does step 11, because what it begins with
is cut off. The picture is copied packet by packet.
"""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

from omnidata.media import samples
from omnidata.tasks import get_task
from omnidata.types import MediaRef
from tests.trees import SHARED

ROOT = SHARED / "data" / "agentnet_raw_win10"
RECORDING = ROOT / "recording"
EARCONS = SHARED / "data" / "talkback_earcons"
APP, EPISODE = "Windows", "recording"

_RATE = 48_000
_SOUNDS = {
    "TAP": "focus_actionable",
    "LONG_PRESS": "long_clicked",
    "SWIPE_UP": "scroll_tone",
    "SWIPE_LEFT": "gesture_end",
}


def missing() -> str | None:
    """Why the recording cannot be used here; None when it can."""
    absent = [str(path) for path in (RECORDING, EARCONS) if not path.is_dir()]
    return f"needs {' and '.join(absent)}" if absent else None


def mix(out: Path) -> Path:
    """Write the recording with the earcons as its sound; needs what `missing` looks for."""
    with (
        av.open(str(RECORDING / "recording.mp4")) as source,
        av.open(str(out), "w") as target,
    ):
        film = source.streams.video[0]
        picture = target.add_stream_from_template(film)
        sound = target.add_stream("aac", rate=_RATE, layout="mono")
        for packet in source.demux(film):
            if packet.dts is not None:
                packet.stream = picture
                target.mux(packet)
        seconds = float((film.duration or 0) * (film.time_base or 0))
        frame = av.AudioFrame.from_ndarray(_soundtrack(seconds)[None], format="flt", layout="mono")
        frame.sample_rate = _RATE
        target.mux(sound.encode(frame))
        target.mux(sound.encode(None))
    return out


def _soundtrack(seconds: float) -> NDArray[np.float32]:
    track = np.zeros(round(seconds * _RATE), dtype=np.float32)
    log = recorder(RECORDING) if (recorder := get_task("agentnet").benchmark.recorder) else None
    assert log
    for event in log.events:
        if event.action.label in _SOUNDS:
            ref = MediaRef("audio", EARCONS, f"{_SOUNDS[event.action.label]}.ogg")
            start = round(event.end_s * _RATE)
            part = samples(ref, rate=_RATE)[: track.size - start]
            track[start : start + part.size] += part
    return track.clip(-1, 1)
