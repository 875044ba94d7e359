"""AndroidControl's other published protocols: OS-Atlas, UGround, AndroidControl-Curated.

All are rules for a step. Answers are read as the prompt asks for them, and places are compared
from 0 to 1; what AgentCPM-GUI's evaluator does with AndroidControl is in
`omnidata.tasks.phones.agentcpm`.

OS-Atlas (OS-Copilot/OS-Atlas, `eval/eval_scripts/android_control/evaluation_unify.py`), which
UI-TARS follows: a click or long press is right at most 0.14 of the screen away; of a text, or the
name of an app, the first word decides where the whole is not the same; all else must be the same.

UGround (OSU-NLP-Group/UGround, `offline_evaluation/AndroidControl/eval.py`), after AndroidControl's
own step accuracy: a click, a long press, or a text that is typed at a place is right in the
smallest element that holds the expert's point, edges included, and nowhere where there is none; all
else must be the same, to the letter. Its elements are those of `forest.labelled_bounds`.

AndroidControl-Curated (batechworks/AndroidControl_Curated, `src/eval/utils.py`): a click or long
press is right in the box of the row, edges included, and without one less than 0.14 of the screen
away. Texts and apps, up to a colon, are part of the type: one is in the other, or half of their
words are the same; so are directions.
"""

from __future__ import annotations

import math
from typing import Final

from omnidata.actions import Action, Pair
from omnidata.metrics.texts import token_f1
from omnidata.tasks.phones.actions import Match, Truth, direction_of, holds, near, touch_of
from omnidata.tasks.phones.agentcpm import smallest

REACH: Final = 0.14
"""Of OS-Atlas and AndroidControl-Curated, as a share of the screen."""
_F1: Final = 0.5


def os_atlas(truth: Truth, said: Action) -> Match:
    """Match as OS-Atlas does.

    Examples:
        >>> expert = Truth(Action("type", text="Shanghai shopping mall"))
        >>> os_atlas(expert, Action("type", text="shanghai mall"))
        (True, True)
        >>> os_atlas(expert, Action("type", text="mall"))
        (True, False)
    """
    action = truth.action
    if _kind(action) != _kind(said):
        return False, False
    if action.kind in ("tap", "long_press"):
        touch, own = touch_of(action), touch_of(said)
        return True, bool(touch and own and near(touch, own, REACH))
    if action.kind == "type":
        return True, _alike(action.text, said.text)
    if action.kind == "open_app":
        return True, _alike(action.app, said.app)
    return True, _same(action, said)


def _alike(wanted: str | None, given: str | None) -> bool:
    if wanted == given:
        return True
    first, other = (f"[{text or ''}]".lower().split()[0] for text in (wanted, given))
    return first == other


def uground(truth: Truth, said: Action) -> Match:
    """Match as UGround does.

    Its equivalent actions are not applied: a click on the icon in place of opening an app, and a
    click on a button "back" in place of going back, are wrong.
    """
    action = truth.action
    if _kind(action) != _kind(said):
        return False, False
    if action.start and action.kind in ("tap", "long_press", "type"):
        own = touch_of(said)
        hit = own and any(holds(rect, own, more=0) for rect in smallest(truth))
        return True, bool(hit) and action.text == said.text
    return True, _same(action, said)


def curated(truth: Truth, said: Action) -> Match:
    """Match as AndroidControl-Curated does; boxes are those of its errata or of a row of JSON.

    Examples:
        >>> expert = Truth(Action("type", text="Shanghai shopping mall"))
        >>> curated(expert, Action("type", text="shanghai mall"))
        (True, True)
        >>> curated(expert, Action("type", text="mall of Paris"))
        (False, False)
    """
    action = truth.action
    same = _kind(action) == _kind(said)
    if same and action.kind in ("tap", "long_press"):
        return True, _is_placed(truth, touch_of(said))
    if action.kind == "type":
        same = same and _overlap(action.text, said.text)
    elif action.kind == "open_app":
        same = same and _overlap(action.app, said.app)
    else:
        same = same and _same(action, said)
    return same, same


def _is_placed(truth: Truth, own: Pair | None) -> bool:
    touch = touch_of(truth.action)
    if not touch or not own:
        return False
    if truth.rects:
        return any(holds(rect, own, more=0) for rect in truth.rects)
    return math.dist(touch, own) < REACH


def _overlap(wanted: str | None, given: str | None) -> bool:
    one = (wanted or "").lower().partition(":")[0]
    other = (given or "").partition(":")[0]
    return one in other or other in one or token_f1(other, one) >= _F1


def _kind(action: Action) -> tuple[str, int]:
    return action.kind, action.count


def _same(action: Action, said: Action) -> bool:
    fields = ("text", "app", "keys", "button", "status")
    if any(getattr(action, name) != getattr(said, name) for name in fields):
        return False
    return action.kind != "swipe" or direction_of(action) == direction_of(said) is not None
