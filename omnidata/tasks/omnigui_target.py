"""OmniGUI's right answer: compact JSON to the letter of the prompt."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from omnidata.actions import (
    POSITIONAL,
    SWIPES,
    Action,
    Point,
    Primitive,
    Region,
    Screen,
    Space,
    answer,
)
from omnidata.tasks.places import place
from omnidata.types import PLACE, Step, Target


def target(step: Step, *, space: Space, size: Screen) -> Target | None:
    """The expert's action, as `Task.target` gives it.

    A swipe whose source names no lift ends 30 % of the screen further along its direction. Of
    several alternatives it is the first.

    Args:
        step: of OmniGUI.
        space: the unit of coordinates.
        size: width and height of the screenshot as the model is shown it, in pixels.

    Returns:
        None where there is no action, or it lacks its place or its text.
    """
    action = step.action
    if action is None or not _is_whole(action):
        return None
    body = answer(action, step.screen)
    marked = dict(body)
    places = []
    for key, region in _regions(action, body):
        found = place(region, step.screen, space=space, size=size)
        places.append(found)
        body[key], marked[key] = list(found), PLACE
    if not places:  # what stands for a place stands for nothing else
        text = _compact(body)
        return Target(text, text.replace(PLACE, "bbox"))
    return Target(_compact(body), _compact(marked).replace(f'"{PLACE}"', PLACE), tuple(places))


def _is_whole(action: Action) -> bool:
    """Whether the source says all that the primitive needs."""
    if action.kind in POSITIONAL or action.kind in SWIPES:
        return bool(action.start)
    return action.kind is not Primitive.INPUT or bool(action.text)


def _regions(action: Action, body: dict[str, Any]) -> Iterator[tuple[str, Region]]:
    """The places that an action has, by the keys of its answer."""
    if action.kind in POSITIONAL:
        yield "coordinate", action.start[0]
    elif action.kind in SWIPES:
        yield "start_coordinate", action.start[0]
        yield "end_coordinate", action.end[0] if action.end else _lift(body)


def _lift(body: dict[str, Any]) -> Point:
    """Where a swipe ends whose source does not say it."""
    x, y = body["end_coordinate"]
    return Point(x, y, "norm1000")


def _compact(body: dict[str, Any]) -> str:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))
