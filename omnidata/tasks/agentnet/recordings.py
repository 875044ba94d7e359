"""Recordings of AgentNet's recorder (xlang-ai, OpenCUA): their action log, and clips of steps.

`docs/segment.md` maps the log.

`reduced_events_vis.jsonl` has the actions that an annotator kept, with the accessibility tree of
each; `reduced_events_complete.jsonl` has the same actions by `id` with what the mouse and the
keyboard did; `metadata.json` has the clock and the screen, `task_name.json` the instruction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import msgspec

from omnidata.actions import Action, Box, Direction, Point
from omnidata.errors import DataError, Finding, MediaError
from omnidata.jsontext import BROKEN, decode_utf8, is_number, json_file, json_lines
from omnidata.loaders.action_log import MAX_BYTES, Event, Labels, Log, objects
from omnidata.loaders.instructions import has_chinese
from omnidata.media import Budget, recorded_seconds, resolve
from omnidata.tasks.agentnet.actions import type_of
from omnidata.tasks.desktops import clip_of
from omnidata.types import MediaRef

# The used fields of the recorder's files, checked while they are read.

Number = Annotated[float, msgspec.Meta(ge=-1e11, le=1e11)]
Row = TypeVar("Row")


class Coordinate(msgspec.Struct, frozen=True):
    """A place in pixels of the screen."""

    x: Number
    y: Number


class Turn(msgspec.Struct, frozen=True):
    """One notch of the wheel."""

    x: Number
    y: Number
    dx: Number
    dy: Number


class Details(msgspec.Struct, frozen=True):
    """Input of mouse and keyboard; each kind of action has some of these."""

    id: int
    action: str
    button: str = ""
    click_type: int = 1
    coordinate: Coordinate | None = None
    drag_trace: list[tuple[Number, Number]] = []
    trace: list[Any] = []  # its items differ from kind to kind
    key_names: list[str] = []


class Target(msgspec.Struct, frozen=True):
    """The element under the pointer."""

    title: str | None = None
    control_type: str | None = None


class Rectangle(msgspec.Struct, frozen=True):
    """An element, in pixels of the screen."""

    left: Number
    top: Number
    right: Number
    bottom: Number


class Shown(msgspec.Struct, frozen=True):
    """The annotator's record of an action."""

    id: int
    action: str
    start_time: Number
    end_time: Number
    description: str = ""
    target: Target | None = None
    axtree: dict[str, Any] | None = None


class Metadata(msgspec.Struct, frozen=True):
    """Clock and screen; times are seconds of one clock."""

    screen_width: Number
    screen_height: Number
    video_start_timestamp: Number
    system: str | None = None


class Task(msgspec.Struct, frozen=True):
    """The annotator's task."""

    task_name: str | None = None


def _read_lines(path: Path, kind: type[Row]) -> Iterator[tuple[str, Row]]:
    """Yield the rows of a file with their places.

    Raises:
        DataError: the file or a line is not the format of the recorder.
    """
    _check_inside(path)
    for where, row in objects(path):
        yield where, _convert(row, kind, where)


def _read_object(path: Path, kind: type[Row]) -> Row:
    _check_inside(path)
    if not path.is_file() or path.stat().st_size > MAX_BYTES:
        raise _recording_error(
            path, "the file is missing or too large", "a file as the recorder writes it"
        )
    value = json_file(path, MAX_BYTES)
    if value is BROKEN:
        raise _recording_error(path, "the file is not JSON", "one JSON object in UTF-8")
    return _convert(value, kind, str(path))


def _convert(value: object, kind: type[Row], where: str) -> Row:
    """Return a value as one of the types above.

    Raises:
        DataError: it is none.
    """
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:  # of half a character
        raise _recording_error(where, str(error), "the format of the recorder") from None


def _check_inside(path: Path) -> None:
    if not path.resolve().is_relative_to(path.parent.resolve()):
        raise _recording_error(
            path, "the file is a link that leads out of its folder", "a file inside the folder"
        )


def _recording_error(where: Path | str, what: str, expected: str) -> DataError:
    return DataError(
        what,
        where=str(where),
        expected=expected,
        remedy="restore the recording's folder, or write the log by hand (docs/segment.md)",
    )


EVENTS: Final = "reduced_events_vis.jsonl"
_END_AFTER_S = 2.0
"""The log has no action for the end: it is decided so long after the last one, when the screen has
settled and the annotator has not yet gone to stop the recorder."""

_FOLDER: Final = "recording"
_VIDEO: Final = "recording.mp4"
_DETAILS: Final = "reduced_events_complete.jsonl"
_METADATA: Final = "metadata.json"
_GOAL: Final = "task_name.json"
_FILES: Final = (EVENTS, _DETAILS, _METADATA, _GOAL)
_LABELLED = re.compile(r"\s*(?:double |right )?click(?:ed)? on (.+)", re.IGNORECASE | re.DOTALL)
_WINDOWS = frozenset({"WindowControl", "PaneControl"})
_KEYS: Mapping[str, str] = {"space": " ", "enter": "\n", "return": "\n", "tab": "\t"}


def read_log(path: Path) -> Log | None:
    """Read the log of one recording; return None if it is none of this recorder.

    Args:
        path: the recording's folder, the folder that holds it as `recording`, or a file of events
            in it, which need not be all of them.

    Raises:
        DataError: a file is missing or not the format of the recorder.
    """
    if not _is_recording(path):
        return None
    kept, folder = path, path.parent
    if not path.is_file():
        places = (path, path / _FOLDER)
        folder = next((place for place in places if (place / EVENTS).is_file()), path)
        kept = folder / EVENTS
    metadata = _read_object(folder / _METADATA, Metadata)
    if min(metadata.screen_width, metadata.screen_height) < 1:
        raise _recording_error(folder / _METADATA, "the screen has no size", "its size in pixels")
    details = {one.id: one for _, one in _read_lines(folder / _DETAILS, Details)}
    reader = _Reader(metadata, details)
    events = [
        event for where, shown in _read_lines(kept, Shown) if (event := reader.event(shown, where))
    ]
    if not events:
        raise _recording_error(kept, "the log has no usable action", "at least one action")
    ends = [event.end_s for event in events] + [end for _, end in reader.left_out]
    moment = max(ends) + _END_AFTER_S
    end = Action("done", status="success")
    events.append(Event(moment, moment, end, str(folder), earliest_s=max(ends)))
    reader.findings.append(
        Finding(
            "end-assumed",
            "warning",
            str(folder),
            "the log does not say how the task ended",
            "a demonstration that reached its goal",
            "remove the last step if this one did not",
        )
    )
    labels = _labels(folder, metadata)
    return Log(tuple(events), labels, tuple(reader.findings), tuple(reader.left_out))


def _is_recording(path: Path) -> bool:
    if path.is_dir():
        places = (path, path / _FOLDER)
        return any((place / name).is_file() for place in places for name in _FILES)
    try:
        first = next((row for _, row in objects(path)), {})
    except DataError:
        return False
    return {"start_time", "end_time", "description"} <= first.keys()


def _labels(folder: Path, metadata: Metadata) -> Labels:
    path = folder / _GOAL
    goal = _read_object(path, Task).task_name if path.exists() else None
    chinese = goal is not None and has_chinese(goal)
    return Labels(
        app=metadata.system or None,
        instruction_en=None if chinese else goal,
        instruction_zh=goal if chinese else None,
    )


class _Reader:
    def __init__(self, metadata: Metadata, details: Mapping[int, Details]) -> None:
        self.findings: list[Finding] = []
        self.left_out: list[tuple[float, float]] = []
        self._metadata = metadata
        self._details = details

    def event(self, shown: Shown, where: str) -> Event | None:
        details = self._details.get(shown.id)
        if details is None:
            raise DataError(
                f"action {shown.id} is not in {_DETAILS}",
                where=where,
                expected="both files with the same ids, as the recorder writes them",
                remedy="restore the two files from one recording",
            )
        if shown.end_time < shown.start_time:
            raise _recording_error(
                where, "the action ends before it begins", "end_time >= start_time"
            )
        zero = self._metadata.video_start_timestamp
        start, end = shown.start_time - zero, shown.end_time - zero
        action = self._action(details, shown, where)
        if action is None:
            self.left_out.append((start, end))
            self.findings.append(
                Finding(
                    "action-unmapped",
                    "error",
                    where,
                    f"{shown.description.strip() or details.action!r} is none of the 13 primitives",
                    "clicks, long presses, drags, scrolls and typed text",
                    "the step is left out; write the log by hand (docs/segment.md) if it matters",
                )
            )
            return None
        extra = {"source_action": shown.description.strip(), "source_label": shown.action}
        return Event(start, end, action, where, extra=extra)

    def _action(self, details: Details, shown: Shown, where: str) -> Action | None:
        if details.action == "scroll":
            return self._scroll(_convert(details.trace, list[Turn], where))
        if details.action == "type":
            text = _typing(details.key_names)
            return None if text is None else Action("type", text=text)
        if details.coordinate is None:
            return None
        point = self._point(details.coordinate.x, details.coordinate.y)
        if details.action == "drag" and details.drag_trace:
            end = self._point(*details.drag_trace[-1])
            dx = (end.x - point.x) * self._metadata.screen_width
            dy = (end.y - point.y) * self._metadata.screen_height
            return Action("swipe", (point,), (end,), direction=_direction(dx, dy))
        label = _click(details)
        if label is None:
            return None
        return Action.of(label, (self._box(shown, point, where) or point,))

    def _scroll(self, turns: list[Turn]) -> Action | None:
        """A wheel that turns down moves the content up, like a swipe up."""
        dx, dy = sum(turn.dx for turn in turns), sum(turn.dy for turn in turns)
        if not (dx or dy):
            return None
        start = (self._point(turns[0].x, turns[0].y),)
        return Action("swipe", start, direction=_direction(-dx, dy))

    def _point(self, x: float, y: float) -> Point:
        return Point(x / self._metadata.screen_width, y / self._metadata.screen_height, "rel")

    def _box(self, shown: Shown, point: Point, where: str) -> Box | None:
        target = shown.target
        if target is None or not target.title or shown.axtree is None:
            return None
        found = list(_rectangles(shown.axtree, target))
        if not found:
            return None
        low = self._point(found[0].left, found[0].top)
        high = self._point(found[0].right, found[0].bottom)
        box = Box(low.x, low.y, high.x, high.y, "rel")
        inside = box.left <= point.x <= box.right and box.top <= point.y <= box.bottom
        reason = _doubt(shown.action, target, len(found), inside)
        if not reason:
            return box
        self.findings.append(
            Finding(
                "box-doubtful",
                "warning",
                where,
                f"the element {target.title!r}: {reason}",
                "an element on which annotator, mouse and accessibility tree agree",
                "nothing to do: the clicked point is the target; "
                "a changed screen scale causes this",
            )
        )
        return None


def _click(details: Details) -> str | None:
    """A right click opens a context menu, like a long press; a column keeps the original."""
    if details.action == "mouse_press" and details.button == "left":
        return "LONG_PRESS"
    if details.action != "click":
        return None
    labels = {
        ("left", 1): "TAP",
        ("left", 2): "DOUBLE_TAP",
        ("right", 1): "LONG_PRESS",
    }
    return labels.get((details.button, details.click_type))


def _direction(dx: float, dy: float) -> Direction:
    if abs(dx) > abs(dy):
        return "right" if dx > 0 else "left"
    return "down" if dy > 0 else "up"


def _typing(keys: list[str]) -> str | None:
    text: list[str] = []
    for key in keys:
        if key == "backspace" and text:
            text.pop()
        elif len(key) == 1 or key in _KEYS:
            text.append(_KEYS.get(key, key))
        else:
            return None
    return "".join(text) or None


def _doubt(label: str, target: Target, count: int, inside: bool) -> str:
    if count > 1:
        return f"{count} rectangles have that name"
    if target.control_type in _WINDOWS:
        return "it is a whole window"
    named = _LABELLED.fullmatch(label)
    if named and target.title:
        words, title = named[1].strip().casefold(), target.title.casefold()
        if words not in title and title not in words:
            return f"the annotator calls it {named[1].strip()!r}"
    return "" if inside else "its rectangle does not hold the clicked point"


def _rectangles(tree: Mapping[str, Any], target: Target) -> Iterator[Rectangle]:
    waiting: list[Any] = [tree]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Mapping):
            continue
        children = node.get("Children")
        if isinstance(children, list):
            waiting.extend(children)
        if (node.get("Name"), node.get("ControlType")) == (target.title, target.control_type):
            with suppress(msgspec.ValidationError, UnicodeEncodeError):
                yield msgspec.convert(node.get("BoundingRectangle"), Rectangle)


# The part of a recording before each step of the trajectory made from it. The clocks of the video
# and of the actions agree to a few tenths of a second.

_BUDGET: Final = Budget(max_bytes=1024**3)
_LONGEST_S: Final = 10.0
"""The longest clip, as `omnidata segment` cuts: the end of a longer wait is kept."""
_LATEST: Final = 1e300
"""Seconds that are still a float when others are taken off them."""
_VERBS: Final = ("drag", "scroll", "click")
"""Verbs in descriptions of actions: "Single left Click", "Drag from ..."."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """A recording with the times of its actions.

    Attributes:
        ref: the video.
        seconds: how long it is by its header.
        spans: begin and end of each action, in seconds after the first frame.
    """

    ref: MediaRef
    seconds: float
    spans: Sequence[tuple[float, float]]

    def clip(self, number: int) -> MediaRef | None:
        """Return the clip between an action and the one before it, or from the beginning.

        Args:
            number: of the step, 0-based; the number of actions for the end, whose clip goes from
                the last action to the end of the recording.

        Returns:
            None if it is shorter than a frame, or outside the recording.
        """
        begin = self.spans[number - 1][1] if number else 0.0
        until = self.spans[number][0] if number < len(self.spans) else self.seconds
        begin = max(begin, until - _LONGEST_S)
        return clip_of(self.ref, number, begin, until, seconds=self.seconds)


def find_timeline(
    root: Path, folder: Path, steps: Sequence[Sequence[Action]]
) -> Timeline | str | None:
    """Return where the steps of a trajectory are in the recording beside it.

    Args:
        root: the dataset's folder.
        folder: that of the trajectory's file, below it.
        steps: the actions of each; an end at the end is not recorded.

    Returns:
        None without a recording; a reason if its actions are not those of the steps.
    """
    home = folder / _FOLDER
    if not (home / _VIDEO).exists():
        return None
    name = home.relative_to(root).as_posix()
    ref = MediaRef("video", root, f"{name}/{_VIDEO}")
    ends = bool(steps and steps[-1]) and steps[-1][-1].kind == "done"
    acting = steps[:-1] if ends else steps
    try:
        path = resolve(MediaRef("video", root, f"{name}/{_METADATA}"), budget=_BUDGET)
        about = decode_utf8(path.read_bytes())
        zero = _moment(about.get("video_start_timestamp") if isinstance(about, dict) else None)
        kept = resolve(MediaRef("video", root, f"{name}/{EVENTS}"), budget=_BUDGET)
        events = [row for _, row in json_lines(kept)]
        if len(events) != len(acting):
            return f"it has {len(events)} actions, and the trajectory {len(acting)}"
        spans = [_span(row, zero, done) for row, done in zip(events, acting, strict=True)]
        return Timeline(ref, recorded_seconds(ref), spans)
    except MediaError as error:
        return f"{error.what}: {error.where}"
    except ValueError as error:
        return str(error)
    except OSError as error:
        return f"it cannot be read ({error.strerror})"


def _span(row: object, zero: float, actions: Sequence[Action]) -> tuple[float, float]:
    if not isinstance(row, dict):
        raise ValueError(f"a line of {EVENTS} is not a JSON object")
    start, end = (_moment(row.get(name)) - zero for name in ("start_time", "end_time"))
    description = str(row.get("description", "")).lower()
    verb = next((verb for verb in _VERBS if verb in description), "")
    types = [type_of(action) for action in actions]
    if types and not any(verb in name.lower() for name in types):
        raise ValueError(
            f"its action {description!r:.60} does not fit a step of {' and '.join(types)}"
        )
    return start, max(start, end)


def _moment(value: object) -> float:
    if not is_number(value) or not abs(value) <= _LATEST:  # NaN too
        raise ValueError("a time in it is not a number")
    return float(value)
