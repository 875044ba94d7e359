"""ScreenSpot, ScreenSpot-v2 and ScreenSpot-Pro: where on the screen is what an instruction means?

Sources: SeeClick (`pretrain/screenspot_test.py`), OS-Atlas, ScreenSpot-Pro
(`eval_screenspot_pro.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, get_args

from omnidata.actions import Action, Box, Screen, Space
from omnidata.errors import DataError
from omnidata.jsontext import is_integer, is_number
from omnidata.loaders.files import Look, RowFiles, images
from omnidata.loaders.load import Note, RowContext, about, short, size_of
from omnidata.loaders.row_files import Line, head_of
from omnidata.loaders.row_sizes import (
    fed_size,
    size_before_feeding,
    size_columns,
    warn_of_fed_sizes,
)
from omnidata.media import unsafe
from omnidata.types import LoadedDataset, MediaRef, Modality, Step

# One row of ScreenSpot -> its target, in the form that the data declare.
#
# A box of four numbers does not say what they are: ScreenSpot and ScreenSpot-v2 have left, top,
# width and height, ScreenSpot-Pro has two corners, and others have converted either. The columns of
# the released files tell; for other columns the user says it. Nothing is guessed from how large
# numbers are.

Row = Mapping[str, Any]
Boxes = Literal["columns", "xywh-px", "xyxy-px", "xyxy-rel", "xywh-rel"]
"""What four numbers are; "columns": as the columns of the released files tell."""
BOXES: Final[tuple[Boxes, ...]] = get_args(Boxes)
Form = Literal["screenspot", "screenspot-v2", "screenspot-pro"]
FORMS: Final[tuple[Form, ...]] = get_args(Form)
Language = Literal["en", "cn"]

FILES: Final = ("img_filename", "file_name", "image")
"""Columns that name a picture: of the released files, of the Hub's, and of others' preparations."""
_FARTHEST: Final = 1e9


def boxes_of(row: Row) -> Boxes | None:
    """What the box of a row is by its columns; None where they do not tell.

    Examples:
        >>> boxes_of({"img_filename": "a.png", "data_type": "icon"})
        'xywh-px'
        >>> boxes_of({"img_filename": "a.png", "img_size": [3840, 2160], "ui_type": "icon"})
        'xyxy-px'
        >>> boxes_of({"img_filename": "a.png", "bbox": [0.25, 0.5, 0.5, 1]})
        'xyxy-rel'
        >>> boxes_of({"gt_bbox": [1, 2, 3, 4], "ui_type": "icon"})
        'xyxy-px'
        >>> boxes_of({"file_name": "a.png", "data_type": "icon"}) is None
        True
    """
    if "gt_bbox" in row:
        return "xyxy-px"
    if _is_described(row):
        return "xywh-px"
    if "img_filename" not in row:
        return None
    if _is_of_atlas(row):
        return "xyxy-rel"
    if "img_size" in row:
        return "xyxy-px"
    return "xywh-px" if "data_type" in row else None


def _is_of_atlas(row: Row) -> bool:
    """Whether a row is of OS-Atlas's grounding data: corners from 0 to 1, and no `data_source`.

    ScreenSpot's boxes are whole numbers of pixels, and none is as small as that.
    """
    box = row.get("bbox")
    if "data_source" in row or not isinstance(box, list) or not all(map(_is_number, box)):
        return False
    return any(box) and all(0 <= side <= 1 for side in box)


def _is_described(row: Row) -> bool:
    """UGround's rows have a planner's description of the element."""
    return "description" in row and "scale" in row


def targets_of(row: Row, boxes: Boxes) -> tuple[Box, ...]:
    """Return the targets: one box, or several boxes that are each right.

    Args:
        row: untouched.
        boxes: what four numbers are.

    Raises:
        ValueError: they are no boxes; the message says why.

    Examples:
        >>> row = {"bbox": [42, 1102, 197, 70], "img_filename": "a.png", "data_type": "text"}
        >>> targets_of(row, "columns")
        (Box(left=42, top=1102, right=239, bottom=1172, space='px'),)
    """
    meant = boxes_of(row) if boxes == "columns" else boxes
    if meant is None:
        raise ValueError("its columns do not define the numbers of bbox")
    value = row.get("gt_bbox", row.get("bbox"))
    several = isinstance(value, list) and bool(value) and isinstance(value[0], list)
    return tuple(_box(each, meant) for each in (value if several else [value]))


def _box(value: Any, meant: Boxes) -> Box:
    if not isinstance(value, list) or len(value) != 4 or not all(map(_is_number, value)):
        raise ValueError(f"bbox is {value!r:.60}")
    left, top, right, bottom = value
    if meant.startswith("xywh"):
        right, bottom = left + right, top + bottom
    if left > right or top > bottom:
        raise ValueError(f"bbox is {value!r:.60}, upside down as {meant}")
    space: Space = "px" if meant.endswith("px") else "rel"
    return Box(left, top, right, bottom, space)


def is_negative(row: Row) -> bool:
    """Return whether the element is absent, so "negative" is right."""
    return row.get("gt_type") == "negative"


def _size_of_row(row: Row) -> Screen | None:
    value = row.get("img_size", [*size_columns(row)])
    if not isinstance(value, list) or len(value) != 2:
        return None
    width, height = value
    whole = is_integer(width) and is_integer(height) and min(value) > 0
    return (width, height) if whole else None


def instruction_of(row: Row, language: Language) -> str | None:
    """The instruction in a language; None where the row has none.

    Of UGround's rows it is the planner's words, for which the rows were made.
    """
    described = "description" if _is_described(row) else "instruction"
    value = row.get("instruction_cn" if language == "cn" else described)
    return value if isinstance(value, str) and value.strip() else None


def _is_number(value: object) -> bool:
    if not is_number(value):
        return False
    return abs(value) <= _FARTHEST  # False for NaN too


# Where ScreenSpot lies: JSON lists, or JSON lines, known by their columns.
#
# screenspot_web.json, screenspot_web_v2.json       a list per platform: ScreenSpot, ScreenSpot-v2
# annotations/photoshop_windows.json                a list per application: ScreenSpot-Pro
# screenspot_test.json, screenspot_pro_test.json    GUI-R1's rows of both, often with its answers
# re_gpt-4o.jsonl, cross_task_query.jsonl           UGround's rows, with a planner's words
# amex_raw.json                                     OS-Atlas's grounding data, boxes from 0 to 1

COLUMNS: Final = (
    "rows of img_filename, bbox, instruction and data_type (ScreenSpot, -v2), or with "
    "img_size and ui_type (ScreenSpot-Pro); or, in Parquet, of image, file_name, bbox, "
    "instruction, data_type and data_source; GUI-R1's rows of instruction, gt_bbox, group and "
    "ui_type; UGround's of image, bbox, description and scale; or OS-Atlas's of img_filename, "
    "bbox and instruction"
)
_IMAGES: Final = ("images", "screenspot_imgs", "screenspotv2_image")
_PLATFORM: Final = re.compile(r"screenspot_(mobile|desktop|web)(_v2)?")
_SIGNS: Final = (b'"bbox"', b'"instruction"')
_FILES: Final = (b'"img_filename"', b'"file_name"')
_TYPES: Final = (b'"data_type"', b'"ui_type"')
_DESCRIBED: Final = (b'"image"', b'"bbox"', b'"description"', b'"scale"')
_GRADED: Final = (b'"gt_bbox"', b'"instruction"', b'"group"')
_GROUNDED: Final = re.compile(rb'"ui_type"\s*+:\s*+"(?:text|icon)"')
_PICTURED: Final = (b'"image"', b'"data_type"', b'"data_source"')


def _look(path: Path) -> Look:
    head = head_of(path)
    named = any(sign in head for sign in _FILES) and any(sign in head for sign in _TYPES)
    named = named or all(sign in head for sign in _PICTURED)
    known = named and all(sign in head for sign in _SIGNS)
    known = known or all(sign in head for sign in (*_SIGNS, b'"img_filename"'))
    known = known or all(sign in head for sign in _DESCRIBED)
    graded = all(sign in head for sign in _GRADED) and _GROUNDED.search(head)
    return "known" if known or graded else "other"


ROWS: Final = RowFiles(COLUMNS, _look, text_first=True)

# The Hub's form, rootsautomation/ScreenSpot and those with its columns: the pictures are in the
# rows. Its card says that the boxes of ScreenSpot have been made corners; they are from 0 to 1.

_HUB_BOXES: Final[Boxes] = "xyxy-rel"
_KINDS: Final = ("mobile", "desktop", "web")
"""What GUI-R1's rows of ScreenSpot have as `group`; those of ScreenSpot-Pro have the field."""
_SECOND: Final = re.compile(r"screenspot[-_]?v2", re.IGNORECASE)
_PLATFORMS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("ios", "android"), "mobile"),
    **dict.fromkeys(("macos", "windows"), "desktop"),
    **dict.fromkeys(("gitlab", "shop", "forum", "tool"), "web"),
}


def form_of(path: Path, row: Mapping[str, Any]) -> Form:
    """Which of the three a row is of; the boxes of the first two are alike.

    Examples:
        >>> form_of(Path("screenspot_web_v2.json"), {"data_type": "icon"})
        'screenspot-v2'
    """
    graded = "gt_bbox" in row
    if "ui_type" in row and not (graded and row.get("group") in _KINDS):
        return "screenspot-pro"
    if named := _PLATFORM.match(path.stem):
        return "screenspot-v2" if named[2] else "screenspot"
    # The names of other files say nothing; that of the dataset does.
    return "screenspot-v2" if _SECOND.search(str(path)) else "screenspot"


def platform_of(path: Path, row: Mapping[str, Any]) -> str:
    """The platform, as the row says, or the file's name as in the release; empty otherwise.

    In files of other names, as the Hub's, rows say where they are from.

    Examples:
        >>> platform_of(Path("screenspot_mobile.json"), {})
        'mobile'
    """
    said = row.get("platform")
    if isinstance(said, str) and said:
        return said
    if "gt_bbox" in row:
        group = row.get("group")
        return group if group in _KINDS else ""
    if named := _PLATFORM.match(path.stem):
        return named[1]
    return _PLATFORMS.get(str(row.get("data_source")).casefold(), "")


TAGS: Final = (
    "form", "platform", "ui_type", "group", "application", "data_source", "gt_type",
    "instruction_style", "language",
)  # fmt: skip
"""The tags of a step: which of the three it is of; text or icon, which ScreenSpot calls `data_type`
and ScreenSpot-Pro `ui_type`; the rest as the rows have it; the language of the instruction."""

ROLES: Final[Mapping[str, Modality]] = {"screenshot": "image"}
UNKNOWN: Final[Screen] = (0, 0)
_AS_THEY_ARE: Final = ("group", "application", "data_source", "gt_type", "instruction_style")


def read(
    data: Path, note: Note, *, boxes: Boxes = "columns", language: Language = "en"
) -> Iterator[Step | None]:
    """Read rows; no picture is decoded.

    A step's `source` has `row`, untouched; `boxes`, what its four numbers are; `resolution`, the
    picture's size where the row states it; and `file`. Its `action` is a tap on the box, in the
    box's own unit; its `screen` the size that the row states, else that of the picture, (0, 0)
    without one.

    Args:
        data: a folder, with as many folders in it as they like, or a file.
        note: takes the findings.
        boxes: what four numbers are, for rows whose columns do not tell.
        language: of the instruction; "cn" is ScreenSpot-Pro's `instruction_cn`.

    Yields:
        Steps in the order of the files, each an episode, named `<file>/<number>`; None for a row
        that became none.

    Raises:
        DataError: nothing of ScreenSpot is there, or the columns do not tell what the boxes are
            and nobody says it.
    """
    root = data if data.is_dir() else data.parent
    paths = ROWS.find(data)
    names = {path: path.relative_to(root).with_suffix("").as_posix() for path in paths}
    counts = Counter(names.values())
    names |= {path: path.relative_to(root).as_posix() for path in paths if counts[names[path]] > 1}
    reader = _Reader(root, boxes, language, note, names)
    yield from map(reader.step, ROWS.rows(paths, note))
    warn_of_fed_sizes(reader.as_fed, str(data), note)


@dataclass(slots=True)
class _Reader:
    root: Path
    boxes: Boxes
    language: Language
    note: Note
    names: Mapping[Path, str]
    as_fed: list[str] = field(default_factory=list)
    _folders: dict[Path, Path] = field(default_factory=dict)

    def step(self, line: Line) -> Step | None:
        name = f"{self.names[line.path]}/{line.number}"
        place = RowContext(line.where, about(self.note, name))
        row = line.row
        boxes = self._boxes(line)
        instruction = instruction_of(row, self.language)
        if instruction is None:
            place.refuse("instruction-missing", f"no text in {self.language}", "an instruction")
            return None
        shot, screen = self._picture(line, place)
        targets = self._targets(row, boxes, screen, place)
        if screen == UNKNOWN and "gt_bbox" in row:
            screen = self._size(row, name)
        return Step(
            sample_id=name,
            episode_id=name,
            step_index=0,
            num_steps=1,
            instruction=instruction,
            screen=screen,
            media={"screenshot": shot},
            history=(),
            history_screens=(),
            action=Action("tap", targets) if targets else None,
            tags=_tags(line, self.language),
            source={
                "file": line.path.name,
                "boxes": boxes,
                "resolution": row.get("img_size"),
                "row": row,
            },
        )

    def _size(self, row: Row, name: str) -> Screen:
        """A GUI-R1 box may exceed the picture as fed."""
        if before := size_before_feeding(row):
            return before
        fed = fed_size(row)
        if fed:
            self.as_fed.append(name)
        return fed or UNKNOWN

    def _boxes(self, line: Line) -> Boxes:
        found = boxes_of(line.row) if self.boxes == "columns" else self.boxes
        if found is None and "image" in line.pictures and "file_name" in line.row:
            found = _HUB_BOXES
        if found is None:
            raise DataError(
                f"the columns {', '.join(map(str, line.row))} do not define bbox",
                where=line.where,
                expected=COLUMNS,
                remedy="set it: -T boxes=xywh-px, xyxy-px, xywh-rel or xyxy-rel (0 to 1)",
            )
        return found

    def _targets(
        self, row: Mapping[str, Any], boxes: Boxes, screen: Screen, place: RowContext
    ) -> tuple[Box, ...]:
        if is_negative(row):
            return ()
        try:
            targets = targets_of(row, boxes)
        except ValueError as error:
            place.refuse(
                "box-unusable",
                str(error),
                f"four numbers, as {boxes}",
                "correct the row; it is not judged until then",
            )
            return ()
        for box in targets:
            right, bottom = (1, 1) if box.space == "rel" else screen
            beyond = box.left < 0 or box.top < 0 or box.right > right or box.bottom > bottom
            if beyond and (box.space == "rel" or screen != UNKNOWN):
                place.warn(
                    "target-outside",
                    f"the box {short(row.get('gt_bbox', row.get('bbox')))}, as {boxes}, exceeds "
                    "the screen",
                    f"a box within {right} x {bottom}",
                    "correct the row, or define its numbers with -T boxes=",
                )
        return targets

    def _picture(self, line: Line, place: RowContext) -> tuple[MediaRef | None, Screen]:
        stated = _size_of_row(line.row)
        if held := line.picture(("image",)):
            return held, stated or size_of(held)
        value = file_of(line.row)
        if not isinstance(value, str) or not value:
            return None, stated or UNKNOWN
        if reason := unsafe(value):
            place.refuse(
                "path-unsafe",
                f"img_filename: {reason}",
                "a path below the folder of pictures",
                "correct the name; the step lacks the picture until then",
            )
            return MediaRef("image", self.root, value), stated or UNKNOWN  # which nobody opens
        if line.path not in self._folders:
            self._folders[line.path] = images(line.path, _IMAGES)
        folder = self._folders[line.path]
        ref = MediaRef("image", folder, value)
        return ref, stated or size_of(ref)


def file_of(row: Mapping[str, Any]) -> Any:
    """Return the picture's name in the row."""
    return next((row[name] for name in FILES if name in row), None)


def _tags(line: Line, language: Language) -> dict[str, str]:
    row = line.row
    # UGround's queries are about pages of Mind2Web, OS-Atlas's data about pages of their own.
    foreign = (_is_described(row) and "data_type" not in row) or _is_of_atlas(row)
    found = {
        "form": None if foreign else form_of(line.path, row),
        "platform": platform_of(line.path, row),
        "ui_type": row.get("ui_type", row.get("data_type")),
        **{tag: row.get(tag) for tag in _AS_THEY_ARE},
        "language": language,
    }
    if found["group"] in _KINDS:  # GUI-R1's word for the platform
        found["group"] = None
    return {tag: value for tag, value in found.items() if isinstance(value, str) and value}


def dump(source: LoadedDataset) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the rows of loaded data as they were in the files, in order; skipped rows are missing.

    Args:
        source: data of ScreenSpot.

    Yields:
        The file's name, and the row as it was.
    """
    for step in source.steps:
        yield step.source["file"], step.source["row"]
