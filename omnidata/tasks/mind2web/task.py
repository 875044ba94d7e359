"""The task `mind2web`: the next action on a web page, from its screenshot and a task.

Source: Multimodal-Mind2Web (Zheng et al., 2024), the Hub's Parquet files.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from omnidata.actions import Action, Box, Kind, Point, Screen, Space, centre
from omnidata.dialects import CannotSayError
from omnidata.jsontext import BROKEN, as_name, compact, decode, hash_of, whole_number
from omnidata.loaders.files import Look, RowFiles, images
from omnidata.loaders.load import Note, RowContext, about, short, size_of
from omnidata.loaders.row_files import Line, head_of
from omnidata.loaders.spill import Grouped
from omnidata.tasks.base import Benchmark
from omnidata.tasks.coordinates import answer_space, place, point_of, resizing
from omnidata.tasks.mind2web.rules import (
    CODES,
    SPLITS,
    Mind2WebProfile,
    Operation,
    Parsed,
    aim_of,
    operation_of,
    read,
    target_of,
)
from omnidata.tasks.points import UNITS
from omnidata.types import PLACE, MediaRef, Publication, Remote, Step, Target

_SIGNS: Final = (b'"annotation_id"', b'"action_uid"', b'"operation"')
_TARGETS: Final = (b'"pos_candidates"', b'"bbox"')


def _look(path: Path) -> Look:
    head = head_of(path)
    known = all(sign in head for sign in _SIGNS) and any(sign in head for sign in _TARGETS)
    return "known" if known else "other"


_FILES: Final = RowFiles(
    "Parquet files of annotation_id, action_uid, operation, pos_candidates, confirmed_task and "
    "screenshot, or the same rows as JSON; or UGround's samples and plans, with task and bbox",
    _look,
    unread=("raw_html", "cleaned_html", "neg_candidates"),
)
_QUESTION: Final = """\
Please generate the next move according to the ui screenshot, instruction and previous actions.

Instruction: {instruction}
Previous actions:
{history}

Answer with one JSON object and nothing else:
{"action_type": 4, "click_point": [x, y]} to click, hover or press Enter,
{"action_type": 3, "click_point": [x, y], "value": "..."} to type,
{"action_type": 2, "click_point": [x, y], "value": "..."} to select an option.
"""
_KINDS: Final[Mapping[Kind, Operation]] = {"tap": "CLICK", "type": "TYPE", "select": "SELECT"}
_LABELS: Final = ("TAP", "INPUT", "SELECT")
"""What can be said: no double click, and no other button."""
_DONE: Final = re.compile(r" -> (CLICK|HOVER|ENTER|TYPE|SELECT)(?:: (.*))?", re.DOTALL)


class Mind2Web(Benchmark):
    """Multimodal-Mind2Web: what is done next on a web page, towards a task?

    Args:
        options: `coordinates`, `history`; unknown ones are a `UsageError`.
    """

    title = "Multimodal-Mind2Web"
    platform = "web"
    asked = "action"
    detailed_actions = False
    holds = "predict the next action on a web page from a screenshot of the whole page"
    files = _FILES
    sources = (
        Publication(
            "Multimodal-Mind2Web",
            "https://huggingface.co/datasets/osunlp/Multimodal-Mind2Web",
            "openrail",
            paper="2401.01614",
            remote=Remote(
                "hf://datasets/osunlp/Multimodal-Mind2Web",
                files=("data/*.parquet",),
                bytes=13_600_000_000,
                note="the test splits alone: --only 'data/test_*'",
            ),
        ),
    )
    tags = ("split", "domain", "subdomain", "website")
    roles: Mapping[str, Any] = {"screenshot": "image"}
    subsets = SPLITS
    parsed_type = Parsed
    history_window = 4
    allowed: Mapping[str, Sequence[str]] = {
        "coordinates": ("rel", "px", "norm1000"),
        "history": ("gold", "none", "predicted"),
    }

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options)
        self._space: Space = answer_space(self.options) or "rel"
        self.question = _QUESTION + UNITS[self._space]
        self.prompt_hash = hash_of([self.question, self.options["history"]])
        profiles = [Mind2WebProfile("released", self._space), Mind2WebProfile("fixed", self._space)]
        self.profiles = {profile.name: profile for profile in profiles}

    def steps(self, data: Path, note: Note) -> Iterator[Step | None]:
        tasks: Grouped[Line] = Grouped()
        for found in _FILES.rows(_FILES.find(data), note):
            line = replace(found, row=_normalize(found.row))
            own = as_name(line.row.get("annotation_id"))
            if own is None or as_name(line.row.get("action_uid")) is None:
                RowContext(line.where, note).refuse(
                    "id-missing", "the row has no annotation_id or action_uid", "both"
                )
                yield None
            else:
                tasks.add(own, line)
        for own, numbers in zip(tasks.groups, tasks, strict=True):
            yield from _task(own, [tasks[number] for number in numbers], note)

    def application(self, step: Step) -> str:
        return step.tags.get("website", "")

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        aim, size = aim_of(step), size or step.screen
        operation, value = target_of(step.source["row"])
        if aim is None or operation is None or min(size) < 1:
            return None
        x, y = place(aim, step.screen, space=space or self._space, size=size)
        said = {"action_type": CODES[operation], "click_point": "\0"}
        text = compact(said | ({"value": value} if operation != "CLICK" else {}))
        hole = compact("\0")
        template = text.replace(PLACE, "bbox").replace(hole, PLACE, 1)
        return Target(text.replace(hole, f"[{x!r}, {y!r}]", 1), template, ((x, y),))

    def takes(self, actions: Sequence[Action]) -> int:
        """Return 1, or the actions up to the text that is typed after a click."""
        if actions[0].kind != "tap" or actions[0].button != "left":
            return 1
        for count, action in enumerate(actions[1:3], 2):
            if action.kind == "type" and not action.start:
                return count
            if action.kind not in ("keys", "hotkey") or action.keys[1:] != ("a",):
                break  # what stood there may be selected first
        return 1

    def express(self, actions: Sequence[Action], step: Step) -> str:
        action = actions[-1]
        if len(actions) > 1:
            action = structs.replace(action, start=actions[0].start)
        if action.kind not in _KINDS or not action.start or action.label not in _LABELS:
            raise CannotSayError(f"{action.label} without a place, or that no page is told of")
        point = centre(action.start[0])
        said = {"action_type": CODES[_KINDS[action.kind]], "click_point": [point.x, point.y]}
        return compact(said | ({} if action.kind == "tap" else {"value": action.text or ""}))

    def read(self, text: str, receipt: Mapping[str, Any] | None = None) -> Action | None:
        """The action of an answer, or of a line of scores, which has the same fields.

        Pixels are those of the screenshot as the model was shown it, which the receipt tells.
        """
        try:
            said = read(text, "fixed") or decode(text)
        except RecursionError:
            return None
        if not isinstance(said, dict):
            return None
        name = operation_of(said) if "action_type" in said else said.get("operation")
        point = point_of(said.get("click_point", said.get("point")), self._space)
        resized = resizing(receipt, (0, 0), where="the step before")
        if point and resized and point.space == "px":
            point = Point(*resized.to_screen((point.x, point.y)), "px")
        value = said.get("value")
        start = (point,) if point else ()
        kind = next((kind for kind, operation in _KINDS.items() if operation == name), None)
        if kind is None:
            return None
        return Action(kind, start, text=None if kind == "tap" else str(value or ""))


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
        shot = _screenshot(line)
        screens[index] = screen = size_of(shot)
        told = [*(row.get("action_reprs") or ())][:1000]
        told += [None] * (index + 1 - len(told))
        done[index] = _action(row, told[index], screen, at)
        past = [done.get(number) or _past(told[number]) for number in range(index)]
        split = next((split for split in SPLITS if line.path.name.startswith(f"{split}-")), "")
        split = split or next((s for s in SPLITS if s == f"test_{row.get('split')}"), "")
        named = {"split": split} | {tag: row.get(tag) for tag in ("domain", "subdomain", "website")}
        tags = {tag: value for tag, value in named.items() if isinstance(value, str) and value}
        yield Step(
            name, own, index, len(lines), text, screen, {"screenshot": shot}, tuple(past),
            tuple(screens.get(number, screen) for number in range(index)),
            done[index], tags, {"row": _plain(row)},
        )  # fmt: skip


def _normalize(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """UGround's pictures are blocks of a page, each with the boxes of its targets."""
    if "pos_candidates" in row or not isinstance(row.get("operation"), str) or "bbox" not in row:
        return row
    blocks, folder, boxes = row.get("target_blocks"), row.get("blocks_path"), row["bbox"]
    shot = row.get("image")
    if isinstance(blocks, dict) and isinstance(folder, str):
        block = next((name for name, found in blocks.items() if found), None)
        boxes = blocks.get(block, ())
        shot = f"{folder}/{block or 0}.png"
    rects = [",".join(map(str, box)) for box in boxes if isinstance(box, list)]
    return {
        **row,
        "confirmed_task": row.get("task"),
        "operation": {"original_op": row["operation"], "value": row.get("value", "")},
        "pos_candidates": [{"attributes": {"bounding_box_rect": rect}} for rect in rects],
        "target_action_index": row.get("step"),
        "action_reprs": row.get("previous_actions"),
        "screenshot": shot,
    }


def _screenshot(line: Line) -> MediaRef | None:
    name = line.row.get("screenshot")
    if held := line.picture(("screenshot",)):
        return held
    folder = images(line.path, ("screenshots", "images", "blocks_images"))
    return MediaRef("image", folder, name) if isinstance(name, str) and name else None


def _past(words: object) -> Action | None:
    if not isinstance(words, str):
        return None
    found = list(_DONE.finditer(words))
    if found and found[-1][1] in ("TYPE", "SELECT"):
        kind: Kind = "type" if found[-1][1] == "TYPE" else "select"
        return Action(kind, text=found[-1][2] or "", words=words)
    return Action("tap", words=words)


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    done = row.get("operation")
    found = decode(done) if isinstance(done, str) else done
    return {**row, "operation": done if found is BROKEN else found}


def _action(row: Mapping[str, Any], words: object, screen: Screen, at: RowContext) -> Action | None:
    operation, value = target_of(_plain(row))
    if operation is None:
        at.refuse(
            "operation-unusable",
            f"the operation is {short(row.get('operation'))}",
            "original_op of CLICK, HOVER, ENTER, TYPE or SELECT, and value",
            "correct the row; it is not judged until then",
        )
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
    kind = next(kind for kind, known in _KINDS.items() if known == operation)
    said = words if isinstance(words, str) else None
    return Action(kind, boxes, text=None if kind == "tap" else value, words=said)


def _boxes(row: Mapping[str, Any], at: RowContext) -> tuple[Box, ...]:
    found: list[tuple[bool, bool, Box]] = []
    for text in row.get("pos_candidates") or ():
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
