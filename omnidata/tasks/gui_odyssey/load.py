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
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from omnidata.actions import Action, Point, heading
from omnidata.jsontext import as_name, is_coordinate
from omnidata.loaders.files import Look, RowFiles, fingerprint, images, walk
from omnidata.loaders.load import Note, RowContext, about, short, size_of, stated_size
from omnidata.loaders.row_files import Line, head_of
from omnidata.tasks.loading import EpisodeBuilder
from omnidata.tasks.phones import step_rows
from omnidata.tasks.phones.actions import BACK, COMPLETE, HOME, IMPOSSIBLE, RECENTS
from omnidata.tasks.phones.conversations import is_conversation
from omnidata.tasks.phones.splits import read_splits
from omnidata.tasks.phones.step_rows import (
    IMAGE_KEYS,
    WordSense,
    is_elsewhere,
    is_graded,
    is_of_odyssey,
)
from omnidata.types import MediaRef, Step

Row = Mapping[str, Any]

SPLITS: Final = ("random_split", "task_split", "device_split", "app_split")
PARTS: Final[Mapping[str, tuple[str, str]]] = {
    split: (f"{split.removesuffix('split')}train", f"{split.removesuffix('split')}test")
    for split in SPLITS
}
"""The values of the tag of each split, which are subsets: other splits have other episodes."""
LABELS: Final[WordSense] = "finger"

# The files.

_WHOLE: Final = "all_anno.json"
_SIGNS: Final = (b'"task_info"', b'"device_info"', b'"step_length"', b'"steps"')
_ACTS: Final = re.compile(
    rb'"action"\s*+:\s*+"(?:(?:CLICK|LONG_PRESS) [<\[]|(?:SCROLL|TYPE) \[|PRESS_'
    rb'|COMPLETE"|IMPOSSIBLE")'
)
_PICTURED: Final = tuple(b'"%s"' % key.encode() for key in IMAGE_KEYS[:3])


def _is_annotation(path: Path) -> bool:
    head = head_of(path)
    return all(sign in head for sign in _SIGNS)


def _look(path: Path, *, alone: bool = False) -> Look:
    """Return whether a file may be GUI-Odyssey's; for a single file (`alone`), whether it is."""
    head = head_of(path)
    if _is_annotation(path) or is_conversation(head, "episodes"):
        return "known"
    acts = _ACTS.search(head) and (not alone or any(key in head for key in _PICTURED))
    if not (is_graded(head) or acts):
        return "other"
    if alone:
        return "known" if is_of_odyssey(path, head) else "other"
    # The directions of another benchmark's rows would be read the wrong way round.
    named = "odyssey" in path.stem.lower()
    return "known" if named or not is_elsewhere(path, head) else "other"


class OdysseyFiles(RowFiles):
    """The annotations of GUI-Odyssey, or else rows of single steps."""

    def find(self, data: Path) -> list[Path]:
        """Return the annotations, sorted, or else the files of rows.

        Raises:
            DataError: there is neither.
        """
        paths = super().find(data)
        return [path for path in paths if _is_annotation(path)] or paths

    def recognises(self, data: Path) -> bool:
        """Return whether one of the first files is GUI-Odyssey's, and no other benchmark's."""
        return RowFiles(self.columns, partial(_look, alone=True)).recognises(data)

    def fingerprint(self, data: Path) -> str:
        """Return the SHA-256 over the annotations and the splits."""
        root = data if data.is_dir() else data.parent
        return fingerprint([*self.find(data), *_split_files(data)], root)


FILES: Final = OdysseyFiles(
    "annotations/*.json, each an object of episode_id, device_info, task_info, step_length and "
    "steps, with screenshots/ and splits/ beside; or rows of a picture, an instruction and an "
    "action (gt_action, gt_bbox)",
    _look,
)


def _split_files(data: Path) -> list[Path]:
    return [path for path in walk(data) if path.suffix == ".json" and path.stem in SPLITS]


# The actions.

KEYS: Final[Mapping[str, Action]] = {"KEY_HOME": HOME, "KEY_BACK": BACK, "KEY_APPSELECT": RECENTS}
_EXPECTED: Final = (
    "CLICK or LONG_PRESS with [[x, y]] or a key, SCROLL with [[x, y], [x, y]], TYPE or TEXT with a "
    "text, COMPLETE or INCOMPLETE"
)
_EXPECTED_ROW: Final = (
    "click, long_press, scroll, type, press_home, press_back, press_recent, complete or impossible"
)


def action_of(row: Row) -> Action:
    """Return the recorded action of a row, its places from 0 to 1000.

    Raises:
        ValueError: the dataset has no such action.

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
        return Action("tap" if name == "CLICK" else "long_press", _points(info, 1))
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


def _points(value: Any, count: int) -> tuple[Point, ...]:
    pairs: list[Any] = value if isinstance(value, list) and len(value) == count else [None]
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise ValueError(f"info is {short(value)}")
    if not all(is_coordinate(side) for pair in pairs for side in pair):
        raise ValueError(f"a place is {short(value)}")
    return tuple(Point(x, y, "norm1000") for x, y in pairs)


def boxes_of(row: Row) -> list[list[float]]:
    """Return left, top, right and bottom of the touched element, from 0 to 1000, if it has one."""
    box = row.get("sam2_bbox")
    if not isinstance(box, list) or len(box) != 4 or not all(map(is_coordinate, box)):
        return []
    return [box] if box[0] <= box[2] and box[1] <= box[3] else []


def _action(row: Row, place: RowContext) -> Action | None:
    if row.get("sam2_bbox") not in (None, []) and not boxes_of(row):
        what = f"sam2_bbox is {short(row['sam2_bbox'])}"
        place.warn("box-unusable", what, "[x1, y1, x2, y2], or [] if there is none")
    try:
        action = action_of(row)
    except ValueError as error:
        place.leave_unjudged("action-unusable", str(error), _EXPECTED)
        return None
    points = [point for point in (*action.start, *action.end) if isinstance(point, Point)]
    if any(not 0 <= side <= 1000 for point in points for side in (point.x, point.y)):
        place.warn("target-outside", f"info is {short(row['info'])}", "places from 0 to 1000")
    return action


def _act(call: Row) -> Action:
    if call.get("action_type") in ("wait", "open_app"):
        raise ValueError(f"GUI-Odyssey has no {call['action_type']}")
    return structs.replace(step_rows.read_any(call), words=None)


# The steps.


def read(data: Path, note: Note, *, low: bool, said: WordSense | None) -> Iterator[Step]:
    """Yield the steps of all episodes, or of rows of single steps if there are no annotations.

    Args:
        data: as the user named it.
        note: takes the findings.
        low: whether a step needs an instruction of its own.
        said: the sense of directions in words, if the user states it.
    """
    paths, splits = FILES.find(data), dict[str, dict[str, str]]()
    for path in _split_files(data):
        for name, part in read_splits(path, note).items():
            tags = splits.setdefault(name.removesuffix(".json"), {})
            tags[path.stem] = f"{path.stem.removesuffix('split')}{part}"
    reader = _Reader(note, splits, low)
    if not _is_annotation(paths[0]):
        rows = step_rows.Reader(note, low, LABELS, said, _act, _EXPECTED_ROW, reader.parts)
        yield from rows.steps(FILES.rows(paths, note), data)
        return
    # The first release has every episode twice: in its own file, and in one file of all episodes.
    own = [path for path in paths if path.name != _WHOLE]
    for line in FILES.rows(own or paths, note):
        yield from reader.episode(line)


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
        row, place = line.row, RowContext(line.where, self.note)
        name, task = as_name(row.get("episode_id")), row.get("task_info", {})
        device, rows = row.get("device_info"), row.get("steps")
        kinds = isinstance(task, dict), isinstance(device, dict), isinstance(rows, list)
        if not name or not all(kinds):
            expected = "an object with episode_id, device_info, task_info, step_length and steps"
            place.refuse("episode-unusable", f"its keys are {short([*row])}", expected)
            return
        goal = task.get("instruction")
        if not isinstance(goal, str) or not goal.strip():
            place.refuse("instruction-missing", "task_info has no instruction", "an instruction")
            return
        ids = [f"{name}/{number}" for number in range(len(rows))]
        whole, length = RowContext(line.where, about(self.note, *ids)), row.get("step_length")
        if length not in (None, len(rows)):
            whole.warn(
                "lengths-differ",
                f"step_length is {short(length)}, there are {len(rows)} steps",
                "the number of steps",
                "download the annotations again: an episode with missing steps is never right",
            )
        stated = stated_size(device.get("w"), device.get("h"), whole)
        kind = as_name(device.get("device_name")) or as_name(device.get("product"))
        labels = {"category": as_name(task.get("category")), "device": kind}
        tags = {tag: text for tag, text in labels.items() if text} | self.parts(name)
        group = as_name(task.get("meta_task")) or ""
        episode = EpisodeBuilder(name, tags, count=len(rows))
        for own, given in zip(ids, rows, strict=True):
            at = RowContext(own, about(self.note, own))
            if not isinstance(given, dict):
                at.refuse("row-unusable", "the step is not an object", _EXPECTED)
                episode.skip(stated)
                continue
            action, shot = _action(given, at), self._screenshot(given, line.path)
            size = size_of(shot)  # the picture's own, because a device may be turned
            screen = stated if size == (0, 0) else size
            if self.low and not as_name(given.get("low_level_instruction")):
                at.refuse("instruction-missing", "no low_level_instruction", "an instruction")
                episode.skip(screen, action)
                continue
            source = {**given, "episode_length": length}
            media = {"screenshot": shot}
            yield episode.step(own, goal, media, screen, action, source, group=group)

    def _screenshot(self, row: Row, path: Path) -> MediaRef | None:
        name = as_name(row.get("screenshot"))
        if name is None:
            return None
        folder = images(path, ("screenshots",))
        if folder not in self._shots:
            found = walk(folder) if folder.is_dir() else ()
            self._shots[folder] = {shot.name: shot.relative_to(folder).as_posix() for shot in found}
        return MediaRef("image", folder, self._shots[folder].get(name, name))
