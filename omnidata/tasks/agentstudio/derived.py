"""Rows of AgentStudio's benchmarks, written for data of other tasks (`omnidata synth`).

Their columns are those of the authors' files, and the release's evaluator reads them too. Two are
ours: `group`, equal for related rows, and the unit of a box, which no source defines here.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any, Final

from omnidata.actions import Box, Point, Region
from omnidata.tasks.agentstudio.files import TaskName
from omnidata.tasks.agentstudio.rows import WINDOW
from omnidata.tasks.derivation import Derivation, Element, Trajectory


def _single(trajectory: Trajectory) -> dict[str, Any]:
    (action,) = _actions(trajectory)
    return {**action, "instruction": trajectory.instruction, **_common_columns(trajectory)}


def _several(trajectory: Trajectory) -> dict[str, Any]:
    known = {} if trajectory.success is None else {"is_success": trajectory.success}
    return {
        "instruction": trajectory.instruction,
        "annotation_id": trajectory.name,
        "actions": _actions(trajectory),
        **_common_columns(trajectory),
        "metadata": {"made_of": list(trajectory.made_of)},
        **known,
    }


def _common_columns(trajectory: Trajectory) -> dict[str, Any]:
    return {
        "source": trajectory.source,
        "platform": trajectory.platform or None,
        "action_space": list(trajectory.action_space),
        "group": trajectory.group,
    }


def _actions(trajectory: Trajectory) -> list[dict[str, Any]]:
    seen = trajectory.observations
    made = zip(trajectory.actions, trajectory.words, strict=True)
    return [
        {
            "action_id": f"{trajectory.name}/{number}",
            "obs_before": before,
            "obs_after": after,
            "operation": action.label,
            "bbox": _box(action.start[0]) if action.start else None,
            "metadata": {"repr": words},
        }
        for number, ((action, words), (before, after)) in enumerate(
            zip(made, zip_longest(seen, seen[1:]), strict=False)
        )
    ]


def _box(region: Region) -> dict[str, Any]:
    if isinstance(region, Point):
        return {"x": region.x, "y": region.y, "width": 0, "height": 0, "space": region.space}
    return {
        "x": region.left,
        "y": region.top,
        "width": region.right - region.left,
        "height": region.bottom - region.top,
        "space": region.space,
    }


def _element(element: Element) -> dict[str, Any]:
    box: Box = element.box
    return {
        "image": element.picture,
        "instruction": element.instruction,
        "bbox": [box.left, box.top, box.right, box.bottom],
        "source": element.source,
        "platform": element.platform or None,
        "resolution": list(element.screen),
        "raw_instruction": element.raw,
        "group": element.group,
        **element.about,
    }


DERIVATIONS: Final[Mapping[TaskName, Derivation]] = {
    "idm-single": Derivation("idm", "actions", "metadata_idm.jsonl", _single),
    "idm-multiple": Derivation("idm", "actions", "metadata_idmn2n.jsonl", _several, WINDOW),
    "criticbench": Derivation(
        "criticbench", "success", "metadata_success_detection.jsonl", _several, WINDOW
    ),
    "groundui": Derivation("recaption", "target", "metadata.jsonl", _element),
}
"""Files have the names of the release."""
