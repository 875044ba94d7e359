"""OmniGUI's right answers, to the letter of the prompt, and answers without a model."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Final

from omnidata.actions import (
    NUMBERS,
    Action,
    Box,
    Direction,
    Point,
    Region,
    Screen,
    Space,
    centre,
    convert,
    round_half_up,
)
from omnidata.jsontext import compact
from omnidata.tasks.coordinates import place
from omnidata.tasks.omnigui.answers import PLACED
from omnidata.types import PLACE, Step, Target

_AHEAD: Final[Mapping[Direction | None, tuple[int, int]]] = {
    "up": (0, -300),
    "down": (0, 300),
    "left": (-300, 0),
    "right": (300, 0),
}


def answer(action: Action, screen: Screen, *, space: Space = "norm1000") -> dict[str, Any]:
    """Return the action in the form that the unified prompt asks for.

    A swipe whose source names no lift ends 30 % of the screen further along its direction.

    Args:
        action: an action with the regions that its primitive needs.
        screen: width and height of the screenshot in pixels.
        space: unit of the coordinates.

    Raises:
        KeyError: no primitive is such an action.

    Examples:
        >>> answer(Action("tap", (Box(210, 786, 351, 850, "px"),)), (720, 1600))
        {'action_type': 0, 'coordinate': [390, 511]}
    """
    body: dict[str, Any] = {"action_type": NUMBERS[action.label]}
    if action.kind == "type":
        body["text"] = action.text or ""
    for key, region in _regions(action, screen).items():
        body[key] = _inside(region, screen, space)
    return body


def target(step: Step, *, space: Space, size: Screen) -> Target | None:
    """Return the expert's action as an answer; of several alternatives the first.

    Args:
        step: of OmniGUI.
        space: the unit of coordinates.
        size: width and height of the screenshot as sent, in pixels.

    Returns:
        None if there is no action, or it lacks its place or its text.
    """
    action = step.action
    if action is None or not is_whole(action):
        return None
    body = answer(action, step.screen)
    marked = dict(body)
    places = []
    for key, region in _regions(action, step.screen).items():
        found = place(region, step.screen, space=space, size=size)
        places.append(found)
        body[key], marked[key] = list(found), PLACE
    if not places:  # a text may contain the mark of a place
        text = compact(body)
        return Target(text, text.replace(PLACE, "bbox"))
    return Target(compact(body), compact(marked).replace(f'"{PLACE}"', PLACE), tuple(places))


def is_whole(action: Action) -> bool:
    """Return whether an action has the place or the text that its primitive needs."""
    if action.kind in PLACED or action.kind == "swipe":
        return bool(action.start)
    return action.kind != "type" or bool(action.text)


def _regions(action: Action, screen: Screen) -> dict[str, Region]:
    if action.kind in PLACED and action.start:
        return {"coordinate": action.start[0]}
    if action.kind == "swipe" and action.start:
        end: Region
        if action.end:
            end = action.end[0]
        else:
            begin = convert(centre(action.start[0]), "norm1000", screen)
            dx, dy = _AHEAD[action.direction]
            x, y = (min(1000, max(0, edge)) for edge in (begin.x + dx, begin.y + dy))
            end = Point(x, y, "norm1000")
        return {"start_coordinate": action.start[0], "end_coordinate": end}
    return {}


def _inside(region: Region, screen: Screen, space: Space) -> list[float]:
    """Whole numbers where possible; an edge only if nothing lies between it and the other edge."""
    middle = convert(centre(region), space, screen)
    low = high = middle
    if isinstance(region, Box):
        low = convert(Point(region.left, region.top, region.space), space, screen)
        high = convert(Point(region.right, region.bottom, region.space), space, screen)
    values: list[float] = []
    for value, least, most in ((middle.x, low.x, high.x), (middle.y, low.y, high.y)):
        whole = round_half_up(value)
        slack = 1e-9 * abs(whole)
        inside = least + slack < whole < most - slack or least == whole == most
        values.append(whole if inside else value)
    return values


# Answers without a model, from the targets alone.

BASELINES: Final = ("oracle", "center", "random", "always-wait", "majority")
CENTRE: Final = Point(500, 500, "norm1000")


def random_action(step: Step, seed: int) -> Action:
    """Draw a primitive and its places, the same for a step and a seed."""
    # As bytes, since an id may hold a lone surrogate; the numbers are the same as from the text.
    draw = random.Random(f"{seed}/{step.sample_id}".encode("utf-8", "surrogatepass"))
    label = draw.choice(list(NUMBERS))
    points = [Point(draw.randint(0, 1000), draw.randint(0, 1000), "norm1000") for _ in "se"]
    return Action.of(label, (points[0],), (points[1],), text="")


def usual_action(steps: Sequence[Step]) -> Action:
    """Return the most frequent primitive of the targets, at its mean place."""
    targets = [(step.action, step.screen) for step in steps if step.action]
    if not targets:
        return Action("none")
    label = Counter(action.label for action, _ in targets).most_common(1)[0][0]
    same = [(action, screen) for action, screen in targets if action.label == label]
    if label == "INPUT":
        return Action("type", text=Counter(action.text for action, _ in same).most_common(1)[0][0])
    start = [convert(centre(a.start[0]), "norm1000", screen) for a, screen in same if a.start]
    end = [convert(centre(a.end[0]), "norm1000", screen) for a, screen in same if a.end]
    return Action.of(label, _mean(start), _mean(end))


def _mean(points: Sequence[Point]) -> tuple[Point, ...]:
    if not points:
        return ()
    x, y = fmean(point.x for point in points), fmean(point.y for point in points)
    return (Point(round(x), round(y), "norm1000"),)
