"""Rows of a picture, an instruction and an action, as others prepare steps on phones.

AndroidControl and GUI-Odyssey are prepared in the same forms. An action is

* an object, or JSON in a text: AndroidControl's own or one of `mobile_use`;
* OS-Atlas's text, `CLICK [[x, y]]` from 0 to 1000, in a column or in a conversation;
* `gt_action`, `gt_bbox` and `gt_input_text`, as GUI-R1 has them, places in pixels.

A step's `source` has the features of an AndroidControl record with this step alone: `actions`, a
list of one JSON text with its places in pixels and its direction that of the content, `goal` and
`step_instructions`. Beside them stand `boxes`, the clickable boxes, `scroll`, the sense of the
row's direction if it has one in words, and `row`, untouched.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from omnidata.actions import OPPOSITE, Action, Direction, Screen, heading
from omnidata.errors import DataError, MediaError, UsageError, plural
from omnidata.jsontext import BROKEN, as_name, compact, decode, is_coordinate
from omnidata.loaders.load import Note, RowContext, about, short, size_of, stated_size
from omnidata.loaders.row_files import Line, read_rows
from omnidata.loaders.row_sizes import size_by_feeding, size_columns, warn_of_fed_sizes
from omnidata.media import resolve
from omnidata.tasks.loading import EpisodeBuilder
from omnidata.tasks.phones.actions import (
    COMPLETE,
    DIRECTIONS,
    IMPOSSIBLE,
    RECENTS,
    Truth,
    as_direction,
    corrected_action,
    read_call,
    truth_in_shares,
)
from omnidata.tasks.phones.conversations import as_row
from omnidata.types import LoadedDataset, MediaRef, Step

Row = Mapping[str, Any]
Box = list[float]
WordSense = Literal["content", "finger"]
"""Whose direction words state: that of the content which comes into sight, or of the finger."""

BOXES: Final = "boxes"
ROW: Final = "row"
SCROLL: Final = "scroll"
IMAGE_KEYS: Final = (
    "image_path", "image", "images", "screenshot_path", "screenshot", "img_path",
)  # fmt: skip
ACTION_KEYS: Final = ("action", "gt", "gt_action")
_GOAL: Final = ("goal", "instruction", "task", "question")
_DETAIL: Final = ("step_instruction", "low_instruction", "low_level_instruction")
_FOLDERS: Final = ("", "images", "screenshots", "screenshot")
_PLACE: Final = re.compile(r"\[\s*+\[?\s*+(-?+[\d.]{1,30})\s*+,\s*+(-?+[\d.]{1,30})\s*+\]")
_WORD: Final = re.compile(r"([A-Z_]{4,30})\s*+(?:\[(.*)\]|(\S.*+)|)\s*+", re.DOTALL)


# Actions in any of the forms.


class Call(NamedTuple):
    """An action in AndroidControl's own form.

    Attributes:
        body: its places in pixels, its direction that of the content.
        sense: of the row's direction; None if it has none in words.
    """

    body: dict[str, Any]
    sense: WordSense | None = None


def call_of(
    action: object, screen: Screen, *, labels: WordSense, said: WordSense | None = None
) -> Call:
    """Return an action of any of the forms as AndroidControl's own.

    Args:
        action: an object, or a text.
        screen: width and height in pixels; (0, 0) if unknown.
        labels: the sense of directions in OS-Atlas's texts and GUI-R1's columns, which keep that of
            the benchmark.
        said: that of all forms, if the user sets it. Otherwise AndroidControl's own actions scroll
            the content, and the finger of `mobile_use` swipes.

    Raises:
        ValueError: it is none.

    Examples:
        >>> call_of({"action": "swipe", "direction": "up"}, (0, 0), labels="content").body
        {'action_type': 'scroll', 'direction': 'down'}
        >>> call_of("SCROLL [UP]", (0, 0), labels="finger")
        Call(body={'action_type': 'scroll', 'direction': 'down'}, sense='finger')
        >>> call_of("CLICK <point>[[500, 250]]</point>", (1080, 2400), labels="content").body
        {'action_type': 'click', 'x': 540.0, 'y': 600.0}
    """
    if isinstance(action, str):
        try:
            read = decode(action)
        except RecursionError:
            read = BROKEN
        action = read if isinstance(read, dict) else _os_atlas_call(action, screen)
    elif isinstance(action, dict) and "gt_action" in action:
        action = _gt_call(action)
    elif isinstance(action, dict):
        labels = "content"
    if not isinstance(action, dict):
        raise ValueError(f"the action is {short(action)}")
    if "action_type" in action:
        return _of_content(action, said or labels)
    if action.get("action") == "swipe" and action.get("direction") is None:
        way = heading(_pair(action.get("coordinate")), _pair(action.get("coordinate2")))
        return Call({"action_type": "scroll", "direction": OPPOSITE[way]})
    return _of_content(_mobile_use_call(action), said or "finger")


def _of_content(call: dict[str, Any], sense: WordSense) -> Call:
    """Directions become those in which the content moves."""
    if call.get("action_type") != "scroll":
        return Call(call)
    way = as_direction(call.get("direction"))
    if way is None:
        named = ", ".join(DIRECTIONS)
        raise ValueError(f"direction is {short(call.get('direction'))}, none of {named}")
    return Call({**call, "direction": way if sense == "content" else OPPOSITE[way]}, sense)


def _mobile_use_call(action: Row) -> dict[str, Any]:
    name, text = action.get("action"), action.get("text")
    if name in ("click", "long_press"):
        x, y = _pair(action.get("coordinate"))
        return {"action_type": name, "x": x, "y": y}
    if name == "swipe":
        return {"action_type": "scroll", "direction": action["direction"]}
    if name == "type":
        return {"action_type": "input_text", "text": text}
    if name == "open":
        return {"action_type": "open_app", "app_name": text}
    if name == "system_button":
        return {"action_type": f"navigate_{str(action.get('button')).strip().lower()}"}
    return {"action_type": name}


def _os_atlas_call(text: str, screen: Screen) -> dict[str, Any]:
    word = _WORD.fullmatch(text.strip())
    name, given = (word[1], (word[2] or word[3] or "").strip()) if word else ("", "")
    if name in ("CLICK", "LONG_PRESS"):
        place = _PLACE.search(text)
        if place is None or min(screen) < 1:
            raise ValueError(f"the action is {short(text)}, on a screen of {screen}")
        x, y = (float(place[n]) * extent / 1000 for n, extent in enumerate(screen, 1))
        return {"action_type": name.lower(), "x": x, "y": y}
    if name == "SCROLL":
        return {"action_type": "scroll", "direction": given.lower()}
    if name == "TYPE":
        return {"action_type": "input_text", "text": given}
    if name == "OPEN_APP":
        return {"action_type": "open_app", "app_name": given}
    return {"action_type": name.lower().replace("press_", "navigate_")}


def _gt_call(row: Row) -> dict[str, Any]:
    """Return the call of GUI-R1's columns, in pixels; its place is the middle of `gt_bbox`."""
    name, text = str(row["gt_action"]).strip().lower(), row.get("gt_input_text")
    if name in ("click", "long_press"):
        box = _numbers(row.get("gt_bbox"))
        if len(box) not in (2, 4):
            raise ValueError(f"gt_bbox is {short(row.get('gt_bbox'))}")
        x, y = (box[0] + box[-2]) / 2, (box[1] + box[-1]) / 2
        return {"action_type": name, "x": x, "y": y}
    arguments = {"scroll": "direction", "input_text": "text", "open_app": "app_name"}
    call = {"type": "input_text"}.get(name, name.replace("press_", "navigate_"))
    if call == "scroll" and isinstance(text, str):
        text = text.strip().lower()
    return {"action_type": call} | ({arguments[call]: text} if call in arguments else {})


def _pair(value: object) -> tuple[float, float]:
    sides = _numbers(value)
    if len(sides) != 2:
        raise ValueError(f"a place is {short(value)}")
    return sides[0], sides[1]


def _numbers(value: object) -> list[float]:
    if not isinstance(value, list) or not all(map(is_coordinate, value)):
        raise ValueError(f"{short(value)} are no numbers of pixels")
    return value


def boxes_of(value: object) -> list[Box]:
    """Return the boxes in a list, or the list itself if it is one box."""
    if isinstance(value, list) and len(value) == 4 and all(map(is_coordinate, value)):
        return [value]
    found = (box for box in value if isinstance(box, list)) if isinstance(value, list) else ()
    return [box for box in found if len(box) == 4 and all(map(is_coordinate, box))]


_ENDS: Final[Mapping[str, Action]] = {
    "complete": COMPLETE,
    "impossible": IMPOSSIBLE,
    "navigate_recent": RECENTS,
}


def read_any(call: object) -> Action:
    """Return the action of AndroidControl's object, or of one that only GUI-Odyssey has.

    Raises:
        ValueError: it is none; the message says why.
    """
    name = call.get("action_type") if isinstance(call, Mapping) else None
    return _ENDS.get(str(name)) or read_call(call)


def truth_of(source: Row, screen: Screen) -> Truth | None:
    """Return the expert's action and the elements, from 0 to 1; None if unreadable.

    Args:
        source: of a step that this module has read.
        screen: width and height in pixels.
    """
    try:
        action = corrected_action(source) or read_any(decode(source["actions"][0]))
    except (LookupError, TypeError, ValueError, RecursionError):
        return None
    return truth_in_shares(action, source.get(BOXES, ()), screen)


# Steps.


@dataclass(frozen=True, slots=True)
class Moment:
    """A step as any of the forms has it, unchecked.

    Attributes:
        own: the part of the row about this step alone.
        number: in its episode; None if the row does not state it.
        goal, detail: the instruction of the episode, and of the step.
        shot: the name of the picture.
        last: of the one after the last step, or None.
        size: width and height of the screenshot.
        action: in any spelling.
        boxes: that may be clicked.
    """

    own: Row
    number: str | None
    goal: object
    detail: object
    shot: object
    last: object
    size: tuple[object, object]
    action: object
    boxes: list[Box]


def single(row: Row) -> tuple[str | None, list[Moment]]:
    """Return the episode that a row of one step names, or None, and the step.

    Raises:
        DataError: it is a planner's, with no recorded action.
    """
    own, row = row, as_row(row)
    _refuse_plan(row)
    shot = _first(row, IMAGE_KEYS)
    goal, detail = _first(row, _GOAL), _first(row, _DETAIL)
    graded = "gt_action" in row
    moment = Moment(
        own,
        as_name(_first(row, ("step_id", "step"))),
        goal,
        goal if detail is None and row.get("task_type") == "low" else detail,
        shot[0] if isinstance(shot, list) and len(shot) == 1 else shot,
        None,
        size_columns(row),
        row if graded or "action_type" in row else _first(row, ("action", "gt")),
        boxes_of([row.get("gt_bbox")] if graded else row.get("candidate_bbox")),
    )
    return as_name(row.get("episode_id")), [moment]


def _first(row: Row, keys: Iterable[str]) -> Any:
    return next((row[key] for key in keys if row.get(key) is not None), None)


def _refuse_plan(row: Row) -> None:
    action = row.get("action")
    if "reason" in row and isinstance(action, dict) and _first(row, _GOLD) is None:
        raise DataError(
            "these rows are a model's plans: they have reasons, and taps name elements instead of "
            "points",
            where=f"episode {row.get('episode_id')}, step {row.get('step')}",
            expected="rows of recorded actions",
            remedy="name the data that the plans answer",
        )


_GOLD: Final = ("goal", "screenshot", "accessibility_tree")
"""Columns of the data that UGround's plans are made for."""

Moments = Callable[[Row], tuple[str | None, list[Moment]]]
"""The episode that an object names, if it does, and its steps."""


@dataclass(slots=True)
class Reader:
    """Turns objects into steps.

    Attributes:
        note: takes the findings.
        low: whether a step needs an instruction of its own.
        labels, said: as in `call_of`.
        read: returns the action of a call; a `ValueError` if it is none of the benchmark's.
        expected: the benchmark's actions in words, for messages.
        tags_of: the tags of an episode.
        moments: the steps of an object.
    """

    note: Note
    low: bool
    labels: WordSense
    said: WordSense | None
    read: Callable[[Row], Action]
    expected: str
    tags_of: Callable[[str], dict[str, str]]
    moments: Moments = single
    _folders: dict[Path, Path] = field(default_factory=dict)
    _keys: dict[str, None] = field(default_factory=dict)
    _acted: bool = False
    _fault: str = ""
    _as_fed: list[str] = field(default_factory=list)
    _ways: Counter[tuple[WordSense, Direction]] = field(default_factory=Counter)

    def steps(self, lines: Iterable[Line], data: Path) -> Iterator[Step]:
        """Yield the steps of all rows; neighbouring rows may be of one episode.

        Args:
            lines: the rows of the files.
            data: as the user named it.

        Raises:
            DataError: there are rows, and not one has an action that can be read.
        """
        root = data if data.is_dir() else data.parent
        parsed = ((line, *self.moments(line.row)) for line in lines)
        for name, of_one in groupby(parsed, lambda each: each[1] or each[0].where):
            rows = [(line, moments) for line, _, moments in of_one]
            line = rows[0][0]
            parts = [(line, moment) for line, moments in rows for moment in moments]
            if not parts:
                what = "the episode has no actions"
                RowContext(line.where, self.note).refuse("row-unusable", what, self.expected)
                continue
            alone = f"{line.path.relative_to(root).with_suffix('').as_posix()}/{line.number}"
            own = alone if name == line.where else name
            yield from self._episode(own, parts, grouped=own is name)
        if self._keys and not self._acted:
            fault = f": {self._fault}" if self._fault else ""
            raise DataError(
                f"no action in any row{fault}; keys {', '.join(self._keys)}",
                where=str(data),
                expected=f"{' or '.join(ACTION_KEYS)}: {self.expected}",
                remedy="rename the column that holds the action to action, or name other data",
            )
        self._warn_of_senses(data)
        warn_of_fed_sizes(self._as_fed, str(data), self.note)

    def _warn_of_senses(self, data: Path) -> None:
        """Report vertical scrolls if most go the rare way.

        People scroll further far more often than back: nine times of ten in AndroidControl, eight
        times of nine in GUI-Odyssey.
        """
        back, further = (
            sum(count for (_, way), count in self._ways.items() if way == wanted)
            for wanted in ("up", "down")
        )
        if back < _FEWEST_SCROLLS or back <= 2 * further:
            return
        (sense, _), _ = self._ways.most_common(1)[0]
        other = "finger" if sense == "content" else "content"
        RowContext(str(data), self.note).warn(
            "scrolls-inverted",
            f"with directions of the {sense}, {back} of "
            f"{plural(back + further, 'vertical scroll')} go back up and {further} further down",
            "more scrolls further down than back up",
            f"if the directions are those of the {other}, add -T scroll={other}",
        )

    def _episode(
        self, name: str, parts: Sequence[tuple[Line, Moment]], *, grouped: bool
    ) -> Iterator[Step]:
        episode = EpisodeBuilder(name, self.tags_of(name), count=len(parts))
        for index, (line, moment) in enumerate(parts):
            own = f"{name}/{moment.number or index}" if grouped else name
            place = RowContext(line.where, about(self.note, own))
            shot = self._screenshot(line, moment.shot)
            screen = stated_size(*moment.size, place)
            screen = size_of(shot) if screen == (0, 0) else screen
            if screen == (0, 0):
                screen = size_by_feeding(moment.own, own, self._as_fed)
            action, call = self._action(moment, screen, place)
            instruction = moment.detail if self.low else moment.goal
            if not isinstance(instruction, str) or not instruction.strip():
                what = "the step has no instruction of its own" if self.low else "no goal"
                place.refuse("instruction-missing", what, "a text")
                episode.skip(screen, action)
                continue
            media = {"screenshot": shot}
            if moment.last:
                media["final_screenshot"] = self._screenshot(line, moment.last)
            source = {
                "step": 0,
                "actions": [compact(call.body)] if call else [],
                "goal": [moment.goal],
                "step_instructions": [moment.detail],
                BOXES: moment.boxes,
                **({SCROLL: call.sense} if call and call.sense else {}),
                ROW: moment.own,
            }
            goal = moment.goal if isinstance(moment.goal, str) else instruction
            # Of a row without an episode, the goal alone tells what it belongs to.
            group = "" if grouped else instruction
            yield episode.step(own, goal, media, screen, action, source, group=group)

    def _action(
        self, moment: Moment, screen: Screen, place: RowContext
    ) -> tuple[Action | None, Call | None]:
        self._keys.update(dict.fromkeys(moment.own))
        try:
            call = call_of(moment.action, screen, labels=self.labels, said=self.said)
            action = self.read(call.body)
        except ValueError as error:
            if moment.action is not None:
                self._fault = self._fault or str(error)
            place.leave_unjudged("action-unusable", str(error), self.expected)
            return None, None
        self._acted = True
        if call.sense:
            self._ways[call.sense, call.body["direction"]] += 1
        x, y = call.body.get("x", 0), call.body.get("y", 0)
        if min(screen) > 0 and not (0 <= x <= screen[0] and 0 <= y <= screen[1]):
            what = f"({x}, {y}) is outside the screen of {screen[0]} x {screen[1]}"
            place.warn("target-outside", what, "pixels of the screenshot")
        elif 0 < max(x, y) <= 1:
            place.warn("target-tiny", f"({x}, {y}) is the first pixel", "pixels, not shares of 1")
        return action, call

    def _screenshot(self, line: Line, value: object) -> MediaRef | None:
        if held := line.picture(IMAGE_KEYS):
            return held
        if not isinstance(value, str) or not value:
            return None
        home = line.path.parent
        if line.path not in self._folders:
            places = [folder / name for folder in (home, home.parent) for name in _FOLDERS]
            refs = (MediaRef("image", place, value) for place in places)
            self._folders[line.path] = next((ref.root for ref in refs if _is_there(ref)), home)
        return MediaRef("image", self._folders[line.path], value)


_FEWEST_SCROLLS: Final = 5
"""Below so many scrolls back up nothing is said of them: a small part of the data may be so."""


def _is_there(ref: MediaRef) -> bool:
    try:
        resolve(ref)
    except MediaError:
        return False
    return True


def check_sense(source: LoadedDataset, said: WordSense | None) -> LoadedDataset:
    """Return the data if their scrolls were read in the sense that the user states.

    Steps of a repository were read when it was made, and have what was done already.

    Raises:
        UsageError: a step was read in the other sense.
    """
    if said is None:
        return source
    for step in source.steps:
        was = step.source.get(SCROLL)
        if was not in (None, said):
            raise UsageError(
                f"the scrolls were read as the {was}'s when the repository was made",
                where=f"-T scroll={said}",
                expected=f"scroll={was}, or the rows themselves",
                remedy="leave out scroll, or name the rows instead of the repository",
            )
    return source


# Which benchmark's rows these are.

_NAMED: Final = re.compile(
    r'"(?:gt_action"\s*+:\s*+"(?=[a-zA-Z_])|action"\s*+:\s*+"(?=[A-Z_]{4}))([a-zA-Z_]{4,30})["\s]'
)
_GROUNDED: Final = re.compile(rb'"ui_type"\s*+:\s*+"(?:text|icon)"')
_GROUP: Final = re.compile(rb'"group"\s*+:\s*+"([^"\\]{1,30})"')
_OF_EPISODES: Final = frozenset(("complete", "impossible", "press_recent"))
_OF_APPS: Final = frozenset(("open_app", "wait"))
_OF_POINTERS: Final = frozenset(("select", "hotkey", "moveto", "doubleclick", "rightclick"))
_NO_PHONE: Final = frozenset((b"web", b"desktop", b"windows", b"mac", b"macos", b"linux"))
_APPS_NAME: Final = re.compile(r"android[-_ ]?control", re.IGNORECASE)
_LONGEST_NAME: Final = 30
_MOST_NAMES: Final = 1000
"""Names above which a column holds texts and no names of actions."""


def is_graded(head: bytes) -> bool:
    """Return whether the beginning of a file has GUI-R1's columns."""
    return b'"gt_action"' in head and b'"gt_bbox"' in head


def is_off_phones(head: bytes) -> bool:
    """Return whether GUI-R1's rows are of computers, of the web or of elements.

    Those of GUI-Odyssey say "web" too, and those of AndroidControl never.
    """
    groups = {group.lower() for group in _GROUP.findall(head)}
    return bool((groups and groups <= _NO_PHONE) or _GROUNDED.search(head))


def is_of_odyssey(path: Path, head: bytes) -> bool:
    """Return whether rows of single steps are GUI-Odyssey's and not AndroidControl's.

    AndroidControl has no action that ends an episode, and GUI-Odyssey none that waits or opens an
    app. Where the beginning of the file has neither, the rest is read; then the name of the file
    tells, and then whether a button leads home.
    """
    names = _names_of(path, head)
    if not names or names & _OF_APPS:
        return False
    # Some end AndroidControl's episodes in words: COMPLETE alone is no sign there.
    in_words = not is_graded(head)
    signs = names & _OF_EPISODES
    if signs and not (in_words and signs == {"complete"} and "press_home" not in names):
        return True
    if _APPS_NAME.search(path.stem):
        return False
    return ("press_home" in names and not in_words) or "odyssey" in path.stem.lower()


def is_elsewhere(path: Path, head: bytes) -> bool:
    """Return whether rows of single steps cannot be GUI-Odyssey's."""
    names = _names_of(path, head)
    if is_graded(head) and _GROUNDED.search(head):
        return True
    return bool(names & (_OF_APPS | _OF_POINTERS)) and not names & _OF_EPISODES


def _names_of(path: Path, head: bytes) -> frozenset[str]:
    found = frozenset(name.lower() for name in _NAMED.findall(head.decode("utf-8", "replace")))
    if not found or found & (_OF_APPS | _OF_EPISODES):
        return found
    about = path.stat()
    return found | _all_names(path, about.st_size, about.st_mtime_ns)


@lru_cache(maxsize=64)
def _all_names(path: Path, size: int, modified: int) -> frozenset[str]:
    found: set[str] = set()
    for line in read_rows(path):
        row = line.row if isinstance(line.row, dict) else {}
        action = row.get("gt_action", row.get("action"))
        if isinstance(action, str) and (word := action.strip().partition(" ")[0].lower()):
            found.add(word[:_LONGEST_NAME])
        if found & _OF_APPS or len(found) > _MOST_NAMES:
            break
    return frozenset(found)
