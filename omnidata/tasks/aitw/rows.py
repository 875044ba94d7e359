"""Rows of Android in the Wild: the action, and the elements of the screen.

Whatever the form of the row, its numbers are those of `omnidata.tasks.phones.actions.Code`, and its
places are (y, x) from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from omnidata.actions import Action, Pair, Point, Screen
from omnidata.errors import DataError, Finding
from omnidata.jsontext import decode, is_coordinate, is_integer
from omnidata.loaders import files, tfrecord
from omnidata.loaders.files import SKIPPED
from omnidata.loaders.load import Note, short
from omnidata.loaders.row_files import head_of, read_rows
from omnidata.loaders.tfrecord import Example, Record, read_example, records
from omnidata.tasks.phones.actions import (
    BACK,
    COMPLETE,
    ENTER,
    HOME,
    IMPOSSIBLE,
    WAIT,
    Code,
    Rect,
    Truth,
    as_points,
    corrected_action,
    gesture,
    own_rects,
)
from omnidata.types import MediaRef

# Where Android in the Wild lies, in its three forms, known by their columns.
#
# TFRecords            one example per step: the dataset's own form
# NAME.json            rows of steps, in the release a list per episode, NAME_0.png and so on
#                      beside it: Android in the Zoo; with image sizes and boxes from 0 to 1:
#                      AgentCPM-GUI's CAGUI

Row = Mapping[str, Any]
Form = Literal["aitw", "aitz", "cagui"]

COLUMNS = "result_action_type, result_touch_yx, result_lift_yx, ui_positions"
FEATURES = "results/action_type, results/yx_touch, results/yx_lift, image/encoded"
PICTURE = "image/encoded"
"""The feature that holds a screenshot."""

_SIGNS = (b'"result_touch_yx"', b'"result_action_type"')
_FOREIGN = (b'"result_touch_xy"', b'"video_path"', b'"current_video"')
"""Columns of OmniGUI, whose numbers have other meanings."""

_SHOTS = ("image", "screenshot", "image_path")
"""Columns of Parquet that hold a screenshot themselves."""

_PEEKED = 20


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a file.

    Attributes:
        where: the file and the step or record, for findings.
        path: the file.
        row: the row; of an example, its features as lists, with "pixels" or "file" for the picture.
        form: of the data.
        record: the record that holds the picture; None for a row of a JSON file.
        picture: where the picture lies in the record's data.
        held: the picture, where the file of rows holds it itself.
    """

    where: str
    path: Path
    row: Row
    form: Form
    record: Record | None = None
    picture: slice | None = None
    held: MediaRef | None = None


SPLITS = "splits"
"""The folder of the files that say which episodes are for training, and which for a test."""


def find_splits(data: Path) -> list[Path]:
    """Return the release's split files, sorted: in the folder's `splits`, or beside the file."""
    place = (data if data.is_dir() else data.parent) / SPLITS
    return sorted(place.glob("*.json")) if place.is_dir() else []


def _look(path: Path) -> files.Look:
    if not files.holds_rows(path):
        return tfrecord.look(path, frozenset({"results/action_type"}))
    try:
        head = head_of(path)
    except DataError:
        return "broken"
    ours = all(sign in head for sign in _SIGNS) and not any(sign in head for sign in _FOREIGN)
    return "known" if ours else "other"


class AitwFiles:
    """The files of Android in the Wild, in the Zoo, and CAGUI."""

    columns = f"TFRecords with {FEATURES}; or rows of steps with {COLUMNS}"

    def find(self, data: Path) -> list[Path]:
        """Return the files, sorted."""
        looks = {path: _look(path) for path in files.walk(data)}
        return files.select_files(data, looks, self.columns)

    def recognises(self, data: Path) -> bool:
        """Return whether one of the first files is Android in the Wild's."""
        paths = (p for p in files.walk(data) if files.holds_rows(p) or tfrecord.may_hold_records(p))
        return any(_look(path) == "known" for path in islice(paths, _PEEKED))

    def fingerprint(self, data: Path) -> str:
        """Return the SHA-256 over the files, without the pictures beside JSON files."""
        paths = [*self.find(data), *find_splits(data)]
        return files.fingerprint(paths, data if data.is_dir() else data.parent)


FILES = AitwFiles()


def read(paths: Sequence[Path], note: Note) -> Iterator[Line]:
    """Yield every row of the files; those that cannot be read become findings."""
    for path in paths:
        if not files.holds_rows(path):
            yield from _examples(path, note)
            continue
        for line in read_rows(path):
            if isinstance(line.row, dict):
                yield Line(line.where, path, line.row, form_of(line.row), held=line.picture(_SHOTS))
            else:
                note(files.not_an_object(line, f"steps with {COLUMNS}"))


def form_of(row: Row) -> Form:
    """Return the form of a row by its columns; its numbers are alike in all.

    Rows of Android in the Zoo have no size of the picture, and boxes in pixels; rows with the size,
    as AgentCPM-GUI converts them, have boxes from 0 to 1.

    Examples:
        >>> form_of({"results/action_type": [4]}), form_of({"image_width": 1080})
        ('aitw', 'cagui')
    """
    if "results/action_type" in row:
        return "aitw"
    return "cagui" if "image_width" in row or "image_height" in row else "aitz"


def _examples(path: Path, note: Note) -> Iterator[Line]:
    try:
        for record in records(path):
            where = f"{path}, record {record.number}"
            try:
                example = read_example(record.data)
                row = example.as_json(but=PICTURE)
            except ValueError as error:
                note(
                    Finding(
                        "json-invalid",
                        "error",
                        where,
                        f"the record is not an example: {error}",
                        "a tf.train.Example",
                        SKIPPED,
                    )
                )
                continue
            parts = example.texts.get(PICTURE, [])
            if parts:
                row[PICTURE] = ["file" if _is_file(example, parts[0]) else "pixels"]
            yield Line(where, path, row, "aitw", record, parts[0] if parts else None)
    except DataError as error:
        note(Finding("record-broken", "error", error.where, error.what, error.expected, SKIPPED))


def _is_file(example: Example, part: slice) -> bool:
    start = example.data[part.start : part.start + 4]
    return start.startswith((b"\x89PNG", b"\xff\xd8\xff", b"RIFF"))


_IN_CAGUI_ALONE = (Code.LONG_POINT, Code.NO_ACTION)
_PLAIN: Mapping[Code, Action] = {
    Code.PRESS_BACK: BACK,
    Code.PRESS_HOME: HOME,
    Code.PRESS_ENTER: ENTER,
    Code.NO_ACTION: WAIT,
    Code.STATUS_TASK_COMPLETE: COMPLETE,
    Code.STATUS_TASK_IMPOSSIBLE: IMPOSSIBLE,
}
_MOST_RECTS = 10_000


def one(row: Row, name: str) -> Any:
    """Return the value of a feature that has one, or a column as it is; None if absent.

    Examples:
        >>> one({"step_id": [3]}, "step_id"), one({"step_id": 3}, "step_id"), one({}, "step_id")
        (3, 3, None)
    """
    value = row.get(name)
    if isinstance(value, list):
        return value[0] if len(value) == 1 else None
    return value


def action_of(row: Row) -> Action:
    """Return the recorded action.

    Raises:
        ValueError: the row does not say, or says it in another dataset's enum; the message says
            what is wrong.
    """
    form = form_of(row)
    example = form == "aitw"
    value = one(row, "results/action_type" if example else "result_action_type")
    known = [code for code in Code if form == "cagui" or code not in _IN_CAGUI_ALONE]
    code = next((c for c in known if is_integer(value) and c == value), None)
    if code is None:
        raise ValueError(
            f"the action type is {short(value)}, which Android in the Wild's enum "
            f"({', '.join(f'{c.value} {c.name}' for c in known)}) does not have"
        )
    if code in (Code.DUAL_POINT, Code.LONG_POINT):
        touch = _pair(row, "results/yx_touch" if example else "result_touch_yx")
        lift = _pair(row, "results/yx_lift" if example else "result_lift_yx")
        if code is Code.DUAL_POINT:
            return gesture(touch, lift)
        return Action("long_press", (Point(*touch, "rel"),))
    if code is Code.TYPE:
        text = one(row, "results/type_action" if example else "result_action_text")
        if not isinstance(text, str):
            raise ValueError(f"the typed text is {short(text)}")
        return Action("type", text=text)
    return _PLAIN[code]


def truth_of(row: Row, screen: Screen) -> Truth | None:
    """Return the expert's action and the elements; None if the action is unreadable.

    Args:
        row: of any form.
        screen: width and height of its picture, for boxes in pixels; (0, 0) if unknown.
    """
    try:
        action = corrected_action(row) or action_of(row)
        return Truth(as_points(action), own_rects(action) or rects_of(row, screen), screen)
    except ValueError:
        return None


def rects_of(row: Row, screen: Screen) -> tuple[Rect, ...]:
    """Return the elements of the screen; none if they cannot be read or scaled."""
    form = form_of(row)
    value = _value(row.get("image/ui_annotations_positions" if form == "aitw" else "ui_positions"))
    if not isinstance(value, list) or len(value) > 4 * _MOST_RECTS:
        return ()
    if form == "aitw":
        value = [value[at : at + 4] for at in range(0, len(value) - 3, 4)]
    rects = [r for r in value if isinstance(r, list) and len(r) == 4 and all(map(is_coordinate, r))]
    if form != "aitz":
        return tuple((y, x, height, width) for y, x, height, width in rects)
    if min(screen) < 1:
        return ()
    wide, high = screen
    return tuple((y / high, x / wide, height / high, width / wide) for y, x, height, width in rects)


def _pair(row: Row, name: str) -> Pair:
    """Rows have y before x."""
    value = _value(row.get(name))
    if not isinstance(value, list) or len(value) != 2 or not all(map(is_coordinate, value)):
        raise ValueError(f"{name} is {short(row.get(name))}, not [y, x] from 0 to 1")
    return value[1], value[0]


def _value(value: object) -> Any:
    try:
        return decode(value) if isinstance(value, str) else value
    except RecursionError:
        return None
