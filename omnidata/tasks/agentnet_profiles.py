"""`agentnetbench` and `agentnetbench-fixed`: OpenCUA's rule as released, and mended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from omnidata.actions import Point, Space, convert
from omnidata.agentnet import POINTED, Deed
from omnidata.loaders.agentnet_rows import truths_of
from omnidata.metrics.agentnetbench import Rule, judge
from omnidata.metrics.agentnetbench_answer import parse
from omnidata.metrics.agentstudio_totals import by_group
from omnidata.tasks.resizing import resizing
from omnidata.tasks.row_profiles import RowProfile, Unit
from omnidata.types import Rows, Step, Verdict

KINDS: Final = ("coordinate", "content", "function")
"""What the first action of a step needs: a place or the wheel, something to type, or nothing."""

_CONTENT: Final = frozenset({"write", "press", "hotkey"})
_TURNED: Final = frozenset({"scroll", "hscroll"})


class BenchProfile(RowProfile):
    """The mean of the steps' scores, each from 0 to 1 (`omnidata.metrics.agentnetbench`).

    "released" also reads answers as the released agent does; "fixed" reads code as Python.

    Args:
        rule: whose.
        space: the unit of coordinates in answers.
    """

    columns: Mapping[str, Unit] = {"score": "share"}
    by: Mapping[str, Sequence[str]] = {"form": (), "part": (), "completed": ()}

    def __init__(self, rule: Rule, space: Space) -> None:
        """Take the rule and the unit."""
        self.name = "agentnetbench" if rule == "released" else "agentnetbench-fixed"
        self._rule: Rule = rule
        self._space = space

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        """Read one answer and hold it against the ground truth and its alternatives."""
        try:
            truths = truths_of(step.source)
        except ValueError as error:
            return Verdict("ok", (None,), None, str(error))
        if self._space == "px" and min(step.screen) < 1 and _has_places(truths):
            return Verdict("ok", (None,), None, "the size of the screen is not known")
        said = parse(text, self._rule)
        if isinstance(said, str):
            return Verdict("unparsed", (0.0,), None, said)
        deeds = relative(said.deeds, self._space, step, receipt)
        return Verdict("ok", (judge(truths, deeds, self._rule),), {"code": said.code})

    def total(self, steps: Sequence[Step], rows: Rows) -> dict[str, Any]:
        """The table of `RowProfile`, and by what the steps' first actions need."""
        found = super().total(steps, rows)
        judged = ~np.isnan(rows.values[self.values[0]])
        found["by"]["kind"] = by_group(
            lambda mask: self._table(steps, rows, mask & judged),
            [kind_of(step) for step in steps],
            KINDS,
        )
        return found


def kind_of(step: Step) -> str | None:
    """What the first action of the ground truth needs; None where it cannot be used."""
    try:
        first = truths_of(step.source)[0][0].type
    except ValueError:
        return None
    if first in POINTED or first in _TURNED:
        return "coordinate"
    return "content" if first in _CONTENT else "function"


def _has_places(truths: Sequence[Sequence[Deed]]) -> bool:
    return any(deed.place for deeds in truths for deed in deeds)


def relative(
    deeds: Sequence[Deed], space: Space, step: Step, receipt: Mapping[str, Any] | None
) -> list[Deed]:
    """What an answer does, with its places in shares of the screen.

    Args:
        deeds: as a model wrote them.
        space: their unit.
        step: what it was asked about; without a size of its screen, pixels stay as they are.
        receipt: of the answer; it tells how large the picture was sent.

    Raises:
        PredictionError: the receipt is none that omnidata writes.
    """
    if space == "rel" or (space == "px" and min(step.screen) < 1):
        return list(deeds)
    resized = resizing(receipt, where=step.sample_id) if space == "px" else None
    screen = step.screen if space == "px" else (1, 1)
    found = []
    for deed in deeds:
        if deed.place is not None:
            pair = resized.to_screen(deed.place) if resized else deed.place
            point = convert(Point(pair[0], pair[1], space), "rel", screen)
            deed = replace(deed, place=(point.x, point.y))
        found.append(deed)
    return found
