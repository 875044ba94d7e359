"""CAGUI's grounding annotations as steps: `cap.jsonl` has functions, `ocr.jsonl` texts.

Source: OpenBMB/AgentCPM-GUI, `eval/grounding_eval`. A row has a box and what is said of it. A model
is asked for the place of a function (`fun2point`) or of a text (`text2point`), and for the text in
a box (`bbox2text`): three forms of a question, over two files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from omnidata.actions import Action, Box, Screen
from omnidata.errors import MediaError
from omnidata.loaders.files import Look, RowFiles, images
from omnidata.loaders.load import Note, RowContext, about, short, size_of
from omnidata.loaders.row_files import Line, head_of
from omnidata.media import image_size
from omnidata.types import MediaRef, Modality, Step

Form = Literal["fun2point", "text2point", "bbox2text"]
FORMS: Final[Mapping[str, tuple[Form, ...]]] = {
    "bbox2function": ("fun2point",),
    "bbox2text": ("text2point", "bbox2text"),
}
"""What is asked about a row, by its `task`."""
ROLES: Final[Mapping[str, Modality]] = {"screenshot": "image"}

_SIGNS: Final = (b'"abs_position"', b'"text"', b'"image"')
_PIXELS: Final = re.compile(r"<(\d{1,6}), ?(\d{1,6}), ?(\d{1,6}), ?(\d{1,6})>")
_SHARES: Final = re.compile(r"<([\d.]{1,30}), ?([\d.]{1,30}), ?([\d.]{1,30}), ?([\d.]{1,30})>")


def _look(path: Path) -> Look:
    head = head_of(path)
    tasks = any(b'"%s"' % task.encode() in head for task in FORMS)
    return "known" if tasks and all(sign in head for sign in _SIGNS) else "other"


FILES: Final = RowFiles(
    "cap.jsonl and ocr.jsonl of task, image, abs_position and text, with images/ beside", _look
)


def box_of(row: Mapping[str, Any]) -> Box:
    """The element, in pixels of the screenshot.

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


def _size_from_shares(row: Mapping[str, Any]) -> Screen:
    """Divides pixels by shares of one box; (0, 0) without them.

    Examples:
        >>> row = {"abs_position": "<0, 0, 54, 120>", "rel_position": "<0, 0, 0.05, 0.05>"}
        >>> _size_from_shares(row)
        (1080, 2400)
    """
    shares = row.get("rel_position")
    found = _SHARES.fullmatch(shares.strip()) if isinstance(shares, str) else None
    try:
        box = box_of(row)
        right, bottom = (float(found[side]) for side in (3, 4)) if found else (0, 0)
        return round(box.right / right), round(box.bottom / bottom)
    except (ValueError, ZeroDivisionError, OverflowError):
        return 0, 0


@dataclass(slots=True)
class Reader:
    """Turns rows into steps.

    Attributes:
        root: the folder that the files lie below.
        note: takes the findings.
    """

    root: Path
    note: Note
    _folders: dict[Path, Path] = field(default_factory=dict)

    def steps(self, data: Path) -> Iterator[Step | None]:
        """Yield the steps of all rows; None for a skipped row."""
        for line in FILES.rows(FILES.find(data), self.note):
            task = line.row.get("task")
            forms = FORMS.get(task, ()) if isinstance(task, str) else ()
            file = line.path.relative_to(self.root).with_suffix("").as_posix()
            name = f"{file}/{line.number}"
            names = [f"{name}/{form}" if forms[1:] else name for form in forms]
            yield from self._steps(line, dict(zip(names, forms, strict=True)))

    def _steps(self, line: Line, forms: Mapping[str, Form]) -> Iterator[Step | None]:
        row, place = line.row, RowContext(line.where, about(self.note, *forms))
        text = row.get("text")
        if not forms:
            place.refuse("task-unknown", f"task is {short(row.get('task'))}", f"one of {[*FORMS]}")
            yield None
            return
        if not isinstance(text, str) or not text.strip():
            place.refuse(
                "text-missing", f"text is {short(text)}", "the function or text of the element"
            )
            yield None
            return
        shot, screen = self._picture(line)
        try:
            box = box_of(row)
        except ValueError as error:
            place.refuse("box-unusable", str(error), "<x1, y1, x2, y2>, in pixels")
            yield None
            return
        if min(screen) > 0 and (box.right > screen[0] or box.bottom > screen[1]):
            what = f"the box {short(row['abs_position'])} exceeds the screen"
            place.warn("target-outside", what, f"a box within {screen[0]} x {screen[1]}")
        for name, form in forms.items():
            yield Step(
                sample_id=name,
                episode_id=name,
                step_index=0,
                num_steps=1,
                instruction="" if form == "bbox2text" else text,
                screen=screen,
                media={"screenshot": shot},
                history=(),
                history_screens=(),
                action=None if form == "bbox2text" else Action("tap", (box,)),
                tags={"form": form},
                source={**row, "form": form},
                group=shot.path if shot else "",
            )

    def _picture(self, line: Line) -> tuple[MediaRef | None, Screen]:
        value = line.row.get("image")
        if held := line.picture(("image",)):
            return held, size_of(held)
        if not isinstance(value, str) or not value:
            return None, _size_from_shares(line.row)
        if line.path not in self._folders:
            self._folders[line.path] = images(line.path, ("images",))
        folder = self._folders[line.path]
        # The rows name paths of another layout: of the pictures of a file the release has a folder.
        name = value.rpartition("/")[2]
        places = [MediaRef("image", folder, path) for path in (f"{line.path.stem}/{name}", name)]
        for ref in places:
            try:
                return ref, image_size(ref)
            except MediaError:
                continue
        return places[0], _size_from_shares(line.row)
