"""GUI-Odyssey's evaluator, as released and corrected: the action matching score.

Source: OpenGVLab/GUI-Odyssey, `src/eval_mm/GUIOdyssey_action_matching.py` and
`evaluate_GUIOdyssey.py`. As released, a click or long press is right in the element that was
touched, edges included, or at most 0.14 of the screen away; a scroll goes the same way; of two
texts one is in the other, or half of the longer one or more is right; of keys and ends the kind
decides. A text ends at its first colon, as an answer does when it is read, and an empty one is in
every text. Corrected, texts are whole, and an empty one matches only an empty one.
"""

from __future__ import annotations

import re
from typing import Final

from omnidata.actions import Action, Point
from omnidata.tasks.phones.actions import (
    BACK,
    COMPLETE,
    HOME,
    IMPOSSIBLE,
    RECENTS,
    Match,
    Truth,
    as_direction,
    direction_of,
    holds,
    is_within,
    kind_of,
    touch_of,
)

REACH: Final = 0.14
_ALIKE: Final = 0.5


def match_released(truth: Truth, said: Action) -> Match:
    """Match as released.

    Examples:
        >>> expert = Truth(Action("type", text="12:30"))
        >>> [match_released(expert, Action("type", text=text)) for text in ("12:59", "", "7")]
        [(True, True), (True, True), (True, False)]
    """
    wanted, given = ((action.text or "").split(":")[0] for action in (truth.action, said))
    return _match(truth, said, wanted.strip(), given.strip())


def match_fixed(truth: Truth, said: Action) -> Match:
    """Match with the faults of the release corrected.

    Examples:
        >>> expert = Truth(Action("type", text="12:30"))
        >>> [match_fixed(expert, Action("type", text=text)) for text in ("12:30 ", "12:59", "")]
        [(True, True), (True, True), (True, False)]
    """
    wanted, given = ((action.text or "").strip() for action in (truth.action, said))
    if bool(wanted) != bool(given):
        return kind_of(truth.action) == kind_of(said), False
    return _match(truth, said, wanted, given)


def _match(truth: Truth, said: Action, wanted: str, given: str) -> Match:
    action = truth.action
    if kind_of(action) != kind_of(said):
        return False, False
    if action.kind in ("tap", "long_press"):
        touch, own = touch_of(action), touch_of(said)
        held = own and touch and any(holds(rect, own, more=0) for rect in truth.rects)
        return True, bool(held) or is_within(touch, own, REACH)
    if action.kind == "swipe":
        return True, direction_of(action) == direction_of(said)
    if action.kind != "type" or wanted in given or given in wanted:
        return True, True
    from rapidfuzz.distance import Levenshtein  # loads slowly, and few verdicts come here

    longest = max(len(wanted), len(given))
    far = Levenshtein.distance(wanted, given, score_cutoff=longest // 2)
    return True, 1 - far / longest >= _ALIKE


_COMMAND: Final = re.compile(r"([A-Z_]++)\s*+(?::(.*+))?+", re.DOTALL)
_SIDE: Final = r"\s*+([-+]?+\d++(?:\.\d*+)?+)\s*+"
_PLACE: Final = re.compile(rf"[(\[]?+{_SIDE},{_SIDE}[)\]]?+")
_BARE: Final = {
    "PRESS_HOME": HOME,
    "PRESS_BACK": BACK,
    "PRESS_RECENT": RECENTS,
    "COMPLETE": COMPLETE,
    "IMPOSSIBLE": IMPOSSIBLE,
}


def read_command(text: str) -> Action | None:
    """Return the action of a command of the release's own agent; None for another text.

    Examples:
        >>> read_command("CLICK: (500, 480)").start
        (Point(x=500.0, y=480.0, space='norm1000'),)
        >>> read_command("TYPE: 12:30").text, read_command("SCROLL: up").label
        ('12:30', 'SWIPE_UP')
        >>> read_command("CLICK: the button")
    """
    command = _COMMAND.fullmatch(text.strip())
    if command is None:
        return None
    name, said = command[1], command[2]
    if said is None or name in _BARE:
        return _BARE.get(name)
    if name in ("CLICK", "LONG_PRESS") and (place := _PLACE.fullmatch(said.strip())):
        point = Point(float(place[1]), float(place[2]), "norm1000")
        return Action("tap" if name == "CLICK" else "long_press", (point,))
    if name == "SCROLL":
        return Action("swipe", direction=as_direction(said.strip().lower()))
    return Action("type", text=said.strip()) if name == "TYPE" else None
