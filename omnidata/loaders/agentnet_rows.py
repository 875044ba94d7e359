"""One step of AgentNet or AgentNetBench -> what is right in it, and the nearest single primitive.

Nothing in a step is executed. Places are shares of the screen: the same names of functions mean
pixels in OSWorld.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from omnidata.actions import Action, Box
from omnidata.agentnet import POINTED, Deed, deed_of_object, deeds_of_calls, spelled
from omnidata.loaders.place import short
from omnidata.pyautogui import nearest, read_code

_MOST = 1000


def code_of(source: Mapping[str, Any]) -> str:
    """The code of a step; empty where it has none.

    Args:
        source: of a step; it may have been through a Parquet repository.
    """
    row = source["step"]
    if source["form"] == "agentnet":
        value = row.get("value")
        code = value.get("code") if isinstance(value, Mapping) else None
    else:
        code = row.get("action")
    return code if isinstance(code, str) else ""


def truths_of(source: Mapping[str, Any]) -> list[tuple[Deed, ...]]:
    """What is right in a step: its ground truth, and the alternatives to it.

    Alternatives are lists of actions, as the ground truth is one. An alternative that cannot be
    used is left out.

    Args:
        source: of a step; it may have been through a Parquet repository.

    Raises:
        ValueError: the ground truth cannot be used; the message says why.

    Examples:
        >>> row = {"value": {"code": "pyautogui.click(x=0.5, y=0.25)"}}
        >>> truths_of({"form": "agentnet", "step": row})[0][0].place
        (0.5, 0.25)
    """
    if source["form"] == "agentnet":
        found = deeds_of_calls(read_code(code_of(source)))
        if isinstance(found, str):
            raise ValueError(found)
        if not found:
            raise ValueError("the step has no code")
        return [found]
    row = source["step"]
    truths = [_deeds(row.get("ground_truth_actions"))]
    options = row.get("alternative_options")
    for option in options[:_MOST] if isinstance(options, list) else ():
        try:
            truths.append(_deeds(option))
        except ValueError:
            continue
    return truths


def broken_alternatives(source: Mapping[str, Any]) -> str:
    """Why some of a step's alternatives cannot be used; empty where all can, or none is there."""
    options = source["step"].get("alternative_options")
    if options is None:
        return ""
    if not isinstance(options, list) or len(options) > _MOST:
        return f"alternative_options is {short(options)}"
    for option in options:
        try:
            _deeds(option)
        except ValueError as error:
            return f"an alternative: {error}"
    return ""


def recorded_otherwise(source: Mapping[str, Any]) -> str:
    """How what was recorded differs from all that is right; empty where it does not.

    Types, typed text, keys and the reported status are held against each other, as far as both go:
    a ground truth may end with an Enter that was not recorded. Places are not, for one may have
    been moved to the middle of its element. Code that cannot be read is passed over.

    Args:
        source: of a step whose ground truth can be used.

    Raises:
        ValueError: the ground truth cannot be used.
    """
    code = code_of(source)
    done = deeds_of_calls(read_code(code))
    truths = truths_of(source)
    if isinstance(done, str):
        return ""
    if any(all(map(operator.eq, _core(done), _core(truth))) for truth in truths):
        return ""
    return f"recorded was {short(code)}, right is {short(chr(10).join(map(_line, truths[0])))}"


def _core(deeds: Sequence[Deed]) -> list[tuple[object, ...]]:
    """What deeds are, without their places."""
    return [
        (deed.type, deed.text, [key.casefold() for key in deed.keys], deed.status) for deed in deeds
    ]


def _deeds(value: object) -> tuple[Deed, ...]:
    if not isinstance(value, list) or not 0 < len(value) <= _MOST:
        raise ValueError(f"the actions are {short(value)}")
    return tuple(deed_of_object(one) for one in value)


def action_of(source: Mapping[str, Any]) -> Action | None:
    """What comes nearest to a step among the primitives; None where nothing does.

    A click's target is the boxes that its ground truth allows, where it has some.

    Args:
        source: of a step.

    Raises:
        ValueError: the ground truth cannot be used.
    """
    code = code_of(source)
    deeds = truths_of(source)[0]
    lines = code or "\n".join(_line(deed) for deed in deeds)
    found = nearest(read_code(lines), space="rel", said=lines)
    boxes = next((deed.boxes for deed in deeds if deed.type in POINTED), ())
    if found is None or not boxes or not found.start or found.end:
        return found
    regions = (Box(x, y, x + w, y + h, "rel") for x, y, w, h in boxes if w >= 0 and h >= 0)
    return replace(found, start=tuple(regions) or found.start)


def _line(deed: Deed) -> str:
    place = f"x={deed.place[0]!r}, y={deed.place[1]!r}" if deed.place else ""
    return spelled(deed, place)
