"""OmniBench's right answers, in the form that the prompt asks for, and the baselines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from omnidata.actions import Point, Screen, Space, convert
from omnidata.desktop import Call, Click, Finish, spelled
from omnidata.errors import UsageError
from omnidata.loaders.omnibench_rows import call_of, rect_of, text_of
from omnidata.tasks.places import Pair, place
from omnidata.types import PLACE, Step, Target

BASELINES = ("oracle", "center", "majority")
"""`oracle` answers with the expert's action; `center` clicks at the middle of the screen;
`majority` always gives the data's most frequent call, a click at the middle of the screen."""


def target(step: Step, *, space: Space, size: Screen) -> Target | None:
    """The expert's action, with its description and thought where the source has them.

    Args:
        step: of OmniBench.
        space: the unit of coordinates.
        size: width and height of the screenshot as the model is shown it, in pixels.

    Returns:
        None where the action cannot be read, or is a click of which nobody says where it goes, or
        that goes to a screen of unknown size.
    """
    call = call_of(step.source)
    box = rect_of(step.source)
    if call is None:
        return None
    if not isinstance(call, Click):
        text = _written(call, [], step)
        return Target(text, text.replace(PLACE, "bbox"))
    if box is None or min(step.screen) < 1:
        return None
    found = place(box, step.screen, space=space, size=size)
    marked = _written(call, PLACE, step).replace(f'"{PLACE}"', PLACE)
    return Target(_written(call, list(found), step), marked, (found,))


def _written(call: Call, point: Any, step: Step | None = None) -> str:
    function, args = spelled(call)
    row: Mapping[str, Any] = step.source if step else {}
    said = (text_of(row, "description"), text_of(row, "thought"))
    if point == PLACE:  # what stands for a place stands for nothing else
        said = said[0].replace(PLACE, "bbox"), said[1].replace(PLACE, "bbox")
    body = {
        "Status": "FINISH" if isinstance(call, Finish) else "CONTINUE",
        "Observation": said[0],
        "Thought": said[1],
        "coordinates": point,
        "Function": function,
        "Args": args,
    }
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def policy(
    name: str, steps: Sequence[Step], *, space: Space, options: Mapping[str, str]
) -> Callable[[Step], str]:
    """The rule of that name: a step's answer.

    Args:
        name: one of `BASELINES`.
        steps: those it may look at.
        space: the unit in which it writes coordinates.
        options: as given with `-M key=value`; there are none.

    Raises:
        UsageError: there is no such rule, or an option is given.
    """
    if name not in BASELINES:
        raise UsageError(
            f'omnibench has no baseline "{name}"',
            where=f"--model baseline:{name}",
            expected=f"one of {', '.join(BASELINES)}",
        )
    for option in options:
        raise UsageError(f"baseline:{name} has no options", where=f"-M {option}={options[option]}")
    if name == "oracle":
        return lambda step: _oracle(step, space)
    usual: Call = Click()
    if name == "majority":
        calls = Counter(call for step in steps if (call := call_of(step.source)))
        usual = calls.most_common(1)[0][0] if calls else Finish()
    return lambda step: _blind(usual, step, space)


def _oracle(step: Step, space: Space) -> str:
    """The target; pixels need no screen. An empty text where the row has no usable action."""
    found = target(step, space=space, size=step.screen)
    call, box = call_of(step.source), rect_of(step.source)
    if found is None and call and box and space == "px":
        return _written(call, [box.centre.x, box.centre.y], step)
    return found.text if found else ""


def _blind(call: Call, step: Step, space: Space) -> str:
    middle: Pair = (0.5, 0.5)
    if space != "rel":
        found = convert(Point(0.5, 0.5, "rel"), space, step.screen if space == "px" else (1, 1))
        middle = found.x, found.y
    return _written(call, list(middle) if isinstance(call, Click) else [])
