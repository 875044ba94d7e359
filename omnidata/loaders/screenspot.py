"""ScreenSpot, ScreenSpot-v2 and ScreenSpot-Pro: where on the screen is what an instruction means?

Sources: SeeClick (`pretrain/screenspot_test.py`), OS-Atlas, ScreenSpot-Pro
(`eval_screenspot_pro.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from omnidata.actions import Action, Box, Primitive, Screen
from omnidata.errors import DataError, Finding, MediaError
from omnidata.loaders import screenspot_files
from omnidata.loaders.media_files import check_media_files
from omnidata.loaders.opening import opened
from omnidata.loaders.place import Note, Place, short
from omnidata.loaders.screenspot_files import Line, form_of, images, platform_of
from omnidata.loaders.screenspot_rows import (
    FILES,
    Boxes,
    Language,
    box_of,
    boxes_of,
    instruction_of,
    is_negative,
    stated_size,
)
from omnidata.media import image_size, unsafe
from omnidata.types import MediaRef, Modality, Source, Step

TAGS: Final = (
    "form", "platform", "ui_type", "group", "application", "data_source", "gt_type",
    "instruction_style", "language",
)  # fmt: skip
"""The tags of a step: which of the three it is of; text or icon, which ScreenSpot calls `data_type`
and ScreenSpot-Pro `ui_type`; the rest as the rows have it; the language of the instruction."""

ROLES: Final[Mapping[str, Modality]] = {"screenshot": "image"}
UNKNOWN: Final[Screen] = (0, 0)
_SKIPPING: Final = frozenset({"json-invalid", "instruction-missing"})
_AS_THEY_ARE: Final = ("group", "application", "data_source", "gt_type", "instruction_style")


def load(
    data: Path | str,
    *,
    boxes: Boxes = "columns",
    language: Language = "en",
    strict: bool = False,
    check_media: bool = True,
) -> Source:
    """Read rows; no picture is decoded.

    A step's `source` has `row`, untouched; `boxes`, what its four numbers are; `resolution`, the
    picture's size where the row states it; and `file`. Its `action` is a tap on the box, in the
    box's own unit; its `screen` the size that the row states, else that of the picture, (0, 0)
    without one.

    Args:
        data: a folder, with as many folders in it as they like, or a file; or a Parquet repository.
        boxes: what four numbers are, for rows whose columns do not tell.
        language: of the instruction; "cn" is ScreenSpot-Pro's `instruction_cn`.
        strict: make the first finding an error.
        check_media: look whether the pictures exist and are whole.

    Returns:
        Steps in the order of the files, each an episode, named `<file>/<number>`.

    Raises:
        DataError: nothing readable as ScreenSpot is there, or the columns do not tell what the
            boxes are and nobody says it, or `strict` and there is a finding.
    """
    data = Path(data)
    return opened(
        data,
        "screenspot",
        TAGS,
        lambda: _read(data, boxes, language, check_media=check_media),
        strict=strict,
        check_media=check_media,
    )


def _read(data: Path, boxes: Boxes, language: Language, *, check_media: bool) -> Source:
    findings: list[Finding] = []
    paths = screenspot_files.find(data)
    root = data if data.is_dir() else data.parent
    reader = _Reader(root, boxes, language, findings.append, _names(paths, root))
    steps: list[Step] = []
    ids: list[str | None] = []
    for line in screenspot_files.read(paths, findings.append):
        step = reader.step(line)
        steps += [step] if step else []
        ids.append(step.sample_id if step else None)
    if not steps:
        first = findings[0] if findings else None
        raise DataError(
            f"no row could be read{f': {first.what}' if first else ''}",
            where=first.where if first else str(data),
            expected=first.expected if first else screenspot_files.COLUMNS,
            remedy="mend the rows, or name other data",
        )
    if check_media:
        check_media_files(steps, findings.append)
    return Source(
        "screenspot",
        data,
        steps,
        findings,
        sum(finding.code in _SKIPPING for finding in findings),
        screenspot_files.fingerprint(data),
        ids,
        TAGS,
        ROLES,
    )


def _names(paths: Sequence[Path], root: Path) -> dict[Path, str]:
    """What files are called in ids: without their endings, unless two differ in these alone."""
    short = {path: path.relative_to(root).with_suffix("").as_posix() for path in paths}
    often = Counter(short.values())
    return {
        path: name if often[name] == 1 else path.relative_to(root).as_posix()
        for path, name in short.items()
    }


@dataclass(slots=True)
class _Reader:
    """Turns rows into steps."""

    root: Path
    boxes: Boxes
    language: Language
    note: Note
    names: Mapping[Path, str]
    _folders: dict[Path, Path] = field(default_factory=dict)

    def step(self, line: Line) -> Step | None:
        place = Place(line.where, self.note)
        row = line.row
        boxes = self._boxes(line)
        instruction = instruction_of(row, self.language)
        if instruction is None:
            place.refuse("instruction-missing", f"no text in {self.language}", "an instruction")
            return None
        shot, screen = self._picture(line, place)
        name = f"{self.names[line.path]}/{line.number}"
        box = self._box(row, boxes, screen, place)
        step = Step(
            sample_id=name,
            episode_id=name,
            step_index=0,
            num_steps=1,
            instruction=instruction,
            screen=screen,
            media={"screenshot": shot},
            history=(),
            history_screens=(),
            action=Action(Primitive.TAP, (box,)) if box else None,
            tags=_tags(line, self.language),
            source={
                "file": line.path.name,
                "boxes": boxes,
                "resolution": row.get("img_size"),
                "row": row,
            },
        )
        return named(step)

    def _boxes(self, line: Line) -> Boxes:
        """What the row's numbers are.

        Raises:
            DataError: nobody says it.
        """
        found = boxes_of(line.row) if self.boxes == "columns" else self.boxes
        if found is None:
            raise DataError(
                f"the columns {', '.join(map(str, line.row))} do not tell what bbox is",
                where=line.where,
                expected=screenspot_files.COLUMNS,
                remedy="say it: -T boxes=xywh-px, xyxy-px, xywh-rel or xyxy-rel (0 to 1)",
            )
        return found

    def _box(
        self, row: Mapping[str, Any], boxes: Boxes, screen: Screen, place: Place
    ) -> Box | None:
        if is_negative(row):
            return None
        try:
            box = box_of(row, boxes)
        except ValueError as error:
            place.refuse(
                "box-unusable",
                str(error),
                f"four numbers, as {boxes}",
                "mend the row; it is not judged until then",
            )
            return None
        right, bottom = (1, 1) if box.space == "rel" else screen
        beyond = box.left < 0 or box.top < 0 or box.right > right or box.bottom > bottom
        if beyond and (box.space == "rel" or screen != UNKNOWN):
            place.warn(
                "target-outside",
                f"the box {short(row['bbox'])}, as {boxes}, exceeds the screen",
                f"a box within {right} x {bottom}",
                "mend the row, or say what its numbers are with -T boxes=",
            )
        return box

    def _picture(self, line: Line, place: Place) -> tuple[MediaRef | None, Screen]:
        stated = stated_size(line.row)
        value = _file_of(line.row)
        if not isinstance(value, str) or not value:
            return None, stated or UNKNOWN
        if reason := unsafe(value):
            place.refuse(
                "path-unsafe",
                f"img_filename: {reason}",
                "a path below the folder of pictures",
                "mend the name; the step lacks the picture until then",
            )
            return MediaRef("image", self.root, value), stated or UNKNOWN  # which nobody opens
        folder = self._folders.setdefault(line.path, images(line.path))
        ref = MediaRef("image", folder, value)
        if stated:
            return ref, stated
        try:
            return ref, image_size(ref)
        except MediaError:
            return ref, UNKNOWN


def named(step: Step) -> Step:
    """The step with its group: its page, which the instructions for one picture share.

    A row is an episode of its own, whose name begins with the page: in other data the same number
    stands for another row.
    """
    page = _file_of(step.source["row"])
    if not isinstance(page, str) or not page:
        return step
    return replace(step, episode=f"{page}#{step.sample_id}", group=page)


def _file_of(row: Mapping[str, Any]) -> Any:
    """The picture's name, as the row has it."""
    return next((row[name] for name in FILES if name in row), None)


def _tags(line: Line, language: Language) -> dict[str, str]:
    row = line.row
    found = {
        "form": form_of(line.path, row),
        "platform": platform_of(line.path, row),
        "ui_type": row.get("ui_type", row.get("data_type")),
        **{tag: row.get(tag) for tag in _AS_THEY_ARE},
        "language": language,
    }
    return {tag: value for tag, value in found.items() if isinstance(value, str) and value}


def dump(source: Source) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The rows that a source was read from, in their order, but for those that became no step.

    Args:
        source: of `load`.

    Yields:
        The file's name, and the row as it was.
    """
    for step in source.steps:
        yield step.source["file"], step.source["row"]
