"""The steps of a group of twins, decided by the seed and the number of the group alone.

The episodes of a group differ at each step in one medium, which says another code to each of them,
and in the answer. So only that medium distinguishes the answers. The codes of each step are
shuffled independently, so the history does not help.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, get_args

from omnidata.actions import Action, Box, Direction
from omnidata.loaders.episode_tree import Dependency, Dimension
from omnidata.loaders.instructions import Language
from omnidata.synth.drawing import (
    BACK,
    COMPLETE,
    HOME,
    IMPOSSIBLE,
    WAIT,
    Rect,
    across,
    type_in,
)
from omnidata.synth.episodes.screens import ICON_NAMES, Layout, Look, layout, look
from omnidata.synth.episodes.settings import (
    CODES,
    CUES,
    FIXED,
    PLACES,
    Kind,
    Medium,
    QuestionKind,
    Settings,
    labels,
    of_medium,
    texts,
)
from omnidata.synth.sounds import NOISES, Noise

_TOUCHES = ("TAP", "DOUBLE_TAP", "LONG_PRESS")
_DIMENSIONS: dict[Medium, Dimension] = {
    "audio": "cross_modal_discrimination",
    "video": "temporal_reasoning",
    "screen": "localization",
}


class Motion(NamedTuple):
    """A video cue that says a code; the seed decides what is the same for all codes."""

    kind: str
    code: int
    seed: int


class Drift(NamedTuple):
    """A moving icon without a meaning.

    Attributes:
        icon: a name of `ICONS`.
        turns: how often it crosses the screen; negative = from the right to the left.
        height: in [0, 1] of the panel.
    """

    icon: str
    turns: float
    height: float


@dataclass(frozen=True, slots=True)
class Distraction:
    """Irrelevant content, the same for all twins.

    Attributes:
        noise, drift: a sound and a moving icon without a meaning.
        sound, motion, sign: cues of media that do not decide.
    """

    noise: Noise | None = None
    sound: tuple[str, int] | None = None
    drift: Drift | None = None
    motion: Motion | None = None
    sign: tuple[str, int] | None = None

    def names(self) -> list[str]:
        """Return the fields that are not None."""
        return [name for name in self.__slots__ if getattr(self, name) is not None]


@dataclass(frozen=True, slots=True)
class StepPlan:
    """One step of all twins of a group.

    Attributes:
        kind: of the app.
        layout: of the screen.
        medium, cue: which medium says the code, and how.
        question: what is asked.
        labels: of buttons, or texts to type; empty if the question needs none.
        icons: of buttons.
        actions: the answers by number.
        answer_of: code -> number of the answer.
        codes: of each twin.
        distraction: irrelevant content.
        seed: of everything else that varies.
    """

    kind: Kind
    layout: Layout
    medium: Medium
    cue: str
    question: QuestionKind
    labels: tuple[str, ...]
    icons: tuple[str, ...]
    actions: tuple[Action, ...]
    answer_of: tuple[int, ...]
    codes: tuple[int, ...]
    distraction: Distraction
    seed: int

    def action(self, twin: int) -> Action:
        """Return the right action of a twin."""
        return self.actions[self.answer_of[self.codes[twin]]]

    def rule(self, language: Language) -> str:
        """Return the sentence of the instruction that says how to answer."""
        cue, place = CUES[self.cue], PLACES[self.kind]
        codes = list(enumerate(self.answer_of))
        if language == "zh":
            pairs = (f"{cue.codes[code][1]}就{self._answer(to, language)}" for code, to in codes)
            return f"{cue.zh.format(place[1])}：" + "，".join(pairs)
        rules = (f"if {cue.codes[code][0]}, {self._answer(to, language)}" for code, to in codes)
        return f"{cue.en.format(' ' + place[0])}: " + "; ".join(rules)

    def _answer(self, number: int, language: Language) -> str:
        if self.question == "tap":
            label = self.labels[number]
            return f'tap "{label}"' if language == "en" else f"点击“{label}”"
        if self.question == "input":
            label = self.labels[number]
            return f'type "{label}"' if language == "en" else f"输入“{label}”"
        return FIXED[self.question][number][language == "zh"]


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """A group of twins; its episodes are `CODES * number` and the next ones."""

    number: int
    look: Look
    steps: tuple[StepPlan, ...]

    @property
    def dimension(self) -> Dimension:
        """By the deciding medium; where the steps have several, semantic understanding."""
        media = {step.medium for step in self.steps}
        return _DIMENSIONS[media.pop()] if len(media) == 1 else "semantic_understanding"

    @property
    def dependency(self) -> Dependency:
        """Critical where a step needs to be heard or seen in motion."""
        screen_alone = all(step.medium == "screen" for step in self.steps)
        return "present" if screen_alone else "critical"

    def instruction(self, language: Language) -> str:
        """Return the rules of all steps in a row."""
        rules = [step.rule(language) for step in self.steps]
        if len(rules) == 1:
            return rules[0] + ("。" if language == "zh" else ".")
        if language == "zh":
            return f"先{'。再'.join(rules)}。"
        lower = [rule[0].lower() + rule[1:] for rule in rules]
        return f"First {'. Then '.join(lower)}."


def plan(
    settings: Settings,
    number: int,
    *,
    app: Look | None = None,
    questions: Sequence[QuestionKind] = (),
) -> GroupPlan:
    """Return the plan of a group; it does not depend on the number of groups.

    Args:
        settings: of all groups.
        number: of the group, from 0 on.
        app: the look of its app; None = one of the settings' apps, by chance.
        questions: of its steps; empty = as many as the settings say, by chance.

    Examples:
        >>> plain = Settings(audio_share=1, video_share=0, cues=("count",), questions=("leave",),
        ...                  max_steps=1, shuffled=False)
        >>> print(plan(plain, 0).instruction("en"))
        Count the beeps: if one, go back; if two, go to the home screen; if three, report the task
        as complete; if four, report the task as impossible.
    """
    rng = random.Random(f"{settings.seed}/group/{number}")
    app = app or look(settings.seed, rng.randrange(settings.apps))
    steps = tuple(
        _step(settings, rng, app, settings.medium(number, index), questions[index : index + 1])
        for index in range(len(questions) or settings.length(number))
    )
    return GroupPlan(number, app, steps)


def _step(
    settings: Settings,
    rng: random.Random,
    app: Look,
    medium: Medium,
    questions: Sequence[QuestionKind],
) -> StepPlan:
    question = rng.choice(questions or settings.questions)
    where = layout(app, settings.size, question)
    known = {"tap": labels, "input": texts}.get(question)
    words = rng.sample(known(app.kind, app.words), CODES) if known else []
    order = list(range(CODES))
    if settings.shuffled:
        rng.shuffle(order)
    return StepPlan(
        kind=app.kind,
        layout=where,
        medium=medium,
        cue=rng.choice(settings.cues_of(medium)),
        question=question,
        labels=tuple(words),
        icons=tuple(rng.sample(ICON_NAMES, CODES)),
        actions=_actions(question, words, where),
        answer_of=tuple(order),
        codes=tuple(rng.sample(range(CODES), CODES)),
        distraction=_distraction(settings, rng, medium),
        seed=rng.getrandbits(63),
    )


def _actions(question: QuestionKind, words: Sequence[str], where: Layout) -> tuple[Action, ...]:
    panel = _box(where.panel)
    if question == "tap":
        return tuple(Action("tap", (_box(rect),)) for rect in where.options[:CODES])
    if question == "swipe":
        return tuple(across(way, panel) for way in get_args(Direction))
    if question == "touch":
        return (*(Action.of(label, (panel,)) for label in _TOUCHES), WAIT)
    if question == "input":
        return tuple(type_in(word) for word in words)
    return BACK, HOME, COMPLETE, IMPOSSIBLE


def _box(rect: Rect) -> Box:
    left, top, right, bottom = rect
    return Box(left, top, right - 1, bottom - 1, "px")


def _distraction(settings: Settings, rng: random.Random, medium: Medium) -> Distraction:
    """Put cues that say something false only into the media that do not decide."""
    heard, seen, shown = (rng.random() < settings.distractors for _ in range(3))
    noise = sound = drift = motion = sign = None
    if heard and (medium == "audio" or rng.random() < 0.5):
        # Where tones matter, only what is no tone.
        noise = rng.choice([kind for kind in NOISES if medium != "audio" or kind == "babble"])
    elif heard:
        kinds = [name for name in of_medium("audio") if name != "speech"]
        sound = (rng.choice(kinds), rng.randrange(CODES))
    if seen and (medium == "video" or rng.random() < 0.5):
        turns = rng.choice((-2, -1, 1, 2)) * rng.uniform(0.6, 1)
        drift = Drift(rng.choice(ICON_NAMES), turns, rng.uniform(0.15, 0.85))
    elif seen:
        kind = rng.choice(of_medium("video"))
        motion = Motion(kind, rng.randrange(CODES), rng.getrandbits(31))
    if shown and medium != "screen":
        sign = (rng.choice(of_medium("screen")), rng.randrange(CODES))
    return Distraction(noise, sound, drift, motion, sign)
