"""A task's trajectory: those of its subtasks, one after another (OmniBench, appendix C.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from omnidata.synth.compose.recorded import Recorded

_STEP = "step"
_STATUS = ("status", "Status")
_GOING_ON = "CONTINUE"
_END: Mapping[str, Any] = {"function": "", "args": {}, "status": "FINISH"}


def stitch(recorded: Sequence[Recorded]) -> tuple[list[str], list[Mapping[str, Any]]]:
    """Screens and actions of a whole task.

    What ends a subtask (the action without a function, the picture after the last action) is kept
    of the last one only; a status other than CONTINUE, of the very last action only. Where there is
    a picture after the last subtask's actions and none of them is without a function, one is added,
    so that whoever learns from the task learns to end it. Where actions have a number of their own
    in `step`, or a `history` of earlier ones, these are written anew for the task.

    Args:
        recorded: of the subtasks, in the order in which they are done; not empty.

    Returns:
        Observations and actions, as many of both.
    """
    observations = [picture for part in recorded for picture in part.observations]
    done = [action for part in recorded for action in part.actions]
    final = recorded[-1]
    if final.end:
        observations.append(final.end)
        done.append(final.last or _END)
    actions: list[Mapping[str, Any]] = []
    for place, action in enumerate(done):
        actions.append(_placed(action, place, actions, going_on=place < len(done) - 1))
    return observations, actions


def _placed(
    action: Mapping[str, Any], place: int, before: Sequence[Mapping[str, Any]], *, going_on: bool
) -> Mapping[str, Any]:
    changed: dict[str, Any] = {}
    if _STEP in action:
        changed[_STEP] = place
    if isinstance(action.get("history"), list):
        changed["history"] = [_said(earlier) for earlier in before]
    for name in _STATUS:
        if going_on and name in action:
            changed[name] = _GOING_ON
    return {**action, **changed} if changed else action


def _said(action: Mapping[str, Any]) -> Any:
    """An earlier action as a history tells it: without the history that it had itself."""
    return {name: value for name, value in action.items() if name != "history"}
