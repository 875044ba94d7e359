"""Shared parts of desktop benchmarks: the actions in histories, and clips of recordings."""

from __future__ import annotations

from typing import Final

from omnidata.actions import Action
from omnidata.types import MediaRef, VideoSegment

UNSAID: Final = "(an action that cannot be shown)"


def history_words(action: Action | None) -> str:
    """Return the words of an earlier action in a prompt, or `UNSAID`.

    Args:
        action: of the expert, or of the model; None if unknown.
    """
    return action.words if action and action.words and is_in_histories(action) else UNSAID


def is_in_histories(action: Action) -> bool:
    """Return whether histories show an action, version 1 of the prompts of desktops.

    They show actions with a counterpart on a touch screen: no pointer that only moves, no keys and
    buttons that are held, no drag without a start, no wheel that does not turn. Only the first
    action that is no wait counts.

    Examples:
        >>> is_in_histories(Action("tap")), is_in_histories(Action("wait", then=(Action("move"),)))
        (True, False)
    """
    first = next((one for one in (action, *action.then) if one.kind != "wait"), None)
    if first is None:
        return True
    if first.kind == "drag":
        return bool(first.start and first.end and first.start != first.end)
    if first.kind == "scroll":
        return first.direction is not None
    if first.kind == "done":
        return first.status is not None
    return first.kind not in ("move", "hold", "release")


# Recordings of desktops.

_SHORTEST_S: Final = 1 / 60


def clip_of(
    recording: MediaRef, number: int, start_s: float, end_s: float, *, seconds: float
) -> MediaRef | None:
    """Return a part of a recording as a clip, named after the recording.

    Args:
        recording: the video.
        number: of the clip, in its name.
        start_s: its begin, in seconds after the first frame.
        end_s: its end.
        seconds: how long the recording is.

    Returns:
        None for less than a frame, or outside the recording.
    """
    start, end = (round(min(max(moment, 0.0), seconds), 6) for moment in (start_s, end_s))
    if end - start < _SHORTEST_S:
        return None
    name = f"{recording.path.removesuffix('.mp4')}_{number}.mp4"
    return MediaRef("video", recording.root, name, cell=VideoSegment(recording.path, start, end))
