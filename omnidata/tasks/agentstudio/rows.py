"""One AgentStudio row -> the parts of a step, with a finding for everything doubtful.

A row is skipped if no answer to it could be right or wrong: without a target, an operation of the
action space, a label, or an action to ask about. Other faults are reported, and the row is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Literal, get_args

from omnidata.actions import Box, Point, Region, Screen, Space
from omnidata.jsontext import is_number
from omnidata.loaders.load import RowContext, short
from omnidata.tasks.agentstudio.files import Row, TaskName

# The boxes of AgentStudio's rows; they differ by the family of sources.
#
# GroundUI has edges in pixels. The actions of the other sets have `{x, y, width, height}`: for
# Mind2Web a rectangle in pixels of the page, for Android in the Wild a point in [0, 1] and for
# AgentStudio's own a point in pixels, both with a meaningless width and height of 1.0.

FARTHEST = 1e9
"""The largest coordinate in pixels."""

_FAMILIES = {
    "mind2web": "mind2web",
    "aitw": "aitw",
    "vwa": "vwa",
    "agent-studio": "agent_studio",
    "agent_studio": "agent_studio",
}


def family(source: str) -> str:
    """Return the family of a row's `source`, by the substrings of the released evaluator.

    Examples:
        >>> family("mind2web_data_test_task"), family("agent-studio"), family("omniact")
        ('mind2web', 'agent_studio', 'omniact')
    """
    found = (name for part, name in _FAMILIES.items() if part in source)
    return next(found, source.replace("-", "_"))


def number(value: object) -> float | None:
    """Return a finite coordinate up to `FARTHEST`; None for other values."""
    if not is_number(value):
        return None
    return value if -FARTHEST <= value <= FARTHEST else None  # NaN is in no interval


def target_box(row: Mapping[str, Any]) -> Box | None:
    """Return the target of a GroundUI row in pixels; None if no point of the plane lies in it.

    Examples:
        >>> target_box({"bbox": [336, 652, 466, 652]})
        Box(left=336, top=652, right=466, bottom=652, space='px')
        >>> target_box({"bbox": [0, 0, 10, float("nan")]}) is None
        True
    """
    value = row.get("bbox")
    if not isinstance(value, list | tuple) or len(value) != 4:
        return None
    left, top, right, bottom = map(number, value)
    if left is None or top is None or right is None or bottom is None:
        return None
    return Box(left, top, right, bottom, "px") if left <= right and top <= bottom else None


def action_box(row: Mapping[str, Any], action: Mapping[str, Any]) -> Region | None:
    """Return the place of an action, by its source's meaning of boxes.

    Args:
        row: the row, whose `source` decides.
        action: one of its actions; the row itself for IDM-Single.

    Returns:
        A box in pixels (Mind2Web), a point in [0, 1] (Android in the Wild), a point in pixels
        (AgentStudio); for a box with a unit, as of `omnidata synth`, a box in that unit, or a point
        if it has no extent. None without a readable box, and for other sources.

    Examples:
        >>> box = {"x": 0.5, "y": 0.25, "width": 1.0, "height": 1.0}
        >>> action_box({"source": "aitw_single"}, {"bbox": box})
        Point(x=0.5, y=0.25, space='rel')
        >>> action_box({"source": "agent-studio"}, {"bbox": box | {"x": 746, "y": 42}})
        Point(x=746, y=42, space='px')
        >>> action_box({"source": "mind2web_data_test_task"}, {"bbox": box})
        Box(left=0.5, top=0.25, right=1.5, bottom=1.25, space='px')
        >>> action_box({"source": "aitw-cut"}, {"bbox": box | {"space": "norm1000"}})
        Box(left=0.5, top=0.25, right=1.5, bottom=1.25, space='norm1000')
    """
    box = action.get("bbox")
    if not isinstance(box, Mapping):
        return None
    x, y = number(box.get("x")), number(box.get("y"))
    if x is None or y is None:
        return None
    kind = family(str(row.get("source")))
    space = next((unit for unit in get_args(Space) if unit == box.get("space")), None)
    if space is None and kind in ("aitw", "agent_studio"):
        return Point(x, y, "rel" if kind == "aitw" else "px")
    width, height = number(box.get("width")), number(box.get("height"))
    if space is None and kind == "mind2web":
        space = "px"
    if space is None or width is None or height is None or min(width, height) < 0:
        return None
    if "space" in box and width == height == 0:
        return Point(x, y, space)
    return Box(x, y, x + width, y + height, space)


# The actions of a trajectory that a model is shown: the last five (Appendices D.3 and E, and the
# released evaluator).

Trajectory = Literal["idm-multiple", "criticbench"]

WINDOW = 5
"""The largest number of shown actions."""


def window(task: Trajectory, actions: Sequence[Mapping[str, Any]]) -> range:
    """Return the positions of the shown actions.

    IDM-Multiple asks what happened between observations, so it drops a final action without an
    observation after it; CriticBench keeps it.

    Args:
        task: the benchmark.
        actions: of the row; every one has `obs_after`, which only the last may lack.

    Returns:
        The positions; empty if the only action was dropped.

    Examples:
        >>> actions = [{"obs_after": "1.png"}] * 6 + [{"obs_after": None}]
        >>> window("idm-multiple", actions), window("criticbench", actions)
        (range(1, 6), range(2, 7))
    """
    stop = len(actions)
    if task == "idm-multiple" and actions and actions[-1].get("obs_after") is None:
        stop -= 1
    return range(max(0, stop - WINDOW), stop)


def actions_in_window(task: Trajectory, row: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the actions in the window of a row, IDM-Multiple's answer."""
    actions: Sequence[Mapping[str, Any]] = row["actions"]
    return [actions[position] for position in window(task, actions)]


Instructions = Literal["recaptioned", "raw"]

PLATFORMS = ("web", "desktop", "mobile")
AXES: Mapping[str, Sequence[str]] = {"platform": PLATFORMS, "source": (), "subset": ()}
"""The axes of tables."""
MAX_ACTIONS = 500
"""Actions of one trajectory; the longest real one has 38."""

_LETTERS = 26
_NOISE = re.compile(r"-> (HOVER|ENTER)\s*$")


def _check_groundui(row: Row, place: RowContext) -> bool:
    if not isinstance(row.get("instruction"), str):
        return place.refuse(
            "column-wrong", f"instruction is {short(row.get('instruction'))}", "a text"
        )
    size = screen_of(row)
    if size is None:
        return place.refuse(
            "size-unusable",
            f"resolution is {short(row.get('resolution'))}",
            "[width, height] of the screenshot in pixels",
        )
    box = target_box(row)
    if box is None:
        return place.refuse(
            "box-unusable",
            f"bbox is {short(row.get('bbox'))}",
            "[left, top, right, bottom] in pixels, left <= right and top <= bottom",
        )
    if box.left == box.right or box.top == box.bottom:
        place.warn(
            "box-flat",
            f"the box {_edges(box)} has no area",
            "a box with points strictly inside",
            "correct the row; no answer is right in profiles that exclude the edges",
        )
    _check_inside(box, size, place)
    return True


def screen_of(row: Row) -> Screen | None:
    """Return the `resolution` of a GroundUI row; None if it is unusable."""
    value = row.get("resolution")
    if not isinstance(value, list | tuple) or len(value) != 2:
        return None
    if not all(is_number(side) and 0 < side <= FARTHEST and side == int(side) for side in value):
        return None
    return int(value[0]), int(value[1])


def instruction_of(row: Row, which: Instructions, place: RowContext | None = None) -> str | None:
    """Return the instruction of a GroundUI row, recaptioned or of the original dataset.

    Returns:
        The text; None if the row has no such instruction. "NA", the raw instruction of 17 rows of
        GroundUI-1K, is kept, with a finding.
    """
    if which == "recaptioned":
        return str(row["instruction"])
    raw = row.get("raw_instruction")
    if not isinstance(raw, str) or not raw:
        if place:
            place.refuse("instruction-missing", f"raw_instruction is {short(raw)}", "a text")
        return None
    if raw == "NA" and place:
        place.warn(
            "instruction-missing",
            'raw_instruction is "NA"',
            "the instruction of the original dataset",
            "use the recaptioned instructions; until then the instruction is NA",
        )
    return raw


def _check_single(row: Row, place: RowContext) -> bool:
    if not _check_space(row, place) or not _check_operation(row, row, place):
        return False
    _check_action(row, row, place, "")
    return True


def _check_trajectory(task: Trajectory, row: Row, place: RowContext) -> bool:
    if not _check_space(row, place):
        return False
    actions = row.get("actions")
    if not isinstance(actions, list) or not all(isinstance(action, Mapping) for action in actions):
        return place.refuse("column-wrong", f"actions is {short(actions)}", "a list of actions")
    if not actions:
        return place.refuse("window-empty", "the row has no action", "at least one action")
    if len(actions) > MAX_ACTIONS:
        return place.refuse(
            "actions-many", f"the row has {len(actions)} actions", f"at most {MAX_ACTIONS}"
        )
    seen = window(task, actions)
    if not seen:
        return place.refuse(
            "window-empty",
            "the row has no action between two observations",
            "two observations at least",
        )
    for position, action in enumerate(actions):
        name = f"action {position}: "
        asked = task == "idm-multiple" and position in seen
        if not _check_operation(row, action, place, name, skip=asked) and asked:
            return False
        words = _words(action)
        if task == "criticbench" and position in seen and not isinstance(words, str):
            return place.refuse(
                "repr-missing", f"{name}metadata.repr is {short(words)}", "the action in words"
            )
        _check_action(row, action, place, name)
    for position, (action, following) in enumerate(pairwise(actions)):
        if action.get("obs_after") != following.get("obs_before"):
            place.warn(
                "chain-broken",
                f"action {position}: obs_after is {short(action.get('obs_after'))}, but the next "
                f"obs_before {short(following.get('obs_before'))}",
                "the same observation",
                "correct the row; the next action's obs_before is shown until then",
            )
    if task == "criticbench" and not isinstance(row.get("is_success"), bool):
        return place.refuse(
            "label-unusable", f"is_success is {short(row.get('is_success'))}", "true or false"
        )
    if task == "criticbench" and not isinstance(row.get("instruction"), str):
        return place.refuse(
            "column-wrong", f"instruction is {short(row.get('instruction'))}", "a text"
        )
    return True


def _check_space(row: Row, place: RowContext) -> bool:
    space = row.get("action_space")
    named = isinstance(space, list) and all(isinstance(op, str) and op for op in space)
    if isinstance(space, list) and named and 0 < len(set(space)) == len(space) <= _LETTERS:
        return True
    return place.refuse(
        "action-space-unusable",
        f"action_space is {short(space)}",
        f"1 to {_LETTERS} different operations, one per letter",
    )


def _check_operation(
    row: Row, action: Row, place: RowContext, name: str = "", *, skip: bool = True
) -> bool:
    operation, space = action.get("operation"), row["action_space"]
    if isinstance(operation, str) and operation in space:
        return True
    what = f"{name}operation is {short(operation)}"
    expected = f"one of the action space: {', '.join(space)}"
    if skip:
        return place.refuse("operation-unknown", what, expected)
    remedy = "correct the row; until then the step of this action is left out"
    place.warn("operation-unknown", what, expected, remedy)
    return False


def _check_action(row: Row, action: Row, place: RowContext, name: str) -> None:
    box = action.get("bbox")
    region = action_box(row, action)
    if box is not None and region is None:
        place.warn(
            "box-unusable",
            f"{name}bbox is {short(box)}",
            "{x, y, width, height} as the source defines it, or null",
            "correct the row; the action has no place until then",
        )
    if isinstance(region, Box) and (region.left == region.right or region.top == region.bottom):
        place.warn("box-flat", f"{name}bbox is {short(box)}", "a box with an area")
    if isinstance(region, Point) and region.space == "rel":
        _check_inside(region, (1, 1), place, name)
    words = _words(action)
    said = _NOISE.search(words) if isinstance(words, str) else None
    source = str(row.get("source"))
    if said and action.get("operation") == "CLICK" and family(source) == "mind2web":
        place.warn(
            "label-noise",
            f"{name}operation is CLICK, but the action in words is {said[1]}",
            "the same operation in both",
            "nothing to do: CLICK is the target",
        )


def _words(action: Row) -> object:
    metadata = action.get("metadata")
    return metadata.get("repr") if isinstance(metadata, Mapping) else None


CHECKS: Mapping[TaskName, Callable[[Row, RowContext], bool]] = {
    "groundui": _check_groundui,
    "idm-single": _check_single,
    "idm-multiple": partial(_check_trajectory, "idm-multiple"),
    "criticbench": partial(_check_trajectory, "criticbench"),
}
"""Return whether a row of a benchmark can be scored."""


def _check_inside(region: Region, size: Screen, place: RowContext, name: str = "") -> None:
    left, top, right, bottom = _edges(region)
    if min(left, top) < 0 or right > size[0] or bottom > size[1]:
        place.warn(
            "box-outside",
            f"{name}the box {_edges(region)} leaves the screen of {size[0]} x {size[1]}",
            "a box inside the screen",
            "correct the box or the size; the box is used as it is until then",
        )


def _edges(region: Region) -> list[float]:
    if isinstance(region, Point):
        return [region.x, region.y, region.x, region.y]
    return [region.left, region.top, region.right, region.bottom]


def tags_of(row: Row, place: RowContext) -> dict[str, str]:
    """Return platform, source family and the row's own source, if it has them."""
    tags: dict[str, str] = {}
    platform, source = row.get("platform"), row.get("source")
    if isinstance(platform, str) and platform:
        tags["platform"] = platform
    if platform not in PLATFORMS:
        place.warn(
            "platform-unknown",
            f"platform is {short(platform)}",
            f"one of {', '.join(PLATFORMS)}",
            "correct it; the row counts for no platform of the tables until then",
        )
    if isinstance(source, str) and source:
        return tags | {"source": family(source), "subset": source}
    place.warn(
        "source-missing",
        f"source is {short(source)}",
        "the dataset that the row comes from",
        "add it; the row counts for no source until then",
    )
    return tags


# Repeated rows.


class Repeats:
    """Finds repeated rows; they are kept, as in the published figures."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[Hashable, str]] = {}

    def check(self, row: Row, canonical: str, place: RowContext) -> None:
        """Report what a row repeats of the rows before it.

        Args:
            row: the row.
            canonical: its content as a text, the same for equal rows.
            place: of the row.
        """
        first = self._first("row", canonical, place)
        if first:
            self._warn("row-repeated", f"the row is the same as {first}", place)
            return
        for key in ("annotation_id", "action_id"):
            identity = row.get(key)
            if isinstance(identity, str) and (first := self._first(key, identity, place)):
                self._warn("id-repeated", f"{first} has the same {key}, {identity}", place)
        image, asked, box = row.get("image"), row.get("instruction"), target_box(row)
        if isinstance(image, str) and isinstance(asked, str) and box:
            first = self._first("asked", (image, asked), place)
            answered = self._first("answered", (image, asked, box), place)
            if first and not answered:
                self._warn("target-ambiguous", f"{first} asks the same with another box", place)

    def _first(self, kind: str, key: Hashable, place: RowContext) -> str | None:
        known = self._seen.setdefault(kind, {})
        first = known.setdefault(key, place.where)
        return None if first == place.where else first

    def _warn(self, code: str, what: str, place: RowContext) -> None:
        place.warn(
            code, what, "each row once", "nothing to do: both rows are used; do not use it as a key"
        )
