"""GUI-Odyssey's annotations as steps: one JSON object per episode, or a list of them.

Source: OpenGVLab/GUI-Odyssey, `introduction.md` and `data/format_converter.py`, which turns rows
into the commands that its evaluator compares. All places are from 0 to 1000.

Rows of single steps are read too, in the forms of `omnidata.tasks.phones.step_rows`. A direction in
OS-Atlas's texts and GUI-R1's columns is that of the finger here, as in the dataset itself: of the
17,920 published rows of OS-Atlas's test set 1,149 scroll UP and 143 DOWN.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from omnidata.actions import Action, Pair, Point, Screen, heading
from omnidata.errors import MediaError
from omnidata.jsontext import as_name, is_coordinate, json_file
from omnidata.loaders import files
from omnidata.loaders.files import Look, RowFiles, images, walk
from omnidata.loaders.load import Note, RowContext, about, short, stated_size
from omnidata.loaders.row_files import Line, head_of
from omnidata.media import image_size, unsafe
from omnidata.tasks.phones import step_rows
from omnidata.tasks.phones.actions import BACK, COMPLETE, HOME, IMPOSSIBLE, RECENTS, Rect
from omnidata.tasks.phones.conversations import is_conversation
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
_MAX_SPLITS: Final = 64 * 1024**2
_ACTS: Final = re.compile(
    rb'"action"\s*+:\s*+"(?:(?:CLICK|LONG_PRESS) [<\[]|(?:SCROLL|TYPE) \[|PRESS_'
    rb'|COMPLETE"|IMPOSSIBLE")'
)
_PICTURED: Final = tuple(b'"%s"' % key.encode() for key in step_rows.IMAGE_KEYS[:3])
LABELS: Final[WordSense] = "finger"


def _look(path: Path) -> Look:
    head = head_of(path)
    if _is_annotation(head) or is_conversation(head, "episodes"):
        return "known"
    if not (is_graded(head) or _ACTS.search(head)):
        return "other"
    # Their directions would be read the wrong way round.
    named = "odyssey" in path.stem.lower()
    return "other" if is_elsewhere(path, head) and not named else "known"


def _is_annotation(head: bytes) -> bool:
    return all(sign in head for sign in _SIGNS)


_ROWS: Final = RowFiles(
    "annotations/*.json, each an object of episode_id, device_info, task_info, step_length and "
    "steps, with screenshots/ and splits/ beside; or rows of a picture, an instruction and an "
    "action (gt_action, gt_bbox)",
    _look,
)


def _look_alone(path: Path) -> Look:
    head = head_of(path)
    rows = is_graded(head) or (_ACTS.search(head) and any(key in head for key in _PICTURED))
    rows = rows and is_of_odyssey(path, head)
    alone = rows or is_conversation(head, "episodes")
    return "known" if _is_annotation(head) or alone else "other"


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
            OSError: a file cannot be read.
        """
        paths = _ROWS.find(data)
        heads = {path: head_of(path) for path in paths} if len(paths) > 1 else {}
        whole = [path for path, head in heads.items() if _is_annotation(head)]
        return whole or [path for path in heads if not is_elsewhere(path, heads[path])] or paths

    def recognises(self, data: Path) -> bool:
        """Return whether one of the first files is GUI-Odyssey's, and no other benchmark's.

        Raises:
            OSError: a file cannot be read.
        """
        return replace(_ROWS, look=_look_alone).recognises(data)

    def fingerprint(self, data: Path) -> str:
        """Return the SHA-256 over the annotations and the splits.

        Raises:
            DataError: as `find`.
        """
        root = data if data.is_dir() else data.parent
        return files.fingerprint([*self.find(data), *split_files(data)], root)


FILES: Final = OdysseyFiles()


def action_of(row: Row) -> Action:
    """What a row says was done, its places from 0 to 1000.

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
    """The element that was touched, (y, x, height, width) from 0 to 1; none where it is not said.

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


def split_files(data: Path) -> list[Path]:
    """Return the files that list the training episodes, sorted."""
    return [path for path in walk(data) if path.suffix == ".json" and path.stem in SPLITS]


def read_splits(paths: Iterable[Path], note: Note) -> dict[str, dict[str, str]]:
    """Return episode -> split -> its part, as "random_test"."""
    found: dict[str, dict[str, str]] = {}
    for path in paths:
        parts = json_file(path, _MAX_SPLITS)
        for part, value in zip(("train", "test"), PARTS[path.stem], strict=True):
            names = parts.get(part) if isinstance(parts, dict) else None
            if not isinstance(names, list):
                RowContext(str(path), note).warn(
                    "splits-unusable",
                    f"{part} is not a list",
                    "train and test, lists of file names",
                )
                continue
            for own in names:
                tags = found.setdefault(str(own).removesuffix(".json"), {})
                tags[path.stem] = value
    return found


@dataclass(slots=True)
class Reader:
    """Turns annotations into steps.

    Attributes:
        note: takes the findings.
        splits: as `read_splits` gives them.
        low: whether rows need an instruction of their own.
        said: what directions in words are said of, where the user says it.
    """

    note: Note
    splits: Mapping[str, Mapping[str, str]]
    low: bool
    said: WordSense | None = None
    _shots: dict[Path, dict[str, str]] = field(default_factory=dict)

    def steps(self, data: Path) -> Iterator[Step]:
        """Yield the steps of all episodes, or of rows of single steps without annotations."""
        paths = FILES.find(data)
        if not _is_annotation(head_of(paths[0])):
            rows = step_rows.Reader(
                self.note, self.low, LABELS, self.said, _act, _EXPECTED_ROW, self._tags
            )
            yield from rows.steps(FILES.rows(paths, self.note), data)
            return
        # The first release has every episode twice: in a file of its own, and in one of them all.
        own = [path for path in paths if path.name != _WHOLE]
        for line in FILES.rows(own or paths, self.note):
            yield from self._episode(line)

    def _tags(self, name: str) -> dict[str, str]:
        return {**self.splits.get(name, {})}

    def _episode(self, line: Line) -> Iterator[Step]:
        row, name = line.row, as_name(line.row.get("episode_id"))
        task, device, steps = (row.get(key) for key in ("task_info", "device_info", "steps"))
        goal = task.get("instruction") if isinstance(task, dict) else None
        place = RowContext(line.where, self.note)
        if not name or not isinstance(device, dict) or not isinstance(steps, list):
            place.refuse("episode-unusable", "a part of the episode is missing", _EPISODE)
            return
        if not isinstance(task, dict) or not isinstance(goal, str) or not goal.strip():
            place.refuse("instruction-missing", "task_info has no instruction", "an instruction")
            return
        whole = RowContext(
            line.where, about(self.note, *(f"{name}/{number}" for number in range(len(steps))))
        )
        if row.get("step_length") not in (None, len(steps)):
            whole.warn(
                "lengths-differ",
                f"step_length is {short(row['step_length'])}, there are {len(steps)} steps",
                "the number of steps",
                "download the annotations again: an episode with missing steps is never right",
            )
        stated = stated_size(device.get("w"), device.get("h"), whole)
        kind = as_name(device.get("device_name")) or as_name(device.get("product"))
        told = {"category": as_name(task.get("category")), "device": kind}
        tags = {tag: text for tag, text in told.items() if text} | {**self.splits.get(name, {})}
        history: list[Action | None] = []
        screens: list[Screen] = []
        for number, given in enumerate(steps):
            own = f"{name}/{number}"
            at = RowContext(own, about(self.note, own))
            if not isinstance(given, dict):
                at.refuse("row-unusable", "the step is not an object", _EXPECTED)
                history.append(None)
                screens.append(stated)
                continue
            action = self._action(given, at)
            shot = self._screenshot(given, line.path)
            screen = _size(shot, stated)
            detail = as_name(given.get("low_level_instruction"))
            if self.low and not detail:
                at.refuse("instruction-missing", "no low_level_instruction", "an instruction")
            else:
                yield Step(
                    sample_id=own,
                    episode_id=name,
                    step_index=number,
                    num_steps=len(steps),
                    instruction=goal,
                    screen=screen,
                    media={"screenshot": shot},
                    history=tuple(history),
                    history_screens=tuple(screens),
                    action=action,
                    tags=tags,
                    source={**given, "episode_length": row.get("step_length")},
                    group=as_name(task.get("meta_task")) or "",
                )
            history.append(action)
            screens.append(screen)

    def _action(self, row: Row, place: RowContext) -> Action | None:
        try:
            rects_of(row)
        except ValueError as error:
            place.warn("box-unusable", str(error), "[x1, y1, x2, y2], or [] if there is none")
        try:
            action = action_of(row)
        except ValueError as error:
            place.refuse(
                "action-unusable", str(error), _EXPECTED,
                "correct the row; the step is not judged until then",
            )  # fmt: skip
            return None
        points = [point for point in (*action.start, *action.end) if isinstance(point, Point)]
        if any(not 0 <= side <= 1000 for point in points for side in (point.x, point.y)):
            place.warn("target-outside", f"info is {short(row['info'])}", "places from 0 to 1000")
        return action

    def _screenshot(self, row: Row, path: Path) -> MediaRef | None:
        name = as_name(row.get("screenshot"))
        if name is None:
            return None
        folder = images(path, ("screenshots",))
        if folder not in self._shots:
            found = walk(folder) if folder.is_dir() else ()
            self._shots[folder] = {shot.name: shot.relative_to(folder).as_posix() for shot in found}
        return MediaRef("image", folder, self._shots[folder].get(name, name))


def _size(shot: MediaRef | None, stated: Screen) -> Screen:
    """The picture's own size, because a device may be turned."""
    if shot is None or unsafe(shot.path):
        return stated
    try:
        return image_size(shot)
    except MediaError:
        return stated
