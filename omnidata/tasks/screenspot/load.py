"""Rows of ScreenSpot, ScreenSpot-v2 and ScreenSpot-Pro as steps.

Sources: SeeClick (`pretrain/screenspot_test.py`), OS-Atlas, ScreenSpot-Pro
(`eval_screenspot_pro.py`).

    screenspot_web.json, screenspot_web_v2.json       a list per platform: ScreenSpot, ScreenSpot-v2
    annotations/photoshop_windows.json                a list per application: ScreenSpot-Pro
    test-00000-of-00001.parquet                       the Hub's copies, with their pictures
    screenspot_test.json, screenspot_pro_test.json    GUI-R1's rows of both, often with its answers
    re_gpt-4o.jsonl, cross_task_query.jsonl           UGround's rows, with a planner's words
    amex_raw.json                                     OS-Atlas's grounding data, boxes from 0 to 1
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, get_args

from omnidata.actions import Action, Box, Screen, Space
from omnidata.errors import DataError
from omnidata.jsontext import is_coordinate, is_integer
from omnidata.loaders.files import RowFiles, look_for, picture_of
from omnidata.loaders.load import Note, RowContext, about, short, size_of
from omnidata.loaders.row_files import Line
from omnidata.loaders.row_sizes import size_by_feeding, size_columns, warn_of_fed_sizes
from omnidata.types import LoadedDataset, Modality, Step

Row = Mapping[str, Any]
Boxes = Literal["columns", "xywh-px", "xyxy-px", "xyxy-rel", "xywh-rel"]
"""What four numbers are; "columns": as the columns of the released files say."""
BOXES: Final[tuple[Boxes, ...]] = get_args(Boxes)
FORMS: Final = ("screenspot", "screenspot-v2", "screenspot-pro")
Language = Literal["en", "cn"]
TAGS: Final = (
    "form", "platform", "ui_type", "group", "application", "data_source", "gt_type",
    "instruction_style", "language",
)  # fmt: skip
"""The tags of a step: which of the three it is of; text or icon, which ScreenSpot calls `data_type`
and ScreenSpot-Pro `ui_type`; the rest as the rows have it; the language of the instruction."""
ROLES: Final[Mapping[str, Modality]] = {"screenshot": "image"}

# The files.

_SPOTS: Final = ("bbox", "instruction")

FILES: Final = RowFiles(
    "rows of img_filename, bbox, instruction and data_type (ScreenSpot, -v2), or with "
    "img_size and ui_type (ScreenSpot-Pro); or, in Parquet, of image, file_name, bbox, "
    "instruction, data_type and data_source; GUI-R1's rows of instruction, gt_bbox, group and "
    "ui_type; UGround's of image, bbox, description and scale; or OS-Atlas's of img_filename, "
    "bbox and instruction",
    look_for(
        (*_SPOTS, "img_filename"),
        (*_SPOTS, "file_name", "data_type"),
        (*_SPOTS, "file_name", "ui_type"),
        (*_SPOTS, "image", "data_type", "data_source"),
        ("image", "bbox", "description", "scale"),
        ("gt_bbox", "instruction", "group", re.compile(rb'"ui_type"\s*+:\s*+"(?:text|icon)"')),
    ),
    text_first=True,
)

# The boxes. Four numbers do not say what they are: ScreenSpot and ScreenSpot-v2 have left, top,
# width and height, ScreenSpot-Pro has two corners, and others have converted either. The columns of
# the released files tell; for other columns the user says it. Nothing is guessed from how large
# numbers are.


def _meaning(line: Line) -> Boxes | None:
    """What the box of a row is by its columns; None if they do not define it."""
    row = line.row
    if "gt_bbox" in row:
        return "xyxy-px"
    if _is_of_uground(row):
        return "xywh-px"
    if "img_filename" in row:
        if _is_of_atlas(row):
            return "xyxy-rel"
        return "xyxy-px" if "img_size" in row else "xywh-px" if "data_type" in row else None
    # The card of rootsautomation/ScreenSpot says that its boxes are corners, which are from 0 to 1.
    return "xyxy-rel" if "image" in line.pictures and "file_name" in row else None


def _is_of_atlas(row: Row) -> bool:
    """OS-Atlas has corners from 0 to 1; ScreenSpot's boxes are pixels, none as small as that."""
    box = row.get("bbox")
    if "data_source" in row or not isinstance(box, list) or not all(map(is_coordinate, box)):
        return False
    return any(box) and all(0 <= side <= 1 for side in box)


def _is_of_uground(row: Row) -> bool:
    return "description" in row and "scale" in row


def _targets(row: Row, boxes: Boxes) -> tuple[Box, ...]:
    """Return one box, or several boxes that are each right; a ValueError if it is no box."""
    value = row.get("gt_bbox", row.get("bbox"))
    several = isinstance(value, list) and bool(value) and isinstance(value[0], list)
    return tuple(_box(each, boxes) for each in (value if several else [value]))


def _box(value: Any, boxes: Boxes) -> Box:
    if not isinstance(value, list) or len(value) != 4 or not all(map(is_coordinate, value)):
        raise ValueError(f"bbox is {value!r:.60}")
    left, top, right, bottom = value
    if boxes.startswith("xywh"):
        right, bottom = left + right, top + bottom
    if left > right or top > bottom:
        raise ValueError(f"bbox is {value!r:.60}, upside down as {boxes}")
    space: Space = "px" if boxes.endswith("px") else "rel"
    return Box(left, top, right, bottom, space)


def is_negative(row: Row) -> bool:
    """Return whether the element is absent, so "negative" is right."""
    return row.get("gt_type") == "negative"


# The steps.

_PICTURES: Final = ("img_filename", "file_name", "image")
"""Columns that name a picture: of the released files, of the Hub's, and of others' preparations."""
_FOLDERS: Final = ("images", "screenspot_imgs", "screenspotv2_image")


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
        boxes: what four numbers are, for rows whose columns do not say.
        language: of the instruction; "cn" is ScreenSpot-Pro's `instruction_cn`.

    Yields:
        Steps in the order of the files, each an episode, named `<file>/<number>`; None for a row
        that became none.

    Raises:
        DataError: nothing of ScreenSpot is there, or neither the columns nor `boxes` define boxes.
    """
    root = data if data.is_dir() else data.parent
    paths = FILES.find(data)
    names = {path: path.relative_to(root).with_suffix("").as_posix() for path in paths}
    counts = Counter(names.values())
    names |= {path: path.relative_to(root).as_posix() for path in paths if counts[names[path]] > 1}
    as_fed: list[str] = []
    for line in FILES.rows(paths, note):
        found = _meaning(line) if boxes == "columns" else boxes
        if found is None:
            raise DataError(
                f"the columns {', '.join(map(str, line.row))} do not define bbox",
                where=line.where,
                expected=FILES.columns,
                remedy="set it: -T boxes=xywh-px, xyxy-px, xywh-rel or xyxy-rel (0 to 1)",
            )
        name = f"{names[line.path]}/{line.number}"
        yield _step(line, name, found, language, as_fed, about(note, name))
    warn_of_fed_sizes(as_fed, str(data), note)


def _step(
    line: Line, name: str, boxes: Boxes, language: Language, as_fed: list[str], note: Note
) -> Step | None:
    row, place = line.row, RowContext(line.where, note)
    described = "description" if _is_of_uground(row) else "instruction"
    text = row.get("instruction_cn" if language == "cn" else described)
    if not isinstance(text, str) or not text.strip():
        place.refuse("instruction-missing", f"no text in {language}", "an instruction")
        return None
    shot = picture_of(line, _PICTURES, _FOLDERS)
    screen = _stated_size(row) or size_of(shot)
    targets = _usable_targets(row, boxes, screen, place)
    if screen == (0, 0) and "gt_bbox" in row:  # a box of GUI-R1's may exceed the picture as fed
        screen = size_by_feeding(row, name, as_fed)
    return Step(
        sample_id=name,
        episode_id=name,
        step_index=0,
        num_steps=1,
        instruction=text,
        screen=screen,
        media={"screenshot": shot},
        history=(),
        history_screens=(),
        action=Action("tap", targets) if targets else None,
        tags=_tags(line, language),
        source={
            "file": line.path.name,
            "boxes": boxes,
            "resolution": row.get("img_size"),
            "row": row,
        },
    )


def name_of_picture(row: Row) -> Any:
    """Return the picture's name in the row."""
    return next((row[name] for name in _PICTURES if name in row), None)


def _stated_size(row: Row) -> Screen | None:
    value = row.get("img_size", [*size_columns(row)])
    is_size = isinstance(value, list) and len(value) == 2 and all(map(is_integer, value))
    return (value[0], value[1]) if is_size and min(value) > 0 else None


def _usable_targets(row: Row, boxes: Boxes, screen: Screen, place: RowContext) -> tuple[Box, ...]:
    if is_negative(row):
        return ()
    try:
        targets = _targets(row, boxes)
    except ValueError as error:
        place.leave_unjudged("box-unusable", str(error), f"four numbers, as {boxes}")
        return ()
    for box in targets:
        right, bottom = (1, 1) if box.space == "rel" else screen
        beyond = min(box.left, box.top) < 0 or box.right > right or box.bottom > bottom
        if beyond and right:
            value = short(row.get("gt_bbox", row.get("bbox")))
            place.warn(
                "target-outside",
                f"the box {value}, as {boxes}, exceeds the screen",
                f"a box within {right} x {bottom}",
                "correct the row, or define its numbers with -T boxes=",
            )
    return targets


# The tags.

_AS_THEY_ARE: Final = ("group", "application", "data_source", "gt_type", "instruction_style")
_PLATFORM: Final = re.compile(r"screenspot_(mobile|desktop|web)(_v2)?")
_SECOND: Final = re.compile(r"screenspot[-_]?v2", re.IGNORECASE)
_KINDS: Final = ("mobile", "desktop", "web")
"""What GUI-R1's rows of ScreenSpot have as `group`; those of ScreenSpot-Pro have the field."""
_PLATFORMS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("ios", "android"), "mobile"),
    **dict.fromkeys(("macos", "windows"), "desktop"),
    **dict.fromkeys(("gitlab", "shop", "forum", "tool"), "web"),
}


def _tags(line: Line, language: Language) -> dict[str, str]:
    row = line.row
    # UGround's queries are about pages of Mind2Web, OS-Atlas's data about pages of their own.
    foreign = (_is_of_uground(row) and "data_type" not in row) or _is_of_atlas(row)
    found = {
        "form": None if foreign else _form(line.path, row),
        "platform": _platform(line.path, row),
        "ui_type": row.get("ui_type", row.get("data_type")),
        **{tag: row.get(tag) for tag in _AS_THEY_ARE},
        "language": language,
    }
    if found["group"] in _KINDS:  # GUI-R1's word for the platform
        found["group"] = None
    return {tag: value for tag, value in found.items() if isinstance(value, str) and value}


def _form(path: Path, row: Row) -> str:
    graded = "gt_bbox" in row
    if "ui_type" in row and not (graded and row.get("group") in _KINDS):
        return "screenspot-pro"
    if named := _PLATFORM.match(path.stem):
        return "screenspot-v2" if named[2] else "screenspot"
    # The names of other files say nothing; that of the dataset does.
    return "screenspot-v2" if _SECOND.search(str(path)) else "screenspot"


def _platform(path: Path, row: Row) -> str:
    """The platform as the row has it, else by the file's name as released, else by the source."""
    if isinstance(said := row.get("platform"), str) and said:
        return said
    if "gt_bbox" in row:
        return group if (group := row.get("group")) in _KINDS else ""
    if named := _PLATFORM.match(path.stem):
        return named[1]
    return _PLATFORMS.get(str(row.get("data_source")).casefold(), "")


def dump(source: LoadedDataset) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the rows of loaded data as they were in the files, in order; skipped rows are missing.

    Args:
        source: data of ScreenSpot.

    Yields:
        The file's name, and the row as it was.
    """
    for step in source.steps:
        yield step.source["file"], step.source["row"]
