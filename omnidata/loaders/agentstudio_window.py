"""Which actions of a trajectory a model is shown: the last five.

Source: AgentStudio, Appendices D.3 and E, and the released evaluator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

Trajectory = Literal["idm-multiple", "criticbench"]

WINDOW = 5
"""Actions that are shown at most."""


def window(task: Trajectory, actions: Sequence[Mapping[str, Any]]) -> range:
    """The positions of the actions that are shown.

    IDM-Multiple asks what happened between observations, so it drops a final action after which
    nothing was observed; CriticBench keeps it.

    Args:
        task: the benchmark.
        actions: of the row; every one has `obs_after`, which only the last may lack.

    Returns:
        The positions, empty where the only action was dropped.

    Examples:
        >>> actions = [{"obs_after": "1.png"}] * 6 + [{"obs_after": None}]
        >>> window("idm-multiple", actions), window("criticbench", actions)
        (range(1, 6), range(2, 7))
    """
    stop = len(actions)
    if task == "idm-multiple" and actions and actions[-1].get("obs_after") is None:
        stop -= 1
    return range(max(0, stop - WINDOW), stop)


def shown(task: Trajectory, row: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The actions in the window of a row; for IDM-Multiple their operations are the answer."""
    actions: Sequence[Mapping[str, Any]] = row["actions"]
    return [actions[position] for position in window(task, actions)]
