"""GUI-Odyssey's annotations as steps: one JSON object per episode, or a list of them.

Source: OpenGVLab/GUI-Odyssey, `introduction.md` and `data/format_converter.py`, which turns rows
into the commands that its evaluator compares. All places are from 0 to 1000.

Rows of single steps are read too, in the forms of `omnidata.tasks.phones.step_rows`. A direction in
OS-Atlas's texts and GUI-R1's columns is that of the finger here, as in the dataset itself: of the
17,920 published rows of OS-Atlas's test set 1,149 scroll UP and 143 DOWN.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, ValidationError, convert, structs

from omnidata.actions import Action, Pair, Point, Screen, heading
from omnidata.jsontext import as_name, is_coordinate
from omnidata.loaders import files
from omnidata.loaders.files import Look, RowFiles, images, walk
from omnidata.loaders.load import Note, RowContext, about, short, size_of, stated_size
from omnidata.loaders.row_files import Line, head_of
from omnidata.tasks.phones import step_rows
from omnidata.tasks.phones.actions import BACK, COMPLETE, HOME, IMPOSSIBLE, RECENTS, Rect
from omnidata.tasks.phones.conversations import is_conversation
from omnidata.tasks.phones.splits import read_splits
from omnidata.tasks.phones.step_rows import (
    WordSense,
    is_elsewhere,
    is_graded,
    is_of_odyssey,
    read_any,
)
from omnidata.types import MediaRef, Modality, Step

Row = Mapping[str, Any]

SPLITS: Final = ("random_split", "task_split", "device_split", "app_split")
PARTS: Final[Mapping[str, tuple[str, str]]] = {
    split: (f"{split.removesuffix('split')}train", f"{split.removesuffix('split')}test")
    for split in SPLITS
}
"""The values of the tag of each split, which are subsets: other splits have other episodes."""
TAGS: Final = ("category", "device", *SPLITS)
ROLES: Final[Mapping[str, Modality]] = {"screenshot": "image"}
KEYS: Final[Mapping[str, Action]] = {"KEY_HOME": HOME, "KEY_BACK": BACK, "KEY_APPSELECT": RECENTS}
_EXPECTED: Final = (
    "CLICK or LONG_PRESS with [[x, y]] or a key, SCROLL with [[x, y], [x, y]], TYPE or TEXT with a "
    "text, COMPLETE or INCOMPLETE"
)
_EPISODE: Final = "an object with episode_id, device_info, task_info, step_length and steps"
_WHOLE: Final = "all_anno.json"
_SIGNS: Final = (b'"task_info"', b'"device_info"', b'"step_length"', b'"steps"')
_ACTS: Final = re.compile(
    rb'"action"\s*+:\s*+"(?:(?:CLICK|LONG_PRESS) [<\[]|(?:SCROLL|TYPE) \[|PRESS_'
    rb'|COMPLETE"|IMPOSSIBLE")'
)
_PICTURED: Final = tuple(b'"%s"' % key.encode() for key in step_rows.IMAGE_KEYS[:3])
LABELS: Final[WordSense] = "finger"


def _is_annotation(head: bytes) -> bool:
    return all(sign in head for sign in _SIGNS)


def _look(path: Path, *, alone: bool = False) -> Look:
    """Whether rows may be GUI-Odyssey's, or are if the file stands alone."""
    head = head_of(path)
    if _is_annotation(head) or is_conversation(head, "episodes"):
        return "known"
    acts = _ACTS.search(head) and (not alone or any(key in head for key in _PICTURED))
    if not (is_graded(head) or acts):
        return "other"
    if alone:
        return "known" if is_of_odyssey(path, head) else "other"
    # The directions of another benchmark's rows would be read the wrong way round.
    named = "odyssey" in path.stem.lower()
    return "known" if named or not is_elsewhere(path, head) else "other"


_ROWS: Final = RowFiles(
    "annotations/*.json, each an object of episode_id, device_info, task_info, step_length and "
    "steps, with screenshots/ and splits/ beside; or rows of a picture, an instruction and an "
    "action (gt_action, gt_bbox)",
    _look,
)


class OdysseyFiles:
    """The annotations of GUI-Odyssey; where there are none, rows of single steps."""

    columns = _ROWS.columns
    rows = _ROWS.rows

    def find(self, data: Path) -> list[Path]:
        """Return the annotations, sorted; where there are none, the files of rows.

        Of several files of rows, those whose actions are another benchmark's are left out, unless
        all are.

        Raises:
            DataError: there are neither.
        """
        paths = _ROWS.find(data)
        if len(paths) < 2:
            return paths
        heads = {path: head_of(path) for path in paths}
        whole = [path for path, head in heads.items() if _is_annotation(head)]
        return whole or [path for path in paths if not is_elsewhere(path, heads[path])] or paths

    def recognises(self, data: Path) -> bool:
        """Return whether one of the first files is GUI-Odyssey's, and no other benchmark's."""
        return replace(_ROWS, look=partial(_look, alone=True)).recognises(data)

    def fingerprint(self, data: Path) -> str:
        """Return the SHA-256 over the annotations and the splits."""
        root = data if data.is_dir() else data.parent
        return files.fingerprint([*self.find(data), *_split_files(data)], root)


FILES: Final = OdysseyFiles()


def action_of(row: Row) -> Action:
    """Return the recorded action of a row, its places from 0 to 1000.

    Raises:
        ValueError: it is none of the dataset's actions.

    Examples:
        >>> action_of({"action": "SCROLL", "info": [[500, 800], [480, 200]]}).label
        'SWIPE_UP'
        >>> action_of({"action": "CLICK", "info": "KEY_APPSELECT"}).label
        'RECENT'
    """
    name, info = row.get("action"), row.get("info")
    if name in ("CLICK", "LONG_PRESS"):
        if isinstance(info, str) and info in KEYS:
            return KEYS[info]
        (start,) = _points(info, 1)
        return Action("tap" if name == "CLICK" else "long_press", (start,))
    if name == "SCROLL":
        start, end = _points(info, 2)
        way = heading((start.x, start.y), (end.x, end.y))
        return Action("swipe", (start,), (end,), direction=way)
    if name in ("TYPE", "TEXT") and isinstance(info, str):  # as documented, and as released
        return Action("type", text=info)
    if name == "COMPLETE":
        return COMPLETE
    if name in ("INCOMPLETE", "IMPOSSIBLE"):
        return IMPOSSIBLE
    raise ValueError(f"the action is {short(name)} with {short(info)}")


_APPS: Final = ("wait", "open_app")
_EXPECTED_ROW: Final = (
    "click, long_press, scroll, type, press_home, press_back, press_recent, complete or impossible"
)


def _act(call: Row) -> Action:
    if call.get("action_type") in _APPS:
        raise ValueError(f"GUI-Odyssey has no {call['action_type']}")
    return structs.replace(read_any(call), words=None)


def _points(value: object, count: int) -> list[Point]:
    if not isinstance(value, list) or len(value) != count:
        raise ValueError(f"info is {short(value)}")
    return [Point(*_pair(each), "norm1000") for each in value]


def _pair(value: object) -> Pair:
    if not isinstance(value, list) or len(value) != 2 or not all(map(is_coordinate, value)):
        raise ValueError(f"a place is {short(value)}")
    return value[0], value[1]


def rects_of(row: Row) -> tuple[Rect, ...]:
    """Return the touched element, (y, x, height, width) from 0 to 1; none if the row has none.

    Raises:
        ValueError: `sam2_bbox` is no box.
    """
    box = row.get("sam2_bbox")
    if box is None or box == []:
        return ()
    if not isinstance(box, list) or len(box) != 4:
        raise ValueError(f"sam2_bbox is {short(box)}")
    (left, top), (right, bottom) = _pair(box[:2]), _pair(box[2:])
    if left > right or top > bottom:
        raise ValueError(f"sam2_bbox is {short(box)}, upside down")
    return ((top / 1000, left / 1000, (bottom - top) / 1000, (right - left) / 1000),)


def _split_files(data: Path) -> list[Path]:
    return [path for path in walk(data) if path.suffix == ".json" and path.stem in SPLITS]


def _read_splits(data: Path, note: Note) -> dict[str, dict[str, str]]:
    """Episode -> split -> its part, as "random_test"."""
    found: dict[str, dict[str, str]] = {}
    for path in _split_files(data):
        for name, part in read_splits(path, note).items():
            tags = found.setdefault(name.removesuffix(".json"), {})
            tags[path.stem] = f"{path.stem.removesuffix('split')}{part}"
    return found


def read(data: Path, note: Note, *, low: bool, said: WordSense | None) -> Iterator[Step]:
    """Yield the steps of all episodes, or of rows of single steps if there are no annotations.

    Args:
        data: as the user named it.
        note: takes the findings.
        low: whether a step needs an instruction of its own.
        said: whose directions in words are, if the user says it.
    """
    paths = FILES.find(data)
    reader = _Reader(note, _read_splits(data, note), low)
    if not _is_annotation(head_of(paths[0])):
        rows = step_rows.Reader(note, low, LABELS, said, _act, _EXPECTED_ROW, reader.parts)
        yield from rows.steps(FILES.rows(paths, note), data)
        return
    # The first release has every episode twice: in a file of its own, and in one of them all.
    own = [path for path in paths if path.name != _WHOLE]
    for line in FILES.rows(own or paths, note):
        yield from reader.episode(line)


class _Task(Struct, frozen=True):
    instruction: Any = None
    category: Any = None
    meta_task: Any = None


class _Device(Struct):
    w: Any = None
    h: Any = None
    device_name: Any = None
    product: Any = None


class _Episode(Struct):
    episode_id: Any
    device_info: _Device
    steps: list[Any]
    task_info: _Task = _Task()
    step_length: Any = None


@dataclass(slots=True)
class _Reader:
    note: Note
    splits: Mapping[str, Mapping[str, str]]
    low: bool
    _shots: dict[Path, dict[str, str]] = field(default_factory=dict)

    def parts(self, name: str) -> dict[str, str]:
        """Return the tags of an episode by the splits."""
        return {**self.splits.get(name, {})}

    def episode(self, line: Line) -> Iterator[Step]:
        """Yield the steps of an annotation."""
        place = RowContext(line.where, self.note)
        try:
            row = convert(line.row, _Episode)
        except (ValidationError, UnicodeEncodeError) as error:  # half a character has no bytes
            place.refuse("episode-unusable", str(error), _EPISODE)
            return
        name, goal = as_name(row.episode_id), row.task_info.instruction
        if not name:
            place.refuse("episode-unusable", "episode_id is no name", _EPISODE)
            return
        if not isinstance(goal, str) or not goal.strip():
            place.refuse("instruction-missing", "task_info has no instruction", "an instruction")
            return
        count, device = len(row.steps), row.device_info
        ids = [f"{name}/{number}" for number in range(count)]
        whole = RowContext(line.where, about(self.note, *ids))
        if row.step_length not in (None, count):
            whole.warn(
                "lengths-differ",
                f"step_length is {short(row.step_length)}, there are {count} steps",
                "the number of steps",
                "download the annotations again: an episode with missing steps is never right",
            )
        stated = stated_size(device.w, device.h, whole)
        kind = as_name(device.device_name) or as_name(device.product)
        told = {"category": as_name(row.task_info.category), "device": kind}
        tags = {tag: text for tag, text in told.items() if text} | self.parts(name)
        history: list[Action | None] = []
        screens: list[Screen] = []
        for number, (own, given) in enumerate(zip(ids, row.steps, strict=True)):
            at = RowContext(own, about(self.note, own))
            if not isinstance(given, dict):
                at.refuse("row-unusable", "the step is not an object", _EXPECTED)
                history.append(None)
                screens.append(stated)
                continue
            action = _action(given, at)
            shot = self._screenshot(given, line.path)
            screen = size_of(shot)  # the picture's own, because a device may be turned
            screen = stated if screen == (0, 0) else screen
            if self.low and not as_name(given.get("low_level_instruction")):
                at.refuse("instruction-missing", "no low_level_instruction", "an instruction")
            else:
                yield Step(
                    sample_id=own,
                    episode_id=name,
                    step_index=number,
                    num_steps=count,
                    instruction=goal,
                    screen=screen,
                    media={"screenshot": shot},
                    history=tuple(history),
                    history_screens=tuple(screens),
                    action=action,
                    tags=tags,
                    source={**given, "episode_length": row.step_length},
                    group=as_name(row.task_info.meta_task) or "",
                )
            history.append(action)
            screens.append(screen)

    def _screenshot(self, row: Row, path: Path) -> MediaRef | None:
        name = as_name(row.get("screenshot"))
        if name is None:
            return None
        folder = images(path, ("screenshots",))
        if folder not in self._shots:
            found = walk(folder) if folder.is_dir() else ()
            self._shots[folder] = {shot.name: shot.relative_to(folder).as_posix() for shot in found}
        return MediaRef("image", folder, self._shots[folder].get(name, name))


def _action(row: Row, place: RowContext) -> Action | None:
    try:
        rects_of(row)
    except ValueError as error:
        place.warn("box-unusable", str(error), "[x1, y1, x2, y2], or [] if there is none")
    try:
        action = action_of(row)
    except ValueError as error:
        place.leave_unjudged("action-unusable", str(error), _EXPECTED)
        return None
    points = [point for point in (*action.start, *action.end) if isinstance(point, Point)]
    if any(not 0 <= side <= 1000 for point in points for side in (point.x, point.y)):
        place.warn("target-outside", f"info is {short(row['info'])}", "places from 0 to 1000")
    return action
