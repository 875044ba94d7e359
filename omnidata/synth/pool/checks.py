"""Evaluation functions of the sample pool, as text in the paper's form; nothing here runs them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from omnidata.synth.pool.catalogue import Ask, Keys, Pick, Recipe

_HEAD = """\
from collections import namedtuple

EvalResult = namedtuple('EvalResult', ['success', 'message', 'progress'])

def evaluate_agent_task_completion({parameters}) -> EvalResult:
"""
_CHECK = """\
    if not {call}:
        return EvalResult(False, 'Subtask execution failed: {what} is missing.', {done}/{total})

"""
_LAST = "    return EvalResult(True, 'Subtask completed successfully', {total}/{total})\n"
_ONE_PLACE = re.compile(r"\{(\w+)\}")


def evaluation(recipe: Recipe, places: Sequence[str]) -> str:
    """The text of a subtask's evaluation function (OmniBench, appendix C.3).

    Args:
        recipe: the subtask.
        places: its parameters.
    """
    calls = [("check_mouse_clicks", repr(recipe.app), f"the click on {recipe.app}")]
    for act in recipe.acts:
        if isinstance(act, Ask):
            calls.append(("check_mouse_clicks", repr(act.button), f"the click on {act.button}"))
            calls.append(("check_keyboard_types", _text(act.value), act.question.lower()))
        elif isinstance(act, Pick):
            calls.append(("check_mouse_clicks", _text(act.entry), "the choice in the list"))
        elif isinstance(act, Keys):
            calls.append(("check_keyboard_types", repr(act.keys), f"the shortcut {act.keys}"))
        else:
            calls.append(("check_mouse_clicks", repr(act.button), f"the click on {act.button}"))
    body = "".join(
        _CHECK.format(call=f"{check}(text={text})", what=what, done=number, total=len(calls))
        for number, (check, text, what) in enumerate(calls)
    )
    head = _HEAD.format(parameters=", ".join(f"{place}: str" for place in places))
    return head + body + _LAST.format(total=len(calls))


def _text(value: str) -> str:
    """A Python expression for a text with places."""
    alone = _ONE_PLACE.fullmatch(value)
    if alone:
        return alone[1]
    return ("f" if _ONE_PLACE.search(value) else "") + repr(value)
