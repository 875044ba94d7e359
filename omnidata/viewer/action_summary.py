"""What a profile read in an answer, read again: as an action, and as a place on the screen."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from omnidata.actions import Action, Box, Point, Region, Screen, Space, convert
from omnidata.errors import OmnidataError
from omnidata.tasks.agentnet.actions import POINTED, Deed
from omnidata.tasks.agentnet.rows import truths_of
from omnidata.tasks.agentnet.rules import Rule, parse
from omnidata.tasks.agentnet.task import relative
from omnidata.tasks.coordinates import resizing
from omnidata.tasks.osworld.actions import Act, acts, calls_of, moved
from omnidata.tasks.osworld.actions import parse as parse_blocks
from omnidata.tasks.phones.actions import Kind, Move, nearest
from omnidata.types import Step, Task


def action_of(task: Task, parsed: Mapping[str, Any] | None) -> Action | None:
    """An answer as an action, by the rules for histories of answers; its places as it wrote them.

    None where there is no answer, or the benchmark's answers are no such actions.
    """
    if parsed is None:
        return None
    try:
        if "form" in parsed:
            return nearest(_move(task, parsed))
        text = fenced(parsed["code"]) if "code" in parsed else json.dumps(parsed)
        return task.read(text, {})
    except (OmnidataError, LookupError, TypeError, ValueError, OverflowError):
        return None


def fenced(code: str) -> str:
    """Code as an answer has it."""
    return f"```python\n{code}\n```"


def _move(task: Task, parsed: Mapping[str, Any]) -> Move:
    """A move on a phone in another form than the prompt's (`metrics.phone_answer`)."""
    touch, lift = (tuple(parsed[name]) if name in parsed else None for name in ("touch", "lift"))
    return Move(
        Kind(parsed["kind"]),
        touch,
        lift,
        direction=parsed.get("direction"),
        text=parsed.get("text", ""),
        space=unit_of(task) if parsed["form"] == "prompted" else "norm1000",
    )


def unit_of(task: Task) -> Space:
    """The unit that answers have their places in, by the task's options."""
    spaces: tuple[Space, ...] = get_args(Space)
    return next(space for space in spaces if space == task.options["coordinates"])


def on_screen(step: Step, point: Point, receipt: Mapping[str, Any]) -> Point | None:
    """A point of an answer in pixels of the step's screen.

    Args:
        step: what was asked about.
        point: pixels are those of the picture as it was sent.
        receipt: of the answer; it tells how large that was.

    Returns:
        None where the receipt cannot be read, or the size of the screen is not known, or the
        numbers are beyond any screen.
    """
    try:
        if point.space != "px":
            found = convert(point, "px", step.screen) if min(step.screen) > 0 else None
        else:
            resized = resizing(receipt, where=step.sample_id)
            pair = (point.x, point.y)
            found = Point(*(resized.to_screen(pair) if resized else pair), "px")
        return found if found and math.isfinite(found.x) and math.isfinite(found.y) else None
    except (OmnidataError, OverflowError):
        return None


def pair_on_screen(
    step: Step, pair: object, space: Space, receipt: Mapping[str, Any]
) -> Point | None:
    """Two numbers of an answer as such a point; None for anything else."""
    if not isinstance(pair, Sequence) or len(pair) != 2:
        return None
    if not all(isinstance(side, int | float) for side in pair):
        return None
    return on_screen(step, Point(pair[0], pair[1], space), receipt)


def in_pixels(region: Region, screen: Screen) -> Region:
    """A region in pixels of a screen.

    Examples:
        >>> in_pixels(Point(500, 500, "norm1000"), (720, 1600))
        Point(x=360.0, y=800.0, space='px')
    """
    if isinstance(region, Point):
        return convert(region, "px", screen)
    low = convert(Point(region.left, region.top, region.space), "px", screen)
    high = convert(Point(region.right, region.bottom, region.space), "px", screen)
    return Box(low.x, low.y, high.x, high.y, "px")


# Turns on a desktop, in which several things are done: what they are, and where.
#
# AgentNet's ground truth is more than one primitive can hold, and so is a turn of OSWorld.

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
