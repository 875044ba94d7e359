"""One AgentStudio row -> what a step needs of it, with a finding for everything doubtful.

A row is skipped where no answer to it could be right or wrong: without a target, an operation of
the action space, a label, or an action to ask about. Everything else is kept and told.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Literal, cast

from omnidata.actions import Box, Point, Region, Screen
from omnidata.errors import Finding, Severity
from omnidata.loaders.agentstudio_boxes import FARTHEST, action_box, family, is_flat, target_box
from omnidata.loaders.agentstudio_columns import Row
from omnidata.loaders.agentstudio_window import Trajectory, window
from omnidata.loaders.place import SKIPPED, Place, short

Instructions = Literal["recaptioned", "raw"]

PLATFORMS = ("web", "desktop", "mobile")
MAX_ACTIONS = 500
"""Actions of one trajectory; the longest real one has 38."""

_LETTERS = 26
_NOISE = re.compile(r"-> (HOVER|ENTER)\s*$")


def check_groundui(row: Row, place: Place) -> bool:
    """Whether a row of GroundUI can be scored."""
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
    _check_box(box, size, place)
    return True


def screen_of(row: Row) -> Screen | None:
    """The `resolution` of a GroundUI row; None if there is none to scale by."""
    value = row.get("resolution")
    if not isinstance(value, list | tuple) or len(value) != 2:
        return None
    sides = [_whole(side) for side in value]
    return cast("Screen", tuple(sides)) if None not in sides else None


def _whole(side: object) -> int | None:
    if isinstance(side, bool) or not isinstance(side, int | float) or not 0 < side <= FARTHEST:
        return None
    return int(side) if side == int(side) else None


def instruction_of(row: Row, which: Instructions, place: Place | None = None) -> str | None:
    """The instruction of a GroundUI row, recaptioned or as the original dataset had it.

    Returns:
        The text; None if the row has no such instruction. "NA", which 17 rows of GroundUI-1K have
        as their raw instruction, is given as it is, with a finding.
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
            "use the recaptioned instructions; the model is asked for NA until then",
        )
    return raw


def check_single(row: Row, place: Place) -> bool:
    """Whether a row of IDM-Single can be scored."""
    if not _check_space(row, place) or not _check_operation(row, row, place):
        return False
    _check_action(row, row, place, "")
    return True


def check_trajectory(row: Row, task: Trajectory, place: Place) -> bool:
    """Whether a row of IDM-Multiple or CriticBench can be scored."""
    if not _check_space(row, place) or not _check_actions(row, place):
        return False
    actions = row["actions"]
    seen = window(task, actions)
    if not seen:
        return place.refuse(
            "window-empty",
            "no action is left to ask about: after the only one nothing was observed",
            "two observations at least",
        )
    for position, action in enumerate(actions):
        name = f"action {position}: "
        asked = task == "idm-multiple" and position in seen
        if not _check_operation(row, action, place, name, skip=asked) and asked:
            return False
        words = action.get("metadata")
        words = words.get("repr") if isinstance(words, Mapping) else None
        if task == "criticbench" and position in seen and not isinstance(words, str):
            return place.refuse(
                "repr-missing", f"{name}metadata.repr is {short(words)}", "the action in words"
            )
        _check_action(row, action, place, name)
    _check_chain(actions, place)
    if task == "criticbench" and not isinstance(row.get("is_success"), bool):
        return place.refuse(
            "label-unusable", f"is_success is {short(row.get('is_success'))}", "true or false"
        )
    if task == "criticbench" and not isinstance(row.get("instruction"), str):
        return place.refuse(
            "column-wrong", f"instruction is {short(row.get('instruction'))}", "a text"
        )
    return True


def _check_space(row: Row, place: Place) -> bool:
    space = row.get("action_space")
    named = isinstance(space, list) and all(isinstance(op, str) and op for op in space)
    if isinstance(space, list) and named and 0 < len(set(space)) == len(space) <= _LETTERS:
        return True
    return place.refuse(
        "action-space-unusable",
        f"action_space is {short(space)}",
        f"1 to {_LETTERS} different operations, one for each letter",
    )


def _check_actions(row: Row, place: Place) -> bool:
    actions = row.get("actions")
    if not isinstance(actions, list) or not all(isinstance(action, Mapping) for action in actions):
        return place.refuse("column-wrong", f"actions is {short(actions)}", "a list of actions")
    if not actions:
        return place.refuse("window-empty", "the row has no action", "one action at least")
    if len(actions) > MAX_ACTIONS:
        return place.refuse(
            "actions-many", f"the row has {len(actions)} actions", f"at most {MAX_ACTIONS}"
        )
    return True


def _check_operation(
    row: Row, action: Row, place: Place, name: str = "", *, skip: bool = True
) -> bool:
    operation, space = action.get("operation"), row["action_space"]
    if isinstance(operation, str) and operation in space:
        return True
    severity: Severity = "error" if skip else "warning"
    place.note(
        Finding(
            "operation-unknown",
            severity,
            place.where,
            f"{name}operation is {short(operation)}",
            f"one of the action space: {', '.join(space)}",
            SKIPPED if skip else "mend the row; nobody is asked for this action",
        )
    )
    return False


def _check_action(row: Row, action: Row, place: Place, name: str) -> None:
    """Boxes and label noise; nothing here decides about a verdict."""
    box = action.get("bbox")
    region = action_box(row, action)
    if box is not None and region is None:
        place.warn(
            "box-unusable",
            f"{name}bbox is {short(box)}",
            "{x, y, width, height} in the meaning of the source, or null",
            "mend the row; the action has no place until then",
        )
    if isinstance(region, Box) and is_flat(region):
        place.warn("box-flat", f"{name}bbox is {short(box)}", "a box with an area")
    if isinstance(region, Point) and region.space == "rel":
        _check_inside(region, (1, 1), place, name)
    words = action.get("metadata")
    words = words.get("repr") if isinstance(words, Mapping) else None
    said = _NOISE.search(words) if isinstance(words, str) else None
    source = str(row.get("source"))
    if said and action.get("operation") == "CLICK" and family(source) == "mind2web":
        place.warn(
            "label-noise",
            f"{name}operation is CLICK, but the action in words is {said[1]}",
            "one and the same in both",
            "read results with that in mind: CLICK is what counts as right",
        )


def _check_chain(actions: list[Row], place: Place) -> None:
    for position, (action, following) in enumerate(pairwise(actions)):
        if action.get("obs_after") != following.get("obs_before"):
            place.warn(
                "chain-broken",
                f"action {position}: obs_after is {short(action.get('obs_after'))}, but the next "
                f"obs_before {short(following.get('obs_before'))}",
                "the same observation",
                "mend the row; the next action's obs_before is shown until then",
            )


def _check_box(box: Box, size: Screen, place: Place) -> None:
    if is_flat(box):
        place.warn(
            "box-flat",
            f"the box {_edges(box)} has no area",
            "a box with points strictly inside",
            "mend the row; no answer can be right where the edges do not count",
        )
    _check_inside(box, size, place)


def _check_inside(region: Region, size: Screen, place: Place, name: str = "") -> None:
    left, top, right, bottom = _edges(region)
    if min(left, top) < 0 or right > size[0] or bottom > size[1]:
        place.warn(
            "box-outside",
            f"{name}the box {_edges(region)} leaves the screen of {size[0]} x {size[1]}",
            "a box inside the screen",
            "mend the box or the size; the box is used as it is until then",
        )


def _edges(region: Region) -> list[float]:
    if isinstance(region, Point):
        return [region.x, region.y, region.x, region.y]
    return [region.left, region.top, region.right, region.bottom]


def tags_of(row: Row, place: Place) -> dict[str, str]:
    """Platform, source family and the row's own source; those that the row has."""
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
