"""Calls of a provider's own tool: the objects that such models answer with, and their ends.

An answer is a JSON list of items, texts and calls, in the form of the provider's API. In files of
predictions it may also be a larger object of that API, or a single call.
"""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Final

from msgspec.structs import replace

from omnidata.actions import (
    OPPOSITE,
    Action,
    Box,
    Direction,
    Point,
    Region,
    Screen,
    centre,
    finger_way,
)
from omnidata.dialects.base import (
    DIRECTIONS,
    Answer,
    Asked,
    CannotSayError,
    Dialect,
    Layout,
    Past,
    Platform,
    Rules,
    UnreadError,
    map_places,
    size_in_words,
)
from omnidata.errors import UsageError
from omnidata.jsontext import BROKEN, compact, decode, is_number
from omnidata.types import Part

INFEASIBLE: Final = "[INFEASIBLE]"
"""The beginning of a last message that gives up, as OSWorld's agents expect it."""

_AROUND = ("output", "candidates", "message", "content", "parts", "summary")
"""Names in objects around items, as the APIs have them."""
_TEXTS = ("text", "output_text", "thinking", "reasoning_text", "summary_text")
_DEEPEST = 8
_TRIED = 64
_LARGEST = 1e9
_QUOTED = 100
_decoder = json.JSONDecoder()


def _items_in(text: str) -> tuple[list[dict[str, Any]], str, bool]:
    """Return the texts and calls of an answer, the unread rest, and whether it is JSON alone.

    If a list is cut off, its complete objects count; a text without any object is one text.
    """
    stripped = text.strip()
    if not stripped:
        raise UnreadError("the answer is empty")
    try:
        value = decode(stripped)
        if value is not BROKEN and isinstance(value, dict | list):
            return [*_leaves(value, _DEEPEST)], "", True
        found, before, rest = _find_objects(stripped)
    except RecursionError:
        raise UnreadError("the answer is nested too deeply") from None
    leaves = [leaf for each in found for leaf in _leaves(each, _DEEPEST)]
    if not leaves and stripped[0] in "[{":
        raise UnreadError(f"the answer is broken JSON: {_quote(stripped)}")
    if before := before.strip().strip("[").strip():
        leaves.insert(0, {"text": before})
    return leaves, rest, False


def _find_objects(text: str) -> tuple[list[Any], str, str]:
    found: list[Any] = []
    begin = end = 0
    first = len(text)
    for _ in range(_TRIED):
        begin = text.find("{", max(begin, end))
        if begin < 0:
            break
        try:
            value, end = _decoder.raw_decode(text, begin)
        except ValueError:
            begin += 1
            continue
        first = min(first, begin)
        found.append(value)
    return found, text[:first], text[end:].strip().strip(",]").strip() if found else ""


def _leaves(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    if depth < 0:
        raise UnreadError("the answer is nested too deeply")
    if isinstance(value, list):
        for item in value:
            yield from _leaves(item, depth - 1)
    elif isinstance(value, str):
        yield {"text": value}
    elif isinstance(value, dict):
        around = [value[name] for name in _AROUND if isinstance(value.get(name), dict | list)]
        if around:
            yield from _leaves(around[0], depth - 1)
        else:
            yield value


def _words_in(leaf: Mapping[str, Any]) -> str | None:
    if leaf.get("type") == "redacted_thinking":
        return ""
    if leaf.get("type", "text") not in _TEXTS or "action" in leaf:
        return None
    said = leaf.get("text", leaf.get("thinking"))
    return said if isinstance(said, str) else None


def _quote(text: object) -> str:
    return f"{text!r:.{_QUOTED}}"


# The values of a call; each reader raises UnreadError for a value of another type.


def number_in(value: Any, name: str) -> float:
    """Return a number, also one in quotes; numbers beyond any screen are refused."""
    if isinstance(value, str) and len(value) < 40:
        with suppress(ValueError):
            value = int(value) if value.strip().lstrip("-").isdecimal() else float(value)
    if not is_number(value) or not abs(value) <= _LARGEST:
        raise UnreadError(f"{name} is no number: {_quote(value)}")
    return value


def optional_number(values: Mapping[str, Any], name: str) -> float | None:
    """Return a number by its name, or None for null and an absent one."""
    value = values.get(name)
    return None if value is None else number_in(value, name)


def text_in(value: Any, name: str) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise UnreadError(f"{name} is no text: {_quote(value)}")
    return value


def way_in(value: Any, name: str) -> Direction:
    """Return a direction, in any case."""
    way = DIRECTIONS.get(value.strip().lower()) if isinstance(value, str) else None
    if way is None:
        raise UnreadError(f"{name} is no direction: {_quote(value)}")
    return way


def region_in(value: Any, name: str) -> tuple[Region, ...]:
    """Return a point or a box in pixels, in any of its forms; nothing for null.

    Examples:
        >>> region_in([3, 4], "coordinate"), region_in("3, 4.5", "coordinate")
        ((Point(x=3, y=4, space='px'),), (Point(x=3, y=4.5, space='px'),))
    """
    if value is None:
        return ()
    if isinstance(value, Mapping):
        value = [value.get("x"), value.get("y")]
    elif isinstance(value, str) and len(value) < 200:
        value = value.strip().strip("[]()").split(",")
    if isinstance(value, list) and len(value) in (2, 4):
        numbers = [number_in(each, name) for each in value]
        if len(numbers) == 2:
            return (Point(numbers[0], numbers[1], "px"),)
        if numbers[0] <= numbers[2] and numbers[1] <= numbers[3]:
            return (Box(numbers[0], numbers[1], numbers[2], numbers[3], "px"),)
    raise UnreadError(f"{name} is no place: {_quote(value)}")


def keys_in(chord: str) -> tuple[str, ...]:
    """Return the keys of a combination, which a plus joins; the last may be the plus itself.

    Examples:
        >>> keys_in("ctrl+shift+t"), keys_in("ctrl++"), keys_in("+")
        (('ctrl', 'shift', 't'), ('ctrl', '+'), ('+',))
    """
    plus = ("+",) if chord.endswith("+") else ()
    return (*filter(None, (key.strip() for key in chord.split("+"))), *plus)


# The parts of an action, as values of a call.


def chord_of(keys: Sequence[str]) -> str:
    """Return keys as `keys_in` reads them.

    Raises:
        CannotSayError: a name has a sign that stands for something else.
    """
    chord = "+".join(keys)
    if not keys or keys_in(chord) != tuple(keys) or chord.split() != [chord]:
        raise CannotSayError(f"a combination of keys cannot hold {list(keys)!r:.{_QUOTED}}")
    return chord


def whole(value: float) -> float:
    """Return a number without a fraction of zero: 12 for 12.0."""
    return int(value) if float(value).is_integer() else value


def place_of(places: Sequence[Region]) -> tuple[float, float] | None:
    """Return the first of some places as numbers of JSON; None if there is none."""
    if not places:
        return None
    point = centre(places[0])
    if not math.isfinite(point.x) or not math.isfinite(point.y):
        raise CannotSayError("a place is no number")
    return whole(point.x), whole(point.y)


def content_way(action: Action) -> Direction:
    """Return the part of the content that a scroll brings into sight.

    Raises:
        CannotSayError: the action has no direction.
    """
    way = finger_way(action)
    if way is None:
        raise CannotSayError(f"the {action.kind} has no direction")
    return OPPOSITE[way]


class ProviderDialect(Dialect):
    """A dialect of calls; a subclass knows the objects of its provider's API.

    Attributes:
        tool: the name of the tool, by which an adapter knows that its model has it.
        unit: the prompt's sentence about the unit of places.
        pointing, acting: its requests for a place and for an action.
        manners: its rules.
        phone: its explanation of the tool on a phone.
        last: its request for the last answer, and its name for it.
    """

    tool: ClassVar[str]
    layout: ClassVar[Layout] = Layout(turns=True, screenshots=4)
    unit: ClassVar[str]
    pointing: ClassVar[str]
    acting: ClassVar[str]
    manners: ClassVar[str]
    phone: ClassVar[str]
    last: ClassVar[tuple[str, str]] = ("answer without a call", "that answer")

    def vocabulary(self, asked: Asked, platform: Platform, fed: Screen) -> str:
        unit = self.unit + (size_in_words(fed) if self.frame.space == "px" else "")
        if asked == "point":
            return (
                f"You find elements on screenshots. {self.pointing} the middle of the element that "
                f"is described. {unit}."
            )
        answer, it = self.last
        phone = f"The device is a phone: {self.phone}\n" if platform == "mobile" else ""
        return (
            "You control a device to fulfil a task. You see the screen as it is now, and "
            f"{self.acting}. {unit}.\n{self.manners}\n{phone}"
            f"When the task is done, {answer}, with what was asked for, if anything. "
            f"If it cannot be done, begin {it} with {INFEASIBLE}."
        )

    @abstractmethod
    def calls(self, action: Action, fed: Screen, platform: Platform) -> list[dict[str, Any]]:
        """Return the calls that express an action, without the parts that they cannot.

        Raises:
            CannotSayError: no call expresses it.
        """

    @abstractmethod
    def actions(self, leaf: Mapping[str, Any], fed: Screen, rules: Rules) -> list[Action]:
        """Return the actions of a call.

        Raises:
            UnreadError: it is no call of the tool.
        """

    @abstractmethod
    def message(self, text: str) -> dict[str, Any]:
        """Return an item that says something."""

    @abstractmethod
    def tool_declarations(
        self, asked: Asked, platform: Platform, fed: Screen
    ) -> Sequence[Mapping[str, Any]]:
        """Return the declaration of the tool in a request, as objects of the API.

        Raises:
            UsageError: the size of the screenshot is not known, which the tool declares.
        """

    def tool_size(self, fed: Screen) -> Screen:
        """Return the size that the tool declares.

        Raises:
            UsageError: it is unknown.
        """
        if min(fed) > 0:
            return fed
        raise UsageError(
            f"the tool of {self.name} declares the size of the screenshot, which is unknown",
            where=f"-T dialect={self.name}",
            expected="data whose rows say how large the screenshot is",
            remedy="convert the data with omnidata convert, which measures pictures",
        )

    def merge_calls(self, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the items of an answer, where the API has several calls in one."""
        return items

    def read(self, text: str, fed: Screen, *, rules: Rules = "lenient") -> Answer:
        """Read an answer: calls, or a message that ends the episode.

        An action "ask" follows a call to which the provider's safety checks require consent.
        """
        leaves, rest, is_whole = _items_in(text)
        if rules == "strict" and not is_whole:
            raise UnreadError("the answer is more than the API's objects")
        said: list[str] = []
        actions: list[Action] = []
        for leaf in leaves:
            words = _words_in(leaf)
            if words is None:
                actions += self.actions(leaf, fed, rules)
            elif words:
                said.append(words)
        thought = "\n".join(said)
        if actions:
            return Answer(tuple(actions), thought, rest)
        end = Action("done", text=thought)
        if rules == "lenient" and INFEASIBLE in thought:
            reason = thought.replace(INFEASIBLE, "", 1).strip()
            end = Action("done", text=reason, status="failure")
        return Answer((end,), rest=rest)

    def tools(self, asked: Asked, platform: Platform, fed: Screen) -> tuple[Part, ...]:
        return tuple(
            Part("tool", compact(each), role=self.tool)
            for each in self.tool_declarations(asked, platform, fed)
        )

    def turn(self, past: Past, platform: Platform) -> Part:
        """Return an earlier step as calls, or as text if no call expresses it.

        Its places are whole numbers: the APIs have no others, and refuse a history with them.
        """
        actions = [map_places(action, _nearest) for action in past.actions]
        try:
            return Part("call", self.write(actions, past.fed, platform), role=self.tool)
        except CannotSayError:
            return super().turn(past, platform)

    def write(self, actions: Sequence[Action], fed: Screen, platform: Platform) -> str:
        """Write actions as the API's objects, without ids; see `Dialect.write`."""
        said = [each for action in actions for each in (action, *action.then)]
        if not said:
            raise CannotSayError("there is no action")
        items: list[dict[str, Any]] = []
        for action in said:
            self.check(action, platform)
            if action.kind != "done":
                items += self.calls(action, fed, platform)
            elif action.status == "failure":
                items.append(self.message(f"{INFEASIBLE} {action.text or ''}".rstrip()))
            else:
                items.append(self.message(action.text or "The task is done."))
        text = compact(self.merge_calls(items))
        try:
            read = self.read(text, fed).actions
        except UnreadError as error:
            raise CannotSayError(f"{self.name}: {error}") from None
        if len(read) != len(said) or not all(map(_is_same, said, read)):
            raise self.refusal(said[0], "it would be read as another action")
        return text


def _nearest(point: Point) -> Point:
    if not math.isfinite(point.x) or not math.isfinite(point.y):
        return point
    return replace(point, x=round(point.x), y=round(point.y))


_COMPARED = ("text", "button", "count", "keys", "held", "path", "app", "url", "submit", "clear")


def _is_same(said: Action, read: Action) -> bool:
    """Return whether the read action equals the written one, except for differences no scorer sees.

    A swipe with both places is read as a drag, one with a direction as a scroll that shows the
    same; a phone's enter as a key. Tools may set an unspecified wait or scroll amount. Success is
    the end without a status.
    """
    kind = said.kind
    wanted: Mapping[str, str] = {
        "swipe": "drag" if said.start and said.end else "scroll",
        "enter": "keys",
        "hotkey": "keys" if len(said.keys) == 1 else "hotkey",
    }
    if read.kind != wanted.get(kind, kind):
        return False
    if kind == "done":
        same_end = (said.status == "failure") == (read.status == "failure")
        return same_end and (not said.text or said.text == read.text)
    if read.kind == "scroll":
        amount = (read.amount, read.amount_unit)
        if finger_way(said) != finger_way(read) or (
            said.amount is not None and (said.amount, said.amount_unit) != amount
        ):
            return False
        if not said.start:
            return said.held == read.held
    elif kind == "swipe" and (
        said.amount is not None or (said.direction and finger_way(said) != finger_way(read))
    ):
        return False
    for name in ("start", "end") if kind != "tap" else ("start",):
        if list(map(_spot, getattr(said, name)[:1])) != list(map(_spot, getattr(read, name))):
            return False
    if kind != "wait" and said.seconds is not None and said.seconds != read.seconds:
        return False
    if kind == "enter":
        return True
    return all(
        getattr(said, name) in (getattr(read, name), None)
        or (name in ("submit", "clear") and not getattr(said, name) and not getattr(read, name))
        for name in _COMPARED
    )


def _spot(region: Region) -> tuple[float, ...]:
    if isinstance(region, Point):
        return region.x, region.y
    return region.left, region.top, region.right, region.bottom
