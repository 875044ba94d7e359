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
from typing import Any, Final, Literal

from omnidata.actions import Action, Box, Screen
from omnidata.errors import DataError
from omnidata.jsontext import is_coordinate, is_integer
from omnidata.loaders.files import RowFiles, look_for, picture_of
from omnidata.loaders.load import Note, RowContext, about, short, size_of
from omnidata.loaders.row_files import Line
from omnidata.loaders.row_sizes import size_by_feeding, size_columns, warn_of_fed_sizes
from omnidata.tasks.loading import EpisodeBuilder
from omnidata.types import LoadedDataset, Step

Row = Mapping[str, Any]
BOXES: Final = ("columns", "xywh-px", "xyxy-px", "xyxy-rel", "xywh-rel")
"""What four numbers are; "columns": as the columns of the released files say."""
FORMS: Final = ("screenspot", "screenspot-v2", "screenspot-pro")

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

# Whose rows they are, which says what four numbers are: ScreenSpot and ScreenSpot-v2 have left,
# top, width and height, ScreenSpot-Pro has two corners, and others have converted either. The
# columns tell; for other columns the user says it.

Maker = Literal["screenspot", "screenspot-pro", "hub", "gui-r1", "uground", "os-atlas"]
_MEANINGS: Final[Mapping[Maker | None, str]] = {
    "screenspot": "xywh-px",
    "screenspot-pro": "xyxy-px",
    "hub": "xyxy-rel",  # by the card of rootsautomation/ScreenSpot
    "gui-r1": "xyxy-px",
    "uground": "xywh-px",
    "os-atlas": "xyxy-rel",
}


def _maker(line: Line) -> Maker | None:
    row = line.row
    if "gt_bbox" in row:
        return "gui-r1"
    if "description" in row and "scale" in row:
        return "uground"
    named, held = "img_filename" in row, "image" in line.pictures and "file_name" in row
    # ScreenSpot's boxes are pixels, none so small that all its sides are from 0 to 1.
    if (named or held) and "data_source" not in row and _has_shares(row.get("bbox")):
        return "os-atlas"
    if held and not named:
        return "hub"
    if named and "img_size" in row:
        return "screenspot-pro"
    return "screenspot" if named and "data_type" in row else None


def _has_shares(box: object) -> bool:
    sides = box if isinstance(box, list) else []
    return any(sides) and all(is_coordinate(side) and 0 <= side <= 1 for side in sides)


# The steps.

_PICTURES: Final = ("img_filename", "file_name", "image")
"""Columns that name a picture: of the released files, of the Hub's, and of others' preparations."""
_FOLDERS: Final = ("images", "screenspot_imgs", "screenspotv2_image")


def read(data: Path, note: Note, *, boxes: str, language: str) -> Iterator[Step | None]:
    """Read rows; no picture is decoded.

    A step's `source` has `row`, untouched; `boxes`, what its four numbers are; `resolution`, the
    picture's size where the row states it; and `file`. Its `action` is a tap on the box, in the
    box's own unit; its `screen` the size that the row states, else that of the picture, (0, 0)
    without one.

    Args:
        data: as the user named it.
        note: takes the findings.
        boxes: one of `BOXES`.
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
        maker = _maker(line)
        meaning = _MEANINGS.get(maker) if boxes == "columns" else boxes
        if meaning is None:
            raise DataError(
                f"the columns {', '.join(map(str, line.row))} do not define bbox",
                where=line.where,
                expected=FILES.columns,
                remedy="set it: -T boxes=xywh-px, xyxy-px, xywh-rel or xyxy-rel (0 to 1)",
            )
        name = f"{names[line.path]}/{line.number}"
        place = RowContext(line.where, about(note, name))
        yield _step(line, name, maker, meaning, language, as_fed, place)
    warn_of_fed_sizes(as_fed, str(data), note)


def _step(
    line: Line,
    name: str,
    maker: Maker | None,
    boxes: str,
    language: str,
    as_fed: list[str],
    place: RowContext,
) -> Step | None:
    row = line.row
    described = "description" if maker == "uground" else "instruction"
    text = row.get("instruction_cn" if language == "cn" else described)
    if not isinstance(text, str) or not text.strip():
        place.refuse("instruction-missing", f"no text in {language}", "an instruction")
        return None
    shot = picture_of(line, _PICTURES, _FOLDERS)
    size = row.get("img_size", [*size_columns(row)])
    is_size = isinstance(size, list) and len(size) == 2 and all(map(is_integer, size))
    screen = (size[0], size[1]) if is_size and min(size) > 0 else size_of(shot)
    targets = () if is_negative(row) else _targets(row, boxes, screen, place)
    if screen == (0, 0) and maker == "gui-r1":  # whose boxes may exceed the picture as fed
        screen = size_by_feeding(row, name, as_fed)
    action = Action("tap", targets) if targets else None
    size = row.get("img_size")
    source = {"file": line.path.name, "boxes": boxes, "resolution": size, "row": row}
    episode = EpisodeBuilder(name, _tags(line, maker, language))
    return episode.step(name, text, {"screenshot": shot}, screen, action, source)


def is_negative(row: Row) -> bool:
    """Return whether the element is absent, so "negative" is right."""
    return row.get("gt_type") == "negative"


def name_of_picture(row: Row) -> Any:
    """Return the picture's name in the row."""
    return next((row[name] for name in _PICTURES if name in row), None)


def _targets(row: Row, boxes: str, screen: Screen, place: RowContext) -> tuple[Box, ...]:
    """One box, or several boxes that are each right."""
    value = row.get("gt_bbox", row.get("bbox"))
    several = isinstance(value, list) and bool(value) and isinstance(value[0], list)
    try:
        targets = tuple(_box(each, boxes) for each in (value if several else [value]))
    except ValueError as error:
        place.leave_unjudged("box-unusable", str(error), f"four numbers, as {boxes}")
        return ()
    right, bottom = (1, 1) if boxes.endswith("rel") else screen
    for box in targets:
        beyond = min(box.left, box.top) < 0 or box.right > right or box.bottom > bottom
        if beyond and right:
            place.warn(
                "target-outside",
                f"the box {short(value)}, as {boxes}, exceeds the screen",
                f"a box within {right} x {bottom}",
                "correct the row, or define its numbers with -T boxes=",
            )
    return targets


def _box(value: Any, boxes: str) -> Box:
    if not isinstance(value, list) or len(value) != 4 or not all(map(is_coordinate, value)):
        raise ValueError(f"bbox is {value!r:.60}")
    left, top, right, bottom = value
    if boxes.startswith("xywh"):
        right, bottom = left + right, top + bottom
    if left > right or top > bottom:
        raise ValueError(f"bbox is {value!r:.60}, upside down as {boxes}")
    return Box(left, top, right, bottom, "px" if boxes.endswith("px") else "rel")


# The tags.

TAGS: Final = (
    "form", "platform", "ui_type", "group", "application", "data_source", "gt_type",
    "instruction_style", "language",
)  # fmt: skip
"""The tags of a step: which of the three it is of; text or icon, which ScreenSpot calls `data_type`
and ScreenSpot-Pro `ui_type`; the rest as the rows have it; the language of the instruction."""
_RELEASED: Final = re.compile(r"screenspot_(mobile|desktop|web)(_v2)?")
_SECOND: Final = re.compile(r"screenspot[-_]?v2", re.IGNORECASE)
_KINDS: Final = ("mobile", "desktop", "web")
"""What GUI-R1's rows of ScreenSpot have as `group`; those of ScreenSpot-Pro have the field."""
_PLATFORMS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("ios", "android"), "mobile"),
    **dict.fromkeys(("macos", "windows"), "desktop"),
    **dict.fromkeys(("gitlab", "shop", "forum", "tool"), "web"),
}


def _tags(line: Line, maker: Maker | None, language: str) -> dict[str, str]:
    row, released = line.row, _RELEASED.match(line.path.stem)
    kind = row.get("group") if row.get("group") in _KINDS else None  # GUI-R1's platform
    if maker == "os-atlas" or (maker == "uground" and "data_type" not in row):
        form = None  # UGround's queries are about pages of Mind2Web, OS-Atlas's data about others
    elif "ui_type" in row and not (maker == "gui-r1" and kind):
        form = "screenspot-pro"
    else:  # the names of other files say nothing; that of the dataset does
        is_second = released[2] if released else _SECOND.search(str(line.path))
        form = "screenspot-v2" if is_second else "screenspot"
    platform = row.get("platform")
    if not isinstance(platform, str) or not platform:
        by_name = released[1] if released else None
        by_source = _PLATFORMS.get(str(row.get("data_source")).casefold())
        platform = kind if maker == "gui-r1" else by_name or by_source
    found = {
        **row,
        "form": form,
        "platform": platform,
        "ui_type": row.get("ui_type", row.get("data_type")),
        "group": None if kind else row.get("group"),
        "language": language,
    }
    tags = ((tag, found.get(tag)) for tag in TAGS)
    return {tag: value for tag, value in tags if isinstance(value, str) and value}


def dump(source: LoadedDataset) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the name of the file and the row as it was of each step of loaded data, in order."""
    for step in source.steps:
        yield step.source["file"], step.source["row"]
