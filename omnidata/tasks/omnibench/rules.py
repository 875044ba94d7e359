"""`omnibench-step`: is an answer the expert's next action? The paper has no metric of a step."""

from __future__ import annotations

from msgspec.structs import replace

from omnidata.actions import Action, Box, Space
from omnidata.tasks.benchmark import ParsedAnswer, Rule, Values
from omnidata.tasks.json_answers import Pair
from omnidata.tasks.omnibench.actions import Answer, call_of, notches, same_keys
from omnidata.tasks.omnibench.rows import action_of, table10
from omnidata.tasks.totals import EpisodeTotals
from omnidata.types import Step

Match = tuple[bool | None, bool | None]


def judge(target: Action | None, answer: Answer | None, point: Pair | None) -> Match:
    """Compare an answer with the expert's action.

    `type_match`: the function is the same. `exact_match`: it is, and

    * click_input: the same button, double or not, and the point lies in the control's rectangle,
      edges included;
    * wheel_mouse_input: the same direction, and at least half and at most twice as far;
    * keyboard_input: the same keys (`same_keys`);
    * no function: the answer's status, if it has one, is FINISH.

    Args:
        target: the expert's action, in pixels of the screenshot; None if the row is unreadable.
        answer: as the model wrote it; None if unreadable.
        point: of the answer, in pixels of the screenshot, or None.

    Returns:
        type_match and exact_match; None and None if the row says too little to judge by.

    Examples:
        >>> said, box = Answer("click_input", Action("tap")), Box(0, 0, 9, 9, "px")
        >>> judge(Action("tap", (box,)), said, (9, 9))
        (True, True)
        >>> judge(Action("tap", (box,), count=2), said, (9, 9))
        (True, False)
    """
    if target is None or (target.kind == "tap" and not target.start):
        return None, None
    if answer is None or answer.function != call_of(target)[0]:
        return False, False
    action = answer.action
    if action is None:
        return True, False
    if target.kind == "tap":
        box = target.start[0]
        assert isinstance(box, Box)  # rows have rectangles
        alike = (action.button, action.count) == (target.button, target.count)
        hits = point and box.left <= point[0] <= box.right and box.top <= point[1] <= box.bottom
        return True, bool(alike and hits)
    if target.kind == "scroll":
        return True, 0.5 <= notches(action) / notches(target) <= 2
    if target.kind == "type":
        return True, same_keys(action.text or "", target.text or "")
    return True, answer.status != "CONTINUE"


class StepRule(Rule[Answer]):
    """The rule of `judge`; `space` is the unit of coordinates in answers."""

    name = "omnibench-step"
    totals = EpisodeTotals(
        by={
            "kind": ("subtask", "task"),
            "app": (),
            "category": tuple(dict.fromkeys(table10().values())),
            "platform": (),
            "intent": (),
        }
    )

    def __init__(self, space: Space) -> None:
        self._space = space

    def judge(self, step: Step, parsed: ParsedAnswer[Answer] | None) -> Values:
        """Compare the answer with the expert's action; a share of no screen is no place."""
        target, answer = action_of(step.source), parsed.value if parsed else None
        if target and self._space != "px" and min(step.screen) < 1:
            target = replace(target, start=())
        match = judge(target, answer, answer.point if answer else None)
        return (*match, answer is not None and answer.as_prompted)
