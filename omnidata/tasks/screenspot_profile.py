"""`screenspot` and `screenspot-fixed`: the share of points that lie in their boxes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from omnidata.actions import Space
from omnidata.loaders.screenspot_rows import FORMS, box_of, is_negative
from omnidata.metrics.agentstudio_totals import means
from omnidata.metrics.screenspot import Reading, Said, hits, read
from omnidata.tasks.resizing import resizing
from omnidata.tasks.row_profiles import Mask, RowProfile, Unit
from omnidata.types import Rows, Step, Verdict

TYPES: Final = ("text", "icon")
PLATFORMS: Final = ("mobile", "desktop", "web")


class PointProfile(RowProfile):
    """Accuracy: of all rows, of those for a text, of those for an icon.

    By platform these are SeeClick's columns, whose mean is `macro`; by group, ScreenSpot-Pro's.

    Args:
        reading: how answers are read (`omnidata.metrics.screenspot`).
        space: the unit of coordinates that the prompt asks for.
    """

    columns: Mapping[str, Unit] = dict.fromkeys(("accuracy", *TYPES, "macro"), "share")
    by: Mapping[str, Sequence[str]] = {
        "platform": PLATFORMS,
        "group": (),
        "application": (),
        "data_source": (),
        "form": FORMS,
    }

    def __init__(self, reading: Reading, space: Space) -> None:
        """Take the reading and the unit."""
        self.name = "screenspot" if reading == "released" else "screenspot-fixed"
        self._reading: Reading = reading
        self._space = space

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        """Read the point and hold it against the row's box."""
        said = read(text, self._reading)
        resized = resizing(receipt, where=step.sample_id) if self._space == "px" else None
        row = step.source["row"]
        hit: bool | None
        if is_negative(row):
            hit = said is not None and said.point is None
        else:
            try:
                box = box_of(row, step.source["boxes"])
            except ValueError as error:
                return Verdict("ok", (None,), None, str(error))
            hit = hits(
                box,
                said or Said(None),
                space=self._space,
                screen=step.screen,
                to_screen=resized.to_screen if resized else None,
            )
        if said is None:
            return Verdict("unparsed", (hit,), None, "neither a point nor a box")
        return Verdict("ok", (hit,), _parsed(said))

    def _table(self, steps: Sequence[Step], rows: Rows, mask: Mask) -> dict[str, Any]:
        scores = rows.values["score"]
        found = means({"accuracy": scores[mask]})
        kinds = np.array([step.tags.get("ui_type", "") for step in steps])
        parts = {kind: means({kind: scores[mask & (kinds == kind)]}) for kind in TYPES}
        for kind, part in parts.items():
            found[kind] = part[kind]
            found["ci95"][kind] = part["ci95"][kind]
            found[f"{kind}_rows"] = part["rows"]
        found["macro"] = _macro(steps, scores, mask, kinds)
        found["ci95"]["macro"] = None
        return {**found, "steps": found["rows"]}


def _macro(steps: Sequence[Step], scores: Any, mask: Mask, kinds: Any) -> float | None:
    """The mean of the accuracies of every platform's texts and icons."""
    platforms = np.array([step.tags.get("platform", "") for step in steps])
    cells = [
        scores[mask & (platforms == platform) & (kinds == kind)]
        for platform in sorted(set(platforms[mask].tolist()))
        for kind in TYPES
    ]
    found = [float(cell.mean()) for cell in cells if len(cell)]
    return sum(found) / len(found) if found else None


def _parsed(said: Said) -> dict[str, Any]:
    if said.point is None:
        return {"negative": True}
    # JSON has no infinity: a number that no float holds is told as a text.
    return {"point": [side if math.isfinite(side) else str(side) for side in said.point]}
