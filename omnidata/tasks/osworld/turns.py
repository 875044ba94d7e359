"""`traj.jsonl`: lines of an agent's actions -> turns and runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any, Final, Literal

from omnidata.errors import Finding, MediaError
from omnidata.jsontext import BROKEN, is_integer
from omnidata.loaders.load import Note, RowContext, short
from omnidata.media import image, recorded_seconds
from omnidata.media.containers import video_stream
from omnidata.media.paths import RECORDING_BUDGET
from omnidata.media.storage import open_media
from omnidata.tasks.desktops import clip_of
from omnidata.types import MediaRef, VideoSegment

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from av.video.frame import VideoFrame

    Small = npt.NDArray[np.uint8]


Row = Mapping[str, Any]

MOST_TURNS: Final = 2000
"""The largest number of turns of a run, and the highest `step_num`: every step has the history of
all before it, also of turns without a runnable action."""

_STAMP: Final = re.compile(r"(\d{8})@(\d{6})(\d{6})?", re.ASCII)


@dataclass(slots=True)
class Turn:
    """A turn of an agent: the lines with one `step_num`.

    Attributes:
        number: the `step_num`; where a line has none, the one after the turn before.
        rows: the lines, untouched.
        where: file and line of the first.
        after: lines behind it that belong to no turn, such as errors.
    """

    number: int
    rows: list[Row]
    where: str
    after: list[Row] = field(default_factory=list)

    @property
    def time(self) -> datetime | None:
        """The start of the first action; None if the line has none."""
        return _read_stamp(self.rows[0].get("action_timestamp"))

    @property
    def shown_before(self) -> str | None:
        """The screenshot that a fork took before the action."""
        return _file(self.rows[0].get("screenshot_file_before_exec"))

    @property
    def shown_after(self) -> str | None:
        """The screenshot after the last action."""
        return _file(self.rows[-1].get("screenshot_file"))


@dataclass(slots=True)
class Run:
    """One attempt at an example; a folder that was not cleaned before holds several.

    Attributes:
        turns: in order.
        before: lines before the first turn: the reset of a fork, errors.
        crashed: the error that ended it; empty if none did.
        doubts: findings about its rows, each with the number of the turn; None for the whole run.
    """

    turns: list[Turn] = field(default_factory=list)
    before: list[Row] = field(default_factory=list)
    crashed: str = ""
    doubts: list[tuple[int | None, Finding]] = field(default_factory=list)

    def doubt(self, turn: int | None, finding: Finding) -> None:
        """Keep a finding about one of the turns, or about the run."""
        self.doubts.append((turn, finding))

    @property
    def times(self) -> list[datetime] | None:
        """When the turns began; None if one has no time, or the times decrease."""
        known = [time for turn in self.turns if (time := turn.time) is not None]
        return known if len(known) == len(self.turns) and known == sorted(known) else None

    @property
    def first_number(self) -> int:
        """The number of the first turn: 0 if a turn has that number, else 1."""
        return min((turn.number for turn in self.turns), default=1) and 1

    @property
    def reset(self) -> str | None:
        """The screenshot of a fork's reset: the agent's first observation."""
        names = (_file(row.get("screenshot_file")) for row in reversed(self.before))
        return next(filter(None, names), None)


def _file(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _read_stamp(value: object) -> datetime | None:
    """Return a time as the runner writes it, without a zone: only differences mean something.

    Examples:
        >>> _read_stamp("20240501@120000250000") - _read_stamp("20240501@120000")
        datetime.timedelta(microseconds=250000)
    """
    found = _STAMP.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    try:
        whole = datetime.strptime(found[1] + found[2], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return whole + timedelta(microseconds=int(found[3] or 0))


def read_runs(lines: Iterable[tuple[str, Any]], note: Note) -> list[Run]:
    """Return the runs of a file; the folder's result belongs to the last one.

    Lines with the same `step_num` are one turn. A run begins anew where `step_num` goes back, where
    it stays after a line that says it is done, and after an error unless it goes on.

    Args:
        lines: the rows of the file and their places.
        note: takes the findings about lines that become no part of a turn.
    """
    runs: list[Run] = [Run()]
    for where, row in lines:
        place = RowContext(where, note)
        if row is BROKEN or not isinstance(row, Mapping):
            place.refuse(
                "json-invalid", "the line is not a JSON object", "one JSON object in UTF-8"
            )
        elif "Error" in row and row.keys().isdisjoint(("action", "actions", "step_num")):
            run = runs[-1]
            run.crashed = short(row["Error"])
            (run.turns[-1].after if run.turns else run.before).append(row)
            RowContext(where, partial(run.doubt, None)).warn(
                "run-crashed",
                f"the run ended with an error: {run.crashed}",
                "a run that ends without an error",
                "run the example again; the steps before it are kept",
            )
        elif row.get("action") == "reset" and row.get("step_num") in (0, None):  # of a fork
            if runs[-1].turns or runs[-1].before:
                runs.append(Run())
            runs[-1].before.append(row)
        else:
            number, odd = _number(row, runs[-1])
            if _begins(runs[-1], number):
                runs.append(Run())
                number, _ = _number(row, runs[-1])
            if not _add(runs[-1], Turn(number, [row], where)):
                place.refuse("turns-many", "the run continues", f"at most {MOST_TURNS} turns")
            elif odd:
                RowContext(where, partial(runs[-1].doubt, number)).warn(
                    "step-number",
                    f"step_num is {short(row.get('step_num'))}",
                    f"a whole number from 0 to {MOST_TURNS}",
                    "correct the row; until then it counts as the turn after the previous row",
                )
    return _with_turns(runs)


def _with_turns(runs: Iterable[Run]) -> list[Run]:
    """Lines of an attempt that ended before its first turn join the next one, or the one before.

    Such an attempt counts as a run only if it is the last: result and recording are about it.
    """
    kept: list[Run] = []
    rest = Run()
    for run in runs:
        if run.turns:
            run.before[:0], run.doubts[:0] = rest.before, rest.doubts
            kept.append(run)
            rest = Run()
        else:
            rest.before += run.before
            rest.doubts += run.doubts
            rest.crashed = rest.crashed or run.crashed
    if not (rest.before or rest.crashed):
        return kept
    if not kept:
        return [rest]
    kept[-1].turns[-1].after += rest.before
    kept[-1].doubts += rest.doubts
    return [*kept, Run(crashed=rest.crashed)]


def _number(row: Row, run: Run) -> tuple[int, bool]:
    value = row.get("step_num")
    if is_integer(value) and 0 <= value <= MOST_TURNS:
        return value, False
    return (run.turns[-1].number + 1 if run.turns else 1), True


def _begins(run: Run, number: int) -> bool:
    if not run.turns:
        return bool(run.crashed)
    last = run.turns[-1]
    done = last.rows[-1].get("done") is True
    return number < last.number or (number == last.number and (done or bool(run.crashed)))


def _add(run: Run, turn: Turn) -> bool:
    last = run.turns[-1] if run.turns else None
    if last and last.number == turn.number:
        if last.shown_after and last.shown_after == turn.shown_after:
            RowContext(turn.where, partial(run.doubt, last.number)).warn(
                "screenshot-shared",
                f"two actions of one turn name the screenshot {short(last.shown_after)}",
                "one screenshot for each",
                "nothing to do: the file shows the screen after the last of them",
            )
        last.rows += turn.rows
        return True
    if len(run.turns) < MOST_TURNS:
        run.turns.append(turn)
        return True
    return False


# OSWorld's screen recordings: where each turn lies in them.
#
# A recording begins before the first turn and ends after the evaluation; the times are unknown. The
# place of the turns is estimated from both ends, or found by the screenshots, which the recording
# shows too.

Alignment = Literal["exact", "estimated"]

_SMALL: Final = (96, 54)
_NOISE: Final = 12
"""Levels of grey by which cells of the small picture may differ, for the loss of compression: in a
real recording of a desktop it was 7."""
_ODD_CELLS: Final = 4
"""Cells that may differ more: a blinking caret, the pointer. Of 5184; a letter that is typed is no
more than that, a menu or a window many times as much."""
_LEAST: Final = 2
_STAMP_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording that opens.

    Attributes:
        ref: the file.
        seconds: how long it is by its header.
    """

    ref: MediaRef
    seconds: float

    @classmethod
    def of(cls, ref: MediaRef) -> Recording:
        """Return the recording in a file.

        Raises:
            MediaError: the file is missing or no video.
        """
        return cls(ref, recorded_seconds(ref))

    def first_frame(self, name: str) -> MediaRef:
        """Return the first picture: the agent's first observation."""
        return MediaRef("image", self.ref.root, name, cell=VideoSegment(self.ref.path, 0.0, 0.0))


@dataclass(frozen=True, slots=True)
class Timeline:
    """A recording and the turns in it.

    Attributes:
        recording: what was recorded.
        starts: when each turn's first action began, in seconds after the first frame.
        alignment: "exact": found by the screenshots, up to the second of the stamps and the moment
            that the screen takes to change; "estimated": from the two ends.
    """

    recording: Recording
    starts: Sequence[float]
    alignment: Alignment

    def clip(self, number: int) -> MediaRef | None:
        """Return the clip up to a turn, from the turn before or from the beginning.

        Args:
            number: of the turn, from 0; one more for the clip from the last turn to the end.

        Returns:
            None for less than a frame, or outside the recording.
        """
        seconds = self.recording.seconds
        start, end = (0.0, *self.starts, seconds)[number : number + 2]
        return clip_of(self.recording.ref, number, start, end, seconds=seconds)


def estimate_start(recording: Recording, times: Sequence[datetime]) -> Timeline:
    """Return the turns in a recording whose beginning is estimated.

    The release ends it after the evaluation. The time from the last turn to the end is taken to be
    the median time between turns, or less if the recording is too short; for a single turn it is
    half of the recording.

    Args:
        recording: what was recorded.
        times: of the turns, not decreasing; at least one.
    """
    seconds = recording.seconds
    since = [(time - times[0]).total_seconds() for time in times]
    over = max(0.0, seconds - since[-1])
    gaps = [late - early for early, late in pairwise(since)]
    tail = min(over, median(gaps)) if gaps else over / 2
    first = max(0.0, seconds - tail - since[-1])
    return Timeline(recording, [first + moment for moment in since], "estimated")


def match_start(
    recording: Recording, times: Sequence[datetime], pictures: Sequence[MediaRef | None]
) -> Timeline:
    """Return the turns in a recording whose beginning is found by the screenshots.

    Each screenshot is looked for in the recording, in order, unless it shows the same as the one
    before. An action is seen after it began, so the recording began at least as late as the latest
    of (a turn's time less the moment when its screen is first seen), and a screen reacts soon.

    Args:
        recording: is decoded from beginning to end.
        times: of the turns, not decreasing; at least one.
        pictures: the screenshot after each turn.

    Returns:
        As `estimate_start` if fewer than two screenshots differ, one is not found, or they
        contradict the times.

    Raises:
        MediaError: the recording is broken.
    """
    guess = estimate_start(recording, times)
    since = [(time - times[0]).total_seconds() for time in times]
    seen = _first_seen(recording.ref, pictures)
    if seen is None or len(seen) < _LEAST:
        return guess
    begin = max(since[number] - moment for number, moment in seen.items())
    starts = [moment - begin for moment in since]
    ends = [*starts[1:], recording.seconds]
    if any(moment > ends[number] + _STAMP_S for number, moment in seen.items()):
        return guess
    return Timeline(recording, starts, "exact")


def _first_seen(ref: MediaRef, pictures: Sequence[MediaRef | None]) -> dict[int, float] | None:
    """Return when each changed screenshot is first seen, in seconds; None if one is not."""
    found: dict[int, float] = {}
    with open_media(ref, RECORDING_BUDGET) as container:
        video = video_stream(container, ref, RECORDING_BUDGET, None)
        origin = 0.0
        wanted: list[tuple[int, Small]] | None = None
        for frame in container.decode(video):
            if frame.time is None:
                return None
            small = _shrunk(frame)
            if wanted is None:
                origin, wanted = frame.time, _changes(pictures, small)
            if len(found) == len(wanted):
                break
            number, picture = wanted[len(found)]
            if not _differ(small, picture):
                found[number] = frame.time - origin
    return found if wanted and len(found) == len(wanted) else None


def _changes(pictures: Sequence[MediaRef | None], last: Small) -> list[tuple[int, Small]]:
    import av

    found = []
    for number, ref in enumerate(pictures):
        if ref is None:
            continue
        try:
            small = _shrunk(av.VideoFrame.from_ndarray(image(ref).pixels, format="rgb24"))
        except MediaError:
            continue
        if _differ(small, last):
            found.append((number, small))
        last = small
    return found


def _shrunk(frame: VideoFrame) -> Small:
    import numpy as np

    return frame.reformat(*_SMALL, format="gray").to_ndarray().astype(np.uint8, copy=False)


def _differ(one: Small, other: Small) -> bool:
    import numpy as np

    cells = np.abs(one.astype(np.int16) - other) > _NOISE
    return int(cells.sum()) > _ODD_CELLS
