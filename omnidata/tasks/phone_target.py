"""Right answers of phone datasets as JSON with places, and the rules that need no model."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from omnidata.actions import Point, Screen, Space, convert
from omnidata.errors import UsageError
from omnidata.phone import Kind, Move, Pair, direction_of
from omnidata.tasks.places import place
from omnidata.types import PLACE, Step, Target

BASELINES = ("oracle", "center", "majority", "always-wait")
"""`oracle` answers with the expert's move; `center` taps the middle of the screen; `majority`
always gives the data's most frequent move, in the middle of the screen; `always-wait` waits."""

Body = Callable[[Move, Sequence[Any]], dict[str, Any]]
"""A move as the object that the prompt asks for, with these values in place of its places."""

Places = Callable[[Move], Sequence[Pair]]
"""The places that the answer of a move has, from 0 to 1."""

CENTRE = (0.5, 0.5)


def target(
    move: Move, screen: Screen, body: Body, places: Places, *, space: Space, size: Screen
) -> Target | None:
    """The expert's move, as `Task.target` gives it.

    Args:
        move: its places from 0 to 1.
        screen: width and height of the screenshot in pixels; (0, 0) where nobody knows.
        body: the dataset's.
        places: the dataset's.
        space: the unit of coordinates.
        size: width and height of the screenshot as the model is shown it, in pixels.

    Returns:
        None where it lacks a place, or pixels are asked of a screen of unknown size.
    """
    wanted = places(move)
    if wanted and space == "px" and min(screen) < 1:
        return None
    known = screen if min(screen) > 0 else (1, 1)
    found = [place(Point(x, y, "rel"), known, space=space, size=size) for x, y in wanted]
    try:
        text = compact(body(move, [list(pair) for pair in found]))
        unmarked = replace(move, text=move.text.replace(PLACE, "bbox"))
        marked = compact(body(unmarked, [PLACE] * len(found)))
    except ValueError:
        return None
    return Target(text, marked.replace(f'"{PLACE}"', PLACE), tuple(found))


def compact(body: dict[str, Any]) -> str:
    """An answer as JSON without spaces."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def check(task: str, name: str, options: Mapping[str, str]) -> None:
    """Refuse a baseline that does not exist.

    Raises:
        UsageError: there is no such rule, or an option is given.
    """
    if name not in BASELINES:
        raise UsageError(
            f'{task} has no baseline "{name}"',
            where=f"--model baseline:{name}",
            expected=f"one of {', '.join(BASELINES)}",
        )
    for option in options:
        raise UsageError(f"baseline:{name} has no options", where=f"-M {option}={options[option]}")


def blind(name: str, moves: Iterable[Move]) -> Move:
    """The one move of a rule that does not look.

    Args:
        name: one of `BASELINES` but "oracle".
        moves: those of the data.
    """
    if name == "always-wait":
        return Move(Kind.WAIT)
    if name == "majority":
        usual = Counter((m.kind, m.direction, m.text) for m in map(_centred, moves))
        if usual:
            kind, direction, text = usual.most_common(1)[0][0]
            return Move(kind, CENTRE, CENTRE, direction, text)
    return Move(Kind.GESTURE, CENTRE, CENTRE)


def _centred(move: Move) -> Move:
    """A move without its places."""
    direction = direction_of(move)
    kind = Kind.SWIPE if direction else move.kind
    return Move(kind, direction=direction, text=move.text)


def written(move: Move, step: Step, body: Body, places: Places, space: Space) -> str:
    """A move as an answer; where the screen's size is unknown, its pixels are those of 1 x 1."""
    screen = step.screen if min(step.screen) > 0 else (1, 1)
    found = [convert(Point(x, y, "rel"), space, screen) for x, y in places(move)]
    return compact(body(move, [[point.x, point.y] for point in found]))
