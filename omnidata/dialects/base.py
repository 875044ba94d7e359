"""Base class for dialects: how a family of models writes actions, and how prompts ask for them.

A dialect knows no benchmark and no model. It reads a text as actions and writes actions as text. It
words a prompt with the names that its models were trained on. Its frame sets the size of a fed
picture and the unit of places.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, get_args

from msgspec import structs

from omnidata.actions import (
    Action,
    Direction,
    Kind,
    Pair,
    Point,
    Screen,
    Sense,
    Space,
    centre,
    finger_way,
)
from omnidata.types import Conversation, Message, Part

Platform = Literal["mobile", "desktop", "web"]
Asked = Literal["action", "point"]
"""The subject of a question: the next action, or a place on the screen."""
Rules = Literal["lenient", "strict"]
"""The reading of answers: lenient, by their plain meaning, or strict, as the released parser does,
with its failures."""


def kinds(names: str) -> frozenset[Kind]:
    """Return kinds of actions from their names, which blanks separate."""
    return frozenset(Action(name).kind for name in names.split())  # type: ignore[arg-type]  # `Action` checks it


DIRECTIONS: Final[Mapping[str, Direction]] = {way: way for way in get_args(Direction)}


class UnreadError(ValueError):
    """The text is not an answer in the dialect; the message says why."""


class CannotSayError(ValueError):
    """A dialect, or the answers of a benchmark, cannot express an action."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A read answer.

    Attributes:
        actions: in order; at least one. Places are points in the unit of the dialect's frame, or
            boxes if the dialect has them.
        thought: the model's reasons, without the marks around them.
        rest: the unread part of the text; empty if there is none.
    """

    actions: tuple[Action, ...]
    thought: str = ""
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Frame:
    """The size of a picture as fed to a model, and the unit of places.

    Attributes:
        space: the unit of places; "px" are pixels of the picture as it is fed.
        factor: each side of a fed picture is a multiple of it, in pixels; 1 = any size.
        min_pixels, max_pixels: limits of a fed picture, in pixels; None = any.
        longest: the longest side of a fed picture in pixels; None = any.

    Source: `smart_resize` of Qwen's processors (transformers, `Qwen2VLImageProcessor`).

    Examples:
        >>> Frame("px", 28, 56 * 56, 28 * 28 * 1280).fed_size((1920, 1080))
        (1316, 728)
    """

    space: Space
    factor: int = 1
    min_pixels: int | None = None
    max_pixels: int | None = None
    longest: int | None = None

    def fed_size(self, screen: Screen) -> Screen:
        """Return width and height of a picture as fed, in pixels; an unknown size stays unknown."""
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
        """Return the coordinates of the right and the lower edge of a fed picture."""
        edges: Mapping[Space, float] = {"rel": 1, "norm1000": 1000, "norm999": 999}
        return fed if self.space == "px" else (edges[self.space], edges[self.space])


@dataclass(frozen=True, slots=True)
class Past:
    """An earlier step, as a prompt shows it.

    Attributes:
        actions: its actions; places are points in the unit of the dialect's frame. Empty if
            unknown.
        shot: the screenshot before the actions; None if it is not shown.
        fed: width and height of that screenshot as fed, in pixels; (0, 0) if unknown.
    """

    actions: tuple[Action, ...]
    shot: Part | None = None
    fed: Screen = (0, 0)


@dataclass(frozen=True, slots=True)
class Question:
    """One step for a dialect to ask about.

    Attributes:
        asked: an action or a point.
        platform: of the step.
        instruction: the task of the agent, or the element to point at.
        media: the shown parts of the step in order, each after its label; the screenshot has the
            role "screenshot" and its `size` is `fed`.
        past: the earlier steps in the prompt, the oldest first.
        first: index of the first of them, from 0.
        fed: width and height of the screenshot as fed, in pixels; (0, 0) if unknown.
        system: the user's text instead of the dialect's vocabulary; None for the vocabulary.
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
    """How a prompt shows earlier steps.

    Attributes:
        turns: whether earlier steps with a screenshot are turns of the conversation; otherwise they
            are lines of one text.
        screenshots: the largest number of screenshots in a prompt, with the current one.
        actions: the largest number of earlier actions; None = all.
        system: whether the vocabulary is in the system message; otherwise it is before the
            instruction.
    """

    turns: bool = False
    screenshots: int = 1
    actions: int | None = None
    system: bool = True


class Dialect(ABC):
    """Base class for dialects; a new one defines the members without a default.

    Attributes:
        name: as in `-T dialect=NAME`, with the version: "ui-tars-1.5".
        title: display name.
        checkpoints: the models trained on it, by their publishers' names.
        source: the parser that `strict` follows: repository and commit, or "documentation".
        frame: size of fed pictures and unit of places.
        layout: how prompts show earlier steps.
        layouts: the same for platforms that differ.
        says: the kinds of actions that it can express, by platform; other platforms are refused.
        stop: texts at which answers end, in addition to the model's own end.
        special_tokens: whether answers consist of special tokens, so a decoder has to keep them.
        prefix: the beginning of the model's answer, if the prompt already contains it.
        key_names: the family's name of a key -> pyautogui's, where they differ.

    See `docs/dialects.md` for a worked example: a dialect in one module.
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
            text: the untrusted answer; a JSON object or list if the model called a provider's tool.
                Reading takes time linear in its length.
            fed: width and height of the screenshot as fed, in pixels; (0, 0) if unknown.
            rules: lenient or strict.

        Raises:
            UnreadError: the text is not an answer in the dialect.
        """

    @abstractmethod
    def write(self, actions: Sequence[Action], fed: Screen, platform: Platform) -> str:
        """Write actions as the model would, for histories and as training targets.

        Args:
            actions: one or more; their places are points in the unit of the frame.
            fed: as in `read`, of the screenshot before the actions.
            platform: of the names.

        Raises:
            CannotSayError: the dialect has no words for one of them.
        """

    @abstractmethod
    def vocabulary(self, asked: Asked, platform: Platform, fed: Screen) -> str:
        """Return the part of a prompt that lists the actions.

        Args:
            asked: an action or a point.
            platform: of the step.
            fed: as in `read`.
        """

    def in_sense(self, labels: Sense) -> Dialect:
        """Return the dialect of models that learnt their scrolls from labels of a benchmark.

        Args:
            labels: whose direction those labels state: the finger's, or the content's.

        Returns:
            This one by default: a scroll means the same on all benchmarks.
        """
        return self

    def refusal(self, action: Action, what: str = "") -> CannotSayError:
        """Return the error of an action that the dialect cannot express.

        Args:
            action: the action.
            what: the part of it; empty for all of it.
        """
        return CannotSayError(f"{self.name} cannot say {action.label}" + (what and f": {what}"))

    def check(self, action: Action, platform: Platform, *fields: str) -> None:
        """Refuse a kind of action that a platform lacks, or a field that cannot be expressed.

        Args:
            action: the action.
            platform: of the names.
            fields: names of fields that have to have their defaults.

        Raises:
            CannotSayError: it is refused.
        """
        if action.kind not in self.says.get(platform, ()):
            raise self.refusal(action, f"on {platform}")
        for name in fields:
            value = getattr(action, name)
            if value != getattr(_BARE, name) and value is not False:
                raise self.refusal(action, name)

    def layout_on(self, platform: Platform) -> Layout:
        """Return how prompts show earlier steps on a platform."""
        return self.layouts.get(platform, self.layout)

    def plain_keys(self, keys: Sequence[str]) -> tuple[str, ...]:
        """Return keys by pyautogui's names, which benchmarks of desktops use.

        Args:
            keys: as `read` returns them, pressed at once or one after the other.
        """
        return tuple(self.key_names.get(key, key) for key in keys)

    def line(self, past: Past, platform: Platform) -> str:
        """Return an earlier step as text: its actions as `write` has them, or "(unknown)"."""
        if not past.actions:
            return UNKNOWN
        actions = [self.brief(action) for action in past.actions]
        try:
            return self.write(actions, past.fed, platform)
        except CannotSayError:
            return " ".join(action.label for action in actions)

    def brief(self, action: Action) -> Action:
        """Return an earlier action without the parts that the dialect cannot express.

        By default this is the action itself.
        """
        return action

    def tools(self, asked: Asked, platform: Platform, fed: Screen) -> tuple[Part, ...]:
        """Return the parts that declare a provider's own tool to the model; none by default.

        Args:
            asked: an action or a point.
            platform: of the step.
            fed: as in `read`.

        Raises:
            UsageError: the tool cannot be declared for a screenshot of unknown size.
        """
        return ()

    def turn(self, past: Past, platform: Platform) -> Part:
        """Return an earlier step with a screenshot as a turn of the assistant."""
        return Part("text", self.line(past, platform))

    def conversation(self, question: Question) -> Conversation:
        """Return the prompt of a step: vocabulary, earlier steps, media and instruction.

        If the layout has turns, earlier steps with a screenshot are turns: the user shows the
        screenshot, the assistant states the action. Other earlier steps are lines of text.
        Screenshots that the user asked for are before the current one.

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
        shots = [] if turns else [*_label_screenshots(question)]
        last = question.media if turns else (opening, *shots, *question.media)
        messages.append(Message("user", tuple(last)))
        if self.prefix:
            messages.append(Message("assistant", (Part("text", self.prefix),)))
        return tuple(messages)


UNKNOWN: Final = "(unknown)"
DEVICES: Final[Mapping[Platform, str]] = {
    "mobile": "a phone",
    "desktop": "a computer",
    "web": "a browser",
}
_BARE: Final = Action("none")


def size_in_words(fed: Screen) -> str:
    """Return the size of a fed picture as the end of a sentence; empty if it is unknown."""
    return f", which is {fed[0]} wide and {fed[1]} high" if min(fed) > 0 else ""


def press(keys: Sequence[str], seconds: float | None = None) -> Action:
    """Return the action of keys that are pressed at once; one key alone is pressed."""
    return Action("hotkey" if len(keys) > 1 else "keys", keys=tuple(keys), seconds=seconds)


def map_places(action: Action, change: Callable[[Point], Point]) -> Action:
    """Return an action with changed places; boxes become their centres first."""
    start, end = (tuple(change(centre(at)) for at in part) for part in (action.start, action.end))
    return structs.replace(action, start=start, end=end, path=tuple(map(change, action.path)))


def join_moves(actions: Iterable[Action], kinds: Sequence[Kind] = ("drag",)) -> list[Action]:
    """Start a drag where the pointer was moved before it.

    Args:
        actions: in order; only drags without a start get one.
        kinds: kinds of actions that begin at the pointer.

    Examples:
        >>> at = (Point(1, 2, "px"),)
        >>> join_moves([Action("move", at), Action("drag")])[0].start == at
        True
    """
    joined: list[Action] = []
    for action in actions:
        if action.kind in kinds and not action.start and joined and joined[-1].kind == "move":
            action = structs.replace(action, start=joined.pop().start)
        joined.append(action)
    return joined


def _label_screenshots(question: Question) -> Iterator[Part]:
    for number, past in enumerate(question.past, question.first + 1):
        if past.shot:
            yield Part("text", f"Screenshot of step {number}:")
            yield past.shot


def swipe_ends(action: Action, extent: Pair, *, share: float = 0.3) -> tuple[Point, Point] | None:
    """Return the places where a finger begins and ends; None without a direction or two places.

    A swipe without an end goes `share` of the screen along its direction, from its start or else
    from the middle of the screen, and stops at the edge.

    Args:
        action: a swipe or a scroll; its places are points.
        extent: coordinates of the right and the lower edge.
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
