"""AndroidControl as JSON: the forms in which others prepare it, turned into its own records.

* An object per episode with `episode` and `step_check_pams`, as Qwen2.5-VL's evaluation and
  InfiGUI-R1 publish the test set: actions of `mobile_use`, with boxes that may be clicked.
* An object per episode with the features of a record as lists and `screenshot_path`, as
  AgentCPM-GUI's `process_ac.py` writes them, the accessibility trees as texts.
* An object per step with a picture, an instruction and an action: AndroidControl's own or one of
  `mobile_use`, as an object or as JSON in a text; OS-Atlas's text, `CLICK [[x, y]]` from 0 to 1000;
  or `gt_action`, `gt_bbox` and `gt_input_text`, as GUI-R1 and UI-R1 have them.

A step's `source` has the features of a record with this step alone, beside them `boxes`, what the
rows say may be clicked, and `row`, untouched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from omnidata.actions import OPPOSITE, Action, Screen, heading
from omnidata.errors import MediaError
from omnidata.jsontext import BROKEN, as_name, compact, decode, is_number
from omnidata.loaders.files import Look, RowFiles
from omnidata.loaders.load import Note, RowContext, about, short, stated_size
from omnidata.loaders.row_files import Line, head_of
from omnidata.media import image_size, resolve, unsafe
from omnidata.tasks.phones.actions import DIRECTIONS, read_call
from omnidata.types import MediaRef, Step

Row = Mapping[str, Any]
Box = list[float]

BOXES: Final = "boxes"
ROW: Final = "row"
_IMAGE: Final = ("image_path", "image", "images", "screenshot_path", "screenshot", "img_path")
_GOAL: Final = ("goal", "instruction", "task", "question")
_DETAIL: Final = ("step_instruction", "low_instruction", "low_level_instruction")
_FOLDERS: Final = ("", "images", "screenshots", "screenshot")
_EXPECTED: Final = "one of AndroidControl's actions"
_NAMES: Final = "click|long_press|scroll|open_app|input_text|navigate_(?:home|back)|wait"
_ATLAS: Final = "CLICK|LONG_PRESS|SCROLL|TYPE|OPEN_APP|PRESS_(?:HOME|BACK)|NAVIGATE_|WAIT"
_OWN: Final = re.compile(
    rf'\\?"action_type\\?"\s*+:\s*+\\?"(?:{_NAMES})\b|"action"\s*+:\s*+"(?:{_ATLAS})'
    rf'|"action"\s*+:\s*+"?+\{{\s*+\\?"action\\?"\s*+:'.encode()
)
_PLACE: Final = re.compile(r"\[\s*+\[?\s*+(-?+[\d.]{1,30})\s*+,\s*+(-?+[\d.]{1,30})\s*+\]")
_WORD: Final = re.compile(r"([A-Z_]{4,30})\s*+(?:\[(.*)\]|(\S.*+)|)\s*+", re.DOTALL)
_BOUNDS: Final = re.compile(r"bounds_in_screen \{([^{}]{0,200})\}")
_EDGE: Final = re.compile(r"(left|top|right|bottom): (-?\d{1,9})")


def _look(path: Path) -> Look:
    head = head_of(path)
    if b'"step_check_pams"' in head or (b'"screenshot_widths"' in head and b'"actions"' in head):
        return "known"
    if b'"gt_action"' in head and b'"gt_bbox"' in head:
        return "known"
    pictures = any(b'"%s"' % key.encode() in head for key in _IMAGE[:3])
    return "known" if pictures and _OWN.search(head) else "other"


FILES: Final = RowFiles(
    "JSON rows of a picture, an instruction and an action, or of episodes (step_check_pams)", _look
)


def call_of(action: object, screen: Screen) -> dict[str, Any]:
    """An action of any of the forms as AndroidControl's own, its places in pixels.

    Args:
        action: an object, or a text.
        screen: width and height in pixels; (0, 0) where nobody knows.

    Raises:
        ValueError: it is none.

    Examples:
        >>> call_of({"action": "swipe", "direction": "up"}, (0, 0))
        {'action_type': 'scroll', 'direction': 'down'}
        >>> call_of("CLICK <point>[[500, 250]]</point>", (1080, 2400))
        {'action_type': 'click', 'x': 540.0, 'y': 600.0}
    """
    if isinstance(action, str):
        try:
            read = decode(action)
        except RecursionError:
            read = BROKEN
        action = read if isinstance(read, dict) else _worded(action, screen)
    if not isinstance(action, dict):
        raise ValueError(f"the action is {short(action)}")
    if "gt_action" in action:
        found = _graded(action)
    else:
        found = action if "action_type" in action else _used(action)
    read_call(found)
    return found


def _used(action: Row) -> dict[str, Any]:
    """An action of `mobile_use`."""
    name, text = action.get("action"), action.get("text")
    if name in ("click", "long_press"):
        x, y = _pair(action.get("coordinate"))
        return {"action_type": name, "x": x, "y": y}
    if name == "swipe":
        way = action.get("direction")
        if way is None:
            way = heading(_pair(action.get("coordinate")), _pair(action.get("coordinate2")))
        way = next((OPPOSITE[each] for each in DIRECTIONS if each == way), None)
        return {"action_type": "scroll", "direction": way}  # of the content; a finger swipes
    if name == "type":
        return {"action_type": "input_text", "text": text}
    if name == "open":
        return {"action_type": "open_app", "app_name": text}
    if name == "system_button":
        return {"action_type": f"navigate_{str(action.get('button')).strip().lower()}"}
    return {"action_type": name}


def _worded(text: str, screen: Screen) -> dict[str, Any]:
    """An action of OS-Atlas's prompt, its places from 0 to 1000."""
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


def _graded(row: Row) -> dict[str, Any]:
    """The action of `gt_action`, its place the middle of `gt_bbox`, in pixels."""
    name, text = str(row["gt_action"]).strip().lower(), row.get("gt_input_text")
    if name in ("click", "long_press"):
        box = _numbers(row.get("gt_bbox"))
        if len(box) not in (2, 4):
            raise ValueError(f"gt_bbox is {short(row.get('gt_bbox'))}")
        x, y = (box[0] + box[-2]) / 2, (box[1] + box[-1]) / 2
        return {"action_type": name, "x": x, "y": y}
    arguments = {"scroll": "direction", "type": "text", "open_app": "app_name"}
    call = {"type": "input_text"}.get(name, name.replace("press_", "navigate_"))
    if name == "scroll" and isinstance(text, str):
        text = text.strip().lower()
    return {"action_type": call} | ({arguments[name]: text} if name in arguments else {})


def _pair(value: object) -> tuple[float, float]:
    sides = _numbers(value)
    if len(sides) != 2:
        raise ValueError(f"a place is {short(value)}")
    return sides[0], sides[1]


def _numbers(value: object) -> list[float]:
    if not isinstance(value, list) or not all(is_number(side) for side in value):
        raise ValueError(f"{short(value)} are no numbers")
    return value


def _boxes(value: object) -> list[Box]:
    """Those of a list that are boxes, or the list itself; of others nobody knows what they mean."""
    if isinstance(value, list) and len(value) == 4 and all(is_number(side) for side in value):
        return [value]
    found = (box for box in value if isinstance(box, list)) if isinstance(value, list) else ()
    return [box for box in found if len(box) == 4 and all(is_number(side) for side in box)]


def bounds_of(tree: object) -> list[Box]:
    """The bounds of windows and elements in a forest that was printed, in its order.

    Examples:
        >>> bounds_of("bounds_in_screen { right: 1080 bottom: 63 }")
        [[0, 0, 1080, 63]]
    """
    found: list[Box] = []
    for text in _BOUNDS.findall(tree) if isinstance(tree, str) else ():
        edges = {name: int(value) for name, value in _EDGE.findall(text)}
        found.append([edges.get(edge, 0) for edge in ("left", "top", "right", "bottom")])
    return found


@dataclass(frozen=True, slots=True)
class _Moment:
    """A step as any of the forms has it, nothing of it checked.

    Attributes:
        own: what the row has of this step alone.
        number: in its episode; None where the row does not say it.
        goal, detail: instructions of the episode and of the step.
        shot, last: paths of the screen before the action and, of the last one, after it.
        size: width and height.
        action: in any spelling.
        boxes: what may be clicked.
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


def _item(row: Row, key: str, number: int) -> Any:
    values = row.get(key)
    return values[number] if isinstance(values, list) and 0 <= number < len(values) else None


def _moments(row: Row) -> tuple[str | None, list[_Moment]]:
    """The episode of an object, None where it does not say it, and its steps."""
    whole = row.get("episode", row)
    actions = row.get("step_check_pams", row.get("actions"))
    if not isinstance(whole, dict) or not isinstance(actions, list):
        return as_name(row.get("episode_id")), [_alone(row)]
    name = as_name(_item(whole, "episode_id", 0) or whole.get("episode_id"))
    shots = "screenshot_paths" if "screenshot_paths" in whole else "screenshot_path"
    return name, [
        _Moment(
            action if isinstance(action, dict) else {"action": action},
            str(number),
            _item(whole, "goal", 0) or whole.get("goal"),
            _item(whole, "step_instructions", number),
            _item(whole, shots, number),
            _item(whole, shots, len(actions)) if number == len(actions) - 1 else None,
            (
                row.get("width", _item(row, "screenshot_widths", number)),
                row.get("height", _item(row, "screenshot_heights", number)),
            ),
            action,
            _boxes(action.get("candidate_bbox"))
            if isinstance(action, dict)
            else bounds_of(_item(row, "accessibility_tree", number)),
        )
        for number, action in enumerate(actions)
    ]


def _alone(row: Row) -> _Moment:
    """A row that is one step."""
    shot = _first(row, _IMAGE)
    goal, detail = _first(row, _GOAL), _first(row, _DETAIL)
    graded = "gt_action" in row
    return _Moment(
        row,
        as_name(_first(row, ("step_id", "step"))),
        goal,
        goal if detail is None and row.get("task_type") == "low" else detail,
        shot[0] if isinstance(shot, list) and len(shot) == 1 else shot,
        None,
        (_first(row, ("width", "image_width")), _first(row, ("height", "image_height"))),
        row if graded or "action_type" in row else row.get("action"),
        _boxes([row.get("gt_bbox")] if graded else row.get("candidate_bbox")),
    )


def _first(row: Row, keys: Sequence[str]) -> Any:
    return next((row[key] for key in keys if row.get(key) is not None), None)


@dataclass(slots=True)
class Reader:
    """Turns objects into steps.

    Attributes:
        note: takes the findings.
        low: whether a step needs an instruction of its own.
        worded: an action as histories have it.
        tags_of: the tags of an episode.
    """

    note: Note
    low: bool
    worded: Callable[[Action], Action]
    tags_of: Callable[[str], dict[str, str]]
    _folders: dict[Path, Path] = field(default_factory=dict)

    def steps(self, data: Path) -> Iterator[Step]:
        """The steps of all objects; neighbouring rows of one episode belong together."""
        root = data if data.is_dir() else data.parent
        lines = ((line, *_moments(line.row)) for line in FILES.rows(FILES.find(data), self.note))
        for name, of_one in groupby(lines, lambda each: each[1] or each[0].where):
            parts = [(line, moment) for line, _, moments in of_one for moment in moments]
            line = parts[0][0]
            alone = f"{line.path.relative_to(root).with_suffix('').as_posix()}/{line.number}"
            own = alone if name == line.where else name
            yield from self._episode(own, parts, grouped=own is name)

    def _episode(
        self, name: str, parts: Sequence[tuple[Line, _Moment]], *, grouped: bool
    ) -> Iterator[Step]:
        tags = self.tags_of(name)
        history: list[Action | None] = []
        screens: list[Screen] = []
        for index, (line, moment) in enumerate(parts):
            own = f"{name}/{moment.number or index}" if grouped else name
            place = RowContext(line.where, about(self.note, own))
            shot = self._shot(line, moment.shot)
            screen = self._screen(moment.size, shot, place)
            action, call = self._action(moment, screen, place)
            told = moment.detail if self.low else moment.goal
            if not isinstance(told, str) or not told.strip():
                what = "no instruction of the step" if self.low else "no goal"
                place.refuse("instruction-missing", what, "a text")
            else:
                last = {"final_screenshot": self._shot(line, moment.last)} if moment.last else {}
                yield Step(
                    sample_id=own,
                    episode_id=name,
                    step_index=index,
                    num_steps=len(parts),
                    instruction=moment.goal if isinstance(moment.goal, str) else told,
                    screen=screen,
                    media={"screenshot": shot, **last},
                    history=tuple(history),
                    history_screens=tuple(screens),
                    action=action,
                    tags=tags,
                    source={
                        "step": 0,
                        "actions": [compact(call)] if call else [],
                        "goal": [moment.goal],
                        "step_instructions": [moment.detail],
                        BOXES: moment.boxes,
                        ROW: moment.own,
                    },
                    # Of a row without an episode, the goal alone tells what it belongs to.
                    group="" if grouped else told,
                )
            history.append(action)
            screens.append(screen)

    def _action(
        self, moment: _Moment, screen: Screen, place: RowContext
    ) -> tuple[Action | None, dict[str, Any] | None]:
        try:
            call = call_of(moment.action, screen)
        except ValueError as error:
            place.refuse(
                "action-unusable", str(error), _EXPECTED,
                "mend the row; the step is not judged until then",
            )  # fmt: skip
            return None, None
        x, y = call.get("x", 0), call.get("y", 0)
        if min(screen) > 0 and not (0 <= x <= screen[0] and 0 <= y <= screen[1]):
            what = f"({x}, {y}) is outside the screen of {screen[0]} x {screen[1]}"
            place.warn("target-outside", what, "pixels of the screenshot")
        elif 0 < max(x, y) <= 1:
            place.warn("target-tiny", f"({x}, {y}) is the first pixel", "pixels, not shares of 1")
        return self.worded(read_call(call)), call

    def _screen(
        self, size: tuple[object, object], shot: MediaRef | None, place: RowContext
    ) -> Screen:
        """As the row states it, or else the picture's own; (0, 0) where nobody knows."""
        stated = stated_size(*size, place)
        if stated != (0, 0) or shot is None or unsafe(shot.path):
            return stated
        try:
            return image_size(shot)
        except MediaError:
            return stated

    def _shot(self, line: Line, value: object) -> MediaRef | None:
        """A picture, below the first folder around the file in which the first one lies."""
        if not isinstance(value, str) or not value:
            return None
        home = line.path.parent
        if line.path not in self._folders:
            places = [folder / name for folder in (home, home.parent) for name in _FOLDERS]
            refs = (MediaRef("image", place, value) for place in places if not unsafe(value))
            self._folders[line.path] = next((ref.root for ref in refs if _is_there(ref)), home)
        return MediaRef("image", self._folders[line.path], value)


def _is_there(ref: MediaRef) -> bool:
    try:
        resolve(ref)
    except MediaError:
        return False
    return True
