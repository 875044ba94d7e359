"""What the sample's episodes are made of, and twins: episodes that one medium alone tells apart."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from omnidata.actions import OPPOSITE, Action, Box, Direction
from omnidata.data.sample import canvas
from omnidata.data.sample.canvas import Screen
from omnidata.data.sample.media import Cue, over, room
from omnidata.loaders.episode_tree import Dependency, Dimension
from omnidata.media.encoding import Samples

WAIT = Action("none")
BACK = Action("back")
HOME = Action("home")
COMPLETE = Action("done", status="success")
IMPOSSIBLE = Action("done", status="failure")


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """One step: what is there, and what is right.

    Attributes:
        screen: the current screen.
        action: the target.
        sound: what was heard since the last action; its length is that of the clip.
        cue: what was seen since the last action, and is gone.
    """

    screen: Screen
    action: Action
    sound: Samples
    cue: Cue | None = None


@dataclass(frozen=True, slots=True)
class Twin:
    """Marks one of several episodes that are the same up to one step, in all but one medium.

    Attributes:
        group: the id of the first of them.
        modality: the medium that decides.
        step: the 0-based step at which it does.
    """

    group: str
    modality: Literal["audio", "video"]
    step: int


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What the episodes of a group share.

    Attributes:
        dimension, dependency, language: as in the dataset.
        en, zh: the instruction in English and Chinese.
    """

    dimension: Dimension
    dependency: Dependency
    language: Literal["en", "zh"]
    en: str
    zh: str


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """One episode.

    Attributes:
        id: unique in the app.
        task: what the episode is about.
        moments: the steps.
        twin: None for an episode without twins.
    """

    id: str
    task: Task
    moments: tuple[Moment, ...]
    twin: Twin | None = None


class Book:
    """The episodes of one app, numbered in the order in which they are added.

    Args:
        app: the app's name; its first letter begins every id.
        seed: decides everything that chance decides.

    Attributes:
        start: the phone's start page, the same in all apps.
        rng: for names, places and the order of twins.
        noise: for sounds.
    """

    def __init__(self, app: str, *, seed: int) -> None:
        self.app = app
        self.plans: list[Plan] = []
        self.start = canvas.launcher(random.Random(seed).random())
        self.rng = random.Random(f"{seed}/{app}")
        self.noise = np.random.default_rng(self.rng.getrandbits(64))

    def hear(
        self, cue: Samples | None = None, *, seconds: float = 1.2, at: float = 0.65
    ) -> Samples:
        """A quiet room, with a sound from `at` seconds on where one is given."""
        ground = room(self.noise, seconds=seconds)
        return ground if cue is None else over(ground, cue, at=at)

    def add(self, task: Task, *moments: Moment) -> None:
        """Add an episode without twins."""
        self.plans.append(Plan(self._next(), task, moments))

    def twins(
        self,
        task: Task,
        modality: Literal["audio", "video"],
        *,
        start: Sequence[Moment],
        endings: Sequence[Sequence[Moment]],
    ) -> None:
        """Add one episode per ending, in random order.

        Args:
            task: what all of them are about.
            modality: the medium that decides.
            start: the steps that they share.
            endings: what follows; the first moment of each differs in the medium and the action.
        """
        group = self._next()
        for ending in self.rng.sample(endings, len(endings)):
            twin = Twin(group, modality, len(start))
            self.plans.append(Plan(self._next(), task, (*start, *ending), twin))

    def _next(self) -> str:
        return f"{self.app[0]}{len(self.plans) + 1:03d}"


def tap(screen: Screen, name: str, label: str = "TAP") -> Action:
    """Touch a widget: a tap, or another positional primitive."""
    return Action.of(label, (screen.targets[name],))


def swipe(direction: Direction, start: Box, end: Box) -> Action:
    """Drag from one rectangle to another."""
    return Action("swipe", (start,), (end,), direction=direction)


def across(direction: Direction, area: Box) -> Action:
    """A swipe over an area, from one third of it to the opposite one."""
    wide, high = (area.right - area.left) // 3, (area.bottom - area.top) // 3
    first: Mapping[Direction, Box] = {
        "up": replace(area, top=area.bottom - high),
        "down": replace(area, bottom=area.top + high),
        "left": replace(area, left=area.right - wide),
        "right": replace(area, right=area.left + wide),
    }
    return swipe(direction, first[direction], first[OPPOSITE[direction]])


def type_in(text: str) -> Action:
    """Type into the field that has the focus."""
    return Action("type", text=text)
