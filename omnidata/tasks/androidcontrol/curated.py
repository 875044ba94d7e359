"""AndroidControl-Curated's files as corrections of labels.

Source: batechworks/AndroidControl_Curated at 955062c, `src/eval/` and `src/benchmark_resource/`
(arXiv 2510.18488). A file is a JSON list with a row per step:

* `instruction`: the goal, in files of low level the step's own; `history`: those of the steps
  before, as `Step 1: ...`, in files of high level;
* `gt_action`, perhaps with `:TEXT`, and `gt_input_text`: the action; a `scroll` has the direction
  of the content, a `swipe` that of the finger;
* `gt_coordinate`, or a `gt_bbox` of two numbers: the recorded point; `gt_max_bbox`, or a `gt_bbox`
  of four numbers: the box in which a click is right; in pixels of the screenshot;
* `candidate_actions`: other right actions, each with `action_type` and `action_bounds`;
* `revised_task`: another goal.

A row does not say its episode and step. It is the step that has its instruction, its history and
its action.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from omnidata.actions import OPPOSITE, Action, Box, Point, Region, centre
from omnidata.errors import DataError
from omnidata.loaders.load import short
from omnidata.loaders.row_files import read_rows
from omnidata.loaders.rows import action_fields
from omnidata.tasks.androidcontrol.load import STEP, item
from omnidata.tasks.phones.actions import as_direction, read_call
from omnidata.types import Step

_NAME: Final = "AndroidControl-Curated"
_PAPER: Final = "arXiv 2510.18488"
_NO_TEXT: Final = "no input text"
_STEP: Final = re.compile(r"Step \d{1,4}: (.*)")
_REACH: Final = 1.0
"""Pixels between a row's point and the recorded one; rows have whole numbers."""


class _Candidate(msgspec.Struct):
    action_type: str
    action_bounds: list[float] | None = None


class _Row(msgspec.Struct):
    image: str
    instruction: str
    gt_action: str
    history: str | None = None
    gt_input_text: str | None = None
    gt_coordinate: list[float] | None = None
    gt_bbox: list[float] | None = None
    gt_max_bbox: list[float] | None = None
    candidate_actions: list[_Candidate] | None = None
    revised_task: str | None = None

    def action(self) -> Action:
        """Return the right action, with its box if the row has one.

        Raises:
            ValueError: it is none of AndroidControl's.
        """
        text = None if self.gt_input_text in (None, _NO_TEXT) else self.gt_input_text
        return _read_action(self.gt_action, text, self.gt_bbox or self.gt_max_bbox)

    def recorded_places(self) -> Sequence[Region]:
        """Return the recorded point; without one the box around it; without that nothing."""
        found = self.gt_coordinate or self.gt_bbox or self.gt_max_bbox
        return [_region(found)] if found and self.action().start else []


def corrections(
    file: Path, steps: Sequence[Step], skip: Callable[[str, str], None]
) -> Iterator[dict[str, Any]]:
    """Yield the lines of an errata that AndroidControl-Curated's file makes, the head first.

    A step that the file leaves out of an episode is dropped, if the rows have histories and each
    row of the episode's goal is found.

    Args:
        file: one of its `android_control_*.json`.
        steps: of AndroidControl.
        skip: called with the place of a row that corrects no step, and why.

    Raises:
        DataError: the file cannot be read or has other rows.
    """
    index, made, lost = _Index(steps), dict[int, list[dict[str, Any]]](), set[str]()
    have_histories = False
    for where, row in _rows(file):
        have_histories |= row.history is not None
        try:
            numbers = index.find(row)
            lines = list(_lines_of(row, index.steps[numbers[0]], where, skip))
            if lines and len(numbers) > 1:
                raise ValueError(f"{len(numbers)} steps may be meant: {row.instruction:.60}")
            if any(_values(made.get(number, lines)) != _values(lines) for number in numbers):
                raise ValueError(f"{index.steps[numbers[0]].sample_id} has another row")
        except ValueError as error:
            skip(where, str(error))
            lost.add(_plain(row.instruction))
        else:
            made |= dict.fromkeys(numbers, lines)
    version = sha256(file.read_bytes()).hexdigest()[:12]
    yield {"errata": f"{_NAME} {file.stem}", "version": version}
    left_out = index.find_left_out(made, lost) if have_histories else set()
    for number, step in enumerate(index.steps):
        if number in left_out:
            reason = f"{_NAME} has other steps of the episode, and not this one."
            yield {"sample_id": step.sample_id, "kind": "drop", "reason": reason, "source": _PAPER}
        for line in made.get(number, ()):
            yield {"sample_id": step.sample_id, **line}


def _values(lines: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    return [(line["kind"], line["value"]) for line in lines]


def _rows(file: Path) -> Iterator[tuple[str, _Row]]:
    expected = f"a list of rows of {_NAME}: image, instruction, gt_action, gt_max_bbox"
    remedy = "name one of the files android_control_*.json"
    where = str(file)
    try:
        for line in read_rows(file):
            where = line.where
            if line.fault:
                raise DataError(line.fault, where=where, expected=expected, remedy=remedy)
            yield where, msgspec.convert(line.row, _Row)
    except msgspec.ValidationError as error:
        raise DataError(str(error), where=where, expected=expected, remedy=remedy) from None
    except OSError as error:
        what = f"the file cannot be read ({error.strerror})"
        raise DataError(what, where=where, expected=expected, remedy=remedy) from None


def _lines_of(
    row: _Row, step: _Recorded, where: str, skip: Callable[[str, str], None]
) -> Iterator[dict[str, Any]]:
    action, source = row.action(), f"{_PAPER}, {Path(where).name}"  # of a file that is published
    if step.action is None or not _is_same(action, step.action):
        boxed = bool(action.start) and isinstance(action.start[0], Box)
        reason = "is right anywhere in the element" if boxed else "is the right action"
        yield _line("replace", action, f"{_NAME}: {action.label} {reason}.", source)
    known = [action]
    for each in row.candidate_actions or ():
        try:
            other = _read_action(each.action_type, None, each.action_bounds)
        except ValueError as error:
            skip(where, f"a candidate action is unusable: {error}")
            continue
        if other not in known:
            known.append(other)
            reason = f"{_NAME} names {other.label} as a candidate action."
            yield _line("also_right", other, reason, source)
    if row.revised_task and _plain(row.revised_task) != _plain(step.instruction):
        value, reason = row.revised_task, f"{_NAME} revises the task."
        yield {"kind": "instruction", "value": value, "reason": reason, "source": source}


def _line(kind: str, action: Action, reason: str, source: str) -> dict[str, Any]:
    return {"kind": kind, "value": action_fields(action), "reason": reason, "source": source}


# Actions.


def _read_action(named: str, text: str | None, place: Sequence[float] | None) -> Action:
    name, _, said = named.partition(":")
    name, text = name.strip().lower(), said.strip() or text
    if name in ("click", "tap"):
        return Action("tap", (_region(place or ()),))
    if name == "long_press":
        return Action("long_press", (_region(place or ()),))
    if name in ("scroll", "swipe"):
        way = as_direction((text or "").lower())
        shown = OPPOSITE[way] if way and name == "swipe" else way
        return read_call({"action_type": "scroll", "direction": shown})
    call = "input_text" if name == "type" else name.replace("press_", "navigate_")
    return read_call({"action_type": call, "text": text, "app_name": text})


def _region(sides: Sequence[float]) -> Region:
    if all(map(math.isfinite, sides)):
        match sides:
            case [x, y]:
                return Point(x, y, "px")
            case [left, top, right, bottom] if left <= right and top <= bottom:
                return Box(left, top, right, bottom, "px")
    raise ValueError(f"the place is {short(list(sides))}, neither a point nor a box")


def _is_same(one: Action, recorded: Action) -> bool:
    """Return whether a row's action has no more to say than the recorded one."""
    boxed = bool(one.start) and isinstance(one.start[0], Box)
    return not boxed and _words(one) == _words(recorded) and _holds(one.start, recorded)


def _words(action: Action) -> tuple[str, str]:
    return action.label, (action.text or action.app or "").strip().casefold()


def _holds(places: Sequence[Region], recorded: Action) -> bool:
    """Return whether the recorded point is at a point or in a box; an action without one is."""
    if not places or not recorded.start:
        return not places
    place, at = places[0], centre(recorded.start[0])
    if isinstance(place, Point):
        return abs(place.x - at.x) <= _REACH and abs(place.y - at.y) <= _REACH
    return place.left <= at.x <= place.right and place.top <= at.y <= place.bottom


# Which step a row is.


class _Recorded(NamedTuple):
    """A step of the data.

    Attributes:
        sample_id, episode_id, instruction, action: of the step.
        past: the instructions of the steps before it.
    """

    sample_id: str
    episode_id: str
    instruction: str
    action: Action | None
    past: tuple[str, ...]


class _Index:
    """The steps of the data by the instruction of their episode, and by their own."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps: list[_Recorded] = []
        self._goals: dict[str, list[int]] = defaultdict(list)
        self._details: dict[str, list[int]] = defaultdict(list)
        past: dict[str, tuple[str, ...]] = {}
        for number, step in enumerate(steps):
            own = _plain(str(item(step.source, "step_instructions", step.source[STEP]) or ""))
            before = past.get(step.episode_id, ())
            past[step.episode_id] = (*before, own)
            self.steps.append(
                _Recorded(step.sample_id, step.episode_id, step.instruction, step.action, before)
            )
            self._goals[_plain(step.instruction)].append(number)
            self._details[own].append(number)

    def find(self, row: _Row) -> Sequence[int]:
        """Return the numbers of the steps that a row may be.

        Raises:
            ValueError: it is none.
        """
        action, places = row.action(), row.recorded_places()
        name = _plain(row.instruction)
        near = self._goals.get(name) or self._details.get(name) or ()
        done = [number for number in near if self._is_done(number, action, places)]
        said = near
        if row.history is not None:
            past = tuple(map(_plain, _STEP.findall(row.history)))
            said = [number for number in near if self.steps[number].past == past]
        both = [number for number in done if number in said]
        found = both or done or said
        if not found or (done and said and not both):
            raise ValueError(f"no step has this instruction and history: {row.instruction:.60}")
        return found

    def _is_done(self, number: int, action: Action, places: Sequence[Region]) -> bool:
        recorded = self.steps[number].action
        return bool(recorded and _words(recorded) == _words(action) and _holds(places, recorded))

    def find_left_out(self, found: Collection[int], lost: Collection[str]) -> set[int]:
        """Return the steps that are not found, of episodes with found ones.

        Args:
            found: numbers of steps.
            lost: instructions of rows that are no step; their episodes are left alone.
        """
        episodes = {self.steps[number].episode_id for number in found}
        return {
            number
            for number, step in enumerate(self.steps)
            if number not in found
            and step.episode_id in episodes
            and _plain(step.instruction) not in lost
        }


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
