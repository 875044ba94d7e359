"""What a dialect is: how a family of models writes actions, and how it is asked for them.

A dialect knows no benchmark and no model. It reads a text as actions and writes actions as such a
text, it words a prompt around the names that its models were trained on, and its frame says in what
size a picture is fed and what the numbers of places mean.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from omnidata.actions import Action, Kind, Pair, Point, Screen, Sense, Space, centre, finger_way
from omnidata.types import Conversation, Message, Part

Platform = Literal["mobile", "desktop", "web"]
Asked = Literal["action", "point"]
"""What a task asks for: the next action, or where something is on the screen."""
Rules = Literal["lenient", "strict"]
"""How answers are read: as what the model plainly said, or as the released parser reads them, its
failures among them."""


class UnreadError(ValueError):
    """A text that is no answer in the dialect; the message says why."""


class CannotSayError(ValueError):
    """What cannot be expressed: an action in a dialect, or in the answers of a benchmark."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a text says.

    Attributes:
        actions: in order; at least one. Places are points in the unit of the dialect's frame, or
            boxes where the dialect has them.
        thought: what the model says of its reasons, without the marks around it.
        rest: what of the text was left unread; empty if nothing.
    """

    actions: tuple[Action, ...]
    thought: str = ""
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Frame:
    """How a picture is fed to a model, and what the numbers of places mean.

    Attributes:
        space: the unit of places; "px" are pixels of the picture as it is fed.
        factor: each side of a fed picture is a multiple of it, in pixels; 1 = any size.
        min_pixels, max_pixels: what a fed picture has at least and at most, in pixels; None = any.
        longest: the longest side of a fed picture in pixels; None = any.

    Source: `smart_resize` of Qwen's processors (transformers, `Qwen2VLImageProcessor`).

    Examples:
        >>> Frame("px", 28, 56 * 56, 28 * 28 * 1280).fed((1920, 1080))
        (1316, 728)
    """

    space: Space
    factor: int = 1
    min_pixels: int | None = None
    max_pixels: int | None = None
    longest: int | None = None

    def fed(self, screen: Screen) -> Screen:
        """Width and height in pixels in which a picture is fed; an unknown size stays unknown."""
        width, height = screen
        if min(screen) < 1:
            return screen
        if self.longest and max(screen) > self.longest:
            share = self.longest / max(screen)
            width, height = max(1, round(width * share)), max(1, round(height * share))
        if self.factor == 1 and self.min_pixels is self.max_pixels is None:
            return width, height
        sides = [
            max(self.factor, round(side / self.factor) * self.factor) for side in (width, height)
        ]
        area = sides[0] * sides[1]
        if self.max_pixels and area > self.max_pixels:
            beta = math.sqrt(width * height / self.max_pixels)
            sides = [
                max(self.factor, math.floor(side / beta / self.factor) * self.factor)
                for side in (width, height)
            ]
        elif self.min_pixels and area < self.min_pixels:
            beta = math.sqrt(self.min_pixels / (width * height))
            sides = [math.ceil(side * beta / self.factor) * self.factor for side in (width, height)]
        return sides[0], sides[1]

    def extent(self, fed: Screen) -> Pair:
        """The numbers of the right and the lower edge of a fed picture."""
        edges: Mapping[Space, float] = {"rel": 1, "norm1000": 1000, "norm999": 999}
        return fed if self.space == "px" else (edges[self.space], edges[self.space])


@dataclass(frozen=True, slots=True)
class Past:
    """An earlier step, as a prompt tells of it.

    Attributes:
        actions: what was done; places are points in the unit of the dialect's frame. Empty where
            nobody knows.
        shot: the screenshot on which it was done; None where it is not shown.
        fed: width and height in pixels in which that is fed; (0, 0) where nobody knows.
    """

    actions: tuple[Action, ...]
    shot: Part | None = None
    fed: Screen = (0, 0)


@dataclass(frozen=True, slots=True)
class Question:
    """One step, as a dialect is to ask about it.

    Attributes:
        asked: what for.
        platform: where actions are done.
        instruction: what the agent is to do, or the element that is meant.
        media: the parts of the step that are shown, in order, each after its label; the screenshot
            among them has the role "screenshot" and its `size` set to `fed`.
        past: the earlier steps that are told, the oldest first, without those that are
            forgotten.
        first: index of the first of them, from 0.
        fed: width and height in pixels in which the screenshot is fed; (0, 0) where nobody knows.
        system: a text of the user's in place of the dialect's own words; None for those.
    """

    asked: Asked
    platform: Platform
    instruction: str
    media: tuple[Part, ...]
    past: tuple[Past, ...] = ()
    first: int = 0
    fed: Screen = (0, 0)
    system: str | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """How a prompt tells of the past.

    Attributes:
        turns: whether earlier steps are turns of the conversation, as far as their screenshots are
            shown, or lines of one text.
        screenshots: how many screenshots a prompt shows at most, with the current one.
        actions: how many earlier actions it tells of at most; None = all.
        system: whether the vocabulary stands in a message of the system, or before the instruction.
    """

    turns: bool = False
    screenshots: int = 1
    actions: int | None = None
    system: bool = True


class Dialect(ABC):
    """How a family of models writes actions; a new one defines what has no default.

    Attributes:
        name: as in `-T dialect=NAME`, with the version: "ui-tars-1.5".
        title: in words.
        checkpoints: the models that were trained on it, as their publishers call them.
        source: whose parser `strict` is held against: repository and commit, or "documentation".
        frame: how pictures are fed, and what the numbers mean.
        layout: how prompts tell of the past.
        layouts: the same on platforms where it is otherwise.
        says: the kinds of actions that it can express, by platform; a platform that is not there
            cannot be asked about. "point" is what grounding tasks ask for.
        stop: texts at which a model ends its answer, beside its own end.
        special_tokens: whether a decoder has to keep special tokens, as answers are made of them.
        prefix: how the model's answer begins, where the prompt already says it.
        key_names: what pyautogui calls the keys that the family has other names for.

    Examples:
        A dialect in one module, with its tests, is what `docs/dialects.md` walks through.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    checkpoints: ClassVar[Sequence[str]] = ()
    source: ClassVar[str] = "documentation"
    frame: ClassVar[Frame]
    layout: ClassVar[Layout] = Layout()
    layouts: ClassVar[Mapping[Platform, Layout]] = {}
    says: ClassVar[Mapping[Platform, frozenset[Kind]]]
    stop: ClassVar[Sequence[str]] = ()
    special_tokens: ClassVar[bool] = False
    prefix: ClassVar[str] = ""
    key_names: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def read(self, text: str, fed: Screen, *, rules: Rules = "lenient") -> Answer:
        """Read a model's answer.

        Args:
            text: as it came, a JSON object or list where the model called a provider's tool; none
                of it is trusted. Reading takes time linear in its length.
            fed: width and height in pixels of the screenshot as it was fed; (0, 0) where nobody
                knows.
            rules: how.

        Raises:
            UnreadError: the text is no answer in the dialect.
        """

    @abstractmethod
    def write(self, actions: Sequence[Action], fed: Screen, platform: Platform) -> str:
        """Write actions as the model would, for histories and as what a model is to learn.

        Args:
            actions: one or more; their places are points in the unit of the frame.
            fed: as in `read`, of the screenshot on which they are done.
            platform: whose names are used.

        Raises:
            CannotSayError: the dialect has no words for one of them.
        """

    @abstractmethod
    def vocabulary(self, asked: Asked, platform: Platform, fed: Screen) -> str:
        """The part of a prompt that tells the model which actions there are, in our sentences.

        Args:
            asked: what for.
            platform: where.
            fed: as in `read`.
        """

    def in_sense(self, labels: Sense) -> Dialect:
        """The dialect of models that learnt their scrolls from labels of a benchmark.

        Args:
            labels: what a direction is said of in those labels: the finger, or the content.

        Returns:
            This one, as by default a scroll means the same on every benchmark.
        """
        return self

    def layout_on(self, platform: Platform) -> Layout:
        """How prompts tell of the past on a platform."""
        return self.layouts.get(platform, self.layout)

    def plain_keys(self, keys: Sequence[str]) -> tuple[str, ...]:
        """Keys by the names that benchmarks of desktops know: pyautogui's.

        Args:
            keys: as `read` gives them, pressed at once or one after the other.
        """
        return tuple(self.key_names.get(key, key) for key in keys)

    def line(self, past: Past, platform: Platform) -> str:
        """An earlier step in a text: its actions as `write` has them, or that nobody knows."""
        if not past.actions:
            return UNKNOWN
        try:
            return self.write(past.actions, past.fed, platform)
        except CannotSayError:
            return " ".join(action.label for action in past.actions)

    def tools(self, asked: Asked, platform: Platform, fed: Screen) -> tuple[Part, ...]:
        """What declares a provider's own tool in the message of the system; none by default.

        Args:
            asked: what for.
            platform: where.
            fed: as in `read`.

        Raises:
            UsageError: the tool cannot be declared for a screenshot of unknown size.
        """
        return ()

    def turn(self, past: Past, platform: Platform) -> Part:
        """An earlier step as a turn of the assistant's, where its screenshot is shown."""
        return Part("text", self.line(past, platform))

    def conversation(self, question: Question) -> Conversation:
        """The prompt of a step: the vocabulary, the past, what is shown, the instruction.

        Of earlier steps, those with a screenshot are turns where the layout has turns: the user
        shows it, the assistant says what was done. All others are lines of text, and screenshots
        that the user asked for stand before the current one.

        Raises:
            UsageError: as `tools`.
        """
        layout = self.layout_on(question.platform)
        told = question.system
        if told is None:
            told = self.vocabulary(question.asked, question.platform, question.fed)
        turns = [past for past in question.past if past.shot] if layout.turns else []
        lines = [
            f"Step {number}: {self.line(past, question.platform)}"
            for number, past in enumerate(question.past, question.first + 1)
            if past not in turns
        ]
        texts = [f"Task: {question.instruction}"]
        if lines:
            texts.append("Previous actions:\n" + "\n".join(lines))
        if not layout.system:
            texts.insert(0, told)
        opening = Part("text", "\n\n".join(texts))
        tools = self.tools(question.asked, question.platform, question.fed)
        heads = (Part("text", told), *tools) if layout.system else tools
        messages = [Message("system", heads)] if heads else []
        for past in turns:
            assert past.shot
            messages.append(
                Message("user", (opening, past.shot) if past is turns[0] else (past.shot,))
            )
            messages.append(Message("assistant", (self.turn(past, question.platform),)))
        shots = [] if turns else [*_labelled(question)]
        last = question.media if turns else (opening, *shots, *question.media)
        messages.append(Message("user", tuple(last)))
        if self.prefix:
            messages.append(Message("assistant", (Part("text", self.prefix),)))
        return tuple(messages)


UNKNOWN: Final = "(unknown)"


def _labelled(question: Question) -> Iterator[Part]:
    """The earlier screenshots, each after a text that says of which step."""
    for number, past in enumerate(question.past, question.first + 1):
        if past.shot:
            yield Part("text", f"Screenshot of step {number}:")
            yield past.shot


def swipe_ends(action: Action, extent: Pair, *, share: float = 0.3) -> tuple[Point, Point] | None:
    """Where a finger begins and ends; None where neither a direction nor two places are said.

    A swipe whose source names no end goes `share` of the screen further along its direction, from
    its start or else from the middle of the screen, and stops at the edge.

    Args:
        action: a swipe or a scroll; its places are points.
        extent: the numbers of the right and the lower edge.
        share: of the screen.

    Examples:
        >>> swipe_ends(Action("swipe", direction="up"), (1000, 1000))
        (Point(x=500.0, y=500.0, space='norm1000'), Point(x=500.0, y=200.0, space='norm1000'))
    """
    start = centre(action.start[0]) if action.start else None
    if start and action.end:
        return start, centre(action.end[0])
    way = finger_way(action)
    if way is None:
        return None
    spaces: Mapping[Pair, Space] = {(1, 1): "rel", (999, 999): "norm999", (1000, 1000): "norm1000"}
    width, height = extent
    start = start or Point(width / 2, height / 2, spaces.get(extent, "px"))
    x, y = _AHEAD[way]
    across = min(max(start.x + x * share * width, 0), width)
    down = min(max(start.y + y * share * height, 0), height)
    return start, Point(across, down, start.space)


_AHEAD: Final = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
