"""Do the texts of OmniGUI's rows agree with the rest: instructions, and histories in words?

The wording of `action_history` is the data's own. Only what is written as the benchmark's own
formatter writes it (`TAP at [x, y]`, `INPUT text: "..."`) is held against a target without words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from omnidata.actions import NUMBERS, Action, Box, Point, Region, Screen, convert
from omnidata.errors import Finding
from omnidata.loaders.language_check import foreign
from omnidata.tasks.omnigui.files import Note, Row

_SLACK = 5.0
"""Units of 0-1000 that a place in a history may lie beside its target: histories are rounded."""

_POINT_REACH = 20.0
"""Units of 0-1000 about a target that is a point."""

_NUMBER = r"\s*(-?\d+(?:\.\d+)?)\s*"
_PLACE = re.compile(rf"\[{_NUMBER},{_NUMBER}\]")
_FORM = re.compile(
    rf"({'|'.join(NUMBERS)})"
    rf'(?: at {_PLACE.pattern}| from {_PLACE.pattern}(?: to {_PLACE.pattern})?| text: ".*")?\s*',
    re.DOTALL,
)
_TYPED = re.compile(r'INPUT text: "(.*)"\s*', re.DOTALL)


def _is_history(value: Sequence[object]) -> TypeGuard[Sequence[Mapping[str, Any]]]:
    """Whether a list is a history, rendered."""
    return all(
        isinstance(entry, dict) and {"step_index", "action_text"} <= entry.keys() for entry in value
    )


def check_languages(
    metadata: Row, rows: Sequence[tuple[Row, str, Note]], *, where: str, language: str, note: Note
) -> None:
    """Every text of an episode once: does it stand in the column of its language?

    Args:
        metadata: the episode's row.
        rows: its steps' rows, their places, and what takes the findings about them.
        where: the episode's place.
        language: the one that the episode is asked in.
        note: takes the findings about its own row.
    """
    columns = [("instruction_en", "en"), ("instruction_zh", "zh")]
    if language == "zh":  # in English apps the column may hold either
        columns.append(("instruction", "zh"))
    seen = set()
    for row, place, tell in ((metadata, where, note), *rows):
        for column, wanted in columns:
            text = row.get(column)
            if not isinstance(text, str) or (column, text) in seen:
                continue
            seen.add((column, text))
            if reason := foreign(text, wanted):
                tell(
                    Finding(
                        "language-differs",
                        "warning",
                        place,
                        f"{column}, {reason}: {text[:60]!r}",
                        f'a text in "{wanted}"',
                        "put the text into the column of its language",
                    )
                )


class HistoryCheck:
    """Holds the histories that an episode's rows bring against the targets of its steps.

    Args:
        past: by step, the actions of those that were read so far.
        screens: the screens on which they were made.
    """

    def __init__(self, past: Mapping[int, Action | None], screens: Mapping[int, Screen]) -> None:
        self._past = past
        self._screens = screens
        self._said: set[tuple[int, str]] = set()

    def look(self, row: Row, *, index: int, where: str, note: Note) -> None:
        """Check one row; what rows only carry on from the row before is said once.

        Args:
            row: of step `index`.
            index: 0-based.
            where: the row's place.
            note: takes the finding.
        """
        history = row.get("action_history")
        if not isinstance(history, list):  # as null: the row brings none
            return
        if _is_history(history):
            reason = self._compared(history, index)
        else:
            reason = f"an entry is no {{step_index, action_text}}: {str(history)[:60]}"
        if reason:
            note(
                Finding(
                    "history-differs",
                    "warning",
                    where,
                    f"action_history: {reason}",
                    f"steps 0 to {index - 1}, as their targets say" if index else "no step",
                    "make the history again from the targets",
                )
            )

    def _compared(self, history: Sequence[Mapping[str, Any]], index: int) -> str:
        """Where the history and the targets part; empty if nowhere."""
        numbers = [entry["step_index"] for entry in history]
        reason = ""
        if numbers != list(range(index)):
            reason = f"it lists the steps {str(numbers)[:60]}"
        for number, text in ((e["step_index"], str(e["action_text"])) for e in history):
            target = self._past.get(number) if isinstance(number, int) else None
            if target is None or (number, text) in self._said:
                continue
            if contradiction := _contradicts(text, target, self._screens[number]):
                self._said.add((number, text))
                reason = reason or f"step {number}, {text[:60]!r}: {contradiction}"
        return reason


def _contradicts(text: str, target: Action, screen: Screen) -> str:
    """Why the text cannot be said of the action; empty if it can."""
    if target.words is not None:
        same = text.split() == target.words.split()
        return "" if same else f"its action_text is {target.words[:60]!r}"
    form = _FORM.fullmatch(text)
    if form is None:  # in words of its own
        return ""
    if form[1] != target.label:
        return f"its target is {target.label}"
    if target.kind == "type":
        typed = _TYPED.fullmatch(text)
        return "" if typed is None or typed[1] == target.text else f"it types {target.text!r}"
    for place, regions in zip(_PLACE.findall(text), (target.start, target.end), strict=False):
        point = Point(float(place[0]), float(place[1]), "norm1000")
        if regions and not any(_near(point, region, screen) for region in regions):
            return "the place is not that of its target"
    return ""


def _near(point: Point, region: Region, screen: Screen) -> bool:
    if isinstance(region, Box):
        low = convert(Point(region.left, region.top, region.space), "norm1000", screen)
        high = convert(Point(region.right, region.bottom, region.space), "norm1000", screen)
        reach = _SLACK
    else:
        low = high = convert(region, "norm1000", screen)
        reach = _POINT_REACH
    return low.x - reach <= point.x <= high.x + reach and low.y - reach <= point.y <= high.y + reach
