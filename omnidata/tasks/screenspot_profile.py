"""`screenspot` and `screenspot-fixed`: the share of points that lie in their boxes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from omnidata.actions import Space
from omnidata.loaders.screenspot_rows import FORMS, box_of, is_negative
from omnidata.metrics.agentstudio_totals import means
from omnidata.metrics.proportion import named_methods
from omnidata.metrics.screenspot import Reading, Said, hits, read
from omnidata.tasks.resizing import resizing
from omnidata.tasks.row_profiles import Mask, RowProfile, Unit, owners
from omnidata.types import Rows, Step, Verdict

TYPES: Final = ("text", "icon")
PLATFORMS: Final = ("mobile", "desktop", "web")


class PointProfile(RowProfile):
    """Accuracy: of all rows, of those for a text, of those for an icon.

    By platform these are SeeClick's columns, by group ScreenSpot-Pro's. Beside the table the
    results have `macro`, the mean over every platform's texts and icons.

    Args:
        reading: how answers are read (`omnidata.metrics.screenspot`).
        space: the unit of coordinates that the prompt asks for.
    """

    values = ("score", *TYPES)
    columns: Mapping[str, Unit] = dict.fromkeys(("accuracy", *TYPES), "share")
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
        try:
            hit = self._hit(step, said, receipt)
        except ValueError as error:
            return Verdict("ok", (None, None, None), None, str(error))
        kind = step.tags.get("ui_type")
        values = (hit, *(hit if kind == name else None for name in TYPES))
        if said is None:
            return Verdict("unparsed", values, None, "neither a point nor a box")
        return Verdict("ok", values, _parsed(said))

    def _hit(self, step: Step, said: Said | None, receipt: Mapping[str, Any] | None) -> bool | None:
        """Whether the answer is right; None where nobody can tell.

        Raises:
            ValueError: the row has no usable box.
        """
        row = step.source["row"]
        if is_negative(row):
            return said is not None and said.point is None
        resized = resizing(receipt, where=step.sample_id) if self._space == "px" else None
        return hits(
            box_of(row, step.source["boxes"]),
            said or Said(None),
            space=self._space,
            screen=step.screen,
            to_screen=resized.to_screen if resized else None,
        )

    def total(self, steps: Sequence[Step], rows: Rows) -> dict[str, Any]:
        """The table of `RowProfile`, and `macro`; None over nothing."""
        platforms = np.array([step.tags.get("platform", "") for step in steps])
        cells = [
            means({kind: rows.values[kind][platforms == platform]})[kind]
            for platform in sorted(set(platforms.tolist()))
            for kind in TYPES
        ]
        known = [cell for cell in cells if cell is not None]
        macro = sum(known) / len(known) if known else None
        return {**super().total(steps, rows), "macro": macro}

    def _table(self, steps: Sequence[Step], rows: Rows, mask: Mask) -> dict[str, Any]:
        found: dict[str, Any] = {"ci95": {}}
        methods: dict[str, str] = {}
        owner = owners(steps, mask)
        for name, value in zip(self.columns, self.values, strict=True):
            part = means({name: rows.values[value][mask]}, shares=(name,), owner=owner)
            found[name] = part[name]
            found["ci95"][name] = part["ci95"][name]
            methods |= part.get("ci95_method", {})
        return {**found, **named_methods(methods), "steps": int(mask.sum())}


def _parsed(said: Said) -> dict[str, Any]:
    """The point, and its unit where the answer itself names one."""
    if said.point is None:
        return {"negative": True}
    # JSON has no infinity: a number that no float holds is told as a text.
    unit = {"space": said.space} if said.space else {}
    return {"point": [side if math.isfinite(side) else str(side) for side in said.point], **unit}
