"""An OmniGUI tree from a real screen recording with real actions.

The recording (AgentNet raw example, Windows 10, 122.6 s) has 14 actions and an end: 15 steps. The
clip and the track of a step last from the end of the action before to the start of its own, the
last 10 s of that where it is longer (step 11); the last step has the 4 s after the last action.

- **Sound.** The recording's own track is digital silence. TalkBack's earcons are mixed in, one at
  the end of every action, so that the next step's track begins with it. Step 0 stays silent, and so
  does step 11, because what it begins with is cut off.
- **Targets.** Steps 0, 2, 4, 6 and 7 have the accessibility rectangle of the clicked element. The
  others have the point: step 1's element is not in the accessibility tree, the drag (3) and the
  scroll (5) have none, and step 7 changes the scale of the desktop, after which the rectangles are
  those of other elements (11 marks the entry below the clicked one, 9 reaches beyond the screen) or
  of whole windows (10).
- **Actions.** Right click is LONG_PRESS; a drag is a swipe along its larger displacement; the
  source's code is kept in the column `code` and never executed.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from omnidata.actions import Action, Box, Point, Primitive
from omnidata.data.encode import AUDIO_RATE, Frame, Samples, encode_mp4, encode_wav
from omnidata.loaders.omnigui_tree import TreeEpisode, TreeStep, TreeWriter

SHARED = Path(__file__).resolve().parents[3] / "shared"
RECORDING = SHARED / "data" / "agentnet_raw_win10"
EARCONS = SHARED / "data" / "talkback_earcons"
APP, EPISODE = "Windows", "task_example_0"

CLIP_SIZE = (640, 360)
CLIP_FPS = 15
_SCREEN = (1366, 768)  # of the accessibility rectangles
_LONGEST_S = 10.0
_AFTERWARDS_S = 4.0
_SCALE_CHANGED_BY = 7
_CLICKS = {
    "click": Primitive.TAP,
    "doubleClick": Primitive.DOUBLE_TAP,
    "rightClick": Primitive.LONG_PRESS,
}
_SOUNDS = {
    Primitive.TAP: "focus_actionable",
    Primitive.DOUBLE_TAP: "hyperlink",
    Primitive.LONG_PRESS: "long_clicked",
    Primitive.SWIPE_UP: "scroll_tone",
    Primitive.SWIPE_DOWN: "scroll_tone",
    Primitive.SWIPE_LEFT: "gesture_end",
    Primitive.SWIPE_RIGHT: "gesture_end",
    Primitive.INPUT: "tick",
}


@dataclass(frozen=True)
class _Call:
    name: str
    args: tuple[Any, ...]
    options: Mapping[str, Any]

    @property
    def point(self) -> Point:
        return Point(self.options["x"], self.options["y"], "rel")


@dataclass(frozen=True)
class _Span:
    """Seconds of the recording."""

    start: float
    end: float


def missing() -> str | None:
    """Why the tree cannot be built here; None when it can."""
    absent = [str(path) for path in (RECORDING, EARCONS) if not path.is_dir()]
    return f"needs {' and '.join(absent)}" if absent else None


def build_tree(out: Path) -> Path:
    """Write the tree with its one episode; needs what `missing` looks for.

    Args:
        out: a new or empty folder.

    Returns:
        `out`, the folder of the app folders.
    """
    example = json.loads((RECORDING / "raw_example.jsonl").read_text().splitlines()[0])
    timing = json.loads((RECORDING / "derived" / "step_timing.json").read_text())
    events = [
        json.loads(line)
        for line in (RECORDING / "recording" / "reduced_events_vis.jsonl").read_text().splitlines()
    ]
    codes = [step["value"]["code"] for step in example["traj"]]
    actions = [
        _action(code, _box(events[index]) if index <= _SCALE_CHANGED_BY else None)
        for index, code in enumerate(codes)
    ]
    spans = _spans(timing["rows"], timing["video_s"])
    track = _soundtrack(actions, timing["rows"], timing["video_s"])
    clips = _clips(spans)
    with TreeWriter(out) as tree:
        tree.add(
            TreeEpisode(
                EPISODE,
                app=APP,
                dimension="localization",
                steps=(
                    _step(action, code, index, span, clip, track)
                    for index, (action, code, span, clip) in enumerate(
                        zip(actions, codes, spans, clips, strict=True)
                    )
                ),
                instruction_en=example["instruction"],
                dependency="present",
                language="en",
            )
        )
    return out


def _step(
    action: Action, code: str, index: int, span: _Span, clip: bytes, track: Samples
) -> TreeStep:
    picture = RECORDING / "images" / f"{index}.png"
    with Image.open(picture) as image:
        screen = image.size
    first, last = (round(t * AUDIO_RATE) for t in (span.start, span.end))
    return TreeStep(
        action,
        screen=screen,
        screenshot=picture,
        video=clip,
        audio=encode_wav(track[first:last]),
        extra={"code": code},
    )


def _calls(code: str) -> list[_Call]:
    """The calls of a snippet, by its syntax."""
    found = []
    for line in ast.parse(code).body:
        assert isinstance(line, ast.Expr)
        assert isinstance(line.value, ast.Call)
        assert isinstance(line.value.func, ast.Attribute)
        found.append(
            _Call(
                line.value.func.attr,
                tuple(ast.literal_eval(value) for value in line.value.args),
                {str(item.arg): ast.literal_eval(item.value) for item in line.value.keywords},
            )
        )
    return found


def _action(code: str, box: Box | None) -> Action:
    """The primitive for a snippet; the box is its target where it holds the clicked point."""
    calls = _calls(code)
    first, last = calls[0], calls[-1]
    if last.name in _CLICKS:
        target = box if box is not None and _holds(box, last.point) else last.point
        return Action(_CLICKS[last.name], (target,))
    if last.name == "dragTo":
        dx, dy = last.point.x - first.point.x, last.point.y - first.point.y
        wide = abs(dx) * _SCREEN[0] > abs(dy) * _SCREEN[1]
        names = ("SWIPE_LEFT", "SWIPE_RIGHT") if wide else ("SWIPE_UP", "SWIPE_DOWN")
        kind = Primitive[names[(dx if wide else dy) > 0]]
        return Action(kind, (first.point,), (last.point,))
    if last.name == "scroll":
        kind = Primitive.SWIPE_UP if last.args[0] < 0 else Primitive.SWIPE_DOWN
        return Action(kind, (first.point,))
    if last.name == "write":
        return Action(Primitive.INPUT, text=str(last.args[0]))
    assert last.name == "terminate", code
    return Action(Primitive.TASK_COMPLETE)


def _holds(box: Box, point: Point) -> bool:
    return box.left <= point.x <= box.right and box.top <= point.y <= box.bottom


def _box(event: Mapping[str, Any]) -> Box | None:
    """The rectangle of the element that the event names, where exactly one element fits."""
    fitting = [
        node["BoundingRectangle"]
        for node in _nodes(event["axtree"])
        if node["Name"] == event["target"].get("title")
        and node["ControlType"] == event["target"].get("control_type")
    ]
    if len(fitting) != 1:
        return None
    wide, high = _SCREEN
    rect = fitting[0]
    return Box(
        rect["left"] / wide, rect["top"] / high, rect["right"] / wide, rect["bottom"] / high, "rel"
    )


def _nodes(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if node.get("BoundingRectangle"):
        yield {"Name": None, "ControlType": None, **node}
    for child in node.get("Children", ()):
        yield from _nodes(child)


def _spans(rows: list[dict[str, Any]], length_s: float) -> list[_Span]:
    spans, before = [], 0.0
    for row in rows:
        if row["action_start_s"] is None:
            spans.append(_Span(before, min(length_s, before + _AFTERWARDS_S)))
            continue
        start = row["action_start_s"]
        spans.append(_Span(max(before, start - _LONGEST_S), start))
        before = row["action_end_s"]
    return spans


def _clips(spans: list[_Span]) -> Iterator[bytes]:
    """One pass over the recording: a seek per step would decode most of it twice."""
    with av.open(str(RECORDING / "recording" / "recording.mp4"), "r") as container:
        frames = container.decode(video=0)
        for span in spans:
            yield encode_mp4(_thinned(frames, span), fps=CLIP_FPS)


def _thinned(frames: Iterator[av.VideoFrame], span: _Span) -> Iterator[Frame]:
    """The frames of a span, small and `CLIP_FPS` of them per second."""
    width, height = CLIP_SIZE
    due = span.start
    for frame in frames:
        assert frame.time is not None
        if frame.time >= due - 1e-6:
            small = frame.reformat(width=width, height=height, format="rgb24")
            yield small.to_ndarray().astype(np.uint8, copy=False)
            due += 1 / CLIP_FPS
        if due > span.end:
            return


def _soundtrack(actions: list[Action], rows: list[dict[str, Any]], length_s: float) -> Samples:
    """The recording's own track with an earcon at the end of every action."""
    silence = _decode(RECORDING / "recording" / "recording.mp4")
    track = np.zeros(round(length_s * AUDIO_RATE))
    count = min(track.size, silence.size)
    track[:count] = silence[:count]
    for action, row in zip(actions, rows, strict=True):
        if row["action_end_s"] is not None:
            sound = _decode(EARCONS / f"{_SOUNDS[action.kind]}.ogg")
            start = round(row["action_end_s"] * AUDIO_RATE)
            part = sound[: track.size - start]
            track[start : start + part.size] += part
    return track


def _decode(path: Path) -> Samples:
    """The audio of a file: mono, `AUDIO_RATE`."""
    resampler = av.AudioResampler(format="flt", layout="mono", rate=AUDIO_RATE)
    blocks: list[NDArray[np.float32]] = []
    with av.open(str(path), "r") as container:
        for frame in (*container.decode(audio=0), None):
            blocks.extend(block.to_ndarray()[0] for block in resampler.resample(frame))
    return np.concatenate(blocks).astype(np.float64)
