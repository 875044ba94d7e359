"""One OmniGUI row -> the parts of a step, with a finding for everything doubtful."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeGuard

from msgspec.structs import replace

from omnidata.actions import NUMBERS, Action, Box, Point, Region, Screen, convert
from omnidata.errors import DataError
from omnidata.jsontext import BROKEN, decode, is_number, whole_number
from omnidata.loaders.episode_tree import FARTHEST, MEDIA_COLUMNS, TARGET_COLUMNS
from omnidata.loaders.files import OTHER_DATA
from omnidata.loaders.instructions import foreign
from omnidata.loaders.load import RowContext, size_of
from omnidata.media import unsafe
from omnidata.tasks.json_answers import LABELS
from omnidata.tasks.omnigui.answers import PLACED
from omnidata.tasks.omnigui.files import Row
from omnidata.types import MediaRef, Modality

# Every form of a target in OmniGUI rows: text or lists, points, one or more rectangles.
#
# `docs/benchmarks/omnigui.md` lists the forms and how the released evaluator reads them. Where it
# reads "no target", the target is unreadable here too, so that both profiles judge the same steps;
# several rectangles, on which it raises, are alternatives.


class TargetError(Exception):
    """The text of a target is unreadable; the message has the reason."""


def read_target(row: Mapping[str, Any], name: str) -> tuple[Region, ...]:
    """Return the regions of one target, in pixels of the screenshot.

    Args:
        row: a step's row.
        name: "touch" or "lift"; `result_<name>_xy` wins over the older `result_<name>_yx`.

    Returns:
        Alternatives in the order of the row; empty if the row names no target.

    Raises:
        TargetError: the target has an unknown form.

    Examples:
        >>> read_target({"result_touch_xy": "[[210,786],[351,850]]"}, "touch")
        (Box(left=210, top=786, right=351, bottom=850, space='px'),)
        >>> read_target({"result_touch_yx": [511, 389]}, "touch")
        (Point(x=389, y=511, space='px'),)
    """
    value, swapped = row.get(f"result_{name}_xy"), False
    if value is None:
        value, swapped = row.get(f"result_{name}_yx"), True
    if isinstance(value, str):
        if not value.strip():
            return ()
        try:
            value = decode(value)
        except RecursionError:
            raise TargetError("it is nested too deeply") from None
        if value is BROKEN:
            raise TargetError("it is not JSON")
    if value is None or value == []:
        return ()
    if not isinstance(value, list):
        raise TargetError(f"it is a {type(value).__name__}, not a list")
    if not all(isinstance(item, list) for item in value):
        if any(isinstance(item, list) for item in value) or len(value) != 2:
            raise TargetError(f"it is a flat list of {len(value)}, not [x, y]")
        return (_region([value], swapped),)
    if all(item and all(isinstance(corner, list) for corner in item) for item in value):
        return tuple(_rectangle(corners, swapped) for corners in value)
    return (_rectangle(value, swapped),)


def _rectangle(corners: list[Any], swapped: bool) -> Region:
    if len(corners) < 2:
        raise TargetError("it has one corner, and a rectangle needs two")
    if any(len(corner) != 2 for corner in corners[:2]):
        raise TargetError("a corner does not have two coordinates")
    return _region(corners[:2], swapped)


def _region(corners: list[Any], swapped: bool) -> Region:
    for number in chain(*corners):
        if not is_number(number):
            raise TargetError(f"a coordinate is a {type(number).__name__}")
        if not abs(number) <= FARTHEST:  # NaN too
            raise TargetError("a coordinate is on no screen of this world")
    pairs = [(y, x) if swapped else (x, y) for x, y in corners]
    (x1, y1), (x2, y2) = pairs[0], pairs[-1]
    if len(pairs) == 1:
        return Point(x1, y1, "px")
    return Box(min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2), "px")


DEFAULT_SCREEN: Screen = (1080, 2400)
"""The released evaluator's size of a row without one."""

ROLES: Mapping[str, Modality] = {
    "screenshot": "image",
    "history_screenshot": "image",
    "video": "video",
    "audio": "audio",
}
"""The media that a step may have."""

_NUMBERS = ", ".join(f"{number} {label}" for label, number in NUMBERS.items())


def refuse_other_benchmarks(rows: Sequence[tuple[Row, str]]) -> None:
    """Refuse rows of Android in the Wild, which use the same columns with other meanings.

    Args:
        rows: the first ones, and their file.

    Raises:
        DataError: the rows are AITW or AITZ episodes.
    """
    for row, where in rows:
        path = str(row.get("image_full_path", ""))
        is_other = any(key.startswith("coat_") for key in row) or "android-in-the-wild" in path
        if is_other or ("result_touch_xy" not in row and _is_relative(row.get("result_touch_yx"))):
            raise DataError(
                "these are Android in the Wild (AITW, AITZ) rows: their result_action_type is "
                "another enum (4 is a touch, 5 back, 6 home), and their coordinates are (y, x)",
                where=where,
                expected=f"OmniGUI's enum ({_NUMBERS})",
                remedy=OTHER_DATA,
            )


def _is_relative(value: object) -> bool:
    try:
        target = read_target({"result_touch_xy": value}, "touch")
    except TargetError:
        return False
    return (
        len(target) == 1
        and isinstance(target[0], Point)
        and isinstance(target[0].x, float)
        and max(target[0].x, target[0].y) <= 1
    )


def read_screen(row: Row, screenshot: MediaRef | None, place: RowContext) -> Screen:
    """Return width and height in pixels: the row's, the file's, or the release's default."""
    width, height = whole_number(row.get("image_width")), whole_number(row.get("image_height"))
    if width and height and 0 < width <= FARTHEST and 0 < height <= FARTHEST:
        return width, height
    assumed = size_of(screenshot)
    if assumed == (0, 0):
        assumed = DEFAULT_SCREEN
    place.warn(
        "size-unknown",
        f"image_width is {_short(row.get('image_width'))}, "
        f"image_height {_short(row.get('image_height'))}",
        "the screenshot's size in pixels",
        f"add the size; {assumed[0]} x {assumed[1]} is assumed until then",
    )
    return assumed


def read_media(row: Row, root: Path, place: RowContext) -> dict[str, MediaRef | None]:
    """Return references by role; None if the row names no file."""
    media: dict[str, MediaRef | None] = {}
    for role, kind in ROLES.items():
        value: Any = next((row[key] for key in MEDIA_COLUMNS[role] if row.get(key)), None)
        media[role] = None
        if value is None:
            continue
        if isinstance(value, Mapping):
            if kind == "audio" and {"array", "sampling_rate"} <= value.keys():
                media[role] = MediaRef(kind, root, "", inline=value)
                continue
            value = value.get("path", value)
        reason = unsafe(value) if isinstance(value, str) else f"it is a {type(value).__name__}"
        if reason:
            place.refuse(
                "path-unsafe",
                f"{role} {_short(value)}: {reason}",
                f"a path relative to {root}",
                f"correct the path; the step has no {role.replace('_', ' ')} until then",
            )
        if isinstance(value, str):  # an unsafe one too: opening it raises the MediaError
            media[role] = MediaRef(kind, root, value)
    return media


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def states_target(row: Row) -> bool:
    """Return whether a row has a target; a recorder's and an episode's last row have none."""
    return any(row.get(column) not in (None, "") for column in TARGET_COLUMNS)


def success_values(rows: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Return the different values of `is_success` in the rows of an episode.

    Examples:
        >>> good, bad = {"is_success": True}, {"is_success": False}
        >>> success_values([{}, good, good]), success_values([good, bad]), success_values([{}])
        ([True], [True, False], [])
    """
    found: list[Any] = []
    for row in rows:
        value = row.get("is_success")
        # In Python 1 == True, but the column has the one or the other.
        if value is not None and not any(type(o) is type(value) and o == value for o in found):
            found.append(value)
    return found


def success_of(rows: Iterable[Mapping[str, Any]]) -> bool | None:
    """Return whether an episode succeeded; None if no row says it, or they contradict each other.

    Examples:
        >>> good, bad = {"is_success": True}, {"is_success": False}
        >>> success_of([{}, good, good]), success_of([good, bad])
        (True, None)
    """
    said = [value for value in success_values(rows) if isinstance(value, bool)]
    return said[0] if len(said) == 1 else None


def read_action(row: Row, screen: Screen, place: RowContext) -> tuple[Action | None, bool]:
    """Return the action, for histories, and whether it can be a target.

    Returns:
        The action as far as it can be read (None without a known number), and True if it has all
        that its primitive needs; if not, a finding says why.
    """
    if not states_target(row):
        place.warn(
            "target-absent",
            "the row has no target",
            f"result_action_type, one of {_NUMBERS}",
            "add it, or ignore this: verbs that need a target leave out the step",
        )
        return None, False
    number = whole_number(row.get("result_action_type"))
    if number is None or number not in LABELS:
        what = f"result_action_type is {row.get('result_action_type')!r}"
        return None, _refuse_target("action-unknown", place, what, f"one of {_NUMBERS}")
    words = row.get("action_text")
    bare = replace(
        Action.of(LABELS[number]), words=words if isinstance(words, str) and words else None
    )
    if bare.kind == "type":
        text = row.get("result_action_text")
        if not isinstance(text, str):
            what = f"result_action_text is {text!r}"
            return bare, _refuse_target("text-missing", place, what, "a string")
        if not text:
            place.warn(
                "text-empty",
                "result_action_text is empty",
                "the typed text",
                "add it; until then an answer with an empty text is right",
            )
        return replace(bare, text=text), True
    if bare.kind not in PLACED and bare.kind != "swipe":
        return bare, True
    try:
        start = read_target(row, "touch")
    except TargetError as error:
        value = row.get("result_touch_xy", row.get("result_touch_yx"))
        what = f"the touch target {_short(value)}: {error}"
        return bare, _refuse_target("target-unreadable", place, what, _TARGET_FORMS)
    end: tuple[Region, ...] = ()
    if bare.kind == "swipe":
        try:
            end = read_target(row, "lift")
        except TargetError as error:
            place.warn(
                "lift-unreadable",
                f"the lift target: {error}",
                _TARGET_FORMS,
                "correct it; the swipe is judged by its start until then",
            )
    if not start:
        what = f"{bare.label} without a touch target"
        return bare, _refuse_target("target-missing", place, what, _TARGET_FORMS)
    for region in (*start, *end):
        corners = (region, region) if isinstance(region, Point) else _corners(region)
        edges = [edge for corner in corners for edge in (corner.x, corner.y)]
        if min(edges) < 0 or edges[2] > screen[0] or edges[3] > screen[1]:
            place.warn(
                "target-outside",
                f"the target {edges} exceeds the screenshot of {screen[0]} x {screen[1]}",
                "pixels inside the screenshot",
                "correct the target or the size; OmniGUI's targets are pixels, not 0-1000",
            )
    return replace(bare, start=start, end=end), True


_TARGET_FORMS = "[[x1, y1], [x2, y2]] or [x, y] in pixels"


def _refuse_target(code: str, place: RowContext, what: str, expected: str) -> bool:
    remedy = "the step has no usable target and omnigui-paper leaves it out"
    return place.refuse(code, what, expected, f"correct the row; until then {remedy}")


def _corners(box: Box) -> tuple[Point, Point]:
    return Point(box.left, box.top, box.space), Point(box.right, box.bottom, box.space)


# Do the texts of the rows agree with the rest: instructions, and histories in words?
#
# The wording of `action_history` is the data's own. If the target has no words, only entries in the
# form of the benchmark's own formatter (`TAP at [x, y]`, `INPUT text: "..."`) are compared.

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


def is_history(value: object) -> TypeGuard[list[Mapping[str, Any]]]:
    """Return whether a row has a rendered history; an empty list counts, null does not."""
    return isinstance(value, list) and all(
        isinstance(entry, dict) and {"step_index", "action_text"} <= entry.keys() for entry in value
    )


def check_languages(rows: Sequence[tuple[Row, RowContext]], *, language: str) -> None:
    """Report texts of an episode that are not in the column of their language, each once.

    Args:
        rows: the episode's own row, then those of its steps, and their places.
        language: the one that the episode is asked in.
    """
    columns = [("instruction_en", "en"), ("instruction_zh", "zh")]
    if language == "zh":  # in English apps the column may hold either
        columns.append(("instruction", "zh"))
    seen = set()
    for row, place in rows:
        for column, wanted in columns:
            text = row.get(column)
            if not isinstance(text, str) or (column, text) in seen:
                continue
            seen.add((column, text))
            if reason := foreign(text, wanted):
                place.warn(
                    "language-differs",
                    f"{column}, {reason}: {text[:60]!r}",
                    f'a text in "{wanted}"',
                    "move the text into the column of its language",
                )


class HistoryCheck:
    """Compares the histories of an episode's rows with the targets of its steps.

    Args:
        past: by step, the actions of those that were read so far.
        screens: the screens on which they were made.
    """

    def __init__(self, past: Mapping[int, Action | None], screens: Mapping[int, Screen]) -> None:
        self._past = past
        self._screens = screens
        self._said: set[tuple[int, str]] = set()

    def check(self, row: Row, *, index: int, place: RowContext) -> None:
        """Check the row of step `index`; what rows repeat of the row before is reported once."""
        history = row.get("action_history")
        if not isinstance(history, list):  # as null: the row brings none
            return
        if is_history(history):
            reason = self._difference(history, index)
        else:
            reason = f"an entry is not {{step_index, action_text}}: {str(history)[:60]}"
        if reason:
            place.warn(
                "history-differs",
                f"action_history: {reason}",
                f"steps 0 to {index - 1}, as their targets say" if index else "no step",
                "rebuild the history from the targets",
            )

    def _difference(self, history: Sequence[Mapping[str, Any]], index: int) -> str:
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
        low, high = (convert(corner, "norm1000", screen) for corner in _corners(region))
        reach = _SLACK
    else:
        low = high = convert(region, "norm1000", screen)
        reach = _POINT_REACH
    return low.x - reach <= point.x <= high.x + reach and low.y - reach <= point.y <= high.y + reach
