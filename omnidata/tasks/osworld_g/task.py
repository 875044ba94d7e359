"""The task `osworld-g`: the point that an instruction means, or that nothing there is meant.

Source: OSWorld-G (Xie et al., 2025), `benchmark/` of its repository, and the Hub's form of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from omnidata.actions import Action, Point, Screen, Space, centre, convert
from omnidata.errors import DataError
from omnidata.jsontext import as_name, hash_of, json_file
from omnidata.loaders.files import RowFiles, look_for, picture_of, walk
from omnidata.loaders.load import RowContext, about, size_of, stated_size
from omnidata.loaders.row_files import Line
from omnidata.tasks.benchmark import (
    Benchmark,
    Card,
    Note,
    ParsedAnswer,
    Receipt,
    UnreadError,
    hub_publication,
)
from omnidata.tasks.coordinates import answer_space, place, point_said
from omnidata.tasks.osworld_g.rules import (
    CAPABILITIES,
    DONE,
    TYPES,
    InRegion,
    answer_at,
    hits,
    numbers_of,
    read_fixed,
    read_released,
    region_of,
)
from omnidata.tasks.pointing import Place, PointRecord, PointSpeech, only_box
from omnidata.tasks.points import UNITS
from omnidata.types import PLACE, Publication, Step, Target

_COLUMNS: Final = "rows of instruction, box_type, box_coordinates and image_path, or image"
_FILES: Final = RowFiles(
    _COLUMNS, look_for(("box_type", "box_coordinates", "instruction")), text_first=True
)
_IMAGES: Final = ("image_path", "image")
_CLASSES: Final = "classification_result.json"
_LARGEST: Final = 64 * 1024**2
_ABSENT: Final = "[-1, -1]"
"""The answer for what is not on the screen."""


class _Speech(PointSpeech):
    def adopt(self, actions: Sequence[Action], step: Step, receipt: Receipt) -> ParsedAnswer[Place]:
        is_absent = actions[0].status == "failure"
        x, y = (-1, -1) if is_absent else point_said(actions[0])
        return answer_at(Point(float(x), float(y), self.space), step, receipt)


class OsWorldG(Benchmark):
    """OSWorld-G: where on the desktop is what an instruction means, if it is there?"""

    card = Card(
        title="OSWorld-G",
        holds="point at the element of an instruction on a desktop, or say that it is absent",
        expects=f"{_COLUMNS}: OSWorld-G.json and OSWorld-G_refined.json, or Parquet files",
        sources=(
            Publication(
                "OSWorld-G in its repository",
                "https://github.com/xlang-ai/OSWorld-G",
                by_hand="git clone https://github.com/xlang-ai/OSWorld-G; the refined "
                "instructions are only there",
                paper="2505.13227",
            ),
            hub_publication(
                "OSWorld-G",
                "MMInstruction/OSWorld-G",
                paper="2505.13227",
                note="the Hub's form, with the original instructions alone; size, licence and "
                "gating are not verified",
            ),
        ),
        platform="desktop",
        tags=("box_type", "capability", "instructions"),
        roles={"screenshot": "image"},
        subsets=TYPES,
        detailed_actions=False,
        answer_type=PointRecord,
    )
    allowed: Mapping[str, Sequence[str]] = {
        "coordinates": ("px", "rel", "norm1000"),
        "instructions": ("original", "refined"),
    }
    baselines = ("oracle", "majority", "center")
    files = _FILES

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options)
        self._space: Space = answer_space(self.options) or "px"
        self.question = (
            "Where on the screenshot is what this instruction means?\n\nInstruction: {instruction}"
            f"\n\nAnswer with one point that lies on it, as [x, y] and nothing else. "
            f"{UNITS[self._space]} x goes to the right, y goes down. If it is not on the "
            f"screenshot, answer {_ABSENT}."
        )
        self.prompt_hash = hash_of(self.question)
        self.speech = _Speech(self._space)
        fixed = InRegion("osworld-g-fixed")
        fixed.parse = partial(self.parse, read=read_fixed)
        self.rules = (InRegion("osworld-g"), fixed)

    def steps(self, data: Path, note: Note) -> Iterator[Step | None]:
        classes = _classes(data)
        for line in _FILES.rows(self._select_files(data), note):
            own = as_name(line.row.get("id")) or f"{line.path.stem}/{line.number}"
            wording = "refined" if _is_refined(line.path.stem) else "original"
            tags = {"capability": "+".join(classes.get(own, ())), "instructions": wording}
            yield _step(own, line, tags, RowContext(line.where, about(note, own)))

    def _select_files(self, data: Path) -> list[Path]:
        paths, wanted = _FILES.find(data), self.options["instructions"]
        refined = wanted == "refined"
        chosen = [path for path in paths if path == data or _is_refined(path.stem) == refined]
        if not chosen:
            raise DataError(
                f"the {wanted} instructions are not there, but {paths[0].name}",
                where=str(data),
                expected=f"OSWorld-G{'_refined' if refined else ''}.json",
                remedy="name the folder with both files, or -T instructions=original|refined",
            )
        return chosen

    def parse(
        self,
        text: str,
        step: Step,
        receipt: Receipt,
        read: Callable[[str, Space], Point | None] = read_released,
    ) -> ParsedAnswer[Place]:
        point = read(text, self._space)
        if point is None:
            raise UnreadError("no point")
        return answer_at(point, step, receipt)

    def retarget(self, step: Step, action: Action) -> Step:
        """Return the step with another box; a ValueError if the action is no tap in one."""
        box = only_box(action, step.screen)
        edges = [box.left, box.top, box.right - box.left, box.bottom - box.top]
        row = {**step.source["row"], "box_type": "bbox", "box_coordinates": edges}
        return replace(step, action=action, source={**step.source, "row": row})

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        row, unit, size = step.source["row"], space or self._space, size or step.screen
        if step.action == DONE:
            return Target(_ABSENT, _ABSENT)
        region = region_of(row)
        if region is None or min(*step.screen, *size) < 1:
            return None
        x, y = place(region, step.screen, space=unit, size=size)
        scale = {"px": size, "rel": (1, 1), "norm1000": (1000, 1000)}[unit]
        if not hits(row, (x * step.screen[0] / scale[0], y * step.screen[1] / scale[1])):
            # What is rounded may leave a polygon that is thinner than a pixel.
            exact = convert(centre(region), "rel", step.screen)
            x, y = exact.x * scale[0], exact.y * scale[1]
        return Target(f"[{x!r}, {y!r}]", PLACE, ((x, y),))


def _is_refined(name: str) -> bool:
    return "refined" in name


def _step(own: str, line: Line, tags: Mapping[str, str], at: RowContext) -> Step | None:
    row, shot = line.row, picture_of(line, _IMAGES, ("images",))
    text, size = row.get("instruction"), row.get("image_size")
    if not isinstance(text, str) or not text.strip():
        at.refuse("instruction-missing", "the row has no instruction", "a text")
        return None
    sides = size if isinstance(size, list) and len(size) == 2 else (None, None)
    screen = stated_size(sides[0], sides[1], at)
    screen = screen if screen != (0, 0) else size_of(shot)
    action = _action(row, screen, at)
    kind = row.get("box_type")
    labels = {"box_type": kind if kind in TYPES else "", **tags}
    return Step(
        own, own, 0, 1, text, screen, {"screenshot": shot}, (), (),
        action, {tag: value for tag, value in labels.items() if value}, {"row": dict(row)},
        group=shot.path if shot and shot.cell is None else own,
    )  # fmt: skip


def _action(row: Mapping[str, Any], screen: Screen, at: RowContext) -> Action | None:
    try:
        numbers = numbers_of(row)
    except ValueError as error:
        expected = (
            "bbox of left, top, width and height, polygon of three corners or more, or refusal"
        )
        at.leave_unjudged("box-unusable", str(error), expected)
        return None
    if row["box_type"] == "refusal":
        return DONE
    if row["box_type"] == "bbox":
        corners = (*numbers[:2], numbers[0] + numbers[2], numbers[1] + numbers[3])
    else:
        corners = tuple(numbers)
    beyond = min(corners) < 0 or max(corners[::2]) > screen[0] or max(corners[1::2]) > screen[1]
    if beyond and screen != (0, 0):
        at.warn("target-outside", "the region exceeds the screen", f"within {screen}")
    found = region_of(row)
    return Action("tap", (found,)) if found else None


class _Classes(msgspec.Struct):
    classified: dict[str, list[Any]] = {}


def _classes(data: Path) -> Mapping[str, Sequence[str]]:
    """The capabilities that rows ask for, by their ids."""
    beside = walk(data) if data.is_dir() else [data.with_name(_CLASSES)]
    path = next((path for path in beside if path.name == _CLASSES and path.is_file()), None)
    found: dict[str, list[str]] = {}
    try:
        classes = msgspec.convert(json_file(path, _LARGEST) if path else {}, _Classes)
    except (msgspec.ValidationError, UnicodeEncodeError):  # half a character has no bytes
        return found
    for name in CAPABILITIES:
        for row in classes.classified.get(name, ()):
            if own := as_name(row.get("id") if isinstance(row, dict) else row):
                found.setdefault(own, []).append(name)
    return found
