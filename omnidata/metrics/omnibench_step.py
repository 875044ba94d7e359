"""Is an answer the expert's next action? A step metric for OmniBench's trajectories, ours.

The paper scores task graphs (coverage and consistency) in an environment; it has no metric of a
step. These rules judge what its trajectories hold.
"""

from __future__ import annotations

from omnidata.actions import Box
from omnidata.desktop import Call, Click, Finish, Keys, Wheel, spelled
from omnidata.metrics.omnibench_answer import Answer
from omnidata.metrics.omnibench_keys import same_keys
from omnidata.metrics.omnigui_answer import Pair

Match = tuple[bool | None, bool | None]


def judge(target: Call | None, box: Box | None, answer: Answer | None, point: Pair | None) -> Match:
    """Hold an answer against the expert's action.

    `type_match`: the function is the same. `exact_match`: it is, and

    * click_input: the same button, double or not, and the point lies in the control's rectangle,
      edges included;
    * wheel_mouse_input: the same direction, and at least half and at most twice as far, for where
      a scroll ends is seldom a matter of one notch;
    * keyboard_input: the same keys (`omnibench_keys.same_keys`);
    * no function: the answer's status, if it has one, is FINISH.

    Args:
        target: what the expert did; None where the row cannot be read.
        box: the control of a click, in pixels of the screenshot; None where nobody says it.
        answer: as the model wrote it; None where nothing could be read.
        point: where the answer points, in pixels of the screenshot; None if nowhere.

    Returns:
        type_match and exact_match; None and None where the row says too little to judge by.

    Examples:
        >>> said = Answer("click_input", Click("left"))
        >>> judge(Click("left"), Box(0, 0, 9, 9, "px"), said, (9, 9))
        (True, True)
        >>> judge(Click("left", double=True), Box(0, 0, 9, 9, "px"), said, (9, 9))
        (True, False)
    """
    if target is None or (isinstance(target, Click) and box is None):
        return None, None
    if answer is None or answer.function != spelled(target)[0]:
        return False, False
    return True, _is_exact(target, box, answer, point)


def _is_exact(target: Call, box: Box | None, answer: Answer, point: Pair | None) -> bool:
    call = answer.call
    if isinstance(target, Click):
        return call == target and box is not None and point is not None and _inside(box, point)
    if isinstance(target, Wheel):
        return isinstance(call, Wheel) and 0.5 <= call.notches / target.notches <= 2
    if isinstance(target, Keys):
        return isinstance(call, Keys) and same_keys(call.text, target.text)
    return isinstance(call, Finish) and answer.status != "CONTINUE"


def _inside(box: Box, point: Pair) -> bool:
    return box.left <= point[0] <= box.right and box.top <= point[1] <= box.bottom
