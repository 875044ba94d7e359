"""What the recorded agent did, in the form that OSWorld's prompt asks for, and the baselines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from omnidata.actions import Point, Screen
from omnidata.errors import UsageError
from omnidata.loaders.osworld_actions import calls_of
from omnidata.metrics.osworld_acts import acts, is_whole, needs_places
from omnidata.pyautogui import WORDS, Call, Code, spelled
from omnidata.tasks.places import Pair, place
from omnidata.types import PLACE, Step, Target

BASELINES: Final = ("oracle", "center")
"""`oracle` answers with what the recorded agent did; `center` clicks the middle of the screen."""

_USUAL: Final[Screen] = (1920, 1080)  # paper, Appendix C.3
_HOLE: Final = "\0"  # which no code has: Python spells it out
_BY: Final = frozenset({"move_by", "drag_by"})


def target(step: Step, *, size: Screen) -> Target | None:
    """The recorded turn as code, also where it was said in another action space.

    Args:
        step: of OSWorld.
        size: width and height of the screenshot as the model is shown it, in pixels.

    Returns:
        None where the turn is not understood, or does something at a place that nobody says, or
        on a screen of unknown size.
    """
    calls = calls_of(step.source).calls
    found = acts(calls)
    if not found or not is_whole(found):
        return None
    by = any(isinstance(call, Call) and call.kind in _BY for call in calls)
    if (needs_places(found) and min(step.screen) < 1) or (by and size != step.screen):
        return None
    lines, marked, places = [], [], []
    for call in calls:
        assert not isinstance(call, Code)  # `acts` understood them all
        pair = _place(call, step.screen, size)
        lines.append(spelled(call, f"{pair[0]:g}, {pair[1]:g}" if pair else ""))
        shown = spelled(call, _HOLE if pair else "")
        marked.append(shown.replace(PLACE, "bbox").replace(_HOLE, PLACE))
        places += [pair] if pair else []
    return Target(_fenced(lines), _fenced(marked), tuple(places))


def _place(call: Call, screen: Screen, size: Screen) -> Pair | None:
    if call.kind in _BY or call.x is None or call.y is None:
        return None
    if min(screen) < 1:
        return call.x, call.y
    return place(Point(call.x, call.y, "px"), screen, space="px", size=size)


def _fenced(lines: Sequence[str]) -> str:
    """Code in a block; a word in a block of its own, as the prompt asks for it."""
    blocks: list[str] = []
    code: list[str] = []
    for line in [*lines, ""]:
        if line in WORDS or not line:
            blocks += ["```python\n" + "\n".join(code) + "\n```"] if code else []
            blocks += [f"```{line}```"] if line else []
            code = []
        else:
            code.append(line)
    return "\n".join(blocks)


def policy(name: str, options: Mapping[str, str]) -> Callable[[Step], str]:
    """The rule of that name: a step's answer.

    Args:
        name: one of `BASELINES`.
        options: as given with `-M key=value`; there are none.

    Raises:
        UsageError: there is no such rule, or an option is given.
    """
    if name not in BASELINES:
        raise UsageError(
            f'osworld has no baseline "{name}"',
            where=f"--model baseline:{name}",
            expected=f"one of {', '.join(BASELINES)}",
        )
    for option in options:
        raise UsageError(f"baseline:{name} has no options", where=f"-M {option}={options[option]}")
    return _oracle if name == "oracle" else _center


def _oracle(step: Step) -> str:
    found = target(step, size=step.screen)
    return found.text if found else ""


def _center(step: Step) -> str:
    width, height = step.screen if min(step.screen) > 0 else _USUAL
    return _fenced([f"pyautogui.click({width // 2}, {height // 2})"])
