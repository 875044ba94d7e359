"""CAGUI's grounding annotations as steps: `cap.jsonl` has functions, `ocr.jsonl` texts.

Source: OpenBMB/AgentCPM-GUI, `eval/grounding_eval`. A row has a box with its function or text.
Models are asked for the place of a function (`fun2point`) or of a text (`text2point`), and for the
text in a box (`bbox2text`): three forms of a question, over two files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from omnidata.actions import Action, Box, Screen
from omnidata.loaders.files import RowFiles, look_for, picture_of
from omnidata.loaders.load import Note, RowContext, about, short, size_of
from omnidata.loaders.row_files import Line
from omnidata.tasks.loading import EpisodeBuilder
from omnidata.types import MediaRef, Modality, Step

Form = Literal["fun2point", "text2point", "bbox2text"]
FORMS: Final[Mapping[str, tuple[Form, ...]]] = {
    "bbox2function": ("fun2point",),
    "bbox2text": ("text2point", "bbox2text"),
}
"""A row's `task` -> the questions about the row."""
ROLES: Final[Mapping[str, Modality]] = {"screenshot": "image"}

_PIXELS: Final = re.compile(r"<(\d{1,6}), ?(\d{1,6}), ?(\d{1,6}), ?(\d{1,6})>")
_SHARES: Final = re.compile(r"<([\d.]{1,30}), ?([\d.]{1,30}), ?([\d.]{1,30}), ?([\d.]{1,30})>")


FILES: Final = RowFiles(
    "cap.jsonl and ocr.jsonl of task, image, abs_position and text, with images/ beside",
    look_for(*(("abs_position", "text", "image", task) for task in FORMS)),
)


def box_of(row: Mapping[str, Any]) -> Box:
    """Return the element of a row, in pixels of the screenshot.

    Raises:
        ValueError: `abs_position` is no box.

    Examples:
        >>> box_of({"abs_position": "<1061, 2424, 1159, 2522>"})
        Box(left=1061, top=2424, right=1159, bottom=2522, space='px')
    """
    value = row.get("abs_position")
    found = _PIXELS.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"abs_position is {short(value)}")
    left, top, right, bottom = map(int, found.groups())
    if left > right or top > bottom:
        raise ValueError(f"abs_position is {short(value)}, upside down")
    return Box(left, top, right, bottom, "px")


def read(data: Path, note: Note) -> Iterator[Step | None]:
    """Yield a step for each form of a row, named `<file>/<number>`; None for a skipped row."""
    root = data if data.is_dir() else data.parent
    for line in FILES.rows(FILES.find(data), note):
        task = line.row.get("task")
        forms = FORMS.get(task, ()) if isinstance(task, str) else ()
        name = f"{line.path.relative_to(root).with_suffix('').as_posix()}/{line.number}"
        names = [f"{name}/{form}" if forms[1:] else name for form in forms]
        place = RowContext(line.where, about(note, *names))
        steps = _steps(line, dict(zip(names, forms, strict=True)), place)
        yield from steps or (None,)


def _steps(line: Line, forms: Mapping[str, Form], place: RowContext) -> list[Step]:
    row, text = line.row, line.row.get("text")
    if not forms:
        place.refuse("task-unknown", f"task is {short(row.get('task'))}", f"one of {[*FORMS]}")
        return []
    if not isinstance(text, str) or not text.strip():
        expected = "the function or text of the element"
        place.refuse("text-missing", f"text is {short(text)}", expected)
        return []
    shot, screen = _picture(line)
    try:
        box = box_of(row)
    except ValueError as error:
        place.refuse("box-unusable", str(error), "<x1, y1, x2, y2>, in pixels")
        return []
    if min(screen) > 0 and (box.right > screen[0] or box.bottom > screen[1]):
        what = f"the box {short(row['abs_position'])} exceeds the screen"
        place.warn("target-outside", what, f"a box within {screen[0]} x {screen[1]}")
    tap, group = Action("tap", (box,)), shot.path if shot else ""
    steps: list[Step] = []
    for name, form in forms.items():
        instruction, action = ("", None) if form == "bbox2text" else (text, tap)
        media, source = {"screenshot": shot}, {**row, "form": form}
        episode = EpisodeBuilder(name, {"form": form})
        steps.append(episode.step(name, instruction, media, screen, action, source, group=group))
    return steps


def _picture(line: Line) -> tuple[MediaRef | None, Screen]:
    named = picture_of(line, ("image",), ("images",))
    if named is None:
        return None, _size_from_shares(line.row)
    if named.cell:
        return named, size_of(named)
    # The rows name paths of another layout: of the pictures of a file the release has a folder.
    name = named.path.rpartition("/")[2]
    paths = (f"{line.path.stem}/{name}", name)
    refs = [MediaRef("image", named.root, path) for path in paths]
    found = next(((ref, size) for ref in refs if (size := size_of(ref)) != (0, 0)), None)
    return found or (refs[0], _size_from_shares(line.row))


def _size_from_shares(row: Mapping[str, Any]) -> Screen:
    """Divides pixels by shares of one box; (0, 0) without them."""
    shares = row.get("rel_position")
    found = _SHARES.fullmatch(shares.strip()) if isinstance(shares, str) else None
    try:
        box = box_of(row)
        right, bottom = (float(found[side]) for side in (3, 4)) if found else (0, 0)
        return round(box.right / right), round(box.bottom / bottom)
    except (ValueError, ZeroDivisionError, OverflowError):
        return 0, 0
