"""Read answers in a dialect as the answers that a benchmark's rules judge.

text -> the dialect's actions -> places in the benchmark's unit -> `Speech.adopt`
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, get_args

from msgspec import structs

from omnidata.actions import Action, Box, Point, Region, Screen, Space, centre, convert, ratio
from omnidata.dialects import Answer, CannotSayError, Dialect, Rules, UnreadError
from omnidata.dialects.points import read_place
from omnidata.errors import PluginError
from omnidata.jsontext import is_number
from omnidata.tasks.benchmark import ParsedAnswer, Receipt, Speech
from omnidata.tasks.coordinates import sent_size
from omnidata.tasks.profile import LONGEST
from omnidata.types import Step

_PROSE: Final = frozenset({"none", "wait", "look", "done", "ask"})
"""Kinds of action that a reader may find in a text that acts on nothing."""
_FARTHEST: Final = 1e9
_SPACES: Final = frozenset(get_args(Space))


@dataclass(frozen=True, slots=True)
class DialectAnswer:
    """An answer as the dialect and the benchmark read it.

    Attributes:
        read: what the dialect read; None if the text is no answer in it.
        adopted: the same for the rules; None if it was not read, or the benchmark has no words
            for it.
        reason: why there is no `adopted`.
        left_out: how many actions the benchmark left out, as it takes one a step.
    """

    read: Answer | None
    adopted: ParsedAnswer[Any] | None
    reason: str = ""
    left_out: int = 0


class DialectReader:
    """Reads answers of a benchmark that is asked in a dialect.

    Args:
        dialect: the dialect.
        speech: takes the actions that were read.
        unit: the unit in which it takes places; None for pixels of the sent picture.
    """

    def __init__(self, dialect: Dialect, speech: Speech, unit: Space | None) -> None:
        self.dialect, self._speech, self._unit = dialect, speech, unit or "px"

    def adopt(
        self, step: Step, text: str, receipt: Receipt, fed: Screen, rules: Rules
    ) -> DialectAnswer:
        """Read an answer, and return it as rules judge it.

        Args:
            step: of the question.
            text: the whole answer.
            receipt: for judging, as of `receipt_and_size`.
            fed: width and height of the picture as it was fed, in pixels.
            rules: of the reader.
        """
        try:
            answer = self.read(text, fed, rules)
        except UnreadError as error:
            return DialectAnswer(None, None, str(error))
        actions = [self._plain_keys(self.in_unit(action, fed)) for action in answer.actions]
        taken = actions[: self._speech.takes(actions)]
        left_out = len(actions) - len(taken)
        try:
            return DialectAnswer(answer, self._speech.adopt(taken, step, receipt), "", left_out)
        except CannotSayError as error:
            return DialectAnswer(answer, None, str(error), left_out)

    def read(self, text: str, fed: Screen, rules: Rules = "lenient") -> Answer:
        """Return the actions of an answer, at least one, as the dialect gives them.

        Asked for a place, the lenient reader also takes a place in any known notation.

        Args:
            text: the whole answer.
            fed: width and height of the picture as it was fed, in pixels.
            rules: of the reader.

        Raises:
            UnreadError: the text is no answer.
            PluginError: the dialect fails, or returns something else than an answer.
        """
        whole = self._with_prefix(text)
        try:
            found = self._call_read(whole, fed, rules)
        except UnreadError:
            place = self._read_place(whole) if rules == "lenient" else None
            if place is None:
                raise
            found = Answer((Action("tap", (place,)),))
        except OverflowError:  # of an integer beyond all floats, wherever a reader reckons with it
            raise UnreadError("a number in the answer is beyond all reckoning") from None
        if not (isinstance(found, Answer) and found.actions and all(map(_is_made, found.actions))):
            what = f"gives {found!r:.80} for the answer {text[:60]!r}"
            raise refuse_dialect(self.dialect, "read", what)
        placed = rules == "strict" or any(action.start for action in found.actions)
        if not placed and (place := self._read_place(whole)):  # words beside no call end a turn
            found = replace(found, actions=(Action("tap", (place,)),))
        for action in found.actions:
            for region in (*action.start, *action.end, *action.path):
                if not all(abs(number) <= _FARTHEST for number in _numbers(region)):  # NaN too
                    raise UnreadError("a place is on no screen of this world")
        return found

    def is_read(self, text: str, fed: Screen, rules: Rules) -> bool:
        """Return whether a text is an answer by these rules to a picture that was fed so."""
        try:
            self.read(text, fed, rules)
        except UnreadError:
            return False
        return True

    def acts(self, step: Step, text: str, receipt: Receipt) -> bool:
        """Return whether a text has an action in the dialect's own form.

        Ends, waits and questions are none: many readers take any prose for one of them.
        """
        sent = sent_size(receipt, where=step.sample_id)
        fed = sent.size if sent else self.dialect.frame.fed_size(step.screen)
        try:
            found = self._call_read(self._with_prefix(text), fed, "lenient")
        except (UnreadError, OverflowError):
            return False
        return any(action.kind not in _PROSE for action in found.actions)

    def _with_prefix(self, text: str) -> str:
        prefix, text = self.dialect.prefix, text[:LONGEST]
        return text if text.startswith(prefix) else prefix + text

    def _call_read(self, text: str, fed: Screen, rules: Rules) -> Answer:
        try:
            return self.dialect.read(text, fed, rules=rules)
        except (UnreadError, OverflowError):
            raise
        except Exception as error:
            what = f"fails on the answer {text[:60]!r}: {error!r:.200}"
            raise refuse_dialect(self.dialect, "read", what) from error

    def _read_place(self, text: str) -> Region | None:
        if self._speech.asked != "point":
            return None
        try:
            return read_place(text, self.dialect.frame.space)
        except ValueError:
            return None

    def receipt_and_size(self, step: Step, receipt: Receipt) -> tuple[Receipt, Screen]:
        """Return the receipt for judging, and the size of the picture as it was fed, in pixels.

        A receipt without a size gets, for pixels, that of the row or of the dialect's frame.
        """
        frame = self.dialect.frame
        sent = sent_size(receipt, where=step.sample_id)
        if sent:
            return receipt, sent.size
        if "px" not in (frame.space, self._unit) or min(step.screen) < 1:
            return receipt, frame.fed_size(step.screen)
        size = self._stated_size(step) or frame.fed_size(step.screen)
        line = {"role": "screenshot", "width": size[0], "height": size[1]}
        return {"parts": [{**line, "original": list(step.screen)}]}, size

    def _stated_size(self, step: Step) -> Screen | None:
        """Return the row's fed size; one of another frame is no multiple of the frame's factor."""
        size, factor = self._speech.fed_size(step), self.dialect.frame.factor
        if size is None or factor <= 1 or any(side % factor for side in size):
            return None
        return size

    def in_unit(self, action: Action, fed: Screen) -> Action:
        """Return an action that was read, with points in the unit that the benchmark takes.

        Args:
            action: as the dialect gave it; pixels are those of the picture as it was fed.
            fed: its width and height in pixels.
        """
        return move_places(action, lambda region: _to_unit(region, self._unit, fed))

    def _plain_keys(self, action: Action) -> Action:
        if not action.keys and not action.held:
            return action
        plain = self.dialect.plain_keys
        return structs.replace(action, keys=plain(action.keys), held=plain(action.held))


def refuse_dialect(dialect: Dialect, method: str, what: str) -> PluginError:
    """Return the error about a dialect's method that fails or returns something else.

    Args:
        dialect: the dialect.
        method: "read" or "write".
        what: its mistake, as the rest of a sentence.
    """
    kind = type(dialect)
    right = {"read": "an Answer with an action, or an UnreadError"}
    return PluginError(
        f"`{method}` of the dialect {dialect.name} {what}",
        where=f"{kind.__module__}.{kind.__qualname__}",
        expected=right.get(method, "a text, or a CannotSayError"),
        remedy="fix the dialect, or report it to its authors",
    )


def _is_made(action: object) -> bool:
    if not isinstance(action, Action) or not isinstance(action.text, str | None):
        return False
    for region in (*action.start, *action.end, *action.path):
        if not isinstance(region, Point | Box) or region.space not in _SPACES:
            return False
        if not all(map(is_number, _numbers(region))):
            return False
    return all(isinstance(key, str) for key in (*action.keys, *action.held))


def _numbers(region: Region) -> tuple[float, ...]:
    if isinstance(region, Box):
        return region.left, region.top, region.right, region.bottom
    return region.x, region.y


def move_places(action: Action, place: Callable[[Region], Point]) -> Action:
    """Return an action with a point in place of each of its regions."""
    if not (action.start or action.end or action.path):
        return action
    start, end, path = (tuple(map(place, one)) for one in (action.start, action.end, action.path))
    return structs.replace(action, start=start, end=end, path=path)


def to_original(region: Region, fed: Screen, original: Screen) -> Point:
    """Return the middle of a region; pixels of the fed picture become those of the original."""
    point = centre(region)
    if point.space != "px" or min(*fed, *original) < 1:
        return point
    return Point(point.x * original[0] / fed[0], point.y * original[1] / fed[1], "px")


def _to_unit(region: Region, unit: Space, fed: Screen) -> Point:
    point = centre(region)
    if point.space == unit:
        return point
    if "px" not in (point.space, unit):
        (_, had), (_, has) = ratio(point.space, 1), ratio(unit, 1)
        return Point(point.x * has / had, point.y * has / had, unit)
    return convert(point, unit, fed) if min(fed) > 0 else point
