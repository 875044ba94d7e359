"""GUI-Odyssey's evaluator, as released and corrected: the action matching score.

Source: OpenGVLab/GUI-Odyssey, `src/eval_mm/GUIOdyssey_action_matching.py` and
`evaluate_GUIOdyssey.py`. As released, a click or long press is right in the element that was
touched, edges included, or at most 0.14 of the screen away; a scroll goes the same way; of two
texts one is in the other, or half of the longer one or more is right; of keys and ends the kind
decides. A text ends at its first colon, as an answer does when it is read, and an empty one is in
every text. Mended, texts are whole, and an empty one matches an empty one alone.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from omnidata.actions import Action, Pair, Point, Space
from omnidata.tasks.phones.actions import (
    BACK,
    COMPLETE,
    DIRECTIONS,
    HOME,
    IMPOSSIBLE,
    RECENTS,
    Match,
    Truth,
    direction_of,
    holds,
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
        return True, _touches(truth, touch_of(said))
    if action.kind == "swipe":
        return True, direction_of(action) == direction_of(said)
    return True, action.kind != "type" or _alike(wanted, given)


def _touches(truth: Truth, own: Pair | None) -> bool:
    touch = touch_of(truth.action)
    if own is None or touch is None:
        return False
    if any(holds(rect, own, more=0) for rect in truth.rects):
        return True
    return bool(np.linalg.norm(np.array(own) - np.array(touch)) <= REACH)


def _alike(wanted: str, given: str) -> bool:
    if wanted in given or given in wanted:
        return True
    from rapidfuzz.distance import Levenshtein  # loads slowly, and few verdicts come here

    longest = max(len(wanted), len(given))
    far = Levenshtein.distance(wanted, given, score_cutoff=longest // 2)
    return 1 - far / longest >= _ALIKE


_SIDE: Final = r"\s*+([-+]?+\d++(?:\.\d*+)?+)\s*+"
_TOUCH: Final = re.compile(rf"(CLICK|LONG_PRESS)\s*+:\s*+[(\[]?+{_SIDE},{_SIDE}[)\]]?+\s*+")
_WORDY: Final = re.compile(r"(SCROLL|TYPE)\s*+:(.*+)", re.DOTALL)
_PLAIN: Final = re.compile(r"([A-Z_]++)\s*+(?::.*+)?+", re.DOTALL)
_BARE: Final = {
    "PRESS_HOME": HOME,
    "PRESS_BACK": BACK,
    "PRESS_RECENT": RECENTS,
    "COMPLETE": COMPLETE,
    "IMPOSSIBLE": IMPOSSIBLE,
}
_PLACES: Final[Space] = "norm1000"


def read_command(text: str) -> Action | None:
    """Return the action of a command of the release's own agent; None for another text.

    Examples:
        >>> read_command("CLICK: (500, 480)").start
        (Point(x=500.0, y=480.0, space='norm1000'),)
        >>> read_command("TYPE: 12:30").text, read_command("SCROLL: up").label
        ('12:30', 'SWIPE_UP')
        >>> read_command("CLICK: the button")
    """
    text = text.strip()
    if touched := _TOUCH.fullmatch(text):
        point = Point(float(touched[2]), float(touched[3]), _PLACES)
        return Action("tap" if touched[1] == "CLICK" else "long_press", (point,))
    if wordy := _WORDY.fullmatch(text):
        said = wordy[2].strip()
        if wordy[1] == "TYPE":
            return Action("type", text=said)
        way = next((way for way in DIRECTIONS if way == said.lower()), None)
        return Action("swipe", direction=way)
    plain = _PLAIN.fullmatch(text)
    return _BARE.get(plain[1]) if plain else None
