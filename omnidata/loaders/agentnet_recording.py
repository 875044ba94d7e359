"""The recording of a trajectory by AgentNet's tool, and the part of it that leads to each step.

`metadata.json` has the moment at which the video began, `reduced_events_vis.jsonl` the actions that
became steps, by the same clock; it agrees with the video to a few tenths of a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Final

from omnidata.agentnet import Deed
from omnidata.errors import MediaError
from omnidata.loaders.agentnet_files import RECORDED
from omnidata.loaders.json_lines import decoded, values
from omnidata.media import Budget, resolve
from omnidata.media.cut import recorded_seconds
from omnidata.types import Cut, MediaRef

FOLDER: Final = "recording"
VIDEO: Final = "recording.mp4"
METADATA: Final = "metadata.json"
_BUDGET: Final = Budget(max_bytes=1024**3)
_SHORTEST_S: Final = 1 / 60
LONGEST_S: Final = 10.0
"""Of a clip, as `omnidata segment` cuts: of a longer wait its end is kept."""
_VERBS: Final = ("drag", "scroll", "click")
"""What the tool's description of an action tells of it: "Single left Click", "Drag from ..."."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """A recording, and when each action was made in it.

    Attributes:
        ref: the video.
        seconds: how long it is by its header.
        spans: begin and end of each action, in seconds after the first frame.
    """

    ref: MediaRef
    seconds: float
    spans: Sequence[tuple[float, float]]

    def clip(self, number: int) -> MediaRef | None:
        """What was seen between an action and the one before it, or since the beginning.

        Args:
            number: of the step, 0-based; one more than there are actions for the end, whose clip
                goes from the last action to the end of the recording.

        Returns:
            None for less than a frame, or for what lies outside the recording.
        """
        begin = self.spans[number - 1][1] if number else 0.0
        until = self.spans[number][0] if number < len(self.spans) else self.seconds
        begin = max(begin, until - LONGEST_S)
        start, end = (round(min(max(moment, 0.0), self.seconds), 6) for moment in (begin, until))
        if end - start < _SHORTEST_S:
            return None
        name = f"{self.ref.path.removesuffix('.mp4')}_{number}.mp4"
        return MediaRef("video", self.ref.root, name, cell=Cut(self.ref.path, start, end))


def timeline(root: Path, folder: Path, steps: Sequence[Sequence[Deed]]) -> Timeline | str | None:
    """Where the steps of a trajectory lie in the recording beside it.

    Args:
        root: the dataset's folder.
        folder: that of the trajectory's file, below it.
        steps: what each does; an end at the end is no action.

    Returns:
        None where there is no recording; or why its actions are not those of the steps.
    """
    home = folder / FOLDER
    if not (home / VIDEO).exists():
        return None
    name = home.relative_to(root).as_posix()
    ref = MediaRef("video", root, f"{name}/{VIDEO}")
    ends = bool(steps and steps[-1]) and steps[-1][-1].type == "terminate"
    acting = steps[:-1] if ends else steps
    try:
        zero = _began(MediaRef("video", root, f"{name}/{METADATA}"))
        kept = resolve(MediaRef("video", root, f"{name}/{RECORDED}"), budget=_BUDGET)
        events = [row for _, row in values(kept)]
        if len(events) != len(acting):
            return f"it has {len(events)} actions, and the trajectory {len(acting)}"
        spans = [_span(row, zero, deeds) for row, deeds in zip(events, acting, strict=True)]
        return Timeline(ref, recorded_seconds(ref), spans)
    except MediaError as error:
        return f"{error.what}: {error.where}"
    except ValueError as error:
        return str(error)
    except OSError as error:
        return f"it cannot be read ({error.strerror})"


def _began(ref: MediaRef) -> float:
    """When the video began.

    Raises:
        MediaError, OSError: the file cannot be read.
        ValueError: it does not say.
    """
    value = decoded(resolve(ref, budget=_BUDGET).read_bytes())
    return _moment(value.get("video_start_timestamp") if isinstance(value, dict) else None)


def _span(row: object, zero: float, deeds: Sequence[Deed]) -> tuple[float, float]:
    """Begin and end of an action.

    Raises:
        ValueError: it has none, or is another action than the step's.
    """
    if not isinstance(row, dict):
        raise ValueError(f"a line of {RECORDED} is no JSON object")
    start, end = (_moment(row.get(name)) - zero for name in ("start_time", "end_time"))
    said = str(row.get("description", "")).lower()
    heard = next((verb for verb in _VERBS if verb in said), "")
    if deeds and not any(heard in deed.type.lower() for deed in deeds):
        raise ValueError(
            f"its action {said!r:.60} is none of a step of "
            + " and ".join(deed.type for deed in deeds)
        )
    return start, max(start, end)


def _moment(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not isfinite(value):
        raise ValueError("a time in it is no number")
    return float(value)
