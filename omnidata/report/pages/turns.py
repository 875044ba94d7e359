"""Turns on a desktop, in which several things are done: what they are, and where.

AgentNet's ground truth is more than one primitive can hold, and so is a turn of OSWorld.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omnidata.actions import Box, Point, Region
from omnidata.agentnet import POINTED, Deed
from omnidata.errors import OmnidataError
from omnidata.loaders.agentnet_rows import truths_of
from omnidata.loaders.osworld_actions import calls_of
from omnidata.metrics.agentnetbench import Rule
from omnidata.metrics.agentnetbench_answer import parse
from omnidata.metrics.osworld_acts import Act, acts, moved
from omnidata.metrics.osworld_answer import parse as parse_blocks
from omnidata.report.pages.answers import fenced, in_pixels, pair_on_screen, unit_of
from omnidata.tasks.agentnet_profiles import relative
from omnidata.tasks.resizing import resizing
from omnidata.types import Step, Task

Parsed = Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Turn:
    """What is done in a turn.

    Attributes:
        kinds: in order, in the benchmark's words.
        starts: where, in pixels of the screen, but for the ends of drags.
        ends: where drags end.
    """

    kinds: tuple[str, ...] = ()
    starts: tuple[Region, ...] = ()
    ends: tuple[Region, ...] = ()

    @property
    def label(self) -> str:
        """The first thing that is more than moving the pointer; empty where nothing is done."""
        more = (kind for kind in self.kinds if kind not in ("move", "moveTo"))
        return next(more, self.kinds[0] if self.kinds else "")


def target_turn(task: str, step: Step) -> Turn | None:
    """What is right in a step of "agentnet" or "osworld"; None where it cannot be used."""
    if task == "osworld":
        return _of_acts(acts(calls_of(step.source).calls))
    try:
        return _of_deeds(truths_of(step.source)[0], step)
    except ValueError:
        return None


def answer_turn(task: Task, step: Step, parsed: Parsed, receipt: Mapping[str, Any]) -> Turn | None:
    """What an answer to such a step does; None where it was not read, or not understood."""
    if task.name == "osworld":
        return _of_acts(acts_said(step, parsed, receipt))
    rules: tuple[Rule, Rule] = ("fixed", "released")
    found = (deeds_said(task, step, parsed, receipt, rule) for rule in rules)
    return next((_of_deeds(deeds, step) for deeds in found if deeds), None)


def deeds_said(
    task: Task, step: Step, parsed: Parsed, receipt: Mapping[str, Any], rule: Rule
) -> Sequence[Deed]:
    """What an answer to a step of AgentNet does, as a rule reads it; nothing where it does not."""
    said = parse((parsed or {}).get("code", ""), rule)
    if isinstance(said, str):
        return ()
    try:
        return relative(said.deeds, unit_of(task), step, receipt)
    except OmnidataError:
        return ()


def acts_said(step: Step, parsed: Parsed, receipt: Mapping[str, Any]) -> Sequence[Act] | None:
    """What an answer to a turn of OSWorld does; None where it is not understood."""
    said = parse_blocks(fenced((parsed or {}).get("code", "")))
    found = None if isinstance(said, str) else acts(said.statements)
    try:
        resized = resizing(receipt, where=step.sample_id)
    except OmnidataError:
        return None
    return moved(found, resized.to_screen) if found is not None and resized else found


def deed_regions(deed: Deed, step: Step) -> tuple[Region, ...]:
    """Where a deed is right, in pixels: its boxes, or else its place."""
    if boxes := [Box(x, y, x + w, y + h, "rel") for x, y, w, h in deed.boxes if w >= 0 and h >= 0]:
        return tuple(in_pixels(box, step.screen) for box in boxes)
    point = pair_on_screen(step, deed.place, "rel", {})
    return (point,) if point else ()


def _of_deeds(deeds: Sequence[Deed], step: Step) -> Turn:
    starts: list[Region] = []
    ends: list[Region] = []
    for deed in deeds:
        if deed.type in POINTED:
            (ends if deed.type == "dragTo" else starts).extend(deed_regions(deed, step))
    return Turn(tuple(deed.type for deed in deeds), tuple(starts), tuple(ends))


def _of_acts(found: Sequence[Act] | None) -> Turn | None:
    if found is None:
        return None
    starts = tuple(Point(*act.start, "px") for act in found if act.start)
    ends = tuple(Point(*act.end, "px") for act in found if act.end)
    return Turn(tuple(act.kind for act in found), starts, ends)
