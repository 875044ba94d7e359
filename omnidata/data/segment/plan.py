"""Which part of the recording belongs to which step: arithmetic over times, nothing is opened."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

from omnidata.actions import is_on_screen, round_half_up
from omnidata.data.segment.recording import BUDGET, Recording
from omnidata.errors import DataError, Finding, UsageError, plural
from omnidata.loaders.action_log import Event, Log
from omnidata.loaders.episode_tree import MAX_STEPS

LEAD_S = 0.5
"""How long before an action its screenshot is taken, as AgentNet's own processing does: logged
clocks are good to a few tenths of a second, and a click is seen before it is logged."""

LONGEST_S = 10.0
"""Of a clip; of a longer wait its end is kept, which is what leads to the action."""

_MOST_FINDINGS = 20

_LAST_ACTION: Final = "last-action"
"""The moment at which the last action of the log has ended."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The settings of cutting a recording.

    Attributes:
        offset_s: added to every time of the log.
        lead_s: seconds from a screenshot to its action.
        longest_s: longest clip, in seconds.
        trim: the part of the recording that is used, in seconds after its first frame.
        until: the time until which the last frame was on the screen, in seconds after the first;
            None = to the recording's end. Recorders such as scrcpy write a frame only when the
            screen changes, and end with the last one.
    """

    offset_s: float = 0.0
    lead_s: float = LEAD_S
    longest_s: float = LONGEST_S
    trim: tuple[float, float] = (0.0, float("inf"))
    until: float | Literal["last-action"] | None = None


USUAL = Cut()


def cut_of(
    place: Callable[[str], str],
    *,
    offset: float | None = None,
    lead: float | None = None,
    max_clip: float | None = None,
    trim: str | None = None,
    until: float | str | None = None,
    usual: Cut = USUAL,
) -> Cut:
    """Return the settings that options describe; None leaves one as in `usual`.

    `trim` is START:END in seconds, either may be left out; `until` is in seconds, or "last-action".
    Messages give the `place` of an option by its name and value.

    Raises:
        UsageError: a number makes no sense, or the part cannot be read.
    """

    def seconds(name: str, value: float | None, usual: float, low: float) -> float:
        if value is None:
            return usual
        if not (math.isfinite(value) and value >= low):
            raise UsageError(
                "the number is out of range",
                where=place(f"{name} {value}"),
                expected="seconds" + (f", {low:g} or more" if low > -math.inf else ""),
            )
        return value

    return Cut(
        offset_s=seconds("offset", offset, usual.offset_s, -math.inf),
        lead_s=seconds("lead", lead, usual.lead_s, 0),
        longest_s=seconds("max-clip", max_clip, usual.longest_s, 0.001),
        trim=usual.trim if trim is None else _part(place, trim),
        until=usual.until if until is None else _moment(place, until),
    )


def _moment(place: Callable[[str], str], value: float | str) -> float | Literal["last-action"]:
    if value == _LAST_ACTION:
        return _LAST_ACTION
    try:
        seconds = float(value)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= BUDGET.max_seconds:
        raise UsageError(
            "the time cannot be read",
            where=place(f"until {value}"),
            expected=f"seconds of the recording, up to {BUDGET.max_seconds:.0f}, or {_LAST_ACTION}",
        )
    return seconds


def _part(place: Callable[[str], str], text: str) -> tuple[float, float]:
    start, colon, end = text.partition(":")
    try:
        low, high = float(start or 0), float(end or math.inf)
    except ValueError:
        low, high = math.nan, math.nan
    if not (colon and 0 <= low < high):
        raise UsageError(
            "the part cannot be read",
            where=place(f"trim {text}"),
            expected="START:END in seconds of the recording, e.g. 5:60, 5: or :60",
        )
    return low, high


@dataclass(frozen=True, slots=True)
class Span:
    """The part of a recording that a step is cut from; times are seconds after the first frame.

    Attributes:
        event: the action, by the log's clock.
        screenshot_s: time of the screenshot.
        clip_s: start of clip and audio.
        start_s: start of the action, and end of clip and audio.
        end_s: end of the action.
        frames: of the clip, the span's length in frames, halves up; 0 = neither clip nor audio.
    """

    event: Event
    screenshot_s: float
    clip_s: float
    start_s: float
    end_s: float
    frames: int


def plan(log: Log, recording: Recording, cut: Cut) -> tuple[list[Span], int, list[Finding]]:
    """Give every action its span: from the end of all actions before it to its own start.

    Actions that the log could not map count as well: no clip shows them (OmniGUI, section 3.3).

    Returns:
        The spans in the order of time, the number of actions outside the used part but within the
        recording, and findings.

    Raises:
        DataError: no action lies in the used part, there are too many, or one follows the end; or
            the last frame would have to stand for longer than a recording may last.
    """
    findings: list[Finding] = []
    events = sorted(log.events, key=lambda event: event.start_s)
    if events != list(log.events):
        late = next(b for a, b in pairwise(log.events) if b.start_s < a.start_s)
        findings.append(
            Finding(
                "events-unordered",
                "warning",
                late.where,
                "the action begins before the one above it",
                "actions in the order of time",
                "they are sorted; check the times",
            )
        )
    spans: list[Span] = []
    outside: list[tuple[Event, float]] = []
    others = deque(sorted(log.left_out))
    seconds = _until(events, recording, cut)
    low, high = cut.trim[0], min(cut.trim[1], seconds)
    over = low
    for event in events:
        start, end = event.start_s + cut.offset_s, event.end_s + cut.offset_s
        while others and others[0][0] <= event.start_s:
            over = max(over, others.popleft()[1] + cut.offset_s)
        if start > high and event.earliest_s is not None:
            start = end = max(high, event.earliest_s + cut.offset_s)
        if low <= start <= high:
            begin = min(over, start)
            clip = max(begin, start - cut.longest_s)
            frames = round_half_up((start - clip) * float(recording.fps))
            span = Span(event, max(start - cut.lead_s, begin), clip, start, end, frames)
            findings.extend(_doubts(span, over if spans else low, recording))
            spans.append(span)
        elif not 0 <= start <= seconds:
            outside.append((event, start))
        over = max(over, end)
    _check(spans, log, cut, seconds)
    findings += _report_held_frames(spans, recording)
    findings += _outside(outside, seconds)
    return spans, len(events) - len(spans) - len(outside), findings


def _until(events: Sequence[Event], recording: Recording, cut: Cut) -> float:
    """Up to when it is known what the screen showed, in seconds after the first frame."""
    if cut.until != _LAST_ACTION:
        return max(recording.seconds, cut.until or 0.0)
    last = max(events, key=lambda event: event.end_s)
    seconds = last.end_s + cut.offset_s
    if seconds > BUDGET.max_seconds:
        raise DataError(
            f"the last action ends at {seconds:.2f} s of the recording",
            where=last.where,
            expected=f"up to {BUDGET.max_seconds:.0f} s",
            remedy="set the clock's --offset",
        )
    return max(recording.seconds, seconds)


def _report_held_frames(spans: Sequence[Span], recording: Recording) -> Iterator[Finding]:
    held = [span for span in spans if span.start_s > recording.seconds]
    if held:
        silence = ", with silence" if recording.has_sound else ""
        yield Finding(
            "frame-held",
            "warning",
            held[0].event.where,
            f"{plural(len(held), 'action')} from {held[0].start_s:.2f} s on: the recording ends "
            f"at {recording.seconds:.2f} s, its last frame is held{silence}",
            "a screen that did not change until then",
            "nothing to do if it did; else record the episode again",
        )


def _doubts(span: Span, over: float, recording: Recording) -> Iterator[Finding]:
    name = span.event.action.label
    without = "the step has a screenshot, but neither clip nor audio"
    if span.start_s < over:
        yield Finding(
            "actions-overlap",
            "warning",
            span.event.where,
            f"{name} begins at {span.start_s:.2f} s, an action before it ends at {over:.2f} s",
            "actions that do not overlap",
            f"{without}; check the times",
        )
    elif not span.frames:
        yield Finding(
            "span-empty",
            "warning",
            span.event.where,
            f"there is no wait before {name} at {span.start_s:.2f} s",
            f"half a frame or more ({float(0.5 / recording.fps):.3f} s)",
            without,
        )
    regions = (*span.event.action.start, *span.event.action.end)
    if not all(is_on_screen(region, recording.screen) for region in regions):
        width, height = recording.screen
        yield Finding(
            "target-outside",
            "warning",
            span.event.where,
            f"the target of {name} exceeds the screen",
            f"a place inside {width} x {height} pixels",
            "correct it, or name the size of the screen that its pixels refer to",
        )


def _check(spans: list[Span], log: Log, cut: Cut, seconds: float) -> None:
    if not 0 < len(spans) <= MAX_STEPS:
        first, last = log.events[0].start_s, log.events[-1].start_s
        raise DataError(
            f"{len(spans)} of {plural(len(log.events), 'action')} are in the used part of the "
            "recording",
            where=log.events[0].where,
            expected=f"1 to {MAX_STEPS}; the recording lasts {seconds:.2f} s, the log goes from "
            f"{first + cut.offset_s:.2f} s to {last + cut.offset_s:.2f} s",
            remedy="set the clock's --offset, another --trim, or the right recording; or --until "
            f"{_LAST_ACTION} if the screen did not change from the recording's end on",
        )
    for span, following in pairwise(spans):
        if span.event.action.kind == "done":
            raise DataError(
                f"{following.event.action.label} comes after {span.event.action.label}",
                where=following.event.where,
                expected="TASK_COMPLETE or TASK_IMPOSSIBLE once, as the last action",
                remedy="make one log per episode",
            )


def _outside(events: list[tuple[Event, float]], seconds: float) -> Iterator[Finding]:
    """A finding for each of the first, and one for all others: a wrong clock misses all."""
    for number, (event, start) in enumerate(events[: _MOST_FINDINGS + 1]):
        more = len(events) - number if number == _MOST_FINDINGS else 1
        remedy = "set the clock's --offset, or the whole recording"
        if start > seconds:
            remedy += f", or --until {_LAST_ACTION} if the screen did not change"
        yield Finding(
            "event-outside",
            "error",
            event.where,
            f"{event.action.label} begins at {start:.2f} s of the recording"
            + (f", and {more - 1} more lie outside" if more > 1 else ""),
            f"0 to {seconds:.2f} s",
            f"the step is left out; {remedy}",
        )
