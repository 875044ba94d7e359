"""How rows of a benchmark are made out of the data of other tasks.

`omnidata synth` chooses and copies; the benchmark says how many actions its prompt shows, and
writes its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from omnidata.actions import Action, Box, Screen
from omnidata.types import Modality, Part

MOST_OPERATIONS: Final = 26
"""Different actions of one action space: each is asked for by a letter."""

PLATFORMS: Final = ("web", "desktop", "mobile")
"""What `Benchmark.platform` and a tag `platform` may say that rows are of."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """Consecutive actions, and the screenshots before each of them.

    Attributes:
        name: unique among the rows.
        group: what it must never be torn apart from (see `Step.group`).
        source: its origin and how it was changed, e.g. "omnigui-cut".
        made_of: the episodes that its observations and its instruction are of.
        platform: one of `PLATFORMS`; empty if unknown.
        instruction: the task.
        actions: at least one.
        words: each action as histories have it, with all actions of its step.
        observations: names of the pictures, below the folder of pictures: one before each action,
            and one more where something was seen after the last.
        action_space: labels (`Action.label`), that of each of the actions among them.
        success: whether it fulfils the instruction; None if not asked.
    """

    name: str
    group: str
    source: str
    made_of: tuple[str, ...]
    platform: str
    instruction: str
    actions: tuple[Action, ...]
    words: tuple[str, ...]
    observations: tuple[str, ...]
    action_space: tuple[str, ...]
    success: bool | None = None


@dataclass(frozen=True, slots=True)
class Element:
    """An element of a screenshot, and the instruction that means it.

    Attributes:
        group: as in `Trajectory`.
        source: the task that it is of.
        platform: as in `Trajectory`.
        picture: its name, below the folder of pictures.
        screen: its size in pixels.
        box: the element, in pixels.
        instruction: the one that is asked with.
        raw: the one that the data had.
        about: how it got its instruction, as JSON values.
    """

    group: str
    source: str
    platform: str
    picture: str
    screen: Screen
    box: Box
    instruction: str
    raw: str
    about: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """The question of a step as an agent got it, and its answer.

    Attributes:
        shown: texts and media in order; the `role` of a medium is its name in `Judged.media`.
        answer: as it came.
        size: width and height in pixels of the screenshot that the agent was shown, where places in
            the answer go by it and it is not that of the picture; else None.
    """

    shown: tuple[Part, ...]
    answer: str
    size: Screen | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """Answers of an agent, and whether they are right.

    Attributes:
        name: unique among the rows: the step or the episode, and a hash of the answers.
        group: of the step, as in `Step.group`.
        source: the task that they answer.
        model: who answered.
        instruction: of the episode.
        screen: size of the first screenshot, in pixels.
        turns: one, or those of an episode in order.
        media: role -> kind, and path below the folder of the rows.
        right: whether each answer has a full score by the profile of its task.
        about: further columns, as JSON values.
    """

    name: str
    group: str
    source: str
    model: str
    instruction: str
    screen: Screen
    turns: tuple[Turn, ...]
    media: Mapping[str, tuple[Modality, str]]
    right: bool
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Derivation:
    """How rows of a benchmark are made of the data of other tasks.

    Attributes:
        verb: of `omnidata synth`; tasks that share one are made together.
        of: what is asked: "actions", which actions lie between observations; "success", whether
            they fulfil an instruction; "target", where the element is that an instruction means;
            "answer", whether a model's answer to a step is right; "answers", whether all of its
            answers in an episode are.
        file: the name of the file that the rows are written to, as JSON lines; pictures lie in
            `images` beside it.
        row: a row, of a `Trajectory`; where a target is asked for, of an `Element`; where answers
            are asked about, of a `Judged`.
        most: actions that a prompt shows at most.
    """

    verb: str
    of: Literal["actions", "success", "target", "answer", "answers"]
    file: str
    row: Callable[[Any], Mapping[str, Any]]
    most: int = 1
