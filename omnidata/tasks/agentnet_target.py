"""What is right in a step of AgentNet, as code, and the baselines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from omnidata.actions import Point, Screen, Space
from omnidata.agentnet import spelled
from omnidata.errors import UsageError
from omnidata.loaders.agentnet_rows import truths_of
from omnidata.tasks.places import place
from omnidata.types import PLACE, Step, Target

BASELINES: Final = ("oracle", "center")
"""`oracle` answers with the ground truth; `center` clicks the middle of the screen."""

_UNIT: Final[Screen] = (1, 1)
_MIDDLE: Final[Mapping[Space, str]] = {"rel": "0.5", "norm1000": "500"}


def target(step: Step, *, space: Space, size: Screen) -> Target | None:
    """The ground truth as code.

    Args:
        step: of AgentNet.
        space: the unit of coordinates.
        size: width and height of the screenshot as the model is shown it, in pixels.

    Returns:
        None where it cannot be used, or its pixels cannot be told.
    """
    try:
        deeds = truths_of(step.source)[0]
    except ValueError:
        return None
    screen = step.screen
    if min(*screen, *size) < 1:
        if space == "px" and any(deed.place for deed in deeds):
            return None
        screen = size = _UNIT
    lines, marked, places = [], [], []
    for deed in deeds:
        pair = None
        if deed.place is not None:
            point = Point(deed.place[0], deed.place[1], "rel")
            pair = place(point, screen, space=space, size=size)
            places.append(pair)
        lines.append(spelled(deed, f"x={pair[0]:g}, y={pair[1]:g}" if pair else ""))
        marked.append(spelled(deed, PLACE) if pair else lines[-1].replace(PLACE, "bbox"))
    return Target(_fenced(lines), _fenced(marked), tuple(places))


def _fenced(lines: list[str]) -> str:
    code = "\n".join(lines)
    return f"```python\n{code}\n```"


def policy(name: str, options: Mapping[str, str], *, space: Space) -> Callable[[Step], str]:
    """The rule of that name: a step's answer.

    Args:
        name: one of `BASELINES`.
        options: as given with `-M key=value`; there are none.
        space: the unit of coordinates.

    Raises:
        UsageError: there is no such rule, or an option is given.
    """
    if name not in BASELINES:
        raise UsageError(
            f'agentnet has no baseline "{name}"',
            where=f"--model baseline:{name}",
            expected=f"one of {', '.join(BASELINES)}",
        )
    for option in options:
        raise UsageError(f"baseline:{name} has no options", where=f"-M {option}={options[option]}")

    def oracle(step: Step) -> str:
        found = target(step, space=space, size=step.screen)
        return found.text if found else ""

    def center(step: Step) -> str:
        x, y = (_MIDDLE.get(space, str(extent // 2)) for extent in step.screen)
        return _fenced([f"pyautogui.click(x={x}, y={y})"])

    return oracle if name == "oracle" else center
