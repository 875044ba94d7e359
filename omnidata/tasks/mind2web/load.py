"""Rows of Multimodal-Mind2Web, as the Hub's Parquet files or UGround's samples have them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from omnidata.actions import Action, Box, Kind, Screen
from omnidata.jsontext import BROKEN, as_name, decode, whole_number
from omnidata.loaders.files import RowFiles, look_for, picture_of
from omnidata.loaders.load import Note, RowContext, about, short, size_of
from omnidata.loaders.row_files import Line
from omnidata.loaders.stored_rows import ScatteredRows
from omnidata.tasks.mind2web.rules import KINDS, SPLITS, target_of
from omnidata.types import Step

_COLUMNS: Final = ("annotation_id", "action_uid", "operation")
FILES: Final = RowFiles(
    "Parquet files of annotation_id, action_uid, operation, pos_candidates, confirmed_task and "
    "screenshot, or the same rows as JSON; or UGround's samples and plans, with task and bbox",
    look_for((*_COLUMNS, "pos_candidates"), (*_COLUMNS, "bbox")),
    unread=("raw_html", "cleaned_html", "neg_candidates"),
)
_DONE: Final = re.compile(r" -> (CLICK|HOVER|ENTER|TYPE|SELECT)(?:: (.*))?", re.DOTALL)


def read(data: Path, note: Note) -> Iterator[Step | None]:
    """Yield the steps, each task's in order; None for a row that is no step."""
    tasks: dict[str, int] = {}
    lines: ScatteredRows[Line] = ScatteredRows()
    for found in FILES.rows(FILES.find(data), note):
        line = replace(found, row=_normalize(found.row))
        own = as_name(line.row.get("annotation_id"))
        if own is None or as_name(line.row.get("action_uid")) is None:
            RowContext(line.where, note).refuse(
                "id-missing", "the row has no annotation_id or action_uid", "both"
            )
            yield None
        else:
            lines.add(tasks.setdefault(own, len(tasks)), line)
    for own, task in tasks.items():
        yield from _task(own, [lines[number] for number in lines.numbers(task)], note)


def _task(own: str, lines: Sequence[Line], note: Note) -> Iterator[Step | None]:
    numbers = [whole_number(decode(str(line.row.get("target_action_index")))) for line in lines]
    known = {n for n in numbers if n is not None and 0 <= n < 1000}
    if len(known) < len(lines):  # the first release has no such column
        numbers = [*range(len(lines))]
    screens: dict[int, Screen] = {}
    done: dict[int, Action | None] = {}
    for number, line in sorted(zip(numbers, lines, strict=True), key=lambda each: each[0] or 0):
        row, index = line.row, number or 0
        name = f"{own}/{row['action_uid']}"
        at = RowContext(line.where, about(note, name))
        text = row.get("confirmed_task")
        if not isinstance(text, str) or not text.strip():
            at.refuse("instruction-missing", "the row has no confirmed_task", "a text")
            yield None
            continue
        shot = picture_of(line, ("screenshot",), ("screenshots", "images", "blocks_images"))
        screens[index] = screen = size_of(shot)
        words = _items(row.get("action_reprs"))[:1000]
        words += [None] * (index + 1 - len(words))
        done[index] = _action(row, words[index], screen, at)
        past = [done.get(number) or _past(words[number]) for number in range(index)]
        splits = (split for split in SPLITS if line.path.name.startswith(f"{split}-"))
        split = next(splits, f"test_{row.get('split')}")
        named = {"split": split if split in SPLITS else ""} | {
            tag: row.get(tag) for tag in ("domain", "subdomain", "website")
        }
        tags = {tag: value for tag, value in named.items() if isinstance(value, str) and value}
        yield Step(
            name, own, index, len(lines), text, screen, {"screenshot": shot}, tuple(past),
            tuple(screens.get(number, screen) for number in range(index)),
            done[index], tags, {"row": {**row}},
        )  # fmt: skip


def _normalize(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row of the Hub or of UGround, whose pictures are blocks of a page with own boxes."""
    done = row.get("operation")
    if "pos_candidates" in row or not isinstance(done, str) or "bbox" not in row:
        found = decode(done) if isinstance(done, str) else done
        return {**row, "operation": done if found is BROKEN else found}
    blocks, folder, boxes = row.get("target_blocks"), row.get("blocks_path"), row["bbox"]
    shot = row.get("image")
    if isinstance(blocks, dict) and isinstance(folder, str):
        block = next((name for name, found in blocks.items() if found), None)
        boxes = blocks.get(block, ())
        shot = f"{folder}/{block or 0}.png"
    rects = [",".join(map(str, box)) for box in _items(boxes) if isinstance(box, list)]
    return {
        **row,
        "confirmed_task": row.get("task"),
        "operation": {"original_op": done, "value": row.get("value", "")},
        "pos_candidates": [{"attributes": {"bounding_box_rect": rect}} for rect in rects],
        "target_action_index": row.get("step"),
        "action_reprs": row.get("previous_actions"),
        "screenshot": shot,
    }


def _items(value: object) -> list[Any]:
    return [*value] if isinstance(value, list | tuple) else []


def _past(words: object) -> Action | None:
    if not isinstance(words, str):
        return None
    found = list(_DONE.finditer(words))
    if found and found[-1][1] in ("TYPE", "SELECT"):
        kind: Kind = "type" if found[-1][1] == "TYPE" else "select"
        return Action(kind, text=found[-1][2] or "", words=words)
    return Action("tap", words=words)


def _action(row: Mapping[str, Any], words: object, screen: Screen, at: RowContext) -> Action | None:
    operation, value = target_of(row)
    if operation is None:
        what = f"the operation is {short(row.get('operation'))}"
        expected = "original_op of CLICK, HOVER, ENTER, TYPE or SELECT, and value"
        at.leave_unjudged("operation-unusable", what, expected)
        return None
    boxes = _boxes(row, at)
    if not boxes:
        at.warn(
            "target-missing",
            "no element of the page is the target",
            "an entry of pos_candidates with a bounding_box_rect",
            "nothing to do: the step is not judged; SeeClick's evaluation leaves it out too",
        )
        return None
    if min(screen) > 0 and (boxes[0].right > screen[0] or boxes[0].bottom > screen[1]):
        at.warn("target-outside", "the target exceeds the screenshot", f"within {screen}")
    return Action(
        KINDS[operation],
        boxes,
        text=None if operation == "CLICK" else value,
        words=words if isinstance(words, str) else None,
    )


def _boxes(row: Mapping[str, Any], at: RowContext) -> tuple[Box, ...]:
    found: list[tuple[bool, bool, Box]] = []
    for text in _items(row.get("pos_candidates")):
        one = decode(text) if isinstance(text, str) else text
        inner = one.get("attributes") if isinstance(one, dict) else None
        held = decode(inner) if isinstance(inner, str) else inner
        edges = held.get("bounding_box_rect") if isinstance(held, dict) else None
        try:
            left, top, wide, high = map(float, str(edges).split(",", 4))
        except ValueError:
            at.warn("box-unusable", f"a candidate has {short(edges)}", "x,y,width,height")
            continue
        if not all(map(math.isfinite, (left, top, wide, high))) or min(wide, high) <= 0:
            continue  # an element that takes no room cannot be seen, and is no target
        first = not one.get("is_original_target"), not one.get("is_top_level_target")
        found.append((*first, Box(left, top, left + wide, top + high, "px")))
    return tuple(dict.fromkeys(box for *_, box in sorted(found, key=lambda each: each[:2])))
